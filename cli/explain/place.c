#include "cli/explain/private.h"

char *explain_place(const CliSubject *subject, uint32_t instruction) {
    const Trace *trace = subject->trace;
    const TraceInstruction *row = trace_instruction(trace, subject->summary->role, instruction);
    g_autofree char *place = trace_place_name(trace, row->phase, row->unit);
    return g_strdup_printf("in %s (instruction %u)", place, instruction);
}
