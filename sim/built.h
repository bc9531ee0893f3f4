/* sim/built.h - builds as little of a plan as a prediction needs, and predicts it.
 *
 * If only figures are wanted and ranks are alike, one rank's program suffices, and of a step with
 * many passes only some of them (PLAN_FORM_FOLDED). Whether those passes repeat shows only in the
 * play; if they do not, the plan is built again with more of them, and at last with all. A trace,
 * another rank than the first, or a play of every rank needs the whole plan. Every rank is played
 * where no single one can stand for all (sim_told_apart()), with the cluster's own jitter; of more
 * than SIM_FEW_RANKS ranks the trace then has the first one only.
 */
#pragma once

#include "plan/build/build.h"
#include "sim/settled.h"

/* The plan in a form; NULL: error says why it is refused. */
typedef Plan *SimBuild(gpointer self, PlanForm form, GError **error);

/* As sim_predict_settled(). *plan NULL: a plan is built as told above; else that plan is predicted.
 * In the end *plan is the one that was played. */
SimPrediction *sim_predict_built(SimBuild *build, gpointer self, Plan **plan,
                                 const ModelCluster *cluster, const SimOptions *options,
                                 Trace *trace, GError **error);
