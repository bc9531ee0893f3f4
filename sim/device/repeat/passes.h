/* sim/device/repeat/passes.h - the passes of a step that accumulates, and which of them are the
 * same program.
 *
 * A pass begins where its batch is drawn. Two passes are alike when their instructions are, one by
 * one: what they launch costs the same, to the host too, and a buffer that one frees, or an event
 * that it waits for, was made as many instructions before as the other's was. Numbers of buffers,
 * events and ops may differ.
 *
 * Owns: its arrays. Threads: const once made, so any number. Cost: O(instructions of a section).
 */
#pragma once

#include "plan/plan.h"
#include "sim/costs/ops.h"

typedef struct {
    uint32_t n;       /* passes; 0: too few of them to look at */
    uint32_t *begins; /* n: the first instruction */
    bool *repeats; /* n: it is alike to the one before it, and only the next one, or the same, asks
                         for what it makes */
} SimPasses;

void sim_passes_init(SimPasses *passes, const SimOpCosts *costs, const PlanRole *role,
                     PlanSection section);
void sim_passes_clear(SimPasses *passes);
