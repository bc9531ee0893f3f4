/* tests/kernels/activation.c - nonlinearities against libm in double, slopes by differences. */
#include "kernels/host/activation.h"
#include "kernels/host/elementwise.h"
#include "tests/kernels/check.h"

typedef struct {
    const char *name;
    void (*forward)(float *y, const float *x, size_t n);
    void (*backward)(float *dx, const float *dy, const float *x, size_t n);
    double (*exact)(double x);
} Activation;

static double gelu_tanh(double x) {
    return 0.5 * x * (1.0 + tanh(sqrt(2.0 / G_PI) * (x + 0.044715 * x * x * x)));
}

static double gelu_erf(double x) {
    return 0.5 * x * erfc(-x / sqrt(2.0));
}

static double silu(double x) {
    return x / (1.0 + exp(-x));
}

static double relu(double x) {
    return MAX(x, 0.0);
}

/* relu's backward takes the output; here it is made from the input. */
static void relu_backward(float *dx, const float *dy, const float *x, size_t n) {
    g_autofree float *y = g_new(float, n + 1);

    kernel_relu_forward_f32(y, x, n);
    kernel_threshold_backward_f32(dx, dy, y, 0.0f, n);
}

static const Activation activations[] = {
    {"gelu_tanh", kernel_gelu_tanh_forward_f32, kernel_gelu_tanh_backward_f32, gelu_tanh},
    {"gelu_erf", kernel_gelu_erf_forward_f32, kernel_gelu_erf_backward_f32, gelu_erf},
    {"silu", kernel_silu_forward_f32, kernel_silu_backward_f32, silu},
    {"relu", kernel_relu_forward_f32, relu_backward, relu},
};

static const size_t sizes[] = {0, 1, 3, 7, 33, 1000};

static void apply(const double *in, double *out, gpointer data) {
    double (*exact)(double) = *(double (**)(double))data;

    *out = exact(*in);
}

/* Element by element, as each output has one input. */
static void check_slopes(const Activation *activation, const float *dx, const float *x,
                         const float *dy, size_t n) {
    double (*exact)(double) = activation->exact;

    for (size_t i = 0; i < n; i++) {
        g_autofree float *one = check_poisoned(1);
        double at = (double)x[i];

        one[0] = dx[i];
        if (exact != relu || fabs(at) > 1e-3) { /* relu has no slope at 0 */
            check_gradient(activation->name, one, apply, &exact, &at, 1, &dy[i], 1, 1e-6, 1e-6);
        }
    }
    check_guard(activation->name, dx, n);
}

static void check_activation(const Activation *activation, size_t n, guint32 seed) {
    g_autofree float *x = check_random(n, -12, 12, seed);
    g_autofree float *dy = check_random(n, -1, 1, 7);
    g_autofree float *y = check_poisoned(n);
    g_autofree float *dx = check_poisoned(n);
    g_autofree double *want = g_new(double, n + 1);

    for (size_t i = 0; i < n; i++) {
        want[i] = activation->exact((double)x[i]);
    }
    activation->forward(y, x, n);
    check_close(activation->name, y, want, n, 1e-6, 1e-6);
    activation->backward(dx, dy, x, n);
    check_slopes(activation, dx, x, dy, n);

    activation->backward(dy, dy, x, n); /* outputs may be inputs */
    check_same("backward in place of dy", dy, dx, n);
    activation->forward(x, x, n);
    check_same("forward in place", x, y, n);
}

static void test_all(void) {
    for (size_t a = 0; a < G_N_ELEMENTS(activations); a++) {
        for (size_t s = 0; s < G_N_ELEMENTS(sizes); s++) {
            check_activation(&activations[a], sizes[s], (guint32)s);
        }
    }
}

static void test_sweep(void) {
    const size_t n = 400001;
    g_autofree float *x = check_poisoned(n);
    g_autofree float *y = check_poisoned(n);
    g_autofree double *want = g_new(double, n);

    for (size_t a = 0; a < G_N_ELEMENTS(activations); a++) {
        for (size_t i = 0; i < n; i++) {
            x[i] = (float)(-20.0 + 1e-4 * (double)i);
            want[i] = activations[a].exact((double)x[i]);
        }
        activations[a].forward(y, x, n);
        check_close(activations[a].name, y, want, n, 5e-7, 3e-7);
    }
}

static void test_extremes(void) {
    float x[6] = {1e30f, -1e30f, 3e38f, -3e4f, 0.0f, NAN};
    float want[6] = {1e30f, 0.0f, 3e38f, 0.0f, 0.0f, NAN};
    float dy[6] = {1, 1, 1, 1, 1, 1};
    float y[6], dx[6];

    for (size_t a = 0; a < G_N_ELEMENTS(activations); a++) {
        activations[a].forward(y, x, 6);
        activations[a].backward(dx, dy, x, 2);
        for (size_t i = 0; i < 5; i++) {
            if (y[i] != want[i]) {
                g_error("%s(%g) is %g", activations[a].name, (double)x[i], (double)y[i]);
            }
        }
        g_assert_true(isnan(y[5]));
    }
}

static void tanh_backward(float *dx, const float *dy, const float *x, size_t n) {
    g_autofree float *y = g_new(float, n + 1);

    kernel_tanh_forward_f32(y, x, n);
    kernel_tanh_backward_f32(dx, dy, y, n);
}

static void test_tanh(void) {
    const Activation activation = {"tanh", kernel_tanh_forward_f32, tanh_backward, tanh};
    float far[3] = {1e30f, -1e30f, NAN};

    for (size_t s = 0; s < G_N_ELEMENTS(sizes); s++) {
        check_activation(&activation, sizes[s], (guint32)s);
    }
    kernel_tanh_forward_f32(far, far, 3);
    g_assert_cmpfloat(far[0], ==, 1.0f);
    g_assert_cmpfloat(far[1], ==, -1.0f);
    g_assert_true(isnan(far[2]));
}

static void test_threshold(void) {
    float dy[3] = {1.0f, 2.0f, 3.0f}, y[3] = {0.5f, 1.0f, 1.5f}, dx[3];

    kernel_threshold_backward_f32(dx, dy, y, 1.0f, 3);
    g_assert_cmpfloat(dx[0], ==, 0.0f);
    g_assert_cmpfloat(dx[1], ==, 0.0f);
    g_assert_cmpfloat(dx[2], ==, 3.0f);
}

/* in is gate and up, each of n: silu(gate) up, whose backward is three products and silu's. */
static void swiglu(const double *in, double *out, gpointer data) {
    size_t n = *(size_t *)data;

    for (size_t i = 0; i < n; i++) {
        out[i] = silu(in[i]) * in[n + i];
    }
}

static void test_swiglu(void) {
    size_t n = 33;
    g_autofree float *in = check_random(2 * n, -3, 3, 1);
    g_autofree float *dy = check_random(n, -1, 1, 2);
    g_autofree float *gate = check_poisoned(n);
    g_autofree float *y = check_poisoned(n);
    g_autofree float *d_gate = check_poisoned(n);
    g_autofree float *d_in = check_poisoned(2 * n);
    g_autofree double *wide = check_doubles(in, 2 * n);
    g_autofree double *want = g_new(double, n);

    swiglu(wide, want, &n);
    kernel_silu_forward_f32(gate, in, n);
    kernel_mul_f32(y, gate, in + n, n);
    check_close("swiglu", y, want, n, 1e-6, 1e-6);
    kernel_mul_f32(d_gate, dy, in + n, n);
    kernel_silu_backward_f32(d_in, d_gate, in, n);
    kernel_mul_f32(d_in + n, dy, gate, n);
    check_gradient("swiglu backward", d_in, swiglu, &n, wide, 2 * n, dy, n, 1e-6, 2e-6);
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/kernels/activation/all", test_all);
    g_test_add_func("/kernels/activation/sweep", test_sweep);
    g_test_add_func("/kernels/activation/extremes", test_extremes);
    g_test_add_func("/kernels/activation/tanh", test_tanh);
    g_test_add_func("/kernels/activation/threshold", test_threshold);
    g_test_add_func("/kernels/activation/swiglu", test_swiglu);
    return g_test_run();
}
