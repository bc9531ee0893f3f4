/* trace/import/steps.h - the steps of a run that does not name them to us.
 *
 * A step is told, in this order, by
 *   the profiler   the annotation ProfilerStep#N, which its step() makes
 *   the optimizer  the end of Optimizer.step#..., which PyTorch annotates by itself. What comes
 *                  behind it (zero_grad) counts for the next step
 *   repetition     the same requests in the same order again (repeats.h): a step long, though not
 *                  necessarily from a step's begin to its end
 *   nothing
 */
#pragma once

#include "trace/import/snapshot.h"

typedef enum {
    STEPS_UNKNOWN,
    STEPS_OF_PROFILER,
    STEPS_OF_OPTIMIZER,
    STEPS_REPEATED
} StepsFrom;

typedef struct {
    StepsFrom from;
    GArray *ends; /* guint: of each whole step the event behind its last; first of all the begin of
                     the first. Empty: unknown */
} SnapshotSteps;

SnapshotSteps *snapshot_steps_new(const Snapshot *snapshot);
void snapshot_steps_free(SnapshotSteps *steps); /* NULL is fine */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(SnapshotSteps, snapshot_steps_free)

guint snapshot_n_steps(const SnapshotSteps *steps);
static inline guint snapshot_step_begin(const SnapshotSteps *steps, guint step) {
    return g_array_index(steps->ends, guint, step);
}
/* "ProfilerStep#" and so on, for people. */
const char *steps_from_text(StepsFrom from);
/* Whether an annotation's name is the profiler's, or the end of an optimizer's step. */
bool steps_is_profiler(const char *name, guint length);
bool steps_is_optimizer(const char *name, guint length);
