/* exec/host/traced-rows.c - calls of traced networks that work on rows: norms, softmax, sums,
 * losses and tables. */
#include <float.h>
#include <math.h>

#include "exec/host/traced-private.h"
#include "exec/traced/known.h"
#include "kernels/host/embedding.h"
#include "kernels/host/loss.h"
#include "kernels/host/norm.h"
#include "kernels/host/tensor-rows.h"
#include "kernels/host/tensor-sum.h"

/* ---- softmax -------------------------------------------------------------------------------- */

typedef void Rows(float *y, const float *x, size_t rows, size_t width);
typedef void RowsBackward(float *dx, const float *dy, const float *y, size_t rows, size_t width);

/* With the side that is normalized as the last. */
static KernelTensor turned(const KernelTensor *t, int64_t side) {
    return t->n_dims ? kernel_tensor_with_last(t, traced_side(side, t->n_dims)) : *t;
}

static size_t width_of(const KernelTensor *t) {
    return t->n_dims ? t->sizes[t->n_dims - 1] : 1;
}

static bool run_softmax(TracedRun *r, const TracedKernel *kernel, GError **error) {
    static Rows *const rows[] = {kernel_softmax_forward_f32, kernel_log_softmax_forward_f32};
    int64_t side = traced_integer(r, 1);
    KernelTensor x = turned(traced_tensor(r, 0), side), y = turned(traced_made(r, 0), side);
    size_t n = kernel_tensor_count(&x), width = width_of(&x);
    rows[kernel->which](traced_result(r, &y), traced_floats(r, &x), n / width, width);
    return true;
}

static bool run_softmax_backward(TracedRun *r, const TracedKernel *kernel, GError **error) {
    static RowsBackward *const rows[] = {kernel_softmax_backward_f32,
                                         kernel_log_softmax_backward_f32};
    int64_t side = traced_integer(r, 2);
    KernelTensor dy = turned(traced_tensor(r, 0), side), y = turned(traced_tensor(r, 1), side);
    KernelTensor dx = turned(traced_made(r, 0), side);
    size_t n = kernel_tensor_count(&y), width = width_of(&y);
    rows[kernel->which](traced_result(r, &dx), traced_floats(r, &dy), traced_floats(r, &y),
                        n / width, width);
    return true;
}

/* ---- norms ---------------------------------------------------------------------------------- */

static size_t width_of_norm(const TracedRun *r, unsigned shape) {
    size_t width = 1;
    for (unsigned i = 0; i < traced_arg(r, shape)->n; i++) {
        width *= (size_t)traced_item(r->call, traced_arg(r, shape), i)->integer;
    }
    return width;
}

static bool run_layer_norm(TracedRun *r, const TracedKernel *kernel, GError **error) {
    size_t width = width_of_norm(r, 1), rows = kernel_tensor_count(traced_tensor(r, 0)) / width;
    kernel_layernorm_forward_f32(traced_result_of(r, 0), traced_result_of(r, 1),
                                 traced_result_of(r, 2), traced_floats_of(r, 0),
                                 traced_floats_of(r, 2), traced_floats_of(r, 3), rows, width,
                                 (float)traced_arg(r, 4)->number);
    return true;
}

static bool run_layer_norm_backward(TracedRun *r, const TracedKernel *kernel, GError **error) {
    size_t width = width_of_norm(r, 2), rows = kernel_tensor_count(traced_tensor(r, 1)) / width;
    kernel_layernorm_backward_f32(traced_result_of(r, 0), traced_result_of(r, 1),
                                  traced_result_of(r, 2), traced_floats_of(r, 0),
                                  traced_floats_of(r, 1), traced_floats_of(r, 3),
                                  traced_floats_of(r, 4), traced_floats_of(r, 5), rows, width);
    return true;
}

/* Without an eps it is that of the dtype. */
static float eps_of(const TracedRun *r, unsigned i, KernelDtype dtype) {
    double own = dtype == KERNEL_BF16 ? 0x1p-7 : dtype == KERNEL_FP16 ? 0x1p-10 : FLT_EPSILON;
    return (float)(traced_is(r, i) ? traced_arg(r, i)->number : own);
}

static bool run_rms_norm(TracedRun *r, const TracedKernel *kernel, GError **error) {
    size_t width = width_of_norm(r, 1), rows = kernel_tensor_count(traced_tensor(r, 0)) / width;
    kernel_rmsnorm_forward_f32(traced_result_of(r, 0), traced_result_of(r, 1),
                               traced_floats_of(r, 0), traced_floats_of(r, 2), rows, width,
                               eps_of(r, 3, traced_tensor(r, 0)->dtype));
    return true;
}

static bool run_rms_norm_backward(TracedRun *r, const TracedKernel *kernel, GError **error) {
    size_t width = width_of_norm(r, 2), rows = kernel_tensor_count(traced_tensor(r, 1)) / width;
    kernel_rmsnorm_backward_f32(traced_result_of(r, 0), traced_result_of(r, 1),
                                traced_floats_of(r, 0), traced_floats_of(r, 1),
                                traced_floats_of(r, 3), traced_floats_of(r, 4), rows, width);
    return true;
}

/* ---- sums ----------------------------------------------------------------------------------- */

/* Bits; without a list all of them. */
static unsigned sides_of(const TracedRun *r, unsigned list, unsigned n_dims) {
    const TracedArg *arg = list < r->call->n_args ? traced_arg(r, list) : NULL;
    if (!arg || arg->of != TRACED_LIST || !arg->n) {
        return (1u << n_dims) - 1;
    }
    unsigned sides = 0;
    for (unsigned i = 0; i < arg->n; i++) {
        sides |= 1u << traced_side(traced_item(r->call, arg, i)->integer, n_dims);
    }
    return sides;
}

static bool run_sum(TracedRun *r, const TracedKernel *kernel, GError **error) {
    const KernelTensor *x = traced_tensor(r, 0), *y = traced_made(r, 0);
    double n = (double)kernel_tensor_count(x) / (double)kernel_tensor_count(y);
    kernel_tensor_sum(y, x, sides_of(r, 1, x->n_dims), kernel->which ? 1 / n : 1);
    return true;
}

/* ---- losses --------------------------------------------------------------------------------- */

static size_t rows_of(const KernelTensor *t) {
    return t->n_dims > 1 ? t->sizes[0] : 1;
}

static bool run_nll(TracedRun *r, const TracedKernel *kernel, GError **error) {
    const KernelTensor *x = traced_tensor(r, 0);
    return kernel_nll_loss_forward_f32(traced_result_of(r, 0), traced_result_of(r, 1),
                                       traced_floats(r, x), traced_integers(r, traced_tensor(r, 1)),
                                       rows_of(x), width_of(x), traced_integer(r, 4)) ||
           traced_bad_index(error, "the loss's targets");
}

static bool run_nll_backward(TracedRun *r, const TracedKernel *kernel, GError **error) {
    const KernelTensor *x = traced_tensor(r, 1);
    return kernel_nll_loss_backward_f32(traced_result_of(r, 0), traced_floats_of(r, 0),
                                        traced_integers(r, traced_tensor(r, 2)),
                                        traced_floats_of(r, 6), rows_of(x), width_of(x),
                                        traced_integer(r, 5)) ||
           traced_bad_index(error, "the loss's targets");
}

static bool run_mse(TracedRun *r, const TracedKernel *kernel, GError **error) {
    const KernelTensor *x = traced_tensor(r, 0);
    size_t n = kernel_tensor_count(x);
    KernelTensor squares = {
        .data = traced_scratch(r, n * sizeof(float)), .n_dims = x->n_dims, .dtype = KERNEL_FP32};
    size_t step = 1;
    for (unsigned i = x->n_dims; i-- > 0; step *= x->sizes[i]) {
        squares.sizes[i] = x->sizes[i];
        squares.strides[i] = step;
    }
    KernelTensor given[] = {*x, *traced_tensor(r, 1)};
    kernel_tensor_each(KERNEL_EACH_SQUARED_DIFFERENCE, &squares, given, 2, 0, 0);
    kernel_tensor_sum(traced_made(r, 0), &squares, (1u << x->n_dims) - 1,
                      traced_integer(r, 2) == 1 ? 1 / (double)n : 1);
    return true;
}

/* ---- tables --------------------------------------------------------------------------------- */

static bool run_embedding(TracedRun *r, const TracedKernel *kernel, GError **error) {
    const KernelTensor *table = traced_tensor(r, 0), *index = traced_tensor(r, 1);
    return kernel_embedding_forward_f32(traced_result_of(r, 0), traced_floats(r, table),
                                        traced_integers(r, index), kernel_tensor_count(index),
                                        table->sizes[0], table->sizes[1]) ||
           traced_bad_index(error, "the index of a table");
}

static bool run_embedding_backward(TracedRun *r, const TracedKernel *kernel, GError **error) {
    const KernelTensor *index = traced_tensor(r, 1), *made = traced_made(r, 0);
    float *gradient = traced_result_of(r, 0);
    size_t rows = made->sizes[0], width = made->sizes[1];
    if (!kernel_embedding_backward_f32(gradient, traced_floats_of(r, 0), traced_integers(r, index),
                                       kernel_tensor_count(index), rows, width)) {
        return traced_bad_index(error, "the index of a table");
    }
    int64_t padding = traced_integer(r, 3);
    for (size_t i = 0; padding >= 0 && (size_t)padding < rows && i < width; i++) {
        gradient[(size_t)padding * width + i] = 0;
    }
    return true;
}

const TracedKernel traced_rows_kernels[] = {
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
    {"nll_loss_forward", run_nll, traced_nll_why_not, 0, "2t.nn"},
    {"nll_loss_backward", run_nll_backward, traced_nll_backward_why_not, 0, "t2t.nnt"},
    {"mse_loss", run_mse, traced_mse_why_not, 0, "ttn"},
    {"embedding", run_embedding, NULL, 0, "2t"},
    {"embedding_dense_backward", run_embedding_backward, traced_embedding_backward_why_not, 0,
     "ttnnn"},
    {0},
};
