/* exec/cuda/comm/nccl-library.h - NCCL, loaded when ranks first want it.
 *
 * A module that is linked against NCCL cannot be loaded where it is missing. This one can, and
 * ranks have local.c there. Its functions stand in one table, under their names without "nccl"; a
 * test may fill it otherwise.
 */
#pragma once

#include <glib.h>

/* Its header declares functions with (), which means something else in C than in C++. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wstrict-prototypes"
#include <nccl.h>
#pragma GCC diagnostic pop

#define EXEC_CUDA_NCCL_CALLS(CALL)                                                                 \
    CALL(GetVersion)                                                                               \
    CALL(GetErrorString)                                                                           \
    CALL(GetLastError)                                                                             \
    CALL(GetUniqueId)                                                                              \
    CALL(CommInitRankConfig)                                                                       \
    CALL(CommSplit)                                                                                \
    CALL(CommGetAsyncError)                                                                        \
    CALL(CommFinalize)                                                                             \
    CALL(CommDestroy)                                                                              \
    CALL(CommAbort)                                                                                \
    CALL(AllGather)                                                                                \
    CALL(ReduceScatter)                                                                            \
    CALL(AllReduce)                                                                                \
    CALL(Broadcast)                                                                                \
    CALL(Send)                                                                                     \
    CALL(Recv)                                                                                     \
    CALL(GroupStart)                                                                               \
    CALL(GroupEnd)

typedef struct {
#define EXEC_CUDA_NCCL_MEMBER(name) __typeof__(&nccl##name) name;
    EXEC_CUDA_NCCL_CALLS(EXEC_CUDA_NCCL_MEMBER)
#undef EXEC_CUDA_NCCL_MEMBER
} ExecCudaNccl;

/* NULL with error where it cannot be loaded, or is too old. Looked for where the loader looks
 * (LD_LIBRARY_PATH). Threads: the host's. */
const ExecCudaNccl *exec_cuda_nccl(GError **error);
