/* sim/error.h - the error domain of this room: why a prediction is refused. */
#pragma once

#include <glib.h>

#define SIM_ERROR (sim_error_quark())
GQuark sim_error_quark(void);

typedef enum {
    SIM_ERROR_CLUSTER, /* plan and cluster do not go together; the message says what to do */
    SIM_ERROR_PLAN,    /* the plan waits for what it never records, or asks for endless memory */
    SIM_ERROR_FOLDED   /* the plan leaves out passes that do not repeat: build it whole */
} SimError;
