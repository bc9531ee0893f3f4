/* plan/autograd/traced-call.h - calls of traced networks (plan/op/calls.h) as they are launched.
 * Inside plan/autograd/traced*.c only. */
#pragma once

#include "plan/autograd/traced.h"
#include "plan/graph/traced.h"

/* The number of a tensor's operand in the op; PLAN_NONE: the plan knows none of it. */
typedef uint32_t PlanTracedOperandOf(PlanTracedRef ref, gconstpointer data);

/* 0: what it computes is not known. */
int64_t plan_traced_call_number(PlanRun *run, PlanTracedCall call, PlanTracedOperandOf *operand_of,
                                gconstpointer data);
uint32_t plan_traced_sum_operand(PlanTracedRef ref, gconstpointer n_reads);
