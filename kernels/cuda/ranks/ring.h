/* kernels/cuda/ranks/ring.h - what ranks that share sequences need beside attention (attention/):
 * sums of some rows, and merging what was attended to in turns.
 *
 * Arrays are [outer, rows, inner]. Arithmetic is in fp32, and each output is rounded once. Bound:
 * memory.
 */
#pragma once
#include "kernels/cuda/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Of each outer part's `rows` rows n, from one on. */
typedef struct {
    void *data;
    KernelCudaType type;
    size_t rows, first, n;
} KernelCudaRows;

enum {
    KERNEL_CUDA_MOST_TERMS = 3
};

/* y = terms[0] + terms[1] + ..., or with `less` a difference of two; each lies at the last of y's
 * rows (y->n rows from y->first on), or, if it is `ahead`, at the first of them, and is 0 where it
 * has none. y may be a term, which then has the same rows. */
KernelCudaFault kernel_cuda_sum_of_rows(KernelCuda *lane, const KernelCudaRows *y,
                                        const KernelCudaRows *terms, size_t n_terms, bool ahead,
                                        bool less, size_t outer, size_t inner);

/* y[batch, rows, heads, dim] = x times a number for each head's row, column[batch, heads, rows]. */
KernelCudaFault kernel_cuda_mul_heads(KernelCuda *lane, void *y, const void *x, const void *column,
                                      size_t batch, size_t rows, size_t heads, size_t dim,
                                      KernelCudaType type);

/* y = log(1 / (1 + exp(-x))). */
KernelCudaFault kernel_cuda_log_sigmoid(KernelCuda *lane, void *y, const void *x, size_t n,
                                        KernelCudaType type);

/* y[batch, seq, heads, dim] = x[batch, heads, seq, dim], in types of their own. */
KernelCudaFault kernel_cuda_cast_heads(KernelCuda *lane, void *y, KernelCudaType y_type,
                                       const void *x, KernelCudaType x_type, size_t batch,
                                       size_t heads, size_t seq, size_t dim);

/* Of all rows out[batch, rows, heads, dim] with the logarithms of its sums [batch, heads, rows],
 * and of another turn's last block_rows, what attention to the keys of both gives. */
typedef struct {
    size_t batch, rows, heads, dim, block_rows;
    KernelCudaType out_type, block_type, y_type;
} KernelCudaMerge;

KernelCudaFault kernel_cuda_merge_turn(KernelCuda *lane, void *y, float *lse, const void *out,
                                       const float *out_lse, const void *block,
                                       const float *block_lse, const KernelCudaMerge *merge);

#ifdef __cplusplus
}
#endif
