/* plan/autograd/differentiate/differentiate.c - the backward of each op kind, as PyTorch's
 * derivatives have it.
 *
 * One function per kind: it allocates the gradients in the order in which PyTorch's kernels do and
 * launches what makes them. saved.c says what each kind keeps for that.
 */
#include "plan/autograd/backward.h"
#include "plan/autograd/float8/float8.h"
#include "plan/autograd/latent.h"
#include "plan/autograd/shared/async.h"
#include "plan/autograd/shared/exchange.h"
#include "plan/autograd/shared/ring.h"
#include "plan/autograd/shared/shared.h"
#include "plan/autograd/traced.h"

/* dx of the first input from dy and one value the op kept. */
static void elementwise(const PlanBackward *b, PlanOpKind kind, unsigned kept) {
    b->dx[0] = in_dtype_of_result(b, 0, "dx");
    begin(b, kind, dims(b), NULL);
    operand(b, b->dy[0]);
    value_operand(b, kept);
    operand(b, b->dx[0]);
    launch(b);
}

static PlanTensor cast_of(const PlanBackward *b, PlanTensor x, PlanDtype dtype, const char *name) {
    PlanTensor y = plan_run_new_tensor(b->run, x.elements, dtype, name);
    begin(b, PLAN_OP_CAST, (int64_t[]){(int64_t)x.elements}, NULL);
    operand(b, x);
    operand(b, y);
    launch(b);
    return y;
}

/* Back into the dtype it was cast from. */
static void cast(const PlanBackward *b) {
    b->dx[0] = cast_of(b, b->dy[0], (PlanDtype)input(b, 0)->dtype, "dx");
}

static void dropout(const PlanBackward *b) {
    b->dx[0] = like_input(b, 0, "dx");
    begin(b, PLAN_OP_DROPOUT_BACKWARD, dims(b), attrs(b));
    operand(b, b->dy[0]);
    value_operand(b, 2);
    operand(b, b->dx[0]);
    launch(b);
}

/* dy's rows, added to those of dw that were looked up. */
static void add_up_rows(const PlanBackward *b, PlanOpKind kind, PlanTensor dy, PlanTensor dw) {
    begin(b, kind, dims(b), NULL);
    operand(b, dy);
    value_operand(b, 1);
    operand(b, dw);
    launch(b);
}

static void embedding(const PlanBackward *b, PlanOpKind kind) {
    b->dx[0] = like_input(b, 0, "dw");
    add_up_rows(b, kind, b->dy[0], b->dx[0]);
}

/* Inductor adds up in fp32, in a tensor as large as the table, and rounds that. Its kernel widens
 * dy as it goes; here a copy is there meanwhile. */
static void embedding_in_fp32(const PlanBackward *b) {
    PlanTensor wide = cast_of(b, b->dy[0], PLAN_FP32, "dy_wide");
    PlanTensor sum = plan_run_new_tensor(b->run, input(b, 0)->elements, PLAN_FP32, "dw_wide");
    add_up_rows(b, PLAN_OP_EMBEDDING_BACKWARD, wide, sum);
    plan_run_unref(b->run, wide);
    b->dx[0] = cast_of(b, sum, (PlanDtype)input(b, 0)->dtype, "dw");
    plan_run_unref(b->run, sum);
}

/* Both inputs get dy itself; one that was broadcast gets its sum. */
static void add(const PlanBackward *b) {
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

static void layernorm(const PlanBackward *b) {
    b->dx[0] = like_wanted(b, 0, "dx");
    b->dx[1] = like_wanted(b, 1, "dw");
    b->dx[2] = like_wanted(b, 2, "db");
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

static void linear_dx(const PlanBackward *b) {
    if (!wanted(b, 0) || plan_linear_dx_through_gelu(b)) {
        return;
    }
    b->dx[0] = plan_async_take_dx(b);
    if (b->dx[0].storage != PLAN_NONE) {
        return;
    }
    b->dx[0] = like_input(b, 0, "dx");
    begin(b, PLAN_OP_LINEAR_DX, dims(b), NULL);
    operand(b, b->dy[0]);
    value_operand(b, 1);
    operand(b, b->dx[0]);
    launch(b);
}

static void linear_dw(const PlanBackward *b) {
    if (!wanted(b, 1)) {
        return;
    }
    b->dx[1] = like_input(b, 1, "dw");
    begin(b, PLAN_OP_LINEAR_DW, dims(b), NULL);
    operand(b, b->dy[0]);
    value_operand(b, 0);
    operand(b, b->dx[1]);
    launch(b);
}

static void linear_db(const PlanBackward *b) {
    if (!wanted(b, 2)) {
        return;
    }
    b->dx[2] = like_input(b, 2, "db");
    begin(b, PLAN_OP_SUM_ROWS, (int64_t[]){dim(b, 0), dim(b, 1)}, NULL);
    operand(b, b->dy[0]);
    operand(b, b->dx[2]);
    launch(b);
}

/* With a bias it is addmm, without mm: PyTorch makes their gradients in different orders. A tuned
 * stack makes those of weight and bias in one kernel. */
void plan_linear_backward(const PlanBackward *b, PlanTensor db) {
    bool has_bias = value_at(b, 2) != PLAN_NONE, is_made = db.storage != PLAN_NONE;
    bool is_one = has_bias && !is_made && b->run->graph->fused;
    if (!has_bias) {
        linear_dw(b);
        linear_dx(b);
        return;
    }
    linear_dx(b);
    if (is_one) {
        plan_linear_dw_db_backward(b);
    } else {
        linear_dw(b);
    }
    if (b->run->tape.nodes.items[b->node].checkpoint != PLAN_NONE) {
        plan_run_drop_saved(b->run, b->node); /* unpacked for dw alone, it goes with it */
    }
    if (is_made) {
        b->dx[2] = plan_run_ref(b->run, db);
    } else if (!is_one) {
        linear_db(b);
    }
}

/* A bias's gradient has rows padded to 16 numbers; the plan's lie close together, with as much room
 * behind them. */
static PlanTensor bias_gradient(const PlanBackward *b) {
    int64_t rows = dim(b, 0) * dim(b, 1) * dim(b, 3), cols = dim(b, 3);
    PlanTensor gradient = plan_run_new_tensor(b->run, (uint64_t)(rows * ((cols + 15) / 16 * 16)),
                                              (PlanDtype)input(b, 3)->dtype, "dbias");
    gradient.elements = (uint64_t)(rows * cols);
    return gradient;
}

/* Of a head that is shown for several PyTorch makes all their gradients, and then the sum: a plan's
 * kernel makes the sum, with as much room behind it, and what adds them up finds one. */
static PlanTensor gradient_of_shown(const PlanBackward *b, unsigned i, const char *name) {
    const PlanGraphValue *v = input(b, i);
    PlanTensor gradient =
        plan_run_new_tensor(b->run, v->elements * MAX(v->shown, 1), (PlanDtype)v->dtype, name);
    gradient.elements = v->elements;
    return gradient;
}

static void attention(const PlanBackward *b) {
    if (plan_attention_backward_qkv(b)) {
        return;
    }
    static const char *const names[] = {"dq", "dk", "dv"};
    for (unsigned i = 0; i < 3; i++) {
        b->dx[i] = gradient_of_shown(b, i, names[i]);
    }
    if (wanted(b, 3)) {
        b->dx[3] = bias_gradient(b);
    }
    const PlanStrategy *s = b->run->strategy;
    bool is_ordered = s->deterministic != PLAN_DETERMINISTIC_NO;
    double ordered[] = {attrs(b)[0], attrs(b)[1], attrs(b)[2],
                        s->deterministic == PLAN_DETERMINISTIC_YES};
    begin(b, is_ordered ? PLAN_OP_ATTENTION_BACKWARD_ORDERED : PLAN_OP_ATTENTION_BACKWARD, dims(b),
          is_ordered ? ordered : attrs(b));
    operand(b, b->dy[0]);
    for (unsigned i = 0; i < 6; i++) {
        value_operand(b, i);
    }
    for (unsigned i = 0; i < 4; i++) {
        operand(b, b->dx[i]);
    }
    launch(b);
    for (unsigned i = 3; i-- > 0;) {
        drop_unwanted(b, i);
    }
}

/* The gradients of a row's parts lie in one array already, side by side. */
static bool lies_joined(const PlanBackward *b) {
    bool joined = b->dy[0].storage != PLAN_NONE;
    uint64_t column = 0;
    for (unsigned i = 0; i < b->op->n_outputs; i++) {
        joined = joined && b->dy[i].storage == b->dy[0].storage && b->dy[i].offset == column;
        column += input(b, 1 + i)->elements / (uint64_t)dim(b, 0);
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
        operand(b, b->dy[i]);
    }
    operand(b, b->dx[0]);
    launch(b);
}

/* Each part's gradient is a view of dy: all of it, and nothing. */
static void join_rest(const PlanBackward *b) {
    b->dx[0] = plan_run_ref(b->run, b->dy[0]);
    b->dx[1] = plan_run_ref(b->run, b->dy[0]);
    b->dx[1].elements = 0;
}

static void rest(const PlanBackward *b) {
    int64_t n = (int64_t)input(b, 0)->elements;
    b->dx[0] = like_input(b, 0, "dx");
    begin(b, PLAN_OP_FILL, &n, (double[]){0});
    operand(b, b->dx[0]);
    launch(b);
}

static void slice(const PlanBackward *b) {
    int64_t rows = dim(b, 0), cols = (int64_t)b->dy[0].elements / rows;
    b->dx[0] = like_input(b, 0, "dx");
    begin(b, PLAN_OP_PUT_COLUMNS, (int64_t[]){rows, cols, cols, 0, dim(b, 2), dim(b, 1)}, NULL);
    operand(b, b->dy[0]);
    operand(b, b->dx[0]);
    launch(b);
}

static void mean(const PlanBackward *b) {
    b->dx[0] = like_input(b, 0, "dx");
    begin(b, PLAN_OP_MEAN_BACKWARD, dims(b), NULL);
    operand(b, b->dy[0]);
    operand(b, b->dx[0]);
    launch(b);
}

static void nll_loss(const PlanBackward *b) {
    b->dx[0] = like_input(b, 0, "dx");
    begin(b, PLAN_OP_NLL_LOSS_BACKWARD, dims(b), NULL);
    operand(b, b->dy[0]);
    value_operand(b, 1);
    value_operand(b, 3);
    operand(b, b->dx[0]);
    launch(b);
}

static void rmsnorm(const PlanBackward *b) {
    b->dx[0] = like_wanted(b, 0, "dx");
    b->dx[1] = like_wanted(b, 1, "dw");
    begin(b, PLAN_OP_RMSNORM_BACKWARD, dims(b), NULL);
    operand(b, b->dy[0]);
    value_operand(b, 0);
    value_operand(b, 3);
    value_operand(b, 1);
    operand(b, b->dx[0]);
    operand(b, b->dx[1]);
    launch(b);
}

/* PyTorch has a kernel for it; a device that has none makes it of five tensors. */
static void silu(const PlanBackward *b) {
    PlanTensor parts[5];
    bool in_parts = b->run->strategy->silu_backward == PLAN_SILU_OPS;
    for (unsigned i = 0; i < 5 && in_parts; i++) {
        parts[i] = like_input(b, 0, "silu_part");
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
            begin(b, PLAN_OP_MUL, dims(b), NULL);
            operand(b, b->dy[0]);
            value_operand(b, 1 - i);
            operand(b, b->dx[i]);
            launch(b);
        }
    }
}

static void times_number(const PlanBackward *b) {
    b->dx[0] = like_input(b, 0, "dx");
    begin(b, PLAN_OP_TIMES_NUMBER, dims(b), attrs(b));
    operand(b, b->dy[0]);
    operand(b, b->dx[0]);
    launch(b);
}

static void view(const PlanBackward *b) {
    switch ((PlanGraphView)b->op->kind) {
    case PLAN_GRAPH_SPLIT:
        split(b);
        return;
    case PLAN_GRAPH_SLICE:
        slice(b);
        return;
    case PLAN_GRAPH_REST:
        rest(b);
        return;
    case PLAN_GRAPH_HALF:
        plan_half_backward(b);
        return;
    case PLAN_GRAPH_COLUMNS:
        plan_columns_backward(b);
        return;
    case PLAN_GRAPH_HEADS:
        plan_heads_view_backward(b);
        return;
    case PLAN_GRAPH_REPEATED:
        plan_sum_sequences_backward(b, 0, dim(b, 0), dim(b, 1));
        return;
    case PLAN_GRAPH_SHOWN:
        plan_sum_heads_backward(b);
        return;
    case PLAN_GRAPH_SHARED_AGAIN:
    case PLAN_GRAPH_SHARED_TAKEN:
    case PLAN_GRAPH_SHARED_READ:
    case PLAN_GRAPH_SHARED_GATHER:
    case PLAN_GRAPH_SHARED_SCATTER:
    case PLAN_GRAPH_SHARED_SUM:
    case PLAN_GRAPH_SHARED_OWN:
    case PLAN_GRAPH_SHARED_WHOLE:
    case PLAN_GRAPH_SHARED_ROWS:
    case PLAN_GRAPH_SHARED_GATHER_FLOAT8:
    case PLAN_GRAPH_SHARED_LOSS:
    case PLAN_GRAPH_SHARED_COMPILED_LOSS:
        plan_shared_backward(b);
        return;
    case PLAN_GRAPH_SHARED_SCATTER_FLOAT8:
        plan_float8_gather_gradient(b);
        return;
    case PLAN_GRAPH_FLOAT8_LINEAR:
        plan_float8_backward(b);
        return;
    case PLAN_GRAPH_RING_ATTENTION:
        (b->run->graph->compiled ? plan_ring_compiled_backward : plan_ring_backward)(b);
        return;
    case PLAN_GRAPH_RING_ROWS:
        b->dx[0] = plan_run_ref(b->run, b->dy[0]);
        return;
    case PLAN_GRAPH_EXCHANGE_SEND:
        plan_exchange_backward(b);
        return;
    case PLAN_GRAPH_LATENT_TURN:
    case PLAN_GRAPH_LATENT_SPLIT:
        plan_latent_view_backward(b);
        return;
    case PLAN_GRAPH_TRACED:
        plan_traced_backward(b);
        return;
    case PLAN_GRAPH_DETACHED: /* these make no nodes */
    case PLAN_GRAPH_EXCHANGE_SPLITS:
    case PLAN_GRAPH_EXCHANGE_AWAIT:
    case PLAN_GRAPH_EXCHANGE_ORDER:
    case PLAN_GRAPH_LATENT_KEPT:
        break;
    }
    g_assert_not_reached();
}

static void differentiate(const PlanBackward *b) {
    switch ((PlanOpKind)b->op->kind) {
    case PLAN_OP_EMBEDDING:
        if (plan_strategy_is_one_program(b->run->strategy) && input(b, 0)->dtype != PLAN_FP32) {
            embedding_in_fp32(b);
        } else {
            embedding(b, PLAN_OP_EMBEDDING_BACKWARD);
        }
        return;
    case PLAN_OP_BIAS:
        embedding(b, PLAN_OP_BIAS_BACKWARD);
        return;
    case PLAN_OP_CAST:
        cast(b);
        return;
    case PLAN_OP_DROPOUT:
        dropout(b);
        return;
    case PLAN_OP_RMSNORM:
        rmsnorm(b);
        return;
    case PLAN_OP_SILU:
        silu(b);
        return;
    case PLAN_OP_MUL:
        mul(b);
        return;
    case PLAN_OP_TIMES_NUMBER:
        times_number(b);
        return;
    case PLAN_OP_ADD_NUMBER:
        b->dx[0] = plan_run_ref(b->run, b->dy[0]);
        return;
    case PLAN_OP_POWER:
        plan_power_backward(b);
        return;
    case PLAN_OP_MUL_ROW:
        plan_mul_broadcast_backward(b, false);
        return;
    case PLAN_OP_MUL_COLUMN:
        plan_mul_broadcast_backward(b, true);
        return;
    case PLAN_OP_SUM_COLUMNS:
        plan_sum_columns_backward(b);
        return;
    case PLAN_OP_JOIN_REST:
        join_rest(b);
        return;
    case PLAN_OP_COPY:
        b->dx[0] = plan_run_ref(b->run, b->dy[0]);
        return;
    case PLAN_OP_NEGATE_HALF:
        plan_negate_half_backward(b);
        return;
    case PLAN_OP_JOIN_HALVES:
        plan_join_halves_backward(b);
        return;
    case PLAN_OP_TABLE_MUL:
        plan_table_mul_backward(b);
        return;
    case PLAN_OP_NEGATE_COLUMNS:
        plan_negate_columns_backward(b);
        return;
    case PLAN_OP_JOIN_COLUMNS:
        plan_join_columns_backward(b);
        return;
    case PLAN_OP_TABLE_MUL_COLUMNS:
        plan_table_mul_columns_backward(b);
        return;
    case PLAN_OP_REPEAT_HEADS:
        plan_sum_heads_backward(b);
        return;
    case PLAN_OP_HEADS_COPY:
        plan_heads_copy_backward(b);
        return;
    case PLAN_OP_HEADS_MATMUL:
        plan_heads_matmul_backward(b);
        return;
    case PLAN_OP_SOFTMAX:
        elementwise(b, PLAN_OP_SOFTMAX_BACKWARD, 1);
        return;
    case PLAN_OP_MASKED_FILL:
        plan_masked_fill_backward(b);
        return;
    case PLAN_OP_BIAS_ADD:
        plan_bias_add_backward(b);
        return;
    case PLAN_OP_ADD:
        add(b);
        return;
    case PLAN_OP_LAYERNORM:
        layernorm(b);
        return;
    case PLAN_OP_LINEAR:
    case PLAN_OP_LINEAR_PARTS:
        plan_linear_backward(b, PLAN_NO_TENSOR);
        return;
    case PLAN_OP_ATTENTION:
        attention(b);
        return;
    case PLAN_OP_GELU_TANH:
        elementwise(b, PLAN_OP_GELU_TANH_BACKWARD, 0);
        return;
    case PLAN_OP_GELU_ERF:
        elementwise(b, PLAN_OP_GELU_ERF_BACKWARD, 0);
        return;
    case PLAN_OP_TANH:
        elementwise(b, PLAN_OP_TANH_BACKWARD, 1);
        return;
    case PLAN_OP_RELU:
        elementwise(b, PLAN_OP_RELU_BACKWARD, 1);
        return;
    case PLAN_OP_MEAN:
        mean(b);
        return;
    case PLAN_OP_LOG_SOFTMAX:
        elementwise(b, PLAN_OP_LOG_SOFTMAX_BACKWARD, 1);
        return;
    case PLAN_OP_NLL_LOSS:
        nll_loss(b);
        return;
    case PLAN_OP_PICK_COLUMNS:
        plan_pick_columns_backward(b);
        return;
    case PLAN_OP_TOTAL_COLUMNS:
        plan_total_columns_backward(b);
        return;
    case PLAN_OP_DIVIDE_COLUMN:
        plan_divide_column_backward(b);
        return;
    case PLAN_OP_TOP_K:
        plan_top_k_backward(b);
        return;
    case PLAN_OP_SUM_EACH:
        plan_sum_each_backward(b);
        return;
    case PLAN_OP_GROUPED_LINEAR:
    case PLAN_OP_GROUPED_PARTS:
        plan_grouped_linear_backward(b);
        return;
    case PLAN_OP_ROWS_OF:
        plan_rows_of_backward(b);
        return;
    case PLAN_OP_PLACE_ROWS:
        plan_place_rows_backward(b);
        return;
    case PLAN_OP_ADD_TO_ROWS:
        plan_add_to_rows_backward(b);
        return;
    case PLAN_OP_ROPE:
        plan_rope_backward(b);
        return;
    case PLAN_OP_TURN:
        plan_turn_backward(b);
        return;
    case PLAN_OP_SWIGLU:
        plan_swiglu_backward(b);
        return;
    case PLAN_OP_ADD_RMSNORM:
        plan_add_norm_backward(b, false);
        return;
    case PLAN_OP_ADD_LAYERNORM:
        plan_add_norm_backward(b, true);
        return;
    case PLAN_OP_LINEAR_GELU:
        plan_linear_gelu_backward(b);
        return;
    case PLAN_OP_CROSS_ENTROPY:
        plan_cross_entropy_backward(b);
        return;
    case PLAN_OP_COMPILED_LOSS:
        plan_compiled_loss_backward(b);
        return;
    case PLAN_OP_CHUNKED_LOSS:
        plan_chunked_loss_backward(b);
        return;
#define LATENT_OP(id, ...) case PLAN_OP_##id:
#include "plan/op/ops.def"
        plan_latent_backward(b);
        return;
#define GRADIENT_OP(id, ...) case PLAN_OP_##id:
#define LIST_OP              GRADIENT_OP
#define HOST_OP              GRADIENT_OP
#define SHARE_OP             GRADIENT_OP
#define FLOAT8_OP            GRADIENT_OP
#define RING_OP              GRADIENT_OP
#define EXCHANGE_OP          GRADIENT_OP
#define TRACED_OP            GRADIENT_OP
#include "plan/op/ops.def"
    case PLAN_OP_BATCH:
    case PLAN_OP_ARANGE:
    case PLAN_OP_PAD_TARGETS:
    case PLAN_OP_DROP_FIRST:
    case PLAN_OP_ROPE_TABLES:
    case PLAN_OP_TURN_TABLE:
    case PLAN_OP_ROPE_FREQUENCIES:
    case PLAN_OP_SHIFT:
    case PLAN_OP_AS_NUMBER:
    case PLAN_OP_OUTER:
    case PLAN_OP_COS:
    case PLAN_OP_SIN:
    case PLAN_OP_ONES_MASK:
    case PLAN_OP_UPPER_MASK:
    case PLAN_OP_BACK:
    case PLAN_OP_LATER_MASK:
    case PLAN_OP_UPTO_MASK:
    case PLAN_OP_BOTH_MASK:
    case PLAN_OP_MASK_TO_BIAS:
    case PLAN_OP_DISTANCES:
    case PLAN_OP_ABSOLUTE:
    case PLAN_OP_CLAMP:
    case PLAN_OP_POSITIVE_MASK:
    case PLAN_OP_ADD_COLUMN:
    case PLAN_OP_COUNT:
    case PLAN_OP_SORT:
    case PLAN_OP_DIVIDE_DOWN:
    case PLAN_OP_REMAINDER:
    case PLAN_OP_ENDS:
    case PLAN_OP_NARROW:
    case PLAN_OP_TALLY:
    case PLAN_OP_TALLY_ENDS:
    case PLAN_OP_INVERT:
    case PLAN_OP_PART:
    case PLAN_OP_INIT_NORMAL:
    case PLAN_OP_INIT_FILL:
    case PLAN_OP_FILL:
    case PLAN_OP_FILL_EMPTY:
    case PLAN_OP_COPY_COLUMNS:
    case PLAN_OP_FLATTEN:
    case PLAN_OP_TO_HOST:
    case PLAN_OP_FROM_HOST:
    case PLAN_OP_SCALE:
    case PLAN_OP_GATHER_COPY_IN:
    case PLAN_OP_GATHER_COPY_OUT:
    case PLAN_OP_REDUCE_COPY_IN:
    case PLAN_OP_BUCKET_COPY_IN:
    case PLAN_OP_BUCKET_COPY_OUT:
    case PLAN_OP_NORM:
    case PLAN_OP_SPREAD:
    case PLAN_OP_AT_MOST:
#define MUON_OP(id, ...) case PLAN_OP_##id:
#include "plan/op/ops.def"
    case PLAN_OP_UPDATE_SCALE:
    case PLAN_OP_ACCUMULATE:
    case PLAN_OP_ALL_GATHER:
    case PLAN_OP_REDUCE_SCATTER:
    case PLAN_OP_ALL_REDUCE:
    case PLAN_OP_BROADCAST:
    case PLAN_OP_PASS_ON:
    case PLAN_OP_ALL_TO_ALL:
    case PLAN_OP_SEND:
    case PLAN_OP_RECEIVE:
    case PLAN_OP_EXCHANGE:
    case PLAN_OP_BARRIER:
    case PLAN_OP_OFFER:
    case PLAN_OP_PULL:
    case PLAN_OP_SWAP:
    case PLAN_N_OP_KINDS:
        break;
    }
    g_error("no network differentiates op kind %s", plan_op_info((PlanOpKind)b->op->kind)->name);
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
        b->dx[i] = cast_of(b, made, dtype, "dx");
        plan_run_unref(b->run, made);
    }
}

void plan_differentiate(PlanRun *run, uint32_t node, const PlanTensor *outputs,
                        PlanTensor *ret_inputs) {
    const PlanNode *n = &run->tape.nodes.items[node];
    const PlanGraphOp *op = plan_graph_at(run->graph->ops, PlanGraphOp, n->op);
    PlanBackward b = {run, node, op, outputs, ret_inputs};
    if (op->kind >= PLAN_N_OP_KINDS) {
        view(&b);
    } else {
        differentiate(&b);
        if (n->checkpoint != PLAN_NONE) {
            plan_run_drop_saved(run, node); /* its function has returned; the engine casts */
        }
    }
    bool is_cast = op->kind < PLAN_N_OP_KINDS || (PlanGraphView)op->kind == PLAN_GRAPH_SHARED_ROWS;
    for (unsigned i = 0; i < op->n_inputs && is_cast; i++) {
        plan_give_own_dtype(&b, i);
    }
}
