/* plan/autograd/recompute.c - checkpointed blocks: what they keep, and running them again.
 *
 * A block keeps its arguments; with selective-op also the outputs of attention kernels and of every
 * other matrix product without a bias, the first one first (what torchtitan's policy chooses),
 * which a recomputation then takes instead of computing them. That policy also names what
 * reduce-scatters give, and the largest number of a tensor, which layers in float8 ask for: of
 * compiled blocks whose layers ranks share that is planned, too. And what all-to-alls give, and
 * what was copied to the host: of experts that ranks share.
 */
#include "plan/autograd/eager.h"
#include "plan/autograd/float8/float8.h"
#include "plan/autograd/offload.h"
#include "plan/autograd/shared/exchange.h"
#include "plan/autograd/shared/shared.h"
#include "plan/autograd/traced.h"

/* ---- what is kept --------------------------------------------------------------------------- */

void plan_run_enter_checkpoint(PlanRun *run, uint32_t step_id) {
    const PlanGraphStep *step = plan_graph_step_at(run->graph, step_id);
    PlanCheckpoint checkpoint = {.enter_step = step_id,
                                 .arguments = run->tape.saved.len,
                                 .last_op = PLAN_NONE,
                                 .last_selected = PLAN_NONE,
                                 .kept = run->tape.kept.len,
                                 .next_kept = run->tape.kept.len};
    for (uint32_t i = 0; i < step->n_values; i++) {
        uint32_t value = plan_graph_ref(run->graph, step->values + i);
        PlanTensor tensor = plan_run_ref(run, plan_run_value(run, value));
        plan_vector_push(&run->tape.saved, tensor);
        checkpoint.n_arguments++;
    }
    run->n_products = 0;
    run->checkpoint = run->tape.checkpoints.len;
    plan_vector_push(&run->tape.checkpoints, checkpoint);
}

static bool keeps_an_output(const PlanRun *run, const PlanGraphOp *op) {
    if (plan_traced_is(op)) {
        return plan_traced_keeps_an_output(run->graph, op);
    }
    uint8_t positions[PLAN_MAX_SLOTS];
    unsigned n = plan_saved_values(run->graph, op, positions);
    for (unsigned i = 0; i < n; i++) {
        if (positions[i] >= op->n_inputs) {
            return true;
        }
    }
    return false;
}

/* The last that was chosen is a layer in float8, behind all that a recomputation needs. */
static bool is_behind_swiglu(const PlanRun *run, const PlanCheckpoint *c) {
    return c->last_selected != PLAN_NONE &&
           plan_float8_follows_swiglu(run->graph, plan_graph_op_at(run->graph, c->last_selected));
}

/* A compiler keeps of what was chosen only what backward asks for: not the result of a block's last
 * product, from which nothing is computed again; but where ranks share it, and it is scattered
 * next, it does keep it, in vain. */
static void drop_unneeded(PlanRun *run, PlanCheckpoint *c) {
    const PlanGraphOp *last =
        c->last_op == PLAN_NONE ? NULL : plan_graph_op_at(run->graph, c->last_op);
    bool is_behind = is_behind_swiglu(run, c);
    if (last && is_behind) {
        last = plan_graph_op_at(run->graph, c->last_selected);
    }
    if (last && run->graph->shared.tensor == 1 &&
        (is_behind || (c->last_selected == c->last_op && !keeps_an_output(run, last)))) {
        for (unsigned i = 0; i < last->n_outputs; i++, c->n_kept--) {
            plan_run_unref(run, run->tape.kept.items[--run->tape.kept.len]);
        }
    }
}

/* A block that nothing in backward will ask for anything lets go of its arguments at once. */
void plan_run_leave_checkpoint(PlanRun *run) {
    PlanCheckpoint *c = &run->tape.checkpoints.items[run->checkpoint];
    if (plan_graph_is_compiled(run->graph)) {
        drop_unneeded(run, c);
    }
    if (c->n_pending) {
        plan_offload_send(run, run->checkpoint);
    } else {
        plan_run_end_checkpoint(run, c);
    }
    run->checkpoint = PLAN_NONE;
}

/* In torchtitan's way of sharing; what another program's policy keeps is not known. */
static bool keeps_scattered(const PlanRun *run) {
    return run->graph->shared.tensor > 1 && !run->graph->shared.whole_ends;
}

/* A product whose result is scattered next: of that a compiler keeps nothing, for nobody asks. */
static bool is_before_scatter(const PlanRun *run, const PlanGraphOp *op, bool is_product) {
    return is_product && plan_graph_is_compiled(run->graph) && keeps_scattered(run) &&
           plan_shared_is_scatter(op + 1);
}

/* By a compiler not the block's last, which goes into its result alone. */
static bool is_kept_scatter(const PlanRun *run, const PlanGraphOp *op) {
    bool is_scattered = keeps_scattered(run) && plan_shared_is_scatter(op);
    if (!is_scattered || !plan_graph_is_compiled(run->graph)) {
        return is_scattered;
    }
    const PlanGraphOp *end = plan_graph_op_at(run->graph, run->graph->ops->len - 1) + 1;
    uint32_t block = plan_graph_block_of(run->graph, op->module);
    for (op++; op < end && plan_graph_block_of(run->graph, op->module) == block; op++) {
        if (plan_shared_is_scatter(op)) {
            return true;
        }
    }
    return false;
}

static bool is_product(const PlanRun *run, const PlanGraphOp *op) {
    return (PlanGraphKind)op->kind == PLAN_GRAPH_FLOAT8_LINEAR ||
           (plan_op_is_linear((PlanOpKind)op->kind) &&
            plan_graph_ref(run->graph, op->values + 2) == PLAN_NONE);
}

/* Where ranks share experts torchtitan's policy neither keeps nor counts a router's product. */
static bool is_of_router(const PlanRun *run, const PlanGraphOp *op) {
    const PlanGraphModule *layer = plan_graph_module_at(run->graph, op->module);
    return run->graph->shared.expert > 1 &&
           g_str_equal(plan_graph_module_at(run->graph, layer->parent)->class_name, "Router");
}

static bool is_counted(const PlanRun *run, const PlanGraphOp *op) {
    return plan_traced_is(op) ? plan_traced_kind(run->graph, op)->choice == PLAN_TRACED_PRODUCT
                              : is_product(run, op) && !is_of_router(run, op);
}

static bool is_kept_anyhow(const PlanRun *run, const PlanGraphOp *op) {
    if (plan_traced_is(op)) {
        return plan_traced_kind(run->graph, op)->choice == PLAN_TRACED_ATTENTION;
    }
    return plan_exchange_takes(op->kind) || is_kept_scatter(run, op) ||
           op->kind == PLAN_OP_ATTENTION || op->kind == PLAN_OP_LATENT_ATTENTION ||
           (PlanGraphKind)op->kind == PLAN_GRAPH_RING_ATTENTION;
}

static bool selects(const PlanRun *run) {
    return run->strategy->checkpointing.choice == PLAN_CHECKPOINTING_SELECTIVE_OP;
}

/* Whether the outputs of a block's next op are kept, which is counted if it is a product: asked of
 * each once in forward, and once more when the block is recomputed. */
static bool selects_next(PlanRun *run, const PlanGraphOp *op) {
    if (!selects(run)) {
        return false;
    }
    bool counts = is_counted(run, op);
    run->n_products += counts;
    return is_kept_anyhow(run, op) ||
           (counts && run->n_products % 2 == 1 && !is_before_scatter(run, op, counts));
}

/* Forward counts a product when it has run, a recomputation before. */
bool plan_run_keeps_product(const PlanRun *run, unsigned ahead) {
    bool again = run->builder.phase == PLAN_PHASE_RECOMPUTE;
    bool is_counted = selects(run) && (again || run->checkpoint != PLAN_NONE);
    return is_counted && (run->n_products + !again + ahead) % 2 == 1;
}

/* Of a layer in float8 that ranks share the weight's scale, of whatever is computed again. */
static void keep_scale(PlanRun *run, PlanCheckpoint *c, const PlanGraphOp *op) {
    if (plan_float8_keeps_scale(run, op)) {
        uint32_t scale = plan_graph_ref(run->graph, op->values + op->n_inputs + 1);
        PlanTensor tensor = plan_run_ref(run, plan_run_value(run, scale));
        plan_vector_push(&run->tape.kept, tensor);
        c->n_kept++;
    }
}

static void take_scale(PlanRun *run, PlanCheckpoint *c, const PlanGraphOp *op) {
    if (plan_float8_keeps_scale(run, op)) {
        uint32_t scale = plan_graph_ref(run->graph, op->values + op->n_inputs + 1);
        run->tape.storage_of_value[scale] = run->tape.kept.items[c->next_kept++].storage;
    }
}

bool plan_run_keeps_largest(const PlanRun *run) {
    return selects(run) && keeps_scattered(run) && run->graph->float8 == PLAN_FLOAT8_TENSORWISE;
}

static void keep_number(PlanRun *run, PlanTensor number) {
    PlanLargest kept = {run->checkpoint, number};
    plan_vector_push(&run->tape.largest, kept);
}

/* In 16 bits, until the block's backward is through. */
void plan_run_keep_largest(PlanRun *run) {
    if (run->checkpoint != PLAN_NONE) {
        PlanTensor number = plan_run_new_tensor(run, 1, run->graph->dtype, "largest");
        uint32_t buffer = plan_run_buffer_of(run, number);
        plan_vector_push(&run->frame_buffers, buffer);
        keep_number(run, number);
    }
}

/* Of a chosen layer whose result is not kept, but scattered, the scales are, in vain. */
static void keep_scales(PlanRun *run, const PlanGraphOp *op) {
    bool is_layer = (PlanGraphKind)op->kind == PLAN_GRAPH_FLOAT8_LINEAR;
    if (is_layer && plan_run_keeps_largest(run) && run->n_products % 2 == 1 &&
        is_before_scatter(run, op, true)) {
        keep_number(run, plan_run_ref(run, plan_float8_weight_scale(run, op)));
        keep_number(run, plan_run_ref(run, plan_float8_input_scale(run, op)));
    }
}

void plan_run_keep_selected(PlanRun *run, uint32_t op_id) {
    const PlanGraphOp *op = plan_graph_op_at(run->graph, op_id);
    PlanCheckpoint *c = &run->tape.checkpoints.items[run->checkpoint];
    if (!selects_next(run, op)) {
        keep_scale(run, c, op);
        keep_scales(run, op);
        return;
    }
    c->last_selected = op_id;
    for (unsigned i = 0; i < op->n_outputs; i++) {
        uint32_t value = plan_graph_ref(run->graph, op->values + op->n_inputs + i);
        PlanTensor tensor = plan_run_ref(run, plan_run_value(run, value));
        plan_vector_push(&run->tape.kept, tensor);
        c->n_kept++;
    }
}

/* Its outputs are those kept in forward. */
static void take_kept(PlanRun *run, PlanCheckpoint *c, const PlanGraphOp *op) {
    for (unsigned i = 0; i < op->n_outputs; i++) {
        uint32_t value = plan_graph_ref(run->graph, op->values + op->n_inputs + i);
        run->tape.storage_of_value[value] = run->tape.kept.items[c->next_kept++].storage;
    }
}

static void drop_largest(PlanRun *run, uint32_t checkpoint) {
    while (run->tape.largest.len &&
           run->tape.largest.items[run->tape.largest.len - 1].checkpoint == checkpoint) {
        plan_run_unref(run, run->tape.largest.items[--run->tape.largest.len].tensor);
    }
}

/* Since 2.12 a list has the arguments, which goes from its end; before, a node of autograd's had
 * saved them, and lets go of the first one first (_NoopSaveInputs, torch/utils/checkpoint.py; 2.0
 * and before kept a tuple). */
static void drop_arguments(PlanRun *run, const PlanCheckpoint *c) {
    const PlanStrategy *s = run->strategy;
    bool first_goes_first = plan_strategy_is_after(s, PLAN_PYTORCH_2_0) &&
                            !plan_strategy_is_after(s, PLAN_PYTORCH_2_11);
    for (uint32_t i = 0; i < c->n_arguments; i++) {
        uint32_t argument = first_goes_first ? i : c->n_arguments - 1 - i;
        plan_run_unref(run, run->tape.saved.items[c->arguments + argument]);
    }
}

/* What a recomputation that stopped early has not taken goes with the block's arguments, before
 * them. */
void plan_run_end_checkpoint(PlanRun *run, PlanCheckpoint *c) {
    drop_largest(run, (uint32_t)(c - run->tape.checkpoints.items));
    while (c->next_kept < c->kept + c->n_kept) {
        plan_run_unref(run, run->tape.kept.items[c->next_kept++]);
    }
    drop_arguments(run, c);
}

/* ---- running it again ----------------------------------------------------------------------- */

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
    uint64_t turn;         /* among those that go with it */
} Held;

/* An exception takes what an expression has made so far from the top of the frame's stack, and then
 * the frame's variables in their order, as returning does. step: that made the value. */
static Held held_of(const PlanGraph *graph, uint32_t value, uint32_t step, uint32_t last_step) {
    const PlanGraphValue *v = plan_graph_value_at(graph, value);
    uint32_t until = g_array_index(graph->holds, uint32_t, value);
    uint64_t turn = g_array_index(graph->ranks, uint64_t, value);
    if (v->next && until == last_step) { /* a variable's still, as next would be */
        until = g_array_index(graph->holds, uint32_t, v->next);
        turn = g_array_index(graph->ranks, uint64_t, v->next);
    } else if (v->behind_variable) {
        until = g_array_index(graph->holds, uint32_t, v->behind_variable);
        turn = g_array_index(graph->ranks, uint64_t, v->behind_variable) + 1;
    } else if (until < graph->steps->len &&
               plan_graph_step_at(graph, until)->kind == PLAN_STEP_OP) {
        turn = UINT64_MAX - step; /* in an expression */
    }
    return (Held){value, until, turn};
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
        bool is_held = g_array_index(graph->holds, uint32_t, value) >= last_step;
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
    return x->turn < y->turn ? -1 : x->turn > y->turn;
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

/* The exception that ends a recompute has left the call that raised it. It leaves autocast, and
 * unwinds what its frames still hold, the innermost first, of which what is held goes first; at its
 * regular end that are the results, and autocast is left after them. */
static void unwind(PlanRun *run, uint32_t first_step, uint32_t last_step) {
    bool returns = plan_graph_step_at(run->graph, last_step)->kind == PLAN_STEP_LEAVE;
    if (!returns) {
        drop_copies(run, first_step, last_step);
    }
    drop_held(run, first_step, last_step, last_step);
    if (returns) {
        drop_copies(run, first_step, last_step);
    }
}

/* What it makes is scattered, and that was kept. */
static bool is_left_out(const PlanRun *run, const PlanGraphOp *op) {
    return selects(run) && is_before_scatter(run, op, is_product(run, op)) &&
           is_kept_scatter(run, op + 1);
}

/* Layers in float8 that ranks share: what a chosen one cast, and the scale that another kept. */
static void cast_again(PlanRun *run, PlanCheckpoint *c, const PlanGraphOp *op, bool is_kept) {
    if (!op || run->graph->shared.tensor == 1 || is_left_out(run, op) ||
        (PlanGraphKind)op->kind != PLAN_GRAPH_FLOAT8_LINEAR) {
        return;
    }
    if (is_kept) {
        plan_run_at(run, PLAN_PHASE_RECOMPUTE, op->module);
        plan_float8_cast_again(run, op);
    } else {
        take_scale(run, c, op);
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

/* The module itself, and not what it does inside. */
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
        take_kept(run, c, op);
        plan_exchange_again(run, op);
    } else if (op && is_left_out(run, op)) {
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
    bool last_runs = keeps_an_output(run, plan_graph_op_at(graph, c->last_op));
    bool early = stops_early(run, entered->index);
    for (uint32_t i = c->enter_step + 1;; i++) {
        const PlanGraphStep *step = plan_graph_step_at(graph, i);
        const PlanGraphOp *op =
            step->kind == PLAN_STEP_OP ? plan_graph_op_at(graph, step->index) : NULL;
        bool is_last = early && op && step->index == c->last_op;
        if (!early && step->kind == PLAN_STEP_LEAVE && step->index == entered->index) {
            return i;
        }
        bool is_kept = op && selects_next(run, op);
        if (!is_last || last_runs) {
            run_again(run, c, i, op, is_kept);
        }
        if (op) {
            save_again(run, id, step->index);
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

void plan_run_recompute(PlanRun *run, uint32_t id) {
    PlanCheckpoint *c = &run->tape.checkpoints.items[id];
    plan_offload_bring_back(run, id);
    PlanPhase phase = run->builder.phase;
    uint32_t module = run->builder.module, n_frames = run->frames.len;
    c->recomputed = true;
    run->n_products = 0;
    run->builder.phase = PLAN_PHASE_RECOMPUTE;
    if (is_called_again(run)) {
        plan_run_begin_frame(run);
    }
    uint32_t last_step = run_steps_again(run, id);
    while (run->frames.len > n_frames) { /* what they hold is still there then */
        plan_run_end_frame(run);
    }
    unwind(run, c->enter_step + 1, last_step);
    plan_float8_forget(run);
    run->frame_buffers.len = 0;
    plan_run_at(run, phase, module);
}
