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

typedef struct {
    gboolean json, csv, brief, settings, kinds;
    int cores;
} Options;

static bool options_are_sound(const Options *o, GError **error) {
    if (o->csv && (o->json || o->brief)) {
        return cli_refuse(error, "--csv is a form of its own, of all rows; leave %s away",
                          o->json ? "--json" : "--brief");
    }
    if ((o->settings || o->kinds) && (o->json || o->csv || o->brief || o->settings == o->kinds)) {
        return cli_refuse(error, "%s prints a table of its own; leave %s away",
                          o->settings ? "--settings" : "--kinds",
                          o->json    ? "--json"
                          : o->csv   ? "--csv"
                          : o->brief ? "--brief"
                                     : "--kinds");
    }
    return o->cores >= 0 ||
           cli_refuse(error, "--cores is %d; give 1 or more, or 0 for as many as there are",
                      o->cores);
}

static bool validate(const char *const *paths, const Options *o, GError **error) {
    bool as_text = !o->json && !o->csv && !o->kinds;
    g_autoptr(CliValidation) validation = cli_validation_new(as_text && !o->brief ? stdout : NULL);
    validation->threads = (unsigned)o->cores;
    if (!cli_validation_add_all(validation, paths, error)) {
        return false;
    }
    if (o->kinds) {
        g_autofree char *text = cli_validation_kinds(validation);
        printf("%s", text);
        return true;
    }
    cli_one_share_score(validation);
    if (o->json) {
        g_autofree char *text = cli_validation_json(validation);
        printf("%s\n", text);
    } else if (o->csv) {
        cli_validation_print_csv(validation);
    } else {
        cli_validation_print(validation, stdout);
    }
    return true;
}

int cmd_validate(int argc, char **argv) {
    Options options = {0};
    const GOptionEntry entries[] = {
        {"json", 'j', 0, G_OPTION_ARG_NONE, &options.json, "print one JSON object", NULL},
        {"csv", 0, 0, G_OPTION_ARG_NONE, &options.csv,
         "print each row, measured and predicted, as CSV", NULL},
        {"brief", 0, 0, G_OPTION_ARG_NONE, &options.brief, "print no rows, only their summaries",
         NULL},
        {"settings", 0, 0, G_OPTION_ARG_NONE, &options.settings,
         "print, as CSV, each run's settings and why they are so", NULL},
        {"kinds", 0, 0, G_OPTION_ARG_NONE, &options.kinds,
         "print, as an ini file, how far off each kind of training run is: what predict says of "
         "itself (models/published/errors.ini)",
         NULL},
        {"cores", 0, 0, G_OPTION_ARG_INT, &options.cores,
         "predict on so many at a time; what is printed stays the same (default all there are, 16 "
         "at most)",
         "N"},
        {0},
    };
    g_autoptr(GOptionContext) context = cli_command_context(&command, entries);
    if (!cli_command_read(&command, entries, context, &argc, &argv)) {
        return CLI_BAD_INPUT;
    }
    g_autoptr(GError) error = NULL;
    const char *const *paths = (const char *const *)(argv + 1);
    bool done =
        options_are_sound(&options, &error) &&
        (options.settings ? cli_validation_list(paths, (unsigned)options.cores, stdout, &error)
                          : validate(paths, &options, &error));
    return done ? CLI_OK : cli_complain(CLI_BAD_INPUT, "%s", error->message);
}
