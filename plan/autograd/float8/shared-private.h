/* plan/autograd/float8/shared-private.h - what shared.c and shared-backward.c have in common.
 * Inside float8/ only.
 */
#pragma once

#include "plan/autograd/float8/words.h"
#include "plan/autograd/shared/async.h"

/* Of the values of a layer: its inputs, then its outputs. */
enum {
    LAYER_INPUT,
    LAYER_WEIGHT,
    LAYER_RESULT,
    LAYER_WEIGHT_SCALE,
    LAYER_WEIGHT_CAST,
    LAYER_INPUT_CAST,
    LAYER_INPUT_SCALE
};

/* A cast, and what it was scaled by. */
typedef struct {
    PlanTensor numbers, scale;
} PlanFloat8SharedCast;

static inline void drop(PlanRun *run, const PlanFloat8SharedCast *cast) {
    plan_run_unref(run, cast->numbers);
    plan_run_unref(run, cast->scale);
}

/* It takes all ranks' tokens and makes some columns; else o or down, whose result is added up. */
bool plan_float8_takes_gathered(const PlanGraph *graph, const PlanGraphOp *op);
/* Of largest numbers. */
PlanTensor plan_float8_inverse_of(PlanRun *run, PlanTensor largest, PlanDtype to);
/* By the largest number of each of several groups, of which each rank has a part. */
PlanFloat8SharedCast plan_float8_cast_of_all(PlanRun *run, const PlanFloat8Source *source,
                                             PlanFloat8Along along, bool found,
                                             PlanTensor *ret_turned);
/* For products in parts. scale: of what w multiplies. */
PlanAsyncProduct plan_float8_async_product(PlanRun *run, PlanOpKind kind,
                                           const PlanGraphFloat8Linear *d, PlanTensor scale,
                                           const PlanFloat8SharedCast *w, PlanTensor made);
