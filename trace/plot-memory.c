#include <string.h>

#include "trace/ended.h"
#include "trace/plot-private.h"
#include "trace/summary.h"

enum {
    CREST_SLICES = 400 /* what is closer than four pixels would be a smear */
};

/* A moment of the memory picture: time, then the folded categories, then the statistics. */
typedef struct {
    int64_t at_ns;
    uint64_t values[TRACE_PLOT_MAX_SERIES];
} Moment;

GPtrArray *trace_folded_categories(const Trace *trace) {
    GPtrArray *names = g_ptr_array_new_with_free_func(g_free);
    for (guint i = 0; i < trace->categories->len; i++) {
        const char *name = trace->categories->pdata[i];
        g_autofree char *folded = g_strndup(name, strcspn(name, "/"));
        if (!g_ptr_array_find_with_equal_func(names, folded, g_str_equal, NULL) &&
            names->len + TRACE_N_STATISTICS < TRACE_PLOT_MAX_SERIES) {
            g_ptr_array_add(names, g_steal_pointer(&folded));
        }
    }
    return names;
}

/* The folded category of each category. */
static guint *fold(const Trace *trace, const GPtrArray *names) {
    guint *places = g_new0(guint, trace->categories->len);
    for (guint i = 0; i < trace->categories->len; i++) {
        const char *name = trace->categories->pdata[i];
        g_autofree char *folded = g_strndup(name, strcspn(name, "/"));
        guint place = names->len - 1;
        g_ptr_array_find_with_equal_func((GPtrArray *)names, folded, g_str_equal, &place);
        places[i] = place;
    }
    return places;
}

int64_t trace_memory_origin_ns(const TracePanel *panel, int32_t first_step) {
    bool earlier = false;
    for (guint i = 0; i < panel->trace->memory->len; i++) {
        const TraceMemoryRow *row = trace_memory(panel->trace, i);
        if (row->rank == panel->rank && row->step >= 0) {
            if (row->step >= first_step) {
                return earlier ? row->host_ns : 0;
            }
            earlier = true;
        }
    }
    return 0;
}

/* Every moment of the steps, and before them the state in which they begin. */
static GArray *find_moments(const TracePanel *panel, int32_t first_step, int32_t last_step) {
    const Trace *trace = panel->trace;
    GArray *moments = g_array_new(FALSE, FALSE, sizeof(Moment));
    g_autoptr(GPtrArray) names = trace_folded_categories(trace);
    g_autofree guint *places = fold(trace, names);
    int64_t origin_ns = trace_memory_origin_ns(panel, first_step);
    Moment now = {0};
    bool begun = false;
    for (guint i = 0; i < trace->memory->len; i++) {
        const TraceMemoryRow *row = trace_memory(trace, i);
        if (row->rank != panel->rank || row->step > last_step) {
            continue;
        }
        if (row->step >= first_step && !begun) {
            now.at_ns = MIN(0, row->host_ns - origin_ns);
            g_array_append_val(moments, now);
            begun = true;
        }
        now.at_ns = row->host_ns - origin_ns;
        now.values[places[row->category]] += (uint64_t)row->delta; /* wraps back */
        for (guint k = 0; k < TRACE_N_STATISTICS; k++) {
            now.values[names->len + k] = trace_memory_statistic(row, k);
        }
        if (begun) {
            g_array_append_val(moments, now);
        }
    }
    return moments;
}

/* Marks what a slice must keep: its ends, and where each series is least and greatest. */
static void keep_of_slice(GArray *moments, guint from, guint to, guint n_series, guint8 *keep) {
    keep[from] = keep[to - 1] = 1;
    for (guint series = 0; series < n_series; series++) {
        guint least = from, greatest = from;
        for (guint i = from; i < to; i++) {
            uint64_t value = g_array_index(moments, Moment, i).values[series];
            if (value < g_array_index(moments, Moment, least).values[series]) {
                least = i;
            }
            if (value > g_array_index(moments, Moment, greatest).values[series]) {
                greatest = i;
            }
        }
        keep[least] = keep[greatest] = 1;
    }
}

static guint8 *thin(GArray *moments, guint n_slices, guint n_series) {
    guint8 *keep = g_new0(guint8, MAX(1, moments->len));
    if (n_slices == 0 || moments->len <= 4 * n_slices) {
        memset(keep, 1, moments->len);
        return keep;
    }
    int64_t first_ns = g_array_index(moments, Moment, 0).at_ns;
    int64_t last_ns = g_array_index(moments, Moment, moments->len - 1).at_ns;
    int64_t slice_ns = MAX(1, (last_ns - first_ns) / n_slices);
    for (guint from = 0; from < moments->len;) {
        int64_t slice = (g_array_index(moments, Moment, from).at_ns - first_ns) / slice_ns;
        guint to = from + 1;
        while (to < moments->len &&
               (g_array_index(moments, Moment, to).at_ns - first_ns) / slice_ns == slice) {
            to++;
        }
        keep_of_slice(moments, from, to, n_series, keep);
        from = to;
    }
    return keep;
}

/* keep: NULL, or which. */
static GString *table_of(const GArray *moments, const guint8 *keep, const GPtrArray *names) {
    GString *table = g_string_new("time_ns");
    for (guint i = 0; i < names->len; i++) {
        g_string_append_printf(table, "\t%s", (char *)names->pdata[i]);
    }
    for (guint i = 0; i < TRACE_N_STATISTICS; i++) {
        g_string_append_printf(table, "\t%s", trace_statistic_name(i));
    }
    g_string_append_c(table, '\n');
    for (guint i = 0; i < moments->len; i++) {
        const Moment *moment = &g_array_index(moments, Moment, i);
        if (keep != NULL && !keep[i]) {
            continue;
        }
        g_string_append_printf(table, "%" G_GINT64_FORMAT, (gint64)moment->at_ns);
        for (guint k = 0; k < names->len + TRACE_N_STATISTICS; k++) {
            g_string_append_printf(table, "\t%" G_GUINT64_FORMAT, (guint64)moment->values[k]);
        }
        g_string_append_c(table, '\n');
    }
    return table;
}

GString *trace_memory_table(const TracePanel *panel, int32_t first_step, int32_t last_step,
                            guint n_slices) {
    g_autoptr(GPtrArray) names = trace_folded_categories(panel->trace);
    g_autoptr(GArray) moments = find_moments(panel, first_step, last_step);
    g_autofree guint8 *keep = thin(moments, n_slices, names->len + TRACE_N_STATISTICS);
    return table_of(moments, keep, names);
}

/* The end of the slice of time that begins with a moment; *ret_most: the categories when the slice
 * holds the most, and of each statistic its most. */
static guint end_of_slice(const GArray *moments, guint from, int64_t slice_ns, guint n_categories,
                          Moment *ret_most) {
    int64_t first_ns = g_array_index(moments, Moment, 0).at_ns;
    *ret_most = g_array_index(moments, Moment, from);
    int64_t begin_ns = ret_most->at_ns, slice = (begin_ns - first_ns) / slice_ns;
    guint to = from + 1;
    for (; to < moments->len; to++) {
        const Moment *moment = &g_array_index(moments, Moment, to);
        const uint64_t *now = moment->values + n_categories;
        uint64_t *most = ret_most->values + n_categories;
        if ((moment->at_ns - first_ns) / slice_ns != slice) {
            break;
        }
        if (now[TRACE_ALLOCATED] > most[TRACE_ALLOCATED]) {
            memcpy(ret_most->values, moment->values, n_categories * sizeof(uint64_t));
        }
        for (guint k = 0; k < TRACE_N_STATISTICS; k++) {
            most[k] = MAX(most[k], now[k]);
        }
    }
    return to;
}

/* Moments where they can be told apart; where more than four fall into one of n_slices slices, the
 * most of it, and behind it what stays, unless the next slice goes on so. */
static GArray *find_crests(const GArray *moments, guint n_slices, guint n_categories) {
    enum {
        TOLD_APART = 4
    };
    GArray *crests = g_array_new(FALSE, FALSE, sizeof(Moment));
    if (moments->len == 0) {
        return crests;
    }
    const Moment *last = &g_array_index(moments, Moment, moments->len - 1);
    int64_t slice_ns = MAX(1, (last->at_ns - g_array_index(moments, Moment, 0).at_ns) / n_slices);
    for (guint from = 0, to; from < moments->len; from = to) {
        Moment most;
        to = end_of_slice(moments, from, slice_ns, n_categories, &most);
        if (to - from <= TOLD_APART) {
            g_array_append_vals(crests, &g_array_index(moments, Moment, from), to - from);
            continue;
        }
        g_array_append_val(crests, most);
        Moment rest = g_array_index(moments, Moment, to - 1);
        rest.at_ns = MAX(rest.at_ns, most.at_ns + slice_ns);
        bool goes_on =
            to < moments->len && g_array_index(moments, Moment, to).at_ns <= rest.at_ns + slice_ns;
        if (!goes_on && to < moments->len) {
            g_array_append_val(crests, rest);
        }
    }
    g_array_append_val(crests, *last);
    return crests;
}

GString *trace_memory_crest_table(const TracePanel *panel, int32_t first_step, int32_t last_step,
                                  guint n_slices) {
    g_autoptr(GPtrArray) names = trace_folded_categories(panel->trace);
    g_autoptr(GArray) moments = find_moments(panel, first_step, last_step);
    g_autoptr(GArray) crests = find_crests(moments, n_slices, names->len);
    return table_of(crests, NULL, names);
}

static void append_corner(GString *table, int64_t at_ns, uint64_t bytes) {
    g_string_append_printf(table, "%" G_GINT64_FORMAT "\t%" G_GUINT64_FORMAT "\n", (gint64)at_ns,
                           (guint64)bytes);
}

/* The upper edge of the stack's first layers, as an area's outline: "time size" at each corner. */
static GString *outline_table(const GArray *moments, const guint8 *keep, guint n_layers) {
    GString *table = g_string_new("time_ns\tbytes\n");
    uint64_t held = 0;
    const Moment *last = NULL;
    for (guint i = 0; i < moments->len; i++) {
        if (keep != NULL && !keep[i]) {
            continue;
        }
        const Moment *moment = &g_array_index(moments, Moment, i);
        uint64_t bytes = 0;
        for (guint k = 0; k < n_layers; k++) {
            bytes += moment->values[k];
        }
        if (last != NULL && bytes != held) {
            append_corner(table, moment->at_ns, held);
        }
        if (last == NULL || bytes != held) {
            append_corner(table, moment->at_ns, bytes);
        }
        held = bytes;
        last = moment;
    }
    if (last != NULL) {
        append_corner(table, last->at_ns, held);
    }
    return table;
}

/* NAME-NUMBER-LAYER.tsv, a layer a category. */
static bool write_outlines(const GArray *moments, const guint8 *keep, guint n_layers,
                           const char *name, guint number, const char *folder, GError **error) {
    bool written = true;
    for (guint k = 1; k <= n_layers && written; k++) {
        g_autoptr(GString) table = outline_table(moments, keep, k);
        g_autofree char *file = g_strdup_printf("%s-%u-%u.tsv", name, number, k);
        written = trace_plot_write(folder, file, table, error);
    }
    return written;
}

/* All that comes and goes, and its crests, which stand where that is too quick to be seen. */
static bool write_areas(const TracePanel *panel, const TracePlotOptions *options, guint number,
                        const char *folder, GError **error) {
    g_autoptr(GPtrArray) names = trace_folded_categories(panel->trace);
    g_autoptr(GArray) moments = find_moments(panel, options->first_step, options->last_step);
    g_autofree guint8 *keep = thin(moments, TRACE_PLOT_SLICES, names->len + TRACE_N_STATISTICS);
    g_autoptr(GArray) crests = find_crests(moments, CREST_SLICES, names->len);
    return write_outlines(moments, keep, names->len, "outline", number, folder, error) &&
           write_outlines(crests, NULL, names->len, "crest", number, folder, error);
}

/* Where steps begin, except the first shown: time, "step 3". */
static GString *step_table(const TracePanel *panel, int32_t first_step, int32_t last_step) {
    GString *table = g_string_new("time_ns\tstep\n");
    int64_t origin_ns = trace_memory_origin_ns(panel, first_step);
    int32_t last = INT32_MIN;
    for (guint i = 0; i < panel->trace->memory->len; i++) {
        const TraceMemoryRow *row = trace_memory(panel->trace, i);
        if (row->rank == panel->rank && row->step != last && row->step >= first_step &&
            row->step <= last_step) {
            int64_t at_ns = last == INT32_MIN ? 0 : row->host_ns - origin_ns;
            g_string_append_printf(table, "%" G_GINT64_FORMAT "\t%s %d\n", (gint64)at_ns,
                                   row->step < 0 ? "construction" : "step", row->step);
            last = row->step;
        }
    }
    return table;
}

/* The first moment at which the steps shown hold the most. */
static GString *peak_table(const TracePanel *panel, int32_t first_step, int32_t last_step) {
    const Trace *trace = panel->trace;
    GString *table = g_string_new("time_ns\tallocated\tlabel\n");
    const TraceMemoryRow *peak = NULL;
    for (guint i = 0; i < trace->memory->len; i++) {
        const TraceMemoryRow *row = trace_memory(trace, i);
        if (row->rank == panel->rank && row->step >= first_step && row->step <= last_step &&
            (peak == NULL || row->allocated > peak->allocated)) {
            peak = row;
        }
    }
    if (peak == NULL) {
        return table;
    }
    const TraceInstruction *instruction =
        trace_instruction(trace, trace_role_of_rank(trace, panel->rank), peak->instruction);
    TraceScale scale = trace_scale_bytes((double)peak->allocated);
    g_autofree char *place = trace_place_name(trace, instruction->phase, instruction->unit);
    g_string_append_printf(
        table, "%" G_GINT64_FORMAT "\t%" G_GUINT64_FORMAT "\tpeak %.2f %s, step %d, %s\n",
        (gint64)(peak->host_ns - trace_memory_origin_ns(panel, first_step)),
        (guint64)peak->allocated, (double)peak->allocated / scale.per_unit, scale.unit, peak->step,
        place);
    return table;
}

static void find_extent(const TracePanel *panel, const TracePlotOptions *options,
                        TracePlotExtent *extent) {
    g_autoptr(GArray) moments = find_moments(panel, options->first_step, options->last_step);
    g_autoptr(GPtrArray) names = trace_folded_categories(panel->trace);
    for (guint i = 0; i < moments->len; i++) {
        const Moment *moment = &g_array_index(moments, Moment, i);
        extent->last_ns = MAX(extent->last_ns, moment->at_ns);
        extent->first_ns = MIN(extent->first_ns, moment->at_ns);
        for (guint k = 0; k < TRACE_N_STATISTICS; k++) {
            extent->bytes = MAX(extent->bytes, moment->values[names->len + k]);
        }
    }
}

/* The moment of a column that holds the most, and the most that is reserved in it. */
typedef struct {
    Moment most;
    uint64_t reserved;
} Column;

/* Moments go by; in each column of a text picture stands what it shows. A column in which nothing
 * happens shows what was there before it; those before the first moment and behind the last are
 * empty. */
static GArray *find_columns(const GArray *moments, const TracePlotExtent *extent,
                            guint n_categories, guint *ret_first) {
    GArray *columns = g_array_new(FALSE, FALSE, sizeof(Column));
    double slice_ns = (double)(extent->last_ns - extent->first_ns) / extent->columns;
    Moment before = {0};
    guint next = 0;
    for (guint i = 0; i < extent->columns && moments->len > 0; i++) {
        double end_ns = (double)extent->first_ns + slice_ns * (i + 1);
        Column column = {before, before.values[n_categories + TRACE_RESERVED]};
        bool any = next > 0, is_last = i + 1 == extent->columns;
        bool over = next == moments->len && end_ns - slice_ns > (double)before.at_ns;
        while (next < moments->len &&
               (is_last || (double)g_array_index(moments, Moment, next).at_ns < end_ns)) {
            before = g_array_index(moments, Moment, next++);
            const uint64_t *now = before.values + n_categories;
            if (!any || now[TRACE_ALLOCATED] > column.most.values[n_categories + TRACE_ALLOCATED]) {
                column.most = before;
            }
            column.reserved = MAX(column.reserved, now[TRACE_RESERVED]);
            any = true;
        }
        *ret_first = any && columns->len == 0 ? i : *ret_first;
        if (any && !over) {
            g_array_append_val(columns, column);
        }
    }
    return columns;
}

/* The series whose letter a cell bears, from below the categories; behind them reserved's, in the
 * row that its line runs through; one more: none. */
static guint series_of_cell(const Column *column, const TracePlotExtent *extent, guint row,
                            guint n_categories) {
    double cell_bytes = (double)extent->bytes / extent->rows, sum = 0;
    for (guint k = 0; k < n_categories; k++) {
        sum += (double)column->most.values[k];
        if ((row + 0.5) * cell_bytes <= sum) {
            return k;
        }
    }
    bool is_last = row + 1 == extent->rows; /* rounding must not lift it out */
    bool top = (double)column->reserved > row * cell_bytes &&
               (is_last || (double)column->reserved <= (row + 1) * cell_bytes);
    return top ? n_categories : n_categories + 1;
}

/* What stands at each cell of a text picture: a file a series, "time size" at the cell's middle. In
 * a column stands the moment of its slice that holds the most, so no peak is lost. */
static bool write_cells(const TracePanel *panel, const TracePlotOptions *options, guint number,
                        const TracePlotExtent *extent, const char *folder, GError **error) {
    g_autoptr(GArray) moments = find_moments(panel, options->first_step, options->last_step);
    g_autoptr(GPtrArray) names = trace_folded_categories(panel->trace);
    double slice_ns = (double)(extent->last_ns - extent->first_ns) / extent->columns;
    guint first = 0;
    g_autoptr(GArray) columns = find_columns(moments, extent, names->len, &first);
    for (guint k = 0; k <= names->len; k++) {
        g_autoptr(GString) cells = g_string_new("time_ns\tbytes\n");
        for (guint i = 0; i < columns->len; i++) {
            double middle_ns = (double)extent->first_ns + slice_ns * (first + i + 0.5);
            for (guint row = 0; row < extent->rows; row++) {
                const Column *column = &g_array_index(columns, Column, i);
                if (series_of_cell(column, extent, row, names->len) == k) {
                    g_string_append_printf(cells, "%.0f\t%.0f\n", middle_ns,
                                           (row + 0.5) * (double)extent->bytes / extent->rows);
                }
            }
        }
        g_autofree char *name = g_strdup_printf("cells-%u-%u.tsv", number, k + 1);
        if (!trace_plot_write(folder, name, cells, error)) {
            return false;
        }
    }
    return true;
}

/* The limit that stands for all panels: 0 where they have none, or not the same. */
static uint64_t common_limit_bytes(const TracePanel *panels, guint n_panels) {
    uint64_t limit = trace_limit_bytes(panels[0].trace);
    for (guint i = 1; i < n_panels; i++) {
        limit = trace_limit_bytes(panels[i].trace) == limit ? limit : 0;
    }
    return limit;
}

bool trace_plot_write_memory(const TracePanel *panels, guint n_panels,
                             const TracePlotOptions *options, TracePlotExtent *extent,
                             const char *folder, GString *settings, GError **error) {
    for (guint i = 0; i < n_panels; i++) {
        find_extent(&panels[i], options, extent);
    }
    uint64_t limit = common_limit_bytes(panels, n_panels);
    bool limit_shown = limit > 0 && (double)limit < 1.3 * (double)extent->bytes;
    extent->bytes = limit_shown ? MAX(extent->bytes, limit) : extent->bytes;
    g_string_append_printf(settings, "limit_shown = %d\nlimit_bytes = %" G_GUINT64_FORMAT ".0\n",
                           limit_shown, (guint64)limit);
    g_autoptr(GPtrArray) names = trace_folded_categories(panels[0].trace);
    g_string_append_printf(settings, "n_categories = %u\narray category[%u]\n", names->len,
                           MAX(1, names->len));
    for (guint i = 0; i < names->len; i++) {
        g_autofree char *key = g_strdup_printf("category[%u]", i + 1);
        trace_plot_set_text(settings, key, names->pdata[i]);
    }
    for (guint i = 0; i < n_panels; i++) {
        g_autoptr(GString) crests = trace_memory_crest_table(&panels[i], options->first_step,
                                                             options->last_step, CREST_SLICES);
        g_autoptr(GString) steps = step_table(&panels[i], options->first_step, options->last_step);
        g_autoptr(GString) peak = peak_table(&panels[i], options->first_step, options->last_step);
        g_autofree char *crests_name = g_strdup_printf("crests-%u.tsv", i + 1);
        g_autofree char *steps_name = g_strdup_printf("steps-%u.tsv", i + 1);
        g_autofree char *peak_name = g_strdup_printf("peak-%u.tsv", i + 1);
        if (!trace_plot_write(folder, crests_name, crests, error) ||
            !write_areas(&panels[i], options, i + 1, folder, error) ||
            !trace_plot_write(folder, steps_name, steps, error) ||
            !trace_plot_write(folder, peak_name, peak, error) ||
            (options->output == NULL &&
             !write_cells(&panels[i], options, i + 1, extent, folder, error))) {
            return false;
        }
    }
    return true;
}
