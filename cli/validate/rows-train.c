#include "cli/validate/rows-train.h"

#include <math.h>
#include <string.h>

#include "cli/data-dir.h"
#include "cli/validate/train-row.h"
#include "cli/validate/train-words.h"
#include "memory/options.h"
#include "models/network.h"
#include "plan/build/build.h"
#include "plan/strategy/strategy.h"
#include "sim/predict.h"
#include "sim/work.h"

#define CLUSTER "cluster." /* before a number of the cluster */

enum {
    STEPS_TO_SETTLE = 20,
    GPUS_A_NODE_MOST = 100000 /* as cluster files have it */
};

static const char *const table_columns[] = {
#define COLUMN(name) #name,
#define NUMBER(name) #name,
#include "cli/validate/train-columns.def"
#undef COLUMN
#undef NUMBER
    NULL};
static const char *const rule_settings[] = {"framework", "cluster",   "cluster.",  "network",
                                            "network.",  "strategy.", "allocator", "flops",
                                            "memory",    "memory_of", "skip",      NULL};
const CliRuleWords cli_train_words = {table_columns, rule_settings};

static const char *const numbers[] = {
#define COLUMN(name)
#define NUMBER(name) #name,
#include "cli/validate/train-columns.def"
#undef COLUMN
#undef NUMBER
};

/* Rows are read in plain digits later (train-row.h). */
static bool is_number(const CliCsv *csv, const CliCsvRow *row, const char *column, GError **error) {
    double ignored;
    g_autofree char *plain = cli_train_words_number(column, cli_csv_text(csv, row, column));
    return plan_parse_double(plain, &ignored) || cli_csv_number(csv, row, column, &ignored, error);
}

bool cli_train_check(const CliCsv *csv, GError **error) {
    for (unsigned i = 0; i < csv->n_rows; i++) {
        for (unsigned k = 0; k < G_N_ELEMENTS(numbers); k++) {
            if (!is_number(csv, &csv->rows[i], numbers[k], error)) {
                return false;
            }
        }
    }
    return true;
}

/* ---- one row on its way --------------------------------------------------------------------- */

typedef struct {
    const CliCsv *csv;
    CliCsvRow row; /* its open fields filled */
    CliPublished *published;
    GPtrArray *settings; /* PlanIniEntry */
    PlanStrategy strategy;
    ModelCluster *cluster;
    ModelNetwork *network;
    MemoryOptions allocator;
    Plan *plan;
    GString *said; /* the settings as text */
    char *skipped; /* why */
    bool unplayed; /* as SimOptions.unplayed */
} Case;

static void clear_case(Case *c) {
    cli_train_row_fields_clear(&c->row);
    g_ptr_array_unref(c->settings);
    model_cluster_free(c->cluster);
    model_network_free(c->network);
    g_clear_pointer(&c->plan, plan_free);
    g_string_free(c->said, TRUE);
    g_free(c->skipped);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Case, clear_case)

static const PlanIni *ini_of(const Case *c) {
    return cli_published_rules(c->published)->ini;
}

static double number(const Case *c, const char *column) {
    double value = NAN;
    cli_csv_number(c->csv, &c->row, column, &value, NULL);
    return value;
}

/* A network that the row describes is named by the row's place, which who reads the reason knows;
 * without it equal reasons of several rows are equal texts. */
static const char *without_place(const Case *c, const char *why) {
    g_autofree char *table = g_path_get_basename(c->csv->path);
    g_autofree char *place = g_strdup_printf("%s:%u: ", table, c->row.line);
    return g_str_has_prefix(why, place) ? why + strlen(place) : why;
}

/* Takes the message; the row is skipped for it. Returns true: no error of the table's. */
static bool skip(Case *c, const char *why) {
    if (!c->skipped) {
        c->skipped = g_strdup(without_place(c, why));
    }
    return true;
}

/* An entry's value, where "$COLUMN" is the row's field; NULL (and skipped) when that is empty. */
static const char *value_of(Case *c, const PlanIniEntry *entry) {
    if (*entry->value != '$') {
        return entry->value;
    }
    const char *text = cli_csv_text(c->csv, &c->row, entry->value + 1);
    if (!*text) {
        g_autofree char *why = g_strdup_printf("the source does not say %s", entry->value + 1);
        skip(c, why);
        return NULL;
    }
    return text;
}

static void say(Case *c, const char *key, const char *value) {
    g_string_append_printf(c->said, "%s%s=%s", c->said->len ? " " : "", key, value);
}

/* ---- settings ------------------------------------------------------------------------------- */

static bool set_strategy(Case *c, const PlanIniEntry *entry, const char *key, GError **error) {
    g_autoptr(GError) cause = NULL;
    const char *value = value_of(c, entry);
    if (!value || plan_strategy_set(&c->strategy, key, value, &cause)) {
        if (value) {
            say(c, key, value);
        }
        return true;
    }
    return *entry->value == '$' ? skip(c, cause->message)
                                : plan_ini_refuse(ini_of(c), entry, error, "%s", cause->message);
}

static bool set_allocator(Case *c, const PlanIniEntry *entry, GError **error) {
    g_autoptr(GError) cause = NULL;
    return memory_options_parse(entry->value, &c->allocator, &cause) ||
           plan_ini_refuse(ini_of(c), entry, error, "%s", cause->message);
}

/* Settings of a few words each; whoever reads one takes the first for granted. */
static bool check_word(const Case *c, const PlanIniEntry *entry, GError **error) {
    static const struct {
        const char *key, *words;
    } known[] = {{"flops", "palm, model, all"},
                 {"memory", "reserved, allocated, active, device"},
                 {"memory_of", "fullest, first"}};
    for (unsigned i = 0; i < G_N_ELEMENTS(known); i++) {
        g_auto(GStrv) words = g_strsplit(known[i].words, ", ", -1);
        if (g_str_equal(entry->key, known[i].key) &&
            !g_strv_contains((const char *const *)words, entry->value)) {
            return plan_ini_refuse(ini_of(c), entry, error, "%s = %s is unknown; give one of %s",
                                   entry->key, entry->value, known[i].words);
        }
    }
    return true;
}

/* Rules give a cluster's numbers one by one; a file that had them would be refused where they do
 * not go together, and so is the rule. */
static bool check_cluster(const Case *c, GError **error) {
    g_autoptr(GPtrArray) given = g_ptr_array_new();
    for (guint i = 0; i < c->settings->len; i++) {
        const PlanIniEntry *entry = c->settings->pdata[i];
        if (g_str_has_prefix(entry->key, CLUSTER)) {
            g_ptr_array_add(given, c->settings->pdata[i]);
        }
    }
    return model_cluster_check_set(c->cluster, ini_of(c), given, error);
}

static bool is_pytorch(const PlanIniEntry *entry) {
    return g_str_equal(entry->key, "strategy.pytorch");
}

/* The version stands first among what is said of a row, wherever a rule has it. */
static bool apply_pytorch(Case *c, GError **error) {
    for (guint i = 0; i < c->settings->len; i++) {
        const PlanIniEntry *entry = c->settings->pdata[i];
        if (is_pytorch(entry) && !set_strategy(c, entry, "pytorch", error)) {
            return false;
        }
    }
    return true;
}

/* What a program makes of any shape (its loss, how it turns pairs), and no column of the row. */
static bool is_of_program(const PlanIniEntry *entry) {
    return *entry->value != '$' && !g_str_equal(entry->key, "network.family");
}

static bool apply(Case *c, GString *network, GError **error) {
    bool named = cli_rules_value(c->settings, "network") != NULL;
    for (guint i = 0; i < c->settings->len; i++) {
        const PlanIniEntry *entry = c->settings->pdata[i];
        const char *dot = strchr(entry->key, '.');
        bool good = true;
        if (is_pytorch(entry)) {
            continue;
        }
        if (g_str_has_prefix(entry->key, "strategy.")) {
            good = set_strategy(c, entry, dot + 1, error);
        } else if (g_str_has_prefix(entry->key, CLUSTER)) {
            good = model_cluster_set(c->cluster, dot + 1, ini_of(c), entry, error);
            say(c, dot + 1, entry->value);
        } else if (g_str_has_prefix(entry->key, "network.") && (!named || is_of_program(entry))) {
            const char *value = value_of(c, entry);
            g_string_append_printf(network, "%s = %s\n", dot + 1, value ? value : "1");
            if (*entry->value != '$') {
                say(c, entry->key, entry->value); /* what is of a column stands in the table */
            }
        } else if (g_str_equal(entry->key, "allocator")) {
            good = set_allocator(c, entry, error);
            say(c, entry->key, entry->value);
        } else {
            good = check_word(c, entry, error);
        }
        if (!good) {
            return false;
        }
    }
    return check_cluster(c, error);
}

/* Its own length is the file's, but for a rule that says another. */
static GString *without_length(const char *shape, const char *program) {
    GString *all = g_string_new(shape);
    const char *length = strstr(shape, "\nseq ="), *end = length ? strchr(length + 1, '\n') : NULL;
    bool is_said = g_str_has_prefix(program, "seq =") || strstr(program, "\nseq =");
    if (is_said && end) {
        g_string_erase(all, length - shape, end - length);
    }
    return all;
}

/* A file's shape, and of the lines of a program those whose key it does not have. */
static char *join_network(const char *file, const char *program) {
    g_autoptr(GString) all = without_length(file, program);
    g_autofree char *shape = g_strdup(all->str);
    g_auto(GStrv) lines = g_strsplit(program, "\n", -1);
    for (char **line = lines; *line; line++) {
        const char *end = strstr(*line, " = ");
        g_autofree char *key = end ? g_strdup_printf("\n%.*s =", (int)(end - *line), *line) : NULL;
        if (key && !strstr(shape, key)) {
            g_string_append_printf(all, "%s%s\n", g_str_has_suffix(all->str, "\n") ? "" : "\n",
                                   *line);
        }
    }
    return g_string_free(g_steal_pointer(&all), FALSE);
}

/* Where a program does something that this family of networks cannot, its shape alone. */
static bool read_named_network(Case *c, const char *name, const char *program, GError **error) {
    g_autofree char *path = cli_data_find(CLI_DATA_NETWORKS, name, error), *shape = NULL;
    if (!path || !g_file_get_contents(path, &shape, NULL, error)) {
        return false;
    }
    g_autofree char *text = join_network(shape, program);
    c->network = model_network_read(text, strlen(text), path, NULL);
    if (!c->network) {
        c->network = model_network_read_file(path, error);
        say(c, "network", "its file alone");
    }
    if (c->network && c->network->family == &model_llama) { /* angles, for as many as there are */
        c->network->seq = MAX(c->network->seq, c->strategy.seq);
    }
    return c->network != NULL;
}

static bool read_network(Case *c, const GString *text, GError **error) {
    const char *name = cli_rules_value(c->settings, "network");
    if (name) {
        return read_named_network(c, name, text->str, error);
    }
    g_autoptr(GError) cause = NULL;
    g_autofree char *file = g_strdup_printf("%s:%u", c->csv->path, c->row.line);
    c->network = model_network_read(text->str, text->len, file, &cause);
    if (c->network) {
        return true;
    }
    const char *what = strstr(cause->message, ": "); /* lines of our own text tell nothing */
    return skip(c, what ? what + 2 : cause->message);
}

static double gpus_a_node(const Case *c) {
    double said = number(c, "gpus_per_node");
    bool is_ours = isnan(said) || c->cluster->intra_node_beyond_host;
    return is_ours ? (double)c->cluster->topology_gpus_per_node : said;
}

static void set_topology(Case *c) {
    double gpus = number(c, "gpus"), a_node = gpus_a_node(c);
    if (a_node < 1 || a_node > GPUS_A_NODE_MOST || a_node != floor(a_node)) {
        g_autofree char *why =
            g_strdup_printf("gpus_per_node must be a whole number from 1 to %d, not '%s'",
                            GPUS_A_NODE_MOST, cli_csv_text(c->csv, &c->row, "gpus_per_node"));
        skip(c, why);
        return;
    }
    uint32_t used = (uint32_t)fmin(a_node, isnan(gpus) ? a_node : fmax(gpus, 1));
    uint32_t among = used < 32 ? (1u << used) - 1 : UINT32_MAX;
    if (model_cluster_links_share(c->cluster, among) == 0) {
        skip(c,
             "its GPU's links are known of nodes that have fewer, by no cluster file of so many");
        return;
    }
    c->cluster->topology_gpus_per_node = (uint64_t)a_node;
    c->cluster->topology_nodes = gpus >= 1 ? (uint64_t)ceil(gpus / a_node) : 1;
}

/* What the row says of its network holds where no rule does. */
static bool set_network(Case *c) {
    double rate =
        cli_train_row_nic_gb_per_s(cli_csv_text(c->csv, &c->row, "interconnect"), gpus_a_node(c));
    if (rate > 0 && rate != c->cluster->inter_node_nic_gb_per_s &&
        !cli_rules_value(c->settings, "cluster.inter_node.nic_gb_per_s")) {
        c->cluster->inter_node_nic_gb_per_s = rate;
        g_autofree char *digits = g_strdup_printf("%g", rate);
        say(c, "inter_node.nic_gb_per_s", digits);
    }
    return c->cluster->topology_nodes == 1 || c->cluster->inter_node_nic_gb_per_s > 0 ||
           skip(c, "neither the source nor a cluster file of this hardware names a network");
}

static bool settle(Case *c, GError **error) {
    g_autoptr(GString) network = g_string_new("[network]\n");
    plan_strategy_init(&c->strategy);
    memory_options_init(&c->allocator);
    if (!apply_pytorch(c, error) || !apply(c, network, error)) {
        return false;
    }
    if (c->skipped) {
        return true;
    }
    if (!read_network(c, network, error)) {
        return false;
    }
    if (c->skipped) {
        return true;
    }
    set_topology(c);
    if (c->skipped) {
        return true;
    }
    set_network(c);
    cli_published_apply_tuning(c->published, c->cluster);
    g_autoptr(GError) cause = NULL;
    return plan_strategy_settle(&c->strategy, &cause) || skip(c, cause->message);
}

typedef Plan *Build(const PlanGraph *graph, const PlanStrategy *strategy, const char *name,
                    const char *text, GError **error);

static void build(Case *c, Build *by) {
    g_autoptr(GError) cause = NULL;
    g_autoptr(PlanGraph) graph = model_network_emit_for(c->network, &c->strategy, &cause);
    g_clear_pointer(&c->plan, plan_free);
    c->plan = graph ? by(graph, &c->strategy, c->network->name, c->network->text, &cause) : NULL;
    if (!c->plan) {
        skip(c, cause->message);
    }
}

/* Another case of the row may differ in its cluster alone. */
static bool has_same_plan(const Case *a, const Case *b) {
    g_autofree char *strategy = plan_strategy_text(&a->strategy);
    g_autofree char *other = plan_strategy_text(&b->strategy);
    return g_str_equal(strategy, other) && g_str_equal(a->network->name, b->network->name) &&
           g_str_equal(a->network->text, b->network->text);
}

/* like: a case before this one, which is done with its plan; NULL: none. */
static void make_plan(Case *c, Case *like) {
    if (like && like->plan && has_same_plan(c, like)) {
        c->plan = g_steal_pointer(&like->plan);
    } else {
        build(c, plan_build_folded);
    }
}

/* ---- what was measured ---------------------------------------------------------------------- */

static SimWork work_done(const Case *c, SimWorkKind kind) {
    const PlanRole *role = &c->plan->roles[plan_role_of_rank(c->plan, 0)];
    return sim_work_of_step(role, c->cluster, kind);
}

static bool has_convention(const Case *c, const char *word) {
    const char *convention = cli_rules_value(c->settings, "flops");
    return convention && g_str_equal(convention, word);
}

static bool tflops_are_all(const Case *c) {
    return has_convention(c, "all");
}

/* All pairs of attention, hidden ones too, for each that is seen: of the FLOPs of a step. */
static double of_all_pairs(const Case *c) {
    return work_done(c, SIM_WORK_ASKED_OF_ALL_PAIRS).flops / work_done(c, SIM_WORK_ASKED).flops;
}

static double measured_ms(const Case *c, const SimPrediction *prediction) {
    bool of_all = has_convention(c, "palm");
    SimWorkKind done = of_all ? SIM_WORK_DONE_OF_ALL_PAIRS : SIM_WORK_DONE;
    CliTrainWork work = {.tokens = (double)c->plan->tokens_per_rank,
                         .model_flops = prediction->flops * (of_all ? of_all_pairs(c) : 1),
                         .all_flops = work_done(c, done).flops,
                         .peak_flops = model_cluster_peak_flops(c->cluster, PLAN_BF16),
                         .tflops_are_all = tflops_are_all(c)};
    return cli_train_row_measured_ms(c->csv, &c->row, &work);
}

/* As PyTorch counts, whose products hold workspaces too. */
static double predicted_bytes(const Case *c, const SimPrediction *prediction) {
    const char *memory = cli_rules_value(c->settings, "memory");
    double besides = (double)prediction->workspace_bytes;
    double reserved = (double)prediction->peak_reserved_bytes + besides;
    if (memory && g_str_equal(memory, "allocated")) {
        return (double)prediction->peak.at.allocated_bytes + besides;
    }
    if (memory && g_str_equal(memory, "active")) {
        return (double)prediction->peak_active_bytes + besides;
    }
    return memory && g_str_equal(memory, "device")
               ? reserved + (double)c->cluster->device_outside_allocator_bytes
               : reserved;
}

/* What is published of a run is the pace of many steps. An allocator that gives memory back in the
 * first of them may have settled after a few, so such a run is played for longer. */
static SimPrediction *predict_plan(const Case *c, GError **error) {
    const char *memory_of = cli_rules_value(c->settings, "memory_of");
    SimOptions options = {.steps = SIM_DEFAULT_STEPS,
                          .allocator = &c->allocator,
                          .unplayed = c->unplayed,
                          .memory_of_first = memory_of && g_str_equal(memory_of, "first")};
    SimPrediction *prediction = sim_predict(c->plan, c->cluster, &options, NULL, error);
    if (prediction && prediction->alloc_retries && prediction->fits) {
        sim_prediction_free(prediction);
        options.steps = STEPS_TO_SETTLE;
        prediction = sim_predict(c->plan, c->cluster, &options, NULL, error);
    }
    return prediction;
}

/* Where passes do not repeat one another all of them are planned. */
static SimPrediction *predict(Case *c, GError **error) {
    g_autoptr(GError) cause = NULL;
    SimPrediction *prediction = predict_plan(c, &cause);
    if (g_error_matches(cause, SIM_ERROR, SIM_ERROR_FOLDED)) {
        g_clear_error(&cause);
        build(c, plan_build_for_one);
        prediction = c->plan ? predict_plan(c, &cause) : NULL;
    }
    if (cause) {
        g_propagate_error(error, g_steal_pointer(&cause));
    }
    return prediction;
}

static bool play(Case *c, CliTrainRow *row) {
    g_autoptr(GError) cause = NULL;
    g_autoptr(SimPrediction) prediction = predict(c, &cause);
    if (!prediction) {
        return c->skipped || skip(c, cause->message);
    }
    if (prediction->unsupported_dtype) {
        return skip(c, "the GPU cannot compute in this dtype");
    }
    row->fits = prediction->fits;
    row->retries = prediction->alloc_retries;
    row->bound_by = g_intern_string(prediction->bound_by);
    g_autofree char *gpu_kind = cli_run_gpu(c->cluster);
    row->gpu_kind = g_intern_string(gpu_kind);
    row->kind = cli_run_kind(c->plan, prediction);
    row->measured_ms = measured_ms(c, prediction);
    row->predicted_ms = (double)prediction->median_step_ns / 1e6;
    row->at_peak_ms = work_done(c, SIM_WORK_DONE).least_seconds * 1e3;
    double peak = number(c, "peak_mem_gib");
    row->measured_gib = peak > 0 ? peak : NAN;
    row->predicted_gib = predicted_bytes(c, prediction) / CLI_BYTES_PER_GIB;
    return !(isnan(row->measured_ms) && isnan(row->measured_gib)) ||
           skip(c, "neither a time nor a peak of memory is given");
}

/* ---- the whole way -------------------------------------------------------------------------- */

static char *label_of(const Case *c) {
    const char *const columns[] = {"model", "gpus", "seq_len", "micro_batch"};
    const char *text[G_N_ELEMENTS(columns)];
    for (unsigned i = 0; i < G_N_ELEMENTS(columns); i++) {
        text[i] = cli_csv_text(c->csv, &c->row, columns[i]);
    }
    return g_strdup_printf("%s, %s GPUs, %s x %s", text[0], text[1], text[3], text[2]);
}

/* Of the rules that gave something that stayed. */
static char *rules_of(const Case *c) {
    g_autoptr(GPtrArray) names = g_ptr_array_new();
    for (guint i = 0; i < c->settings->len; i++) {
        const char *section = ((const PlanIniEntry *)c->settings->pdata[i])->section;
        if (!g_ptr_array_find_with_equal_func(names, section, g_str_equal, NULL)) {
            g_ptr_array_add(names, (gpointer)section);
        }
    }
    g_ptr_array_add(names, NULL);
    return g_strjoinv("; ", (char **)names->pdata);
}

/* What there is to know before a play. */
static void describe(const Case *c, CliTrainRow *row) {
    const char *link = cli_csv_text(c->csv, &c->row, "interconnect");
    row->rules = rules_of(c);
    row->cluster = g_strdup(cli_rules_value(c->settings, "cluster"));
    row->time_from = g_strdup(cli_train_row_time_from(c->csv, &c->row, tflops_are_all(c)));
    row->network_link = g_strdup(*link ? link : "assumed");
}

static bool run(Case *c, Case *like, CliTrainRow *row, GError **error) {
    const char *why = cli_published_skip(c->settings);
    if (why) {
        return skip(c, why);
    }
    if (!cli_rules_value(c->settings, "framework")) {
        return skip(c, "no rule knows this framework");
    }
    if (!cli_rules_value(c->settings, "cluster")) {
        return skip(c, "no rule names a cluster for this hardware");
    }
    if (!cli_rules_value(c->settings, "network") &&
        !cli_rules_value(c->settings, "network.family")) {
        return skip(c, "no network of ours has this name, and its layers and d_model are not said");
    }
    const ModelCluster *cluster = cli_published_cluster(c->published, c->settings, error);
    if (!cluster) {
        return false;
    }
    c->cluster = model_cluster_copy(cluster);
    if (!settle(c, error)) {
        return false;
    }
    if (!c->skipped) {
        make_plan(c, like);
    }
    if (c->skipped) {
        return true;
    }
    row->nodes = (unsigned)c->cluster->topology_nodes;
    row->gpu = g_strdup(c->cluster->model);
    return play(c, row);
}

/* Up to its settings. */
static void open_case(Case *c, const CliCsv *csv, const CliCsvRow *row, CliPublished *published,
                      bool without_fits) {
    *c = (Case){.csv = csv, .published = published, .said = g_string_new(NULL)};
    c->row = cli_train_row_complete(csv, row, c->said);
    c->settings = cli_rules_apply(cli_published_rules(published), csv, &c->row,
                                  without_fits ? csv->name : NULL);
}

static bool predict_case(Case *c, Case *like, CliTrainRow *ret_row, GError **error) {
    CliTrainRow row = {.line = c->row.line, .label = label_of(c)};
    row.gpus = (unsigned)fmax(0, number(c, "gpus"));
    describe(c, &row);
    if (!run(c, like, &row, error)) {
        cli_train_row_clear(&row);
        return false;
    }
    row.skipped = g_steal_pointer(&c->skipped);
    row.settings = g_strdup(c->said->str);
    *ret_row = row;
    return true;
}

bool cli_train_predict(const CliCsv *csv, const CliCsvRow *csv_row, CliPublished *published,
                       CliTrainRow *ret_row, GError **error) {
    g_auto(Case) c;
    open_case(&c, csv, csv_row, published, false);
    return predict_case(&c, NULL, ret_row, error);
}

bool cli_train_settle(const CliCsv *csv, const CliCsvRow *csv_row, CliPublished *published,
                      CliTrainRow *ret_row, GError **error) {
    g_auto(Case) c;
    open_case(&c, csv, csv_row, published, false);
    c.unplayed = true;
    return predict_case(&c, NULL, ret_row, error);
}

/* By the very same entries of the rules. */
static bool has_same_settings(const Case *a, const Case *b) {
    return a->settings->len == b->settings->len &&
           memcmp(a->settings->pdata, b->settings->pdata,
                  a->settings->len * sizeof *a->settings->pdata) == 0;
}

bool cli_train_predict_twice(const CliCsv *csv, const CliCsvRow *csv_row, CliPublished *published,
                             CliTrainRow *ret_row, double *ret_without_ms, GError **error) {
    g_auto(Case) c, without;
    open_case(&c, csv, csv_row, published, false);
    open_case(&without, csv, csv_row, published, true);
    if (!predict_case(&c, NULL, ret_row, error)) {
        return false;
    }
    *ret_without_ms = ret_row->skipped ? NAN : ret_row->predicted_ms;
    if (ret_row->skipped || has_same_settings(&c, &without)) {
        return true;
    }
    CliTrainRow row;
    if (!predict_case(&without, &c, &row, error)) {
        cli_train_row_clear(ret_row);
        return false;
    }
    *ret_without_ms = row.predicted_ms;
    cli_train_row_clear(&row);
    return true;
}

void cli_train_row_clear(CliTrainRow *row) {
    g_free(row->label);
    g_free(row->skipped);
    g_free(row->settings);
    g_free(row->rules);
    g_free(row->gpu);
    g_free(row->cluster);
    g_free(row->time_from);
    g_free(row->network_link);
}
