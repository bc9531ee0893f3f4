/* plan/check/check.h - whether a plan is sound, whoever wrote it.
 *
 * The rules:
 *   - An operand lies inside its buffer and is as large as the shape of its op says (op/shape.h).
 *   - A buffer is allocated before it is used, written before it is read, and freed once.
 *   - Uses of a buffer by two lanes are ordered by events unless both read; so are the uses of
 *     memory that is freed and those of a buffer that may be given the same memory.
 *   - An event is recorded before it is waited for, at most once in a section.
 *   - At a section's end exactly those buffers live that are declared as carried beyond it.
 *   - Kernels are launched on a lane, and what the host does by itself is a host_op.
 *   - A role's ranks are of one pipeline stage, and roles stand in the order of their stages.
 *   - Collectives come in the same order with the same sizes in every role of a stage, and what a
 *     stage sends its neighbour receives (stages.h).
 *
 * What these rules cannot find: a missing op that would have changed numbers in place. The rest is
 * then a sound plan of another computation.
 *
 * The steady section is walked twice in a row, so that what one step leaves to the next is checked
 * too. Once is enough where it ends with every lane at rest and with the buffers alive that it
 * began with: the second walk would find what the first one found.
 */
#pragma once

#include "plan/plan.h"

/* The most bytes that a role's buffers may come to: their sums stay within 64 bits. */
#define PLAN_MOST_BYTES (UINT64_C(1) << 62)

/* PLAN_ERROR_CHECK where a role's buffers come to more; plan_check() asks it, too. */
bool plan_check_sizes(const Plan *plan, GError **error);

/* PLAN_ERROR_CHECK with "role R, section S, instruction I: ..." */
bool plan_check(const Plan *plan, GError **error);
