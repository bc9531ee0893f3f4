/* tests/oracle/check.c - holds plans against recordings of real PyTorch.
 *
 * check RECORD.jsonl...: for each, the plan for its settings is built, and step by step compared:
 * parameters; bytes by category at start and end; the peak, exact and rounded to 512 bytes, with
 * its categories and module; every collective in order with unit, bytes and phase; and, where the
 * file has events, every allocation, free and collective in order. Exits 0 when all is equal, 1
 * with what differs, 2 when a file cannot be read or expressed.
 */
#include <stdio.h>
#include <string.h>

#include "plan/op-work.h"
#include "tests/oracle/recording.h"

/* The recorder's categories, folded to ours. */
static const struct {
    const char *recorded;
    PlanSubcategory sub;
} folds[] = {
    {"param_sharded", PLAN_PARAMETERS_SHARDED},
    {"param_unsharded", PLAN_PARAMETERS_UNSHARDED},
    {"grad_sharded", PLAN_GRADIENTS_SHARDED},
    {"reduce_scatter_output", PLAN_GRADIENTS_SHARDED},
    {"grad_unsharded", PLAN_GRADIENTS_UNSHARDED},
    {"optimizer", PLAN_OPTIMIZER_STATE},
    {"all_gather_input", PLAN_COMMUNICATION_GATHER},
    {"all_gather_output", PLAN_COMMUNICATION_GATHER},
    {"reduce_scatter_input", PLAN_COMMUNICATION_REDUCE},
    {"all_reduce", PLAN_COMMUNICATION_REPLICATE},
    {"activation", PLAN_ACTIVATIONS_SAVED},
    {"input", PLAN_ACTIVATIONS_INPUT},
    {"temporary", PLAN_TEMPORARY_OP},
};

static const char *const kinds[][2] = {{"all_gather_into_tensor", "all_gather"},
                                       {"reduce_scatter_tensor", "reduce_scatter"},
                                       {"all_reduce", "all_reduce"},
                                       {"broadcast", "broadcast"}};

typedef struct {
    const Plan *plan;
    const PlanRole *role;
    const char *file_name;
    gint64 step;
    unsigned n_differences;
    uint64_t live[2][PLAN_N_SUBCATEGORIES]; /* exact, rounded */
} Check;

static void G_GNUC_PRINTF(2, 3) differ(Check *c, const char *format, ...) {
    if (c->n_differences++ < 20) {
        va_list args;
        va_start(args, format);
        g_autofree char *message = g_strdup_vprintf(format, args);
        va_end(args);
        printf("%s: step %" G_GINT64_FORMAT ": %s\n", c->file_name, c->step, message);
    }
}

static uint64_t rounded(uint64_t bytes) {
    return (bytes + 511) / 512 * 512;
}

static uint64_t sum(const uint64_t *by_sub) {
    uint64_t total = 0;
    for (unsigned i = 0; i < PLAN_N_SUBCATEGORIES; i++) {
        total += by_sub[i];
    }
    return total;
}

static void compare_breakdown(Check *c, const char *what, JsonObject *recorded,
                              const uint64_t *ours) {
    uint64_t theirs[PLAN_N_SUBCATEGORIES] = {0};
    for (unsigned i = 0; i < G_N_ELEMENTS(folds); i++) {
        if (json_object_has_member(recorded, folds[i].recorded)) {
            theirs[folds[i].sub] +=
                (uint64_t)json_object_get_int_member(recorded, folds[i].recorded);
        }
    }
    uint64_t total = (uint64_t)json_object_get_int_member(recorded, "total");
    if (sum(theirs) != total) {
        differ(c, "%s: the recording has a category that is not known here", what);
    }
    if (sum(ours) != total) {
        differ(c, "%s: PyTorch %" G_GUINT64_FORMAT " bytes, plan %" G_GUINT64_FORMAT, what, total,
               sum(ours));
    }
    for (unsigned i = 0; i < PLAN_N_SUBCATEGORIES; i++) {
        if (theirs[i] != ours[i]) {
            differ(c, "%s, %s: PyTorch %" G_GUINT64_FORMAT " bytes, plan %" G_GUINT64_FORMAT, what,
                   plan_subcategory_name((PlanSubcategory)i), theirs[i], ours[i]);
        }
    }
}

typedef struct {
    uint64_t total, at[PLAN_N_SUBCATEGORIES];
    const PlanInstr *instr;
} Peak;

static PlanSection section_of(gint64 step) {
    return step == 0 ? PLAN_SECTION_FIRST : step == 1 ? PLAN_SECTION_SECOND : PLAN_SECTION_STEADY;
}

/* Plays a section's allocations; what a step starts with is already live. */
static void play(Check *c, PlanSection section, Peak peaks[2]) {
    for (unsigned r = 0; r < 2; r++) {
        peaks[r] = (Peak){.total = sum(c->live[r])};
        memcpy(peaks[r].at, c->live[r], sizeof peaks[r].at);
    }
    for (uint32_t i = 0; i < c->role->n_instrs[section]; i++) {
        const PlanInstr *instr = &c->role->sections[section][i];
        if (instr->kind != PLAN_ALLOC && instr->kind != PLAN_FREE) {
            continue;
        }
        const PlanBuffer *b = &c->role->buffers[instr->arg];
        uint64_t sizes[] = {b->bytes, rounded(b->bytes)};
        for (unsigned r = 0; r < 2; r++) {
            c->live[r][b->sub] += instr->kind == PLAN_ALLOC ? sizes[r] : -sizes[r];
            if (sum(c->live[r]) > peaks[r].total) {
                peaks[r] = (Peak){.total = sum(c->live[r]), .instr = instr};
                memcpy(peaks[r].at, c->live[r], sizeof peaks[r].at);
            }
        }
    }
}

static void compare_peak(Check *c, const char *key, JsonObject *summary, const Peak *ours) {
    JsonObject *recorded = json_object_get_object_member(summary, key);
    g_autofree char *what = g_strdup_printf("%s", key);
    compare_breakdown(c, what, json_object_get_object_member(recorded, "breakdown"), ours->at);
    JsonObject *where = json_object_get_object_member(recorded, "where");
    if (!where || !json_object_has_member(where, "module") || !ours->instr) {
        return;
    }
    const char *module = json_object_get_string_member(where, "module");
    uint32_t id = ours->instr->module;
    const char *mine = id == PLAN_NONE ? "" : c->plan->modules[id].name;
    if (!*module || id == PLAN_NONE) {
        return; /* the recorder does not always know */
    }
    if (!g_str_equal(module, *mine ? mine : "root")) {
        differ(c, "%s falls in module %s, in the plan in %s", key, module, *mine ? mine : "root");
    }
}

/* ---- collectives ---------------------------------------------------------------------------- */

static const char *recorded_kind(const PlanOp *op) {
    for (unsigned i = 0; i < G_N_ELEMENTS(kinds); i++) {
        if (g_str_equal(plan_op_info((PlanOpKind)op->kind)->name, kinds[i][1])) {
            return kinds[i][0];
        }
    }
    return "none";
}

static uint64_t output_bytes(const PlanRole *role, const PlanOp *op) {
    uint64_t whole = (uint64_t)plan_op_work(role, op).bytes;
    return op->kind == PLAN_OP_REDUCE_SCATTER ? whole / (uint64_t)plan_op_dims(role, op)[1] : whole;
}

static const PlanInstr *next_collective(const Check *c, PlanSection section, uint32_t *at) {
    while (*at < c->role->n_instrs[section]) {
        const PlanInstr *instr = &c->role->sections[section][(*at)++];
        if (instr->kind == PLAN_LAUNCH &&
            plan_op_is_collective((PlanOpKind)c->role->ops[instr->arg].kind)) {
            return instr;
        }
    }
    return NULL;
}

static void compare_collective(Check *c, unsigned i, JsonArray *recorded, const PlanInstr *instr) {
    const PlanOp *op = &c->role->ops[instr->arg];
    const char *unit =
        json_array_get_null_element(recorded, 1) ? "" : json_array_get_string_element(recorded, 1);
    const char *our_unit =
        *unit && instr->unit != PLAN_NONE ? c->plan->units[instr->unit].name : "";
    uint64_t bytes = (uint64_t)json_array_get_int_element(recorded, 2);
    const char *kind = json_array_get_string_element(recorded, 0);
    const char *phase = json_array_get_string_element(recorded, 4);
    if (!g_str_equal(kind, recorded_kind(op)) || !g_str_equal(unit, our_unit) ||
        bytes != output_bytes(c->role, op) ||
        !g_str_equal(phase, plan_phase_name((PlanPhase)instr->phase))) {
        differ(c,
               "collective %u: PyTorch %s of %s, %" G_GUINT64_FORMAT
               " bytes in %s; plan %s of %s, %" G_GUINT64_FORMAT " bytes in %s",
               i, kind, unit, bytes, phase, recorded_kind(op), our_unit, output_bytes(c->role, op),
               plan_phase_name((PlanPhase)instr->phase));
    }
}

static void compare_collectives(Check *c, JsonObject *summary, PlanSection section) {
    JsonArray *order = json_object_get_array_member(summary, "collective_order");
    uint32_t at = 0;
    unsigned n = 0;
    for (const PlanInstr *instr; (instr = next_collective(c, section, &at)); n++) {
        if (n < json_array_get_length(order)) {
            compare_collective(c, n, json_array_get_array_element(order, n), instr);
        }
    }
    if (n != json_array_get_length(order)) {
        differ(c, "PyTorch has %u collectives, the plan %u", json_array_get_length(order), n);
    }
}

/* ---- every event, where the recording has them ---------------------------------------------- */

typedef struct {
    char what; /* alloc, free, mark, collective, host waits */
    uint64_t bytes;
    /* A free or mark: which allocation of this step it is of, NONE for an older one. A wait: which
     * recording of its step. */
    uint32_t which;
    unsigned before; /* a wait: how many steps ago that was recorded */
} Event;

/* A recording numbers blocks and events from start to end. */
typedef struct {
    GHashTable *stream_of; /* block: its stream's name */
    GHashTable *recorded;  /* event: step << 16 | number in it */
} Numbers;

static gpointer number_at(JsonObject *line, const char *key) {
    return GINT_TO_POINTER((gint)json_object_get_int_member(line, key));
}

static Numbers numbers_of(const Recording *recording) {
    Numbers n = {g_hash_table_new(NULL, NULL), g_hash_table_new(NULL, NULL)};
    for (unsigned step = 0; step < recording->events->len; step++) {
        const GPtrArray *lines = recording->events->pdata[step];
        unsigned n_recorded = 0;
        for (unsigned i = 0; i < lines->len; i++) {
            JsonObject *line = lines->pdata[i];
            const char *kind = json_object_get_string_member(line, "kind");
            if (g_str_equal(kind, "alloc") || g_str_equal(kind, "alive")) {
                g_hash_table_insert(n.stream_of, number_at(line, "block"),
                                    (gpointer)json_object_get_string_member(line, "stream"));
            } else if (g_str_equal(kind, "event_record")) {
                g_hash_table_insert(n.recorded, number_at(line, "event"),
                                    GUINT_TO_POINTER(step << 16 | n_recorded++));
            }
        }
    }
    return n;
}

static bool is_mark(const Numbers *n, JsonObject *line) {
    if (json_object_get_null_member(line, "block")) {
        return false; /* a storage without bytes */
    }
    const char *own = g_hash_table_lookup(n->stream_of, number_at(line, "block"));
    return own && !g_str_equal(own, json_object_get_string_member(line, "stream"));
}

static bool is_made_by(JsonObject *line, const char *op) {
    return json_object_has_member(line, "op") &&
           g_str_has_prefix(json_object_get_string_member(line, "op"), op);
}

/* A functional collective makes its result and reduces it in place; the recorder notes it before
 * what it makes. What waiting for it returns is the same tensor; on tensors without memory it is a
 * new one, and the first dies at once. Puts both right. */
static GPtrArray *as_on_a_device(GPtrArray *lines) {
    GPtrArray *kept = g_ptr_array_new();
    gint64 result = -1, waited = -1;
    for (unsigned i = 0; i < lines->len; i++) {
        JsonObject *line = lines->pdata[i];
        bool has_block =
            json_object_has_member(line, "block") && !json_object_get_null_member(line, "block");
        gint64 block = has_block ? json_object_get_int_member(line, "block") : -1;
        if (is_made_by(line, "_c10d_functional.wait_tensor")) {
            waited = block;
        } else if (is_made_by(line, "_c10d_functional.")) {
            result = block;
            waited = -1;
            g_ptr_array_insert(kept, (gint)kept->len - 1, line);
        } else if (waited >= 0 && block == result) {
            continue;
        } else {
            if (waited >= 0 && block == waited) {
                json_object_set_int_member(line, "block", result);
            }
            g_ptr_array_add(kept, line);
        }
    }
    return kept;
}

static GArray *recorded_events(const Numbers *n, const GPtrArray *lines, unsigned step) {
    GArray *events = g_array_new(FALSE, FALSE, sizeof(Event));
    g_autoptr(GHashTable) blocks = g_hash_table_new(NULL, NULL);
    uint32_t n_allocs = 0;
    for (unsigned i = 0; i < lines->len; i++) {
        JsonObject *line = lines->pdata[i];
        const char *kind = json_object_get_string_member(line, "kind");
        Event e = {0};
        if (g_str_equal(kind, "alloc")) {
            e = (Event){.what = 'a', .bytes = (uint64_t)json_object_get_int_member(line, "bytes")};
            g_hash_table_insert(blocks, number_at(line, "block"), GUINT_TO_POINTER(++n_allocs));
        } else if (g_str_equal(kind, "free") ||
                   (g_str_equal(kind, "record_stream") && is_mark(n, line))) {
            gpointer which = g_hash_table_lookup(blocks, number_at(line, "block"));
            e = (Event){.what = *kind == 'f' ? 'f' : 'm',
                        .which = which ? GPOINTER_TO_UINT(which) - 1 : PLAN_NONE};
        } else if (g_str_equal(kind, "collective")) {
            e = (Event){.what = 'c',
                        .bytes = (uint64_t)json_object_get_int_member(line, "output_bytes")};
        } else if (g_str_equal(kind, "event_synchronize")) {
            guint at = GPOINTER_TO_UINT(g_hash_table_lookup(n->recorded, number_at(line, "event")));
            e = (Event){.what = 'h', .which = at & 0xffff, .before = step - (at >> 16)};
        }
        if (e.what) {
            g_array_append_val(events, e);
        }
    }
    return events;
}

static GArray *planned_events(const Check *c, PlanSection section) {
    GArray *events = g_array_new(FALSE, FALSE, sizeof(Event));
    g_autofree uint32_t *alloc_of = g_new(uint32_t, c->role->n_buffers);
    memset(alloc_of, 0xff, c->role->n_buffers * sizeof *alloc_of);
    uint32_t n_allocs = 0;
    for (uint32_t i = 0; i < c->role->n_instrs[section]; i++) {
        const PlanInstr *instr = &c->role->sections[section][i];
        Event e = {0};
        if (instr->kind == PLAN_ALLOC) {
            e = (Event){.what = 'a', .bytes = c->role->buffers[instr->arg].bytes};
            alloc_of[instr->arg] = n_allocs++;
        } else if (instr->kind == PLAN_FREE || instr->kind == PLAN_MARK) {
            e = (Event){.what = instr->kind == PLAN_FREE ? 'f' : 'm',
                        .which = alloc_of[instr->arg]};
        } else if (instr->kind == PLAN_LAUNCH &&
                   plan_op_is_collective((PlanOpKind)c->role->ops[instr->arg].kind)) {
            e = (Event){.what = 'c', .bytes = output_bytes(c->role, &c->role->ops[instr->arg])};
        } else if (instr->kind == PLAN_HOST_WAIT) {
            e = (Event){.what = 'h', .which = instr->arg, .before = instr->before};
        }
        if (e.what) {
            g_array_append_val(events, e);
        }
    }
    return events;
}

static void compare_events(Check *c, const Recording *recording, unsigned step,
                           PlanSection section) {
    g_autoptr(GPtrArray) kept = as_on_a_device(recording->events->pdata[step]);
    Numbers numbers = numbers_of(recording);
    g_autoptr(GArray) theirs = recorded_events(&numbers, kept, step);
    g_hash_table_unref(numbers.stream_of);
    g_hash_table_unref(numbers.recorded);
    g_autoptr(GArray) ours = planned_events(c, section);
    for (unsigned i = 0; i < MIN(theirs->len, ours->len); i++) {
        const Event *a = &g_array_index(theirs, Event, i), *b = &g_array_index(ours, Event, i);
        if (a->what != b->what || a->bytes != b->bytes || a->which != b->which ||
            a->before != b->before) {
            differ(c,
                   "event %u: PyTorch %c of %" G_GUINT64_FORMAT " bytes (#%d@-%u), plan %c of "
                   "%" G_GUINT64_FORMAT " bytes (#%d@-%u)",
                   i, a->what, a->bytes, (int)a->which, a->before, b->what, b->bytes, (int)b->which,
                   b->before);
            return; /* what follows is shifted */
        }
    }
    if (theirs->len != ours->len) {
        differ(c, "PyTorch has %u events, the plan %u", theirs->len, ours->len);
    }
}

/* ---- a recording ---------------------------------------------------------------------------- */

static void check_step(Check *c, const Recording *recording, unsigned i) {
    JsonObject *summary = recording->summaries->pdata[i];
    c->step = json_object_get_int_member(summary, "step");
    PlanSection section = section_of(c->step);
    Peak peaks[2];
    compare_breakdown(c, "start", json_object_get_object_member(summary, "start"), c->live[0]);
    compare_breakdown(c, "start_rounded", json_object_get_object_member(summary, "start_rounded"),
                      c->live[1]);
    play(c, section, peaks);
    compare_peak(c, "peak_bytes", summary, &peaks[0]);
    compare_peak(c, "peak_rounded", summary, &peaks[1]);
    compare_breakdown(c, "end", json_object_get_object_member(summary, "end"), c->live[0]);
    compare_breakdown(c, "end_rounded", json_object_get_object_member(summary, "end_rounded"),
                      c->live[1]);
    compare_collectives(c, summary, section);
    if (i < recording->events->len) {
        compare_events(c, recording, i, section);
    }
}

static int check_file(const char *path) {
    g_autoptr(GError) error = NULL;
    g_autoptr(Recording) recording = recording_read(path, &error);
    g_autoptr(Plan) plan = recording ? recording_plan(recording, &error) : NULL;
    if (!plan) {
        fprintf(stderr, "check: %s\n", error->message);
        return 2;
    }
    JsonObject *options = json_object_get_object_member(recording->header, "options");
    uint32_t rank = (uint32_t)json_object_get_int_member(options, "rank");
    Check c = {.plan = plan, .file_name = path};
    c.role = &plan->roles[rank < plan->world ? plan_role_of_rank(plan, rank) : 0];
    uint64_t parameters = 0;
    for (uint32_t i = 0; i < plan->n_parameters; i++) {
        parameters += plan->parameters[i].elements;
    }
    uint64_t recorded = (uint64_t)json_object_get_int_member(recording->header, "parameters");
    if (parameters != recorded) {
        differ(&c, "PyTorch has %" G_GUINT64_FORMAT " parameters, the plan %" G_GUINT64_FORMAT,
               recorded, parameters);
    }
    Peak unused[2];
    play(&c, PLAN_SECTION_CONSTRUCT, unused);
    for (unsigned i = 0; i < recording->summaries->len; i++) {
        check_step(&c, recording, i);
    }
    if (c.n_differences) {
        printf("%s: %u differences\n", path, c.n_differences);
    } else {
        printf("%s: equal in %u steps\n", path, recording->summaries->len);
    }
    return c.n_differences > 0;
}

int main(int argc, char **argv) {
    if (argc < 2) {
        fprintf(stderr, "usage: check RECORD.jsonl...\n");
        return 2;
    }
    int worst = 0;
    for (int i = 1; i < argc; i++) {
        int status = check_file(argv[i]);
        worst = MAX(worst, status);
    }
    return worst;
}
