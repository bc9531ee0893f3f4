/* cli/choose/limits.c - a training that is to be done by a day, or for a sum. */
#include <string.h>

#include "cli/choose/private.h"

typedef double (*Measure)(const CliChoice *choice, double tokens);

static guint least_of(const GArray *choices, Measure measure, double tokens) {
    guint least = 0;
    for (guint i = 1; i < choices->len; i++) {
        if (measure(&g_array_index(choices, CliChoice, i), tokens) <
            measure(&g_array_index(choices, CliChoice, least), tokens)) {
            least = i;
        }
    }
    return least;
}

/* Leaves out what is beyond the limit, and counts it. Returns its least where nothing stays. */
static CliChoice *keep_within(GArray *choices, Measure measure, double tokens, double most,
                              guint *ret_n_beyond) {
    CliChoice *least_of_all = NULL;
    guint least = least_of(choices, measure, tokens), n_kept = 0, n_all = choices->len;
    for (guint i = 0; i < n_all; i++) {
        CliChoice *choice = &g_array_index(choices, CliChoice, i);
        if (measure(choice, tokens) <= most) {
            g_array_index(choices, CliChoice, n_kept++) = *choice;
        } else if (i == least) { /* then none is within */
            least_of_all = g_memdup2(choice, sizeof *choice);
        } else {
            cli_choice_clear(choice);
        }
    }
    /* What lies behind has moved, or is cleared. */
    memset(&g_array_index(choices, CliChoice, n_kept), 0, (n_all - n_kept) * sizeof(CliChoice));
    g_array_set_size(choices, n_kept);
    *ret_n_beyond = n_all - n_kept;
    return least_of_all;
}

/* For each machine the least of what it has, and on how many GPUs. */
static void note_days(CliPlace *place, const CliChoice *choice, double tokens) {
    double days = cli_choice_days(choice, tokens);
    if (place->least_days <= 0 || days < place->least_days) {
        place->least_days = days;
        place->least_days_ranks = choice->ranks;
    }
}

static void note_price(CliPlace *place, const CliChoice *choice, double tokens) {
    double price = cli_choice_price(choice, tokens);
    if (place->least_price <= 0 || price < place->least_price) {
        place->least_price = price;
        place->least_price_ranks = choice->ranks;
    }
}

static void note_at_places(CliChosen *chosen, double tokens,
                           void (*note)(CliPlace *place, const CliChoice *choice, double tokens)) {
    for (guint i = 0; i < chosen->choices->len; i++) {
        const CliChoice *choice = &g_array_index(chosen->choices, CliChoice, i);
        for (guint k = 0; k < chosen->places->len; k++) {
            CliPlace *place = &g_array_index(chosen->places, CliPlace, k);
            if (place->cluster == choice->cluster) {
                note(place, choice, tokens);
            }
        }
    }
}

void cli_chosen_keep_in_time(CliChosen *chosen, double tokens, double most_days) {
    note_at_places(chosen, tokens, note_days);
    chosen->quickest =
        keep_within(chosen->choices, cli_choice_days, tokens, most_days, &chosen->n_late);
}

void cli_chosen_keep_affordable(CliChosen *chosen, double tokens, double most_price) {
    note_at_places(chosen, tokens, note_price);
    chosen->cheapest =
        keep_within(chosen->choices, cli_choice_price, tokens, most_price, &chosen->n_dear);
}
