#include "tests/fuzz/mutate.h"

#include <string.h>

static guint below(GRand *rand, gsize n) {
    return n ? (guint)g_rand_int_range(rand, 0, (gint32)MIN(n, G_MAXINT32)) : 0;
}

static const GString *any(const GPtrArray *texts, GRand *rand) {
    return texts->pdata[below(rand, texts->len)];
}

static void splice(GString *text, gsize at, gsize n, const char *with, gsize length) {
    g_string_erase(text, (gssize)at, (gssize)n);
    g_string_insert_len(text, (gssize)at, with, (gssize)length);
}

static void change_byte(GString *text, GRand *rand) {
    static const char likely[] = "0123456789-+.eE \n\t[]{}:,=\"#@/\\'\xff\x80x";
    if (text->len) {
        text->str[below(rand, text->len)] =
            below(rand, 4) ? likely[below(rand, sizeof likely)] : (char)below(rand, 256);
    }
}

/* A run of bytes that are (or are not) of a set, at or after a random place. */
static gboolean find_run(const GString *text, GRand *rand, const char *set, gboolean is_of_set,
                         gsize *ret_at, gsize *ret_n) {
    gsize at = below(rand, text->len), n = 0;
#define IS(i) ((text->str[i] && strchr(set, text->str[i]) != NULL) == is_of_set)
    while (at < text->len && !IS(at)) {
        at++;
    }
    while (at + n < text->len && IS(at + n)) {
        n++;
    }
#undef IS
    *ret_at = at;
    *ret_n = n;
    return n > 0;
}

static void change_number(GString *text, GRand *rand) {
    static const char *const numbers[] = {"0",
                                          "-1",
                                          "1",
                                          "4294967295",
                                          "4294967296",
                                          "18446744073709551615",
                                          "18446744073709551616",
                                          "9223372036854775808",
                                          "1e308",
                                          "-1e-308",
                                          "nan",
                                          "inf",
                                          "",
                                          "0x10",
                                          "99999999999999999999999999",
                                          "3.5"};
    gsize at, n;
    if (find_run(text, rand, "0123456789", TRUE, &at, &n)) {
        const char *with = numbers[below(rand, G_N_ELEMENTS(numbers))];
        splice(text, at, n, with, strlen(with));
    }
}

static void swap_word(GString *text, const GPtrArray *texts, GRand *rand) {
    static const char blanks[] = " \n\t=,\":{}[]";
    const GString *other = any(texts, rand);
    gsize at, n, from, length;
    if (find_run(text, rand, blanks, FALSE, &at, &n) &&
        find_run(other, rand, blanks, FALSE, &from, &length)) {
        splice(text, at, n, other->str + from, length);
    }
}

static void change_line(GString *text, const GPtrArray *texts, GRand *rand) {
    const GString *other = any(texts, rand);
    gsize at, n, from, length;
    if (!find_run(text, rand, "\n", FALSE, &at, &n)) {
        return;
    }
    if (below(rand, 3) == 0) {
        g_string_erase(text, (gssize)at, (gssize)n);
    } else if (find_run(other, rand, "\n", FALSE, &from, &length)) {
        g_autofree char *line = g_strdup_printf("\n%.*s", (int)length, other->str + from);
        g_string_insert(text, (gssize)(at + n), line);
    }
}

static void repeat(GString *text, GRand *rand) {
    gsize at = below(rand, text->len), n = below(rand, MIN(text->len - at, 200));
    g_autofree char *part = g_strndup(text->str + at, n);
    for (guint times = below(rand, 8); times > 0; times--) {
        g_string_insert_len(text, (gssize)at, part, (gssize)n);
    }
}

GString *fuzz_mutate(const GPtrArray *texts, GRand *rand) {
    const GString *from = any(texts, rand);
    GString *text = g_string_new_len(from->str, (gssize)from->len);
    for (guint times = 1 + below(rand, 4); times > 0; times--) {
        switch (below(rand, 8)) {
        case 0:
            g_string_truncate(text, below(rand, text->len + 1));
            break;
        case 1:
            change_line(text, texts, rand);
            break;
        case 2:
            repeat(text, rand);
            break;
        case 3:
        case 4:
            swap_word(text, texts, rand);
            break;
        case 5:
        case 6:
            change_number(text, rand);
            break;
        default:
            change_byte(text, rand);
        }
    }
    return text;
}
