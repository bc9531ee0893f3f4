#include "plots/thin.h"

#include <string.h>

enum {
    TOLD_APART = 4 /* moments in a slice that can be seen one by one */
};

static int64_t slice_of(const TraceMoments *moments, guint i, int64_t slice_ns) {
    return (trace_moment(moments, i)->at_ns - trace_moment(moments, 0)->at_ns) / slice_ns;
}

static int64_t length_of_slices(const TraceMoments *moments, guint n_slices) {
    int64_t first_ns = trace_moment(moments, 0)->at_ns;
    int64_t last_ns = trace_moment(moments, moments->rows->len - 1)->at_ns;
    return MAX(1, (last_ns - first_ns) / n_slices);
}

/* One past the last moment of the slice in which `from` lies. */
static guint end_of_slice(const TraceMoments *moments, guint from, int64_t slice_ns) {
    int64_t slice = slice_of(moments, from, slice_ns);
    guint to = from + 1;
    while (to < moments->rows->len && slice_of(moments, to, slice_ns) == slice) {
        to++;
    }
    return to;
}

/* Marks what a slice must keep: its ends, and where each series is least and greatest. */
static void keep_of_slice(const TraceMoments *moments, guint from, guint to, guint8 *keep) {
    keep[from] = keep[to - 1] = 1;
    for (guint series = 0; series < trace_moments_n_series(moments); series++) {
        guint least = from, greatest = from;
        for (guint i = from; i < to; i++) {
            uint64_t value = trace_moment(moments, i)->values[series];
            if (value < trace_moment(moments, least)->values[series]) {
                least = i;
            }
            if (value > trace_moment(moments, greatest)->values[series]) {
                greatest = i;
            }
        }
        keep[least] = keep[greatest] = 1;
    }
}

GArray *plot_thin(const TraceMoments *moments, guint n_slices) {
    guint n = moments->rows->len;
    GArray *kept = g_array_new(FALSE, FALSE, sizeof(TraceMoment));
    if (n_slices == 0 || n <= TOLD_APART * n_slices) {
        return g_array_append_vals(kept, moments->rows->data, n);
    }
    g_autofree guint8 *keep = g_new0(guint8, n);
    int64_t slice_ns = length_of_slices(moments, n_slices);
    for (guint from = 0, to; from < n; from = to) {
        to = end_of_slice(moments, from, slice_ns);
        keep_of_slice(moments, from, to, keep);
    }
    for (guint i = 0; i < n; i++) {
        if (keep[i]) {
            g_array_append_val(kept, g_array_index(moments->rows, TraceMoment, i));
        }
    }
    return kept;
}

/* At the time of the slice's first moment. */
static TraceMoment most_of_slice(const TraceMoments *moments, guint from, guint to) {
    guint n_categories = moments->categories->len;
    TraceMoment most = *trace_moment(moments, from);
    uint64_t *statistics = most.values + n_categories;
    for (guint i = from + 1; i < to; i++) {
        const TraceMoment *moment = trace_moment(moments, i);
        const uint64_t *now = moment->values + n_categories;
        if (now[TRACE_ALLOCATED] > statistics[TRACE_ALLOCATED]) {
            memcpy(most.values, moment->values, n_categories * sizeof(uint64_t));
        }
        for (guint k = 0; k < TRACE_N_STATISTICS; k++) {
            statistics[k] = MAX(statistics[k], now[k]);
        }
    }
    return most;
}

GArray *plot_crests(const TraceMoments *moments, guint n_slices) {
    guint n = moments->rows->len;
    GArray *crests = g_array_new(FALSE, FALSE, sizeof(TraceMoment));
    if (n == 0) {
        return crests;
    }
    int64_t slice_ns = length_of_slices(moments, n_slices);
    for (guint from = 0, to; from < n; from = to) {
        to = end_of_slice(moments, from, slice_ns);
        if (to - from <= TOLD_APART) {
            g_array_append_vals(crests, trace_moment(moments, from), to - from);
            continue;
        }
        TraceMoment most = most_of_slice(moments, from, to);
        g_array_append_val(crests, most);
        TraceMoment rest = *trace_moment(moments, to - 1);
        rest.at_ns = MAX(rest.at_ns, most.at_ns + slice_ns);
        bool goes_on = to < n && trace_moment(moments, to)->at_ns <= rest.at_ns + slice_ns;
        if (!goes_on && to < n) {
            g_array_append_val(crests, rest);
        }
    }
    return g_array_append_vals(crests, trace_moment(moments, n - 1), 1);
}

GString *plot_moments_table(const GArray *moments, const GPtrArray *categories) {
    GString *table = g_string_new("time_ns");
    for (guint i = 0; i < categories->len; i++) {
        g_string_append_printf(table, "\t%s", (char *)categories->pdata[i]);
    }
    for (guint i = 0; i < TRACE_N_STATISTICS; i++) {
        g_string_append_printf(table, "\t%s", trace_statistic_name(i));
    }
    g_string_append_c(table, '\n');
    for (guint i = 0; i < moments->len; i++) {
        const TraceMoment *moment = &g_array_index(moments, TraceMoment, i);
        g_string_append_printf(table, "%" G_GINT64_FORMAT, (gint64)moment->at_ns);
        for (guint k = 0; k < categories->len + TRACE_N_STATISTICS; k++) {
            g_string_append_printf(table, "\t%" G_GUINT64_FORMAT, (guint64)moment->values[k]);
        }
        g_string_append_c(table, '\n');
    }
    return table;
}
