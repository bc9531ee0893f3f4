/* plan/flavours/fsdp2-gradients.c - the gradients of whole parameters, up to where they are packed.
 *
 * What a unit reduces is laid out like its gather; one op knows how gradients get there:
 *   reduce_copy_in   gradient* -> packed; operand.rows is the parameter's first dimension, so a
 *                    chunk has ceil(rows / ranks) * (elements / rows) elements; padding is zero
 * PyTorch 2.4 packs on the reduce lane; compute waits for the packing. Later versions pack on
 * compute.
 * A pass that does not reduce leaves the whole gradients, in what is reduced in. Frozen parameters
 * have no gradients and no place in any of this.
 */
#include "plan/autograd/launch.h"
#include "plan/autograd/shared/shared.h"
#include "plan/flavours/fsdp2.h"

/* What earlier passes left takes in this pass's gradient. */
static void take_in(PlanRun *run, uint32_t p) {
    PlanFsdp2 *f = run->state;
    PlanTensor *gradient = &run->gradients[p];
    if (f->parameters[p].accumulated.storage == PLAN_NONE || gradient->storage == PLAN_NONE) {
        return;
    }
    plan_run_accumulate(run, *gradient, f->parameters[p].accumulated);
    plan_run_drop(run, gradient);
}

/* 2.15's parameters want gradients of the dtype that is reduced in. Where that is wider they leave
 * it to the packing, or to the sum of earlier passes, if there is one; not of a parameter that
 * ranks which share layers add up before. */
PlanDtype plan_fsdp2_gradient_dtype(const PlanRun *run, uint32_t p, PlanDtype made) {
    const PlanFsdp2 *f = run->state;
    bool is_wider = plan_dtype_bytes(f->reduce) > plan_dtype_bytes(f->param);
    bool is_left = is_wider && !plan_shared_is_summed(run, p) &&
                   (run->pass.reduces || run->gradients[p].storage != PLAN_NONE);
    return f->is_of_2_15 && !is_left ? f->reduce : made;
}

/* What 2.15's autograd casts is in it already. */
static void keep_in_reduce_dtype(PlanRun *run, uint32_t p) {
    PlanFsdp2 *f = run->state;
    PlanTensor *gradient = &run->gradients[p];
    if (gradient->storage == PLAN_NONE || plan_run_dtype_of(run, *gradient) == f->reduce) {
        return;
    }
    PlanTensor sum = plan_run_new_tensor(run, gradient->elements, f->reduce, "accumulated");
    plan_builder_at(&run->builder, plan_run_buffer_of(run, sum))->sub = PLAN_GRADIENTS_UNSHARDED;
    LAUNCH(run, PLAN_OP_CAST, DIMS((int64_t)gradient->elements), NULL, *gradient, sum);
    f->parameters[p].accumulated = sum;
    plan_run_drop(run, gradient);
}

static PlanTensor *whole_gradient(PlanRun *run, uint32_t p) {
    PlanFsdp2 *f = run->state;
    return f->parameters[p].accumulated.storage != PLAN_NONE ? &f->parameters[p].accumulated
                                                             : &run->gradients[p];
}

/* Between ranks that share layers. */
static void settle_shared(PlanRun *run, uint32_t p) {
    PlanTensor *gradient = whole_gradient(run, p);
    PlanTensor mine =
        gradient->storage == PLAN_NONE ? PLAN_NO_TENSOR : plan_shared_settled(run, p, *gradient);
    if (mine.storage == PLAN_NONE) {
        return;
    }
    PlanBuffer *buffer = plan_builder_at(&run->builder, plan_run_buffer_of(run, mine));
    buffer->unit = plan_builder_unit(&run->builder, run->unit_of_parameter[p]);
    plan_run_drop(run, gradient);
    *gradient = mine;
}

static void launch_packing(PlanRun *run, uint32_t u, const PlanOperand *gradients, uint32_t n) {
    PlanFsdp2 *f = run->state;
    int64_t slices[] = {[REDUCE_COPY_IN_SLICE] = (int64_t)f->units[u].trained,
                        [REDUCE_COPY_IN_RANKS] = (int64_t)f->units[u].ranks};
    uint8_t lane = f->is_of_2_4 ? PLAN_FSDP2_REDUCE : PLAN_FSDP2_COMPUTE;
    f->reducing = plan_builder_buffer(
        &run->builder, f->units[u].trained * f->units[u].ranks, f->reduce,
        f->units[u].communicates ? PLAN_COMMUNICATION_REDUCE : PLAN_TEMPORARY_OP, lane, "packed");
    if (f->is_of_2_4) {
        plan_builder_wait_lane(&run->builder, PLAN_FSDP2_REDUCE, PLAN_FSDP2_COMPUTE);
    }
    plan_builder_alloc_empty(&run->builder, f->reducing);
    plan_builder_begin_op(&run->builder, PLAN_OP_REDUCE_COPY_IN, PLAN_AXIS_NONE, slices, NULL);
    for (uint32_t i = 0; i < n; i++) {
        plan_builder_operand(&run->builder, gradients[i]);
    }
    plan_builder_whole(&run->builder, f->reducing);
    plan_builder_launch(&run->builder, lane);
    if (f->is_of_2_4) {
        plan_builder_wait_lane(&run->builder, PLAN_FSDP2_COMPUTE, PLAN_FSDP2_REDUCE);
    }
}

/* Where rows are dealt out, gradients in the order of ranks. The loop that makes them lets go of
 * the first two when it comes to the third, and of the last when its function returns: that of 2.15
 * has returned when they are packed. */
static void turn_gradients(PlanRun *run, const uint32_t *trained, uint32_t n,
                           PlanTensor *ret_turned) {
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t j = 0; j < i && i >= 2; j++) {
            plan_run_drop(run, whole_gradient(run, trained[j]));
        }
        PlanTensor gradient = *whole_gradient(run, trained[i]);
        ret_turned[i] = plan_run_new_tensor(run, gradient.elements,
                                            plan_run_dtype_of(run, gradient), "by_rank");
        plan_fsdp2_turn_rows(run, trained[i], plan_run_operand_of(run, gradient),
                             plan_run_operand_of(run, ret_turned[i]), false);
    }
    for (uint32_t i = 0; i < n && ((PlanFsdp2 *)run->state)->is_of_2_15; i++) {
        plan_run_drop(run, whole_gradient(run, trained[i]));
    }
}

PlanTensor *plan_fsdp2_pack_gradients(PlanRun *run, uint32_t u) {
    PlanFsdp2 *f = run->state;
    const PlanFsdp2Unit *unit = &f->units[u];
    uint32_t n;
    g_autofree uint32_t *trained = plan_fsdp2_trained(run, u, &n);
    g_autofree PlanTensor *turned = g_new(PlanTensor, n);
    g_autofree PlanOperand *given = g_new(PlanOperand, n);
    if (unit->cuts_rows) {
        turn_gradients(run, trained, n, turned);
    }
    for (uint32_t i = 0; i < n; i++) {
        turned[i] = unit->cuts_rows ? turned[i] : *whole_gradient(run, trained[i]);
        given[i] = plan_run_operand_of(run, turned[i]);
        given[i].rows = (uint32_t)(unit->cuts_rows ? (int64_t)unit->ranks
                                                   : plan_run_parameter(run, trained[i])->dims[0]);
    }
    launch_packing(run, u, given, n);
    for (uint32_t i = n; i-- > 0 && unit->cuts_rows;) {
        plan_run_unref(run, turned[i]);
    }
    bool holds_last = unit->ranks > 1 && !f->is_of_2_4 && !f->is_of_2_15;
    for (uint32_t i = n - holds_last; i-- > 0;) {
        plan_run_drop(run, whole_gradient(run, trained[i]));
    }
    return holds_last ? whole_gradient(run, trained[n - 1]) : NULL;
}

void plan_fsdp2_take_gradients(PlanRun *run, uint32_t u) {
    const PlanFsdp2 *f = run->state;
    uint32_t n = run->units[u].parameters->len;
    for (uint32_t i = 0; i < n; i++) {
        take_in(run, plan_run_parameter_of(run, u, i));
    }
    for (uint32_t i = 0; i < n && f->tensor > 1 && run->pass.reduces; i++) {
        settle_shared(run, plan_run_parameter_of(run, u, i));
    }
}

void plan_fsdp2_leave_gradients(PlanRun *run, uint32_t u) {
    for (uint32_t i = 0; i < run->units[u].parameters->len; i++) {
        keep_in_reduce_dtype(run, plan_run_parameter_of(run, u, i));
    }
}
