/* exec/traced/windows.h - how calls of traced networks say what they look at through windows.
 */
#pragma once

#include "exec/traced/call.h"
#include "kernels/windows.h"

/* first: where a call's arguments begin that say how windows move: stride, padding, dilation,
 * transposed, output_padding, groups. */
bool traced_is_transposed(const TracedCall *call, unsigned first);
/* Of a call that makes y of x and a weight, or its gradient. One that is transposed is what others'
 * backward is: y is what windows look at, and x has a number for each place of them. */
KernelWindows traced_convolution_windows(const TracedCall *call, const KernelTensor *x,
                                         const KernelTensor *weight, const KernelTensor *y,
                                         unsigned first);
/* Of a pool of x that makes y. first: where its arguments begin, kernel_size the first of them. */
KernelWindows traced_pool_windows(const TracedCall *call, const KernelTensor *x,
                                  const KernelTensor *y, unsigned first);
