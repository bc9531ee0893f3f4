/* What was there when the window of a snapshot begins, and its events from there (snapshot.h). */
#include "trace/import/snapshot-private.h"
#include "trace/trace.h"

/* c10/core/AllocatorConfig.h and c10/cuda/CUDACachingAllocator.cpp of PyTorch 2.13. */
#define ROUNDING         UINT64_C(512)       /* bytes; kMinBlockSize */
#define SMALL_SEGMENT    (UINT64_C(2) << 20) /* bytes; kSmallBuffer, of which no large segment is */
#define LEAST_LARGE_REST (UINT64_C(1) << 20) /* bytes; kSmallSize: a larger rest is split off */

/* What is in use and reserved while the events go by. */
typedef struct {
    Snapshot *snapshot;
    GTree *used;         /* address: uint64_t *bytes */
    GTree *segments;     /* address: SnapshotSegment * */
    int64_t split_below; /* max_split_size; bytes */
} Play;

static uint64_t rounded(uint64_t bytes) {
    return MAX(ROUNDING, (bytes + ROUNDING - 1) / ROUNDING * ROUNDING);
}

/* ---- what is allocated and freed ------------------------------------------------------------- */

/* What the walk over the events knows of the blocks that they name. */
typedef struct {
    Snapshot *snapshot;
    GTree *before;       /* address: SnapshotKnown *, what is freed and was not allocated here */
    GHashTable *live;    /* address: event + 1, allocated and not freed */
    GHashTable *waiting; /* address: freed, not completed */
} Pairing;

static void pair_alloc(Pairing *pairing, guint i, gpointer address, gpointer alloc) {
    pairing->snapshot->n_odd += alloc != NULL || g_hash_table_contains(pairing->waiting, address);
    g_hash_table_insert(pairing->live, address, GUINT_TO_POINTER(i + 1));
}

/* It was there before the window: as the first event says that frees it. */
static void note_before(Pairing *pairing, const SnapshotEvent *event, bool is_freed) {
    gpointer address = GSIZE_TO_POINTER(event->address);
    if (g_tree_lookup(pairing->before, address)) {
        pairing->snapshot->n_odd++;
        return;
    }
    SnapshotKnown known = {event->requested_bytes, rounded(event->requested_bytes), is_freed, NULL};
    g_tree_insert(pairing->before, address, g_memdup2(&known, sizeof known));
}

static void pair_free(Pairing *pairing, guint i, gpointer address, gpointer alloc) {
    SnapshotEvent *event = snapshot_event(pairing->snapshot, i);
    g_hash_table_insert(pairing->waiting, address, address);
    if (alloc == NULL) {
        note_before(pairing, event, false);
        return;
    }
    event->partner = GPOINTER_TO_UINT(alloc) - 1;
    snapshot_event(pairing->snapshot, event->partner)->partner = i;
    g_hash_table_remove(pairing->live, address);
}

/* What was not freed in the window was freed before it. */
static void pair_completed(Pairing *pairing, guint i, gpointer address, gpointer alloc) {
    if (g_hash_table_remove(pairing->waiting, address)) {
        return;
    }
    if (alloc == NULL) {
        note_before(pairing, snapshot_event(pairing->snapshot, i), true);
    } else {
        pairing->snapshot->n_odd++;
    }
}

static void pair_event(Pairing *pairing, guint i) {
    SnapshotEvent *event = snapshot_event(pairing->snapshot, i);
    gpointer address = GSIZE_TO_POINTER(event->address);
    gpointer alloc = g_hash_table_lookup(pairing->live, address);
    event->bytes = rounded(event->requested_bytes);
    switch ((SnapshotAction)event->action) {
    case SNAPSHOT_ALLOC:
        pair_alloc(pairing, i, address, alloc);
        break;
    case SNAPSHOT_FREE:
        pair_free(pairing, i, address, alloc);
        break;
    case SNAPSHOT_COMPLETED:
        pair_completed(pairing, i, address, alloc);
        break;
    case SNAPSHOT_RESERVED:
    case SNAPSHOT_RETURNED:
        event->bytes = event->requested_bytes; /* of a segment */
        break;
    case SNAPSHOT_OOM:
        event->bytes = 0;
        pairing->snapshot->n_ooms++;
        break;
    }
}

/* What of the end's blocks was allocated in the window knows its size by that, and was not there
 * before it; nor was what was freed in it and waits still. */
static void settle_with_end(Pairing *pairing, GTree *at_end) {
    GHashTableIter iter;
    gpointer address, number;
    g_hash_table_iter_init(&iter, pairing->live);
    while (g_hash_table_iter_next(&iter, &address, &number)) {
        const SnapshotKnown *known = g_tree_lookup(at_end, address);
        if (known) {
            snapshot_event(pairing->snapshot, GPOINTER_TO_UINT(number) - 1)->bytes = known->bytes;
            g_tree_remove(at_end, address);
        } else {
            pairing->snapshot->n_odd++; /* allocated, never freed, and not there */
        }
    }
    g_hash_table_iter_init(&iter, pairing->waiting);
    while (g_hash_table_iter_next(&iter, &address, &number)) {
        g_tree_remove(at_end, address);
    }
}

/* Pairs what is allocated with what is freed. */
static void pair_events(Snapshot *snapshot, GTree *at_end, GTree *before) {
    g_autoptr(GHashTable) live = g_hash_table_new(NULL, NULL);
    g_autoptr(GHashTable) waiting = g_hash_table_new(NULL, NULL);
    Pairing pairing = {snapshot, before, live, waiting};
    for (guint i = 0; i < snapshot->events->len; i++) {
        pair_event(&pairing, i);
    }
    settle_with_end(&pairing, at_end);
}

/* ---- where the window begins ----------------------------------------------------------------- */

static void use(Play *play, uint64_t address, uint64_t bytes) {
    g_tree_replace(play->used, GSIZE_TO_POINTER(address), g_memdup2(&bytes, sizeof bytes));
}

static gboolean begin_with(gpointer address, gpointer value, gpointer data) {
    Play *play = data;
    const SnapshotKnown *known = value;
    use(play, GPOINTER_TO_SIZE(address), known->bytes);
    play->snapshot->allocated += known->is_freed ? 0 : known->bytes;
    play->snapshot->active += known->bytes;
    return FALSE;
}

static gboolean keep_block(gpointer address, gpointer value, gpointer data) {
    const SnapshotKnown *known = value;
    SnapshotBlock block = {GPOINTER_TO_SIZE(address), known->requested_bytes, known->bytes,
                           known->frames};
    if (!known->is_freed) {
        g_array_append_val((GArray *)data, block);
    }
    return FALSE;
}

static gboolean add_segment(gpointer address, gpointer value, gpointer data) {
    *(int64_t *)data += (int64_t)((const SnapshotSegment *)value)->bytes;
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
                snapshot_put_segment(play->segments, event->address, event->bytes,
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
    const SnapshotSegment *segment = place ? g_tree_node_value(place) : NULL;
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
        snapshot_put_segment(play->segments, event->address, event->bytes,
                             event->bytes == SMALL_SEGMENT, event->of_pages);
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

/* ---- all ------------------------------------------------------------------------------------- */

bool snapshot_play(Snapshot *snapshot, SnapshotEnd *end, int64_t split_below, const char *file_name,
                   GError **error) {
    g_autoptr(GTree) before = snapshot_places_new();
    g_autoptr(GTree) used = snapshot_places_new();
    Play play = {snapshot, used, end->segments, split_below};
    pair_events(snapshot, end->blocks, before);
    g_tree_foreach(before, begin_with, &play);
    g_tree_foreach(end->blocks, begin_with, &play);
    g_tree_foreach(end->blocks, keep_block, snapshot->blocks);
    if (!begin_reserved(&play, file_name, error)) {
        return false;
    }
    play_events(&play);
    return true;
}
