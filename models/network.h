/* models/network.h - a network: its data file and the forward graph its family emits.
 *
 * A data file has one section [network] with `family` and the family's keys; a user copies one and
 * edits it. To add a network: a file in models/networks/. To add a family: a file in
 * models/families/ with one emit function, and a row in the table of network.c.
 *
 * Owns: its strings. Threads: one makes it, any read it.
 */
#pragma once

#include "plan/build/build.h"
#include "plan/graph/graph.h"
#include "plan/strategy/strategy.h"

/* How the loss is made of the logits; a file has these names in small. */
typedef enum {
    MODEL_LOSS_MODEL,       /* in the network's dtype; one kernel where kernels are fused */
    MODEL_LOSS_OPS,         /* by PyTorch's ops, also where a network's kernels are fused */
    MODEL_LOSS_FP32_LOGITS, /* so, of logits that the network itself makes fp32 */
    MODEL_LOSS_FP32,        /* so, of a copy of the logits in fp32 (`logits.float()`, autocast) */
    MODEL_LOSS_METERED, /* by one kernel, and twice more by PyTorch's ops after backward: metrics */
    MODEL_LOSS_KERNEL,  /* compiled by itself, beside eager kernels too: one, where shared a few */
    MODEL_LOSS_CHUNKED, /* with the head, a chunk of rows at a time: layers/chunked-loss.c */
    MODEL_LOSS_LIGER,   /* so, by Liger's kernels */
    MODEL_LOSS_TORCHTITAN /* so, an eighth of each sequence at a time, by PyTorch's ops */
} ModelLoss;

static inline bool model_loss_is_chunked(ModelLoss loss) {
    return loss == MODEL_LOSS_CHUNKED || loss == MODEL_LOSS_LIGER || loss == MODEL_LOSS_TORCHTITAN;
}

/* Where the loss is made; a file has these words in small. */
typedef enum {
    MODEL_LOSS_IN_MODEL, /* by the network's own forward */
    MODEL_LOSS_IN_LOOP   /* by the training loop */
} ModelLossAt;

/* What of q and k is normalized before they are rotated; a file has these words in small. */
typedef enum {
    MODEL_QK_NORM_NONE,
    MODEL_QK_NORM_HEAD, /* each head by itself, by as many weights as a head has numbers: Qwen 3 */
    MODEL_QK_NORM_WIDTH /* all heads of a token as one row, by a weight for each number: OLMo 2 */
} ModelQkNorm;

/* What of each block's keys and values the network returns; a file says no, yes or copied. */
typedef enum {
    MODEL_CACHE_NONE,
    MODEL_CACHE_AS_MADE, /* transformers until 4.55 */
    MODEL_CACHE_COPIED   /* since 4.56 */
} ModelCache;

/* What makes q, k and v; a file has these words in small. */
typedef enum {
    MODEL_QKV_APART,  /* a layer for each */
    MODEL_QKV_JOINED, /* one for all, whose rows are split */
    MODEL_QKV_SLICED  /* one for all, whose rows are sliced three times: Phi-3 */
} ModelQkv;

/* How q and k are rotated; a file has these words in small. */
typedef enum {
    MODEL_ROPE_REAL,
    MODEL_ROPE_COMPLEX, /* by a product of complex numbers in fp32 */
    MODEL_ROPE_PARTIAL, /* as REAL, and joined with what of a head is not turned: nothing */
    MODEL_ROPE_PAIRS    /* as REAL, of neighbours in a head: transformers' GLM, Cohere, ERNIE */
} ModelRope;

/* Whose modules are walked; a file has these words in small. */
typedef enum {
    MODEL_CODE_OWN,         /* the family's */
    MODEL_CODE_TRANSFORMERS /* Hugging Face's names, order and habits: families/transformers.h */
} ModelCode;

/* Where a block's norms stand; a file has these words in small. */
typedef enum {
    MODEL_NORM_BEFORE, /* attention and the hidden layer */
    MODEL_NORM_AFTER,  /* them: OLMo 2 */
    MODEL_NORM_BOTH,   /* four a block: Gemma 3 */
    MODEL_NORM_ONCE    /* one, whose result both read, side by side: Cohere */
} ModelNormAt;

/* How attention is told of a window; a file has these words in small. */
typedef enum {
    MODEL_WINDOW_BY_MASK,  /* as PyTorch's scaled_dot_product_attention needs it */
    MODEL_WINDOW_BY_KERNEL /* FlashAttention-2, called by its own name */
} ModelWindowBy;

/* What opens a gated hidden layer; a file has these words in small. */
typedef enum {
    MODEL_GATE_SILU,
    MODEL_GATE_GELU_TANH,
    MODEL_GATE_GELU_ERF,
    MODEL_GATE_NONE /* there is none: the hidden layer is the square of a ReLU */
} ModelGate;

/* GELU's form; a file has these words in small. */
typedef enum {
    MODEL_GELU_TANH,
    MODEL_GELU_ERF,
    MODEL_GELU_OPS /* tanh's, by PyTorch's ops where kernels are eager: transformers' gelu_new */
} ModelGelu;

typedef struct ModelFamily ModelFamily;
typedef struct ModelTraced ModelTraced;

typedef struct {
    char *name;
    char *text;          /* of its file */
    char *dropouts;      /* of its config.json, in words, none of which is planned; NULL: none */
    char *quantized;     /* likewise: how its weights are stored there */
    bool from_config;    /* its text was a config.json */
    bool ends_at_window; /* likewise: longer sequences would need another mask */
    const ModelFamily *family;
    ModelTraced *traced; /* traced/; NULL: its family makes it of the keys below */
    ModelCode code;      /* llama */
    /* Shape; what a family does not know stays 0. */
    uint64_t layers, width, heads, kv_heads, head_dim, vocab, seq, ffn;
    uint64_t experts, experts_per_token; /* llama: instead of each block's hidden layer; 0: none */
    uint64_t expert_ffn, shared_ffn;     /* of each, and of one that every token goes to; 0: none */
    bool keeps_scores;                   /* a token's scores are not divided by their sum */
    bool routes_in_turn;                 /* round-robin to experts, whatever the scores */
    bool scores_apart;                   /* each is a sigmoid; else all are a softmax */
    bool route_bias;        /* numbers that balance are added where experts are chosen */
    double route_scale;     /* what a token's scores are multiplied by; 0: nothing */
    uint64_t expert_groups; /* a token goes to groups_per_token of them; 0: no groups */
    uint64_t groups_per_token;
    uint64_t dense_layers; /* the first so many blocks have a hidden layer of ffn all the same */
    /* llama: latent attention's short rows and parts of heads (families/latent.h); q_lora_rank 0: q
     * comes straight, kv_lora_rank 0: there is none such. */
    uint64_t q_lora_rank, kv_lora_rank, qk_nope_head_dim, qk_rope_head_dim, v_head_dim;
    double rope_base;
    double norm_eps;          /* llama: added to the mean of squares that RMSNorm divides by */
    double rotary_share;      /* phi, neox, llama: share of a head's numbers that are rotated */
    bool sequential;          /* neox: the hidden layer stands behind attention */
    ModelRope rope;           /* llama */
    const char *rope_scaling; /* llama: how angles are stretched, which no run does; NULL: not */
    double dropout;           /* gpt, t5: share of elements dropped wherever they drop any */
    ModelLoss loss;
    ModelLossAt loss_at;
    PlanResultsHeld logits_held; /* and what else is returned beside the loss */
    bool loss_in_place;          /* one kernel's, which writes the gradient over what it is given */
    bool logits_shifted;         /* the loss is of a copy without each sequence's last token's */
    bool tied;
    ModelGelu gelu;      /* gpt, and t5's gate */
    bool no_bias;        /* gpt, mpt: no layer has one */
    bool alibi;          /* gpt, mpt: slopes on attention's scores instead of learned positions */
    bool mask_buffers;   /* gpt: each block holds a causal mask [seq, seq], as minGPT's do */
    bool qkv_bias;       /* llama: q, k and v have one, as Qwen 2's do */
    ModelQkv qkv;        /* llama */
    ModelCache cache;    /* llama: keys and values of each block are returned beside the logits */
    bool kv_repeated;    /* llama: k and v are repeated for each query head of a group */
    ModelQkNorm qk_norm; /* llama */
    ModelNormAt norm_at; /* llama */
    ModelGate gate;      /* llama */
    bool norms_from_one; /* llama: RMSNorm multiplies by 1 + weight */
    bool norms_bare;     /* llama: its norms are LayerNorms that multiply by nothing: OLMo */
    bool norms_centred;  /* llama: a LayerNorm of fp32, written out: Cohere */
    bool norms_widened;  /* llama: RMSNorm multiplies in fp32 by a copy of its weights: Helium */
    bool gate_up_joined; /* llama: one layer for the hidden layer's gate and its other half */
    /* llama: numbers that multiply; 0: none does, and attention's own scale for its scores. */
    double embed_scale, attention_scale, residual_scale, logits_scale;
    double attention_cap, logits_cap; /* llama: no score or logit is beyond it; 0: as they are */
    bool sinks; /* llama: a learned score more in each row of scores, and all else of a gpt-oss */
    /* llama: every Nth block looks back all the way; the others rotate by local_rope_base. 0: there
     * are no such others. */
    uint64_t global_every;
    bool global_first; /* the first of so many does, and not the last */
    double local_rope_base;
    /* llama: how many tokens a token sees, in those others or in all blocks; 0: all before it. */
    uint64_t window;
    ModelWindowBy window_by;
    uint64_t no_rope_every; /* llama: every N-th block has no rotary embedding; 0: all have one */
    uint64_t target_seq;    /* t5: tokens of the decoder's sequences; 0: as many as the encoder's */
    bool gated;             /* t5: the block's hidden layer is a gated GELU instead of a ReLU */
    bool scores_in_memory;  /* attention in plain tensors instead of one kernel */
    bool wide_softmax;      /* llama, t5: their softmax is in fp32, as transformers writes it */
} ModelNetwork;

ModelNetwork *model_network_read(const char *text, gsize length, const char *file_name,
                                 GError **error);
/* Also takes a Hugging Face config.json. */
ModelNetwork *model_network_read_file(const char *path, GError **error);
/* The same with keys of its own, "key=value" each, as if its file had them; NULL: none. Its name
 * and text say so. */
ModelNetwork *model_network_read_file_with(const char *path, const char *const *changes,
                                           GError **error);
void model_network_free(ModelNetwork *network);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ModelNetwork, model_network_free)

/* One pass over `batch` sequences of `seq` tokens (0: the network's own), computed in dtype. */
typedef struct {
    uint64_t batch, seq;
    uint64_t document; /* tokens of a document, of which a sequence is packed; 0: it is one */
    PlanDtype dtype, made_in; /* what is computed in, and made in */
    PlanGraphKernels kernels; /* in_parts follows from the network */
    PlanGraphAutocast autocast;
    PlanGraphUnits units;
    bool copies_results; /* of the root */
    PlanFloat8 float8;
    PlanGraphShared shared; /* of a network that knows how */
    PlanGraphPipeline pipeline;
    PlanGraphTrained trained;
    PlanPytorch pytorch;
    bool evaluates;    /* nothing is dropped at random */
    bool holds_logits; /* the loop does, until the next pass has given it others */
} ModelPass;

/* Its forward graph. */
PlanGraph *model_network_emit(const ModelNetwork *network, const ModelPass *pass, GError **error);
/* The same of the pass that a strategy asks for. */
PlanGraph *model_network_emit_for(const ModelNetwork *network, const PlanStrategy *strategy,
                                  GError **error);
/* Its plan under a settled strategy. */
Plan *model_network_plan(const ModelNetwork *network, const PlanStrategy *strategy, PlanForm form,
                         GError **error);

static inline uint64_t model_network_kv_heads(const ModelNetwork *network) {
    return network->kv_heads ? network->kv_heads : network->heads;
}

/* Tokens of a sequence: the strategy's, or else the network's own. */
static inline uint64_t model_network_seq(const ModelNetwork *network,
                                         const PlanStrategy *strategy) {
    return strategy->seq ? strategy->seq : network->seq;
}

/* How many of a head's numbers are turned, as transformers works it out. */
uint64_t model_rotary_part(const ModelNetwork *network, uint64_t head_dim);

/* What each family offers; rows of the family table in network.c. */
struct ModelFamily {
    const char *name;
    const char *keys; /* required keys, then after '|' optional ones */
    void (*emit)(const ModelNetwork *network, uint64_t batch, uint64_t seq, PlanGraph *graph);
};

bool model_family_has_key(const ModelFamily *family, const char *key);

extern const ModelFamily model_gpt, model_llama, model_mlp, model_mpt, model_neox, model_opt,
    model_phi, model_starcoder2, model_t5;
