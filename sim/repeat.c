#include "sim/repeat.h"

void sim_repeat_init(SimRepeat *repeat, const SimParts *parts, uint32_t steps, SimHostBook *books) {
    *repeat = (SimRepeat){.parts = *parts, .steps = steps, .books = books};
}

void sim_repeat_clear(SimRepeat *repeat) {
    for (unsigned moment = 0; moment < SIM_N_MOMENTS; moment++) {
        sim_mark_clear(&repeat->marks[moment]);
    }
    sim_mark_clear(&repeat->here);
}

/* GPT-175B under FSDP2 is as it was the step before at three eighths, T5-11B under FSDP1 at one. */
uint32_t sim_repeat_moment(const PlanRole *role, PlanSection section, unsigned moment) {
    static const unsigned eighths[SIM_N_MOMENTS] = {0, 1, 3};
    return (uint32_t)((uint64_t)role->n_instrs[section] * eighths[moment] / 8);
}

/* The step before this one played the same program. */
static bool is_as_before(const PlanPosition *at) {
    return at->section == PLAN_SECTION_STEADY && !plan_steps_alternate(at->role) &&
           (at->step > 2 || plan_section_repeats(at->role, PLAN_SECTION_STEADY));
}

/* The step after this one will. */
static bool is_worth_noting(const SimRepeat *repeat, const PlanPosition *at) {
    bool goes_on = at->section == PLAN_SECTION_STEADY
                       ? !plan_steps_alternate(at->role)
                       : at->section == PLAN_SECTION_SECOND &&
                             plan_section_repeats(at->role, PLAN_SECTION_STEADY);
    return goes_on && at->step + 1 < (int32_t)repeat->steps;
}

/* Which of the step's events the lanes have still to pass, and where. */
static void append_events(const SimParts *parts, int32_t step, MemoryWords *state) {
    const SimEngine *engine = parts->host->engine;
    for (uint32_t event = 0; event < parts->role->n_events; event++) {
        uint32_t recording;
        if (sim_recordings_find(parts->recordings, event, step, &recording) &&
            !sim_engine_passed(engine, recording)) {
            memory_words_add(state, event);
            memory_words_add(state, sim_engine_count_recordings(engine) - recording);
        }
    }
}

/* What the step before did from the mark on is still to come of this one. */
static void write_books(SimRepeat *repeat, const SimMark *before, int32_t step) {
    SimHostBook *books = repeat->books + 1; /* construction is the first */
    SimTime period_ns = repeat->here.now_ns - before->now_ns;
    books[step].busy_ns += books[step - 1].busy_ns - before->host.busy_ns;
    books[step].blocked_ns += books[step - 1].blocked_ns - before->host.blocked_ns;
    for (uint32_t later = (uint32_t)step + 1; later < repeat->steps; later++) {
        books[later] = books[step];
    }
    sim_account_repeat(repeat->parts.account, step, &before->account, period_ns);
}

bool sim_repeat_at(SimRepeat *repeat, const PlanPosition *at, unsigned moment) {
    SimMark *before = &repeat->marks[moment];
    bool compares = is_as_before(at) && before->is_known && before->step + 1 == at->step &&
                    before->n_acts == repeat->parts.driver->n_acts;
    if (moment == 0) {
        repeat->rested = sim_engine_idle(repeat->parts.host->engine);
    }
    if (!repeat->rested || !(compares || is_worth_noting(repeat, at))) {
        return false;
    }
    sim_mark_take(&repeat->here, &repeat->parts, at->step, NULL);
    append_events(&repeat->parts, at->step, &repeat->here.state);
    if (compares && sim_mark_equal(before, &repeat->here)) {
        write_books(repeat, before, at->step);
        return true;
    }
    SimMark old = *before;
    *before = repeat->here;
    repeat->here = old;
    return false;
}
