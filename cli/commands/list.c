/* cli/commands/list.c - foreshard list: the networks and clusters that a name can mean, and the
 * file of one of them. */
#include <stdio.h>
#include <string.h>

#include "cli/cluster.h"
#include "cli/command.h"
#include "cli/commands/commands.h"
#include "cli/data-dir.h"
#include "cli/output.h"
#include "cli/prose.h"
#include "models/network.h"
#include "plan/files/file.h"
#include "plan/files/nearest.h"

static const CliCommand command = {
    .words = "[networks | clusters | NAME]",
    .most = 1,
    .give = "networks, clusters, nothing for both, or one name of them for its file",
    .summary = "Lists the networks and the clusters that can be named: those that come with "
               "foreshard, and "
               "those\nin $FORESHARD_DATA. Of one NAME it prints the file, to begin one of your "
               "own with.",
    .examples = "Examples:\n"
                "  foreshard list\n"
                "  foreshard list clusters\n"
                "  foreshard list networks --names\n"
                "  foreshard list a100-p4d -o ours.ini\n"
                "\n"
                "Exit status: 0 listed; 1 the file cannot be written; 2 there is no such list or "
                "name, or a file\ncannot be read.",
};

static char *size_text(uint64_t parameters) {
    double millions = (double)parameters / 1e6;
    return millions >= 1000 ? g_strdup_printf("%.2f B", millions / 1e3)
                            : g_strdup_printf("%.2f M", millions);
}

static bool print_network(const char *name, const char *path, GError **error) {
    g_autoptr(ModelNetwork) network = model_network_read_file(path, error);
    g_autoptr(PlanGraph) graph =
        network ? model_network_emit(network, &(ModelPass){.batch = 1}, error) : NULL;
    if (!graph) {
        return false;
    }
    uint64_t parameters = 0;
    for (guint i = 0; i < graph->parameters->len; i++) {
        parameters += plan_graph_at(graph->parameters, PlanGraphParameter, i)->elements;
    }
    g_autofree char *size = size_text(parameters);
    printf("  %-18s %10s parameters, %3u layers, width %5u, sequences of %u\n", name, size,
           (unsigned)network->layers, (unsigned)network->width, (unsigned)network->seq);
    return true;
}

static bool print_cluster(const char *name, const char *path, GError **error) {
    g_autoptr(ModelCluster) cluster = cli_cluster_read_file(path, error);
    if (!cluster) {
        return false;
    }
    cli_say("  %-18s %5u ranks: %s\n", name, (unsigned)model_cluster_ranks(cluster),
            cluster->title);
    return true;
}

typedef struct {
    const char *what;
    CliDataKind kind;
    bool (*print)(const char *name, const char *path, GError **error);
} List;

static const List lists[] = {
    {"networks", CLI_DATA_NETWORKS, print_network},
    {"clusters", CLI_DATA_CLUSTERS, print_cluster},
};

static bool print_list(const List *list, bool names_alone, GError **error) {
    g_auto(GStrv) names = cli_data_names(list->kind);
    if (!names_alone) {
        printf("%s\n", list->what);
    }
    for (char **name = names; *name; name++) {
        g_autofree char *path = cli_data_find(list->kind, *name, error);
        if (!path || (!names_alone && !list->print(*name, path, error))) {
            return false;
        }
        if (names_alone) {
            printf("%s\n", *name);
        }
    }
    return true;
}

/* what: NULL for all. */
static int list_all(const char *what, bool names_alone) {
    bool any = false;
    for (unsigned i = 0; i < G_N_ELEMENTS(lists); i++) {
        g_autoptr(GError) error = NULL;
        if (what && !g_str_equal(what, lists[i].what)) {
            continue;
        }
        any = true;
        if (!print_list(&lists[i], names_alone, &error)) {
            return cli_complain(CLI_BAD_INPUT, "%s", error->message);
        }
    }
    if (any) {
        return CLI_OK;
    }
    g_auto(GStrv) networks = cli_data_names(CLI_DATA_NETWORKS);
    g_auto(GStrv) clusters = cli_data_names(CLI_DATA_CLUSTERS);
    g_autofree char *network = plan_did_you_mean(what, (const char *const *)networks);
    g_autofree char *near = *network != '\0'
                                ? g_steal_pointer(&network)
                                : plan_did_you_mean(what, (const char *const *)clusters);
    return cli_complain(CLI_BAD_INPUT,
                        "there is no list of '%s', nor a network or cluster of that name%s%s", what,
                        *near != '\0' ? near : "; give ", *near != '\0' ? "" : command.give);
}

/* The path of a name's file; NULL: nothing has that name. */
static char *find_named(const char *name) {
    for (unsigned i = 0; i < G_N_ELEMENTS(lists); i++) {
        g_auto(GStrv) names = cli_data_names(lists[i].kind);
        if (g_strv_contains((const char *const *)names, name)) {
            return cli_data_find(lists[i].kind, name, NULL);
        }
    }
    return NULL;
}

/* A file that its owner has edited is not lost to a command that is given again. */
static bool spares_edited(const char *output, const char *text, gsize length, GError **error) {
    g_autofree char *there = NULL;
    gsize length_there = 0;
    bool is_there = !cli_output_is_standard(output) &&
                    g_file_test(output, G_FILE_TEST_IS_REGULAR) &&
                    g_file_get_contents(output, &there, &length_there, NULL);
    if (is_there && (length_there != length || memcmp(there, text, length) != 0)) {
        g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_EXIST,
                    "%s is there already, and is another; name a new file, or remove that one",
                    output);
        return false;
    }
    return true;
}

static int print_file(const char *path, const char *output) {
    g_autoptr(GError) error = NULL;
    gsize length;
    g_autofree char *text = plan_file_text(path, &length, &error);
    if (!text) {
        return cli_complain(CLI_BAD_INPUT, "%s: %s", path, error->message);
    }
    if (!cli_spares_inputs(output, (const char *const[]){path}, 1, &error) ||
        !spares_edited(output, text, length, &error)) {
        return cli_complain(CLI_BAD_INPUT, "%s", error->message);
    }
    return cli_output_write(output, text, length, &error)
               ? CLI_OK
               : cli_complain(CLI_FAILED, "%s", error->message);
}

int cmd_list(int argc, char **argv) {
    gboolean names = FALSE;
    g_autofree char *output = NULL;
    const GOptionEntry entries[] = {
        {"names", 0, 0, G_OPTION_ARG_NONE, &names, "names alone, one a line", NULL},
        {"output", 'o', 0, G_OPTION_ARG_FILENAME, &output,
         "of a NAME: write its file here; - is standard output", "FILE.ini"},
        G_OPTION_ENTRY_NULL,
    };
    g_autoptr(GOptionContext) context = cli_command_context(&command, entries);
    if (!cli_command_read(&command, context, &argc, &argv)) {
        return CLI_BAD_INPUT;
    }
    const char *what = argc == 2 ? argv[1] : NULL;
    g_autofree char *path = what ? find_named(what) : NULL;
    if (!path && output) {
        return cli_complain(CLI_BAD_INPUT, "-o is for the file of one network or cluster; give its "
                                           "name, as in: foreshard list a100-p4d -o ours.ini");
    }
    return path ? print_file(path, output ? output : "-") : list_all(what, names);
}
