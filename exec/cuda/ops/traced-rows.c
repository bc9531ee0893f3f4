/* exec/cuda/ops/traced-rows.c - calls of traced networks that work on rows: norms, softmax, sums,
 * losses and tables. */
#include <float.h>

#include "exec/cuda/ops/traced-private.h"
#include "kernels/cuda/embedding.h"
#include "kernels/cuda/loss.h"
#include "kernels/cuda/norm.h"

/* ---- softmax -------------------------------------------------------------------------------- */

typedef KernelCudaFault Rows(KernelCuda *lane, void *y, const void *x, size_t rows, size_t width,
                             KernelCudaType type);
typedef KernelCudaFault RowsBackward(KernelCuda *lane, void *dx, const void *dy, const void *y,
                                     size_t rows, size_t width, KernelCudaType type);

/* With the side that is normalized as the last. */
static KernelTensor turned(const KernelTensor *t, int64_t side) {
    return t->n_dims ? kernel_tensor_with_last(t, traced_side(side, t->n_dims)) : *t;
}

static size_t width_of(const KernelTensor *t) {
    return t->n_dims ? t->sizes[t->n_dims - 1] : 1;
}

static void run_softmax(TracedGpu *r, const TracedGpuKernel *kernel) {
    static Rows *const rows[] = {kernel_cuda_softmax_forward, kernel_cuda_log_softmax_forward};
    int64_t side = gpu_integer(r, 1);
    KernelTensor x = turned(gpu_tensor(r, 0), side), y = turned(gpu_made(r, 0), side);
    KernelDtype dtype = gpu_dtype_of(&y);
    size_t width = width_of(&x), n = kernel_tensor_count(&x) / width;
    const void *from = gpu_dense(r, &x, dtype);
    void *to = gpu_result(r, &y, dtype);
    TRACED_LAUNCH(r, rows[kernel->which](r->kernels, to, from, n, width, gpu_type(dtype)));
}

static void run_softmax_backward(TracedGpu *r, const TracedGpuKernel *kernel) {
    static RowsBackward *const rows[] = {kernel_cuda_softmax_backward,
                                         kernel_cuda_log_softmax_backward};
    int64_t side = gpu_integer(r, 2);
    KernelTensor dy = turned(gpu_tensor(r, 0), side), y = turned(gpu_tensor(r, 1), side);
    KernelTensor dx = turned(gpu_made(r, 0), side);
    KernelDtype dtype = gpu_dtype_of(&dy);
    size_t width = width_of(&y), n = kernel_tensor_count(&y) / width;
    const void *given = gpu_dense(r, &dy, dtype), *made = gpu_dense(r, &y, dtype);
    void *to = gpu_result(r, &dx, dtype);
    TRACED_LAUNCH(r, rows[kernel->which](r->kernels, to, given, made, n, width, gpu_type(dtype)));
}

/* ---- norms ---------------------------------------------------------------------------------- */

/* Of the sides that the argument `shape` lists. */
static KernelCudaNorm norm_of(const TracedGpu *r, const KernelTensor *x, unsigned shape,
                              float eps) {
    const TracedArg *list = gpu_arg(r, shape);
    size_t width = 1;
    for (unsigned i = 0; i < list->n; i++) {
        width *= (size_t)traced_item(r->call, list, i)->integer;
    }
    return (KernelCudaNorm){kernel_tensor_count(x) / width, width, eps, gpu_type(gpu_dtype_of(x))};
}

/* A number a row, whether it is asked for or not. */
static float *statistics(TracedGpu *r, unsigned i) {
    return gpu_makes(r, i) ? gpu_result_of(r, i, KERNEL_FP32)
                           : gpu_room(r, gpu_tensor(r, 0), KERNEL_FP32);
}

static void run_layer_norm(TracedGpu *r, const TracedGpuKernel *kernel) {
    const KernelTensor *x = gpu_tensor(r, 0);
    KernelDtype dtype = gpu_dtype_of(x);
    KernelCudaNorm norm = norm_of(r, x, 1, (float)gpu_arg(r, 4)->number);
    const void *from = gpu_dense(r, x, dtype), *weight = gpu_dense_of(r, 2, dtype);
    const void *bias = gpu_dense_of(r, 3, dtype);
    void *y = gpu_result_of(r, 0, dtype);
    float *mean = statistics(r, 1), *rstd = statistics(r, 2);
    TRACED_LAUNCH(r, kernel_cuda_layernorm_forward(r->kernels, NULL, y, mean, rstd, from, NULL,
                                                   weight, bias, &norm));
}

static void run_layer_norm_backward(TracedGpu *r, const TracedGpuKernel *kernel) {
    const KernelTensor *x = gpu_tensor(r, 1);
    KernelDtype dtype = gpu_dtype_of(x);
    KernelCudaNorm norm = norm_of(r, x, 2, 0);
    const void *dy = gpu_dense_of(r, 0, dtype), *from = gpu_dense(r, x, dtype);
    const float *mean = gpu_dense_of(r, 3, KERNEL_FP32), *rstd = gpu_dense_of(r, 4, KERNEL_FP32);
    const void *weight = gpu_dense_of(r, 5, dtype);
    void *dx = gpu_result_of(r, 0, dtype), *dw = gpu_result_of(r, 1, dtype);
    void *db = gpu_result_of(r, 2, dtype);
    TRACED_LAUNCH(r, kernel_cuda_layernorm_backward(r->kernels, dx, dw, db, NULL, dy, from, mean,
                                                    rstd, weight, &norm));
}

/* Without an eps it is that of the dtype. */
static float eps_of(const TracedGpu *r, unsigned i, KernelDtype dtype) {
    double own = dtype == KERNEL_BF16 ? 0x1p-7 : dtype == KERNEL_FP16 ? 0x1p-10 : FLT_EPSILON;
    return (float)(gpu_is(r, i) ? gpu_arg(r, i)->number : own);
}

static void run_rms_norm(TracedGpu *r, const TracedGpuKernel *kernel) {
    const KernelTensor *x = gpu_tensor(r, 0);
    KernelDtype dtype = gpu_dtype_of(x);
    KernelCudaNorm norm = norm_of(r, x, 1, eps_of(r, 3, x->dtype));
    const void *from = gpu_dense(r, x, dtype), *weight = gpu_dense_of(r, 2, dtype);
    void *y = gpu_result_of(r, 0, dtype);
    float *rstd = statistics(r, 1);
    TRACED_LAUNCH(
        r, kernel_cuda_rmsnorm_forward(r->kernels, NULL, y, rstd, from, NULL, weight, &norm));
}

static void run_rms_norm_backward(TracedGpu *r, const TracedGpuKernel *kernel) {
    const KernelTensor *x = gpu_tensor(r, 1);
    KernelDtype dtype = gpu_dtype_of(x);
    KernelCudaNorm norm = norm_of(r, x, 2, 0);
    const void *dy = gpu_dense_of(r, 0, dtype), *from = gpu_dense(r, x, dtype);
    const float *rstd = gpu_dense_of(r, 3, KERNEL_FP32);
    const void *weight = gpu_dense_of(r, 4, dtype);
    void *dx = gpu_result_of(r, 0, dtype), *dw = gpu_result_of(r, 1, dtype);
    TRACED_LAUNCH(
        r, kernel_cuda_rmsnorm_backward(r->kernels, dx, dw, NULL, dy, from, rstd, weight, &norm));
}

/* ---- sums ----------------------------------------------------------------------------------- */

/* Bits; without a list all of them. */
static unsigned sides_of(const TracedGpu *r, unsigned list, unsigned n_dims) {
    const TracedArg *arg = list < r->call->n_args ? gpu_arg(r, list) : NULL;
    if (!arg || arg->of != TRACED_LIST || !arg->n) {
        return (1u << n_dims) - 1;
    }
    unsigned sides = 0;
    for (unsigned i = 0; i < arg->n; i++) {
        sides |= 1u << traced_side(traced_item(r->call, arg, i)->integer, n_dims);
    }
    return sides;
}

static void run_sum(TracedGpu *r, const TracedGpuKernel *kernel) {
    const KernelTensor *x = gpu_tensor(r, 0), *y = gpu_made(r, 0);
    double n = (double)kernel_tensor_count(x) / (double)kernel_tensor_count(y);
    TRACED_LAUNCH(r, kernel_cuda_tensor_sum(r->kernels, y, x, sides_of(r, 1, x->n_dims),
                                            kernel->which ? 1 / n : 1));
}

/* ---- losses --------------------------------------------------------------------------------- */

static size_t rows_of(const KernelTensor *t) {
    return t->n_dims > 1 ? t->sizes[0] : 1;
}

static void run_nll(TracedGpu *r, const TracedGpuKernel *kernel) {
    const KernelTensor *x = gpu_tensor(r, 0);
    KernelDtype dtype = gpu_dtype_of(x);
    const void *from = gpu_dense(r, x, dtype);
    const int64_t *target = gpu_dense_of(r, 1, KERNEL_INT64);
    void *loss = gpu_result_of(r, 0, dtype), *total = gpu_result_of(r, 1, dtype);
    TRACED_LAUNCH(r, kernel_cuda_nll_loss_forward(r->kernels, loss, total, from, target, rows_of(x),
                                                  width_of(x), gpu_type(dtype)));
}

static void run_nll_backward(TracedGpu *r, const TracedGpuKernel *kernel) {
    const KernelTensor *x = gpu_tensor(r, 1);
    KernelDtype dtype = gpu_dtype_of(x);
    const void *given = gpu_dense_of(r, 0, dtype), *total = gpu_dense_of(r, 6, dtype);
    const int64_t *target = gpu_dense_of(r, 2, KERNEL_INT64);
    void *dx = gpu_result_of(r, 0, dtype);
    TRACED_LAUNCH(r, kernel_cuda_nll_loss_backward(r->kernels, dx, given, target, total, rows_of(x),
                                                   width_of(x), gpu_type(dtype)));
}

static const char *nll_unless(const TracedCall *call, unsigned ignored, const char *other) {
    return other                                 ? other
           : call->args[ignored].integer != -100 ? "with another ignored target than -100"
                                                 : NULL;
}

static const char *nll_why_not(const TracedCall *call) {
    return nll_unless(call, 4, traced_nll_why_not(call));
}

static const char *nll_backward_why_not(const TracedCall *call) {
    return nll_unless(call, 5, traced_nll_backward_why_not(call));
}

static void run_mse(TracedGpu *r, const TracedGpuKernel *kernel) {
    const KernelTensor *x = gpu_tensor(r, 0);
    KernelTensor squares = gpu_dense_like(x, gpu_room(r, x, KERNEL_FP32), KERNEL_FP32);
    KernelTensor given[] = {*x, *gpu_tensor(r, 1)};
    double n = (double)kernel_tensor_count(x);
    TRACED_LAUNCH(r, kernel_cuda_tensor_each(r->kernels, KERNEL_EACH_SQUARED_DIFFERENCE, &squares,
                                             given, NULL, 2, 0, 0));
    TRACED_LAUNCH(r, kernel_cuda_tensor_sum(r->kernels, gpu_made(r, 0), &squares,
                                            (1u << x->n_dims) - 1,
                                            gpu_integer(r, 2) == 1 ? 1 / n : 1));
}

/* ---- tables --------------------------------------------------------------------------------- */

static void run_embedding(TracedGpu *r, const TracedGpuKernel *kernel) {
    const KernelTensor *table = gpu_tensor(r, 0), *index = gpu_tensor(r, 1);
    KernelDtype dtype = gpu_dtype_of(table);
    const void *from = gpu_dense(r, table, dtype);
    const int64_t *at = gpu_dense(r, index, KERNEL_INT64);
    void *y = gpu_result_of(r, 0, dtype);
    TRACED_LAUNCH(r,
                  kernel_cuda_embedding_forward(r->kernels, y, from, at, kernel_tensor_count(index),
                                                table->sizes[0], table->sizes[1], gpu_type(dtype)));
}

static void run_embedding_backward(TracedGpu *r, const TracedGpuKernel *kernel) {
    const KernelTensor *index = gpu_tensor(r, 1), *made = gpu_made(r, 0);
    KernelDtype dtype = gpu_dtype_of(made);
    size_t rows = made->sizes[0], width = made->sizes[1];
    const void *dy = gpu_dense_of(r, 0, dtype);
    const int64_t *at = gpu_dense(r, index, KERNEL_INT64);
    char *dw = gpu_result_of(r, 0, dtype);
    TRACED_LAUNCH(r,
                  kernel_cuda_embedding_backward(r->kernels, dw, dy, at, kernel_tensor_count(index),
                                                 rows, width, gpu_type(dtype)));
    int64_t padding = gpu_integer(r, 3);
    if (padding >= 0 && (size_t)padding < rows) {
        KernelTensor row = {.data = dw + (size_t)padding * width * kernel_dtype_bytes(dtype),
                            .dtype = dtype,
                            .n_dims = 1,
                            .sizes = {width},
                            .strides = {1}};
        gpu_fill(r, &row, 0);
    }
}

const TracedGpuKernel traced_gpu_rows[] = {
    {"_softmax", run_softmax, NULL, 0, "tn"},
    {"_log_softmax", run_softmax, NULL, 1, "tn"},
    {"_softmax_backward_data", run_softmax_backward, NULL, 0, "ttn"},
    {"_log_softmax_backward_data", run_softmax_backward, NULL, 1, "ttn"},
    {"native_layer_norm", run_layer_norm, NULL, 0, "tl??n"},
    {"native_layer_norm_backward", run_layer_norm_backward, NULL, 0, "ttltt??"},
    {"_fused_rms_norm", run_rms_norm, NULL, 0, "tl?."},
    {"_fused_rms_norm_backward", run_rms_norm_backward, NULL, 0, "ttlt?"},
    {"sum", run_sum, NULL, 0, "t"},
    {"sum.dim_IntList", run_sum, NULL, 0, "t."},
    {"mean", run_sum, NULL, 1, "t"},
    {"mean.dim", run_sum, NULL, 1, "t."},
    {"nll_loss_forward", run_nll, nll_why_not, 0, "2t.nn"},
    {"nll_loss_backward", run_nll_backward, nll_backward_why_not, 0, "t2t.nnt"},
    {"mse_loss", run_mse, traced_mse_why_not, 0, "ttn"},
    {"embedding", run_embedding, NULL, 0, "2t"},
    {"embedding_dense_backward", run_embedding_backward, traced_embedding_backward_why_not, 0,
     "ttnnn"},
    {0},
};
