/* cli/explain/json.c - an explanation for programs: the numbers that it states, by their keys, and
 * the lines of rows and reasons as they are printed.
 *
 * What is explained is written as lines. One that begins "KEY = VALUE" states a number, and what
 * follows the colon or the second equals sign is how it comes about. */
#include <string.h>

#include "cli/explain/explain.h"
#include "trace/json.h"

/* "step_ms = 12.5: the median of ..."; parts 1 to 3. */
static GRegex *number_line(void) {
    return g_regex_new("^([a-z_][a-z0-9_.]*) = (.+?)(?:[:,] | = |$)(.*)$", 0, 0, NULL);
}

static void add_value(JsonBuilder *json, const char *text) {
    char *end;
    double number = g_ascii_strtod(text, &end);
    guint64 whole;
    if (g_str_equal(text, "true") || g_str_equal(text, "false")) {
        trace_json_add_bool(json, "value", text[0] == 't');
    } else if (g_ascii_string_to_unsigned(text, 10, 0, G_MAXINT64, &whole, NULL)) {
        trace_json_add_int(json, "value", whole);
    } else if (end != text && *end == '\0') {
        trace_json_add_real(json, "value", number);
    } else {
        trace_json_add_text(json, "value", text);
    }
}

static void add_numbers(JsonBuilder *json, char **lines) {
    g_autoptr(GRegex) regex = number_line();
    g_autoptr(GHashTable) said = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    trace_json_begin_object(json, "numbers");
    for (guint i = 0; lines[i] != NULL; i++) {
        g_autoptr(GMatchInfo) match = NULL;
        if (!g_regex_match(regex, lines[i], 0, &match)) {
            continue;
        }
        g_autofree char *key = g_match_info_fetch(match, 1);
        g_autofree char *value = g_match_info_fetch(match, 2);
        g_autofree char *formula = g_match_info_fetch(match, 3);
        if (g_hash_table_add(said, g_strdup(key))) {
            trace_json_begin_object(json, key);
            add_value(json, value);
            trace_json_add_text(json, "formula", formula);
            json_builder_end_object(json);
        }
    }
    json_builder_end_object(json);
}

static void add_lines(JsonBuilder *json, char **lines) {
    trace_json_begin_array(json, "lines");
    for (guint i = 0; lines[i] != NULL; i++) {
        if (*lines[i] != '\0') {
            json_builder_add_string_value(json, lines[i]);
        }
    }
    json_builder_end_array(json);
}

char *cli_explanation_json(const CliSubject *subject, const char *name, const GString *text) {
    g_autoptr(JsonBuilder) json = json_builder_new();
    g_auto(GStrv) lines = g_strsplit(text->str, "\n", -1);
    json_builder_begin_object(json);
    trace_json_add_text(json, "name", name);
    trace_json_add_text(json, "title", trace_get(subject->trace, "title"));
    trace_json_add_text(json, "plan_digest", trace_get(subject->trace, "digest"));
    trace_json_add_text(json, "side", trace_get(subject->trace, "side"));
    trace_json_add_int(json, "rank", subject->summary->rank);
    add_numbers(json, lines);
    add_lines(json, lines);
    json_builder_end_object(json);
    return trace_json_text(json);
}
