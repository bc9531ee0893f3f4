/* kernels/host/traced/tensor.c - see tensor.h. */
#include "kernels/host/traced/tensor.h"
#include "kernels/host/half.h"
#include <stdlib.h>

size_t kernel_dtype_bytes(KernelDtype dtype) {
    static const size_t bytes[KERNEL_N_DTYPES] = {4, 2, 2, 8, 8, 4, 1, 1};
    return bytes[dtype];
}

size_t kernel_tensor_count(const KernelTensor *t) {
    size_t n = 1;
    for (unsigned i = 0; i < t->n_dims; i++) {
        n *= t->sizes[i];
    }
    return n;
}

bool kernel_tensor_is_dense(const KernelTensor *t) {
    size_t step = 1;
    for (unsigned i = t->n_dims; i-- > 0;) {
        if (t->sizes[i] != 1 && t->strides[i] != step) {
            return false;
        }
        step *= t->sizes[i];
    }
    return true;
}

KernelTensor kernel_tensor_with_last(const KernelTensor *t, unsigned side) {
    KernelTensor moved = *t;
    for (unsigned i = side; i + 1 < t->n_dims; i++) {
        moved.sizes[i] = t->sizes[i + 1];
        moved.strides[i] = t->strides[i + 1];
    }
    moved.sizes[t->n_dims - 1] = t->sizes[side];
    moved.strides[t->n_dims - 1] = t->strides[side];
    return moved;
}

KernelTensor kernel_tensor_part(const KernelTensor *t, unsigned side, size_t from, size_t n) {
    KernelTensor part = *t;
    part.data = (char *)t->data + from * t->strides[side] * kernel_dtype_bytes(t->dtype);
    part.sizes[side] = n;
    return part;
}

/* ---- lines ---------------------------------------------------------------------------------- */

static float widened(KernelDtype dtype, uint16_t number) {
    float wide;
    (dtype == KERNEL_BF16 ? kernel_widen_bf16 : kernel_widen_f16)(&wide, &number, 1);
    return wide;
}

static uint16_t narrowed(KernelDtype dtype, float number) {
    uint16_t narrow;
    (dtype == KERNEL_BF16 ? kernel_narrow_bf16 : kernel_narrow_f16)(&narrow, &number, 1);
    return narrow;
}

static void load_half(float *to, KernelDtype dtype, const uint16_t *from, size_t stride, size_t n) {
    if (stride == 1) {
        (dtype == KERNEL_BF16 ? kernel_widen_bf16 : kernel_widen_f16)(to, from, n);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        to[i] = widened(dtype, from[i * stride]);
    }
}

static void store_half(uint16_t *to, KernelDtype dtype, size_t stride, const float *from,
                       size_t n) {
    if (stride == 1) {
        (dtype == KERNEL_BF16 ? kernel_narrow_bf16 : kernel_narrow_f16)(to, from, n);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        to[i * stride] = narrowed(dtype, from[i]);
    }
}

#define LOAD(wide, stored)                                                                         \
    for (size_t i = 0; i < n; i++) {                                                               \
        to[i] = (wide)((const stored *)from)[i * stride];                                          \
    }                                                                                              \
    return

/* Of all that is stored as a type of C's. */
#define LOAD_CASES(wide)                                                                           \
    case KERNEL_FP32:                                                                              \
        LOAD(wide, float);                                                                         \
    case KERNEL_FP64:                                                                              \
        LOAD(wide, double);                                                                        \
    case KERNEL_INT64:                                                                             \
        LOAD(wide, int64_t);                                                                       \
    case KERNEL_INT32:                                                                             \
        LOAD(wide, int32_t);                                                                       \
    case KERNEL_UINT8:                                                                             \
    case KERNEL_BOOL:                                                                              \
        LOAD(wide, uint8_t);                                                                       \
    case KERNEL_N_DTYPES:                                                                          \
        break

void kernel_line_load_f32(float *to, KernelDtype dtype, const void *from, size_t stride, size_t n) {
    switch (dtype) {
    case KERNEL_BF16:
    case KERNEL_FP16:
        load_half(to, dtype, from, stride, n);
        return;
        LOAD_CASES(float);
    }
    abort();
}

void kernel_line_load_f64(double *to, KernelDtype dtype, const void *from, size_t stride,
                          size_t n) {
    switch (dtype) {
    case KERNEL_BF16:
    case KERNEL_FP16:
        for (size_t i = 0; i < n; i++) {
            to[i] = widened(dtype, ((const uint16_t *)from)[i * stride]);
        }
        return;
        LOAD_CASES(double);
    }
    abort();
}

#define STORE(stored, number)                                                                      \
    for (size_t i = 0; i < n; i++) {                                                               \
        ((stored *)to)[i * stride] = (stored)(number);                                             \
    }                                                                                              \
    return

#define STORE_CASES                                                                                \
    case KERNEL_FP32:                                                                              \
        STORE(float, from[i]);                                                                     \
    case KERNEL_FP64:                                                                              \
        STORE(double, from[i]);                                                                    \
    case KERNEL_INT64:                                                                             \
        STORE(int64_t, from[i]);                                                                   \
    case KERNEL_INT32:                                                                             \
        STORE(int32_t, from[i]);                                                                   \
    case KERNEL_UINT8:                                                                             \
        STORE(uint8_t, from[i]);                                                                   \
    case KERNEL_BOOL:                                                                              \
        STORE(uint8_t, from[i] != 0);                                                              \
    case KERNEL_N_DTYPES:                                                                          \
        break

void kernel_line_store_f32(void *to, KernelDtype dtype, size_t stride, const float *from,
                           size_t n) {
    switch (dtype) {
    case KERNEL_BF16:
    case KERNEL_FP16:
        store_half(to, dtype, stride, from, n);
        return;
        STORE_CASES;
    }
    abort();
}

void kernel_line_store_f64(void *to, KernelDtype dtype, size_t stride, const double *from,
                           size_t n) {
    switch (dtype) {
    case KERNEL_BF16:
    case KERNEL_FP16:
        for (size_t i = 0; i < n; i++) {
            ((uint16_t *)to)[i * stride] = narrowed(dtype, (float)from[i]);
        }
        return;
        STORE_CASES;
    }
    abort();
}

/* ---- whole tensors -------------------------------------------------------------------------- */

/* The lines of a tensor one after the other: as long as possible, of sides that lie as one. */
typedef struct {
    size_t n, stride; /* of a line */
    size_t lines;     /* their number */
    unsigned n_outer; /* sides outside of them */
    size_t at[KERNEL_TENSOR_SIDES], offset;
} Lines;

static Lines lines_of(const KernelTensor *t) {
    Lines lines = {.n = 1, .stride = 1, .n_outer = t->n_dims};
    size_t total = kernel_tensor_count(t);
    while (lines.n_outer > 0) {
        unsigned i = lines.n_outer - 1;
        bool begins = lines.n == 1;
        if (t->sizes[i] != 1 && !begins && t->strides[i] != lines.n * lines.stride) {
            break;
        }
        lines.stride = begins && t->sizes[i] != 1 ? t->strides[i] : lines.stride;
        lines.n *= t->sizes[i];
        lines.n_outer = i;
    }
    lines.lines = lines.n ? total / lines.n : 0;
    return lines;
}

static void to_next(Lines *lines, const KernelTensor *t) {
    for (unsigned i = lines->n_outer; i-- > 0;) {
        lines->offset += t->strides[i];
        if (++lines->at[i] < t->sizes[i]) {
            return;
        }
        lines->offset -= t->sizes[i] * t->strides[i];
        lines->at[i] = 0;
    }
}

static void *line_at(const KernelTensor *t, const Lines *lines) {
    return (char *)t->data + lines->offset * kernel_dtype_bytes(t->dtype);
}

void kernel_tensor_read_f32(float *to, const KernelTensor *t) {
    Lines lines = lines_of(t);
    for (size_t i = 0; i < lines.lines; i++, to_next(&lines, t)) {
        kernel_line_load_f32(to + i * lines.n, t->dtype, line_at(t, &lines), lines.stride, lines.n);
    }
}

void kernel_tensor_write_f32(const KernelTensor *t, const float *from) {
    Lines lines = lines_of(t);
    for (size_t i = 0; i < lines.lines; i++, to_next(&lines, t)) {
        kernel_line_store_f32(line_at(t, &lines), t->dtype, lines.stride, from + i * lines.n,
                              lines.n);
    }
}

/* Through doubles, as no index of a tensor in memory is beyond 2^53. */
void kernel_tensor_read_i64(int64_t *to, const KernelTensor *t) {
    enum {
        PIECE = 256
    };
    double piece[PIECE];
    Lines lines = lines_of(t);
    for (size_t i = 0; i < lines.lines; i++, to_next(&lines, t)) {
        for (size_t j = 0; j < lines.n; j += PIECE) {
            size_t n = lines.n - j < PIECE ? lines.n - j : PIECE;
            const char *from = line_at(t, &lines);
            kernel_line_load_f64(piece, t->dtype,
                                 from + j * lines.stride * kernel_dtype_bytes(t->dtype),
                                 lines.stride, n);
            for (size_t k = 0; k < n; k++) {
                to[i * lines.n + j + k] = (int64_t)piece[k];
            }
        }
    }
}

void kernel_tensor_write_i64(const KernelTensor *t, const int64_t *from) {
    Lines lines = lines_of(t);
    for (size_t i = 0; i < lines.lines; i++, to_next(&lines, t)) {
        for (size_t j = 0; j < lines.n; j++) {
            double number = (double)from[i * lines.n + j];
            char *to = line_at(t, &lines);
            kernel_line_store_f64(to + j * lines.stride * kernel_dtype_bytes(t->dtype), t->dtype, 1,
                                  &number, 1);
        }
    }
}
