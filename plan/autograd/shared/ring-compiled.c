/* plan/autograd/shared/ring-compiled.c - a ring's attention inside of a compiled block.
 *
 * What Inductor (PyTorch 2.13) makes of the same Python, recorded (tests/oracle/,
 * *-context-compiled*): it waits where it issues, so nothing goes on beside a transfer. What was
 * gathered is kept for backward, which asks for the same again and is given it: it gathers no
 * more. What a hop gives is merged by one kernel, and so is what is added to gradients.
 */
#include "plan/autograd/shared/ring-hops.h"

static PlanTensor received(const PlanRing *r, PlanRingExchange sent) {
    plan_ring_await(r, &sent);
    return sent.taken;
}

/* ---- forward -------------------------------------------------------------------------------- */

/* x, in rows of tokens, to a part of y that lies head by head; or back. */
static void turn_heads(const PlanRing *r, PlanTensor x, PlanTensor y, bool back) {
    const PlanGraphRing *d = r->d;
    LAUNCH(r->run, PLAN_OP_HEADS_COPY,
           DIMS([HEADS_COPY_BATCH] = d->batch, [HEADS_COPY_SEQ] = d->seq,
                [HEADS_COPY_HEADS] = d->kv_heads, [HEADS_COPY_DIM] = d->head_dim,
                [HEADS_COPY_STRIDE] = d->kv_heads * d->head_dim, [HEADS_COPY_BACK] = back),
           NULL, x, y);
}

static PlanTensor gathered_of(const PlanRing *r, PlanTensor k, PlanTensor v) {
    PlanTensor own = plan_ring_new_like(r, k, 2 * k.elements, "joined");
    turn_heads(r, k, plan_ring_half_of(own, false), false);
    turn_heads(r, v, plan_ring_half_of(own, true), false);
    PlanRingExchange sent = plan_ring_gather(r, own);
    PlanTensor all = received(r, sent);
    plan_ring_drop(r, own);
    return all;
}

static PlanRingAttended attend_in(const PlanRing *r, const PlanRingHop *hop, PlanTensor q,
                                  const PlanTensor *all, uint64_t n) {
    return plan_ring_attend(r, hop, q, plan_ring_part_of(all, hop->rank, false, n),
                            plan_ring_part_of(all, hop->rank, true, n));
}

/* What has been worked out so far, with another hop's: in fp32, but for the last. */
static void merge(const PlanRing *r, const PlanRingHop *hop, const PlanRingAttended *block,
                  PlanDtype dtype, PlanRingAttended *merged) {
    const PlanGraphRing *d = r->d;
    PlanTensor y = plan_run_new_tensor(r->run, merged->o.elements, dtype, "out");
    PlanTensor lse = plan_ring_new_like(r, merged->lse, merged->lse.elements, "lse");
    LAUNCH(r->run, PLAN_OP_MERGE_TURN,
           DIMS([MERGE_TURN_BATCH] = d->batch, [MERGE_TURN_ROWS] = d->seq,
                [MERGE_TURN_HEADS] = d->heads, [MERGE_TURN_DIM] = d->head_dim,
                [MERGE_TURN_BLOCK_ROWS] = hop->q_rows),
           NULL, merged->o, merged->lse, block->o, block->lse, y, lse);
    plan_ring_drop(r, merged->o);
    plan_ring_drop(r, merged->lse);
    plan_ring_drop_seed(r, merged);
    plan_ring_drop(r, block->lse);
    plan_ring_drop(r, block->o);
    *merged = (PlanRingAttended){y, lse, block->seed, block->offset};
}

/* A checkpointed block's backward and its recomputed forward are one program. In it a kernel writes
 * o, and for each hop's attention a copy of the rows of o that it reads. The plan makes these
 * copies, for their bytes, but reads o itself. On two recorded ranks (the second of 4 and of 8)
 * there are none (tests/oracle/recorded.md). */
static void copy_for_hops(const PlanRing *r, const PlanGraphOp *op, PlanTensor o) {
    const PlanGraphRing *d = r->d;
    uint64_t half = o.elements / 2, n = 0;
    for (uint64_t i = plan_ring_joins(r->run); i < r->ranks; i++) {
        PlanRingHop hop = plan_ring_hop(r, i);
        n += plan_ring_is_partial(&hop) ? half : o.elements;
    }
    PlanTensor copies = plan_ring_new_like(r, o, n, "copies"), copy = copies;
    for (uint64_t i = plan_ring_joins(r->run); i < r->ranks; i++) {
        PlanRingHop hop = plan_ring_hop(r, i);
        copy.elements = plan_ring_is_partial(&hop) ? half : o.elements;
        LAUNCH(r->run, PLAN_OP_LAST_ROWS,
               DIMS([LAST_ROWS_OUTER] = d->batch, [LAST_ROWS_INNER] = d->heads * d->head_dim,
                    [LAST_ROWS_X_ROWS] = d->seq, [LAST_ROWS_ROWS] = hop.q_rows),
               NULL, o, copy);
        copy.offset += copy.elements;
    }
    plan_run_give(r->run, op, 5, copies);
}

void plan_ring_compiled_forward(PlanRun *run, const PlanGraphOp *op) {
    PlanRing ring = plan_ring_of_op(run, op), *r = &ring;
    PlanTensor q = plan_run_given(run, op, 0), k = plan_run_given(run, op, 1);
    PlanTensor all = gathered_of(r, k, plan_run_given(run, op, 2));
    PlanRingHop hop = plan_ring_hop(r, 0);
    PlanRingAttended merged = attend_in(r, &hop, q, &all, k.elements);
    for (uint64_t i = 1; i < r->ranks; i++) {
        hop = plan_ring_hop(r, i);
        PlanRingAttended block = attend_in(r, &hop, q, &all, k.elements);
        PlanDtype dtype = i + 1 < r->ranks ? PLAN_FP32 : plan_ring_dtype_of(r, q);
        merge(r, &hop, &block, dtype, &merged);
    }
    plan_run_give(r->run, op, 0, merged.o);
    plan_run_give(r->run, op, 1, merged.lse);
    plan_run_give(r->run, op, 2, merged.seed);
    plan_run_give(r->run, op, 3, merged.offset);
    plan_run_give(r->run, op, 4, all);
    if (run->builder.phase == PLAN_PHASE_RECOMPUTE) {
        copy_for_hops(r, op, merged.o);
    } else {
        plan_run_give(r->run, op, 5, PLAN_NO_TENSOR);
    }
}

/* ---- backward ------------------------------------------------------------------------------- */

/* Gradients of keys and values on their way: what this rank passed on, whose place the next sum
 * takes, and what came. */
typedef struct {
    PlanTensor passed, came;
} Journey;

/* In fp32: this hop's, and what came. */
static PlanTensor sum_of_keys(const PlanRing *r, const PlanRingHop *hop, PlanTensor came,
                              const PlanRingGradients *g) {
    const PlanGraphRing *d = r->d;
    uint64_t n = (uint64_t)(2 * d->batch * d->kv_heads * d->seq * d->head_dim);
    PlanTensor sum = plan_run_new_tensor(r->run, n, PLAN_FP32, "sum");
    LAUNCH(r->run, PLAN_OP_ADD_KEYS,
           DIMS([ADD_KEYS_OUTER] = d->batch * d->kv_heads, [ADD_KEYS_SEQ] = d->seq,
                [ADD_KEYS_INNER] = d->head_dim, [ADD_KEYS_ROWS] = hop->kv_rows),
           NULL, came, g->k, g->v, sum);
    plan_ring_drop(r, g->v);
    plan_ring_drop(r, g->k);
    return sum;
}

static void pass_on(const PlanRing *r, const PlanRingHop *hop, const PlanRingGradients *g,
                    Journey *journey) {
    plan_ring_drop(r, journey->passed);
    journey->passed = sum_of_keys(r, hop, journey->came, g);
    if (journey->came.storage != PLAN_NONE) { /* a sum is copied before it is sent */
        plan_ring_drop(r, journey->came);
        PlanTensor copy = plan_ring_applied(r, PLAN_OP_COPY, journey->passed, "joined");
        plan_ring_drop(r, journey->passed);
        journey->passed = copy;
    }
    journey->came = received(r, plan_ring_pass_on(r, journey->passed));
}

/* Gradients of queries: the sum so far, and what no kernel has added yet, for one adds two. */
typedef struct {
    PlanTensor sum, waiting;
    int64_t rows; /* of what waits */
} Queries;

static void add_queries(const PlanRing *r, const PlanRingHop *hop, PlanTensor dq, bool is_last,
                        Queries *queries) {
    const PlanGraphRing *d = r->d;
    PlanTensor a = queries->waiting;
    if (a.storage == PLAN_NONE && !is_last) {
        queries->waiting = dq;
        queries->rows = hop->q_rows;
        return;
    }
    int64_t a_rows = a.storage == PLAN_NONE ? hop->q_rows : queries->rows;
    PlanDtype dtype = is_last ? plan_ring_dtype_of(r, dq) : PLAN_FP32;
    uint64_t n = (uint64_t)(d->batch * d->seq * d->heads * d->head_dim);
    PlanTensor sum = plan_run_new_tensor(r->run, n, dtype, "dq");
    LAUNCH(r->run, PLAN_OP_ADD_QUERIES,
           DIMS([ADD_QUERIES_OUTER] = d->batch, [ADD_QUERIES_SEQ] = d->seq,
                [ADD_QUERIES_INNER] = d->heads * d->head_dim, [ADD_QUERIES_A_ROWS] = a_rows,
                [ADD_QUERIES_B_ROWS] = hop->q_rows),
           NULL, queries->sum, a, dq, sum);
    plan_ring_drop(r, queries->sum);
    plan_ring_drop(r, a);
    plan_ring_drop(r, dq);
    *queries = (Queries){sum, PLAN_NO_TENSOR, 0};
}

static PlanTensor come_home(const PlanRing *r, PlanTensor home, bool values, PlanDtype dtype) {
    PlanTensor part = plan_ring_half_of(home, values);
    PlanTensor y = plan_run_new_tensor(r->run, part.elements, dtype, values ? "dv" : "dk");
    turn_heads(r, part, y, true);
    return y;
}

void plan_ring_compiled_backward(const PlanBackward *b) {
    PlanRing ring = plan_ring_of_op(b->run, b->op), *r = &ring;
    PlanTensor q = plan_run_value(b->run, value_at(b, 0)),
               o = plan_run_value(b->run, value_at(b, 3));
    PlanTensor k = plan_run_value(b->run, value_at(b, 1)),
               all = plan_run_value(b->run, value_at(b, 7));
    PlanTensor lse = plan_run_value(b->run, value_at(b, 4));
    Journey journey = {PLAN_NO_TENSOR, PLAN_NO_TENSOR};
    Queries queries = {PLAN_NO_TENSOR, PLAN_NO_TENSOR, 0};
    for (uint64_t i = 0; i < r->ranks; i++) {
        PlanRingHop hop = plan_ring_hop(r, i);
        PlanTensor of_hop = plan_ring_last_sums(r, &hop, lse);
        PlanRingGradients g = plan_ring_attend_backward(
            r, &hop,
            (PlanTensor[]){b->dy[0], q, plan_ring_part_of(&all, hop.rank, false, k.elements),
                           plan_ring_part_of(&all, hop.rank, true, k.elements), o, of_hop});
        plan_ring_drop(r, of_hop);
        pass_on(r, &hop, &g, &journey);
        add_queries(r, &hop, g.q, i + 1 == r->ranks, &queries);
    }
    plan_ring_drop(r, journey.passed);
    b->dx[0] = queries.sum;
    b->dx[1] = come_home(r, journey.came, false, plan_ring_dtype_of(r, k));
    b->dx[2] = come_home(r, journey.came, true, plan_ring_dtype_of(r, k));
    plan_ring_drop(r, journey.came);
}
