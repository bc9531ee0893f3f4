#include "exec/part-runs.h"

#include <string.h>

#include "plan/mesh.h"
#include "plan/op/shape.h"

static bool takes_parts(const PlanOp *op) {
    return op->axis != PLAN_AXIS_NONE && plan_op_takes_parts((PlanOpKind)op->kind);
}

uint64_t exec_operand_offset(const Plan *plan, uint32_t rank, const PlanOp *op,
                             const PlanOperand *operand) {
    if (!takes_parts(op) || !operand->rows) {
        return operand->offset_bytes;
    }
    PlanDtype dtype =
        (PlanDtype)plan->roles[plan_role_of_rank(plan, rank)].buffers[operand->buffer].dtype;
    uint64_t bytes = operand->elements * plan_dtype_bytes(dtype);
    uint64_t ranks = plan->axes[op->axis],
             place = plan_rank_on_axis(plan, rank, (PlanAxis)op->axis);
    return (place + operand->offset_bytes / bytes) % ranks * (bytes / operand->rows);
}

uint64_t exec_part_runs(const PlanRole *role, const PlanOp *op) {
    uint64_t runs = 1;
    for (uint32_t i = 0; takes_parts(op) && i < op->n_operands; i++) {
        runs = MAX(runs, plan_op_operand(role, op, i).rows);
    }
    return runs;
}

/* Rows of a product, and the scales that each has one of; elements of what is moved. */
static void cut_dims(const ExecTask *t, uint64_t runs, int64_t *d) {
    PlanOpKind kind = (PlanOpKind)t->op->kind;
    const PlanOpInfo *info = plan_op_info(kind);
    unsigned scales = kind == PLAN_OP_FLOAT8_LINEAR      ? FLOAT8_LINEAR_X_SCALES
                      : kind == PLAN_OP_FLOAT8_LINEAR_DX ? FLOAT8_LINEAR_DX_DY_SCALES
                                                         : 0;
    memcpy(d, dims(t), info->n_dims * sizeof *d);
    d[LINEAR_M] /= (int64_t)runs; /* the first dim of all */
    if (scales && d[scales] > 1) {
        d[scales] /= (int64_t)runs;
    }
}

void exec_part_run(const ExecTask *t, uint64_t i, ExecPartRun *run) {
    uint64_t runs = exec_part_runs(t->context->role, t->op);
    uint64_t ranks = t->context->plan->axes[t->op->axis];
    uint32_t n = t->op->n_operands;
    g_assert(n <= EXEC_RUN_OPERANDS);
    run->context = *t->context;
    run->role = *t->context->role;
    run->op = *t->op;
    cut_dims(t, runs, run->dims);
    for (uint32_t j = 0; j < n; j++) {
        run->operands[j] = operand(t, j);
        run->refs[j] = run->operands[j].buffer == PLAN_NONE ? PLAN_NONE : PLAN_PART + j;
    }
    run->role.dims = run->dims;
    run->role.operands = run->refs;
    run->role.parts = run->operands;
    run->context.role = &run->role;
    run->op.dims = run->op.operands = 0;
    run->task = *t;
    run->task.context = &run->context;
    run->task.op = &run->op;
    run->task.pointers = run->pointers;
    for (uint32_t j = 0; j < n; j++) {
        uint64_t all = plan_op_elements_touched(t->context->role, t->op, j);
        uint64_t some = plan_op_elements_touched(&run->role, &run->op, j);
        uint64_t apart = some == all ? 0 : run->operands[j].rows > 1 ? ranks * some : some;
        run->pointers[j] = t->pointers[j];
        if (t->pointers[j]) {
            run->pointers[j] =
                (char *)t->pointers[j] + i * apart * plan_dtype_bytes(operand_dtype(t, j));
            run->operands[j].elements = some;
            run->operands[j].rows = 0;
        }
    }
}
