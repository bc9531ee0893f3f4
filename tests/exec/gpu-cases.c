#include "tests/exec/gpu-runs.h"

#define SINKS                                                                                      \
    " --network-key sinks=yes --network-key attention=math --network-key qkv_bias=yes "            \
    "--network-key window=9 --network-key global_every=2"

/* What transformers' own networks of a type are beside its Llama. */
#define OWN(keys)   " --network-key code=transformers" keys
#define TURNS_PAIRS " --network-key rope=pairs"
#define TURNS_HALF  TURNS_PAIRS " --network-key rotary_share=0.5"
#define GLM(norm_at)                                                                               \
    OWN(TURNS_HALF " --network-key gate_up=joined --network-key qkv_bias=yes --network-key "       \
                   "norm_at=" norm_at)
#define COHERE                                                                                     \
    OWN(TURNS_PAIRS " --network-key norm_at=once --network-key norm_weight=centred "               \
                    "--network-key logits_scale=0.5 --network-key tied=yes")
#define COHERE2                                                                                    \
    COHERE " --network-key window=8 --network-key global_every=2 --network-key no_rope_every=2"
#define ERNIE  OWN(TURNS_PAIRS " --network-key tied=yes")
#define HELIUM OWN(TURNS_PAIRS " --network-key norm_weight=widened")
#define GEMMA2                                                                                     \
    OWN(" --network-key attention=math-fp32 --network-key attention_cap=50 --network-key "         \
        "logits_cap=30 --network-key attention_scale=0.2 --network-key window=8 --network-key "    \
        "global_every=2 --network-key norm_at=both --network-key norm_weight=from-one "            \
        "--network-key embed_scale=7 --network-key gate=gelu-tanh --network-key tied=yes")
/* One rank; parameters in fp32. */
#define AUTOCAST(dtype) " -n 1 --sharding none --autocast " dtype

const GpuCase gpu_cases[] = {
    {"gpt-toy -n 2 --sharding none --bucket-view yes --accumulate 2 --optimizer momentum "
     "--optimizer-kernel fused --lr 0.05",
     FP32},
    {"gpt-toy -n 2 --sharding grad-op --kernels fused --optimizer-kernel fused", FP32},
    {"gpt-toy -n 2 --kernels fused --param-dtype bf16", BF16},
    {"gpt-toy -n 1 --flavour fsdp1 --kernels fused --param-dtype bf16 --checkpointing full", BF16},
    {"gpt-toy -n 2 --allocator expandable --flavour fsdp1 --checkpointing full --offload "
     "activations",
     FP32},
    {"gpt-toy -n 4 --sharding hybrid --replicate 2 --accumulate 2 --micro-batch 1", FP32},
    {"gpt-toy -n 2 --sharding optimizer-only --optimizer sgd --optimizer-kernel fused", FP32},
    {"gpt-toy -n 4 --flavour fsdp1 --sharding hybrid --replicate 2 --micro-batch 1", FP32},
    {"gpt-toy -n 2 --network-key layers=1 --flavour fsdp1 --use-orig-params yes --optimizer-kernel "
     "loop --clip 1",
     FP32},
    {"gpt-toy -n 2 --optimizer-kernel loop --optimizer-count device --clip 1 --host-reads both",
     FP32},
    {"gpt-toy -n 2 --offload optimizer --optimizer adam --weight-decay 0.1", FP32},
    {"gpt-toy -n 2 --offload params --clip 0.3 --zero-grad keep", FP32},
    {"gpt-toy -n 2 --flavour fsdp1 --offload params --optimizer momentum --lr 0.05", FP32},
    {"gpt-toy -n 2 --reshard-after-forward no --zero-grad keep --accumulate 2", FP32},
    {"llama-toy --network-key loss=kernel -n 2 --accumulate 2", FP32},
    {"llama-toy --network-key loss=kernel --network-key loss_at=loop -n 2 --param-dtype bf16",
     BF16},
    {"llama-toy -n 1 --sharding none --kernels compiled --compile network --model-dtype bf16",
     BF16},
    {"gpt-toy -n 1 --sharding none --kernels compiled --compile network-holding --model-dtype bf16 "
     "--network-key logits_held=backward",
     BF16},
    {"olmo2-toy -n 2 --kernels compiled --checkpointing full", FP32},
    {"llama-toy -n 2 --kernels compiled --lora-rank 4 --lora-on all-linear", FP32},
    {"joined-toy -n 2 --flavour fsdp1", FP32},
    {"llama-toy -n 2 --rms-norm ops --deterministic yes", FP32},
    {"gpt-toy-dropout -n 2 --flavour fsdp1 --checkpointing full --deterministic yes", FP32},
    {"t5-toy -n 2", FP32},
    {"t5-kernel -n 2 --micro-batch 2", FP32},
    {"mlp-toy -n 3 --clip 1", FP32},
    {"mpt-toy -n 1 --sharding none", FP32},
    {"neox-toy -n 2 --checkpointing full", FP32},
    {"phi-toy -n 2 --flavour fsdp1", FP32},
    {"opt-toy -n 2 --micro-batch 2 --network-key logits_shifted=yes", FP32},
    {"starcoder2-toy -n 2 --kernels fused", FP32},
    {"llama-toy -n 4 --tensor 2 --micro-batch 3 --kernels compiled --tensor-plan kempnerforge",
     FP32},
    {"long-toy -n 2 --context 2 --micro-batch 2", FP32},
    {"long-toy -n 2 --context 2 --kernels compiled --accumulate 2 --micro-batch 1", FP32},
    {"long-toy -n 4 --context 2 --tensor 2 --checkpointing full --clip 1", FP32},
    {"llama-toy -n 4 --pipeline 2 --accumulate 3 --micro-batch 1 --clip 1", FP32},
    {"llama-toy -n 4 --pipeline 2 --accumulate 2 --pipeline-schedule gpipe --checkpointing full",
     FP32},
    {"llama-toy --network-key layers=4 -n 6 --pipeline 3 --accumulate 3 --micro-batch 1 "
     "--param-dtype bf16 --reduce-dtype fp32",
     BF16},
    {"llama-toy --network-key layers=6 -n 3 --pipeline 3 --accumulate 3 --micro-batch 1 "
     "--pipeline-schedule interleaved-1f1b --pipeline-stages 2 --pipeline-split even --clip 1",
     FP32},
    {"llama-toy --network-key layers=6 -n 4 --pipeline 2 --tensor 2 --accumulate 2 --micro-batch 2 "
     "--pipeline-schedule interleaved-1f1b --pipeline-stages 2",
     FP32},
    {"llama-toy -n 4 --pipeline 2 --accumulate 3 --micro-batch 1 --sharding none --clip 1", FP32},
    {"llama-toy -n 4 --pipeline 2 --tensor 2 --accumulate 2 --micro-batch 2 --sharding none", FP32},
    {"gpt-toy-dropout -n 4 --pipeline 2 --accumulate 3 --micro-batch 1 --checkpointing full", FP32},
    {"gpt-toy --network-key layers=4 -n 4 --pipeline 2 --tensor 2 --accumulate 2 --micro-batch 2 "
     "--pipeline-schedule interleaved-1f1b --pipeline-stages 2 --pipeline-split even --clip 1",
     FP32},
    {"moe-shared -n 1 --sharding none", FP32},
    {"moe-toy -n 2 --network-key code=transformers", FP32},
    {"llama-toy -n 2" GLM("before"), FP32},
    {"llama-toy -n 2" GLM("both"), FP32},
    {"llama-toy -n 2" COHERE, FP32},
    {"llama-toy -n 1 --sharding none" COHERE2, FP32},
    {"llama-toy -n 2" ERNIE, FP32},
    {"llama-toy -n 2 --checkpointing full" HELIUM, FP32},
    {"llama-toy -n 1 --sharding none" GEMMA2, FP32},
    {"moe-toy -n 2 --network-key code=transformers" SINKS, FP32},
    {"deepseek-toy -n 2", FP32},
    {"gpt-toy -n 2 --network-key loss=chunked --micro-batch 3", FP32},
    {"gpt-toy -n 2 --network-key loss=liger --micro-batch 3", FP32},
    {"llama-toy -n 2 --network-key window=7 --network-key window_by=kernel --kernels fused", FP32},
    {"llama-toy -n 2 --network-key window=9 --network-key code=transformers --micro-batch 2", FP32},
    {"llama-toy -n 2 --tensor 2 --network-key loss=kernel", FP32},
    {"gpt-toy -n 4 --tensor 2 --micro-batch 3 --checkpointing full --clip 1", FP32},
    {"gpt-toy -n 2 --tensor 2 --micro-batch 2 --sharding none --sequence-parallel no --model-dtype "
     "bf16",
     BF16},
    {"moe-toy -n 4 --network-key routing=in-turn --expert 2 --micro-batch 3 --checkpointing full "
     "--clip 1",
     FP32},
    {"llama-toy -n 3 --context 3 --network-key seq=48 --kernels compiled --checkpointing full "
     "--param-dtype bf16",
     BF16},
    {"moe-toy -n 4 --network-key routing=in-turn --network-key layers=1 --context 2 --expert 4 "
     "--micro-batch 1 --param-dtype bf16",
     BF16},
    {"llama-toy -n 2 --lora-rank 4 --lora-base nf4 --lora-base-double yes --lora-base-storage "
     "model "
     "--micro-batch 2",
     FP32},
    {"gpt-toy -n 2 --lora-rank 4 --lora-base fp4 --sharding none --lora-on all-linear", FP32},
    {"llama-toy -n 2 --lora-rank 4 --lora-base nf4 --lora-base-double yes --lora-base-storage "
     "model "
     "--model-dtype bf16 --flavour fsdp1 --wrap module=.*\\.\\d+|.*lora_[AB] --offload params "
     "--checkpointing full",
     BF16},
    {"gpt-toy -n 2 --param-dtype bf16 --reduce-dtype fp32", BF16},
    {"gpt-toy -n 2 --model-dtype bf16 --sharding none", BF16},
    {"gpt-toy -n 2 --sharding none --autocast bf16 --checkpointing full", MIXED},
    {"gpt-toy -n 2 --sharding none --autocast bf16 --kernels compiled", MIXED},
    {"qwen3-toy" AUTOCAST("bf16") OWN(""), MIXED},
    {"qwen3-toy" AUTOCAST("bf16") " --kernels compiled", MIXED},
    {"olmo2-toy" AUTOCAST("fp16") " --kernels compiled", MIXED},
    {"t5-toy" AUTOCAST("bf16"), MIXED},
    {"neox-toy" AUTOCAST("bf16"), MIXED},
    {"phi-toy" AUTOCAST("fp16"), MIXED},
    {"llama-toy" AUTOCAST("bf16") GLM("both"), MIXED},
    {"llama-toy" AUTOCAST("bf16") GEMMA2, MIXED},
    {"llama-toy" AUTOCAST("bf16") COHERE2, MIXED},
    {"llama-toy" AUTOCAST("bf16") ERNIE, MIXED},
    {"llama-toy" AUTOCAST("bf16") HELIUM, MIXED},
    {"llama-toy -n 2 --param-dtype bf16" COHERE2, BF16},
    {"llama-toy -n 2 --param-dtype bf16" HELIUM, BF16},
    {"gpt-toy -n 2 --model-dtype bf16 --offload params --clip 0.3", BF16},
    {"qwen3-toy -n 2 --param-dtype bf16 --kernels fused --flavour fsdp1", BF16},
    {"neox-toy -n 2 --param-dtype bf16", BF16},
    {"sliced-toy -n 2 --param-dtype bf16", BF16},
    {FLOAT8 "--float8 tensorwise --flavour fsdp1 --checkpointing full", BF16},
    {"gpt-toy -n 2 --micro-batch 2 --flavour fsdp1 --param-dtype bf16 --float8 delayed "
     "--accumulate 2",
     BF16},
    {FLOAT8 "--float8 tensorwise --float8-gather yes", BF16},
    {MXFP8, BF16},
    {FLOAT8 "--float8 tensorwise --float8-gather precomputed --checkpointing full", BF16},
    {FLOAT8_SHARED "--float8 tensorwise --micro-batch 2", BF16},
    {FLOAT8_SHARED "--float8 tensorwise --checkpointing selective-op", BF16},
    {FLOAT8_SHARED "--float8 rowwise --micro-batch 2", BF16},
    {FLOAT8_SHARED "--async-tensor yes --micro-batch 3", BF16},
    {FLOAT8_SHARED "--async-tensor yes --micro-batch 2 --float8 tensorwise --checkpointing full",
     BF16},
    {FLOAT8_SHARED "--async-tensor yes --micro-batch 2 --float8 rowwise", BF16},
    {"llama-toy -n 4 --pipeline 2 --micro-batch 1 --accumulate 2 --kernels compiled --param-dtype "
     "bf16 --float8 rowwise --checkpointing full",
     BF16},
    {"llama-toy --network-key layers=1 -n 2 --optimizer muon --muon-lr 0.01 "
     "--muon-rate match-rms-adamw --checkpointing full",
     MUON},
    {"gpt-toy --network-key layers=1 -n 1 --sharding none --optimizer muon --muon-nesterov no "
     "--clip 1",
     MUON},
    {"gpt-toy --network-key layers=1 -n 2 --model-dtype bf16 --optimizer muon", BF16},
    {"llama-toy --network-key layers=1 --network-key ffn=256 -n 1 --sharding none --optimizer "
     "adamw-torch-8bit --lr 0.01",
     FP32},
    {"llama-toy --network-key layers=1 -n 2 --sharding none --model-dtype bf16 --optimizer "
     "adamw-torch-8bit",
     BF16},
    {"moe-toy -n 2 --network-key code=transformers --param-dtype bf16", BF16},
    {"moe-toy -n 2 --network-key code=transformers --param-dtype bf16" SINKS, BF16},
    {"olmo2-toy -n 1 --network-key code=transformers --sharding none --model-dtype bf16", BF16},
    {"deepseek-toy -n 2 --param-dtype bf16", BF16},
    {"gpt-toy -n 2 --network-key loss=chunked --param-dtype bf16 --micro-batch 3", BF16},
    {"gpt-toy -n 2 --network-key loss=liger --param-dtype bf16 --micro-batch 3", BF16},
    {"llama-toy -n 2 --network-key window=7 --param-dtype bf16", BF16},
    {"llama-toy -n 2 --tensor 2 --network-key loss=kernel --param-dtype bf16", BF16},
    {"t5-toy -n 1 --flavour fsdp2 --param-dtype fp16", FP16},
    /* The first step of those that begin from a scale of 100000 or 300000 is skipped. */
    {"gpt-toy -n 1 --sharding none --autocast fp16 --loss-scale dynamic --optimizer-kernel fused",
     MIXED},
    {"gpt-toy -n 2 --sharding none --autocast fp16 --loss-scale from=300000 --clip 1 "
     "--optimizer momentum --weight-decay 0.1 --lr 0.05",
     MIXED},
    {"llama-toy -n 1 --sharding none --autocast fp16 --loss-scale dynamic --kernels compiled",
     MIXED},
    {"gpt-toy -n 2 --flavour fsdp1 --param-dtype fp16 --loss-scale from=100000 --clip 1", FP16},
    {"llama-toy -n 2 --param-dtype fp16 --loss-scale from=100000 --optimizer-kernel loop", FP16},
    {"gpt-toy -n 2 --param-dtype fp16 --loss-scale from=100000 --optimizer-kernel fused "
     "--clip 1",
     FP16},
    {"t5-kernel -n 2 --flavour fsdp1 --param-dtype bf16 --checkpointing full", BF16},
};

const unsigned gpu_n_cases = G_N_ELEMENTS(gpu_cases);
