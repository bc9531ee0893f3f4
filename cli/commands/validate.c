/* cli/commands/validate.c - published measurements against our predictions of them. */
#include <stdio.h>

#include "cli/commands/commands.h"
#include "cli/options/command.h"
#include "cli/validate/kinds.h"
#include "cli/validate/one-share.h"
#include "cli/validate/validate.h"

static const CliCommand command = {
    .words = "ROWS.csv...",
    .least = 1,
    .most = G_MAXINT,
    .give = "at least one table, as in: foreshard validate rows.csv",
    .summary =
        "Predicts published measurements: training runs, matrix products, collectives. A table is "
        "known by its columns; what its words mean stands in models/published/*.ini.",
    .examples =
        "Errors are absolute, as shares of what was measured; \"bias\" is the median with its "
        "sign. \"without\": what is predicted when nothing that was fitted to the table is used. "
        "\"one share of peak\": the rule of thumb, a step's products at one share of the GPU's "
        "peak, tuned for each kind of GPU to the very runs given (the median).\n\n"
        "Examples:\n"
        "  foreshard validate tests/validation/train_*.csv\n"
        "  foreshard validate --json mine.csv\n\n"
        "Exit status: 0 predicted, however far off; 2 a table cannot be read.",
};

int cmd_validate(int argc, char **argv) {
    gboolean as_json = FALSE, as_csv = FALSE, brief = FALSE, settings = FALSE, kinds = FALSE;
    int cores = 0;
    const GOptionEntry entries[] = {
        {"json", 'j', 0, G_OPTION_ARG_NONE, &as_json, "print one JSON object", NULL},
        {"csv", 0, 0, G_OPTION_ARG_NONE, &as_csv, "print each row, measured and predicted, as CSV",
         NULL},
        {"brief", 0, 0, G_OPTION_ARG_NONE, &brief, "print no rows, only their summaries", NULL},
        {"settings", 0, 0, G_OPTION_ARG_NONE, &settings,
         "print, as CSV, each run's settings and why they are so", NULL},
        {"kinds", 0, 0, G_OPTION_ARG_NONE, &kinds,
         "print, as an ini file, how far off each kind of training run is: what predict says of "
         "itself (models/published/errors.ini)",
         NULL},
        {"cores", 0, 0, G_OPTION_ARG_INT, &cores,
         "predict on so many at a time; what is printed stays the same (default all there are, 16 "
         "at most)",
         "N"},
        {0},
    };
    g_autoptr(GOptionContext) context = cli_command_context(&command, entries);
    if (!cli_command_read(&command, entries, context, &argc, &argv)) {
        return CLI_BAD_INPUT;
    }
    if (as_csv && (as_json || brief)) {
        return cli_complain(CLI_BAD_INPUT, "--csv is a form of its own, of all rows; leave %s away",
                            as_json ? "--json" : "--brief");
    }
    if ((settings || kinds) && (as_json || as_csv || brief || settings == kinds)) {
        return cli_complain(CLI_BAD_INPUT, "%s prints a table of its own; leave %s away",
                            settings ? "--settings" : "--kinds",
                            as_json  ? "--json"
                            : as_csv ? "--csv"
                            : brief  ? "--brief"
                                     : "--kinds");
    }
    if (cores < 0) {
        return cli_complain(CLI_BAD_INPUT,
                            "--cores is %d; give 1 or more, or 0 for as many as there are", cores);
    }
    g_autoptr(GError) error = NULL;
    const char *const *paths = (const char *const *)(argv + 1);
    if (settings) {
        return cli_validation_list(paths, (unsigned)cores, stdout, &error)
                   ? CLI_OK
                   : cli_complain(CLI_BAD_INPUT, "%s", error->message);
    }
    g_autoptr(CliValidation) validation =
        cli_validation_new(!as_json && !as_csv && !brief && !kinds ? stdout : NULL);
    validation->threads = (unsigned)cores;
    if (!cli_validation_add_all(validation, paths, &error)) {
        return cli_complain(CLI_BAD_INPUT, "%s", error->message);
    }
    if (kinds) {
        g_autofree char *text = cli_validation_kinds(validation);
        printf("%s", text);
        return CLI_OK;
    }
    cli_one_share_score(validation);
    if (as_json) {
        g_autofree char *text = cli_validation_json(validation);
        printf("%s\n", text);
    } else if (as_csv) {
        cli_validation_print_csv(validation);
    } else {
        cli_validation_print(validation, stdout);
    }
    return CLI_OK;
}
