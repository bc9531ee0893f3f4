/* plan/check/check.c - see check.h.
 *
 * Order between lanes is kept with vector clocks: each lane counts its launches, and remembers how
 * far it knows every other lane to have come; recording an event stores that knowledge, waiting
 * merges it. Memory: when a buffer is freed, the uses other lanes made of it are added to what its
 * pool (the lane whose stream allocated it) is in debt for; whoever first uses memory allocated
 * later from that pool must know of those uses. Marked lanes are left out: the allocator itself
 * waits for them.
 *
 * A section ends at rest when every lane knows of all that was launched: no use before it can be
 * raced any more. Where it ends so, and with the same buffers alive as when it began, it is not
 * walked again: lanes would know at least what they knew the first time.
 */
#include "plan/check/check.h"
#include "plan/check/parts.h"
#include "plan/check/stages.h"

#include <string.h>

#include "plan/op/alike.h"
#include "plan/op/shape.h"
#include "plan/op/work.h"
#include "plan/vector.h"

typedef struct {
    uint32_t of[PLAN_MAX_LANES];
} Clock;

/* Of a buffer that lives, since it was allocated. */
typedef struct {
    Clock used; /* last use by each lane of used_by; before any, its pool's debt when it was made */
    uint32_t written_at; /* 0: not yet */
    uint16_t used_by;    /* lanes that have used it, a bit each */
    uint16_t marks;      /* lanes, likewise */
    uint8_t written_by;  /* lane */
    bool in_parts;       /* its uses are held one by one, in: */
    uint32_t part_uses;
} BufferState;

/* The instructions at which ranks meet, of each section: plan_op_joins_ranks(). */
typedef struct {
    PLAN_VECTOR(uint32_t) at[PLAN_N_SECTIONS];
} Meetings;

typedef struct {
    const Plan *plan;
    const PlanRole *role;
    uint32_t first_id; /* the first role of its stage */
    uint32_t role_id;
    PlanSection section;
    uint32_t index;
    const PlanOp *op; /* of the launch at hand */
    Clock lanes[PLAN_MAX_LANES], debt[PLAN_MAX_LANES];
    uint16_t settled[PLAN_MAX_LANES]; /* lanes that know of all that a pool is in debt for, bits */
    /* Of each buffer, by themselves: those of the plan are many times as large. */
    uint8_t *pool;   /* lane whose pool serves it */
    uint32_t *place; /* in: */
    /* A place is used again at once, so that all states stay near. The first is nobody's: it is the
     * place of what does not live, and no lane has ever used it. */
    PLAN_VECTOR(BufferState) states;
    PLAN_VECTOR(uint32_t) spare;
    bool has_parts; /* lanes use parts of buffers by turns */
    PlanPartUses part_uses;
    PLAN_VECTOR(uint32_t) carried; /* buffers that some section leaves alive */
    uint16_t *began_with;          /* standing_of() each of them when the section began */
    PlanAlike sound;               /* ops of all roles so far */
    Meetings meetings[2];          /* of role 0, and of the role at hand */
    /* Of this section and those before it. */
    Clock *events[PLAN_MAX_BEFORE + 1];
    bool *recorded[PLAN_MAX_BEFORE + 1];
    GError **error;
} Check;

static bool G_GNUC_PRINTF(2, 3) fail(Check *c, const char *format, ...) {
    va_list args;
    va_start(args, format);
    g_autofree char *message = g_strdup_vprintf(format, args);
    va_end(args);
    g_set_error(c->error, PLAN_ERROR, PLAN_ERROR_CHECK, "role %u, section %s, instruction %u: %s",
                c->role_id, plan_section_name(c->section), c->index, message);
    return false;
}

static void merge(Clock *into, const Clock *from) {
    for (unsigned i = 0; i < PLAN_MAX_LANES; i++) {
        into->of[i] = MAX(into->of[i], from->of[i]);
    }
}

static BufferState *state_of(Check *c, uint32_t b) {
    return &c->states.items[c->place[b]];
}

static bool lives(const Check *c, uint32_t b) {
    return c->place[b] != 0;
}

static uint32_t new_place(Check *c) {
    if (c->spare.len) {
        return c->spare.items[--c->spare.len];
    }
    plan_vector_reserve(&c->states, c->states.len + 1);
    return c->states.len++;
}

static bool alloc(Check *c, uint32_t b) {
    if (lives(c, b)) {
        return fail(c, "buffer b%u is allocated twice; free it before", b);
    }
    c->place[b] = new_place(c);
    *state_of(c, b) = (BufferState){.used = c->debt[c->pool[b]]};
    return true;
}

static bool free_buffer(Check *c, uint32_t b) {
    if (!lives(c, b)) {
        return fail(c, "buffer b%u is freed but does not live", b);
    }
    const BufferState *state = state_of(c, b);
    Clock *debt = &c->debt[c->pool[b]];
    unsigned owed = state->used_by & ~(unsigned)state->marks;
    for (; owed; owed &= owed - 1) {
        unsigned lane = (unsigned)__builtin_ctz(owed);
        if (debt->of[lane] < state->used.of[lane]) {
            debt->of[lane] = state->used.of[lane];
            c->settled[c->pool[b]] &= (uint16_t)(1u << lane); /* which knows itself best */
        }
    }
    plan_part_uses_drop(&c->part_uses, &state_of(c, b)->part_uses);
    plan_vector_push(&c->spare, c->place[b]);
    c->place[b] = 0;
    return true;
}

static bool fail_in_debt(Check *c, uint32_t b, uint8_t lane) {
    const Clock *debt = &state_of(c, b)->used;
    unsigned other = 0;
    while (debt->of[other] <= c->lanes[lane].of[other]) {
        other++;
    }
    return fail(c,
                "b%u may lie in memory that lane %s still uses, and lane %s has not waited for it; "
                "add a wait, or mark the buffer freed before",
                b, c->plan->lanes[other], c->plan->lanes[lane]);
}

static bool knows(const Clock *lane, const Clock *debt) {
    unsigned owes = 0;
    for (unsigned other = 0; other < PLAN_MAX_LANES; other++) {
        owes |= debt->of[other] > lane->of[other];
    }
    return !owes;
}

/* The lane knows of all that the pool was in debt for when the buffer was allocated. Most know of
 * all that it is in debt for by now. */
static bool may_touch(Check *c, uint32_t b, uint8_t lane) {
    uint8_t pool = c->pool[b];
    if (c->settled[pool] >> lane & 1) {
        return true;
    }
    if (knows(&c->lanes[lane], &c->debt[pool])) {
        c->settled[pool] |= (uint16_t)(1u << lane);
        return true;
    }
    return knows(&c->lanes[lane], &state_of(c, b)->used) || fail_in_debt(c, b, lane);
}

/* Whether the op that is launched writes the buffer without reading it. */
static bool is_made(const Check *c, uint32_t b) {
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
static bool makes_momentum(const Check *c, const PlanSlot *slot) {
    return c->op->kind == PLAN_OP_MOMENTUM_FUSED && g_str_equal(slot->name, "momentum") &&
           plan_op_attrs(c->role, c->op)[3] != 0;
}

/* Whether the op needs what was in the buffer. An op may name what it makes as read, too: one of a
 * trace does where it reads nothing (autograd/traced.c). What is gathered is read where this
 * rank's part of it is no operand of its own. */
static bool needs_contents(const Check *c, uint32_t b, const PlanSlot *slot) {
    if (slot->flags & PLAN_SLOT_PARTS) {
        return plan_operand_buffer(c->role, *plan_op_operands(c->role, c->op)) == PLAN_NONE;
    }
    return (slot->flags & PLAN_SLOT_READ) && !is_made(c, b) && !makes_momentum(c, slot);
}

/* The first use since it was allocated. */
static bool first_touch(Check *c, uint32_t b, BufferState *state, const PlanSlot *slot,
                        uint8_t lane) {
    if (!may_touch(c, b, lane)) {
        return false;
    }
    if (needs_contents(c, b, slot)) {
        return fail(c,
                    "operand %s reads b%u (%s), which nothing has written since it was allocated; "
                    "write it before",
                    slot->name, b, c->role->buffers[b].name);
    }
    state->used_by = (uint16_t)(1u << lane);
    return true;
}

/* Whether the lane knows of all that other lanes do with the buffer; most have one lane only. */
static bool may_use(Check *c, uint32_t b, BufferState *state, const PlanSlot *slot, uint8_t lane) {
    if (!lives(c, b)) {
        return fail(c, "operand %s uses b%u, which does not live", slot->name, b);
    }
    if (!state->used_by) {
        return first_touch(c, b, state, slot, lane);
    }
    const Clock *known = &c->lanes[lane];
    if (known->of[state->written_by] < state->written_at) {
        return fail(c, "lane %s uses b%u (%s) without waiting for lane %s, which writes it",
                    c->plan->lanes[lane], b, slot->name, c->plan->lanes[state->written_by]);
    }
    unsigned others = state->used_by & ~(1u << lane);
    for (unsigned left = slot->flags & PLAN_SLOT_WRITE ? others : 0; left; left &= left - 1) {
        unsigned other = (unsigned)__builtin_ctz(left);
        if (known->of[other] < state->used.of[other]) {
            return fail(c, "lane %s writes b%u (%s) without waiting for lane %s, which uses it",
                        c->plan->lanes[lane], b, slot->name, c->plan->lanes[other]);
        }
    }
    state->used_by |= (uint16_t)(1u << lane);
    return true;
}

static bool use(Check *c, uint32_t b, BufferState *state, const PlanSlot *slot, uint8_t lane,
                uint32_t now) {
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
static void begin_parts(Check *c, BufferState *state, uint64_t bytes) {
    state->in_parts = true;
    for (unsigned left = state->used_by; left; left &= left - 1) {
        unsigned lane = (unsigned)__builtin_ctz(left);
        bool wrote = state->written_at && state->written_by == lane;
        PlanPartUse use = {0, bytes, state->used.of[lane], (uint8_t)lane, wrote};
        plan_part_uses_add(&c->part_uses, &state->part_uses, use);
    }
}

/* The same of a buffer that lanes use in parts, from the first part on. */
static bool use_part(Check *c, const PlanOperand *operand, BufferState *state, const PlanSlot *slot,
                     uint8_t lane, uint32_t now) {
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
    const PlanPartUse *met = plan_part_uses_meet(&c->part_uses, &state->part_uses, mine,
                                                 c->lanes[lane].of, buffer->bytes);
    if (met) {
        return fail(c, "lane %s uses a part of b%u (%s) without waiting for lane %s, which %s it",
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

static bool launch(Check *c, const PlanInstr *instr) {
    const PlanOp *op = &c->role->ops[instr->arg];
    const PlanOpInfo *info = plan_op_info((PlanOpKind)op->kind);
    if (info->is_of_host != (instr->kind == PLAN_HOST_OP)) {
        return fail(c, "%s is %s; make it a %s", info->name,
                    info->is_of_host ? "done by the host" : "a kernel of a lane",
                    info->is_of_host ? "host_op" : "launch");
    }
    const PlanRef *operands = plan_op_operands(c->role, op);
    unsigned length = plan_op_list_length(info, op->n_operands);
    uint8_t lane = instr->lane;
    c->op = op;
    uint32_t now = ++c->lanes[lane].of[lane];
    const uint32_t *place = c->place;
    BufferState *states = c->states.items; /* a launch allocates nothing */
    const PlanSlot *slot = info->slots, *end = slot + info->n_slots;
    for (; slot < end; slot++) {
        const PlanRef *last = operands + (slot->flags & PLAN_SLOT_LIST ? length : 1);
        for (; operands < last; operands++) {
            uint32_t b = plan_operand_buffer(c->role, *operands);
            if (b == PLAN_NONE) {
                if (!(slot->flags & PLAN_SLOT_OPTIONAL)) {
                    return fail(c, "operand %s of %s is missing", slot->name, info->name);
                }
            } else if (c->has_parts && (plan_ref_is_part(*operands) || states[place[b]].in_parts)) {
                PlanOperand part = plan_operand(c->role, *operands);
                if (!use_part(c, &part, &states[place[b]], slot, lane, now)) {
                    return false;
                }
            } else if (!use(c, b, &states[place[b]], slot, lane, now)) {
                return false;
            }
        }
    }
    if (plan_op_joins_ranks((PlanOpKind)op->kind)) {
        plan_vector_push(&c->meetings[c->role_id > c->first_id].at[c->section], c->index);
    }
    return true;
}

static bool wait_for(Check *c, const PlanInstr *instr) {
    if (!c->recorded[instr->before][instr->arg]) {
        char earlier[8] = "";
        if (instr->before) {
            g_snprintf(earlier, sizeof earlier, "@-%u", instr->before);
        }
        return fail(c, "event e%u%s is waited for but not recorded; record it before", instr->arg,
                    earlier);
    }
    const Clock *event = &c->events[instr->before][instr->arg];
    if (instr->kind == PLAN_WAIT) {
        merge(&c->lanes[instr->lane], event);
    } else {
        for (unsigned lane = 0; lane < c->plan->n_lanes; lane++) {
            merge(&c->lanes[lane], event); /* what the host issues later comes after */
        }
    }
    return true;
}

static bool check_instr(Check *c, const PlanInstr *instr) {
    switch ((PlanInstrKind)instr->kind) {
    case PLAN_ALLOC:
        return alloc(c, instr->arg);
    case PLAN_FREE:
        return free_buffer(c, instr->arg);
    case PLAN_MARK:
        if (!lives(c, instr->arg)) {
            return fail(c, "b%u is marked but does not live", instr->arg);
        }
        state_of(c, instr->arg)->marks |= (uint16_t)(1u << instr->lane);
        return true;
    case PLAN_LAUNCH:
    case PLAN_HOST_OP:
        return launch(c, instr);
    case PLAN_RECORD:
        if (c->recorded[0][instr->arg]) {
            return fail(c, "event e%u is recorded twice in a section", instr->arg);
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
    return fail(c, "unknown instruction");
}

/* As carried beyond the end of this section. */
static bool is_declared(const Check *c, uint32_t b) {
    return c->role->buffers[b].carried >> c->section & 1;
}

static bool fail_at_end(Check *c) {
    uint32_t b = 0;
    while (is_declared(c, b) == lives(c, b)) {
        b++;
    }
    return fail(c, "at the end b%u (%s) %s, but is %sdeclared as carried", b,
                c->role->buffers[b].name, lives(c, b) ? "lives" : "does not live",
                is_declared(c, b) ? "" : "not ");
}

/* Those declared live, and they are as many as live at all. */
static bool check_end(Check *c) {
    uint32_t n_live = c->states.len - 1 - c->spare.len, n_declared = 0;
    bool all_live = true;
    for (uint32_t i = 0; i < c->carried.len; i++) {
        uint32_t b = c->carried.items[i];
        n_declared += is_declared(c, b);
        all_live &= lives(c, b) || !is_declared(c, b);
    }
    return (all_live && n_declared == n_live) || fail_at_end(c);
}

/* ---- rest ----------------------------------------------------------------------------------- */

static bool is_at_rest(const Check *c) {
    bool rests = true;
    for (unsigned lane = 0; lane < c->plan->n_lanes; lane++) {
        for (unsigned other = 0; other < c->plan->n_lanes; other++) {
            rests &= c->lanes[lane].of[other] == c->lanes[other].of[other];
        }
    }
    return rests;
}

/* Whether it lives, and for which lanes the allocator will wait: all that matters of a buffer at
 * rest. */
static uint16_t standing_of(const Check *c, uint32_t b) {
    return (uint16_t)(lives(c, b) << PLAN_MAX_LANES | c->states.items[c->place[b]].marks);
}

static void note_begin(Check *c) {
    for (uint32_t i = 0; i < c->carried.len; i++) {
        c->began_with[i] = standing_of(c, c->carried.items[i]);
    }
}

/* The section just walked ends at rest, with the buffers alive that it began with, and with every
 * event recorded that was then. */
static bool ends_as_it_began(const Check *c) {
    if (!is_at_rest(c)) {
        return false;
    }
    unsigned differs = 0;
    for (uint32_t i = 0; i < c->carried.len; i++) {
        differs |= c->began_with[i] ^ standing_of(c, c->carried.items[i]);
    }
    for (unsigned before = 0; before < PLAN_MAX_BEFORE; before++) {
        for (uint32_t e = 0; e < c->role->n_events; e++) {
            differs |= c->recorded[before + 1][e] & !c->recorded[before][e];
        }
    }
    return !differs;
}

/* ---- sections ------------------------------------------------------------------------------- */

static bool check_section(Check *c, PlanSection section) {
    uint32_t n_events = c->role->n_events;
    Clock *events = c->events[PLAN_MAX_BEFORE];
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
    c->meetings[c->role_id > c->first_id].at[section].len = 0;
    const PlanInstr *instrs = c->role->sections[section];
    uint32_t n = c->role->n_instrs[section];
    for (uint32_t i = 0; i < n; i++) {
        c->index = i;
        if (!check_instr(c, &instrs[i])) {
            return false;
        }
    }
    c->index = n;
    return check_end(c);
}

/* ---- ops ------------------------------------------------------------------------------------ */

static bool check_shapes(Check *c) {
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

static void begin_role(Check *c, uint32_t role_id) {
    c->role_id = role_id;
    c->role = &c->plan->roles[role_id];
    c->has_parts = plan_workspace_bytes(c->role) > 0;
    plan_part_uses_clear(&c->part_uses);
    c->part_uses.spare = 0;
    memset(c->lanes, 0, sizeof c->lanes);
    memset(c->debt, 0, sizeof c->debt);
    memset(c->settled, 0xff, sizeof c->settled); /* nobody owes anything */
    c->spare.len = c->carried.len = 0;
    c->states.len = 1;
    c->states.items[0] = (BufferState){0};
    for (uint32_t b = 0; b < c->role->n_buffers; b++) {
        const PlanBuffer *buffer = &c->role->buffers[b];
        if (buffer->carried) {
            plan_vector_push(&c->carried, b);
        }
        c->pool[b] = buffer->lane;
        c->place[b] = 0;
    }
}

/* The program just walked once more. */
static bool check_again(Check *c, PlanSection section) {
    return ends_as_it_began(c) || check_section(c, section);
}

static bool check_role(Check *c, uint32_t role_id) {
    begin_role(c, role_id);
    gsize n = c->role->n_events;
    g_autofree Clock *events = g_new0(Clock, (PLAN_MAX_BEFORE + 1) * n);
    g_autofree bool *recorded = g_new0(bool, (PLAN_MAX_BEFORE + 1) * n);
    for (unsigned before = 0; before <= PLAN_MAX_BEFORE; before++) {
        c->events[before] = events + before * n;
        c->recorded[before] = recorded + before * n;
    }
    g_autofree uint16_t *began_with = g_new(uint16_t, c->carried.len);
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

/* ---- collectives across roles --------------------------------------------------------------- */

static bool same_collective(const PlanRole *a, const PlanInstr *x, const PlanRole *b,
                            const PlanInstr *y) {
    const PlanOp *p = &a->ops[x->arg], *q = &b->ops[y->arg];
    const int64_t *m = plan_op_dims(a, p), *n = plan_op_dims(b, q);
    return p->kind == q->kind && p->axis == q->axis && p->dtype == q->dtype && m[0] == n[0] &&
           m[1] == n[1] && (!plan_op_is_of_stages((PlanOpKind)p->kind) || m[2] == n[2]);
}

/* Like words of a sentence: what is said on each axis, in order. */
static bool check_collectives(const Check *c) {
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

/* ---- all ------------------------------------------------------------------------------------ */

/* Room for the role that has most buffers. */
static void make_room(Check *c) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < c->plan->n_roles; i++) {
        n = MAX(n, c->plan->roles[i].n_buffers);
    }
    c->pool = g_new(uint8_t, n);
    c->place = g_new(uint32_t, n);
    plan_vector_reserve(&c->states, 1 + n / 4);
}

static void clear(Check *c) {
    g_free(c->pool);
    g_free(c->place);
    plan_vector_clear(&c->states);
    plan_vector_clear(&c->spare);
    plan_part_uses_clear(&c->part_uses);
    plan_vector_clear(&c->carried);
    for (PlanSection s = 0; s < PLAN_N_SECTIONS; s++) {
        plan_vector_clear(&c->meetings[0].at[s]);
        plan_vector_clear(&c->meetings[1].at[s]);
    }
}

/* Of a stage that has not been walked before. */
static bool begins_stage(const Plan *plan, uint32_t role) {
    const PlanRole *roles = plan->roles;
    return role == 0 || plan_rank_on_axis(plan, roles[role].ranks[0], PLAN_AXIS_PIPELINE) !=
                            plan_rank_on_axis(plan, roles[role - 1].ranks[0], PLAN_AXIS_PIPELINE);
}

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

/* What is asked of the first role of each stage would else be asked of others. */
static bool roles_are_of_stages(const Plan *plan, GError **error) {
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

bool plan_check(const Plan *plan, GError **error) {
    g_assert(plan->n_lanes <= PLAN_MAX_LANES);
    if (!plan_check_sizes(plan, error) || !roles_are_of_stages(plan, error)) {
        return false;
    }
    Check check = {.plan = plan, .error = error};
    make_room(&check);
    bool sound = true;
    for (uint32_t i = 0; sound && i < plan->n_roles; i++) {
        if (begins_stage(plan, i)) {
            check.first_id = i;
        } else if (plan->for_one) {
            continue; /* has no program */
        }
        sound = check_role(&check, i) && check_shapes(&check) &&
                (i == check.first_id || check_collectives(&check));
    }
    clear(&check);
    return sound && plan_check_stages(plan, error);
}
