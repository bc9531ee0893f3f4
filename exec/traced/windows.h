/* exec/traced/windows.h - how calls of traced networks say what they look at through windows.
 */
#pragma once

#include "exec/traced/call.h"
#include "kernels/windows.h"

/* Of the call whose made or given tensor is y, of x and a weight. first: where its arguments begin
 * that say how windows move: stride, padding, dilation. */
KernelWindows traced_convolution_windows(const TracedCall *call, const KernelTensor *x,
                                         const KernelTensor *weight, const KernelTensor *y,
                                         unsigned first, unsigned groups);
/* Of a pool of x that makes y. first: where its arguments begin, kernel_size the first of them. */
KernelWindows traced_pool_windows(const TracedCall *call, const KernelTensor *x,
                                  const KernelTensor *y, unsigned first);
