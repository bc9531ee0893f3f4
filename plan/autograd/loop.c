#include "plan/autograd/loop.h"

bool plan_loop_will_hold(const PlanRun *run, const PlanGraphValue *value) {
    return value->outlasts && run->builder.phase == PLAN_PHASE_FORWARD;
}

PlanTensor plan_loop_new_tensor(PlanRun *run, const PlanGraphValue *value, const char *name) {
    PlanLoop *loop = &run->loop;
    uint32_t made = loop->n_made++;
    if (made < loop->buffers[loop->turn].len) {
        return plan_run_new_in(run, loop->buffers[loop->turn].items[made]);
    }
    PlanTensor tensor = plan_run_new_tensor(run, value->elements, (PlanDtype)value->dtype, name);
    plan_vector_push(&loop->buffers[loop->turn], plan_run_buffer_of(run, tensor));
    return tensor;
}

void plan_loop_takes(PlanRun *run, uint32_t step) {
    const GArray *outlasting = run->graph->outlasting;
    PlanLoop *loop = &run->loop;
    while (loop->n_taken < outlasting->len) {
        const PlanGraphOutlasting *next =
            plan_graph_at(outlasting, PlanGraphOutlasting, loop->n_taken);
        if (next->step != step) {
            return;
        }
        plan_vector_push(&loop->held, plan_run_ref(run, plan_run_value(run, next->value)));
        loop->n_taken++;
    }
}

void plan_loop_drops_older(PlanRun *run) {
    PlanLoop *loop = &run->loop;
    for (uint32_t i = 0; i < loop->n_older; i++) {
        plan_run_unref(run, loop->held.items[i]);
    }
    for (uint32_t i = loop->n_older; i < loop->held.len; i++) {
        loop->held.items[i - loop->n_older] = loop->held.items[i];
    }
    loop->held.len -= loop->n_older;
    loop->n_older = 0;
}

void plan_loop_is_older(PlanRun *run) {
    PlanLoop *loop = &run->loop;
    loop->n_older = loop->held.len;
    loop->n_taken = loop->n_made = 0;
    loop->turn = !loop->turn;
}
