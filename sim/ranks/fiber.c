/* sim/ranks/fiber.c - stacks by makecontext(), switches by longjmp().
 *
 * swapcontext() keeps a thread's signal mask too, for which it asks the kernel at each switch;
 * nobody here changes masks. So a fiber is entered by it once, and goes on by _longjmp() from then
 * on, which asks nobody. Where a jump is looked after (by a sanitizer, which must know of stacks,
 * or by a kernel that keeps a second stack of return addresses), or the C library is not known to
 * let it leave a stack, swapcontext() does it every time.
 */
#undef _FORTIFY_SOURCE /* its longjmp() refuses to leave the stack */

#include "sim/ranks/fiber.h"

#include <setjmp.h>
#include <stdint.h>
#include <ucontext.h>

#if !defined(__GLIBC__) || defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) ||        \
    (defined(__CET__) && __CET__ & 2)
#define JUMPS 0
#elif defined(__has_feature) /* clang */
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define JUMPS 0
#endif
#endif
#ifndef JUMPS
#define JUMPS 1
#endif

/* The player, the device, the allocator and the engine need some 4 KiB, their messages more; a
 * build with AddressSanitizer several times that. */
enum {
    STACK_BYTES = 256 * 1024
};

typedef struct {
    ucontext_t context;
    jmp_buf jump;
} Place;

struct _SimFiber {
    Place inside, outside;
    void (*run)(gpointer self);
    gpointer self;
    gpointer stack;
    bool entered, ended;
};

/* Goes on at a place that was left before. */
static void go_on(Place *from, Place *to) {
    if (!JUMPS) {
        swapcontext(&from->context, &to->context);
    } else if (!_setjmp(from->jump)) {
        _longjmp(to->jump, 1);
    }
}

/* makecontext() hands on nothing but int: a pointer comes in two halves. */
static void begin(unsigned high, unsigned low) {
    SimFiber *fiber = (SimFiber *)((uintptr_t)high << 32 | (uintptr_t)low);
    fiber->run(fiber->self);
    fiber->ended = true;
    go_on(&fiber->inside, &fiber->outside);
}

SimFiber *sim_fiber_new(void (*run)(gpointer self), gpointer self) {
    SimFiber *fiber = g_new0(SimFiber, 1);
    ucontext_t *context = &fiber->inside.context;
    fiber->run = run;
    fiber->self = self;
    fiber->stack = g_malloc(STACK_BYTES);
    getcontext(context);
    context->uc_stack.ss_sp = fiber->stack;
    context->uc_stack.ss_size = STACK_BYTES;
    uintptr_t address = (uintptr_t)fiber;
    makecontext(context, (void (*)(void))begin, 2, (unsigned)((uint64_t)address >> 32),
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
    if (fiber->entered) {
        go_on(&fiber->outside, &fiber->inside);
    } else {
        fiber->entered = true;
        if (!JUMPS || !_setjmp(fiber->outside.jump)) {
            swapcontext(&fiber->outside.context, &fiber->inside.context);
        }
    }
}

void sim_fiber_yield(SimFiber *fiber) {
    go_on(&fiber->inside, &fiber->outside);
}
