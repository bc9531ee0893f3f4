#include "trace/import/snapshot.h"

#include <string.h>

#include "trace/trace.h"

/* c10/core/AllocatorConfig.h and c10/cuda/CUDACachingAllocator.cpp of PyTorch 2.13. */
#define ROUNDING         UINT64_C(512)       /* bytes; kMinBlockSize */
#define SMALL_SEGMENT    (UINT64_C(2) << 20) /* bytes; kSmallBuffer, of which no large segment is */
#define LEAST_LARGE_REST (UINT64_C(1) << 20) /* bytes; kSmallSize: a larger rest is split off */

/* No block is larger, so that sums of millions never overflow; nor any address, nor any time. */
#define MOST_BYTES   (INT64_C(1) << 40)
#define MOST_ADDRESS (INT64_C(1) << 62)
#define MOST_US      (INT64_C(1) << 51)

typedef struct {
    uint64_t bytes;
    bool is_small, is_expandable;
} Segment;

/* What is in use and reserved while the events go by. */
typedef struct {
    Snapshot *snapshot;
    GTree *used;         /* address: uint64_t *bytes */
    GTree *segments;     /* address: Segment * */
    int64_t split_below; /* max_split_size; bytes */
} Play;

/* A block from before the window, or one that lives to its end. */
typedef struct {
    uint64_t requested_bytes, bytes;
    bool is_freed; /* waits for a stream alone */
    const UnpickledValue *frames;
} Known;

/* ---- reading --------------------------------------------------------------------------------- */

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

static bool read_events(Snapshot *snapshot, const UnpickledValue *list, const char *file_name,
                        GError **error) {
    for (guint i = 0; i < unpickled_n_items(list); i++) {
        const UnpickledValue *entry = unpickled_item(list, i);
        SnapshotEvent event = {.partner = SNAPSHOT_NO_EVENT};
        if (!read_action(unpickled_get(entry, "action"), &event)) {
            continue;
        }
        bool placed = event.action == SNAPSHOT_OOM || read_address(entry, "addr", &event.address);
        if (!placed || !read_size(entry, "size", &event.requested_bytes)) {
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

static int compare_marks(gconstpointer a, gconstpointer b) {
    const SnapshotMark *x = a, *y = b;
    return (x->time_us > y->time_us) - (x->time_us < y->time_us);
}

static void read_marks(Snapshot *snapshot, const UnpickledValue *list) {
    for (guint i = 0; i < unpickled_n_items(list); i++) {
        const UnpickledValue *entry = unpickled_item(list, i);
        const UnpickledValue *name = unpickled_get_text(entry, "name");
        SnapshotMark mark = {.ends = unpickled_is_text(unpickled_get(entry, "stage"), "END")};
        if (name && unpickled_get_int(entry, "time_us", &mark.time_us)) {
            mark.name = name->text;
            mark.name_length = name->length;
            g_array_append_val(snapshot->marks, mark);
        }
    }
    g_array_sort(snapshot->marks, compare_marks); /* stable for what is sorted, as it comes */
}

/* ---- what lies where ------------------------------------------------------------------------- */

static gint compare_addresses(gconstpointer a, gconstpointer b, gpointer none) {
    return (GPOINTER_TO_SIZE(a) > GPOINTER_TO_SIZE(b)) -
           (GPOINTER_TO_SIZE(a) < GPOINTER_TO_SIZE(b));
}

static GTree *places_new(void) {
    return g_tree_new_full(compare_addresses, NULL, NULL, g_free);
}

static uint64_t rounded(uint64_t bytes) {
    return MAX(ROUNDING, (bytes + ROUNDING - 1) / ROUNDING * ROUNDING);
}

static void put_segment(GTree *segments, uint64_t address, uint64_t bytes, bool is_small,
                        bool is_expandable) {
    Segment *segment = g_new(Segment, 1);
    *segment = (Segment){bytes, is_small, is_expandable};
    g_tree_replace(segments, GSIZE_TO_POINTER(address), segment);
}

/* The blocks and segments that there are at the end. */
static void read_end(const Snapshot *snapshot, const UnpickledValue *list, GTree *blocks,
                     GTree *segments) {
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
        put_segment(segments, at, bytes,
                    unpickled_is_text(unpickled_get(segment, "segment_type"), "small"),
                    expandable && expandable->kind == UNPICKLED_BOOL && expandable->integer);
        const UnpickledValue *entries = unpickled_get_list(segment, "blocks");
        for (guint k = 0; k < unpickled_n_items(entries); k++) {
            const UnpickledValue *entry = unpickled_item(entries, k);
            const UnpickledValue *state = unpickled_get(entry, "state");
            uint64_t size = 0;
            Known known = {.frames = unpickled_get_list(entry, "frames")};
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
}

/* Pairs what is allocated with what is freed. What is freed and was not allocated in the window
 * goes to `before`, and what of the end's blocks was allocated in it knows its size by that. */
static void pair_events(Snapshot *snapshot, GTree *at_end, GTree *before) {
    g_autoptr(GHashTable) live = g_hash_table_new(NULL, NULL);    /* address: event + 1 */
    g_autoptr(GHashTable) waiting = g_hash_table_new(NULL, NULL); /* freed, not completed */
    for (guint i = 0; i < snapshot->events->len; i++) {
        SnapshotEvent *event = snapshot_event(snapshot, i);
        gpointer address = GSIZE_TO_POINTER(event->address);
        guint alloc = GPOINTER_TO_UINT(g_hash_table_lookup(live, address));
        Known known = {event->requested_bytes, rounded(event->requested_bytes), false,
                       event->frames};
        switch ((SnapshotAction)event->action) {
        case SNAPSHOT_ALLOC:
            snapshot->n_odd += alloc != 0 || g_hash_table_contains(waiting, address);
            g_hash_table_insert(live, address, GUINT_TO_POINTER(i + 1));
            event->bytes = known.bytes;
            break;
        case SNAPSHOT_FREE:
            event->bytes = known.bytes;
            g_hash_table_insert(waiting, address, address);
            if (alloc != 0) {
                event->partner = alloc - 1;
                snapshot_event(snapshot, alloc - 1)->partner = i;
                g_hash_table_remove(live, address);
            } else if (!g_tree_lookup(before, address)) {
                known.frames = NULL; /* those of the free */
                g_tree_insert(before, address, g_memdup2(&known, sizeof known));
            } else {
                snapshot->n_odd++;
            }
            break;
        case SNAPSHOT_COMPLETED:
            event->bytes = known.bytes;
            if (g_hash_table_remove(waiting, address)) {
                break;
            }
            known.is_freed = true; /* before the window */
            known.frames = NULL;
            if (alloc == 0 && !g_tree_lookup(before, address)) {
                g_tree_insert(before, address, g_memdup2(&known, sizeof known));
            } else {
                snapshot->n_odd++;
            }
            break;
        case SNAPSHOT_RESERVED:
        case SNAPSHOT_RETURNED:
            event->bytes = event->requested_bytes;
            break;
        case SNAPSHOT_OOM:
            snapshot->n_ooms++;
            break;
        }
    }
    GHashTableIter iter;
    gpointer address, number;
    g_hash_table_iter_init(&iter, live);
    while (g_hash_table_iter_next(&iter, &address, &number)) {
        const Known *known = g_tree_lookup(at_end, address);
        if (known) {
            snapshot_event(snapshot, GPOINTER_TO_UINT(number) - 1)->bytes = known->bytes;
            g_tree_remove(at_end, address);
        } else {
            snapshot->n_odd++; /* allocated, never freed, and not there */
        }
    }
    g_hash_table_iter_init(&iter, waiting); /* freed in the window, and waiting still */
    while (g_hash_table_iter_next(&iter, &address, &number)) {
        g_tree_remove(at_end, address);
    }
}

/* ---- where the window begins ----------------------------------------------------------------- */

static void use(Play *play, uint64_t address, uint64_t bytes) {
    g_tree_replace(play->used, GSIZE_TO_POINTER(address), g_memdup2(&bytes, sizeof bytes));
}

static gboolean begin_with(gpointer address, gpointer value, gpointer data) {
    Play *play = data;
    const Known *known = value;
    use(play, GPOINTER_TO_SIZE(address), known->bytes);
    play->snapshot->allocated += known->is_freed ? 0 : known->bytes;
    play->snapshot->active += known->bytes;
    return FALSE;
}

static gboolean keep_block(gpointer address, gpointer value, gpointer data) {
    const Known *known = value;
    SnapshotBlock block = {GPOINTER_TO_SIZE(address), known->requested_bytes, known->bytes,
                           known->frames};
    if (!known->is_freed) {
        g_array_append_val((GArray *)data, block);
    }
    return FALSE;
}

static gboolean add_segment(gpointer address, gpointer value, gpointer data) {
    *(int64_t *)data += (int64_t)((const Segment *)value)->bytes;
    return FALSE;
}

/* Segments of the end that the window took are not there when it begins, those that it gave back
 * are. The pieces of an expandable one come and go within it, and it is at its place all along. */
static bool begin_reserved(Play *play, const char *file_name, GError **error) {
    Snapshot *snapshot = play->snapshot;
    int64_t reserved = 0;
    g_tree_foreach(play->segments, add_segment, &reserved);
    g_autoptr(GHashTable) taken = g_hash_table_new(NULL, NULL);
    for (guint i = 0; i < snapshot->events->len; i++) {
        const SnapshotEvent *event = snapshot_event(snapshot, i);
        gpointer address = GSIZE_TO_POINTER(event->address);
        if (event->action == SNAPSHOT_RESERVED) {
            reserved -= (int64_t)event->bytes;
            g_hash_table_add(taken, address);
        } else if (event->action == SNAPSHOT_RETURNED) {
            reserved += (int64_t)event->bytes;
            if (!g_hash_table_remove(taken, address)) {
                put_segment(play->segments, event->address, event->bytes,
                            event->bytes == SMALL_SEGMENT, event->of_pages);
            }
        }
    }
    if (reserved < 0) {
        g_set_error(error, TRACE_ERROR, TRACE_ERROR_VALUE,
                    "%s: device %u reserved %" G_GINT64_FORMAT
                    " bytes less than nothing when the history begins, by what its events say and "
                    "what is there at the end; record without skip_actions",
                    file_name, snapshot->device, (gint64)-reserved);
        return false;
    }
    snapshot->reserved = (uint64_t)reserved;
    return true;
}

/* ---- the events, played ---------------------------------------------------------------------- */

/* How much a new block takes: all of the free range that it begins, or what was asked for. */
static uint64_t taken_bytes(const Play *play, const SnapshotEvent *event) {
    gpointer address = GSIZE_TO_POINTER(event->address);
    GTreeNode *above = g_tree_upper_bound(play->segments, address);
    GTreeNode *place = above ? g_tree_node_previous(above) : g_tree_node_last(play->segments);
    GTreeNode *next = g_tree_upper_bound(play->used, address);
    const Segment *segment = place ? g_tree_node_value(place) : NULL;
    uint64_t begin = place ? GPOINTER_TO_SIZE(g_tree_node_key(place)) : 0;
    uint64_t asked = rounded(event->requested_bytes);
    if (!segment || event->address >= begin + segment->bytes || segment->is_expandable) {
        return asked; /* an expandable segment's rests are split off, however small */
    }
    uint64_t end = begin + segment->bytes;
    if (next) {
        end = MIN(end, GPOINTER_TO_SIZE(g_tree_node_key(next)));
    }
    uint64_t room = end - event->address;
    if (room < asked) {
        return asked;
    }
    bool may_split = play->split_below <= 0 || asked < (uint64_t)play->split_below;
    bool splits =
        segment->is_small ? room - asked >= ROUNDING : may_split && room - asked > LEAST_LARGE_REST;
    return splits ? asked : room;
}

static void play_segment(Play *play, const SnapshotEvent *event, uint64_t *reserved) {
    if (event->action == SNAPSHOT_RETURNED) {
        *reserved -= MIN(*reserved, event->bytes);
    } else {
        *reserved += event->bytes;
    }
    if (event->action == SNAPSHOT_RESERVED || event->of_pages) {
        put_segment(play->segments, event->address, event->bytes, event->bytes == SMALL_SEGMENT,
                    event->of_pages);
    } else {
        g_tree_remove(play->segments, GSIZE_TO_POINTER(event->address));
    }
}

static void play_events(Play *play) {
    Snapshot *snapshot = play->snapshot;
    uint64_t allocated = snapshot->allocated, active = snapshot->active;
    uint64_t reserved = snapshot->reserved;
    bool gave_back = false; /* and nothing else has happened since */
    bool for_room = false;  /* to take another segment */
    for (guint i = 0; i < snapshot->events->len; i++) {
        SnapshotEvent *event = snapshot_event(snapshot, i);
        gpointer address = GSIZE_TO_POINTER(event->address);
        const uint64_t *held = g_tree_lookup(play->used, address);
        switch ((SnapshotAction)event->action) {
        case SNAPSHOT_ALLOC:
            if (event->partner != SNAPSHOT_NO_EVENT) { /* else its size is told */
                event->bytes = taken_bytes(play, event);
            }
            use(play, event->address, event->bytes);
            allocated += event->bytes;
            active += event->bytes;
            event->retried = for_room;
            snapshot->n_retries += for_room;
            for_room = gave_back = false;
            break;
        case SNAPSHOT_FREE:
            event->bytes = held ? *held : event->bytes;
            allocated -= MIN(allocated, event->bytes);
            for_room = gave_back = false;
            break;
        case SNAPSHOT_COMPLETED:
            event->bytes = held ? *held : event->bytes;
            active -= MIN(active, event->bytes);
            g_tree_remove(play->used, address);
            break;
        case SNAPSHOT_RETURNED:
            play_segment(play, event, &reserved);
            gave_back = true;
            break;
        case SNAPSHOT_RESERVED:
            play_segment(play, event, &reserved);
            for_room |= gave_back;
            break;
        case SNAPSHOT_OOM:
            break;
        }
        active = MAX(active, allocated);
        event->allocated = allocated;
        event->active = active;
        event->reserved = reserved;
    }
}

/* ---- the whole ------------------------------------------------------------------------------- */

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
    snapshot->marks = g_array_new(FALSE, FALSE, sizeof(SnapshotMark));
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
    if (!read_events(snapshot, list, file_name, error)) {
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
    read_marks(snapshot, unpickled_get_list(root, "external_annotations"));
    g_autoptr(GTree) at_end = places_new();
    g_autoptr(GTree) before = places_new();
    g_autoptr(GTree) used = places_new();
    g_autoptr(GTree) segments = places_new();
    Play play = {snapshot, used, segments, -1};
    unpickled_get_int(unpickled_get(root, "allocator_settings"), "max_split_size",
                      &play.split_below);
    read_end(snapshot, unpickled_get_list(root, "segments"), at_end, segments);
    pair_events(snapshot, at_end, before);
    g_tree_foreach(before, begin_with, &play);
    g_tree_foreach(at_end, begin_with, &play);
    g_tree_foreach(at_end, keep_block, snapshot->blocks);
    if (!begin_reserved(&play, file_name, error)) {
        return NULL;
    }
    play_events(&play);
    return g_steal_pointer(&snapshot);
}

void snapshot_free(Snapshot *snapshot) {
    if (snapshot != NULL) {
        g_array_unref(snapshot->events);
        g_array_unref(snapshot->marks);
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
