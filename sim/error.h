/* sim/error.h - what the simulator refuses, of whatever file: one domain for the room. */
#pragma once

#include <glib.h>

#define SIM_ERROR (sim_error_quark())
GQuark sim_error_quark(void);

typedef enum {
    SIM_ERROR_CLUSTER, /* plan and cluster do not go together; the message says what to do */
    SIM_ERROR_PLAN,    /* the plan waits for what it never records, or asks for endless memory */
    SIM_ERROR_FOLDED   /* passes that are not written may not repeat others: build it whole */
} SimError;
