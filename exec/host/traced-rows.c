/* exec/host/traced-rows.c - calls of traced networks that work on rows: norms, softmax, sums,
 * losses and tables. */
#include <math.h>

#include "exec/host/traced-private.h"
#include "exec/traced/rows.h"
#include "kernels/host/rows/embedding.h"
#include "kernels/host/rows/loss.h"
#include "kernels/host/rows/norm.h"
#include "kernels/host/traced/tensor-rows.h"
#include "kernels/host/traced/tensor-sum.h"

/* ---- softmax -------------------------------------------------------------------------------- */

typedef void Rows(float *y, const float *x, size_t rows, size_t width);
typedef void RowsBackward(float *dx, const float *dy, const float *y, size_t rows, size_t width);

bool host_run_softmax(TracedRun *r, const TracedRule *rule, GError **error) {
    static Rows *const rows[] = {kernel_softmax_forward_f32, kernel_log_softmax_forward_f32};
    int64_t side = traced_integer(r->call, 1);
    KernelTensor x = traced_turned(traced_tensor(r->call, 0), side),
                 y = traced_turned(traced_made(r->call, 0), side);
    size_t n = kernel_tensor_count(&x), width = traced_width(&x);
    rows[rule->which](traced_result(r, &y), traced_floats(r, &x), n / width, width);
    return true;
}

bool host_run_softmax_backward(TracedRun *r, const TracedRule *rule, GError **error) {
    static RowsBackward *const rows[] = {kernel_softmax_backward_f32,
                                         kernel_log_softmax_backward_f32};
    int64_t side = traced_integer(r->call, 2);
    KernelTensor dy = traced_turned(traced_tensor(r->call, 0), side),
                 y = traced_turned(traced_tensor(r->call, 1), side);
    KernelTensor dx = traced_turned(traced_made(r->call, 0), side);
    size_t n = kernel_tensor_count(&y), width = traced_width(&y);
    rows[rule->which](traced_result(r, &dx), traced_floats(r, &dy), traced_floats(r, &y), n / width,
                      width);
    return true;
}

/* ---- norms ---------------------------------------------------------------------------------- */

/* A number a row, whether it is asked for or not. */
static float *statistics(TracedRun *r, unsigned i, size_t rows) {
    return traced_makes(r->call, i) ? traced_result_of(r, i)
                                    : traced_scratch(r, rows * sizeof(float));
}

bool host_run_layer_norm(TracedRun *r, const TracedRule *rule, GError **error) {
    size_t width = traced_norm_width(r->call, 1),
           rows = kernel_tensor_count(traced_tensor(r->call, 0)) / width;
    kernel_layernorm_forward_f32(traced_result_of(r, 0), statistics(r, 1, rows),
                                 statistics(r, 2, rows), traced_floats_of(r, 0),
                                 traced_floats_of(r, 2), traced_floats_of(r, 3), rows, width,
                                 (float)traced_arg(r->call, 4)->number);
    return true;
}

bool host_run_layer_norm_backward(TracedRun *r, const TracedRule *rule, GError **error) {
    size_t width = traced_norm_width(r->call, 2),
           rows = kernel_tensor_count(traced_tensor(r->call, 1)) / width;
    kernel_layernorm_backward_f32(traced_result_of(r, 0), traced_result_of(r, 1),
                                  traced_result_of(r, 2), traced_floats_of(r, 0),
                                  traced_floats_of(r, 1), traced_floats_of(r, 3),
                                  traced_floats_of(r, 4), traced_floats_of(r, 5), rows, width);
    return true;
}

bool host_run_rms_norm(TracedRun *r, const TracedRule *rule, GError **error) {
    size_t width = traced_norm_width(r->call, 1),
           rows = kernel_tensor_count(traced_tensor(r->call, 0)) / width;
    kernel_rmsnorm_forward_f32(traced_result_of(r, 0), statistics(r, 1, rows),
                               traced_floats_of(r, 0), traced_floats_of(r, 2), rows, width,
                               traced_eps(r->call, 3, traced_tensor(r->call, 0)->dtype));
    return true;
}

bool host_run_rms_norm_backward(TracedRun *r, const TracedRule *rule, GError **error) {
    size_t width = traced_norm_width(r->call, 2),
           rows = kernel_tensor_count(traced_tensor(r->call, 1)) / width;
    kernel_rmsnorm_backward_f32(traced_result_of(r, 0), traced_result_of(r, 1),
                                traced_floats_of(r, 0), traced_floats_of(r, 1),
                                traced_floats_of(r, 3), traced_floats_of(r, 4), rows, width);
    return true;
}

/* ---- sums ----------------------------------------------------------------------------------- */

bool host_run_sum(TracedRun *r, const TracedRule *rule, GError **error) {
    const KernelTensor *x = traced_tensor(r->call, 0), *y = traced_made(r->call, 0);
    double n = (double)kernel_tensor_count(x) / (double)kernel_tensor_count(y);
    kernel_tensor_sum(y, x, traced_sides(r->call, 1, x->n_dims), rule->which ? 1 / n : 1);
    return true;
}

/* ---- losses --------------------------------------------------------------------------------- */

bool host_run_nll(TracedRun *r, const TracedRule *rule, GError **error) {
    const KernelTensor *x = traced_tensor(r->call, 0);
    return kernel_nll_loss_forward_f32(
               traced_result_of(r, 0), traced_result_of(r, 1), traced_floats(r, x),
               traced_integers(r, traced_tensor(r->call, 1)), traced_rows(x), traced_width(x),
               traced_integer(r->call, 4)) ||
           traced_bad_index(error, "the loss's targets");
}

bool host_run_nll_backward(TracedRun *r, const TracedRule *rule, GError **error) {
    const KernelTensor *x = traced_tensor(r->call, 1);
    return kernel_nll_loss_backward_f32(traced_result_of(r, 0), traced_floats_of(r, 0),
                                        traced_integers(r, traced_tensor(r->call, 2)),
                                        traced_floats_of(r, 6), traced_rows(x), traced_width(x),
                                        traced_integer(r->call, 5)) ||
           traced_bad_index(error, "the loss's targets");
}

bool host_run_mse(TracedRun *r, const TracedRule *rule, GError **error) {
    const KernelTensor *x = traced_tensor(r->call, 0);
    size_t n = kernel_tensor_count(x);
    KernelTensor squares = {
        .data = traced_scratch(r, n * sizeof(float)), .n_dims = x->n_dims, .dtype = KERNEL_FP32};
    size_t step = 1;
    for (unsigned i = x->n_dims; i-- > 0; step *= x->sizes[i]) {
        squares.sizes[i] = x->sizes[i];
        squares.strides[i] = step;
    }
    KernelTensor given[] = {*x, *traced_tensor(r->call, 1)};
    kernel_tensor_each(KERNEL_EACH_SQUARED_DIFFERENCE, &squares, given, 2, 0, 0);
    kernel_tensor_sum(traced_made(r->call, 0), &squares, (1u << x->n_dims) - 1,
                      traced_integer(r->call, 2) == 1 ? 1 / (double)n : 1);
    return true;
}

/* ---- tables --------------------------------------------------------------------------------- */

bool host_run_embedding(TracedRun *r, const TracedRule *rule, GError **error) {
    const KernelTensor *table = traced_tensor(r->call, 0), *index = traced_tensor(r->call, 1);
    return kernel_embedding_forward_f32(traced_result_of(r, 0), traced_floats(r, table),
                                        traced_integers(r, index), kernel_tensor_count(index),
                                        table->sizes[0], table->sizes[1]) ||
           traced_bad_index(error, "the index of a table");
}

bool host_run_embedding_backward(TracedRun *r, const TracedRule *rule, GError **error) {
    const KernelTensor *index = traced_tensor(r->call, 1), *made = traced_made(r->call, 0);
    float *gradient = traced_result_of(r, 0);
    size_t rows = made->sizes[0], width = made->sizes[1];
    if (!kernel_embedding_backward_f32(gradient, traced_floats_of(r, 0), traced_integers(r, index),
                                       kernel_tensor_count(index), rows, width)) {
        return traced_bad_index(error, "the index of a table");
    }
    int64_t padding = traced_integer(r->call, 3);
    for (size_t i = 0; padding >= 0 && (size_t)padding < rows && i < width; i++) {
        gradient[(size_t)padding * width + i] = 0;
    }
    return true;
}
