/* plan/autograd/differentiate/fused.c - the backward of what a tuned stack runs as one kernel.
 *
 * These ops are no PyTorch ops; what they keep is what such kernels keep (see their rows in
 * ops.def). Elsewhere a fused network differentiates as an eager one.
 */
#include "plan/autograd/backward.h"
#include "plan/autograd/float8/float8.h"

/* The rotation turned back. */
void plan_rope_backward(const PlanBackward *b) {
    b->dx[0] = like_input(b, 0, "dx");
    begin(b, PLAN_OP_ROPE,
          (int64_t[]){dim(b, 0), dim(b, 1), dim(b, 2), dim(b, 3), 1, dim(b, 1) * dim(b, 2)}, NULL);
    operand(b, b->dy[0]);
    value_operand(b, 1);
    value_operand(b, 2);
    operand(b, b->dx[0]);
    launch(b);
}

/* Not a part of what a layer made for gate and up at once. */
static bool is_alone(const PlanBackward *b, unsigned i) {
    const PlanGraphValue *base = plan_graph_value_at(b->run->graph, input(b, i)->base);
    return base->elements == input(b, i)->elements;
}

/* Of a checkpointed block a compiler makes the hidden layer again in the same kernel, so that both
 * gradients and it are there at once. Elsewhere nothing but dgate is made of up, which it then
 * writes over: Inductor does so with what a single op of a kernel reads, and nobody later
 * (torch/_inductor/scheduler.py, decide_inplace_update). */
void plan_swiglu_backward(const PlanBackward *b) {
    if (b->dy[PLAN_SWIGLU_GIVEN_GATE].storage != PLAN_NONE) {
        b->dx[0] = plan_run_ref(b->run, b->dy[PLAN_SWIGLU_GIVEN_GATE]);
        b->dx[1] = plan_run_ref(b->run, b->dy[PLAN_SWIGLU_GIVEN_UP]);
        return;
    }
    const PlanGraph *graph = b->run->graph;
    bool again = plan_graph_is_in_program(graph, b->op->module) && !graph->float8 &&
                 b->run->tape.nodes.items[b->node].checkpoint != PLAN_NONE;
    PlanTensor hidden = again ? like_input(b, 0, "hidden") : PLAN_NO_TENSOR;
    bool over_up = plan_graph_is_compiled(graph) && !again && !graph->float8 && is_alone(b, 1);
    b->dx[0] = over_up ? plan_run_ref(b->run, plan_run_value(b->run, value_at(b, 1)))
                       : like_input(b, 0, "dgate");
    b->dx[1] = like_input(b, 1, "dup");
    begin(b, PLAN_OP_SWIGLU_BACKWARD, dims(b), NULL);
    operand(b, b->dy[0]);
    value_operand(b, 0);
    value_operand(b, 1);
    operand(b, b->dx[0]);
    operand(b, b->dx[1]);
    launch(b);
    plan_run_unref(b->run, hidden);
}

/* Of summands that are kept the kernel adds up what it reads; here a kernel of its own does, where
 * the gradient will be. */
static void add_again(const PlanBackward *b, PlanTensor sum) {
    begin(b, PLAN_OP_ADD, (int64_t[]){(int64_t)sum.elements, (int64_t)sum.elements}, NULL);
    value_operand(b, 0);
    value_operand(b, 1);
    operand(b, sum);
    launch(b);
}

/* Both summands have the same gradient, in one tensor: the norm's, and that of the sum itself. */
void plan_add_norm_backward(const PlanBackward *b) {
    bool centred = b->op->kind == PLAN_OP_ADD_LAYERNORM;
    unsigned sum = centred ? 4 : 3;
    bool has_bias = centred && value_at(b, 3) != PLAN_NONE;
    b->dx[0] = like_input(b, 0, "dx");
    b->dx[1] = plan_run_ref(b->run, b->dx[0]);
    b->dx[2] = like_input(b, 2, "dw");
    if (has_bias) {
        b->dx[3] = like_input(b, 3, "dc");
    }
    bool again = plan_keeps_summands(b->run->graph, b->op);
    if (again) {
        add_again(b, b->dx[0]);
    }
    begin(b, centred ? PLAN_OP_ADD_LAYERNORM_BACKWARD : PLAN_OP_ADD_RMSNORM_BACKWARD, dims(b),
          NULL);
    operand(b, b->dy[0]);
    operand(b, b->dy[1]);
    if (again) {
        operand(b, b->dx[0]);
    } else {
        value_operand(b, sum);
    }
    value_operand(b, sum + 2);
    if (centred) {
        value_operand(b, sum + 3);
    }
    value_operand(b, 2);
    operand(b, b->dx[0]);
    operand(b, b->dx[2]);
    if (centred) {
        operand(b, b->dx[3]);
    }
    launch(b);
}

void plan_linear_dw_db_backward(const PlanBackward *b) {
    b->dx[1] = like_input(b, 1, "dw");
    b->dx[2] = like_input(b, 2, "db");
    begin(b, PLAN_OP_LINEAR_DW_DB, dims(b), NULL);
    operand(b, b->dy[0]);
    value_operand(b, 0);
    operand(b, b->dx[1]);
    operand(b, b->dx[2]);
    launch(b);
}

/* What a linear layer with GELU at its end is given: the gradient of its result; or, through GELU
 * already, that of what went into it, and its bias's. */
enum {
    GIVEN_RESULT,
    GIVEN_BEFORE,
    GIVEN_BIAS
};

/* First through GELU, from what went into it, then through the product. */
void plan_linear_gelu_backward(const PlanBackward *b) {
    int64_t n = dim(b, 0) * dim(b, 1);
    PlanBackward product = *b;
    if (b->dy[GIVEN_BEFORE].storage != PLAN_NONE) {
        product.dy = &b->dy[GIVEN_BEFORE];
        plan_linear_backward(&product, b->dy[GIVEN_BIAS]);
        return;
    }
    PlanTensor before =
        plan_run_new_tensor(b->run, (uint64_t)n, (PlanDtype)input(b, 0)->dtype, "dx_gelu");
    begin(b, attrs(b)[0] > 0 ? PLAN_OP_GELU_ERF_BACKWARD : PLAN_OP_GELU_TANH_BACKWARD, &n, NULL);
    operand(b, b->dy[0]);
    value_operand(b, 4);
    operand(b, before);
    launch(b);
    product.dy = &before;
    plan_linear_backward(&product, PLAN_NO_TENSOR);
    plan_run_unref(b->run, before);
}

/* What made input i, if that is an op of this kind, and the edge to it. */
static PlanNode *made_by(const PlanBackward *b, const PlanNode *node, unsigned i, unsigned kind,
                         PlanEdge **ret_edge) {
    PlanEdge *edge = &b->run->tape.edges.items[node->edges + i];
    PlanNode *source = edge->node == PLAN_NONE ? NULL : &b->run->tape.nodes.items[edge->node];
    bool is_op = source && source->op != PLAN_NONE;
    *ret_edge = edge;
    return is_op && plan_graph_op_at(b->run->graph, source->op)->kind == kind ? source : NULL;
}

/* GELU's backward ends the product that makes its gradient, as its forward ended one (cuBLASLt's
 * DGELU, which knows tanh alone): its array of dy is never there. What else would read GELU's
 * result, or an identity at a unit's entrance between the two, keeps them apart. */
bool plan_linear_dx_through_gelu(const PlanBackward *b) {
    PlanRun *run = b->run;
    PlanEdge *edge;
    PlanNode *node = made_by(b, &run->tape.nodes.items[b->node], 0, PLAN_OP_LINEAR_GELU, &edge);
    if (!node || edge->slot != GIVEN_RESULT || node->n_dependencies > 1 ||
        run->tape.slots.items[node->slots + GIVEN_RESULT].storage != PLAN_NONE) {
        return false;
    }
    PlanBackward gelu = {
        .run = run, .node = edge->node, .op = plan_graph_op_at(run->graph, node->op)};
    if (attrs(&gelu)[0] > 0) {
        return false;
    }
    PlanTensor db = PLAN_NO_TENSOR;
    b->dx[0] = like_input(b, 0, "dx_gelu");
    if (wanted(&gelu, 2)) {
        db = like_input(&gelu, 2, "db");
    }
    begin(b, PLAN_OP_LINEAR_DX_GELU, dims(b), NULL);
    operand(b, b->dy[0]);
    value_operand(b, 1);
    value_operand(&gelu, 4);
    operand(b, b->dx[0]);
    operand(b, db);
    launch(b);
    run->tape.slots.items[node->slots + GIVEN_BIAS] = db;
    edge->slot = GIVEN_BEFORE;
    return true;
}

/* Whether gradients of attention's q, k and v go, as they come, to one split of an array's rows. */
static bool comes_from_a_split(const PlanBackward *b) {
    const PlanNode *split = NULL;
    for (unsigned i = 0; i < 3; i++) {
        PlanEdge *edge;
        const PlanNode *view =
            made_by(b, &b->run->tape.nodes.items[b->node], i, PLAN_GRAPH_HEADS, &edge);
        PlanBackward heads = {.run = b->run};
        if (!view || view->n_dependencies > 1) {
            return false;
        }
        heads.op = plan_graph_op_at(b->run->graph, view->op);
        const PlanNode *source = made_by(b, view, 0, PLAN_GRAPH_SPLIT, &edge);
        if (!source || dim(&heads, 4) != PLAN_HEADS_AS_THEY_ARE || edge->slot != i ||
            source->n_dependencies != 3 || (split && split != source)) {
            return false;
        }
        split = source;
    }
    return true;
}

bool plan_attention_backward_qkv(const PlanBackward *b) {
    const int64_t *d = dims(b);
    int64_t row = (d[1] + 2 * d[2]) * d[4];
    bool is_one = b->run->graph->kernels.style == PLAN_KERNELS_FUSED &&
                  value_at(b, 3) == PLAN_NONE && d[1] == d[2] && d[5] == row && d[6] == row &&
                  d[10] == row && comes_from_a_split(b);
    if (!is_one) {
        return false;
    }
    PlanTensor all = plan_run_new_tensor(b->run, (uint64_t)(d[0] * d[3] * row),
                                         (PlanDtype)input(b, 0)->dtype, "dqkv");
    begin(b, PLAN_OP_ATTENTION_BACKWARD_QKV, d, attrs(b));
    operand(b, b->dy[0]);
    for (unsigned i = 0; i < 6; i++) {
        if (i != 3) {
            value_operand(b, i);
        }
    }
    operand(b, all);
    launch(b);
    for (unsigned i = 0; i < 3; i++) {
        uint64_t columns = (uint64_t)(d[1] * d[4]);
        b->dx[i] = (PlanTensor){all.storage, i * columns, input(b, i)->elements};
        plan_run_ref(b->run, b->dx[i]);
    }
    plan_run_unref(b->run, all);
    return true;
}

static PlanTensor zeros_like(const PlanBackward *b, PlanTensor x) {
    int64_t n = (int64_t)x.elements;
    PlanTensor zeros =
        plan_run_new_tensor(b->run, x.elements, (PlanDtype)input(b, 0)->dtype, "zeros");
    begin(b, PLAN_OP_FILL, &n, (double[]){0});
    operand(b, zeros);
    launch(b);
    return zeros;
}

/* The training loop has the logits, or metrics read them later. */
static bool outlives_backward(const PlanGraph *graph) {
    bool is_held = graph->returned->len > 0 && graph->results_held != PLAN_RESULTS_DROPPED;
    return is_held || graph->n_train_steps < graph->steps->len;
}

/* In place of the logits, or in a second tensor of the same size. */
static PlanTensor gradient_of_logits(const PlanBackward *b, bool in_place) {
    return in_place ? plan_run_ref(b->run, plan_run_value(b->run, value_at(b, 0)))
                    : like_input(b, 0, "dlogits");
}

void plan_cross_entropy_backward(const PlanBackward *b) {
    const PlanGraph *graph = b->run->graph;
    b->dx[0] = gradient_of_logits(b, graph->loss_in_place || !outlives_backward(graph));
    begin(b, PLAN_OP_CROSS_ENTROPY_BACKWARD, dims(b), NULL);
    operand(b, b->dy[0]);
    value_operand(b, 1);
    value_operand(b, 3);
    value_operand(b, 4);
    value_operand(b, 0);
    operand(b, b->dx[0]);
    launch(b);
}

/* The gradient overwrites the logits, with two exceptions: a program may not overwrite its input;
 * and logits that it returned beside the loss outlive backward. In the second case autograd also
 * calls backward with a gradient of those logits, zeros, which the kernel adds
 * (torch/_functorch/_aot_autograd/runtime_wrappers.py; PyTorch 2.13). The program frees what
 * forward saved before its caller frees that gradient. */
void plan_compiled_loss_backward(const PlanBackward *b) {
    const PlanGraph *graph = b->run->graph;
    bool apart = graph->loss_apart, outlives = outlives_backward(graph);
    PlanTensor zeros = PLAN_NO_TENSOR;
    if (outlives && !apart) {
        zeros = zeros_like(b, plan_run_value(b->run, value_at(b, 0)));
        plan_run_call_program(b->run, zeros);
    }
    b->dx[0] = gradient_of_logits(b, !apart && !outlives);
    begin(b, PLAN_OP_COMPILED_LOSS_BACKWARD, dims(b), NULL);
    operand(b, b->dy[2]); /* of the loss */
    value_operand(b, 1);
    value_operand(b, 0);
    value_operand(b, 2);
    value_operand(b, 3);
    value_operand(b, 5);
    operand(b, zeros);
    operand(b, b->dx[0]);
    launch(b);
    plan_run_unref(b->run, zeros);
    plan_run_drop_saved(b->run, b->node);
}

/* Forward has made both gradients, of the unscaled mean; backward only scales them, in place. They
 * are also outputs of an autograd function, and receive no gradients themselves: PyTorch's engine
 * makes zeros as large for them, and frees them when the function has returned. Since 2.14 the
 * function turns that off (set_materialize_grads). Liger's has no output but the loss. */
void plan_chunked_loss_backward(const PlanBackward *b) {
    PlanTensor zeros[] = {PLAN_NO_TENSOR, PLAN_NO_TENSOR};
    unsigned n = wanted(b, 1) ? 2 : 1;
    bool is_liger = attrs(b)[0] > 0;
    bool makes_zeros = !is_liger && !plan_strategy_is_after(b->run->strategy, PLAN_PYTORCH_CURRENT);
    for (unsigned i = 0; i < n; i++) {
        b->dx[i] = plan_run_ref(b->run, plan_run_value(b->run, value_at(b, 4 + i)));
        zeros[i] = makes_zeros ? zeros_like(b, b->dx[i]) : PLAN_NO_TENSOR;
    }
    for (unsigned i = 0; i < n; i++) {
        begin(b, PLAN_OP_SCALE_ALL, NULL, NULL);
        operand(b, b->dy[0]);
        operand(b, b->dx[i]);
        launch(b);
    }
    for (unsigned i = n; i-- > 0;) {
        plan_run_unref(b->run, zeros[i]);
    }
}
