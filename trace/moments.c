#include "trace/moments.h"

#include <string.h>

/* Which of the folded names a category belongs to; their number where it is none of them. */
static guint place_of(const Trace *trace, guint category, const GPtrArray *names) {
    guint place = 0;
    while (place < names->len && !trace_category_is(trace, category, names->pdata[place])) {
        place++;
    }
    return place;
}

GPtrArray *trace_folded_categories(const Trace *trace) {
    GPtrArray *names = g_ptr_array_new_with_free_func(g_free);
    for (guint i = 0; i < trace->categories->len && names->len < TRACE_MAX_FOLDED; i++) {
        if (place_of(trace, i, names) == names->len) {
            const char *name = trace->categories->pdata[i];
            g_ptr_array_add(names, g_strndup(name, strcspn(name, "/")));
        }
    }
    return names;
}

/* The folded category of each category; what finds no room stands with the last. */
static guint *fold(const Trace *trace, const GPtrArray *names) {
    guint *places = g_new0(guint, trace->categories->len);
    for (guint i = 0; i < trace->categories->len; i++) {
        places[i] = MIN(place_of(trace, i, names), names->len - 1);
    }
    return places;
}

int64_t trace_moments_origin_ns(const Trace *trace, uint32_t rank, int32_t first_step) {
    bool earlier = false;
    for (guint i = 0; i < trace->memory->len; i++) {
        const TraceMemoryRow *row = trace_memory(trace, i);
        if (row->rank == rank && first_step < 0) { /* construction ends before time 0, if it does */
            return MIN(0, row->host_ns);
        }
        if (row->rank == rank && row->step >= 0) {
            if (row->step >= first_step) {
                return earlier ? row->host_ns : 0;
            }
            earlier = true;
        }
    }
    return 0;
}

TraceMoments *trace_moments_new(const Trace *trace, uint32_t rank, int32_t first_step,
                                int32_t last_step) {
    TraceMoments *moments = g_new0(TraceMoments, 1);
    moments->categories = trace_folded_categories(trace);
    moments->rows = g_array_new(FALSE, FALSE, sizeof(TraceMoment));
    g_autofree guint *places = fold(trace, moments->categories);
    int64_t origin_ns = trace_moments_origin_ns(trace, rank, first_step);
    TraceMoment now = {0};
    bool begun = false;
    for (guint i = 0; i < trace->memory->len; i++) {
        const TraceMemoryRow *row = trace_memory(trace, i);
        if (row->rank != rank || row->step > last_step) {
            continue;
        }
        if (row->step >= first_step && !begun) {
            now.at_ns = MIN(0, row->host_ns - origin_ns);
            g_array_append_val(moments->rows, now);
            begun = true;
        }
        now.at_ns = row->host_ns - origin_ns;
        now.values[places[row->category]] += (uint64_t)row->delta; /* wraps back */
        for (guint k = 0; k < TRACE_N_STATISTICS; k++) {
            now.values[moments->categories->len + k] = trace_memory_statistic(row, k);
        }
        if (begun) {
            g_array_append_val(moments->rows, now);
        }
    }
    return moments;
}

void trace_moments_free(TraceMoments *moments) {
    if (moments == NULL) {
        return;
    }
    g_ptr_array_unref(moments->categories);
    g_array_unref(moments->rows);
    g_free(moments);
}
