/* exec/cuda/comm/sharers.h - which ranks have the same GPU.
 *
 * A process may see all GPUs of its machine, or only its own, which is then number 0 for each of
 * them (Slurm's --gpus-per-task, CUDA_VISIBLE_DEVICES): how many it sees does not tell. So ranks
 * tell each other where their GPU sits.
 */
#pragma once

#include "exec/comm/comm.h"

/* Ranks on the GPU of this machine that has most. All ranks call it, each with its GPU current. */
bool exec_cuda_sharers(const ExecComm *comm, unsigned *ret_most, GError **error);
