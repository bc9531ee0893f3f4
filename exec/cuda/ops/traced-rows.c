/* exec/cuda/ops/traced-rows.c - calls of traced networks that work on rows: norms, softmax, sums,
 * losses and tables. */
#include "exec/cuda/ops/traced-private.h"
#include "exec/traced/rows.h"
#include "kernels/cuda/rows/embedding.h"
#include "kernels/cuda/rows/loss.h"
#include "kernels/cuda/rows/norm.h"

/* ---- softmax -------------------------------------------------------------------------------- */

typedef KernelCudaFault Rows(KernelCuda *lane, void *y, const void *x, size_t rows, size_t width,
                             KernelCudaType type);
typedef KernelCudaFault RowsBackward(KernelCuda *lane, void *dx, const void *dy, const void *y,
                                     size_t rows, size_t width, KernelCudaType type);

void gpu_run_softmax(TracedGpu *r, const TracedRule *rule) {
    static Rows *const rows[] = {kernel_cuda_softmax_forward, kernel_cuda_log_softmax_forward};
    int64_t side = traced_integer(r->call, 1);
    KernelTensor x = traced_turned(traced_tensor(r->call, 0), side),
                 y = traced_turned(traced_made(r->call, 0), side);
    KernelDtype dtype = gpu_dtype_of(&y);
    size_t width = traced_width(&x), n = kernel_tensor_count(&x) / width;
    const void *from = gpu_dense(r, &x, dtype);
    void *to = gpu_result(r, &y, dtype);
    TRACED_LAUNCH(r, rows[rule->which](r->kernels, to, from, n, width, gpu_type(dtype)));
}

void gpu_run_softmax_backward(TracedGpu *r, const TracedRule *rule) {
    static RowsBackward *const rows[] = {kernel_cuda_softmax_backward,
                                         kernel_cuda_log_softmax_backward};
    int64_t side = traced_integer(r->call, 2);
    KernelTensor dy = traced_turned(traced_tensor(r->call, 0), side),
                 y = traced_turned(traced_tensor(r->call, 1), side);
    KernelTensor dx = traced_turned(traced_made(r->call, 0), side);
    KernelDtype dtype = gpu_dtype_of(&dy);
    size_t width = traced_width(&y), n = kernel_tensor_count(&y) / width;
    const void *given = gpu_dense(r, &dy, dtype), *made = gpu_dense(r, &y, dtype);
    void *to = gpu_result(r, &dx, dtype);
    TRACED_LAUNCH(r, rows[rule->which](r->kernels, to, given, made, n, width, gpu_type(dtype)));
}

/* ---- norms ---------------------------------------------------------------------------------- */

/* The norm over the sides that the argument `shape` lists. */
static KernelCudaNorm norm_of(const TracedGpu *r, const KernelTensor *x, unsigned shape,
                              float eps) {
    size_t width = traced_norm_width(r->call, shape);
    return (KernelCudaNorm){kernel_tensor_count(x) / width, width, eps, gpu_type(gpu_dtype_of(x))};
}

/* A number a row, whether it is asked for or not. */
static float *statistics(TracedGpu *r, unsigned i) {
    return traced_makes(r->call, i) ? gpu_result_of(r, i, KERNEL_FP32)
                                    : gpu_room(r, traced_tensor(r->call, 0), KERNEL_FP32);
}

void gpu_run_layer_norm(TracedGpu *r, const TracedRule *rule) {
    const KernelTensor *x = traced_tensor(r->call, 0);
    KernelDtype dtype = gpu_dtype_of(x);
    KernelCudaNorm norm = norm_of(r, x, 1, (float)traced_arg(r->call, 4)->number);
    const void *from = gpu_dense(r, x, dtype), *weight = gpu_dense_of(r, 2, dtype);
    const void *bias = gpu_dense_of(r, 3, dtype);
    void *y = gpu_result_of(r, 0, dtype);
    float *mean = statistics(r, 1), *rstd = statistics(r, 2);
    TRACED_LAUNCH(r, kernel_cuda_layernorm_forward(r->kernels, NULL, y, mean, rstd, from, NULL,
                                                   weight, bias, &norm));
}

void gpu_run_layer_norm_backward(TracedGpu *r, const TracedRule *rule) {
    const KernelTensor *x = traced_tensor(r->call, 1);
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

void gpu_run_rms_norm(TracedGpu *r, const TracedRule *rule) {
    const KernelTensor *x = traced_tensor(r->call, 0);
    KernelDtype dtype = gpu_dtype_of(x);
    KernelCudaNorm norm = norm_of(r, x, 1, traced_eps(r->call, 3, x->dtype));
    const void *from = gpu_dense(r, x, dtype), *weight = gpu_dense_of(r, 2, dtype);
    void *y = gpu_result_of(r, 0, dtype);
    float *rstd = statistics(r, 1);
    TRACED_LAUNCH(
        r, kernel_cuda_rmsnorm_forward(r->kernels, NULL, y, rstd, from, NULL, weight, &norm));
}

void gpu_run_rms_norm_backward(TracedGpu *r, const TracedRule *rule) {
    const KernelTensor *x = traced_tensor(r->call, 1);
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

void gpu_run_sum(TracedGpu *r, const TracedRule *rule) {
    const KernelTensor *x = traced_tensor(r->call, 0), *y = traced_made(r->call, 0);
    double n = (double)kernel_tensor_count(x) / (double)kernel_tensor_count(y);
    TRACED_LAUNCH(r, kernel_cuda_tensor_sum(r->kernels, y, x, traced_sides(r->call, 1, x->n_dims),
                                            rule->which ? 1 / n : 1));
}

/* ---- losses --------------------------------------------------------------------------------- */

void gpu_run_nll(TracedGpu *r, const TracedRule *rule) {
    const KernelTensor *x = traced_tensor(r->call, 0);
    KernelDtype dtype = gpu_dtype_of(x);
    const void *from = gpu_dense(r, x, dtype);
    const int64_t *target = gpu_dense_of(r, 1, KERNEL_INT64);
    void *loss = gpu_result_of(r, 0, dtype), *total = gpu_result_of(r, 1, dtype);
    TRACED_LAUNCH(r,
                  kernel_cuda_nll_loss_forward(r->kernels, loss, total, from, target,
                                               traced_rows(x), traced_width(x), gpu_type(dtype)));
}

void gpu_run_nll_backward(TracedGpu *r, const TracedRule *rule) {
    const KernelTensor *x = traced_tensor(r->call, 1);
    KernelDtype dtype = gpu_dtype_of(x);
    const void *given = gpu_dense_of(r, 0, dtype), *total = gpu_dense_of(r, 6, dtype);
    const int64_t *target = gpu_dense_of(r, 2, KERNEL_INT64);
    void *dx = gpu_result_of(r, 0, dtype);
    TRACED_LAUNCH(r,
                  kernel_cuda_nll_loss_backward(r->kernels, dx, given, target, total,
                                                traced_rows(x), traced_width(x), gpu_type(dtype)));
}

const char *gpu_nll_why_not(const TracedCall *call) {
    return traced_integer(call, 4) != -100 ? "with another ignored target than -100" : NULL;
}

const char *gpu_nll_backward_why_not(const TracedCall *call) {
    return traced_integer(call, 5) != -100 ? "with another ignored target than -100" : NULL;
}

void gpu_run_mse(TracedGpu *r, const TracedRule *rule) {
    const KernelTensor *x = traced_tensor(r->call, 0);
    KernelTensor squares = gpu_dense_like(x, gpu_room(r, x, KERNEL_FP32), KERNEL_FP32);
    KernelTensor given[] = {*x, *traced_tensor(r->call, 1)};
    double n = (double)kernel_tensor_count(x);
    TRACED_LAUNCH(r, kernel_cuda_tensor_each(r->kernels, KERNEL_EACH_SQUARED_DIFFERENCE, &squares,
                                             given, NULL, 2, 0, 0));
    TRACED_LAUNCH(r, kernel_cuda_tensor_sum(r->kernels, traced_made(r->call, 0), &squares,
                                            (1u << x->n_dims) - 1,
                                            traced_integer(r->call, 2) == 1 ? 1 / n : 1));
}

/* ---- tables --------------------------------------------------------------------------------- */

void gpu_run_embedding(TracedGpu *r, const TracedRule *rule) {
    const KernelTensor *table = traced_tensor(r->call, 0), *index = traced_tensor(r->call, 1);
    KernelDtype dtype = gpu_dtype_of(table);
    const void *from = gpu_dense(r, table, dtype);
    const int64_t *at = gpu_dense(r, index, KERNEL_INT64);
    void *y = gpu_result_of(r, 0, dtype);
    TRACED_LAUNCH(r,
                  kernel_cuda_embedding_forward(r->kernels, y, from, at, kernel_tensor_count(index),
                                                table->sizes[0], table->sizes[1], gpu_type(dtype)));
}

void gpu_run_embedding_backward(TracedGpu *r, const TracedRule *rule) {
    const KernelTensor *index = traced_tensor(r->call, 1), *made = traced_made(r->call, 0);
    KernelDtype dtype = gpu_dtype_of(made);
    size_t rows = made->sizes[0], width = made->sizes[1];
    const void *dy = gpu_dense_of(r, 0, dtype);
    const int64_t *at = gpu_dense(r, index, KERNEL_INT64);
    char *dw = gpu_result_of(r, 0, dtype);
    TRACED_LAUNCH(r,
                  kernel_cuda_embedding_backward(r->kernels, dw, dy, at, kernel_tensor_count(index),
                                                 rows, width, gpu_type(dtype)));
    int64_t padding = traced_integer(r->call, 3);
    if (padding >= 0 && (size_t)padding < rows) {
        KernelTensor row = {.data = dw + (size_t)padding * width * kernel_dtype_bytes(dtype),
                            .dtype = dtype,
                            .n_dims = 1,
                            .sizes = {width},
                            .strides = {1}};
        gpu_fill(r, &row, 0);
    }
}
