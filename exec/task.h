/* exec/task.h - an op of a plan on its way to a device's kernels, with access to its dims,
 * attributes and operands.
 *
 * When an op runs, the host may already have freed the buffers that it names. So pointers are
 * resolved when the op is issued, and travel with it.
 */
#pragma once

#include <math.h>

#include "exec/comm/comm.h"
#include "exec/files/data.h"
#include "exec/files/weights.h"
#include "exec/offload/slots.h"
#include "plan/mesh.h"
#include "plan/op/names.h"
#include "plan/plan.h"

/* With a scaled loss: whether the optimizer skips this step, because a gradient was not finite, and
 * how many steps it has skipped so far, this one included. */
typedef struct {
    bool skips;
    int32_t n_skipped;
} ExecStepping;

typedef struct {
    const Plan *plan;
    const PlanRole *role;
    const ExecComm *comm;
    uint64_t seed;
    const ExecWeights *weights; /* first values of parameters; NULL: random ones */
    const ExecData *data;       /* NULL: synthetic */
    ExecSlots *slots;           /* the host's memory */
    ExecStepping *stepping;     /* for the host's thread only; lanes read the copy in their task */
} ExecContext;

typedef struct {
    const ExecContext *context;
    const PlanOp *op;
    int32_t step;          /* -1 in construction */
    uint64_t pass;         /* that it belongs to, counted from 0 over all steps */
    gpointer *pointers;    /* one per operand; NULL where it is missing */
    ExecStepping stepping; /* when it was issued */
} ExecTask;

static inline const int64_t *dims(const ExecTask *t) {
    return plan_op_dims(t->context->role, t->op);
}

/* Dims, attributes and operands by the constants of plan/op/names.h: dim(t, LINEAR_K). */
static inline size_t dim(const ExecTask *t, PlanDim i) {
    return (size_t)dims(t)[i];
}

static inline double attr(const ExecTask *t, PlanAttr i) {
    return plan_op_attrs(t->context->role, t->op)[i];
}

static inline float *f32(const ExecTask *t, PlanSlotNumber i) {
    return t->pointers[i];
}

static inline uint8_t *bytes(const ExecTask *t, PlanSlotNumber i) {
    return t->pointers[i];
}

static inline const int64_t *i64(const ExecTask *t, PlanSlotNumber i) {
    return t->pointers[i];
}

static inline PlanOperand operand(const ExecTask *t, PlanSlotNumber i) {
    return plan_op_operand(t->context->role, t->op, i);
}

static inline PlanDtype operand_dtype(const ExecTask *t, PlanSlotNumber i) {
    return (PlanDtype)t->context->role->buffers[operand(t, i).buffer].dtype;
}

static inline uint32_t axis_rank(const ExecTask *t) {
    return plan_rank_on_axis(t->context->plan, t->context->comm->rank, (PlanAxis)t->op->axis);
}

/* Rows or columns of which each rank of the op's axis has as many as dim `each` says: the first one
 * of this rank, and how many all ranks have together. */
static inline int64_t first_of_rank(const ExecTask *t, PlanDim each) {
    return (int64_t)axis_rank(t) * dims(t)[each];
}

static inline int64_t all_of_ranks(const ExecTask *t, PlanDim each) {
    return dims(t)[each] * (int64_t)t->context->plan->axes[t->op->axis];
}

/* The batch that is played, of those of all ranks and passes so far. */
static inline uint64_t batch_of(const ExecTask *t) {
    const Plan *plan = t->context->plan;
    return t->pass * plan_n_batches(plan) + plan_batch_of_rank(plan, t->context->comm->rank);
}

/* What is dropped depends on the global batch, not on how it is dealt out to ranks and their
 * microbatches: the number, among all that the place has dropped or kept, of the op's first. */
static inline uint64_t first_to_drop(const ExecTask *t) {
    return (batch_of(t) * dim(t, DROPOUT_MICROBATCHES) + dim(t, DROPOUT_MICROBATCH)) *
           dim(t, DROPOUT_N);
}

/* Adam's 1 - beta^n for its n-th step. Steps that were skipped do not count. */
static inline double bias_correction(const ExecTask *t, double beta) {
    return 1 - pow(beta, t->step + 1 - t->stepping.n_skipped);
}

/* The transfer between pipeline stages that the op asks of the communicator. */
static inline ExecTalk talk_of(const ExecTask *t) {
    bool gives = t->op->kind != PLAN_OP_RECEIVE, takes = t->op->kind != PLAN_OP_SEND;
    const Plan *plan = t->context->plan;
    uint32_t place = plan_rank_on_axis(plan, t->context->comm->rank, PLAN_AXIS_PIPELINE);
    return (ExecTalk){.peer = (uint32_t)dim(t, STAGE_COLLECTIVE_PEER),
                      .behind = plan_is_behind(plan, place, dims(t)[STAGE_COLLECTIVE_PEER]),
                      .swaps = gives && takes,
                      .dtype = (PlanDtype)t->op->dtype,
                      .given = gives ? t->pointers[0] : NULL,
                      .taken = takes ? t->pointers[gives] : NULL,
                      .elements = dim(t, STAGE_COLLECTIVE_ELEMENTS)};
}

static inline unsigned list_length(const ExecTask *t) {
    return plan_op_list_length(plan_op_info((PlanOpKind)t->op->kind), t->op->n_operands);
}

/* The operand that holds the loss which the op makes: y, or else the first that it writes. */
static inline unsigned loss_operand(const ExecTask *t) {
    const PlanOpInfo *info = plan_op_info((PlanOpKind)t->op->kind);
    uint32_t n = t->op->n_operands, first = n;
    for (uint32_t i = 0; i < n; i++) {
        const PlanSlot *slot = &info->slots[plan_op_slot_of(info, n, i)];
        if ((slot->flags & PLAN_SLOT_WRITE) && t->pointers[i]) {
            if (g_str_equal(slot->name, "y")) {
                return i;
            }
            first = MIN(first, i);
        }
    }
    g_assert(first < n);
    return first;
}
