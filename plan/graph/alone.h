/* plan/graph/alone.h - what a compiler makes of blocks of which nobody wants a gradient.
 *
 * Inductor's program of a forward alone keeps nothing: a tensor goes with the last kernel that
 * reads it, whatever variable Python would hold it by, and a kernel that reads one number of it for
 * each that it makes writes its result over it (decide_inplace_update in torch/_inductor/
 * scheduler.py, PyTorch 2.13). What a program is given is its caller's. Facts: recordings
 * *-evaluated-*compiled*. Inside plan/graph/ only.
 */
#pragma once

#include "plan/graph/private.h"

/* The walk is over; what each value is held by is settled, releases are not yet sorted. */
void plan_graph_compile_alone(PlanGraph *graph);
