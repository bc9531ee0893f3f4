/* exec/cuda/memory/virtual.c against a stand-in for the driver that holds to the rules of its
 * documentation: addresses and pages are whole granules; a page is mapped where addresses are
 * reserved and nothing is mapped; access is given to what is mapped, all of it; what is unmapped
 * was mapped as one; addresses are given back when nothing is mapped over them; a page's memory
 * goes with its last use.
 */
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <glib.h>
#include <string.h>

#include "exec/cuda/memory/virtual.h"
#include "exec/error.h"

#define GRANULE ((size_t)2 << 20)
#define BASE    ((CUdeviceptr)1 << 40)
#define PAGE    (10 * GRANULE)

enum {
    GRANULES = 64
};

/* Of the one reservation: which mapping covers a granule (0: none), whether it may be touched. */
static size_t reserved;
static unsigned mapping[GRANULES], n_mappings;
static bool touchable[GRANULES];
static size_t
    page_bytes[GRANULES + 1];  /* of each page that was made; 0: its handle is given back */
static unsigned n_pages, room; /* pages that may still be made */

static void check_granules(CUdeviceptr at, size_t bytes) {
    g_assert_cmpuint(at % GRANULE, ==, 0);
    g_assert_cmpuint(bytes % GRANULE, ==, 0);
    g_assert_cmpuint(bytes, >, 0);
    g_assert_cmpuint(at, >=, BASE);
    g_assert_cmpuint(at + bytes, <=, BASE + reserved);
}

static CUresult reserve(CUdeviceptr *ret, size_t bytes, size_t alignment, CUdeviceptr hint,
                        unsigned long long flags) {
    g_assert_true(!reserved && bytes && bytes % GRANULE == 0 && !alignment && !hint && !flags);
    if (bytes > GRANULES * GRANULE) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    reserved = bytes;
    *ret = BASE;
    return CUDA_SUCCESS;
}

static CUresult release_address(CUdeviceptr at, size_t bytes) {
    g_assert_true(at == BASE && bytes == reserved);
    for (unsigned i = 0; i < GRANULES; i++) {
        g_assert_cmpuint(mapping[i], ==, 0);
    }
    reserved = 0;
    return CUDA_SUCCESS;
}

static CUresult create(CUmemGenericAllocationHandle *ret, size_t bytes,
                       const CUmemAllocationProp *kind, unsigned long long flags) {
    g_assert_true(kind->type == CU_MEM_ALLOCATION_TYPE_PINNED && !flags);
    g_assert_true(kind->location.type == CU_MEM_LOCATION_TYPE_DEVICE && kind->location.id == 3);
    g_assert_true(bytes && bytes % GRANULE == 0);
    if (!room) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    room--;
    page_bytes[++n_pages] = bytes;
    *ret = n_pages;
    return CUDA_SUCCESS;
}

static CUresult release(CUmemGenericAllocationHandle page) {
    g_assert_cmpuint(page_bytes[page], >, 0);
    page_bytes[page] = 0;
    return CUDA_SUCCESS;
}

static CUresult map(CUdeviceptr at, size_t bytes, size_t offset, CUmemGenericAllocationHandle page,
                    unsigned long long flags) {
    check_granules(at, bytes);
    g_assert_true(!offset && !flags && page_bytes[page] == bytes);
    n_mappings++;
    for (size_t i = (at - BASE) / GRANULE; i < (at - BASE + bytes) / GRANULE; i++) {
        g_assert_cmpuint(mapping[i], ==, 0);
        mapping[i] = n_mappings;
        touchable[i] = false;
    }
    return CUDA_SUCCESS;
}

static CUresult unmap(CUdeviceptr at, size_t bytes) {
    check_granules(at, bytes);
    size_t first = (at - BASE) / GRANULE, behind = first + bytes / GRANULE;
    unsigned one = mapping[first];
    g_assert_cmpuint(one, >, 0);
    g_assert_true((first == 0 || mapping[first - 1] != one) &&
                  (behind == GRANULES || mapping[behind] != one));
    for (size_t i = first; i < behind; i++) {
        g_assert_cmpuint(mapping[i], ==, one);
        mapping[i] = 0;
    }
    return CUDA_SUCCESS;
}

static bool is_broken; /* the driver, which then gives no access */

static CUresult set_access(CUdeviceptr at, size_t bytes, const CUmemAccessDesc *access, size_t n) {
    check_granules(at, bytes);
    if (is_broken) {
        return CUDA_ERROR_NOT_PERMITTED;
    }
    g_assert_true(n == 1 && access->flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    g_assert_true(access->location.type == CU_MEM_LOCATION_TYPE_DEVICE && access->location.id == 3);
    for (size_t i = (at - BASE) / GRANULE; i < (at - BASE + bytes) / GRANULE; i++) {
        g_assert_cmpuint(mapping[i], >, 0);
        touchable[i] = true;
    }
    return CUDA_SUCCESS;
}

static CUresult error_name(CUresult error, const char **ret) {
    *ret = error == CUDA_ERROR_NOT_PERMITTED ? "CUDA_ERROR_NOT_PERMITTED" : NULL;
    return CUDA_SUCCESS;
}

/* What a GPU may lack, though the driver has the calls. */
static bool gpu_has_it;

static CUresult attribute(int *ret, CUdevice_attribute asked, CUdevice device) {
    g_assert_true(device == 3);
    *ret = asked == CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED && gpu_has_it;
    return CUDA_SUCCESS;
}

/* ---- the runtime's part --------------------------------------------------------------------- */

/* By their names in the driver, whose versions are told by a number behind some of them. */
cudaError_t cudaGetDriverEntryPointByVersion(const char *name, void **ret, unsigned version,
                                             unsigned long long flags,
                                             enum cudaDriverEntryPointQueryResult *found) {
    static const struct {
        const char *name;
        gpointer function;
    } known[] = {{"cuMemAddressReserve", (gpointer)reserve},
                 {"cuMemAddressFree", (gpointer)release_address},
                 {"cuMemCreate", (gpointer)create},
                 {"cuMemRelease", (gpointer)release},
                 {"cuMemMap", (gpointer)map},
                 {"cuMemUnmap", (gpointer)unmap},
                 {"cuMemSetAccess", (gpointer)set_access},
                 {"cuDeviceGetAttribute", (gpointer)attribute},
                 {"cuGetErrorName", (gpointer)error_name}};
    g_assert_cmpuint(version, >=, 10020); /* since when all are there */
    for (unsigned i = 0; i < G_N_ELEMENTS(known); i++) {
        if (g_str_equal(name, known[i].name)) {
            *ret = known[i].function;
            *found = cudaDriverEntryPointSuccess;
            return cudaSuccess;
        }
    }
    *found = cudaDriverEntryPointSymbolNotFound;
    return cudaSuccess;
}

cudaError_t cudaGetDevice(int *device) {
    *device = 3;
    return cudaSuccess;
}

cudaError_t cudaGetLastError(void) {
    return cudaSuccess;
}

/* ---- tests ---------------------------------------------------------------------------------- */

static unsigned mapped(void) {
    unsigned n = 0;
    for (unsigned i = 0; i < GRANULES; i++) {
        g_assert_true(!mapping[i] || touchable[i]);
        n += mapping[i] != 0;
    }
    return n;
}

static void no_handle_is_left(void) {
    for (unsigned i = 1; i <= n_pages; i++) {
        g_assert_cmpuint(page_bytes[i], ==, 0);
    }
}

static void test_pages(void) {
    gpointer at = NULL;
    GError *error = NULL;
    room = 6;
    g_assert_true(exec_cuda_virtual_is_here());
    g_assert_false(
        exec_cuda_virtual_reserve((GRANULES + 1) * GRANULE, &at, &error)); /* no room for it */
    g_assert_no_error(error);
    g_assert_true(exec_cuda_virtual_reserve(GRANULES * GRANULE - GRANULE / 2 - 5, &at,
                                            &error)); /* no whole granule */
    g_assert_true((CUdeviceptr)at == BASE);
    g_assert_true(exec_cuda_virtual_map(at, PAGE, 2, &error));
    g_assert_cmpuint(mapped(), ==, 20);
    g_assert_true(exec_cuda_virtual_map((char *)at + 3 * PAGE, PAGE, 1, &error));
    g_assert_cmpuint(mapped(), ==, 30);
    no_handle_is_left();
    /* The middle of what was mapped at once goes alone. */
    g_assert_true(exec_cuda_virtual_unmap((char *)at + PAGE, PAGE, 1, &error));
    g_assert_cmpuint(mapped(), ==, 20);
    /* All pages or none: there is room for three more, and four are asked for. */
    g_assert_false(exec_cuda_virtual_map((char *)at + 4 * PAGE, GRANULE, 4, &error));
    g_assert_cmpuint(mapped(), ==, 20);
    no_handle_is_left();
    g_assert_true(exec_cuda_virtual_unmap(at, PAGE, 1, &error));
    g_assert_true(exec_cuda_virtual_unmap((char *)at + 3 * PAGE, PAGE, 1, &error));
    g_assert_true(exec_cuda_virtual_release(at, GRANULES * GRANULE - GRANULE / 2 - 5, &error));
    g_assert_no_error(error);
    g_assert_cmpuint(reserved, ==, 0);
}

/* What the driver refuses is no want of room: it is said which call did, and how. */
static void test_failures(void) {
    gpointer at = NULL;
    GError *error = NULL;
    room = 6;
    g_assert_true(exec_cuda_virtual_is_here());
    g_assert_true(exec_cuda_virtual_reserve(4 * PAGE, &at, &error));
    is_broken = true;
    g_assert_false(exec_cuda_virtual_map(at, PAGE, 2, &error));
    g_assert_error(error, EXEC_ERROR, EXEC_ERROR_FAILED);
    g_assert_cmpstr(error->message, ==, "cuMemSetAccess failed: CUDA_ERROR_NOT_PERMITTED (800)");
    g_clear_error(&error);
    g_assert_cmpuint(mapped(), ==, 0);
    no_handle_is_left();
    is_broken = false;
    g_assert_true(exec_cuda_virtual_release(at, 4 * PAGE, &error));
}

/* In a process of its own, since it is asked for once. */
static void test_gpu_without(void) {
    if (g_test_subprocess()) {
        g_assert_false(exec_cuda_virtual_is_here());
        return;
    }
    g_test_trap_subprocess(NULL, 0, (GTestSubprocessFlags)0);
    g_test_trap_assert_passed();
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    gpu_has_it = !g_test_subprocess();
    g_test_add_func("/exec/virtual/gpu-without", test_gpu_without);
    g_test_add_func("/exec/virtual/pages", test_pages);
    g_test_add_func("/exec/virtual/failures", test_failures);
    return g_test_run();
}
