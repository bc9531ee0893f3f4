/* plan/optimizer/shared.c - how gradients of layers that ranks share are settled.
 *
 * Without FSDP parameters are DTensors of the tensor axis alone, and a gradient stays what backward
 * made: a norm's is each rank's own sum, the table's is of the whole table. Whatever operator reads
 * them with parameters or states has them as those lie: a new tensor each time, let go of behind it
 * (recorded: tests/oracle/, *-none-tensor-*).
 */
#include "plan/optimizer/shared.h"

#include "plan/autograd/shared/shared.h"

PlanTensor *plan_settle_gradients(const PlanOver *over) {
    PlanRun *run = over->run;
    if (!plan_settles(run)) {
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
    return plan_settles(run) && run->gradients[parameter].elements == p->elements
               ? plan_shared_settled(run, parameter, run->gradients[parameter])
               : PLAN_NO_TENSOR;
}

void plan_settled_let_go(PlanRun *run, PlanTensor *settled) {
    for (uint32_t p = run->graph->parameters.len; settled && p-- > 0;) {
        plan_run_unref(run, settled[p]);
    }
    g_free(settled);
}
