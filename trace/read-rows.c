/* trace/read-rows.c - the rows of a trace's text, in groups of one rank and one step. */
#include "trace/check-private.h"
#include "trace/read-private.h"

/* A group of rows: those of one rank and one step. */
typedef struct {
    bool is_memory;
    uint32_t rank, count;
    int32_t step;
} Group;

static bool read_ops(TraceReader *reader, const Group *group, TraceRankState *state) {
    TraceWords *words = &reader->words;
    int64_t host_ns = 0;
    for (uint32_t i = 0; i < group->count; i++) {
        TraceOpRow row = {.rank = group->rank, .step = group->step};
        int64_t after_host_ns, after_issue_ns, lasted_ns;
        if (!trace_words_next_line(words) || !trace_words_take_uint32(words, &row.instruction) ||
            !trace_words_take_uint32(words, &row.lane) ||
            !trace_words_take_int(words, -INT64_MAX, INT64_MAX, &after_host_ns) ||
            !trace_words_take_int(words, -INT64_MAX, INT64_MAX, &after_issue_ns) ||
            !trace_words_take_int(words, 0, INT64_MAX, &lasted_ns) ||
            !trace_words_expect_end(words)) {
            return false;
        }
        if (__builtin_add_overflow(host_ns, after_host_ns, &row.host_issue_ns) ||
            __builtin_add_overflow(row.host_issue_ns, after_issue_ns, &row.start_ns) ||
            __builtin_add_overflow(row.start_ns, lasted_ns, &row.end_ns)) {
            return trace_words_complain(words, TRACE_ERROR_SYNTAX, "a time is out of range");
        }
        host_ns = row.host_issue_ns;
        GError *fault = NULL;
        if (!trace_check_op(reader->trace, &row, state, &fault)) {
            return trace_reader_place(reader, fault);
        }
        trace_add_op(reader->trace, &row);
    }
    return true;
}

static bool read_memory(TraceReader *reader, const Group *group, TraceRankState *state) {
    TraceWords *words = &reader->words;
    int64_t host_ns = 0, reserved = 0;
    for (uint32_t i = 0; i < group->count; i++) {
        TraceMemoryRow row = {.rank = group->rank, .step = group->step};
        int64_t after_host_ns, allocated, active_more, active, reserved_more;
        if (!trace_words_next_line(words) || !trace_words_take_uint32(words, &row.instruction) ||
            !trace_words_take_int(words, -INT64_MAX, INT64_MAX, &after_host_ns) ||
            !trace_words_take_uint32(words, &row.category) ||
            !trace_words_take_int(words, -INT64_MAX, INT64_MAX, &row.delta) ||
            !trace_words_take_int(words, 0, INT64_MAX, &allocated) ||
            !trace_words_take_int(words, -INT64_MAX, INT64_MAX, &active_more) ||
            !trace_words_take_int(words, -INT64_MAX, INT64_MAX, &reserved_more) ||
            !trace_words_expect_end(words)) {
            return false;
        }
        if (__builtin_add_overflow(host_ns, after_host_ns, &row.host_ns) ||
            __builtin_add_overflow(allocated, active_more, &active) ||
            __builtin_add_overflow(reserved, reserved_more, &reserved) || active < 0 ||
            reserved < 0) {
            return trace_words_complain(words, TRACE_ERROR_SYNTAX,
                                        "a time or a size is out of range");
        }
        row.allocated = (uint64_t)allocated;
        row.active = (uint64_t)active;
        row.reserved = (uint64_t)reserved;
        host_ns = row.host_ns;
        GError *fault = NULL;
        if (!trace_check_memory(reader->trace, &row, state, &fault)) {
            return trace_reader_place(reader, fault);
        }
        trace_add_memory(reader->trace, &row);
    }
    return true;
}

static bool group_follows(const Group *last, const Group *group) {
    if (last->rank != group->rank) {
        return last->rank < group->rank;
    }
    return last->step != group->step ? last->step < group->step
                                     : !last->is_memory && group->is_memory;
}

/* The line that begins a group, of which no word is taken yet. */
static bool read_group(TraceReader *reader, Group *ret_group) {
    TraceWords *words = &reader->words;
    int64_t step;
    ret_group->is_memory = trace_words_take(words, "memory");
    if (!ret_group->is_memory && !trace_words_take(words, "ops")) {
        return trace_words_complain(words, TRACE_ERROR_SYNTAX,
                                    "\"ops\", \"memory\" or \"end\" should stand here");
    }
    if (!trace_words_take_uint32(words, &ret_group->rank) ||
        !trace_words_take_int(words, -1, INT32_MAX, &step) ||
        !trace_words_take_uint32(words, &ret_group->count) || !trace_words_expect_end(words)) {
        return false;
    }
    ret_group->step = (int32_t)step;
    return true;
}

/* The end line, of which "end" is taken, and nothing behind it. */
static bool read_end(TraceReader *reader) {
    TraceWords *words = &reader->words;
    uint32_t n_ops, n_memory;
    if (!trace_words_expect(words, "ops") || !trace_words_take_uint32(words, &n_ops) ||
        !trace_words_expect(words, "memory") || !trace_words_take_uint32(words, &n_memory) ||
        !trace_words_expect_end(words)) {
        return false;
    }
    if (n_ops != reader->trace->ops->len || n_memory != reader->trace->memory->len) {
        return trace_words_complain(
            words, TRACE_ERROR_SYNTAX,
            "the end line counts %u op rows and %u memory rows; there are %u and %u", n_ops,
            n_memory, reader->trace->ops->len, reader->trace->memory->len);
    }
    if (words->next != words->end) {
        words->line_number++;
        return trace_words_complain(words, TRACE_ERROR_SYNTAX, "text follows the end line");
    }
    return true;
}

bool trace_reader_take_rows(TraceReader *reader) {
    TraceWords *words = &reader->words;
    Group last = {0};
    TraceRankState state = {0};
    for (bool any = false;; any = true) {
        Group group;
        if (!trace_words_next_line(words)) {
            return false;
        }
        if (trace_words_take(words, "end")) {
            return read_end(reader);
        }
        if (!read_group(reader, &group)) {
            return false;
        }
        if (group.count == 0 || (any && !group_follows(&last, &group))) {
            return trace_words_complain(
                words, TRACE_ERROR_SYNTAX,
                "groups of rows come in order of rank and step, none empty");
        }
        if (!any || last.rank != group.rank) {
            state = (TraceRankState){trace_role_of_rank(reader->trace, group.rank), -1, -1, 0, 0};
            if (state.role == TRACE_NONE) {
                return trace_words_complain(words, TRACE_ERROR_SYNTAX, "rank %u has no role",
                                            group.rank);
            }
        }
        if (group.is_memory ? !read_memory(reader, &group, &state)
                            : !read_ops(reader, &group, &state)) {
            return false;
        }
        last = group;
    }
}
