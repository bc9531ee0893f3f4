/* What a pickled snapshot says: events, annotations, and what there is at its end. */
#include "trace/import/snapshot-private.h"
#include "trace/trace.h"

/* No block is larger, so that sums of millions never overflow; nor any address, nor any time. */
#define MOST_BYTES   (INT64_C(1) << 40)
#define MOST_ADDRESS (INT64_C(1) << 62)
#define MOST_US      (INT64_C(1) << 51)

/* ---- events and annotations ------------------------------------------------------------------ */

static bool read_up_to(const UnpickledValue *dict, const char *name, int64_t most,
                       uint64_t *ret_value) {
    int64_t value;
    if (!unpickled_get_int(dict, name, &value) || value < 0 || value > most) {
        return false;
    }
    *ret_value = (uint64_t)value;
    return true;
}

static bool read_size(const UnpickledValue *dict, const char *name, uint64_t *ret_value) {
    return read_up_to(dict, name, MOST_BYTES, ret_value);
}

static bool read_address(const UnpickledValue *dict, const char *name, uint64_t *ret_value) {
    return read_up_to(dict, name, MOST_ADDRESS, ret_value);
}

static bool read_action(const UnpickledValue *name, SnapshotEvent *event) {
    static const struct {
        const char *name;
        SnapshotAction action;
        bool of_pages;
    } actions[] = {{"alloc", SNAPSHOT_ALLOC, false},
                   {"free_requested", SNAPSHOT_FREE, false},
                   {"free_completed", SNAPSHOT_COMPLETED, false},
                   {"segment_alloc", SNAPSHOT_RESERVED, false},
                   {"segment_map", SNAPSHOT_RESERVED, true},
                   {"segment_free", SNAPSHOT_RETURNED, false},
                   {"segment_unmap", SNAPSHOT_RETURNED, true},
                   {"oom", SNAPSHOT_OOM, false}};
    for (guint i = 0; i < G_N_ELEMENTS(actions); i++) {
        if (unpickled_is_text(name, actions[i].name)) {
            event->action = actions[i].action;
            event->of_pages = actions[i].of_pages;
            return true;
        }
    }
    return false; /* of a newer PyTorch, or one that moves nothing ("snapshot") */
}

bool snapshot_read_events(Snapshot *snapshot, const UnpickledValue *list, const char *file_name,
                          GError **error) {
    for (guint i = 0; i < unpickled_n_items(list); i++) {
        const UnpickledValue *entry = unpickled_item(list, i);
        SnapshotEvent event = {.partner = SNAPSHOT_NO_EVENT};
        if (!read_action(unpickled_get(entry, "action"), &event)) {
            continue;
        }
        if (event.action == SNAPSHOT_OOM) { /* of any size, for it moves nothing */
            read_up_to(entry, "size", G_MAXINT64, &event.requested_bytes);
        } else if (!read_address(entry, "addr", &event.address) ||
                   !read_size(entry, "size", &event.requested_bytes)) {
            g_set_error(error, TRACE_ERROR, TRACE_ERROR_VALUE,
                        "%s: event %u of device %u has no possible address or size", file_name, i,
                        snapshot->device);
            return false;
        }
        unpickled_get_int(entry, "time_us", &event.time_us); /* 0 before PyTorch 2.2 */
        event.time_us = CLAMP(event.time_us, 0, MOST_US);
        event.frames = unpickled_get_list(entry, "frames");
        event.category = unpickled_get_text(entry, "category");
        g_array_append_val(snapshot->events, event);
    }
    return true;
}

static int compare_annotations(gconstpointer a, gconstpointer b) {
    const SnapshotAnnotation *x = a, *y = b;
    return (x->time_us > y->time_us) - (x->time_us < y->time_us);
}

void snapshot_read_annotations(Snapshot *snapshot, const UnpickledValue *list) {
    for (guint i = 0; i < unpickled_n_items(list); i++) {
        const UnpickledValue *entry = unpickled_item(list, i);
        const UnpickledValue *name = unpickled_get_text(entry, "name");
        SnapshotAnnotation annotation = {
            .ends = unpickled_is_text(unpickled_get(entry, "stage"), "END")};
        if (name && unpickled_get_int(entry, "time_us", &annotation.time_us)) {
            annotation.name = name->text;
            annotation.name_length = name->length;
            g_array_append_val(snapshot->annotations, annotation);
        }
    }
    g_array_sort(snapshot->annotations,
                 compare_annotations); /* stable for what is sorted, as it comes */
}

/* ---- what lies where at the end ------------------------------------------------------------- */

static gint compare_addresses(gconstpointer a, gconstpointer b, gpointer none) {
    return (GPOINTER_TO_SIZE(a) > GPOINTER_TO_SIZE(b)) -
           (GPOINTER_TO_SIZE(a) < GPOINTER_TO_SIZE(b));
}

GTree *snapshot_places_new(void) {
    return g_tree_new_full(compare_addresses, NULL, NULL, g_free);
}

void snapshot_put_segment(GTree *segments, uint64_t address, uint64_t bytes, bool is_small,
                          bool is_expandable) {
    SnapshotSegment *segment = g_new(SnapshotSegment, 1);
    *segment = (SnapshotSegment){bytes, is_small, is_expandable};
    g_tree_replace(segments, GSIZE_TO_POINTER(address), segment);
}

/* Of a segment at that address. */
static void read_blocks(const UnpickledValue *list, uint64_t at, GTree *blocks) {
    for (guint i = 0; i < unpickled_n_items(list); i++) {
        const UnpickledValue *entry = unpickled_item(list, i);
        const UnpickledValue *state = unpickled_get(entry, "state");
        uint64_t size = 0;
        SnapshotKnown known = {.frames = unpickled_get_list(entry, "frames")};
        read_size(entry, "size", &size);
        read_address(entry, "address", &at); /* else behind the block before: PyTorch 2.0 */
        known.bytes = known.requested_bytes = size;
        read_size(entry, "requested_size", &known.requested_bytes);
        known.is_freed = !unpickled_is_text(state, "active_allocated");
        if (size > 0 && state && !unpickled_is_text(state, "inactive")) {
            g_tree_replace(blocks, GSIZE_TO_POINTER(at), g_memdup2(&known, sizeof known));
        }
        at += size;
    }
}

/* The blocks and segments that there are at the end. */
void snapshot_read_end(const Snapshot *snapshot, const UnpickledValue *list, SnapshotEnd *end) {
    for (guint i = 0; i < unpickled_n_items(list); i++) {
        const UnpickledValue *segment = unpickled_item(list, i);
        int64_t device = 0;
        uint64_t at, bytes;
        unpickled_get_int(segment, "device", &device);
        if (device != (int64_t)snapshot->device || !read_address(segment, "address", &at) ||
            !read_size(segment, "total_size", &bytes)) {
            continue;
        }
        const UnpickledValue *expandable = unpickled_get(segment, "is_expandable");
        snapshot_put_segment(end->segments, at, bytes,
                             unpickled_is_text(unpickled_get(segment, "segment_type"), "small"),
                             expandable && expandable->kind == UNPICKLED_BOOL &&
                                 expandable->integer);
        read_blocks(unpickled_get_list(segment, "blocks"), at, end->blocks);
    }
}
