/* kernels/cuda/traced/tensor.cu - see tensor.h: sums, and what its place makes a number. Bound:
 * memory, or divisions. A thread an element, or a part of a sum.
 */
#include "kernels/cuda/traced/tensor.h"

#include "kernels/cuda/traced/tensor.cuh"

using namespace cu;

namespace {

/* ---- sums ----------------------------------------------------------------------------------- */

enum {
    ACROSS = 32,   /* elements of a sum's result that a block makes, if they lie side by side */
    AT_ONCE = 8,   /* numbers that a thread has asked for before it adds them */
    TURNS = 2,     /* of which it has at least, where a sum is cut */
    BLOCKS = 1056, /* that a sum is cut into: eight for each multiprocessor of an H100 */
};

/* What each block adds up: `cut` of the elements that are gone; its sums go to y, so far behind
 * those of the cut before. */
struct Sum {
    Sides<2> kept; /* of x and of y */
    Sides<1> gone;
    size_t n_kept, n_gone, cut, y_apart;
    const void *x;
    void *y;
    KernelDtype x_dtype, y_dtype;
    double factor;
};

/* OUT elements a block, each by THREADS / OUT threads, whose parts are added up in order. */
template <typename U, int OUT>
__global__ void __launch_bounds__(THREADS) sum_tensor_kernel(const __grid_constant__ Sum s) {
    BLOCK_SHARED(double[THREADS], parts);
    constexpr unsigned PARTS = THREADS / OUT;
    size_t out = (size_t)blockIdx.x * OUT + threadIdx.x % OUT, at[2] = {}, more[1];
    double sum = 0;
    if (out < s.n_kept) {
        s.kept.find(out, at);
        const U *from = (const U *)s.x + at[0];
        size_t first = blockIdx.y * s.cut, end = min(s.n_gone, first + s.cut);
        for (size_t i = first + threadIdx.x / OUT; i < end; i += PARTS * AT_ONCE) {
            U raw[AT_ONCE];
#pragma unroll
            for (unsigned u = 0; u < AT_ONCE; u++) {
                if (i + u * PARTS < end) {
                    s.gone.find(i + u * PARTS, more);
                    raw[u] = from[more[0]];
                }
            }
#pragma unroll
            for (unsigned u = 0; u < AT_ONCE; u++) {
                sum += i + u * PARTS < end ? as_double(raw[u], s.x_dtype) : 0;
            }
        }
    }
    parts[threadIdx.x] = sum;
    __syncthreads();
    for (unsigned half = THREADS / 2; half >= OUT; half /= 2) {
        if (threadIdx.x < half) {
            parts[threadIdx.x] += parts[threadIdx.x + half];
        }
        __syncthreads();
    }
    if (threadIdx.x < OUT && out < s.n_kept) {
        store_as<double>(s.y, s.y_dtype, blockIdx.y * s.y_apart + at[1],
                         parts[threadIdx.x] * s.factor);
    }
}

/* ---- by place ------------------------------------------------------------------------------- */

__global__ void __launch_bounds__(THREADS)
    count_up_kernel(Numbers y, size_t n, size_t stride, double start, double step) {
    FOR_WORK(size_t, i, n) {
        y.put(i * stride, start + (double)i * step);
    }
}

__global__ void __launch_bounds__(THREADS)
    triangle_kernel(Numbers y, Numbers x, Sides<2> sides, size_t n, size_t rows, size_t cols,
                    int64_t diagonal, bool lower) {
    FOR_WORK(size_t, i, n) {
        size_t at[2];
        sides.find(i, at);
        int64_t above = (int64_t)(i % cols) - (int64_t)(i / cols % rows) - diagonal;
        bool keeps = lower ? above <= 0 : above >= 0;
        y.put(at[1], keeps ? x.get<double>(at[0]) : 0);
    }
}

} // namespace

/* f is called with a number of as many bits as the dtype has. */
template <typename F> static KernelCudaFault with_bits(KernelDtype dtype, F f) {
    size_t bytes = dtype_bytes(dtype);
    return bytes == 8   ? f(uint64_t())
           : bytes == 4 ? f(uint32_t())
           : bytes == 2 ? f(uint16_t())
                        : f(uint8_t());
}

static size_t blocks_across(const Sum &s, bool lie_beside) {
    return lie_beside ? divide_up(s.n_kept, ACROSS) : s.n_kept;
}

/* How many blocks share out what is gone of an element: enough to keep a GPU's memory busy, each
 * with enough to do. The same on every device, as are the sums. */
static size_t cuts_of(const Sum &s, bool lie_beside) {
    size_t threads = THREADS / (lie_beside ? ACROSS : 1);
    size_t wanted = divide_up(BLOCKS, blocks_across(s, lie_beside));
    size_t most = s.n_gone / (threads * AT_ONCE * TURNS);
    return most < 1 ? 1 : wanted < most ? wanted : most;
}

static KernelCudaFault launch_sum(KernelCuda *lane, const Sum &s, bool lie_beside, size_t cuts) {
    Sum cut = s;
    cut.cut = divide_up(s.n_gone, cuts);
    return with_bits(s.x_dtype, [&](auto t) {
        using U = decltype(t);
        return launch(
            lane, "tensor_sum", lie_beside ? sum_tensor_kernel<U, ACROSS> : sum_tensor_kernel<U, 1>,
            dim3(block_each(blocks_across(s, lie_beside)), (unsigned)cuts), dim3(THREADS), 0, cut);
    });
}

/* By way of the sums of each cut, which lie as y's elements would one behind the other. */
static KernelCudaFault sum_of_cuts(KernelCuda *lane, const Sum &s, bool lie_beside, size_t cuts) {
    void *scratch;
    KERNEL_CUDA_TRY(kernel_cuda_scratch(lane, cuts * s.n_kept * sizeof(double), &scratch));
    Sum of_cuts = s, of_all = s;
    size_t step = 1;
    for (unsigned d = s.kept.n; d-- > 0; step *= s.kept.sizes[d]) {
        of_cuts.kept.strides[1][d] = of_all.kept.strides[0][d] = step;
    }
    of_cuts.y = scratch, of_cuts.y_dtype = KERNEL_FP64;
    of_cuts.y_apart = s.n_kept;
    of_cuts.factor = 1;
    of_all.x = scratch, of_all.x_dtype = KERNEL_FP64;
    of_all.gone = Sides<1>{1, {cuts}, {{s.n_kept}}};
    of_all.n_gone = cuts;
    KERNEL_CUDA_TRY(launch_sum(lane, of_cuts, lie_beside, cuts));
    return launch_sum(lane, of_all, s.n_kept > 1, 1);
}

KernelCudaFault kernel_cuda_tensor_sum(KernelCuda *lane, const KernelTensor *y,
                                       const KernelTensor *x, unsigned summed, double factor) {
    Sum s = {};
    unsigned to = 0;
    bool lie_beside = false; /* elements of y, in x */
    for (unsigned i = 0; i < x->n_dims; i++) {
        bool is_gone = summed >> i & 1;
        unsigned of_y = y->n_dims == x->n_dims ? i : to;
        if (is_gone) {
            s.gone.add(x->sizes[i], x->strides[i]);
        } else {
            s.kept.add(x->sizes[i], x->strides[i], y->strides[of_y]);
            to++;
        }
        lie_beside = x->sizes[i] == 1 ? lie_beside : !is_gone;
    }
    s.n_kept = s.kept.count();
    s.n_gone = s.gone.count();
    s.x = x->data;
    s.y = y->data;
    s.x_dtype = x->dtype;
    s.y_dtype = y->dtype;
    s.factor = factor;
    if (!s.n_kept) {
        return NULL;
    }
    size_t cuts = cuts_of(s, lie_beside);
    return cuts == 1 ? launch_sum(lane, s, lie_beside, 1) : sum_of_cuts(lane, s, lie_beside, cuts);
}

KernelCudaFault kernel_cuda_tensor_count_up(KernelCuda *lane, const KernelTensor *y, double start,
                                            double step) {
    return launch_for(lane, "count_up", y->sizes[0], count_up_kernel, numbers_of(y), y->sizes[0],
                      y->strides[0], start, step);
}

KernelCudaFault kernel_cuda_tensor_triangle(KernelCuda *lane, const KernelTensor *y,
                                            const KernelTensor *x, int64_t diagonal, bool lower) {
    Sides<2> sides = {};
    for (unsigned i = 0; i < y->n_dims; i++) {
        sides.add(y->sizes[i], x->strides[i], y->strides[i]);
    }
    size_t n = sides.count();
    return launch_for(lane, "triangle", n, triangle_kernel, numbers_of(y), numbers_of(x), sides, n,
                      y->sizes[y->n_dims - 2], y->sizes[y->n_dims - 1], diagonal, lower);
}
