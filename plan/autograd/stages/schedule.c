#include "plan/autograd/stages/schedule.h"

enum {
    WHOLE_AT_ONCE = 3 /* stages: max_active_stages of _add_unshard_reshard() */
};

static void push(GArray *actions, PlanStageActionKind kind, uint32_t stage, uint32_t chunk) {
    PlanStageAction action = {kind, stage, chunk};
    g_array_append_val(actions, action);
}

static const PlanStageAction *action_at(const GArray *actions, uint32_t i) {
    return &g_array_index(actions, PlanStageAction, i);
}

static bool computes(const PlanStageAction *action) {
    return action->kind == PLAN_STAGE_FORWARD || action->kind == PLAN_STAGE_BACKWARD;
}

uint64_t plan_schedule_rounds(uint64_t places, uint64_t chunks) {
    return MAX(1, chunks / places);
}

/* ---- forward and backward ------------------------------------------------------------------- */

/* Which of its stages a rank's n-th forward (or backward) is of: one round of microbatches for each
 * stage in order, then the first stage again. */
static uint32_t nth_stage(const PlanSchedule *s, uint32_t n) {
    uint32_t a_round = s->chunks / (uint32_t)plan_schedule_rounds(s->places, s->chunks);
    return n / a_round % s->stages;
}

static GArray *breadth_first_of(const PlanSchedule *s, uint32_t place) {
    GArray *actions = g_array_new(FALSE, FALSE, sizeof(PlanStageAction));
    for (uint32_t nth = 0; nth < s->stages; nth++) {
        for (uint32_t chunk = 0; chunk < s->chunks; chunk++) {
            push(actions, PLAN_STAGE_FORWARD, nth * s->places + place, chunk);
        }
    }
    for (uint32_t nth = s->stages; nth-- > 0;) {
        for (uint32_t chunk = s->chunks; chunk-- > 0;) {
            push(actions, PLAN_STAGE_BACKWARD, nth * s->places + place, chunk);
        }
    }
    return actions;
}

static GArray *alternating_of(const PlanSchedule *s, uint32_t place) {
    uint32_t a_round = s->chunks / (uint32_t)plan_schedule_rounds(s->places, s->chunks);
    uint32_t all = s->stages * s->chunks;
    uint32_t ahead = MIN(all, (s->stages - 1) * a_round + 2 * (s->places - 1 - place));
    GArray *actions = g_array_new(FALSE, FALSE, sizeof(PlanStageAction));
    g_autofree uint32_t *forwards = g_new0(uint32_t, s->stages);
    g_autofree uint32_t *backwards = g_new0(uint32_t, s->stages);
    for (uint32_t i = 0; i < all + ahead; i++) {
        if (i < all) {
            uint32_t nth = nth_stage(s, i);
            push(actions, PLAN_STAGE_FORWARD, nth * s->places + place, forwards[nth]++);
        }
        if (i >= ahead) {
            uint32_t nth = s->stages - 1 - nth_stage(s, i - ahead);
            push(actions, PLAN_STAGE_BACKWARD, nth * s->places + place, backwards[nth]++);
        }
    }
    return actions;
}

/* ---- gathers and reductions ------------------------------------------------------------------ */

typedef struct {
    uint32_t items[WHOLE_AT_ONCE], n;
} Few;

static bool is_among(const Few *few, uint32_t stage) {
    for (uint32_t i = 0; i < few->n; i++) {
        if (few->items[i] == stage) {
            return true;
        }
    }
    return false;
}

/* The next few different stages that actions from i on work on. */
static Few next_stages(const GArray *actions, uint32_t i) {
    Few next = {.n = 0};
    for (; i < actions->len && next.n < WHOLE_AT_ONCE; i++) {
        if (!is_among(&next, action_at(actions, i)->stage)) {
            next.items[next.n++] = action_at(actions, i)->stage;
        }
    }
    return next;
}

static void let_go(Few *whole, const Few *next, GArray *actions) {
    Few kept = {.n = 0};
    for (uint32_t i = 0; i < whole->n; i++) {
        if (is_among(next, whole->items[i])) {
            kept.items[kept.n++] = whole->items[i];
        } else {
            push(actions, PLAN_STAGE_RESHARD, whole->items[i], 0);
        }
    }
    *whole = kept;
}

static void gather(Few *whole, const Few *next, GArray *actions) {
    for (uint32_t i = 0; i < next->n; i++) {
        if (!is_among(whole, next->items[i])) {
            whole->items[whole->n++] = next->items[i];
            push(actions, PLAN_STAGE_GATHER, next->items[i], 0);
        }
    }
}

static GArray *with_gathers(const PlanSchedule *s, const GArray *compute) {
    GArray *actions = g_array_new(FALSE, FALSE, sizeof(PlanStageAction));
    Few whole = {.n = 0}, none = {.n = 0};
    for (uint32_t i = 0; i < compute->len; i++) {
        const PlanStageAction *action = action_at(compute, i);
        Few next = next_stages(compute, i);
        let_go(&whole, &next, actions);
        gather(&whole, &next, actions);
        push(actions, action->kind, action->stage, action->chunk);
        uint32_t last = s->breadth_first ? 0 : s->chunks - 1;
        if (action->kind == PLAN_STAGE_BACKWARD && action->chunk == last) {
            push(actions, PLAN_STAGE_REDUCE, action->stage, 0);
        }
    }
    let_go(&whole, &none, actions);
    return actions;
}

/* ---- transfers ------------------------------------------------------------------------------- */

/* A pipeline whose places play in rounds. */
typedef struct {
    const PlanSchedule *schedule;
    GArray **given, **made; /* of each place */
    uint32_t *next;
    bool *taken, *taken_back; /* of each stage and microbatch: the peer has it in its program */
} Rounds;

static uint32_t n_stages(const Rounds *r) {
    return r->schedule->places * r->schedule->stages;
}

static uint32_t slot(const Rounds *r, uint32_t stage, uint32_t chunk) {
    return stage * r->schedule->chunks + chunk;
}

static bool is_ready(const Rounds *r, const PlanStageAction *action) {
    uint32_t at = slot(r, action->stage, action->chunk);
    bool wants = action->kind == PLAN_STAGE_FORWARD && action->stage > 0;
    bool wants_back = action->kind == PLAN_STAGE_BACKWARD && action->stage + 1 < n_stages(r);
    return (!wants || r->taken[at]) && (!wants_back || r->taken_back[at]);
}

/* To a peer whose place is another, as those of neighbours are where there are two. */
static void transfer(Rounds *r, uint32_t place, const PlanStageAction *action) {
    bool forward = action->kind == PLAN_STAGE_FORWARD;
    if (forward ? action->stage + 1 == n_stages(r) : action->stage == 0) {
        return;
    }
    uint32_t peer = forward ? action->stage + 1 : action->stage - 1;
    push(r->made[place], forward ? PLAN_STAGE_SEND : PLAN_STAGE_SEND_BACK, action->stage,
         action->chunk);
    push(r->made[peer % r->schedule->places],
         forward ? PLAN_STAGE_RECEIVE : PLAN_STAGE_RECEIVE_BACK, peer, action->chunk);
    (forward ? r->taken : r->taken_back)[slot(r, peer, action->chunk)] = true;
}

/* Whether the place has come on. */
static bool play_one(Rounds *r, uint32_t place) {
    if (r->next[place] == r->given[place]->len) {
        return false;
    }
    PlanStageAction action = *action_at(r->given[place], r->next[place]);
    if (!is_ready(r, &action)) {
        return false;
    }
    push(r->made[place], action.kind, action.stage, action.chunk);
    if (computes(&action)) {
        transfer(r, place, &action);
    }
    r->next[place]++;
    return true;
}

static void play_all(Rounds *r) {
    for (bool comes_on = true; comes_on;) {
        comes_on = false;
        for (uint32_t place = 0; place < r->schedule->places; place++) {
            comes_on |= play_one(r, place);
        }
    }
}

GArray *plan_schedule_of_place(const PlanSchedule *s, uint32_t place) {
    uint32_t n = s->places * s->stages * s->chunks;
    g_autofree bool *taken = g_new0(bool, n), *taken_back = g_new0(bool, n);
    Rounds r = {.schedule = s,
                .given = g_new(GArray *, s->places),
                .made = g_new(GArray *, s->places),
                .next = g_new0(uint32_t, s->places),
                .taken = taken,
                .taken_back = taken_back};
    for (uint32_t i = 0; i < s->places; i++) {
        g_autoptr(GArray) compute =
            s->breadth_first ? breadth_first_of(s, i) : alternating_of(s, i);
        r.given[i] = with_gathers(s, compute);
        r.made[i] = g_array_new(FALSE, FALSE, sizeof(PlanStageAction));
    }
    play_all(&r);
    GArray *own = g_array_ref(r.made[place]);
    for (uint32_t i = 0; i < s->places; i++) {
        g_assert(r.next[i] == r.given[i]->len);
        g_array_unref(r.given[i]);
        g_array_unref(r.made[i]);
    }
    g_free(r.given);
    g_free(r.made);
    g_free(r.next);
    return own;
}
