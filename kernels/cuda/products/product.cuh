/* kernels/cuda/products/product.cuh - one product over cuBLASLt, ended as asked; for .cu files of
 * this folder only.
 */
#pragma once
#include "kernels/cuda/lane.h"

namespace cu {

/* A row-major operand: rows `stride` elements apart, matrices of a batch `batch_stride`. */
struct Matrix {
    const void *data;
    size_t stride, batch_stride;
    bool transposed;
};

enum Ending : uint8_t {
    PLAIN,
    BIAS,
    GELU,
    BIAS_GELU,
    DGELU,
    DGELU_DBIAS, /* and the sums of what that leaves, over our rows */
    DBIAS        /* and the sums of a over what is summed */
};

/* What is done to a product at its end, and the arrays for that. */
struct End {
    Ending ending;
    const void *bias;              /* or its gradient, which is written */
    const void *before;            /* what goes into GELU: written forward, read backward */
    const void *a_scale, *b_scale; /* of factors in float8, fp32; of MXFP8, exponents */
    float alpha = 1, beta = 0;     /* times the product, and what the output holds */
};

/* How a factor is: as the output, or in float8. */
enum Stored : uint8_t {
    AS_OUTPUT,
    IN_E4M3,
    IN_E5M2,
    IN_MXFP8 /* e4m3, each 32 numbers by a power of two */
};

constexpr End NO_END = {PLAIN, NULL, NULL}, ADDED = {PLAIN, NULL, NULL, NULL, NULL, 1, 1};

struct Sizes {
    size_t m, n, k, batch;
    KernelCudaType type;
    Stored a, b;
    bool quick;
    size_t bytes_of(Stored stored) const {
        return stored == AS_OUTPUT ? kernel_cuda_type_bytes(type) : 1;
    }
};

/* y = op(a) op(b), ended as asked; *ret_possible says whether cuBLASLt could, and NULL that it
 * must. */
KernelCudaFault multiply(KernelCuda *lane, void *y, size_t y_stride, size_t y_batch,
                         const Matrix &a, const Matrix &b, const Sizes &z, const End &end,
                         bool *ret_possible);

} // namespace cu
