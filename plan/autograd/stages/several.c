/* plan/autograd/stages/several.c - several stages a rank, as _PipelineScheduleRuntime plays them
 * (PyTorch 2.13, schedules.py).
 *
 * Each stage is a network of its own: a root of FSDP2, an optimizer, tables. So it has a run of its
 * own too, and all of a rank's runs write one program: its builder goes from run to run.
 *
 * Of what one stage a rank does (stages.c) these differ:
 *   gathers      all units of a stage one after the other, by unshard(async_op=True): copied in on
 *                compute, and waited for and copied out where the stage first computes
 *   transfers    none is an exchange. What is taken is asked for as early as the schedule says, and
 *                waited for where it is needed; what is given is waited for at the end of the step,
 *                the last one first, and held as long
 *   reductions   behind the last backward of each stage, whatever the others still do
 *   holding      no variable outlives its action: a result goes with its backward, or when what was
 *                sent does
 */
#include "plan/autograd/stages/parts.h"
#include "plan/autograd/stages/schedule.h"
#include "plan/flavours/fsdp2.h"

typedef struct {
    PlanRun *runs;
    uint32_t n, now; /* whose action it is, who has the builder */
    PlanStageSentList sent;
} Rank;

static uint32_t places_of(const Rank *rank) {
    return (uint32_t)rank->runs->strategy->pipeline;
}

static PlanRun *switch_to(Rank *rank, uint32_t i) {
    PlanRun *from = &rank->runs[rank->now], *to = &rank->runs[i];
    plan_run_hand_on(from, to);
    to->owner.stages->phase = from->owner.stages->phase;
    rank->now = i;
    return to;
}

static PlanRun *run_of_stage(Rank *rank, uint32_t stage) {
    return switch_to(rank, stage / places_of(rank));
}

void plan_stages_begin_several(PlanRun *runs, uint32_t n) {
    Rank rank = {.runs = runs, .n = n};
    for (uint32_t i = 0; i < n; i++) {
        runs[i].owner.stages->phase = PLAN_PHASE_FORWARD;
    }
    if (runs->builder.section != PLAN_SECTION_FIRST) {
        return;
    }
    for (uint32_t i = 0; i < n; i++) {
        plan_stage_make_receivers(switch_to(&rank, i));
    }
    for (uint32_t i = n; i-- > 0;) {
        plan_stage_make_gradient_receivers(switch_to(&rank, i));
    }
}

/* ---- actions ------------------------------------------------------------------------------ */

static void gather(PlanRun *run) {
    bool is_first = run->builder.section == PLAN_SECTION_FIRST;
    plan_run_at(run, run->owner.stages->phase, 0);
    for (uint32_t u = 0; u < plan_stage_n_sharded(run); u++) {
        if (is_first && !run->owner.stages->has_gathered) {
            plan_fsdp2_pad_unit_again(run, u);
        }
        plan_fsdp2_unshard(run, u);
    }
    run->owner.stages->has_gathered = true;
}

static void reshard(PlanRun *run) {
    plan_run_at(run, run->owner.stages->phase, 0);
    for (uint32_t u = 0; u < plan_stage_n_sharded(run); u++) {
        plan_run_at_unit(run, u);
        plan_fsdp2_reshard(run, u);
    }
}

static void await_units(PlanRun *run) {
    plan_run_at(run, run->owner.stages->phase, 0);
    for (uint32_t u = 0; u < plan_stage_n_sharded(run); u++) {
        plan_fsdp2_await(run, u);
    }
}

static void take(PlanRun *run, uint32_t i, bool back) {
    PlanStageChunk *chunk = &run->owner.stages->chunks[i];
    uint8_t lane = plan_stage_issue(run, PLAN_OP_RECEIVE, !back, PLAN_NO_TENSOR,
                                    back ? chunk->gradient : chunk->taken);
    *(back ? &chunk->gradient_event : &chunk->taken_event) =
        plan_builder_record(&run->builder, lane);
}

static void forward(PlanRun *run, uint32_t i) {
    PlanStages *s = run->owner.stages;
    await_units(run);
    if (plan_stage_takes(run)) {
        plan_builder_wait(&run->builder, PLAN_LANE_COMPUTE, s->chunks[i].taken_event);
    }
    plan_stage_begin_forward(run);
    plan_stage_forward(run, i);
    plan_stage_replace(run, &s->result, PLAN_NO_TENSOR);
}

static void backward(PlanRun *run, uint32_t i) {
    PlanStages *s = run->owner.stages;
    await_units(run);
    if (plan_stage_gives(run)) {
        plan_builder_wait(&run->builder, PLAN_LANE_COMPUTE, s->chunks[i].gradient_event);
    }
    plan_stage_backward(run, i);
    plan_stage_replace(run, &s->loss, PLAN_NO_TENSOR);
    s->chunks[i].made = s->arrived;
}

static void send_back(Rank *rank, PlanRun *run, uint32_t i) {
    PlanTensor *made = &run->owner.stages->chunks[i].made;
    plan_stage_send(run, &rank->sent, true, *made);
    plan_stage_replace(run, made, PLAN_NO_TENSOR);
}

static void play(Rank *rank, const PlanStageAction *action) {
    PlanRun *run = run_of_stage(rank, action->stage);
    switch (action->kind) {
    case PLAN_STAGE_GATHER:
        gather(run);
        return;
    case PLAN_STAGE_RESHARD:
        reshard(run);
        return;
    case PLAN_STAGE_REDUCE:
        plan_stage_reduce(run);
        run->pass.reduces = false;
        return;
    case PLAN_STAGE_FORWARD:
        forward(run, action->chunk);
        return;
    case PLAN_STAGE_BACKWARD:
        backward(run, action->chunk);
        return;
    case PLAN_STAGE_SEND:
        plan_stage_send(run, &rank->sent, false, run->owner.stages->chunks[action->chunk].result);
        return;
    case PLAN_STAGE_SEND_BACK:
        send_back(rank, run, action->chunk);
        return;
    case PLAN_STAGE_RECEIVE:
    case PLAN_STAGE_RECEIVE_BACK:
        take(run, action->chunk, action->kind == PLAN_STAGE_RECEIVE_BACK);
        return;
    }
}

/* ---- a step --------------------------------------------------------------------------------- */

static void wait_for_sent(Rank *rank) {
    for (uint32_t i = rank->sent.len; i-- > 0;) {
        PlanStageSent sent = rank->sent.items[i];
        PlanRun *run = switch_to(rank, (uint32_t)(sent.run - rank->runs));
        plan_run_at(run, run->owner.stages->phase, 0);
        plan_builder_wait(&run->builder, PLAN_LANE_COMPUTE, sent.event);
        plan_run_unref(run, sent.tensor);
    }
}

static void let_go_of_losses(Rank *rank) {
    PlanRun *run = switch_to(rank, rank->n - 1);
    for (uint32_t i = run->owner.stages->n_chunks; i-- > 0;) {
        plan_stage_replace(run, &run->owner.stages->chunks[i].loss, PLAN_NO_TENSOR);
    }
}

void plan_stages_play_several(PlanRun *runs, uint32_t n) {
    Rank rank = {.runs = runs, .n = n};
    const PlanStrategy *s = runs->strategy;
    PlanSchedule schedule = {(uint32_t)s->pipeline, n, (uint32_t)s->accumulate,
                             s->pipeline_schedule == PLAN_PIPELINE_LOOPED_BFS};
    g_autoptr(GArray) actions = plan_schedule_of_place(&schedule, runs->graph->pipeline.stage);
    for (uint32_t i = 0; i < n; i++) {
        runs[i].pass.reduces = false;
    }
    for (uint32_t i = 0; i < actions->len; i++) {
        play(&rank, &g_array_index(actions, PlanStageAction, i));
    }
    wait_for_sent(&rank);
    let_go_of_losses(&rank);
    switch_to(&rank, 0);
    plan_vector_clear(&rank.sent);
}
