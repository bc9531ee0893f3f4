/* plan/files/json-depth.h - whether a JSON text can be read without exhausting the stack.
 *
 * json-glib reads brackets within brackets by calls within calls, before 1.10 without a limit, so a
 * damaged file could end the process. Who reads a file of the user's asks here first.
 *
 * Threads: any. Cost: one pass over the text.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>

#define PLAN_JSON_DEEPEST 500 /* brackets within one another */

/* May be asked of any text, JSON or not. */
bool plan_json_is_too_deep(const char *text, gsize length);
