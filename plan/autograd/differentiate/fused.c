/* plan/autograd/differentiate/fused.c - the backward of what a tuned stack runs as one kernel.
 *
 * These ops are no PyTorch ops; what they keep is what such kernels keep (see their rows in
 * ops.def). Elsewhere a fused network differentiates as an eager one.
 */
#include "plan/autograd/backward.h"
#include "plan/autograd/differentiate/saved.h"
#include "plan/autograd/node.h"
#include "plan/autograd/program.h"

/* The rotation turned back. */
void plan_rope_backward(const PlanBackward *b) {
    b->dx[ROPE_X] = like_input(b, ROPE_X, "dx");
    KERNEL(b, PLAN_OP_ROPE,
           DIMS([ROPE_TOKENS] = dim(b, ROPE_TOKENS), [ROPE_HEADS] = dim(b, ROPE_HEADS),
                [ROPE_DIM] = dim(b, ROPE_DIM), [ROPE_SEQ] = dim(b, ROPE_SEQ), [ROPE_BACK] = 1,
                [ROPE_STRIDE] = dim(b, ROPE_HEADS) * dim(b, ROPE_DIM)),
           NULL, dy(b, 0), value(b, ROPE_COS), value(b, ROPE_SIN), dx(b, ROPE_X));
}

/* Where the summands were kept and not their sum, PyTorch's compiled kernel adds them up as it
 * reads them. Here a kernel of its own does so first, into the tensor that the gradient will be
 * in. */
static void add_again(const PlanBackward *b, PlanTensor sum) {
    KERNEL(b, PLAN_OP_ADD, DIMS([ADD_N] = (int64_t)sum.elements, [ADD_NB] = (int64_t)sum.elements),
           NULL, value(b, ADD_RMSNORM_A), value(b, ADD_RMSNORM_R), tensor(b, sum));
}

/* Both summands have the same gradient, in one tensor: the norm's, and that of the sum itself. */
void plan_add_norm_backward(const PlanBackward *b) {
    bool centred = b->op->kind == PLAN_OP_ADD_LAYERNORM;
    bool has_bias = centred && value_at(b, ADD_LAYERNORM_C) != PLAN_NONE;
    b->dx[ADD_RMSNORM_A] = like_input(b, ADD_RMSNORM_A, "dx");
    b->dx[ADD_RMSNORM_R] = plan_run_ref(b->run, b->dx[ADD_RMSNORM_A]);
    b->dx[ADD_RMSNORM_W] = like_wanted(b, ADD_RMSNORM_W, "dw");
    if (has_bias) {
        b->dx[ADD_LAYERNORM_C] = like_wanted(b, ADD_LAYERNORM_C, "dc");
    }
    bool again = plan_keeps_summands(b->run->graph, b->op);
    if (again) {
        add_again(b, b->dx[ADD_RMSNORM_A]);
    }
    begin(b, centred ? PLAN_OP_ADD_LAYERNORM_BACKWARD : PLAN_OP_ADD_RMSNORM_BACKWARD, dims(b),
          NULL);
    operand(b, dy(b, 0));
    operand(b, dy(b, 1));
    if (again) {
        operand(b, dx(b, ADD_RMSNORM_A));
    } else {
        operand(b, value(b, centred ? ADD_LAYERNORM_SUM : ADD_RMSNORM_SUM));
    }
    operand(b, value(b, centred ? ADD_LAYERNORM_MEAN : ADD_RMSNORM_RSTD));
    if (centred) {
        operand(b, value(b, ADD_LAYERNORM_RSTD));
    }
    operand(b, value(b, ADD_RMSNORM_W));
    operand(b, dx(b, ADD_RMSNORM_A));
    operand(b, dx(b, ADD_RMSNORM_W));
    if (centred) {
        operand(b, dx(b, ADD_LAYERNORM_C));
    }
    launch(b);
    drop_unwanted(b, ADD_RMSNORM_A);
    drop_unwanted(b, ADD_RMSNORM_R);
}

/* Whether gradients of attention's q, k and v go, as they come, to one split of an array's rows. */
static bool comes_from_a_split(const PlanBackward *b) {
    const PlanNode *split = NULL;
    for (unsigned i = 0; i < 3; i++) {
        const PlanEdge *edge = plan_edge_to_kind(b->run, b->node, i, PLAN_GRAPH_HEADS);
        const PlanNode *view = edge ? &b->run->tape.nodes.items[edge->node] : NULL;
        PlanBackward heads = {.run = b->run};
        if (!view || view->n_dependencies > 1) {
            return false;
        }
        heads.op = plan_graph_op_at(b->run->graph, view->op);
        edge = plan_edge_to_kind(b->run, edge->node, 0, PLAN_GRAPH_SPLIT);
        const PlanNode *source = edge ? &b->run->tape.nodes.items[edge->node] : NULL;
        if (!source || dim(&heads, PLAN_GRAPH_HEADS_MODE) != PLAN_HEADS_AS_THEY_ARE ||
            edge->slot != i || source->n_dependencies != 3 || (split && split != source)) {
            return false;
        }
        split = source;
    }
    return true;
}

bool plan_attention_backward_qkv(const PlanBackward *b) {
    const int64_t *d = dims(b);
    int64_t row = (d[ATTENTION_HEADS] + 2 * d[ATTENTION_KV_HEADS]) * d[ATTENTION_HEAD_DIM];
    bool is_one = b->run->graph->kernels.style == PLAN_KERNELS_FUSED &&
                  value_at(b, ATTENTION_BIAS) == PLAN_NONE &&
                  d[ATTENTION_HEADS] == d[ATTENTION_KV_HEADS] && d[ATTENTION_Q_STRIDE] == row &&
                  d[ATTENTION_K_STRIDE] == row && d[ATTENTION_V_STRIDE] == row &&
                  comes_from_a_split(b);
    if (!is_one) {
        return false;
    }
    PlanTensor all =
        plan_run_new_tensor(b->run, (uint64_t)(d[ATTENTION_BATCH] * d[ATTENTION_SEQ] * row),
                            (PlanDtype)input(b, ATTENTION_Q)->dtype, "dqkv");
    begin(b, PLAN_OP_ATTENTION_BACKWARD_QKV, d, attrs(b));
    operand(b, dy(b, 0));
    for (unsigned i = 0; i < 6; i++) {
        if (i != 3) {
            operand(b, value(b, i));
        }
    }
    operand(b, tensor(b, all));
    launch(b);
    for (unsigned i = 0; i < 3; i++) {
        uint64_t columns = (uint64_t)(d[ATTENTION_HEADS] * d[ATTENTION_HEAD_DIM]);
        b->dx[i] = (PlanTensor){all.storage, i * columns, input(b, i)->elements};
        plan_run_ref(b->run, b->dx[i]);
    }
    plan_run_unref(b->run, all);
    return true;
}

static PlanTensor zeros_like(const PlanBackward *b, PlanTensor x) {
    int64_t n = (int64_t)x.elements;
    PlanTensor zeros = plan_run_new_tensor(
        b->run, x.elements, (PlanDtype)input(b, COMPILED_LOSS_LOGITS)->dtype, "zeros");
    KERNEL(b, PLAN_OP_FILL, &n, (double[]){0}, tensor(b, zeros));
    return zeros;
}

/* The training loop has the logits, or metrics read them later. */
static bool outlives_backward(const PlanGraph *graph) {
    bool is_held = graph->returned->len > 0 && graph->results_held != PLAN_RESULTS_DROPPED;
    return is_held || graph->n_train_steps < graph->steps.len;
}

/* In place of the logits, or in a second tensor of the same size. */
static PlanTensor gradient_of_logits(const PlanBackward *b, bool in_place) {
    return in_place
               ? plan_run_ref(b->run, plan_run_value(b->run, value_at(b, CROSS_ENTROPY_LOGITS)))
               : like_input(b, CROSS_ENTROPY_LOGITS, "dlogits");
}

void plan_cross_entropy_backward(const PlanBackward *b) {
    const PlanGraph *graph = b->run->graph;
    b->dx[CROSS_ENTROPY_LOGITS] =
        gradient_of_logits(b, graph->loss_in_place || !outlives_backward(graph));
    KERNEL(b, PLAN_OP_CROSS_ENTROPY_BACKWARD, dims(b), NULL, dy(b, 0),
           value(b, CROSS_ENTROPY_TARGET), value(b, CROSS_ENTROPY_TOTAL),
           value(b, CROSS_ENTROPY_LSE), value(b, CROSS_ENTROPY_LOGITS),
           dx(b, CROSS_ENTROPY_LOGITS));
}

/* A GPU's program makes logits of an odd number of words in 16 bits by a padded product
 * (torch/_inductor/fx_passes/pad_mm.py of PyTorch 2.13): what it calls logits are rows of a tensor
 * whose rows are longer, of another size than their gradient. */
static bool are_rows_of_longer(const PlanBackward *b) {
    bool is_odd = dim(b, COMPILED_LOSS_COLS) % 2 == 1;
    return is_odd && !b->run->graph->loss_apart && b->run->strategy->shape_padding == PLAN_YES &&
           plan_dtype_bytes((PlanDtype)input(b, COMPILED_LOSS_LOGITS)->dtype) == 2;
}

/* The gradient overwrites the logits, with three exceptions: a program may not overwrite its input;
 * logits that are rows of longer ones have another size; and logits that it returned beside the
 * loss outlive backward. In the last case autograd also calls backward with a gradient of those
 * logits, zeros, which the kernel adds (torch/_functorch/_aot_autograd/runtime_wrappers.py; PyTorch
 * 2.13). The program frees what forward saved before its caller frees that gradient. */
void plan_compiled_loss_backward(const PlanBackward *b) {
    const PlanGraph *graph = b->run->graph;
    bool apart = graph->loss_apart, outlives = outlives_backward(graph);
    PlanTensor zeros = PLAN_NO_TENSOR;
    if (outlives && !apart) {
        zeros = zeros_like(b, plan_run_value(b->run, value_at(b, COMPILED_LOSS_LOGITS)));
        plan_run_call_program(b->run, zeros);
    }
    b->dx[COMPILED_LOSS_LOGITS] =
        gradient_of_logits(b, !apart && !outlives && !are_rows_of_longer(b));
    KERNEL(b, PLAN_OP_COMPILED_LOSS_BACKWARD, dims(b), NULL, dy(b, 2), /* of the loss */
           value(b, COMPILED_LOSS_TARGET), value(b, COMPILED_LOSS_LOGITS),
           value(b, COMPILED_LOSS_MOST), value(b, COMPILED_LOSS_LOG_SUM),
           value(b, COMPILED_LOSS_TOTAL), tensor(b, zeros), dx(b, COMPILED_LOSS_LOGITS));
    plan_run_unref(b->run, zeros);
    plan_run_drop_saved(b->run, b->node);
}

/* Forward has made both gradients, of the unscaled mean; backward only scales them, in place. They
 * are also outputs of an autograd function, and receive no gradients themselves: PyTorch's engine
 * makes zeros as large for them, and frees them when the function has returned. Since 2.14 the
 * function turns that off (set_materialize_grads). Liger's has no output but the loss. */
void plan_chunked_loss_backward(const PlanBackward *b) {
    PlanTensor zeros[] = {PLAN_NO_TENSOR, PLAN_NO_TENSOR};
    unsigned n = wanted(b, CHUNKED_LOSS_W) ? 2 : 1;
    bool is_liger = attrs(b)[CHUNKED_LOSS_IN_PLACE] > 0;
    bool makes_zeros = !is_liger && !plan_strategy_is_after(b->run->strategy, PLAN_PYTORCH_CURRENT);
    for (unsigned i = 0; i < n; i++) {
        b->dx[i] = plan_run_ref(b->run, plan_run_value(b->run, value_at(b, CHUNKED_LOSS_DX + i)));
        zeros[i] = makes_zeros ? zeros_like(b, b->dx[i]) : PLAN_NO_TENSOR;
    }
    for (unsigned i = 0; i < n; i++) {
        KERNEL(b, PLAN_OP_SCALE_ALL, NULL, NULL, dy(b, 0), dx(b, i));
    }
    for (unsigned i = n; i-- > 0;) {
        plan_run_unref(b->run, zeros[i]);
    }
}
