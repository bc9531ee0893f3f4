/* cli/calibrate/calibrate.h - what `foreshard calibrate` passes from file to file: plays, samples,
 * numbers.
 *
 * play.c trains small networks on every rank at once and takes the time of each op from
 * their traces; fit.c makes of them the numbers of a cluster, for a GPU together with
 * gpu.c, which fits products and attention to times of their own; write.c
 * writes the file that `foreshard predict --cluster` takes.
 */
#pragma once

#include <stdio.h>

#include "models/cluster.h"
#include "plan/plan.h"

/* One op of one play: what it does, and how long it took (median over steps and ranks). */
typedef struct {
    PlanOpKind kind;
    PlanDtype dtype;
    double flops, bytes, ns;
    double rows; /* of attention, sim/costs/attention.h; else 0 */
} CliSample;

typedef struct {
    GArray *ops;          /* CliSample */
    GArray *gaps_ns;      /* double: between two ops of a lane that had both */
    double outside_bytes; /* of a process, beside what the allocator holds */
    PlanDtype dtype;      /* ops in it count; PLAN_N_DTYPES: in any */
} CliSamples;

void cli_samples_init(CliSamples *samples);
void cli_samples_clear(CliSamples *samples);

/* Something that was to be measured and was not; one line each. */
typedef struct {
    char *what, *why;
} CliFailure;

GArray *cli_failures_new(void); /* CliFailure; transfer full: g_array_unref() */
/* Says there that something failed, and notes it. Takes the error. */
void cli_failures_add(GArray *failures, const char *what, GError *error, FILE *say);

/* How many networks the device's list has. */
unsigned cli_calibrate_plays(const char *device);
/* Plays one of them on n ranks at once. Says there what it does. Whether it was measured. */
bool cli_calibrate_play(const char *device, unsigned which, unsigned n, const char *folder,
                        FILE *say, CliSamples *samples, GArray *failures);
/* Called now and then when what foreshard-exec --costs has said is enough for a file of this GPU,
 * and more is to come. */
typedef void CliCostsSoFar(gpointer data);

/* What foreshard-exec --costs says on n ranks, line by line into `lines`. False with error where it
 * failed, with what it said before; G_OPTION_ERROR_BAD_VALUE: it refuses the device. */
bool cli_calibrate_costs(const char *device, unsigned n, const char *folder, GString *lines,
                         CliCostsSoFar *so_far, gpointer data, GError **error);

/* The numbers that were measured; those that a failed play was to measure are not a number, and all
 * else of the cluster stays 0. costs: lines of exec/costs.h; NULL: they failed. */
ModelCluster *cli_calibrate_fit(const CliSamples *samples, const char *costs, unsigned n,
                                GError **error);
/* The same of a GPU; attention may be missing from its costs, and is not a number then. on_the_way:
 * of what there is so far, less exactly in a quarter of the time. ret_name: what it is called;
 * transfer full. */
ModelCluster *cli_calibrate_fit_gpu(const CliSamples *samples, const char *costs, unsigned n,
                                    bool on_the_way, char **ret_name, GError **error);
/* What both share: the executor's own costs, and the rates of ops that move bytes. */
bool cli_calibrate_take_costs(const char *costs, unsigned n, ModelCluster *cluster, GError **error);
void cli_calibrate_fit_kernels(const CliSamples *samples, double least_bytes,
                               ModelCluster *cluster);

/* A cluster file. Deterministic but for the date it is told. What is not a number is taken over
 * from another cluster, and marked so; of a GPU nothing is. Transfer full. */
typedef struct {
    const ModelCluster *measured, *other;
    const GArray *failures;
    unsigned n;
    const char *date;
    const char *unfinished; /* of a GPU: what there is so far, in words; NULL: it is all */
} CliMeasured;

GString *cli_calibrate_text(const CliMeasured *all);
GString *cli_calibrate_text_gpu(const CliMeasured *all, const char *name);
