#include "trace/import/to-trace.h"

#include "trace/import/steps.h"

#define NOT_TOLD "(not told)"

typedef struct {
    const Snapshot *snapshot;
    const SnapshotSteps *steps;
    Trace *trace;
    GHashTable *categories; /* name: its number + 1 */
    int64_t origin_us;
    guint step; /* of the steps told, that comes next */
    int32_t first_step;
} Filler;

static uint32_t number_of(Filler *filler, const char *name) {
    guint found = GPOINTER_TO_UINT(g_hash_table_lookup(filler->categories, name));
    if (found == 0) {
        found = trace_add_category(filler->trace, name) + 1;
        g_hash_table_insert(filler->categories, g_strdup(name), GUINT_TO_POINTER(found));
    }
    return found - 1;
}

static uint32_t category_of(Filler *filler, const UnpickledValue *told) {
    g_autofree char *name = told ? g_utf8_make_valid(told->text, told->length) : g_strdup(NOT_TOLD);
    return number_of(filler, name);
}

/* The other's, in its order, and the one that it lacks. */
static void share_categories(Filler *filler, Trace *beside) {
    bool has = false;
    for (guint i = 0; beside && i < beside->categories->len; i++) {
        number_of(filler, beside->categories->pdata[i]);
        has |= g_str_equal(beside->categories->pdata[i], NOT_TOLD);
    }
    number_of(filler, NOT_TOLD);
    if (beside && !has) {
        trace_add_category(beside, NOT_TOLD);
    }
}

static int32_t last_step_of(const Trace *trace) {
    int32_t last = -1;
    for (guint i = 0; trace && i < trace->memory->len; i++) {
        last = MAX(last, trace_memory(trace, i)->step);
    }
    return last;
}

/* The buffer of an allocation is its event's number; what is older has the number behind all. */
static void add_row(Filler *filler, TraceWhat what, uint32_t category, guint buffer, uint64_t bytes,
                    TraceMemoryRow row) {
    TraceInstruction instruction = {.what = (uint8_t)what,
                                    .section = TRACE_SECTION_STEADY,
                                    .kind = TRACE_NONE,
                                    .unit = TRACE_NONE,
                                    .module = TRACE_NONE,
                                    .category = category,
                                    .buffer = buffer,
                                    .bytes = bytes};
    row.instruction = trace_add_instruction(filler->trace, 0, &instruction);
    row.category = category;
    trace_add_memory(filler->trace, &row);
}

static int32_t step_of(Filler *filler, guint event) {
    guint n = snapshot_n_steps(filler->steps);
    if (n == 0) {
        return 0;
    }
    while (filler->step <= n && event >= snapshot_step_begin(filler->steps, filler->step)) {
        filler->step++;
    }
    return MAX(-1, filler->first_step + (int32_t)filler->step - 1);
}

static void add_event(Filler *filler, guint i, uint64_t *allocated) {
    const SnapshotEvent *event = snapshot_event(filler->snapshot, i);
    int32_t step = step_of(filler, i);
    TraceMemoryRow row = {.rank = filler->snapshot->device,
                          .step = step,
                          .host_ns = (event->time_us - filler->origin_us) * 1000,
                          .delta = (int64_t)event->allocated - (int64_t)*allocated,
                          .allocated = event->allocated,
                          .active = event->active,
                          .reserved = event->reserved};
    *allocated = event->allocated;
    bool frees = event->action == SNAPSHOT_FREE || event->action == SNAPSHOT_COMPLETED;
    guint alloc = event->action == SNAPSHOT_ALLOC ? i : event->partner;
    const UnpickledValue *told =
        alloc != SNAPSHOT_NO_EVENT ? snapshot_event(filler->snapshot, alloc)->category : NULL;
    add_row(filler, frees || row.delta == 0 ? TRACE_FREE : TRACE_ALLOC, category_of(filler, told),
            MIN(alloc, filler->snapshot->events->len), event->requested_bytes, row);
}

/* The time of the first event of step 0, from which times count. */
static int64_t origin_of(const Filler *filler) {
    guint n = snapshot_n_steps(filler->steps);
    guint first = n == 0 || filler->first_step > 0
                      ? 0
                      : MIN(snapshot_step_begin(filler->steps, MIN(n, (guint)-filler->first_step)),
                            filler->snapshot->events->len - 1);
    return snapshot_event(filler->snapshot, first)->time_us;
}

Trace *snapshot_to_trace(const Snapshot *snapshot, Trace *beside) {
    g_autoptr(Trace) trace = trace_new();
    g_autoptr(SnapshotSteps) steps = snapshot_steps_new(snapshot);
    g_autoptr(GHashTable) categories = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    guint n = snapshot_n_steps(steps);
    Filler filler = {.snapshot = snapshot,
                     .steps = steps,
                     .trace = trace,
                     .categories = categories,
                     .first_step = beside ? last_step_of(beside) + 1 - (int32_t)n : 0};
    filler.origin_us = origin_of(&filler);
    trace_set(trace, "side", "measured");
    trace_set(trace, "digest", SNAPSHOT_NO_PLAN);
    trace_set(trace, "device", "cuda");
    trace_add_lane(trace, "compute");
    trace_add_phase(trace, NOT_TOLD);
    trace_add_role(trace);
    trace_add_rank(trace, snapshot->device, 0);
    share_categories(&filler, beside);
    uint64_t allocated = 0;
    if (snapshot->active > 0) {
        int64_t begin_us = snapshot_event(snapshot, 0)->time_us;
        TraceMemoryRow row = {.rank = snapshot->device,
                              .step = n > 0 ? -1 : 0,
                              .host_ns = (begin_us - filler.origin_us) * 1000,
                              .delta = (int64_t)snapshot->allocated,
                              .allocated = snapshot->allocated,
                              .active = snapshot->active,
                              .reserved = snapshot->reserved};
        add_row(&filler, TRACE_ALLOC, category_of(&filler, NULL), snapshot->events->len,
                snapshot->allocated, row);
        allocated = snapshot->allocated;
    }
    for (guint i = 0; i < snapshot->events->len; i++) {
        add_event(&filler, i, &allocated);
    }
    return g_steal_pointer(&trace);
}
