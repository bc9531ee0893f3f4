/* exec/traced/each.h - calls of traced networks that work element by element: their arguments, and
 * what of them is not known. Which there are: each.def.
 */
#pragma once

#include "exec/traced/call.h"
#include "kernels/host/tensor-rows.h"

typedef struct {
    KernelTensor inputs[KERNEL_EACH_INPUTS];
    double numbers[KERNEL_EACH_INPUTS]; /* that are given instead of tensors */
    unsigned n_inputs, n_shared;
    double shared[2];
} TracedEach;

/* A letter for each argument: t a tensor or a number, by which elements are computed; n a number
 * and s a text that all share; < and > bounds, which may be missing; - what tells nothing. 1 stands
 * for no argument, and is a number that all share. */
void traced_each_take(TracedEach *e, const TracedCall *call, const char *takes);

/* Whether x can be read in y's shape: its sides, matched from the last, are as long, or repeat. */
bool traced_widens_to(const KernelTensor *x, const KernelTensor *y);

/* Why a call is not known; NULL: it is. */
const char *traced_each_why_not(const TracedCall *call);
const char *traced_truths_why_not(const TracedCall *call);
