#include "plan/autograd/program.h"

#include "plan/autograd/tensor.h"

bool plan_program_gives_late(const PlanRun *run) {
    return plan_strategy_is_one_program(run->strategy) &&
           run->strategy->flavour == PLAN_FLAVOUR_PLAIN;
}

void plan_run_call_program(PlanRun *run, PlanTensor gradient) {
    if (run->strategy->compile == PLAN_COMPILE_NETWORK_HOLDING && plan_program_gives_late(run)) {
        plan_vector_push(&run->program.held, plan_run_ref(run, gradient));
    }
}

void plan_program_is_through(PlanRun *run) {
    for (uint32_t i = 0; i < run->program.held.len; i++) {
        plan_run_unref(run, run->program.held.items[i]);
    }
    run->program.held.len = 0;
}
