#include "memory/virtual.h"

/* Without a limit the device still has to have a size, which expandable segments reserve by: 64
 * PiB, so that each pool of many streams finds addresses. */
#define TOTAL_MOST (UINT64_C(1) << 56)

/* Handles rise from here by whole steps, so that none is NULL and none repeats. */
#define FIRST_ADDRESS (UINT64_C(1) << 44)
#define ADDRESS_STEP  (UINT64_C(2) << 20)

struct _MemoryVirtual {
    uint64_t total_bytes, capacity_bytes, held_bytes, next_address;
    const MemoryVirtualHooks *hooks;
    gpointer self;
};

static MemoryEvent nothing_recorded(gpointer self, uint32_t stream) {
    return 0;
}

static bool has_passed(gpointer self, MemoryEvent event) {
    return true;
}

static void no_wait(gpointer self, MemoryEvent event) {
}

static void no_stream_wait(gpointer self, uint32_t stream) {
}

static const MemoryVirtualHooks no_hooks = {nothing_recorded, has_passed, no_wait, no_stream_wait,
                                            NULL};

MemoryVirtual *memory_virtual_new(uint64_t total_bytes, uint64_t capacity_bytes,
                                  const MemoryVirtualHooks *hooks, gpointer self) {
    MemoryVirtual *memory = g_new(MemoryVirtual, 1);
    *memory = (MemoryVirtual){
        .total_bytes = MIN(total_bytes, TOTAL_MOST),
        .capacity_bytes = capacity_bytes,
        .next_address = FIRST_ADDRESS,
        .hooks = hooks ? hooks : &no_hooks,
        .self = self,
    };
    return memory;
}

void memory_virtual_free(MemoryVirtual *memory) {
    g_free(memory);
}

uint64_t memory_virtual_held(const MemoryVirtual *memory) {
    return memory->held_bytes;
}

void memory_virtual_end(MemoryVirtual *memory) {
    memory->hooks = &no_hooks;
}

static void tell(MemoryVirtual *memory, MemoryVirtualAct act, uint64_t bytes) {
    if (memory->hooks->acts) {
        memory->hooks->acts(memory->self, act, bytes);
    }
}

static bool take(MemoryVirtual *memory, uint64_t bytes, MemoryVirtualAct got,
                 MemoryVirtualAct failed) {
    bool fits = bytes <= memory->capacity_bytes - memory->held_bytes;
    if (fits) {
        memory->held_bytes += bytes;
    }
    tell(memory, fits ? got : failed, bytes);
    return fits;
}

static uint64_t total(gpointer self) {
    const MemoryVirtual *memory = self;
    return memory->total_bytes;
}

static bool address_new(gpointer self, uint64_t bytes, gpointer *ret_handle) {
    MemoryVirtual *memory = self;
    *ret_handle = (gpointer)(uintptr_t)memory->next_address;
    memory->next_address += (bytes + ADDRESS_STEP - 1) / ADDRESS_STEP * ADDRESS_STEP;
    return true;
}

static void address_free(gpointer self, gpointer handle, uint64_t bytes) {
}

static bool segment_new(gpointer self, uint64_t bytes, gpointer *ret_handle) {
    return take(self, bytes, MEMORY_VIRTUAL_SEGMENT_NEW, MEMORY_VIRTUAL_SEGMENT_FAILED) &&
           address_new(self, bytes, ret_handle);
}

static void segment_free(gpointer self, gpointer handle, uint64_t bytes) {
    MemoryVirtual *memory = self;
    memory->held_bytes -= bytes;
    tell(memory, MEMORY_VIRTUAL_SEGMENT_FREE, bytes);
}

static bool map(gpointer self, gpointer handle, uint64_t offset, uint64_t page_bytes,
                uint64_t n_pages) {
    return take(self, page_bytes * n_pages, MEMORY_VIRTUAL_MAP, MEMORY_VIRTUAL_MAP_FAILED);
}

static void unmap(gpointer self, gpointer handle, uint64_t offset, uint64_t page_bytes,
                  uint64_t n_pages) {
    MemoryVirtual *memory = self;
    memory->held_bytes -= page_bytes * n_pages;
    tell(memory, MEMORY_VIRTUAL_UNMAP, page_bytes * n_pages);
}

static MemoryEvent event_record(gpointer self, uint32_t stream) {
    const MemoryVirtual *memory = self;
    return memory->hooks->event_record(memory->self, stream);
}

static bool event_query(gpointer self, MemoryEvent event) {
    const MemoryVirtual *memory = self;
    return memory->hooks->event_query(memory->self, event);
}

static void event_sync(gpointer self, MemoryEvent event) {
    const MemoryVirtual *memory = self;
    memory->hooks->event_sync(memory->self, event);
}

static void stream_sync(gpointer self, uint32_t stream) {
    const MemoryVirtual *memory = self;
    memory->hooks->stream_sync(memory->self, stream);
}

const MemorySource memory_virtual_source = {
    .total_bytes = total,
    .segment_new = segment_new,
    .segment_free = segment_free,
    .address_new = address_new,
    .address_free = address_free,
    .map = map,
    .unmap = unmap,
    .event_record = event_record,
    .event_query = event_query,
    .event_sync = event_sync,
    .stream_sync = stream_sync,
};
