/* plots/lane-boxes.c - what runs when, joined to what an eye can tell apart, and which
 * communication is exposed.
 */
#include "plots/lane-boxes.h"

static int compare_boxes(gconstpointer a, gconstpointer b) {
    const PlotBox *x = a, *y = b;
    if (x->lane != y->lane) {
        return x->lane < y->lane ? -1 : 1;
    }
    return x->start_ns != y->start_ns ? (x->start_ns < y->start_ns ? -1 : 1)
                                      : (x->end_ns > y->end_ns) - (x->end_ns < y->end_ns);
}

/* Sorted, and joined over gaps shorter than join_ns. */
static void join(GArray *boxes, int64_t join_ns) {
    g_array_sort(boxes, compare_boxes);
    guint kept = 0;
    for (guint i = 0; i < boxes->len; i++) {
        PlotBox box = g_array_index(boxes, PlotBox, i);
        PlotBox *last = kept > 0 ? &g_array_index(boxes, PlotBox, kept - 1) : NULL;
        if (last != NULL && last->lane == box.lane && box.start_ns - last->end_ns < join_ns) {
            last->end_ns = MAX(last->end_ns, box.end_ns);
        } else {
            g_array_index(boxes, PlotBox, kept++) = box;
        }
    }
    g_array_set_size(boxes, kept);
}

const TraceInstruction *plot_instruction_of(const PlotPanel *panel, uint32_t role,
                                            const TraceOpRow *row) {
    return trace_instruction(panel->trace, role, row->instruction);
}

bool plot_lanes_show(const PlotPanel *panel, const TraceOpRow *row, int32_t first_step,
                     int32_t last_step) {
    if (row->rank != panel->rank || row->step < first_step || row->step > last_step) {
        return false;
    }
    uint32_t role = trace_role_of_rank(panel->trace, panel->rank);
    return plot_instruction_of(panel, role, row)->what == TRACE_OP;
}

static bool belongs(const PlotPanel *panel, uint32_t role, const TraceOpRow *row,
                    const PlotLaneClass *lane_class) {
    const TraceInstruction *instruction = plot_instruction_of(panel, role, row);
    bool collective =
        trace_kind(panel->trace, instruction->kind)->kind_class == TRACE_KIND_COLLECTIVE;
    if (collective != lane_class->is_collective) {
        return false;
    }
    return lane_class->index == (collective ? instruction->kind : instruction->phase);
}

GArray *plot_lane_boxes(const PlotPanel *panel, int32_t first_step, int32_t last_step,
                        const PlotLaneClass *lane_class, int64_t origin_ns, int64_t join_ns) {
    uint32_t role = trace_role_of_rank(panel->trace, panel->rank);
    GArray *boxes = g_array_new(FALSE, FALSE, sizeof(PlotBox));
    for (guint i = 0; i < panel->trace->ops->len; i++) {
        const TraceOpRow *row = trace_op(panel->trace, i);
        if (plot_lanes_show(panel, row, first_step, last_step) &&
            belongs(panel, role, row, lane_class)) {
            PlotBox box = {row->start_ns - origin_ns, row->end_ns - origin_ns, row->lane};
            g_array_append_val(boxes, box);
        }
    }
    join(boxes, join_ns);
    return boxes;
}

/* What of a box none of hides covers; *next: where the search goes on, for boxes come in order. */
static void append_bare(GArray *bare, PlotBox box, const GArray *hides, guint *next) {
    while (*next < hides->len && g_array_index(hides, PlotBox, *next).end_ns <= box.start_ns) {
        (*next)++;
    }
    for (guint k = *next; box.start_ns < box.end_ns; k++) {
        const PlotBox *cover = k < hides->len ? &g_array_index(hides, PlotBox, k) : NULL;
        PlotBox piece = box;
        piece.end_ns = cover != NULL ? MIN(box.end_ns, cover->start_ns) : box.end_ns;
        if (piece.start_ns < piece.end_ns) {
            g_array_append_val(bare, piece);
        }
        box.start_ns = cover != NULL ? cover->end_ns : box.end_ns;
    }
}

GArray *plot_exposed_boxes(const PlotPanel *panel, int32_t first_step, int32_t last_step,
                           int64_t origin_ns, int64_t join_ns) {
    const Trace *trace = panel->trace;
    uint32_t role = trace_role_of_rank(trace, panel->rank), compute = trace_compute_lane(trace);
    g_autoptr(GArray) communicating = g_array_new(FALSE, FALSE, sizeof(PlotBox));
    g_autoptr(GArray) computing = g_array_new(FALSE, FALSE, sizeof(PlotBox));
    for (guint i = 0; i < trace->ops->len; i++) {
        const TraceOpRow *row = trace_op(trace, i);
        if (row->rank != panel->rank) {
            continue;
        }
        PlotBox box = {row->start_ns - origin_ns, row->end_ns - origin_ns, 0};
        uint32_t kind = plot_instruction_of(panel, role, row)->kind;
        if (trace_kind(trace, kind)->kind_class == TRACE_KIND_COLLECTIVE) {
            if (plot_lanes_show(panel, row, first_step, last_step)) {
                g_array_append_val(communicating, box);
            }
        } else if (row->lane == compute &&
                   plot_instruction_of(panel, role, row)->what == TRACE_OP) {
            g_array_append_val(computing, box);
        }
    }
    join(communicating, 1);
    join(computing, 1);
    GArray *exposed = g_array_new(FALSE, FALSE, sizeof(PlotBox));
    guint next = 0;
    for (guint i = 0; i < communicating->len; i++) {
        append_bare(exposed, g_array_index(communicating, PlotBox, i), computing, &next);
    }
    join(exposed, join_ns);
    return exposed;
}
