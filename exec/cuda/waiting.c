/* exec/cuda/waiting.c - the host waits for the GPU, and takes what comes back.
 *
 * A wait asks the event again and again, and between times whether the communicators still work.
 */
#include <sched.h>

#include "exec/cuda/calls.h"
#include "exec/cuda/device-private.h"

enum {
    LOOK_EVERY = 1024 /* questions to an event between two to the communicators */
};

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

bool exec_cuda_settle(ExecCuda *cuda, GError **error) {
    if (cuda->segments.error) {
        g_propagate_error(error, g_error_copy(cuda->segments.error));
        return exec_cuda_found_broken(cuda, error);
    }
    if (!exec_cuda_times_settle(cuda->times, &cuda->play, error)) {
        return exec_cuda_found_broken(cuda, error);
    }
    if (!indices_are_good(cuda, error) ||
        !exec_cuda_losses_read(&cuda->losses, &cuda->play, error)) {
        exec_cuda_keep_failure(cuda,
                               error); /* a bad index is told of once, and losses follow from it */
        return false;
    }
    return true;
}

/* ---- waiting -------------------------------------------------------------------------------- */

/* Asks again and again, and gives the core away in between. */
static bool wait_until(ExecCuda *cuda, cudaError_t (*ask)(gpointer what), gpointer what,
                       const char *call, GError **error) {
    cudaError_t status;
    for (unsigned asked = 1; (status = ask(what)) == cudaErrorNotReady; asked++) {
        cudaGetLastError();
        if (asked % LOOK_EVERY == 0 && !exec_cuda_comm_is_healthy(cuda, error)) {
            return false;
        }
        sched_yield();
    }
    return exec_cuda_ok(status, call, error) && exec_cuda_comm_is_healthy(cuda, error);
}

static cudaError_t ask_event(gpointer event) {
    return cudaEventQuery(event);
}

bool exec_cuda_wait_for_event(ExecCuda *cuda, cudaEvent_t event, GError **error) {
    return wait_until(cuda, ask_event, event, "cudaEventQuery", error);
}

static cudaError_t ask_stream(gpointer stream) {
    return cudaStreamQuery(stream);
}

bool exec_cuda_wait_for_lanes(ExecCuda *cuda, GError **error) {
    for (uint32_t lane = 0; lane < cuda->play.context.plan->n_lanes; lane++) {
        if (!wait_until(cuda, ask_stream, cuda->streams[lane], "cudaStreamQuery", error)) {
            return exec_cuda_found_broken(cuda, error);
        }
    }
    exec_cuda_watch_stop(cuda->watch);
    return exec_cuda_settle(cuda, error);
}

/* A collective that will never end would hold its step's end for ever: communicators are looked at
 * here as wherever the host waits. */
bool exec_cuda_wait_for_step(ExecCuda *cuda, int32_t step, GError **error) {
    for (unsigned asked = 1; exec_cuda_settle(cuda, error); asked++) {
        if (step < 0 || exec_play_step_has_ended(&cuda->play, (uint32_t)step)) {
            return true;
        }
        if (asked % LOOK_EVERY == 0 && !exec_cuda_comm_is_healthy(cuda, error)) {
            return false;
        }
        sched_yield();
    }
    return false;
}
