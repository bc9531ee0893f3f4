/* kernels/host/attention/view.h - a [batch, seq, heads, width] array seen through strides.
 *
 * The last dimension is contiguous; the others have a stride in elements, so one view can name q
 * inside a packed qkv projection, a [batch, heads, seq, width] tensor, or a kv head shared by
 * several q heads. Borrows its data.
 */
#pragma once
#include <stddef.h>

typedef struct {
    float *data;
    size_t batch_stride;
    size_t seq_stride;
    size_t head_stride;
} KernelView;

typedef struct {
    const float *data;
    size_t batch_stride;
    size_t seq_stride;
    size_t head_stride;
} KernelConstView;

/* The view of a contiguous [batch, seq, heads, width] array. */
static inline KernelView kernel_view_bshd(float *data, size_t seq, size_t heads, size_t width) {
    return (KernelView){data, seq * heads * width, heads * width, width};
}

static inline KernelConstView kernel_const_view_bshd(const float *data, size_t seq, size_t heads,
                                                     size_t width) {
    return (KernelConstView){data, seq * heads * width, heads * width, width};
}

/* The view of a contiguous [batch, heads, seq, width] array. */
static inline KernelView kernel_view_bhsd(float *data, size_t seq, size_t heads, size_t width) {
    return (KernelView){data, heads * seq * width, width, seq * width};
}

/* The same memory, read only. */
static inline KernelConstView kernel_view_const(KernelView view) {
    return (KernelConstView){view.data, view.batch_stride, view.seq_stride, view.head_stride};
}
