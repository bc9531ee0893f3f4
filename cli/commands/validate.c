/* cli/commands/validate.c - published measurements against our predictions of them. */
#include <math.h>
#include <stdio.h>

#include "cli/commands/commands.h"
#include "cli/options.h"
#include "cli/validate/validate.h"

enum {
    OK = 0,
    BAD_INPUT = 2
};

static int complain(const GError *error) {
    fprintf(stderr, "foreshard validate: %s\n", error->message);
    return BAD_INPUT;
}

static bool read_all(CliValidation *validation, char **paths, GError **error) {
    for (; *paths; paths++) {
        if (!cli_validation_add(validation, *paths, error)) {
            return false;
        }
    }
    return true;
}

static int list_all(char **paths) {
    g_autoptr(GError) error = NULL;
    for (char **path = paths; *path; path++) {
        if (!cli_validation_list(*path, path == paths, stdout, &error)) {
            return complain(error);
        }
    }
    return OK;
}

int cmd_validate(int argc, char **argv) {
    gboolean as_json = FALSE, brief = FALSE, settings = FALSE;
    const GOptionEntry entries[] = {
        {"json", 0, 0, G_OPTION_ARG_NONE, &as_json, "print one JSON object", NULL},
        {"brief", 0, 0, G_OPTION_ARG_NONE, &brief, "print no rows, only their summaries", NULL},
        {"settings", 0, 0, G_OPTION_ARG_NONE, &settings,
         "print, as CSV, each run's settings and why they are so", NULL},
        {0},
    };
    g_autoptr(GOptionContext) context = g_option_context_new("ROWS.csv...");
    g_option_context_set_summary(
        context, "Predicts published measurements: training runs, matrix products, collectives.\n"
                 "A table is known by its columns; what its words mean stands in "
                 "models/published/*.ini.");
    g_option_context_set_description(
        context, "Errors are absolute, as shares of what was measured; \"bias\" is the median with "
                 "its sign.\n\"without\": what is predicted when nothing that was fitted to the "
                 "table is used.\n\n"
                 "Examples:\n"
                 "  foreshard validate tests/validation/train_*.csv\n"
                 "  foreshard validate --json mine.csv\n\n"
                 "Exit status: 0 predicted, however far off; 2 a table cannot be read.");
    g_option_context_add_main_entries(context, entries, NULL);
    g_autoptr(GError) error = NULL;
    if (!cli_options_parse(context, &argc, &argv, &error)) {
        return complain(error);
    }
    if (argc < 2) {
        fprintf(stderr, "foreshard validate: give at least one table, as in: foreshard validate "
                        "rows.csv; --help says more\n");
        return BAD_INPUT;
    }
    if (settings) {
        return list_all(argv + 1);
    }
    g_autoptr(CliValidation) validation = cli_validation_new(!as_json && !brief ? stdout : NULL);
    if (!read_all(validation, argv + 1, &error)) {
        return complain(error);
    }
    if (as_json) {
        g_autofree char *text = cli_validation_json(validation);
        printf("%s\n", text);
    } else {
        cli_validation_print(validation, stdout);
    }
    return OK;
}
