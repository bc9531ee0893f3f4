/* cli/calibrate.h - what `foreshard calibrate` passes from file to file: plays, samples, numbers.
 *
 * calibrate-play.c trains small networks on every rank at once and takes the time of each op from
 * their traces; calibrate-fit.c makes of them the numbers of a cluster; calibrate-write.c writes
 * the file that `foreshard predict --cluster` takes.
 */
#pragma once

#include "models/cluster.h"
#include "plan/plan.h"

/* One op of one play: what it does, and how long it took (median over steps and ranks). */
typedef struct {
    PlanOpKind kind;
    PlanDtype dtype;
    double flops, bytes, ns;
} CliSample;

typedef struct {
    GArray *ops;          /* CliSample */
    GArray *gaps_ns;      /* double: between two ops of a lane that had both */
    double outside_bytes; /* of a process, beside what the allocator holds */
} CliSamples;

void cli_samples_init(CliSamples *samples);
void cli_samples_clear(CliSamples *samples);
double cli_median(GArray *numbers); /* doubles, which it sorts; 0 of none */

/* Plays every network of the list on n ranks at once, each by itself. Says what it does. */
bool cli_calibrate_play(unsigned n, const char *folder, CliSamples *samples, GError **error);
/* What foreshard-exec --costs says on n ranks. Transfer full. */
char *cli_calibrate_costs(unsigned n, GError **error);

/* The numbers that were measured; all else of the cluster stays 0. costs: lines of exec/costs.h. */
ModelCluster *cli_calibrate_fit(const CliSamples *samples, const char *costs, unsigned n,
                                GError **error);

/* A cluster file. Deterministic but for the date it is told. Transfer full. */
GString *cli_calibrate_text(const ModelCluster *cluster, unsigned n, const char *date);
