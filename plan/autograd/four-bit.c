#include "plan/autograd/four-bit.h"

#include "plan/autograd/init.h"
#include "plan/autograd/launch.h"

static bool is_double(const PlanRun *run) {
    return run->strategy->lora_base_double == PLAN_YES;
}

static uint64_t parts_of(uint64_t n, uint64_t part) {
    return (n + part - 1) / part;
}

/* ---- quantizing ----------------------------------------------------------------------------- */

/* A buffer that stays. */
static uint32_t new_state(PlanRun *run, uint64_t elements, PlanDtype dtype, const char *name) {
    return plan_builder_new(&run->builder, elements, dtype, PLAN_PARAMETERS_UNSHARDED, 0, name);
}

static uint32_t new_temporary(PlanRun *run, uint64_t elements, PlanDtype dtype, const char *name) {
    return plan_builder_new(&run->builder, elements, dtype, PLAN_TEMPORARY_OP, 0, name);
}

/* Each weight has a copy of the map, beside one that is made with the first. */
static uint32_t copy_of_map(PlanRun *run) {
    int64_t n = PLAN_FOUR_BIT_MAP;
    if (run->four_bit.map == PLAN_NONE) {
        run->four_bit.map = new_state(run, PLAN_FOUR_BIT_MAP, PLAN_FP32, "map");
        LAUNCH_OPERANDS(run, PLAN_OP_BYTE_MAP, &n, NULL, all_of(run, run->four_bit.map));
    }
    return run->four_bit.map;
}

/* What is 4 bytes for each block becomes one, and 4 for each 256 blocks. */
static void quantize_magnitudes(PlanRun *run, PlanFourBit *state, int64_t n_blocks) {
    uint32_t magnitudes = state->absmax;
    state->offset = new_state(run, 1, PLAN_FP32, "absmax_mean");
    LAUNCH_OPERANDS(run, PLAN_OP_MEAN, &n_blocks, NULL, all_of(run, magnitudes),
                    all_of(run, state->offset));
    uint32_t rest = new_temporary(run, (uint64_t)n_blocks, PLAN_FP32, "rest");
    LAUNCH_OPERANDS(run, PLAN_OP_SUB_COLUMN,
                    DIMS([SUB_COLUMN_ROWS] = 1, [SUB_COLUMN_COLS] = n_blocks), NULL,
                    all_of(run, magnitudes), all_of(run, state->offset), all_of(run, rest));
    uint32_t map = copy_of_map(run);
    uint64_t n_parts = parts_of((uint64_t)n_blocks, PLAN_FOUR_BIT_MAP_BLOCK);
    state->absmax = new_state(run, (uint64_t)n_blocks, PLAN_UINT8, "absmax_bytes");
    state->map_absmax = new_state(run, n_parts, PLAN_FP32, "absmax_absmax");
    LAUNCH_OPERANDS(run, PLAN_OP_QUANTIZE_BYTES, &n_blocks, NULL, all_of(run, rest),
                    all_of(run, map), all_of(run, state->absmax), all_of(run, state->map_absmax));
    state->map = new_state(run, PLAN_FOUR_BIT_MAP, PLAN_FP32, "map");
    plan_run_into(run, PLAN_OP_COPY, PLAN_LANE_COMPUTE, map, state->map, PLAN_FOUR_BIT_MAP);
    plan_builder_free(&run->builder, rest);
    plan_builder_free(&run->builder, magnitudes);
}

static void begin_states(PlanRun *run) {
    if (!run->four_bit.of_parameter) {
        run->four_bit.of_parameter = g_new0(PlanFourBit, run->graph->parameters.len);
        run->four_bit.map = PLAN_NONE;
    }
}

uint32_t plan_four_bit_make(PlanRun *run, uint32_t parameter) {
    const PlanGraphParameter *p = plan_run_parameter(run, parameter);
    uint64_t n_blocks = parts_of(p->numbers, PLAN_FOUR_BIT_BLOCK);
    begin_states(run);
    PlanFourBit *state = &run->four_bit.of_parameter[parameter];
    uint32_t numbers = new_temporary(run, p->numbers, (PlanDtype)p->copied_in, "w");
    plan_init_numbers(run, parameter, numbers);
    uint32_t packed =
        new_state(run, p->elements, (PlanDtype)p->own_dtype, run->owner.parameters[parameter].name);
    state->absmax = is_double(run) ? new_temporary(run, n_blocks, PLAN_FP32, "absmax")
                                   : new_state(run, n_blocks, PLAN_FP32, "absmax");
    LAUNCH_OPERANDS(run, PLAN_OP_QUANTIZE_4BIT,
                    DIMS([QUANTIZE_4BIT_N] = (int64_t)p->numbers, [QUANTIZE_4BIT_CODE] =
                                                                      plan_four_bit_code(run)),
                    NULL, all_of(run, numbers), all_of(run, packed), all_of(run, state->absmax));
    state->code = new_state(run, PLAN_FOUR_BIT_VALUES, PLAN_FP32, "code");
    LAUNCH_OPERANDS(run, PLAN_OP_FILL, DIMS(PLAN_FOUR_BIT_VALUES), &(double){0},
                    all_of(run, state->code));
    if (is_double(run)) {
        quantize_magnitudes(run, state, (int64_t)n_blocks);
    }
    plan_builder_free(&run->builder, numbers);
    return packed;
}

/* ---- products ------------------------------------------------------------------------------- */

/* Temporary tensors of one product. */
typedef struct {
    PlanTensor magnitudes, sum, weight;
} Copy;

static void make_magnitudes(PlanRun *run, const PlanFourBit *state, int64_t n_blocks, Copy *copy) {
    copy->magnitudes = plan_run_new_empty(run, (uint64_t)n_blocks, PLAN_FP32, "absmax");
    LAUNCH_OPERANDS(run, PLAN_OP_DEQUANTIZE_BYTES, &n_blocks, NULL, all_of(run, state->absmax),
                    all_of(run, state->map_absmax), all_of(run, state->map),
                    plan_run_operand_of(run, copy->magnitudes));
}

static void add_mean(PlanRun *run, const PlanFourBit *state, PlanTensor magnitudes,
                     PlanTensor sum) {
    LAUNCH_OPERANDS(run, PLAN_OP_ADD, DIMS([ADD_N] = (int64_t)sum.elements, [ADD_NB] = 1), NULL,
                    plan_run_operand_of(run, magnitudes), all_of(run, state->offset),
                    plan_run_operand_of(run, sum));
}

/* in_place: as backward adds the mean. */
static Copy make_copy(PlanRun *run, uint32_t parameter, bool in_place) {
    const PlanGraphParameter *p = plan_run_parameter(run, parameter);
    const PlanFourBit *state = &run->four_bit.of_parameter[parameter];
    int64_t n_blocks = (int64_t)parts_of(p->numbers, PLAN_FOUR_BIT_BLOCK);
    Copy copy = {PLAN_NO_TENSOR, PLAN_NO_TENSOR, PLAN_NO_TENSOR};
    if (is_double(run)) {
        make_magnitudes(run, state, n_blocks, &copy);
        copy.sum = in_place ? plan_run_ref(run, copy.magnitudes)
                            : plan_run_new_tensor(run, (uint64_t)n_blocks, PLAN_FP32, "absmax");
        add_mean(run, state, copy.magnitudes, copy.sum);
    }
    copy.weight = plan_run_new_empty(run, p->numbers, (PlanDtype)p->copied_in, "w");
    LAUNCH_OPERANDS(run, PLAN_OP_DEQUANTIZE_4BIT,
                    DIMS([DEQUANTIZE_4BIT_N] = (int64_t)p->numbers, [DEQUANTIZE_4BIT_CODE] =
                                                                        plan_four_bit_code(run)),
                    NULL, run->flavour->parameter(run, parameter),
                    is_double(run) ? plan_run_operand_of(run, copy.sum)
                                   : all_of(run, state->absmax),
                    plan_run_operand_of(run, copy.weight));
    return copy;
}

static void drop_magnitudes(PlanRun *run, const Copy *copy) {
    plan_run_unref(run, copy->sum);
    plan_run_unref(run, copy->magnitudes);
}

static uint32_t parameter_of(const PlanRun *run, const PlanGraphOp *op) {
    uint32_t weight = plan_graph_ref(run->graph, op->values + 1);
    return plan_graph_value_at(run->graph, weight)->parameter;
}

static PlanOperand bias_of(PlanRun *run, const PlanGraphOp *op) {
    uint32_t bias = plan_graph_ref(run->graph, op->values + 2);
    return bias == PLAN_NONE
               ? (PlanOperand){.buffer = PLAN_NONE}
               : run->flavour->parameter(run, plan_graph_value_at(run->graph, bias)->parameter);
}

void plan_four_bit_forward(PlanRun *run, const PlanGraphOp *op) {
    const int64_t *dims = plan_graph_dims_of(run->graph, op);
    Copy copy = make_copy(run, parameter_of(run, op), false);
    PlanTensor y = plan_run_new_tensor(run, (uint64_t)(dims[LINEAR_M] * dims[LINEAR_N]),
                                       plan_run_dtype_of(run, copy.weight), "y");
    LAUNCH_OPERANDS(
        run, PLAN_OP_LINEAR, dims, NULL, plan_run_operand_of(run, plan_run_given(run, op, 0)),
        plan_run_operand_of(run, copy.weight), bias_of(run, op), plan_run_operand_of(run, y));
    plan_run_give(run, op, 0, y);
    drop_magnitudes(run, &copy);
    plan_run_unref(run, copy.weight);
}

void plan_four_bit_backward(const PlanBackward *b) {
    PlanRun *run = b->run;
    if (!wanted(b, 0)) {
        return;
    }
    Copy copy = make_copy(run, parameter_of(run, b->op), true);
    drop_magnitudes(run, &copy);
    b->dx[0] = like_input(b, 0, "dx");
    KERNEL(b, PLAN_OP_LINEAR_DX, dims(b), NULL, dy(b, 0), tensor(b, copy.weight), dx(b, 0));
    plan_run_unref(run, copy.weight);
}
