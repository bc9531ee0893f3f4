#include "models/known.h"

#include "models/known-private.h"
#include "models/layers/chunked-loss.h"
#include "models/traced/traced.h"
#include "plan/plan.h"

/* T5's scores are not scaled; before 2.1 PyTorch's kernel always scaled them. */
static bool pytorch_has_kernel(const ModelNetwork *network, const PlanStrategy *strategy,
                               GError **error) {
    bool is_old = !plan_strategy_is_after(strategy, PLAN_PYTORCH_2_0);
    bool asks = network->family == &model_t5 && !network->scores_in_memory;
    const char *why = is_old && asks
                          ? "scaled_dot_product_attention takes no scale before PyTorch 2.1, and "
                            "T5 has none; set attention = math in the network, or pytorch = 2.4"
                          : NULL;
    return model_is_planned(network, why, error, "%s", why);
}

/* DeepSeek's blocks were recorded as torchtitan compiles them. */
static bool takes_more_than_eager(const ModelNetwork *network, const PlanStrategy *s,
                                  GError **error) {
    bool is_deepseeks = network->kv_lora_rank && s->kernels == PLAN_KERNELS_COMPILED;
    const char *why = is_deepseeks ? model_never_compiled(network) : model_eager_alone(network);
    return model_is_planned(
        network, why, error,
        "only eager kernels are planned for a network with %s; set kernels = eager%s", why,
        s->float8 == PLAN_FLOAT8_NONE ? "" : " and float8 = none");
}

/* What a compiler makes of a block was recorded of GPT's and Llama's, with attention in one kernel
 * and without dropout. */
static bool can_be_compiled(const ModelNetwork *network, GError **error) {
    const ModelFamily *family = network->family;
    const char *why = NULL;
    if (family != &model_gpt && family != &model_mpt && family != &model_llama) {
        why = "families other than gpt, mpt and llama; set kernels = eager";
    } else if (network->experts && network->code != MODEL_CODE_OWN) {
        why = "transformers' experts; set code = own, or kernels = eager";
    } else if (network->experts && network->norm_at != MODEL_NORM_BEFORE) {
        why = "experts whose norm comes after them; set norm_at = before, or kernels = eager";
    } else if (network->scores_in_memory) {
        why = "attention with its scores in memory; set attention = kernel in the network, or "
              "kernels = eager";
    } else if (network->dropout > 0) {
        why = "dropout; set dropout = 0 in the network, or kernels = eager";
    }
    return model_is_planned(network, why, error, "kernels = compiled is not planned for %s", why);
}

/* Around experts: as torchtitan does it, module by module. Latent attention is recorded so. */
static bool can_be_compiled_in_parts(const ModelNetwork *n, const PlanStrategy *s, GError **error) {
    const char *why = s->flavour != PLAN_FLAVOUR_FSDP2 && s->flavour != PLAN_FLAVOUR_PLAIN
                          ? "DDP, FSDP1 or zero1; set flavour=fsdp2"
                      : s->compile != PLAN_COMPILE_BLOCK
                          ? "a network compiled as a whole; set compile=block"
                      : s->rms_norm == PLAN_RMS_NORM_OPS ? "norms written out; set rms_norm=kernel"
                      : s->float8 != PLAN_FLOAT8_NONE    ? "layers in float8; set float8=none"
                                                         : NULL;
    return model_is_planned(n, why, error,
                            "kernels = compiled is not planned for %s with %s, or kernels=eager",
                            n->experts ? "experts" : "latent attention", why);
}

/* What a compiler makes of blocks that are trained in part was recorded of these. */
static bool can_be_compiled_in_part(const ModelNetwork *n, const PlanStrategy *s, GError **error) {
    bool is_gpt = n->family == &model_gpt, is_known = is_gpt || n->family == &model_llama;
    bool again = s->checkpointing.choice != PLAN_CHECKPOINTING_NONE;
    const char *why = is_gpt && again                     ? "family gpt where they are checkpointed"
                      : !is_known                         ? "families other than gpt and llama"
                      : !s->lora_rank                     ? NULL
                      : n->code != MODEL_CODE_OWN         ? "code = transformers"
                      : n->qkv != MODEL_QKV_APART         ? "one layer for q, k and v (qkv)"
                      : n->rope != MODEL_ROPE_REAL        ? "rope = complex or partial"
                      : n->qk_norm == MODEL_QK_NORM_WIDTH ? "qk_norm = width"
                      : n->norm_at != MODEL_NORM_BEFORE   ? "norm_at = after"
                                                          : NULL;
    return model_is_planned(n, why, error,
                            "%s in compiled blocks are not planned for %s; set kernels = eager",
                            s->lora_rank ? "adapters" : "frozen parameters", why);
}

/* Every layer of a block is one of Transformer Engine's. */
static bool can_have_delayed_scales(const ModelNetwork *network, GError **error) {
    bool is_known = network->family == &model_gpt || network->family == &model_mpt ||
                    network->family == &model_llama;
    const char *why = !is_known               ? "families other than gpt, mpt and llama"
                      : network->experts      ? "experts"
                      : network->kv_lora_rank ? "latent attention"
                                              : NULL;
    return model_is_planned(network, why, error,
                            "float8 = delayed is not planned for %s; set float8 = none", why);
}

/* What was recorded of layers in float8: a Llama's, without biases. */
static bool can_be_in_float8(const ModelNetwork *network, const PlanStrategy *s, GError **error) {
    if (s->float8 == PLAN_FLOAT8_DELAYED) {
        return can_have_delayed_scales(network, error);
    }
    const char *why = network->family != &model_llama ? "families other than llama"
                      : network->qkv_bias             ? "biases of q, k and v; set qkv_bias = no"
                      : network->norm_at != MODEL_NORM_BEFORE
                          ? "norms after the layers; set norm_at = before"
                          : model_eager_alone(network);
    return model_is_planned(network, why, error, "float8 is not planned for %s%s float8 = none",
                            why, model_or_set(why));
}

/* Tuned stacks rotate a part of each head by a kernel that is not modelled, and gather and score
 * experts' rows inside of their products. */
static bool can_be_fused(const ModelNetwork *network, GError **error) {
    const char *why = network->experts            ? "experts"
                      : network->rotary_share < 1 ? "rotary_share below 1"
                                                  : NULL;
    return model_is_planned(network, why, error,
                            "kernels = fused is not planned for %s; set kernels = eager", why);
}

/* With an odd number of passes steps take turns, and DDP's second, which makes its buckets anew, is
 * like no other. */
static bool logits_can_be_held(const ModelNetwork *network, const PlanStrategy *s, GError **error) {
    bool of_program = network->loss == MODEL_LOSS_FP32_LOGITS &&
                      network->loss_at == MODEL_LOSS_IN_MODEL && plan_strategy_is_one_program(s);
    bool in_buckets = s->flavour == PLAN_FLAVOUR_DDP || s->flavour == PLAN_FLAVOUR_ZERO1;
    const char *why =
        network->logits_held == PLAN_RESULTS_DROPPED ? NULL
        : of_program
            ? "with loss = fp32-logits where a program makes both, because it gives logits "
              "in fp32 and makes their gradient in 16 bits; set loss = fp32, logits_held = "
              "no or compile = block"
        : in_buckets && network->logits_held == PLAN_RESULTS_NEXT_FORWARD && s->accumulate % 2
            ? "past a step of DDP of an odd number of passes; set logits_held = backward, or an "
              "even accumulate"
            : NULL;
    return model_is_planned(network, why, error, "logits_held is not planned %s", why);
}

static bool keys_can_be_returned(const ModelNetwork *network, const PlanStrategy *s,
                                 GError **error) {
    bool is_theirs = network->code == MODEL_CODE_TRANSFORMERS;
    const char *why = !network->cache                    ? NULL
                      : s->kernels != PLAN_KERNELS_EAGER ? "with eager kernels; set kernels = eager"
                      : s->pipeline > 1 || s->context > 1 ? "of whole networks and sequences; set "
                                                            "pipeline = 1 and context = 1"
                      : network->kv_lora_rank ? "without latent attention; leave kv_lora_rank at 0"
                      : !is_theirs && plan_strategy_copies_results(s)
                          ? "of transformers' modules where DDP copies what a network returns; set "
                            "find_unused = no and static_graph = no"
                      : !is_theirs ? NULL
                      : s->tensor > 1
                          ? "of transformers' modules that no ranks share; set tensor = 1"
                      : s->checkpointing.choice != PLAN_CHECKPOINTING_NONE
                          ? "of transformers' modules that are not checkpointed (where they are, "
                            "transformers returns none); set checkpointing = none"
                          : NULL;
    return model_is_planned(network, why, error, "use_cache is planned only %s, or use_cache = no",
                            why);
}

/* Of logits of whole sequences that one rank has, by what stands where PyTorch's ops would. */
static bool loss_can_be_so(const ModelNetwork *n, const PlanStrategy *s, GError **error) {
    bool of_model = n->loss == MODEL_LOSS_MODEL && s->kernels == PLAN_KERNELS_FUSED;
    uint64_t seq = model_network_seq(n, s);
    const char *key = n->logits_shifted ? "logits_shifted" : "loss_in_place";
    const char *why = !n->logits_shifted && !n->loss_in_place ? NULL
                      : of_model ? "of a tuned stack's own kernel; set loss = fp32"
                      : plan_strategy_is_one_program(s)
                          ? "in a network that is compiled as a whole; set compile = block"
                      : s->tensor > 1   ? "of logits that ranks share; set tensor = 1"
                      : s->context > 1  ? "of sequences that ranks share; set context = 1"
                      : s->pipeline > 1 ? "in stages; set pipeline = 1"
                      : seq < 2         ? "of sequences of one token; set a longer seq"
                                        : NULL;
    return model_is_planned(n, why, error, "%s = yes is not planned %s, or %s = no", key, why, key);
}

static bool loss_is_known(const ModelNetwork *network, const PlanStrategy *strategy,
                          GError **error) {
    const ModelFamily *family = network->family;
    bool known = family == &model_gpt || family == &model_mpt || family == &model_llama;
    return logits_can_be_held(network, strategy, error) &&
           keys_can_be_returned(network, strategy, error) &&
           loss_can_be_so(network, strategy, error) &&
           (!model_loss_is_chunked(network->loss) ||
            model_loss_can_be_chunked(network, strategy, known, error));
}

/* What was recorded of them, and of no older PyTorch than that which has the grouped product. */
static bool can_have_experts(const ModelNetwork *network, const PlanStrategy *s, GError **error) {
    const char *why =
        !network->experts ? NULL
        : s->autocast != PLAN_AUTOCAST_NONE
            ? "with autocast; set autocast = none, and param_dtype = bf16"
        : !plan_strategy_is_after(s, PLAN_PYTORCH_2_4)
            ? "for PyTorch 2.4 and before, which lack their grouped product; set pytorch = current"
        : plan_strategy_param_dtype(s) == PLAN_FP16
            ? "in fp16, which PyTorch's grouped product does not take; set "
              "param_dtype = bf16"
        : s->lora_rank                           ? "with adapters; leave lora_rank at 0"
        : s->freeze.choice == PLAN_FREEZE_MODULE ? "with frozen parameters; set freeze = none"
                                                 : NULL;
    return model_is_planned(network, why, error, "experts are not planned %s", why);
}

/* What was recorded of it: PyTorch's current kernels, in the network's dtype or FSDP's. */
static bool can_be_latent(const ModelNetwork *network, const PlanStrategy *s, GError **error) {
    const char *why =
        !network->kv_lora_rank ? NULL
        : s->autocast != PLAN_AUTOCAST_NONE
            ? "with autocast; set autocast = none, and param_dtype = bf16"
        : !plan_strategy_is_after(s, PLAN_PYTORCH_2_4)
            ? "for PyTorch 2.4 and before; set pytorch = current"
        : s->lora_rank                           ? "with adapters; leave lora_rank at 0"
        : s->freeze.choice == PLAN_FREEZE_MODULE ? "with frozen parameters; set freeze = none"
        : s->rms_norm == PLAN_RMS_NORM_OPS       ? "with norms written out; set rms_norm = kernel"
        : s->deterministic != PLAN_DETERMINISTIC_NO
            ? "with deterministic algorithms; set deterministic = no"
            : NULL;
    return model_is_planned(network, why, error, "latent attention is not planned %s", why);
}

static bool takes_adapters(const ModelNetwork *network, GError **error) {
    const char *why = network->gate_up_joined             ? "gate_up = joined"
                      : network->rope == MODEL_ROPE_PAIRS ? "rope = pairs"
                                                          : NULL;
    return model_is_planned(network, why, error,
                            "lora_rank is not planned for %s; leave lora_rank at 0", why);
}

/* bitsandbytes packs all linear layers. Routers and latent attention were not recorded with it, nor
 * neox's layer for q, k and v, whose result lies in three parts, and experts are no linear layers.
 * Under autocast a layer gives fp32, and with one layer for q, k and v attention would cast each
 * part of its rows by itself, which is not planned. */
static bool takes_four_bits(const ModelNetwork *n, const PlanStrategy *s, GError **error) {
    bool is_joined =
        n->family == &model_gpt || n->family == &model_mpt || n->qkv != MODEL_QKV_APART;
    const char *without = n->experts                 ? "experts"
                          : n->kv_lora_rank          ? "latent attention"
                          : n->family == &model_neox ? "family neox"
                          : is_joined && s->autocast != PLAN_AUTOCAST_NONE
                              ? "autocast where one layer gives q, k and v"
                              : NULL;
    return model_is_planned(
        n, without, error, "lora_base is planned only without %s; set lora_base=model%s", without,
        is_joined && !n->experts && !n->kv_lora_rank ? ", or model_dtype=bf16" : "");
}

/* What a compiler or ranks that share layers make of a mask was not recorded. */
static bool mask_is_known(const ModelNetwork *n, const PlanStrategy *s, GError **error) {
    uint64_t seq = model_network_seq(n, s);
    bool is_masked = n->window && n->window_by == MODEL_WINDOW_BY_MASK && seq >= n->window &&
                     s->kernels != PLAN_KERNELS_FUSED;
    const char *why = !is_masked                            ? NULL
                      : s->kernels == PLAN_KERNELS_COMPILED ? "compiled kernels"
                      : s->tensor > 1                       ? "layers shared by ranks"
                                                            : NULL;
    return model_is_planned(
        n, why, error,
        "the mask of its window of %" G_GUINT64_FORMAT " tokens is not planned with "
        "%s; lower seq below that, or set window_by = kernel where the program calls "
        "FlashAttention-2",
        n->window, why);
}

/* A mask, scores in memory and a ring are of whole sequences, as is family t5's bias. Where q and k
 * are joined of what turns and what does not, they lie head by head: no rows of documents. */
static bool sequences_can_be_packed(const ModelNetwork *n, const PlanStrategy *s, GError **error) {
    uint64_t seq = model_network_seq(n, s);
    const char *why = NULL;
    if (n->family == &model_mlp) {
        why = "a network without attention";
    } else if (n->family == &model_t5 || n->family == &model_neox || n->family == &model_phi) {
        why = "this network's family";
    } else if (n->scores_in_memory) {
        why = "attention with its scores in memory; set attention = kernel";
    } else if (n->kv_lora_rank) {
        why = "latent attention (kv_lora_rank), whose kernel is not FlashAttention";
    } else if (n->window) {
        why = "a window of attention; set window = 0";
    } else if (n->rope == MODEL_ROPE_PARTIAL || n->rope == MODEL_ROPE_PAIRS) {
        why = "rope = partial or pairs, which turn a part of q and k; set rope = real";
    } else if (s->context > 1) {
        why = "ranks that share sequences; set context=1";
    } else if (plan_strategy_param_dtype(s) == PLAN_FP32 && s->autocast == PLAN_AUTOCAST_NONE) {
        why = "fp32, which FlashAttention does not take; set param_dtype=bf16";
    }
    if (!model_is_planned_with(n, "document", s->document, 0, why, error)) {
        return false;
    }
    if (seq % s->document) {
        g_set_error(error, PLAN_ERROR, PLAN_ERROR_VALUE,
                    "%s: a sequence of %" G_GUINT64_FORMAT " tokens is not whole documents of "
                    "%" G_GUINT64_FORMAT "; set a seq or document that is",
                    n->name, seq, s->document);
        return false;
    }
    return true;
}

/* Whose forward is another without gradients, or whose results a loop still holds then. */
static bool can_be_evaluated(const ModelNetwork *network, const PlanStrategy *strategy,
                             GError **error) {
    const char *why =
        model_loss_is_chunked(network->loss) ? "a loss that is chunked; set another loss"
        : network->loss == MODEL_LOSS_KERNEL && strategy->tensor > 1
            ? "a loss compiled by itself of logits that ranks share; set another loss"
        : network->logits_held == PLAN_RESULTS_NEXT_FORWARD
            ? "logits_held = next-forward; set another logits_held"
        : strategy->eval_holds_logits == PLAN_YES && network->loss_at == MODEL_LOSS_IN_MODEL
            ? "a loop that holds logits of a network that gives the loss; set loss_at = loop, or "
              "eval_holds_logits = no"
            : NULL;
    return model_is_planned(network, why, error,
                            "an evaluation is not planned for %s, or eval_batches = 0", why);
}

bool model_is_known_with(const ModelNetwork *network, const PlanStrategy *strategy,
                         GError **error) {
    if (network->traced) {
        return model_traced_is_known_with(network, strategy, error);
    }
    return pytorch_has_kernel(network, strategy, error) &&
           mask_is_known(network, strategy, error) && can_have_experts(network, strategy, error) &&
           can_be_latent(network, strategy, error) && loss_is_known(network, strategy, error) &&
           (strategy->kernels == PLAN_KERNELS_EAGER ||
            takes_more_than_eager(network, strategy, error)) &&
           (strategy->kernels != PLAN_KERNELS_COMPILED || can_be_compiled(network, error)) &&
           (strategy->kernels != PLAN_KERNELS_COMPILED ||
            !(network->experts || network->kv_lora_rank) ||
            can_be_compiled_in_parts(network, strategy, error)) &&
           (strategy->kernels != PLAN_KERNELS_COMPILED ||
            (!strategy->lora_rank && strategy->freeze.choice == PLAN_FREEZE_NONE) ||
            can_be_compiled_in_part(network, strategy, error)) &&
           (strategy->kernels != PLAN_KERNELS_FUSED || can_be_fused(network, error)) &&
           (!strategy->float8 || can_be_in_float8(network, strategy, error)) &&
           (!strategy->lora_rank || takes_adapters(network, error)) &&
           (strategy->lora_base == PLAN_LORA_BASE_MODEL ||
            takes_four_bits(network, strategy, error)) &&
           (!strategy->document || sequences_can_be_packed(network, strategy, error)) &&
           (!strategy->eval_batches || can_be_evaluated(network, strategy, error)) &&
           model_can_be_shared(network, strategy, error);
}
