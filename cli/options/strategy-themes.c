#include "cli/options/strategy-themes.h"

#include <glib.h>

const CliStrategyTheme cli_strategy_themes[] = {
    {"GPUs and sharding",
     "ranks sharding replicate flavour wrap wrap_ends ignored "
     "reshard_after_forward reshard_root reshard_last reshard_after_backward hold_reduced "
     "use_orig_params init"},
    {"batch and sequence",
     "micro_batch accumulate accumulate_sync seq document eval_batches eval_micro_batch "
     "eval_holds_logits"},
    {"precision", "param_dtype model_dtype autocast loss_scale reduce_dtype output_dtype "
                  "keep_low_precision_grads float8 float8_gather"},
    {"memory",
     "checkpointing checkpoint_place checkpoint_early_stop checkpoint_sent offload allocator"},
    {"what is trained: all, a part, or adapters",
     "freeze lora_rank lora_alpha lora_dropout lora_on lora_dtype lora_base "
     "lora_base_double lora_base_storage"},
    {"tensor, context, pipeline and expert parallel",
     "tensor tensor_plan sequence_parallel async_tensor context pipeline pipeline_schedule "
     "pipeline_stages pipeline_split expert expert_overload"},
    {"when collectives begin", "backward_prefetch forward_prefetch limit_all_gathers bucket_view "
                               "find_unused static_graph bucket_mb"},
    {"kernels",
     "kernels compile shape_padding silu_backward rms_norm attention_kernel deterministic"},
    {"the optimizer", "optimizer optimizer_kernel optimizer_count state_dtype zero_grad clip lr "
                      "beta1 beta2 eps momentum weight_decay"},
    {"the optimizer Muon",
     "muon_lr muon_momentum muon_nesterov muon_steps muon_weight_decay muon_rate"},
    {"PyTorch's version, and the loop around a step", "pytorch step_sync host_reads"},
};
const unsigned cli_n_strategy_themes = G_N_ELEMENTS(cli_strategy_themes);
