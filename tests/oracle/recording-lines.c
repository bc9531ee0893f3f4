#include "tests/oracle/recording-lines.h"

#include "plan/plan.h"

enum {
    FIELDS_AT_MOST = 5
};

static bool wants(GError **error, const char *what, const char *key, const char *form) {
    g_set_error(error, PLAN_ERROR, PLAN_ERROR_SYNTAX,
                "%s lacks %s, %s; record it again, or take the line from the recorder's own file",
                what, key, form);
    return false;
}

static bool holds(JsonObject *object, const char *key, GType type) {
    JsonNode *node = json_object_get_member(object, key);
    return node && JSON_NODE_HOLDS_VALUE(node) && json_node_get_value_type(node) == type;
}

static bool is_whole(JsonObject *object, const char *key) {
    return holds(object, key, G_TYPE_INT64) && json_object_get_int_member(object, key) >= 0;
}

JsonObject *recording_object_at(JsonObject *object, const char *key) {
    JsonNode *node = json_object_get_member(object, key);
    return node && JSON_NODE_HOLDS_OBJECT(node) ? json_node_get_object(node) : NULL;
}

static bool has_wholes(JsonObject *object, const char *what, const char *const *keys,
                       GError **error) {
    for (; *keys; keys++) {
        if (!is_whole(object, *keys)) {
            return wants(error, what, *keys, "a whole number from 0");
        }
    }
    return true;
}

static bool has_texts(JsonObject *object, const char *what, const char *const *keys,
                      GError **error) {
    for (; *keys; keys++) {
        if (!holds(object, *keys, G_TYPE_STRING)) {
            return wants(error, what, *keys, "a text");
        }
    }
    return true;
}

/* ---- the header ------------------------------------------------------------------------------ */

bool recording_check_header(JsonObject *header, GError **error) {
    static const char *const texts[] = {"torch", NULL}, *const wholes[] = {"parameters", NULL},
                             *const objects[] = {"shape", "options", NULL},
                             *const ranks[] = {"world", "rank", NULL};
    if (!has_texts(header, "the header", texts, error) ||
        !has_wholes(header, "the header", wholes, error)) {
        return false;
    }
    for (const char *const *key = objects; *key; key++) {
        if (!recording_object_at(header, *key)) {
            return wants(error, "the header", *key, "an object");
        }
    }
    JsonObject *options = recording_object_at(header, "options");
    if (!has_wholes(options, "the header's options", ranks, error)) {
        return false;
    }
    gint64 world = json_object_get_int_member(options, "world"),
           rank = json_object_get_int_member(options, "rank");
    if (rank >= world) {
        g_set_error(error, PLAN_ERROR, PLAN_ERROR_VALUE,
                    "rank %" G_GINT64_FORMAT " is none of %" G_GINT64_FORMAT
                    " ranks; they are numbered from 0",
                    rank, world);
        return false;
    }
    return true;
}

/* ---- events ---------------------------------------------------------------------------------- */

static const struct {
    const char *kind;
    const char *wholes[FIELDS_AT_MOST];
    const char *texts[FIELDS_AT_MOST];
} kinds[] = {
    {"alive", {"block", "bytes"}, {"category", "stream"}},
    {"alloc", {"block", "bytes"}, {"category", "op", "stream"}},
    {"free", {"block"}, {NULL}},
    {"collective", {"output_bytes", "group_size"}, {"op", "stream"}},
    {"stream_switch", {NULL}, {"stream"}},
    {"wait_stream", {NULL}, {"stream", "waits_for"}},
    {"record_stream", {NULL}, {"stream"}},
    {"event_record", {"event"}, {"stream"}},
    {"wait_event", {"event"}, {"stream"}},
    {"event_synchronize", {"event"}, {NULL}},
};

bool recording_check_event(JsonObject *event, GError **error) {
    static const char *const kind[] = {"kind", NULL};
    if (!has_texts(event, "the event", kind, error)) {
        return false;
    }
    const char *name = json_object_get_string_member(event, "kind");
    for (unsigned i = 0; i < G_N_ELEMENTS(kinds); i++) {
        if (g_str_equal(name, kinds[i].kind)) {
            return has_wholes(event, name, kinds[i].wholes, error) &&
                   has_texts(event, name, kinds[i].texts, error);
        }
    }
    return true;
}

/* ---- summaries ------------------------------------------------------------------------------- */

static bool has_totals(JsonObject *summary, const char *what, const char *const *keys,
                       const char *within, GError **error) {
    for (; *keys; keys++) {
        JsonObject *bytes = recording_object_at(summary, *keys);
        bytes = bytes && within ? recording_object_at(bytes, within) : bytes;
        if (!bytes || !is_whole(bytes, "total")) {
            return wants(error, what, *keys, "bytes by category with their total");
        }
    }
    return true;
}

static bool has_peaks(JsonObject *summary, const char *what, GError **error) {
    static const char *const peaks[] = {"peak_bytes", "peak_rounded", NULL};
    return has_totals(summary, what, peaks, "breakdown", error);
}

static bool is_collective(JsonNode *node) {
    static const GType types[] = {G_TYPE_STRING, G_TYPE_STRING, G_TYPE_INT64, G_TYPE_STRING,
                                  G_TYPE_STRING};
    JsonArray *fields = JSON_NODE_HOLDS_ARRAY(node) ? json_node_get_array(node) : NULL;
    bool is_one = fields && json_array_get_length(fields) >= G_N_ELEMENTS(types);
    for (unsigned i = 0; is_one && i < G_N_ELEMENTS(types); i++) {
        JsonNode *field = json_array_get_element(fields, i);
        is_one = JSON_NODE_HOLDS_VALUE(field) && json_node_get_value_type(field) == types[i];
    }
    return is_one;
}

static bool has_collectives(JsonObject *summary, GError **error) {
    JsonNode *node = json_object_get_member(summary, "collective_order");
    JsonArray *order = node && JSON_NODE_HOLDS_ARRAY(node) ? json_node_get_array(node) : NULL;
    bool is_whole_list = order != NULL;
    for (unsigned i = 0; is_whole_list && i < json_array_get_length(order); i++) {
        is_whole_list = is_collective(json_array_get_element(order, i));
    }
    return is_whole_list || wants(error, "the summary", "collective_order",
                                  "of each collective its op, unit, bytes, stream and phase");
}

bool recording_check_summary(JsonObject *summary, GError **error) {
    static const char *const ends[] = {"start", "start_rounded", "end", "end_rounded", NULL};
    if (recording_object_at(summary, "phases")) {
        return true; /* of a GPU, by gpu/record_memory.py */
    }
    JsonObject *evaluation = recording_object_at(summary, "evaluation");
    return has_totals(summary, "the summary", ends, NULL, error) &&
           has_peaks(summary, "the summary", error) &&
           (!evaluation || has_peaks(evaluation, "the evaluation", error)) &&
           has_collectives(summary, error);
}

/* ---- steps ----------------------------------------------------------------------------------- */

bool recording_check_step(JsonObject *of_step, unsigned n_ended, GError **error) {
    static const char *const step[] = {"step", NULL};
    if (!has_wholes(of_step, "the line", step, error)) {
        return false;
    }
    gint64 number = json_object_get_int_member(of_step, "step");
    if (number != n_ended) {
        g_set_error(error, PLAN_ERROR, PLAN_ERROR_VALUE,
                    "step %" G_GINT64_FORMAT " stands where step %u is due; steps are in order, "
                    "and each ends with its summary",
                    number, n_ended);
        return false;
    }
    return true;
}
