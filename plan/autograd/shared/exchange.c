#include "plan/autograd/shared/exchange.h"

#include "plan/autograd/chosen.h"
#include "plan/autograd/launch.h"
#include "plan/autograd/read.h"

const char *const plan_exchange_lanes[] = {"expert", NULL};

static PlanTensor new_numbers(PlanRun *run, uint64_t n, const char *name) {
    return plan_run_new_tensor(run, n, PLAN_INT64, name);
}

/* ---- collectives ---------------------------------------------------------------------------- */

/* Of one rank, whose busiest link is its own. */
static void begin_uneven(PlanRun *run, PlanOperand given, PlanOperand taken) {
    PlanBuilder *builder = &run->builder;
    plan_builder_begin_op(
        builder, PLAN_OP_UNEVEN_ALL_TO_ALL, PLAN_AXIS_EXPERT,
        (int64_t[]){[UNEVEN_COLLECTIVE_ELEMENTS] = (int64_t)MAX(given.elements, taken.elements),
                    [UNEVEN_COLLECTIVE_RANKS] = (int64_t)run->graph->shared.expert,
                    [UNEVEN_COLLECTIVE_SENT] = (int64_t)given.elements,
                    [UNEVEN_COLLECTIVE_RECEIVED] = (int64_t)taken.elements},
        NULL);
    plan_builder_operand(builder, given);
    plan_builder_operand(builder, taken);
}

/* What others have for this rank, `elements` of it; until await() it is on its way. */
static PlanTensor send(PlanRun *run, PlanTensor x, uint64_t elements) {
    PlanBuilder *builder = &run->builder;
    uint8_t lane = run->lanes.expert;
    g_assert(run->sent.tensor.storage == PLAN_NONE);
    run->sent.tensor = plan_run_ref(run, x);
    PlanTensor taken = plan_run_new_tensor(run, elements, plan_run_dtype_of(run, x), "exchanged");
    plan_builder_wait_lane(builder, lane, PLAN_LANE_COMPUTE);
    if (elements == x.elements) {
        plan_builder_collective(builder, PLAN_OP_ALL_TO_ALL, PLAN_AXIS_EXPERT,
                                run->graph->shared.expert, 0, plan_run_operand_of(run, x),
                                plan_run_operand_of(run, taken));
    } else {
        begin_uneven(run, plan_run_operand_of(run, x), plan_run_operand_of(run, taken));
    }
    plan_builder_launch(builder, lane);
    run->sent.event = plan_builder_record(builder, lane);
    return taken;
}

/* Nothing is on its way where what was taken in forward was kept. */
static void await(PlanRun *run) {
    if (run->sent.tensor.storage == PLAN_NONE) {
        return;
    }
    plan_builder_wait(&run->builder, PLAN_LANE_COMPUTE, run->sent.event);
    plan_run_drop(run, &run->sent.tensor);
}

/* ---- rows by expert ------------------------------------------------------------------------- */

static PlanTensor splits_of(PlanRun *run, PlanTensor counts, const int64_t *d) {
    PlanTensor sums = new_numbers(run, (uint64_t)d[SPLITS_RANKS], "splits");
    LAUNCH(run, PLAN_OP_SPLITS, d, NULL, counts, sums);
    return sums;
}

/* How many rows each rank is sent, or sends: to the host, which waits for what it takes; what a
 * selective checkpoint has of them there is not copied again. */
static void read_splits(PlanRun *run, PlanTensor counts, const int64_t *d, bool taken) {
    PlanTensor sums = splits_of(run, counts, d);
    if (run->builder.phase != PLAN_PHASE_RECOMPUTE || !plan_run_selects(run)) {
        plan_run_read_splits(run, plan_run_operand_of(run, sums), taken);
    }
    plan_run_unref(run, sums);
}

static void read_both(PlanRun *run, PlanTensor counts, PlanTensor of_all, const int64_t *d) {
    read_splits(run, counts, d, false);
    read_splits(run, of_all, d, true);
}

static void splits_forward(PlanRun *run, const PlanGraphOp *op) {
    PlanTensor counts = plan_run_given(run, op, 0), of_all = send(run, counts, counts.elements);
    await(run);
    plan_run_give(run, op, 0, of_all);
    read_both(run, counts, of_all, plan_graph_dims_of(run->graph, op));
}

void plan_exchange_again(PlanRun *run, const PlanGraphOp *op) {
    if ((PlanGraphKind)op->kind == PLAN_GRAPH_EXCHANGE_SPLITS) {
        uint32_t of_all = plan_graph_ref(run->graph, op->values + op->n_inputs);
        plan_run_at(run, PLAN_PHASE_RECOMPUTE, op->module);
        read_both(run, plan_run_given(run, op, 0), plan_run_value(run, of_all),
                  plan_graph_dims_of(run->graph, op));
    }
}

/* Where each segment begins: the sum of the lengths of those before it. */
static PlanTensor starts_of(PlanRun *run, PlanTensor lengths) {
    int64_t n = (int64_t)lengths.elements;
    PlanTensor sums = new_numbers(run, lengths.elements, "sums");
    LAUNCH(run, PLAN_OP_RUNNING_SUM, &n, NULL, lengths, sums);
    PlanTensor starts = new_numbers(run, lengths.elements, "starts");
    LAUNCH(run, PLAN_OP_WHOLE_LESS, &n, NULL, sums, lengths, starts);
    plan_run_unref(run, sums);
    return starts;
}

/* From [ranks, experts] to [experts, ranks]; of one expert that is the same. */
static PlanTensor by_expert(PlanRun *run, PlanTensor x, const int64_t *d, const char *name) {
    if (d[BY_EXPERT_RANKS] == 1 || d[BY_EXPERT_EXPERTS] == 1) {
        return plan_run_ref(run, x);
    }
    PlanTensor y = new_numbers(run, x.elements, name);
    LAUNCH(run, PLAN_OP_BY_EXPERT, d, NULL, x, y);
    return y;
}

static PlanTensor combined(PlanRun *run, PlanOpKind kind, PlanTensor a, PlanTensor b,
                           const char *name) {
    int64_t n = (int64_t)a.elements;
    PlanTensor y = new_numbers(run, a.elements, name);
    LAUNCH(run, kind, &n, NULL, a, b, y);
    return y;
}

static void order_forward(PlanRun *run, const PlanGraphOp *op) {
    const int64_t *d = plan_graph_dims_of(run->graph, op);
    int64_t n = d[PLAN_GRAPH_EXCHANGE_ORDER_N], segments = d[SPLITS_RANKS] * d[SPLITS_EXPERTS];
    PlanTensor counts = plan_run_given(run, op, 0), by_rank = starts_of(run, counts);
    PlanTensor own = new_numbers(run, (uint64_t)d[OWN_COUNTS_EXPERTS], "own_counts");
    LAUNCH(run, PLAN_OP_OWN_COUNTS, d, NULL, counts, own);
    PlanTensor lengths = by_expert(run, counts, d, "lengths");
    PlanTensor starts = by_expert(run, by_rank, d, "starts");
    plan_run_unref(run, by_rank);
    PlanTensor made = starts_of(run, lengths);
    PlanTensor ends = combined(run, PLAN_OP_WHOLE_PLUS, made, lengths, "segment_ends");
    PlanTensor bias = combined(run, PLAN_OP_WHOLE_LESS, starts, made, "bias");
    PlanTensor place = new_numbers(run, (uint64_t)n, "place");
    LAUNCH(run, PLAN_OP_ARANGE, &n, NULL, place);
    PlanTensor segment = new_numbers(run, (uint64_t)n, "segment");
    LAUNCH(run, PLAN_OP_SEGMENT, DIMS([SEGMENT_N] = n, [SEGMENT_SEGMENTS] = segments), NULL, ends,
           place, segment);
    PlanTensor moves = new_numbers(run, (uint64_t)n, "moves");
    LAUNCH(run, PLAN_OP_OF_SEGMENT, DIMS([OF_SEGMENT_N] = n, [OF_SEGMENT_SEGMENTS] = segments),
           NULL, bias, segment, moves);
    PlanTensor order = combined(run, PLAN_OP_WHOLE_PLUS, place, moves, "order");
    PlanTensor temporary[] = {moves, starts, lengths, made, ends, bias, place, segment};
    for (unsigned i = 0; i < G_N_ELEMENTS(temporary); i++) {
        plan_run_unref(run, temporary[i]);
    }
    plan_run_give(run, op, 0, own);
    plan_run_give(run, op, 1, order);
}

/* ---- both ways ------------------------------------------------------------------------------ */

void plan_exchange_forward(PlanRun *run, const PlanGraphOp *op) {
    PlanGraphKind kind = (PlanGraphKind)op->kind;
    if (kind == PLAN_GRAPH_EXCHANGE_SPLITS) {
        splits_forward(run, op);
    } else if (kind == PLAN_GRAPH_EXCHANGE_SEND) {
        uint32_t made = plan_graph_ref(run->graph, op->values + op->n_inputs);
        uint64_t elements = plan_graph_value_at(run->graph, made)->elements;
        plan_run_give(run, op, 0, send(run, plan_run_given(run, op, 0), elements));
    } else if (kind == PLAN_GRAPH_EXCHANGE_AWAIT) {
        await(run);
    } else {
        order_forward(run, op);
    }
}

/* Waited for at once. */
void plan_exchange_backward(const PlanBackward *b) {
    b->dx[0] = send(b->run, b->dy[0], input(b, 0)->elements);
    await(b->run);
}
