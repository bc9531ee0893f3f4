/* tests/kernels/optimizer.c - steps against their formulas in double, whole against pieces. */
#include "kernels/host/lists/optimizer.h"
#include "kernels/host/elementwise.h"
#include "kernels/host/reduce.h"
#include "tests/kernels/check.h"

static const size_t sizes[] = {0, 1, 3, 7, 33, 1000};

static void test_pieces(void) {
    for (size_t s = 0; s < G_N_ELEMENTS(sizes); s++) {
        size_t n = sizes[s];
        g_autofree float *a = check_random(n, 0.1, 2, 1);
        g_autofree float *b = check_random(n, 0.1, 2, 2);
        g_autofree float *x = check_random(n, 0.1, 2, 3);
        g_autofree float *work = check_poisoned(n);
        g_autofree double *want = g_new(double, n + 1);

#define TRY(name, call, formula)                                                                   \
    do {                                                                                           \
        memcpy(work, x, n * sizeof *x);                                                            \
        call;                                                                                      \
        for (size_t i = 0; i < n; i++) {                                                           \
            double X = (double)x[i], A = (double)a[i], B = (double)b[i];                           \
            want[i] = formula;                                                                     \
            (void)X, (void)A, (void)B;                                                             \
        }                                                                                          \
        check_close(name, work, want, n, 3e-7, 2e-7);                                              \
    } while (0)

        TRY("mul_scalar", kernel_mul_scalar_inplace_f32(work, 0.7f, n), X * (double)0.7f);
        TRY("div_scalar", kernel_div_scalar_inplace_f32(work, 0.7f, n), X / (double)0.7f);
        TRY("add_scalar", kernel_add_scalar_inplace_f32(work, 0.7f, n), X + (double)0.7f);
        TRY("lerp low", kernel_lerp_inplace_f32(work, a, 0.1f, n), X + (double)0.1f * (A - X));
        TRY("lerp high", kernel_lerp_inplace_f32(work, a, 0.9f, n), X + (double)0.9f * (A - X));
        TRY("lerp 1", kernel_lerp_inplace_f32(work, a, 1.0f, n), A);
        TRY("addcmul", kernel_addcmul_inplace_f32(work, a, b, 0.3f, n), X + (double)0.3f * A * B);
        TRY("addcmul square", kernel_addcmul_inplace_f32(work, a, a, 0.3f, n),
            X + (double)0.3f * A * A);
        TRY("addcdiv", kernel_addcdiv_inplace_f32(work, a, b, -0.3f, n), X + (double)-0.3f * A / B);
        TRY("sqrt", kernel_sqrt_f32(work, a, n), sqrt(A));
        TRY("sqrt in place", kernel_sqrt_f32(work, work, n), sqrt(X));
#undef TRY
    }
}

/* Row after row, and column after column. */
static void test_lower_by_matrix(void) {
    enum {
        ROWS = 5,
        COLUMNS = 7,
        N = ROWS * COLUMNS
    };
    g_autofree float *x = check_random(N, 0.1, 2, 1);
    g_autofree float *matrix = check_random(N, 0.1, 2, 2);
    for (unsigned turned = 0; turned < 2; turned++) {
        g_autofree float *work = check_poisoned(N);
        double want[N];
        memcpy(work, matrix, N * sizeof *work);
        for (unsigned i = 0; i < N; i++) {
            unsigned row = i / COLUMNS, column = i % COLUMNS;
            want[i] = (double)matrix[i] - 0.3 * (double)x[turned ? column * ROWS + row : i];
        }
        kernel_lower_by_matrix_f32(work, x, 0.3, ROWS, COLUMNS, turned ? 1 : COLUMNS,
                                   turned ? ROWS : 1);
        check_close("lower_by_matrix", work, want, N, 3e-7, 2e-7);
    }
}

/* The state of an optimizer in double. */
typedef struct {
    double *param, *m, *v;
} Exact;

static void exact_adam(Exact *exact, const float *grad, size_t n, const KernelAdam *adam) {
    for (size_t i = 0; i < n; i++) {
        double g = (double)grad[i];

        if (adam->decay == KERNEL_ADAM_DECOUPLED) {
            exact->param[i] -= adam->lr * adam->weight_decay * exact->param[i];
        } else {
            g += adam->weight_decay * exact->param[i];
        }
        exact->m[i] = adam->beta1 * exact->m[i] + (1.0 - adam->beta1) * g;
        exact->v[i] = adam->beta2 * exact->v[i] + (1.0 - adam->beta2) * g * g;

        double m = exact->m[i] / (1.0 - pow(adam->beta1, (double)adam->step));
        double v = exact->v[i] / (1.0 - pow(adam->beta2, (double)adam->step));

        exact->param[i] -= adam->lr * m / (sqrt(v) + adam->eps);
    }
}

/* The foreach pieces in PyTorch's order. */
static void pieces_adam(float *param, float *m, float *v, float *work, float *decayed,
                        const float *grad, size_t n, const KernelAdam *adam) {
    double correction1 = 1.0 - pow(adam->beta1, (double)adam->step);
    double correction2 = 1.0 - pow(adam->beta2, (double)adam->step);

    switch (adam->decay) {
    case KERNEL_ADAM_DECOUPLED:
        kernel_mul_scalar_inplace_f32(param, (float)(1.0 - adam->lr * adam->weight_decay), n);
        break;
    case KERNEL_ADAM_COUPLED:
        kernel_add_scaled_f32(decayed, grad, param, (float)adam->weight_decay, n);
        grad = decayed;
        break;
    }
    kernel_lerp_inplace_f32(m, grad, (float)(1.0 - adam->beta1), n);
    kernel_mul_scalar_inplace_f32(v, (float)adam->beta2, n);
    kernel_addcmul_inplace_f32(v, grad, grad, (float)(1.0 - adam->beta2), n);
    kernel_sqrt_f32(work, v, n);
    kernel_div_scalar_inplace_f32(work, (float)sqrt(correction2), n);
    kernel_add_scalar_inplace_f32(work, (float)adam->eps, n);
    kernel_addcdiv_inplace_f32(param, m, work, (float)(-adam->lr / correction1), n);
}

static void try_adam(size_t n, KernelAdamDecay decay) {
    KernelAdam adam = {1e-2, 0.9, 0.999, 1e-8, 0.1, decay, 0};
    g_autofree float *param = check_random(n, -1, 1, 1);
    g_autofree float *other = check_random(n, -1, 1, 1);
    g_autofree float *m = check_random(n, 0, 0, 1);
    g_autofree float *v = check_random(n, 0, 0, 1);
    g_autofree float *other_m = check_random(n, 0, 0, 1);
    g_autofree float *other_v = check_random(n, 0, 0, 1);
    g_autofree float *work = check_poisoned(n);
    g_autofree float *decayed = check_poisoned(n);
    g_autofree double *exact_param = check_doubles(param, n);
    g_autofree double *exact_m = g_new0(double, n + 1);
    g_autofree double *exact_v = g_new0(double, n + 1);
    g_autofree double *pieces = NULL;
    Exact exact = {exact_param, exact_m, exact_v};

    for (adam.step = 1; adam.step <= 5; adam.step++) {
        g_autofree float *grad = check_random(n, -0.5, 1, (guint32)adam.step);

        kernel_adam_f32(param, m, v, grad, n, &adam);
        pieces_adam(other, other_m, other_v, work, decayed, grad, n, &adam);
        exact_adam(&exact, grad, n, &adam);
        check_close("adam m", m, exact_m, n, 1e-6, 1e-7);
        check_close("adam v", v, exact_v, n, 2e-6, 1e-9);
        check_close("adam param", param, exact_param, n, 1e-6, 2e-7 * (double)adam.step);
    }
    pieces = check_doubles(param, n);
    check_close("adam in pieces, param", other, pieces, n, 1e-6, 1e-6);
    check_same("adam in pieces, m", other_m, m, n);
    check_close("adam in pieces, v", other_v, exact_v, n, 2e-6, 1e-9);
}

static void test_adam(void) {
    for (size_t s = 0; s < G_N_ELEMENTS(sizes); s++) {
        try_adam(sizes[s], KERNEL_ADAM_DECOUPLED);
        try_adam(sizes[s], KERNEL_ADAM_COUPLED);
    }
}

static void try_sgd(size_t n, double momentum) {
    KernelSgd sgd = {0.1, momentum, 0.01, 0};
    g_autofree float *param = check_random(n, -1, 1, 1);
    g_autofree float *buffer = check_poisoned(n); /* not read at step 1 */
    g_autofree double *exact = check_doubles(param, n);
    g_autofree double *exact_buffer = g_new0(double, n + 1);

    for (sgd.step = 1; sgd.step <= 4; sgd.step++) {
        g_autofree float *grad = check_random(n, -1, 1, (guint32)sgd.step);

        kernel_sgd_f32(param, momentum > 0.0 ? buffer : NULL, grad, n, &sgd);
        for (size_t i = 0; i < n; i++) {
            double g = (double)grad[i] + sgd.weight_decay * exact[i];

            exact_buffer[i] = momentum * exact_buffer[i] + g;
            exact[i] -= sgd.lr * exact_buffer[i];
        }
        check_close("sgd param", param, exact, n, 1e-6, 1e-6);
        if (momentum > 0.0) {
            check_close("sgd momentum", buffer, exact_buffer, n, 1e-6, 1e-6);
        }
    }
}

static void test_sgd(void) {
    for (size_t s = 0; s < G_N_ELEMENTS(sizes); s++) {
        try_sgd(sizes[s], 0.0);
        try_sgd(sizes[s], 0.9);
    }
}

/* By a number that lies in memory, as clipping does. */
static void test_scale_by(void) {
    const size_t n = 33;
    g_autofree float *x = check_random(n, -1, 1, 1);
    g_autofree double *want = check_doubles(x, n);
    float norm, coefficient;

    kernel_norm_f32(&norm, x, n);
    coefficient = 0.5f / norm;
    kernel_scale_by_inplace_f32(x, &coefficient, n);
    for (size_t i = 0; i < n; i++) {
        want[i] *= (double)coefficient;
    }
    check_close("scale_by", x, want, n, 1e-7, 0.0);
    kernel_norm_f32(&norm, x, n);
    g_assert_cmpfloat_with_epsilon(norm, 0.5, 1e-5);
}

/* What is not finite is found wherever it stands, and the largest number is finite. */
static void test_unscale(void) {
    static const float beyond[] = {INFINITY, -INFINITY, NAN};
    for (size_t s = 0; s < G_N_ELEMENTS(sizes); s++) {
        size_t n = sizes[s];
        g_autofree float *x = check_random(n, -1, 1, 1);
        g_autofree double *want = check_doubles(x, n);
        if (n) {
            x[n / 2] = FLT_MAX;
            want[n / 2] = (double)FLT_MAX;
        }
        for (size_t i = 0; i < n; i++) {
            want[i] *= 0.25;
        }
        g_assert_true(kernel_unscale_inplace_f32(x, 0.25f, n));
        check_close("unscale", x, want, n, 1e-7, 0.0);
        for (size_t at = 0; at < n; at++) {
            float was = x[at];
            x[at] = beyond[at % G_N_ELEMENTS(beyond)];
            g_assert_false(kernel_unscale_inplace_f32(x, 1, n));
            x[at] = was;
        }
    }
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/kernels/optimizer/lower by matrix", test_lower_by_matrix);
    g_test_add_func("/kernels/optimizer/pieces", test_pieces);
    g_test_add_func("/kernels/optimizer/adam", test_adam);
    g_test_add_func("/kernels/optimizer/sgd", test_sgd);
    g_test_add_func("/kernels/optimizer/scale-by", test_scale_by);
    g_test_add_func("/kernels/optimizer/unscale", test_unscale);
    return g_test_run();
}
