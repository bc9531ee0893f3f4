#include "exec/cuda/measure/costs.h"

#include "exec/clock.h"
#include "exec/costs.h"
#include "exec/cuda/calls.h"
#include "exec/cuda/comm/comm.h"
#include "exec/cuda/comm/sharers.h"
#include "exec/cuda/measure/facts.h"
#include "exec/cuda/memory/segments.h"
#include "exec/cuda/pinned.h"
#include "kernels/cuda/attention.h"
#include "kernels/cuda/elementwise.h"
#include "kernels/cuda/matmul.h"
#include "kernels/cuda/random.h"
#include "kernels/cuda/standin.h"
#include "trace/quantile.h"

typedef struct {
    const ExecCosts *costs;
    cudaStream_t stream;
    KernelCuda *kernels;
    cudaEvent_t start, end;
    unsigned sharers;    /* ranks on a GPU of this machine, at most */
    uint64_t room_bytes; /* that one case may take */
    char *memory;        /* so many, of small random numbers */
} Bench;

enum {
    ROUNDS = 7,       /* the median of which counts */
    ROUND_US = 10000, /* a round lasts about so long: power limits act within it */
    MOST_TIMES = 200, /* and has at most so many calls */
    MOST_HELD_US = 10000,
    /* A GPU at rest has a low clock (an H200 345 of 1980 MHz) and takes some time to leave it; so
     * long is enough, it is assumed. */
    WARM_UP_US = 500000,
    CALLS = 100,        /* of a cost of the host */
    MAPPED = 256 << 20, /* bytes of the copies between GPU and host */
};

/* ---- timing --------------------------------------------------------------------------------- */

typedef KernelCudaFault (*Work)(const Bench *bench, gconstpointer what);

/* Keeps the stream from what comes next until the host has got ahead of it: what is timed then is
 * the GPU's time, however long the calls take that give it. */
static KernelCudaFault hold(const Bench *bench, double us) {
    KernelCudaStandIn idle = {.kind = KERNEL_CUDA_STAND_IN_NOTHING,
                              .type = KERNEL_CUDA_F32,
                              .blocks = 1,
                              .least_ns = (int64_t)(MIN(us, MOST_HELD_US) * 1e3)};
    return kernel_cuda_stand_in(bench->kernels, &idle);
}

/* ret_issue_us: what a call has cost the host. */
static bool round_us(const Bench *bench, Work work, gconstpointer what, unsigned times,
                     double held_us, double *ret_us, double *ret_issue_us, GError **error) {
    float ms;
    bool ok = exec_cuda_kernel_ok(hold(bench, held_us), error) &&
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

/* One call of it, up to `most` of which follow one another in a stream that is kept busy; the first
 * two are not counted. */
static bool time_some_us(const Bench *bench, Work work, gconstpointer what, unsigned most,
                         double *ret_us, GError **error) {
    double us[ROUNDS], first = 0, issue = 0;
    if (!round_us(bench, work, what, 1, 0, &first, &issue, error) ||
        !round_us(bench, work, what, 1, 0, &first, &issue, error)) {
        return false;
    }
    unsigned times = (unsigned)CLAMP(ROUND_US / MAX(first, 1), 1, most);
    for (unsigned i = 0; i < ROUNDS; i++) {
        double held_us = 2 * issue * (times + 2); /* the event's record takes time, too */
        if (!round_us(bench, work, what, times, held_us, &us[i], &issue, error)) {
            return false;
        }
    }
    *ret_us = trace_median(us, ROUNDS);
    return true;
}

static bool time_us(const Bench *bench, Work work, gconstpointer what, double *ret_us,
                    GError **error) {
    return time_some_us(bench, work, what, MOST_TIMES, ret_us, error);
}

/* ---- products ------------------------------------------------------------------------------- */

typedef struct {
    size_t m, n, k;
    KernelCudaType type;
} Product;

/* Squares, and the shapes of transformers: tokens by what a layer is wide. */
static const Product products[] = {
    {256, 256, 256, KERNEL_CUDA_BF16},      {512, 512, 512, KERNEL_CUDA_BF16},
    {1024, 1024, 1024, KERNEL_CUDA_BF16},   {2048, 2048, 2048, KERNEL_CUDA_BF16},
    {4096, 4096, 4096, KERNEL_CUDA_BF16},   {8192, 8192, 8192, KERNEL_CUDA_BF16},
    {1024, 2304, 768, KERNEL_CUDA_BF16},    {4096, 3072, 768, KERNEL_CUDA_BF16},
    {4096, 768, 3072, KERNEL_CUDA_BF16},    {8192, 4800, 1600, KERNEL_CUDA_BF16},
    {8192, 1600, 6400, KERNEL_CUDA_BF16},   {8192, 6400, 1600, KERNEL_CUDA_BF16},
    {2048, 6144, 4096, KERNEL_CUDA_BF16},   {8192, 4096, 4096, KERNEL_CUDA_BF16},
    {8192, 14336, 4096, KERNEL_CUDA_BF16},  {8192, 4096, 14336, KERNEL_CUDA_BF16},
    {16384, 1024, 4096, KERNEL_CUDA_BF16},  {4096, 12288, 12288, KERNEL_CUDA_BF16},
    {2048, 49152, 12288, KERNEL_CUDA_BF16}, {2048, 12288, 49152, KERNEL_CUDA_BF16},
    {8192, 50304, 1600, KERNEL_CUDA_BF16},  {128, 4096, 4096, KERNEL_CUDA_BF16},
    {256, 256, 256, KERNEL_CUDA_F16},       {2048, 2048, 2048, KERNEL_CUDA_F16},
    {4096, 4096, 4096, KERNEL_CUDA_F16},    {8192, 8192, 8192, KERNEL_CUDA_F16},
    {256, 256, 256, KERNEL_CUDA_F32},       {2048, 2048, 2048, KERNEL_CUDA_F32},
    {4096, 4096, 4096, KERNEL_CUDA_F32},    {8192, 4096, 1024, KERNEL_CUDA_F32},
};

static const char *const type_names[] = {"fp32", "bf16", "fp16"};

static size_t product_bytes(const Product *p) {
    return (p->m * p->k + p->n * p->k + p->m * p->n) * kernel_cuda_type_bytes(p->type);
}

static KernelCudaFault multiply(const Bench *bench, gconstpointer what) {
    const Product *p = what;
    size_t size = kernel_cuda_type_bytes(p->type);
    const char *x = bench->memory, *w = x + p->m * p->k * size;
    return kernel_cuda_linear_forward(bench->kernels, (gpointer)(w + p->n * p->k * size), x, w,
                                      NULL, p->m, p->n, p->k, p->type);
}

static bool product_costs(const Bench *bench, GError **error) {
    for (unsigned i = 0; i < G_N_ELEMENTS(products); i++) {
        const Product *p = &products[i];
        double us;
        if (product_bytes(p) > bench->room_bytes) {
            continue;
        }
        if (!exec_cuda_kernel_ok(
                kernel_cuda_philox_normal(bench->kernels, bench->memory, p->m * p->k + p->n * p->k,
                                          (KernelCudaRandom){1, 0, 0}, 0, 0.02f, p->type),
                error) ||
            !time_us(bench, multiply, p, &us, error)) {
            return false;
        }
        g_autofree char *name =
            g_strdup_printf("product %s %zu %zu %zu", type_names[p->type], p->m, p->n, p->k);
        if (!exec_costs_report(bench->costs, name, us, error)) {
            return false;
        }
    }
    return true;
}

/* ---- attention ------------------------------------------------------------------------------ */

typedef struct {
    KernelCudaAttention shape;
    bool backward;
} Attention;

/* batch, heads, kv_heads, seq, head_dim, causal */
static const size_t attentions[][6] = {
    {1, 2, 2, 64, 32, 1},     {16, 12, 12, 1024, 64, 1}, {8, 25, 25, 1024, 64, 1},
    {4, 16, 16, 2048, 64, 1}, {4, 32, 8, 2048, 128, 1},  {2, 32, 8, 4096, 128, 1},
    {1, 32, 8, 8192, 128, 1}, {1, 96, 96, 2048, 128, 1}, {4, 32, 32, 2048, 128, 0},
};

static KernelCudaAttention shape_of(const size_t *a) {
    return (KernelCudaAttention){.batch = a[0],
                                 .heads = a[1],
                                 .kv_heads = a[2],
                                 .seq = a[3],
                                 .head_dim = a[4],
                                 .q_stride = a[1] * a[4],
                                 .k_stride = a[2] * a[4],
                                 .v_stride = a[2] * a[4],
                                 .lse_stride = a[3],
                                 .scale = 0.1f,
                                 .causal = a[5] != 0,
                                 .type = KERNEL_CUDA_BF16};
}

/* q, o, d_o, dq are of the one size; k, v, dk, dv of the other; then the logsumexp. */
static size_t q_bytes(const KernelCudaAttention *s) {
    return s->batch * s->seq * s->heads * s->head_dim * 2;
}

static size_t kv_bytes(const KernelCudaAttention *s) {
    return s->batch * s->seq * s->kv_heads * s->head_dim * 2;
}

static KernelCudaFault attend(const Bench *bench, gconstpointer what) {
    const Attention *a = what;
    const KernelCudaAttention *s = &a->shape;
    size_t q = q_bytes(s), kv = kv_bytes(s);
    char *at = bench->memory, *k = at + 4 * q;
    float *lse = (float *)(gpointer)(k + 4 * kv);
    return a->backward
               ? kernel_cuda_attention_backward(bench->kernels, at + 3 * q, k + 2 * kv, k + 3 * kv,
                                                NULL, at + 2 * q, at, k, k + kv, NULL, at + q, lse,
                                                s)
               : kernel_cuda_attention_forward(bench->kernels, at + q, lse, at, k, k + kv, NULL, s);
}

static bool attention_cost(const Bench *bench, const KernelCudaAttention *s, bool backward,
                           GError **error) {
    Attention attention = {*s, backward};
    double us;
    g_autofree char *name =
        g_strdup_printf("attention bf16 %zu %zu %zu %zu %zu %d %d", s->batch, s->heads, s->kv_heads,
                        s->seq, s->head_dim, s->causal, backward);
    return time_us(bench, attend, &attention, &us, error) &&
           exec_costs_report(bench->costs, name, us, error);
}

static bool attention_costs(const Bench *bench, GError **error) {
    for (unsigned i = 0; i < G_N_ELEMENTS(attentions); i++) {
        KernelCudaAttention s = shape_of(attentions[i]);
        size_t bytes = 4 * (q_bytes(&s) + kv_bytes(&s));
        KernelCudaRandom random = {1, 0, 0};
        if (bytes + s.batch * s.heads * s.seq * sizeof(float) > bench->room_bytes) {
            continue;
        }
        if (!exec_cuda_kernel_ok(kernel_cuda_philox_normal(bench->kernels, bench->memory, bytes / 2,
                                                           random, 0, 1, KERNEL_CUDA_BF16),
                                 error) ||
            !attention_cost(bench, &s, false, error) || !attention_cost(bench, &s, true, error)) {
            return false;
        }
    }
    return true;
}

/* ---- the host's calls ----------------------------------------------------------------------- */

static KernelCudaFault nothing_much(const Bench *bench, gconstpointer what) {
    return kernel_cuda_fill(bench->kernels, bench->memory, 32, 0, KERNEL_CUDA_F32);
}

static bool launches(const Bench *bench, double *ret_us, GError **error) {
    double start = exec_now_us();
    for (unsigned i = 0; i < CALLS; i++) {
        if (!exec_cuda_kernel_ok(nothing_much(bench, NULL), error)) {
            return false;
        }
    }
    *ret_us = (exec_now_us() - start) / CALLS;
    return true;
}

static bool event_calls(const Bench *bench, double *ret_record_us, double *ret_wait_us,
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
static bool host_costs(const Bench *bench, GError **error) {
    double launch[ROUNDS], record[ROUNDS], wait[ROUNDS], host[ROUNDS], through, alone;
    for (unsigned i = 0; i < ROUNDS; i++) {
        if (!launches(bench, &launch[i], error) ||
            !exec_cuda_ok(cudaStreamSynchronize(bench->stream), "cudaStreamSynchronize", error) ||
            !event_calls(bench, &record[i], &wait[i], &host[i], error)) {
            return false;
        }
    }
    const struct {
        const char *name;
        double us;
    } costs[] = {{"launch_us", trace_median(launch, ROUNDS)},
                 {"record_us", trace_median(record, ROUNDS)},
                 {"wait_us", trace_median(wait, ROUNDS)},
                 {"host_wait_us", trace_median(host, ROUNDS)}};
    for (unsigned i = 0; i < G_N_ELEMENTS(costs); i++) {
        if (!exec_costs_report(bench->costs, costs[i].name, costs[i].us, error)) {
            return false;
        }
    }
    return time_us(bench, nothing_much, NULL, &through, error) &&
           exec_costs_report(bench->costs, "lane_us", through, error) &&
           time_some_us(bench, nothing_much, NULL, 1, &alone, error) &&
           exec_costs_report(bench->costs, "timed_us", alone, error);
}

/* ---- copies --------------------------------------------------------------------------------- */

typedef struct {
    gpointer to, from;
    gsize bytes;
    enum cudaMemcpyKind kind;
} Copy;

static KernelCudaFault copy(const Bench *bench, gconstpointer what) {
    const Copy *c = what;
    cudaError_t status = cudaMemcpyAsync(c->to, c->from, c->bytes, c->kind, bench->stream);
    return status == cudaSuccess ? NULL : cudaGetErrorString(status);
}

static bool copy_cost(const Bench *bench, const char *name, const Copy *c, double arrays,
                      GError **error) {
    double us;
    if (!time_us(bench, copy, c, &us, error)) {
        return false;
    }
    g_autofree char *line = g_strdup_printf("fact %s", name);
    return exec_costs_report(bench->costs, line, (double)c->bytes * arrays / us / 1e3, error);
}

static bool copy_costs(const Bench *bench, GError **error) {
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

/* ---- memory beside the room ------------------------------------------------------------------ */

/* What a rank has of the GPU beside the room, when all that is measured has been called: driver,
 * libraries with the kernels they load when they are first wanted, workspaces, communicators. No
 * rank of this GPU gives any back before all have looked. */
static bool outside(const Bench *bench, GError **error) {
    const ExecComm *comm = bench->costs->comm;
    uint64_t used;
    if (!exec_cuda_ok(cudaStreamSynchronize(bench->stream), "cudaStreamSynchronize", error) ||
        !comm->barrier(comm->self, error)) {
        return false;
    }
    used = exec_cuda_facts_used_bytes() / bench->sharers;
    g_string_append_printf(bench->costs->lines, "fact outside_bytes %" G_GUINT64_FORMAT "\n",
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

static ExecCudaCall call_of(const Bench *bench, PlanOpKind kind, uint64_t bytes) {
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
static bool collective_us(const Bench *bench, const Collective *c, double held_us, double *ret_us,
                          double *ret_issue_us, GError **error) {
    float ms;
    if (!bench->costs->comm->barrier(bench->costs->comm->self, error) ||
        !exec_cuda_kernel_ok(hold(bench, held_us), error)) {
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
static bool collective_cost(const Bench *bench, const ExecCudaComm *between, PlanOpKind kind,
                            uint64_t bytes, GError **error) {
    Collective collective = {between, call_of(bench, kind, LEAST_COLLECTIVE),
                             call_of(bench, kind, bytes)};
    double us[ROUNDS + 2], issue_us = 0;
    for (unsigned i = 0; i < ROUNDS + 2; i++) {
        if (!collective_us(bench, &collective, i < 2 ? 0 : 2 * issue_us, &us[i], &issue_us,
                           error)) {
            return false;
        }
    }
    g_autofree char *name = g_strdup_printf("%s %" G_GUINT64_FORMAT, plan_op_info(kind)->name,
                                            collective.call.elements * 2);
    return exec_costs_report(bench->costs, name, trace_median(us + 2, ROUNDS), error);
}

static bool collective_costs(const Bench *bench, GError **error) {
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
        g_string_append_printf(bench->costs->lines, "comm %s\n", between.name);
    }
    ok = ok && outside(bench, error);
    exec_cuda_comm_close(&between);
    return ok;
}

/* ---- all of it ------------------------------------------------------------------------------ */

static bool warm_up(const Bench *bench, GError **error) {
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

static bool facts(const Bench *bench, GError **error) {
    int device;
    struct cudaDeviceProp properties;
    if (!exec_cuda_ok(cudaGetDevice(&device), "cudaGetDevice", error) ||
        !exec_cuda_ok(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties",
                      error)) {
        return false;
    }
    g_string_append_printf(bench->costs->lines,
                           "gpu %s\nfact sms %d\nfact compute_capability %d\n"
                           "fact memory_bytes %zu\n",
                           properties.name, properties.multiProcessorCount,
                           properties.major * 10 + properties.minor, properties.totalGlobalMem);
    return true;
}

static bool open_bench(Bench *bench, GError **error) {
    size_t free_bytes, total_bytes;
    const ExecComm *comm = bench->costs->comm;
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

static void close_bench(Bench *bench) {
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

static bool memory_costs(const Bench *bench, GError **error) {
    ExecCudaSegments segments = {0};
    bool ok = exec_cuda_segments_init(&segments, &bench->stream, UINT64_MAX, error) &&
              exec_costs_of_memory(bench->costs, exec_cuda_segments_source(), &segments, error);
    exec_cuda_segments_clear(&segments);
    return ok;
}

bool exec_cuda_costs(const ExecCosts *costs, GError **error) {
    const ExecComm *comm = costs->comm;
    Bench bench = {.costs = costs};
    bool ok = open_bench(&bench, error);
    ok = ok && facts(&bench, error) && comm->barrier(comm->self, error) && warm_up(&bench, error) &&
         host_costs(&bench, error) && memory_costs(&bench, error) && copy_costs(&bench, error) &&
         product_costs(&bench, error) && attention_costs(&bench, error) &&
         (comm->world == 1 ? outside(&bench, error) : collective_costs(&bench, error));
    close_bench(&bench);
    return ok;
}
