#include "tests/validation/strangers.h"

#include <glib/gstdio.h>
#include <string.h>

#include "plan/files/leftovers.h"

static char *tables_folder; /* of the tables that are written */

char *strangers_written(const char *text) {
    char *path = g_build_filename(tables_folder, "t.csv", NULL);
    g_assert_true(g_file_set_contents(path, text, -1, NULL));
    return path;
}

char *strangers_settings_of(const char *table) {
    g_autoptr(GError) error = NULL;
    g_autofree char *path = strangers_written(table),
                    *listed = g_strconcat(path, ".settings", NULL);
    FILE *to = g_fopen(listed, "w");
    cli_validation_list((const char *const[]){path, NULL}, 1, to, &error);
    g_assert_no_error(error);
    fclose(to);
    char *said = NULL;
    g_assert_true(g_file_get_contents(listed, &said, NULL, NULL));
    char *rows = g_strdup(strchr(said, '\n') + 1);
    g_free(said);
    return rows;
}

const GArray *strangers_rows(CliValidation *validation, const char *table) {
    g_autoptr(GError) error = NULL;
    g_autofree char *path = strangers_written(table);
    bool is_taken = cli_validation_add(validation, path, &error);
    g_assert_no_error(error);
    g_assert_true(is_taken);
    return ((CliValidatedTable *)validation->tables->pdata[0])->rows;
}

void strangers_expect(const char *table, const char *const *expected, unsigned n) {
    g_autoptr(CliValidation) validation = cli_validation_new(NULL);
    const GArray *rows = strangers_rows(validation, table);
    g_assert_cmpuint(rows->len, ==, n);
    for (unsigned i = 0; i < n; i++) {
        const CliValidatedRow *row = &g_array_index(rows, CliValidatedRow, i);
        const char *why = row->skipped ? row->skipped : "predicted";
        if (!strstr(why, expected[i] ? expected[i] : "predicted")) {
            g_test_message("line %u: '%s' instead of '%s'", row->line, why, expected[i]);
            g_test_fail();
        }
        g_assert_true(row->skipped || row->predicted > 0);
    }
}

void strangers_refuse(const char *table, const char *message) {
    g_autoptr(GError) error = NULL;
    g_autoptr(CliValidation) validation = cli_validation_new(NULL);
    g_autofree char *path = strangers_written(table);
    g_assert_false(cli_validation_add(validation, path, &error));
    g_assert_nonnull(error);
    g_assert_nonnull(strstr(error->message, message));
}

void strangers_expect_setting(const char *table, const char *setting) {
    g_autofree char *said = strangers_settings_of(table);
    g_strdelimit(said, ",", ' ');
    g_autofree char *wanted = g_strconcat(" ", setting, " ", NULL);
    if (!strstr(said, wanted)) {
        g_test_message("'%s' is not in: %s", setting, said);
        g_test_fail();
    }
}

int strangers_run(void) {
    tables_folder = plan_leftover_folder("foreshard-strangers-XXXXXX", NULL);
    g_assert_nonnull(tables_folder);
    int status = g_test_run();
    plan_leftover_remove_folder(tables_folder);
    g_free(tables_folder);
    return status;
}
