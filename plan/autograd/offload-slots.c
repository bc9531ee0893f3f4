#include "plan/autograd/offload-slots.h"

#include "plan/autograd/launch.h"
#include "plan/autograd/tensor.h"

const char *const plan_offload_lanes[] = {"to_host", "from_host", NULL};

uint32_t plan_offload_owner(const PlanRun *run, uint32_t p) {
    bool is_flat = plan_offload_has_params(run) && run->flavour->flatten;
    return is_flat ? plan_run_parameter_of(run, run->unit_of_parameter[p], 0) : p;
}

uint32_t plan_offload_slot(const PlanRun *run, uint32_t parameter, PlanOnHost which) {
    return run->modules.n_checkpointed + plan_offload_owner(run, parameter) * PLAN_N_ON_HOST +
           which;
}

uint32_t plan_offload_slots_end(const PlanRun *run) {
    return run->modules.n_checkpointed + run->graph->parameters.len * PLAN_N_ON_HOST;
}

void plan_offload_do(PlanRun *run, PlanOpKind kind, PlanAxis axis, const int64_t *dims,
                     const double *attrs) {
    plan_builder_begin_op(&run->builder, kind, axis, dims, attrs);
    plan_builder_host_op(&run->builder);
}

void plan_offload_round(PlanRun *run, uint32_t slot, uint64_t elements, PlanDtype dtype) {
    plan_offload_do(run, PLAN_OP_HOST_ROUND, PLAN_AXIS_NONE,
                    (int64_t[]){[HOST_ROUND_N] = (int64_t)elements,
                                [HOST_ROUND_SLOT] = slot,
                                [HOST_ROUND_MANTISSA_BITS] = plan_dtype_mantissa_bits(dtype)},
                    NULL);
}

void plan_offload_ask(PlanRun *run, PlanTensor number) {
    plan_offload_fetch(run, plan_offload_slots_end(run) + PLAN_OFFLOAD_NORM,
                       plan_run_operand_of(run, number), 0);
}

void plan_offload_move(PlanRun *run, PlanOpKind kind, uint32_t slot, PlanOperand tensor,
                       uint8_t lane) {
    LAUNCH_ON(run, lane, kind, PLAN_AXIS_NONE,
              DIMS([TO_HOST_N] = (int64_t)tensor.elements, [TO_HOST_SLOT] = slot), NULL, tensor);
}

void plan_offload_fetch(PlanRun *run, uint32_t slot, PlanOperand tensor, uint8_t lane) {
    plan_offload_move(run, PLAN_OP_TO_HOST, slot, tensor, lane);
    plan_builder_host_wait_lane(&run->builder, lane);
}
