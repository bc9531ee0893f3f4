/* cli/what-if/ahead.h - what would be if, predicted before it is asked, on several cores.
 *
 * What is given is begun in its order and handed out once, when it is asked for; so what comes of
 * it does not tell how many cores there were.
 *
 * Owns: threads, and what nobody has asked for. Borrows: the what-if that predicts, const
 * meanwhile. Threads: one gives and takes. Cost: a plan and a play for each thread at a time.
 */
#pragma once

#include "sim/prediction.h"

typedef struct _CliWhatIfAhead CliWhatIfAhead;

/* One question, answered in a thread of its own. */
typedef SimPrediction *CliWhatIfPredict(gconstpointer self, const char *changes, SimWanted wanted,
                                        GError **error);

CliWhatIfAhead *cli_what_if_ahead_new(guint cores, CliWhatIfPredict *predict, gconstpointer self);
/* Lets go of what nobody has begun. NULL is fine. */
void cli_what_if_ahead_free(CliWhatIfAhead *ahead);

void cli_what_if_ahead_give(CliWhatIfAhead *ahead, const char *changes, SimWanted wanted);
/* Waits for what was given. False: it was not, or has been taken. */
bool cli_what_if_ahead_take(CliWhatIfAhead *ahead, const char *changes, SimWanted wanted,
                            SimPrediction **ret_prediction, GError **ret_refusal);
