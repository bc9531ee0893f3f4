/* Losses of one global batch where ranks share layers, sequences, experts or stages, and of
 * families of networks that these are of. Takes the path of foreshard as its argument.
 */
#include "tests/exec/agree.h"

static const char *const with_llama[] = {
    "-n 1 --micro-batch 12 --sharding none",
    "-n 3 --micro-batch 4 --checkpointing selective-op",
    "-n 3 --micro-batch 4 --kernels fused",
    "-n 3 --micro-batch 4 --kernels compiled --checkpointing selective-op",
    "-n 2 --micro-batch 6 --kernels compiled --flavour fsdp1 --rms-norm ops",
    "-n 1 --micro-batch 4 --accumulate 3 --sharding none --kernels compiled --compile "
    "network-holding",
    "-n 3 --micro-batch 4 --sharding none --kernels compiled --compile network",
    "-n 2 --micro-batch 6 --rms-norm ops --checkpointing full",
    "-n 2 --micro-batch 6 --flavour fsdp1 --checkpointing selective-op --checkpoint-early-stop no",
    "-n 3 --micro-batch 4 --kernels compiled --eval-batches 2 --eval-micro-batch 5",
    "-n 4 --tensor 2 --micro-batch 6",
    "-n 4 --tensor 2 --micro-batch 6 --eval-batches 2 --eval-micro-batch 1",
    "-n 4 --tensor 2 --micro-batch 6 --kernels compiled --eval-batches 1",
    "-n 4 --tensor 2 --micro-batch 3 --accumulate 2 --checkpointing selective-op --rms-norm ops",
    "-n 4 --tensor 2 --micro-batch 6 --kernels compiled --checkpointing full",
    "-n 4 --tensor 2 --micro-batch 3 --accumulate 2 --kernels compiled "
    "--checkpointing selective-op",
    "-n 4 --tensor 2 --micro-batch 6 --kernels compiled --tensor-plan kempnerforge",
    "-n 4 --tensor 2 --micro-batch 3 --accumulate 2 --kernels compiled --checkpointing full "
    "--tensor-plan kempnerforge",
    "-n 8 --tensor 2 --micro-batch 3 --sharding hybrid --replicate 2",
    "-n 4 --tensor 2 --micro-batch 2 --accumulate 3 --sharding hybrid --replicate 2 "
    "--accumulate-sync every",
    "-n 2 --tensor 2 --micro-batch 6 --accumulate 2", /* FSDP2's group is one rank */
    "-n 2 --tensor 2 --micro-batch 12 --sharding none",
    "-n 2 --tensor 2 --micro-batch 6 --accumulate 2 --sharding none --optimizer-kernel fused "
    "--kernels compiled --compile network --tensor-plan kempnerforge --checkpointing full",
    "-n 4 --tensor 2 --micro-batch 6 --sequence-parallel no",
    "-n 4 --tensor 2 --micro-batch 3 --accumulate 2 --checkpointing selective-op --rms-norm ops "
    "--sequence-parallel no --tensor-plan transformers",
    "-n 8 --tensor 2 --micro-batch 3 --sharding hybrid --replicate 2 --checkpointing full "
    "--sequence-parallel no --tensor-plan kempnerforge",
    "-n 2 --tensor 2 --micro-batch 6 --accumulate 2 --sharding none --optimizer-kernel fused "
    "--sequence-parallel no --tensor-plan kempnerforge",
    "-n 4 --tensor 2 --micro-batch 6 --kernels compiled --checkpointing full --sequence-parallel "
    "no",
    NULL,
};
static const char *const with_norms_of_heads[] = {
    "-n 1 --micro-batch 12 --sharding none",
    "-n 4 --tensor 2 --micro-batch 6",
    "-n 2 --tensor 2 --micro-batch 3 --accumulate 4 --checkpointing full --rms-norm ops",
    "-n 4 --tensor 2 --micro-batch 6 --kernels compiled --checkpointing selective-op",
    "-n 8 --pipeline 2 --tensor 2 --micro-batch 2 --accumulate 3",
    NULL,
};
/* Of whose layer for q, k and v a rank has its heads' rows; it adds an N-th of some biases. */
static const char *const with_gpt[] = {
    "-n 1 --micro-batch 12 --sharding none",
    "-n 4 --tensor 2 --micro-batch 6 --checkpointing full",
    "-n 6 --tensor 2 --micro-batch 2 --accumulate 2 --eval-batches 1",
    "-n 2 --tensor 2 --micro-batch 12 --sharding none --optimizer-kernel fused",
    "-n 4 --tensor 4 --micro-batch 12 --checkpointing selective-op",
    "-n 4 --tensor 2 --micro-batch 3 --accumulate 2 --sequence-parallel no",
    "-n 4 --tensor 2 --micro-batch 6 --sequence-parallel no --tensor-plan kempnerforge",
    "-n 2 --tensor 2 --micro-batch 12 --sharding none --sequence-parallel no --tensor-plan "
    "transformers",
    NULL,
};
static const char *const with_gpt_clipped[] = {
    "-n 1 --micro-batch 12 --sharding none --optimizer momentum --lr 0.05 --clip 0.3",
    "-n 4 --tensor 2 --micro-batch 6 --optimizer momentum --lr 0.05 --clip 0.3",
    "-n 4 --tensor 2 --micro-batch 6 --optimizer momentum --lr 0.05 --clip 0.3 "
    "--sequence-parallel no",
    NULL,
};
/* One table is embedding and head. */
static const char *const with_a_tied_head[] = {
    "-n 1 --micro-batch 12 --sharding none",
    "-n 4 --tensor 2 --micro-batch 6 --checkpointing full",
    "-n 2 --tensor 2 --micro-batch 6 --accumulate 2 --sharding none --optimizer-kernel fused",
    "-n 6 --tensor 2 --micro-batch 2 --accumulate 2 --sequence-parallel no",
    NULL,
};
/* Norms, whose gradients ranks add up, rows, columns and the table; the first trained layer inside
 * of a block. */
#define FROZEN " --freeze module=embed|.*norm_1|layers.1.*o|head "
static const char *const with_frozen_parameters[] = {
    "-n 1 --micro-batch 12 --sharding none" FROZEN,
    "-n 4 --tensor 2 --micro-batch 6" FROZEN "--checkpointing full",
    "-n 2 --tensor 2 --micro-batch 12 --sharding none" FROZEN,
    "-n 4 --tensor 2 --micro-batch 3 --accumulate 2 --sequence-parallel no" FROZEN,
    NULL,
};
#undef FROZEN
static const char *const with_one_kernel_of_loss[] = {
    "-n 1 --micro-batch 12 --sharding none",
    "-n 4 --pipeline 2 --micro-batch 2 --accumulate 3 --kernels compiled",
    "-n 4 --tensor 2 --micro-batch 6",
    "-n 2 --tensor 2 --micro-batch 3 --accumulate 4 --kernels compiled --checkpointing full",
    "-n 2 --tensor 2 --micro-batch 12 --sharding none --kernels compiled",
    "-n 8 --pipeline 2 --tensor 2 --micro-batch 2 --accumulate 3 --kernels compiled",
    NULL,
};
static const char *const with_llama_clipped[] = {
    "-n 1 --micro-batch 12 --sharding none --optimizer momentum --lr 0.05 --clip 0.3",
    "-n 4 --tensor 2 --micro-batch 6 --optimizer momentum --lr 0.05 --clip 0.3",
    "-n 8 --tensor 2 --micro-batch 3 --optimizer momentum --lr 0.05 --clip 0.3 --sharding hybrid "
    "--replicate 2",
    "-n 4 --tensor 2 --micro-batch 6 --optimizer momentum --lr 0.05 --clip 0.3 "
    "--sequence-parallel no",
    "-n 2 --tensor 2 --micro-batch 12 --optimizer momentum --lr 0.05 --clip 0.3 "
    "--sequence-parallel no --tensor-plan transformers", /* FSDP2's group is one rank */
    NULL,
};

/* Sequences of 384 tokens: fp32's attention pads what it keeps of rows to 32. */
#define LONG_LLAMA "llama-toy --network-key kv_heads=4 --network-key seq=384"
static const char *const with_sequences_shared[] = {
    "-n 1 --micro-batch 4 --sharding none",
    "-n 2 --context 2 --micro-batch 4",
    "-n 3 --context 3 --micro-batch 4 --checkpointing full --sharding grad-op",
    "-n 4 --context 2 --micro-batch 1 --accumulate 2 --accumulate-sync every",
    "-n 8 --context 2 --micro-batch 1 --sharding hybrid --replicate 2",
    "-n 2 --context 2 --micro-batch 4 --checkpointing selective-op",
    "-n 2 --context 2 --micro-batch 4 --kernels compiled",
    "-n 3 --context 3 --micro-batch 2 --accumulate 2 --kernels compiled --checkpointing full",
    "-n 4 --context 2 --tensor 2 --micro-batch 4",
    "-n 4 --context 2 --tensor 2 --micro-batch 2 --accumulate 2 --kernels compiled --checkpointing "
    "full",
    "-n 4 --pipeline 2 --context 2 --micro-batch 2 --accumulate 2 --pipeline-split even",
    "-n 6 --pipeline 2 --context 3 --micro-batch 2 --accumulate 2 --pipeline-split even "
    "--checkpointing full",
    "-n 8 --pipeline 2 --context 2 --tensor 2 --micro-batch 2 --accumulate 2 --pipeline-split even "
    "--kernels compiled",
    NULL,
};

/* Norms of q and k, too; by eager kernels in 16 bits alone. */
static const char *const with_sequences_and_norms[] = {
    "-n 1 --micro-batch 4 --sharding none",
    "-n 2 --context 2 --micro-batch 4 --kernels compiled",
    "-n 4 --context 2 --tensor 2 --micro-batch 4 --kernels compiled --checkpointing full",
    NULL,
};

/* As many rows for each rank, which plans have: by turns, and tokens that experts divide. */
#define IN_TURN "moe-toy --network-key routing=in-turn --network-key shared_ffn=24"
static const char *const with_experts_shared[] = {
    "-n 1 --micro-batch 12 --sharding none",
    "-n 2 --expert 2 --micro-batch 6",
    "-n 4 --expert 4 --micro-batch 3 --checkpointing full",
    "-n 4 --expert 2 --micro-batch 1 --accumulate 3",
    "-n 6 --expert 2 --micro-batch 1 --accumulate 2 --accumulate-sync every --sharding grad-op",
    "-n 4 --expert 2 --micro-batch 3 --kernels compiled",
    "-n 2 --expert 2 --micro-batch 2 --accumulate 3 --kernels compiled --checkpointing full",
    "-n 2 --expert 2 --micro-batch 6 --kernels compiled --checkpointing selective-op "
    "--checkpoint-sent no",
    "-n 4 --expert 2 --micro-batch 3 --checkpointing selective-op",
    "-n 4 --expert 2 --micro-batch 3 --sharding hybrid --replicate 2",
    "-n 6 --expert 2 --micro-batch 2 --sharding hybrid --replicate 3 --kernels compiled",
    NULL,
};

/* Latent attention, and routing by groups, which turns then override. */
#define LATENT "deepseek-toy --network-key routing=in-turn"
static const char *const with_latent_attention[] = {
    "-n 1 --micro-batch 12 --sharding none",
    "-n 3 --micro-batch 2 --accumulate 2 --checkpointing full",
    "-n 2 --sharding none --micro-batch 6",
    "-n 4 --flavour fsdp1 --micro-batch 3",
    "-n 4 --expert 2 --micro-batch 3 --checkpointing selective-op",
    "-n 2 --micro-batch 6 --offload params",
    "-n 4 --pipeline 2 --expert 2 --micro-batch 1 --accumulate 6",
    "-n 4 --expert 2 --micro-batch 3 --kernels compiled",
    "-n 4 --pipeline 2 --expert 2 --micro-batch 1 --accumulate 6 --kernels compiled",
    "-n 4 --expert 2 --micro-batch 3 --kernels compiled --checkpointing selective-op",
    NULL,
};

/* The first stage has no experts whose norm could be joined with that of the rest. */
static const char *const with_latent_attention_clipped[] = {
    "-n 1 --micro-batch 12 --sharding none --clip 0.05",
    "-n 4 --expert 2 --micro-batch 3 --clip 0.05",
    "-n 4 --pipeline 2 --expert 2 --micro-batch 1 --accumulate 6 --clip 0.05",
    NULL,
};

/* More ranks than experts: those that have the same ones share their rows. */
static const char *const with_experts_cut[] = {
    "-n 1 --micro-batch 8 --sharding none",
    "-n 8 --expert 2 --micro-batch 1",
    "-n 8 --expert 4 --micro-batch 1 --checkpointing full",
    "-n 8 --expert 2 --micro-batch 1 --sharding hybrid --replicate 2 --checkpointing selective-op",
    NULL,
};

/* Beside sequences that ranks share, and in stages. */
#define BESIDE                                                                                     \
    "moe-toy --network-key routing=in-turn --network-key kv_heads=4 --network-key layers=4 "       \
    "--network-key seq=128"
static const char *const with_experts_beside[] = {
    "-n 1 --micro-batch 4 --sharding none",
    "-n 4 --pipeline 2 --expert 2 --micro-batch 1 --accumulate 2 --pipeline-split even",
    "-n 4 --context 2 --expert 4 --micro-batch 2",
    "-n 4 --context 2 --expert 2 --micro-batch 2 --kernels compiled --checkpointing full",
    "-n 8 --pipeline 2 --context 2 --expert 4 --micro-batch 1 --accumulate 2 --pipeline-split even "
    "--checkpointing selective-op",
    "-n 4 --pipeline 2 --pipeline-stages 2 --pipeline-schedule interleaved-1f1b --expert 2 "
    "--micro-batch 1 --accumulate 2 --pipeline-split even --kernels compiled",
    NULL,
};

static const char *const with_experts_clipped[] = {
    "-n 1 --micro-batch 8 --sharding none --optimizer momentum --lr 0.05 --clip 0.3",
    "-n 4 --expert 2 --micro-batch 2 --optimizer momentum --lr 0.05 --clip 0.3",
    "-n 4 --expert 2 --micro-batch 2 --optimizer momentum --lr 0.05 --clip 0.3 --sharding hybrid "
    "--replicate 2",
    "-n 4 --pipeline 2 --expert 2 --micro-batch 2 --accumulate 2 --optimizer momentum --lr 0.05 "
    "--clip 0.3 --pipeline-split even",
    NULL,
};

/* Stages of one rank, of two and of three, whose rows are uneven; one batch of 12 in
 * microbatches. */
static const char *const with_stages[] = {
    "-n 1 --micro-batch 12 --sharding none",
    "-n 1 --micro-batch 2 --accumulate 6 --flavour fsdp2",
    "-n 4 --pipeline 2 --micro-batch 2 --accumulate 3",
    "-n 4 --pipeline 2 --micro-batch 2 --accumulate 3 --pipeline-schedule gpipe",
    "-n 6 --pipeline 2 --micro-batch 2 --accumulate 2 --sharding grad-op",
    "-n 6 --pipeline 3 --micro-batch 2 --accumulate 3 --pipeline-split even --optimizer-kernel "
    "fused",
    "-n 8 --pipeline 4 --micro-batch 1 --accumulate 6",
    "-n 8 --pipeline 4 --micro-batch 1 --accumulate 6 --pipeline-schedule gpipe --checkpointing "
    "full",
    "-n 8 --pipeline 4 --micro-batch 3 --accumulate 2 --pipeline-schedule gpipe",
    "-n 12 --pipeline 4 --micro-batch 1 --accumulate 4 --checkpointing full --optimizer-kernel "
    "loop",
    "-n 2 --pipeline 2 --micro-batch 4 --accumulate 3",
    "-n 4 --pipeline 4 --micro-batch 2 --accumulate 6 --pipeline-schedule gpipe --checkpointing "
    "full",
    "-n 8 --pipeline 2 --tensor 2 --micro-batch 2 --accumulate 3",
    "-n 8 --pipeline 2 --tensor 2 --micro-batch 2 --accumulate 3 --sequence-parallel no "
    "--tensor-plan kempnerforge --checkpointing full",
    "-n 8 --pipeline 2 --tensor 2 --micro-batch 2 --accumulate 3 --sequence-parallel no "
    "--tensor-plan transformers --reshard-after-forward yes",
    "-n 8 --pipeline 2 --micro-batch 1 --accumulate 3 --sharding hybrid --replicate 2",
    "-n 8 --pipeline 2 --tensor 2 --micro-batch 2 --accumulate 3 --sharding hybrid --replicate 2",
    "-n 4 --pipeline 2 --micro-batch 2 --accumulate 3 --kernels compiled",
    "-n 6 --pipeline 3 --micro-batch 2 --accumulate 3 --kernels compiled --checkpointing "
    "selective-op",
    "-n 4 --pipeline 4 --micro-batch 2 --accumulate 6 --sharding none",
    "-n 4 --pipeline 2 --micro-batch 2 --accumulate 3 --sharding none --bucket-view yes",
    "-n 6 --pipeline 2 --micro-batch 2 --accumulate 2 --sharding none --pipeline-schedule gpipe "
    "--bucket-mb 0.1",
    "-n 2 --pipeline 2 --micro-batch 4 --accumulate 3 --sharding none --pipeline-schedule gpipe "
    "--checkpointing full",
    "-n 4 --pipeline 2 --tensor 2 --micro-batch 4 --accumulate 3 --sharding none "
    "--optimizer-kernel fused",
    NULL,
};

/* Several of them a rank: of seven blocks, which leave stages uneven, or six. */
static const char *const with_several_stages[] = {
    "-n 1 --micro-batch 12 --sharding none",
    "-n 2 --pipeline 2 --micro-batch 3 --accumulate 4" TEST_RUN_INTERLEAVED "2",
    "-n 2 --pipeline 2 --micro-batch 2 --accumulate 6 --pipeline-split even" TEST_RUN_INTERLEAVED
    "3",
    "-n 3 --pipeline 3 --micro-batch 4 --accumulate 3 --pipeline-split even" TEST_RUN_INTERLEAVED
    "2",
    "-n 3 --pipeline 3 --micro-batch 2 --accumulate 6 --pipeline-split even" TEST_RUN_INTERLEAVED
    "2",
    "-n 3 --pipeline 3 --micro-batch 6 --accumulate 2 --pipeline-split even --optimizer-kernel "
    "fused" TEST_RUN_INTERLEAVED "2",
    "-n 4 --pipeline 2 --micro-batch 3 --accumulate 2 --pipeline-split even" TEST_RUN_INTERLEAVED
    "3",
    "-n 6 --pipeline 2 --micro-batch 2 --accumulate 2 --checkpointing full" TEST_RUN_INTERLEAVED
    "2",
    "-n 6 --pipeline 3 --micro-batch 2 --accumulate 3 --pipeline-split even --kernels "
    "compiled" TEST_RUN_INTERLEAVED "2",
    "-n 4 --pipeline 2 --tensor 2 --micro-batch 4 --accumulate 3" TEST_RUN_INTERLEAVED "2",
    "-n 6 --pipeline 3 --tensor 2 --micro-batch 2 --accumulate 6 --pipeline-split even "
    "--checkpointing full" TEST_RUN_INTERLEAVED "2",
    "-n 3 --pipeline 3 --micro-batch 4 --accumulate 3 --pipeline-split even" TEST_RUN_BREADTH_FIRST
    "2",
    "-n 4 --pipeline 2 --micro-batch 2 --accumulate 3 --pipeline-split even" TEST_RUN_BREADTH_FIRST
    "3",
    "-n 2 --pipeline 2 --micro-batch 3 --accumulate 4 --sharding none" TEST_RUN_INTERLEAVED "2",
    "-n 4 --pipeline 2 --micro-batch 2 --accumulate 3 --sharding none "
    "--pipeline-split even" TEST_RUN_BREADTH_FIRST "3",
    NULL,
};
static const char *const with_two_stages_on_four[] = {
    "-n 1 --micro-batch 12 --sharding none",
    "-n 4 --pipeline 4 --micro-batch 3 --accumulate 4 --pipeline-split even" TEST_RUN_INTERLEAVED
    "2",
    "-n 4 --pipeline 4 --micro-batch 1 --accumulate 12 --pipeline-split even" TEST_RUN_INTERLEAVED
    "2",
    NULL,
};

#define CLIPPED "--optimizer momentum --lr 0.05 --clip 0.3 "
static const char *const with_stages_clipped[] = {
    CLIPPED "-n 1 --micro-batch 12 --sharding none",
    CLIPPED "-n 4 --pipeline 4 --micro-batch 2 --accumulate 6",
    CLIPPED "-n 6 --pipeline 2 --micro-batch 2 --accumulate 2 --pipeline-schedule gpipe",
    CLIPPED "-n 8 --pipeline 2 --micro-batch 1 --accumulate 3 --sharding hybrid --replicate 2",
    CLIPPED
    "-n 3 --pipeline 3 --micro-batch 2 --accumulate 6 --pipeline-split even" TEST_RUN_INTERLEAVED
    "2",
    CLIPPED "-n 2 --pipeline 2 --micro-batch 2 --accumulate 6 --sharding none "
            "--pipeline-split even" TEST_RUN_BREADTH_FIRST "2",
    NULL,
};

#define GPT_STAGES "gpt-toy --network-key layers=6"
/* Of a GPT, with its biases and positions: alone, where ranks share its layers, several a rank. */
static const char *const with_gpt_in_stages[] = {
    "-n 1 --micro-batch 12 --sharding none",
    "-n 4 --pipeline 2 --micro-batch 2 --accumulate 3 --kernels compiled",
    "-n 6 --pipeline 3 --micro-batch 2 --accumulate 3 --pipeline-schedule gpipe --checkpointing "
    "full --pipeline-split even",
    "-n 4 --pipeline 2 --micro-batch 2 --accumulate 3 --reshard-after-forward yes",
    "-n 4 --pipeline 2 --micro-batch 3 --accumulate 2 --sharding none",
    "-n 8 --pipeline 2 --tensor 2 --micro-batch 2 --accumulate 3",
    "-n 4 --pipeline 2 --tensor 2 --micro-batch 4 --accumulate 3 --sharding none "
    "--sequence-parallel no --tensor-plan kempnerforge",
    "-n 2 --pipeline 2 --micro-batch 3 --accumulate 4 --pipeline-split even" TEST_RUN_INTERLEAVED
    "3",
    NULL,
};
static const char *const with_gpt_in_stages_clipped[] = {
    CLIPPED "-n 1 --micro-batch 12 --sharding none",
    CLIPPED "-n 6 --pipeline 3 --micro-batch 3 --accumulate 2 --pipeline-split even "
            "--pipeline-schedule gpipe",
    CLIPPED "-n 4 --pipeline 2 --tensor 2 --micro-batch 3 --accumulate 4 "
            "--pipeline-split even" TEST_RUN_BREADTH_FIRST "2",
    NULL,
};
#undef CLIPPED
/* Each microbatch, and each place of each stage, drops by itself, and again when recomputed. */
static const char *const with_dropout_in_stages[] = {
    "-n 1 --micro-batch 12 --sharding none",
    "-n 4 --pipeline 2 --micro-batch 2 --accumulate 3 --checkpointing full",
    "-n 3 --pipeline 3 --micro-batch 4 --accumulate 3 --pipeline-split even --sharding none "
    "--pipeline-schedule gpipe",
    "-n 6 --pipeline 3 --micro-batch 2 --accumulate 3 --pipeline-split even" TEST_RUN_INTERLEAVED
    "2",
    NULL,
};

int main(int argc, char **argv) {
    static const AgreeFamily families[] = {
        {"of another family, some of it kept", "llama-toy", with_llama},
        {"whose heads of q and k are normalized", "llama-toy --network-key qk_norm=head",
         with_norms_of_heads},
        {"whose head is the embedding", "llama-toy --network-key tied=yes", with_a_tied_head},
        {"of shared layers, some of them frozen,", "llama-toy", with_frozen_parameters},
        {"whose loss is one kernel", "llama-toy --network-key loss=kernel",
         with_one_kernel_of_loss},
        {"of shared layers, clipped,", "llama-toy", with_llama_clipped},
        {"of a GPT's shared layers", "gpt-toy --network-key heads=4", with_gpt},
        {"of a GPT's shared layers and table, clipped,", "gpt-toy --network-key tied=yes",
         with_gpt_clipped},
        {"of shared sequences", LONG_LLAMA, with_sequences_shared},
        {"of shared sequences and norms of heads", LONG_LLAMA " --network-key qk_norm=head",
         with_sequences_and_norms},
        {"of shared experts", IN_TURN, with_experts_shared},
        {"of latent attention", LATENT, with_latent_attention},
        {"of latent attention, clipped,", LATENT, with_latent_attention_clipped},
        {"of shared experts, cut,", TEST_RUN_FEW_EXPERTS, with_experts_cut},
        {"of shared experts, beside others,", BESIDE, with_experts_beside},
        {"of shared experts, clipped,", TEST_RUN_FEW_EXPERTS, with_experts_clipped},
        {"of stages", TEST_RUN_STAGES, with_stages},
        {"of stages, clipped,", TEST_RUN_STAGES, with_stages_clipped},
        {"of a GPT's stages", GPT_STAGES, with_gpt_in_stages},
        {"of a GPT's stages, clipped,", GPT_STAGES, with_gpt_in_stages_clipped},
        {"of stages with dropout", "gpt-toy-dropout --network-key layers=6",
         with_dropout_in_stages},
        {"of several stages a rank", TEST_RUN_SEVERAL, with_several_stages},
        {"of two stages on each of four", "llama-toy --network-key layers=9",
         with_two_stages_on_four},
    };
    agree_begin(argc, argv);
    agree_add("/exec/losses-shared", families, G_N_ELEMENTS(families));
    return agree_end();
}
