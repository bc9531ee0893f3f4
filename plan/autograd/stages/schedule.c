#include "plan/autograd/stages/schedule.h"

enum {
    WHOLE_AT_ONCE = 3 /* stages: max_active_stages of _add_unshard_reshard() */
};

static void push(GArray *turns, PlanTurnKind kind, uint32_t stage, uint32_t chunk) {
    PlanTurn turn = {kind, stage, chunk};
    g_array_append_val(turns, turn);
}

static const PlanTurn *turn_at(const GArray *turns, uint32_t i) {
    return &g_array_index(turns, PlanTurn, i);
}

static bool computes(const PlanTurn *turn) {
    return turn->kind == PLAN_TURN_FORWARD || turn->kind == PLAN_TURN_BACKWARD;
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
    GArray *turns = g_array_new(FALSE, FALSE, sizeof(PlanTurn));
    for (uint32_t nth = 0; nth < s->stages; nth++) {
        for (uint32_t chunk = 0; chunk < s->chunks; chunk++) {
            push(turns, PLAN_TURN_FORWARD, nth * s->places + place, chunk);
        }
    }
    for (uint32_t nth = s->stages; nth-- > 0;) {
        for (uint32_t chunk = s->chunks; chunk-- > 0;) {
            push(turns, PLAN_TURN_BACKWARD, nth * s->places + place, chunk);
        }
    }
    return turns;
}

static GArray *by_turns_of(const PlanSchedule *s, uint32_t place) {
    uint32_t a_round = s->chunks / (uint32_t)plan_schedule_rounds(s->places, s->chunks);
    uint32_t all = s->stages * s->chunks;
    uint32_t ahead = MIN(all, (s->stages - 1) * a_round + 2 * (s->places - 1 - place));
    GArray *turns = g_array_new(FALSE, FALSE, sizeof(PlanTurn));
    g_autofree uint32_t *forwards = g_new0(uint32_t, s->stages);
    g_autofree uint32_t *backwards = g_new0(uint32_t, s->stages);
    for (uint32_t i = 0; i < all + ahead; i++) {
        if (i < all) {
            uint32_t nth = nth_stage(s, i);
            push(turns, PLAN_TURN_FORWARD, nth * s->places + place, forwards[nth]++);
        }
        if (i >= ahead) {
            uint32_t nth = s->stages - 1 - nth_stage(s, i - ahead);
            push(turns, PLAN_TURN_BACKWARD, nth * s->places + place, backwards[nth]++);
        }
    }
    return turns;
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

/* The next few different stages that turns from i on work on. */
static Few next_stages(const GArray *turns, uint32_t i) {
    Few next = {.n = 0};
    for (; i < turns->len && next.n < WHOLE_AT_ONCE; i++) {
        if (!is_among(&next, turn_at(turns, i)->stage)) {
            next.items[next.n++] = turn_at(turns, i)->stage;
        }
    }
    return next;
}

static void let_go(Few *whole, const Few *next, GArray *turns) {
    Few kept = {.n = 0};
    for (uint32_t i = 0; i < whole->n; i++) {
        if (is_among(next, whole->items[i])) {
            kept.items[kept.n++] = whole->items[i];
        } else {
            push(turns, PLAN_TURN_RESHARD, whole->items[i], 0);
        }
    }
    *whole = kept;
}

static void gather(Few *whole, const Few *next, GArray *turns) {
    for (uint32_t i = 0; i < next->n; i++) {
        if (!is_among(whole, next->items[i])) {
            whole->items[whole->n++] = next->items[i];
            push(turns, PLAN_TURN_GATHER, next->items[i], 0);
        }
    }
}

static GArray *with_gathers(const PlanSchedule *s, const GArray *compute) {
    GArray *turns = g_array_new(FALSE, FALSE, sizeof(PlanTurn));
    Few whole = {.n = 0}, none = {.n = 0};
    for (uint32_t i = 0; i < compute->len; i++) {
        const PlanTurn *turn = turn_at(compute, i);
        Few next = next_stages(compute, i);
        let_go(&whole, &next, turns);
        gather(&whole, &next, turns);
        push(turns, turn->kind, turn->stage, turn->chunk);
        uint32_t last = s->breadth_first ? 0 : s->chunks - 1;
        if (turn->kind == PLAN_TURN_BACKWARD && turn->chunk == last) {
            push(turns, PLAN_TURN_REDUCE, turn->stage, 0);
        }
    }
    let_go(&whole, &none, turns);
    return turns;
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

static bool is_ready(const Rounds *r, const PlanTurn *turn) {
    uint32_t at = slot(r, turn->stage, turn->chunk);
    bool wants = turn->kind == PLAN_TURN_FORWARD && turn->stage > 0;
    bool wants_back = turn->kind == PLAN_TURN_BACKWARD && turn->stage + 1 < n_stages(r);
    return (!wants || r->taken[at]) && (!wants_back || r->taken_back[at]);
}

/* To a peer whose place is another, as those of neighbours are where there are two. */
static void transfer(Rounds *r, uint32_t place, const PlanTurn *turn) {
    bool forward = turn->kind == PLAN_TURN_FORWARD;
    if (forward ? turn->stage + 1 == n_stages(r) : turn->stage == 0) {
        return;
    }
    uint32_t peer = forward ? turn->stage + 1 : turn->stage - 1;
    push(r->made[place], forward ? PLAN_TURN_SEND : PLAN_TURN_SEND_BACK, turn->stage, turn->chunk);
    push(r->made[peer % r->schedule->places], forward ? PLAN_TURN_TAKE : PLAN_TURN_TAKE_BACK, peer,
         turn->chunk);
    (forward ? r->taken : r->taken_back)[slot(r, peer, turn->chunk)] = true;
}

/* Whether the place has come on. */
static bool play_one(Rounds *r, uint32_t place) {
    if (r->next[place] == r->given[place]->len) {
        return false;
    }
    PlanTurn turn = *turn_at(r->given[place], r->next[place]);
    if (!is_ready(r, &turn)) {
        return false;
    }
    push(r->made[place], turn.kind, turn.stage, turn.chunk);
    if (computes(&turn)) {
        transfer(r, place, &turn);
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
        g_autoptr(GArray) compute = s->breadth_first ? breadth_first_of(s, i) : by_turns_of(s, i);
        r.given[i] = with_gathers(s, compute);
        r.made[i] = g_array_new(FALSE, FALSE, sizeof(PlanTurn));
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
