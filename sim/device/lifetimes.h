/* sim/device/lifetimes.h - when each buffer of a program lives, for as many steps as it may be
 * played.
 *
 * Construction and the first steps are played once. What follows goes round and round: the steady
 * section, or second and steady where steps go on by turns. A buffer that one round leaves to the
 * next keeps its place until that one frees it.
 */
#pragma once

#include "memory/arena.h"
#include "plan/plan.h"

/* MemoryTenant, one for each allocation, in the order of the sections; a moment is an instruction.
 * Bytes as they are asked for. Transfer full: g_array_unref(). */
GArray *sim_lifetimes(const PlanRole *role);
