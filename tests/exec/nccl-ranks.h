/* tests/exec/nccl-ranks.h - a rank of four that opens exec/cuda/comm/nccl.c over the stand-in. */
#pragma once

#include "tests/exec/nccl-stand-in.h"

/* The plan that ranks open next: 2 replicas of 2 shards, if nobody says otherwise. */
extern Plan nccl_plan;
extern const Plan *nccl_opened;
extern bool nccl_another_machine; /* ranks 2 and 3 are on another one */

bool nccl_open_as(uint32_t rank, uint32_t local_world, ExecCudaComm *ret_comm, GError **error);
/* Runs a call, which must end well and on its stream. */
void nccl_ask(const ExecCudaComm *comm, ExecCudaCall call);

/* Adds the cases of nccl-stages.c. */
void nccl_add_stages(void);
