#include "plan/autograd/shared/ring-hops.h"

PlanRing plan_ring_of_op(PlanRun *run, const PlanGraphOp *op) {
    return (PlanRing){.run = run,
                      .d = plan_graph_ring_of(run->graph, op),
                      .scale = plan_graph_attrs_of(run->graph, op),
                      .ranks = run->graph->shared.context,
                      .place = plan_ring_place(run)};
}

void plan_ring_drop(const PlanRing *r, PlanTensor x) {
    plan_run_unref(r->run, x);
}

PlanDtype plan_ring_dtype_of(const PlanRing *r, PlanTensor x) {
    return plan_run_dtype_of(r->run, x);
}

PlanTensor plan_ring_new_like(const PlanRing *r, PlanTensor x, uint64_t elements,
                              const char *name) {
    return plan_run_new_tensor(r->run, elements, plan_ring_dtype_of(r, x), name);
}

PlanTensor plan_ring_applied(const PlanRing *r, PlanOpKind kind, PlanTensor x, const char *name) {
    PlanTensor y = plan_ring_new_like(r, x, x.elements, name);
    LAUNCH(r->run, kind, DIMS((int64_t)x.elements), NULL, x, y);
    return y;
}

/* A copy, or the tensor itself where it has that dtype. */
PlanTensor plan_ring_in_dtype(const PlanRing *r, PlanTensor x, PlanDtype dtype, const char *name) {
    if (plan_ring_dtype_of(r, x) == dtype) {
        return plan_run_ref(r->run, x);
    }
    PlanTensor y = plan_run_new_tensor(r->run, x.elements, dtype, name);
    LAUNCH(r->run, PLAN_OP_CAST, DIMS((int64_t)x.elements), NULL, x, y);
    return y;
}

PlanTensor plan_ring_joined(const PlanRing *r, PlanTensor a, PlanTensor b, const char *name) {
    PlanTensor y = plan_ring_new_like(r, a, a.elements + b.elements, name);
    LAUNCH(r->run, PLAN_OP_JOIN, DIMS((int64_t)a.elements), NULL, a, b, y);
    return y;
}

/* Heads outermost, as the ring sends them. A single head is so already. */
PlanTensor plan_ring_head_by_head(const PlanRing *r, PlanTensor x, const char *name) {
    const PlanGraphRing *d = r->d;
    if (d->kv_heads == 1) {
        return plan_run_ref(r->run, x);
    }
    PlanTensor y = plan_ring_new_like(r, x, x.elements, name);
    LAUNCH(r->run, PLAN_OP_HEADS_COPY,
           DIMS([HEADS_COPY_BATCH] = d->batch, [HEADS_COPY_SEQ] = d->seq,
                [HEADS_COPY_HEADS] = d->kv_heads, [HEADS_COPY_DIM] = d->head_dim,
                [HEADS_COPY_STRIDE] = d->kv_heads * d->head_dim, [HEADS_COPY_BACK] = 0),
           NULL, x, y);
    return y;
}

static PlanRingExchange issue(const PlanRing *r, PlanOpKind kind, PlanTensor given,
                              uint64_t taken) {
    PlanBuilder *builder = &r->run->builder;
    uint8_t lane = r->run->lanes.ring;
    PlanRingExchange e = {.given = plan_run_ref(r->run, given)};
    e.taken = plan_ring_new_like(r, given, taken, "taken");
    plan_builder_wait_lane(builder, lane, PLAN_LANE_COMPUTE);
    plan_builder_collective(builder, kind, PLAN_AXIS_CONTEXT, r->ranks, 0,
                            plan_run_operand_of(r->run, given),
                            plan_run_operand_of(r->run, e.taken));
    plan_builder_launch(builder, lane);
    e.done = plan_builder_record(builder, lane);
    return e;
}

PlanRingExchange plan_ring_gather(const PlanRing *r, PlanTensor x) {
    return issue(r, PLAN_OP_ALL_GATHER, x, x.elements * r->ranks);
}

PlanRingExchange plan_ring_pass_on(const PlanRing *r, PlanTensor x) {
    return issue(r, PLAN_OP_PASS_ON, x, x.elements);
}

void plan_ring_await(const PlanRing *r, PlanRingExchange *e) {
    if (!e->awaited) {
        plan_builder_wait(&r->run->builder, PLAN_LANE_COMPUTE, e->done);
        plan_ring_drop(r, e->given);
        e->awaited = true;
    }
}

/* ---- hops ---------------------------------------------------------------------------------- */

/* Keys or values of one rank, in what was gathered of all: keys and then values, rank by rank. */
PlanTensor plan_ring_part_of(const PlanTensor *gathered, uint64_t rank, bool values, uint64_t n) {
    return (PlanTensor){gathered->storage, gathered->offset + (2 * rank + values) * n, n};
}

PlanRingHop plan_ring_hop(const PlanRing *r, uint64_t i) {
    bool is_own = i == 0, sees_half = !is_own && i <= r->place;
    int64_t seq = r->d->seq;
    return (PlanRingHop){.is_own = is_own,
                         .sees_half = sees_half,
                         .q_rows = is_own || sees_half ? seq : seq / 2,
                         .kv_rows = sees_half ? seq / 2 : seq,
                         .rank = (r->place + r->ranks - i) % r->ranks};
}

bool plan_ring_is_partial(const PlanRingHop *t) {
    return !t->is_own && !t->sees_half;
}

#define PART_DIMS(r, t)                                                                            \
    DIMS([ATTENTION_PART_BATCH] = (r)->d->batch, [ATTENTION_PART_HEADS] = (r)->d->heads,           \
         [ATTENTION_PART_KV_HEADS] = (r)->d->kv_heads, [ATTENTION_PART_SEQ] = (r)->d->seq,         \
         [ATTENTION_PART_HEAD_DIM] = (r)->d->head_dim, [ATTENTION_PART_Q_ROWS] = (t)->q_rows,      \
         [ATTENTION_PART_KV_ROWS] = (t)->kv_rows, [ATTENTION_PART_CAUSAL] = (t)->is_own)

PlanRingAttended plan_ring_attend(const PlanRing *r, const PlanRingHop *t, PlanTensor q,
                                  PlanTensor k, PlanTensor v) {
    PlanRun *run = r->run;
    const PlanGraphRing *d = r->d;
    bool flash = plan_ring_dtype_of(r, q) != PLAN_FP32;
    uint64_t rows = (uint64_t)(d->batch * d->heads * t->q_rows);
    PlanRingAttended a = {.o = plan_ring_new_like(r, q, rows * (uint64_t)d->head_dim, "o"),
                          .lse = plan_run_new_tensor(run, rows, PLAN_FP32, "lse"),
                          .seed = plan_run_new_tensor(run, flash ? 2 : 1, PLAN_INT64, "seed"),
                          .offset = plan_run_new_tensor(run, 1, PLAN_INT64, "offset")};
    LAUNCH(r->run, PLAN_OP_ATTENTION_PART, PART_DIMS(r, t), r->scale, q, k, v, a.o, a.lse, a.seed,
           a.offset);
    return a;
}

/* ---- forward -------------------------------------------------------------------------------- */

void plan_ring_drop_seed(const PlanRing *r, const PlanRingAttended *a) {
    plan_ring_drop(r, a->offset);
    plan_ring_drop(r, a->seed);
}

PlanRingGradients plan_ring_attend_backward(const PlanRing *r, const PlanRingHop *t,
                                            const PlanTensor *given) {
    const PlanGraphRing *d = r->d;
    uint64_t a_row = (uint64_t)(d->batch * d->head_dim);
    uint64_t n = a_row * (uint64_t)(d->heads * t->q_rows);
    uint64_t m = a_row * (uint64_t)(d->kv_heads * t->kv_rows);
    PlanTensor like = given[1];
    PlanRingGradients g = {plan_ring_new_like(r, like, n, "dq"),
                           plan_ring_new_like(r, like, m, "dk"),
                           plan_ring_new_like(r, like, m, "dv")};
    LAUNCH(r->run, PLAN_OP_ATTENTION_PART_BACKWARD, PART_DIMS(r, t), r->scale, given[0], given[1],
           given[2], given[3], given[4], given[5], g.q, g.k, g.v);
    return g;
}

void plan_ring_drop_gradients(const PlanRing *r, const PlanRingGradients *g) {
    plan_ring_drop(r, g->q);
    plan_ring_drop(r, g->k);
    plan_ring_drop(r, g->v);
}

PlanTensor plan_ring_zeros(const PlanRing *r, uint64_t elements, const char *name) {
    PlanTensor y = plan_run_new_tensor(r->run, elements, PLAN_FP32, name);
    LAUNCH(r->run, PLAN_OP_FILL, DIMS((int64_t)elements), &(double){0}, y);
    return y;
}

/* Those of the second half of the queries, which attention's kernel wants by themselves, one behind
 * the other: as those of a single row lie. */
PlanTensor plan_ring_last_sums(const PlanRing *r, const PlanRingHop *t, PlanTensor lse) {
    if (!plan_ring_is_partial(t)) {
        return plan_run_ref(r->run, lse);
    }
    int64_t outer = r->d->batch * r->d->heads;
    if (outer == 1 && !plan_graph_is_compiled(r->run->graph)) {
        uint64_t n = (uint64_t)t->q_rows;
        return plan_run_ref(r->run, (PlanTensor){lse.storage, lse.offset + lse.elements - n, n});
    }
    PlanTensor y = plan_ring_new_like(r, lse, (uint64_t)(outer * t->q_rows), "lse");
    LAUNCH(r->run, PLAN_OP_LAST_ROWS,
           DIMS([LAST_ROWS_OUTER] = outer, [LAST_ROWS_INNER] = 1, [LAST_ROWS_X_ROWS] = r->d->seq,
                [LAST_ROWS_ROWS] = t->q_rows),
           NULL, lse, y);
    return y;
}

PlanTensor plan_ring_half_of(PlanTensor x, bool second) {
    return (PlanTensor){x.storage, x.offset + second * x.elements / 2, x.elements / 2};
}
