/* plan/flavours/fsdp2.h - the state of FSDP2, and what its files call of each other.
 *
 * Inside plan/ only. fsdp2.c has the order of a step; fsdp2-layout.c deals parameters out;
 * fsdp2-gather.c goes from shards to whole parameters and back, fsdp2-float8.c the same for weights
 * that are gathered in float8; fsdp2-gradients.c has the gradients of whole parameters and packs
 * them, fsdp2-reduce.c goes from there to the shards'.
 *
 * Each parameter is dealt out by its first dimension in chunks of rows, one to each rank. What one
 * rank has of all parameters of a unit, padded, is its slice; slices side by side are what a unit
 * gathers and what it reduces.
 */
#pragma once

#include "plan/autograd/launch.h"

/* Lanes, as PyTorch's streams are called. */
enum {
    PLAN_FSDP2_COMPUTE,
    PLAN_FSDP2_COPY_IN, /* fills gather buffers */
    PLAN_FSDP2_GATHER,
    PLAN_FSDP2_REDUCE,
    PLAN_FSDP2_REPLICATE /* reduces between replicas */
};

/* Numbers of buffers and events are PLAN_NONE while there is none, or none to wait for. */
typedef struct {
    /* How it is dealt out; constant after construction. */
    PlanAxis axis;     /* of the ranks that shard it */
    uint64_t ranks;    /* on that axis */
    bool communicates; /* it gathers and reduces: one rank alone does so in PyTorch 2.4 only */
    double divisor;    /* experts: what sums of gradients are divided by; 0: they are averaged */
    bool cuts_rows;    /* experts: each one's matrix is dealt out, by its second dimension */
    PlanDtype gathers; /* the dtype that is gathered; uint8 if some parameters are in float8 */
    uint64_t slice;    /* elements, in that dtype, of one rank's part, padding and all */
    uint64_t plain;    /* how many parameter elements of the slice are not in float8 */
    uint64_t trained;  /* how many belong to trained parameters: the slice that is reduced */

    /* Gathering. */
    uint32_t gathered;     /* the gather buffer */
    uint32_t gather_event; /* the all-gather has run */
    uint32_t copied_event; /* the copy-out has run */
    bool unsharded;        /* whole parameters are there */
    bool pending;          /* one rank: unshard has been called, and copy-out has not */

    /* Parts (reshard_after_forward=N): what this rank keeps from forward to backward. */
    bool in_parts;         /* it is kept so now */
    bool leaves_parts;     /* a backward that did not come to it left parts, which still live */
    uint32_t parted_event; /* the parts are there */

    /* Where it is in backward. */
    bool in_backward; /* its pre-backward has run in this backward */
    bool reduced;     /* its post-backward has run in this pass */

    /* Reducing. */
    uint32_t gradients;   /* buffer of the shards' gradients */
    bool on_host;         /* offloaded: the host has gradients, to which new ones are added */
    uint32_t partial;     /* reduced within the group, but not yet between replicas */
    uint32_t all_reduced; /* what the replicas reduced, held until backward ends */
    uint32_t ready_event; /* PyTorch 2.4: its gradients are ready */
} PlanFsdp2Unit;

enum {
    PLAN_FSDP2_NOT_NAMED = 2 /* neither of a parameter's two scales */
};

typedef struct {
    /* How it is dealt out; constant after construction. */
    uint64_t chunk_rows;    /* rows of its first dimension that each rank gets, the last fewer */
    uint64_t row;           /* elements of such a row */
    uint64_t local;         /* elements that are this rank's, without padding */
    uint64_t trained_start; /* where its own begin in the unit's slice of trained parameters */
    bool in_float8;         /* it is gathered in float8 */

    /* Its shard. */
    uint32_t shard;         /* buffer; offloaded, that of construction */
    uint32_t first_shard;   /* the one that construction made, before the first forward padded it */
    uint32_t staged;        /* its copy or cast, while a gather reads it */
    uint32_t offload_event; /* offloaded: its gradient is on the host */

    /* What is gathered of it. */
    uint32_t whole;     /* the parameter that kernels read, while it is gathered */
    bool has_storage;   /* it was gathered before: PyTorch's tensor exists and only grows again */
    uint32_t part;      /* this rank's part, between forward and backward */
    uint32_t left_part; /* the part that a backward left which did not come to its unit */

    PlanTensor accumulated; /* the sum of passes that did not reduce, in the reduction's dtype */

    /* In float8: the buffers of its scale, of two gathers that take turns. */
    uint32_t scales[2];
    uint8_t found; /* which of them was found last */
    uint8_t named; /* which of them the whole parameter's readers use; PLAN_FSDP2_NOT_NAMED */
} PlanFsdp2Parameter;

typedef struct {
    /* What the strategy and the ranks decide; constant after construction. */
    bool is_of_2_4, is_of_2_15;      /* PyTorch's version: fsdp2.c says what differs */
    uint8_t copies_in;               /* the lane that fills gather buffers: compute, where stages
                                      * gather their units by hand */
    uint64_t ranks, replicas;        /* of the shard axis; of the replicate axis */
    bool reduces_replicas;           /* among them; hybrid's single group does, too, alone */
    uint64_t tensor;                 /* ranks that share each layer, and so each parameter */
    uint64_t part_ranks;             /* ranks that keep a unit between them in parts; 0: no parts */
    PlanDtype master, param, reduce; /* dtypes of shards, of compute, of the reduction */

    /* Where the program is. */
    PlanFsdp2Unit *units;
    PlanFsdp2Parameter *parameters;
    GArray *post_forward_order; /* units, uint32_t */
    uint32_t held;              /* unit whose gather buffer forward still holds; PLAN_NONE */
    uint32_t again;             /* outermost unit that is being recomputed; PLAN_NONE */
    uint32_t reducing;          /* buffer that the last reduce-scatter reads; PLAN_NONE */
    uint32_t reduce_event;      /* that reduce-scatter has run */
    uint32_t post_reduce_event; /* the last unit's gradients are ready; PLAN_NONE: no wait */

    /* float8_gather=precomputed: the scales of all weights, in one buffer. */
    uint32_t all_scales;   /* PLAN_NONE: not made */
    uint32_t old_scales;   /* those of the step before ... */
    bool names_old_scales; /* ... which still live */
} PlanFsdp2;

static inline uint64_t plan_fsdp2_chunk(const PlanFsdp2 *f, uint32_t p) {
    return f->parameters[p].chunk_rows * f->parameters[p].row;
}

static inline const PlanFsdp2Unit *plan_fsdp2_unit_of(const PlanRun *run, uint32_t p) {
    return &((const PlanFsdp2 *)run->state)->units[run->unit_of_parameter[p]];
}

/* The parameter's gradient, in a buffer of its unit's sharded gradients. */
static inline PlanOperand plan_fsdp2_gradient_in(const PlanFsdp2 *f, uint32_t p, uint32_t buffer) {
    return (PlanOperand){.buffer = buffer,
                         .offset_bytes =
                             f->parameters[p].trained_start * plan_dtype_bytes(f->master),
                         .elements = f->parameters[p].local};
}

/* The unit's parameters that are trained, *ret_n of them. Transfer full. */
uint32_t *plan_fsdp2_trained(const PlanRun *run, uint32_t unit, uint32_t *ret_n);

/* ---- layout: who has what (fsdp2-layout.c) --------------------------------------------------- */

/* Hooks of the flavour (flavour.h). */
void plan_fsdp2_shapes_of_ranks(const PlanRun *run, char **ret_shapes);
void plan_fsdp2_shards_of_units(const PlanRun *run, uint64_t *ret_elements);
void plan_fsdp2_construct(PlanRun *run);
void plan_fsdp2_clear(PlanRun *run);
/* What the first forward does before all else (lazy initialization): shards that are shorter than
 * a chunk are copied to padded ones. Of all units, or of one. */
void plan_fsdp2_pad_again(PlanRun *run);
void plan_fsdp2_pad_unit_again(PlanRun *run, uint32_t unit);

/* ---- gathering (fsdp2-gather.c) -------------------------------------------------------------- */

void plan_fsdp2_gather_lanes_wait(PlanRun *run, uint32_t event);
/* Fills the gather buffer and gathers, unless that is done. */
void plan_fsdp2_unshard(PlanRun *run, uint32_t unit);
/* Makes whole parameters of what was gathered. */
void plan_fsdp2_copy_out(PlanRun *run, uint32_t unit);
/* After unshard(async_op=True), which copies in on compute and is waited for at once: copies out
 * what has been gathered and not copied out, and frees the gather buffer. */
void plan_fsdp2_await(PlanRun *run, uint32_t unit);
void plan_fsdp2_free_gathered(PlanRun *run, uint32_t unit); /* its gather buffer */
void plan_fsdp2_free_held(PlanRun *run); /* in forward, the gather buffer of the unit before */
void plan_fsdp2_reshard(PlanRun *run, uint32_t unit); /* drops the whole parameters */
void plan_fsdp2_reshard_to_parts(PlanRun *run, uint32_t unit);
/* Backward has ended, and the unit is still in parts: the next gather is of shards again. */
void plan_fsdp2_leave_parts(PlanRun *run, uint32_t unit);
/* Experts whose rows are cut: copies from the parameter's order to the order of ranks; back: the
 * other way. */
void plan_fsdp2_turn_rows(PlanRun *run, uint32_t parameter, PlanOperand from, PlanOperand to,
                          bool back);

/* ---- gathering in float8 (fsdp2-float8.c) ---------------------------------------------------- */

void plan_fsdp2_find_float8(PlanRun *run);                 /* notes which weights are */
void plan_fsdp2_stage_float8(PlanRun *run, uint32_t unit); /* casts them before the gather */
PlanOperand plan_fsdp2_float8_scale(PlanRun *run, uint32_t parameter); /* (flavour.h) */
/* The whole weights have been copied out, and use the scales found last; or they never will. */
void plan_fsdp2_name_scales(PlanRun *run, uint32_t unit);
void plan_fsdp2_forget_scales(PlanRun *run, uint32_t unit);
void plan_fsdp2_precompute_scales(PlanRun *run); /* of all weights, after the optimizer's step */

/* ---- whole gradients (fsdp2-gradients.c) ----------------------------------------------------- */

PlanDtype plan_fsdp2_gradient_dtype(const PlanRun *run, uint32_t parameter, PlanDtype made);
/* Makes a unit's gradients those of all passes so far and, where the pass reduces, of all ranks
 * that share layers. */
void plan_fsdp2_take_gradients(PlanRun *run, uint32_t unit);
void plan_fsdp2_leave_gradients(PlanRun *run, uint32_t unit); /* to the pass that reduces them */
/* Packs a unit's into the buffer to reduce, and lets go of them. Returns the last one if a loop
 * variable holds it until the function that also reduces returns, else NULL: on one rank the loop
 * is not run, 2.4 had none, and that of 2.15 has returned by then. */
PlanTensor *plan_fsdp2_pack_gradients(PlanRun *run, uint32_t unit);

/* ---- reducing (fsdp2-reduce.c) --------------------------------------------------------------- */

void plan_fsdp2_post_backward(PlanRun *run, uint32_t unit);
void plan_fsdp2_end_backward(PlanRun *run);
