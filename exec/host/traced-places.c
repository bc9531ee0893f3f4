/* exec/host/traced-places.c - calls of traced networks that move elements, or number them. */
#include <string.h>

#include "exec/host/traced-private.h"
#include "exec/traced/moves.h"
#include "kernels/host/traced/tensor-rows.h"

static void copy(gpointer self, const KernelTensor *to, const KernelTensor *from) {
    kernel_tensor_each(KERNEL_EACH_COPY, to, from, 1, 0, 0);
}

static void fill(gpointer self, const KernelTensor *to, double number) {
    kernel_tensor_each(KERNEL_EACH_FILL, to, NULL, 0, number, 0);
}

bool host_run_move(TracedRun *r, const TracedRule *rule, GError **error) {
    static const TracedMover mover = {copy, fill, NULL};
    traced_move((TracedMove)rule->which, r->call, &mover);
    return true;
}

/* ---- numbered ------------------------------------------------------------------------------- */

/* (end), (start, end) or (start, end, step), by which */
bool host_run_arange(TracedRun *r, const TracedRule *rule, GError **error) {
    const KernelTensor *made = traced_made(r->call, 0);
    double start = rule->which > 0 ? traced_arg(r->call, 0)->number : 0;
    double step = rule->which > 1 ? traced_arg(r->call, 2)->number : 1;
    for (size_t i = 0; i < kernel_tensor_count(made); i++) {
        double number = start + (double)i * step;
        kernel_line_store_f64((char *)made->data +
                                  i * made->strides[0] * kernel_dtype_bytes(made->dtype),
                              made->dtype, 1, &number, 1);
    }
    return true;
}

/* (self, diagonal) of each matrix: what lies below it, or above, is kept. */
bool host_run_triangle(TracedRun *r, const TracedRule *rule, GError **error) {
    const KernelTensor *made = traced_made(r->call, 0);
    size_t rows = made->sizes[made->n_dims - 2], cols = made->sizes[made->n_dims - 1];
    size_t n = kernel_tensor_count(made);
    const float *given = traced_floats_of(r, 0);
    float *kept = traced_result_of(r, 0);
    for (size_t i = 0; i < n; i++) {
        int64_t above =
            (int64_t)(i % cols) - (int64_t)(i / cols % rows) - traced_integer(r->call, 1);
        kept[i] = (rule->which ? above >= 0 : above <= 0) ? given[i] : 0;
    }
    return true;
}

/* (self, dim) */
bool host_run_running_sum(TracedRun *r, const TracedRule *rule, GError **error) {
    const KernelTensor *x = traced_tensor(r->call, 0), *y = traced_made(r->call, 0);
    unsigned side = traced_side(traced_integer(r->call, 1), x->n_dims);
    KernelTensor from = kernel_tensor_with_last(x, side), to = kernel_tensor_with_last(y, side);
    size_t n = kernel_tensor_count(x), width = x->sizes[side];
    const float *given = traced_floats(r, &from);
    float *sums = traced_result(r, &to);
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        sum = (i % width ? sum : 0) + given[i];
        sums[i] = (float)sum;
    }
    return true;
}

/* (self, repeats): the given one, again and again along each side. */
bool host_run_repeat(TracedRun *r, const TracedRule *rule, GError **error) {
    const KernelTensor *made = traced_made(r->call, 0), *given = traced_tensor(r->call, 0);
    size_t n = kernel_tensor_count(made);
    const float *from = traced_floats(r, given);
    float *to = traced_result_of(r, 0);
    unsigned more = made->n_dims - given->n_dims;
    for (size_t i = 0; i < n; i++) {
        size_t rest = i, at = 0, step = 1;
        for (unsigned side = made->n_dims; side-- > more;) {
            size_t size = given->sizes[side - more];
            at += rest % made->sizes[side] % size * step;
            rest /= made->sizes[side];
            step *= size;
        }
        to[i] = from[at];
    }
    return true;
}

/* ---- looked up ------------------------------------------------------------------------------ */

/* The element of a tensor that is named by an index in place of one side. */
static bool find(const KernelTensor *t, unsigned side, const KernelTensor *index, size_t i,
                 int64_t named, size_t *ret_at) {
    size_t at = 0;
    for (unsigned d = index->n_dims; d-- > 0;) {
        size_t place = i % index->sizes[d];
        i /= index->sizes[d];
        at += (d == side ? (size_t)named : place) * t->strides[d];
    }
    *ret_at = at;
    return named >= 0 && (size_t)named < t->sizes[side];
}

/* (self, dim, index) */
bool host_run_gather(TracedRun *r, const TracedRule *rule, GError **error) {
    const KernelTensor *given = traced_tensor(r->call, 0), *index = traced_tensor(r->call, 2);
    unsigned side = traced_side(traced_integer(r->call, 1), MAX(1, given->n_dims));
    const int64_t *named = traced_integers(r, index);
    float *made = traced_result_of(r, 0);
    for (size_t i = 0; i < kernel_tensor_count(index); i++) {
        size_t at;
        if (!find(given, side, index, i, named[i], &at)) {
            return traced_bad_index(error, "the index of gather");
        }
        kernel_line_load_f32(&made[i], given->dtype,
                             (char *)given->data + at * kernel_dtype_bytes(given->dtype), 1, 1);
    }
    return true;
}

/* (self, dim, index, src or a number): which 1 adds. What is made holds self at first. */
bool host_run_scatter(TracedRun *r, const TracedRule *rule, GError **error) {
    const KernelTensor *made = traced_made(r->call, 0), *index = traced_tensor(r->call, 2);
    unsigned side = traced_side(traced_integer(r->call, 1), MAX(1, made->n_dims));
    const int64_t *named = traced_integers(r, index);
    KernelTensor read = *traced_tensor(r->call, 3);
    memcpy(read.sizes, index->sizes, sizeof read.sizes); /* it may be larger */
    bool is_tensor = traced_arg(r->call, 3)->of == TRACED_TENSOR;
    const float *from = is_tensor ? traced_floats(r, &read) : NULL;
    if (made->data != traced_tensor(r->call, 0)->data) {
        copy(NULL, made, traced_tensor(r->call, 0));
    }
    for (size_t i = 0; i < kernel_tensor_count(index); i++) {
        size_t at;
        if (!find(made, side, index, i, named[i], &at)) {
            return traced_bad_index(error, "the index of scatter");
        }
        void *to = (char *)made->data + at * kernel_dtype_bytes(made->dtype);
        float before = 0, given = is_tensor ? from[i] : (float)traced_arg(r->call, 3)->number;
        if (rule->which) {
            kernel_line_load_f32(&before, made->dtype, to, 1, 1);
        }
        given += before;
        kernel_line_store_f32(to, made->dtype, 1, &given, 1);
    }
    return true;
}

/* (self, dim, index): rows, columns or whatever the side has, one after the other. */
bool host_run_index_select(TracedRun *r, const TracedRule *rule, GError **error) {
    const KernelTensor *given = traced_tensor(r->call, 0), *made = traced_made(r->call, 0);
    unsigned side = traced_side(traced_integer(r->call, 1), given->n_dims);
    const int64_t *named = traced_integers(r, traced_tensor(r->call, 2));
    for (size_t i = 0; i < made->sizes[side]; i++) {
        if (named[i] < 0 || (size_t)named[i] >= given->sizes[side]) {
            return traced_bad_index(error, "the index of index_select");
        }
        KernelTensor from = traced_at_place(given, side, (size_t)named[i]),
                     to = traced_at_place(made, side, i);
        copy(NULL, &to, &from);
    }
    return true;
}
