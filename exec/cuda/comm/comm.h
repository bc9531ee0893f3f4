/* exec/cuda/comm/comm.h - collectives between GPUs, put on a stream, and between stages.
 *
 * One table, three ways to fill it: NCCL (nccl.c); staging through the host's memory, where any
 * ExecComm carries them out (local.c), which is slow, needs no NCCL and lets several ranks share
 * one GPU; and stand-ins for a rehearsal (standin.c). Calls on one axis come in the same order on
 * every rank; those with a neighbour of the pipeline in the same order on both.
 *
 * Threads: the host's.
 */
#pragma once

#include <cuda_runtime_api.h>

#include "exec/comm/comm.h"
#include "exec/pace.h"
#include "kernels/cuda/runtime.h"

typedef struct {
    PlanOpKind kind; /* a collective */
    PlanAxis axis;
    PlanDtype dtype;
    PlanReduction reduction;
    uint64_t elements; /* the whole tensor; all-to-all, what is passed on or pulled: one rank's */
    const void *in;    /* all-gather: NULL where the rank's slice lies in place in out */
    void *out;         /* all-reduce, broadcast: in place */
    uint32_t peer;     /* between stages: the other's place in the pipeline, */
    bool behind;       /* and whether it is the place after this one */
    uint32_t ahead;    /* PULL: reads from the rank so many places ahead, around the axis's ends */
    /* For stand-ins alone: */
    KernelCuda *kernels; /* of the stream */
    ExecPaced paced;
} ExecCudaCall;

typedef struct {
    char *name; /* for headers of reports; owned */
    gpointer self;
    /* Returns before it is done; what fails later, healthy() tells. */
    bool (*run)(gpointer self, const ExecCudaCall *call, cudaStream_t stream, GError **error);
    bool (*healthy)(gpointer self, GError **error);
    void (*close)(gpointer self); /* after the streams are idle, or dead */
} ExecCudaComm;

typedef enum {
    EXEC_CUDA_COMM_AUTO, /* NCCL where it can be had, else local */
    EXEC_CUDA_COMM_NCCL,
    EXEC_CUDA_COMM_LOCAL,
} ExecCudaCommKind;

/* auto (also NULL), nccl or local. */
bool exec_cuda_comm_kind(const char *name, ExecCudaCommKind *ret_kind, GError **error);
/* Bytes of the largest collective that this rank will see. */
uint64_t exec_cuda_comm_largest(const Plan *plan, uint32_t rank);
/* All ranks take the same one. comm has joined the plan, of which only the axes are looked at. */
bool exec_cuda_comm_open(ExecCudaComm *ret_comm, ExecCudaCommKind kind, const Plan *plan,
                         const ExecComm *comm, uint64_t largest_bytes, GError **error);
void exec_cuda_comm_close(ExecCudaComm *comm); /* of zeros is fine */

/* The three of them. */
bool exec_cuda_local_open(ExecCudaComm *ret_comm, const Plan *plan, const ExecComm *comm,
                          uint64_t largest_bytes, GError **error);
bool exec_cuda_nccl_open(ExecCudaComm *ret_comm, const Plan *plan, const ExecComm *comm,
                         GError **error);
bool exec_cuda_standin_open(ExecCudaComm *ret_comm, const Plan *plan, const ExecComm *comm,
                            GError **error);

/* Kinds for which nothing has to be done here: they order accesses to symmetric memory, and these
 * communicators send and receive instead, which makes both sides wait for each other anyway. */
static inline bool exec_cuda_call_is_idle(const ExecCudaCall *call) {
    return call->kind == PLAN_OP_BARRIER || call->kind == PLAN_OP_OFFER;
}

/* What the call reads and writes on this rank. */
static inline uint64_t exec_cuda_call_in_bytes(const ExecCudaCall *call, uint32_t ranks) {
    uint64_t bytes = call->elements * plan_dtype_bytes(call->dtype);
    return call->kind == PLAN_OP_ALL_GATHER ? bytes / ranks : bytes;
}
static inline uint64_t exec_cuda_call_out_bytes(const ExecCudaCall *call, uint32_t ranks) {
    uint64_t bytes = call->elements * plan_dtype_bytes(call->dtype);
    return call->kind == PLAN_OP_REDUCE_SCATTER ? bytes / ranks : bytes;
}
