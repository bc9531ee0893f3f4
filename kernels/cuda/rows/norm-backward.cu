/* kernels/cuda/rows/norm-backward.cu - see norm.h: backward. Bound: memory.
 *
 * With h = (x - mean) rstd and g = dy weight, averages over a row written < >:
 *     layer norm: dx = rstd (g - <g> - h <g h>)        dweight = sum over rows of dy h, dbias of dy
 *     RMS norm:   dx = rstd (g - h <g h>), mean 0      dweight likewise
 * A number of blocks runs that depends on the width alone; each strides over rows (norm.cuh says
 * who takes one) and keeps the sums of its columns, which are added in order afterwards. While it
 * waits for the sums of one row, the next one is on its way. Of rows that a warp or less holds
 * (narrow ones) a block takes several at once, and adds up their columns at its end.
 */
#include "kernels/cuda/rows/norm.h"

#include "kernels/cuda/rows/norm-held.cuh"

using namespace cu;

namespace {

enum {
    BACKWARD_BLOCKS = 264, /* two for each multiprocessor of an H100; the same on every device */
    NARROW_BLOCKS = 3,     /* of narrow rows, for each multiprocessor; of two types one less fits */
};

/* ---- held ----------------------------------------------------------------------------------- */

template <typename T, typename S, typename W, bool CENTERED, int N>
__global__ void __launch_bounds__(ROW_THREADS) backward_held_kernel(Backward<T, S, W> b) {
    BackwardHeld<T, S, W, CENTERED, N> held;
    float inverse = 1.0f / (float)b.width;
    unsigned turn = 0;
    held.begin(b);
    size_t start = blockIdx.x * b.width + Held<T, S, W>::column(0), step = gridDim.x * b.width;
    held.now.get(b, blockIdx.x, start); /* there are no more blocks than rows */
    for (size_t row = blockIdx.x; row < b.rows; row += gridDim.x, start += step) {
        float sum_g = 0, sum_gh = 0, rstd = held.now.rstd;
        if (row + gridDim.x < b.rows) {
            held.next.get(b, row + gridDim.x, start + step);
        }
        held.get_more(b, start);
        held.add_up(b, &sum_g, &sum_gh);
        two_row_sums(&sum_g, &sum_gh, turn++);
        held.put(b, start, CENTERED ? -rstd * sum_g * inverse : 0.0f,
                 rstd * rstd * sum_gh * inverse);
        held.now = held.next;
    }
    held.put_sums(b);
}

/* ---- narrow --------------------------------------------------------------------------------- */

/* What the block's threads have of each column, added up over its rows of threads, in order. */
template <int V, int KINDS, typename T, typename S, typename W>
__device__ void put_narrow_sums(const Backward<T, S, W> &b, const float (&sums)[KINDS][V],
                                float (&columns)[KINDS][V * THREADS]) {
#pragma unroll
    for (int i = 0; i < KINDS * V; i++) {
        columns[i / V][(threadIdx.y * V + i % V) * blockDim.x + threadIdx.x] = sums[i / V][i % V];
    }
    __syncthreads();
    unsigned column = threadIdx.y * blockDim.x + threadIdx.x;
    for (int kind = 0; kind < KINDS && column < b.width; kind++) {
        float *out = kind ? b.dbias : b.dweight, sum = 0;
        for (unsigned y = 0; y < blockDim.y; y++) {
            sum += columns[kind][(y * V + column % V) * blockDim.x + column / V];
        }
        if (out) {
            out[blockIdx.x * b.width + column] = sum;
        }
    }
}

/* A row to blockDim.x lanes of a warp, a power of two, each with one piece or none; blockDim.y rows
 * to a block at once. */
template <typename T, typename S, typename W, bool CENTERED>
__global__ void __launch_bounds__(THREADS, NARROW_BLOCKS - (sizeof(T) != sizeof(S) ||
                                                            (CENTERED && sizeof(T) != sizeof(W))))
    backward_narrow_kernel(Backward<T, S, W> b) {
    using H = Held<T, S, W>;
    constexpr int V = H::V, KINDS = CENTERED ? 2 : 1;
    BLOCK_SHARED(float[KINDS][V * THREADS], columns);
    float sums[KINDS][V] = {}, inverse = 1.0f / (float)b.width;
    BackwardRow<T, S, W, CENTERED, 1> now = {}, next = {};
    bool has = H::has(0, b.width);
    typename H::Weight w =
        b.weight && has ? H::get(b.weight + H::column(0)) : H::template all<W>(1);
    size_t step = (size_t)gridDim.x * blockDim.y, row = first_row();
    auto at = [&](size_t of) { return of * b.width + H::column(0); };
    if (row < b.rows) {
        now.get(b, row, at(row));
    }
    for (; row - threadIdx.y < b.rows; row += step) { /* all lanes take part in sums */
        bool inside = has && row < b.rows;
        typename H::Piece more = H::template all<T>(0);
        float g[V] = {}, h[V] = {}, sum_g = 0, sum_gh = 0;
        if (row + step < b.rows) {
            next.get(b, row + step, at(row + step));
        }
        if (inside) {
            if (b.dsum && b.dx) {
                more = H::get(b.dsum + at(row));
            }
            float weight[V];
            widen_raw(g, now.dy[0]);
            widen_raw(h, now.x[0]);
            widen_raw(weight, w);
#pragma unroll
            for (int v = 0; v < V; v++) {
                h[v] = (h[v] - now.mean) * now.rstd;
                sums[0][v] += g[v] * h[v];
                if (CENTERED) {
                    sums[KINDS - 1][v] += g[v];
                }
                g[v] *= weight[v];
                sum_g += g[v];
                sum_gh += g[v] * h[v];
            }
        }
        sum_g = CENTERED ? lanes_sum(sum_g, blockDim.x) * inverse : 0.0f;
        sum_gh = lanes_sum(sum_gh, blockDim.x) * inverse;
        if (inside && b.dx) {
            float dx[V];
            widen_raw(dx, more);
#pragma unroll
            for (int v = 0; v < V; v++) {
                dx[v] += now.rstd * (g[v] - sum_g - h[v] * sum_gh);
            }
            store<V>(b.dx + at(row), dx);
        }
        now = next;
    }
    put_narrow_sums(b, sums, columns);
}

/* ---- streamed ------------------------------------------------------------------------------- */

template <typename T, typename S, typename W, bool CENTERED>
__global__ void __launch_bounds__(ROW_THREADS) backward_streamed_kernel(Backward<T, S, W> b) {
    size_t row = blockIdx.x, start = row * b.width;
    const T *x = b.x + row * b.x_row;
    float mean = CENTERED ? b.mean[row] : 0.0f, rstd = b.rstd[row], sum_g = 0, sum_gh = 0;
    for (size_t i = threadIdx.x; i < b.width; i += blockDim.x) {
        float g = widen(b.dy[start + i]) * (b.weight ? widen(b.weight[i]) : 1.0f);
        sum_g += g;
        sum_gh += g * (widen(x[i]) - mean) * rstd;
    }
    sum_g = CENTERED ? row_sum(sum_g) / (float)b.width : 0.0f;
    sum_gh = row_sum(sum_gh) / (float)b.width;
    for (size_t i = threadIdx.x; i < b.width; i += blockDim.x) {
        float g = widen(b.dy[start + i]) * (b.weight ? widen(b.weight[i]) : 1.0f);
        float h = (widen(x[i]) - mean) * rstd;
        float more = b.dsum ? widen(b.dsum[start + i]) : 0.0f;
        narrow(&b.dx[start + i], rstd * (g - sum_g - h * sum_gh) + more);
    }
}

/* The sums of columns alone: block (c, p) takes every gridDim.y-th row, a column a thread. Before
 * the kernel above, which may write dx over dy. */
template <typename T, typename S, typename W, bool CENTERED>
__global__ void __launch_bounds__(THREADS) columns_streamed_kernel(Backward<T, S, W> b) {
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    float dweight = 0, dbias = 0;
    if (i >= b.width) {
        return;
    }
    for (size_t row = blockIdx.y; row < b.rows; row += gridDim.y) {
        float dy = widen(b.dy[row * b.width + i]), x = widen(b.x[row * b.x_row + i]);
        dweight += dy * (x - (CENTERED ? b.mean[row] : 0.0f)) * b.rstd[row];
        dbias += dy;
    }
    if (b.dweight) {
        b.dweight[blockIdx.y * b.width + i] = dweight;
    }
    if (CENTERED && b.dbias) {
        b.dbias[blockIdx.y * b.width + i] = dbias;
    }
}

/* ---- choosing ------------------------------------------------------------------------------- */

/* How backward takes a width: pieces a thread, threads to a row, rows of a block at once, and
 * blocks, of which shorter rows need more to keep as much memory on its way. An H100 holds all of
 * them at once. */
struct HeldShape {
    unsigned items, threads, rows, most_blocks;
};

HeldShape held_shape(size_t pieces) {
    if (pieces <= LANES) {
        unsigned lanes = lanes_for(pieces);
        return HeldShape{1, lanes, THREADS / lanes, BACKWARD_BLOCKS / 2 * NARROW_BLOCKS};
    }
    unsigned items = pieces <= ROW_THREADS / 2 ? 1 : pieces <= ROW_THREADS * 2 ? 2 : ITEMS;
    unsigned threads = row_threads(pieces, items);
    return HeldShape{items, threads, 1,
                     BACKWARD_BLOCKS * (items > 1        ? 1u
                                        : threads <= 128 ? 4u
                                                         : 2u)};
}

/* Bytes of shared memory that a block of backward may ask for. */
size_t room_of(const KernelCuda *lane) {
    size_t others = 1024; /* at most, of sums of rows */
    return (size_t)lane->block_shared_bytes - others;
}

/* The shared-memory limit is an attribute of the kernel, not of a launch; it is always set to one
 * value, so that concurrent lanes cannot lower it for each other. */
template <typename T, typename S, typename W, bool CENTERED, int N>
KernelCudaFault backward_held(KernelCuda *lane, const char *name, const Backward<T, S, W> &b,
                              unsigned blocks, unsigned threads) {
    typedef BackwardSums<T, S, CENTERED, N> Sums;
    auto kernel = backward_held_kernel<T, S, W, CENTERED, N>;
    size_t most = Sums::shared_bytes(ROW_THREADS), room = room_of(lane);
    if (Sums::SHARED) {
        KERNEL_CUDA_TRY(allow_shared(lane, kernel, most < room ? most : room));
    }
    return launch(lane, name, kernel, dim3(blocks), dim3(threads), Sums::shared_bytes(threads), b);
}

/* Whether a block may have as much shared memory as the widest rows need: GPUs of sm_80 and sm_90
 * do, some between them do not. */
template <typename T, typename S, typename W, bool CENTERED>
bool has_room(const KernelCuda *lane, const HeldShape &shape) {
    return shape.items < ITEMS ||
           BackwardSums<T, S, CENTERED, ITEMS>::shared_bytes(shape.threads) <= room_of(lane);
}

template <typename T, typename S, typename W, bool CENTERED>
KernelCudaFault backward_streamed(KernelCuda *lane, const char *name, const Backward<T, S, W> &b,
                                  unsigned blocks) {
    if (b.dweight || b.dbias) {
        KERNEL_CUDA_TRY(launch(lane, name, columns_streamed_kernel<T, S, W, CENTERED>,
                               dim3(block_each(divide_up(b.width, THREADS)), blocks), dim3(THREADS),
                               0, b));
    }
    return b.dx ? launch(lane, name, backward_streamed_kernel<T, S, W, CENTERED>,
                         dim3(block_each(b.rows)), dim3(streamed_threads(b.width)), 0, b)
                : NULL;
}

template <typename T, typename S, typename W, bool CENTERED>
KernelCudaFault backward_by_shape(KernelCuda *lane, const char *name, const Backward<T, S, W> &b,
                                  unsigned blocks, const HeldShape &shape) {
    if (shape.rows > 1) {
        return launch(lane, name, backward_narrow_kernel<T, S, W, CENTERED>, dim3(blocks),
                      dim3(shape.threads, shape.rows), 0, b);
    }
    return shape.items == 1
               ? backward_held<T, S, W, CENTERED, 1>(lane, name, b, blocks, shape.threads)
           : shape.items == 2
               ? backward_held<T, S, W, CENTERED, 2>(lane, name, b, blocks, shape.threads)
               : backward_held<T, S, W, CENTERED, MOST_ITEMS<T, S>>(lane, name, b, blocks,
                                                                    shape.threads);
}

template <typename T, typename S, typename W, bool CENTERED>
KernelCudaFault backward(KernelCuda *lane, const char *name, void *dweight, void *dbias,
                         Backward<T, S, W> b, KernelCudaType weight_type) {
    HeldShape shape = held_shape(b.width / VECTOR<T, S>);
    bool held = (b.width | b.x_row) % VECTOR<T, S> == 0 &&
                b.width / VECTOR<T, S> <= ROW_THREADS * MOST_ITEMS<T, S> && aligned(b.dx) &&
                aligned(b.dsum) && aligned(b.dy) && aligned(b.x) && aligned(b.weight) &&
                has_room<T, S, W, CENTERED>(lane, shape);
    size_t most = held ? shape.most_blocks : BACKWARD_BLOCKS;
    size_t wanted = held ? divide_up(b.rows, shape.rows) : b.rows;
    unsigned blocks = (unsigned)(wanted < most ? wanted : most);
    void *scratch;
    size_t part = (size_t)blocks * b.width;
    KERNEL_CUDA_TRY(kernel_cuda_scratch(lane, 2 * part * sizeof(float), &scratch));
    b.dweight = dweight ? (float *)scratch : NULL;
    b.dbias = dbias ? (float *)scratch + part : NULL;
    KERNEL_CUDA_TRY(held ? backward_by_shape<T, S, W, CENTERED>(lane, name, b, blocks, shape)
                         : backward_streamed<T, S, W, CENTERED>(lane, name, b, blocks));
    if (dweight) {
        KERNEL_CUDA_TRY(
            kernel_cuda_add_parts(lane, dweight, b.dweight, blocks, b.width, weight_type));
    }
    return dbias ? kernel_cuda_add_parts(lane, dbias, b.dbias, blocks, b.width, weight_type) : NULL;
}

} // namespace

KernelCudaFault kernel_cuda_layernorm_backward(KernelCuda *lane, void *dx, void *dweight,
                                               void *dbias, const void *dsum, const void *dy,
                                               const void *x, const float *mean, const float *rstd,
                                               const void *weight, const KernelCudaNorm *norm) {
    if (!norm->rows || !norm->width) {
        return NULL;
    }
    return with_norm_types(norm, [&](auto t, auto s, auto w) {
        using T = decltype(t);
        using S = decltype(s);
        using W = decltype(w);
        return backward<T, S, W, true>(lane, "layernorm_backward", dweight, dbias,
                                       {(T *)dx, NULL, NULL, (const T *)dsum, (const S *)dy,
                                        (const T *)x, (const W *)weight, mean, rstd, norm->rows,
                                        norm->width, row_of(norm)},
                                       weight_type_of(norm));
    });
}

KernelCudaFault kernel_cuda_rmsnorm_backward(KernelCuda *lane, void *dx, void *dweight,
                                             const void *dsum, const void *dy, const void *x,
                                             const float *rstd, const void *weight,
                                             const KernelCudaNorm *norm) {
    if (!norm->rows || !norm->width) {
        return NULL;
    }
    return with_norm_types(norm, [&](auto t, auto s, auto w) {
        using T = decltype(t);
        using S = decltype(s);
        using W = decltype(w);
        return backward<T, S, W, false>(lane, "rmsnorm_backward", dweight, NULL,
                                        {(T *)dx, NULL, NULL, (const T *)dsum, (const S *)dy,
                                         (const T *)x, (const W *)weight, NULL, rstd, norm->rows,
                                         norm->width, row_of(norm)},
                                        weight_type_of(norm));
    });
}
