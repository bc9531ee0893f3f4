/* exec/host/traced-windows.c - calls of traced networks that look through windows: convolutions, by
 * products of the windows written out as columns, and pooling; and norms by channels.
 *
 * One and two sides that windows move along; a single one is the second of two. */
#include <math.h>
#include <string.h>

#include "exec/host/traced-private.h"
#include "kernels/host/matmul.h"
#include "kernels/host/tensor-rows.h"

enum {
    SIDES = 2
};

typedef struct {
    size_t samples, in, out, groups; /* channels of all groups */
    size_t size[SIDES], made[SIDES], window[SIDES];
    int64_t stride[SIDES], padding[SIDES], apart[SIDES];
} Windows;

/* Of the last side one, of two both; one number may stand for both. */
static void take_pair(const TracedRun *r, unsigned i, int64_t missing, unsigned n_sides,
                      int64_t *ret_pair) {
    const TracedArg *list = traced_arg(r, i);
    for (unsigned s = 0; s < SIDES; s++) {
        bool is_there = s >= SIDES - n_sides && list->of == TRACED_LIST && list->n > 0;
        unsigned at = MIN(s - (SIDES - n_sides), list->n - 1);
        ret_pair[s] = is_there ? traced_item(r->call, list, at)->integer : missing;
    }
}

static void take_sizes(const KernelTensor *t, size_t *ret_sizes) {
    unsigned n = t->n_dims - 2;
    for (unsigned s = 0; s < SIDES; s++) {
        ret_sizes[s] = s >= SIDES - n ? t->sizes[2 + s - (SIDES - n)] : 1;
    }
}

/* first: where the arguments begin that say how windows move. */
static Windows windows_of(const TracedRun *r, const KernelTensor *x, const KernelTensor *w,
                          const KernelTensor *y, unsigned first, unsigned groups) {
    unsigned n = x->n_dims - 2;
    Windows windows = {.samples = x->sizes[0],
                       .in = x->sizes[1],
                       .out = y->sizes[1],
                       .groups = (size_t)traced_integer(r, groups)};
    take_sizes(x, windows.size);
    take_sizes(y, windows.made);
    take_sizes(w, windows.window);
    take_pair(r, first, 1, n, windows.stride);
    take_pair(r, first + 1, 0, n, windows.padding);
    take_pair(r, first + 2, 1, n, windows.apart);
    return windows;
}

/* ---- columns -------------------------------------------------------------------------------- */

/* Where the number of a window lies in its channel; false: in the padding. */
static bool place_in(const Windows *w, const size_t *at, const size_t *in_window, size_t *ret) {
    size_t place = 0;
    for (unsigned s = 0; s < SIDES; s++) {
        int64_t here =
            (int64_t)at[s] * w->stride[s] - w->padding[s] + (int64_t)in_window[s] * w->apart[s];
        if (here < 0 || here >= (int64_t)w->size[s]) {
            return false;
        }
        place = place * w->size[s] + (size_t)here;
    }
    *ret = place;
    return true;
}

/* A group's windows as columns [channels * window, places]; or, back, added to the channels. */
static void columns(const Windows *w, float *channels, float *cols, size_t n_channels, bool back) {
    size_t window = w->window[0] * w->window[1], places = w->made[0] * w->made[1];
    size_t area = w->size[0] * w->size[1];
    for (size_t row = 0; row < n_channels * window; row++) {
        size_t in_window[] = {row % window / w->window[1], row % w->window[1]};
        float *channel = channels + row / window * area;
        for (size_t p = 0; p < places; p++) {
            size_t at[] = {p / w->made[1], p % w->made[1]}, place;
            bool is_inside = place_in(w, at, in_window, &place);
            float *number = &cols[row * places + p];
            if (!back) {
                *number = is_inside ? channel[place] : 0;
            } else if (is_inside) {
                channel[place] += *number;
            }
        }
    }
}

/* What a group of a sample has of each tensor. */
typedef struct {
    size_t in, out, area, places, rows; /* of a group; rows: of its columns */
} Group;

static Group group_of(const Windows *w) {
    Group group = {.in = w->in / w->groups,
                   .out = w->out / w->groups,
                   .area = w->size[0] * w->size[1],
                   .places = w->made[0] * w->made[1]};
    group.rows = group.in * w->window[0] * w->window[1];
    return group;
}

/* (input, weight, bias, stride, padding, dilation, transposed, output_padding, groups) */
static bool run_convolution(TracedRun *r, const TracedKernel *kernel, GError **error) {
    Windows w = windows_of(r, traced_tensor(r, 0), traced_tensor(r, 1), traced_made(r, 0), 3, 8);
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
static bool run_convolution_backward(TracedRun *r, const TracedKernel *kernel, GError **error) {
    const KernelTensor *xt = traced_tensor(r, 1), *wt = traced_tensor(r, 2);
    Windows w = windows_of(r, xt, wt, traced_tensor(r, 0), 4, 9);
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

static const char *convolution_unless(const TracedCall *call, unsigned x, unsigned transposed) {
    unsigned n = call->args[x].tensor.n_dims;
    return call->args[transposed].integer ? "transposed"
           : n != 3 && n != 4             ? "of other than one or two sides"
                                          : NULL;
}

static const char *convolution_why_not(const TracedCall *call) {
    return convolution_unless(call, 0, 6);
}

static const char *convolution_backward_why_not(const TracedCall *call) {
    return convolution_unless(call, 1, 7);
}

/* ---- the largest of a window ---------------------------------------------------------------- */

/* (self, kernel_size, stride, padding, dilation, ceil_mode): where it lies in its channel, too. */
static bool run_max_pool(TracedRun *r, const TracedKernel *kernel, GError **error) {
    const KernelTensor *x = traced_tensor(r, 0), *made = traced_made(r, 0);
    Windows w = {.samples = 1, .in = 1};
    int64_t window[SIDES];
    take_sizes(x, w.size);
    take_sizes(made, w.made);
    take_pair(r, 1, 1, SIDES, window);
    bool has_stride = traced_arg(r, 2)->n > 0; /* else windows lie side by side */
    take_pair(r, has_stride ? 2 : 1, 1, SIDES, w.stride);
    take_pair(r, 3, 0, SIDES, w.padding);
    take_pair(r, 4, 1, SIDES, w.apart);
    size_t places = w.made[0] * w.made[1], area = w.size[0] * w.size[1];
    const float *from = traced_floats(r, x);
    float *y = traced_result_of(r, 0);
    int64_t *found = traced_scratch(r, kernel_tensor_count(made) * sizeof *found);
    for (size_t i = 0; i < kernel_tensor_count(made); i++) {
        size_t at[] = {i % places / w.made[1], i % w.made[1]}, place;
        const float *channel = from + i / places * area;
        y[i] = -INFINITY;
        for (int64_t k = 0; k < window[0] * window[1]; k++) {
            size_t in_window[] = {(size_t)(k / window[1]), (size_t)(k % window[1])};
            if (place_in(&w, at, in_window, &place) &&
                (channel[place] > y[i] || channel[place] != channel[place])) {
                y[i] = channel[place];
                found[i] = (int64_t)place;
            }
        }
    }
    kernel_tensor_write_i64(traced_made(r, 1), found);
    return true;
}

/* (grad, self, kernel_size, stride, padding, dilation, ceil_mode, indices) */
static bool run_max_pool_backward(TracedRun *r, const TracedKernel *kernel, GError **error) {
    const KernelTensor *given = traced_tensor(r, 0), *x = traced_tensor(r, 1);
    size_t sizes[SIDES], made[SIDES];
    take_sizes(x, sizes);
    take_sizes(given, made);
    size_t places = made[0] * made[1], area = sizes[0] * sizes[1];
    const float *dy = traced_floats(r, given);
    const int64_t *found = traced_integers(r, traced_tensor(r, 7));
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

static const char *pool_why_not(const TracedCall *call) {
    return call->args[0].tensor.n_dims == 4 ? NULL : "of other than four sides";
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
static bool run_batch_norm(TracedRun *r, const TracedKernel *kernel, GError **error) {
    const KernelTensor *x = traced_tensor(r, 0);
    Channels c = channels_of(x);
    const float *from = traced_floats(r, x);
    const float *weight = traced_floats_of(r, 1), *bias = traced_floats_of(r, 2);
    float *y = traced_result_of(r, 0), *means = traced_result_of(r, 1);
    float *roots = traced_result_of(r, 2);
    double momentum = traced_arg(r, 6)->number, eps = traced_arg(r, 7)->number;
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
        means[channel] = (float)mean;
        roots[channel] = (float)root;
        if (traced_is(r, 3)) {
            follow(traced_tensor(r, 3), channel, mean, momentum);
            follow(traced_tensor(r, 4), channel, squares / (double)(c.n - 1), momentum);
        }
    }
    return true;
}

/* (grad, input, weight, running_mean, running_var, save_mean, save_invstd, train, eps, mask) */
static bool run_batch_norm_backward(TracedRun *r, const TracedKernel *kernel, GError **error) {
    const KernelTensor *x = traced_tensor(r, 1);
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

static const char *batch_norm_unless(const TracedCall *call, unsigned training, unsigned running) {
    const TracedArg *kept = &call->args[running];
    return !call->args[training].integer ? "of numbers that are not the batch's"
           : kept->of == TRACED_TENSOR && kept->tensor.dtype != KERNEL_FP32
               ? "with running numbers of other than fp32"
               : NULL;
}

static const char *batch_norm_why_not(const TracedCall *call) {
    return batch_norm_unless(call, 5, 3);
}

static const char *batch_norm_backward_why_not(const TracedCall *call) {
    return batch_norm_unless(call, 7, 3);
}

const TracedKernel traced_windows_kernels[] = {
    {"convolution", run_convolution, convolution_why_not, 0, "tt?lllnln"},
    {"convolution_backward", run_convolution_backward, convolution_backward_why_not, 0,
     "ttt.lllnlnl"},
    {"max_pool2d_with_indices", run_max_pool, pool_why_not, 0, "4lllln"},
    {"max_pool2d_with_indices_backward", run_max_pool_backward, pool_why_not, 0, "44llllnt"},
    {"native_batch_norm", run_batch_norm, batch_norm_why_not, 0, "t????nnn"},
    {"native_batch_norm_backward", run_batch_norm_backward, batch_norm_backward_why_not, 0,
     "tt???ttnn"},
    {0},
};
