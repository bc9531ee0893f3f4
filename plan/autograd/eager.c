#include "plan/autograd/eager.h"
#include "plan/autograd/checkpoint.h"
#include "plan/autograd/float8/delayed.h"
#include "plan/autograd/float8/float8.h"
#include "plan/autograd/float8/mxfp8.h"
#include "plan/autograd/loop.h"
#include "plan/autograd/saved.h"
#include "plan/autograd/stages/stages.h"
#include "plan/autograd/traced.h"

#include "plan/build/units.h"

/* ---- context -------------------------------------------------------------------------------- */

void plan_run_at(PlanRun *run, PlanPhase phase, uint32_t module) {
    run->builder.phase = phase;
    run->builder.module = module;
    run->builder.unit = module == PLAN_NONE ? PLAN_NONE : run->modules.unit_of[module];
}

void plan_run_at_unit(PlanRun *run, uint32_t unit) {
    run->builder.unit = unit;
}

/* ---- tensors -------------------------------------------------------------------------------- */

static PlanStorage *storage_at(PlanRun *run, uint32_t storage) {
    return &run->storages.items[storage];
}

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

PlanTensor plan_run_ref(PlanRun *run, PlanTensor tensor) {
    if (tensor.storage != PLAN_NONE) {
        storage_at(run, tensor.storage)->refs++;
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
    PlanStorage *storage = storage_at(run, tensor.storage);
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

/* ---- forward -------------------------------------------------------------------------------- */

void plan_run_give(PlanRun *run, const PlanGraphOp *op, unsigned i, PlanTensor made) {
    run->tape.storage_of_value[plan_graph_ref(run->graph, op->values + op->n_inputs + i)] =
        made.storage;
    if (made.storage != PLAN_NONE) {
        uint32_t buffer = plan_run_buffer_of(run, made);
        plan_vector_push(&run->frames.buffers, buffer);
    }
}

static PlanEdge producer_of(const PlanRun *run, uint32_t value) {
    const PlanGraphValue *v = plan_graph_value_at(run->graph, value);
    return v->parameter != PLAN_NONE ? run->producer_of_parameter[v->parameter]
                                     : run->tape.producer_of_value[value];
}

static bool wants_gradient(const PlanRun *run, uint32_t value) {
    return plan_graph_wants_gradient(run->graph, value);
}

/* If a unit got the same value twice, its first reader takes the first alias, later readers the
 * next. */
static void turn_to_next(PlanRun *run, uint32_t value) {
    for (uint32_t i = run->aliases.len; i-- > 0;) {
        PlanAlias *alias = &run->aliases.items[i];
        if (alias->value == value && alias->next.node != PLAN_NONE) {
            run->tape.producer_of_value[value] = alias->next;
            alias->next = (PlanEdge){PLAN_NONE, PLAN_NONE};
            return;
        }
    }
}

static void add_edge(PlanRun *run, PlanNode *node, uint32_t value) {
    PlanEdge edge = {PLAN_NONE, PLAN_NONE};
    if (wants_gradient(run, value)) {
        edge = producer_of(run, value);
        turn_to_next(run, value);
        if (edge.node == PLAN_NONE) {
            run->tape.n_contributions[edge.slot]++;
        } else {
            run->tape.nodes.items[edge.node].n_dependencies++;
        }
    }
    plan_vector_push(&run->tape.edges, edge);
    node->n_edges++;
}

static uint32_t add_node(PlanRun *run, PlanNode node) {
    PlanTensor none = PLAN_NO_TENSOR;
    node.slots = run->tape.slots.len;
    for (unsigned i = 0; i < node.n_slots; i++) {
        plan_vector_push(&run->tape.slots, none);
    }
    node.first_hook = PLAN_NONE;
    plan_vector_push(&run->tape.nodes, node);
    return run->tape.nodes.len - 1;
}

void plan_run_save(PlanRun *run, const PlanGraphOp *op, PlanNode *node) {
    if (plan_traced_is(op)) {
        plan_traced_save(run, op, node);
        return;
    }
    uint8_t positions[PLAN_MAX_SLOTS];
    node->saved = run->tape.saved.len;
    node->n_saved = plan_saved_values(run->graph, op, positions);
    for (unsigned i = 0; i < node->n_saved; i++) {
        uint32_t value = plan_graph_ref(run->graph, op->values + positions[i]);
        bool is_cast = positions[i] == 0 && plan_mxfp8_keeps_cast(run, op);
        PlanTensor tensor =
            is_cast ? PLAN_NO_TENSOR : plan_run_ref(run, plan_run_value(run, value));
        plan_vector_push(&run->tape.saved, tensor);
    }
}

bool plan_run_unpacks(const PlanRun *run, uint32_t node) {
    return run->tape.nodes.items[node].checkpoint != PLAN_NONE && !run->modules.checkpoints_reenter;
}

/* A node's own tensors go in the order of its fields. A checkpoint's are unpacked to variables of
 * the node's function, which go from the last to the first. */
void plan_run_drop_saved(PlanRun *run, uint32_t id) {
    PlanNode *node = &run->tape.nodes.items[id];
    bool unpacked = plan_run_unpacks(run, id);
    for (uint32_t i = 0; i < node->n_saved; i++) {
        uint32_t next = unpacked ? node->n_saved - 1 - i : i;
        plan_run_unref(run, run->tape.saved.items[node->saved + next]);
    }
    node->n_saved = 0;
}

/* How many inputs are edges of autograd's graph. A traced op has others, which it only reads. */
static uint32_t n_edges_of(const PlanRun *run, const PlanGraphOp *op) {
    return plan_traced_is(op) ? plan_traced_kind(run->graph, op)->n_edges : op->n_inputs;
}

static void remember_for_backward(PlanRun *run, uint32_t op_id, const PlanGraphOp *op) {
    bool differentiable = false;
    uint32_t n_edges = n_edges_of(run, op);
    for (unsigned i = 0; i < n_edges; i++) {
        differentiable |= wants_gradient(run, plan_graph_ref(run->graph, op->values + i));
    }
    if (!differentiable || (PlanGraphKind)op->kind == PLAN_GRAPH_DETACHED ||
        (PlanGraphKind)op->kind == PLAN_GRAPH_EXCHANGE_AWAIT ||
        (PlanGraphKind)op->kind == PLAN_GRAPH_LATENT_KEPT ||
        op->kind == PLAN_OP_ZERO_MASKED) { /* in place, where nothing comes back anyhow */
        return;
    }
    PlanNode node = {.op = op_id, .unit = PLAN_NONE, .n_slots = op->n_outputs};
    node.n_slots += op->kind == PLAN_OP_LINEAR_GELU; /* its bias's gradient, where it comes early */
    node.n_slots += op->kind == PLAN_OP_SWIGLU ? 2 : 0; /* float8/float8.h */
    node.n_slots += op->kind == PLAN_OP_ADD_SCALED;     /* addends.h */
    node.n_slots += op->kind == PLAN_OP_GELU_TANH || op->kind == PLAN_OP_GELU_ERF; /* hidden.c */
    node.edges = run->tape.edges.len;
    for (unsigned i = 0; i < n_edges; i++) {
        add_edge(run, &node, plan_graph_ref(run->graph, op->values + i));
    }
    bool saves = plan_traced_is(op) ? plan_traced_kind(run->graph, op)->n_saves > 0
                                    : plan_saves_anything(run->graph, op);
    node.checkpoint = saves ? run->checkpoint : PLAN_NONE;
    if (node.checkpoint == PLAN_NONE) {
        plan_run_save(run, op, &node);
    } else {
        PlanCheckpoint *c = &run->tape.checkpoints.items[node.checkpoint];
        c->n_pending++;
        if (!plan_float8_follows_swiglu(run->graph, op)) {
            c->last_op = op_id;
        }
    }
    uint32_t id = add_node(run, node);
    run->tape.node_of_op[op_id] = id;
    for (unsigned i = 0; i < op->n_outputs; i++) {
        uint32_t value = plan_graph_ref(run->graph, op->values + op->n_inputs + i);
        if (wants_gradient(run, value)) {
            run->tape.producer_of_value[value] = (PlanEdge){id, i};
        }
    }
}

void plan_run_let_go(PlanRun *run, const PlanGraphStep *step) {
    for (uint32_t i = 0; i < step->n_releases; i++) {
        plan_run_unref(run, plan_run_value(run, g_array_index(run->graph->releases, uint32_t,
                                                              step->releases + i)));
    }
}

void plan_run_split_flat(PlanRun *run, uint32_t unit) {
    const GArray *parameters = run->units[unit].parameters;
    uint32_t id = add_node(run, (PlanNode){.op = PLAN_NONE,
                                           .unit = unit,
                                           .flat = true,
                                           .module = run->builder.module,
                                           .n_slots = parameters->len,
                                           .checkpoint = PLAN_NONE});
    for (uint32_t i = 0; i < parameters->len; i++) {
        run->producer_of_parameter[g_array_index(parameters, uint32_t, i)] = (PlanEdge){id, i};
    }
}

/* A unit's arguments pass through an identity whose backward is the unit's post_backward: it runs
 * when their gradients are complete. Inside the unit, they are the identity's outputs. A unit that
 * leaves all its parameters to those inside of it has none. */
static void enter_unit(PlanRun *run, const PlanGraphStep *step, uint32_t unit) {
    PlanNode node = {
        .op = PLAN_NONE, .unit = unit, .edges = run->tape.edges.len, .checkpoint = PLAN_NONE};
    uint32_t n_aliases = run->aliases.len;
    for (uint32_t i = 0; i < step->n_values && run->units[unit].parameters->len; i++) {
        uint32_t value = plan_graph_ref(run->graph, step->values + i);
        if (wants_gradient(run, value)) {
            PlanAlias alias = {.value = value, .next = {PLAN_NONE, PLAN_NONE}};
            add_edge(run, &node, value); /* which a unit around this one may have twice, too */
            plan_vector_push(&run->aliases, alias);
            node.n_slots++;
        }
    }
    if (!node.n_slots) {
        return;
    }
    uint32_t id = add_node(run, node);
    for (uint32_t i = 0; i < node.n_slots; i++) {
        PlanAlias *alias = &run->aliases.items[n_aliases + i];
        alias->producer = run->tape.producer_of_value[alias->value];
    }
    for (uint32_t i = node.n_slots; i-- > 0;) {
        PlanAlias *alias = &run->aliases.items[n_aliases + i];
        PlanEdge *producer = &run->tape.producer_of_value[alias->value];
        alias->next = producer->node == id ? *producer : alias->next;
        *producer = (PlanEdge){id, i};
    }
}

static void push_last_hook(PlanRun *run, uint32_t node, PlanHook hook) {
    uint32_t id = run->tape.hooks.len, *end = &run->tape.nodes.items[node].first_hook;
    while (*end != PLAN_NONE) {
        end = &run->tape.hooks.items[*end].next;
    }
    *end = id;
    plan_vector_push(&run->tape.hooks, hook);
}

/* A flat parameter without gradient has no backward of its own: its unit waits for its arguments'
 * (register_multi_grad_hook). */
static void watch_arguments(PlanRun *run, const PlanGraphStep *step, uint32_t unit) {
    run->units[unit].n_awaited = 0;
    for (uint32_t i = 0; i < step->n_values; i++) {
        uint32_t value = plan_graph_ref(run->graph, step->values + i);
        if (wants_gradient(run, value)) {
            PlanEdge producer = run->tape.producer_of_value[value];
            PlanHook hook = {unit, PLAN_NONE, true, producer.slot, PLAN_NO_TENSOR};
            push_last_hook(run, producer.node, hook);
            run->units[unit].n_awaited++;
        }
    }
}

static bool is_result(const PlanRun *run, const PlanGraphStep *step, uint32_t value) {
    for (uint32_t i = 0; i < step->n_values; i++) {
        if (plan_graph_ref(run->graph, step->values + i) == value) {
            return true;
        }
    }
    return false;
}

/* An argument is again what it was before the unit was entered; but who is handed it back as a
 * result has what the unit's entrance made of it. */
static void leave_unit(PlanRun *run, const PlanGraphStep *step, uint32_t unit, uint32_t n_aliases) {
    run->units[unit].is_returned_to = false;
    while (run->aliases.len > n_aliases) {
        const PlanAlias *alias = &run->aliases.items[run->aliases.len - 1];
        if (!is_result(run, step, alias->value)) {
            run->tape.producer_of_value[alias->value] = alias->producer;
        }
        run->aliases.len--;
    }
    for (uint32_t i = 0; i < step->n_values; i++) {
        uint32_t value = plan_graph_ref(run->graph, step->values + i);
        if (wants_gradient(run, value)) {
            PlanEdge producer = run->tape.producer_of_value[value];
            run->units[unit].is_returned_to = true;
            push_last_hook(run, producer.node, (PlanHook){.unit = unit, .next = PLAN_NONE});
        }
    }
}

/* The root's begins with what was cast for it. */
void plan_run_begin_frame(PlanRun *run) {
    bool is_root = !run->frames.begins.len && run->builder.phase == plan_run_forward_phase(run);
    uint32_t first = is_root ? 0 : run->frames.buffers.len;
    plan_vector_push(&run->frames.begins, first);
}

static void enter(PlanRun *run, uint32_t step_id, const PlanGraphStep *step) {
    uint32_t unit = run->modules.unit_opened_by[step->index];
    plan_run_at(run, run->builder.phase, step->index);
    plan_run_begin_frame(run);
    if (unit != PLAN_NONE && run->builder.phase == PLAN_PHASE_RECOMPUTE) {
        plan_run_hook_of(run, run->flavour->pre_forward, unit); /* autograd remembers the first */
    } else if (unit != PLAN_NONE) {
        run->units[unit].n_aliases = run->aliases.len;
        plan_run_hook_of(run, run->flavour->pre_forward, unit);
        if (run->graph->evaluates) {
            return; /* backward comes back to nothing */
        }
        if (!run->flavour->flatten) {
            enter_unit(run, step, unit);
        } else if (plan_unit_is_frozen(run, unit)) {
            watch_arguments(run, step, unit);
        }
    }
    if (run->modules.is_checkpointed[step->index] && !run->graph->evaluates) {
        plan_run_enter_checkpoint(run, step_id);
    }
}

/* What a module made itself and is still alive when it ends is an activation; the rest was
 * temporary.
 */
void plan_run_end_frame(PlanRun *run) {
    uint32_t n_buffers = run->frames.begins.items[run->frames.begins.len - 1];
    run->frames.begins.len = run->frames.begins.len - 1;
    for (uint32_t i = n_buffers; i < run->frames.buffers.len; i++) {
        uint32_t buffer = run->frames.buffers.items[i];
        if (run->builder.live.items[buffer]) {
            plan_builder_at(&run->builder, buffer)->sub = PLAN_ACTIVATIONS_SAVED;
        }
    }
    run->frames.buffers.len = n_buffers;
}

static void close_unit(PlanRun *run, const PlanGraphStep *step) {
    uint32_t unit = run->modules.unit_closed_by[step->index];
    if (unit != PLAN_NONE) {
        plan_run_at(run, run->builder.phase, step->index);
        if (run->graph->evaluates) {
            run->units[unit].is_returned_to = false;
        } else if (run->builder.phase != PLAN_PHASE_RECOMPUTE) {
            leave_unit(run, step, unit, run->units[unit].n_aliases);
        }
        plan_run_hook_of(run, run->flavour->post_forward, unit);
    }
}

static void leave(PlanRun *run, const PlanGraphStep *step) {
    plan_run_end_frame(run);
    plan_run_at(run, run->builder.phase, step->index);
    if (run->modules.is_checkpointed[step->index] && !run->graph->evaluates) {
        plan_run_leave_checkpoint(run);
    }
    if (!step->is_closed_later) {
        close_unit(run, step);
    }
}

/* Plays a step of forward, without recording it for autograd. */
void plan_run_step(PlanRun *run, uint32_t id) {
    const PlanGraphStep *step = plan_graph_step_at(run->graph, id);
    switch ((PlanGraphStepKind)step->kind) {
    case PLAN_STEP_ENTER:
        enter(run, id, step);
        break;
    case PLAN_STEP_OP:
        plan_run_op(run, step->index);
        break;
    case PLAN_STEP_RETURN:
        plan_run_at(run, run->builder.phase, step->index);
        break;
    case PLAN_STEP_LEAVE:
        leave(run, step);
        break;
    case PLAN_STEP_CLOSE:
        close_unit(run, step);
        break;
    }
}

/* The root's forward. */
static bool has_returned(const PlanGraph *graph, uint32_t step_id) {
    const PlanGraphStep *step = plan_graph_step_at(graph, step_id);
    return graph->copies_results ? step_id == graph->results_copied
                                 : step->kind == PLAN_STEP_LEAVE && step->index == 0;
}

void plan_run_forward(PlanRun *run) {
    const PlanGraph *graph = run->graph;
    run->builder.phase = plan_run_forward_phase(run);
    plan_delayed_begin(run);
    for (uint32_t i = 0; i < graph->n_train_steps; i++) {
        const PlanGraphStep *step = plan_graph_step_at(graph, i);
        plan_run_step(run, i);
        if (step->kind == PLAN_STEP_OP && !run->graph->evaluates) {
            const PlanGraphOp *op = plan_graph_op_at(graph, step->index);
            remember_for_backward(run, step->index, op);
            if (run->checkpoint != PLAN_NONE) {
                plan_run_keep_selected(run, step->index);
            }
        }
        plan_loop_takes(run, i);
        if (i == graph->root_cast) {
            plan_run_hook(run, run->flavour->root_cast);
        }
        plan_run_let_go(run, step);
        if (has_returned(graph, i)) {
            plan_loop_forward_returned(run);
            if (run->owner.stages) {
                plan_stages_returned(run);
            }
        }
    }
    run->frames.buffers.len =
        0; /* buffers made outside of any module are not counted as activations */
}

void plan_run_after_backward(PlanRun *run) {
    const PlanGraph *graph = run->graph;
    run->builder.phase = PLAN_PHASE_FORWARD;
    for (uint32_t i = graph->n_train_steps; i < graph->steps.len; i++) {
        plan_run_step(run, i);
        plan_run_let_go(run, plan_graph_step_at(graph, i));
    }
    plan_loop_backward_is_through(run);
    run->frames.buffers.len = 0; /* nobody's activations */
}
