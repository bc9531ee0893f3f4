/* exec/cuda/device.c - a GPU as a device: lanes are streams, events are CUDA's, memory is
 * cudaMalloc's, or pages that the driver maps. It is opened and closed here, and its facts told.
 */
#include "exec/cuda/calls.h"
#include "exec/cuda/comm/sharers.h"
#include "exec/cuda/device-private.h"
#include "exec/cuda/measure/costs.h"
#include "exec/cuda/measure/facts.h"
#include "exec/cuda/ops/traced.h"
#include "exec/cuda/own-gpu.h"
#include "exec/results.h"
#include "kernels/cuda/attention/attention.h"

enum {
    /* Assumed: a driver that nobody has asked since the machine began, libraries that still lie on
     * a disk, and NCCL's look at the machine take seconds each. */
    OPENING_S = 40,
};

static bool healthy(ExecPlay *play, GError **error) {
    ExecCuda *cuda = (ExecCuda *)play;
    if (cuda->failure) {
        g_propagate_error(error, g_error_copy(cuda->failure));
        return false;
    }
    return exec_cuda_settle(cuda, error) && exec_cuda_comm_is_healthy(cuda, error);
}

static bool drain(ExecPlay *play, GError **error) {
    return exec_cuda_wait_for_lanes((ExecCuda *)play, error);
}

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
    cuda->traced = exec_cuda_traced_new();
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
    cuda->driver_bytes_before = exec_cuda_used_bytes();
    bool ok = make_lanes(cuda, error) && make_tables(cuda, error) && open_comm(cuda, error) &&
              exec_cuda_segments_init(&cuda->segments, cuda->streams,
                                      play->options.memory_limit_bytes, error) &&
              exec_play_take_memory(play, exec_cuda_segments_source(), &cuda->segments, error) &&
              exec_cuda_times_start(cuda->times, cuda->streams[0], &begun_ns, error);
    cuda->room.caching = play->caching;
    for (uint32_t lane = 0; ok && lane < play->context.plan->n_lanes; lane++) {
        exec_cuda_room_for(&cuda->room, cuda->kernels[lane]);
    }
    cuda->driver_bytes_open = exec_cuda_used_bytes();
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
    exec_cuda_traced_free(cuda->traced);
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
    trace_set_uint(trace, "gpu_used_bytes_end", exec_cuda_used_bytes());
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
    .instructions = &exec_cuda_instructions,
    .knows = exec_cuda_knows,
    .suits = suits,
    .open = open_cuda,
    .close = close_cuda,
    .drain = drain,
    .healthy = healthy,
    .fetch = fetch,
    .free_bytes = exec_cuda_free_bytes,
    .describe = describe,
    .costs = exec_cuda_costs,
    .explain = explain,
    .between = between,
    .attention_refused = attention_refused,
};
