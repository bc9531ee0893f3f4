/* sim/costs/efficiency.h - how long matrix products and attention take on a GPU: tiles and waves.
 *
 * A product is cut into tiles of its output; each multiprocessor works on one tile at a time, so
 * tiles go in waves, and the last wave costs as much as a full one. A tile takes tile_us to fill
 * and drain its pipeline and then, for each step of the sum, the longer of its arithmetic at the
 * reachable share of peak and of feeding it from the caches. Where there are few tiles the sum is
 * split. Of the tile shapes and splits that libraries have, the quickest is taken, as they try to.
 * Bytes that must come from memory are a floor. Long products slow down where power limits clocks.
 *
 * Attention is the same without waves: blocks of 128 queries are many and, with a causal mask, of
 * unequal length; a share of the longest finds the other multiprocessors at rest in the end. A
 * backward that adds up in one order has few, long blocks, and waves again (attention-ordered.c).
 *
 * Every number is the cluster's: [device], [matmul] and [attention] of its file. A device without
 * `sms` (a CPU) has no tiles: arithmetic at the reachable share, or bytes; of attention row_us a
 * query of a head beside it, which is most of it where heads and sequences are as small as a toy's.
 */
#pragma once

#include "models/cluster.h"

typedef struct {
    double batch, m, n, k; /* [m, k] times [k, n], batch times */
    double element_bytes, output_bytes;
    double peak_flops; /* operations a second */
    double efficiency; /* share of peak_flops, measured for this dtype; 0: the cluster's */
    bool by_group;     /* one kernel for all of the batch, in tiles of one shape */
    bool ragged;       /* m is a mean: matrices of the batch differ in rows */
} SimProduct;

double sim_product_ns(const ModelCluster *cluster, const SimProduct *product);

typedef struct {
    double batch, heads, seq;
    bool causal, backward;
    double flops, bytes; /* in all */
    double peak_flops;
    double share; /* of peak_flops that its kernel reaches; 0: the cluster's usual kernel's */
    bool ordered; /* backward by the flash kernel, dq added up in one order */
    bool fills;   /* and what it adds up in is filled before it is set to zero */
    double head_dim;
} SimAttention;

/* Shape of 16-bit attention with as many queries as keys; of it flops and bytes are worked out as
 * plan/op/work.h counts them. The caller sets peak_flops of the result. */
typedef struct {
    double batch, heads, kv_heads, seq, head_dim;
    bool causal, backward;
} SimAttentionShape;

SimAttention sim_attention_of(const SimAttentionShape *shape);
double sim_attention_rows(const SimAttention *attention); /* queries of all heads */
double sim_attention_ns(const ModelCluster *cluster, const SimAttention *attention);
/* An ordered backward on a GPU: its blocks, and adding up their sums. full_rate_ns is what its
 * arithmetic takes if all multiprocessors are busy. */
double sim_attention_ordered_ns(const ModelCluster *cluster, const SimAttention *attention,
                                double full_rate_ns);

/* What a kernel that only moves bytes takes. */
double sim_traffic_ns(const ModelCluster *cluster, double bytes);
