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
#include "plan/autograd/float8/float8.h"
#include "plan/autograd/float8/words.h"
#include "plan/autograd/shared/collectives.h"

/* What forward makes for backward, and not for a block that is computed again. */
static bool keeps(const PlanRun *run) {
    return run->builder.phase == PLAN_PHASE_FORWARD && run->checkpoint == PLAN_NONE;
}

static void give_ref(PlanRun *run, const PlanGraphOp *op, unsigned which, PlanTensor made) {
    give(run, op, which, plan_run_ref(run, made));
}

static PlanTensor given(PlanRun *run, const PlanGraphOp *op) {
    return plan_run_given(run, op, LAYER_INPUT);
}

/* ---- tokens and gradients that are gathered in float8 --------------------------------------- */

PlanScaled plan_float8_cast_joined(PlanRun *run, const PlanFloat8Source *source,
                                   PlanFloat8Along along, bool found, PlanTensor *ret_turned) {
    PlanScaled cast;
    PlanTensor of_all = source->to == PLAN_E5M2
                            ? plan_float8_scale_of_all(run, source, along, found)
                            : plan_float8_scale_of_known(run, source, along, found);
    cast.numbers = plan_float8_cast(run, source, of_all, along, ret_turned);
    cast.scale = plan_float8_inverse_of(run, of_all, source->to);
    plan_run_unref(run, of_all);
    return cast;
}

/* tokens: of each rank, as its gather or scatter has them: sequences, rows, width. */
static PlanScaled cast_own(PlanRun *run, PlanTensor own, const int64_t *tokens, PlanDtype dtype,
                           bool found) {
    PlanFloat8Source source = plan_float8_of_tensor(run, own, tokens[0] * tokens[1], tokens[2]);
    source.to = dtype;
    return plan_float8_cast_joined(run, &source, PLAN_FLOAT8_WHOLE, found, NULL);
}

/* Cast and gathered; of several sequences what arrives is put in their order by a copy. */
static PlanScaled cast_and_gathered(PlanRun *run, PlanTensor own, const int64_t *tokens,
                                    PlanDtype dtype, bool found) {
    PlanScaled cast = cast_own(run, own, tokens, dtype, found);
    PlanScaled all = {plan_shared_of_all(run, cast.numbers), cast.scale};
    plan_run_unref(run, cast.numbers);
    if (tokens[PLAN_GRAPH_TOKENS_BATCH] == 1) {
        return all;
    }
    int64_t dims[] = {[FLOAT8_TURN_ROWS] = (int64_t)run->graph->shared.tensor,
                      [FLOAT8_TURN_COLS] = tokens[PLAN_GRAPH_TOKENS_BATCH],
                      [FLOAT8_TURN_INNER] =
                          tokens[PLAN_GRAPH_TOKENS_ROWS] * tokens[PLAN_GRAPH_TOKENS_WIDTH]};
    PlanTensor in_order =
        plan_float8_exchange(run, plan_run_operand_of(run, all.numbers), dims, dtype);
    plan_run_unref(run, all.numbers);
    return (PlanScaled){in_order, all.scale};
}

/* With asynchronous tensor parallel: gathered in parts, beside the products that read them. */
static PlanScaled gathered_in_parts(PlanRun *run, const PlanGraphOp *op, PlanScaled cast) {
    plan_async_begin_gather(run, op, cast.numbers);
    plan_run_unref(run, cast.numbers);
    return (PlanScaled){plan_async_gathered(run), cast.scale};
}

static PlanScaled gathered(PlanRun *run, const PlanGraphOp *op, PlanTensor own, PlanDtype dtype,
                           bool found) {
    const int64_t *tokens = plan_graph_dims_of(run->graph, op);
    return plan_async_gathers(run, op)
               ? gathered_in_parts(run, op, cast_own(run, own, tokens, dtype, found))
               : cast_and_gathered(run, own, tokens, dtype, found);
}

void plan_float8_gather_tokens(PlanRun *run, const PlanGraphOp *op) {
    const int64_t *d = plan_graph_dims_of(run->graph, op);
    bool in_parts = plan_async_gathers(run, op);
    PlanScaled all = gathered(run, op, given(run, op), PLAN_E4M3, d[PLAN_GRAPH_GATHER_IS_NORMS]);
    plan_run_give(run, op, 0, all.numbers);
    plan_run_ref(run, all.numbers);
    plan_float8_leave_cast(run, plan_graph_ref(run->graph, op->values + 1), false, all);
    if (keeps(run) && in_parts) {
        run->float8.input.kept.numbers = plan_async_reordered(run);
    } else if (keeps(run)) {
        int64_t rows = d[PLAN_GRAPH_TOKENS_BATCH] * d[PLAN_GRAPH_TOKENS_ROWS] *
                       (int64_t)run->graph->shared.tensor;
        PlanFloat8Source x =
            plan_float8_of_tensor(run, all.numbers, rows, d[PLAN_GRAPH_TOKENS_WIDTH]);
        run->float8.input.kept.numbers = plan_float8_turn(run, &x, PLAN_E4M3);
    }
}

void plan_float8_gather_gradient(const PlanBackward *b) {
    plan_run_unref(b->run, b->run->float8.gradient_scale);
    PlanScaled all = gathered(b->run, b->op, b->dy[0], PLAN_E5M2, false);
    b->dx[0] = all.numbers;
    b->run->float8.gradient_scale = all.scale;
}

/* What a block that is computed again has of a layer's input until dw asks for it. */
static PlanTensor input_itself(PlanRun *run, const PlanGraphOp *op) {
    return run->builder.phase == PLAN_PHASE_RECOMPUTE ? plan_run_ref(run, given(run, op))
                                                      : PLAN_NO_TENSOR;
}

/* ---- forward -------------------------------------------------------------------------------- */

PlanAsyncProduct plan_float8_async_product(PlanRun *run, PlanOpKind kind,
                                           const PlanGraphFloat8Linear *d, PlanTensor scale,
                                           const PlanScaled *w, PlanTensor made) {
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

static PlanTensor multiplied(PlanRun *run, const PlanGraphOp *op, const PlanScaled *x,
                             const PlanScaled *w) {
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
    PlanFloat8Product whole = {
        .a = *x, .b = plan_run_operand_of(run, w->numbers), .b_scale = w->scale, .made = made};
    plan_float8_multiply(run, PLAN_OP_FLOAT8_LINEAR, shape_of(run, op), &whole);
    return made;
}

static PlanFloat8Source of_given(PlanRun *run, const PlanGraphOp *op) {
    const PlanGraphFloat8Linear *d = shape_of(run, op);
    return plan_float8_of_tensor(run, given(run, op), d->m, d->k);
}

static void tensorwise_forward(PlanRun *run, const PlanGraphOp *op) {
    bool takes_all = plan_float8_takes_gathered(run->graph, op), is_kept = keeps(run);
    PlanTensor x_turned = PLAN_NO_TENSOR, w_turned = PLAN_NO_TENSOR;
    PlanScaled x;
    if (takes_all) {
        x = run->float8.input.cast;
        plan_run_ref(run, x.numbers);
        plan_run_ref(run, x.scale);
        x_turned =
            is_kept ? plan_run_ref(run, run->float8.input.kept.numbers) : input_itself(run, op);
    } else {
        PlanFloat8Source source = of_given(run, op);
        x = plan_float8_cast_joined(run, &source, PLAN_FLOAT8_WHOLE, shape_of(run, op)->maker >= 0,
                                    is_kept ? &x_turned : NULL);
        x_turned = is_kept ? x_turned : input_itself(run, op);
    }
    PlanFloat8Source weight = plan_float8_of_weight(run, op);
    PlanScaled w =
        plan_float8_cast_joined(run, &weight, PLAN_FLOAT8_WHOLE, false, is_kept ? &w_turned : NULL);
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
    PlanScaled *kept = &run->float8.input.kept;
    plan_float8_leave_cast(run, plan_graph_ref(run->graph, op->values), false,
                           plan_float8_cast_rows(run, &x));
    if (keeps(run)) {
        kept->scale = plan_float8_scale_as(run, &x, columns, run->graph->dtype, false);
        kept->numbers = plan_float8_cast_turned(run, &x, kept->scale, columns);
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
            turned = plan_float8_cast_turned(run, &weight, of_all, columns);
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
    PlanFloat8Source weight = plan_float8_of_weight(run, op);
    PlanScaled w = plan_float8_cast_rows(run, &weight);
    give(run, op, LAYER_RESULT, multiplied(run, op, &run->float8.input.cast, &w));
    drop(run, &w);
    give_weight_for_dx(run, op);
    const PlanFloat8Input *input = &run->float8.input;
    give(run, op, LAYER_INPUT_CAST,
         keeps(run) ? plan_run_ref(run, input->kept.numbers) : input_itself(run, op));
    give_ref(run, op, LAYER_INPUT_SCALE, keeps(run) ? input->kept.scale : input->cast.scale);
}

static void forward_of_rows(PlanRun *run, const PlanGraphOp *op) {
    PlanFloat8Along rows = PLAN_FLOAT8_EACH_ROW, columns = PLAN_FLOAT8_EACH_COLUMN;
    PlanFloat8Source source = of_given(run, op);
    PlanScaled x = plan_float8_cast_joined(run, &source, rows, shape_of(run, op)->maker >= 0, NULL);
    PlanFloat8Source weight = plan_float8_of_weight(run, op);
    PlanScaled w = plan_float8_cast_joined(run, &weight, rows, false, NULL);
    give(run, op, LAYER_RESULT, multiplied(run, op, &x, &w));
    drop(run, &x);
    drop(run, &w);
    PlanTensor scale = PLAN_NO_TENSOR, turned = PLAN_NO_TENSOR;
    if (keeps(run)) {
        scale = plan_float8_scale_as(run, &weight, columns, run->graph->dtype, false);
        turned = plan_float8_cast_turned(run, &weight, scale, columns);
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

/* By rows backward finds them itself. */
void plan_float8_find_again(PlanRun *run, const PlanGraphOp *op) {
    if (plan_float8_by_rows(run)) {
        return;
    }
    PlanFloat8Source x = of_given(run, op);
    PlanFloat8Source w = plan_float8_of_weight(run, op);
    give(run, op, LAYER_INPUT_SCALE, plan_float8_joined_scale(run, &x, PLAN_FLOAT8_WHOLE, false));
    give_ref(run, op, LAYER_INPUT_CAST, given(run, op));
    give(run, op, LAYER_WEIGHT_SCALE, plan_float8_joined_scale(run, &w, PLAN_FLOAT8_WHOLE, false));
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
