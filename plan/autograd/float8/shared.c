/* plan/autograd/float8/shared.c - linear layers in float8 that the ranks of the tensor axis share,
 * in blocks that torch.compile compiles (torchao 0.18, PyTorch 2.13; recorded: tests/oracle/,
 * *-tensor-float8-*).
 *
 * Tensorwise (torchao's Float8ColwiseParallel and its kind) what ranks gather is cast first: tokens
 * in e4m3 before q, k and v and before gate and up, gradients in e5m2 before down and o. By rows
 * tokens and gradients are gathered in bf16 and cast by whoever has them. Wherever a scale is of
 * numbers that several ranks have parts of, its largest number is joined over them, in fp64.
 *
 * Unlike a rank's own layers these keep what they cast, for a compiler does not compute collectives
 * again, nor what hangs on them: of the values that a layer makes (kinds.h) the weight's and the
 * input's cast, as backward's products want them, and their scales.
 */
#include "plan/autograd/shared/shared.h"
#include "plan/autograd/float8/float8.h"
#include "plan/autograd/float8/shared-private.h"

bool plan_float8_takes_gathered(const PlanGraph *graph, const PlanGraphOp *op) {
    uint32_t value = plan_graph_ref(graph, op->values + LAYER_WEIGHT);
    uint32_t p = plan_graph_value_at(graph, value)->parameter;
    return plan_graph_parameter_at(graph, p)->split == PLAN_SPLIT_ROWS;
}

bool plan_float8_takes_own(const PlanGraph *graph, const PlanGraphOp *op) {
    return graph->float8 == PLAN_FLOAT8_ROWWISE && !plan_float8_takes_gathered(graph, op) &&
           plan_graph_float8_linear_of(graph, op)->maker < 0;
}

/* What forward makes for backward, and not for a block that is computed again. */
static bool keeps(const PlanRun *run) {
    return run->builder.phase == PLAN_PHASE_FORWARD && run->checkpoint == PLAN_NONE;
}

static void give(PlanRun *run, const PlanGraphOp *op, unsigned which, PlanTensor made) {
    plan_run_give(run, op, which - LAYER_RESULT, made);
}

static void give_ref(PlanRun *run, const PlanGraphOp *op, unsigned which, PlanTensor made) {
    give(run, op, which, plan_run_ref(run, made));
}

PlanTensor plan_float8_inverse_of(PlanRun *run, PlanTensor largest, PlanDtype to) {
    PlanFloat8Step step =
        plan_float8_by_rows(run) ? PLAN_FLOAT8_INVERSE_OF_POWER : PLAN_FLOAT8_INVERSE_SCALE;
    return plan_float8_inverse(run, plan_run_operand_of(run, largest), largest.elements, step, to);
}

static PlanTensor given(PlanRun *run, const PlanGraphOp *op) {
    return plan_run_given(run, op, LAYER_INPUT);
}

/* ---- tokens and gradients that are gathered in float8 --------------------------------------- */

/* By the scale of all ranks' numbers, whose inverse is the caller's. tokens: of each rank, as its
 * gather or scatter has them: sequences, rows, width. */
static PlanTensor cast_own(PlanRun *run, PlanTensor own, const int64_t *tokens, PlanDtype dtype,
                           bool found, PlanTensor *ret_scale) {
    PlanFloat8Along whole = PLAN_FLOAT8_WHOLE;
    PlanFloat8Source source = plan_float8_of_tensor(run, own, tokens[0] * tokens[1], tokens[2]);
    source.to = dtype;
    PlanTensor scale = dtype == PLAN_E5M2 ? plan_float8_scale_of_all(run, &source, whole, found)
                                          : plan_float8_scale_of_known(run, &source, whole, found);
    PlanTensor cast = plan_float8_cast(run, &source, scale, whole, true, false).as_is;
    *ret_scale = plan_float8_inverse_of(run, scale, dtype);
    plan_run_unref(run, scale);
    return cast;
}

/* Cast and gathered; of several sequences what arrives is put in their order by a copy. */
static PlanTensor cast_and_gathered(PlanRun *run, PlanTensor own, const int64_t *tokens,
                                    PlanDtype dtype, bool found, PlanTensor *ret_scale) {
    PlanTensor cast = cast_own(run, own, tokens, dtype, found, ret_scale);
    PlanTensor all = plan_shared_of_all(run, cast);
    plan_run_unref(run, cast);
    if (tokens[PLAN_GRAPH_TOKENS_BATCH] == 1) {
        return all;
    }
    int64_t dims[] = {[FLOAT8_TURN_ROWS] = (int64_t)run->graph->shared.tensor,
                      [FLOAT8_TURN_COLS] = tokens[PLAN_GRAPH_TOKENS_BATCH],
                      [FLOAT8_TURN_INNER] =
                          tokens[PLAN_GRAPH_TOKENS_ROWS] * tokens[PLAN_GRAPH_TOKENS_WIDTH]};
    PlanTensor in_order = plan_float8_exchange(run, plan_run_operand_of(run, all), dims, dtype);
    plan_run_unref(run, all);
    return in_order;
}

/* With asynchronous tensor parallel: gathered in parts, beside the products that read them. */
static PlanTensor gathered_in_parts(PlanRun *run, const PlanGraphOp *op, PlanTensor cast) {
    plan_async_begin_gather(run, op, cast);
    plan_run_unref(run, cast);
    return plan_async_gathered(run);
}

void plan_float8_gather_tokens(PlanRun *run, const PlanGraphOp *op) {
    const int64_t *d = plan_graph_dims_of(run->graph, op);
    bool is_norms = d[PLAN_GRAPH_GATHER_IS_NORMS], in_parts = plan_async_gathers(run, op);
    PlanTensor scale, all;
    if (in_parts) {
        PlanTensor cast = cast_own(run, given(run, op), d, PLAN_E4M3, is_norms, &scale);
        all = gathered_in_parts(run, op, cast);
    } else {
        all = cast_and_gathered(run, given(run, op), d, PLAN_E4M3, is_norms, &scale);
    }
    uint32_t value = plan_graph_ref(run->graph, op->values + 1);
    plan_run_give(run, op, 0, all);
    plan_float8_leave_cast(run, value, false, plan_run_ref(run, all), scale);
    if (keeps(run) && in_parts) {
        run->float8.input.kept = plan_async_reordered(run);
    } else if (keeps(run)) {
        int64_t rows = d[PLAN_GRAPH_TOKENS_BATCH] * d[PLAN_GRAPH_TOKENS_ROWS] *
                       (int64_t)run->graph->shared.tensor;
        PlanFloat8Source x = plan_float8_of_tensor(run, all, rows, d[PLAN_GRAPH_TOKENS_WIDTH]);
        run->float8.input.kept = plan_float8_turn(run, &x, PLAN_E4M3);
    }
}

void plan_float8_gather_gradient(const PlanBackward *b) {
    plan_run_unref(b->run, b->run->float8.gradient_scale);
    if (plan_async_gathers(b->run, b->op)) {
        PlanTensor cast =
            cast_own(b->run, b->dy[0], dims(b), PLAN_E5M2, false, &b->run->float8.gradient_scale);
        b->dx[0] = gathered_in_parts(b->run, b->op, cast);
        return;
    }
    b->dx[0] = cast_and_gathered(b->run, b->dy[0], dims(b), PLAN_E5M2, false,
                                 &b->run->float8.gradient_scale);
}

/* What a block that is computed again has of a layer's input until dw asks for it. */
static PlanTensor input_itself(PlanRun *run, const PlanGraphOp *op) {
    return run->builder.phase == PLAN_PHASE_RECOMPUTE ? plan_run_ref(run, given(run, op))
                                                      : PLAN_NO_TENSOR;
}

/* ---- forward -------------------------------------------------------------------------------- */

PlanAsyncProduct plan_float8_async_product(PlanRun *run, PlanOpKind kind,
                                           const PlanGraphFloat8Linear *d, PlanTensor scale,
                                           const PlanFloat8SharedCast *w, PlanTensor made) {
    return (PlanAsyncProduct){.kind = kind,
                              .m = d->m,
                              .n = d->n,
                              .k = d->k,
                              .b = plan_run_operand_of(run, w->numbers),
                              .a_scale = scale,
                              .b8 = w->numbers,
                              .b_scale = w->scale,
                              .made = made};
}

static PlanTensor multiplied(PlanRun *run, const PlanGraphOp *op, const PlanFloat8SharedCast *x,
                             const PlanFloat8SharedCast *w) {
    PlanTensor by_parts;
    PlanAsyncProduct product = plan_float8_async_product(
        run, PLAN_OP_FLOAT8_LINEAR, shape_of(run, op), x->scale, w, PLAN_NO_TENSOR);
    if (run->graph->shared.async_tensor &&
        plan_async_multiply(run, op, x->numbers, product, &by_parts)) {
        return by_parts;
    }
    const PlanGraphValue *y =
        plan_graph_value_at(run->graph, plan_graph_ref(run->graph, op->values + LAYER_RESULT));
    PlanTensor made = plan_run_new_tensor(run, y->elements, (PlanDtype)y->dtype, "y");
    PlanFloat8Product whole = {.a = x->numbers,
                               .a_scale = x->scale,
                               .b = plan_run_operand_of(run, w->numbers),
                               .b_scale = w->scale,
                               .made = made};
    plan_float8_multiply(run, PLAN_OP_FLOAT8_LINEAR, shape_of(run, op), &whole);
    return made;
}

PlanFloat8SharedCast plan_float8_cast_of_all(PlanRun *run, const PlanFloat8Source *source,
                                             PlanFloat8Along along, bool found,
                                             PlanTensor *ret_turned) {
    PlanTensor of_all = plan_float8_scale_of_known(run, source, along, found);
    PlanFloat8Casts casts = plan_float8_cast(run, source, of_all, along, true, ret_turned != NULL);
    PlanFloat8SharedCast cast = {casts.as_is, plan_float8_inverse_of(run, of_all, source->to)};
    plan_run_unref(run, of_all);
    if (ret_turned) {
        *ret_turned = casts.turned;
    }
    return cast;
}

static PlanFloat8Source of_given(PlanRun *run, const PlanGraphOp *op) {
    const PlanGraphFloat8Linear *d = shape_of(run, op);
    return plan_float8_of_tensor(run, given(run, op), d->m, d->k);
}

static void tensorwise_forward(PlanRun *run, const PlanGraphOp *op) {
    bool takes_all = plan_float8_takes_gathered(run->graph, op), is_kept = keeps(run);
    PlanTensor x_turned = PLAN_NO_TENSOR, w_turned = PLAN_NO_TENSOR;
    PlanFloat8SharedCast x;
    if (takes_all) {
        x = (PlanFloat8SharedCast){plan_run_ref(run, run->float8.input.cast),
                                   plan_run_ref(run, run->float8.input.scale)};
        x_turned = is_kept ? plan_run_ref(run, run->float8.input.kept) : input_itself(run, op);
    } else {
        PlanFloat8Source source = of_given(run, op);
        x = plan_float8_cast_of_all(run, &source, PLAN_FLOAT8_WHOLE, shape_of(run, op)->maker >= 0,
                                    is_kept ? &x_turned : NULL);
        x_turned = is_kept ? x_turned : input_itself(run, op);
    }
    PlanFloat8Source weight = plan_float8_of_weight(run, op);
    PlanFloat8SharedCast w =
        plan_float8_cast_of_all(run, &weight, PLAN_FLOAT8_WHOLE, false, is_kept ? &w_turned : NULL);
    give(run, op, LAYER_RESULT, multiplied(run, op, &x, &w));
    give_ref(run, op, LAYER_WEIGHT_SCALE, w.scale);
    give(run, op, LAYER_WEIGHT_CAST, w_turned);
    give(run, op, LAYER_INPUT_CAST, x_turned);
    give_ref(run, op, LAYER_INPUT_SCALE, x.scale);
    drop(run, &x);
    drop(run, &w);
}

/* What has the layer's input for dw: a cast by columns, or by a block that is computed again the
 * input itself. */
static void leave_rows_of_input(PlanRun *run, const PlanGraphOp *op) {
    PlanFloat8Along columns = PLAN_FLOAT8_EACH_COLUMN;
    PlanFloat8Source x = of_given(run, op);
    PlanTensor scale, made = plan_float8_cast_rows(run, &x, &scale);
    plan_float8_leave_cast(run, plan_graph_ref(run->graph, op->values), false, made, scale);
    if (keeps(run)) {
        run->float8.input.kept_scale =
            plan_float8_scale_as(run, &x, columns, run->graph->dtype, false);
        run->float8.input.kept =
            plan_float8_cast(run, &x, run->float8.input.kept_scale, columns, false, true).turned;
    }
}

/* By columns a weight's rows, which ranks share: its scale is joined in forward, and once more in
 * backward where the cast is not kept. */
static void give_weight_for_dx(PlanRun *run, const PlanGraphOp *op) {
    PlanFloat8Source weight = plan_float8_of_weight(run, op);
    PlanTensor turned = PLAN_NO_TENSOR, scale = PLAN_NO_TENSOR;
    if (run->builder.phase == PLAN_PHASE_FORWARD) {
        PlanFloat8Along columns = PLAN_FLOAT8_EACH_COLUMN;
        PlanTensor of_all = plan_float8_scale_of_all(run, &weight, columns, false);
        if (keeps(run) && plan_float8_keeps_copy(run, op)) {
            turned = plan_float8_cast(run, &weight, of_all, columns, false, true).turned;
        }
        scale = plan_float8_inverse_of(run, of_all, weight.to);
        plan_run_unref(run, of_all);
    }
    give(run, op, LAYER_WEIGHT_SCALE, scale);
    give(run, op, LAYER_WEIGHT_CAST, turned);
}

static void forward_of_columns(PlanRun *run, const PlanGraphOp *op) {
    if (!plan_float8_has_cast(run, op, false)) {
        leave_rows_of_input(run, op);
    }
    PlanFloat8SharedCast x = {run->float8.input.cast, run->float8.input.scale}, w;
    PlanFloat8Source weight = plan_float8_of_weight(run, op);
    w.numbers = plan_float8_cast_rows(run, &weight, &w.scale);
    give(run, op, LAYER_RESULT, multiplied(run, op, &x, &w));
    drop(run, &w);
    give_weight_for_dx(run, op);
    give(run, op, LAYER_INPUT_CAST,
         keeps(run) ? plan_run_ref(run, run->float8.input.kept) : input_itself(run, op));
    give_ref(run, op, LAYER_INPUT_SCALE,
             keeps(run) ? run->float8.input.kept_scale : run->float8.input.scale);
}

static void forward_of_rows(PlanRun *run, const PlanGraphOp *op) {
    PlanFloat8Along rows = PLAN_FLOAT8_EACH_ROW, columns = PLAN_FLOAT8_EACH_COLUMN;
    PlanFloat8Source source = of_given(run, op);
    PlanFloat8SharedCast x =
        plan_float8_cast_of_all(run, &source, rows, shape_of(run, op)->maker >= 0, NULL);
    PlanFloat8Source weight = plan_float8_of_weight(run, op);
    PlanFloat8SharedCast w = plan_float8_cast_of_all(run, &weight, rows, false, NULL);
    give(run, op, LAYER_RESULT, multiplied(run, op, &x, &w));
    drop(run, &x);
    drop(run, &w);
    PlanTensor scale = PLAN_NO_TENSOR, turned = PLAN_NO_TENSOR;
    if (keeps(run)) {
        scale = plan_float8_scale_as(run, &weight, columns, run->graph->dtype, false);
        turned = plan_float8_cast(run, &weight, scale, columns, false, true).turned;
        if (!plan_float8_keeps_copy(run, op)) { /* of the weight itself it is found again */
            plan_run_drop(run, &scale);
        }
    }
    give(run, op, LAYER_WEIGHT_SCALE, scale);
    give(run, op, LAYER_WEIGHT_CAST, turned);
    give(run, op, LAYER_INPUT_CAST, PLAN_NO_TENSOR);
    give(run, op, LAYER_INPUT_SCALE, PLAN_NO_TENSOR);
}

static void forget_behind_last(PlanRun *run, const PlanGraphOp *op) {
    if (plan_float8_takes_gathered(run->graph, op) && !shape_of(run, op)->again) {
        plan_float8_forget(run);
    }
}

void plan_float8_shared_forward(PlanRun *run, const PlanGraphOp *op) {
    if (!plan_float8_by_rows(run)) {
        tensorwise_forward(run, op);
    } else if (plan_float8_takes_gathered(run->graph, op)) {
        forward_of_columns(run, op);
    } else {
        forward_of_rows(run, op);
    }
    forget_behind_last(run, op);
}

PlanTensor plan_float8_weight_scale(PlanRun *run, const PlanGraphOp *op) {
    return plan_run_value(run, plan_graph_ref(run->graph, op->values + LAYER_WEIGHT_SCALE));
}

PlanTensor plan_float8_input_scale(PlanRun *run, const PlanGraphOp *op) {
    return plan_run_value(run, plan_graph_ref(run->graph, op->values + LAYER_INPUT_SCALE));
}

static PlanTensor inverse_again(PlanRun *run, const PlanFloat8Source *source) {
    PlanTensor of_all = plan_float8_scale_of_known(run, source, PLAN_FLOAT8_WHOLE, false);
    PlanTensor scale = plan_float8_inverse_of(run, of_all, source->to);
    plan_run_unref(run, of_all);
    return scale;
}

/* By rows backward finds them itself. */
void plan_float8_find_again(PlanRun *run, const PlanGraphOp *op) {
    if (plan_float8_by_rows(run)) {
        return;
    }
    PlanFloat8Source x = of_given(run, op);
    PlanFloat8Source w = plan_float8_of_weight(run, op);
    give(run, op, LAYER_INPUT_SCALE, inverse_again(run, &x));
    give_ref(run, op, LAYER_INPUT_CAST, given(run, op));
    give(run, op, LAYER_WEIGHT_SCALE, inverse_again(run, &w));
}

/* Selective checkpointing kept the layer's result, but not the casts that backward reads: they are
 * made again. */
void plan_float8_cast_again(PlanRun *run, const PlanGraphOp *op) {
    if (!plan_float8_by_rows(run)) {
        PlanFloat8Source weight = plan_float8_of_weight(run, op);
        plan_run_unref(run, plan_float8_scale_of_known(run, &weight, PLAN_FLOAT8_WHOLE, false));
    }
    give_ref(run, op, LAYER_INPUT_CAST,
             plan_float8_takes_gathered(run->graph, op) || !plan_float8_by_rows(run)
                 ? given(run, op)
                 : PLAN_NO_TENSOR);
    forget_behind_last(run, op);
}

bool plan_float8_keeps_scale(const PlanRun *run, const PlanGraphOp *op) {
    return (PlanGraphKind)op->kind == PLAN_GRAPH_FLOAT8_LINEAR && run->graph->shared.tensor > 1 &&
           plan_float8_by_rows(run) && plan_float8_takes_gathered(run->graph, op);
}
