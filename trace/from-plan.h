/* trace/from-plan.h - a trace's header and tables, filled from the plan that is about to be played.
 *
 * The one place that says which number of a plan becomes which number of a trace: lanes, units,
 * modules, op kinds and roles keep theirs; a category is the plan's sub-category; an instruction is
 * its running number over the sections of its role.
 */
#pragma once

#include "plan/plan.h"
#include "trace/trace.h"

/* Sets title, network, strategy and world. Sets the digest too if the plan was read from a file; a
 * plan that was just built is what its network and strategy make. */
void trace_name_plan(Trace *trace, const Plan *plan);
/* trace is fresh. Sets digest, title, network, strategy and world, and adds every table; the caller
 * adds side, device, cluster and so on, then ranks and rows. */
void trace_describe_plan(Trace *trace, const Plan *plan);

/* What rows call an instruction: its running number over construct, first, second and steady. */
static inline uint32_t trace_instruction_number(const PlanRole *role, PlanSection section,
                                                uint32_t index) {
    uint32_t number = index;
    for (int before = 0; before < (int)section; before++) {
        number += role->n_instrs[before];
    }
    return number;
}
