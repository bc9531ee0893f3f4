/* plan/graph/settings.h - how a network is walked: what a strategy asks of the walk, by theme.
 *
 * Whoever asks for a walk (models/network.h) fills these in, and the graph keeps them for whoever
 * plans what was walked. All zero is the eager program of PyTorch's newest version on one rank.
 * Pointers are borrowed.
 */
#pragma once

#include "plan/dtype.h"
#include "plan/strategy/strategy.h"

/* Whose kernels the network is made of. */
typedef struct {
    PlanKernels style;
    bool blocks_apart;    /* fused: a block's last sum is its own, not in the next block's norm */
    bool compiled_norm;   /* compiled: the norm after the blocks is compiled as well */
    bool compiled_loss;   /* compiled: a loss that the network makes is compiled as well */
    bool in_parts;        /* compiled: modules of a block are compiled apart, not the block */
    bool rms_norm_of_ops; /* eager: RMSNorm is written out in ops */
} PlanGraphKernels;

/* torch.autocast (autocast.h). */
typedef struct {
    bool is_on;
    PlanDtype lower;   /* the 16-bit dtype that it casts to */
    bool keeps_copies; /* a parameter is cast once in a pass, and the copy is kept */
} PlanGraphAutocast;

/* FSDP2's mixed precision at the ends of units (boundaries.h). */
typedef struct {
    const bool *modules; /* by module, as in a walk before this one: it is a unit; NULL: no unit
                          * casts */
    PlanDtype outputs;   /* what units return is cast to this dtype ... */
    bool outputs_stay;   /* ... or stays as it is */
} PlanGraphUnits;

/* How many ranks share what, beside the parameters. 0 is as good as 1. */
typedef struct {
    uint64_t tensor;   /* ranks that share each layer; the bools below it say how */
    bool async_tensor; /* compiled blocks multiply in parts, beside the copies between ranks */
    bool whole_ends;   /* each rank has the whole embedding and all logits */
    bool whole_head;   /* each rank has the whole head */
    bool whole_tokens; /* between the layers each rank has all tokens (no sequence parallelism) */
    uint64_t context;  /* ranks that share each sequence */
    uint64_t expert;   /* ranks that share the experts */
    double overload;   /* how many times its even share of rows the busiest of them gets */
    bool cuts_experts; /* ranks with the same experts share the rows of each expert's matrices */
} PlanGraphShared;

/* Which pipeline stage is walked. n_stages 0: there is one, and it is all. */
typedef struct {
    uint32_t stage, n_stages;
    PlanPipelineSplit split;
    int64_t dropouts_before; /* in the stages before */
} PlanGraphPipeline;

/* What is trained. */
typedef struct {
    const GRegex *frozen;  /* modules whose name or class it matches are not trained, nor what is in
                            * them; NULL: all are */
    const GRegex *ignored; /* likewise of modules that the wrapper leaves alone; NULL: none */
    uint64_t lora_rank;    /* of adapters, which alone are trained then; 0: there are none */
    double lora_scale;
    double lora_dropout;   /* the share of an adapter's input that is dropped */
    const GRegex *lora_on; /* the linear layers of blocks that have an adapter, by name */
    bool lora_wide;        /* adapters are fp32 */
    bool four_bits;        /* the weights of blocks' linear layers are stored in 4 bits ... */
    PlanDtype stored;      /* ... in tensors of this dtype */
    /* By parameter, as in a walk before this one: it is part of a flat tensor that is trained, so
     * its gradient is made even if it is frozen. NULL: no parameter is. */
    const bool *joined;
} PlanGraphTrained;
