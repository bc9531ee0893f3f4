/* Losses in 16, 8 and 4 bits: they follow fp32's, have the same digits however they are sharded,
 * and a step that overflows is skipped. Takes the path of foreshard as its argument.
 */
#include <math.h>
#include <string.h>

#include "tests/exec/agree.h"

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

/* By scales of the passes before. The first pass has none, and its gradients are too small for
 * e5m2. */
#define DELAYED "--param-dtype bf16 --reduce-dtype fp32 --float8 delayed --flavour fsdp1 "
static const Half with_delays[] = {
    {"-n 1 --micro-batch 12 --sharding none", 0},
    {DELAYED "-n 2 --micro-batch 6", 0x1p-7},
    {DELAYED "-n 4 --micro-batch 3 --sharding grad-op --clip 1", 0x1p-7},
    {DELAYED "-n 2 --micro-batch 2 --accumulate 3 --accumulate-sync every --checkpointing full",
     0x1p-7},
    {"-n 2 --micro-batch 6 --sharding none --model-dtype bf16 --float8 delayed", 0x1p-6},
    {"-n 1 --micro-batch 12 --sharding none --model-dtype bf16 --float8 delayed", 0x1p-6},
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

#define IN_BLOCKS                                                                                  \
    "llama-toy --network-key width=128 --network-key kv_heads=4 --network-key ffn=256 "            \
    "--kernels compiled --param-dtype bf16 --reduce-dtype fp32 --float8 mxfp8 "
static const char *const mxfp8_alike[] = {
    "-n 2 --micro-batch 4",
    "-n 2 --micro-batch 4 --checkpointing full",
    "-n 2 --micro-batch 4 --checkpointing selective-op --sharding grad-op",
    "-n 2 --micro-batch 4 --sharding hybrid --replicate 2 --checkpointing every=2",
    NULL,
};

static const char *const delayed_alike[] = {
    DELAYED "-n 2 --micro-batch 6",
    DELAYED "-n 2 --micro-batch 6 --checkpointing full",
    DELAYED "-n 2 --micro-batch 6 --sharding grad-op --checkpointing every=2",
    DELAYED "-n 2 --micro-batch 6 --use-orig-params yes --wrap whole",
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
    NIBBLES TEST_RUN_PEFTS "--checkpointing full",
    NIBBLES TEST_RUN_PEFTS "--sharding none",
    NIBBLES TEST_RUN_PEFTS "--offload params",
    NIBBLES TEST_RUN_PEFTS "--offload params --init whole",
    NULL,
};
#undef NIBBLES

static const struct {
    const char *name, *words;
    const char *const *runs;
} alike[] = {
    {"one scale a tensor", IN_FLOAT8, tensorwise_alike},
    {"gathered in float8", IN_FLOAT8, gathered_alike},
    {"scales by rows", IN_FLOAT8, rowwise_alike},
    {"a scale for each 32 numbers", IN_BLOCKS, mxfp8_alike},
    {"scales of passes before", "llama-toy ", delayed_alike},
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
        agree_losses(words, i ? losses : expected, STEPS);
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
        agree_losses(words, whole, STEPS);
        agree_losses(async, parted, STEPS);
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
        agree_losses(words, i ? losses : expected, STEPS);
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
    const char *words, *rate, *kernel; /* how fast it learns; and another kernel that steps alike */
} Overflow;

static void overflowing_steps_are_skipped(gconstpointer data) {
    enum {
        STEPS = 24
    };
    const Overflow *run = data;
    double scaled[STEPS], still[STEPS], otherwise[STEPS];
    g_autofree char *scales =
        g_strdup_printf("%s%s --loss-scale from=1000000000", run->words, run->rate);
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

int main(int argc, char **argv) {
    agree_begin(argc, argv);
    static const struct {
        const char *name;
        Halves halves;
    } halves[] = {{"in 16 bits", {"gpt-toy", in_halves}},
                  {"with gradients in 16 bits", {"gpt-toy", with_low_gradients}},
                  {"with gradients in 16 bits, clipped,", {"gpt-toy", with_low_gradients_clipped}},
                  {"of layers in float8", {"llama-toy", in_float8}},
                  {"of layers in float8 by scales of passes before", {"gpt-toy", with_delays}},
                  {"of shared sequences", {"llama-toy --network-key seq=48", with_rings}},
                  {"of shared sequences and norms of heads",
                   {"llama-toy --network-key seq=48 --network-key qk_norm=head", with_rings}}};
    for (unsigned i = 0; i < G_N_ELEMENTS(halves); i++) {
        g_autofree char *name =
            g_strconcat("/exec/losses-low/losses ", halves[i].name, " follow fp32", NULL);
        g_test_add_data_func(name, &halves[i].halves, halves_follow);
    }
    static const Overflow overflows[] = {
        {"gpt-toy -n 2 --sharding none --autocast fp16", "", "fused"},
        {"gpt-toy -n 3 --flavour fsdp2 --param-dtype fp16 --optimizer momentum", " --lr 0.05",
         "loop"},
        {"llama-toy -n 2 --flavour fsdp1 --param-dtype fp16 --clip 1", "", "fused"},
    };
    for (unsigned i = 0; i < G_N_ELEMENTS(overflows); i++) {
        g_autofree char *name = g_strdup_printf(
            "/exec/losses-low/steps that overflow are skipped: %s", overflows[i].words);
        g_test_add_data_func(name, &overflows[i], overflowing_steps_are_skipped);
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(alike); i++) {
        g_autofree char *name =
            g_strdup_printf("/exec/losses-low/digits are the same: %s", alike[i].name);
        g_test_add_data_func(name, GUINT_TO_POINTER(i), digits_are_the_same);
    }
    g_test_add_func("/exec/losses-low/parts are multiplied as wholes",
                    parts_are_multiplied_as_wholes);
    return agree_end();
}
