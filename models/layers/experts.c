/* models/layers/experts.c - a mixture of experts, op by op as torchtitan's MoE calls PyTorch.
 *
 * torchtitan/models/common/moe.py (71213cf1) and token_dispatcher.py (e04d67ef), 2026, without
 * expert parallelism: the router's scores in fp32 and their softmax, top-k, a token's scores by
 * their sum; (token, expert) pairs sorted by expert, the tokens' rows gathered in that order,
 * SwiGLU by three products grouped by expert, rows scored in fp32 and added to their tokens' rows
 * of the shared expert's output, or of zeros. The router counts tokens by expert, to watch the
 * balance; what then adds that to a buffer, in place, is left out. A bias that balances is added
 * where experts are chosen; what moves it is left out: once a step, an all-reduce of these counts
 * and a few kernels of as many numbers as there are experts (register_moe_load_balancing_hook). Of
 * groups of experts those whose two best scores are the largest are kept
 * (_get_node_limited_routing_scores).
 * In fp32 the products stay in fp32, where torchtitan casts.
 *
 * Where ranks share the experts (shared.expert), rows go to the ranks that have them and back
 * (plan/autograd/shared/exchange.h says in whose way).
 */
#include "models/layers/experts.h"

#include <math.h>

#include "models/layers/router.h"
#include "models/layers/transformers-experts.h"

static const double INIT_STD = 0.02; /* torchtitan's, of a truncated normal distribution */

ModelExperts model_experts_of(const ModelNetwork *network) {
    return (ModelExperts){.n = network->experts,
                          .per_token = network->experts_per_token,
                          .ffn = network->expert_ffn,
                          .shared_ffn = network->shared_ffn,
                          .keeps_scores = network->keeps_scores,
                          .in_turn = network->routes_in_turn,
                          .apart = network->scores_apart,
                          .has_bias = network->route_bias,
                          .scale = network->route_scale ? network->route_scale : 1,
                          .groups = network->expert_groups,
                          .are_clamped = network->sinks,
                          .groups_per_token = network->groups_per_token};
}

static uint32_t declare_weights(const ModelWalk *w, const ModelExperts *experts, uint32_t module,
                                const char *name, uint64_t out, uint64_t in) {
    int64_t dims[] = {(int64_t)(experts->n / w->graph->shared.expert), (int64_t)out, (int64_t)in};
    uint32_t weights =
        plan_graph_parameter(w->graph, module, name, 3, dims, PLAN_INIT_NORMAL, INIT_STD);
    if (w->graph->shared.expert > 1) {
        plan_graph_split_parameter(w->graph, weights,
                                   w->graph->shared.cuts_experts ? PLAN_SPLIT_CUT_EXPERTS
                                                                 : PLAN_SPLIT_EXPERTS);
    }
    return weights;
}

ModelExpertLayer model_experts_declare(const ModelWalk *w, const ModelExperts *experts,
                                       uint32_t parent, const char *name) {
    if (experts->transformers) {
        return model_transformers_experts_declare(w, experts, parent, name);
    }
    ModelExpertLayer layer = {.module =
                                  plan_graph_module(w->graph, parent, name, "Experts", false)};
    uint32_t grouped =
        plan_graph_module(w->graph, layer.module, "experts", "GroupedExperts", false);
    layer.experts = grouped;
    layer.gate = declare_weights(w, experts, grouped, "gate", experts->ffn, w->width);
    layer.down = declare_weights(w, experts, grouped, "down", w->width, experts->ffn);
    layer.up = declare_weights(w, experts, grouped, "up", experts->ffn, w->width);
    layer.router = plan_graph_module(w->graph, layer.module, "router", "Router", false);
    layer.score = model_linear(w, layer.router, "gate", experts->n, w->width, false);
    if (experts->shared_ffn) {
        uint64_t ffn = experts->shared_ffn;
        layer.shared = plan_graph_module(w->graph, layer.module, "shared", "SwiGlu", false);
        layer.shared_gate = model_linear(w, layer.shared, "gate", ffn, w->width, false);
        layer.shared_up = model_linear(w, layer.shared, "up", ffn, w->width, false);
        layer.shared_down = model_linear(w, layer.shared, "down", w->width, ffn, false);
    }
    if (experts->has_bias) {
        layer.bias = plan_graph_buffer_between(w->graph, PLAN_FP32, experts->n);
    }
    plan_graph_buffer_between(w->graph, PLAN_FP32, experts->n); /* tokens by expert */
    return layer;
}

/* Pairs in order of their experts: their scores, their tokens, and how many each expert has. */
typedef struct {
    uint32_t scores, tokens, counts;
} Sorted;

static Sorted run_sort(const ModelExpertWalk *walk, const ModelRouted *routed) {
    PlanGraph *graph = walk->w->graph;
    int64_t n = (int64_t)walk->pairs, groups = (int64_t)walk->experts->n;
    PlanGraphResult results[] = {{PLAN_INT64, walk->pairs}, {PLAN_INT64, walk->pairs}};
    uint32_t counts = model_router_count(walk, routed->chosen);
    uint32_t sorted = plan_graph_op_making(graph, PLAN_OP_SORT, &routed->chosen, results,
                                           (int64_t[]){[SORT_N] = n, [SORT_GROUPS] = groups}, NULL);
    uint32_t order = sorted + 1;
    uint32_t scores = model_expert_op(
        walk, PLAN_OP_ROWS_OF, (uint32_t[]){routed->top, order},
        (PlanGraphResult){PLAN_FP32, walk->pairs},
        (int64_t[]){[ROWS_OF_N] = n, [ROWS_OF_WIDTH] = 1, [ROWS_OF_ROWS] = n}, NULL);
    uint32_t tokens = model_expert_op(
        walk, PLAN_OP_DIVIDE_DOWN, &order, (PlanGraphResult){PLAN_INT64, walk->pairs},
        (int64_t[]){[DIVIDE_DOWN_N] = n, [DIVIDE_DOWN_BY] = (int64_t)walk->experts->per_token},
        NULL);
    plan_graph_keep(graph, routed->counts); /* until the name that it has takes the others */
    plan_graph_let_go_after(graph, routed->counts, order);
    return (Sorted){scores, tokens, counts};
}

/* ---- the experts ---------------------------------------------------------------------------- */

static uint32_t run_grouped(const ModelExpertWalk *walk, uint32_t x, uint32_t weight, uint32_t ends,
                            uint64_t out, uint64_t in) {
    PlanGraph *graph = walk->w->graph;
    int64_t dims[] = {[GROUPED_LINEAR_M] = (int64_t)walk->own,
                      [GROUPED_LINEAR_N] = (int64_t)out,
                      [GROUPED_LINEAR_K] = (int64_t)in,
                      [GROUPED_LINEAR_GROUPS] = (int64_t)(walk->experts->n / graph->shared.expert)};
    return plan_graph_op(graph, PLAN_OP_GROUPED_LINEAR, (uint32_t[]){x, weight, ends}, graph->dtype,
                         walk->own * out, dims, NULL);
}

/* Rows in order of experts; how many each has. */
typedef struct {
    uint32_t rows, counts;
} ByExpert;

/* What goes into the last product: SwiGLU, whose two factors eager code makes one by one. */
static uint32_t run_opened(const ModelExpertWalk *walk, const ModelExpertLayer *layer, uint32_t x,
                           uint32_t gate, uint32_t ends) {
    const ModelWalk *w = walk->w;
    uint64_t ffn = walk->experts->ffn, n = walk->own * ffn;
    if (w->graph->now.in_parts) {
        uint32_t up = run_grouped(walk, x, layer->up, ends, ffn, w->width);
        return model_run_elementwise(w, PLAN_OP_SWIGLU, gate, up, n);
    }
    uint32_t open = model_run_elementwise(w, PLAN_OP_SILU, gate, PLAN_NONE, n);
    uint32_t up = run_grouped(walk, x, layer->up, ends, ffn, w->width);
    uint32_t hidden = model_run_elementwise(w, PLAN_OP_MUL, open, up, n);
    plan_graph_let_go_after(w->graph, open, up); /* it has the name that hidden takes */
    plan_graph_hold(w->graph, hidden);
    return hidden;
}

static uint32_t run_products(const ModelExpertWalk *walk, const ModelExpertLayer *layer,
                             ByExpert given) {
    const ModelWalk *w = walk->w;
    uint64_t ffn = walk->experts->ffn, own = walk->experts->n / w->graph->shared.expert;
    int64_t groups = (int64_t)own;
    model_begin_part(w);
    uint32_t ends = model_expert_op(walk, PLAN_OP_ENDS, &given.counts,
                                    (PlanGraphResult){PLAN_INT32, own}, &groups, NULL);
    model_expert_hold(walk, ends);
    uint32_t gate = run_grouped(walk, given.rows, layer->gate, ends, ffn, w->width);
    uint32_t hidden = run_opened(walk, layer, given.rows, gate, ends);
    uint32_t y = run_grouped(walk, hidden, layer->down, ends, w->width, ffn);
    model_end_part(w);
    return y;
}

/* To the ranks that have the experts; *ret_order: where each row was, of those that came. */
static ByExpert run_dispatch(const ModelExpertWalk *walk, const ModelExpertLayer *layer,
                             ByExpert given, uint32_t *ret_order) {
    PlanGraph *graph = walk->w->graph;
    uint64_t n = walk->experts->n, own = walk->own, width = walk->w->width;
    int64_t dims[] = {[ROWS_OF_N] = (int64_t)own,
                      [ROWS_OF_WIDTH] = (int64_t)width,
                      [ROWS_OF_ROWS] = (int64_t)own};
    ByExpert made;
    plan_graph_call(graph, layer->experts);
    uint32_t splits = plan_graph_exchange_splits(graph, given.counts, n);
    plan_graph_hold(graph, splits);
    uint32_t taken = plan_graph_exchange_send(graph, given.rows, own * width);
    plan_graph_hold(graph, taken);
    plan_graph_let_go_after(graph, splits, taken);
    made.counts = plan_graph_exchange_order(graph, splits, n, own, ret_order);
    plan_graph_exchange_await(graph, taken);
    made.rows = model_expert_op(walk, PLAN_OP_ROWS_OF, (uint32_t[]){taken, *ret_order},
                                (PlanGraphResult){graph->dtype, own * width}, dims, NULL);
    plan_graph_return(graph);
    return made;
}

/* And back, in the order in which they came. */
static uint32_t run_return(const ModelExpertWalk *walk, uint32_t made, uint32_t order) {
    uint64_t width = walk->w->width;
    int64_t dims[] = {[PLACE_ROWS_N] = (int64_t)walk->own, [PLACE_ROWS_WIDTH] = (int64_t)width};
    PlanGraph *graph = walk->w->graph;
    uint32_t placed =
        model_expert_op(walk, PLAN_OP_PLACE_ROWS, (uint32_t[]){made, order},
                        (PlanGraphResult){graph->dtype, walk->own * width}, dims, NULL);
    return plan_graph_exchange_send(graph, placed, walk->pairs * width);
}

static uint32_t run_experts(const ModelExpertWalk *walk, const ModelExpertLayer *layer,
                            ByExpert given) {
    PlanGraph *graph = walk->w->graph;
    uint32_t order, y;
    plan_graph_enter(graph, layer->experts, (uint32_t[]){given.rows, given.counts}, 2);
    if (graph->shared.expert == 1) {
        y = run_products(walk, layer, given);
    } else {
        ByExpert own = run_dispatch(walk, layer, given, &order);
        plan_graph_hold(graph, own.rows);
        plan_graph_hold(graph, own.counts);
        plan_graph_hold(graph, order);
        plan_graph_let_go_after(graph, own.counts, own.rows);
        plan_graph_let_go_after(graph, order, own.counts);
        plan_graph_call(graph, layer->experts);
        uint32_t made = run_products(walk, layer, own);
        plan_graph_return(graph);
        plan_graph_hold(graph, made);
        y = run_return(walk, made, order);
    }
    plan_graph_leave(graph, &y, 1);
    return y;
}

/* Every token's; or zeros. */
static uint32_t run_shared(const ModelExpertWalk *walk, const ModelExpertLayer *layer, uint32_t x) {
    const ModelWalk *w = walk->w;
    uint64_t ffn = walk->experts->shared_ffn, elements = w->rows * w->width;
    int64_t n = (int64_t)elements;
    double zero = 0;
    if (!ffn) {
        return model_expert_op(walk, PLAN_OP_FILL, NULL,
                               (PlanGraphResult){w->graph->dtype, elements}, &n, &zero);
    }
    bool fused = w->graph->now.in_parts;
    model_begin_part(w);
    plan_graph_enter(w->graph, layer->shared, &x, 1);
    uint32_t gate = model_run_linear(w, &layer->shared_gate, x, ffn, w->width);
    uint32_t open =
        fused ? gate : model_run_elementwise(w, PLAN_OP_SILU, gate, PLAN_NONE, w->rows * ffn);
    uint32_t up = model_run_linear(w, &layer->shared_up, x, ffn, w->width);
    uint32_t hidden =
        model_run_elementwise(w, fused ? PLAN_OP_SWIGLU : PLAN_OP_MUL, open, up, w->rows * ffn);
    uint32_t y = model_run_linear(w, &layer->shared_down, hidden, w->width, ffn);
    plan_graph_leave(w->graph, &y, 1);
    model_end_part(w);
    return y;
}

/* Rows times their scores, in fp32. */
static uint32_t run_scored(const ModelExpertWalk *walk, uint32_t rows, uint32_t scores) {
    const ModelWalk *w = walk->w;
    int64_t shape[] = {
        [MUL_COLUMN_ROWS] = (int64_t)walk->pairs, [MUL_COLUMN_COLS] = (int64_t)w->width};
    uint32_t wide = model_run_widen(w, rows);
    uint32_t product =
        model_expert_op(walk, PLAN_OP_MUL_COLUMN, (uint32_t[]){wide, scores},
                        (PlanGraphResult){PLAN_FP32, walk->pairs * w->width}, shape, NULL);
    uint32_t scored = model_run_like(w, product, rows);
    plan_graph_keep(w->graph, rows); /* until the name that it has takes the scored ones */
    plan_graph_let_go_after(w->graph, rows, product);
    return scored;
}

uint32_t model_experts_run(const ModelWalk *w, const ModelExperts *experts,
                           const ModelExpertLayer *layer, uint32_t x) {
    if (experts->transformers) {
        return model_transformers_experts_run(w, experts, layer, x);
    }
    PlanGraph *graph = w->graph;
    uint64_t pairs = w->rows * experts->per_token;
    ModelExpertWalk walk = {w, experts, pairs,
                            (uint64_t)llround((double)pairs * graph->shared.overload)};
    int64_t dims[] = {[ROWS_OF_N] = (int64_t)walk.pairs,
                      [ROWS_OF_WIDTH] = (int64_t)w->width,
                      [ROWS_OF_ROWS] = (int64_t)w->rows};
    uint64_t n = w->rows * w->width;
    plan_graph_enter(graph, layer->module, &x, 1);
    /* x.view(), where the gradients of all its uses here meet, before those of others are added. */
    x = plan_graph_heads(graph, x, 1, w->rows, 1, w->width, PLAN_HEADS_AS_THEY_ARE);
    ModelRouted routed = model_router_run(&walk, layer, x);
    plan_graph_hold(graph, routed.top);
    plan_graph_hold(graph, routed.chosen);
    plan_graph_let_go_after(graph, routed.chosen, routed.top);
    Sorted sorted = run_sort(&walk, &routed);
    plan_graph_hold(graph, sorted.counts);
    plan_graph_hold(graph, sorted.scores);
    plan_graph_hold(graph, sorted.tokens);
    uint32_t rows =
        model_expert_op(&walk, PLAN_OP_ROWS_OF, (uint32_t[]){x, sorted.tokens},
                        (PlanGraphResult){graph->dtype, walk.pairs * w->width}, dims, NULL);
    uint32_t made = run_experts(&walk, layer, (ByExpert){rows, sorted.counts});
    uint32_t out = run_shared(&walk, layer, x);
    if (graph->shared.expert > 1) {
        plan_graph_exchange_await(graph, made);
        plan_graph_hold(graph, rows); /* they have a name of their own */
    }
    uint32_t scored = run_scored(&walk, made, sorted.scores);
    plan_graph_hold(graph, scored);
    plan_graph_hold(graph, out);
    /* In the order of the names that hold them. */
    if (graph->shared.expert > 1) {
        plan_graph_let_go_after(graph, rows, scored);
        plan_graph_let_go_after(graph, out, rows);
    } else {
        plan_graph_let_go_after(graph, out, scored);
    }
    uint32_t y = plan_graph_op(graph, PLAN_OP_ADD_TO_ROWS, (uint32_t[]){out, scored, sorted.tokens},
                               graph->dtype, n, dims, NULL);
    plan_graph_leave(graph, &y, 1);
    return y;
}
