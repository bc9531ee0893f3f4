/* exec/comm/alone.c - one rank: every collective finds its result in place or copies it. */
#include "exec/comm/comm.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static bool copy(gpointer self, const ExecCollective *call, GError **error) {
    if (call->given) {
        memcpy(call->taken, call->given, call->elements * plan_dtype_bytes(call->dtype));
    }
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
    .all_gather = copy,
    .reduce_scatter = copy,
    .all_reduce = copy,
    .broadcast = copy,
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
