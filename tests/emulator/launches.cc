/* tests/emulator/launches.cc - kernels: what a launch may ask for, and their code, which is loaded
 * when it is first wanted.
 */
#include <map>
#include <set>

#include "tests/emulator/emulator-private.h"

static size_t kernel_bytes;
static std::set<const void *> loaded;

void emulator_set_kernel_bytes(size_t bytes) {
    kernel_bytes = bytes;
}

/* Loaded lazily, as CUDA 12 does unless it is told otherwise. That may wait for all that streams
 * have, a collective among it whose other ranks have yet to come ("Lazy Loading" of CUDA's
 * programming guide): with an odd seed it does. */
static bool is_loaded(const void *kernel) {
    if (loaded.count(kernel)) {
        return true;
    }
    if (emulator_seed() % 2) {
        emulator_finish_all();
    }
    if (kernel_bytes && !emulator_take_bytes(kernel_bytes)) {
        emulator_error(cudaErrorMemoryAllocation);
        return false;
    }
    loaded.insert(kernel);
    return true;
}

/* As on an H100; a launch beyond 48 KiB is refused unless the kernel was allowed it. */
constexpr size_t SHARED_AT_FIRST = 48 << 10, SHARED_AT_MOST = 227 << 10;

static std::map<const void *, size_t> &shared_allowed() {
    static std::map<const void *, size_t> allowed;
    return allowed;
}

cudaError_t emulator_allow_shared(const void *kernel, int bytes) {
    EmulatorEntry entry;
    if (bytes < 0 || (size_t)bytes > SHARED_AT_MOST) {
        return emulator_error(cudaErrorInvalidValue);
    }
    if (!is_loaded(kernel)) {
        return cudaErrorMemoryAllocation;
    }
    shared_allowed()[kernel] = (size_t)bytes;
    return cudaSuccess;
}

static size_t most_shared(const void *kernel) {
    auto found = shared_allowed().find(kernel);
    return found == shared_allowed().end() ? SHARED_AT_FIRST : found->second;
}

void emulator_launch(const char *name, const void *kernel, dim3 grid, dim3 block,
                     size_t shared_bytes, cudaStream_t stream, std::function<void()> body) {
    EmulatorEntry entry;
    unsigned threads = block.x * block.y * block.z;
    if (!threads || threads > 1024 || block.z > 64 || !grid.x || !grid.y || !grid.z ||
        grid.x > 0x7fffffffu || grid.y > 65535 || grid.z > 65535) {
        emulator_error(cudaErrorInvalidConfiguration);
        return;
    }
    if (shared_bytes > most_shared(kernel)) {
        emulator_error(cudaErrorInvalidValue);
        return;
    }
    if (!is_loaded(kernel)) {
        return;
    }
    EmulatorFault fault = emulator_is_to_fault();
    if (fault == EMULATOR_FAULT_AT_ONCE) {
        emulator_break_next();
    } else if (fault == EMULATOR_FAULT_IN_TURN) {
        emulator_push(stream, emulator_break);
        return;
    }
    EmulatorSharing shared = {shared_bytes, most_shared(kernel)};
    emulator_push(stream, [=] {
        emulator_run_grid(name, grid, block, shared, body, emulator_seed() + emulator_tasks());
    });
}
