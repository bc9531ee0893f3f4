/* plan/autograd/passes/engine.c - PyTorch's backward engine, in one thread.
 *
 * A node runs when all gradients it waits for have come; of those that may run, the one made last
 * in forward goes first. Accumulating a parameter's gradient goes before everything else. A second
 * gradient for the same slot is added to the first in a new tensor. After a node has run, first the
 * gradients it was given are let go, then what it had saved, then its results are passed on. A node
 * of a checkpointed block has its tensors made again and lets them go as soon as it has used them.
 */
#include "plan/autograd/passes/engine.h"

#include "plan/autograd/addends.h"
#include "plan/autograd/backward.h"
#include "plan/autograd/launch.h"
#include "plan/autograd/node.h"
#include "plan/autograd/passes/checkpoint.h"
#include "plan/autograd/passes/heap.h"
#include "plan/autograd/passes/reentrant.h"
#include "plan/autograd/program.h"
#include "plan/autograd/read.h"
#include "plan/autograd/shared/shared.h"
#include "plan/autograd/traced.h"
#include "plan/autograd/unit.h"
#include "plan/optimizer/scaler.h"

/* The gradient of a row sum is one number, broadcast to the row by a view. */
static PlanTensor sum_of(PlanRun *run, PlanTracedTarget target, PlanTensor slot,
                         PlanTensor gradient) {
    PlanDtype dtype = plan_run_dtype_of(run, gradient);
    PlanTensor sum = plan_run_new_tensor(run, slot.elements, dtype, "gradient_sum");
    if (run->graph->traced) {
        plan_traced_launch_sum(run, target, slot, gradient, sum);
        return sum;
    }
    bool is_view = gradient.elements < slot.elements;
    int64_t rows = (int64_t)gradient.elements, n = (int64_t)slot.elements;
    int64_t of_column[] = {[ADD_COLUMN_ROWS] = rows, [ADD_COLUMN_COLS] = is_view ? n / rows : 0};
    int64_t of_all[] = {[ADD_N] = n, [ADD_NB] = n};
    LAUNCH(run, is_view ? PLAN_OP_ADD_COLUMN : PLAN_OP_ADD, is_view ? of_column : of_all, NULL,
           slot, gradient, sum);
    return sum;
}

/* Takes the reference of gradient. */
static void add_into(PlanRun *run, PlanTracedTarget target, PlanTensor *slot, PlanTensor gradient) {
    if (gradient.storage == PLAN_NONE) { /* a unit was given a value twice, and used it once */
        return;
    }
    if (slot->storage == PLAN_NONE) {
        *slot = gradient;
        return;
    }
    PlanTensor first = *slot, added = plan_shared_addend(run, first, gradient);
    *slot = sum_of(run, target, first, added);
    plan_run_unref(run, added);
    plan_run_unref(run, first);
    plan_run_unref(run, gradient);
}

static void add_in_place(PlanRun *run, PlanTensor sum, PlanTensor gradient) {
    PlanBuffer *buffer = plan_builder_at(&run->builder, plan_run_buffer_of(run, sum));
    buffer->sub = PLAN_GRADIENTS_UNSHARDED; /* also where it is DDP's bucket */
    plan_run_accumulate(run, gradient, sum);
}

/* Laid out as its parameter. */
static PlanTensor copy_of(PlanRun *run, uint32_t parameter, PlanTensor gradient) {
    PlanTensor copy =
        plan_run_new_tensor(run, gradient.elements, plan_run_dtype_of(run, gradient), "gradient");
    plan_traced_launch_copy(run, parameter, gradient, copy);
    plan_run_unref(run, gradient);
    return copy;
}

/* Takes the reference of gradient. */
static PlanTensor in_its_dtype(PlanRun *run, uint32_t parameter, PlanTensor gradient) {
    PlanDtype made = plan_run_dtype_of(run, gradient);
    PlanDtype dtype =
        run->flavour->gradient_dtype ? run->flavour->gradient_dtype(run, parameter, made) : made;
    if (dtype == made) {
        return gradient;
    }
    PlanTensor cast = plan_run_new_tensor(run, gradient.elements, dtype, "gradient");
    LAUNCH(run, PLAN_OP_CAST, DIMS((int64_t)gradient.elements), NULL, gradient, cast);
    plan_run_unref(run, gradient);
    return cast;
}

/* The parameter's .grad becomes the gradient that has come, without a copy; one that an earlier
 * pass left takes it in. */
static void accumulate(PlanRun *run, uint32_t parameter) {
    PlanTensor gradient = in_its_dtype(run, parameter, run->incoming[parameter]);
    if (run->gradients[parameter].storage != PLAN_NONE) {
        run->incoming[parameter] = PLAN_NO_TENSOR;
        add_in_place(run, run->gradients[parameter], gradient);
        plan_run_hook_of(run, run->flavour->gradient_ready, parameter);
        plan_run_unref(run, gradient);
        return;
    }
    if (plan_run_parameter(run, parameter)->copies_gradient) {
        gradient = copy_of(run, parameter, gradient);
    }
    PlanBuffer *buffer = plan_builder_at(&run->builder, plan_run_buffer_of(run, gradient));
    buffer->sub = PLAN_GRADIENTS_UNSHARDED;
    buffer->unit = plan_builder_unit(&run->builder, run->unit_of_parameter[parameter]);
    run->incoming[parameter] = PLAN_NO_TENSOR;
    run->gradients[parameter] = plan_run_ref(run, gradient);
    plan_run_hook_of(run, run->flavour->gradient_ready, parameter);
    plan_run_unref(run, gradient);
}

static bool is_of_shared_experts(const PlanRun *run, uint32_t parameter) {
    return plan_run_parameter(run, parameter)->split >= PLAN_SPLIT_EXPERTS;
}

/* With expert parallelism forward begins with one node per expert weight; backward reaches them
 * after all experts are done, last weight first. */
static void take_late(PlanRun *run, uint32_t parameter) {
    const GArray *all = run->units[run->unit_of_parameter[parameter]].parameters;
    plan_vector_push(&run->program.late, parameter);
    if (is_of_shared_experts(run, parameter) && run->program.late.len == all->len) {
        for (uint32_t i = all->len; i-- > 0;) {
            accumulate(run, g_array_index(all, uint32_t, i));
        }
        run->program.late.len = 0;
    }
}

static void take(PlanRun *run, uint32_t parameter) {
    if (plan_program_gives_late(run) || is_of_shared_experts(run, parameter)) {
        take_late(run, parameter);
    } else {
        accumulate(run, parameter);
    }
}

/* FSDP1's: a parameter is what a node takes from the flat tensor. */
static PlanTracedTarget target_in_flat(const PlanRun *run, PlanEdge edge) {
    for (uint32_t p = 0; p < run->graph->parameters.len; p++) {
        PlanEdge producer = run->producer_of_parameter[p];
        if (producer.node == edge.node && producer.slot == edge.slot) {
            return (PlanTracedTarget){.is_parameter = true, .index = p};
        }
    }
    return (PlanTracedTarget){.index = PLAN_NONE};
}

/* The value that a node's slot holds the gradient of: FSDP2's node, which marks where a unit began,
 * hands it on as it is. */
static PlanTracedTarget target_of(const PlanRun *run, PlanEdge edge) {
    if (!run->graph->traced) {
        return (PlanTracedTarget){.index = PLAN_NONE};
    }
    while (edge.node != PLAN_NONE && run->tape.nodes.items[edge.node].op == PLAN_NONE &&
           !run->tape.nodes.items[edge.node].flat) {
        edge = run->tape.edges.items[run->tape.nodes.items[edge.node].edges + edge.slot];
    }
    if (edge.node == PLAN_NONE) {
        return (PlanTracedTarget){.index = PLAN_NONE};
    }
    if (run->tape.nodes.items[edge.node].flat) {
        return target_in_flat(run, edge);
    }
    const PlanGraphOp *op = plan_node_op(run, &run->tape.nodes.items[edge.node]);
    bool is_traced = op && plan_traced_is(op);
    return (PlanTracedTarget){
        .index = is_traced ? plan_graph_ref(run->graph, op->values + op->n_inputs + edge.slot)
                           : PLAN_NONE};
}

/* held: the list holds them to the end, but for a slot's first, which is moved there; what is added
 * to that is not. */
static void pass_to_nodes(PlanRun *run, const PlanNode *node, PlanTensor *gradients, bool held,
                          GArray *heap) {
    for (uint32_t i = 0; i < node->n_edges; i++) {
        PlanEdge edge = run->tape.edges.items[node->edges + i];
        if (edge.slot == PLAN_NONE || edge.node == PLAN_NONE) {
            continue;
        }
        PlanNode *next = &run->tape.nodes.items[edge.node];
        PlanTensor *slot = &run->tape.slots.items[next->slots + edge.slot];
        bool is_moved = held && slot->storage == PLAN_NONE;
        if (!plan_addends_add(run, edge, slot, gradients[i])) {
            add_into(run, target_of(run, edge), slot, gradients[i]);
        }
        if (is_moved) {
            plan_run_drop(run, &gradients[i]);
        }
        if (--next->n_dependencies == 0) {
            plan_heap_push(heap, edge.node);
        }
    }
}

/* One of several gradients is cast before it is added to the others; the list has the cast then. */
static void give_to_list(PlanRun *run, uint32_t parameter, PlanTensor *gradient) {
    PlanTensor cast = in_its_dtype(run, parameter, plan_run_ref(run, *gradient));
    if (cast.storage != gradient->storage) {
        plan_run_unref(run, *gradient);
        plan_run_unref(run, *gradient);
        *gradient = plan_run_ref(run, cast);
        return;
    }
    plan_run_unref(run, cast);
}

/* Returns how many parameters have all of their gradients now; which, in complete. */
static uint32_t pass_to_parameters(PlanRun *run, const PlanNode *node, PlanTensor *gradients,
                                   uint32_t *complete) {
    uint32_t n_complete = 0;
    for (uint32_t i = 0; i < node->n_edges; i++) {
        PlanEdge edge = run->tape.edges.items[node->edges + i];
        if (edge.slot == PLAN_NONE || edge.node != PLAN_NONE) {
            continue;
        }
        PlanTracedTarget target = {.is_parameter = true, .index = edge.slot};
        PlanTensor *slot = &run->incoming[edge.slot];
        bool is_the_only = slot->storage == PLAN_NONE && run->tape.n_contributions[edge.slot] == 1;
        if (!is_the_only) {
            give_to_list(run, edge.slot, &gradients[i]);
        }
        add_into(run, target, slot, gradients[i]);
        if (--run->tape.n_contributions[edge.slot] == 0) {
            complete[n_complete++] = edge.slot;
        }
    }
    return n_complete;
}

/* A linear layer's weight is transposed by a node of its own, so its bias comes first; and with a
 * bias its input is reshaped by a node of its own too, which comes after both. So does a norm's
 * input where ranks share layers, which a node of its own makes a DTensor of. */
static void pass_on(PlanRun *run, const PlanNode *node, PlanTensor *gradients, GArray *heap) {
    const PlanGraphOp *op = plan_node_op(run, node);
    bool is_linear = op && op->kind < PLAN_N_OP_KINDS && plan_op_is_linear((PlanOpKind)op->kind);
    bool has_bias = is_linear && plan_graph_ref(run->graph, op->values + 2) != PLAN_NONE;
    g_autofree uint32_t *complete = g_new(uint32_t, node->n_edges + 1);
    for (uint32_t i = 0; i < node->n_edges; i++) { /* the list of them is held to the end */
        plan_run_ref(run, gradients[i]);
    }
    bool is_norm = op && (op->kind == PLAN_OP_RMSNORM || op->kind == PLAN_OP_LAYERNORM);
    bool input_is_last = has_bias || (is_norm && plan_graph_cuts_tokens(run->graph));
    if (!input_is_last) {
        pass_to_nodes(run, node, gradients, true, heap);
    }
    uint32_t n_complete = pass_to_parameters(run, node, gradients, complete);
    for (uint32_t i = 0; i < node->n_edges; i++) {
        plan_run_unref(run, gradients[i]);
    }
    for (uint32_t i = 0; i < n_complete; i++) {
        take(run, complete[is_linear ? n_complete - 1 - i : i]);
    }
    if (input_is_last) {
        pass_to_nodes(run, node, gradients, false, heap);
    }
}

static PlanCheckpoint *checkpoint_at(PlanRun *run, uint32_t id) {
    return &run->tape.checkpoints.items[id];
}

/* The last node of a checkpoint that has used its tensors lets go of the block's arguments. */
static void used(PlanRun *run, PlanCheckpoint *checkpoint) {
    if (--checkpoint->n_pending == 0) {
        plan_run_end_checkpoint(run, checkpoint);
    }
}

static void run_flat_node(PlanRun *run, const PlanNode *node) {
    PlanTensor *given = &run->tape.slots.items[node->slots];
    plan_run_at(run, PLAN_PHASE_BACKWARD, node->module);
    plan_run_at_unit(run, node->unit);
    run->flavour->flatten(run, node->unit, given);
    for (uint32_t i = 0; i < node->n_slots; i++) {
        plan_run_unref(run, given[i]);
    }
    plan_run_hook_of(run, run->flavour->post_backward, node->unit);
}

/* A list of Python's goes from its end. */
static void let_go_of_arguments(PlanRun *run, uint32_t unit) {
    for (uint32_t i = run->tape.hooks.len; i-- > 0;) {
        PlanHook *hook = &run->tape.hooks.items[i];
        if (hook->of_argument && hook->unit == unit) {
            plan_run_drop(run, &hook->held);
        }
    }
}

static void run_hook(PlanRun *run, uint32_t id, const PlanTensor *given) {
    PlanHook *hook = &run->tape.hooks.items[id];
    uint32_t unit = hook->unit;
    if (!hook->of_argument) {
        plan_run_hook_of(run, run->flavour->pre_backward, unit);
        return;
    }
    hook->held = plan_run_ref(run, given[hook->slot]);
    if (--run->units[unit].n_awaited == 0) {
        plan_run_hook_of(run, run->flavour->arguments_ready, unit);
        let_go_of_arguments(run, unit);
    }
}

static uint32_t module_of(const PlanRun *run, const PlanNode *node) {
    return node->op == PLAN_NONE ? run->units[node->unit].module
                                 : plan_graph_op_at(run->graph, node->op)->module;
}

/* Runs the hooks that come before the node: those of units inside the block, or (of_block false)
 * those of the others. */
static void run_hooks(PlanRun *run, const PlanNode *node, const PlanTensor *given, uint32_t block,
                      bool of_block) {
    for (uint32_t hook = node->first_hook; hook != PLAN_NONE;
         hook = run->tape.hooks.items[hook].next) {
        uint32_t unit = run->tape.hooks.items[hook].unit;
        if (plan_checkpoint_is_around(run, block, unit) == of_block) {
            run_hook(run, hook, given);
        }
    }
}

/* What comes before a node's own function: the hooks of what it made, and its tensors again. */
static void begin_node(PlanRun *run, const PlanNode *node, const PlanTensor *given) {
    plan_run_at(run, PLAN_PHASE_BACKWARD, module_of(run, node));
    uint32_t block = plan_reentrant_block(run, node);
    run_hooks(run, node, given, block, false);
    if (block != PLAN_NONE) {
        plan_reentrant_begin(run, block, given[0]);
        run_hooks(run, node, given, block, true);
    }
    if (node->checkpoint != PLAN_NONE && !checkpoint_at(run, node->checkpoint)->recomputed) {
        plan_run_recompute(run, node->checkpoint);
    }
}

/* Makes the gradients of its inputs; the identity at a unit's entrance hands on what it has. */
static void differentiate_node(PlanRun *run, uint32_t id, const PlanNode *node,
                               const PlanTensor *given, PlanTensor *ret_made) {
    if (node->op == PLAN_NONE) {
        for (uint32_t i = 0; i < node->n_slots; i++) {
            ret_made[i] = plan_run_ref(run, given[i]);
        }
        plan_run_hook_of(run, run->flavour->post_backward, node->unit);
        return;
    }
    for (uint32_t i = 0; i < node->n_edges; i++) {
        ret_made[i] = PLAN_NO_TENSOR;
    }
    plan_differentiate(run, id, given, ret_made);
}

/* Frees the gradients that a node was given, and what it had saved: saved values first if they were
 * recomputed, last otherwise. */
static void let_go_of_used(PlanRun *run, uint32_t id, const PlanNode *node) {
    bool unpacks = plan_run_unpacks(run, id);
    if (unpacks) {
        plan_run_drop_saved(run, id);
    }
    for (uint32_t i = 0; i < node->n_slots; i++) { /* but for what it has let go of */
        plan_run_unref(run, run->tape.slots.items[node->slots + i]);
    }
    if (unpacks) {
        used(run, checkpoint_at(run, node->checkpoint));
    } else {
        plan_run_drop_saved(run, id);
    }
}

static void run_node(PlanRun *run, uint32_t id, GArray *heap) {
    PlanNode node = run->tape.nodes.items[id];
    plan_reentrant_leave(run, plan_reentrant_block(run, &node));
    if (node.flat) {
        run_flat_node(run, &node);
        return;
    }
    if (node.op == PLAN_NONE && node.unit == PLAN_NONE) {
        return; /* of a stage: its gradient is another's now */
    }
    enum {
        FEW = 16 /* most nodes have fewer */
    };
    uint32_t n_most = MAX(node.n_slots, node.n_edges) + 1;
    PlanTensor few[2 * FEW];
    g_autofree PlanTensor *many = n_most > FEW ? g_new(PlanTensor, 2 * n_most) : NULL;
    PlanTensor *given = many ? many : few, *made = given + n_most;
    for (uint32_t i = 0; i < node.n_slots; i++) {
        given[i] = run->tape.slots.items[node.slots + i];
    }
    begin_node(run, &node, given);
    differentiate_node(run, id, &node, given, made);
    plan_addends_scale(run, id, made);
    let_go_of_used(run, id, &node);
    plan_addends_let_go(run, id);
    pass_on(run, &node, made, heap);
}

/* What the root's forward returned, the loss before all else. */
static PlanEdge producer_of_result(const PlanRun *run) {
    const PlanGraph *graph = run->graph;
    for (guint i = graph->steps.len; i-- > 0;) {
        const PlanGraphStep *step = plan_graph_step_at(graph, i);
        if (step->kind == PLAN_STEP_LEAVE && step->index == 0 && step->n_values) {
            uint32_t last = plan_graph_ref(graph, step->values + step->n_values - 1);
            bool is_loss = last == graph->loss_made;
            return run->tape
                .producer_of_value[is_loss ? last : plan_graph_ref(graph, step->values)];
        }
    }
    return (PlanEdge){PLAN_NONE, PLAN_NONE};
}

static void run_nodes(PlanRun *run, uint32_t first) {
    g_autoptr(GArray) heap = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    PlanEdge result = producer_of_result(run);
    plan_heap_push(heap, first);
    while (heap->len) {
        uint32_t node = plan_heap_pop(heap);
        if (node == result.node) {
            uint32_t slots = run->tape.nodes.items[node].slots;
            plan_run_call_program(run, run->tape.slots.items[slots + result.slot]);
        }
        run_node(run, node, heap);
    }
    plan_reentrant_leave(run, PLAN_NONE);
    for (uint32_t i = 0; i < run->program.late.len; i++) {
        accumulate(run, run->program.late.items[i]);
    }
    run->program.late.len = 0;
    plan_program_is_through(run);
}

static PlanTensor new_seed(PlanRun *run, PlanDtype dtype) {
    PlanTensor seed = plan_run_new_tensor(run, 1, dtype, "loss_gradient");
    LAUNCH(run, PLAN_OP_FILL, DIMS(1), &(double){1.0 / (double)run->strategy->accumulate}, seed);
    return seed;
}

void plan_run_backward(PlanRun *run) {
    const PlanGraph *graph = run->graph;
    PlanEdge loss = run->tape.producer_of_value[graph->loss];
    PlanDtype dtype = (PlanDtype)plan_graph_value_at(graph, graph->loss)->dtype;
    plan_run_at(run, PLAN_PHASE_BACKWARD, 0);
    plan_traced_begin_sums(run);
    PlanTensor scaled = plan_scaler_scale(run, plan_run_value(run, graph->loss), dtype);
    PlanTensor seed = new_seed(run, plan_scaler_result_dtype(run, dtype));
    PlanNode *first = &run->tape.nodes.items[loss.node];
    run->tape.slots.items[first->slots + loss.slot] = plan_scaler_differentiate(run, seed, dtype);
    run_nodes(run, loss.node);
    plan_run_at(run, PLAN_PHASE_BACKWARD, 0);
    plan_run_hook(run, run->flavour->end_backward);
    plan_run_at(run, PLAN_PHASE_BACKWARD, 0);
    plan_run_unref(run, seed);
    plan_run_unref(run, scaled);
    plan_run_read_loss(run, plan_run_value(run, graph->loss));
    plan_run_unref(run, plan_run_value(run, graph->loss)); /* the training loop drops it */
    plan_tape_empty(&run->tape);
}

/* Of what the stage was given, which ends in the tape's first node. */
static PlanTensor gradient_of_given(const PlanRun *run) {
    const PlanTape *tape = &run->tape;
    return run->graph->arrives == PLAN_NONE ? PLAN_NO_TENSOR
                                            : tape->slots.items[tape->nodes.items[0].slots];
}

PlanTensor plan_run_stage_backward(PlanRun *run, PlanTensor gradient) {
    const PlanGraph *graph = run->graph;
    bool is_last = plan_graph_is_last_stage(graph);
    PlanEdge result = run->tape.producer_of_value[is_last ? graph->loss : graph->leaves];
    PlanDtype dtype = (PlanDtype)plan_graph_value_at(graph, graph->loss)->dtype;
    plan_run_at(run, PLAN_PHASE_BACKWARD, 0);
    PlanTensor seed = is_last ? new_seed(run, dtype) : plan_run_ref(run, gradient);
    PlanNode *first = &run->tape.nodes.items[result.node];
    run->tape.slots.items[first->slots + result.slot] = plan_run_ref(run, seed);
    run_nodes(run, result.node);
    plan_run_at(run, PLAN_PHASE_BACKWARD, 0);
    plan_run_hook(run, run->flavour->end_backward);
    plan_run_at(run, PLAN_PHASE_BACKWARD, 0);
    plan_run_unref(run, seed);
    PlanTensor given = gradient_of_given(run);
    plan_tape_empty(&run->tape);
    return given;
}
