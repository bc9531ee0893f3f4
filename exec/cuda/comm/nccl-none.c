/* exec/cuda/comm/nccl-none.c - in place of nccl.c where this was built without NCCL. */
#include "exec/cuda/comm/comm.h"
#include "exec/error.h"

bool exec_cuda_nccl_open(ExecCudaComm *ret_comm, const Plan *plan, const ExecComm *comm,
                         GError **error) {
    g_set_error_literal(error, EXEC_ERROR, EXEC_ERROR_INPUT,
                        "this was built without NCCL; use --comm local, or build with "
                        "-Dnccl=enabled");
    return false;
}
