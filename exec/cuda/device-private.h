/* exec/cuda/device-private.h - the play of a rank on a GPU, and what the files of the device ask of
 * each other.
 *
 * device.c opens and closes it, and says what it was; instructions.c carries out a plan's
 * instructions; waiting.c waits for the GPU, and takes what comes back; failures.c says where
 * something failed.
 */
#pragma once

#include "exec/cuda/comm/flights.h"
#include "exec/cuda/losses.h"
#include "exec/cuda/measure/times.h"
#include "exec/cuda/measure/watch.h"
#include "exec/cuda/memory/room.h"
#include "exec/cuda/memory/segments.h"
#include "exec/cuda/ops/launch.h"
#include "exec/device.h"

typedef struct {
    ExecPlay play; /* first */
    cudaStream_t streams[PLAN_MAX_LANES];
    KernelCuda *kernels[PLAN_MAX_LANES];
    ExecCudaSegments segments;
    ExecCudaStage *stage;
    ExecCudaTraced *traced;
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

/* ---- failures.c ----------------------------------------------------------------------------- */

/* Whether the communicators still work; the error also says which collective has been under way
 * longest. */
bool exec_cuda_comm_is_healthy(ExecCuda *cuda, GError **error);
/* These add to an error where it comes from, and keep it if it is the first one (later ones only
 * follow from it). They return PLAN_FAILED, exec_cuda_found_broken() false. */
PlanAnswer exec_cuda_keep_failure(ExecCuda *cuda, GError *const *error);
PlanAnswer exec_cuda_failed_in_op(ExecCuda *cuda, const PlanPosition *at, const PlanOp *op,
                                  GError **error);
PlanAnswer exec_cuda_failed_in_event(ExecCuda *cuda, const PlanPosition *at, GError **error);
/* For errors found while looking at ops that have ended: names the first step that has not. */
bool exec_cuda_found_broken(ExecCuda *cuda, GError **error);

/* ---- waiting.c ------------------------------------------------------------------------------ */

/* Takes in what the GPU has brought back by now: times, bad indices, losses. Waits for nothing. */
bool exec_cuda_settle(ExecCuda *cuda, GError **error);
bool exec_cuda_wait_for_event(ExecCuda *cuda, cudaEvent_t event, GError **error);
bool exec_cuda_wait_for_lanes(ExecCuda *cuda, GError **error);
bool exec_cuda_wait_for_step(ExecCuda *cuda, int32_t step, GError **error); /* < 0: none */

/* ---- instructions.c ------------------------------------------------------------------------- */

extern const PlanDevice exec_cuda_instructions; /* self: an ExecCuda */
