/* exec/pace.h - how long each collective lasts at least, so that a laptop shows the overlap of a
 * cluster.
 *
 * The table is a file that cli/launch/pace.h writes: the line EXEC_PACE_FORM, "cluster NAME",
 * "digest ..." of the plan, then a line "role op ns channels" for each collective. A collective
 * counts from the moment at which all its ranks have come; when its data have arrived earlier, the
 * rest is slept.
 *
 * Threads: any, once read.
 */
#pragma once

#include "plan/plan.h"

#define EXEC_PACE_FORM "foreshard-pace 2" /* its first line */

typedef struct _ExecPace ExecPace;

typedef struct {
    int64_t least_ns;
    uint32_t channels; /* of NCCL, each a multiprocessor of a GPU; 0 on CPUs */
} ExecPaced;

ExecPace *exec_pace_read(const char *path, const Plan *plan, GError **error);
void exec_pace_free(ExecPace *pace); /* NULL is fine */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ExecPace, exec_pace_free)

const char *exec_pace_cluster(const ExecPace *pace);
ExecPaced exec_pace_of(const ExecPace *pace, uint32_t role, uint32_t op);
/* Sleeps, and spins for the last few microseconds. */
void exec_pace_sleep_until(int64_t monotonic_ns);
