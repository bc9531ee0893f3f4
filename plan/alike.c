#include "plan/alike.h"

static bool same_operand(const PlanRole *role, const PlanOperand *a, const PlanOperand *b) {
    if (a->elements != b->elements || a->offset_bytes != b->offset_bytes || a->rows != b->rows) {
        return false;
    }
    if (a->buffer == b->buffer || a->buffer == PLAN_NONE || b->buffer == PLAN_NONE) {
        return a->buffer == b->buffer;
    }
    const PlanBuffer *x = &role->buffers[a->buffer], *y = &role->buffers[b->buffer];
    return x->bytes == y->bytes && x->dtype == y->dtype;
}

/* Both of one kind. */
static bool is_like(const PlanRole *role, const PlanOp *a, const PlanOp *b, unsigned n_dims) {
    if (a->n_operands != b->n_operands || a->axis != b->axis || a->dtype != b->dtype) {
        return false;
    }
    const int64_t *x = plan_op_dims(role, a), *y = plan_op_dims(role, b);
    for (unsigned i = 0; i < n_dims; i++) {
        if (x[i] != y[i]) {
            return false;
        }
    }
    const PlanOperand *p = plan_op_operands(role, a), *q = plan_op_operands(role, b);
    for (uint32_t i = 0; i < a->n_operands; i++) {
        if (!same_operand(role, &p[i], &q[i])) {
            return false;
        }
    }
    return true;
}

const PlanOp *plan_alike_find(const PlanAlike *alike, const PlanRole *role, const PlanOp *op) {
    const PlanOp *const *ops = alike->of[op->kind].ops;
    unsigned n_dims = plan_op_info((PlanOpKind)op->kind)->n_dims;
    for (unsigned i = 0; i < G_N_ELEMENTS(alike->of[0].ops) && ops[i]; i++) {
        if (is_like(role, ops[i], op, n_dims)) {
            return ops[i];
        }
    }
    return NULL;
}

void plan_alike_note(PlanAlike *alike, const PlanOp *op) {
    unsigned *next = &alike->of[op->kind].next;
    alike->of[op->kind].ops[(*next)++ % G_N_ELEMENTS(alike->of[0].ops)] = op;
}
