/* cli/measured/measured.h - a prediction held against what PyTorch itself recorded of a real run.
 *
 * The run played no plan of ours: nothing pairs its events with instructions. What both sides can
 * say is compared, by steps where steps can be told, and what only one of them knows is left open.
 *   memory (a snapshot)  peaks; and by size what is asked for within a step, and what is held
 *                        throughout it: a size that one side has oftener is a tensor that the other
 *                        lacks. Sizes are requests rounded up to 512 bytes; of the prediction its
 *                        last step is taken, of the run its last whole one. Of a run that was out
 *                        of memory also what was held then: beside what the prediction holds where
 *                        it is, or at its peak
 *   time (a profile)     step time, and what the GPU and the host do in it (trace/import/profile.h)
 *
 * Owns: its texts and rows. Borrows: nothing once made.
 */
#pragma once

#include "trace/import/profile.h"
#include "trace/import/snapshot.h"
#include "trace/trace.h"

typedef enum {
    MEASURED_BYTES,
    MEASURED_NS,
    MEASURED_COUNT
} MeasuredUnit;

typedef struct {
    const char *name;
    MeasuredUnit unit;
    double value[2]; /* predicted, measured; NAN: that side cannot know */
} MeasuredRow;

/* The last: held where the run was out of memory, and where the prediction is, or at its peak. */
typedef enum {
    MEASURED_HELD,  /* throughout the step */
    MEASURED_ASKED, /* within it */
    MEASURED_AT_OOM,
    MEASURED_N_LIVES
} MeasuredLife;

/* Allocations of one size of which one side has more than the other. */
typedef struct {
    guint side; /* which has more: 0 predicted, 1 measured */
    MeasuredLife life;
    uint64_t bytes;  /* of each */
    guint counts[2]; /* predicted, measured */
    char *place;     /* where the side that has more allocates most of them */
    guint n_places;  /* other places of that side */
} MeasuredSurplus;

typedef struct {
    const char *what;  /* "memory", "time" */
    char *sources[2];  /* the two files, with what is taken of them */
    GArray *rows;      /* MeasuredRow */
    GArray *surpluses; /* MeasuredSurplus, most bytes first; memory alone */
    double paired;     /* of the bytes that the run asks for in the step, the part that has a
                           counterpart of its size; NAN: not known */
    GPtrArray *notes;  /* char *: what the user should know */
} Measured;

typedef struct {
    const char *trace_name, *file_name;
    int rank;   /* of the prediction; -1: the lowest recorded */
    int device; /* of the snapshot; -1: the busiest */
} MeasuredOptions;

/* The file is a snapshot or a profile (trace/import/file.h), and is named in errors. */
Measured *measured_compare(const Trace *trace, const MeasuredOptions *options, GError **error);
Measured *measured_memory(const Trace *trace, const Snapshot *snapshot,
                          const MeasuredOptions *options, GError **error);
Measured *measured_time(const Trace *trace, const Profile *profile, const MeasuredOptions *options,
                        GError **error);
void measured_free(Measured *measured); /* NULL is fine */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Measured, measured_free)

/* A snapshot as a trace for pictures (trace/import/to-trace.h). */
Trace *measured_trace(const char *file_name, Trace *beside, GError **error);

char *measured_text(const Measured *measured);
char *measured_json(const Measured *measured);

/* ---- for the two that fill it ---- */

Measured *measured_new(const char *what);
void measured_add(Measured *measured, const char *name, MeasuredUnit unit, double predicted,
                  double measured_value);
void measured_note(Measured *measured, const char *format, ...) G_GNUC_PRINTF(2, 3);
/* The rank to take; TRACE_NONE with error: it is not recorded. */
uint32_t measured_rank(const Trace *trace, const MeasuredOptions *options, GError **error);
