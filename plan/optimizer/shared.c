/* plan/optimizer/shared.c - gradients of layers that ranks share, where no flavour reduces them.
 *
 * Without FSDP parameters are DTensors of the tensor axis alone, and a gradient stays what backward
 * made: a norm's is each rank's own sum, the table's is of the whole table. Whatever operator reads
 * them with parameters or states has them as those lie: a new tensor each time, let go of behind it
 * (recorded: tests/oracle/, *-none-tensor-*).
 */
#include "plan/autograd/shared/shared.h"
#include "plan/optimizer/optimizer.h"

static bool settles(const PlanRun *run) {
    return run->graph->shared.tensor > 1 && run->strategy->flavour == PLAN_FLAVOUR_PLAIN;
}

static bool is_muons(const PlanRun *run) {
    return run->strategy->optimizer == PLAN_OPTIMIZER_MUON;
}

/* Lists of kernels take DTensors or others, so those that FSDP2 leaves alone are a group. */
static bool has_tensors_beside_shards(const PlanRun *run) {
    return run->ignored && run->strategy->flavour == PLAN_FLAVOUR_FSDP2;
}

unsigned plan_n_groups(const PlanRun *run) {
    return is_muons(run) || has_tensors_beside_shards(run) ||
                   (settles(run) && run->graph->shared.whole_tokens)
               ? 2
               : 1;
}

unsigned plan_group_of(const PlanRun *run, uint32_t parameter) {
    const PlanGraphParameter *p = plan_run_parameter(run, parameter);
    return has_tensors_beside_shards(run) ? !p->ignored
           : is_muons(run)                ? !plan_muon_takes(run, parameter)
                                          : plan_n_groups(run) > 1 && p->split != PLAN_SPLIT_NONE;
}

PlanTensor *plan_settle_gradients(const PlanOver *over) {
    PlanRun *run = over->run;
    if (!settles(run)) {
        return NULL;
    }
    uint32_t n = run->graph->parameters.len;
    PlanTensor *settled = g_new(PlanTensor, n);
    for (uint32_t p = 0; p < n; p++) {
        settled[p] = plan_over_owns(over, p) ? plan_shared_settled(run, p, run->gradients[p])
                                             : PLAN_NO_TENSOR;
    }
    return settled;
}

PlanTensor plan_settled_sum(PlanRun *run, uint32_t parameter) {
    const PlanGraphParameter *p = plan_run_parameter(run, parameter);
    return settles(run) && run->gradients[parameter].elements == p->elements
               ? plan_shared_settled(run, parameter, run->gradients[parameter])
               : PLAN_NO_TENSOR;
}

void plan_settled_let_go(PlanRun *run, PlanTensor *settled) {
    for (uint32_t p = run->graph->parameters.len; settled && p-- > 0;) {
        plan_run_unref(run, settled[p]);
    }
    g_free(settled);
}
