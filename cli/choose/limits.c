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

/* Of each machine, in the field of it that lies there. */
static void note_least(CliChosen *chosen, Measure measure, double tokens, gsize field) {
    for (guint i = 0; i < chosen->choices->len; i++) {
        const CliChoice *choice = cli_choice_at(chosen, i);
        double amount = measure(choice, tokens);
        for (guint k = 0; k < chosen->machines->len; k++) {
            CliMachine *machine = &g_array_index(chosen->machines, CliMachine, k);
            CliLeast *least = G_STRUCT_MEMBER_P(machine, field);
            if (machine->cluster == choice->cluster &&
                (least->amount <= 0 || amount < least->amount)) {
                *least = (CliLeast){amount, choice->ranks};
            }
        }
    }
}

void cli_chosen_keep_in_time(CliChosen *chosen, double tokens, double most_days) {
    note_least(chosen, cli_choice_days, tokens, G_STRUCT_OFFSET(CliMachine, days));
    chosen->quickest =
        keep_within(chosen->choices, cli_choice_days, tokens, most_days, &chosen->n_late);
}

void cli_chosen_keep_affordable(CliChosen *chosen, double tokens, double most_price) {
    note_least(chosen, cli_choice_price, tokens, G_STRUCT_OFFSET(CliMachine, price));
    chosen->cheapest =
        keep_within(chosen->choices, cli_choice_price, tokens, most_price, &chosen->n_dear);
}
