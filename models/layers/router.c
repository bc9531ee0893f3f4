/* models/layers/router.c - the router of experts.c, op by op as torchtitan's calls PyTorch. */
#include <math.h>

#include "models/layers/router.h"

/* In fp32: copies of the weight and of x, in that order. */
static uint32_t run_scores(const ModelExpertWalk *walk, const ModelLayer *layer, uint32_t x) {
    const ModelWalk *w = walk->w;
    uint64_t n = walk->experts->n, elements = w->rows * n;
    plan_graph_enter(w->graph, layer->module, &x, 1);
    uint32_t weight = plan_graph_cast(w->graph, layer->weight, PLAN_FP32);
    model_expert_hold(walk, weight);
    uint32_t wide = plan_graph_cast(w->graph, x, PLAN_FP32);
    uint32_t y = plan_graph_op(
        w->graph, PLAN_OP_LINEAR, (uint32_t[]){wide, weight, PLAN_NONE}, PLAN_FP32, elements,
        (int64_t[]){
            [LINEAR_M] = (int64_t)w->rows, [LINEAR_N] = (int64_t)n, [LINEAR_K] = (int64_t)w->width},
        NULL);
    plan_graph_leave(w->graph, &y, 1);
    return y;
}

uint32_t model_router_count(const ModelExpertWalk *walk, uint32_t chosen) {
    int64_t dims[] = {[COUNT_N] = (int64_t)walk->pairs, [COUNT_GROUPS] = (int64_t)walk->experts->n};
    return model_expert_op(walk, PLAN_OP_COUNT, &chosen,
                           (PlanGraphResult){PLAN_INT64, walk->experts->n}, dims, NULL);
}

/* Each token's scores by their sum. */
static uint32_t run_normalize(const ModelExpertWalk *walk, uint32_t top) {
    const ModelWalk *w = walk->w;
    int64_t rows = (int64_t)w->rows;
    int64_t shape[] = {
        [TOTAL_COLUMNS_ROWS] = rows, [TOTAL_COLUMNS_COLS] = (int64_t)walk->experts->per_token};
    double least = 1e-20;
    uint32_t sum = model_expert_op(walk, PLAN_OP_TOTAL_COLUMNS, &top,
                                   (PlanGraphResult){PLAN_FP32, w->rows}, shape, NULL);
    uint32_t total = model_expert_op(walk, PLAN_OP_ADD_NUMBER, &sum,
                                     (PlanGraphResult){PLAN_FP32, w->rows}, &rows, &least);
    model_expert_hold(walk, total);
    return model_expert_op(walk, PLAN_OP_DIVIDE_COLUMN, (uint32_t[]){top, total},
                           (PlanGraphResult){PLAN_FP32, walk->pairs}, shape, NULL);
}

/* chosen: each token's experts, by number; top: their scores. */
typedef struct {
    uint32_t top, chosen;
} Choice;

/* The k best scores of each row; behind them whose they are. */
static uint32_t run_top_k(const ModelExpertWalk *walk, uint32_t scores, uint64_t rows,
                          uint64_t cols, uint64_t k) {
    PlanGraphResult results[] = {{PLAN_FP32, rows * k}, {PLAN_INT64, rows * k}};
    int64_t dims[] = {
        [TOP_K_ROWS] = (int64_t)rows, [TOP_K_COLS] = (int64_t)cols, [TOP_K_K] = (int64_t)k};
    return plan_graph_op_making(walk->w->graph, PLAN_OP_TOP_K, &scores, results, dims, NULL);
}

/* Scores with their bias. */
static uint32_t run_bias(const ModelExpertWalk *walk, const ModelExpertLayer *layer,
                         uint32_t scores) {
    uint64_t n = walk->w->rows * walk->experts->n;
    int64_t dims[] = {[ADD_N] = (int64_t)n, [ADD_NB] = (int64_t)walk->experts->n};
    return model_expert_op(walk, PLAN_OP_ADD, (uint32_t[]){scores, layer->bias},
                           (PlanGraphResult){PLAN_FP32, n}, dims, NULL);
}

/* The scores with those outside each token's best groups masked; *ret_hidden: that mask, which
 * autograd saves (PLAN_NONE: nobody wants a gradient). given: a variable of the caller holds
 * `scores`, so they are freed when this function returns, after its own variables. */
static uint32_t run_best_groups(const ModelExpertWalk *walk, uint32_t scores, bool given,
                                uint32_t *ret_hidden) {
    PlanGraph *graph = walk->w->graph;
    uint64_t rows = walk->w->rows, groups = walk->experts->groups, n = rows * groups;
    uint64_t each = walk->experts->n / groups, k = walk->experts->groups_per_token;
    int64_t n_groups = (int64_t)n, best_two[] = {n_groups, 2},
            fill[] = {1, n_groups, (int64_t)each};
    int64_t of_rows[] = {[UNSET_COLUMNS_ROWS] = (int64_t)rows,
                         [UNSET_COLUMNS_COLS] = (int64_t)groups,
                         [UNSET_COLUMNS_K] = (int64_t)k};
    double nothing = -INFINITY;
    uint32_t best = run_top_k(walk, scores, n, each, 2), whose = best + 1;
    bool is_trained = !graph->evaluates;
    uint32_t first = is_trained ? plan_graph_latent_kept(graph, whose) : PLAN_NONE;
    uint32_t sums = model_expert_op(walk, PLAN_OP_TOTAL_COLUMNS, &best,
                                    (PlanGraphResult){PLAN_FP32, n}, best_two, NULL);
    uint32_t unused = run_top_k(walk, sums, rows, groups, k), which = unused + 1;
    plan_graph_keep(graph, whose); /* until the name that it has takes the others */
    uint32_t hidden = model_expert_op(walk, PLAN_OP_ONES_MASK, NULL,
                                      (PlanGraphResult){PLAN_UINT8, n}, &n_groups, NULL);
    plan_graph_op_making(graph, PLAN_OP_UNSET_COLUMNS, (uint32_t[]){which, hidden}, NULL, of_rows,
                         NULL);
    *ret_hidden = is_trained ? plan_graph_latent_kept(graph, hidden) : PLAN_NONE;
    uint32_t of_best = model_expert_op(walk, PLAN_OP_MASKED_FILL, (uint32_t[]){scores, hidden},
                                       (PlanGraphResult){PLAN_FP32, n * each}, fill, &nothing);
    uint32_t held[] = {best, unused, first, sums, which, hidden, scores}, before = PLAN_NONE;
    for (unsigned i = 0; i < G_N_ELEMENTS(held) - !given; i++) {
        if (held[i] == PLAN_NONE) {
            continue;
        }
        plan_graph_keep(graph, held[i]);
        if (before != PLAN_NONE) {
            plan_graph_let_go_after(graph, held[i], before);
        }
        before = held[i];
    }
    if (is_trained) {
        plan_graph_let_go_after(graph, *ret_hidden, of_best);
    }
    return of_best;
}

/* What experts are chosen by, which has a name of its own where it is not the scores; in
 * *ret_hidden the mask that hides the other groups, PLAN_NONE without groups. */
static uint32_t run_what_to_choose(const ModelExpertWalk *walk, const ModelExpertLayer *layer,
                                   uint32_t scores, uint32_t *ret_hidden) {
    bool has_bias = walk->experts->has_bias;
    uint32_t chosen_by = has_bias ? run_bias(walk, layer, scores) : scores;
    *ret_hidden = PLAN_NONE;
    if (walk->experts->groups) {
        chosen_by = run_best_groups(walk, chosen_by, has_bias, ret_hidden);
    }
    if (*ret_hidden != PLAN_NONE) {
        plan_graph_hold(walk->w->graph, *ret_hidden);
    }
    if (chosen_by != scores) {
        plan_graph_hold(walk->w->graph, chosen_by);
    }
    return chosen_by;
}

static uint32_t run_pick(const ModelExpertWalk *walk, uint32_t scores, uint32_t chosen) {
    int64_t dims[] = {[PICK_COLUMNS_ROWS] = (int64_t)walk->w->rows,
                      [PICK_COLUMNS_COLS] = (int64_t)walk->experts->n,
                      [PICK_COLUMNS_K] = (int64_t)walk->experts->per_token};
    return model_expert_op(walk, PLAN_OP_PICK_COLUMNS, (uint32_t[]){scores, chosen},
                           (PlanGraphResult){PLAN_FP32, walk->pairs}, dims, NULL);
}

/* The first token's experts are the first, the next one's those behind them, around all: what
 * torchtitan's _debug_force_load_balance makes, when experts have been chosen by their scores. */
static uint32_t run_turns(const ModelExpertWalk *walk) {
    int64_t n = (int64_t)walk->pairs, dims[] = {n, (int64_t)walk->experts->n};
    uint32_t places = model_expert_op(walk, PLAN_OP_ARANGE, NULL,
                                      (PlanGraphResult){PLAN_INT64, walk->pairs}, &n, NULL);
    return model_expert_op(walk, PLAN_OP_REMAINDER, &places,
                           (PlanGraphResult){PLAN_INT64, walk->pairs}, dims, NULL);
}

static Choice run_choice(const ModelExpertWalk *walk, const ModelExpertLayer *layer,
                         uint32_t scores) {
    PlanGraph *graph = walk->w->graph;
    uint32_t seen = plan_graph_detached(graph, scores);
    bool in_turn = walk->experts->in_turn;
    if (in_turn && graph->now.in_parts) { /* a compiler drops what nobody asks for */
        uint32_t by_turns = run_turns(walk);
        return (Choice){run_pick(walk, scores, by_turns), by_turns};
    }
    uint32_t hidden, by = run_what_to_choose(walk, layer, seen, &hidden);
    uint32_t unused =
                 run_top_k(walk, by, walk->w->rows, walk->experts->n, walk->experts->per_token),
             chosen = unused + 1;
    model_expert_hold(walk, unused);
    if (!in_turn) {
        return (Choice){run_pick(walk, scores, chosen), chosen};
    }
    uint32_t top = run_pick(walk, seen, chosen); /* nobody wants a gradient of it */
    uint32_t kept = graph->evaluates ? PLAN_NONE : plan_graph_latent_kept(graph, chosen);
    uint32_t by_turns = run_turns(walk);
    uint32_t of_turns = run_pick(walk, scores, by_turns);
    plan_graph_keep(graph, chosen); /* until the names that they have take the others */
    plan_graph_keep(graph, top);
    plan_graph_let_go_after(graph, top, chosen);
    if (graph->evaluates) {
        return (Choice){of_turns, by_turns};
    }
    plan_graph_hold(graph, kept); /* by what made it, whose other result has a name */
    if (hidden != PLAN_NONE) {    /* and which holds what made the scores that it was given */
        plan_graph_let_go_after(graph, kept, by);
        plan_graph_let_go_after(graph, hidden, kept);
    }
    plan_graph_let_go_after(graph, unused, hidden != PLAN_NONE ? hidden : kept);
    return (Choice){of_turns, by_turns};
}

ModelRouted model_router_run(const ModelExpertWalk *walk, const ModelExpertLayer *layer,
                             uint32_t x) {
    const ModelWalk *w = walk->w;
    PlanGraph *graph = w->graph;
    uint64_t n = walk->experts->n;
    int64_t dims[] = {[SOFTMAX_ROWS] = (int64_t)w->rows, [SOFTMAX_COLS] = (int64_t)n};
    int64_t pairs = (int64_t)walk->pairs;
    PlanOpKind kind = walk->experts->apart ? PLAN_OP_SIGMOID : PLAN_OP_SOFTMAX;
    int64_t all = (int64_t)(w->rows * n);
    model_begin_part(w);
    plan_graph_enter(graph, layer->router, &x, 1);
    uint32_t raw = run_scores(walk, &layer->score, x);
    uint32_t scores = model_expert_op(walk, kind, &raw, (PlanGraphResult){PLAN_FP32, w->rows * n},
                                      walk->experts->apart ? &all : dims, NULL);
    if (!graph->now.in_parts) {
        plan_graph_keep(graph, raw); /* until the name that it has takes the scores */
    }
    model_expert_hold(walk, scores);
    Choice choice = run_choice(walk, layer, scores);
    uint32_t top = choice.top;
    if (!walk->experts->keeps_scores) {
        top = run_normalize(walk, top);
    }
    top = model_expert_op(walk, PLAN_OP_TIMES_NUMBER, &top,
                          (PlanGraphResult){PLAN_FP32, walk->pairs}, &pairs, &walk->experts->scale);
    uint32_t counts = model_router_count(walk, choice.chosen);
    plan_graph_leave(graph, (uint32_t[]){top, choice.chosen, counts}, 3);
    model_end_part(w);
    return (ModelRouted){top, choice.chosen, counts};
}
