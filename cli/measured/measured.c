#include "cli/measured/measured.h"

#include "trace/import/file.h"
#include "trace/import/to-trace.h"

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
    uint32_t lowest = TRACE_NONE;
    for (guint i = 0; i < trace->ranks->len; i++) {
        uint32_t rank = g_array_index(trace->ranks, TraceRank, i).rank;
        if (options->rank >= 0 && rank == (uint32_t)options->rank) {
            return rank;
        }
        lowest = MIN(lowest, rank);
    }
    if (options->rank >= 0 || lowest == TRACE_NONE) {
        g_set_error(error, TRACE_ERROR, TRACE_ERROR_VALUE,
                    "%s recorded no rank %d; the lowest is %u", options->trace_name,
                    MAX(0, options->rank), lowest == TRACE_NONE ? 0 : lowest);
        return TRACE_NONE;
    }
    return lowest;
}

static Measured *compare_snapshot(const Trace *trace, const MeasuredOptions *options,
                                  const char *bytes, gsize length, GError **error) {
    g_autoptr(Unpickled) unpickled = unpickle(bytes, length, options->file_name, error);
    g_autoptr(Snapshot) snapshot =
        unpickled ? snapshot_new(unpickled, options->device, options->file_name, error) : NULL;
    return snapshot ? measured_memory(trace, snapshot, options, error) : NULL;
}

static Measured *compare_profile(const Trace *trace, const MeasuredOptions *options,
                                 const char *bytes, gsize length, GError **error) {
    g_autoptr(Profile) profile =
        profile_read(bytes, length, options->device, options->file_name, error);
    return profile ? measured_time(trace, profile, options, error) : NULL;
}

static void refuse(const char *file_name, bool is_zip, GError **error) {
    g_set_error(error, TRACE_ERROR, TRACE_ERROR_VALUE,
                "%s: %s; torch.cuda.memory._dump_snapshot(FILE) writes a memory snapshot, and a "
                "profiler's export_chrome_trace(FILE) its JSON",
                file_name,
                is_zip ? "a zip file, as torch.save() writes"
                       : "neither a trace nor a file of PyTorch's");
}

Measured *measured_compare(const Trace *trace, const MeasuredOptions *options, GError **error) {
    gsize length;
    g_autofree char *bytes = import_read(options->file_name, &length, error);
    if (!bytes) {
        return NULL;
    }
    ImportKind kind = import_kind(bytes, length);
    if (kind == IMPORT_SNAPSHOT) {
        return compare_snapshot(trace, options, bytes, length, error);
    }
    if (kind == IMPORT_PROFILE) {
        return compare_profile(trace, options, bytes, length, error);
    }
    refuse(options->file_name, kind == IMPORT_ZIP, error);
    return NULL;
}

Trace *measured_trace(const char *file_name, Trace *beside, GError **error) {
    gsize length;
    g_autofree char *bytes = import_read(file_name, &length, error);
    if (!bytes) {
        return NULL;
    }
    ImportKind kind = import_kind(bytes, length);
    if (kind == IMPORT_PROFILE) {
        g_set_error(error, TRACE_ERROR, TRACE_ERROR_VALUE,
                    "%s: a profile, which says no block's life; foreshard compare holds it against "
                    "a trace, and a memory snapshot can be drawn",
                    file_name);
        return NULL;
    }
    if (kind != IMPORT_SNAPSHOT) {
        refuse(file_name, kind == IMPORT_ZIP, error);
        return NULL;
    }
    g_autoptr(Unpickled) unpickled = unpickle(bytes, length, file_name, error);
    g_autoptr(Snapshot) snapshot = unpickled ? snapshot_new(unpickled, -1, file_name, error) : NULL;
    g_autoptr(Trace) trace = snapshot ? snapshot_to_trace(snapshot, beside) : NULL;
    return trace && trace_check(trace, error) ? g_steal_pointer(&trace) : NULL;
}
