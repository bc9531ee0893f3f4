/* kernels/cuda/ranks/standin.cu - see standin.h.
 *
 * Blocks take the tensor's tiles in turn. Before a tile, a block waits until that share of the time
 * has gone by; after its last one, until all of it has. Time counts from the first block's begin,
 * which stands in a word of the lane's (its next call is behind this one); the last block to end
 * makes it zero again. No block waits for another, so they need not all be resident.
 */
#include "kernels/cuda/ranks/standin.h"

#include "kernels/cuda/device.cuh"

using namespace cu;

namespace {

/* NCCL 2.28's for its rings: 16 warps that copy and one that synchronizes (src/enqueue.cc); scratch
 * for 20 warps, each (8 * 32 + 1) * 16 bytes (src/include/device.h, sm_80 and later). */
enum {
    BLOCK = 544,
    SHARED_BYTES = 20 * (8 * 32 + 1) * 16,
    TILE = 1 << 16, /* elements; many to a channel of what NCCL is slow with */
    NAP_NS = 100,
};

template <typename T> struct StandIn {
    KernelCudaStandInKind kind;
    size_t elements, first, slice, from;
    const T *in, *numbers;
    T *out;
    float factor;
    unsigned long long least_ns;
};

/* ---- time ----------------------------------------------------------------------------------- */

__device__ unsigned long long now_ns() {
#ifdef KERNEL_EMULATED
    return (unsigned long long)clock64();
#else
    unsigned long long ns;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
    return ns;
#endif
}

/* One thread watches the clock, the others wait for it. */
__device__ void wait_until(unsigned long long ns) {
    if (threadIdx.x == 0) {
        while (now_ns() < ns) {
            __nanosleep(NAP_NS);
        }
    }
    __syncthreads();
}

/* The same for all blocks of the launch; for thread 0. */
__device__ unsigned long long begin(KernelCudaMoment *moment) {
    unsigned long long now = now_ns(), before = atomicCAS(&moment->begun_ns, 0ull, now);
    return before ? before : now;
}

__device__ void end(KernelCudaMoment *moment) {
    if (atomicInc(&moment->ended, gridDim.x - 1) == gridDim.x - 1) {
        moment->begun_ns = 0;
    }
}

/* ---- elements i .. i + V - 1, or fewer at the end ------------------------------------------- */

/* From the numbers, whose number is a multiple of V. */
template <int V, typename T> __device__ void take(const StandIn<T> &s, size_t i, size_t end) {
    const T *from = s.numbers + (s.from + i) % KERNEL_CUDA_STAND_IN_NUMBERS;
    if (end - i == V && is_aligned(s.out + i)) {
        *(uint4 *)(s.out + i) = *(const uint4 *)from;
        return;
    }
    for (size_t v = 0; i + v < end; v++) {
        s.out[i + v] = from[v];
    }
}

template <int V, typename T> __device__ void gather(const StandIn<T> &s, size_t i, size_t end) {
    size_t last = s.first + s.slice;
    if (end <= s.first || i >= last) {
        take<V>(s, i, end);
        return;
    }
    bool own = s.in && i >= s.first && end <= last && end - i == V;
    if (own && is_aligned(s.out + i) && is_aligned(s.in + (i - s.first))) {
        *(uint4 *)(s.out + i) = *(const uint4 *)(s.in + (i - s.first));
        return;
    }
    for (; i < end; i++) {
        if (i < s.first || i >= last) {
            s.out[i] = s.numbers[(s.from + i) % KERNEL_CUDA_STAND_IN_NUMBERS];
        } else if (s.in) {
            s.out[i] = s.in[i - s.first];
        }
    }
}

/* What is read is not used; the compiler must believe that it is. */
template <int V, typename T> __device__ void scatter(const StandIn<T> &s, size_t i, size_t end) {
    if (end - i == V && is_aligned(s.in + i)) {
        uint4 bits = *(const uint4 *)(s.in + i);
        asm volatile("" ::"r"(bits.x), "r"(bits.y), "r"(bits.z), "r"(bits.w));
    } else {
        for (size_t at = i; at < end; at++) {
            float x = widen(s.in[at]);
            asm volatile("" ::"r"(__float_as_uint(x)));
        }
    }
    if (i < s.slice) {
        take<V>(s, i, min(end, s.slice));
    }
}

template <int V, typename T> __device__ void scale(const StandIn<T> &s, size_t i, size_t end) {
    if (end - i == V && is_aligned(s.out + i)) {
        float x[V];
        load<V>(x, s.out + i);
#pragma unroll
        for (int v = 0; v < V; v++) {
            x[v] *= s.factor;
        }
        store<V>(s.out + i, x);
        return;
    }
    for (; i < end; i++) {
        narrow(&s.out[i], widen(s.out[i]) * s.factor);
    }
}

template <typename T> __device__ void tile(const StandIn<T> &s, size_t first) {
    constexpr int V = VECTOR<T>;
    size_t last = min(s.elements, first + TILE);
    for (size_t i = first + threadIdx.x * V; i < last; i += BLOCK * V) {
        size_t end = min(last, i + V);
        switch (s.kind) {
        case KERNEL_CUDA_STAND_IN_GATHER:
            gather<V>(s, i, end);
            break;
        case KERNEL_CUDA_STAND_IN_SCATTER:
            if constexpr (sizeof(T) > 1) {
                scatter<V>(s, i, end);
            }
            break;
        case KERNEL_CUDA_STAND_IN_REDUCE:
            if constexpr (sizeof(T) > 1) {
                scale<V>(s, i, end);
            }
            break;
        case KERNEL_CUDA_STAND_IN_NOTHING:
            break;
        }
    }
}

/* ---- the kernel ----------------------------------------------------------------------------- */

template <typename T>
__global__ void __launch_bounds__(BLOCK, 1)
    stand_in_kernel(const __grid_constant__ StandIn<T> s, KernelCudaMoment *moment) {
    BLOCK_SHARED(unsigned long long, begun);
    if (threadIdx.x == 0) {
        begun = begin(moment);
    }
    __syncthreads();
    size_t tiles = (s.elements + TILE - 1) / TILE;
    for (size_t t = blockIdx.x; t < tiles; t += gridDim.x) {
        wait_until(begun + (unsigned long long)((double)s.least_ns * (double)t / (double)tiles));
        tile(s, t * TILE);
    }
    wait_until(begun + s.least_ns);
    if (threadIdx.x == 0) {
        end(moment);
    }
}

KernelCudaFault moment_of(KernelCuda *lane, KernelCudaMoment **ret_moment) {
    if (!lane->moment) {
        KERNEL_CUDA_TRY(kernel_cuda_take(lane, "a stand-in's clock", sizeof *lane->moment,
                                         (void **)&lane->moment));
        KERNEL_CUDA_TRY(kernel_cuda_check(
            "cudaMemsetAsync",
            cudaMemsetAsync(lane->moment, 0, sizeof *lane->moment, lane->stream)));
    }
    *ret_moment = lane->moment;
    return NULL;
}

template <typename T> KernelCudaFault stand_in(KernelCuda *lane, const KernelCudaStandIn *in) {
    KernelCudaMoment *moment;
    KERNEL_CUDA_TRY(moment_of(lane, &moment));
    unsigned most = (unsigned)lane->processors;
    unsigned blocks = in->blocks < 1 ? 1 : in->blocks < most ? in->blocks : most;
    bool idle = in->kind == KERNEL_CUDA_STAND_IN_NOTHING;
    KERNEL_CUDA_TRY(allow_shared(lane, stand_in_kernel<T>, SHARED_BYTES));
    return launch(lane, "stand_in", stand_in_kernel<T>, dim3(blocks), dim3(BLOCK), SHARED_BYTES,
                  StandIn<T>{in->kind, idle ? 0 : in->elements, in->first, in->slice, in->from,
                             (const T *)in->in, (const T *)in->numbers, (T *)in->out, in->factor,
                             (unsigned long long)in->least_ns},
                  moment);
}

} // namespace

KernelCudaFault kernel_cuda_stand_in(KernelCuda *lane, const KernelCudaStandIn *in) {
    return in->is_bytes
               ? stand_in<uint8_t>(lane, in)
               : with_type(in->type, [=](auto t) { return stand_in<decltype(t)>(lane, in); });
}
