#include "plan/autograd/loop.h"

bool plan_loop_makes(const PlanRun *run, const PlanGraphValue *value) {
    bool copies = run->pass.copies_results || !run->graph->copies_results;
    bool is_returned = copies ? value->is_returned : value->is_copied;
    return is_returned && run->builder.phase == PLAN_PHASE_FORWARD &&
           plan_graph_results_outlive_pass(run->graph);
}

PlanTensor plan_loop_new_tensor(PlanRun *run, const PlanGraphValue *value, const char *name) {
    PlanLoop *loop = &run->loop;
    uint32_t made = loop->n_made++;
    if (made < loop->buffers[loop->parity].len) {
        return plan_run_new_in(run, loop->buffers[loop->parity].items[made]);
    }
    PlanTensor tensor = plan_run_new_tensor(run, value->elements, (PlanDtype)value->dtype, name);
    plan_vector_push(&loop->buffers[loop->parity], plan_run_buffer_of(run, tensor));
    return tensor;
}

void plan_loop_takes(PlanRun *run, uint32_t step) {
    const GArray *returned = run->graph->returned;
    PlanLoop *loop = &run->loop;
    while (loop->n_taken < returned->len) {
        const PlanGraphReturned *next = plan_graph_at(returned, PlanGraphReturned, loop->n_taken);
        if (next->step != step) {
            return;
        }
        plan_vector_push(&loop->held, plan_run_ref(run, plan_run_value(run, next->value)));
        loop->n_taken++;
    }
}

/* Frees the first n held tensors, in reverse order of making, as Python clears a tuple. */
static void drop(PlanRun *run, uint32_t n) {
    PlanLoop *loop = &run->loop;
    for (uint32_t i = n; i-- > 0;) {
        plan_run_unref(run, loop->held.items[i]);
    }
    for (uint32_t i = n; i < loop->held.len; i++) {
        loop->held.items[i - n] = loop->held.items[i];
    }
    loop->held.len -= n;
}

void plan_loop_forward_returned(PlanRun *run) {
    PlanLoop *loop = &run->loop;
    uint32_t n_older = loop->held.len - loop->n_taken;
    drop(run, run->graph->results_held == PLAN_RESULTS_DROPPED ? loop->held.len : n_older);
}

void plan_loop_ends(PlanRun *run) {
    drop(run, run->loop.held.len);
}

void plan_loop_backward_is_through(PlanRun *run) {
    PlanLoop *loop = &run->loop;
    if (run->graph->results_held == PLAN_RESULTS_BACKWARD) {
        drop(run, loop->held.len);
    }
    loop->n_taken = loop->n_made = 0;
    loop->parity = !loop->parity;
}
