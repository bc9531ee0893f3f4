/* plan/optimizer/eight-bit.c - AdamW with states in 8 bits as torchao runs it (AdamW8bit, 0.18).
 *
 * One parameter after the other, whose states are made just before its first step. What a rank
 * owns of it has states in 8 bits if that is at least 4096 numbers and a multiple of 256, and else
 * of its own dtype. A state in 8 bits is a byte a number, a magnitude for each 256, and a copy of
 * the map of 256 values.
 *
 * The step is compiled, parameter by parameter, and what Inductor makes of it goes by the last
 * dimension (recorded: tests/oracle/). Magnitudes and places are of 256 numbers in a row. Where a
 * row of the tensor is 256, or the tensor is a vector, all is one kernel. Else Inductor does not
 * see that the same numbers meet: a kernel leaves the new states, over their magnitudes, in memory,
 * in fp32, and others find places. So the step of most matrices holds 8 bytes for each of its
 * numbers.
 * Where rows divide 256 the first kernel steps the parameter too; else that which finds the places.
 */
#include "plan/autograd/launch.h"
#include "plan/op/four-bit.h"
#include "plan/optimizer/steps.h"

enum {
    LEAST_IN_8_BITS = 4096,
    PARTS_SIGNED = 1,
    PARTS_UNSIGNED = 2
};

/* What magnitudes count as at least. */
static const double LEAST = 1e-12;

/* A state in 8 bits, by what it is made of. */
typedef struct {
    unsigned codes, absmax, map;
    int64_t parts;
} State;

static const State EXP_AVG = {PLAN_STATE_EXP_AVG, PLAN_STATE_ABSMAX, PLAN_STATE_MAP, PARTS_SIGNED};
static const State EXP_AVG_SQ = {PLAN_STATE_EXP_AVG_SQ, PLAN_STATE_ABSMAX_SQ, PLAN_STATE_MAP_SQ,
                                 PARTS_UNSIGNED};

static bool is_in_8_bits(uint64_t elements) {
    return elements >= LEAST_IN_8_BITS && elements % PLAN_FOUR_BIT_MAP_BLOCK == 0;
}

static PlanOperand state_of(const PlanOver *one, unsigned state) {
    return all_of(one->run, one->run->states[PLAN_N_STATES * one->from + state]);
}

/* ---- states --------------------------------------------------------------------------------- */

static void make_in_8_bits(const PlanOver *one, State state) {
    PlanRun *run = one->run;
    uint64_t n = one->owned[one->from].elements;
    plan_over_new_state(one, one->from, state.codes, n, PLAN_UINT8);
    LAUNCH_OPERANDS(run, PLAN_OP_ZERO_CODES, DIMS((int64_t)n), NULL, state_of(one, state.codes));
    plan_over_make_state(one, one->from, state.absmax, n / PLAN_FOUR_BIT_MAP_BLOCK, PLAN_FP32);
    plan_over_new_state(one, one->from, state.map, PLAN_FOUR_BIT_MAP, PLAN_FP32);
    LAUNCH_OPERANDS(run, PLAN_OP_STATE_MAP,
                    DIMS([STATE_MAP_N] = PLAN_FOUR_BIT_MAP, [STATE_MAP_PARTS] = state.parts), NULL,
                    state_of(one, state.map));
}

static void make_states(const PlanOver *one) {
    PlanRun *run = one->run;
    PlanOperand owned = one->owned[one->from];
    PlanDtype dtype = (PlanDtype)plan_builder_at(&run->builder, owned.buffer)->dtype;
    if (is_in_8_bits(owned.elements)) {
        make_in_8_bits(one, EXP_AVG);
        make_in_8_bits(one, EXP_AVG_SQ);
    } else {
        plan_over_make_state(one, one->from, PLAN_STATE_EXP_AVG, owned.elements, dtype);
        plan_over_make_state(one, one->from, PLAN_STATE_EXP_AVG_SQ, owned.elements, dtype);
    }
    plan_run_at(run, PLAN_PHASE_OPTIMIZER, PLAN_NONE);
}

/* ---- the step ------------------------------------------------------------------------------- */

/* A parameter's states are its operands, and what its kernels are told. */
typedef struct {
    const PlanOver *one;
    const double *attrs;
    PlanOperand gradient, parameter;
    PlanOperand codes, absmax, map, codes_sq, absmax_sq, map_sq;
} Step;

static void in_one(const Step *s) {
    LAUNCH_OPERANDS(s->one->run, PLAN_OP_ADAM_8BIT, DIMS((int64_t)s->parameter.elements), s->attrs,
                    s->gradient, s->map, s->map_sq, s->parameter, s->codes, s->absmax, s->codes_sq,
                    s->absmax_sq);
}

/* New states as they are until their places are found. */
typedef struct {
    PlanTensor most, most_sq, scaled, scaled_sq;
} Made;

static Made scaled(const Step *s, PlanOperand parameter) {
    PlanRun *run = s->one->run;
    uint64_t n = s->parameter.elements, n_blocks = n / PLAN_FOUR_BIT_MAP_BLOCK;
    Made made;
    made.most = plan_run_new_tensor(run, n_blocks, PLAN_FP32, "most");
    made.most_sq = plan_run_new_tensor(run, n_blocks, PLAN_FP32, "most_sq");
    made.scaled = plan_run_new_tensor(run, n, PLAN_FP32, "scaled");
    made.scaled_sq = plan_run_new_tensor(run, n, PLAN_FP32, "scaled_sq");
    LAUNCH_OPERANDS(run, PLAN_OP_ADAM_8BIT_SCALED, DIMS((int64_t)n), s->attrs, s->gradient, s->map,
                    s->map_sq, s->codes, s->absmax, s->codes_sq, s->absmax_sq, parameter,
                    plan_run_operand_of(run, made.most), plan_run_operand_of(run, made.scaled),
                    plan_run_operand_of(run, made.most_sq),
                    plan_run_operand_of(run, made.scaled_sq));
    return made;
}

static void put_absmax(const Step *s, PlanTensor most, PlanOperand absmax) {
    LAUNCH_OPERANDS(s->one->run, PLAN_OP_AT_LEAST, DIMS((int64_t)most.elements), &LEAST,
                    plan_run_operand_of(s->one->run, most), absmax);
    plan_run_unref(s->one->run, most);
}

static void put_codes(const Step *s, PlanTensor scaled, PlanOperand map, PlanOperand codes) {
    LAUNCH_OPERANDS(s->one->run, PLAN_OP_PUT_CODES, DIMS((int64_t)scaled.elements), NULL,
                    plan_run_operand_of(s->one->run, scaled), map, codes);
    plan_run_unref(s->one->run, scaled);
}

static void parameter_first(const Step *s) {
    Made made = scaled(s, s->parameter);
    put_absmax(s, made.most, s->absmax);
    put_absmax(s, made.most_sq, s->absmax_sq);
    put_codes(s, made.scaled, s->map, s->codes);
    put_codes(s, made.scaled_sq, s->map_sq, s->codes_sq);
}

static void parameter_second(const Step *s) {
    PlanRun *run = s->one->run;
    Made made = scaled(s, NOTHING);
    LAUNCH_OPERANDS(run, PLAN_OP_ADAM_8BIT_UPDATE, DIMS((int64_t)s->parameter.elements), s->attrs,
                    s->gradient, s->map, s->map_sq, s->absmax, s->absmax_sq,
                    plan_run_operand_of(run, made.scaled), plan_run_operand_of(run, made.scaled_sq),
                    s->parameter, s->codes, s->codes_sq);
    plan_run_unref(run, made.scaled);
    plan_run_unref(run, made.scaled_sq);
    put_absmax(s, made.most, s->absmax);
    put_absmax(s, made.most_sq, s->absmax_sq);
}

/* How long a row is of what this rank owns; 0: it is a vector. Sides of 1 are none to Inductor, and
 * a rank owns rows. */
static uint64_t row_of(const PlanOver *one) {
    const PlanGraphParameter *p = plan_run_parameter(one->run, one->from);
    uint64_t rows = one->owned[one->from].elements, row = 0;
    unsigned sides = 0;
    for (unsigned i = 1; i < p->n_dims; i++) {
        rows /= (uint64_t)p->dims[i];
        row = p->dims[i] > 1 ? (uint64_t)p->dims[i] : row;
        sides += p->dims[i] > 1;
    }
    return sides + (rows > 1) > 1 ? row : 0;
}

static void step_in_8_bits(const PlanOver *one, const double *attrs) {
    Step s = {.one = one,
              .attrs = attrs,
              .gradient = one->run->flavour->gradient(one->run, one->from),
              .parameter = one->owned[one->from],
              .codes = state_of(one, EXP_AVG.codes),
              .absmax = state_of(one, EXP_AVG.absmax),
              .map = state_of(one, EXP_AVG.map),
              .codes_sq = state_of(one, EXP_AVG_SQ.codes),
              .absmax_sq = state_of(one, EXP_AVG_SQ.absmax),
              .map_sq = state_of(one, EXP_AVG_SQ.map)};
    uint64_t row = row_of(one);
    if (row == 0 || row == PLAN_FOUR_BIT_MAP_BLOCK) {
        in_one(&s);
    } else if (PLAN_FOUR_BIT_MAP_BLOCK % row == 0) {
        parameter_first(&s);
    } else {
        parameter_second(&s);
    }
}

static void step_one(const PlanOver *one) {
    PlanRun *run = one->run;
    const PlanStrategy *s = run->strategy;
    PlanOperand owned = one->owned[one->from];
    double attrs[] = {s->lr, s->beta1, s->beta2, s->eps, s->weight_decay, LEAST};
    if (is_in_8_bits(owned.elements)) {
        step_in_8_bits(one, attrs);
    } else {
        LAUNCH_OPERANDS(run, PLAN_OP_ADAM_ONE, DIMS((int64_t)owned.elements), attrs,
                        run->flavour->gradient(run, one->from), owned,
                        state_of(one, PLAN_STATE_EXP_AVG), state_of(one, PLAN_STATE_EXP_AVG_SQ));
    }
}

void plan_eight_bit_step(const PlanOver *all) {
    for (uint32_t p = all->from; p < all->to; p++) {
        if (plan_over_owns(all, p)) {
            PlanOver one = plan_over_one(all, p);
            if (state_of(&one, PLAN_STATE_EXP_AVG).buffer == PLAN_NONE) {
                make_states(&one);
            }
            step_one(&one);
        }
    }
}
