/* cli/diagnose/diagnose.h - why a run takes the time and memory it takes, and what would change it.
 *
 * Evidence comes from the trace (who waits for whom, who holds what); each remedy is priced by
 * predicting the plan with one setting changed, or the machine with one part four times as fast
 * (the host ten times), or with all its parts alike.
 *
 * What causes the most is named first: by the time a step would lose with it. A setting that costs
 * nothing counts in full; a machine that is to be bought or a program that is to be changed, half;
 * one that costs memory or precision, which may have been meant so, a third. What is tried for
 * memory alone becomes a cause where it saves the allocator's retries. So a missing prefetch is
 * named before the link whose slowness it lays bare, unless the prefetch would recover less than
 * half as much.
 *
 * Owns: everything but the trace.
 */
#pragma once

#include <json-glib/json-glib.h>

#include "cli/say/progress.h"
#include "cli/what-if/ways-to-fit.h"
#include "cli/what-if/what-if.h"
#include "trace/idle.h"

typedef enum {
    CLI_PRICE_NONE,
    CLI_PRICE_MEMORY,
    CLI_PRICE_PRECISION,
    CLI_PRICE_PROGRAM,
    CLI_PRICE_MACHINE,
} CliPrice;

typedef enum {
    CLI_WHEN_ALWAYS,
    CLI_WHEN_SHARDED,
    CLI_WHEN_ON_DEVICE,
    CLI_WHEN_CHECKPOINTED,
    CLI_WHEN_WHOLE_TOKENS,
    CLI_WHEN_MORE_UNITS,
    CLI_WHEN_FEWER_UNITS,
} CliWhen;

/* A remedy and what it would change; step and bytes are the remedy's less the plan's own. */
typedef struct {
    const char *changes; /* "wrap=block"; NULL: of the machine */
    const char *cause;   /* NULL: it lowers memory and is no cause of lost time */
    const char *remedy;
    CliPrice price;
    CliWhen when;
    bool fits;
    uint64_t retries; /* how often the allocator then gives memory back, */
    unsigned n_steps; /* in so many steps */
    double step_ns;
    double whole_ns; /* the step that this is a part of: the predicted one; of a wait that was
                      * measured, the measured one */
    double reserved_bytes;
    double category_bytes[PLAN_N_CATEGORIES]; /* at the peak of allocated */
} CliRemedy;

typedef struct {
    char *name;        /* "DDP", ..., and how it was tuned */
    char *refusal;     /* NULL: it was predicted */
    bool less_precise; /* than the strategy at hand: it keeps no fp32 weights */
    bool fits;
    uint64_t retries;
    unsigned n_steps;
    double step_ns, reserved_bytes;
} CliBaseline;

enum {
    CLI_N_BASELINES = 3
};

typedef struct {
    const Trace *trace;
    CliProgress *progress; /* of what is tried; NULL when all is done */
    guint n_tried;
    CliWhatIf *what_if;
    TraceSummary *summary; /* of the rank whose times are shown, */
    TraceSummary *memory;  /* and of the one whose memory is */
    TraceIdleBook idle;
    SimPrediction *base;
    GArray *remedies; /* CliRemedy: what could be predicted */
    CliRemedy uneven; /* no remedy: tokens go unevenly to ranks that share experts; changes NULL:
                       * none share them, or how unevenly is known */
    GArray
        *causes; /* indices (guint) into remedies, the first first; what saves under 2 % is out */
    CliBaseline baselines[CLI_N_BASELINES];
    GArray *ways_to_fit;   /* CliWay; NULL: it fits; empty: nothing that was tried helps */
    uint64_t larger_batch; /* a micro-batch that makes better use of a step; 0: none was found */
    double larger_batch_share, larger_batch_bytes; /* what a token then takes, and reserved */
} CliDiagnosis;

/* Of one recorded rank; TRACE_NONE: memory of the fullest, and times of the rank that waits least
 * for others. */
CliDiagnosis *cli_diagnose(const Trace *trace, uint32_t rank, const char *cluster, GError **error);
void cli_diagnosis_free(CliDiagnosis *diagnosis); /* NULL is fine */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(CliDiagnosis, cli_diagnosis_free)

/* One more of all that is tried has been. */
void cli_diagnosis_note_progress(CliDiagnosis *diagnosis);
/* with: what is predicted with the remedy; what it changes is worked out of that. */
CliRemedy cli_diagnosis_compared(const CliDiagnosis *diagnosis, CliRemedy remedy,
                                 const SimPrediction *with);
void cli_diagnosis_add_remedy(CliDiagnosis *diagnosis, CliRemedy remedy, const SimPrediction *with);
/* Ranks that are all alike, where they are not. */
void cli_diagnosis_try_equal(CliDiagnosis *diagnosis);
/* Simple strategies, each checkpointed or not. */
void cli_diagnosis_predict_baselines(CliDiagnosis *diagnosis);
/* The baseline with the shortest step of those that fit and are as precise; NULL: none is. */
const CliBaseline *cli_diagnosis_baseline(const CliDiagnosis *diagnosis);
/* Whether a larger micro-batch, for which there is memory, makes better use of a step. */
void cli_diagnosis_find_batch(CliDiagnosis *diagnosis);

char *cli_diagnosis_text(const CliDiagnosis *diagnosis);
/* Its members, into an object that was begun. */
void cli_diagnosis_add_json(const CliDiagnosis *diagnosis, JsonBuilder *json);
/* One line: the cause, then the remedy. */
char *cli_diagnosis_verdict(const CliDiagnosis *diagnosis);
