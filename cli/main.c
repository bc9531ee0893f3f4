/* cli/main.c - the `foreshard` command: finds the sub-command and hands over. */
#include <errno.h>
#include <glib.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/commands/commands.h"
#include "cli/host/heap.h"
#include "cli/options/command.h"
#include "plan/files/nearest.h"

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *help;
} commands[] = {
    {"plan", cmd_plan, "build a plan from a network and a strategy, show it, check it"},
    {"units", cmd_units, "what is gathered, used and dropped together; the tree of modules"},
    {"list", cmd_list, "the networks and clusters that can be named"},
    {"predict", cmd_predict, "play a plan on a modeled cluster: memory, step time, does it fit"},
    {"choose", cmd_choose, "which settings, how many GPUs: what fits, ranked by time or price"},
    {"collectives", cmd_collectives, "times of collectives on a cluster, and NCCL's choice"},
    {"validate", cmd_validate, "predict published measurements, and say how far off we are"},
    {"run", cmd_run, "play the same plan for real on local ranks"},
    {"rehearse", cmd_rehearse, "play one rank of many by itself, with stand-ins for the others"},
    {"calibrate", cmd_calibrate, "measure this machine, as a cluster to predict on"},
    {"compare", cmd_compare, "hold a predicted trace against a measured one"},
    {"replay", cmd_replay, "a measured play's memory again: equal at every instruction?"},
    {"plot", cmd_plot, "draw traces (memory, lanes, jitter), or what settings change"},
    {"report", cmd_report, "traces as one page of HTML: verdicts, pictures, tables, diagnosis"},
    {"diagnose", cmd_diagnose, "what a trace waits for, what it holds, and what would change it"},
    {"explain", cmd_explain, "a number down to its rows and formula; every sharding side by side"},
    {"export", cmd_export, "a trace for Perfetto, or for PyTorch's memory_viz page"},
};

static void print_help(FILE *to) {
    fprintf(to, "Usage: foreshard COMMAND ...\n\n"
                "Predicts a sharded training run, and proves the prediction by running the "
                "identical plan.\n\nCommands:\n");
    for (unsigned i = 0; i < G_N_ELEMENTS(commands); i++) {
        fprintf(to, "  %-11s %s\n", commands[i].name, commands[i].help);
    }
    fprintf(to,
            "\n`foreshard COMMAND --help` says what a command takes. To begin with:\n"
            "  foreshard plot gpt2-xl -n 8 --cluster a100-node     # memory over time\n"
            "  foreshard predict gpt2-xl -n 8 --cluster a100-node  # does it fit, and train well?\n"
            "  foreshard diagnose gpt2-xl -n 8 --cluster a100-node # what would change that\n"
            "  foreshard choose gpt2-xl --cluster a100-node        # which settings are best\n");
}

/* What people call them whose name is not near. */
static const struct {
    const char *theirs, *ours;
} called[] = {
    {"fit fits estimate simulate sim memory oom time", "predict"},
    {"optimize optimise tune search sweep recommend plan-capacity price cost", "choose"},
    {"draw graph chart timeline", "plot"},
    {"train execute launch", "run"},
    {"models networks clusters gpus", "list"},
    {"why debug advise", "diagnose"},
    {"diff", "compare"},
};

static char *meant_by(const char *name, const char *const *names) {
    for (unsigned i = 0; i < G_N_ELEMENTS(called); i++) {
        g_auto(GStrv) theirs = g_strsplit(called[i].theirs, " ", -1);
        if (g_strv_contains((const char *const *)theirs, name)) {
            return g_strdup_printf("; did you mean %s?", called[i].ours);
        }
    }
    return plan_did_you_mean(name, names);
}

static int complain_of(const char *name) {
    const char *names[G_N_ELEMENTS(commands) + 1] = {NULL};
    for (unsigned i = 0; i < G_N_ELEMENTS(commands); i++) {
        names[i] = commands[i].name;
    }
    g_autofree char *near = meant_by(name, names);
    return cli_complain(CLI_BAD_INPUT, "there is no command '%s'%s `foreshard --help` lists them",
                        name, *near != '\0' ? near : ";");
}

static int ending = CLI_OK; /* the status that this program is about to end with */

/* What a full disk, or a standard output that is closed, kept from being printed is a failure of
 * whatever printed it. Also after --help, with which GLib ends the program. */
static void check_output(void) {
    errno = 0;
    bool kept = ferror(stdout) != 0;
    if (fflush(stdout) == 0 && !kept) {
        return;
    }
    if (ending == CLI_OK) {
        cli_complain(CLI_FAILED, "the output cannot be written%s%s", errno ? ": " : "",
                     errno ? g_strerror(errno) : "");
        _exit(CLI_FAILED);
    }
}

static int end(int status) {
    ending = status;
    return status;
}

/* "-n64" is "-n 64", as elsewhere; to GLib it is three letters. */
static char **apart(int argc, char **argv) {
    GPtrArray *words = g_ptr_array_new();
    for (int i = 0; i < argc; i++) {
        bool is_both = g_ascii_isalpha(argv[i][0] == '-' ? argv[i][1] : '\0') &&
                       g_ascii_isdigit(argv[i][2]) &&
                       strspn(argv[i] + 2, "0123456789") == strlen(argv[i] + 2);
        g_ptr_array_add(words, is_both ? g_strndup(argv[i], 2) : g_strdup(argv[i]));
        if (is_both) {
            g_ptr_array_add(words, g_strdup(argv[i] + 2));
        }
    }
    g_ptr_array_add(words, NULL);
    return (char **)g_ptr_array_free(words, FALSE);
}

static int run_command(int argc, char **argv) {
    for (unsigned i = 0; i < G_N_ELEMENTS(commands); i++) {
        if (g_str_equal(commands[i].name, argv[0])) {
            g_autofree char *name = g_strconcat("foreshard ", argv[0], NULL);
            g_set_prgname(name); /* what --help calls the program */
            g_auto(GStrv) words = apart(argc, argv);
            g_autofree char **left = g_memdup2(words, (g_strv_length(words) + 1) * sizeof *words);
            return end(commands[i].run((int)g_strv_length(words), left));
        }
    }
    return complain_of(argv[0]);
}

/* `help COMMAND` is `COMMAND --help`. */
static int show_help(const char *name) {
    if (name == NULL) {
        print_help(stdout);
        return CLI_OK;
    }
    char option[] = "--help";
    char *words[] = {(char *)name, option, NULL};
    return run_command(2, words);
}

/* Writing then fails, and that is told. Not SIG_IGN, which programs that are started inherit. */
static void files_may_not_grow(int sig) {
    (void)sig;
}

int main(int argc, char **argv) {
    cli_heap_in_large_pages();
    setlocale(LC_CTYPE, "");
    signal(SIGXFSZ, files_may_not_grow);
    signal(SIGCHLD, SIG_DFL); /* whoever ignores it, as it is inherited, hears of no child's end */
    g_set_prgname("foreshard");
    atexit(check_output);
    if (argc < 2) {
        print_help(stderr);
        return CLI_BAD_INPUT;
    }
    if (g_str_equal(argv[1], "--help") || g_str_equal(argv[1], "-h")) {
        return show_help(NULL);
    }
    if (g_str_equal(argv[1], "help")) {
        return show_help(argv[2]);
    }
    if (g_str_equal(argv[1], "--version")) {
        printf("foreshard %s\n", FORESHARD_VERSION);
        return CLI_OK;
    }
    return run_command(argc - 1, argv + 1);
}
