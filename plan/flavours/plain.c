/* plan/flavours/plain.c - one rank by itself: no wrapper, nothing communicated. */
#include "plan/optimizer/optimizer.h"
#include "plan/whole.h"

static void construct(PlanRun *run) {
    run->state = g_new0(PlanWhole, 1);
    plan_whole_construct(run, run->state);
}

static void nothing(PlanRun *run) {
}

static void nothing_at(PlanRun *run, uint32_t which) {
}

static PlanOperand parameter(PlanRun *run, uint32_t which) {
    return plan_whole_operand(run, run->state, which);
}

static bool is_steady(const PlanRun *run) {
    return true;
}

static void clear(PlanRun *run) {
    PlanWhole *whole = run->state;
    if (whole) {
        g_free(whole->buffers);
        g_free(whole);
    }
}

static const char *const lanes[] = {"compute", NULL};

const PlanFlavour plan_flavour_plain = {
    .name = "plain",
    .lanes = lanes,
    .construct = construct,
    .begin_pass = nothing,
    .pre_forward = nothing_at,
    .post_forward = nothing_at,
    .pre_backward = nothing_at,
    .post_backward = nothing_at,
    .gradient_ready = nothing_at,
    .end_backward = nothing,
    .parameter = parameter,
    .owned = parameter,
    .gradient = plan_whole_gradient,
    .clip = plan_clip_whole,
    .drop_gradients = plan_whole_drop_gradients,
    .is_steady = is_steady,
    .clear = clear,
};
