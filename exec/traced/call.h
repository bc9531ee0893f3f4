/* exec/traced/call.h - what an op of a traced network computes, read from the plan's text
 * (plan/op/calls.h): a name of ATen's and its arguments.
 *
 * Owns: its arguments and name. Threads: each reads its own. Cost: some microseconds a call.
 */
#pragma once

#include "exec/task.h"
#include "kernels/host/traced/tensor.h"

typedef enum {
    TRACED_NOTHING, /* none was given, "-" */
    TRACED_TENSOR,
    TRACED_NUMBER, /* a truth is 0 or 1 */
    TRACED_TEXT,
    TRACED_LIST
} TracedArgOf;

typedef struct {
    TracedArgOf of;
    KernelTensor tensor; /* its data: NULL until it is run */
    uint32_t operand;    /* PLAN_NONE: the plan has none, as it has no elements */
    size_t offset;       /* from the operand's start, in bytes */
    bool is_foreign;     /* of a dtype that kernels do not know: nothing can be done with it */
    double number;
    int64_t integer;
    const char *text;
    unsigned first, n; /* LIST: items in the call's args */
} TracedArg;

typedef struct {
    char *words;
    const char *name;
    GArray *items; /* TracedArg: those of lists */
    TracedArg args[16], made[12];
    unsigned n_args, n_made;
} TracedCall;

/* False with what is wrong in *ret_fault (transfer full). */
bool traced_call_read(TracedCall *call, const char *text, char **ret_fault);
void traced_call_clear(TracedCall *call);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(TracedCall, traced_call_clear)

static inline const TracedArg *traced_arg(const TracedCall *call, unsigned i) {
    return &call->args[i];
}
static inline bool traced_is(const TracedCall *call, unsigned i) { /* given */
    return i < call->n_args && call->args[i].of != TRACED_NOTHING;
}
static inline const KernelTensor *traced_tensor(const TracedCall *call, unsigned i) {
    return &call->args[i].tensor;
}
static inline int64_t traced_integer(const TracedCall *call, unsigned i) {
    return call->args[i].integer;
}
static inline const KernelTensor *traced_made(const TracedCall *call, unsigned i) {
    return &call->made[i].tensor;
}
static inline bool traced_makes(const TracedCall *call, unsigned i) { /* asked for, and not empty */
    return i < call->n_made && call->made[i].of == TRACED_TENSOR &&
           kernel_tensor_count(traced_made(call, i)) > 0;
}
static inline TracedArg *traced_item(const TracedCall *call, const TracedArg *list, unsigned i) {
    return &g_array_index(call->items, TracedArg, list->first + i);
}
/* A side that may be counted from the last: -1. */
static inline unsigned traced_side(int64_t side, unsigned n_dims) {
    return (unsigned)(side < 0 ? side + (int64_t)n_dims : side);
}
