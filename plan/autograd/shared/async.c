#include "plan/autograd/shared/async.h"
#include "plan/autograd/chosen.h"
#include "plan/autograd/launch.h"
#include "plan/autograd/shared/shared.h"

const char *const plan_async_lanes[] = {"async", NULL};

static PlanAsync *state_of(PlanRun *run) {
    return &run->async[run->builder.phase == PLAN_PHASE_BACKWARD];
}

static uint8_t lane_beside(PlanRun *run) {
    return run->lanes.async;
}

/* ---- which gathers and scatters are replaced ------------------------------------------------ */

static const PlanGraphOp *op_at(const PlanGraph *graph, int64_t i) {
    return plan_graph_op_at(graph, i);
}

static int64_t index_of(const PlanGraph *graph, const PlanGraphOp *op) {
    return op - op_at(graph, 0);
}

static uint32_t input_of(const PlanGraph *graph, const PlanGraphOp *op, unsigned i) {
    return plan_graph_ref(graph, op->values + i);
}

static uint32_t output_of(const PlanGraph *graph, const PlanGraphOp *op) {
    return plan_graph_ref(graph, op->values + op->n_inputs);
}

static bool is_layer(const PlanGraphOp *op) {
    return op->kind == PLAN_OP_LINEAR || (PlanGraphKind)op->kind == PLAN_GRAPH_FLOAT8_LINEAR;
}

/* With one sequence the pass does not recognize the gather: there is no view between it and its
 * products. */
static bool has_several(const PlanGraph *graph, const PlanGraphOp *op) {
    return plan_graph_dims_of(graph, op)[PLAN_GRAPH_TOKENS_BATCH] > 1;
}

/* By rows bf16 is gathered, and cast behind that. */
static bool casts_behind(const PlanGraph *graph, const PlanGraphOp *op) {
    PlanGraphKind kind = (PlanGraphKind)op->kind;
    bool is_plain = kind == PLAN_GRAPH_SHARED_GATHER || kind == PLAN_GRAPH_SHARED_SCATTER;
    return graph->float8 != PLAN_FLOAT8_NONE && is_plain;
}

static bool is_replaced(const PlanGraph *graph, const PlanGraphOp *op) {
    return graph->shared.async_tensor && plan_graph_is_in_block(graph, op->module);
}

bool plan_async_gathers(PlanRun *run, const PlanGraphOp *op) {
    return is_replaced(run->graph, op) && has_several(run->graph, op) &&
           !casts_behind(run->graph, op);
}

/* ---- the words ------------------------------------------------------------------------------ */

static void peers(PlanRun *run, PlanOpKind kind, uint64_t elements, uint64_t ahead) {
    int64_t dims[] = {[PEER_COLLECTIVE_ELEMENTS] = (int64_t)elements,
                      [PEER_COLLECTIVE_RANKS] = (int64_t)run->graph->shared.tensor,
                      [PEER_COLLECTIVE_AHEAD] = (int64_t)ahead};
    plan_builder_begin_op(&run->builder, kind, PLAN_AXIS_TENSOR, dims, NULL);
}

static void barrier(PlanRun *run, uint8_t lane) {
    peers(run, PLAN_OP_BARRIER, 1, 0);
    plan_builder_launch(&run->builder, lane);
}

/* One rank's part of a tensor x. i: how many places that rank is further on the axis (0: this
 * rank). rows: in how many rows the ranks' parts lie (PlanOperand); 0: all of x is meant. */
typedef struct {
    PlanTensor x;
    uint64_t i;
    uint32_t rows;
} Part;

static uint64_t elements_of(PlanRun *run, Part part) {
    return part.rows ? part.x.elements / run->graph->shared.tensor : part.x.elements;
}

static void part_operand(PlanRun *run, Part part) {
    uint64_t n = elements_of(run, part);
    PlanOperand at =
        plan_run_operand_of(run, (PlanTensor){part.x.storage, part.x.offset + part.i * n, n});
    at.rows = part.rows;
    plan_builder_operand(&run->builder, at);
}

static uint8_t lane_of_nth(PlanRun *run, uint64_t nth) {
    return nth % 2 ? lane_beside(run) : PLAN_LANE_COMPUTE;
}

/* Multiplies one part of a. Where each row of a has a scale, it takes that part of the scales. */
static void multiply(PlanRun *run, const PlanAsyncProduct *p, Part a, Part made, uint8_t lane) {
    Part a_scale =
        p->a_scale.elements > 1 ? (Part){p->a_scale, a.i, a.rows} : (Part){p->a_scale, 0, 0};
    int64_t m = p->m / (int64_t)run->graph->shared.tensor;
    int64_t a_scales = (int64_t)elements_of(run, a_scale), b_scales = (int64_t)p->b_scale.elements;
    int64_t of_dx[] = {[FLOAT8_LINEAR_DX_M] = m,
                       [FLOAT8_LINEAR_DX_N] = p->n,
                       [FLOAT8_LINEAR_DX_K] = p->k,
                       [FLOAT8_LINEAR_DX_SCALED] = 0,
                       [FLOAT8_LINEAR_DX_DY_SCALES] = a_scales,
                       [FLOAT8_LINEAR_DX_W_SCALES] = b_scales,
                       [FLOAT8_LINEAR_DX_TURNED] = true};
    int64_t of_others[] = {[FLOAT8_LINEAR_M] = m,
                           [FLOAT8_LINEAR_N] = p->n,
                           [FLOAT8_LINEAR_K] = p->k,
                           [FLOAT8_LINEAR_X_SCALES] = a_scales,
                           [FLOAT8_LINEAR_W_SCALES] = b_scales};
    plan_builder_begin_op(&run->builder, p->kind, PLAN_AXIS_TENSOR,
                          p->kind == PLAN_OP_FLOAT8_LINEAR_DX ? of_dx : of_others, NULL);
    part_operand(run, a);
    if (plan_op_is_float8_product(p->kind)) {
        part_operand(run, a_scale);
    }
    plan_builder_operand(&run->builder, p->b);
    if (plan_op_is_float8_product(p->kind)) {
        plan_run_operand(run, p->b_scale);
    } else if (p->kind == PLAN_OP_LINEAR) {
        plan_builder_whole(&run->builder, PLAN_NONE); /* a bias */
    }
    part_operand(run, made);
    plan_builder_launch(&run->builder, lane);
}

/* In how many rows a part lies where the order is that of sequences. */
static uint32_t sequences_of(PlanRun *run, const PlanGraphOp *collective) {
    return (uint32_t)plan_graph_dims_of(run->graph, collective)[PLAN_GRAPH_TOKENS_BATCH];
}

/* ---- a gather and products ------------------------------------------------------------------ */

/* _pipelined_multi_all_gather_and_consume(): each rank offers its part; then alternately on two
 * lanes another's is taken and multiplied. */
static void gather_and_multiply(PlanRun *run, const PlanAsync *a, bool gives_all) {
    PlanBuilder *builder = &run->builder;
    PlanTensor own = a->own, all = a->all;
    uint64_t ranks = run->graph->shared.tensor;
    uint32_t sequences = sequences_of(run, a->gather);
    uint32_t rows = plan_dtype_is_float8(plan_run_dtype_of(run, all)) ? sequences : 1;
    barrier(run, PLAN_LANE_COMPUTE);
    peers(run, PLAN_OP_OFFER, own.elements, 0);
    plan_run_operand(run, own);
    plan_builder_launch(builder, PLAN_LANE_COMPUTE);
    barrier(run, PLAN_LANE_COMPUTE);
    plan_builder_wait_lane(builder, lane_beside(run), PLAN_LANE_COMPUTE);
    for (uint64_t nth = 0; nth < ranks; nth++) {
        uint8_t lane = lane_of_nth(run, nth);
        if (nth > 0) {
            peers(run, PLAN_OP_PULL, own.elements, nth);
            plan_run_operand(run, own);
            part_operand(run, (Part){all, nth, rows});
            plan_builder_launch(builder, lane);
        }
        for (unsigned i = 0; i < a->n_products; i++) {
            const PlanAsyncProduct *p = &a->products[i];
            multiply(run, p, nth > 0 ? (Part){all, nth, rows} : (Part){own, 0, 0},
                     (Part){p->made, nth, sequences}, lane);
        }
    }
    if (gives_all) {
        plan_builder_begin_op(builder, PLAN_OP_COPY, PLAN_AXIS_TENSOR,
                              (int64_t[]){(int64_t)own.elements}, NULL);
        plan_run_operand(run, own);
        part_operand(run, (Part){all, 0, rows});
        plan_builder_launch(builder, lane_of_nth(run, ranks));
    }
    plan_builder_wait_lane(builder, PLAN_LANE_COMPUTE, lane_beside(run));
    barrier(run, PLAN_LANE_COMPUTE);
}

/* What is gathered, for backward: a whole copy, in the order of sequences. In float8 it has that
 * order at once, as others read it, too, and is turned for the product that sums over its rows. */
static void reorder_gathered(PlanRun *run) {
    const PlanAsync *a = state_of(run);
    const int64_t *d = plan_graph_dims_of(run->graph, a->gather);
    int64_t ranks = (int64_t)run->graph->shared.tensor;
    int64_t batch = d[PLAN_GRAPH_TOKENS_BATCH], rows = d[PLAN_GRAPH_TOKENS_ROWS];
    int64_t width = d[PLAN_GRAPH_TOKENS_WIDTH];
    int64_t of_parts[] = {[PARTS_COPY_BATCH] = batch,
                          [PARTS_COPY_PARTS] = ranks,
                          [PARTS_COPY_ROWS] = rows,
                          [PARTS_COPY_WIDTH] = width,
                          [PARTS_COPY_BACK] = true};
    int64_t of_all[] = {[FLOAT8_TURN_ROWS] = batch * ranks * rows,
                        [FLOAT8_TURN_COLS] = width,
                        [FLOAT8_TURN_INNER] = 1};
    bool is_float8 = plan_dtype_is_float8(plan_run_dtype_of(run, a->all));
    LAUNCH(run, is_float8 ? PLAN_OP_FLOAT8_TURN : PLAN_OP_PARTS_COPY, is_float8 ? of_all : of_parts,
           NULL, a->all, a->turned);
}

void plan_async_begin_gather(PlanRun *run, const PlanGraphOp *gather, PlanTensor own) {
    g_assert(state_of(run)->own.storage == PLAN_NONE);
    *state_of(run) = PLAN_NO_ASYNC;
    state_of(run)->gather = gather;
    state_of(run)->own = plan_run_ref(run, own);
    state_of(run)->all = plan_run_new_tensor(run, own.elements * run->graph->shared.tensor,
                                             plan_run_dtype_of(run, own), "gathered");
}

PlanTensor plan_async_gathered(PlanRun *run) {
    return plan_run_ref(run, state_of(run)->all);
}

PlanTensor plan_async_reordered(PlanRun *run) {
    PlanAsync *a = state_of(run);
    a->turned = plan_run_new_tensor(run, a->all.elements, plan_run_dtype_of(run, a->all), "turned");
    return plan_run_ref(run, a->turned);
}

static void drop_product(PlanRun *run, const PlanAsyncProduct *p) {
    plan_run_unref(run, p->a_scale);
    plan_run_unref(run, p->b8);
    plan_run_unref(run, p->b_scale);
}

static void end_gather(PlanRun *run, bool gives_all) {
    PlanAsync *a = state_of(run);
    gather_and_multiply(run, a, gives_all);
    if (a->turned.storage != PLAN_NONE) {
        reorder_gathered(run);
    }
    for (unsigned i = 0; i < a->n_products; i++) {
        drop_product(run, &a->products[i]);
    }
    plan_run_unref(run, a->own);
    plan_run_unref(run, a->all);
    plan_run_unref(run, a->turned);
    *a = PLAN_NO_ASYNC;
}

static bool reads_gathered(PlanRun *run, const PlanGraphOp *op) {
    const PlanGraph *graph = run->graph;
    return state_of(run)->gather &&
           input_of(graph, op, 0) == output_of(graph, state_of(run)->gather);
}

/* No layer that comes later, and is not left out as what it makes was kept, reads the same. */
static bool is_last_reader(PlanRun *run, const PlanGraphOp *op) {
    bool again = run->builder.phase == PLAN_PHASE_RECOMPUTE;
    unsigned ahead = 0;
    for (const PlanGraphOp *next = op + 1; !plan_shared_is_scatter(next); next++) {
        ahead += is_layer(next);
        if (is_layer(next) && reads_gathered(run, next) &&
            !(again && plan_run_keeps_product(run, ahead))) {
            return false;
        }
    }
    return true;
}

/* In 16 bits nothing but these products reads what a block gathers that is computed again. In
 * float8 the operator gives it anyhow. */
static bool needs_all(PlanRun *run) {
    return run->checkpoint == PLAN_NONE || run->graph->float8 != PLAN_FLOAT8_NONE;
}

/* ---- a product and a scatter ---------------------------------------------------------------- */

static bool waits_for_scatter(PlanRun *run, const PlanGraphOp *op) {
    const PlanGraph *graph = run->graph;
    return index_of(graph, op) + 1 < (int64_t)graph->ops.len && plan_shared_is_scatter(op + 1) &&
           input_of(graph, op + 1, 0) == output_of(graph, op) && is_replaced(graph, op + 1);
}

bool plan_async_scatters(PlanRun *run, const PlanGraphOp *op) {
    return state_of(run)->layer && state_of(run)->layer + 1 == op;
}

/* _pipelined_produce_and_all2all(): what others will sum up is made first, alternately on two
 * lanes, and goes while the next is made; then this rank's own. One kernel adds up. */
static void multiply_and_swap(PlanRun *run, const PlanAsync *a, PlanTensor partials) {
    PlanBuilder *builder = &run->builder;
    const PlanAsyncProduct *p = &a->products[0];
    uint64_t ranks = run->graph->shared.tensor;
    uint32_t sequences = sequences_of(run, a->layer + 1);
    barrier(run, PLAN_LANE_COMPUTE);
    plan_builder_wait_lane(builder, lane_beside(run), PLAN_LANE_COMPUTE);
    for (uint64_t nth = 1; nth < ranks; nth++) {
        uint8_t lane = lane_of_nth(run, nth);
        Part at = {partials, ranks - nth, 1};
        multiply(run, p, (Part){a->own, nth, sequences}, at, lane);
        barrier(run, lane);
        peers(run, PLAN_OP_SWAP, elements_of(run, at), ranks - nth);
        part_operand(run, at);
        plan_builder_launch(builder, lane);
        barrier(run, lane);
    }
    multiply(run, p, (Part){a->own, 0, sequences}, (Part){partials, 0, 1}, PLAN_LANE_COMPUTE);
    plan_builder_wait_lane(builder, PLAN_LANE_COMPUTE, lane_beside(run));
    barrier(run, PLAN_LANE_COMPUTE);
}

PlanTensor plan_async_scatter(PlanRun *run) {
    PlanAsync *a = state_of(run);
    const PlanAsyncProduct *p = &a->products[0];
    uint64_t elements = (uint64_t)(p->m * p->n);
    PlanTensor partials = plan_run_new_tensor(run, elements, run->graph->dtype, "partials");
    multiply_and_swap(run, a, partials);
    uint64_t rows = run->graph->shared.tensor, cols = elements / rows;
    PlanTensor y = plan_run_new_tensor(run, cols, run->graph->dtype, "scattered");
    LAUNCH(run, PLAN_OP_SUM_ROWS,
           DIMS([SUM_ROWS_ROWS] = (int64_t)rows, [SUM_ROWS_COLS] = (int64_t)cols), NULL, partials,
           y);
    plan_run_unref(run, partials);
    drop_product(run, p);
    plan_run_unref(run, a->own);
    *a = PLAN_NO_ASYNC;
    return y;
}

/* ---- forward -------------------------------------------------------------------------------- */

static void add_product(PlanRun *run, const PlanAsyncProduct *product) {
    PlanAsync *a = state_of(run);
    g_assert(a->n_products < G_N_ELEMENTS(a->products));
    PlanAsyncProduct *p = &a->products[a->n_products++];
    *p = *product;
    plan_run_ref(run, p->a_scale);
    plan_run_ref(run, p->b8);
    plan_run_ref(run, p->b_scale);
}

bool plan_async_multiply(PlanRun *run, const PlanGraphOp *op, PlanTensor x,
                         PlanAsyncProduct product, PlanTensor *ret_made) {
    *ret_made = PLAN_NO_TENSOR;
    if (reads_gathered(run, op)) {
        *ret_made = product.made =
            plan_run_new_tensor(run, (uint64_t)(product.m * product.n), run->graph->dtype, "y");
        add_product(run, &product);
        if (is_last_reader(run, op)) {
            end_gather(run, needs_all(run));
        }
        return true;
    }
    if (waits_for_scatter(run, op)) {
        *state_of(run) = PLAN_NO_ASYNC;
        state_of(run)->layer = op;
        state_of(run)->own = plan_run_ref(run, x);
        add_product(run, &product);
        return true;
    }
    return false;
}

/* The product of a linear layer in 16 bits, forward or for dx. */
static PlanAsyncProduct product_of(PlanRun *run, const PlanGraphOp *layer, PlanOpKind kind) {
    const PlanGraph *graph = run->graph;
    const int64_t *d = plan_graph_dims_of(graph, layer);
    uint32_t w = plan_graph_value_at(graph, input_of(graph, layer, 1))->parameter;
    return (PlanAsyncProduct){.kind = kind,
                              .m = d[LINEAR_M],
                              .n = d[LINEAR_N],
                              .k = d[LINEAR_K],
                              .b = run->flavour->parameter(run, w),
                              .a_scale = PLAN_NO_TENSOR,
                              .b8 = PLAN_NO_TENSOR,
                              .b_scale = PLAN_NO_TENSOR};
}

bool plan_async_linear(PlanRun *run, const PlanGraphOp *op) {
    const PlanGraph *graph = run->graph;
    if (!graph->shared.async_tensor || op->kind != PLAN_OP_LINEAR) {
        return false;
    }
    PlanAsyncProduct product = product_of(run, op, PLAN_OP_LINEAR);
    PlanTensor made, x = plan_run_value(run, input_of(graph, op, 0));
    if (!plan_async_multiply(run, op, x, product, &made)) {
        return false;
    }
    plan_run_give(run, op, 0, made);
    return true;
}

/* ---- backward ------------------------------------------------------------------------------- */

static const PlanGraphOp *layer_before(const PlanGraph *graph, const PlanGraphOp *scatter) {
    const PlanGraphOp *op = scatter - 1;
    g_assert(is_layer(op) && output_of(graph, op) == input_of(graph, scatter, 0));
    return op;
}

/* The block's own gradient comes in the order of sequences; the other a norm's kernel has made, in
 * that of its parts. */
static PlanTensor by_parts(const PlanBackward *b, const PlanGraphOp *layer) {
    PlanRun *run = b->run;
    PlanTensor dy = b->dy[0];
    uint32_t x = input_of(run->graph, layer, 0);
    bool is_blocks = false;
    for (const PlanGraphOp *op = layer - 1;
         !plan_shared_is_scatter(op) && op > op_at(run->graph, 0); op--) {
        is_blocks |= op->kind == PLAN_OP_SWIGLU && output_of(run->graph, op) == x;
    }
    if (!is_blocks) {
        return plan_run_ref(run, dy);
    }
    PlanTensor copy = plan_run_new_tensor(run, dy.elements, plan_run_dtype_of(run, dy), "by_parts");
    LAUNCH(run, PLAN_OP_COPY, DIMS((int64_t)dy.elements), NULL, dy, copy);
    return copy;
}

PlanTensor plan_async_gather_gradient(const PlanBackward *b) {
    PlanRun *run = b->run;
    const PlanGraph *graph = run->graph;
    const PlanGraphOp *layer = layer_before(graph, b->op);
    PlanTensor own = by_parts(b, layer);
    plan_async_begin_gather(run, b->op, own);
    plan_run_unref(run, own);
    PlanAsyncProduct product = product_of(run, layer, PLAN_OP_LINEAR_DX);
    uint64_t elements = (uint64_t)(product.m * product.k);
    product.made = plan_run_new_tensor(run, elements, graph->dtype, "dx");
    add_product(run, &product);
    PlanTensor all = plan_async_reordered(run);
    end_gather(run, true);
    state_of(run)->layer = layer;
    state_of(run)->dx = product.made;
    return all;
}

PlanTensor plan_async_take_dx(const PlanBackward *b) {
    PlanAsync *a = state_of(b->run);
    if (a->layer != b->op || a->dx.storage == PLAN_NONE) {
        return PLAN_NO_TENSOR;
    }
    PlanTensor dx = a->dx;
    *a = PLAN_NO_ASYNC;
    return dx;
}

bool plan_async_awaits_dx(PlanRun *run) {
    return state_of(run)->gather != NULL;
}

void plan_async_make_dx(PlanRun *run, const PlanAsyncProduct *product) {
    add_product(run, product);
    end_gather(run, true);
}
