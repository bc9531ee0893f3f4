#include "cli/published/rows-train.h"

#include <math.h>
#include <string.h>

#include "cli/published/train/case.h"
#include "cli/published/train/row.h"
#include "cli/published/train/time.h"
#include "cli/published/train/words.h"

static const char *const table_columns[] = {
#define COLUMN(name) #name,
#define NUMBER(name) #name,
#include "cli/published/train/columns.def"
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
#include "cli/published/train/columns.def"
#undef COLUMN
#undef NUMBER
};

/* Rows are read in plain digits later (train/row.h). */
static bool is_number(const CliCsv *csv, const CliCsvRow *row, const char *column, GError **error) {
    double value;
    g_autofree char *plain = cli_train_words_number(column, cli_csv_text(csv, row, column));
    return (plan_parse_double(plain, &value) && value >= 0) ||
           cli_csv_number(csv, row, column, &value, error);
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

static char *label_of(const CliTrainCase *c) {
    const char *const columns[] = {"model", "gpus", "seq_len", "micro_batch"};
    const char *text[G_N_ELEMENTS(columns)];
    for (unsigned i = 0; i < G_N_ELEMENTS(columns); i++) {
        text[i] = cli_csv_text(c->csv, &c->row, columns[i]);
    }
    return g_strdup_printf("%s, %s GPUs, %s x %s", text[0], text[1], text[3], text[2]);
}

/* Of the rules that gave something that stayed. */
static char *rules_of(const CliTrainCase *c) {
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
static void describe(const CliTrainCase *c, CliTrainRow *row) {
    const char *link = cli_csv_text(c->csv, &c->row, "interconnect");
    row->rules = rules_of(c);
    row->given = g_ptr_array_ref(c->settings);
    row->cluster = g_strdup(cli_rules_value(c->settings, "cluster"));
    row->time_from = g_strdup(cli_train_time_from(c->csv, &c->row, cli_train_tflops_are_all(c)));
    row->network_link = g_strdup(*link ? link : "assumed");
}

static bool run(CliTrainCase *c, CliTrainCase *like, CliTrainRow *row, GError **error) {
    const char *why = cli_published_skip(c->settings);
    if (why) {
        return cli_train_skip(c, why);
    }
    if (!cli_rules_value(c->settings, "framework")) {
        return cli_train_skip(c, "no rule knows this framework");
    }
    if (!cli_rules_value(c->settings, "cluster")) {
        return cli_train_skip(c, "no rule names a cluster for this hardware");
    }
    if (!cli_rules_value(c->settings, "network") &&
        !cli_rules_value(c->settings, "network.family")) {
        return cli_train_skip(
            c, "no network of ours has this name, and its layers and d_model are not said");
    }
    const ModelCluster *cluster = cli_published_cluster(c->published, c->settings, error);
    if (!cluster) {
        return false;
    }
    c->cluster = model_cluster_copy(cluster);
    if (!cli_train_case_settle(c, error)) {
        return false;
    }
    if (!c->skipped) {
        cli_train_case_plan(c, like);
    }
    if (c->skipped) {
        return true;
    }
    row->nodes = (unsigned)c->cluster->topology_nodes;
    row->gpu = g_strdup(c->cluster->model);
    return cli_train_case_play(c, row);
}

/* Up to its settings. */
static void open_case(CliTrainCase *c, const CliCsv *csv, const CliCsvRow *row,
                      CliPublished *published, bool without_fits, unsigned n_unfit) {
    *c = (CliTrainCase){.csv = csv,
                        .source = row,
                        .without_fits = without_fits,
                        .published = published,
                        .said = g_string_new(NULL)};
    c->row = cli_train_row_complete(csv, row, c->said);
    c->settings = cli_rules_apply(cli_published_rules(published), csv, &c->row,
                                  without_fits ? csv->name : NULL, n_unfit);
}

static bool predict_case(CliTrainCase *c, CliTrainCase *like, CliTrainRow *ret_row,
                         GError **error) {
    CliTrainRow row = {.line = c->row.line, .label = label_of(c)};
    row.gpus = (unsigned)fmax(0, cli_csv_known(c->csv, &c->row, "gpus"));
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

/* By the very same entries of the rules. */
static bool has_same_settings(const CliTrainCase *a, const CliTrainCase *b) {
    return a->settings->len == b->settings->len &&
           memcmp(a->settings->pdata, b->settings->pdata,
                  a->settings->len * sizeof *a->settings->pdata) == 0;
}

/* Of a case that did not fit: with the rules for that, where they make it smaller. */
static bool predict_unfit(CliTrainCase *c, unsigned n_unfit, CliTrainRow *changed, GError **error) {
    g_auto(CliTrainCase) next;
    CliTrainRow row;
    open_case(&next, c->csv, c->source, c->published, c->without_fits, n_unfit);
    if (has_same_settings(c, &next)) {
        return true;
    }
    if (!predict_case(&next, NULL, &row, error)) {
        return false;
    }
    if (!row.skipped && row.retries == 0 && row.predicted_gib < changed->predicted_gib) {
        CliTrainCase other = *c;
        CliTrainRow before = *changed;
        *c = next;
        *changed = row;
        next = other;
        row = before;
    }
    cli_train_row_clear(&row);
    return true;
}

/* What ran has fit: where it does not, rules for that are tried one after the other. */
static bool predict_what_fits(CliTrainCase *c, CliTrainCase *like, CliTrainRow *ret_row,
                              GError **error) {
    unsigned most = cli_rules_most_unfit(cli_published_rules(c->published));
    if (!predict_case(c, like, ret_row, error)) {
        return false;
    }
    for (unsigned i = 1; i <= most && !ret_row->skipped && !ret_row->fits; i++) {
        if (!predict_unfit(c, i, ret_row, error)) {
            cli_train_row_clear(ret_row);
            return false;
        }
    }
    return true;
}

bool cli_train_predict(const CliCsv *csv, const CliCsvRow *csv_row, CliPublished *published,
                       CliTrainRow *ret_row, GError **error) {
    g_auto(CliTrainCase) c;
    open_case(&c, csv, csv_row, published, false, 0);
    return predict_what_fits(&c, NULL, ret_row, error);
}

bool cli_train_settle(const CliCsv *csv, const CliCsvRow *csv_row, CliPublished *published,
                      CliTrainRow *ret_row, GError **error) {
    g_auto(CliTrainCase) c;
    open_case(&c, csv, csv_row, published, false, 0);
    c.unplayed = true;
    return predict_case(&c, NULL, ret_row, error);
}

bool cli_train_predict_twice(const CliCsv *csv, const CliCsvRow *csv_row, CliPublished *published,
                             CliTrainRow *ret_row, double *ret_without_ms, GError **error) {
    g_auto(CliTrainCase) c, without;
    open_case(&c, csv, csv_row, published, false, 0);
    open_case(&without, csv, csv_row, published, true, 0);
    bool is_same =
        has_same_settings(&c, &without); /* then what else makes it fit is the same, too */
    if (!predict_what_fits(&c, NULL, ret_row, error)) {
        return false;
    }
    *ret_without_ms = ret_row->skipped ? NAN : ret_row->predicted_ms;
    if (ret_row->skipped || is_same) {
        return true;
    }
    CliTrainRow row;
    if (!predict_what_fits(&without, &c, &row, error)) {
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
    g_clear_pointer(&row->given, g_ptr_array_unref);
    g_free(row->gpu);
    g_free(row->cluster);
    g_free(row->time_from);
    g_free(row->contradicted);
    g_free(row->network_link);
}
