/* sim/costs/attention-ordered.c - a block of threads, and where its sums go.
 *
 * A block of threads has 128 keys of a head (64 where heads are wider than 128) and adds to all of
 * dq, in whatever order blocks come. Asked for one order (csrc/flash_attn/flash_api.cpp and
 * src/flash_bwd_launch_template.h since 2.4.1, which PyTorch has taken over; read 2026-11), it
 * starts as many blocks a head as fill the multiprocessors once, each of which walks over every so
 * many-th of the head's key blocks and has a dq of its own, in fp32. Those are set to zero before
 * and added up after. A multiprocessor has room for one such block (144 KiB of shared memory), so
 * they go in waves: 32 heads on 132 multiprocessors are 160 blocks, of which 28 run by themselves
 * while the other multiprocessors rest.
 *
 * tests/sim/test-efficiency.c holds this against published pairs of times.
 */
#include "sim/costs/attention-ordered.h"

#include <math.h>

#include "sim/costs/traffic.h"

enum {
    KEYS = 128,
    KEYS_OF_WIDE = 64,
    WIDE = 128, /* heads that are wider */
};

/* Of a head's arithmetic, the share of the block that begins with its key block `first`. Under a
 * mask key block i is seen by the queries behind it: key_blocks - i. */
static double share_of(const SimAttention *attention, double first, double key_blocks,
                       double workers) {
    double turns = ceil((key_blocks - first) / workers);
    if (!attention->causal) {
        return turns / key_blocks;
    }
    double seen = turns * (key_blocks - first) - workers * turns * (turns - 1) / 2;
    return seen / (key_blocks * (key_blocks + 1) / 2);
}

/* The first of a head's blocks has most to do, the last least. The last wave begins where the
 * shortest blocks of the wave before end; waves before that take turns of any. */
static double turns_of_waves(const SimAttention *attention, double key_blocks, double workers,
                             double waves) {
    double longest = share_of(attention, 0, key_blocks, workers);
    double shortest = share_of(attention, workers - 1, key_blocks, workers);
    return waves == 1 ? longest : (waves - 2) / workers + shortest + longest;
}

/* Zeroing, and adding up: beyond what one dq takes, which is in the measured rates. */
static double sums_bytes(const SimAttention *attention, double splits) {
    double dq = attention->batch * attention->heads * attention->seq * attention->head_dim * 4;
    return dq * ((attention->fills ? 3 : 2) * splits - 2);
}

double sim_attention_ordered_ns(const ModelCluster *cluster, const SimAttention *attention,
                                double full_rate_ns) {
    double sms = (double)cluster->device_sms, heads = attention->batch * attention->heads;
    double keys = attention->head_dim > WIDE ? KEYS_OF_WIDE : KEYS;
    double key_blocks = ceil(attention->seq / keys), splits = ceil(sms / heads);
    double workers = fmin(splits, key_blocks);
    double waves = ceil(heads * workers / sms);
    double head_ns = full_rate_ns * sms / heads; /* on one multiprocessor */
    double blocks_ns = head_ns * turns_of_waves(attention, key_blocks, workers, waves);
    return blocks_ns + sim_traffic_ns(cluster, sums_bytes(attention, splits));
}
