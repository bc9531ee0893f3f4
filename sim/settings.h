/* sim/settings.h - writes the options of a prediction into a trace's header, and reads them back.
 *
 * Together with the header's network, strategy and cluster these keys are enough to predict the
 * same again, or with one setting changed:
 *   steps           whole number
 *   sharing         no: ops beside each other ran as fast as alone; absent: they slowed each other
 *   nccl_algo, nccl_proto    as forced; absent: NCCL's own choice
 *   every_rank      yes: each rank was played by itself; then also
 *   seed            whole number
 *   jitter_percent, spread_percent, host_jitter_percent, link_jitter_percent
 *   troubles        KIND:FIRST-LAST:FACTOR, spaces between; KIND: slow, nvlink or nic
 * A trace without them, such as a measured one, gives the defaults.
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

/* As the cluster's file has it; seed 0. */
SimJitter sim_jitter_of(const ModelCluster *cluster);
/* "jitter_percent" and its like, by kind. */
extern const char *const sim_jitter_keys[SIM_N_JITTERS];

void sim_settings_write(Trace *trace, const ModelCluster *cluster, const SimOptions *options);
/* Fails on an impossible value, and names it. Whether the ranks of troubles exist is left to
 * sim_predict(). */
SimSettings *sim_settings_read(const Trace *trace, GError **error);
void sim_settings_free(SimSettings *settings); /* NULL is fine */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(SimSettings, sim_settings_free)
