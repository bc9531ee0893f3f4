/* exec/cuda/measure/comm-costs.c - what collectives take, by bytes; and what a rank has of its GPU
 * beside tensors when all has been called.
 */
#include "exec/clock.h"
#include "exec/cuda/calls.h"
#include "exec/cuda/comm/comm.h"
#include "exec/cuda/measure/bench.h"
#include "exec/cuda/own-gpu.h"
#include "plan/mesh.h"
#include "trace/quantile.h"

bool exec_cuda_outside_costs(const ExecCudaBench *bench, GError **error) {
    const ExecComm *comm = bench->costs->comm;
    uint64_t used;
    if (!exec_cuda_ok(cudaStreamSynchronize(bench->stream), "cudaStreamSynchronize", error) ||
        !comm->barrier(comm->self, error)) {
        return false;
    }
    used = exec_cuda_used_bytes() / bench->sharers;
    exec_costs_add(bench->costs, "fact outside_bytes %" G_GUINT64_FORMAT,
                   used > bench->room_bytes ? used - bench->room_bytes : 0);
    return comm->barrier(comm->self, error);
}

/* ---- collectives ---------------------------------------------------------------------------- */

enum { /* bytes */
    LEAST_COLLECTIVE = 8 << 10,
    MOST_COLLECTIVE = 256 << 20
};

typedef struct {
    const ExecCudaComm *between;
    ExecCudaCall meeting, call;
} Collective;

static ExecCudaCall call_of(const ExecCudaBench *bench, PlanOpKind kind, uint64_t bytes) {
    return (ExecCudaCall){.kind = kind,
                          .axis = PLAN_AXIS_SHARD,
                          .dtype = PLAN_BF16,
                          .reduction = PLAN_REDUCTION_MEAN,
                          .elements =
                              bytes / 2 / bench->costs->comm->world * bench->costs->comm->world,
                          .in = bench->memory,
                          .out = bench->memory + bench->room_bytes / 2};
}

/* Behind a small one, in which the ranks meet, and, as in training, given to a stream that is still
 * busy: neither what its call costs the host nor how much later another rank came is its time. */
static bool collective_us(const ExecCudaBench *bench, const Collective *c, double held_us,
                          double *ret_us, double *ret_issue_us, GError **error) {
    float ms;
    if (!bench->costs->comm->barrier(bench->costs->comm->self, error) ||
        !exec_cuda_kernel_ok(exec_cuda_bench_hold(bench, held_us), error)) {
        return false;
    }
    double begun_us = exec_now_us();
    bool ok =
        c->between->run(c->between->self, &c->meeting, bench->stream, error) &&
        exec_cuda_ok(cudaEventRecord(bench->start, bench->stream), "cudaEventRecord", error) &&
        c->between->run(c->between->self, &c->call, bench->stream, error) &&
        exec_cuda_ok(cudaEventRecord(bench->end, bench->stream), "cudaEventRecord", error);
    *ret_issue_us = exec_now_us() - begun_us;
    ok = ok && exec_cuda_ok(cudaEventSynchronize(bench->end), "cudaEventSynchronize", error) &&
         c->between->healthy(c->between->self, error) &&
         exec_cuda_ok(cudaEventElapsedTime(&ms, bench->start, bench->end), "cudaEventElapsedTime",
                      error);
    *ret_us = ok ? (double)ms * 1e3 : 0;
    return ok;
}

/* The first two rounds, in which connections are made, are not counted. */
static bool collective_cost(const ExecCudaBench *bench, const ExecCudaComm *between,
                            PlanOpKind kind, uint64_t bytes, GError **error) {
    Collective collective = {between, call_of(bench, kind, LEAST_COLLECTIVE),
                             call_of(bench, kind, bytes)};
    double us[EXEC_CUDA_ROUNDS + 2], issue_us = 0;
    for (unsigned i = 0; i < EXEC_CUDA_ROUNDS + 2; i++) {
        if (!collective_us(bench, &collective, i < 2 ? 0 : 2 * issue_us, &us[i], &issue_us,
                           error)) {
            return false;
        }
    }
    g_autofree char *name = g_strdup_printf("%s %" G_GUINT64_FORMAT, plan_op_info(kind)->name,
                                            collective.call.elements * 2);
    return exec_costs_report(bench->costs, name, trace_median(us + 2, EXEC_CUDA_ROUNDS), error);
}

bool exec_cuda_collective_costs(const ExecCudaBench *bench, GError **error) {
    static const PlanOpKind kinds[] = {PLAN_OP_ALL_GATHER, PLAN_OP_REDUCE_SCATTER,
                                       PLAN_OP_ALL_REDUCE};
    Plan line = plan_line(bench->costs->comm->world);
    uint64_t most = MIN(MOST_COLLECTIVE, bench->room_bytes / 2);
    ExecCudaCommKind kind;
    ExecCudaComm between = {0};
    bool ok = exec_cuda_comm_kind(bench->costs->between, &kind, error) &&
              exec_cuda_comm_open(&between, kind, &line, bench->costs->comm, most, error);
    for (unsigned i = 0; ok && i < G_N_ELEMENTS(kinds); i++) {
        for (uint64_t bytes = LEAST_COLLECTIVE; ok && bytes <= most; bytes *= 8) {
            ok = collective_cost(bench, &between, kinds[i], bytes, error);
        }
    }
    if (ok) {
        exec_costs_add(bench->costs, "comm %s", between.name);
    }
    ok = ok && exec_cuda_outside_costs(bench, error);
    exec_cuda_comm_close(&between);
    return ok;
}
