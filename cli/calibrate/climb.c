#include "cli/calibrate/climb.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

double climb(ClimbKnob *knobs, unsigned n, unsigned tries, double (*misfit)(gpointer data),
             gpointer data) {
    for (unsigned k = 0; k < n; k++) {
        *knobs[k].value = knobs[k].start;
    }
    g_autofree double *old = g_new(double, n);
    g_autoptr(GRand) rand = g_rand_new_with_seed(1);
    double least = misfit(data);
    for (unsigned i = 0; i < tries; i++) {
        for (unsigned k = 0; k < n; k++) {
            old[k] = *knobs[k].value;
            double jump = knobs[k].step * pow(0.1, g_rand_double_range(rand, 0, 2));
            double moved = old[k] + jump * g_rand_double_range(rand, -2, 2);
            *knobs[k].value = CLAMP(moved, knobs[k].least, knobs[k].most);
        }
        double now = misfit(data);
        for (unsigned k = 0; k < n && now >= least; k++) {
            *knobs[k].value = old[k];
        }
        least = MIN(least, now);
    }
    return least;
}

void climb_print(const ClimbKnob *knobs, unsigned n, const char *prefix) {
    for (unsigned k = 0; k < n; k++) {
        printf("%s%s = %.3g\n", prefix, knobs[k].key, *knobs[k].value);
    }
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

void climb_sort(double *values, unsigned n) {
    qsort(values, n, sizeof *values, by_value);
}

double climb_miss(double predicted, double measured) {
    return fmin(1, fabs(log(predicted / measured)));
}

void climb_print_errors(const char *what, double *errors, unsigned n) {
    climb_sort(errors, n);
    printf("# %s, median error %.1f %%, 90th percentile %.1f %%\n", what,
           n ? 100 * errors[n / 2] : 0, n ? 100 * errors[n * 9 / 10] : 0);
}
