/* tests/kernels-cuda/rows.c - reductions, norms, softmax and losses against the host's. */
#include <math.h>
#include <string.h>

#include "kernels/cuda/reduce.h"
#include "kernels/cuda/rows/loss.h"
#include "kernels/cuda/rows/norm.h"
#include "kernels/host/elementwise.h"
#include "kernels/host/reduce.h"
#include "kernels/host/rows/loss.h"
#include "kernels/host/rows/norm.h"
#include "tests/kernels-cuda/device.h"

/* rows, width: short and long, whole 16 bytes and not, held and streamed; of heads' norms more rows
 * than backward has blocks */
static const size_t shapes[][2] = {{1, 1},    {5, 48},   {3, 77},   {9, 520},
                                   {2, 4104}, {2, 9000}, {1300, 24}};

/* ---- reductions ----------------------------------------------------------------------------- */

static void test_reductions(const DeviceCase *c) {
    static const size_t sizes[] = {1, 100, 3001};
    for (size_t s = 0; s < G_N_ELEMENTS(sizes); s++) {
        size_t n = sizes[s];
        g_autofree float *x = device_random(c, n, -1, 2, 1), *want = g_new(float, n);
        float y, dy = 0.5f;
        void *in = device_put(c, x, n), *out = device_new(c, 1), *dx = device_new(c, n);
        kernel_mean_forward_f32(&y, x, n);
        DEVICE_OK(kernel_cuda_mean_forward(device_lane, out, in, n, c->type));
        device_close("mean", c, out, &y, 1, 1e-6, 1e-7);
        kernel_norm_f32(&y, x, n);
        DEVICE_OK(kernel_cuda_norm(device_lane, out, c->type, in, n, c->type));
        device_close("norm", c, out, &y, 1, 1e-6, 0);
        DeviceCase fp32 = {.type = KERNEL_CUDA_F32, .shift = c->shift};
        void *wide = device_new(&fp32, 1);
        DEVICE_OK(kernel_cuda_norm(device_lane, wide, KERNEL_CUDA_F32, in, n, c->type));
        device_close("norm in fp32", &fp32, wide, &y, 1, 1e-6, 0);
        kernel_mean_backward_f32(want, &dy, n);
        DEVICE_OK(kernel_cuda_mean_backward(device_lane, dx, device_put(c, &dy, 1), n, c->type));
        device_close("mean backward", c, dx, want, n, 1e-7, 0);
    }
}

static void test_column_sum(const DeviceCase *c) {
    static const size_t sizes[][2] = {{1, 3}, {100, 64}, {333, 17}, {50, 600}};
    for (size_t s = 0; s < G_N_ELEMENTS(sizes); s++) {
        size_t rows = sizes[s][0], cols = sizes[s][1];
        g_autofree float *x = device_random(c, rows * cols, -1, 1, 1), *want = g_new(float, cols);
        void *out = device_new(c, cols);
        kernel_column_sum_f32(want, x, rows, cols);
        DEVICE_OK(kernel_cuda_column_sum(device_lane, out, device_put(c, x, rows * cols), rows,
                                         cols, c->type));
        device_close("column sum", c, out, want, cols, 1e-6, 1e-5);
    }
}

static void test_row_sum(const DeviceCase *c) {
    for (size_t s = 0; s < G_N_ELEMENTS(shapes); s++) {
        size_t rows = shapes[s][0], cols = shapes[s][1];
        g_autofree float *x = device_random(c, rows * cols, -1, 1, 1), *want = g_new(float, rows);
        void *out = device_new(c, rows);
        kernel_row_sum_f32(want, x, 0.25f, rows, cols);
        DEVICE_OK(kernel_cuda_row_sum(device_lane, out, device_put(c, x, rows * cols), rows, cols,
                                      0.25, c->type));
        device_close("row sum", c, out, want, rows, 1e-6, 1e-5);
    }
}

/* ---- norms ---------------------------------------------------------------------------------- */

typedef struct {
    const DeviceCase *narrow;  /* of y, r and dy */
    const DeviceCase *weights; /* theirs, and of their gradients */
    size_t rows, width;
    float *a, *r, *sum, *weight, *bias, *dy, *dsum, *y, *mean, *rstd;
} Norm;

static void norm_clear(Norm *n) {
    float **all[] = {&n->a,    &n->r,  &n->sum,  &n->weight, &n->bias,
                     &n->dsum, &n->dy, &n->mean, &n->rstd,   &n->y};
    for (size_t i = 0; i < G_N_ELEMENTS(all); i++) {
        g_clear_pointer(all[i], g_free);
    }
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Norm, norm_clear)

static void round_sum(const DeviceCase *c, float *sum, size_t n) {
    void *stored = device_put(c, sum, n);
    g_autofree float *rounded = device_get(c, stored, n);
    memcpy(sum, rounded, n * sizeof *sum);
}

static Norm new_norm_of_types(const DeviceCase *c, const DeviceCase *narrow,
                              const DeviceCase *weights, size_t rows, size_t width, bool has_r) {
    size_t n = rows * width;
    Norm norm = {.narrow = narrow,
                 .weights = weights,
                 .rows = rows,
                 .width = width,
                 .a = device_random(c, n, -1, 2, 1),
                 .r = device_random(narrow, n, -1, 1, 2),
                 .sum = g_new(float, n),
                 .weight = device_random(weights, width, 0.5, 1.5, 3),
                 .bias = device_random(weights, width, -1, 1, 4),
                 .dy = device_random(narrow, n, -1, 1, 5),
                 .dsum = device_random(c, n, -1, 1, 6),
                 .y = g_new(float, n),
                 .mean = g_new(float, rows),
                 .rstd = g_new(float, rows)};
    memcpy(norm.sum, norm.a, n * sizeof(float));
    if (has_r) {
        kernel_add_f32(norm.sum, norm.a, norm.r, n);
        round_sum(c, norm.sum, n);
    }
    return norm;
}

static Norm new_norm(const DeviceCase *c, size_t rows, size_t width, bool has_r) {
    return new_norm_of_types(c, c, c, rows, width, has_r);
}

static KernelCudaNorm shape_of(const DeviceCase *c, const Norm *n) {
    return (KernelCudaNorm){
        n->rows, n->width, 1e-5f, c->type, 0, n->narrow->type, n->weights->type == KERNEL_CUDA_F32};
}

static void norm_forward(const DeviceCase *c, const Norm *n, bool centered, bool has_r) {
    size_t all = n->rows * n->width;
    KernelCudaNorm norm = shape_of(c, n);
    void *sum = has_r ? device_new(c, all) : NULL, *y = device_new(n->narrow, all);
    void *a = device_put(c, n->a, all), *r = has_r ? device_put(n->narrow, n->r, all) : NULL;
    void *weight = device_put(n->weights, n->weight, n->width);
    void *bias = device_put(n->weights, n->bias, n->width);
    float *mean = device_new_floats(n->rows), *rstd = device_new_floats(n->rows);
    if (centered) {
        kernel_layernorm_forward_f32(n->y, n->mean, n->rstd, n->sum, n->weight, n->bias, n->rows,
                                     n->width, 1e-5f);
        DEVICE_OK(kernel_cuda_layernorm_forward(device_lane, sum, y, mean, rstd, a, r, weight, bias,
                                                &norm));
        device_close_floats("mean", mean, n->mean, n->rows, 1e-6, 1e-6);
    } else {
        kernel_rmsnorm_forward_f32(n->y, n->rstd, n->sum, n->weight, n->rows, n->width, 1e-5f);
        DEVICE_OK(kernel_cuda_rmsnorm_forward(device_lane, sum, y, rstd, a, r, weight, &norm));
    }
    device_close_floats("rstd", rstd, n->rstd, n->rows, 4e-6, 0);
    device_close("y", n->narrow, y, n->y, all, 5e-6, 5e-6);
    if (has_r) {
        device_equal("sum", c, sum, n->sum, all);
    }
}

static void norm_backward(const DeviceCase *c, const Norm *n, bool centered, bool has_dsum) {
    size_t all = n->rows * n->width;
    KernelCudaNorm norm = shape_of(c, n);
    g_autofree float *dx = g_new(float, all), *dw = g_new(float, n->width);
    g_autofree float *db = g_new(float, n->width);
    void *got_dx = device_new(c, all), *got_dw = device_new(n->weights, n->width);
    void *got_db = device_new(n->weights, n->width), *dy = device_put(n->narrow, n->dy, all);
    void *dsum = has_dsum ? device_put(c, n->dsum, all) : NULL, *x = device_put(c, n->sum, all);
    void *weight = device_put(n->weights, n->weight, n->width);
    float *mean = device_put_floats(n->mean, n->rows), *rstd = device_put_floats(n->rstd, n->rows);
    if (centered) {
        kernel_layernorm_backward_f32(dx, dw, db, n->dy, n->sum, n->mean, n->rstd, n->weight,
                                      n->rows, n->width);
        DEVICE_OK(kernel_cuda_layernorm_backward(device_lane, got_dx, got_dw, got_db, dsum, dy, x,
                                                 mean, rstd, weight, &norm));
        device_close("dbias", n->weights, got_db, db, n->width, 1e-6, 1e-5);
    } else {
        kernel_rmsnorm_backward_f32(dx, dw, n->dy, n->sum, n->rstd, n->weight, n->rows, n->width);
        DEVICE_OK(kernel_cuda_rmsnorm_backward(device_lane, got_dx, got_dw, dsum, dy, x, rstd,
                                               weight, &norm));
    }
    if (has_dsum) {
        kernel_add_inplace_f32(dx, n->dsum, all);
    }
    device_close("dx", c, got_dx, dx, all, 1e-5, 2e-5);
    device_close("dweight", n->weights, got_dw, dw, n->width, 2e-6, 2e-5);
}

static void test_norms(const DeviceCase *c) {
    for (size_t s = 0; s < G_N_ELEMENTS(shapes); s++) {
        for (unsigned way = 0; way < 4; way++) {
            bool centered = way & 1, more = way & 2;
            if (centered && shapes[s][1] == 1) {
                continue; /* a row of one has no variance: rstd is as large as eps lets it be */
            }
            g_auto(Norm) norm = new_norm(c, shapes[s][0], shapes[s][1], more);
            norm_forward(c, &norm, centered, more);
            norm_backward(c, &norm, centered, more);
        }
    }
}

/* More rows than there are blocks, where a thread has one, two or four pieces of a row; with four
 * the columns' sums lie in shared memory. */
static void test_wide_norms(void) {
    static const size_t sizes[][2] = {{540, 1040}, {270, 2080}, {270, 8200}};
    DeviceCase c = {KERNEL_CUDA_BF16, 0, 0x1p-8};
    for (unsigned way = 0; way < 2 * G_N_ELEMENTS(sizes); way++) {
        bool centered = way & 1, more = way & 2;
        g_auto(Norm) norm = new_norm(&c, sizes[way / 2][0], sizes[way / 2][1], more);
        norm_forward(&c, &norm, centered, more);
        norm_backward(&c, &norm, centered, more);
    }
}

/* Beside fp32, 16 bits: what comes into a sum and what is made of it, or all rows, beside weights
 * in fp32. Of the first kind the widest rows are held forward alone. */
static void test_norms_of_two_types(const DeviceCase *c) {
    static const size_t sizes[][2] = {{540, 1040}, {270, 2080}};
    DeviceCase wide = {KERNEL_CUDA_F32, c->shift, 0};
    for (unsigned way = 0; way < 8 * (G_N_ELEMENTS(shapes) + G_N_ELEMENTS(sizes)); way++) {
        bool centered = way & 1, more = way & 2, of_rows = way & 4;
        bool is_wide = way / 8 >= G_N_ELEMENTS(shapes);
        const size_t *size = is_wide ? sizes[way / 8 - G_N_ELEMENTS(shapes)] : shapes[way / 8];
        const DeviceCase *x = of_rows ? c : &wide;
        if ((centered && size[1] == 1) || c->type == KERNEL_CUDA_F32 || (is_wide && c->shift)) {
            continue;
        }
        g_auto(Norm) norm = new_norm_of_types(x, c, &wide, size[0], size[1], more);
        norm_forward(x, &norm, centered, more);
        norm_backward(x, &norm, centered, more);
    }
}

/* In double: dx, and the sums of columns of dweight and dbias. */
static void norm_backward_in_double(const Norm *n, bool centered, float *dx, float *dw, float *db) {
    g_autofree double *weights = g_new0(double, n->width), *biases = g_new0(double, n->width);
    for (size_t r = 0; r < n->rows; r++) {
        const float *x = n->sum + r * n->width, *dy = n->dy + r * n->width;
        double mean = centered ? (double)n->mean[r] : 0, rstd = (double)n->rstd[r];
        double sum_g = 0, sum_gh = 0;
        for (size_t i = 0; i < n->width; i++) {
            double h = (x[i] - mean) * rstd, g = (double)dy[i] * n->weight[i];
            sum_g += centered ? g / (double)n->width : 0;
            sum_gh += g * h / (double)n->width;
            weights[i] += dy[i] * h;
            biases[i] += dy[i];
        }
        for (size_t i = 0; i < n->width; i++) {
            double h = (x[i] - mean) * rstd, g = (double)dy[i] * n->weight[i];
            dx[r * n->width + i] = (float)(rstd * (g - sum_g - h * sum_gh));
        }
    }
    for (size_t i = 0; i < n->width; i++) {
        dw[i] = (float)weights[i];
        db[i] = (float)biases[i];
    }
}

/* Rows that a warp or less holds, against double precision: lanes all used and not, a last row that
 * ends a warp's share early, and more rows than all blocks take at once (396 of 16 of a warp's 32
 * lanes each, for 128 numbers of 16 bits). */
static void test_narrow_norms(const DeviceCase *c) {
    static const size_t sizes[][2] = {{37, 8}, {77, 40}, {300, 96}, {20, 256}, {6401, 128}};
    for (size_t s = 0; s < (c->shift ? 3 : G_N_ELEMENTS(sizes)); s++) {
        for (unsigned centered = 0; centered < 2; centered++) {
            size_t rows = sizes[s][0], width = sizes[s][1], all = rows * width;
            g_auto(Norm) n = new_norm(c, rows, width, false);
            KernelCudaNorm norm = {rows, width, 1e-5f, c->type};
            g_autofree float *dx = g_new(float, all), *dw = g_new(float, width);
            g_autofree float *db = g_new(float, width);
            norm_forward(c, &n, centered, false);
            norm_backward_in_double(&n, centered, dx, dw, db);
            void *got_dx = device_new(c, all), *got_dw = device_new(c, width);
            void *got_db = device_new(c, width), *dy = device_put(c, n.dy, all);
            void *x = device_put(c, n.sum, all), *weight = device_put(c, n.weight, width);
            float *rstd = device_put_floats(n.rstd, rows), *mean = device_put_floats(n.mean, rows);
            if (centered) {
                DEVICE_OK(kernel_cuda_layernorm_backward(device_lane, got_dx, got_dw, got_db, NULL,
                                                         dy, x, mean, rstd, weight, &norm));
                device_close("dbias", c, got_db, db, width, 1e-6, 1e-6 * sqrt((double)rows));
            } else {
                DEVICE_OK(kernel_cuda_rmsnorm_backward(device_lane, got_dx, got_dw, NULL, dy, x,
                                                       rstd, weight, &norm));
            }
            device_close("dx", c, got_dx, dx, all, 1e-5, 1e-5);
            device_close("dweight", c, got_dw, dw, width, 1e-6, 2e-6 * sqrt((double)rows));
        }
    }
}

/* Only dx, or only the sums over more rows than there are blocks; in place. */
static void test_norm_parts(const DeviceCase *c) {
    enum {
        ROWS = 1100,
        WIDTH = 16
    };
    g_auto(Norm) n = new_norm(c, ROWS, WIDTH, false);
    KernelCudaNorm norm = {ROWS, WIDTH, 1e-5f, c->type};
    float dx[ROWS * WIDTH], dw[WIDTH];
    norm_forward(c, &n, false, false);
    kernel_rmsnorm_backward_f32(dx, dw, n.dy, n.sum, n.rstd, NULL, ROWS, WIDTH);
    void *dy = device_put(c, n.dy, ROWS * WIDTH), *x = device_put(c, n.sum, ROWS * WIDTH);
    float *rstd = device_put_floats(n.rstd, ROWS);
    void *got = device_new(c, WIDTH);
    DEVICE_OK(kernel_cuda_rmsnorm_backward(device_lane, NULL, got, NULL, dy, x, rstd, NULL, &norm));
    device_close("dweight alone", c, got, dw, WIDTH, 2e-6, 1e-4);
    DEVICE_OK(kernel_cuda_rmsnorm_backward(device_lane, dy, NULL, NULL, dy, x, rstd, NULL, &norm));
    device_close("dx in place", c, dy, dx, ROWS * WIDTH, 1e-5, 1e-5);
}

/* ---- softmax and losses --------------------------------------------------------------------- */

static void test_softmax(const DeviceCase *c) {
    for (size_t s = 0; s < G_N_ELEMENTS(shapes); s++) {
        size_t rows = shapes[s][0], cols = shapes[s][1], n = rows * cols;
        g_autofree float *x = device_random(c, n, -9, 9, 1), *dy = device_random(c, n, -1, 1, 2);
        g_autofree float *want = g_new(float, n);
        if (cols > 5) {
            x[2] = -INFINITY; /* masked */
        }
        void *in = device_put(c, x, n), *out = device_new(c, n), *d = device_put(c, dy, n);
        kernel_softmax_forward_f32(want, x, rows, cols);
        DEVICE_OK(kernel_cuda_softmax_forward(device_lane, out, in, rows, cols, c->type));
        device_close("softmax", c, out, want, n, 4e-6, 1e-7);
        g_autofree float *y = device_get(c, out, n);
        kernel_softmax_backward_f32(want, dy, y, rows, cols);
        DEVICE_OK(kernel_cuda_softmax_backward(device_lane, d, d, out, rows, cols, c->type));
        device_close("softmax backward", c, d, want, n, 2e-5, 1e-6);

        void *log_out = device_new(c, n), *log_d = device_put(c, dy, n);
        kernel_log_softmax_forward_f32(want, x, rows, cols);
        DEVICE_OK(kernel_cuda_log_softmax_forward(device_lane, log_out, in, rows, cols, c->type));
        device_close("log softmax", c, log_out, want, n, 1e-6, 4e-6);
        g_autofree float *log_y = device_get(c, log_out, n);
        kernel_log_softmax_backward_f32(want, dy, log_y, rows, cols);
        DEVICE_OK(kernel_cuda_log_softmax_backward(device_lane, log_d, log_d, log_out, rows, cols,
                                                   c->type));
        device_close("log softmax backward", c, log_d, want, n, 1e-5, 1e-5);
    }
}

static gint64 *new_targets(size_t rows, size_t classes) {
    gint64 *target = g_new(gint64, rows);
    for (size_t r = 0; r < rows; r++) {
        target[r] = (gint64)((r * 31 + 2) % classes);
    }
    return target;
}

static void test_nll_loss(const DeviceCase *c) {
    for (size_t s = 0; s < G_N_ELEMENTS(shapes); s++) {
        size_t rows = shapes[s][0], classes = shapes[s][1], n = rows * classes;
        g_autofree float *logp = device_random(c, n, -9, 0, 1), *want = g_new(float, n);
        g_autofree gint64 *target = new_targets(rows, classes);
        float loss, total, dloss = 0.5f;
        if (rows > 2) {
            target[1] = -100;
        }
        gint64 *t = device_put_i64(target, rows);
        void *y = device_new(c, 1), *w = device_new(c, 1), *dx = device_new(c, n);
        g_assert_true(
            kernel_nll_loss_forward_f32(&loss, &total, logp, target, rows, classes, -100));
        DEVICE_OK(kernel_cuda_nll_loss_forward(device_lane, y, w, device_put(c, logp, n), t, rows,
                                               classes, c->type));
        device_close("loss", c, y, &loss, 1, 1e-6, 0);
        device_equal("total", c, w, &total, 1);
        g_assert_true(
            kernel_nll_loss_backward_f32(want, &dloss, target, &total, rows, classes, -100));
        DEVICE_OK(kernel_cuda_nll_loss_backward(device_lane, dx, device_put(c, &dloss, 1), t, w,
                                                rows, classes, c->type));
        device_close("dlogp", c, dx, want, n, 1e-7, 0);
    }
}

static void test_cross_entropy(const DeviceCase *c) {
    for (size_t s = 0; s < G_N_ELEMENTS(shapes); s++) {
        size_t rows = shapes[s][0], classes = shapes[s][1], n = rows * classes;
        g_autofree float *x = device_random(c, n, -9, 9, 1), *lse = g_new(float, rows);
        g_autofree gint64 *target = new_targets(rows, classes);
        float loss, total, dloss = 0.5f;
        gint64 *t = device_put_i64(target, rows);
        void *y = device_new(c, 1), *w = device_new(c, 1), *logits = device_put(c, x, n);
        float *got_lse = device_new_floats(rows);
        g_assert_true(
            kernel_cross_entropy_forward_f32(&loss, &total, lse, x, target, rows, classes));
        DEVICE_OK(kernel_cuda_cross_entropy_forward(device_lane, y, w, got_lse, logits, t, rows,
                                                    classes, c->type));
        device_close_floats("lse", got_lse, lse, rows, 1e-6, 1e-6);
        device_close("loss", c, y, &loss, 1, 2e-6, 2e-6);
        g_assert_true(
            kernel_cross_entropy_backward_f32(x, &dloss, target, &total, lse, rows, classes));
        void *apart = device_new(c, n), *outputs[] = {apart, logits};
        for (size_t i = 0; i < G_N_ELEMENTS(outputs); i++) { /* apart and in place */
            DEVICE_OK(kernel_cuda_cross_entropy_backward(device_lane, outputs[i], logits,
                                                         device_put(c, &dloss, 1), t, w, got_lse,
                                                         rows, classes, c->type));
            device_close("dlogits", c, outputs[i], x, n, 1e-5, 1e-6);
        }
    }
}

/* Two numbers a row; loss and its gradient in the logits' type or in fp32. The first row does not
 * count. */
static void test_compiled_loss(const DeviceCase *c) {
    DeviceCase cases[] = {*c, {.type = KERNEL_CUDA_F32}};
    for (size_t s = 0; s < G_N_ELEMENTS(shapes) * G_N_ELEMENTS(cases); s++) {
        const DeviceCase *of_loss = &cases[s % G_N_ELEMENTS(cases)];
        const size_t *shape = shapes[s / G_N_ELEMENTS(cases)];
        size_t rows = shape[0], classes = shape[1], n = rows * classes;
        g_autofree float *x = device_random(c, n, -9, 9, 1), *dx = g_new(float, n);
        g_autofree float *more = device_random(c, n, -1, 1, 3), *sum = g_new(float, n);
        g_autofree float *most = g_new(float, rows), *below = g_new(float, rows);
        g_autofree gint64 *target = new_targets(rows, classes);
        target[0] = rows > 1 ? -100 : target[0];
        float loss, total, dloss = 0.5f;
        gint64 *t = device_put_i64(target, rows);
        void *y = device_new(of_loss, 1), *w = device_new(of_loss, 1);
        void *logits = device_put(c, x, n), *apart = device_new(c, n), *outputs[] = {apart, logits};
        void *given = device_put(c, more, n), *dloss_there = device_put(of_loss, &dloss, 1);
        float *got_most = device_new_floats(rows), *got_below = device_new_floats(rows);
        g_assert_true(kernel_compiled_loss_forward_f32(&loss, &total, most, below, x, target, rows,
                                                       classes, -100));
        DEVICE_OK(kernel_cuda_compiled_loss_forward(device_lane, y, w, of_loss->type, got_most,
                                                    got_below, logits, t, rows, classes, c->type));
        device_close_floats("largest", got_most, most, rows, 0, 0);
        device_close_floats("logarithms", got_below, below, rows, 1e-6, 1e-6);
        device_close("loss", of_loss, y, &loss, 1, 2e-6, 2e-6);
        device_equal("total", of_loss, w, &total, 1);
        g_assert_true(kernel_compiled_loss_backward_f32(dx, x, &dloss, target, &total, most, below,
                                                        rows, classes, -100));
        for (size_t i = 0; i < n; i++) {
            sum[i] = dx[i] + more[i];
        }
        DEVICE_OK(kernel_cuda_compiled_loss_backward(device_lane, apart, logits, given, t, got_most,
                                                     got_below, dloss_there, w, of_loss->type, rows,
                                                     classes, c->type));
        device_close("dlogits and more", c, apart, sum, n, 1e-5, 1e-6);
        for (size_t i = 0; i < G_N_ELEMENTS(outputs); i++) { /* apart and in place */
            DEVICE_OK(kernel_cuda_compiled_loss_backward(device_lane, outputs[i], logits, NULL, t,
                                                         got_most, got_below, dloss_there, w,
                                                         of_loss->type, rows, classes, c->type));
            device_close("dlogits", c, outputs[i], dx, n, 1e-5, 1e-6);
        }
    }
}

/* Cut into parts, of which the last has fewer rows, it is the same loss and gradient; of fp32 the
 * sum so far is the loss itself. */
static void test_cross_entropy_in_parts(const DeviceCase *c) {
    for (size_t s = 0; s < G_N_ELEMENTS(shapes); s++) {
        size_t rows = shapes[s][0], classes = shapes[s][1], n = rows * classes;
        size_t most = (rows + 2) / 3;
        g_autofree float *x = device_random(c, n, -9, 9, 1), *lse = g_new(float, rows);
        g_autofree gint64 *target = new_targets(rows, classes);
        float loss, total, one = 1;
        gint64 *t = device_put_i64(target, rows);
        float *row_loss = device_new_floats(most), *sum = device_new_floats(1);
        char *logits = device_put(c, x, n);
        void *y = c->type == KERNEL_CUDA_F32 ? sum : device_new(c, 1);
        g_assert_true(
            kernel_cross_entropy_forward_f32(&loss, &total, lse, x, target, rows, classes));
        g_assert_true(
            kernel_cross_entropy_backward_f32(x, &one, target, &total, lse, rows, classes));
        for (size_t row = 0; row < rows; row += most) {
            char *part = logits + row * classes * kernel_cuda_type_bytes(c->type);
            DEVICE_OK(kernel_cuda_cross_entropy_part(device_lane, y, sum, row_loss, part, t + row,
                                                     MIN(most, rows - row), classes, rows, row == 0,
                                                     c->type));
        }
        device_close("loss of parts", c, y, &loss, 1, 2e-6, 2e-6);
        device_close_floats("their sum", sum, &loss, 1, 2e-6, 2e-6);
        device_close("dlogits of parts", c, logits, x, n, 1e-5, 1e-6);
    }
}

/* The op that met it first is named, and only once. */
static void test_bad_target(void) {
    gint64 target[] = {1, 7, -100, -1};
    float logits[4 * 5] = {0};
    uint32_t op = 0;
    gint64 *t = device_put_i64(target, 4);
    float *x = device_put_floats(logits, 20), *lse = device_new_floats(4);
    float *loss = device_new_floats(1), *total = device_new_floats(1);
    kernel_cuda_tag(device_lane, 41);
    DEVICE_OK(kernel_cuda_nll_loss_forward(device_lane, loss, total, x, t, 1, 5, KERNEL_CUDA_F32));
    g_free(device_get_bytes(loss, 1));
    g_assert_false(kernel_cuda_bad_index(device_lane, &op));
    kernel_cuda_tag(device_lane, 42);
    DEVICE_OK(kernel_cuda_cross_entropy_forward(device_lane, loss, total, lse, x, t, 4, 5,
                                                KERNEL_CUDA_F32));
    DEVICE_OK(kernel_cuda_compiled_loss_forward(device_lane, loss, total, KERNEL_CUDA_F32, lse, lse,
                                                x, t, 4, 5, KERNEL_CUDA_F32));
    kernel_cuda_tag(device_lane, 43);
    DEVICE_OK(kernel_cuda_nll_loss_forward(device_lane, loss, total, x, t, 4, 5, KERNEL_CUDA_F32));
    g_free(device_get_bytes(loss, 1));
    g_assert_true(kernel_cuda_bad_index(device_lane, &op));
    g_assert_cmpuint(op, ==, 42);
    g_assert_false(kernel_cuda_bad_index(device_lane, &op));
    kernel_cuda_tag(device_lane, 44);
    DEVICE_OK(kernel_cuda_cross_entropy_part(device_lane, loss, total, lse, x, t, 4, 5, 4, true,
                                             KERNEL_CUDA_F32));
    g_free(device_get_bytes(loss, 1));
    g_assert_true(kernel_cuda_bad_index(device_lane, &op));
    g_assert_cmpuint(op, ==, 44);
}

static void add_tests(void) {
    DEVICE_TEST("/kernels-cuda/reduce/all", test_reductions);
    DEVICE_TEST("/kernels-cuda/reduce/column-sum", test_column_sum);
    DEVICE_TEST("/kernels-cuda/reduce/row-sum", test_row_sum);
    DEVICE_TEST("/kernels-cuda/norm/all", test_norms);
    DEVICE_TEST_ONCE("/kernels-cuda/norm/wide", test_wide_norms);
    DEVICE_TEST("/kernels-cuda/norm/two-types", test_norms_of_two_types);
    DEVICE_TEST("/kernels-cuda/norm/narrow", test_narrow_norms);
    DEVICE_TEST("/kernels-cuda/norm/parts", test_norm_parts);
    DEVICE_TEST("/kernels-cuda/loss/softmax", test_softmax);
    DEVICE_TEST("/kernels-cuda/loss/nll", test_nll_loss);
    DEVICE_TEST("/kernels-cuda/loss/cross-entropy", test_cross_entropy);
    DEVICE_TEST("/kernels-cuda/loss/compiled", test_compiled_loss);
    DEVICE_TEST("/kernels-cuda/loss/cross-entropy-in-parts", test_cross_entropy_in_parts);
    DEVICE_TEST_ONCE("/kernels-cuda/loss/bad-target", test_bad_target);
}

int main(int argc, char **argv) {
    return device_main(argc, argv, add_tests);
}
