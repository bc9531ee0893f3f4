/* tests/oracle/check.c - holds plans against recordings of real PyTorch.
 *
 * check RECORD.jsonl...: for each, the plan for its settings is built, and step by step compared:
 * parameters; bytes by category at start and end; the peak, exact and rounded to 512 bytes, with
 * its categories and module, and likewise that of an evaluation; every collective in order with
 * unit, bytes and phase; and, where the file has events, what lives to begin with and every
 * allocation, free and collective in order, of construction too where it has those. Exits 0 when
 * all is equal, 1 with what differs, 2 when a file cannot be read or expressed.
 */
#include <stdio.h>
#include <string.h>

#include "plan/op/work.h"
#include "tests/oracle/events.h"
#include "tests/oracle/fills.h"
#include "tests/oracle/live.h"

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
                                       {"all_to_all_single", "pass_on"},
                                       {"all_to_all_single", "all_to_all"},
                                       {"all_to_all_single", "uneven_all_to_all"},
                                       {"all_reduce", "all_reduce"},
                                       {"all_reduce", "host_all_reduce"},
                                       {"broadcast", "broadcast"},
                                       {"barrier", "barrier"},
                                       {"take", "pull"},
                                       {"take", "swap"},
                                       {"send", "send"},
                                       {"receive", "receive"},
                                       {"exchange", "exchange"}};

typedef struct {
    const Plan *plan;
    const PlanRole *role;
    const char *file_name;
    gint64 step;
    unsigned n_differences;
    OracleLive live;
    OracleRecorded *recorded;
    OraclePlanned *planned;
    uint64_t forgotten;   /* recording_forgotten_bytes() */
    bool is_compiled;     /* recording_is_compiled() */
    bool is_in_parts;     /* recording_is_compiled_in_parts() */
    bool is_whole;        /* recording_is_compiled_whole() */
    bool is_static;       /* recording_has_third_kind() */
    bool knows_lanes;     /* recording_knows_lanes() */
    bool knows_frees;     /* in which order they are, and so what dies with a module */
    bool is_shifted;      /* events differed, what follows is counted otherwise */
    bool is_group_of_one; /* FSDP1's hybrid groups of one rank (docs/pytorch/differences.md) */
} Check;

/* A plan has no section for such a third step, and makes of the second what it leaves. */
static bool is_passed_by(const Check *c) {
    return c->is_static && (c->step == 1 || c->step == 2);
}

static void G_GNUC_PRINTF(2, 3) differ(Check *c, const char *format, ...) {
    if (is_passed_by(c)) {
        return;
    }
    if (c->n_differences++ < 20) {
        va_list args;
        va_start(args, format);
        g_autofree char *message = g_strdup_vprintf(format, args);
        va_end(args);
        printf("%s: step %" G_GINT64_FORMAT ": %s\n", c->file_name, c->step, message);
    }
}

/* Equal, or short of what the recording forgets of at most two gradients of a T5's bias, exact or
 * rounded. */
static bool agree(const Check *c, uint64_t recorded, uint64_t ours) {
    uint64_t unit[] = {c->forgotten, oracle_rounded(c->forgotten)};
    bool equal = recorded == ours;
    for (unsigned i = 0; c->forgotten && i < 2; i++) {
        equal |= recorded + unit[i] == ours || recorded + 2 * unit[i] == ours;
    }
    return equal;
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
    if (oracle_sum(theirs) != total) {
        differ(c, "%s: the recording has a category that is not known here", what);
    }
    if (!agree(c, total, oracle_sum(ours))) {
        differ(c, "%s: PyTorch %" G_GUINT64_FORMAT " bytes, plan %" G_GUINT64_FORMAT, what, total,
               oracle_sum(ours));
    }
    for (unsigned i = 0; i < PLAN_N_SUBCATEGORIES; i++) {
        if (!(i == PLAN_TEMPORARY_OP ? agree(c, theirs[i], ours[i]) : theirs[i] == ours[i])) {
            differ(c, "%s, %s: PyTorch %" G_GUINT64_FORMAT " bytes, plan %" G_GUINT64_FORMAT, what,
                   plan_subcategory_name((PlanSubcategory)i), theirs[i], ours[i]);
        }
    }
}

static PlanSection section_of(const Check *c, gint64 step) {
    bool is_second = step == 1 || (step % 2 && plan_steps_alternate(c->role));
    return step == 0 ? PLAN_SECTION_FIRST : is_second ? PLAN_SECTION_SECOND : PLAN_SECTION_STEADY;
}

/* Not in the root, of which each stage has one. */
static bool is_in_block(const Check *c, const PlanInstr *instr) {
    return instr->unit == PLAN_NONE || !g_str_equal(c->plan->units[instr->unit].name, "root");
}

/* Inside a compiled block the order is the compiler's own: of a peak there the sum is held to a
 * hundredth. In an evaluation, where nothing is kept for a backward, it is held to the byte, here
 * and where the recorder does not see what outlives a module: what is temporary is not known. */
static bool is_close_in_block(const Check *c, JsonObject *recorded, const OraclePeak *ours) {
    double total = (double)json_object_get_int_member(
        json_object_get_object_member(recorded, "breakdown"), "total");
    double difference = (double)ours->total - total;
    bool is_evaluation = ours->instr && ours->instr->phase == PLAN_PHASE_EVALUATION;
    if (!ours->instr || (!c->is_compiled && (c->knows_frees || !is_evaluation))) {
        return false;
    }
    return is_evaluation ? difference == 0
                         : (c->is_whole || is_in_block(c, ours->instr)) &&
                               MAX(difference, -difference) <= total / 100;
}

static void compare_peak(Check *c, const char *key, JsonObject *of, const OraclePeak *ours) {
    JsonObject *recorded = json_object_get_object_member(of, key);
    if (is_close_in_block(c, recorded, ours)) {
        return;
    }
    compare_breakdown(c, key, json_object_get_object_member(recorded, "breakdown"), ours->at);
    JsonObject *where = json_object_get_object_member(recorded, "where");
    if (!where || !json_object_has_member(where, "module") || !ours->instr) {
        return;
    }
    const char *module = json_object_get_string_member(where, "module");
    uint32_t id = ours->instr->module;
    const char *mine = id == PLAN_NONE ? "" : c->plan->modules[id].name;
    if (!*module || id == PLAN_NONE || c->is_compiled) {
        return; /* the recorder does not always know, and what is compiled has none */
    }
    if (!g_str_equal(module, *mine ? mine : "root")) {
        differ(c, "%s falls in module %s, in the plan in %s", key, module, *mine ? mine : "root");
    }
}

static void compare_peaks(Check *c, JsonObject *of, const OraclePeak ours[2]) {
    compare_peak(c, "peak_bytes", of, &ours[0]);
    compare_peak(c, "peak_rounded", of, &ours[1]);
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

static const PlanInstr *next_collective(const Check *c, PlanSection section, uint32_t *at) {
    while (*at < c->role->n_instrs[section]) {
        const PlanInstr *instr = &c->role->sections[section][(*at)++];
        bool is_own = instr->kind ==
                          PLAN_LAUNCH && /* a rank's copy of what it has, to where others take it */
                      c->role->ops[instr->arg].kind == PLAN_OP_OFFER;
        if (oracle_is_collective(c->role, instr) && !is_own) {
            return instr;
        }
    }
    return NULL;
}

/* A compiled block's backward is one program, which computes again what it must. */
static PlanPhase phase_of(const Check *c, const PlanInstr *instr) {
    bool is_inside = c->is_compiled && !c->is_in_parts && instr->phase == PLAN_PHASE_RECOMPUTE;
    return is_inside ? PLAN_PHASE_BACKWARD : (PlanPhase)instr->phase;
}

typedef struct {
    const char *kind, *unit, *phase;
    uint64_t bytes;
    bool beside; /* of symmetric memory: not on compute */
} Collective;

static bool is_of_peers(const char *kind) {
    return g_str_equal(kind, "take") || g_str_equal(kind, "barrier");
}

/* A compiler has some in place. */
static Collective recorded_collective(JsonArray *order, unsigned i) {
    JsonArray *item = json_array_get_array_element(order, i);
    bool has_unit = !json_array_get_null_element(item, 1);
    const char *kind = json_array_get_string_element(item, 0);
    return (Collective){.kind = g_str_equal(kind, "all_reduce_") ? "all_reduce" : kind,
                        .unit = has_unit ? json_array_get_string_element(item, 1) : "",
                        .bytes = (uint64_t)json_array_get_int_element(item, 2),
                        .phase = json_array_get_string_element(item, 4),
                        .beside = is_of_peers(kind) &&
                                  !g_str_equal(json_array_get_string_element(item, 3), "default")};
}

/* Its unit only where the recording has one. */
static Collective planned_collective(const Check *c, const PlanInstr *instr, bool has_unit) {
    const PlanOp *op = &c->role->ops[instr->arg];
    return (Collective){
        .kind = recorded_kind(op),
        .unit = has_unit && instr->unit != PLAN_NONE ? c->plan->units[instr->unit].name : "",
        .bytes = oracle_output_bytes(c->role, op),
        .phase = plan_phase_name(phase_of(c, instr)),
        .beside = is_of_peers(recorded_kind(op)) && instr->lane != 0};
}

/* PyTorch names a unit of several modules after them all, a plan after one. */
static bool is_unit(const char *theirs, const char *ours) {
    g_auto(GStrv) names = g_strsplit(theirs, ", ", -1);
    return g_str_equal(theirs, ours) || g_strv_contains((const char *const *)names, ours);
}

static bool are_equal(const Collective *theirs, const Collective *ours) {
    return theirs->bytes == ours->bytes && theirs->beside == ours->beside &&
           g_str_equal(theirs->kind, ours->kind) && is_unit(theirs->unit, ours->unit) &&
           g_str_equal(theirs->phase, ours->phase);
}

/* The one at i, among ours from there to end; who was found is put in i's place. */
static void compare_collective(Check *c, unsigned i, unsigned end, JsonArray *order,
                               GPtrArray *ours) {
    Collective theirs = recorded_collective(order, i);
    for (unsigned j = i; j < end; j++) {
        Collective mine = planned_collective(c, ours->pdata[j], *theirs.unit);
        if (are_equal(&theirs, &mine)) {
            gpointer found = ours->pdata[j];
            ours->pdata[j] = ours->pdata[i];
            ours->pdata[i] = found;
            return;
        }
    }
    Collective mine = planned_collective(c, ours->pdata[i], *theirs.unit);
    differ(c,
           "collective %u: PyTorch %s of %s, %" G_GUINT64_FORMAT
           " bytes in %s; plan %s of %s, %" G_GUINT64_FORMAT " bytes in %s",
           i, theirs.kind, theirs.unit, theirs.bytes, theirs.phase, mine.kind, mine.unit,
           mine.bytes, mine.phase);
}

/* Of those that are no unit's, which a compiled block has among its kernels, the order between two
 * of units is the compiler's own: the end of such a stretch. */
static unsigned end_of_stretch(const Check *c, unsigned i, JsonArray *order, unsigned n) {
    unsigned end = i + 1;
    bool is_free = c->is_compiled && c->plan->axes[PLAN_AXIS_TENSOR] > 1;
    while (is_free && end < n && !*recorded_collective(order, i).unit &&
           !*recorded_collective(order, end).unit) {
        end++;
    }
    return end;
}

static void compare_collectives(Check *c, JsonObject *summary, PlanSection section) {
    JsonArray *order = json_object_get_array_member(summary, "collective_order");
    g_autoptr(GPtrArray) ours = g_ptr_array_new();
    uint32_t at = 0;
    for (const PlanInstr *instr; (instr = next_collective(c, section, &at));) {
        g_ptr_array_add(ours, (gpointer)instr);
    }
    unsigned n_theirs = json_array_get_length(order), n = MIN(n_theirs, ours->len);
    for (unsigned i = 0, end = 0; i < n; i++) {
        end = i < end ? end : end_of_stretch(c, i, order, n);
        compare_collective(c, i, end, order, ours);
    }
    if (ours->len != n_theirs) {
        differ(c, "PyTorch has %u collectives, the plan %u", n_theirs, ours->len);
    }
}

/* ---- every event, where the recording has them ---------------------------------------------- */

static void compare_event_by_event(Check *c, const GArray *theirs, const GArray *ours) {
    for (unsigned i = 0; i < MIN(theirs->len, ours->len); i++) {
        const OracleEvent *a = &g_array_index(theirs, OracleEvent, i),
                          *b = &g_array_index(ours, OracleEvent, i);
        if (a->what != b->what || !agree(c, a->bytes, b->bytes) || a->which != b->which ||
            a->before != b->before) {
            differ(c,
                   "event %u: PyTorch %c of %" G_GUINT64_FORMAT " bytes (#%d@-%u), plan %c of "
                   "%" G_GUINT64_FORMAT " bytes (#%d@-%u)",
                   i, a->what, a->bytes, (int)a->which, a->before, b->what, b->bytes, (int)b->which,
                   b->before);
            c->is_shifted = true;
            return;
        }
        g_autofree char *difference = oracle_event_difference(
            a, b, c->step >= 0 && c->knows_lanes && !c->is_shifted, !c->is_group_of_one);
        if (difference) {
            differ(c, "event %u: %s", i, difference);
        }
    }
    if (theirs->len != ours->len) {
        differ(c, "PyTorch has %u events, the plan %u", theirs->len, ours->len);
    }
}

static void compare_events(Check *c, const Recording *recording, unsigned step,
                           PlanSection section) {
    g_autoptr(GArray) theirs = oracle_recorded_events(c->recorded, recording, step);
    g_autoptr(GArray) ours = oracle_planned_events(c->planned, c->role, section);
    if (!c->knows_frees) {
        oracle_sort_frees(theirs);
        oracle_sort_frees(ours);
    }
    compare_event_by_event(c, theirs, ours);
}

static void compare_alive(Check *c, const Recording *recording) {
    g_autoptr(GArray) theirs = oracle_recorded_alive(recording);
    g_autoptr(GArray) ours = oracle_planned_alive(c->role);
    c->step = -1;
    compare_event_by_event(c, theirs, ours);
}

/* Python lets go of a unit's parameters forwards or backwards. */
static void compare_construction(Check *c, const Recording *recording) {
    g_autoptr(GError) error = NULL;
    g_autoptr(Plan) plan = recording_plan(recording, RECORDING_OF_CONSTRUCTION, &error);
    g_assert_no_error(error); /* the plan of its steps could be made */
    g_autoptr(GArray) theirs = oracle_recorded_construction(c->recorded, recording);
    g_autoptr(GArray) ours = oracle_planned_construction(&plan->roles[c->role - c->plan->roles]);
    oracle_sort_frees(theirs);
    oracle_sort_frees(ours);
    c->step = -1;
    compare_event_by_event(c, theirs, ours);
}

/* ---- what deterministic algorithms fill ---------------------------------------------------- */

static void compare_fills(Check *c, const Recording *recording, unsigned step,
                          const PlanRole *filled) {
    g_autoptr(GArray) theirs = oracle_recorded_fills(recording, step);
    g_autoptr(GArray) ours = oracle_planned_fills(filled, section_of(c, c->step));
    for (unsigned i = 0; i < MIN(theirs->len, ours->len); i++) {
        const OracleFill *a = &g_array_index(theirs, OracleFill, i);
        const OracleFill *b = &g_array_index(ours, OracleFill, i);
        if (a->is_filled != b->is_filled && !a->is_any) {
            differ(c, "allocation %u by %s: PyTorch %s it, the plan %s", i, a->made_by,
                   a->is_filled ? "fills" : "does not fill", b->is_filled ? "does" : "does not");
        }
    }
    if (theirs->len != ours->len) {
        differ(c, "PyTorch has %u allocations, the filled plan %u", theirs->len, ours->len);
    }
}

/* The recording's program, had it asked for deterministic algorithms: the same allocations, of
 * which some are filled. Not every setting can be planned so. */
static void check_fills(Check *c, const Recording *recording) {
    g_autoptr(GError) error = NULL;
    g_autoptr(Plan) plan = recording_plan(recording, RECORDING_OF_DETERMINISTIC, &error);
    if (!plan) {
        g_assert_error(error, PLAN_ERROR, PLAN_ERROR_VALUE);
        g_assert_true(strstr(error->message, ": deterministic is ") ||
                      strstr(error->message, "deterministic algorithms"));
        return;
    }
    for (unsigned i = 0; i < recording->events->len; i++) {
        JsonObject *summary = recording->summaries->pdata[i];
        c->step = json_object_get_int_member(summary, "step");
        compare_fills(c, recording, i, &plan->roles[c->role - c->plan->roles]);
    }
}

/* ---- a recording ---------------------------------------------------------------------------- */

static void check_step(Check *c, const Recording *recording, unsigned i) {
    JsonObject *summary = recording->summaries->pdata[i];
    c->step = json_object_get_int_member(summary, "step");
    PlanSection section = section_of(c, c->step);
    compare_breakdown(c, "start", json_object_get_object_member(summary, "start"), c->live.now[0]);
    compare_breakdown(c, "start_rounded", json_object_get_object_member(summary, "start_rounded"),
                      c->live.now[1]);
    oracle_play(&c->live, c->role, section);
    compare_peaks(c, summary, c->live.of_step);
    if (json_object_has_member(summary, "evaluation")) {
        compare_peaks(c, json_object_get_object_member(summary, "evaluation"),
                      c->live.of_evaluation);
    }
    compare_breakdown(c, "end", json_object_get_object_member(summary, "end"), c->live.now[0]);
    compare_breakdown(c, "end_rounded", json_object_get_object_member(summary, "end_rounded"),
                      c->live.now[1]);
    compare_collectives(c, summary, section);
    if (i < recording->events->len) {
        compare_events(c, recording, i, section);
    }
}

static int check_file(const char *path) {
    g_autoptr(GError) error = NULL;
    g_autoptr(Recording) recording = recording_read(path, &error);
    g_autoptr(Plan) plan =
        recording ? recording_plan(recording, RECORDING_OF_RECORDER, &error) : NULL;
    if (!plan) {
        fprintf(stderr, "check: %s\n", error->message);
        return 2;
    }
    Check c = {.plan = plan, .file_name = path};
    c.role = &plan->roles[plan_role_of_rank(plan, recording_rank(recording, plan))];
    c.recorded = oracle_recorded_new(recording);
    c.forgotten = recording_forgotten_bytes(recording);
    c.is_compiled = recording_is_compiled(recording);
    c.is_in_parts = recording_is_compiled_in_parts(recording);
    c.is_whole = recording_is_compiled_whole(recording);
    c.is_static = recording_has_third_kind(recording);
    c.knows_lanes = recording_knows_lanes(recording);
    c.knows_frees = !json_object_has_member(recording->header, "frees_in_order");
    c.is_group_of_one = recording_has_groups_of_one(recording);
    c.planned = oracle_planned_new(plan, c.role);
    uint64_t parameters = 0;
    for (uint32_t i = 0; i < plan->n_parameters; i++) {
        parameters += plan->parameters[i].elements;
    }
    uint64_t recorded = (uint64_t)json_object_get_int_member(recording->header, "parameters");
    if (parameters != recorded) {
        differ(&c, "PyTorch has %" G_GUINT64_FORMAT " parameters, the plan %" G_GUINT64_FORMAT,
               recorded, parameters);
    }
    if (recording->construction->len) {
        compare_construction(&c, recording);
    }
    if (recording->events->len) {
        compare_alive(&c, recording);
    }
    oracle_play(&c.live, c.role, PLAN_SECTION_CONSTRUCT);
    for (unsigned i = 0; i < recording->summaries->len; i++) {
        check_step(&c, recording, i);
    }
    check_fills(&c, recording);
    oracle_recorded_free(c.recorded);
    oracle_planned_free(c.planned);
    if (c.n_differences) {
        printf("%s: %u differences\n", path, c.n_differences);
    } else {
        printf("%s: equal in %u steps\n", path, recording->summaries->len);
    }
    return c.n_differences > 0;
}

int main(int argc, char **argv) {
    return recording_check_all("check", argc, argv, check_file);
}
