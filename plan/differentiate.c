/* plan/differentiate.c - the backward of each op kind, as PyTorch's derivatives have it.
 *
 * One function per kind: it allocates the gradients in the order in which PyTorch's kernels do and
 * launches what makes them. plan_saved_values() says what each kind keeps for that.
 */
#include "plan/eager.h"

typedef struct {
    PlanRun *run;
    uint32_t node;
    const PlanGraphOp *op;
    const PlanTensor *dy;
    PlanTensor *dx;
} Backward;

static uint32_t value_at(const Backward *b, unsigned i) {
    return g_array_index(b->run->graph->value_refs, uint32_t, b->op->values + i);
}

static const PlanGraphValue *input(const Backward *b, unsigned i) {
    uint32_t value = value_at(b, i);
    return value == PLAN_NONE ? NULL : plan_graph_at(b->run->graph->values, PlanGraphValue, value);
}

static bool wanted(const Backward *b, unsigned i) {
    const PlanGraphValue *v = input(b, i);
    return v && v->requires_grad;
}

static int64_t dim(const Backward *b, unsigned i) {
    return g_array_index(b->run->graph->dims, int64_t, b->op->dims + i);
}

static const int64_t *dims(const Backward *b) {
    return plan_graph_at(b->run->graph->dims, int64_t, b->op->dims);
}

static const double *attrs(const Backward *b) {
    return plan_graph_at(b->run->graph->attrs, double, b->op->attrs);
}

/* A gradient with the shape of input i. */
static PlanTensor like_input(const Backward *b, unsigned i, const char *name) {
    const PlanGraphValue *v = input(b, i);
    return plan_run_new_tensor(b->run, v->elements, (PlanDtype)v->dtype, name);
}

static void begin(const Backward *b, PlanOpKind kind, const int64_t *op_dims,
                  const double *op_attrs) {
    plan_builder_begin_op(&b->run->builder, kind, PLAN_AXIS_NONE, op_dims, op_attrs);
}

static void operand(const Backward *b, PlanTensor tensor) {
    plan_run_operand(b->run, tensor);
}

/* Value i of the op, be it a parameter, an input or an output. */
static void value_operand(const Backward *b, unsigned i) {
    const PlanGraphValue *v = input(b, i);
    if (v && v->parameter != PLAN_NONE) {
        PlanOperand p = b->run->flavour->parameter(b->run, v->parameter);
        plan_builder_operand(&b->run->builder, p.buffer, p.offset_bytes, p.elements);
    } else {
        operand(b, v ? plan_run_value(b->run, value_at(b, i)) : PLAN_NO_TENSOR);
    }
}

static void launch(const Backward *b) {
    plan_builder_launch(&b->run->builder, 0);
}

/* dx of the first input from dy and one value the op kept. */
static void elementwise(const Backward *b, PlanOpKind kind, unsigned kept) {
    b->dx[0] = like_input(b, 0, "dx");
    begin(b, kind, dims(b), NULL);
    operand(b, b->dy[0]);
    value_operand(b, kept);
    operand(b, b->dx[0]);
    launch(b);
}

static void embedding(const Backward *b) {
    b->dx[0] = like_input(b, 0, "dw");
    begin(b, PLAN_OP_EMBEDDING_BACKWARD, dims(b), NULL);
    operand(b, b->dy[0]);
    value_operand(b, 1);
    operand(b, b->dx[0]);
    launch(b);
}

/* Both inputs get dy itself; one that was broadcast gets its sum. */
static void add(const Backward *b) {
    int64_t n = dim(b, 0), nb = dim(b, 1);
    if (wanted(b, 0)) {
        b->dx[0] = plan_run_ref(b->run, b->dy[0]);
    }
    if (!wanted(b, 1)) {
        return;
    }
    if (n == nb) {
        b->dx[1] = plan_run_ref(b->run, b->dy[0]);
        return;
    }
    b->dx[1] = like_input(b, 1, "dx_sum");
    begin(b, PLAN_OP_SUM_ROWS, (int64_t[]){n / nb, nb}, NULL);
    operand(b, b->dy[0]);
    operand(b, b->dx[1]);
    launch(b);
}

static void layernorm(const Backward *b) {
    b->dx[0] = like_input(b, 0, "dx");
    b->dx[1] = like_input(b, 1, "dw");
    b->dx[2] = like_input(b, 2, "db");
    begin(b, PLAN_OP_LAYERNORM_BACKWARD, dims(b), NULL);
    operand(b, b->dy[0]);
    value_operand(b, 0);
    value_operand(b, 4);
    value_operand(b, 5);
    value_operand(b, 1);
    for (unsigned i = 0; i < 3; i++) {
        operand(b, b->dx[i]);
    }
    launch(b);
}

static void linear_dx(const Backward *b) {
    if (!wanted(b, 0)) {
        return;
    }
    b->dx[0] = like_input(b, 0, "dx");
    begin(b, PLAN_OP_LINEAR_DX, dims(b), NULL);
    operand(b, b->dy[0]);
    value_operand(b, 1);
    operand(b, b->dx[0]);
    launch(b);
}

static void linear_dw(const Backward *b) {
    b->dx[1] = like_input(b, 1, "dw");
    begin(b, PLAN_OP_LINEAR_DW, dims(b), NULL);
    operand(b, b->dy[0]);
    value_operand(b, 0);
    operand(b, b->dx[1]);
    launch(b);
}

/* With a bias it is addmm, without mm: PyTorch makes their gradients in different orders. */
static void linear(const Backward *b) {
    if (!wanted(b, 2)) {
        linear_dw(b);
        linear_dx(b);
        return;
    }
    linear_dx(b);
    linear_dw(b);
    if (g_array_index(b->run->nodes, PlanNode, b->node).checkpoint != PLAN_NONE) {
        plan_run_drop_saved(b->run, b->node); /* unpacked for dw alone, it goes with it */
    }
    b->dx[2] = like_input(b, 2, "db");
    begin(b, PLAN_OP_SUM_ROWS, (int64_t[]){dim(b, 0), dim(b, 1)}, NULL);
    operand(b, b->dy[0]);
    operand(b, b->dx[2]);
    launch(b);
}

static void attention(const Backward *b) {
    static const char *const names[] = {"dq", "dk", "dv"};
    for (unsigned i = 0; i < 3; i++) {
        b->dx[i] = like_input(b, i, names[i]);
    }
    begin(b, PLAN_OP_ATTENTION_BACKWARD, dims(b), attrs(b));
    operand(b, b->dy[0]);
    for (unsigned i = 0; i < 5; i++) {
        value_operand(b, i);
    }
    for (unsigned i = 0; i < 3; i++) {
        operand(b, b->dx[i]);
    }
    launch(b);
}

static void split(const Backward *b) {
    b->dx[0] = like_input(b, 0, "dx");
    begin(b, PLAN_OP_CONCAT_COLUMNS, dims(b), NULL);
    for (unsigned i = 0; i < b->op->n_outputs; i++) {
        operand(b, b->dy[i]);
    }
    operand(b, b->dx[0]);
    launch(b);
}

static void mean(const Backward *b) {
    b->dx[0] = like_input(b, 0, "dx");
    begin(b, PLAN_OP_MEAN_BACKWARD, dims(b), NULL);
    operand(b, b->dy[0]);
    operand(b, b->dx[0]);
    launch(b);
}

static void nll_loss(const Backward *b) {
    b->dx[0] = like_input(b, 0, "dx");
    begin(b, PLAN_OP_NLL_LOSS_BACKWARD, dims(b), NULL);
    operand(b, b->dy[0]);
    value_operand(b, 1);
    value_operand(b, 3);
    operand(b, b->dx[0]);
    launch(b);
}

void plan_differentiate(PlanRun *run, uint32_t node, const PlanTensor *outputs,
                        PlanTensor *ret_inputs) {
    const PlanNode *n = &g_array_index(run->nodes, PlanNode, node);
    const PlanGraphOp *op = plan_graph_at(run->graph->ops, PlanGraphOp, n->op);
    Backward b = {run, node, op, outputs, ret_inputs};
    if (op->kind == PLAN_GRAPH_SPLIT) {
        split(&b);
        return;
    }
    switch ((PlanOpKind)op->kind) {
    case PLAN_OP_EMBEDDING:
        embedding(&b);
        return;
    case PLAN_OP_ADD:
        add(&b);
        return;
    case PLAN_OP_LAYERNORM:
        layernorm(&b);
        return;
    case PLAN_OP_LINEAR:
        linear(&b);
        return;
    case PLAN_OP_ATTENTION:
        attention(&b);
        return;
    case PLAN_OP_GELU_TANH:
        elementwise(&b, PLAN_OP_GELU_TANH_BACKWARD, 0);
        return;
    case PLAN_OP_GELU_ERF:
        elementwise(&b, PLAN_OP_GELU_ERF_BACKWARD, 0);
        return;
    case PLAN_OP_RELU:
        elementwise(&b, PLAN_OP_RELU_BACKWARD, 1);
        return;
    case PLAN_OP_MEAN:
        mean(&b);
        return;
    case PLAN_OP_LOG_SOFTMAX:
        elementwise(&b, PLAN_OP_LOG_SOFTMAX_BACKWARD, 1);
        return;
    case PLAN_OP_NLL_LOSS:
        nll_loss(&b);
        return;
    case PLAN_OP_BATCH:
    case PLAN_OP_ARANGE:
    case PLAN_OP_PART:
    case PLAN_OP_EMBEDDING_BACKWARD:
    case PLAN_OP_SUM_ROWS:
    case PLAN_OP_LAYERNORM_BACKWARD:
    case PLAN_OP_LINEAR_DX:
    case PLAN_OP_LINEAR_DW:
    case PLAN_OP_ATTENTION_BACKWARD:
    case PLAN_OP_CONCAT_COLUMNS:
    case PLAN_OP_GELU_TANH_BACKWARD:
    case PLAN_OP_GELU_ERF_BACKWARD:
    case PLAN_OP_RELU_BACKWARD:
    case PLAN_OP_MEAN_BACKWARD:
    case PLAN_OP_LOG_SOFTMAX_BACKWARD:
    case PLAN_OP_NLL_LOSS_BACKWARD:
    case PLAN_OP_INIT_NORMAL:
    case PLAN_OP_INIT_FILL:
    case PLAN_OP_FILL:
    case PLAN_OP_CAST:
    case PLAN_OP_FLATTEN:
    case PLAN_OP_COPY:
    case PLAN_OP_SCALE:
    case PLAN_OP_GATHER_COPY_IN:
    case PLAN_OP_GATHER_COPY_OUT:
    case PLAN_OP_REDUCE_COPY_IN:
    case PLAN_OP_BUCKET_COPY_IN:
    case PLAN_OP_BUCKET_COPY_OUT:
    case PLAN_OP_ADAM_DECAY:
    case PLAN_OP_ADAM_MOMENT:
    case PLAN_OP_ADAM_SQUARE_DECAY:
    case PLAN_OP_ADAM_SQUARE:
    case PLAN_OP_ADAM_SQRT:
    case PLAN_OP_ADAM_DIVIDE:
    case PLAN_OP_ADAM_CORRECT:
    case PLAN_OP_ADAM_EPS:
    case PLAN_OP_ADAM_UPDATE:
    case PLAN_OP_ADAM_FUSED:
    case PLAN_OP_GRADIENT_DECAY:
    case PLAN_OP_SGD_UPDATE:
    case PLAN_OP_SGD_FUSED:
    case PLAN_OP_MOMENTUM_START:
    case PLAN_OP_MOMENTUM_DECAY:
    case PLAN_OP_MOMENTUM_ADD:
    case PLAN_OP_MOMENTUM_FUSED:
    case PLAN_OP_NORMS:
    case PLAN_OP_NORM:
    case PLAN_OP_POWER:
    case PLAN_OP_ADD_NUMBER:
    case PLAN_OP_TIMES_NUMBER:
    case PLAN_OP_AT_MOST:
    case PLAN_OP_SCALE_ALL:
    case PLAN_OP_ZERO_ALL:
    case PLAN_OP_ACCUMULATE:
    case PLAN_OP_ALL_GATHER:
    case PLAN_OP_REDUCE_SCATTER:
    case PLAN_OP_ALL_REDUCE:
    case PLAN_N_OP_KINDS:
        break;
    }
    g_error("no network differentiates op kind %s", plan_op_info((PlanOpKind)op->kind)->name);
}

/* Positions count an op's values: its inputs, then its outputs. */
unsigned plan_saved_values(const PlanGraph *graph, const PlanGraphOp *op, uint8_t *ret_positions) {
    static const struct {
        uint8_t n, positions[PLAN_MAX_SLOTS];
    } saved[PLAN_N_OP_KINDS] = {
        [PLAN_OP_EMBEDDING] = {1, {1}},      [PLAN_OP_LAYERNORM] = {3, {0, 4, 5}},
        [PLAN_OP_LINEAR] = {1, {0}},         [PLAN_OP_ATTENTION] = {7, {0, 1, 2, 4, 3, 6, 5}},
        [PLAN_OP_GELU_TANH] = {1, {0}},      [PLAN_OP_GELU_ERF] = {1, {0}},
        [PLAN_OP_RELU] = {1, {1}},           [PLAN_OP_LOG_SOFTMAX] = {1, {1}},
        [PLAN_OP_NLL_LOSS] = {3, {0, 1, 3}},
    };
    if (op->kind == PLAN_GRAPH_SPLIT) {
        return 0;
    }
    for (unsigned i = 0; i < saved[op->kind].n; i++) {
        ret_positions[i] = saved[op->kind].positions[i];
    }
    if (op->kind == PLAN_OP_ATTENTION && graph->dtype != PLAN_FP32) {
        ret_positions[5] = 5; /* the flash kernel's random state goes in the other order */
        ret_positions[6] = 6;
    }
    return saved[op->kind].n;
}
