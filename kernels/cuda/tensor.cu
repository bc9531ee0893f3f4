/* kernels/cuda/tensor.cu - see tensor.h. Bound: memory, or divisions. A thread an element.
 */
#include "kernels/cuda/tensor.h"

#include <math.h>

#include "kernels/cuda/tensor.cuh"
#include "kernels/tensor-math.h"
#include "kernels/tensor-walk.h"

using namespace cu;

namespace {

/* ---- element by element --------------------------------------------------------------------- */

template <typename R> __device__ R compute(KernelEach what, R a, R b, R c, R p, R q) {
    GELU_FUNCTIONS;
    (void)q;
    switch (what) {
#define EACH(id, ...)                                                                              \
    case KERNEL_EACH_##id:                                                                         \
        return (R)(__VA_ARGS__);
#include "kernels/host/tensor-rows.def"
#undef EACH
    case KERNEL_N_EACH:
        break;
    }
    return 0;
}

/* A tensor of the walk; without data, a number. */
struct Operand {
    void *data;
    KernelDtype dtype;
    double number;
};

struct Each {
    KernelEach what;
    unsigned n_dims, n_inputs;
    size_t sizes[KERNEL_TENSOR_SIDES];
    size_t strides[KERNEL_EACH_INPUTS + 1][KERNEL_TENSOR_SIDES];
    Operand of[KERNEL_EACH_INPUTS + 1]; /* the output is the last */
    double p, q;
};

template <typename R, typename I>
__global__ void __launch_bounds__(THREADS) each_tensor_kernel(const __grid_constant__ Each e, I n) {
    FOR_WORK(I, i, n) {
        size_t at[KERNEL_EACH_INPUTS + 1] = {};
        I rest = i;
        for (unsigned d = e.n_dims; d-- > 0;) {
            I size = (I)e.sizes[d], before = d ? rest / size : 0, here = rest - before * size;
            rest = before;
#pragma unroll
            for (unsigned t = 0; t <= KERNEL_EACH_INPUTS; t++) {
                at[t] += (size_t)here * e.strides[t][d];
            }
        }
        R x[KERNEL_EACH_INPUTS] = {};
#pragma unroll
        for (unsigned t = 0; t < KERNEL_EACH_INPUTS; t++) {
            if (t < e.n_inputs) {
                x[t] = e.of[t].data ? load_as<R>(e.of[t].data, e.of[t].dtype, at[t])
                                    : (R)e.of[t].number;
            }
        }
        const Operand &y = e.of[KERNEL_EACH_INPUTS];
        store_as<R>(y.data, y.dtype, at[KERNEL_EACH_INPUTS],
                    compute<R>(e.what, x[0], x[1], x[2], (R)e.p, (R)e.q));
    }
}

template <typename R> KernelCudaFault launch_each(KernelCuda *lane, const Each &e, size_t n) {
    return with_index(n, [&](auto of) {
        using I = decltype(of);
        return launch_for(lane, "tensor_each", n, each_tensor_kernel<R, I>, e, n);
    });
}

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

/* Read as they lie and widened later, so that several loads are under way together. */
template <typename X> __device__ double as_double(X x) {
    return (double)x;
}
__device__ double as_double(__nv_bfloat16 x) {
    return widen(x);
}
__device__ double as_double(__half x) {
    return widen(x);
}

/* OUT elements a block, each by THREADS / OUT threads, whose parts are added up in order. */
template <typename X, int OUT>
__global__ void __launch_bounds__(THREADS) sum_tensor_kernel(const __grid_constant__ Sum s) {
    BLOCK_SHARED(double[THREADS], parts);
    constexpr unsigned PARTS = THREADS / OUT;
    size_t out = (size_t)blockIdx.x * OUT + threadIdx.x % OUT, at[2] = {}, more[1];
    double sum = 0;
    if (out < s.n_kept) {
        s.kept.find(out, at);
        const X *from = (const X *)s.x + at[0];
        size_t first = blockIdx.y * s.cut, end = min(s.n_gone, first + s.cut);
        for (size_t i = first + threadIdx.x / OUT; i < end; i += PARTS * AT_ONCE) {
            X raw[AT_ONCE];
#pragma unroll
            for (unsigned u = 0; u < AT_ONCE; u++) {
                if (i + u * PARTS < end) {
                    s.gone.find(i + u * PARTS, more);
                    raw[u] = from[more[0]];
                }
            }
#pragma unroll
            for (unsigned u = 0; u < AT_ONCE; u++) {
                sum += i + u * PARTS < end ? as_double(raw[u]) : 0;
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

size_t count_of(const KernelTensor *t) {
    size_t n = 1;
    for (unsigned i = 0; i < t->n_dims; i++) {
        n *= t->sizes[i];
    }
    return n;
}

} // namespace

KernelCudaFault kernel_cuda_tensor_each(KernelCuda *lane, KernelEach what, const KernelTensor *y,
                                        const KernelTensor *inputs, const double *numbers,
                                        unsigned n_inputs, double p, double q) {
    KernelWalk walk;
    bool wide = kernel_walk_of(&walk, y, inputs, n_inputs);
    Each e = {};
    e.what = what;
    e.n_dims = walk.n_dims;
    e.n_inputs = n_inputs;
    memcpy(e.sizes, walk.sizes, sizeof e.sizes);
    memcpy(e.strides[KERNEL_EACH_INPUTS], walk.strides[n_inputs], sizeof *e.strides);
    for (unsigned i = 0; i < n_inputs && i < KERNEL_EACH_INPUTS; i++) {
        memcpy(e.strides[i], walk.strides[i], sizeof *e.strides);
        bool is_number = !inputs[i].data;
        e.of[i] = Operand{inputs[i].data, inputs[i].dtype, is_number ? numbers[i] : 0};
    }
    e.of[KERNEL_EACH_INPUTS] = Operand{y->data, y->dtype, 0};
    e.p = p;
    e.q = q;
    size_t n = count_of(y);
    return wide ? launch_each<double>(lane, e, n) : launch_each<float>(lane, e, n);
}

/* f is called with a number of the type that elements are stored in. */
template <typename F> static KernelCudaFault with_dtype(KernelDtype dtype, F f) {
    switch (dtype) {
    case KERNEL_FP32:
        return f(float());
    case KERNEL_BF16:
        return f(__nv_bfloat16());
    case KERNEL_FP16:
        return f(__half());
    case KERNEL_FP64:
        return f(double());
    case KERNEL_INT64:
        return f(int64_t());
    case KERNEL_INT32:
        return f(int32_t());
    default: /* bytes, and truths */
        return f(uint8_t());
    }
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
    return with_dtype(s.x_dtype, [&](auto t) {
        using X = decltype(t);
        return launch(
            lane, "tensor_sum", lie_beside ? sum_tensor_kernel<X, ACROSS> : sum_tensor_kernel<X, 1>,
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
