#include "exec/slices.h"

#include "plan/mesh.h"
#include "plan/op/names.h"

/* Elements of the parameter; of one in 4 bits, bytes. */
static uint64_t total_of(const Plan *plan, const PlanOp *init, uint32_t parameter) {
    uint64_t numbers = plan_parameter_elements_of_rank(plan, &plan->parameters[parameter]);
    return plan_op_inits_nibbles((PlanOpKind)init->kind) ? (numbers + 1) / 2 : numbers;
}

ExecSlice exec_slice_of(const Plan *plan, const PlanRole *role, const PlanOp *init, uint32_t rank) {
    const int64_t *dims = plan_op_dims(role, init);
    uint32_t parameter = (uint32_t)dims[INIT_NORMAL_PARAMETER];
    uint64_t n = (uint64_t)dims[INIT_NORMAL_N], offset = (uint64_t)dims[INIT_NORMAL_OFFSET];
    uint64_t total = total_of(plan, init, parameter);
    uint64_t start = plan_rank_on_axis(plan, rank, (PlanAxis)init->axis) *
                     (uint64_t)dims[INIT_NORMAL_RANK_STRIDE];
    uint64_t first = offset > start ? MIN(n, offset - start) : 0;
    uint64_t from = start > offset ? start - offset : 0;
    bool on_host = plan_op_is_host_init((PlanOpKind)init->kind);
    return (ExecSlice){.parameter = parameter,
                       .buffer = on_host ? PLAN_NONE : plan_op_buffer(role, init, INIT_NORMAL_Y),
                       .slot = on_host ? (uint32_t)dims[HOST_INIT_NORMAL_SLOT] : PLAN_NONE,
                       .first = first,
                       .from = from,
                       .count = from < total ? MIN(n - first, total - from) : 0};
}

/* Of experts whose rows are dealt out, a rank's own lie expert by expert: it has so many rows of
 * each, behind those of the ranks before it. */
static uint64_t run_of_cut(const Plan *plan, const PlanParameter *p, uint32_t rank, uint64_t from,
                           uint64_t n, uint64_t *ret_from) {
    uint64_t ranks = plan->axes[PLAN_AXIS_ALIKE], whole = (uint64_t)(p->dims[1] * p->dims[2]);
    uint64_t part = whole / ranks, experts = plan_parameter_elements_of_rank(plan, p) / whole;
    uint64_t place = from / (experts * part), expert = from % (experts * part) / part;
    expert += plan_rank_on_axis(plan, rank, PLAN_AXIS_EXPERT) * experts;
    *ret_from = expert * whole + place * part + from % part;
    return MIN(n, part - from % part);
}

uint64_t exec_slice_run(const Plan *plan, uint32_t parameter, uint32_t rank, uint64_t from,
                        uint64_t n, uint64_t *ret_from) {
    const PlanParameter *p = &plan->parameters[parameter];
    uint64_t place = plan_rank_on_axis(plan, rank, PLAN_AXIS_TENSOR);
    if (p->split == PLAN_SPLIT_COLUMNS) {
        uint64_t cols = (uint64_t)p->dims[p->n_dims - 1];
        uint64_t own = cols / plan->axes[PLAN_AXIS_TENSOR];
        *ret_from = from / own * cols + place * own + from % own;
        return MIN(n, own - from % own);
    }
    if (p->split == PLAN_SPLIT_THIRDS) {
        uint64_t own = plan_parameter_elements_of_rank(plan, p) / 3;
        *ret_from = from / own * (p->elements / 3) + place * own + from % own;
        return MIN(n, own - from % own);
    }
    if (p->split == PLAN_SPLIT_CUT_EXPERTS) {
        return run_of_cut(plan, p, rank, from, n, ret_from);
    }
    if (p->split == PLAN_SPLIT_EXPERTS) {
        place = plan_rank_on_axis(plan, rank, PLAN_AXIS_EXPERT);
    }
    *ret_from =
        from + (p->split != PLAN_SPLIT_NONE ? place * plan_parameter_elements_of_rank(plan, p) : 0);
    return n;
}

/* Ranks that differ in the replica alone hold the same, and of what is not shared those of the
 * tensor axis; of that, without a stride, all ranks of a stage do. */
static bool saves(const Plan *plan, const PlanRole *role, const PlanOp *init, uint32_t rank) {
    const int64_t *dims = plan_op_dims(role, init);
    bool all_hold_it = dims[INIT_NORMAL_RANK_STRIDE] == 0,
         is_shared = plan->parameters[dims[INIT_NORMAL_PARAMETER]].split != PLAN_SPLIT_NONE;
    return all_hold_it && !is_shared
               ? rank % plan_ranks_of_stage(plan) == 0
               : plan_rank_on_axis(plan, rank, PLAN_AXIS_REPLICATE) == 0 &&
                     (is_shared || plan_rank_on_axis(plan, rank, PLAN_AXIS_TENSOR) == 0);
}

/* Beyond the first step, and so to the end of any run. */
static bool stays(const PlanBuffer *buffer) {
    return buffer->carried >> PLAN_SECTION_FIRST & 1;
}

/* FSDP2 moves shards that do not divide evenly into padded ones, in the first step. */
static uint32_t moved_to(const PlanRole *role, uint32_t buffer) {
    for (uint32_t i = 0; i < role->n_ops; i++) {
        const PlanOp *op = &role->ops[i];
        if (op->kind == PLAN_OP_COPY && plan_op_buffer(role, op, COPY_X) == buffer) {
            const PlanBuffer *to = &role->buffers[plan_op_buffer(role, op, COPY_Y)];
            if (to->sub == PLAN_PARAMETERS_SHARDED && stays(to)) {
                return plan_op_buffer(role, op, COPY_Y);
            }
        }
    }
    return buffer;
}

/* FSDP1 alone on a rank lets go of what it sent only where it is fetched again. */
static uint32_t sent_to(const PlanRole *role, uint32_t buffer) {
    for (uint32_t i = 0; i < role->n_ops && !stays(&role->buffers[buffer]); i++) {
        const PlanOp *op = &role->ops[i];
        if (op->kind == PLAN_OP_TO_HOST && plan_op_buffer(role, op, TO_HOST_X) == buffer) {
            return (uint32_t)plan_op_dims(role, op)[TO_HOST_SLOT];
        }
    }
    return PLAN_NONE;
}

GArray *exec_slices_to_save(const Plan *plan, const PlanRole *role, uint32_t rank) {
    g_autofree const PlanOp **last = g_new0(const PlanOp *, plan->n_parameters);
    GArray *slices = g_array_new(FALSE, FALSE, sizeof(ExecSlice));
    for (uint32_t i = 0; i < role->n_ops; i++) {
        if (plan_op_is_init((PlanOpKind)role->ops[i].kind)) {
            last[plan_op_dims(role, &role->ops[i])[INIT_NORMAL_PARAMETER]] = &role->ops[i];
        }
    }
    for (uint32_t p = 0; p < plan->n_parameters; p++) {
        if (last[p] && saves(plan, role, last[p], rank)) {
            ExecSlice slice = exec_slice_of(plan, role, last[p], rank);
            if (slice.count && slice.slot == PLAN_NONE) {
                slice.buffer = moved_to(role, slice.buffer);
                slice.slot = sent_to(role, slice.buffer);
            }
            if (slice.count) { /* else the plan may hold no buffer for it after the first step */
                g_array_append_val(slices, slice);
            }
        }
    }
    return slices;
}
