#include "plan/autograd/backward.h"

PlanTensor plan_cast_of(const PlanBackward *b, PlanTensor x, PlanDtype dtype, const char *name) {
    PlanTensor y = plan_run_new_tensor(b->run, x.elements, dtype, name);
    KERNEL(b, PLAN_OP_CAST, DIMS((int64_t)x.elements), NULL, tensor(b, x), tensor(b, y));
    return y;
}

/* A linear layer's weight is transposed by a node of its own, behind which its gradient is cast;
 * so are those of experts. */
static PlanDtype dtype_of_gradient(const PlanBackward *b, unsigned i) {
    PlanDtype own = (PlanDtype)input(b, i)->dtype;
    PlanEdge edge = b->run->tape.edges.items[b->run->tape.nodes.items[b->node].edges + i];
    bool is_linear =
        plan_op_is_linear((PlanOpKind)b->op->kind) || b->op->kind == PLAN_OP_GROUPED_LINEAR;
    bool is_turned = i == 1 && is_linear;
    return edge.slot == PLAN_NONE || edge.node != PLAN_NONE || is_turned ||
                   !b->run->flavour->gradient_dtype
               ? own
               : b->run->flavour->gradient_dtype(b->run, edge.slot, own);
}

void plan_give_own_dtype(const PlanBackward *b, unsigned i) {
    PlanTensor made = b->dx[i];
    if (made.storage == PLAN_NONE || !made.elements) {
        return;
    }
    PlanDtype dtype = dtype_of_gradient(b, i);
    if (plan_run_dtype_of(b->run, made) != dtype) {
        b->dx[i] = plan_cast_of(b, made, dtype, "dx");
        plan_run_unref(b->run, made);
    }
}
