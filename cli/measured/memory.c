/* cli/measured/memory.c - a predicted rank's memory beside a snapshot's (measured.h). */
#include <math.h>

#include "cli/measured/measured.h"
#include "models/cluster.h"
#include "trace/ended.h"
#include "trace/idle.h"
#include "trace/import/steps.h"
#include "trace/scale.h"
#include "trace/summary.h"

enum {
    SHOWN = 10, /* surpluses of each life and side */
    ROUNDING = 512
};

/* One allocation of either side. */
typedef struct {
    uint64_t bytes;               /* rounded */
    const UnpickledValue *frames; /* measured */
    uint32_t instruction;         /* predicted */
} Item;

typedef struct {
    GArray *items[2]; /* Item: held, asked for */
} Lists;

static void lists_begin(Lists *lists) {
    for (guint i = 0; i < 2; i++) {
        lists->items[i] = g_array_new(FALSE, FALSE, sizeof(Item));
    }
}

static void lists_end(Lists *lists) {
    for (guint i = 0; i < 2; i++) {
        g_array_unref(lists->items[i]);
    }
}

static void add_item(GArray *items, uint64_t bytes, const UnpickledValue *frames,
                     uint32_t instruction) {
    Item item = {MAX(1, (bytes + ROUNDING - 1) / ROUNDING) * ROUNDING, frames, instruction};
    g_array_append_val(items, item);
}

/* ---- the run --------------------------------------------------------------------------------- */

typedef struct {
    uint64_t most[TRACE_N_STATISTICS], least; /* least allocated */
    guint n_asked;
    double asked_bytes;
} Stretch;

static Stretch stretch_of(const Snapshot *snapshot, guint begin, guint end) {
    Stretch stretch = {.least = UINT64_MAX};
    for (guint i = begin; i < end; i++) {
        const SnapshotEvent *event = snapshot_event(snapshot, i);
        const uint64_t values[TRACE_N_STATISTICS] = {event->allocated, event->active,
                                                     event->reserved};
        for (guint k = 0; k < TRACE_N_STATISTICS; k++) {
            stretch.most[k] = MAX(stretch.most[k], values[k]);
        }
        stretch.least = MIN(stretch.least, event->allocated);
        if (event->action == SNAPSHOT_ALLOC) {
            stretch.n_asked++;
            stretch.asked_bytes += (double)event->requested_bytes;
        }
    }
    return stretch;
}

static void list_measured(const Snapshot *snapshot, guint begin, guint end, Lists *lists) {
    for (guint i = 0; i < snapshot->blocks->len; i++) {
        const SnapshotBlock *block = &g_array_index(snapshot->blocks, SnapshotBlock, i);
        add_item(lists->items[MEASURED_HELD], block->requested_bytes, block->frames, 0);
    }
    for (guint i = 0; i < snapshot->events->len; i++) {
        const SnapshotEvent *event = snapshot_event(snapshot, i);
        bool lone = event->partner == SNAPSHOT_NO_EVENT;
        if (event->action == SNAPSHOT_ALLOC && i >= begin && i < end) {
            add_item(lists->items[MEASURED_ASKED], event->requested_bytes, event->frames, 0);
        } else if (event->action == SNAPSHOT_ALLOC && i < begin &&
                   (lone || event->partner >= end)) {
            add_item(lists->items[MEASURED_HELD], event->requested_bytes, event->frames, 0);
        } else if (event->action == SNAPSHOT_FREE && lone && i >= end) {
            add_item(lists->items[MEASURED_HELD], event->requested_bytes, NULL, 0);
        }
    }
}

/* ---- the prediction -------------------------------------------------------------------------- */

/* Of the rows up to `last`, those of buffers that are allocated and not freed since; except of the
 * step, whose buffers come and go within it. */
static void list_held(const Trace *trace, uint32_t rank, guint last, int32_t but_of_step,
                      GArray *items) {
    uint32_t role = trace_role_of_rank(trace, rank);
    g_autoptr(GHashTable) held = g_hash_table_new(NULL, NULL); /* buffer: row */
    for (guint i = 0; i <= last; i++) {
        const TraceMemoryRow *row = trace_memory(trace, i);
        if (row->rank == rank) {
            uint32_t buffer = trace_instruction(trace, role, row->instruction)->buffer;
            g_hash_table_remove(held, GUINT_TO_POINTER(buffer));
            if (row->delta > 0 && row->step != but_of_step) {
                g_hash_table_insert(held, GUINT_TO_POINTER(buffer), (gpointer)row);
            }
        }
    }
    GHashTableIter at;
    gpointer row;
    g_hash_table_iter_init(&at, held);
    while (g_hash_table_iter_next(&at, NULL, &row)) {
        uint32_t number = ((const TraceMemoryRow *)row)->instruction;
        add_item(items, trace_instruction(trace, role, number)->bytes, NULL, number);
    }
}

/* step: the last. Buffers that it finds and does not free are held throughout it. */
static void list_predicted(const Trace *trace, uint32_t rank, int32_t step, Lists *lists) {
    uint32_t role = trace_role_of_rank(trace, rank);
    for (guint i = 0; i < trace->memory->len; i++) {
        const TraceMemoryRow *row = trace_memory(trace, i);
        if (row->rank == rank && row->step == step && row->delta > 0) {
            add_item(lists->items[MEASURED_ASKED],
                     trace_instruction(trace, role, row->instruction)->bytes, NULL,
                     row->instruction);
        }
    }
    list_held(trace, rank, trace->memory->len - 1, step, lists->items[MEASURED_HELD]);
}

/* Where the prediction is out of memory, or else at its peak: the last of its rows that counts. */
static guint row_at_worst(const Trace *trace, uint32_t rank) {
    TraceOom oom;
    bool ended = trace_get_oom(trace, &oom) && oom.rank == rank;
    guint worst = 0;
    uint64_t most = 0;
    for (guint i = 0; i < trace->memory->len; i++) {
        const TraceMemoryRow *row = trace_memory(trace, i);
        uint64_t allocated = trace_memory_statistic(row, TRACE_ALLOCATED);
        if (row->rank == rank && (ended || allocated > most)) {
            worst = i;
            most = allocated;
        }
    }
    return worst;
}

static Stretch predicted_stretch(const Trace *trace, uint32_t rank, int32_t step) {
    uint32_t role = trace_role_of_rank(trace, rank);
    Stretch stretch = {.least = UINT64_MAX};
    for (guint i = 0; i < trace->memory->len; i++) {
        const TraceMemoryRow *row = trace_memory(trace, i);
        if (row->rank != rank || row->step != step) {
            continue;
        }
        for (guint k = 0; k < TRACE_N_STATISTICS; k++) {
            stretch.most[k] = MAX(stretch.most[k], trace_memory_statistic(row, k));
        }
        stretch.least = MIN(stretch.least, row->allocated);
        if (row->delta > 0) {
            stretch.n_asked++;
            stretch.asked_bytes += (double)trace_instruction(trace, role, row->instruction)->bytes;
        }
    }
    return stretch;
}

/* ---- what one side has oftener --------------------------------------------------------------- */

static int compare_items(gconstpointer a, gconstpointer b) {
    const Item *x = a, *y = b;
    return x->bytes != y->bytes
               ? (x->bytes < y->bytes) - (x->bytes > y->bytes)
               : (x->instruction > y->instruction) - (x->instruction < y->instruction);
}

static char *predicted_place(const Trace *trace, uint32_t role, uint32_t number) {
    const TraceInstruction *instruction = trace_instruction(trace, role, number);
    g_autofree char *owner = trace_place_name(trace, instruction->phase, instruction->unit);
    const char *module = trace_name(trace->modules, instruction->module, "");
    return g_strdup_printf("%s, %s%s%s", (char *)trace->categories->pdata[instruction->category],
                           owner, *module != '\0' ? ", module " : "", module);
}

/* The commonest place of n items of one size, of equal ones the first. */
static char *commonest(const Item *items, guint n, guint side, const Trace *trace, uint32_t role,
                       guint *ret_others) {
    g_autoptr(GHashTable) counts = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    g_autofree char *best = NULL;
    guint most = 0;
    for (guint pass = 0; pass < 2; pass++) { /* count; then look for the first that has most */
        for (guint i = 0; i < n && (pass == 0 || best == NULL); i++) {
            g_autofree char *place = side == 0 ? predicted_place(trace, role, items[i].instruction)
                                               : snapshot_place(items[i].frames);
            guint count = GPOINTER_TO_UINT(g_hash_table_lookup(counts, place));
            if (pass == 0) {
                most = MAX(most, count + 1);
                g_hash_table_replace(counts, g_steal_pointer(&place), GUINT_TO_POINTER(count + 1));
            } else if (count == most) {
                best = g_steal_pointer(&place);
            }
        }
    }
    *ret_others = g_hash_table_size(counts) - 1;
    return g_steal_pointer(&best);
}

static guint run_length(const GArray *items, guint at) {
    guint end = at;
    while (end < items->len &&
           g_array_index(items, Item, end).bytes == g_array_index(items, Item, at).bytes) {
        end++;
    }
    return end - at;
}

/* A surplus, and the first of its items in the list of the side that has more. */
typedef struct {
    MeasuredSurplus surplus;
    guint first;
} Found;

static int compare_found(gconstpointer a, gconstpointer b) {
    const MeasuredSurplus *x = &((const Found *)a)->surplus, *y = &((const Found *)b)->surplus;
    double more_x = (double)x->bytes * fabs((double)x->counts[0] - x->counts[1]);
    double more_y = (double)y->bytes * fabs((double)y->counts[0] - y->counts[1]);
    return more_x != more_y ? (more_x < more_y) - (more_x > more_y)
                            : (x->bytes < y->bytes) - (x->bytes > y->bytes);
}

/* Both lists by size, side by side: Found, most bytes first. ret_paired: the bytes that both have.
 */
static GArray *find(MeasuredLife life, GArray *const lists[2], double *ret_paired) {
    GArray *all = g_array_new(FALSE, FALSE, sizeof(Found));
    guint at[2] = {0, 0};
    *ret_paired = 0;
    g_array_sort(lists[0], compare_items);
    g_array_sort(lists[1], compare_items);
    while (at[0] < lists[0]->len || at[1] < lists[1]->len) {
        uint64_t sizes[2];
        for (guint i = 0; i < 2; i++) {
            sizes[i] = at[i] < lists[i]->len ? g_array_index(lists[i], Item, at[i]).bytes : 0;
        }
        MeasuredSurplus surplus = {.life = life, .bytes = MAX(sizes[0], sizes[1])};
        for (guint i = 0; i < 2; i++) {
            surplus.counts[i] = sizes[i] == surplus.bytes ? run_length(lists[i], at[i]) : 0;
        }
        surplus.side = surplus.counts[1] > surplus.counts[0];
        *ret_paired += (double)surplus.bytes * MIN(surplus.counts[0], surplus.counts[1]);
        if (surplus.counts[0] != surplus.counts[1]) {
            Found found = {surplus, at[surplus.side]};
            g_array_append_val(all, found);
        }
        at[0] += surplus.counts[0];
        at[1] += surplus.counts[1];
    }
    g_array_sort(all, compare_found);
    return all;
}

/* The first few of each side, with where they come from. Returns the bytes that both have. */
static double add_surpluses(Measured *measured, MeasuredLife life, GArray *const lists[2],
                            const Trace *trace, uint32_t role) {
    double paired;
    g_autoptr(GArray) all = find(life, lists, &paired);
    guint n[2] = {0, 0};
    for (guint i = 0; i < all->len; i++) {
        const Found *found = &g_array_index(all, Found, i);
        MeasuredSurplus surplus = found->surplus;
        guint side = surplus.side;
        if (n[side]++ < SHOWN) {
            surplus.place = commonest(&g_array_index(lists[side], Item, found->first),
                                      surplus.counts[side], side, trace, role, &surplus.n_places);
            g_array_append_val(measured->surpluses, surplus);
        }
    }
    for (guint i = 0; i < 2; i++) {
        if (n[i] > SHOWN) {
            measured_note(measured, "%u more sizes %s that only %s are not shown", n[i] - SHOWN,
                          life != MEASURED_ASKED ? "held" : "requested",
                          i == 0 ? "the prediction has" : "the run has");
        }
    }
    return paired;
}

/* ---- the whole ------------------------------------------------------------------------------- */

static void add_stretches(Measured *measured, const char *const names[TRACE_N_STATISTICS],
                          const Stretch *predicted, const Stretch *run) {
    for (guint k = 0; k < TRACE_N_STATISTICS; k++) {
        measured_add(measured, names[k], MEASURED_BYTES, (double)predicted->most[k],
                     (double)run->most[k]);
    }
}

static double sum_of(const GArray *items) {
    double sum = 0;
    for (guint i = 0; i < items->len; i++) {
        sum += (double)g_array_index(items, Item, i).bytes;
    }
    return sum;
}

static bool is_workspace(uint64_t bytes) {
    return bytes == MODEL_CUBLAS_BYTES || bytes == MODEL_CUBLAS_BYTES_SINCE_HOPPER;
}

/* A toy's peak may be mostly that. */
static void note_workspaces(Measured *measured, const Stretch *predicted, const Stretch *run) {
    double bytes = 0, most = (double)run->most[TRACE_ALLOCATED];
    for (guint i = 0; i < measured->surpluses->len; i++) {
        const MeasuredSurplus *more = &g_array_index(measured->surpluses, MeasuredSurplus, i);
        bool is_held = more->life == MEASURED_HELD && more->side == 1 && more->counts[0] == 0;
        bytes += is_held && is_workspace(more->bytes) ? (double)more->bytes * more->counts[1] : 0;
    }
    if (bytes > 0 && bytes < most) {
        measured_note(measured,
                      "%.0f bytes that the run holds are cuBLAS's workspace by their size, which "
                      "foreshard predict prints beside the peaks; without them peak allocated in a "
                      "step is off by %+.1f %%",
                      bytes, 100 * ((double)predicted->most[TRACE_ALLOCATED] / (most - bytes) - 1));
    }
}

static void compare_step(Measured *measured, const Trace *trace, uint32_t rank, int32_t step,
                         const Snapshot *snapshot, const SnapshotSteps *steps) {
    static const char *const names[] = {"peak allocated in a step", "peak active in a step",
                                        "peak reserved in a step"};
    guint last = snapshot_n_steps(steps) - 1;
    guint begin = snapshot_step_begin(steps, last), end = snapshot_step_begin(steps, last + 1);
    Stretch predicted = predicted_stretch(trace, rank, step);
    Stretch run = stretch_of(snapshot, begin, end);
    add_stretches(measured, names, &predicted, &run);
    measured_add(measured, "least allocated in a step", MEASURED_BYTES, (double)predicted.least,
                 (double)run.least);
    measured_add(measured, "requested in a step", MEASURED_BYTES, predicted.asked_bytes,
                 run.asked_bytes);
    measured_add(measured, "allocations in a step", MEASURED_COUNT, predicted.n_asked, run.n_asked);
    Lists lists[2];
    lists_begin(&lists[0]);
    lists_begin(&lists[1]);
    list_predicted(trace, rank, step, &lists[0]);
    list_measured(snapshot, begin, end, &lists[1]);
    double paired[2];
    for (guint life = 0; life < 2; life++) {
        GArray *const both[2] = {lists[0].items[life], lists[1].items[life]};
        paired[life] = add_surpluses(measured, life, both, trace, trace_role_of_rank(trace, rank));
    }
    note_workspaces(measured, &predicted, &run);
    double all = sum_of(lists[1].items[MEASURED_ASKED]);
    measured->paired = all > 0 ? paired[MEASURED_ASKED] / all : NAN;
    if (measured->paired < 0.5) {
        measured_note(measured, "most of what the run requests has no counterpart of its size: did "
                                "batch, sequence, dtype or number of ranks differ from the "
                                "prediction's?");
    }
    lists_end(&lists[0]);
    lists_end(&lists[1]);
}

/* The first time that the run was out of memory; the number of events: it never was. */
static guint first_oom(const Snapshot *snapshot) {
    guint i = 0;
    while (i < snapshot->events->len && snapshot_event(snapshot, i)->action != SNAPSHOT_OOM) {
        i++;
    }
    return i;
}

static void compare_oom(Measured *measured, const Trace *trace, uint32_t rank,
                        const Snapshot *snapshot) {
    guint at = first_oom(snapshot);
    if (at == snapshot->events->len || trace->memory->len == 0) {
        return;
    }
    const SnapshotEvent *oom = snapshot_event(snapshot, at);
    guint worst = row_at_worst(trace, rank);
    const TraceMemoryRow *row = trace_memory(trace, worst);
    static const char *const names[] = {"allocated, out of memory", "active, out of memory",
                                        "reserved, out of memory"};
    const uint64_t run[] = {oom->allocated, oom->active, oom->reserved};
    for (guint k = 0; k < TRACE_N_STATISTICS; k++) {
        measured_add(measured, names[k], MEASURED_BYTES, (double)trace_memory_statistic(row, k),
                     (double)run[k]);
    }
    Lists lists[2];
    lists_begin(&lists[0]);
    lists_begin(&lists[1]);
    list_held(trace, rank, worst, INT32_MIN, lists[0].items[MEASURED_HELD]);
    list_measured(snapshot, at, at, &lists[1]);
    GArray *const both[2] = {lists[0].items[MEASURED_HELD], lists[1].items[MEASURED_HELD]};
    add_surpluses(measured, MEASURED_AT_OOM, both, trace, trace_role_of_rank(trace, rank));
    lists_end(&lists[0]);
    lists_end(&lists[1]);
    TraceOom ended;
    if (!trace_get_oom(trace, &ended)) {
        measured_note(measured, "the run was out of memory and the prediction is not, so its peak "
                                "stands there");
    }
}

static int32_t last_step(const Trace *trace, uint32_t rank) {
    int32_t last = INT32_MIN;
    for (guint i = 0; i < trace->memory->len; i++) {
        const TraceMemoryRow *row = trace_memory(trace, i);
        last = row->rank == rank ? MAX(last, row->step) : last;
    }
    return last;
}

/* How many times the optimizer had run, of what was recorded. */
static guint updates_before(const Snapshot *snapshot, int64_t time_us) {
    guint n = 0;
    for (guint i = 0; i < snapshot->annotations->len; i++) {
        const SnapshotAnnotation *annotation =
            &g_array_index(snapshot->annotations, SnapshotAnnotation, i);
        n += annotation->ends && annotation->time_us <= time_us &&
             steps_is_optimizer(annotation->name, annotation->name_length);
    }
    return n;
}

static void note_oom(Measured *measured, const Snapshot *snapshot) {
    const SnapshotEvent *oom = snapshot_event(snapshot, first_oom(snapshot));
    guint n = updates_before(snapshot, oom->time_us);
    TraceScale scale = trace_scale_bytes((double)oom->requested_bytes);
    g_autofree char *place = snapshot_place(oom->frames);
    g_autofree char *bytes =
        oom->requested_bytes == 0 /* not told */
            ? g_strdup("what was")
            : g_strdup_printf("%.2f %s,", (double)oom->requested_bytes / scale.per_unit,
                              scale.unit);
    measured_note(measured,
                  "the run was out of memory %u time%s, first after %u step%s of the optimizer: no "
                  "room for %s asked for at %s",
                  snapshot->n_ooms, snapshot->n_ooms == 1 ? "" : "s", n, n == 1 ? "" : "s", bytes,
                  place);
}

static void note_run(Measured *measured, const Snapshot *snapshot, const SnapshotSteps *steps) {
    if (steps->from == STEPS_UNKNOWN && snapshot->n_ooms == 0) {
        measured_note(measured,
                      "no steps were found in the snapshot (no ProfilerStep#, no Optimizer.step#, "
                      "nothing that repeats itself): record two steps or more");
    } else if (steps->from == STEPS_REPEATED) {
        measured_note(measured, "steps were found by what repeats itself: each is as long as a "
                                "step, but may begin within one");
    }
    if (snapshot->active > 0) {
        TraceScale scale = trace_scale_bytes((double)snapshot->active);
        measured_note(measured,
                      "the recorded history begins with %.2f %s already in use; only what lives "
                      "to its end has a known origin",
                      (double)snapshot->active / scale.per_unit, scale.unit);
    }
    if (snapshot->n_ooms > 0) {
        note_oom(measured, snapshot);
    }
    if (snapshot->n_odd > 0) {
        measured_note(measured,
                      "%u events contradict others (a block freed that was not there, or twice); "
                      "sums may be off",
                      snapshot->n_odd);
    }
}

Measured *measured_memory(const Trace *trace, const Snapshot *snapshot,
                          const MeasuredOptions *options, GError **error) {
    static const char *const names[] = {"peak allocated, whole run", "peak active, whole run",
                                        "peak reserved, whole run"};
    uint32_t rank = measured_rank(trace, options, error);
    int32_t step = rank != TRACE_NONE ? last_step(trace, rank) : 0;
    if (rank == TRACE_NONE) {
        return NULL;
    }
    if (step == INT32_MIN) {
        g_set_error(error, TRACE_ERROR, TRACE_ERROR_VALUE,
                    "%s: rank %u has no memory rows to hold against %s", options->trace_name, rank,
                    options->file_name);
        return NULL;
    }
    g_autoptr(SnapshotSteps) steps = snapshot_steps_new(snapshot);
    g_autoptr(TraceSummary) summary = trace_summary_new(trace, rank);
    g_autoptr(Measured) measured = measured_new("memory");
    g_autofree char *step_name = trace_step_name(step);
    g_autofree char *ended = trace_oom_text(trace);
    measured->sources[0] = g_strdup_printf("%s: rank %u, %s%s%s", options->trace_name, rank,
                                           step_name, ended ? ", " : "", ended ? ended : "");
    guint n = snapshot_n_steps(steps);
    g_autofree char *told = n > 0 ? g_strdup_printf("%u whole step%s by %s, the last compared", n,
                                                    n == 1 ? "" : "s", steps_from_text(steps->from))
                                  : g_strdup("no steps found");
    measured->sources[1] = g_strdup_printf("%s: device %u, %u events, %s", options->file_name,
                                           snapshot->device, snapshot->events->len, told);
    measured->paired = NAN;
    if (n > 0) {
        compare_step(measured, trace, rank, step, snapshot, steps);
    }
    compare_oom(measured, trace, rank, snapshot);
    Stretch all = stretch_of(snapshot, 0, snapshot->events->len);
    all.most[TRACE_ALLOCATED] = MAX(all.most[TRACE_ALLOCATED], snapshot->allocated);
    all.most[TRACE_ACTIVE] = MAX(all.most[TRACE_ACTIVE], snapshot->active);
    all.most[TRACE_RESERVED] = MAX(all.most[TRACE_RESERVED], snapshot->reserved);
    Stretch predicted = {0};
    for (guint k = 0; k < TRACE_N_STATISTICS; k++) {
        predicted.most[k] = summary->peaks[k].bytes;
    }
    add_stretches(measured, names, &predicted, &all);
    measured_add(measured, "allocation retries", MEASURED_COUNT,
                 trace_idle_book(trace, summary).n_returns, snapshot->n_retries);
    note_run(measured, snapshot, steps);
    return g_steal_pointer(&measured);
}
