/* cli/validate/one-share.h - the simplest tuned rule for a step's time, as what to be better than.
 *
 * A step takes its products and attention, recomputed ones too, at one share of the GPU's peak.
 * Each kind of GPU has its share: the median of what the runs at hand reached, so the rule is tuned
 * to the very runs that it is held against, which no prediction is.
 */
#pragma once

#include "cli/validate/validate.h"

/* Fills by_one_share of each run, and the tables' scores by it. After all tables are read. */
void cli_one_share_score(CliValidation *validation);
