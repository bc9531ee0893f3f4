/* exec/host/device.c - the CPU as a device: lanes are threads, memory is mapped, kernels are real.
 *
 * Allocation and release happen on the host thread, when the player asks; work runs later on its
 * lane; reuse of memory is safe for the reasons it is safe on a GPU: a pool serves its own lane, in
 * order, and the plan's events order the others. The host may run ahead of a lane by
 * EXEC_LANE_DEPTH ops (exec/host/lanes.h).
 */
#include <string.h>

#include "exec/clock.h"
#include "exec/convert.h"
#include "exec/device.h"
#include "exec/host/costs.h"
#include "exec/host/lanes.h"
#include "exec/host/launch.h"
#include "exec/host/segments.h"
#include "exec/results.h"
#include "exec/watch/patience.h"
#include "kernels/host/runtime.h"
#include "plan/mesh.h"
#include "plan/op/names.h"

enum {
    N_TALKS = 4 /* with the stage before or behind, of exchanges or not */
};

typedef struct {
    ExecPlay play; /* first */
    ExecLanes *lanes;
    ExecTickets tickets[PLAN_N_AXES]; /* of collectives in which an axis takes part */
    ExecTickets talks[N_TALKS];
    ExecSegments segments;
    ExecMoment *events[PLAN_MAX_BEFORE + 1]; /* exec_play_event_table() says whose */
} ExecHost;

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
    uint32_t unit;
    unsigned place; /* lane or host, and what it is about meanwhile (exec/watch/black-box.h) */
    uint64_t doing;
    TraceOpRow *row;      /* owned by the play; NULL: no rows are kept */
    ExecTickets *tickets; /* collectives */
    uint64_t ticket;
    double loss_share;   /* of the step's loss; 0: this op makes none */
    gpointer pointers[]; /* the task's */
} Work;

static bool note_loss(const Work *work, GError **error) {
    const ExecTask *t = &work->task;
    unsigned i = loss_operand(t);
    float loss;
    exec_convert(&loss, PLAN_FP32, t->pointers[i], operand_dtype(t, i), 1);
    return exec_play_note_loss(&work->host->play, t->step, (double)loss, work->loss_share, error);
}

static bool meet(const ExecTask *t, int64_t *ns, GError **error) {
    const ExecComm *comm = t->context->comm;
    return plan_op_is_of_stages((PlanOpKind)t->op->kind)
               ? exec_comm_meet_to_talk(comm, talk_of(t), ns, error)
               : comm->meet(comm->self, (PlanAxis)t->op->axis, ns, error);
}

/* A collective ends when its data have arrived, but not before the modeled network would be
 * done. */
static bool run_paced(const Work *work, GError **error) {
    const ExecPlay *play = &work->host->play;
    const ExecComm *comm = play->context.comm;
    uint32_t op = (uint32_t)(work->task.op - play->context.role->ops);
    int64_t last_ns = exec_now_ns();
    if (!meet(&work->task, &last_ns, error)) {
        return false;
    }
    if (comm->world != comm->local_world) { /* other machines have clocks of their own */
        last_ns = exec_now_ns();
    }
    if (!exec_host_run(&work->task, error)) {
        return false;
    }
    exec_pace_sleep_until(last_ns + exec_pace_of(play->options.pace, play->role_id, op).least_ns);
    return true;
}

/* The host or another lane may be waiting for ranks that wait for what failed here, and will now
 * fail as well. So the cause is noted first. */
static void fail(const Work *work, const GError *error) {
    const ExecComm *comm = work->host->play.context.comm;
    exec_lanes_fail(work->host->lanes, error);
    comm->give_up(comm->self);
}

static bool run_work(gpointer data, GError **error) {
    Work *work = data;
    ExecPlay *play = &work->host->play;
    ExecDoing *doing = play->context.comm->doing;
    exec_doing_begin(doing, work->place, work->doing);
    if (work->tickets && !exec_lanes_enter(work->host->lanes, work->tickets, work->ticket)) {
        return true; /* another lane has failed, and says why */
    }
    int64_t start = exec_now_ns();
    bool paced = work->tickets && play->options.pace;
    bool ok = paced ? run_paced(work, error) : exec_host_run(&work->task, error);
    if (work->row) {
        work->row->start_ns = start;
        work->row->end_ns = exec_now_ns();
    }
    if (work->tickets) {
        exec_lanes_leave(work->host->lanes, work->tickets);
    }
    ok = ok && (work->loss_share == 0 || note_loss(work, error));
    if (!ok) {
        exec_play_say_where(play, work->task.step, work->task.op, work->unit, error);
        fail(work, *error);
    }
    exec_doing_end(doing, work->place, work->doing);
    return ok;
}

/* The tickets that an op of several ranks must keep. */
static ExecTickets *tickets_of(ExecHost *host, const PlanOp *op) {
    const ExecContext *c = &host->play.context;
    if (!plan_op_is_of_stages((PlanOpKind)op->kind)) {
        return &host->tickets[op->axis];
    }
    uint32_t place = plan_rank_on_axis(c->plan, c->comm->rank, PLAN_AXIS_PIPELINE);
    bool behind = plan_is_behind(c->plan, place, plan_op_dims(c->role, op)[STAGE_COLLECTIVE_PEER]);
    bool swaps = op->kind == PLAN_OP_EXCHANGE;
    return &host->talks[2 * behind + swaps];
}

static Work *make_work(ExecHost *host, const PlanPosition *at, const PlanOp *op, unsigned place) {
    Work *work = g_malloc0(sizeof *work + op->n_operands * sizeof(gpointer));
    work->host = host;
    work->unit = at->instr->unit;
    work->place = place;
    work->doing = exec_doing_word(at);
    work->task = exec_play_task(&host->play, at, op, work->pointers);
    work->loss_share = exec_play_loss_share(&host->play, at, op);
    if (plan_op_joins_ranks((PlanOpKind)op->kind)) {
        work->tickets = tickets_of(host, op);
        work->ticket = work->tickets->next_ticket++;
    }
    return work;
}

static PlanAnswer launch(gpointer self, const PlanPosition *at, const PlanOp *op, uint32_t lane,
                         GError **error) {
    ExecHost *host = self;
    if (exec_lanes_failed(host->lanes)) {
        return failed(host, error);
    }
    Work *work = make_work(host, at, op, lane);
    work->row = exec_play_op_row(&host->play, at, lane);
    exec_lanes_give(host->lanes, lane, run_work, work, g_free);
    return PLAN_DONE;
}

static PlanAnswer host_op(gpointer self, const PlanPosition *at, const PlanOp *op, GError **error) {
    g_autofree Work *work = make_work(self, at, op, EXEC_DOING_HOST);
    return run_work(work, error) ? PLAN_DONE : PLAN_FAILED;
}

/* ---- events --------------------------------------------------------------------------------- */

static PlanAnswer record(gpointer self, const PlanPosition *at, uint32_t event, uint32_t lane,
                         GError **error) {
    ExecHost *host = self;
    host->events[exec_play_event_table(at, 0)][event] = exec_lanes_moment(host->lanes, lane);
    return PLAN_DONE;
}

static PlanAnswer wait_lane(gpointer self, const PlanPosition *at, uint32_t event,
                            uint32_t steps_before, uint32_t lane, GError **error) {
    ExecHost *host = self;
    exec_lanes_wait(host->lanes, lane,
                    host->events[exec_play_event_table(at, steps_before)][event]);
    return PLAN_DONE;
}

static PlanAnswer host_wait(gpointer self, const PlanPosition *at, uint32_t event,
                            uint32_t steps_before, GError **error) {
    ExecHost *host = self;
    return exec_lanes_host_wait(host->lanes,
                                host->events[exec_play_event_table(at, steps_before)][event])
               ? PLAN_DONE
               : failed(host, error);
}

/* ---- steps ---------------------------------------------------------------------------------- */

static bool drain(ExecPlay *play, GError **error) {
    ExecHost *host = (ExecHost *)play;
    return exec_lanes_drain(host->lanes) || failed(host, error) == PLAN_DONE;
}

static bool healthy(ExecPlay *play, GError **error) {
    ExecHost *host = (ExecHost *)play;
    return !exec_lanes_failed(host->lanes) || failed(host, error) == PLAN_DONE;
}

static PlanAnswer section_begins(gpointer self, const PlanPosition *at, GError **error) {
    ExecHost *host = self;
    const ExecComm *comm = host->play.context.comm;
    if (at->step == 0) {
        if (!drain(&host->play, error)) {
            return PLAN_FAILED;
        }
        if (!comm->barrier(comm->self, error)) {
            g_prefix_error(error, "before step 0: ");
            return PLAN_FAILED;
        }
        host->play.start_ns = exec_now_ns();
    }
    return PLAN_DONE;
}

typedef struct {
    ExecPlay *play;
    int32_t step;
} StepEnd;

static bool note_step_end(gpointer data, GError **error) {
    const StepEnd *end = data;
    exec_play_note_step_end(end->play, end->step, exec_now_ns());
    return true;
}

static PlanAnswer section_ends(gpointer self, const PlanPosition *at, GError **error) {
    ExecHost *host = self;
    if (at->step >= 0) {
        StepEnd end = {&host->play, at->step};
        exec_lanes_give(host->lanes, 0, note_step_end, g_memdup2(&end, sizeof end), g_free);
    }
    return PLAN_DONE;
}

static const PlanDevice instructions = {
    .name = "host",
    .section_begins = section_begins,
    .section_ends = section_ends,
    .alloc = exec_play_alloc,
    .free = exec_play_release,
    .mark = exec_play_mark,
    .launch = launch,
    .record = record,
    .wait = wait_lane,
    .host_wait = host_wait,
    .host_op = host_op,
};

/* ---- paced ---------------------------------------------------------------------------------- */

static bool hurry(gpointer work, GError **error) {
    exec_patience_hurry();
    return true;
}

/* All but the compute lane sleep most of the time, and what they then do is due at once. */
static void hurry_others(ExecLanes *lanes, const Plan *plan) {
    exec_patience_hurry(); /* the host */
    for (uint32_t lane = 0; lane < plan->n_lanes; lane++) {
        if (lane != plan_compute_lane(plan)) {
            exec_lanes_give(lanes, lane, hurry, NULL, NULL);
        }
    }
}

/* ---- the device itself ---------------------------------------------------------------------- */

static ExecPlay *open_host(const Plan *plan, const ExecComm *comm, uint32_t steps,
                           const ExecOptions *options, GError **error) {
    ExecHost *host = g_new0(ExecHost, 1);
    g_autoptr(ExecPlay) play = &host->play;
    play->device = &exec_host;
    if (!exec_play_init(play, &exec_host, plan, comm, steps, options, error)) {
        return NULL;
    }
    play->context.slots = exec_slots_new(play->context.role, NULL);
    host->lanes = exec_lanes_new(plan->n_lanes);
    if (options->pace) {
        hurry_others(host->lanes, plan);
    }
    host->segments = (ExecSegments){host->lanes, options->memory_limit_bytes, 0};
    for (unsigned i = 0; i <= PLAN_MAX_BEFORE; i++) {
        host->events[i] = g_new0(ExecMoment, play->context.role->n_events);
    }
    return exec_play_take_memory(play, &exec_segments_source, &host->segments, error)
               ? g_steal_pointer(&play)
               : NULL;
}

static void close_host(ExecPlay *play) {
    ExecHost *host = (ExecHost *)play;
    exec_lanes_free(g_steal_pointer(&host->lanes));
    host->segments.lanes = NULL;
    exec_slots_free(play->context.slots);
    exec_play_clear(play);
    for (unsigned i = 0; i <= PLAN_MAX_BEFORE; i++) {
        g_free(host->events[i]);
    }
    g_free(host);
}

static bool fetch(ExecPlay *play, gpointer to, gconstpointer from, gsize bytes, GError **error) {
    memcpy(to, from, bytes);
    return true;
}

static void describe(const ExecPlay *play, Trace *trace) {
    trace_set(trace, "blas", kernel_blas_name());
    trace_set(trace, "isa", kernel_isa_name());
    trace_set(trace, "compiler", __VERSION__);
    if (exec_results_speaks(play->context.comm)) {
        trace_set_uint(trace, "mapped_bytes", ((const ExecHost *)play)->segments.mapped_bytes);
    }
}

const ExecDevice exec_host = {
    .name = "host",
    .instructions = &instructions,
    .knows = exec_host_knows,
    .open = open_host,
    .close = close_host,
    .drain = drain,
    .healthy = healthy,
    .fetch = fetch,
    .describe = describe,
    .costs = exec_host_costs,
};
