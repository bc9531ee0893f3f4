/* exec/host/traced-each.c - calls of traced networks that work element by element. */
#include <math.h>
#include <string.h>

#include "exec/host/traced-private.h"
#include "kernels/host/activation.h"
#include "kernels/host/tensor-rows.h"

typedef struct {
    KernelTensor inputs[KERNEL_EACH_INPUTS];
    double numbers[KERNEL_EACH_INPUTS]; /* that are given instead of tensors */
    unsigned n_inputs, n_shared;
    double shared[2];
} Each;

static void take_number(Each *e, double number) {
    e->numbers[e->n_inputs] = number;
    e->inputs[e->n_inputs] = (KernelTensor){.data = &e->numbers[e->n_inputs], .dtype = KERNEL_FP64};
    e->n_inputs++;
}

static double number_of_text(const TracedArg *arg) {
    static const char *const texts[] = {
        [TEXT_TANH] = "tanh", [TEXT_FLOOR] = "floor", [TEXT_TRUNC] = "trunc"};
    for (unsigned i = TEXT_TANH; arg->of == TRACED_TEXT && i < G_N_ELEMENTS(texts); i++) {
        if (g_str_equal(texts[i], arg->text)) {
            return i;
        }
    }
    return TEXT_NONE;
}

/* A letter for each argument: t a tensor or a number, by which elements are computed; n a number
 * and s a text that all share; < and > bounds, which may be missing; - what tells nothing. 1 stands
 * for no argument, and is a number that all share. */
static void take(Each *e, const TracedRun *r, const char *takes) {
    for (unsigned i = 0; *takes; takes++) {
        static const TracedArg none;
        bool is_there = *takes != '1' && i < r->call->n_args;
        const TracedArg *arg = is_there ? traced_arg(r, i) : &none;
        i += *takes != '1';
        if (*takes == '1') {
            e->shared[e->n_shared++] = 1;
        } else if (*takes == 'n') {
            e->shared[e->n_shared++] = arg->number;
        } else if (*takes == 's') {
            e->shared[e->n_shared++] = number_of_text(arg);
        } else if (*takes != '-' && arg->of == TRACED_TENSOR) {
            e->inputs[e->n_inputs++] = arg->tensor;
        } else if (*takes != '-') {
            bool is_open = arg->of == TRACED_NOTHING;
            take_number(e, *takes == '<' && is_open   ? -INFINITY
                           : *takes == '>' && is_open ? INFINITY
                                                      : arg->number);
        }
    }
}

/* ---- those that have a kernel of their own, of rows of floats ------------------------------- */

static bool are_rows_of_floats(const Each *e, const KernelTensor *y) {
    bool all = y->dtype == KERNEL_FP32 && kernel_tensor_is_dense(y);
    for (unsigned i = 0; i < e->n_inputs; i++) {
        all &= e->inputs[i].dtype == KERNEL_FP32 && kernel_tensor_is_dense(&e->inputs[i]) &&
               kernel_tensor_count(&e->inputs[i]) == kernel_tensor_count(y);
    }
    return all;
}

static bool run_fast(KernelEach which, const Each *e, const KernelTensor *y) {
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

static bool run_each(TracedRun *r, const TracedKernel *kernel, GError **error) {
    Each e = {0};
    take(&e, r, kernel->takes);
    KernelEach which = (KernelEach)kernel->which;
    const KernelTensor *y = traced_made(r, 0);
    if (!run_fast(which, &e, y)) {
        kernel_tensor_each(which, y, e.inputs, e.n_inputs, e.shared[0], e.shared[1]);
    }
    return true;
}

/* 2 (x - target), and by their number where the loss is the mean. */
static bool run_mse_backward(TracedRun *r, const TracedKernel *kernel, GError **error) {
    Each e = {0};
    take(&e, r, kernel->takes);
    bool is_mean = traced_integer(r, 3) == 1;
    double factor = 2 / (is_mean ? (double)kernel_tensor_count(&e.inputs[1]) : 1);
    kernel_tensor_each(KERNEL_EACH_DIFFERENCE_TIMES, traced_made(r, 0), e.inputs, 3, factor, 0);
    return true;
}

/* ---- what is not known ---------------------------------------------------------------------- */

static const char shapes[] = "with shapes that do not go together";

static bool widens_to(const KernelTensor *x, const KernelTensor *y) {
    bool all = x->n_dims <= y->n_dims;
    for (unsigned i = 1; all && i <= x->n_dims; i++) {
        size_t side = x->sizes[x->n_dims - i];
        all = side == 1 || side == y->sizes[y->n_dims - i];
    }
    return all;
}

static const char *each_why_not(const TracedCall *call) {
    bool all = call->n_made == 1 && call->made[0].of == TRACED_TENSOR;
    for (unsigned i = 0; i < call->n_args && all; i++) {
        const TracedArg *arg = &call->args[i];
        all = arg->of != TRACED_TENSOR || widens_to(&arg->tensor, &call->made[0].tensor);
    }
    return all ? NULL : shapes;
}

static const char *of_truths(const TracedCall *call) {
    const char *why = each_why_not(call);
    return why ? why : call->made[0].tensor.dtype == KERNEL_BOOL ? NULL : "of whole numbers";
}

#define ROW(name, which, takes)                                                                    \
    { name, run_each, each_why_not, KERNEL_EACH_##which, takes }
#define TRUTH(name, which, takes)                                                                  \
    { name, run_each, of_truths, KERNEL_EACH_##which, takes }

const TracedKernel traced_each_kernels[] = {
    ROW("add.Tensor", ADD, "ttn"),
    ROW("add.Scalar", ADD, "ttn"),
    ROW("add_.Tensor", ADD, "ttn"),
    ROW("add_.Scalar", ADD, "ttn"),
    ROW("sub.Tensor", SUBTRACT, "ttn"),
    ROW("sub.Scalar", SUBTRACT, "ttn"),
    ROW("sub_.Tensor", SUBTRACT, "ttn"),
    ROW("rsub.Scalar", SUBTRACT_FROM, "ttn"),
    ROW("rsub.Tensor", SUBTRACT_FROM, "ttn"),
    ROW("mul.Tensor", MULTIPLY, "tt"),
    ROW("mul.Scalar", MULTIPLY, "tt"),
    ROW("mul_.Tensor", MULTIPLY, "tt"),
    ROW("mul_.Scalar", MULTIPLY, "tt"),
    ROW("div.Tensor", DIVIDE, "tt"),
    ROW("div.Scalar", DIVIDE, "tt"),
    ROW("div_.Tensor", DIVIDE, "tt"),
    ROW("div_.Scalar", DIVIDE, "tt"),
    ROW("div.Tensor_mode", DIVIDE_ROUNDED, "tts"),
    ROW("remainder.Scalar", REMAINDER, "tt"),
    ROW("remainder.Tensor", REMAINDER, "tt"),
    ROW("neg", NEGATE, "t"),
    ROW("abs", ABSOLUTE, "t"),
    ROW("sign", SIGN, "t"),
    ROW("sgn", SIGN, "t"),
    ROW("reciprocal", RECIPROCAL, "t"),
    ROW("exp", EXP, "t"),
    ROW("expm1", EXPM1, "t"),
    ROW("log", LOG, "t"),
    ROW("log1p", LOG1P, "t"),
    ROW("sqrt", SQRT, "t"),
    ROW("rsqrt", RSQRT, "t"),
    ROW("sin", SIN, "t"),
    ROW("cos", COS, "t"),
    ROW("tanh", TANH, "t"),
    ROW("erf", ERF, "t"),
    ROW("floor", FLOOR, "t"),
    ROW("ceil", CEIL, "t"),
    ROW("pow.Tensor_Scalar", POWER, "tt"),
    ROW("pow.Tensor_Tensor", POWER, "tt"),
    ROW("pow.Scalar", POWER, "tt"),
    ROW("maximum", MAXIMUM, "tt"),
    ROW("minimum", MINIMUM, "tt"),
    ROW("clamp", CLAMP, "t<>"),
    ROW("clamp_", CLAMP, "t<>"),
    ROW("clamp.Tensor", CLAMP, "t<>"),
    ROW("clamp_min", MAXIMUM, "tt"),
    ROW("clamp_max", MINIMUM, "tt"),
    ROW("hardtanh", CLAMP, "t<>"),
    ROW("clone", COPY, "t"),
    ROW("_to_copy", COPY, "t"),
    ROW("copy_", COPY, "-t"),
    ROW("lift_fresh_copy", COPY, "t"),
    ROW("expand_copy", COPY, "t"),
    ROW("zeros", FILL, ""),
    ROW("zeros_like", FILL, ""),
    ROW("new_zeros", FILL, ""),
    ROW("zero_", FILL, ""),
    ROW("ones", FILL, "1"),
    ROW("ones_like", FILL, "1"),
    ROW("new_ones", FILL, "1"),
    ROW("full", FILL, "-n"),
    ROW("full_like", FILL, "-n"),
    ROW("new_full", FILL, "--n"),
    ROW("fill_.Scalar", FILL, "-n"),
    ROW("scalar_tensor", FILL, "n"),
    ROW("where.self", WHERE, "ttt"),
    ROW("where.ScalarOther", WHERE, "ttt"),
    ROW("where.ScalarSelf", WHERE, "ttt"),
    ROW("where.Scalar", WHERE, "ttt"),
    ROW("masked_fill.Scalar", MASKED_FILL, "ttt"),
    ROW("masked_fill.Tensor", MASKED_FILL, "ttt"),
    ROW("masked_fill_.Scalar", MASKED_FILL, "ttt"),
    ROW("masked_fill_.Tensor", MASKED_FILL, "ttt"),
    ROW("eq.Scalar", EQUAL, "tt"),
    ROW("eq.Tensor", EQUAL, "tt"),
    ROW("ne.Scalar", UNEQUAL, "tt"),
    ROW("ne.Tensor", UNEQUAL, "tt"),
    ROW("lt.Scalar", LESS, "tt"),
    ROW("lt.Tensor", LESS, "tt"),
    ROW("le.Scalar", AT_MOST, "tt"),
    ROW("le.Tensor", AT_MOST, "tt"),
    ROW("gt.Scalar", GREATER, "tt"),
    ROW("gt.Tensor", GREATER, "tt"),
    ROW("ge.Scalar", AT_LEAST, "tt"),
    ROW("ge.Tensor", AT_LEAST, "tt"),
    ROW("logical_not", NOT, "t"),
    ROW("logical_and", AND, "tt"),
    ROW("logical_or", OR, "tt"),
    TRUTH("bitwise_not", NOT, "t"),
    TRUTH("bitwise_and.Tensor", AND, "tt"),
    TRUTH("bitwise_or.Tensor", OR, "tt"),
    ROW("addcmul", ADD_PRODUCT, "tttn"),
    ROW("addcdiv", ADD_QUOTIENT, "tttn"),
    ROW("lerp.Scalar", LERP, "ttt"),
    ROW("lerp.Tensor", LERP, "ttt"),
    ROW("sigmoid", SIGMOID, "t"),
    ROW("sigmoid_backward", SIGMOID_BACKWARD, "tt"),
    ROW("tanh_backward", TANH_BACKWARD, "tt"),
    ROW("relu", RELU, "t"),
    ROW("relu_", RELU, "t"),
    ROW("threshold_backward", THRESHOLD_BACKWARD, "ttn"),
    ROW("leaky_relu", LEAKY_RELU, "tn"),
    ROW("leaky_relu_backward", LEAKY_RELU_BACKWARD, "ttn"),
    ROW("silu", SILU, "t"),
    ROW("silu_", SILU, "t"),
    ROW("silu_backward", SILU_BACKWARD, "tt"),
    ROW("gelu", GELU, "ts"),
    ROW("gelu_backward", GELU_BACKWARD, "tts"),
    ROW("softplus", SOFTPLUS, "tnn"),
    ROW("softplus_backward", SOFTPLUS_BACKWARD, "ttnn"),
    ROW("native_dropout_backward", DROPOUT_BACKWARD, "ttn"),
    {"mse_loss_backward", run_mse_backward, each_why_not, 0, "ttt"},
    {0},
};

const TracedKernel *const traced_each_end = traced_each_kernels + G_N_ELEMENTS(traced_each_kernels);
