/* Why foreshard's reductions go round a ring of their own (exec/comm/ring.h): the ring against
 * MPI's nonblocking reduce-scatter, with an operation of our own, which 16 bits need, and with
 * MPI_SUM.
 *
 *   mpirun -n 2 build/bench/bench-reductions
 *
 * The buffers are those of GPT-2 124M. Each way is called once untimed, and then the process's
 * peak of resident memory is read; then they take turns, since a machine's speed drifts. Prints
 * medians of what the slowest rank took. */
#include <glib.h>
#include <mpi.h>
#include <stdio.h>

#include "exec/comm/mpi-call.h"
#include "exec/comm/ring.h"
#include "kernels/host/elementwise.h"
#include "kernels/host/half.h"
#include "trace/quantile.h"

enum {
    ROUNDS = 15
};

typedef enum {
    RING,
    OWN_OPERATION,
    MPI_OWN_SUM,
    N_WAYS
} Way;

static const char *const names[N_WAYS] = {"ring", "MPI, own operation", "MPI_SUM"};

typedef struct {
    const char *name;
    bool half;         /* bf16, else fp32 */
    uint64_t elements; /* of the whole buffer, a multiple of the ranks made of it */
} Case;

/* Parameters of a block, and of both tables with the last norm. */
static const Case cases[] = {
    {"a block, bf16", true, 7087872},
    {"a block, fp32", false, 7087872},
    {"the tables, bf16", true, 39385344},
    {"the tables, fp32", false, 39385344},
};

typedef struct {
    MPI_Op operation[2]; /* fp32, bf16 */
    ExecRing ring;
    char *packed, *shard;
    int count; /* elements of a shard */
    int rank;
} Bench;

/* ---- the three ways ------------------------------------------------------------------------- */

static void add_f32(gpointer to, gconstpointer from, size_t n) {
    kernel_add_inplace_f32(to, from, n);
}

static void add_bf16(gpointer to, gconstpointer from, size_t n) {
    kernel_add_inplace_bf16(to, from, n);
}

static void operate_f32(void *from, void *to, int *n, MPI_Datatype *type) {
    kernel_add_inplace_f32(to, from, (size_t)*n);
}

static void operate_bf16(void *from, void *to, int *n, MPI_Datatype *type) {
    kernel_add_inplace_bf16(to, from, (size_t)*n);
}

static bool reduce(const Bench *bench, Way way, GError **error) {
    const ExecRing *ring = &bench->ring;
    if (way == RING) {
        return exec_ring_reduce_scatter(ring, bench->packed, bench->shard, (uint64_t)bench->count,
                                        error);
    }
    MPI_Op operation = way == MPI_OWN_SUM ? MPI_SUM : bench->operation[ring->element_bytes == 2];
    MPI_Request request;
    return exec_mpi_check(MPI_Ireduce_scatter_block(bench->packed, bench->shard, bench->count,
                                                    ring->type, operation, ring->comm, &request),
                          "MPI_Ireduce_scatter_block", error) &&
           exec_mpi_finish(&request, 1, "MPI_Ireduce_scatter_block", error);
}

/* MPI has no bf16 to sum. */
static bool is_there(const Case *of, Way way) {
    return way != MPI_OWN_SUM || !of->half;
}

/* ---- measuring ------------------------------------------------------------------------------ */

static double resident_peak_mb(void) {
    g_autofree char *status = NULL;
    if (!g_file_get_contents("/proc/self/status", &status, NULL, NULL)) {
        return 0;
    }
    const char *peak = g_strstr_len(status, -1, "VmHWM:");
    return peak ? g_ascii_strtod(peak + 6, NULL) * 1024 / 1e6 : 0;
}

static bool time_of(const Bench *bench, Way way, double *ret_ms, GError **error) {
    MPI_Barrier(bench->ring.comm);
    double start = MPI_Wtime();
    if (!reduce(bench, way, error)) {
        return false;
    }
    double ms = (MPI_Wtime() - start) * 1e3;
    MPI_Allreduce(MPI_IN_PLACE, &ms, 1, MPI_DOUBLE, MPI_MAX, bench->ring.comm);
    *ret_ms = ms;
    return true;
}

static bool measure(Bench *bench, const Case *of, GError **error) {
    double ms[N_WAYS][ROUNDS], peak[N_WAYS] = {0};
    for (int round = -1; round < ROUNDS; round++) {
        for (Way way = RING; way < N_WAYS; way++) {
            double unused;
            if (is_there(of, way) &&
                !time_of(bench, way, round < 0 ? &unused : &ms[way][round], error)) {
                return false;
            }
            peak[way] = round < 0 ? resident_peak_mb() : peak[way];
        }
    }
    double ring_ms = 0;
    for (Way way = RING; way < N_WAYS && bench->rank == 0; way++) {
        if (is_there(of, way)) {
            double median = trace_median(ms[way], ROUNDS);
            ring_ms = way == RING ? median : ring_ms;
            printf("%-18s %-20s %7.1f ms (%.1f to %.1f), %.2f of the ring's; resident by then %.0f "
                   "MB\n",
                   of->name, names[way], median, ms[way][0], ms[way][ROUNDS - 1], median / ring_ms,
                   peak[way]);
        }
    }
    return true;
}

/* Ones, so that every page is there, and every sum the number of ranks. */
static void fill(const Bench *bench, uint64_t elements) {
    const uint16_t bf16_one = 0x3f80;
    for (uint64_t i = 0; i < elements; i++) {
        if (bench->ring.element_bytes == 2) {
            ((uint16_t *)(gpointer)bench->packed)[i] = bf16_one;
        } else {
            ((float *)(gpointer)bench->packed)[i] = 1;
        }
    }
}

static bool bench_case(Bench *bench, const Case *of, int ranks, GError **error) {
    uint64_t size = of->half ? 2 : 4;
    bench->count = (int)(of->elements / (uint64_t)ranks);
    bench->ring.type = of->half ? MPI_UINT16_T : MPI_FLOAT;
    bench->ring.element_bytes = size;
    bench->ring.add = of->half ? add_bf16 : add_f32;
    uint64_t shard_bytes = (uint64_t)bench->count * size;
    bench->packed = g_malloc(shard_bytes * (uint64_t)ranks);
    bench->shard = g_malloc(shard_bytes);
    fill(bench, (uint64_t)bench->count * (uint64_t)ranks);
    bool ok = measure(bench, of, error);
    g_free(bench->packed);
    g_free(bench->shard);
    return ok;
}

int main(int argc, char **argv) {
    int provided, ranks;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    Bench bench = {.ring = {.comm = MPI_COMM_WORLD, .scratch = g_malloc0(EXEC_RING_SCRATCH_BYTES)}};
    MPI_Comm_rank(MPI_COMM_WORLD, &bench.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Op_create(operate_f32, 1, &bench.operation[0]);
    MPI_Op_create(operate_bf16, 1, &bench.operation[1]);
    g_autoptr(GError) error = NULL;
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        if (!bench_case(&bench, &cases[i], ranks, &error)) {
            fprintf(stderr, "bench-reductions: %s\n", error->message);
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
    }
    g_free(bench.ring.scratch);
    MPI_Finalize();
    return 0;
}
