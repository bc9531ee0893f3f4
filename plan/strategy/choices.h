/* plan/strategy/choices.h - what the choices of each strategy key are called here.
 *
 * keys.def says what each choice means, and has their names in the order of these enums. A key
 * without an enum of its own here takes yes or no, a dtype, or numbers.
 */
#pragma once

/* Keys that take no or yes. */
typedef enum {
    PLAN_NO,
    PLAN_YES
} PlanYesNo;

/* ---- what is divided among ranks, and what is a unit ----------------------------------------- */

/* sharding */
typedef enum {
    PLAN_SHARDING_NONE,
    PLAN_SHARDING_FULL,
    PLAN_SHARDING_GRAD_OP,
    PLAN_SHARDING_HYBRID,
    PLAN_SHARDING_HYBRID_GRAD_OP,
    PLAN_SHARDING_OPTIMIZER_ONLY
} PlanSharding;

/* flavour */
typedef enum {
    PLAN_FLAVOUR_AUTO,
    PLAN_FLAVOUR_PLAIN,
    PLAN_FLAVOUR_DDP,
    PLAN_FLAVOUR_FSDP1,
    PLAN_FLAVOUR_FSDP2,
    PLAN_FLAVOUR_ZERO1,
    PLAN_N_FLAVOURS
} PlanFlavourId;

/* wrap */
typedef enum {
    PLAN_WRAP_BLOCK,
    PLAN_WRAP_WHOLE,
    PLAN_WRAP_LINEAR,
    PLAN_WRAP_EVERY,
    PLAN_WRAP_SIZE,
    PLAN_WRAP_MODULE
} PlanWrap;

/* wrap_ends */
typedef enum {
    PLAN_ENDS_ROOT,
    PLAN_ENDS_OWN,
    PLAN_ENDS_TAIL
} PlanWrapEnds;

/* init */
typedef enum {
    PLAN_CONSTRUCTION_SHARD,
    PLAN_CONSTRUCTION_UNIT,
    PLAN_CONSTRUCTION_WHOLE
} PlanConstruction;

/* reshard_after_forward */
typedef enum {
    PLAN_RESHARD_DEFAULT,
    PLAN_RESHARD_YES,
    PLAN_RESHARD_NO,
    PLAN_RESHARD_RANKS
} PlanReshard;

/* backward_prefetch */
typedef enum {
    PLAN_PREFETCH_PRE,
    PLAN_PREFETCH_POST,
    PLAN_PREFETCH_NONE
} PlanPrefetch;

/* forward_prefetch */
typedef enum {
    PLAN_FORWARD_PREFETCH_NO,
    PLAN_FORWARD_PREFETCH_YES,
    PLAN_FORWARD_PREFETCH_UNITS
} PlanForwardPrefetch;

/* ---- what is kept, recomputed or put away ---------------------------------------------------- */

/* checkpointing */
typedef enum {
    PLAN_CHECKPOINTING_NONE,
    PLAN_CHECKPOINTING_FULL,
    PLAN_CHECKPOINTING_EVERY,
    PLAN_CHECKPOINTING_RATIO,
    PLAN_CHECKPOINTING_SELECTIVE_OP,
    PLAN_CHECKPOINTING_PARTS,
    PLAN_CHECKPOINTING_MODULE
} PlanCheckpointing;

/* checkpoint_place */
typedef enum {
    PLAN_CHECKPOINT_INSIDE,
    PLAN_CHECKPOINT_OUTSIDE
} PlanCheckpointPlace;

/* offload */
typedef enum {
    PLAN_OFFLOAD_NONE,
    PLAN_OFFLOAD_ACTIVATIONS,
    PLAN_OFFLOAD_OPTIMIZER,
    PLAN_OFFLOAD_PARAMS
} PlanOffload;

/* allocator */
typedef enum {
    PLAN_ALLOCATOR_CACHING,
    PLAN_ALLOCATOR_EXPANDABLE,
    PLAN_ALLOCATOR_CONF,
    PLAN_ALLOCATOR_ARENA
} PlanAllocator;

/* ---- what is trained ------------------------------------------------------------------------- */

/* ignored */
typedef enum {
    PLAN_IGNORED_NONE,
    PLAN_IGNORED_MODULE
} PlanIgnored;

/* freeze */
typedef enum {
    PLAN_FREEZE_NONE,
    PLAN_FREEZE_MODULE
} PlanFreeze;

/* lora_on */
typedef enum {
    PLAN_LORA_ON_QV,
    PLAN_LORA_ON_ALL_LINEAR,
    PLAN_LORA_ON_MODULE
} PlanLoraOn;

/* lora_dtype */
typedef enum {
    PLAN_LORA_MODEL,
    PLAN_LORA_FP32
} PlanLoraDtype;

/* lora_base */
typedef enum {
    PLAN_LORA_BASE_MODEL,
    PLAN_LORA_BASE_NF4,
    PLAN_LORA_BASE_FP4
} PlanLoraBase;

/* lora_base_storage */
typedef enum {
    PLAN_LORA_STORAGE_UINT8,
    PLAN_LORA_STORAGE_MODEL
} PlanLoraStorage;

/* ---- what ranks share beside the parameters -------------------------------------------------- */

/* tensor_plan */
typedef enum {
    PLAN_TENSOR_TORCHTITAN,
    PLAN_TENSOR_KEMPNERFORGE,
    PLAN_TENSOR_TRANSFORMERS
} PlanTensorPlan;

/* pipeline_schedule */
typedef enum {
    PLAN_PIPELINE_1F1B,
    PLAN_PIPELINE_GPIPE,
    PLAN_PIPELINE_INTERLEAVED,
    PLAN_PIPELINE_LOOPED_BFS
} PlanPipelineSchedule;

/* pipeline_split */
typedef enum {
    PLAN_PIPELINE_SPLIT_TORCHTITAN,
    PLAN_PIPELINE_SPLIT_EVEN
} PlanPipelineSplit;

/* ---- dtypes ---------------------------------------------------------------------------------- */

/* autocast */
typedef enum {
    PLAN_AUTOCAST_NONE,
    PLAN_AUTOCAST_BF16,
    PLAN_AUTOCAST_FP16
} PlanAutocast;

/* loss_scale */
typedef enum {
    PLAN_LOSS_SCALE_NONE,
    PLAN_LOSS_SCALE_DYNAMIC,
    PLAN_LOSS_SCALE_FROM
} PlanLossScale;

/* float8 */
typedef enum {
    PLAN_FLOAT8_NONE,
    PLAN_FLOAT8_TENSORWISE,
    PLAN_FLOAT8_ROWWISE,
    PLAN_FLOAT8_DELAYED,
    PLAN_FLOAT8_MXFP8
} PlanFloat8;

/* float8_gather */
typedef enum {
    PLAN_FLOAT8_GATHER_NO,
    PLAN_FLOAT8_GATHER_YES,
    PLAN_FLOAT8_GATHER_PRECOMPUTED
} PlanFloat8Gather;

/* ---- whose kernels run ----------------------------------------------------------------------- */

/* kernels */
typedef enum {
    PLAN_KERNELS_EAGER,
    PLAN_KERNELS_FUSED,
    PLAN_KERNELS_COMPILED
} PlanKernels;

/* compile */
typedef enum {
    PLAN_COMPILE_BLOCK,
    PLAN_COMPILE_NETWORK,
    PLAN_COMPILE_NETWORK_HOLDING
} PlanCompile;

/* silu_backward */
typedef enum {
    PLAN_SILU_KERNEL,
    PLAN_SILU_OPS
} PlanSiluBackward;

/* rms_norm */
typedef enum {
    PLAN_RMS_NORM_KERNEL,
    PLAN_RMS_NORM_OPS
} PlanRmsNorm;

/* attention_kernel */
typedef enum {
    PLAN_ATTENTION_KERNEL_CUDNN,
    PLAN_ATTENTION_KERNEL_FLASH
} PlanAttentionKernel;

/* deterministic */
typedef enum {
    PLAN_DETERMINISTIC_NO,
    PLAN_DETERMINISTIC_YES,
    PLAN_DETERMINISTIC_UNFILLED
} PlanDeterministic;

/* ---- the training loop ----------------------------------------------------------------------- */

/* accumulate_sync */
typedef enum {
    PLAN_SYNC_LAST,
    PLAN_SYNC_EVERY,
    PLAN_SYNC_SCATTER
} PlanAccumulateSync;

/* host_reads */
typedef enum {
    PLAN_READS_NONE,
    PLAN_READS_LOSS,
    PLAN_READS_NORM,
    PLAN_READS_BOTH
} PlanHostReads;

/* zero_grad */
typedef enum {
    PLAN_ZERO_DROP,
    PLAN_ZERO_KEEP
} PlanZeroGrad;

/* ---- the optimizer --------------------------------------------------------------------------- */

/* optimizer */
typedef enum {
    PLAN_OPTIMIZER_ADAMW,
    PLAN_OPTIMIZER_ADAM,
    PLAN_OPTIMIZER_SGD,
    PLAN_OPTIMIZER_MOMENTUM,
    PLAN_OPTIMIZER_MUON,
    PLAN_OPTIMIZER_ADAMW_TORCH_8BIT
} PlanOptimizer;

/* optimizer_kernel */
typedef enum {
    PLAN_KERNEL_FOREACH,
    PLAN_KERNEL_LOOP,
    PLAN_KERNEL_FUSED
} PlanOptimizerKernel;

/* optimizer_count */
typedef enum {
    PLAN_COUNT_HOST,
    PLAN_COUNT_DEVICE
} PlanOptimizerCount;

/* muon_rate */
typedef enum {
    PLAN_MUON_RATE_ORIGINAL,
    PLAN_MUON_RATE_MATCH_RMS_ADAMW
} PlanMuonRate;

/* Keys that take a dtype: their first choice is no dtype, and the others are a PlanDtype + 1. */
enum {
    PLAN_PARAM_MODEL = 0,  /* param_dtype: that of model_dtype */
    PLAN_REDUCE_PARAM = 0, /* reduce_dtype: that of param_dtype */
    PLAN_STATE_PARAM = 0,  /* state_dtype: that of the parameters */
    PLAN_OUTPUT_NONE = 0   /* output_dtype: as it comes */
};
