#include <string.h>

#include "models/traced/read.h"
#include "plan/files/ini.h"

bool traced_refuse(const TracedReader *r, const char *format, ...) {
    va_list args;
    va_start(args, format);
    g_autofree char *message = g_strdup_vprintf(format, args);
    va_end(args);
    g_set_error(r->error, PLAN_ERROR, PLAN_ERROR_SYNTAX,
                "%s:%u: %s; trace the network again, and do not edit what was written",
                r->file_name, r->line, message);
    return false;
}

bool traced_index(const TracedReader *r, const char *word, uint64_t end, const char *what,
                  uint32_t *ret_index) {
    uint64_t value;
    *ret_index = 0;
    if (!plan_parse_u64(word, &value) || value >= end) {
        return traced_refuse(r, "'%s' is no %s, of which there are %" G_GUINT64_FORMAT " so far",
                             word, what, end);
    }
    *ret_index = (uint32_t)value;
    return true;
}

bool traced_part(const char *text, gsize length, int64_t *ret_part) {
    g_autofree char *digits = g_strndup(text, length);
    uint64_t value;
    bool is_number =
        length && plan_parse_u64(digits, &value) && value <= (uint64_t)PLAN_TRACED_MOST;
    *ret_part = is_number ? (int64_t)value : 0;
    return is_number;
}

bool traced_count(const TracedReader *r, const char *word, PlanTracedCount *ret_count) {
    *ret_count = (PlanTracedCount){0};
    const char *n = strchr(word, 'n');
    bool is_sound = n ? traced_part(word, (gsize)(n - word), &ret_count->each)
                      : traced_part(word, strlen(word), &ret_count->fixed);
    if (is_sound && n && n[1]) {
        is_sound =
            (n[1] == '+' || n[1] == '-') && traced_part(n + 2, strlen(n + 2), &ret_count->fixed);
        ret_count->fixed *= n[1] == '-' ? -1 : 1;
    }
    int64_t least = 0; /* of as few samples as there may be */
    is_sound =
        is_sound &&
        !__builtin_mul_overflow(ret_count->each, (int64_t)r->program->first_samples, &least) &&
        !__builtin_add_overflow(least, ret_count->fixed, &least);
    return (is_sound && least >= 0) ||
           traced_refuse(r, "'%s' is no count, such as 768, 768n or 768n+12", word);
}

bool traced_dtype(const TracedReader *r, const char *word, uint8_t *ret_dtype) {
    PlanDtype dtype;
    *ret_dtype = PLAN_FP32;
    if (!plan_dtype_parse(word, &dtype)) {
        return traced_refuse(r, "'%s' is no dtype", word);
    }
    *ret_dtype = (uint8_t)dtype;
    return true;
}
