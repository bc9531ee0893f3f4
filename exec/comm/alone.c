/* exec/comm/alone.c - one rank: every collective finds its result in place or copies it. */
#include "exec/comm/comm.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static bool all_gather(gpointer self, PlanAxis axis, gconstpointer shard, gpointer gathered,
                       uint64_t elements, PlanDtype dtype, GError **error) {
    if (shard) {
        memcpy(gathered, shard, elements * plan_dtype_bytes(dtype));
    }
    return true;
}

static bool reduce_scatter(gpointer self, PlanAxis axis, gconstpointer packed, gpointer shard,
                           uint64_t elements, PlanDtype dtype, bool average, GError **error) {
    memcpy(shard, packed, elements * plan_dtype_bytes(dtype));
    return true;
}

static bool all_reduce(gpointer self, PlanAxis axis, gpointer buffer, uint64_t elements,
                       PlanDtype dtype, bool average, GError **error) {
    return true;
}

static bool broadcast(gpointer self, PlanAxis axis, gpointer buffer, uint64_t elements,
                      PlanDtype dtype, GError **error) {
    return true;
}

static bool barrier(gpointer self, GError **error) {
    return true;
}

static bool meet(gpointer self, PlanAxis axis, int64_t *ns, GError **error) {
    return true;
}

/* One rank has no stage beside it. */
static bool talk(gpointer self, const ExecTalk *talk, GError **error) {
    g_assert_not_reached();
}

static bool mean(gpointer self, double *values, unsigned n, GError **error) {
    return true;
}

static bool join(gpointer self, const Plan *plan, GError **error) {
    return true;
}

static bool share(gpointer self, gpointer bytes, gsize n, GError **error) {
    return true;
}

static bool collect(gpointer self, uint32_t from, const char *text, char **ret_text,
                    GError **error) {
    *ret_text = NULL;
    return true;
}

static void give_up(gpointer self) {
}

/* What libraries would do at an exit may hang, or end the process otherwise, where a device is
 * broken or still at work. */
static void abort_alone(gpointer self, int status) {
    fflush(NULL);
    _exit(status);
}

static void close_alone(gpointer self) {
}

const ExecComm exec_comm_alone = {
    .name = "alone",
    .world = 1,
    .local_world = 1,
    .join = join,
    .all_gather = all_gather,
    .reduce_scatter = reduce_scatter,
    .all_reduce = all_reduce,
    .broadcast = broadcast,
    .barrier = barrier,
    .meet = meet,
    .talk = talk,
    .mean = mean,
    .share = share,
    .collect = collect,
    .give_up = give_up,
    .abort = abort_alone,
    .close = close_alone,
};
