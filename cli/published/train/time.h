/* cli/published/train/time.h - a published run's step time, from whichever column tells it: a time,
 * or a rate of tokens, samples or operations.
 */
#pragma once

#include "cli/published/csv.h"

/* A step's measured time by whatever column tells it, in the order of the least rounding; NAN. */
typedef struct {
    double tokens;      /* of a rank and step */
    double model_flops; /* of a rank and step, as sources count them */
    double all_flops;   /* with what is recomputed */
    double peak_flops;  /* of a GPU, per second: what MFU is a share of */
    bool tflops_are_all;
} CliTrainWork;

double cli_train_time_ms(const CliCsv *csv, const CliCsvRow *row, const CliTrainWork *work);
/* Where another column of times or rates makes another step of it than the one that is taken: what
 * each makes, in words. NULL: none does, apart from rounding. Transfer full. */
char *cli_train_time_contradicted(const CliCsv *csv, const CliCsvRow *row,
                                  const CliTrainWork *work);
/* Which column that is, in words; "none". */
const char *cli_train_time_from(const CliCsv *csv, const CliCsvRow *row, bool tflops_are_all);
