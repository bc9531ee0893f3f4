/* memory/source.h - where segments come from: what an allocator asks of a device.
 *
 * A table of functions: virtual segments (memory/virtual.h), host memory and cudaMalloc each
 * fill one. Handles are the source's own (on a real device the segment's base address) and come
 * back unread.
 *
 * "No room" is an answer, not an error. A source whose device breaks keeps that error for its
 * own caller to fetch, and answers as if there were no room, or as if the event had passed.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

/* What a stream has been given to do up to now: a recording's number, or an address in disguise.
 * It is over, and the source may use it again, once event_query() said true or event_sync()
 * returned. */
typedef uint64_t MemoryEvent;

typedef struct {
    /* All memory of the device, which fractions and expandable segments are measured by.
     * Constant. */
    uint64_t (*total_bytes)(gpointer self);

    bool (*segment_new)(gpointer self, uint64_t bytes, gpointer *ret_handle); /* as cudaMalloc */
    void (*segment_free)(gpointer self, gpointer handle, uint64_t bytes);     /* as cudaFree */

    /* Expandable segments; all four NULL where they cannot be had. Memory is mapped in pages,
     * each of page_bytes; map() maps all of the pages or, when there is no room, none. */
    bool (*address_new)(gpointer self, uint64_t bytes, gpointer *ret_handle);
    void (*address_free)(gpointer self, gpointer handle, uint64_t bytes);
    bool (*map)(gpointer self, gpointer handle, uint64_t offset, uint64_t page_bytes,
                uint64_t n_pages);
    void (*unmap)(gpointer self, gpointer handle, uint64_t offset, uint64_t page_bytes,
                  uint64_t n_pages);

    MemoryEvent (*event_record)(gpointer self, uint32_t stream);
    bool (*event_query)(gpointer self, MemoryEvent event); /* has it passed? */
    void (*event_sync)(gpointer self, MemoryEvent event);  /* the host waits for it */
    /* The host waits until a stream is done. Called before unmap(), which unlike cudaFree waits for
     * nothing. A source whose kernels run for real waits for all streams: another stream may still
     * read memory that is free for this one. */
    void (*stream_sync)(gpointer self, uint32_t stream);
} MemorySource;
