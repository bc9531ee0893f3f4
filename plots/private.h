/* plots/private.h - what the pictures share: extents, settings, files of their folder. */
#pragma once

#include "plots/plot.h"
#include "trace/moments.h"
#include "trace/scale.h"

enum {
    PLOT_SLICES = 1600, /* a picture is no more pixels wide */
};

/* The axes that all panels share, and for text the cells between them. */
typedef struct {
    int64_t first_ns, last_ns;
    uint64_t bytes; /* memory picture: the most that any curve reaches */
    guint columns, rows;
} PlotExtent;

/* A picture of traces that is being made. */
typedef struct {
    const PlotPanel *panels;
    guint n_panels;
    const PlotOptions *options;
    PlotExtent extent;  /* widened by each panel */
    const char *folder; /* of the tables and settings */
    GString *settings;
} PlotSheet;

/* Refuses a file name whose ending is no picture's. NULL, for text, is fine. */
bool plot_knows(const char *output, GError **error);
typedef struct {
    const char *folder, *script;
    const char *output; /* NULL: text, of such characters: */
    PlotCharacters characters;
} PlotRun;
/* Runs the script in the folder with the settings; text goes to *ret_text. */
bool plot_run(const PlotRun *run, const GString *settings, char **ret_text, GError **error);

/* "peak 27.22 GB allocated, ...", "step 13.98 s, compute busy ..."; "" where the picture's key says
 * it. Transfer full. */
char *plot_lesson(PlotPicture picture, const PlotPanel *panel, const PlotOptions *options);

bool plot_write(const char *folder, const char *name, const GString *text, GError **error);
/* KEY = "VALUE", quoted for gnuplot. */
void plot_set_text(GString *settings, const char *key, const char *value);

/* What stands at each cell of a text picture of memory: cells-NUMBER-SERIES.tsv. */
bool plot_write_memory_cells(const TraceMoments *moments, const PlotExtent *extent, guint number,
                             const char *folder, GError **error);

/* Each widens the sheet's extent, writes its tables and appends to its settings. */
bool plot_write_memory(PlotSheet *sheet, GError **error);
bool plot_write_lanes(PlotSheet *sheet, GError **error);
bool plot_write_jitter(PlotSheet *sheet, GError **error);
