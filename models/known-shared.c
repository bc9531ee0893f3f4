/* models/known-shared.c - with which axes of the mesh, beside those of its parameters, a network is
 * known: what ranks share of its layers, sequences and experts, or have of its stages. */
#include "models/known-private.h"
#include "models/stages.h"
#include "plan/plan.h"

/* torchtitan's alone, as many on each rank. */
static bool experts_can_be_shared(const ModelNetwork *n, const PlanStrategy *s, GError **error) {
    const char *why = NULL;
    if (n->family != &model_llama || !n->experts) {
        why = "is planned only for family llama with experts; leave expert at 1";
    } else if (n->code != MODEL_CODE_OWN) {
        why = "is planned only for torchtitan's experts, not transformers'; set code = own";
    } else if (n->experts % s->expert) {
        why = "does not divide the experts; set one that does";
    } else if (plan_strategy_shard_ranks(s) > n->experts &&
               (n->expert_ffn % plan_strategy_alike_ranks(s) ||
                n->width % plan_strategy_alike_ranks(s))) {
        why = "with more ranks than experts shards each expert by rows, and the ranks that have "
              "the same experts do not divide them; set another";
    }
    return model_is_planned(n, why, error, "expert=%" G_GUINT64_FORMAT " %s", s->expert, why);
}

/* A token goes to each of a rank's experts once, at most. */
static bool experts_have_rows(const ModelNetwork *n, const PlanStrategy *s, GError **error) {
    double most = (double)n->experts / (double)n->experts_per_token;
    const char *why =
        s->expert_overload > most ? "is more rows than all tokens have for a rank's experts" : NULL;
    return model_is_planned(n, why, error, "expert_overload=%g %s; set expert_overload=%g",
                            s->expert_overload, why, most);
}

/* Of a GPT eager blocks are recorded, of PyTorch 2.13. What ranks would have to draw of dropout,
 * and which slopes of ALiBi each has, is not. NULL: it can be shared. */
static const char *not_shared_of_gpt(const ModelNetwork *n, const PlanStrategy *s) {
    return s->kernels != PLAN_KERNELS_EAGER ? "compiled blocks of family gpt; set kernels = eager"
           : s->pytorch != PLAN_PYTORCH_CURRENT
               ? "family gpt with PyTorch other than 2.13; set pytorch = current"
           : n->dropout > 0 ? "dropout; set dropout = 0 in the network"
           : n->alibi       ? "positions = alibi; set positions = learned"
                            : NULL;
}

/* How ranks share layers is recorded of torchtitan's plan for a Llama, and of the same for a GPT.
 * NULL: so is this. */
static const char *not_shared_with(const ModelNetwork *n, const PlanStrategy *s) {
    bool has_norms = n->qk_norm != MODEL_QK_NORM_NONE, is_gpt = n->family == &model_gpt;
    if (!is_gpt && n->family != &model_llama) {
        return "families other than gpt and llama";
    }
    if (is_gpt && not_shared_of_gpt(n, s)) {
        return not_shared_of_gpt(n, s);
    }
    if (n->experts) {
        return "experts";
    }
    if (model_eager_alone(n)) {
        return model_eager_alone(n);
    }
    if (n->tied && s->tensor_plan != PLAN_TENSOR_TORCHTITAN) {
        return "a head that is the embedding with a tensor_plan that cuts neither or one of them; "
               "set tied = no, or tensor_plan=torchtitan";
    }
    if (!is_gpt && (n->qkv != MODEL_QKV_APART || n->qkv_bias)) {
        return "q, k and v of one layer, or with biases; set qkv = apart and qkv_bias = no";
    }
    if (n->qk_norm == MODEL_QK_NORM_WIDTH || n->norm_at != MODEL_NORM_BEFORE) {
        return "norms over the whole of q and k, or norms after the layers; set qk_norm = head or "
               "none and norm_at = before";
    }
    if (has_norms && s->sequence_parallel == PLAN_NO) {
        return "norms of q and k with sequence_parallel=no; set sequence_parallel=yes";
    }
    if (has_norms && (s->float8 != PLAN_FLOAT8_NONE || s->async_tensor == PLAN_YES ||
                      s->tensor_plan != PLAN_TENSOR_TORCHTITAN)) {
        return "norms of q and k with float8, async_tensor or another tensor_plan; set float8=no, "
               "async_tensor=no and tensor_plan=torchtitan";
    }
    if (n->loss == MODEL_LOSS_METERED || model_loss_is_chunked(n->loss)) {
        return "a metered or chunked loss; set loss = ops, fp32 or kernel";
    }
    return NULL;
}

/* What each rank has a part of. */
static bool ranks_divide_layers(const ModelNetwork *n, const PlanStrategy *s, GError **error) {
    const struct {
        const char *name;
        uint64_t number;
    } parts[] = {{"heads", n->heads},
                 {"kv_heads", model_network_kv_heads(n)},
                 {"ffn", n->ffn},
                 {"vocab", n->vocab},
                 {"seq", model_network_seq(n, s)},
                 {"seq", n->family == &model_gpt ? n->seq : s->tensor}}; /* its table's rows */
    for (unsigned i = 0; i < G_N_ELEMENTS(parts); i++) {
        if (parts[i].number % s->tensor) {
            g_set_error(error, PLAN_ERROR, PLAN_ERROR_VALUE,
                        "%s: tensor=%" G_GUINT64_FORMAT " does not divide %s (%" G_GUINT64_FORMAT
                        "); set a tensor that does",
                        n->name, s->tensor, parts[i].name, parts[i].number);
            return false;
        }
    }
    return true;
}

static bool layers_can_be_shared(const ModelNetwork *n, const PlanStrategy *s, GError **error) {
    const char *why = not_shared_with(n, s);
    return model_is_planned_with(n, "tensor", s->tensor, 1, why, error) &&
           ranks_divide_layers(n, s, error);
}

/* The product in float8 takes sides that 16 divides, of each rank's part. */
static bool parts_can_be_in_float8(const ModelNetwork *n, const PlanStrategy *s, GError **error) {
    uint64_t head_dim = n->head_dim ? n->head_dim : n->width / n->heads;
    const struct {
        const char *name;
        uint64_t side;
    } parts[] = {{"width", n->width},
                 {"a rank's part of q", n->heads * head_dim / s->tensor},
                 {"a rank's part of k", model_network_kv_heads(n) * head_dim / s->tensor},
                 {"a rank's part of ffn", n->ffn / s->tensor}};
    for (unsigned i = 0; i < G_N_ELEMENTS(parts); i++) {
        if (parts[i].side % 16) {
            g_set_error(error, PLAN_ERROR, PLAN_ERROR_VALUE,
                        "%s: float8 beside tensor multiplies sides that 16 divides, and %s is "
                        "%" G_GUINT64_FORMAT "; set another tensor, or float8 = none",
                        n->name, parts[i].name, parts[i].side);
            return false;
        }
    }
    return true;
}

/* The ring is recorded of a Llama; in fp32 attention's kernel pads what it keeps of each row. */
static bool sequences_can_be_shared(const ModelNetwork *n, const PlanStrategy *s, GError **error) {
    uint64_t seq = model_network_seq(n, s);
    const char *why = NULL;
    if (n->family != &model_llama) {
        why = "families other than llama";
    } else if (n->scores_in_memory) {
        why = "attention with its scores in memory; set attention = kernel";
    } else if (n->code != MODEL_CODE_OWN) {
        why = "transformers' modules; set code = own";
    } else if (n->window) {
        why = "a window of attention; set window = 0";
    } else if (model_eager_alone(n)) {
        why = model_eager_alone(n);
    } else if (n->qkv != MODEL_QKV_APART || n->rope == MODEL_ROPE_PARTIAL ||
               (s->kernels == PLAN_KERNELS_EAGER &&
                (n->kv_repeated || n->rope == MODEL_ROPE_COMPLEX))) {
        why = "q, k and v of one layer, k and v repeated, or another rotary embedding; set qkv = "
              "apart, kv = grouped and rope = real";
    } else if (n->qk_norm == MODEL_QK_NORM_WIDTH) {
        why = "norms over the whole of q and k; set qk_norm = head or none";
    } else if (n->qk_norm != MODEL_QK_NORM_NONE && s->kernels == PLAN_KERNELS_EAGER &&
               plan_strategy_param_dtype(s) == PLAN_FP32) {
        why = "norms of q and k in fp32 by eager kernels; set param_dtype=bf16";
    } else if (plan_strategy_param_dtype(s) == PLAN_FP32 &&
               (model_network_kv_heads(n) < n->heads || seq % (64 * s->context))) {
        why = "groups of heads in fp32, or a rank's part of a sequence that 64 does not divide; "
              "set param_dtype=bf16";
    }
    if (!model_is_planned_with(n, "context", s->context, 1, why, error)) {
        return false;
    }
    if (seq % (2 * s->context)) {
        g_set_error(error, PLAN_ERROR, PLAN_ERROR_VALUE,
                    "%s: a sequence of %" G_GUINT64_FORMAT " tokens is not cut into two parts for "
                    "each of context=%" G_GUINT64_FORMAT " ranks; set a seq or context that is",
                    n->name, seq, s->context);
        return false;
    }
    return true;
}

/* Stages are recorded of a plain Llama and of a GPT, as torchtitan makes them, which has no answer
 * either to a table that two of them would have (models/common/decoder.py, "Weight tying is not
 * supported with Pipeline Parallel"). */
static bool layers_can_be_cut(const ModelNetwork *n, const PlanStrategy *s, GError **error) {
    const char *why = NULL;
    if (n->family != &model_llama && n->family != &model_gpt) {
        why = "families other than gpt and llama";
    } else if (n->tied) {
        why = "a head that is the embedding, which would be on two stages; set tied = no";
    } else if (n->window) {
        why = "a window of attention; set window = 0";
    } else if (n->code != MODEL_CODE_OWN) {
        why = "transformers' modules; set code = own";
    } else if (n->embed_scale > 0 || n->logits_scale > 0 || n->local_rope_base > 0 ||
               n->rope == MODEL_ROPE_PARTIAL) {
        why = "multipliers of embeddings or logits, or another rotary embedding";
    } else if (n->loss != MODEL_LOSS_MODEL && n->loss != MODEL_LOSS_OPS &&
               n->loss != MODEL_LOSS_FP32 && n->loss != MODEL_LOSS_KERNEL) {
        why = "a metered or chunked loss; set loss = model, ops, fp32 or kernel";
    }
    return model_is_planned_with(n, "pipeline", s->pipeline, 1, why, error) &&
           model_stages_have_layers(n, s, error);
}

bool model_can_be_shared(const ModelNetwork *n, const PlanStrategy *s, GError **error) {
    return (s->context <= 1 || sequences_can_be_shared(n, s, error)) &&
           (s->pipeline <= 1 || layers_can_be_cut(n, s, error)) &&
           (s->expert <= 1 ||
            (experts_can_be_shared(n, s, error) && experts_have_rows(n, s, error))) &&
           (s->tensor <= 1 || layers_can_be_shared(n, s, error)) &&
           (s->tensor <= 1 || !s->float8 || parts_can_be_in_float8(n, s, error));
}
