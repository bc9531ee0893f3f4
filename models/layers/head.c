/* models/layers/head.c - the norm after the blocks, and what is made of it. */
#include "models/layers/chunked-loss.h"

/* What a function was given by an expression goes after autocast's copy of it. */
static void let_go_after_its_copy(PlanGraph *graph, uint32_t x) {
    const PlanGraphOp *product = plan_graph_op_at(graph, graph->ops.len - 1);
    uint32_t used = plan_graph_ref(graph, product->values);
    if (used != x) {
        plan_graph_let_go_after(graph, x, used);
    }
}

uint32_t model_run_head(const ModelWalk *w, const ModelHead *head, ModelStream stream,
                        uint32_t targets) {
    const ModelLayer *product = head->product;
    bool is_sum = stream.r == PLAN_NONE;
    uint32_t x;
    if (is_sum) {
        plan_graph_hold(w->graph, stream.a);
    }
    uint32_t normed = model_run_last_norm(w, head->norm, stream, head->eps, &x);
    uint32_t result = model_loss_is_chunked(w->loss)
                          ? model_run_chunked_loss(w, product, normed, targets, head->vocab)
                          : model_run_linear(w, product, normed, head->vocab, w->width);
    if (product->module == PLAN_NONE && !model_loss_is_chunked(w->loss)) {
        let_go_after_its_copy(w->graph, normed);
    }
    if (is_sum) {
        plan_graph_let_go_after(w->graph, stream.a, result);
    }
    return result;
}
