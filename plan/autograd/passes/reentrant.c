/* plan/autograd/passes/reentrant.c - checkpoints that are a node of autograd's
 * (use_reentrant=True), as until PyTorch 2.0 only they work around units of FSDP1. */
#include "plan/autograd/passes/reentrant.h"
#include "plan/autograd/passes/checkpoint.h"
#include "plan/autograd/unit.h"

uint32_t plan_reentrant_block(const PlanRun *run, const PlanNode *node) {
    if (!run->modules.checkpoints_reenter) {
        return PLAN_NONE;
    }
    bool is_of_unit = node->flat || node->op == PLAN_NONE;
    return plan_checkpointed_around(run, is_of_unit
                                             ? run->units[node->unit].module
                                             : plan_graph_op_at(run->graph, node->op)->module);
}

void plan_reentrant_begin(PlanRun *run, uint32_t block, PlanTensor given) {
    for (uint32_t id = run->tape.checkpoints.len; id-- > 0;) {
        PlanCheckpoint *c = &run->tape.checkpoints.items[id];
        if (plan_graph_step_at(run->graph, c->enter_step)->index == block && !c->recomputed) {
            plan_run_recompute(run, id);
            run->reentered = id;
            c->given = plan_run_ref(run, given);
            return;
        }
    }
}

void plan_reentrant_leave(PlanRun *run, uint32_t next_block) {
    PlanCheckpoint *c =
        run->reentered == PLAN_NONE ? NULL : &run->tape.checkpoints.items[run->reentered];
    if (c && plan_graph_step_at(run->graph, c->enter_step)->index != next_block) {
        run->reentered = PLAN_NONE;
        plan_run_drop_results(run, c);
        plan_run_drop(run, &c->given);
        plan_run_end_checkpoint(run, c);
    }
}
