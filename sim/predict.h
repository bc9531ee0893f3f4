/* sim/predict.h - predicts a plan on a cluster: does it fit, how long does a step take, where does
 * time go.
 *
 * Representative play: ranks are alike, so one cursor, playing one rank's role, stands for all of
 * them (by default rank 0, the largest), and a collective takes what sim/costs/network.h says for
 * its axis. Running out of memory is a result: the play is then repeated without a limit, to find
 * out how much it would take.
 *
 * Every-rank play: a cursor a rank (ranks/every.h), for what tells ranks apart: jitter, stragglers,
 * nodes of several kinds, links that carry less. A step is then over when its last rank is through;
 * memory shown is that of the rank that reserves most, and times are those of the rank that loses
 * least to others, which is the one that the others wait for. On equal ranks without jitter both
 * plays give the same nanoseconds.
 *
 * Threads: one a play. Determinism: same plan, cluster and options, same result and same bytes of
 * trace.
 */
#pragma once

#include "sim/prediction.h"
#include "trace/trace.h"

/* What one rank of so many cannot stand for, "nodes of several kinds": then each is to be played.
 * NULL: one can. */
const char *sim_told_apart(uint64_t ranks, const ModelCluster *cluster);

/* trace: a new one to fill, or NULL. Fails if plan, cluster and troubles do not go together. */
SimPrediction *sim_predict(const Plan *plan, const ModelCluster *cluster, const SimOptions *options,
                           Trace *trace, GError **error);
