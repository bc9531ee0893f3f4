/* plan/graph/kinds.h - kinds of ops of a graph that are not one kernel of ops.def: they launch none
 * forward, or several.
 *
 * Each kind is described by what it makes, and after "back:" by what backward makes, where x is the
 * op's input, y its result and dy the gradient of y. A view shares the storage of x. Ranks that
 * share layers hold `rows` tokens of each sequence between the layers (x "cut"), and all ranks'
 * tokens inside them (x "whole").
 */
#pragma once

#include "plan/op/op.h"

typedef enum {
    /* Views: no kernel forward. */

    /* Views of some columns of x each; back: the dy of all, joined in rows (concat_columns). */
    PLAN_GRAPH_SPLIT = PLAN_N_OP_KINDS,
    PLAN_GRAPH_SLICE,    /* some columns of x; back: dy in a tensor of zeros like x */
    PLAN_GRAPH_REST,     /* what is behind x's last column, no elements; back: zeros like x */
    PLAN_GRAPH_HALF,     /* half of each row of x [rows, 2 * half]; back: as SLICE */
    PLAN_GRAPH_COLUMNS,  /* some columns of x, in rows of `total`; back: as SLICE, in such rows */
    PLAN_GRAPH_HEADS,    /* x as a matrix for each head; back: as PlanGraphHeads says */
    PLAN_GRAPH_REPEATED, /* x for each of several sequences; back: the sum of their dy */
    PLAN_GRAPH_SHOWN,    /* one head for each of several; back: the sum of their dy */
    PLAN_GRAPH_RESHAPED, /* x itself by another node (Tensor.reshape); back: dy */
    PLAN_GRAPH_DETACHED, /* x without a gradient (Tensor.detach); back: nothing */

    /* What the root returns: x itself, or a copy where its wrapper makes one (DDP); back: dy. */
    PLAN_GRAPH_RESULT,

    /* Layers that ranks share (autograd/shared/shared.c). The first three are views. */

    /* What was gathered already, for one more reader; back: dy reduced and scattered by itself. */
    PLAN_GRAPH_SHARED_AGAIN,
    PLAN_GRAPH_SHARED_TAKEN,   /* whole x, of which SHARED_OWN will take parts; back: dy gathered */
    PLAN_GRAPH_SHARED_READ,    /* whole x, which all ranks hold; back: dy summed over ranks */
    PLAN_GRAPH_SHARED_GATHER,  /* cut x made whole; back: dy reduced and scattered */
    PLAN_GRAPH_SHARED_SCATTER, /* each rank's whole x summed, and cut; back: dy gathered */
    PLAN_GRAPH_SHARED_SUM,     /* each rank's whole x summed; back: dy */
    PLAN_GRAPH_SHARED_OWN,     /* whole x cut; back: dy gathered and cut again, as by DTensor */
    PLAN_GRAPH_SHARED_WHOLE, /* each rank's columns side by side; back: this rank's columns of dy */
    /* Rows of a table of which each rank has some, and a mask of those that other ranks have; back:
     * dw of the whole table. */
    PLAN_GRAPH_SHARED_ROWS,
    PLAN_GRAPH_SHARED_GATHER_FLOAT8,  /* SHARED_GATHER of x cast to float8 (float8/shared.c) */
    PLAN_GRAPH_SHARED_SCATTER_FLOAT8, /* SHARED_SCATTER; back: dy is cast before it is gathered */
    /* Cross entropy of logits of which each rank has some columns: the mean, the logarithms of the
     * probabilities, and how many targets count. */
    PLAN_GRAPH_SHARED_LOSS,
    /* The same as a compiler has it: the mean, the logits' gradient but for dy, a mask of the
     * targets that count, and how many do. */
    PLAN_GRAPH_SHARED_COMPILED_LOSS,

    /* Linear layers that are casts, and products of what these make. */

    /* y [m, n], the weight's scale and its cast, and where ranks share the layer also its input's;
     * back: dx and dw (autograd/float8/float8.c). */
    PLAN_GRAPH_FLOAT8_LINEAR,
    /* y [m, n], the casts of input and weight, turned, and their scales; back: dx, dw and the
     * bias's gradient (autograd/float8/delayed.c). */
    PLAN_GRAPH_DELAYED_LINEAR,
    PLAN_GRAPH_FOUR_BIT_LINEAR, /* y [m, n]; back: dx (autograd/four-bit.c) */

    /* Sequences that ranks share (autograd/shared/ring.c). */

    /* Attention of a rank's queries to all ranks' keys and values: o, the logarithms of its sums,
     * and the random state of the last hop. */
    PLAN_GRAPH_RING_ATTENTION,
    PLAN_GRAPH_RING_ROWS, /* o in rows of tokens, which most ranks copy; back: dy */

    /* Experts that ranks share (autograd/shared/exchange.c). */

    /* Of the number of rows for each expert: how many each rank sends to the experts of this one.
     * The host reads them. */
    PLAN_GRAPH_EXCHANGE_SPLITS,
    PLAN_GRAPH_EXCHANGE_SEND,  /* rows to their experts' ranks, others' here; back: dy likewise */
    PLAN_GRAPH_EXCHANGE_AWAIT, /* no result: waits for what was sent last; back: nothing */
    /* Of rows in the order of ranks: how many each expert has, and the order in which each expert's
     * lie side by side. */
    PLAN_GRAPH_EXCHANGE_ORDER,

    /* Latent attention (autograd/latent.c). */

    /* Views of a row's first columns, and of the rest; back: the dy of both, joined in rows. */
    PLAN_GRAPH_LATENT_SPLIT,
    PLAN_GRAPH_LATENT_ROTATE, /* columns turned as complex numbers, in fp32; back: turned back */
    PLAN_GRAPH_LATENT_KEPT,   /* x itself, kept by a node that backward never comes to */

    PLAN_GRAPH_TRACED, /* as it was recorded (traced.h); its one dim is the record's number */
    PLAN_N_GRAPH_KINDS
} PlanGraphKind;

/* Where the gradient of HEADS lies, and what becomes of it. */
typedef enum {
    PLAN_HEADS_AS_THEY_ARE, /* it is used where it lies */
    PLAN_HEADS_COPIED,      /* it is copied */
    PLAN_HEADS_OF_RING,     /* it is copied as the ring puts it together (autograd/shared/ring.c) */
    PLAN_HEADS_APART        /* it comes head by head, and is copied to rows of all heads */
} PlanGraphHeads;

/* ---- dims ------------------------------------------------------------------------------------ */

/* Some kinds have the dims of an op in ops.def: SPLIT those of CONCAT_COLUMNS, SHOWN those of
 * SUM_HEADS, both losses those of CROSS_ENTROPY (of a rank's columns), EXCHANGE_SPLITS those of
 * SPLITS, FOUR_BIT_LINEAR those of LINEAR. */

/* HEADS has the first four of HEADS_COPY, and then a PlanGraphHeads. */
enum {
    PLAN_GRAPH_HEADS_MODE = 4
};

/* EXCHANGE_ORDER has those of SPLITS, and then how many rows there are. */
enum {
    PLAN_GRAPH_EXCHANGE_ORDER_N = 2
};

/* SLICE: rows of x, numbers in a row, and the column from which the slice begins. */
enum {
    PLAN_GRAPH_SLICE_ROWS,
    PLAN_GRAPH_SLICE_WIDTH,
    PLAN_GRAPH_SLICE_FROM
};

/* HALF: rows of x, half of the numbers in a row, and the column from which the half begins. */
enum {
    PLAN_GRAPH_HALF_ROWS,
    PLAN_GRAPH_HALF_HALF,
    PLAN_GRAPH_HALF_FROM
};

/* COLUMNS, as PlanGraphColumns has them (emit.h). */
enum {
    PLAN_GRAPH_COLUMNS_ROWS,
    PLAN_GRAPH_COLUMNS_COLS,
    PLAN_GRAPH_COLUMNS_FROM,
    PLAN_GRAPH_COLUMNS_TOTAL,
    PLAN_GRAPH_COLUMNS_DY_WIDTH,
    PLAN_GRAPH_COLUMNS_DY_FROM
};

/* REPEATED: how many sequences use x, and its elements. */
enum {
    PLAN_GRAPH_REPEATED_TIMES,
    PLAN_GRAPH_REPEATED_ELEMENTS
};

/* Kinds that move tokens between ranks. SHARED_GATHER_FLOAT8 has one more: 1 where the kernel of a
 * norm made x, and looks for its largest number as it does. */
enum {
    PLAN_GRAPH_TOKENS_BATCH,
    PLAN_GRAPH_TOKENS_ROWS, /* of each sequence, on a rank */
    PLAN_GRAPH_TOKENS_WIDTH,
    PLAN_GRAPH_GATHER_IS_NORMS
};

/* SHARED_ROWS: tokens, numbers in a row, and how many rows of the table a rank has. */
enum {
    PLAN_GRAPH_SHARED_ROWS_N,
    PLAN_GRAPH_SHARED_ROWS_WIDTH,
    PLAN_GRAPH_SHARED_ROWS_PART
};

/* FLOAT8_LINEAR: x [m, k] and a weight [n, k]. */
typedef struct {
    int64_t m, n, k;
    int64_t maker; /* the norm, SwiGLU or ring's rows from which x is made again; -1: x is kept */
    int64_t again; /* 1: the next layer in float8 takes x as well */
} PlanGraphFloat8Linear;

/* DELAYED_LINEAR: the same, with a bias or without; the how manieth such layer it is. */
typedef struct {
    int64_t m, n, k;
    int64_t layer;
} PlanGraphDelayedLinear;

/* RING_ATTENTION: seq is how many tokens of a sequence this rank has. */
typedef struct {
    int64_t batch, heads, kv_heads, seq, head_dim;
} PlanGraphRing;

/* LATENT_SPLIT: x [rows, a + b] becomes views of the first a columns and of the other b. The
 * gradient of the first lies in rows of dy_row numbers, that of the second in its own tensor. */
typedef struct {
    int64_t rows, a, b, dy_row;
} PlanGraphLatentSplit;

/* LATENT_ROTATE: x has a row of `row` numbers for each head of each token, of which `dim` numbers
 * from number `from` on are turned, by a table [seq, dim]. dy lies in rows of dy_row numbers, from
 * number dy_from on. */
typedef struct {
    int64_t tokens, heads, dim, seq, row, from, dy_row, dy_from;
} PlanGraphLatentRotation;
