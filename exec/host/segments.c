#include "exec/host/segments.h"

#include <sys/mman.h>

/* Without a limit: more than there is, and few enough addresses to be reserved several times. */
static uint64_t total_bytes(gpointer self) {
    return MIN(((ExecSegments *)self)->limit_bytes, UINT64_C(1) << 43);
}

static bool segment_new(gpointer self, uint64_t bytes, gpointer *ret_handle) {
    ExecSegments *segments = self;
    if (bytes > segments->limit_bytes - segments->mapped_bytes) {
        return false;
    }
    void *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (base == MAP_FAILED) {
        return false;
    }
    segments->mapped_bytes += bytes;
    *ret_handle = base;
    return true;
}

/* Whether pages can go that were waited for. When a lane fails every wait ends at once, while other
 * lanes are still at work: then pages stay until the process ends, which is about to say why. */
static bool may_go(const ExecSegments *segments) {
    return !segments->lanes || !exec_lanes_failed(segments->lanes);
}

static void segment_free(gpointer self, gpointer handle, uint64_t bytes) {
    ExecSegments *segments = self;
    /* cudaFree waits for the device; so must this, or a lane would write to unmapped pages. */
    if (segments->lanes) { /* at the end the lanes have gone before */
        exec_lanes_drain(segments->lanes);
    }
    if (may_go(segments)) {
        munmap(handle, bytes);
    }
    segments->mapped_bytes -= bytes;
}

/* Addresses cost nothing; pages are mapped over them when there is room. */
static bool address_new(gpointer self, uint64_t bytes, gpointer *ret_handle) {
    void *base = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    *ret_handle = base;
    return base != MAP_FAILED;
}

static void address_free(gpointer self, gpointer handle, uint64_t bytes) {
    if (may_go(self)) {
        munmap(handle, bytes);
    }
}

static bool map(gpointer self, gpointer handle, uint64_t offset, uint64_t page_bytes,
                uint64_t n_pages) {
    ExecSegments *segments = self;
    uint64_t bytes = page_bytes * n_pages;
    if (bytes > segments->limit_bytes - segments->mapped_bytes ||
        mmap((char *)handle + offset, bytes, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE | MAP_FIXED, -1, 0) == MAP_FAILED) {
        return false;
    }
    segments->mapped_bytes += bytes;
    return true;
}

static void unmap(gpointer self, gpointer handle, uint64_t offset, uint64_t page_bytes,
                  uint64_t n_pages) {
    ExecSegments *segments = self;
    if (may_go(segments)) {
        mmap((char *)handle + offset, page_bytes * n_pages, PROT_NONE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    }
    segments->mapped_bytes -= page_bytes * n_pages;
}

static MemoryEvent event_of(ExecMoment moment) {
    return moment.position << 8 | moment.lane;
}

static ExecMoment moment_of(MemoryEvent event) {
    return (ExecMoment){(uint32_t)(event & 0xff), event >> 8};
}

static MemoryEvent event_record(gpointer self, uint32_t stream) {
    return event_of(exec_lanes_moment(((ExecSegments *)self)->lanes, stream));
}

static bool event_query(gpointer self, MemoryEvent event) {
    return exec_lanes_passed(((ExecSegments *)self)->lanes, moment_of(event));
}

static void event_sync(gpointer self, MemoryEvent event) {
    exec_lanes_host_wait(((ExecSegments *)self)->lanes, moment_of(event));
}

/* As segment_free() does, for all lanes (exec/cuda/memory/segments.c says why). */
static void stream_sync(gpointer self, uint32_t stream) {
    exec_lanes_drain(((ExecSegments *)self)->lanes);
}

const MemorySource exec_segments_source = {
    .total_bytes = total_bytes,
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
