/* tests/kernels/tensor.c - tensors through strides: what is read, written, computed element by
 * element and summed, beside loops in double over every index. */
#include "kernels/host/traced/tensor.h"
#include "kernels/host/traced/tensor-rows.h"
#include "kernels/host/traced/tensor-sum.h"
#include "tests/kernels/check.h"

enum {
    A = 3,
    B = 5,
    C = 700 /* longer than a piece */
};

/* [A, B, C] that lies as [C, A, B]. */
static KernelTensor turned(void *data, KernelDtype dtype) {
    return (KernelTensor){data, dtype, 3, {A, B, C}, {B, 1, A * B}};
}

static KernelTensor dense(void *data, KernelDtype dtype) {
    return (KernelTensor){data, dtype, 3, {A, B, C}, {B * C, C, 1}};
}

static size_t place(const KernelTensor *t, size_t a, size_t b, size_t c) {
    return a * t->strides[0] + b * t->strides[1] + c * t->strides[2];
}

static void reads_and_writes(void) {
    size_t n = A * B * C;
    g_autofree float *from = check_random(n, -2, 2, 1);
    g_autofree float *row_major = check_poisoned(n), *back = check_poisoned(n);
    KernelTensor t = turned(from, KERNEL_FP32), to = turned(back, KERNEL_FP32);
    g_assert_false(kernel_tensor_is_dense(&t));
    kernel_tensor_read_f32(row_major, &t);
    for (size_t i = 0; i < n; i++) {
        g_assert_cmpfloat(row_major[i], ==, from[place(&t, i / C / B, i / C % B, i % C)]);
    }
    kernel_tensor_write_f32(&to, row_major);
    check_same("written back", back, from, n);
    KernelTensor last = kernel_tensor_with_last(&t, 0), part = kernel_tensor_part(&t, 2, 4, 1);
    kernel_tensor_read_f32(row_major, &last);
    g_assert_cmpfloat(row_major[1], ==, from[place(&t, 1, 0, 0)]);
    kernel_tensor_read_f32(row_major, &part);
    g_assert_cmpfloat(row_major[1], ==, from[place(&t, 0, 1, 4)]);
}

/* Each dtype holds small whole numbers exactly, and rounds what it cannot hold once. */
static void dtypes(void) {
    static const KernelDtype all[] = {KERNEL_FP32,  KERNEL_BF16,  KERNEL_FP16, KERNEL_FP64,
                                      KERNEL_INT64, KERNEL_INT32, KERNEL_UINT8};
    for (unsigned d = 0; d < G_N_ELEMENTS(all); d++) {
        double stored[8] = {0};
        float numbers[] = {0, 1, 3, 100}, found[4];
        KernelTensor t = {stored, all[d], 2, {2, 2}, {1, 2}};
        int64_t whole[4];
        kernel_tensor_write_f32(&t, numbers);
        kernel_tensor_read_f32(found, &t);
        kernel_tensor_read_i64(whole, &t);
        for (unsigned i = 0; i < 4; i++) {
            g_assert_cmpfloat(found[i], ==, numbers[i]);
            g_assert_cmpint(whole[i], ==, (int64_t)numbers[i]);
        }
    }
    uint8_t truths[2] = {0xee, 0xee};
    KernelTensor truth = {truths, KERNEL_BOOL, 1, {2}, {1}};
    kernel_tensor_write_f32(&truth, (float[]){0.25f, 0});
    g_assert_cmpint(truths[0], ==, 1);
    g_assert_cmpint(truths[1], ==, 0);
}

/* A row and a column repeat along the others' sides; an integer makes it a double's arithmetic. */
static void broadcasts(void) {
    size_t n = A * B * C;
    g_autofree float *x = check_random(n, -2, 2, 1), *row = check_random(C, -2, 2, 2);
    g_autofree float *column = check_random(B, 1, 2, 3), *y = check_poisoned(n);
    KernelTensor out = turned(y, KERNEL_FP32);
    KernelTensor given[] = {dense(x, KERNEL_FP32),
                            {row, KERNEL_FP32, 1, {C}, {1}},
                            {column, KERNEL_FP32, 2, {B, 1}, {1, 0}}};
    kernel_tensor_each(KERNEL_EACH_ADD_PRODUCT, &out, given, 3, 3, 0);
    for (size_t i = 0; i < n; i++) {
        double want = x[i] + 3.0 * row[i % C] * column[i / C % B];
        g_assert_cmpfloat_with_epsilon(y[place(&out, i / C / B, i / C % B, i % C)], want, 2e-6);
    }
    int64_t large[] = {(INT64_C(1) << 53) - 1, 5}, sums[2];
    KernelTensor whole = {large, KERNEL_INT64, 1, {2}, {1}}, to = {sums, KERNEL_INT64, 1, {2}, {1}};
    double one = 1;
    KernelTensor with_one[] = {whole, {&one, KERNEL_FP64, 0, {0}, {0}}};
    kernel_tensor_each(KERNEL_EACH_SUBTRACT, &to, with_one, 2, 1, 0);
    g_assert_cmpint(sums[0], ==, (INT64_C(1) << 53) - 2);
    g_assert_cmpint(sums[1], ==, 4);
}

/* Of functions that have no kernel of their own, and of gradients by what they are gradients of. */
static void functions(void) {
    const struct {
        KernelEach what, backward;
        double p, q;
        bool of_result; /* backward takes y */
    } cases[] = {
        {KERNEL_EACH_SIGMOID, KERNEL_EACH_SIGMOID_BACKWARD, 0, 0, true},
        {KERNEL_EACH_TANH, KERNEL_EACH_TANH_BACKWARD, 0, 0, true},
        {KERNEL_EACH_SILU, KERNEL_EACH_SILU_BACKWARD, 0, 0, false},
        {KERNEL_EACH_GELU, KERNEL_EACH_GELU_BACKWARD, TEXT_NONE, 0, false},
        {KERNEL_EACH_GELU, KERNEL_EACH_GELU_BACKWARD, TEXT_TANH, 0, false},
        {KERNEL_EACH_SOFTPLUS, KERNEL_EACH_SOFTPLUS_BACKWARD, 2, 3, false},
        {KERNEL_EACH_LEAKY_RELU, KERNEL_EACH_LEAKY_RELU_BACKWARD, 0.25, 0, false},
    };
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        for (double x = -3.05; x < 3; x += 0.1) {
            double y[3], given = 2, got, step = 1e-5;
            for (int s = -1; s < 2; s++) {
                double at = x + s * step;
                KernelTensor in = {&at, KERNEL_FP64, 1, {1}, {1}};
                KernelTensor out = {&y[s + 1], KERNEL_FP64, 1, {1}, {1}};
                kernel_tensor_each(cases[i].what, &out, &in, 1, cases[i].p, cases[i].q);
            }
            KernelTensor in[] = {{&given, KERNEL_FP64, 1, {1}, {1}},
                                 {cases[i].of_result ? &y[1] : &x, KERNEL_FP64, 1, {1}, {1}}};
            KernelTensor out = {&got, KERNEL_FP64, 1, {1}, {1}};
            kernel_tensor_each(cases[i].backward, &out, in, 2, cases[i].p, cases[i].q);
            g_assert_cmpfloat_with_epsilon(got, given * (y[2] - y[0]) / (2 * step), 1e-8);
        }
    }
}

/* As PyTorch has it; a gradient passes where relu's result is none. */
static void nan_stays(void) {
    const struct {
        KernelEach what;
        double of_nan;
    } cases[] = {{KERNEL_EACH_MAXIMUM, NAN}, {KERNEL_EACH_MINIMUM, NAN},
                 {KERNEL_EACH_CLAMP, NAN},   {KERNEL_EACH_RELU, NAN},
                 {KERNEL_EACH_SIGN, 0},      {KERNEL_EACH_THRESHOLD_BACKWARD, 2}};
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        bool is_backward = cases[i].what == KERNEL_EACH_THRESHOLD_BACKWARD;
        double nan = NAN, two = 2, three = 3, got = 7;
        KernelTensor in[] = {{is_backward ? &two : &nan, KERNEL_FP64, 1, {1}, {1}},
                             {is_backward ? &nan : &two, KERNEL_FP64, 1, {1}, {1}},
                             {&three, KERNEL_FP64, 1, {1}, {1}}};
        KernelTensor out = {&got, KERNEL_FP64, 1, {1}, {1}};
        kernel_tensor_each(cases[i].what, &out, in, G_N_ELEMENTS(in), 0, 0);
        g_assert_true(isnan(cases[i].of_nan) ? isnan(got) : got == cases[i].of_nan);
    }
}

/* Over every choice of sides, of a tensor that lies either way. */
static void sums(void) {
    size_t n = A * B * C, sizes[] = {A, B, C};
    g_autofree float *x = check_random(n, -2, 2, 1);
    for (unsigned summed = 0; summed < 16; summed++) {
        KernelTensor t = summed & 8 ? dense(x, KERNEL_FP32) : turned(x, KERNEL_FP32);
        g_autofree float *y = check_poisoned(n);
        g_autofree double *want = g_new0(double, n);
        KernelTensor out = {y, KERNEL_FP32, 0, {0}, {0}};
        size_t strides[3] = {0}, total = 1;
        for (unsigned i = 3; i-- > 0;) {
            strides[i] = summed >> i & 1 ? 0 : total;
            total *= summed >> i & 1 ? 1 : sizes[i];
        }
        for (unsigned i = 0; i < 3; i++) {
            if (!(summed >> i & 1)) {
                out.sizes[out.n_dims] = sizes[i];
                out.strides[out.n_dims++] = strides[i];
            }
        }
        for (size_t i = 0; i < n; i++) {
            size_t a = i / C / B, b = i / C % B, c = i % C;
            want[a * strides[0] + b * strides[1] + c * strides[2]] += 0.5 * x[place(&t, a, b, c)];
        }
        kernel_tensor_sum(&out, &t, summed & 7, 0.5);
        for (size_t i = 0; i < total; i++) {
            g_assert_cmpfloat_with_epsilon(y[i], want[i], 1e-6 * (1 + fabs(want[i])));
        }
    }
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/kernels/tensor/reads and writes", reads_and_writes);
    g_test_add_func("/kernels/tensor/dtypes", dtypes);
    g_test_add_func("/kernels/tensor/broadcasts", broadcasts);
    g_test_add_func("/kernels/tensor/functions", functions);
    g_test_add_func("/kernels/tensor/NaN stays", nan_stays);
    g_test_add_func("/kernels/tensor/sums", sums);
    return g_test_run();
}
