/* plan/check/check.c - see check.h: walks the sections of each role, instruction by instruction.
 *
 * A section ends at rest when every lane knows of all that was launched: no use before it can be
 * raced any more. Where it ends so, and with the same buffers alive as when it began, it is not
 * walked again: lanes would know at least what they knew the first time.
 */
#include "plan/check/private.h"
#include "plan/check/stages.h"

#include <string.h>

#include "plan/op/shape.h"

static void merge(PlanCheckClock *into, const PlanCheckClock *from) {
    for (unsigned i = 0; i < PLAN_MAX_LANES; i++) {
        into->of[i] = MAX(into->of[i], from->of[i]);
    }
}

static bool launch(PlanCheck *c, const PlanInstr *instr) {
    c->op = &c->role->ops[instr->arg];
    const PlanOpInfo *info = plan_op_info((PlanOpKind)c->op->kind);
    if (info->is_of_host != (instr->kind == PLAN_HOST_OP)) {
        return plan_check_fail(c, "%s is %s; make it a %s", info->name,
                               info->is_of_host ? "done by the host" : "a kernel of a lane",
                               info->is_of_host ? "host_op" : "launch");
    }
    if (!plan_check_operands(c, instr->lane)) {
        return false;
    }
    if (plan_op_joins_ranks((PlanOpKind)c->op->kind)) {
        plan_check_meet(c);
    }
    return true;
}

static bool wait_for(PlanCheck *c, const PlanInstr *instr) {
    if (!c->recorded[instr->before][instr->arg]) {
        char earlier[8] = "";
        if (instr->before) {
            g_snprintf(earlier, sizeof earlier, "@-%u", instr->before);
        }
        return plan_check_fail(c, "event e%u%s is waited for but not recorded; record it before",
                               instr->arg, earlier);
    }
    const PlanCheckClock *event = &c->events[instr->before][instr->arg];
    if (instr->kind == PLAN_WAIT) {
        merge(&c->lanes[instr->lane], event);
    } else {
        for (unsigned lane = 0; lane < c->plan->n_lanes; lane++) {
            merge(&c->lanes[lane], event); /* what the host issues later comes after */
        }
    }
    return true;
}

static bool check_instr(PlanCheck *c, const PlanInstr *instr) {
    switch ((PlanInstrKind)instr->kind) {
    case PLAN_ALLOC:
        return plan_check_alloc(c, instr->arg);
    case PLAN_FREE:
        return plan_check_free_buffer(c, instr->arg);
    case PLAN_MARK:
        return plan_check_mark(c, instr->arg, instr->lane);
    case PLAN_LAUNCH:
    case PLAN_HOST_OP:
        return launch(c, instr);
    case PLAN_RECORD:
        if (c->recorded[0][instr->arg]) {
            return plan_check_fail(c, "event e%u is recorded twice in a section", instr->arg);
        }
        c->recorded[0][instr->arg] = true;
        c->events[0][instr->arg] = c->lanes[instr->lane];
        return true;
    case PLAN_WAIT:
    case PLAN_HOST_WAIT:
        return wait_for(c, instr);
    case PLAN_N_INSTRS:
        break;
    }
    return plan_check_fail(c, "unknown instruction");
}

/* ---- rest ----------------------------------------------------------------------------------- */

static bool is_at_rest(const PlanCheck *c) {
    bool rests = true;
    for (unsigned lane = 0; lane < c->plan->n_lanes; lane++) {
        for (unsigned other = 0; other < c->plan->n_lanes; other++) {
            rests &= c->lanes[lane].of[other] == c->lanes[other].of[other];
        }
    }
    return rests;
}

static void note_begin(PlanCheck *c) {
    for (uint32_t i = 0; i < c->buffers.carried.len; i++) {
        c->began_with[i] = plan_check_standing(c, c->buffers.carried.items[i]);
    }
}

/* The section just walked ends at rest, with the buffers alive that it began with, and with every
 * event recorded that was then. */
static bool ends_as_it_began(const PlanCheck *c) {
    if (!is_at_rest(c)) {
        return false;
    }
    unsigned differs = 0;
    for (uint32_t i = 0; i < c->buffers.carried.len; i++) {
        differs |= c->began_with[i] ^ plan_check_standing(c, c->buffers.carried.items[i]);
    }
    for (unsigned before = 0; before < PLAN_MAX_BEFORE; before++) {
        for (uint32_t e = 0; e < c->role->n_events; e++) {
            differs |= c->recorded[before + 1][e] & !c->recorded[before][e];
        }
    }
    return !differs;
}

/* ---- sections ------------------------------------------------------------------------------- */

static bool check_section(PlanCheck *c, PlanSection section) {
    uint32_t n_events = c->role->n_events;
    PlanCheckClock *events = c->events[PLAN_MAX_BEFORE];
    bool *recorded = c->recorded[PLAN_MAX_BEFORE];
    for (unsigned before = PLAN_MAX_BEFORE; before > 0; before--) {
        c->events[before] = c->events[before - 1];
        c->recorded[before] = c->recorded[before - 1];
    }
    c->events[0] = events;
    c->recorded[0] = recorded;
    if (n_events) {
        memset(recorded, 0, n_events * sizeof *recorded);
    }
    note_begin(c);
    c->section = section;
    plan_check_begin_meetings(c);
    const PlanInstr *instrs = c->role->sections[section];
    uint32_t n = c->role->n_instrs[section];
    for (uint32_t i = 0; i < n; i++) {
        c->index = i;
        if (!check_instr(c, &instrs[i])) {
            return false;
        }
    }
    c->index = n;
    return plan_check_carried(c);
}

/* ---- ops ------------------------------------------------------------------------------------ */

static bool check_shapes(PlanCheck *c) {
    for (uint32_t i = 0; i < c->role->n_ops; i++) {
        const PlanOp *op = &c->role->ops[i];
        bool hangs_on_place = plan_op_is_of_stages((PlanOpKind)op->kind);
        if (!hangs_on_place && plan_alike_find(&c->sound, c->role, op)) {
            continue;
        }
        g_autofree char *fault = plan_op_shape_fault(c->plan, c->role, op);
        if (fault) {
            g_set_error(c->error, PLAN_ERROR, PLAN_ERROR_CHECK, "role %u, op o%u (%s): %s",
                        c->role_id, i, plan_op_info((PlanOpKind)op->kind)->name, fault);
            return false;
        }
        if (!hangs_on_place) {
            plan_alike_note(&c->sound, c->role, op);
        }
    }
    return true;
}

static void begin_role(PlanCheck *c, uint32_t role_id) {
    c->role_id = role_id;
    c->role = &c->plan->roles[role_id];
    memset(c->lanes, 0, sizeof c->lanes);
    plan_check_begin_buffers(c);
}

/* The program just walked once more. */
static bool check_again(PlanCheck *c, PlanSection section) {
    return ends_as_it_began(c) || check_section(c, section);
}

static bool check_role(PlanCheck *c, uint32_t role_id) {
    begin_role(c, role_id);
    gsize n = c->role->n_events;
    g_autofree PlanCheckClock *events = g_new0(PlanCheckClock, (PLAN_MAX_BEFORE + 1) * n);
    g_autofree bool *recorded = g_new0(bool, (PLAN_MAX_BEFORE + 1) * n);
    for (unsigned before = 0; before <= PLAN_MAX_BEFORE; before++) {
        c->events[before] = events + before * n;
        c->recorded[before] = recorded + before * n;
    }
    g_autofree uint16_t *began_with = g_new(uint16_t, c->buffers.carried.len);
    c->began_with = began_with;
    for (PlanSection s = 0; s < PLAN_SECTION_STEADY; s++) {
        if (!check_section(c, s)) {
            return false;
        }
    }
    if (plan_section_repeats(c->role, PLAN_SECTION_STEADY)) {
        return check_again(c, PLAN_SECTION_STEADY);
    }
    if (!check_section(c, PLAN_SECTION_STEADY)) {
        return false;
    }
    /* After second it has been played; must it be played after itself, or after second's turn? */
    if (plan_steps_alternate(c->role)) {
        return check_section(c, PLAN_SECTION_SECOND) && check_section(c, PLAN_SECTION_STEADY);
    }
    return check_again(c, PLAN_SECTION_STEADY);
}

/* ---- all ------------------------------------------------------------------------------------ */

bool plan_check_sizes(const Plan *plan, GError **error) {
    for (uint32_t i = 0; i < plan->n_roles; i++) {
        const PlanRole *role = &plan->roles[i];
        uint64_t left = PLAN_MOST_BYTES;
        for (uint32_t b = 0; b < role->n_buffers; b++) {
            if (role->buffers[b].bytes > left) {
                g_set_error(error, PLAN_ERROR, PLAN_ERROR_CHECK,
                            "role %u: its buffers come to more than 2^62 bytes, which no machine "
                            "holds; make the network, micro_batch or seq smaller",
                            i);
                return false;
            }
            left -= role->buffers[b].bytes;
        }
    }
    return true;
}

bool plan_check(const Plan *plan, GError **error) {
    g_assert(plan->n_lanes <= PLAN_MAX_LANES);
    if (!plan_check_sizes(plan, error) || !plan_check_roles_of_stages(plan, error)) {
        return false;
    }
    PlanCheck check = {.plan = plan, .error = error};
    plan_check_make_room(&check.buffers, plan);
    bool sound = true;
    for (uint32_t i = 0; sound && i < plan->n_roles; i++) {
        if (plan_check_begins_stage(plan, i)) {
            check.first_id = i;
        } else if (plan->for_one) {
            continue; /* has no program */
        }
        sound = check_role(&check, i) && check_shapes(&check) &&
                (i == check.first_id || plan_check_meetings(&check));
    }
    plan_check_clear_buffers(&check.buffers);
    plan_check_clear_meetings(&check);
    return sound && plan_check_stages(plan, error);
}
