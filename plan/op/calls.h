/* plan/op/calls.h - what the kernels of a traced network compute: texts that ops name by number.
 *
 * A text is a name of ATen's, its arguments, ">" and what it makes, words with a blank between. A
 * tensor is OPERAND/DTYPE/SIZES/STRIDES/OFFSET, with an operand's number in its op, counts with
 * commas between, "-" for none, and strides and offset left out where it is row-major from the
 * operand's start. A list is [a;b]. "-" alone is an op that leaves its work to the next one,
 * "?NAME" a call of which not all is known.
 *
 * Owns: nothing; texts lie in the plan's arena. Threads: one.
 */
#pragma once

#include "plan/arena.h"

typedef struct {
    PlanArena *arena;
    GHashTable *numbers; /* text: its number */
    GPtrArray *texts;
} PlanCalls;

void plan_calls_init(PlanCalls *calls, PlanArena *arena);
void plan_calls_clear(PlanCalls *calls);
/* From 1 on; the same for the same text. */
int64_t plan_calls_number(PlanCalls *calls, const char *text);
/* In the arena. */
const char **plan_calls_take(const PlanCalls *calls, guint32 *ret_n);
