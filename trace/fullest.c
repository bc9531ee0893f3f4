#include "trace/fullest.h"

#include "trace/ended.h"

uint32_t trace_fullest_rank(const Trace *trace) {
    TraceOom oom;
    if (trace_get_oom(trace, &oom)) {
        return oom.rank;
    }
    uint32_t fullest = trace_lowest_rank(trace);
    uint64_t most = 0;
    for (guint i = 0; i < trace->memory->len; i++) {
        const TraceMemoryRow *row = trace_memory(trace, i);
        bool is_fuller = row->reserved > most || (row->reserved == most && row->rank < fullest);
        fullest = is_fuller ? row->rank : fullest;
        most = MAX(most, row->reserved);
    }
    return fullest;
}

uint32_t trace_rank_beside(const Trace *trace, uint32_t rank) {
    return trace_role_of_rank(trace, rank) != TRACE_NONE ? rank : trace_fullest_rank(trace);
}
