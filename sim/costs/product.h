/* sim/costs/product.h - how long matrix products take on a GPU: tiles and waves.
 *
 * A product is cut into tiles of its output; each multiprocessor works on one tile at a time, so
 * tiles go in waves, and the last wave costs as much as a full one. A tile takes tile_us to fill
 * and drain its pipeline and then, for each step of the sum, the longer of its arithmetic at the
 * reachable share of peak and of feeding it from the caches. Where there are few tiles the sum is
 * split. Of the tile shapes and splits that libraries have, the quickest is taken, as they try to.
 * Bytes that must come from memory are a floor. Long products slow down where power limits clocks.
 *
 * Every number is the cluster's: [device] and [matmul] of its file. A device without `sms` (a CPU)
 * has no tiles: arithmetic at the reachable share, or bytes.
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
