#include "plan/build/evaluate.h"

#include "plan/autograd/evaluation.h"
#include "plan/autograd/loop.h"
#include "plan/autograd/passes/eager.h"
#include "plan/build/batch.h"

/* The loop lets go of the loss, then of what it was given beside it. */
static void play_pass(PlanRun *run, uint64_t number) {
    run->pass = (PlanRunPass){.number = number, .n_folded = run->pass.n_folded};
    plan_next_batch(run, run->strategy->eval_batches);
    plan_run_hook(run, run->flavour->begin_evaluation);
    plan_run_forward(run);
    plan_run_at(run, PLAN_PHASE_EVALUATION, 0);
    plan_run_unref(run, plan_run_value(run, run->graph->loss));
    plan_loop_backward_is_through(run);
}

void plan_evaluate(PlanRun *run) {
    plan_evaluation_begin(run);
    for (uint64_t number = 0; number < run->strategy->eval_batches; number++) {
        play_pass(run, number);
    }
    plan_loop_ends(run);
    run->evaluation.precedes = true;
    plan_evaluation_end(run);
}
