/* tests/kernels/loss.c - softmax and cross entropy, piece by piece and as a whole. */
#include "kernels/host/rows/loss.h"
#include "tests/kernels/check.h"

typedef struct {
    size_t rows, width;
    const gint64 *target;
} Size;

static const Size sizes[] = {{1, 1}, {3, 7}, {7, 3}, {2, 33}, {3, 100}};
static const gint64 IGNORE = -100;

static void log_softmax(const double *in, double *out, gpointer data) {
    const Size *size = data;

    for (size_t r = 0; r < size->rows; r++) {
        const double *x = in + r * size->width;
        double largest = -INFINITY, total = 0.0;

        for (size_t i = 0; i < size->width; i++) {
            largest = MAX(largest, x[i]);
        }
        for (size_t i = 0; i < size->width; i++) {
            total += exp(x[i] - largest);
        }
        for (size_t i = 0; i < size->width; i++) {
            out[r * size->width + i] = x[i] - largest - log(total);
        }
    }
}

static void softmax(const double *in, double *out, gpointer data) {
    const Size *size = data;

    log_softmax(in, out, data);
    for (size_t i = 0; i < size->rows * size->width; i++) {
        out[i] = exp(out[i]);
    }
}

static void nll(const double *in, double *out, gpointer data) {
    const Size *size = data;
    size_t count = 0;

    out[0] = 0.0;
    for (size_t r = 0; r < size->rows; r++) {
        if (size->target[r] != IGNORE) {
            out[0] -= in[r * size->width + (size_t)size->target[r]];
            count++;
        }
    }
    out[0] /= (double)count;
}

static void cross_entropy(const double *in, double *out, gpointer data) {
    const Size *size = data;
    g_autofree double *logp = g_new(double, size->rows * size->width);

    log_softmax(in, logp, data);
    nll(logp, out, data);
}

static void test_softmax(void) {
    for (size_t s = 0; s < G_N_ELEMENTS(sizes); s++) {
        Size size = sizes[s];
        size_t n = size.rows * size.width;
        g_autofree float *x = check_random(n, -5, 5, 1);
        g_autofree float *dy = check_random(n, -1, 1, 2);
        g_autofree float *y = check_poisoned(n);
        g_autofree float *dx = check_poisoned(n);
        g_autofree double *wide = check_doubles(x, n);
        g_autofree double *want = g_new(double, n);

        softmax(wide, want, &size);
        kernel_softmax_forward_f32(y, x, size.rows, size.width);
        check_close("softmax_forward", y, want, n, 1e-6, 1e-9);
        kernel_softmax_backward_f32(dx, dy, y, size.rows, size.width);
        check_gradient("softmax_backward", dx, softmax, &size, wide, n, dy, n, 1e-6, 3e-7);
        kernel_softmax_backward_f32(dy, dy, y, size.rows, size.width);
        check_same("softmax_backward in place", dy, dx, n);
        kernel_softmax_forward_f32(x, x, size.rows, size.width);
        check_same("softmax_forward in place", x, y, n);
    }
}

static void test_log_softmax(void) {
    for (size_t s = 0; s < G_N_ELEMENTS(sizes); s++) {
        Size size = sizes[s];
        size_t n = size.rows * size.width;
        g_autofree float *x = check_random(n, -5, 5, 1);
        g_autofree float *dy = check_random(n, -1, 1, 2);
        g_autofree float *y = check_poisoned(n);
        g_autofree float *dx = check_poisoned(n);
        g_autofree double *wide = check_doubles(x, n);
        g_autofree double *want = g_new(double, n);

        log_softmax(wide, want, &size);
        kernel_log_softmax_forward_f32(y, x, size.rows, size.width);
        check_close("log_softmax_forward", y, want, n, 3e-7, 5e-7);
        kernel_log_softmax_backward_f32(dx, dy, y, size.rows, size.width);
        check_gradient("log_softmax_backward", dx, log_softmax, &size, wide, n, dy, n, 2e-6, 2e-6);
        kernel_log_softmax_backward_f32(dy, dy, y, size.rows, size.width);
        check_same("log_softmax_backward in place", dy, dx, n);
        kernel_log_softmax_forward_f32(x, x, size.rows, size.width);
        check_same("log_softmax_forward in place", x, y, n);
    }
}

/* A masked row keeps its zeros, and far logits do not overflow. */
static void test_extremes(void) {
    float x[6] = {1.0f, -INFINITY, -INFINITY, 1e4f, -1e4f, 0.0f}, y[6];

    kernel_softmax_forward_f32(y, x, 2, 3);
    for (size_t i = 0; i < 6; i++) {
        g_assert_cmpfloat(y[i], ==, i % 3 == 0 ? 1.0f : 0.0f);
    }
    kernel_log_softmax_forward_f32(y, x, 2, 3);
    g_assert_cmpfloat(y[0], ==, 0.0f);
    g_assert_true(y[1] == -INFINITY);
    g_assert_cmpfloat(y[4], ==, -2e4f);
    x[0] = -INFINITY;
    kernel_softmax_forward_f32(y, x, 1, 3);
    g_assert_true(isnan(y[0]) && isnan(y[1]) && isnan(y[2]));
}

/* One NaN makes its row NaN, wherever it stands, and no other. */
static void test_nan(void) {
    const size_t width = 71;

    for (size_t at = 0; at < width; at++) {
        g_autofree float *x = check_random(2 * width, -1, 1, 1);
        g_autofree float *y = check_poisoned(2 * width);

        x[at] = NAN;
        kernel_softmax_forward_f32(y, x, 2, width);
        for (size_t i = 0; i < 2 * width; i++) {
            g_assert_true(isnan(y[i]) == (i < width));
        }
    }
}

/* The maximum is found in any place, or the exponentials would overflow. */
static void test_maximum(void) {
    const size_t width = 71;

    for (size_t at = 0; at < width; at++) {
        g_autofree float *x = check_random(width, -1, 1, 1);
        g_autofree float *y = check_poisoned(width);

        x[at] = 1000.0f;
        kernel_softmax_forward_f32(y, x, 1, width);
        for (size_t i = 0; i < width; i++) {
            g_assert_cmpfloat(y[i], ==, i == at ? 1.0f : 0.0f);
        }
    }
}

/* The second row does not count. */
static gint64 *new_targets(const Size *size) {
    gint64 *target = g_new(gint64, size->rows);
    for (size_t r = 0; r < size->rows; r++) {
        target[r] = r == 1 ? IGNORE : (gint64)((r * 5 + size->width - 1) % size->width);
    }
    return target;
}

static void test_cross_entropy(void) {
    for (size_t s = 0; s < G_N_ELEMENTS(sizes); s++) {
        Size size = sizes[s];
        size_t n = size.rows * size.width;
        g_autofree gint64 *target = new_targets(&size);
        g_autofree float *x = check_random(n, -5, 5, 1);
        g_autofree float *logp = check_poisoned(n);
        g_autofree float *loss = check_poisoned(1);
        g_autofree float *weight = check_poisoned(1);
        g_autofree float *dloss = check_random(1, 0.5, 1, 3);
        g_autofree float *dlogp = check_poisoned(n);
        g_autofree float *dx = check_poisoned(n);
        g_autofree double *wide = check_doubles(x, n);
        g_autofree double *wide_logp = NULL;
        double want, count = (double)size.rows - (size.rows > 1);

        size.target = target;
        cross_entropy(wide, &want, &size);
        kernel_log_softmax_forward_f32(logp, x, size.rows, size.width);
        g_assert_true(
            kernel_nll_loss_forward_f32(loss, weight, logp, target, size.rows, size.width, IGNORE));
        check_close("cross entropy", loss, &want, 1, 5e-7, 5e-7);
        check_close("nll_loss total weight", weight, &count, 1, 0.0, 0.0);

        wide_logp = check_doubles(logp, n);
        nll(wide_logp, &want, &size);
        check_close("nll_loss_forward", loss, &want, 1, 1e-7, 1e-12);
        g_assert_true(kernel_nll_loss_backward_f32(dlogp, dloss, target, weight, size.rows,
                                                   size.width, IGNORE));
        check_gradient("nll_loss_backward", dlogp, nll, &size, wide_logp, n, dloss, 1, 1e-6, 1e-9);
        kernel_log_softmax_backward_f32(dx, dlogp, logp, size.rows, size.width);
        check_gradient("cross entropy backward", dx, cross_entropy, &size, wide, n, dloss, 1, 2e-6,
                       1e-6);
    }
}

static void test_targets(void) {
    const gint64 low[] = {0, -1}, high[] = {4, 0}, none[] = {IGNORE, IGNORE};
    float logp[8] = {0}, loss, weight, dloss = 1.0f;

    g_assert_false(kernel_nll_loss_forward_f32(&loss, &weight, logp, low, 2, 4, IGNORE));
    g_assert_false(kernel_nll_loss_forward_f32(&loss, &weight, logp, high, 2, 4, IGNORE));
    weight = 2.0f;
    g_assert_false(kernel_nll_loss_backward_f32(logp, &dloss, low, &weight, 2, 4, IGNORE));
    g_assert_false(kernel_nll_loss_backward_f32(logp, &dloss, high, &weight, 2, 4, IGNORE));
    g_assert_true(kernel_nll_loss_forward_f32(&loss, &weight, logp, none, 2, 4, IGNORE));
    g_assert_true(isnan(loss));
    g_assert_cmpfloat(weight, ==, 0.0f);
}

/* In one kernel: the same loss, and the gradient over the logits. */
static void test_fused(void) {
    static const gint64 targets[] = {0, 2, 1, 2, 0, 1, 2};
    for (size_t s = 1; s < G_N_ELEMENTS(sizes); s++) {
        Size size = sizes[s];
        size_t n = size.rows * size.width;
        size.target = targets;
        g_autofree float *x = check_random(n, -5, 5, 1);
        g_autofree double *wide = check_doubles(x, n);
        g_autofree float *lse = check_poisoned(size.rows);
        float loss = NAN, total = NAN, dloss = 0.7f;
        double want;

        cross_entropy(wide, &want, &size);
        g_assert_true(kernel_cross_entropy_forward_f32(&loss, &total, lse, x, targets, size.rows,
                                                       size.width));
        g_assert_cmpfloat(fabs((double)loss - want), <=, 1e-6 * fabs(want));
        g_assert_cmpfloat((double)total, ==, (double)size.rows);
        check_guard("cross_entropy lse", lse, size.rows);
        g_assert_true(kernel_cross_entropy_backward_f32(x, &dloss, targets, &total, lse, size.rows,
                                                        size.width));
        for (size_t i = 0; i < n; i++) { /* central differences of the double reference */
            double at = wide[i], up, down;
            wide[i] = at + 1e-4;
            cross_entropy(wide, &up, &size);
            wide[i] = at - 1e-4;
            cross_entropy(wide, &down, &size);
            wide[i] = at;
            g_assert_cmpfloat(fabs((double)x[i] - 0.7 * (up - down) / 2e-4), <=, 1e-6);
        }
    }
    float logits[] = {0, 1, 2}, loss, total, lse;
    gint64 outside = 3;
    g_assert_false(kernel_cross_entropy_forward_f32(&loss, &total, &lse, logits, &outside, 1, 3));
}

/* As a compiler has it: two numbers a row, and the gradient beside the logits or over them. */
static void test_compiled(void) {
    for (size_t s = 0; s < G_N_ELEMENTS(sizes); s++) {
        Size size = sizes[s];
        size_t n = size.rows * size.width;
        g_autofree gint64 *target = new_targets(&size);
        g_autofree float *x = check_random(n, -5, 5, 1), *beside = check_poisoned(n);
        g_autofree double *wide = check_doubles(x, n);
        g_autofree float *most = check_poisoned(size.rows), *below = check_poisoned(size.rows);
        g_autofree float *loss = check_poisoned(1), *total = check_poisoned(1);
        float dloss = 0.7f, *gradients[] = {beside, x};
        double want, count = (double)size.rows - (size.rows > 1);

        size.target = target;
        cross_entropy(wide, &want, &size);
        g_assert_true(kernel_compiled_loss_forward_f32(loss, total, most, below, x, target,
                                                       size.rows, size.width, IGNORE));
        check_close("compiled loss", loss, &want, 1, 5e-7, 5e-7);
        check_close("compiled loss total", total, &count, 1, 0.0, 0.0);
        check_guard("compiled loss, largest", most, size.rows);
        check_guard("compiled loss, logarithms", below, size.rows);
        for (unsigned i = 0; i < G_N_ELEMENTS(gradients); i++) {
            g_assert_true(kernel_compiled_loss_backward_f32(gradients[i], x, &dloss, target, total,
                                                            most, below, size.rows, size.width,
                                                            IGNORE));
            check_gradient("compiled loss backward", gradients[i], cross_entropy, &size, wide, n,
                           &dloss, 1, 2e-6, 1e-6);
        }
    }
    float x[] = {0, 1, 2}, loss, total = 1, most, below;
    gint64 outside = 3;
    g_assert_false(
        kernel_compiled_loss_forward_f32(&loss, &total, &most, &below, x, &outside, 1, 3, IGNORE));
    g_assert_false(kernel_compiled_loss_backward_f32(x, x, &total, &outside, &total, &most, &below,
                                                     1, 3, IGNORE));
}

/* Of columns that several have, as many each. */
typedef struct {
    Size size;
    size_t parts;
    float *most, *sum, *picked;
    float loss, total;
    float *dx; /* as the whole lies */
} Shared;

static float *part_of(const float *x, const Size *size, size_t parts, size_t part) {
    size_t width = size->width / parts;
    float *y = g_new(float, size->rows *width);
    for (size_t r = 0; r < size->rows; r++) {
        memcpy(y + r * width, x + r * size->width + part * width, width * sizeof *y);
    }
    return y;
}

/* Settled between them: the largest number, the sum and what is picked of each row. */
static void settle(Shared *s, const float *x) {
    size_t rows = s->size.rows, width = s->size.width / s->parts;
    for (size_t step = 0; step < 3; step++) {
        float *into = step == 0 ? s->most : step == 1 ? s->sum : s->picked;
        for (size_t p = 0; p < s->parts; p++) {
            g_autofree float *mine = part_of(x, &s->size, s->parts, p);
            g_autofree float *of_mine = check_poisoned(rows);
            g_autofree float *less = g_new0(float, rows *width);
            g_autofree uint8_t *counted = g_new(uint8_t, rows);
            if (step == 0) {
                kernel_largest_f32(of_mine, mine, rows, width);
            } else if (step == 1) {
                kernel_sum_of_exps_f32(of_mine, mine, s->most, rows, width);
            } else {
                g_assert_true(kernel_pick_targets_f32(
                    of_mine, counted, less, s->size.target, mine, s->most, s->sum, rows, width,
                    (int64_t)(p * width), (int64_t)s->size.width));
            }
            check_guard("of a part", of_mine, rows);
            for (size_t r = 0; r < rows; r++) {
                into[r] = p == 0      ? of_mine[r]
                          : step == 0 ? MAX(into[r], of_mine[r])
                                      : into[r] + of_mine[r];
            }
        }
    }
    kernel_mean_picked_f32(&s->loss, &s->total, s->size.target, s->picked, rows);
}

static void gradients(Shared *s, const float *x, float dloss) {
    size_t rows = s->size.rows, width = s->size.width / s->parts;
    for (size_t p = 0; p < s->parts; p++) {
        g_autofree float *mine = part_of(x, &s->size, s->parts, p);
        g_autofree float *picked = check_poisoned(rows);
        g_autofree float *less = check_poisoned(rows * width);
        g_autofree float *dx = check_poisoned(rows * width);
        g_autofree uint8_t *counted = g_new(uint8_t, rows);
        memset(less, 0, rows * width * sizeof *less);
        kernel_pick_targets_f32(picked, counted, less, s->size.target, mine, s->most, s->sum, rows,
                                width, (int64_t)(p * width), (int64_t)s->size.width);
        kernel_add_softmax_f32(less, less, mine, s->most, s->sum, rows, width);
        kernel_scale_counted_f32(dx, less, counted, &dloss, &s->total, rows, width);
        check_guard("dx of a part", dx, rows * width);
        kernel_scale_counted_f32(less, less, counted, &dloss, &s->total, rows, width);
        check_same("scale_counted in place", less, dx, rows * width);
        for (size_t r = 0; r < rows; r++) {
            memcpy(s->dx + r * s->size.width + p * width, dx + r * width, width * sizeof *dx);
        }
    }
}

/* The loss and its gradient of the whole, in any number of parts, some targets not counted. */
static void test_shared(void) {
    static const gint64 all_count[] = {0, 35, 17, 18, 1},
                        some_count[] = {35, IGNORE, 0, IGNORE, 20};
    static const struct {
        size_t parts;
        const gint64 *target;
    } cases[] = {{1, all_count}, {2, all_count}, {3, some_count}, {4, some_count}, {36, all_count}};
    for (size_t c = 0; c < G_N_ELEMENTS(cases); c++) {
        float most[5], sum[5], picked[5], dx[5 * 36], dloss = 0.7f;
        Shared shared = {{5, 36, cases[c].target}, cases[c].parts, most, sum, picked, NAN, NAN, dx};
        g_autofree float *x = check_random(G_N_ELEMENTS(dx), -5, 5, 1);
        x[3 * 36 + 18] = 1000; /* which is far above the row's others, and another part's */
        g_autofree double *wide = check_doubles(x, G_N_ELEMENTS(dx));
        double want;
        cross_entropy(wide, &want, &shared.size);
        settle(&shared, x);
        g_assert_cmpfloat(fabs((double)shared.loss - want), <=, 1e-6 * fabs(want));
        g_assert_cmpfloat((double)shared.total, ==, cases[c].target == all_count ? 5 : 3);
        gradients(&shared, x, dloss);
        for (size_t i = 0; i < G_N_ELEMENTS(dx); i++) { /* central differences of the reference */
            double at = wide[i], up, down;
            wide[i] = at + 1e-4;
            cross_entropy(wide, &up, &shared.size);
            wide[i] = at - 1e-4;
            cross_entropy(wide, &down, &shared.size);
            wide[i] = at;
            g_assert_cmpfloat(fabs((double)dx[i] - 0.7 * (up - down) / 2e-4), <=, 1e-6);
        }
    }
    gint64 outside = 36, none = IGNORE;
    float numbers[36] = {0}, picked, loss, total;
    uint8_t counted;
    g_assert_false(kernel_pick_targets_f32(&picked, &counted, numbers, &outside, numbers, numbers,
                                           numbers, 1, 18, 0, 36));
    kernel_mean_picked_f32(&loss, &total, &none, numbers, 1);
    g_assert_true(isnan(loss) && total == 0);
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/kernels/loss/softmax", test_softmax);
    g_test_add_func("/kernels/loss/log-softmax", test_log_softmax);
    g_test_add_func("/kernels/loss/extremes", test_extremes);
    g_test_add_func("/kernels/loss/nan", test_nan);
    g_test_add_func("/kernels/loss/maximum", test_maximum);
    g_test_add_func("/kernels/loss/cross-entropy", test_cross_entropy);
    g_test_add_func("/kernels/loss/cross-entropy in one kernel", test_fused);
    g_test_add_func("/kernels/loss/cross-entropy as a compiler has it", test_compiled);
    g_test_add_func("/kernels/loss/targets", test_targets);
    g_test_add_func("/kernels/loss/cross-entropy of columns that several have", test_shared);
    return g_test_run();
}
