#include "plan/autograd/shared/ring-hops.h"

const char *const plan_ring_lanes[] = {"context", NULL};

/* ---- merging -------------------------------------------------------------------------------- */

typedef struct {
    PlanTensor out, lse; /* out in fp32 */
} Merged;

/* a less b, of both the last rows. */
static PlanTensor less(const PlanRing *r, const PlanRingShape *s, PlanTensor a, PlanTensor b,
                       int64_t rows, const char *name) {
    int64_t unit = s->outer * s->inner;
    PlanTensor y = plan_ring_new_like(r, a, (uint64_t)(unit * rows), name);
    LAUNCH(r->run, PLAN_OP_SUB_ROWS,
           DIMS([SUB_ROWS_OUTER] = s->outer, [SUB_ROWS_INNER] = s->inner,
                [SUB_ROWS_A_ROWS] = (int64_t)a.elements / unit,
                [SUB_ROWS_B_ROWS] = (int64_t)b.elements / unit, [SUB_ROWS_ROWS] = rows),
           NULL, a, b, y);
    return y;
}

/* All of a, its last rows being b's. */
static PlanTensor put(const PlanRing *r, const PlanRingShape *s, PlanTensor a, PlanTensor b,
                      const char *name) {
    int64_t unit = s->outer * s->inner;
    PlanTensor y = plan_ring_new_like(r, a, a.elements, name);
    LAUNCH(r->run, PLAN_OP_PUT_ROWS,
           DIMS([PUT_ROWS_OUTER] = s->outer, [PUT_ROWS_INNER] = s->inner,
                [PUT_ROWS_A_ROWS] = (int64_t)a.elements / unit,
                [PUT_ROWS_B_ROWS] = (int64_t)b.elements / unit),
           NULL, a, b, y);
    return y;
}

/* out - sigmoid(block_lse - lse) * (out - block) and lse - logsigmoid(lse - block_lse). */
static void merge(const PlanRing *r, const PlanRingHop *t, PlanTensor block, PlanTensor block_lse,
                  Merged *merged) {
    const PlanGraphRing *d = r->d;
    PlanRingShape of_out = {d->batch, d->heads * d->head_dim}, of_lse = {d->batch * d->heads, 1};
    int64_t rows = t->q_rows;
    PlanTensor more = less(r, &of_lse, block_lse, merged->lse, rows, "lse_less");
    PlanTensor weight = plan_ring_applied(r, PLAN_OP_SIGMOID, more, "weight");
    plan_ring_drop(r, more);
    PlanTensor apart = less(r, &of_out, merged->out, block, rows, "out_less");
    PlanTensor weighed = plan_ring_new_like(r, apart, apart.elements, "weighed");
    LAUNCH(r->run, PLAN_OP_MUL_HEADS,
           DIMS([MUL_HEADS_BATCH] = d->batch, [MUL_HEADS_ROWS] = rows, [MUL_HEADS_HEADS] = d->heads,
                [MUL_HEADS_DIM] = d->head_dim),
           NULL, apart, weight, weighed);
    plan_ring_drop(r, weight);
    plan_ring_drop(r, apart);
    PlanTensor out = less(r, &of_out, merged->out, weighed, rows, "out");
    plan_ring_drop(r, weighed);
    PlanTensor fewer = less(r, &of_lse, merged->lse, block_lse, rows, "lse_less");
    PlanTensor log = plan_ring_applied(r, PLAN_OP_LOG_SIGMOID, fewer, "log");
    plan_ring_drop(r, fewer);
    PlanTensor lse = less(r, &of_lse, merged->lse, log, rows, "lse");
    plan_ring_drop(r, log);
    Merged before = *merged;
    if (!plan_ring_is_partial(t)) {
        *merged = (Merged){out, lse};
        plan_ring_drop(r, before.lse);
        plan_ring_drop(r, before.out);
        return;
    }
    merged->lse = put(r, &of_lse, before.lse, lse, "lse");
    plan_ring_drop(r, before.lse);
    merged->out = put(r, &of_out, before.out, out, "out");
    plan_ring_drop(r, before.out);
    plan_ring_drop(r, lse);
    plan_ring_drop(r, out);
}

/* PyTorch joins keys and values once a hop, though they have been gathered. */
static void join_in_vain(const PlanRing *r, PlanTensor k, PlanTensor v) {
    plan_ring_drop(r, plan_ring_joined(r, k, v, "joined"));
}

void plan_ring_forward(PlanRun *run, const PlanGraphOp *op) {
    PlanRing ring = plan_ring_of_op(run, op), *r = &ring;
    PlanTensor q = plan_run_given(run, op, 0);
    PlanTensor k = plan_ring_head_by_head(r, plan_run_given(run, op, 1), "k");
    PlanTensor v = plan_ring_head_by_head(r, plan_run_given(run, op, 2), "v");
    PlanTensor own = plan_ring_joined(r, k, v, "joined");
    PlanRingExchange all = plan_ring_gather(r, own);
    plan_ring_drop(r, own);
    PlanRingHop hop = plan_ring_hop(r, 0);
    PlanRingAttended last = plan_ring_attend(r, &hop, q, k, v), first = last;
    /* One hop's random state is kept for backward: the last's, since 2.14 the first's. */
    bool keeps_first = plan_strategy_is_after(run->strategy, PLAN_PYTORCH_CURRENT);
    Merged merged = {plan_ring_in_dtype(r, last.o, PLAN_FP32, "out"), plan_run_ref(run, last.lse)};
    for (uint64_t i = 1; i < r->ranks; i++) {
        hop = plan_ring_hop(r, i);
        plan_ring_await(r, &all);
        PlanTensor keys = plan_ring_part_of(&all.taken, hop.rank, false, k.elements);
        PlanTensor values = plan_ring_part_of(&all.taken, hop.rank, true, k.elements);
        if (i + 1 < r->ranks) {
            join_in_vain(r, keys, values);
        }
        if (i == 1) {
            plan_ring_drop(r, k);
            plan_ring_drop(r, v);
        }
        PlanRingAttended before = last;
        last = plan_ring_attend(r, &hop, q, keys, values);
        plan_ring_drop(r, before.o);
        plan_ring_drop(r, before.lse);
        if (i > 1 || !keeps_first) {
            plan_ring_drop_seed(r, &before);
        }
        PlanTensor block = plan_ring_in_dtype(r, last.o, PLAN_FP32, "block");
        merge(r, &hop, block, last.lse, &merged);
        plan_ring_drop(r, block);
    }
    plan_run_give(r->run, op, 0, plan_ring_in_dtype(r, merged.out, plan_ring_dtype_of(r, q), "o"));
    plan_ring_drop(r, merged.out);
    plan_ring_drop(r, all.taken);
    plan_ring_drop(r, last.o);
    plan_ring_drop(r, last.lse);
    if (keeps_first) {
        plan_ring_drop_seed(r, &last);
    }
    plan_run_give(r->run, op, 1, merged.lse);
    plan_run_give(r->run, op, 2, keeps_first ? first.seed : last.seed);
    plan_run_give(r->run, op, 3, keeps_first ? first.offset : last.offset);
}

void plan_ring_rows_forward(PlanRun *run, const PlanGraphOp *op) {
    PlanRing ring = {.run = run};
    PlanTensor x = plan_run_given(run, op, 0);
    plan_run_give(run, op, 0,
                  plan_ring_joins(run) ? plan_ring_applied(&ring, PLAN_OP_COPY, x, "rows")
                                       : plan_run_ref(run, x));
}

/* ---- backward ------------------------------------------------------------------------------- */

/* x's rows to y's from one on. */
static void add_rows(const PlanRing *r, const PlanRingShape *s, PlanTensor x, PlanTensor y,
                     int64_t from) {
    int64_t unit = s->outer * s->inner;
    LAUNCH(r->run, PLAN_OP_ADD_ROWS,
           DIMS([ADD_ROWS_OUTER] = s->outer, [ADD_ROWS_INNER] = s->inner,
                [ADD_ROWS_X_ROWS] = (int64_t)x.elements / unit,
                [ADD_ROWS_Y_ROWS] = (int64_t)y.elements / unit, [ADD_ROWS_FROM] = from),
           NULL, x, y);
}

/* Adds a hop's gradient of keys or values to the first rows of each head of the sum. Where the hop
 * saw half of the keys, PyTorch puts the sum together anew from two halves: a copy. */
static PlanTensor sum_of_keys(const PlanRing *r, const PlanRingHop *t, PlanTensor x,
                              PlanTensor sum) {
    PlanRingShape shape = {r->d->batch * r->d->kv_heads, r->d->head_dim};
    add_rows(r, &shape, x, sum, 0);
    return t->sees_half ? plan_ring_applied(r, PLAN_OP_COPY, sum, "sum")
                        : plan_run_ref(r->run, sum);
}

static void add_queries(const PlanRing *r, const PlanRingHop *t, PlanTensor x, PlanTensor *sum) {
    PlanRingShape shape = {r->d->batch, r->d->heads * r->d->head_dim};
    add_rows(r, &shape, x, *sum, r->d->seq - t->q_rows);
    if (plan_ring_is_partial(t)) {
        PlanTensor whole = plan_ring_applied(r, PLAN_OP_COPY, *sum, "sum");
        plan_ring_drop(r, *sum);
        *sum = whole;
    }
}

/* Gradients of keys and values as they come from one rank, with this one's: both begin as tensors
 * of their own, and are parts of what was passed on later. */
typedef struct {
    PlanTensor k, v;
} Sums;

/* This rank's own. PyTorch has them in rows of tokens, and copies them head by head first. */
static PlanTensor first_to_pass_on(const PlanRing *r, const Sums *sums) {
    if (r->d->kv_heads == 1) {
        return plan_ring_joined(r, sums->k, sums->v, "joined");
    }
    PlanTensor k = plan_ring_applied(r, PLAN_OP_COPY, sums->k, "dk");
    PlanTensor v = plan_ring_applied(r, PLAN_OP_COPY, sums->v, "dv");
    PlanTensor y = plan_ring_joined(r, k, v, "joined");
    plan_ring_drop(r, v);
    plan_ring_drop(r, k);
    return y;
}

static Sums refs(const PlanRing *r, PlanTensor both) {
    return (Sums){plan_run_ref(r->run, plan_ring_half_of(both, false)),
                  plan_run_ref(r->run, plan_ring_half_of(both, true))};
}

static void drop_sums(const PlanRing *r, const Sums *sums) {
    plan_ring_drop(r, sums->k);
    plan_ring_drop(r, sums->v);
}

/* What came is awaited; the sums are its, and then this rank's gradients with it. `passed` is what
 * went on before. */
static void add_to_what_came(const PlanRing *r, const PlanRingHop *t, const PlanRingGradients *g,
                             PlanRingExchange *came, PlanTensor *passed, Sums *sums) {
    plan_ring_await(r, came);
    plan_ring_drop(r, *passed);
    Sums before = *sums, taken = refs(r, came->taken);
    drop_sums(r, &before);
    sums->k = sum_of_keys(r, t, g->k, taken.k);
    sums->v = sum_of_keys(r, t, g->v, taken.v);
    drop_sums(r, &taken);
    *passed = plan_ring_joined(r, sums->k, sums->v, "joined");
    PlanTensor old = came->taken;
    *came = plan_ring_pass_on(r, *passed);
    plan_ring_drop(r, old);
}

/* Backward's state across hops: its inputs, the collectives in flight, and the sums so far. */
typedef struct {
    PlanTensor q, k, v, o, lse, dy;
    PlanTensor
        own; /* keys and values head by head, joined; later a joined copy that nothing reads */
    PlanRingExchange all;   /* keys and values */
    PlanRingExchange came;  /* gradients of keys and values */
    PlanTensor passed;      /* what went on for those that come next */
    PlanTensor of_hop;      /* the sums that the last hop's attention was given */
    PlanRingGradients last; /* what that made */
    PlanTensor dq;
    Sums sums;
} Journey;

static PlanRingGradients attend_as(const PlanRing *r, const PlanRingHop *t, const Journey *j,
                                   PlanTensor k, PlanTensor v) {
    return plan_ring_attend_backward(r, t, (PlanTensor[]){j->dy, j->q, k, v, j->o, j->of_hop});
}

/* Its own tokens, beside which keys and values are gathered. */
static void first_hop(const PlanRing *r, Journey *j, PlanTensor *ret_k, PlanTensor *ret_v) {
    PlanRingHop hop = plan_ring_hop(r, 0);
    j->dq = plan_ring_zeros(r, j->q.elements, "dq");
    j->sums =
        (Sums){plan_ring_zeros(r, j->k.elements, "dk"), plan_ring_zeros(r, j->k.elements, "dv")};
    *ret_k = plan_ring_head_by_head(r, j->k, "k");
    *ret_v = plan_ring_head_by_head(r, j->v, "v");
    j->own = plan_ring_joined(r, *ret_k, *ret_v, "joined");
    j->all = plan_ring_gather(r, j->own);
    j->of_hop = plan_run_ref(r->run, j->lse);
    j->last = attend_as(r, &hop, j, *ret_k, *ret_v);
    PlanRingShape all = {1, (int64_t)j->k.elements};
    add_rows(r, &all, j->last.k, j->sums.k, 0);
    add_rows(r, &all, j->last.v, j->sums.v, 0);
    j->passed = first_to_pass_on(r, &j->sums);
    j->came = plan_ring_pass_on(r, j->passed);
    add_queries(r, &hop, j->last.q, &j->dq);
}

/* The tokens of the rank i before it. k and v: its own, which the first of these lets go. */
static void further_hop(const PlanRing *r, Journey *j, uint64_t i, PlanTensor k, PlanTensor v) {
    PlanRingHop hop = plan_ring_hop(r, i);
    plan_ring_await(r, &j->all);
    PlanTensor keys = plan_ring_part_of(&j->all.taken, hop.rank, false, j->k.elements);
    PlanTensor values = plan_ring_part_of(&j->all.taken, hop.rank, true, j->k.elements);
    if (i + 1 < r->ranks) {
        PlanTensor again = plan_ring_joined(r, keys, values, "joined");
        plan_ring_drop(r, j->own);
        j->own = again;
    }
    PlanTensor of_hop = plan_ring_last_sums(r, &hop, j->lse);
    if (i == 1) {
        plan_ring_drop(r, k);
        plan_ring_drop(r, v);
    }
    plan_ring_drop(r, j->of_hop);
    j->of_hop = of_hop;
    PlanRingGradients before = j->last;
    j->last = attend_as(r, &hop, j, keys, values);
    plan_ring_drop_gradients(r, &before);
    add_to_what_came(r, &hop, &j->last, &j->came, &j->passed, &j->sums);
    add_queries(r, &hop, j->last.q, &j->dq);
}

/* Both gradients, in fp32 and head by head, as k is. In PyTorch they stay head by head till a layer
 * copies them or a norm reads them, which asks for as much memory. In fp32 no cast is made, and
 * they stay so here, too (PLAN_HEADS_APART). */
static PlanTensor in_rows_of_tokens(const PlanRing *r, PlanTensor both, PlanTensor k) {
    const PlanGraphRing *d = r->d;
    PlanDtype dtype = plan_ring_dtype_of(r, k);
    if (dtype == PLAN_FP32 || d->kv_heads == 1) {
        return plan_ring_in_dtype(r, both, dtype, "dk_dv");
    }
    PlanTensor y = plan_run_new_tensor(r->run, both.elements, dtype, "dk_dv");
    LAUNCH(r->run, PLAN_OP_CAST_HEADS,
           DIMS([CAST_HEADS_BATCH] = 2 * d->batch, [CAST_HEADS_HEADS] = d->kv_heads,
                [CAST_HEADS_SEQ] = d->seq, [CAST_HEADS_DIM] = d->head_dim),
           NULL, both, y);
    return y;
}

/* The gradients of this rank's keys and values have been at every rank. */
static void come_home(const PlanRing *r, Journey *j, PlanTensor *ret_dx) {
    ret_dx[0] = plan_ring_in_dtype(r, j->dq, plan_ring_dtype_of(r, j->q), "dq");
    plan_ring_drop(r, j->dq);
    plan_ring_await(r, &j->came);
    PlanTensor home = in_rows_of_tokens(r, j->came.taken, j->k);
    plan_ring_drop(r, j->passed);
    drop_sums(r, &j->sums);
    plan_ring_drop(r, j->own);
    plan_ring_drop_gradients(r, &j->last);
    plan_ring_drop(r, j->came.taken);
    plan_ring_drop(r, j->all.taken);
    plan_ring_drop(r, j->of_hop);
    ret_dx[1] = plan_ring_half_of(home, false);
    ret_dx[2] = plan_run_ref(r->run, plan_ring_half_of(home, true));
}

void plan_ring_backward(const PlanBackward *b) {
    PlanRing r = plan_ring_of_op(b->run, b->op);
    PlanTensor values[5], k, v;
    for (unsigned i = 0; i < G_N_ELEMENTS(values); i++) {
        values[i] = plan_run_value(b->run, value_at(b, i));
    }
    Journey journey = {.q = values[0],
                       .k = values[1],
                       .v = values[2],
                       .o = values[3],
                       .lse = values[4],
                       .dy = b->dy[0]};
    first_hop(&r, &journey, &k, &v);
    for (uint64_t i = 1; i < r.ranks; i++) {
        further_hop(&r, &journey, i, k, v);
    }
    come_home(&r, &journey, b->dx);
}
