/* sim/device/lifetimes.h - when each buffer of a program is alive, over any number of steps.
 *
 * Construction and the first steps are played once. What follows is a loop: the steady section, or
 * second and steady where steps alternate. A buffer that one round leaves to the next keeps its
 * place until that one frees it.
 */
#pragma once

#include "memory/arena.h"
#include "plan/plan.h"

/* MemoryTenant, one for each allocation, in the order of the sections; a moment is an instruction.
 * Bytes as they are asked for. Transfer full: g_array_unref(). */
GArray *sim_lifetimes(const PlanRole *role);
