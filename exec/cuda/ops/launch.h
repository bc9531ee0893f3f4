/* exec/cuda/ops/launch.h - one op of a plan becomes calls of kernels/cuda, copies or a collective.
 *
 * Everything is put on the op's stream; nothing is waited for.
 */
#pragma once

#include "exec/cuda/comm/comm.h"
#include "exec/cuda/memory/stage.h"
#include "exec/task.h"
#include "kernels/cuda/runtime.h"

typedef struct _ExecCudaTraced ExecCudaTraced; /* traced.h */

typedef struct {
    KernelCuda *kernels; /* of the op's lane */
    cudaStream_t stream;
    ExecCudaStage *stage;
    const ExecCudaComm *comm;
    ExecCudaTraced *traced;
    ExecPaced paced; /* a rehearsed collective */
} ExecCudaLane;

/* False with error: the device cannot do this op. Asked before a play begins. */
bool exec_cuda_knows(const ExecContext *context, const PlanOp *op, GError **error);
bool exec_cuda_launch(const ExecTask *task, const ExecCudaLane *lane, GError **error);

/* Pinned memory for exec/offload/slots.h. */
extern const ExecSlotMemory exec_cuda_slot_memory;
