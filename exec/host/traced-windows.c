/* exec/host/traced-windows.c - calls of traced networks that look through windows: convolutions, by
 * products of the windows written out as columns, and pooling; and norms by channels. */
#include <math.h>
#include <string.h>

#include "exec/host/traced-private.h"
#include "exec/traced/windows.h"
#include "kernels/host/matmul.h"
#include "kernels/host/tensor-rows.h"

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

/* (input, weight, bias, stride, padding, dilation, transposed, output_padding, groups) */
bool host_run_convolution(TracedRun *r, const TracedRule *rule, GError **error) {
    KernelWindows w =
        traced_convolution_windows(r->call, traced_tensor(r->call, 0), traced_tensor(r->call, 1),
                                   traced_made(r->call, 0), 3, 8);
    Group g = group_of(&w);
    float *x = (float *)traced_floats_of(r, 0), *y = traced_result_of(r, 0);
    const float *weight = traced_floats_of(r, 1), *bias = traced_floats_of(r, 2);
    float *cols = traced_scratch(r, g.rows * g.places * sizeof *cols);
    for (size_t i = 0; i < w.samples * w.groups; i++) {
        size_t group = i % w.groups;
        float *made = y + i * g.out * g.places;
        columns(&w, x + i * g.in * g.area, cols, g.in, false);
        for (size_t c = 0; bias && c < g.out * g.places; c++) {
            made[c] = bias[group * g.out + c / g.places];
        }
        kernel_gemm_f32(KERNEL_NO_TRANSPOSE, KERNEL_NO_TRANSPOSE, g.out, g.places, g.rows, 1,
                        weight + group * g.out * g.rows, g.rows, cols, g.places, bias ? 1 : 0, made,
                        g.places);
    }
    return true;
}

/* (grad, input, weight, bias_sizes, stride, padding, dilation, transposed, output_padding, groups,
 * output_mask) */
bool host_run_convolution_backward(TracedRun *r, const TracedRule *rule, GError **error) {
    const KernelTensor *xt = traced_tensor(r->call, 1), *wt = traced_tensor(r->call, 2);
    KernelWindows w = traced_convolution_windows(r->call, xt, wt, traced_tensor(r->call, 0), 4, 9);
    Group g = group_of(&w);
    const float *dy = traced_floats_of(r, 0), *weight = traced_floats(r, wt);
    float *x = (float *)traced_floats(r, xt);
    float *dx = traced_result_of(r, 0), *dw = traced_result_of(r, 1), *db = traced_result_of(r, 2);
    float *cols = traced_scratch(r, g.rows * g.places * sizeof *cols);
    if (dx) {
        memset(dx, 0, kernel_tensor_count(xt) * sizeof *dx);
    }
    for (size_t i = 0; i < w.samples * w.groups; i++) {
        size_t group = i % w.groups;
        const float *given = dy + i * g.out * g.places;
        if (dw) {
            columns(&w, x + i * g.in * g.area, cols, g.in, false);
            kernel_gemm_f32(KERNEL_NO_TRANSPOSE, KERNEL_TRANSPOSE, g.out, g.rows, g.places, 1,
                            given, g.places, cols, g.places, i < w.groups ? 0 : 1,
                            dw + group * g.out * g.rows, g.rows);
        }
        if (dx) {
            kernel_gemm_f32(KERNEL_TRANSPOSE, KERNEL_NO_TRANSPOSE, g.rows, g.places, g.out, 1,
                            weight + group * g.out * g.rows, g.rows, given, g.places, 0, cols,
                            g.places);
            columns(&w, dx + i * g.in * g.area, cols, g.in, true);
        }
    }
    for (size_t c = 0; db && c < w.out; c++) {
        double sum = 0;
        for (size_t i = 0; i < w.samples * g.places; i++) {
            sum += dy[(i / g.places * w.out + c) * g.places + i % g.places];
        }
        db[c] = (float)sum;
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
