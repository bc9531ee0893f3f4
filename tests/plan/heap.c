/* A plan that is freed leaves nothing on the heap, whatever its flavour and its parts hold. */
#include <malloc.h>

#include "tests/plan/plans.h"

#define ATTENTION                                                                                  \
    "[network]\nfamily=llama\nlayers=2\nwidth=64\nheads=4\nkv_heads=2\nvocab=96\nseq=128\n"
#define LLAMA   ATTENTION "ffn=160\n"
#define EXPERTS ATTENTION "experts=4\nexperts_per_token=2\nexpert_ffn=32\n"

enum {
    PLANS = 100,
    LEAST = 512 /* bytes of each plan that tell a leak from what malloc keeps aside */
};

static const struct {
    const char *network, *words;
} cases[] = {
    {LLAMA, "ranks=1 flavour=plain sharding=none optimizer_kernel=loop"},
    {LLAMA, "ranks=2 flavour=ddp sharding=none accumulate=2 clip=1"},
    {LLAMA, "ranks=4 flavour=fsdp1 offload=params checkpointing=full"},
    {LLAMA, "ranks=3 flavour=fsdp2 reshard_after_forward=yes model_dtype=bf16 clip=1"},
    {LLAMA, "ranks=2 flavour=zero1 sharding=optimizer-only"},
    {LLAMA, "ranks=4 tensor=2 param_dtype=bf16 kernels=compiled async_tensor=yes clip=1"},
    {LLAMA, "ranks=4 context=2 param_dtype=bf16 kernels=compiled"},
    {LLAMA, "ranks=4 pipeline=2 accumulate=4"},
    {LLAMA,
     "ranks=2 kernels=compiled float8=tensorwise float8_gather=precomputed param_dtype=bf16"},
    {LLAMA, "ranks=2 lora_rank=8 lora_on=all-linear kernels=compiled checkpointing=full"},
    {LLAMA, "ranks=1 lora_rank=8 lora_base=nf4 lora_base_double=yes lora_base_storage=model "
            "model_dtype=bf16"},
    {LLAMA, "ranks=2 loss_scale=dynamic param_dtype=fp16 eval_batches=1"},
    {EXPERTS, "ranks=4 expert=2 clip=1"},
};

/* Bytes in use behind so many plans, built and freed. */
static gsize used_behind(const char *network, const char *words) {
    for (unsigned i = 0; i < PLANS; i++) {
        plan_free(test_plan(network, words));
    }
    return mallinfo2().uordblks;
}

/* The first ones also leave what is made once, and chunks that malloc keeps. */
static void nothing_is_left(gconstpointer data) {
    const char *const *at = data;
    gsize before = used_behind(at[0], at[1]);
    g_assert_cmpuint(used_behind(at[0], at[1]), <, before + PLANS * LEAST);
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *name = g_strdup_printf("/plan/heap/%u", i);
        g_test_add_data_func(name, &cases[i], nothing_is_left);
    }
    return g_test_run();
}
