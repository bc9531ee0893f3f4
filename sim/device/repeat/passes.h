/* sim/device/repeat/passes.h - the passes of a step that accumulates, and which of them are the
 * same program.
 *
 * A pass begins where its batch is drawn. Two passes are alike when their instructions are, one by
 * one: what they launch costs the same, for the host too, and a buffer that is freed, or an event
 * that is waited for, was made equally many instructions before. Numbers of buffers, events and ops
 * may differ.
 *
 * Owns: its arrays. Threads: const once made, so any number. Cost: O(instructions of a section).
 */
#pragma once

#include "plan/plan.h"
#include "sim/costs/ops.h"

typedef struct {
    uint32_t n;       /* passes; 0: there are too few to leap over any */
    uint32_t *begins; /* n: the first instruction of each */
    bool *repeats; /* n: it equals the pass before it; only it and the next one use what it makes */
} SimPasses;

void sim_passes_init(SimPasses *passes, const SimOpCosts *costs, const PlanRole *role,
                     PlanSection section);
void sim_passes_clear(SimPasses *passes);
