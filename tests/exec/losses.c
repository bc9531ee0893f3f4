/* Losses of one global batch on 1 to 4 ranks that hold all layers or shares of them, whatever the
 * optimizer, and where adapters alone are trained. Takes the path of foreshard as its argument.
 */
#include <string.h>
#include <unistd.h>

#include <glib/gstdio.h>

#include "tests/exec/agree.h"

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
    "-n 3 --micro-batch 4 --eval-batches 2 --eval-micro-batch 5",
    "-n 3 --micro-batch 4 --sharding grad-op --flavour fsdp1 --eval-batches 3",
    "-n 2 --micro-batch 6 --sharding none --eval-batches 1 --eval-micro-batch 1",
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
    "-n 2 --micro-batch 6 --wrap module=GptBlock|Linear --checkpointing full --forward-prefetch 2",
    "-n 2 --micro-batch 3 --wrap module=GptBlock|GptMlp|Linear --checkpointing selective-op "
    "--accumulate 2",
    "-n 3 --micro-batch 2 --wrap module=GptBlock|Linear --checkpointing full --flavour fsdp1 "
    "--forward-prefetch yes --accumulate 2",
    "-n 4 --micro-batch 3 --wrap size=4300 --sharding hybrid --replicate 2 --flavour fsdp1 "
    "--checkpointing full --checkpoint-early-stop no",
    "-n 2 --micro-batch 3 --wrap module=GptBlock|GptAttention|Linear --checkpointing full "
    "--flavour fsdp1 --pytorch 1.13 --accumulate 2",
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

/* Adapters alone are trained, or what stands behind frozen blocks. */
#define LORA "--lora-rank 4 --lora-on all-linear --lr 0.01 "
static const char *const with_lora[] = {
    LORA "-n 1 --micro-batch 12 --sharding none",
    LORA "-n 2 --micro-batch 6 --sharding none",
    LORA "-n 3 --micro-batch 4",
    LORA "-n 2 --micro-batch 3 --accumulate 2 --checkpointing full --clip 1000",
    LORA "-n 4 --micro-batch 3 --sharding hybrid --replicate 2 --optimizer-kernel fused",
    LORA "-n 3 --micro-batch 2 --accumulate 2 --accumulate-sync every --zero-grad keep",
    LORA "-n 3 --micro-batch 4 --kernels compiled",
    LORA "-n 1 --micro-batch 12 --sharding none --kernels compiled",
    LORA "-n 2 --micro-batch 3 --accumulate 2 --kernels compiled --checkpointing full",
    LORA "-n 2 --micro-batch 6 --sharding none --kernels compiled --checkpointing full",
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
    FOUR_BITS SHARDED TEST_RUN_PEFTS "-n 3 --micro-batch 4",
    FOUR_BITS SHARDED TEST_RUN_PEFTS "-n 3 --micro-batch 4 --offload params --checkpointing full",
    FOUR_BITS SHARDED TEST_RUN_PEFTS "-n 2 --micro-batch 6 --offload params --init unit",
    FOUR_BITS SHARDED TEST_RUN_PEFTS
    "-n 4 --micro-batch 3 --sharding grad-op --use-orig-params yes",
    NULL,
};
#undef FOUR_BITS
#undef SHARDED
#define FROZEN  "--freeze module=embed|layers.0 "
#define IGNORED "--ignored module=embed|layers.0 "
static const char *const with_frozen[] = {
    FROZEN "-n 1 --micro-batch 12 --sharding none",
    FROZEN "-n 3 --micro-batch 4",
    FROZEN "-n 3 --micro-batch 4 --sharding none --bucket-view yes",
    FROZEN "-n 3 --micro-batch 4 --kernels compiled",
    FROZEN "-n 2 --micro-batch 6 --sharding none --kernels compiled",
    FROZEN "-n 2 --micro-batch 6 --checkpointing full --reshard-after-forward yes",
    FROZEN "-n 3 --micro-batch 4 --flavour fsdp1 --use-orig-params yes --sharding grad-op",
    FROZEN IGNORED "-n 3 --micro-batch 4",
    FROZEN IGNORED "-n 2 --micro-batch 6 --flavour fsdp1 --use-orig-params yes",
    FROZEN IGNORED "-n 2 --micro-batch 6 --sharding none",
    NULL,
};
#undef IGNORED
#undef FROZEN

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
    static const AgreeFamily families[] = {
        {"on 1 to 4 ranks", "gpt-toy", with_adamw},
        {"with Adam", "gpt-toy", with_adam},
        {"with SGD", "gpt-toy", with_sgd},
        {"with momentum", "gpt-toy", with_momentum},
        {"with momentum and clipping", "gpt-toy", with_momentum_and_clip},
        {"with dropout", "gpt-toy-dropout", with_dropout},
        {"of adapters", "llama-toy", with_lora},
        {"of adapters with dropout", "llama-toy", with_lora_dropout},
        {"of adapters over 4 bits", "llama-toy", with_four_bits},
        {"behind frozen blocks", "llama-toy", with_frozen},
    };
    agree_begin(argc, argv);
    agree_add("/exec/losses", families, G_N_ELEMENTS(families));
    g_test_add_func("/exec/losses/documents learn as sequences", documents_learn_as_sequences);
    return agree_end();
}
