/* plan/check/buffers.c - which buffers live, and whether a lane may use one now.
 *
 * When a buffer is freed, the uses that other lanes made of it are added to what its pool (the lane
 * whose stream allocated it) is in debt for; whoever first uses memory allocated later from that
 * pool must know of those uses. Marked lanes are left out: the allocator itself waits for them.
 */
#include "plan/check/private.h"

#include <string.h>

#include "plan/op/names.h"
#include "plan/op/work.h"

void plan_check_make_room(PlanCheckBuffers *buffers, const Plan *plan) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < plan->n_roles; i++) {
        n = MAX(n, plan->roles[i].n_buffers);
    }
    buffers->pool = g_new(uint8_t, n);
    buffers->place = g_new(uint32_t, n);
    plan_vector_reserve(&buffers->states, 1 + n / 4);
}

void plan_check_clear_buffers(PlanCheckBuffers *buffers) {
    g_free(buffers->pool);
    g_free(buffers->place);
    plan_vector_clear(&buffers->states);
    plan_vector_clear(&buffers->spare);
    plan_vector_clear(&buffers->carried);
    plan_part_uses_clear(&buffers->part_uses);
}

void plan_check_begin_buffers(PlanCheck *c) {
    PlanCheckBuffers *buffers = &c->buffers;
    buffers->has_parts = plan_workspace_bytes(c->role) > 0;
    plan_part_uses_clear(&buffers->part_uses);
    buffers->part_uses.spare = 0;
    memset(buffers->debt, 0, sizeof buffers->debt);
    memset(buffers->settled, 0xff, sizeof buffers->settled); /* nobody owes anything */
    buffers->spare.len = buffers->carried.len = 0;
    buffers->states.len = 1;
    buffers->states.items[0] = (PlanCheckBuffer){0};
    for (uint32_t b = 0; b < c->role->n_buffers; b++) {
        const PlanBuffer *buffer = &c->role->buffers[b];
        if (buffer->carried) {
            plan_vector_push(&buffers->carried, b);
        }
        buffers->pool[b] = buffer->lane;
        buffers->place[b] = 0;
    }
}

static PlanCheckBuffer *state_of(PlanCheck *c, uint32_t b) {
    return &c->buffers.states.items[c->buffers.place[b]];
}

static bool lives(const PlanCheck *c, uint32_t b) {
    return c->buffers.place[b] != 0;
}

static uint32_t new_place(PlanCheck *c) {
    if (c->buffers.spare.len) {
        return c->buffers.spare.items[--c->buffers.spare.len];
    }
    plan_vector_reserve(&c->buffers.states, c->buffers.states.len + 1);
    return c->buffers.states.len++;
}

bool plan_check_alloc(PlanCheck *c, uint32_t b) {
    if (lives(c, b)) {
        return plan_check_fail(c, "buffer b%u is allocated twice; free it before", b);
    }
    c->buffers.place[b] = new_place(c);
    *state_of(c, b) = (PlanCheckBuffer){.used = c->buffers.debt[c->buffers.pool[b]]};
    return true;
}

bool plan_check_free_buffer(PlanCheck *c, uint32_t b) {
    if (!lives(c, b)) {
        return plan_check_fail(c, "buffer b%u is freed but does not live", b);
    }
    const PlanCheckBuffer *state = state_of(c, b);
    PlanCheckClock *debt = &c->buffers.debt[c->buffers.pool[b]];
    unsigned owed = state->used_by & ~(unsigned)state->marks;
    for (; owed; owed &= owed - 1) {
        unsigned lane = (unsigned)__builtin_ctz(owed);
        if (debt->of[lane] < state->used.of[lane]) {
            debt->of[lane] = state->used.of[lane];
            c->buffers.settled[c->buffers.pool[b]] &=
                (uint16_t)(1u << lane); /* which knows itself best */
        }
    }
    plan_part_uses_drop(&c->buffers.part_uses, &state_of(c, b)->part_uses);
    plan_vector_push(&c->buffers.spare, c->buffers.place[b]);
    c->buffers.place[b] = 0;
    return true;
}

static bool fail_in_debt(PlanCheck *c, uint32_t b, uint8_t lane) {
    const PlanCheckClock *debt = &state_of(c, b)->used;
    unsigned other = 0;
    while (debt->of[other] <= c->lanes[lane].of[other]) {
        other++;
    }
    return plan_check_fail(
        c,
        "b%u may lie in memory that lane %s still uses, and lane %s has not waited for it; "
        "add a wait, or mark the buffer freed before",
        b, c->plan->lanes[other], c->plan->lanes[lane]);
}

static bool knows(const PlanCheckClock *lane, const PlanCheckClock *debt) {
    unsigned owes = 0;
    for (unsigned other = 0; other < PLAN_MAX_LANES; other++) {
        owes |= debt->of[other] > lane->of[other];
    }
    return !owes;
}

/* The lane knows of all that the pool was in debt for when the buffer was allocated. Most know of
 * all that it is in debt for by now. */
static bool may_touch(PlanCheck *c, uint32_t b, uint8_t lane) {
    uint8_t pool = c->buffers.pool[b];
    if (c->buffers.settled[pool] >> lane & 1) {
        return true;
    }
    if (knows(&c->lanes[lane], &c->buffers.debt[pool])) {
        c->buffers.settled[pool] |= (uint16_t)(1u << lane);
        return true;
    }
    return knows(&c->lanes[lane], &state_of(c, b)->used) || fail_in_debt(c, b, lane);
}

/* Whether the op that is launched writes the buffer without reading it. */
static bool is_made(const PlanCheck *c, uint32_t b) {
    const PlanOpInfo *info = plan_op_info((PlanOpKind)c->op->kind);
    const PlanRef *operands = plan_op_operands(c->role, c->op);
    bool is = false;
    for (unsigned i = 0; i < c->op->n_operands; i++) {
        PlanSlotFlags flags = info->slots[plan_op_slot_of(info, c->op->n_operands, i)].flags;
        is |= (flags & PLAN_SLOT_WRITE) && !(flags & PLAN_SLOT_READ) &&
              plan_operand_buffer(c->role, operands[i]) == b;
    }
    return is;
}

/* PyTorch's fused SGD makes momentum where it finds none, and is told so ("first"). */
static bool makes_momentum(const PlanCheck *c, const PlanSlot *slot) {
    return c->op->kind == PLAN_OP_MOMENTUM_FUSED && g_str_equal(slot->name, "momentum") &&
           plan_op_attrs(c->role, c->op)[MOMENTUM_FUSED_FIRST] != 0;
}

/* Whether the op needs what was in the buffer. An op may name what it makes as read, too: one of a
 * trace does where it reads nothing (autograd/traced.c). What is gathered is read where this
 * rank's part of it is no operand of its own. */
static bool needs_contents(const PlanCheck *c, uint32_t b, const PlanSlot *slot) {
    if (slot->flags & PLAN_SLOT_PARTS) {
        return plan_operand_buffer(c->role, *plan_op_operands(c->role, c->op)) == PLAN_NONE;
    }
    return (slot->flags & PLAN_SLOT_READ) && !is_made(c, b) && !makes_momentum(c, slot);
}

/* The first use since it was allocated. */
static bool first_touch(PlanCheck *c, uint32_t b, PlanCheckBuffer *state, const PlanSlot *slot,
                        uint8_t lane) {
    if (!may_touch(c, b, lane)) {
        return false;
    }
    if (needs_contents(c, b, slot)) {
        return plan_check_fail(
            c,
            "operand %s reads b%u (%s), which nothing has written since it was allocated; "
            "write it before",
            slot->name, b, c->role->buffers[b].name);
    }
    state->used_by = (uint16_t)(1u << lane);
    return true;
}

/* Whether the lane knows of all that other lanes do with the buffer; most have one lane only. */
static bool may_use(PlanCheck *c, uint32_t b, PlanCheckBuffer *state, const PlanSlot *slot,
                    uint8_t lane) {
    if (!lives(c, b)) {
        return plan_check_fail(c, "operand %s uses b%u, which does not live", slot->name, b);
    }
    if (!state->used_by) {
        return first_touch(c, b, state, slot, lane);
    }
    const PlanCheckClock *known = &c->lanes[lane];
    if (known->of[state->written_by] < state->written_at) {
        return plan_check_fail(
            c, "lane %s uses b%u (%s) without waiting for lane %s, which writes it",
            c->plan->lanes[lane], b, slot->name, c->plan->lanes[state->written_by]);
    }
    unsigned others = state->used_by & ~(1u << lane);
    for (unsigned left = slot->flags & PLAN_SLOT_WRITE ? others : 0; left; left &= left - 1) {
        unsigned other = (unsigned)__builtin_ctz(left);
        if (known->of[other] < state->used.of[other]) {
            return plan_check_fail(
                c, "lane %s writes b%u (%s) without waiting for lane %s, which uses it",
                c->plan->lanes[lane], b, slot->name, c->plan->lanes[other]);
        }
    }
    state->used_by |= (uint16_t)(1u << lane);
    return true;
}

static bool use(PlanCheck *c, uint32_t b, PlanCheckBuffer *state, const PlanSlot *slot,
                uint8_t lane, uint32_t now) {
    bool is_sole = state->used_by == 1u << lane;
    if (!is_sole && !may_use(c, b, state, slot, lane)) {
        return false;
    }
    state->used.of[lane] = now;
    if (slot->flags & PLAN_SLOT_WRITE) {
        state->written_by = lane;
        state->written_at = now;
    }
    return true;
}

/* What lanes have done with all of it so far. */
static void begin_parts(PlanCheck *c, PlanCheckBuffer *state, uint64_t bytes) {
    state->in_parts = true;
    for (unsigned left = state->used_by; left; left &= left - 1) {
        unsigned lane = (unsigned)__builtin_ctz(left);
        bool wrote = state->written_at && state->written_by == lane;
        PlanPartUse use = {0, bytes, state->used.of[lane], (uint8_t)lane, wrote};
        plan_part_uses_add(&c->buffers.part_uses, &state->part_uses, use);
    }
}

/* The same of a buffer that lanes use in parts, from the first part on. */
static bool use_part(PlanCheck *c, const PlanOperand *operand, PlanCheckBuffer *state,
                     const PlanSlot *slot, uint8_t lane, uint32_t now) {
    uint32_t b = operand->buffer;
    if (!lives(c, b) || !state->used_by) {
        if (!may_use(c, b, state, slot, lane)) {
            return false;
        }
    }
    const PlanBuffer *buffer = &c->role->buffers[b];
    if (!state->in_parts) {
        begin_parts(c, state, buffer->bytes);
    }
    uint64_t size = plan_dtype_bytes((PlanDtype)buffer->dtype);
    PlanPartUse mine = {operand->offset_bytes, operand->offset_bytes + operand->elements * size,
                        now, lane, (slot->flags & PLAN_SLOT_WRITE) != 0};
    const PlanPartUse *met = plan_part_uses_meet(&c->buffers.part_uses, &state->part_uses, mine,
                                                 c->lanes[lane].of, buffer->bytes);
    if (met) {
        return plan_check_fail(
            c, "lane %s uses a part of b%u (%s) without waiting for lane %s, which %s it",
            c->plan->lanes[lane], b, slot->name, c->plan->lanes[met->lane],
            met->writes ? "writes" : "uses");
    }
    state->used_by |= (uint16_t)(1u << lane);
    state->used.of[lane] = now;
    if (mine.writes) {
        state->written_by = lane;
        state->written_at = now;
    }
    return true;
}

bool plan_check_mark(PlanCheck *c, uint32_t b, uint8_t lane) {
    if (!lives(c, b)) {
        return plan_check_fail(c, "b%u is marked but does not live", b);
    }
    state_of(c, b)->marks |= (uint16_t)(1u << lane);
    return true;
}

bool plan_check_operands(PlanCheck *c, uint8_t lane) {
    const PlanOp *op = c->op;
    const PlanOpInfo *info = plan_op_info((PlanOpKind)op->kind);
    const PlanRef *operands = plan_op_operands(c->role, op);
    unsigned length = plan_op_list_length(info, op->n_operands);
    uint32_t now = ++c->lanes[lane].of[lane];
    const uint32_t *place = c->buffers.place;
    PlanCheckBuffer *states = c->buffers.states.items; /* a launch allocates nothing */
    const PlanSlot *slot = info->slots, *end = slot + info->n_slots;
    for (; slot < end; slot++) {
        const PlanRef *last = operands + (slot->flags & PLAN_SLOT_LIST ? length : 1);
        for (; operands < last; operands++) {
            uint32_t b = plan_operand_buffer(c->role, *operands);
            if (b == PLAN_NONE) {
                if (!(slot->flags & PLAN_SLOT_OPTIONAL)) {
                    return plan_check_fail(c, "operand %s of %s is missing", slot->name,
                                           info->name);
                }
            } else if (c->buffers.has_parts &&
                       (plan_ref_is_part(*operands) || states[place[b]].in_parts)) {
                PlanOperand part = plan_operand(c->role, *operands);
                if (!use_part(c, &part, &states[place[b]], slot, lane, now)) {
                    return false;
                }
            } else if (!use(c, b, &states[place[b]], slot, lane, now)) {
                return false;
            }
        }
    }
    return true;
}

/* As carried beyond the end of this section. */
static bool is_declared(const PlanCheck *c, uint32_t b) {
    return c->role->buffers[b].carried >> c->section & 1;
}

static bool fail_at_end(PlanCheck *c) {
    uint32_t b = 0;
    while (is_declared(c, b) == lives(c, b)) {
        b++;
    }
    return plan_check_fail(c, "at the end b%u (%s) %s, but is %sdeclared as carried", b,
                           c->role->buffers[b].name, lives(c, b) ? "lives" : "does not live",
                           is_declared(c, b) ? "" : "not ");
}

/* Those declared live, and they are as many as live at all. */
bool plan_check_carried(PlanCheck *c) {
    uint32_t n_live = c->buffers.states.len - 1 - c->buffers.spare.len, n_declared = 0;
    bool all_live = true;
    for (uint32_t i = 0; i < c->buffers.carried.len; i++) {
        uint32_t b = c->buffers.carried.items[i];
        n_declared += is_declared(c, b);
        all_live &= lives(c, b) || !is_declared(c, b);
    }
    return (all_live && n_declared == n_live) || fail_at_end(c);
}

uint16_t plan_check_standing(const PlanCheck *c, uint32_t b) {
    return (uint16_t)(lives(c, b) << PLAN_MAX_LANES |
                      c->buffers.states.items[c->buffers.place[b]].marks);
}
