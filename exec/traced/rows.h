/* exec/traced/rows.h - what calls of traced networks say of rows: how wide they are, and which
 * sides are summed.
 */
#pragma once
#include <float.h>

#include "exec/traced/call.h"

/* With a side as the last. */
static inline KernelTensor traced_turned(const KernelTensor *t, int64_t side) {
    return t->n_dims ? kernel_tensor_with_last(t, traced_side(side, t->n_dims)) : *t;
}

static inline size_t traced_width(const KernelTensor *t) {
    return t->n_dims ? t->sizes[t->n_dims - 1] : 1;
}

/* How many rows logits have; a single row may have no side of its own. */
static inline size_t traced_rows(const KernelTensor *t) {
    return t->n_dims > 1 ? t->sizes[0] : 1;
}

/* How many numbers are normalized together: the product of the sides that the argument lists. */
static inline size_t traced_norm_width(const TracedCall *call, unsigned list) {
    size_t width = 1;
    for (unsigned i = 0; i < traced_arg(call, list)->n; i++) {
        width *= (size_t)traced_item(call, traced_arg(call, list), i)->integer;
    }
    return width;
}

/* Without one it is that of the dtype. */
static inline float traced_eps(const TracedCall *call, unsigned i, KernelDtype dtype) {
    double own = dtype == KERNEL_BF16 ? 0x1p-7 : dtype == KERNEL_FP16 ? 0x1p-10 : FLT_EPSILON;
    return (float)(traced_is(call, i) ? traced_arg(call, i)->number : own);
}

/* Bits; without a list all of them. */
static inline unsigned traced_sides(const TracedCall *call, unsigned list, unsigned n_dims) {
    const TracedArg *arg = list < call->n_args ? traced_arg(call, list) : NULL;
    if (!arg || arg->of != TRACED_LIST || !arg->n) {
        return (1u << n_dims) - 1;
    }
    unsigned sides = 0;
    for (unsigned i = 0; i < arg->n; i++) {
        sides |= 1u << traced_side(traced_item(call, arg, i)->integer, n_dims);
    }
    return sides;
}
