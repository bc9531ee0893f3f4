/* models/layers/transformers-experts.c - routing and experts, op by op as transformers calls
 * PyTorch.
 *
 * A token's scores are a softmax in fp32 of the router's product in the dtype of compute; top-k of
 * them, divided by their sum in place. Pairs (of a token and an expert) are sorted by expert, their
 * tokens' rows gathered, gate and up made by one grouped product, down by another; rows are
 * scored, put back in the order of the pairs, and those of each token added up. Where scores stay
 * in fp32, as Mixtral's do, the rows are in fp32 from there on. What balances the experts,
 * output_router_logits, is off, as it is unless told otherwise.
 */
#include "models/layers/transformers-experts.h"

#include <math.h>

static const double INIT_STD = 0.02; /* initializer_range of both configurations */

/* ---- declaring ------------------------------------------------------------------------------ */

static uint32_t declare_weights(const ModelWalk *w, const ModelExperts *experts, uint32_t module,
                                const char *name, uint64_t out, uint64_t in) {
    int64_t dims[] = {(int64_t)experts->n, (int64_t)out, (int64_t)in};
    return plan_graph_parameter(w->graph, module, name, 3, dims, PLAN_INIT_NORMAL, INIT_STD);
}

static uint32_t declare_module(const ModelWalk *w, const ModelExperts *experts, uint32_t parent,
                               const char *name, const char *class_name) {
    g_autofree char *whole = g_strconcat(experts->transformers, class_name, NULL);
    return plan_graph_module(w->graph, parent, name, whole, false);
}

static void declare_router(const ModelWalk *w, const ModelExperts *experts, ModelExpertLayer *layer,
                           const char *name) {
    int64_t dims[] = {(int64_t)experts->n, (int64_t)w->width};
    layer->router = declare_module(w, experts, layer->module, name, "TopKRouter");
    layer->score = (ModelLayer){.module = PLAN_NONE, /* a function's */
                                .bias = PLAN_NONE,
                                .weight = plan_graph_parameter(w->graph, layer->router, "weight", 2,
                                                               dims, PLAN_INIT_NORMAL, INIT_STD)};
}

static void declare_experts(const ModelWalk *w, const ModelExperts *experts,
                            ModelExpertLayer *layer) {
    layer->experts = declare_module(w, experts, layer->module, "experts", "Experts");
    layer->gate_up =
        declare_weights(w, experts, layer->experts, "gate_up_proj", 2 * experts->ffn, w->width);
    layer->down = declare_weights(w, experts, layer->experts, "down_proj", w->width, experts->ffn);
    layer->act = plan_graph_module(w->graph, layer->experts, "act_fn", "SiLUActivation", false);
}

static uint32_t declare_biases(const ModelWalk *w, const ModelExperts *experts, uint32_t module,
                               const char *name, uint64_t n, bool is_router) {
    int64_t dims[] = {(int64_t)experts->n, (int64_t)n};
    return plan_graph_parameter(w->graph, module, name, is_router ? 1 : 2, dims,
                                is_router ? PLAN_INIT_NORMAL : PLAN_INIT_FILL,
                                is_router ? INIT_STD : 0);
}

/* Its weights lie as they are multiplied, [experts, in, out], gate and up number by number. */
static ModelExpertLayer declare_clamped(const ModelWalk *w, const ModelExperts *experts,
                                        uint32_t parent, const char *name) {
    ModelExpertLayer layer = {.module = declare_module(w, experts, parent, name, "MLP"),
                              .narrow_scores = true};
    uint64_t both = 2 * experts->ffn;
    declare_router(w, experts, &layer, "router");
    layer.score.bias = declare_biases(w, experts, layer.router, "bias", 0, true);
    layer.experts = declare_module(w, experts, layer.module, "experts", "Experts");
    layer.gate_up = declare_weights(w, experts, layer.experts, "gate_up_proj", w->width, both);
    layer.gate_up_bias =
        declare_biases(w, experts, layer.experts, "gate_up_proj_bias", both, false);
    layer.down = declare_weights(w, experts, layer.experts, "down_proj", experts->ffn, w->width);
    layer.down_bias = declare_biases(w, experts, layer.experts, "down_proj_bias", w->width, false);
    return layer;
}

ModelExpertLayer model_transformers_experts_declare(const ModelWalk *w, const ModelExperts *experts,
                                                    uint32_t parent, const char *name) {
    if (experts->are_clamped) {
        return declare_clamped(w, experts, parent, name);
    }
    bool is_mixtral = g_str_equal(experts->transformers, "Mixtral");
    bool is_router_first = is_mixtral || g_str_equal(experts->transformers, "Olmoe");
    ModelExpertLayer layer = {.module = declare_module(w, experts, parent, name, "SparseMoeBlock"),
                              .narrow_scores = !is_mixtral};
    if (is_router_first) {
        declare_router(w, experts, &layer, "gate");
    }
    declare_experts(w, experts, &layer);
    if (!is_router_first) {
        declare_router(w, experts, &layer, "gate");
    }
    return layer;
}

/* ---- routing -------------------------------------------------------------------------------- */

/* What goes from step to step of a walk; pairs: of a token and one of its experts. */
typedef struct {
    const ModelWalk *w;
    const ModelExperts *experts;
    const ModelExpertLayer *layer;
    int64_t rows, pairs, n, per_token;
} Walk;

/* elements: of the result. */
static uint32_t run(const Walk *walk, PlanOpKind kind, const uint32_t *inputs, PlanDtype dtype,
                    int64_t elements, const int64_t *dims) {
    return plan_graph_op(walk->w->graph, kind, inputs, dtype, (uint64_t)elements, dims, NULL);
}

/* By their sum, where they lie; backward reads a copy of them. */
static uint32_t run_normalize(const Walk *walk, uint32_t top) {
    PlanGraph *graph = walk->w->graph;
    int64_t shape[] = {[TOTAL_COLUMNS_ROWS] = walk->rows, [TOTAL_COLUMNS_COLS] = walk->per_token};
    uint32_t sum = run(walk, PLAN_OP_TOTAL_COLUMNS, &top, PLAN_FP32, walk->rows, shape);
    if (graph->evaluates) {
        return plan_graph_op_into(graph, top, PLAN_OP_DIVIDE_COLUMN, (uint32_t[]){top, sum}, shape);
    }
    uint32_t copy = run(walk, PLAN_OP_COPY, &top, PLAN_FP32, walk->pairs, &walk->pairs);
    uint32_t y =
        plan_graph_op_into(graph, top, PLAN_OP_DIVIDE_COLUMN, (uint32_t[]){copy, sum}, shape);
    plan_graph_let_go_after(graph, sum, copy);
    return y;
}

/* raw: the product; chosen: each token's experts, by number; top: their scores. */
typedef struct {
    uint32_t raw, top, chosen;
} Routed;

/* A softmax of the chosen scores alone, in the dtype of compute. */
static Routed run_router_of_chosen(const Walk *walk, uint32_t x) {
    const ModelWalk *w = walk->w;
    PlanGraph *graph = w->graph;
    int64_t dims[] = {
        [TOP_K_ROWS] = walk->rows, [TOP_K_COLS] = walk->n, [TOP_K_K] = walk->per_token};
    int64_t of_chosen[] = {[SOFTMAX_ROWS] = walk->rows, [SOFTMAX_COLS] = walk->per_token};
    PlanGraphResult results[] = {{graph->dtype, (uint64_t)walk->pairs},
                                 {PLAN_INT64, (uint64_t)walk->pairs}};
    plan_graph_enter(graph, walk->layer->router, &x, 1);
    uint32_t raw = model_run_linear(w, &walk->layer->score, x, walk->experts->n, w->width);
    uint32_t top = plan_graph_op_making(graph, PLAN_OP_TOP_K, &raw, results, dims, NULL);
    Routed routed = {raw, PLAN_NONE, top + 1};
    routed.top = run(walk, PLAN_OP_SOFTMAX, &top, graph->dtype, walk->pairs, of_chosen);
    plan_graph_hold(graph, top);
    plan_graph_leave(graph, (uint32_t[]){raw, routed.top, routed.chosen}, 3);
    return routed;
}

static Routed run_router(const Walk *walk, uint32_t x) {
    if (walk->experts->are_clamped) {
        return run_router_of_chosen(walk, x);
    }
    const ModelWalk *w = walk->w;
    PlanGraph *graph = w->graph;
    int64_t dims[] = {[TOP_K_ROWS] = walk->rows,
                      [TOP_K_COLS] = walk->n,
                      [TOP_K_K] = walk->per_token}; /* SOFTMAX takes the first of them */
    PlanGraphResult results[] = {{PLAN_FP32, (uint64_t)walk->pairs},
                                 {PLAN_INT64, (uint64_t)walk->pairs}};
    plan_graph_enter(graph, walk->layer->router, &x, 1);
    uint32_t flat = plan_graph_reshaped(graph, x); /* of rows already; it is asked for again */
    uint32_t raw = model_run_linear(w, &walk->layer->score, flat, walk->experts->n, w->width);
    uint32_t wide = model_run_widen(w, raw);
    uint32_t scores = run(walk, PLAN_OP_SOFTMAX, &wide, PLAN_FP32, walk->rows * walk->n, dims);
    plan_graph_hold(graph, scores);
    uint32_t top = plan_graph_op_making(graph, PLAN_OP_TOP_K, &scores, results, dims, NULL);
    Routed routed = {raw, top, top + 1};
    if (!walk->experts->keeps_scores) {
        routed.top = run_normalize(walk, top);
    }
    if (walk->layer->narrow_scores) {
        routed.top = plan_graph_cast(graph, routed.top, graph->dtype);
    }
    plan_graph_leave(graph, (uint32_t[]){raw, routed.top, routed.chosen}, 3);
    return routed;
}

/* ---- the experts ---------------------------------------------------------------------------- */

/* Pairs in order of their experts: where they stood, the rows of their tokens, their scores, and
 * where each expert's end. */
typedef struct {
    uint32_t sorted, order, rows, scores, ends;
} Sorted;

/* Python's variables hold all but the pairs' tokens. */
static Sorted run_sort(const Walk *walk, const Routed *routed, uint32_t x) {
    const ModelWalk *w = walk->w;
    PlanGraph *graph = w->graph;
    int64_t pairs = walk->pairs, n = walk->n, width = (int64_t)w->width;
    PlanGraphResult results[] = {{PLAN_INT64, (uint64_t)pairs}, {PLAN_INT64, (uint64_t)pairs}};
    PlanDtype scored = walk->layer->narrow_scores ? graph->dtype : PLAN_FP32;
    uint32_t sorted = plan_graph_op_making(graph, PLAN_OP_SORT, &routed->chosen, results,
                                           (int64_t[]){[SORT_N] = pairs, [SORT_GROUPS] = n}, NULL);
    Sorted s = {.sorted = sorted, .order = sorted + 1};
    uint32_t tokens = run(walk, PLAN_OP_DIVIDE_DOWN, &s.order, PLAN_INT64, pairs,
                          (int64_t[]){[DIVIDE_DOWN_N] = pairs, [DIVIDE_DOWN_BY] = walk->per_token});
    s.rows =
        run(walk, PLAN_OP_ROWS_OF, (uint32_t[]){x, tokens}, graph->dtype, pairs * width,
            (int64_t[]){[ROWS_OF_N] = pairs, [ROWS_OF_WIDTH] = width, [ROWS_OF_ROWS] = walk->rows});
    s.scores = run(walk, PLAN_OP_ROWS_OF, (uint32_t[]){routed->top, s.order}, scored, pairs,
                   (int64_t[]){[ROWS_OF_N] = pairs, [ROWS_OF_WIDTH] = 1, [ROWS_OF_ROWS] = pairs});
    uint32_t narrow = run(walk, PLAN_OP_NARROW, &sorted, PLAN_INT32, pairs, &pairs);
    uint32_t tally = run(walk, PLAN_OP_TALLY, &narrow, PLAN_INT32, n,
                         (int64_t[]){[TALLY_N] = pairs, [TALLY_GROUPS] = n});
    s.ends = run(walk, PLAN_OP_TALLY_ENDS, &tally, PLAN_INT32, n, &n);
    uint32_t held[] = {sorted, s.order, s.rows, s.scores, narrow, tally, s.ends};
    for (unsigned i = 0; i < G_N_ELEMENTS(held); i++) {
        plan_graph_hold(graph, held[i]);
    }
    return s;
}

typedef struct {
    PlanOpKind kind;
    uint32_t weight;
    uint64_t out, in;
} Product;

/* Of rows in order of their experts, each with its own expert's weight. */
static uint32_t run_grouped(const Walk *walk, const Product *product, uint32_t x, uint32_t ends) {
    PlanGraph *graph = walk->w->graph;
    int64_t dims[] = {[GROUPED_PARTS_M] = walk->pairs,
                      [GROUPED_PARTS_N] = (int64_t)product->out,
                      [GROUPED_PARTS_K] = (int64_t)product->in,
                      [GROUPED_PARTS_GROUPS] = walk->n,
                      [GROUPED_PARTS_PARTS] = 2}; /* GROUPED_LINEAR takes the first of them */
    return plan_graph_op(graph, product->kind, (uint32_t[]){x, product->weight, ends}, graph->dtype,
                         (uint64_t)walk->pairs * product->out, dims, NULL);
}

/* As run_joined_hidden() in llama-hidden.c has gate and up: one matrix behind the other. */
static uint32_t run_swiglu(const Walk *walk, const Sorted *s) {
    const ModelWalk *w = walk->w;
    PlanGraph *graph = w->graph;
    uint64_t ffn = walk->experts->ffn, n = (uint64_t)walk->pairs * ffn;
    uint32_t parts[2];
    const Product gate_up = {PLAN_OP_GROUPED_PARTS, walk->layer->gate_up, 2 * ffn, w->width};
    uint32_t both = run_grouped(walk, &gate_up, s->rows, s->ends);
    plan_graph_parts(graph, both, (uint64_t)walk->pairs, (uint64_t[]){ffn, ffn}, 2, parts);
    plan_graph_enter(graph, walk->layer->act, parts, 1);
    uint32_t open = model_run_elementwise(w, PLAN_OP_SILU, parts[0], PLAN_NONE, n);
    plan_graph_leave(graph, &open, 1);
    uint32_t hidden = model_run_elementwise(w, PLAN_OP_MUL, open, parts[1], n);
    plan_graph_keep(graph, both); /* until the name that it has takes hidden */
    plan_graph_let_go_after(graph, both, open);
    return hidden;
}

static uint32_t run_products(const Walk *walk, const Sorted *s) {
    const Product down = {PLAN_OP_GROUPED_LINEAR, walk->layer->down, walk->w->width,
                          walk->experts->ffn};
    return run_grouped(walk, &down, run_swiglu(walk, s), s->ends);
}

/* ---- gpt-oss' hidden layer ------------------------------------------------------------------- */

static const double CLAMPED_ALPHA = 1.702, CLAMPED_LIMIT = 7;

/* The biases of the pairs' experts. */
static uint32_t run_biases(const Walk *walk, const Sorted *s, uint32_t biases, uint64_t width) {
    int64_t dims[] = {
        [ROWS_OF_N] = walk->pairs, [ROWS_OF_WIDTH] = (int64_t)width, [ROWS_OF_ROWS] = walk->n};
    return run(walk, PLAN_OP_ROWS_OF, (uint32_t[]){biases, s->sorted}, walk->w->graph->dtype,
               walk->pairs * (int64_t)width, dims);
}

/* A product, to which biases are added where it lies. */
static uint32_t run_grouped_with(const Walk *walk, const Product *product, uint32_t x,
                                 uint32_t ends, uint32_t biases) {
    uint32_t y = run_grouped(walk, product, x, ends);
    int64_t n = walk->pairs * (int64_t)product->out, dims[] = {[ADD_N] = n, [ADD_NB] = n};
    return plan_graph_op_into(walk->w->graph, y, PLAN_OP_ADD, (uint32_t[]){y, biases}, dims);
}

/* Every other number of rows, from the first or the second on. */
static uint32_t every_other(const Walk *walk, uint32_t both, uint64_t from) {
    uint64_t n = (uint64_t)walk->pairs * walk->experts->ffn;
    return plan_graph_columns(walk->w->graph, both, &(PlanGraphColumns){n, 1, from, 2, 1, 0});
}

static uint32_t run_clamp(const Walk *walk, uint32_t half, int64_t from, double least) {
    uint64_t n = (uint64_t)walk->pairs * walk->experts->ffn;
    int64_t dims[] = {[CLAMP_COLUMNS_ROWS] = (int64_t)n,
                      [CLAMP_COLUMNS_COLS] = 1,
                      [CLAMP_COLUMNS_WIDTH] = 2,
                      [CLAMP_COLUMNS_FROM] = from};
    double limits[] = {[CLAMP_COLUMNS_LEAST] = least, [CLAMP_COLUMNS_MOST] = CLAMPED_LIMIT};
    return plan_graph_op(walk->w->graph, PLAN_OP_CLAMP_COLUMNS, &half, walk->w->graph->dtype, n,
                         dims, limits);
}

/* (up + 1) * gate * sigmoid(alpha * gate); gate, up and glu are variables of that function. */
static uint32_t run_clamped(const Walk *walk, uint32_t both) {
    const ModelWalk *w = walk->w;
    uint64_t n = (uint64_t)walk->pairs * walk->experts->ffn;
    uint32_t even = every_other(walk, both, 0), odd = every_other(walk, both, 1);
    uint32_t gate = run_clamp(walk, even, 0, -INFINITY);
    uint32_t up = run_clamp(walk, odd, 1, -CLAMPED_LIMIT);
    uint32_t steep = model_run_number(w, PLAN_OP_TIMES_NUMBER, gate, n, CLAMPED_ALPHA);
    uint32_t open = model_run_elementwise(w, PLAN_OP_SIGMOID, steep, PLAN_NONE, n);
    uint32_t glu = model_run_elementwise(w, PLAN_OP_MUL, gate, open, n);
    uint32_t more = model_run_number(w, PLAN_OP_ADD_NUMBER, up, n, 1);
    uint32_t hidden = model_run_elementwise(w, PLAN_OP_MUL, more, glu, n);
    uint32_t held[] = {more, gate, up, glu, both};
    for (unsigned i = 1; i < G_N_ELEMENTS(held); i++) {
        plan_graph_keep(w->graph, held[i]);
        plan_graph_let_go_after(w->graph, held[i], held[i - 1]);
    }
    return hidden;
}

static uint32_t run_clamped_products(const Walk *walk, const Sorted *s) {
    PlanGraph *graph = walk->w->graph;
    const ModelExpertLayer *layer = walk->layer;
    uint64_t ffn = walk->experts->ffn, width = walk->w->width;
    const Product gate_up = {PLAN_OP_GROUPED_PRODUCT, layer->gate_up, 2 * ffn, width},
                  down = {PLAN_OP_GROUPED_PRODUCT, layer->down, width, ffn};
    uint32_t of_both = run_biases(walk, s, layer->gate_up_bias, 2 * ffn);
    uint32_t both = run_grouped_with(walk, &gate_up, s->rows, s->ends, of_both);
    uint32_t hidden = run_clamped(walk, both);
    uint32_t of_down = run_biases(walk, s, layer->down_bias, width);
    plan_graph_give_name(graph, of_both, of_down);
    plan_graph_hold(graph, of_down);
    return run_grouped_with(walk, &down, hidden, s->ends, of_down);
}

/* ---- all ------------------------------------------------------------------------------------- */

/* Rows in order of their experts, scored and put back in the order of the pairs, those of each
 * token added up. */
static uint32_t run_back(const Walk *walk, const Sorted *s, uint32_t made) {
    const ModelWalk *w = walk->w;
    PlanGraph *graph = w->graph;
    int64_t pairs = walk->pairs, width = (int64_t)w->width;
    PlanDtype dtype = walk->layer->narrow_scores ? graph->dtype : PLAN_FP32;
    PlanGraphResult results[] = {{PLAN_INT64, (uint64_t)pairs}, {PLAN_INT64, (uint64_t)pairs}};
    uint32_t scored =
        run(walk, PLAN_OP_MUL_COLUMN, (uint32_t[]){made, s->scores}, dtype, pairs * width,
            (int64_t[]){[MUL_COLUMN_ROWS] = pairs, [MUL_COLUMN_COLS] = width});
    uint32_t places = plan_graph_op_making(graph, PLAN_OP_INVERT, &s->order, results, &pairs, NULL);
    plan_graph_hold(graph, places);
    uint32_t back =
        run(walk, PLAN_OP_ROWS_OF, (uint32_t[]){scored, places}, dtype, pairs * width,
            (int64_t[]){[ROWS_OF_N] = pairs, [ROWS_OF_WIDTH] = width, [ROWS_OF_ROWS] = pairs});
    plan_graph_give_name(graph, scored, back);
    plan_graph_hold(graph, back);
    plan_graph_let_go_after(graph, places, back); /* in the order of the names that hold them */
    uint32_t sums = run(walk, PLAN_OP_SUM_EACH, &back, dtype, walk->rows * width,
                        (int64_t[]){[SUM_EACH_ROWS] = walk->rows,
                                    [SUM_EACH_EACH] = walk->per_token,
                                    [SUM_EACH_WIDTH] = width});
    plan_graph_hold(graph, sums);
    return plan_graph_cast(graph, sums, graph->dtype);
}

static uint32_t run_experts(const Walk *walk, const Routed *routed, uint32_t x) {
    const ModelWalk *w = walk->w;
    plan_graph_enter(w->graph, walk->layer->experts, (uint32_t[]){x, routed->chosen, routed->top},
                     3);
    Sorted s = run_sort(walk, routed, x);
    uint32_t made = (walk->experts->are_clamped ? run_clamped_products : run_products)(walk, &s);
    plan_graph_hold(w->graph, made);
    uint32_t y = run_back(walk, &s, made);
    plan_graph_leave(w->graph, &y, 1);
    return y;
}

uint32_t model_transformers_experts_run(const ModelWalk *w, const ModelExperts *experts,
                                        const ModelExpertLayer *layer, uint32_t x) {
    Walk walk = {.w = w,
                 .experts = experts,
                 .layer = layer,
                 .rows = (int64_t)w->rows,
                 .pairs = (int64_t)(w->rows * experts->per_token),
                 .n = (int64_t)experts->n,
                 .per_token = (int64_t)experts->per_token};
    PlanGraph *graph = w->graph;
    plan_graph_enter(graph, layer->module, &x, 1);
    Routed routed = run_router(&walk, x);
    plan_graph_hold(graph, routed.raw);
    plan_graph_hold(graph, routed.top);
    plan_graph_hold(graph, routed.chosen);
    plan_graph_let_go_after(graph, routed.chosen, routed.top);
    uint32_t y = run_experts(&walk, &routed, x);
    plan_graph_leave(graph, &y, 1);
    if (experts->scores) {
        *experts->scores = routed.top;
    }
    return y;
}
