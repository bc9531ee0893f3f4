#include "plan/autograd/float8/words.h"
#include "plan/autograd/chosen.h"
#include "plan/autograd/float8/float8.h"
#include "plan/autograd/shared/collectives.h"

/* ---- what layers share ---------------------------------------------------------------------- */

void plan_float8_forget(PlanRun *run) {
    drop(run, &run->float8.input.cast);
    drop(run, &run->float8.input.kept);
    run->float8.input = PLAN_NO_FLOAT8_INPUT;
}

bool plan_float8_has_cast(const PlanRun *run, const PlanGraphOp *op, bool turned) {
    return run->float8.input.value == plan_graph_ref(run->graph, op->values) &&
           run->float8.input.turned == turned;
}

void plan_float8_leave_cast(PlanRun *run, uint32_t value, bool turned, PlanScaled cast) {
    plan_float8_forget(run);
    run->float8.input.value = value;
    run->float8.input.turned = turned;
    run->float8.input.cast = cast;
}

/* ---- sources: matrices to be cast ----------------------------------------------------------- */

static PlanFloat8Source source_of(PlanOperand x, int64_t rows, int64_t cols) {
    return (PlanFloat8Source){.x = x,
                              .up = NOTHING,
                              .weight = NOTHING,
                              .rstd = NOTHING,
                              .rows = rows,
                              .cols = cols,
                              .made = PLAN_FLOAT8_AS_THEY_ARE,
                              .to = PLAN_E4M3};
}

PlanFloat8Source plan_float8_of_tensor(PlanRun *run, PlanTensor x, int64_t rows, int64_t cols) {
    g_assert((uint64_t)(rows * cols) == x.elements);
    return source_of(plan_run_operand_of(run, x), rows, cols);
}

static const PlanGraphValue *weight_of(const PlanRun *run, const PlanGraphOp *op) {
    return plan_graph_value_at(run->graph, plan_graph_ref(run->graph, op->values + 1));
}

PlanFloat8Source plan_float8_of_weight(PlanRun *run, const PlanGraphOp *op) {
    const PlanGraphFloat8Linear *d = plan_graph_float8_linear_of(run->graph, op);
    uint32_t parameter = weight_of(run, op)->parameter;
    return source_of(run->flavour->parameter(run, parameter), d->n, d->k);
}

PlanOperand plan_float8_gathered_scale(PlanRun *run, const PlanGraphOp *op) {
    return run->flavour->float8_scale
               ? run->flavour->float8_scale(run, weight_of(run, op)->parameter)
               : NOTHING;
}

/* ---- kernels -------------------------------------------------------------------------------- */

static void operands_of(PlanRun *run, const PlanFloat8Source *source) {
    plan_builder_operand(&run->builder, source->x);
    plan_builder_operand(&run->builder, source->up);
    plan_builder_operand(&run->builder, source->weight);
    plan_builder_operand(&run->builder, source->rstd);
}

static int64_t n_scales(const PlanFloat8Source *source, PlanFloat8Along along) {
    return (int64_t)plan_float8_n_scales(along, (uint64_t)source->rows, (uint64_t)source->cols);
}

PlanTensor plan_float8_scale_as(PlanRun *run, const PlanFloat8Source *source, PlanFloat8Along along,
                                PlanDtype dtype, bool found) {
    int64_t scales = n_scales(source, along);
    double largest = plan_float8_largest(source->to);
    PlanTensor scale = plan_run_new_tensor(run, (uint64_t)scales, dtype, "scale");
    plan_builder_begin_op(&run->builder, PLAN_OP_FLOAT8_SCALE, PLAN_AXIS_NONE,
                          (int64_t[]){[FLOAT8_SCALE_ROWS] = source->rows,
                                      [FLOAT8_SCALE_COLS] = source->cols,
                                      [FLOAT8_SCALE_SCALES] = scales,
                                      [FLOAT8_SCALE_ALONG] = along,
                                      [FLOAT8_SCALE_MADE] = source->made,
                                      [FLOAT8_SCALE_FOUND] = found},
                          &largest);
    operands_of(run, source);
    plan_run_operand(run, scale);
    plan_run_launch(run);
    return scale;
}

PlanTensor plan_float8_scale(PlanRun *run, const PlanFloat8Source *source, PlanFloat8Along along,
                             bool found) {
    return plan_float8_scale_as(run, source, along, PLAN_FP32, found);
}

PlanTensor plan_float8_scale_of_all(PlanRun *run, const PlanFloat8Source *source,
                                    PlanFloat8Along along, bool found) {
    PlanTensor scale = plan_float8_scale_as(run, source, along, PLAN_FP64, found);
    plan_shared_all_reduce(run, scale, PLAN_REDUCTION_MAX);
    return scale;
}

PlanTensor plan_float8_scale_of_known(PlanRun *run, const PlanFloat8Source *source,
                                      PlanFloat8Along along, bool found) {
    bool is_first = run->builder.phase == PLAN_PHASE_FORWARD;
    bool is_kept = plan_run_keeps_largest(run);
    PlanTensor scale =
        plan_float8_scale_of_all(run, source, along, found || (is_kept && !is_first));
    if (is_first && is_kept) {
        plan_run_keep_largest(run);
    }
    return scale;
}

/* ret_as_is, ret_turned: NULL if it is not wanted. */
static void cast(PlanRun *run, const PlanFloat8Source *source, PlanTensor scale,
                 PlanFloat8Along along, PlanTensor *ret_as_is, PlanTensor *ret_turned) {
    uint64_t elements = (uint64_t)(source->rows * source->cols);
    if (ret_as_is) {
        *ret_as_is = plan_run_new_tensor(run, elements, source->to, "float8");
    }
    if (ret_turned) {
        *ret_turned = plan_run_new_tensor(run, elements, source->to, "float8_turned");
    }
    plan_float8_begin(run, PLAN_OP_FLOAT8_CAST,
                      (int64_t[]){[FLOAT8_CAST_ROWS] = source->rows,
                                  [FLOAT8_CAST_COLS] = source->cols,
                                  [FLOAT8_CAST_SCALES] = (int64_t)scale.elements,
                                  [FLOAT8_CAST_ALONG] = along,
                                  [FLOAT8_CAST_MADE] = source->made});
    operands_of(run, source);
    LAUNCH_BEGUN(run, scale, ret_as_is ? *ret_as_is : PLAN_NO_TENSOR,
                 ret_turned ? *ret_turned : PLAN_NO_TENSOR);
}

PlanTensor plan_float8_cast(PlanRun *run, const PlanFloat8Source *source, PlanTensor scale,
                            PlanFloat8Along along, PlanTensor *ret_turned) {
    PlanTensor as_is;
    cast(run, source, scale, along, &as_is, ret_turned);
    return as_is;
}

PlanTensor plan_float8_cast_turned(PlanRun *run, const PlanFloat8Source *source, PlanTensor scale,
                                   PlanFloat8Along along) {
    PlanTensor turned;
    cast(run, source, scale, along, NULL, &turned);
    return turned;
}

PlanScaled plan_float8_found_turned(PlanRun *run, const PlanFloat8Source *source) {
    PlanFloat8Along along = plan_float8_along_columns(run);
    PlanTensor scale = plan_float8_scale(run, source, along, false);
    return (PlanScaled){plan_float8_cast_turned(run, source, scale, along), scale};
}

PlanTensor plan_float8_exchange(PlanRun *run, PlanOperand from, const int64_t *dims,
                                PlanDtype dtype) {
    PlanTensor made = plan_run_new_tensor(
        run, (uint64_t)(dims[FLOAT8_TURN_ROWS] * dims[FLOAT8_TURN_COLS] * dims[FLOAT8_TURN_INNER]),
        dtype, "float8_turned");
    LAUNCH_OPERANDS(run, PLAN_OP_FLOAT8_TURN, dims, NULL, from, plan_run_operand_of(run, made));
    return made;
}

PlanTensor plan_float8_turn(PlanRun *run, const PlanFloat8Source *from, PlanDtype dtype) {
    return plan_float8_exchange(run, from->x,
                                (int64_t[]){[FLOAT8_TURN_ROWS] = from->rows,
                                            [FLOAT8_TURN_COLS] = from->cols,
                                            [FLOAT8_TURN_INNER] = 1},
                                dtype);
}

PlanTensor plan_float8_inverse(PlanRun *run, PlanOperand of, uint64_t n, PlanFloat8Step step,
                               PlanDtype to) {
    PlanTensor made = plan_run_new_tensor(run, n, PLAN_FP32, "scale");
    double largest = plan_float8_largest(to);
    LAUNCH_OPERANDS(run, PLAN_OP_FLOAT8_PASS,
                    DIMS([FLOAT8_PASS_N] = (int64_t)n, [FLOAT8_PASS_STEP] = step), &largest, of,
                    NOTHING, plan_run_operand_of(run, made));
    return made;
}

PlanTensor plan_float8_inverse_of(PlanRun *run, PlanTensor largest, PlanDtype to) {
    PlanFloat8Step step =
        plan_float8_by_rows(run) ? PLAN_FLOAT8_INVERSE_OF_POWER : PLAN_FLOAT8_INVERSE_SCALE;
    return plan_float8_inverse(run, plan_run_operand_of(run, largest), largest.elements, step, to);
}

PlanTensor plan_float8_joined_scale(PlanRun *run, const PlanFloat8Source *source,
                                    PlanFloat8Along along, bool found) {
    PlanTensor of_all = plan_float8_scale_of_known(run, source, along, found);
    PlanTensor scale = plan_float8_inverse_of(run, of_all, source->to);
    plan_run_unref(run, of_all);
    return scale;
}

PlanScaled plan_float8_cast_rows(PlanRun *run, const PlanFloat8Source *source) {
    PlanScaled rows;
    uint64_t n_rows = (uint64_t)source->rows;
    rows.numbers = plan_run_new_tensor(run, n_rows * (uint64_t)source->cols, PLAN_E4M3, "float8");
    rows.scale = plan_run_new_tensor(run, n_rows, PLAN_FP32, "scale");
    g_assert(source->made == PLAN_FLOAT8_AS_THEY_ARE);
    LAUNCH_OPERANDS(
        run, PLAN_OP_FLOAT8_CAST_ROWS,
        DIMS([FLOAT8_CAST_ROWS_ROWS] = source->rows, [FLOAT8_CAST_ROWS_COLS] = source->cols), NULL,
        source->x, plan_run_operand_of(run, rows.numbers), plan_run_operand_of(run, rows.scale));
    return rows;
}

void plan_float8_multiply(PlanRun *run, PlanOpKind kind, const PlanGraphFloat8Linear *d,
                          const PlanFloat8Product *p) {
    int64_t a_scales = (int64_t)p->a.scale.elements, b_scales = (int64_t)p->b_scale.elements;
    int64_t of_dx[] = {[FLOAT8_LINEAR_DX_M] = d->m,
                       [FLOAT8_LINEAR_DX_N] = d->n,
                       [FLOAT8_LINEAR_DX_K] = d->k,
                       [FLOAT8_LINEAR_DX_SCALED] = p->scaled,
                       [FLOAT8_LINEAR_DX_DY_SCALES] = a_scales,
                       [FLOAT8_LINEAR_DX_W_SCALES] = b_scales,
                       [FLOAT8_LINEAR_DX_TURNED] = p->turned};
    /* Of forward they begin so, too. */
    int64_t of_others[] = {[FLOAT8_LINEAR_DW_M] = d->m,
                           [FLOAT8_LINEAR_DW_N] = d->n,
                           [FLOAT8_LINEAR_DW_K] = d->k,
                           [FLOAT8_LINEAR_DW_DY_SCALES] = a_scales,
                           [FLOAT8_LINEAR_DW_X_SCALES] = b_scales,
                           [FLOAT8_LINEAR_DW_BEHIND] = plan_float8_by_rows(run)};
    plan_float8_begin(run, kind, kind == PLAN_OP_FLOAT8_LINEAR_DX ? of_dx : of_others);
    plan_run_operand(run, p->a.numbers);
    plan_run_operand(run, p->a.scale);
    plan_builder_operand(&run->builder, p->b);
    plan_run_operand(run, p->b_scale);
    plan_run_operand(run, p->made);
    plan_run_launch(run);
}
