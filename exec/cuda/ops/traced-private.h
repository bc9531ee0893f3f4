/* exec/cuda/ops/traced-private.h - what files of calls of traced networks share. Inside
 * exec/cuda/ops/traced*.c only.
 */
#pragma once

#include "exec/cuda/ops/operands.h"
#include "exec/traced/known.h"
#include "kernels/cuda/traced/tensor.h"

/* A call that runs. Where a kernel wants numbers that lie otherwise than they do, they are copied
 * to the lane's room; results that it writes there are copied where they belong at the end. */
typedef struct {
    TracedCall *call;
    KernelCuda *kernels;
    char *room; /* NULL: none was needed yet */
    size_t used, room_bytes;
    KernelTensor to[12], from[12]; /* results that are copied */
    unsigned n_results;
    KernelCudaFault fault; /* the first; nothing is launched after it */
} TracedGpu;

/* One for each function that calls.def names. */
typedef void TracedGpuRunner(TracedGpu *r, const TracedRule *rule);
#define CALL(name, run, ...) TracedGpuRunner gpu_run_##run;
#include "exec/traced/calls.def"

/* What GPUs do not do that CPU ranks do; NULL: they do. Of calls that are known. */
TracedWhy gpu_nll_why_not, gpu_nll_backward_why_not, gpu_attention_why_not,
    gpu_efficient_backward_why_not, gpu_flash_backward_why_not;

/* Launches, unless there has been a fault. */
#define TRACED_LAUNCH(r, call)                                                                     \
    do {                                                                                           \
        if (!(r)->fault) {                                                                         \
            (r)->fault = (call);                                                                   \
        }                                                                                          \
    } while (0)

/* The dtype that kernels of rows and products compute a call in: that of a tensor, where it is one
 * of theirs, else fp32. */
KernelDtype gpu_dtype_of(const KernelTensor *t);
static inline KernelCudaType gpu_type(KernelDtype dtype) {
    return (KernelCudaType)dtype; /* the first three stand alike */
}

/* Row-major and of that dtype: the tensor itself, or a copy. */
const void *gpu_dense(TracedGpu *r, const KernelTensor *t, KernelDtype dtype);
const void *gpu_dense_of(TracedGpu *r, unsigned i, KernelDtype dtype); /* NULL: not given */
/* Where a result is to be written so. */
void *gpu_result(TracedGpu *r, const KernelTensor *t, KernelDtype dtype);
void *gpu_result_of(TracedGpu *r, unsigned i, KernelDtype dtype); /* NULL: not asked for */
/* Room of a tensor's size that nobody reads afterwards. */
void *gpu_room(TracedGpu *r, const KernelTensor *like, KernelDtype dtype);

void gpu_copy(TracedGpu *r, const KernelTensor *to, const KernelTensor *from);
void gpu_fill(TracedGpu *r, const KernelTensor *to, double number);
/* The same elements, dense, elsewhere. */
KernelTensor gpu_dense_like(const KernelTensor *t, const void *data, KernelDtype dtype);
