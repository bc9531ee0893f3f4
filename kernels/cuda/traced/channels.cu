/* kernels/cuda/traced/channels.cu - see channels.h. Bound: memory.
 *
 * A channel is cut into parts, a block each, so that few channels keep a GPU busy, too; a pass over
 * the numbers is a kernel, and each block of the next one adds up what those of its channel found,
 * through the same tree.
 */
#include "kernels/cuda/traced/channels.h"

#include "kernels/cuda/traced/tensor.cuh"

using namespace cu;

namespace {

enum {
    AT_ONCE = 4,   /* numbers of an array that a thread has asked for before it uses them */
    BLOCKS = 1056, /* that there should be: eight for each multiprocessor of an H100 */
    LEAST = 2048,  /* numbers of a part */
};

/* A number a channel; without data there is none. */
struct PerChannel {
    Numbers numbers;
    size_t step;

    __device__ double get(size_t channel, double missing) const {
        return numbers.data ? numbers.get<double>(channel * step) : missing;
    }
    __device__ void put(size_t channel, double x) const {
        if (numbers.data) {
            numbers.put(channel * step, x);
        }
    }
};

PerChannel per_channel(const KernelTensor *t) {
    return PerChannel{numbers_of(t), t ? t->strides[0] : 0};
}

/* Over the block, for all of its threads. */
__device__ double block_sum(double x) {
    BLOCK_SHARED(double[THREADS], parts);
    __syncthreads(); /* the sum before is read */
    parts[threadIdx.x] = x;
    __syncthreads();
    for (unsigned half = THREADS / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) {
            parts[threadIdx.x] += parts[threadIdx.x + half];
        }
        __syncthreads();
    }
    return parts[0];
}

/* The sides of a channel's numbers, of all samples: as they lie in each of N tensors. A block has
 * part blockIdx.y of channel blockIdx.x. */
template <int N> struct Channel {
    Sides<N> sides;
    size_t n, steps[N]; /* from one channel to the next */
    size_t part;        /* numbers */

    /* Calls use(what get(at) has read, at) for this thread's numbers of the block's part; at: where
     * they lie. Of AT_ONCE all is asked for before any is used. */
    template <typename Get, typename Use> __device__ void for_part(Get get, Use use) const {
        size_t first = blockIdx.y * part, here = min(n - first, part);
        for (size_t i = threadIdx.x; i < here; i += THREADS * AT_ONCE) {
            size_t at[AT_ONCE][N];
            decltype(get(at[0])) got[AT_ONCE];
#pragma unroll
            for (unsigned u = 0; u < AT_ONCE; u++) {
                if (i + u * THREADS < here) {
                    find(first + i + u * THREADS, at[u]);
                    got[u] = get(at[u]);
                }
            }
#pragma unroll
            for (unsigned u = 0; u < AT_ONCE; u++) {
                if (i + u * THREADS < here) {
                    use(got[u], at[u]);
                }
            }
        }
    }

  private:
    __device__ void find(size_t i, size_t (&at)[N]) const {
        sides.find(i, at);
#pragma unroll
        for (int t = 0; t < N; t++) {
            at[t] += blockIdx.x * steps[t];
        }
    }
};

/* What blocks found: of each channel, of each of its parts. */
__device__ void put_found(double *found, double x) {
    if (threadIdx.x == 0) {
        found[blockIdx.x * gridDim.y + blockIdx.y] = x;
    }
}

/* Of all parts of this block's channel, for all threads. */
__device__ double all_found(const double *found, size_t parts) {
    double sum = 0;
    for (size_t i = threadIdx.x; i < parts; i += THREADS) {
        sum += found[blockIdx.x * parts + i];
    }
    return block_sum(sum);
}

/* The same on every device, as are the sums. */
size_t parts_of(size_t n, size_t channels) {
    size_t wanted = divide_up(BLOCKS, channels ? channels : 1), most = n / LEAST;
    return most < 1 ? 1 : wanted < most ? wanted : most;
}

/* Parts of so many numbers, of which the last may be shorter. */
template <int N> size_t parts_of(const Channel<N> &c) {
    return c.part ? divide_up(c.n, c.part) : 1;
}

template <typename... T> auto channel_of(const KernelTensor *first, const T *...others) {
    constexpr int N = 1 + (int)sizeof...(T);
    Channel<N> c = {{}, 0, {first->strides[1], others->strides[1]...}, 0};
    for (unsigned i = 0; i < first->n_dims; i++) {
        if (i != 1) {
            c.sides.add(first->sizes[i], first->strides[i], others->strides[i]...);
        }
    }
    c.n = c.sides.count();
    c.part = divide_up(c.n, parts_of(c.n, first->sizes[1]));
    return c;
}

struct Norm {
    Channel<2> channel; /* of y and x */
    Numbers y, x;
    PerChannel weight, bias, mean, rstd, running_mean, running_var;
    double momentum, eps;
    double *sums, *squares; /* found */
    size_t parts;
};

__device__ void follow(const PerChannel &running, size_t channel, double now, double momentum) {
    running.put(channel, (1 - momentum) * running.get(channel, 0) + momentum * now);
}

__global__ void __launch_bounds__(THREADS) sums_kernel(const __grid_constant__ Norm n) {
    double sum = 0;
    n.channel.for_part([&](const size_t(&at)[2]) { return n.x.bits(at[1]); },
                       [&](uint64_t bits, const size_t(&)[2]) { sum += n.x.of_bits(bits); });
    put_found(n.sums, block_sum(sum));
}

__global__ void __launch_bounds__(THREADS) squares_kernel(const __grid_constant__ Norm n) {
    double mean = all_found(n.sums, n.parts) / (double)n.channel.n, squares = 0;
    n.channel.for_part([&](const size_t(&at)[2]) { return n.x.bits(at[1]); },
                       [&](uint64_t bits, const size_t(&)[2]) {
                           double off = n.x.of_bits(bits) - mean;
                           squares += off * off;
                       });
    put_found(n.squares, block_sum(squares));
}

__global__ void __launch_bounds__(THREADS) norm_kernel(const __grid_constant__ Norm n) {
    size_t channel = blockIdx.x;
    double count = (double)n.channel.n, mean = all_found(n.sums, n.parts) / count;
    double squares = all_found(n.squares, n.parts), rstd = 1 / sqrt(squares / count + n.eps);
    double weight = n.weight.get(channel, 1), bias = n.bias.get(channel, 0);
    n.channel.for_part([&](const size_t(&at)[2]) { return n.x.bits(at[1]); },
                       [&](uint64_t bits, const size_t(&at)[2]) {
                           n.y.put(at[0], (n.x.of_bits(bits) - mean) * rstd * weight + bias);
                       });
    if (threadIdx.x == 0 && blockIdx.y == 0) {
        n.mean.put(channel, mean);
        n.rstd.put(channel, rstd);
        follow(n.running_mean, channel, mean, n.momentum);
        follow(n.running_var, channel, squares / (count - 1), n.momentum);
    }
}

struct NormBackward {
    Channel<3> channel; /* of dx, dy and x */
    Numbers dx, dy, x;
    PerChannel weight, mean, rstd, dw, db;
    double *sums, *products; /* found */
    size_t parts;
};

/* A number of dy and of x, as they lie. */
struct Two {
    uint64_t dy, x;
};

__global__ void __launch_bounds__(THREADS)
    gradient_sums_kernel(const __grid_constant__ NormBackward n) {
    double mean = n.mean.get(blockIdx.x, 0), rstd = n.rstd.get(blockIdx.x, 1);
    double sum = 0, product = 0;
    n.channel.for_part(
        [&](const size_t(&at)[3]) {
            return Two{n.dy.bits(at[1]), n.x.bits(at[2])};
        },
        [&](const Two &two, const size_t(&)[3]) {
            double dy = n.dy.of_bits(two.dy);
            sum += dy;
            product += dy * (n.x.of_bits(two.x) - mean) * rstd;
        });
    put_found(n.sums, block_sum(sum));
    put_found(n.products, block_sum(product));
}

__global__ void __launch_bounds__(THREADS)
    norm_backward_kernel(const __grid_constant__ NormBackward n) {
    size_t channel = blockIdx.x;
    double mean = n.mean.get(channel, 0), rstd = n.rstd.get(channel, 1);
    double sum = all_found(n.sums, n.parts), product = all_found(n.products, n.parts);
    double factor = n.weight.get(channel, 1) * rstd, each = 1 / (double)n.channel.n;
    if (n.dx.data) {
        n.channel.for_part(
            [&](const size_t(&at)[3]) {
                return Two{n.dy.bits(at[1]), n.x.bits(at[2])};
            },
            [&](const Two &two, const size_t(&at)[3]) {
                double normed = (n.x.of_bits(two.x) - mean) * rstd;
                double off = (sum + normed * product) * each;
                n.dx.put(at[0], factor * (n.dy.of_bits(two.dy) - off));
            });
    }
    if (threadIdx.x == 0 && blockIdx.y == 0) {
        n.dw.put(channel, product);
        n.db.put(channel, sum);
    }
}

/* Room for two numbers of each part of each channel. */
KernelCudaFault find_room(KernelCuda *lane, size_t channels, size_t parts, double **ret_first,
                          double **ret_second) {
    void *scratch;
    size_t n = channels * parts;
    KERNEL_CUDA_TRY(kernel_cuda_scratch(lane, 2 * n * sizeof(double), &scratch));
    *ret_first = (double *)scratch;
    *ret_second = (double *)scratch + n;
    return NULL;
}

} // namespace

KernelCudaFault kernel_cuda_channel_norm(KernelCuda *lane, const KernelTensor *y,
                                         const KernelTensor *x, const KernelCudaChannels *c) {
    if (!x->sizes[1]) {
        return NULL;
    }
    Norm n = {};
    n.channel = channel_of(y, x);
    n.parts = parts_of(n.channel);
    n.y = numbers_of(y), n.x = numbers_of(x);
    n.weight = per_channel(c->weight), n.bias = per_channel(c->bias);
    n.mean = per_channel(c->mean), n.rstd = per_channel(c->rstd);
    n.running_mean = per_channel(c->running_mean);
    n.running_var = per_channel(c->running_var);
    n.momentum = c->momentum, n.eps = c->eps;
    KERNEL_CUDA_TRY(find_room(lane, x->sizes[1], n.parts, &n.sums, &n.squares));
    dim3 grid(block_each(x->sizes[1]), (unsigned)n.parts), block(THREADS);
    KERNEL_CUDA_TRY(launch(lane, "channel_norm (sums)", sums_kernel, grid, block, 0, n));
    KERNEL_CUDA_TRY(launch(lane, "channel_norm (squares)", squares_kernel, grid, block, 0, n));
    return launch(lane, "channel_norm", norm_kernel, grid, block, 0, n);
}

KernelCudaFault kernel_cuda_channel_norm_backward(KernelCuda *lane, const KernelTensor *dx,
                                                  const KernelTensor *dw, const KernelTensor *db,
                                                  const KernelTensor *dy, const KernelTensor *x,
                                                  const KernelCudaChannels *c) {
    if (!x->sizes[1]) {
        return NULL;
    }
    NormBackward n = {};
    n.channel = channel_of(dx ? dx : x, dy, x);
    n.parts = parts_of(n.channel);
    n.dx = numbers_of(dx), n.dy = numbers_of(dy), n.x = numbers_of(x);
    n.weight = per_channel(c->weight);
    n.mean = per_channel(c->mean), n.rstd = per_channel(c->rstd);
    n.dw = per_channel(dw), n.db = per_channel(db);
    KERNEL_CUDA_TRY(find_room(lane, x->sizes[1], n.parts, &n.sums, &n.products));
    dim3 grid(block_each(x->sizes[1]), (unsigned)n.parts), block(THREADS);
    KERNEL_CUDA_TRY(
        launch(lane, "channel_norm_backward (sums)", gradient_sums_kernel, grid, block, 0, n));
    return launch(lane, "channel_norm_backward", norm_backward_kernel, grid, block, 0, n);
}
