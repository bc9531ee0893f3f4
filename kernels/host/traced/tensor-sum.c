/* kernels/host/traced/tensor-sum.c - see tensor-sum.h. */
#include "kernels/host/traced/tensor-sum.h"

enum {
    PIECE = 256
};

/* Some sides of a tensor, walked from the last on. */
typedef struct {
    unsigned n;
    size_t sizes[KERNEL_TENSOR_SIDES], strides[KERNEL_TENSOR_SIDES], others[KERNEL_TENSOR_SIDES];
    size_t at[KERNEL_TENSOR_SIDES];
    size_t offset, other; /* in elements, of the tensor and of the other one */
} Sides;

static void add_side(Sides *s, size_t size, size_t stride, size_t other) {
    s->sizes[s->n] = size;
    s->strides[s->n] = stride;
    s->others[s->n] = other;
    s->n++;
}

/* The line along the last side is another's to walk. False behind the last one. */
static bool next(Sides *s, unsigned n_walked) {
    for (unsigned i = n_walked; i-- > 0;) {
        s->offset += s->strides[i];
        s->other += s->others[i];
        if (++s->at[i] < s->sizes[i]) {
            return true;
        }
        s->offset -= s->sizes[i] * s->strides[i];
        s->other -= s->sizes[i] * s->others[i];
        s->at[i] = 0;
    }
    return false;
}

static const void *at(const KernelTensor *t, size_t offset) {
    return (const char *)t->data + offset * kernel_dtype_bytes(t->dtype);
}

/* One element: lines along the last side that is summed. */
static double sum_along(const KernelTensor *x, size_t from, Sides summed) {
    unsigned last = summed.n - 1;
    double sum = 0, piece[PIECE];
    do {
        for (size_t i = 0; i < summed.sizes[last]; i += PIECE) {
            size_t n = summed.sizes[last] - i < PIECE ? summed.sizes[last] - i : PIECE;
            kernel_line_load_f64(piece, x->dtype,
                                 at(x, from + summed.offset + i * summed.strides[last]),
                                 summed.strides[last], n);
            for (size_t j = 0; j < n; j++) {
                sum += piece[j];
            }
        }
    } while (next(&summed, last));
    return sum;
}

/* n elements along the last side that is kept. */
static void sum_across(double *sums, const KernelTensor *x, size_t from, size_t stride, size_t n,
                       Sides summed) {
    double piece[PIECE];
    for (size_t j = 0; j < n; j++) {
        sums[j] = 0;
    }
    do {
        kernel_line_load_f64(piece, x->dtype, at(x, from + summed.offset), stride, n);
        for (size_t j = 0; j < n; j++) {
            sums[j] += piece[j];
        }
    } while (next(&summed, summed.n));
}

static void store(const KernelTensor *y, size_t offset, size_t stride, double *sums, size_t n,
                  double factor) {
    for (size_t j = 0; j < n; j++) {
        sums[j] *= factor;
    }
    kernel_line_store_f64((char *)y->data + offset * kernel_dtype_bytes(y->dtype), y->dtype, stride,
                          sums, n);
}

void kernel_tensor_sum(const KernelTensor *y, const KernelTensor *x, unsigned summed,
                       double factor) {
    Sides kept = {0}, gone = {0};
    for (unsigned i = 0, to = 0; i < x->n_dims; i++) {
        bool is_gone = summed >> i & 1;
        unsigned of_y = y->n_dims == x->n_dims ? i : to;
        if (is_gone) {
            add_side(&gone, x->sizes[i], x->strides[i], 0);
        } else {
            add_side(&kept, x->sizes[i], x->strides[i], y->strides[of_y]);
            to++;
        }
    }
    if (kernel_tensor_count(y) == 0) {
        return;
    }
    if (gone.n == 0) {
        add_side(&gone, 1, 0, 0);
    }
    if (kept.n == 0) {
        add_side(&kept, 1, 0, 0);
    }
    bool is_empty = kernel_tensor_count(x) == 0;
    unsigned last = kept.n - 1;
    bool along = kept.sizes[last] == 1 || gone.strides[gone.n - 1] < kept.strides[last];
    do {
        for (size_t i = 0; i < kept.sizes[last];) {
            size_t left = kept.sizes[last] - i, n = along ? 1 : left < PIECE ? left : PIECE;
            double sums[PIECE] = {0};
            size_t from = kept.offset + i * kept.strides[last];
            if (!is_empty && along) {
                sums[0] = sum_along(x, from, gone);
            } else if (!is_empty) {
                sum_across(sums, x, from, kept.strides[last], n, gone);
            }
            store(y, kept.other + i * kept.others[last], kept.others[last], sums, n, factor);
            i += n;
        }
    } while (next(&kept, last));
}
