#include "models/layers/window.h"

#include <float.h>
#include <math.h>

static uint32_t run(const ModelWalk *w, PlanOpKind kind, const uint32_t *inputs, PlanDtype dtype,
                    uint64_t elements, const int64_t *dims) {
    return plan_graph_op(w->graph, kind, inputs, dtype, elements, dims, NULL);
}

static uint32_t run_places(const ModelWalk *w, uint64_t n) {
    return run(w, PLAN_OP_ARANGE, NULL, PLAN_INT64, n, (int64_t[]){(int64_t)n});
}

/* arange(seq) + 0 */
static uint32_t run_shifted_places(const ModelWalk *w) {
    uint32_t places = run_places(w, w->seq);
    return run(w, PLAN_OP_SHIFT, &places, PLAN_INT64, w->seq,
               (int64_t[]){[SHIFT_N] = (int64_t)w->seq, [SHIFT_FROM] = 0});
}

static uint32_t run_both(const ModelWalk *w, uint32_t one, uint64_t n_one, uint32_t other) {
    uint64_t n = w->seq * w->seq;
    return run(w, PLAN_OP_BOTH_MASK, (uint32_t[]){one, other}, PLAN_UINT8, n,
               (int64_t[]){[BOTH_MASK_N] = (int64_t)n, [BOTH_MASK_N_ONE] = (int64_t)n_one});
}

/* Places as PyTorch's program names them: of sequences, heads, queries and keys. */
typedef struct {
    uint32_t sequences, heads, queries, keys;
} Places;

static Places run_all_places(const ModelWalk *w) {
    Places p = {.sequences = run_places(w, w->batch), .heads = run_places(w, 1)};
    p.queries = run_shifted_places(w);
    p.keys = run_shifted_places(w);
    return p;
}

static void let_go_of_places(const ModelWalk *w, const Places *p, uint32_t inside, uint32_t last) {
    uint32_t variables[] = {inside, p->sequences, p->heads, p->queries, p->keys};
    for (unsigned i = inside == PLAN_NONE; i < G_N_ELEMENTS(variables); i++) {
        bool is_first = i == 0 || variables[i - 1] == PLAN_NONE;
        plan_graph_keep(w->graph, variables[i]);
        plan_graph_let_go_after(w->graph, variables[i], is_first ? last : variables[i - 1]);
    }
}

static uint32_t run_earlier(const ModelWalk *w, const Places *p) {
    int64_t seq = (int64_t)w->seq, pairs[] = {seq, seq};
    return run(w, PLAN_OP_UPTO_MASK, (uint32_t[]){p->keys, p->queries}, PLAN_UINT8, w->seq * w->seq,
               pairs);
}

static uint32_t causal_mask(const ModelWalk *w) {
    Places p = run_all_places(w);
    uint32_t mask = run_earlier(w, &p);
    let_go_of_places(w, &p, PLAN_NONE, mask);
    return mask;
}

static uint32_t window_mask(const ModelWalk *w, uint64_t window) {
    PlanGraph *graph = w->graph;
    uint64_t n = w->seq * w->seq;
    int64_t seq = (int64_t)w->seq, pairs[] = {seq, seq};
    Places p = run_all_places(w);
    uint32_t all = run(w, PLAN_OP_ONES_MASK, NULL, PLAN_UINT8, 1, (int64_t[]){1});
    uint32_t from = run(w, PLAN_OP_BACK, &p.queries, PLAN_INT64, w->seq,
                        (int64_t[]){[BACK_N] = seq, [BACK_BY] = (int64_t)window});
    uint32_t later = run(w, PLAN_OP_LATER_MASK, (uint32_t[]){p.keys, from}, PLAN_UINT8, n, pairs);
    uint32_t inside = run_both(w, all, 1, later);
    plan_graph_keep(graph, all);
    plan_graph_let_go_after(graph, all, later);
    uint32_t earlier = run_earlier(w, &p);
    uint32_t mask = run_both(w, inside, n, earlier);
    let_go_of_places(w, &p, inside, earlier);
    return mask;
}

uint32_t model_window_mask(const ModelWalk *w, uint64_t window) {
    uint32_t mask = window_mask(w, window);
    plan_graph_hold(w->graph, mask);
    return mask;
}

static uint32_t run_number(const ModelWalk *w, PlanDtype dtype, double number) {
    return plan_graph_op(w->graph, PLAN_OP_FILL, NULL, dtype, 1, (int64_t[]){1}, &number);
}

static uint32_t run_bias(const ModelWalk *w, uint32_t mask, uint32_t shown, uint32_t hidden,
                         PlanDtype dtype) {
    uint64_t n = w->seq * w->seq;
    return run(
        w, PLAN_OP_MASK_TO_BIAS, (uint32_t[]){mask, shown, hidden}, dtype, w->batch * n,
        (int64_t[]){[MASK_TO_BIAS_N] = (int64_t)n, [MASK_TO_BIAS_BATCH] = (int64_t)w->batch});
}

uint32_t model_window_bias(const ModelWalk *w, uint32_t mask) {
    PlanDtype dtype = plan_graph_product_dtype(w->graph);
    uint32_t hidden = run_number(w, dtype, -INFINITY), shown = run_number(w, dtype, 0);
    uint32_t bias = run_bias(w, mask, shown, hidden, dtype);
    plan_graph_let_go_after(w->graph, hidden, shown);
    return bias;
}

static double least_of(PlanDtype dtype) {
    switch (dtype) {
    case PLAN_BF16:
        return -0x1.FEp127;
    case PLAN_FP16:
        return -65504;
    default:
        return -(double)FLT_MAX;
    }
}

uint32_t model_eager_mask(const ModelWalk *w, uint64_t window, PlanDtype dtype) {
    PlanGraph *graph = w->graph;
    uint32_t mask = window ? window_mask(w, window) : causal_mask(w);
    uint32_t shown = run_number(w, dtype, 0), hidden = run_number(w, dtype, least_of(dtype));
    uint32_t bias = run_bias(w, mask, shown, hidden, dtype);
    plan_graph_let_go_after(graph, shown, hidden);
    plan_graph_let_go_after(graph, mask, shown);
    plan_graph_hold(graph, bias);
    return bias;
}
