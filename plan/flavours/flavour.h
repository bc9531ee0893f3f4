/* plan/flavours/flavour.h - a flavour (DDP, FSDP1, FSDP2, ...): the functions that autograd and the
 * training loop call where PyTorch calls that flavour's hooks. Inside plan/ only. */
#pragma once

#include "plan/autograd/tape.h"
#include "plan/builder.h"
#include "plan/plan.h"

/* The growth of flavours whose parameters are whole on each rank. */
#define PLAN_GROWTH_OF_WHOLE                                                                       \
    {                                                                                              \
        .instrs = {12, 12}, .buffers = {10, 10}, .ops = {6, 6}, .operands = {32, 32},              \
        .parts = {4, 4}, .attrs = {3, 3}, .dims = {                                                \
            7,                                                                                     \
            0                                                                                      \
        }                                                                                          \
    }

typedef struct _PlanRun PlanRun; /* autograd/run.h */

/* Hooks: of a whole pass, and of one unit or parameter. NULL: the flavour does nothing there. */
typedef void PlanPassHook(PlanRun *run);
typedef void PlanItemHook(PlanRun *run, uint32_t which);

/* Functions that are no hooks may be NULL only where that is said. */
typedef struct {
    const char *name;
    const char *const *lanes;     /* NULL-terminated; lane 0 is compute */
    const char *const *lanes_2_0; /* up to PyTorch 2.0; NULL: the same */
    PlanBuilderGrowth growth;     /* enough for most networks, checkpointed or not */
    /* A text for each rank; ranks with equal texts play one role. Called before construct. NULL:
     * all ranks are alike. */
    void (*shapes_of_ranks)(const PlanRun *run, char **ret_shapes);
    /* How many elements of each unit one rank owns, with padding. NULL: all of them. */
    void (*shards_of_units)(const PlanRun *run, uint64_t *ret_elements);
    void (*construct)(PlanRun *run);
    PlanPassHook *begin_pass, *end_backward;
    PlanPassHook *begin_evaluation; /* of each pass of an evaluation, instead of begin_pass */
    PlanItemHook *pre_forward, *post_forward, *pre_backward, *post_backward; /* of a unit */
    PlanPassHook *root_cast;      /* the root's outputs have been cast (boundaries.h) */
    PlanItemHook *gradient_ready; /* of a parameter */
    /* The dtype that autograd casts a parameter's gradient, made in dtype `made`, to before it
     * accumulates it (Tensor.grad_dtype). NULL: it does not cast. */
    PlanDtype (*gradient_dtype)(const PlanRun *run, uint32_t parameter, PlanDtype made);
    /* If a unit's parameters are views of one flat tensor: joins their gradients, given in order,
     * to that tensor's. post_backward is then called after it, not after the inputs' gradients.
     * NULL: there is no flat tensor. */
    void (*flatten)(PlanRun *run, uint32_t unit, const PlanTensor *gradients);
    /* With a flat tensor: of a unit that is not trained, all arguments have their gradients. */
    PlanItemHook *arguments_ready;
    /* The whole parameter, as kernels read it. */
    PlanOperand (*parameter)(PlanRun *run, uint32_t parameter);
    /* The scale of a weight that is gathered in float8, and so need not be cast again. Buffer
     * PLAN_NONE, or NULL: it is not gathered in float8. */
    PlanOperand (*float8_scale)(PlanRun *run, uint32_t parameter);
    /* The part of a parameter that this rank's optimizer steps (elements 0: none of it), and that
     * part's gradient. */
    PlanOperand (*owned)(PlanRun *run, uint32_t parameter);
    bool has_empty_shards; /* the optimizer is given parameters of which it owns nothing, too */
    PlanOperand (*gradient)(PlanRun *run, uint32_t parameter);
    void (*clip)(PlanRun *run); /* clips gradients by their norm, before the optimizer's step */
    void (*drop_gradients)(PlanRun *run);
    PlanPassHook *stepped;  /* after the optimizer's step, before gradients are dropped */
    PlanPassHook *end_step; /* at the end of the step */
    /* Whether every later step is like the one that has just been built. NULL: it is. */
    bool (*is_steady)(const PlanRun *run);
    /* Whether the passes of all steps and roles are the same program but for the numbers of buffers
     * (replay.h). NULL: they are not. `renumber` maps the buffers that the first role constructed
     * to this role's; `adopt` takes over a buffer that copied passes have left allocated. */
    bool (*replays)(const PlanRun *run);
    void (*renumber)(PlanRun *run, uint32_t *buffers);
    void (*adopt)(PlanRun *run, uint32_t buffer);
    void (*clear)(PlanRun *run);
} PlanFlavour;

static inline void plan_run_hook(PlanRun *run, PlanPassHook *hook) {
    if (hook) {
        hook(run);
    }
}

static inline void plan_run_hook_of(PlanRun *run, PlanItemHook *hook, uint32_t which) {
    if (hook) {
        hook(run, which);
    }
}

extern const PlanFlavour plan_flavour_plain, plan_flavour_ddp, plan_flavour_fsdp1,
    plan_flavour_fsdp2, plan_flavour_zero1;
