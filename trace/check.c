/* trace/check.c - what every trace fulfils: the writer demands it and the reader guarantees it. */
#include "plan/files/file.h"
#include "plan/refuse.h"
#include "trace/check-private.h"

/* Times and bytes stay this far from the ends of int64, so that differences never overflow. */
#define LIMIT (INT64_C(1) << 61)

#define fault(error, ...) plan_refuse(error, TRACE_ERROR, TRACE_ERROR_VALUE, __VA_ARGS__)

bool trace_check_header(const Trace *trace, GError **error) {
    const char *side = trace_get(trace, "side");
    if (side == NULL || (!g_str_equal(side, "predicted") && !g_str_equal(side, "measured"))) {
        return fault(error, "the header's side is \"%s\"; it is predicted or measured",
                     side != NULL ? side : "");
    }
    if (trace_get(trace, "digest") == NULL) {
        return fault(error, "the header lacks the plan's digest");
    }
    static const char *const answers[] = {"paced", "rehearsed"};
    for (unsigned k = 0; k < G_N_ELEMENTS(answers); k++) {
        const char *answer = trace_get(trace, answers[k]);
        if (answer != NULL && !g_str_equal(answer, "yes") && !g_str_equal(answer, "no")) {
            return fault(error, "the header's %s is \"%s\"; it is yes or no", answers[k], answer);
        }
    }
    static const char *const whole[] = {"world", "steps", "seed", "stages", "stages_each"};
    for (guint i = 0; i < G_N_ELEMENTS(whole); i++) {
        const char *value = trace_get(trace, whole[i]);
        if (value != NULL && !g_ascii_string_to_unsigned(value, 10, 0, G_MAXUINT64, NULL, NULL)) {
            return fault(error, "the header's %s is \"%s\"; it is a whole number", whole[i], value);
        }
    }
    static const char *const shown[] = {"title", "device", "cluster"};
    for (guint i = 0; i < G_N_ELEMENTS(shown); i++) {
        const char *value = trace_get(trace, shown[i]);
        if (value != NULL && plan_has_control(value)) {
            return fault(error, "the header's %s has a control character", shown[i]);
        }
    }
    for (guint i = 0; i < trace->values->len; i++) {
        if (!g_utf8_validate(trace->values->pdata[i], -1, NULL)) {
            return fault(error, "the header's %s is not UTF-8", (char *)trace->keys->pdata[i]);
        }
    }
    return true;
}

bool trace_check_instruction(const Trace *trace, uint32_t role, uint32_t number, GError **error) {
    const TraceInstruction *instruction = trace_instruction(trace, role, number);
    bool is_op = instruction->what == TRACE_OP || instruction->what == TRACE_HOST_OP;
    bool is_memory = instruction->what == TRACE_ALLOC || instruction->what == TRACE_FREE;
    const char *wrong = NULL;
    if (instruction->lane >= trace->lanes->len) {
        wrong = "lane";
    } else if (instruction->phase >= trace->phases->len) {
        wrong = "phase";
    } else if (instruction->unit != TRACE_NONE && instruction->unit >= trace->units->len) {
        wrong = "unit";
    } else if (instruction->module != TRACE_NONE && instruction->module >= trace->modules->len) {
        wrong = "module";
    } else if (is_op ? instruction->kind >= trace->kinds->len : instruction->kind != TRACE_NONE) {
        wrong = "op kind";
    } else if (is_memory ? instruction->category >= trace->categories->len
                         : instruction->category != TRACE_NONE) {
        wrong = "category";
    } else if (is_memory != (instruction->buffer != TRACE_NONE)) {
        wrong = "buffer";
    } else if (instruction->bytes > (uint64_t)LIMIT ||
               (!is_op && !is_memory && instruction->bytes != 0)) {
        wrong = "number of bytes";
    }
    return wrong == NULL || fault(error, "role %u, %s instruction %u (%s) has no possible %s", role,
                                  trace_section_name(instruction->section), instruction->index,
                                  trace_what_name(instruction->what), wrong);
}

bool trace_check_op(const Trace *trace, const TraceOpRow *row, TraceRankState *state,
                    GError **error) {
    GArray *table = trace_instructions(trace, state->role);
    if (row->instruction >= table->len) {
        return fault(error, "an op row of rank %u names instruction %u; there are %u", row->rank,
                     row->instruction, table->len);
    }
    uint8_t what = trace_instruction(trace, state->role, row->instruction)->what;
    if (what != TRACE_OP && what != TRACE_HOST_OP) {
        return fault(error, "an op row of rank %u names instruction %u, which is %s", row->rank,
                     row->instruction, trace_what_name(what));
    }
    if (row->lane >= trace->lanes->len) {
        return fault(error, "an op row of rank %u names lane %u; there are %u", row->rank,
                     row->lane, trace->lanes->len);
    }
    if (row->step < -1 || row->step < state->op_step) {
        return fault(error, "an op row of rank %u, step %d follows one of step %d", row->rank,
                     row->step, state->op_step);
    }
    if (row->host_issue_ns < -LIMIT || row->host_issue_ns > LIMIT || row->start_ns < -LIMIT ||
        row->end_ns > LIMIT || row->end_ns < row->start_ns) {
        return fault(error,
                     "an op row of rank %u, step %d, instruction %u ends at %" G_GINT64_FORMAT
                     " ns, having begun at %" G_GINT64_FORMAT " ns",
                     row->rank, row->step, row->instruction, (gint64)row->end_ns,
                     (gint64)row->start_ns);
    }
    /* Whatever part of them is added up, it is a number of ns. */
    if (__builtin_add_overflow(state->lasted_ns, row->end_ns - row->start_ns, &state->lasted_ns)) {
        return fault(error, "the ops of rank %u last longer in all than 2^63 ns", row->rank);
    }
    state->op_step = row->step;
    return true;
}

bool trace_check_memory(const Trace *trace, const TraceMemoryRow *row, TraceRankState *state,
                        GError **error) {
    GArray *table = trace_instructions(trace, state->role);
    if (row->instruction >= table->len) {
        return fault(error, "a memory row of rank %u names instruction %u; there are %u", row->rank,
                     row->instruction, table->len);
    }
    uint8_t what = trace_instruction(trace, state->role, row->instruction)->what;
    if (what != TRACE_ALLOC && what != TRACE_FREE) {
        return fault(error, "a memory row of rank %u names instruction %u, which is %s", row->rank,
                     row->instruction, trace_what_name(what));
    }
    if (row->category >= trace->categories->len) {
        return fault(error, "a memory row of rank %u names category %u; there are %u", row->rank,
                     row->category, trace->categories->len);
    }
    if (row->step < -1 || row->step < state->memory_step) {
        return fault(error, "a memory row of rank %u, step %d follows one of step %d", row->rank,
                     row->step, state->memory_step);
    }
    if (row->host_ns < -LIMIT || row->host_ns > LIMIT || row->allocated > (uint64_t)LIMIT ||
        row->active > (uint64_t)LIMIT || row->reserved > (uint64_t)LIMIT || row->delta < -LIMIT ||
        row->delta > LIMIT) {
        return fault(error, "a memory row of rank %u, step %d, instruction %u is out of range",
                     row->rank, row->step, row->instruction);
    }
    if (row->active < row->allocated) {
        return fault(error,
                     "a memory row of rank %u, step %d, instruction %u: %" G_GUINT64_FORMAT
                     " bytes active, of which %" G_GUINT64_FORMAT
                     " are allocated; what is allocated is active",
                     row->rank, row->step, row->instruction, (guint64)row->active,
                     (guint64)row->allocated);
    }
    if ((int64_t)state->allocated + row->delta != (int64_t)row->allocated) {
        return fault(error,
                     "a memory row of rank %u, step %d, instruction %u: %" G_GUINT64_FORMAT
                     " bytes allocated, but %" G_GUINT64_FORMAT " and a delta of %" G_GINT64_FORMAT
                     " came before; deltas sum up to allocated",
                     row->rank, row->step, row->instruction, (guint64)row->allocated,
                     (guint64)state->allocated, (gint64)row->delta);
    }
    state->memory_step = row->step;
    state->allocated = row->allocated;
    return true;
}

static bool check_rows(const Trace *trace, GHashTable *ranks, GArray *states, GError **error) {
    for (guint i = 0; i < trace->ops->len; i++) {
        const TraceOpRow *row = trace_op(trace, i);
        gpointer place = g_hash_table_lookup(ranks, GUINT_TO_POINTER(row->rank));
        if (place == NULL) {
            return fault(error, "an op row names rank %u, which has no role", row->rank);
        }
        TraceRankState *state = &g_array_index(states, TraceRankState, GPOINTER_TO_UINT(place) - 1);
        if (!trace_check_op(trace, row, state, error)) {
            return false;
        }
    }
    for (guint i = 0; i < trace->memory->len; i++) {
        const TraceMemoryRow *row = trace_memory(trace, i);
        gpointer place = g_hash_table_lookup(ranks, GUINT_TO_POINTER(row->rank));
        if (place == NULL) {
            return fault(error, "a memory row names rank %u, which has no role", row->rank);
        }
        TraceRankState *state = &g_array_index(states, TraceRankState, GPOINTER_TO_UINT(place) - 1);
        if (!trace_check_memory(trace, row, state, error)) {
            return false;
        }
    }
    return true;
}

bool trace_check(const Trace *trace, GError **error) {
    if (!trace_check_header(trace, error)) {
        return false;
    }
    for (guint i = 0; i < trace->roles->len; i++) {
        for (guint k = 0; k < trace_instructions(trace, i)->len; k++) {
            if (!trace_check_instruction(trace, i, k, error)) {
                return false;
            }
        }
    }
    g_autoptr(GHashTable) ranks = g_hash_table_new(NULL, NULL);
    g_autoptr(GArray) states = g_array_new(FALSE, FALSE, sizeof(TraceRankState));
    for (guint i = 0; i < trace->ranks->len; i++) {
        const TraceRank *entry = &g_array_index(trace->ranks, TraceRank, i);
        if (entry->role >= trace->roles->len) {
            return fault(error, "rank %u plays role %u; there are %u", entry->rank, entry->role,
                         trace->roles->len);
        }
        TraceRankState state = {entry->role, -1, -1, 0, 0};
        g_array_append_val(states, state);
        if (!g_hash_table_insert(ranks, GUINT_TO_POINTER(entry->rank),
                                 GUINT_TO_POINTER(states->len))) {
            return fault(error, "rank %u stands twice in the table of ranks", entry->rank);
        }
    }
    return check_rows(trace, ranks, states, error);
}
