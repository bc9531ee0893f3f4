/* sim/ranks/fiber.h - a cursor that can stand still anywhere, with its stack.
 *
 * A rank's program asks its allocator, which asks the device, which may have to wait for other
 * ranks: deep inside calls that know nothing of them. A fiber lets one thread hold all ranks: each
 * runs on a stack of its own and hands back to whoever resumed it.
 *
 * Owns: its stack, of which only what was touched takes memory. What lies on the stack of a fiber
 * that never ended is not cleaned up. Threads: one. Cost: some ten nanoseconds a switch; where it
 * takes a system call each way (fiber.c), below a microsecond.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>

typedef struct _SimFiber SimFiber;

SimFiber *sim_fiber_new(void (*run)(gpointer self), gpointer self); /* run begins when resumed */
void sim_fiber_free(SimFiber *fiber);                               /* NULL is fine */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(SimFiber, sim_fiber_free)

/* Runs it until it yields or ends. Not from inside a fiber. */
void sim_fiber_resume(SimFiber *fiber);
void sim_fiber_yield(SimFiber *fiber); /* from inside it */
