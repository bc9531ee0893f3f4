/* trace/json: whatever is added, what is written can be read again. */
#include "trace/json.h"

#include <math.h>

static JsonNode *written(void (*add)(JsonBuilder *)) {
    g_autoptr(GError) error = NULL;
    g_autoptr(JsonBuilder) json = json_builder_new();
    json_builder_begin_object(json);
    add(json);
    json_builder_end_object(json);
    g_autofree char *text = trace_json_text(json);
    g_autoptr(JsonParser) parser = json_parser_new();
    json_parser_load_from_data(parser, text, -1, &error);
    g_assert_no_error(error);
    return json_parser_steal_root(parser);
}

static const double reals[] = {0,     -0.5,   1e15,    1e17,  -1e17,  1e18,
                               1e300, 1e-300, 0x1p100, 1e-05, 2.5e20, 123456789.125};

static void add_reals(JsonBuilder *json) {
    for (unsigned i = 0; i < G_N_ELEMENTS(reals); i++) {
        g_autofree char *key = g_strdup_printf("%u", i);
        trace_json_add_real(json, key, reals[i]);
    }
}

static void test_reals(void) {
    g_autoptr(JsonNode) root = written(add_reals);
    JsonObject *object = json_node_get_object(root);
    for (unsigned i = 0; i < G_N_ELEMENTS(reals); i++) {
        g_autofree char *key = g_strdup_printf("%u", i);
        double read = json_object_get_double_member(object, key);
        g_assert_cmpfloat_with_epsilon(read, reals[i], 0x1p-1000 + fabs(reals[i]) * 0x1p-51);
    }
}

static void add_others(JsonBuilder *json) {
    trace_json_add_real(json, "nan", NAN);
    trace_json_add_real(json, "inf", INFINITY);
    trace_json_add_number(json, "more", -INFINITY);
    trace_json_add_number(json, "large", 1e18);
    trace_json_add_number(json, "whole", 3);
    trace_json_add_text(json, "latin 1", "caf\xe9");
    trace_json_begin_array(json, "elements");
    trace_json_add_element(json, NAN);
    trace_json_add_element(json, 1e18);
    json_builder_end_array(json);
}

static void test_others(void) {
    g_autoptr(JsonNode) root = written(add_others);
    JsonObject *object = json_node_get_object(root);
    g_assert_true(json_object_get_null_member(object, "nan"));
    g_assert_true(json_object_get_null_member(object, "inf"));
    g_assert_true(json_object_get_null_member(object, "more"));
    g_assert_cmpfloat_with_epsilon(json_object_get_double_member(object, "large"), 1e18, 256);
    g_assert_cmpint(json_object_get_int_member(object, "whole"), ==, 3);
    g_assert_cmpstr(json_object_get_string_member(object, "latin 1"), ==, "caf\xef\xbf\xbd");
    JsonArray *elements = json_object_get_array_member(object, "elements");
    g_assert_cmpuint(json_array_get_length(elements), ==, 2);
    g_assert_true(json_array_get_null_element(elements, 0));
    g_assert_cmpfloat_with_epsilon(json_array_get_double_element(elements, 1), 1e18, 256);
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/trace/json/reals", test_reals);
    g_test_add_func("/trace/json/others", test_others);
    return g_test_run();
}
