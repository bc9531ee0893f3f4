/* `foreshard run` on several ranks: one global batch, one answer, on any number of them and however
 * they share it. MPI binds them, or memory that they share: what MPI has done already it does not
 * do again (test_run_bind()). Takes the path of foreshard as its argument.
 */
#include <math.h>
#include <string.h>
#include <unistd.h>

#include <glib/gstdio.h>

#include "tests/exec/runs.h"

/* A global batch of 12 on 1 to 4 ranks: 3 leaves uneven rows. The first run of each list is one
 * rank by itself, which the others must follow. */
static const char *const with_adamw[] = {
    "-n 1 --micro-batch 12 --sharding none",
    "-n 1 --micro-batch 12 --flavour fsdp2",
    "-n 1 --micro-batch 12 --flavour fsdp1",
    "-n 1 --micro-batch 4 --accumulate 3 --sharding optimizer-only",
    "-n 2 --micro-batch 6 --sharding hybrid --replicate 2",
    "-n 2 --micro-batch 6 --sharding none",
    "-n 2 --micro-batch 6",
    "-n 2 --micro-batch 6 --wrap whole",
    "-n 3 --micro-batch 4",
    "-n 4 --micro-batch 3 --backward-prefetch none",
    "-n 3 --micro-batch 4 --sharding none --bucket-mb 0.05",
    "-n 3 --micro-batch 4 --checkpointing full",
    "-n 2 --micro-batch 6 --reshard-after-forward yes",
    "-n 2 --micro-batch 6 --optimizer-kernel loop",
    "-n 3 --micro-batch 4 --optimizer-kernel fused",
    "-n 2 --micro-batch 6 --flavour fsdp1",
    "-n 3 --micro-batch 4 --flavour fsdp1 --use-orig-params yes --checkpointing full",
    "-n 4 --micro-batch 3 --flavour fsdp1 --forward-prefetch yes --backward-prefetch post "
    "--optimizer-kernel loop",
    "-n 3 --micro-batch 4 --flavour fsdp1 --sharding none --limit-all-gathers 0",
    "-n 3 --micro-batch 4 --flavour fsdp1 --pytorch 1.13 --limit-all-gathers 2",
    "-n 4 --micro-batch 3 --flavour fsdp1 --pytorch 2.0 --sharding hybrid --replicate 2 "
    "--limit-all-gathers 2 --forward-prefetch yes",
    "-n 3 --micro-batch 4 --flavour fsdp2 --pytorch 2.4",
    "-n 1 --micro-batch 12 --flavour fsdp2 --pytorch 2.4",
    "-n 4 --micro-batch 1 --sharding hybrid --replicate 2 --accumulate 3 --accumulate-sync every "
    "--pytorch 2.4",
    "-n 2 --micro-batch 2 --accumulate 3 --pytorch 2.15",
    "-n 1 --micro-batch 4 --sharding none --accumulate 3 --zero-grad keep",
    "-n 2 --micro-batch 2 --accumulate 3",
    "-n 3 --micro-batch 2 --accumulate 2 --accumulate-sync every --zero-grad keep",
    "-n 4 --micro-batch 3 --sharding hybrid --replicate 2",
    "-n 4 --micro-batch 1 --sharding hybrid --replicate 2 --accumulate 3 --accumulate-sync every",
    "-n 4 --micro-batch 1 --sharding hybrid --replicate 2 --accumulate 3 --accumulate-sync scatter",
    "-n 4 --micro-batch 1 --sharding hybrid --replicate 2 --accumulate 3 --accumulate-sync scatter "
    "--offload params --zero-grad keep",
    "-n 2 --micro-batch 2 --accumulate 3 --reshard-after-backward no",
    "-n 4 --micro-batch 3 --reshard-after-forward 2",
    "-n 3 --micro-batch 4 --sharding grad-op",
    "-n 2 --micro-batch 2 --sharding none --bucket-view yes --accumulate 3",
    "-n 2 --micro-batch 6 --wrap every=2 --wrap-ends own --checkpointing every=2",
    "-n 3 --micro-batch 4 --wrap linear --flavour fsdp1",
    "-n 3 --micro-batch 4 --flavour fsdp1 --checkpointing ratio=0.5",
    "-n 2 --micro-batch 6 --wrap size=20000",
    "-n 3 --micro-batch 4 --checkpointing full --offload activations",
    "-n 3 --micro-batch 4 --offload optimizer",
    "-n 3 --micro-batch 4 --flavour fsdp1 --use-orig-params yes --offload optimizer",
    "-n 2 --micro-batch 6 --sharding none --bucket-view yes --offload optimizer",
    "-n 3 --micro-batch 4 --offload params",
    "-n 4 --micro-batch 3 --sharding hybrid --replicate 2 --offload params --checkpointing full",
    "-n 3 --micro-batch 4 --flavour fsdp1 --use-orig-params yes --offload params",
    "-n 2 --micro-batch 2 --flavour fsdp1 --sharding grad-op --offload params --accumulate 3",
    "-n 3 --micro-batch 2 --offload params --accumulate 2 --accumulate-sync every",
    "-n 4 --micro-batch 1 --sharding hybrid --replicate 2 --offload params --accumulate 3 "
    "--accumulate-sync every --zero-grad keep",
    "-n 2 --micro-batch 6 --flavour fsdp1 --offload params --zero-grad keep",
    "-n 3 --micro-batch 4 --flavour fsdp1 --sharding none --offload params",
    "-n 2 --micro-batch 3 --flavour fsdp1 --checkpointing full --offload activations "
    "--accumulate 2",
    "-n 3 --micro-batch 4 --kernels fused --checkpointing full",
    "-n 2 --micro-batch 6 --kernels fused --flavour fsdp1 --optimizer-kernel fused",
    "-n 3 --micro-batch 4 --sharding optimizer-only",
    "-n 4 --micro-batch 1 --sharding optimizer-only --accumulate 3 --wrap whole",
    "-n 2 --micro-batch 6 --forward-prefetch 2 --reshard-last no",
    "-n 3 --micro-batch 4 --wrap module=layers\\.\\d+(\\.mlp)?",
    "-n 3 --micro-batch 4 --checkpointing full --checkpoint-place outside",
    "-n 3 --micro-batch 4 --checkpointing parts",
    "-n 2 --micro-batch 3 --flavour fsdp1 --accumulate 2 --checkpointing parts",
    "-n 3 --micro-batch 4 --checkpointing module=.*mlp",
    "-n 3 --micro-batch 2 --sharding none --accumulate 2 --accumulate-sync every",
    "-n 4 --micro-batch 1 --flavour fsdp1 --sharding hybrid --replicate 2 --accumulate 3 "
    "--accumulate-sync every",
    "-n 3 --micro-batch 2 --flavour fsdp1 --sharding grad-op --accumulate 2 --use-orig-params yes "
    "--zero-grad keep",
    "-n 2 --micro-batch 2 --flavour fsdp1 --sharding none --accumulate 3",
    "-n 3 --micro-batch 2 --accumulate 2 --host-reads loss --step-sync no",
    "-n 2 --micro-batch 6 --sharding none --optimizer-kernel loop --optimizer-count device",
    "-n 3 --micro-batch 4 --optimizer-kernel loop --optimizer-count device --host-reads loss",
    NULL,
};
static const char *const with_adam[] = {
    "-n 1 --micro-batch 12 --sharding none --optimizer adam --weight-decay 0.1",
    "-n 3 --micro-batch 4 --optimizer adam --weight-decay 0.1",
    "-n 2 --micro-batch 6 --optimizer adam --weight-decay 0.1 --optimizer-kernel loop",
    "-n 2 --micro-batch 6 --optimizer adam --weight-decay 0.1 --offload optimizer",
    "-n 2 --micro-batch 6 --optimizer adam --weight-decay 0.1 --optimizer-kernel fused",
    NULL,
};
static const char *const with_sgd[] = {
    "-n 1 --micro-batch 12 --sharding none --optimizer sgd --lr 0.05",
    "-n 3 --micro-batch 4 --optimizer sgd --lr 0.05",
    "-n 2 --micro-batch 6 --sharding none --optimizer sgd --lr 0.05 --optimizer-kernel fused",
    "-n 3 --micro-batch 4 --optimizer sgd --lr 0.05 --offload params",
    NULL,
};
static const char *const with_momentum[] = {
    "-n 1 --micro-batch 12 --sharding none --optimizer momentum --lr 0.05 --weight-decay 0.1",
    "-n 3 --micro-batch 4 --optimizer momentum --lr 0.05 --weight-decay 0.1 --offload params",
    "-n 2 --micro-batch 6 --optimizer momentum --lr 0.05 --weight-decay 0.1 --offload optimizer",
    NULL,
};
static const char *const with_momentum_and_clip[] = {
    "-n 1 --micro-batch 12 --sharding none --optimizer momentum --lr 0.05 --clip 0.3 "
    "--weight-decay 0.1",
    "-n 3 --micro-batch 4 --optimizer momentum --lr 0.05 --clip 0.3 --weight-decay 0.1",
    "-n 3 --micro-batch 4 --optimizer momentum --lr 0.05 --clip 0.3 --weight-decay 0.1 "
    "--pytorch 2.4",
    "-n 2 --micro-batch 6 --optimizer momentum --lr 0.05 --clip 0.3 --weight-decay 0.1 "
    "--optimizer-kernel loop",
    "-n 3 --micro-batch 4 --sharding none --optimizer momentum --lr 0.05 --clip 0.3 "
    "--weight-decay 0.1 --optimizer-kernel fused",
    "-n 3 --micro-batch 4 --flavour fsdp1 --use-orig-params yes --optimizer momentum --lr 0.05 "
    "--clip 0.3 --weight-decay 0.1",
    "-n 3 --micro-batch 4 --sharding optimizer-only --optimizer momentum --lr 0.05 --clip 0.3 "
    "--weight-decay 0.1",
    "-n 4 --micro-batch 3 --flavour fsdp1 --sharding hybrid --replicate 2 --optimizer momentum "
    "--lr 0.05 --clip 0.3 --weight-decay 0.1",
    "-n 3 --micro-batch 4 --offload params --optimizer momentum --lr 0.05 --clip 0.3 "
    "--weight-decay 0.1",
    "-n 4 --micro-batch 3 --offload params --sharding hybrid --replicate 2 --pytorch 2.4 "
    "--optimizer momentum --lr 0.05 --clip 0.3 --weight-decay 0.1",
    "-n 3 --micro-batch 4 --flavour fsdp1 --sharding none --use-orig-params yes --offload params "
    "--optimizer momentum --lr 0.05 --clip 0.3 --weight-decay 0.1",
    "-n 3 --micro-batch 4 --offload params --flavour fsdp1 --use-orig-params yes --optimizer "
    "momentum --lr 0.05 --clip 0.3 --weight-decay 0.1",
    "-n 3 --micro-batch 4 --optimizer momentum --lr 0.05 --clip 0.3 --weight-decay 0.1 "
    "--host-reads both --step-sync no",
    "-n 3 --micro-batch 4 --optimizer momentum --lr 0.05 --clip 0.3 --weight-decay 0.1 "
    "--pytorch 2.4 --host-reads norm",
    "-n 2 --micro-batch 6 --flavour fsdp1 --optimizer momentum --lr 0.05 --clip 0.3 "
    "--weight-decay 0.1 --host-reads both",
    NULL,
};

/* What is dropped is dropped on whichever rank the sample lies, and again when recomputed. */
static const char *const with_dropout[] = {
    "-n 1 --micro-batch 12 --sharding none",
    "-n 3 --micro-batch 4",
    "-n 2 --micro-batch 2 --sharding none --accumulate 3",
    "-n 2 --micro-batch 6 --flavour fsdp1 --checkpointing full",
    "-n 4 --micro-batch 3 --checkpointing full --checkpoint-early-stop no --forward-prefetch 1 "
    "--reshard-last no",
    "-n 4 --micro-batch 1 --accumulate 3", /* one sequence: other copies, the same dropouts */
    NULL,
};

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
    "-n 4 --tensor 2 --micro-batch 6",
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
    NULL,
};
#undef CLIPPED

/* Adapters alone are trained, or what stands behind frozen blocks. */
#define LORA "--lora-rank 4 --lora-on all-linear --lr 0.01 "
static const char *const with_lora[] = {
    LORA "-n 1 --micro-batch 12 --sharding none",
    LORA "-n 2 --micro-batch 6 --sharding none",
    LORA "-n 3 --micro-batch 4",
    LORA "-n 2 --micro-batch 3 --accumulate 2 --checkpointing full --clip 1000",
    LORA "-n 4 --micro-batch 3 --sharding hybrid --replicate 2 --optimizer-kernel fused",
    LORA "-n 3 --micro-batch 2 --accumulate 2 --accumulate-sync every --zero-grad keep",
    LORA "-n 3 --micro-batch 4 --offload params",
    LORA "-n 2 --micro-batch 6 --offload optimizer",
    LORA "-n 3 --micro-batch 2 --accumulate 2 --flavour fsdp1 --use-orig-params yes --clip 1000",
    NULL,
};
#undef LORA
/* Each adapter drops by itself, and the same on whichever rank a sample lies. */
#define DROPPED "--lora-rank 4 --lora-on all-linear --lora-dropout 0.2 --lr 0.01 "
static const char *const with_lora_dropout[] = {
    DROPPED "-n 1 --micro-batch 12 --sharding none",
    DROPPED "-n 3 --micro-batch 4 --checkpointing full",
    DROPPED "-n 2 --micro-batch 3 --accumulate 2 --sharding none",
    DROPPED "-n 4 --micro-batch 3 --flavour fsdp1 --use-orig-params yes --checkpointing full",
    NULL,
};
#undef DROPPED
/* Over weights in 4 bits, which every rank makes of the same numbers. */
#define FOUR_BITS                                                                                  \
    "--lora-rank 4 --lora-on all-linear --lora-base nf4 --lora-base-double yes --lr 0.01 "
#define SHARDED "--lora-base-storage model "
#define PEFTS   "--flavour fsdp1 --wrap module=.*\\.\\d+|.*lora_[AB] "
static const char *const with_four_bits[] = {
    FOUR_BITS "-n 1 --micro-batch 12 --sharding none",
    FOUR_BITS "-n 1 --micro-batch 6 --accumulate 2 --sharding none --checkpointing full",
    FOUR_BITS "-n 3 --micro-batch 4 --sharding none",
    FOUR_BITS "-n 2 --micro-batch 6 --sharding none --lora-base-storage model",
    FOUR_BITS SHARDED "-n 2 --micro-batch 6",
    FOUR_BITS SHARDED "-n 3 --micro-batch 4 --init whole --checkpointing full",
    FOUR_BITS SHARDED "-n 6 --micro-batch 2 --init unit",
    FOUR_BITS SHARDED "-n 4 --micro-batch 1 --accumulate 3 --sharding hybrid --replicate 2",
    FOUR_BITS SHARDED "-n 3 --micro-batch 4 --offload params",
    FOUR_BITS SHARDED "-n 2 --micro-batch 6 --offload params --init whole --checkpointing full",
    FOUR_BITS SHARDED PEFTS "-n 3 --micro-batch 4",
    FOUR_BITS SHARDED PEFTS "-n 3 --micro-batch 4 --offload params --checkpointing full",
    FOUR_BITS SHARDED PEFTS "-n 2 --micro-batch 6 --offload params --init unit",
    FOUR_BITS SHARDED PEFTS "-n 4 --micro-batch 3 --sharding grad-op --use-orig-params yes",
    NULL,
};
#undef FOUR_BITS
#undef SHARDED
#define FROZEN "--freeze module=embed|layers.0 "
static const char *const with_frozen[] = {
    FROZEN "-n 1 --micro-batch 12 --sharding none",
    FROZEN "-n 3 --micro-batch 4",
    FROZEN "-n 3 --micro-batch 4 --sharding none --bucket-view yes",
    FROZEN "-n 2 --micro-batch 6 --checkpointing full --reshard-after-forward yes",
    FROZEN "-n 3 --micro-batch 4 --flavour fsdp1 --use-orig-params yes --sharding grad-op",
    NULL,
};
#undef FROZEN

static char *folder;

/* By a plan, which says what its ranks do together. */
static void run_bound(const char *words, double *losses, unsigned n) {
    g_autofree char *plan = g_build_filename(folder, "x.plan", NULL);
    test_run_ok("plan %s -o %s", words, plan);
    test_run_bind(plan);
    test_run_losses(plan, losses, n);
    test_run_forks = false;
}

typedef struct {
    const char *network;
    const char *const *runs;
} Family;

static void losses_agree(gconstpointer data) {
    enum {
        STEPS = 8
    };
    const Family *family = data;
    const char *const *runs = family->runs;
    double expected[STEPS], losses[STEPS];
    for (unsigned i = 0; runs[i]; i++) {
        g_autofree char *words = g_strconcat(family->network, " ", runs[i], NULL);
        run_bound(words, i ? losses : expected, STEPS);
        double worst = 0;
        for (unsigned step = 0; step < STEPS && i; step++) {
            worst = MAX(worst, fabs(losses[step] / expected[step] - 1));
        }
        g_test_message("%s: losses differ by at most %.2g relative", words, worst);
        g_assert_cmpfloat(worst, <=, 4e-7);
    }
    g_assert_cmpfloat(expected[STEPS - 1], <, expected[0]);
}

/* Numbers stored in 16 bits: the loss itself is rounded to them (by 2^-8 in bf16, 2^-11 in fp16).
 * It follows fp32's on one rank within twice that when only what is computed with is so stored,
 * within four times when the optimizer's state is too. */
typedef struct {
    const char *words;
    double bound;
} Half;

static const Half in_halves[] = {
    {"-n 1 --micro-batch 12 --sharding none", 0},
    {"-n 1 --flavour fsdp2 --micro-batch 12 --param-dtype bf16", 0x1p-7},
    {"-n 3 --micro-batch 4 --param-dtype bf16", 0x1p-7},
    {"-n 2 --micro-batch 6 --param-dtype bf16 --reduce-dtype fp32", 0x1p-7},
    {"-n 4 --micro-batch 3 --flavour fsdp1 --sharding hybrid --replicate 2 --param-dtype bf16",
     0x1p-7},
    {"-n 2 --micro-batch 3 --accumulate 2 --param-dtype bf16 --reduce-dtype fp32", 0x1p-7},
    {"-n 3 --micro-batch 4 --param-dtype fp16", 0x1p-10},
    {"-n 2 --micro-batch 6 --flavour fsdp1 --param-dtype fp16", 0x1p-10},
    {"-n 2 --micro-batch 6 --flavour fsdp1 --sharding none --param-dtype bf16 --zero-grad keep",
     0x1p-7},
    {"-n 3 --micro-batch 4 --sharding none --autocast bf16", 0x1p-7},
    {"-n 2 --micro-batch 6 --flavour fsdp1 --autocast bf16 --checkpointing full", 0x1p-7},
    {"-n 2 --micro-batch 6 --param-dtype bf16 --autocast bf16 --reduce-dtype fp32", 0x1p-7},
    {"-n 2 --micro-batch 6 --sharding none --autocast bf16 --kernels compiled", 0x1p-7},
    {"-n 1 --micro-batch 12 --sharding none --autocast bf16 --kernels compiled --compile network",
     0x1p-7},
    {"-n 2 --micro-batch 6 --autocast bf16 --kernels compiled --checkpointing full", 0x1p-7},
    {"-n 3 --micro-batch 4 --sharding none --autocast fp16 --loss-scale dynamic", 0x1p-10},
    {"-n 2 --micro-batch 3 --accumulate 2 --flavour fsdp1 --autocast fp16 --loss-scale dynamic",
     0x1p-10},
    {"-n 2 --micro-batch 6 --flavour fsdp2 --autocast fp16 --loss-scale dynamic", 0x1p-10},
    {"-n 2 --micro-batch 6 --sharding none --autocast fp16 --loss-scale dynamic "
     "--optimizer-kernel fused",
     0x1p-10},
    {"-n 2 --micro-batch 6 --model-dtype bf16", 0x1p-6},
    {"-n 3 --micro-batch 4 --sharding none --model-dtype bf16", 0x1p-6},
    {NULL, 0},
};

/* Linear layers in float8, by one scale a tensor or by rows: as near to fp32 as bf16 is. */
#define FLOAT8 "--kernels compiled --param-dtype bf16 --reduce-dtype fp32 --float8 "
static const Half in_float8[] = {
    {"-n 1 --micro-batch 12 --sharding none", 0},
    {FLOAT8 "tensorwise -n 2 --micro-batch 6", 0x1p-7},
    {FLOAT8 "rowwise -n 3 --micro-batch 4 --sharding grad-op", 0x1p-7},
    {FLOAT8 "tensorwise -n 4 --micro-batch 3 --flavour fsdp1 --checkpointing full", 0x1p-7},
    {FLOAT8 "rowwise -n 4 --micro-batch 1 --accumulate 3 --sharding hybrid --replicate 2", 0x1p-7},
    {FLOAT8 "tensorwise -n 2 --micro-batch 6 --float8-gather yes --checkpointing selective-op",
     0x1p-7},
    {FLOAT8 "tensorwise -n 4 --micro-batch 3 --float8-gather precomputed --optimizer-kernel fused",
     0x1p-7},
    {FLOAT8 "tensorwise -n 4 --tensor 2 --micro-batch 6", 0x1p-7},
    {FLOAT8 "rowwise -n 4 --tensor 2 --micro-batch 6", 0x1p-7},
    {FLOAT8 "tensorwise -n 4 --tensor 2 --micro-batch 1 --accumulate 6 --checkpointing full",
     0x1p-7},
    {FLOAT8 "rowwise -n 4 --tensor 2 --micro-batch 3 --accumulate 2 --checkpointing selective-op",
     0x1p-7},
    {FLOAT8 "tensorwise -n 4 --tensor 2 --micro-batch 6 --async-tensor yes", 0x1p-7},
    {FLOAT8 "rowwise -n 4 --tensor 2 --micro-batch 6 --async-tensor yes", 0x1p-7},
    {FLOAT8 "tensorwise -n 4 --tensor 2 --micro-batch 3 --accumulate 2 --checkpointing "
            "selective-op --async-tensor yes",
     0x1p-7},
    {FLOAT8 "tensorwise -n 4 --context 2 --micro-batch 6", 0x1p-7},
    {FLOAT8 "rowwise -n 4 --pipeline 2 --micro-batch 2 --accumulate 3", 0x1p-7},
    {"-n 1 --micro-batch 12 --sharding none --kernels compiled --model-dtype bf16 --float8 rowwise",
     0x1p-6},
    {NULL, 0},
};

/* However it is sharded and computed again, what is cast is cast by the same scales: the digits of
 * all steps are the same. */
#define IN_FLOAT8 "llama-toy --kernels compiled --param-dtype bf16 --reduce-dtype fp32 "
static const char *const tensorwise_alike[] = {
    "-n 2 --micro-batch 6 --float8 tensorwise",
    "-n 2 --micro-batch 6 --float8 tensorwise --sharding grad-op --checkpointing full",
    "-n 2 --micro-batch 6 --float8 tensorwise --checkpointing selective-op --wrap whole",
    "-n 2 --micro-batch 6 --float8 tensorwise --flavour fsdp1",
    "-n 2 --micro-batch 6 --float8 tensorwise --flavour fsdp1 --checkpointing full",
    "-n 2 --micro-batch 6 --float8 tensorwise --sharding hybrid --replicate 2",
    NULL,
};
static const char *const gathered_alike[] = {
    "-n 2 --micro-batch 6 --float8 tensorwise --float8-gather yes",
    "-n 2 --micro-batch 6 --float8 tensorwise --float8-gather yes --checkpointing full",
    "-n 2 --micro-batch 6 --float8 tensorwise --float8-gather precomputed",
    "-n 2 --micro-batch 6 --float8 tensorwise --float8-gather precomputed --sharding grad-op "
    "--checkpointing selective-op",
    NULL,
};
static const char *const rowwise_alike[] = {
    "-n 2 --micro-batch 6 --float8 rowwise",
    "-n 2 --micro-batch 6 --float8 rowwise --sharding grad-op --checkpointing full",
    "-n 2 --micro-batch 6 --float8 rowwise --checkpointing selective-op --wrap whole",
    "-n 2 --micro-batch 6 --float8 rowwise --sharding hybrid --replicate 2",
    NULL,
};

/* Nor does anything that moves bytes of 4 bits as bf16 take them for numbers: some would be NaN, of
 * which bf16 has many, and a rounding makes them one. */
#define NIBBLES                                                                                    \
    "--model-dtype bf16 --lora-rank 4 --lora-base nf4 --lora-base-double yes "                     \
    "--lora-base-storage model -n 2 --micro-batch 6 --optimizer-kernel fused "
static const char *const nibbles_alike[] = {
    NIBBLES "--sharding none",
    NIBBLES "",
    NIBBLES "--offload params",
    NIBBLES PEFTS "--checkpointing full",
    NIBBLES PEFTS "--sharding none",
    NIBBLES PEFTS "--offload params",
    NIBBLES PEFTS "--offload params --init whole",
    NULL,
};
#undef NIBBLES
#undef PEFTS

static const struct {
    const char *name, *words;
    const char *const *runs;
} alike[] = {
    {"one scale a tensor", IN_FLOAT8, tensorwise_alike},
    {"gathered in float8", IN_FLOAT8, gathered_alike},
    {"scales by rows", IN_FLOAT8, rowwise_alike},
    {"in 4 bits", "llama-toy --network-key loss=fp32 --lr 0.02 ", nibbles_alike},
};

static void digits_are_the_same(gconstpointer data) {
    enum {
        STEPS = 8
    };
    unsigned which = GPOINTER_TO_UINT(data);
    const char *const *runs = alike[which].runs;
    double expected[STEPS], losses[STEPS];
    for (unsigned i = 0; runs[i]; i++) {
        g_autofree char *words = g_strconcat(alike[which].words, runs[i], NULL);
        g_test_message("%s", words);
        run_bound(words, i ? losses : expected, STEPS);
        for (unsigned step = 0; step < STEPS && i; step++) {
            g_assert_cmpfloat(losses[step], ==, expected[step]);
        }
    }
}

/* What ranks share is multiplied in parts, while others' are on their way, and added up in another
 * order: before each sum is rounded to bf16 once, it differs in its last places. */
static const char *const in_parts[] = {
    "-n 4 --tensor 2 --micro-batch 6",
    "-n 4 --tensor 2 --micro-batch 1 --accumulate 6", /* of one sequence no gather is in parts */
    "-n 4 --tensor 2 --micro-batch 3 --accumulate 2 --checkpointing selective-op",
    "-n 4 --tensor 2 --micro-batch 6 --checkpointing full",
    "-n 4 --tensor 4 --micro-batch 12 --network-key kv_heads=4",
    "-n 8 --pipeline 2 --tensor 2 --micro-batch 2 --accumulate 3",
};

static void parts_are_multiplied_as_wholes(void) {
    enum {
        STEPS = 8
    };
    double whole[STEPS], parted[STEPS], worst = 0;
    for (unsigned i = 0; i < G_N_ELEMENTS(in_parts); i++) {
        g_autofree char *words =
            g_strconcat("llama-toy --network-key loss=fp32 --kernels compiled --param-dtype bf16 "
                        "--reduce-dtype fp32 ",
                        in_parts[i], NULL);
        g_autofree char *async = g_strconcat(words, " --async-tensor yes", NULL);
        run_bound(words, whole, STEPS);
        run_bound(async, parted, STEPS);
        for (unsigned step = 0; step < STEPS; step++) {
            worst = MAX(worst, fabs(parted[step] / whole[step] - 1));
        }
        g_test_message("%s: losses differ by at most %.2g relative so far", words, worst);
        g_assert_cmpfloat(worst, <=, 3e-4);
    }
}

/* Gradients, too, are given to the optimizer as they were computed. */
#define LOW                                                                                        \
    "--flavour fsdp1 --param-dtype bf16 --keep-low-precision-grads yes --optimizer sgd --lr 0.05 "
static const Half with_low_gradients[] = {
    {"-n 1 --micro-batch 12 --sharding none --optimizer sgd --lr 0.05", 0},
    {LOW "-n 2 --micro-batch 6", 0x1p-7},
    {LOW "-n 3 --micro-batch 2 --accumulate 2 --accumulate-sync every --use-orig-params yes",
     0x1p-7},
    {LOW "-n 2 --micro-batch 3 --accumulate 2 --zero-grad keep --reduce-dtype fp32", 0x1p-7},
    {LOW "-n 2 --micro-batch 6 --offload params", 0x1p-7},
    {LOW "-n 2 --micro-batch 6 --sharding none --zero-grad keep", 0x1p-7},
    {NULL, 0},
};
static const Half with_low_gradients_clipped[] = {
    {"-n 1 --micro-batch 12 --sharding none --optimizer sgd --lr 0.05 --clip 0.3", 0},
    {LOW "-n 3 --micro-batch 4 --clip 0.3", 0x1p-7},
    {LOW "-n 2 --micro-batch 6 --clip 0.3 --use-orig-params yes --offload params", 0x1p-7},
    {NULL, 0},
};
#undef LOW

/* Gradients of keys and values come home head by head, and norms read them so. */
#define BF16 "--param-dtype bf16 --reduce-dtype fp32 --optimizer sgd --lr 0.3 "
static const Half with_rings[] = {
    {"-n 1 --micro-batch 4 --sharding none --optimizer sgd --lr 0.3", 0},
    {BF16 "-n 1 --micro-batch 4 --flavour fsdp2", 0x1p-7},
    {BF16 "-n 2 --context 2 --micro-batch 4", 0x1p-7},
    {BF16 "-n 3 --context 3 --micro-batch 2 --accumulate 2 --checkpointing full", 0x1p-7},
    {BF16 "-n 2 --context 2 --micro-batch 4 --rms-norm ops", 0x1p-7},
    {BF16 "-n 4 --context 2 --tensor 2 --micro-batch 4", 0x1p-7},
    {NULL, 0},
};
#undef BF16

typedef struct {
    const char *network;
    const Half *runs;
} Halves;

static void halves_follow(gconstpointer data) {
    enum {
        STEPS = 20
    };
    const Halves *halves = data;
    const Half *runs = halves->runs;
    double expected[STEPS], losses[STEPS];
    for (unsigned i = 0; runs[i].words; i++) {
        g_autofree char *words = g_strconcat(halves->network, " ", runs[i].words, NULL);
        run_bound(words, i ? losses : expected, STEPS);
        double worst = 0;
        for (unsigned step = 0; step < STEPS && i; step++) {
            worst = MAX(worst, fabs(losses[step] / expected[step] - 1));
        }
        g_test_message("%s: losses differ from fp32's by at most %.2g relative", words, worst);
        g_assert_cmpfloat(worst, <=, runs[i].bound);
    }
}

/* A loss times 1e9 overflows fp16. Until the scale has come down nothing is stepped, and losses are
 * those of a run whose learning rate is 0; then it learns. The host's decision to step, which
 * leaves steps out of Adam's count, agrees with the fused kernel's, which counts on the device. */
typedef struct {
    const char *words, *kernel; /* and another kernel that steps alike */
} Overflow;

static void overflowing_steps_are_skipped(gconstpointer data) {
    enum {
        STEPS = 24
    };
    const Overflow *run = data;
    double scaled[STEPS], still[STEPS], otherwise[STEPS];
    g_autofree char *scales = g_strdup_printf("%s --loss-scale from=1000000000", run->words);
    g_autofree char *rests = g_strdup_printf("%s --lr 0 --weight-decay 0", run->words);
    g_autofree char *other = g_strdup_printf("%s --optimizer-kernel %s", scales, run->kernel);
    test_run_losses(scales, scaled, STEPS);
    test_run_losses(rests, still, STEPS);
    test_run_losses(other, otherwise, STEPS);
    unsigned n_alike = 0;
    while (n_alike < STEPS && scaled[n_alike] == still[n_alike]) {
        n_alike++;
    }
    g_test_message("%s: %u steps are skipped", scales, n_alike - 1);
    g_assert_cmpuint(n_alike, >, 2); /* the first loss is alike anyway */
    g_assert_cmpuint(n_alike, <, STEPS - 6);
    double change = 0;
    for (unsigned step = 0; step < STEPS; step++) {
        change += scaled[step] - still[step];
        g_assert_cmpfloat(fabs(scaled[step] / otherwise[step] - 1), <=, 1e-5);
    }
    g_assert_cmpfloat(change, <, 0);
}

/* Where blocks turn nothing, a document that is packed learns what it does as a sequence; of text
 * whose period it is long, both are given the same. A sequence of four at once learns otherwise. */
static void documents_learn_as_sequences(void) {
    enum {
        STEPS = 4,
        DOCUMENT = 8,
        REPEATED = 2000
    };
    static const char *const runs[] = {"--seq 8 --micro-batch 4", "--seq 32 --document 8",
                                       "--seq 32"};
    g_autofree char *path = g_build_filename(g_get_tmp_dir(), "foreshard-documents.XXXXXX", NULL);
    g_autoptr(GString) text = g_string_new(NULL);
    for (unsigned i = 0; i < REPEATED; i++) {
        g_string_append_len(text, "\3\1\4\1\5\11\2\6", DOCUMENT);
    }
    close(g_mkstemp(path));
    g_assert_true(g_file_set_contents(path, text->str, (gssize)text->len, NULL));
    double losses[G_N_ELEMENTS(runs)][STEPS];
    for (unsigned i = 0; i < G_N_ELEMENTS(runs); i++) {
        g_autofree char *words =
            g_strdup_printf("llama-toy -n 2 --param-dtype bf16 --lr 0.05 --network-key "
                            "no_rope_every=1 --data %s %s",
                            path, runs[i]);
        test_run_losses(words, losses[i], STEPS);
    }
    g_remove(path);
    g_assert_cmpmem(losses[0], sizeof losses[0], losses[1], sizeof losses[1]);
    g_assert_cmpfloat(losses[2][STEPS - 1], !=, losses[1][STEPS - 1]);
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_assert(argc == 2);
    test_run_program = argv[1];
    folder = g_dir_make_tmp("foreshard-test-XXXXXX", NULL);
    static const struct {
        const char *name;
        Family family;
    } families[] = {{"on 1 to 4 ranks", {"gpt-toy", with_adamw}},
                    {"with Adam", {"gpt-toy", with_adam}},
                    {"with SGD", {"gpt-toy", with_sgd}},
                    {"with momentum", {"gpt-toy", with_momentum}},
                    {"with momentum and clipping", {"gpt-toy", with_momentum_and_clip}},
                    {"with dropout", {"gpt-toy-dropout", with_dropout}},
                    {"of another family, some of it kept", {"llama-toy", with_llama}},
                    {"whose heads of q and k are normalized",
                     {"llama-toy --network-key qk_norm=head", with_norms_of_heads}},
                    {"whose loss is one kernel",
                     {"llama-toy --network-key loss=kernel", with_one_kernel_of_loss}},
                    {"of shared layers, clipped,", {"llama-toy", with_llama_clipped}},
                    {"of shared sequences", {LONG_LLAMA, with_sequences_shared}},
                    {"of shared sequences and norms of heads",
                     {LONG_LLAMA " --network-key qk_norm=head", with_sequences_and_norms}},
                    {"of shared experts", {IN_TURN, with_experts_shared}},
                    {"of latent attention", {LATENT, with_latent_attention}},
                    {"of latent attention, clipped,", {LATENT, with_latent_attention_clipped}},
                    {"of shared experts, cut,", {TEST_RUN_FEW_EXPERTS, with_experts_cut}},
                    {"of shared experts, beside others,", {BESIDE, with_experts_beside}},
                    {"of shared experts, clipped,", {TEST_RUN_FEW_EXPERTS, with_experts_clipped}},
                    {"of stages", {TEST_RUN_STAGES, with_stages}},
                    {"of stages, clipped,", {TEST_RUN_STAGES, with_stages_clipped}},
                    {"of several stages a rank", {TEST_RUN_SEVERAL, with_several_stages}},
                    {"of two stages on each of four",
                     {"llama-toy --network-key layers=9", with_two_stages_on_four}},
                    {"of adapters", {"llama-toy", with_lora}},
                    {"of adapters with dropout", {"llama-toy", with_lora_dropout}},
                    {"of adapters over 4 bits", {"llama-toy", with_four_bits}},
                    {"behind frozen blocks", {"llama-toy", with_frozen}}};
    for (unsigned i = 0; i < G_N_ELEMENTS(families); i++) {
        g_autofree char *name = g_strconcat("/exec/losses/losses agree ", families[i].name, NULL);
        g_test_add_data_func(name, &families[i].family, losses_agree);
    }
    static const struct {
        const char *name;
        Halves halves;
    } halves[] = {{"in 16 bits", {"gpt-toy", in_halves}},
                  {"with gradients in 16 bits", {"gpt-toy", with_low_gradients}},
                  {"with gradients in 16 bits, clipped,", {"gpt-toy", with_low_gradients_clipped}},
                  {"of layers in float8", {"llama-toy", in_float8}},
                  {"of shared sequences", {"llama-toy --network-key seq=48", with_rings}},
                  {"of shared sequences and norms of heads",
                   {"llama-toy --network-key seq=48 --network-key qk_norm=head", with_rings}}};
    for (unsigned i = 0; i < G_N_ELEMENTS(halves); i++) {
        g_autofree char *name =
            g_strconcat("/exec/losses/losses ", halves[i].name, " follow fp32", NULL);
        g_test_add_data_func(name, &halves[i].halves, halves_follow);
    }
    static const Overflow overflows[] = {
        {"gpt-toy -n 2 --sharding none --autocast fp16", "fused"},
        {"gpt-toy -n 3 --flavour fsdp2 --param-dtype fp16 --optimizer momentum --lr 0.05", "loop"},
        {"llama-toy -n 2 --flavour fsdp1 --param-dtype fp16 --clip 1", "fused"},
    };
    for (unsigned i = 0; i < G_N_ELEMENTS(overflows); i++) {
        g_autofree char *name =
            g_strdup_printf("/exec/losses/steps that overflow are skipped: %s", overflows[i].words);
        g_test_add_data_func(name, &overflows[i], overflowing_steps_are_skipped);
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(alike); i++) {
        g_autofree char *name =
            g_strdup_printf("/exec/losses/digits are the same: %s", alike[i].name);
        g_test_add_data_func(name, GUINT_TO_POINTER(i), digits_are_the_same);
    }
    g_test_add_func("/exec/losses/parts are multiplied as wholes", parts_are_multiplied_as_wholes);
    g_test_add_func("/exec/losses/documents learn as sequences", documents_learn_as_sequences);
    int status = g_test_run();
    test_run_remove_folder(folder);
    g_free(folder);
    return status;
}
