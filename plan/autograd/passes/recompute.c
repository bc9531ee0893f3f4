/* plan/autograd/passes/recompute.c - running a checkpointed block again, for backward. */
#include "plan/autograd/addends.h"
#include "plan/autograd/float8/float8.h"
#include "plan/autograd/offload.h"
#include "plan/autograd/passes/checkpoint.h"
#include "plan/autograd/passes/eager.h"
#include "plan/autograd/passes/record.h"
#include "plan/autograd/shared/exchange.h"
#include "plan/autograd/shared/shared.h"

static bool is_copy(const PlanGraph *graph, const PlanGraphOp *op) {
    return op->kind == PLAN_OP_CAST &&
           plan_graph_is_kept_copy(graph, plan_graph_ref(graph, op->values),
                                   plan_graph_ref(graph, op->values + 1));
}

/* A block that is computed again has a region of autocast, and copies, of its own. */
static void drop_copies(PlanRun *run, uint32_t first_step, uint32_t last_step) {
    const PlanGraph *graph = run->graph;
    for (uint32_t i = first_step; i <= last_step; i++) {
        const PlanGraphStep *step = plan_graph_step_at(graph, i);
        if (step->kind == PLAN_STEP_OP) {
            const PlanGraphOp *op = plan_graph_op_at(graph, step->index);
            if (is_copy(graph, op)) {
                plan_run_unref(run, plan_run_value(run, plan_graph_ref(graph, op->values + 1)));
            }
        }
    }
}

/* A value that is still held where a recomputation stops. */
typedef struct {
    uint32_t value, until; /* the step that would let go of it */
    uint64_t order;        /* among those that go with it */
} Held;

/* An exception takes what an expression has made so far from the top of the frame's stack, and then
 * the frame's variables in their order, as returning does. step: that made the value. */
static Held held_of(const PlanGraph *graph, uint32_t value, uint32_t step, uint32_t last_step) {
    const PlanGraphValue *v = plan_graph_value_at(graph, value);
    uint32_t until = plan_graph_value_at(graph, value)->held_until;
    uint64_t order = plan_graph_value_at(graph, value)->rank;
    if (v->next && until == last_step) { /* a variable's still, as next would be */
        until = plan_graph_value_at(graph, v->next)->held_until;
        order = plan_graph_value_at(graph, v->next)->rank;
    } else if (v->behind_variable) {
        until = plan_graph_value_at(graph, v->behind_variable)->held_until;
        order = plan_graph_value_at(graph, v->behind_variable)->rank + 1;
    } else if (until < graph->steps.len && plan_graph_step_at(graph, until)->kind == PLAN_STEP_OP) {
        order = UINT64_MAX - step; /* in an expression */
    }
    return (Held){value, until, order};
}

static void add_held(const PlanRun *run, GArray *held, uint32_t i, uint32_t last_step) {
    const PlanGraph *graph = run->graph;
    const PlanGraphStep *step = plan_graph_step_at(graph, i);
    if (step->kind != PLAN_STEP_OP) {
        return;
    }
    const PlanGraphOp *op = plan_graph_op_at(graph, step->index);
    for (unsigned j = 0; j < op->n_outputs && !is_copy(graph, op); j++) {
        uint32_t value = plan_graph_ref(graph, op->values + op->n_inputs + j);
        bool is_held = plan_graph_value_at(graph, value)->held_until >= last_step;
        bool is_view = graph->traced && plan_graph_value_at(graph, value)->base != value;
        if (is_held && !is_view) { /* a traced view holds nothing */
            Held h = held_of(graph, value, i, last_step);
            g_array_append_val(held, h);
        }
    }
}

static gint by_turn(gconstpointer a, gconstpointer b) {
    const Held *x = a, *y = b;
    if (x->until != y->until) {
        return x->until < y->until ? -1 : 1;
    }
    return x->order < y->order ? -1 : x->order > y->order;
}

static void drop_held(PlanRun *run, uint32_t first_step, uint32_t end_step, uint32_t last_step) {
    g_autoptr(GArray) held = g_array_new(FALSE, FALSE, sizeof(Held));
    for (uint32_t i = first_step; i < end_step; i++) {
        add_held(run, held, i, last_step);
    }
    g_array_sort(held, by_turn);
    for (uint32_t i = 0; i < held->len; i++) {
        plan_run_unref(run, plan_run_value(run, g_array_index(held, Held, i).value));
    }
}

/* PyTorch ends a recompute early by an exception. It leaves autocast, whose copies are freed, and
 * then unwinds frames from the innermost out, freeing their variables. A recompute that reaches its
 * regular end frees its results first, and leaves autocast after that. */
static void unwind(PlanRun *run, uint32_t first_step, uint32_t last_step) {
    bool returns = plan_graph_step_at(run->graph, last_step)->kind == PLAN_STEP_LEAVE;
    if (!returns) {
        drop_copies(run, first_step, last_step);
    }
    if (!run->modules.checkpoints_reenter) {
        drop_held(run, first_step, last_step, last_step);
    }
    if (returns) {
        drop_copies(run, first_step, last_step);
    }
}

/* Layers in float8 that ranks share: what a chosen one cast, and the scale that another kept. */
static void cast_again(PlanRun *run, PlanCheckpoint *c, const PlanGraphOp *op, bool is_kept) {
    if (!op || run->graph->shared.tensor == 1 || plan_is_left_out(run, op) ||
        (PlanGraphKind)op->kind != PLAN_GRAPH_FLOAT8_LINEAR) {
        return;
    }
    if (is_kept) {
        plan_run_at(run, PLAN_PHASE_RECOMPUTE, op->module);
        plan_float8_cast_again(run, op);
    } else {
        plan_take_scale(run, c, op);
    }
}

static void leave_out(PlanRun *run, const PlanGraphOp *op) {
    for (unsigned i = 0; i < op->n_outputs; i++) {
        uint32_t value = plan_graph_ref(run->graph, op->values + op->n_inputs + i);
        run->tape.storage_of_value[value] = PLAN_NONE;
    }
    if ((PlanGraphKind)op->kind == PLAN_GRAPH_FLOAT8_LINEAR) {
        plan_run_at(run, PLAN_PHASE_RECOMPUTE, op->module);
        plan_float8_find_again(run, op);
    }
}

/* The step of the module itself, not of modules inside of it. */
static bool is_called_again(const PlanRun *run) {
    return run->strategy->checkpoint_place == PLAN_CHECKPOINT_OUTSIDE ||
           plan_strategy_checkpoints_parts(run->strategy);
}

/* The op of a step anew, or what was kept of it. */
static void run_again(PlanRun *run, PlanCheckpoint *c, uint32_t step, const PlanGraphOp *op,
                      bool is_kept) {
    if (is_kept) {
        if (!plan_graph_is_compiled(run->graph) && plan_shared_is_scatter(op)) {
            plan_shared_scatter_again(run, op);
        }
        plan_take_kept(run, c, op);
        plan_exchange_again(run, op);
    } else if (op && plan_is_left_out(run, op)) {
        leave_out(run, op);
    } else {
        plan_run_step(run, step);
    }
    cast_again(run, c, op, is_kept);
}

/* For the node of this checkpoint that waits for it, if one does. */
static void save_again(PlanRun *run, uint32_t checkpoint, uint32_t op_id) {
    uint32_t node = run->tape.node_of_op[op_id];
    if (node != PLAN_NONE && run->tape.nodes.items[node].checkpoint == checkpoint) {
        plan_run_save(run, plan_graph_op_at(run->graph, op_id), &run->tape.nodes.items[node]);
    }
}

/* In a compiled block what nobody asks for is no part of the program. */
static bool stops_early(const PlanRun *run, uint32_t module) {
    return run->strategy->checkpoint_early_stop == PLAN_YES ||
           plan_graph_is_in_program(run->graph, module);
}

/* Returns the step at which it ends: that of the last op which keeps anything, or, where it does
 * not stop early, where the block is left. */
static uint32_t run_steps_again(PlanRun *run, uint32_t id) {
    PlanCheckpoint *c = &run->tape.checkpoints.items[id];
    const PlanGraph *graph = run->graph;
    const PlanGraphStep *entered = plan_graph_step_at(graph, c->enter_step);
    bool last_runs = plan_keeps_an_output(run, plan_graph_op_at(graph, c->last_op));
    bool early = stops_early(run, entered->index);
    for (uint32_t i = c->enter_step + 1;; i++) {
        const PlanGraphStep *step = plan_graph_step_at(graph, i);
        const PlanGraphOp *op =
            step->kind == PLAN_STEP_OP ? plan_graph_op_at(graph, step->index) : NULL;
        bool is_last = early && op && step->index == c->last_op;
        if (!early && step->kind == PLAN_STEP_LEAVE && step->index == entered->index) {
            return i;
        }
        bool is_kept = op && plan_selects_next(run, op);
        if (!is_last || last_runs) {
            run_again(run, c, i, op, is_kept);
        }
        if (op) {
            save_again(run, id, step->index);
            plan_addends_read_again(run, step->index);
        }
        if (is_last) {
            if (last_runs) { /* its call has no frame */
                drop_held(run, i, i + 1, i);
            }
            return i;
        }
        plan_run_let_go(run, step);
    }
}

void plan_run_drop_results(PlanRun *run, const PlanCheckpoint *c) {
    drop_held(run, c->enter_step + 1, c->left_step, c->left_step);
}

void plan_run_recompute(PlanRun *run, uint32_t id) {
    PlanCheckpoint *c = &run->tape.checkpoints.items[id];
    plan_offload_bring_back(run, id);
    PlanPhase phase = run->builder.phase;
    uint32_t module = run->builder.module, n_frames = run->frames.begins.len;
    c->recomputed = true;
    run->n_products = 0;
    run->builder.phase = PLAN_PHASE_RECOMPUTE;
    if (is_called_again(run)) {
        plan_run_begin_frame(run);
    }
    uint32_t last_step = c->left_step = run_steps_again(run, id);
    while (run->frames.begins.len > n_frames) { /* what they hold is still there then */
        plan_run_end_frame(run);
    }
    unwind(run, c->enter_step + 1, last_step);
    plan_float8_forget(run);
    run->frames.buffers.len = 0;
    plan_run_at(run, phase, module);
}
