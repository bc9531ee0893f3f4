/* The points that no other beats in both, and which of them get a number in the picture. */
#include <math.h>

#include "plots/points.h"

static int compare_cost(gconstpointer a, gconstpointer b, gpointer data) {
    const GArray *points = data;
    guint i = *(const guint *)a, k = *(const guint *)b;
    const PlotPoint *x = plot_point(points, i), *y = plot_point(points, k);
    if (x->cost_ns != y->cost_ns) {
        return x->cost_ns < y->cost_ns ? -1 : 1;
    }
    return x->reserved_bytes != y->reserved_bytes
               ? (x->reserved_bytes > y->reserved_bytes) - (x->reserved_bytes < y->reserved_bytes)
               : (i > k) - (i < k);
}

GArray *plot_points_front(const GArray *points) {
    GArray *order = g_array_new(FALSE, FALSE, sizeof(guint));
    for (guint i = 0; i < points->len; i++) {
        const PlotPoint *point = plot_point(points, i);
        if (point->fits && !isnan(point->cost_ns) && !isnan(point->reserved_bytes)) {
            g_array_append_val(order, i);
        }
    }
    g_array_sort_with_data(order, compare_cost, (gpointer)points);
    guint kept = 0;
    double least = INFINITY;
    for (guint i = 0; i < order->len; i++) {
        guint place = g_array_index(order, guint, i);
        if (plot_point(points, place)->reserved_bytes < least) {
            least = plot_point(points, place)->reserved_bytes;
            g_array_index(order, guint, kept++) = place;
        }
    }
    g_array_set_size(order, kept);
    return order;
}

enum {
    NUMBERED_MOST = 16 /* lines of the key that have place below one another */
};

/* As a share of the picture, along the axis on which it is more. */
static double apart(const PlotPoint *a, const PlotPoint *b, double most_ns, double top_bytes) {
    return fmax(fabs(a->cost_ns - b->cost_ns) / most_ns,
                fabs(a->reserved_bytes - b->reserved_bytes) / top_bytes);
}

/* How many got one. */
static guint number_those_apart(const GArray *points, const GArray *front, double most_ns,
                                double top_bytes, double least, guint *numbers) {
    guint n = 0, last = 0;
    for (guint i = 0; i < front->len; i++) {
        const PlotPoint *point = plot_point(points, g_array_index(front, guint, i));
        const PlotPoint *before = plot_point(points, g_array_index(front, guint, last));
        bool is_far = i == 0 || apart(point, before, most_ns, top_bytes) >= least;
        bool is_end = i + 1 == front->len;
        if (!is_far && is_end && last > 0) { /* instead of its neighbour */
            numbers[last] = 0;
            n--;
        }
        numbers[i] = is_far || is_end ? ++n : 0;
        last = numbers[i] > 0 ? i : last;
    }
    return n;
}

guint *plot_points_numbers(const GArray *points, const GArray *front, double most_ns,
                           double top_bytes) {
    static const double nearest = 0.03, wider = 1.25; /* a number is as high as that */
    guint *numbers = g_new0(guint, MAX(1, front->len));
    for (double least = nearest;
         number_those_apart(points, front, most_ns, top_bytes, least, numbers) > NUMBERED_MOST;
         least *= wider) {
    }
    return numbers;
}
