/* plan/optimizer/dealt.h - matrices that ranks of the shard axis share, multiplied as PyTorch's
 * DTensors are. Inside plan/ only.
 *
 * A rank has rows or columns of a matrix, all of it, or a summand of it. A product takes its
 * factors in some of these ways only, and DTensor picks the one that it thinks the cheapest to get
 * to, by a model of its own of links; what lies otherwise is gathered, added up or exchanged first,
 * and let go of behind the product. With one rank nothing moves.
 */
#pragma once

#include "plan/autograd/tensor.h"

typedef enum {
    PLAN_DEALT_WHOLE,   /* Replicate() */
    PLAN_DEALT_ROWS,    /* Shard(0) */
    PLAN_DEALT_COLUMNS, /* Shard(1) */
    PLAN_DEALT_SUMMANDS /* Partial("sum") */
} PlanDealtWay;

/* A matrix of so many rows and columns in all; a rank's part has a reference to its storage, in
 * which it lies as it is, or turned: column after column. */
typedef struct {
    PlanTensor part;
    PlanDealtWay way;
    uint64_t rows, columns;
    bool is_turned;
} PlanDealt;

#define PLAN_NO_DEALT ((PlanDealt){.part = PLAN_NO_TENSOR})

/* The transpose, which is the same storage: no reference more. */
PlanDealt plan_dealt_turned(PlanDealt x);
/* alpha a b + beta c, where there is a c, as a new matrix. */
PlanDealt plan_dealt_product(PlanRun *run, const PlanDealt *a, const PlanDealt *b,
                             const PlanDealt *c, double alpha, double beta);
/* The same matrix by rows, or a new reference where it is. */
PlanDealt plan_dealt_by_rows(PlanRun *run, const PlanDealt *x);
