#include "exec/comm.h"

uint32_t exec_comm_color(const Plan *plan, PlanAxis axis, uint32_t rank) {
    switch (axis) {
    case PLAN_AXIS_NONE:
        return 0;
    case PLAN_AXIS_REPLICATE:
        return plan_rank_on_axis(plan, rank, PLAN_AXIS_SHARD);
    case PLAN_AXIS_SHARD:
        return plan_rank_on_axis(plan, rank, PLAN_AXIS_REPLICATE);
    case PLAN_AXIS_PART:
        return rank / plan->axes[PLAN_AXIS_PART];
    case PLAN_N_AXES:
        break;
    }
    g_assert_not_reached();
}
