/* trace/json.h - members of JSON objects and elements of arrays, as every command writes them.
 *
 * A key is followed by its value in one call; an object or an array that is begun here is ended by
 * json-glib's own json_builder_end_object() or _array(). Lives here because it is the lowest room
 * that knows json-glib, and cli and exec both write JSON.
 *
 * Owns: nothing. Borrows: the builder, during a call. Threads: one a builder.
 */
#pragma once

#include <json-glib/json-glib.h>
#include <stdbool.h>
#include <stdint.h>

void trace_json_begin_object(JsonBuilder *json, const char *key);
void trace_json_begin_array(JsonBuilder *json, const char *key);
void trace_json_add_int(JsonBuilder *json, const char *key, uint64_t value);
void trace_json_add_real(JsonBuilder *json, const char *key, double value); /* NAN, inf: null */
void trace_json_add_element(JsonBuilder *json, double value); /* of an array; likewise */
/* A whole number is written without a fraction; NAN and inf: null. */
void trace_json_add_number(JsonBuilder *json, const char *key, double value);
void trace_json_add_text(JsonBuilder *json, const char *key, const char *value); /* NULL: null */
void trace_json_add_bool(JsonBuilder *json, const char *key, bool value);
/* What was built, indented, without a newline at its end. Transfer full: g_free(). */
char *trace_json_text(JsonBuilder *json);
