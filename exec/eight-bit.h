/* exec/eight-bit.h - AdamW with states in 8 bits (plan/optimizer/eight-bit.c): what an op of it
 * hands to the kernels, whichever device has them.
 *
 * Owns: nothing. Threads: any.
 */
#pragma once

#include "exec/task.h"
#include "kernels/eight-bit-step.h"

typedef struct {
    KernelState8bit exp_avg, exp_avg_sq;
} ExecStates8bit;

/* The states of an op that is a step, or one half of one; NULL for what the op does not name. */
ExecStates8bit exec_states_8bit(const ExecTask *t);
/* The numbers of a step; the attributes of all such ops begin alike. */
KernelAdamOne exec_adam_one(const ExecTask *t);
