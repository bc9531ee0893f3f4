/* kernels/tensor-walk.h - how tensors are walked together, for the host and for CUDA: inputs
 * widened to the output's shape, with sides that lie as one joined.
 */
#pragma once
#include <string.h>

#include "kernels/host/traced/tensor-rows.h"

typedef struct {
    unsigned n_dims, n_tensors;
    size_t sizes[KERNEL_TENSOR_SIDES];
    size_t strides[KERNEL_EACH_INPUTS + 1][KERNEL_TENSOR_SIDES]; /* the output's are the last */
    const KernelTensor *tensors[KERNEL_EACH_INPUTS + 1];
} KernelWalk;

static inline void kernel_walk_widen(KernelWalk *w, unsigned which, const KernelTensor *t) {
    w->tensors[which] = t;
    for (unsigned i = 0; i < w->n_dims; i++) {
        unsigned behind = w->n_dims - i; /* sides from here to the end */
        bool repeats = behind > t->n_dims || t->sizes[t->n_dims - behind] == 1;
        w->strides[which][i] = repeats ? 0 : t->strides[t->n_dims - behind];
    }
}

static inline bool kernel_walk_lie_as_one(const KernelWalk *w, unsigned outer, unsigned inner) {
    for (unsigned t = 0; t < w->n_tensors; t++) {
        if (w->strides[t][outer] != w->strides[t][inner] * w->sizes[inner]) {
            return false;
        }
    }
    return true;
}

/* Sides of one element are left out, and neighbours that lie as one are. */
static inline void kernel_walk_join_sides(KernelWalk *w) {
    unsigned n = 0;
    for (unsigned i = 0; i < w->n_dims; i++) {
        if (w->sizes[i] == 1) {
            continue;
        }
        bool joins = n > 0 && kernel_walk_lie_as_one(w, n - 1, i);
        unsigned to = joins ? n - 1 : n++;
        w->sizes[to] = joins ? w->sizes[to] * w->sizes[i] : w->sizes[i];
        for (unsigned t = 0; t < w->n_tensors; t++) {
            w->strides[t][to] = w->strides[t][i];
        }
    }
    if (n == 0) {
        w->sizes[n] = 1;
        for (unsigned t = 0; t < w->n_tensors; t++) {
            w->strides[t][0] = 0;
        }
        n = 1;
    }
    w->n_dims = n;
}

static inline bool kernel_walk_is_wide(KernelDtype dtype) {
    return dtype == KERNEL_FP64 || dtype == KERNEL_INT64 || dtype == KERNEL_INT32;
}

/* Returns whether it is computed in double. */
static inline bool kernel_walk_of(KernelWalk *w, const KernelTensor *y, const KernelTensor *inputs,
                                  unsigned n_inputs) {
    bool wide = kernel_walk_is_wide(y->dtype);
    memset(w, 0, sizeof *w);
    w->n_dims = y->n_dims;
    w->n_tensors = n_inputs + 1;
    memcpy(w->sizes, y->sizes, sizeof w->sizes);
    for (unsigned i = 0; i < n_inputs; i++) {
        kernel_walk_widen(w, i, &inputs[i]);
        wide |= kernel_walk_is_wide(inputs[i].dtype) && inputs[i].n_dims > 0;
    }
    kernel_walk_widen(w, n_inputs, y);
    kernel_walk_join_sides(w);
    return wide;
}
