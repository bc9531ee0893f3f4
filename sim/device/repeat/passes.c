#include "sim/device/repeat/passes.h"

#include <string.h>

#include "plan/op/work.h"

enum {
    FEWEST = 4, /* passes: the first and the last differ, and of two the second is compared */
    NEVER = UINT32_MAX
};

typedef struct {
    const SimOpCosts *costs;
    const PlanRole *role;
    const PlanInstr *instrs;
    uint32_t n_instrs;
    SimPasses *passes;
    uint32_t *made_at;     /* by buffer: its allocation in this section, the last so far */
    uint32_t *recorded_at; /* by event, likewise */
    uint32_t *made_before; /* by instruction: how many instructions earlier its object was made;
                              NEVER: not in this section */
    bool *is_for_later;    /* by event: a later step waits for it */
} Walk;

static uint32_t count_batches(const PlanRole *role) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < role->n_ops; i++) {
        n += role->ops[i].kind == PLAN_OP_BATCH;
    }
    return n;
}

static void find_begins(Walk *walk) {
    for (uint32_t i = 0; i < walk->n_instrs; i++) {
        const PlanInstr *instr = &walk->instrs[i];
        if (instr->kind == PLAN_LAUNCH && walk->role->ops[instr->arg].kind == PLAN_OP_BATCH) {
            walk->passes->begins[walk->passes->n++] = i;
        }
    }
}

static void find_what_is_for_later(Walk *walk) {
    for (unsigned s = 0; s < PLAN_N_SECTIONS; s++) {
        for (uint32_t i = 0; i < walk->role->n_instrs[s]; i++) {
            const PlanInstr *instr = &walk->role->sections[s][i];
            bool waits = instr->kind == PLAN_WAIT || instr->kind == PLAN_HOST_WAIT;
            if (waits && instr->before > 0) {
                walk->is_for_later[instr->arg] = true;
            }
        }
    }
}

/* Where what an instruction asks for is noted when it is made; NULL: it asks for nothing, or for
 * something of another step. */
static uint32_t *note_of(const Walk *walk, const PlanInstr *instr) {
    switch ((PlanInstrKind)instr->kind) {
    case PLAN_FREE:
    case PLAN_MARK:
        return &walk->made_at[instr->arg];
    case PLAN_WAIT:
    case PLAN_HOST_WAIT:
        return instr->before == 0 ? &walk->recorded_at[instr->arg] : NULL;
    case PLAN_ALLOC:
    case PLAN_LAUNCH:
    case PLAN_RECORD:
    case PLAN_HOST_OP:
    case PLAN_N_INSTRS:
        break;
    }
    return NULL;
}

/* Once a pass is not played, nobody can wait for its events but from the next one. */
static void refuse_pass_of(SimPasses *passes, uint32_t instr) {
    for (uint32_t pass = passes->n; pass-- > 0;) {
        if (instr >= passes->begins[pass]) {
            passes->repeats[pass] = false;
            return;
        }
    }
}

/* Notes where things are made, and asked for. */
static void walk_instructions(Walk *walk) {
    SimPasses *passes = walk->passes;
    uint32_t pass = 0;
    for (uint32_t i = 0; i < walk->n_instrs; i++) {
        const PlanInstr *instr = &walk->instrs[i];
        while (pass + 1 < passes->n && i >= passes->begins[pass + 1]) {
            pass++;
        }
        const uint32_t *note = note_of(walk, instr);
        walk->made_before[i] = note && *note != NEVER ? i - *note : NEVER;
        if (instr->kind == PLAN_ALLOC) {
            walk->made_at[instr->arg] = i;
        } else if (instr->kind == PLAN_RECORD) {
            walk->recorded_at[instr->arg] = i;
            if (walk->is_for_later[instr->arg]) {
                refuse_pass_of(passes, i);
            }
        } else if (note && *note != NEVER && pass > 0 && *note < passes->begins[pass - 1]) {
            refuse_pass_of(passes, *note);
        }
    }
}

/* Whether the buffer or event that an instruction uses was made in its own pass or the one before.
 */
static bool is_near(const Walk *walk, uint32_t instr, uint32_t pass) {
    uint32_t from = pass > 0 ? walk->passes->begins[pass - 1] : 0;
    return walk->made_before[instr] != NEVER && instr - walk->made_before[instr] >= from;
}

static bool same_request(const Walk *walk, const PlanInstr *a, const PlanInstr *b) {
    const PlanBuffer *x = &walk->role->buffers[a->arg], *y = &walk->role->buffers[b->arg];
    return x->bytes == y->bytes && x->sub == y->sub && x->unit == y->unit;
}

/* Costs are held against each other as bytes: where they differ, the passes are played. */
static bool same_op(const Walk *walk, const PlanInstr *a, const PlanInstr *b) {
    const PlanOp *x = &walk->role->ops[a->arg], *y = &walk->role->ops[b->arg];
    const SimOpCost *p = sim_op_cost(walk->costs, a->arg), *q = sim_op_cost(walk->costs, b->arg);
    return x->kind == y->kind && x->axis == y->axis && x->n_operands == y->n_operands &&
           (p == q || memcmp(p, q, sizeof *p) == 0) &&
           (a->kind != PLAN_HOST_OP ||
            plan_op_work(walk->role, x).bytes == plan_op_work(walk->role, y).bytes);
}

/* b stands in the pass before a's. */
static bool is_alike(const Walk *walk, uint32_t at, uint32_t before, uint32_t pass) {
    const PlanInstr *a = &walk->instrs[at], *b = &walk->instrs[before];
    if (a->kind != b->kind || a->lane != b->lane || a->phase != b->phase ||
        a->before != b->before || a->unit != b->unit) {
        return false;
    }
    switch ((PlanInstrKind)a->kind) {
    case PLAN_ALLOC:
        return same_request(walk, a, b);
    case PLAN_LAUNCH:
    case PLAN_HOST_OP:
        return same_op(walk, a, b);
    case PLAN_RECORD:
        return true;
    case PLAN_FREE:
    case PLAN_MARK:
    case PLAN_WAIT:
    case PLAN_HOST_WAIT:
        break;
    case PLAN_N_INSTRS:
        g_assert_not_reached();
    }
    bool near = is_near(walk, at, pass);
    return near == is_near(walk, before, pass - 1) &&
           (near ? walk->made_before[at] == walk->made_before[before] : a->arg == b->arg);
}

static bool pass_is_alike(const Walk *walk, uint32_t pass) {
    const SimPasses *passes = walk->passes;
    uint32_t begin = passes->begins[pass];
    uint32_t end = pass + 1 < passes->n ? passes->begins[pass + 1] : walk->n_instrs;
    uint32_t length = begin - passes->begins[pass - 1];
    bool alike = end - begin == length;
    for (uint32_t i = begin; alike && i < end; i++) {
        alike = is_alike(walk, i, i - length, pass);
    }
    return alike;
}

static uint32_t *nowhere(uint32_t n) {
    uint32_t *at = g_new(uint32_t, n);
    memset(at, 0xff, n * sizeof *at);
    return at;
}

void sim_passes_init(SimPasses *passes, const SimOpCosts *costs, const PlanRole *role,
                     PlanSection section) {
    *passes = (SimPasses){0};
    uint32_t most = count_batches(role); /* of all sections */
    if (most < FEWEST) {
        return;
    }
    uint32_t n_instrs = role->n_instrs[section];
    g_autofree uint32_t *made_at = nowhere(role->n_buffers);
    g_autofree uint32_t *recorded_at = nowhere(role->n_events);
    g_autofree uint32_t *made_before = g_new(uint32_t, n_instrs);
    g_autofree bool *is_for_later = g_new0(bool, role->n_events);
    passes->begins = g_new(uint32_t, most);
    Walk walk = {costs,       role,        role->sections[section],
                 n_instrs,    passes,      made_at,
                 recorded_at, made_before, is_for_later};
    find_begins(&walk);
    if (passes->n < FEWEST) {
        sim_passes_clear(passes);
        return;
    }
    passes->repeats = g_new(bool, passes->n);
    memset(passes->repeats, true, passes->n);
    find_what_is_for_later(&walk);
    walk_instructions(&walk);
    passes->repeats[0] = false;
    for (uint32_t pass = 1; pass < passes->n; pass++) {
        passes->repeats[pass] = passes->repeats[pass] && pass_is_alike(&walk, pass);
    }
}

void sim_passes_clear(SimPasses *passes) {
    g_free(passes->begins);
    g_free(passes->repeats);
    *passes = (SimPasses){0};
}
