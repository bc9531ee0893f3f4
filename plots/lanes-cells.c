#include "plots/lanes-cells.h"

#include "plots/lane-boxes.h"

/* How much of each slice of the time axis a box covers. */
static void cover(double *covered, const PlotExtent *extent, const PlotBox *box) {
    double slice_ns = (double)(extent->last_ns - extent->first_ns) / extent->columns;
    double from = (double)(box->start_ns - extent->first_ns);
    double to = (double)(box->end_ns - extent->first_ns);
    for (guint i = (guint)(MAX(0, from) / slice_ns); i < extent->columns && i * slice_ns < to;
         i++) {
        covered[i] += MIN(to, (i + 1) * slice_ns) - MAX(from, i * slice_ns);
    }
}

/* A class's boxes; of the class behind the last, exposed communication. */
static GArray *boxes_of(const PlotSheet *sheet, guint number, const GArray *classes, guint k,
                        int64_t origin_ns) {
    const PlotPanel *panel = &sheet->panels[number - 1];
    const PlotOptions *options = sheet->options;
    return k == classes->len
               ? plot_exposed_boxes(panel, options->first_step, options->last_step, origin_ns, 1)
               : plot_lane_boxes(panel, options->first_step, options->last_step,
                                 &g_array_index(classes, PlotLaneClass, k), origin_ns, 1);
}

/* The class that covers most of each cell, + 1; 0: none does. A row of cells a lane, and one below
 * the last for exposed communication. */
static guint *find_winners(const PlotSheet *sheet, guint number, const GArray *classes,
                           int64_t origin_ns) {
    guint n_lanes = sheet->panels[number - 1].trace->lanes->len;
    gsize n = sheet->extent.columns, n_cells = (n_lanes + 1) * n;
    g_autofree double *most = g_new0(double, n_cells);
    guint *winners = g_new0(guint, n_cells);
    for (guint k = 0; k <= classes->len; k++) {
        g_autoptr(GArray) boxes = boxes_of(sheet, number, classes, k, origin_ns);
        g_autofree double *covered = g_new0(double, n_cells);
        for (guint i = 0; i < boxes->len; i++) {
            const PlotBox *box = &g_array_index(boxes, PlotBox, i);
            cover(covered + (k == classes->len ? n_lanes : box->lane) * n, &sheet->extent, box);
        }
        for (gsize i = 0; i < n_cells; i++) {
            if (covered[i] > most[i]) {
                most[i] = covered[i];
                winners[i] = k + 1;
            }
        }
    }
    return winners;
}

bool plot_write_lane_cells(const PlotSheet *sheet, guint number, const GArray *classes,
                           int64_t origin_ns, GError **error) {
    const PlotExtent *extent = &sheet->extent;
    gsize n = extent->columns, n_cells = (sheet->panels[number - 1].trace->lanes->len + 1) * n;
    double slice_ns = (double)(extent->last_ns - extent->first_ns) / (double)n;
    g_autofree guint *winners = find_winners(sheet, number, classes, origin_ns);
    for (guint k = 1; k <= classes->len + 1; k++) {
        g_autoptr(GString) cells = g_string_new("time_ns\tlane\n");
        for (gsize i = 0; i < n_cells; i++) {
            if (winners[i] == k) {
                double at_ns = (double)extent->first_ns + ((double)(i % n) + 0.5) * slice_ns;
                g_string_append_printf(cells, "%.0f\t%u\n", at_ns, (guint)(i / n));
            }
        }
        g_autofree char *name = g_strdup_printf("cells-%u-%u.tsv", number, k);
        if (!plot_write(sheet->folder, name, cells, error)) {
            return false;
        }
    }
    return true;
}
