#include "exec/cuda/memory/segments.h"

#include "exec/cuda/calls.h"
#include "exec/cuda/memory/virtual.h"

bool exec_cuda_segments_init(ExecCudaSegments *segments, const cudaStream_t *streams,
                             uint64_t limit_bytes, GError **error) {
    size_t free_bytes, total_bytes;
    if (!exec_cuda_ok(cudaMemGetInfo(&free_bytes, &total_bytes), "cudaMemGetInfo", error)) {
        return false;
    }
    *segments = (ExecCudaSegments){.streams = streams,
                                   .limit_bytes = MIN(limit_bytes, total_bytes),
                                   .events = g_ptr_array_new(),
                                   .idle = g_ptr_array_new()};
    return true;
}

/* Also of events that the allocator was still waiting for when it ended. */
void exec_cuda_segments_clear(ExecCudaSegments *segments) {
    for (guint i = 0; segments->events && i < segments->events->len; i++) {
        cudaEventDestroy(segments->events->pdata[i]);
    }
    g_clear_pointer(&segments->events, g_ptr_array_unref);
    g_clear_pointer(&segments->idle, g_ptr_array_unref);
    g_clear_error(&segments->error);
}

/* The source's table has no errors: the first one is kept. */
static bool note(ExecCudaSegments *segments, cudaError_t status, const char *call) {
    return exec_cuda_ok(status, call, segments->error ? NULL : &segments->error);
}

/* Likewise, of what the driver says; NULL: nothing. */
static void note_driver(ExecCudaSegments *segments, GError *error) {
    if (error && !segments->error) {
        segments->error = error;
    } else {
        g_clear_error(&error);
    }
}

static uint64_t total_bytes(gpointer self) {
    return ((const ExecCudaSegments *)self)->limit_bytes;
}

static bool has_room(const ExecCudaSegments *segments, uint64_t bytes) {
    return bytes <= segments->limit_bytes - segments->held_bytes;
}

static bool segment_new(gpointer self, uint64_t bytes, gpointer *ret_handle) {
    ExecCudaSegments *segments = self;
    if (!has_room(segments, bytes)) {
        return false;
    }
    cudaError_t status = cudaMalloc(ret_handle, bytes);
    if (status == cudaErrorMemoryAllocation) {
        cudaGetLastError();
        return false;
    }
    if (!note(segments, status, "cudaMalloc")) {
        return false;
    }
    segments->held_bytes += bytes;
    return true;
}

static void segment_free(gpointer self, gpointer handle, uint64_t bytes) {
    ExecCudaSegments *segments = self;
    note(segments, cudaFree(handle), "cudaFree"); /* waits for the device */
    segments->held_bytes -= bytes;
}

/* ---- expandable segments -------------------------------------------------------------------- */

static bool address_new(gpointer self, uint64_t bytes, gpointer *ret_handle) {
    GError *error = NULL;
    bool done = exec_cuda_virtual_reserve(bytes, ret_handle, &error);
    note_driver(self, error);
    return done;
}

static void address_free(gpointer self, gpointer handle, uint64_t bytes) {
    GError *error = NULL;
    exec_cuda_virtual_release(handle, bytes, &error);
    note_driver(self, error);
}

static bool map(gpointer self, gpointer handle, uint64_t offset, uint64_t page_bytes,
                uint64_t n_pages) {
    ExecCudaSegments *segments = self;
    uint64_t bytes = page_bytes * n_pages;
    GError *error = NULL;
    bool mapped = has_room(segments, bytes) &&
                  exec_cuda_virtual_map((char *)handle + offset, page_bytes, n_pages, &error);
    note_driver(segments, error);
    segments->held_bytes += mapped ? bytes : 0;
    return mapped;
}

static void unmap(gpointer self, gpointer handle, uint64_t offset, uint64_t page_bytes,
                  uint64_t n_pages) {
    ExecCudaSegments *segments = self;
    GError *error = NULL;
    exec_cuda_virtual_unmap((char *)handle + offset, page_bytes, n_pages, &error);
    note_driver(segments, error);
    segments->held_bytes -= page_bytes * n_pages;
}

/* ---- events --------------------------------------------------------------------------------- */

/* NULL: none could be made, as the error says. */
static cudaEvent_t take_event(ExecCudaSegments *segments) {
    guint n = segments->idle->len;
    cudaEvent_t event = n ? g_ptr_array_steal_index(segments->idle, n - 1) : NULL;
    if (!event && note(segments, cudaEventCreateWithFlags(&event, cudaEventDisableTiming),
                       "cudaEventCreateWithFlags")) {
        g_ptr_array_add(segments->events, event);
    }
    return event;
}

static MemoryEvent event_record(gpointer self, uint32_t stream) {
    ExecCudaSegments *segments = self;
    cudaEvent_t event = take_event(segments);
    if (event) {
        note(segments, cudaEventRecord(event, segments->streams[stream]), "cudaEventRecord");
    }
    return (MemoryEvent)(uintptr_t)event;
}

static void put_back(ExecCudaSegments *segments, cudaEvent_t event) {
    if (event) {
        g_ptr_array_add(segments->idle, event);
    }
}

/* On a device that broke every event counts as passed, as memory/source.h wants it. */
static bool event_query(gpointer self, MemoryEvent event) {
    ExecCudaSegments *segments = self;
    cudaEvent_t asked = (cudaEvent_t)(uintptr_t)event;
    cudaError_t status = asked ? cudaEventQuery(asked) : cudaSuccess;
    if (status == cudaErrorNotReady) {
        cudaGetLastError();
        return false;
    }
    note(segments, status, "cudaEventQuery");
    put_back(segments, asked);
    return true;
}

static void event_sync(gpointer self, MemoryEvent event) {
    ExecCudaSegments *segments = self;
    cudaEvent_t asked = (cudaEvent_t)(uintptr_t)event;
    note(segments, asked ? cudaEventSynchronize(asked) : cudaSuccess, "cudaEventSynchronize");
    put_back(segments, asked);
}

/* Waits for all lanes: cuMemUnmap, unlike cudaFree, waits for nothing, and what is free for its own
 * lane another may still read. An optimizer reads gradients of the lane of reductions, which waits
 * for it only when it reduces again. (PyTorch waits for the one stream:
 * ExpandableSegment::unmapHandles.) */
static void stream_sync(gpointer self, uint32_t stream) {
    note(self, cudaDeviceSynchronize(), "cudaDeviceSynchronize");
}

#define ALWAYS                                                                                     \
    .total_bytes = total_bytes, .segment_new = segment_new, .segment_free = segment_free,          \
    .event_record = event_record, .event_query = event_query, .event_sync = event_sync,            \
    .stream_sync = stream_sync

static const MemorySource plain = {ALWAYS};
static const MemorySource expandable = {ALWAYS, .address_new = address_new,
                                        .address_free = address_free, .map = map, .unmap = unmap};

const MemorySource *exec_cuda_segments_source(void) {
    return exec_cuda_virtual_is_here() ? &expandable : &plain;
}
