#include "sim/ranks/fiber.h"

#include <stdint.h>
#include <ucontext.h>

/* The player, the device, the allocator and the engine need some 4 KiB, their messages more; a
 * build with AddressSanitizer several times that. */
enum {
    STACK_BYTES = 256 * 1024
};

struct _SimFiber {
    ucontext_t inside, outside;
    void (*run)(gpointer self);
    gpointer self;
    gpointer stack;
    bool ended;
};

/* makecontext() hands on nothing but int: a pointer comes in two halves. */
static void begin(unsigned high, unsigned low) {
    SimFiber *fiber = (SimFiber *)((uintptr_t)high << 32 | (uintptr_t)low);
    fiber->run(fiber->self);
    fiber->ended = true;
}

SimFiber *sim_fiber_new(void (*run)(gpointer self), gpointer self) {
    SimFiber *fiber = g_new0(SimFiber, 1);
    fiber->run = run;
    fiber->self = self;
    fiber->stack = g_malloc(STACK_BYTES);
    getcontext(&fiber->inside);
    fiber->inside.uc_stack.ss_sp = fiber->stack;
    fiber->inside.uc_stack.ss_size = STACK_BYTES;
    fiber->inside.uc_link = &fiber->outside;
    uintptr_t address = (uintptr_t)fiber;
    makecontext(&fiber->inside, (void (*)(void))begin, 2, (unsigned)((uint64_t)address >> 32),
                (unsigned)address);
    return fiber;
}

void sim_fiber_free(SimFiber *fiber) {
    if (fiber) {
        g_free(fiber->stack);
        g_free(fiber);
    }
}

void sim_fiber_resume(SimFiber *fiber) {
    g_assert(!fiber->ended);
    swapcontext(&fiber->outside, &fiber->inside);
}

void sim_fiber_yield(SimFiber *fiber) {
    swapcontext(&fiber->inside, &fiber->outside);
}

bool sim_fiber_ended(const SimFiber *fiber) {
    return fiber->ended;
}
