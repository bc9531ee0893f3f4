#include "exec/cuda/measure/bench.h"

#include "exec/clock.h"
#include "exec/cuda/calls.h"
#include "exec/cuda/comm/sharers.h"
#include "exec/cuda/own-gpu.h"
#include "kernels/cuda/ranks/standin.h"
#include "trace/quantile.h"

enum {
    ROUND_US = 10000, /* a round lasts about so long: power limits act within it */
    MOST_TIMES = 200, /* and has at most so many calls */
    MOST_HELD_US = 10000,
    /* A GPU at rest has a low clock (an H200 345 of 1980 MHz) and takes some time to leave it; so
     * long is enough, it is assumed. */
    WARM_UP_US = 500000,
};

/* ---- timing --------------------------------------------------------------------------------- */

KernelCudaFault exec_cuda_bench_hold(const ExecCudaBench *bench, double us) {
    KernelCudaStandIn idle = {.kind = KERNEL_CUDA_STAND_IN_NOTHING,
                              .type = KERNEL_CUDA_F32,
                              .blocks = 1,
                              .least_ns = (int64_t)(MIN(us, MOST_HELD_US) * 1e3)};
    return kernel_cuda_stand_in(bench->kernels, &idle);
}

/* ret_issue_us: what a call has cost the host. */
static bool round_us(const ExecCudaBench *bench, ExecCudaWork work, gconstpointer what,
                     unsigned times, double held_us, double *ret_us, double *ret_issue_us,
                     GError **error) {
    float ms;
    bool ok = exec_cuda_kernel_ok(exec_cuda_bench_hold(bench, held_us), error) &&
              exec_cuda_ok(cudaEventRecord(bench->start, bench->stream), "cudaEventRecord", error);
    double begun_us = exec_now_us();
    for (unsigned i = 0; ok && i < times; i++) {
        ok = exec_cuda_kernel_ok(work(bench, what), error);
    }
    *ret_issue_us = (exec_now_us() - begun_us) / times;
    ok = ok && exec_cuda_ok(cudaEventRecord(bench->end, bench->stream), "cudaEventRecord", error) &&
         exec_cuda_ok(cudaEventSynchronize(bench->end), "cudaEventSynchronize", error) &&
         exec_cuda_ok(cudaEventElapsedTime(&ms, bench->start, bench->end), "cudaEventElapsedTime",
                      error);
    if (ok) {
        *ret_us = (double)ms * 1e3 / times;
    }
    return ok;
}

bool exec_cuda_bench_some_us(const ExecCudaBench *bench, ExecCudaWork work, gconstpointer what,
                             unsigned most, double *ret_us, GError **error) {
    double us[EXEC_CUDA_ROUNDS], first = 0, issue = 0;
    if (!round_us(bench, work, what, 1, 0, &first, &issue, error) ||
        !round_us(bench, work, what, 1, 0, &first, &issue, error)) {
        return false;
    }
    unsigned times = (unsigned)CLAMP(ROUND_US / MAX(first, 1), 1, most);
    for (unsigned i = 0; i < EXEC_CUDA_ROUNDS; i++) {
        double held_us = 2 * issue * (times + 2); /* the event's record takes time, too */
        if (!round_us(bench, work, what, times, held_us, &us[i], &issue, error)) {
            return false;
        }
    }
    *ret_us = trace_median(us, EXEC_CUDA_ROUNDS);
    return true;
}

bool exec_cuda_bench_us(const ExecCudaBench *bench, ExecCudaWork work, gconstpointer what,
                        double *ret_us, GError **error) {
    return exec_cuda_bench_some_us(bench, work, what, MOST_TIMES, ret_us, error);
}

/* ---- beginning and end ---------------------------------------------------------------------- */

bool exec_cuda_bench_open(ExecCudaBench *bench, const ExecCosts *costs, GError **error) {
    size_t free_bytes, total_bytes;
    const ExecComm *comm = costs->comm;
    *bench = (ExecCudaBench){.costs = costs};
    if (!exec_cuda_take_gpu(comm, error) || !exec_cuda_sharers(comm, &bench->sharers, error) ||
        !exec_cuda_ok(cudaMemGetInfo(&free_bytes, &total_bytes), "cudaMemGetInfo", error) ||
        !exec_cuda_ok(cudaStreamCreateWithFlags(&bench->stream, cudaStreamNonBlocking),
                      "cudaStreamCreateWithFlags", error) ||
        !exec_cuda_kernel_ok(kernel_cuda_new(&bench->kernels, bench->stream, KERNEL_CUDA_EXACT),
                             error) ||
        !exec_cuda_ok(cudaEventCreate(&bench->start), "cudaEventCreate", error) ||
        !exec_cuda_ok(cudaEventCreate(&bench->end), "cudaEventCreate", error)) {
        return false;
    }
    bench->room_bytes = total_bytes / 8 / bench->sharers / 1024 * 1024;
    return exec_cuda_ok(cudaMalloc((void **)&bench->memory, bench->room_bytes), "cudaMalloc",
                        error) &&
           exec_cuda_ok(cudaMemsetAsync(bench->memory, 0, bench->room_bytes, bench->stream),
                        "cudaMemsetAsync", error);
}

void exec_cuda_bench_close(ExecCudaBench *bench) {
    kernel_cuda_free(bench->kernels);
    cudaFree(bench->memory);
    if (bench->start) {
        cudaEventDestroy(bench->start);
    }
    if (bench->end) {
        cudaEventDestroy(bench->end);
    }
    if (bench->stream) {
        cudaStreamDestroy(bench->stream);
    }
}

bool exec_cuda_bench_warm_up(const ExecCudaBench *bench, GError **error) {
    gsize half = bench->room_bytes / 2;
    bool ok = true;
    for (double start_us = exec_now_us(); ok && exec_now_us() - start_us < WARM_UP_US;) {
        ok = exec_cuda_ok(cudaMemcpyAsync(bench->memory + half, bench->memory, half,
                                          cudaMemcpyDeviceToDevice, bench->stream),
                          "cudaMemcpyAsync", error) &&
             exec_cuda_ok(cudaStreamSynchronize(bench->stream), "cudaStreamSynchronize", error);
    }
    return ok;
}
