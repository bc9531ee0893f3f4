/* tests/emulator/block.cc - one block of a kernel: its threads are fibers of the calling thread.
 *
 * A fiber runs until it must wait for others: at a barrier of the block, or for the lanes of its
 * warp. Then the next one runs, up or down through the threads (in turn), and a warp goes as far as
 * it can before the next one does: so a barrier that is missing shows one way or the other. Blocks
 * run from the first to the last or the other way. Fibers live as long as the process and take body
 * after body; one that waits jumps to the next one by itself, and asks no kernel.
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

/* A kernel's threads change places millions of times. What a function that is called must keep is
 * left on its stack, and where that ends is all of a place. Who goes on does so behind the one call
 * from which all others were left, which a processor foresees; of longjmp() it does not. */
#if defined(__x86_64__)
typedef void **Place;
extern "C" void emulator_change_places(Place *left, const Place *taken);
asm(R"(
    .text
    .type emulator_change_places, @function
emulator_change_places:
    push %rbp
    push %rbx
    push %r12
    push %r13
    push %r14
    push %r15
    mov %rsp, (%rdi)
    mov (%rsi), %rsp
    pop %r15
    pop %r14
    pop %r13
    pop %r12
    pop %rbx
    pop %rbp
    ret
    .size emulator_change_places, . - emulator_change_places
)");

/* Six registers, the function, and where that would return to, at a multiple of 16 bytes and 8. */
void begin_at(Place *place, char *stack, size_t bytes, void (*function)()) {
    *place = (void **)((uintptr_t)(stack + bytes) / 16 * 16) - 8;
    (*place)[6] = (void *)function;
}
#else
struct Place {
    jmp_buf left;
    ucontext_t first;
    bool is_first;
};
void emulator_change_places(Place *left, Place *taken) {
    if (_setjmp(left->left)) {
        return;
    }
    if (!taken->is_first) {
        _longjmp(taken->left, 1);
    }
    taken->is_first = false;
    setcontext(&taken->first);
}

void begin_at(Place *place, char *stack, size_t bytes, void (*function)()) {
    place->is_first = true;
    getcontext(&place->first);
    place->first.uc_stack.ss_sp = stack;
    place->first.uc_stack.ss_size = bytes;
    place->first.uc_link = nullptr;
    makecontext(&place->first, function, 0);
}
#endif

struct Fiber {
    Place place;
    unsigned exchanges; /* done so far; even and odd ones use two sets of slots */
    dim3 thread;
};

/* Its lanes by what they wait for, a bit each: nothing, the block, or lanes with the same mask. Who
 * has none of these has ended. */
struct Warp {
    uint32_t ready, at_barrier, in_warp;
    uint32_t mask;
    uint32_t slots[2][LANES], votes[2];
    void *pointers[LANES];
};

Fiber *fibers;
char *stacks;
Warp warps[MOST_THREADS / LANES];
Place scheduler;
const std::function<void()> *body;
unsigned running, n_threads, n_begun, n_at_barrier;
bool downwards; /* through the warps and lanes of the running block */
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

/* Not inlined: in a fiber that another thread of the host goes on with, nothing may be left of where
 * the one before had its own variables. */
__attribute__((noinline)) void go_to(unsigned i, Place *left) {
    running = i;
    emulator_now.thread = (uint16_t)i;
    emulator_thread = fibers[i].thread;
    emulator_change_places(left, &fibers[i].place);
}

unsigned first_of(uint32_t lanes) {
    return downwards ? 31 - __builtin_clz(lanes) : __builtin_ctz(lanes);
}

/* From the running fiber, which is not ready, to the next one of its warp that is. */
void go_to_next() {
    unsigned me = running, lane = me % LANES;
    uint32_t ready = warps[me / LANES].ready;
    uint32_t behind = downwards ? (1u << lane) - 1 : ~1u << lane;
    if (!ready) {
        emulator_change_places(&fibers[me].place, &scheduler);
    } else {
        go_to(me - lane + first_of(ready & behind ? ready & behind : ready), &fibers[me].place);
    }
}

void fiber_main() {
    for (;;) {
        (*body)();
        warps[running / LANES].ready &= ~(1u << running % LANES);
        go_to_next();
    }
}

void make_fibers() {
    fibers = new Fiber[MOST_THREADS];
    stacks = (char *)mmap(nullptr, STACK * MOST_THREADS, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (stacks == MAP_FAILED) {
        emulator_fault("no memory for the stacks of fibers");
    }
}

/* As many as a block wants: each takes a page. */
void begin_fibers() {
    for (; n_begun < n_threads; n_begun++) {
        begin_at(&fibers[n_begun].place, stacks + n_begun * STACK, STACK, fiber_main);
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

unsigned n_warps() {
    return (n_threads + LANES - 1) / LANES;
}

/* Its threads, and of the last warp less. */
uint32_t lanes_of(unsigned warp) {
    unsigned n = n_threads - warp * LANES;
    return n < LANES ? (1u << n) - 1 : ~0u;
}

void begin_threads() {
    for (unsigned i = 0; i < n_threads; i++) {
        fibers[i].exchanges = 0;
    }
    for (unsigned w = 0; w < n_warps(); w++) {
        warps[w].ready = lanes_of(w);
        warps[w].at_barrier = warps[w].in_warp = 0;
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

/* Each warp in turn goes as far ahead of the others as it can: until each of its lanes waits for
 * another warp or has ended. Whether any did. */
bool run_round() {
    bool any = false;
    for (unsigned k = 0; k < n_warps(); k++) {
        unsigned w = downwards ? n_warps() - 1 - k : k;
        if (warps[w].ready) {
            any = true;
            go_to(w * LANES + first_of(warps[w].ready), &scheduler);
        }
    }
    return any;
}

void run_block() {
    unsigned n_in_warp = 0;
    begin_threads();
    while (run_round()) {
    }
    for (unsigned w = 0; w < n_warps(); w++) {
        n_in_warp += __builtin_popcount(warps[w].in_warp);
    }
    if (n_at_barrier || n_in_warp) {
        emulator_fault("%s, block %u %u %u: %u threads have ended, %u wait at a barrier, the "
                       "others for lanes of their warp that do not come",
                       emulator_now.kernel, emulator_block.x, emulator_block.y, emulator_block.z,
                       n_threads - n_at_barrier - n_in_warp, n_at_barrier);
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
    begin_fibers();
    place_threads();
    /* No block may count on another having run before it: they go up or down, as the seed has it. */
    size_t blocks = (size_t)grid.x * grid.y * grid.z;
    bool backwards = seed * 0x9E3779B97F4A7C15u >> 63; /* mixed, lest it keep step with launches */
    for (size_t i = 0; i < blocks; i++) {
        size_t block = backwards ? blocks - 1 - i : i;
        emulator_block = dim3((unsigned)(block % grid.x), (unsigned)(block / grid.x % grid.y),
                              (unsigned)(block / grid.x / grid.y));
        emulator_now.block = (uint32_t)block;
        downwards = (seed + i) & 1;
        run_block();
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

static void wait() {
    warps[running / LANES].ready &= ~(1u << running % LANES);
    go_to_next();
}

void __syncthreads() {
    if (++n_at_barrier < n_threads) {
        warps[running / LANES].at_barrier |= 1u << running % LANES;
        wait();
        return;
    }
    n_at_barrier = 0;
    emulator_now.epoch++;
    for (unsigned w = 0; w < n_warps(); w++) {
        warps[w].ready |= warps[w].at_barrier;
        warps[w].at_barrier = 0;
    }
}

/* The last lane to come lets the others go. */
static void meet(unsigned mask) {
    Warp *warp = &warps[running / LANES];
    uint32_t mine = 1u << running % LANES;
    mask &= lanes_of(running / LANES);
    if (!(mask & mine)) {
        emulator_fault("%s: a lane is not in the mask it waits with", emulator_now.kernel);
    }
    if (warp->in_warp && warp->mask != mask) {
        emulator_fault("%s: lanes of a warp wait with different masks", emulator_now.kernel);
    }
    warp->mask = mask;
    warp->in_warp |= mine;
    if (warp->in_warp != mask) {
        wait();
        return;
    }
    warp->ready |= mask;
    warp->in_warp = 0;
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
    unsigned me = running, set = fibers[me].exchanges++ & 1;
    uint32_t *votes = &warps[me / LANES].votes[set], mine = 1u << me % LANES;
    *votes = predicate ? *votes | mine : *votes & ~mine;
    meet(mask);
    return *votes & mask;
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
