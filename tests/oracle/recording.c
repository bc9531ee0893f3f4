#include "tests/oracle/recording.h"

#include <stdio.h>
#include <string.h>

#include "models/network.h"
#include "tests/oracle/recording-lines.h"
#include "tests/oracle/recording-private.h"

void recording_free(Recording *recording) {
    if (recording) {
        g_free(recording->file_name);
        g_clear_pointer(&recording->header, json_object_unref);
        g_ptr_array_unref(recording->summaries);
        g_ptr_array_unref(recording->events);
        g_ptr_array_unref(recording->construction);
        g_free(recording);
    }
}

static bool take_event(Recording *recording, JsonObject *event, GError **error) {
    if (!recording_check_event(event, error)) {
        return false;
    }
    if (json_object_has_member(event, "construction")) {
        g_ptr_array_add(recording->construction, json_object_ref(event));
        return true;
    }
    if (!recording_check_step(event, recording->summaries->len, error)) {
        return false;
    }
    while (recording->events->len <= recording->summaries->len) {
        g_ptr_array_add(recording->events,
                        g_ptr_array_new_with_free_func((GDestroyNotify)json_object_unref));
    }
    g_ptr_array_add(recording->events->pdata[recording->summaries->len], json_object_ref(event));
    return true;
}

static bool take_line(Recording *recording, JsonObject *line, GError **error) {
    JsonObject *header = recording_object_at(line, "header");
    JsonObject *summary = recording_object_at(line, "summary");
    if (header) {
        g_clear_pointer(&recording->header, json_object_unref);
        recording->header = json_object_ref(header);
        return recording_check_header(header, error);
    }
    if (summary) {
        if (!recording_check_summary(summary, error) ||
            !recording_check_step(summary, recording->summaries->len, error)) {
            return false;
        }
        g_ptr_array_add(recording->summaries, json_object_ref(summary));
        return true;
    }
    bool is_event =
        json_object_has_member(line, "construction") || json_object_has_member(line, "step");
    return !is_event || take_event(recording, line, error);
}

static bool is_complete(const Recording *recording, GError **error) {
    if (!recording->header || !recording->summaries->len) {
        g_set_error(error, PLAN_ERROR, PLAN_ERROR_SYNTAX,
                    "%s: not a recording, or one cut short: it lacks %s; record it again",
                    recording->file_name,
                    recording->header ? "the summary that ends a step" : "a header");
        return false;
    }
    if (recording->events->len > recording->summaries->len) {
        g_set_error(error, PLAN_ERROR, PLAN_ERROR_SYNTAX,
                    "%s: cut short: step %u has no summary; record it again", recording->file_name,
                    recording->summaries->len);
        return false;
    }
    return true;
}

/* Python writes an option that is infinite (--clip inf: the norm alone) so, which is no JSON. */
static char *with_finite_numbers(const char *line) {
    g_auto(GStrv) parts = g_strsplit(line, ":Infinity", -1);
    return g_strjoinv(":1e300", parts);
}

Recording *recording_read(const char *path, GError **error) {
    g_autofree char *text = NULL;
    if (!g_file_get_contents(path, &text, NULL, error)) {
        return NULL;
    }
    g_autoptr(Recording) recording = g_new0(Recording, 1);
    recording->file_name = g_strdup(path);
    recording->summaries = g_ptr_array_new_with_free_func((GDestroyNotify)json_object_unref);
    recording->construction = g_ptr_array_new_with_free_func((GDestroyNotify)json_object_unref);
    recording->events = g_ptr_array_new_with_free_func((GDestroyNotify)g_ptr_array_unref);
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    for (unsigned i = 0; lines[i]; i++) {
        if (!*lines[i]) {
            continue;
        }
        g_autofree char *line = with_finite_numbers(lines[i]);
        g_autoptr(JsonParser) parser = json_parser_new();
        g_autoptr(GError) cause = NULL;
        if (!json_parser_load_from_data(parser, line, -1, &cause) ||
            !JSON_NODE_HOLDS_OBJECT(json_parser_get_root(parser))) {
            g_set_error(error, PLAN_ERROR, PLAN_ERROR_SYNTAX, "%s:%u: no JSON object: %s", path,
                        i + 1, cause ? cause->message : "");
            return NULL;
        }
        if (!take_line(recording, json_node_get_object(json_parser_get_root(parser)), error)) {
            g_prefix_error(error, "%s:%u: ", path, i + 1);
            return NULL;
        }
    }
    if (!is_complete(recording, error)) {
        return NULL;
    }
    return g_steal_pointer(&recording);
}

/* ---- its header ------------------------------------------------------------------------------ */

const char *recorded_text(JsonObject *object, const char *key) {
    JsonNode *node = json_object_get_member(object, key);
    return node && JSON_NODE_HOLDS_VALUE(node) && json_node_get_value_type(node) == G_TYPE_STRING
               ? json_node_get_string(node)
               : "";
}

gint64 recorded_int(JsonObject *object, const char *key) {
    JsonNode *node = json_object_get_member(object, key);
    return node && JSON_NODE_HOLDS_VALUE(node) ? json_node_get_int(node) : 0;
}

bool recorded_is(JsonObject *object, const char *key, const char *text) {
    return g_str_equal(recorded_text(object, key), text);
}

bool recording_has_experts(const Recording *recording) {
    JsonObject *shape = json_object_get_object_member(recording->header, "shape");
    return is_recorded(shape, "experts") && recorded_int(shape, "experts") > 0;
}

uint32_t recording_rank(const Recording *recording, const Plan *plan) {
    JsonObject *options = json_object_get_object_member(recording->header, "options");
    gint64 rank = recorded_int(options, "rank");
    return rank < plan->world ? (uint32_t)rank : 0;
}

uint64_t recording_forgotten_bytes(const Recording *recording) {
    JsonObject *shape = json_object_get_object_member(recording->header, "shape");
    JsonObject *options = json_object_get_object_member(recording->header, "options");
    bool has_bias = recorded_is(shape, "kind", "t5") && recorded_is(shape, "attention", "flash");
    if (!has_bias || (recorded_yes(recording->header, "whole_storages"))) {
        return 0;
    }
    bool is_fsdp = g_str_has_prefix(recorded_text(options, "mode"), "fsdp");
    const char *dtype = recorded_text(
        options, is_fsdp && is_recorded(options, "param_dtype") ? "param_dtype" : "model_dtype");
    uint64_t beyond = (uint64_t)recorded_int(shape, "seq") % 16;
    return beyond ? (16 - beyond) * (g_str_equal(dtype, "fp32") ? 4 : 2) : 0;
}

bool recording_is_compiled(const Recording *recording) {
    JsonObject *options = json_object_get_object_member(recording->header, "options");
    return (recorded_yes(options, "compile")) || recording_is_compiled_whole(recording);
}

bool recording_is_compiled_in_parts(const Recording *recording) {
    return recording_is_compiled(recording) && recording_has_experts(recording);
}

bool recording_is_compiled_whole(const Recording *recording) {
    JsonObject *options = json_object_get_object_member(recording->header, "options");
    return recorded_yes(options, "compile_network");
}

bool recording_has_third_kind(const Recording *recording) {
    JsonObject *options = json_object_get_object_member(recording->header, "options");
    return recorded_yes(options, "ddp_static_graph") && recorded_int(options, "accumulate") == 1;
}

bool recording_is_before_2_1(const Recording *recording) {
    const char *torch = recorded_text(recording->header, "torch");
    return g_str_has_prefix(torch, "1.") || g_str_has_prefix(torch, "2.0.");
}

bool recording_knows_lanes(const Recording *recording) {
    JsonObject *options = json_object_get_object_member(recording->header, "options");
    return !recorded_is(options, "mode", "ddp") && !recording_is_before_2_1(recording) &&
           recorded_int(options, "pipeline_stages") < 2;
}

bool recording_has_groups_of_one(const Recording *recording) {
    JsonObject *options = json_object_get_object_member(recording->header, "options");
    return recorded_is(options, "mode", "fsdp1") && recorded_int(options, "shard_size") == 1;
}

/* ---- header to plan -------------------------------------------------------------------------- */

bool recording_refuse(const Recording *recording, GError **error, const char *what) {
    g_set_error(error, PLAN_ERROR, PLAN_ERROR_VALUE, "%s: a plan cannot express its %s yet",
                recording->file_name, what);
    return false;
}

/* What plans refuse names no file. */
static void name_file(const Recording *recording, GError **error) {
    if (!g_str_has_prefix((*error)->message, recording->file_name)) {
        g_prefix_error(error, "%s: ", recording->file_name);
    }
}

Plan *recording_plan(const Recording *recording, RecordingProgram program, GError **error) {
    PlanStrategy strategy;
    if (!recorded_strategy(recording, program, &strategy, error) ||
        !plan_strategy_settle(&strategy, error)) {
        name_file(recording, error);
        return NULL;
    }
    g_autofree char *text = recorded_network_text(recording, error);
    if (!text) {
        return NULL;
    }
    g_autofree char *name =
        g_strdup_printf("%s: its shape, as a network's file", recording->file_name);
    g_autoptr(ModelNetwork) network = model_network_read(text, strlen(text), name, error);
    return network ? model_network_plan(network, &strategy, PLAN_FORM_WHOLE, error) : NULL;
}

int recording_check_all(const char *program, int argc, char **argv,
                        int (*check_file)(const char *path)) {
    if (argc < 2) {
        fprintf(stderr, "usage: %s [--network FILE] RECORD.jsonl...\n", program);
        return 2;
    }
    int worst = 0;
    int first = 1;
    if (argc > 2 && g_str_equal(argv[1], "--network")) {
        recorded_network_take(argv[2]);
        first = 3;
    }
    for (int i = first; i < argc; i++) {
        int status = check_file(argv[i]);
        worst = MAX(worst, status);
    }
    return worst;
}
