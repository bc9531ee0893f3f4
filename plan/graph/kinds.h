/* plan/graph/kinds.h - what an op of a graph may be beside a kernel of ops.def: none, or several.
 *
 * Beside each stands what it makes forward, and behind the semicolon what backward, where dy is the
 * gradient that it is given. Ranks that share layers have `rows` tokens of each sequence between
 * the layers, and `ranks` times as many inside.
 */
#pragma once

#include "plan/op/op.h"

typedef enum {
    /* No kernel forward: views. */
    PLAN_GRAPH_SPLIT = PLAN_N_OP_KINDS, /* the columns of x into views; a concatenation */
    PLAN_GRAPH_SLICE,    /* some columns of x alone; a tensor of x's shape, zero elsewhere */
    PLAN_GRAPH_REST,     /* what is behind all of x's columns: nothing; x's shape, zero */
    PLAN_GRAPH_HALF,     /* the upper or lower half of each row of x [rows, 2 * half]; x's shape */
    PLAN_GRAPH_COLUMNS,  /* columns of rows of `total` numbers; such rows, zero elsewhere */
    PLAN_GRAPH_HEADS,    /* a matrix of each head; as PlanGraphHeads says */
    PLAN_GRAPH_REPEATED, /* a tensor for each of several sequences; the sum of their gradients */
    PLAN_GRAPH_SHOWN,    /* a head, seen once for each of several; the sum of their gradients */
    PLAN_GRAPH_DETACHED, /* the same elements, for ops that backward passes by; nothing */

    PLAN_GRAPH_RESULT, /* what the root gives: a copy, or in passes without one the same; dy as it
                        * comes */

    /* Layers that ranks share (autograd/shared/shared.c); first those without a kernel forward. */
    PLAN_GRAPH_SHARED_AGAIN, /* what was gathered already, by itself; by itself, as a gather */
    PLAN_GRAPH_SHARED_TAKEN, /* tokens of which each rank will take its own; all ranks' gradients */
    PLAN_GRAPH_SHARED_READ,  /* all tokens, as each rank has them; the sums of all gradients */
    PLAN_GRAPH_SHARED_GATHER,  /* all ranks' tokens; sums of all ranks' gradients of its own ones */
    PLAN_GRAPH_SHARED_SCATTER, /* sums of what all ranks have of its own tokens; all gradients */
    PLAN_GRAPH_SHARED_SUM,     /* the sums of what all ranks have of all tokens; dy as it comes */
    PLAN_GRAPH_SHARED_OWN, /* of all ranks' tokens its own; what makes a journey to all and back */
    PLAN_GRAPH_SHARED_WHOLE, /* of some columns on each rank all; its own columns of dy */
    PLAN_GRAPH_SHARED_ROWS,  /* a table's rows of tokens, of those that this rank has, and a mask of
                              * the tokens whose rows it has not; the gradient of the whole table */
    PLAN_GRAPH_SHARED_GATHER_FLOAT8,  /* these of tokens, or gradients, that are cast ... */
    PLAN_GRAPH_SHARED_SCATTER_FLOAT8, /* ... before they are gathered (autograd/float8/shared.c) */
    PLAN_GRAPH_SHARED_LOSS, /* of logits of which each rank has some columns: cross entropy's mean,
                             * the logarithms, and how many targets count */
    PLAN_GRAPH_SHARED_COMPILED_LOSS, /* the same of a compiler's one program: the mean, the logits'
                                      * gradient but for its factor, a mask of the targets that
                                      * count, and how many do */

    /* Linear layers that are casts and products of what they make. */
    PLAN_GRAPH_FLOAT8_LINEAR, /* y [m, n], what the weight was scaled by, and its cast; where ranks
                               * share it also its input's cast and scale; dx and dw
                               * (autograd/float8/float8.c) */
    PLAN_GRAPH_FOUR_BIT_LINEAR, /* y [m, n]; dx (autograd/four-bit.c) */

    /* Sequences that ranks share (autograd/shared/ring.c). */
    PLAN_GRAPH_RING_ATTENTION, /* of a rank's queries, to all ranks' keys and values: o, the
                                * logarithms of its sums, and the last turn's random state */
    PLAN_GRAPH_RING_ROWS,      /* that in rows of tokens: a copy on most ranks; dy as it comes */

    /* Experts that ranks share (autograd/shared/exchange.c). */
    PLAN_GRAPH_EXCHANGE_SPLITS, /* of rows by expert those that all send here; the host reads */
    PLAN_GRAPH_EXCHANGE_SEND,   /* rows for others: those of others; gradients likewise */
    PLAN_GRAPH_EXCHANGE_AWAIT,  /* what was sent last is waited for: nothing; nothing */
    PLAN_GRAPH_EXCHANGE_ORDER,  /* of rows by rank and expert: how many each expert has, and the
                                 * order in which each one's lie side by side */

    /* Latent attention (autograd/latent.c); but for the turn without a kernel forward. */
    PLAN_GRAPH_LATENT_SPLIT,  /* of rows the first columns, and those behind them; rows of both */
    PLAN_GRAPH_LATENT_ROTATE, /* columns of rows, turned as complex numbers in fp32; turned back */
    PLAN_GRAPH_LATENT_KEPT,   /* what a node keeps that backward never comes to, while that lives */

    PLAN_GRAPH_TRACED, /* as recorded (traced.h); its dim is the number of what it does */
    PLAN_N_GRAPH_KINDS
} PlanGraphKind;

typedef enum {
    PLAN_HEADS_AS_THEY_ARE, /* the gradient is used as it comes */
    PLAN_HEADS_COPIED,      /* it is copied */
    PLAN_HEADS_OF_RING,     /* it is copied where autograd/shared/ring.c puts it together */
    PLAN_HEADS_APART        /* it comes with its heads apart and is copied to where they are not */
} PlanGraphHeads;

/* ---- the dims of some ----------------------------------------------------------------------- */

/* Those of SPLIT are CONCAT_COLUMNS', those of SHOWN SUM_HEADS', and those of HEADS begin as
 * HEADS_COPY's; a PlanGraphHeads follows. */
enum {
    PLAN_GRAPH_HEADS_MODE = 4
};

/* Of SLICE: rows of `width` numbers of x, from one on. */
enum {
    PLAN_GRAPH_SLICE_ROWS,
    PLAN_GRAPH_SLICE_WIDTH,
    PLAN_GRAPH_SLICE_FROM
};

/* Of HALF: where it begins. */
enum {
    PLAN_GRAPH_HALF_ROWS,
    PLAN_GRAPH_HALF_HALF,
    PLAN_GRAPH_HALF_FROM
};

/* Of COLUMNS, as PlanGraphColumns has them. */
enum {
    PLAN_GRAPH_COLUMNS_ROWS,
    PLAN_GRAPH_COLUMNS_COLS,
    PLAN_GRAPH_COLUMNS_FROM,
    PLAN_GRAPH_COLUMNS_TOTAL,
    PLAN_GRAPH_COLUMNS_DY_WIDTH,
    PLAN_GRAPH_COLUMNS_DY_FROM
};

/* Of REPEATED: for how many sequences, and elements of one. */
enum {
    PLAN_GRAPH_REPEATED_TIMES,
    PLAN_GRAPH_REPEATED_ELEMENTS
};

/* Of what moves tokens between ranks. SHARED_GATHER_FLOAT8 also says whether a norm made them, and
 * looks for the largest number. */
enum {
    PLAN_GRAPH_TOKENS_BATCH,
    PLAN_GRAPH_TOKENS_ROWS, /* of each sequence, on a rank */
    PLAN_GRAPH_TOKENS_WIDTH,
    PLAN_GRAPH_GATHER_IS_NORMS
};

/* Of SHARED_ROWS: tokens, and rows that a rank has of the table. */
enum {
    PLAN_GRAPH_SHARED_ROWS_N,
    PLAN_GRAPH_SHARED_ROWS_WIDTH,
    PLAN_GRAPH_SHARED_ROWS_PART
};

/* Those of SHARED_LOSS and SHARED_COMPILED_LOSS are CROSS_ENTROPY's, of a rank's columns; those of
 * EXCHANGE_SPLITS SPLITS', with which EXCHANGE_ORDER's begin, before its rows; those of
 * FOUR_BIT_LINEAR are LINEAR's. */
enum {
    PLAN_GRAPH_EXCHANGE_ORDER_N = 2
};

/* Of FLOAT8_LINEAR: x [m, k] and a weight [n, k]. */
typedef struct {
    int64_t m, n, k;
    int64_t maker; /* norm, SwiGLU or a ring's rows, from which x is made again; -1: x is kept */
    int64_t again; /* 1: the next layer in float8 takes x, too */
} PlanGraphFloat8Linear;

/* Of RING_ATTENTION: seq is of this rank's part. */
typedef struct {
    int64_t batch, heads, kv_heads, seq, head_dim;
} PlanGraphRing;

/* Of LATENT_SPLIT: x [rows, a + b] is split into views of the first a columns and of the other b.
 * The gradient of the first view lies in rows of dy_row numbers, that of the second in a tensor of
 * its own. */
typedef struct {
    int64_t rows, a, b, dy_row;
} PlanGraphLatentSplit;

/* Of LATENT_TURN: of rows of `row` numbers, one for each head of each token, `dim` from `from` on,
 * by a table of turns [seq, dim]. Their gradient lies in rows of dy_row numbers from dy_from on. */
typedef struct {
    int64_t tokens, heads, dim, seq, row, from, dy_row, dy_from;
} PlanGraphLatentRotation;
