/* sim/costs/attention-ordered.h - FlashAttention-2's backward where dq is added up in one order. */
#pragma once

#include "sim/costs/attention.h"

/* On a GPU: its blocks, and adding up their sums. full_rate_ns: what its arithmetic would take with
 * all multiprocessors busy. */
double sim_attention_ordered_ns(const ModelCluster *cluster, const SimAttention *attention,
                                double full_rate_ns);
