#include "exec/host/costs.h"

#include "exec/clock.h"
#include "exec/costs.h"
#include "exec/host/lanes.h"
#include "exec/host/segments.h"
#include "exec/pace.h"
#include "trace/quantile.h"

/* ---- lanes ---------------------------------------------------------------------------------- */

enum {
    ROUNDS = 400,
    TURN = EXEC_LANE_DEPTH - 1 /* that the host can give without being held */
};

static bool nothing(gpointer work, GError **error) {
    return true;
}

static bool lane_costs(const ExecCosts *costs, GError **error) {
    g_autoptr(ExecLanes) lanes = exec_lanes_new(2);
    double launch[ROUNDS], wait[ROUNDS], host_wait[ROUNDS], through[ROUNDS];
    for (unsigned round = 0; round < ROUNDS; round++) {
        double start = exec_now_us();
        for (unsigned i = 0; i < TURN; i++) {
            exec_lanes_give(lanes, 0, nothing, NULL, NULL);
        }
        double given = exec_now_us();
        for (unsigned i = 0; i < TURN; i++) {
            exec_lanes_wait(lanes, 1, exec_lanes_moment(lanes, 0));
        }
        double waited = exec_now_us();
        exec_lanes_drain(lanes);
        launch[round] = (given - start) / TURN;
        wait[round] = (waited - given) / TURN;
        host_wait[round] = exec_now_us() - waited;
    }
    for (unsigned round = 0; round < ROUNDS; round++) {
        double start = exec_now_us();
        for (unsigned i = 0; i < 4 * TURN; i++) {
            exec_lanes_give(lanes, 0, nothing, NULL, NULL);
        }
        exec_lanes_drain(lanes);
        through[round] = (exec_now_us() - start) / (4 * TURN);
    }
    return exec_costs_report(costs, "launch_us", trace_median(launch, ROUNDS), error) &&
           exec_costs_report(costs, "wait_us", trace_median(wait, ROUNDS), error) &&
           exec_costs_report(costs, "host_wait_us", trace_median(host_wait, ROUNDS), error) &&
           exec_costs_report(costs, "lane_us", trace_median(through, ROUNDS), error);
}

static bool note_time(gpointer work, GError **error) {
    *(double *)work = exec_now_us();
    return true;
}

/* A lane that has rested a while is given work by a thread that has slept, on all ranks at the same
 * time: as when a paced collective ends. */
static bool wake_cost(const ExecCosts *costs, GError **error) {
    enum {
        TIMES = 100
    };
    const int64_t rest_ns = 2000000;
    double us[TIMES];
    int64_t at_ns = exec_now_ns();
    const ExecComm *comm = costs->comm;
    if (!comm->meet(comm->self, PLAN_AXIS_SHARD, &at_ns, error)) {
        return false;
    }
    g_autoptr(ExecLanes) lanes = exec_lanes_new(1);
    for (unsigned i = 0; i < TIMES; i++) {
        double began = 0;
        exec_pace_sleep_until(at_ns += rest_ns);
        double given = exec_now_us();
        exec_lanes_give(lanes, 0, note_time, &began, NULL);
        exec_lanes_drain(lanes);
        us[i] = began - given;
    }
    return exec_costs_report(costs, "lane_wake_us", trace_median(us, TIMES), error);
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
    ExecCollective call = {.axis = PLAN_AXIS_SHARD,
                           .dtype = PLAN_FP32,
                           .reduction = PLAN_REDUCTION_MEAN,
                           .elements = n,
                           .taken = whole};
    if (kind == PLAN_OP_ALL_GATHER) {
        call.given = part;
        return comm->all_gather(comm->self, &call, error);
    }
    if (kind == PLAN_OP_REDUCE_SCATTER) {
        call.given = whole;
        call.taken = part;
        return comm->reduce_scatter(comm->self, &call, error);
    }
    return comm->all_reduce(comm->self, &call, error);
}

/* Each starts when all ranks are there; a rank counts from its own leave of the barrier. */
static bool collective_cost(const ExecCosts *costs, unsigned which, uint64_t bytes,
                            GError **error) {
    enum {
        TIMES = 15
    };
    const ExecComm *comm = costs->comm;
    uint64_t n = bytes / sizeof(float) / comm->world * comm->world;
    g_autofree float *whole = g_new0(float, n), *part = g_new0(float, n);
    double us[TIMES];
    for (unsigned i = 0; i < TIMES; i++) {
        if (!comm->barrier(comm->self, error)) {
            return false;
        }
        double start = exec_now_us();
        if (!call(comm, collectives[which].kind, whole, part, n, error)) {
            return false;
        }
        us[i] = exec_now_us() - start;
    }
    g_autofree char *name =
        g_strdup_printf("%s %" G_GUINT64_FORMAT, collectives[which].name, n * sizeof(float));
    return exec_costs_report(costs, name, trace_median(us, TIMES), error);
}

static bool collective_costs(const ExecCosts *costs, GError **error) {
    for (unsigned which = 0; which < G_N_ELEMENTS(collectives); which++) {
        for (uint64_t bytes = 8 << 10; bytes <= 32 << 20; bytes *= 8) {
            if (!collective_cost(costs, which, bytes, error)) {
                return false;
            }
        }
    }
    return true;
}

bool exec_host_costs(const ExecCosts *costs, GError **error) {
    ExecSegments segments = {.limit_bytes = UINT64_C(1) << 40};
    const ExecComm *comm = costs->comm;
    return comm->barrier(comm->self, error) && lane_costs(costs, error) &&
           wake_cost(costs, error) && comm->barrier(comm->self, error) &&
           exec_costs_of_memory(costs, &exec_segments_source, &segments, error) &&
           (comm->world == 1 || collective_costs(costs, error));
}
