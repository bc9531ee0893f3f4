/* exec/traced/shapes.c - whether the sizes of a call's tensors go together, as far as kernels
 * lean on it without looking. A network that was traced is sound; a plan may have been edited.
 * Of what looks through windows, and norms by channels: window-shapes.c.
 */
#include "exec/traced/each.h"
#include "exec/traced/known.h"

static size_t count(const TracedArg *arg) {
    return arg->of == TRACED_TENSOR ? kernel_tensor_count(&arg->tensor) : 0;
}

static bool is_side_of(const TracedArg *arg, const TracedArg *side) {
    int64_t n = (int64_t)MAX(1, arg->tensor.n_dims);
    return side->integer >= -n && side->integer < n;
}

/* Whether both have as many elements, however these are arranged. */
static bool are_alike(const TracedArg *a, const TracedArg *b) {
    return a->tensor.n_dims == b->tensor.n_dims && count(a) == count(b) && count(a) > 0;
}

/* Whether it has that many elements, or is not given at all. */
static bool has_count(const TracedArg *arg, size_t wanted) {
    return arg->of != TRACED_TENSOR || count(arg) == wanted;
}

/* ---- element by element --------------------------------------------------------------------- */

bool traced_fits_each(const TracedCall *c) {
    bool all = c->n_made == 1 && c->made[0].of == TRACED_TENSOR;
    for (unsigned i = 0; i < c->n_args && all; i++) {
        const TracedArg *arg = &c->args[i];
        all = arg->of != TRACED_TENSOR || traced_widens_to(&arg->tensor, &c->made[0].tensor);
    }
    return all;
}

/* ---- rows ----------------------------------------------------------------------------------- */

bool traced_fits_softmax(const TracedCall *c) {
    return are_alike(&c->args[0], &c->made[0]) && is_side_of(&c->args[0], &c->args[1]);
}

bool traced_fits_softmax_backward(const TracedCall *c) {
    return are_alike(&c->args[0], &c->args[1]) && are_alike(&c->args[1], &c->made[0]) &&
           is_side_of(&c->args[1], &c->args[2]);
}

/* How wide the rows are that are normalized; 0: they do not fill the tensor. */
static size_t norm_width(const TracedCall *c, const TracedArg *x, const TracedArg *shape) {
    size_t width = 1, n = count(x);
    for (unsigned i = 0; i < shape->n && width > 0; i++) {
        int64_t side = traced_item(c, shape, i)->integer;
        width = side > 0 && (size_t)side <= n / width ? width * (size_t)side : 0;
    }
    return width > 0 && n > 0 && n % width == 0 ? width : 0;
}

/* (x, shape, weight, bias, eps): y, and numbers of each row. */
bool traced_fits_norm(const TracedCall *c) {
    const TracedArg *x = &c->args[0];
    size_t width = norm_width(c, x, &c->args[1]), rows = width > 0 ? count(x) / width : 0;
    bool all = width > 0 && count(&c->made[0]) == count(x) && has_count(&c->args[2], width) &&
               has_count(&c->args[3], width);
    for (unsigned i = 1; i < c->n_made; i++) {
        all = all && has_count(&c->made[i], rows);
    }
    return all;
}

/* (dy, x, shape, numbers of each row, parameters): dx, and their gradients. */
static bool is_norm_backward(const TracedCall *c, unsigned n_numbers) {
    const TracedArg *x = &c->args[1];
    size_t width = norm_width(c, x, &c->args[2]), rows = width > 0 ? count(x) / width : 0;
    bool all = width > 0 && count(&c->args[0]) == count(x) && has_count(&c->made[0], count(x));
    for (unsigned i = 3; i < c->n_args && all; i++) {
        all = has_count(&c->args[i], i < 3 + n_numbers ? rows : width);
    }
    for (unsigned i = 1; i < c->n_made && all; i++) {
        all = has_count(&c->made[i], width);
    }
    return all;
}

bool traced_fits_layer_norm_backward(const TracedCall *c) {
    return is_norm_backward(c, 2);
}

bool traced_fits_rms_norm_backward(const TracedCall *c) {
    return is_norm_backward(c, 1);
}

/* What is summed has no side any more, or one of 1; NULL: all are. */
static bool is_sum_of(const KernelTensor *sum, const KernelTensor *x, const bool *is_summed) {
    bool keeps = sum->n_dims == x->n_dims, is = true;
    unsigned at = 0;
    for (unsigned i = 0; is && i < x->n_dims; i++) {
        bool is_gone = !is_summed || is_summed[i];
        if (keeps || !is_gone) {
            is = at < sum->n_dims && sum->sizes[at] == (is_gone ? 1 : x->sizes[i]);
            at++;
        }
    }
    return is && at == sum->n_dims;
}

/* Behind the tensor may stand a list of sides. */
bool traced_fits_sum(const TracedCall *c) {
    const TracedArg *x = &c->args[0], *list = &c->args[1];
    bool has_list = c->n_args > 1 && list->of == TRACED_LIST && list->n > 0;
    bool is_summed[KERNEL_TENSOR_SIDES] = {false};
    for (unsigned i = 0; has_list && i < list->n; i++) {
        const TracedArg *side = traced_item(c, list, i);
        if (!is_side_of(x, side)) {
            return false;
        }
        is_summed[traced_side(side->integer, MAX(1, x->tensor.n_dims))] = true;
    }
    return count(x) > 0 && c->made[0].of == TRACED_TENSOR &&
           is_sum_of(&c->made[0].tensor, &x->tensor, has_list ? is_summed : NULL);
}

/* ---- losses and tables ---------------------------------------------------------------------- */

bool traced_fits_nll(const TracedCall *c) {
    const TracedArg *x = &c->args[0];
    return count(x) > 0 && count(&c->args[1]) == x->tensor.sizes[0] && count(&c->made[0]) == 1 &&
           count(&c->made[1]) == 1;
}

bool traced_fits_nll_backward(const TracedCall *c) {
    const TracedArg *x = &c->args[1];
    return count(x) > 0 && count(&c->args[0]) == 1 && count(&c->args[2]) == x->tensor.sizes[0] &&
           count(&c->args[6]) == 1 && count(&c->made[0]) == count(x);
}

bool traced_fits_mse(const TracedCall *c) {
    return count(&c->made[0]) == 1 && traced_widens_to(&c->args[1].tensor, &c->args[0].tensor);
}

bool traced_fits_embedding(const TracedCall *c) {
    return count(&c->made[0]) == count(&c->args[1]) * c->args[0].tensor.sizes[1];
}

bool traced_fits_embedding_backward(const TracedCall *c) {
    const KernelTensor *made = &c->made[0].tensor;
    return made->n_dims == 2 && count(&c->args[0]) == count(&c->args[1]) * made->sizes[1];
}

/* ---- products ------------------------------------------------------------------------------- */

/* Matrices, or as many of each. */
static bool is_product(const TracedCall *c, const TracedArg *a, const TracedArg *b) {
    const KernelTensor *left = &a->tensor, *right = &b->tensor, *made = &c->made[0].tensor;
    unsigned n = left->n_dims;
    return left->sizes[n - 1] == right->sizes[n - 2] && made->n_dims == n &&
           made->sizes[n - 1] == right->sizes[n - 1] && made->sizes[n - 2] == left->sizes[n - 2] &&
           (n == 2 || (left->sizes[0] == right->sizes[0] && made->sizes[0] == left->sizes[0]));
}

bool traced_fits_mm(const TracedCall *c) {
    return is_product(c, &c->args[0], &c->args[1]);
}

bool traced_fits_addmm(const TracedCall *c) {
    return is_product(c, &c->args[1], &c->args[2]) &&
           traced_widens_to(&c->args[0].tensor, &c->made[0].tensor);
}

/* ---- attention ------------------------------------------------------------------------------ */

/* [batch, heads, rows, keys] */
static bool is_of_scores(const TracedArg *arg, const KernelTensor *q, const KernelTensor *k) {
    const KernelTensor *t = &arg->tensor;
    return arg->of != TRACED_TENSOR || count(arg) == 0 ||
           (t->n_dims == 4 && t->sizes[0] == q->sizes[0] && t->sizes[1] == q->sizes[1] &&
            t->sizes[2] == q->sizes[2] && t->sizes[3] == k->sizes[2]);
}

/* q, k and v stand one behind the other, each [batch, heads, seq, dim]; several heads of q may
 * share one of k and v. */
static bool are_queried(const TracedArg *first) {
    const KernelTensor *q = &first[0].tensor, *k = &first[1].tensor, *v = &first[2].tensor;
    return count(&first[0]) > 0 && count(&first[1]) > 0 && count(&first[2]) > 0 &&
           k->sizes[0] == q->sizes[0] && v->sizes[0] == q->sizes[0] &&
           q->sizes[1] % k->sizes[1] == 0 && v->sizes[1] == k->sizes[1] &&
           v->sizes[2] == k->sizes[2] && k->sizes[3] == q->sizes[3];
}

static size_t attended_count(const TracedArg *first) {
    return count(&first[0]) / first[0].tensor.sizes[3] * first[2].tensor.sizes[3];
}

/* Makes what is attended to, and of each row the logarithm of its sum, or nothing of it. */
bool traced_fits_attention(const TracedCall *c) {
    const KernelTensor *q = &c->args[0].tensor, *sums = &c->made[1].tensor;
    return are_queried(&c->args[0]) && count(&c->made[0]) == attended_count(&c->args[0]) &&
           c->made[1].of == TRACED_TENSOR && sums->n_dims == 3 &&
           (count(&c->made[1]) == 0 ||
            (sums->sizes[0] * sums->sizes[1] == q->sizes[0] * q->sizes[1] &&
             sums->sizes[2] >= q->sizes[2]));
}

bool traced_fits_efficient_attention(const TracedCall *c) {
    return traced_fits_attention(c) &&
           is_of_scores(&c->args[3], &c->args[0].tensor, &c->args[1].tensor);
}

/* (grad, q, k, v, ...): gradients of the three, each of them or none. out: what was attended to. */
static bool is_attention_backward(const TracedCall *c, unsigned out) {
    bool all = are_queried(&c->args[1]);
    all = all && count(&c->args[0]) == attended_count(&c->args[1]) &&
          count(&c->args[out]) == count(&c->args[0]);
    for (unsigned i = 0; i < 3 && all; i++) {
        all = count(&c->made[i]) == 0 || count(&c->made[i]) == count(&c->args[1 + i]);
    }
    return all;
}

bool traced_fits_flash_backward(const TracedCall *c) {
    return is_attention_backward(c, 4);
}

bool traced_fits_efficient_backward(const TracedCall *c) {
    const KernelTensor *q = &c->args[1].tensor, *k = &c->args[2].tensor;
    return is_attention_backward(c, 5) && is_of_scores(&c->args[4], q, k) &&
           is_of_scores(&c->made[3], q, k);
}

/* ---- places --------------------------------------------------------------------------------- */

/* Sides but one are as long. */
static bool are_alike_but(const KernelTensor *a, const KernelTensor *b, unsigned side) {
    bool all = a->n_dims == b->n_dims;
    for (unsigned i = 0; all && i < a->n_dims; i++) {
        all = i == side || a->sizes[i] == b->sizes[i];
    }
    return all;
}

static bool are_same(const TracedArg *a, const TracedArg *b) {
    return are_alike_but(&a->tensor, &b->tensor, KERNEL_TENSOR_SIDES);
}

/* One place of a side. */
static bool is_place_of(const KernelTensor *part, const KernelTensor *all, unsigned side) {
    bool is = part->n_dims + 1 == all->n_dims;
    for (unsigned i = 0; is && i < part->n_dims; i++) {
        is = part->sizes[i] == all->sizes[i < side ? i : i + 1];
    }
    return is;
}

bool traced_fits_cat(const TracedCall *c) {
    const TracedArg *list = &c->args[0], *made = &c->made[0];
    if (made->tensor.n_dims == 0 || !is_side_of(made, &c->args[1])) {
        return false;
    }
    unsigned side = traced_side(c->args[1].integer, made->tensor.n_dims);
    size_t n = 0;
    for (unsigned i = 0; i < list->n; i++) {
        const TracedArg *item = traced_item(c, list, i);
        if (item->of != TRACED_TENSOR ||
            (count(item) > 0 && !are_alike_but(&item->tensor, &made->tensor, side))) {
            return false;
        }
        n += count(item) > 0 ? item->tensor.sizes[side] : 0;
    }
    return n == made->tensor.sizes[side];
}

bool traced_fits_stack(const TracedCall *c) {
    const TracedArg *list = &c->args[0], *made = &c->made[0];
    if (made->tensor.n_dims == 0 || !is_side_of(made, &c->args[1])) {
        return false;
    }
    unsigned side = traced_side(c->args[1].integer, made->tensor.n_dims);
    bool all = list->n == made->tensor.sizes[side];
    for (unsigned i = 0; i < list->n && all; i++) {
        const TracedArg *item = traced_item(c, list, i);
        all = item->of == TRACED_TENSOR && is_place_of(&item->tensor, &made->tensor, side);
    }
    return all;
}

/* (grad, sizes, dim, index) */
bool traced_fits_select_backward(const TracedCall *c) {
    const TracedArg *given = &c->args[0], *made = &c->made[0];
    if (made->tensor.n_dims == 0 || !is_side_of(made, &c->args[2])) {
        return false;
    }
    unsigned side = traced_side(c->args[2].integer, made->tensor.n_dims);
    int64_t n = (int64_t)made->tensor.sizes[side], place = c->args[3].integer;
    return place >= -n && place < n && is_place_of(&given->tensor, &made->tensor, side);
}

/* (grad, sizes, dim, start, end, step) */
bool traced_fits_slice_backward(const TracedCall *c) {
    const TracedArg *given = &c->args[0], *made = &c->made[0];
    int64_t step = c->args[5].integer;
    if (made->tensor.n_dims == 0 || !is_side_of(made, &c->args[2]) || step < 1) {
        return false;
    }
    unsigned side = traced_side(c->args[2].integer, made->tensor.n_dims);
    int64_t n = (int64_t)made->tensor.sizes[side], from = c->args[3].integer;
    from = CLAMP(from < 0 ? from + n : from, 0, n);
    int64_t room = from < n ? (n - from - 1) / step + 1 : 0;
    return are_alike_but(&given->tensor, &made->tensor, side) &&
           (int64_t)given->tensor.sizes[side] <= room;
}

/* (self, pad, value): two numbers for each side, from the last on; what is negative cuts. */
bool traced_fits_pad(const TracedCall *c) {
    const TracedArg *pad = &c->args[1];
    const KernelTensor *given = &c->args[0].tensor, *made = &c->made[0].tensor;
    bool all = given->n_dims == made->n_dims && pad->n % 2 == 0 && pad->n / 2 <= given->n_dims;
    for (unsigned i = 0; all && i < given->n_dims; i++) {
        unsigned side = given->n_dims - 1 - i;
        bool is_padded = i < pad->n / 2;
        int64_t before = is_padded ? traced_item(c, pad, 2 * i)->integer : 0;
        int64_t behind = is_padded ? traced_item(c, pad, 2 * i + 1)->integer : 0;
        int64_t n = (int64_t)given->sizes[side], most = (int64_t)made->sizes[side];
        all = before >= -n && before <= most && behind >= -n && behind <= most &&
              n + MIN(before, 0) + MIN(behind, 0) >= 0 && n + before + behind == most;
    }
    return all;
}

bool traced_fits_arange(const TracedCall *c) {
    return c->made[0].tensor.n_dims == 1;
}

bool traced_fits_triangle(const TracedCall *c) {
    return c->made[0].tensor.n_dims >= 2 && are_same(&c->args[0], &c->made[0]);
}

bool traced_fits_repeat(const TracedCall *c) {
    return c->args[0].tensor.n_dims <= c->made[0].tensor.n_dims && count(&c->args[0]) > 0;
}

bool traced_fits_running_sum(const TracedCall *c) {
    return are_same(&c->args[0], &c->made[0]) && c->made[0].tensor.n_dims > 0 &&
           is_side_of(&c->args[0], &c->args[1]);
}

/* What is indexed has all sides of the index, and but for one they are as long at least. */
static bool holds_index(const TracedArg *t, const TracedArg *index, const TracedArg *side) {
    unsigned at = traced_side(side->integer, MAX(1, t->tensor.n_dims));
    bool all = is_side_of(t, side) && t->tensor.n_dims == index->tensor.n_dims;
    for (unsigned i = 0; all && i < index->tensor.n_dims; i++) {
        all = i == at || index->tensor.sizes[i] <= t->tensor.sizes[i];
    }
    return all;
}

bool traced_fits_gather(const TracedCall *c) {
    return holds_index(&c->args[0], &c->args[2], &c->args[1]) && are_same(&c->made[0], &c->args[2]);
}

/* A source is read in the index's sizes. */
bool traced_fits_scatter(const TracedCall *c) {
    const TracedArg *source = &c->args[3], *index = &c->args[2];
    bool all = source->of != TRACED_TENSOR || source->tensor.n_dims == index->tensor.n_dims;
    for (unsigned i = 0; all && source->of == TRACED_TENSOR && i < index->tensor.n_dims; i++) {
        all = index->tensor.sizes[i] <= source->tensor.sizes[i];
    }
    return all && holds_index(&c->made[0], index, &c->args[1]) &&
           traced_widens_to(&c->args[0].tensor, &c->made[0].tensor);
}

bool traced_fits_index_select(const TracedCall *c) {
    const TracedArg *given = &c->args[0], *made = &c->made[0];
    if (given->tensor.n_dims == 0 || !is_side_of(given, &c->args[1])) {
        return false;
    }
    unsigned side = traced_side(c->args[1].integer, given->tensor.n_dims);
    return are_alike_but(&given->tensor, &made->tensor, side) && c->args[2].tensor.n_dims <= 1 &&
           count(&c->args[2]) == made->tensor.sizes[side];
}
