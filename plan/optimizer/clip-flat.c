/* plan/optimizer/clip-flat.c - FullyShardedDataParallel.clip_grad_norm_ of FSDP1, op by op
 * (torch/distributed/fsdp/fully_sharded_data_parallel.py).
 *
 * Each rank takes the norm of what it has in fp32, ranks add up the squares as one number, and each
 * gradient is multiplied by itself, in its own dtype.
 */
#include "plan/autograd/launch.h"
#include "plan/autograd/offload-slots.h"
#include "plan/autograd/read.h"
#include "plan/optimizer/clip-private.h"
#include "plan/optimizer/clip.h"
#include "plan/optimizer/norms.h"

/* A number that gradients of another dtype take up: PyTorch makes it one of theirs each time. */
static PlanTensor as_gradient(const PlanClip *c, PlanTensor number, PlanDtype dtype) {
    PlanRun *run = c->run;
    if (dtype == c->dtype) {
        return plan_run_ref(run, number);
    }
    PlanTensor same = plan_run_new_empty(run, 1, dtype, "number");
    LAUNCH_ON(run, PLAN_LANE_COMPUTE, PLAN_OP_CAST, PLAN_AXIS_NONE, DIMS(1), NULL,
              plan_run_operand_of(run, number), plan_run_operand_of(run, same));
    return same;
}

/* The norm of what is this rank's, in fp32 whatever its gradients are in. */
static PlanTensor local_norm(const PlanClip *c) {
    PlanTensor stack = plan_clip_stack_one_by_one(c);
    PlanTensor norm = launch_new(c->run, PLAN_OP_NORM, stack, 0, "norm");
    plan_run_unref(c->run, stack);
    return norm;
}

/* 1.13 scales only where the host, which waits for the number, finds it below 1. The plan always
 * does, by 1 at most: it knows no numbers. */
static void scale_if_asked(const PlanClip *c, PlanTensor norm) {
    PlanRun *run = c->run;
    PlanTensor sum = launch_new(c->run, PLAN_OP_ADD_NUMBER, norm, 1e-6, "norm");
    PlanTensor ratio = launch_new(c->run, PLAN_OP_POWER, sum, -1, "ratio");
    launch_each(c->run, PLAN_OP_TIMES_NUMBER, ratio, run->strategy->clip, ratio);
    plan_run_unref(run, sum);
    PlanTensor is_below = plan_run_new_tensor(run, 1, PLAN_UINT8, "is_below");
    plan_offload_ask(run, ratio);
    launch_each(c->run, PLAN_OP_AT_MOST, ratio, 1, ratio);
    for (uint32_t i = 0; i < c->n; i++) {
        plan_clip_scale(c, ratio, i, i + 1);
    }
    plan_run_unref(run, ratio);
    plan_run_unref(run, is_below);
}

void plan_clip_flat(PlanRun *run, PlanAxis axis, uint64_t ranks, PlanTensor zero) {
    PlanClip c;
    plan_clip_begin(&c, run, false);
    PlanDtype dtype = c.dtype;
    c.dtype = PLAN_FP32;
    PlanTensor local = c.n                         ? local_norm(&c)
                       : zero.storage != PLAN_NONE ? plan_run_ref(run, zero)
                                                   : plan_clip_new_zero(run);
    PlanTensor norm = plan_clip_over_ranks(run, local, axis, ranks);
    if (run->strategy->pytorch == PLAN_PYTORCH_1_13) {
        scale_if_asked(&c, norm);
        plan_run_unref(run, local);
        plan_run_unref(run, norm);
        g_free(c.clipped);
        return;
    }
    PlanTensor ratio = plan_clip_ratio(&c, norm);
    PlanTensor factor = launch_new(run, PLAN_OP_AT_MOST, ratio, 1, "coefficient");
    for (uint32_t i = 0; i < c.n; i++) {
        PlanTensor mine = as_gradient(&c, factor, dtype);
        plan_clip_scale(&c, mine, i, i + 1);
        plan_run_unref(run, mine);
    }
    PlanTensor answer = c.n ? as_gradient(&c, norm, dtype) : plan_run_ref(run, norm);
    plan_run_unref(run, local);
    plan_run_unref(run, norm);
    plan_run_unref(run, ratio);
    plan_run_unref(run, factor);
    plan_run_read_norm(run, answer);
    plan_run_unref(run, answer);
    g_free(c.clipped);
}
