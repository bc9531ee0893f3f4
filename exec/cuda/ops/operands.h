/* exec/cuda/ops/operands.h - an op's operands in the words of kernels/cuda. */
#pragma once

#include "exec/cuda/ops/launch.h"
#include "exec/op-groups.h"
#include "kernels/cuda/attention/attention.h"

static inline KernelCudaType type_at(const ExecTask *t, PlanSlotNumber i) {
    return (KernelCudaType)operand_dtype(t, i); /* the first three stand alike */
}

/* That of the first operand, and in most ops of all. */
static inline KernelCudaType type_of_first(const ExecTask *t) {
    return type_at(t, (PlanSlotNumber)0);
}

/* The largest magnitude of each tensor of a list, to the list behind it. */
KernelCudaFault exec_cuda_largest_of_each(const ExecTask *task, KernelCuda *kernels);

/* The shape of an attention op of a sequence, whichever kind it is. How its operands lie, and what
 * else is its kind's own, is for the caller to add. q: the slot of the queries. */
KernelCudaAttention exec_cuda_attention_shape(const ExecTask *task, PlanSlotNumber q);

/* A part of exec_cuda_launch(): an op that is a kernel. */
KernelCudaFault exec_cuda_compute(const ExecTask *task, KernelCuda *kernels);
/* And parts of that: the groups of exec/op-groups.h, */
KernelCudaFault exec_cuda_attention(const ExecTask *task, KernelCuda *kernels);
KernelCudaFault exec_cuda_rotation(const ExecTask *task, KernelCuda *kernels);
KernelCudaFault exec_cuda_heads(const ExecTask *task, KernelCuda *kernels);
KernelCudaFault exec_cuda_masks(const ExecTask *task, KernelCuda *kernels);
KernelCudaFault exec_cuda_positions(const ExecTask *task, KernelCuda *kernels);
KernelCudaFault exec_cuda_layers(const ExecTask *task, KernelCuda *kernels);
KernelCudaFault exec_cuda_loss(const ExecTask *task, KernelCuda *kernels);
KernelCudaFault exec_cuda_activation(const ExecTask *task, KernelCuda *kernels);
KernelCudaFault exec_cuda_arithmetic(const ExecTask *task, KernelCuda *kernels);
KernelCudaFault exec_cuda_rows(const ExecTask *task, KernelCuda *kernels);
KernelCudaFault exec_cuda_pieces(const ExecTask *task, KernelCuda *kernels);
KernelCudaFault exec_cuda_routing(const ExecTask *task, KernelCuda *kernels);
KernelCudaFault exec_cuda_experts(const ExecTask *task, KernelCuda *kernels);
/* and those of plan/op/ops.def. */
KernelCudaFault exec_cuda_optimize(const ExecTask *task, KernelCuda *kernels);
KernelCudaFault exec_cuda_share(const ExecTask *task, KernelCuda *kernels);
KernelCudaFault exec_cuda_latent(const ExecTask *task, KernelCuda *kernels);
KernelCudaFault exec_cuda_ring(const ExecTask *task, KernelCuda *kernels);
KernelCudaFault exec_cuda_exchange(const ExecTask *task, KernelCuda *kernels);
KernelCudaFault exec_cuda_float8(const ExecTask *task, KernelCuda *kernels);
KernelCudaFault exec_cuda_four_bit(const ExecTask *task, KernelCuda *kernels);
KernelCudaFault exec_cuda_muon(const ExecTask *task, KernelCuda *kernels);
KernelCudaFault exec_cuda_eight_bit(const ExecTask *task, KernelCuda *kernels);

/* The loss of layers that ranks share, op by op, and as a compiler makes it: parts of
 * exec_cuda_share(). */
KernelCudaFault exec_cuda_shared_loss(const ExecTask *task, KernelCuda *kernels);
KernelCudaFault exec_cuda_shared_compiled_loss(const ExecTask *task, KernelCuda *kernels);
/* Rotary tables of a rank's tokens, which may be two parts of the sequences (ring.c). */
KernelCudaFault exec_cuda_tables(const ExecTask *task, KernelCuda *kernels);
