/* plan/optimizer/muon.c - torch.optim.Muon (torch/optim/_muon.py), one matrix after the other.
 *
 * A matrix's momentum takes in its gradient, and is (with Nesterov's, mixed with the gradient
 * again) what Newton-Schulz steps make orthogonal, nearly: in bf16, lying on its longer side,
 * divided by its norm, x <- a x + (b g + c g g) x, g = x x^T. The parameter shrinks, and is lowered
 * by the result. All of it is eager Python: a name holds its tensor until it is given another, so a
 * matrix's result lives until the next one's mix is there.
 *
 * FSDP2's shards are DTensors by rows; their norm is added up over the ranks, and dealt.c
 * multiplies them. Each rank has its part of every matrix's work, and asks for the others' numbers
 * in each step.
 */
#include <math.h>

#include "plan/autograd/launch.h"
#include "plan/optimizer/dealt.h"
#include "plan/optimizer/norms.h"
#include "plan/optimizer/steps.h"

/* Keller Jordan's coefficients, and PyTorch's eps. */
static const double A = 3.4445, B = -4.7750, C = 2.0315, EPS = 1e-7;

void plan_muon_first(const PlanOver *all) {
    for (uint32_t p = all->from; p < all->to; p++) {
        if (plan_over_owns(all, p)) {
            PlanOperand gradient = all->run->flavour->gradient(all->run, p);
            PlanDtype dtype =
                (PlanDtype)plan_builder_at(&all->run->builder, gradient.buffer)->dtype;
            plan_over_make_state(all, p, PLAN_STATE_MOMENTUM, all->owned[p].elements, dtype);
        }
    }
    plan_run_at(all->run, PLAN_PHASE_OPTIMIZER, PLAN_NONE);
}

/* ---- one matrix ------------------------------------------------------------------------------ */

typedef struct {
    PlanRun *run;
    uint32_t parameter;
    PlanOperand owned;
    uint32_t momentum;      /* buffer */
    uint64_t rows, columns; /* in all */
    bool is_shared;         /* by ranks */
} Matrix;

/* What is orthogonalized with Nesterov's momentum, in a new tensor. */
static PlanTensor mixed(const Matrix *m) {
    PlanBuilder *builder = &m->run->builder;
    PlanOperand gradient = m->run->flavour->gradient(m->run, m->parameter);
    PlanDtype dtype = (PlanDtype)plan_builder_at(builder, gradient.buffer)->dtype;
    PlanTensor mix = plan_run_new_tensor(m->run, m->owned.elements, dtype, "mix");
    LAUNCH_OPERANDS(m->run, PLAN_OP_LERP, DIMS((int64_t)m->owned.elements),
                    &m->run->strategy->muon_momentum, gradient, all_of(m->run, m->momentum),
                    plan_run_operand_of(m->run, mix));
    return mix;
}

/* norm() of a DTensor adds up those of all ranks, and holds this one's meanwhile. */
static void divide_by_norm(const Matrix *m, PlanTensor x) {
    PlanRun *run = m->run;
    uint64_t ranks = plan_strategy_shard_ranks(run->strategy);
    PlanTensor own = launch_new(run, PLAN_OP_NORM, x, 0, "norm");
    PlanTensor norm = m->is_shared ? plan_norms_over_ranks(run, own, PLAN_AXIS_SHARD, ranks, "norm")
                                   : plan_run_ref(run, own);
    PlanTensor divisor = launch_new(run, PLAN_OP_AT_LEAST, norm, EPS, "divisor");
    plan_run_unref(run, norm);
    plan_run_unref(run, own);
    LAUNCH(run, PLAN_OP_DIVIDE_BY, DIMS((int64_t)x.elements), NULL, divisor, x);
    plan_run_unref(run, divisor);
}

/* Lying on its longer side, in bf16; where it is that already, the mix itself. mix: or none, of the
 * momentum as it is, which is not in bf16 then (plan/strategy/trained.c). */
static PlanDealt begin(const Matrix *m, PlanTensor mix) {
    PlanBuilder *builder = &m->run->builder;
    uint32_t from = mix.storage == PLAN_NONE ? m->momentum : plan_run_buffer_of(m->run, mix);
    PlanTensor x;
    if (plan_builder_at(builder, from)->dtype == PLAN_BF16) {
        x = plan_run_ref(m->run, mix);
    } else {
        x = plan_run_new_tensor(m->run, m->owned.elements, PLAN_BF16, "x");
        plan_run_into(m->run, PLAN_OP_CAST, 0, from, plan_run_buffer_of(m->run, x), x.elements);
    }
    divide_by_norm(m, x);
    PlanDealt dealt = {.part = x,
                       .way = m->is_shared ? PLAN_DEALT_ROWS : PLAN_DEALT_WHOLE,
                       .rows = m->rows,
                       .columns = m->columns};
    return m->rows > m->columns ? plan_dealt_turned(dealt) : dealt;
}

/* *old is let go of where new has been made. */
static void rename_to(PlanRun *run, PlanDealt *old, PlanDealt new) {
    plan_run_unref(run, old->part);
    *old = new;
}

static PlanDealt orthogonalized(const Matrix *m, PlanTensor mix) {
    PlanRun *run = m->run;
    PlanDealt x = begin(m, mix), gram = PLAN_NO_DEALT, step = PLAN_NO_DEALT;
    for (uint64_t i = 0; i < run->strategy->muon_steps; i++) {
        PlanDealt turned = plan_dealt_turned(x);
        rename_to(run, &gram, plan_dealt_product(run, &x, &turned, NULL, 1, 0));
        rename_to(run, &step, plan_dealt_product(run, &gram, &gram, &gram, C, B));
        rename_to(run, &x, plan_dealt_product(run, &step, &x, &x, 1, A));
    }
    plan_run_unref(run, gram.part);
    plan_run_unref(run, step.part);
    return m->rows > m->columns ? plan_dealt_turned(x) : x;
}

static double rate_of(const Matrix *m) {
    const PlanStrategy *s = m->run->strategy;
    double a = (double)m->rows, b = (double)m->columns;
    switch ((PlanMuonRate)s->muon_rate) {
    case PLAN_MUON_RATE_ORIGINAL:
        return s->muon_lr * sqrt(MAX(1, a / b));
    case PLAN_MUON_RATE_MATCH_RMS_ADAMW:
        return s->muon_lr * 0.2 * sqrt(MAX(a, b));
    }
    g_assert_not_reached();
}

static void update(const Matrix *m, const PlanDealt *result) {
    PlanDealt own = plan_dealt_by_rows(m->run, result);
    uint64_t rows = m->owned.elements / m->columns;
    double rate = rate_of(m);
    LAUNCH_ON(m->run, PLAN_LANE_COMPUTE, PLAN_OP_MUON_UPDATE, PLAN_AXIS_NONE,
              DIMS([MUON_UPDATE_ROWS] = (int64_t)rows, [MUON_UPDATE_COLS] = (int64_t)m->columns,
                   [MUON_UPDATE_TURNED] = own.is_turned),
              &rate, plan_run_operand_of(m->run, own.part), m->owned);
    plan_run_unref(m->run, own.part);
}

/* before: the last matrix's result, whose name this one's takes. */
static void step_one(const PlanOver *one, PlanDealt *before) {
    PlanRun *run = one->run;
    const PlanStrategy *s = run->strategy;
    const PlanGraphParameter *p = plan_run_parameter(run, one->from);
    Matrix m = {.run = run,
                .parameter = one->from,
                .owned = one->owned[one->from],
                .momentum = run->states[PLAN_N_STATES * one->from + PLAN_STATE_MOMENTUM],
                .rows = (uint64_t)p->dims[0],
                .columns = (uint64_t)p->dims[1],
                .is_shared = s->flavour == PLAN_FLAVOUR_FSDP2 && plan_strategy_shard_ranks(s) > 1};
    plan_over_launch(one, PLAN_OP_ADAM_MOMENT, 2,
                     (unsigned[]){PLAN_LIST_GRADIENT, PLAN_LIST_STATE + PLAN_STATE_MOMENTUM},
                     &s->muon_momentum);
    PlanTensor mix = s->muon_nesterov == PLAN_YES ? mixed(&m) : PLAN_NO_TENSOR;
    rename_to(run, before, PLAN_NO_DEALT);
    PlanDealt result = orthogonalized(&m, mix);
    plan_run_unref(run, mix);
    plan_over_launch(one, PLAN_OP_ADAM_DECAY, 1, (unsigned[]){PLAN_LIST_PARAMETER},
                     (double[]){s->muon_lr, s->muon_weight_decay});
    update(&m, &result);
    *before = result;
}

void plan_muon_step(const PlanOver *all) {
    PlanDealt before = PLAN_NO_DEALT;
    for (uint32_t p = all->from; p < all->to; p++) {
        if (plan_over_owns(all, p)) {
            PlanOver one = plan_over_one(all, p);
            step_one(&one, &before);
        }
    }
    plan_run_unref(all->run, before.part);
}
