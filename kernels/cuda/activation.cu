/* kernels/cuda/activation.cu - see activation.h. Bound: memory; the exponentials hide behind it.
 *
 * Both forms of gelu are x times a rising function from 0 to 1, computed so that it keeps its
 * relative precision where it is small: (1 + tanh(u)) / 2 = 1 / (1 + exp(-2 u)), and (1 + erf(x /
 * sqrt 2)) / 2 = erfc(-x / sqrt 2) / 2.
 */
#include "kernels/cuda/activation.h"

#include "kernels/cuda/each.cuh"

using namespace cu;

namespace {

const float TANH_SCALE = 1.59576912f; /* 2 sqrt(2 / pi) */
const float TANH_CUBE = 0.044715f;

/* Divided within two units of the last place: the exact quotient takes as many instructions as all
 * the rest of a GELU. */
__device__ float sigmoid(float x) {
    return __fdividef(1.0f, 1.0f + expf(-x));
}

__device__ float tanh_argument(float x) {
    return TANH_SCALE * (x + TANH_CUBE * x * x * x);
}

__device__ float tanh_gate(float x) {
    return sigmoid(tanh_argument(x));
}

__device__ float normal_cdf(float x) {
    return 0.5f * erfcf(-x * 0.707106781f);
}

struct GeluTanh {
    __device__ void operator()(const float *in, float *out) const {
        out[0] = in[0] * tanh_gate(in[0]);
    }
};

/* d/dx x g(w(x)) = g + x g (1 - g) w', with w the sigmoid's argument. 1 - g is computed by itself:
 * taken from a g near 1, what g is off by would count x w' times, 40 times at x = 5. */
struct GeluTanhBackward {
    __device__ void operator()(const float *in, float *out) const {
        float x = in[1], w = tanh_argument(x), e = expf(-fabsf(w));
        float most = __fdividef(1.0f, 1.0f + e), rest = e * most; /* g and 1 - g, or the reverse */
        float gate = w < 0.0f ? rest : most;
        float slope = TANH_SCALE * (1.0f + 3.0f * TANH_CUBE * x * x);
        out[0] = in[0] * (gate + x * most * rest * slope);
    }
};

struct GeluErf {
    __device__ void operator()(const float *in, float *out) const {
        out[0] = in[0] * normal_cdf(in[0]);
    }
};

struct GeluErfBackward {
    __device__ void operator()(const float *in, float *out) const {
        float x = in[1], density = 0.398942280f * expf(-0.5f * x * x); /* 1 / sqrt(2 pi) */
        out[0] = in[0] * (normal_cdf(x) + x * density);
    }
};

struct Tanh {
    __device__ void operator()(const float *in, float *out) const {
        out[0] = tanhf(in[0]);
    }
};

struct TanhBackward {
    __device__ void operator()(const float *in, float *out) const {
        out[0] = in[0] * (1.0f - in[1] * in[1]);
    }
};

struct Relu {
    __device__ void operator()(const float *in, float *out) const {
        out[0] = in[0] < 0.0f ? 0.0f : in[0];
    }
};

struct ReluBackward {
    __device__ void operator()(const float *in, float *out) const {
        out[0] = in[1] <= 0.0f ? 0.0f : in[0];
    }
};

struct Silu {
    __device__ void operator()(const float *in, float *out) const {
        out[0] = in[0] * sigmoid(in[0]);
    }
};

__device__ float silu_slope(float x) {
    float gate = sigmoid(x);
    return gate * (1.0f + x * (1.0f - gate));
}

struct SiluBackward {
    __device__ void operator()(const float *in, float *out) const {
        out[0] = in[0] * silu_slope(in[1]);
    }
};

struct Swiglu {
    __device__ void operator()(const float *in, float *out) const {
        out[0] = in[0] * sigmoid(in[0]) * in[1];
    }
};

/* in: dy, gate, up; out: dgate, dup */
struct SwigluBackward {
    __device__ void operator()(const float *in, float *out) const {
        out[0] = in[0] * in[2] * silu_slope(in[1]);
        out[1] = in[0] * in[1] * sigmoid(in[1]);
    }
};

template <typename F>
KernelCudaFault forward(KernelCuda *lane, const char *name, void *y, const void *x, size_t n,
                        KernelCudaType type, F f) {
    return with_type(type, [&](auto t) {
        using T = decltype(t);
        return each(lane, name, Arrays<const T, 1>{{(const T *)x}}, Arrays<T, 1>{{(T *)y}}, n, f);
    });
}

template <typename F>
KernelCudaFault backward(KernelCuda *lane, const char *name, void *dx, const void *dy,
                         const void *saved, size_t n, KernelCudaType type, F f) {
    return with_type(type, [&](auto t) {
        using T = decltype(t);
        return each(lane, name, Arrays<const T, 2>{{(const T *)dy, (const T *)saved}},
                    Arrays<T, 1>{{(T *)dx}}, n, f);
    });
}

} // namespace

KernelCudaFault kernel_cuda_activation_forward(KernelCuda *lane, void *y, const void *x, size_t n,
                                               KernelCudaActivation kind, KernelCudaType type) {
    switch (kind) {
    case KERNEL_CUDA_GELU_TANH:
        return forward(lane, "gelu_tanh", y, x, n, type, GeluTanh{});
    case KERNEL_CUDA_GELU_ERF:
        return forward(lane, "gelu_erf", y, x, n, type, GeluErf{});
    case KERNEL_CUDA_TANH:
        return forward(lane, "tanh", y, x, n, type, Tanh{});
    case KERNEL_CUDA_RELU:
        return forward(lane, "relu", y, x, n, type, Relu{});
    case KERNEL_CUDA_SILU:
        return forward(lane, "silu", y, x, n, type, Silu{});
    }
    return kernel_cuda_fault("an activation that is none");
}

KernelCudaFault kernel_cuda_activation_backward(KernelCuda *lane, void *dx, const void *dy,
                                                const void *saved, size_t n,
                                                KernelCudaActivation kind, KernelCudaType type) {
    switch (kind) {
    case KERNEL_CUDA_GELU_TANH:
        return backward(lane, "gelu_tanh_backward", dx, dy, saved, n, type, GeluTanhBackward{});
    case KERNEL_CUDA_GELU_ERF:
        return backward(lane, "gelu_erf_backward", dx, dy, saved, n, type, GeluErfBackward{});
    case KERNEL_CUDA_TANH:
        return backward(lane, "tanh_backward", dx, dy, saved, n, type, TanhBackward{});
    case KERNEL_CUDA_RELU:
        return backward(lane, "relu_backward", dx, dy, saved, n, type, ReluBackward{});
    case KERNEL_CUDA_SILU:
        return backward(lane, "silu_backward", dx, dy, saved, n, type, SiluBackward{});
    }
    return kernel_cuda_fault("an activation that is none");
}

KernelCudaFault kernel_cuda_swiglu_forward(KernelCuda *lane, void *y, const void *gate,
                                           const void *up, size_t n, KernelCudaType type) {
    return backward(lane, "swiglu", y, gate, up, n, type, Swiglu{}); /* two inputs, one output */
}

KernelCudaFault kernel_cuda_swiglu_backward(KernelCuda *lane, void *dgate, void *dup,
                                            const void *dy, const void *gate, const void *up,
                                            size_t n, KernelCudaType type) {
    return with_type(type, [&](auto t) {
        using T = decltype(t);
        return each(lane, "swiglu_backward",
                    Arrays<const T, 3>{{(const T *)dy, (const T *)gate, (const T *)up}},
                    Arrays<T, 2>{{(T *)dgate, (T *)dup}}, n, SwigluBackward{});
    });
}
