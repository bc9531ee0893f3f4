/* exec/host/experts.c - what is done to the rows of a mixture of experts. */
#include "exec/host/ops.h"

#include "exec/task.h"
#include "kernels/host/experts.h"
#include "kernels/host/rows/embedding.h"

static bool run(const ExecTask *t) {
    const gpointer *p = t->pointers;
    switch ((ExecExpertsOp)t->op->kind) {
    case PLAN_OP_GROUPED_LINEAR:
        return kernel_grouped_linear_f32(p[GROUPED_LINEAR_Y], p[GROUPED_LINEAR_X],
                                         p[GROUPED_LINEAR_W], p[GROUPED_LINEAR_ENDS],
                                         dim(t, GROUPED_LINEAR_M), dim(t, GROUPED_LINEAR_N),
                                         dim(t, GROUPED_LINEAR_K), dim(t, GROUPED_LINEAR_GROUPS));
    case PLAN_OP_GROUPED_LINEAR_DX:
        return kernel_grouped_linear_dx_f32(
            p[GROUPED_LINEAR_DX_DX], p[GROUPED_LINEAR_DX_DY], p[GROUPED_LINEAR_DX_W],
            p[GROUPED_LINEAR_DX_ENDS], dim(t, GROUPED_LINEAR_DX_M), dim(t, GROUPED_LINEAR_DX_N),
            dim(t, GROUPED_LINEAR_DX_K), dim(t, GROUPED_LINEAR_DX_GROUPS));
    case PLAN_OP_GROUPED_LINEAR_DW:
        return kernel_grouped_linear_dw_f32(
            p[GROUPED_LINEAR_DW_DW], p[GROUPED_LINEAR_DW_DY], p[GROUPED_LINEAR_DW_X],
            p[GROUPED_LINEAR_DW_ENDS], dim(t, GROUPED_LINEAR_DW_M), dim(t, GROUPED_LINEAR_DW_N),
            dim(t, GROUPED_LINEAR_DW_K), dim(t, GROUPED_LINEAR_DW_GROUPS));
    case PLAN_OP_GROUPED_PARTS:
        return kernel_grouped_parts_f32(p[GROUPED_PARTS_Y], p[GROUPED_PARTS_X], p[GROUPED_PARTS_W],
                                        p[GROUPED_PARTS_ENDS], dim(t, GROUPED_PARTS_M),
                                        dim(t, GROUPED_PARTS_N), dim(t, GROUPED_PARTS_K),
                                        dim(t, GROUPED_PARTS_GROUPS), dim(t, GROUPED_PARTS_PARTS));
    case PLAN_OP_GROUPED_PRODUCT: /* what gives a grouped_linear's x its gradient */
        return kernel_grouped_linear_dx_f32(
            p[GROUPED_PRODUCT_Y], p[GROUPED_PRODUCT_X], p[GROUPED_PRODUCT_W],
            p[GROUPED_PRODUCT_ENDS], dim(t, GROUPED_PRODUCT_M), dim(t, GROUPED_PRODUCT_K),
            dim(t, GROUPED_PRODUCT_N), dim(t, GROUPED_PRODUCT_GROUPS));
    case PLAN_OP_SUM_EACH:
        kernel_sum_each_f32(p[SUM_EACH_Y], p[SUM_EACH_X], dim(t, SUM_EACH_ROWS),
                            dim(t, SUM_EACH_EACH), dim(t, SUM_EACH_WIDTH), dim(t, SUM_EACH_WIDTH));
        return true;
    case PLAN_OP_REPEAT_EACH:
        kernel_repeat_each_f32(p[REPEAT_EACH_Y], p[REPEAT_EACH_X], dim(t, REPEAT_EACH_ROWS),
                               dim(t, REPEAT_EACH_EACH), dim(t, REPEAT_EACH_WIDTH));
        return true;
    case PLAN_OP_ROWS_OF:
        return kernel_embedding_forward_f32(p[ROWS_OF_Y], p[ROWS_OF_X], p[ROWS_OF_INDEX],
                                            dim(t, ROWS_OF_N), dim(t, ROWS_OF_ROWS),
                                            dim(t, ROWS_OF_WIDTH));
    case PLAN_OP_ADD_TO_ROWS:
        return kernel_add_to_rows_f32(p[ADD_TO_ROWS_Y], p[ADD_TO_ROWS_A], p[ADD_TO_ROWS_X],
                                      p[ADD_TO_ROWS_INDEX], dim(t, ADD_TO_ROWS_N),
                                      dim(t, ADD_TO_ROWS_WIDTH), dim(t, ADD_TO_ROWS_ROWS));
    }
    g_assert_not_reached();
}

bool exec_host_experts(const ExecTask *t, GError **error) {
    return exec_host_in_table(run(t), plan_op_info((PlanOpKind)t->op->kind)->name, error);
}
