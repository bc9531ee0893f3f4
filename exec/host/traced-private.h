/* exec/host/traced-private.h - what files of kernels for traced networks share. Inside
 * exec/host/traced*.c only. */
#pragma once

#include "exec/traced/call.h"

/* A call that runs, and memory that it needs until it is through. */
typedef struct {
    TracedCall *call;
    const ExecTask *task;
    GPtrArray *scratch;
    GArray *waiting; /* results to be written where they belong */
} TracedRun;

typedef struct TracedKernel TracedKernel;
struct TracedKernel {
    const char *name;
    bool (*run)(TracedRun *r, const TracedKernel *kernel, GError **error);
    /* Why a call is not known, though its name is; NULL: it is. May be missing. */
    const char *(*why_not)(const TracedCall *call);
    int which; /* of kernels that are one function */
    /* A letter for each argument. Of traced-each.c its own; elsewhere t a tensor, ? one or none, 2
     * 3 4 one of so many sides, n a number, l a list, . whatever there is. */
    const char *takes;
};

extern const TracedKernel traced_each_kernels[], traced_rows_kernels[], traced_products_kernels[],
    traced_places_kernels[], traced_windows_kernels[]; /* each ends with a row without a name */

extern const TracedKernel *const traced_each_end;

static inline TracedArg *traced_arg(const TracedRun *r, unsigned i) {
    return &r->call->args[i];
}
static inline bool traced_is(const TracedRun *r, unsigned i) {
    return i < r->call->n_args && r->call->args[i].of != TRACED_NOTHING;
}
static inline const KernelTensor *traced_tensor(const TracedRun *r, unsigned i) {
    return &r->call->args[i].tensor;
}
static inline const KernelTensor *traced_made(const TracedRun *r, unsigned i) {
    return &r->call->made[i].tensor;
}
static inline bool traced_makes(const TracedRun *r, unsigned i) {
    return i < r->call->n_made && r->call->made[i].of == TRACED_TENSOR;
}
static inline int64_t traced_integer(const TracedRun *r, unsigned i) {
    return r->call->args[i].integer;
}

gpointer traced_scratch(TracedRun *r, size_t bytes);
/* Row-major floats: the tensor itself, or a copy. */
const float *traced_floats(TracedRun *r, const KernelTensor *t);
const float *traced_floats_of(TracedRun *r, unsigned i); /* NULL: not given */
const int64_t *traced_integers(TracedRun *r, const KernelTensor *t);
/* Where a result's row-major floats are to be written. */
float *traced_result(TracedRun *r, const KernelTensor *t);
float *traced_result_of(TracedRun *r, unsigned i); /* NULL: not asked for */
bool traced_bad_index(GError **error, const char *what);
