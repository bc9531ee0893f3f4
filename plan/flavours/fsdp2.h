/* plan/flavours/fsdp2.h - what the files of FSDP2 share: fsdp2-layout.c, -gather.c, -float8.c,
 * -reduce.c and fsdp2.c, where the order of a step stands. Inside plan/ only.
 */
#pragma once

#include "plan/autograd/eager.h"

enum {
    PLAN_FSDP2_COMPUTE,
    PLAN_FSDP2_COPY_IN,
    PLAN_FSDP2_GATHER,
    PLAN_FSDP2_REDUCE,
    PLAN_FSDP2_REPLICATE
};

typedef struct {
    PlanAxis axis;         /* those that shard it */
    uint64_t ranks;        /* of that axis */
    bool communicates;     /* gathers and reduces; a rank by itself did too in 2.4 */
    double divisor;        /* of sums of gradients; 0: they are averaged */
    bool cuts_rows;        /* of experts: each one is dealt out by its second dimension */
    PlanDtype gathers;     /* what is gathered in: bytes, where dtypes differ */
    uint64_t slice;        /* elements of one rank, padded */
    uint64_t plain;        /* those that are not in float8 */
    uint64_t trained;      /* those of its parameters that are trained: what is reduced */
    uint32_t gathered;     /* buffer; PLAN_NONE when there is none */
    uint32_t gather_event; /* the all-gather has run */
    uint32_t copied_event; /* the copy-out has run */
    bool unsharded;
    bool pending;          /* one rank: unshard has been called, copy-out has not */
    bool reduced;          /* post-backward has run in this pass */
    bool in_backward;      /* and pre-backward, since the last backward ended */
    bool in_parts;         /* after forward this rank keeps its part of each parameter */
    bool leaves_parts;     /* left_parts live, until there are others */
    uint32_t parted_event; /* the parts are there */
    uint32_t gradients;    /* buffer of its sharded gradients; PLAN_NONE */
    bool on_host;          /* offloaded: the host has gradients, to which new ones are added */
    uint32_t partial;      /* reduced in earlier passes and not between replicas; PLAN_NONE */
    uint32_t all_reduced;  /* what the replicas reduced, held to the end of backward; PLAN_NONE */
    uint32_t ready_event;  /* 2.4: its gradients are ready; PLAN_NONE: waited for */
} PlanFsdp2Unit;

enum {
    PLAN_FSDP2_NOT_NAMED = 2 /* of two scales, neither */
};

/* Buffers are PLAN_NONE while there is none. */
typedef struct {
    uint64_t chunk_rows;    /* of its first dimension, so many to each rank */
    uint64_t row;           /* elements of one */
    uint64_t local;         /* elements that are this rank's */
    uint64_t trained_start; /* elements before it in its unit's slice of what is trained */
    uint32_t shard;         /* buffer; offloaded: of construction */
    uint32_t first_shard;   /* that which construction made */
    uint32_t staged;        /* its copy or cast, while a gather needs it */
    uint32_t offload_event; /* offloaded: its gradient is on the host; PLAN_NONE */
    uint32_t whole;         /* buffer of it gathered, while it is */
    bool has_storage;       /* it has been gathered before: its storage is there, and grows */
    uint32_t part;          /* buffer of this rank's part of it, between forward and backward */
    uint32_t left_part;     /* likewise, of a backward that did not come to it */
    PlanTensor accumulated; /* gradients of earlier passes in what is reduced in */
    bool in_float8;         /* it is gathered so */
    uint32_t scales[2];     /* buffers, which take turns */
    uint8_t found, named;   /* which of them was found last, and which compute reads */
} PlanFsdp2Parameter;

typedef struct {
    bool is_of_2_4, is_of_2_15;      /* PyTorch's version: the head of fsdp2.c says what differs */
    uint8_t copies_in;               /* lane; compute, where units are gathered by hand */
    uint64_t ranks, replicas;        /* of the shard axis, and of the other */
    uint64_t tensor;                 /* ranks that share each layer, and so each parameter */
    uint64_t part_ranks;             /* that share a parameter between forward and backward, or 0 */
    PlanDtype master, param, reduce; /* of shards, of what is computed in, of what is reduced in */
    PlanFsdp2Unit *units;
    PlanFsdp2Parameter *parameters;
    uint32_t all_scales; /* buffer, of all; PLAN_NONE */
    uint32_t old_scales; /* buffer, of the step before, and whether it lives */
    bool names_old_scales;
    uint32_t held;              /* unit whose gather buffer forward keeps; PLAN_NONE */
    uint32_t again;             /* outermost unit that is computed again; PLAN_NONE */
    GArray *post_forward_order; /* uint32_t */
    uint32_t reducing;          /* buffer of the input of the last reduce-scatter; PLAN_NONE */
    uint32_t reduce_event;      /* that reduce-scatter has run */
    uint32_t post_reduce_event; /* the last gradients are ready; PLAN_NONE: waited for */
} PlanFsdp2;

static inline const PlanGraphParameter *plan_fsdp2_parameter(const PlanRun *run, uint32_t i) {
    return plan_graph_parameter_at(run->graph, i);
}

static inline uint32_t plan_fsdp2_parameter_of(const PlanRun *run, uint32_t unit, uint32_t i) {
    return g_array_index(run->units[unit].parameters, uint32_t, i);
}

static inline uint64_t plan_fsdp2_chunk(const PlanFsdp2 *f, uint32_t p) {
    return f->parameters[p].chunk_rows * f->parameters[p].row;
}

static inline const PlanFsdp2Unit *plan_fsdp2_unit_of(const PlanRun *run, uint32_t p) {
    return &((const PlanFsdp2 *)run->state)->units[run->unit_of_parameter[p]];
}

/* The parameter's gradient in a buffer of its unit's sharded gradients. */
static inline PlanOperand plan_fsdp2_gradient_in(const PlanFsdp2 *f, uint32_t p, uint32_t buffer) {
    return (PlanOperand){.buffer = buffer,
                         .offset_bytes =
                             f->parameters[p].trained_start * plan_dtype_bytes(f->master),
                         .elements = f->parameters[p].local};
}

/* The unit's parameters that are trained; *ret_n of them. */
uint32_t *plan_fsdp2_trained(const PlanRun *run, uint32_t unit, uint32_t *ret_n);

/* Layout: who has what. */
void plan_fsdp2_shapes_of_ranks(const PlanRun *run, char **ret_shapes);
void plan_fsdp2_shards_of_units(const PlanRun *run, uint64_t *ret_elements);
void plan_fsdp2_construct(PlanRun *run);
void plan_fsdp2_pad_again(PlanRun *run); /* in the first forward */
void plan_fsdp2_pad_unit_again(PlanRun *run, uint32_t unit);
void plan_fsdp2_clear(PlanRun *run);

/* Gathering. */
void plan_fsdp2_gather_lanes_wait(PlanRun *run, uint32_t event);
void plan_fsdp2_unshard(PlanRun *run, uint32_t unit);
void plan_fsdp2_turn_rows(PlanRun *run, uint32_t p, PlanOperand from, PlanOperand to, bool back);
void plan_fsdp2_copy_out(PlanRun *run, uint32_t unit);
/* unshard(async_op=True) copies in on compute, and is waited for at once: where it has been
 * gathered and not copied out. */
void plan_fsdp2_await(PlanRun *run, uint32_t unit);
void plan_fsdp2_free_gathered(PlanRun *run, uint32_t unit);
void plan_fsdp2_free_held(PlanRun *run); /* of the unit before, in forward */
void plan_fsdp2_reshard(PlanRun *run, uint32_t unit);
void plan_fsdp2_reshard_to_parts(PlanRun *run, uint32_t unit);
/* Backward has ended, and what is in parts was not asked for: the next gather is of shards. */
void plan_fsdp2_leave_parts(PlanRun *run, uint32_t unit);

/* Gathering in float8. */
void plan_fsdp2_find_float8(PlanRun *run);
void plan_fsdp2_stage_float8(PlanRun *run, uint32_t unit); /* its casts, before they are gathered */
PlanOperand plan_fsdp2_float8_scale(PlanRun *run, uint32_t parameter);
void plan_fsdp2_name_scales(PlanRun *run, uint32_t unit);   /* behind its copy-out */
void plan_fsdp2_forget_scales(PlanRun *run, uint32_t unit); /* it is not copied out */
void plan_fsdp2_precompute_scales(PlanRun *run);

/* Reducing. */
PlanDtype plan_fsdp2_gradient_dtype(const PlanRun *run, uint32_t parameter, PlanDtype made);
void plan_fsdp2_post_backward(PlanRun *run, uint32_t unit);
void plan_fsdp2_end_backward(PlanRun *run);
