#include "sim/device/repeat/repeat.h"

void sim_repeat_init(SimRepeat *repeat, const SimParts *parts, uint32_t steps, SimHostBook *books) {
    *repeat = (SimRepeat){.parts = *parts, .steps = steps, .books = books};
    repeat->before = &repeat->snapshots[0];
    repeat->here = &repeat->snapshots[1];
}

static void clear(SimStepSnapshots *snapshots) {
    sim_snapshot_clear(&snapshots->begin);
    sim_snapshot_clear(&snapshots->within);
}

void sim_repeat_clear(SimRepeat *repeat) {
    clear(&repeat->snapshots[0]);
    clear(&repeat->snapshots[1]);
}

uint32_t sim_repeat_moment(const PlanRole *role, PlanSection section, unsigned moment) {
    return (uint32_t)((uint64_t)role->n_instrs[section] * moment / SIM_N_MOMENTS);
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

/* What the step before did from the snapshot on is still to come of this one. */
static void write_books(SimRepeat *repeat, const SimSnapshot *before, const SimSnapshot *here) {
    SimHostBook *books = repeat->books + 1; /* construction is the first */
    uint32_t step = (uint32_t)here->step;
    books[step].busy_ns += books[step - 1].busy_ns - before->host.busy_ns;
    books[step].blocked_ns += books[step - 1].blocked_ns - before->host.blocked_ns;
    for (uint32_t later = step + 1; later < repeat->steps; later++) {
        books[later] = books[step];
    }
    sim_account_repeat(repeat->parts.account, here->step, &before->account,
                       here->now_ns - before->now_ns);
}

static void begin_step(SimRepeat *repeat) {
    SimStepSnapshots *old = repeat->before;
    repeat->before = repeat->here;
    repeat->here = old;
    repeat->here->begin.is_known = repeat->here->within.is_known = false;
    repeat->rested = sim_engine_idle(repeat->parts.host->engine);
}

/* The driver has been left alone for a while, and the step has no snapshot of that time yet. */
static bool is_quiet(const SimRepeat *repeat) {
    uint64_t n_acts = repeat->parts.driver->n_acts;
    const SimSnapshot *within = &repeat->here->within;
    return n_acts == repeat->n_acts && !(within->is_known && within->n_acts == n_acts);
}

/* From mid-step on the last step's begin snapshot is never compared again, so its buffer is reused
 * for this step's middle snapshot. */
static void make_room(SimRepeat *repeat) {
    SimSnapshot *begin = &repeat->before->begin, *within = &repeat->here->within;
    if (within->state.room == 0) {
        within->state = begin->state;
        begin->state = (MemoryWords){0};
        begin->is_known = false;
    }
}

bool sim_repeat_at(SimRepeat *repeat, const PlanPosition *at, unsigned moment) {
    if (moment == 0) {
        begin_step(repeat);
    }
    bool begins = moment == 0, is_there = begins || moment == repeat->before->within_at;
    const SimSnapshot *before = begins ? &repeat->before->begin : &repeat->before->within;
    SimSnapshot *here = begins ? &repeat->here->begin : &repeat->here->within;
    bool compares = is_there && is_as_before(at) && before->is_known &&
                    before->step + 1 == at->step && before->n_acts == repeat->parts.driver->n_acts;
    bool notes = is_worth_noting(repeat, at) &&
                 (begins || (repeat->here->begin.is_known && is_quiet(repeat)));
    repeat->n_acts = repeat->parts.driver->n_acts;
    if (!repeat->rested || !(compares || notes)) {
        return false;
    }
    if (!begins) {
        make_room(repeat);
    }
    sim_snapshot_take(here, &repeat->parts, at->step, NULL);
    append_events(&repeat->parts, at->step, &here->state);
    if (compares && sim_snapshot_equal(before, here)) {
        write_books(repeat, before, here);
        return true;
    }
    repeat->here->within_at = begins ? repeat->here->within_at : moment;
    return false;
}
