/* cli/choose/ahead.h - settings predicted before it is their turn, on several cores.
 *
 * Settings that differ in their batch alone are a row. Which batches of a row are worth a
 * prediction depends on what came of others, so whoever searches goes through the rows in order,
 * whatever has been predicted, and threads run ahead of it: each takes the next row that nobody has
 * begun and puts there what it finds. A prediction that is there, or under way, is taken; any other
 * the searcher makes by itself. So what is found does not tell how many threads there were.
 *
 * Owns: threads, and what they have put and nobody has taken. Threads: one searches. Cost: a plan
 * and a play for each thread at a time.
 */
#pragma once

#include "cli/choose/choose.h"

typedef struct _CliAhead CliAhead;

/* Predicts what seems worth it of a row, in a thread of its own, and puts it. */
typedef void CliAheadWork(gpointer self, guint row);

CliAhead *cli_ahead_new(guint n_rows, guint threads, CliAheadWork *work, gpointer self);
/* Waits for what is under way. NULL is fine. */
void cli_ahead_free(CliAhead *ahead);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(CliAhead, cli_ahead_free)

void cli_ahead_begin(CliAhead *ahead); /* from the first call on, with the rows not passed yet */

/* What came of a row's batch: a choice, or why there is none. */
typedef struct {
    uint64_t micro_batch;
    CliChoice choice;
    GError *refusal; /* NULL: there is a choice */
} CliAheadFound;

/* By who works on a row. Takes what was found. False: the row has been passed, so stop. */
bool cli_ahead_put(CliAhead *ahead, guint row, CliAheadFound found);
/* By the searcher: waits while it may come, and hands it over. False: it is to be predicted. */
bool cli_ahead_take(CliAhead *ahead, guint row, uint64_t micro_batch, CliAheadFound *ret);
/* Nothing of the row will be asked for any more. */
void cli_ahead_pass(CliAhead *ahead, guint row);
