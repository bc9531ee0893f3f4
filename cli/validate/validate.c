#include "cli/validate/validate.h"

#include <math.h>
#include <string.h>

#include "cli/published/rows-ahead.h"
#include "cli/published/rows-collectives.h"
#include "cli/published/rows-gemm.h"
#include "cli/say/prose.h"

/* ---- rows ----------------------------------------------------------------------------------- */

static void clear_row(gpointer data) {
    CliValidatedRow *row = data;
    g_free(row->label);
    g_free(row->skipped);
    g_free(row->note);
}

enum {
    MARGIN = 7, /* the number of the line, and a gap */
    LABEL = 46  /* letters; a longer one moves its row's figures */
};

/* Never "-0.0". */
static double percent_off(double predicted, double measured) {
    double percent = 100 * (predicted / measured - 1);
    return fabs(percent) < 0.05 ? 0 : percent;
}

static void append_time(GString *text, const CliValidatedTable *table, const CliValidatedRow *row) {
    if (!isnan(row->measured)) {
        g_string_append_printf(text, "%10.2f %10.2f %s %+7.1f %%", row->measured, row->predicted,
                               table->unit, percent_off(row->predicted, row->measured));
    }
}

/* What stands behind the time. */
static char *rest_of(const CliValidatedRow *row) {
    GString *text = g_string_new(NULL);
    if (!isnan(row->without) && !isnan(row->measured)) {
        g_string_append_printf(text, "  without %+7.1f %%",
                               percent_off(row->without, row->measured));
    }
    if (!isnan(row->measured_gib)) {
        g_string_append_printf(text, "  %7.2f %7.2f GiB %+6.1f %%", row->measured_gib,
                               row->predicted_gib,
                               percent_off(row->predicted_gib, row->measured_gib));
    }
    g_string_append_printf(text, "%s%s", row->note ? "  " : "", row->note ? row->note : "");
    return g_string_free(text, FALSE);
}

/* On two lines where one is too short. */
static void print_row(FILE *to, const CliValidatedTable *table, const CliValidatedRow *row) {
    g_autoptr(GString) text = g_string_new(NULL);
    const char *label = row->label ? row->label : "";
    gsize bytes = strlen(label), letters = cli_prose_width(label, bytes);
    g_string_append_printf(text, "%5u  %-*s ", row->line, (int)(LABEL + bytes - letters), label);
    if (row->skipped) {
        g_string_append_printf(text, "skipped: %s", row->skipped);
    } else {
        append_time(text, table, row);
        g_autofree char *rest = rest_of(row);
        gsize width = cli_prose_width(text->str, text->len) + cli_prose_width(rest, strlen(rest));
        if (width > CLI_COLUMNS) {
            g_string_append_printf(text, "\n%*s%s", MARGIN, "", rest + strspn(rest, " "));
        } else {
            g_string_append(text, rest);
        }
    }
    g_autofree char *fit = cli_prose_fit(text->str);
    fprintf(to, "%s\n", fit);
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

/* A table that is read, and what is known about its words. */
typedef struct {
    CliCsv *csv;
    CliPublished *published;
    CliRowsAhead *ahead; /* borrowed: its runs are in line there; NULL: it has none */
    int kind;
} Opened;

typedef bool (*Reader)(CliValidation *validation, const Opened *of, CliValidatedTable *table,
                       GError **error);

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

static bool read_products(CliValidation *validation, const Opened *of, CliValidatedTable *table,
                          GError **error) {
    g_autoptr(GArray) rows = cli_gemm_rows(of->csv, of->published, error);
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

static bool read_collectives(CliValidation *validation, const Opened *of, CliValidatedTable *table,
                             GError **error) {
    g_autoptr(GArray) rows = cli_collective_rows(of->csv, of->published, error);
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
    if (row->contradicted) {
        g_string_append_printf(note, ", %s", row->contradicted);
    }
    return g_string_free(g_steal_pointer(&note), FALSE);
}

static void note_given(CliValidation *validation, const CliRules *rules, const GPtrArray *given) {
    for (guint i = 0; i < given->len; i++) {
        const PlanIniEntry *setting = given->pdata[i];
        if (!g_str_equal(setting->key, "framework") && !g_str_equal(setting->key, "skip")) {
            g_hash_table_insert(validation->given, GUINT_TO_POINTER(setting->line),
                                GUINT_TO_POINTER(cli_rules_reason(rules, setting)));
        }
    }
}

static bool read_runs(CliValidation *validation, const Opened *of, CliValidatedTable *table,
                      GError **error) {
    bool good = cli_train_check(of->csv, error);
    for (unsigned i = 0; good && i < of->csv->n_rows; i++) {
        CliTrainRow row;
        double without_ms;
        good = cli_rows_ahead_take(of->ahead, &row, &without_ms, error);
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
                               .gpu_kind = row.gpu_kind,
                               .kind = row.kind,
                               .nodes = row.nodes};
        out.note = out.skipped ? NULL : note_of(&row);
        if (!out.skipped) {
            note_given(validation, cli_published_rules(of->published), row.given);
        }
        add_row(validation, table, out);
        cli_train_row_clear(&row);
    }
    return good;
}

static const struct {
    const char *name, *unit, *told_by[4]; /* columns, any of which no other kind has */
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
     {"extra_shape", "m"},
     &cli_gemm_words,
     (const char *const[]){"hardware", "kind", "dtype", "m", "n", "k", NULL},
     read_products},
    {"collectives",
     "us",
     {"busbw_GBps", "algbw_GBps", "concurrent_groups", "op"},
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

static void free_opened(gpointer data) {
    Opened *of = data;
    cli_published_free(of->published);
    cli_csv_free(of->csv);
    g_free(of);
}

static bool open_as_known(Opened *of, GError **error) {
    for (unsigned i = 0; i < G_N_ELEMENTS(kinds); i++) {
        if (!cli_csv_spell_columns(of->csv, kinds[i].words->columns, error)) {
            return false;
        }
    }
    of->kind = kind_of(of->csv);
    if (of->kind < 0 && !of->csv->columns[1] && strpbrk(of->csv->columns[0], ";\t|")) {
        return cli_csv_refuse(of->csv, 1, error,
                              "this header has no comma; give a table whose fields stand between "
                              "commas");
    }
    if (of->kind < 0) {
        return cli_csv_refuse(of->csv, 1, error,
                              "these columns are of no table that is known; give one with the "
                              "columns of tests/validation/train_*.csv, gemm.csv or "
                              "collectives.csv");
    }
    const CliRuleWords *words = kinds[of->kind].words;
    if (!cli_csv_check_columns(of->csv, words->columns, kinds[of->kind].needed, error)) {
        return false;
    }
    if (of->csv->n_rows == 0) {
        return cli_csv_refuse(of->csv, 1, error,
                              "below this line, the header, stands no row; add one a measurement");
    }
    cli_csv_add_columns(of->csv, words->columns);
    of->published = cli_published_open(kinds[of->kind].name, words, error);
    return of->published != NULL;
}

static Opened *open_table(const char *path, GError **error) {
    Opened *of = g_new0(Opened, 1);
    of->csv = cli_csv_read(path, error);
    if (!of->csv || !open_as_known(of, error)) {
        free_opened(of);
        return NULL;
    }
    return of;
}

/* Those before the first that cannot be read. */
static GPtrArray *open_all(const char *const *paths, GError **error) {
    GPtrArray *opened = g_ptr_array_new_with_free_func(free_opened);
    for (; *paths; paths++) {
        Opened *of = open_table(*paths, error);
        if (!of) {
            break;
        }
        g_ptr_array_add(opened, of);
    }
    return opened;
}

/* Runs of all tables, up to one whose numbers do not read. */
static void begin(GPtrArray *opened, CliRowsAhead *ahead, CliRowsAsked asked) {
    for (guint i = 0; i < opened->len; i++) {
        Opened *of = opened->pdata[i];
        if (kinds[of->kind].read != read_runs) {
            continue;
        }
        if (!cli_train_check(of->csv, NULL)) {
            return;
        }
        of->ahead = ahead;
        bool is_fitted = cli_rules_leave_out(cli_published_rules(of->published), of->csv->name);
        bool is_once = asked == CLI_ROWS_PREDICTED_TWICE && !is_fitted;
        cli_rows_ahead_give(ahead, of->csv, of->published, is_once ? CLI_ROWS_PREDICTED : asked);
    }
}

static bool add_table(CliValidation *validation, const Opened *of, GError **error) {
    CliValidatedTable *table = table_new(of->csv, kinds[of->kind].unit);
    g_ptr_array_add(validation->tables, table);
    if (validation->live) {
        fprintf(validation->live, "%s\n%5s  %-*s %10s %10s\n", of->csv->path, "line", LABEL, "",
                "measured", "predicted");
    }
    return kinds[of->kind].read(validation, of, table, error);
}

bool cli_validation_add_all(CliValidation *validation, const char *const *paths, GError **error) {
    g_autoptr(GError) unread = NULL;
    g_autoptr(GPtrArray) opened = open_all(paths, &unread);
    g_autoptr(CliRowsAhead) ahead = cli_rows_ahead_new(validation->threads);
    begin(opened, ahead, CLI_ROWS_PREDICTED_TWICE);
    for (guint i = 0; i < opened->len; i++) {
        if (!add_table(validation, opened->pdata[i], error)) {
            return false;
        }
    }
    if (unread) {
        g_propagate_error(error, g_steal_pointer(&unread));
        return false;
    }
    return true;
}

bool cli_validation_add(CliValidation *validation, const char *path, GError **error) {
    return cli_validation_add_all(validation, (const char *const[]){path, NULL}, error);
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

static bool list_table(const Opened *of, bool is_first, FILE *to, GError **error) {
    const CliCsv *csv = of->csv;
    if (kinds[of->kind].read != read_runs) {
        return cli_csv_refuse(csv, 1, error,
                              "only training runs have settings; give a table of them");
    }
    if (is_first) {
        fprintf(to, "file,line,row,in_or_out,reason,time_from,interconnect,cluster,settings,rules,"
                    "source\n");
    }
    bool good = cli_train_check(csv, error);
    for (unsigned i = 0; good && i < csv->n_rows; i++) {
        CliTrainRow row;
        double without_ms;
        good = cli_rows_ahead_take(of->ahead, &row, &without_ms, error);
        if (good) {
            list_row(csv, &csv->rows[i], &row, to);
            cli_train_row_clear(&row);
        }
    }
    return good;
}

bool cli_validation_list(const char *const *paths, unsigned threads, FILE *to, GError **error) {
    g_autoptr(GError) unread = NULL;
    g_autoptr(GPtrArray) opened = open_all(paths, &unread);
    g_autoptr(CliRowsAhead) ahead = cli_rows_ahead_new(threads);
    begin(opened, ahead, CLI_ROWS_SETTLED);
    for (guint i = 0; i < opened->len; i++) {
        if (!list_table(opened->pdata[i], i == 0, to, error)) {
            return false;
        }
    }
    if (unread) {
        g_propagate_error(error, g_steal_pointer(&unread));
        return false;
    }
    return true;
}

CliValidation *cli_validation_new(FILE *live) {
    CliValidation *validation = g_new0(CliValidation, 1);
    validation->tables = g_ptr_array_new_with_free_func(free_table);
    validation->given = g_hash_table_new(NULL, NULL);
    validation->live = live;
    return validation;
}

void cli_validation_free(CliValidation *validation) {
    if (validation) {
        g_ptr_array_unref(validation->tables);
        g_hash_table_unref(validation->given);
        g_free(validation);
    }
}
