/* sim/device/repeat/repeat.h - finds out that all later steps repeat the step before, so that they
 * need not be played.
 *
 * At two moments of a step the device's state is compared with that at the same instruction of the
 * step before (snapshot.h). If both are equal and both steps are the same program, the rest of this
 * step goes as in the step before, and all later steps go as this one. The first moment is the
 * begin of the step. The second is a little behind the last segment that the step before asked for
 * or gave back, since from then on it did what later steps do; in a step without any it is a little
 * behind the begin.
 *
 * This works only where steps end with every lane at rest, as they do when a training loop waits
 * for the device. Otherwise the books of two steps overlap, and nothing is concluded.
 *
 * Owns: its snapshots. Borrows: the device's parts. Threads: one.
 */
#pragma once

#include "plan/player.h"
#include "sim/device/repeat/snapshot.h"

enum {
    SIM_N_MOMENTS = 128 /* of a step, at which one may ask */
};

/* Of one step. */
typedef struct {
    SimSnapshot begin, within;
    unsigned within_at; /* the moment of the step at which `within` was taken */
} SimStepSnapshots;

typedef struct {
    SimParts parts;
    uint32_t steps;                  /* in all */
    SimHostBook *books;              /* of construction and of each step */
    bool rested;                     /* all lanes were, when this step began */
    SimStepSnapshots snapshots[2];   /* room for two steps, which take turns */
    SimStepSnapshots *before, *here; /* the step before, and the one at hand */
    uint64_t n_acts;                 /* what the driver was asked for up to the moment before */
} SimRepeat;

void sim_repeat_init(SimRepeat *repeat, const SimParts *parts, uint32_t steps, SimHostBook *books);
void sim_repeat_clear(SimRepeat *repeat);

/* The instruction before which a moment of a section lies; moment 0 is before the first. */
uint32_t sim_repeat_moment(const PlanRole *role, PlanSection section, unsigned moment);
/* To be called at each moment in turn. True: the rest of this step and all later steps repeat what
 * was played, and their books have been written. */
bool sim_repeat_at(SimRepeat *repeat, const PlanPosition *at, unsigned moment);
