#include "plan/autograd/stages/parts.h"
#include "plan/flavours/fsdp2.h"

/* ---- what comes and goes -------------------------------------------------------------------- */

static void issue_and_wait(PlanRun *run, PlanOpKind kind, bool to_before, PlanTensor given,
                           PlanTensor taken) {
    uint8_t lane = plan_stage_issue(run, kind, to_before, given, taken);
    plan_builder_wait_lane(&run->builder, PLAN_LANE_COMPUTE, lane);
}

static void receive_input(PlanRun *run, uint32_t chunk) {
    if (plan_stage_takes(run)) {
        issue_and_wait(run, PLAN_OP_RECEIVE, true, PLAN_NO_TENSOR,
                       run->owner.stages->chunks[chunk].taken);
    }
}

static void receive_gradient(PlanRun *run, uint32_t chunk) {
    if (plan_stage_gives(run)) {
        issue_and_wait(run, PLAN_OP_RECEIVE, false, PLAN_NO_TENSOR,
                       run->owner.stages->chunks[chunk].gradient);
    }
}

static void wait_for_sent(PlanRun *run) {
    PlanStageSentList *sent = &run->owner.stages->sent;
    for (uint32_t i = 0; i < sent->len; i++) {
        plan_builder_wait(&run->builder, PLAN_LANE_COMPUTE, sent->items[i].event);
    }
}

/* From the last to the first, as a list of Python's. */
static void let_go_of_sent(PlanRun *run, uint32_t n) {
    PlanStageSentList *sent = &run->owner.stages->sent;
    for (uint32_t i = n; i-- > 0;) {
        plan_run_unref(run, sent->items[i].tensor);
    }
    for (uint32_t i = n; i < sent->len; i++) {
        sent->items[i - n] = sent->items[i];
    }
    sent->len -= n;
}

/* What differs between steps and roles, before the passes that do not. */
void plan_stages_begin(PlanRun *run) {
    bool is_first = run->builder.section == PLAN_SECTION_FIRST;
    run->owner.stages->phase = PLAN_PHASE_FORWARD;
    if (is_first) {
        plan_stage_make_receivers(run);
        plan_stage_make_gradient_receivers(run);
    }
    receive_input(run, 0);
    if (is_first && plan_stage_is_sharded(run)) {
        plan_fsdp2_pad_again(run);
    }
    plan_stage_begin_forward(run);
}

/* Its variable is given what the last backward made. */
static void take_gradient(PlanRun *run) {
    plan_stage_replace(run, &run->owner.stages->gradient, run->owner.stages->arrived);
}

/* The first has begun. */
static void forward(PlanRun *run, uint32_t chunk) {
    if (chunk > 0) {
        plan_stage_begin_forward(run);
    }
    plan_stage_forward(run, chunk);
}

/* ---- schedules ------------------------------------------------------------------------------ */

/* Sends a tensor, and then waits for the earlier sends. */
static void send_next(PlanRun *run, bool to_before, PlanTensor tensor) {
    uint32_t n = run->owner.stages->sent.len;
    plan_stage_send(run, &run->owner.stages->sent, to_before, tensor);
    let_go_of_sent(run, n);
}

static void warm_up(PlanRun *run, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        if (i > 0) {
            receive_input(run, i);
        }
        forward(run, i);
        wait_for_sent(run);
        if (plan_stage_gives(run) && i + 1 < n) {
            send_next(run, false, run->owner.stages->result);
        }
    }
}

/* The gradient goes back; what was waited for on the way is let go of. */
static void send_gradient(PlanRun *run) {
    if (plan_stage_takes(run)) {
        send_next(run, true, run->owner.stages->gradient);
    } else {
        let_go_of_sent(run, run->owner.stages->sent.len);
    }
}

static void play_1f1b(PlanRun *run) {
    PlanStages *s = run->owner.stages;
    uint32_t n = s->n_chunks,
             forwards = MIN(n, run->graph->pipeline.n_stages - run->graph->pipeline.stage);
    uint32_t backwards = 0;
    warm_up(run, forwards);
    while (true) {
        if (plan_stage_gives(run)) {
            issue_and_wait(run, PLAN_OP_EXCHANGE, false, s->result, s->chunks[backwards].gradient);
        }
        plan_stage_backward(run, backwards++);
        take_gradient(run);
        if (forwards == n) {
            break;
        }
        if (plan_stage_takes(run)) {
            issue_and_wait(run, PLAN_OP_EXCHANGE, true, s->gradient, s->chunks[forwards].taken);
        }
        forward(run, forwards++);
    }
    send_gradient(run);
    while (backwards < n) {
        receive_gradient(run, backwards);
        plan_stage_backward(run, backwards++);
        wait_for_sent(run);
        take_gradient(run);
        send_gradient(run);
    }
    wait_for_sent(run);
}

static void play_gpipe(PlanRun *run) {
    PlanStages *s = run->owner.stages;
    for (uint32_t i = 0; i < s->n_chunks; i++) {
        if (i > 0) {
            receive_input(run, i);
        }
        forward(run, i);
        if (plan_stage_gives(run)) {
            plan_stage_send(run, &run->owner.stages->sent, false, s->result);
        }
    }
    wait_for_sent(run);
    for (uint32_t i = 0; i < s->n_chunks; i++) {
        receive_gradient(run, i);
        plan_stage_backward(run, i);
        take_gradient(run);
        if (plan_stage_takes(run)) {
            plan_stage_send(run, &run->owner.stages->sent, true, s->gradient);
        }
    }
    wait_for_sent(run);
}

/* ---- the end of a step ---------------------------------------------------------------------- */

static void let_go_of_losses(PlanRun *run) {
    PlanStages *s = run->owner.stages;
    for (uint32_t i = s->n_chunks; i-- > 0;) {
        plan_stage_replace(run, &s->chunks[i].loss, PLAN_NO_TENSOR);
    }
}

/* As the function returns, in the order of its variables: gpipe has one for all results that were
 * sent, and one for all gradients. */
static void let_go_of_variables(PlanRun *run) {
    PlanStages *s = run->owner.stages;
    bool alternates = run->strategy->pipeline_schedule == PLAN_PIPELINE_1F1B;
    let_go_of_sent(run, alternates ? s->sent.len : plan_stage_gives(run) ? s->n_chunks : 0);
    plan_stage_replace(run, &s->result, PLAN_NO_TENSOR);
    if (alternates) {
        plan_stage_replace(run, &s->loss, PLAN_NO_TENSOR);
    }
    plan_stage_replace(run, &s->gradient, PLAN_NO_TENSOR);
    let_go_of_sent(run, s->sent.len);
    plan_stage_replace(run, &s->loss, PLAN_NO_TENSOR);
}

void plan_stages_play(PlanRun *run) {
    run->pass.reduces = false;
    switch ((PlanPipelineSchedule)run->strategy->pipeline_schedule) {
    case PLAN_PIPELINE_1F1B:
        play_1f1b(run);
        break;
    case PLAN_PIPELINE_GPIPE:
        play_gpipe(run);
        break;
    case PLAN_PIPELINE_INTERLEAVED:
    case PLAN_PIPELINE_LOOPED_BFS:
        g_assert_not_reached(); /* several.c */
    }
    let_go_of_losses(run);
    plan_stage_reduce(run);
    let_go_of_variables(run);
}
