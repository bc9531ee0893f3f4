/* kernels/cuda/latent.cu - see latent.h. Bound: memory. */
#include "kernels/cuda/latent.h"

#include "kernels/cuda/each.cuh"

using namespace cu;

namespace {

enum {
    BLOCK_ROWS = 8,    /* of a norm's block, a warp each */
    PART_ROWS = 32,    /* of a weight's gradient, at least */
    MOST_PARTS = 1024, /* of those */
};

/* ---- norms ---------------------------------------------------------------------------------- */

template <typename T>
__global__ void __launch_bounds__(LANES *BLOCK_ROWS)
    norm_kernel(T *y, float *rstd, const T *x, const T *weight, size_t rows, size_t width,
                size_t stride, float eps) {
    size_t row = (size_t)blockIdx.x * BLOCK_ROWS + threadIdx.y;
    if (row >= rows) {
        return;
    }
    const T *at = x + row * stride;
    float squares = 0;
    for (size_t c = threadIdx.x; c < width; c += LANES) {
        squares += widen(at[c]) * widen(at[c]);
    }
    float factor = 1.0f / sqrtf(warp_sum(squares) / (float)width + eps);
    for (size_t c = threadIdx.x; c < width; c += LANES) {
        narrow(&y[row * width + c], widen(at[c]) * factor * widen(weight[c]));
    }
    if (threadIdx.x == 0) {
        rstd[row] = factor;
    }
}

/* dx = rstd (g - x rstd^2 mean of g x), g = dy weight. */
template <typename T>
__global__ void __launch_bounds__(LANES *BLOCK_ROWS)
    norm_dx_kernel(T *dx, const T *dy, const T *x, const float *rstd, const T *weight, size_t rows,
                   size_t width, size_t stride) {
    size_t row = (size_t)blockIdx.x * BLOCK_ROWS + threadIdx.y;
    if (row >= rows) {
        return;
    }
    const T *at = x + row * stride, *dy_at = dy + row * width;
    float sum = 0, factor = rstd[row];
    for (size_t c = threadIdx.x; c < width; c += LANES) {
        sum += widen(dy_at[c]) * widen(weight[c]) * widen(at[c]);
    }
    float pull = warp_sum(sum) / (float)width * factor * factor;
    for (size_t c = threadIdx.x; c < width; c += LANES) {
        float g = widen(dy_at[c]) * widen(weight[c]);
        narrow(&dx[row * width + c], factor * (g - widen(at[c]) * pull));
    }
}

/* A warp adds up so many rows of its columns. */
template <typename T>
__global__ void __launch_bounds__(LANES)
    norm_dw_kernel(float *parts, const T *dy, const T *x, const float *rstd, size_t rows,
                   size_t width, size_t stride, size_t part_rows) {
    size_t column = (size_t)blockIdx.x * LANES + threadIdx.x, first = blockIdx.y * part_rows;
    if (column >= width) {
        return;
    }
    float sum = 0;
    for (size_t row = first; row < min(rows, first + part_rows); row++) {
        sum += widen(dy[row * width + column]) * widen(x[row * stride + column]) * rstd[row];
    }
    parts[blockIdx.y * width + column] = sum;
}

/* ---- heads ---------------------------------------------------------------------------------- */

__global__ void __launch_bounds__(THREADS)
    turn_kernel(float *y, const float *x, const float *turns, size_t n, size_t heads, size_t seq,
                size_t half, size_t stride) {
    FOR_WORK(size_t, i, n) {
        size_t row = i / half, j = 2 * (i % half);
        const float *in = x + row * stride + j;
        const float *by = turns + row / heads % seq * 2 * half + j;
        float real = in[0], imaginary = in[1];
        y[2 * i] = real * by[0] - imaginary * by[1];
        y[2 * i + 1] = real * by[1] + imaginary * by[0];
    }
}

template <typename T>
__global__ void __launch_bounds__(THREADS)
    join_kernel(T *y, const T *a, const T *b, size_t n, size_t a_cols, size_t b_cols, size_t stride,
                size_t each) {
    size_t cols = a_cols + b_cols;
    FOR_WORK(size_t, i, n) {
        size_t row = i / cols, c = i % cols;
        y[i] = c < a_cols ? a[row * stride + c] : b[row / each * b_cols + c - a_cols];
    }
}

/* ---- routing -------------------------------------------------------------------------------- */

struct Sigmoid {
    __device__ void operator()(const float *in, float *out) const {
        out[0] = 1.0f / (1.0f + expf(-in[0]));
    }
};

struct SigmoidBack { /* dy y */
    __device__ void operator()(const float *in, float *out) const {
        out[0] = in[0] * in[1] * (1.0f - in[1]);
    }
};

__global__ void __launch_bounds__(THREADS)
    unset_kernel(uint8_t *mask, const int64_t *index, size_t n, size_t cols, size_t k,
                 unsigned *flag, unsigned tag) {
    FOR_WORK(size_t, i, n) {
        if (is_inside(index[i], cols)) {
            mask[i / k * cols + (size_t)index[i]] = 0;
        } else {
            tell_bad_index(flag, tag);
        }
    }
}

dim3 warps_for(size_t rows) {
    return dim3(block_each(divide_up(rows, BLOCK_ROWS)));
}

} // namespace

KernelCudaFault kernel_cuda_norm_columns(KernelCuda *lane, void *y, float *rstd, const void *x,
                                         const void *weight, const KernelCudaNorm *norm,
                                         size_t row) {
    if (!norm->rows) {
        return NULL;
    }
    return with_type(norm->type, [&](auto t) {
        using T = decltype(t);
        return launch(lane, "norm_columns", norm_kernel<T>, warps_for(norm->rows),
                      dim3(LANES, BLOCK_ROWS), 0, (T *)y, rstd, (const T *)x, (const T *)weight,
                      norm->rows, norm->width, row, norm->eps);
    });
}

KernelCudaFault kernel_cuda_norm_columns_backward(KernelCuda *lane, void *dx, void *dweight,
                                                  const void *dy, const void *x, const float *rstd,
                                                  const void *weight, const KernelCudaNorm *norm,
                                                  size_t row) {
    size_t rows = norm->rows, width = norm->width, most = divide_up(rows, PART_ROWS);
    size_t parts = most < 1 ? 1 : most < MOST_PARTS ? most : MOST_PARTS;
    void *sums;
    KERNEL_CUDA_TRY(kernel_cuda_scratch(lane, parts * width * sizeof(float) + 1, &sums));
    KERNEL_CUDA_TRY(with_type(norm->type, [&](auto t) -> KernelCudaFault {
        using T = decltype(t);
        const T *from = (const T *)x, *d = (const T *)dy, *w = (const T *)weight;
        KERNEL_CUDA_TRY(rows ? launch(lane, "norm_columns_backward", norm_dx_kernel<T>,
                                      warps_for(rows), dim3(LANES, BLOCK_ROWS), 0, (T *)dx, d, from,
                                      rstd, w, rows, width, row)
                             : NULL);
        return launch(lane, "norm_columns_backward (dw)", norm_dw_kernel<T>,
                      dim3(block_each(divide_up(width, LANES)), (unsigned)parts), dim3(LANES), 0,
                      (float *)sums, d, from, rstd, rows, width, row, divide_up(rows, parts));
    }));
    return kernel_cuda_add_parts(lane, dweight, (const float *)sums, parts, width, norm->type);
}

KernelCudaFault kernel_cuda_turn_columns(KernelCuda *lane, float *y, const float *x,
                                         const float *turns, size_t tokens, size_t heads,
                                         size_t dim, size_t seq, size_t row) {
    size_t n = tokens * heads * (dim / 2);
    return launch_for(lane, "turn_columns", n, turn_kernel, y, x, turns, n, heads, seq, dim / 2,
                      row);
}

KernelCudaFault kernel_cuda_join_heads(KernelCuda *lane, void *y, const void *a, const void *b,
                                       size_t rows, size_t a_cols, size_t b_cols, size_t row,
                                       size_t each, KernelCudaType type) {
    size_t n = rows * (a_cols + b_cols);
    return with_type(type, [&](auto t) {
        using T = decltype(t);
        return launch_for(lane, "join_heads", n, join_kernel<T>, (T *)y, (const T *)a, (const T *)b,
                          n, a_cols, b_cols, row, each);
    });
}

KernelCudaFault kernel_cuda_sigmoid(KernelCuda *lane, void *y, const void *x, size_t n,
                                    KernelCudaType type) {
    return with_type(type, [&](auto t) {
        using T = decltype(t);
        return each(lane, "sigmoid", Arrays<const T, 1>{{(const T *)x}}, Arrays<T, 1>{{(T *)y}}, n,
                    Sigmoid{});
    });
}

KernelCudaFault kernel_cuda_sigmoid_backward(KernelCuda *lane, void *dx, const void *dy,
                                             const void *y, size_t n, KernelCudaType type) {
    return with_type(type, [&](auto t) {
        using T = decltype(t);
        return each(lane, "sigmoid_backward", Arrays<const T, 2>{{(const T *)dy, (const T *)y}},
                    Arrays<T, 1>{{(T *)dx}}, n, SigmoidBack{});
    });
}

KernelCudaFault kernel_cuda_unset_columns(KernelCuda *lane, uint8_t *mask, const int64_t *index,
                                          size_t rows, size_t cols, size_t k) {
    return launch_for(lane, "unset_columns", rows * k, unset_kernel, mask, index, rows * k, cols, k,
                      lane->flag, lane->tag);
}
