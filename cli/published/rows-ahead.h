/* cli/published/rows-ahead.h - training runs predicted before it is their turn, on several cores.
 *
 * Rows wait in one line, whatever table they are of, and each is predicted by itself; taken they
 * are in their own order, so that what is printed does not tell how many cores there were.
 *
 * Owns: threads and what they have predicted. Borrows: tables and rules, which outlive it.
 * Threads: one gives and takes. Cost: a plan and a play for each thread at a time.
 */
#pragma once

#include "cli/published/rows-train.h"

typedef struct _CliRowsAhead CliRowsAhead;

/* How far a row goes, as the functions of rows-train.h: */
typedef enum {
    CLI_ROWS_SETTLED,         /* cli_train_settle */
    CLI_ROWS_PREDICTED,       /* cli_train_predict */
    CLI_ROWS_PREDICTED_TWICE, /* cli_train_predict_twice */
} CliRowsAsked;

CliRowsAhead *cli_rows_ahead_new(unsigned threads); /* 0: as cli/host/cores.h has it */
/* Lets go of what nobody has begun. NULL is fine. */
void cli_rows_ahead_free(CliRowsAhead *ahead);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(CliRowsAhead, cli_rows_ahead_free)

/* Puts all rows of a table in line. Each table once. */
void cli_rows_ahead_give(CliRowsAhead *ahead, const CliCsv *csv, CliPublished *published,
                         CliRowsAsked asked);
/* Waits for the next row in line, and is as what was asked was of it; *ret_without_ms is NAN where
 * that was not the time without fits. */
bool cli_rows_ahead_take(CliRowsAhead *ahead, CliTrainRow *ret_row, double *ret_without_ms,
                         GError **error);
