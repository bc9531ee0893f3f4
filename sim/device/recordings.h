/* sim/device/recordings.h - maps an event of the plan, in a step, to the engine's recording.
 *
 * An event is recorded at most once a step, and asked for in the same step or up to PLAN_MAX_BEFORE
 * steps later; what is older is forgotten. Steps count from -1, which is construction.
 *
 * Owns: its arrays. Threads: one. Cost: O(1).
 */
#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#include "plan/plan.h"

enum {
    SIM_REMEMBERED = PLAN_MAX_BEFORE + 1
};

typedef struct {
    struct {
        int32_t step; /* in which it was made */
        uint32_t recording;
    } * of_event[SIM_REMEMBERED];
} SimRecordings;

void sim_recordings_init(SimRecordings *recordings, uint32_t n_events);
void sim_recordings_clear(SimRecordings *recordings);
void sim_recordings_note(SimRecordings *recordings, uint32_t event, int32_t step,
                         uint32_t recording);
/* False when the event was not recorded in that step. */
bool sim_recordings_find(const SimRecordings *recordings, uint32_t event, int32_t step,
                         uint32_t *ret_recording);
