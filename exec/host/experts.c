/* exec/host/experts.c - what is done to the rows of a mixture of experts. */
#include "exec/host/ops.h"

#include "exec/task.h"
#include "kernels/host/embedding.h"
#include "kernels/host/experts.h"

static bool run(const ExecTask *t) {
    const gpointer *p = t->pointers;
    switch ((ExecExpertsOp)t->op->kind) {
    case PLAN_OP_GROUPED_LINEAR:
        return kernel_grouped_linear_f32(p[3], p[0], p[1], p[2], dim(t, 0), dim(t, 1), dim(t, 2),
                                         dim(t, 3));
    case PLAN_OP_GROUPED_LINEAR_DX:
        return kernel_grouped_linear_dx_f32(p[3], p[0], p[1], p[2], dim(t, 0), dim(t, 1), dim(t, 2),
                                            dim(t, 3));
    case PLAN_OP_GROUPED_LINEAR_DW:
        return kernel_grouped_linear_dw_f32(p[3], p[0], p[1], p[2], dim(t, 0), dim(t, 1), dim(t, 2),
                                            dim(t, 3));
    case PLAN_OP_GROUPED_PARTS:
        return kernel_grouped_parts_f32(p[3], p[0], p[1], p[2], dim(t, 0), dim(t, 1), dim(t, 2),
                                        dim(t, 3), dim(t, 4));
    case PLAN_OP_SUM_EACH:
        kernel_sum_each_f32(p[1], p[0], dim(t, 0), dim(t, 1), dim(t, 2), dim(t, 2));
        return true;
    case PLAN_OP_REPEAT_EACH:
        kernel_repeat_each_f32(p[1], p[0], dim(t, 0), dim(t, 1), dim(t, 2));
        return true;
    case PLAN_OP_ROWS_OF:
        return kernel_embedding_forward_f32(p[2], p[0], p[1], dim(t, 0), dim(t, 2), dim(t, 1));
    case PLAN_OP_ADD_TO_ROWS:
        return kernel_add_to_rows_f32(p[3], p[0], p[1], p[2], dim(t, 0), dim(t, 1), dim(t, 2));
    }
    g_assert_not_reached();
}

bool exec_host_experts(const ExecTask *t, GError **error) {
    return exec_host_in_table(run(t), plan_op_info((PlanOpKind)t->op->kind)->name, error);
}
