/* exec/host/task.h - what a task's op says, in the words its kernels are called with. */
#pragma once

#include "exec/host/launch.h"

static inline const int64_t *dims(const ExecTask *t) {
    return plan_op_dims(t->context->role, t->op);
}

static inline size_t dim(const ExecTask *t, unsigned i) {
    return (size_t)dims(t)[i];
}

static inline double attr(const ExecTask *t, unsigned i) {
    return plan_op_attrs(t->context->role, t->op)[i];
}

static inline float *f32(const ExecTask *t, unsigned i) {
    return t->pointers[i];
}

static inline uint8_t *bytes(const ExecTask *t, unsigned i) {
    return t->pointers[i];
}

static inline const int64_t *i64(const ExecTask *t, unsigned i) {
    return t->pointers[i];
}

static inline const PlanOperand *operand(const ExecTask *t, unsigned i) {
    return plan_op_operands(t->context->role, t->op) + i;
}

static inline PlanDtype operand_dtype(const ExecTask *t, unsigned i) {
    return (PlanDtype)t->context->role->buffers[operand(t, i)->buffer].dtype;
}

static inline uint32_t axis_rank(const ExecTask *t) {
    return plan_rank_on_axis(t->context->plan, t->context->comm->rank, (PlanAxis)t->op->axis);
}

static inline unsigned list_length(const ExecTask *t) {
    return plan_op_list_length(plan_op_info((PlanOpKind)t->op->kind), t->op->n_operands);
}
