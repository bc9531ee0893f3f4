/* plan/autograd/shared/ring-hops.h - the words in which a ring's attention is written: what a hop
 * sees, its kernels, and what is on its way between ranks.
 *
 * For ring.c (PyTorch's ops) and ring-compiled.c (what a compiler makes of them) alone. In hop i a
 * rank attends to the tokens of the rank i places before it on the axis, around its ends.
 */
#pragma once

#include "plan/autograd/launch.h"
#include "plan/autograd/shared/ring.h"

typedef struct {
    PlanRun *run;
    const PlanGraphRing *d;
    const double *scale;
    uint64_t ranks, place; /* ranks of the axis, and this rank's place on it */
} PlanRing;

/* A collective on its way. NCCL's process group keeps a reference to its input until the collective
 * is waited for. */
typedef struct {
    PlanTensor given, taken;
    uint32_t done; /* event */
    bool awaited;
} PlanRingExchange;

typedef struct {
    bool is_own;             /* hop 0: all queries see their own keys, causally */
    bool sees_half;          /* all queries see the first half of the keys */
    int64_t q_rows, kv_rows; /* queries that see any, and keys that are seen, of each sequence */
    uint64_t rank;           /* whose keys they are */
} PlanRingHop;

/* What attention of a hop gives: its result, the logarithms of its sums, and the state of its
 * random numbers. */
typedef struct {
    PlanTensor o, lse, seed, offset;
} PlanRingAttended;

typedef struct {
    PlanTensor q, k, v;
} PlanRingGradients;

/* x is [outer, rows, inner]. */
typedef struct {
    int64_t outer, inner;
} PlanRingShape;

PlanRing plan_ring_of_op(PlanRun *run, const PlanGraphOp *op);

/* ---- tensors: what is returned has a reference of its own, but for views --------------------- */

void plan_ring_drop(const PlanRing *r, PlanTensor x); /* lets go of it */
PlanDtype plan_ring_dtype_of(const PlanRing *r, PlanTensor x);
/* A new tensor in x's dtype. */
PlanTensor plan_ring_new_like(const PlanRing *r, PlanTensor x, uint64_t elements, const char *name);
/* What an op of one input makes of x, number by number. */
PlanTensor plan_ring_applied(const PlanRing *r, PlanOpKind kind, PlanTensor x, const char *name);
/* x in a dtype: a cast, or x itself if it has that dtype. */
PlanTensor plan_ring_in_dtype(const PlanRing *r, PlanTensor x, PlanDtype dtype, const char *name);
PlanTensor plan_ring_joined(const PlanRing *r, PlanTensor a, PlanTensor b, const char *name);
PlanTensor plan_ring_zeros(const PlanRing *r, uint64_t elements, const char *name); /* in fp32 */
/* Keys or values with heads outermost, as the ring sends them; one head lies so already. */
PlanTensor plan_ring_head_by_head(const PlanRing *r, PlanTensor x, const char *name);
/* A view of half of x. */
PlanTensor plan_ring_half_of(PlanTensor x, bool second);

/* ---- between ranks --------------------------------------------------------------------------- */

PlanRingExchange plan_ring_gather(const PlanRing *r, PlanTensor x);
PlanRingExchange plan_ring_pass_on(const PlanRing *r, PlanTensor x);
/* Compute waits for it, unless it has; what was given is let go of. */
void plan_ring_await(const PlanRing *r, PlanRingExchange *e);
/* A view of one rank's keys, or values, n elements, in what was gathered of all ranks. */
PlanTensor plan_ring_part_of(const PlanTensor *gathered, uint64_t rank, bool values, uint64_t n);

/* ---- hops ------------------------------------------------------------------------------------ */

PlanRingHop plan_ring_hop(const PlanRing *r, uint64_t i);
/* Whether only the second half of the queries sees anything. */
bool plan_ring_is_partial(const PlanRingHop *t);
PlanRingAttended plan_ring_attend(const PlanRing *r, const PlanRingHop *t, PlanTensor q,
                                  PlanTensor k, PlanTensor v);
void plan_ring_drop_seed(const PlanRing *r, const PlanRingAttended *a);
/* given: dy, q, k, v, o and lse, in the order of attention_part_backward's operands. */
PlanRingGradients plan_ring_attend_backward(const PlanRing *r, const PlanRingHop *t,
                                            const PlanTensor *given);
void plan_ring_drop_gradients(const PlanRing *r, const PlanRingGradients *g);
/* The part of lse (the logarithms of the sums, of all queries) that a hop's kernel reads: all of it
 * or, if the hop is partial, that of the second half of the queries. With a reference of its
 * own. */
PlanTensor plan_ring_last_sums(const PlanRing *r, const PlanRingHop *t, PlanTensor lse);
