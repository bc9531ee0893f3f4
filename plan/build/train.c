#include "plan/build/train.h"

#include "plan/autograd/passes/eager.h"
#include "plan/autograd/passes/engine.h"
#include "plan/autograd/stages/stages.h"
#include "plan/build/batch.h"
#include "plan/build/evaluate.h"
#include "plan/optimizer/optimizer.h"

static void begin_pass(PlanRun *run, uint64_t pass) {
    const PlanStrategy *s = run->strategy;
    run->pass.number = pass;
    run->pass.is_last = run->pass.number + 1 == s->accumulate;
    run->pass.reduces = run->pass.is_last || s->accumulate_sync != PLAN_SYNC_LAST;
    plan_next_batch(run, run->strategy->accumulate);
    plan_run_hook(run, run->flavour->begin_pass);
}

static void play_pass(PlanRun *run) {
    plan_run_forward(run);
    plan_run_backward(run);
    plan_run_after_backward(run);
}

/* Those that are folded would stand before the last. */
static void play_passes(PlanRun *run) {
    uint64_t n = run->strategy->accumulate - run->pass.n_folded;
    play_pass(run);
    for (uint64_t pass = 1; pass < n; pass++) {
        begin_pass(run, pass + 1 < n ? pass : run->strategy->accumulate - 1);
        play_pass(run);
    }
}

/* torch.cuda.synchronize(): every lane that this step has given work. */
static void wait_for_device(PlanRun *run) {
    PlanBuilder *builder = &run->builder;
    for (uint8_t lane = 0; lane < PLAN_MAX_LANES; lane++) {
        if (builder->works >> lane & 1) {
            plan_builder_host_wait_lane(builder, lane);
        }
    }
}

/* Not where a pass drops results of the one before it, which are other buffers each time; nor where
 * an evaluation has left units whole. */
static bool passes_are_one_program(const PlanRun *run) {
    return run->flavour->replays && run->flavour->replays(run) && !run->evaluation.precedes &&
           !plan_graph_results_outlive_pass(run->graph);
}

static bool steps_are_one_program(const PlanRun *run) {
    bool is_steady = !run->flavour->is_steady || run->flavour->is_steady(run);
    return is_steady && !run->evaluation.graph && !plan_graph_results_outlive_pass(run->graph);
}

/* All but the optimizer. */
static void play_step(PlanRun *run, uint32_t n_runs, const PlanRole *first, PlanPasses *passes) {
    bool is_first = run->builder.section == PLAN_SECTION_FIRST;
    if (n_runs > 1) {
        run->pass.number = 0;
        plan_next_batch(run, run->strategy->accumulate);
        plan_stages_begin_several(run, n_runs);
        plan_stages_play_several(run, n_runs);
        return;
    }
    if (run->owner.stages) {
        run->pass.number = 0;
        plan_next_batch(run, run->strategy->accumulate);
        plan_stages_begin(run);
    } else {
        begin_pass(run, 0);
    }
    if ((first || !is_first) && passes_are_one_program(run)) {
        plan_replay(run, first, passes);
        return;
    }
    PlanWritten begin = plan_replay_written(run);
    if (run->owner.stages) {
        plan_stages_play(run);
    } else {
        play_passes(run);
    }
    if (is_first) {
        *passes = (PlanPasses){begin, plan_replay_written(run)};
    }
}

static void train_step(PlanRun *run, uint32_t n_runs, const PlanRole *first, PlanPasses *passes) {
    bool is_first = run->builder.section == PLAN_SECTION_FIRST;
    if (run->evaluation.graph && run->builder.section == PLAN_SECTION_SECOND) {
        plan_evaluate(run);
    }
    play_step(run, n_runs, first, passes);
    run->evaluation.precedes = false;
    plan_run_optimizer(run, n_runs, is_first);
    if (run->strategy->step_sync == PLAN_YES) {
        wait_for_device(run);
    }
}

static void construct(PlanRun *run) {
    run->flavour->construct(run);
    if (run->graph->pipeline.n_stages > 1) {
        run->owner.stages = plan_stages_new(run);
    }
}

void plan_train(PlanRun *run, uint32_t n_runs, PlanRole *role, const PlanRole *first,
                PlanPasses *passes) {
    plan_builder_begin_section(&run->builder, PLAN_SECTION_CONSTRUCT);
    construct(run);
    for (uint32_t i = 1; i < n_runs; i++) {
        plan_run_hand_on(&run[i - 1], &run[i]);
        construct(&run[i]);
    }
    plan_run_hand_on(&run[n_runs - 1], run);
    plan_builder_end_section(&run->builder);
    for (PlanSection s = PLAN_SECTION_FIRST; s < PLAN_N_SECTIONS; s++) {
        if (s == PLAN_SECTION_STEADY && steps_are_one_program(run)) {
            plan_builder_repeat_section(&run->builder);
            break;
        }
        plan_builder_begin_section(&run->builder, s);
        train_step(run, n_runs, first, passes);
        plan_builder_end_section(&run->builder);
    }
    for (uint32_t i = 0; i < n_runs; i++) {
        for (uint32_t p = 0; p < run[i].graph->parameters.len; p++) {
            role->n_parameter_elements += run->flavour->owned(&run[i], p).elements;
        }
    }
    role->n_folded = run->pass.n_folded;
    plan_builder_trim(&run->builder);
    plan_builder_hand_over(&run->builder, role);
}
