/* sim/repeat.h - steps that are as the step before them, which need not be played.
 *
 * What a device does next is a function of its state and of its program. Where a step ends with
 * every lane at rest, as most do that a training loop waits for, the state is the allocator's: its
 * blocks, and which buffer lies in which. If that is as it was when the step began, and the next
 * step is the same program, then the next step is the same again, later; and so are all that
 * follow. The driver's state only grows, so a step in which memory was asked for or given back
 * decides nothing.
 *
 * Owns: the state at the end of the last step. Threads: one. Cost: O(blocks and buffers) a step.
 */
#pragma once

#include "plan/player.h"
#include "sim/account.h"
#include "sim/driver.h"
#include "sim/memory.h"

typedef struct {
    uint32_t steps;    /* in all */
    GByteArray *state; /* at the end of the last step; NULL: of none yet */
    SimTime now_ns;    /* of the host, then */
    uint64_t n_acts;   /* of the driver, until then */
    SimTime shares_ns[SIM_N_SHARES];
    SimTime period_ns; /* of the step that is repeated */
    SimTime period_shares_ns[SIM_N_SHARES];
} SimRepeat;

void sim_repeat_init(SimRepeat *repeat, uint32_t steps);
void sim_repeat_clear(SimRepeat *repeat);

/* at: the end of a section. True: all steps after it repeat it, and the period says by how much
 * later. */
bool sim_repeat_section_ends(SimRepeat *repeat, const PlanPosition *at, const SimDriver *driver,
                             const SimMemory *memory, const SimAccount *account);
