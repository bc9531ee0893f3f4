/* tests/emulator/test.cc - what the emulator promises: threads, order, memory, and that it finds
 * the faults it is there to find. Each fault is planted in a child process, which must abort. */
#include <cublasLt.h>
#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <glib.h>
#include <math.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernels/cuda/attention-private.h"
#include "kernels/cuda/device.cuh"
#include "kernels/cuda/matrices.cuh"
#include "tests/emulator/emulator.h"

/* ---- threads -------------------------------------------------------------------------------- */

static const unsigned N = 256;

template <typename... P, typename... A>
static void run(cudaStream_t stream, void (*kernel)(P...), dim3 grid, dim3 block, A... arguments) {
    emulator_launch("test", (const void *)kernel, grid, block, 64, stream,
                    [=] { kernel(P(arguments)...); });
}

static int *new_ints(unsigned n) {
    int *x;
    g_assert_cmpint(cudaMalloc((void **)&x, n * sizeof *x), ==, cudaSuccess);
    return x;
}

static int read_int(cudaStream_t stream, const int *at) {
    int x;
    g_assert_cmpint(cudaStreamSynchronize(stream), ==, cudaSuccess);
    g_assert_cmpint(cudaMemcpy(&x, at, sizeof x, cudaMemcpyDeviceToHost), ==, cudaSuccess);
    return x;
}

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

/* ---- pages ---------------------------------------------------------------------------------- */

static const size_t DRIVER_PAGE = 2 << 20; /* bytes */
static const CUmemLocation DEVICE = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
static const CUmemAllocationProp DEVICE_PAGE = {CU_MEM_ALLOCATION_TYPE_PINNED, DEVICE};
static const CUmemAccessDesc DEVICE_ACCESS = {DEVICE, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};

struct Driver {
    CUresult (*reserve)(CUdeviceptr *, size_t, size_t, CUdeviceptr, unsigned long long);
    CUresult (*release_addresses)(CUdeviceptr, size_t);
    CUresult (*create)(CUmemGenericAllocationHandle *, size_t, const CUmemAllocationProp *,
                       unsigned long long);
    CUresult (*release)(CUmemGenericAllocationHandle);
    CUresult (*map)(CUdeviceptr, size_t, size_t, CUmemGenericAllocationHandle, unsigned long long);
    CUresult (*unmap)(CUdeviceptr, size_t);
    CUresult (*access)(CUdeviceptr, size_t, const CUmemAccessDesc *, size_t);
};

template <typename F> static void find(const char *name, F *function) {
    cudaDriverEntryPointQueryResult found;
    g_assert_cmpint(cudaGetDriverEntryPointByVersion(name, (void **)function, CUDART_VERSION,
                                                     cudaEnableDefault, &found),
                    ==, cudaSuccess);
    g_assert_cmpint(found, ==, cudaDriverEntryPointSuccess);
}

static Driver find_driver() {
    Driver driver;
    find("cuMemAddressReserve", &driver.reserve);
    find("cuMemAddressFree", &driver.release_addresses);
    find("cuMemCreate", &driver.create);
    find("cuMemRelease", &driver.release);
    find("cuMemMap", &driver.map);
    find("cuMemUnmap", &driver.unmap);
    find("cuMemSetAccess", &driver.access);
    return driver;
}

/* ---- order ---------------------------------------------------------------------------------- */

static __global__ void set_kernel(int *x, int value) {
    *x = value;
}

static __global__ void copy_kernel(int *to, const int *from) {
    *to = *from;
}

typedef struct {
    cudaStream_t first, second;
    cudaEvent_t event;
    int *x, *y;
} Race;

static Race new_race() {
    Race r;
    cudaStreamCreateWithFlags(&r.first, cudaStreamNonBlocking);
    cudaStreamCreateWithFlags(&r.second, cudaStreamNonBlocking);
    cudaEventCreateWithFlags(&r.event, cudaEventDisableTiming);
    r.x = new_ints(1);
    r.y = new_ints(1);
    run(r.first, set_kernel, dim3(1), dim3(1), r.x, 1);
    cudaStreamSynchronize(r.first);
    return r;
}

static void end_race(Race *r) {
    cudaFree(r->x);
    cudaFree(r->y);
    cudaEventDestroy(r->event);
    cudaStreamDestroy(r->first);
    cudaStreamDestroy(r->second);
}

/* What a second stream reads of a first one's work: new with a wait, old without. */
static int read_after_write(bool waits) {
    Race r = new_race();
    run(r.first, set_kernel, dim3(1), dim3(1), r.x, 2);
    cudaEventRecord(r.event, r.first);
    if (waits) {
        cudaStreamWaitEvent(r.second, r.event, 0);
    }
    run(r.second, copy_kernel, dim3(1), dim3(1), r.y, r.x);
    int seen = read_int(r.second, r.y);
    end_race(&r);
    return seen;
}

/* What a first stream reads where a second one writes afterwards. */
static int write_after_read(bool waits) {
    Race r = new_race();
    run(r.first, copy_kernel, dim3(1), dim3(1), r.y, r.x);
    cudaEventRecord(r.event, r.first);
    if (waits) {
        cudaStreamWaitEvent(r.second, r.event, 0);
    }
    run(r.second, set_kernel, dim3(1), dim3(1), r.x, 2);
    cudaStreamSynchronize(r.second);
    int seen = read_int(r.first, r.y);
    end_race(&r);
    return seen;
}

static void test_order() {
    for (uint64_t seed = 0; seed < 20; seed++) {
        emulator_set_seed(seed);
        g_assert_cmpint(read_after_write(true), ==, 2);
        g_assert_cmpint(write_after_read(true), ==, 1);
    }
    emulator_set_seed(0);
    g_assert_cmpint(read_after_write(false), ==, 1);
    g_assert_cmpint(write_after_read(false), ==, 2);
}

/* An event that is recorded again is waited for as it was then. */
static void test_event_again() {
    Race r = new_race();
    cudaEventRecord(r.event, r.first);
    cudaStreamWaitEvent(r.second, r.event, 0);
    run(r.first, set_kernel, dim3(1), dim3(1), r.x, 5);
    cudaEventRecord(r.event, r.first);
    run(r.second, copy_kernel, dim3(1), dim3(1), r.y, r.x);
    g_assert_cmpint(read_int(r.second, r.y), ==, 1);
    int asked = 0;
    while (cudaEventQuery(r.event) == cudaErrorNotReady) {
        asked++;
    }
    g_assert_cmpint(asked, >, 0);
    g_assert_cmpint(read_int(r.first, r.x), ==, 5);
    end_race(&r);
}

/* "Not yet" stays as the last error, and what keeps no time cannot be asked for it. */
static void test_answers_of_events() {
    cudaEvent_t plain, bare;
    cudaStream_t stream;
    float ms;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    cudaEventCreate(&plain);
    cudaEventCreateWithFlags(&bare, cudaEventDisableTiming);
    cudaEventRecord(plain, stream);
    cudaEventRecord(bare, stream);
    cudaGetLastError();
    g_assert_cmpint(cudaEventQuery(bare), ==, cudaErrorNotReady);
    g_assert_cmpint(cudaGetLastError(), ==, cudaErrorNotReady);
    g_assert_cmpint(cudaGetLastError(), ==, cudaSuccess);
    g_assert_cmpint(cudaEventElapsedTime(&ms, plain, plain), ==, cudaSuccess); /* it is through */
    cudaStreamSynchronize(stream);
    g_assert_cmpint(cudaEventElapsedTime(&ms, plain, bare), ==, cudaErrorInvalidResourceHandle);
    g_assert_cmpint(cudaGetLastError(), ==, cudaErrorInvalidResourceHandle);
    cudaEventDestroy(plain);
    cudaEventDestroy(bare);
    cudaStreamDestroy(stream);
}

/* A copy that has returned has not yet arrived, for a stream that does not wait for it. */
static void test_copy_in_flight() {
    int host[1] = {7}, *x = new_ints(1), *y = new_ints(1);
    cudaStream_t stream;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    cudaMemcpy(x, host, sizeof host, cudaMemcpyHostToDevice);
    run(stream, copy_kernel, dim3(1), dim3(1), y, x);
    g_assert_cmpint(read_int(stream, y), !=, 7);
    cudaMemcpy(x, host, sizeof host, cudaMemcpyHostToDevice);
    cudaStreamSynchronize(nullptr);
    run(stream, copy_kernel, dim3(1), dim3(1), y, x);
    g_assert_cmpint(read_int(stream, y), ==, 7);
    cudaFree(x);
    cudaFree(y);
    cudaStreamDestroy(stream);
}

static void count(void *data) {
    g_atomic_int_inc((int *)data);
}

/* A host function that nobody waits for by CUDA is called all the same. */
static void test_host_function() {
    int calls = 0;
    cudaStream_t stream;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    cudaLaunchHostFunc(stream, count, &calls);
    g_assert_cmpint(g_atomic_int_get(&calls), ==, 0);
    while (!g_atomic_int_get(&calls)) {
        g_usleep(1000);
    }
    cudaStreamDestroy(stream);
}

/* ---- memory --------------------------------------------------------------------------------- */

static void test_memory() {
    size_t free_bytes, total, before = emulator_allocations();
    void *x, *y;
    emulator_set_memory(1 << 20);
    g_assert_cmpint(cudaMalloc(&x, 700 << 10), ==, cudaSuccess);
    g_assert_cmpint(cudaMemGetInfo(&free_bytes, &total), ==, cudaSuccess);
    g_assert_cmpuint(total, ==, 1 << 20);
    g_assert_cmpuint(free_bytes, ==, 324 << 10);
    g_assert_cmpint(cudaMalloc(&y, 400 << 10), ==, cudaErrorMemoryAllocation);
    g_assert_null(y);
    g_assert_cmpint(cudaGetLastError(), ==, cudaErrorMemoryAllocation);
    g_assert_cmpint(cudaGetLastError(), ==, cudaSuccess);
    float number;
    cudaMemcpy(&number, (char *)x + 4096, sizeof number, cudaMemcpyDeviceToHost);
    g_assert_true(isnan(number));
    g_assert_cmpint(cudaMemcpy(&number, &total, sizeof number, cudaMemcpyDeviceToHost), ==,
                    cudaErrorInvalidValue);
    cudaGetLastError();
    g_assert_cmpint(cudaFree(x), ==, cudaSuccess);
    g_assert_cmpuint(emulator_allocations(), ==, before);
    emulator_set_memory((size_t)1 << 30);
}

/* From pageable memory a copy is taken at once, from pinned memory when its turn comes. */
static void test_copies() {
    int pageable = 1, *pinned, *x = new_ints(2);
    cudaStream_t stream;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    cudaHostAlloc((void **)&pinned, sizeof *pinned, 0);
    *pinned = 1;
    cudaMemcpy(x, &pageable, sizeof *x, cudaMemcpyHostToDevice);
    cudaMemcpyAsync(x + 1, pinned, sizeof *x, cudaMemcpyHostToDevice, stream);
    pageable = *pinned = 2;
    g_assert_cmpint(read_int(stream, x), ==, 1);
    g_assert_cmpint(read_int(stream, x + 1), ==, 2);
    cudaFree(x);
    cudaFreeHost(pinned);
    cudaStreamDestroy(stream);
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

static __global__ void crooked_kernel() {
    BLOCK_SHARED(__half[64], rows);
    unsigned words[4];
    rows[threadIdx.x] = rows[threadIdx.x + 32] = __half{0};
    __syncthreads();
    cu::load_matrices<false>(words, rows + 4);
}

/* ---- planted faults ------------------------------------------------------------------------- */

static __global__ void overrun_kernel(int *x) {
    x[threadIdx.x + 1] = 0;
}

static __global__ void parting_kernel(int *x) {
    if (threadIdx.x < 5) {
        __syncthreads();
    }
    x[threadIdx.x] = 0;
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

/* The upper half of the warp leaves nothing. */
static void absent_kernel(int *x) {
    if (threadIdx.x < 16) {
        x[threadIdx.x] = __shfl_xor_sync(0xffffu, (int)threadIdx.x, 16);
    }
}

static void plant_overrun() {
    int *x = new_ints(32);
    run(nullptr, overrun_kernel, dim3(1), dim3(32), x);
    emulator_check();
}

static void plant_parting() {
    run(nullptr, parting_kernel, dim3(1), dim3(32), new_ints(32));
    cudaDeviceSynchronize();
}

static void plant_absent_lane() {
    run(nullptr, absent_kernel, dim3(1), dim3(32), new_ints(32));
    cudaDeviceSynchronize();
}

static void plant_double_free() {
    int *x = new_ints(32);
    cudaFree(x);
    cudaFree(x);
}

static void plant_long_copy() {
    int host[40] = {0};
    cudaMemcpy(new_ints(32), host, sizeof host, cudaMemcpyHostToDevice);
}

static void call_cuda(void *x) {
    cudaMemset(x, 0, sizeof(int));
}

static void plant_call_from_host_function() {
    cudaLaunchHostFunc(nullptr, call_cuda, new_ints(1));
    cudaDeviceSynchronize();
}

static void plant_fork() {
    int *x = new_ints(1), status;
    pid_t child = fork();
    if (child == 0) {
        cudaFree(x);
        _exit(0);
    }
    waitpid(child, &status, 0);
    g_assert_true(WIFEXITED(status));
}

static void plant_use_after_free() {
    int *x = new_ints(32);
    cudaFree(x);
    run(nullptr, set_kernel, dim3(1), dim3(1), x, 1);
    cudaDeviceSynchronize();
}

static void plant_early_free_of_pinned() {
    int *pinned, *x = new_ints(1);
    cudaStream_t stream;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    cudaMallocHost((void **)&pinned, sizeof *pinned);
    cudaMemcpyAsync(x, pinned, sizeof *x, cudaMemcpyHostToDevice, stream);
    cudaFreeHost(pinned);
}

static void plant_dead_event() {
    cudaEvent_t event;
    cudaEventCreate(&event);
    cudaEventDestroy(event);
    cudaEventRecord(event, nullptr);
}

static void plant_dead_stream() {
    cudaStream_t stream;
    cudaStreamCreate(&stream);
    cudaStreamDestroy(stream);
    cudaStreamSynchronize(stream);
}

static void plant_overlapping_copy() {
    int *x = new_ints(8);
    cudaMemcpyAsync(x + 1, x, 4 * sizeof *x, cudaMemcpyDeviceToDevice, nullptr);
}

/* A page is taken away while a kernel still has to write to it. */
static void plant_unmapped_page() {
    const Driver driver = find_driver();
    CUmemGenericAllocationHandle page;
    CUdeviceptr at;
    driver.reserve(&at, DRIVER_PAGE, 0, 0, 0);
    driver.create(&page, DRIVER_PAGE, &DEVICE_PAGE, 0);
    driver.map(at, DRIVER_PAGE, 0, page, 0);
    driver.access(at, DRIVER_PAGE, &DEVICE_ACCESS, 1);
    run(nullptr, set_kernel, dim3(1), dim3(1), (int *)(uintptr_t)at, 1);
    driver.unmap(at, DRIVER_PAGE);
    cudaDeviceSynchronize();
}

static void plant_crooked_matrix() {
    run(nullptr, crooked_kernel, dim3(1), dim3(32));
    cudaDeviceSynchronize();
}

/* A tile in shared memory is no place for 16 bytes by an instruction of global memory. */
static __global__ void misput_kernel(int) {
    BLOCK_SHARED(uint4, tile);
    cu::put(&tile, make_uint4(1, 2, 3, 4));
}

static void plant_shared_put() {
    run(nullptr, misput_kernel, dim3(1), dim3(1), 0);
    cudaDeviceSynchronize();
}

static void plant_pageable_copy() {
    int host = 1;
    cudaMemcpyAsync(new_ints(1), &host, sizeof host, cudaMemcpyHostToDevice, nullptr);
}

/* 48 KiB that a launch asks for, and a variable. */
static __global__ void crowded_kernel(int *x) {
    BLOCK_SHARED(int, one);
    one = 1;
    x[0] = one;
}

static void plant_crowded_block() {
    int *x = new_ints(1);
    emulator_launch("test", (const void *)crowded_kernel, dim3(1), dim3(1), 48 << 10, nullptr,
                    [=] { crowded_kernel(x); });
    cudaDeviceSynchronize();
}

static void plant_crooked_aux();
static void plant_unread_bias();
static void plant_short_workspace();
static void plant_host_matrix();

struct Fault {
    const char *name;
    void (*plant)();
    const char *said = "*"; /* what it dies with */
};

static const Fault faults[] = {
    {"overrun", plant_overrun},
    {"shared-put", plant_shared_put, "*shared memory by an instruction of global memory*"},
    {"pageable-copy", plant_pageable_copy, "*pageable memory*"},
    {"crowded-block", plant_crowded_block, "*more shared memory than there is*"},
    {"crooked-aux", plant_crooked_aux, "*less aligned than*"},
    {"unread-bias", plant_unread_bias, "*does not fit together*"},
    {"short-workspace", plant_short_workspace, "*63 bytes of workspace*"},
    {"host-matrix", plant_host_matrix, "*a is not in the device*"},
    {"parting", plant_parting},
    {"absent-lane", plant_absent_lane},
    {"double-free", plant_double_free},
    {"long-copy", plant_long_copy},
    {"call-from-host-function", plant_call_from_host_function},
    {"fork", plant_fork},
    {"use-after-free", plant_use_after_free},
    {"early-free-of-pinned", plant_early_free_of_pinned},
    {"dead-event", plant_dead_event},
    {"dead-stream", plant_dead_stream},
    {"overlapping-copy", plant_overlapping_copy},
    {"unmapped-page", plant_unmapped_page},
    {"crooked-matrix", plant_crooked_matrix}};

static void test_fault(gconstpointer data) {
    const Fault *fault = (const Fault *)data;
    if (g_test_subprocess()) {
        fault->plant();
        return;
    }
    g_test_trap_subprocess(nullptr, 0, (GTestSubprocessFlags)0);
    g_test_trap_assert_failed();
    g_test_trap_assert_stderr(fault->said);
}

/* Pages by the driver's calls: of a GPU that has room for three, over addresses for four. What is
 * not as cuda.h has it is refused, and memory is back when neither handle nor mapping is left. */
static void test_pages() {
    enum {
        N = 4
    };
    const size_t page = DRIVER_PAGE;
    const CUresult bad = CUDA_ERROR_INVALID_VALUE;
    const Driver driver = find_driver();
    CUmemGenericAllocationHandle handles[N] = {};
    CUdeviceptr at = 0;
    size_t free_bytes, total;
    g_assert_cmpint(driver.reserve(&at, page + 5, 0, 0, 0), ==, bad);
    g_assert_cmpint(driver.reserve(&at, N * page, 0, 0, 0), ==, CUDA_SUCCESS);
    cudaMemGetInfo(&free_bytes, &total);
    emulator_set_memory(total - free_bytes + 3 * page);
    for (unsigned i = 0; i < N; i++) {
        g_assert_cmpint(driver.create(&handles[i], page, &DEVICE_PAGE, 0), ==,
                        i < 3 ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY);
    }
    g_assert_cmpint(driver.map(at, page, 0, handles[0], 0), ==, CUDA_SUCCESS);
    g_assert_cmpint(driver.map(at, page, 0, handles[1], 0), ==, bad); /* there is one */
    g_assert_cmpint(driver.map(at + page, page, 0, handles[1], 0), ==, CUDA_SUCCESS);
    g_assert_cmpint(driver.access(at, 3 * page, &DEVICE_ACCESS, 1), ==, bad); /* of two */
    g_assert_cmpint(driver.access(at, 2 * page, &DEVICE_ACCESS, 1), ==, CUDA_SUCCESS);
    int *x = (int *)(uintptr_t)at;
    run(nullptr, set_kernel, dim3(1), dim3(1), x + 2 * page / sizeof *x - 1, 7);
    g_assert_cmpint(read_int(nullptr, x + 2 * page / sizeof *x - 1), ==, 7);
    g_assert_cmpint(driver.unmap(at, 2 * page), ==, bad); /* not by one call mapped */
    g_assert_cmpint(driver.release_addresses(at, N * page), ==, bad);
    for (unsigned i = 0; i < 3; i++) {
        g_assert_cmpint(driver.release(handles[i]), ==, CUDA_SUCCESS);
        g_assert_cmpint(driver.release(handles[i]), ==, bad);
    }
    cudaMemGetInfo(&free_bytes, &total);
    g_assert_cmpuint(free_bytes, ==, page); /* what is mapped stays */
    g_assert_cmpint(driver.unmap(at, page), ==, CUDA_SUCCESS);
    g_assert_cmpint(driver.unmap(at + page, page), ==, CUDA_SUCCESS);
    cudaMemGetInfo(&free_bytes, &total);
    g_assert_cmpuint(free_bytes, ==, 3 * page);
    g_assert_cmpint(driver.release_addresses(at, N * page), ==, CUDA_SUCCESS);
    g_assert_cmpuint(emulator_live().device, ==, 0);
    emulator_set_memory((size_t)1 << 30);
}

/* Once a kernel has faulted, every call says so, and what was still to be done is not. */
static void test_broken() {
    if (!g_test_subprocess()) {
        g_setenv("FORESHARD_EMULATOR_FAULT", "1", TRUE);
        g_test_trap_subprocess(nullptr, 0, (GTestSubprocessFlags)0);
        g_unsetenv("FORESHARD_EMULATOR_FAULT");
        g_test_trap_assert_passed();
        return;
    }
    int *x = new_ints(1), *more = nullptr, *pinned = nullptr, calls = 0;
    cudaEvent_t event;
    cudaStream_t stream;
    size_t free_bytes, total;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    run(stream, set_kernel, dim3(1), dim3(1), x, 1);
    g_assert_cmpint(cudaGetLastError(), ==, cudaSuccess);
    cudaLaunchHostFunc(stream, count, &calls);
    const cudaError_t broken = cudaErrorIllegalAddress;
    g_assert_cmpint(cudaStreamSynchronize(stream), ==, broken);
    g_assert_cmpint(calls, ==, 0);
    g_assert_cmpint(cudaMalloc((void **)&more, sizeof *more), ==, broken);
    g_assert_cmpint(cudaMallocHost((void **)&pinned, sizeof *pinned), ==, broken);
    g_assert_cmpint(cudaMemGetInfo(&free_bytes, &total), ==, broken);
    g_assert_cmpint(cudaEventCreate(&event), ==, broken);
    g_assert_cmpint(cudaMemsetAsync(x, 0, sizeof *x, stream), ==, broken);
    g_assert_cmpint(cudaFree(x), ==, broken);
    g_assert_cmpint(cudaGetLastError(), ==, broken);
    g_assert_cmpint(cudaGetLastError(), ==, broken);
}

/* A process that ends well must have given all back. */
static void test_leaks() {
    EmulatorLive before = emulator_live();
    int *x = new_ints(1), *pinned;
    cudaEvent_t event;
    cudaStream_t stream;
    cublasLtHandle_t blas;
    cudaStreamCreate(&stream);
    cudaEventCreate(&event);
    cudaMallocHost((void **)&pinned, sizeof *pinned);
    cublasLtCreate(&blas);
    if (g_test_subprocess()) {
        return; /* and keeps them */
    }
    EmulatorLive now = emulator_live();
    g_assert_cmpuint(now.streams, ==, before.streams + 1);
    g_assert_cmpuint(now.events, ==, before.events + 1);
    g_assert_cmpuint(now.device, ==, before.device + 1);
    g_assert_cmpuint(now.pinned, ==, before.pinned + 1);
    g_assert_cmpuint(now.blas, ==, before.blas + 1);
    cublasLtDestroy(blas);
    cudaFreeHost(pinned);
    cudaEventDestroy(event);
    cudaStreamDestroy(stream);
    cudaFree(x);
    now = emulator_live();
    g_assert_true(!memcmp(&now, &before, sizeof now));
    g_setenv("FORESHARD_EMULATOR_LEAKS", "1", TRUE);
    g_test_trap_subprocess(nullptr, 0, (GTestSubprocessFlags)0);
    g_unsetenv("FORESHARD_EMULATOR_LEAKS");
    g_test_trap_assert_failed();
    g_test_trap_assert_stderr("*not given back: 1 streams, 1 events, 1 *, 1 *, 1 objects*");
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

/* With an odd seed a kernel's first launch waits for what other streams have, and later ones for
 * nothing. */
static void test_loading() {
    static const char kernels[2] = {};
    cudaStream_t stream;
    int done = 0;
    emulator_set_seed(1);
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    emulator_launch("first", &kernels[0], dim3(1), dim3(1), 0, stream, [&] { done++; });
    emulator_launch("second", &kernels[1], dim3(1), dim3(1), 0, nullptr, [] {});
    g_assert_cmpint(done, ==, 1);
    emulator_set_seed(0);
    cudaDeviceSynchronize();
    cudaStreamDestroy(stream);
}

/* ---- products ------------------------------------------------------------------------------- */

/* d [ROWS, COLS] = a [ROWS, K] b [K, COLS], columns first, with something at its end. */
struct Product {
    static const unsigned ROWS = 8, COLS = 3, K = 6;

    cublasLtEpilogue_t epilogue;
    bool has_bias, has_aux = true;
    int64_t aux_ld = ROWS;
    cudaDataType_t bias_type = CUDA_R_32F;
    cublasOperation_t b_op;
    int32_t batch = 1;
    unsigned shift = 0; /* of what goes into GELU when it is launched; elements */
    uint64_t workspace_bytes = 64, less = 0; /* that is said, and that it is less than that */
    const float *a_at = nullptr;             /* elsewhere than here */
    float a[ROWS * K], b[K * COLS], d[ROWS * COLS], bias[ROWS];
    alignas(64) float aux[ROWS * COLS + 4];
    alignas(256) char workspace[64];

    explicit Product(cublasLtEpilogue_t end)
        : epilogue(end),
          has_bias(end == CUBLASLT_EPILOGUE_DGELU_BGRAD || end == CUBLASLT_EPILOGUE_BGRADB),
          b_op(end == CUBLASLT_EPILOGUE_BGRADB ? CUBLAS_OP_T : CUBLAS_OP_N) {
        for (unsigned i = 0; i < ROWS * K; i++) {
            a[i] = (float)(i % 7) - 3;
        }
        for (unsigned i = 0; i < K * COLS; i++) {
            b[i] = (float)(i % 5) - 2;
        }
        for (unsigned i = 0; i < ROWS * COLS + 4; i++) {
            aux[i] = (float)(i % 3) - 1;
        }
    }

    template <typename T>
    static void set(cublasLtMatmulDesc_t desc, cublasLtMatmulDescAttributes_t attribute, T value) {
        g_assert_cmpint(cublasLtMatmulDescSetAttribute(desc, attribute, &value, sizeof value), ==,
                        CUBLAS_STATUS_SUCCESS);
    }

    static cublasLtMatrixLayout_t layout(uint64_t rows, uint64_t cols, int32_t batch) {
        cublasLtMatrixLayout_t made;
        g_assert_cmpint(cublasLtMatrixLayoutCreate(&made, CUDA_R_32F, rows, cols, (int64_t)rows),
                        ==, CUBLAS_STATUS_SUCCESS);
        cublasLtMatrixLayoutSetAttribute(made, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch,
                                         sizeof batch);
        return made;
    }

    /* What the heuristics say, or the launch if they have no objection. */
    cublasStatus_t run() {
        cublasLtHandle_t blas;
        cublasLtMatmulDesc_t desc;
        cublasLtMatmulPreference_t preference;
        cublasLtMatmulHeuristicResult_t result;
        const float one = 1, zero = 0;
        int found;
        cublasLtCreate(&blas);
        cublasLtMatmulDescCreate(&desc, CUBLAS_COMPUTE_32F, CUDA_R_32F);
        cublasLtMatmulPreferenceCreate(&preference);
        for (auto least : {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
                           CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
                           CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
                           CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
            uint32_t bytes = sizeof(float);
            cublasLtMatmulPreferenceSetAttribute(preference, least, &bytes, sizeof bytes);
        }
        cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                             &workspace_bytes, sizeof workspace_bytes);
        set(desc, CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue);
        set(desc, CUBLASLT_MATMUL_DESC_TRANSB, b_op);
        set(desc, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, bias_type);
        set(desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, has_bias ? bias : nullptr);
        set(desc, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, has_aux ? aux : nullptr);
        set(desc, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, aux_ld);
        cublasLtMatrixLayout_t la = layout(ROWS, K, batch);
        cublasLtMatrixLayout_t lb =
            b_op == CUBLAS_OP_T ? layout(COLS, K, batch) : layout(K, COLS, batch);
        cublasLtMatrixLayout_t ld = layout(ROWS, COLS, batch);
        cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(blas, desc, la, lb, ld, ld,
                                                               preference, 1, &result, &found);
        if (status == CUBLAS_STATUS_SUCCESS) {
            set(desc, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, has_aux ? aux + shift : nullptr);
            status = cublasLtMatmul(blas, desc, &one, a_at ? a_at : a, la, b, lb, &zero, d, ld, d,
                                    ld, &result.algo, workspace, workspace_bytes - less, nullptr);
            g_assert_cmpint(cudaStreamSynchronize(nullptr), ==, cudaSuccess);
        }
        for (auto made : {la, lb, ld}) {
            cublasLtMatrixLayoutDestroy(made);
        }
        cublasLtMatmulPreferenceDestroy(preference);
        cublasLtMatmulDescDestroy(desc);
        cublasLtDestroy(blas);
        return status;
    }
};

/* One that lies in the device's memory, changed. */
template <typename F> static cublasStatus_t refused(cublasLtEpilogue_t end, F change) {
    void *memory;
    g_assert_cmpint(cudaMalloc(&memory, sizeof(Product)), ==, cudaSuccess);
    Product *p = new (memory) Product(end);
    change(p);
    cublasStatus_t status = p->run();
    cudaFree(memory);
    return status;
}

static void plant_crooked_aux() {
    refused(CUBLASLT_EPILOGUE_DGELU, [](Product *p) { p->shift = 1; });
}

static void plant_unread_bias() {
    refused(CUBLASLT_EPILOGUE_DGELU, [](Product *p) { p->has_bias = true; });
}

static void plant_short_workspace() {
    refused(CUBLASLT_EPILOGUE_DGELU, [](Product *p) { p->less = 1; });
}

static void plant_host_matrix() {
    Product elsewhere(CUBLASLT_EPILOGUE_DGELU);
    refused(CUBLASLT_EPILOGUE_DGELU, [&](Product *p) { p->a_at = elsewhere.a; });
}

/* What cublasLt.h asks of the epilogues of gradients is refused where it is not kept. */
static void test_epilogues() {
    const cublasLtEpilogue_t back = CUBLASLT_EPILOGUE_DGELU_BGRAD;
    for (auto end : {CUBLASLT_EPILOGUE_DGELU, back, CUBLASLT_EPILOGUE_BGRADB}) {
        g_assert_cmpint(refused(end, [](Product *) {}), ==, CUBLAS_STATUS_SUCCESS);
    }
    g_assert_cmpint(refused(CUBLASLT_EPILOGUE_DGELU, [](Product *p) { p->aux_ld = 12; }), ==,
                    CUBLAS_STATUS_NOT_SUPPORTED);
    for (auto end : {CUBLASLT_EPILOGUE_DGELU, back, CUBLASLT_EPILOGUE_GELU_AUX}) {
        g_assert_cmpint(refused(end, [](Product *p) { p->aux_ld = 0; }), ==,
                        CUBLAS_STATUS_INVALID_VALUE);
        g_assert_cmpint(refused(end, [](Product *p) { p->has_aux = false; }), ==,
                        CUBLAS_STATUS_INVALID_VALUE);
    }
    g_assert_cmpint(refused(CUBLASLT_EPILOGUE_BGRADB, [](Product *p) { p->b_op = CUBLAS_OP_N; }),
                    ==, CUBLAS_STATUS_NOT_SUPPORTED);
    for (auto end : {back, CUBLASLT_EPILOGUE_BGRADB}) {
        g_assert_cmpint(refused(end, [](Product *p) { p->has_bias = false; }), ==,
                        CUBLAS_STATUS_INVALID_VALUE);
        g_assert_cmpint(refused(end, [](Product *p) { p->bias_type = CUDA_R_16F; }), ==,
                        CUBLAS_STATUS_INVALID_VALUE);
        g_assert_cmpint(refused(end, [](Product *p) { p->batch = 2; }), ==,
                        CUBLAS_STATUS_INVALID_VALUE);
    }
}

/* ---- attention by cuDNN --------------------------------------------------------------------- */

/* What is left to which version of it, on which GPU. */
static void test_cudnn_versions() {
    const auto fits = [](size_t version, auto change, int major = 9) {
        KernelCudaAttention shape = {2,   4,   4,   256, 64,   256,
                                     256, 256, 256, 1.,  true, KERNEL_CUDA_BF16};
        change(&shape);
        return kernel_cuda_cudnn_fits(&shape, version, major);
    };
    const auto plain = [](KernelCudaAttention *) {};
    const auto padded = [](KernelCudaAttention *a) { a->lse_stride = 260; };
    const auto uneven = [](KernelCudaAttention *a) { a->seq = a->lse_stride = 70; };
    const auto wide = [](KernelCudaAttention *a) { a->head_dim = a->q_stride = 256; };
    const auto single = [](KernelCudaAttention *a) { a->seq = a->lse_stride = 1; };
    for (size_t bad : {80907, 90501, 91000, 91001}) {
        g_assert_false(fits(bad, plain));
    }
    for (size_t good : {90600, 90900, 91002, 91900, 92600}) {
        g_assert_true(fits(good, plain));
        g_assert_true(fits(good, padded) == (good >= 92600));
        g_assert_true(fits(good, uneven) == (good >= 91501));
        g_assert_true(fits(good, wide) == (good >= 91002));
        g_assert_false(fits(good, wide, 8));
        g_assert_false(fits(good, wide, 10));
        g_assert_false(fits(good, single));
        float least = kernel_cuda_cudnn_least(good);
        g_assert_true(least < -1e38f && isinf(least) == (good >= 91000));
    }
}

/* The lanes of a device multiply by one handle, which lives as long as any of them. */
static void test_one_handle() {
    EmulatorLive before = emulator_live();
    KernelCuda *lanes[2];
    cudaStream_t streams[2];
    for (int i = 0; i < 2; i++) {
        cudaStreamCreate(&streams[i]);
        g_assert_null(kernel_cuda_new(&lanes[i], streams[i], KERNEL_CUDA_EXACT));
    }
    g_assert_cmpuint(emulator_live().blas, ==, before.blas + 1);
    for (int i = 0; i < 2; i++) {
        g_assert_cmpuint(emulator_live().blas, ==, before.blas + 1);
        kernel_cuda_free(lanes[i]);
        cudaStreamDestroy(streams[i]);
    }
    g_assert_cmpuint(emulator_live().blas, ==, before.blas);
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
    g_test_add_func("/emulator/order/races-show", test_order);
    g_test_add_func("/emulator/order/event-again", test_event_again);
    g_test_add_func("/emulator/order/event-answers", test_answers_of_events);
    g_test_add_func("/emulator/order/copy-in-flight", test_copy_in_flight);
    g_test_add_func("/emulator/order/host-function", test_host_function);
    g_test_add_func("/emulator/order/loading", test_loading);
    g_test_add_func("/emulator/memory/limit", test_memory);
    g_test_add_func("/emulator/memory/copies", test_copies);
    g_test_add_func("/emulator/memory/pages", test_pages);
    g_test_add_func("/emulator/memory/leaks", test_leaks);
    g_test_add_func("/emulator/memory/broken", test_broken);
    g_test_add_func("/emulator/halves/all", test_halves);
    g_test_add_func("/emulator/functions/inexact", test_inexact);
    g_test_add_func("/emulator/products/epilogues", test_epilogues);
    g_test_add_func("/emulator/products/one-handle", test_one_handle);
    g_test_add_func("/emulator/cudnn/versions", test_cudnn_versions);
    for (const auto &fault : faults) {
        g_autofree char *path = g_strdup_printf("/emulator/faults/%s", fault.name);
        g_test_add_data_func(path, &fault, test_fault);
    }
    return g_test_run();
}
