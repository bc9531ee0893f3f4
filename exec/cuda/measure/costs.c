#include "exec/cuda/measure/costs.h"

#include "exec/clock.h"
#include "exec/cuda/calls.h"
#include "exec/cuda/measure/bench.h"
#include "exec/cuda/memory/segments.h"
#include "exec/cuda/pinned.h"
#include "kernels/cuda/elementwise.h"
#include "trace/quantile.h"

enum {
    CALLS = 100,        /* of a cost of the host */
    MAPPED = 256 << 20, /* bytes of the copies between GPU and host */
};

/* ---- the host's calls ----------------------------------------------------------------------- */

static KernelCudaFault nothing_much(const ExecCudaBench *bench, gconstpointer what) {
    return kernel_cuda_fill(bench->kernels, bench->memory, 32, 0, KERNEL_CUDA_F32);
}

static bool launches(const ExecCudaBench *bench, double *ret_us, GError **error) {
    double start = exec_now_us();
    for (unsigned i = 0; i < CALLS; i++) {
        if (!exec_cuda_kernel_ok(nothing_much(bench, NULL), error)) {
            return false;
        }
    }
    *ret_us = (exec_now_us() - start) / CALLS;
    return true;
}

static bool event_calls(const ExecCudaBench *bench, double *ret_record_us, double *ret_wait_us,
                        double *ret_host_us, GError **error) {
    double start = exec_now_us();
    bool ok = true;
    for (unsigned i = 0; ok && i < CALLS; i++) {
        ok = exec_cuda_ok(cudaEventRecord(bench->start, bench->stream), "cudaEventRecord", error);
    }
    double recorded = exec_now_us();
    for (unsigned i = 0; ok && i < CALLS; i++) {
        ok = exec_cuda_ok(cudaStreamWaitEvent(bench->stream, bench->start, 0),
                          "cudaStreamWaitEvent", error);
    }
    double waited = exec_now_us();
    ok = ok && exec_cuda_ok(cudaStreamSynchronize(bench->stream), "cudaStreamSynchronize", error);
    double idle = exec_now_us();
    for (unsigned i = 0; ok && i < CALLS; i++) {
        ok = exec_cuda_ok(cudaEventSynchronize(bench->start), "cudaEventSynchronize", error);
    }
    *ret_record_us = (recorded - start) / CALLS;
    *ret_wait_us = (waited - recorded) / CALLS;
    *ret_host_us = (exec_now_us() - idle) / CALLS;
    return ok;
}

/* Kernels that do next to nothing, one behind the other: what lies between two. And one alone
 * between two events, as ops are timed when they are played: how much of what is then read is no
 * op's. */
static bool host_costs(const ExecCudaBench *bench, GError **error) {
    double launch[EXEC_CUDA_ROUNDS], record[EXEC_CUDA_ROUNDS], wait[EXEC_CUDA_ROUNDS],
        host[EXEC_CUDA_ROUNDS], through, alone;
    for (unsigned i = 0; i < EXEC_CUDA_ROUNDS; i++) {
        if (!launches(bench, &launch[i], error) ||
            !exec_cuda_ok(cudaStreamSynchronize(bench->stream), "cudaStreamSynchronize", error) ||
            !event_calls(bench, &record[i], &wait[i], &host[i], error)) {
            return false;
        }
    }
    const struct {
        const char *name;
        double us;
    } costs[] = {{"launch_us", trace_median(launch, EXEC_CUDA_ROUNDS)},
                 {"record_us", trace_median(record, EXEC_CUDA_ROUNDS)},
                 {"wait_us", trace_median(wait, EXEC_CUDA_ROUNDS)},
                 {"host_wait_us", trace_median(host, EXEC_CUDA_ROUNDS)}};
    for (unsigned i = 0; i < G_N_ELEMENTS(costs); i++) {
        if (!exec_costs_report(bench->costs, costs[i].name, costs[i].us, error)) {
            return false;
        }
    }
    return exec_cuda_bench_us(bench, nothing_much, NULL, &through, error) &&
           exec_costs_report(bench->costs, "lane_us", through, error) &&
           exec_cuda_bench_some_us(bench, nothing_much, NULL, 1, &alone, error) &&
           exec_costs_report(bench->costs, "timed_us", alone, error);
}

/* ---- copies --------------------------------------------------------------------------------- */

typedef struct {
    gpointer to, from;
    gsize bytes;
    enum cudaMemcpyKind kind;
} Copy;

static KernelCudaFault copy(const ExecCudaBench *bench, gconstpointer what) {
    const Copy *c = what;
    cudaError_t status = cudaMemcpyAsync(c->to, c->from, c->bytes, c->kind, bench->stream);
    return status == cudaSuccess ? NULL : cudaGetErrorString(status);
}

static bool copy_cost(const ExecCudaBench *bench, const char *name, const Copy *c, double arrays,
                      GError **error) {
    double us;
    if (!exec_cuda_bench_us(bench, copy, c, &us, error)) {
        return false;
    }
    g_autofree char *line = g_strdup_printf("fact %s", name);
    return exec_costs_report(bench->costs, line, (double)c->bytes * arrays / us / 1e3, error);
}

static bool copy_costs(const ExecCudaBench *bench, GError **error) {
    gsize bytes = MIN(bench->room_bytes / 2, MAPPED);
    gpointer pinned = exec_cuda_pinned_new(bytes, "copies to be timed", error);
    char *memory = bench->memory;
    if (!pinned) {
        return false;
    }
    Copy within = {memory + bytes, memory, bytes, cudaMemcpyDeviceToDevice};
    Copy in = {memory, pinned, bytes, cudaMemcpyHostToDevice};
    Copy out = {pinned, memory, bytes, cudaMemcpyDeviceToHost};
    bool ok = copy_cost(bench, "copy_gb_per_s", &within, 2, error) && /* read and written */
              copy_cost(bench, "to_gpu_gb_per_s", &in, 1, error) &&
              copy_cost(bench, "to_host_gb_per_s", &out, 1, error);
    exec_cuda_pinned_free(pinned);
    return ok;
}

/* ---- all of it ------------------------------------------------------------------------------ */

static bool facts(const ExecCudaBench *bench, GError **error) {
    int device;
    struct cudaDeviceProp properties;
    if (!exec_cuda_ok(cudaGetDevice(&device), "cudaGetDevice", error) ||
        !exec_cuda_ok(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties",
                      error)) {
        return false;
    }
    exec_costs_add(bench->costs, "gpu %s", properties.name);
    exec_costs_add(bench->costs, "fact sms %d", properties.multiProcessorCount);
    exec_costs_add(bench->costs, "fact compute_capability %d",
                   properties.major * 10 + properties.minor);
    exec_costs_add(bench->costs, "fact memory_bytes %zu", properties.totalGlobalMem);
    return true;
}

static bool memory_costs(const ExecCudaBench *bench, GError **error) {
    ExecCudaSegments segments = {0};
    bool ok = exec_cuda_segments_init(&segments, &bench->stream, UINT64_MAX, error) &&
              exec_costs_of_memory(bench->costs, exec_cuda_segments_source(), &segments, error);
    exec_cuda_segments_clear(&segments);
    return ok;
}

bool exec_cuda_costs(const ExecCosts *costs, GError **error) {
    const ExecComm *comm = costs->comm;
    ExecCudaBench bench;
    bool ok = exec_cuda_bench_open(&bench, costs, error);
    ok = ok && facts(&bench, error) && comm->barrier(comm->self, error) &&
         exec_cuda_bench_warm_up(&bench, error) && host_costs(&bench, error) &&
         memory_costs(&bench, error) && copy_costs(&bench, error) &&
         exec_cuda_product_costs(&bench, error) && exec_cuda_attention_costs(&bench, error) &&
         (comm->world == 1 ? exec_cuda_outside_costs(&bench, error)
                           : exec_cuda_collective_costs(&bench, error));
    exec_cuda_bench_close(&bench);
    return ok;
}
