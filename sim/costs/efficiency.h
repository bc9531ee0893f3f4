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

/* A product of matrices [m, k] and [k, n], `batch` times. */
typedef struct {
    double batch, m, n, k;
    double element_bytes; /* of a number of either factor */
    double output_bytes;  /* of a number of the result */
    double peak_flops;    /* operations a second of the device in this dtype */
    double efficiency;    /* the share of peak_flops that was measured for this dtype; 0: the
                           * cluster's usual one */
    bool by_group;        /* one kernel works on the whole batch, in tiles of one shape */
    bool ragged;          /* matrices of the batch differ in rows, and m is their mean */
} SimProduct;

/* How long it takes on this cluster's device. */
double sim_product_ns(const ModelCluster *cluster, const SimProduct *product);

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
/* An ordered backward on a GPU: its blocks, and adding up their sums. full_rate_ns: what its
 * arithmetic would take with all multiprocessors busy. */
double sim_attention_ordered_ns(const ModelCluster *cluster, const SimAttention *attention,
                                double full_rate_ns);

/* How long a kernel takes that only moves bytes. */
double sim_traffic_ns(const ModelCluster *cluster, double bytes);
