#include "exec/host-adam.h"

#include "exec/error.h"

bool exec_host_adam_is_bounded(const PlanRole *role, const PlanOp *op, GError **error) {
    uint64_t n = (uint64_t)plan_op_dims(role, op)[0];
    for (uint32_t b = 0; b < role->n_buffers; b++) {
        if (n <= role->buffers[b].bytes) {
            return true;
        }
    }
    g_set_error_literal(error, EXEC_ERROR, EXEC_ERROR_INPUT,
                        "an optimizer's step on the host is larger than any tensor of the plan; "
                        "make the plan again");
    return false;
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

bool exec_host_adam(const ExecTask *t, GError **error) {
    size_t n = dim(t, 0);
    float *at[4];
    for (unsigned i = 0; i < G_N_ELEMENTS(at); i++) {
        at[i] = exec_slots_at(t->context->slots, (uint32_t)dim(t, 1) + i, n * sizeof(float), error);
        if (!at[i]) {
            return false;
        }
    }
    KernelAdam adam = exec_adam_of(t, t->step + 1);
    kernel_adam_f32(at[1], at[2], at[3], at[0], n, &adam);
    return true;
}
