/* cli/calibrate/climb.h - hill climbing over a few numbers, from a fixed seed: it fits a cluster's
 * numbers to times, here and in bench/. */
#pragma once

#include <glib.h>

typedef struct {
    const char *key;
    double *value;
    double start, step, least, most;
} ClimbKnob;

/* Sets the values to their starts and then moves them all at once, by up to twice their steps,
 * wherever that lowers the misfit. Returns the least. */
double climb(ClimbKnob *knobs, unsigned n, unsigned tries, double (*misfit)(gpointer data),
             gpointer data);
void climb_print(const ClimbKnob *knobs, unsigned n, const char *prefix); /* "key = value" lines */
/* |log(predicted / measured)|, and none counts for more than a factor of e. */
double climb_miss(double predicted, double measured);
/* Sorts the errors; "# WHAT, median error M %, 90th percentile P %". */
void climb_print_errors(const char *what, double *errors, unsigned n);
