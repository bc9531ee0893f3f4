#include "exec/rehearse.h"

#include <string.h>

#include "exec/error.h"
#include "kernels/host/elementwise.h"
#include "kernels/host/half.h"
#include "kernels/host/random.h"

typedef struct {
    const Plan *plan;
    uint32_t rank;
    uint64_t seed;
    gint calls; /* atomic: axes have threads of their own */
} Rehearsal;

static uint64_t ranks_of(const Rehearsal *rehearsal, PlanAxis axis) {
    return rehearsal->plan->axes[axis];
}

static void with_signs(Rehearsal *rehearsal, gpointer to, gconstpointer from, uint64_t n,
                       PlanDtype dtype) {
    uint64_t call = (uint64_t)g_atomic_int_add(&rehearsal->calls, 1);
    if (plan_dtype_bytes(dtype) == sizeof(float)) {
        kernel_random_signs_f32(to, from, n, rehearsal->seed, call);
    } else {
        kernel_random_signs_16(to, from, n, rehearsal->seed, call);
    }
}

static void times(gpointer x, PlanDtype dtype, uint64_t n, float factor) {
    if (dtype == PLAN_FP32) {
        kernel_scale_f32(x, x, factor, n);
    } else {
        (dtype == PLAN_BF16 ? kernel_scale_inplace_bf16 : kernel_scale_inplace_f16)(x, factor, n);
    }
}

/* ---- stand-ins ------------------------------------------------------------------------------ */

static bool all_gather(gpointer self, PlanAxis axis, gconstpointer shard, gpointer gathered,
                       uint64_t elements, PlanDtype dtype, GError **error) {
    Rehearsal *rehearsal = self;
    uint64_t ranks = ranks_of(rehearsal, axis), count = elements / ranks;
    uint64_t bytes = count * plan_dtype_bytes(dtype);
    uint64_t own = plan_rank_on_axis(rehearsal->plan, rehearsal->rank, axis);
    char *slices = gathered;
    if (shard) {
        memcpy(slices + own * bytes, shard, bytes);
    }
    for (uint64_t i = 0; i < ranks; i++) {
        if (i != own) {
            with_signs(rehearsal, slices + i * bytes, slices + own * bytes, count, dtype);
        }
    }
    return true;
}

static bool reduce_scatter(gpointer self, PlanAxis axis, gconstpointer packed, gpointer shard,
                           uint64_t elements, PlanDtype dtype, bool average, GError **error) {
    Rehearsal *rehearsal = self;
    uint64_t ranks = ranks_of(rehearsal, axis), count = elements / ranks;
    uint64_t own = plan_rank_on_axis(rehearsal->plan, rehearsal->rank, axis);
    const char *slice = (const char *)packed + own * count * plan_dtype_bytes(dtype);
    with_signs(rehearsal, shard, slice, count, dtype);
    if (!average) {
        times(shard, dtype, count, (float)ranks);
    }
    return true;
}

static bool all_reduce(gpointer self, PlanAxis axis, gpointer buffer, uint64_t elements,
                       PlanDtype dtype, bool average, GError **error) {
    if (!average) {
        times(buffer, dtype, elements, (float)ranks_of(self, axis));
    }
    return true;
}

bool exec_rehearse_open(const Plan *plan, uint32_t rank, uint64_t seed, ExecComm *ret_comm,
                        GError **error) {
    if (rank >= plan->world) {
        g_set_error(error, EXEC_ERROR, EXEC_ERROR_INPUT,
                    "there is no rank %u to rehearse: the plan's are 0 to %u", rank,
                    plan->world - 1);
        return false;
    }
    Rehearsal *rehearsal = g_new0(Rehearsal, 1);
    *rehearsal = (Rehearsal){.plan = plan, .rank = rank, .seed = seed};
    *ret_comm = exec_comm_alone; /* who waits for the others finds them there */
    ret_comm->name = "stand-ins";
    ret_comm->rank = rank;
    ret_comm->world = plan->world;
    ret_comm->rehearsed = true;
    ret_comm->self = rehearsal;
    ret_comm->all_gather = all_gather;
    ret_comm->reduce_scatter = reduce_scatter;
    ret_comm->all_reduce = all_reduce;
    ret_comm->close = g_free;
    return true;
}
