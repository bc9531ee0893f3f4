/* cli/source/data-dir.c - see data-dir.h. The three roots are compiled in by the build file. */
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "cli/source/data-dir.h"
#include "plan/files/nearest.h"

G_DEFINE_QUARK(foreshard_cli_data_error, cli_data_error)

typedef struct {
    const char *what; /* in messages */
    const char *folder;
    const char *source_folder; /* in the source tree */
    const char *ending;
    const char *in_folder; /* the file that a folder may be named for; NULL: none */
} Kind;

static const Kind kinds[] = {
    [CLI_DATA_NETWORKS] = {"network", "networks", "models/networks", ".ini", "config.json"},
    [CLI_DATA_CLUSTERS] = {"cluster", "clusters", "models/clusters", ".ini", NULL},
    [CLI_DATA_PLOTS] = {"plot script", "plots", "plots/scripts", ".gp", NULL},
    [CLI_DATA_PUBLISHED] = {"set of rules", "published", "models/published", ".ini", NULL},
};

/* Links resolved, since the build root may have been reached by one; NULL if there is no such
 * file. */
static char *real_path(const char *path) {
    char buffer[PATH_MAX];
    return realpath(path, buffer) != NULL ? g_strdup(buffer) : NULL;
}

static bool lies_in(const char *path, const char *folder) {
    g_autofree char *real = real_path(path);
    g_autofree char *real_folder = real_path(folder);
    if (real == NULL || real_folder == NULL) {
        return false;
    }
    size_t length = strlen(real_folder);
    return strncmp(real, real_folder, length) == 0 && real[length] == G_DIR_SEPARATOR;
}

void cli_data_roots_init(CliDataRoots *roots, const char *program, const char *user) {
    g_autofree char *self = NULL;
    if (program == NULL) {
        self = g_file_read_link("/proc/self/exe", NULL);
        program = self;
    }
    bool in_build = program != NULL && lies_in(program, FORESHARD_BUILD_ROOT);
    *roots = (CliDataRoots){
        .user = user != NULL && *user != '\0' ? g_strdup(user) : NULL,
        .source = in_build ? g_strdup(FORESHARD_SOURCE_ROOT) : NULL,
        .installed = g_strdup(FORESHARD_DATADIR),
    };
}

void cli_data_roots_clear(CliDataRoots *roots) {
    if (roots == NULL) {
        return;
    }
    g_clear_pointer(&roots->user, g_free);
    g_clear_pointer(&roots->source, g_free);
    g_clear_pointer(&roots->installed, g_free);
}

/* The folders of a kind, in the order in which they are searched. */
static GPtrArray *folders_of(const CliDataRoots *roots, const Kind *kind) {
    GPtrArray *folders = g_ptr_array_new_with_free_func(g_free);
    if (roots->user != NULL) {
        g_ptr_array_add(folders, g_build_filename(roots->user, kind->folder, NULL));
    }
    if (roots->source != NULL) {
        g_ptr_array_add(folders, g_build_filename(roots->source, kind->source_folder, NULL));
    }
    if (roots->installed != NULL) {
        g_ptr_array_add(folders, g_build_filename(roots->installed, kind->folder, NULL));
    }
    return folders;
}

static bool is_file(const char *path) {
    return g_file_test(path, G_FILE_TEST_IS_REGULAR);
}

/* A model's folder, as Hugging Face's tools leave it; NULL: it is none. */
static char *file_in(const char *folder, const Kind *kind) {
    g_autofree char *path =
        kind->in_folder != NULL ? g_build_filename(folder, kind->in_folder, NULL) : NULL;
    return path != NULL && is_file(path) ? g_steal_pointer(&path) : NULL;
}

/* "config.json", but not "llama3.2-1b": what is behind its last dot are letters. */
static bool is_said_as_file(const char *name) {
    const char *dot = strrchr(name, '.');
    const char *ending = dot != NULL ? dot + 1 : "";
    gsize n = 0;
    while (g_ascii_isalpha(ending[n])) {
        n++;
    }
    return n > 0 && ending[n] == '\0';
}

/* "meta-llama/Llama-3.1-8B": an owner, who is no folder here, and what is no file. */
static bool is_said_as_on_hub(const char *path) {
    g_auto(GStrv) parts = g_strsplit(path, G_DIR_SEPARATOR_S, -1);
    return g_strv_length(parts) == 2 && g_ascii_isalpha(*parts[0]) && *parts[1] != '\0' &&
           !is_said_as_file(path) && !g_file_test(parts[0], G_FILE_TEST_EXISTS);
}

/* What a path leads to that is no file of its kind. */
static const char *what_it_is(const char *path, const Kind *kind) {
    if (!g_file_test(path, G_FILE_TEST_EXISTS)) {
        bool is_network = kind->in_folder != NULL;
        return is_network && is_said_as_on_hub(path) ? "no network has this name here"
                                                     : "there is no such file";
    }
    bool may_be_folder = kind->in_folder != NULL && g_file_test(path, G_FILE_TEST_IS_DIR);
    return may_be_folder ? "this folder holds no config.json; name one that does, or a file"
                         : "this is no regular file; name one";
}

/* "Llama-3.1-8B" of "Meta-Llama-3.1-8B-Instruct": what a model was made for does not change its
 * shape. */
static char *without_purpose(const char *base) {
    static const char *const purposes[] = {"-instruct", "-chat", "-base", "-it", "-hf"};
    char *name = g_ascii_strdown(base, -1);
    for (guint i = 0; i < G_N_ELEMENTS(purposes); i++) {
        if (g_str_has_suffix(name, purposes[i])) {
            name[strlen(name) - strlen(purposes[i])] = '\0';
        }
    }
    if (g_str_has_prefix(name, "meta-")) {
        memmove(name, name + strlen("meta-"), strlen(name) - strlen("meta-") + 1);
    }
    return name;
}

/* "meta-llama/Llama-3-70B" is no path, but a model's name where others keep it. */
static char *hint_at(const CliDataRoots *roots, CliDataKind kind, const char *path) {
    g_auto(GStrv) names = cli_data_names_in(roots, kind);
    g_autofree char *whole = g_path_get_basename(path);
    g_autofree char *base = without_purpose(whole);
    bool exists = g_file_test(path, G_FILE_TEST_EXISTS);
    char *near = exists ? g_strdup("") : plan_did_you_mean(base, (const char *const *)names);
    bool is_named = *near == '\0' && !exists && kinds[kind].in_folder != NULL;
    if (is_named) {
        g_free(near);
        near = g_strdup(is_said_as_file(path)
                            ? "; `foreshard list networks` names what needs no file"
                            : "; a model of the Hub is planned by its config.json, and `foreshard "
                              "list networks` names others");
    }
    return near;
}

enum {
    FEW_NAMES = 12 /* that a message lists */
};

/* What there is, where none of it is near. */
static char *others_than(CliDataKind kind, char **names) {
    guint n = g_strv_length(names);
    if (n <= FEW_NAMES) {
        g_autofree char *known = g_strjoinv(", ", names);
        return n == 0 ? g_strdup_printf("; there are none, so foreshard is not installed here: "
                                        "FORESHARD_DATA=FOLDER names a folder with %s/",
                                        kinds[kind].folder)
                      : g_strdup_printf("; there %s: %s", n == 1 ? "is" : "are", known);
    }
    return g_strdup_printf("; `foreshard list` names the %u there are%s", n,
                           kind == CLI_DATA_NETWORKS
                               ? ", and a config.json from Hugging Face may stand there, or a "
                                 "traced network (docs/own-network.md)"
                               : "");
}

/* With the names that are near, or else with all. */
static void set_no_name(const CliDataRoots *roots, CliDataKind kind, const char *name,
                        GError **error) {
    g_autoptr(GPtrArray) folders = folders_of(roots, &kinds[kind]);
    g_auto(GStrv) names = cli_data_names_in(roots, kind);
    g_autofree char *near = plan_did_you_mean(name, (const char *const *)names);
    g_autoptr(GString) searched = g_string_new(NULL);
    for (guint i = 0; i < folders->len; i++) {
        if (i == 0 || !g_str_equal(folders->pdata[i], folders->pdata[i - 1])) {
            g_string_append_printf(searched, "%s%s", i > 0 ? ", " : "",
                                   (const char *)folders->pdata[i]);
        }
    }
    g_autofree char *others = *near != '\0' ? g_strdup("") : others_than(kind, names);
    g_autofree char *rest = g_strdup_printf("%s (looked in %s)%s", near, searched->str, others);
    g_set_error(error, CLI_DATA_ERROR, CLI_DATA_ERROR_NONE_SUCH, "no %s is called '%s'%s",
                kinds[kind].what, name, rest);
}

/* Where a file of the current folder might have been meant, too. */
static void set_none_such(const CliDataRoots *roots, CliDataKind kind, const char *name,
                          GError **error) {
    if (is_said_as_file(name) && g_file_test(name, G_FILE_TEST_EXISTS)) {
        g_set_error(error, CLI_DATA_ERROR, CLI_DATA_ERROR_NONE_SUCH, "%s: %s", name,
                    what_it_is(name, &kinds[kind]));
        return;
    }
    if (is_said_as_file(name)) {
        g_auto(GStrv) names = cli_data_names_in(roots, kind);
        bool is_program = g_str_has_suffix(name, ".py"); /* no name of ours is near to one */
        g_autofree char *near =
            is_program ? g_strdup("") : plan_did_you_mean(name, (const char *const *)names);
        g_set_error(
            error, CLI_DATA_ERROR, CLI_DATA_ERROR_NONE_SUCH,
            "%s: there is no such file%s; `foreshard list` names what needs no file%s", name, near,
            is_program ? ", and docs/own-network.md says how a program's network is traced" : "");
        return;
    }
    g_autofree char *traced = g_strconcat(name, ".network", NULL);
    bool is_traced = kind == CLI_DATA_NETWORKS && is_file(traced);
    g_autofree char *here = g_strconcat(name, is_traced ? ".network" : kinds[kind].ending, NULL);
    if (is_file(here)) {
        g_set_error(error, CLI_DATA_ERROR, CLI_DATA_ERROR_NONE_SUCH,
                    "no %s is called '%s'; the file %s is here: name it with its ending",
                    kinds[kind].what, name, here);
        return;
    }
    set_no_name(roots, kind, name, error);
}

/* In the folders of its kind; NULL without an error: no folder has it. */
static char *find_in_folders(const CliDataRoots *roots, const Kind *kind, const char *name) {
    bool has_ending = g_str_has_suffix(name, kind->ending);
    g_autofree char *file_name = g_strconcat(name, has_ending ? "" : kind->ending, NULL);
    g_autoptr(GPtrArray) folders = folders_of(roots, kind);
    for (guint i = 0; i < folders->len; i++) {
        g_autofree char *path = g_build_filename(folders->pdata[i], file_name, NULL);
        if (is_file(path)) {
            return g_steal_pointer(&path);
        }
    }
    return NULL;
}

static bool check_user(const CliDataRoots *roots, const Kind *kind, GError **error) {
    if (roots->user != NULL && !g_file_test(roots->user, G_FILE_TEST_IS_DIR)) {
        g_set_error(error, CLI_DATA_ERROR, CLI_DATA_ERROR_FOLDER,
                    "FORESHARD_DATA is '%s', which is no folder; name one that holds %s/, or unset "
                    "it",
                    roots->user, kind->folder);
        return false;
    }
    return true;
}

char *cli_data_find_in(const CliDataRoots *roots, CliDataKind kind, const char *name,
                       GError **error) {
    const Kind *row = &kinds[kind];
    if (strchr(name, G_DIR_SEPARATOR) != NULL) {
        if (is_file(name)) {
            return g_strdup(name);
        }
        char *inside = file_in(name, row);
        if (inside == NULL) {
            g_autofree char *hint = hint_at(roots, kind, name);
            g_set_error(error, CLI_DATA_ERROR, CLI_DATA_ERROR_NONE_SUCH, "%s: %s%s", name,
                        what_it_is(name, row), hint);
        }
        return inside;
    }
    if (g_str_has_suffix(name, row->ending) && is_file(name)) {
        return g_strdup(name);
    }
    if (!check_user(roots, row, error)) {
        return NULL;
    }
    char *path = find_in_folders(roots, row, name);
    if (path != NULL) {
        return path;
    }
    if (is_file(name)) { /* config.json, my-network */
        return g_strdup(name);
    }
    char *inside = file_in(name, row);
    if (inside == NULL) {
        set_none_such(roots, kind, name, error);
    }
    return inside;
}

static int compare_names(gconstpointer a, gconstpointer b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

char **cli_data_names_in(const CliDataRoots *roots, CliDataKind kind) {
    const Kind *row = &kinds[kind];
    g_autoptr(GPtrArray) all = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GPtrArray) folders = folders_of(roots, row);
    for (guint i = 0; i < folders->len; i++) {
        g_autoptr(GDir) dir = g_dir_open(folders->pdata[i], 0, NULL);
        const char *entry;
        while (dir != NULL && (entry = g_dir_read_name(dir)) != NULL) {
            g_autofree char *path = g_build_filename(folders->pdata[i], entry, NULL);
            if (g_str_has_suffix(entry, row->ending) && is_file(path)) {
                g_ptr_array_add(all, g_strndup(entry, strlen(entry) - strlen(row->ending)));
            }
        }
    }
    g_ptr_array_sort(all, compare_names);

    GPtrArray *names = g_ptr_array_new();
    for (guint i = 0; i < all->len; i++) {
        if (i == 0 || strcmp(all->pdata[i - 1], all->pdata[i]) != 0) {
            g_ptr_array_add(names, g_strdup(all->pdata[i]));
        }
    }
    g_ptr_array_add(names, NULL);
    return (char **)g_ptr_array_free(names, FALSE);
}

char *cli_data_find(CliDataKind kind, const char *name, GError **error) {
    g_auto(CliDataRoots) roots = {0};
    cli_data_roots_init(&roots, NULL, g_getenv("FORESHARD_DATA"));
    return cli_data_find_in(&roots, kind, name, error);
}

char *cli_data_find_named(CliDataKind kind, const char *name, GError **error) {
    g_auto(CliDataRoots) roots = {0};
    cli_data_roots_init(&roots, NULL, g_getenv("FORESHARD_DATA"));
    if (!check_user(&roots, &kinds[kind], error)) {
        return NULL;
    }
    char *path = find_in_folders(&roots, &kinds[kind], name);
    if (path == NULL) {
        set_no_name(&roots, kind, name, error);
    }
    return path;
}

char **cli_data_names(CliDataKind kind) {
    g_auto(CliDataRoots) roots = {0};
    cli_data_roots_init(&roots, NULL, g_getenv("FORESHARD_DATA"));
    return cli_data_names_in(&roots, kind);
}
