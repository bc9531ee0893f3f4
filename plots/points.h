/* plots/points.h - pictures whose points are whole plays: what a knob does, what a trade
 * costs, how far a strategy scales.
 *
 * A point is a prediction, a measured trace or a published row. Those of one series are joined by a
 * line in the order of x, measured and published ones stand as marks of their own.
 */
#pragma once

#include "plots/plot.h"

typedef struct {
    const char *series; /* "" when there is only one */
    const char *label;  /* of x, or of the point itself (Pareto) */
    double x;           /* the number, or the place of its label; NAN: not known */
    bool measured;      /* or published: a mark, not a line */
    bool fits;          /* false: drawn hollow, with what it would take had it memory enough */
    /* NAN: not known */
    double step_ns, least_ns, most_ns; /* median, least and most of the steady steps */
    double cost_ns;                    /* what Pareto holds against memory: the step, or a share */
    double allocated_bytes, reserved_bytes;
    double flops_per_s;     /* of a GPU */
    uint64_t retries;       /* times the allocator gave memory back and asked again, */
    unsigned n_steps;       /* in so many steps */
    double published_bytes; /* a measured peak, which reserved_bytes predicts; 0: none */
} PlotPoint;

typedef enum {
    PLOT_POINTS_SWEEP,      /* step time and peak memory over one knob */
    PLOT_POINTS_PARETO,     /* peak memory against step time, with the front */
    PLOT_POINTS_SCALE,      /* FLOP/s of a GPU over x, the number of GPUs */
    PLOT_POINTS_VALIDATION, /* step_ns, predicted, against x, measured ns, and peaks beside; bands
                             * of error */
} PlotPointsPicture;

typedef struct {
    const char *title;     /* of the plan, without what varies */
    const char *cost_name; /* "step", or what cost_ns is else */
    const char *x_name;
    bool x_is_number;       /* false: labels stand at the tics */
    double limit_bytes;     /* what the allocator may take; NAN: not known */
    const char *marks_name; /* "measured" or "published" */
    const char *scripts;    /* the folder of the .gp files */
    const char *output;     /* .png, .svg, .pdf or .html; NULL: text is returned */
    guint columns;          /* of text */
    PlotCharacters characters;
} PlotPointsOptions;

static inline const PlotPoint *plot_point(const GArray *points, guint i) {
    return &g_array_index(points, PlotPoint, i);
}

/* The script's file name: "sweep.gp" and so on, "-text" added for text. */
char *plot_points_script(PlotPointsPicture picture, const char *output);

/* Points: PlotPoint; those that do not know what the picture shows are left out. With an output,
 * it is written aside and renamed, and *ret_text is NULL. */
bool plot_points(PlotPointsPicture picture, const GArray *points, const PlotPointsOptions *options,
                 char **ret_text, GError **error);

/* The points that no other beats in both cost and peak reserved memory, cheapest first; those
 * that do not fit are left out. Elements are indices (guint). */
GArray *plot_points_front(const GArray *points);
/* Of a front, the number that each point bears in the picture, from 1; 0: none, for it lies too
 * near to one that does, or there are too many for the key. The ends bear one. The picture goes to
 * most_ns of cost and top_bytes. Transfer full. */
guint *plot_points_numbers(const GArray *points, const GArray *front, double most_ns,
                           double top_bytes);
/* The points as rows of a table for people: what a text picture shows, in numbers. */
GString *plot_points_rows(const GArray *points, const PlotPointsOptions *options);
/* What the picture shows of the points, in a line: the least and the most, what scaling loses, how
 * far predictions miss. At least one point. Transfer full. */
char *plot_points_lesson(PlotPointsPicture picture, const GArray *points,
                         const PlotPointsOptions *options);
/* The points of a series, as the scripts read them: x, label, step, least, most, allocated,
 * reserved, flops, fits, cost, published. Not known: "?". */
GString *plot_points_table(const GArray *points, const char *series, bool measured);
