/* trace/import/snapshot-private.h - how a snapshot is worked out, in two steps.
 *
 * snapshot-read.c takes events, annotations and what there is at the end from what was unpickled,
 * snapshot-play.c works out from these what was there when the window begins, and plays the events.
 */
#pragma once

#include "trace/import/snapshot.h"

typedef struct {
    uint64_t bytes;
    bool is_small, is_expandable;
} SnapshotSegment;

/* A block from before the window, or one that lives to its end. */
typedef struct {
    uint64_t requested_bytes, bytes;
    bool is_freed; /* waits for a stream alone */
    const UnpickledValue *frames;
} SnapshotKnown;

/* What there is at the end, by address. */
typedef struct {
    GTree *blocks;   /* SnapshotKnown * */
    GTree *segments; /* SnapshotSegment * */
} SnapshotEnd;

/* Of what is freed by g_free(), in order of address. */
GTree *snapshot_places_new(void);
void snapshot_put_segment(GTree *segments, uint64_t address, uint64_t bytes, bool is_small,
                          bool is_expandable);

bool snapshot_read_events(Snapshot *snapshot, const UnpickledValue *list, const char *file_name,
                          GError **error);
void snapshot_read_annotations(Snapshot *snapshot, const UnpickledValue *list);
void snapshot_read_end(const Snapshot *snapshot, const UnpickledValue *list, SnapshotEnd *end);

/* Events get their partners and sizes, the snapshot what there was at its begin. Uses up the end.
 * split_below: the allocator's max_split_size, in bytes; 0 and less: none. */
bool snapshot_play(Snapshot *snapshot, SnapshotEnd *end, int64_t split_below, const char *file_name,
                   GError **error);
