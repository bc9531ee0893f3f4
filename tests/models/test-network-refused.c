/* Networks that are refused: the message names file, line and remedy. */
#include <string.h>

#include "models/network.h"

/* What was not recorded of experts is refused. */
static void experts_refused(void) {
    static const struct {
        const char *key, *value, *expected;
    } cases[] = {
        {"kernels", "compiled", "n: kernels = compiled is not planned for experts"},
        {"kernels", "fused", "n: kernels = fused is not planned for experts"},
        {"autocast", "bf16", "n: experts are not planned with autocast"},
        {"pytorch", "2.4", "n: experts are not planned for PyTorch 2.4"},
        {"param_dtype", "fp16", "n: experts are not planned in fp16"},
        {"lora_rank", "4", "n: experts are not planned with adapters"},
        {"freeze", "module=embed", "n: experts are not planned with frozen parameters"},
    };
    const char *text = "[network]\nfamily=llama\nlayers=1\nwidth=8\nheads=2\nvocab=4\nseq=4\n"
                       "experts=4\nexperts_per_token=2\nexpert_ffn=8\n";
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(ModelNetwork) network = model_network_read(text, strlen(text), "n.ini", &error);
        g_assert_no_error(error);
        PlanStrategy strategy;
        plan_strategy_init(&strategy);
        g_assert_true(plan_strategy_set(&strategy, cases[i].key, cases[i].value, &error));
        g_autoptr(PlanGraph) graph = model_network_emit_for(network, &strategy, &error);
        g_assert_null(graph);
        g_test_message("%s", error->message);
        g_assert_true(g_str_has_prefix(error->message, cases[i].expected));
    }
}

static void bad_files(void) {
    static const struct {
        const char *text, *expected;
    } cases[] = {
        {"[network]\nlayers=2\n", "n.ini:2: [network] has no 'family'"},
        {"[network]\nfamily=llama\nunturned_every=2\n",
         "n.ini:3: family llama has no key 'unturned_every'; it is called no_rope_every now"},
        {"[network]\nfamily=gtp\n",
         "n.ini:2: unknown family 'gtp'; it is one of gpt, mpt, llama, starcoder2, "
         "neox, opt, phi, t5, mlp"},
        {"[network]\nfamily=mlp\nlayers=2\nwidth=8\n", "n.ini:2: [network] lacks 'seq'"},
        {"[network]\nfamily=llama\nlayers=1\nwidth=8\nheads=2\nffn=8\nvocab=4\nseq=4\ngate=none\n",
         "n.ini:9: gate = none is known of transformers' own modules"},
        {"[network]\nfamily=llama\nlayers=1\nwidth=8\nheads=2\nffn=8\nvocab=4\nseq=4\n"
         "global_at=first\n",
         "n.ini:9: global_at says which of so many blocks"},
        {"[network]\nfamily=llama\nlayers=1\nwidth=8\nheads=2\nffn=8\nvocab=4\nseq=4\n"
         "attention=math-fp32\nattention_cap=50\n",
         "n.ini:10: attention_cap and logits_cap are known of transformers' own Gemma 2 alone"},
        {"[network]\nfamily=llama\nlayers=1\nwidth=8\nheads=2\nffn=8\nvocab=4\nseq=4\n"
         "code=transformers\nlogits_cap=30\n",
         "n.ini:10: attention_cap and logits_cap are known of transformers' own Gemma 2 alone"},
        {"[network]\nfamily=llama\nlayers=1\nwidth=8\nheads=2\nffn=8\nvocab=4\nseq=4\n"
         "norm_weight=none\n",
         "n.ini:9: norm_weight = none is known of transformers' own OLMo alone"},
        {"[network]\nfamily=llama\nlayers=1\nwidth=8\nheads=2\nffn=8\nvocab=4\nseq=4\n"
         "code=transformers\nrope=pairs\nqkv_bias=yes\n",
         "n.ini:10: rope = pairs is known of transformers' own GLM, GLM-4, Cohere, ERNIE 4.5 and"},
        {"[network]\nfamily=llama\nlayers=1\nwidth=8\nheads=2\nffn=8\nvocab=4\nseq=4\n"
         "norm_weight=widened\n",
         "n.ini:9: norm_weight = widened is known of transformers' own Helium alone"},
        {"[network]\nfamily=llama\nlayers=1\nwidth=8\nheads=2\nffn=8\nvocab=4\nseq=4\n"
         "norm_at=once\n",
         "n.ini:9: norm_weight = centred and norm_at = once are known of transformers' own Cohere"},
        {"[network]\nfamily=llama\nlayers=1\nwidth=8\nheads=2\nffn=8\nvocab=4\nseq=4\n"
         "rotary_share=0.5\n",
         "n.ini:9: family llama turns a part of each head with rope = pairs alone"},
        {"[network]\nfamily=llama\nlayers=1\nwidth=8\nheads=2\nffn=8\nvocab=4\nseq=4\n"
         "code=transformers\nsinks=yes\n",
         "n.ini:10: sinks are known of transformers' own gpt-oss alone"},
        {"[network]\nfamily=mlp\nlayers=0\nwidth=8\nseq=1\n", "n.ini:3: layers must be"},
        {"[network]\nfamily=mlp\nlayers=2\nwidth=8\nseq=1\nheads=2\n",
         "n.ini:6: family mlp has no key 'heads'"},
        {"[network]\nfamily=gpt\nlayers=2\nwidth=8\nheads=2\nvocab=4\nseq=4\nattention=math-fp32\n",
         "n.ini:8: attention = math-fp32 is of families llama and t5"},
        {"[network]\nfamily=t5\nlayers=2\nwidth=8\nheads=2\nffn=8\nvocab=4\nseq=4\ngelu=ops\n",
         "n.ini:9: T5's hidden layer has a GELU where it is gated"},
        {"[network]\nfamily=gpt\nlayers=2\nwidth=8\nheads=8\nvocab=4\nseq=4\nattention=math\n",
         "n.ini:5: heads of one number are not planned with their scores in memory"},
        {"[network]\nfamily=t5\nlayers=2\nwidth=8\nheads=2\nhead_dim=1\nffn=8\nvocab=4\nseq=4\n",
         "n.ini:5: heads of one number are not planned with their scores in memory"},
        {"[network]\nfamily=t5\nlayers=2\nwidth=8\nheads=2\nffn=8\nvocab=4\nseq=4\nattention="
         "kernel\n"
         "target_seq=2\n",
         "n.ini:10: targets of a length of their own are known with scores in memory; set "
         "attention = math"},
        {"[network]\nfamily=gpt\nlayers=2\nwidth=8\nheads=2\nvocab=4\nseq=4\nattention=flash\n",
         "n.ini:8: attention must be kernel, math or math-fp32"},
        {"[network]\nfamily=gpt\nlayers=2\nwidth=8\nheads=3\nvocab=4\nseq=4\n",
         "n.ini:5: width 8 does not divide by 3 heads"},
        {"[network]\nfamily=llama\nlayers=2\nwidth=6\nheads=2\nvocab=4\nseq=4\nffn=8\n",
         "n.ini:5: a head of family llama has 3 numbers"},
        {"[network]\nfamily=llama\nlayers=2\nwidth=6\nheads=2\nhead_dim=1\nvocab=4\nseq=4\nffn=8\n",
         "n.ini:6: a head of family llama has 1 numbers"},
        {"[network]\nfamily=phi\nlayers=2\nwidth=16\nheads=2\nvocab=4\nseq=4\nrotary_share=0.4\n",
         "n.ini:8: of a head's 8 numbers 3 would be turned"},
        {"[network]\nfamily=neox\nlayers=2\nwidth=16\nheads=2\nvocab=4\nseq=4\nrotary_share=1\n",
         "n.ini:8: rotary_share must be a number above 0 and below 1, not '1'"},
        {"[network]\nfamily=neox\nlayers=2\nwidth=16\nheads=2\nvocab=4\nseq=4\n"
         "rotary_share=0.5\nattention=math\n",
         "n.ini:8: rotary_share below 1 is known with attention's kernel alone"},
        {"[network]\nfamily=starcoder2\nlayers=2\nwidth=6\nheads=2\nvocab=4\nseq=4\nffn=8\n",
         "n.ini:5: a head of family starcoder2 has 3 numbers"},
        {"[network]\nfamily=gpt\nlayers=2\nwidth=8\nheads=2\nvocab=4\nseq=4\ntied=maybe\n",
         "n.ini:8: tied must be yes or no"},
        {"[network]\nfamily=gpt\nlayers=2\nwidth=8\nheads=2\nvocab=4\nseq=4\nloss=bf16\n",
         "n.ini:8: loss must be model, ops, fp32-logits, fp32, metered, kernel, chunked, "
         "liger or torchtitan"},
        {"[network]\nfamily=llama\nlayers=2\nwidth=8\nheads=2\nvocab=4\nseq=4\nffn=8\n"
         "rope_scaling=su\n",
         "n.ini:9: rope_scaling must be linear, dynamic, yarn, longrope or llama3"},
        {"[network]\nfamily=gpt\nlayers=2\nwidth=8\nheads=2\nvocab=4\nseq=4\nloss_at=trainer\n",
         "n.ini:8: loss_at must be model or loop"},
        {"[network]\nfamily=gpt\nlayers=2\nwidth=8\nheads=2\nvocab=4\nseq=4\nloss=metered\n"
         "loss_at=loop\n",
         "n.ini:9: loss = metered is of what the network makes"},
        {"[network]\nfamily=llama\nlayers=2\nwidth=8\nheads=2\nvocab=4\nseq=4\nffn=8\n"
         "use_cache=copied\n",
         "n.ini:9: use_cache = copied is of transformers' own modules"},
        {"[network]\nfamily=llama\nlayers=2\nwidth=8\nheads=2\nvocab=4\nseq=4\nffn=8\n"
         "code=transformers\nuse_cache=copied\nwindow=2\n",
         "n.ini:10: use_cache = copied is known of layers for q, k and v each, and without a "
         "window"},
        {"[network]\nfamily=llama\nlayers=2\nwidth=8\nheads=2\nvocab=4\nseq=4\nffn=8\n"
         "use_cache=always\n",
         "n.ini:9: use_cache must be no, yes or copied"},
        {"[network]\nfamily=gpt\nlayers=2\nwidth=8\nheads=2\nvocab=4\nseq=4\nloss=metered\n"
         "logits_held=backward\n",
         "n.ini:9: loss = metered holds the logits anyhow"},
        {"[network]\nfamily=gpt\nlayers=2\nwidth=8\nheads=2\nvocab=4\nseq=4\nloss=kernel\n"
         "logits_shifted=yes\n",
         "n.ini:9: logits_shifted = yes is known of a loss of logits as they are or in fp32"},
        {"[network]\nfamily=gpt\nlayers=2\nwidth=8\nheads=2\nvocab=4\nseq=4\nloss=chunked\n"
         "loss_in_place=yes\n",
         "n.ini:9: loss_in_place = yes is known of a loss of logits as they are or in fp32"},
        {"[network]\nfamily=gpt\nlayers=2\nwidth=8\nheads=2\nvocab=4\nseq=1\n"
         "logits_shifted=yes\n",
         "n.ini:8: logits_shifted = yes leaves nothing of sequences of one token"},
        {"[network]\nfamily=llama\nlayers=2\nwidth=8\nheads=2\nvocab=4\nseq=4\nffn=8\n"
         "attention=math\nrope=complex\n",
         "n.ini:10: rope = complex is known with attention's kernel alone"},
        {"[network]\nfamily=llama\nlayers=2\nwidth=8\nheads=2\nvocab=4\nseq=4\nffn=8\n"
         "qk_norm=heads\n",
         "n.ini:9: qk_norm must be none, head or width, not 'heads'"},
        {"[network]\nfamily=llama\nlayers=2\nwidth=8\nheads=2\nvocab=4\nseq=4\nffn=8\n"
         "norm_at=behind\n",
         "n.ini:9: norm_at must be before, after, both or once, not 'behind'"},
        {"[network]\nfamily=llama\nlayers=2\nwidth=8\nheads=2\nvocab=4\nseq=4\nffn=8\n"
         "qk_norm=head\nattention=math\n",
         "n.ini:9: qk_norm = head is known with attention's kernel alone"},
        {"[network]\nfamily=gpt\nlayers=2\nwidth=8\nheads=2\nvocab=4\nseq=4\nqk_norm=head\n",
         "n.ini:8: family gpt has no key 'qk_norm'"},
        {"[network]\nfamily=llama\nlayers=2\nwidth=8\nheads=2\nvocab=4\nseq=4\nffn=8\n"
         "qkv=packed\n",
         "n.ini:9: qkv must be apart, joined or sliced, not 'packed'"},
        {"[network]\nfamily=llama\nlayers=2\nwidth=8\nheads=2\nvocab=4\nseq=4\nffn=8\n"
         "kv=expanded\n",
         "n.ini:9: kv must be repeated or grouped, not 'expanded'"},
        {"[network]\nfamily=llama\nlayers=2\nwidth=8\nheads=2\nvocab=4\nseq=4\nffn=8\n"
         "rope=half\n",
         "n.ini:9: rope must be real, complex, partial or pairs, not 'half'"},
        {"[network]\nfamily=llama\nlayers=2\nwidth=8\nheads=2\nvocab=4\nseq=4\nffn=8\n"
         "attention=math\nrope=partial\n",
         "n.ini:10: rope = partial is known with attention's kernel alone"},
        {"[network]\nfamily=llama\nlayers=2\nwidth=8\nheads=2\nvocab=4\nseq=4\nffn=8\n"
         "qkv=joined\nrope=complex\n",
         "n.ini:10: rope = complex is known of layers apart"},
        {"[network]\nfamily=llama\nlayers=2\nwidth=8\nheads=2\nvocab=4\nseq=4\nffn=8\n"
         "qkv=joined\nqk_norm=width\n",
         "n.ini:10: q and k are normalized behind layers of their own"},
        {"[network]\nfamily=llama\nlayers=2\nwidth=8\nheads=2\nvocab=4\nseq=4\n",
         "n.ini:2: [network] lacks 'ffn'"},
        {"[network]\nfamily=llama\nlayers=2\nwidth=8\nheads=2\nvocab=4\nseq=4\nffn=8\n"
         "shared_ffn=8\n",
         "n.ini:9: shared_ffn is of a network with experts"},
        {"[network]\nfamily=llama\nlayers=2\nwidth=8\nheads=2\nvocab=4\nseq=4\nffn=8\n"
         "experts=4\n",
         "n.ini:8: a block has experts or a hidden layer of ffn, not both"},
        {"[network]\nfamily=llama\nlayers=2\nwidth=8\nheads=2\nvocab=4\nseq=4\nexperts=4\n",
         "n.ini:8: a network with experts needs experts_per_token and expert_ffn"},
        {"[network]\nfamily=llama\nlayers=2\nwidth=8\nheads=2\nvocab=4\nseq=4\nexperts=4\n"
         "experts_per_token=5\nexpert_ffn=8\n",
         "n.ini:9: a token goes to 5 experts, and there are 4"},
        {"[network]\nfamily=llama\nlayers=2\nwidth=8\nheads=2\nvocab=4\nseq=4\nexperts=4\n"
         "experts_per_token=2\nexpert_ffn=12\n",
         "n.ini:10: PyTorch's grouped product takes rows of 16 bytes"},
        {"[network]\nfamily=gpt\nlayers=2\nwidth=8\nheads=2\nvocab=4\nseq=4\nexperts=4\n",
         "n.ini:8: family gpt has no key 'experts'"},
        {"[network]\nfamily=llama\nlayers=2\nwidth=8\nheads=2\nvocab=4\nseq=4\nffn=8\n"
         "embed_scale=0\n",
         "n.ini:9: embed_scale must be a number from 1e-6 to 1e6, not '0'"},
        {"[network]\nfamily=llama\nlayers=2\nwidth=8\nheads=2\nvocab=4\nseq=4\nffn=8\n"
         "norm_at=after\nresidual_scale=0.2\n",
         "n.ini:10: residual_scale is known of a block with its norms before"},
        {"[network]\nfamily=llama\nlayers=2\nwidth=8\nheads=2\nvocab=4\nseq=4\nffn=8\n"
         "global_every=6\n",
         "n.ini:9: global_every says which blocks have no window and no local_rope_base"},
        {"[network]\nfamily=llama\nlayers=2\nwidth=8\nheads=2\nvocab=4\nseq=4\nffn=8\n"
         "local_rope_base=100\n",
         "n.ini:9: local_rope_base is of the blocks between those that global_every counts"},
        {"[network]\nfamily=llama\nlayers=2\nwidth=8\nheads=2\nvocab=4\nseq=4\nffn=8\n"
         "window=1\n",
         "n.ini:9: window must be at least 2"},
        {"[network]\nfamily=llama\nlayers=2\nwidth=8\nheads=2\nvocab=4\nseq=4\nffn=8\n"
         "window=2\nattention=math\n",
         "n.ini:9: a window is known with attention's kernel alone"},
        {"[network]\nfamily=llama\nlayers=2\nwidth=8\nheads=2\nvocab=4\nseq=4\nffn=8\n"
         "window_by=flash\n",
         "n.ini:9: window_by must be mask or kernel, not 'flash'"},
        {"[network]\nfamily=llama\nlayers=2\nwidth=8\nheads=2\nvocab=4\nseq=4\nffn=8\n"
         "global_every=6\nlocal_rope_base=100\nrope=partial\n",
         "n.ini:9: global_every is known with rope = real"},
        {"[network]\nfamily=llama\nlayers=2\nwidth=8\nheads=2\nvocab=4\nseq=4\nexperts=4\n"
         "experts_per_token=2\nexpert_ffn=8\ngate=gelu-tanh\n",
         "n.ini:11: experts are opened by SiLU"},
        {"[strategy]\nranks=2\n", "n.ini: this describes no network"},
        {"family=gpt\n", "n.ini: this describes no network"},
    };
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(ModelNetwork) network =
            model_network_read(cases[i].text, strlen(cases[i].text), "n.ini", &error);
        g_assert_null(network);
        g_assert_nonnull(error);
        if (!g_str_has_prefix(error->message, cases[i].expected)) {
            g_test_message("expected '%s', got '%s'", cases[i].expected, error->message);
            g_test_fail();
        }
    }
}

/* keys: of a network that is well by itself. */
static void expect_not_planned(const char *keys, const PlanStrategy *strategy,
                               const char *expected) {
    g_autoptr(GError) error = NULL;
    g_autofree char *text = g_strconcat("[network]\n", keys, NULL);
    g_autoptr(ModelNetwork) network = model_network_read(text, strlen(text), "n.ini", &error);
    g_assert_no_error(error);
    g_autoptr(PlanGraph) graph = model_network_emit_for(network, strategy, &error);
    g_assert_null(graph);
    g_assert_true(g_str_has_prefix(error->message, expected));
}

/* What was never recorded of a compiler is refused. */
static void not_compiled(void) {
    static const struct {
        const char *keys, *expected;
    } cases[] = {
        {"family=mlp\nlayers=2\nwidth=8\nseq=1\n",
         "n: kernels = compiled is not planned for families other than gpt, mpt and llama"},
        {"family=gpt\nlayers=1\nwidth=8\nheads=2\nvocab=4\nseq=4\nattention=math\n",
         "n: kernels = compiled is not planned for attention with its scores in memory"},
        {"family=gpt\nlayers=1\nwidth=8\nheads=2\nvocab=4\nseq=4\ndropout=0.1\n",
         "n: kernels = compiled is not planned for dropout"},
        {"family=llama\nlayers=1\nwidth=8\nheads=2\nvocab=4\nseq=4\nffn=8\nresidual_scale=2\n",
         "n: only eager kernels are planned for a network with embed_scale"},
        {"family=llama\nlayers=1\nwidth=8\nheads=2\nvocab=4\nseq=4\nffn=8\ngate_up=joined\n",
         "n: only eager kernels are planned for a network with gate_up = joined"},
        {"family=llama\nlayers=1\nwidth=8\nheads=2\nvocab=4\nseq=4\nffn=8\nnorm_weight=from-one\n",
         "n: only eager kernels are planned for a network with norm_weight = from-one"},
        {"family=llama\nlayers=1\nwidth=8\nheads=2\nvocab=4\nseq=4\nffn=8\nwindow=4\n",
         "n: the mask of its window of 4 tokens is not planned with compiled kernels"},
    };
    PlanStrategy strategy;
    plan_strategy_init(&strategy);
    strategy.kernels = PLAN_KERNELS_COMPILED;
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        expect_not_planned(cases[i].keys, &strategy, cases[i].expected);
    }
}

static void not_with_adapters(void) {
    static const struct {
        const char *keys, *expected;
    } cases[] = {
        {"gate_up=joined\n", "n: lora_rank is not planned for gate_up = joined"},
        {"rope=pairs\ncode=transformers\n", "n: lora_rank is not planned for rope = pairs"},
    };
    PlanStrategy strategy;
    plan_strategy_init(&strategy);
    strategy.lora_rank = 2;
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *keys =
            g_strconcat("family=llama\nlayers=1\nwidth=8\nheads=2\nvocab=4\nseq=4\nffn=8\n",
                        cases[i].keys, NULL);
        expect_not_planned(keys, &strategy, cases[i].expected);
    }
}

/* Nor blocks that are trained in part, of other shapes than were recorded. */
static void not_compiled_in_part(void) {
#define SMALL "layers=1\nwidth=8\nheads=2\nvocab=4\nseq=4\n"
    static const struct {
        const char *keys;
        uint64_t lora_rank;
        const char *expected;
    } cases[] = {
        {"family=mpt\n" SMALL, 2,
         "n: adapters in compiled blocks are not planned for families other than gpt and llama; "
         "set kernels = eager"},
        {"family=llama\nffn=8\nqkv=joined\n" SMALL, 2,
         "n: adapters in compiled blocks are not planned for one layer for q, k and v"},
        {"family=llama\nffn=8\nrope=complex\n" SMALL, 2,
         "n: adapters in compiled blocks are not planned for rope = complex or partial"},
        {"family=llama\nffn=8\nqk_norm=width\nnorm_at=after\n" SMALL, 2,
         "n: adapters in compiled blocks are not planned for qk_norm = width"},
        {"family=llama\nffn=8\nnorm_at=after\n" SMALL, 2,
         "n: adapters in compiled blocks are not planned for norm_at = after"},
        {"family=gpt\n" SMALL, 0,
         "n: frozen parameters in compiled blocks are not planned for family gpt where they are "
         "checkpointed; set kernels = eager"},
        {"family=mpt\n" SMALL, 0,
         "n: frozen parameters in compiled blocks are not planned for families other than gpt and "
         "llama"},
    };
#undef SMALL
    PlanStrategy strategy;
    plan_strategy_init(&strategy);
    strategy.kernels = PLAN_KERNELS_COMPILED;
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        strategy.lora_rank = cases[i].lora_rank;
        strategy.checkpointing.choice = g_str_has_prefix(cases[i].keys, "family=gpt")
                                            ? PLAN_CHECKPOINTING_FULL
                                            : PLAN_CHECKPOINTING_NONE;
        strategy.freeze = cases[i].lora_rank ? (PlanVariant){.choice = PLAN_FREEZE_NONE}
                                             : (PlanVariant){.choice = PLAN_FREEZE_MODULE,
                                                             .text = g_intern_string("embed")};
        expect_not_planned(cases[i].keys, &strategy, cases[i].expected);
    }
}

/* Attention within documents is FlashAttention's, of rows that lie token by token. */
static void not_packed(void) {
    static const struct {
        const char *keys;
        bool bf16;
        const char *expected;
    } cases[] = {
        {"family=llama\nffn=8\n", false, "is not planned for fp32"},
        {"family=llama\nffn=8\nattention=math\n", true, "set attention = kernel"},
        {"family=llama\nffn=8\nwindow=3\n", true, "set window = 0"},
        {"family=llama\nffn=8\nrope=partial\n", true, "set rope = real"},
        {"family=llama\nffn=8\nrope=complex\nkv_lora_rank=4\nqk_nope_head_dim=8\n"
         "qk_rope_head_dim=8\nv_head_dim=8\n",
         true, "is not planned for latent attention"},
        {"family=neox\nrotary_share=0.5\n", true, "is not planned for this network's family"},
        {"family=llama\nffn=8\nhead_dim=4\nseq=5\n", true,
         "a sequence of 5 tokens is not whole documents of 2"},
    };
    PlanStrategy strategy;
    plan_strategy_init(&strategy);
    strategy.document = 2;
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;
        g_autofree char *text =
            g_strdup_printf("[network]\nlayers=1\nwidth=8\nheads=2\nvocab=4\n%s%s",
                            strstr(cases[i].keys, "seq=") ? "" : "seq=4\n", cases[i].keys);
        g_autoptr(ModelNetwork) network = model_network_read(text, strlen(text), "n.ini", &error);
        g_assert_no_error(error);
        strategy.param_dtype = cases[i].bf16 ? 1 + PLAN_BF16 : PLAN_PARAM_MODEL;
        g_autoptr(PlanGraph) graph = model_network_emit_for(network, &strategy, &error);
        g_assert_null(graph);
        g_assert_nonnull(strstr(error->message, cases[i].expected));
    }
}

static void too_long(void) {
    const char *text = "[network]\nfamily=gpt\nlayers=1\nwidth=8\nheads=2\nvocab=4\nseq=4\n";
    g_autoptr(ModelNetwork) network = model_network_read(text, strlen(text), "n.ini", NULL);
    g_autoptr(GError) error = NULL;
    g_autoptr(PlanGraph) graph =
        model_network_emit(network, &(ModelPass){.batch = 1, .seq = 5}, &error);
    g_assert_null(graph);
    g_assert_true(g_str_has_prefix(error->message, "seq 5 is longer than the 4 positions"));
}

static void mutated(void) {
    static const char text[] =
        "[network]\nfamily = gpt\nlayers = 1\nwidth = 8\nheads = 2\nvocab = 4\nseq = 4\n";
    g_autoptr(GRand) rand = g_rand_new_with_seed(2);
    unsigned n_refused = 0;
    for (unsigned i = 0; i < 2000; i++) {
        char copy[sizeof text];
        memcpy(copy, text, sizeof text);
        gsize length = (gsize)g_rand_int_range(rand, 1, sizeof text);
        copy[g_rand_int_range(rand, 0, (gint32)length)] = (char)g_rand_int_range(rand, 0, 256);
        g_autoptr(GError) error = NULL;
        g_autoptr(ModelNetwork) network = model_network_read(copy, length, "n.ini", &error);
        g_assert_true((network == NULL) == (error != NULL));
        n_refused += network == NULL;
    }
    g_assert_cmpuint(n_refused, >, 1000);
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/models/network-refused/experts that were not recorded", experts_refused);
    g_test_add_func("/models/network-refused/bad files name line and remedy", bad_files);
    g_test_add_func("/models/network-refused/not compiled", not_compiled);
    g_test_add_func("/models/network-refused/not-with-adapters", not_with_adapters);
    g_test_add_func("/models/network-refused/not compiled in part", not_compiled_in_part);
    g_test_add_func("/models/network-refused/not packed", not_packed);
    g_test_add_func("/models/network-refused/too long a sequence", too_long);
    g_test_add_func("/models/network-refused/mutations end in a message", mutated);
    return g_test_run();
}
