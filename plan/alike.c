#include "plan/alike.h"

/* Of what the first and the second op use. */
static bool same_operand(const PlanBuffer *first, const PlanOperand *a, const PlanBuffer *second,
                         const PlanOperand *b) {
    uint64_t differs =
        (a->elements ^ b->elements) | (a->offset_bytes ^ b->offset_bytes) | (a->rows ^ b->rows);
    if (a->buffer == PLAN_NONE || b->buffer == PLAN_NONE) {
        return !differs && a->buffer == b->buffer;
    }
    const PlanBuffer *x = &first[a->buffer], *y = &second[b->buffer];
    return !(differs | (x->bytes ^ y->bytes) | (uint64_t)(x->dtype ^ y->dtype));
}

static bool is_like(const PlanRole *r, const PlanOp *a, const PlanRole *s, const PlanOp *b) {
    if (a->kind != b->kind || a->n_operands != b->n_operands || a->axis != b->axis ||
        a->dtype != b->dtype) {
        return false;
    }
    const int64_t *x = plan_op_dims(r, a), *y = plan_op_dims(s, b);
    unsigned n_dims = plan_op_info((PlanOpKind)a->kind)->n_dims;
    for (unsigned i = 0; i < n_dims; i++) {
        if (x[i] != y[i]) {
            return false;
        }
    }
    const PlanBuffer *first = r->buffers, *second = s->buffers;
    const PlanOperand *p = plan_op_operands(r, a), *q = plan_op_operands(s, b);
    for (const PlanOperand *end = p + a->n_operands; p < end; p++, q++) {
        if (!same_operand(first, p, second, q)) {
            return false;
        }
    }
    return true;
}

/* What follows ops that are alike is alike, and what a role begins with. The op after one asked
 * about earlier was asked about earlier itself, for it stands before the next one or in a role
 * before. */
static PlanAlikeOp after(PlanAlikeOp at) {
    bool is_last = at.op + 1 == at.role->ops + at.role->n_ops;
    return is_last ? (PlanAlikeOp){0} : (PlanAlikeOp){at.role, at.op + 1};
}

static PlanAlikeOp find_of_kind(const PlanAlike *alike, const PlanRole *role, const PlanOp *op) {
    const PlanAlikeOp *ops = alike->of[op->kind].ops;
    for (unsigned i = 0; i < G_N_ELEMENTS(alike->of[0].ops) && ops[i].op; i++) {
        if (is_like(ops[i].role, ops[i].op, role, op)) {
            return ops[i];
        }
    }
    return (PlanAlikeOp){0};
}

const PlanOp *plan_alike_find(PlanAlike *alike, const PlanRole *role, const PlanOp *op) {
    if (op == role->ops) {
        alike->guess = alike->begins;
        alike->begins = (PlanAlikeOp){role, op};
    }
    PlanAlikeOp found = alike->guess;
    if (!found.op || !is_like(found.role, found.op, role, op)) {
        found = find_of_kind(alike, role, op);
    }
    if (found.op) { /* else it may have been put in between */
        alike->guess = after(found);
    }
    return found.op;
}

void plan_alike_note(PlanAlike *alike, const PlanRole *role, const PlanOp *op) {
    unsigned *next = &alike->of[op->kind].next;
    alike->of[op->kind].ops[(*next)++ % G_N_ELEMENTS(alike->of[0].ops)] = (PlanAlikeOp){role, op};
}
