#include <string.h>

#include "models/config/json.h"
#include "models/network.h"
#include "models/traced/traced.h"
#include "plan/files/file.h"

static bool is_json(const char *text, const char *path) {
    return text[strspn(text, " \t\r\n")] == '{' || g_str_has_suffix(path, ".json");
}

/* A config.json is named after the folder it lies in. */
static char *name_of_config(const char *path) {
    g_autofree char *base = g_path_get_basename(path);
    g_autofree char *absolute = g_canonicalize_filename(path, NULL);
    g_autofree char *folder = g_path_get_dirname(absolute);
    return g_str_equal(base, "config.json") ? g_path_get_basename(folder) : g_strdup(base);
}

/* The reader names a line of the text that was made; whoever wrote the JSON knows its fields. */
static void name_field(GError *error, const char *path, const char *ini) {
    g_autofree char *prefix = g_strconcat(path, ":", NULL);
    if (!g_str_has_prefix(error->message, prefix)) {
        return;
    }
    char *rest;
    guint64 line = g_ascii_strtoull(error->message + strlen(prefix), &rest, 10);
    g_auto(GStrv) lines = g_strsplit(ini, "\n", -1);
    const char *field =
        line > 0 && line <= g_strv_length(lines) ? strstr(lines[line - 1], " # ") : NULL;
    char *message = field ? g_strdup_printf("%s: field '%s'%s", path, field + strlen(" # "), rest)
                          : g_strdup_printf("%s%s", path, rest);
    g_free(error->message);
    error->message = message;
}

static bool sets_key(const char *line, const char *key) {
    gsize n = strlen(key);
    line += strspn(line, " \t");
    return strncmp(line, key, n) == 0 && line[n + strspn(line + n, " \t")] == '=';
}

/* In the line that has the key, so that other lines keep their numbers, or in one more. */
static char *with_changes(const char *text, const char *const *changes) {
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    GString *more = g_string_new(NULL);
    for (; *changes; changes++) {
        g_auto(GStrv) pair = g_strsplit(*changes, "=", 2);
        bool found = false;
        for (char **line = lines; *line; line++) {
            if (sets_key(*line, pair[0])) {
                g_free(*line);
                *line = g_strdup_printf("%s = %s", pair[0], pair[1]);
                found = true;
            }
        }
        if (!found) {
            g_string_append_printf(more, "%s = %s\n", pair[0], pair[1]);
        }
    }
    g_autofree char *changed = g_strjoinv("\n", lines);
    bool ends = *changed == 0 || g_str_has_suffix(changed, "\n") || more->len == 0;
    g_string_prepend(more, ends ? "" : "\n");
    g_string_prepend(more, changed);
    return g_string_free(more, FALSE);
}

/* A file's name may hold anything; a title with it is shown on terminals. */
static void keep_name_harmless(ModelNetwork *network) {
    for (char *c = network ? network->name : NULL; c && *c; c++) {
        *c = g_ascii_iscntrl(*c) ? '?' : *c;
    }
}

static ModelNetwork *read_ini(const char *ini, gsize length, const char *path,
                              const char *const *changes, GError **error) {
    if (!changes || !*changes) {
        return model_network_read(ini, length, path, error);
    }
    if (model_traced_is(ini, length)) {
        g_set_error(error, PLAN_ERROR, PLAN_ERROR_VALUE,
                    "%s: a traced network has no keys; change the program and trace it again",
                    path);
        return NULL;
    }
    g_autofree char *changed = with_changes(ini, changes);
    return model_network_read(changed, strlen(changed), path, error);
}

/* Files beside a network that say too little of it, or all but its shape; NULL: another. */
static const char *what_is_wanted(const char *path) {
    static const char weights[] = "these are weights; name the config.json beside them";
    static const char settings[] =
        "these are a trainer's settings; name the network (its config.json), and give them as "
        "options: docs/hugging-face.md and docs/own-run.md translate them";
    static const struct {
        const char *ending, *wanted;
    } files[] = {
        {".py", "this is a program; trace its network by models/pytorch/trace.py "
                "(docs/own-network.md), and name the file that it writes"},
        {".safetensors", weights},
        {".bin", weights},
        {".pt", weights},
        {".pth", weights},
        {".gguf", weights},
        {".yaml", settings},
        {".yml", settings},
        {".toml", settings},
    };
    for (unsigned i = 0; i < G_N_ELEMENTS(files); i++) {
        if (g_str_has_suffix(path, files[i].ending)) {
            return files[i].wanted;
        }
    }
    return NULL;
}

ModelNetwork *model_network_read_file(const char *path, GError **error) {
    return model_network_read_file_with(path, NULL, error);
}

static ModelNetwork *read_config(const char *text, gsize length, const char *path,
                                 const char *const *changes, GError **error) {
    g_auto(ModelConfigLeftOut) left_out = {NULL};
    g_autofree char *ini = model_config_json_to_ini(text, length, path, &left_out, error);
    if (!ini) {
        return NULL;
    }
    g_autoptr(GError) cause = NULL;
    ModelNetwork *network = read_ini(ini, strlen(ini), path, changes, &cause);
    if (!network) {
        name_field(cause, path, ini);
        g_propagate_error(error, g_steal_pointer(&cause));
        return NULL;
    }
    g_free(network->name);
    network->name = name_of_config(path);
    network->dropouts = g_steal_pointer(&left_out.dropouts);
    network->quantized = g_steal_pointer(&left_out.quantized);
    network->from_config = true;
    network->ends_at_window = left_out.longer;
    return network;
}

ModelNetwork *model_network_read_file_with(const char *path, const char *const *changes,
                                           GError **error) {
    gsize length;
    g_autofree char *text = plan_file_text(path, &length, error);
    if (!text) {
        return NULL;
    }
    const char *wanted = what_is_wanted(path);
    if (wanted) {
        g_set_error(error, PLAN_ERROR, PLAN_ERROR_VALUE, "%s: %s", path, wanted);
        return NULL;
    }
    ModelNetwork *network = is_json(text, path) ? read_config(text, length, path, changes, error)
                                                : read_ini(text, length, path, changes, error);
    keep_name_harmless(network);
    if (!changes || !*changes) {
        return network;
    }
    g_autofree char *all = g_strjoinv(" ", (char **)changes);
    if (!network) {
        g_prefix_error(error, "with %s: ", all);
        return NULL;
    }
    char *name = g_strdup_printf("%s (%s)", network->name, all);
    g_free(network->name);
    network->name = name;
    return network;
}
