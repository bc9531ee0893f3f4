#include "sim/repeat.h"

#include <string.h>

void sim_repeat_init(SimRepeat *repeat, uint32_t steps) {
    *repeat = (SimRepeat){.steps = steps};
}

void sim_repeat_clear(SimRepeat *repeat) {
    g_clear_pointer(&repeat->state, g_byte_array_unref);
}

/* The step after this one plays the program that this one did. */
static bool goes_on_alike(const PlanPosition *at) {
    switch (at->section) {
    case PLAN_SECTION_SECOND:
        return plan_section_repeats(at->role, PLAN_SECTION_STEADY);
    case PLAN_SECTION_STEADY:
        return !plan_steps_alternate(at->role);
    case PLAN_SECTION_CONSTRUCT:
    case PLAN_SECTION_FIRST:
    case PLAN_N_SECTIONS:
        break;
    }
    return false;
}

/* Another step is still to be compared with what is found here, and one more to be spared. */
static bool is_worth_noting(const SimRepeat *repeat, const PlanPosition *at) {
    return at->section >= PLAN_SECTION_SECOND && at->step + 2 < (int32_t)repeat->steps;
}

static bool is_equal(const GByteArray *a, const GByteArray *b) {
    return a->len == b->len && memcmp(a->data, b->data, a->len) == 0;
}

/* NULL: nothing is known of what comes next. */
static GByteArray *state_of(const SimDriver *driver, const SimMemory *memory) {
    GByteArray *state = g_byte_array_new();
    if (!sim_engine_idle(driver->host->engine) || !sim_memory_append_state(memory, NULL, state)) {
        g_clear_pointer(&state, g_byte_array_unref);
    }
    return state;
}

bool sim_repeat_section_ends(SimRepeat *repeat, const PlanPosition *at, const SimDriver *driver,
                             const SimMemory *memory, const SimAccount *account) {
    bool compares = repeat->state && goes_on_alike(at) && repeat->n_acts == driver->n_acts &&
                    at->step + 1 < (int32_t)repeat->steps;
    if (!compares && !is_worth_noting(repeat, at)) {
        return false;
    }
    g_autoptr(GByteArray) before = g_steal_pointer(&repeat->state);
    repeat->state = state_of(driver, memory);
    if (!repeat->state) {
        return false;
    }
    SimTime now_ns = driver->host->now_ns, shares_ns[SIM_N_SHARES];
    sim_account_shares(account, now_ns, shares_ns);
    repeat->period_ns = now_ns - repeat->now_ns;
    for (unsigned i = 0; i < SIM_N_SHARES; i++) {
        repeat->period_shares_ns[i] = shares_ns[i] - repeat->shares_ns[i];
        repeat->shares_ns[i] = shares_ns[i];
    }
    repeat->now_ns = now_ns;
    repeat->n_acts = driver->n_acts;
    return compares && is_equal(before, repeat->state);
}
