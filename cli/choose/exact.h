/* cli/choose/exact.h - of settings whose ranks are not alike, those that may be shown are played
 * rank by rank: see choose.h.
 *
 * What one rank on each kind of node promises is off by little (MARGIN). So of a machine and number
 * of GPUs, whatever promises no more than that above what the last row to be shown achieves, rank
 * by rank, cannot be among the rows. It stays as it is, and serves to be counted alone.
 *
 * Cost: a play of every rank for each row, and for what is as fast but for the margin.
 */
#pragma once

#include "cli/choose/range.h"

/* source: is changed. is_shown: how far it has come. */
bool cli_chosen_play_exactly(CliChosen *chosen, const CliRange *range, CliPlanSource *source,
                             bool is_shown, GError **error);
