#include "plan/autograd/chosen.h"

bool plan_keeps_scattered(const PlanRun *run) {
    return run->graph->shared.tensor > 1 && !run->graph->shared.whole_ends;
}

bool plan_run_selects(const PlanRun *run) {
    return run->strategy->checkpointing.choice == PLAN_CHECKPOINTING_SELECTIVE_OP;
}

/* Forward counts a product when it has run, a recomputation before. */
bool plan_run_keeps_product(const PlanRun *run, unsigned ahead) {
    bool again = run->builder.phase == PLAN_PHASE_RECOMPUTE;
    bool is_counted = plan_run_selects(run) && (again || run->checkpoint != PLAN_NONE);
    return is_counted && (run->n_products + !again + ahead) % 2 == 1;
}

bool plan_run_keeps_largest(const PlanRun *run) {
    return plan_run_selects(run) && plan_keeps_scattered(run) &&
           run->graph->float8 == PLAN_FLOAT8_TENSORWISE;
}

void plan_keep_number(PlanRun *run, PlanTensor number) {
    PlanLargest kept = {run->checkpoint, number};
    plan_vector_push(&run->tape.largest, kept);
}

/* In 16 bits, until the block's backward is through. */
void plan_run_keep_largest(PlanRun *run) {
    if (run->checkpoint != PLAN_NONE) {
        PlanTensor number = plan_run_new_tensor(run, 1, run->graph->dtype, "largest");
        uint32_t buffer = plan_run_buffer_of(run, number);
        plan_vector_push(&run->frames.buffers, buffer);
        plan_keep_number(run, number);
    }
}
