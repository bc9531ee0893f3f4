/* kernels/host/traced/tensor-sum.h - sums over some sides of a tensor.
 *
 * Added in double, in the order of the elements, so a result is repeatable. Bound: memory.
 */
#pragma once
#include "kernels/host/traced/tensor.h"

/* y = factor times the sum of x over the sides in `summed` (bits). y has the other sides, in order;
 * it may have those of the sum, too, of size 1. */
void kernel_tensor_sum(const KernelTensor *y, const KernelTensor *x, unsigned summed,
                       double factor);
