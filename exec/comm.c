#include "exec/comm.h"

uint32_t exec_comm_color(const Plan *plan, PlanAxis axis, uint32_t rank) {
    return axis == PLAN_AXIS_NONE ? 0 : plan_group_of_rank(plan, rank, axis);
}
