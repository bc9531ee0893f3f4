/* plan/strategy/strategy.h - every choice about a run that is not the network.
 *
 * A strategy is an ini file with one section [strategy], and every key is a command-line option
 * too; both go through plan_strategy_set(), so they agree on names, bounds and messages. To add a
 * key: a row in keys.def, and for choices an enum here, in the order of the row's names.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#include "plan/dtype.h"
#include "plan/strategy/pytorch.h"

typedef enum {
    PLAN_SHARDING_NONE,
    PLAN_SHARDING_FULL,
    PLAN_SHARDING_GRAD_OP,
    PLAN_SHARDING_HYBRID,
    PLAN_SHARDING_HYBRID_GRAD_OP,
    PLAN_SHARDING_OPTIMIZER_ONLY
} PlanSharding;
typedef enum {
    PLAN_FLAVOUR_AUTO,
    PLAN_FLAVOUR_PLAIN,
    PLAN_FLAVOUR_DDP,
    PLAN_FLAVOUR_FSDP1,
    PLAN_FLAVOUR_FSDP2,
    PLAN_FLAVOUR_ZERO1,
    PLAN_N_FLAVOURS
} PlanFlavourId;
typedef enum {
    PLAN_WRAP_BLOCK,
    PLAN_WRAP_WHOLE,
    PLAN_WRAP_LINEAR,
    PLAN_WRAP_EVERY,
    PLAN_WRAP_SIZE,
    PLAN_WRAP_MODULE
} PlanWrap;
typedef enum {
    PLAN_ENDS_ROOT,
    PLAN_ENDS_OWN,
    PLAN_ENDS_TAIL
} PlanWrapEnds;
typedef enum {
    PLAN_CONSTRUCTION_SHARD,
    PLAN_CONSTRUCTION_UNIT,
    PLAN_CONSTRUCTION_WHOLE
} PlanConstruction;
typedef enum {
    PLAN_KERNEL_FOREACH,
    PLAN_KERNEL_LOOP,
    PLAN_KERNEL_FUSED
} PlanOptimizerKernel;
typedef enum {
    PLAN_CHECKPOINTING_NONE,
    PLAN_CHECKPOINTING_FULL,
    PLAN_CHECKPOINTING_EVERY,
    PLAN_CHECKPOINTING_RATIO,
    PLAN_CHECKPOINTING_SELECTIVE_OP,
    PLAN_CHECKPOINTING_PARTS,
    PLAN_CHECKPOINTING_MODULE
} PlanCheckpointing;
typedef enum {
    PLAN_CHECKPOINT_INSIDE,
    PLAN_CHECKPOINT_OUTSIDE
} PlanCheckpointPlace;
typedef enum {
    PLAN_RESHARD_DEFAULT,
    PLAN_RESHARD_YES,
    PLAN_RESHARD_NO,
    PLAN_RESHARD_RANKS
} PlanReshard;
typedef enum {
    PLAN_PREFETCH_PRE,
    PLAN_PREFETCH_POST,
    PLAN_PREFETCH_NONE
} PlanPrefetch;
typedef enum {
    PLAN_FORWARD_PREFETCH_NO,
    PLAN_FORWARD_PREFETCH_YES,
    PLAN_FORWARD_PREFETCH_UNITS
} PlanForwardPrefetch;
typedef enum {
    PLAN_ALLOCATOR_CACHING,
    PLAN_ALLOCATOR_EXPANDABLE,
    PLAN_ALLOCATOR_CONF,
    PLAN_ALLOCATOR_ARENA
} PlanAllocator;
typedef enum {
    PLAN_KERNELS_EAGER,
    PLAN_KERNELS_FUSED,
    PLAN_KERNELS_COMPILED
} PlanKernels;
typedef enum {
    PLAN_FLOAT8_NONE,
    PLAN_FLOAT8_TENSORWISE,
    PLAN_FLOAT8_ROWWISE
} PlanFloat8;
typedef enum {
    PLAN_FLOAT8_GATHER_NO,
    PLAN_FLOAT8_GATHER_YES,
    PLAN_FLOAT8_GATHER_PRECOMPUTED
} PlanFloat8Gather;
typedef enum {
    PLAN_COMPILE_BLOCK,
    PLAN_COMPILE_NETWORK,
    PLAN_COMPILE_NETWORK_HOLDING
} PlanCompile;
typedef enum {
    PLAN_AUTOCAST_NONE,
    PLAN_AUTOCAST_BF16,
    PLAN_AUTOCAST_FP16
} PlanAutocast;
typedef enum {
    PLAN_LOSS_SCALE_NONE,
    PLAN_LOSS_SCALE_DYNAMIC,
    PLAN_LOSS_SCALE_FROM
} PlanLossScale;
typedef enum {
    PLAN_OFFLOAD_NONE,
    PLAN_OFFLOAD_ACTIVATIONS,
    PLAN_OFFLOAD_OPTIMIZER,
    PLAN_OFFLOAD_PARAMS
} PlanOffload;
typedef enum {
    PLAN_NO,
    PLAN_YES
} PlanYesNo;
/* The other choices are PlanDtype + 1. */
enum {
    PLAN_PARAM_MODEL,
    PLAN_REDUCE_PARAM = 0,
    PLAN_STATE_PARAM = 0
};
typedef enum {
    PLAN_DETERMINISTIC_NO,
    PLAN_DETERMINISTIC_YES,
    PLAN_DETERMINISTIC_UNFILLED
} PlanDeterministic;
typedef enum {
    PLAN_TENSOR_TORCHTITAN,
    PLAN_TENSOR_KEMPNERFORGE,
    PLAN_TENSOR_TRANSFORMERS
} PlanTensorPlan;
typedef enum {
    PLAN_PIPELINE_1F1B,
    PLAN_PIPELINE_GPIPE,
    PLAN_PIPELINE_INTERLEAVED,
    PLAN_PIPELINE_LOOPED_BFS
} PlanPipelineSchedule;
typedef enum {
    PLAN_PIPELINE_SPLIT_TORCHTITAN,
    PLAN_PIPELINE_SPLIT_EVEN
} PlanPipelineSplit;
typedef enum {
    PLAN_SILU_KERNEL,
    PLAN_SILU_OPS
} PlanSiluBackward;
typedef enum {
    PLAN_RMS_NORM_KERNEL,
    PLAN_RMS_NORM_OPS
} PlanRmsNorm;
typedef enum {
    PLAN_ATTENTION_KERNEL_CUDNN,
    PLAN_ATTENTION_KERNEL_FLASH
} PlanAttentionKernel;
typedef enum {
    PLAN_FREEZE_NONE,
    PLAN_FREEZE_MODULE
} PlanFreeze;
typedef enum {
    PLAN_LORA_ON_QV,
    PLAN_LORA_ON_ALL_LINEAR,
    PLAN_LORA_ON_MODULE
} PlanLoraOn;
typedef enum {
    PLAN_LORA_MODEL,
    PLAN_LORA_FP32
} PlanLoraDtype;
typedef enum {
    PLAN_LORA_BASE_MODEL,
    PLAN_LORA_BASE_NF4,
    PLAN_LORA_BASE_FP4
} PlanLoraBase;
typedef enum {
    PLAN_LORA_STORAGE_UINT8,
    PLAN_LORA_STORAGE_MODEL
} PlanLoraStorage;
typedef enum { /* none, or one more than a dtype */
    PLAN_OUTPUT_NONE
} PlanOutputDtype;
typedef enum {
    PLAN_SYNC_LAST,
    PLAN_SYNC_EVERY,
    PLAN_SYNC_SCATTER
} PlanAccumulateSync;
typedef enum {
    PLAN_READS_NONE,
    PLAN_READS_LOSS,
    PLAN_READS_NORM,
    PLAN_READS_BOTH
} PlanHostReads;
typedef enum {
    PLAN_COUNT_HOST,
    PLAN_COUNT_DEVICE
} PlanOptimizerCount;
typedef enum {
    PLAN_ZERO_DROP,
    PLAN_ZERO_KEEP
} PlanZeroGrad;
typedef enum {
    PLAN_OPTIMIZER_ADAMW,
    PLAN_OPTIMIZER_ADAM,
    PLAN_OPTIMIZER_SGD,
    PLAN_OPTIMIZER_MOMENTUM,
    PLAN_OPTIMIZER_MUON
} PlanOptimizer;
typedef enum {
    PLAN_MUON_RATE_ORIGINAL,
    PLAN_MUON_RATE_MATCH_RMS_ADAMW
} PlanMuonRate;

/* A choice that may have an argument. */
typedef struct {
    unsigned choice;
    double number;
    const char *text; /* interned */
} PlanVariant;

enum {
    PLAN_N_KEYS = 0
#define INT(...)     +1
#define REAL(...)    +1
#define CHOICE(...)  +1
#define VARIANT(...) +1
#include "plan/strategy/keys.def"
#undef INT
#undef REAL
#undef CHOICE
#undef VARIANT
};

typedef struct {
#define INT(field, ...)     uint64_t field;
#define REAL(field, ...)    double field;
#define CHOICE(field, ...)  unsigned field;
#define VARIANT(field, ...) PlanVariant field;
#include "plan/strategy/keys.def"
#undef INT
#undef REAL
#undef CHOICE
#undef VARIANT
    bool given[PLAN_N_KEYS]; /* in the order of keys.def: it was set by its name */
} PlanStrategy;

typedef struct {
    const char *key;
    const char *help;
    const char *choices; /* NULL for numbers */
} PlanStrategyKey;

const PlanStrategyKey *plan_strategy_keys(unsigned *ret_n);
/* Which of them has this name; false: none. */
bool plan_strategy_find_key(const char *key, unsigned *ret_row);

/* The regular expression of wrap, freeze or lora_on=module=, which a whole name must match. NULL,
 * with error set, when PATTERN is none, by itself or anchored at both ends. Transfer full. */
GRegex *plan_strategy_whole_regex(const char *pattern, GError **error);

void plan_strategy_init(PlanStrategy *strategy); /* PyTorch's defaults */
/* The message has no place in it: the caller knows the file and line, or the option. A version
 * ("pytorch") sets defaults of other keys, never one that was given, whichever comes first. */
bool plan_strategy_set(PlanStrategy *strategy, const char *key, const char *value, GError **error);
bool plan_strategy_is_given(const PlanStrategy *strategy, const char *key);
/* Whether a key has the value that its PyTorch version has where nothing is said. */
bool plan_strategy_is_default(const PlanStrategy *strategy, const char *key);
/* Reads [strategy] of a file over what is set already. */
bool plan_strategy_read(PlanStrategy *strategy, const char *text, gsize length,
                        const char *file_name, GError **error);
/* That of a plan, as its text; an error where the plan is by hand, or of another version. */
bool plan_strategy_of_text(PlanStrategy *ret, const char *text, GError **error);
bool plan_strategy_read_file(PlanStrategy *strategy, const char *path, GError **error);

/* Settles what "auto" means and refuses what PyTorch refuses, with the reason. */
bool plan_strategy_settle(PlanStrategy *strategy, GError **error);

/* Why a key changes nothing of the plan of this settled strategy, whatever its value: "is FSDP1's
 * (flavour=fsdp1)". NULL: it may change it. ret_decided_by: the keys on which that depends, a blank
 * between two. */
const char *plan_strategy_why_idle(const PlanStrategy *settled, const char *key,
                                   const char **ret_decided_by);

/* ---- what follows from a settled strategy (follows.c) ---------------------------------------- */

/* How many ranks share one copy of the model. */
uint64_t plan_strategy_shard_ranks(const PlanStrategy *strategy);
/* How many keep a unit between them from forward to backward; 0: there are no such parts. */
uint64_t plan_strategy_part_ranks(const PlanStrategy *strategy);
/* Ranks that have the same experts, where ranks share them; else 1. */
uint64_t plan_strategy_alike_ranks(const PlanStrategy *strategy);
/* FSDP2: blocks gathered ahead of the one whose forward begins. */
uint64_t plan_strategy_forward_prefetch(const PlanStrategy *strategy);
/* Whether the host reads the gradients' norm after clipping. */
bool plan_strategy_reads_norm(const PlanStrategy *strategy);
/* What the loss is multiplied by at first; 0: it is not. */
double plan_strategy_first_scale(const PlanStrategy *strategy);
/* Whether the compiler makes forward one program, and backward another: no hook of FSDP's lies
 * between. */
bool plan_strategy_is_one_program(const PlanStrategy *strategy);
/* What is in a block is checkpointed by itself, all of it or some. */
bool plan_strategy_checkpoints_parts(const PlanStrategy *strategy);
/* Whether its PyTorch is newer than all that the version stands for. */
bool plan_strategy_is_after(const PlanStrategy *strategy, PlanPytorch version);
/* What the network is made in, computed in, and gradients reduced in. */
PlanDtype plan_strategy_model_dtype(const PlanStrategy *strategy);
PlanDtype plan_strategy_param_dtype(const PlanStrategy *strategy);
/* Whether DDP copies what the network returns, at least in its first pass. */
bool plan_strategy_copies_results(const PlanStrategy *strategy);
PlanDtype plan_strategy_output_dtype(const PlanStrategy *strategy);
PlanDtype plan_strategy_reduce_dtype(const PlanStrategy *strategy);
/* Of the optimizer's moments of what it owns in that dtype. */
PlanDtype plan_strategy_state_dtype(const PlanStrategy *strategy, PlanDtype owned);

/* ---- as text --------------------------------------------------------------------------------- */

/* The text of PYTORCH_ALLOC_CONF that a plan's strategy asks for; "" for none; NULL: it asks for an
 * arena instead. False with error where the text is not of this version. */
bool plan_allocator_conf(const char *strategy_text, const char **ret_conf, GError **error);

/* One key's value, as plan_strategy_set() takes it; NULL: there is no such key. */
char *plan_strategy_value(const PlanStrategy *strategy, const char *key);
char *plan_strategy_text(const PlanStrategy *strategy);       /* an ini file with every key */
char *plan_strategy_given_text(const PlanStrategy *strategy); /* with those given */
char *plan_strategy_title(const PlanStrategy *strategy);      /* a few words for people */
