/* models/layers/layers.h - the layers that families are made of: declared once, then walked.
 *
 * Each run_ function walks a layer's forward as PyTorch calls it: module entered, ops, module left.
 * Inside models/ only.
 */
#pragma once

#include "models/network.h"
#include "plan/graph/emit.h"

typedef struct {
    PlanGraph *graph;
    uint64_t batch, seq, rows; /* rows: tokens of a pass */
    uint64_t width;
    double dropout; /* share of elements dropped; 0: none */
    ModelLoss loss;
    ModelLossAt loss_at;
    PlanResultsHeld logits_held;
    bool logits_shifted, loss_in_place;
    bool no_bias;        /* no layer has one */
    bool norms_from_one; /* an RMSNorm multiplies by 1 + weight */
} ModelWalk;

ModelWalk model_walk(const ModelNetwork *network, uint64_t batch, uint64_t seq, PlanGraph *graph);

/* Of a LoRA adapter (lora.h); rank 0: there is none. */
typedef struct {
    uint32_t module, weight;
} ModelProduct;
typedef struct {
    uint64_t rank;
    uint64_t out, in; /* of the layer */
    uint32_t module;  /* that holds the layer and the products */
    uint32_t dropout; /* before A; PLAN_NONE: there is none */
    ModelProduct a, b;
} ModelAdapter;

/* A module with a weight and perhaps a bias (PLAN_NONE); module PLAN_NONE: a function of the module
 * it is called in. */
typedef struct {
    uint32_t module, weight, bias;
    ModelAdapter adapter;
} ModelLayer;

ModelLayer model_linear(const ModelWalk *w, uint32_t parent, const char *name, uint64_t out,
                        uint64_t in, bool has_bias);
ModelLayer model_layernorm(const ModelWalk *w, uint32_t parent, const char *name);
ModelLayer model_rmsnorm(const ModelWalk *w, uint32_t parent, const char *name);
ModelLayer model_rmsnorm_of(const ModelWalk *w, uint32_t parent, const char *name, uint64_t width);
/* Where dropout happens: PLAN_NONE without it, for then there is no such module. */
uint32_t model_dropout(const ModelWalk *w, uint32_t parent, const char *name);
ModelLayer model_embedding(const ModelWalk *w, uint32_t parent, const char *name, uint64_t rows,
                           uint64_t width);

/* What is walked between the two is a block, which torch.compile makes into kernels of its own
 * where it is asked to. */
void model_begin_block(const ModelWalk *w);
void model_end_block(const ModelWalk *w);
/* And, where it is asked for parts of blocks, what is walked between these two. */
void model_begin_part(const ModelWalk *w);
void model_end_part(const ModelWalk *w);

uint32_t model_run_linear(const ModelWalk *w, const ModelLayer *layer, uint32_t x, uint64_t out,
                          uint64_t in);
/* The same, its result laid out as `parts` matrices one behind the other. */
uint32_t model_run_linear_parts(const ModelWalk *w, const ModelLayer *layer, uint32_t x,
                                uint64_t out, uint64_t in, uint64_t parts);
uint32_t model_run_layernorm(const ModelWalk *w, const ModelLayer *layer, uint32_t x);
/* Of rows as wide as the network, or (_of) of so many of another width. */
uint32_t model_run_rmsnorm(const ModelWalk *w, const ModelLayer *layer, uint32_t x, double eps);
uint32_t model_run_rmsnorm_of(const ModelWalk *w, const ModelLayer *layer, uint32_t x,
                              uint64_t rows, uint64_t width, double eps);
uint32_t model_run_embedding(const ModelWalk *w, const ModelLayer *layer, uint32_t index,
                             uint64_t n, uint64_t vocab);
/* The tables of tokens and of their learned positions, of `vocab` and `most` rows. */
typedef struct {
    const ModelLayer *tokens, *positions;
    uint64_t vocab, most;
    bool tokens_first; /* are looked up before the positions are made */
} ModelEmbeddings;
/* Of both; returns the positions too. */
uint32_t model_run_embeddings(const ModelWalk *w, const ModelEmbeddings *tables, uint32_t tokens,
                              uint32_t *ret_positions);
uint32_t model_run_add(const ModelWalk *w, uint32_t a, uint32_t b, uint64_t elements_b);
/* x + term, where x is a variable and term is none: it goes first. */
uint32_t model_run_residual(const ModelWalk *w, uint32_t x, uint32_t term);
/* An op that makes one tensor of n elements from one or two others of as many. */
uint32_t model_run_elementwise(const ModelWalk *w, PlanOpKind kind, uint32_t a, uint32_t b,
                               uint64_t n);
/* The same of one other and a number. */
uint32_t model_run_number(const ModelWalk *w, PlanOpKind kind, uint32_t x, uint64_t n,
                          double number);
uint32_t model_run_gelu(const ModelWalk *w, ModelGelu gelu, uint32_t x, uint64_t n);
/* What goes from block to block: a sum, or two terms of it that the next norm adds (r PLAN_NONE:
 * there is one term). */
typedef struct {
    uint32_t a, r;
} ModelStream;

/* A block is entered with it, and with what else it is given, and has left it. */
enum {
    MODEL_MOST_OTHERS = 4
};
void model_enter_block(const ModelWalk *w, uint32_t module, ModelStream stream,
                       const uint32_t *others, unsigned n_others);
ModelStream model_leave_block(const ModelWalk *w, uint32_t x, uint32_t term);
/* Its norm, by one kernel with its sum where that is not made yet; eps of RMSNorm, or 0. */
uint32_t model_run_stream_norm(const ModelWalk *w, const ModelLayer *layer, ModelStream stream,
                               double eps, uint32_t *ret_sum);
/* Behind the blocks: their norm, which may be compiled where they are, and (_head) the logits; or,
 * with loss = chunked, the loss. */
uint32_t model_run_last_norm(const ModelWalk *w, const ModelLayer *norm, ModelStream stream,
                             double eps, uint32_t *ret_sum);
typedef struct {
    const ModelLayer *norm, *product;
    double eps;
    uint64_t vocab;
} ModelHead;
uint32_t model_run_head(const ModelWalk *w, const ModelHead *head, ModelStream stream,
                        uint32_t targets);
/* Fused kernels: the norm of a + r, and in *ret_sum the sum; gate and up to the hidden layer; a
 * product with GELU at its end. */
uint32_t model_run_add_norm(const ModelWalk *w, const ModelLayer *layer, uint32_t a, uint32_t r,
                            double eps, uint32_t *ret_sum);
uint32_t model_run_linear_gelu(const ModelWalk *w, const ModelLayer *layer, uint32_t x,
                               uint64_t out, uint64_t in, bool erf);
/* x itself without dropout; module PLAN_NONE: a call inside the current module. */
uint32_t model_run_dropout(const ModelWalk *w, uint32_t module, uint32_t x, uint64_t n);
/* Of another share than the network's. */
uint32_t model_run_dropout_of(const ModelWalk *w, double share, uint32_t module, uint32_t x,
                              uint64_t n);
/* x in fp32, and in the dtype of another: a copy, or x itself where it is that already. */
uint32_t model_run_widen(const ModelWalk *w, uint32_t x);
uint32_t model_run_like(const ModelWalk *w, uint32_t x, uint32_t other);
/* The logits as the network gives them, which may be a copy in fp32. model_end() asks for them,
 * too; of what is wide already they are the same. */
uint32_t model_run_given_logits(const ModelWalk *w, uint32_t logits);
/* The end of every walk: the loss of what the head gave, the root left, what is metered, the graph
 * finished. */
void model_end(const ModelWalk *w, uint32_t root, uint32_t logits, uint32_t targets,
               uint64_t vocab);
/* Of so many rows of logits: by PyTorch's ops, or a kernel that writes the gradient over them. */
uint32_t model_run_loss_of(const ModelWalk *w, uint32_t logits, uint32_t targets, uint64_t rows,
                           uint64_t vocab);
/* The same of a copy without each sequence's last token. */
uint32_t model_run_loss_of_shifted(const ModelWalk *w, uint32_t logits, uint32_t targets,
                                   uint64_t vocab);
/* Behind the root's forward: the loop's variable has them. */
void model_hold_logits(const ModelWalk *w, uint32_t logits);

/* ---- attention (attention.c) ---------------------------------------------------------------- */

typedef struct {
    uint64_t heads, kv_heads, head_dim;
    uint64_t q_stride, k_stride, v_stride; /* elements from a token's row to the next */
    double scale;
    double alibi; /* the first head's slope is 2^(-alibi / heads); 0: none (kernels/alibi.h) */
    bool causal;
    bool in_memory;    /* the scores are tensors, as in plain Python; otherwise one kernel */
    bool wide_softmax; /* of scores in memory: in fp32 whatever the dtype */
    bool k_inside; /* k's gradient may lie with its heads inside the rows of tokens: it is copied
                     * once more anyhow */
    bool groups_alone; /* k and v are repeated by whoever calls, where they are: what is called for
                        * heads knows nothing of groups, on any kernel */
    bool ring;         /* ranks share the sequences: w->seq is a rank's part */
    bool joined_apart; /* q and k were joined of parts, head by head */
    bool norms_read;   /* a norm's kernel reads their gradients as they come, leaves them in rows */
    bool turned_together; /* their gradients come from a rotation that leaves heads apart */
    bool v_copied;        /* v's gradient comes with heads apart, too: through a cache's copy */
    uint32_t bias;        /* [seq, seq, heads]; PLAN_NONE */
    uint64_t window;      /* of causal attention: a token sees so many, itself among them; 0: all */
    uint32_t mask;        /* that says so to a kernel that knows no window; PLAN_NONE */
} ModelAttention;

/* Rows of 'q', 'k' or 'v', seen head by head: right after the layer that makes them. */
uint32_t model_run_heads(const ModelWalk *w, const ModelAttention *a, uint32_t x, char which);
/* The result of a layer of the network's width, seen so: by the layer and its adapter each, where
 * the gradient can be seen as rows, but not as a matrix of them. */
uint32_t model_run_heads_of(const ModelWalk *w, const ModelAttention *a, const ModelLayer *layer,
                            uint32_t x, uint64_t out, char which);
bool model_each_layer_copies(const ModelWalk *w, const ModelAttention *a, char which);
bool model_gradient_is_apart(const ModelWalk *w, const ModelAttention *a, char which);
bool model_gradient_is_summed(const ModelWalk *w, const ModelAttention *a, char which);
/* Whether repeating k and v leaves views: of a single head it does, to the kernel. */
bool model_shows_one_head(const ModelWalk *w, const ModelAttention *a);
/* Each head of 'k' or 'v' for every query head of its group, in rows of tokens, where that is done
 * before attention (groups_alone). */
uint32_t model_repeat_before(const ModelWalk *w, const ModelAttention *a, uint32_t x, char which);
/* The rows of q, k and v, each [rows, heads * head_dim], give back the same of the output. */
uint32_t model_run_attention(const ModelWalk *w, const ModelAttention *a, uint32_t q, uint32_t k,
                             uint32_t v);

/* ---- rotary embedding (rotary.c) ------------------------------------------------------------ */

typedef struct {
    uint32_t cosines, sines; /* as model_cast_tables() left them */
    bool is_complex;         /* pairs are turned as complex numbers in fp32, of one table */
    bool ends_joined;        /* the rotated part is joined with an empty rest, which copies */
    uint64_t row;     /* elements from a token's heads to the next one's; 0: they are dense */
    uint64_t part;    /* only the first `part` numbers of a head are rotated; 0: all */
    bool is_together; /* by one function for q and k, each expression from left to right */
} ModelRotary;

/* The graph's tables of that number in the dtype of x, complex ones in fp32. */
void model_cast_tables(const ModelWalk *w, ModelRotary *rotary, unsigned tables, uint32_t x);
/* Rotates queries and keys by their positions; inputs and intermediates are freed in PyTorch's
 * order. */
void model_rotate(const ModelWalk *w, const ModelRotary *rotary, const ModelAttention *a,
                  uint32_t *q, uint32_t *k, uint32_t v);
