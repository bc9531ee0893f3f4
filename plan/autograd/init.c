#include "plan/autograd/init.h"

#include "plan/autograd/launch.h"

static const PlanOpKind kinds[] = {
    [PLAN_INIT_NORMAL] = PLAN_OP_INIT_NORMAL, [PLAN_INIT_FILL] = PLAN_OP_INIT_FILL};

static void init_by(PlanRun *run, PlanOpKind kind, const int64_t *dims, PlanAxis axis,
                    uint32_t parameter, uint32_t buffer) {
    const PlanGraphParameter *p = plan_run_parameter(run, parameter);
    LAUNCH_ON(run, PLAN_LANE_COMPUTE, kind, axis, dims, &p->init_value, all_of(run, buffer));
}

static uint64_t elements_of(PlanRun *run, uint32_t buffer) {
    const PlanBuffer *b = plan_builder_at(&run->builder, buffer);
    return plan_dtype_count((PlanDtype)b->dtype, b->bytes);
}

void plan_init_parameter(PlanRun *run, uint32_t parameter, uint32_t buffer, PlanAxis axis,
                         uint64_t rank_stride, uint64_t offset) {
    const PlanGraphParameter *p = plan_run_parameter(run, parameter);
    uint64_t size = p->numbers ? plan_dtype_bytes((PlanDtype)p->own_dtype) : 1; /* counts bytes */
    int64_t dims[] = {[INIT_NIBBLES_PARAMETER] = run->owner.first_parameter + parameter,
                      [INIT_NIBBLES_N] = (int64_t)(elements_of(run, buffer) * size),
                      [INIT_NIBBLES_RANK_STRIDE] = (int64_t)(rank_stride * size),
                      [INIT_NIBBLES_OFFSET] = (int64_t)(offset * size),
                      [INIT_NIBBLES_CODE] = plan_four_bit_code(run),
                      [INIT_NIBBLES_MADE] = p->copied_in}; /* others' dims are the first of these */
    init_by(run, p->numbers ? PLAN_OP_INIT_NIBBLES : kinds[p->init], dims, axis, parameter, buffer);
}

void plan_init_numbers(PlanRun *run, uint32_t parameter, uint32_t buffer) {
    const PlanGraphParameter *p = plan_run_parameter(run, parameter);
    int64_t dims[] = {[INIT_NORMAL_PARAMETER] = run->owner.first_parameter + parameter,
                      [INIT_NORMAL_N] = (int64_t)elements_of(run, buffer),
                      [INIT_NORMAL_RANK_STRIDE] = 0,
                      [INIT_NORMAL_OFFSET] = 0};
    init_by(run, kinds[p->init], dims, PLAN_AXIS_NONE, parameter, buffer);
}
