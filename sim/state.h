/* sim/state.h - a device's state as bytes, to be held against what it was a pass before.
 *
 * Numbers are written one behind the other, times as so long after now: equal bytes are equal
 * states, whenever they came about.
 */
#pragma once

#include <glib.h>
#include <stdint.h>

#include "sim/time.h"

static inline void sim_state_append(GByteArray *state, uint64_t number) {
    g_byte_array_append(state, (const guint8 *)&number, sizeof number);
}

static inline void sim_state_append_time(GByteArray *state, SimTime time) {
    sim_state_append(state, (uint64_t)time);
}

static inline void sim_state_append_real(GByteArray *state, double number) {
    g_byte_array_append(state, (const guint8 *)&number, sizeof number);
}
