/* models/cluster-whole.c - a cluster's file as it would be if it were like no other: what those say
 * that it is like is written out, each number below its source, for whoever edits all of it. */
#include <string.h>

#include "models/cluster-private.h"
#include "plan/files/file.h"

typedef struct {
    char **lines;
    PlanIni *ini;
} Text;

static void text_clear(Text *text) {
    g_strfreev(text->lines);
    plan_ini_free(text->ini);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Text, text_clear)

static bool text_init(Text *text, const char *string, const char *path, GError **error) {
    const char *mark = "\xEF\xBB\xBF"; /* that editors on Windows put before UTF-8 (U+FEFF) */
    text->lines = g_strsplit(string + (g_str_has_prefix(string, mark) ? 3 : 0), "\n", -1);
    for (char **line = text->lines; *line; line++) {
        g_strstrip(*line);
    }
    text->ini = plan_ini_read(string, strlen(string), path, error);
    return text->ini != NULL;
}

static bool is_comment(const char *line) {
    return line[0] == '#' || line[0] == ';';
}

static bool is_key(const char *line) {
    return line[0] != '\0' && line[0] != '[' && !is_comment(line);
}

/* A comment is for all keys below it up to the next; it stands again where another file's keys came
 * between. last: the comment above; becomes this entry's. */
static void write_entry(GString *out, const Text *text, const PlanIniEntry *entry, GString *last) {
    unsigned first_key = entry->line - 1;
    while (first_key > 0 && is_key(text->lines[first_key - 1])) {
        first_key--;
    }
    unsigned first = first_key;
    while (first > 0 && is_comment(text->lines[first - 1])) {
        first--;
    }
    g_autoptr(GString) comment = g_string_new(NULL);
    for (unsigned i = first; i < first_key; i++) {
        g_string_append_printf(comment, "%s\n", text->lines[i]);
    }
    g_string_append(out, g_string_equal(comment, last) ? "" : comment->str);
    g_string_append_printf(out, "%s\n", text->lines[entry->line - 1]);
    g_string_assign(last, comment->str);
}

static bool is_like(const PlanIniEntry *entry) {
    return g_str_equal(entry->section, "cluster") && g_str_equal(entry->key, "like");
}

/* In the other's order, what is the file's own alone behind. */
static void write_section(GString *out, const Text *own, const Text *other, const char *section) {
    g_autoptr(GString) last = g_string_new(NULL);
    for (unsigned i = 0; i < other->ini->n_entries; i++) {
        const PlanIniEntry *entry = &other->ini->entries[i];
        const PlanIniEntry *instead = plan_ini_find(own->ini, section, entry->key);
        if (g_str_equal(entry->section, section)) {
            write_entry(out, instead ? own : other, instead ? instead : entry, last);
        }
    }
    for (unsigned i = 0; i < own->ini->n_entries; i++) {
        const PlanIniEntry *entry = &own->ini->entries[i];
        if (g_str_equal(entry->section, section) && !is_like(entry) &&
            !plan_ini_find(other->ini, section, entry->key)) {
            write_entry(out, own, entry, last);
        }
    }
}

static void add_sections(GPtrArray *sections, const PlanIni *ini) {
    for (unsigned i = 0; i < ini->n_entries; i++) {
        const char *section = ini->entries[i].section;
        if (!g_ptr_array_find_with_equal_func(sections, section, g_str_equal, NULL)) {
            g_ptr_array_add(sections, (gpointer)section);
        }
    }
}

static char *write_out(const Text *own, const Text *other, const char *like) {
    GString *out = g_string_new(NULL);
    for (char **line = own->lines; *line && **line != '['; line++) {
        g_string_append_printf(out, "%s%s", *line, **line != '\0' ? "\n" : "");
    }
    g_string_append_printf(out, "# It is like %s, whose numbers are written out here.\n", like);
    g_autoptr(GPtrArray) sections = g_ptr_array_new();
    add_sections(sections, other->ini);
    add_sections(sections, own->ini);
    for (guint i = 0; i < sections->len; i++) {
        const char *section = sections->pdata[i];
        g_string_append_printf(out, "\n[%s]\n", section);
        write_section(out, own, other, section);
    }
    return g_string_free(out, FALSE);
}

static char *whole_text(const char *string, const ModelClusterReading *reading, GError **error) {
    g_auto(Text) own = {0}, other = {0};
    if (!text_init(&own, string, reading->path, error)) {
        return NULL;
    }
    const PlanIniEntry *like = plan_ini_find(own.ini, "cluster", "like");
    if (!like) {
        return g_strdup(string);
    }
    g_autofree char *path = NULL;
    gsize length;
    g_autofree char *text =
        model_cluster_text_of_like(own.ini, like, reading, &path, &length, error);
    const ModelClusterReading reading_other = {
        .path = path, .find = reading->find, .asked_by = reading};
    g_autofree char *whole = text ? whole_text(text, &reading_other, error) : NULL;
    return whole && text_init(&other, whole, path, error) ? write_out(&own, &other, like->value)
                                                          : NULL;
}

char *model_cluster_whole_text(const char *path, ModelClusterFind find, GError **error) {
    gsize length;
    g_autofree char *text = plan_file_text(path, &length, error);
    const ModelClusterReading reading = {.path = path, .find = find};
    return text ? whole_text(text, &reading, error) : NULL;
}
