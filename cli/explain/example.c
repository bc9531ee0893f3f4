#include "cli/explain/example.h"

#include <glib.h>
#include <string.h>

#define LESSONS "ranks=8 param_dtype=bf16 micro_batch=2"

static const CliExplainExample examples[] = {
    {"oom ways_to_fit near_edge", "llama3-8b", "dgx-h100",
     "ranks=8 param_dtype=bf16 micro_batch=4"},
    {"evaluation", "gpt2-xl", "a100-node", LESSONS " eval_batches=4"},
    {"shardings", "gpt2-xl", "a100-node", "ranks=8"},
    {"limit_all_gathers limiter rate_limiter", "gpt-175b", "a100-roce",
     "ranks=512 flavour=fsdp1 param_dtype=bf16 checkpointing=full"},
    {"use_orig_params keep_low_precision_grads", "gpt2-xl", "a100-node", LESSONS " flavour=fsdp1"},
    {"bucket_mb bucket_view find_unused static_graph", "gpt2-xl", "a100-node",
     "ranks=8 flavour=ddp autocast=bf16 micro_batch=2"},
    {"checkpoint_place checkpoint_early_stop", "gpt2-xl", "a100-node",
     LESSONS " checkpointing=full"},
    {"replicate", "gpt2-xl", "two-nodes-ethernet",
     "ranks=16 param_dtype=bf16 micro_batch=2 sharding=hybrid replicate=2"},
    {"accumulate accumulate_sync reshard_after_backward", "gpt2-xl", "a100-node",
     LESSONS " accumulate=4"},
    {"lora_rank lora_alpha lora_dropout lora_on lora_dtype lora_base lora_base_double "
     "lora_base_storage",
     "llama3-8b", "dgx-h100",
     "ranks=8 param_dtype=bf16 model_dtype=bf16 checkpointing=full lora_rank=16"},
    {"tensor tensor_plan sequence_parallel async_tensor", "llama3-8b", "dgx-h100",
     "ranks=16 param_dtype=bf16 checkpointing=full tensor=2"},
    {"context", "llama3-8b", "dgx-h100", "ranks=16 param_dtype=bf16 checkpointing=full context=2"},
    {"pipeline pipeline_schedule pipeline_stages pipeline_split", "llama3-8b", "dgx-h100",
     "ranks=16 param_dtype=bf16 checkpointing=full pipeline=4 accumulate=8"},
    {"expert checkpoint_sent", "qwen3-30b-a3b", "h200-p5e",
     "ranks=16 seq=4096 param_dtype=bf16 checkpointing=selective-op expert=8"},
    {"float8 float8_gather", "llama3-8b", "dgx-h100",
     "ranks=8 param_dtype=bf16 kernels=compiled float8=tensorwise"},
    {NULL, "gpt2-xl", "a100-node", LESSONS},
};

const CliExplainExample *cli_explain_example(const char *name) {
    g_autofree char *key = g_strdelimit(g_strdup(name), "-", '_');
    const CliExplainExample *example = examples;
    for (; example->of != NULL; example++) {
        g_auto(GStrv) of = g_strsplit(example->of, " ", -1);
        if (g_strv_contains((const char *const *)of, key)) {
            break;
        }
    }
    return example;
}
