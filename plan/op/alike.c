#include "plan/op/alike.h"

static bool same_buffer(const PlanBuffer *a, const PlanBuffer *b) {
    return a->bytes == b->bytes && a->dtype == b->dtype;
}

static bool same_part(const PlanRole *r, PlanRef a, const PlanRole *s, PlanRef b) {
    if (a == PLAN_NONE || b == PLAN_NONE || !(a & b & PLAN_PART)) {
        return a == b;
    }
    const PlanOperand *p = &r->parts[a - PLAN_PART], *q = &s->parts[b - PLAN_PART];
    return p->elements == q->elements && p->offset_bytes == q->offset_bytes && p->rows == q->rows &&
           same_buffer(&r->buffers[p->buffer], &s->buffers[q->buffer]);
}

/* Most are whole buffers. */
static bool same_operands(const PlanRole *r, const PlanRef *a, const PlanRole *s, const PlanRef *b,
                          unsigned n) {
    const PlanBuffer *first = r->buffers, *second = s->buffers;
    for (const PlanRef *end = a + n; a < end; a++, b++) {
        bool is_same =
            (*a | *b) & PLAN_PART ? same_part(r, *a, s, *b) : same_buffer(&first[*a], &second[*b]);
        if (!is_same) {
            return false;
        }
    }
    return true;
}

static bool is_like(const PlanAlike *alike, PlanAlikeOp known, const PlanRole *s, const PlanOp *b) {
    const PlanRole *r = known.role;
    const PlanOp *a = known.op;
    if (a->kind != b->kind || a->n_operands != b->n_operands || a->axis != b->axis ||
        a->dtype != b->dtype) {
        return false;
    }
    const int64_t *x = plan_op_dims(r, a), *y = plan_op_dims(s, b);
    const PlanOpInfo *info = plan_op_info((PlanOpKind)a->kind);
    unsigned free = alike->of_any_number ? info->dims_that_number : 0;
    for (unsigned i = 0; i < info->n_dims; i++) {
        if (x[i] != y[i] && !(free >> i & 1)) {
            return false;
        }
    }
    return same_operands(r, plan_op_operands(r, a), s, plan_op_operands(s, b), a->n_operands);
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
        if (is_like(alike, ops[i], role, op)) {
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
    if (!found.op || !is_like(alike, found, role, op)) {
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
