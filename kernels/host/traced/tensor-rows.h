/* kernels/host/traced/tensor-rows.h - element by element, tensors of any dtype and shape.
 *
 * Inputs are widened to the output's shape as PyTorch does (sides are matched from the last; one of
 * size 1, or none, repeats). In pieces that stay in cache: loaded, computed in float (or in double
 * where an operand is an integer or fp64) and rounded once. Inputs may be the output itself.
 * Bound: memory, or the exponential where there is one.
 */
#pragma once
#include "kernels/host/traced/tensor.h"

typedef enum {
#define EACH(id, ...) KERNEL_EACH_##id,
#include "kernels/host/traced/tensor-rows.def"
#undef EACH
    KERNEL_N_EACH
} KernelEach;

enum {
    KERNEL_EACH_INPUTS = 3
};

/* Numbers for the texts that choose among forms. */
enum {
    TEXT_NONE,
    TEXT_TANH,
    TEXT_FLOOR,
    TEXT_TRUNC
};

void kernel_tensor_each(KernelEach what, const KernelTensor *y, const KernelTensor *inputs,
                        unsigned n_inputs, double p, double q);
