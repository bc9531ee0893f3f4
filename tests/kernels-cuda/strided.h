/* tests/kernels-cuda/strided.h - tensors of any dtype that lie through strides, new ones in each
 * run, in the host's memory and the device's.
 *
 * A result's whole array is compared, gaps between its elements too, which nobody may touch.
 */
#pragma once
#include <math.h>

#include "kernels/host/traced/tensor.h"
#include "tests/kernels-cuda/device.h"

enum {
    DRAWS = 12
};

static const KernelDtype floats[] = {KERNEL_FP32, KERNEL_BF16, KERNEL_FP16, KERNEL_FP64};
static const KernelDtype all[] = {KERNEL_FP32,  KERNEL_BF16,  KERNEL_FP16,  KERNEL_FP64,
                                  KERNEL_INT64, KERNEL_INT32, KERNEL_UINT8, KERNEL_BOOL};

/* A tensor in the host's memory and the device's, each an array of `elements`. */
typedef struct {
    KernelTensor host, device;
    size_t elements;
} Both;

static inline void both_clear(Both *b) {
    g_clear_pointer(&b->host.data, g_free);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Both, both_clear)

static inline size_t between(size_t low, size_t high) {
    return (size_t)g_test_rand_int_range((gint32)low, (gint32)high + 1);
}

/* Sides in any order, some with gaps. */
static inline void lie(KernelTensor *t, size_t *ret_elements) {
    unsigned order[KERNEL_TENSOR_SIDES];
    size_t step = between(1, 2) == 1 ? 1 : between(1, 3);
    for (unsigned i = 0; i < t->n_dims; i++) {
        unsigned j = (unsigned)between(0, i);
        order[i] = order[j];
        order[j] = i;
    }
    bool in_order = between(0, 1);
    *ret_elements = 1;
    for (unsigned i = t->n_dims; i-- > 0;) {
        unsigned side = in_order ? i : order[i];
        t->strides[side] = step;
        *ret_elements += (t->sizes[side] - 1) * step;
        step = step * t->sizes[side] + (between(0, 3) ? 0 : between(1, 5));
    }
}

static inline KernelTensor new_shape(KernelDtype dtype) {
    KernelTensor t = {.dtype = dtype, .n_dims = (unsigned)between(0, 4)};
    for (unsigned i = 0; i < t.n_dims; i++) {
        t.sizes[i] = between(1, i % 2 ? 3 : 9);
    }
    return t;
}

/* What widens to a shape: fewer sides, some of one. */
static inline KernelTensor narrower(const KernelTensor *y, KernelDtype dtype) {
    KernelTensor t = {.dtype = dtype,
                      .n_dims = (unsigned)between(between(0, 1) ? y->n_dims : 0, y->n_dims)};
    for (unsigned i = 0; i < t.n_dims; i++) {
        size_t side = y->sizes[y->n_dims - t.n_dims + i];
        t.sizes[i] = between(0, 3) ? side : 1;
    }
    return t;
}

/* Numbers of [low, high]; whole ones where the dtype has no others. */
static inline Both filled(KernelTensor shape, double low, double high) {
    Both b = {.host = shape};
    lie(&b.host, &b.elements);
    KernelTensor line = {.data = g_malloc(b.elements * kernel_dtype_bytes(shape.dtype)),
                         .dtype = shape.dtype,
                         .n_dims = 1,
                         .sizes = {b.elements},
                         .strides = {1}};
    g_autofree float *numbers = g_new(float, b.elements);
    bool is_whole = shape.dtype >= KERNEL_INT64;
    for (size_t i = 0; i < b.elements; i++) {
        numbers[i] = (float)g_test_rand_double_range(low, high);
        numbers[i] = is_whole ? (float)floor(numbers[i] + 0.5) : numbers[i];
    }
    kernel_tensor_write_f32(&line, numbers);
    b.host.data = line.data;
    b.device = b.host;
    b.device.data = device_put_bytes(line.data, b.elements * kernel_dtype_bytes(shape.dtype));
    return b;
}

/* Of the device's poison, the host's array too. */
static inline Both poisoned(KernelTensor shape) {
    Both b = {.host = shape};
    lie(&b.host, &b.elements);
    size_t bytes = b.elements * kernel_dtype_bytes(shape.dtype);
    b.device = b.host;
    b.device.data = device_new_bytes(bytes);
    b.host.data = device_get_bytes(b.device.data, bytes);
    return b;
}

static inline double rounding_of(KernelDtype dtype) {
    return dtype == KERNEL_BF16 ? 0x1p-8 : dtype == KERNEL_FP16 ? 0x1p-11 : 0;
}

static inline void is_close(const char *what, const Both *y, double relative, double absolute) {
    KernelTensor want = {.data = y->host.data,
                         .dtype = y->host.dtype,
                         .n_dims = 1,
                         .sizes = {y->elements},
                         .strides = {1}};
    KernelTensor got = want;
    g_autofree gpointer bytes =
        device_get_bytes(y->device.data, y->elements * kernel_dtype_bytes(want.dtype));
    g_autofree float *a = g_new(float, y->elements), *b = g_new(float, y->elements);
    got.data = bytes;
    kernel_tensor_read_f32(a, &got);
    kernel_tensor_read_f32(b, &want);
    for (size_t i = 0; i < y->elements; i++) {
        double bound = (relative + rounding_of(want.dtype)) * fabs((double)b[i]) + absolute;
        bool same = a[i] == b[i] || (isnan(a[i]) && isnan(b[i]));
        if (!same && !(fabs((double)a[i] - b[i]) <= bound)) {
            g_test_message("%s, dtype %d: element %zu is %g, not %g", what, (int)want.dtype, i,
                           (double)a[i], (double)b[i]);
            g_test_fail();
            return;
        }
    }
}
