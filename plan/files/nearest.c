#include "plan/files/nearest.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

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
    g_auto(GStrv) words = g_strsplit_set(name, "-_. ", -1);
    qsort(words, g_strv_length(words), sizeof(char *), compare_words);
    return g_strjoinv("", words);
}

/* Without what stands between its words. */
static char *squeezed(const char *name) {
    g_auto(GStrv) words = g_strsplit_set(name, "-_. ", -1);
    return g_strjoinv("", words);
}

/* Whether the word begins one of the name's: "h100" one of "dgx-h100". */
static bool begins_a_word(const char *word, const char *name) {
    for (const char *at = strstr(name, word); at != NULL; at = strstr(at + 1, word)) {
        if (at == name || strchr("-_. ", at[-1]) != NULL) {
            return true;
        }
    }
    return false;
}

/* How far a name is from a word; what has a word that this one begins is near. */
static guint how_far(const char *word, const char *name) {
    g_autofree char *small = g_ascii_strdown(word, -1), *other = g_ascii_strdown(name, -1);
    g_autofree char *ordered = in_order(small), *other_ordered = in_order(other);
    g_autofree char *dense = squeezed(small), *other_dense = squeezed(other);
    guint by_words = distance(ordered, other_ordered), by_letters = distance(dense, other_dense);
    guint far = MIN(distance(small, other), MIN(by_words, by_letters));
    bool begins = strlen(small) >= 3 && begins_a_word(small, other);
    return begins ? MIN(far, 1) : far;
}

char *plan_did_you_mean(const char *word, const char *const *names) {
    gsize length = strlen(word);
    guint least = length < 3 ? 0 : 1 + (guint)length / 4; /* what is farther is another word */
    g_autoptr(GPtrArray) near = g_ptr_array_new();
    for (guint i = 0; names[i] != NULL; i++) {
        guint far = how_far(word, names[i]);
        if (far < least) {
            g_ptr_array_set_size(near, 0);
            least = far;
        }
        if (far == least && near->len < MOST_NAMES) {
            g_ptr_array_add(near, (gpointer)names[i]);
        }
    }
    GString *text = g_string_new(NULL);
    for (guint i = 0; i < near->len; i++) {
        const char *before = i == 0 ? "; did you mean " : i + 1 == near->len ? " or " : ", ";
        g_string_append_printf(text, "%s%s", before, (const char *)near->pdata[i]);
    }
    g_string_append(text, near->len > 0 ? "?" : "");
    return g_string_free(text, FALSE);
}
