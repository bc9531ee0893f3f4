/* The header's options as a strategy. */
#include <math.h>
#include <string.h>

#include "tests/oracle/recording-private.h"

static const double ONE_BYTE_MIB = 1.0 / (1 << 20);

/* Settings that must have the one value a plan stands for. */
static bool expressible(const Recording *recording, JsonObject *shape, JsonObject *options,
                        GError **error) {
    bool casts_inputs = g_str_has_prefix(recorded_text(options, "mode"), "fsdp") &&
                        *recorded_text(options, "param_dtype");
    if (recorded_is(shape, "kind", "mlp") && !casts_inputs &&
        !recorded_is(options, "model_dtype", "fp32")) {
        return recording_refuse(recording, error,
                                "fp32 vectors in a network of another dtype (nor PyTorch)");
    }
    if (recorded_int(options, "batch") < 1 || recorded_int(options, "accumulate") < 1) {
        return recording_refuse(recording, error, "batch or accumulate (a step of no sequence)");
    }
    if (recorded_yes(options, "reentrant") && !recording_is_before_2_1(recording)) {
        return recording_refuse(recording, error, "reentrant (but before PyTorch 2.1)");
    }
    if (is_recorded(options, "ignored") && recorded_is(options, "mode", "fsdp2") &&
        recorded_is(options, "optimizer_kernel", "default")) {
        return recording_refuse(recording, error,
                                "optimizer_kernel (the loop for what is ignored, foreach for the "
                                "rest, since the recorder's device is not a GPU to PyTorch)");
    }
    if (is_recorded(options, "tensor") && recorded_int(options, "tensor") > 1 &&
        !recorded_flag(options, "loss_parallel")) {
        return recording_refuse(recording, error,
                                "loss_parallel (the loss is of logits that stay apart)");
    }
    bool shares = is_recorded(options, "tensor") && recorded_int(options, "tensor") > 1 &&
                  !recorded_is(options, "tensor_plan", "ends-whole") &&
                  !(is_recorded(options, "sequence_parallel") &&
                    !recorded_flag(options, "sequence_parallel"));
    shares |= is_recorded(options, "expert") && recorded_int(options, "expert") > 1;
    bool scattered = recorded_yes(options, "selective_scattered");
    if (shares && recorded_yes(options, "selective") != scattered) {
        return recording_refuse(recording, error,
                                "selective without selective_scattered (torchtitan's list)");
    }
    if (!shares && scattered && recording_has_experts(recording)) {
        return recording_refuse(recording, error,
                                "selective_scattered (of experts that no ranks share)");
    }
    if (recorded_is(options, "last_backward", "last") &&
        !recorded_is(options, "accumulate_sync", "last")) {
        return recording_refuse(recording, error,
                                "last_backward (of passes that reduce and finish later)");
    }
    /* gpu/'s recorders pretend a GPU there, and say which machine. */
    bool is_cpu = recorded_is(options, "device", "cpu") &&
                  !json_object_has_member(recording->header, "machine");
    return !is_cpu ||
           recording_refuse(
               recording, error,
               "device (on the CPU PyTorch takes other kernels; record with --device gpu)");
}

/* ---- flavours -------------------------------------------------------------------------------- */

static bool set_fsdp1(const Recording *recording, JsonObject *options, PlanStrategy *strategy,
                      GError **error) {
    static const struct {
        const char *name;
        unsigned sharding;
    } shardings[] = {{"FULL_SHARD", PLAN_SHARDING_FULL},
                     {"SHARD_GRAD_OP", PLAN_SHARDING_GRAD_OP},
                     {"NO_SHARD", PLAN_SHARDING_NONE},
                     {"HYBRID_SHARD", PLAN_SHARDING_HYBRID},
                     {"_HYBRID_SHARD_ZERO2", PLAN_SHARDING_HYBRID_GRAD_OP}};
    const char *name = recorded_text(options, "strategy");
    unsigned i = 0;
    while (i < G_N_ELEMENTS(shardings) && !g_str_equal(shardings[i].name, name)) {
        i++;
    }
    if (i == G_N_ELEMENTS(shardings)) {
        return recording_refuse(recording, error, "strategy");
    }
    strategy->flavour = PLAN_FLAVOUR_FSDP1;
    strategy->sharding = shardings[i].sharding;
    strategy->use_orig_params = recorded_flag(options, "use_orig_params") ? PLAN_YES : PLAN_NO;
    strategy->forward_prefetch.choice = recorded_flag(options, "forward_prefetch")
                                            ? PLAN_FORWARD_PREFETCH_YES
                                            : PLAN_FORWARD_PREFETCH_NO;
    strategy->limit_all_gathers = recorded_flag(options, "limit_all_gathers") ? 2 : 0;
    return plan_strategy_set(strategy, "backward_prefetch",
                             recorded_text(options, "backward_prefetch"), error);
}

static bool set_fsdp2(JsonObject *options, PlanStrategy *strategy, GError **error) {
    strategy->flavour = PLAN_FLAVOUR_FSDP2;
    const char *reshard = recorded_text(options, "reshard_after_forward");
    bool is_number = *reshard && !reshard[strspn(reshard, "0123456789")];
    /* The recorder takes every other word for "default". */
    const char *planned = g_str_equal(reshard, "true")    ? "yes"
                          : g_str_equal(reshard, "false") ? "no"
                          : is_number                     ? reshard
                                                          : "default";
    if (!plan_strategy_set(strategy, "reshard_after_forward", planned, error)) {
        return false;
    }
    strategy->backward_prefetch = json_object_get_boolean_member(options, "fsdp2_backward_prefetch")
                                      ? PLAN_PREFETCH_PRE
                                      : PLAN_PREFETCH_NONE;
    return true;
}

static void set_ddp(JsonObject *options, PlanStrategy *strategy) {
    strategy->sharding = PLAN_SHARDING_NONE;
    strategy->flavour = PLAN_FLAVOUR_DDP;
    strategy->bucket_view = recorded_flag(options, "ddp_bucket_view") ? PLAN_YES : PLAN_NO;
    strategy->find_unused = recorded_yes(options, "ddp_find_unused") ? PLAN_YES : PLAN_NO;
    strategy->static_graph = recorded_yes(options, "ddp_static_graph") ? PLAN_YES : PLAN_NO;
    if (!json_object_get_null_member(options, "ddp_bucket_mb")) {
        double mib = json_object_get_double_member(options, "ddp_bucket_mb");
        strategy->bucket_mb = mib > 0 ? mib : ONE_BYTE_MIB; /* a bucket for each gradient */
    }
}

static bool set_mode(const Recording *recording, JsonObject *options, PlanStrategy *strategy,
                     GError **error) {
    const char *mode = recorded_text(options, "mode");
    if (g_str_equal(mode, "fsdp2")) {
        return set_fsdp2(options, strategy, error);
    }
    if (g_str_equal(mode, "fsdp1")) {
        return set_fsdp1(recording, options, strategy, error);
    }
    if (g_str_equal(mode, "ddp")) {
        set_ddp(options, strategy);
        return true;
    }
    strategy->sharding = PLAN_SHARDING_NONE;
    strategy->flavour = PLAN_FLAVOUR_PLAIN;
    strategy->ranks = (uint64_t)(MAX(1, recorded_int(options, "tensor")) *
                                 MAX(1, recorded_int(options, "pipeline")));
    return g_str_equal(mode, "none") || recording_refuse(recording, error, "mode");
}

/* ---- steps ----------------------------------------------------------------------------------- */

/* Only this project's recorder knows it, and gives Muon the weight decay that AdamW has. */
static void set_muon(JsonObject *options, PlanStrategy *strategy) {
    if (is_recorded(options, "muon_nesterov")) {
        strategy->muon_nesterov = recorded_flag(options, "muon_nesterov") ? PLAN_YES : PLAN_NO;
    }
    if (is_recorded(options, "muon_ns_steps")) {
        strategy->muon_steps = (uint64_t)recorded_int(options, "muon_ns_steps");
    }
    if (is_recorded(options, "weight_decay")) {
        strategy->muon_weight_decay = recorded_real(options, "weight_decay");
    }
}

static bool set_optimizer(JsonObject *options, PlanStrategy *strategy, GError **error) {
    const char *name = recorded_text(options, "optimizer");
    strategy->momentum = recorded_real(options, "momentum");
    /* PyTorch clips to a negative norm too, and to one without bound. */
    strategy->clip = MIN(fabs(recorded_real(options, "clip")), 1e9);
    strategy->weight_decay =
        is_recorded(options, "weight_decay") ? recorded_real(options, "weight_decay") : -1;
    bool momentum = g_str_equal(name, "sgd") && strategy->momentum != 0;
    set_muon(options, strategy);
    return plan_strategy_set(strategy, "optimizer", momentum ? "momentum" : name, error);
}

static bool set_optimizer_kernel(JsonObject *options, PlanStrategy *strategy, GError **error) {
    /* PyTorch picks foreach by default for DTensors, the loop for the recorder's other tensors. */
    const char *kernel = recorded_text(options, "optimizer_kernel");
    if (g_str_equal(kernel, "default")) {
        bool is_shared = is_recorded(options, "tensor") && recorded_int(options, "tensor") > 1;
        kernel = recorded_is(options, "mode", "fsdp2") || is_shared ? "foreach" : "loop";
    }
    return plan_strategy_set(strategy, "optimizer_kernel", kernel, error);
}

static bool set_passes(JsonObject *options, PlanStrategy *strategy, GError **error) {
    strategy->accumulate = (uint64_t)recorded_int(options, "accumulate");
    strategy->zero_grad = recorded_yes(options, "keep_gradients") ? PLAN_ZERO_KEEP : PLAN_ZERO_DROP;
    if (is_recorded(options, "eval_batches")) {
        strategy->eval_batches = (uint64_t)recorded_int(options, "eval_batches");
    }
    if (is_recorded(options, "eval_batch")) {
        strategy->eval_micro_batch = (uint64_t)recorded_int(options, "eval_batch");
    }
    if (recorded_yes(options, "eval_holds_logits")) {
        strategy->eval_holds_logits = PLAN_YES;
    }
    return plan_strategy_set(strategy, "accumulate_sync", recorded_text(options, "accumulate_sync"),
                             error);
}

static bool set_checkpointing(JsonObject *options, PlanStrategy *strategy, GError **error) {
    const char *checkpointing = recorded_text(options, "checkpointing");
    strategy->checkpointing.choice = g_str_equal(checkpointing, "none") ? PLAN_CHECKPOINTING_NONE
                                     : g_str_equal(checkpointing, "parts")
                                         ? PLAN_CHECKPOINTING_PARTS
                                         : PLAN_CHECKPOINTING_FULL;
    if (is_recorded(options, "parts")) {
        g_autofree char *one = g_strdup_printf("module=.*\\.%s", recorded_text(options, "parts"));
        if (!plan_strategy_set(strategy, "checkpointing", one, error)) {
            return false;
        }
    }
    strategy->checkpoint_place =
        g_str_equal(checkpointing, "outside") ? PLAN_CHECKPOINT_OUTSIDE : PLAN_CHECKPOINT_INSIDE;
    return true;
}

static bool set_dtypes(JsonObject *options, PlanStrategy *strategy, GError **error) {
    const char *mode = recorded_text(options, "mode");
    static const char *const dtypes[] = {"model_dtype", "param_dtype", "reduce_dtype",
                                         "output_dtype"};
    /* The recorder tells FSDP alone of mixed precision, FSDP1 only where param_dtype is given. */
    bool is_fsdp2 = g_str_equal(mode, "fsdp2");
    bool is_mixed = g_str_equal(mode, "fsdp1") && *recorded_text(options, "param_dtype");
    unsigned told = is_fsdp2 ? G_N_ELEMENTS(dtypes) : is_mixed ? G_N_ELEMENTS(dtypes) - 1 : 1;
    for (unsigned i = 0; i < told; i++) {
        const char *dtype = recorded_text(options, dtypes[i]);
        if (*dtype && !plan_strategy_set(strategy, dtypes[i], dtype, error)) {
            return false;
        }
    }
    return true;
}

/* The recorder's dtypes of storage are uint8, or those of networks. */
static void set_base(JsonObject *options, PlanStrategy *strategy) {
    if (!is_recorded(options, "lora_base")) {
        return;
    }
    strategy->lora_base =
        recorded_is(options, "lora_base", "nf4") ? PLAN_LORA_BASE_NF4 : PLAN_LORA_BASE_FP4;
    strategy->lora_base_double = recorded_yes(options, "lora_base_double") ? PLAN_YES : PLAN_NO;
    strategy->lora_base_storage = recorded_is(options, "lora_base_storage", "uint8")
                                      ? PLAN_LORA_STORAGE_UINT8
                                      : PLAN_LORA_STORAGE_MODEL;
}

/* What is trained: recordings have regular expressions of the same words. */
static void set_trained(JsonObject *options, PlanStrategy *strategy) {
    if (is_recorded(options, "ignored")) {
        strategy->ignored =
            (PlanVariant){.choice = PLAN_IGNORED_MODULE,
                          .text = g_intern_string(recorded_text(options, "ignored"))};
    }
    if (is_recorded(options, "freeze") && *recorded_text(options, "freeze")) {
        strategy->freeze = (PlanVariant){.choice = PLAN_FREEZE_MODULE,
                                         .text = g_intern_string(recorded_text(options, "freeze"))};
    }
    if (recorded_int(options, "lora_rank")) {
        strategy->lora_rank = (uint64_t)recorded_int(options, "lora_rank");
        strategy->lora_alpha = recorded_real(options, "lora_alpha");
        strategy->lora_on =
            (PlanVariant){.choice = PLAN_LORA_ON_MODULE,
                          .text = g_intern_string(recorded_text(options, "lora_on"))};
        if (is_recorded(options, "lora_dropout")) {
            strategy->lora_dropout = recorded_real(options, "lora_dropout");
        }
        strategy->lora_dtype =
            recorded_flag(options, "lora_fp32") ? PLAN_LORA_FP32 : PLAN_LORA_MODEL;
        set_base(options, strategy);
    }
}

/* ---- keys that only recorders of this project write ------------------------------------------ */

static void set_kernels(JsonObject *options, PlanStrategy *strategy) {
    if (is_recorded(options, "rms_norm") && recorded_is(options, "rms_norm", "ops")) {
        strategy->rms_norm = PLAN_RMS_NORM_OPS;
    }
    if (recorded_yes(options, "compile")) {
        strategy->kernels = PLAN_KERNELS_COMPILED;
    }
    if (is_recorded(options, "float8")) {
        strategy->float8 = recorded_is(options, "float8", "rowwise") ? PLAN_FLOAT8_ROWWISE
                           : recorded_is(options, "float8", "mxfp8") ? PLAN_FLOAT8_MXFP8
                                                                     : PLAN_FLOAT8_TENSORWISE;
    }
    if (is_recorded(options, "float8_gather")) {
        strategy->float8_gather = recorded_is(options, "float8_gather", "precomputed")
                                      ? PLAN_FLOAT8_GATHER_PRECOMPUTED
                                      : PLAN_FLOAT8_GATHER_YES;
    }
    if (recorded_yes(options, "compile_network")) {
        strategy->kernels = PLAN_KERNELS_COMPILED;
        strategy->compile = PLAN_COMPILE_NETWORK;
        strategy->shape_padding = PLAN_NO; /* a recorder's programs are a CPU's */
    }
    if (recorded_yes(options, "deterministic")) {
        strategy->deterministic = PLAN_DETERMINISTIC_YES;
    }
    if (is_recorded(options, "autocast") && *recorded_text(options, "autocast")) {
        strategy->autocast =
            recorded_is(options, "autocast", "bf16") ? PLAN_AUTOCAST_BF16 : PLAN_AUTOCAST_FP16;
    }
    if (recorded_yes(options, "grad_scaler")) {
        strategy->loss_scale.choice = PLAN_LOSS_SCALE_DYNAMIC;
    }
    if (is_recorded(options, "early_stop") && !recorded_flag(options, "early_stop")) {
        strategy->checkpoint_early_stop = PLAN_NO;
    }
    if (recorded_yes(options, "selective_sends_again")) {
        strategy->checkpoint_sent = PLAN_NO;
    }
    if (strategy->checkpointing.choice == PLAN_CHECKPOINTING_FULL &&
        recorded_yes(options, "selective")) {
        strategy->checkpointing.choice = PLAN_CHECKPOINTING_SELECTIVE_OP;
    }
}

static void set_of_fsdp(JsonObject *options, PlanStrategy *strategy) {
    if (strategy->flavour == PLAN_FLAVOUR_FSDP1 &&
        is_recorded(options, "keep_low_precision_grads") &&
        *recorded_text(options, "param_dtype") &&
        recorded_flag(options, "keep_low_precision_grads")) {
        strategy->keep_low_precision_grads = PLAN_YES;
    }
    bool is_fsdp =
        strategy->flavour == PLAN_FLAVOUR_FSDP1 || strategy->flavour == PLAN_FLAVOUR_FSDP2;
    if (is_fsdp && recorded_yes(options, "cpu_offload")) {
        strategy->offload = PLAN_OFFLOAD_PARAMS;
    }
    if (strategy->flavour != PLAN_FLAVOUR_FSDP2) {
        return;
    }
    if (is_recorded(options, "reshard_last") && !recorded_flag(options, "reshard_last")) {
        strategy->reshard_last = PLAN_NO;
    }
    if (is_recorded(options, "reshard_after_backward") &&
        recorded_is(options, "reshard_after_backward", "last")) {
        strategy->reshard_after_backward = PLAN_NO;
    }
    int64_t ahead = recorded_int(options, "fsdp2_forward_prefetch");
    if (ahead > 0) {
        strategy->forward_prefetch =
            (PlanVariant){.choice = PLAN_FORWARD_PREFETCH_UNITS, .number = (double)ahead};
    }
}

static void set_pipeline(JsonObject *options, PlanStrategy *strategy) {
    if (!is_recorded(options, "pipeline")) {
        return;
    }
    strategy->pipeline = (uint64_t)recorded_int(options, "pipeline");
    const char *schedule = recorded_text(options, "pipeline_schedule");
    strategy->pipeline_schedule = g_str_equal(schedule, "gpipe") ? PLAN_PIPELINE_GPIPE
                                  : g_str_equal(schedule, "interleaved-1f1b")
                                      ? PLAN_PIPELINE_INTERLEAVED
                                  : g_str_equal(schedule, "looped-bfs") ? PLAN_PIPELINE_LOOPED_BFS
                                                                        : PLAN_PIPELINE_1F1B;
    if (is_recorded(options, "pipeline_stages")) {
        strategy->pipeline_stages = (uint64_t)recorded_int(options, "pipeline_stages");
    }
    strategy->pipeline_split = recorded_is(options, "pipeline_split", "even")
                                   ? PLAN_PIPELINE_SPLIT_EVEN
                                   : PLAN_PIPELINE_SPLIT_TORCHTITAN;
}

/* Ranks that share layers, sequences or experts. */
static void set_sharing(JsonObject *options, PlanStrategy *strategy) {
    if (is_recorded(options, "tensor_plan") && recorded_is(options, "tensor_plan", "ends-whole")) {
        strategy->tensor_plan = PLAN_TENSOR_KEMPNERFORGE;
    }
    if (is_recorded(options, "tensor_plan") &&
        recorded_is(options, "tensor_plan", "logits-whole")) {
        strategy->tensor_plan = PLAN_TENSOR_TRANSFORMERS;
    }
    if (is_recorded(options, "sequence_parallel") && !recorded_flag(options, "sequence_parallel")) {
        strategy->sequence_parallel = PLAN_NO;
    }
    if (is_recorded(options, "context")) {
        strategy->context = (uint64_t)recorded_int(options, "context");
    }
    if (is_recorded(options, "expert")) {
        strategy->expert = (uint64_t)recorded_int(options, "expert");
    }
    if (is_recorded(options, "expert_overload")) {
        strategy->expert_overload = json_object_get_double_member(options, "expert_overload");
    }
    if (recorded_yes(options, "async_tensor")) {
        strategy->async_tensor = PLAN_YES;
    }
    if (is_recorded(options, "tensor")) {
        strategy->tensor = (uint64_t)recorded_int(options, "tensor");
    }
    set_pipeline(options, strategy);
}

/* Ranks that share a copy of the model, where that is not all of them. */
static void set_groups(JsonObject *options, PlanStrategy *strategy) {
    uint64_t shard_size = (uint64_t)recorded_int(options, "shard_size");
    bool is_hybrid = strategy->sharding == PLAN_SHARDING_HYBRID ||
                     strategy->sharding == PLAN_SHARDING_HYBRID_GRAD_OP;
    uint64_t ranks = strategy->ranks / strategy->tensor / strategy->pipeline;
    if (shard_size && strategy->flavour == PLAN_FLAVOUR_FSDP2 && shard_size < ranks) {
        strategy->sharding = PLAN_SHARDING_HYBRID;
        is_hybrid = true;
    }
    if (is_hybrid && shard_size) {
        strategy->replicate = ranks / shard_size;
        /* A mesh of whole groups leaves the last ranks out. */
        strategy->ranks -= ranks % shard_size * strategy->tensor * strategy->pipeline;
    }
}

/* Recorded in a plan's words. */
static bool set_wraps(JsonObject *options, PlanStrategy *strategy, GError **error) {
    static const char *const keys[] = {"wrap", "wrap_ends"};
    for (unsigned i = 0; i < G_N_ELEMENTS(keys); i++) {
        if (is_recorded(options, keys[i]) &&
            !plan_strategy_set(strategy, keys[i], recorded_text(options, keys[i]), error)) {
            return false;
        }
    }
    if (recorded_yes(options, "accelerate")) {
        strategy->wrap_ends = PLAN_ENDS_TAIL;
    }
    return true;
}

/* ---- all ------------------------------------------------------------------------------------- */

/* "2.13.0+cu130"; first of all, for it sets other keys. */
static bool set_version(const Recording *recording, PlanStrategy *strategy, GError **error) {
    const char *text = recorded_text(recording->header, "torch");
    g_autofree char *version = g_strndup(text, strcspn(text, "+"));
    return plan_strategy_set(strategy, "pytorch", version, error);
}

static PlanConstruction construction_on_gpu(JsonObject *options, const PlanStrategy *strategy) {
    bool is_whole = recorded_yes(options, "real_start");
    return is_whole                                  ? PLAN_CONSTRUCTION_WHOLE
           : strategy->flavour == PLAN_FLAVOUR_FSDP1 ? PLAN_CONSTRUCTION_UNIT
                                                     : PLAN_CONSTRUCTION_SHARD;
}

static void set_program(RecordingProgram program, JsonObject *options, PlanStrategy *strategy) {
    if (program == RECORDING_OF_DETERMINISTIC) {
        strategy->deterministic = PLAN_DETERMINISTIC_YES;
    }
    strategy->step_sync = program == RECORDING_OF_ALLOCATOR ? PLAN_YES : PLAN_NO;
    strategy->init = program == RECORDING_OF_GPU            ? construction_on_gpu(options, strategy)
                     : program == RECORDING_OF_CONSTRUCTION ? PLAN_CONSTRUCTION_WHOLE
                                                            : PLAN_CONSTRUCTION_SHARD;
}

static bool set_all(const Recording *recording, JsonObject *options, PlanStrategy *strategy,
                    GError **error) {
    if (!set_version(recording, strategy, error)) {
        return false;
    }
    strategy->ranks = (uint64_t)recorded_int(options, "world");
    strategy->micro_batch = (uint64_t)recorded_int(options, "batch");
    /* The recorder's own device has no kernel for it; a real GPU does, and so does the CPU, which
     * versions before 2.1 are recorded on. */
    bool is_real = recorded_is(options, "device", "cuda") ||
                   !plan_strategy_is_after(strategy, PLAN_PYTORCH_2_0);
    strategy->silu_backward = is_real ? PLAN_SILU_KERNEL : PLAN_SILU_OPS;
    if (!set_optimizer_kernel(options, strategy, error) ||
        !set_optimizer(options, strategy, error) || !set_passes(options, strategy, error) ||
        !set_checkpointing(options, strategy, error) || !set_dtypes(options, strategy, error) ||
        !set_mode(recording, options, strategy, error) || !set_wraps(options, strategy, error)) {
        return false;
    }
    set_kernels(options, strategy);
    set_of_fsdp(options, strategy);
    set_sharing(options, strategy);
    set_groups(options, strategy);
    set_trained(options, strategy);
    return true;
}

bool recorded_strategy(const Recording *recording, RecordingProgram program,
                       PlanStrategy *ret_strategy, GError **error) {
    JsonObject *shape = json_object_get_object_member(recording->header, "shape");
    JsonObject *options = json_object_get_object_member(recording->header, "options");
    plan_strategy_init(ret_strategy);
    if (!expressible(recording, shape, options, error) ||
        !set_all(recording, options, ret_strategy, error)) {
        return false;
    }
    if (is_recorded(recording->header,
                    "config")) { /* whose sequences may be longer than recorded */
        ret_strategy->seq = (uint64_t)recorded_int(shape, "seq");
    }
    ret_strategy->document =
        is_recorded(shape, "document") ? (uint64_t)recorded_int(shape, "document") : 0;
    set_program(program, options, ret_strategy);
    return true;
}
