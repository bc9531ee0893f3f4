#include "tests/oracle/events.h"

#include <stdlib.h>
#include <string.h>

#include "plan/op/names.h"
#include "plan/op/work.h"
#include "tests/oracle/recording-private.h"

bool oracle_is_collective(const PlanRole *role, const PlanInstr *instr) {
    return (instr->kind == PLAN_LAUNCH || instr->kind == PLAN_HOST_OP) &&
           plan_op_joins_ranks((PlanOpKind)role->ops[instr->arg].kind);
}

uint64_t oracle_output_bytes(const PlanRole *role, const PlanOp *op) {
    if (op->kind == PLAN_OP_HOST_ALL_REDUCE) {
        const int64_t *dims = plan_op_dims(role, op);
        return (uint64_t)dims[HOST_ALL_REDUCE_N] *
               plan_dtype_bytes(plan_dtype_of_mantissa(dims[HOST_ALL_REDUCE_MANTISSA_BITS]));
    }
    if (op->kind == PLAN_OP_UNEVEN_ALL_TO_ALL) {
        return (uint64_t)plan_op_dims(role, op)[UNEVEN_ALL_TO_ALL_RECEIVED] *
               plan_dtype_bytes((PlanDtype)op->dtype);
    }
    uint64_t whole = op->kind == PLAN_OP_BARRIER ? 0 : (uint64_t)plan_op_work(role, op).bytes;
    return op->kind == PLAN_OP_REDUCE_SCATTER
               ? whole / (uint64_t)plan_op_dims(role, op)[REDUCE_SCATTER_RANKS]
               : whole;
}

/* ---- of a recording ------------------------------------------------------------------------- */

/* A recording numbers blocks and events from start to end. */
struct _OracleRecorded {
    GHashTable *stream_of; /* block: its stream's name */
    GHashTable *moments;   /* event: step << 24 | how many events of the step came before it */
    OracleOrder order;
};

static unsigned lane_of(const char *stream) {
    static const char *const streams[][3] = {{"default"},
                                             {"pre_unshard", "all_gather_copy_in"},
                                             {"unshard", "all_gather"},
                                             {"post_backward", "reduce_scatter"},
                                             {"all_reduce"}};
    unsigned lane = 0;
    while (lane < G_N_ELEMENTS(streams) && !g_strv_contains(streams[lane], stream)) {
        lane++;
    }
    return lane;
}

static const char *mantissa_of(const char *dtype) {
    return g_str_equal(dtype, "bfloat16") || g_str_equal(dtype, "bf16")  ? "bf16"
           : g_str_equal(dtype, "float16") || g_str_equal(dtype, "fp16") ? "fp16"
                                                                         : "another dtype";
}

static gpointer number_at(JsonObject *line, const char *key) {
    return GINT_TO_POINTER((gint)json_object_get_int_member(line, key));
}

OracleRecorded *oracle_recorded_new(const Recording *recording) {
    OracleRecorded *recorded = g_new(OracleRecorded, 1);
    *recorded =
        (OracleRecorded){g_hash_table_new(NULL, NULL), g_hash_table_new(NULL, NULL), {{{{0}}}}};
    oracle_order_init(&recorded->order);
    for (unsigned step = 0; step < recording->events->len; step++) {
        const GPtrArray *lines = recording->events->pdata[step];
        for (unsigned i = 0; i < lines->len; i++) {
            JsonObject *line = lines->pdata[i];
            const char *kind = json_object_get_string_member(line, "kind");
            if (g_str_equal(kind, "alloc") || g_str_equal(kind, "alive")) {
                g_hash_table_insert(recorded->stream_of, number_at(line, "block"),
                                    (gpointer)json_object_get_string_member(line, "stream"));
            }
        }
    }
    return recorded;
}

void oracle_recorded_free(OracleRecorded *recorded) {
    g_hash_table_unref(recorded->stream_of);
    g_hash_table_unref(recorded->moments);
    oracle_order_clear(&recorded->order);
    g_free(recorded);
}

static bool is_mark(const OracleRecorded *recorded, JsonObject *line) {
    if (json_object_get_null_member(line, "block")) {
        return false; /* a storage without bytes */
    }
    const char *own = g_hash_table_lookup(recorded->stream_of, number_at(line, "block"));
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

/* What is no event of its own, but orders them. */
static void take_order(OracleOrder *order, JsonObject *line) {
    const char *kind = json_object_get_string_member(line, "kind");
    if (!json_object_has_member(line, "stream")) {
        return;
    }
    unsigned lane = lane_of(json_object_get_string_member(line, "stream"));
    if (g_str_equal(kind, "event_record")) {
        oracle_order_record(order, lane, json_object_get_int_member(line, "event"));
    } else if (g_str_equal(kind, "wait_event")) {
        oracle_order_wait(order, lane, json_object_get_int_member(line, "event"));
    } else if (g_str_equal(kind, "wait_stream")) {
        oracle_order_wait_lane(order, lane,
                               lane_of(json_object_get_string_member(line, "waits_for")));
    }
}

static OracleEvent recorded_wait(OracleRecorded *recorded, JsonObject *line, unsigned step,
                                 unsigned n_events) {
    if (json_object_has_member(line, "event")) {
        gint64 event = json_object_get_int_member(line, "event");
        guint at =
            GPOINTER_TO_UINT(g_hash_table_lookup(recorded->moments, number_at(line, "event")));
        oracle_order_host_wait(&recorded->order, event);
        return (OracleEvent){.what = 'h', .which = at & 0xffffff, .before = step - (at >> 24)};
    }
    oracle_order_host_wait_lane(&recorded->order, 0);
    return (OracleEvent){.what = 'h', .which = n_events}; /* for all until now */
}

static OracleEvent recorded_collective(OracleRecorded *recorded, JsonObject *line) {
    unsigned lane = lane_of(json_object_get_string_member(line, "stream"));
    return (OracleEvent){.what = 'c',
                         .bytes = (uint64_t)json_object_get_int_member(line, "output_bytes"),
                         .lane = lane,
                         .after = oracle_order_work(&recorded->order, lane),
                         .ranks = (unsigned)json_object_get_int_member(line, "group_size"),
                         .mantissa =
                             json_object_get_null_member(line, "dtype")
                                 ? NULL
                                 : mantissa_of(json_object_get_string_member(line, "dtype"))};
}

static OracleEvent recorded_allocation(OracleRecorded *recorded, JsonObject *line) {
    unsigned lane = lane_of(json_object_get_string_member(line, "stream"));
    return (OracleEvent){.what = 'a',
                         .bytes = (uint64_t)json_object_get_int_member(line, "bytes"),
                         .lane = lane,
                         .after = oracle_order_work(&recorded->order, lane)};
}

static GArray *events_of(OracleRecorded *recorded, GPtrArray *raw, unsigned step) {
    g_autoptr(GPtrArray) lines = as_on_a_device(raw);
    GArray *events = g_array_new(FALSE, FALSE, sizeof(OracleEvent));
    g_autoptr(GHashTable) blocks = g_hash_table_new(NULL, NULL);
    uint32_t n_allocs = 0;
    for (unsigned i = 0; i < lines->len; i++) {
        JsonObject *line = lines->pdata[i];
        const char *kind = json_object_get_string_member(line, "kind");
        OracleEvent e = {0};
        take_order(&recorded->order, line);
        if (g_str_equal(kind, "alloc")) {
            e = recorded_allocation(recorded, line);
            g_hash_table_insert(blocks, number_at(line, "block"), GUINT_TO_POINTER(++n_allocs));
        } else if (g_str_equal(kind, "free") ||
                   (g_str_equal(kind, "record_stream") && is_mark(recorded, line))) {
            gpointer which = g_hash_table_lookup(blocks, number_at(line, "block"));
            e = (OracleEvent){.what = *kind == 'f' ? 'f' : 'm',
                              .which = which ? GPOINTER_TO_UINT(which) - 1 : PLAN_NONE,
                              .lane = *kind == 'f' ? 0 : lane_of(recorded_text(line, "stream"))};
        } else if (g_str_equal(kind, "collective")) {
            e = recorded_collective(recorded, line);
        } else if (g_str_equal(kind, "event_record")) {
            g_hash_table_insert(recorded->moments, number_at(line, "event"),
                                GUINT_TO_POINTER(step << 24 | events->len));
        } else if (g_str_equal(kind, "event_synchronize") ||
                   g_str_equal(kind, "stream_synchronize") || g_str_equal(kind, "host_reads")) {
            e = recorded_wait(recorded, line, step, events->len);
        }
        if (e.what) {
            g_array_append_val(events, e);
        }
    }
    return events;
}

GArray *oracle_recorded_events(OracleRecorded *recorded, const Recording *recording,
                               unsigned step) {
    return events_of(recorded, recording->events->pdata[step], step);
}

GArray *oracle_recorded_alive(const Recording *recording) {
    GArray *events = g_array_new(FALSE, FALSE, sizeof(OracleEvent));
    const GPtrArray *lines = recording->events->pdata[0];
    for (unsigned i = 0; i < lines->len; i++) {
        if (g_str_equal(json_object_get_string_member(lines->pdata[i], "kind"), "alive")) {
            OracleEvent e = {.what = 'a',
                             .bytes =
                                 (uint64_t)json_object_get_int_member(lines->pdata[i], "bytes")};
            g_array_append_val(events, e);
        }
    }
    return events;
}

/* Its tokens are cut out of what is drawn at random. */
static bool is_of_batch(JsonObject *line) {
    return is_made_by(line, "aten.randint") || is_made_by(line, "aten.randn") ||
           (json_object_has_member(line, "category") &&
            g_str_equal(json_object_get_string_member(line, "category"), "input"));
}

GArray *oracle_recorded_construction(OracleRecorded *recorded, const Recording *recording) {
    g_autoptr(GPtrArray) kept = g_ptr_array_new();
    g_autoptr(GHashTable) of_batch = g_hash_table_new(NULL, NULL);
    for (unsigned i = 0; i < recording->construction->len; i++) {
        JsonObject *line = recording->construction->pdata[i];
        const char *kind = json_object_get_string_member(line, "kind");
        bool is_alloc = g_str_equal(kind, "alloc");
        if (is_alloc && is_of_batch(line)) {
            g_hash_table_add(of_batch, number_at(line, "block"));
        } else if (is_alloc || (g_str_equal(kind, "free") &&
                                !g_hash_table_contains(of_batch, number_at(line, "block")))) {
            g_ptr_array_add(kept, line);
        }
    }
    GArray *events = events_of(recorded, kept, 0);
    oracle_order_clear(&recorded->order); /* counted from the first step on */
    oracle_order_init(&recorded->order);
    return events;
}

/* ---- of a plan ------------------------------------------------------------------------------ */

struct _OraclePlanned {
    uint32_t c10d;   /* the lane of c10d; PLAN_NONE */
    unsigned n_fsdp; /* lanes of FSDP, which come first */
    uint32_t n_events;
    uint32_t *moments[PLAN_MAX_BEFORE + 1]; /* of each event, in this step and those before */
    OracleOrder order;
    gint64 step;
};

/* What c10d does in C++ beside FSDP has lanes behind FSDP's: in a recording it is on compute, which
 * asks for it. */
static unsigned count_fsdps_lanes(const Plan *plan) {
    static const char *const names[] = {"compute",     "copy_in",    "gather",
                                        "pre_unshard", "unshard",    "reduce",
                                        "replicate",   "all_reduce", NULL};
    unsigned n = 0;
    while (n < plan->n_lanes && g_strv_contains(names, plan->lanes[n])) {
        n++;
    }
    return n;
}

static unsigned recorded_lane(const OraclePlanned *planned, const PlanInstr *instr) {
    return instr->lane < planned->n_fsdp ? instr->lane : 0;
}

OraclePlanned *oracle_planned_new(const Plan *plan, const PlanRole *role) {
    OraclePlanned *planned = g_new(OraclePlanned, 1);
    planned->c10d = PLAN_NONE;
    for (uint32_t i = 0; i < plan->n_lanes; i++) {
        planned->c10d = g_str_equal(plan->lanes[i], "c10d") ? i : planned->c10d;
    }
    planned->n_fsdp = count_fsdps_lanes(plan);
    planned->n_events = role->n_events;
    planned->step = 0;
    oracle_order_init(&planned->order);
    for (unsigned before = 0; before <= PLAN_MAX_BEFORE; before++) {
        planned->moments[before] = g_new0(uint32_t, role->n_events);
    }
    return planned;
}

void oracle_planned_free(OraclePlanned *planned) {
    for (unsigned before = 0; before <= PLAN_MAX_BEFORE; before++) {
        g_free(planned->moments[before]);
    }
    oracle_order_clear(&planned->order);
    g_free(planned);
}

static void begin_step(OraclePlanned *planned) {
    uint32_t *oldest = planned->moments[PLAN_MAX_BEFORE];
    for (unsigned before = PLAN_MAX_BEFORE; before > 0; before--) {
        planned->moments[before] = planned->moments[before - 1];
    }
    planned->moments[0] = oldest;
    planned->step++;
}

/* The host waits to know whether to step, which a recorder of scaled losses notes. */
static bool decides(const PlanRole *role, PlanSection section, uint32_t i) {
    const PlanInstr *next = &role->sections[section][i + 1];
    return i + 1 < role->n_instrs[section] && next->kind == PLAN_HOST_OP &&
           role->ops[next->arg].kind == PLAN_OP_STEP_IF_FINITE;
}

/* Another copy to the host that blocks waits in C++, in no recording. */
static bool is_in_copy(const PlanRole *role, PlanSection section, uint32_t i) {
    const PlanInstr *wait = &role->sections[section][i];
    return !decides(role, section, i) && i >= 2 && wait[-1].kind == PLAN_RECORD &&
           wait[-1].arg == wait->arg && wait[-2].kind == PLAN_LAUNCH &&
           role->ops[wait[-2].arg].kind == PLAN_OP_TO_HOST;
}

static gint64 number_of_event(const OraclePlanned *planned, const PlanInstr *instr) {
    return (planned->step - instr->before) * planned->n_events + instr->arg;
}

/* What is no event of its own, but orders them. */
static void plan_order(OraclePlanned *planned, const PlanInstr *instr) {
    unsigned lane = recorded_lane(planned, instr);
    gint64 event = number_of_event(planned, instr);
    if (instr->kind == PLAN_RECORD) {
        oracle_order_record(&planned->order, lane, event);
    } else if (instr->kind == PLAN_WAIT) {
        oracle_order_wait(&planned->order, lane, event);
    }
}

static OracleEvent planned_collective(OraclePlanned *planned, const PlanRole *role,
                                      const PlanInstr *instr) {
    const PlanOp *op = &role->ops[instr->arg];
    const int64_t *dims = plan_op_dims(role, op);
    unsigned lane = recorded_lane(planned, instr);
    bool is_of_hosts = op->kind == PLAN_OP_HOST_ALL_REDUCE;
    PlanDtype dtype = is_of_hosts ? plan_dtype_of_mantissa(dims[HOST_ALL_REDUCE_MANTISSA_BITS])
                                  : (PlanDtype)op->dtype;
    return (OracleEvent){
        .what = 'c',
        .bytes = oracle_output_bytes(role, op),
        .lane = lane,
        .after = oracle_order_work(&planned->order, lane),
        .ranks = (unsigned)dims[is_of_hosts ? (int)HOST_ALL_REDUCE_RANKS : (int)COLLECTIVE_RANKS],
        .mantissa = mantissa_of(plan_dtype_name(dtype))};
}

GArray *oracle_planned_events(OraclePlanned *planned, const PlanRole *role, PlanSection section) {
    GArray *events = g_array_new(FALSE, FALSE, sizeof(OracleEvent));
    g_autofree uint32_t *alloc_of = g_new(uint32_t, role->n_buffers);
    memset(alloc_of, 0xff, role->n_buffers * sizeof *alloc_of);
    uint32_t n_allocs = 0;
    begin_step(planned);
    for (uint32_t i = 0; i < role->n_instrs[section]; i++) {
        const PlanInstr *instr = &role->sections[section][i];
        OracleEvent e = {0};
        if (instr->kind == PLAN_MARK && instr->lane == planned->c10d) {
            continue; /* C++ does that, in no recording */
        }
        unsigned lane = recorded_lane(planned, instr);
        plan_order(planned, instr);
        if (instr->kind == PLAN_ALLOC) {
            e = (OracleEvent){.what = 'a',
                              .bytes = role->buffers[instr->arg].bytes,
                              .lane = lane,
                              .after = oracle_order_work(&planned->order, lane)};
            alloc_of[instr->arg] = n_allocs++;
        } else if (instr->kind == PLAN_FREE || instr->kind == PLAN_MARK) {
            e = (OracleEvent){.what = instr->kind == PLAN_FREE ? 'f' : 'm',
                              .which = alloc_of[instr->arg],
                              .lane = instr->kind == PLAN_MARK ? lane : 0};
        } else if (oracle_is_collective(role, instr)) {
            e = planned_collective(planned, role, instr);
        } else if (instr->kind == PLAN_RECORD) {
            planned->moments[0][instr->arg] = events->len;
        } else if (instr->kind == PLAN_HOST_WAIT && !is_in_copy(role, section, i)) {
            oracle_order_host_wait(&planned->order, number_of_event(planned, instr));
            e = (OracleEvent){.what = 'h',
                              .which = planned->moments[instr->before][instr->arg],
                              .before = instr->before};
        }
        if (e.what) {
            g_array_append_val(events, e);
        }
    }
    return events;
}

GArray *oracle_planned_alive(const PlanRole *role) {
    const PlanInstr *instrs = role->sections[PLAN_SECTION_CONSTRUCT];
    uint32_t n = role->n_instrs[PLAN_SECTION_CONSTRUCT];
    GArray *events = g_array_new(FALSE, FALSE, sizeof(OracleEvent));
    g_autofree uint32_t *last = g_new0(uint32_t, role->n_buffers); /* alloc or free of each, + 1 */
    for (uint32_t i = 0; i < n; i++) {
        if (instrs[i].kind == PLAN_ALLOC || instrs[i].kind == PLAN_FREE) {
            last[instrs[i].arg] = i + 1;
        }
    }
    for (uint32_t i = 0; i < n; i++) {
        if (instrs[i].kind == PLAN_ALLOC && last[instrs[i].arg] == i + 1) {
            OracleEvent e = {.what = 'a', .bytes = role->buffers[instrs[i].arg].bytes};
            g_array_append_val(events, e);
        }
    }
    return events;
}

GArray *oracle_planned_construction(const PlanRole *role) {
    GArray *events = g_array_new(FALSE, FALSE, sizeof(OracleEvent));
    g_autofree uint32_t *alloc_of = g_new(uint32_t, role->n_buffers);
    uint32_t n_allocs = 0;
    for (uint32_t i = 0; i < role->n_instrs[PLAN_SECTION_CONSTRUCT]; i++) {
        const PlanInstr *instr = &role->sections[PLAN_SECTION_CONSTRUCT][i];
        bool is_alloc = instr->kind == PLAN_ALLOC;
        if ((!is_alloc && instr->kind != PLAN_FREE) ||
            role->buffers[instr->arg].sub == PLAN_ACTIVATIONS_INPUT) {
            continue;
        }
        OracleEvent e = {.what = is_alloc ? 'a' : 'f'};
        if (is_alloc) {
            e.bytes = role->buffers[instr->arg].bytes;
            alloc_of[instr->arg] = n_allocs++;
        } else {
            e.which = alloc_of[instr->arg];
        }
        g_array_append_val(events, e);
    }
    return events;
}

/* ---- of both -------------------------------------------------------------------------------- */

static gint by_block(gconstpointer a, gconstpointer b) {
    uint32_t x = ((const OracleEvent *)a)->which, y = ((const OracleEvent *)b)->which;
    return (x > y) - (x < y);
}

void oracle_sort_frees(GArray *events) {
    for (guint begin = 0, end; begin < events->len; begin = end + 1) {
        end = begin;
        while (end < events->len && g_array_index(events, OracleEvent, end).what == 'f') {
            end++;
        }
        if (end > begin) {
            qsort(&g_array_index(events, OracleEvent, begin), end - begin, sizeof(OracleEvent),
                  by_block);
        }
    }
}
