#include "plan/files/nearest.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define BETWEEN_WORDS "-_. "

enum {
    MOST_NAMES = 3,
    MOST_LETTERS = 64 /* of what is compared; more is cut off */
};

/* Optimal string alignment: letters put in, taken out, changed, or swapped with their neighbour. */
static guint distance(const char *a, const char *b) {
    guint rows = (guint)MIN(strlen(a), MOST_LETTERS), columns = (guint)MIN(strlen(b), MOST_LETTERS);
    guint d[MOST_LETTERS + 1][MOST_LETTERS + 1];
    for (guint i = 0; i <= rows; i++) {
        d[i][0] = i;
    }
    for (guint k = 0; k <= columns; k++) {
        d[0][k] = k;
    }
    for (guint i = 1; i <= rows; i++) {
        for (guint k = 1; k <= columns; k++) {
            guint changed = d[i - 1][k - 1] + (a[i - 1] != b[k - 1]);
            d[i][k] = MIN(changed, MIN(d[i - 1][k], d[i][k - 1]) + 1);
            if (i > 1 && k > 1 && a[i - 1] == b[k - 2] && a[i - 2] == b[k - 1]) {
                d[i][k] = MIN(d[i][k], d[i - 2][k - 2] + 1);
            }
        }
    }
    return d[rows][columns];
}

static int compare_words(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Its words in order, without what stands between them. */
static char *in_order(const char *name) {
    g_auto(GStrv) words = g_strsplit_set(name, BETWEEN_WORDS, -1);
    qsort(words, g_strv_length(words), sizeof(char *), compare_words);
    return g_strjoinv("", words);
}

/* Without what stands between its words. */
static char *squeezed(const char *name) {
    g_auto(GStrv) words = g_strsplit_set(name, BETWEEN_WORDS, -1);
    return g_strjoinv("", words);
}

/* Whether the word begins one of the name's: "h100" one of "dgx-h100". */
static bool begins_a_word(const char *word, const char *name) {
    for (const char *at = strstr(name, word); at != NULL; at = strstr(at + 1, word)) {
        if (at == name || strchr(BETWEEN_WORDS, at[-1]) != NULL) {
            return true;
        }
    }
    return false;
}

/* "b200": a letter, and digits behind it; a number alone is many things' size. */
static bool is_model(const char *word) {
    return g_ascii_isalpha(*word) && strlen(word) >= 3 && strpbrk(word, "0123456789") != NULL;
}

/* "dgx-b200" and "b200-node". */
static bool share_a_model(const char *a, const char *b) {
    g_auto(GStrv) words = g_strsplit_set(a, BETWEEN_WORDS, -1),
                  others = g_strsplit_set(b, BETWEEN_WORDS, -1);
    for (char **word = words; *word != NULL; word++) {
        if (is_model(*word) && g_strv_contains((const char *const *)others, *word)) {
            return true;
        }
    }
    return false;
}

typedef struct {
    const char *name;
    guint far;   /* only the nearest are told */
    guint order; /* among them */
} Near;

/* What has a word that the given one begins is near, and so is what shares a model's, which is told
 * first of names that are as far. */
static Near how_near(const char *word, const char *name) {
    g_autofree char *small = g_ascii_strdown(word, -1), *other = g_ascii_strdown(name, -1);
    g_autofree char *ordered = in_order(small), *other_ordered = in_order(other);
    g_autofree char *dense = squeezed(small), *other_dense = squeezed(other);
    guint by_words = distance(ordered, other_ordered), by_letters = distance(dense, other_dense);
    guint far = MIN(distance(small, other), MIN(by_words, by_letters));
    if (strlen(small) >= 3 && begins_a_word(small, other)) {
        return (Near){name, MIN(far, 1), 0};
    }
    bool shares = share_a_model(small, other);
    return (Near){name, shares ? MIN(far, 1) : far, shares ? far : MOST_LETTERS + far};
}

/* The first of those that come first. */
static guint first_of(const GArray *near) {
    guint first = 0;
    for (guint i = 1; i < near->len; i++) {
        bool is_before =
            g_array_index(near, Near, i).order < g_array_index(near, Near, first).order;
        first = is_before ? i : first;
    }
    return first;
}

char *plan_did_you_mean(const char *word, const char *const *names) {
    gsize length = strlen(word);
    guint least = length < 3 ? 0 : 1 + (guint)length / 4; /* what is farther is another word */
    g_autoptr(GArray) near = g_array_new(FALSE, FALSE, sizeof(Near));
    for (guint i = 0; names[i] != NULL; i++) {
        Near one = how_near(word, names[i]);
        if (one.far < least) {
            g_array_set_size(near, 0);
            least = one.far;
        }
        if (one.far == least) {
            g_array_append_val(near, one);
        }
    }
    guint n = MIN(near->len, MOST_NAMES);
    GString *text = g_string_new(NULL);
    for (guint i = 0; i < n; i++) {
        guint first = first_of(near);
        const char *before = i == 0 ? "; did you mean " : i + 1 == n ? " or " : ", ";
        g_string_append_printf(text, "%s%s", before, g_array_index(near, Near, first).name);
        g_array_remove_index(near, first);
    }
    g_string_append(text, n > 0 ? "?" : "");
    return g_string_free(text, FALSE);
}
