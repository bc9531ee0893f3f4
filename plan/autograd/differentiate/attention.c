/* plan/autograd/differentiate/attention.c - backward of attention's kernels. */
#include "plan/autograd/backward.h"

/* A bias's gradient has rows padded to 16 numbers; the plan's lie close together, with as much room
 * behind them. */
static PlanTensor bias_gradient(const PlanBackward *b) {
    int64_t rows = dim(b, ATTENTION_BATCH) * dim(b, ATTENTION_HEADS) * dim(b, ATTENTION_SEQ),
            cols = dim(b, ATTENTION_SEQ);
    PlanTensor gradient = plan_run_new_tensor(b->run, (uint64_t)(rows * ((cols + 15) / 16 * 16)),
                                              (PlanDtype)input(b, ATTENTION_BIAS)->dtype, "dbias");
    gradient.elements = (uint64_t)(rows * cols);
    return gradient;
}

/* For a head that several query heads read, PyTorch makes one gradient each and sums them. A plan's
 * kernel writes the sum, in a buffer as large as all of them. */
static PlanTensor gradient_of_shown(const PlanBackward *b, unsigned i, const char *name) {
    const PlanGraphValue *v = input(b, i);
    PlanTensor gradient =
        plan_run_new_tensor(b->run, v->elements * MAX(v->shown, 1), (PlanDtype)v->dtype, name);
    gradient.elements = v->elements;
    return gradient;
}

void plan_attention_backward(const PlanBackward *b) {
    if (plan_attention_backward_qkv(b)) {
        return;
    }
    static const char *const names[] = {"dq", "dk", "dv"};
    for (unsigned i = 0; i < 3; i++) {
        b->dx[i] = gradient_of_shown(b, i, names[i]);
    }
    if (wanted(b, ATTENTION_BIAS)) {
        b->dx[ATTENTION_BIAS] = bias_gradient(b);
    }
    const PlanStrategy *s = b->run->strategy;
    bool is_ordered = s->deterministic != PLAN_DETERMINISTIC_NO;
    double ordered[] = {attrs(b)[ATTENTION_SCALE], attrs(b)[ATTENTION_DROPOUT],
                        attrs(b)[ATTENTION_ALIBI], s->deterministic == PLAN_DETERMINISTIC_YES};
    begin(b, is_ordered ? PLAN_OP_ATTENTION_BACKWARD_ORDERED : PLAN_OP_ATTENTION_BACKWARD, dims(b),
          is_ordered ? ordered : attrs(b));
    operand(b, dy(b, 0));
    for (unsigned i = 0; i < 6; i++) {
        operand(b, value(b, i));
    }
    for (unsigned i = 0; i < 4; i++) {
        operand(b, dx(b, i));
    }
    launch(b);
    for (unsigned i = 3; i-- > 0;) {
        drop_unwanted(b, i);
    }
}
