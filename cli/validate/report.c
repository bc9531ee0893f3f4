/* cli/validate/report.c - the summaries of validate.h, as text and as JSON. */
#include <math.h>

#include "cli/say/prose.h"
#include "cli/say/rows-csv.h"
#include "cli/validate/validate.h"
#include "trace/json.h"

static const struct {
    const char *key, *words;
    gsize offset;
} parts[] = {
    {"time", "time", G_STRUCT_OFFSET(CliScores, time)},
    {"time_one_node", "  one node", G_STRUCT_OFFSET(CliScores, one_node)},
    {"time_more_nodes", "  several nodes", G_STRUCT_OFFSET(CliScores, more_nodes)},
    {"time_without_fit", "  without its fit", G_STRUCT_OFFSET(CliScores, without)},
    {"time_by_one_share", "  one share of peak", G_STRUCT_OFFSET(CliScores, one_share)},
    {"memory", "memory", G_STRUCT_OFFSET(CliScores, memory)},
};

static CliScore *part(CliScores *scores, unsigned i) {
    return G_STRUCT_MEMBER_P(scores, parts[i].offset);
}

void cli_scores_clear(CliScores *scores) {
    for (unsigned i = 0; i < G_N_ELEMENTS(parts); i++) {
        cli_score_clear(part(scores, i));
    }
}

/* ---- all tables together -------------------------------------------------------------------- */

typedef struct {
    unsigned rows, skipped;
    CliScores scores;
} Overall;

static Overall overall_of(const CliValidation *validation) {
    Overall overall = {0};
    for (guint t = 0; t < validation->tables->len; t++) {
        CliValidatedTable *table = validation->tables->pdata[t];
        overall.rows += table->rows->len;
        overall.skipped += table->skipped;
        for (unsigned i = 0; i < G_N_ELEMENTS(parts); i++) {
            cli_score_merge(part(&overall.scores, i), part(&table->scores, i));
        }
    }
    return overall;
}

/* ---- text ----------------------------------------------------------------------------------- */

static void print_scores(FILE *to, const char *name, unsigned rows, unsigned skipped,
                         CliScores *scores) {
    fprintf(to, "%s: %u rows, %u predicted, %u skipped\n", name, rows, rows - skipped, skipped);
    for (unsigned i = 0; i < G_N_ELEMENTS(parts); i++) {
        const CliScore *score = part(scores, i);
        if (cli_score_count(score)) {
            fprintf(to,
                    "  %-19s %4u rows median %5.1f %%  mean %5.1f %%  p90 %5.1f %%  max %5.1f "
                    "%%  bias %+5.1f %%\n",
                    parts[i].words, cli_score_count(score), 100 * cli_score_quantile(score, 0.5),
                    100 * cli_score_mean(score), 100 * cli_score_quantile(score, 0.9),
                    100 * cli_score_quantile(score, 1), 100 * cli_score_bias(score));
        }
    }
}

static gint by_count(gconstpointer a, gconstpointer b, gpointer counts) {
    guint x = GPOINTER_TO_UINT(g_hash_table_lookup(counts, a));
    guint y = GPOINTER_TO_UINT(g_hash_table_lookup(counts, b));
    return x != y ? (x < y) - (x > y) : g_strcmp0(a, b);
}

static void print_skipped(FILE *to, const CliValidatedTable *table) {
    g_autoptr(GHashTable) counts = g_hash_table_new(g_str_hash, g_str_equal);
    for (guint i = 0; i < table->rows->len; i++) {
        const CliValidatedRow *row = &g_array_index(table->rows, CliValidatedRow, i);
        if (row->skipped) {
            guint n = GPOINTER_TO_UINT(g_hash_table_lookup(counts, row->skipped));
            g_hash_table_insert(counts, row->skipped, GUINT_TO_POINTER(n + 1));
        }
    }
    g_autoptr(GList) reasons = g_hash_table_get_keys(counts);
    reasons = g_list_sort_with_data(reasons, by_count, counts);
    for (GList *i = reasons; i; i = i->next) {
        g_autofree char *line = g_strdup_printf(
            "  skipped %4u: %s", GPOINTER_TO_UINT(g_hash_table_lookup(counts, i->data)),
            (const char *)i->data);
        g_autofree char *fit = cli_prose_fit(line);
        fprintf(to, "%s\n", fit);
    }
}

/* ---- why runs are predicted with what they are ------------------------------------------------
 */

static void count_reasons(const CliValidation *validation, unsigned counts[CLI_N_RULE_REASONS]) {
    GHashTableIter iter;
    gpointer reason;
    g_hash_table_iter_init(&iter, validation->given);
    while (g_hash_table_iter_next(&iter, NULL, &reason)) {
        counts[GPOINTER_TO_UINT(reason)]++;
    }
}

static void print_reasons(FILE *to, const CliValidation *validation) {
    unsigned counts[CLI_N_RULE_REASONS] = {0};
    count_reasons(validation, counts);
    fprintf(to, "rules: %u settings from sources, %u assumed, %u fitted\n",
            counts[CLI_RULE_FROM_SOURCE], counts[CLI_RULE_ASSUMED], counts[CLI_RULE_FITTED]);
}

void cli_validation_print(const CliValidation *validation, FILE *to) {
    for (guint t = 0; t < validation->tables->len; t++) {
        CliValidatedTable *table = validation->tables->pdata[t];
        print_scores(to, table->name, table->rows->len, table->skipped, &table->scores);
        print_skipped(to, table);
    }
    if (g_hash_table_size(validation->given)) {
        print_reasons(to, validation);
    }
    Overall overall = overall_of(validation);
    if (validation->tables->len > 1) {
        print_scores(to, "overall", overall.rows, overall.skipped, &overall.scores);
    }
    cli_scores_clear(&overall.scores);
}

/* ---- JSON ----------------------------------------------------------------------------------- */

static void add_scores(JsonBuilder *json, unsigned rows, unsigned skipped, CliScores *scores) {
    trace_json_add_int(json, "rows", rows);
    trace_json_add_int(json, "predicted", rows - skipped);
    trace_json_add_int(json, "skipped", skipped);
    for (unsigned i = 0; i < G_N_ELEMENTS(parts); i++) {
        const CliScore *score = part(scores, i);
        if (cli_score_count(score) == 0) {
            trace_json_add_text(json, parts[i].key, NULL);
            continue;
        }
        trace_json_begin_object(json, parts[i].key);
        trace_json_add_int(json, "rows", cli_score_count(score));
        trace_json_add_real(json, "median", cli_score_quantile(score, 0.5));
        trace_json_add_real(json, "mean", cli_score_mean(score));
        trace_json_add_real(json, "p90", cli_score_quantile(score, 0.9));
        trace_json_add_real(json, "max", cli_score_quantile(score, 1));
        trace_json_add_real(json, "bias", cli_score_bias(score));
        json_builder_end_object(json);
    }
}

static void add_measure(JsonBuilder *json, const char *key, double value) {
    if (!isnan(value)) {
        trace_json_add_real(json, key, value);
    }
}

/* table: whose row it is, where that is to be told; else NULL. */
static void add_row(JsonBuilder *json, const CliValidatedRow *row, const CliValidatedTable *table) {
    json_builder_begin_object(json);
    if (table) {
        trace_json_add_text(json, "file", table->name);
        trace_json_add_text(json, "time_unit", table->unit);
    }
    trace_json_add_int(json, "line", row->line);
    if (row->skipped) {
        trace_json_add_text(json, "skipped", row->skipped);
    } else {
        trace_json_add_text(json, "label", row->label);
        add_measure(json, "measured", row->measured);
        add_measure(json, "predicted", row->predicted);
        add_measure(json, "without_fit", row->without);
        add_measure(json, "by_one_share", row->by_one_share);
        add_measure(json, "measured_gib", row->measured_gib);
        add_measure(json, "predicted_gib", row->predicted_gib);
        trace_json_add_int(json, "nodes", row->nodes);
        trace_json_add_text(json, "note", row->note);
    }
    json_builder_end_object(json);
}

static void add_table(JsonBuilder *json, CliValidatedTable *table) {
    json_builder_begin_object(json);
    trace_json_add_text(json, "name", table->name);
    trace_json_add_text(json, "time_unit", table->unit);
    add_scores(json, table->rows->len, table->skipped, &table->scores);
    trace_json_begin_array(json, "each");
    for (guint i = 0; i < table->rows->len; i++) {
        add_row(json, &g_array_index(table->rows, CliValidatedRow, i), NULL);
    }
    json_builder_end_array(json);
    json_builder_end_object(json);
}

void cli_validation_print_csv(const CliValidation *validation) {
    g_autoptr(JsonBuilder) json = json_builder_new();
    json_builder_begin_object(json);
    trace_json_begin_array(json, "rows");
    for (guint t = 0; t < validation->tables->len; t++) {
        const CliValidatedTable *table = validation->tables->pdata[t];
        for (guint i = 0; i < table->rows->len; i++) {
            add_row(json, &g_array_index(table->rows, CliValidatedRow, i), table);
        }
    }
    json_builder_end_array(json);
    json_builder_end_object(json);
    cli_rows_print_csv(json, "rows");
}

char *cli_validation_json(const CliValidation *validation) {
    g_autoptr(JsonBuilder) json = json_builder_new();
    json_builder_begin_object(json);
    trace_json_begin_array(json, "files");
    for (guint t = 0; t < validation->tables->len; t++) {
        add_table(json, validation->tables->pdata[t]);
    }
    json_builder_end_array(json);
    Overall overall = overall_of(validation);
    trace_json_begin_object(json, "overall");
    add_scores(json, overall.rows, overall.skipped, &overall.scores);
    json_builder_end_object(json);
    cli_scores_clear(&overall.scores);
    unsigned counts[CLI_N_RULE_REASONS] = {0};
    count_reasons(validation, counts);
    trace_json_begin_object(json, "settings_of_rules");
    trace_json_add_int(json, "from_sources", counts[CLI_RULE_FROM_SOURCE]);
    trace_json_add_int(json, "assumed", counts[CLI_RULE_ASSUMED]);
    trace_json_add_int(json, "fitted", counts[CLI_RULE_FITTED]);
    json_builder_end_object(json);
    json_builder_end_object(json);
    return trace_json_text(json);
}
