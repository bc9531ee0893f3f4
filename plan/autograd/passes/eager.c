#include "plan/autograd/passes/eager.h"

#include "plan/autograd/float8/delayed.h"
#include "plan/autograd/loop.h"
#include "plan/autograd/passes/checkpoint.h"
#include "plan/autograd/passes/record.h"
#include "plan/autograd/unit.h"

/* ---- steps ---------------------------------------------------------------------------------- */

void plan_run_let_go(PlanRun *run, const PlanGraphStep *step) {
    for (uint32_t i = 0; i < step->n_releases; i++) {
        plan_run_unref(run, plan_run_value(run, g_array_index(run->graph->releases, uint32_t,
                                                              step->releases + i)));
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
            plan_record_enter_unit(run, step, unit);
        } else if (plan_unit_is_frozen(run, unit)) {
            plan_record_watch_arguments(run, step, unit);
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
            plan_record_leave_unit(run, step, unit);
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

/* ---- passes --------------------------------------------------------------------------------- */

/* The root's forward. */
static bool has_returned(const PlanGraph *graph, uint32_t step_id) {
    const PlanGraphStep *step = plan_graph_step_at(graph, step_id);
    return graph->copies_results ? step_id == graph->results_copied
                                 : step->kind == PLAN_STEP_LEAVE && step->index == 0;
}

static void play(PlanRun *run, uint32_t id) {
    const PlanGraph *graph = run->graph;
    const PlanGraphStep *step = plan_graph_step_at(graph, id);
    plan_run_step(run, id);
    if (step->kind == PLAN_STEP_OP && !graph->evaluates) {
        plan_record_op(run, step->index);
        if (run->checkpoint != PLAN_NONE) {
            plan_run_keep_selected(run, step->index);
        }
    }
    plan_loop_takes(run, id);
    if (id == graph->root_cast) {
        plan_run_hook(run, run->flavour->root_cast);
    }
    plan_run_let_go(run, step);
}

uint32_t plan_run_forward_root(PlanRun *run) {
    const PlanGraph *graph = run->graph;
    uint32_t next = 0;
    bool is_through = false;
    run->builder.phase = plan_run_forward_phase(run);
    plan_delayed_begin(run);
    while (next < graph->n_train_steps && !is_through) {
        play(run, next);
        is_through = has_returned(graph, next++);
    }
    if (is_through) {
        plan_loop_forward_returned(run);
    }
    return next;
}

void plan_run_forward_rest(PlanRun *run, uint32_t next) {
    while (next < run->graph->n_train_steps) {
        play(run, next++);
    }
    run->frames.buffers.len =
        0; /* buffers made outside of any module are not counted as activations */
}

void plan_run_forward(PlanRun *run) {
    plan_run_forward_rest(run, plan_run_forward_root(run));
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
