/* tests/oracle/recording-lines.h - whether a recording's lines hold what is read of them.
 *
 * Lines of a kind and fields that are not known here are passed over: newer recorders may write
 * more.
 */
#pragma once

#include <json-glib/json-glib.h>
#include <stdbool.h>

/* NULL: it has none of that name. */
JsonObject *recording_object_at(JsonObject *object, const char *key);
/* Each sets error, without the file and line, and returns false when a field is missing or holds
 * something else. */
bool recording_check_header(JsonObject *header, GError **error);
bool recording_check_event(JsonObject *event, GError **error);
bool recording_check_summary(JsonObject *summary, GError **error);
/* An event or summary of a step before which so many ended. */
bool recording_check_step(JsonObject *of_step, unsigned n_ended, GError **error);
