/* cli/published/train/row.h - what a published run leaves open that follows from what it does say.
 *
 * Strangers' tables give a batch by the GPU or of all GPUs, a shape with or without its heads.
 * Empty fields are filled where others fix them (a global batch over GPUs and passes), or by custom
 * (heads of 128), which is said to be assumed; what stays empty is for the rules and the reader.
 * Units are the columns' own. Nothing that was measured is filled in.
 *
 * Owns: the fields it has filled. Threads: any. Cost: one pass over a row.
 */
#pragma once

#include "cli/published/csv.h"

/* A copy of the row; `said` gains "COLUMN=VALUE (why)" of each that was filled. */
CliCsvRow cli_train_row_complete(const CliCsv *csv, const CliCsvRow *row, GString *said);
void cli_train_row_fields_clear(CliCsvRow *row);
