/* models/families/llama.h - a network of the Llama shape while it is walked: llama.c walks it,
 * llama-transformers.c by transformers' modules, llama-ends.c what is before and behind the blocks,
 * llama-block.c a block, llama-attention.c and llama-hidden.c its two halves. Inside these,
 * llama-names.c and latent.c only.
 */
#pragma once

#include "models/layers/experts.h"
#include "models/layers/rotary.h"
#include "models/layers/shared.h"

/* What modules are called. */
typedef struct {
    const char *embed, *attn, *q, *k, *v, *o, *qkv, *mlp, *gate, *up, *gate_up, *down, *head;
} ModelLlamaNames;

/* Of latent attention (latent.h): the short rows, and what of a head is turned or not. */
typedef struct {
    uint64_t q_rank, kv_rank; /* q_rank 0: q comes straight; kv_rank 0: there is none such */
    uint64_t nope, rope, v;
} ModelLatent;

typedef struct {
    ModelWalk walk;    /* inside of layers */
    ModelWalk between; /* the layers: this rank's part of the tokens */
    const ModelLlamaNames *names;
    const char
        *transformers;    /* the class prefix of transformers' modules; NULL: they are our own */
    uint32_t positions;   /* of transformers', which each block is given; PLAN_NONE */
    bool positions_first; /* before the rotary tables, which are given by name, too */
    uint64_t heads, kv_heads, head_dim, ffn, vocab; /* this rank's */
    uint64_t vocab_of_table;                        /* likewise, of the embedding */
    bool in_memory, wide_softmax, qkv_bias, kv_repeated, gate_up_joined;
    ModelCache cache;
    ModelNormAt norm_at;
    ModelGate gate;
    double norm_eps;
    double embed_scale, attention_scale, residual_scale, logits_scale; /* 0: none */
    double attention_cap, logits_cap;                                  /* likewise */
    bool has_sinks;                                                    /* it is a gpt-oss */
    uint32_t *weights; /* what a variable of the block at hand holds beside the stream: attention's
                        * weights, of scores in memory, or gpt-oss' experts' scores; PLAN_NONE */
    ModelQkv qkv;
    ModelQkNorm qk_norm;
    bool qk_norms_last; /* behind the layers of all three */
    ModelLatent latent;
    ModelExperts experts;  /* n 0: each block has one hidden layer */
    uint64_t dense_layers; /* the first N blocks have one hidden layer even with experts */
    ModelRotary rotary, local_rotary; /* of blocks that look back all the way, and of others */
    bool has_local_rotary;
    uint64_t window; /* of these others, where a sequence reaches it; 0: none */
    bool is_masked;  /* attention is told of it by a mask ... */
    uint32_t mask;   /* ... which is this, once it is made; PLAN_NONE */
    uint32_t causal; /* of scores in memory, transformers': that of blocks without; PLAN_NONE */
} ModelLlama;

typedef struct {
    bool turns;                      /* q and k by their places */
    bool is_local;                   /* not of those that look back all the way */
    uint32_t sinks;                  /* a parameter; 0 (an input): none */
    uint32_t module, attn, mlp, act; /* act PLAN_NONE: what opens the hidden layer is no module */
    ModelLayer after_1, after_2;     /* norms of their results, beside norms of what they get */
    ModelLayer norm_1, qkv, q, k, v, o, q_norm, k_norm, norm_2, gate_up, gate, up, down;
    ModelLayer q_a, kv_a, kv_norm, kv_b; /* latent attention's */
    ModelExpertLayer experts;
    bool has_experts;
} ModelLlamaBlock;

ModelLlamaBlock model_llama_declare_block(const ModelLlama *llama, uint32_t parent, uint64_t index);
ModelStream model_llama_run_block(const ModelLlama *llama, const ModelLlamaBlock *block,
                                  bool is_first, ModelStream stream);

/* ---- what walks of own modules and of transformers' share (llama-ends.c) --------------------- */

uint32_t model_llama_scale_embeddings(const ModelLlama *llama, uint32_t x);
/* So many blocks from that one on; to be freed. */
ModelLlamaBlock *model_llama_declare_blocks(const ModelLlama *llama, const ModelNetwork *network,
                                            uint32_t parent, uint64_t first, uint64_t n);
ModelLayer model_llama_declare_head(const ModelLlama *llama, const ModelNetwork *network,
                                    uint32_t root, const ModelLayer *embed);
void model_llama_make_mask(ModelLlama *llama);
uint32_t model_llama_scale_logits(const ModelLlama *llama, uint32_t logits);

/* ---- transformers' modules (llama-transformers.c) -------------------------------------------- */

void model_llama_walk_transformers(ModelLlama *llama, const ModelNetwork *network);

/* ---- names (llama-names.c) ------------------------------------------------------------------- */

/* A class by transformers' name, where its modules are walked, or by its own. Transfer full. */
char *model_llama_class(const ModelLlama *llama, const char *transformers_name,
                        const char *own_name);
/* A module of such a class. */
uint32_t model_llama_declare_module(const ModelLlama *llama, uint32_t parent, const char *name,
                                    const char *transformers_class, const char *own_class);
/* What transformers' class names begin with; NULL: the modules are our own. */
const char *model_llama_prefix(const ModelNetwork *network);
bool model_llama_names_positions_first(const ModelNetwork *network);
/* OLMo 2 or 3, which scale norms and rotate in fp32. */
bool model_llama_is_olmo(const ModelNetwork *network);
/* ERNIE 4.5, which turns pairs in fp32, by tables in fp32. */
bool model_llama_is_ernie(const ModelNetwork *network);

/* ---- halves of a block ---------------------------------------------------------------------- */

void model_llama_declare_attention(const ModelLlama *llama, ModelLlamaBlock *block);
uint32_t model_llama_run_attention(const ModelLlama *llama, const ModelLlamaBlock *block,
                                   uint32_t x);
void model_llama_declare_hidden_layer(const ModelLlama *llama, ModelLlamaBlock *block);
uint32_t model_llama_run_hidden_layer(const ModelLlama *llama, const ModelLlamaBlock *block,
                                      uint32_t x);

/* Width of a row of the one layer that makes q, k and v together. */
uint64_t model_llama_joined_width(const ModelLlama *llama);

/* What a block is given, and its attention: PLAN_NONE where it has no mask, or a kernel that knows
 * windows; the tables it turns by. */
uint32_t model_llama_mask_of(const ModelLlama *llama, const ModelLlamaBlock *block);
const ModelRotary *model_llama_rotary_of(const ModelLlama *llama, const ModelLlamaBlock *block);
/* Moves arguments that there are to the front; returns how many. */
static inline unsigned model_llama_keep_given(uint32_t *arguments, unsigned n) {
    unsigned n_given = 0;
    for (unsigned i = 0; i < n; i++) {
        if (arguments[i] != PLAN_NONE) {
            arguments[n_given++] = arguments[i];
        }
    }
    return n_given;
}
