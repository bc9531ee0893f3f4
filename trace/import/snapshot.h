/* trace/import/snapshot.h - what PyTorch's allocator did, from a memory snapshot of a real run.
 *
 * A snapshot (torch.cuda.memory._dump_snapshot()) holds what is reserved and allocated at its end
 * and, if the history was recorded, the allocator's last events. What was held when the window
 * begins is what is held at its end, less what the events did in between. So:
 *   reserved   exact: segments say their sizes
 *   allocated  as torch.cuda.memory_allocated() counts: a request rounded up to 512 bytes, and what
 *              the allocator does not split off a block. An event says what was requested alone.
 *              The rest follows from addresses: a new block begins a free range, which ends at the
 *              next block in use or with its segment, and is split by PyTorch's own rule
 *              (should_split() in c10/cuda/CUDACachingAllocator.cpp of 2.13). Of a block from
 *              before the window the rest is known only if it lives to the end, where its size
 *              is told.
 *   active     allocated, and what is freed but still in use by a stream
 *
 * Owns: its events. Borrows: what was unpickled, for frames. Cost: O(n log n) in the events.
 */
#pragma once

#include "trace/import/unpickle.h"

typedef enum {
    SNAPSHOT_ALLOC,
    SNAPSHOT_FREE,      /* requested by the host */
    SNAPSHOT_COMPLETED, /* freed, and no stream uses it any more */
    SNAPSHOT_RESERVED,  /* segment_alloc, segment_map */
    SNAPSHOT_RETURNED,  /* segment_free, segment_unmap */
    SNAPSHOT_OOM,
} SnapshotAction;

typedef struct {
    uint8_t action; /* SnapshotAction */
    bool of_pages;  /* SNAPSHOT_RESERVED and _RETURNED: pages of an expandable segment */
    guint partner;  /* the event that frees what this one allocates, or allocates what it frees;
                       SNAPSHOT_NO_EVENT: it lives to the end, or from before the window */
    int64_t time_us;
    uint64_t address, requested_bytes;    /* of the block or segment */
    uint64_t bytes;                       /* as allocated or reserved */
    uint64_t allocated, active, reserved; /* after it */
    const UnpickledValue *frames;         /* innermost first; NULL: not recorded */
    const UnpickledValue *category;       /* as foreshard's own export has it; NULL: not told */
} SnapshotEvent;

#define SNAPSHOT_NO_EVENT G_MAXUINT

/* A block of the whole window: from before its first event to after its last. */
typedef struct {
    uint64_t address, requested_bytes, bytes;
    const UnpickledValue *frames;
} SnapshotBlock;

typedef struct {
    const char *name; /* of an annotated function (record_function); no zero ends it */
    guint name_length;
    bool ends; /* else it begins */
    int64_t time_us;
} SnapshotAnnotation;

typedef struct {
    uint32_t device;
    GArray *events;                       /* SnapshotEvent */
    GArray *annotations;                  /* SnapshotAnnotation, by time */
    GArray *blocks;                       /* SnapshotBlock */
    uint64_t allocated, active, reserved; /* when the window begins */
    guint n_ooms, n_retries;
    guint n_odd; /* events that others contradict: a free of what lies nowhere, for one */
} Snapshot;

/* The device that is asked for; -1: the one with most events. NULL with error: it is no snapshot,
 * has no events (the history was not recorded), or they contradict themselves. */
Snapshot *snapshot_new(const Unpickled *unpickled, int device, const char *file_name,
                       GError **error);
void snapshot_free(Snapshot *snapshot); /* NULL is fine */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Snapshot, snapshot_free)

static inline SnapshotEvent *snapshot_event(const Snapshot *snapshot, guint i) {
    return &g_array_index(snapshot->events, SnapshotEvent, i);
}

/* "train.py:41 forward": the innermost frame of Python code that is not PyTorch's own, else the
 * innermost of Python, else the innermost; without any frame "(no frames)". Transfer full. */
char *snapshot_place(const UnpickledValue *frames);
