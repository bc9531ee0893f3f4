#include "models/config/long-integers.h"

#include <stdbool.h>
#include <string.h>

static const char most[] = "9223372036854775807"; /* INT64_MAX */

static bool is_too_long(const char *number, gsize digits) {
    gsize n = strlen(most);
    return digits > n || (digits == n && strncmp(number, most, n) > 0);
}

/* How many digits of a whole number begin here; 0 where none begins, or a real. */
static gsize whole_digits(const char *text, gsize length, char before) {
    gsize n = 0;
    if (g_ascii_isalnum(before) || before == '.' || before == '+') {
        return 0;
    }
    while (n < length && g_ascii_isdigit(text[n])) {
        n++;
    }
    return n < length && strchr(".eE", text[n]) && text[n] != '\0' ? 0 : n;
}

char *model_config_long_integers_as_reals(const char *json, gsize length, gsize *ret_length) {
    GString *reals = g_string_sized_new(length + 1);
    bool in_string = false;
    for (gsize i = 0; i < length; i++) {
        char c = json[i], before = i > 0 ? json[i - 1] : ' ';
        gsize digits = in_string ? 0 : whole_digits(json + i, length - i, before);
        if (is_too_long(json + i, digits)) {
            g_string_append_len(reals, json + i, (gssize)digits);
            g_string_append(reals, ".0");
            i += digits - 1;
            continue;
        }
        g_string_append_c(reals, c);
        if (in_string && c == '\\' && i + 1 < length) {
            g_string_append_c(reals, json[++i]); /* part of the string, a quote too */
        } else if (c == '"') {
            in_string = !in_string;
        }
    }
    *ret_length = reals->len;
    return g_string_free(reals, FALSE);
}
