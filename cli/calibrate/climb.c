#include "cli/calibrate/climb.h"

#include <math.h>
#include <stdio.h>

#include "trace/quantile.h"

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

double climb_miss(double predicted, double measured) {
    return fmin(1, fabs(log(predicted / measured)));
}

void climb_print_errors(const char *what, double *errors, unsigned n) {
    printf("# %s, median error %.1f %%, 90th percentile %.1f %%\n", what,
           100 * trace_median(errors, n), 100 * trace_quantile(errors, n, 0.9));
}
