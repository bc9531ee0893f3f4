#include "sim/costs/product.h"

#include <math.h>

#include "sim/costs/traffic.h"

/* Rows and columns of the output tiles that cuBLAS and CUTLASS have for 16-bit products (names of
 * their kernels: 256x128, 128x128, 128x64, 64x64 and their turns). */
static const struct {
    double rows, columns;
} tiles[] = {{256, 128}, {128, 256}, {128, 128}, {256, 64},
             {64, 256},  {128, 64},  {64, 128},  {64, 64}};

/* Both are assumed, as cuBLAS does not say how it splits a sum. CUTLASS's blocks sum 32 or 64 at a
 * step and keep three or four steps under way, so that 256 just fill their pipeline. */
enum {
    MOST_SPLITS = 16,
    LEAST_SUM = 256 /* of a split */
};

/* Partial sums are written and read in fp32 and stay in the second-level cache, assumed to be twice
 * as fast as memory: NVIDIA gives no rate for it. */
#define PARTIAL_BYTES     8
#define CACHE_OVER_MEMORY 2.0

/* Operations a ns. */
static double reachable(const ModelCluster *cluster, const SimProduct *product) {
    double share =
        product->efficiency > 0 ? product->efficiency : cluster->device_matmul_efficiency;
    return product->peak_flops * share / 1e9;
}

/* ns for one step of the sum of one tile on one multiprocessor. */
static double step_ns(const ModelCluster *cluster, const SimProduct *product, unsigned tile) {
    double rows = tiles[tile].rows, columns = tiles[tile].columns;
    double arithmetic =
        2 * rows * columns * (double)cluster->device_sms / reachable(cluster, product);
    double feed = cluster->matmul_feed_gb_per_s > 0
                      ? (rows + columns) * product->element_bytes / cluster->matmul_feed_gb_per_s
                      : 0;
    return fmax(arithmetic, feed);
}

static double split_ns(const ModelCluster *cluster, const SimProduct *product, unsigned splits) {
    double partial = product->batch * product->m * product->n * PARTIAL_BYTES * splits;
    return cluster->matmul_split_us * 1e3 +
           partial / (cluster->device_memory_gb_per_s * CACHE_OVER_MEMORY);
}

static double tiled_ns(const ModelCluster *cluster, const SimProduct *product, unsigned tile,
                       unsigned splits) {
    double count = product->batch * ceil(product->m / tiles[tile].rows) *
                   ceil(product->n / tiles[tile].columns) * splits;
    double waves = ceil(count / (double)cluster->device_sms);
    double steps = ceil(product->k / splits);
    double ns = waves * (cluster->matmul_tile_us * 1e3 + steps * step_ns(cluster, product, tile));
    return splits > 1 ? ns + split_ns(cluster, product, splits) : ns;
}

static double quickest_ns(const ModelCluster *cluster, const SimProduct *product) {
    double least = INFINITY;
    for (unsigned tile = 0; tile < G_N_ELEMENTS(tiles); tile++) {
        for (unsigned splits = 1; splits <= MOST_SPLITS; splits *= 2) {
            if (splits > 1 && product->k < (double)splits * LEAST_SUM) {
                break;
            }
            least = fmin(least, tiled_ns(cluster, product, tile, splits));
        }
    }
    return least;
}

/* Products that take long run slower as the clock falls: half of the slowdown is reached at
 * hot_after_us. */
static double when_hot(const ModelCluster *cluster, const SimProduct *product, double ns) {
    if (product->efficiency > 0) {
        return ns;
    }
    double after = cluster->matmul_hot_after_us * 1e3;
    return ns * (1 + cluster->matmul_hot_slowdown * ns / (ns + after));
}

static double product_bytes(const SimProduct *p) {
    return p->batch * ((p->m + p->n) * p->k * p->element_bytes + p->m * p->n * p->output_bytes);
}

/* ---- products by group ---------------------------------------------------------------------- */

/* PyTorch's kernel has one shape of tiles where groups are large and one where they are small, of a
 * multiprocessor or of two together (aten/src/ATen/native/cuda/GroupMM.cu). */
typedef struct {
    double rows, columns, sms;
} GroupTile;

enum {
    SMALL_GROUP = 128
};

static bool has_group_kernel(const ModelCluster *cluster) {
    double capability = cluster->device_compute_capability;
    return cluster->device_sms > 0 && (capability == 90 || (capability >= 100 && capability < 110));
}

static GroupTile group_tile(const ModelCluster *cluster, const SimProduct *product) {
    bool small = product->m <= SMALL_GROUP || product->n <= SMALL_GROUP;
    if (cluster->device_compute_capability == 90) {
        return small ? (GroupTile){64, 128, 1} : (GroupTile){128, 256, 1};
    }
    return small ? (GroupTile){128, 256, 1} : (GroupTile){256, 256, 2};
}

/* Groups have as many rows as a router gives them, so each ends half a tile short of full ones, in
 * the mean. */
static double group_tiles(const SimProduct *product, const GroupTile *tile) {
    double rows = product->ragged ? product->m / tile->rows + 0.5 : ceil(product->m / tile->rows);
    return product->batch * rows * ceil(product->n / tile->columns);
}

static double grouped_ns(const ModelCluster *cluster, const SimProduct *product) {
    GroupTile tile = group_tile(cluster, product);
    double at_once = floor((double)cluster->device_sms / tile.sms);
    double waves = ceil(group_tiles(product, &tile) / at_once);
    double step = 2 * tile.rows * tile.columns * at_once / reachable(cluster, product);
    return waves * (cluster->matmul_tile_us * 1e3 + product->k * step);
}

double sim_product_ns(const ModelCluster *cluster, const SimProduct *product) {
    double bytes_ns = sim_traffic_ns(cluster, product_bytes(product));
    if (cluster->device_sms == 0) {
        double flops = 2 * product->batch * product->m * product->n * product->k;
        double ns = flops / reachable(cluster, product);
        return cluster->matmul_start_us * 1e3 + fmax(ns, bytes_ns);
    }
    bool by_group = product->by_group && has_group_kernel(cluster);
    double alone = by_group ? grouped_ns(cluster, product) : quickest_ns(cluster, product);
    double tiled = when_hot(cluster, product, alone);
    return cluster->matmul_start_us * 1e3 + fmax(tiled, bytes_ns);
}
