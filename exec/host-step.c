#include "exec/host-step.h"

#include "exec/error.h"

enum {
    ADAM_SLOTS = 4,
    MOMENTUM_SLOTS = 3,
    SGD_SLOTS = 2
};

unsigned exec_host_step_slots(const PlanRole *role, const PlanOp *op) {
    if (op->kind == PLAN_OP_HOST_ADAM) {
        return ADAM_SLOTS;
    }
    bool momentum = op->kind == PLAN_OP_HOST_SGD && plan_op_attrs(role, op)[1] != 0;
    return momentum ? MOMENTUM_SLOTS : op->kind == PLAN_OP_HOST_SGD ? SGD_SLOTS : 0;
}

bool exec_host_step_is_bounded(const PlanRole *role, const PlanOp *op, GError **error) {
    if (!exec_host_step_slots(role, op)) {
        return true;
    }
    const int64_t *dims = plan_op_dims(role, op);
    uint64_t n = (uint64_t)dims[0], offset = (uint64_t)dims[2];
    for (uint32_t b = 0; b < role->n_buffers; b++) {
        uint64_t bytes = role->buffers[b].bytes;
        if (n <= bytes && offset <= bytes - n) {
            return true;
        }
    }
    g_set_error_literal(error, EXEC_ERROR, EXEC_ERROR_INPUT,
                        "an optimizer's step on the host is larger than any tensor of the plan; "
                        "make the plan again");
    return false;
}

/* The op's part of each slot. */
static bool find_slots(const ExecTask *t, unsigned n_slots, float **ret_at, GError **error) {
    size_t n = dim(t, 0), offset = dim(t, 2);
    for (unsigned i = 0; i < n_slots; i++) {
        float *slot = exec_slots_at(t->context->slots, (uint32_t)dim(t, 1) + i,
                                    (offset + n) * sizeof(float), error);
        if (!slot) {
            return false;
        }
        ret_at[i] = slot + offset;
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
    return (KernelSgd){.lr = attr(t, 0),
                       .momentum = attr(t, 1),
                       .weight_decay = attr(t, 2),
                       .kind = KERNEL_SGD_PLAIN,
                       .step = t->step + 1};
}

bool exec_host_step(const ExecTask *t, GError **error) {
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
