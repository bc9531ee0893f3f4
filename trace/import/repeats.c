#include "trace/import/repeats.h"

enum {
    CONTEXT = 12, /* tokens that must be equal for two places to be taken for the same */
    TRIED = 48,   /* lengths */
    SHARE = 10    /* the stretch is at least one part of so many */
};

typedef struct {
    guint length, count;
} Distance;

static int compare_counts(gconstpointer a, gconstpointer b) {
    const Distance *x = a, *y = b;
    return x->count != y->count ? (x->count < y->count) - (x->count > y->count)
                                : (x->length > y->length) - (x->length < y->length);
}

/* How far back the same CONTEXT tokens stood before, the commonest distances first. */
static GArray *distances(const uint32_t *tokens, guint n) {
    g_autoptr(GHashTable) last = g_hash_table_new(NULL, NULL);   /* of a context: its place + 1 */
    g_autoptr(GHashTable) counts = g_hash_table_new(NULL, NULL); /* of a distance */
    const uint64_t factor = UINT64_C(0x9e3779b97f4a7c15);        /* odd: 2^64 by the golden ratio */
    for (guint i = 0; i + CONTEXT <= n; i++) {
        uint64_t hash = 0;
        for (guint k = 0; k < CONTEXT; k++) {
            hash = (hash ^ tokens[i + k]) * factor;
            hash ^= hash >> 29;
        }
        gpointer key = GSIZE_TO_POINTER(hash);
        guint place = GPOINTER_TO_UINT(g_hash_table_lookup(last, key));
        if (place > 0) {
            gpointer distance = GUINT_TO_POINTER(i + 1 - place);
            guint count = GPOINTER_TO_UINT(g_hash_table_lookup(counts, distance));
            g_hash_table_insert(counts, distance, GUINT_TO_POINTER(count + 1));
        }
        g_hash_table_insert(last, key, GUINT_TO_POINTER(i + 1));
    }
    GArray *found = g_array_new(FALSE, FALSE, sizeof(Distance));
    GHashTableIter iter;
    gpointer length, count;
    g_hash_table_iter_init(&iter, counts);
    while (g_hash_table_iter_next(&iter, &length, &count)) {
        Distance distance = {GPOINTER_TO_UINT(length), GPOINTER_TO_UINT(count)};
        g_array_append_val(found, distance);
    }
    g_array_sort(found, compare_counts);
    return found;
}

/* The longest stretch in which each token is the one `period` before it. */
static guint longest(const uint32_t *tokens, guint n, guint period, guint *ret_begin) {
    guint best = 0, length = 0;
    for (guint i = period; i < n; i++) {
        length = tokens[i] == tokens[i - period] ? length + 1 : 0;
        if (length > best) {
            best = length;
            *ret_begin = i + 1 - length - period;
        }
    }
    return best;
}

bool trace_repeats_find(const uint32_t *tokens, const int64_t *balance, guint n_tokens,
                        TraceRepeats *ret_repeats) {
    g_autoptr(GArray) tried = distances(tokens, n_tokens);
    TraceRepeats best = {0};
    guint best_length = 0;
    for (guint i = 0; i < MIN(tried->len, TRIED); i++) {
        guint begin = 0, period = g_array_index(tried, Distance, i).length;
        guint same = longest(tokens, n_tokens, period, &begin);
        guint length = same + period;
        bool returns = balance == NULL || balance[begin] == balance[begin + period];
        if (same >= period && returns &&
            (length > best_length || (length == best_length && period < best.period))) {
            best = (TraceRepeats){begin, period, length / period};
            best_length = length;
        }
    }
    if (best_length == 0 || best_length < n_tokens / SHARE) {
        return false;
    }
    *ret_repeats = best;
    return true;
}
