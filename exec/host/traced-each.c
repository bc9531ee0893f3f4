/* exec/host/traced-each.c - calls of traced networks that work element by element. */
#include "exec/host/traced-private.h"
#include "exec/traced/each.h"
#include "kernels/host/activation.h"
#include "kernels/host/traced/tensor-rows.h"

/* ---- those that have a kernel of their own, of rows of floats ------------------------------- */

static bool are_rows_of_floats(const TracedEach *e, const KernelTensor *y) {
    bool all = y->dtype == KERNEL_FP32 && kernel_tensor_is_dense(y);
    for (unsigned i = 0; i < e->n_inputs; i++) {
        all &= e->inputs[i].dtype == KERNEL_FP32 && kernel_tensor_is_dense(&e->inputs[i]) &&
               kernel_tensor_count(&e->inputs[i]) == kernel_tensor_count(y);
    }
    return all;
}

static bool run_fast(KernelEach which, const TracedEach *e, const KernelTensor *y) {
    if (!are_rows_of_floats(e, y)) {
        return false;
    }
    size_t n = kernel_tensor_count(y);
    float *to = y->data;
    const float *a = e->inputs[0].data, *b = e->n_inputs > 1 ? e->inputs[1].data : NULL;
    bool is_tanh = e->shared[0] == TEXT_TANH;
    switch (which) {
    case KERNEL_EACH_GELU:
        (is_tanh ? kernel_gelu_tanh_forward_f32 : kernel_gelu_erf_forward_f32)(to, a, n);
        return true;
    case KERNEL_EACH_GELU_BACKWARD:
        (is_tanh ? kernel_gelu_tanh_backward_f32 : kernel_gelu_erf_backward_f32)(to, a, b, n);
        return true;
    case KERNEL_EACH_SILU:
        kernel_silu_forward_f32(to, a, n);
        return true;
    case KERNEL_EACH_SILU_BACKWARD:
        kernel_silu_backward_f32(to, a, b, n);
        return true;
    case KERNEL_EACH_TANH:
        kernel_tanh_forward_f32(to, a, n);
        return true;
    default:
        return false;
    }
}

bool host_run_each(TracedRun *r, const TracedRule *rule, GError **error) {
    TracedEach e = {0};
    traced_each_take(&e, r->call, rule->takes);
    KernelEach which = (KernelEach)rule->which;
    const KernelTensor *y = traced_made(r->call, 0);
    if (!run_fast(which, &e, y)) {
        kernel_tensor_each(which, y, e.inputs, e.n_inputs, e.shared[0], e.shared[1]);
    }
    return true;
}

/* 2 (x - target), and by their number where the loss is the mean. */
bool host_run_mse_backward(TracedRun *r, const TracedRule *rule, GError **error) {
    TracedEach e = {0};
    traced_each_take(&e, r->call, rule->takes);
    bool is_mean = traced_integer(r->call, 3) == 1;
    double factor = 2 / (is_mean ? (double)kernel_tensor_count(&e.inputs[1]) : 1);
    kernel_tensor_each(KERNEL_EACH_DIFFERENCE_TIMES, traced_made(r->call, 0), e.inputs, 3, factor,
                       0);
    return true;
}
