/* exec/host/traced-private.h - what files of kernels for traced networks share. Inside
 * exec/host/traced*.c only. */
#pragma once

#include "exec/traced/known.h"

/* A call that runs, and memory that it needs until it is through. */
typedef struct {
    TracedCall *call;
    const ExecTask *task;
    GPtrArray *scratch;
    GArray *waiting; /* results to be written where they belong */
} TracedRun;

/* One for each function that calls.def names. */
typedef bool TracedRunner(TracedRun *r, const TracedRule *rule, GError **error);
#define CALL(name, run, ...) TracedRunner host_run_##run;
#include "exec/traced/calls.def"

gpointer traced_scratch(TracedRun *r, size_t bytes);
/* Row-major floats: the tensor itself, or a copy. */
const float *traced_floats(TracedRun *r, const KernelTensor *t);
const float *traced_floats_of(TracedRun *r, unsigned i); /* NULL: not given */
const int64_t *traced_integers(TracedRun *r, const KernelTensor *t);
/* Where a result's row-major floats are to be written. */
float *traced_result(TracedRun *r, const KernelTensor *t);
float *traced_result_of(TracedRun *r, unsigned i); /* NULL: not asked for */
bool traced_bad_index(GError **error, const char *what);
