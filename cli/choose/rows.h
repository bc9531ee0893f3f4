/* cli/choose/rows.h - choices for people: their table, around which text.c has sentences. */
#pragma once

#include "cli/choose/choose.h"

static const double CLI_CHOOSE_GIB = 1024. * 1024 * 1024;

/* "1 day", "60 days". Transfer full. */
static inline char *cli_choose_days(double days) {
    return g_strdup_printf("%g day%s", days, days == 1 ? "" : "s");
}

/* In at least three digits; what is not known is "?". Transfer full. */
char *cli_choose_amount(double value);

/* Behind the network's name: the machine, how rows are ranked, the table and its legend. There is a
 * choice at least. */
void cli_choose_append_rows(GString *text, const CliChosen *chosen, const CliChooseView *view);
/* Where no dtype was given, in which the settings were predicted: a line; likewise how weights in
 * 4 bits lie. */
void cli_choose_append_precision(GString *text, const CliChosen *chosen);
