/* memory/virtual.h - segments without storage: a source for what is only simulated.
 *
 * Handles are addresses that only rise, as if nothing were ever handed out twice. Memory is
 * finite by count. What has passed and what the host waits for is the hooks' to say: a simulator
 * asks its clock.
 *
 * Owns: nothing but its counts. Borrows: hooks and self. Threads: one. Cost: O(1).
 */
#pragma once

#include "memory/source.h"

typedef enum {
    MEMORY_VIRTUAL_SEGMENT_NEW,    /* got room */
    MEMORY_VIRTUAL_SEGMENT_FAILED, /* got none */
    MEMORY_VIRTUAL_SEGMENT_FREE,
    MEMORY_VIRTUAL_MAP,
    MEMORY_VIRTUAL_MAP_FAILED,
    MEMORY_VIRTUAL_UNMAP,
} MemoryVirtualAct;

typedef struct {
    MemoryEvent (*event_record)(gpointer self, uint32_t stream);
    bool (*event_query)(gpointer self, MemoryEvent event);
    void (*event_sync)(gpointer self, MemoryEvent event);
    void (*stream_sync)(gpointer self, uint32_t stream);
    /* Told of what would take the host's time; NULL: nobody is. */
    void (*acts)(gpointer self, MemoryVirtualAct act, uint64_t bytes);
} MemoryVirtualHooks;

typedef struct _MemoryVirtual MemoryVirtual;

/* total_bytes: the device's memory. capacity_bytes, at most that: what segments may take together.
 * UINT64_MAX for both: no limit. hooks NULL: every event has passed at once. */
MemoryVirtual *memory_virtual_new(uint64_t total_bytes, uint64_t capacity_bytes,
                                  const MemoryVirtualHooks *hooks, gpointer self);
void memory_virtual_free(MemoryVirtual *memory); /* NULL is fine; after the allocator over it */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MemoryVirtual, memory_virtual_free)

uint64_t memory_virtual_held(const MemoryVirtual *memory);
/* The play is over: the hooks are told of nothing more, and asked nothing. */
void memory_virtual_end(MemoryVirtual *memory);

/* self: the MemoryVirtual. */
extern const MemorySource memory_virtual_source;
