/* trace/export/export.h - a trace in the forms that other tools open.
 *
 * Chrome JSON opens in Perfetto (ui.perfetto.dev) and chrome://tracing: a process a rank, a thread
 * a lane, one for what the host does itself and one for steps; memory as counters, by category and
 * by the allocator's statistics. Times are us, shifted so that the earliest row stands at 0; the
 * shift is "origin_ns" under otherData.
 *
 * The memory snapshot is a pickle as torch.cuda.memory._snapshot() returns it, and opens in
 * PyTorch's memory_viz page: a device a rank, an event an allocation, request to free and completed
 * free, its frames saying instruction, unit and module. What a trace does not know is made up so
 * that the page's views hold together:
 *   addresses  the lowest place that has room, in one segment that grows and shrinks with what is
 *              reserved (and, where that placing wastes more room than the real one did, is larger)
 *   completed  a trace says how many freed bytes are still in use, not of which buffers: the oldest
 *              are completed first, as far as that leaves at least so many
 */
#pragma once

#include "trace/trace.h"

/* The trace passes trace_check(). Same trace, same bytes. */
GString *trace_export_chrome(const Trace *trace);
GString *trace_export_memory_viz(const Trace *trace);
