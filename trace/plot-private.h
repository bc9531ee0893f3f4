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

/* Refuses a file name whose ending is no picture's. NULL, for text, is fine. */
bool trace_plot_knows(const char *output, GError **error);
/* A folder for one picture; what takes it away again expects files in it, no folders. */
char *trace_plot_folder(GError **error);
void trace_plot_remove_folder(const char *folder);
/* Runs the script in the folder with the settings; the picture goes to output, or, as text of such
 * characters, to *ret_text. */
bool trace_plot_run(const char *folder, const GString *settings, const char *script,
                    const char *output, TracePlotCharacters characters, char **ret_text,
                    GError **error);

/* "peak 27.22 GB allocated, ...", "step 13.98 s, compute busy ..."; "" where the picture's key says
 * it. Transfer full. */
char *trace_plot_lesson(TracePicture picture, const TracePanel *panel,
                        const TracePlotOptions *options);

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
bool trace_plot_write_jitter(const TracePanel *panels, guint n_panels,
                             const TracePlotOptions *options, TracePlotExtent *extent,
                             const char *folder, GString *settings, GError **error);
