/* cli/choose/baseline.c - the simplest strategy that fits on the best one's GPUs: see choose.h. */
#include "cli/choose/private.h"
#include "cli/options/knob.h"
#include "cli/options/setting.h"
#include "cli/what-if/simple.h"

static bool is_tuned(const char *key) {
    static const char *const tuned[] = {"sharding", "checkpointing", "micro_batch", NULL};
    return g_strv_contains(tuned, key);
}

/* As the best one, but for what makes that more than simple, and what else is said. */
static CliPlanSource *simple_source(const CliChooseAsked *asked, const CliChoice *best,
                                    const char *and, GError **error) {
    g_autoptr(CliPlanSource) source = cli_plan_source_copy(asked->source);
    g_autofree char *own = g_strjoinv(" ", best->settings);
    g_autofree char *all = g_strconcat(own, " " CLI_PLAIN_SETTINGS " ", and, NULL);
    g_auto(GStrv) pairs = cli_settings_split(all);
    for (char **pair = pairs; *pair != NULL; pair += 2) {
        if (!is_tuned(pair[0]) && !cli_plan_source_set(source, pair[0], pair[1], error)) {
            return NULL;
        }
    }
    return g_steal_pointer(&source);
}

static GArray *simple_knobs(const CliChooseAsked *asked, const char *sharding) {
    GArray *knobs = cli_knobs_new();
    CliKnob tuned[] = {{g_strdup("sharding"), g_strsplit(sharding, ",", -1)},
                       {g_strdup("checkpointing"), g_strsplit("full,none", ",", -1)}};
    g_array_append_vals(knobs, tuned, G_N_ELEMENTS(tuned));
    for (guint i = 0; i < asked->knobs->len; i++) {
        const CliKnob *knob = &g_array_index(asked->knobs, CliKnob, i);
        if (g_str_equal(knob->key, "micro_batch")) {
            CliKnob batches = {g_strdup(knob->key), g_strdupv(knob->values)};
            g_array_append_val(knobs, batches);
        }
    }
    return knobs;
}

/* The best of a sharding, and of all batches and checkpointings; NULL: none fits, or with error. */
static CliChoice *best_simple(const CliChooseAsked *asked, CliChosen *chosen, CliPlanSource *source,
                              const char *sharding, GError **error) {
    const CliChoice *best = cli_choice_at(chosen, 0);
    g_autoptr(GPtrArray) clusters = g_ptr_array_new();
    g_ptr_array_add(clusters, (gpointer)best->cluster);
    g_autoptr(GArray) knobs = simple_knobs(asked, sharding);
    CliChooseAsked simple = {.source = source,
                             .network = asked->network,
                             .clusters = clusters,
                             .knobs = knobs,
                             .global_batch = asked->global_batch,
                             .top = 1,
                             .cores = asked->cores};
    g_autoptr(CliChosen) found = cli_choose_search(&simple, NULL, error);
    if (found == NULL) {
        return NULL;
    }
    chosen->n_predicted += found->n_predicted;
    chosen->n_not_fitting += found->n_not_fitting;
    chosen->n_exact += found->n_exact;
    if (found->choices->len == 0) {
        return NULL;
    }
    g_array_set_clear_func(found->choices, NULL); /* the first moves */
    for (guint k = 1; k < found->choices->len; k++) {
        cli_choice_clear(&g_array_index(found->choices, CliChoice, k));
    }
    return g_memdup2(found->choices->data, sizeof(CliChoice));
}

/* Where nothing simple has room without what ranks share, that stays as the best one has it. */
bool cli_choose_baseline(const CliChooseAsked *asked, CliChosen *chosen, GError **error) {
    static const char *const shardings[] = {"none", "full"};
    static const char *const sharing[] = {CLI_UNSHARED_SETTINGS, ""};
    const CliChoice *best = cli_choice_at(chosen, 0);
    for (guint k = 0; k < G_N_ELEMENTS(sharing) && chosen->baseline == NULL; k++) {
        g_autoptr(CliPlanSource) source = simple_source(asked, best, sharing[k], error);
        if (source == NULL) {
            return false;
        }
        for (guint i = 0; i < G_N_ELEMENTS(shardings) && chosen->baseline == NULL; i++) {
            GError *failure = NULL;
            chosen->baseline = best_simple(asked, chosen, source, shardings[i], &failure);
            if (failure != NULL) {
                g_propagate_error(error, failure);
                return false;
            }
        }
    }
    return true;
}
