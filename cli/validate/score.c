#include "cli/validate/score.h"

#include <math.h>

void cli_score_add(CliScore *score, double predicted, double measured) {
    double error = predicted / measured - 1;
    if (isnan(error)) {
        return;
    }
    if (!score->errors) {
        score->errors = g_array_new(FALSE, FALSE, sizeof(double));
    }
    g_array_append_val(score->errors, error);
}

void cli_score_merge(CliScore *into, const CliScore *from) {
    for (unsigned i = 0; i < cli_score_count(from); i++) {
        cli_score_add(into, 1 + g_array_index(from->errors, double, i), 1);
    }
}

unsigned cli_score_count(const CliScore *score) {
    return score->errors ? score->errors->len : 0;
}

double cli_score_mean(const CliScore *score) {
    double sum = 0;
    unsigned n = cli_score_count(score);
    for (unsigned i = 0; i < n; i++) {
        sum += fabs(g_array_index(score->errors, double, i));
    }
    return n ? sum / n : 0;
}

static int by_size(gconstpointer a, gconstpointer b) {
    double x = fabs(*(const double *)a), y = fabs(*(const double *)b);
    return (x > y) - (x < y);
}

static int by_value(gconstpointer a, gconstpointer b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double cli_score_bias(const CliScore *score) {
    unsigned n = cli_score_count(score);
    if (n == 0) {
        return 0;
    }
    g_array_sort(score->errors, by_value);
    return (g_array_index(score->errors, double, (n - 1) / 2) +
            g_array_index(score->errors, double, n / 2)) /
           2;
}

double cli_score_quantile(const CliScore *score, double share) {
    unsigned n = cli_score_count(score);
    if (n == 0) {
        return 0;
    }
    g_array_sort(score->errors, by_size);
    unsigned at = (unsigned)ceil(share * n);
    return fabs(g_array_index(score->errors, double, at > 0 ? at - 1 : 0));
}

void cli_score_clear(CliScore *score) {
    g_clear_pointer(&score->errors, g_array_unref);
}
