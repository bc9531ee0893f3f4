/* exec/cuda/ops/operands.h - an op's operands in the words of kernels/cuda. */
#pragma once

#include "exec/cuda/ops/launch.h"

static inline KernelCudaType type_at(const ExecTask *t, unsigned i) {
    return (KernelCudaType)operand_dtype(t, i); /* the first three stand alike */
}

/* The largest magnitude of each tensor of a list, to the list behind it. */
KernelCudaFault exec_cuda_largest_of_each(const ExecTask *task, KernelCuda *kernels);

/* Parts of exec_cuda_launch(): an op that is a kernel; and of that, ops over lists of tensors,
 * copies between parameters and what ranks hold of them, ops of layers that ranks share, of
 * experts, of such that ranks share, of latent attention, of sequences that ranks share, of layers
 * in float8, of Muon; and rotary tables of a rank's tokens. */
KernelCudaFault exec_cuda_compute(const ExecTask *task, KernelCuda *kernels);
KernelCudaFault exec_cuda_share(const ExecTask *task, KernelCuda *kernels);
KernelCudaFault exec_cuda_experts(const ExecTask *task, KernelCuda *kernels);
KernelCudaFault exec_cuda_exchange(const ExecTask *task, KernelCuda *kernels);
KernelCudaFault exec_cuda_latent(const ExecTask *task, KernelCuda *kernels);
KernelCudaFault exec_cuda_float8(const ExecTask *task, KernelCuda *kernels);
KernelCudaFault exec_cuda_muon(const ExecTask *task, KernelCuda *kernels);
KernelCudaFault exec_cuda_ring(const ExecTask *task, KernelCuda *kernels);
KernelCudaFault exec_cuda_tables(const ExecTask *task, KernelCuda *kernels);
KernelCudaFault exec_cuda_optimize(const ExecTask *task, KernelCuda *kernels);
KernelCudaFault exec_cuda_move(const ExecTask *task, KernelCuda *kernels);
