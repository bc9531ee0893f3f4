/* exec/cuda/ops/traced-private.h - what files of calls of traced networks share. Inside
 * exec/cuda/ops/traced*.c only.
 */
#pragma once

#include "exec/cuda/ops/operands.h"
#include "exec/traced/known.h"
#include "kernels/cuda/tensor.h"

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

typedef struct TracedGpuKernel TracedGpuKernel;
struct TracedGpuKernel {
    const char *name;
    void (*run)(TracedGpu *r, const TracedGpuKernel *kernel);
    const char *(*why_not)(const TracedCall *call);
    int which;
    const char *takes; /* as TracedRule's; of those that work element by element their own */
};

/* Each ends with a row without a name. */
extern const TracedGpuKernel traced_gpu_rows[], traced_gpu_products[], traced_gpu_places[],
    traced_gpu_windows[];

/* Launches, unless there has been a fault. */
#define TRACED_LAUNCH(r, call)                                                                     \
    do {                                                                                           \
        if (!(r)->fault) {                                                                         \
            (r)->fault = (call);                                                                   \
        }                                                                                          \
    } while (0)

static inline const TracedArg *gpu_arg(const TracedGpu *r, unsigned i) {
    return &r->call->args[i];
}
static inline bool gpu_is(const TracedGpu *r, unsigned i) {
    return i < r->call->n_args && r->call->args[i].of != TRACED_NOTHING;
}
static inline const KernelTensor *gpu_tensor(const TracedGpu *r, unsigned i) {
    return &r->call->args[i].tensor;
}
static inline const KernelTensor *gpu_made(const TracedGpu *r, unsigned i) {
    return &r->call->made[i].tensor;
}
static inline bool gpu_makes(const TracedGpu *r, unsigned i) {
    return i < r->call->n_made && r->call->made[i].of == TRACED_TENSOR &&
           kernel_tensor_count(gpu_made(r, i)) > 0;
}
static inline int64_t gpu_integer(const TracedGpu *r, unsigned i) {
    return r->call->args[i].integer;
}

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
