/* plots/lanes-cells.h - lanes as text: which class stands in which cell of the picture. */
#pragma once

#include "plots/private.h"

/* A file a class, "time lane". number: the panel's, from 1 on. */
bool plot_write_lane_cells(const PlotSheet *sheet, guint number, const GArray *classes,
                           int64_t origin_ns, GError **error);
