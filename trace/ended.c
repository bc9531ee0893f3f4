#include "trace/ended.h"

#include "trace/scale.h"

static const char OUT_OF_MEMORY[] = "out_of_memory";

char *trace_oom_path(const char *path, uint32_t rank) {
    return g_strdup_printf("%s.oom.%u", path, rank);
}

void trace_set_oom(Trace *trace, const TraceOom *oom) {
    char step[16];
    g_snprintf(step, sizeof step, "%d", oom->step);
    trace_set(trace, "ended", OUT_OF_MEMORY);
    trace_set_uint(trace, "oom_rank", oom->rank);
    trace_set(trace, "oom_step", step);
    trace_set_uint(trace, "oom_instruction", oom->instruction);
    trace_set(trace, "oom_buffer", oom->buffer);
}

static bool read_uint(const Trace *trace, const char *key, guint64 most, guint64 *ret_value) {
    const char *text = trace_get(trace, key);
    return text != NULL && g_ascii_string_to_unsigned(text, 10, 0, most, ret_value, NULL);
}

bool trace_get_oom(const Trace *trace, TraceOom *ret_oom) {
    const char *step_text = trace_get(trace, "oom_step");
    const char *buffer = trace_get(trace, "oom_buffer");
    guint64 rank, instruction;
    gint64 step;
    if (g_strcmp0(trace_get(trace, "ended"), OUT_OF_MEMORY) != 0 || step_text == NULL ||
        buffer == NULL || !read_uint(trace, "oom_rank", UINT32_MAX, &rank) ||
        !read_uint(trace, "oom_instruction", UINT32_MAX, &instruction) ||
        !g_ascii_string_to_signed(step_text, 10, -1, G_MAXINT32, &step, NULL)) {
        return false;
    }
    uint32_t role = trace_role_of_rank(trace, (uint32_t)rank);
    if (role == TRACE_NONE || instruction >= trace_instructions(trace, role)->len ||
        trace_instruction(trace, role, (uint32_t)instruction)->what != TRACE_ALLOC) {
        return false;
    }
    *ret_oom = (TraceOom){(uint32_t)rank, (int32_t)step, (uint32_t)instruction, buffer};
    return true;
}

char *trace_oom_text(const Trace *trace) {
    TraceOom oom;
    if (!trace_get_oom(trace, &oom)) {
        bool ended = g_strcmp0(trace_get(trace, "ended"), OUT_OF_MEMORY) == 0;
        return ended ? g_strdup("out of memory") : NULL;
    }
    const TraceInstruction *wanted =
        trace_instruction(trace, trace_role_of_rank(trace, oom.rank), oom.instruction);
    g_autofree char *place = trace_place_name(trace, wanted->phase, wanted->unit);
    g_autofree char *step = trace_step_name(oom.step);
    g_autofree char *bytes = trace_bytes_text((double)wanted->bytes);
    return g_strdup_printf("out of memory in %s%s%s: no room for %s of %s (%s)", step,
                           oom.step < 0 ? "" : ", ", oom.step < 0 ? "" : place, bytes, oom.buffer,
                           trace_name(trace->categories, wanted->category, "no category"));
}

uint64_t trace_limit_bytes(const Trace *trace) {
    static const char *const keys[] = {"allocator_bytes", "memory_limit_bytes"};
    for (guint i = 0; i < G_N_ELEMENTS(keys); i++) {
        guint64 limit;
        if (read_uint(trace, keys[i], G_MAXUINT64, &limit)) {
            return limit;
        }
    }
    return 0;
}
