/* plan/autograd/tensor.h - tensors of a rank, whose references are counted, and where in the
 * network it is: the words in which all else is written. Inside plan/ only.
 *
 * A buffer is freed when its last holder lets go.
 */
#pragma once

#include "plan/autograd/run.h"

/* Phase, module and unit that the following instructions carry. */
static inline void plan_run_at(PlanRun *run, PlanPhase phase, uint32_t module) {
    run->builder.phase = phase;
    run->builder.module = module;
    run->builder.unit = module == PLAN_NONE ? PLAN_NONE : run->modules.unit_of[module];
}
static inline void plan_run_at_unit(PlanRun *run, uint32_t unit) {
    run->builder.unit = unit;
}
/* The phase of a forward pass. */
static inline PlanPhase plan_run_forward_phase(const PlanRun *run) {
    return run->graph->evaluates ? PLAN_PHASE_EVALUATION : PLAN_PHASE_FORWARD;
}

/* ---- tensors. A new one has one reference --------------------------------------------------- */

PlanTensor plan_run_new_tensor(PlanRun *run, uint64_t elements, PlanDtype dtype, const char *name);
/* As torch.empty() does (plan_builder_alloc_empty()). */
PlanTensor plan_run_new_empty(PlanRun *run, uint64_t elements, PlanDtype dtype, const char *name);
PlanTensor plan_run_new_in(PlanRun *run, uint32_t buffer); /* in a buffer that is free now */
static inline PlanTensor plan_run_ref(PlanRun *run, PlanTensor tensor) {
    if (tensor.storage != PLAN_NONE) {
        run->storages.items[tensor.storage].refs++;
    }
    return tensor;
}
void plan_run_unref(PlanRun *run,
                    PlanTensor tensor); /* frees the buffer with the last; no tensor is fine */
/* The same of a variable's, which then has none. */
void plan_run_drop(PlanRun *run, PlanTensor *tensor);

/* The tensor of a graph value. Inline, to save copying the struct. */
static inline PlanTensor plan_run_value(PlanRun *run, uint32_t value) {
    const PlanGraphValue *v = plan_graph_value_at(run->graph, value);
    return (PlanTensor){run->tape.storage_of_value[v->base], v->offset, v->elements};
}
/* Input i of a graph op that becomes several launches. */
static inline PlanTensor plan_run_given(PlanRun *run, const PlanGraphOp *op, unsigned i) {
    return plan_run_value(run, plan_graph_ref(run->graph, op->values + i));
}
static inline uint32_t plan_run_buffer_of(PlanRun *run, PlanTensor tensor) {
    return run->storages.items[tensor.storage].buffer;
}
/* Sets output i of a graph op that becomes several launches; takes over the tensor's reference. */
void plan_run_give(PlanRun *run, const PlanGraphOp *op, unsigned i, PlanTensor made);

static inline PlanDtype plan_run_dtype_of(PlanRun *run, PlanTensor tensor) {
    return (PlanDtype)plan_builder_at(&run->builder, plan_run_buffer_of(run, tensor))->dtype;
}
/* A tensor as an operand; no tensor is a missing one. */
static inline PlanOperand plan_run_operand_of(PlanRun *run, PlanTensor tensor) {
    if (tensor.storage == PLAN_NONE) {
        return (PlanOperand){.buffer = PLAN_NONE};
    }
    uint32_t buffer = plan_run_buffer_of(run, tensor);
    uint64_t size = plan_dtype_bytes((PlanDtype)plan_builder_at(&run->builder, buffer)->dtype);
    uint64_t first = run->storages.items[tensor.storage].first + tensor.offset;
    return (PlanOperand){
        .buffer = buffer, .offset_bytes = first * size, .elements = tensor.elements};
}
/* Adds a tensor to the operands of the op being built. */
static inline void plan_run_operand(PlanRun *run, PlanTensor tensor) {
    plan_builder_operand(&run->builder, plan_run_operand_of(run, tensor));
}

/* ---- launches; launch.h has words for them -------------------------------------------------- */

/* Launches the op begun last on the compute lane. With deterministic algorithms PyTorch fills its
 * new outputs first (fills.c). */
void plan_run_launch(PlanRun *run);
/* Launches a COPY, CAST or ACCUMULATE of the first elements of one buffer into another. */
void plan_run_into(PlanRun *run, PlanOpKind kind, uint8_t lane, uint32_t from, uint32_t to,
                   uint64_t elements);
/* Adds one tensor to another, on the compute lane. */
void plan_run_accumulate(PlanRun *run, PlanTensor from, PlanTensor to);
