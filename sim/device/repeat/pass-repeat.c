#include "sim/device/repeat/pass-repeat.h"

#include <string.h>

enum {
    MOST_TRIES = 320 /* the host's lead over the device may grow for as many passes */
};

static void forget(SimPassRepeat *repeat) {
    for (unsigned i = 0; i < SIM_MOST_PERIOD; i++) {
        repeat->snapshots[i].is_known = false;
    }
}

void sim_pass_repeat_init(SimPassRepeat *repeat, const SimParts *parts) {
    *repeat = (SimPassRepeat){.parts = *parts, .section = PLAN_N_SECTIONS};
}

void sim_pass_repeat_clear(SimPassRepeat *repeat) {
    sim_passes_clear(&repeat->passes);
    for (unsigned i = 0; i < SIM_MOST_PERIOD; i++) {
        sim_snapshot_clear(&repeat->snapshots[i]);
    }
    sim_snapshot_clear(&repeat->here);
    g_clear_pointer(&repeat->is_made, g_free);
}

const SimPasses *sim_pass_repeat_section(SimPassRepeat *repeat, PlanSection section) {
    const SimParts *parts = &repeat->parts;
    bool is_known = section == repeat->section ||
                    (plan_section_repeats(parts->role, section) && repeat->section + 1 == section);
    if (!is_known) {
        sim_passes_clear(&repeat->passes);
        sim_passes_init(&repeat->passes, parts->costs, parts->role, section);
    }
    repeat->section = section;
    repeat->tries = 0;
    repeat->n_folded = section == PLAN_SECTION_CONSTRUCT ? 0 : parts->role->n_folded;
    forget(repeat);
    if (repeat->passes.n > 0 && !repeat->is_made) {
        repeat->is_made = g_new0(bool, parts->role->n_buffers);
    }
    return &repeat->passes;
}

/* ---- what a pass is ------------------------------------------------------------------------- */

/* The instructions of a pass, from the first on. */
static const PlanInstr *instrs_of(const SimPassRepeat *repeat, uint32_t pass) {
    return repeat->parts.role->sections[repeat->section] + repeat->passes.begins[pass];
}

static uint32_t length_of(const SimPassRepeat *repeat, uint32_t pass) {
    return repeat->passes.begins[pass + 1] - repeat->passes.begins[pass];
}

/* Which of its instructions made something, of each buffer the last: uint32_t. is_made says so of
 * the buffers until forget_made(). */
static GArray *find_made(SimPassRepeat *repeat, uint32_t pass) {
    GArray *made = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    const PlanInstr *instrs = instrs_of(repeat, pass);
    for (uint32_t i = length_of(repeat, pass); i-- > 0;) {
        if (instrs[i].kind == PLAN_ALLOC && !repeat->is_made[instrs[i].arg]) {
            repeat->is_made[instrs[i].arg] = true;
            g_array_append_val(made, i);
        }
    }
    return made;
}

static void forget_made(SimPassRepeat *repeat, uint32_t pass, GArray *made) {
    for (guint i = 0; i < made->len; i++) {
        repeat->is_made[instrs_of(repeat, pass)[g_array_index(made, uint32_t, i)].arg] = false;
    }
    g_array_unref(made);
}

/* ---- where a pass begins -------------------------------------------------------------------- */

static void append_recorded(const SimPassRepeat *repeat, int32_t step, uint32_t pass,
                            MemoryWords *state) {
    const SimParts *parts = &repeat->parts;
    uint32_t newest = sim_engine_count_recordings(parts->host->engine);
    const PlanInstr *instrs = instrs_of(repeat, pass);
    for (uint32_t i = 0; i < length_of(repeat, pass); i++) {
        uint32_t recording;
        if (instrs[i].kind == PLAN_RECORD &&
            sim_recordings_find(parts->recordings, instrs[i].arg, step, &recording)) {
            memory_words_add(state, newest - recording);
        }
    }
}

/* What the pass made is told by where it made it, for its numbers are its own. */
static void take_snapshot(SimPassRepeat *repeat, int32_t step, uint32_t pass) {
    SimSnapshot *snapshot = &repeat->here;
    GArray *made = find_made(repeat, pass);
    sim_snapshot_take(snapshot, &repeat->parts, step, repeat->is_made);
    for (guint i = 0; i < made->len; i++) {
        uint32_t at = g_array_index(made, uint32_t, i);
        memory_words_add(&snapshot->state, at);
        sim_memory_append_position(repeat->parts.memory, instrs_of(repeat, pass)[at].arg,
                                   &snapshot->state);
    }
    forget_made(repeat, pass, made);
    append_recorded(repeat, step, pass, &snapshot->state);
}

/* ---- the leap ------------------------------------------------------------------------------- */

/* What one pass left is what the other would have left. */
static void rename_buffers(SimPassRepeat *repeat, uint32_t pass, uint32_t to) {
    GArray *made = find_made(repeat, pass);
    g_autofree uint32_t *from = g_new(uint32_t, made->len), *into = g_new(uint32_t, made->len);
    for (guint i = 0; i < made->len; i++) {
        uint32_t at = g_array_index(made, uint32_t, i);
        from[i] = instrs_of(repeat, pass)[at].arg;
        into[i] = instrs_of(repeat, to)[at].arg;
    }
    sim_memory_rename(repeat->parts.memory, from, into, made->len);
    forget_made(repeat, pass, made);
}

static void rename_events(SimPassRepeat *repeat, int32_t step, uint32_t pass, uint32_t to) {
    SimRecordings *recordings = repeat->parts.recordings;
    const PlanInstr *instrs = instrs_of(repeat, pass), *others = instrs_of(repeat, to);
    for (uint32_t i = 0; i < length_of(repeat, pass); i++) {
        uint32_t recording;
        if (instrs[i].kind == PLAN_RECORD &&
            sim_recordings_find(recordings, instrs[i].arg, step, &recording)) {
            sim_recordings_note(recordings, others[i].arg, step, recording);
        }
    }
}

/* What has happened since the snapshot happens so many times again. */
static void leap(SimPassRepeat *repeat, int32_t step, const SimSnapshot *since, uint32_t times) {
    const SimParts *parts = &repeat->parts;
    SimHostClock *host = parts->host;
    SimTime later_ns = (host->now_ns - since->now_ns) * times;
    host->book->busy_ns += (host->book->busy_ns - since->host.busy_ns) * times;
    host->book->blocked_ns += (host->book->blocked_ns - since->host.blocked_ns) * times;
    host->now_ns += later_ns;
    sim_engine_shift(host->engine, later_ns);
    SimTime busier_ns = sim_account_again(parts->account, step, &since->account, times, later_ns);
    sim_op_rows_shift(parts->ops, later_ns, busier_ns);
}

/* How many passes, from this one on, are the program of those before, which were so too. */
static uint32_t count_alike(const SimPasses *passes, uint32_t pass, unsigned period) {
    for (unsigned i = 1; i <= period; i++) {
        if (pass < i || !passes->repeats[pass - i]) {
            return 0;
        }
    }
    uint32_t n = 0;
    while (pass + n + 1 < passes->n && passes->repeats[pass + n]) {
        n++;
    }
    return n;
}

/* The oldest snapshot gives its room to the next one. */
static void keep_snapshot(SimPassRepeat *repeat) {
    SimSnapshot oldest = repeat->snapshots[SIM_MOST_PERIOD - 1];
    memmove(repeat->snapshots + 1, repeat->snapshots,
            (SIM_MOST_PERIOD - 1) * sizeof *repeat->snapshots);
    repeat->snapshots[0] = repeat->here;
    repeat->here = oldest;
}

uint32_t sim_pass_repeat_begins(SimPassRepeat *repeat, int32_t step, uint32_t pass) {
    const SimPasses *passes = &repeat->passes;
    if (repeat->tries == MOST_TRIES || count_alike(passes, pass, 0) == 0) {
        return 0;
    }
    repeat->tries++;
    take_snapshot(repeat, step, pass - 1);
    for (unsigned period = 1; period <= SIM_MOST_PERIOD; period++) {
        const SimSnapshot *since = &repeat->snapshots[period - 1];
        uint32_t written = count_alike(passes, pass, period);
        bool up_to_last = pass + written + 1 == passes->n;
        uint32_t all = written + (written > 0 && up_to_last ? repeat->n_folded : 0);
        uint32_t times = all / period, rest = all % period;
        if (written > rest && sim_snapshot_equal(since, &repeat->here)) {
            uint32_t to = pass + written - rest;
            leap(repeat, step, since, times);
            rename_buffers(repeat, pass - 1, to - 1);
            rename_events(repeat, step, pass - 1, to - 1);
            repeat->n_passed_over += times * period;
            repeat->n_folded = up_to_last ? 0 : repeat->n_folded;
            forget(repeat);
            return passes->begins[to] - passes->begins[pass];
        }
    }
    keep_snapshot(repeat);
    return 0;
}
