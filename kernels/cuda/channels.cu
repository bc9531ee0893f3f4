/* kernels/cuda/channels.cu - see channels.h. Bound: memory. A block a channel. */
#include "kernels/cuda/channels.h"

#include "kernels/cuda/tensor.cuh"

using namespace cu;

namespace {

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

/* The sides of a channel's numbers, of all samples: as they lie in each of N tensors. */
template <int N> struct Channel {
    Sides<N> sides;
    size_t n, steps[N]; /* from one channel to the next */

    __device__ void find(size_t channel, size_t i, size_t (&at)[N]) const {
        sides.find(i, at);
        for (int t = 0; t < N; t++) {
            at[t] += channel * steps[t];
        }
    }
};

template <typename... T> auto channel_of(const KernelTensor *first, const T *...others) {
    constexpr int N = 1 + (int)sizeof...(T);
    Channel<N> c = {{}, 0, {first->strides[1], others->strides[1]...}};
    for (unsigned i = 0; i < first->n_dims; i++) {
        if (i != 1) {
            c.sides.add(first->sizes[i], first->strides[i], others->strides[i]...);
        }
    }
    c.n = c.sides.count();
    return c;
}

struct Norm {
    Channel<2> channel; /* of y and x */
    Numbers y, x;
    PerChannel weight, bias, mean, rstd, running_mean, running_var;
    double momentum, eps;
};

__device__ void follow(const PerChannel &running, size_t channel, double now, double momentum) {
    running.put(channel, (1 - momentum) * running.get(channel, 0) + momentum * now);
}

__global__ void __launch_bounds__(THREADS) norm_kernel(const __grid_constant__ Norm n) {
    size_t channel = blockIdx.x, at[2];
    double sum = 0, squares = 0, count = (double)n.channel.n;
    for (size_t i = threadIdx.x; i < n.channel.n; i += THREADS) {
        n.channel.find(channel, i, at);
        sum += n.x.get<double>(at[1]);
    }
    double mean = block_sum(sum) / count;
    for (size_t i = threadIdx.x; i < n.channel.n; i += THREADS) {
        n.channel.find(channel, i, at);
        double off = n.x.get<double>(at[1]) - mean;
        squares += off * off;
    }
    squares = block_sum(squares);
    double rstd = 1 / sqrt(squares / count + n.eps);
    double weight = n.weight.get(channel, 1), bias = n.bias.get(channel, 0);
    for (size_t i = threadIdx.x; i < n.channel.n; i += THREADS) {
        n.channel.find(channel, i, at);
        n.y.put(at[0], (n.x.get<double>(at[1]) - mean) * rstd * weight + bias);
    }
    if (threadIdx.x == 0) {
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
};

__global__ void __launch_bounds__(THREADS)
    norm_backward_kernel(const __grid_constant__ NormBackward n) {
    size_t channel = blockIdx.x, at[3];
    double mean = n.mean.get(channel, 0), rstd = n.rstd.get(channel, 1);
    double sum = 0, product = 0, count = (double)n.channel.n;
    for (size_t i = threadIdx.x; i < n.channel.n; i += THREADS) {
        n.channel.find(channel, i, at);
        double dy = n.dy.get<double>(at[1]);
        sum += dy;
        product += dy * (n.x.get<double>(at[2]) - mean) * rstd;
    }
    sum = block_sum(sum);
    product = block_sum(product);
    double factor = n.weight.get(channel, 1) * rstd;
    for (size_t i = threadIdx.x; n.dx.data && i < n.channel.n; i += THREADS) {
        n.channel.find(channel, i, at);
        double normed = (n.x.get<double>(at[2]) - mean) * rstd;
        n.dx.put(at[0], factor * (n.dy.get<double>(at[1]) - (sum + normed * product) / count));
    }
    if (threadIdx.x == 0) {
        n.dw.put(channel, product);
        n.db.put(channel, sum);
    }
}

} // namespace

KernelCudaFault kernel_cuda_channel_norm(KernelCuda *lane, const KernelTensor *y,
                                         const KernelTensor *x, const KernelCudaChannels *c) {
    Norm n = {channel_of(y, x),
              numbers_of(y),
              numbers_of(x),
              per_channel(c->weight),
              per_channel(c->bias),
              per_channel(c->mean),
              per_channel(c->rstd),
              per_channel(c->running_mean),
              per_channel(c->running_var),
              c->momentum,
              c->eps};
    return x->sizes[1] ? launch(lane, "channel_norm", norm_kernel, dim3((unsigned)x->sizes[1]),
                                dim3(THREADS), 0, n)
                       : NULL;
}

KernelCudaFault kernel_cuda_channel_norm_backward(KernelCuda *lane, const KernelTensor *dx,
                                                  const KernelTensor *dw, const KernelTensor *db,
                                                  const KernelTensor *dy, const KernelTensor *x,
                                                  const KernelCudaChannels *c) {
    NormBackward n = {channel_of(dx ? dx : x, dy, x),
                      numbers_of(dx),
                      numbers_of(dy),
                      numbers_of(x),
                      per_channel(c->weight),
                      per_channel(c->mean),
                      per_channel(c->rstd),
                      per_channel(dw),
                      per_channel(db)};
    return x->sizes[1] ? launch(lane, "channel_norm_backward", norm_backward_kernel,
                                dim3((unsigned)x->sizes[1]), dim3(THREADS), 0, n)
                       : NULL;
}
