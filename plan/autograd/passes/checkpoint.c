/* plan/autograd/passes/checkpoint.c - checkpointed blocks: what forward leaves for backward. */
#include "plan/autograd/passes/checkpoint.h"
#include "plan/autograd/differentiate/saved.h"
#include "plan/autograd/float8/layer.h"
#include "plan/autograd/offload.h"
#include "plan/autograd/traced.h"

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

bool plan_keeps_an_output(const PlanRun *run, const PlanGraphOp *op) {
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
        (is_behind || (c->last_selected == c->last_op && !plan_keeps_an_output(run, last)))) {
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
