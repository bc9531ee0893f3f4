/* sim/settings.h - what a prediction was asked for, in a trace's header and back.
 *
 * With the header's network, strategy and cluster these keys are all that it takes to predict the
 * same again, or a neighbour of it:
 *   steps           whole number
 *   sharing         no: ops beside each other ran as fast as alone; absent: they slowed each other
 *   nccl_algo, nccl_proto    as forced; absent: NCCL's own choice
 *   every_rank      yes: each rank was played by itself; then also
 *   seed            whole number
 *   jitter_percent, spread_percent, host_jitter_percent, link_jitter_percent
 *   troubles        KIND:FIRST-LAST:FACTOR, spaces between; KIND: slow, nvlink or nic
 * A trace that has none of them, as a measured one, gives a prediction's defaults.
 *
 * Owns: its strings and troubles. Threads: one.
 */
#pragma once

#include "sim/prediction.h"
#include "trace/trace.h"

typedef struct {
    SimOptions options; /* troubles are the array's below */
    char *nccl_algo, *nccl_proto;
    GArray *troubles; /* SimTrouble */
} SimSettings;

/* "jitter_percent" and its like, by kind. */
extern const char *const sim_jitter_keys[SIM_N_JITTERS];

void sim_settings_write(Trace *trace, const ModelCluster *cluster, const SimOptions *options);
/* Fails on a value that none of the keys can have, and names it; whether there are the ranks that
 * troubles name, sim_predict() asks. */
SimSettings *sim_settings_read(const Trace *trace, GError **error);
void sim_settings_free(SimSettings *settings); /* NULL is fine */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(SimSettings, sim_settings_free)
