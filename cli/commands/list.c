/* cli/commands/list.c - foreshard list: the networks and clusters that a name can mean, and the
 * file of one of them. */
#include <stdio.h>
#include <string.h>

#include "cli/commands/commands.h"
#include "cli/options/command.h"
#include "cli/say/output.h"
#include "cli/say/prose.h"
#include "cli/say/rows-csv.h"
#include "cli/source/cluster.h"
#include "cli/source/data-dir.h"
#include "models/network.h"
#include "plan/files/file.h"
#include "plan/files/nearest.h"
#include "trace/json.h"

static const CliCommand command = {
    .words = "[networks | clusters | NAME | PART]",
    .most = 1,
    .give = "networks, clusters, nothing for both, a part of names, or one name for its file",
    .summary =
        "Lists the networks and the clusters that can be named: those that come with foreshard, "
        "and those in $FORESHARD_DATA; with a PART of names, as h100, those that have it. Of one "
        "NAME it prints the file, to begin one of your own with; what a cluster has of others that "
        "it is like is written out in it.",
    .examples =
        "Examples:\n"
        "  foreshard list\n"
        "  foreshard list clusters\n"
        "  foreshard list networks --names\n"
        "  foreshard list qwen\n"
        "  foreshard list a100-p4d -o ours.ini\n\n"
        "Exit status: 0 listed; 1 the file cannot be written; 2 there is no such list or name, or "
        "a file cannot be read.",
};

static char *size_text(uint64_t parameters) {
    double millions = (double)parameters / 1e6;
    return millions >= 1000 ? g_strdup_printf("%.2f B", millions / 1e3)
                            : g_strdup_printf("%.2f M", millions);
}

/* json: NULL prints a line, else an object is added. */
static bool show_network(const char *name, const char *path, JsonBuilder *json, GError **error) {
    g_autoptr(ModelNetwork) network = model_network_read_file(path, error);
    g_autoptr(PlanGraph) graph =
        network ? model_network_emit(network, &(ModelPass){.batch = 1}, error) : NULL;
    if (!graph) {
        return false;
    }
    uint64_t parameters = 0;
    for (guint i = 0; i < graph->parameters.len; i++) {
        parameters += plan_graph_parameter_at(graph, i)->elements;
    }
    if (json) {
        json_builder_begin_object(json);
        trace_json_add_text(json, "name", name);
        trace_json_add_int(json, "parameters", parameters);
        trace_json_add_int(json, "layers", network->layers);
        trace_json_add_int(json, "width", network->width);
        trace_json_add_int(json, "seq", network->seq);
        json_builder_end_object(json);
    } else {
        g_autofree char *size = size_text(parameters);
        printf("  %-18s %10s parameters, %3u layers, width %5u, sequences of %u\n", name, size,
               (unsigned)network->layers, (unsigned)network->width, (unsigned)network->seq);
    }
    return true;
}

static bool show_cluster(const char *name, const char *path, JsonBuilder *json, GError **error) {
    g_autoptr(ModelCluster) cluster = cli_cluster_read_file(path, error);
    if (!cluster) {
        return false;
    }
    uint64_t ranks = model_cluster_ranks(cluster);
    if (json) {
        json_builder_begin_object(json);
        trace_json_add_text(json, "name", name);
        trace_json_add_text(json, "title", cluster->title);
        trace_json_add_text(json, "device", cluster->model);
        trace_json_add_int(json, "ranks", ranks);
        trace_json_add_int(json, "nodes", cluster->topology_nodes);
        trace_json_add_int(json, "memory_bytes", cluster->device_memory_bytes);
        json_builder_end_object(json);
    } else {
        cli_say("  %-18s %5u ranks: %s\n", name, (unsigned)ranks, cluster->title);
    }
    return true;
}

static char *network_text(const char *path, GError **error) {
    gsize length;
    return plan_file_text(path, &length, error);
}

typedef struct {
    const char *what;
    CliDataKind kind;
    bool (*show)(const char *name, const char *path, JsonBuilder *json, GError **error);
    char *(*text)(const char *path, GError **error); /* of its file, to be edited */
} List;

static const List lists[] = {
    {"networks", CLI_DATA_NETWORKS, show_network, network_text},
    {"clusters", CLI_DATA_CLUSTERS, show_cluster, cli_cluster_whole_text},
};

typedef enum {
    AS_TEXT,
    AS_NAMES,
    AS_JSON,
    AS_CSV
} Form;

/* part: of the names; NULL: all are shown. */
static char **names_of(const List *list, const char *part) {
    char **all = cli_data_names(list->kind);
    guint kept = 0;
    for (char **name = all; *name; name++) {
        if (part && !strstr(*name, part)) {
            g_free(*name);
        } else {
            all[kept++] = *name;
        }
    }
    all[kept] = NULL;
    return all;
}

/* A list with nothing in it has no heading. */
static bool show_list(const List *list, char **names, Form form, JsonBuilder *json,
                      GError **error) {
    if (form == AS_TEXT && *names) {
        printf("%s\n", list->what);
    }
    bool is_built = form == AS_JSON || form == AS_CSV;
    if (is_built) {
        trace_json_begin_array(json, list->what);
    }
    for (char **name = names; *name; name++) {
        g_autofree char *path = cli_data_find(list->kind, *name, error);
        bool shown =
            path && (form == AS_NAMES || list->show(*name, path, is_built ? json : NULL, error));
        if (!shown) {
            return false;
        }
        if (form == AS_NAMES) {
            printf("%s\n", *name);
        }
    }
    if (is_built) {
        json_builder_end_array(json);
    }
    return true;
}

/* "gpus" is near to gpt2. NULL: it is none of these words. */
static const char *list_meant_by(const char *what) {
    static const char *const of_networks[] = {"models", "model", "network", "nets", NULL};
    static const char *const of_clusters[] = {"gpus",    "gpu",     "machines", "hardware", "nodes",
                                              "devices", "machine", "cluster",  NULL};
    return g_strv_contains(of_networks, what)   ? "networks"
           : g_strv_contains(of_clusters, what) ? "clusters"
                                                : NULL;
}

static int complain_of(const char *what) {
    const char *list = list_meant_by(what);
    if (list != NULL) {
        return cli_complain(CLI_BAD_INPUT, "there is no list of '%s'; did you mean %s?", what,
                            list);
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

static bool is_list(const char *what) {
    bool is = false;
    for (unsigned i = 0; what && i < G_N_ELEMENTS(lists); i++) {
        is |= g_str_equal(what, lists[i].what);
    }
    return is;
}

/* what: a list, or a part of names; NULL for all. */
static int list_all(const char *what, Form form) {
    bool any = false, is_whole = is_list(what);
    g_autoptr(JsonBuilder) json = json_builder_new();
    json_builder_begin_object(json);
    for (unsigned i = 0; i < G_N_ELEMENTS(lists); i++) {
        g_autoptr(GError) error = NULL;
        if (is_whole && !g_str_equal(what, lists[i].what)) {
            continue;
        }
        g_auto(GStrv) names = names_of(&lists[i], is_whole ? NULL : what);
        any |= is_whole || !what || *names;
        if (!show_list(&lists[i], names, form, json, &error)) {
            return cli_complain(CLI_BAD_INPUT, "%s", error->message);
        }
    }
    json_builder_end_object(json);
    if (any && form == AS_JSON) {
        cli_output_print_json(json);
    } else if (any && form == AS_CSV) {
        cli_rows_print_csv(json, what);
    }
    return any ? CLI_OK : complain_of(what);
}

/* The list that has this name; NULL: none. */
static const List *list_with(const char *name) {
    for (unsigned i = 0; i < G_N_ELEMENTS(lists); i++) {
        g_auto(GStrv) names = cli_data_names(lists[i].kind);
        if (g_strv_contains((const char *const *)names, name)) {
            return &lists[i];
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
        g_set_error(
            error, G_FILE_ERROR, G_FILE_ERROR_EXIST,
            "%s is there already, and says something else; name a new file, or remove that one",
            output);
        return false;
    }
    return true;
}

static int print_file(const List *list, const char *name, const char *output) {
    g_autoptr(GError) error = NULL;
    g_autofree char *path = cli_data_find(list->kind, name, &error);
    g_autofree char *text = path ? list->text(path, &error) : NULL;
    if (!text || !cli_spares_inputs(output, (const char *const[]){path}, 1, &error) ||
        !spares_edited(output, text, strlen(text), &error)) {
        return cli_complain(CLI_BAD_INPUT, "%s", error->message);
    }
    return cli_output_write(output, text, strlen(text), &error)
               ? CLI_OK
               : cli_complain(CLI_FAILED, "%s", error->message);
}

int cmd_list(int argc, char **argv) {
    gboolean names = FALSE, json = FALSE, csv = FALSE;
    char *output = NULL;
    const GOptionEntry entries[] = {
        {"names", 0, 0, G_OPTION_ARG_NONE, &names, "names alone, one a line", NULL},
        {"json", 'j', 0, G_OPTION_ARG_NONE, &json, "print one JSON object: what the lists say",
         NULL},
        {"csv", 0, 0, G_OPTION_ARG_NONE, &csv, "of networks or of clusters: a line each, as CSV",
         NULL},
        {"output", 'o', 0, G_OPTION_ARG_FILENAME, &output,
         "of a NAME: write its file here; - is standard output", "FILE.ini"},
        G_OPTION_ENTRY_NULL,
    };
    g_autoptr(GOptionContext) context = cli_command_context(&command, entries);
    if (!cli_command_read(&command, entries, context, &argc, &argv)) {
        return CLI_BAD_INPUT;
    }
    const char *what = argc == 2 ? argv[1] : NULL;
    const List *list = what ? list_with(what) : NULL;
    if (!list && output) {
        return cli_complain(CLI_BAD_INPUT, "-o is for the file of one network or cluster; give its "
                                           "name, as in: foreshard list a100-p4d -o ours.ini");
    }
    if (json && (list || names)) {
        return cli_complain(CLI_BAD_INPUT,
                            "--json is for lists, not for %s; leave one of them away",
                            list ? "the file of one name" : "--names");
    }
    if (csv && (json || list || names || !is_list(what))) {
        return cli_complain(CLI_BAD_INPUT,
                            "--csv is of one list, networks or clusters, without --json or "
                            "--names, as in: foreshard list clusters --csv");
    }
    return list ? print_file(list, what, output ? output : "-")
                : list_all(what, json    ? AS_JSON
                                 : csv   ? AS_CSV
                                 : names ? AS_NAMES
                                         : AS_TEXT);
}
