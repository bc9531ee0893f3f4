#include "plan/autograd/tensor.h"

#include "plan/autograd/launch.h"

PlanTensor plan_run_new_in(PlanRun *run, uint32_t buffer) {
    PlanStorage storage = {.refs = 1, .buffer = buffer};
    const PlanBuffer *b = plan_builder_at(&run->builder, buffer);
    uint64_t elements = b->bytes / plan_dtype_bytes((PlanDtype)b->dtype);
    plan_builder_alloc(&run->builder, buffer);
    plan_vector_push(&run->storages, storage);
    return (PlanTensor){run->storages.len - 1, 0, elements};
}

PlanTensor plan_run_new_tensor(PlanRun *run, uint64_t elements, PlanDtype dtype, const char *name) {
    return plan_run_new_in(
        run, plan_builder_buffer(&run->builder, elements, dtype, PLAN_TEMPORARY_OP, 0, name));
}

PlanTensor plan_run_new_empty(PlanRun *run, uint64_t elements, PlanDtype dtype, const char *name) {
    PlanTensor tensor = plan_run_new_tensor(run, elements, dtype, name);
    if (run->builder.fills) {
        plan_builder_fill_empty(&run->builder, plan_run_operand_of(run, tensor), 0);
    }
    return tensor;
}

/* The last storages go once nothing refers to them, so that a step takes the numbers of the one
 * before. */
static void forget_last(PlanRun *run) {
    while (run->storages.len && plan_vector_last(&run->storages)->refs == 0) {
        run->storages.len--;
    }
}

void plan_run_unref(PlanRun *run, PlanTensor tensor) {
    if (tensor.storage == PLAN_NONE) {
        return;
    }
    PlanStorage *storage = &run->storages.items[tensor.storage];
    g_assert(storage->refs > 0);
    if (--storage->refs == 0) {
        plan_builder_free(&run->builder, storage->buffer);
        forget_last(run);
    }
}

void plan_run_drop(PlanRun *run, PlanTensor *tensor) {
    plan_run_unref(run, *tensor);
    *tensor = PLAN_NO_TENSOR;
}

void plan_run_into(PlanRun *run, PlanOpKind kind, uint8_t lane, uint32_t from, uint32_t to,
                   uint64_t elements) {
    LAUNCH_ON(run, lane, kind, PLAN_AXIS_NONE, DIMS((int64_t)elements), NULL,
              plan_operand_part(from, 0, elements), plan_operand_part(to, 0, elements));
}

void plan_run_accumulate(PlanRun *run, PlanTensor from, PlanTensor to) {
    LAUNCH_ON(run, PLAN_LANE_COMPUTE, PLAN_OP_ACCUMULATE, PLAN_AXIS_NONE,
              DIMS((int64_t)from.elements), NULL, plan_run_operand_of(run, from),
              plan_run_operand_of(run, to));
}

void plan_run_give(PlanRun *run, const PlanGraphOp *op, unsigned i, PlanTensor made) {
    run->tape.storage_of_value[plan_graph_ref(run->graph, op->values + op->n_inputs + i)] =
        made.storage;
    if (made.storage != PLAN_NONE) {
        uint32_t buffer = plan_run_buffer_of(run, made);
        plan_vector_push(&run->frames.buffers, buffer);
    }
}
