/* tests/emulator/test.cc - what the emulator promises: threads, what launches may ask for, and
 * arithmetic.
 */
#include "tests/emulator/test.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <math.h>

#include "kernels/cuda/device.cuh"
#include "kernels/cuda/products/matrices.cuh"

/* ---- threads -------------------------------------------------------------------------------- */

static __global__ void index_kernel(int *out) {
    unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
    unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    unsigned at = block * blockDim.x * blockDim.y * blockDim.z + thread;
    out[at] = (int)at;
}

static void test_indices() {
    int *x = new_ints(3 * 2 * 2 * 24);
    run(nullptr, index_kernel, dim3(3, 2, 2), dim3(4, 3, 2), x);
    for (int i = 0; i < 3 * 2 * 2 * 24; i++) {
        g_assert_cmpint(read_int(nullptr, x + i), ==, i);
    }
    cudaFree(x);
}

static __global__ void reverse_kernel(int *x) {
    BLOCK_SHARED(int[N], all);
    all[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    x[threadIdx.x] = all[blockDim.x - 1 - threadIdx.x];
}

static __global__ void warp_kernel(int *x) {
    int lane = (int)threadIdx.x % 32;
    int sum = lane;
    for (int bits = 16; bits; bits /= 2) {
        sum += __shfl_xor_sync(0xffffffffu, sum, bits);
    }
    x[threadIdx.x] = sum + 1000 * __shfl_sync(0xffffffffu, lane, 5) +
                     100000 * __popc(__ballot_sync(0xffffffffu, lane < 7)) +
                     10000000 * __shfl_down_sync(0xffffffffu, lane, 1);
}

/* At 16 bytes, as the memory that a launch asks for, and no better: on a GPU that would be luck. */
static __global__ void align_kernel(int *x) {
    BLOCK_SHARED(char[3], few);
    BLOCK_SHARED(float, one);
    x[0] = (int)((uintptr_t)cu::shared_memory<char>() % 32);
    x[1] = (int)((uintptr_t)few % 32);
    x[2] = (int)((uintptr_t)&one % 32);
}

static void test_shared_places() {
    int *x = new_ints(3);
    run(nullptr, align_kernel, dim3(1), dim3(1), x);
    for (int i = 0; i < 3; i++) {
        g_assert_cmpint(read_int(nullptr, x + i), ==, 16);
    }
    cudaFree(x);
}

static void test_threads() {
    int *x = new_ints(N);
    for (uint64_t seed = 0; seed < 4; seed++) { /* both directions */
        emulator_set_seed(seed);
        run(nullptr, index_kernel, dim3(1), dim3(N), x);
        run(nullptr, reverse_kernel, dim3(1), dim3(N), x);
        g_assert_cmpint(read_int(nullptr, x), ==, (int)N - 1);
        run(nullptr, warp_kernel, dim3(1), dim3(N), x);
        g_assert_cmpint(read_int(nullptr, x + 33), ==, 496 + 5000 + 700000 + 20000000);
    }
    emulator_set_seed(0);
    cudaFree(x);
}

/* The barrier is missing. */
static __global__ void unguarded_kernel(int *x) {
    BLOCK_SHARED(int[N], all);
    all[threadIdx.x] = (int)threadIdx.x;
    x[threadIdx.x] = all[blockDim.x - 1 - threadIdx.x];
}

/* Two sums through one array, and no barrier before it is written again. */
static __global__ void hasty_kernel(int *x) {
    BLOCK_SHARED(int[N / 32], parts);
    for (int round = 1; round <= 2; round++) {
        int sum = __shfl_sync(0xffffffffu, round, 0);
        if (threadIdx.x % 32 == 0) {
            parts[threadIdx.x / 32] = sum;
        }
        __syncthreads();
        int all = 0;
        for (unsigned w = 0; w < N / 32; w++) {
            all += parts[w];
        }
        x[threadIdx.x] = round == 1 ? all : x[threadIdx.x];
    }
}

/* One of the two directions reads what is not written yet. */
static void test_missing_barrier() {
    bool wrong = false;
    int *x = new_ints(N);
    for (uint64_t seed = 0; seed < 2; seed++) {
        emulator_set_seed(seed);
        run(nullptr, unguarded_kernel, dim3(1), dim3(N), x);
        wrong |= read_int(nullptr, x) != (int)N - 1 || read_int(nullptr, x + N - 1) != 0;
        run(nullptr, reverse_kernel, dim3(1), dim3(N), x); /* other numbers in shared memory */
        cudaDeviceSynchronize();
    }
    g_assert_true(wrong);
    wrong = false;
    for (uint64_t seed = 0; seed < 2; seed++) {
        emulator_set_seed(seed);
        run(nullptr, hasty_kernel, dim3(1), dim3(N), x);
        for (unsigned i = 0; i < N; i++) {
            wrong |= read_int(nullptr, x + i) != (int)N / 32;
        }
    }
    emulator_set_seed(0);
    g_assert_true(wrong);
    cudaFree(x);
}

static __global__ void first_block_kernel(int *first) {
    if (*first < 0) {
        *first = (int)(blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z));
    }
}

/* Which block of a grid runs first is not always the same one. */
static void test_block_order() {
    int *x = new_ints(1), seen = 0;
    for (uint64_t seed = 0; seed < 16; seed++) {
        emulator_set_seed(seed);
        run(nullptr, first_block_kernel, dim3(3, 2, 2), dim3(1), x); /* memory begins as -1 */
        int first = read_int(nullptr, x);
        g_assert_true(first == 0 || first == 11);
        seen |= first ? 2 : 1;
        cudaMemset(x, 0xff, sizeof *x);
    }
    emulator_set_seed(0);
    g_assert_cmpint(seen, ==, 3);
    cudaFree(x);
}

/* What a GPU refuses to launch, this one refuses. */
static void test_limits() {
    struct {
        dim3 grid, block;
        size_t shared_bytes;
        bool is_allowed;
    } launches[] = {
        {dim3(1), dim3(1024), 0, true},      {dim3(1), dim3(1056), 0, false},
        {dim3(0), dim3(32), 0, false},       {dim3(1, 65535), dim3(1), 0, true},
        {dim3(1, 65536), dim3(1), 0, false}, {dim3(1, 1, 65536), dim3(1), 0, false},
        {dim3(1), dim3(32), 48 << 10, true}, {dim3(1), dim3(32), (48 << 10) + 16, false},
    };
    static const auto body = [] {};
    for (const auto &l : launches) {
        emulator_launch("limits", &body, l.grid, l.block, l.shared_bytes, nullptr, body);
        g_assert_true((cudaGetLastError() == cudaSuccess) == l.is_allowed);
    }
    g_assert_cmpint(emulator_allow_shared(&body, 100 << 10), ==, cudaSuccess);
    emulator_launch("limits", &body, dim3(1), dim3(32), 100 << 10, nullptr, body);
    g_assert_cmpint(cudaGetLastError(), ==, cudaSuccess);
    emulator_launch("limits", &body, dim3(1), dim3(32), (100 << 10) + 16, nullptr, body);
    g_assert_cmpint(cudaGetLastError(), ==, cudaErrorInvalidValue);
    g_assert_cmpint(emulator_allow_shared(&body, 1 << 10), ==,
                    cudaSuccess); /* less than at first */
    emulator_launch("limits", &body, dim3(1), dim3(32), 2 << 10, nullptr, body);
    g_assert_cmpint(cudaGetLastError(), ==, cudaErrorInvalidValue);
    g_assert_cmpint(emulator_allow_shared(&body, 228 << 10), ==, cudaErrorInvalidValue);
    cudaGetLastError();
    cudaDeviceSynchronize();
}

/* ---- halves: each number there is, and every tie between two --------------------------------- */

static float next_half(unsigned bits) {
    return __half2float(__half{(unsigned short)bits});
}

static void test_halves() {
    for (unsigned bits = 0; bits < 0x10000; bits++) {
        float x = next_half(bits), y = __bfloat162float(__nv_bfloat16{(unsigned short)bits});
        if (!isnan(x)) {
            g_assert_cmpuint(__float2half_rn(x).bits, ==, bits);
        }
        if (!isnan(y)) {
            g_assert_cmpuint(__float2bfloat16_rn(y).bits, ==, bits);
        }
        if ((bits & 0x7fff) < 0x7bff) {
            float tie = (x + next_half(bits + 1)) / 2;
            g_assert_cmpuint(__float2half_rn(tie).bits, ==, bits + (bits & 1));
            g_assert_cmpuint(__float2half_rn(nextafterf(tie, x)).bits, ==, bits);
        }
    }
    g_assert_true(isnan(__half2float(__float2half_rn(NAN))));
    g_assert_true(isnan(__bfloat162float(__float2bfloat16_rn(NAN))));
    g_assert_cmpuint(__float2half_rn(65520).bits, ==, 0x7c00);
    g_assert_cmpfloat(__half2float(__half{1}), ==, 0x1p-24f);
}

/* ---- functions that are not exact: off by some last places, never by more, exact where they may
 * be ------------------------------------------------------------------------------------------- */

static void test_inexact() {
    const struct {
        float (*ours)(float);
        double (*exact)(double);
        int places;
        float low, high, known, known_result;
    } functions[] = {
        {emulator_expf, exp, 2, -20, 20, 0, 1},   {emulator_exp2f, exp2, 4, -20, 20, 3, 8},
        {emulator_logf, log, 1, 0.01f, 90, 1, 0}, {emulator_tanhf, tanh, 2, -4, 4, 0, 0},
        {emulator_erfcf, erfc, 4, -4, 4, 0, 1},   {emulator_cosf, cos, 2, -9, 9, 0, 1},
        {emulator_sinf, sin, 2, -9, 9, 0, 0}};
    for (const auto &f : functions) {
        long least = 0, most = 0;
        for (int i = 0; i <= 1000; i++) {
            float x = f.low + (f.high - f.low) * (float)i / 1000;
            float near = (float)f.exact((double)x), got = f.ours(x);
            long off = (long)__float_as_int(got) - (long)__float_as_int(near);
            least = MIN(least, off);
            most = MAX(most, off);
        }
        g_assert_cmpint(least, ==, -f.places);
        g_assert_cmpint(most, ==, f.places);
        g_assert_cmpfloat(f.ours(f.known), ==, f.known_result);
    }
    g_assert_cmpfloat(expf(-INFINITY), ==, 0);
    g_assert_cmpfloat(rsqrtf(0.25f), ==, 2);
    g_assert_cmpfloat(__fdividef(6, 3), ==, 2);
    g_assert_cmpfloat(__fdividef(1, 0x1p127f), ==, 0);
    g_assert_true(isnan(__fdividef(INFINITY, INFINITY)));
}

/* ---- products of a warp's matrices ----------------------------------------------------------- */

/* d[16, 8] = a[16, 16] b[16, 8]; a lies by rows of 24, b by columns of 16 (or by rows of 8), as each
 * word is wanted: what a lane holds is said here once more, element by element. */
static __global__ void matrices_kernel(float *d, const __half *a, const __half *b, bool by_rows) {
    BLOCK_SHARED(__half[16 * 24], left);
    BLOCK_SHARED(__half[16 * 16], right);
    unsigned lane = threadIdx.x, g = lane / 4, t = lane % 4, words[4], columns[4];
    for (unsigned i = lane; i < 16 * 24; i += 32) {
        left[i] = a[i];
    }
    for (unsigned i = lane; i < 128; i += 32) {
        right[i] = b[i];
    }
    __syncthreads();
    cu::load_matrices<false>(words, left + lane % 16 * 24 + lane / 16 * 8);
    if (by_rows) {
        cu::load_matrices<true>(columns, right + lane % 16 * 8);
    } else {
        cu::load_matrices<false>(columns, right + lane % 8 * 16 + lane / 8 % 2 * 8);
    }
    float sum[4] = {0, 0, 0, 0};
    cu::add_product(sum, words, columns[0], columns[1], __half());
    for (unsigned i = 0; i < 4; i++) {
        d[(g + i / 2 * 8) * 8 + 2 * t + i % 2] = sum[i];
    }
}

static void test_matrices() {
    float *d = (float *)new_ints(16 * 8), got[16 * 8];
    __half a[16 * 24], b[16 * 8], *on_a = (__half *)new_ints(16 * 12);
    __half *on_b = (__half *)new_ints(16 * 4);
    for (unsigned i = 0; i < 16 * 24; i++) {
        a[i] = __float2half_rn((float)(i * 7 % 23) - 11);
        b[i % 128] = __float2half_rn((float)(i * 5 % 19) - 9);
    }
    cudaMemcpy(on_a, a, sizeof a, cudaMemcpyHostToDevice);
    cudaMemcpy(on_b, b, sizeof b, cudaMemcpyHostToDevice);
    for (unsigned by_rows = 0; by_rows < 2; by_rows++) {
        run(nullptr, matrices_kernel, dim3(1), dim3(32), d, (const __half *)on_a,
            (const __half *)on_b, by_rows != 0);
        cudaDeviceSynchronize();
        cudaMemcpy(got, d, sizeof got, cudaMemcpyDeviceToHost);
        for (unsigned i = 0; i < 16 * 8; i++) {
            float want = 0;
            for (unsigned k = 0; k < 16; k++) {
                want += __half2float(a[i / 8 * 24 + k]) *
                        __half2float(b[by_rows ? k * 8 + i % 8 : i % 8 * 16 + k]);
            }
            g_assert_cmpfloat(got[i], ==, want);
        }
    }
    for (void *x : {(void *)d, (void *)on_a, (void *)on_b}) {
        cudaFree(x);
    }
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, nullptr);
    g_test_add_func("/emulator/threads/indices", test_indices);
    g_test_add_func("/emulator/threads/exchange", test_threads);
    g_test_add_func("/emulator/threads/shared-places", test_shared_places);
    g_test_add_func("/emulator/threads/missing-barrier", test_missing_barrier);
    g_test_add_func("/emulator/threads/block-order", test_block_order);
    g_test_add_func("/emulator/threads/limits", test_limits);
    g_test_add_func("/emulator/threads/matrices", test_matrices);
    add_order_tests();
    g_test_add_func("/emulator/halves/all", test_halves);
    g_test_add_func("/emulator/functions/inexact", test_inexact);
    add_product_tests();
    add_fault_tests();
    return g_test_run();
}
