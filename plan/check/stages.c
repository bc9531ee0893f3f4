#include "plan/check/stages.h"

#include "plan/mesh.h"
#include "plan/op/names.h"

typedef enum {
    ONE_WAY,  /* with a neighbour */
    EXCHANGE, /* likewise */
    OF_ALL,   /* what all stages do together */
    N_TALKS
} TalkKind;

/* What a role does with one neighbour, in the order of the lane that serves for it; or with all. */
typedef struct {
    const PlanRole *role;
    PlanSection section;
    uint32_t next;
    int64_t peer;
    TalkKind kind;
} Talk;

static Talk talk_of(const PlanRole *role, PlanSection section, int64_t peer, TalkKind kind) {
    /* What repeats the section before it is held once. */
    PlanSection held = plan_section_repeats(role, section) ? section - 1 : section;
    return (Talk){role, held, 0, peer, kind};
}

static bool is_of(const Talk *talk, const PlanOp *op) {
    if (!plan_op_is_of_stages((PlanOpKind)op->kind)) {
        return talk->kind == OF_ALL && plan_op_is_collective((PlanOpKind)op->kind) &&
               op->axis == PLAN_AXIS_PIPELINE;
    }
    TalkKind kind = op->kind == PLAN_OP_EXCHANGE ? EXCHANGE : ONE_WAY;
    return talk->kind == kind && plan_op_dims(talk->role, op)[STAGE_COLLECTIVE_PEER] == talk->peer;
}

/* NULL: no more. */
static const PlanOp *next_of(Talk *talk) {
    const PlanRole *role = talk->role;
    while (talk->next < role->n_instrs[talk->section]) {
        const PlanInstr *instr = &role->sections[talk->section][talk->next++];
        const PlanOp *op = instr->kind == PLAN_LAUNCH ? &role->ops[instr->arg] : NULL;
        if (op && is_of(talk, op)) {
            return op;
        }
    }
    return NULL;
}

static bool answers(const Talk *a, const PlanOp *x, const Talk *b, const PlanOp *y) {
    PlanOpKind wanted = x->kind == PLAN_OP_SEND      ? PLAN_OP_RECEIVE
                        : x->kind == PLAN_OP_RECEIVE ? PLAN_OP_SEND
                                                     : (PlanOpKind)x->kind;
    return y->kind == wanted && x->dtype == y->dtype &&
           plan_op_dims(a->role, x)[COLLECTIVE_ELEMENTS] ==
               plan_op_dims(b->role, y)[COLLECTIVE_ELEMENTS];
}

static int64_t place_of(const Plan *plan, uint32_t role) {
    return plan_rank_on_axis(plan, plan->roles[role].ranks[0], PLAN_AXIS_PIPELINE);
}

static bool check_neighbours(const Plan *plan, uint32_t i, uint32_t j, PlanSection section,
                             TalkKind kind, GError **error) {
    Talk here = talk_of(&plan->roles[i], section, place_of(plan, j), kind);
    Talk there = talk_of(&plan->roles[j], section, place_of(plan, i), kind);
    const PlanOp *x, *y;
    do {
        x = next_of(&here);
        y = next_of(&there);
        if ((x == NULL) != (y == NULL) || (x && !answers(&here, x, &there, y))) {
            g_set_error(error, PLAN_ERROR, PLAN_ERROR_CHECK,
                        "section %s: what role %u at instruction %u has with the stage behind is "
                        "not answered by role %u at instruction %u",
                        plan_section_name(section), i, here.next - (x != NULL), j,
                        there.next - (y != NULL));
            return false;
        }
    } while (x);
    return true;
}

/* The first role of the stage behind; none: n_roles. Roles stand in the order of their ranks. */
static uint32_t role_behind(const Plan *plan, uint32_t i) {
    uint32_t stage = plan_rank_on_axis(plan, plan->roles[i].ranks[0], PLAN_AXIS_PIPELINE);
    while (++i < plan->n_roles) {
        if (plan_rank_on_axis(plan, plan->roles[i].ranks[0], PLAN_AXIS_PIPELINE) > stage) {
            break;
        }
    }
    return i;
}

static bool check_pair(const Plan *plan, uint32_t i, uint32_t j, GError **error) {
    for (PlanSection s = 0; s < PLAN_N_SECTIONS; s++) {
        for (TalkKind kind = 0; kind < N_TALKS; kind++) {
            if (!check_neighbours(plan, i, j, s, kind, error)) {
                return false;
            }
        }
    }
    return true;
}

bool plan_check_stages(const Plan *plan, GError **error) {
    uint32_t last = 0;
    for (uint32_t i = 0, j = role_behind(plan, 0); j < plan->n_roles;
         i = j, j = role_behind(plan, i)) {
        if (!check_pair(plan, i, j, error)) {
            return false;
        }
        last = j;
    }
    bool goes_round = plan->axes[PLAN_AXIS_PIPELINE] > 2; /* of two, that was the one pair */
    return !goes_round || check_pair(plan, last, 0, error);
}
