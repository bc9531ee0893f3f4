#include "tests/oracle/events.h"

static char *lane_difference(const OracleEvent *theirs, const OracleEvent *ours) {
    if (theirs->lane != ours->lane) {
        return g_strdup_printf("on lane %u in PyTorch, in the plan on %u", theirs->lane,
                               ours->lane);
    }
    for (unsigned lane = 0; lane < PLAN_MAX_LANES; lane++) {
        if (theirs->after.of[lane] != ours->after.of[lane]) {
            return g_strdup_printf(
                "on lane %u, in PyTorch after %u pieces of work of lane %u, in the plan after %u",
                ours->lane, theirs->after.of[lane], lane, ours->after.of[lane]);
        }
    }
    return NULL;
}

char *oracle_event_difference(const OracleEvent *theirs, const OracleEvent *ours, bool of_lanes,
                              bool of_ranks) {
    if (of_ranks && theirs->ranks != ours->ranks) {
        return g_strdup_printf("among %u ranks in PyTorch, in the plan among %u", theirs->ranks,
                               ours->ranks);
    }
    if (theirs->mantissa && !g_str_equal(theirs->mantissa, ours->mantissa)) {
        return g_strdup_printf("in %s in PyTorch, in the plan in %s", theirs->mantissa,
                               ours->mantissa);
    }
    return of_lanes ? lane_difference(theirs, ours) : NULL;
}
