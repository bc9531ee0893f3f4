/* plan/null-device.c - a device that only counts (player.h): what a plan asks of a machine. */
#include <string.h>

#include "plan/player.h"

static PlanAnswer section_ends(gpointer self, const PlanPosition *at, GError **error) {
    PlanNullCounts *counts = self;
    counts->floor_bytes = counts->live_bytes;
    return PLAN_DONE;
}

static PlanAnswer null_alloc(gpointer self, const PlanPosition *at, uint32_t buffer,
                             GError **error) {
    PlanNullCounts *counts = self;
    const PlanBuffer *b = &at->role->buffers[buffer];
    counts->calls[PLAN_ALLOC]++;
    counts->live_bytes += b->bytes;
    counts->live[b->sub] += b->bytes;
    if (counts->live_bytes > counts->peak_bytes) {
        counts->peak_bytes = counts->live_bytes;
        counts->peak_section = at->section;
        memcpy(counts->at_peak, counts->live, sizeof counts->live);
    }
    return PLAN_DONE;
}

static PlanAnswer null_free(gpointer self, const PlanPosition *at, uint32_t buffer,
                            GError **error) {
    PlanNullCounts *counts = self;
    const PlanBuffer *b = &at->role->buffers[buffer];
    counts->calls[PLAN_FREE]++;
    counts->live_bytes -= b->bytes;
    counts->live[b->sub] -= b->bytes;
    return PLAN_DONE;
}

static PlanAnswer count(PlanNullCounts *counts, PlanInstrKind kind) {
    counts->calls[kind]++;
    return PLAN_DONE;
}

static PlanAnswer null_mark(gpointer self, const PlanPosition *at, uint32_t buffer, uint32_t lane,
                            GError **error) {
    return count(self, PLAN_MARK);
}

static PlanAnswer null_launch(gpointer self, const PlanPosition *at, const PlanOp *op,
                              uint32_t lane, GError **error) {
    return count(self, PLAN_LAUNCH);
}

static PlanAnswer null_record(gpointer self, const PlanPosition *at, uint32_t event, uint32_t lane,
                              GError **error) {
    return count(self, PLAN_RECORD);
}

static PlanAnswer null_wait(gpointer self, const PlanPosition *at, uint32_t event,
                            uint32_t steps_before, uint32_t lane, GError **error) {
    return count(self, PLAN_WAIT);
}

static PlanAnswer null_host_wait(gpointer self, const PlanPosition *at, uint32_t event,
                                 uint32_t steps_before, GError **error) {
    return count(self, PLAN_HOST_WAIT);
}

static PlanAnswer null_host_op(gpointer self, const PlanPosition *at, const PlanOp *op,
                               GError **error) {
    return count(self, PLAN_HOST_OP);
}

const PlanDevice plan_null_device = {
    .name = "null",
    .section_ends = section_ends,
    .alloc = null_alloc,
    .free = null_free,
    .mark = null_mark,
    .launch = null_launch,
    .record = null_record,
    .wait = null_wait,
    .host_wait = null_host_wait,
    .host_op = null_host_op,
};
