#include "cli/validate/validate.h"

#include <math.h>
#include <string.h>

#include "cli/validate/rows-collectives.h"
#include "cli/validate/rows-gemm.h"

/* ---- rows ----------------------------------------------------------------------------------- */

static void clear_row(gpointer data) {
    CliValidatedRow *row = data;
    g_free(row->label);
    g_free(row->skipped);
    g_free(row->note);
}

static void print_row(FILE *to, const CliValidatedTable *table, const CliValidatedRow *row) {
    fprintf(to, "%5u  %-46s ", row->line, row->label ? row->label : "");
    if (row->skipped) {
        fprintf(to, "skipped: %s\n", row->skipped);
        return;
    }
    if (!isnan(row->measured)) {
        fprintf(to, "%10.2f %10.2f %s %+7.1f %%", row->measured, row->predicted, table->unit,
                100 * (row->predicted / row->measured - 1));
    }
    if (!isnan(row->without) && !isnan(row->measured)) {
        fprintf(to, "  without %+7.1f %%", 100 * (row->without / row->measured - 1));
    }
    if (!isnan(row->measured_gib)) {
        fprintf(to, "  %7.2f %7.2f GiB %+6.1f %%", row->measured_gib, row->predicted_gib,
                100 * (row->predicted_gib / row->measured_gib - 1));
    }
    fprintf(to, "%s%s\n", row->note ? "  " : "", row->note ? row->note : "");
    fflush(to);
}

static void score(CliScores *scores, const CliValidatedRow *row) {
    cli_score_add(&scores->time, row->predicted, row->measured);
    cli_score_add(row->nodes > 1 ? &scores->more_nodes : &scores->one_node, row->predicted,
                  row->measured);
    cli_score_add(&scores->without, isnan(row->without) ? row->predicted : row->without,
                  row->measured);
    cli_score_add(&scores->memory, row->predicted_gib, row->measured_gib);
}

/* Takes the row. */
static void add_row(CliValidation *validation, CliValidatedTable *table, CliValidatedRow row) {
    if (row.skipped) {
        table->skipped++;
    } else {
        score(&table->scores, &row);
    }
    if (validation->live) {
        print_row(validation->live, table, &row);
    }
    g_array_append_val(table->rows, row);
}

/* ---- the kinds of tables -------------------------------------------------------------------- */

typedef bool (*Reader)(CliValidation *validation, const CliCsv *csv, CliPublished *published,
                       CliValidatedTable *table, GError **error);

/* Of one op: there is a time and nothing else to hold against it. */
static CliValidatedRow timed_row(unsigned line, const char *label, const char *skipped,
                                 const char *group) {
    return (CliValidatedRow){.line = line,
                             .label = g_strdup(label),
                             .skipped = g_strdup(skipped),
                             .note = g_strdup(group),
                             .without = NAN,
                             .measured_gib = NAN,
                             .predicted_gib = NAN,
                             .at_peak_ms = NAN,
                             .by_one_share = NAN,
                             .nodes = 1};
}

static bool read_products(CliValidation *validation, const CliCsv *csv, CliPublished *published,
                          CliValidatedTable *table, GError **error) {
    g_autoptr(GArray) rows = cli_gemm_rows(csv, published, error);
    for (guint i = 0; rows && i < rows->len; i++) {
        const CliGemmRow *row = &g_array_index(rows, CliGemmRow, i);
        CliValidatedRow out = timed_row(row->line, row->label, row->skipped, row->group);
        out.measured = row->time_us;
        out.held_out = row->held_out;
        out.predicted = row->skipped ? NAN : cli_gemm_predict_us(row, row->cluster);
        add_row(validation, table, out);
    }
    return rows != NULL;
}

static bool read_collectives(CliValidation *validation, const CliCsv *csv, CliPublished *published,
                             CliValidatedTable *table, GError **error) {
    g_autoptr(GArray) rows = cli_collective_rows(csv, published, error);
    for (guint i = 0; rows && i < rows->len; i++) {
        const CliCollectiveRow *row = &g_array_index(rows, CliCollectiveRow, i);
        CliValidatedRow out = timed_row(row->line, row->label, row->skipped, row->group);
        out.measured = row->time_us;
        out.held_out = row->held_out;
        out.nodes = row->nodes;
        out.predicted = row->skipped ? NAN : cli_collective_predict_us(row, row->cluster);
        add_row(validation, table, out);
    }
    return rows != NULL;
}

static char *note_of(const CliTrainRow *row) {
    g_autoptr(GString) note = g_string_new(row->bound_by);
    if (!row->fits) {
        g_string_append(note, ", does not fit");
    }
    if (row->retries) {
        g_string_append_printf(note, ", %" G_GUINT64_FORMAT " retries", row->retries);
    }
    return g_string_free(g_steal_pointer(&note), FALSE);
}

static bool read_runs(CliValidation *validation, const CliCsv *csv, CliPublished *published,
                      CliValidatedTable *table, GError **error) {
    bool fitted = cli_rules_leave_out(cli_published_rules(published), csv->name);
    bool good = cli_train_check(csv, error);
    for (unsigned i = 0; good && i < csv->n_rows; i++) {
        CliTrainRow row;
        double without_ms = NAN;
        good = fitted ? cli_train_predict_twice(csv, &csv->rows[i], published, &row, &without_ms,
                                                error)
                      : cli_train_predict(csv, &csv->rows[i], published, &row, error);
        if (!good) {
            return false;
        }
        CliValidatedRow out = {.line = row.line,
                               .label = g_steal_pointer(&row.label),
                               .skipped = g_steal_pointer(&row.skipped),
                               .measured = row.measured_ms,
                               .predicted = row.predicted_ms,
                               .without = without_ms,
                               .measured_gib = row.measured_gib,
                               .predicted_gib = row.predicted_gib,
                               .at_peak_ms = row.at_peak_ms,
                               .by_one_share = NAN,
                               .gpu = g_intern_string(row.gpu),
                               .nodes = row.nodes};
        out.note = out.skipped ? NULL : note_of(&row);
        add_row(validation, table, out);
        cli_train_row_clear(&row);
    }
    return good;
}

static const struct {
    const char *name, *unit, *told_by[3]; /* columns, any of which no other kind has */
    const CliRuleWords *words;
    const char *const *needed;
    Reader read;
} kinds[] = {
    {"train",
     "ms",
     {"tokens_per_s_per_gpu", "framework", "seq_len"},
     &cli_train_words,
     (const char *const[]){"hardware", "framework", "model", "gpus", "seq_len", "micro_batch",
                           NULL},
     read_runs},
    {"gemm",
     "us",
     {"extra_shape"},
     &cli_gemm_words,
     (const char *const[]){"hardware", "kind", "dtype", "m", "n", "k", NULL},
     read_products},
    {"collectives",
     "us",
     {"busbw_GBps"},
     &cli_collective_words,
     (const char *const[]){"hardware", "nodes", "gpus", "op", "bytes", "time_us", NULL},
     read_collectives},
};

static int kind_of(const CliCsv *csv) {
    for (unsigned i = 0; i < G_N_ELEMENTS(kinds); i++) {
        for (unsigned k = 0; k < G_N_ELEMENTS(kinds[i].told_by) && kinds[i].told_by[k]; k++) {
            if (cli_csv_has(csv, kinds[i].told_by[k])) {
                return (int)i;
            }
        }
    }
    return -1;
}

/* ---- tables --------------------------------------------------------------------------------- */

static void free_table(gpointer data) {
    CliValidatedTable *table = data;
    g_free(table->name);
    g_array_unref(table->rows);
    cli_scores_clear(&table->scores);
    g_free(table);
}

static CliValidatedTable *table_new(const CliCsv *csv, const char *unit) {
    CliValidatedTable *table = g_new0(CliValidatedTable, 1);
    table->name = g_strdup(csv->name);
    table->unit = unit;
    table->rows = g_array_new(FALSE, FALSE, sizeof(CliValidatedRow));
    g_array_set_clear_func(table->rows, clear_row);
    return table;
}

/* A table, its kind, and what is known about its words. */
static int open_table(const char *path, CliCsv **ret_csv, CliPublished **ret_published,
                      GError **error) {
    g_autoptr(CliCsv) csv = cli_csv_read(path, error);
    if (!csv) {
        return -1;
    }
    int kind = kind_of(csv);
    if (kind < 0) {
        cli_csv_refuse(csv, 1, error,
                       "these columns are of no table that is known; give one with the columns of "
                       "tests/validation/train_*.csv, gemm.csv or collectives.csv");
        return -1;
    }
    if (!cli_csv_check_columns(csv, kinds[kind].words->columns, kinds[kind].needed, error)) {
        return -1;
    }
    cli_csv_add_columns(csv, kinds[kind].words->columns);
    *ret_published = cli_published_open(kinds[kind].name, kinds[kind].words, error);
    if (!*ret_published) {
        return -1;
    }
    *ret_csv = g_steal_pointer(&csv);
    return kind;
}

bool cli_validation_add(CliValidation *validation, const char *path, GError **error) {
    g_autoptr(CliCsv) csv = NULL;
    g_autoptr(CliPublished) published = NULL;
    int kind = open_table(path, &csv, &published, error);
    if (kind < 0) {
        return false;
    }
    CliValidatedTable *table = table_new(csv, kinds[kind].unit);
    g_ptr_array_add(validation->tables, table);
    if (validation->live) {
        fprintf(validation->live, "%s\n%5s  %-46s %10s %10s\n", csv->path, "line", "", "measured",
                "predicted");
    }
    return kinds[kind].read(validation, csv, published, table, error);
}

/* ---- settings ------------------------------------------------------------------------------- */

static void put(FILE *to, const char *text, char end) {
    g_autofree char *quoted = NULL;
    if (text && strpbrk(text, ",\"\n")) {
        g_auto(GStrv) parts = g_strsplit(text, "\"", -1);
        g_autofree char *joined = g_strjoinv("\"\"", parts);
        quoted = g_strdup_printf("\"%s\"", joined);
    }
    fprintf(to, "%s%c", quoted ? quoted : text ? text : "", end);
}

static void list_row(const CliCsv *csv, const CliCsvRow *csv_row, const CliTrainRow *row,
                     FILE *to) {
    fprintf(to, "%s,%u,", csv->name, row->line);
    put(to, row->label, ',');
    put(to, row->skipped ? "out" : "in", ',');
    put(to, row->skipped, ',');
    put(to, row->time_from, ',');
    put(to, row->network_link, ',');
    put(to, row->cluster, ',');
    put(to, row->settings, ',');
    put(to, row->rules, ',');
    put(to, cli_csv_text(csv, csv_row, "source_ref"), '\n');
}

bool cli_validation_list(const char *path, bool header, FILE *to, GError **error) {
    g_autoptr(CliCsv) csv = NULL;
    g_autoptr(CliPublished) published = NULL;
    int kind = open_table(path, &csv, &published, error);
    if (kind < 0) {
        return false;
    }
    if (kinds[kind].read != read_runs) {
        return cli_csv_refuse(csv, 1, error,
                              "only training runs have settings; give a table of them");
    }
    if (header) {
        fprintf(to, "file,line,row,in_or_out,reason,time_from,interconnect,cluster,settings,rules,"
                    "source\n");
    }
    bool good = cli_train_check(csv, error);
    for (unsigned i = 0; good && i < csv->n_rows; i++) {
        CliTrainRow row;
        good = cli_train_predict(csv, &csv->rows[i], published, &row, error);
        if (good) {
            list_row(csv, &csv->rows[i], &row, to);
            cli_train_row_clear(&row);
        }
    }
    return good;
}

CliValidation *cli_validation_new(FILE *live) {
    CliValidation *validation = g_new0(CliValidation, 1);
    validation->tables = g_ptr_array_new_with_free_func(free_table);
    validation->live = live;
    return validation;
}

void cli_validation_free(CliValidation *validation) {
    if (validation) {
        g_ptr_array_unref(validation->tables);
        g_free(validation);
    }
}
