/* kernels/cuda/products/matmul.cu - see matmul.h. Bound: arithmetic.
 *
 * What cuBLASLt has nothing quick for, or nothing at all, is made of what it has (product.cuh).
 */
#include "kernels/cuda/products/matmul.h"

#include <algorithm>
#include <initializer_list>

#include "kernels/cuda/copy.h"
#include "kernels/cuda/device.cuh"
#include "kernels/cuda/elementwise.h"
#include "kernels/cuda/products/product.cuh"
#include "kernels/cuda/reduce.h"

using namespace cu;

namespace {

/* A dense y. cuBLASLt promises nothing of a sum of no products, which is 0. */
KernelCudaFault multiply_one(KernelCuda *lane, void *y, const Matrix &a, const Matrix &b,
                             const Sizes &z) {
    return !z.m || !z.n ? NULL
           : !z.k       ? kernel_cuda_fill(lane, y, z.m * z.n, 0, z.type)
                        : multiply(lane, y, z.n, 0, a, b, z, NO_END, NULL);
}

/* ---- odd widths ------------------------------------------------------------------------------
 *
 * Of halves in rows that are no whole 16 bytes long (logits of GPT-2's 50257 tokens) cuBLASLt has
 * nothing but kernels for sm_75, on an H100 too, and looks at what is summed and at the output's
 * columns besides (12.4.5; tests/pretended-gpu). So such an array goes by way of the lane's scratch
 * memory, a part at a time, in rows that are whole; what is then computed is the same. */

enum {
    LEAST_SIDE = 256, /* of m and k: copies take less time than they spare */
    LEAST_ODD = 1024, /* of n */
#ifdef KERNEL_EMULATED
    PART_BYTES = 1 << 20, /* so that tests have several */
#else
    PART_BYTES = 1 << 28, /* of scratch memory; some waves of tiles, and little of a GPU */
#endif
    TILE = 256, /* columns of a part are a multiple of it */
};

/* A linear layer of m tokens whose n outputs make odd rows, and what stands in for them. */
struct Odd {
    size_t m, n, k;
    KernelCudaType type;
    size_t whole, padded; /* columns: those in whole 16 bytes, and as many as hold all */
    char *scratch;

    size_t bytes() const {
        return kernel_cuda_type_bytes(type);
    }
    const char *at(const void *array, size_t element) const {
        return (const char *)array + element * bytes();
    }
    char *at(void *array, size_t element) const {
        return (char *)array + element * bytes();
    }
    /* Tokens at a time, in parts that are alike and hold so many bytes at most. */
    size_t rows() const {
        size_t most = PART_BYTES / (padded * bytes());
        return divide_up(m, divide_up(m, most));
    }
    /* Columns at a time. */
    size_t cols() const {
        size_t most = PART_BYTES / (m * bytes()) / TILE * TILE;
        return divide_up(divide_up(whole, divide_up(whole, most)), TILE) * TILE;
    }
    KernelCudaPiece piece(void *to, size_t to_stride, const void *from, size_t from_stride,
                          size_t n_rows, size_t width) const {
        return {to, from, n_rows, width, to_stride, from_stride, type, type};
    }
};

/* Whether it is one, and there is room for so many bytes of it: asked for once, for where memory is
 * short the kernels for sm_75 do, too. */
bool is_odd(KernelCuda *lane, Odd *odd, std::initializer_list<const void *> others, size_t more) {
    uintptr_t all = odd->k * odd->bytes();
    void *scratch = NULL;
    for (const void *other : others) {
        all |= (uintptr_t)other;
    }
    odd->whole = odd->n / 8 * 8, odd->padded = odd->whole + 8;
    if (odd->type == KERNEL_CUDA_F32 || odd->whole == odd->n || all % 16 || odd->m < LEAST_SIDE ||
        odd->k < LEAST_SIDE || odd->n < LEAST_ODD || odd->padded * LEAST_SIDE > PART_BYTES / 2 ||
        odd->m * TILE > PART_BYTES / 2 || more > 2 * (size_t)PART_BYTES || lane->is_short) {
        return false;
    }
    size_t part = std::min((size_t)PART_BYTES, odd->m * odd->padded * odd->bytes());
    lane->is_short = kernel_cuda_spare_scratch(lane, part + more, &scratch) != NULL;
    cudaGetLastError(); /* which is then no fault of what comes next */
    odd->scratch = (char *)scratch;
    return !lane->is_short;
}

/* y[m, n] = x w^T: rows of whole ones are made and copied, and the last columns by themselves. */
KernelCudaFault forward_odd(KernelCuda *lane, const Odd &o, void *y, const void *x, const void *w) {
    size_t last = o.n - o.whole;
    for (size_t row = 0, rows; row < o.m; row += rows) {
        rows = std::min(o.rows(), o.m - row);
        KERNEL_CUDA_TRY(multiply(lane, o.scratch, o.padded, 0, {o.at(x, row * o.k), o.k, 0, false},
                                 {w, o.k, 0, true}, {rows, o.whole, o.k, 1, o.type}, NO_END, NULL));
        KernelCudaPiece made = o.piece(o.at(y, row * o.n), o.n, o.scratch, o.padded, rows, o.whole);
        KERNEL_CUDA_TRY(kernel_cuda_copy_pieces(lane, &made, 1));
    }
    return multiply(lane, o.at(y, o.whole), o.n, 0, {x, o.k, 0, false},
                    {o.at(w, o.whole * o.k), o.k, 0, true}, {o.m, last, o.k, 1, o.type}, NO_END,
                    NULL);
}

/* dx[m, k] = dy w: both with columns, and rows, of zeros more. */
KernelCudaFault backward_input_odd(KernelCuda *lane, const Odd &o, void *dx, const void *dy,
                                   const void *w) {
    char *padded_w = o.at(o.scratch, o.rows() * o.padded);
    size_t more = o.padded - o.n;
    const KernelCudaPiece of_w[] = {o.piece(padded_w, 0, w, 0, 1, o.n * o.k),
                                    o.piece(o.at(padded_w, o.n * o.k), 0, NULL, 0, 1, more * o.k)};
    KERNEL_CUDA_TRY(kernel_cuda_copy_pieces(lane, of_w, 2));
    for (size_t row = 0, rows; row < o.m; row += rows) {
        rows = std::min(o.rows(), o.m - row);
        const KernelCudaPiece of_dy[] = {
            o.piece(o.scratch, o.padded, o.at(dy, row * o.n), o.n, rows, o.n),
            o.piece(o.at(o.scratch, o.n), o.padded, NULL, 0, rows, more)};
        KERNEL_CUDA_TRY(kernel_cuda_copy_pieces(lane, of_dy, 2));
        KERNEL_CUDA_TRY(multiply(lane, o.at(dx, row * o.k), o.k, 0, {o.scratch, o.padded, 0, false},
                                 {padded_w, o.k, 0, false}, {rows, o.k, o.padded, 1, o.type},
                                 NO_END, NULL));
    }
    return NULL;
}

/* dw[n, k] = dy^T x: a part of dy's columns is as many rows of dw, and the last by themselves. */
KernelCudaFault backward_weight_odd(KernelCuda *lane, const Odd &o, void *dw, const void *dy,
                                    const void *x) {
    size_t last = o.n - o.whole;
    for (size_t col = 0, cols; col < o.whole; col += cols) {
        cols = std::min(o.cols(), o.whole - col);
        KernelCudaPiece of_dy = o.piece(o.scratch, cols, o.at(dy, col), o.n, o.m, cols);
        KERNEL_CUDA_TRY(kernel_cuda_copy_pieces(lane, &of_dy, 1));
        KERNEL_CUDA_TRY(multiply(lane, o.at(dw, col * o.k), o.k, 0, {o.scratch, cols, 0, true},
                                 {x, o.k, 0, false}, {cols, o.k, o.m, 1, o.type}, NO_END, NULL));
    }
    return multiply(lane, o.at(dw, o.whole * o.k), o.k, 0, {o.at(dy, o.whole), o.n, 0, true},
                    {x, o.k, 0, false}, {last, o.k, o.m, 1, o.type}, NO_END, NULL);
}

/* A dense y that is ended as asked, where there is one and cuBLASLt can. */
KernelCudaFault multiply_ended(KernelCuda *lane, void *y, const Matrix &a, const Matrix &b,
                               const Sizes &z, const End &end, bool *ret_done) {
    *ret_done = false;
    return z.m && z.n && z.k ? multiply(lane, y, z.n, 0, a, b, z, end, ret_done) : NULL;
}

/* Rows of what goes into GELU, n long, are whole 16 bytes of halves, as the epilogues that keep and
 * read it want them (cublasLt.h: its leading dimension must be divisible by 8). */
bool goes_through_gelu(const KernelCuda *lane, const void *before, size_t n, KernelCudaType type) {
    bool is_whole = n % 8 == 0 && (uintptr_t)before % 16 == 0;
    return lane->blas_knows_gelu && type != KERNEL_CUDA_F32 && is_whole;
}

} // namespace

KernelCudaFault kernel_cuda_float8_product(KernelCuda *lane, void *y, KernelCudaFloat8Factor a,
                                           KernelCudaFloat8Factor b, size_t m, size_t n, size_t k,
                                           bool quick, KernelCudaType type) {
    Stored stored[] = {IN_E4M3, IN_E5M2};
    Sizes sizes = {m, n, k, 1, type, stored[a.type], stored[b.type], quick};
    End scaled = {PLAIN, NULL, NULL, a.scale, b.scale};
    return !m || !n ? NULL
           : !k     ? kernel_cuda_fill(lane, y, m * n, 0, type)
                : multiply(lane, y, n, 0, {a.numbers, k, 0, false}, {b.numbers, k, 0, true}, sizes,
                           scaled, NULL);
}

KernelCudaFault kernel_cuda_mxfp8_product(KernelCuda *lane, void *y, KernelCudaMxfp8Factor a,
                                          KernelCudaMxfp8Factor b, size_t m, size_t n, size_t k,
                                          KernelCudaType type) {
    Sizes sizes = {m, n, k, 1, type, IN_MXFP8, IN_MXFP8, false};
    End scaled = {PLAIN, NULL, NULL, a.exponents, b.exponents};
    return !m || !n ? NULL
           : !k     ? kernel_cuda_fill(lane, y, m * n, 0, type)
                : multiply(lane, y, n, 0, {a.numbers, k, 0, false}, {b.numbers, k, 0, true}, sizes,
                           scaled, NULL);
}

KernelCudaFault kernel_cuda_linear_forward(KernelCuda *lane, void *y, const void *x, const void *w,
                                           const void *bias, size_t m, size_t n, size_t k,
                                           KernelCudaType type) {
    Matrix left = {x, k, 0, false}, right = {w, k, 0, true};
    Sizes sizes = {m, n, k, 1, type};
    bool is_done = false;
    if (!m || !n) {
        return NULL;
    }
    if (bias) { /* cuBLASLt need not add one that lies anyhow */
        KERNEL_CUDA_TRY(multiply_ended(lane, y, left, right, sizes, {BIAS, bias, NULL}, &is_done));
    }
    Odd odd = {m, n, k, type};
    if (!bias && is_odd(lane, &odd, {x, w}, 0)) {
        return forward_odd(lane, odd, y, x, w);
    }
    if (is_done) {
        return NULL;
    }
    KERNEL_CUDA_TRY(multiply_one(lane, y, left, right, sizes));
    return bias ? kernel_cuda_add(lane, y, y, bias, m * n, n, type) : NULL;
}

KernelCudaFault kernel_cuda_linear_gelu_forward(KernelCuda *lane, void *y, void *before,
                                                const void *x, const void *w, const void *bias,
                                                size_t m, size_t n, size_t k,
                                                KernelCudaActivation gelu, KernelCudaType type) {
    bool is_done = false;
    if (gelu == KERNEL_CUDA_GELU_TANH && goes_through_gelu(lane, before, n, type)) {
        KERNEL_CUDA_TRY(multiply_ended(lane, y, {x, k, 0, false}, {w, k, 0, true},
                                       {m, n, k, 1, type}, {bias ? BIAS_GELU : GELU, bias, before},
                                       &is_done));
    }
    if (is_done) {
        return NULL;
    }
    KERNEL_CUDA_TRY(kernel_cuda_linear_forward(lane, before, x, w, bias, m, n, k, type));
    return kernel_cuda_activation_forward(lane, y, before, m * n, gelu, type);
}

KernelCudaFault kernel_cuda_linear_backward_input(KernelCuda *lane, void *dx, const void *dy,
                                                  const void *w, size_t m, size_t n, size_t k,
                                                  KernelCudaType type) {
    Odd odd = {m, n, k, type};
    return is_odd(lane, &odd, {dx, w}, (n + 8) * k * odd.bytes())
               ? backward_input_odd(lane, odd, dx, dy, w)
               : multiply_one(lane, dx, {dy, n, 0, false}, {w, k, 0, false}, {m, k, n, 1, type});
}

KernelCudaFault kernel_cuda_linear_backward_weight(KernelCuda *lane, void *dw, const void *dy,
                                                   const void *x, size_t m, size_t n, size_t k,
                                                   KernelCudaType type) {
    Odd odd = {m, n, k, type};
    return is_odd(lane, &odd, {dw, x}, 0)
               ? backward_weight_odd(lane, odd, dw, dy, x)
               : multiply_one(lane, dw, {dy, n, 0, true}, {x, k, 0, false}, {n, k, m, 1, type});
}

KernelCudaFault kernel_cuda_linear_backward_weight_add(KernelCuda *lane, void *dw, const void *dy,
                                                       const void *x, size_t m, size_t n, size_t k,
                                                       KernelCudaType type) {
    return !m || !n || !k ? NULL
                          : multiply(lane, dw, k, 0, {dy, n, 0, true}, {x, k, 0, false},
                                     {n, k, m, 1, type}, ADDED, NULL);
}

KernelCudaFault kernel_cuda_linear_gelu_backward_input(KernelCuda *lane, void *dx, void *db,
                                                       const void *dy, const void *w,
                                                       const void *before, size_t m, size_t n,
                                                       size_t k, KernelCudaType type) {
    Matrix left = {dy, n, 0, false}, right = {w, k, 0, false};
    Sizes sizes = {m, k, n, 1, type};
    bool is_done = false, is_summed = !db, can_end = goes_through_gelu(lane, before, k, type);
    if (can_end && db && lane->blas_sums_gelu) {
        KERNEL_CUDA_TRY(
            multiply_ended(lane, dx, left, right, sizes, {DGELU_DBIAS, db, before}, &is_done));
        is_summed = is_done;
    }
    if (can_end && !is_done) {
        KERNEL_CUDA_TRY(
            multiply_ended(lane, dx, left, right, sizes, {DGELU, NULL, before}, &is_done));
    }
    if (!is_done) {
        KERNEL_CUDA_TRY(multiply_one(lane, dx, left, right, sizes));
        KERNEL_CUDA_TRY(kernel_cuda_activation_backward(lane, dx, dx, before, m * k,
                                                        KERNEL_CUDA_GELU_TANH, type));
    }
    return is_summed ? NULL : kernel_cuda_column_sum(lane, db, dx, m, k, type);
}

KernelCudaFault kernel_cuda_linear_backward_weight_bias(KernelCuda *lane, void *dw, void *db,
                                                        const void *dy, const void *x, size_t m,
                                                        size_t n, size_t k, KernelCudaType type) {
    bool is_done;
    KERNEL_CUDA_TRY(multiply_ended(lane, dw, {dy, n, 0, true}, {x, k, 0, false}, {n, k, m, 1, type},
                                   {DBIAS, db, NULL}, &is_done));
    if (is_done) {
        return NULL;
    }
    KERNEL_CUDA_TRY(kernel_cuda_linear_backward_weight(lane, dw, dy, x, m, n, k, type));
    return kernel_cuda_column_sum(lane, db, dy, m, n, type);
}

KernelCudaFault kernel_cuda_product(KernelCuda *lane, void *y, const void *a, bool a_turned,
                                    const void *b, bool b_turned, size_t m, size_t n, size_t k,
                                    double alpha, double beta, KernelCudaType type) {
    End end = {PLAIN, NULL, NULL, NULL, NULL, (float)alpha, (float)beta};
    if (!m || !n) {
        return NULL;
    }
    if (!k) {
        return beta == 0 ? kernel_cuda_fill(lane, y, m * n, 0, type)
                         : kernel_cuda_scale(lane, y, type, y, type, m * n, beta);
    }
    return multiply(lane, y, n, 0, {a, a_turned ? m : k, 0, a_turned},
                    {b, b_turned ? k : n, 0, b_turned}, {m, n, k, 1, type}, end, NULL);
}

/* Batch and heads are one batch where the next sequence begins as the next head would. */
KernelCudaFault kernel_cuda_heads_matmul(KernelCuda *lane, KernelCudaMatrices y,
                                         KernelCudaMatrices a, KernelCudaMatrices b, size_t batch,
                                         size_t heads, size_t m, size_t n, size_t k,
                                         KernelCudaType type) {
    const KernelCudaMatrices *all[] = {&y, &a, &b};
    bool is_one = true;
    if (y.transposed) {
        return kernel_cuda_fault("heads_matmul: the output is transposed");
    }
    if (!m || !n || !heads || !batch) {
        return NULL;
    }
    for (const KernelCudaMatrices *matrices : all) {
        is_one = is_one && matrices->batch_stride == heads * matrices->head_stride;
    }
    size_t calls = is_one ? 1 : batch, each = is_one ? batch * heads : heads;
    size_t bytes = kernel_cuda_type_bytes(type);
    for (size_t i = 0; i < calls; i++) {
        Matrix left = {(const char *)a.data + i * a.batch_stride * bytes, a.row_stride,
                       a.head_stride, a.transposed};
        Matrix right = {(const char *)b.data + i * b.batch_stride * bytes, b.row_stride,
                        b.head_stride, b.transposed};
        KERNEL_CUDA_TRY(multiply(lane, (char *)y.data + i * y.batch_stride * bytes, y.row_stride,
                                 y.head_stride, left, right, {m, n, k, each, type}, NO_END, NULL));
    }
    return NULL;
}
