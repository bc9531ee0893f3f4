/* plots/lane-boxes.h - what lanes do, as tables and the cells of a text picture need it. */
#pragma once

#include "plots/private.h"

typedef struct {
    int64_t start_ns, end_ns; /* since origin_ns */
    uint32_t lane;
} PlotBox;

/* What a class does, lane by lane, and joined over gaps shorter than join_ns: PlotBox. */
GArray *plot_lane_boxes(const PlotPanel *panel, int32_t first_step, int32_t last_step,
                        const PlotLaneClass *lane_class, int64_t origin_ns, int64_t join_ns);
/* Where a collective runs and the compute lane does nothing; of no lane. */
GArray *plot_exposed_boxes(const PlotPanel *panel, int32_t first_step, int32_t last_step,
                           int64_t origin_ns, int64_t join_ns);

/* Whether the row is the panel's rank's, of these steps and of a lane: what the host does itself
 * occupies none. */
bool plot_lanes_show(const PlotPanel *panel, const TraceOpRow *row, int32_t first_step,
                     int32_t last_step);
const TraceInstruction *plot_instruction_of(const PlotPanel *panel, uint32_t role,
                                            const TraceOpRow *row);
