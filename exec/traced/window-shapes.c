/* exec/traced/window-shapes.c - as shapes.c, of convolutions, pools and norms by channels. */
#include "exec/traced/known.h"
#include "exec/traced/windows.h"

enum {
    MOST = 1 << 30 /* of a number that moves windows */
};

static bool are_same(const KernelTensor *a, const KernelTensor *b) {
    bool all = a->n_dims == b->n_dims;
    for (unsigned i = 0; all && i < a->n_dims; i++) {
        all = a->sizes[i] == b->sizes[i];
    }
    return all;
}

/* Whether it has this shape, or is not asked for at all. */
static bool is_asked_as(const TracedCall *c, unsigned i, const KernelTensor *shape) {
    return !traced_makes(c, i) || are_same(traced_made(c, i), shape);
}

/* A number a channel. */
static bool is_per_channel(const KernelTensor *t, size_t channels) {
    return t->n_dims == 1 && t->sizes[0] == channels;
}

/* An argument that may be missing. */
static bool may_be_per_channel(const TracedCall *c, unsigned i, size_t channels) {
    return !traced_is(c, i) || is_per_channel(traced_tensor(c, i), channels);
}

static bool is_asked_per_channel(const TracedCall *c, unsigned i, size_t channels) {
    return !traced_makes(c, i) || is_per_channel(traced_made(c, i), channels);
}

/* ---- windows -------------------------------------------------------------------------------- */

/* Lists of numbers, one for each side, one for all, or none. */
static bool are_lists(const TracedCall *c, unsigned first, unsigned n_lists, unsigned n_sides) {
    bool all = true;
    for (unsigned i = first; i < first + n_lists && all; i++) {
        const TracedArg *list = traced_arg(c, i);
        all = list->n <= 1 || list->n == n_sides;
        for (unsigned j = 0; j < list->n && all; j++) {
            const TracedArg *item = traced_item(c, list, j);
            all = item->of == TRACED_NUMBER && item->integer == item->number &&
                  item->integer >= 0 && item->integer <= MOST;
        }
    }
    return all;
}

/* How many places a window has on a side; rounds up where what is left over counts, too, unless
 * that place began behind what is there. */
static int64_t places_of(const KernelWindows *w, unsigned side, bool rounds_up) {
    int64_t size = (int64_t)w->size[side], stride = w->stride[side], padding = w->padding[side];
    int64_t reach = w->apart[side] * ((int64_t)w->window[side] - 1) + 1;
    int64_t room = size + 2 * padding - reach;
    int64_t last = (room + (rounds_up ? stride - 1 : 0)) / stride;
    return room < 0 ? 0 : rounds_up && last * stride >= size + padding ? last : last + 1;
}

static bool moves(const KernelWindows *w, bool rounds_up) {
    bool all = w->samples > 0 && w->in > 0 && w->out > 0;
    for (unsigned s = 0; s < KERNEL_WINDOW_SIDES && all; s++) {
        all = w->size[s] > 0 && w->size[s] <= MOST && w->window[s] > 0 && w->window[s] <= MOST &&
              w->stride[s] > 0 && w->apart[s] > 0 && w->made[s] > 0 &&
              places_of(w, s, rounds_up) == (int64_t)w->made[s];
    }
    return all;
}

/* ---- convolutions --------------------------------------------------------------------------- */

/* first: stride, padding, dilation, transposed, output_padding, groups. */
static bool convolves(const TracedCall *c, const KernelTensor *x, const KernelTensor *weight,
                      const KernelTensor *y, unsigned first) {
    unsigned n = x->n_dims;
    int64_t n_groups = traced_integer(c, first + 5);
    if (weight->n_dims != n || y->n_dims != n || !are_lists(c, first, 3, n - 2) || n_groups < 1) {
        return false;
    }
    KernelWindows w = traced_convolution_windows(c, x, weight, y, first);
    return w.in % w.groups == 0 && w.out % w.groups == 0 && y->sizes[0] == w.samples &&
           weight->sizes[0] == w.out && weight->sizes[1] == w.in / w.groups && moves(&w, false);
}

bool traced_fits_convolution(const TracedCall *c) {
    const KernelTensor *y = traced_made(c, 0);
    return convolves(c, traced_tensor(c, 0), traced_tensor(c, 1), y, 3) &&
           may_be_per_channel(c, 2, y->sizes[1]);
}

bool traced_fits_convolution_backward(const TracedCall *c) {
    const KernelTensor *dy = traced_tensor(c, 0), *x = traced_tensor(c, 1);
    const KernelTensor *weight = traced_tensor(c, 2);
    return convolves(c, x, weight, dy, 4) && is_asked_as(c, 0, x) && is_asked_as(c, 1, weight) &&
           is_asked_per_channel(c, 2, dy->sizes[1]);
}

/* ---- pools ---------------------------------------------------------------------------------- */

/* first: kernel_size, stride, padding, dilation, ceil_mode. */
static bool pools(const TracedCall *c, const KernelTensor *x, const KernelTensor *y,
                  unsigned first) {
    if (y->n_dims != x->n_dims || !are_lists(c, first, 4, x->n_dims - 2)) {
        return false;
    }
    KernelWindows w = traced_pool_windows(c, x, y, first);
    return y->sizes[0] == w.samples && w.out == w.in && moves(&w, traced_integer(c, first + 4));
}

bool traced_fits_pool(const TracedCall *c) {
    return c->n_made == 2 && traced_makes(c, 1) &&
           pools(c, traced_tensor(c, 0), traced_made(c, 0), 1) &&
           are_same(traced_made(c, 1), traced_made(c, 0));
}

bool traced_fits_pool_backward(const TracedCall *c) {
    const KernelTensor *dy = traced_tensor(c, 0), *x = traced_tensor(c, 1);
    return pools(c, x, dy, 2) && are_same(traced_tensor(c, 7), dy) &&
           are_same(traced_made(c, 0), x);
}

/* ---- norms by channels ---------------------------------------------------------------------- */

bool traced_fits_batch_norm(const TracedCall *c) {
    const KernelTensor *x = traced_tensor(c, 0);
    size_t channels = x->n_dims > 1 ? x->sizes[1] : 0;
    bool all = channels > 0 && traced_makes(c, 0) && are_same(traced_made(c, 0), x) &&
               traced_is(c, 3) == traced_is(c, 4);
    for (unsigned i = 1; i <= 4 && all; i++) {
        all = may_be_per_channel(c, i, channels);
    }
    return all && is_asked_per_channel(c, 1, channels) && is_asked_per_channel(c, 2, channels);
}

bool traced_fits_batch_norm_backward(const TracedCall *c) {
    const KernelTensor *x = traced_tensor(c, 1);
    size_t channels = x->n_dims > 1 ? x->sizes[1] : 0;
    return channels > 0 && kernel_tensor_count(x) > 0 && are_same(traced_tensor(c, 0), x) &&
           may_be_per_channel(c, 2, channels) && is_per_channel(traced_tensor(c, 5), channels) &&
           is_per_channel(traced_tensor(c, 6), channels) && is_asked_as(c, 0, x) &&
           is_asked_per_channel(c, 1, channels) && is_asked_per_channel(c, 2, channels);
}
