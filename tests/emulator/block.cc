/* tests/emulator/block.cc - one block of a kernel: its threads are fibers of the calling thread.
 *
 * A fiber runs until it must wait for others: at a barrier of the block, or for the lanes of its
 * warp. Then the next one runs, up or down through the threads (in turn), and a warp goes as far as
 * it can before the next one does: so a barrier that is missing shows one way or the other. Blocks
 * run from the first to the last or the other way. Fibers live as long as the process and take body
 * after body; they are entered first by setcontext() and from then on by a jump that asks no
 * kernel.
 */
#include <cuda_runtime.h>
#include <emulator-matrices.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <ucontext.h>

#include <vector>

#include "tests/emulator/emulator-private.h"

dim3 emulator_thread, emulator_block, emulator_block_size, emulator_grid_size;
thread_local EmulatorNow emulator_now;

namespace {

/* Bytes, touched only where used. An odd number of cache lines: at a distance of a power of two the
 * ends of all stacks, which are what is used, would share the few lines of one set of a cache. */
constexpr size_t STACK = (128 << 10) + 9 * 64;
constexpr unsigned MOST_THREADS = 1024, LANES = 32;

enum State {
    READY,
    AT_BARRIER,
    IN_WARP,
    DONE
};

/* A kernel's threads change places millions of times. The compiler's own jump keeps the frame, the
 * stack and where to go on; what else there is, it saves where it is wanted. longjmp() also looks
 * for handlers to be called on the way, which takes longer than most of what runs in between. */
/* Who calls what leaves must think that all registers are lost and that it comes back (gcc). */
#if defined(__has_attribute) && __has_attribute(noipa)
#define APART __attribute__((noipa))
#else
#define APART __attribute__((noinline))
#endif

#if defined(__x86_64__) && !defined(__clang__)
typedef void *Place[5];
#define LEFT(place) __builtin_setjmp(place)
APART void go_on(void **place) {
    __builtin_longjmp(place, 1);
}
#else
typedef jmp_buf Place;
#define LEFT(place) _setjmp(place)
void go_on(jmp_buf place) {
    _longjmp(place, 1);
}
#endif

struct Fiber {
    Place place;
    State state;
    unsigned exchanges; /* done so far; even and odd ones use two sets of slots */
    dim3 thread;
    bool entered;
};

struct Warp {
    unsigned waiting, mask;
    uint32_t slots[2][LANES];
    void *pointers[LANES];
};

Fiber *fibers;
ucontext_t *firsts; /* by fiber: where it is entered */
char *stacks;
Warp warps[MOST_THREADS / LANES];
Place scheduler;
const std::function<void()> *body;
unsigned running, n_threads, n_at_barrier;
uint64_t launches, block_runs;

/* Shared memory: first what the launch asked for, then variables as they are first met, each behind
 * a border of its own, at 16 bytes and no better. What a kernel was allowed to be asked for and its
 * variables are as much as an H100 has together; of one that was allowed nothing more, as any GPU
 * gives unasked. */
constexpr size_t SHARED_MOST = 227 << 10, SHARED_UNASKED = 48 << 10, SHARED_BORDER = 64;
constexpr size_t SHARED_ALIGNMENT = 16;
alignas(SHARED_BORDER) char shared_memory[2 * SHARED_MOST];
size_t dynamic_bytes, allowed_bytes, shared_end, variable_bytes;
std::vector<EmulatorSpan> shared_spans;

void fiber_main() {
    for (;;) {
        (*body)();
        fibers[running].state = DONE;
        if (!LEFT(fibers[running].place)) {
            go_on(scheduler);
        }
    }
}

void make_fibers() {
    fibers = new Fiber[MOST_THREADS];
    firsts = new ucontext_t[MOST_THREADS];
    stacks = (char *)mmap(nullptr, STACK * MOST_THREADS, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (stacks == MAP_FAILED) {
        emulator_fault("no memory for the stacks of fibers");
    }
    for (unsigned i = 0; i < MOST_THREADS; i++) {
        fibers[i].entered = false;
        getcontext(&firsts[i]);
        firsts[i].uc_stack.ss_sp = stacks + i * STACK;
        firsts[i].uc_stack.ss_size = STACK;
        firsts[i].uc_link = nullptr;
        makecontext(&firsts[i], fiber_main, 0);
    }
}

APART void resume(unsigned i) {
    running = i;
    emulator_now.thread = (uint16_t)i;
    emulator_thread = fibers[i].thread;
    if (LEFT(scheduler)) {
        return;
    }
    if (fibers[i].entered) {
        go_on(fibers[i].place);
    }
    fibers[i].entered = true;
    setcontext(&firsts[i]);
}

APART void wait_as(State state) {
    unsigned me = running;
    fibers[me].state = state;
    if (!LEFT(fibers[me].place)) {
        go_on(scheduler);
    }
}

/* NaN, until it is written. */
void *new_shared(size_t bytes) {
    char *at = shared_memory + shared_end + SHARED_ALIGNMENT;
    size_t end = SHARED_ALIGNMENT + bytes;
    shared_end += (end + 2 * SHARED_BORDER - 1) / SHARED_BORDER * SHARED_BORDER;
    size_t all = (allowed_bytes > SHARED_UNASKED ? allowed_bytes : dynamic_bytes) + variable_bytes;
    size_t most = allowed_bytes > SHARED_UNASKED ? SHARED_MOST : SHARED_UNASKED;
    if (all > most || variable_bytes > SHARED_UNASKED) {
        emulator_fault("%s: more shared memory than there is: %zu bytes of variables, and %zu",
                       emulator_now.kernel, variable_bytes, dynamic_bytes);
    }
    memset(at, 0xff, bytes);
    shared_spans.push_back({EMULATOR_SHARED, (uintptr_t)at, (uintptr_t)at + bytes});
    return at;
}

/* Of each block alike. */
void place_threads() {
    dim3 at(0, 0, 0);
    for (unsigned i = 0; i < n_threads; i++) {
        fibers[i].thread = at;
        if (++at.x == emulator_block_size.x) {
            at.x = 0;
            at.y++;
        }
        if (at.y == emulator_block_size.y) {
            at.y = 0;
            at.z++;
        }
    }
}

void begin_threads() {
    for (unsigned i = 0; i < n_threads; i++) {
        fibers[i].state = READY;
        fibers[i].exchanges = 0;
    }
    for (unsigned w = 0; w < (n_threads + LANES - 1) / LANES; w++) {
        warps[w].waiting = 0;
    }
    n_at_barrier = 0;
    emulator_now.epoch = 0;
    emulator_now.block_run = ++block_runs;
    shared_spans.clear();
    shared_end = variable_bytes = 0;
    if (dynamic_bytes) {
        new_shared(dynamic_bytes);
    }
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
                       emulator_now.kernel, emulator_block.x, emulator_block.y, emulator_block.z,
                       count(DONE), n_at_barrier);
    }
}

} // namespace

void emulator_run_grid(const char *name, dim3 grid, dim3 block, EmulatorSharing shared,
                       const std::function<void()> &thread_body, uint64_t seed) {
    if (!fibers) {
        make_fibers();
    }
    emulator_now.kernel = name;
    emulator_now.launch = ++launches;
    body = &thread_body;
    emulator_grid_size = grid;
    emulator_block_size = block;
    n_threads = block.x * block.y * block.z;
    dynamic_bytes = shared.asked;
    allowed_bytes = shared.allowed;
    place_threads();
    /* No block may count on another having run before it: they go up or down, as the seed has it. */
    size_t blocks = (size_t)grid.x * grid.y * grid.z;
    bool backwards = seed * 0x9E3779B97F4A7C15u >> 63; /* mixed, lest it keep step with launches */
    for (size_t i = 0; i < blocks; i++) {
        size_t block = backwards ? blocks - 1 - i : i;
        emulator_block = dim3((unsigned)(block % grid.x), (unsigned)(block / grid.x % grid.y),
                              (unsigned)(block / grid.x / grid.y));
        emulator_now.block = (uint32_t)block;
        run_block((seed + i) & 1);
    }
    emulator_now.kernel = nullptr;
}

bool emulator_is_on_stack(uintptr_t at) {
    return at - (uintptr_t)stacks < STACK * MOST_THREADS;
}

/* Behind a variable's end lies nothing for a border, and what runs on there was meant for it. */
bool emulator_shared_span(uintptr_t at, EmulatorSpan *ret_span) {
    if (at - (uintptr_t)shared_memory >= sizeof shared_memory) {
        return false;
    }
    *ret_span = {EMULATOR_SHARED, 0, 0};
    for (const EmulatorSpan &span : shared_spans) {
        if (at + SHARED_ALIGNMENT >= span.begin) { /* it begins so far behind a border */
            *ret_span = span;
        }
    }
    return true;
}

void emulator_must_be_global(const void *at) {
    bool is_shared = (uintptr_t)at - (uintptr_t)shared_memory < sizeof shared_memory;
    if (is_shared || emulator_is_on_stack((uintptr_t)at)) {
        emulator_fault("%s writes to %s memory by an instruction of global memory",
                       emulator_now.kernel, is_shared ? "shared" : "a thread's own");
    }
}

void *emulator_shared_memory() {
    return shared_memory + SHARED_ALIGNMENT;
}

void *emulator_shared_at(EmulatorSite *site, size_t bytes) {
    if (site->block_run != emulator_now.block_run) {
        variable_bytes += bytes;
        *site = {emulator_now.block_run, new_shared(bytes)};
    }
    return site->at;
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
    emulator_now.epoch++;
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
        emulator_fault("%s: a lane is not in the mask it waits with", emulator_now.kernel);
    }
    if (warp->waiting && warp->mask != mask) {
        emulator_fault("%s: lanes of a warp wait with different masks", emulator_now.kernel);
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

/* A lane can be at most one exchange ahead of another, so two sets of slots are enough. What one
 * reads of a lane that leaves nothing is undefined (CUDA C++ Programming Guide, "Warp Shuffle
 * Functions"). */
uint32_t emulator_exchange(unsigned mask, uint32_t bits, unsigned from) {
    unsigned me = running, set = fibers[me].exchanges++ & 1;
    if (!(mask >> from & 1) || me / LANES * LANES + from >= n_threads) {
        emulator_fault("%s: lane %u reads of lane %u, which leaves nothing for it",
                       emulator_now.kernel, me % LANES, from);
    }
    warps[me / LANES].slots[set][me % LANES] = bits;
    meet(mask);
    return warps[me / LANES].slots[set][from];
}

void *const *emulator_exchange_pointers(void *mine) {
    Warp *warp = &warps[running / LANES];
    warp->pointers[running % LANES] = mine;
    meet(~0u);
    return warp->pointers;
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
