/* cli/choose/search.c - the settings that are tried: see choose.h. */
#include "cli/choose/ahead.h"
#include "cli/choose/misfits.h"
#include "cli/choose/private.h"
#include "cli/cores.h"
#include "cli/data-dir.h"
#include "cli/knob.h"
#include "cli/progress.h"
#include "models/traced/traced.h"
#include "plan/plan.h"

static const double WORTH = 1.02; /* tokens a second, from one batch to its double */

enum {
    MOST_BATCH = 1 << 16,
    FEW_PASSES = 16,
    HYBRID_RANKS = 8 /* that share a copy, unless replicate says otherwise */
};

typedef struct {
    const CliChooseAsked *asked;
    CliPlanSource *source; /* a copy */
    PlanStrategy given;    /* what was given, unsettled */
    GArray *knobs;         /* CliKnob: asked for, and those taken in addition */
    bool doubles;          /* micro_batch has no values of its own */
    bool ranks_given, shardings_given, took_sync;
    const char *mixed; /* the dtype of mixed precision; NULL: none, or it is managed by autocast */
    GArray *misfits;   /* CliMisfit */
    CliProgress *progress; /* NULL: none is shown */
    CliChosen *chosen;
    /* Combinations without the batch, in the order in which they are tried; the one at hand. */
    guint n_rows, row;
    CliAhead *ahead;        /* NULL: one core */
    CliMisfitsOfAll *known; /* NULL likewise */
    bool is_ahead;          /* this one runs ahead of another, whose row it is in */
    bool is_passed;         /* and that has passed it */
} Search;

/* ---- knobs ---- */

static CliKnob *knob_at(const Search *search, guint i) {
    return &g_array_index(search->knobs, CliKnob, i);
}

static const CliKnob *find_knob(const Search *search, const char *key) {
    for (guint i = 0; i < search->knobs->len; i++) {
        if (g_str_equal(knob_at(search, i)->key, key)) {
            return knob_at(search, i);
        }
    }
    return NULL;
}

static bool is_open(const Search *search, const char *key) {
    return find_knob(search, key) == NULL && !plan_strategy_is_given(&search->given, key);
}

static void add_knob(Search *search, const char *key, const char *values) {
    CliKnob knob = {g_strdup(key), g_strsplit(values, ",", -1)};
    g_array_append_val(search->knobs, knob);
}

static int by_number(gconstpointer a, gconstpointer b) {
    double x = g_ascii_strtod(*(char *const *)a, NULL), y = g_ascii_strtod(*(char *const *)b, NULL);
    return (x > y) - (x < y);
}

/* Small batches first, so that a misfit says all of the larger ones. */
static void copy_knob(Search *search, const CliKnob *asked) {
    CliKnob knob = {g_strdup(asked->key), g_strdupv(asked->values)};
    if (g_str_equal(knob.key, "micro_batch") || g_str_equal(knob.key, "ranks")) {
        qsort(knob.values, g_strv_length(knob.values), sizeof(char *), by_number);
    }
    g_array_append_val(search->knobs, knob);
}

/* One node's GPUs, then twice as many, as far as any of the machines goes. */
static char *ranks_of(const GPtrArray *clusters) {
    GString *text = g_string_new(NULL);
    uint64_t least = G_MAXUINT64, most = 0;
    for (guint i = 0; i < clusters->len; i++) {
        const ModelCluster *cluster = clusters->pdata[i];
        least = MIN(least, cluster->topology_gpus_per_node);
        most = MAX(most, model_cluster_ranks(cluster));
    }
    for (uint64_t ranks = least; ranks <= most; ranks *= 2) {
        g_string_append_printf(text, "%s%" G_GUINT64_FORMAT, text->len > 0 ? "," : "", ranks);
    }
    return g_string_free(text, FALSE);
}

enum {
    MOST_SHARERS = 8 /* of experts: within a node, as diagnose tries it */
};

/* Of a network with experts as torchtitan has them, how many ranks may share them; else 1. */
static uint64_t sharers_of_experts(const Search *search) {
    g_autofree char *path = cli_data_find(CLI_DATA_NETWORKS, search->asked->network, NULL);
    g_autoptr(ModelNetwork) network = path != NULL ? model_network_read_file(path, NULL) : NULL;
    g_autofree char *flavour = plan_strategy_value(&search->given, "flavour");
    bool is_known = network != NULL && network->experts && network->code == MODEL_CODE_OWN &&
                    (g_str_equal(flavour, "auto") || g_str_equal(flavour, "fsdp2"));
    uint64_t ranks = is_known ? MOST_SHARERS : 1;
    while (ranks > 1 && network->experts % ranks) {
        ranks--;
    }
    return ranks;
}

/* The order is that of columns and, from right to left, of trying: what holds least comes first. */
static void settle_knobs(Search *search) {
    for (guint i = 0; i < search->asked->knobs->len; i++) {
        copy_knob(search, &g_array_index(search->asked->knobs, CliKnob, i));
    }
    search->ranks_given = !is_open(search, "ranks");
    search->shardings_given = !is_open(search, "sharding");
    if (!search->ranks_given) {
        g_autofree char *ranks = ranks_of(search->asked->clusters);
        add_knob(search, "ranks", ranks);
    }
    if (!search->shardings_given) {
        add_knob(search, "sharding", "full,hybrid,grad-op,none");
    }
    uint64_t sharers = is_open(search, "expert") ? sharers_of_experts(search) : 1;
    if (sharers > 1) {
        g_autofree char *values = g_strdup_printf("%" G_GUINT64_FORMAT ",1", sharers);
        add_knob(search, "expert", values);
    }
    if (is_open(search, "checkpointing")) {
        add_knob(search, "checkpointing", "full,every=2,selective-op,none");
    }
    search->took_sync = search->asked->global_batch > 0 && is_open(search, "accumulate_sync");
    if (search->took_sync) {
        add_knob(search, "accumulate_sync", "every,last");
    }
    search->doubles = is_open(search, "micro_batch");
    if (search->doubles) {
        add_knob(search, "micro_batch", "1");
    }
    search->n_rows = search->asked->clusters->len;
    search->chosen->keys = g_new0(char *, search->knobs->len + 1);
    for (guint i = 0; i < search->knobs->len; i++) {
        const CliKnob *knob = knob_at(search, i);
        search->n_rows *= g_str_equal(knob->key, "micro_batch") ? 1 : g_strv_length(knob->values);
        search->chosen->keys[i] = g_strdup(knob->key);
    }
}

/* ---- precision ---- */

static bool computes_in_bf16(const GPtrArray *clusters) {
    for (guint i = 0; i < clusters->len; i++) {
        if (model_cluster_peak_flops(clusters->pdata[i], PLAN_BF16) <= 0) {
            return false;
        }
    }
    return true;
}

/* What was traced in a dtype is not known in another. */
static bool is_traced_in_other(const char *name) {
    g_autofree char *path = cli_data_find(CLI_DATA_NETWORKS, name, NULL);
    g_autoptr(ModelNetwork) network = path != NULL ? model_network_read_file(path, NULL) : NULL;
    return network != NULL && network->traced != NULL && network->traced->dtype != PLAN_BF16;
}

/* Nobody trains a large network in fp32 by choice, so bf16 is taken where nothing is said. */
static void settle_precision(Search *search) {
    static const char *const keys[] = {"param_dtype", "model_dtype", "autocast"};
    bool open =
        computes_in_bf16(search->asked->clusters) && !is_traced_in_other(search->asked->network);
    for (guint i = 0; i < G_N_ELEMENTS(keys); i++) {
        open = open && is_open(search, keys[i]);
    }
    search->chosen->took_bf16 = open;
    if (find_knob(search, "param_dtype") || find_knob(search, "autocast")) {
        return;
    }
    g_autofree char *dtype = plan_strategy_value(&search->given, "param_dtype");
    bool is_mixed = g_str_equal(dtype, "bf16") || g_str_equal(dtype, "fp16");
    search->mixed = open ? "bf16" : is_mixed ? g_intern_string(dtype) : NULL;
}

static bool set_precision(Search *search, const char *sharding, GError **error) {
    CliPlanSource *source = search->source;
    if (search->mixed == NULL) {
        return true;
    }
    g_autofree char *flavour = plan_strategy_value(&search->given, "flavour");
    g_autofree char *reduce = plan_strategy_value(&search->given, "reduce_dtype");
    bool is_fsdp = g_str_has_prefix(flavour, "fsdp") ||
                   !(g_str_equal(sharding, "none") || g_str_equal(sharding, "optimizer-only"));
    return cli_plan_source_set(source, "param_dtype", is_fsdp ? search->mixed : "model", error) &&
           cli_plan_source_set(source, "reduce_dtype", is_fsdp ? reduce : "param", error) &&
           cli_plan_source_set(source, "autocast", is_fsdp ? "none" : search->mixed, error);
}

/* ---- one setting ---- */

typedef enum {
    TRY_FITS,
    TRY_FITS_NOT, /* nor will a larger batch */
    TRY_REFUSED,
    TRY_FAILED /* with error */
} Tried;

/* values: one a knob. */
static char *value_of(const Search *search, char **values, const char *key) {
    for (guint i = 0; i < search->knobs->len; i++) {
        if (g_str_equal(knob_at(search, i)->key, key)) {
            return g_strdup(values[i]);
        }
    }
    return plan_strategy_value(&search->given, key);
}

static uint64_t number_of(const Search *search, char **values, const char *key) {
    g_autofree char *text = value_of(search, values, key);
    return g_ascii_strtoull(text, NULL, 10);
}

static uint64_t batches_of(const Search *search, char **values, uint64_t ranks) {
    static const char *const sharing[] = {"tensor", "context", "pipeline"};
    for (guint i = 0; i < G_N_ELEMENTS(sharing); i++) {
        uint64_t sharers = number_of(search, values, sharing[i]);
        ranks /= MAX(sharers, 1); /* what does not divide is refused with its reason */
    }
    return ranks;
}

static CliMisfit place_of(const Search *search, const ModelCluster *cluster, char **values) {
    GString *others = g_string_new(cluster->name);
    for (guint i = 0; i < search->knobs->len; i++) {
        const char *key = knob_at(search, i)->key;
        bool own = g_str_equal(key, "sharding") || g_str_equal(key, "checkpointing") ||
                   g_str_equal(key, "micro_batch") || g_str_equal(key, "ranks");
        if (!own) {
            g_string_append_printf(others, " %s", values[i]);
        }
    }
    uint64_t ranks = number_of(search, values, "ranks");
    return (CliMisfit){.others = g_string_free(others, FALSE),
                       .sharding = value_of(search, values, "sharding"),
                       .checkpointing = value_of(search, values, "checkpointing"),
                       .ranks = ranks,
                       .micro_batch = number_of(search, values, "micro_batch"),
                       .batches = batches_of(search, values, ranks)};
}

/* Passes that make a step of this batch one of the global batch; 0: none do. */
static uint64_t passes(const Search *search, const CliMisfit *place) {
    uint64_t a_pass = place->batches * place->micro_batch, all = search->asked->global_batch;
    return a_pass > 0 && all >= a_pass && all % a_pass == 0 ? all / a_pass : 0;
}

/* With one pass, the last is every pass. */
static bool is_same_reduced(const Search *search, const CliMisfit *place, char **values) {
    g_autofree char *sync = value_of(search, values, "accumulate_sync");
    return search->took_sync && passes(search, place) == 1 && g_str_equal(sync, "last");
}

static Tried refuse(Search *search, GError *refusal, GError **error) {
    if (!g_error_matches(refusal, PLAN_ERROR, PLAN_ERROR_VALUE)) {
        g_propagate_error(error, refusal);
        return TRY_FAILED;
    }
    search->chosen->n_refused++;
    if (search->chosen->refusal == NULL) {
        search->chosen->refusal = g_strdup(refusal->message);
    }
    g_error_free(refusal);
    return TRY_REFUSED;
}

static bool set_all(Search *search, char **values, const CliMisfit *place, GError **error) {
    CliPlanSource *source = search->source;
    for (guint i = 0; i < search->knobs->len; i++) {
        if (!cli_plan_source_set(source, knob_at(search, i)->key, values[i], error)) {
            return false;
        }
    }
    if (search->asked->global_batch > 0) {
        g_autofree char *times =
            g_strdup_printf("%" G_GUINT64_FORMAT, (guint64)passes(search, place));
        if (!cli_plan_source_set(source, "accumulate", times, error)) {
            return false;
        }
    }
    return set_precision(search, place->sharding, error);
}

static Tried note(Search *search, CliChoice choice, CliMisfit *place, CliChoice *ret) {
    CliChosen *chosen = search->chosen;
    chosen->n_predicted++;
    *ret = choice;
    if (choice.fits) {
        return TRY_FITS;
    }
    chosen->n_not_fitting++;
    if (search->known != NULL) {
        cli_misfits_of_all_add(search->known, place);
    }
    g_array_append_val(search->misfits, *place);
    *place = (CliMisfit){0};
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
    bool good = cli_choice_predict(search->source, search->asked->network, cluster, ret, &refusal);
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
    CliMisfit place = place_of(search, cluster, values);
    Tried tried = TRY_FITS_NOT;
    g_autoptr(GError) refusal = NULL;
    CliChoice choice;
    if (search->is_passed) {
        tried = TRY_FAILED;
    } else if (cli_misfits_rule_out(search->misfits, &place)) {
        search->chosen->n_left_out++;
    } else if (search->asked->global_batch > 0 && passes(search, &place) == 0) {
        tried = place.batches * place.micro_batch > search->asked->global_batch ? TRY_FITS_NOT
                                                                                : TRY_REFUSED;
    } else if (is_same_reduced(search, &place, values)) {
        tried = TRY_REFUSED;
    } else if (!set_all(search, values, &place, error)) {
        tried = TRY_FAILED;
    } else if (predict(search, cluster, place.micro_batch, &choice, &refusal)) {
        choice.settings = cli_choice_settings(search->chosen->keys, values);
        tried = note(search, choice, &place, ret);
    } else {
        tried = refuse(search, g_steal_pointer(&refusal), error);
    }
    cli_misfit_clear(&place);
    return tried;
}

static void note_place(CliChosen *chosen, const CliChoice *choice) {
    uint64_t bytes = choice->reserved_bytes, most = choice->allocator_bytes;
    for (guint i = 0; i < chosen->places->len; i++) {
        CliPlace *place = &g_array_index(chosen->places, CliPlace, i);
        if (place->cluster != choice->cluster) {
            continue;
        }
        place->n_fit += choice->fits;
        if (!choice->fits && (!place->has_nearest || bytes < place->nearest_bytes)) {
            place->has_nearest = true;
            place->nearest_bytes = bytes;
            place->allocator_bytes = most;
        }
    }
}

static void keep(Search *search, CliChoice *choice) {
    CliChosen *chosen = search->chosen;
    note_place(chosen, choice);
    if (choice->fits) {
        g_array_append_val(chosen->choices, *choice);
        return;
    }
    bool nearer =
        chosen->nearest == NULL ||
        (double)choice->reserved_bytes - (double)choice->allocator_bytes <
            (double)chosen->nearest->reserved_bytes - (double)chosen->nearest->allocator_bytes;
    if (nearer) {
        cli_choice_free(chosen->nearest);
        g_clear_pointer(&chosen->ways, g_array_unref);
        chosen->nearest = g_memdup2(choice, sizeof *choice);
    } else {
        cli_choice_clear(choice);
    }
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
        keep(search, &choice);
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
    CliMisfit place = place_of(search, cluster, values);
    uint64_t size = 1, few = FEW_PASSES * number_of(search, values, "pipeline");
    for (place.micro_batch = 1; passes(search, &place) > few; place.micro_batch *= 2) {
        size = place.micro_batch;
    }
    size = passes(search, &place) > 0 ? place.micro_batch : size;
    cli_misfit_clear(&place);
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
        bool pays = outcome.tried == TRY_FITS && outcome.rate >= WORTH * before;
        bool goes_on = goes_up ? pays && size < MOST_BATCH : !outcome.calm && size > 1;
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
    if (batch == search->knobs->len) {
        return try_size(search, cluster, own, NULL, NULL, error).tried != TRY_FAILED;
    }
    return search->doubles ? try_doubled(search, cluster, own, &own[batch], error)
                           : try_listed(search, cluster, own, &own[batch],
                                        knob_at(search, batch)->values, error);
}

/* ---- all of them ---- */

static guint place_of_knob(const Search *search, const char *key) {
    guint i = 0;
    while (i < search->knobs->len && !g_str_equal(knob_at(search, i)->key, key)) {
        i++;
    }
    return i;
}

/* Groups of eight ranks are all there are. */
static bool is_full_again(const Search *search, const CliMisfit *place, char **values) {
    uint64_t others = number_of(search, values, "tensor") * number_of(search, values, "pipeline");
    return !search->shardings_given && is_open(search, "replicate") &&
           g_str_equal(place->sharding, "hybrid") && place->ranks <= HYBRID_RANKS * MAX(others, 1);
}

/* Stages reduce behind the last microbatch, are sharded, and keep what they have gathered. */
static bool is_not_for_stages(const Search *search, const CliMisfit *place, char **values) {
    g_autofree char *sync = value_of(search, values, "accumulate_sync");
    bool sharded_so =
        g_str_equal(place->sharding, "full") || g_str_equal(place->sharding, "hybrid");
    return number_of(search, values, "pipeline") > 1 &&
           ((!search->shardings_given && !sharded_so) ||
            (search->took_sync && g_str_equal(sync, "every")));
}

static const char NO_SCHEDULE[] = "pipeline_schedule interleaved-1f1b and looped-bfs are of "
                                  "pipeline_stages above 1, others of 1; "
                                  "give a knob values that go together";

/* Of knobs of schedules and of stages a rank, what does not go together; without stages, all but
 * the defaults. */
static bool is_no_schedule(const Search *search, char **values) {
    if (find_knob(search, "pipeline_schedule") == NULL &&
        find_knob(search, "pipeline_stages") == NULL) {
        return false;
    }
    g_autofree char *schedule = value_of(search, values, "pipeline_schedule");
    bool of_several =
        g_str_equal(schedule, "interleaved-1f1b") || g_str_equal(schedule, "looped-bfs");
    bool has_several = number_of(search, values, "pipeline_stages") > 1;
    return of_several != has_several || (number_of(search, values, "pipeline") == 1 &&
                                         (has_several || !g_str_equal(schedule, "1f1b")));
}

static void note_no_place(Search *search, const ModelCluster *cluster, uint64_t ranks) {
    search->chosen->n_refused += search->ranks_given;
    if (search->ranks_given && search->chosen->refusal == NULL) {
        uint64_t nodes =
            (ranks + cluster->topology_gpus_per_node - 1) / cluster->topology_gpus_per_node;
        search->chosen->refusal = g_strdup_printf(
            "%s has place for %" G_GUINT64_FORMAT " GPUs, not %" G_GUINT64_FORMAT
            "; with :%" G_GUINT64_FORMAT " behind its name it has that many nodes",
            cluster->name, model_cluster_ranks(cluster), (guint64)ranks, (guint64)nodes);
    }
}

/* Whether it is worth a prediction; what is not asked for is left out without a word. */
static bool is_worth(Search *search, const ModelCluster *cluster, char **values) {
    CliMisfit place = place_of(search, cluster, values);
    bool has_place = place.ranks <= model_cluster_ranks(cluster);
    bool worth = has_place && !is_full_again(search, &place, values) &&
                 !is_not_for_stages(search, &place, values) && !is_no_schedule(search, values);
    if (!has_place) {
        note_no_place(search, cluster, place.ranks);
    }
    cli_misfit_clear(&place);
    return worth;
}

/* The values of a row, and its machine. The last knob turns first. */
static char **values_of_row(const Search *search, guint row, const ModelCluster **ret_cluster) {
    guint n = search->knobs->len;
    char **values = g_new0(char *, n + 1);
    for (guint i = n; i-- > 0;) {
        const CliKnob *knob = knob_at(search, i);
        guint n_values = g_str_equal(knob->key, "micro_batch") ? 1 : g_strv_length(knob->values);
        values[i] = g_strdup(knob->values[row % n_values]);
        row /= n_values;
    }
    *ret_cluster = search->asked->clusters->pdata[row];
    return values;
}

static bool try_row(Search *search, GError **error) {
    const ModelCluster *cluster;
    g_auto(GStrv) values = values_of_row(search, search->row, &cluster);
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
    chosen->places = g_array_new(FALSE, FALSE, sizeof(CliPlace));
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

static guint cores_of(const Search *search) {
    const CliKnob *stages = find_knob(search, "pipeline");
    bool has_stages = search->given.pipeline > 1;
    for (guint i = 0; stages != NULL && stages->values[i] != NULL; i++) {
        has_stages |= g_ascii_strtoull(stages->values[i], NULL, 10) > 1;
    }
    return cli_cores(search->asked->cores, has_stages);
}

/* Others begin once there is a prediction: what is said of the network once has been by then. */
static bool try_rows(Search *search, GError **error) {
    for (; search->row < search->n_rows; search->row++) {
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
            cli_progress_show(search->progress, (double)(search->row + 1) / search->n_rows);
        }
    }
    return true;
}

static bool try_rows_on_cores(Search *search, guint cores, GError **error) {
    g_autoptr(CliMisfitsOfAll) known = cli_misfits_of_all_new();
    search->known = known;
    Search pattern = *search;
    search->ahead = cli_ahead_new(search->n_rows, cores, try_row_ahead, &pattern);
    pattern.ahead = search->ahead;
    bool good = try_rows(search, error);
    g_clear_pointer(&search->ahead, cli_ahead_free);
    search->known = NULL;
    return good;
}

/* ---- the order of what fits ---- */

static int compare(gconstpointer a, gconstpointer b, gpointer chosen) {
    const CliChoice *x = a, *y = b;
    bool calm_x = x->retries == 0, calm_y = y->retries == 0;
    if (calm_x != calm_y) {
        return calm_y - calm_x;
    }
    bool by_price = ((const CliChosen *)chosen)->by_price;
    double of_x = by_price ? -x->price_per_billion : cli_choice_tokens_per_s_per_gpu(x);
    double of_y = by_price ? -y->price_per_billion : cli_choice_tokens_per_s_per_gpu(y);
    return (of_x < of_y) - (of_x > of_y);
}

/* Equal ones stay in the order in which they were tried. */
static void rank(CliChosen *chosen) {
    chosen->by_price = chosen->choices->len > 0;
    for (guint i = 0; i < chosen->choices->len; i++) {
        chosen->by_price &= g_array_index(chosen->choices, CliChoice, i).price_per_billion > 0;
    }
    g_array_sort_with_data(chosen->choices, compare, chosen);
}

CliChosen *cli_choose_search(const CliChooseAsked *asked, CliProgress *progress, GError **error) {
    g_autoptr(CliChosen) chosen = chosen_new();
    g_autoptr(CliPlanSource) source = cli_plan_source_copy(asked->source);
    g_autoptr(GArray) knobs = cli_knobs_new();
    g_autoptr(GArray) misfits = cli_misfits_new();
    Search search = {.asked = asked,
                     .source = source,
                     .knobs = knobs,
                     .misfits = misfits,
                     .progress = progress,
                     .chosen = chosen};
    if (!cli_plan_source_strategy(source, &search.given, error)) {
        return NULL;
    }
    settle_knobs(&search);
    settle_precision(&search);
    for (guint i = 0; i < asked->clusters->len; i++) {
        CliPlace place = {.cluster = asked->clusters->pdata[i]};
        g_array_append_val(chosen->places, place);
    }
    guint cores = cores_of(&search);
    if (!(cores > 1 ? try_rows_on_cores(&search, cores, error) : try_rows(&search, error))) {
        return NULL;
    }
    if (chosen->n_predicted + chosen->n_refused == 0 &&
        (find_knob(&search, "pipeline_schedule") || find_knob(&search, "pipeline_stages"))) {
        chosen->refusal = g_strdup(NO_SCHEDULE);
    }
    rank(chosen);
    return g_steal_pointer(&chosen);
}
