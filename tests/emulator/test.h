/* tests/emulator/test.h - what the tests of the emulator share: launches, numbers of the device,
 * the driver's calls.
 */
#pragma once
#include <cuda.h>
#include <cuda_runtime.h>
#include <glib.h>

#include "tests/emulator/emulator.h"

static const unsigned N = 256; /* threads, or numbers */

template <typename... P, typename... A>
static inline void run(cudaStream_t stream, void (*kernel)(P...), dim3 grid, dim3 block,
                       A... arguments) {
    emulator_launch("test", (const void *)kernel, grid, block, 64, stream,
                    [=] { kernel(P(arguments)...); });
}

static inline int *new_ints(unsigned n) {
    int *x;
    g_assert_cmpint(cudaMalloc((void **)&x, n * sizeof *x), ==, cudaSuccess);
    return x;
}

static inline int read_int(cudaStream_t stream, const int *at) {
    int x;
    g_assert_cmpint(cudaStreamSynchronize(stream), ==, cudaSuccess);
    g_assert_cmpint(cudaMemcpy(&x, at, sizeof x, cudaMemcpyDeviceToHost), ==, cudaSuccess);
    return x;
}

static inline __global__ void set_kernel(int *x, int value) {
    *x = value;
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

template <typename F> static inline void find(const char *name, F *function) {
    cudaDriverEntryPointQueryResult found;
    g_assert_cmpint(cudaGetDriverEntryPointByVersion(name, (void **)function, CUDART_VERSION,
                                                     cudaEnableDefault, &found),
                    ==, cudaSuccess);
    g_assert_cmpint(found, ==, cudaDriverEntryPointSuccess);
}

static inline Driver find_driver() {
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

/* ---- the files ------------------------------------------------------------------------------ */

/* Each adds the tests of its file. */
void add_order_tests();
void add_product_tests();
void add_fault_tests();

/* Faults of products (test-products.cc), for test-faults.cc. */
void plant_crooked_aux();
void plant_unread_bias();
void plant_short_workspace();
void plant_host_matrix();
