/* cli/predict/edge.h - whether a verdict on memory is a close one, which the allocator's
 * fragmentation decides, and what expandable segments would make of it.
 *
 * Near the edge a little more of anything, memory included, may turn "fits" into "does not fit":
 * blocks then lie otherwise. A clear case is told nothing.
 */
#pragma once

#include <json-glib/json-glib.h>

#include "sim/predict.h"

/* What nine in ten peaks are predicted within, of programs whose sources tell what they do: 4.7 %
 * of 111 (tests/validation/README.md, "Memory"; 2026-11). What leaves less may not fit. */
#define CLI_EDGE_SHARE 0.05

typedef struct {
    bool is_near;              /* else the others are 0 */
    uint64_t lost_bytes;       /* reserved at its peak, less what is active at its own */
    double left_percent;       /* of the allocator's memory; only where it fits */
    bool is_known, fits;       /* with expandable segments; asked where it fits without */
    uint64_t expandable_bytes; /* then reserved at most; only where it fits so, as the next */
    uint64_t n_retries;        /* then, in so many steps: */
    unsigned n_steps;
} CliEdge;

/* Plays once more where it fits and is near, unless another allocator was chosen or each rank is
 * played. */
CliEdge cli_edge_of(const Plan *plan, const ModelCluster *cluster, const SimOptions *asked,
                    const SimPrediction *prediction);
/* A line or two; of a clear case an empty text. Transfer full. */
char *cli_edge_text(const CliEdge *edge, const SimPrediction *prediction);
void cli_edge_add_json(const CliEdge *edge, const SimPrediction *prediction, JsonBuilder *json);
