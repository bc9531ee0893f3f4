/* kernels/host/traced/tensor.h - tensors of any dtype, seen through strides; numbers in and out of
 * them.
 *
 * What is read is widened to float (exact but for integers beyond 2^24), double or int64_t; what is
 * written is rounded once, to nearest. The order is row-major in the tensor's own sizes, wherever
 * they lie. Bound: memory; a tensor without sides has one element. Borrows its data.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum {
    KERNEL_FP32,
    KERNEL_BF16,
    KERNEL_FP16,
    KERNEL_FP64,
    KERNEL_INT64,
    KERNEL_INT32,
    KERNEL_UINT8,
    KERNEL_BOOL,
    KERNEL_N_DTYPES
} KernelDtype;

enum {
    KERNEL_TENSOR_SIDES = 8
};

typedef struct {
    void *data; /* its first element */
    KernelDtype dtype;
    unsigned n_dims;
    size_t sizes[KERNEL_TENSOR_SIDES], strides[KERNEL_TENSOR_SIDES]; /* in elements */
} KernelTensor;

size_t kernel_dtype_bytes(KernelDtype dtype);
size_t kernel_tensor_count(const KernelTensor *t);
bool kernel_tensor_is_dense(const KernelTensor *t); /* row-major, without gaps */

/* The same elements with another side last; a part of a side (of size 1 in its place). */
KernelTensor kernel_tensor_with_last(const KernelTensor *t, unsigned side);
KernelTensor kernel_tensor_part(const KernelTensor *t, unsigned side, size_t from, size_t n);

void kernel_tensor_read_f32(float *to, const KernelTensor *t);
void kernel_tensor_read_i64(int64_t *to, const KernelTensor *t);
void kernel_tensor_write_f32(const KernelTensor *t, const float *from);
void kernel_tensor_write_i64(const KernelTensor *t, const int64_t *from);

/* n elements in a line, stride apart. */
void kernel_line_load_f32(float *to, KernelDtype dtype, const void *from, size_t stride, size_t n);
void kernel_line_load_f64(double *to, KernelDtype dtype, const void *from, size_t stride, size_t n);
void kernel_line_store_f32(void *to, KernelDtype dtype, size_t stride, const float *from, size_t n);
void kernel_line_store_f64(void *to, KernelDtype dtype, size_t stride, const double *from,
                           size_t n);
