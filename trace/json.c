#include "trace/json.h"

#include <math.h>
#include <string.h>

/* json-glib 1.6 puts ".0" behind digits without a point, be there an exponent or not: 1e+18.0. The
 * neighbour of such a number has a point. */
static double writable(double value) {
    char text[G_ASCII_DTOSTR_BUF_SIZE];
    g_ascii_dtostr(text, sizeof text, value);
    return strchr(text, 'e') && !strchr(text, '.') ? nextafter(value, 0) : value;
}

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

void trace_json_add_element(JsonBuilder *json, double value) {
    if (isfinite(value)) {
        json_builder_add_double_value(json, writable(value));
    } else {
        json_builder_add_null_value(json);
    }
}

void trace_json_add_real(JsonBuilder *json, const char *key, double value) {
    json_builder_set_member_name(json, key);
    trace_json_add_element(json, value);
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
        g_autofree char *valid = g_utf8_make_valid(value, -1);
        json_builder_add_string_value(json, valid);
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
