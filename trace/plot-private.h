/* trace/plot-private.h - what the pictures share: extents, settings, files of their folder. */
#pragma once

#include "trace/plot.h"
#include "trace/scale.h"

enum {
    TRACE_PLOT_MAX_SERIES = 24,
    TRACE_PLOT_SLICES = 1600, /* a picture is no more pixels wide */
};

/* The axes that all panels share, and for text the cells between them. */
typedef struct {
    int64_t first_ns, last_ns;
    uint64_t bytes; /* memory picture: the most that any curve reaches */
    guint columns, rows;
} TracePlotExtent;

bool trace_plot_write(const char *folder, const char *name, const GString *text, GError **error);
/* KEY = "VALUE", quoted for gnuplot. */
void trace_plot_set_text(GString *settings, const char *key, const char *value);

/* Each widens the extent, writes its tables to the folder and appends to the settings. */
bool trace_plot_write_memory(const TracePanel *panels, guint n_panels,
                             const TracePlotOptions *options, TracePlotExtent *extent,
                             const char *folder, GString *settings, GError **error);
bool trace_plot_write_lanes(const TracePanel *panels, guint n_panels,
                            const TracePlotOptions *options, TracePlotExtent *extent,
                            const char *folder, GString *settings, GError **error);
