/* cli/published/score.h - how far predictions are off: absolute errors, as shares of what was
 * measured. */
#pragma once

#include <glib.h>

typedef struct {
    GArray *errors; /* double, signed; NULL while there are none */
} CliScore;

/* Does nothing when either is not a number. */
void cli_score_add(CliScore *score, double predicted, double measured);
void cli_score_merge(CliScore *into, const CliScore *from);
unsigned cli_score_count(const CliScore *score);
double cli_score_mean(const CliScore *score);
/* The least error that `share` of all do not exceed: 0.5 is the median; 0 when there are none. */
double cli_score_quantile(const CliScore *score, double share);
double cli_score_bias(const CliScore *score); /* the median with its sign: above 0 is too slow */
void cli_score_clear(CliScore *score);
