#include "plan/plan.h"

#include "plan/text/text.h"

#include <pthread.h>

G_DEFINE_QUARK(foreshard_plan_error, plan_error)

Plan *plan_new(void) {
    Plan *plan = g_new0(Plan, 1);
    plan->arena = plan_arena_new();
    return plan;
}

void plan_free(Plan *plan) {
    if (plan) {
        plan_arena_free(plan->arena);
        g_free(plan->digest);
        g_free(plan);
    }
}

const char *plan_section_name(PlanSection section) {
    static const char *const names[PLAN_N_SECTIONS] = {"construct", "first", "second", "steady"};
    g_assert(section < PLAN_N_SECTIONS);
    return names[section];
}

const char *plan_phase_name(PlanPhase phase) {
    static const char *const names[PLAN_N_PHASES] = {"setup",    "forward",   "recompute",
                                                     "backward", "optimizer", "evaluation"};
    g_assert(phase < PLAN_N_PHASES);
    return names[phase];
}

const char *plan_axis_name(PlanAxis axis) {
    static const char *const names[PLAN_N_AXES] = {
        "none", "replicate", "shard", "part", "tensor", "context", "pipeline", "expert", "alike"};
    g_assert(axis < PLAN_N_AXES);
    return names[axis];
}

const char *plan_split_name(PlanSplit split) {
    static const char *const names[PLAN_N_SPLITS] = {"all", "rows", "columns", "experts",
                                                     "cut_experts"};
    g_assert(split < PLAN_N_SPLITS);
    return names[split];
}

const char *plan_instr_name(PlanInstrKind kind) {
    static const char *const names[PLAN_N_INSTRS] = {"alloc",  "free", "mark",      "launch",
                                                     "record", "wait", "host_wait", "host_op"};
    g_assert(kind < PLAN_N_INSTRS);
    return names[kind];
}

uint32_t plan_compute_lane(const Plan *plan) {
    for (uint32_t lane = 0; lane < plan->n_lanes; lane++) {
        if (g_str_equal(plan->lanes[lane], "compute")) {
            return lane;
        }
    }
    return 0;
}

uint32_t plan_role_of_rank(const Plan *plan, uint32_t rank) {
    g_assert(rank < plan->world);
    for (uint32_t i = 0; i < plan->n_roles; i++) {
        for (uint32_t j = 0; j < plan->roles[i].n_ranks; j++) {
            if (plan->roles[i].ranks[j] == rank) {
                return i;
            }
        }
    }
    g_assert_not_reached();
}

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

const char *plan_digest(const Plan *plan) {
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&mutex);
    if (!plan->digest) {
        g_autoptr(GString) text = g_string_sized_new(1 << 20);
        plan_text_append_program(plan, text);
        g_autofree char *hex =
            g_compute_checksum_for_data(G_CHECKSUM_SHA256, (const guchar *)text->str, text->len);
        ((Plan *)plan)->digest = g_strconcat("sha256:", hex, NULL); /* a cache; guarded */
    }
    pthread_mutex_unlock(&mutex);
    return plan->digest;
}

bool plan_steps_alternate(const PlanRole *role) {
    if (plan_section_repeats(role, PLAN_SECTION_STEADY)) {
        return false; /* what a program touches it leaves in one state, whatever it found */
    }
    for (uint32_t b = 0; b < role->n_buffers; b++) {
        unsigned carried = role->buffers[b].carried;
        if ((carried >> PLAN_SECTION_SECOND & 1) != (carried >> PLAN_SECTION_STEADY & 1)) {
            return true;
        }
    }
    return false;
}
