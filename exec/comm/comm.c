#include "exec/comm/comm.h"

#include <math.h>

#include "exec/convert.h"

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

static bool all_reduce_max(const ExecComm *comm, PlanAxis axis, gpointer buffer, uint64_t n,
                           uint64_t ranks, PlanDtype dtype, GError **error) {
    g_autofree char *all = g_malloc(n * ranks * plan_dtype_bytes(dtype));
    if (!comm->all_gather(comm->self, axis, buffer, all, n * ranks, dtype, error)) {
        return false;
    }
    if (dtype == PLAN_FP64) {
        put_largest(buffer, (const double *)(gconstpointer)all, n, ranks);
        return true;
    }
    g_autofree float *wide = g_new(float, n *ranks);
    exec_convert(wide, PLAN_FP32, all, dtype, n * ranks);
    for (uint64_t i = 0; i < n; i++) {
        for (uint64_t rank = 1; rank < ranks; rank++) {
            wide[i] = fmaxf(wide[i], wide[rank * n + i]);
        }
    }
    exec_convert(buffer, dtype, wide, PLAN_FP32, n);
    return true;
}

bool exec_comm_all_reduce(const ExecComm *comm, PlanAxis axis, gpointer buffer, uint64_t elements,
                          uint64_t ranks, PlanDtype dtype, PlanReduction reduction,
                          GError **error) {
    return reduction == PLAN_REDUCTION_MAX
               ? all_reduce_max(comm, axis, buffer, elements, ranks, dtype, error)
               : comm->all_reduce(comm->self, axis, buffer, elements, dtype,
                                  reduction == PLAN_REDUCTION_MEAN, error);
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

bool exec_comm_take_ahead(const ExecComm *comm, const Plan *plan, PlanAxis axis,
                          gconstpointer given, gpointer taken, uint32_t ahead, uint64_t elements,
                          PlanDtype dtype, GError **error) {
    uint32_t ranks = plan->axes[axis], place = plan_rank_on_axis(plan, comm->rank, axis);
    gsize n = elements * plan_dtype_bytes(dtype);
    g_autofree char *all = g_malloc(n * ranks);
    if (!comm->all_gather(comm->self, axis, given, all, elements * ranks, dtype, error)) {
        return false;
    }
    memcpy(taken, all + (place + ahead) % ranks * n, n);
    return true;
}

bool exec_comm_pass_on(const ExecComm *comm, const Plan *plan, PlanAxis axis, gconstpointer given,
                       gpointer taken, uint64_t elements, PlanDtype dtype, GError **error) {
    return exec_comm_take_ahead(comm, plan, axis, given, taken, plan->axes[axis] - 1, elements,
                                dtype, error);
}

bool exec_comm_all_to_all(const ExecComm *comm, const Plan *plan, PlanAxis axis,
                          gconstpointer given, gpointer taken, uint64_t elements, PlanDtype dtype,
                          GError **error) {
    uint32_t ranks = plan->axes[axis], place = plan_rank_on_axis(plan, comm->rank, axis);
    if (comm->rehearsed && dtype == PLAN_INT64) { /* as many rows come as are sent */
        memcpy(taken, given, elements * sizeof(int64_t));
        return true;
    }
    if (comm->rehearsed) { /* what is kept, and what others would send */
        gsize own = place * (elements / ranks) * plan_dtype_bytes(dtype);
        return comm->all_gather(comm->self, axis, (const char *)given + own, taken, elements, dtype,
                                error);
    }
    if (dtype == PLAN_INT64) { /* gathered as so many words, which nobody reads */
        return exec_comm_all_to_all(comm, plan, axis, given, taken, 2 * elements, PLAN_FP32, error);
    }
    gsize part = elements / ranks * plan_dtype_bytes(dtype);
    g_autofree char *all = g_malloc(part * ranks * ranks);
    if (!comm->all_gather(comm->self, axis, given, all, elements * ranks, dtype, error)) {
        return false;
    }
    for (uint32_t from = 0; from < ranks; from++) {
        memcpy((char *)taken + from * part, all + ((gsize)from * ranks + place) * part, part);
    }
    return true;
}

bool exec_comm_reduce_scatter_divided(const ExecComm *comm, PlanAxis axis, gconstpointer packed,
                                      gpointer shard, uint64_t elements, PlanDtype dtype,
                                      double divisor, GError **error) {
    g_autofree float *wide = g_new(float, elements);
    exec_convert(wide, PLAN_FP32, packed, dtype, elements);
    for (uint64_t i = 0; i < elements; i++) {
        wide[i] /= (float)divisor;
    }
    g_autofree char *divided = g_malloc(elements * plan_dtype_bytes(dtype));
    exec_convert(divided, dtype, wide, PLAN_FP32, elements);
    return comm->reduce_scatter(comm->self, axis, divided, shard, elements, dtype, false, error);
}
