/* kernels/cuda/traced/tensor.cuh - how kernels see tensors of any dtype through strides; for .cu
 * files of this folder only.
 */
#pragma once
#include "kernels/cuda/each.cuh"
#include "kernels/host/traced/tensor.h"

namespace cu {

/* ---- numbers of any dtype ------------------------------------------------------------------- */

static inline __host__ __device__ size_t dtype_bytes(KernelDtype dtype) {
    switch (dtype) {
    case KERNEL_FP64:
    case KERNEL_INT64:
        return 8;
    case KERNEL_FP32:
    case KERNEL_INT32:
        return 4;
    case KERNEL_BF16:
    case KERNEL_FP16:
        return 2;
    default: /* bytes, and truths */
        return 1;
    }
}

template <typename R>
static inline __device__ R load_as(const void *data, KernelDtype dtype, size_t at) {
    switch (dtype) {
    case KERNEL_FP32:
        return (R)((const float *)data)[at];
    case KERNEL_BF16:
        return (R)widen(((const __nv_bfloat16 *)data)[at]);
    case KERNEL_FP16:
        return (R)widen(((const __half *)data)[at]);
    case KERNEL_FP64:
        return (R)((const double *)data)[at];
    case KERNEL_INT64:
        return (R)((const int64_t *)data)[at];
    case KERNEL_INT32:
        return (R)((const int32_t *)data)[at];
    default: /* bytes, and truths */
        return (R)((const uint8_t *)data)[at];
    }
}

template <typename R>
static inline __device__ void store_as(void *data, KernelDtype dtype, size_t at, R x) {
    switch (dtype) {
    case KERNEL_FP32:
        ((float *)data)[at] = (float)x;
        return;
    case KERNEL_BF16:
        narrow((__nv_bfloat16 *)data + at, (float)x);
        return;
    case KERNEL_FP16:
        narrow((__half *)data + at, (float)x);
        return;
    case KERNEL_FP64:
        ((double *)data)[at] = (double)x;
        return;
    case KERNEL_INT64:
        ((int64_t *)data)[at] = (int64_t)x;
        return;
    case KERNEL_INT32:
        ((int32_t *)data)[at] = (int32_t)x;
        return;
    case KERNEL_UINT8:
        ((uint8_t *)data)[at] = (uint8_t)x;
        return;
    default:
        ((uint8_t *)data)[at] = x != 0;
    }
}

/* Read as they lie and widened later, so that several loads are under way together: U has as many
 * bits as the dtype. */
template <typename X, typename U> static inline __device__ X from_bits(U bits) {
    X x;
    static_assert(sizeof x == sizeof bits, "the bits of a number");
    memcpy(&x, &bits, sizeof x);
    return x;
}
static inline __device__ double as_double(uint8_t bits, KernelDtype) {
    return bits;
}
static inline __device__ double as_double(uint16_t bits, KernelDtype dtype) {
    return dtype == KERNEL_BF16 ? widen(from_bits<__nv_bfloat16>(bits))
                                : widen(from_bits<__half>(bits));
}
static inline __device__ double as_double(uint32_t bits, KernelDtype dtype) {
    return dtype == KERNEL_FP32 ? (double)from_bits<float>(bits) : (double)from_bits<int32_t>(bits);
}
static inline __device__ double as_double(uint64_t bits, KernelDtype dtype) {
    return dtype == KERNEL_FP64 ? from_bits<double>(bits) : (double)from_bits<int64_t>(bits);
}

/* Where a tensor's numbers are; without data there is none. */
struct Numbers {
    void *data;
    KernelDtype dtype;

    template <typename R> __device__ R get(size_t at) const {
        return load_as<R>(data, dtype, at);
    }
    template <typename R> __device__ void put(size_t at, R x) const {
        store_as<R>(data, dtype, at, x);
    }
    /* A number as it lies, and what it is. */
    __device__ uint64_t bits(size_t at) const {
        size_t bytes = dtype_bytes(dtype);
        return bytes == 8   ? ((const uint64_t *)data)[at]
               : bytes == 4 ? ((const uint32_t *)data)[at]
               : bytes == 2 ? ((const uint16_t *)data)[at]
                            : ((const uint8_t *)data)[at];
    }
    __device__ double of_bits(uint64_t bits) const {
        size_t bytes = dtype_bytes(dtype);
        return bytes == 8   ? as_double(bits, dtype)
               : bytes == 4 ? as_double((uint32_t)bits, dtype)
               : bytes == 2 ? as_double((uint16_t)bits, dtype)
                            : as_double((uint8_t)bits, dtype);
    }
};

static inline Numbers numbers_of(const KernelTensor *t) {
    return t ? Numbers{t->data, t->dtype} : Numbers{};
}

/* ---- places --------------------------------------------------------------------------------- */

/* Sides that N tensors have in common, and how each lies along them; those that lie as one are one,
 * and those of one element are left out. Zeros at first. */
template <int N> struct Sides {
    unsigned n;
    size_t sizes[KERNEL_TENSOR_SIDES], strides[N][KERNEL_TENSOR_SIDES];

    template <typename... S> void add(size_t size, S... stride) {
        static_assert(sizeof...(S) == N, "a stride of each tensor");
        const size_t steps[] = {stride...};
        if (size == 1) {
            return;
        }
        bool joins = n > 0;
        for (int t = 0; t < N && joins; t++) {
            joins = strides[t][n - 1] == steps[t] * size;
        }
        unsigned to = joins ? n - 1 : n++;
        sizes[to] = joins ? sizes[to] * size : size;
        for (int t = 0; t < N; t++) {
            strides[t][to] = steps[t];
        }
    }
    size_t count() const {
        size_t all = 1;
        for (unsigned d = 0; d < n; d++) {
            all *= sizes[d];
        }
        return all;
    }
    /* Where element i, row-major, lies in each. Dividing takes longest, and the first side needs
     * none. */
    __device__ void find(size_t i, size_t (&at)[N]) const {
        for (int t = 0; t < N; t++) {
            at[t] = 0;
        }
#pragma unroll 1
        for (unsigned d = n; d-- > 1;) {
            size_t before = i / sizes[d], here = i - before * sizes[d];
            for (int t = 0; t < N; t++) {
                at[t] += here * strides[t][d];
            }
            i = before;
        }
        for (int t = 0; t < N; t++) {
            at[t] += i * strides[t][0];
        }
    }
};

} // namespace cu
