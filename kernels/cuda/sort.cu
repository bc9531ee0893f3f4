/* kernels/cuda/sort.cu - see sort.h. Bound: memory, three passes a digit.
 *
 * DIGIT_BITS at a time from the lowest, as a stable counting sort: a block counts the digits of its
 * CHUNK positions, a warp a digit adds up the blocks' counts, one more the digits', and each
 * position goes to its digit's place, after those of its digit that came before.
 */
#include "kernels/cuda/sort.h"

#include "kernels/cuda/each.cuh"

using namespace cu;

namespace {

enum {
    CHUNK = 512, /* positions a block sorts; its threads */
    DIGIT_BITS = 9,
    DIGITS = 1 << DIGIT_BITS,
};

struct Keys {
    unsigned *key, *position;
};

/* A bad index becomes the limit, and comes last. */
__global__ void __launch_bounds__(THREADS) keys_kernel(Keys keys, const int64_t *index, size_t n,
                                                       size_t limit, unsigned *flag, unsigned tag) {
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) {
        return;
    }
    bool good = is_inside(index[i], limit);
    keys.key[i] = good ? (unsigned)index[i] : (unsigned)limit;
    keys.position[i] = (unsigned)i;
    if (!good) {
        tell_bad_index(flag, tag);
    }
}

/* How many of the block's positions have digit d: counts[d, block]. And of each position, how many
 * of its digit come before it in the block: before[i]. */
__global__ void __launch_bounds__(CHUNK)
    count_kernel(unsigned *counts, unsigned *before, const unsigned *key, size_t n, int shift) {
    BLOCK_SHARED(unsigned[CHUNK], digit);
    BLOCK_SHARED(unsigned[DIGITS], count);
    size_t i = (size_t)blockIdx.x * CHUNK + threadIdx.x;
    unsigned mine = i < n ? key[i] >> shift & (DIGITS - 1) : (unsigned)DIGITS, rank = 0;
    digit[threadIdx.x] = mine;
    for (unsigned d = threadIdx.x; d < DIGITS; d += CHUNK) {
        count[d] = 0;
    }
    __syncthreads();
    if (i < n) {
        atomicAdd(&count[mine], 1u);
        for (unsigned other = 0; other < threadIdx.x; other++) {
            rank += digit[other] == mine ? 1u : 0u;
        }
        before[i] = rank;
    }
    __syncthreads();
    for (unsigned d = threadIdx.x; d < DIGITS; d += CHUNK) {
        counts[(size_t)d * gridDim.x + blockIdx.x] = count[d];
    }
}

/* The numbers of a warp's lanes before this one's, added up; *ret_all: all of them. */
__device__ unsigned sum_before(unsigned mine, unsigned *ret_all) {
    unsigned lane = threadIdx.x % LANES, sum = mine;
    for (unsigned by = 1; by < LANES; by *= 2) {
        unsigned below = __shfl_up_sync(0xffffffffu, sum, by);
        sum += lane >= by ? below : 0;
    }
    *ret_all = __shfl_sync(0xffffffffu, sum, LANES - 1);
    return sum - mine;
}

/* A warp a row of n numbers: they become the sums of those before them, each lane's a run of them;
 * totals[row] is the sum of all. */
__global__ void __launch_bounds__(LANES)
    sums_before_kernel(unsigned *numbers, unsigned *totals, size_t n) {
    unsigned *row = numbers + blockIdx.x * n, mine = 0, total;
    size_t run = (n + LANES - 1) / LANES, first = min(n, threadIdx.x * run);
    size_t last = min(n, first + run);
    for (size_t i = first; i < last; i++) {
        mine += row[i];
    }
    unsigned sum = sum_before(mine, &total);
    for (size_t i = first; i < last; i++) {
        unsigned number = row[i];
        row[i] = sum;
        sum += number;
    }
    if (threadIdx.x == 0) {
        totals[blockIdx.x] = total;
    }
}

__global__ void __launch_bounds__(CHUNK)
    place_kernel(Keys to, Keys from, const unsigned *starts, const unsigned *counts,
                 const unsigned *before, size_t n, int shift) {
    size_t i = (size_t)blockIdx.x * CHUNK + threadIdx.x;
    if (i < n) {
        unsigned digit = from.key[i] >> shift & (DIGITS - 1);
        unsigned at = starts[digit] + counts[(size_t)digit * gridDim.x + blockIdx.x] + before[i];
        to.key[at] = from.key[i];
        to.position[at] = from.position[i];
    }
}

/* Device memory of a sort, cut from one piece of scratch. */
struct Sort {
    Keys keys[2];
    unsigned *before, *counts; /* counts[digit, chunk], then the sums of those before it */
    unsigned *starts;          /* of each digit; and their sum */
    size_t chunks;
};

KernelCudaFault new_sort(KernelCuda *lane, size_t n, Sort *ret_sort) {
    void *scratch;
    size_t chunks = divide_up(n, CHUNK);
    KERNEL_CUDA_TRY(kernel_cuda_scratch(
        lane, (5 * n + DIGITS * (chunks + 1) + 1) * sizeof(unsigned), &scratch));
    unsigned *at = (unsigned *)scratch;
    *ret_sort = Sort{{{at, at + n}, {at + 2 * n, at + 3 * n}},
                     at + 4 * n,
                     at + 5 * n,
                     at + 5 * n + DIGITS * chunks,
                     chunks};
    return NULL;
}

KernelCudaFault sort_digit(KernelCuda *lane, const Sort &s, Keys to, Keys from, size_t n,
                           int shift) {
    dim3 chunks(block_each(s.chunks)), threads(CHUNK);
    KERNEL_CUDA_TRY(launch(lane, "sort (count)", count_kernel, chunks, threads, 0, s.counts,
                           s.before, from.key, n, shift));
    KERNEL_CUDA_TRY(launch(lane, "sort (sums)", sums_before_kernel, dim3(DIGITS), dim3(LANES), 0,
                           s.counts, s.starts, s.chunks));
    KERNEL_CUDA_TRY(launch(lane, "sort (starts)", sums_before_kernel, dim3(1), dim3(LANES), 0,
                           s.starts, s.starts + DIGITS, (size_t)DIGITS));
    return launch(lane, "sort (place)", place_kernel, chunks, threads, 0, to, from, s.starts,
                  s.counts, s.before, n, shift);
}

} // namespace

KernelCudaFault kernel_cuda_sort_positions(KernelCuda *lane, const int64_t *index, size_t n,
                                           size_t limit, KernelCudaSorted *ret_sorted) {
    Sort s;
    int from = 0;
    if (n > UINT32_MAX / 8 || limit >= UINT32_MAX) {
        return kernel_cuda_fault("a sort of %zu positions by %zu indices is too large", n, limit);
    }
    KERNEL_CUDA_TRY(new_sort(lane, n, &s));
    KERNEL_CUDA_TRY(launch(lane, "sort (keys)", keys_kernel,
                           dim3(block_each(divide_up(n, THREADS))), dim3(THREADS), 0, s.keys[0],
                           index, n, limit, lane->flag, lane->tag));
    for (int shift = 0; limit >> shift; shift += DIGIT_BITS, from ^= 1) {
        KERNEL_CUDA_TRY(sort_digit(lane, s, s.keys[from ^ 1], s.keys[from], n, shift));
    }
    *ret_sorted = KernelCudaSorted{s.keys[from].key, s.keys[from].position};
    return NULL;
}
