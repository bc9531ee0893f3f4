/* cli/published/train/settings.c - what rules and row make of a published run: see case.h. */
#include "cli/published/train/case.h"

#include <math.h>
#include <string.h>

#include "cli/published/train/link.h"
#include "cli/source/data-dir.h"

#define CLUSTER "cluster." /* before a number of the cluster */

enum {
    GPUS_A_NODE_MOST = 100000 /* as cluster files have it */
};

static const PlanIni *ini_of(const CliTrainCase *c) {
    return cli_published_rules(c->published)->ini;
}

/* An entry's value, where "$COLUMN" is the row's field; NULL (and skipped) when that is empty. */
static const char *value_of(CliTrainCase *c, const PlanIniEntry *entry) {
    if (*entry->value != '$') {
        return entry->value;
    }
    const char *text = cli_csv_text(c->csv, &c->row, entry->value + 1);
    if (!*text) {
        g_autofree char *why = g_strdup_printf("the source does not say %s", entry->value + 1);
        cli_train_skip(c, why);
        return NULL;
    }
    return text;
}

static void say(CliTrainCase *c, const char *key, const char *value) {
    g_string_append_printf(c->said, "%s%s=%s", c->said->len ? " " : "", key, value);
}

static bool set_strategy(CliTrainCase *c, const PlanIniEntry *entry, const char *key,
                         GError **error) {
    g_autoptr(GError) cause = NULL;
    const char *value = value_of(c, entry);
    if (!value || plan_strategy_set(&c->strategy, key, value, &cause)) {
        if (value) {
            say(c, key, value);
        }
        return true;
    }
    return *entry->value == '$' ? cli_train_skip(c, cause->message)
                                : plan_ini_refuse(ini_of(c), entry, error, "%s", cause->message);
}

static bool set_allocator(CliTrainCase *c, const PlanIniEntry *entry, GError **error) {
    g_autoptr(GError) cause = NULL;
    return memory_options_parse(entry->value, &c->allocator, &cause) ||
           plan_ini_refuse(ini_of(c), entry, error, "%s", cause->message);
}

/* Settings of a few words each; whoever reads one takes the first for granted. */
static bool check_word(const CliTrainCase *c, const PlanIniEntry *entry, GError **error) {
    static const struct {
        const char *key, *words;
    } known[] = {{"flops", "palm, model, all"},
                 {"memory", "reserved, allocated, active, device"},
                 {"memory_of", "fullest, first, last"}};
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
static bool check_cluster(const CliTrainCase *c, GError **error) {
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
static bool apply_pytorch(CliTrainCase *c, GError **error) {
    for (guint i = 0; i < c->settings->len; i++) {
        const PlanIniEntry *entry = c->settings->pdata[i];
        if (is_pytorch(entry) && !set_strategy(c, entry, "pytorch", error)) {
            return false;
        }
    }
    return true;
}

/* What a program makes of any shape (its loss, how it turns pairs, how long targets are), and no
 * column that a known network fixes. */
static bool is_of_program(const PlanIniEntry *entry) {
    return g_str_equal(entry->key, "network.target_seq") ||
           (*entry->value != '$' && !g_str_equal(entry->key, "network.family"));
}

static bool apply(CliTrainCase *c, GString *network, GError **error) {
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
static bool read_named_network(CliTrainCase *c, const char *name, const char *program,
                               GError **error) {
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

static bool read_network(CliTrainCase *c, const GString *text, GError **error) {
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
    return cli_train_skip(c, what ? what + 2 : cause->message);
}

static double gpus_a_node(const CliTrainCase *c) {
    double said = cli_csv_known(c->csv, &c->row, "gpus_per_node");
    bool is_ours = isnan(said) || c->cluster->intra_node_beyond_host;
    return is_ours ? (double)c->cluster->topology_gpus_per_node : said;
}

static void set_topology(CliTrainCase *c) {
    double gpus = cli_csv_known(c->csv, &c->row, "gpus"), a_node = gpus_a_node(c);
    if (a_node < 1 || a_node > GPUS_A_NODE_MOST || a_node != floor(a_node)) {
        g_autofree char *why =
            g_strdup_printf("gpus_per_node must be a whole number from 1 to %d, not '%s'",
                            GPUS_A_NODE_MOST, cli_csv_text(c->csv, &c->row, "gpus_per_node"));
        cli_train_skip(c, why);
        return;
    }
    uint32_t used = (uint32_t)fmin(a_node, isnan(gpus) ? a_node : fmax(gpus, 1));
    uint32_t among = used < 32 ? (1u << used) - 1 : UINT32_MAX;
    if (model_cluster_links_share(c->cluster, among) == 0) {
        cli_train_skip(
            c, "its GPU's links are known of nodes that have fewer, by no cluster file of so many");
        return;
    }
    c->cluster->topology_gpus_per_node = (uint64_t)a_node;
    c->cluster->topology_nodes = gpus >= 1 ? (uint64_t)ceil(gpus / a_node) : 1;
}

/* What the row says of its network holds where no rule does. */
static bool set_network(CliTrainCase *c) {
    double rate =
        cli_train_link_gb_per_s(cli_csv_text(c->csv, &c->row, "interconnect"), gpus_a_node(c));
    if (rate > 0 && rate != c->cluster->inter_node_nic_gb_per_s &&
        !cli_rules_value(c->settings, "cluster.inter_node.nic_gb_per_s")) {
        c->cluster->inter_node_nic_gb_per_s = rate;
        g_autofree char *digits = g_strdup_printf("%g", rate);
        say(c, "inter_node.nic_gb_per_s", digits);
    }
    return c->cluster->topology_nodes == 1 || c->cluster->inter_node_nic_gb_per_s > 0 ||
           cli_train_skip(c,
                          "neither the source nor a cluster file of this hardware names a network");
}

bool cli_train_case_settle(CliTrainCase *c, GError **error) {
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
    return plan_strategy_settle(&c->strategy, &cause) || cli_train_skip(c, cause->message);
}
