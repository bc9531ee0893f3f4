#include "plan/mesh.h"

uint32_t plan_axis_stride(const Plan *plan, PlanAxis axis) {
    switch (axis) {
    case PLAN_AXIS_REPLICATE:
        return plan->axes[PLAN_AXIS_SHARD] * plan->axes[PLAN_AXIS_TENSOR];
    case PLAN_AXIS_SHARD:
    case PLAN_AXIS_PART:
    case PLAN_AXIS_CONTEXT:
    case PLAN_AXIS_EXPERT:
        return plan->axes[PLAN_AXIS_TENSOR];
    case PLAN_AXIS_ALIKE:
        return plan->axes[PLAN_AXIS_TENSOR] * plan->axes[PLAN_AXIS_EXPERT];
    case PLAN_AXIS_PIPELINE:
        return plan_ranks_of_stage(plan);
    case PLAN_AXIS_NONE:
    case PLAN_AXIS_TENSOR:
        return 1;
    case PLAN_N_AXES:
        break;
    }
    g_assert_not_reached();
}

uint32_t plan_rank_on_axis(const Plan *plan, uint32_t rank, PlanAxis axis) {
    return rank / plan_axis_stride(plan, axis) % plan->axes[axis];
}

uint32_t plan_group_of_rank(const Plan *plan, uint32_t rank, PlanAxis axis) {
    uint32_t stride = plan_axis_stride(plan, axis);
    return rank / (stride * plan->axes[axis]) * stride + rank % stride;
}

uint32_t plan_stages_of_rank(const Plan *plan) {
    uint32_t roots = 0;
    for (uint32_t u = 0; u < plan->n_units && plan->axes[PLAN_AXIS_PIPELINE] > 1; u++) {
        roots += g_str_equal(plan->units[u].name, "root");
    }
    return roots ? MAX(1, roots / plan->axes[PLAN_AXIS_PIPELINE]) : 1;
}

char *plan_rank_in_stages(uint32_t rank, uint64_t place, uint64_t places, uint64_t each) {
    GString *text = g_string_new(NULL);
    g_string_printf(text, "rank %u, stage%s %" G_GUINT64_FORMAT, rank, each > 1 ? "s" : "",
                    1 + place);
    if (each > 1) {
        g_string_append_printf(text, ", %" G_GUINT64_FORMAT, 1 + place + places);
    }
    if (each > 2) {
        g_string_append_printf(text, "%s, %" G_GUINT64_FORMAT, each > 3 ? ", ..." : "",
                               1 + place + (each - 1) * places);
    }
    g_string_append_printf(text, " of %" G_GUINT64_FORMAT, places * each);
    return g_string_free(text, FALSE);
}

char *plan_rank_text(const Plan *plan, uint32_t rank) {
    uint32_t places = plan->axes[PLAN_AXIS_PIPELINE];
    uint32_t place = plan_rank_on_axis(plan, rank, PLAN_AXIS_PIPELINE);
    return places > 1 ? plan_rank_in_stages(rank, place, places, plan_stages_of_rank(plan))
                      : g_strdup_printf("rank %u", rank);
}

Plan plan_line(uint32_t world) {
    Plan line = {.world = world};
    for (unsigned axis = 0; axis < PLAN_N_AXES; axis++) {
        line.axes[axis] = axis == PLAN_AXIS_SHARD ? world : 1;
    }
    return line;
}
