#include "trace/quantile.h"

#include <math.h>
#include <stdlib.h>

static int by_number(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void sort(double *numbers, gsize n) {
    if (n) {
        qsort(numbers, n, sizeof *numbers, by_number);
    }
}

double trace_median(double *numbers, gsize n) {
    sort(numbers, n);
    return n ? (numbers[(n - 1) / 2] + numbers[n / 2]) / 2 : 0;
}

/* What share * n is above a whole number by rounding alone is not another number's. */
double trace_quantile(double *numbers, gsize n, double share) {
    sort(numbers, n);
    gsize count = (gsize)ceil(share * (double)n - 1e-9);
    return n ? numbers[MAX(count, 1) - 1] : 0;
}
