#include "cli/published/score.h"

#include <math.h>

#include "trace/quantile.h"

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

double cli_score_bias(const CliScore *score) {
    return score->errors ? trace_median_of(score->errors) : 0;
}

double cli_score_quantile(const CliScore *score, double share) {
    unsigned n = cli_score_count(score);
    g_autofree double *sizes = g_new(double, n);
    for (unsigned i = 0; i < n; i++) {
        sizes[i] = fabs(g_array_index(score->errors, double, i));
    }
    return trace_quantile(sizes, n, share);
}

void cli_score_clear(CliScore *score) {
    g_clear_pointer(&score->errors, g_array_unref);
}
