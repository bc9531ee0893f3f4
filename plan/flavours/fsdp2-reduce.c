/* plan/flavours/fsdp2-reduce.c - from the packed gradients of a unit to those of its shards.
 *
 * PyTorch 2.4 drops what it packed when the call returns. Later versions drop it when the next unit
 * is reduced; 2.12 only when that has been (hold_reduced).
 * All sharded gradients of a unit lie in one buffer. With replicas the reduced shard is reduced
 * among them (hybrid's only one: with itself) on a lane of its own; its buffer is held to the end
 * of backward, so that no other unit's reduce-scatter is given memory that is still being reduced.
 * (2.4 did not hold it, where it is not the gradient itself: a race that was mended in 2.6, and
 * that no plan may have.)
 * A pass that reduces, but not among the replicas (accumulate_sync=scatter), leaves the reduced
 * shard as it is, to which later passes add theirs; the last takes it in before replicas reduce.
 * Where sharded gradients exist already (of an earlier pass, or kept), the new ones are added to
 * them.
 * fp16 could overflow, so it is divided before and after, by about the root of the ranks each;
 * other dtypes are averaged by the collective.
 */
#include "plan/autograd/offload.h"
#include "plan/flavours/divisor.h"
#include "plan/flavours/fsdp2.h"

/* fp16 alone is divided in two parts. */
static PlanDivisor divisor_of(const PlanFsdp2 *f) {
    return f->reduce == PLAN_FP16 ? plan_divisor_of(f->ranks * f->replicas) : (PlanDivisor){1, 1};
}

static void divide(PlanRun *run, uint8_t lane, uint32_t buffer, double by) {
    if (by != 1) {
        launch_in_place(run, lane, PLAN_OP_SCALE, 1.0 / by, all_of(run, buffer));
    }
}

static uint32_t new_shards(PlanRun *run, const PlanFsdp2Unit *unit, PlanDtype dtype, uint8_t lane,
                           PlanSubcategory sub) {
    return plan_builder_new_empty(&run->builder, unit->trained, dtype, sub, lane, "gradients");
}

/* The replicas reduce it in a later pass. */
static bool stays_in_group(const PlanRun *run) {
    const PlanFsdp2 *f = run->state;
    return f->reduces_replicas && !run->pass.is_last &&
           run->strategy->accumulate_sync == PLAN_SYNC_SCATTER;
}

/* What is reduced to is the gradient, unless its cast, its copy on the host or its sum with an
 * earlier one is. Nobody tells the difference where it is a reduce-scatter's output. */
static PlanSubcategory category_of_reduced(PlanRun *run, uint32_t u) {
    const PlanFsdp2 *f = run->state;
    bool moves_on = f->reduce != f->master || plan_offload_has_params(run);
    bool is_added = f->units[u].gradients != PLAN_NONE;
    if (f->units[u].communicates) {
        return PLAN_GRADIENTS_SHARDED;
    }
    if (stays_in_group(run)) {
        return PLAN_TEMPORARY_OP;
    }
    if (f->reduces_replicas) {
        return moves_on || is_added ? PLAN_COMMUNICATION_REPLICATE : PLAN_GRADIENTS_SHARDED;
    }
    return moves_on || is_added ? PLAN_TEMPORARY_OP : PLAN_GRADIENTS_SHARDED;
}

/* On one rank what would be reduced is copied; divided first, where it is. */
static void copy_alone(PlanRun *run, const PlanFsdp2Unit *unit, uint32_t reduced) {
    PlanFsdp2 *f = run->state;
    uint32_t from = f->reducing;
    if (unit->divisor > 0) {
        double factor = 1 / unit->divisor;
        from = plan_builder_new(&run->builder, unit->trained, f->reduce, PLAN_TEMPORARY_OP,
                                PLAN_FSDP2_REDUCE, "divided");
        LAUNCH_ON(run, PLAN_FSDP2_REDUCE, PLAN_OP_TIMES_NUMBER, PLAN_AXIS_NONE,
                  DIMS((int64_t)unit->trained), &factor, all_of(run, f->reducing),
                  all_of(run, from));
    }
    plan_run_into(run, PLAN_OP_COPY, PLAN_FSDP2_REDUCE, from, reduced, unit->trained);
    if (from != f->reducing) {
        plan_builder_free(&run->builder, from);
    }
}

static uint32_t reduce_scatter(PlanRun *run, uint32_t u) {
    PlanFsdp2 *f = run->state;
    const PlanFsdp2Unit *unit = &f->units[u];
    if (!f->is_of_2_4) {
        plan_builder_wait_lane(&run->builder, PLAN_FSDP2_REDUCE, PLAN_FSDP2_COMPUTE);
    }
    uint32_t reduced =
        new_shards(run, &f->units[u], f->reduce, PLAN_FSDP2_REDUCE, category_of_reduced(run, u));
    divide(run, PLAN_FSDP2_REDUCE, f->reducing, divisor_of(f).before);
    if (!unit->communicates) {
        copy_alone(run, unit, reduced);
    } else {
        double average = unit->divisor > 0 ? -unit->divisor : f->reduce != PLAN_FP16;
        plan_builder_collective(&run->builder, PLAN_OP_REDUCE_SCATTER, unit->axis, unit->ranks,
                                average, all_of(run, f->reducing), all_of(run, reduced));
        plan_builder_launch(&run->builder, PLAN_FSDP2_REDUCE);
    }
    f->reduce_event = plan_builder_record(&run->builder, PLAN_FSDP2_REDUCE);
    return reduced;
}

/* Gradients of experts have been divided for all ranks by then. */
static void all_reduce(PlanRun *run, uint32_t u, uint32_t reduced) {
    PlanFsdp2 *f = run->state;
    double average = f->reduce != PLAN_FP16 && f->units[u].divisor == 0;
    plan_builder_wait_lane(&run->builder, PLAN_FSDP2_REPLICATE, PLAN_FSDP2_REDUCE);
    plan_builder_collective(&run->builder, PLAN_OP_ALL_REDUCE, PLAN_AXIS_REPLICATE, f->replicas,
                            average, NOTHING, all_of(run, reduced));
    plan_builder_launch(&run->builder, PLAN_FSDP2_REPLICATE);
    f->units[u].all_reduced = reduced;
}

static void add_shards(PlanRun *run, uint32_t u, uint8_t lane, uint32_t gradients) {
    const PlanFsdp2 *f = run->state;
    uint32_t n;
    g_autofree uint32_t *trained = plan_fsdp2_trained(run, u, &n);
    for (uint32_t i = 0; i < n; i++) {
        PlanOperand from = plan_fsdp2_gradient_in(f, trained[i], gradients);
        if (from.elements) {
            LAUNCH_ON(run, lane, PLAN_OP_ACCUMULATE, PLAN_AXIS_NONE, DIMS((int64_t)from.elements),
                      NULL, from, plan_fsdp2_gradient_in(f, trained[i], f->units[u].gradients));
        }
    }
}

static void send_to_host(PlanRun *run, uint32_t u, uint8_t lane, uint32_t gradients) {
    PlanFsdp2 *f = run->state;
    uint32_t n;
    g_autofree uint32_t *trained = plan_fsdp2_trained(run, u, &n);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t p = trained[i];
        PlanFsdp2Parameter *mine = &f->parameters[p];
        PlanOperand gradient = plan_fsdp2_gradient_in(f, p, gradients);
        if (mine->local && f->units[u].on_host) {
            plan_offload_add_gradient(run, p, gradient, lane);
        } else if (mine->local) {
            plan_offload_put_gradient(run, p, gradient, lane);
        }
        if (!f->units[u].on_host) {
            mine->offload_event = plan_builder_record(&run->builder, lane);
        }
    }
    f->units[u].on_host = true;
}

static void wait_for_host(PlanRun *run, uint32_t u) {
    PlanFsdp2 *f = run->state;
    for (uint32_t i = 0; i < run->units[u].parameters->len; i++) {
        uint32_t *event = &f->parameters[plan_run_parameter_of(run, u, i)].offload_event;
        if (*event != PLAN_NONE) {
            plan_builder_host_wait(&run->builder, *event, 0);
            *event = PLAN_NONE;
        }
    }
}

/* 2.4 waits for each unit's at the end of backward, later versions for the last. */
static uint32_t *ready_event(PlanFsdp2 *f, PlanFsdp2Unit *unit) {
    return f->is_of_2_4 ? &unit->ready_event : &f->post_reduce_event;
}

/* All that was reduced within the group lies in one buffer of each pass. */
static void add_partial(PlanRun *run, const PlanFsdp2Unit *unit, uint32_t from, uint32_t to) {
    plan_run_into(run, PLAN_OP_ACCUMULATE, PLAN_FSDP2_REDUCE, from, to, unit->trained);
}

/* Returns what goes when the function returns; PLAN_NONE where that is what stays. */
static uint32_t reduce_in_group(PlanRun *run, uint32_t u) {
    PlanFsdp2 *f = run->state;
    PlanFsdp2Unit *unit = &f->units[u];
    uint32_t reduced = reduce_scatter(run, u);
    bool is_first = unit->partial == PLAN_NONE;
    if (is_first) {
        unit->partial = reduced;
    } else {
        add_partial(run, unit, reduced, unit->partial);
    }
    *ready_event(f, unit) = plan_builder_record(&run->builder, PLAN_FSDP2_REDUCE);
    return is_first ? PLAN_NONE : reduced;
}

/* Returns the unit's new gradients in the dtype of the shards. What was reduced in another goes
 * when it has been cast, in 2.15 when the function returns. */
static uint32_t reduce(PlanRun *run, uint32_t u) {
    PlanFsdp2 *f = run->state;
    PlanFsdp2Unit *unit = &f->units[u];
    uint32_t reduced = reduce_scatter(run, u), gradients = reduced;
    uint8_t lane = PLAN_FSDP2_REDUCE;
    if (unit->partial != PLAN_NONE) {
        add_partial(run, unit, unit->partial, reduced);
    }
    if (f->reduces_replicas) {
        lane = PLAN_FSDP2_REPLICATE;
        all_reduce(run, u, reduced);
    }
    divide(run, lane, reduced, divisor_of(f).after);
    if (f->reduce != f->master) {
        bool is_first = unit->gradients == PLAN_NONE && !plan_offload_has_params(run);
        gradients = new_shards(run, unit, f->master, lane,
                               is_first ? PLAN_GRADIENTS_SHARDED : PLAN_TEMPORARY_OP);
        plan_run_into(run, PLAN_OP_CAST, lane, reduced, gradients, unit->trained);
    }
    bool goes = f->reduce != f->master && !f->reduces_replicas;
    plan_builder_free(&run->builder, goes && !f->is_of_2_15 ? reduced : PLAN_NONE);
    if (plan_offload_has_params(run)) {
        send_to_host(run, u, lane, gradients);
    } else if (unit->gradients != PLAN_NONE) {
        add_shards(run, u, lane, gradients);
    }
    *ready_event(f, unit) = plan_builder_record(&run->builder, lane);
    plan_builder_free(&run->builder, goes && f->is_of_2_15 ? reduced : PLAN_NONE);
    return gradients;
}

/* Waits for the reduction of the unit before; returns what that packed, or PLAN_NONE. */
static uint32_t wait_for_reduced(PlanRun *run) {
    PlanFsdp2 *f = run->state;
    uint32_t packed = f->reducing;
    if (packed != PLAN_NONE) {
        plan_builder_wait(&run->builder, PLAN_FSDP2_COMPUTE, f->reduce_event);
    }
    f->reducing = PLAN_NONE;
    return packed;
}

/* The function has returned, and what it made is added to what there was, or is the gradients. */
static void let_go_of_reduced(PlanRun *run, uint32_t u, uint32_t gradients) {
    PlanFsdp2Unit *unit = &((PlanFsdp2 *)run->state)->units[u];
    if (unit->gradients == PLAN_NONE && !plan_offload_has_params(run)) {
        unit->gradients = gradients;
    } else if (gradients != unit->all_reduced) {
        plan_builder_free(&run->builder, gradients);
    }
    plan_builder_drop(&run->builder, &unit->partial);
}

static void reduce_unit(PlanRun *run, uint32_t u) {
    PlanFsdp2 *f = run->state;
    PlanTensor *held = plan_fsdp2_pack_gradients(run, u);
    bool in_group = stays_in_group(run);
    uint32_t gradients = in_group ? reduce_in_group(run, u) : reduce(run, u);
    if (held) {
        plan_run_drop(run, held);
    }
    if (f->is_of_2_4) {
        plan_builder_drop(&run->builder, &f->reducing);
    }
    if (in_group) {
        plan_builder_free(&run->builder, gradients);
    } else {
        let_go_of_reduced(run, u, gradients);
    }
}

/* It waits for the unit before also where nothing of this one is trained. */
static void reduce_after_the_unit_before(PlanRun *run, uint32_t u) {
    PlanFsdp2 *f = run->state;
    bool holds = run->strategy->hold_reduced == PLAN_YES;
    uint32_t before = wait_for_reduced(run);
    plan_builder_free(&run->builder, holds ? PLAN_NONE : before);
    if (f->units[u].trained) {
        reduce_unit(run, u);
    }
    plan_builder_free(&run->builder, holds ? before : PLAN_NONE);
}

void plan_fsdp2_post_backward(PlanRun *run, uint32_t u) {
    PlanFsdp2 *f = run->state;
    if (!plan_unit_has_parameters(run, u) || f->units[u].reduced) {
        return;
    }
    f->units[u].reduced = true;
    plan_fsdp2_take_gradients(run, u);
    /* Stages keep units whole for the next microbatch. */
    bool keeps = run->owner.stages
                     ? !run->pass.reduces
                     : !run->pass.is_last && run->strategy->reshard_after_backward == PLAN_NO;
    if (!keeps) {
        plan_fsdp2_reshard(run, u);
    }
    (run->pass.reduces ? reduce_after_the_unit_before : plan_fsdp2_leave_gradients)(run, u);
}

/* Frees a unit prefetched for a backward that never reached it, because nothing before it is
 * trained. */
static void let_go_of_unused(PlanRun *run, uint32_t u) {
    PlanFsdp2Unit *unit = &((PlanFsdp2 *)run->state)->units[u];
    if (unit->unsharded || (unit->gathered == PLAN_NONE && !unit->pending)) {
        return;
    }
    plan_builder_wait(&run->builder, PLAN_FSDP2_COMPUTE, unit->gather_event);
    if (unit->gathered != PLAN_NONE) {
        plan_fsdp2_free_gathered(run, u);
        plan_fsdp2_forget_scales(run, u);
    }
    unit->pending = false;
}

/* A root without parameters has nothing to finish. */
static void finish_unit(PlanRun *run, uint32_t u) {
    PlanFsdp2 *f = run->state;
    PlanFsdp2Unit *unit = &f->units[u];
    if (!plan_unit_has_parameters(run, u)) {
        return;
    }
    uint32_t *ready = ready_event(f, unit);
    if (*ready != PLAN_NONE) {
        plan_builder_wait(&run->builder, PLAN_FSDP2_COMPUTE, *ready);
        *ready = PLAN_NONE;
    }
    if (unit->all_reduced != PLAN_NONE && unit->all_reduced != unit->gradients) {
        plan_builder_free(&run->builder, unit->all_reduced);
    }
    unit->all_reduced = PLAN_NONE;
    wait_for_host(run, u);
    let_go_of_unused(run, u);
    plan_fsdp2_leave_parts(run, u);
}

/* The root's callback goes over all units: it completes those whose inputs wanted no gradient, and
 * waits for what has been reduced so far. 2.15 does the one for all of them before the other. */
void plan_fsdp2_end_backward(PlanRun *run) {
    PlanFsdp2 *f = run->state;
    for (uint32_t u = 0; u < run->n_units; u++) {
        plan_run_at_unit(run, u);
        plan_fsdp2_post_backward(run, u);
        if (!f->is_of_2_15) {
            finish_unit(run, u);
        }
    }
    for (uint32_t u = 0; u < run->n_units && f->is_of_2_15; u++) {
        plan_run_at_unit(run, u);
        finish_unit(run, u);
    }
    for (uint32_t u = 0; u < run->n_units; u++) {
        f->units[u].reduced = f->units[u].in_backward = false;
    }
    f->again = PLAN_NONE;
    plan_run_at_unit(run, 0);
    plan_builder_free(&run->builder, wait_for_reduced(run));
}
