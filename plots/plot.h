/* plots/plot.h - pictures of traces, drawn by gnuplot from tables written here.
 *
 * A picture has a panel a trace, one below the other on the same axes. The scripts (NAME.gp)
 * hold no number of a trace: they read tables and a file of settings from a folder of their own,
 * which is gone afterwards.
 *
 * Time on an axis counts from the start of the first step shown: t = 0 for the first recorded step,
 * else the moment at which the host begins it (memory) or the step before ends (lanes).
 *
 * A line above a panel says its outcome (plots/lesson.c).
 *
 * Thinning keeps, in each slice of time narrower than a pixel, the first and the last row and the
 * rows where any curve is least and greatest; boxes of one kind on one lane are joined over gaps
 * that are narrower than a quarter of a pixel.
 */
#pragma once

#include "trace/trace.h"

typedef struct {
    const Trace *trace;
    uint32_t rank;
} PlotPanel;

typedef enum {
    PLOT_PICTURE_MEMORY,
    PLOT_PICTURE_LANES,
    PLOT_PICTURE_JITTER, /* both traces in one panel */
} PlotPicture;

/* What a picture of text may be made of. */
typedef enum {
    PLOT_ASCII,
    PLOT_BLOCKS /* finer ones of Unicode too, where gnuplot draws with them */
} PlotCharacters;

typedef struct {
    int32_t first_step, last_step; /* shown, both with */
    const char *scripts;           /* the folder of the .gp files */
    const char *output;            /* .png, .svg, .pdf or .html; NULL: text is returned */
    guint columns;                 /* of text */
    PlotCharacters characters;
} PlotOptions;

enum {
    PLOT_MAX_PANELS = 2
};

/* The script's file name: "memory.gp" and so on, "-text" added for text. */
char *plot_script(PlotPicture picture, const char *output);

/* With an output, it is written aside and renamed, and *ret_text is NULL. Transfer full. */
bool plot_panels(PlotPicture picture, const PlotPanel *panels, guint n_panels,
                 const PlotOptions *options, char **ret_text, GError **error);

/* The tables, for the scripts and for whoever wants to draw otherwise. Columns are separated by
 * tabs, the first line names them. Times are ns and sizes are bytes, as in the trace. */

/* The colours of the lanes picture: phases for what is no collective, then kinds of collectives. */
typedef struct {
    const char *name;
    bool is_collective;
    uint32_t index; /* of phase or kind */
} PlotLaneClass;
GArray *plot_lane_classes(const PlotPanel *panels, guint n_panels, int32_t first_step,
                          int32_t last_step);
/* start, end, lane of each box of a class; joined over gaps shorter than join_ns. */
GString *plot_lane_table(const PlotPanel *panel, int32_t first_step, int32_t last_step,
                         const PlotLaneClass *lane_class, int64_t origin_ns, int64_t join_ns);
/* start, end of each stretch in which a collective runs and the compute lane computes nothing. */
GString *plot_exposed_table(const PlotPanel *panel, int32_t first_step, int32_t last_step,
                            int64_t origin_ns, int64_t join_ns);
/* When the host issues the ops of the lanes; of those closer than apart_ns to the one before, the
 * first alone. */
GString *plot_host_table(const PlotPanel *panel, int32_t first_step, int32_t last_step,
                         int64_t origin_ns, int64_t apart_ns);
/* step, time, whether it is steady; a row a recorded step. */
GString *plot_jitter_table(const PlotPanel *panel, int32_t first_step, int32_t last_step);
