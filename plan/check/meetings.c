#include "plan/check/private.h"
#include "plan/mesh.h"

static PlanCheckMeetings *meetings_at_hand(PlanCheck *c) {
    return &c->meetings[c->role_id > c->first_id];
}

void plan_check_begin_meetings(PlanCheck *c) {
    meetings_at_hand(c)->at[c->section].len = 0;
}

void plan_check_meet(PlanCheck *c) {
    plan_vector_push(&meetings_at_hand(c)->at[c->section], c->index);
}

static bool same_collective(const PlanRole *a, const PlanInstr *x, const PlanRole *b,
                            const PlanInstr *y) {
    const PlanOp *p = &a->ops[x->arg], *q = &b->ops[y->arg];
    const int64_t *m = plan_op_dims(a, p), *n = plan_op_dims(b, q);
    return p->kind == q->kind && p->axis == q->axis && p->dtype == q->dtype && m[0] == n[0] &&
           m[1] == n[1] && (!plan_op_is_of_stages((PlanOpKind)p->kind) || m[2] == n[2]);
}

/* Like words of a sentence: what is said on each axis, in order. */
bool plan_check_meetings(const PlanCheck *c) {
    const PlanRole *a = &c->plan->roles[c->first_id], *b = c->role;
    for (PlanSection s = 0; s < PLAN_N_SECTIONS; s++) {
        /* A section that repeats the one before it may not have been walked. */
        PlanSection x = plan_section_repeats(a, s) ? s - 1 : s;
        PlanSection y = plan_section_repeats(b, s) ? s - 1 : s;
        uint32_t n = c->meetings[0].at[x].len, m = c->meetings[1].at[y].len;
        for (uint32_t k = 0; k < MAX(n, m); k++) {
            uint32_t i = k < n ? c->meetings[0].at[x].items[k] : a->n_instrs[s];
            uint32_t j = k < m ? c->meetings[1].at[y].items[k] : b->n_instrs[s];
            if (k >= n || k >= m ||
                !same_collective(a, &a->sections[s][i], b, &b->sections[s][j])) {
                g_set_error(c->error, PLAN_ERROR, PLAN_ERROR_CHECK,
                            "section %s: role %u at instruction %u and role %u at instruction %u "
                            "do not take part in the same collective",
                            plan_section_name(s), c->first_id, i, c->role_id, j);
                return false;
            }
        }
    }
    return true;
}

void plan_check_clear_meetings(PlanCheck *c) {
    for (PlanSection s = 0; s < PLAN_N_SECTIONS; s++) {
        plan_vector_clear(&c->meetings[0].at[s]);
        plan_vector_clear(&c->meetings[1].at[s]);
    }
}

bool plan_check_begins_stage(const Plan *plan, uint32_t role) {
    const PlanRole *roles = plan->roles;
    return role == 0 || plan_rank_on_axis(plan, roles[role].ranks[0], PLAN_AXIS_PIPELINE) !=
                            plan_rank_on_axis(plan, roles[role - 1].ranks[0], PLAN_AXIS_PIPELINE);
}

/* What is asked of the first role of each stage would else be asked of others. */
bool plan_check_roles_of_stages(const Plan *plan, GError **error) {
    uint32_t stage = 0;
    for (uint32_t i = 0; i < plan->n_roles; i++) {
        const PlanRole *role = &plan->roles[i];
        uint32_t own = plan_rank_on_axis(plan, role->ranks[0], PLAN_AXIS_PIPELINE), k = 1;
        while (k < role->n_ranks &&
               plan_rank_on_axis(plan, role->ranks[k], PLAN_AXIS_PIPELINE) == own) {
            k++;
        }
        if (k < role->n_ranks || own < stage) {
            g_set_error(error, PLAN_ERROR, PLAN_ERROR_CHECK,
                        "role %u: its ranks are of %s; give each stage roles of its own, in the "
                        "order of the stages",
                        i, own < stage ? "an earlier stage than the role before" : "two stages");
            return false;
        }
        stage = own;
    }
    return true;
}
