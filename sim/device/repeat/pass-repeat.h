/* sim/device/repeat/pass-repeat.h - passes that are as the pass before them, which need not be
 * played.
 *
 * A step that accumulates plays one pass after the other, and hundreds of them are the same program
 * (sim/device/repeat/passes.h). Where one begins, lanes are at work and buffers wait for their
 * events; if all of that stands as it did where the pass before began, but for the time and for
 * which numbers the pass gave its buffers and events, then this pass is that one again, and so are
 * those behind it that are alike. The device then leaps: what was booked in a pass is booked as
 * often, what is under way ends as much later, and what the last pass left is called what the last
 * of those passed over would have called it. An allocator may come back to where it was in every
 * other pass alone; then pairs of them repeat.
 *
 * Tries are few: what has not settled by then is played. Passes that are not written
 * (plan/fold.h) can only be leapt over.
 *
 * Owns: the states where the last passes began. Borrows: the device's parts. Threads: one. Cost:
 * O(buffers, and instructions of a pass) a try.
 */
#pragma once

#include "sim/device/repeat/mark.h"
#include "sim/device/repeat/passes.h"

enum {
    SIM_MOST_PERIOD = 2 /* passes that repeat together */
};

typedef struct {
    SimParts parts;
    PlanSection section; /* whose passes are known */
    SimPasses passes;
    uint32_t tries;                 /* in this section */
    uint32_t n_folded;              /* of its passes that are not written, those not leapt over */
    SimMark marks[SIM_MOST_PERIOD]; /* where the last passes began, the newest first */
    SimMark here;
    bool *is_made;          /* by buffer: by the pass at hand; false between tries */
    uint32_t n_passed_over; /* of all steps */
} SimPassRepeat;

void sim_pass_repeat_init(SimPassRepeat *repeat, const SimParts *parts);
void sim_pass_repeat_clear(SimPassRepeat *repeat);

/* The passes of the section that is to be played next. */
const SimPasses *sim_pass_repeat_section(SimPassRepeat *repeat, PlanSection section);
/* Before the first instruction of a pass that is not the section's first: how many instructions the
 * device has leapt over, for they repeat those before. */
uint32_t sim_pass_repeat_begins(SimPassRepeat *repeat, int32_t step, uint32_t pass);
