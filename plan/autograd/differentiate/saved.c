/* plan/autograd/differentiate/saved.c - what each op keeps for backward, in PyTorch's order. */
#include "plan/autograd/differentiate/saved.h"
#include "plan/autograd/float8/layer.h"
#include "plan/autograd/tensor.h"

bool plan_keeps_summands(const PlanGraph *graph, const PlanGraphOp *op) {
    if ((op->kind != PLAN_OP_ADD_RMSNORM && op->kind != PLAN_OP_ADD_LAYERNORM) ||
        graph->kernels.compiled_loss) {
        return false;
    }
    const PlanGraphValue *term = plan_graph_value_at(graph, plan_graph_ref(graph, op->values + 1));
    const PlanGraphValue *sum =
        plan_graph_value_at(graph, plan_graph_ref(graph, op->values + op->n_inputs));
    return plan_dtype_bytes((PlanDtype)term->dtype) < plan_dtype_bytes((PlanDtype)sum->dtype);
}

/* A compiler sums up again where that reads four numbers for each one or fewer
 * (torch/_functorch/partitioners.py, PyTorch 2.13: ban_recompute_reductions). */
bool plan_makes_column_again(const PlanGraph *graph, const PlanGraphOp *op) {
    return op->kind == PLAN_OP_DIVIDE_COLUMN && graph->kernels.in_parts &&
           plan_graph_dims_of(graph, op)[DIVIDE_COLUMN_COLS] <= 4;
}

typedef struct {
    uint8_t n, positions[PLAN_MAX_SLOTS];
} Saved;

/* A product's backward asks for a factor only to make the other's gradient. */
static bool is_product(uint32_t kind) {
    return plan_op_is_linear((PlanOpKind)kind) || kind == PLAN_OP_MUL ||
           kind == PLAN_OP_HEADS_MATMUL || kind == PLAN_OP_GROUPED_LINEAR ||
           kind == PLAN_OP_GROUPED_PARTS || kind == PLAN_OP_GROUPED_PRODUCT ||
           kind == PLAN_OP_MUL_ROW || kind == PLAN_OP_MUL_COLUMN;
}

static bool is_asked_for(const PlanGraph *graph, const PlanGraphOp *op, uint8_t position) {
    if (plan_graph_ref(graph, op->values + position) == PLAN_NONE) {
        return false;
    }
    uint32_t other = plan_graph_ref(graph, op->values + (position == 0));
    return !is_product(op->kind) || plan_graph_value_at(graph, other)->requires_grad;
}

/* A parameter lives anyhow, unlike a copy that autocast made of it. */
static bool is_kept(const PlanGraph *graph, const PlanGraphOp *op, uint8_t position) {
    uint32_t value = plan_graph_ref(graph, op->values + position);
    return is_asked_for(graph, op, position) &&
           plan_graph_value_at(graph, value)->parameter == PLAN_NONE;
}

/* By PlanOpKind and PlanGraphKind. Positions count an op's values: its inputs, then its outputs. */
static const Saved saved_of_kind[PLAN_N_GRAPH_KINDS] = {
    [PLAN_OP_EMBEDDING] = {1, {EMBEDDING_INDEX}},
    [PLAN_OP_LAYERNORM] = {5,
                           {LAYERNORM_B, LAYERNORM_X, LAYERNORM_W, LAYERNORM_MEAN, LAYERNORM_RSTD}},
    [PLAN_OP_LINEAR] = {2, {LINEAR_X, LINEAR_W}},
    [PLAN_OP_ATTENTION] = {8,
                           {ATTENTION_BIAS, ATTENTION_K, ATTENTION_Q, ATTENTION_V, ATTENTION_LSE,
                            ATTENTION_O, ATTENTION_OFFSET, ATTENTION_SEED}},
    [PLAN_OP_GELU_TANH] = {1, {GELU_TANH_X}},
    [PLAN_OP_GELU_ERF] = {1, {GELU_ERF_X}},
    [PLAN_OP_RELU] = {1, {RELU_Y}},
    [PLAN_OP_DROPOUT] = {1, {DROPOUT_MASK}},
    [PLAN_OP_LOG_SOFTMAX] = {1, {LOG_SOFTMAX_Y}},
    [PLAN_OP_NLL_LOSS] = {3, {NLL_LOSS_X, NLL_LOSS_TARGET, NLL_LOSS_TOTAL}},
    [PLAN_OP_RMSNORM] = {3, {RMSNORM_X, RMSNORM_W, RMSNORM_RSTD}},
    [PLAN_OP_LATENT_ATTENTION] = {7,
                                  {LATENT_ATTENTION_K, LATENT_ATTENTION_Q, LATENT_ATTENTION_V,
                                   LATENT_ATTENTION_LSE, LATENT_ATTENTION_O,
                                   LATENT_ATTENTION_OFFSET, LATENT_ATTENTION_SEED}},
    [PLAN_OP_NORM_COLUMNS] = {3, {NORM_COLUMNS_X, NORM_COLUMNS_W, NORM_COLUMNS_RSTD}},
    [PLAN_OP_SIGMOID] = {1, {SIGMOID_Y}},
    [PLAN_OP_SILU] = {1, {SILU_X}},
    [PLAN_OP_MUL] = {2, {MUL_B, MUL_A}},
    [PLAN_OP_TABLE_MUL] = {1, {TABLE_MUL_TABLE}},
    [PLAN_OP_BIAS] = {1, {BIAS_INDEX}},
    [PLAN_OP_HEADS_MATMUL] = {2, {HEADS_MATMUL_B, HEADS_MATMUL_A}},
    [PLAN_OP_SOFTMAX] = {1, {SOFTMAX_Y}},
    [PLAN_OP_MASKED_FILL] = {1, {MASKED_FILL_MASK}},
    [PLAN_OP_ROPE] = {2, {ROPE_COS, ROPE_SIN}},
    [PLAN_OP_TURN] = {1, {TURN_TURNS}},
    [PLAN_OP_SWIGLU] = {2, {SWIGLU_GATE, SWIGLU_UP}},
    [PLAN_OP_ADD_RMSNORM] = {2, {ADD_RMSNORM_SUM, ADD_RMSNORM_RSTD}},
    [PLAN_OP_ADD_LAYERNORM] = {3, {ADD_LAYERNORM_SUM, ADD_LAYERNORM_MEAN, ADD_LAYERNORM_RSTD}},
    [PLAN_OP_LINEAR_GELU] = {2, {LINEAR_GELU_X, LINEAR_GELU_BEFORE}},
    [PLAN_OP_CROSS_ENTROPY] = {4,
                               {CROSS_ENTROPY_LOGITS, CROSS_ENTROPY_TARGET, CROSS_ENTROPY_TOTAL,
                                CROSS_ENTROPY_LSE}},
    [PLAN_OP_COMPILED_LOSS] = {5,
                               {COMPILED_LOSS_MOST, COMPILED_LOSS_TOTAL, COMPILED_LOSS_LOG_SUM,
                                COMPILED_LOSS_LOGITS, COMPILED_LOSS_TARGET}},
    [PLAN_OP_CHUNKED_LOSS] = {2, {CHUNKED_LOSS_DX, CHUNKED_LOSS_DW}},
    [PLAN_OP_MUL_ROW] = {2, {MUL_ROW_ROW, MUL_ROW_X}},
    [PLAN_OP_MUL_COLUMN] = {2, {MUL_COLUMN_COLUMN, MUL_COLUMN_X}},
    [PLAN_OP_POWER] = {1, {POWER_X}},
    [PLAN_OP_SUM_COLUMNS] = {1, {SUM_COLUMNS_X}},
    [PLAN_OP_TANH] = {1, {TANH_Y}},
    [PLAN_OP_TABLE_MUL_COLUMNS] = {1, {TABLE_MUL_COLUMNS_TABLE}},
    [PLAN_OP_LINEAR_PARTS] = {2, {LINEAR_PARTS_X, LINEAR_PARTS_W}},
    [PLAN_OP_PICK_COLUMNS] = {2, {PICK_COLUMNS_INDEX, PICK_COLUMNS_X}},
    [PLAN_OP_DIVIDE_COLUMN] = {2, {DIVIDE_COLUMN_COLUMN, DIVIDE_COLUMN_X}},
    [PLAN_OP_GROUPED_LINEAR] = {3, {GROUPED_LINEAR_W, GROUPED_LINEAR_ENDS, GROUPED_LINEAR_X}},
    [PLAN_OP_GROUPED_PARTS] = {3, {GROUPED_PARTS_W, GROUPED_PARTS_ENDS, GROUPED_PARTS_X}},
    [PLAN_OP_GROUPED_PRODUCT] = {3, {GROUPED_PRODUCT_W, GROUPED_PRODUCT_ENDS, GROUPED_PRODUCT_X}},
    [PLAN_OP_CLAMP_COLUMNS] = {1, {CLAMP_COLUMNS_X}},
    [PLAN_OP_TABLE_MUL_PART] = {1, {TABLE_MUL_PART_TABLE}},
    [PLAN_OP_TOP_K] = {1, {TOP_K_INDEX}},
    [PLAN_OP_ROWS_OF] = {1, {ROWS_OF_INDEX}},
    [PLAN_OP_PLACE_ROWS] = {1, {PLACE_ROWS_INDEX}},
    [PLAN_OP_ADD_TO_ROWS] = {1, {ADD_TO_ROWS_INDEX}},
    [PLAN_GRAPH_DELAYED_LINEAR] = {3, {4, 5, 6}},
    [PLAN_GRAPH_SHARED_ROWS] = {1, {1}},
    [PLAN_GRAPH_SHARED_LOSS] = {3, {1, 4, 3}},
    [PLAN_GRAPH_SHARED_COMPILED_LOSS] = {3, {3, 5, 4}},
    [PLAN_GRAPH_RING_ATTENTION] = {7, {1, 0, 2, 4, 3, 6, 5}},
    [PLAN_GRAPH_LATENT_ROTATE] = {1, {1}},
};

/* What a float8 layer keeps: the weight's scale and, in a block that is computed again, its cast;
 * x, unless backward makes it again. Ranks that share the layer also keep the cast of x and its
 * scale. In MXFP8 a layer keeps x, or its cast (plan_mxfp8_keeps_cast()). */
static const Saved *saved_of_float8(const PlanGraph *graph, const PlanGraphOp *op) {
    static const Saved alone = {3, {0, 3, 4}}, alone_of_made = {2, {3, 4}},
                       shared = {5, {0, 3, 4, 5, 6}}, shared_of_made = {4, {3, 4, 5, 6}};
    if (graph->shared.tensor > 1) {
        return plan_float8_takes_own(graph, op) ? &shared : &shared_of_made;
    }
    bool is_made = plan_graph_float8_linear_of(graph, op)->maker >= 0;
    return is_made && graph->float8 != PLAN_FLOAT8_MXFP8 ? &alone_of_made : &alone;
}

static const Saved *saved_of(const PlanGraph *graph, const PlanGraphOp *op) {
    static const Saved nothing, row_first = {2, {0, 1}}, quotient = {1, {0}},
                                of_compiled_ring = {9, {1, 0, 2, 4, 3, 6, 5, 7, 8}};
    if ((PlanGraphKind)op->kind == PLAN_GRAPH_FLOAT8_LINEAR) {
        return saved_of_float8(graph, op);
    }
    if ((PlanGraphKind)op->kind == PLAN_GRAPH_RING_ATTENTION && plan_graph_is_compiled(graph)) {
        return &of_compiled_ring;
    }
    if (op->kind == PLAN_OP_SUM_COLUMNS &&
        plan_pytorch_is_after(graph->pytorch, PLAN_PYTORCH_2_0)) {
        return &nothing; /* a mean asked its input for its size alone, and kept it whole */
    }
    if (plan_makes_column_again(graph, op)) {
        return &quotient;
    }
    return op->kind == PLAN_OP_MUL_ROW && graph->weight_first ? &row_first
                                                              : &saved_of_kind[op->kind];
}

/* A checkpoint packs and unpacks parameters as it does all else; a program is given them. */
bool plan_saves_anything(const PlanGraph *graph, const PlanGraphOp *op) {
    const Saved *saved = saved_of(graph, op);
    bool is_given = plan_graph_is_in_program(graph, op->module);
    for (unsigned i = 0; i < saved->n; i++) {
        if ((is_given ? is_kept : is_asked_for)(graph, op, saved->positions[i])) {
            return true;
        }
    }
    return false;
}

unsigned plan_saved_values(const PlanGraph *graph, const PlanGraphOp *op, uint8_t *ret_positions) {
    const Saved *saved = saved_of(graph, op);
    unsigned n = 0;
    if (plan_keeps_summands(graph, op)) {
        ret_positions[n++] = 0;
        ret_positions[n++] = 1;
    }
    for (unsigned i = n ? 1 : 0; i < saved->n; i++) {
        uint8_t position = saved->positions[i];
        if (is_kept(graph, op, position)) {
            ret_positions[n++] = position;
        }
    }
    if (op->kind == PLAN_OP_POWER && graph->attrs.items[op->attrs] < 0) {
        ret_positions[0] = 1; /* of a reciprocal root, the result */
    }
    if (plan_op_is_linear((PlanOpKind)op->kind) && n == 2 &&
        plan_graph_ref(graph, op->values + 2) == PLAN_NONE) {
        ret_positions[0] = 1; /* mm lets go of the weight first, addmm of its input */
        ret_positions[1] = 0;
    }
    uint32_t first = plan_graph_ref(graph, op->values);
    bool is_ring = (PlanGraphKind)op->kind == PLAN_GRAPH_RING_ATTENTION;
    bool flash = (is_ring || (op->kind == PLAN_OP_ATTENTION && n < saved->n)) &&
                 plan_graph_value_at(graph, first)->dtype != PLAN_FP32;
    if (flash) { /* the flash kernel's random state goes in the other order */
        ret_positions[5] = is_ring ? 5 : 6;
        ret_positions[6] = is_ring ? 6 : 7;
    }
    return n;
}
