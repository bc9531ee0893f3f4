#include "plan/autograd/ring.h"

const char *const plan_ring_lanes[] = {"context", NULL};

enum {
    LANE_COMPUTE
};

/* ---- the words ------------------------------------------------------------------------------ */

typedef struct {
    PlanRun *run;
    const PlanGraphRing *d;
    const double *scale;
    uint64_t ranks, place;
} Ring;

static Ring ring_of(PlanRun *run, const PlanGraphOp *op) {
    return (Ring){.run = run,
                  .d = plan_graph_ring_of(run->graph, op),
                  .scale = plan_graph_at(run->graph->attrs, double, op->attrs),
                  .ranks = run->graph->context,
                  .place = plan_ring_place(run)};
}

static void drop(const Ring *r, PlanTensor x) {
    plan_run_unref(r->run, x);
}

static void launch_with(const Ring *r, PlanOpKind kind, const int64_t *dims, const double *attrs,
                        const PlanTensor *tensors, unsigned n) {
    plan_builder_begin_op(&r->run->builder, kind, PLAN_AXIS_NONE, dims, attrs);
    for (unsigned i = 0; i < n; i++) {
        plan_run_operand(r->run, tensors[i]);
    }
    plan_run_launch(r->run);
}

#define LAUNCH(ring, kind, dims, attrs, ...)                                                       \
    launch_with(ring, kind, dims, attrs, (PlanTensor[]){__VA_ARGS__},                              \
                G_N_ELEMENTS(((PlanTensor[]){__VA_ARGS__})))
#define DIMS(...) ((const int64_t[]){__VA_ARGS__})

static PlanDtype dtype_of(const Ring *r, PlanTensor x) {
    return (PlanDtype)plan_builder_at(&r->run->builder, plan_run_buffer_of(r->run, x))->dtype;
}

static PlanTensor new_like(const Ring *r, PlanTensor x, uint64_t elements, const char *name) {
    return plan_run_new_tensor(r->run, elements, dtype_of(r, x), name);
}

static PlanTensor applied(const Ring *r, PlanOpKind kind, PlanTensor x, const char *name) {
    PlanTensor y = new_like(r, x, x.elements, name);
    LAUNCH(r, kind, DIMS((int64_t)x.elements), NULL, x, y);
    return y;
}

/* A copy, or the tensor itself where it has that dtype. */
static PlanTensor in_dtype(const Ring *r, PlanTensor x, PlanDtype dtype, const char *name) {
    if (dtype_of(r, x) == dtype) {
        return plan_run_ref(r->run, x);
    }
    PlanTensor y = plan_run_new_tensor(r->run, x.elements, dtype, name);
    LAUNCH(r, PLAN_OP_CAST, DIMS((int64_t)x.elements), NULL, x, y);
    return y;
}

static PlanTensor joined(const Ring *r, PlanTensor a, PlanTensor b, const char *name) {
    PlanTensor y = new_like(r, a, a.elements + b.elements, name);
    LAUNCH(r, PLAN_OP_JOIN, DIMS((int64_t)a.elements), NULL, a, b, y);
    return y;
}

/* Heads outermost, as the ring sends them. A single head is so already. */
static PlanTensor head_by_head(const Ring *r, PlanTensor x, const char *name) {
    const PlanGraphRing *d = r->d;
    if (d->kv_heads == 1) {
        return plan_run_ref(r->run, x);
    }
    PlanTensor y = new_like(r, x, x.elements, name);
    LAUNCH(r, PLAN_OP_HEADS_COPY,
           DIMS(d->batch, d->seq, d->kv_heads, d->head_dim, d->kv_heads * d->head_dim, 0), NULL, x,
           y);
    return y;
}

/* ---- collectives ---------------------------------------------------------------------------- */

/* What is underway: NCCL's process group holds what it reads until somebody waits for it. */
typedef struct {
    PlanTensor given, taken;
    uint32_t done; /* event */
    bool awaited;
} Exchange;

static Exchange issue(const Ring *r, PlanOpKind kind, PlanTensor given, uint64_t taken) {
    PlanBuilder *builder = &r->run->builder;
    uint8_t lane = (uint8_t)r->run->n_flavour_lanes;
    Exchange e = {.given = plan_run_ref(r->run, given)};
    e.taken = new_like(r, given, taken, "taken");
    plan_builder_wait_lane(builder, lane, LANE_COMPUTE);
    plan_builder_begin_op(builder, kind, PLAN_AXIS_CONTEXT, DIMS((int64_t)taken, (int64_t)r->ranks),
                          &(double){0});
    plan_run_operand(r->run, given);
    plan_run_operand(r->run, e.taken);
    plan_builder_launch(builder, lane);
    e.done = plan_builder_record(builder, lane);
    return e;
}

static Exchange gather(const Ring *r, PlanTensor x) {
    return issue(r, PLAN_OP_ALL_GATHER, x, x.elements * r->ranks);
}

static Exchange pass_on(const Ring *r, PlanTensor x) {
    return issue(r, PLAN_OP_PASS_ON, x, x.elements);
}

static void await(const Ring *r, Exchange *e) {
    if (!e->awaited) {
        plan_builder_wait(&r->run->builder, LANE_COMPUTE, e->done);
        drop(r, e->given);
        e->awaited = true;
    }
}

/* ---- turns ---------------------------------------------------------------------------------- */

/* Keys or values of one rank, in what was gathered of all: keys and then values, rank by rank. */
static PlanTensor part_of(const PlanTensor *gathered, uint64_t rank, bool values, uint64_t n) {
    return (PlanTensor){gathered->storage, gathered->offset + (2 * rank + values) * n, n};
}

/* In turn i a rank attends to the tokens of the rank i before it on the axis, around its ends. */
typedef struct {
    bool is_own, sees_half; /* all queries see the first half of the keys; else half of them all */
    int64_t q_rows, kv_rows;
    uint64_t rank;
} Turn;

static Turn turn_of(const Ring *r, uint64_t i) {
    bool is_own = i == 0, sees_half = !is_own && i <= r->place;
    int64_t seq = r->d->seq;
    return (Turn){.is_own = is_own,
                  .sees_half = sees_half,
                  .q_rows = is_own || sees_half ? seq : seq / 2,
                  .kv_rows = sees_half ? seq / 2 : seq,
                  .rank = (r->place + r->ranks - i) % r->ranks};
}

static bool is_partial(const Turn *t) {
    return !t->is_own && !t->sees_half;
}

#define PART_DIMS(r, t)                                                                            \
    DIMS((r)->d->batch, (r)->d->heads, (r)->d->kv_heads, (r)->d->seq, (r)->d->head_dim,            \
         (t)->q_rows, (t)->kv_rows, (t)->is_own)

typedef struct {
    PlanTensor o, lse, seed, offset;
} Attended;

static Attended attend(const Ring *r, const Turn *t, PlanTensor q, PlanTensor k, PlanTensor v) {
    PlanRun *run = r->run;
    const PlanGraphRing *d = r->d;
    bool flash = dtype_of(r, q) != PLAN_FP32;
    uint64_t rows = (uint64_t)(d->batch * d->heads * t->q_rows);
    Attended a = {.o = new_like(r, q, rows * (uint64_t)d->head_dim, "o"),
                  .lse = plan_run_new_tensor(run, rows, PLAN_FP32, "lse"),
                  .seed = plan_run_new_tensor(run, flash ? 2 : 1, PLAN_INT64, "seed"),
                  .offset = plan_run_new_tensor(run, 1, PLAN_INT64, "offset")};
    LAUNCH(r, PLAN_OP_ATTENTION_PART, PART_DIMS(r, t), r->scale, q, k, v, a.o, a.lse, a.seed,
           a.offset);
    return a;
}

/* ---- merging -------------------------------------------------------------------------------- */

typedef struct {
    PlanTensor out, lse; /* out in fp32 */
} Merged;

/* x [outer, rows, inner]. */
typedef struct {
    int64_t outer, inner;
} Shape;

/* a less b, of both the last rows. */
static PlanTensor less(const Ring *r, const Shape *s, PlanTensor a, PlanTensor b, int64_t rows,
                       const char *name) {
    int64_t unit = s->outer * s->inner;
    PlanTensor y = new_like(r, a, (uint64_t)(unit * rows), name);
    LAUNCH(r, PLAN_OP_SUB_ROWS,
           DIMS(s->outer, s->inner, (int64_t)a.elements / unit, (int64_t)b.elements / unit, rows),
           NULL, a, b, y);
    return y;
}

/* All of a, its last rows being b's. */
static PlanTensor put(const Ring *r, const Shape *s, PlanTensor a, PlanTensor b, const char *name) {
    int64_t unit = s->outer * s->inner;
    PlanTensor y = new_like(r, a, a.elements, name);
    LAUNCH(r, PLAN_OP_PUT_ROWS,
           DIMS(s->outer, s->inner, (int64_t)a.elements / unit, (int64_t)b.elements / unit), NULL,
           a, b, y);
    return y;
}

/* out - sigmoid(block_lse - lse) * (out - block) and lse - logsigmoid(lse - block_lse). */
static void merge(const Ring *r, const Turn *t, PlanTensor block, PlanTensor block_lse,
                  Merged *merged) {
    const PlanGraphRing *d = r->d;
    Shape of_out = {d->batch, d->heads * d->head_dim}, of_lse = {d->batch * d->heads, 1};
    int64_t rows = t->q_rows;
    PlanTensor more = less(r, &of_lse, block_lse, merged->lse, rows, "lse_less");
    PlanTensor weight = applied(r, PLAN_OP_SIGMOID, more, "weight");
    drop(r, more);
    PlanTensor apart = less(r, &of_out, merged->out, block, rows, "out_less");
    PlanTensor weighed = new_like(r, apart, apart.elements, "weighed");
    LAUNCH(r, PLAN_OP_MUL_HEADS, DIMS(d->batch, rows, d->heads, d->head_dim), NULL, apart, weight,
           weighed);
    drop(r, weight);
    drop(r, apart);
    PlanTensor out = less(r, &of_out, merged->out, weighed, rows, "out");
    drop(r, weighed);
    PlanTensor fewer = less(r, &of_lse, merged->lse, block_lse, rows, "lse_less");
    PlanTensor log = applied(r, PLAN_OP_LOG_SIGMOID, fewer, "log");
    drop(r, fewer);
    PlanTensor lse = less(r, &of_lse, merged->lse, log, rows, "lse");
    drop(r, log);
    Merged before = *merged;
    if (!is_partial(t)) {
        *merged = (Merged){out, lse};
        drop(r, before.lse);
        drop(r, before.out);
        return;
    }
    merged->lse = put(r, &of_lse, before.lse, lse, "lse");
    drop(r, before.lse);
    merged->out = put(r, &of_out, before.out, out, "out");
    drop(r, before.out);
    drop(r, lse);
    drop(r, out);
}

/* ---- forward -------------------------------------------------------------------------------- */

static PlanTensor value_of(PlanRun *run, const PlanGraphOp *op, unsigned i) {
    return plan_run_value(run, plan_graph_ref(run->graph, op->values + i));
}

/* The op's output i is this tensor, whose reference it takes. */
static void gives(const Ring *r, const PlanGraphOp *op, unsigned i, PlanTensor made) {
    uint32_t value = plan_graph_ref(r->run->graph, op->values + op->n_inputs + i);
    r->run->storage_of_value[value] = made.storage;
    uint32_t buffer = plan_run_buffer_of(r->run, made);
    plan_vector_push(&r->run->frame_buffers, buffer);
}

static void drop_attended(const Ring *r, const Attended *a) {
    drop(r, a->o);
    drop(r, a->lse);
    drop(r, a->offset);
    drop(r, a->seed);
}

/* PyTorch joins keys and values once a turn, though they have been gathered. */
static void join_in_vain(const Ring *r, PlanTensor k, PlanTensor v) {
    drop(r, joined(r, k, v, "joined"));
}

void plan_ring_forward(PlanRun *run, const PlanGraphOp *op) {
    Ring ring = ring_of(run, op), *r = &ring;
    PlanTensor q = value_of(run, op, 0);
    PlanTensor k = head_by_head(r, value_of(run, op, 1), "k");
    PlanTensor v = head_by_head(r, value_of(run, op, 2), "v");
    PlanTensor own = joined(r, k, v, "joined");
    Exchange all = gather(r, own);
    drop(r, own);
    Turn turn = turn_of(r, 0);
    Attended last = attend(r, &turn, q, k, v);
    Merged merged = {in_dtype(r, last.o, PLAN_FP32, "out"), plan_run_ref(run, last.lse)};
    for (uint64_t i = 1; i < r->ranks; i++) {
        turn = turn_of(r, i);
        await(r, &all);
        PlanTensor keys = part_of(&all.taken, turn.rank, false, k.elements);
        PlanTensor values = part_of(&all.taken, turn.rank, true, k.elements);
        if (i + 1 < r->ranks) {
            join_in_vain(r, keys, values);
        }
        if (i == 1) {
            drop(r, k);
            drop(r, v);
        }
        Attended before = last;
        last = attend(r, &turn, q, keys, values);
        drop_attended(r, &before);
        PlanTensor block = in_dtype(r, last.o, PLAN_FP32, "block");
        merge(r, &turn, block, last.lse, &merged);
        drop(r, block);
    }
    gives(r, op, 0, in_dtype(r, merged.out, dtype_of(r, q), "o"));
    drop(r, merged.out);
    drop(r, all.taken);
    drop(r, last.o);
    drop(r, last.lse);
    gives(r, op, 1, merged.lse);
    gives(r, op, 2, last.seed);
    gives(r, op, 3, last.offset);
}

void plan_ring_rows_forward(PlanRun *run, const PlanGraphOp *op) {
    Ring ring = {.run = run};
    PlanTensor x = value_of(run, op, 0);
    gives(&ring, op, 0,
          plan_ring_joins(run) ? applied(&ring, PLAN_OP_COPY, x, "rows") : plan_run_ref(run, x));
}

/* ---- backward ------------------------------------------------------------------------------- */

typedef struct {
    PlanTensor q, k, v;
} Gradients;

static Gradients attend_backward(const Ring *r, const Turn *t, const PlanTensor *given) {
    const PlanGraphRing *d = r->d;
    uint64_t a_row = (uint64_t)(d->batch * d->head_dim);
    uint64_t n = a_row * (uint64_t)(d->heads * t->q_rows);
    uint64_t m = a_row * (uint64_t)(d->kv_heads * t->kv_rows);
    PlanTensor like = given[1];
    Gradients g = {new_like(r, like, n, "dq"), new_like(r, like, m, "dk"),
                   new_like(r, like, m, "dv")};
    LAUNCH(r, PLAN_OP_ATTENTION_PART_BACKWARD, PART_DIMS(r, t), r->scale, given[0], given[1],
           given[2], given[3], given[4], given[5], g.q, g.k, g.v);
    return g;
}

static void drop_gradients(const Ring *r, const Gradients *g) {
    drop(r, g->q);
    drop(r, g->k);
    drop(r, g->v);
}

static PlanTensor zeros(const Ring *r, uint64_t elements, const char *name) {
    PlanTensor y = plan_run_new_tensor(r->run, elements, PLAN_FP32, name);
    LAUNCH(r, PLAN_OP_FILL, DIMS((int64_t)elements), &(double){0}, y);
    return y;
}

/* x's rows to y's from one on. */
static void add_rows(const Ring *r, const Shape *s, PlanTensor x, PlanTensor y, int64_t from) {
    int64_t unit = s->outer * s->inner;
    LAUNCH(r, PLAN_OP_ADD_ROWS,
           DIMS(s->outer, s->inner, (int64_t)x.elements / unit, (int64_t)y.elements / unit, from),
           NULL, x, y);
}

/* Of keys or values, the first rows of each head: where those are not all, the sum is put together
 * anew of its halves. */
static PlanTensor sum_of_keys(const Ring *r, const Turn *t, PlanTensor x, PlanTensor sum) {
    Shape shape = {r->d->batch * r->d->kv_heads, r->d->head_dim};
    add_rows(r, &shape, x, sum, 0);
    return t->sees_half ? applied(r, PLAN_OP_COPY, sum, "sum") : plan_run_ref(r->run, sum);
}

static void add_queries(const Ring *r, const Turn *t, PlanTensor x, PlanTensor *sum) {
    Shape shape = {r->d->batch, r->d->heads * r->d->head_dim};
    add_rows(r, &shape, x, *sum, r->d->seq - t->q_rows);
    if (is_partial(t)) {
        PlanTensor whole = applied(r, PLAN_OP_COPY, *sum, "sum");
        drop(r, *sum);
        *sum = whole;
    }
}

/* Those of the second half of the queries, which attention's kernel wants by themselves. */
static PlanTensor last_sums(const Ring *r, const Turn *t, PlanTensor lse) {
    if (!is_partial(t)) {
        return plan_run_ref(r->run, lse);
    }
    int64_t outer = r->d->batch * r->d->heads;
    PlanTensor y = new_like(r, lse, (uint64_t)(outer * t->q_rows), "lse");
    LAUNCH(r, PLAN_OP_LAST_ROWS, DIMS(outer, 1, r->d->seq, t->q_rows), NULL, lse, y);
    return y;
}

/* Gradients of keys and values as they come from one rank, with this one's: both begin as tensors
 * of their own, and are parts of what was passed on later. */
typedef struct {
    PlanTensor k, v;
} Sums;

static PlanTensor half_of(PlanTensor x, bool second) {
    return (PlanTensor){x.storage, x.offset + second * x.elements / 2, x.elements / 2};
}

/* This rank's own. PyTorch has them in rows of tokens, and copies them head by head first. */
static PlanTensor first_to_pass_on(const Ring *r, const Sums *sums) {
    if (r->d->kv_heads == 1) {
        return joined(r, sums->k, sums->v, "joined");
    }
    PlanTensor k = applied(r, PLAN_OP_COPY, sums->k, "dk");
    PlanTensor v = applied(r, PLAN_OP_COPY, sums->v, "dv");
    PlanTensor y = joined(r, k, v, "joined");
    drop(r, v);
    drop(r, k);
    return y;
}

static Sums refs(const Ring *r, PlanTensor both) {
    return (Sums){plan_run_ref(r->run, half_of(both, false)),
                  plan_run_ref(r->run, half_of(both, true))};
}

static void drop_sums(const Ring *r, const Sums *sums) {
    drop(r, sums->k);
    drop(r, sums->v);
}

/* What came is awaited; the sums are its, and then this rank's gradients with it. `passed` is what
 * went on before. */
static void add_to_what_came(const Ring *r, const Turn *t, const Gradients *g, Exchange *came,
                             PlanTensor *passed, Sums *sums) {
    await(r, came);
    drop(r, *passed);
    Sums before = *sums, taken = refs(r, came->taken);
    drop_sums(r, &before);
    sums->k = sum_of_keys(r, t, g->k, taken.k);
    sums->v = sum_of_keys(r, t, g->v, taken.v);
    drop_sums(r, &taken);
    *passed = joined(r, sums->k, sums->v, "joined");
    PlanTensor old = came->taken;
    *came = pass_on(r, *passed);
    drop(r, old);
}

/* What the turns have in common: what backward was given, what is underway, and what has been
 * worked out so far. */
typedef struct {
    PlanTensor q, k, v, o, lse, dy;
    PlanTensor own;     /* keys and values head by head, joined; later what was joined in vain */
    Exchange all;       /* keys and values */
    Exchange came;      /* gradients of keys and values */
    PlanTensor passed;  /* what went on for those that come next */
    PlanTensor of_turn; /* the sums that the last turn's attention was given */
    Gradients last;     /* what that made */
    PlanTensor dq;
    Sums sums;
} Journey;

static Gradients attend_as(const Ring *r, const Turn *t, const Journey *j, PlanTensor k,
                           PlanTensor v) {
    return attend_backward(r, t, (PlanTensor[]){j->dy, j->q, k, v, j->o, j->of_turn});
}

/* Its own tokens, beside which keys and values are gathered. */
static void first_turn(const Ring *r, Journey *j, PlanTensor *ret_k, PlanTensor *ret_v) {
    Turn turn = turn_of(r, 0);
    j->dq = zeros(r, j->q.elements, "dq");
    j->sums = (Sums){zeros(r, j->k.elements, "dk"), zeros(r, j->k.elements, "dv")};
    *ret_k = head_by_head(r, j->k, "k");
    *ret_v = head_by_head(r, j->v, "v");
    j->own = joined(r, *ret_k, *ret_v, "joined");
    j->all = gather(r, j->own);
    j->of_turn = plan_run_ref(r->run, j->lse);
    j->last = attend_as(r, &turn, j, *ret_k, *ret_v);
    Shape all = {1, (int64_t)j->k.elements};
    add_rows(r, &all, j->last.k, j->sums.k, 0);
    add_rows(r, &all, j->last.v, j->sums.v, 0);
    j->passed = first_to_pass_on(r, &j->sums);
    j->came = pass_on(r, j->passed);
    add_queries(r, &turn, j->last.q, &j->dq);
}

/* The tokens of the rank i before it. k and v: its own, which the first of these lets go. */
static void further_turn(const Ring *r, Journey *j, uint64_t i, PlanTensor k, PlanTensor v) {
    Turn turn = turn_of(r, i);
    await(r, &j->all);
    PlanTensor keys = part_of(&j->all.taken, turn.rank, false, j->k.elements);
    PlanTensor values = part_of(&j->all.taken, turn.rank, true, j->k.elements);
    if (i + 1 < r->ranks) {
        PlanTensor again = joined(r, keys, values, "joined");
        drop(r, j->own);
        j->own = again;
    }
    PlanTensor of_turn = last_sums(r, &turn, j->lse);
    if (i == 1) {
        drop(r, k);
        drop(r, v);
    }
    drop(r, j->of_turn);
    j->of_turn = of_turn;
    Gradients before = j->last;
    j->last = attend_as(r, &turn, j, keys, values);
    drop_gradients(r, &before);
    add_to_what_came(r, &turn, &j->last, &j->came, &j->passed, &j->sums);
    add_queries(r, &turn, j->last.q, &j->dq);
}

/* The gradients of this rank's keys and values have been at every rank. */
static void come_home(const Ring *r, Journey *j, PlanTensor *ret_dx) {
    ret_dx[0] = in_dtype(r, j->dq, dtype_of(r, j->q), "dq");
    drop(r, j->dq);
    await(r, &j->came);
    PlanTensor home = in_dtype(r, j->came.taken, dtype_of(r, j->k), "dk_dv");
    drop(r, j->passed);
    drop_sums(r, &j->sums);
    drop(r, j->own);
    drop_gradients(r, &j->last);
    drop(r, j->came.taken);
    drop(r, j->all.taken);
    drop(r, j->of_turn);
    ret_dx[1] = half_of(home, false);
    ret_dx[2] = plan_run_ref(r->run, half_of(home, true));
}

void plan_ring_backward(const PlanBackward *b) {
    Ring r = ring_of(b->run, b->op);
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
    first_turn(&r, &journey, &k, &v);
    for (uint64_t i = 1; i < r.ranks; i++) {
        further_turn(&r, &journey, i, k, v);
    }
    come_home(&r, &journey, b->dx);
}
