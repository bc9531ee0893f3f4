/* plan/graph/settings.h - how a network is walked: what a strategy asks of the walk, by theme.
 *
 * Who asks for a walk (models/network.h) fills these in, and the graph keeps them, for whoever
 * plans what was walked. All zero is PyTorch's newest eager program of one rank.
 */
#pragma once

#include "plan/dtype.h"
#include "plan/strategy/strategy.h"

/* Whose kernels it is made of. */
typedef struct {
    PlanKernels style;
    bool blocks_apart;    /* fused: a block adds its last sum up itself, not the next one's norm */
    bool compiled_norm;   /* compiled: the norm behind the blocks, too ... */
    bool compiled_loss;   /* ... and a loss that the network makes */
    bool in_parts;        /* ... and not blocks as a whole, but modules of theirs, each by itself */
    bool rms_norm_of_ops; /* eager */
} PlanGraphKernels;

/* torch.autocast (autocast.h). */
typedef struct {
    bool is_on;
    PlanDtype lower;   /* the 16 bits that it casts to */
    bool keeps_copies; /* of parameters, each made once a pass */
} PlanGraphAutocast;

/* FSDP2's mixed precision at the boundaries of units (boundaries.h). Nothing is owned. */
typedef struct {
    const bool *modules; /* by module: it is a unit, of a network walked before; NULL: none casts */
    PlanDtype outputs;   /* what units give is cast to */
} PlanGraphUnits;

/* What ranks share beside the parameters. Of ranks, 0 is as good as 1. */
typedef struct {
    uint64_t tensor;   /* ranks that share each layer ... */
    bool async_tensor; /* ... by products in parts, in compiled blocks */
    bool whole_ends;   /* ... but not the embedding and the logits, which each has whole ... */
    bool whole_head;   /* ... nor the head ... */
    bool whole_tokens; /* ... nor, between the layers, the sequences */
    uint64_t context;  /* ranks that share a sequence */
    uint64_t expert;   /* ranks that share the experts ... */
    bool cuts_experts; /* ... and GPUs that have the same experts share each one's rows */
} PlanGraphShared;

/* Of stages that share the layers, which of how many it is (n_stages 0: the only one), and how
 * they are cut. */
typedef struct {
    uint32_t stage, n_stages;
    PlanPipelineSplit split;
} PlanGraphPipeline;

/* What is trained. Nothing is owned. */
typedef struct {
    const GRegex *frozen; /* modules so named or of such a class are not, with all in them; NULL */
    uint64_t lora_rank;   /* of the adapters, which alone are trained then; 0: there are none */
    double lora_scale;
    double lora_dropout;   /* share of A's input that is dropped; 0: none */
    const GRegex *lora_on; /* beside the linear layers of blocks that are so named */
    bool lora_wide;        /* adapters are fp32 */
    bool four_bits;        /* weights of blocks' linear layers are in 4 bits ... */
    PlanDtype stored;      /* ... that lie in a tensor of this dtype */
    /* By parameter, of a network walked before: it is part of a flat tensor that is trained, so its
     * gradient is made all the same; NULL: none is. */
    const bool *joined;
} PlanGraphTrained;
