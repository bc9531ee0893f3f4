/* kernels/cuda/attention/rope.h - rotary position embedding in the "rotate half" form, whole and in
 * the pieces it is written in in Python: x * cos + join(-upper half of x, lower half) * sin.
 *
 * Rows are heads of tokens: x[tokens, heads, dim], token t at position t mod seq of tables cos and
 * sin [seq, dim]. The heads of a token of x are `stride` elements from those of the next, where x
 * is a part of longer rows, and `head` elements from each other, where it is a part of longer
 * heads; all else is dense. Bound: memory, 16 bytes at a time where all lies so.
 */
#pragma once
#include "kernels/cuda/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    size_t tokens, heads, dim, seq; /* dim even; seq divides tokens */
    size_t stride;                  /* of x; heads * dim: it is dense */
    KernelCudaType type;
    KernelCudaType table_type;
    size_t head; /* of x; 0: dim */
    bool wide;   /* of table_mul: the table and y are in fp32, whatever x is */
} KernelCudaRope;

/* cos and sin of position * base^(-2 j / dim), each half of a row alike, for seq positions from one
 * on; computed in double. */
KernelCudaFault kernel_cuda_rope_tables(KernelCuda *lane, void *cos_table, void *sin_table,
                                        size_t seq, size_t dim, double base, size_t first_position,
                                        KernelCudaType type);

/* y = x rotated; back: by the transpose, which makes dx from dy. y may alias a dense x. */
KernelCudaFault kernel_cuda_rope(KernelCuda *lane, void *y, const void *x, const void *cos_table,
                                 const void *sin_table, const KernelCudaRope *rope, bool back);

/* y[rows, half] = -x[rows, 2 half] from column `from` on. */
KernelCudaFault kernel_cuda_negate_half(KernelCuda *lane, void *y, const void *x, size_t rows,
                                        size_t half, size_t from, size_t heads, size_t stride,
                                        KernelCudaType type);
/* y[rows, 2 half] = lower[rows, half], then the first half of x[rows, 2 half]. */
KernelCudaFault kernel_cuda_join_halves(KernelCuda *lane, void *y, const void *lower, const void *x,
                                        size_t rows, size_t half, size_t heads, size_t stride,
                                        KernelCudaType type);
/* y = x table, each row with the table's row of its position. apart: x lies [batch, heads, seq,
 * dim], dense, else [tokens, heads, dim]. y may alias a dense x. */
KernelCudaFault kernel_cuda_table_mul(KernelCuda *lane, void *y, const void *x, const void *table,
                                      const KernelCudaRope *rope, bool apart);

/* Neighbours in a head as complex numbers: turns [seq, dim] holds exp(i position * base^(-2 j /
 * dim)), real and imaginary parts side by side, all in fp32. The table; y = x turns; and y = the
 * conjugates of n / 2 numbers. */
KernelCudaFault kernel_cuda_turn_table(KernelCuda *lane, float *turns, size_t seq, size_t dim,
                                       double base);
KernelCudaFault kernel_cuda_turn(KernelCuda *lane, float *y, const float *x, const float *turns,
                                 const KernelCudaRope *rope);
KernelCudaFault kernel_cuda_conjugate(KernelCuda *lane, float *y, const float *x, size_t n);

#ifdef __cplusplus
}
#endif
