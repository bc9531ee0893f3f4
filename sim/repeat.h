/* sim/repeat.h - steps that are as the step before them, which need not be played.
 *
 * At some moments of a step the device is held against what it was at the same instruction of the
 * step before (sim/mark.h). If that is equal, and both steps are the same program, then what is
 * left of this step is as it was in the step before; and the steps that follow are as this one. A
 * step's begin is such a moment, and two more within it: what the step before left behind, a
 * segment that it was the first to ask for, say, has often worn off by then.
 *
 * Steps end with every lane at rest, as most do that a training loop waits for; else the books of
 * one step are open while the next is played, and nothing is said.
 *
 * Owns: its marks. Borrows: the device's parts. Threads: one.
 */
#pragma once

#include "plan/player.h"
#include "sim/mark.h"

enum {
    SIM_N_MOMENTS = 3 /* of a step */
};

typedef struct {
    SimParts parts;
    uint32_t steps;               /* in all */
    SimHostBook *books;           /* of construction and of each step */
    bool rested;                  /* the lanes, where the step at hand began */
    SimMark marks[SIM_N_MOMENTS]; /* of the step before */
    SimMark here;
} SimRepeat;

void sim_repeat_init(SimRepeat *repeat, const SimParts *parts, uint32_t steps, SimHostBook *books);
void sim_repeat_clear(SimRepeat *repeat);

/* The instruction of a section before which a moment is; the first is before all. */
uint32_t sim_repeat_moment(const PlanRole *role, PlanSection section, unsigned moment);
/* True: the rest of this step and all steps after it repeat what was played, and their books are
 * written. */
bool sim_repeat_at(SimRepeat *repeat, const PlanPosition *at, unsigned moment);
