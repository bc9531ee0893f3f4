#include "plan/autograd/float8/words.h"
#include "plan/autograd/float8/float8.h"

/* ---- what layers share ---------------------------------------------------------------------- */

void plan_float8_forget(PlanRun *run) {
    plan_run_unref(run, run->float8.cast);
    plan_run_unref(run, run->float8.scale);
    plan_run_unref(run, run->float8.kept);
    plan_run_unref(run, run->float8.kept_scale);
    run->float8 = PLAN_NO_FLOAT8_INPUT;
}

bool plan_float8_has_cast(const PlanRun *run, const PlanGraphOp *op, bool turned) {
    return run->float8.value == plan_graph_ref(run->graph, op->values) &&
           run->float8.turned == turned;
}

void plan_float8_leave_cast(PlanRun *run, uint32_t value, bool turned, PlanTensor made,
                            PlanTensor scale) {
    plan_float8_forget(run);
    run->float8 = PLAN_NO_FLOAT8_INPUT;
    run->float8.value = value;
    run->float8.turned = turned;
    run->float8.cast = made;
    run->float8.scale = scale;
}

/* Layers that share an input run backward from the last to the first. */
bool plan_float8_is_first_of_input(const PlanRun *run, const PlanGraphOp *op) {
    const PlanGraph *graph = run->graph;
    while (op-- > plan_graph_at(graph->ops, PlanGraphOp, 0)) {
        if ((PlanGraphView)op->kind == PLAN_GRAPH_FLOAT8_LINEAR) {
            return !plan_graph_float8_linear_of(graph, op)->again;
        }
    }
    return true;
}

/* ---- what is cast --------------------------------------------------------------------------- */

PlanFloat8Source plan_float8_of_tensor(PlanRun *run, PlanTensor x) {
    return (PlanFloat8Source){plan_run_operand_of(run, x), plan_float8_nothing, x.elements};
}

const PlanGraphValue *plan_float8_weight(const PlanRun *run, const PlanGraphOp *op) {
    return plan_graph_at(run->graph->values, PlanGraphValue,
                         plan_graph_ref(run->graph, op->values + 1));
}

PlanFloat8Source plan_float8_of_weight(PlanRun *run, const PlanGraphOp *op) {
    const PlanGraphValue *v = plan_float8_weight(run, op);
    return (PlanFloat8Source){run->flavour->parameter(run, v->parameter), plan_float8_nothing,
                              v->elements};
}

PlanOperand plan_float8_gathered_scale(PlanRun *run, const PlanGraphOp *op) {
    return run->flavour->float8_scale
               ? run->flavour->float8_scale(run, plan_float8_weight(run, op)->parameter)
               : plan_float8_nothing;
}

/* ---- kernels -------------------------------------------------------------------------------- */

PlanTensor plan_float8_scale_as(PlanRun *run, const PlanFloat8Source *source, uint64_t scales,
                                PlanDtype dtype, bool found) {
    PlanTensor scale = plan_run_new_tensor(run, scales, dtype, "scale");
    plan_float8_begin(run, PLAN_OP_FLOAT8_SCALE,
                      (int64_t[]){(int64_t)source->elements, (int64_t)scales});
    plan_float8_operand(run, found ? plan_float8_nothing : source->x);
    plan_float8_operand(run, found ? plan_float8_nothing : source->more);
    plan_run_operand(run, scale);
    plan_run_launch(run);
    return scale;
}

PlanTensor plan_float8_scale(PlanRun *run, const PlanFloat8Source *source, uint64_t scales,
                             bool found) {
    return plan_float8_scale_as(run, source, scales, PLAN_FP32, found);
}

PlanTensor plan_float8_scale_of_all(PlanRun *run, const PlanFloat8Source *source, uint64_t scales,
                                    bool found) {
    double attr = PLAN_REDUCTION_MAX;
    PlanTensor scale = plan_float8_scale_as(run, source, scales, PLAN_FP64, found);
    plan_builder_begin_op(&run->builder, PLAN_OP_ALL_REDUCE, PLAN_AXIS_TENSOR,
                          (int64_t[]){(int64_t)scales, (int64_t)run->graph->tensor}, &attr);
    plan_run_operand(run, scale);
    plan_run_launch(run);
    return scale;
}

PlanTensor plan_float8_scale_of_known(PlanRun *run, const PlanFloat8Source *source, uint64_t scales,
                                      bool found) {
    bool is_first = run->builder.phase == PLAN_PHASE_FORWARD;
    bool is_kept = plan_run_keeps_largest(run);
    PlanTensor scale =
        plan_float8_scale_of_all(run, source, scales, found || (is_kept && !is_first));
    if (is_first && is_kept) {
        plan_run_keep_largest(run);
    }
    return scale;
}

PlanFloat8Casts plan_float8_cast(PlanRun *run, const PlanFloat8Source *source, PlanTensor scale,
                                 PlanDtype dtype, bool wants_as_is, bool wants_turned) {
    PlanFloat8Casts casts = {PLAN_NO_TENSOR, PLAN_NO_TENSOR};
    if (wants_as_is) {
        casts.as_is = plan_run_new_tensor(run, source->elements, dtype, "float8");
    }
    if (wants_turned) {
        casts.turned = plan_run_new_tensor(run, source->elements, dtype, "float8_turned");
    }
    plan_float8_begin(run, PLAN_OP_FLOAT8_CAST,
                      (int64_t[]){(int64_t)source->elements, (int64_t)scale.elements});
    plan_float8_operand(run, source->x);
    plan_float8_operand(run, source->more);
    plan_run_operand(run, scale);
    plan_run_operand(run, casts.as_is);
    plan_run_operand(run, casts.turned);
    plan_run_launch(run);
    return casts;
}

PlanTensor plan_float8_turn(PlanRun *run, const PlanFloat8Source *cast, PlanDtype dtype) {
    PlanTensor made = plan_run_new_tensor(run, cast->elements, dtype, "float8_turned");
    plan_float8_begin(run, PLAN_OP_FLOAT8_TURN, (int64_t[]){(int64_t)cast->elements});
    plan_float8_operand(run, cast->x);
    plan_run_operand(run, made);
    plan_run_launch(run);
    return made;
}

PlanTensor plan_float8_inverse(PlanRun *run, PlanOperand scale, uint64_t n) {
    PlanTensor made = plan_run_new_tensor(run, n, PLAN_FP32, "scale");
    plan_float8_begin(run, PLAN_OP_FLOAT8_PASS, (int64_t[]){(int64_t)n});
    plan_float8_operand(run, scale);
    plan_float8_operand(run, plan_float8_nothing);
    plan_run_operand(run, made);
    plan_run_launch(run);
    return made;
}

PlanTensor plan_float8_cast_rows(PlanRun *run, const PlanFloat8Source *source, uint64_t rows,
                                 PlanTensor *ret_scale) {
    PlanTensor made = plan_run_new_tensor(run, source->elements, PLAN_E4M3, "float8");
    *ret_scale = plan_run_new_tensor(run, rows, PLAN_FP32, "scale");
    plan_float8_begin(run, PLAN_OP_FLOAT8_CAST_ROWS,
                      (int64_t[]){(int64_t)source->elements, (int64_t)rows});
    plan_float8_operand(run, source->x);
    plan_run_operand(run, made);
    plan_run_operand(run, *ret_scale);
    plan_run_launch(run);
    return made;
}

void plan_float8_multiply(PlanRun *run, PlanOpKind kind, const PlanGraphFloat8Linear *d,
                          PlanTensor a, PlanTensor a_scale, PlanOperand b, PlanTensor b_scale,
                          PlanTensor made, int64_t scaled) {
    plan_float8_begin(run, kind, (int64_t[]){d->m, d->n, d->k, scaled});
    plan_run_operand(run, a);
    plan_run_operand(run, a_scale);
    plan_float8_operand(run, b);
    plan_run_operand(run, b_scale);
    plan_run_operand(run, made);
    plan_run_launch(run);
}
