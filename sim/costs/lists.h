/* sim/costs/lists.h - ops over lists of tensors, which are several kernels on a GPU.
 *
 * PyTorch cuts each tensor of a list into chunks of 65536 elements, and a block of threads takes
 * one. A kernel has as many blocks and tensors as fit in what it may be handed; the rest is for
 * the next (aten/src/ATen/native/cuda/MultiTensorApply.cuh). So memory is not always busy: a block
 * goes from one turn of elements to the next no faster than memory answers, and those that found no
 * room beside the others run by themselves at a kernel's end.
 *
 * CPU ranks, and a kind that was measured by itself (a cluster's [kernels]), have one kernel.
 */
#pragma once

#include "models/cluster.h"
#include "plan/plan.h"

typedef struct {
    unsigned kernels; /* 0: the op is not over lists, or its lists are empty */
    double ns;        /* what they all take, with the gaps between them */
} SimListCost;

/* bytes: what all kernels of the op move. */
SimListCost sim_list_cost(const ModelCluster *cluster, const PlanRole *role, const PlanOp *op,
                          double bytes);
