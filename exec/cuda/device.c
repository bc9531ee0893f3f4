/* exec/cuda/device.c - a GPU as a device: lanes are streams, events are CUDA's, memory is
 * cudaMalloc's.
 *
 * The host runs ahead of the GPU as far as CUDA lets it. Losses come back by a copy behind the op
 * that makes one, and are read when their step is over; so are the tables' bad indices. A host's
 * wait asks the event again and again, and between times whether the communicators still work.
 */
#include <sched.h>
#include <string.h>

#include "exec/cuda/calls.h"
#include "exec/cuda/comm/flights.h"
#include "exec/cuda/comm/sharers.h"
#include "exec/cuda/losses.h"
#include "exec/cuda/measure/costs.h"
#include "exec/cuda/measure/facts.h"
#include "exec/cuda/measure/times.h"
#include "exec/cuda/memory/room.h"
#include "exec/cuda/memory/segments.h"
#include "exec/cuda/ops/launch.h"
#include "exec/device.h"
#include "exec/results.h"
#include "kernels/cuda/attention.h"

typedef struct {
    ExecPlay play; /* first */
    cudaStream_t streams[PLAN_MAX_LANES];
    KernelCuda *kernels[PLAN_MAX_LANES];
    ExecCudaSegments segments;
    ExecCudaStage *stage;
    ExecCudaTimes *times;
    ExecCudaComm comm;
    gpointer *pointers;                       /* of the operands of the op being issued */
    cudaEvent_t *events[PLAN_MAX_BEFORE + 1]; /* exec_play_event_table() says whose */
    ExecCudaLosses losses;
    ExecCudaRoom room; /* for what kernels take */
    ExecCudaFlights flights;
    unsigned sharers;                                /* ranks on a GPU of this machine, at most */
    uint64_t driver_bytes_before, driver_bytes_open; /* in use before anything was made, and then */
    uint64_t scratch_bytes_open;                     /* of those, the kernels' */
    ExecCudaWatch *watch;                            /* of rank 0, while it trains; may be NULL */
    GError *failure;                                 /* the first, with where it was found */
} ExecCuda;

enum {
    LOOK_EVERY = 1024, /* questions to an event between two to the communicators */
    /* Assumed: a driver that nobody has asked since the machine began, libraries that still lie on
     * a disk, and NCCL's look at the machine take seconds each. */
    OPENING_S = 40,
};

/* ---- communicators -------------------------------------------------------------------------- */

static bool comm_is_healthy(ExecCuda *cuda, GError **error) {
    exec_cuda_flights_forget(&cuda->flights);
    if (cuda->comm.healthy(cuda->comm.self, error)) {
        return true;
    }
    const ExecCudaFlight *oldest = exec_cuda_flights_oldest(&cuda->flights);
    if (oldest) {
        exec_play_say_where(&cuda->play, oldest->step, oldest->op, oldest->unit, error);
    }
    return false;
}

/* ---- failures ------------------------------------------------------------------------------- */

/* A kernel's fault shows in whichever call comes later; then no op that is named is to blame, and a
 * library says only that it could not. */
static void say_if_broken(ExecCuda *cuda, GError **error) {
    cudaError_t state = cudaStreamQuery(cuda->streams[0]);
    cudaGetLastError();
    if (state == cudaSuccess || state == cudaErrorNotReady) {
        return;
    }
    if (!strstr((*error)->message, cudaGetErrorString(state))) {
        g_prefix_error(error, "%s (%s); ", cudaGetErrorString(state), cudaGetErrorName(state));
    }
    if (!g_str_equal(g_getenv("CUDA_LAUNCH_BLOCKING") ?: "0", "1")) {
        g_prefix_error_literal(error, "the GPU has faulted in this op or one before it (with "
                                      "CUDA_LAUNCH_BLOCKING=1 in the environment it is named): ");
    }
}

/* What is found later only follows from it. */
static PlanAnswer keep_failure(ExecCuda *cuda, GError *const *error) {
    cuda->failure = cuda->failure ? cuda->failure : g_error_copy(*error);
    return PLAN_FAILED;
}

static PlanAnswer failed_in_op(ExecCuda *cuda, const PlanPosition *at, const PlanOp *op,
                               GError **error) {
    say_if_broken(cuda, error);
    exec_play_say_where(&cuda->play, at->step, op, at->instr->unit, error);
    return keep_failure(cuda, error);
}

static PlanAnswer failed_in_event(ExecCuda *cuda, const PlanPosition *at, GError **error) {
    uint32_t unit = at->instr->unit;
    say_if_broken(cuda, error);
    g_prefix_error(error, "step %d, %s of an event%s%s: ", at->step,
                   plan_instr_name((PlanInstrKind)at->instr->kind),
                   unit == PLAN_NONE ? "" : " of unit ",
                   unit == PLAN_NONE ? "" : cuda->play.context.plan->units[unit].name);
    return keep_failure(cuda, error);
}

/* By whoever looks at what has ended: the steps before this one have. */
static bool found_broken(ExecCuda *cuda, GError **error) {
    uint32_t step = 0;
    while (step + 1 < cuda->play.steps && exec_play_step_has_ended(&cuda->play, step)) {
        step++;
    }
    say_if_broken(cuda, error);
    g_prefix_error(error, "step %u: ", step);
    keep_failure(cuda, error);
    return false;
}

/* ---- launching ------------------------------------------------------------------------------ */

static bool issue(ExecCuda *cuda, const PlanPosition *at, const ExecTask *task, uint32_t lane,
                  GError **error) {
    ExecPlay *play = &cuda->play;
    cudaStream_t stream = cuda->streams[lane];
    ExecCudaLane at_lane = {cuda->kernels[lane], stream, cuda->stage, &cuda->comm, {0}};
    TraceOpRow *row = exec_play_op_row(play, at, lane);
    double share = exec_play_loss_share(play, at, task->op);
    uint32_t op = (uint32_t)(task->op - play->context.role->ops);
    if (play->options.pace && plan_op_is_collective((PlanOpKind)task->op->kind)) {
        at_lane.paced = exec_pace_of(play->options.pace, play->role_id, op);
    }
    kernel_cuda_tag(cuda->kernels[lane], op);
    if (row && play->options.no_op_times) { /* when it was issued is all that is known */
        row->start_ns = row->end_ns = row->host_issue_ns;
    }
    return exec_cuda_times_op_begins(cuda->times, row, stream, error) &&
           exec_cuda_launch(task, &at_lane, error) &&
           exec_cuda_times_op_ends(cuda->times, row, stream, error) &&
           (share == 0 || exec_cuda_losses_send(&cuda->losses, at, task, share, stream, error)) &&
           (!plan_op_is_collective((PlanOpKind)task->op->kind) ||
            exec_cuda_flights_add(&cuda->flights, at->step, task->op, at->instr->unit, stream,
                                  error));
}

static PlanAnswer launch(gpointer self, const PlanPosition *at, const PlanOp *op, uint32_t lane,
                         GError **error) {
    ExecCuda *cuda = self;
    ExecTask task = exec_play_task(&cuda->play, at, op, cuda->pointers);
    return issue(cuda, at, &task, lane, error) ? PLAN_DONE : failed_in_op(cuda, at, op, error);
}

/* The host's own work: an offloaded optimizer's step. The plan has waited for its data. */
static PlanAnswer host_op(gpointer self, const PlanPosition *at, const PlanOp *op, GError **error) {
    ExecCuda *cuda = self;
    ExecTask task = exec_play_task(&cuda->play, at, op, cuda->pointers);
    ExecCudaLane lane = {cuda->kernels[0], cuda->streams[0], cuda->stage, &cuda->comm, {0}};
    return exec_cuda_launch(&task, &lane, error) ? PLAN_DONE : failed_in_op(cuda, at, op, error);
}

/* ---- events --------------------------------------------------------------------------------- */

static PlanAnswer record(gpointer self, const PlanPosition *at, uint32_t event, uint32_t lane,
                         GError **error) {
    ExecCuda *cuda = self;
    cudaEvent_t *slot = &cuda->events[exec_play_event_table(at, 0)][event];
    return (*slot || exec_cuda_ok(cudaEventCreateWithFlags(slot, cudaEventDisableTiming),
                                  "cudaEventCreateWithFlags", error)) &&
                   exec_cuda_ok(cudaEventRecord(*slot, cuda->streams[lane]), "cudaEventRecord",
                                error)
               ? PLAN_DONE
               : failed_in_event(cuda, at, error);
}

static PlanAnswer wait_lane(gpointer self, const PlanPosition *at, uint32_t event,
                            uint32_t steps_before, uint32_t lane, GError **error) {
    ExecCuda *cuda = self;
    cudaEvent_t recorded = cuda->events[exec_play_event_table(at, steps_before)][event];
    return exec_cuda_ok(cudaStreamWaitEvent(cuda->streams[lane], recorded, 0),
                        "cudaStreamWaitEvent", error)
               ? PLAN_DONE
               : failed_in_event(cuda, at, error);
}

/* Asks again and again, and gives the core away in between. */
static bool wait_until(ExecCuda *cuda, cudaError_t (*ask)(gpointer what), gpointer what,
                       const char *call, GError **error) {
    cudaError_t status;
    for (unsigned asked = 1; (status = ask(what)) == cudaErrorNotReady; asked++) {
        cudaGetLastError();
        if (asked % LOOK_EVERY == 0 && !comm_is_healthy(cuda, error)) {
            return false;
        }
        sched_yield();
    }
    return exec_cuda_ok(status, call, error) && comm_is_healthy(cuda, error);
}

static cudaError_t ask_event(gpointer event) {
    return cudaEventQuery(event);
}

static cudaError_t ask_stream(gpointer stream) {
    return cudaStreamQuery(stream);
}

static PlanAnswer host_wait(gpointer self, const PlanPosition *at, uint32_t event,
                            uint32_t steps_before, GError **error) {
    ExecCuda *cuda = self;
    cudaEvent_t recorded = cuda->events[exec_play_event_table(at, steps_before)][event];
    return wait_until(cuda, ask_event, recorded, "cudaEventQuery", error)
               ? PLAN_DONE
               : failed_in_event(cuda, at, error);
}

/* ---- what comes back ------------------------------------------------------------------------ */

/* The first bad index that any lane has met. */
static bool indices_are_good(const ExecCuda *cuda, GError **error) {
    const PlanRole *role = cuda->play.context.role;
    for (uint32_t lane = 0; lane < cuda->play.context.plan->n_lanes; lane++) {
        uint32_t op;
        if (kernel_cuda_bad_index(cuda->kernels[lane], &op)) {
            PlanOpKind kind = (PlanOpKind)role->ops[op].kind;
            bool is_split = kind == PLAN_OP_SPLITS_TO_HOST;
            g_set_error(error, EXEC_ERROR, is_split ? EXEC_ERROR_INPUT : EXEC_ERROR_FAILED,
                        "op %s: %s", plan_op_info(kind)->name,
                        is_split ? "the router sends more rows to one rank than to another, and a "
                                   "plan of experts that ranks share has room for as many each; "
                                   "set routing = in-turn in the network"
                                 : "an index lies outside its table");
            return false;
        }
    }
    return true;
}

/* Looks what has ended. */
static bool settle(ExecCuda *cuda, GError **error) {
    if (cuda->segments.error) {
        g_propagate_error(error, g_error_copy(cuda->segments.error));
        return found_broken(cuda, error);
    }
    if (!exec_cuda_times_settle(cuda->times, &cuda->play, error)) {
        return found_broken(cuda, error);
    }
    if (!indices_are_good(cuda, error) ||
        !exec_cuda_losses_read(&cuda->losses, &cuda->play, error)) {
        keep_failure(cuda, error); /* a bad index is told of once, and losses follow from it */
        return false;
    }
    return true;
}

static bool healthy(ExecPlay *play, GError **error) {
    ExecCuda *cuda = (ExecCuda *)play;
    if (cuda->failure) {
        g_propagate_error(error, g_error_copy(cuda->failure));
        return false;
    }
    return settle(cuda, error) && comm_is_healthy(cuda, error);
}

static bool wait_for_lanes(ExecCuda *cuda, GError **error) {
    for (uint32_t lane = 0; lane < cuda->play.context.plan->n_lanes; lane++) {
        if (!wait_until(cuda, ask_stream, cuda->streams[lane], "cudaStreamQuery", error)) {
            return found_broken(cuda, error);
        }
    }
    exec_cuda_watch_stop(cuda->watch);
    return settle(cuda, error);
}

/* A collective that will never end would hold its step's end for ever: communicators are looked at
 * here as wherever the host waits. */
static bool wait_for_step(ExecCuda *cuda, int32_t step, GError **error) {
    for (unsigned asked = 1; settle(cuda, error); asked++) {
        if (step < 0 || exec_play_step_has_ended(&cuda->play, (uint32_t)step)) {
            return true;
        }
        if (asked % LOOK_EVERY == 0 && !comm_is_healthy(cuda, error)) {
            return false;
        }
        sched_yield();
    }
    return false;
}

static bool drain(ExecPlay *play, GError **error) {
    return wait_for_lanes((ExecCuda *)play, error);
}

/* ---- steps ---------------------------------------------------------------------------------- */

static PlanAnswer section_begins(gpointer self, const PlanPosition *at, GError **error) {
    ExecCuda *cuda = self;
    const ExecComm *comm = cuda->play.context.comm;
    if (!(at->step ? wait_for_step(cuda, at->step - 2, error) : wait_for_lanes(cuda, error))) {
        return PLAN_FAILED;
    }
    if (at->step) {
        return PLAN_DONE;
    }
    cuda->watch = exec_results_speaks(comm) ? exec_cuda_watch_new() : NULL;
    if (!comm->barrier(comm->self, error)) {
        return PLAN_FAILED;
    }
    exec_cuda_watch_start(cuda->watch);
    return exec_cuda_times_start(cuda->times, cuda->streams[0], &cuda->play.start_ns, error) ||
                   found_broken(cuda, error)
               ? PLAN_DONE
               : PLAN_FAILED;
}

static PlanAnswer section_ends(gpointer self, const PlanPosition *at, GError **error) {
    ExecCuda *cuda = self;
    return at->step < 0 ||
                   exec_cuda_times_step_ends(cuda->times, at->step, cuda->streams[0], error) ||
                   found_broken(cuda, error)
               ? PLAN_DONE
               : PLAN_FAILED;
}

static const PlanDevice instructions = {
    .name = "cuda",
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

/* ---- the device itself ---------------------------------------------------------------------- */

/* Communication goes first where both could run, as PyTorch's FSDP asks for. */
static bool make_lanes(ExecCuda *cuda, GError **error) {
    int least = 0, greatest = 0;
    uint32_t n = cuda->play.context.plan->n_lanes;
    g_assert(n <= PLAN_MAX_LANES);
    if (!exec_cuda_ok(cudaDeviceGetStreamPriorityRange(&least, &greatest),
                      "cudaDeviceGetStreamPriorityRange", error)) {
        return false;
    }
    for (uint32_t lane = 0; lane < n; lane++) {
        if (!exec_cuda_ok(cudaStreamCreateWithPriority(&cuda->streams[lane], cudaStreamNonBlocking,
                                                       lane ? greatest : least),
                          "cudaStreamCreateWithPriority", error) ||
            !exec_cuda_kernel_ok(
                kernel_cuda_new(&cuda->kernels[lane], cuda->streams[lane], KERNEL_CUDA_EXACT),
                error)) {
            return false;
        }
        kernel_cuda_attention_own_only(cuda->kernels[lane], g_getenv("FORESHARD_NO_CUDNN") != NULL);
    }
    return true;
}

static bool open_comm(ExecCuda *cuda, GError **error) {
    const ExecContext *c = &cuda->play.context;
    ExecCudaCommKind kind;
    return exec_cuda_comm_kind(cuda->play.options.comm, &kind, error) &&
           exec_cuda_comm_open(&cuda->comm, kind, c->plan, c->comm,
                               exec_cuda_comm_largest(c->plan, c->comm->rank), error);
}

static bool make_tables(ExecCuda *cuda, GError **error) {
    const PlanRole *role = cuda->play.context.role;
    cuda->play.context.slots = exec_slots_new(role, &exec_cuda_slot_memory);
    cuda->stage = exec_cuda_stage_new();
    cuda->times = exec_cuda_times_new(!cuda->play.options.no_op_times);
    for (unsigned i = 0; i <= PLAN_MAX_BEFORE; i++) {
        cuda->events[i] = g_new0(cudaEvent_t, role->n_events);
    }
    uint32_t most = 0;
    for (uint32_t i = 0; i < role->n_ops; i++) {
        most = MAX(most, role->ops[i].n_operands);
    }
    cuda->pointers = g_new(gpointer, most + 1);
    /* Of the steps that may be under way. */
    return exec_cuda_losses_init(&cuda->losses, (role->n_loss_ops + 1) * (PLAN_MAX_BEFORE + 2),
                                 error);
}

static uint64_t scratch_bytes(const ExecCuda *cuda) {
    uint64_t bytes = 0;
    for (uint32_t lane = 0; lane < cuda->play.context.plan->n_lanes; lane++) {
        bytes += kernel_cuda_scratch_bytes(cuda->kernels[lane]);
    }
    return bytes;
}

static bool open_gpu(ExecCuda *cuda, GError **error) {
    ExecPlay *play = &cuda->play;
    int64_t begun_ns;
    if (!exec_cuda_take_gpu(play->context.comm, error) ||
        !exec_cuda_sharers(play->context.comm, &cuda->sharers, error)) {
        return false;
    }
    cuda->driver_bytes_before = exec_cuda_facts_used_bytes();
    bool ok = make_lanes(cuda, error) && make_tables(cuda, error) && open_comm(cuda, error) &&
              exec_cuda_segments_init(&cuda->segments, cuda->streams,
                                      play->options.memory_limit_bytes, error) &&
              exec_play_take_memory(play, exec_cuda_segments_source(), &cuda->segments, error) &&
              exec_cuda_times_start(cuda->times, cuda->streams[0], &begun_ns, error);
    cuda->room.caching = play->caching;
    for (uint32_t lane = 0; ok && lane < play->context.plan->n_lanes; lane++) {
        exec_cuda_room_for(&cuda->room, cuda->kernels[lane]);
    }
    cuda->driver_bytes_open = exec_cuda_facts_used_bytes();
    cuda->scratch_bytes_open = scratch_bytes(cuda);
    play->options.memory_limit_bytes = cuda->segments.limit_bytes; /* the GPU's, if that is less */
    return ok;
}

static bool suits(const ExecComm *comm, const ExecOptions *options, GError **error) {
    ExecCudaCommKind unasked;
    if (options->pace && !comm->rehearsed) {
        g_set_error_literal(error, EXEC_ERROR, EXEC_ERROR_INPUT,
                            "between GPUs collectives take what they take; leave --pace away, or "
                            "rehearse");
        return false;
    }
    return exec_cuda_comm_kind(options->comm, &unasked, error);
}

static ExecPlay *open_cuda(const Plan *plan, const ExecComm *comm, uint32_t steps,
                           const ExecOptions *options, GError **error) {
    ExecCuda *cuda = g_new0(ExecCuda, 1);
    g_autoptr(ExecPlay) play = &cuda->play;
    play->device = &exec_cuda;
    exec_cuda_flights_init(&cuda->flights);
    return exec_play_init(play, &exec_cuda, plan, comm, steps, options, error) &&
                   open_gpu(cuda, error)
               ? g_steal_pointer(&play)
               : NULL;
}

static void close_events(ExecCuda *cuda) {
    const PlanRole *role = cuda->play.context.role;
    for (unsigned table = 0; table <= PLAN_MAX_BEFORE && cuda->events[table]; table++) {
        for (uint32_t i = 0; i < role->n_events; i++) {
            if (cuda->events[table][i]) {
                cudaEventDestroy(cuda->events[table][i]);
            }
        }
        g_free(cuda->events[table]);
    }
}

static void close_cuda(ExecPlay *play) {
    ExecCuda *cuda = (ExecCuda *)play;
    g_clear_error(&cuda->failure);
    exec_cuda_watch_free(cuda->watch);
    for (uint32_t lane = 0; lane < PLAN_MAX_LANES; lane++) {
        kernel_cuda_free(cuda->kernels[lane]); /* waits for its stream */
    }
    exec_cuda_comm_close(&cuda->comm);
    exec_cuda_times_free(cuda->times);
    exec_cuda_stage_free(cuda->stage);
    exec_slots_free(play->context.slots);
    close_events(cuda);
    exec_cuda_flights_clear(&cuda->flights);
    g_free(cuda->pointers);
    exec_cuda_losses_clear(&cuda->losses);
    exec_play_clear(play);
    exec_cuda_segments_clear(&cuda->segments);
    for (uint32_t lane = 0; lane < PLAN_MAX_LANES; lane++) {
        if (cuda->streams[lane]) {
            cudaStreamDestroy(cuda->streams[lane]);
        }
    }
    g_free(cuda);
}

static bool fetch(ExecPlay *play, gpointer to, gconstpointer from, gsize bytes, GError **error) {
    return exec_cuda_ok(cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToHost), "cudaMemcpy", error);
}

/* Where fused attention was computed; NULL: the plan has none. */
static const char *attention_by(const ExecCuda *cuda) {
    uint64_t own = 0, cudnn = 0;
    for (uint32_t lane = 0; lane < cuda->play.context.plan->n_lanes; lane++) {
        own += kernel_cuda_attention_calls(cuda->kernels[lane], KERNEL_CUDA_ATTENTION_OWN);
        cudnn += kernel_cuda_attention_calls(cuda->kernels[lane], KERNEL_CUDA_ATTENTION_CUDNN);
    }
    return own && cudnn ? "cuDNN, and own kernels" : own ? "own kernels" : cudnn ? "cuDNN" : NULL;
}

/* Why one of a lane's shapes was not cuDNN's, which has tensor cores; NULL: none was refused. */
static const char *attention_refused(const ExecPlay *play) {
    const ExecCuda *cuda = (const ExecCuda *)play;
    const char *why = NULL;
    for (uint32_t lane = 0; lane < cuda->play.context.plan->n_lanes; lane++) {
        why = why ? why : kernel_cuda_attention_refusal(cuda->kernels[lane]);
    }
    return why;
}

/* One rank speaks for all. Used bytes are those of all ranks and programs on its GPU. */
static void describe(const ExecPlay *play, Trace *trace) {
    const ExecCuda *cuda = (const ExecCuda *)play;
    if (!exec_results_speaks(play->context.comm)) {
        return;
    }
    exec_cuda_facts_add(trace);
    trace_set(trace, "gpu_comm", cuda->comm.name);
    if (attention_by(cuda)) {
        trace_set(trace, "gpu_attention", attention_by(cuda));
    }
    if (attention_refused(play)) {
        trace_set(trace, "gpu_attention_refused", attention_refused(play));
    }
    trace_set_uint(trace, "gpu_ranks_sharing", cuda->sharers);
    trace_set(trace, "op_times", play->options.no_op_times ? "no" : "cuda events");
    trace_set_uint(trace, "op_times_record_ns", exec_cuda_times_record_ns(cuda->times));
    exec_cuda_watch_add(cuda->watch, trace);
    trace_set_uint(trace, "gpu_used_bytes_before", cuda->driver_bytes_before);
    trace_set_uint(trace, "gpu_used_bytes_open", cuda->driver_bytes_open);
    trace_set_uint(trace, "gpu_used_bytes_end", exec_cuda_facts_used_bytes());
    trace_set_uint(trace, "reserved_bytes_end", memory_caching_reserved(play->caching));
    trace_set_uint(trace, "kernel_scratch_bytes", scratch_bytes(cuda));
    trace_set_uint(trace, "kernel_scratch_bytes_open", cuda->scratch_bytes_open);
    trace_set_uint(trace, "kernel_scratch_given_bytes", cuda->room.given_bytes);
}

static void explain(const ExecPlay *play, GString *text) {
    const ExecCuda *cuda = (const ExecCuda *)play;
    const ExecCudaFlight *oldest = exec_cuda_flights_oldest(&cuda->flights);
    if (oldest) {
        uint32_t unit = oldest->unit;
        g_string_append_printf(
            text, "; the oldest collective not seen to end is %s%s%s of step %d",
            plan_op_info((PlanOpKind)oldest->op->kind)->name, unit == PLAN_NONE ? "" : " of unit ",
            unit == PLAN_NONE ? "" : play->context.plan->units[unit].name, oldest->step);
    }
}

static const char *between(const ExecPlay *play) {
    return ((const ExecCuda *)play)->comm.name;
}

const ExecDevice exec_cuda = {
    .name = "cuda",
    .opening_s = OPENING_S,
    .instructions = &instructions,
    .knows = exec_cuda_knows,
    .suits = suits,
    .open = open_cuda,
    .close = close_cuda,
    .drain = drain,
    .healthy = healthy,
    .fetch = fetch,
    .describe = describe,
    .costs = exec_cuda_costs,
    .explain = explain,
    .between = between,
    .attention_refused = attention_refused,
};
