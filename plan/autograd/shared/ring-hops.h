/* plan/autograd/shared/ring-hops.h - the words in which a ring's attention is written: what a hop
 * sees, its kernels, what is underway between ranks.
 *
 * For ring.c (PyTorch's ops) and ring-compiled.c (what a compiler makes of them) alone.
 */
#pragma once

#include "plan/autograd/launch.h"
#include "plan/autograd/shared/ring.h"

typedef struct {
    PlanRun *run;
    const PlanGraphRing *d;
    const double *scale;
    uint64_t ranks, place;
} PlanRing;

/* A collective in flight. NCCL's process group keeps a reference to its input until the collective
 * is waited for. */
typedef struct {
    PlanTensor given, taken;
    uint32_t done; /* event */
    bool awaited;
} PlanRingExchange;

/* In hop i a rank attends to the tokens of the rank i before it on the axis, around its ends. */
typedef struct {
    bool is_own, sees_half; /* all queries see the first half of the keys; else half of them all */
    int64_t q_rows, kv_rows;
    uint64_t rank;
} PlanRingHop;

typedef struct {
    PlanTensor o, lse, seed, offset;
} PlanRingAttended;

typedef struct {
    PlanTensor q, k, v;
} PlanRingGradients;

/* x [outer, rows, inner]. */
typedef struct {
    int64_t outer, inner;
} PlanRingShape;

PlanRing plan_ring_of_op(PlanRun *run, const PlanGraphOp *op);
void plan_ring_drop(const PlanRing *r, PlanTensor x);
PlanDtype plan_ring_dtype_of(const PlanRing *r, PlanTensor x);
PlanTensor plan_ring_new_like(const PlanRing *r, PlanTensor x, uint64_t elements, const char *name);
PlanTensor plan_ring_applied(const PlanRing *r, PlanOpKind kind, PlanTensor x, const char *name);
PlanTensor plan_ring_in_dtype(const PlanRing *r, PlanTensor x, PlanDtype dtype, const char *name);
PlanTensor plan_ring_joined(const PlanRing *r, PlanTensor a, PlanTensor b, const char *name);
PlanTensor plan_ring_head_by_head(const PlanRing *r, PlanTensor x, const char *name);
PlanRingExchange plan_ring_gather(const PlanRing *r, PlanTensor x);
PlanRingExchange plan_ring_pass_on(const PlanRing *r, PlanTensor x);
void plan_ring_await(const PlanRing *r, PlanRingExchange *e);
PlanTensor plan_ring_part_of(const PlanTensor *gathered, uint64_t rank, bool values, uint64_t n);
PlanRingHop plan_ring_hop(const PlanRing *r, uint64_t i);
bool plan_ring_is_partial(const PlanRingHop *t);
PlanRingAttended plan_ring_attend(const PlanRing *r, const PlanRingHop *t, PlanTensor q,
                                  PlanTensor k, PlanTensor v);
void plan_ring_drop_seed(const PlanRing *r, const PlanRingAttended *a);
PlanRingGradients plan_ring_attend_backward(const PlanRing *r, const PlanRingHop *t,
                                            const PlanTensor *given);
void plan_ring_drop_gradients(const PlanRing *r, const PlanRingGradients *g);
PlanTensor plan_ring_zeros(const PlanRing *r, uint64_t elements, const char *name);
PlanTensor plan_ring_last_sums(const PlanRing *r, const PlanRingHop *t, PlanTensor lse);
PlanTensor plan_ring_half_of(PlanTensor x, bool second);
