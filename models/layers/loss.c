/* models/layers/loss.c - the loss of a network whose head has made logits: by one kernel or by
 * PyTorch's ops, in the network's forward or in the loop behind it; and the end of the walk.
 */
#include "models/layers/layers.h"

/* Cross entropy and perplexity, as what watches the training works them out: each anew, under
 * autocast, which widens the logarithms. */
static void meter(const ModelWalk *w, uint32_t root, uint32_t logits, uint32_t targets,
                  uint64_t vocab) {
    PlanGraphResult scalars[] = {{PLAN_FP32, 1}, {PLAN_FP32, 1}};
    int64_t dims[] = {[LOG_SOFTMAX_ROWS] = (int64_t)w->rows, [LOG_SOFTMAX_COLS] = (int64_t)vocab};
    plan_graph_after_backward(w->graph, root);
    uint32_t seen = plan_graph_detached(w->graph, logits);
    for (unsigned i = 0; i < 2; i++) {
        uint32_t logp = plan_graph_op(w->graph, PLAN_OP_LOG_SOFTMAX, &seen, w->graph->dtype,
                                      w->rows * vocab, dims, NULL);
        logp = model_run_widen(w, logp);
        plan_graph_op_making(w->graph, PLAN_OP_NLL_LOSS, (uint32_t[]){logp, targets}, scalars, dims,
                             NULL);
    }
}

static bool loss_is_wide(const ModelWalk *w) {
    return w->loss == MODEL_LOSS_FP32 || w->loss == MODEL_LOSS_FP32_LOGITS;
}

/* One program of network and loss. */
static bool loss_is_of_program(const ModelWalk *w) {
    return w->graph->kernels.compiled_loss && w->loss_at == MODEL_LOSS_IN_MODEL &&
           w->loss != MODEL_LOSS_METERED;
}

static bool loss_is_compiled(const ModelWalk *w) {
    return w->loss == MODEL_LOSS_KERNEL || loss_is_of_program(w);
}

static bool loss_is_one_kernel(const ModelWalk *w) {
    return w->loss == MODEL_LOSS_METERED || (w->graph->now.fused && w->loss == MODEL_LOSS_MODEL);
}

/* A compiled program widens the logits to fp32 as it reads them, so an fp32 loss needs no copy. A
 * loss that is compiled by itself becomes part of the network's program if that is compiled too. */
static uint32_t run_compiled_loss(const ModelWalk *w, const uint32_t *logits_and_targets,
                                  const int64_t *dims) {
    PlanDtype dtype = loss_is_wide(w) || w->loss == MODEL_LOSS_KERNEL ? PLAN_FP32 : w->graph->dtype;
    PlanGraphResult results[] = {
        {PLAN_FP32, w->rows}, {PLAN_FP32, w->rows}, {dtype, 1}, {dtype, 1}};
    w->graph->loss_apart = !loss_is_of_program(w);
    return 2 + plan_graph_op_making(w->graph, PLAN_OP_COMPILED_LOSS, logits_and_targets, results,
                                    dims, NULL);
}

/* By a kernel that takes the place of cross_entropy(), with what backward needs of each row. */
static uint32_t run_kernel(const ModelWalk *w, const uint32_t *logits_and_targets,
                           const int64_t *dims, PlanDtype dtype) {
    PlanGraphResult results[] = {
        {dtype, 1}, {dtype, 1}, {PLAN_FP32, (uint64_t)dims[CROSS_ENTROPY_ROWS]}};
    uint32_t loss = plan_graph_op_making(w->graph, PLAN_OP_CROSS_ENTROPY, logits_and_targets,
                                         results, dims, NULL);
    plan_graph_let_go_after(w->graph, loss + 1, loss + 2);
    return loss;
}

/* The first input of the last op. */
static uint32_t last_given(const PlanGraph *graph) {
    const PlanGraphOp *op = plan_graph_op_at(graph, graph->ops.len - 1);
    return plan_graph_ref(graph, op->values);
}

void model_goes_behind_loss(const ModelWalk *w, uint32_t value) {
    uint32_t given = last_given(w->graph);
    if (given != value) {
        plan_graph_let_go_after(w->graph, value, given);
    } else { /* the second result goes last */
        const PlanGraphOp *op = plan_graph_op_at(w->graph, w->graph->ops.len - 1);
        plan_graph_let_go_after(w->graph, value,
                                plan_graph_ref(w->graph, op->values + op->n_inputs + 1));
    }
}

uint32_t model_run_loss_of(const ModelWalk *w, uint32_t logits, uint32_t targets, uint64_t rows,
                           uint64_t vocab) {
    PlanDtype dtype = (PlanDtype)plan_graph_value_at(w->graph, logits)->dtype;
    PlanDtype computed = dtype == PLAN_FP32 ? dtype : w->graph->dtype;
    PlanGraphResult scalars[] = {{computed, 1}, {computed, 1}};
    int64_t dims[] = {[LOG_SOFTMAX_ROWS] = (int64_t)rows, [LOG_SOFTMAX_COLS] = (int64_t)vocab};
    w->graph->loss_in_place = w->loss_in_place;
    if (w->loss_in_place) { /* whose sums autocast widens */
        PlanDtype sums = w->graph->now.autocasts ? PLAN_FP32 : dtype;
        return run_kernel(w, (uint32_t[]){logits, targets}, dims, sums);
    }
    uint32_t logp =
        plan_graph_op(w->graph, PLAN_OP_LOG_SOFTMAX, &logits, computed, rows * vocab, dims, NULL);
    uint32_t loss = plan_graph_op_making(w->graph, PLAN_OP_NLL_LOSS, (uint32_t[]){logp, targets},
                                         scalars, dims, NULL);
    uint32_t given = last_given(w->graph), total = loss + 1;
    /* A variable of cross_entropy()'s, which is seen where backward wants none of it: it goes
     * behind what the call made, and a cast that autocast made for it. */
    plan_graph_let_go_after(w->graph, logp, given == logp ? total : given);
    return loss;
}

/* Of x, so many numbers a token, all but each sequence's last token's. One sequence's lie side by
 * side already. */
static uint32_t drop_last_of_logits(const ModelWalk *w, uint32_t x, uint64_t width) {
    uint64_t sequence = w->seq * width, kept = sequence - width;
    PlanDtype dtype = (PlanDtype)plan_graph_value_at(w->graph, x)->dtype;
    int64_t dims[] = {[COPY_COLUMNS_ROWS] = (int64_t)w->batch,
                      [COPY_COLUMNS_COLS] = (int64_t)kept,
                      [COPY_COLUMNS_WIDTH] = (int64_t)sequence,
                      [COPY_COLUMNS_FROM] = 0};
    return w->batch == 1 ? plan_graph_slice(w->graph, x, 1, sequence, 0, kept)
                         : plan_graph_op(w->graph, PLAN_OP_COPY_COLUMNS, &x, dtype, w->batch * kept,
                                         dims, NULL);
}

static uint32_t drop_last_of_targets(const ModelWalk *w, uint32_t targets) {
    int64_t dims[] = {[DROP_LAST_BATCH] = (int64_t)w->batch, [DROP_LAST_SEQ] = (int64_t)w->seq - 1};
    return w->batch == 1 ? plan_graph_slice(w->graph, targets, 1, w->seq, 0, w->seq - 1)
                         : plan_graph_op(w->graph, PLAN_OP_DROP_LAST, &targets, PLAN_INT64,
                                         w->batch * (w->seq - 1), dims, NULL);
}

uint32_t model_run_loss_of_shifted(const ModelWalk *w, uint32_t logits, uint32_t targets,
                                   uint64_t vocab) {
    uint32_t shifted = drop_last_of_logits(w, logits, vocab);
    uint32_t next = drop_last_of_targets(w, targets);
    uint32_t loss = model_run_loss_of(w, shifted, next, w->batch * (w->seq - 1), vocab);
    plan_graph_keep(w->graph, logits); /* variables of the function */
    plan_graph_keep(w->graph, shifted);
    return loss;
}

static uint32_t run_cross_entropy(const ModelWalk *w, uint32_t logits, uint32_t targets,
                                  uint64_t vocab) {
    if (model_loss_is_chunked(w->loss)) {
        return logits; /* the head has made it */
    }
    int64_t dims[] = {[CROSS_ENTROPY_ROWS] = (int64_t)w->rows,
                      [CROSS_ENTROPY_COLS] = (int64_t)vocab}; /* of the other losses, too */
    bool is_shared = w->graph->shared.tensor > 1 && !w->graph->shared.whole_ends;
    if (is_shared && w->loss == MODEL_LOSS_KERNEL) {
        plan_graph_hold(w->graph, logits);
        uint32_t shared =
            plan_graph_shared_compiled_loss(w->graph, logits, targets, w->rows, vocab);
        plan_graph_keep(w->graph, logits);
        return shared;
    }
    if (loss_is_compiled(w)) {
        return run_compiled_loss(w, (uint32_t[]){logits, targets}, dims);
    }
    if (loss_is_one_kernel(w)) {
        return run_kernel(w, (uint32_t[]){logits, targets}, dims, w->graph->dtype);
    }
    plan_graph_hold(w->graph, logits);
    uint32_t given = logits;
    if (loss_is_wide(w)) {
        logits = model_run_widen(w, logits);
    }
    if (is_shared) {
        uint32_t shared = plan_graph_shared_loss(w->graph, logits, targets, w->rows, vocab);
        plan_graph_keep(w->graph, logits);
        if (logits != given) {
            model_goes_behind_loss(w, logits);
        }
        return shared;
    }
    if (w->logits_shifted) {
        return model_run_loss_of_shifted(w, logits, targets, vocab);
    }
    uint32_t loss = model_run_loss_of(w, logits, targets, w->rows, vocab);
    plan_graph_keep(w->graph, logits); /* the call's argument */
    if (logits != given) {
        model_goes_behind_loss(w, logits);
    }
    return loss;
}

void model_hold_logits(const ModelWalk *w, uint32_t logits) {
    if (w->logits_held != PLAN_RESULTS_DROPPED) {
        plan_graph_return_value(w->graph, logits);
    }
}

uint32_t model_run_given_logits(const ModelWalk *w, uint32_t logits) {
    bool is_wide = w->loss == MODEL_LOSS_FP32_LOGITS && !loss_is_of_program(w);
    return is_wide ? model_run_widen(w, logits) : logits;
}

uint32_t model_run_logits_behind(const ModelWalk *w, uint32_t logits, ModelStream stream) {
    logits = model_run_given_logits(w, logits);
    if (stream.r == PLAN_NONE) {
        plan_graph_let_go_after(w->graph, stream.a, logits);
    }
    return logits;
}

void model_end(const ModelWalk *w, uint32_t root, uint32_t logits, uint32_t targets,
               uint64_t vocab) {
    PlanGraph *graph = w->graph;
    /* Where stages share the layers their schedule asks for the loss, and holds what it is of. */
    bool in_model = w->loss_at == MODEL_LOSS_IN_MODEL && graph->pipeline.n_stages == 1;
    bool is_held = w->logits_held != PLAN_RESULTS_DROPPED && graph->pipeline.n_stages == 1;
    graph->leaves = graph->pipeline.n_stages > 1 ? logits : PLAN_NONE;
    logits = model_run_given_logits(w, logits);
    if (!in_model) {
        plan_graph_leave(graph, &logits, 1);
        plan_graph_call(graph, root);
    }
    uint32_t loss = run_cross_entropy(w, logits, targets, vocab);
    if (in_model && is_held) {
        plan_graph_leave(graph, (uint32_t[]){logits, loss}, 2);
    } else if (in_model) {
        plan_graph_leave(graph, &loss, 1);
    } else {
        plan_graph_return(graph);
    }
    plan_graph_leave_autocast(graph, root);
    if (w->loss == MODEL_LOSS_METERED) {
        meter(w, root, logits, targets, vocab);
    } else if (is_held) {
        model_hold_logits(w, logits);
    }
    plan_graph_finish(graph, loss);
}
