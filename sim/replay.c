#include "sim/replay.h"

#include "memory/answers.h"
#include "plan/player.h"
#include "plan/strategy/strategy.h"
#include "sim/device/memory.h"
#include "sim/error.h"
#include "trace/ended.h"
#include "trace/from-plan.h"

typedef struct {
    const Trace *trace;
    uint32_t rank;
    SimMemory *memory;
    MemoryAnswers *answers;
    guint next; /* row of the trace */
    bool asked_more;
    SimReplay result;
} Replay;

/* ---- what the allocator asks ---------------------------------------------------------------- */

static MemoryEvent event_record(gpointer self, uint32_t stream) {
    return 0;
}

static bool event_query(gpointer self, MemoryEvent event) {
    Replay *replay = self;
    bool passed = false;
    replay->asked_more |= !memory_answers_next(replay->answers, &passed);
    replay->result.n_answers++;
    return passed;
}

static void event_sync(gpointer self, MemoryEvent event) {
}

static void stream_sync(gpointer self, uint32_t stream) {
}

static const MemoryVirtualHooks hooks = {event_record, event_query, event_sync, stream_sync, NULL};
static const SimTime no_time = 0;

/* ---- instructions --------------------------------------------------------------------------- */

static bool same_row(const TraceMemoryRow *a, const TraceMemoryRow *b) {
    return a->step == b->step && a->instruction == b->instruction && a->allocated == b->allocated &&
           a->active == b->active && a->reserved == b->reserved;
}

/* The next row of the rank; NULL when there is no more. */
static const TraceMemoryRow *next_measured(Replay *replay) {
    const GArray *rows = replay->trace->memory;
    while (replay->next < rows->len) {
        const TraceMemoryRow *row = trace_memory(replay->trace, replay->next++);
        if (row->rank == replay->rank) {
            return row;
        }
    }
    return NULL;
}

/* The two rows that come next, either of them NULL where that side has no more. */
static void compare(Replay *replay, const TraceMemoryRow *measured, const TraceMemoryRow *here) {
    SimReplay *result = &replay->result;
    result->n_rows++;
    result->equal = measured && here && same_row(measured, here);
    result->has_measured = measured != NULL;
    result->has_replayed = here != NULL;
    result->measured = measured ? *measured : (TraceMemoryRow){0};
    result->replayed = here ? *here : (TraceMemoryRow){0};
}

/* The next row of the rank, against what holds here after the same instruction. */
static void hold_against(Replay *replay, const PlanPosition *at) {
    if (!replay->result.equal) {
        return;
    }
    const MemoryTotals *now = sim_memory_now(replay->memory);
    const TraceMemoryRow here = {
        .step = at->step,
        .instruction = trace_instruction_number(at->role, at->section, at->index),
        .allocated = now->allocated_bytes,
        .active = now->active_bytes,
        .reserved = now->reserved_bytes,
    };
    compare(replay, next_measured(replay), &here);
}

/* After the last instruction. */
static void hold_against_nothing(Replay *replay) {
    const TraceMemoryRow *more = replay->result.equal ? next_measured(replay) : NULL;
    if (more) {
        compare(replay, more, NULL);
    }
}

static PlanAnswer alloc(gpointer self, const PlanPosition *at, uint32_t buffer, GError **error) {
    Replay *replay = self;
    if (!sim_memory_alloc(replay->memory, buffer, at->role->buffers[buffer].lane, at)) {
        return PLAN_STOPPED;
    }
    hold_against(replay, at);
    return PLAN_DONE;
}

static PlanAnswer release(gpointer self, const PlanPosition *at, uint32_t buffer, GError **error) {
    Replay *replay = self;
    sim_memory_release(replay->memory, buffer, at);
    hold_against(replay, at);
    return PLAN_DONE;
}

static PlanAnswer mark(gpointer self, const PlanPosition *at, uint32_t buffer, uint32_t lane,
                       GError **error) {
    sim_memory_mark(((Replay *)self)->memory, buffer, lane);
    return PLAN_DONE;
}

static const PlanDevice instructions = {
    .name = "replay",
    .alloc = alloc,
    .free = release,
    .mark = mark,
};

/* ---- the play ------------------------------------------------------------------------------- */

static MemoryAnswers *answers_of(const Trace *trace, uint32_t rank) {
    g_autofree char *key = g_strdup_printf("answers.%u", rank);
    const char *text = trace_get(trace, key);
    return text ? memory_answers_parse(text) : memory_answers_new();
}

static uint64_t fact(const Trace *trace, const char *key, uint64_t otherwise) {
    const char *value = trace_get(trace, key);
    guint64 number;
    return value && g_ascii_string_to_unsigned(value, 10, 0, G_MAXUINT64, &number, NULL)
               ? number
               : otherwise;
}

static bool make_memory(Replay *replay, const Plan *plan, uint32_t role, GError **error) {
    MemoryOptions options;
    const char *conf;
    if (!plan_allocator_conf(plan->strategy, &conf, error)) {
        return false;
    }
    if (!conf) {
        g_set_error_literal(error, SIM_ERROR, SIM_ERROR_PLAN,
                            "allocator=arena is a what-if of the predictor, which nothing measured "
                            "can have played; replay the plan that was run");
        return false;
    }
    if (!memory_options_parse(conf, &options, error)) {
        return false;
    }
    uint64_t limit = fact(replay->trace, "memory_limit_bytes", SIM_NO_LIMIT);
    const SimMemorySetup asked = {.plan = plan,
                                  .role = &plan->roles[role],
                                  .total_bytes = limit,
                                  .capacity_bytes = limit,
                                  .options = &options,
                                  .hooks = &hooks,
                                  .self = replay,
                                  .now_ns = &no_time};
    replay->memory = sim_memory_new(&asked, error);
    return replay->memory != NULL;
}

/* Rows that are all equal end at the same instruction: so where the measured play ran out of memory
 * this one has to, too. */
static bool play(Replay *replay, const Plan *plan, uint32_t role, uint32_t steps, GError **error) {
    g_autoptr(PlanPlayer) player = plan_player_new(plan, role, steps, &instructions, replay);
    PlanAnswer answer = plan_player_run(player, error);
    if (answer == PLAN_FAILED) {
        return false;
    }
    hold_against_nothing(replay);
    bool whole = (answer == PLAN_STOPPED) == replay->result.ran_out && !replay->asked_more &&
                 replay->result.n_answers == memory_answers_count(replay->answers);
    if (replay->result.equal && !whole) {
        g_set_error(error, SIM_ERROR, SIM_ERROR_PLAN,
                    "rank %u: the trace has %" G_GUINT64_FORMAT " answers to the allocator, and "
                    "its play asked %" G_GUINT64_FORMAT " times; record it with this version",
                    replay->rank, memory_answers_count(replay->answers), replay->result.n_answers);
    }
    return !replay->result.equal || whole;
}

/* Steps to play; one that was begun counts. 0: the trace does not say. */
static uint64_t steps_of(const Trace *trace, uint32_t rank, bool *ret_ran_out) {
    TraceOom oom;
    *ret_ran_out = trace_get_oom(trace, &oom) && oom.rank == rank;
    return *ret_ran_out ? (uint64_t)MAX(oom.step, 0) + 1 : fact(trace, "steps", 0);
}

bool sim_replay(const Plan *plan, const Trace *trace, uint32_t rank, SimReplay *ret_replay,
                GError **error) {
    uint32_t role = trace_role_of_rank(trace, rank);
    bool ran_out;
    uint64_t steps = steps_of(trace, rank, &ran_out);
    g_autoptr(MemoryAnswers) answers = answers_of(trace, rank);
    if (!g_str_equal(plan_digest(plan), trace_get(trace, "digest")) || role == TRACE_NONE ||
        role >= plan->n_roles || !answers || steps < 1 || steps > 1000000) {
        g_set_error(
            error, SIM_ERROR, SIM_ERROR_PLAN,
            "the trace holds no measured play of rank %u of this plan; give one that foreshard "
            "run of the same plan wrote, and a rank that it recorded",
            rank);
        return false;
    }
    Replay replay = {.trace = trace,
                     .rank = rank,
                     .answers = answers,
                     .result = {.equal = true, .ran_out = ran_out}};
    bool ok = make_memory(&replay, plan, role, error) &&
              play(&replay, plan, role, (uint32_t)steps, error);
    sim_memory_free(replay.memory);
    *ret_replay = replay.result;
    return ok;
}
