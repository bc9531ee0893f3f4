/* tests/emulator/test-order.cc - streams and events, memory, pages, and what is left at the end. */
#include <cublasLt.h>
#include <math.h>

#include "tests/emulator/test.h"

/* ---- order ---------------------------------------------------------------------------------- */

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

/* ---- the end -------------------------------------------------------------------------------- */

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

void add_order_tests() {
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
}
