#include "plan/autograd/shared/shared.h"

#include "plan/autograd/shared/async.h"
#include "plan/autograd/shared/words.h"

/* ---- gradients ------------------------------------------------------------------------------ */

bool plan_shared_is_summed(const PlanRun *run, uint32_t parameter) {
    const PlanGraphParameter *p = plan_run_parameter(run, parameter);
    return p->split == PLAN_SPLIT_NONE && !p->sees_all && plan_graph_cuts_tokens(run->graph);
}

static PlanTensor own_rows(PlanRun *run, PlanTensor whole, uint64_t elements) {
    PlanTensor mine = new_like(run, whole, elements, "rows");
    begin_of_rank(
        run, PLAN_OP_PART,
        DIMS([PART_N] = (int64_t)elements, [PART_RANKS] = (int64_t)run->graph->shared.tensor));
    LAUNCH_BEGUN(run, whole, mine);
    return mine;
}

PlanTensor plan_shared_addend(PlanRun *run, PlanTensor sum, PlanTensor gradient) {
    return run->graph->shared.tensor > 1 && gradient.elements > sum.elements
               ? own_rows(run, gradient, sum.elements)
               : plan_run_ref(run, gradient);
}

PlanTensor plan_shared_settled(PlanRun *run, uint32_t parameter, PlanTensor gradient) {
    const PlanGraphParameter *p = plan_run_parameter(run, parameter);
    if (gradient.elements > p->elements) {
        return own_rows(run, gradient, p->elements);
    }
    return plan_shared_is_summed(run, parameter)
               ? plan_shared_reduced(run, gradient, PLAN_REDUCTION_SUM)
               : PLAN_NO_TENSOR;
}

/* ---- biases --------------------------------------------------------------------------------- */

PlanTensor plan_shared_part(PlanRun *run, uint32_t parameter) {
    if (parameter == PLAN_NONE || !plan_run_parameter(run, parameter)->is_added_in_parts) {
        return PLAN_NO_TENSOR;
    }
    PlanOperand whole = run->flavour->parameter(run, parameter);
    PlanTensor part = plan_run_new_tensor(run, whole.elements, run->graph->dtype, "part");
    LAUNCH_OPERANDS(run, PLAN_OP_TIMES_NUMBER, DIMS((int64_t)whole.elements),
                    &(double){1 / (double)run->graph->shared.tensor}, whole,
                    plan_run_operand_of(run, part));
    return part;
}

/* ---- tokens --------------------------------------------------------------------------------- */

typedef struct {
    int64_t batch, rows, width, ranks;
} Tokens;

/* Of an op that is about tokens; others, such as the loss, have other dims. */
static Tokens tokens_of(const PlanGraph *graph, const PlanGraphOp *op) {
    const int64_t *d = plan_graph_dims_of(graph, op);
    return (Tokens){d[PLAN_GRAPH_TOKENS_BATCH], d[PLAN_GRAPH_TOKENS_ROWS],
                    d[PLAN_GRAPH_TOKENS_WIDTH], (int64_t)graph->shared.tensor};
}

/* Between [batch, ranks, rows, width] and the same with the ranks outermost, as collectives have
 * it. */
static PlanTensor with_parts(PlanRun *run, const PlanGraphOp *op, PlanTensor x, bool back) {
    Tokens t = tokens_of(run->graph, op);
    PlanTensor y = new_like(run, x, x.elements, "parts");
    LAUNCH(run, PLAN_OP_PARTS_COPY,
           DIMS([PARTS_COPY_BATCH] = t.batch, [PARTS_COPY_PARTS] = t.ranks,
                [PARTS_COPY_ROWS] = t.rows, [PARTS_COPY_WIDTH] = t.width, [PARTS_COPY_BACK] = back),
           NULL, x, y);
    return y;
}

/* With one sequence gathered tokens arrive in order; several have to be put in order. */
static PlanTensor gathered(PlanRun *run, const PlanGraphOp *op, PlanTensor x) {
    Tokens t = tokens_of(run->graph, op);
    PlanTensor parts = plan_shared_of_all(run, x);
    if (t.batch == 1) {
        return parts;
    }
    PlanTensor y = with_parts(run, op, parts, true);
    drop(run, parts);
    return y;
}

/* PyTorch copies the parts of one sequence, too. */
static PlanTensor scattered(PlanRun *run, const PlanGraphOp *op, PlanTensor x) {
    Tokens t = tokens_of(run->graph, op);
    PlanTensor parts = with_parts(run, op, x, false);
    PlanTensor y = new_like(run, x, x.elements / (uint64_t)t.ranks, "scattered");
    plan_shared_communicate(run, PLAN_OP_REDUCE_SCATTER, PLAN_REDUCTION_SUM, parts, y);
    drop(run, parts);
    return y;
}

void plan_shared_scatter_again(PlanRun *run, const PlanGraphOp *op) {
    plan_run_at(run, PLAN_PHASE_RECOMPUTE, op->module);
    drop(run, with_parts(run, op, plan_run_given(run, op, 0), false));
}

/* An all-reduce: eager into a new tensor, compiled in place, because nothing else reads x. */
static PlanTensor summed(PlanRun *run, const PlanGraphOp *op, PlanTensor x) {
    if (!plan_graph_is_compiled(run->graph) || !plan_graph_is_in_block(run->graph, op->module)) {
        return plan_shared_reduced(run, x, PLAN_REDUCTION_SUM);
    }
    plan_shared_all_reduce(run, x, PLAN_REDUCTION_SUM);
    return plan_run_ref(run, x);
}

/* This rank's part of what all have. */
static PlanTensor own_of(PlanRun *run, const PlanGraphOp *op, PlanTensor x) {
    Tokens t = tokens_of(run->graph, op);
    PlanTensor y = new_like(run, x, x.elements / (uint64_t)t.ranks, "own");
    begin_of_rank(run, PLAN_OP_OWN_PARTS,
                  DIMS([OWN_PARTS_BATCH] = t.batch, [OWN_PARTS_N] = t.rows * t.width,
                       [OWN_PARTS_RANKS] = t.ranks));
    LAUNCH_BEGUN(run, x, y);
    return y;
}

/* ---- asynchronous tensor parallel ----------------------------------------------------------- */

/* A block that is computed again keeps nothing of what it gathers. */
static PlanTensor gathered_by_parts(PlanRun *run, const PlanGraphOp *op) {
    plan_async_begin_gather(run, op, plan_run_given(run, op, 0));
    return run->checkpoint == PLAN_NONE ? plan_async_reordered(run) : plan_async_gathered(run);
}

/* ---- forward and backward ------------------------------------------------------------------- */

void plan_shared_forward(PlanRun *run, const PlanGraphOp *op) {
    PlanGraphKind kind = (PlanGraphKind)op->kind;
    if (kind == PLAN_GRAPH_SHARED_GATHER && plan_async_gathers(run, op)) {
        plan_run_give(run, op, 0, gathered_by_parts(run, op));
    } else if (plan_async_scatters(run, op)) {
        plan_run_give(run, op, 0, plan_async_scatter(run));
    } else if (kind == PLAN_GRAPH_SHARED_GATHER || kind == PLAN_GRAPH_SHARED_WHOLE) {
        plan_run_give(run, op, 0, gathered(run, op, plan_run_given(run, op, 0)));
    } else if (kind == PLAN_GRAPH_SHARED_SCATTER || kind == PLAN_GRAPH_SHARED_SCATTER_FLOAT8) {
        plan_run_give(run, op, 0, scattered(run, op, plan_run_given(run, op, 0)));
    } else if (kind == PLAN_GRAPH_SHARED_SUM) {
        plan_run_give(run, op, 0, summed(run, op, plan_run_given(run, op, 0)));
    } else if (kind == PLAN_GRAPH_SHARED_OWN) {
        plan_run_give(run, op, 0, own_of(run, op, plan_run_given(run, op, 0)));
    } else if (kind == PLAN_GRAPH_SHARED_ROWS) {
        plan_shared_rows_forward(run, op);
    } else if (kind == PLAN_GRAPH_SHARED_LOSS) {
        plan_shared_loss_forward(run, op);
    } else {
        plan_shared_compiled_loss_forward(run, op);
    }
}

/* A gradient of its own tokens, which DTensors take for one of all and cut again. */
static PlanTensor gathered_and_cut(PlanRun *run, const PlanGraphOp *op, PlanTensor dy) {
    PlanTensor all = gathered(run, op, dy), own = own_of(run, op, all);
    drop(run, all);
    return own;
}

void plan_shared_backward(const PlanBackward *b) {
    PlanGraphKind kind = (PlanGraphKind)b->op->kind;
    if (kind == PLAN_GRAPH_SHARED_GATHER || kind == PLAN_GRAPH_SHARED_AGAIN ||
        kind == PLAN_GRAPH_SHARED_GATHER_FLOAT8) {
        b->dx[0] = scattered(b->run, b->op, b->dy[0]);
    } else if (kind == PLAN_GRAPH_SHARED_SCATTER && plan_async_gathers(b->run, b->op)) {
        b->dx[0] = plan_async_gather_gradient(b);
    } else if (kind == PLAN_GRAPH_SHARED_SCATTER || kind == PLAN_GRAPH_SHARED_TAKEN) {
        b->dx[0] = gathered(b->run, b->op, b->dy[0]);
    } else if (kind == PLAN_GRAPH_SHARED_READ) {
        b->dx[0] = summed(b->run, b->op, b->dy[0]);
    } else if (kind == PLAN_GRAPH_SHARED_SUM) {
        b->dx[0] = plan_run_ref(b->run, b->dy[0]);
    } else if (kind == PLAN_GRAPH_SHARED_OWN) {
        b->dx[0] = gathered_and_cut(b->run, b->op, b->dy[0]);
    } else if (kind == PLAN_GRAPH_SHARED_WHOLE) {
        b->dx[0] = own_of(b->run, b->op, b->dy[0]);
    } else if (kind == PLAN_GRAPH_SHARED_ROWS) {
        plan_shared_rows_backward(b);
    } else if (kind == PLAN_GRAPH_SHARED_LOSS) {
        plan_shared_loss_backward(b);
    } else {
        plan_shared_compiled_loss_backward(b);
    }
}
