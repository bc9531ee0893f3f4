/* kernels/cuda/attention/columns.h - columns of matrices whose rows hold more than those: `cols` of
 * them from column `from` on, in rows of `width` numbers; or those that an index names. Bound:
 * memory.
 */
#pragma once
#include "kernels/cuda/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

/* y[rows, cols] = x's columns; negate: minus those. */
KernelCudaFault kernel_cuda_copy_columns(KernelCuda *lane, void *y, KernelCudaType y_type,
                                         const void *x, KernelCudaType x_type, size_t rows,
                                         size_t cols, size_t width, size_t from);
KernelCudaFault kernel_cuda_negate_columns(KernelCuda *lane, void *y, const void *x, size_t rows,
                                           size_t cols, size_t width, size_t from,
                                           KernelCudaType type);
/* y[rows, total] = 0, but columns from `to` on are x's. */
KernelCudaFault kernel_cuda_put_columns(KernelCuda *lane, void *y, const void *x, size_t rows,
                                        size_t cols, size_t width, size_t from, size_t to,
                                        size_t total, KernelCudaType type);
/* The first of the columns in the first row; rows begin `row` elements behind each other. */
typedef struct {
    const void *x;
    size_t cols, row;
    size_t each; /* rows of a result that share one of these; of the first part 1 */
} KernelCudaPart;

/* y[rows, a's cols + b's cols] = a's columns, then b's, which may be of 16 bits beside type F32. */
KernelCudaFault kernel_cuda_join_columns(KernelCuda *lane, void *y, const KernelCudaPart *a,
                                         const KernelCudaPart *b, KernelCudaType b_type,
                                         size_t rows, KernelCudaType type);

/* y[r, j] = x[r, index[r, j]], k of a row's cols; and dx[r, c] = the sum, in the order of j, of the
 * dy[r, j] whose index[r, j] is c. A bad index gives 0. */
KernelCudaFault kernel_cuda_pick_columns(KernelCuda *lane, void *y, const void *x,
                                         const int64_t *index, size_t rows, size_t cols, size_t k,
                                         KernelCudaType type);
KernelCudaFault kernel_cuda_pick_columns_backward(KernelCuda *lane, void *dx, const void *dy,
                                                  const int64_t *index, size_t rows, size_t cols,
                                                  size_t k, KernelCudaType type);

#ifdef __cplusplus
}
#endif
