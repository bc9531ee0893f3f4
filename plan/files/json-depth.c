#include "plan/files/json-depth.h"

bool plan_json_is_too_deep(const char *text, gsize length) {
    gsize depth = 0;
    bool in_string = false;
    for (gsize i = 0; i < length && depth <= PLAN_JSON_DEEPEST; i++) {
        char c = text[i];
        if (in_string) {
            i += c == '\\'; /* what it stands before is part of the string, quotes too */
            in_string = c != '"';
        } else if (c == '"') {
            in_string = true;
        } else if (c == '{' || c == '[') {
            depth++;
        } else if ((c == '}' || c == ']') && depth > 0) {
            depth--;
        }
    }
    return depth > PLAN_JSON_DEEPEST;
}
