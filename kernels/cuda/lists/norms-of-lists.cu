/* kernels/cuda/lists/norms-of-lists.cu - see optimizer.h: norms of lists of tensors. Bound: memory.
 *
 * In two stages: each block writes down what it found of its part, then a block a tensor joins that
 * tensor's, in order.
 */
#include "kernels/cuda/lists/lists.cuh"
#include "kernels/cuda/magnitude.cuh"

using namespace cu;

namespace {

/* What a block finds of its numbers: by each, and of what its threads have; the first has it. */
struct TwoNorm {
    typedef float Part;
    static __device__ void take(float *part, float x) {
        *part += x * x;
    }
    static __device__ void join(float *part, float other) {
        *part += other;
    }
    static __device__ float of_block(float part) {
        return row_sum(part);
    }
    static __device__ float result(float part) {
        return sqrtf(part);
    }
};

struct Largest {
    typedef uint32_t Part;
    static __device__ void take(uint32_t *part, float x) {
        *part = larger(*part, magnitude_of(x));
    }
    static __device__ void join(uint32_t *part, uint32_t other) {
        *part = larger(*part, other);
    }
    static __device__ uint32_t of_block(uint32_t part) {
        return block_largest(part);
    }
    static __device__ float result(uint32_t part) {
        return __uint_as_float(part);
    }
};

template <typename N>
__global__ void __launch_bounds__(THREADS)
    norm_parts_kernel(const __grid_constant__ Tensors t, typename N::Part *parts) {
    typename N::Part part = 0;
    for_part<X, 0>(t, part_of(t), [&](float *x) { N::take(&part, x[0]); });
    part = N::of_block(part);
    if (threadIdx.x == 0) {
        parts[blockIdx.x] = part;
    }
}

/* A block a tensor joins that tensor's parts, in order. */
template <typename N>
__global__ void __launch_bounds__(THREADS)
    norms_kernel(const __grid_constant__ Tensors t, const typename N::Part *parts) {
    unsigned first = t.first_block[blockIdx.x], last = t.first_block[blockIdx.x + 1];
    typename N::Part part = 0;
    for (unsigned i = first + threadIdx.x; i < last; i += blockDim.x) {
        N::join(&part, parts[i]);
    }
    part = N::of_block(part);
    if (threadIdx.x == 0) {
        store1(t.data[1][blockIdx.x], (KernelCudaType)t.type[1][blockIdx.x], 0, N::result(part));
    }
}

template <typename N> KernelCudaFault norms(KernelCuda *lane, const KernelCudaTensors *tensors) {
    typedef typename N::Part Part;
    return for_launches(
        tensors, NULL, KEEP, [&](const Tensors &some, unsigned blocks) -> KernelCudaFault {
            void *parts;
            KERNEL_CUDA_TRY(kernel_cuda_scratch(lane, (blocks + 1) * sizeof(Part), &parts));
            if (blocks) {
                KERNEL_CUDA_TRY(launch(lane, "norms", norm_parts_kernel<N>, dim3(blocks),
                                       dim3(THREADS), 0, some, (Part *)parts));
            }
            return launch(lane, "norms (end)", norms_kernel<N>, dim3(some.n), dim3(THREADS), 0,
                          some, (const Part *)parts);
        });
}

} // namespace

KernelCudaFault kernel_cuda_norms(KernelCuda *lane, const KernelCudaTensors *tensors) {
    return norms<TwoNorm>(lane, tensors);
}

KernelCudaFault kernel_cuda_largest_of_each(KernelCuda *lane, const KernelCudaTensors *tensors) {
    return norms<Largest>(lane, tensors);
}
