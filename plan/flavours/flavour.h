/* plan/flavours/flavour.h - what a flavour (DDP, FSDP1, FSDP2, ...) does, where PyTorch's own hooks
 * sit. Inside plan/ only. */
#pragma once

#include "plan/autograd/tape.h"
#include "plan/plan.h"

typedef struct _PlanRun PlanRun; /* autograd/eager.h */

/* A hook of a flavour in a pass: of all, or of a unit or parameter. NULL: nothing is done there. */
typedef void PlanPassHook(PlanRun *run);
typedef void PlanPlaceHook(PlanRun *run, uint32_t which);

/* What a flavour does; each function is called where PyTorch calls its own. None but pass hooks may
 * be NULL unless it says so. */
typedef struct {
    const char *name;
    const char *const *lanes;     /* NULL-terminated; lane 0 is compute */
    const char *const *lanes_2_0; /* up to PyTorch 2.0; NULL: the same */
    /* What tells ranks apart, a text each; called before construct. NULL: all are alike. */
    void (*shapes_of_ranks)(const PlanRun *run, char **ret_shapes);
    /* Elements of each unit that a rank owns, with padding. NULL: all of them. */
    void (*shards_of_units)(const PlanRun *run, uint64_t *ret_elements);
    void (*construct)(PlanRun *run);
    PlanPassHook *begin_pass, *end_backward;
    PlanPlaceHook *pre_forward, *post_forward, *pre_backward, *post_backward; /* of a unit */
    PlanPassHook *root_cast; /* what the root gives has been cast, where it is (boundaries.h) */
    PlanPlaceHook *gradient_ready; /* of a parameter; NULL: nothing is done then */
    /* What autograd casts a parameter's gradient to, of the dtype in which it is made, before it
     * accumulates it (Tensor.grad_dtype); NULL: it does not. */
    PlanDtype (*gradient_dtype)(const PlanRun *run, uint32_t parameter, PlanDtype made);
    /* NULL unless a unit's parameters are parts of one flat tensor: makes that tensor's gradient of
     * theirs, which are given in order. post_backward follows it, not the inputs' gradients. */
    void (*flatten)(PlanRun *run, uint32_t unit, const PlanTensor *gradients);
    /* Likewise: nothing of a unit is trained, and its arguments have their gradients. */
    PlanPlaceHook *arguments_ready;
    /* The parameter as compute uses it. */
    PlanOperand (*parameter)(PlanRun *run, uint32_t parameter);
    /* What a weight was scaled by that is gathered in float8, so that compute uses it as it is;
     * buffer PLAN_NONE, or no function: none is. */
    PlanOperand (*float8_scale)(PlanRun *run, uint32_t parameter);
    /* What the optimizer owns of it (elements 0: nothing on this rank), and its gradient. */
    PlanOperand (*owned)(PlanRun *run, uint32_t parameter);
    bool has_empty_shards; /* the optimizer sees those of which this rank owns nothing, too */
    PlanOperand (*gradient)(PlanRun *run, uint32_t parameter);
    void (*clip)(PlanRun *run); /* the norm of all gradients, before the optimizer's step */
    void (*drop_gradients)(PlanRun *run);
    PlanPassHook *stepped;  /* the optimizer has, and gradients are there */
    PlanPassHook *end_step; /* after the optimizer */
    /* Whether every later step is as the one that has just been built; NULL: it is. */
    bool (*is_steady)(const PlanRun *run);
    /* Whether the passes are one program in all steps and roles, buffer numbers apart (replay.h);
     * NULL: no. `renumber` maps the first role's construction buffers to this role's; `adopt` takes
     * over one that the passes left. */
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

static inline void plan_run_hook_at(PlanRun *run, PlanPlaceHook *hook, uint32_t which) {
    if (hook) {
        hook(run, which);
    }
}

extern const PlanFlavour plan_flavour_plain, plan_flavour_ddp, plan_flavour_fsdp1,
    plan_flavour_fsdp2, plan_flavour_zero1;
