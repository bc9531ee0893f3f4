/* cli/choose/deadline.c - a training that is to be done by a day. */
#include <string.h>

#include "cli/choose/private.h"

static guint least_days(const GArray *choices, double tokens) {
    guint least = 0;
    for (guint i = 1; i < choices->len; i++) {
        if (cli_choice_days(&g_array_index(choices, CliChoice, i), tokens) <
            cli_choice_days(&g_array_index(choices, CliChoice, least), tokens)) {
            least = i;
        }
    }
    return least;
}

/* Of each machine. */
static void note_least_days(CliChosen *chosen, double tokens) {
    for (guint i = 0; i < chosen->choices->len; i++) {
        const CliChoice *choice = &g_array_index(chosen->choices, CliChoice, i);
        double days = cli_choice_days(choice, tokens);
        for (guint k = 0; k < chosen->places->len; k++) {
            CliPlace *place = &g_array_index(chosen->places, CliPlace, k);
            if (place->cluster == choice->cluster &&
                (place->least_days <= 0 || days < place->least_days)) {
                place->least_days = days;
                place->least_days_ranks = choice->ranks;
            }
        }
    }
}

void cli_chosen_keep_in_time(CliChosen *chosen, double tokens, double most_days) {
    GArray *choices = chosen->choices;
    note_least_days(chosen, tokens);
    guint least = least_days(choices, tokens), n_kept = 0, n_all = choices->len;
    for (guint i = 0; i < n_all; i++) {
        CliChoice *choice = &g_array_index(choices, CliChoice, i);
        if (cli_choice_days(choice, tokens) <= most_days) {
            g_array_index(choices, CliChoice, n_kept++) = *choice;
        } else {
            if (i == least) { /* then none is done in time */
                chosen->quickest = g_memdup2(choice, sizeof *choice);
            } else {
                cli_choice_clear(choice);
            }
            chosen->n_late++;
        }
    }
    /* What lies behind has moved, or is cleared. */
    memset(&g_array_index(choices, CliChoice, n_kept), 0, (n_all - n_kept) * sizeof(CliChoice));
    g_array_set_size(choices, n_kept);
}
