/* tests/kernels-cuda/windows.c - convolutions, pools and norms by channels, against loops in double
 * that say what they are: shapes, dtypes and strides that are new in each run. */
#include <string.h>

#include "kernels/cuda/traced/channels.h"
#include "kernels/cuda/traced/windows.h"
#include "tests/kernels-cuda/strided.h"

enum {
    SIDES = KERNEL_WINDOW_SIDES
};

static KernelDtype any_float(void) {
    return floats[between(0, G_N_ELEMENTS(floats) - 1)];
}

/* Row-major, as doubles; transfer full. */
static double *numbers_of(const Both *b) {
    size_t n = kernel_tensor_count(&b->host);
    g_autofree float *numbers = g_new(float, n);
    double *wide = g_new(double, n);
    kernel_tensor_read_f32(numbers, &b->host);
    for (size_t i = 0; i < n; i++) {
        wide[i] = (double)numbers[i];
    }
    return wide;
}

static void expect(const Both *b, const double *numbers) {
    size_t n = kernel_tensor_count(&b->host);
    g_autofree float *narrow = g_new(float, n);
    for (size_t i = 0; i < n; i++) {
        narrow[i] = (float)numbers[i];
    }
    kernel_tensor_write_f32(&b->host, narrow);
}

/* Both are rounded once, of numbers that differ a little: to neighbours at worst. */
static void is_near(const char *what, const Both *b, double absolute) {
    is_close(what, b, 1e-6 + rounding_of(b->host.dtype), absolute);
}

/* ---- windows -------------------------------------------------------------------------------- */

/* [first, second, side, ..] of the last n sides. */
static KernelTensor grid(size_t first, size_t second, const size_t *sizes, unsigned n) {
    KernelTensor t = {.dtype = any_float(), .n_dims = 2 + n, .sizes = {first, second}};
    memcpy(t.sizes + 2, sizes + SIDES - n, n * sizeof *sizes);
    return t;
}

static KernelWindows new_windows(unsigned n) {
    KernelWindows w = {.samples = between(1, 3), .groups = between(1, 3)};
    w.in = w.groups * between(1, 4);
    w.out = w.groups * between(1, 4);
    for (unsigned s = 0; s < SIDES; s++) {
        bool is_there = s >= SIDES - n;
        w.window[s] = is_there ? between(1, 3) : 1;
        w.stride[s] = is_there ? (int64_t)between(1, 3) : 1;
        w.padding[s] = is_there ? (int64_t)between(0, 2) : 0;
        w.apart[s] = is_there ? (int64_t)between(1, 2) : 1;
        size_t reach = (w.window[s] - 1) * (size_t)w.apart[s] + 1;
        w.size[s] = is_there ? between(reach, reach + 4) : 1;
        w.made[s] = (w.size[s] + 2 * (size_t)w.padding[s] - reach) / (size_t)w.stride[s] + 1;
    }
    return w;
}

static size_t split(size_t *number, size_t by) {
    size_t rest = *number % by;
    *number /= by;
    return rest;
}

/* Where number `in` of the window at a place lies in its channel; false: in the padding. */
static bool look(const KernelWindows *w, size_t place, size_t in, size_t *ret_at) {
    int64_t here[SIDES];
    for (unsigned s = SIDES; s-- > 0;) {
        here[s] = (int64_t)split(&place, w->made[s]) * w->stride[s] - w->padding[s] +
                  (int64_t)split(&in, w->window[s]) * w->apart[s];
        if (here[s] < 0 || here[s] >= (int64_t)w->size[s]) {
            return false;
        }
    }
    *ret_at = ((size_t)here[0] * w->size[1] + (size_t)here[1]) * w->size[2] + (size_t)here[2];
    return true;
}

/* ---- convolutions --------------------------------------------------------------------------- */

/* What one number of x, one of a window and one of y are to each other. */
typedef struct {
    const double *x, *weight, *bias, *dy, *bias_of_dx;
    double *y, *dx, *dw;
} Convolution;

static void convolve(const KernelWindows *w, const Convolution *c) {
    size_t area = kernel_windows_area(w->size), places = kernel_windows_area(w->made);
    size_t window = kernel_windows_area(w->window), in = w->in / w->groups;
    for (size_t i = 0; i < w->samples * w->in * area; i++) {
        c->dx[i] = c->bias_of_dx ? c->bias_of_dx[i / area % w->in] : 0;
    }
    for (size_t i = 0; i < w->samples * w->out * places; i++) {
        size_t channel = i / places % w->out, sample = i / places / w->out;
        size_t group = channel / (w->out / w->groups);
        c->y[i] = c->bias ? c->bias[channel] : 0;
        for (size_t j = 0; j < in * window; j++) {
            size_t at, of_weight = channel * in * window + j;
            if (look(w, i % places, j % window, &at)) {
                at += (sample * w->in + group * in + j / window) * area;
                c->y[i] += c->weight[of_weight] * c->x[at];
                c->dx[at] += c->weight[of_weight] * c->dy[i];
                c->dw[of_weight] += c->x[at] * c->dy[i];
            }
        }
    }
}

static void check_convolution(const KernelWindows *w, unsigned n) {
    bool has_bias = between(0, 1);
    KernelTensor of_bias = {.dtype = any_float(), .n_dims = 1, .sizes = {w->out}};
    KernelTensor of_dx = {.dtype = any_float(), .n_dims = 1, .sizes = {w->in}};
    g_auto(Both) x = filled(grid(w->samples, w->in, w->size, n), -1, 1);
    g_auto(Both) weight = filled(grid(w->out, w->in / w->groups, w->window, n), -1, 1);
    g_auto(Both) bias = filled(of_bias, -1, 1), bias_of_dx = filled(of_dx, -1, 1);
    g_auto(Both) dy = filled(grid(w->samples, w->out, w->made, n), -1, 1);
    g_auto(Both) y = poisoned(grid(w->samples, w->out, w->made, n));
    g_auto(Both) dx = poisoned(grid(w->samples, w->in, w->size, n));
    g_auto(Both) dw = poisoned(grid(w->out, w->in / w->groups, w->window, n));
    g_autofree double *xs = numbers_of(&x), *weights = numbers_of(&weight);
    g_autofree double *biases = numbers_of(&bias), *dys = numbers_of(&dy);
    g_autofree double *dx_biases = numbers_of(&bias_of_dx);
    g_autofree double *ys = g_new0(double, kernel_tensor_count(&y.host));
    g_autofree double *dxs = g_new0(double, kernel_tensor_count(&dx.host));
    g_autofree double *dws = g_new0(double, kernel_tensor_count(&dw.host));
    convolve(w, &(Convolution){xs, weights, has_bias ? biases : NULL, dys,
                               has_bias ? dx_biases : NULL, ys, dxs, dws});
    expect(&y, ys);
    expect(&dx, dxs);
    expect(&dw, dws);
    DEVICE_OK(kernel_cuda_convolution(device_lane, &y.device, &x.device, &weight.device,
                                      has_bias ? &bias.device : NULL, w));
    DEVICE_OK(kernel_cuda_convolution_dx(device_lane, &dx.device, &dy.device, &weight.device,
                                         has_bias ? &bias_of_dx.device : NULL, w));
    DEVICE_OK(kernel_cuda_convolution_dw(device_lane, &dw.device, &dy.device, &x.device, w));
    is_near("convolution", &y, 2e-5);
    is_near("dx of a convolution", &dx, 2e-5);
    is_near("dw of a convolution", &dw, 2e-5);
}

static void test_convolution(void) {
    for (unsigned draw = 0; draw < 3 * DRAWS; draw++) {
        KernelWindows w = new_windows(1 + draw % SIDES);
        check_convolution(&w, 1 + draw % SIDES);
    }
}

/* More than a tile of rows, of columns and of what is added up. */
static void test_large(void) {
    KernelWindows w = {.samples = 2,
                       .in = 70,
                       .out = 67,
                       .groups = 1,
                       .size = {1, 7, 6},
                       .made = {1, 7, 6},
                       .window = {1, 3, 3},
                       .stride = {1, 1, 1},
                       .padding = {0, 1, 1},
                       .apart = {1, 1, 1}};
    check_convolution(&w, 2);
}

/* ---- pools ---------------------------------------------------------------------------------- */

/* Numbers of which many are alike; some are not numbers, and some as low as can be. */
static Both pooled(KernelTensor shape) {
    Both b = filled(shape, -2, 2);
    size_t bytes = b.elements * kernel_dtype_bytes(shape.dtype);
    g_autofree float *numbers = g_new(float, kernel_tensor_count(&b.host));
    kernel_tensor_read_f32(numbers, &b.host);
    for (size_t i = 0; i < kernel_tensor_count(&b.host); i++) {
        bool is_odd = between(0, 5) == 0;
        numbers[i] = is_odd ? (between(0, 1) ? NAN : -INFINITY) : floorf(numbers[i]);
    }
    kernel_tensor_write_f32(&b.host, numbers);
    b.device.data = device_put_bytes(b.host.data, bytes);
    return b;
}

static void check_pool(const KernelWindows *w) {
    KernelTensor made = grid(w->samples, w->in, w->made, 2),
                 like = grid(w->samples, w->in, w->size, 2);
    KernelTensor told = made;
    told.dtype = between(0, 1) ? KERNEL_INT64 : KERNEL_INT32;
    g_auto(Both) x = pooled(like);
    g_auto(Both) dy = filled(made, -1, 1);
    g_auto(Both) y = poisoned(made);
    g_auto(Both) places = poisoned(told);
    g_auto(Both) dx = poisoned(like);
    size_t n = kernel_tensor_count(&made), per_channel = kernel_windows_area(w->made);
    size_t area = kernel_windows_area(w->size);
    g_autofree double *xs = numbers_of(&x), *dys = numbers_of(&dy);
    g_autofree double *dxs = g_new0(double, kernel_tensor_count(&like));
    g_autofree double *ys = g_new(double, n), *found = g_new(double, n);
    for (size_t i = 0; i < n; i++) {
        size_t first = i / per_channel * area;
        ys[i] = -INFINITY;
        found[i] = -1;
        for (size_t j = 0, at; j < kernel_windows_area(w->window); j++) {
            if (look(w, i % per_channel, j, &at) &&
                (found[i] < 0 || xs[first + at] > ys[i] || isnan(xs[first + at]))) {
                ys[i] = xs[first + at];
                found[i] = (double)at;
            }
        }
        dxs[first + (size_t)found[i]] += dys[i];
    }
    expect(&y, ys);
    expect(&places, found);
    expect(&dx, dxs);
    DEVICE_OK(kernel_cuda_max_pool(device_lane, &y.device, &places.device, &x.device, w));
    is_close("largest", &y, 0, 0);
    is_close("places", &places, 0, 0);
    DEVICE_OK(
        kernel_cuda_max_pool_backward(device_lane, &dx.device, &dy.device, &places.device, w));
    is_near("dx of a pool", &dx, 1e-6);
}

static void test_pool(void) {
    for (unsigned draw = 0; draw < 2 * DRAWS; draw++) {
        KernelWindows w = new_windows(2);
        for (unsigned s = 0; s < SIDES;
             s++) { /* as PyTorch has it: some number is in each window */
            w.padding[s] = MIN(w.padding[s], (int64_t)(w.window[s] / 2));
            size_t reach = (w.window[s] - 1) * (size_t)w.apart[s] + 1;
            w.made[s] = (w.size[s] + 2 * (size_t)w.padding[s] - reach) / (size_t)w.stride[s] + 1;
        }
        check_pool(&w);
    }
}

/* ---- norms by channels ---------------------------------------------------------------------- */

static KernelTensor of_channels(size_t channels, KernelDtype dtype) {
    return (KernelTensor){.dtype = dtype, .n_dims = 1, .sizes = {channels}};
}

/* Of n numbers of a channel each; element j of a channel of all samples. */
typedef struct {
    size_t channels, area, n;
} Layout;

static size_t element(const Layout *l, size_t channel, size_t j) {
    return (j / l->area * l->channels + channel) * l->area + j % l->area;
}

static void norm(const Layout *l, size_t channel, const double *x, double *ret_mean,
                 double *ret_squares) {
    double sum = 0, squares = 0;
    for (size_t j = 0; j < l->n; j++) {
        sum += x[element(l, channel, j)];
    }
    *ret_mean = sum / (double)l->n;
    for (size_t j = 0; j < l->n; j++) {
        double off = x[element(l, channel, j)] - *ret_mean;
        squares += off * off;
    }
    *ret_squares = squares;
}

static void check_norm(KernelTensor shape) {
    const double momentum = 0.3, eps = 1e-3;
    size_t channels = shape.sizes[1], count = kernel_tensor_count(&shape);
    Layout l = {channels, count / shape.sizes[0] / channels, count / channels};
    bool has_weight = between(0, 1), keeps = between(0, 1);
    g_auto(Both) x = filled(shape, -1, 3);
    shape.dtype = any_float();
    g_auto(Both) dy = filled(shape, -1, 1);
    g_auto(Both) y = poisoned(shape);
    g_auto(Both) dx = poisoned(shape);
    g_auto(Both) weight = filled(of_channels(channels, any_float()), 0.5, 2);
    g_auto(Both) bias = filled(of_channels(channels, any_float()), -1, 1);
    g_auto(Both) mean = poisoned(of_channels(channels, KERNEL_FP32));
    g_auto(Both) rstd = poisoned(of_channels(channels, KERNEL_FP32));
    g_auto(Both) running_mean = filled(of_channels(channels, KERNEL_FP32), -1, 1);
    g_auto(Both) running_var = filled(of_channels(channels, KERNEL_FP32), 0.5, 2);
    g_auto(Both) dw = poisoned(of_channels(channels, KERNEL_FP32));
    g_auto(Both) db = poisoned(of_channels(channels, KERNEL_FP32));
    g_autofree double *xs = numbers_of(&x), *dys = numbers_of(&dy), *ys = g_new(double, count);
    g_autofree double *dxs = g_new(double, count), *weights = numbers_of(&weight);
    g_autofree double *biases = numbers_of(&bias), *means = g_new(double, channels);
    g_autofree double *roots = g_new(double, channels), *dws = g_new0(double, channels);
    g_autofree double *dbs = g_new0(double, channels);
    g_autofree double *of_mean = numbers_of(&running_mean), *of_var = numbers_of(&running_var);
    for (size_t c = 0; c < channels; c++) {
        double squares, n = (double)l.n, by = has_weight ? weights[c] : 1;
        norm(&l, c, xs, &means[c], &squares);
        roots[c] = 1 / sqrt(squares / n + eps);
        of_mean[c] += keeps ? momentum * (means[c] - of_mean[c]) : 0;
        of_var[c] += keeps ? momentum * (squares / (n - 1) - of_var[c]) : 0;
        for (size_t j = 0; j < l.n; j++) {
            size_t at = element(&l, c, j);
            double normed = (xs[at] - means[c]) * roots[c];
            ys[at] = normed * by + (has_weight ? biases[c] : 0);
            dws[c] += dys[at] * normed;
            dbs[c] += dys[at];
        }
        for (size_t j = 0; j < l.n; j++) {
            size_t at = element(&l, c, j);
            double normed = (xs[at] - means[c]) * roots[c];
            dxs[at] = by * roots[c] * (dys[at] - dbs[c] / n - normed * dws[c] / n);
        }
    }
    expect(&y, ys);
    expect(&dx, dxs);
    expect(&mean, means);
    expect(&rstd, roots);
    expect(&running_mean, of_mean);
    expect(&running_var, of_var);
    expect(&dw, dws);
    expect(&db, dbs);
    const KernelCudaChannels given = {.weight = has_weight ? &weight.device : NULL,
                                      .bias = has_weight ? &bias.device : NULL,
                                      .mean = &mean.device,
                                      .rstd = &rstd.device,
                                      .running_mean = keeps ? &running_mean.device : NULL,
                                      .running_var = keeps ? &running_var.device : NULL,
                                      .momentum = momentum,
                                      .eps = eps};
    DEVICE_OK(kernel_cuda_channel_norm(device_lane, &y.device, &x.device, &given));
    is_near("normed", &y, 1e-5);
    is_near("mean", &mean, 1e-6);
    is_near("rstd", &rstd, 1e-6);
    is_near("running mean", &running_mean, 1e-6);
    is_near("running variance", &running_var, 1e-6);
    DEVICE_OK(kernel_cuda_channel_norm_backward(device_lane, &dx.device, &dw.device, &db.device,
                                                &dy.device, &x.device, &given));
    is_near("dx of a norm", &dx, 1e-4); /* of a mean and rstd that were rounded */
    is_near("dw of a norm", &dw, 1e-4);
    is_near("db of a norm", &db, 1e-5);
}

static void test_norm(void) {
    for (unsigned draw = 0; draw < 2 * DRAWS; draw++) {
        KernelTensor shape = {
            .dtype = any_float(),
            .n_dims = (unsigned)between(2, 4),
            .sizes = {between(2, 6), between(1, 5), between(1, 9), between(1, 9)}};
        check_norm(shape);
    }
    static const size_t long_ones[][3] = {{3, 2, 700}, {1, 3, 4099}, {7, 2, 901}, {20, 1, 411}};
    for (unsigned i = 0; i < G_N_ELEMENTS(long_ones);
         i++) { /* of several parts, the last shorter */
        KernelTensor shape = {.dtype = any_float(), .n_dims = 3};
        memcpy(shape.sizes, long_ones[i], sizeof long_ones[i]);
        check_norm(shape);
    }
}

static void add_tests(void) {
    DEVICE_TEST_ONCE("/kernels-cuda/windows/convolution", test_convolution);
    DEVICE_TEST_ONCE("/kernels-cuda/windows/convolution-large", test_large);
    DEVICE_TEST_ONCE("/kernels-cuda/windows/pool", test_pool);
    DEVICE_TEST_ONCE("/kernels-cuda/windows/norm", test_norm);
}

int main(int argc, char **argv) {
    return device_main(argc, argv, add_tests);
}
