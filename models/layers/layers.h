/* models/layers/layers.h - the layers that families are made of: declared once, then walked.
 *
 * Inside models/ only. model_linear() and its like declare a module and its parameters. Each
 * model_run_ function walks a layer's forward as PyTorch calls it: the module is entered, its ops
 * are called, the module is left; it returns the value that the layer makes. attention.h and
 * rotary.h have what happens between queries, keys and values.
 */
#pragma once

#include "models/network.h"
#include "plan/graph/emit.h"

/* A walk through a network, and what its layers have in common. */
typedef struct {
    PlanGraph *graph;
    uint64_t batch, seq;
    uint64_t rows; /* tokens of a pass */
    uint64_t width;
    double dropout;      /* the share of elements that is dropped; 0: none */
    bool no_bias;        /* no layer has a bias */
    bool norms_from_one; /* an RMSNorm multiplies by 1 + weight */
    bool norms_centred;  /* a LayerNorm of a copy in fp32 stands for it, written out */
    bool norms_widened;  /* likewise, by a copy of its weights in fp32 */
    bool norms_bare;     /* a LayerNorm of a copy in fp32 stands for it, without weights */
    bool norms_wide;     /* one that is written out is scaled in fp32, and then rounded */

    /* The loss. */
    ModelLoss loss;
    ModelLossAt loss_at;
    PlanResultsHeld logits_held;
    bool logits_shifted; /* a copy of the logits has no row for each sequence's last token */
    bool loss_in_place;  /* a kernel writes the logits' gradient over them */
} ModelWalk;

ModelWalk model_walk(const ModelNetwork *network, uint64_t batch, uint64_t seq, PlanGraph *graph);
/* The same along sequences of another length. */
ModelWalk model_walk_along(const ModelWalk *w, uint64_t seq);

/* ---- declaring ------------------------------------------------------------------------------- */

/* A LoRA adapter beside a linear layer (lora.h): y + B(A(dropout(x))). */
typedef struct {
    uint32_t module, weight;
} ModelProduct;
typedef struct {
    uint64_t rank;    /* 0: there is no adapter */
    uint64_t out, in; /* of the layer beside it */
    uint64_t parts;   /* what the layer gives is so many matrices, one behind the other; 0: one */
    uint32_t module;  /* that holds the layer and both products */
    uint32_t dropout; /* a module; PLAN_NONE: there is none */
    ModelProduct a, b;
} ModelAdapter;

static const double MODEL_INIT_STD = 0.02; /* of weights; GPT-2's: Radford et al. 2019 */

/* A module with a weight, and with a bias or PLAN_NONE. module PLAN_NONE: a function that runs
 * within the module that calls it. */
typedef struct {
    uint32_t module, weight, bias;
    ModelAdapter adapter;
} ModelLayer;

ModelLayer model_linear(const ModelWalk *w, uint32_t parent, const char *name, uint64_t out,
                        uint64_t in, bool has_bias);
/* The head: of the weight of `tied`, where there is one, else a layer of its own. */
ModelLayer model_head(const ModelWalk *w, uint32_t parent, const char *name, uint64_t vocab,
                      bool has_bias, const ModelLayer *tied);
ModelLayer model_layernorm(const ModelWalk *w, uint32_t parent, const char *name);
/* A norm of rows as wide as the network; or of another width. */
ModelLayer model_rmsnorm(const ModelWalk *w, uint32_t parent, const char *name);
ModelLayer model_rmsnorm_of(const ModelWalk *w, uint32_t parent, const char *name, uint64_t width);
/* The module of a dropout; PLAN_NONE without dropout, for then there is no such module. */
uint32_t model_dropout(const ModelWalk *w, uint32_t parent, const char *name);
ModelLayer model_embedding(const ModelWalk *w, uint32_t parent, const char *name, uint64_t rows,
                           uint64_t width);

/* ---- what is compiled ------------------------------------------------------------------------ */

/* What is walked between these two is a block, which torch.compile turns into kernels of its own if
 * the strategy says so. */
void model_begin_block(const ModelWalk *w);
void model_end_block(const ModelWalk *w);
/* Likewise a part of a block, if parts are compiled apart. */
void model_begin_part(const ModelWalk *w);
void model_end_part(const ModelWalk *w);

/* ---- layers ---------------------------------------------------------------------------------- */

/* A linear layer, with its adapter. */
uint32_t model_run_linear(const ModelWalk *w, const ModelLayer *layer, uint32_t x, uint64_t out,
                          uint64_t in);
/* The same, its result laid out as `parts` matrices, one behind the other. */
uint32_t model_run_linear_parts(const ModelWalk *w, const ModelLayer *layer, uint32_t x,
                                uint64_t out, uint64_t in, uint64_t parts);
/* The op alone, of a weight and a bias (PLAN_NONE); parts 0: its result lies as it is. */
uint32_t model_linear_op(const ModelWalk *w, uint32_t weight, uint32_t bias, PlanDtype dtype,
                         uint32_t x, uint64_t out, uint64_t in, uint64_t parts);
/* Fused kernels: a linear layer that ends with GELU. */
uint32_t model_run_linear_gelu(const ModelWalk *w, const ModelLayer *layer, uint32_t x,
                               uint64_t out, uint64_t in, bool erf);
uint32_t model_run_layernorm(const ModelWalk *w, const ModelLayer *layer, uint32_t x);
uint32_t model_run_rmsnorm(const ModelWalk *w, const ModelLayer *layer, uint32_t x, double eps);
uint32_t model_run_rmsnorm_of(const ModelWalk *w, const ModelLayer *layer, uint32_t x,
                              uint64_t rows, uint64_t width, double eps);
/* The norm of a + r, by one kernel if kernels are fused; *ret_sum is a + r. eps: RMSNorm's; 0: it
 * is a LayerNorm. */
uint32_t model_run_add_norm(const ModelWalk *w, const ModelLayer *layer, uint32_t a, uint32_t r,
                            double eps, uint32_t *ret_sum);

uint32_t model_run_embedding(const ModelWalk *w, const ModelLayer *layer, uint32_t index,
                             uint64_t n, uint64_t vocab);
/* The op alone. */
uint32_t model_embedding_op(const ModelWalk *w, const ModelLayer *layer, uint32_t index, uint64_t n,
                            uint64_t vocab);
/* Rows of a table for each token of so many sequences; where ranks share layers, this rank's part
 * of these. rows: how many of the table's a rank has. */
uint32_t model_run_table(const ModelWalk *w, const ModelLayer *table, uint32_t index,
                         uint64_t batch, uint64_t rows);
/* The tables of tokens and of their learned positions, of `vocab` and `most` rows on a rank. */
typedef struct {
    const ModelLayer *tokens, *positions;
    uint64_t vocab, most;
    bool tokens_first; /* tokens are looked up before the positions are made */
} ModelEmbeddings;
/* The sum of both; *ret_positions is the indices of the positions. */
uint32_t model_run_embeddings(const ModelWalk *w, const ModelEmbeddings *tables, uint32_t tokens,
                              uint32_t *ret_positions);

/* Dropout by the network's share, or by another; without dropout x itself. module PLAN_NONE: a call
 * within the current module. */
uint32_t model_run_dropout(const ModelWalk *w, uint32_t module, uint32_t x, uint64_t n);
uint32_t model_run_dropout_of(const ModelWalk *w, double share, uint32_t module, uint32_t x,
                              uint64_t n);
/* Each place draws from a stream of its own: its number among the dropouts of the network and its
 * adapters, which nothing else in a strategy changes. */
int64_t model_dropouts_so_far(const PlanGraph *graph);

/* ---- number by number ------------------------------------------------------------------------ */

/* a + b, where b may have fewer elements, which are then repeated. */
uint32_t model_run_add(const ModelWalk *w, uint32_t a, uint32_t b, uint64_t elements_b);
/* x + term. x is a variable of the caller's and term is none, so term is freed first. */
uint32_t model_run_residual(const ModelWalk *w, uint32_t x, uint32_t term);
/* What an op makes of one tensor of n elements (b PLAN_NONE), or of two. */
uint32_t model_run_elementwise(const ModelWalk *w, PlanOpKind kind, uint32_t a, uint32_t b,
                               uint64_t n);
/* What an op makes of a tensor of n elements and a number. */
uint32_t model_run_number(const ModelWalk *w, PlanOpKind kind, uint32_t x, uint64_t n,
                          double number);
/* cap * tanh(x / cap), each by the name of the one before; cap 0: x. */
uint32_t model_run_capped(const ModelWalk *w, uint32_t x, uint64_t n, double cap);
uint32_t model_run_gelu(const ModelWalk *w, ModelGelu gelu, uint32_t x, uint64_t n);
/* x in fp32, or in the dtype of another value: a copy, or x itself if it has that dtype. */
uint32_t model_run_widen(const ModelWalk *w, uint32_t x);
uint32_t model_run_like(const ModelWalk *w, uint32_t x, uint32_t other);

/* ---- from block to block --------------------------------------------------------------------- */

/* What blocks hand on: a sum `a` (r PLAN_NONE), or two terms of it, which the next norm adds. */
typedef struct {
    uint32_t a, r;
} ModelStream;

enum {
    MODEL_MOST_OTHERS = 4
};
/* Enters a block's module with the stream, and with what else the block is given. */
void model_enter_block(const ModelWalk *w, uint32_t module, ModelStream stream,
                       const uint32_t *others, unsigned n_others);
/* Leaves it with x + term. */
ModelStream model_leave_block(const ModelWalk *w, uint32_t x, uint32_t term);
/* The norm of the stream; *ret_sum is what it adds up to. eps as in model_run_add_norm(). */
uint32_t model_run_stream_norm(const ModelWalk *w, const ModelLayer *layer, ModelStream stream,
                               double eps, uint32_t *ret_sum);
/* The same of the norm after the blocks, which may be compiled where the strategy says so. */
uint32_t model_run_last_norm(const ModelWalk *w, const ModelLayer *norm, ModelStream stream,
                             double eps, uint32_t *ret_sum);

/* ---- the root ------------------------------------------------------------------------------- */

typedef struct {
    uint32_t tokens, targets;
} ModelBatch;
/* The batch, and the call of the root: of tokens and targets; or, where stages share the layers, of
 * what this one is given. Returns that, or the tokens. */
uint32_t model_enter_root(const ModelWalk *w, uint32_t root, uint64_t vocab, ModelBatch *ret_batch);
/* The end of a stage behind which others come; that of the last one is model_end(). */
void model_leave_stage(const ModelWalk *w, ModelStream stream);

/* ---- head and loss --------------------------------------------------------------------------- */

typedef struct {
    const ModelLayer *norm, *product;
    double eps;
    uint64_t vocab;
} ModelHead;
/* The norm after the blocks and the logits; if the loss is chunked, the loss. */
uint32_t model_run_head(const ModelWalk *w, const ModelHead *head, ModelStream stream,
                        uint32_t targets);
/* The logits as the network returns them, which may be a copy in fp32. model_end() asks for them
 * too; logits that are wide already are returned as they are. */
uint32_t model_run_given_logits(const ModelWalk *w, uint32_t logits);
/* The same, and the last sum of the blocks is freed after them. */
uint32_t model_run_logits_behind(const ModelWalk *w, uint32_t logits, ModelStream stream);
/* What the loss that has just been made was given is freed after what it made. */
void model_goes_behind_loss(const ModelWalk *w, uint32_t value);
/* The loss of so many rows of logits: by PyTorch's ops, or by a kernel that writes the gradient
 * over them. */
uint32_t model_run_loss_of(const ModelWalk *w, uint32_t logits, uint32_t targets, uint64_t rows,
                           uint64_t vocab);
/* The same of a copy of the logits without each sequence's last token. */
uint32_t model_run_loss_of_shifted(const ModelWalk *w, uint32_t logits, uint32_t targets,
                                   uint64_t vocab);
/* After the root's forward: a variable of the training loop holds the logits, if one does. */
void model_hold_logits(const ModelWalk *w, uint32_t logits);
/* Ends every walk: works out the loss of what the head made, leaves the root, walks what is metered
 * and finishes the graph. */
void model_end(const ModelWalk *w, uint32_t root, uint32_t logits, uint32_t targets,
               uint64_t vocab);
