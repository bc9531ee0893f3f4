#include "cli/choose/range.h"

#include "cli/source/data-dir.h"
#include "models/traced/traced.h"
#include "plan/plan.h"

enum {
    MOST_SHARERS = 8, /* of experts: within a node, as diagnose tries it */
    HYBRID_RANKS = 8  /* that share a copy, unless replicate says otherwise */
};

/* ---- knobs ---- */

const CliKnob *cli_range_knob(const CliRange *range, guint i) {
    return &g_array_index(range->knobs, CliKnob, i);
}

static bool is_knob(const CliRange *range, const char *key) {
    return cli_knobs_find(range->knobs, key) != NULL;
}

static bool is_open(const CliRange *range, const char *key) {
    return !is_knob(range, key) && !plan_strategy_is_given(&range->given, key);
}

static void add_knob(CliRange *range, const char *key, const char *values) {
    CliKnob knob = {g_strdup(key), g_strsplit(values, ",", -1)};
    g_array_append_val(range->knobs, knob);
}

static int by_number(gconstpointer a, gconstpointer b) {
    double x = g_ascii_strtod(*(char *const *)a, NULL), y = g_ascii_strtod(*(char *const *)b, NULL);
    return (x > y) - (x < y);
}

/* Small batches first, so that a misfit says all of the larger ones. */
static void copy_knob(CliRange *range, const CliKnob *asked) {
    CliKnob knob = {g_strdup(asked->key), g_strdupv(asked->values)};
    if (g_str_equal(knob.key, "micro_batch") || g_str_equal(knob.key, "ranks")) {
        qsort(knob.values, g_strv_length(knob.values), sizeof(char *), by_number);
    }
    g_array_append_val(range->knobs, knob);
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

/* Of a network with experts as torchtitan has them, how many ranks may share them; else 1. */
static uint64_t sharers_of_experts(const CliRange *range) {
    g_autofree char *path = cli_data_find(CLI_DATA_NETWORKS, range->asked->network, NULL);
    g_autoptr(ModelNetwork) network = path != NULL ? model_network_read_file(path, NULL) : NULL;
    g_autofree char *flavour = plan_strategy_value(&range->given, "flavour");
    bool is_known = network != NULL && network->experts && network->code == MODEL_CODE_OWN &&
                    (g_str_equal(flavour, "auto") || g_str_equal(flavour, "fsdp2"));
    uint64_t ranks = is_known ? MOST_SHARERS : 1;
    while (ranks > 1 && network->experts % ranks) {
        ranks--;
    }
    return ranks;
}

/* The order is that of columns and, from right to left, of trying: what holds least comes first. */
static void settle_knobs(CliRange *range) {
    for (guint i = 0; i < range->asked->knobs->len; i++) {
        copy_knob(range, &g_array_index(range->asked->knobs, CliKnob, i));
    }
    range->ranks_given = !is_open(range, "ranks");
    range->shardings_given = !is_open(range, "sharding");
    if (!range->ranks_given) {
        g_autofree char *ranks = ranks_of(range->asked->clusters);
        add_knob(range, "ranks", ranks);
    }
    if (!range->shardings_given) {
        add_knob(range, "sharding", "full,hybrid,grad-op,none");
    }
    uint64_t sharers = is_open(range, "expert") ? sharers_of_experts(range) : 1;
    if (sharers > 1) {
        g_autofree char *values = g_strdup_printf("%" G_GUINT64_FORMAT ",1", sharers);
        add_knob(range, "expert", values);
    }
    if (is_open(range, "checkpointing")) {
        add_knob(range, "checkpointing", "full,every=2,selective-op,none");
    }
    range->takes_sync = range->asked->global_batch > 0 && is_open(range, "accumulate_sync");
    if (range->takes_sync) {
        add_knob(range, "accumulate_sync", "every,last");
    }
    range->doubles = is_open(range, "micro_batch");
    if (range->doubles) {
        add_knob(range, "micro_batch", "1");
    }
    range->n_rows = range->asked->clusters->len;
    for (guint i = 0; i < range->knobs->len; i++) {
        const CliKnob *knob = cli_range_knob(range, i);
        range->n_rows *= g_str_equal(knob->key, "micro_batch") ? 1 : g_strv_length(knob->values);
    }
}

/* ---- precision ---- */

/* On every kind of its nodes. */
static bool computes_in_bf16(const ModelCluster *cluster) {
    bool does = true;
    for (uint32_t kind = 0; kind <= cluster->n_kinds; kind++) {
        does &= model_cluster_peak_flops(model_cluster_kind(cluster, kind), PLAN_BF16) > 0;
    }
    return does;
}

/* What was traced in a dtype is not known in another. */
static bool is_traced_in_other(const char *name) {
    g_autofree char *path = cli_data_find(CLI_DATA_NETWORKS, name, NULL);
    g_autoptr(ModelNetwork) network = path != NULL ? model_network_read_file(path, NULL) : NULL;
    return network != NULL && network->traced != NULL && network->traced->dtype != PLAN_BF16;
}

/* FSDP joins and cuts weights in 4 bits only where they lie in the network's dtype, and casts none
 * of it. Without FSDP it makes no difference. */
static bool settle_four_bits(CliRange *range, GError **error) {
    CliPlanSource *source = range->asked->source;
    if (range->given.lora_base == PLAN_LORA_BASE_MODEL || is_knob(range, "lora_base")) {
        return true;
    }
    range->takes_storage = is_open(range, "lora_base_storage");
    if (range->takes_storage && !cli_plan_source_set(source, "lora_base_storage", "model", error)) {
        return false;
    }
    if (range->takes_bf16 && !cli_plan_source_set(source, "model_dtype", "bf16", error)) {
        return false;
    }
    range->mixed = range->takes_bf16 ? NULL : range->mixed;
    return cli_plan_source_strategy(source, &range->given, error);
}

/* Nobody trains a large network in fp32 by choice, so bf16 is taken where nothing is said. */
static void settle_precision(CliRange *range) {
    static const char *const keys[] = {"param_dtype", "model_dtype", "autocast"};
    bool open = !is_traced_in_other(range->asked->network);
    for (guint i = 0; i < range->asked->clusters->len; i++) {
        open = open && computes_in_bf16(range->asked->clusters->pdata[i]);
    }
    for (guint i = 0; i < G_N_ELEMENTS(keys); i++) {
        open = open && is_open(range, keys[i]);
    }
    range->takes_bf16 = open;
    if (is_knob(range, "param_dtype") || is_knob(range, "autocast")) {
        return;
    }
    g_autofree char *dtype = plan_strategy_value(&range->given, "param_dtype");
    bool is_mixed = g_str_equal(dtype, "bf16") || g_str_equal(dtype, "fp16");
    range->mixed = open ? "bf16" : is_mixed ? g_intern_string(dtype) : NULL;
}

bool cli_range_init(CliRange *range, const CliChooseAsked *asked, GError **error) {
    *range = (CliRange){.asked = asked};
    if (!cli_plan_source_strategy(asked->source, &range->given, error)) {
        return false;
    }
    range->knobs = cli_knobs_new();
    settle_knobs(range);
    settle_precision(range);
    return settle_four_bits(range, error);
}

void cli_range_clear(CliRange *range) {
    g_clear_pointer(&range->knobs, g_array_unref);
}

char **cli_range_keys(const CliRange *range) {
    char **keys = g_new0(char *, range->knobs->len + 1);
    for (guint i = 0; i < range->knobs->len; i++) {
        keys[i] = g_strdup(cli_range_knob(range, i)->key);
    }
    return keys;
}

/* ---- rows ---- */

char **cli_range_row(const CliRange *range, guint row, const ModelCluster **ret_cluster) {
    guint n = range->knobs->len;
    char **values = g_new0(char *, n + 1);
    for (guint i = n; i-- > 0;) {
        const CliKnob *knob = cli_range_knob(range, i);
        guint n_values = g_str_equal(knob->key, "micro_batch") ? 1 : g_strv_length(knob->values);
        values[i] = g_strdup(knob->values[row % n_values]);
        row /= n_values;
    }
    *ret_cluster = range->asked->clusters->pdata[row];
    return values;
}

char *cli_range_value(const CliRange *range, char **values, const char *key) {
    for (guint i = 0; i < range->knobs->len; i++) {
        if (g_str_equal(cli_range_knob(range, i)->key, key)) {
            return g_strdup(values[i]);
        }
    }
    return plan_strategy_value(&range->given, key);
}

uint64_t cli_range_number(const CliRange *range, char **values, const char *key) {
    g_autofree char *text = cli_range_value(range, values, key);
    return g_ascii_strtoull(text, NULL, 10);
}

static uint64_t batches_of(const CliRange *range, char **values, uint64_t ranks) {
    static const char *const sharing[] = {"tensor", "context", "pipeline"};
    for (guint i = 0; i < G_N_ELEMENTS(sharing); i++) {
        uint64_t sharers = cli_range_number(range, values, sharing[i]);
        ranks /= MAX(sharers, 1); /* what does not divide is refused with its reason */
    }
    return ranks;
}

CliMisfit cli_range_setting(const CliRange *range, const ModelCluster *cluster, char **values) {
    GString *others = g_string_new(cluster->name);
    for (guint i = 0; i < range->knobs->len; i++) {
        const char *key = cli_range_knob(range, i)->key;
        bool own = g_str_equal(key, "sharding") || g_str_equal(key, "checkpointing") ||
                   g_str_equal(key, "micro_batch") || g_str_equal(key, "ranks");
        if (!own) {
            g_string_append_printf(others, " %s", values[i]);
        }
    }
    uint64_t ranks = cli_range_number(range, values, "ranks");
    return (CliMisfit){.others = g_string_free(others, FALSE),
                       .sharding = cli_range_value(range, values, "sharding"),
                       .checkpointing = cli_range_value(range, values, "checkpointing"),
                       .ranks = ranks,
                       .micro_batch = cli_range_number(range, values, "micro_batch"),
                       .batches = batches_of(range, values, ranks)};
}

/* ---- which are worth it ---- */

/* Groups of eight ranks are all there are. */
static bool is_full_again(const CliRange *range, const CliMisfit *setting, char **values) {
    uint64_t others =
        cli_range_number(range, values, "tensor") * cli_range_number(range, values, "pipeline");
    return !range->shardings_given && is_open(range, "replicate") &&
           g_str_equal(setting->sharding, "hybrid") &&
           setting->ranks <= HYBRID_RANKS * MAX(others, 1);
}

/* Stages reduce behind the last microbatch, are sharded, and keep what they have gathered. */
static bool is_not_for_stages(const CliRange *range, const CliMisfit *setting, char **values) {
    g_autofree char *sync = cli_range_value(range, values, "accumulate_sync");
    bool sharded_so =
        g_str_equal(setting->sharding, "full") || g_str_equal(setting->sharding, "hybrid");
    return cli_range_number(range, values, "pipeline") > 1 &&
           ((!range->shardings_given && !sharded_so) ||
            (range->takes_sync && g_str_equal(sync, "every")));
}

/* Of knobs of schedules and of stages a rank, what does not go together; without stages, all but
 * the defaults. */
static bool is_no_schedule(const CliRange *range, char **values) {
    if (!is_knob(range, "pipeline_schedule") && !is_knob(range, "pipeline_stages")) {
        return false;
    }
    g_autofree char *schedule = cli_range_value(range, values, "pipeline_schedule");
    bool of_several =
        g_str_equal(schedule, "interleaved-1f1b") || g_str_equal(schedule, "looped-bfs");
    bool has_several = cli_range_number(range, values, "pipeline_stages") > 1;
    return of_several != has_several || (cli_range_number(range, values, "pipeline") == 1 &&
                                         (has_several || !g_str_equal(schedule, "1f1b")));
}

bool cli_range_is_worth(const CliRange *range, const CliMisfit *setting, char **values) {
    return !is_full_again(range, setting, values) && !is_not_for_stages(range, setting, values) &&
           !is_no_schedule(range, values);
}

const char *cli_range_no_row(const CliRange *range) {
    bool has_schedules = is_knob(range, "pipeline_schedule") || is_knob(range, "pipeline_stages");
    return has_schedules ? "pipeline_schedule interleaved-1f1b and looped-bfs are of "
                           "pipeline_stages above 1, others of 1; "
                           "give a knob values that go together"
                         : NULL;
}

/* ---- a setting, as a plan ---- */

uint64_t cli_range_passes(const CliRange *range, const CliMisfit *setting) {
    uint64_t a_pass = setting->batches * setting->micro_batch, all = range->asked->global_batch;
    return a_pass > 0 && all >= a_pass && all % a_pass == 0 ? all / a_pass : 0;
}

static bool set_precision(const CliRange *range, CliPlanSource *source, const char *sharding,
                          GError **error) {
    if (range->mixed == NULL) {
        return true;
    }
    g_autofree char *flavour = plan_strategy_value(&range->given, "flavour");
    g_autofree char *reduce = plan_strategy_value(&range->given, "reduce_dtype");
    bool is_fsdp = g_str_has_prefix(flavour, "fsdp") ||
                   !(g_str_equal(sharding, "none") || g_str_equal(sharding, "optimizer-only"));
    return cli_plan_source_set(source, "param_dtype", is_fsdp ? range->mixed : "model", error) &&
           cli_plan_source_set(source, "reduce_dtype", is_fsdp ? reduce : "param", error) &&
           cli_plan_source_set(source, "autocast", is_fsdp ? "none" : range->mixed, error);
}

bool cli_range_set(const CliRange *range, CliPlanSource *source, char **values,
                   const CliMisfit *setting, GError **error) {
    for (guint i = 0; i < range->knobs->len; i++) {
        if (!cli_plan_source_set(source, cli_range_knob(range, i)->key, values[i], error)) {
            return false;
        }
    }
    if (range->asked->global_batch > 0) {
        g_autofree char *times =
            g_strdup_printf("%" G_GUINT64_FORMAT, (guint64)cli_range_passes(range, setting));
        if (!cli_plan_source_set(source, "accumulate", times, error)) {
            return false;
        }
    }
    return set_precision(range, source, setting->sharding, error);
}
