/* exec/part-runs.h - parts of a tensor that ranks have one each of (plan_op_takes_parts()): where
 * they lie on this rank, and an op over them, row by row.
 *
 * A part of several rows has its elements in as many runs, apart from each other by all ranks'
 * runs. An op takes them one after the other, each as an op of its own that is as much smaller.
 */
#pragma once

#include "exec/task.h"

enum {
    EXEC_RUN_OPERANDS = 5 /* as many as an op of parts has at most */
};

/* One run of an op. Borrows the task that it is of. */
typedef struct {
    ExecTask task;
    ExecContext context;
    PlanRole role;
    PlanOp op;
    int64_t dims[PLAN_MAX_DIMS];
    PlanRef refs[EXEC_RUN_OPERANDS];
    PlanOperand operands[EXEC_RUN_OPERANDS];
    gpointer pointers[EXEC_RUN_OPERANDS];
} ExecPartRun;

/* Where the operand begins in its buffer, which for a part is by the rank's place on the axis. */
uint64_t exec_operand_offset(const Plan *plan, uint32_t rank, const PlanOp *op,
                             const PlanOperand *operand);

/* In how many runs the op goes; 1: as it is. */
uint64_t exec_part_runs(const PlanRole *role, const PlanOp *op);
/* Run i, which is then run->task. */
void exec_part_run(const ExecTask *t, uint64_t i, ExecPartRun *run);
