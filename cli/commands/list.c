/* cli/commands/list.c - foreshard list: the networks and clusters that a name can mean. */
#include <stdio.h>
#include <string.h>

#include "cli/command.h"
#include "cli/commands/commands.h"
#include "cli/data-dir.h"
#include "models/cluster.h"
#include "models/network.h"

static const CliCommand command = {
    .words = "[networks | clusters]",
    .most = 1,
    .give = "networks, clusters, or nothing for both",
    .summary = "Lists the networks and the clusters that can be named: those that come with "
               "foreshard, and "
               "those\nin $FORESHARD_DATA.",
    .examples = "Examples:\n"
                "  foreshard list\n"
                "  foreshard list clusters\n"
                "  foreshard list networks --names\n"
                "\n"
                "Exit status: 0 listed; 2 there is no such list, or a file cannot be read.",
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
    g_autoptr(ModelCluster) cluster = model_cluster_read_file(path, error);
    if (!cluster) {
        return false;
    }
    printf("  %-18s %5u ranks: %s\n", name, (unsigned)model_cluster_ranks(cluster), cluster->title);
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
    return any ? CLI_OK
               : cli_complain(CLI_BAD_INPUT, "there is no list of '%s'; give %s", what,
                              command.give);
}

int cmd_list(int argc, char **argv) {
    gboolean names = FALSE;
    const GOptionEntry entries[] = {
        {"names", 0, 0, G_OPTION_ARG_NONE, &names, "names alone, one a line", NULL},
        G_OPTION_ENTRY_NULL,
    };
    g_autoptr(GOptionContext) context = cli_command_context(&command, entries);
    if (!cli_command_read(&command, context, &argc, &argv)) {
        return CLI_BAD_INPUT;
    }
    return list_all(argc == 2 ? argv[1] : NULL, names);
}
