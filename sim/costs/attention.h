/* sim/costs/attention.h - how long attention takes on a GPU.
 *
 * As matrix products (product.h), but without waves: blocks of 128 queries are many and, with a
 * causal mask, of unequal length; a share of the longest finds the other multiprocessors at rest in
 * the end. A backward that adds up in one order has few, long blocks, and waves again
 * (attention-ordered.h).
 *
 * Every number is the cluster's: [device] and [attention] of its file. A device without `sms` (a
 * CPU) takes row_us a query of a head beside its arithmetic, which is most of it where heads and
 * sequences are as small as a toy's.
 */
#pragma once

#include "models/cluster.h"

typedef struct {
    double batch, heads, seq, head_dim;
    bool causal, backward;
    double flops, bytes; /* of all of it together */
    double peak_flops;   /* operations a second of the device in this dtype */
    double share;        /* the share of peak_flops that its kernel reaches; 0: that of the
                          * cluster's usual kernel */
    bool ordered;        /* a backward by the flash kernel that adds up dq in one order */
    bool fills;          /* ordered: what it adds up in was filled before it is set to zero */
} SimAttention;

/* The shape of 16-bit attention with as many queries as keys. */
typedef struct {
    double batch, heads, kv_heads, seq, head_dim;
    bool causal, backward;
} SimAttentionShape;

/* Attention of that shape, with its flops and bytes as plan/op/work.h counts them. The caller sets
 * peak_flops. */
SimAttention sim_attention_of(const SimAttentionShape *shape);
double sim_attention_rows(const SimAttention *attention); /* the queries of all heads */
double sim_attention_ns(const ModelCluster *cluster, const SimAttention *attention);
