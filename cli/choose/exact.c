#include "cli/choose/exact.h"

#include <math.h>
#include <string.h>

#include "cli/choose/private.h"
#include "cli/predict/predict.h"

/* Of a step's time. 70 settings on spines and on nodes of two kinds were off by 0.3 % at most.
 * Those that retry take longer rank by rank, up to twice, so what they promise is a bound. */
static const double MARGIN = 0.02;

static bool is_near(double value, double limit) {
    return limit > 0 && fabs(value / limit - 1) < MARGIN;
}

/* It may be on the other side of the deadline, or of the budget. */
static bool is_at_a_limit(const CliChooseAsked *asked, const CliChoice *choice) {
    return is_near(cli_choice_days(choice, asked->tokens), asked->most_days) ||
           is_near(cli_choice_price(choice, asked->tokens), asked->most_price);
}

/* What stays within a deadline or a budget may all be of one place, and have more rows then. */
static guint rows_a_place(const CliChooseAsked *asked, const CliChosen *chosen) {
    bool has_limits = asked->most_days > 0 || asked->most_price > 0;
    guint rows = cli_chosen_rows_a_place(chosen, asked->top);
    return has_limits && asked->top == 0 ? CLI_ROWS_OF_ONE_PLACE : rows;
}

/* Whether it may be among the rows of its place: too few are known to be faster. */
static bool may_be_shown(const CliChosen *chosen, const CliChoice *choice, guint rows) {
    double most = (1 + MARGIN) * cli_choice_tokens_per_s(choice);
    guint n_faster = 0;
    for (guint i = 0; i < chosen->choices->len; i++) {
        const CliChoice *other = cli_choice_at(chosen, i);
        bool is_known = other->unlike == NULL && other->retries == 0;
        n_faster += is_known && other->cluster == choice->cluster &&
                    other->ranks == choice->ranks && cli_choice_tokens_per_s(other) > most;
    }
    return n_faster < rows;
}

static bool is_to_be_played(const CliChosen *chosen, const CliChoice *choice,
                            const CliChooseAsked *asked) {
    return choice->unlike != NULL && (is_at_a_limit(asked, choice) ||
                                      may_be_shown(chosen, choice, rows_a_place(asked, chosen)));
}

static char **values_of(const CliChoice *choice) {
    char **values = g_strdupv(choice->settings);
    for (guint i = 0; values[i] != NULL; i++) {
        char *value = g_strdup(strchr(values[i], '=') + 1);
        g_free(values[i]);
        values[i] = value;
    }
    return values;
}

/* In its place comes what every rank says of it. */
static bool play(const CliRange *range, CliPlanSource *source, CliChoice *choice, GError **error) {
    g_auto(GStrv) values = values_of(choice);
    CliMisfit setting = cli_range_setting(range, choice->cluster, values);
    CliChoice exact;
    bool good =
        cli_range_set(range, source, values, &setting, error) &&
        cli_choice_predict(source, range->asked->network, choice->cluster, false, &exact, error);
    cli_misfit_clear(&setting);
    if (good) {
        exact.settings = g_steal_pointer(&choice->settings);
        cli_choice_clear(choice);
        *choice = exact;
    }
    return good;
}

static CliMachine *machine_of(CliChosen *chosen, const CliChoice *choice) {
    guint i = 0;
    while (g_array_index(chosen->machines, CliMachine, i).cluster != choice->cluster) {
        i++;
    }
    return &g_array_index(chosen->machines, CliMachine, i);
}

/* One rank of each kind had room, and another has not. */
static void move_to_misfits(CliChosen *chosen, guint place) {
    CliChoice misfit = g_array_index(chosen->choices, CliChoice, place);
    memset(&g_array_index(chosen->choices, CliChoice, place), 0, sizeof misfit);
    g_array_remove_index(chosen->choices, place);
    machine_of(chosen, &misfit)->n_fit--;
    chosen->n_not_fitting++;
    cli_chosen_keep(chosen, &misfit);
}

static bool play_one(CliChosen *chosen, const CliRange *range, CliPlanSource *source, guint place,
                     GError **error) {
    CliChoice *choice = &g_array_index(chosen->choices, CliChoice, place);
    if (!play(range, source, choice, error)) {
        return false;
    }
    chosen->n_exact++;
    if (!choice->fits) {
        move_to_misfits(chosen, place);
    }
    return true;
}

/* Where nothing fits. */
static bool play_nearest(CliChosen *chosen, const CliRange *range, CliPlanSource *source,
                         GError **error) {
    CliChoice nearest = *chosen->nearest;
    g_clear_pointer(&chosen->nearest, g_free);
    machine_of(chosen, &nearest)->unlike = nearest.unlike;
    if (!play(range, source, &nearest, error)) {
        cli_choice_clear(&nearest);
        return false;
    }
    chosen->n_exact++;
    chosen->n_not_fitting -= nearest.fits;
    cli_chosen_keep(chosen, &nearest);
    return true;
}

/* The first that is to be played; their number: none is. Those before it are faster, and may rule
 * out what is behind. */
static guint next_of(CliChosen *chosen, const CliChooseAsked *asked) {
    cli_chosen_rank(chosen);
    guint i = 0;
    while (i < chosen->choices->len && !is_to_be_played(chosen, cli_choice_at(chosen, i), asked)) {
        i++;
    }
    return i;
}

static bool note_unlike(CliChosen *chosen) {
    bool any = false;
    for (guint i = 0; i < chosen->choices->len; i++) {
        const CliChoice *choice = cli_choice_at(chosen, i);
        if (choice->unlike != NULL) {
            machine_of(chosen, choice)->unlike = choice->unlike;
            any = true;
        }
    }
    return any;
}

/* Of those that would be played if none turned out to be faster than promised. */
static void show(CliProgress *progress, const CliChosen *chosen, const CliChooseAsked *asked) {
    guint left = 0;
    for (guint i = 0; i < chosen->choices->len; i++) {
        const CliChoice *choice = cli_choice_at(chosen, i);
        left += is_to_be_played(chosen, choice, asked);
    }
    cli_progress_show(progress, chosen->n_exact / (double)MAX(1, chosen->n_exact + left));
}

bool cli_chosen_play_exactly(CliChosen *chosen, const CliRange *range, CliPlanSource *source,
                             bool is_shown, GError **error) {
    bool any_unlike = note_unlike(chosen);
    g_autoptr(CliProgress) progress =
        is_shown && any_unlike ? cli_progress_new("playing every GPU of the best") : NULL;
    for (guint next; (next = next_of(chosen, range->asked)) < chosen->choices->len;) {
        if (!play_one(chosen, range, source, next, error)) {
            return false;
        }
        if (progress != NULL) {
            show(progress, chosen, range->asked);
        }
    }
    bool fits_none = chosen->choices->len == 0 && chosen->nearest != NULL;
    return !fits_none || chosen->nearest->unlike == NULL ||
           play_nearest(chosen, range, source, error);
}
