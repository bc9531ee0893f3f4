#include "models/families/transformers.h"

void model_transformers_begin(const ModelWalk *w) {
    w->graph->kernels.rms_norm_of_ops = true;
    w->graph->weight_first = !w->norms_from_one;
}

uint32_t model_transformers_scaled_embedding(const ModelWalk *w, const ModelLayer *layer,
                                             uint32_t scale, uint32_t tokens, uint64_t vocab) {
    uint64_t n = w->rows * w->width;
    int64_t dims[] = {[MUL_ROW_ROWS] = (int64_t)n, [MUL_ROW_COLS] = 1};
    plan_graph_enter(w->graph, layer->module, &tokens, 1);
    uint32_t x = model_embedding_op(w, layer, tokens, w->rows, vocab);
    uint32_t factor = model_run_like(w, scale, layer->weight);
    uint32_t y = plan_graph_op(w->graph, PLAN_OP_MUL_ROW, (uint32_t[]){x, factor}, w->graph->dtype,
                               n, dims, NULL);
    plan_graph_leave(w->graph, &y, 1);
    return y;
}

/* ---- positions and rotary tables ------------------------------------------------------------ */

void model_transformers_frequencies(const ModelWalk *w, ModelRotary *rotary, uint64_t dim,
                                    double base) {
    rotary->frequencies = plan_graph_rope_frequencies(w->graph, dim, base);
    plan_graph_buffer_between(w->graph, PLAN_FP32,
                              dim / 2); /* the same, as they were before any scaling */
}

uint32_t model_transformers_positions(const ModelWalk *w) {
    int64_t seq = (int64_t)w->seq;
    uint32_t from_zero =
        plan_graph_op(w->graph, PLAN_OP_ARANGE, NULL, PLAN_INT64, w->seq, &seq, NULL);
    uint32_t positions = plan_graph_op(w->graph, PLAN_OP_SHIFT, &from_zero, PLAN_INT64, w->seq,
                                       (int64_t[]){[SHIFT_N] = seq, [SHIFT_FROM] = 0}, NULL);
    plan_graph_hold(w->graph, positions);
    return positions;
}

static uint32_t run_fp32(const ModelWalk *w, PlanOpKind kind, const uint32_t *inputs,
                         uint64_t elements, const int64_t *dims, const double *attr) {
    return plan_graph_op(w->graph, kind, inputs, PLAN_FP32, elements, dims, attr);
}

/* kind(angles) * 1, in the dtype of compute. */
static uint32_t run_table(const ModelWalk *w, PlanOpKind kind, uint32_t angles, uint64_t n) {
    double scaling = 1;
    int64_t dims[] = {(int64_t)n};
    uint32_t table = run_fp32(w, kind, &angles, n, dims, NULL);
    table = run_fp32(w, PLAN_OP_TIMES_NUMBER, &table, n, dims, &scaling);
    plan_graph_hold(w->graph, table);
    return table;
}

/* The angles of both halves of a head. */
static uint32_t join_twice(const ModelWalk *w, uint32_t angles, int64_t seq, int64_t half) {
    return run_fp32(w, PLAN_OP_JOIN_COLUMNS, (uint32_t[]){angles, angles},
                    (uint64_t)(2 * seq * half),
                    (int64_t[]){[JOIN_COLUMNS_ROWS] = seq,
                                [JOIN_COLUMNS_A_COLS] = half,
                                [JOIN_COLUMNS_B_COLS] = half,
                                [JOIN_COLUMNS_WIDTH] = half,
                                [JOIN_COLUMNS_FROM] = 0},
                    NULL);
}

/* Of both numbers of each pair that is turned. */
static uint32_t run_twice(const ModelWalk *w, const ModelRotary *rotary, uint32_t angles,
                          uint64_t half) {
    uint32_t twice = rotary->tables_paired ? model_each_twice(w, angles, half, half)
                                           : join_twice(w, angles, (int64_t)w->seq, (int64_t)half);
    plan_graph_hold(w->graph, twice);
    return twice;
}

void model_transformers_tables(const ModelWalk *w, uint32_t module, uint32_t x, uint32_t positions,
                               ModelRotary *rotary) {
    PlanGraph *graph = w->graph;
    uint64_t turned = plan_graph_value_at(graph, rotary->frequencies)->elements;
    int64_t seq = (int64_t)w->seq, half = (int64_t)turned;
    bool halved = rotary->is_halved;
    uint64_t n = (halved ? 1 : 2) * w->seq * turned;
    plan_graph_enter(graph, module, (uint32_t[]){x, positions}, 2);
    uint32_t numbers = run_fp32(w, PLAN_OP_AS_NUMBER, &positions, w->seq, &seq, NULL);
    uint32_t angles =
        run_fp32(w, PLAN_OP_OUTER, (uint32_t[]){numbers, rotary->frequencies}, w->seq * turned,
                 (int64_t[]){[OUTER_ROWS] = seq, [OUTER_COLS] = half}, NULL);
    plan_graph_hold(graph, angles);
    uint32_t all = halved ? angles : run_twice(w, rotary, angles, turned);
    uint32_t cosines = run_table(w, PLAN_OP_COS, all, n);
    uint32_t sines = run_table(w, PLAN_OP_SIN, all, n);
    PlanDtype dtype = rotary->is_wide ? PLAN_FP32 : graph->dtype;
    uint32_t tables[] = {plan_graph_cast(graph, cosines, dtype),
                         plan_graph_cast(graph, sines, dtype)};
    plan_graph_leave(graph, tables, G_N_ELEMENTS(tables));
    plan_graph_hold(graph, tables[0]);
    plan_graph_hold(graph, tables[1]);
    rotary->cosines = tables[0];
    rotary->sines = tables[1];
    rotary->is_together = true;
}

/* ---- the loss ------------------------------------------------------------------------------- */

/* ForCausalLMLoss(), whose variables go in the order in which it names them. */
static uint32_t run_loss(const ModelWalk *w, uint32_t logits, uint32_t targets, uint64_t vocab) {
    PlanGraph *graph = w->graph;
    int64_t of_labels[] = {
        [PAD_TARGETS_BATCH] = (int64_t)w->batch, [PAD_TARGETS_SEQ] = (int64_t)w->seq};
    uint64_t n_padded = w->batch * (w->seq + 1);
    uint32_t wide = model_run_widen(w, logits);
    uint32_t padded =
        plan_graph_op(graph, PLAN_OP_PAD_TARGETS, &targets, PLAN_INT64, n_padded, of_labels, NULL);
    uint32_t shifted = w->batch == 1 ? plan_graph_slice(graph, padded, 1, w->seq + 1, 1, w->seq)
                                     : plan_graph_op(graph, PLAN_OP_DROP_FIRST, &padded, PLAN_INT64,
                                                     w->rows, of_labels, NULL);
    uint32_t loss = model_run_loss_of(w, wide, shifted, w->rows, vocab);
    plan_graph_keep(graph, wide);
    plan_graph_keep(graph, padded);
    if (wide != logits) {
        model_goes_behind_loss(w, wide);
        plan_graph_let_go_after(graph, padded, wide);
    } else {
        model_goes_behind_loss(w, padded);
    }
    plan_graph_let_go_after(graph, shifted, padded);
    return loss;
}

/* Until 4.28 of logits as they are, until 4.45 of those that the model has made fp32, until 4.48 of
 * a copy in fp32. */
static uint32_t run_loss_before_4_49(const ModelWalk *w, uint32_t logits, uint32_t targets,
                                     uint64_t vocab) {
    uint32_t wide = w->loss == MODEL_LOSS_OPS ? logits : model_run_widen(w, logits);
    return model_run_loss_of_shifted(w, wide, targets, vocab);
}

bool model_transformers_makes_loss(const ModelWalk *w) {
    bool is_theirs =
        w->loss == MODEL_LOSS_MODEL ||
        (w->logits_shifted && (w->loss == MODEL_LOSS_OPS || w->loss == MODEL_LOSS_FP32_LOGITS));
    return is_theirs && w->loss_at == MODEL_LOSS_IN_MODEL && !w->graph->now.fused &&
           !w->graph->kernels.compiled_loss;
}

void model_transformers_end(const ModelWalk *w, uint32_t root, uint32_t logits, uint32_t targets,
                            uint64_t vocab) {
    PlanGraph *graph = w->graph;
    if (w->loss == MODEL_LOSS_FP32_LOGITS) {
        logits = model_run_widen(w, logits);
    }
    plan_graph_hold(graph, logits);
    uint32_t loss =
        (w->logits_shifted ? run_loss_before_4_49 : run_loss)(w, logits, targets, vocab);
    plan_graph_leave(graph, (uint32_t[]){loss, logits}, 2);
    plan_graph_leave_autocast(graph, root);
    model_hold_logits(w, logits);
    if (w->logits_held == PLAN_RESULTS_NEXT_FORWARD) { /* in one dict with them, and before them */
        plan_graph_return_value(graph, loss);
    }
    plan_graph_finish(graph, loss);
}
