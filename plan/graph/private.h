/* plan/graph/private.h - how a graph grows. Inside plan/graph/ only. */
#pragma once

#include "plan/graph/graph.h"

uint32_t plan_graph_add_value(PlanGraph *graph, PlanGraphValue value);
/* A view of ELEMENTS of the value BASE, from its element OFFSET on. Returns the view's value. */
uint32_t plan_graph_add_view(PlanGraph *graph, uint32_t base, uint64_t offset, uint64_t elements);
/* VALUES: its inputs, then its outputs; any of them may be PLAN_NONE. Returns the op's number. */
uint32_t plan_graph_add_op(PlanGraph *graph, PlanGraphOp op, const uint32_t *values);
/* Adds an op that has no kernel of its own: KIND says which kernels autograd/ launches for it.
 * VALUES as above; DIMS are copied. */
void plan_graph_add_written(PlanGraph *graph, PlanGraphView kind, const uint32_t *values,
                            unsigned n_inputs, unsigned n_outputs, const int64_t *dims,
                            unsigned n_dims);
uint32_t plan_graph_add_refs(PlanGraph *graph, const uint32_t *values, unsigned n);
void plan_graph_add_step(PlanGraph *graph, PlanGraphStepKind kind, uint32_t index,
                         const uint32_t *values, unsigned n);
/* The module whose forward is being written; before it is entered, the root. */
uint32_t plan_graph_module_now(const PlanGraph *graph);
