/* sim/device/repeat/repeat.h - steps that are as the step before them, which need not be played.
 *
 * At two moments of a step the device is held against what it was at the same instruction of the
 * step before (sim/device/repeat/mark.h). If that is equal, and both steps are the same program,
 * then what is left of this step is as it was in the step before; and the steps that follow are as
 * this one. A step's begin is such a moment. The other is a little behind the last segment that the
 * step before asked for or gave back: from then on it did as later ones do. A step that did neither
 * has it a little behind its begin, where what the step before it left behind has mostly worn off.
 *
 * Steps end with every lane at rest, as most do that a training loop waits for; else the books of
 * one step are open while the next is played, and nothing is said.
 *
 * Owns: its marks. Borrows: the device's parts. Threads: one.
 */
#pragma once

#include "plan/player.h"
#include "sim/device/repeat/mark.h"

enum {
    SIM_N_MOMENTS = 32 /* of a step, at which one may ask */
};

/* Of one step. */
typedef struct {
    SimMark begin, within;
    unsigned within_at; /* which moment */
} SimStepMarks;

typedef struct {
    SimParts parts;
    uint32_t steps;            /* in all */
    SimHostBook *books;        /* of construction and of each step */
    bool rested;               /* the lanes, where the step at hand began */
    SimStepMarks before, here; /* of the step before, of the step at hand */
    uint64_t n_acts;           /* of the driver, up to the moment before */
} SimRepeat;

void sim_repeat_init(SimRepeat *repeat, const SimParts *parts, uint32_t steps, SimHostBook *books);
void sim_repeat_clear(SimRepeat *repeat);

/* The instruction of a section before which a moment is; the first is before all. */
uint32_t sim_repeat_moment(const PlanRole *role, PlanSection section, unsigned moment);
/* Asked at one moment after the other. True: the rest of this step and all steps after it repeat
 * what was played, and their books are written. */
bool sim_repeat_at(SimRepeat *repeat, const PlanPosition *at, unsigned moment);
