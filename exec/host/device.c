#include "exec/host/device.h"

#include <math.h>
#include <time.h>

#include "exec/error.h"
#include "exec/host/lanes.h"
#include "exec/host/launch.h"
#include "exec/host/places.h"
#include "exec/host/segments.h"
#include "memory/caching.h"
#include "plan/strategy.h"
#include "trace/from-plan.h"

struct _ExecHost {
    const Plan *plan;
    uint32_t role_id;
    ExecContext context;
    ExecHostOptions options;
    uint32_t steps;
    uint64_t turn; /* passes begun since training began, less one */
    ExecLanes *lanes;
    ExecTurns turns[PLAN_N_AXES];
    ExecSegments segments;
    MemoryCaching *caching;
    MemoryLedger *ledger;
    MemoryBlock **blocks;                    /* of each buffer */
    ExecMoment *events[PLAN_MAX_BEFORE + 1]; /* of this step and those before */
    double *losses;
    int64_t *step_end_ns; /* of lane 0; 0 until then */
    GPtrArray *op_rows;   /* TraceOpRow, as issued; the lanes fill in the times */
    GArray *memory_rows;  /* TraceMemoryRow */
    int64_t start_ns;     /* the barrier before the first step */
    char *out_of_memory;
};

static int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static PlanAnswer failed(ExecHost *host, GError **error) {
    GError *cause = exec_lanes_error(host->lanes);
    g_assert(cause);
    g_propagate_error(error, cause);
    return PLAN_FAILED;
}

/* ---- work on a lane ------------------------------------------------------------------------- */

typedef struct {
    ExecHost *host;
    ExecTask task;
    const PlanInstr *instr;
    TraceOpRow *row;  /* owned by the host */
    ExecTurns *turns; /* collectives */
    uint64_t ticket;
    double *ret_loss;    /* of the step; NULL: this op makes none */
    double loss_share;   /* one of the step's passes */
    gpointer pointers[]; /* the task's */
} Work;

static bool say_where(const Work *work, GError **error) {
    const Plan *plan = work->host->plan;
    uint32_t unit = work->instr->unit;
    g_prefix_error(error, "step %d, op %s%s%s: ", work->task.step,
                   plan_op_info((PlanOpKind)work->task.op->kind)->name,
                   unit == PLAN_NONE ? "" : " of unit ",
                   unit == PLAN_NONE ? "" : plan->units[unit].name);
    return false;
}

static bool note_loss(const Work *work, GError **error) {
    double loss = exec_host_first_output(&work->task);
    *work->ret_loss = (isnan(*work->ret_loss) ? 0 : *work->ret_loss) + loss * work->loss_share;
    if (isfinite(loss)) {
        return true;
    }
    g_set_error(error, EXEC_ERROR, EXEC_ERROR_NUMBERS,
                "the loss is %g; lower the learning rate (--lr)", loss);
    return false;
}

/* A collective is done when its data are there, and not before the network would be. */
static bool run_paced(const Work *work, GError **error) {
    const ExecHost *host = work->host;
    const ExecComm *comm = host->context.comm;
    uint32_t op = (uint32_t)(work->task.op - host->context.role->ops);
    if (!comm->meet(comm->self, (PlanAxis)work->task.op->axis, error)) {
        return false;
    }
    int64_t all_here = now_ns();
    if (!exec_host_run(&work->task, error)) {
        return false;
    }
    exec_pace_sleep_until(all_here + exec_pace_ns(host->options.pace, host->role_id, op));
    return true;
}

static bool run_work(gpointer data, GError **error) {
    Work *work = data;
    if (work->turns && !exec_lanes_enter(work->host->lanes, work->turns, work->ticket)) {
        return true; /* another lane has failed, and says why */
    }
    int64_t start = now_ns();
    bool paced = work->turns && work->host->options.pace;
    bool ok = paced ? run_paced(work, error) : exec_host_run(&work->task, error);
    if (work->row) {
        work->row->start_ns = start;
        work->row->end_ns = now_ns();
    }
    if (work->turns) {
        exec_lanes_leave(work->host->lanes, work->turns);
    }
    ok = ok && (!work->ret_loss || note_loss(work, error));
    return ok || say_where(work, error);
}

static gpointer pointer_of(const ExecHost *host, uint32_t buffer) {
    const MemoryBlock *block = host->blocks[buffer];
    return (char *)memory_block_handle(block) + memory_block_offset(block);
}

static bool makes_loss(const PlanRole *role, const PlanOp *op) {
    for (uint32_t i = 0; i < role->n_loss_ops; i++) {
        if (op == &role->ops[role->loss_ops[i]]) {
            return true;
        }
    }
    return false;
}

/* Each program of a step has every pass once. */
static uint32_t passes_of(const PlanRole *role) {
    uint32_t programs = 0;
    for (PlanSection s = PLAN_SECTION_FIRST; s < PLAN_N_SECTIONS; s++) {
        programs += !plan_section_repeats(role, s);
    }
    return MAX(1, role->n_loss_ops / programs);
}

static Work *make_work(ExecHost *host, const PlanPosition *at, const PlanOp *op) {
    Work *work = g_malloc0(sizeof *work + op->n_operands * sizeof(gpointer));
    const PlanOperand *operands = plan_op_operands(at->role, op);
    work->host = host;
    work->instr = at->instr;
    if (op->kind == PLAN_OP_BATCH) { /* dims: ..., pass, passes */
        const int64_t *dims = plan_op_dims(at->role, op);
        host->turn = (uint64_t)MAX(at->step, 0) * (uint64_t)dims[4] + (uint64_t)dims[3];
    }
    work->task = (ExecTask){&host->context, op, at->step, host->turn, work->pointers};
    for (uint32_t i = 0; i < op->n_operands; i++) {
        if (operands[i].buffer != PLAN_NONE) {
            work->pointers[i] =
                (char *)pointer_of(host, operands[i].buffer) + operands[i].offset_bytes;
        }
    }
    if (at->step >= 0 && makes_loss(at->role, op)) {
        work->ret_loss = &host->losses[at->step];
        work->loss_share = 1.0 / (double)passes_of(at->role);
    }
    return work;
}

static TraceOpRow *new_row(ExecHost *host, const PlanPosition *at, uint32_t lane) {
    TraceOpRow *row = g_new0(TraceOpRow, 1);
    row->rank = host->context.comm->rank;
    row->step = at->step;
    row->instruction = trace_instruction_number(at->role, at->section, at->index);
    row->lane = lane;
    row->host_issue_ns = now_ns();
    g_ptr_array_add(host->op_rows, row);
    return row;
}

static PlanAnswer launch(gpointer self, const PlanPosition *at, const PlanOp *op, uint32_t lane,
                         GError **error) {
    ExecHost *host = self;
    if (exec_lanes_failed(host->lanes)) {
        return failed(host, error);
    }
    Work *work = make_work(host, at, op);
    if (host->options.keep_rows) {
        work->row = new_row(host, at, lane);
    }
    if (plan_op_is_collective((PlanOpKind)op->kind)) {
        work->turns = &host->turns[op->axis];
        work->ticket = work->turns->next_ticket++;
    }
    exec_lanes_give(host->lanes, lane, run_work, work, g_free);
    return PLAN_DONE;
}

static PlanAnswer host_op(gpointer self, const PlanPosition *at, const PlanOp *op, GError **error) {
    ExecHost *host = self;
    g_autofree Work *work = make_work(host, at, op);
    return run_work(work, error) ? PLAN_DONE : PLAN_FAILED;
}

/* ---- memory --------------------------------------------------------------------------------- */

static void note_memory(ExecHost *host, const PlanPosition *at, uint32_t buffer, int64_t delta) {
    const PlanBuffer *b = &at->role->buffers[buffer];
    uint32_t unit = b->unit == PLAN_NONE ? host->plan->n_units : b->unit;
    uint64_t active = memory_caching_active(host->caching);
    uint64_t reserved = memory_caching_reserved(host->caching);
    uint32_t number = trace_instruction_number(at->role, at->section, at->index);
    int64_t now = now_ns();
    MemoryMoment moment = {number, now};
    if (delta > 0) {
        memory_ledger_add(host->ledger, b->sub, unit, (uint64_t)delta, active, reserved, moment);
    } else {
        memory_ledger_sub(host->ledger, b->sub, unit, (uint64_t)-delta, active, reserved, moment);
    }
    if (host->options.keep_rows) {
        TraceMemoryRow row = {host->context.comm->rank,
                              at->step,
                              number,
                              b->sub,
                              now,
                              delta,
                              memory_caching_allocated(host->caching),
                              active,
                              reserved};
        g_array_append_val(host->memory_rows, row);
    }
}

static void describe_out_of_memory(ExecHost *host, const PlanPosition *at, const PlanBuffer *b) {
    GString *text = g_string_new(NULL);
    g_string_printf(text,
                    "step %d: no room for %" G_GUINT64_FORMAT " bytes (%s of unit %s): "
                    "%" G_GUINT64_FORMAT " of %" G_GUINT64_FORMAT " bytes are reserved, "
                    "%" G_GUINT64_FORMAT " allocated:",
                    at->step, b->bytes, b->name,
                    b->unit == PLAN_NONE ? "-" : host->plan->units[b->unit].name,
                    memory_caching_reserved(host->caching), host->segments.limit_bytes,
                    memory_caching_allocated(host->caching));
    const uint64_t *held = memory_ledger_by_tag(host->ledger);
    for (unsigned i = 0; i < PLAN_N_SUBCATEGORIES; i++) {
        if (held[i]) {
            g_string_append_printf(text, " %s %" G_GUINT64_FORMAT,
                                   plan_subcategory_name((PlanSubcategory)i), held[i]);
        }
    }
    g_free(host->out_of_memory);
    host->out_of_memory = g_string_free(text, FALSE);
}

static PlanAnswer host_alloc(gpointer self, const PlanPosition *at, uint32_t buffer,
                             GError **error) {
    ExecHost *host = self;
    const PlanBuffer *b = &at->role->buffers[buffer];
    if (!memory_caching_alloc(host->caching, b->lane, b->bytes, &host->blocks[buffer])) {
        describe_out_of_memory(host, at, b);
        return PLAN_STOPPED;
    }
    note_memory(host, at, buffer, (int64_t)memory_block_bytes(host->blocks[buffer]));
    return PLAN_DONE;
}

static PlanAnswer host_free(gpointer self, const PlanPosition *at, uint32_t buffer,
                            GError **error) {
    ExecHost *host = self;
    int64_t bytes = (int64_t)memory_block_bytes(host->blocks[buffer]);
    memory_caching_drop(host->caching, host->blocks[buffer]);
    host->blocks[buffer] = NULL;
    note_memory(host, at, buffer, -bytes);
    return PLAN_DONE;
}

static PlanAnswer mark(gpointer self, const PlanPosition *at, uint32_t buffer, uint32_t lane,
                       GError **error) {
    ExecHost *host = self;
    memory_caching_mark(host->caching, host->blocks[buffer], lane);
    return PLAN_DONE;
}

/* ---- events --------------------------------------------------------------------------------- */

static PlanAnswer record(gpointer self, const PlanPosition *at, uint32_t event, uint32_t lane,
                         GError **error) {
    ExecHost *host = self;
    host->events[0][event] = exec_lanes_moment(host->lanes, lane);
    return PLAN_DONE;
}

static PlanAnswer wait_lane(gpointer self, const PlanPosition *at, uint32_t event,
                            uint32_t steps_before, uint32_t lane, GError **error) {
    ExecHost *host = self;
    exec_lanes_wait(host->lanes, lane, host->events[steps_before][event]);
    return PLAN_DONE;
}

static PlanAnswer host_wait(gpointer self, const PlanPosition *at, uint32_t event,
                            uint32_t steps_before, GError **error) {
    ExecHost *host = self;
    return exec_lanes_host_wait(host->lanes, host->events[steps_before][event])
               ? PLAN_DONE
               : failed(host, error);
}

/* ---- steps ---------------------------------------------------------------------------------- */

static PlanAnswer section_begins(gpointer self, const PlanPosition *at, GError **error) {
    ExecHost *host = self;
    ExecMoment *oldest = host->events[PLAN_MAX_BEFORE];
    for (unsigned before = PLAN_MAX_BEFORE; before > 0; before--) {
        host->events[before] = host->events[before - 1];
    }
    host->events[0] = oldest;
    if (at->step == 0) {
        if (!exec_host_drain(host, error) ||
            !host->context.comm->barrier(host->context.comm->self, error)) {
            return PLAN_FAILED;
        }
        host->start_ns = now_ns();
    }
    return PLAN_DONE;
}

static bool note_time(gpointer data, GError **error) {
    g_atomic_pointer_set((gpointer *)data, (gpointer)(intptr_t)now_ns());
    return true;
}

static PlanAnswer section_ends(gpointer self, const PlanPosition *at, GError **error) {
    ExecHost *host = self;
    if (at->step >= 0) {
        exec_lanes_give(host->lanes, 0, note_time, &host->step_end_ns[at->step], NULL);
    }
    return PLAN_DONE;
}

const PlanDevice exec_host_device = {
    .name = "host",
    .section_begins = section_begins,
    .section_ends = section_ends,
    .alloc = host_alloc,
    .free = host_free,
    .mark = mark,
    .launch = launch,
    .record = record,
    .wait = wait_lane,
    .host_wait = host_wait,
    .host_op = host_op,
};

/* ---- the device itself ---------------------------------------------------------------------- */

static bool knows_plan(const ExecContext *context, GError **error) {
    for (uint32_t i = 0; i < context->role->n_ops; i++) {
        if (!exec_host_knows(context, &context->role->ops[i], error)) {
            return false;
        }
    }
    return true;
}

ExecHost *exec_host_new(const Plan *plan, const ExecComm *comm, uint32_t steps,
                        const ExecHostOptions *options, GError **error) {
    if (comm->world != plan->world) {
        g_set_error(error, EXEC_ERROR, EXEC_ERROR_INPUT,
                    "the plan is for %u rank%s, but %u %s started; start as many as the plan has",
                    plan->world, plan->world == 1 ? "" : "s", comm->world,
                    comm->world == 1 ? "is" : "are");
        return NULL;
    }
    g_autoptr(ExecHost) host = g_new0(ExecHost, 1);
    host->plan = plan;
    host->role_id = plan_role_of_rank(plan, comm->rank);
    const PlanRole *role = &plan->roles[host->role_id];
    host->context = (ExecContext){
        plan, role, comm, options->seed, options->weights, options->data, exec_slots_new()};
    host->options = *options;
    host->steps = steps;
    if (!knows_plan(&host->context, error)) {
        return NULL;
    }
    host->lanes = exec_lanes_new(plan->n_lanes);
    host->segments = (ExecSegments){host->lanes, options->memory_limit_bytes, 0};
    MemoryOptions allocator;
    g_autoptr(GError) cause = NULL;
    const char *conf = plan_allocator_conf(plan->strategy);
    if (!conf) {
        g_set_error_literal(error, EXEC_ERROR, EXEC_ERROR_INPUT,
                            "allocator=arena is a what-if of the predictor; set "
                            "allocator=caching to run");
        return NULL;
    }
    if (!memory_options_parse(conf, &allocator, &cause)) {
        g_set_error_literal(error, EXEC_ERROR, EXEC_ERROR_INPUT, cause->message);
        return NULL;
    }
    host->caching = memory_caching_new(&allocator, &exec_segments_source, &host->segments, error);
    host->ledger = memory_ledger_new(PLAN_N_SUBCATEGORIES, plan->n_units + 1);
    host->blocks = g_new0(MemoryBlock *, role->n_buffers);
    for (unsigned before = 0; before <= PLAN_MAX_BEFORE; before++) {
        host->events[before] = g_new0(ExecMoment, role->n_events);
    }
    host->op_rows = g_ptr_array_new_with_free_func(g_free);
    host->memory_rows = g_array_new(FALSE, FALSE, sizeof(TraceMemoryRow));
    host->losses = g_new(double, steps);
    host->step_end_ns = g_new0(int64_t, steps);
    for (uint32_t i = 0; i < steps; i++) {
        host->losses[i] = NAN;
    }
    return host->caching ? g_steal_pointer(&host) : NULL;
}

void exec_host_free(ExecHost *host) {
    if (!host) {
        return;
    }
    exec_lanes_free(g_steal_pointer(&host->lanes));
    host->segments.lanes = NULL;
    exec_slots_free(host->context.slots);
    memory_caching_free(host->caching);
    memory_ledger_free(host->ledger);
    g_free(host->blocks);
    for (unsigned before = 0; before <= PLAN_MAX_BEFORE; before++) {
        g_free(host->events[before]);
    }
    g_clear_pointer(&host->op_rows, g_ptr_array_unref);
    g_clear_pointer(&host->memory_rows, g_array_unref);
    g_free(host->losses);
    g_free(host->step_end_ns);
    g_free(host->out_of_memory);
    g_free(host);
}

bool exec_host_drain(ExecHost *host, GError **error) {
    return exec_lanes_drain(host->lanes) || failed(host, error) == PLAN_DONE;
}

bool exec_host_healthy(ExecHost *host, GError **error) {
    return !exec_lanes_failed(host->lanes) || failed(host, error) == PLAN_DONE;
}

gpointer exec_host_pointer(const ExecHost *host, uint32_t buffer) {
    g_assert(host->blocks[buffer]);
    return pointer_of(host, buffer);
}

bool exec_host_save(const ExecHost *host, ExecWeightsFile *file, GError **error) {
    const PlanRole *role = host->context.role;
    g_autoptr(GArray) places = exec_places_to_save(host->plan, role, host->context.comm->rank);
    for (guint i = 0; i < places->len; i++) {
        const ExecPlace *place = &g_array_index(places, ExecPlace, i);
        bool away = place->slot != PLAN_NONE;
        PlanDtype dtype = away ? PLAN_FP32 : (PlanDtype)role->buffers[place->buffer].dtype;
        const char *from = away ? exec_slots_at(host->context.slots, place->slot,
                                                (place->first + place->count) * sizeof(float))
                                : exec_host_pointer(host, place->buffer);
        if (!exec_weights_put(file, place->parameter, place->from, place->count,
                              from + place->first * plan_dtype_bytes(dtype), dtype, error)) {
            return false;
        }
    }
    return true;
}

const double *exec_host_losses(const ExecHost *host) {
    return host->losses;
}

static int64_t step_end(const ExecHost *host, uint32_t step) {
    return (intptr_t)g_atomic_pointer_get((gpointer *)&host->step_end_ns[step]);
}

bool exec_host_step_has_ended(const ExecHost *host, uint32_t step) {
    return step_end(host, step) != 0;
}

double exec_host_step_ms(const ExecHost *host, uint32_t step) {
    int64_t start = step ? step_end(host, step - 1) : host->start_ns;
    return (double)(step_end(host, step) - start) / 1e6;
}

const char *exec_host_out_of_memory(const ExecHost *host) {
    return host->out_of_memory;
}

MemoryLedger *exec_host_ledger(ExecHost *host) {
    return host->ledger;
}

uint64_t exec_host_mapped_bytes(const ExecHost *host) {
    return host->segments.mapped_bytes;
}

void exec_host_add_rows(const ExecHost *host, Trace *trace) {
    trace_add_rank(trace, host->context.comm->rank, host->role_id);
    for (guint i = 0; i < host->op_rows->len; i++) {
        TraceOpRow row = *(const TraceOpRow *)host->op_rows->pdata[i];
        row.host_issue_ns -= host->start_ns;
        row.start_ns -= host->start_ns;
        row.end_ns -= host->start_ns;
        trace_add_op(trace, &row);
    }
    for (guint i = 0; i < host->memory_rows->len; i++) {
        TraceMemoryRow row = g_array_index(host->memory_rows, TraceMemoryRow, i);
        row.host_ns -= host->start_ns;
        trace_add_memory(trace, &row);
    }
}
