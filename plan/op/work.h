/* plan/op/work.h - how much work an op is: arithmetic and bytes moved.
 *
 * Counted from shapes alone. A multiply-add is two operations. Bytes are what the kernel must read
 * from and write to memory at least once, by its operands' elements and dtypes. A bias or mask that
 * attention adds to its scores counts once for each sequence.
 */
#pragma once

#include "plan/plan.h"

typedef struct {
    double flops;
    double bytes; /* memory traffic; for a collective, the whole tensor of collectives.def */
} PlanOpWork;

PlanOpWork plan_op_work(const PlanRole *role, const PlanOp *op);
/* Whether a compiler merges the op into another op's kernel, which has moved most of its operands
 * already. */
bool plan_op_is_within(const PlanRole *role, const PlanOp *op);
bool plan_op_has_bias(const PlanRole *role, const PlanOp *op); /* attention that adds one */
bool plan_op_has_mask(const PlanRole *role, const PlanOp *op); /* ... that is a window's mask */
double plan_op_flops(const PlanRole *role, const PlanOp *op);  /* the arithmetic alone */
/* The part of it that the model itself asks for, as MFU counts it: without the scores that
 * attention's backward computes again (one of its five products), without pairs of a query and a
 * key that a window hides, and without Muon's products. */
double plan_op_model_flops(const PlanRole *role, const PlanOp *op);
/* The same with all pairs of attention, hidden or not: 12 L H Q T a token of L blocks, as published
 * MFU counts (Chowdhery et al. 2022, PaLM, appendix B). */
double plan_op_model_flops_of_all_pairs(const PlanRole *role, const PlanOp *op);
/* Bytes of symmetric memory that a rank needs: those of its largest op that works through it. It
 * lies outside the allocator. */
uint64_t plan_workspace_bytes(const PlanRole *role);
