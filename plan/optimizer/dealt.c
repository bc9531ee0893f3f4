#include "plan/optimizer/dealt.h"

#include <math.h>

#include "plan/autograd/launch.h"

static uint64_t ranks_of(const PlanRun *run) {
    return plan_strategy_shard_ranks(run->strategy);
}

/* ---- what DTensor thinks a way costs --------------------------------------------------------- */

/* torch/distributed/tensor/_collective_utils.py of PyTorch 2.13: rings, by the numbers of an A100
 * or H100 whose hosts have 8 GPUs. In us. */
#define GPUS_OF_A_HOST   8
#define BASE_US          6.6
#define HOP_US           0.6
#define HOP_US_OUTSIDE   2.7
#define GIB_PER_S        87.7
#define SHARE_OUTSIDE    0.22
#define EXCHANGE_MORE_US 1.0

/* A ring of so many hops, which moves as many times a rank's share of so many bytes. */
static double ring_us(uint64_t ranks, double hops, double bytes) {
    bool outside = ranks > GPUS_OF_A_HOST;
    double gib = bytes / 1024 / 1024 / 1024;
    double gib_per_s = outside ? GIB_PER_S * SHARE_OUTSIDE : GIB_PER_S;
    double latency = BASE_US + hops * (outside ? HOP_US_OUTSIDE : HOP_US);
    return latency + gib * hops / (double)ranks / gib_per_s * 1e6;
}

/* bytes: of the whole matrix. From a part nobody gets to a summand. */
static double move_us(uint64_t ranks, PlanDealtWay from, PlanDealtWay to, double bytes) {
    double n = (double)ranks;
    if (from == to || from == PLAN_DEALT_WHOLE) {
        return 0;
    }
    if (from == PLAN_DEALT_SUMMANDS) {
        return ring_us(ranks, to == PLAN_DEALT_WHOLE ? 2 * (n - 1) : n - 1, bytes);
    }
    return to == PLAN_DEALT_SUMMANDS ? INFINITY
           : to == PLAN_DEALT_WHOLE  ? ring_us(ranks, n - 1, bytes)
                                     : ring_us(ranks, n - 1, bytes / n) + EXCHANGE_MORE_US;
}

typedef struct {
    PlanDealtWay y, a, b; /* c lies as y */
} Ways;

/* Those that a product may take, in DTensor's order (_ops/_matrix_ops.py). */
static const Ways all_ways[] = {
    {PLAN_DEALT_WHOLE, PLAN_DEALT_WHOLE, PLAN_DEALT_WHOLE},
    {PLAN_DEALT_SUMMANDS, PLAN_DEALT_COLUMNS, PLAN_DEALT_ROWS},
    {PLAN_DEALT_ROWS, PLAN_DEALT_ROWS, PLAN_DEALT_WHOLE},
    {PLAN_DEALT_COLUMNS, PLAN_DEALT_WHOLE, PLAN_DEALT_COLUMNS},
    {PLAN_DEALT_SUMMANDS, PLAN_DEALT_SUMMANDS, PLAN_DEALT_WHOLE},
    {PLAN_DEALT_SUMMANDS, PLAN_DEALT_WHOLE, PLAN_DEALT_SUMMANDS},
};

static double matrix_us(PlanRun *run, const PlanDealt *x, PlanDealtWay to) {
    double size = (double)plan_dtype_bytes(plan_run_dtype_of(run, x->part));
    return move_us(ranks_of(run), x->way, to, size * (double)x->rows * (double)x->columns);
}

/* The ways of a, b and c that cost least to get to; of several that cost the same the first. */
static const Ways *cheapest(PlanRun *run, const PlanDealt *a, const PlanDealt *b,
                            const PlanDealt *c) {
    const Ways *best = NULL;
    double best_us = INFINITY;
    for (unsigned i = 0; i < G_N_ELEMENTS(all_ways); i++) {
        const Ways *ways = &all_ways[i];
        double us = (c ? matrix_us(run, c, ways->y) : 0) + matrix_us(run, a, ways->a) +
                    matrix_us(run, b, ways->b);
        if (us < best_us) {
            best = ways;
            best_us = us;
        }
    }
    return best;
}

/* ---- moving ---------------------------------------------------------------------------------- */

static PlanTensor new_like(PlanRun *run, PlanTensor x, uint64_t elements, const char *name) {
    return plan_run_new_tensor(run, elements, plan_run_dtype_of(run, x), name);
}

static void communicate(PlanRun *run, PlanOpKind kind, PlanTensor given, PlanTensor taken) {
    plan_builder_collective(&run->builder, kind, PLAN_AXIS_SHARD, ranks_of(run), PLAN_REDUCTION_SUM,
                            plan_run_operand_of(run, given), plan_run_operand_of(run, taken));
    plan_run_launch(run);
}

/* As [batch, parts, rows, width], with parts outermost; back: from there. */
static PlanTensor with_parts(PlanRun *run, PlanTensor x, uint64_t batch, uint64_t width,
                             bool back) {
    PlanTensor y = new_like(run, x, x.elements, "parts");
    LAUNCH(
        run, PLAN_OP_PARTS_COPY,
        DIMS([PARTS_COPY_BATCH] = (int64_t)batch, [PARTS_COPY_PARTS] = (int64_t)ranks_of(run),
             [PARTS_COPY_ROWS] = 1, [PARTS_COPY_WIDTH] = (int64_t)width, [PARTS_COPY_BACK] = back),
        NULL, x, y);
    return y;
}

static uint64_t rows_of_part(const PlanRun *run, const PlanDealt *x) {
    return x->way == PLAN_DEALT_ROWS ? x->rows / ranks_of(run) : x->rows;
}

static uint64_t columns_of_part(const PlanRun *run, const PlanDealt *x) {
    return x->way == PLAN_DEALT_COLUMNS ? x->columns / ranks_of(run) : x->columns;
}

/* Row after row, as it may be already; a new reference. */
static PlanTensor straightened(PlanRun *run, const PlanDealt *x) {
    if (!x->is_turned) {
        return plan_run_ref(run, x->part);
    }
    PlanTensor y = new_like(run, x->part, x->part.elements, "straight");
    int64_t columns = (int64_t)columns_of_part(run, x), rows = (int64_t)rows_of_part(run, x);
    LAUNCH(run, PLAN_OP_EXCHANGE_SIDES,
           DIMS([EXCHANGE_SIDES_ROWS] = columns, [EXCHANGE_SIDES_COLS] = rows), NULL, x->part, y);
    return y;
}

static PlanTensor added_up(PlanRun *run, const PlanDealt *x) {
    PlanTensor sum = new_like(run, x->part, x->part.elements, "sum");
    plan_run_into(run, PLAN_OP_COPY, PLAN_LANE_COMPUTE, plan_run_buffer_of(run, x->part),
                  plan_run_buffer_of(run, sum), sum.elements);
    communicate(run, PLAN_OP_ALL_REDUCE, PLAN_NO_TENSOR, sum);
    return sum;
}

/* The whole matrix, gathered. Columns arrive rank after rank, and are then put side by side. */
static PlanTensor gathered(PlanRun *run, const PlanDealt *x) {
    PlanTensor own = straightened(run, x);
    PlanTensor all = new_like(run, own, own.elements * ranks_of(run), "gathered");
    communicate(run, PLAN_OP_ALL_GATHER, own, all);
    if (x->way == PLAN_DEALT_COLUMNS) {
        PlanTensor joined = with_parts(run, all, x->rows, columns_of_part(run, x), true);
        plan_run_unref(run, all);
        all = joined;
    }
    plan_run_unref(run, own);
    return all;
}

static PlanTensor scattered(PlanRun *run, const PlanDealt *x) {
    PlanTensor own = new_like(run, x->part, x->part.elements / ranks_of(run), "scattered");
    communicate(run, PLAN_OP_REDUCE_SCATTER, x->part, own);
    return own;
}

/* Rows become columns, or columns rows, by an all-to-all. What is sent and what arrives lie rank
 * after rank, so columns are taken apart before it, or put side by side behind it. */
static PlanTensor exchanged(PlanRun *run, const PlanDealt *x, PlanDealtWay to) {
    uint64_t ranks = ranks_of(run);
    PlanTensor own = straightened(run, x), given = plan_run_ref(run, own);
    if (to == PLAN_DEALT_COLUMNS) {
        plan_run_unref(run, given);
        given = with_parts(run, own, x->rows / ranks, x->columns / ranks, false);
    }
    PlanTensor taken = new_like(run, own, own.elements, "exchanged");
    communicate(run, PLAN_OP_ALL_TO_ALL, given, taken);
    if (to == PLAN_DEALT_ROWS) {
        PlanTensor joined = with_parts(run, taken, x->rows / ranks, x->columns / ranks, true);
        plan_run_unref(run, taken);
        taken = joined;
    }
    plan_run_unref(run, given);
    plan_run_unref(run, own);
    return taken;
}

static PlanDealt moved(PlanRun *run, const PlanDealt *x, PlanDealtWay to) {
    PlanDealt y = *x;
    if (x->way == to) {
        plan_run_ref(run, x->part);
        return y;
    }
    y.way = to;
    y.is_turned = false;
    y.part = x->way == PLAN_DEALT_SUMMANDS && to == PLAN_DEALT_WHOLE ? added_up(run, x)
             : x->way == PLAN_DEALT_SUMMANDS                         ? scattered(run, x)
             : to == PLAN_DEALT_WHOLE                                ? gathered(run, x)
                                                                     : exchanged(run, x, to);
    return y;
}

/* ---- what others ask for --------------------------------------------------------------------- */

PlanDealt plan_dealt_turned(PlanDealt x) {
    return (PlanDealt){.part = x.part,
                       .way = x.way == PLAN_DEALT_ROWS      ? PLAN_DEALT_COLUMNS
                              : x.way == PLAN_DEALT_COLUMNS ? PLAN_DEALT_ROWS
                                                            : x.way,
                       .rows = x.columns,
                       .columns = x.rows,
                       .is_turned = !x.is_turned};
}

PlanDealt plan_dealt_by_rows(PlanRun *run, const PlanDealt *x) {
    return moved(run, x, ranks_of(run) > 1 ? PLAN_DEALT_ROWS : PLAN_DEALT_WHOLE);
}

PlanDealt plan_dealt_product(PlanRun *run, const PlanDealt *a, const PlanDealt *b,
                             const PlanDealt *c, double alpha, double beta) {
    const Ways *ways = cheapest(run, a, b, c);
    PlanDealt third = c ? moved(run, c, ways->y) : PLAN_NO_DEALT;
    PlanDealt left = moved(run, a, ways->a), right = moved(run, b, ways->b);
    PlanDealt y = {.way = ways->y, .rows = a->rows, .columns = b->columns};
    uint64_t m = rows_of_part(run, &left), n = columns_of_part(run, &right);
    y.part = new_like(run, a->part, m * n, "product");
    LAUNCH(run, PLAN_OP_PRODUCT,
           DIMS([PRODUCT_M] = (int64_t)m, [PRODUCT_N] = (int64_t)n,
                [PRODUCT_K] = (int64_t)columns_of_part(run, &left),
                [PRODUCT_A_TURNED] = left.is_turned, [PRODUCT_B_TURNED] = right.is_turned,
                [PRODUCT_C_TURNED] = third.is_turned),
           ((double[]){alpha, beta}), left.part, right.part, third.part, y.part);
    plan_run_unref(run, right.part);
    plan_run_unref(run, left.part);
    plan_run_unref(run, third.part);
    return y;
}
