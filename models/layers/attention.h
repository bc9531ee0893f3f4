/* models/layers/attention.h - attention, as one kernel or with its scores in memory.
 *
 * Inside models/ only. Queries, keys and values come as rows of tokens, all heads side by side.
 * Where their gradients lie decides which of them are copied on their way back, so much of
 * ModelAttention says how q, k and v were made.
 */
#pragma once

#include "models/layers/layers.h"

typedef struct {
    /* The shape. */
    uint64_t heads, kv_heads, head_dim;
    uint64_t keys;                         /* of a sequence; 0: as many as queries */
    uint64_t q_stride, k_stride, v_stride; /* elements from a token's row to the next one's */
    double scale;

    /* What a query sees. */
    bool causal;
    uint64_t window; /* causal: a token sees so many tokens, itself among them; 0: all */
    uint32_t mask;   /* the window as a value, for a kernel that knows none; PLAN_NONE */
    uint32_t bias;   /* a value [seq, seq, heads]; PLAN_NONE */
    uint32_t added;  /* of scores in memory: such a mask of numbers; 0 (an input): none */
    double alibi;    /* the first head's slope is 2^(-alibi / heads); 0: none (kernels/alibi.h) */

    /* How it is computed. */
    bool in_memory;    /* its scores are tensors, as in plain Python; else it is one kernel */
    bool wide_softmax; /* of scores in memory: softmax is in fp32, whatever the dtype */
    double cap;        /* likewise: cap * tanh(scores / cap) instead of them; 0: as they are */
    uint32_t
        sinks; /* likewise: a parameter [heads], a score more of each row; 0 (an input): none */
    uint32_t *weights; /* likewise: who called keeps what softmax made, and is told; NULL */
    bool groups_alone; /* the caller repeats k and v where they lie: what it calls for each head
                        * knows nothing of groups, on any kernel */
    bool ring;         /* ranks share the sequences: w->seq is a rank's part */

    /* How q, k and v were made. */
    bool joined_apart; /* q and k were joined of parts, head by head */
    bool k_inside;     /* k's gradient may lie in rows of tokens: it is copied once more anyhow */
    bool norms_read;   /* a norm's kernel reads the gradients of q and k as they come, and leaves
                           * rows */
    bool turned_together; /* the gradients of q and k come from a rotation that leaves them head by
                           * head */
    bool v_copied;        /* v's gradient comes head by head as well, through the copy to a cache */
} ModelAttention;

/* `which`, in all of these, is 'q', 'k' or 'v'. */

/* Rows of tokens seen head by head, right after the layer that makes them. */
uint32_t model_run_heads(const ModelWalk *w, const ModelAttention *a, uint32_t x, char which);
/* A linear layer of the network's width, and its result seen so. If the gradient can be seen as
 * rows but not as a matrix, the layer and its adapter copy it each. */
uint32_t model_run_heads_of(const ModelWalk *w, const ModelAttention *a, const ModelLayer *layer,
                            uint32_t x, uint64_t out, char which);
/* k or v with each head repeated for every query head of its group, in rows of tokens, if that is
 * done before attention (groups_alone). */
uint32_t model_repeat_before(const ModelWalk *w, const ModelAttention *a, uint32_t x, char which);
/* Whether repeating k and v leaves views: of a single head it does, for the kernel. */
bool model_shows_one_head(const ModelWalk *w, const ModelAttention *a);
/* Attention of q, k and v, each [rows, heads * head_dim], in the same rows. */
uint32_t model_run_attention(const ModelWalk *w, const ModelAttention *a, uint32_t q, uint32_t k,
                             uint32_t v);

/* Whether each layer that multiplies by the gradient makes a copy of it; whether it comes head by
 * head and is copied to rows of tokens; whether it is a sum over a group's query heads. */
bool model_each_layer_copies(const ModelWalk *w, const ModelAttention *a, char which);
bool model_gradient_is_apart(const ModelWalk *w, const ModelAttention *a, char which);
bool model_gradient_is_summed(const ModelWalk *w, const ModelAttention *a, char which);
