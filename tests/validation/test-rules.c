/* Whether each rule of models/published/train.ini earns its place: some row of tests/validation/ is
 * given something else without it. Rules for words that no published run here has, but a stranger's
 * may, have their rows in words.csv, whose last column says what they are given. */
#include <string.h>

#include "cli/published/rows-train.h"
#include "cli/published/train/row.h"

/* A rule alone: entries of one section. */
typedef struct {
    CliRules rules;
    PlanIni ini;
    const CliRules *all; /* where its entries are */
    const char *name;
    bool is_left_out, is_of_unfit, has_effect;
} Rule;

static GArray *split(const CliRules *rules) {
    GArray *all = g_array_new(FALSE, TRUE, sizeof(Rule));
    for (unsigned i = 0, end; i < rules->ini->n_entries; i = end) {
        const char *name = rules->ini->entries[i].section;
        Rule rule = {.all = rules, .name = name, .ini = {.file_name = rules->ini->file_name}};
        for (end = i;
             end < rules->ini->n_entries && g_str_equal(rules->ini->entries[end].section, name);
             end++) {
            rule.is_left_out |= g_str_equal(rules->ini->entries[end].key, "left_out");
            rule.is_of_unfit |= g_str_equal(rules->ini->entries[end].key, "unless_fits");
        }
        rule.ini.entries = &rules->ini->entries[i];
        rule.ini.n_entries = end - i;
        g_array_append_val(all, rule);
    }
    for (guint i = 0; i < all->len; i++) {
        Rule *rule = &g_array_index(all, Rule, i);
        rule->rules.ini = &rule->ini;
    }
    return all;
}

/* What a row is given in the end, by all rules that hold but one (NULL: by all): "key=value" lines
 * in order, or "skip=REASON" alone. */
static char *given(const GPtrArray *holding, const GPtrArray *gifts, const Rule *but) {
    g_autoptr(GTree) last = g_tree_new((GCompareFunc)strcmp);
    g_autoptr(GPtrArray) reasons = g_ptr_array_new();
    for (guint i = 0; i < holding->len; i++) {
        const GPtrArray *settings = gifts->pdata[i];
        for (guint k = 0; k < settings->len && holding->pdata[i] != but; k++) {
            const PlanIniEntry *entry = settings->pdata[k];
            if (g_str_equal(entry->key, "skip")) {
                entry = cli_rules_skip(((const Rule *)holding->pdata[i])->all, reasons, entry);
            }
            g_tree_replace(last, (gpointer)entry->key, (gpointer)entry->value);
        }
    }
    const char *skip = g_tree_lookup(last, "skip");
    if (skip && !g_str_equal(skip, "no")) {
        return g_strdup_printf("skip=%s\n", skip);
    }
    g_tree_remove(last, "skip");
    GString *text = g_string_new(NULL);
    for (GTreeNode *node = g_tree_node_first(last); node; node = g_tree_node_next(node)) {
        g_string_append_printf(text, "%s=%s\n", (char *)g_tree_node_key(node),
                               (char *)g_tree_node_value(node));
    }
    return g_string_free(text, FALSE);
}

/* Of a row of words.csv: whether it is given what its last column says. */
static void hold_words(const CliCsv *csv, const CliCsvRow *row, const char *by_all) {
    const char *expected = cli_csv_text(csv, row, "given");
    g_auto(GStrv) parts = g_strsplit(expected, " | ", -1);
    for (char **part = parts; *part; part++) {
        g_autofree char *line = g_strconcat(*part, "\n", NULL);
        const char *found = strstr(by_all, line);
        if (!found || (found != by_all && found[-1] != '\n')) {
            g_test_message("%s:%u: '%s' instead of '%s'", csv->name, row->line, by_all, *part);
            g_test_fail();
        }
    }
}

/* left_out: as though nothing had been fitted to the table. n_unfit: as though nothing fitted. */
static void try_row(const GArray *rules, const CliCsv *csv, const CliCsvRow *row, bool left_out,
                    unsigned n_unfit) {
    g_autoptr(GPtrArray) holding = g_ptr_array_new();
    g_autoptr(GPtrArray) gifts = g_ptr_array_new_with_free_func((GDestroyNotify)g_ptr_array_unref);
    for (guint i = 0; i < rules->len; i++) {
        Rule *rule = &g_array_index(rules, Rule, i);
        if ((left_out || !rule->is_left_out) && (n_unfit > 0 || !rule->is_of_unfit)) {
            g_autoptr(GPtrArray) settings =
                cli_rules_apply(&rule->rules, csv, row, left_out ? csv->name : NULL, n_unfit);
            if (settings->len) {
                g_ptr_array_add(holding, rule);
                g_ptr_array_add(gifts, g_steal_pointer(&settings));
            }
        }
    }
    g_autofree char *by_all = given(holding, gifts, NULL);
    if (cli_csv_has(csv, "given") && n_unfit == 0) {
        hold_words(csv, row, by_all);
    }
    for (guint i = 0; i < holding->len; i++) {
        Rule *rule = holding->pdata[i];
        if (!rule->has_effect) {
            g_autofree char *without = given(holding, gifts, rule);
            rule->has_effect = !g_str_equal(by_all, without);
        }
    }
}

static void try_table(const GArray *rules, const char *name, unsigned most_unfit) {
    g_autofree char *path = g_build_filename(g_getenv("FORESHARD_TEST_VALIDATION"), name, NULL);
    g_autoptr(GError) error = NULL;
    g_autoptr(CliCsv) csv = cli_csv_read(path, &error);
    g_assert_no_error(error);
    cli_csv_add_columns(csv, cli_train_words.columns);
    for (unsigned i = 0; i < csv->n_rows; i++) {
        g_autoptr(GString) said = g_string_new(NULL);
        CliCsvRow row = cli_train_row_complete(csv, &csv->rows[i], said);
        try_row(rules, csv, &row, false, 0);
        try_row(rules, csv, &row, true, 0);
        for (unsigned k = 1; k <= most_unfit; k++) {
            try_row(rules, csv, &row, false, k);
        }
        cli_train_row_fields_clear(&row);
    }
}

static void have_effect(void) {
    g_autoptr(GError) error = NULL;
    g_autoptr(CliPublished) published = cli_published_open("train", &cli_train_words, &error);
    g_assert_no_error(error);
    g_autoptr(GArray) rules = split(cli_published_rules(published));
    g_autoptr(GDir) dir = g_dir_open(g_getenv("FORESHARD_TEST_VALIDATION"), 0, NULL);
    for (const char *name; (name = g_dir_read_name(dir));) {
        bool is_table = g_str_has_prefix(name, "train_") && g_str_has_suffix(name, ".csv");
        if (is_table || g_str_equal(name, "words.csv")) {
            try_table(rules, name, cli_rules_most_unfit(cli_published_rules(published)));
        }
    }
    unsigned n_without = 0;
    for (guint i = 0; i < rules->len; i++) {
        const Rule *rule = &g_array_index(rules, Rule, i);
        if (!rule->has_effect) {
            g_test_message("%s:%u: [%s] changes nothing of any row", rule->ini.file_name,
                           rule->ini.entries[0].line, rule->name);
            n_without++;
        }
    }
    g_test_message("%u rules, %u without effect", rules->len, n_without);
    g_assert_cmpuint(rules->len, >, 0);
    g_assert_cmpuint(n_without, ==, 0);
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_assert_nonnull(g_getenv("FORESHARD_TEST_VALIDATION"));
    g_test_add_func("/validation/rules/have an effect", have_effect);
    return g_test_run();
}
