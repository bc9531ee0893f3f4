/* plan/flavours/plain.c - one rank by itself: no wrapper, nothing communicated. */
#include "plan/flavours/whole.h"
#include "plan/optimizer/clip.h"

static void construct(PlanRun *run) {
    run->state = g_new0(PlanWhole, 1);
    plan_whole_construct(run, run->state);
}

static PlanOperand parameter(PlanRun *run, uint32_t which) {
    return plan_whole_operand(run, run->state, which);
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
    .growth = PLAN_GROWTH_OF_WHOLE,
    .construct = construct,
    .parameter = parameter,
    .owned = parameter,
    .gradient = plan_whole_gradient,
    .clip = plan_clip_whole,
    .drop_gradients = plan_whole_drop_gradients,
    .clear = clear,
};
