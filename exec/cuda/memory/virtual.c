#include "exec/cuda/memory/virtual.h"

#include <cuda.h>
#include <cuda_runtime_api.h>

#include "exec/error.h"

enum {
    SINCE = 12000,        /* the driver's interface as of CUDA 12.0 is enough */
    GRANULARITY = 2 << 20 /* bytes; of addresses and pages on every GPU so far */
};

static struct {
    bool asked, here;
    CUresult (*reserve)(CUdeviceptr *, size_t, size_t, CUdeviceptr, unsigned long long);
    CUresult (*release_address)(CUdeviceptr, size_t);
    CUresult (*create)(CUmemGenericAllocationHandle *, size_t, const CUmemAllocationProp *,
                       unsigned long long);
    CUresult (*release)(CUmemGenericAllocationHandle);
    CUresult (*map)(CUdeviceptr, size_t, size_t, CUmemGenericAllocationHandle, unsigned long long);
    CUresult (*unmap)(CUdeviceptr, size_t);
    CUresult (*access)(CUdeviceptr, size_t, const CUmemAccessDesc *, size_t);
    CUresult (*attribute)(int *, CUdevice_attribute, CUdevice);
    CUresult (*error_name)(CUresult, const char **);
} driver;

/* A toolkit before 12.5 asks for its own version's; none of these has changed since. */
static cudaError_t ask(const char *name, gpointer *ret_function,
                       enum cudaDriverEntryPointQueryResult *ret_found) {
#if CUDART_VERSION < 12050
    return cudaGetDriverEntryPoint(name, ret_function, cudaEnableDefault, ret_found);
#else
    return cudaGetDriverEntryPointByVersion(name, ret_function, SINCE, cudaEnableDefault,
                                            ret_found);
#endif
}

static bool find(const char *name, gpointer to) {
    enum cudaDriverEntryPointQueryResult found;
    gpointer function = NULL;
    if (ask(name, &function, &found) != cudaSuccess || found != cudaDriverEntryPointSuccess) {
        cudaGetLastError();
        return false;
    }
    *(gpointer *)to = function;
    return true;
}

/* A driver may have the calls and a GPU not (one that is shared out to virtual machines): each
 * would fail as if there were no room. */
static bool gpu_has_it(void) {
    int device, value = 0;
    return cudaGetDevice(&device) == cudaSuccess &&
           driver.attribute(&value, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED,
                            device) == CUDA_SUCCESS &&
           value;
}

bool exec_cuda_virtual_is_here(void) {
    if (!driver.asked) {
        driver.asked = true;
        driver.here = find("cuMemAddressReserve", &driver.reserve) &&
                      find("cuMemAddressFree", &driver.release_address) &&
                      find("cuMemCreate", &driver.create) &&
                      find("cuMemRelease", &driver.release) && find("cuMemMap", &driver.map) &&
                      find("cuMemUnmap", &driver.unmap) && find("cuMemSetAccess", &driver.access) &&
                      find("cuDeviceGetAttribute", &driver.attribute) &&
                      find("cuGetErrorName", &driver.error_name) && gpu_has_it();
    }
    return driver.here;
}

static size_t whole(uint64_t bytes) {
    return (bytes + GRANULARITY - 1) / GRANULARITY * GRANULARITY;
}

static CUmemLocation here(void) {
    CUmemLocation location = {.type = CU_MEM_LOCATION_TYPE_DEVICE};
    cudaGetDevice(&location.id);
    return location;
}

/* No room is no error. */
static bool ok(CUresult result, const char *call, GError **error) {
    if (result != CUDA_SUCCESS && result != CUDA_ERROR_OUT_OF_MEMORY) {
        const char *name = NULL;
        driver.error_name(result, &name);
        g_set_error(error, EXEC_ERROR, EXEC_ERROR_FAILED, "%s failed: %s (%d)", call,
                    name ? name : "an error without a name", (int)result);
    }
    return result == CUDA_SUCCESS;
}

bool exec_cuda_virtual_reserve(uint64_t bytes, gpointer *ret_address, GError **error) {
    CUdeviceptr address = 0;
    if (!ok(driver.reserve(&address, whole(bytes), 0, 0, 0), "cuMemAddressReserve", error)) {
        return false;
    }
    *ret_address = (gpointer)(uintptr_t)address;
    return true;
}

bool exec_cuda_virtual_release(gpointer address, uint64_t bytes, GError **error) {
    return ok(driver.release_address((CUdeviceptr)(uintptr_t)address, whole(bytes)),
              "cuMemAddressFree", error);
}

/* The memory goes when it is unmapped: its handle is given back at once. */
static bool map_page(CUdeviceptr at, uint64_t bytes, GError **error) {
    CUmemAllocationProp kind = {.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = here()};
    CUmemGenericAllocationHandle page;
    if (!ok(driver.create(&page, bytes, &kind, 0), "cuMemCreate", error)) {
        return false;
    }
    bool mapped = ok(driver.map(at, bytes, 0, page, 0), "cuMemMap", error);
    driver.release(page);
    return mapped;
}

bool exec_cuda_virtual_map(gpointer address, uint64_t page_bytes, uint64_t n_pages,
                           GError **error) {
    CUdeviceptr at = (CUdeviceptr)(uintptr_t)address;
    CUmemAccessDesc access = {.location = here(), .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    uint64_t n = 0;
    while (n < n_pages && map_page(at + n * page_bytes, page_bytes, error)) {
        n++;
    }
    if (n == n_pages &&
        ok(driver.access(at, page_bytes * n_pages, &access, 1), "cuMemSetAccess", error)) {
        return true;
    }
    exec_cuda_virtual_unmap(address, page_bytes, n, NULL);
    return false;
}

bool exec_cuda_virtual_unmap(gpointer address, uint64_t page_bytes, uint64_t n_pages,
                             GError **error) {
    bool unmapped = true;
    for (uint64_t i = 0; i < n_pages; i++) {
        CUdeviceptr at = (CUdeviceptr)(uintptr_t)address + i * page_bytes;
        unmapped =
            ok(driver.unmap(at, page_bytes), "cuMemUnmap", unmapped ? error : NULL) && unmapped;
    }
    return unmapped;
}
