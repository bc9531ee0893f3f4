#include "plan/autograd/passes/record.h"

#include "plan/autograd/differentiate/saved.h"
#include "plan/autograd/float8/layer.h"
#include "plan/autograd/float8/mxfp8.h"
#include "plan/autograd/traced.h"

/* ---- nodes and edges ------------------------------------------------------------------------- */

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

/* How many inputs are edges of autograd's graph. A traced op has others, which it only reads. */
static uint32_t n_edges_of(const PlanRun *run, const PlanGraphOp *op) {
    return plan_traced_is(op) ? plan_traced_kind(run->graph, op)->n_edges : op->n_inputs;
}

void plan_record_op(PlanRun *run, uint32_t op_id) {
    const PlanGraphOp *op = plan_graph_op_at(run->graph, op_id);
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

/* ---- units ---------------------------------------------------------------------------------- */

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
void plan_record_enter_unit(PlanRun *run, const PlanGraphStep *step, uint32_t unit) {
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
void plan_record_watch_arguments(PlanRun *run, const PlanGraphStep *step, uint32_t unit) {
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
void plan_record_leave_unit(PlanRun *run, const PlanGraphStep *step, uint32_t unit) {
    uint32_t n_aliases = run->units[unit].n_aliases;
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
