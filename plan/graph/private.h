/* plan/graph/private.h - how a graph grows. Inside plan/graph/ only. */
#pragma once

#include "plan/graph/graph.h"

uint32_t plan_graph_add_value(PlanGraph *graph, PlanGraphValue value);
/* Of a value's elements, from offset on. */
uint32_t plan_graph_add_view(PlanGraph *graph, uint32_t base, uint64_t offset, uint64_t elements);
/* values: inputs, then outputs, some of which may be PLAN_NONE. Its number. */
uint32_t plan_graph_add_op(PlanGraph *graph, PlanGraphOp op, const uint32_t *values);
/* One that autograd/ writes; of its own numbers. */
void plan_graph_add_written(PlanGraph *graph, PlanGraphView kind, const uint32_t *values,
                            unsigned n_inputs, unsigned n_outputs, const int64_t *dims,
                            unsigned n_dims);
uint32_t plan_graph_add_refs(PlanGraph *graph, const uint32_t *values, unsigned n);
void plan_graph_add_step(PlanGraph *graph, PlanGraphStepKind kind, uint32_t index,
                         const uint32_t *values, unsigned n);
/* The module whose forward is being written; before it is entered, the root. */
uint32_t plan_graph_module_now(const PlanGraph *graph);
