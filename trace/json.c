#include "trace/json.h"

#include <math.h>

void trace_json_begin_object(JsonBuilder *json, const char *key) {
    json_builder_set_member_name(json, key);
    json_builder_begin_object(json);
}

void trace_json_begin_array(JsonBuilder *json, const char *key) {
    json_builder_set_member_name(json, key);
    json_builder_begin_array(json);
}

void trace_json_add_int(JsonBuilder *json, const char *key, uint64_t value) {
    json_builder_set_member_name(json, key);
    json_builder_add_int_value(json, (gint64)value);
}

void trace_json_add_real(JsonBuilder *json, const char *key, double value) {
    json_builder_set_member_name(json, key);
    if (isnan(value)) {
        json_builder_add_null_value(json);
    } else {
        json_builder_add_double_value(json, value);
    }
}

void trace_json_add_number(JsonBuilder *json, const char *key, double value) {
    if (value == floor(value) && fabs(value) < 0x1p53) {
        json_builder_set_member_name(json, key);
        json_builder_add_int_value(json, (gint64)value);
    } else {
        trace_json_add_real(json, key, value);
    }
}

void trace_json_add_text(JsonBuilder *json, const char *key, const char *value) {
    json_builder_set_member_name(json, key);
    if (value != NULL) {
        json_builder_add_string_value(json, value);
    } else {
        json_builder_add_null_value(json);
    }
}

void trace_json_add_bool(JsonBuilder *json, const char *key, bool value) {
    json_builder_set_member_name(json, key);
    json_builder_add_boolean_value(json, value);
}

char *trace_json_text(JsonBuilder *json) {
    g_autoptr(JsonNode) root = json_builder_get_root(json);
    return json_to_string(root, TRUE);
}
