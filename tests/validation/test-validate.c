/* The reader of published tables and its rules; that rows.csv says what validate does; and how far
 * predictions of the tables here are off. */
#include <glib/gstdio.h>
#include <math.h>
#include <string.h>

#include "cli/published/rules.h"
#include "cli/validate/kinds.h"
#include "cli/validate/one-share.h"
#include "cli/validate/validate.h"
#include "plan/files/leftovers.h"
#include "tests/validation/pages.h"

static const char *const columns[] = {"a", "b", "c", NULL};
static const char *const settings_known[] = {"w", "x", "y", "z", "deep.", NULL};
static const CliRuleWords known = {columns, settings_known};

static char *tables_folder; /* of the tables that are written */

static char *temporary(const char *name, const char *text) {
    char *path = g_build_filename(tables_folder, name, NULL);
    g_assert_true(g_file_set_contents(path, text, -1, NULL));
    return path;
}

static CliCsv *table(const char *text, GError **error) {
    g_autofree char *path = temporary("t.csv", text);
    return cli_csv_read(path, error);
}

/* ---- tables --------------------------------------------------------------------------------- */

static void fields(void) {
    g_autoptr(GError) error = NULL;
    g_autoptr(CliCsv) csv = table("a,b,c\r\n1,\"x, \"\"y\"\"\nz\",\n\n,2.5,\"\"\n3,4,5", &error);
    g_assert_no_error(error);
    g_assert_cmpuint(csv->n_rows, ==, 3);
    g_assert_cmpstr(cli_csv_text(csv, &csv->rows[0], "b"), ==, "x, \"y\"\nz");
    g_assert_cmpuint(csv->rows[1].line, ==, 5); /* a field above spans two lines, one is empty */
    g_assert_cmpstr(cli_csv_text(csv, &csv->rows[2], "c"), ==, "5");
    g_assert_cmpstr(cli_csv_text(csv, &csv->rows[2], "d"), ==, "");
    double value;
    g_assert_true(cli_csv_number(csv, &csv->rows[1], "b", &value, &error));
    g_assert_cmpfloat(value, ==, 2.5);
    g_autoptr(CliCsv) whole = table("a,b,c\n8.0,\"8.0\",1.13.0\n-1.0,.0,2.50\n", &error);
    g_assert_cmpstr(cli_csv_text(whole, &whole->rows[0], "a"), ==, "8");
    g_assert_cmpstr(cli_csv_text(whole, &whole->rows[0], "b"), ==, "8.0");
    g_assert_cmpstr(cli_csv_text(whole, &whole->rows[0], "c"), ==, "1.13.0");
    g_assert_cmpstr(cli_csv_text(whole, &whole->rows[1], "a"), ==, "-1.0");
    g_assert_cmpstr(cli_csv_text(whole, &whole->rows[1], "b"), ==, ".0");
    g_assert_cmpstr(cli_csv_text(whole, &whole->rows[1], "c"), ==, "2.50");
    g_assert_true(cli_csv_number(csv, &csv->rows[1], "a", &value, &error));
    g_assert_true(isnan(value));
    g_assert_false(cli_csv_number(csv, &csv->rows[0], "b", &value, &error));
    g_assert_nonnull(strstr(error->message, "t.csv:2: b is 'x,"));
}

/* A message is one line, however long or broken the field. */
static void fields_in_messages(void) {
    g_autoptr(GError) error = NULL;
    g_autofree char *long_field = g_strnfill(5000, 'x');
    g_autofree char *text = g_strconcat("a,b\n\"4\n5\",", long_field, "\n\xe9,1\n", NULL);
    g_autoptr(CliCsv) csv = table(text, &error);
    g_assert_no_error(error);
    static const struct {
        unsigned row;
        const char *column, *said;
    } expected[] = {{0, "a", "t.csv:2: a is '4 5', "},
                    {0, "b", "xxx...', which"},
                    {1, "a", "t.csv:4: a is '\xef\xbf\xbd', "}};
    for (unsigned i = 0; i < G_N_ELEMENTS(expected); i++) {
        double value;
        const CliCsvRow *row = &csv->rows[expected[i].row];
        g_assert_false(cli_csv_number(csv, row, expected[i].column, &value, &error));
        g_assert_nonnull(strstr(error->message, expected[i].said));
        g_assert_cmpuint(strlen(error->message), <, 300);
        g_clear_error(&error);
    }
}

static void assert_refused(const char *text, const char *message) {
    g_autoptr(GError) error = NULL;
    g_autoptr(CliCsv) csv = table(text, &error);
    if (csv) {
        cli_csv_check_columns(csv, columns, (const char *const[]){"b", NULL}, &error);
    }
    g_assert_nonnull(error);
    if (!strstr(error->message, message)) {
        g_test_message("'%s' does not say '%s'", error->message, message);
        g_test_fail();
    }
}

static void refusals(void) {
    assert_refused("a,b\n1,2\n1,2,3\n", "t.csv:3: 3 fields, but the header has 2");
    assert_refused("a,b\n1\n", "t.csv:2: 1 fields");
    assert_refused("a,b\n1,\"2\n3,4\n", "t.csv:2: a quotation mark opens here");
    assert_refused("a,b\n\"1\"x,2\n", "t.csv:2: text follows a closing");
    assert_refused("a,a\n1,2\n", "t.csv:1: column 'a' stands twice");
    assert_refused("a,b,d\n1,2,3\n", "t.csv:1: column 'd' is unknown");
    assert_refused("a,c\n1,2\n", "t.csv:1: column 'b' is missing");
}

/* ---- rules ---------------------------------------------------------------------------------- */

static void rules(void) {
    g_autoptr(GError) error = NULL;
    g_autofree char *path = temporary("r.ini", "[all]\nx = 1\ny = 1\n"
                                               "[one]\nif.a = p*|q\nx = 2\n"
                                               "[two]\nif.a = !p*\nif.b = -\ny = 2\n"
                                               "[as one]\nif.a = @one\nw = 4\n"
                                               "[fit]\nleft_out = t.csv\nz = 3\n"
                                               "[large]\nunless_fits = 2\nx = 9\n");
    g_autoptr(CliRules) read = cli_rules_read(path, &known, &error);
    g_assert_no_error(error);
    g_autoptr(CliCsv) csv = table("a,b,c\npq,,\nq,,\nr,s,\n", &error);
    static const struct { const char *x, *y; } expected[] = {{"2", "1"}, {"2", "2"}, {"1", "1"}};
    for (unsigned i = 0; i < csv->n_rows; i++) {
        g_autoptr(GPtrArray) settings = cli_rules_apply(read, csv, &csv->rows[i], NULL, 1);
        g_assert_cmpstr(cli_rules_value(settings, "x"), ==, expected[i].x);
        g_assert_cmpstr(cli_rules_value(settings, "y"), ==, expected[i].y);
        g_assert_null(cli_rules_value(settings, "z"));
        g_assert_cmpstr(cli_rules_value(settings, "w"), ==, i < 2 ? "4" : NULL);
        g_autoptr(GPtrArray) without = cli_rules_apply(read, csv, &csv->rows[i], "t.csv", 0);
        g_assert_cmpstr(cli_rules_value(without, "z"), ==, "3");
        g_autoptr(GPtrArray) unfit = cli_rules_apply(read, csv, &csv->rows[i], NULL, 2);
        g_assert_cmpstr(cli_rules_value(unfit, "x"), ==, "9");
    }
    g_assert_cmpuint(cli_rules_most_unfit(read), ==, 2);
    g_assert_true(cli_rules_leave_out(read, "t.csv"));
    g_assert_false(cli_rules_leave_out(read, "u.csv"));
    g_autofree char *bad = temporary("b.ini", "[all]\n\nif.d = 1\n");
    g_assert_null(cli_rules_read(bad, &known, &error));
    g_assert_nonnull(strstr(error->message, "b.ini:3: the tables have no column 'd'"));
    g_clear_error(&error);
    g_autofree char *misspelt = temporary("m.ini", "[all]\ndeep.any = 1\nif.a = p\ndeepx = 1\n");
    g_assert_null(cli_rules_read(misspelt, &known, &error));
    g_assert_nonnull(strstr(error->message, "m.ini:4: there is no setting 'deepx'"));
    g_assert_nonnull(
        strstr(error->message, "left_out, unless_fits, assumed, fitted, w, x, y, z, deep."));
    g_clear_error(&error);
    g_autofree char *never = temporary("n.ini", "[all]\nunless_fits = no\nx = 1\n");
    g_assert_null(cli_rules_read(never, &known, &error));
    g_assert_nonnull(strstr(error->message, "n.ini:2: unless_fits must be a whole number from 1"));
}

static void reasons(void) {
    g_autoptr(GError) error = NULL;
    g_autofree char *path = temporary("r.ini", "[all]\nw = $a\nx = 1\ny = 1\nz = 1\n"
                                               "assumed = x, y\nfitted = z\n[one]\nx = 2\n");
    g_autoptr(CliRules) read = cli_rules_read(path, &known, &error);
    g_assert_no_error(error);
    g_autoptr(CliCsv) csv = table("a,b,c\np,,\n", &error);
    g_autoptr(GPtrArray) settings = cli_rules_apply(read, csv, &csv->rows[0], NULL, 0);
    g_assert_cmpuint(settings->len, ==, 4);
    static const struct {
        const char *key;
        CliRuleReason reason;
    } expected[] = {{"w", CLI_RULE_OF_ROW},
                    {"x", CLI_RULE_FROM_SOURCE},
                    {"y", CLI_RULE_ASSUMED},
                    {"z", CLI_RULE_FITTED}};
    for (unsigned i = 0; i < G_N_ELEMENTS(expected); i++) {
        const PlanIniEntry *entry = cli_rules_entry(settings, expected[i].key);
        g_assert_cmpint(cli_rules_reason(read, entry), ==, expected[i].reason);
    }
    g_autofree char *bad = temporary("b.ini", "[all]\nx = 1\nassumed = x, y\n[b]\ny = 1\n");
    g_assert_null(cli_rules_read(bad, &known, &error));
    g_assert_nonnull(
        strstr(error->message, "b.ini:3: assumed = y names no setting of the rule [all];"));
}

/* ---- errors --------------------------------------------------------------------------------- */

static void scores(void) {
    CliScore score = {0}, other = {0};
    for (unsigned i = 1; i <= 10; i++) {
        cli_score_add(&score, i % 2 ? 1 + i * 0.01 : 1 - i * 0.01, 1);
    }
    cli_score_add(&score, NAN, 1);
    cli_score_add(&score, 1, NAN);
    g_assert_cmpuint(cli_score_count(&score), ==, 10);
    g_assert_cmpfloat_with_epsilon(cli_score_quantile(&score, 0.5), 0.05, 1e-9);
    g_assert_cmpfloat_with_epsilon(cli_score_quantile(&score, 0.9), 0.09, 1e-9);
    g_assert_cmpfloat_with_epsilon(cli_score_quantile(&score, 1), 0.1, 1e-9);
    g_assert_cmpfloat_with_epsilon(cli_score_mean(&score), 0.055, 1e-9);
    g_assert_cmpfloat_with_epsilon(cli_score_bias(&score), -0.005, 1e-9);
    cli_score_merge(&other, &score);
    g_assert_cmpfloat_with_epsilon(cli_score_mean(&other), 0.055, 1e-9);
    cli_score_clear(&score);
    cli_score_clear(&other);
}

/* ---- the tables here ------------------------------------------------------------------------ */

static char *of_folder(const char *name) {
    return g_build_filename(g_getenv("FORESHARD_TEST_VALIDATION"), name, NULL);
}

static const char *const runs[] = {"train_context.csv",
                                   "train_float8.csv",
                                   "train_fms_fsdp.csv",
                                   "train_fresh.csv",
                                   "train_fresh_eighteenth.csv",
                                   "train_fresh_eighth.csv",
                                   "train_fresh_eleventh.csv",
                                   "train_fresh_fifteenth.csv",
                                   "train_fresh_fifth.csv",
                                   "train_fresh_fourteenth.csv",
                                   "train_fresh_fourth.csv",
                                   "train_fresh_more.csv",
                                   "train_fresh_nineteenth.csv",
                                   "train_fresh_ninth.csv",
                                   "train_fresh_seventeenth.csv",
                                   "train_fresh_seventh.csv",
                                   "train_fresh_sixteenth.csv",
                                   "train_fresh_sixth.csv",
                                   "train_fresh_tenth.csv",
                                   "train_fresh_third.csv",
                                   "train_fresh_thirteenth.csv",
                                   "train_fresh_thirtieth.csv",
                                   "train_fresh_thirtyfirst.csv",
                                   "train_fresh_thirtysecond.csv",
                                   "train_fresh_twelfth.csv",
                                   "train_fresh_twentieth.csv",
                                   "train_fresh_twentyeighth.csv",
                                   "train_fresh_twentyfifth.csv",
                                   "train_fresh_twentyfirst.csv",
                                   "train_fresh_twentyfourth.csv",
                                   "train_fresh_twentyninth.csv",
                                   "train_fresh_twentysecond.csv",
                                   "train_fresh_twentyseventh.csv",
                                   "train_fresh_twentysixth.csv",
                                   "train_fresh_twentythird.csv",
                                   "train_fsdp_paper.csv",
                                   "train_kempnerforge.csv",
                                   "train_kempnerforge_more.csv",
                                   "train_llm_foundry_mpt.csv",
                                   "train_modalities.csv",
                                   "train_torchtitan.csv",
                                   "train_yafsdp.csv"};

/* A failure shows the first line that differs, and not all of two files. */
static void assert_same_lines(const char *got, const char *expected) {
    g_auto(GStrv) a = g_strsplit(got, "\n", -1);
    g_auto(GStrv) b = g_strsplit(expected, "\n", -1);
    for (guint i = 0; a[i] || b[i]; i++) {
        g_assert_cmpstr(a[i], ==, b[i]);
    }
}

static GPtrArray *paths_of_runs(void) {
    GPtrArray *paths = g_ptr_array_new_with_free_func(g_free);
    for (unsigned i = 0; i < G_N_ELEMENTS(runs); i++) {
        g_ptr_array_add(paths, of_folder(runs[i]));
    }
    g_ptr_array_add(paths, NULL);
    return paths;
}

/* What is in and out, and why, is committed; `foreshard validate --settings` makes it. */
static void list(void) {
    g_autoptr(GError) error = NULL;
    g_autofree char *made = temporary("rows.csv", "");
    FILE *to = g_fopen(made, "w");
    g_autoptr(GPtrArray) paths = paths_of_runs();
    cli_validation_list((const char *const *)paths->pdata, 0, to, &error);
    g_assert_no_error(error);
    fclose(to);
    g_autofree char *expected_path = of_folder("rows.csv");
    g_autofree char *expected = NULL, *got = NULL;
    g_assert_true(g_file_get_contents(made, &got, NULL, NULL));
    g_assert_true(g_file_get_contents(expected_path, &expected, NULL, NULL));
    assert_same_lines(got, expected);
    g_autoptr(CliCsv) csv = cli_csv_read(expected_path, &error);
    g_assert_no_error(error);
    unsigned n_in = 0;
    for (unsigned i = 0; i < csv->n_rows; i++) {
        const char *where = cli_csv_text(csv, &csv->rows[i], "in_or_out");
        const char *reason = cli_csv_text(csv, &csv->rows[i], "reason");
        g_assert_true(g_str_equal(where, "in") == g_str_equal(reason, ""));
        n_in += g_str_equal(where, "in");
    }
    g_test_message("%u of %u runs are predicted", n_in, csv->n_rows);
    g_assert_cmpuint(n_in, >=, 100);
}

static void print_table(const CliValidatedTable *t) {
    const CliScore *time = &t->scores.time, *memory = &t->scores.memory;
    g_test_message("%-28s %3u rows, time: median %5.1f %%, p90 %5.1f %%; memory of %u: median "
                   "%4.1f %%, p90 %4.1f %%",
                   t->name, cli_score_count(time), 100 * cli_score_quantile(time, 0.5),
                   100 * cli_score_quantile(time, 0.9), cli_score_count(memory),
                   100 * cli_score_quantile(memory, 0.5), 100 * cli_score_quantile(memory, 0.9));
}

/* What is reached today, with little room: a change that makes predictions worse is to be seen. The
 * goals are 0.06, 0.15, 0.09 and 0.20. */
static const struct {
    const char *table;
    double median, p90, without_median, without_p90;
} bounds[] = {{"train_fms_fsdp.csv", 0.06, 0.15, 0.09, 0.20},
              {"train_fresh_eighth.csv", 0.065, 0.15, 0.09, 0.20},
              {"train_fresh_fifteenth.csv", 0.1, 0.38, 0.1, 0.38},
              {"train_fresh_fourteenth.csv", 0.07, 0.30, 0.09, 0.30},
              {"train_fresh_more.csv", 0.06, 0.15, 0.09, 0.20},
              {"train_fresh_ninth.csv", 0.085, 0.39, 0.09, 0.39},
              {"train_fresh_seventeenth.csv", 0.085, 0.19, 0.085, 0.19},
              {"train_fresh_seventh.csv", 0.06, 0.15, 0.09, 0.20},
              {"train_fresh_sixteenth.csv", 0.085, 0.31, 0.085, 0.31},
              {"train_fresh_sixth.csv", 0.06, 0.15, 0.09, 0.20},
              {"train_fresh_thirteenth.csv", 0.115, 0.17, 0.115, 0.20},
              {"train_fresh_twelfth.csv", 0.06, 0.15, 0.09, 0.20},
              {"train_fresh_twentieth.csv", 0.08, 0.70, 0.08, 0.70},
              {"train_fresh_twentyfifth.csv", 0.11, 0.52, 0.11, 0.52},
              {"train_fresh_twentyfirst.csv", 0.06, 0.15, 0.09, 0.20},
              {"train_fresh_twentyfourth.csv", 0.11, 0.36, 0.11, 0.36},
              {"train_fresh_twentysecond.csv", 0.09, 0.125, 0.09, 0.125},
              {"train_fresh_twentythird.csv", 0.105, 0.195, 0.105, 0.195},
              {"train_fsdp_paper.csv", 0.06, 0.15, 0.09, 0.20},
              {"train_kempnerforge.csv", 0.06, 0.15, 0.09, 0.20},
              {"train_kempnerforge_more.csv", 0.06, 0.15, 0.09, 0.20},
              {"train_llm_foundry_mpt.csv", 0.06, 0.15, 0.09, 0.20},
              {"train_torchtitan.csv", 0.06, 0.15, 0.09, 0.20},
              {"train_yafsdp.csv", 0.06, 0.15, 0.09, 0.20}};

/* Runs that could not be planned when their table met its goals, and miss them: float8 on GPUs that
 * share layers, a sequence shared by eight, and sequences shared within stages. README.md has the
 * reasons. The goals of one node and of several nodes are held without them, and the whole table to
 * what is reached. A run is named by its measured step, which no edit of its table changes. */
static const struct {
    const char *table;
    double measured_ms[3];
    double median, p90;
} missed[] = {{"train_torchtitan.csv", {59795.62, 27324.88, 3313.47}, 0.06, 0.15},
              {"train_fresh_seventh.csv", {87148.94, 132129.03, 256000.00}, 0.06, 0.19}};

/* Their memory is off by more than the others' together: held to what is reached. */
static const struct {
    const char *table;
    double median, p90;
} unmended[] = {
    {"train_fresh_fourth.csv", 0.08, 0.16},       {"train_fresh_fifth.csv", 0.035, 0.13},
    {"train_fresh_ninth.csv", 0.03, 0.21},        {"train_fresh_tenth.csv", 0.017, 0.04},
    {"train_fresh_eleventh.csv", 0.03, 0.085},    {"train_fresh_twelfth.csv", 0.045, 0.26},
    {"train_fresh_thirteenth.csv", 0.045, 0.19},  {"train_fresh_fourteenth.csv", 0.03, 0.20},
    {"train_fresh_fifteenth.csv", 0.025, 0.065},  {"train_fresh_sixteenth.csv", 0.1, 0.22},
    {"train_fresh_seventeenth.csv", 0.015, 0.23}, {"train_fresh_eighteenth.csv", 0.04, 0.185},
    {"train_fresh_nineteenth.csv", 0.02, 0.05},   {"train_fresh_twentieth.csv", 0.135, 0.61},
    {"train_fresh_twentythird.csv", 0.02, 0.065}, {"train_fresh_twentyfifth.csv", 0.02, 0.21},
    {"train_fresh_twentysixth.csv", 0.045, 0.25}, {"train_fresh_twentyseventh.csv", 0.045, 0.35},
    {"train_fresh_twentyeighth.csv", 0.02, 0.12}, {"train_fresh_twentyninth.csv", 0.06, 0.2},
    {"train_fresh_thirtieth.csv", 0.035, 0.15},   {"train_fresh_thirtyfirst.csv", 0.05, 0.09},
    {"train_fresh_thirtysecond.csv", 0.01, 0.27}};

static int unmended_at(const CliValidatedTable *t) {
    for (unsigned i = 0; i < G_N_ELEMENTS(unmended); i++) {
        if (g_str_equal(t->name, unmended[i].table)) {
            return (int)i;
        }
    }
    return -1;
}

static void check_within(const CliScore *score, double median, double p90) {
    g_assert_cmpuint(cli_score_count(score), >, 0);
    g_assert_cmpfloat(cli_score_quantile(score, 0.5), <=, median);
    g_assert_cmpfloat(cli_score_quantile(score, 0.9), <=, p90);
}

static bool misses(const CliValidatedTable *t, const CliValidatedRow *row) {
    for (unsigned i = 0; i < G_N_ELEMENTS(missed); i++) {
        for (unsigned k = 0; k < G_N_ELEMENTS(missed[i].measured_ms); k++) {
            double apart = fabs(row->measured - missed[i].measured_ms[k]);
            if (g_str_equal(missed[i].table, t->name) && apart < 0.01) {
                return true;
            }
        }
    }
    return false;
}

/* Of the runs that are held to the goals. */
static CliScores scores_held(const CliValidatedTable *t) {
    CliScores scores = {0};
    for (guint i = 0; i < t->rows->len; i++) {
        const CliValidatedRow *row = &g_array_index(t->rows, CliValidatedRow, i);
        if (row->skipped == NULL && !misses(t, row)) {
            CliScore *by_nodes = row->nodes > 1 ? &scores.more_nodes : &scores.one_node;
            cli_score_add(&scores.time, row->predicted, row->measured);
            cli_score_add(by_nodes, row->predicted, row->measured);
            cli_score_add(&scores.without, isnan(row->without) ? row->predicted : row->without,
                          row->measured);
        }
    }
    return scores;
}

static void clear_scores(CliScores *scores) {
    cli_score_clear(&scores->time);
    cli_score_clear(&scores->one_node);
    cli_score_clear(&scores->more_nodes);
    cli_score_clear(&scores->without);
}

static void check_bounds(const CliValidatedTable *t) {
    CliScores scores = scores_held(t);
    for (unsigned i = 0; i < G_N_ELEMENTS(bounds); i++) {
        if (g_str_equal(bounds[i].table, t->name)) {
            check_within(&scores.time, bounds[i].median, bounds[i].p90);
            check_within(&scores.without, bounds[i].without_median, bounds[i].without_p90);
        }
    }
    clear_scores(&scores);
}

static void check_goals(const CliValidatedTable *t) {
    CliScores scores = scores_held(t);
    const CliScore *each[] = {&scores.one_node, &scores.more_nodes};
    unsigned n = 0;
    for (unsigned i = 0; i < G_N_ELEMENTS(each); i++) {
        if (cli_score_count(each[i]) > 0) {
            check_within(each[i], 0.06, 0.15);
            n++;
        }
    }
    g_assert_cmpuint(n, >, 0);
    clear_scores(&scores);
}

static bool meets_goals(const CliScore *score) {
    return cli_score_count(score) == 0 ||
           (cli_score_quantile(score, 0.5) <= 0.06 && cli_score_quantile(score, 0.9) <= 0.15);
}

/* Goals that are met again are to be held again. */
static void check_missed(const CliValidatedTable *t) {
    for (unsigned i = 0; i < G_N_ELEMENTS(missed); i++) {
        if (g_str_equal(missed[i].table, t->name)) {
            bool meets = meets_goals(&t->scores.time) && meets_goals(&t->scores.one_node) &&
                         meets_goals(&t->scores.more_nodes);
            g_assert_false(meets); /* else it is held to the goals without exceptions */
            check_within(&t->scores.time, missed[i].median, missed[i].p90);
        }
    }
}

/* One row after the other, or as many at a time as there are rows: the same text. */
static char *printed_by(unsigned threads, const char *const *paths) {
    g_autoptr(GError) error = NULL;
    g_autofree char *path = temporary("printed", "");
    FILE *to = g_fopen(path, "w");
    g_autoptr(CliValidation) validation = cli_validation_new(to);
    validation->threads = threads;
    cli_validation_add_all(validation, paths, &error);
    g_assert_no_error(error);
    cli_one_share_score(validation);
    cli_validation_print(validation, to);
    fclose(to);
    char *text = NULL;
    g_assert_true(g_file_get_contents(path, &text, NULL, NULL));
    return text;
}

static void threads(void) {
    g_autofree char *titan = of_folder("train_torchtitan.csv"),
                    *context = of_folder("train_context.csv");
    const char *const paths[] = {titan, context, NULL};
    g_autofree char *by_one = printed_by(1, paths), *by_many = printed_by(9, paths);
    assert_same_lines(by_many, by_one);
}

/* A run of which memory alone is published has no time to be off by, with its fit or without. */
static void memory_alone(void) {
    g_autoptr(GError) error = NULL;
    g_autofree char *path = temporary(
        "train_kempnerforge.csv",
        "hardware,gpus,framework,model,layers,d_model,heads,kv_heads,d_ff,mlp_type,vocab,seq_len,"
        "micro_batch,grad_accum,sharding_strategy,precision,tokens_per_s_per_gpu,"
        "peak_mem_gib,peak_mem_kind\n"
        "H200,8,FSDP2,small,2,1024,8,8,2816,swiglu,32000,512,1,1,FSDP2,bf16,,2,reserved\n");
    g_autofree char *printed = temporary("printed", "");
    FILE *to = g_fopen(printed, "w");
    g_autoptr(CliValidation) validation = cli_validation_new(to);
    cli_validation_add(validation, path, &error);
    fclose(to);
    g_assert_no_error(error);
    g_autofree char *text = NULL;
    g_assert_true(g_file_get_contents(printed, &text, NULL, NULL));
    g_assert_nonnull(strstr(text, " GiB "));
    g_assert_null(strstr(text, "without"));
    g_assert_null(strstr(text, "nan"));
}

/* Letters of several bytes move no column. */
static void letters(void) {
    g_autofree char *path =
        temporary("letters.csv", "hardware,gpus,framework,model,seq_len,micro_batch\n"
                                 "H200,8,none,gross,512,1\n"
                                 "H200,8,none,größe,512,1\n");
    g_autofree char *text = printed_by(1, (const char *const[]){path, NULL});
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    const char *first = strstr(lines[2], "skipped: "), *second = strstr(lines[3], "skipped: ");
    g_assert_true(first != NULL && second != NULL);
    g_assert_cmpint(g_utf8_pointer_to_offset(lines[2], first), ==,
                    g_utf8_pointer_to_offset(lines[3], second));
}

/* Of three runs of one plan the rule is right about the one in the middle, and as far off the other
 * two as they are from it. */
static void one_share(void) {
    g_autoptr(GError) error = NULL;
    g_autofree char *path = temporary(
        "three.csv",
        "hardware,gpus,framework,model,layers,d_model,heads,kv_heads,d_ff,mlp_type,vocab,seq_len,"
        "micro_batch,grad_accum,sharding_strategy,precision,step_ms\n"
        "H200,8,FSDP2,small,2,1024,8,8,2816,swiglu,32000,512,1,1,FSDP2,bf16,10\n"
        "H200,8,FSDP2,small,2,1024,8,8,2816,swiglu,32000,512,1,1,FSDP2,bf16,40\n"
        "H200,8,FSDP2,small,2,1024,8,8,2816,swiglu,32000,512,1,1,FSDP2,bf16,20\n"
        "H200,8,FSDP2,small,2,1024,8,8,2816,swiglu,32000,512,1,1,FSDP2,bf16,\n");
    g_autoptr(CliValidation) validation = cli_validation_new(NULL);
    cli_validation_add(validation, path, &error);
    g_assert_no_error(error);
    cli_one_share_score(validation);
    CliScore *score = &((CliValidatedTable *)validation->tables->pdata[0])->scores.one_share;
    g_assert_cmpuint(cli_score_count(score), ==, 3);
    g_assert_cmpfloat_with_epsilon(g_array_index(score->errors, double, 0), 1, 1e-9);
    g_assert_cmpfloat_with_epsilon(g_array_index(score->errors, double, 1), -0.5, 1e-9);
    g_assert_cmpfloat_with_epsilon(g_array_index(score->errors, double, 2), 0, 1e-9);
}

/* What `foreshard predict` says of itself is committed; `foreshard validate --kinds` makes it. */
static void check_kinds(const CliValidation *validation) {
    g_autofree char *path = of_folder("../../models/published/errors.ini");
    g_autofree char *expected = NULL, *got = cli_validation_kinds(validation);
    g_assert_true(g_file_get_contents(path, &expected, NULL, NULL));
    assert_same_lines(got, expected);
}

/* A prediction that a rule of thumb outdoes is worth nothing. */
static void check_against_one_share(const CliScore *predicted, const CliScore *by_rule) {
    g_assert_cmpuint(cli_score_count(by_rule), ==, cli_score_count(predicted));
    g_test_message("one share of peak: median %.1f %%, 90th percentile %.1f %%",
                   100 * cli_score_quantile(by_rule, 0.5), 100 * cli_score_quantile(by_rule, 0.9));
    g_assert_cmpfloat(2 * cli_score_quantile(predicted, 0.5), <, cli_score_quantile(by_rule, 0.5));
    g_assert_cmpfloat(cli_score_quantile(predicted, 0.9), <, cli_score_quantile(by_rule, 0.9));
    g_assert_cmpfloat(cli_score_mean(predicted), <, cli_score_mean(by_rule));
}

/* The tables that the goals were set for, not those that were added since. */
static bool goals_were_set_for(const CliValidatedTable *t) {
    return !g_str_has_prefix(t->name, "train_fresh") &&
           !g_str_equal(t->name, "train_modalities.csv") &&
           !g_str_equal(t->name, "train_float8.csv") && !g_str_equal(t->name, "train_context.csv");
}

/* A play skips what the list, which is made without one, says it does, and nothing else. */
static void check_skipped(const CliValidation *validation) {
    g_autoptr(GError) error = NULL;
    g_autofree char *path = of_folder("rows.csv");
    g_autoptr(CliCsv) csv = cli_csv_read(path, &error);
    g_assert_no_error(error);
    unsigned at = 0;
    for (guint i = 0; i < validation->tables->len; i++) {
        const CliValidatedTable *t = validation->tables->pdata[i];
        for (guint k = 0; k < t->rows->len; k++) {
            const CliValidatedRow *row = &g_array_index(t->rows, CliValidatedRow, k);
            const CliCsvRow *listed = &csv->rows[at++];
            g_assert_cmpstr(cli_csv_text(csv, listed, "file"), ==, t->name);
            g_assert_cmpstr(cli_csv_text(csv, listed, "reason"), ==,
                            row->skipped ? row->skipped : "");
        }
    }
    g_assert_cmpuint(at, ==, csv->n_rows);
}

/* What `foreshard validate --brief` prints. */
static void brief_text(const CliValidation *validation, char **ret_text) {
    g_autofree char *printed = temporary("printed.txt", "");
    FILE *to = g_fopen(printed, "w");
    cli_validation_print(validation, to);
    fclose(to);
    g_assert_true(g_file_get_contents(printed, ret_text, NULL, NULL));
}

/* How many settings of the rules have which reason: as README.md here says. */
static void check_reasons(const char *text) {
    g_autofree char *path = of_folder("README.md"), *readme = NULL;
    g_assert_true(g_file_get_contents(path, &readme, NULL, NULL));
    const char *line = strstr(text, "\nrules: ") + 1;
    g_autofree char *words = g_strndup(line, strcspn(line, "\n"));
    g_test_message("%s", words);
    g_assert_nonnull(strstr(readme, words));
}

static unsigned n_files_of_runs(void) {
    g_autofree char *folder = of_folder("");
    g_autoptr(GDir) dir = g_dir_open(folder, 0, NULL);
    unsigned n = 0;
    for (const char *name; (name = g_dir_read_name(dir));) {
        n += g_pattern_match_simple("train_*.csv", name);
    }
    return n;
}

/* tests/cli/test-readme.py leaves this command to this test, which has all the tables predicted. */
static void check_pages(const char *text) {
    g_assert_cmpuint(n_files_of_runs(), ==, G_N_ELEMENTS(runs));
    static const char *const pages[] = {"../../README.md", "../../docs/validation.md"};
    for (unsigned i = 0; i < G_N_ELEMENTS(pages); i++) {
        g_autofree char *path = of_folder(pages[i]);
        validation_page_says(path, "foreshard validate --brief tests/validation/train_*.csv", text);
    }
}

static void tables(void) {
    g_autoptr(GError) error = NULL;
    g_autoptr(CliValidation) validation = cli_validation_new(NULL);
    g_autoptr(GPtrArray) paths = paths_of_runs();
    CliScores all = {0}, goal = {0};
    cli_validation_add_all(validation, (const char *const *)paths->pdata, &error);
    g_assert_no_error(error);
    check_skipped(validation);
    for (unsigned i = 0; i < validation->tables->len; i++) {
        CliValidatedTable *t = validation->tables->pdata[i];
        print_table(t);
        check_bounds(t);
        check_missed(t);
        cli_score_merge(&all.time, &t->scores.time);
        if (goals_were_set_for(t)) {
            check_goals(t);
            cli_score_merge(&goal.memory, &t->scores.memory);
        }
        int at = unmended_at(t);
        if (at >= 0) {
            check_within(&t->scores.memory, unmended[at].median, unmended[at].p90);
        } else {
            cli_score_merge(&all.memory, &t->scores.memory);
        }
    }
    g_assert_cmpuint(cli_score_count(&goal.memory), >=, 10);
    check_within(&goal.memory, 0.02, 0.05);
    g_assert_cmpuint(cli_score_count(&all.memory), >=, 40);
    check_within(&all.memory, 0.02, 0.05);
    g_assert_cmpuint(cli_score_count(&all.time), >=, 100);
    g_test_message("all: median %.1f %%, 90th percentile %.1f %%",
                   100 * cli_score_quantile(&all.time, 0.5),
                   100 * cli_score_quantile(&all.time, 0.9));
    cli_one_share_score(validation);
    g_autofree char *text = NULL;
    brief_text(validation, &text);
    check_reasons(text);
    check_pages(text);
    for (unsigned i = 0; i < validation->tables->len; i++) {
        CliValidatedTable *t = validation->tables->pdata[i];
        cli_score_merge(&all.one_share, &t->scores.one_share);
    }
    check_against_one_share(&all.time, &all.one_share);
    cli_scores_clear(&all);
    cli_scores_clear(&goal);
    check_kinds(validation);
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    tables_folder = plan_leftover_folder("foreshard-validate-XXXXXX", NULL);
    g_assert_nonnull(tables_folder);
    g_test_add_func("/validation/fields", fields);
    g_test_add_func("/published/any number of threads", threads);
    g_test_add_func("/validation/fields/in messages", fields_in_messages);
    g_test_add_func("/validation/refusals", refusals);
    g_test_add_func("/validation/rules", rules);
    g_test_add_func("/validation/rules/reasons", reasons);
    g_test_add_func("/validation/scores", scores);
    g_test_add_func("/validation/rows.csv says what is done", list);
    g_test_add_func("/validation/memory alone", memory_alone);
    g_test_add_func("/validation/letters of any kind", letters);
    g_test_add_func("/validation/one share of peak", one_share);
    g_test_add_func("/validation/training runs", tables);
    int status = g_test_run();
    plan_leftover_remove_folder(tables_folder);
    g_free(tables_folder);
    return status;
}
