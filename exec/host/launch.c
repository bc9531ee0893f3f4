/* exec/host/launch.c - see launch.h. What needs more than a kernel: data and weights, copies to and
 * from what is offloaded, the host's own steps, collectives. The kernels are compute.c's.
 *
 * What differs between the ranks of a role is settled here: which rows of a parameter are this
 * rank's, which slice of a gather, which samples of the batch.
 */
#include "exec/host/launch.h"

#include <string.h>

#include "exec/batch.h"
#include "exec/convert.h"
#include "exec/error.h"
#include "exec/first-values.h"
#include "exec/host/half.h"
#include "exec/host/traced.h"
#include "exec/inputs.h"
#include "exec/offload/host-step.h"
#include "exec/offload/slot-plan.h"
#include "exec/op-groups.h"
#include "exec/part-runs.h"
#include "exec/slices.h"
#include "exec/task.h"
#include "kernels/host/elementwise.h"

/* ---- the host's memory ---------------------------------------------------------------------- */

static bool to_host(const ExecTask *t, GError **error) {
    uint32_t slot = (uint32_t)dim(t, TO_HOST_SLOT);
    gpointer at = exec_slots_at(t->context->slots, slot, dim(t, TO_HOST_N), error);
    if (at) {
        exec_convert(at, exec_slots_dtype(t->context->slots, slot), t->pointers[TO_HOST_X],
                     operand_dtype(t, TO_HOST_X), dim(t, TO_HOST_N));
    }
    return at != NULL;
}

/* An edited plan may ask for more than was put there: the rest is zero. */
static bool from_host(const ExecTask *t, GError **error) {
    uint32_t slot = (uint32_t)dim(t, FROM_HOST_SLOT);
    gconstpointer at = exec_slots_at(t->context->slots, slot, dim(t, FROM_HOST_N), error);
    if (at) {
        exec_convert(t->pointers[FROM_HOST_Y], operand_dtype(t, FROM_HOST_Y), at,
                     exec_slots_dtype(t->context->slots, slot), dim(t, FROM_HOST_N));
    }
    return at != NULL;
}

/* Whatever the elements that they lie in. */
static void first_nibbles(const ExecTask *t) {
    const ExecContext *c = t->context;
    ExecSlice slice = exec_slice_of(c->plan, c->role, t->op, c->comm->rank);
    exec_first_nibbles(t, slice.from, slice.count,
                       (char *)t->pointers[INIT_NIBBLES_NIBBLES] + slice.first);
}

/* ---- the switch ----------------------------------------------------------------------------- */

/* What all collectives say alike. */
static ExecCollective collective_of(const ExecTask *t, gconstpointer given, gpointer taken) {
    return (ExecCollective){.axis = (PlanAxis)t->op->axis,
                            .dtype = (PlanDtype)t->op->dtype,
                            .elements = dim(t, COLLECTIVE_ELEMENTS),
                            .given = given,
                            .taken = taken};
}

static bool reduce_scatter(const ExecTask *t, GError **error) {
    const ExecComm *comm = t->context->comm;
    ExecCollective call =
        collective_of(t, t->pointers[REDUCE_SCATTER_PACKED], t->pointers[REDUCE_SCATTER_SHARD]);
    double reduction = attr(t, COLLECTIVE_AVERAGE);
    if (reduction < 0) { /* a divisor, with its sign turned */
        return exec_comm_reduce_scatter_divided(comm, &call, -reduction, error);
    }
    call.reduction = (PlanReduction)reduction;
    return comm->reduce_scatter(comm->self, &call, error);
}

static bool all_reduce(const ExecTask *t, GError **error) {
    ExecCollective call = collective_of(t, NULL, t->pointers[ALL_REDUCE_BUCKET]);
    call.reduction = (PlanReduction)attr(t, COLLECTIVE_AVERAGE);
    return exec_comm_all_reduce(t->context->comm, t->context->plan, &call, error);
}

static bool collective(const ExecTask *t, GError **error) {
    const ExecComm *comm = t->context->comm;
    const Plan *plan = t->context->plan;
    ExecCollective call;
    switch ((PlanOpKind)t->op->kind) {
    case PLAN_OP_ALL_GATHER:
        call = collective_of(t, t->pointers[ALL_GATHER_SHARD], t->pointers[ALL_GATHER_GATHERED]);
        return comm->all_gather(comm->self, &call, error);
    case PLAN_OP_REDUCE_SCATTER:
        return reduce_scatter(t, error);
    case PLAN_OP_ALL_REDUCE:
        return all_reduce(t, error);
    case PLAN_OP_PASS_ON:
        call = collective_of(t, t->pointers[PASS_ON_GIVEN], t->pointers[PASS_ON_TAKEN]);
        return exec_comm_pass_on(comm, plan, &call, error);
    case PLAN_OP_ALL_TO_ALL:
        call = collective_of(t, t->pointers[ALL_TO_ALL_GIVEN], t->pointers[ALL_TO_ALL_TAKEN]);
        return exec_comm_all_to_all(comm, plan, &call, error);
    case PLAN_OP_BROADCAST:
        call = collective_of(t, NULL, t->pointers[BROADCAST_BUFFER]);
        return comm->broadcast(comm->self, &call, error);
    default:
        g_assert_not_reached();
    }
}

/* What a rank offers, the others gather when they take it; until then nothing is moved. */
static bool of_peers(const ExecTask *t, GError **error) {
    const ExecComm *comm = t->context->comm;
    unsigned taken = t->op->n_operands - 1; /* a swap's part, too */
    ExecCollective call;
    int64_t now_ns = 0;
    switch (t->op->kind) {
    case PLAN_OP_BARRIER:
        return comm->meet(comm->self, (PlanAxis)t->op->axis, &now_ns, error);
    case PLAN_OP_OFFER:
        return true;
    default:
        call = collective_of(t, t->pointers[PULL_GIVEN], t->pointers[taken]);
        return exec_comm_take_ahead(comm, t->context->plan, &call,
                                    (uint32_t)dim(t, PEER_COLLECTIVE_AHEAD), error);
    }
}

static bool talk(const ExecTask *t, GError **error) {
    const ExecComm *comm = t->context->comm;
    ExecTalk talk = talk_of(t);
    return comm->talk(comm->self, &talk, error);
}

static bool run(const ExecTask *t, GError **error) {
    if (exec_op_group((PlanOpKind)t->op->kind) != EXEC_GROUP_LAUNCH) {
        return exec_host_compute(t, error);
    }
    switch ((ExecLaunchOp)t->op->kind) {
    case PLAN_OP_BATCH:
        return exec_batch_fill(t, t->pointers[BATCH_X], t->pointers[BATCH_Y], error);
#define HOST_OP(id, ...) case PLAN_OP_##id:
#include "plan/op/ops.def"
        return exec_host_step(t, error);
    case PLAN_OP_TO_HOST:
        return to_host(t, error);
    case PLAN_OP_FROM_HOST:
        return from_host(t, error);
    case PLAN_OP_FILL_EMPTY:
        memset(t->pointers[FILL_EMPTY_Y], 0xff,
               dim(t, FILL_EMPTY_N) * plan_dtype_bytes(operand_dtype(t, FILL_EMPTY_Y)));
        return true;
    case PLAN_OP_INIT_NORMAL:
    case PLAN_OP_INIT_FILL:
        exec_first_values(t, t->pointers[INIT_NORMAL_Y], operand_dtype(t, INIT_NORMAL_Y));
        return true;
    case PLAN_OP_INIT_NIBBLES:
        first_nibbles(t);
        return true;
    case PLAN_OP_ALL_GATHER:
    case PLAN_OP_REDUCE_SCATTER:
    case PLAN_OP_ALL_REDUCE:
    case PLAN_OP_BROADCAST:
    case PLAN_OP_PASS_ON:
    case PLAN_OP_ALL_TO_ALL:
        return collective(t, error);
    case PLAN_OP_SEND:
    case PLAN_OP_RECEIVE:
    case PLAN_OP_EXCHANGE:
        return talk(t, error);
    case PLAN_OP_UNEVEN_ALL_TO_ALL:           /* exec_play_fits() refuses it */
#define TRACED_OP(id, ...) case PLAN_OP_##id: /* exec_host_run()'s */
#include "plan/op/ops.def"
        break;
    case PLAN_OP_BARRIER:
    case PLAN_OP_OFFER:
    case PLAN_OP_PULL:
    case PLAN_OP_SWAP:
        return of_peers(t, error);
    }
    g_assert_not_reached();
}

bool exec_host_knows(const ExecContext *context, const PlanOp *op, GError **error) {
    if (!exec_slots_are_bounded(context->role, op, error)) {
        return false;
    }
    if (exec_inputs_filled_by(context, op)) {
        return exec_inputs_fit(context, op, error);
    }
    if (plan_op_is_traced((PlanOpKind)op->kind)) {
        return exec_traced_knows(context, op, error);
    }
    if (op->kind == PLAN_OP_ATTENTION && plan_op_attrs(context->role, op)[ATTENTION_DROPOUT] > 0) {
        g_set_error_literal(error, EXEC_ERROR, EXEC_ERROR_INPUT,
                            "the host's attention kernel drops nothing; set attention = math (or "
                            "dropout = 0) in the network");
        return false;
    }
    return exec_batch_fits(context, op, error);
}

/* Some ops move or fill numbers, or hand them to MPI, as they are stored; the others compute in
 * fp32. */
static bool works_on_storage(PlanOpKind kind) {
    return plan_op_is_collective(kind) || kind == PLAN_OP_CAST || kind == PLAN_OP_COPY ||
           kind == PLAN_OP_FLATTEN || kind == PLAN_OP_PART || kind == PLAN_OP_GATHER_COPY_IN ||
           kind == PLAN_OP_GATHER_COPY_OUT || kind == PLAN_OP_REDUCE_COPY_IN ||
           kind == PLAN_OP_BUCKET_COPY_OUT || kind == PLAN_OP_FILL_EMPTY || plan_op_is_init(kind) ||
           kind == PLAN_OP_TO_HOST || kind == PLAN_OP_FROM_HOST || kind == PLAN_OP_FLOAT8_COPY_IN ||
           kind == PLAN_OP_FLOAT8_COPY_OUT;
}

static bool run_parts(const ExecTask *t, uint64_t runs, GError **error) {
    for (uint64_t i = 0; i < runs; i++) {
        ExecPartRun part;
        exec_part_run(t, i, &part);
        if (!exec_host_run(&part.task, error)) {
            return false;
        }
    }
    return true;
}

bool exec_host_run(const ExecTask *t, GError **error) {
    uint64_t runs = exec_part_runs(t->context->role, t->op);
    if (runs > 1) {
        return run_parts(t, runs, error);
    }
    if (exec_inputs_filled_by(t->context, t->op)) {
        return exec_inputs_fill(t, error);
    }
    if (plan_op_is_traced((PlanOpKind)t->op->kind)) {
        return exec_traced_run(t, error);
    }
    return works_on_storage((PlanOpKind)t->op->kind) ? run(t, error)
                                                     : exec_host_run_widened(t, run, error);
}
