/* plan/flavours/fsdp1-reduce.c - from the gradients of parameters to the gradient of a shard.
 *
 * A pass that does not reduce leaves the flat gradient, and the next pass's is added to it. Where a
 * reduced gradient exists already (of an earlier pass, or kept), the new one is added to that.
 * Without sharding the one gradient is both: later passes are added to it and it is reduced again.
 */
#include "plan/autograd/offload.h"
#include "plan/flavours/fsdp1.h"

/* ---- the flat gradient ---------------------------------------------------------------------- */

static PlanTensor zeros(PlanRun *run, uint64_t elements, PlanDtype dtype) {
    PlanTensor tensor = plan_run_new_empty(run, elements, dtype, "padding");
    uint32_t buffer = plan_run_buffer_of(run, tensor);
    plan_builder_at(&run->builder, buffer)->sub = PLAN_GRADIENTS_UNSHARDED;
    plan_fsdp1_fill(run, PLAN_FSDP1_COMPUTE, buffer);
    return tensor;
}

static PlanTensor flat_gradient(PlanRun *run, const PlanFsdp1 *f, uint32_t u,
                                const PlanTensor *gradients) {
    const PlanFsdp1Buffers *b = &f->units[u].b;
    uint32_t n = run->units[u].parameters->len;
    g_autofree PlanTensor *padding = g_new(PlanTensor, n + 1);
    for (uint32_t i = 0; i <= n; i++) {
        uint64_t elements = plan_flat_padding(&f->flat, run, u, i);
        padding[i] = elements ? zeros(run, elements, f->param) : PLAN_NO_TENSOR;
    }
    PlanTensor flat = plan_run_new_in(run, plan_fsdp1_lives(run, b->flat_grad) ? b->next_flat_grad
                                                                               : b->flat_grad);
    plan_builder_begin_op(&run->builder, PLAN_OP_FLATTEN, PLAN_AXIS_NONE,
                          (int64_t[]){(int64_t)f->flat.units[u].elements}, NULL);
    for (uint32_t i = 0; i <= n; i++) {
        if (padding[i].storage != PLAN_NONE) {
            plan_run_operand(run, padding[i]);
        }
        if (i < n) {
            plan_builder_at(&run->builder, plan_run_buffer_of(run, gradients[i]))->sub =
                PLAN_GRADIENTS_UNSHARDED;
            plan_run_operand(run, gradients[i]);
        }
    }
    plan_run_operand(run, flat);
    plan_builder_launch(&run->builder, PLAN_FSDP1_COMPUTE);
    for (uint32_t i = 0; i <= n; i++) {
        plan_run_unref(run, padding[i]);
    }
    return flat;
}

void plan_fsdp1_flatten(PlanRun *run, uint32_t u, const PlanTensor *gradients) {
    PlanFsdp1 *f = run->state;
    PlanFsdp1Unit *unit = &f->units[u];
    PlanTensor flat = flat_gradient(run, f, u, gradients);
    uint32_t sum = unit->flat_grad.storage != PLAN_NONE ? plan_run_buffer_of(run, unit->flat_grad)
                   : f->shards                          ? PLAN_NONE
                                                        : unit->grad;
    if (sum == PLAN_NONE) {
        unit->flat_grad = flat;
        return;
    }
    plan_run_into(run, PLAN_OP_ACCUMULATE, PLAN_FSDP1_COMPUTE, plan_run_buffer_of(run, flat), sum,
                  f->flat.units[u].elements);
    unit->new_flat_grad = flat;
}

static void let_go_of_low(PlanRun *run, PlanFsdp1Unit *unit) {
    if (unit->holds_low) {
        plan_builder_free(&run->builder, unit->b.low_grad);
        unit->holds_low = false;
    }
}

/* With use_orig_params each parameter shows its part of the gradient. A parameter that is sharded,
 * or not computed in its own dtype, first gets an empty one of its own shape, which goes; offloaded
 * ones are the host's. Frozen ones of a trained unit show it too, but no reduced one. */
void plan_fsdp1_show_unreduced(PlanRun *run, uint32_t u) {
    PlanFsdp1 *f = run->state;
    PlanFsdp1Unit *unit = &f->units[u];
    bool is_first = unit->new_flat_grad.storage == PLAN_NONE && !plan_offload_has_params(run);
    for (uint32_t i = 0; i < run->units[u].parameters->len && is_first && f->keeps_views; i++) {
        uint32_t p = plan_run_parameter_of(run, u, i);
        if (unit->grad != PLAN_NONE && !plan_run_is_frozen(run, p)) {
            continue; /* it shows that */
        }
        const PlanGraphParameter *parameter = plan_run_parameter(run, p);
        uint64_t part = plan_flat_part(&f->flat, run, p, run->owner.rank % f->flat.ranks).elements;
        bool is_flat = f->shards && (parameter->n_dims > 1 || part < parameter->elements);
        if (part && (is_flat || f->casts)) {
            plan_run_unref(run, plan_run_new_empty(run, part, f->master, "empty_gradient"));
        }
    }
    unit->shows = true;
    let_go_of_low(run, unit);
}

void plan_fsdp1_let_go_of_new(PlanRun *run, uint32_t u) {
    plan_run_drop(run, &((PlanFsdp1 *)run->state)->units[u].new_flat_grad);
}

/* ---- reducing it ---------------------------------------------------------------------------- */

static void divide(PlanRun *run, uint8_t lane, uint32_t buffer, double by) {
    if (by > 1) {
        launch_in_place(run, lane, PLAN_OP_SCALE, 1 / by, all_of(run, buffer));
    }
}

static void all_reduce(PlanRun *run, uint8_t lane, uint32_t buffer, uint64_t ranks) {
    plan_builder_collective(&run->builder, PLAN_OP_ALL_REDUCE, PLAN_AXIS_REPLICATE, ranks,
                            PLAN_REDUCTION_SUM, NOTHING, all_of(run, buffer));
    plan_builder_launch(&run->builder, lane);
}

/* The flat gradient as it can be reduced: in the right dtype, and padded to what divides. */
static uint32_t make_ready(PlanRun *run, const PlanFsdp1 *f, uint32_t u, uint32_t flat_grad) {
    const PlanFsdp1Buffers *b = &f->units[u].b;
    uint64_t elements = f->flat.units[u].elements;
    bool fits = !f->pads_always && plan_builder_at(&run->builder, flat_grad)->dtype == f->reduce &&
                elements == f->flat.units[u].shard * f->flat.ranks;
    if (fits) {
        return flat_grad;
    }
    uint32_t from = flat_grad;
    if (b->cast_grad != PLAN_NONE) {
        plan_builder_alloc_empty(&run->builder, b->cast_grad);
        plan_run_into(run, PLAN_OP_CAST, PLAN_FSDP1_REDUCE, flat_grad, b->cast_grad, elements);
        from = b->cast_grad;
    }
    plan_builder_alloc_empty(&run->builder, b->ready);
    if (elements < plan_fsdp1_elements(run, b->ready)) {
        plan_fsdp1_fill(run, PLAN_FSDP1_REDUCE, b->ready);
    }
    plan_run_into(run, PLAN_OP_CAST, PLAN_FSDP1_REDUCE, from, b->ready, elements);
    return b->ready;
}

/* Returns the lane that did it. */
static uint8_t reduce_replicas(PlanRun *run, const PlanFsdp1 *f, uint32_t reduced) {
    uint8_t lane = plan_fsdp1_lane_of_replicas(f);
    if (f->is_of_2_0) {
        divide(run, lane, reduced, f->divisor.after);
        divide(run, lane, reduced, f->replicas_divisor.before);
        all_reduce(run, lane, reduced, f->replicas);
        divide(run, lane, reduced, f->replicas_divisor.after);
        return lane;
    }
    plan_builder_wait_lane(&run->builder, lane, PLAN_FSDP1_REDUCE);
    plan_builder_mark(&run->builder, reduced, lane);
    all_reduce(run, lane, reduced, f->replicas);
    return lane;
}

/* Returns the lane on which the unit's gradient is complete, in *ret_gradient. */
static uint8_t reduce_scatter(PlanRun *run, const PlanFsdp1 *f, uint32_t u, uint32_t ready,
                              uint32_t gradient) {
    const PlanFsdp1Buffers *b = &f->units[u].b;
    uint32_t reduced = b->reduced != PLAN_NONE ? b->reduced : gradient;
    uint8_t lane = PLAN_FSDP1_REDUCE;
    plan_builder_alloc_empty(&run->builder, reduced);
    if (f->is_of_1_13) {
        plan_fsdp1_fill(run, lane, reduced);
    }
    divide(run, lane, ready, f->divisor.before);
    plan_fsdp1_collective(run, lane, PLAN_OP_REDUCE_SCATTER, ready, reduced);
    if (f->reduces_replicas) {
        lane = reduce_replicas(run, f, reduced);
    }
    if (!f->reduces_replicas || !f->is_of_2_0) {
        divide(run, lane, reduced, f->divisor.after);
    }
    if (reduced != gradient) {
        plan_builder_alloc_empty(&run->builder, gradient);
        plan_run_into(run, PLAN_OP_CAST, lane, reduced, gradient,
                      plan_fsdp1_elements(run, gradient));
        if (lane == PLAN_FSDP1_ALL_REDUCE) {
            plan_builder_mark(&run->builder, reduced, lane);
        }
        plan_builder_free(&run->builder, reduced);
    }
    return lane;
}

/* Parameters of another dtype than their gradients first get one of their own, which goes, unless
 * they have any; offloaded ones are the host's. */
static void show_low(PlanRun *run, const PlanFsdp1 *f, uint32_t u, uint8_t lane) {
    PlanFsdp1Unit *unit = &f->units[u];
    bool is_new = f->shows_low && !unit->shows && !plan_offload_has_params(run);
    for (uint32_t i = 0; i < run->units[u].parameters->len && is_new; i++) {
        uint32_t p = plan_run_parameter_of(run, u, i);
        uint64_t part = plan_flat_part(&f->flat, run, p, run->owner.rank % f->flat.ranks).elements;
        if (part && !plan_run_is_frozen(run, p)) {
            uint32_t empty = plan_builder_new_empty(&run->builder, part, f->master,
                                                    PLAN_TEMPORARY_OP, lane, "empty_gradient");
            plan_builder_free(&run->builder, empty);
        }
    }
    unit->shows = true;
    let_go_of_low(run, unit);
}

/* Whether a trained parameter is such a view. */
static bool shows_gradients(const PlanRun *run, uint32_t u) {
    return plan_fsdp1_has_views(run, u, false);
}

/* Sums are made in the dtype of the shard. What parameters show stays until it is shown anew. */
void plan_fsdp1_raise(PlanRun *run, uint32_t u) {
    const PlanFsdp1 *f = run->state;
    PlanFsdp1Unit *unit = &f->units[u];
    const PlanFsdp1Buffers *b = &unit->b;
    if (unit->grad == PLAN_NONE || unit->grad != b->low_grad) {
        return;
    }
    plan_run_at_unit(run, u);
    plan_builder_alloc_empty(&run->builder, b->raised);
    plan_run_into(run, PLAN_OP_CAST, PLAN_FSDP1_COMPUTE, b->low_grad, b->raised,
                  plan_fsdp1_elements(run, b->low_grad));
    unit->grad = b->raised;
    unit->holds_low = true;
    if (!shows_gradients(run, u)) {
        let_go_of_low(run, unit);
    }
}

static bool has_gradient(const PlanRun *run, uint32_t u) {
    const PlanFsdp1 *f = run->state;
    return plan_unit_has_parameters(run, u) && f->units[u].grad != PLAN_NONE;
}

void plan_fsdp1_lower(PlanRun *run, uint32_t u) {
    const PlanFsdp1 *f = run->state;
    PlanFsdp1Unit *unit = &f->units[u];
    if (!f->keeps_low || !f->shards || !has_gradient(run, u)) {
        return;
    }
    plan_run_at_unit(run, u);
    plan_builder_alloc_empty(&run->builder, unit->b.low_grad);
    plan_run_into(run, PLAN_OP_CAST, PLAN_FSDP1_COMPUTE, unit->grad, unit->b.low_grad,
                  plan_fsdp1_elements(run, unit->b.low_grad));
    plan_builder_free(&run->builder, unit->grad);
    unit->grad = unit->b.low_grad;
}

static void reduce_sharded(PlanRun *run, const PlanFsdp1 *f, uint32_t u) {
    PlanFsdp1Unit *unit = &f->units[u];
    const PlanFsdp1Buffers *b = &unit->b;
    bool is_first = unit->grad == PLAN_NONE;
    uint32_t gradient = is_first ? b->grad : b->next_grad;
    uint32_t flat_grad = plan_run_buffer_of(run, unit->flat_grad);
    uint32_t ready = make_ready(run, f, u, flat_grad);
    uint8_t lane = reduce_scatter(run, f, u, ready, gradient);
    if (is_first) {
        unit->grad = gradient;
    } else {
        plan_run_into(run, PLAN_OP_ACCUMULATE, lane, gradient, unit->grad,
                      plan_fsdp1_elements(run, gradient));
    }
    if (plan_offload_has_params(run)) {
        PlanOperand all = {.buffer = gradient, .elements = plan_fsdp1_elements(run, gradient)};
        plan_offload_put_gradient(run, plan_run_parameter_of(run, u, 0), all, lane);
        plan_builder_mark(&run->builder, gradient, PLAN_FSDP1_REDUCE);
    }
    show_low(run, f, u, lane);
    if (f->is_of_2_0) {
        plan_builder_mark(&run->builder, flat_grad, PLAN_FSDP1_REDUCE);
        plan_run_drop(run, &unit->flat_grad);
    }
    plan_builder_free(&run->builder, b->cast_grad);
    if (ready != flat_grad) {
        plan_builder_free(&run->builder, ready);
    }
    if (!is_first) {
        plan_builder_free(&run->builder, gradient);
    }
    if (!f->is_of_2_0) {
        plan_builder_mark(&run->builder, flat_grad, PLAN_FSDP1_REDUCE);
        plan_run_drop(run, &unit->flat_grad);
    }
}

/* Without sharding: in place, or to a gradient in the dtype of the parameter. */
static void reduce_whole(PlanRun *run, const PlanFsdp1 *f, uint32_t u) {
    PlanFsdp1Unit *unit = &f->units[u];
    const PlanFsdp1Buffers *b = &unit->b;
    uint32_t sum = unit->flat_grad.storage != PLAN_NONE ? plan_run_buffer_of(run, unit->flat_grad)
                                                        : unit->grad;
    uint32_t ready = make_ready(run, f, u, sum), gradient = ready;
    divide(run, PLAN_FSDP1_REDUCE, ready, f->divisor.before);
    all_reduce(run, PLAN_FSDP1_REDUCE, ready, run->strategy->ranks);
    divide(run, PLAN_FSDP1_REDUCE, ready, f->divisor.after);
    if (b->grad != PLAN_NONE) {
        gradient = plan_fsdp1_lives(run, b->grad) ? b->next_grad : b->grad;
        plan_builder_alloc_empty(&run->builder, gradient);
        plan_run_into(run, PLAN_OP_CAST, PLAN_FSDP1_REDUCE, ready, gradient,
                      plan_fsdp1_elements(run, gradient));
        if (ready == sum) {
            plan_builder_mark(&run->builder, sum, PLAN_FSDP1_REDUCE);
        } else {
            plan_builder_free(&run->builder, ready);
        }
    }
    if (plan_offload_has_params(run)) {
        PlanOperand all = {.buffer = gradient, .elements = plan_fsdp1_elements(run, gradient)};
        plan_offload_put_gradient_and_wait(run, plan_run_parameter_of(run, u, 0), all,
                                           PLAN_FSDP1_REDUCE);
        plan_builder_mark(&run->builder, gradient, PLAN_FSDP1_REDUCE);
    }
    show_low(run, f, u, PLAN_FSDP1_REDUCE);
    plan_builder_mark(&run->builder, sum, PLAN_FSDP1_REDUCE);
    if (gradient != sum && unit->flat_grad.storage != PLAN_NONE) {
        plan_run_drop(run, &unit->flat_grad);
    } else if (gradient != sum) {
        plan_builder_free(&run->builder, sum);
    }
    unit->grad = gradient;
}

void plan_fsdp1_reduce(PlanRun *run, uint32_t u) {
    const PlanFsdp1 *f = run->state;
    plan_builder_wait_lane(&run->builder, PLAN_FSDP1_REDUCE, PLAN_FSDP1_COMPUTE);
    if (f->shards) {
        reduce_sharded(run, f, u);
    } else {
        reduce_whole(run, f, u);
    }
}

void plan_fsdp1_drop_gradient(PlanRun *run, uint32_t u) {
    PlanFsdp1Unit *unit = &((PlanFsdp1 *)run->state)->units[u];
    if (!has_gradient(run, u)) {
        return;
    }
    plan_run_at_unit(run, u);
    if (unit->flat_grad.storage != PLAN_NONE) {
        plan_run_drop(run, &unit->flat_grad);
    } else {
        plan_builder_free(&run->builder, unit->grad);
    }
    unit->grad = PLAN_NONE;
    unit->shows = false;
}

void plan_fsdp1_drop_gradients(PlanRun *run) {
    for (uint32_t u = 0; u < run->n_units; u++) {
        plan_fsdp1_drop_gradient(run, u);
    }
}

/* A unit whose parameters show nothing on this rank counts as one whose gradients were dropped. */
void plan_fsdp1_drop_unseen_gradients(PlanRun *run) {
    const PlanFsdp1 *f = run->state;
    for (uint32_t u = 0; u < run->n_units && f->keeps_views; u++) {
        bool is_reduced = f->units[u].flat_grad.storage == PLAN_NONE;
        if (has_gradient(run, u) && is_reduced && !shows_gradients(run, u)) {
            plan_fsdp1_drop_gradient(run, u);
        }
    }
}
