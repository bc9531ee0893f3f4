/* tests/emulator/memory.cc - the device's memory, pinned memory, and copies between them.
 *
 * An allocation is a mapping of its own: a page nobody may touch, a guard, the bytes, a guard, a
 * page nobody may touch. What runs far past its end dies at once, what runs past it a little is
 * found when the guards are looked at. All bytes begin as ones, which is NaN in every type.
 */
#include <cuda_runtime.h>
#include <stdlib.h>
#include <sys/mman.h>

#include <map>
#include <vector>

#include "tests/emulator/emulator-private.h"

namespace {

constexpr size_t PAGE = 4096, GUARD = 512, ALIGNMENT = 512;
constexpr unsigned char GUARD_BYTE = 0xa5, POISON = 0xff;

struct Allocation {
    size_t bytes;
    EmulatorPlace place;
    char *mapping; /* NULL: not allocated here: the host's own, registered; pages (pages.cc) */
    size_t mapped;
    unsigned copies; /* of it that are queued */
};

std::map<uintptr_t, Allocation> allocations; /* by first byte */
size_t device_bytes, used_bytes, n_device, pinned_bytes;

size_t round_up(size_t bytes, size_t to) {
    return (bytes + to - 1) / to * to;
}

size_t total_bytes() {
    if (!device_bytes) {
        const char *text = getenv("FORESHARD_EMULATOR_MIB");
        device_bytes = (text ? strtoull(text, nullptr, 10) : 1024) << 20;
    }
    return device_bytes;
}

/* A system grants less of it than it has memory. */
size_t most_pinned() {
    const char *text = getenv("FORESHARD_EMULATOR_PINNED_MIB");
    return text ? strtoull(text, nullptr, 10) << 20 : SIZE_MAX;
}

void check_guard(const unsigned char *at, size_t bytes, uintptr_t of, const Allocation &a,
                 const char *side) {
    for (size_t i = 0; i < bytes; i++) {
        if (at[i] != GUARD_BYTE) {
            emulator_fault("byte %zu %s an allocation of %zu bytes at %#zx was written", i, side,
                           a.bytes, (size_t)of);
        }
    }
}

void check(uintptr_t at, const Allocation &a) {
    if (a.mapping) {
        const unsigned char *end = (const unsigned char *)at + a.bytes;
        const unsigned char *last = (const unsigned char *)a.mapping + a.mapped - PAGE;
        check_guard((const unsigned char *)at - GUARD, GUARD, at, a, "of the guard before");
        check_guard(end, (size_t)(last - end), at, a, "after");
    }
}

cudaError_t allocate(void **pointer, size_t bytes, EmulatorPlace place) {
    *pointer = nullptr;
    if (!bytes || emulator_state() != cudaSuccess) {
        return emulator_state();
    }
    size_t body = GUARD + round_up(bytes, ALIGNMENT) + GUARD, mapped = round_up(body, PAGE);
    char *mapping = (char *)mmap(nullptr, mapped + 2 * PAGE, PROT_NONE,
                                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapping == MAP_FAILED || mprotect(mapping + PAGE, mapped, PROT_READ | PROT_WRITE)) {
        return emulator_error(cudaErrorMemoryAllocation);
    }
    memset(mapping + PAGE, GUARD_BYTE, mapped);
    char *at = mapping + PAGE + mapped - GUARD - round_up(bytes, ALIGNMENT);
    memset(at, POISON, bytes);
    allocations[(uintptr_t)at] = Allocation{bytes, place, mapping, mapped + 2 * PAGE, 0};
    *pointer = at;
    return cudaSuccess;
}

cudaError_t release(void *pointer, EmulatorPlace place) {
    if (!pointer) {
        return cudaSuccess;
    }
    auto found = allocations.find((uintptr_t)pointer);
    if (found == allocations.end() || found->second.place != place || !found->second.mapping) {
        emulator_fault("%p is freed, which was not allocated (or not here)", pointer);
    }
    /* cudaFree() waits for the device; of cudaFreeHost() nothing of the kind is promised. */
    if (place == EMULATOR_PINNED && found->second.copies && emulator_state() == cudaSuccess) {
        emulator_fault("pinned memory of %zu bytes is freed, and copies of it are not over: %u",
                       found->second.bytes, found->second.copies);
    }
    emulator_finish_all();
    check(found->first, found->second);
    munmap(found->second.mapping, found->second.mapped);
    if (place == EMULATOR_DEVICE) {
        used_bytes -= round_up(found->second.bytes, ALIGNMENT);
        n_device--;
    } else {
        pinned_bytes -= found->second.bytes;
    }
    allocations.erase(found);
    return emulator_state();
}

/* The direction a copy claims must be the one its pointers have. */
bool places_fit(EmulatorPlace to, EmulatorPlace from, cudaMemcpyKind kind) {
    switch (kind) {
    case cudaMemcpyHostToHost:
        return to != EMULATOR_DEVICE && from != EMULATOR_DEVICE;
    case cudaMemcpyHostToDevice:
        return to == EMULATOR_DEVICE && from != EMULATOR_DEVICE;
    case cudaMemcpyDeviceToHost:
        return to != EMULATOR_DEVICE && from == EMULATOR_DEVICE;
    case cudaMemcpyDeviceToDevice:
        return to == EMULATOR_DEVICE && from == EMULATOR_DEVICE;
    case cudaMemcpyDefault:
        return true;
    }
    return false;
}

struct Copy {
    char *to;
    const char *from;
    size_t bytes;
};

/* The allocation that holds this byte; end() where none does. */
std::map<uintptr_t, Allocation>::iterator holder_of(const void *at) {
    auto next = allocations.upper_bound((uintptr_t)at);
    if (next == allocations.begin()) {
        return allocations.end();
    }
    auto found = std::prev(next);
    return (uintptr_t)at - found->first < found->second.bytes ? found : allocations.end();
}

/* One more copy of what lies there is queued, or one less. */
void count_copies(const void *at, int by) {
    auto found = holder_of(at);
    if (found != allocations.end()) {
        found->second.copies += (unsigned)by;
    }
}

/* Of a copy of which a part is read after it was written nobody says what comes. */
void must_not_overlap(const Copy &c) {
    if (c.to < c.from + c.bytes && c.from < c.to + c.bytes) {
        emulator_fault("%zu bytes are copied from %p to %p, which overlap", c.bytes,
                       (const void *)c.from, (void *)c.to);
    }
}

void push_copy(const Copy &c, cudaStream_t stream) {
    count_copies(c.to, 1);
    count_copies(c.from, 1);
    emulator_push(stream, [=] {
        count_copies(c.to, -1);
        count_copies(c.from, -1);
        memmove(c.to, c.from, c.bytes);
    });
}

/* What is read now, whatever is written there before its turn comes. */
void push_staged(const Copy &c, cudaStream_t stream) {
    auto *staged = new std::vector<char>(c.from, c.from + c.bytes);
    emulator_push(stream, [=] {
        memcpy(c.to, staged->data(), staged->size());
        delete staged;
    });
}

bool is_pageable(const Copy &c) {
    return emulator_place_of(c.to, c.bytes) == EMULATOR_PAGEABLE ||
           emulator_place_of(c.from, c.bytes) == EMULATOR_PAGEABLE;
}

/* Whether there is something to copy; *ret_error: what is wrong with it. */
bool can_copy(const Copy &c, cudaMemcpyKind kind, cudaError_t *ret_error) {
    *ret_error = emulator_state();
    if (!c.bytes || *ret_error != cudaSuccess) {
        return false;
    }
    if (!places_fit(emulator_place_of(c.to, c.bytes), emulator_place_of(c.from, c.bytes), kind)) {
        *ret_error = emulator_error(cudaErrorInvalidValue);
        return false;
    }
    must_not_overlap(c);
    return true;
}

} // namespace

EmulatorPlace emulator_place_of(const void *at, size_t bytes) {
    auto found = holder_of(at);
    if (found == allocations.end()) {
        return EMULATOR_PAGEABLE;
    }
    size_t inside = (uintptr_t)at - found->first;
    if (bytes > found->second.bytes - inside) {
        emulator_fault("%zu bytes are wanted at %zu of an allocation of %zu", bytes, inside,
                       found->second.bytes);
    }
    return found->second.place;
}

/* An allocation that begins behind `at`, or one before it. Registered memory has no guards. */
EmulatorSpan emulator_span_of(uintptr_t at, size_t bytes) {
    EmulatorSpan span = {EMULATOR_HOST, 0, 0};
    if (emulator_shared_span(at, &span)) {
        return span;
    }
    auto next = allocations.upper_bound(at);
    for (auto found : {next, next == allocations.begin() ? next : std::prev(next)}) {
        if (found == allocations.end()) {
            continue;
        }
        const Allocation &a = found->second;
        uintptr_t from = a.mapping ? (uintptr_t)a.mapping : found->first;
        uintptr_t to = a.mapping ? from + a.mapped : found->first + a.bytes;
        if (at < to && at + bytes > from) {
            return {EMULATOR_GLOBAL, found->first, found->first + a.bytes};
        }
    }
    return span;
}

void emulator_set_memory(size_t bytes) {
    EmulatorEntry entry;
    device_bytes = bytes;
}

size_t emulator_allocations(void) {
    EmulatorEntry entry;
    return n_device;
}

size_t emulator_device_allocations() {
    return n_device + emulator_page_objects;
}

size_t emulator_pinned_allocations() {
    size_t n = 0;
    for (const auto &a : allocations) {
        n += a.second.place == EMULATOR_PINNED;
    }
    return n;
}

bool emulator_take_bytes(size_t bytes) {
    bool fits = bytes <= total_bytes() - used_bytes;
    used_bytes += fits ? bytes : 0;
    return fits;
}

void emulator_give_bytes(size_t bytes) {
    used_bytes -= bytes;
}

void emulator_add_range(uintptr_t at, size_t bytes) {
    allocations[at] = Allocation{bytes, EMULATOR_DEVICE, nullptr, 0, 0};
}

void emulator_drop_range(uintptr_t at) {
    allocations.erase(at);
}

void emulator_check(void) {
    EmulatorEntry entry;
    emulator_finish_all();
    for (const auto &a : allocations) {
        check(a.first, a.second);
    }
}

/* ---- CUDA's own names ----------------------------------------------------------------------- */

cudaError_t cudaMalloc(void **pointer, size_t bytes) {
    EmulatorEntry entry;
    bool fits = round_up(bytes, ALIGNMENT) <= total_bytes() - used_bytes;
    if (!fits && emulator_state() == cudaSuccess) {
        *pointer = nullptr;
        return emulator_error(cudaErrorMemoryAllocation);
    }
    cudaError_t error = allocate(pointer, bytes, EMULATOR_DEVICE);
    if (*pointer) {
        used_bytes += round_up(bytes, ALIGNMENT);
        n_device++;
    }
    return error;
}

cudaError_t cudaFree(void *pointer) {
    EmulatorEntry entry;
    return release(pointer, EMULATOR_DEVICE);
}

cudaError_t cudaHostAlloc(void **pointer, size_t bytes, unsigned) {
    EmulatorEntry entry;
    if (emulator_state() == cudaSuccess && bytes > most_pinned() - pinned_bytes) {
        *pointer = nullptr;
        return emulator_error(cudaErrorMemoryAllocation);
    }
    cudaError_t error = allocate(pointer, bytes, EMULATOR_PINNED);
    pinned_bytes += *pointer ? bytes : 0;
    return error;
}

cudaError_t cudaMallocHost(void **pointer, size_t bytes) {
    return cudaHostAlloc(pointer, bytes, cudaHostAllocDefault);
}

cudaError_t cudaFreeHost(void *pointer) {
    EmulatorEntry entry;
    return release(pointer, EMULATOR_PINNED);
}

cudaError_t cudaHostRegister(void *pointer, size_t bytes, unsigned) {
    EmulatorEntry entry;
    allocations[(uintptr_t)pointer] = Allocation{bytes, EMULATOR_PINNED, nullptr, 0, 0};
    return cudaSuccess;
}

cudaError_t cudaHostUnregister(void *pointer) {
    EmulatorEntry entry;
    auto found = allocations.find((uintptr_t)pointer);
    if (found == allocations.end() || found->second.mapping) {
        return emulator_error(cudaErrorInvalidValue);
    }
    emulator_finish_all();
    allocations.erase(found);
    return cudaSuccess;
}

cudaError_t cudaHostGetDevicePointer(void **device, void *host, unsigned) {
    EmulatorEntry entry;
    *device = host;
    return emulator_place_of(host, 1) == EMULATOR_PINNED ? cudaSuccess
                                                         : emulator_error(cudaErrorInvalidValue);
}

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total) {
    EmulatorEntry entry;
    *total = total_bytes();
    *free_bytes = total_bytes() - used_bytes;
    return emulator_state();
}

/* Of pageable memory a GPU's host waits until its bytes are staged, or there: none of ours may. */
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
    EmulatorEntry entry;
    Copy c = {(char *)to, (const char *)from, bytes};
    cudaError_t error;
    if (!can_copy(c, kind, &error)) {
        return error;
    }
    if (is_pageable(c)) {
        emulator_fault("cudaMemcpyAsync() of %zu bytes waits, for they lie in pageable memory",
                       bytes);
    }
    push_copy(c, stream);
    return cudaSuccess;
}

/* From pageable memory it returns when the bytes are staged, says the documentation: streams that
 * do not wait for the legacy one may run before they have arrived. */
cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, cudaMemcpyKind kind) {
    EmulatorEntry entry;
    Copy c = {(char *)to, (const char *)from, bytes};
    cudaError_t error;
    if (!can_copy(c, kind, &error)) {
        return error;
    }
    if (kind == cudaMemcpyHostToDevice && is_pageable(c)) {
        push_staged(c, nullptr);
        return cudaSuccess;
    }
    push_copy(c, nullptr);
    emulator_finish(nullptr);
    return emulator_state();
}

cudaError_t cudaMemsetAsync(void *to, int byte, size_t bytes, cudaStream_t stream) {
    EmulatorEntry entry;
    if (!bytes) {
        return cudaSuccess;
    }
    if (emulator_place_of(to, bytes) == EMULATOR_PAGEABLE) {
        return emulator_error(cudaErrorInvalidValue);
    }
    emulator_push(stream, [=] { memset(to, byte, bytes); });
    return emulator_state();
}

cudaError_t cudaMemset(void *to, int byte, size_t bytes) {
    return cudaMemsetAsync(to, byte, bytes, nullptr);
}
