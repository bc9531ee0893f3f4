/* cli/options/command.h - what commands do alike: say what they take, read it, complain, end.
 *
 * Complaints begin with the program's name, which main.c sets to that of the command.
 */
#pragma once

#include <glib.h>
#include <limits.h>
#include <stdbool.h>

#include "plan/refuse.h"

/* Exit statuses. */
enum {
    CLI_OK = 0,
    CLI_FAILED = 1, /* at run time */
    CLI_BAD_INPUT = 2
};

typedef struct {
    const char *words;    /* beside options, as --help has them: "(PLAN | NETWORK)" */
    int least, most;      /* how many words */
    const char *give;     /* when there are fewer or more: "one PLAN or NETWORK" */
    const char *summary;  /* what it does */
    const char *examples; /* and the exit statuses */
} CliCommand;

/* Borrows both; the values that entries are given go with the context. */
GOptionContext *cli_command_context(const CliCommand *command, const GOptionEntry *entries);

/* Takes options out of argv, which keeps the words; complains of what is wrong. An unknown one is
 * answered with those that are near, one of the entries that is given two values with both. */
bool cli_command_read(const CliCommand *command, const GOptionEntry *entries,
                      GOptionContext *context, int *argc, char ***argv);

/* For an option's callback: keeps its value, and refuses another one, as cli_command_read() does of
 * its entries. remedy: behind "give one". */
bool cli_take_once(char **place, const char *option, const char *value, const char *remedy,
                   GError **error);

/* What a rank or a device is before its option is read. */
enum {
    CLI_NOT_GIVEN = INT_MIN
};
/* Complains of a number below 0; one that was not given becomes -1. */
bool cli_number_is_sound(const char *option, int *number);

/* As plan_refuse(), of what an option was given. */
#define cli_refuse(error, ...)                                                                     \
    plan_refuse(error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE, __VA_ARGS__)

/* One line on stderr, which a terminal gets broken between words; returns status. */
int cli_complain(int status, const char *format, ...) G_GNUC_PRINTF(2, 3);

/* Whether writing output (NULL: nothing) leaves the n inputs whole; names of no file, and NULL, are
 * fine. */
bool cli_spares_inputs(const char *output, const char *const *inputs, unsigned n, GError **error);
