#include "sim/device/recordings.h"

static unsigned slot_of(int32_t step) {
    return (unsigned)(step + 1) % SIM_REMEMBERED;
}

void sim_recordings_init(SimRecordings *recordings, uint32_t n_events) {
    for (unsigned slot = 0; slot < SIM_REMEMBERED; slot++) {
        recordings->of_event[slot] = g_malloc_n(n_events, sizeof *recordings->of_event[slot]);
        for (uint32_t event = 0; event < n_events; event++) {
            recordings->of_event[slot][event].step = INT32_MIN;
        }
    }
}

void sim_recordings_clear(SimRecordings *recordings) {
    for (unsigned slot = 0; slot < SIM_REMEMBERED; slot++) {
        g_clear_pointer(&recordings->of_event[slot], g_free);
    }
}

void sim_recordings_note(SimRecordings *recordings, uint32_t event, int32_t step,
                         uint32_t recording) {
    recordings->of_event[slot_of(step)][event].step = step;
    recordings->of_event[slot_of(step)][event].recording = recording;
}

bool sim_recordings_find(const SimRecordings *recordings, uint32_t event, int32_t step,
                         uint32_t *ret_recording) {
    if (step < -1 || recordings->of_event[slot_of(step)][event].step != step) {
        return false;
    }
    *ret_recording = recordings->of_event[slot_of(step)][event].recording;
    return true;
}
