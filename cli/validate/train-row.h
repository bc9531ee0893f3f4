/* cli/validate/train-row.h - what a published run leaves open that follows from what it does say.
 *
 * Strangers' tables give a batch by the GPU or of all GPUs, a shape with or without its heads.
 * Empty fields are filled where others fix them (a global batch over GPUs and passes), or by custom
 * (heads of 128), which is said to be assumed; what stays empty is for the rules and the reader.
 * Units are the columns' own. Nothing that was measured is filled in.
 *
 * Owns: the fields it has filled. Threads: any. Cost: one pass over a row.
 */
#pragma once

#include "cli/validate/csv.h"

/* A copy of the row; `said` gains "COLUMN=VALUE (why)" of each that was filled. */
CliCsvRow cli_train_row_complete(const CliCsv *csv, const CliCsvRow *row, GString *said);
void cli_train_row_fields_clear(CliCsvRow *row);

/* 1e9 bytes a second of network for each GPU, by the words of `interconnect` ("400 Gb/s per GPU",
 * "4 x 100 Gb/s per node"); 0 where they do not say it. */
double cli_train_row_nic_gb_per_s(const char *interconnect, double gpus_per_node);

/* A step's measured time by whatever column tells it, in the order of the least rounding; NAN. */
typedef struct {
    double tokens;      /* of a rank and step */
    double model_flops; /* of a rank and step, as sources count them */
    double all_flops;   /* with what is recomputed */
    double peak_flops;  /* of a GPU, per second: what MFU is a share of */
    bool tflops_are_all;
} CliTrainWork;

double cli_train_row_measured_ms(const CliCsv *csv, const CliCsvRow *row, const CliTrainWork *work);
/* Which column that is, in words; "none". */
const char *cli_train_row_time_from(const CliCsv *csv, const CliCsvRow *row, bool tflops_are_all);
