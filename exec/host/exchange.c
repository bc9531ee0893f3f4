/* exec/host/exchange.c - experts that ranks share: which rows go where, in whole numbers.
 *
 * Plans have the sizes of balanced routing, so a rank that is to send, or take, other numbers of
 * rows fails and says so.
 */
#include "exec/host/ops.h"

#include <string.h>

#include "exec/error.h"
#include "exec/task.h"

static int64_t *numbers(const ExecTask *t, PlanSlotNumber i) {
    return t->pointers[i];
}

/* ---- how many rows -------------------------------------------------------------------------- */

static void splits(const ExecTask *t) {
    size_t ranks = dim(t, SPLITS_RANKS), experts = dim(t, SPLITS_EXPERTS);
    for (size_t rank = 0; rank < ranks; rank++) {
        numbers(t, SPLITS_POSITION)[rank] = 0;
        for (size_t e = 0; e < experts; e++) {
            numbers(t, SPLITS_POSITION)[rank] += numbers(t, SPLITS_COUNTS)[rank * experts + e];
        }
    }
}

/* The host's reading: as many rows for each rank is what the plan has room for. */
static bool are_balanced(const ExecTask *t, GError **error) {
    for (size_t rank = 1; rank < dim(t, SPLITS_TO_HOST_N); rank++) {
        if (numbers(t, SPLITS_TO_HOST_POSITION)[rank] != numbers(t, SPLITS_TO_HOST_POSITION)[0]) {
            g_set_error(error, EXEC_ERROR, EXEC_ERROR_INPUT,
                        "the router sends %" G_GINT64_FORMAT " rows to one rank and "
                        "%" G_GINT64_FORMAT " to another, and a plan of experts that ranks share "
                        "has room for as many each; set routing = in-turn in the network",
                        numbers(t, SPLITS_TO_HOST_POSITION)[0],
                        numbers(t, SPLITS_TO_HOST_POSITION)[rank]);
            return false;
        }
    }
    return true;
}

static void own_counts(const ExecTask *t) {
    size_t ranks = dim(t, OWN_COUNTS_RANKS), experts = dim(t, OWN_COUNTS_EXPERTS);
    memset(numbers(t, OWN_COUNTS_POSITION), 0, experts * sizeof(int64_t));
    for (size_t i = 0; i < ranks * experts; i++) {
        numbers(t, OWN_COUNTS_POSITION)[i % experts] += numbers(t, OWN_COUNTS_COUNTS)[i];
    }
}

/* ---- in which order ------------------------------------------------------------------------- */

static void running_sum(const ExecTask *t) {
    int64_t sum = 0;
    for (size_t i = 0; i < dim(t, RUNNING_SUM_N); i++) {
        sum += numbers(t, RUNNING_SUM_COUNTS)[i];
        numbers(t, RUNNING_SUM_POSITION)[i] = sum;
    }
}

static void by_expert(const ExecTask *t) {
    size_t ranks = dim(t, BY_EXPERT_RANKS), experts = dim(t, BY_EXPERT_EXPERTS);
    for (size_t rank = 0; rank < ranks; rank++) {
        for (size_t e = 0; e < experts; e++) {
            numbers(t, BY_EXPERT_POSITION)[e * ranks + rank] =
                numbers(t, BY_EXPERT_COUNTS)[rank * experts + e];
        }
    }
}

static void combine(const ExecTask *t, int64_t sign) {
    for (size_t i = 0; i < dim(t, WHOLE_LESS_N); i++) {
        numbers(t, WHOLE_LESS_OFFSET)[i] =
            numbers(t, WHOLE_LESS_POSITION)[i] + sign * numbers(t, WHOLE_LESS_INDEX)[i];
    }
}

/* The first segment that ends behind a place; behind all the last one. */
static void segment(const ExecTask *t) {
    size_t n = dim(t, SEGMENT_N), segments = dim(t, SEGMENT_SEGMENTS);
    for (size_t i = 0; i < n; i++) {
        size_t s = 0;
        while (s + 1 < segments &&
               numbers(t, SEGMENT_SORTED)[s] <= numbers(t, SEGMENT_POSITION)[i]) {
            s++;
        }
        numbers(t, SEGMENT_INDEX)[i] = (int64_t)s;
    }
}

static bool of_segment(const ExecTask *t) {
    for (size_t i = 0; i < dim(t, OF_SEGMENT_N); i++) {
        if (numbers(t, OF_SEGMENT_INDEX)[i] < 0 ||
            numbers(t, OF_SEGMENT_INDEX)[i] >= (int64_t)dim(t, OF_SEGMENT_SEGMENTS)) {
            return false;
        }
        numbers(t, OF_SEGMENT_POSITION)[i] =
            numbers(t, OF_SEGMENT_COUNTS)[numbers(t, OF_SEGMENT_INDEX)[i]];
    }
    return true;
}

static bool place_rows(const ExecTask *t) {
    size_t n = dim(t, PLACE_ROWS_N), width = dim(t, PLACE_ROWS_WIDTH);
    for (size_t i = 0; i < n; i++) {
        int64_t to = numbers(t, PLACE_ROWS_INDEX)[i];
        if (to < 0 || to >= (int64_t)n) {
            return false;
        }
        memcpy(f32(t, PLACE_ROWS_Y) + (size_t)to * width, f32(t, PLACE_ROWS_X) + i * width,
               width * sizeof(float));
    }
    return true;
}

/* ---- the switch ----------------------------------------------------------------------------- */

static bool run(const ExecTask *t) {
    switch ((ExecExchangeOp)t->op->kind) {
    case PLAN_OP_SPLITS:
        splits(t);
        return true;
    case PLAN_OP_OWN_COUNTS:
        own_counts(t);
        return true;
    case PLAN_OP_RUNNING_SUM:
        running_sum(t);
        return true;
    case PLAN_OP_BY_EXPERT:
        by_expert(t);
        return true;
    case PLAN_OP_WHOLE_LESS:
        combine(t, -1);
        return true;
    case PLAN_OP_WHOLE_PLUS:
        combine(t, 1);
        return true;
    case PLAN_OP_SEGMENT:
        segment(t);
        return true;
    case PLAN_OP_OF_SEGMENT:
        return of_segment(t);
    case PLAN_OP_PLACE_ROWS:
        return place_rows(t);
    case PLAN_OP_SPLITS_TO_HOST: /* exec_host_exchange()'s */
        break;
    }
    g_assert_not_reached();
}

bool exec_host_exchange(const ExecTask *t, GError **error) {
    if (t->op->kind == PLAN_OP_SPLITS_TO_HOST) {
        return are_balanced(t, error);
    }
    bool is_done = run(t);
    if (!is_done) {
        g_set_error(error, EXEC_ERROR, EXEC_ERROR_FAILED, "%s holds a number outside its table",
                    plan_op_info((PlanOpKind)t->op->kind)->name);
    }
    return is_done;
}
