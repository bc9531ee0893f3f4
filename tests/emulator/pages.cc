/* tests/emulator/pages.cc - addresses of the device, and pages of its memory mapped over them: the
 * driver's cuMem..., found as a program finds them, by cudaGetDriverEntryPointByVersion().
 *
 * Held to what cuda.h says: addresses and pages are whole granules of 2 MiB; a page is mapped over
 * reserved addresses at which nothing is mapped, and as a whole; nobody may touch it until access
 * is given; what is unmapped was mapped by one call; addresses are given back when nothing is
 * mapped over them; memory goes with the last of its handle and its mappings. Nothing of this waits
 * for a stream: what a kernel still touches of a page that was unmapped ends the program.
 */
#include <cuda.h>
#include <cuda_runtime.h>
#include <stdlib.h>
#include <sys/mman.h>

#include <map>

#include "tests/emulator/emulator-private.h"

size_t emulator_page_objects;

namespace {

constexpr size_t GRANULE = 2 << 20;
constexpr int POISON = 0xff;

struct Page {
    size_t bytes;
    bool is_held;      /* by its handle */
    unsigned mappings; /* of it */
};

struct Mapping {
    size_t bytes;
    CUmemGenericAllocationHandle page;
    bool is_open; /* access was given */
};

struct Range {
    size_t bytes;
    void *reserved; /* what the system gave, to find whole granules in */
    std::map<uintptr_t, Mapping> mappings;
};

std::map<CUmemGenericAllocationHandle, Page> pages;
std::map<uintptr_t, Range> ranges;
CUmemGenericAllocationHandle last_page;

bool is_whole(unsigned long long at, size_t bytes) {
    return bytes && at % GRANULE == 0 && bytes % GRANULE == 0;
}

/* The range in which all of [at, at + bytes) lies; NULL: none. */
Range *range_of(uintptr_t at, size_t bytes) {
    auto next = ranges.upper_bound(at);
    if (next == ranges.begin()) {
        return nullptr;
    }
    auto found = std::prev(next);
    bool inside = at + bytes <= found->first + found->second.bytes;
    return inside ? &found->second : nullptr;
}

bool is_free(const Range &range, uintptr_t at, size_t bytes) {
    for (const auto &mapped : range.mappings) {
        if (mapped.first < at + bytes && at < mapped.first + mapped.second.bytes) {
            return false;
        }
    }
    return true;
}

void drop_unused(CUmemGenericAllocationHandle number) {
    const Page &page = pages[number];
    if (!page.is_held && !page.mappings) {
        emulator_give_bytes(page.bytes);
        pages.erase(number);
        emulator_page_objects--;
    }
}

bool is_broken() {
    return emulator_state() != cudaSuccess;
}

/* What FORESHARD_EMULATOR_PAGES says of them. */
bool pages_are(const char *what) {
    const char *text = getenv("FORESHARD_EMULATOR_PAGES");
    return text && !strcmp(text, what);
}

/* ---- the driver's calls --------------------------------------------------------------------- */

CUresult reserve(CUdeviceptr *at, size_t bytes, size_t, CUdeviceptr, unsigned long long) {
    EmulatorEntry entry;
    if (is_broken() || !is_whole(0, bytes)) {
        return is_broken() ? CUDA_ERROR_ILLEGAL_ADDRESS : CUDA_ERROR_INVALID_VALUE;
    }
    void *reserved = mmap(nullptr, bytes + GRANULE, PROT_NONE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (reserved == MAP_FAILED) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    uintptr_t begin = ((uintptr_t)reserved + GRANULE - 1) / GRANULE * GRANULE;
    ranges[begin] = Range{bytes, reserved, {}};
    emulator_add_range(begin, bytes);
    emulator_page_objects++;
    *at = begin;
    return CUDA_SUCCESS;
}

CUresult release_addresses(CUdeviceptr at, size_t bytes) {
    EmulatorEntry entry;
    auto found = ranges.find((uintptr_t)at);
    if (found == ranges.end() || found->second.bytes != bytes || !found->second.mappings.empty()) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    munmap(found->second.reserved, bytes + GRANULE);
    emulator_drop_range(found->first);
    ranges.erase(found);
    emulator_page_objects--;
    return CUDA_SUCCESS;
}

bool is_here(const CUmemLocation &location) {
    return location.type == CU_MEM_LOCATION_TYPE_DEVICE && location.id == 0;
}

CUresult create(CUmemGenericAllocationHandle *page, size_t bytes, const CUmemAllocationProp *kind,
                unsigned long long) {
    EmulatorEntry entry;
    bool fits = kind->type == CU_MEM_ALLOCATION_TYPE_PINNED && is_here(kind->location);
    if (is_broken() || !fits || !is_whole(0, bytes)) {
        return is_broken() ? CUDA_ERROR_ILLEGAL_ADDRESS : CUDA_ERROR_INVALID_VALUE;
    }
    if (!emulator_take_bytes(bytes)) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    pages[ *page = ++last_page] = Page{bytes, true, 0};
    emulator_page_objects++;
    return CUDA_SUCCESS;
}

CUresult release(CUmemGenericAllocationHandle page) {
    EmulatorEntry entry;
    auto found = pages.find(page);
    if (found == pages.end() || !found->second.is_held) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    found->second.is_held = false;
    drop_unused(page);
    return CUDA_SUCCESS;
}

CUresult map(CUdeviceptr at, size_t bytes, size_t offset, CUmemGenericAllocationHandle page,
             unsigned long long) {
    EmulatorEntry entry;
    Range *range = range_of((uintptr_t)at, bytes);
    auto found = pages.find(page);
    if (!range || !is_whole(at, bytes) || offset || found == pages.end() ||
        !found->second.is_held || found->second.bytes != bytes ||
        !is_free(*range, (uintptr_t)at, bytes)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    range->mappings[(uintptr_t)at] = Mapping{bytes, page, false};
    found->second.mappings++;
    return CUDA_SUCCESS;
}

CUresult unmap(CUdeviceptr at, size_t bytes) {
    EmulatorEntry entry;
    Range *range = range_of((uintptr_t)at, bytes);
    auto found =
        range ? range->mappings.find((uintptr_t)at) : std::map<uintptr_t, Mapping>::iterator();
    if (!range || found == range->mappings.end() || found->second.bytes != bytes) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    CUmemGenericAllocationHandle page = found->second.page;
    madvise((void *)(uintptr_t)at, bytes, MADV_DONTNEED);
    mprotect((void *)(uintptr_t)at, bytes, PROT_NONE);
    range->mappings.erase(found);
    pages[page].mappings--;
    drop_unused(page);
    return CUDA_SUCCESS;
}

/* Of whole mappings, side by side. */
CUresult set_access(CUdeviceptr at, size_t bytes, const CUmemAccessDesc *access, size_t n) {
    EmulatorEntry entry;
    Range *range = range_of((uintptr_t)at, bytes);
    if (!range || n != 1 || pages_are("closed") || !is_here(access->location) ||
        access->flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    for (uintptr_t from = (uintptr_t)at; from < at + bytes;) {
        auto found = range->mappings.find(from);
        if (found == range->mappings.end() || from + found->second.bytes > at + bytes) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        Mapping &mapping = found->second;
        if (!mapping.is_open) {
            mprotect((void *)from, mapping.bytes, PROT_READ | PROT_WRITE);
            memset((void *)from, POISON, mapping.bytes);
        }
        mapping.is_open = true;
        from += mapping.bytes;
    }
    return CUDA_SUCCESS;
}

/* A GPU may lack it though its driver has the calls. */
CUresult attribute(int *value, CUdevice_attribute asked, CUdevice) {
    *value = asked == CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED && !pages_are("no");
    return CUDA_SUCCESS;
}

CUresult error_name(CUresult error, const char **name) {
    *name = error == CUDA_SUCCESS                 ? "CUDA_SUCCESS"
            : error == CUDA_ERROR_INVALID_VALUE   ? "CUDA_ERROR_INVALID_VALUE"
            : error == CUDA_ERROR_OUT_OF_MEMORY   ? "CUDA_ERROR_OUT_OF_MEMORY"
            : error == CUDA_ERROR_ILLEGAL_ADDRESS ? "CUDA_ERROR_ILLEGAL_ADDRESS"
                                                  : nullptr;
    return *name ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

} // namespace

cudaError_t cudaGetDriverEntryPointByVersion(const char *name, void **function, unsigned version,
                                             unsigned long long,
                                             cudaDriverEntryPointQueryResult *found) {
    static const struct {
        const char *name;
        void *function;
        unsigned since;
    } known[] = {{"cuMemAddressReserve", (void *)reserve, 10020},
                 {"cuMemAddressFree", (void *)release_addresses, 10020},
                 {"cuMemCreate", (void *)create, 10020},
                 {"cuMemRelease", (void *)release, 10020},
                 {"cuMemMap", (void *)map, 10020},
                 {"cuMemUnmap", (void *)unmap, 10020},
                 {"cuMemSetAccess", (void *)set_access, 10020},
                 {"cuDeviceGetAttribute", (void *)attribute, 2000},
                 {"cuGetErrorName", (void *)error_name, 6000}};
    *found = cudaDriverEntryPointSymbolNotFound;
    for (const auto &call : known) {
        if (!strcmp(name, call.name) && version >= call.since) {
            *function = call.function;
            *found = cudaDriverEntryPointSuccess;
        }
    }
    return cudaSuccess;
}
