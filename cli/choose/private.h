/* cli/choose/private.h - the search, the simplest beside it; one choice: predicted, described,
 * cleared; those in time and within the budget. */
#pragma once

#include "cli/choose/choose.h"
#include "cli/say/progress.h"

/* All settings tried and ranked, without a baseline. progress: NULL: none is shown. */
CliChosen *cli_choose_search(const CliChooseAsked *asked, CliProgress *progress, GError **error);
/* Finds chosen->baseline, if there is one. */
bool cli_choose_baseline(const CliChooseAsked *asked, CliChosen *chosen, GError **error);

/* Predicts what the source says; settings stay NULL. Fails where that is refused. roughly: by an
 * estimate where ranks are not alike. */
bool cli_choice_predict(CliPlanSource *source, const char *network, const ModelCluster *cluster,
                        bool roughly, CliChoice *ret, GError **error);
/* Takes a choice: into the list if it fits, else as the nearest if it is that. */
void cli_chosen_keep(CliChosen *chosen, CliChoice *choice);
/* By price where all have one, else by speed; again where some were left out. */
void cli_chosen_rank(CliChosen *chosen);
/* Leaves out what takes more days. */
void cli_chosen_keep_in_time(CliChosen *chosen, double tokens, double most_days);
/* Leaves out what costs more. Every machine has a price. */
void cli_chosen_keep_affordable(CliChosen *chosen, double tokens, double most_price);
/* "key=value" of each key. Transfer full. */
char **cli_choice_settings(char **keys, char **values);
void cli_choice_clear(CliChoice *choice);
void cli_choice_free(CliChoice *choice); /* NULL is fine */
