/* cli/validate/validate.h - tables of published measurements, predicted and summed up.
 *
 * A table's kind is known by its columns (cli/published/rows-*.h). A row that cannot be predicted
 * is counted as skipped, with its reason; an error is about the table itself.
 *
 * Owns: all it has read. Threads: one, beside those that predict (cli/published/rows-ahead.h).
 * Determinism: the same tables print the same bytes, however many those are.
 */
#pragma once

#include <stdio.h>

#include "cli/published/rows-train.h"
#include "cli/published/score.h"

typedef struct {
    CliScore time, memory;
    CliScore one_node, more_nodes; /* of time, apart */
    CliScore without;              /* of time, by rules not fitted to this table */
    CliScore one_share;            /* of time, by the rule of thumb (one-share.h) */
} CliScores;

/* What is printed of a row. */
typedef struct {
    unsigned line;
    char *label, *skipped, *note;
    double measured, predicted; /* time, in the table's unit */
    double without;             /* as CliScores.without; NAN where there is nothing else */
    double measured_gib, predicted_gib;
    double at_peak_ms, by_one_share; /* one-share.h; NAN where there is no such thing */
    const char *gpu, *gpu_kind;      /* interned; NULL */
    CliRunKind kind;                 /* of a training run */
    unsigned nodes;
    bool held_out; /* of fitting */
} CliValidatedRow;

typedef struct {
    char *name;
    const char *unit; /* "ms" or "us" */
    GArray *rows;     /* CliValidatedRow */
    unsigned skipped;
    CliScores scores;
} CliValidatedTable;

typedef struct {
    GPtrArray *tables; /* CliValidatedTable */
    /* Of the runs that were predicted: which settings the rules gave them, by the rules file's
     * line, and why (CliRuleReason). */
    GHashTable *given;
    FILE *live;       /* rows are printed there as they come; NULL */
    unsigned threads; /* that predict runs; 0: as cli/host/cores.h has it */
} CliValidation;

void cli_scores_clear(CliScores *scores);

CliValidation *cli_validation_new(FILE *live);
void cli_validation_free(CliValidation *validation); /* NULL is fine */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(CliValidation, cli_validation_free)

/* Writes one line of CSV for each training run of these tables: whether it is predicted and why
 * not, with which settings, and which rules said so. paths end with NULL; threads as below. */
bool cli_validation_list(const char *const *paths, unsigned threads, FILE *to, GError **error);

/* Reads and predicts tables, one or all. Errors name file and line. */
bool cli_validation_add(CliValidation *validation, const char *path, GError **error);
bool cli_validation_add_all(CliValidation *validation, const char *const *paths, GError **error);
void cli_validation_print(const CliValidation *validation, FILE *to); /* the summaries */
char *cli_validation_json(const CliValidation *validation);           /* transfer full */
/* A line for each row, on standard output. */
void cli_validation_print_csv(const CliValidation *validation);
