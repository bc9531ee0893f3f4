/* plan/flavours/fsdp1.h - what the files of FSDP1 share: fsdp1-layout.c, -gather.c, -reduce.c and
 * fsdp1.c, where the order of a step stands. Inside plan/ only.
 */
#pragma once

#include "plan/flavours/divisor.h"
#include "plan/flavours/flat.h"
#include "plan/flavours/limiter.h"

enum {
    PLAN_FSDP1_COMPUTE,
    PLAN_FSDP1_PRE_UNSHARD,
    PLAN_FSDP1_UNSHARD,
    PLAN_FSDP1_REDUCE,
    PLAN_FSDP1_ALL_REDUCE,
    PLAN_FSDP1_C10D /* up to PyTorch 2.0 only */
};

/* Buffers of a unit; each is the same in every section. PLAN_NONE: there is none. */
typedef struct {
    uint32_t local;         /* the shard that the optimizer owns; offloaded: while it is made */
    uint32_t fetched[2];    /* offloaded: it on the device, and the next while the first is there */
    uint32_t fetched_again; /* unsharded and not cast: the same for backward */
    uint32_t cast;          /* of it, in the dtype of compute */
    uint32_t full;          /* what compute uses */
    uint32_t flat_grad;     /* the gradient of full */
    uint32_t next_flat_grad; /* of a later pass, added to it */
    uint32_t cast_grad;      /* flat_grad cast, where it is padded too */
    uint32_t ready;          /* flat_grad cast and padded, to be reduced */
    uint32_t reduced;        /* what the reduction makes, where the optimizer reads another dtype */
    uint32_t grad, next_grad; /* what the optimizer reads; the second where the first lives on */
    uint32_t low_grad;        /* grad in the dtype of compute again, and read in its place */
    uint32_t raised;          /* that in the dtype of the shard once more, to be added to */
} PlanFsdp1Buffers;

typedef struct {
    PlanFsdp1Buffers b;
    PlanTensor flat_grad; /* the gradient that has not been reduced, of this and earlier passes */
    PlanTensor new_flat_grad; /* this pass's, where there were earlier ones */
    uint32_t grad;            /* buffer of the reduced gradient; PLAN_NONE */
    uint32_t fetched;         /* of b.fetched the one that lives; PLAN_NONE */
    bool is_fetched_again;    /* b.fetched_again lives */
    bool shows;               /* parameters have gradients, whatever is in them */
    bool holds_low;           /* they are views of b.low_grad, which has been raised */
    bool gathered, prefetched, awaits_backward;
    bool is_in_backward; /* between its pre-backward and post-backward */
} PlanFsdp1Unit;

typedef struct {
    PlanFlat flat;
    PlanLimiter limiter;
    bool shards, casts, keeps_views; /* views: use_orig_params */
    bool keeps_low;                  /* keep_low_precision_grads, where that changes something */
    bool shows_low;                  /* use_orig_params, and gradients may be so kept */
    bool is_of_2_0, is_of_1_13;      /* of 2.0 or before: fsdp1.c says what differs */
    bool pads_always;                /* gradients also by nothing, which copies them, as 1.13 did */
    uint64_t replicas;               /* groups that hold a copy of the model */
    PlanDtype master, param, reduce;
    PlanDivisor divisor;
    PlanDivisor replicas_divisor; /* 2.0: and between replicas by themselves */
    PlanFsdp1Unit *units;
    uint32_t
        *shown; /* flat: by parameter, the unit that the optimizer sees in its place; PLAN_NONE */
    GArray *pre_forward_order, *post_forward_order; /* uint32_t */
    bool order_known;
    PlanTensor zero; /* the norm of no gradients, made by the first clipping; later than 2.4 */
} PlanFsdp1;

static inline uint32_t plan_fsdp1_parameter_of(const PlanRun *run, uint32_t unit, uint32_t i) {
    return g_array_index(run->units[unit].parameters, uint32_t, i);
}

static inline bool plan_fsdp1_has_parameters(const PlanRun *run, uint32_t unit) {
    return run->units[unit].parameters->len > 0;
}

/* Where replicas reduce, and what follows. */
static inline uint8_t plan_fsdp1_lane_of_replicas(const PlanFsdp1 *f) {
    return f->replicas > 1 && !f->is_of_2_0 ? PLAN_FSDP1_ALL_REDUCE : PLAN_FSDP1_REDUCE;
}

/* With use_orig_params: whether some parameter of the unit is a view of what this rank has. */
bool plan_fsdp1_has_views(const PlanRun *run, uint32_t unit);
uint64_t plan_fsdp1_elements(PlanRun *run, uint32_t buffer);
bool plan_fsdp1_lives(const PlanRun *run, uint32_t buffer);
void plan_fsdp1_fill(PlanRun *run, uint8_t lane, uint32_t buffer);

/* Layout: who has what. */
void plan_fsdp1_shapes_of_ranks(const PlanRun *run, char **ret_shapes);
void plan_fsdp1_shards_of_units(const PlanRun *run, uint64_t *ret_elements);
void plan_fsdp1_construct(PlanRun *run);
void plan_fsdp1_initialize(PlanRun *run); /* in the first forward */
void plan_fsdp1_clear(PlanRun *run);

/* Launches the collective of the shard group that has been begun; lane goes on when it has ended.
 * c10d of PyTorch 2.0 ran it on a lane of its own, and marked for it what it reads and writes
 * (since 2.2 it does not, pytorch #111431): what is freed then waits for every collective issued so
 * far. */
void plan_fsdp1_collective(PlanRun *run, uint8_t lane, uint32_t reads, uint32_t writes);

/* Gathering. */
/* Units are resharded after forward (the root never is), and by backwards that do not reduce. */
bool plan_fsdp1_reshards(const PlanStrategy *strategy);
void plan_fsdp1_unshard(PlanRun *run, uint32_t unit);
void plan_fsdp1_prefetch(PlanRun *run, uint32_t unit); /* unshard, unless it is prefetched */
/* is_free: the gathered parameter is dropped. */
void plan_fsdp1_reshard(PlanRun *run, uint32_t unit, bool is_free);

/* Reducing. */
void plan_fsdp1_flatten(PlanRun *run, uint32_t unit, const PlanTensor *gradients);
void plan_fsdp1_reduce(PlanRun *run, uint32_t unit);
void plan_fsdp1_show_unreduced(PlanRun *run, uint32_t unit); /* as the parameters' gradients */
void plan_fsdp1_lower(PlanRun *run, uint32_t unit);          /* its gradient to compute's dtype */
void plan_fsdp1_raise(PlanRun *run, uint32_t unit);          /* and back, if it was lowered */
void plan_fsdp1_let_go_of_new(PlanRun *run, uint32_t unit);  /* of a gradient that has been added */
void plan_fsdp1_drop_gradient(PlanRun *run, uint32_t unit);  /* if there is one */
void plan_fsdp1_drop_gradients(PlanRun *run);
void plan_fsdp1_drop_unseen_gradients(PlanRun *run);
