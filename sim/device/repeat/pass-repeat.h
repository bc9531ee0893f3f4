/* sim/device/repeat/pass-repeat.h - leaps over passes of a step that repeat the pass before them.
 *
 * The passes of a step that accumulates are mostly the same program (passes.h). If a pass begins in
 * the same state as the one before it, but for the time and the numbers of buffers and events, it
 * repeats that one, and so do the later passes that are alike. The device then leaps over them:
 * what was booked in a pass is booked as many times, what is under way ends as much later, and the
 * buffers that the last pass left get the numbers that the last skipped pass would have given them.
 * If the allocator returns to its state only every second pass, pairs of passes repeat.
 *
 * After some hundred tries the rest is played. Passes that are not in the plan (plan/fold.h) can
 * only be leapt over.
 *
 * Owns: the states where the last passes began. Borrows: the device's parts. Threads: one. Cost:
 * O(buffers, and instructions of a pass) a try.
 */
#pragma once

#include "sim/device/repeat/passes.h"
#include "sim/device/repeat/snapshot.h"

enum {
    SIM_MOST_PERIOD = 2 /* passes that repeat together */
};

typedef struct {
    SimParts parts;
    PlanSection section; /* the one that `passes` is about */
    SimPasses passes;
    uint32_t tries; /* in this section */
    uint32_t
        n_folded; /* passes that the plan does not write out and that are yet to be leapt over */
    SimSnapshot snapshots[SIM_MOST_PERIOD]; /* where the last passes began, the newest first */
    SimSnapshot here;
    bool *is_made;          /* by buffer: the pass at hand allocates it; false between tries */
    uint32_t n_passed_over; /* passes leapt over, in all steps */
} SimPassRepeat;

void sim_pass_repeat_init(SimPassRepeat *repeat, const SimParts *parts);
void sim_pass_repeat_clear(SimPassRepeat *repeat);

/* The passes of the section that is to be played next. */
const SimPasses *sim_pass_repeat_section(SimPassRepeat *repeat, PlanSection section);
/* Called before the first instruction of each pass but the section's first. Returns how many
 * instructions the device has leapt over, which repeat those before. */
uint32_t sim_pass_repeat_begins(SimPassRepeat *repeat, int32_t step, uint32_t pass);
