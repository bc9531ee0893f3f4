/* cli/choose/search.c - tries them, by the row: see choose.h. */
#include "cli/choose/ahead.h"
#include "cli/choose/exact.h"
#include "cli/choose/misfits.h"
#include "cli/choose/private.h"
#include "cli/choose/range.h"
#include "cli/host/cores.h"
#include "cli/say/progress.h"
#include "cli/source/cluster.h"
#include "cli/what-if/larger-batch.h"
#include "plan/plan.h"

enum {
    FEW_PASSES = 16
};

typedef struct {
    const CliChooseAsked *asked;
    const CliRange *range;
    CliPlanSource *source; /* a copy */
    GArray *misfits;       /* CliMisfit */
    CliProgress *progress; /* NULL: none is shown */
    CliChosen *chosen;
    guint row;              /* at hand */
    CliAhead *ahead;        /* NULL: one core */
    CliMisfitsOfAll *known; /* NULL likewise */
    bool is_ahead;          /* this one runs ahead of another, whose row it is in */
    bool is_passed;         /* and that has passed it */
} Search;

/* ---- one setting ---- */

typedef enum {
    TRY_FITS,
    TRY_FITS_NOT, /* nor will a larger batch */
    TRY_REFUSED,
    TRY_FAILED /* with error */
} Tried;

/* With one pass, the last is every pass. */
static bool is_same_reduced(const Search *search, const CliMisfit *setting, char **values) {
    g_autofree char *sync = cli_range_value(search->range, values, "accumulate_sync");
    return search->range->takes_sync && cli_range_passes(search->range, setting) == 1 &&
           g_str_equal(sync, "last");
}

static Tried refuse(Search *search, GError *refusal, GError **error) {
    if (!g_error_matches(refusal, PLAN_ERROR, PLAN_ERROR_VALUE)) {
        g_propagate_error(error, refusal);
        return TRY_FAILED;
    }
    CliChosen *chosen = search->chosen;
    chosen->n_refused++;
    if (chosen->refusal == NULL) {
        chosen->refusal = g_strdup(refusal->message);
    } else if (chosen->another == NULL && !g_str_equal(refusal->message, chosen->refusal)) {
        chosen->another = g_strdup(refusal->message);
    }
    g_error_free(refusal);
    return TRY_REFUSED;
}

static Tried note(Search *search, CliChoice choice, CliMisfit *setting, CliChoice *ret) {
    CliChosen *chosen = search->chosen;
    chosen->n_predicted++;
    *ret = choice;
    if (choice.fits) {
        return TRY_FITS;
    }
    chosen->n_not_fitting++;
    if (search->known != NULL) {
        cli_misfits_of_all_add(search->known, setting);
    }
    g_array_append_val(search->misfits, *setting);
    *setting = (CliMisfit){0};
    return TRY_FITS_NOT;
}

/* Hands it to the search that this one runs ahead of, and keeps what says how to go on. */
static void hand_over(Search *search, uint64_t micro_batch, CliChoice *choice, GError *refusal) {
    CliAheadFound found = {micro_batch, {0}, refusal != NULL ? g_error_copy(refusal) : NULL};
    if (refusal == NULL) {
        found.choice = *choice;
        choice->title = g_strdup(choice->title);
        choice->settings = NULL;
        choice->strategy = NULL;
        choice->header = NULL;
    }
    search->is_passed = !cli_ahead_put(search->ahead, search->row, found);
}

/* As cli_choice_predict(), once by whichever thread. */
static bool predict(Search *search, const ModelCluster *cluster, uint64_t micro_batch,
                    CliChoice *ret, GError **error) {
    CliAheadFound found;
    if (search->ahead != NULL && !search->is_ahead &&
        cli_ahead_take(search->ahead, search->row, micro_batch, &found)) {
        if (found.refusal != NULL) {
            g_propagate_error(error, found.refusal);
            return false;
        }
        *ret = found.choice;
        return true;
    }
    GError *refusal = NULL;
    bool good =
        cli_choice_predict(search->source, search->asked->network, cluster, true, ret, &refusal);
    if (search->is_ahead) {
        hand_over(search, micro_batch, ret, refusal);
    }
    if (!good) {
        g_propagate_error(error, refusal);
    }
    return good;
}

/* ret: gets what it came to where that is TRY_FITS or TRY_FITS_NOT, but by a larger sibling's
 * misfit, which leaves it untouched. */
static Tried try_one(Search *search, const ModelCluster *cluster, char **values, CliChoice *ret,
                     GError **error) {
    CliMisfit setting = cli_range_setting(search->range, cluster, values);
    Tried tried = TRY_FITS_NOT;
    g_autoptr(GError) refusal = NULL;
    CliChoice choice;
    if (search->is_passed) {
        tried = TRY_FAILED;
    } else if (cli_misfits_rule_out(search->misfits, &setting)) {
        search->chosen->n_left_out++;
    } else if (search->asked->global_batch > 0 && cli_range_passes(search->range, &setting) == 0) {
        tried = setting.batches * setting.micro_batch > search->asked->global_batch ? TRY_FITS_NOT
                                                                                    : TRY_REFUSED;
    } else if (is_same_reduced(search, &setting, values)) {
        tried = TRY_REFUSED;
    } else if (!cli_range_set(search->range, search->source, values, &setting, error)) {
        tried = TRY_FAILED;
    } else if (predict(search, cluster, setting.micro_batch, &choice, &refusal)) {
        choice.settings = cli_choice_settings(search->chosen->keys, values);
        tried = note(search, choice, &setting, ret);
    } else {
        tried = refuse(search, g_steal_pointer(&refusal), error);
    }
    cli_misfit_clear(&setting);
    return tried;
}

/* What a batch came to: rate is 0 where it does not fit. */
typedef struct {
    Tried tried;
    double rate; /* tokens a second */
    bool calm;   /* it fits, and no memory is given back */
} Outcome;

/* size: NULL: as values have it; else taken. */
static Outcome try_size(Search *search, const ModelCluster *cluster, char **values, char **place,
                        char *size, GError **error) {
    if (size != NULL) {
        g_free(*place);
        *place = size;
    }
    CliChoice choice = {0};
    Outcome outcome = {.tried = try_one(search, cluster, values, &choice, error)};
    if (choice.title != NULL) {
        outcome.rate = choice.fits ? cli_choice_tokens_per_s(&choice) : 0;
        outcome.calm = choice.fits && choice.retries == 0;
        cli_chosen_keep(search->chosen, &choice);
    }
    return outcome;
}

static char *number_text(uint64_t number) {
    return g_strdup_printf("%" G_GUINT64_FORMAT, (guint64)number);
}

static bool try_listed(Search *search, const ModelCluster *cluster, char **values, char **place,
                       char **sizes, GError **error) {
    Outcome outcome = {0};
    for (guint i = 0; sizes[i] != NULL && outcome.tried != TRY_FITS_NOT; i++) {
        outcome = try_size(search, cluster, values, place, g_strdup(sizes[i]), error);
        if (outcome.tried == TRY_FAILED) {
            return false;
        }
    }
    return true;
}

/* Small batches are the slow ones: a global batch is begun with few passes. Stages need more of
 * them, or stand still. */
static uint64_t first_size(const Search *search, const ModelCluster *cluster, char **values) {
    CliMisfit setting = cli_range_setting(search->range, cluster, values);
    uint64_t size = 1, few = FEW_PASSES * cli_range_number(search->range, values, "pipeline");
    for (setting.micro_batch = 1; cli_range_passes(search->range, &setting) > few;
         setting.micro_batch *= 2) {
        size = setting.micro_batch;
    }
    size = cli_range_passes(search->range, &setting) > 0 ? setting.micro_batch : size;
    cli_misfit_clear(&setting);
    return size;
}

/* Up while it pays, or else down to the first that fits calmly. */
static bool try_doubled(Search *search, const ModelCluster *cluster, char **values, char **place,
                        GError **error) {
    uint64_t size = first_size(search, cluster, values);
    Outcome outcome = try_size(search, cluster, values, place, number_text(size), error);
    bool goes_up = outcome.calm;
    double before = 0;
    while (outcome.tried != TRY_FAILED) {
        bool pays = outcome.tried == TRY_FITS && outcome.rate >= CLI_BATCH_WORTH * before;
        bool goes_on = goes_up ? pays && size < CLI_MOST_BATCH : !outcome.calm && size > 1;
        if (!goes_on || outcome.tried == TRY_REFUSED) {
            return true;
        }
        before = MAX(before, outcome.rate);
        size = goes_up ? 2 * size : size / 2;
        outcome = try_size(search, cluster, values, place, number_text(size), error);
    }
    return false;
}

/* All batches of a setting. */
static bool try_batches(Search *search, const ModelCluster *cluster, char **values, guint batch,
                        GError **error) {
    g_auto(GStrv) own = g_strdupv(values);
    if (batch == search->range->knobs->len) {
        return try_size(search, cluster, own, NULL, NULL, error).tried != TRY_FAILED;
    }
    return search->range->doubles ? try_doubled(search, cluster, own, &own[batch], error)
                                  : try_listed(search, cluster, own, &own[batch],
                                               cli_range_knob(search->range, batch)->values, error);
}

/* ---- all of them ---- */

static guint place_of_knob(const Search *search, const char *key) {
    guint n = search->range->knobs->len, i = 0;
    while (i < n && !g_str_equal(cli_range_knob(search->range, i)->key, key)) {
        i++;
    }
    return i;
}

static void note_no_place(Search *search, const ModelCluster *cluster, uint64_t ranks) {
    search->chosen->n_refused += search->range->ranks_given;
    if (search->range->ranks_given && search->chosen->refusal == NULL) {
        uint64_t nodes =
            (ranks + cluster->topology_gpus_per_node - 1) / cluster->topology_gpus_per_node;
        g_autofree char *others = cli_cluster_networked_with(cluster->model);
        g_autofree char *remedy =
            model_cluster_can_grow(cluster)
                ? g_strdup_printf("with :%" G_GUINT64_FORMAT
                                  " behind its name it has that many nodes",
                                  (guint64)nodes)
                : g_strdup_printf("it cannot have more nodes; name a cluster that can%s", others);
        search->chosen->refusal = g_strdup_printf(
            "%s has place for %" G_GUINT64_FORMAT " GPUs, not %" G_GUINT64_FORMAT "; %s",
            cluster->name, model_cluster_ranks(cluster), (guint64)ranks, remedy);
    }
}

/* Whether it is worth a prediction; what is not asked for is left out without a word. */
static bool is_worth(Search *search, const ModelCluster *cluster, char **values) {
    CliMisfit setting = cli_range_setting(search->range, cluster, values);
    bool has_room = setting.ranks <= model_cluster_ranks(cluster);
    bool worth = has_room && cli_range_is_worth(search->range, &setting, values);
    if (!has_room) {
        note_no_place(search, cluster, setting.ranks);
    }
    cli_misfit_clear(&setting);
    return worth;
}

static bool try_row(Search *search, GError **error) {
    const ModelCluster *cluster;
    g_auto(GStrv) values = cli_range_row(search->range, search->row, &cluster);
    guint batch = place_of_knob(search, "micro_batch");
    return !is_worth(search, cluster, values) || try_batches(search, cluster, values, batch, error);
}

static void clear_choice(gpointer choice) {
    cli_choice_clear(choice);
}

static CliChosen *chosen_new(void) {
    CliChosen *chosen = g_new0(CliChosen, 1);
    chosen->choices = g_array_new(FALSE, FALSE, sizeof(CliChoice));
    g_array_set_clear_func(chosen->choices, clear_choice);
    chosen->machines = g_array_new(FALSE, FALSE, sizeof(CliMachine));
    return chosen;
}

/* ---- on several cores ---- */

/* A search of one row, of which only what it hands over counts. pattern: the search as it was
 * settled. */
static void try_row_ahead(gpointer pattern, guint row) {
    Search search = *(const Search *)pattern;
    g_autoptr(CliPlanSource) source = cli_plan_source_copy(search.asked->source);
    g_autoptr(CliChosen) chosen = chosen_new();
    g_autoptr(GArray) misfits = cli_misfits_of_all_copy(search.known);
    chosen->keys = g_strdupv(search.chosen->keys);
    search.source = source;
    search.chosen = chosen;
    search.misfits = misfits;
    search.row = row;
    search.is_ahead = true;
    try_row(&search, NULL);
}

/* Others begin once there is a prediction: what is said of the network once has been by then. */
static bool try_rows(Search *search, GError **error) {
    for (; search->row < search->range->n_rows; search->row++) {
        if (!try_row(search, error)) {
            return false;
        }
        if (search->ahead != NULL) {
            cli_ahead_pass(search->ahead, search->row);
        }
        if (search->ahead != NULL && search->chosen->n_predicted > 0) {
            cli_ahead_begin(search->ahead);
        }
        if (search->progress != NULL) {
            cli_progress_show(search->progress, (double)(search->row + 1) / search->range->n_rows);
        }
    }
    return true;
}

static bool try_rows_on_cores(Search *search, guint cores, GError **error) {
    g_autoptr(CliMisfitsOfAll) known = cli_misfits_of_all_new();
    search->known = known;
    Search pattern = *search;
    search->ahead = cli_ahead_new(search->range->n_rows, cores, try_row_ahead, &pattern);
    pattern.ahead = search->ahead;
    bool good = try_rows(search, error);
    g_clear_pointer(&search->ahead, cli_ahead_free);
    search->known = NULL;
    return good;
}

static void begin_places(CliChosen *chosen, const GPtrArray *clusters) {
    for (guint i = 0; i < clusters->len; i++) {
        CliMachine machine = {.cluster = clusters->pdata[i]};
        g_array_append_val(chosen->machines, machine);
    }
}

static CliChosen *search_range(const CliRange *range, CliProgress *progress, GError **error) {
    const CliChooseAsked *asked = range->asked;
    g_autoptr(CliChosen) chosen = chosen_new();
    g_autoptr(CliPlanSource) source = cli_plan_source_copy(asked->source);
    g_autoptr(GArray) misfits = cli_misfits_new();
    Search search = {.asked = asked,
                     .range = range,
                     .source = source,
                     .misfits = misfits,
                     .progress = progress,
                     .chosen = chosen};
    chosen->keys = cli_range_keys(range);
    chosen->took_bf16 = range->takes_bf16;
    chosen->took_storage = range->takes_storage;
    begin_places(chosen, asked->clusters);
    guint cores = cli_cores(asked->cores, cli_knobs_have_stages(range->knobs, &range->given));
    if (!(cores > 1 ? try_rows_on_cores(&search, cores, error) : try_rows(&search, error))) {
        return NULL;
    }
    if (chosen->n_predicted + chosen->n_refused == 0) {
        chosen->refusal = g_strdup(cli_range_no_row(range));
    }
    if (progress != NULL) {
        cli_progress_wipe(progress);
    }
    if (!cli_chosen_play_exactly(chosen, range, source, progress != NULL, error)) {
        return NULL;
    }
    cli_chosen_rank(chosen);
    return g_steal_pointer(&chosen);
}

CliChosen *cli_choose_search(const CliChooseAsked *asked, CliProgress *progress, GError **error) {
    CliRange range;
    if (!cli_range_init(&range, asked, error)) {
        return NULL;
    }
    CliChosen *chosen = search_range(&range, progress, error);
    cli_range_clear(&range);
    return chosen;
}
