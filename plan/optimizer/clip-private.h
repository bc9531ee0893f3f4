/* plan/optimizer/clip-private.h - what clip.c and clip-flat.c share: two ways to clip. */
#pragma once

#include "plan/autograd/tensor.h"

/* A gradient to be clipped. `of`: the run of the stage that it belongs to. */
typedef struct {
    PlanRun *of;
    uint32_t parameter;
    PlanOperand gradient;
} PlanClipped;

typedef struct {
    PlanRun *run;
    PlanDtype dtype;
    PlanClipped *clipped; /* whose gradients are there */
    uint32_t n;
    bool knows_no_tensor; /* they are of a mesh without the tensor axis: each rank has them all */
} PlanClip;

/* also_empty: parameters of which the rank has nothing, too. Whoever begins frees clipped. */
void plan_clip_begin(PlanClip *c, PlanRun *run, bool also_empty);
/* One gradient after the other, without a list that holds the norms. */
PlanTensor plan_clip_stack_one_by_one(const PlanClip *c);
/* What gradients are multiplied by, if it is below 1. */
PlanTensor plan_clip_ratio(const PlanClip *c, PlanTensor norm);
/* Gradients times the coefficient, over all at once or from the i-th to the n-th. */
void plan_clip_scale(const PlanClip *c, PlanTensor factor, uint32_t i, uint32_t n);
