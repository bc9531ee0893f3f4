#include "models/config/python-numbers.h"

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

/* What stands for a word that begins here, or NULL. */
static const char *in_its_place(const char *text, gsize length, gsize *ret_length) {
    static const char *const words[][2] = {{"Infinity", "1e308"}, {"NaN", "null"}};
    for (unsigned i = 0; i < G_N_ELEMENTS(words); i++) {
        gsize n = strlen(words[i][0]);
        if (n <= length && strncmp(text, words[i][0], n) == 0) {
            *ret_length = n;
            return words[i][1];
        }
    }
    return NULL;
}

char *model_config_python_numbers(const char *json, gsize length, gsize *ret_length) {
    GString *read = g_string_sized_new(length + 1);
    bool in_string = false;
    for (gsize i = 0; i < length; i++) {
        char c = json[i], before = i > 0 ? json[i - 1] : ' ';
        gsize digits = in_string ? 0 : whole_digits(json + i, length - i, before);
        if (is_too_long(json + i, digits)) {
            g_string_append_len(read, json + i, (gssize)digits);
            g_string_append(read, ".0");
            i += digits - 1;
            continue;
        }
        gsize word;
        const char *instead = in_string ? NULL : in_its_place(json + i, length - i, &word);
        if (instead) {
            g_string_append(read, instead);
            i += word - 1;
            continue;
        }
        g_string_append_c(read, c);
        if (in_string && c == '\\' && i + 1 < length) {
            g_string_append_c(read, json[++i]); /* part of the string, a quote too */
        } else if (c == '"') {
            in_string = !in_string;
        }
    }
    *ret_length = read->len;
    return g_string_free(read, FALSE);
}
