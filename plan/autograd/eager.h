/* plan/autograd/eager.h - runs a network as eager PyTorch would, without data, and writes down each
 * instruction that PyTorch would give its device.
 *
 * Inside plan/ only. A plan is made by running the training loop once per section. As in PyTorch,
 * tensors have reference counts, an op's outputs are allocated when it is called, what its backward
 * needs is saved with it, and autograd runs nodes in its order (the latest first, gradients of
 * parameters at once). A buffer is freed when its last holder lets go. The flavour (DDP, FSDP2,
 * ...) is called where PyTorch's own hooks are.
 *
 * Files: run.h what a rank has, tape.h what autograd remembers, ../flavours/flavour.h the hooks;
 * eager.c tensors and steps, forward.c ops; autograd.c the engine; differentiate/ one backward per
 * op kind, saved.h what is kept for it; addends.c sums beside adapters in compiled blocks;
 * checkpoint.h blocks that are run again; ../optimizer/; ../build/build.c puts the sections
 * together.
 */
#pragma once

#include "plan/autograd/run.h"

static inline PlanPhase plan_run_forward_phase(const PlanRun *run) {
    return run->graph->evaluates ? PLAN_PHASE_EVALUATION : PLAN_PHASE_FORWARD;
}

/* Phase, module and unit that the following instructions carry. */
void plan_run_at(PlanRun *run, PlanPhase phase, uint32_t module);
void plan_run_at_unit(PlanRun *run, uint32_t unit);

/* FSDP1: from now on gradients of the unit's parameters flow into its flat parameter. */
void plan_run_split_flat(PlanRun *run, uint32_t unit);

/* ---- tensors. A new one has one reference ---- */
PlanTensor plan_run_new_tensor(PlanRun *run, uint64_t elements, PlanDtype dtype, const char *name);
/* As torch.empty() does (plan_builder_alloc_empty()). */
PlanTensor plan_run_new_empty(PlanRun *run, uint64_t elements, PlanDtype dtype, const char *name);
PlanTensor plan_run_new_in(PlanRun *run, uint32_t buffer); /* in a buffer that is free now */
PlanTensor plan_run_ref(PlanRun *run, PlanTensor tensor);
void plan_run_unref(PlanRun *run,
                    PlanTensor tensor); /* frees the buffer with the last; no tensor is fine */
/* The same of a variable's, which then has none. */
void plan_run_drop(PlanRun *run, PlanTensor *tensor);
/* Launches the op begun last on the compute lane. With deterministic algorithms PyTorch fills its
 * new outputs first (fills.c). */
void plan_run_launch(PlanRun *run);
/* Launches a COPY, CAST or ACCUMULATE of the first elements of one buffer into another. */
void plan_run_into(PlanRun *run, PlanOpKind kind, uint8_t lane, uint32_t from, uint32_t to,
                   uint64_t elements);

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
/* Runs an op of the graph forward: launches its kernels, makes its views (forward.c). */
void plan_run_op(PlanRun *run, uint32_t op_id);
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
/* Adds one tensor to another, on the compute lane. */
void plan_run_accumulate(PlanRun *run, PlanTensor from, PlanTensor to);
/* Adds a tensor to the operands of the op being built. */
static inline void plan_run_operand(PlanRun *run, PlanTensor tensor) {
    plan_builder_operand(&run->builder, plan_run_operand_of(run, tensor));
}

/* What recomputing shares with forward (eager.c). */
void plan_run_step(PlanRun *run, uint32_t step); /* all of it, but for what autograd records */
void plan_run_save(PlanRun *run, const PlanGraphOp *op, PlanNode *node);
void plan_run_let_go(PlanRun *run, const PlanGraphStep *step);
void plan_run_begin_frame(PlanRun *run);
void plan_run_end_frame(PlanRun *run);
void plan_run_drop_saved(PlanRun *run, uint32_t node); /* what it keeps; may be repeated */
/* Whether a checkpoint packed the node's saved tensors away, and so has to hand them out. */
bool plan_run_unpacks(const PlanRun *run, uint32_t node);

/* The program, in parts. */
void plan_run_forward(PlanRun *run);
void plan_run_backward(PlanRun *run);
/* The backward of one microbatch of a stage. gradient: that of what the stage returned;
 * PLAN_NO_TENSOR: it is the last stage, whose backward begins at its loss. */
void plan_run_stage_backward(PlanRun *run, PlanTensor gradient);
void plan_run_after_backward(PlanRun *run);
/* One of the gradients that a compiled backward is called with: before PyTorch 2.12 its caller
 * holds them until it is through. */
void plan_run_call_program(PlanRun *run, PlanTensor gradient);
