#include "exec/comm/rehearse.h"

#include <string.h>

#include "exec/convert.h"
#include "exec/error.h"
#include "kernels/host/products/float8.h"
#include "kernels/host/random.h"
#include "plan/mesh.h"

typedef struct {
    const Plan *plan;
    uint32_t rank;
    uint64_t calls[PLAN_N_AXES];  /* each counted by its axis's thread */
    uint64_t talks[2][2];         /* with the stage before or behind, exchanges or not: likewise */
    char *numbers[PLAN_N_DTYPES]; /* EXEC_REHEARSE_NUMBERS of each; NULL of whole numbers */
} Rehearsal;

static uint64_t ranks_of(const Rehearsal *rehearsal, PlanAxis axis) {
    return rehearsal->plan->axes[axis];
}

/* ---- the table ------------------------------------------------------------------------------ */

/* Bytes that are gathered are parts of several dtypes, of which none then overflows. */
static void put(gpointer to, PlanDtype dtype, const float *x, uint64_t n) {
    switch (dtype) {
    case PLAN_FP32:
    case PLAN_BF16:
    case PLAN_FP16:
        exec_convert(to, dtype, x, PLAN_FP32, n);
        return;
    case PLAN_E4M3:
    case PLAN_UINT8:
        kernel_narrow_e4m3(to, x, n);
        return;
    case PLAN_E5M2:
        kernel_narrow_e5m2(to, x, n);
        return;
    case PLAN_FP64:
        for (uint64_t i = 0; i < n; i++) {
            ((double *)to)[i] = (double)x[i];
        }
        return;
    case PLAN_INT64:
    case PLAN_INT32:
    case PLAN_N_DTYPES:
        break;
    }
    g_assert_not_reached();
}

gpointer exec_rehearse_numbers(PlanDtype dtype) {
    enum {
        SEED = 1 /* any will do */
    };
    if (dtype == PLAN_INT64 || dtype == PLAN_INT32) {
        return NULL;
    }
    g_autofree float *wide = g_new(float, EXEC_REHEARSE_NUMBERS);
    gpointer numbers = g_malloc(EXEC_REHEARSE_NUMBERS * plan_dtype_bytes(dtype));
    kernel_philox_uniform_f32(wide, EXEC_REHEARSE_NUMBERS, SEED, 0, 0, -0x1p-5f, 0x1p-5f);
    put(numbers, dtype, wide, EXEC_REHEARSE_NUMBERS);
    return numbers;
}

/* Elements first .. first + n - 1 of a tensor whose first is number `from` of the table. */
static void take(const Rehearsal *rehearsal, char *to, uint64_t from, uint64_t first, uint64_t n,
                 PlanDtype dtype) {
    uint64_t size = plan_dtype_bytes(dtype);
    for (uint64_t done = 0, some; done < n; done += some) {
        uint64_t at = (from + first + done) % EXEC_REHEARSE_NUMBERS;
        some = MIN(n - done, EXEC_REHEARSE_NUMBERS - at);
        memcpy(to + done * size, rehearsal->numbers[dtype] + at * size, some * size);
    }
}

/* ---- stand-ins ------------------------------------------------------------------------------ */

static bool all_gather(gpointer self, const ExecCollective *call, GError **error) {
    Rehearsal *rehearsal = self;
    uint64_t count = call->elements / ranks_of(rehearsal, call->axis);
    uint64_t first = plan_rank_on_axis(rehearsal->plan, rehearsal->rank, call->axis) * count;
    uint64_t from = exec_rehearse_from(call->axis, rehearsal->calls[call->axis]++);
    uint64_t last = first + count, size = plan_dtype_bytes(call->dtype);
    char *out = call->taken;
    take(rehearsal, out, from, 0, first, call->dtype);
    take(rehearsal, out + last * size, from, last, call->elements - last, call->dtype);
    if (call->given) {
        memcpy(out + first * size, call->given, count * size);
    }
    return true;
}

static bool reduce_scatter(gpointer self, const ExecCollective *call, GError **error) {
    Rehearsal *rehearsal = self;
    take(rehearsal, call->taken, exec_rehearse_from(call->axis, rehearsal->calls[call->axis]++), 0,
         call->elements / ranks_of(rehearsal, call->axis), call->dtype);
    return true;
}

static bool all_reduce(gpointer self, const ExecCollective *call, GError **error) {
    if (call->reduction == PLAN_REDUCTION_SUM) {
        exec_scale(call->taken, call->dtype, (float)ranks_of(self, call->axis), call->elements);
    }
    return true;
}

static bool talk(gpointer self, const ExecTalk *talk, GError **error) {
    Rehearsal *rehearsal = self;
    PlanAxis axis = PLAN_AXIS_PIPELINE;
    uint64_t call = rehearsal->talks[talk->behind][talk->swaps]++;
    if (talk->taken) {
        take(rehearsal, talk->taken, exec_rehearse_from(axis, call), 0, talk->elements,
             talk->dtype);
    }
    return true;
}

/* ---- opening and closing -------------------------------------------------------------------- */

static void close_rehearsal(gpointer self) {
    Rehearsal *rehearsal = self;
    for (PlanDtype dtype = 0; dtype < PLAN_N_DTYPES; dtype++) {
        g_free(rehearsal->numbers[dtype]);
    }
    g_free(rehearsal);
}

bool exec_rehearse_open(const Plan *plan, uint32_t rank, ExecComm *ret_comm, GError **error) {
    if (rank >= plan->world) {
        g_set_error(error, EXEC_ERROR, EXEC_ERROR_INPUT,
                    "there is no rank %u to rehearse: the plan's are 0 to %u", rank,
                    plan->world - 1);
        return false;
    }
    Rehearsal *rehearsal = g_new0(Rehearsal, 1);
    *rehearsal = (Rehearsal){.plan = plan, .rank = rank};
    for (PlanDtype dtype = 0; dtype < PLAN_N_DTYPES; dtype++) {
        rehearsal->numbers[dtype] = exec_rehearse_numbers(dtype);
    }
    *ret_comm = exec_comm_alone; /* who waits for the others finds them there */
    ret_comm->name = "stand-ins";
    ret_comm->rank = rank;
    ret_comm->world = plan->world;
    ret_comm->rehearsed = true;
    ret_comm->self = rehearsal;
    ret_comm->all_gather = all_gather;
    ret_comm->reduce_scatter = reduce_scatter;
    ret_comm->all_reduce = all_reduce;
    ret_comm->talk = talk;
    ret_comm->close = close_rehearsal;
    return true;
}
