/* tests/emulator/test-faults.cc - that the emulator finds the faults it is there to find: each is
 * planted in a child process, which must abort.
 */
#include <cuda_fp16.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernels/cuda/device.cuh"
#include "kernels/cuda/products/matrices.cuh"
#include "tests/emulator/test.h"

static __global__ void overrun_kernel(int *x) {
    x[threadIdx.x + 1] = 0;
}

static __global__ void parting_kernel(int *x) {
    if (threadIdx.x < 5) {
        __syncthreads();
    }
    x[threadIdx.x] = 0;
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

static __global__ void crooked_kernel() {
    BLOCK_SHARED(__half[64], rows);
    unsigned words[4];
    rows[threadIdx.x] = rows[threadIdx.x + 32] = __half{0};
    __syncthreads();
    cu::load_matrices<false>(words, rows + 4);
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

void add_fault_tests() {
    for (const auto &fault : faults) {
        g_autofree char *path = g_strdup_printf("/emulator/faults/%s", fault.name);
        g_test_add_data_func(path, &fault, test_fault);
    }
}
