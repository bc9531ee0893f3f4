/* tests/exec/nccl-stand-in.h - an NCCL that runs nothing, and writes down what it is asked.
 *
 * It is as strict as NCCL's documentation. A call that is not blocking is at work until it was
 * asked about a few times, and nothing else may be asked of its communicator until then. A split's
 * communicator is there only at its end, and the call may have said long before that all is well,
 * as NCCL 2.28 does. A communicator that is well is finalized before it is destroyed, and its end
 * comes only when all others of the rank end, since its other ranks may wait in those; one that has
 * failed is aborted. What is called within a group is at work from the group's end on, and a group
 * that began must end.
 *
 * CUDA's part is stood in for too, so that no GPU is needed: each rank sees one GPU, number 0.
 */
#pragma once

#include <cuda_runtime_api.h>
#include <glib.h>
#include <stdbool.h>

#include "exec/cuda/comm/comm.h"
#include "exec/cuda/comm/nccl-library.h"

enum {
    RANKS = 4
};

struct ncclComm {
    int ranks, rank, polls; /* polls: questions left until the call at work is through */
    ncclComm_t *ret_split;  /* where a split is to show */
    ncclComm_t split;
    ncclResult_t result; /* of the call at work, and of all after it */
    bool finalized;
};

/* A call of NCCL's, or a copy on the device. */
typedef struct {
    const char *name;
    ncclComm_t comm;
    const void *in;
    void *out;
    size_t count;
    ncclDataType_t type;
    ncclRedOp_t op;
    int root;
    cudaStream_t stream;
} NcclCall;

typedef struct {
    /* What it was asked. */
    NcclCall last;
    NcclCall grouped[2 * RANKS]; /* what was called within the last group */
    int n_grouped;
    bool in_group;
    int colors[8][PLAN_N_AXES], keys[8][PLAN_N_AXES], n_splits;
    int alive;        /* communicators */
    const char *died; /* what the last communicator died of */

    /* What it shall do. */
    const char *fails;       /* the call that fails; NULL: none */
    bool split_says_success; /* while it is at work */
    bool lone_says_success;  /* likewise a send or receive outside of a group */
    int lacks_it;            /* the rank that cannot load NCCL; -1: all can */
    int asks_for;            /* the rank that is being played */
    int slots[RANKS];        /* where each rank's GPU sits in its machine */
} NcclStandIn;
extern NcclStandIn nccl;
