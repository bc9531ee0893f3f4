/* exec/host/segments.h - host memory as the allocator's source of segments.
 *
 * Each segment is an anonymous mapping whose pages are there from the start, so that the resident
 * set of the process follows reserved bytes. Events are moments of lanes (exec/host/lanes.h).
 *
 * Owns: its mappings. Borrows: the lanes. Threads: the host's.
 */
#pragma once

#include "exec/host/lanes.h"
#include "memory/source.h"

typedef struct {
    ExecLanes *lanes;
    uint64_t limit_bytes; /* the modeled device's memory */
    uint64_t mapped_bytes;
} ExecSegments;

extern const MemorySource exec_segments_source; /* self: ExecSegments */
