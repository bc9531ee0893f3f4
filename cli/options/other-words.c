#include "cli/options/other-words.h"

#include <stdbool.h>
#include <string.h>

/* Words without "--", with '-' for '_'. ours begins with the option that is meant. */
static const struct {
    const char *theirs, *ours;
} words[] = {
    {"gpus num-gpus world world-size nproc n-gpus nproc-per-node num-processes",
     "--ranks (-n), of all nodes"},
    {"nodes num-nodes nnodes num-machines",
     "--ranks (-n), of all nodes; --cluster NAME:NODES has more of them"},
    {"gpu machine hardware device-type", "--cluster"},
    {"memory gpu-memory gpu-mem vram", "--cluster NAME:device.memory_bytes=N"},
    {"bf16 fp16 half dtype precision mixed-precision torch-dtype",
     "--param-dtype (bf16 or fp16; with DDP --autocast)"},
    {"fp8", "--float8"},
    {"amp-fp8 te transformer-engine fp8-autocast fp8-recipe delayed-scaling fc-type",
     "--float8 delayed"},
    {"fsdp1 fsdp2 fsdp-version", "--flavour (fsdp1 or fsdp2)"},
    {"hsdp mesh device-mesh dp-replicate data-parallel-replicate-degree",
     "--sharding hybrid, with --replicate groups"},
    {"dp dp-shard data-parallel-size data-parallel-shard-degree",
     "--ranks (-n), all of them: what other parallelism leaves is data parallel"},
    {"sharding-strategy fsdp-sharding-strategy",
     "--sharding (full is FULL_SHARD, grad-op SHARD_GRAD_OP)"},
    {"auto-wrap auto-wrap-policy wrap-policy wrapping transformer-layer-cls-to-wrap "
     "fsdp-transformer-layer-cls-to-wrap",
     "--wrap (block, or module=CLASS)"},
    {"prefetch", "--backward-prefetch, and --forward-prefetch"},
    {"fsdp zero zero1 zero2 zero3 zero-stage deepspeed ddp data-parallel strategy-name",
     "--sharding (full is ZeRO 3, grad-op 2, optimizer-only 1, none DDP)"},
    {"gradient-checkpointing activation-checkpointing ac checkpoint recompute "
     "activation-checkpoint "
     "recompute-granularity",
     "--checkpointing full"},
    {"gradient-accumulation-steps grad-accum gradient-accumulation grad-accum-steps",
     "--accumulate"},
    {"per-device-train-batch-size micro-batch-size local-batch-size batch mbs batch-size",
     "--micro-batch, of a rank and pass"},
    {"train-batch-size global-batch-size gbs", "--global-batch, in sequences"},
    {"train-batch-size global-batch global-batch-size gbs",
     "--micro-batch, of a rank and pass, with --accumulate passes; foreshard choose has "
     "--global-batch"},
    {"sequence seqlen seq-len seq-length max-seq-len max-seq-length max-length ctx context-length "
     "sequence-length sequence-len block-size model-max-length cutoff-len",
     "--seq"},
    {"packing packed document-length sample-packing", "--document, of so many tokens each"},
    {"tp tensor-parallel tensor-parallel-size tensor-model-parallel-size tensor-parallel-degree",
     "--tensor"},
    {"pp pipeline-parallel pipeline-model-parallel-size", "--pipeline"},
    {"vpp virtual-pipeline-model-parallel-size", "--pipeline-stages"},
    {"cp context-parallel context-parallel-size", "--context"},
    {"ep expert-parallel expert-parallel-degree expert-model-parallel-size", "--expert"},
    {"max-grad-norm clip-grad gradient-clipping max-norm", "--clip"},
    {"cpu-offload offload-params offload-optimizer", "--offload params (or optimizer)"},
    {"torch-compile jit", "--kernels compiled"},
    {"optim adam adamw muon sgd", "--optimizer, and --optimizer-kernel"},
    {"lora-r lora use-lora peft", "--lora-rank"},
    {"qlora load-in-4bit bnb-4bit-quant-type quant-type", "--lora-base nf4, with --lora-rank"},
    {"attn attn-implementation attn-impl attention-impl flash-attn flash-attention use-flash-attn",
     "--attention-kernel flash, or cudnn"},
    {"bnb-4bit-use-double-quant double-quant", "--lora-base-double yes"},
    {"bnb-4bit-quant-storage quant-storage", "--lora-base-storage"},
    {"learning-rate", "--lr"},
    {"model config model-name model-name-or-path",
     "--network-key of a key; a network is the word behind the command"},
    {"layers num-layers n-layers n-layer num-hidden-layers", "--network-key layers=N"},
    {"width hidden hidden-size d-model dim n-embd", "--network-key width=N"},
    {"heads num-heads n-heads n-head num-attention-heads", "--network-key heads=N"},
    {"ffn ffn-hidden-size intermediate-size d-ff", "--network-key ffn=N"},
    {"vocab vocab-size padded-vocab-size", "--network-key vocab=N"},
    {"window sliding-window", "--network-key window=N"},
    {"loss chunked-loss fused-loss liger liger-kernel use-liger-kernel cut-cross-entropy",
     "--network-key loss=WAY, as chunked"},
    {"cost max-price max-cost", "--budget, of the whole training; --price is of a GPU and hour"},
    {"num-tokens train-tokens total-tokens", "--tokens"},
    {"hours deadline time-limit max-days max-hours", "--days, of the whole training"},
};

/* Options of other commands, as they are spelt there. */
static const struct {
    const char *options, *commands;
} elsewhere[] = {
    {"tokens days price spare global-batch top", "foreshard choose has it"},
    {"knob", "foreshard plot and foreshard choose have it"},
    {"picture published where", "foreshard plot has it"},
    {"every-rank jitter spread slow degrade trace-ranks nccl-algo nccl-proto no-sharing",
     "foreshard predict has it"},
    {"data token-bytes load save pace watchdog verbose", "foreshard run has it"},
    {"n ranks", "foreshard predict has it, and writes with --trace what others read"},
    {"tree", "foreshard units has it"},
    {"chrome memory-viz", "foreshard export has it"},
    {"cluster", "foreshard predict has it (and run --pace C makes collectives as slow as C's)"},
};

static bool is_one_of(const char *word, const char *list) {
    g_auto(GStrv) all = g_strsplit(list, " ", -1);
    return g_strv_contains((const char *const *)all, word);
}

/* "--ranks" of "--ranks (-n), of all nodes". */
static char *option_of(const char *ours) {
    return g_strndup(ours, strcspn(ours, " ,;"));
}

char *cli_other_word(const char *word, const char *const *options) {
    g_autofree char *plain = g_strdelimit(g_ascii_strdown(word, -1), "_", '-');
    const char *name = plain + strspn(plain, "-");
    for (guint i = 0; i < G_N_ELEMENTS(words); i++) {
        g_autofree char *option = option_of(words[i].ours);
        if (is_one_of(name, words[i].theirs) && g_strv_contains(options, option)) {
            return g_strconcat("; here it is ", words[i].ours, NULL);
        }
    }
    for (guint i = 0; i < G_N_ELEMENTS(elsewhere); i++) {
        if (is_one_of(name, elsewhere[i].options)) {
            return g_strconcat("; ", elsewhere[i].commands, NULL);
        }
    }
    return g_strdup("");
}
