#include "cli/measured/measured.h"
#include "trace/import/file.h"
#include "trace/import/to-trace.h"

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

/* The columns are named for what is usual. */
static Measured *say_what_ran(Measured *measured, const Trace *trace, const char *name) {
    if (measured != NULL && g_strcmp0(trace_get(trace, "side"), "measured") == 0) {
        measured_note(measured,
                      "%s was not predicted: foreshard ran it, and measured what stands under "
                      "\"predicted\"",
                      name);
    }
    return measured;
}

Measured *measured_compare(const Trace *trace, const MeasuredOptions *options, GError **error) {
    gsize length;
    g_autofree char *bytes = import_read(options->file_name, &length, error);
    if (!bytes) {
        return NULL;
    }
    ImportKind kind = import_kind(bytes, length);
    if (kind == IMPORT_SNAPSHOT) {
        return say_what_ran(compare_snapshot(trace, options, bytes, length, error), trace,
                            options->trace_name);
    }
    if (kind == IMPORT_PROFILE) {
        return say_what_ran(compare_profile(trace, options, bytes, length, error), trace,
                            options->trace_name);
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
