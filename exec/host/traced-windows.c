/* exec/host/traced-windows.c - calls of traced networks that look through windows: convolutions, by
 * products of the windows written out as columns, and pooling; and norms by channels. */
#include <math.h>
#include <string.h>

#include "exec/host/traced-private.h"
#include "exec/traced/windows.h"
#include "kernels/host/products/matmul.h"
#include "kernels/host/traced/tensor-rows.h"

/* ---- columns -------------------------------------------------------------------------------- */

static void split(size_t number, const size_t *sizes, size_t *ret_at) {
    for (unsigned s = KERNEL_WINDOW_SIDES; s-- > 0; number /= sizes[s]) {
        ret_at[s] = number % sizes[s];
    }
}

/* Where number `in` of the window at a place lies in its channel; false: in the padding. */
static bool place_in(const KernelWindows *w, size_t place, size_t in, size_t *ret_at) {
    size_t at[KERNEL_WINDOW_SIDES], in_window[KERNEL_WINDOW_SIDES], lies = 0;
    split(place, w->made, at);
    split(in, w->window, in_window);
    for (unsigned s = 0; s < KERNEL_WINDOW_SIDES; s++) {
        int64_t here =
            (int64_t)at[s] * w->stride[s] - w->padding[s] + (int64_t)in_window[s] * w->apart[s];
        if (here < 0 || here >= (int64_t)w->size[s]) {
            return false;
        }
        lies = lies * w->size[s] + (size_t)here;
    }
    *ret_at = lies;
    return true;
}

/* A group's windows as columns [channels * window, places]; or, back, added to the channels. */
static void columns(const KernelWindows *w, float *channels, float *cols, size_t n_channels,
                    bool back) {
    size_t window = kernel_windows_area(w->window), places = kernel_windows_area(w->made);
    size_t area = kernel_windows_area(w->size);
    for (size_t row = 0; row < n_channels * window; row++) {
        float *channel = channels + row / window * area;
        for (size_t p = 0; p < places; p++) {
            size_t at;
            bool is_inside = place_in(w, p, row % window, &at);
            float *number = &cols[row * places + p];
            if (!back) {
                *number = is_inside ? channel[at] : 0;
            } else if (is_inside) {
                channel[at] += *number;
            }
        }
    }
}

/* What a group of a sample has of each tensor. */
typedef struct {
    size_t in, out, area, places, rows; /* of a group; rows: of its columns */
} Group;

static Group group_of(const KernelWindows *w) {
    Group group = {.in = w->in / w->groups,
                   .out = w->out / w->groups,
                   .area = kernel_windows_area(w->size),
                   .places = kernel_windows_area(w->made)};
    group.rows = group.in * kernel_windows_area(w->window);
    return group;
}

static float *scratch_for(TracedRun *r, const Group *g) {
    return traced_scratch(r, g->rows * g->places * sizeof(float));
}

/* A bias for each of so many channels, or 0. */
static void begin_with(float *y, const float *bias, size_t samples, size_t channels, size_t area) {
    for (size_t i = 0; i < samples * channels * area; i++) {
        y[i] = bias ? bias[i / area % channels] : 0;
    }
}

/* y [samples, out, places] of x [samples, in, area]. */
static void make(TracedRun *r, const KernelWindows *w, float *y, float *x, const float *weight,
                 const float *bias) {
    Group g = group_of(w);
    float *cols = scratch_for(r, &g);
    begin_with(y, bias, w->samples, w->out, g.places);
    for (size_t i = 0; i < w->samples * w->groups; i++) {
        columns(w, x + i * g.in * g.area, cols, g.in, false);
        kernel_gemm_f32(KERNEL_NO_TRANSPOSE, KERNEL_NO_TRANSPOSE, g.out, g.places, g.rows, 1,
                        weight + i % w->groups * g.out * g.rows, g.rows, cols, g.places, 1,
                        y + i * g.out * g.places, g.places);
    }
}

/* And back: x of y, which is a gradient of make(), or what a transposed convolution makes. */
static void make_back(TracedRun *r, const KernelWindows *w, float *x, const float *y,
                      const float *weight, const float *bias) {
    Group g = group_of(w);
    float *cols = scratch_for(r, &g);
    begin_with(x, bias, w->samples, w->in, g.area);
    for (size_t i = 0; i < w->samples * w->groups; i++) {
        kernel_gemm_f32(KERNEL_TRANSPOSE, KERNEL_NO_TRANSPOSE, g.rows, g.places, g.out, 1,
                        weight + i % w->groups * g.out * g.rows, g.rows, y + i * g.out * g.places,
                        g.places, 0, cols, g.places);
        columns(w, x + i * g.in * g.area, cols, g.in, true);
    }
}

/* The gradient of its weight, whichever of the two is the gradient that is given. */
static void learn(TracedRun *r, const KernelWindows *w, float *dw, const float *y, float *x) {
    Group g = group_of(w);
    float *cols = scratch_for(r, &g);
    for (size_t i = 0; i < w->samples * w->groups; i++) {
        columns(w, x + i * g.in * g.area, cols, g.in, false);
        kernel_gemm_f32(KERNEL_NO_TRANSPOSE, KERNEL_TRANSPOSE, g.out, g.rows, g.places, 1,
                        y + i * g.out * g.places, g.places, cols, g.places, i < w->groups ? 0 : 1,
                        dw + i % w->groups * g.out * g.rows, g.rows);
    }
}

/* (input, weight, bias, stride, padding, dilation, transposed, output_padding, groups) */
bool host_run_convolution(TracedRun *r, const TracedRule *rule, GError **error) {
    KernelWindows w = traced_convolution_windows(
        r->call, traced_tensor(r->call, 0), traced_tensor(r->call, 1), traced_made(r->call, 0), 3);
    float *x = (float *)traced_floats_of(r, 0), *y = traced_result_of(r, 0);
    const float *weight = traced_floats_of(r, 1), *bias = traced_floats_of(r, 2);
    if (traced_is_transposed(r->call, 3)) {
        make_back(r, &w, y, x, weight, bias);
    } else {
        make(r, &w, y, x, weight, bias);
    }
    return true;
}

static void add_up_channels(float *db, const float *dy, const KernelTensor *shape) {
    size_t channels = shape->sizes[1], n = kernel_tensor_count(shape) / channels;
    size_t area = n / shape->sizes[0];
    for (size_t c = 0; c < channels; c++) {
        double sum = 0;
        for (size_t i = 0; i < n; i++) {
            sum += dy[(i / area * channels + c) * area + i % area];
        }
        db[c] = (float)sum;
    }
}

/* (grad, input, weight, bias_sizes, stride, padding, dilation, transposed, output_padding, groups,
 * output_mask) */
bool host_run_convolution_backward(TracedRun *r, const TracedRule *rule, GError **error) {
    const KernelTensor *given = traced_tensor(r->call, 0), *xt = traced_tensor(r->call, 1),
                       *wt = traced_tensor(r->call, 2);
    KernelWindows w = traced_convolution_windows(r->call, xt, wt, given, 4);
    bool is_transposed = traced_is_transposed(r->call, 4);
    float *dy = (float *)traced_floats(r, given), *x = (float *)traced_floats(r, xt);
    const float *weight = traced_floats(r, wt);
    float *dx = traced_result_of(r, 0), *dw = traced_result_of(r, 1), *db = traced_result_of(r, 2);
    if (dw) {
        learn(r, &w, dw, is_transposed ? x : dy, is_transposed ? dy : x);
    }
    if (dx && is_transposed) {
        make(r, &w, dx, dy, weight, NULL);
    } else if (dx) {
        make_back(r, &w, dx, dy, weight, NULL);
    }
    if (db) {
        add_up_channels(db, dy, given);
    }
    return true;
}

/* ---- the largest of a window ---------------------------------------------------------------- */

/* (self, kernel_size, stride, padding, dilation, ceil_mode): where it lies in its channel, too. */
bool host_run_max_pool(TracedRun *r, const TracedRule *rule, GError **error) {
    const KernelTensor *x = traced_tensor(r->call, 0), *made = traced_made(r->call, 0);
    KernelWindows w = traced_pool_windows(r->call, x, made, 1);
    size_t places = kernel_windows_area(w.made), area = kernel_windows_area(w.size);
    const float *from = traced_floats(r, x);
    float *y = traced_result_of(r, 0);
    int64_t *found = traced_scratch(r, kernel_tensor_count(made) * sizeof *found);
    for (size_t i = 0; i < kernel_tensor_count(made); i++) {
        const float *channel = from + i / places * area;
        y[i] = -INFINITY;
        found[i] = -1;
        for (size_t k = 0; k < kernel_windows_area(w.window); k++) {
            size_t at;
            if (place_in(&w, i % places, k, &at) &&
                (found[i] < 0 || channel[at] > y[i] || channel[at] != channel[at])) {
                y[i] = channel[at];
                found[i] = (int64_t)at;
            }
        }
    }
    kernel_tensor_write_i64(traced_made(r->call, 1), found);
    return true;
}

/* (grad, self, kernel_size, stride, padding, dilation, ceil_mode, indices) */
bool host_run_max_pool_backward(TracedRun *r, const TracedRule *rule, GError **error) {
    const KernelTensor *given = traced_tensor(r->call, 0), *x = traced_tensor(r->call, 1);
    KernelWindows w = traced_pool_windows(r->call, x, given, 2);
    size_t places = kernel_windows_area(w.made), area = kernel_windows_area(w.size);
    const float *dy = traced_floats(r, given);
    const int64_t *found = traced_integers(r, traced_tensor(r->call, 7));
    float *dx = traced_result_of(r, 0);
    memset(dx, 0, kernel_tensor_count(x) * sizeof *dx);
    for (size_t i = 0; i < kernel_tensor_count(given); i++) {
        if (found[i] < 0 || (size_t)found[i] >= area) {
            return traced_bad_index(error, "the places of a pool");
        }
        dx[i / places * area + (size_t)found[i]] += dy[i];
    }
    return true;
}

/* ---- norms by channels ---------------------------------------------------------------------- */

/* x [samples, channels, area]. Element j of a channel, of all samples. */
typedef struct {
    size_t channels, area, n; /* n: elements of a channel */
} Channels;

static Channels channels_of(const KernelTensor *x) {
    size_t n = kernel_tensor_count(x);
    return (Channels){
        .channels = x->sizes[1], .area = n / x->sizes[0] / x->sizes[1], .n = n / x->sizes[1]};
}

static size_t element(const Channels *c, size_t channel, size_t j) {
    return (j / c->area * c->channels + channel) * c->area + j % c->area;
}

static void follow(const KernelTensor *running, size_t channel, double now, double momentum) {
    float *number = (float *)running->data + channel * running->strides[0];
    *number = (float)((1 - momentum) * *number + momentum * now);
}

/* (input, weight, bias, running_mean, running_var, training, momentum, eps) */
bool host_run_batch_norm(TracedRun *r, const TracedRule *rule, GError **error) {
    const KernelTensor *x = traced_tensor(r->call, 0);
    Channels c = channels_of(x);
    const float *from = traced_floats(r, x);
    const float *weight = traced_floats_of(r, 1), *bias = traced_floats_of(r, 2);
    float *y = traced_result_of(r, 0), *means = traced_result_of(r, 1);
    float *roots = traced_result_of(r, 2);
    double momentum = traced_arg(r->call, 6)->number, eps = traced_arg(r->call, 7)->number;
    for (size_t channel = 0; channel < c.channels; channel++) {
        double sum = 0, squares = 0;
        for (size_t j = 0; j < c.n; j++) {
            sum += from[element(&c, channel, j)];
        }
        double mean = sum / (double)c.n;
        for (size_t j = 0; j < c.n; j++) {
            double off = from[element(&c, channel, j)] - mean;
            squares += off * off;
        }
        double root = 1 / sqrt(squares / (double)c.n + eps);
        for (size_t j = 0; j < c.n; j++) {
            size_t at = element(&c, channel, j);
            y[at] = (float)((from[at] - mean) * root * (weight ? weight[channel] : 1) +
                            (bias ? bias[channel] : 0));
        }
        if (means) {
            means[channel] = (float)mean;
        }
        if (roots) {
            roots[channel] = (float)root;
        }
        if (traced_is(r->call, 3)) {
            follow(traced_tensor(r->call, 3), channel, mean, momentum);
            follow(traced_tensor(r->call, 4), channel, squares / (double)(c.n - 1), momentum);
        }
    }
    return true;
}

/* (grad, input, weight, running_mean, running_var, save_mean, save_invstd, train, eps, mask) */
bool host_run_batch_norm_backward(TracedRun *r, const TracedRule *rule, GError **error) {
    const KernelTensor *x = traced_tensor(r->call, 1);
    Channels c = channels_of(x);
    const float *dy = traced_floats_of(r, 0), *from = traced_floats(r, x);
    const float *weight = traced_floats_of(r, 2), *means = traced_floats_of(r, 5);
    const float *roots = traced_floats_of(r, 6);
    float *dx = traced_result_of(r, 0), *dw = traced_result_of(r, 1), *db = traced_result_of(r, 2);
    for (size_t channel = 0; channel < c.channels; channel++) {
        double mean = means[channel], root = roots[channel], sum = 0, product = 0;
        for (size_t j = 0; j < c.n; j++) {
            size_t at = element(&c, channel, j);
            sum += dy[at];
            product += dy[at] * (from[at] - mean) * root;
        }
        for (size_t j = 0; dx && j < c.n; j++) {
            size_t at = element(&c, channel, j);
            double normed = (from[at] - mean) * root;
            dx[at] = (float)((weight ? weight[channel] : 1) * root *
                             (dy[at] - (sum + normed * product) / (double)c.n));
        }
        if (dw) {
            dw[channel] = (float)product;
        }
        if (db) {
            db[channel] = (float)sum;
        }
    }
    return true;
}
