#include "exec/host-step.h"

#include <math.h>
#include <string.h>

#include "exec/convert.h"
#include "exec/error.h"
#include "exec/first-values.h"
#include "kernels/host/elementwise.h"
#include "kernels/host/reduce.h"

enum {
    ADAM_SLOTS = 4,
    MOMENTUM_SLOTS = 3,
    SGD_SLOTS = 2
};

static bool is_on_gradients(const PlanOp *op) {
    return op->kind == PLAN_OP_HOST_ADD || op->kind == PLAN_OP_HOST_ZERO ||
           op->kind == PLAN_OP_HOST_ROUND || op->kind == PLAN_OP_HOST_NORM ||
           op->kind == PLAN_OP_HOST_POWER || op->kind == PLAN_OP_HOST_CLIP ||
           op->kind == PLAN_OP_HOST_ALL_REDUCE;
}

unsigned exec_host_step_slots(const PlanRole *role, const PlanOp *op) {
    if (op->kind == PLAN_OP_HOST_ADAM) {
        return ADAM_SLOTS;
    }
    if (op->kind == PLAN_OP_HOST_SGD) {
        return plan_op_attrs(role, op)[1] != 0 ? MOMENTUM_SLOTS : SGD_SLOTS;
    }
    return is_on_gradients(op);
}

/* Where in its slot the op begins. */
static uint64_t offset_of(const PlanRole *role, const PlanOp *op) {
    bool from_start = op->kind == PLAN_OP_HOST_ADD || op->kind == PLAN_OP_HOST_ROUND ||
                      op->kind == PLAN_OP_HOST_POWER || op->kind == PLAN_OP_HOST_ALL_REDUCE;
    return from_start ? 0 : (uint64_t)plan_op_dims(role, op)[2];
}

bool exec_host_step_is_bounded(const PlanRole *role, const PlanOp *op, GError **error) {
    const int64_t *dims = plan_op_dims(role, op);
    bool inits = plan_op_is_host_init((PlanOpKind)op->kind);
    if (!inits && !exec_host_step_slots(role, op)) {
        return true;
    }
    uint64_t n = (uint64_t)dims[inits], offset = inits ? 0 : offset_of(role, op);
    if (op->kind == PLAN_OP_HOST_NORM) {
        n = MAX(n, (uint64_t)dims[4]);
    }
    for (uint32_t b = 0; b < role->n_buffers; b++) {
        uint64_t bytes = role->buffers[b].bytes;
        if (n <= bytes && offset <= bytes - n) {
            return true;
        }
    }
    g_set_error_literal(error, EXEC_ERROR, EXEC_ERROR_INPUT,
                        "what the host works on is larger than any tensor of the plan; make the "
                        "plan again");
    return false;
}

/* n numbers of a slot, from offset on; NULL with error. */
static float *find_slot(const ExecTask *t, size_t slot, size_t offset, size_t n, GError **error) {
    float *start =
        exec_slots_at(t->context->slots, (uint32_t)slot, (offset + n) * sizeof(float), error);
    return start ? start + offset : NULL;
}

/* The op's part of each of its slots. */
static bool find_slots(const ExecTask *t, unsigned n_slots, float **ret_at, GError **error) {
    size_t offset = offset_of(t->context->role, t->op);
    for (unsigned i = 0; i < n_slots; i++) {
        ret_at[i] = find_slot(t, dim(t, 1) + i, offset, dim(t, 0), error);
        if (!ret_at[i]) {
            return false;
        }
    }
    return true;
}

KernelAdam exec_adam_of(const ExecTask *t, int64_t step) {
    return (KernelAdam){.lr = attr(t, 0),
                        .beta1 = attr(t, 1),
                        .beta2 = attr(t, 2),
                        .eps = attr(t, 3),
                        .weight_decay = attr(t, 4),
                        .decay = attr(t, 5) != 0 ? KERNEL_ADAM_DECOUPLED : KERNEL_ADAM_COUPLED,
                        .step = step};
}

static KernelSgd sgd_of(const ExecTask *t) {
    return (KernelSgd){
        .lr = attr(t, 0), .momentum = attr(t, 1), .weight_decay = attr(t, 2), .step = t->step + 1};
}

static void round_to(float *x, PlanDtype dtype, size_t n) {
    for (size_t i = 0; i < n; i++) {
        uint16_t rounded;
        exec_convert(&rounded, dtype, &x[i], PLAN_FP32, 1);
        exec_convert(&x[i], PLAN_FP32, &rounded, dtype, 1);
    }
}

/* What the op has in another slot: what is added, where the norm goes, or the norm; NULL with
 * error, or where it has none. */
static float *find_other(const ExecTask *t, GError **error) {
    switch ((PlanOpKind)t->op->kind) {
    case PLAN_OP_HOST_ADD:
        return find_slot(t, dim(t, 2), 0, dim(t, 0), error);
    case PLAN_OP_HOST_NORM:
        return find_slot(t, dim(t, 3), dim(t, 4), 1, error);
    case PLAN_OP_HOST_CLIP:
        return find_slot(t, dim(t, 3), 0, 1, error);
    default:
        return NULL;
    }
}

/* The other slot is asked for twice: one that grows moves, and both might be the same. */
static bool work_on_gradients(const ExecTask *t, GError **error) {
    const ExecComm *comm = t->context->comm;
    PlanOpKind kind = (PlanOpKind)t->op->kind;
    size_t n = dim(t, 0);
    GError *fault = NULL;
    float *at = NULL, *other = find_other(t, &fault);
    if (fault || !find_slots(t, 1, &at, &fault)) {
        g_propagate_error(error, fault);
        return false;
    }
    other = other ? find_other(t, NULL) : NULL;
    if (kind == PLAN_OP_HOST_ADD) {
        kernel_add_inplace_f32(at, other, n);
    } else if (kind == PLAN_OP_HOST_ZERO) {
        memset(at, 0, n * sizeof *at);
    } else if (kind == PLAN_OP_HOST_ROUND) {
        round_to(at, dim(t, 2) == 7 ? PLAN_BF16 : PLAN_FP16, n);
    } else if (kind == PLAN_OP_HOST_NORM) {
        kernel_norm_f32(other, at, n);
    } else if (kind == PLAN_OP_HOST_POWER) {
        for (size_t i = 0; i < n; i++) {
            at[i] = (float)pow((double)at[i] + attr(t, 0), attr(t, 1));
        }
    } else if (kind == PLAN_OP_HOST_CLIP) {
        double ratio = attr(t, 0) / ((double)*other + attr(t, 1));
        kernel_mul_scalar_inplace_f32(at, (float)fmin(1, ratio), n);
    } else {
        return comm->all_reduce(comm->self, (PlanAxis)t->op->axis, at, n, PLAN_FP32, false, error);
    }
    return true;
}

bool exec_host_step(const ExecTask *t, GError **error) {
    if (plan_op_is_host_init((PlanOpKind)t->op->kind)) {
        return exec_first_values_on_host(t, error);
    }
    if (is_on_gradients(t->op)) {
        return work_on_gradients(t, error);
    }
    unsigned n_slots = exec_host_step_slots(t->context->role, t->op);
    float *at[ADAM_SLOTS];
    if (!find_slots(t, n_slots, at, error)) {
        return false;
    }
    if (t->op->kind == PLAN_OP_HOST_ADAM) {
        KernelAdam adam = exec_adam_of(t, t->step + 1);
        kernel_adam_f32(at[1], at[2], at[3], at[0], dim(t, 0), &adam);
    } else {
        KernelSgd sgd = sgd_of(t);
        kernel_sgd_f32(at[1], n_slots == MOMENTUM_SLOTS ? at[2] : NULL, at[0], dim(t, 0), &sgd);
    }
    return true;
}
