/* plan/autograd/passes/forward.c - an op of the graph, forward: one kernel, several, or none. */
#include "plan/autograd/float8/delayed.h"
#include "plan/autograd/float8/float8.h"
#include "plan/autograd/four-bit.h"
#include "plan/autograd/latent.h"
#include "plan/autograd/loop.h"
#include "plan/autograd/passes/eager.h"
#include "plan/autograd/shared/async.h"
#include "plan/autograd/shared/exchange.h"
#include "plan/autograd/shared/ring.h"
#include "plan/autograd/shared/shared.h"
#include "plan/autograd/traced.h"

static void append_value(PlanRun *run, uint32_t value) {
    const PlanGraphValue *v = value == PLAN_NONE ? NULL : plan_graph_value_at(run->graph, value);
    if (!v || (v->parameter == PLAN_NONE && !v->elements)) {
        plan_builder_whole(&run->builder, PLAN_NONE);
    } else if (v->parameter != PLAN_NONE) {
        plan_builder_operand(&run->builder, run->flavour->parameter(run, v->parameter));
    } else {
        plan_run_operand(run, plan_run_value(run, value));
    }
}

/* A view of an op's output shares its storage: the storage dies with its last value. */
static void hold_value(PlanRun *run, uint32_t value) {
    const PlanGraphValue *v = plan_graph_value_at(run->graph, value);
    if (v->base != value) {
        run->storages.items[run->tape.storage_of_value[v->base]].refs++;
    }
}

/* What a linear layer adds of its bias, where that is not all of it; else PLAN_NO_TENSOR. */
static PlanTensor part_of_bias(PlanRun *run, const PlanGraphOp *op) {
    uint32_t bias =
        op->kind == PLAN_OP_LINEAR ? plan_graph_ref(run->graph, op->values + LINEAR_B) : PLAN_NONE;
    return bias == PLAN_NONE
               ? PLAN_NO_TENSOR
               : plan_shared_part(run, plan_graph_value_at(run->graph, bias)->parameter);
}

/* Those of the op; what is dropped is that of the part of the batch that is played. */
static const int64_t *dims_of(const PlanRun *run, const PlanGraphOp *op, int64_t *room) {
    const int64_t *dims = plan_graph_dims_of(run->graph, op);
    if (op->kind != PLAN_OP_DROPOUT || !run->owner.stages) {
        return dims;
    }
    room[DROPOUT_N] = dims[DROPOUT_N];
    room[DROPOUT_STREAM] = dims[DROPOUT_STREAM];
    room[DROPOUT_MICROBATCH] = run->pass.microbatch;
    room[DROPOUT_MICROBATCHES] = (int64_t)run->strategy->accumulate;
    return room;
}

static void run_kernel(PlanRun *run, const PlanGraphOp *op) {
    const PlanGraph *graph = run->graph;
    const PlanOpInfo *info = plan_op_info((PlanOpKind)op->kind);
    /* FSDP1 casts the inputs before the root runs, so they are nobody's activations. */
    bool before_root =
        run->flavour->flatten && op->kind == PLAN_OP_CAST && graph->dtype != PLAN_FP32 &&
        plan_graph_ref(run->graph, op->values) == g_array_index(graph->inputs, uint32_t, 0);
    PlanTensor bias = part_of_bias(run, op);
    for (unsigned i = 0; i < op->n_outputs; i++) {
        uint32_t value = plan_graph_ref(run->graph, op->values + op->n_inputs + i);
        const PlanGraphValue *v = plan_graph_value_at(graph, value);
        if (!v->elements) {
            run->tape.storage_of_value[value] = PLAN_NONE;
            continue;
        }
        if (v->base != value) { /* written in place */
            hold_value(run, value);
            continue;
        }
        const char *name = info->slots[op->n_inputs + i].name;
        PlanTensor tensor = plan_loop_makes(run, v)
                                ? plan_loop_new_tensor(run, v, name)
                                : plan_run_new_tensor(run, v->elements, (PlanDtype)v->dtype, name);
        run->tape.storage_of_value[value] = tensor.storage;
        uint32_t buffer = plan_run_buffer_of(run, tensor);
        if (!before_root) {
            plan_vector_push(&run->frames.buffers, buffer);
        }
    }
    int64_t room[PLAN_MAX_DIMS];
    uint32_t id = plan_builder_begin_op(&run->builder, (PlanOpKind)op->kind, PLAN_AXIS_NONE,
                                        dims_of(run, op, room), plan_graph_attrs_of(graph, op));
    for (unsigned i = 0; i < op->n_inputs + op->n_outputs; i++) {
        if (i == LINEAR_B && bias.storage != PLAN_NONE) {
            plan_run_operand(run, bias);
        } else {
            append_value(run, plan_graph_ref(run->graph, op->values + i));
        }
    }
    plan_run_launch(run);
    plan_run_unref(run, bias);
    bool is_trained = plan_graph_is_last_stage(graph) && !run->graph->evaluates;
    for (unsigned i = 0; i < op->n_outputs && is_trained; i++) {
        if (plan_graph_ref(graph, op->values + op->n_inputs + i) == graph->loss_made) {
            plan_vector_push(&run->builder.loss_ops, id);
        }
    }
}

static void hold_outputs(PlanRun *run, const PlanGraphOp *op) {
    for (unsigned i = 0; i < op->n_outputs; i++) {
        hold_value(run, plan_graph_ref(run->graph, op->values + op->n_inputs + i));
    }
}

static void run_ring(PlanRun *run, const PlanGraphOp *op) {
    bool compiled = plan_graph_is_compiled(run->graph);
    (compiled ? plan_ring_compiled_forward : plan_ring_forward)(run, op);
}

/* A copy dies with its last holder, another name for the same with that of both. */
static void run_result(PlanRun *run, const PlanGraphOp *op) {
    if (run->pass.copies_results) {
        PlanGraphOp copy = *op;
        copy.kind = PLAN_OP_COPY;
        run_kernel(run, &copy);
        uint32_t made = plan_graph_ref(run->graph, op->values + 1); /* inside of DDP's forward */
        uint32_t buffer = plan_run_buffer_of(run, plan_run_value(run, made));
        plan_builder_at(&run->builder, buffer)->sub = PLAN_ACTIVATIONS_SAVED;
        return;
    }
    PlanTensor x = plan_run_value(run, plan_graph_ref(run->graph, op->values));
    run->tape.storage_of_value[plan_graph_ref(run->graph, op->values + 1)] =
        plan_run_ref(run, x).storage;
}

/* What no kernel of one name computes. */
static void run_view(PlanRun *run, uint32_t op_id, const PlanGraphOp *op) {
    switch ((PlanGraphKind)op->kind) {
    case PLAN_GRAPH_SPLIT:
    case PLAN_GRAPH_SLICE:
    case PLAN_GRAPH_REST:
    case PLAN_GRAPH_HALF:
    case PLAN_GRAPH_COLUMNS:
    case PLAN_GRAPH_HEADS:
    case PLAN_GRAPH_REPEATED:
    case PLAN_GRAPH_SHOWN:
    case PLAN_GRAPH_RESHAPED:
    case PLAN_GRAPH_DETACHED:
    case PLAN_GRAPH_SHARED_AGAIN:
    case PLAN_GRAPH_SHARED_TAKEN:
    case PLAN_GRAPH_SHARED_READ:
    case PLAN_GRAPH_LATENT_SPLIT:
        hold_outputs(run, op);
        return;
    case PLAN_GRAPH_RESULT:
        run_result(run, op);
        return;
    case PLAN_GRAPH_SHARED_GATHER:
    case PLAN_GRAPH_SHARED_SCATTER:
    case PLAN_GRAPH_SHARED_SUM:
    case PLAN_GRAPH_SHARED_OWN:
    case PLAN_GRAPH_SHARED_WHOLE:
    case PLAN_GRAPH_SHARED_ROWS:
    case PLAN_GRAPH_SHARED_SCATTER_FLOAT8:
    case PLAN_GRAPH_SHARED_LOSS:
    case PLAN_GRAPH_SHARED_COMPILED_LOSS:
        plan_shared_forward(run, op);
        return;
    case PLAN_GRAPH_SHARED_GATHER_FLOAT8:
        plan_float8_gather_tokens(run, op);
        return;
    case PLAN_GRAPH_FLOAT8_LINEAR:
        plan_float8_forward(run, op);
        return;
    case PLAN_GRAPH_DELAYED_LINEAR:
        plan_delayed_forward(run, op);
        return;
    case PLAN_GRAPH_FOUR_BIT_LINEAR:
        plan_four_bit_forward(run, op);
        return;
    case PLAN_GRAPH_RING_ATTENTION:
        run_ring(run, op);
        return;
    case PLAN_GRAPH_RING_ROWS:
        plan_ring_rows_forward(run, op);
        return;
    case PLAN_GRAPH_EXCHANGE_SPLITS:
    case PLAN_GRAPH_EXCHANGE_SEND:
    case PLAN_GRAPH_EXCHANGE_AWAIT:
    case PLAN_GRAPH_EXCHANGE_ORDER:
        plan_exchange_forward(run, op);
        return;
    case PLAN_GRAPH_LATENT_ROTATE:
    case PLAN_GRAPH_LATENT_KEPT:
        plan_latent_forward(run, op);
        return;
    case PLAN_GRAPH_TRACED:
        plan_traced_forward(run, op_id, op);
        return;
    case PLAN_N_GRAPH_KINDS:
        break;
    }
    g_assert_not_reached();
}

void plan_run_op(PlanRun *run, uint32_t op_id) {
    const PlanGraphOp *op = plan_graph_op_at(run->graph, op_id);
    plan_run_at(run, run->builder.phase, op->module);
    if (op->kind >= PLAN_N_OP_KINDS) {
        run_view(run, op_id, op);
    } else if (!plan_async_linear(run, op)) {
        run_kernel(run, op);
    }
}
