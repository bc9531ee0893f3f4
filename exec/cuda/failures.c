/* exec/cuda/failures.c - where something failed, in the words of the plan. */
#include <string.h>

#include "exec/cuda/calls.h"
#include "exec/cuda/device-private.h"

bool exec_cuda_comm_is_healthy(ExecCuda *cuda, GError **error) {
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

PlanAnswer exec_cuda_keep_failure(ExecCuda *cuda, GError *const *error) {
    cuda->failure = cuda->failure ? cuda->failure : g_error_copy(*error);
    return PLAN_FAILED;
}

PlanAnswer exec_cuda_failed_in_op(ExecCuda *cuda, const PlanPosition *at, const PlanOp *op,
                                  GError **error) {
    say_if_broken(cuda, error);
    exec_play_say_where(&cuda->play, at->step, op, at->instr->unit, error);
    return exec_cuda_keep_failure(cuda, error);
}

PlanAnswer exec_cuda_failed_in_event(ExecCuda *cuda, const PlanPosition *at, GError **error) {
    uint32_t unit = at->instr->unit;
    say_if_broken(cuda, error);
    g_prefix_error(error, "step %d, %s of an event%s%s: ", at->step,
                   plan_instr_name((PlanInstrKind)at->instr->kind),
                   unit == PLAN_NONE ? "" : " of unit ",
                   unit == PLAN_NONE ? "" : cuda->play.context.plan->units[unit].name);
    return exec_cuda_keep_failure(cuda, error);
}

bool exec_cuda_found_broken(ExecCuda *cuda, GError **error) {
    uint32_t step = 0;
    while (step + 1 < cuda->play.steps && exec_play_step_has_ended(&cuda->play, step)) {
        step++;
    }
    say_if_broken(cuda, error);
    g_prefix_error(error, "step %u: ", step);
    exec_cuda_keep_failure(cuda, error);
    return false;
}
