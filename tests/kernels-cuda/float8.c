/* tests/kernels-cuda/float8.c - casts to float8, their scales, and products of them, against the
 * host's kernels: numbers that are cast as they are bit by bit.
 */
#include <math.h>
#include <string.h>

#include "kernels/cuda/products/matmul.h"
#include "kernels/cuda/products/mxfp8.h"
#include "kernels/host/half.h"
#include "kernels/host/products/float8.h"
#include "kernels/host/products/matmul.h"
#include "kernels/host/products/mxfp8.h"
#include "tests/emulator/emulator.h"
#include "tests/kernels-cuda/device.h"

static KernelCudaFloat8Scale in_fp32(float *at) {
    return (KernelCudaFloat8Scale){at, KERNEL_CUDA_SCALE_F32};
}

static const size_t shapes[][2] = {{1, 1},    {5, 48},    {33, 7},    {130, 65},
                                   {3, 1500}, {144, 208}, {16, 4800}, {600, 16}};

/* What the host makes of them: a norm's, or SwiGLU's. */
static void make(float *made, const float *x, const float *up, const float *weight,
                 const float *rstd, size_t rows, size_t cols) {
    for (size_t i = 0; i < rows * cols; i++) {
        made[i] = rstd ? x[i] * (rstd[i / cols] * weight[i % cols])
                  : up ? x[i] / (1 + expf(-x[i])) * up[i]
                       : x[i];
    }
}

/* The host's scales of a matrix. Transfer full. */
static float *scales_of(const float *x, size_t rows, size_t cols, KernelCudaAlong along,
                        double largest, size_t *ret_n) {
    size_t n = along == KERNEL_CUDA_EACH_ROW ? rows : along == KERNEL_CUDA_EACH_COLUMN ? cols : 1;
    float *scales = g_new(float, n);
    if (along == KERNEL_CUDA_EACH_ROW) {
        kernel_magnitude_rows_f32(scales, x, rows, cols);
    } else if (along == KERNEL_CUDA_EACH_COLUMN) {
        kernel_magnitude_columns_f32(scales, x, rows, cols);
    } else {
        *scales = kernel_magnitude_f32(x, rows * cols);
    }
    for (size_t i = 0; i < n; i++) {
        bool to_power = along != KERNEL_CUDA_WHOLE;
        scales[i] = 1 / kernel_float8_scale((double)scales[i], largest, to_power);
    }
    *ret_n = n;
    return scales;
}

/* The host's casts by the scales that the device found. */
static void cast(guint8 *as_is, guint8 *turned, float *x, const float *scales,
                 KernelCudaAlong along, size_t rows, size_t cols, bool is_e5m2) {
    for (size_t i = 0; i < rows * cols; i++) {
        x[i] *= 1 / scales[along == KERNEL_CUDA_EACH_ROW      ? i / cols
                           : along == KERNEL_CUDA_EACH_COLUMN ? i % cols
                                                              : 0];
    }
    (is_e5m2 ? kernel_narrow_e5m2 : kernel_narrow_e4m3)(as_is, x, rows * cols);
    kernel_exchange_bytes(turned, as_is, rows, cols, 1);
}

static void test_casts(const DeviceCase *c) {
    for (unsigned i = 0; i < G_N_ELEMENTS(shapes) * 6; i++) {
        size_t rows = shapes[i / 6][0], cols = shapes[i / 6][1], n = rows * cols, n_scales;
        KernelCudaAlong along = (KernelCudaAlong)(i % 3);
        bool is_e5m2 = i % 2;
        g_autofree float *x = device_random(c, n, -3, 3, 1);
        g_autofree guint8 *want = g_new(guint8, n), *want_turned = g_new(guint8, n);
        KernelCudaFloat8Source source = {
            .x = device_put(c, x, n), .rows = rows, .cols = cols, .type = c->type};
        double largest = is_e5m2 ? 57344 : 448;
        g_autofree float *scales = scales_of(x, rows, cols, along, largest, &n_scales);
        float *found = device_new_floats(n_scales);
        guint8 *as_is = device_new_elements(n, 1), *turned = device_new_elements(n, 1);
        guint8 *alone = device_new_elements(n, 1);
        KernelCudaFloat8 to = is_e5m2 ? KERNEL_CUDA_E5M2 : KERNEL_CUDA_E4M3;
        DEVICE_OK(kernel_cuda_float8_scale(device_lane, in_fp32(found), &source, along, largest));
        device_close_floats("scale", found, scales, n_scales, 0, 0);
        DEVICE_OK(kernel_cuda_float8_cast(device_lane, as_is, turned, &source, in_fp32(found),
                                          along, to));
        DEVICE_OK(
            kernel_cuda_float8_cast(device_lane, NULL, alone, &source, in_fp32(found), along, to));
        cast(want, want_turned, x, scales, along, rows, cols, is_e5m2);
        device_equal_bytes("as it is", as_is, want, n);
        device_equal_bytes("turned", turned, want_turned, n);
        device_equal_bytes("turned alone", alone, want_turned, n);
    }
}

/* ---- scales that are stored as the largest magnitude ----------------------------------------- */

static const KernelCudaScaleType stored_as[] = {KERNEL_CUDA_SCALE_F64, KERNEL_CUDA_SCALE_BF16,
                                                KERNEL_CUDA_SCALE_F16};

/* What is stored of such: transfer full. */
static void *store_magnitudes(float *magnitudes, size_t n, KernelCudaScaleType type) {
    double *doubles = g_new(double, n);
    for (size_t i = 0; type == KERNEL_CUDA_SCALE_F64 && i < n; i++) {
        doubles[i] = (double)magnitudes[i];
    }
    if (type == KERNEL_CUDA_SCALE_BF16) {
        kernel_narrow_bf16((uint16_t *)doubles, magnitudes, n);
        kernel_widen_bf16(magnitudes, (uint16_t *)doubles, n);
    } else if (type == KERNEL_CUDA_SCALE_F16) {
        kernel_narrow_f16((uint16_t *)doubles, magnitudes, n);
        kernel_widen_f16(magnitudes, (uint16_t *)doubles, n);
    }
    return doubles;
}

/* Casts by them and products behind which they are applied, with what was found of them. */
static void test_magnitudes(const DeviceCase *c) {
    for (unsigned i = 0; i < G_N_ELEMENTS(shapes) * G_N_ELEMENTS(stored_as) * 3; i++) {
        size_t rows = shapes[i / 9][0], cols = shapes[i / 9][1], n = rows * cols;
        KernelCudaScaleType type = stored_as[i / 3 % 3];
        size_t bytes = type == KERNEL_CUDA_SCALE_F64 ? 8 : 2;
        KernelCudaAlong along = (KernelCudaAlong)(i % 3);
        size_t n_scales = along == KERNEL_CUDA_EACH_ROW      ? rows
                          : along == KERNEL_CUDA_EACH_COLUMN ? cols
                                                             : 1;
        g_autofree float *x = device_random(c, n, -3, 3, 1);
        g_autofree float *magnitudes = g_new(float, n_scales), *scales = g_new(float, n_scales);
        g_autofree guint8 *want = g_new(guint8, n), *want_turned = g_new(guint8, n);
        KernelCudaFloat8Source source = {
            .x = device_put(c, x, n), .rows = rows, .cols = cols, .type = c->type};
        if (along == KERNEL_CUDA_EACH_ROW) {
            kernel_magnitude_rows_f32(magnitudes, x, rows, cols);
        } else if (along == KERNEL_CUDA_EACH_COLUMN) {
            kernel_magnitude_columns_f32(magnitudes, x, rows, cols);
        } else {
            *magnitudes = kernel_magnitude_f32(x, n);
        }
        g_autofree void *stored = store_magnitudes(magnitudes, n_scales, type);
        KernelCudaFloat8Scale scale = {device_new_bytes(n_scales * bytes), type};
        guint8 *as_is = device_new_elements(n, 1), *turned = device_new_elements(n, 1);
        DEVICE_OK(kernel_cuda_float8_scale(device_lane, scale, &source, along, 448));
        device_equal_bytes("magnitudes", scale.at, stored, n_scales * bytes);
        DEVICE_OK(kernel_cuda_float8_cast(device_lane, as_is, turned, &source, scale, along,
                                          KERNEL_CUDA_E5M2));
        for (size_t s = 0; s < n_scales; s++) {
            scales[s] =
                kernel_float8_scale((double)magnitudes[s], 57344, along != KERNEL_CUDA_WHOLE);
        }
        for (size_t e = 0; e < n; e++) {
            x[e] *= scales[along == KERNEL_CUDA_EACH_ROW      ? e / cols
                           : along == KERNEL_CUDA_EACH_COLUMN ? e % cols
                                                              : 0];
        }
        kernel_narrow_e5m2(want, x, n);
        kernel_exchange_bytes(want_turned, want, rows, cols, 1);
        device_equal_bytes("cast", as_is, want, n);
        device_equal_bytes("cast and turned", turned, want_turned, n);
    }
}

static void test_unscaled_by_magnitudes(const DeviceCase *c) {
    enum {
        ROWS = 37,
        COLS = 130,
        N = ROWS * COLS
    };
    const DeviceCase floats = {.type = KERNEL_CUDA_F32};
    for (unsigned i = 0; i < G_N_ELEMENTS(stored_as); i++) {
        g_autofree float *x = device_random(c, N, -3, 3, 1);
        g_autofree float *row = device_random(&floats, ROWS, 0.2, 3, 4);
        g_autofree float *column = device_random(&floats, COLS, 0.2, 3, 5);
        g_autofree void *rows = store_magnitudes(row, ROWS, stored_as[i]);
        g_autofree void *columns = store_magnitudes(column, COLS, stored_as[i]);
        size_t bytes = stored_as[i] == KERNEL_CUDA_SCALE_F64 ? 8 : 2;
        KernelCudaFloat8Scale by_row = {device_put_bytes(rows, ROWS * bytes), stored_as[i]};
        KernelCudaFloat8Scale by_column = {device_put_bytes(columns, COLS * bytes), stored_as[i]};
        void *at = device_put(c, x, N);
        DEVICE_OK(
            kernel_cuda_float8_unscale(device_lane, at, by_row, by_column, ROWS, COLS, c->type));
        for (size_t r = 0; r < ROWS; r++) {
            row[r] = 1 / kernel_float8_scale((double)row[r], 448, true);
        }
        for (size_t k = 0; k < COLS; k++) {
            column[k] = 1 / kernel_float8_scale((double)column[k], 448, true);
        }
        kernel_scale_rows_columns_f32(x, row, ROWS, column, COLS, ROWS, COLS);
        device_equal("unscaled", c, at, x, N);
    }
}

/* ---- PyTorch's kernels, one step each -------------------------------------------------------- */

static double stepped(KernelCudaFloat8Step step, double x, double scale) {
    switch (step) {
    case KERNEL_CUDA_FLOAT8_MAGNITUDE:
        return fabs(x);
    case KERNEL_CUDA_FLOAT8_CONVERT:
        return x;
    case KERNEL_CUDA_FLOAT8_AT_LEAST:
        return MAX(x, 1e-12);
    case KERNEL_CUDA_FLOAT8_INVERT:
        return 1 / x;
    case KERNEL_CUDA_FLOAT8_TIMES_LARGEST:
        return x * 448;
    case KERNEL_CUDA_FLOAT8_TIMES_SCALE:
        return x * scale;
    case KERNEL_CUDA_FLOAT8_BOUND:
        return CLAMP(x, -448, 448);
    case KERNEL_CUDA_FLOAT8_INVERSE_SCALE:
        return (double)(1 / kernel_float8_scale(x, 448, false));
    case KERNEL_CUDA_FLOAT8_INVERSE_OF_POWER:
        return (double)(1 / kernel_float8_scale(x, 448, true));
    }
    g_assert_not_reached();
}

/* Between the case's type or fp64, and fp32 or fp64. */
static void test_steps(const DeviceCase *c) {
    enum {
        N = 300
    };
    float scale = 173.3f, *on_device = device_put_floats(&scale, 1);
    for (unsigned i = 0; i < 4 * (KERNEL_CUDA_FLOAT8_INVERSE_OF_POWER + 1); i++) {
        KernelCudaFloat8Step step = (KernelCudaFloat8Step)(i / 4);
        bool from_wide = i & 1, to_wide = i & 2;
        bool is_magnitude =
            step == KERNEL_CUDA_FLOAT8_INVERSE_SCALE || step == KERNEL_CUDA_FLOAT8_INVERSE_OF_POWER;
        g_autofree float *x = device_random(c, N, is_magnitude ? 0 : -900, 900, 1);
        double wide[N], want_wide[N];
        float want[N];
        for (unsigned e = 0; e < N; e++) {
            wide[e] = (double)x[e];
            want_wide[e] = stepped(step, wide[e], (double)scale);
            want[e] = (float)want_wide[e];
        }
        void *in = from_wide ? device_put_bytes(wide, sizeof wide) : device_put(c, x, N);
        void *out = device_new_bytes(to_wide ? sizeof want_wide : sizeof want);
        DEVICE_OK(kernel_cuda_float8_step(
            device_lane, out, to_wide ? KERNEL_CUDA_SCALE_F64 : KERNEL_CUDA_SCALE_F32, in,
            from_wide ? KERNEL_CUDA_SCALE_F64 : (KernelCudaScaleType)c->type, N, step, 448,
            step == KERNEL_CUDA_FLOAT8_TIMES_SCALE ? on_device : NULL));
        if (to_wide) {
            device_equal_bytes("step", out, want_wide, sizeof want_wide);
        } else {
            device_close_floats("step", out, want, N, 0, 0);
        }
    }
}

static void test_scaled_already(const DeviceCase *c) {
    enum {
        N = 1000
    };
    g_autofree float *x = device_random(c, N, -448, 448, 1);
    guint8 want[N], *out = device_new_bytes(N);
    KernelCudaFloat8Source source = {
        .x = device_put(c, x, N), .rows = N, .cols = 1, .type = c->type};
    kernel_narrow_e4m3(want, x, N);
    DEVICE_OK(kernel_cuda_float8_cast(device_lane, out, NULL, &source,
                                      in_fp32(device_new_floats(1)), KERNEL_CUDA_SCALED_ALREADY,
                                      KERNEL_CUDA_E4M3));
    device_equal_bytes("scaled already", out, want, N);
}

/* ---- what is cast ---------------------------------------------------------------------------- */

/* Within what exponentials and products of three may differ by, and so a number of float8. */
static void check_made_as_they_are_cast(const DeviceCase *c, size_t rows, size_t cols) {
    size_t n = rows * cols;
    g_autofree float *x = device_random(c, n, -3, 3, 1), *up = device_random(c, n, -2, 2, 2);
    g_autofree float *weight = device_random(c, cols, 0.5, 2, 3);
    const DeviceCase floats = {.type = KERNEL_CUDA_F32};
    g_autofree float *rstd = device_random(&floats, rows, 0.2, 3, 4), *made = g_new(float, n);
    for (unsigned by_norm = 0; by_norm < 2; by_norm++) {
        KernelCudaFloat8Source source = {.x = device_put(c, x, n),
                                         .up = by_norm ? NULL : device_put(c, up, n),
                                         .weight = by_norm ? device_put(c, weight, cols) : NULL,
                                         .rstd = by_norm ? device_put_floats(rstd, rows) : NULL,
                                         .rows = rows,
                                         .cols = cols,
                                         .type = c->type};
        for (unsigned a = 0; a < 3; a++) {
            KernelCudaAlong along = (KernelCudaAlong)a;
            size_t n_scales;
            make(made, x, by_norm ? NULL : up, weight, by_norm ? rstd : NULL, rows, cols);
            g_autofree float *scales = scales_of(made, rows, cols, along, 448, &n_scales);
            float *found = device_new_floats(n_scales);
            guint8 *as_is = device_new_elements(n, 1);
            DEVICE_OK(kernel_cuda_float8_scale(device_lane, in_fp32(found), &source, along, 448));
            DEVICE_OK(kernel_cuda_float8_cast(device_lane, as_is, NULL, &source, in_fp32(found),
                                              along, KERNEL_CUDA_E4M3));
            g_autofree float *got_scales = device_get_bytes(found, n_scales * sizeof(float));
            g_autofree guint8 *got = device_get_bytes(as_is, n);
            g_autofree float *wide = g_new(float, n);
            kernel_widen_e4m3(wide, got, n);
            for (size_t i = 0; i < n; i++) {
                float scale = got_scales[along == KERNEL_CUDA_EACH_ROW      ? i / cols
                                         : along == KERNEL_CUDA_EACH_COLUMN ? i % cols
                                                                            : 0];
                wide[i] *= scale;
                /* half a place of 3 bits; below the least normal number half a step of 2^-9 */
                if (fabsf(wide[i] - made[i]) >
                    fabsf(made[i]) * 0x1.001p-4f + scale * 0x1.001p-10f) {
                    g_test_message("%g is cast to %g", (double)made[i], (double)wide[i]);
                    g_test_fail();
                }
            }
        }
    }
}

static void test_made_as_they_are_cast(const DeviceCase *c) {
    check_made_as_they_are_cast(c, 37, 130);
    check_made_as_they_are_cast(c, 37, 136);
}

static void test_not_a_number(const DeviceCase *c) {
    float x[48];
    for (unsigned i = 0; i < G_N_ELEMENTS(x); i++) {
        x[i] = i == 20 ? NAN : 1;
    }
    KernelCudaFloat8Source source = {
        .x = device_put(c, x, 48), .rows = 3, .cols = 16, .type = c->type};
    float *found = device_new_floats(3);
    const float want[] = {1.0f / 256, NAN, 1.0f / 256};
    DEVICE_OK(
        kernel_cuda_float8_scale(device_lane, in_fp32(found), &source, KERNEL_CUDA_EACH_ROW, 448));
    g_autofree float *got = device_get_bytes(found, sizeof want);
    g_assert_true(got[0] == want[0] && !(got[1] > 0) && got[2] == want[2]);
    DEVICE_OK(
        kernel_cuda_float8_scale(device_lane, in_fp32(found), &source, KERNEL_CUDA_WHOLE, 448));
    device_close_floats("whole", found, want + 1, 1, 0, 0);
}

/* ---- products ------------------------------------------------------------------------------- */

static guint8 *random_float8(size_t n) {
    guint8 *x = g_new(guint8, n);
    for (size_t i = 0; i < n; i++) {
        x[i] = (guint8)(g_test_rand_int_range(0, 0x60) | (g_test_rand_bit() ? 0x80 : 0));
    }
    return x;
}

/* What sums of k products may be off by. Tensor cores of compute capability 8.9 and 9.0 cut each of
 * 32 products, the sum so far and what they come to down to 14 bits of the largest of these
 * (DeepSeek-V3's report, section 3.5.2). */
static float *slack_of_sums(const float *a, const float *b, size_t m, size_t n, size_t k,
                            float factor) {
    float *slack = g_new(float, m *n);
    size_t cuts = k + 2 * ((k + 31) / 32);
    for (size_t i = 0; i < m * n; i++) {
        float sum = 0, largest = 0;
        for (size_t j = 0; j < k; j++) {
            float product = a[i / n * k + j] * b[i % n * k + j];
            sum += product;
            largest = fmaxf(largest, fmaxf(fabsf(product), fabsf(sum)));
        }
        slack[i] = factor * (float)cuts * 0x1p-13f * largest;
    }
    return slack;
}

static void test_products(const DeviceCase *c) {
    static const size_t sides[][3] = {{16, 16, 16}, {48, 80, 128}, {16, 176, 32}};
    if (c->type == KERNEL_CUDA_F32 || c->shift) { /* as plans have them */
        return;
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(sides) * 3; i++) {
        size_t m = sides[i / 3][0], n = sides[i / 3][1], k = sides[i / 3][2];
        KernelCudaFloat8 a_type = i % 3 == 1 ? KERNEL_CUDA_E5M2 : KERNEL_CUDA_E4M3;
        g_autofree guint8 *a = random_float8(m * k), *b = random_float8(n * k);
        g_autofree float *a_wide = g_new(float, m *k), *b_wide = g_new(float, n *k);
        g_autofree float *y = g_new(float, m *n);
        bool is_scaled = i % 3 < 2;
        const float scales[] = {0.037f, 1.7f};
        float *on_device = device_put_floats(scales, 2);
        (a_type == KERNEL_CUDA_E5M2 ? kernel_widen_e5m2 : kernel_widen_e4m3)(a_wide, a, m * k);
        kernel_widen_e4m3(b_wide, b, n * k);
        float factor = is_scaled ? scales[0] * scales[1] : 1;
        kernel_gemm_f32(KERNEL_NO_TRANSPOSE, KERNEL_TRANSPOSE, m, n, k, factor, a_wide, k, b_wide,
                        k, 0, y, n);
        g_autofree float *slack = slack_of_sums(a_wide, b_wide, m, n, k, factor);
        void *got = device_new(c, m * n);
        KernelCudaFloat8Factor left = {device_put_bytes(a, m * k), is_scaled ? on_device : NULL,
                                       a_type};
        KernelCudaFloat8Factor right = {device_put_bytes(b, n * k),
                                        is_scaled ? on_device + 1 : NULL, KERNEL_CUDA_E4M3};
        DEVICE_OK(
            kernel_cuda_float8_product(device_lane, got, left, right, m, n, k, i % 2, c->type));
        if (c->type != KERNEL_CUDA_F16) { /* which such sums leave */
            device_close_within("product", c, got, y, slack, m * n, 0, 0);
        }
    }
}

/* ---- MXFP8 ----------------------------------------------------------------------------------- */

/* Blocks far from each other in size, one of zeros, one whose largest is infinite, as stored. */
static float *random_blocks(const DeviceCase *c, size_t n) {
    g_autofree float *x = device_random(c, n, -3, 3, 1);
    for (size_t i = 0; i < n; i++) {
        unsigned block = (unsigned)(i / 32);
        x[i] = block % 11 == 3 ? 0 : ldexpf(x[i], (int)(block % 9) - 4);
    }
    x[n - 1] = -INFINITY;
    return device_get(c, device_put(c, x, n), n);
}

static void check_blocks(const DeviceCase *c, size_t rows, size_t cols, bool turned) {
    size_t n = rows * cols;
    g_autofree float *x = random_blocks(c, n), *exchanged = g_new(float, n);
    g_autofree guint8 *numbers = g_new(guint8, n), *exponents = g_new(guint8, n / 32);
    guint8 *got_numbers = device_new_elements(n, 1),
           *got_exponents = device_new_elements(n / 32, 1);
    kernel_exchange_bytes((guint8 *)exchanged, (guint8 *)x, rows, cols, sizeof *x);
    kernel_mxfp8_cast(numbers, exponents, turned ? exchanged : x, turned ? cols : rows,
                      turned ? rows : cols);
    DEVICE_OK(kernel_cuda_mxfp8_cast(device_lane, got_numbers, got_exponents, device_put(c, x, n),
                                     rows, cols, turned, c->type));
    device_equal_bytes("numbers", got_numbers, numbers, n);
    device_equal_bytes("exponents", got_exponents, exponents, n / 32);
}

/* Rows and columns of whole blocks, of more than a block of threads; tiles that are not full. */
static void test_blocks(const DeviceCase *c) {
    static const size_t sides[][2] = {{1, 32}, {3, 96}, {160, 128}, {17, 1056}};
    for (unsigned i = 0; i < 2 * G_N_ELEMENTS(sides); i++) {
        const size_t *s = sides[i / 2];
        bool turned = i % 2;
        check_blocks(c, s[turned], s[!turned], turned);
    }
    float x[32] = {[7] = NAN};
    guint8 *exponent = device_new_bytes(1), none = 0xff;
    DEVICE_OK(kernel_cuda_mxfp8_cast(device_lane, device_new_bytes(32), exponent,
                                     device_put(c, x, 32), 1, 32, false, c->type));
    device_equal_bytes("the exponent of no number", exponent, &none, 1);
}

static void test_order(const DeviceCase *c) {
    static const size_t sides[][2] = {{128, 4}, {384, 12}};
    for (unsigned i = 0; i < G_N_ELEMENTS(sides); i++) {
        size_t rows = sides[i][0], cols = sides[i][1], n = rows * cols;
        g_autofree guint8 *x = random_float8(n), *want = g_new(guint8, n);
        guint8 *got = device_new_elements(n, 1);
        kernel_mxfp8_order(want, x, rows, cols);
        DEVICE_OK(
            kernel_cuda_mxfp8_order(device_lane, got, device_put_elements(x, n, 1), rows, cols));
        device_equal_bytes("order", got, want, n);
    }
}

/* Random numbers and exponents, what they stand for, and both on the device. */
typedef struct {
    float *x;
    KernelCudaMxfp8Factor factor;
} Blocks;

static Blocks new_blocks(size_t rows, size_t cols) {
    g_autofree guint8 *numbers = random_float8(rows * cols);
    g_autofree guint8 *ordered = g_new(guint8, rows * cols / 32);
    for (size_t i = 0; i < rows * cols / 32; i++) {
        ordered[i] = (guint8)g_test_rand_int_range(124, 130);
    }
    Blocks made = {
        g_new(float, rows *cols),
        {device_put_bytes(numbers, rows * cols), device_put_bytes(ordered, rows * cols / 32)}};
    kernel_mxfp8_widen(made.x, numbers, ordered, rows, cols);
    return made;
}

static void test_products_of_blocks(const DeviceCase *c) {
    enum {
        M = 128,
        N = 256,
        K = 384
    };
    int major = 0;
    cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0);
    if (c->type != KERNEL_CUDA_BF16 || c->shift || major < 10) { /* as plans and GPUs have them */
        return;
    }
    Blocks a = new_blocks(M, K), b = new_blocks(N, K);
    g_autofree float *y = g_new(float, M *N);
    void *got = device_new(c, M * N);
    kernel_gemm_f32(KERNEL_NO_TRANSPOSE, KERNEL_TRANSPOSE, M, N, K, 1, a.x, K, b.x, K, 0, y, N);
    g_autofree float *slack = slack_of_sums(a.x, b.x, M, N, K, 1);
    DEVICE_OK(kernel_cuda_mxfp8_product(device_lane, got, a.factor, b.factor, M, N, K, c->type));
    device_close_within("product of blocks", c, got, y, slack, (size_t)M * N, 0, 0);
    g_free(a.x);
    g_free(b.x);
}

#ifdef KERNEL_EMULATED
/* As on a B200. */
static void run_cases_as_b200(gconstpointer test) {
    emulator_set_capability(100);
    device_run_cases(test);
    emulator_set_capability(90);
}
#else
static void run_cases_as_b200(gconstpointer test) {
    device_run_cases(test);
}
#endif

static void check_unscaled(const DeviceCase *c, size_t rows, size_t cols) {
    size_t n = rows * cols;
    const DeviceCase floats = {.type = KERNEL_CUDA_F32};
    g_autofree float *x = device_random(c, n, -3, 3, 1);
    g_autofree float *row = device_random(&floats, rows, 0.2, 3, 4);
    g_autofree float *column = device_random(&floats, cols, 0.2, 3, 5);
    void *at = device_put(c, x, n);
    DEVICE_OK(kernel_cuda_float8_unscale(device_lane, at, in_fp32(device_put_floats(row, rows)),
                                         in_fp32(device_put_floats(column, cols)), rows, cols,
                                         c->type));
    kernel_scale_rows_columns_f32(x, row, rows, column, cols, rows, cols);
    device_equal("unscaled", c, at, x, n);
}

static void test_unscaled(const DeviceCase *c) {
    check_unscaled(c, 37, 130);
    check_unscaled(c, 37, 136);
}

/* Of so many tensors that a block of threads does not hold them. */
static void test_delay(void) {
    const DeviceCase floats = {.type = KERNEL_CUDA_F32};
    enum {
        PASSES = 5,
        TENSORS = 700,
        N = PASSES * TENSORS
    };
    g_autofree float *history = device_random(&floats, N, 0, 9, 1), *scale = g_new(float, TENSORS);
    for (unsigned i = 0; i < TENSORS; i++) {
        scale[i] = (float)(i + 1);
        for (unsigned pass = 0; pass < PASSES && i % 7 == 0; pass++) {
            history[pass * TENSORS + i] = i % 2 ? 0 : NAN;
        }
    }
    float *on_device = device_put_floats(history, N), *scales = device_put_floats(scale, TENSORS);
    for (unsigned pass = 0; pass < 2; pass++) {
        kernel_float8_delay(history, scale, PASSES, TENSORS, 57344);
        DEVICE_OK(kernel_cuda_float8_delay(device_lane, on_device, scales, PASSES, TENSORS, 57344));
        device_close_floats("scale", scales, scale, TENSORS, 0, 0);
        device_equal_bytes("history", (guint8 *)on_device, (guint8 *)history, N * sizeof *history);
    }
}

static void add_tests(void) {
    DEVICE_TEST("/kernels-cuda/float8/casts", test_casts);
    DEVICE_TEST("/kernels-cuda/float8/by magnitudes", test_magnitudes);
    DEVICE_TEST("/kernels-cuda/float8/unscaled by magnitudes", test_unscaled_by_magnitudes);
    DEVICE_TEST("/kernels-cuda/float8/steps", test_steps);
    DEVICE_TEST_ONCE("/kernels-cuda/float8/scales of passes before", test_delay);
    DEVICE_TEST("/kernels-cuda/float8/scaled already", test_scaled_already);
    DEVICE_TEST("/kernels-cuda/float8/made as they are cast", test_made_as_they_are_cast);
    DEVICE_TEST("/kernels-cuda/float8/not a number", test_not_a_number);
    DEVICE_TEST("/kernels-cuda/float8/products", test_products);
    DEVICE_TEST("/kernels-cuda/float8/unscaled", test_unscaled);
    DEVICE_TEST("/kernels-cuda/float8/blocks", test_blocks);
    DEVICE_TEST("/kernels-cuda/float8/order of exponents", test_order);
    g_test_add_data_func("/kernels-cuda/float8/products of blocks",
                         (gconstpointer)test_products_of_blocks, run_cases_as_b200);
}

int main(int argc, char **argv) {
    return device_main(argc, argv, add_tests);
}
