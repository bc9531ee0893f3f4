/* sim/built.h - a plan built in as few words as its prediction can do with.
 *
 * Figures of ranks that are alike want one program, and of a step of many passes some of them
 * (PLAN_FORM_FOLDED). That these do not repeat one another a play alone can tell; then more are
 * written, and in the end all. Who wants a trace, another rank or each of them wants a whole plan;
 * and each is played where no one rank can stand for all (sim_told_apart()), with the cluster's own
 * jitter. Of more than SIM_FEW_RANKS of them the trace then has the first.
 */
#pragma once

#include "plan/build/build.h"
#include "sim/settled.h"

/* The plan in a form; NULL: error says why it is refused. */
typedef Plan *SimBuild(gpointer self, PlanForm form, GError **error);

/* As sim_predict_settled(), of *plan; NULL: of the one that is built. In the end *plan is the one
 * that was played. */
SimPrediction *sim_predict_built(SimBuild *build, gpointer self, Plan **plan,
                                 const ModelCluster *cluster, const SimOptions *options,
                                 Trace *trace, GError **error);
