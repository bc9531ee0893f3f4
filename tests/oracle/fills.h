/* tests/oracle/fills.h - which of a step's allocations deterministic PyTorch fills.
 *
 * Of a recording: by the operation that asked for the memory. Of a plan: whether a fill_empty
 * writes to it while it lives.
 */
#pragma once

#include "tests/oracle/recording.h"

typedef struct {
    bool is_filled;
    bool is_any;         /* a recording: another operation would ask for it on a GPU */
    const char *made_by; /* a recording: that operation */
} OracleFill;

/* OracleFill, one an allocation of the step, in order. */
GArray *oracle_recorded_fills(const Recording *recording, unsigned step);
GArray *oracle_planned_fills(const PlanRole *role, PlanSection section);
