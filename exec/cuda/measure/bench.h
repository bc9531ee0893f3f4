/* exec/cuda/measure/bench.h - a GPU on which calls are timed, for measure/costs.h, and how.
 *
 * What is timed follows one another in a stream that is kept busy, so that it is the GPU's time,
 * however long the calls take that give it. Threads: the host's.
 */
#pragma once

#include <cuda_runtime_api.h>

#include "exec/costs.h"
#include "kernels/cuda/runtime.h"

typedef struct {
    const ExecCosts *costs;
    cudaStream_t stream;
    KernelCuda *kernels;
    cudaEvent_t start, end;
    unsigned sharers;    /* ranks on a GPU of this machine, at most */
    uint64_t room_bytes; /* that one case may take */
    char *memory;        /* so many, of small random numbers */
} ExecCudaBench;

enum {
    EXEC_CUDA_ROUNDS = 7 /* the median of which counts */
};

bool exec_cuda_bench_open(ExecCudaBench *ret_bench, const ExecCosts *costs, GError **error);
void exec_cuda_bench_close(ExecCudaBench *bench); /* half-made is fine */
bool exec_cuda_bench_warm_up(const ExecCudaBench *bench, GError **error);

/* Keeps the stream from what comes next until the host has got ahead of it: what is timed then is
 * the GPU's time, however long the calls take that give it. */
KernelCudaFault exec_cuda_bench_hold(const ExecCudaBench *bench, double us);

typedef KernelCudaFault (*ExecCudaWork)(const ExecCudaBench *bench, gconstpointer what);

/* One call of it, up to `most` of which follow one another in a stream that is kept busy; the first
 * two are not counted. */
bool exec_cuda_bench_some_us(const ExecCudaBench *bench, ExecCudaWork work, gconstpointer what,
                             unsigned most, double *ret_us, GError **error);
/* Up to as many as a round has. */
bool exec_cuda_bench_us(const ExecCudaBench *bench, ExecCudaWork work, gconstpointer what,
                        double *ret_us, GError **error);

/* Parts of exec_cuda_costs(). */
bool exec_cuda_product_costs(const ExecCudaBench *bench, GError **error);
bool exec_cuda_attention_costs(const ExecCudaBench *bench, GError **error);
bool exec_cuda_collective_costs(const ExecCudaBench *bench, GError **error);
/* What a rank has of the GPU beside the room, when all that is measured has been called: driver,
 * libraries with the kernels they load when they are first wanted, workspaces, communicators. No
 * rank of this GPU gives any back before all have looked. */
bool exec_cuda_outside_costs(const ExecCudaBench *bench, GError **error);
