/* plan/graph/several.c - ops that are several kernels, which autograd/ writes: layers that ranks
 * share, sequences and experts that they share, linear layers in float8 or of weights in 4 bits.
 */
#include "plan/graph/private.h"
#include "plan/op/float8.h"
#include "plan/op/names.h"

/* ---- what ranks share ----------------------------------------------------------------------- */

/* An op of several kernels, whose outputs have storage of their own. */
static void add_several(PlanGraph *graph, PlanGraphOp op, uint32_t *values,
                        const PlanGraphValue *outputs, const int64_t *dims, unsigned n_dims) {
    for (unsigned i = 0; i < op.n_outputs; i++) {
        PlanGraphValue made = outputs[i];
        made.parameter = made.base = PLAN_NONE;
        values[op.n_inputs + i] = plan_graph_add_value(graph, made);
    }
    plan_graph_add_op(graph, op, values, dims, n_dims);
}

static uint32_t move_tokens(PlanGraph *graph, PlanGraphKind kind, uint32_t x,
                            const PlanGraphTokens *tokens, uint64_t elements) {
    PlanGraphValue given = *plan_graph_value_at(graph, x);
    uint32_t values[2] = {x};
    int64_t dims[] = {[PLAN_GRAPH_TOKENS_BATCH] = (int64_t)tokens->batch,
                      [PLAN_GRAPH_TOKENS_ROWS] = (int64_t)tokens->rows,
                      [PLAN_GRAPH_TOKENS_WIDTH] = (int64_t)tokens->width};
    PlanGraphValue made = {
        .elements = elements, .dtype = given.dtype, .requires_grad = given.requires_grad};
    add_several(graph, plan_graph_new_op(kind, 1, 1), values, &made, dims, G_N_ELEMENTS(dims));
    return values[1];
}

/* The op that made x by a kernel that a compiler writes, from what backward has anyhow. */
static int64_t maker_of(const PlanGraph *graph, uint32_t x) {
    for (uint32_t i = graph->ops.len; i-- > 0;) {
        const PlanGraphOp *op = plan_graph_op_at(graph, i);
        for (unsigned o = 0; o < op->n_outputs; o++) {
            if (plan_graph_ref(graph, op->values + op->n_inputs + o) == x) {
                bool is_maker = op->kind == PLAN_OP_RMSNORM || op->kind == PLAN_OP_ADD_RMSNORM ||
                                op->kind == PLAN_OP_SWIGLU ||
                                (PlanGraphKind)op->kind == PLAN_GRAPH_RING_ROWS;
                return is_maker ? (int64_t)i : -1;
            }
        }
    }
    return -1;
}

/* Whether what is gathered, or comes back to what was scattered, is in float8. */
static bool gathers_float8(const PlanGraph *graph) {
    return graph->float8 == PLAN_FLOAT8_TENSORWISE &&
           plan_graph_is_in_block(graph, plan_graph_module_now(graph));
}

static uint32_t gather_float8(PlanGraph *graph, uint32_t x, const PlanGraphTokens *tokens) {
    uint32_t values[2] = {x};
    int64_t dims[] = {[PLAN_GRAPH_TOKENS_BATCH] = (int64_t)tokens->batch,
                      [PLAN_GRAPH_TOKENS_ROWS] = (int64_t)tokens->rows,
                      [PLAN_GRAPH_TOKENS_WIDTH] = (int64_t)tokens->width,
                      [PLAN_GRAPH_GATHER_IS_NORMS] = maker_of(graph, x) >= 0};
    PlanGraphValue made = {.elements =
                               tokens->batch * tokens->rows * tokens->width * graph->shared.tensor,
                           .dtype = PLAN_E4M3,
                           .requires_grad = true};
    add_several(graph, plan_graph_new_op(PLAN_GRAPH_SHARED_GATHER_FLOAT8, 1, 1), values, &made,
                dims, G_N_ELEMENTS(dims));
    return values[1];
}

uint32_t plan_graph_shared_gather(PlanGraph *graph, uint32_t x, const PlanGraphTokens *tokens) {
    return gathers_float8(graph)
               ? gather_float8(graph, x, tokens)
               : move_tokens(graph, PLAN_GRAPH_SHARED_GATHER, x, tokens,
                             tokens->batch * tokens->rows * tokens->width * graph->shared.tensor);
}

uint32_t plan_graph_shared_scatter(PlanGraph *graph, uint32_t x, const PlanGraphTokens *tokens) {
    PlanGraphKind kind =
        gathers_float8(graph) ? PLAN_GRAPH_SHARED_SCATTER_FLOAT8 : PLAN_GRAPH_SHARED_SCATTER;
    return move_tokens(graph, kind, x, tokens, tokens->batch * tokens->rows * tokens->width);
}

static uint32_t view_of_tokens(PlanGraph *graph, PlanGraphKind kind, uint32_t x, uint32_t of,
                               const PlanGraphTokens *tokens) {
    uint64_t elements = plan_graph_value_at(graph, of)->elements;
    uint32_t values[] = {x, plan_graph_add_view(graph, of, 0, elements)};
    int64_t dims[] = {[PLAN_GRAPH_TOKENS_BATCH] = (int64_t)tokens->batch,
                      [PLAN_GRAPH_TOKENS_ROWS] = (int64_t)tokens->rows,
                      [PLAN_GRAPH_TOKENS_WIDTH] = (int64_t)tokens->width};
    plan_graph_add_op(graph, plan_graph_new_op(kind, 1, 1), values, dims, G_N_ELEMENTS(dims));
    return values[1];
}

uint32_t plan_graph_shared_again(PlanGraph *graph, uint32_t x, uint32_t gathered,
                                 const PlanGraphTokens *tokens) {
    return view_of_tokens(graph, PLAN_GRAPH_SHARED_AGAIN, x, gathered, tokens);
}

uint32_t plan_graph_shared_taken(PlanGraph *graph, uint32_t x, const PlanGraphTokens *tokens) {
    return view_of_tokens(graph, PLAN_GRAPH_SHARED_TAKEN, x, x, tokens);
}

uint32_t plan_graph_shared_read(PlanGraph *graph, uint32_t x, const PlanGraphTokens *tokens) {
    return view_of_tokens(graph, PLAN_GRAPH_SHARED_READ, x, x, tokens);
}

uint32_t plan_graph_shared_sum(PlanGraph *graph, uint32_t x, const PlanGraphTokens *tokens) {
    return move_tokens(graph, PLAN_GRAPH_SHARED_SUM, x, tokens,
                       tokens->batch * tokens->rows * tokens->width);
}

uint32_t plan_graph_shared_own(PlanGraph *graph, uint32_t x, const PlanGraphTokens *tokens) {
    return move_tokens(graph, PLAN_GRAPH_SHARED_OWN, x, tokens,
                       tokens->batch * tokens->rows * tokens->width);
}

uint32_t plan_graph_shared_whole(PlanGraph *graph, uint32_t x, uint64_t rows, uint64_t cols) {
    PlanGraphTokens columns = {rows, 1, cols};
    return move_tokens(graph, PLAN_GRAPH_SHARED_WHOLE, x, &columns,
                       rows * cols * graph->shared.tensor);
}

uint32_t plan_graph_shared_rows(PlanGraph *graph, uint32_t table, uint32_t index, uint64_t n,
                                uint64_t width, uint64_t part, uint32_t *ret_mask) {
    uint32_t values[4] = {table, index};
    int64_t dims[] = {[PLAN_GRAPH_SHARED_ROWS_N] = (int64_t)n,
                      [PLAN_GRAPH_SHARED_ROWS_WIDTH] = (int64_t)width,
                      [PLAN_GRAPH_SHARED_ROWS_PART] = (int64_t)part};
    PlanGraphValue made[] = {
        {.elements = n * width,
         .dtype = (uint8_t)graph->dtype,
         .requires_grad = plan_graph_wants_gradient(graph, table)},
        {.elements = n, .dtype = PLAN_UINT8},
    };
    add_several(graph, plan_graph_new_op(PLAN_GRAPH_SHARED_ROWS, 2, G_N_ELEMENTS(made)), values,
                made, dims, G_N_ELEMENTS(dims));
    *ret_mask = values[3];
    return values[2];
}

void plan_graph_zero_masked(PlanGraph *graph, uint32_t mask, uint32_t x, uint64_t rows,
                            uint64_t width) {
    plan_graph_op_making(
        graph, PLAN_OP_ZERO_MASKED, (uint32_t[]){mask, x}, NULL,
        (int64_t[]){[ZERO_MASKED_ROWS] = (int64_t)rows, [ZERO_MASKED_WIDTH] = (int64_t)width},
        NULL);
}

uint32_t plan_graph_shared_loss(PlanGraph *graph, uint32_t logits, uint32_t targets, uint64_t rows,
                                uint64_t cols) {
    uint8_t dtype = plan_graph_value_at(graph, logits)->dtype;
    uint32_t values[5] = {logits, targets};
    int64_t dims[] = {[CROSS_ENTROPY_ROWS] = (int64_t)rows, [CROSS_ENTROPY_COLS] = (int64_t)cols};
    PlanGraphValue made[] = {{.elements = 1, .dtype = dtype, .requires_grad = true},
                             {.elements = rows * cols, .dtype = dtype},
                             {.elements = 1, .dtype = dtype}};
    add_several(graph, plan_graph_new_op(PLAN_GRAPH_SHARED_LOSS, 2, G_N_ELEMENTS(made)), values,
                made, dims, G_N_ELEMENTS(dims));
    plan_graph_let_go_after(graph, values[3], values[4]); /* where no backward keeps them */
    return values[2];
}

uint32_t plan_graph_shared_compiled_loss(PlanGraph *graph, uint32_t logits, uint32_t targets,
                                         uint64_t rows, uint64_t cols) {
    uint32_t values[6] = {logits, targets};
    int64_t dims[] = {[CROSS_ENTROPY_ROWS] = (int64_t)rows, [CROSS_ENTROPY_COLS] = (int64_t)cols};
    PlanGraphValue made[] = {{.elements = 1, .dtype = PLAN_FP32, .requires_grad = true},
                             {.elements = rows * cols, .dtype = PLAN_FP32},
                             {.elements = rows, .dtype = PLAN_UINT8},
                             {.elements = 1, .dtype = PLAN_FP32}};
    add_several(graph, plan_graph_new_op(PLAN_GRAPH_SHARED_COMPILED_LOSS, 2, G_N_ELEMENTS(made)),
                values, made, dims, G_N_ELEMENTS(dims));
    return values[2];
}

uint32_t plan_graph_ring_attention(PlanGraph *graph, const uint32_t *q_k_v,
                                   const PlanGraphRing *ring, double scale) {
    uint8_t dtype = plan_graph_value_at(graph, q_k_v[0])->dtype;
    uint32_t values[9] = {q_k_v[0], q_k_v[1], q_k_v[2]};
    uint64_t rows = (uint64_t)(ring->batch * ring->heads * ring->seq);
    PlanGraphTokens tokens = {rows, 1, (uint64_t)ring->head_dim};
    PlanGraphValue made[] = {
        {.elements = rows * tokens.width, .dtype = dtype, .requires_grad = true},
        {.elements = rows, .dtype = PLAN_FP32},
        {.elements = dtype == PLAN_FP32 ? 1 : 2, .dtype = PLAN_INT64},
        {.elements = 1, .dtype = PLAN_INT64},
        {.elements = 2 * graph->shared.context * plan_graph_value_at(graph, q_k_v[1])->elements,
         .dtype = dtype},
        {.elements = rows * tokens.width, .dtype = dtype}};
    add_several(
        graph,
        plan_graph_new_op(PLAN_GRAPH_RING_ATTENTION, 3, plan_graph_is_compiled(graph) ? 6 : 4),
        values, made, (const int64_t *)ring, 5);
    plan_vector_push(&graph->attrs, scale);
    plan_graph_let_go_after(graph, values[5], values[6]);
    plan_graph_let_go_after(graph, values[4], values[5]);
    if (ring->heads == 1 && !plan_graph_is_compiled(graph)) { /* lies in rows of tokens as it is */
        return values[3];
    }
    return move_tokens(graph, PLAN_GRAPH_RING_ROWS, values[3], &tokens, made[0].elements);
}

/* ---- experts that ranks share --------------------------------------------------------------- */

uint32_t plan_graph_exchange_splits(PlanGraph *graph, uint32_t counts, uint64_t experts) {
    uint32_t values[2] = {counts};
    int64_t dims[] = {[SPLITS_RANKS] = (int64_t)graph->shared.expert,
                      [SPLITS_EXPERTS] = (int64_t)(experts / graph->shared.expert)};
    PlanGraphValue made = {.elements = experts, .dtype = PLAN_INT64};
    add_several(graph, plan_graph_new_op(PLAN_GRAPH_EXCHANGE_SPLITS, 1, 1), values, &made, dims,
                G_N_ELEMENTS(dims));
    return values[1];
}

uint32_t plan_graph_exchange_send(PlanGraph *graph, uint32_t rows, uint64_t elements) {
    PlanGraphTokens all = {1, 1, plan_graph_value_at(graph, rows)->elements};
    return move_tokens(graph, PLAN_GRAPH_EXCHANGE_SEND, rows, &all, elements);
}

void plan_graph_exchange_await(PlanGraph *graph, uint32_t sent) {
    add_several(graph, plan_graph_new_op(PLAN_GRAPH_EXCHANGE_AWAIT, 1, 0), &sent, NULL, NULL, 0);
}

uint32_t plan_graph_exchange_order(PlanGraph *graph, uint32_t splits, uint64_t experts, uint64_t n,
                                   uint32_t *ret_order) {
    uint32_t values[3] = {splits};
    uint64_t own = experts / graph->shared.expert;
    int64_t dims[] = {[SPLITS_RANKS] = (int64_t)graph->shared.expert,
                      [SPLITS_EXPERTS] = (int64_t)own,
                      [PLAN_GRAPH_EXCHANGE_ORDER_N] = (int64_t)n};
    PlanGraphValue made[] = {{.elements = own, .dtype = PLAN_INT64},
                             {.elements = n, .dtype = PLAN_INT64}};
    add_several(graph, plan_graph_new_op(PLAN_GRAPH_EXCHANGE_ORDER, 1, G_N_ELEMENTS(made)), values,
                made, dims, G_N_ELEMENTS(dims));
    *ret_order = values[2];
    return values[1];
}

/* ---- linear layers in float8 ---------------------------------------------------------------- */

/* The layer before it, if that takes x too, has to leave what it cast. */
static void share_cast(PlanGraph *graph, uint32_t x) {
    if (graph->now.last_float8 == PLAN_NONE) {
        return;
    }
    const PlanGraphOp *last = plan_graph_op_at(graph, graph->now.last_float8);
    if (plan_graph_ref(graph, last->values) == x) {
        PlanGraphFloat8Linear *d = (gpointer)&graph->dims.items[last->dims];
        d->again = 1;
    }
}

uint32_t plan_graph_float8_linear(PlanGraph *graph, uint32_t x, uint32_t weight, uint64_t m,
                                  uint64_t n, uint64_t k) {
    PlanGraphFloat8Linear d = {(int64_t)m, (int64_t)n, (int64_t)k, maker_of(graph, x), 0};
    bool is_shared = graph->shared.tensor > 1, by_rows = graph->float8 == PLAN_FLOAT8_ROWWISE;
    uint64_t shared_scales = by_rows ? k : 1;
    PlanDtype shared_dtype = by_rows ? graph->dtype : PLAN_FP32;
    PlanGraphValue made[] = {{.elements = m * n, .dtype = graph->dtype, .requires_grad = true},
                             {.elements = is_shared ? shared_scales : 1, .dtype = PLAN_FP32},
                             {.elements = n * k, .dtype = PLAN_E4M3},
                             {.elements = m * k, .dtype = PLAN_E4M3},
                             {.elements = shared_scales, .dtype = shared_dtype}};
    uint32_t values[7] = {x, weight};
    share_cast(graph, x);
    if (graph->float8 == PLAN_FLOAT8_MXFP8) { /* casts of x and their exponents */
        made[1] = (PlanGraphValue){.elements = m * k, .dtype = PLAN_E4M3};
        made[2] = (PlanGraphValue){.elements = m * k / PLAN_MXFP8_BLOCK, .dtype = PLAN_UINT8};
    }
    add_several(graph, plan_graph_new_op(PLAN_GRAPH_FLOAT8_LINEAR, 2, is_shared ? 5 : 3), values,
                made, (const int64_t *)&d, sizeof d / sizeof(int64_t));
    graph->now.last_float8 = graph->ops.len - 1;
    return values[2];
}

uint32_t plan_graph_delayed_linear(PlanGraph *graph, const uint32_t *x_weight_bias, uint64_t m,
                                   uint64_t n, uint64_t k) {
    PlanGraphDelayedLinear d = {(int64_t)m, (int64_t)n, (int64_t)k, graph->now.n_delayed++};
    PlanGraphValue made[] = {{.elements = m * n, .dtype = graph->dtype, .requires_grad = true},
                             {.elements = m * k, .dtype = PLAN_E4M3},
                             {.elements = n * k, .dtype = PLAN_E4M3},
                             {.elements = 2, .dtype = PLAN_FP32}};
    uint32_t values[7] = {x_weight_bias[0], x_weight_bias[1], x_weight_bias[2]};
    add_several(graph, plan_graph_new_op(PLAN_GRAPH_DELAYED_LINEAR, 3, G_N_ELEMENTS(made)), values,
                made, (const int64_t *)&d, sizeof d / sizeof(int64_t));
    return values[3];
}

uint32_t plan_graph_four_bit_linear(PlanGraph *graph, const uint32_t *x_weight_bias, uint64_t m,
                                    uint64_t n, uint64_t k) {
    uint32_t values[] = {x_weight_bias[0], x_weight_bias[1], x_weight_bias[2], PLAN_NONE};
    int64_t dims[] = {[LINEAR_M] = (int64_t)m, [LINEAR_N] = (int64_t)n, [LINEAR_K] = (int64_t)k};
    PlanGraphValue made = {.elements = m * n,
                           .dtype = (uint8_t)plan_graph_product_dtype(graph),
                           .requires_grad = plan_graph_wants_gradient(graph, values[0])};
    add_several(graph, plan_graph_new_op(PLAN_GRAPH_FOUR_BIT_LINEAR, 3, 1), values, &made, dims,
                G_N_ELEMENTS(dims));
    return values[3];
}
