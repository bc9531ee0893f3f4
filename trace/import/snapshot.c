#include "trace/import/snapshot.h"

#include <string.h>

#include "trace/import/snapshot-private.h"
#include "trace/trace.h"

static int busiest(const UnpickledValue *traces) {
    guint most = 0;
    int found = 0;
    for (guint i = 0; i < unpickled_n_items(traces); i++) {
        guint n = unpickled_n_items(unpickled_item(traces, i));
        if (n > most) {
            most = n;
            found = (int)i;
        }
    }
    return found;
}

static const UnpickledValue *traces_of(const UnpickledValue *root, int device,
                                       const char *file_name, GError **error) {
    const UnpickledValue *traces = unpickled_get_list(root, "device_traces");
    if (!traces || !unpickled_get_list(root, "segments")) {
        g_set_error(error, TRACE_ERROR, TRACE_ERROR_VALUE,
                    "%s: a pickle, but no memory snapshot: it lacks the lists device_traces and "
                    "segments, which torch.cuda.memory._dump_snapshot() writes",
                    file_name);
        return NULL;
    }
    guint n = unpickled_n_items(traces);
    if (device >= (int)n) {
        g_set_error(error, TRACE_ERROR, TRACE_ERROR_VALUE,
                    "%s: there is no device %d; the snapshot has %u", file_name, device, n);
        return NULL;
    }
    return traces;
}

static Snapshot *snapshot_alloc(uint32_t device) {
    Snapshot *snapshot = g_new0(Snapshot, 1);
    snapshot->device = device;
    snapshot->events = g_array_new(FALSE, FALSE, sizeof(SnapshotEvent));
    snapshot->annotations = g_array_new(FALSE, FALSE, sizeof(SnapshotAnnotation));
    snapshot->blocks = g_array_new(FALSE, FALSE, sizeof(SnapshotBlock));
    return snapshot;
}

Snapshot *snapshot_new(const Unpickled *unpickled, int device, const char *file_name,
                       GError **error) {
    const UnpickledValue *root = unpickled_root(unpickled);
    const UnpickledValue *traces = traces_of(root, device, file_name, error);
    if (!traces) {
        return NULL;
    }
    guint chosen = (guint)(device >= 0 ? device : busiest(traces));
    g_autoptr(Snapshot) snapshot = snapshot_alloc(chosen);
    const UnpickledValue *list =
        unpickled_n_items(traces) > 0 ? unpickled_item(traces, chosen) : NULL;
    if (!snapshot_read_events(snapshot, list, file_name, error)) {
        return NULL;
    }
    if (snapshot->events->len == 0) {
        g_set_error(error, TRACE_ERROR, TRACE_ERROR_VALUE,
                    "%s: no event of device %u was recorded; call "
                    "torch.cuda.memory._record_memory_history() before the steps, and "
                    "_dump_snapshot() after some",
                    file_name, chosen);
        return NULL;
    }
    snapshot_read_annotations(snapshot, unpickled_get_list(root, "external_annotations"));
    g_autoptr(GTree) blocks = snapshot_places_new();
    g_autoptr(GTree) segments = snapshot_places_new();
    SnapshotEnd end = {blocks, segments};
    int64_t split_below = -1;
    unpickled_get_int(unpickled_get(root, "allocator_settings"), "max_split_size", &split_below);
    snapshot_read_end(snapshot, unpickled_get_list(root, "segments"), &end);
    if (!snapshot_play(snapshot, &end, split_below, file_name, error)) {
        return NULL;
    }
    return g_steal_pointer(&snapshot);
}

void snapshot_free(Snapshot *snapshot) {
    if (snapshot != NULL) {
        g_array_unref(snapshot->events);
        g_array_unref(snapshot->annotations);
        g_array_unref(snapshot->blocks);
        g_free(snapshot);
    }
}

/* ---- frames ---------------------------------------------------------------------------------- */

static char *text_of(const UnpickledValue *dict, const char *name) {
    const UnpickledValue *value = unpickled_get_text(dict, name);
    return value ? g_utf8_make_valid(value->text, value->length) : g_strdup("");
}

static char *frame_text(const UnpickledValue *frame) {
    g_autofree char *file = text_of(frame, "filename");
    g_autofree char *name = text_of(frame, "name");
    int64_t line = 0;
    unpickled_get_int(frame, "line", &line);
    g_auto(GStrv) parts = g_strsplit(file, "/", -1);
    guint n = g_strv_length(parts);
    return g_strdup_printf("%s:%" G_GINT64_FORMAT " %s", n > 0 ? parts[n - 1] : "", (gint64)line,
                           name);
}

/* A frame of PyTorch's own Python lies in a folder torch of some site-packages. */
static bool is_own(const char *file) {
    return strstr(file, "/site-packages/torch/") == NULL &&
           strstr(file, "/dist-packages/torch/") == NULL && file[0] != '<';
}

char *snapshot_place(const UnpickledValue *frames) {
    const UnpickledValue *python = NULL;
    guint n = unpickled_n_items(frames);
    for (guint i = 0; i < n; i++) {
        const UnpickledValue *frame = unpickled_item(frames, i);
        g_autofree char *file = text_of(frame, "filename");
        if (g_str_has_suffix(file, ".py")) {
            if (is_own(file)) {
                return frame_text(frame);
            }
            python = python ? python : frame;
        }
    }
    return n == 0 ? g_strdup("(no frames)")
                  : frame_text(python ? python : unpickled_item(frames, 0));
}
