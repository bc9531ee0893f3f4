/* plan/graph/private.h - how a graph grows. Inside plan/graph/ only. */
#pragma once

#include "plan/graph/emit.h"

/* A local variable of the module that was entered at a step. */
typedef struct {
    uint32_t enter_step, value;
    bool is_argument;
} PlanGraphLocal;

uint32_t plan_graph_add_value(PlanGraph *graph, PlanGraphValue value);
/* A view of ELEMENTS of the value BASE, from its element OFFSET on. Returns the view's value. */
uint32_t plan_graph_add_view(PlanGraph *graph, uint32_t base, uint64_t offset, uint64_t elements);
static inline PlanGraphOp plan_graph_new_op(uint32_t kind, unsigned n_inputs, unsigned n_outputs) {
    return (PlanGraphOp){.kind = kind, .n_inputs = n_inputs, .n_outputs = n_outputs};
}
/* VALUES: its inputs, then its outputs; any of them may be PLAN_NONE. Attributes, if it has any,
 * are appended behind. */
void plan_graph_add_op(PlanGraph *graph, PlanGraphOp op, const uint32_t *values,
                       const int64_t *dims, unsigned n_dims);
/* The last op may read sums that wait for their reader. */
void plan_graph_read_addends(PlanGraph *graph);
uint32_t plan_graph_add_refs(PlanGraph *graph, const uint32_t *values, unsigned n);
void plan_graph_add_step(PlanGraph *graph, PlanGraphStepKind kind, uint32_t index,
                         const uint32_t *values, unsigned n);
/* The value is held at least until that step. */
void plan_graph_hold_until(PlanGraph *graph, uint32_t value, uint32_t step);
/* The module whose forward is being written; before it is entered, the root. */
uint32_t plan_graph_module_now(const PlanGraph *graph);
/* From now on the name means another value (boundaries.h). */
void plan_graph_stand_for(PlanGraph *graph, uint32_t name, uint32_t value);

static inline bool plan_graph_is_floating(PlanDtype dtype) {
    return dtype == PLAN_FP32 || dtype == PLAN_BF16 || dtype == PLAN_FP16;
}
