/* plan/autograd/differentiate/differentiate.c - the backward of each op kind, as PyTorch's
 * derivatives have it.
 *
 * One function per kind, of which many are in the files beside this: it allocates the gradients in
 * the order in which PyTorch's kernels do and launches what makes them. saved.c says what each kind
 * keeps for that.
 */
#include "plan/autograd/backward.h"
#include "plan/autograd/float8/delayed.h"
#include "plan/autograd/float8/float8.h"
#include "plan/autograd/four-bit.h"
#include "plan/autograd/latent.h"
#include "plan/autograd/node.h"
#include "plan/autograd/shared/exchange.h"
#include "plan/autograd/shared/ring.h"
#include "plan/autograd/shared/shared.h"
#include "plan/autograd/traced.h"

/* The gradient as it comes. */
static void pass_on(const PlanBackward *b) {
    b->dx[COPY_X] = plan_run_ref(b->run, b->dy[0]);
}

/* dx of the first input from dy and one value the op kept, its input or its result. */
static void elementwise(const PlanBackward *b, PlanOpKind kind, unsigned kept) {
    b->dx[GELU_TANH_X] = in_dtype_of_result(b, GELU_TANH_X, "dx");
    KERNEL(b, kind, dims(b), NULL, dy(b, 0), value(b, kept), dx(b, GELU_TANH_X));
}

static void softmax(const PlanBackward *b) {
    elementwise(b, PLAN_OP_SOFTMAX_BACKWARD, 1);
}

static void log_softmax(const PlanBackward *b) {
    elementwise(b, PLAN_OP_LOG_SOFTMAX_BACKWARD, 1);
}

static void tanh_of(const PlanBackward *b) {
    elementwise(b, PLAN_OP_TANH_BACKWARD, 1);
}

static void relu(const PlanBackward *b) {
    elementwise(b, PLAN_OP_RELU_BACKWARD, 1);
}

/* Back into the dtype it was cast from. */
static void cast(const PlanBackward *b) {
    b->dx[CAST_X] = plan_cast_of(b, b->dy[0], (PlanDtype)input(b, CAST_X)->dtype, "dx");
}

static void dropout(const PlanBackward *b) {
    b->dx[DROPOUT_X] = like_input(b, DROPOUT_X, "dx");
    KERNEL(b, PLAN_OP_DROPOUT_BACKWARD, dims(b), attrs(b), dy(b, 0), value(b, DROPOUT_MASK),
           dx(b, DROPOUT_X));
}

/* dy's rows, added to those of dw that were looked up. */
static void add_up_rows(const PlanBackward *b, PlanOpKind kind, PlanTensor dy, PlanTensor dw) {
    KERNEL(b, kind, dims(b), NULL, tensor(b, dy), value(b, EMBEDDING_INDEX), tensor(b, dw));
}

static void bias(const PlanBackward *b) {
    b->dx[BIAS_W] = like_input(b, BIAS_W, "dw");
    add_up_rows(b, PLAN_OP_BIAS_BACKWARD, b->dy[0], b->dx[BIAS_W]);
}

/* Inductor adds up in fp32, in a tensor as large as the table, and rounds that. Its kernel widens
 * dy as it goes; here a copy is there meanwhile. */
static void embedding_in_fp32(const PlanBackward *b) {
    PlanTensor wide = plan_cast_of(b, b->dy[0], PLAN_FP32, "dy_wide");
    PlanTensor sum =
        plan_run_new_tensor(b->run, input(b, EMBEDDING_W)->elements, PLAN_FP32, "dw_wide");
    add_up_rows(b, PLAN_OP_EMBEDDING_BACKWARD, wide, sum);
    plan_run_unref(b->run, wide);
    b->dx[EMBEDDING_W] = plan_cast_of(b, sum, (PlanDtype)input(b, EMBEDDING_W)->dtype, "dw");
    plan_run_unref(b->run, sum);
}

static void embedding(const PlanBackward *b) {
    if (plan_strategy_is_one_program(b->run->strategy) &&
        input(b, EMBEDDING_W)->dtype != PLAN_FP32) {
        embedding_in_fp32(b);
        return;
    }
    b->dx[EMBEDDING_W] = like_input(b, EMBEDDING_W, "dw");
    add_up_rows(b, PLAN_OP_EMBEDDING_BACKWARD, b->dy[0], b->dx[EMBEDDING_W]);
}

/* Both inputs get dy itself; one that was broadcast gets its sum. */
static void add(const PlanBackward *b) {
    int64_t n = dim(b, ADD_N), nb = dim(b, ADD_NB);
    if (wanted(b, ADD_A)) {
        b->dx[ADD_A] = plan_run_ref(b->run, b->dy[0]);
    }
    if (!wanted(b, ADD_B)) {
        return;
    }
    if (n == nb) {
        b->dx[ADD_B] = plan_run_ref(b->run, b->dy[0]);
        return;
    }
    b->dx[ADD_B] = like_input(b, ADD_B, "dx_sum");
    KERNEL(b, PLAN_OP_SUM_ROWS, DIMS([SUM_ROWS_ROWS] = n / nb, [SUM_ROWS_COLS] = nb), NULL,
           dy(b, 0), dx(b, ADD_B));
}

static void layernorm(const PlanBackward *b) {
    b->dx[LAYERNORM_X] = like_wanted(b, LAYERNORM_X, "dx");
    b->dx[LAYERNORM_W] = like_wanted(b, LAYERNORM_W, "dw");
    b->dx[LAYERNORM_B] = like_wanted(b, LAYERNORM_B, "db");
    KERNEL(b, PLAN_OP_LAYERNORM_BACKWARD, dims(b), NULL, dy(b, 0), value(b, LAYERNORM_X),
           value(b, LAYERNORM_MEAN), value(b, LAYERNORM_RSTD), value(b, LAYERNORM_W),
           dx(b, LAYERNORM_X), dx(b, LAYERNORM_W), dx(b, LAYERNORM_B));
}

/* The gradients of a row's parts lie in one array already, side by side. */
static bool lies_joined(const PlanBackward *b) {
    bool joined = b->dy[0].storage != PLAN_NONE;
    uint64_t column = 0;
    for (unsigned i = 0; i < b->op->n_outputs; i++) {
        joined = joined && b->dy[i].storage == b->dy[0].storage && b->dy[i].offset == column;
        column += input(b, 1 + i)->elements / (uint64_t)dim(b, CONCAT_COLUMNS_ROWS);
    }
    return joined;
}

static void split(const PlanBackward *b) {
    if (lies_joined(b)) {
        b->dx[0] = plan_run_ref(b->run, b->dy[0]);
        b->dx[0].elements = input(b, 0)->elements;
        return;
    }
    b->dx[0] = like_input(b, 0, "dx");
    begin(b, PLAN_OP_CONCAT_COLUMNS, dims(b), NULL);
    for (unsigned i = 0; i < b->op->n_outputs; i++) {
        operand(b, dy(b, i));
    }
    operand(b, dx(b, 0));
    launch(b);
}

/* The first input's gradient is dy. The empty input's is an empty view of dy, which keeps dy alive;
 * in another dtype it is an empty cast, for which nothing is made. */
static void join_rest(const PlanBackward *b) {
    b->dx[JOIN_REST_X] = plan_run_ref(b->run, b->dy[0]);
    const PlanGraphValue *nothing = input(b, JOIN_REST_REST);
    if (nothing && nothing->dtype == plan_run_dtype_of(b->run, b->dy[0])) {
        b->dx[JOIN_REST_REST] = plan_run_ref(b->run, b->dy[0]);
        b->dx[JOIN_REST_REST].elements = 0;
    }
}

static void rest(const PlanBackward *b) {
    int64_t n = (int64_t)input(b, 0)->elements;
    b->dx[0] = like_input(b, 0, "dx");
    KERNEL(b, PLAN_OP_FILL, &n, (double[]){0}, dx(b, 0));
}

/* dy, so many columns, as those of rows that are zero elsewhere. */
static void put_columns(const PlanBackward *b, int64_t cols, int64_t to, int64_t width) {
    b->dx[COPY_COLUMNS_X] = like_input(b, COPY_COLUMNS_X, "dx");
    KERNEL(b, PLAN_OP_PUT_COLUMNS,
           DIMS([PUT_COLUMNS_ROWS] = dim(b, COPY_COLUMNS_ROWS), [PUT_COLUMNS_COLS] = cols,
                [PUT_COLUMNS_WIDTH] = cols, [PUT_COLUMNS_FROM] = 0, [PUT_COLUMNS_TO] = to,
                [PUT_COLUMNS_TOTAL] = width),
           NULL, dy(b, 0), dx(b, COPY_COLUMNS_X));
}

static void slice(const PlanBackward *b) {
    put_columns(b, (int64_t)b->dy[0].elements / dim(b, PLAN_GRAPH_SLICE_ROWS),
                dim(b, PLAN_GRAPH_SLICE_FROM), dim(b, PLAN_GRAPH_SLICE_WIDTH));
}

static void copy_columns(const PlanBackward *b) {
    put_columns(b, dim(b, COPY_COLUMNS_COLS), dim(b, COPY_COLUMNS_FROM),
                dim(b, COPY_COLUMNS_WIDTH));
}

static void mean(const PlanBackward *b) {
    b->dx[MEAN_X] = like_input(b, MEAN_X, "dx");
    KERNEL(b, PLAN_OP_MEAN_BACKWARD, dims(b), NULL, dy(b, 0), dx(b, MEAN_X));
}

static void nll_loss(const PlanBackward *b) {
    b->dx[NLL_LOSS_X] = like_input(b, NLL_LOSS_X, "dx");
    KERNEL(b, PLAN_OP_NLL_LOSS_BACKWARD, dims(b), NULL, dy(b, 0), value(b, NLL_LOSS_TARGET),
           value(b, NLL_LOSS_TOTAL), dx(b, NLL_LOSS_X));
}

static void rmsnorm(const PlanBackward *b) {
    b->dx[RMSNORM_X] = like_wanted(b, RMSNORM_X, "dx");
    b->dx[RMSNORM_W] = like_wanted(b, RMSNORM_W, "dw");
    KERNEL(b, PLAN_OP_RMSNORM_BACKWARD, dims(b), NULL, dy(b, 0), value(b, RMSNORM_X),
           value(b, RMSNORM_RSTD), value(b, RMSNORM_W), dx(b, RMSNORM_X), dx(b, RMSNORM_W));
}

/* PyTorch has a kernel for it; a device that has none makes it of five tensors. */
static void silu(const PlanBackward *b) {
    PlanTensor parts[5];
    bool in_parts = b->run->strategy->silu_backward == PLAN_SILU_OPS;
    for (unsigned i = 0; i < 5 && in_parts; i++) {
        parts[i] = like_input(b, SILU_X, "silu_part");
    }
    elementwise(b, PLAN_OP_SILU_BACKWARD, 0);
    for (unsigned i = 5; i-- > 0 && in_parts;) {
        plan_run_unref(b->run, parts[i]);
    }
}

/* The second factor's gradient is made first. */
static void mul(const PlanBackward *b) {
    for (unsigned i = 2; i-- > 0;) {
        if (wanted(b, i)) {
            b->dx[i] = in_dtype_of_result(b, i, i ? "db" : "da");
            KERNEL(b, PLAN_OP_MUL, dims(b), NULL, dy(b, 0), value(b, MUL_B - i), dx(b, i));
        }
    }
}

/* Where dy is a view of rows that have a sink's number more, its numbers alone. */
static void times_number(const PlanBackward *b) {
    int64_t n = dim(b, TIMES_NUMBER_N), rows = (int64_t)b->dy[0].elements - n;
    b->dx[TIMES_NUMBER_X] = like_input(b, TIMES_NUMBER_X, "dx");
    if (rows > 0) {
        KERNEL(b, PLAN_OP_TIMES_COLUMNS,
               DIMS([TIMES_COLUMNS_ROWS] = rows, [TIMES_COLUMNS_COLS] = n / rows,
                    [TIMES_COLUMNS_WIDTH] = n / rows + 1, [TIMES_COLUMNS_FROM] = 0),
               attrs(b), dy(b, 0), dx(b, TIMES_NUMBER_X));
        return;
    }
    KERNEL(b, PLAN_OP_TIMES_NUMBER, dims(b), attrs(b), dy(b, 0), dx(b, TIMES_NUMBER_X));
}

static void linear(const PlanBackward *b) {
    plan_linear_backward(b, PLAN_NO_TENSOR);
}

static void repeated(const PlanBackward *b) {
    plan_sum_sequences_backward(b, 0, dim(b, PLAN_GRAPH_REPEATED_TIMES),
                                dim(b, PLAN_GRAPH_REPEATED_ELEMENTS));
}

static void ring(const PlanBackward *b) {
    (plan_graph_is_compiled(b->run->graph) ? plan_ring_compiled_backward : plan_ring_backward)(b);
}

typedef void Backward(const PlanBackward *b);

/* By PlanOpKind and PlanGraphKind. NULL: no network differentiates it, or it makes no node. */
static Backward *const backward_of[PLAN_N_GRAPH_KINDS] = {
    [PLAN_OP_EMBEDDING] = embedding,
    [PLAN_OP_BIAS] = bias,
    [PLAN_OP_CAST] = cast,
    [PLAN_OP_DROPOUT] = dropout,
    [PLAN_OP_RMSNORM] = rmsnorm,
    [PLAN_OP_SILU] = silu,
    [PLAN_OP_MUL] = mul,
    [PLAN_OP_TIMES_NUMBER] = times_number,
    [PLAN_OP_ADD_NUMBER] = pass_on,
    [PLAN_OP_POWER] = plan_power_backward,
    [PLAN_OP_MUL_ROW] = plan_mul_broadcast_backward,
    [PLAN_OP_MUL_COLUMN] = plan_mul_broadcast_backward,
    [PLAN_OP_SUM_COLUMNS] = plan_sum_columns_backward,
    [PLAN_OP_JOIN_REST] = join_rest,
    [PLAN_OP_COPY] = pass_on,
    [PLAN_OP_COPY_COLUMNS] = copy_columns,
    [PLAN_OP_NEGATE_HALF] = plan_negate_half_backward,
    [PLAN_OP_JOIN_HALVES] = plan_join_halves_backward,
    [PLAN_OP_TABLE_MUL] = plan_table_mul_backward,
    [PLAN_OP_NEGATE_COLUMNS] = plan_negate_columns_backward,
    [PLAN_OP_JOIN_COLUMNS] = plan_join_columns_backward,
    [PLAN_OP_TABLE_MUL_COLUMNS] = plan_table_mul_columns_backward,
    [PLAN_OP_TABLE_MUL_PART] = plan_table_mul_part_backward,
    [PLAN_OP_SUB] = plan_sub_backward,
    [PLAN_OP_REPEAT_HEADS] = plan_sum_heads_backward,
    [PLAN_OP_HEADS_COPY] = plan_heads_copy_backward,
    [PLAN_OP_HEADS_MATMUL] = plan_heads_matmul_backward,
    [PLAN_OP_SOFTMAX] = softmax,
    [PLAN_OP_MASKED_FILL] = plan_masked_fill_backward,
    [PLAN_OP_JOIN_SINKS] = plan_join_sinks_backward,
    [PLAN_OP_SUB_COLUMN] = plan_sub_column_backward,
    [PLAN_OP_BIAS_ADD] = plan_bias_add_backward,
    [PLAN_OP_ADD] = add,
    [PLAN_OP_LAYERNORM] = layernorm,
    [PLAN_OP_LINEAR] = linear,
    [PLAN_OP_LINEAR_PARTS] = linear,
    [PLAN_OP_ATTENTION] = plan_attention_backward,
    [PLAN_OP_GELU_TANH] = plan_gelu_backward,
    [PLAN_OP_GELU_ERF] = plan_gelu_backward,
    [PLAN_OP_TANH] = tanh_of,
    [PLAN_OP_RELU] = relu,
    [PLAN_OP_MEAN] = mean,
    [PLAN_OP_LOG_SOFTMAX] = log_softmax,
    [PLAN_OP_NLL_LOSS] = nll_loss,
    [PLAN_OP_PICK_COLUMNS] = plan_pick_columns_backward,
    [PLAN_OP_TOTAL_COLUMNS] = plan_total_columns_backward,
    [PLAN_OP_DIVIDE_COLUMN] = plan_divide_column_backward,
    [PLAN_OP_TOP_K] = plan_top_k_backward,
    [PLAN_OP_SUM_EACH] = plan_sum_each_backward,
    [PLAN_OP_GROUPED_LINEAR] = plan_grouped_linear_backward,
    [PLAN_OP_GROUPED_PARTS] = plan_grouped_linear_backward,
    [PLAN_OP_GROUPED_PRODUCT] = plan_grouped_product_backward,
    [PLAN_OP_CLAMP_COLUMNS] = plan_clamp_columns_backward,
    [PLAN_OP_ROWS_OF] = plan_rows_of_backward,
    [PLAN_OP_PLACE_ROWS] = plan_place_rows_backward,
    [PLAN_OP_ADD_TO_ROWS] = plan_add_to_rows_backward,
    [PLAN_OP_ADD_SCALED] = plan_add_scaled_backward,
    [PLAN_OP_ROPE] = plan_rope_backward,
    [PLAN_OP_TURN] = plan_turn_backward,
    [PLAN_OP_SWIGLU] = plan_swiglu_backward,
    [PLAN_OP_ADD_RMSNORM] = plan_add_norm_backward,
    [PLAN_OP_ADD_LAYERNORM] = plan_add_norm_backward,
    [PLAN_OP_LINEAR_GELU] = plan_linear_gelu_backward,
    [PLAN_OP_CROSS_ENTROPY] = plan_cross_entropy_backward,
    [PLAN_OP_COMPILED_LOSS] = plan_compiled_loss_backward,
    [PLAN_OP_CHUNKED_LOSS] = plan_chunked_loss_backward,
#define LATENT_OP(id, ...) [PLAN_OP_##id] = plan_latent_backward,
#include "plan/op/ops.def"
    [PLAN_GRAPH_SPLIT] = split,
    [PLAN_GRAPH_SLICE] = slice,
    [PLAN_GRAPH_REST] = rest,
    [PLAN_GRAPH_HALF] = plan_half_backward,
    [PLAN_GRAPH_COLUMNS] = plan_columns_backward,
    [PLAN_GRAPH_HEADS] = plan_heads_view_backward,
    [PLAN_GRAPH_REPEATED] = repeated,
    [PLAN_GRAPH_SHOWN] = plan_sum_heads_backward,
    [PLAN_GRAPH_RESHAPED] = pass_on,
    [PLAN_GRAPH_SHARED_AGAIN] = plan_shared_backward,
    [PLAN_GRAPH_SHARED_TAKEN] = plan_shared_backward,
    [PLAN_GRAPH_SHARED_READ] = plan_shared_backward,
    [PLAN_GRAPH_SHARED_GATHER] = plan_shared_backward,
    [PLAN_GRAPH_SHARED_SCATTER] = plan_shared_backward,
    [PLAN_GRAPH_SHARED_SUM] = plan_shared_backward,
    [PLAN_GRAPH_SHARED_OWN] = plan_shared_backward,
    [PLAN_GRAPH_SHARED_WHOLE] = plan_shared_backward,
    [PLAN_GRAPH_SHARED_ROWS] = plan_shared_backward,
    [PLAN_GRAPH_SHARED_GATHER_FLOAT8] = plan_shared_backward,
    [PLAN_GRAPH_SHARED_LOSS] = plan_shared_backward,
    [PLAN_GRAPH_SHARED_COMPILED_LOSS] = plan_shared_backward,
    [PLAN_GRAPH_SHARED_SCATTER_FLOAT8] = plan_float8_gather_gradient,
    [PLAN_GRAPH_FLOAT8_LINEAR] = plan_float8_backward,
    [PLAN_GRAPH_DELAYED_LINEAR] = plan_delayed_backward,
    [PLAN_GRAPH_FOUR_BIT_LINEAR] = plan_four_bit_backward,
    [PLAN_GRAPH_RING_ATTENTION] = ring,
    [PLAN_GRAPH_RESULT] = pass_on,
    [PLAN_GRAPH_RING_ROWS] = pass_on,
    [PLAN_GRAPH_EXCHANGE_SEND] = plan_exchange_backward,
    [PLAN_GRAPH_LATENT_ROTATE] = plan_latent_view_backward,
    [PLAN_GRAPH_LATENT_SPLIT] = plan_latent_view_backward,
    [PLAN_GRAPH_TRACED] = plan_traced_backward,
};

void plan_differentiate(PlanRun *run, uint32_t node, const PlanTensor *outputs,
                        PlanTensor *ret_inputs) {
    const PlanNode *n = &run->tape.nodes.items[node];
    const PlanGraphOp *op = plan_graph_op_at(run->graph, n->op);
    PlanBackward b = {run, node, op, outputs, ret_inputs};
    bool is_kernel = op->kind < PLAN_N_OP_KINDS;
    if (!backward_of[op->kind]) {
        g_error("no network differentiates op kind %u (%s)", op->kind,
                is_kernel ? plan_op_info((PlanOpKind)op->kind)->name : "a view");
    }
    backward_of[op->kind](&b);
    if (is_kernel && plan_run_unpacks(run, node)) {
        plan_run_drop_saved(run, node); /* its function has returned; the engine casts */
    }
    bool is_cast = is_kernel || (PlanGraphKind)op->kind == PLAN_GRAPH_SHARED_ROWS;
    for (unsigned i = 0; i < op->n_inputs && is_cast; i++) {
        plan_give_own_dtype(&b, i);
    }
}
