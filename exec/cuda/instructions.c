/* exec/cuda/instructions.c - the instructions of a plan: launches, events, steps.
 *
 * The host runs ahead of the GPU as far as CUDA lets it. Losses come back by a copy behind the op
 * that makes one, and are read when their step is over; so are the tables' bad indices.
 */
#include "exec/cuda/calls.h"
#include "exec/cuda/device-private.h"
#include "exec/results.h"

/* ---- launching ------------------------------------------------------------------------------ */

static bool issue(ExecCuda *cuda, const PlanPosition *at, const ExecTask *task, uint32_t lane,
                  GError **error) {
    ExecPlay *play = &cuda->play;
    cudaStream_t stream = cuda->streams[lane];
    ExecCudaLane at_lane = {cuda->kernels[lane], stream,       cuda->stage,
                            &cuda->comm,         cuda->traced, {0}};
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
    return issue(cuda, at, &task, lane, error) ? PLAN_DONE
                                               : exec_cuda_failed_in_op(cuda, at, op, error);
}

/* The host's own work: an offloaded optimizer's step. The plan has waited for its data. */
static PlanAnswer host_op(gpointer self, const PlanPosition *at, const PlanOp *op, GError **error) {
    ExecCuda *cuda = self;
    ExecTask task = exec_play_task(&cuda->play, at, op, cuda->pointers);
    ExecCudaLane lane = {cuda->kernels[0], cuda->streams[0], cuda->stage,
                         &cuda->comm,      cuda->traced,     {0}};
    return exec_cuda_launch(&task, &lane, error) ? PLAN_DONE
                                                 : exec_cuda_failed_in_op(cuda, at, op, error);
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
               : exec_cuda_failed_in_event(cuda, at, error);
}

static PlanAnswer wait_lane(gpointer self, const PlanPosition *at, uint32_t event,
                            uint32_t steps_before, uint32_t lane, GError **error) {
    ExecCuda *cuda = self;
    cudaEvent_t recorded = cuda->events[exec_play_event_table(at, steps_before)][event];
    return exec_cuda_ok(cudaStreamWaitEvent(cuda->streams[lane], recorded, 0),
                        "cudaStreamWaitEvent", error)
               ? PLAN_DONE
               : exec_cuda_failed_in_event(cuda, at, error);
}

static PlanAnswer host_wait(gpointer self, const PlanPosition *at, uint32_t event,
                            uint32_t steps_before, GError **error) {
    ExecCuda *cuda = self;
    cudaEvent_t recorded = cuda->events[exec_play_event_table(at, steps_before)][event];
    return exec_cuda_wait_for_event(cuda, recorded, error)
               ? PLAN_DONE
               : exec_cuda_failed_in_event(cuda, at, error);
}

/* ---- steps ---------------------------------------------------------------------------------- */

static PlanAnswer section_begins(gpointer self, const PlanPosition *at, GError **error) {
    ExecCuda *cuda = self;
    const ExecComm *comm = cuda->play.context.comm;
    if (!(at->step ? exec_cuda_wait_for_step(cuda, at->step - 2, error)
                   : exec_cuda_wait_for_lanes(cuda, error))) {
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
                   exec_cuda_found_broken(cuda, error)
               ? PLAN_DONE
               : PLAN_FAILED;
}

static PlanAnswer section_ends(gpointer self, const PlanPosition *at, GError **error) {
    ExecCuda *cuda = self;
    return at->step < 0 ||
                   exec_cuda_times_step_ends(cuda->times, at->step, cuda->streams[0], error) ||
                   exec_cuda_found_broken(cuda, error)
               ? PLAN_DONE
               : PLAN_FAILED;
}

const PlanDevice exec_cuda_instructions = {
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
