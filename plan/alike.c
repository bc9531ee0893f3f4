#include "plan/alike.h"

static bool same_operand(const PlanRole *role, const PlanOperand *a, const PlanOperand *b) {
    if (a->buffer == PLAN_NONE || b->buffer == PLAN_NONE) {
        return a->buffer == b->buffer;
    }
    const PlanBuffer *x = &role->buffers[a->buffer], *y = &role->buffers[b->buffer];
    return a->elements == b->elements && a->offset_bytes == b->offset_bytes && a->rows == b->rows &&
           x->bytes == y->bytes && x->dtype == y->dtype;
}

/* Both of one kind. */
static bool is_like(const PlanRole *role, const PlanOp *a, const PlanOp *b) {
    unsigned n_dims = plan_op_info((PlanOpKind)a->kind)->n_dims;
    bool same = a->n_operands == b->n_operands && a->axis == b->axis && a->dtype == b->dtype;
    for (unsigned i = 0; same && i < n_dims; i++) {
        same = plan_op_dims(role, a)[i] == plan_op_dims(role, b)[i];
    }
    for (uint32_t i = 0; same && i < a->n_operands; i++) {
        same = same_operand(role, plan_op_operands(role, a) + i, plan_op_operands(role, b) + i);
    }
    return same;
}

const PlanOp *plan_alike_find(const PlanAlike *alike, const PlanRole *role, const PlanOp *op) {
    const PlanOp *const *ops = alike->of[op->kind].ops;
    for (unsigned i = 0; i < G_N_ELEMENTS(alike->of[0].ops) && ops[i]; i++) {
        if (is_like(role, ops[i], op)) {
            return ops[i];
        }
    }
    return NULL;
}

void plan_alike_note(PlanAlike *alike, const PlanOp *op) {
    unsigned *next = &alike->of[op->kind].next;
    alike->of[op->kind].ops[(*next)++ % G_N_ELEMENTS(alike->of[0].ops)] = op;
}
