#include "exec/costs.h"

#include <stdlib.h>
#include <time.h>

#include "exec/host/lanes.h"
#include "exec/host/segments.h"
#include "memory/caching.h"

static double now_us(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static bool report(const ExecComm *comm, GString *lines, const char *name, double us,
                   GError **error) {
    if (!comm->mean(comm->self, &us, 1, error)) {
        return false;
    }
    g_string_append_printf(lines, "%s %.4g\n", name, us);
    return true;
}

static int compare(gconstpointer a, gconstpointer b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *x, unsigned n) {
    qsort(x, n, sizeof *x, compare);
    return x[n / 2];
}

/* ---- lanes ---------------------------------------------------------------------------------- */

enum {
    ROUNDS = 400,
    TURN = EXEC_LANE_DEPTH - 1 /* that the host can give without being held */
};

static bool nothing(gpointer work, GError **error) {
    return true;
}

static bool lane_costs(const ExecComm *comm, GString *lines, GError **error) {
    g_autoptr(ExecLanes) lanes = exec_lanes_new(2);
    double launch[ROUNDS], wait[ROUNDS], host_wait[ROUNDS], through[ROUNDS];
    for (unsigned round = 0; round < ROUNDS; round++) {
        double start = now_us();
        for (unsigned i = 0; i < TURN; i++) {
            exec_lanes_give(lanes, 0, nothing, NULL, NULL);
        }
        double given = now_us();
        for (unsigned i = 0; i < TURN; i++) {
            exec_lanes_wait(lanes, 1, exec_lanes_moment(lanes, 0));
        }
        double waited = now_us();
        exec_lanes_drain(lanes);
        launch[round] = (given - start) / TURN;
        wait[round] = (waited - given) / TURN;
        host_wait[round] = now_us() - waited;
    }
    for (unsigned round = 0; round < ROUNDS; round++) {
        double start = now_us();
        for (unsigned i = 0; i < 4 * TURN; i++) {
            exec_lanes_give(lanes, 0, nothing, NULL, NULL);
        }
        exec_lanes_drain(lanes);
        through[round] = (now_us() - start) / (4 * TURN);
    }
    return report(comm, lines, "launch_us", median(launch, ROUNDS), error) &&
           report(comm, lines, "wait_us", median(wait, ROUNDS), error) &&
           report(comm, lines, "host_wait_us", median(host_wait, ROUNDS), error) &&
           report(comm, lines, "lane_us", median(through, ROUNDS), error);
}

/* ---- memory --------------------------------------------------------------------------------- */

static bool segment_costs(const ExecComm *comm, GString *lines, GError **error) {
    enum {
        N = 16
    };
    ExecSegments segments = {.limit_bytes = UINT64_C(1) << 40};
    const uint64_t bytes = 20 << 20; /* PyTorch's segment for most requests */
    double get[N], give_back[N];
    for (unsigned i = 0; i < N; i++) {
        gpointer handle;
        double start = now_us();
        if (!exec_segments_source.segment_new(&segments, bytes, &handle)) {
            g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_NOMEM, "cannot map 20 MiB");
            return false;
        }
        double got = now_us();
        exec_segments_source.segment_free(&segments, handle, bytes);
        get[i] = got - start;
        give_back[i] = now_us() - got;
    }
    return report(comm, lines, "segment_new_us", median(get, N), error) &&
           report(comm, lines, "segment_free_us", median(give_back, N), error);
}

/* Requests that find their block among a few others. */
static bool block_costs(const ExecComm *comm, GString *lines, GError **error) {
    enum {
        BLOCKS = 64
    };
    ExecSegments segments = {.limit_bytes = UINT64_C(1) << 40};
    MemoryCaching *caching = memory_caching_new(NULL, &exec_segments_source, &segments, error);
    MemoryBlock *blocks[BLOCKS];
    double take[ROUNDS], drop[ROUNDS];
    for (unsigned round = 0; caching && round < ROUNDS; round++) {
        double start = now_us();
        for (unsigned i = 0; i < BLOCKS; i++) {
            memory_caching_alloc(caching, 0, (1 + i % 7) * 100000, &blocks[i]);
        }
        double taken = now_us();
        for (unsigned i = 0; i < BLOCKS; i++) {
            memory_caching_drop(caching, blocks[i * 5 % BLOCKS]);
        }
        take[round] = (taken - start) / BLOCKS;
        drop[round] = (now_us() - taken) / BLOCKS;
    }
    bool ok = caching != NULL;
    memory_caching_free(caching);
    return ok && report(comm, lines, "alloc_us", median(take, ROUNDS), error) &&
           report(comm, lines, "free_us", median(drop, ROUNDS), error);
}

/* ---- collectives ---------------------------------------------------------------------------- */

static const struct {
    const char *name;
    PlanOpKind kind;
} collectives[] = {{"all_gather", PLAN_OP_ALL_GATHER},
                   {"reduce_scatter", PLAN_OP_REDUCE_SCATTER},
                   {"all_reduce", PLAN_OP_ALL_REDUCE}};

static bool call(const ExecComm *comm, PlanOpKind kind, float *whole, float *part, uint64_t n,
                 GError **error) {
    if (kind == PLAN_OP_ALL_GATHER) {
        return comm->all_gather(comm->self, PLAN_AXIS_SHARD, part, whole, n, PLAN_FP32, error);
    }
    if (kind == PLAN_OP_REDUCE_SCATTER) {
        return comm->reduce_scatter(comm->self, PLAN_AXIS_SHARD, whole, part, n, PLAN_FP32, true,
                                    error);
    }
    return comm->all_reduce(comm->self, PLAN_AXIS_SHARD, whole, n, PLAN_FP32, true, error);
}

/* Each starts when all ranks are there; a rank counts from its own leave of the barrier. */
static bool collective_cost(const ExecComm *comm, GString *lines, unsigned which, uint64_t bytes,
                            GError **error) {
    enum {
        TIMES = 15
    };
    uint64_t n = bytes / sizeof(float) / comm->world * comm->world;
    g_autofree float *whole = g_new0(float, n), *part = g_new0(float, n);
    double us[TIMES];
    for (unsigned i = 0; i < TIMES; i++) {
        if (!comm->barrier(comm->self, error)) {
            return false;
        }
        double start = now_us();
        if (!call(comm, collectives[which].kind, whole, part, n, error)) {
            return false;
        }
        us[i] = now_us() - start;
    }
    g_autofree char *name =
        g_strdup_printf("%s %" G_GUINT64_FORMAT, collectives[which].name, n * sizeof(float));
    return report(comm, lines, name, median(us, TIMES), error);
}

static bool collective_costs(const ExecComm *comm, GString *lines, GError **error) {
    for (unsigned which = 0; which < G_N_ELEMENTS(collectives); which++) {
        for (uint64_t bytes = 8 << 10; bytes <= 32 << 20; bytes *= 8) {
            if (!collective_cost(comm, lines, which, bytes, error)) {
                return false;
            }
        }
    }
    return true;
}

GString *exec_costs_measure(const ExecComm *comm, GError **error) {
    GString *lines = g_string_new(NULL);
    bool ok = comm->barrier(comm->self, error) && lane_costs(comm, lines, error) &&
              comm->barrier(comm->self, error) && segment_costs(comm, lines, error) &&
              block_costs(comm, lines, error) &&
              (comm->world == 1 || collective_costs(comm, lines, error));
    if (!ok) {
        g_string_free(lines, TRUE);
        return NULL;
    }
    return lines;
}
