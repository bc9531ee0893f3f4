/* kernels/cuda/attention/attention-cudnn.h - whether cuDNN has a fused attention for a shape, asked
 * without a GPU.
 *
 * cuDNN can plan for a device that is only described. That shows, on any machine with the library,
 * that the graphs this room hands to it are ones it knows.
 */
#pragma once
#include "kernels/cuda/attention/attention.h"

#ifdef __cplusplus
extern "C" {
#endif

/* device: cuDNN's description of a device, in JSON. A fault says what cuDNN found wrong;
 * *ret_workspace_bytes is what the plan would take. */
KernelCudaFault kernel_cuda_cudnn_plan_for(const char *device, const KernelCudaAttention *shape,
                                           bool backward, size_t *ret_workspace_bytes);

#ifdef __cplusplus
}
#endif
