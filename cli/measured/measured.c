#include "cli/measured/measured.h"

static void clear_surplus(gpointer surplus) {
    g_free(((MeasuredSurplus *)surplus)->place);
}

Measured *measured_new(const char *what) {
    Measured *measured = g_new0(Measured, 1);
    measured->what = what;
    measured->rows = g_array_new(FALSE, FALSE, sizeof(MeasuredRow));
    measured->surpluses = g_array_new(FALSE, FALSE, sizeof(MeasuredSurplus));
    g_array_set_clear_func(measured->surpluses, clear_surplus);
    measured->notes = g_ptr_array_new_with_free_func(g_free);
    return measured;
}

void measured_free(Measured *measured) {
    if (measured != NULL) {
        g_free(measured->sources[0]);
        g_free(measured->sources[1]);
        g_array_unref(measured->rows);
        g_array_unref(measured->surpluses);
        g_ptr_array_unref(measured->notes);
        g_free(measured);
    }
}

void measured_add(Measured *measured, const char *name, MeasuredUnit unit, double predicted,
                  double measured_value) {
    MeasuredRow row = {name, unit, {predicted, measured_value}};
    g_array_append_val(measured->rows, row);
}

void measured_note(Measured *measured, const char *format, ...) {
    va_list args;
    va_start(args, format);
    g_ptr_array_add(measured->notes, g_strdup_vprintf(format, args));
    va_end(args);
}

uint32_t measured_rank(const Trace *trace, const MeasuredOptions *options, GError **error) {
    uint32_t lowest = trace_lowest_rank(trace);
    uint32_t rank = options->rank >= 0 ? (uint32_t)options->rank : lowest;
    if (rank != TRACE_NONE && trace_role_of_rank(trace, rank) != TRACE_NONE) {
        return rank;
    }
    g_set_error(error, TRACE_ERROR, TRACE_ERROR_VALUE, "%s recorded no rank %d; the lowest is %u",
                options->trace_name, MAX(0, options->rank), lowest == TRACE_NONE ? 0 : lowest);
    return TRACE_NONE;
}
