/* One rank trains for real: gradients equal finite differences of the loss.
 *
 * A gradient is read where the optimizer reads it. The loss as a function of the parameters is
 * played anew for each difference: construction, a change of one parameter, one forward.
 */
#include <math.h>
#include <string.h>

#include "kernels/host/runtime.h"
#include "tests/exec/one-rank.h"

/* Its number among those that the optimizer sees. */
static uint32_t number_among_trained(const Plan *plan, uint32_t p) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < p; i++) {
        n += !plan->parameters[i].frozen;
    }
    return n;
}

/* Where parameter number p, which is trained, lies after construction: the plain flavour's shards
 * are whole. */
static PlanOperand parameter_operand(const Plan *plan, uint32_t p) {
    const PlanRole *role = &plan->roles[0];
    for (uint32_t i = 0; i < role->n_ops; i++) {
        if (role->ops[i].kind == PLAN_OP_ADAM_DECAY) {
            return plan_op_operand(role, &role->ops[i], number_among_trained(plan, p));
        }
    }
    g_assert_not_reached();
}

/* The number of a fixed pattern at place i: 1 or -1. */
static double sign_at(uint64_t i) {
    return i * 2654435761u >> 7 & 1 ? 1 : -1;
}

/* An adapter's B begins with zeros, so that its A has no gradient: gives it numbers. */
static void stir_adapters(OneRank *play) {
    const Plan *plan = play->plan;
    one_rank_until(play, PLAN_SECTION_FIRST, PLAN_OP_BATCH);
    for (uint32_t p = 0; p < plan->n_parameters; p++) {
        if (!g_str_has_suffix(plan->parameters[p].name, ".lora_B.weight")) {
            continue;
        }
        PlanOperand operand = parameter_operand(plan, p);
        for (uint64_t i = 0; i < operand.elements; i++) {
            one_rank_pointer(play, operand)[i] = (float)(0.1 * sign_at(i));
        }
    }
}

/* The loss of the first step when parameter p is moved by `by` along `direction`. */
static double loss_at(Plan *plan, uint32_t p, const float *direction, double by) {
    OneRank play = one_rank_begin(plan, 1);
    stir_adapters(&play);
    PlanOperand operand = parameter_operand(plan, p);
    float *x = one_rank_pointer(&play, operand);
    for (uint64_t i = 0; i < operand.elements; i++) {
        x[i] = (float)((double)x[i] + by * (double)direction[i]);
    }
    one_rank_until(&play, PLAN_SECTION_FIRST,
                   PLAN_OP_FILL); /* the loss's gradient: it is computed */
    double loss = play.host->losses[0];
    one_rank_end(&play);
    return loss;
}

/* Central difference with the error of order h^2 taken out. */
static double slope(Plan *plan, uint32_t p, const float *direction, double h) {
    double wide = (loss_at(plan, p, direction, h) - loss_at(plan, p, direction, -h)) / (2 * h);
    double near = (loss_at(plan, p, direction, h / 2) - loss_at(plan, p, direction, -h / 2)) / h;
    return (4 * near - wide) / 3;
}

static void check_parameter(Plan *plan, uint32_t p, const float *gradient, double bound,
                            double step) {
    PlanOperand operand = parameter_operand(plan, p);
    g_autofree float *direction = g_new0(float, operand.elements);
    double norm = 0, rounding = 4e-7 / step; /* of two losses of about 2.4 in fp32 */
    for (uint64_t i = 0; i < operand.elements; i++) {
        norm += (double)gradient[i] * (double)gradient[i];
    }
    norm = sqrt(norm);
    if (norm < 1e-6) {
        return; /* keys' biases: softmax does not see them */
    }
    /* Along the gradient itself, where the slope is its norm. */
    for (uint64_t i = 0; i < operand.elements; i++) {
        direction[i] = (float)((double)gradient[i] / norm);
    }
    double measured = slope(plan, p, direction, step);
    if (fabs(measured - norm) > bound * norm + rounding) {
        g_test_message("%s: gradient's norm %g, slope along it %g", plan->parameters[p].name, norm,
                       measured);
        g_test_fail();
    }
    /* Along a fixed pattern of signs: a gradient of the right length in a wrong direction fails. */
    double expected = 0;
    for (uint64_t i = 0; i < operand.elements; i++) {
        direction[i] = (float)(sign_at(i) / sqrt((double)operand.elements));
        expected += (double)direction[i] * (double)gradient[i];
    }
    measured = slope(plan, p, direction, step);
    if (fabs(measured - expected) > bound * norm + rounding) {
        g_test_message("%s: slope along signs %g, expected %g", plan->parameters[p].name, measured,
                       expected);
        g_test_fail();
    }
}

static void gradients_near(const char *kernels, const char *network, unsigned micro_batch,
                           double bound, double step) {
    g_autofree char *words =
        g_strdup_printf("ranks=1 sharding=none micro_batch=%u kernels=%s", micro_batch, kernels);
    g_autoptr(Plan) plan = test_plan(network, words);
    OneRank play = one_rank_begin(plan, 1);
    stir_adapters(&play);
    const PlanOp *moment = one_rank_until(&play, PLAN_SECTION_FIRST, PLAN_OP_ADAM_MOMENT);
    for (uint32_t p = 0; p < plan->n_parameters; p++) {
        if (!plan->parameters[p].frozen) {
            PlanOperand gradient =
                plan_op_operand(&plan->roles[0], moment, number_among_trained(plan, p));
            check_parameter(plan, p, one_rank_pointer(&play, gradient), bound, step);
        }
    }
    one_rank_end(&play);
}

static void gradients_by(const char *kernels, const char *network, unsigned micro_batch,
                         double bound) {
    gradients_near(kernels, network, micro_batch, bound, 0.02);
}

static void gradients_of(const char *network, unsigned micro_batch, double bound) {
    gradients_by("eager", network, micro_batch, bound);
}

/* The same networks by fused kernels. */
static void fused(void) {
    static const char *const networks[] = {
        "[network]\nfamily=gpt\nlayers=2\nwidth=32\nheads=2\nvocab=17\nseq=12\n",
        "[network]\nfamily=gpt\nlayers=1\nwidth=16\nheads=4\nvocab=11\nseq=9\ntied=yes\n"
        "gelu=erf\n",
        "[network]\nfamily=llama\nlayers=2\nwidth=16\nheads=4\nkv_heads=2\nffn=24\n"
        "vocab=11\nseq=9\n",
        "[network]\nfamily=t5\nlayers=1\nwidth=12\nheads=2\nhead_dim=8\nffn=20\n"
        "vocab=11\nseq=7\ntied=yes\ngated=yes\n"};
    for (unsigned i = 0; i < G_N_ELEMENTS(networks); i++) {
        gradients_by("fused", networks[i], 2, 2e-3);
    }
}

/* Adapters alone, or what is not frozen: backward goes through what is, and begins where something
 * is trained. */
static void lora_and_frozen(void) {
    static const struct {
        const char *words, *network;
    } cases[] = {
        {"eager lora_rank=2 lora_alpha=2 lora_on=all-linear", "gpt\nlayers=2\n"},
        {"eager lora_rank=3 lora_alpha=4 checkpointing=full", "gpt\nlayers=2\n"},
        {"eager lora_rank=2 lora_alpha=2 lora_dropout=0.2 lora_on=all-linear",
         "llama\nlayers=2\nffn=24\nkv_heads=2\n"},
        {"eager lora_rank=3 lora_alpha=4 lora_dropout=0.3 checkpointing=full",
         "gpt\nlayers=2\ndropout=0.1\nattention=math\n"},
        {"eager lora_rank=2 lora_alpha=1", "llama\nlayers=2\nffn=24\nkv_heads=2\n"},
        {"eager lora_rank=2 lora_alpha=2 lora_on=module=.*(o|gate) rms_norm=ops",
         "llama\nlayers=2\nffn=24\nattention=math\n"},
        {"eager lora_rank=2 lora_alpha=1 lora_on=all-linear",
         "t5\nlayers=1\nhead_dim=4\nffn=24\ngated=yes\n"},
        {"eager lora_rank=2 lora_alpha=2 lora_on=all-linear lora_base=nf4", "gpt\nlayers=2\n"},
        {"eager lora_rank=3 lora_alpha=4 lora_base=fp4 lora_base_double=yes checkpointing=full",
         "llama\nlayers=2\nffn=24\nkv_heads=2\n"},
        {"eager lora_rank=2 lora_alpha=1 lora_base=nf4 lora_base_double=yes",
         "t5\nlayers=1\nhead_dim=4\nffn=24\n"},
        {"eager lora_rank=2 lora_alpha=2 lora_on=all-linear checkpointing=full",
         "neox\nlayers=2\nffn=24\nrotary_share=0.5\n"},
        {"compiled lora_rank=2 lora_alpha=2 lora_on=all-linear", "gpt\nlayers=2\n"},
        {"compiled lora_rank=2 lora_alpha=1 lora_on=all-linear",
         "llama\nlayers=2\nffn=24\nkv_heads=2\nqk_norm=head\n"},
        {"compiled lora_rank=3 lora_alpha=4 lora_on=all-linear checkpointing=full",
         "llama\nlayers=2\nffn=24\nkv_heads=2\n"},
        {"compiled lora_rank=3 lora_alpha=4 lora_on=module=.*(v|up) checkpointing=full",
         "llama\nlayers=2\nffn=24\n"},
        {"compiled lora_rank=2 lora_alpha=1 lora_on=module=.*(o|gate)",
         "llama\nlayers=2\nffn=24\n"},
        {"eager freeze=module=wte|wpe|layers.0", "gpt\nlayers=2\n"},
        {"compiled freeze=module=LayerNorm|.*up", "gpt\nlayers=2\n"},
        {"compiled freeze=module=embed|.*norm.*|.*down", "llama\nlayers=2\nffn=24\n"},
        {"compiled freeze=module=embed|.*(gate|q|o) checkpointing=full",
         "llama\nlayers=2\nffn=24\n"},
        {"eager freeze=module=LayerNorm|.*up checkpointing=full", "gpt\nlayers=2\n"},
        {"eager freeze=module=embed|.*norm.*|.*down", "llama\nlayers=2\nffn=24\n"},
    };
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *text = g_strdup_printf(
            "[network]\nwidth=16\nheads=4\nvocab=11\nseq=7\nfamily=%s", cases[i].network);
        gradients_near(cases[i].words, text, 2, 4e-3, 0.02);
    }
}

/* Normalized q and k: Qwen 3's by head, OLMo 2's as a whole, whose other norms stand behind. A
 * norm sees the direction alone of what small weights make, so that the loss bends sooner. */
static void normalized_q_and_k(void) {
    static const struct {
        const char *kernels, *network;
    } cases[] = {
        {"eager", "qk_norm=head\n"},
        {"eager rms_norm=ops", "qk_norm=head\n"},
        {"compiled", "qk_norm=head\n"},
        {"fused", "qk_norm=head\n"},
        {"fused", "qk_norm=width\nnorm_at=after\n"},
        {"eager checkpointing=full", "qk_norm=head\nrope=complex\n"},
        {"eager", "qk_norm=width\nnorm_at=after\n"},
        {"eager", "qk_norm=width\nattention=math\n"},
        {"eager rms_norm=ops", "qk_norm=width\nnorm_at=after\nattention=math\n"},
        {"compiled", "norm_at=after\n"},
    };
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *text = g_strconcat("[network]\nfamily=llama\nlayers=1\nwidth=64\nheads=4\n"
                                            "kv_heads=2\nhead_dim=6\nffn=24\nvocab=11\nseq=7\n",
                                            cases[i].network, NULL);
        gradients_near(cases[i].kernels, text, 2, 2e-3, 0.01);
    }
}

/* q, k and v by one layer, which is split or sliced. */
static void joined_q_k_and_v(void) {
    static const struct {
        const char *kernels, *network;
    } cases[] = {
        {"eager", "qkv=joined\n"},
        {"eager", "qkv=sliced\nrope=partial\nqkv_bias=yes\n"},
        {"eager checkpointing=full", "qkv=joined\nrope=partial\n"},
        {"eager", "qkv=joined\nattention=math\n"},
        {"eager", "kv_heads=4\nqkv=sliced\nattention=math\n"},
        {"eager", "kv_heads=1\nqkv=joined\n"},
        {"eager", "kv=repeated\nqkv=joined\n"},
        {"eager", "kv=repeated\nattention=math\n"},
        {"eager", "kv=repeated\nqkv=joined\nattention=math\n"},
        {"compiled", "qkv=joined\nrope=partial\n"},
        {"fused", "qkv=sliced\nrope=partial\n"},
        {"fused", "kv_heads=4\nqkv=joined\n"},
    };
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        bool says_kv = strstr(cases[i].network, "kv_heads") != NULL;
        g_autofree char *text = g_strconcat(
            "[network]\nfamily=llama\nlayers=2\nwidth=16\nheads=4\nffn=24\nvocab=11\nseq=9\n",
            says_kv ? "" : "kv_heads=2\n", cases[i].network, NULL);
        gradients_by(cases[i].kernels, text, 2, 2e-3);
    }
}

/* Each token goes to all experts, in an order of its own: where it goes to some, the loss jumps
 * when a small step sends it elsewhere. tests/oracle/numbers has gradients of that. */
static void experts(void) {
    static const struct {
        const char *kernels, *network;
    } cases[] = {
        {"eager", "experts=3\nexperts_per_token=3\nexpert_ffn=24\n"},
        {"eager checkpointing=full",
         "experts=4\nexperts_per_token=4\nexpert_ffn=16\nshared_ffn=8\n"},
        {"eager", "experts=3\nexperts_per_token=3\nexpert_ffn=8\nroute_norm=no\n"},
        {"eager", "experts=1\nexperts_per_token=1\nexpert_ffn=8\n"},
        {"compiled", "experts=3\nexperts_per_token=3\nexpert_ffn=24\n"},
        {"compiled checkpointing=full",
         "experts=5\nexperts_per_token=5\nexpert_ffn=16\nshared_ffn=8\n"},
        {"compiled", "experts=3\nexperts_per_token=3\nexpert_ffn=8\nroute_norm=no\n"},
    };
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *text = g_strconcat("[network]\nfamily=llama\nlayers=2\nwidth=16\nheads=4\n"
                                            "kv_heads=2\nvocab=11\nseq=9\n",
                                            cases[i].network, NULL);
        gradients_near(cases[i].kernels, text, 2, 4e-3, 0.01);
    }
}

/* Blocks and networks as a compiler makes them, the logits held beside the loss, the loss in the
 * training loop, complex rotary embedding. */
static void compiled(void) {
    static const char *const networks[] = {
        "[network]\nfamily=gpt\nlayers=2\nwidth=32\nheads=2\nvocab=17\nseq=12\n"
        "logits_held=backward\n",
        "[network]\nfamily=llama\nlayers=2\nwidth=16\nheads=4\nkv_heads=2\nffn=24\n"
        "vocab=11\nseq=9\nloss_at=loop\nlogits_held=next-forward\n",
        "[network]\nfamily=llama\nlayers=1\nwidth=16\nheads=2\nffn=20\nvocab=11\nseq=9\n"
        "rope=complex\nloss_at=loop\nloss=fp32-logits\n"};
    for (unsigned i = 0; i < G_N_ELEMENTS(networks); i++) {
        gradients_by("compiled", networks[i], 2, 2e-3);
        gradients_by("compiled compile=network", networks[i], 2, 2e-3);
    }
    gradients_of(networks[2], 2, 2e-3);
}

/* Of all but each sequence's last token, and by a kernel that writes over what it is given. */
static void losses(void) {
    static const char *const networks[] = {
        "[network]\nfamily=gpt\nlayers=1\nwidth=16\nheads=2\nvocab=11\nseq=9\n"
        "loss=ops\nlogits_shifted=yes\n",
        "[network]\nfamily=llama\nlayers=1\nwidth=16\nheads=4\nkv_heads=2\nffn=24\nvocab=11\n"
        "seq=9\nloss=fp32-logits\nlogits_shifted=yes\nloss_in_place=yes\nlogits_held=backward\n",
        "[network]\nfamily=llama\nlayers=1\nwidth=16\nheads=4\nkv_heads=2\nffn=24\nvocab=11\n"
        "seq=9\ncode=transformers\nlogits_shifted=yes\n",
        "[network]\nfamily=llama\nlayers=1\nwidth=16\nheads=4\nkv_heads=2\nffn=24\nvocab=11\n"
        "seq=9\nloss=fp32\nloss_in_place=yes\n"};
    for (unsigned i = 0; i < G_N_ELEMENTS(networks); i++) {
        gradients_of(networks[i], 1, 2e-3);
        gradients_of(networks[i], 3, 2e-3);
    }
}

/* The key that all heads share gets the sum of their gradients, or a single head's as it lies. */
static void latent(void) {
    static const char *const heads[] = {"heads=1\n", "heads=3\n"};
    for (unsigned i = 0; i < G_N_ELEMENTS(heads); i++) {
        g_autofree char *network =
            g_strconcat("[network]\nfamily=llama\nlayers=2\nwidth=16\nffn=24\nvocab=11\nseq=7\n"
                        "kv_lora_rank=12\nqk_nope_head_dim=16\nqk_rope_head_dim=16\n"
                        "v_head_dim=8\nrope=complex\nattention_scale=30\n",
                        heads[i], NULL);
        gradients_of(network, 2, 2e-3);
    }
}

/* Of copies of keys and values, which the network returns. */
static void cache(void) {
    gradients_of("[network]\nfamily=llama\nlayers=2\nwidth=16\nheads=4\nkv_heads=2\nffn=24\n"
                 "vocab=11\nseq=9\ncode=transformers\nuse_cache=copied\n",
                 2, 2e-3);
}

/* Norms that multiply by nothing. */
static void bare_norms(void) {
    gradients_of("[network]\nfamily=llama\nlayers=2\nwidth=16\nheads=4\nkv_heads=2\nffn=24\n"
                 "vocab=11\nseq=9\ncode=transformers\nnorm_weight=none\n",
                 2, 2e-3);
}

/* Neighbours in a head: half of its numbers, and all. */
static void pairs(void) {
    static const char network[] =
        "[network]\nfamily=llama\nlayers=2\nwidth=16\nheads=4\nkv_heads=2\nffn=24\nvocab=11\n"
        "seq=9\ncode=transformers\nrope=pairs\ngate_up=joined\nqkv_bias=yes\n";
    g_autofree char *of_half = g_strconcat(network, "rotary_share=0.5\n", NULL);
    gradients_of(of_half, 2, 2e-3);
    gradients_of(network, 2, 2e-3);
}

/* The same in fp32: a norm of ops for attention and hidden layer side by side, and of those blocks
 * that look back all the way none that turns; and Llamas otherwise. */
static void wide_pairs(void) {
    static const char network[] = "[network]\nfamily=llama\nlayers=2\nwidth=16\nheads=4\n"
                                  "kv_heads=2\nffn=24\nvocab=11\nseq=9\ncode=transformers\n"
                                  "rope=pairs\n";
    g_autofree char *cohere =
        g_strconcat(network,
                    "norm_at=once\nnorm_weight=centred\nlogits_scale=0.5\nwindow=3\n"
                    "global_every=2\nno_rope_every=2\n",
                    NULL);
    g_autofree char *helium = g_strconcat(network, "norm_weight=widened\n", NULL);
    gradients_of(cohere, 2, 2e-3);
    gradients_of(network, 2, 2e-3);
    gradients_of(helium, 2, 2e-3);
}

/* Whose experts a token goes to all, so that no difference chooses others. */
static void sinks(void) {
    gradients_of("[network]\nfamily=llama\nlayers=2\nwidth=16\nheads=4\nkv_heads=2\nvocab=11\n"
                 "seq=7\ncode=transformers\nsinks=yes\nattention=math\nqkv_bias=yes\nwindow=3\n"
                 "global_every=2\nexperts=2\nexperts_per_token=2\nexpert_ffn=8\n",
                 2, 2e-3);
}

static void gpt(void) {
    gradients_of("[network]\nfamily=gpt\nlayers=2\nwidth=32\nheads=2\nvocab=17\nseq=12\n", 2, 2e-3);
}

static void gpt_tied_erf(void) {
    gradients_of("[network]\nfamily=gpt\nlayers=1\nwidth=16\nheads=4\nvocab=11\nseq=9\ntied=yes\n"
                 "gelu=erf\n",
                 2, 2e-3);
}

static void gpt_gelu_of_ops(void) {
    gradients_of("[network]\nfamily=gpt\nlayers=1\nwidth=16\nheads=2\nvocab=11\nseq=7\n"
                 "gelu=ops\n",
                 2, 2e-3);
}

/* One sequence and several: with the scores in memory they are laid out differently. */
static void gpt_scores_in_memory(void) {
    for (unsigned micro_batch = 1; micro_batch <= 2; micro_batch++) {
        gradients_of("[network]\nfamily=gpt\nlayers=1\nwidth=16\nheads=2\nvocab=11\nseq=7\n"
                     "attention=math\n",
                     micro_batch, 2e-3);
    }
}

/* What is dropped depends on the step alone, so a loss computed again drops the same. Fewer and
 * larger activations bend the loss more: half the step halves gpt's 3e-3 fourfold. */
static void dropout(void) {
    gradients_of("[network]\nfamily=gpt\nlayers=2\nwidth=16\nheads=2\nvocab=11\nseq=7\n"
                 "attention=math\ndropout=0.2\n",
                 2, 4e-3);
    gradients_of("[network]\nfamily=t5\nlayers=1\nwidth=12\nheads=2\nhead_dim=8\nffn=20\n"
                 "vocab=11\nseq=7\ngated=yes\ndropout=0.2\n",
                 2, 2e-3);
}

static void llama(void) {
    gradients_of("[network]\nfamily=llama\nlayers=2\nwidth=16\nheads=4\nkv_heads=2\nffn=24\n"
                 "vocab=11\nseq=9\n",
                 2, 2e-3);
    gradients_of("[network]\nfamily=llama\nlayers=1\nwidth=16\nheads=2\nhead_dim=4\nffn=20\n"
                 "vocab=11\nseq=9\ntied=yes\n",
                 2, 2e-3);
}

/* RMSNorm of PyTorch's ops; T5 has it twice in a row. */
static void rms_norm_of_ops(void) {
    gradients_by("eager rms_norm=ops",
                 "[network]\nfamily=llama\nlayers=2\nwidth=16\nheads=4\nkv_heads=2\nffn=24\n"
                 "vocab=11\nseq=9\n",
                 2, 2e-3);
    gradients_by("eager rms_norm=ops",
                 "[network]\nfamily=t5\nlayers=1\nwidth=12\nheads=2\nhead_dim=8\nffn=20\n"
                 "vocab=11\nseq=7\ngated=yes\n",
                 1, 2e-3);
}

/* Metrics read the logits after backward, which therefore leaves them. */
static void metered(void) {
    gradients_of("[network]\nfamily=mpt\nlayers=1\nwidth=16\nheads=2\nvocab=11\nseq=7\n"
                 "loss=metered\n",
                 2, 2e-3);
}

/* The loop's loss in one kernel, between eager ones. */
static void loss_in_one_kernel(void) {
    gradients_of("[network]\nfamily=llama\nlayers=1\nwidth=16\nheads=4\nffn=24\nvocab=11\nseq=7\n"
                 "loss=kernel\nloss_at=loop\n",
                 2, 2e-3);
}

/* Head and loss in chunks of 4 rows of 14, the last of 2, of 8 and 6 as Liger's, and of 2 of 16 as
 * torchtitan's: the head's own weight, the embedding's too, and one that is frozen. */
static void loss_in_chunks(void) {
    static const struct {
        const char *words, *network;
    } cases[] = {
        {"eager", "llama\nffn=24\nlayers=1\n"},
        {"eager checkpointing=full", "gpt\nlayers=1\ntied=yes\n"},
        {"fused", "mpt\nlayers=1\n"},
        {"eager lora_rank=2 lora_alpha=2", "llama\nffn=24\nlayers=1\n"},
    };
    static const char *const losses[] = {"chunked", "liger", "torchtitan"};
    for (unsigned i = 0; i < 3 * G_N_ELEMENTS(cases); i++) {
        bool in_eighths = i % 3 == 2;
        g_autofree char *text =
            g_strdup_printf("[network]\nwidth=16\nheads=2\nvocab=19\nseq=%u\nloss=%s\nfamily=%s",
                            in_eighths ? 8 : 7, losses[i % 3], cases[i / 3].network);
        gradients_near(cases[i / 3].words, text, 2, 2e-3, 0.02);
    }
}

static void llama_scores_in_memory(void) {
    static const char *const kv_heads[] = {"4", "2"};
    for (unsigned i = 0; i < 4; i++) {
        g_autofree char *text = g_strdup_printf("[network]\nfamily=llama\nlayers=1\nwidth=16\n"
                                                "heads=4\nkv_heads=%s\nffn=24\nvocab=11\nseq=7\n"
                                                "attention=math\n",
                                                kv_heads[i / 2]);
        gradients_of(text, 1 + i % 2, 2e-3);
    }
}

static void t5(void) {
    for (unsigned micro_batch = 1; micro_batch <= 2; micro_batch++) {
        gradients_of("[network]\nfamily=t5\nlayers=1\nwidth=12\nheads=2\nhead_dim=8\nffn=20\n"
                     "vocab=11\nseq=7\ntied=yes\ngated=yes\n",
                     micro_batch, 2e-3);
    }
}

/* The bias in attention's kernel, whose gradient lies in padded storage. */
static void t5_in_a_kernel(void) {
    for (unsigned i = 0; i < 4; i++) {
        g_autofree char *text = g_strdup_printf(
            "[network]\nfamily=t5\nlayers=%u\nwidth=12\nheads=2\nhead_dim=6\nffn=20\nvocab=11\n"
            "seq=7\ngated=yes\nattention=kernel\n",
            1 + i / 2);
        gradients_of(text, 1 + i % 2, 2e-3);
    }
}

/* One head, and one token, of several sequences are not copied apart: models/layers/attention.c. */
static void t5_one_head_or_token(void) {
    gradients_of("[network]\nfamily=t5\nlayers=1\nwidth=12\nheads=1\nhead_dim=8\nffn=20\n"
                 "vocab=11\nseq=7\ntied=yes\ngated=yes\n",
                 2, 2e-3);
    gradients_of("[network]\nfamily=t5\nlayers=1\nwidth=12\nheads=2\nhead_dim=8\nffn=20\n"
                 "vocab=11\nseq=1\ntied=yes\ngated=yes\n",
                 3, 2e-3);
}

/* Blocks that look back three tokens, all or every other one: told by a mask or by the kernel. */
static void windows(void) {
    static const char *const keys[] = {"window=3\n", "window=3\nwindow_by=kernel\n",
                                       "window=3\nglobal_every=2\nlocal_rope_base=100\n",
                                       "window=3\ncode=transformers\n"};
    for (unsigned i = 0; i < G_N_ELEMENTS(keys); i++) {
        g_autofree char *network =
            g_strconcat("[network]\nfamily=llama\nlayers=2\nwidth=16\nheads=2\nkv_heads=1\nffn=6\n"
                        "vocab=11\nseq=7\n",
                        keys[i], NULL);
        gradients_of(network, 2, 2e-3);
    }
}

/* ReLU's kinks, as in mlp. */
static void t5_relu(void) {
    gradients_of("[network]\nfamily=t5\nlayers=2\nwidth=12\nheads=2\nhead_dim=8\nffn=20\n"
                 "vocab=11\nseq=5\n",
                 2, 2e-2);
}

/* ReLU has kinks that a difference steps over, so the bound is wider. */
static void mlp(void) {
    gradients_of("[network]\nfamily=mlp\nlayers=3\nwidth=12\nseq=6\n", 2, 2e-2);
}

/* Families of models/families/decoder.c: each with what it does in its own way. */
static void decoders(void) {
    static const char *const networks[] = {
        "[network]\nfamily=llama\nlayers=2\nwidth=16\nheads=2\nkv_heads=1\nffn=6\nvocab=11\nseq=7\n"
        "embed_scale=3\nattention_scale=30.2\nresidual_scale=0.7\nlogits_scale=0.5\n"
        "no_rope_every=2\ntied=yes\n",
        "[network]\nfamily=llama\nlayers=1\nwidth=16\nheads=2\nffn=6\nvocab=11\nseq=7\n"
        "gate_up=joined\nqkv=sliced\nrope=partial\n",
        "[network]\nfamily=llama\nlayers=2\nwidth=16\nheads=2\nkv_heads=1\nffn=6\nvocab=11\nseq=7\n"
        "qkv=sliced\nno_rope_every=2\n",
        "[network]\nfamily=neox\nlayers=1\nwidth=16\nheads=2\nvocab=11\nseq=7\nrotary_share=0.5\n",
        "[network]\nfamily=neox\nlayers=2\nwidth=16\nheads=2\nvocab=11\nseq=7\nrotary_share=0.25\n"
        "block=sequential\ntied=yes\n",
        "[network]\nfamily=phi\nlayers=1\nwidth=16\nheads=2\nkv_heads=1\nvocab=11\nseq=7\n"
        "rotary_share=0.5\ngelu=ops\n",
        "[network]\nfamily=starcoder2\nlayers=1\nwidth=16\nheads=4\nkv_heads=2\nffn=24\nvocab=11\n"
        "seq=7\n"};
    for (unsigned i = 0; i < G_N_ELEMENTS(networks); i++) {
        gradients_of(networks[i], 2, 2e-3);
    }
}

/* What a norm divides is small here, and bends within a longer step. */
static void gemma(void) {
    gradients_near("eager",
                   "[network]\nfamily=llama\nlayers=2\nwidth=16\nheads=2\nkv_heads=1\nffn=6\n"
                   "vocab=11\nseq=7\nnorm_at=both\nnorm_weight=from-one\nqk_norm=head\n"
                   "gate=gelu-tanh\nembed_scale=4\nglobal_every=2\nlocal_rope_base=100\n"
                   "tied=yes\n",
                   2, 2e-3, 0.005);
}

/* ReLU's kinks, as in mlp. */
static void opt(void) {
    gradients_of("[network]\nfamily=opt\nlayers=1\nwidth=16\nheads=2\nvocab=11\nseq=7\ntied=yes\n",
                 2, 2e-2);
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    kernel_set_threads(1); /* as foreshard-exec does */
    g_test_add_func("/exec/gradients/gpt equals finite differences", gpt);
    g_test_add_func("/exec/gradients/gpt with tied head and erf", gpt_tied_erf);
    g_test_add_func("/exec/gradients/gpt with GELU of ops", gpt_gelu_of_ops);
    g_test_add_func("/exec/gradients/mlp equals finite differences", mlp);
    g_test_add_func("/exec/gradients/gpt with its scores in memory", gpt_scores_in_memory);
    g_test_add_func("/exec/gradients/by fused kernels", fused);
    g_test_add_func("/exec/gradients/of other losses", losses);
    g_test_add_func("/exec/gradients/of latent attention", latent);
    g_test_add_func("/exec/gradients/of keys and values that are copied", cache);
    g_test_add_func("/exec/gradients/of sinks, and experts with limits", sinks);
    g_test_add_func("/exec/gradients/of norms without weights", bare_norms);
    g_test_add_func("/exec/gradients/of neighbours that are turned", pairs);
    g_test_add_func("/exec/gradients/of neighbours that are turned in fp32", wide_pairs);
    g_test_add_func("/exec/gradients/of compiled blocks", compiled);
    g_test_add_func("/exec/gradients/with dropout", dropout);
    g_test_add_func("/exec/gradients/llama", llama);
    g_test_add_func("/exec/gradients/RMSNorm of ops", rms_norm_of_ops);
    g_test_add_func("/exec/gradients/norms from one on", gemma);
    g_test_add_func("/exec/gradients/normalized q and k", normalized_q_and_k);
    g_test_add_func("/exec/gradients/joined q, k and v", joined_q_k_and_v);
    g_test_add_func("/exec/gradients/experts", experts);
    g_test_add_func("/exec/gradients/metered", metered);
    g_test_add_func("/exec/gradients/loss-in-one-kernel", loss_in_one_kernel);
    g_test_add_func("/exec/gradients/loss in chunks", loss_in_chunks);
    g_test_add_func("/exec/gradients/llama with its scores in memory", llama_scores_in_memory);
    g_test_add_func("/exec/gradients/t5", t5);
    g_test_add_func("/exec/gradients/t5 with one head or token", t5_one_head_or_token);
    g_test_add_func("/exec/gradients/t5 with relu", t5_relu);
    g_test_add_func("/exec/gradients/t5 in attention's kernel", t5_in_a_kernel);
    g_test_add_func("/exec/gradients/decoders with LayerNorm", decoders);
    g_test_add_func("/exec/gradients/opt", opt);
    g_test_add_func("/exec/gradients/windows", windows);
    g_test_add_func("/exec/gradients/adapters, and what is not frozen", lora_and_frozen);
    return g_test_run();
}
