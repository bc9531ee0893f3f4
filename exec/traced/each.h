/* exec/traced/each.h - calls of traced networks that work element by element: their arguments.
 * Which there are: each.def.
 */
#pragma once

#include "exec/traced/call.h"
#include "kernels/host/traced/tensor-rows.h"

typedef struct {
    KernelTensor inputs[KERNEL_EACH_INPUTS];
    double numbers[KERNEL_EACH_INPUTS]; /* that are given instead of tensors */
    unsigned n_inputs, n_shared;
    double shared[2];
} TracedEach;

/* takes: letters as in known.h. */
void traced_each_take(TracedEach *e, const TracedCall *call, const char *takes);

/* Whether x can be read in y's shape: its sides, matched from the last, are as long, or repeat. */
bool traced_widens_to(const KernelTensor *x, const KernelTensor *y);
