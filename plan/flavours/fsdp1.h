/* plan/flavours/fsdp1.h - the state of FSDP1, and what its files call of each other.
 *
 * Inside plan/ only. fsdp1.c has the order of a step; fsdp1-layout.c names the buffers and makes
 * the shards; fsdp1-gather.c goes from a shard to its flat parameter and back; fsdp1-reduce.c goes
 * from gradients to the shard's gradient.
 *
 * A unit has one flat parameter. Where FSDP1 shards, each rank owns an equal part of it, the shard,
 * and gathers the whole before it computes. Where it does not shard (NO_SHARD, or one rank), the
 * shard is the whole, and its cast takes the place of what would be gathered.
 */
#pragma once

#include "plan/autograd/launch.h"
#include "plan/flavours/divisor.h"
#include "plan/flavours/flat.h"
#include "plan/flavours/limiter.h"

/* Lanes, as PyTorch's streams are called. */
enum {
    PLAN_FSDP1_COMPUTE,
    PLAN_FSDP1_PRE_UNSHARD, /* casts shards, or fetches them from the host */
    PLAN_FSDP1_UNSHARD,     /* gathers */
    PLAN_FSDP1_REDUCE,
    PLAN_FSDP1_ALL_REDUCE, /* between replicas */
    PLAN_FSDP1_C10D        /* PyTorch 2.0 and before: the process group's own */
};

/* The buffers of a unit, which are the same in every section. PLAN_NONE: the unit has no such
 * buffer. */
typedef struct {
    /* The parameter. */
    uint32_t local; /* the shard that the optimizer steps; offloaded, it dies with construction */
    uint32_t fetched[2];    /* offloaded: the shard on the device, and the next one, which is
                             * allocated before the first is freed */
    uint32_t fetched_again; /* offloaded, neither sharded nor cast: fetched for backward */
    uint32_t cast;          /* the shard in the dtype of compute */
    uint32_t full;          /* what kernels read: the gathered flat parameter */

    /* The gradient of the whole flat parameter. */
    uint32_t flat_grad;      /* this pass's, or the sum of passes that did not reduce */
    uint32_t next_flat_grad; /* a later pass's, until it is added to that sum */
    uint32_t cast_grad;      /* flat_grad in the dtype of the reduction, if it is padded as well */
    uint32_t ready;          /* flat_grad cast and padded: what the reduction reads */

    /* The gradient of the shard. */
    uint32_t reduced;   /* what the reduction writes, if the optimizer reads another dtype */
    uint32_t grad;      /* what the optimizer reads ... */
    uint32_t next_grad; /* ... and a later one, until it is added to grad, which lives on */
    uint32_t low_grad;  /* keep_low_precision_grads: grad in the dtype of compute, read instead */
    uint32_t raised;    /* low_grad in the dtype of the shard, so that more can be added to it */
} PlanFsdp1Buffers;

/* A unit while the program is written. */
typedef struct {
    PlanFsdp1Buffers b;

    /* What of its buffers lives. */
    PlanTensor flat_grad;     /* the gradient that has not been reduced yet, of all passes so far */
    PlanTensor new_flat_grad; /* this pass's, if it is added to earlier ones */
    uint32_t grad;            /* the buffer that holds the reduced gradient; PLAN_NONE: none does */
    uint32_t fetched;         /* which of b.fetched lives; PLAN_NONE: neither does */
    bool is_fetched_again;    /* b.fetched_again lives */
    bool holds_low;           /* b.low_grad lives on beside b.raised: gradients are views of it */

    /* Where it is in its pass. */
    bool gathered, prefetched;
    bool awaits_forward;  /* its forward has not run in this pass */
    bool awaits_backward; /* its forward has run, backward will come to it, and has not yet */
    bool is_in_backward;  /* its pre-backward has come, and its post-backward has not */
    bool shows;           /* its parameters have a .grad, whatever is in it */
} PlanFsdp1Unit;

typedef struct {
    /* What the strategy and the ranks decide; constant after construction. */
    PlanFlat flat;
    bool shards;                /* a shard is less than the whole */
    bool casts;                 /* compute has another dtype than the shards */
    bool keeps_views;           /* use_orig_params: parameters are views of the shard */
    bool keeps_low;             /* keep_low_precision_grads, where it changes anything */
    bool shows_low;             /* keep_low_precision_grads with use_orig_params */
    bool is_of_2_0, is_of_1_13; /* PyTorch is 2.0 or before; 1.13: fsdp1.c says what differs */
    bool pads_always;           /* 1.13: a gradient that fits is copied all the same */
    uint64_t replicas;          /* how many groups hold a copy of the model each */
    bool reduces_replicas;      /* among them; hybrid's single group does, too, alone */
    uint32_t frees_of_step; /* that the limiter may wait for, at most; without an evaluation's */
    PlanDtype master, param, reduce; /* dtypes of shards, of compute, of the reduction */
    PlanDivisor divisor;
    PlanDivisor replicas_divisor; /* 2.0 and before, which divides between replicas by itself */
    uint32_t *shown; /* without use_orig_params, by parameter: the unit that the optimizer sees in
                      * its place; PLAN_NONE: it sees nothing there */

    /* Where the program is. */
    PlanFsdp1Unit *units;
    PlanLimiter limiter;
    GArray *pre_forward_order, *post_forward_order; /* units, uint32_t */
    bool order_known;                               /* a forward has noted pre_forward_order */
    PlanTensor zero; /* later than 2.4: the norm of no gradients, which the first clipping makes */
} PlanFsdp1;

/* The lane on which replicas reduce, and on which what follows that runs. */
static inline uint8_t plan_fsdp1_lane_of_replicas(const PlanFsdp1 *f) {
    return f->reduces_replicas && !f->is_of_2_0 ? PLAN_FSDP1_ALL_REDUCE : PLAN_FSDP1_REDUCE;
}

/* ---- layout: who has what (fsdp1-layout.c) --------------------------------------------------- */

/* Hooks of the flavour (flavour.h). */
void plan_fsdp1_shapes_of_ranks(const PlanRun *run, char **ret_shapes);
void plan_fsdp1_shards_of_units(const PlanRun *run, uint64_t *ret_elements);
void plan_fsdp1_construct(PlanRun *run);
void plan_fsdp1_clear(PlanRun *run);
/* What the first forward does before all else (lazy initialization): each unit's storages are made
 * and dropped once. */
void plan_fsdp1_initialize(PlanRun *run);

uint64_t plan_fsdp1_elements(PlanRun *run, uint32_t buffer);
bool plan_fsdp1_lives(const PlanRun *run, uint32_t buffer);
void plan_fsdp1_fill(PlanRun *run, uint8_t lane, uint32_t buffer); /* with zeros */

/* With use_orig_params: whether any parameter of the unit is a view of this rank's shard; or any
 * that is trained. */
bool plan_fsdp1_has_views(const PlanRun *run, uint32_t unit, bool frozen_too);

/* ---- gathering (fsdp1-gather.c) -------------------------------------------------------------- */

/* Whether units are dropped after forward (the root never is), and after a backward that does not
 * reduce. */
bool plan_fsdp1_reshards(const PlanStrategy *strategy);
void plan_fsdp1_unshard(PlanRun *run, uint32_t unit);
void plan_fsdp1_prefetch(PlanRun *run, uint32_t unit); /* unshards it, unless that is done */
/* is_free: the gathered parameter is freed; false: it stays for backward. */
void plan_fsdp1_reshard(PlanRun *run, uint32_t unit, bool is_free);
/* Launches a collective of the shard group; `lane` goes on when it has ended. Up to PyTorch 2.0,
 * c10d ran it on a lane of its own and marked for that what it reads and writes, so that freed
 * memory waits for every collective issued so far (since 2.2 it does not, pytorch #111431). */
void plan_fsdp1_collective(PlanRun *run, uint8_t lane, PlanOpKind kind, uint32_t reads,
                           uint32_t writes);

/* ---- reducing (fsdp1-reduce.c) --------------------------------------------------------------- */

/* Joins the gradients of a unit's parameters to the flat parameter's (flavour.h). */
void plan_fsdp1_flatten(PlanRun *run, uint32_t unit, const PlanTensor *gradients);
void plan_fsdp1_reduce(PlanRun *run, uint32_t unit);
/* In a pass that does not reduce: what it made becomes the parameters' .grad. */
void plan_fsdp1_show_unreduced(PlanRun *run, uint32_t unit);
/* Frees this pass's gradient, which has been added to that of earlier ones. */
void plan_fsdp1_let_go_of_new(PlanRun *run, uint32_t unit);
/* keep_low_precision_grads: casts the unit's gradient to the dtype of compute, and back if it is
 * so. */
void plan_fsdp1_lower(PlanRun *run, uint32_t unit);
void plan_fsdp1_raise(PlanRun *run, uint32_t unit);
void plan_fsdp1_drop_gradient(PlanRun *run, uint32_t unit); /* if it has one */
void plan_fsdp1_drop_gradients(PlanRun *run);
/* Drops the gradients of units of which this rank's parameters show none. */
void plan_fsdp1_drop_unseen_gradients(PlanRun *run);
