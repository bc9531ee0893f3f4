#include "exec/comm/comm.h"

#include <math.h>

#include "exec/convert.h"
#include "plan/mesh.h"

uint32_t exec_comm_color(const Plan *plan, PlanAxis axis, uint32_t rank) {
    return axis == PLAN_AXIS_NONE ? 0 : plan_group_of_rank(plan, rank, axis);
}

/* NaN where a rank has one, as a scale of float8 then is none. */
static void put_largest(double *to, const double *all, uint64_t n, uint64_t ranks) {
    for (uint64_t i = 0; i < n; i++) {
        to[i] = all[i];
        for (uint64_t rank = 1; rank < ranks; rank++) {
            double other = all[rank * n + i];
            to[i] = to[i] >= other || isnan(to[i]) ? to[i] : other;
        }
    }
}

/* Gathers to `all` the elements that each rank has at `given`. */
static bool gather_from_each(const ExecComm *comm, const ExecCollective *call, gconstpointer given,
                             gpointer all, uint64_t ranks, GError **error) {
    ExecCollective gather = *call;
    gather.given = given;
    gather.taken = all;
    gather.elements = call->elements * ranks;
    return comm->all_gather(comm->self, &gather, error);
}

static bool all_reduce_max(const ExecComm *comm, const ExecCollective *call, uint64_t ranks,
                           GError **error) {
    uint64_t n = call->elements;
    g_autofree char *all = g_malloc(n * ranks * plan_dtype_bytes(call->dtype));
    if (!gather_from_each(comm, call, call->taken, all, ranks, error)) {
        return false;
    }
    if (call->dtype == PLAN_FP64) {
        put_largest(call->taken, (const double *)(gconstpointer)all, n, ranks);
        return true;
    }
    g_autofree float *wide = g_new(float, n *ranks);
    exec_convert(wide, PLAN_FP32, all, call->dtype, n * ranks);
    for (uint64_t i = 0; i < n; i++) {
        for (uint64_t rank = 1; rank < ranks; rank++) {
            wide[i] = fmaxf(wide[i], wide[rank * n + i]);
        }
    }
    exec_convert(call->taken, call->dtype, wide, PLAN_FP32, n);
    return true;
}

bool exec_comm_all_reduce(const ExecComm *comm, const Plan *plan, const ExecCollective *call,
                          GError **error) {
    return call->reduction == PLAN_REDUCTION_MAX
               ? all_reduce_max(comm, call, plan->axes[call->axis], error)
               : comm->all_reduce(comm->self, call, error);
}

bool exec_comm_meet_to_talk(const ExecComm *comm, ExecTalk talk, int64_t *ns, GError **error) {
    int64_t mine = *ns, other = *ns;
    talk.given = &mine;
    talk.taken = &other;
    talk.dtype = PLAN_INT64;
    talk.elements = 1;
    bool ok = comm->rehearsed || comm->talk(comm->self, &talk, error);
    *ns = MAX(mine, other);
    return ok;
}

bool exec_comm_take_ahead(const ExecComm *comm, const Plan *plan, const ExecCollective *call,
                          uint32_t ahead, GError **error) {
    uint32_t ranks = plan->axes[call->axis];
    uint32_t place = plan_rank_on_axis(plan, comm->rank, call->axis);
    gsize n = call->elements * plan_dtype_bytes(call->dtype);
    g_autofree char *all = g_malloc(n * ranks);
    if (!gather_from_each(comm, call, call->given, all, ranks, error)) {
        return false;
    }
    memcpy(call->taken, all + (place + ahead) % ranks * n, n);
    return true;
}

bool exec_comm_pass_on(const ExecComm *comm, const Plan *plan, const ExecCollective *call,
                       GError **error) {
    return exec_comm_take_ahead(comm, plan, call, plan->axes[call->axis] - 1, error);
}

/* Of one rank whose others are made up: what it keeps, and what they would send; as many whole
 * numbers come as are sent. */
static bool rehearse_all_to_all(const ExecComm *comm, const ExecCollective *call, gsize part,
                                uint32_t place, GError **error) {
    if (call->dtype == PLAN_INT64) {
        memcpy(call->taken, call->given, call->elements * sizeof(int64_t));
        return true;
    }
    ExecCollective gather = *call;
    gather.given = (const char *)call->given + place * part;
    return comm->all_gather(comm->self, &gather, error);
}

bool exec_comm_all_to_all(const ExecComm *comm, const Plan *plan, const ExecCollective *call,
                          GError **error) {
    uint32_t ranks = plan->axes[call->axis];
    uint32_t place = plan_rank_on_axis(plan, comm->rank, call->axis);
    gsize part = call->elements / ranks * plan_dtype_bytes(call->dtype);
    if (comm->rehearsed) {
        return rehearse_all_to_all(comm, call, part, place, error);
    }
    if (call->dtype == PLAN_INT64) { /* gathered as so many words, which nobody reads */
        ExecCollective words = *call;
        words.dtype = PLAN_FP32;
        words.elements = 2 * call->elements;
        return exec_comm_all_to_all(comm, plan, &words, error);
    }
    g_autofree char *all = g_malloc(part * ranks * ranks);
    if (!gather_from_each(comm, call, call->given, all, ranks, error)) {
        return false;
    }
    for (uint32_t from = 0; from < ranks; from++) {
        memcpy((char *)call->taken + from * part, all + ((gsize)from * ranks + place) * part, part);
    }
    return true;
}

bool exec_comm_reduce_scatter_divided(const ExecComm *comm, const ExecCollective *call,
                                      double divisor, GError **error) {
    g_autofree float *wide = g_new(float, call->elements);
    exec_convert(wide, PLAN_FP32, call->given, call->dtype, call->elements);
    for (uint64_t i = 0; i < call->elements; i++) {
        wide[i] /= (float)divisor;
    }
    g_autofree char *divided = g_malloc(call->elements * plan_dtype_bytes(call->dtype));
    exec_convert(divided, call->dtype, wide, PLAN_FP32, call->elements);
    ExecCollective sum = *call;
    sum.given = divided;
    sum.reduction = PLAN_REDUCTION_SUM;
    return comm->reduce_scatter(comm->self, &sum, error);
}
