/* tests/emulator/block.cc - one block of a kernel: its threads are fibers of the calling thread.
 *
 * A fiber runs until it must wait for others: at a barrier of the block, or for the lanes of its
 * warp. Then the next one runs, up or down through the threads (in turn), and a warp goes as far as
 * it can before the next one does: so a barrier that is missing shows one way or the other. Blocks
 * run from the first to the last or the other way. Fibers live as long as the process and take body
 * after body; they are entered first by setcontext() and from then on by longjmp(), which asks no
 * kernel.
 */
#include <cuda_runtime.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <ucontext.h>

#include <vector>

#include "tests/emulator/emulator-private.h"

dim3 emulator_thread, emulator_block, emulator_block_size, emulator_grid_size;

namespace {

/* All __shared__ variables of the program; the linker knows where their section begins and ends. */
extern "C" char __start_emulator_shared[] __attribute__((weak));
extern "C" char __stop_emulator_shared[] __attribute__((weak));

constexpr size_t STACK = 128 << 10; /* bytes; touched only where used */
constexpr unsigned MOST_THREADS = 1024, LANES = 32;

enum State {
    READY,
    AT_BARRIER,
    IN_WARP,
    DONE
};

struct Fiber {
    jmp_buf place;
    ucontext_t first;
    bool entered;
    State state;
    unsigned exchanges; /* done so far; even and odd ones use two sets of slots */
    dim3 thread;
};

struct Warp {
    unsigned waiting, mask;
    uint32_t slots[2][LANES];
};

Fiber *fibers;
Warp warps[MOST_THREADS / LANES];
jmp_buf scheduler;
const std::function<void()> *body;
const char *kernel_name;
unsigned running, n_threads, n_at_barrier;
std::vector<unsigned char> shared_memory;

void fiber_main() {
    for (;;) {
        (*body)();
        fibers[running].state = DONE;
        if (!_setjmp(fibers[running].place)) {
            _longjmp(scheduler, 1);
        }
    }
}

void make_fibers() {
    fibers = new Fiber[MOST_THREADS];
    char *stacks = (char *)mmap(nullptr, STACK * MOST_THREADS, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (stacks == MAP_FAILED) {
        emulator_fault("no memory for the stacks of fibers");
    }
    for (unsigned i = 0; i < MOST_THREADS; i++) {
        fibers[i].entered = false;
        getcontext(&fibers[i].first);
        fibers[i].first.uc_stack.ss_sp = stacks + i * STACK;
        fibers[i].first.uc_stack.ss_size = STACK;
        fibers[i].first.uc_link = nullptr;
        makecontext(&fibers[i].first, fiber_main, 0);
    }
}

__attribute__((noinline)) void resume(unsigned i) {
    running = i;
    emulator_thread = fibers[i].thread;
    if (_setjmp(scheduler)) {
        return;
    }
    if (fibers[i].entered) {
        _longjmp(fibers[i].place, 1);
    }
    fibers[i].entered = true;
    setcontext(&fibers[i].first);
}

__attribute__((noinline)) void wait_as(State state) {
    unsigned me = running;
    fibers[me].state = state;
    if (!_setjmp(fibers[me].place)) {
        _longjmp(scheduler, 1);
    }
}

void begin_threads() {
    for (unsigned i = 0; i < n_threads; i++) {
        fibers[i].state = READY;
        fibers[i].exchanges = 0;
        fibers[i].thread =
            dim3(i % emulator_block_size.x, i / emulator_block_size.x % emulator_block_size.y,
                 i / emulator_block_size.x / emulator_block_size.y);
    }
    for (unsigned w = 0; w < (n_threads + LANES - 1) / LANES; w++) {
        warps[w].waiting = 0;
    }
    n_at_barrier = 0;
    std::fill(shared_memory.begin(), shared_memory.end(), 0xff);
    std::fill(__start_emulator_shared, __stop_emulator_shared, (char)0xff);
}

/* The lanes of a warp, until each waits for another warp or has ended. */
void run_warp(unsigned first, unsigned n, bool downwards) {
    for (bool any = true; any;) {
        any = false;
        for (unsigned k = 0; k < n; k++) {
            unsigned i = first + (downwards ? n - 1 - k : k);
            if (fibers[i].state == READY) {
                any = true;
                resume(i);
            }
        }
    }
}

/* Each warp in turn goes as far ahead of the others as it can. */
void run_round(bool downwards) {
    unsigned n_warps = (n_threads + LANES - 1) / LANES;
    for (unsigned k = 0; k < n_warps; k++) {
        unsigned first = (downwards ? n_warps - 1 - k : k) * LANES;
        run_warp(first, std::min(LANES, n_threads - first), downwards);
    }
}

unsigned count(State state) {
    unsigned n = 0;
    for (unsigned i = 0; i < n_threads; i++) {
        n += fibers[i].state == state;
    }
    return n;
}

void run_block(bool downwards) {
    begin_threads();
    do {
        run_round(downwards);
    } while (count(READY));
    if (count(DONE) < n_threads) {
        emulator_fault("%s, block %u %u %u: %u threads have ended, %u wait at a barrier, the "
                       "others for lanes of their warp that do not come",
                       kernel_name, emulator_block.x, emulator_block.y, emulator_block.z,
                       count(DONE), n_at_barrier);
    }
}

} // namespace

void emulator_run_grid(const char *name, dim3 grid, dim3 block, size_t shared_bytes,
                       const std::function<void()> &thread_body, uint64_t seed) {
    if (!fibers) {
        make_fibers();
    }
    kernel_name = name;
    body = &thread_body;
    emulator_grid_size = grid;
    emulator_block_size = block;
    n_threads = block.x * block.y * block.z;
    shared_memory.resize(shared_bytes + 16);
    /* No block may count on another having run before it: they go up or down, as the seed has it. */
    size_t blocks = (size_t)grid.x * grid.y * grid.z;
    bool backwards = seed * 0x9E3779B97F4A7C15u >> 63; /* mixed, lest it keep step with launches */
    for (size_t i = 0; i < blocks; i++) {
        size_t block = backwards ? blocks - 1 - i : i;
        emulator_block = dim3((unsigned)(block % grid.x), (unsigned)(block / grid.x % grid.y),
                              (unsigned)(block / grid.x / grid.y));
        run_block((seed + i) & 1);
    }
}

void *emulator_shared_memory() {
    uintptr_t at = (uintptr_t)shared_memory.data();
    return (void *)((at + 15) / 16 * 16);
}

unsigned emulator_lane() {
    return running % LANES;
}

void __syncthreads() {
    if (++n_at_barrier < n_threads) {
        wait_as(AT_BARRIER);
        return;
    }
    n_at_barrier = 0;
    for (unsigned i = 0; i < n_threads; i++) {
        if (fibers[i].state == AT_BARRIER) {
            fibers[i].state = READY;
        }
    }
}

/* The last lane to come lets the others go. */
static void meet(unsigned mask) {
    unsigned first = running / LANES * LANES, n = std::min(LANES, n_threads - first);
    Warp *warp = &warps[running / LANES];
    mask &= n < 32 ? (1u << n) - 1 : ~0u;
    if (!(mask >> running % LANES & 1)) {
        emulator_fault("%s: a lane is not in the mask it waits with", kernel_name);
    }
    if (warp->waiting && warp->mask != mask) {
        emulator_fault("%s: lanes of a warp wait with different masks", kernel_name);
    }
    warp->mask = mask;
    warp->waiting |= 1u << running % LANES;
    if (warp->waiting != mask) {
        wait_as(IN_WARP);
        return;
    }
    warp->waiting = 0;
    for (unsigned i = 0; i < n; i++) {
        if (fibers[first + i].state == IN_WARP) {
            fibers[first + i].state = READY;
        }
    }
}

void __syncwarp(unsigned mask) {
    meet(mask);
}

/* A lane can be at most one exchange ahead of another, so two sets of slots are enough. */
uint32_t emulator_exchange(unsigned mask, uint32_t bits, unsigned from) {
    unsigned me = running, set = fibers[me].exchanges++ & 1;
    warps[me / LANES].slots[set][me % LANES] = bits;
    meet(mask);
    return warps[me / LANES].slots[set][from];
}

unsigned __ballot_sync(unsigned mask, int predicate) {
    unsigned me = running, set = fibers[me].exchanges++ & 1, bits = 0;
    warps[me / LANES].slots[set][me % LANES] = predicate != 0;
    meet(mask);
    for (unsigned i = 0; i < LANES; i++) {
        bits |= (mask >> i & 1 && warps[me / LANES].slots[set][i] == 1 ? 1u : 0u) << i;
    }
    return bits;
}

long long clock64() {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000ll + now.tv_nsec;
}

void __nanosleep(unsigned ns) {
    struct timespec pause = {0, (long)ns};
    nanosleep(&pause, nullptr);
}
