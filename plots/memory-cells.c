/* Memory as text: which series stands in which cell of the picture. */
#include <math.h>

#include "plots/private.h"
#include "trace/summary.h"

/* What a column shows of its slice of time. */
typedef struct {
    TraceMoment most; /* when it holds the most */
    uint64_t reserved;
} Column;

/* The column of the moments before end_ns, which begin with *next. What it begins with counts where
 * a column before has left something. */
static Column take_column(const TraceMoments *moments, guint *next, double end_ns) {
    guint n_categories = moments->categories->len;
    Column column = {0};
    bool any = *next > 0;
    if (any) {
        column.most = *trace_moment(moments, *next - 1);
        column.reserved = column.most.values[n_categories + TRACE_RESERVED];
    }
    for (; *next < moments->rows->len; (*next)++) {
        const TraceMoment *moment = trace_moment(moments, *next);
        const uint64_t *now = moment->values + n_categories;
        if ((double)moment->at_ns >= end_ns) {
            break;
        }
        if (!any || now[TRACE_ALLOCATED] > column.most.values[n_categories + TRACE_ALLOCATED]) {
            column.most = *moment;
        }
        column.reserved = MAX(column.reserved, now[TRACE_RESERVED]);
        any = true;
    }
    return column;
}

/* The category that a stack of them has at a height; their number where it ends below. */
static guint series_at(const TraceMoment *moment, guint n_categories, double bytes) {
    double sum = 0;
    for (guint k = 0; k < n_categories; k++) {
        sum += (double)moment->values[k];
        if (bytes <= sum) {
            return k;
        }
    }
    return n_categories;
}

/* Each line a cell's middle: "time size". */
static void append_column(GString *cells[], const Column *column, guint n_categories,
                          double middle_ns, const PlotExtent *extent) {
    double cell_bytes = (double)extent->bytes / extent->rows;
    for (guint row = 0; row < extent->rows; row++) {
        double middle_bytes = (row + 0.5) * cell_bytes;
        guint series = series_at(&column->most, n_categories, middle_bytes);
        bool is_last = row + 1 == extent->rows; /* rounding must not lift reserved out */
        bool is_reserved = (double)column->reserved > row * cell_bytes &&
                           (is_last || (double)column->reserved <= (row + 1) * cell_bytes);
        if (series < n_categories || is_reserved) {
            g_string_append_printf(cells[series], "%.0f\t%.0f\n", middle_ns, middle_bytes);
        }
    }
}

bool plot_write_memory_cells(const TraceMoments *moments, const PlotExtent *extent, guint number,
                             const char *folder, GError **error) {
    guint n_categories = moments->categories->len, n = moments->rows->len;
    GString *cells[TRACE_MAX_FOLDED + 1]; /* the last: reserved */
    for (guint k = 0; k <= n_categories; k++) {
        cells[k] = g_string_new("time_ns\tbytes\n");
    }
    double slice_ns = (double)(extent->last_ns - extent->first_ns) / extent->columns;
    guint next = 0;
    for (guint i = 0; i < extent->columns && n > 0; i++) {
        double begin_ns = (double)extent->first_ns + slice_ns * i;
        double end_ns = i + 1 == extent->columns ? INFINITY : begin_ns + slice_ns;
        Column column = take_column(moments, &next, end_ns);
        bool over = next == n && begin_ns > (double)trace_moment(moments, n - 1)->at_ns;
        if (next > 0 && !over) {
            append_column(cells, &column, n_categories, begin_ns + slice_ns / 2, extent);
        }
    }
    bool written = true;
    for (guint k = 0; k <= n_categories; k++) {
        g_autofree char *name = g_strdup_printf("cells-%u-%u.tsv", number, k + 1);
        written = written && plot_write(folder, name, cells[k], error);
        g_string_free(cells[k], TRUE);
    }
    return written;
}
