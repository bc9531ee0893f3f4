/* plan/flavours/fsdp1.c - FullyShardedDataParallel of PyTorch 2.13, step by step.
 *
 * Order (torch/distributed/fsdp/_runtime_utils.py and _flat_param.py, and recordings of it):
 *   construction   unit by unit, the shard alone or, of parameters that are on the GPU (init), the
 *                  flat one they are copied to and this rank's part of it; then the whole ones go.
 *   unshard(u)     pre-unshard lane: with mixed precision, cast of the shard; then the host waits
 *                  as the limiter says, also when there is nothing to gather; unshard lane: flat
 *                  parameter, all-gather; the cast shard is marked and freed at once.
 *   forward        unshard, compute waits for the whole unshard lane; with forward prefetch,
 *                  unshard of the next; forward; the flat parameter is marked for compute and
 *                  freed, the root's is kept.
 *   pre-backward   unshard unless prefetched, compute waits for the unshard lane; prefetch "pre"
 *                  of the unit before in post-forward order.
 *   backward       each parameter has its gradient; when all of the unit are there they are made
 *                  one flat gradient, with zeros for the padding.
 *   post-backward  the flat parameter freed; prefetch "post"; on the reduce lane: cast, pad,
 *                  divide, reduce-scatter, divide, cast; the flat gradient is marked and freed.
 * Marks delay the reuse of what is freed until the other lane has come so far, which is why active
 * memory exceeds allocated memory here, and what the limiter is for.
 *
 * Offloaded (CPUOffload), the shard comes from the host's memory on the pre-unshard lane, also
 * where nothing is gathered; the reduced gradient leaves on the lane that reduced it and dies when
 * the host has waited for all, at the end of backward.
 *
 * PyTorch 2.0 and 1.13 (fully_sharded_data_parallel.py of 1.13, recordings of 2.0.1 and 1.13.1;
 * 2.4 is as 2.13):
 *   unshard        also of what has been prefetched: nothing is gathered, but the limiter's queue
 *                  loses one more. 1.13 waits as the limiter says before it casts, and does not
 *                  mark the cast shard.
 *   forward        only the root prefetches: the others look into a list that is the root's own.
 *   post-backward  replicas reduce on the reduce lane, with divisions of their own; the flat
 *                  gradient is marked before what was cast and padded goes. 1.13 pads also by
 *                  nothing, which copies the gradient, and zeroes what is reduced to.
 *   collectives    had a lane of c10d's own (no recording sees it).
 *
 * Without sharding (NO_SHARD, also for one rank) the flat parameter is whole everywhere, its
 * gradient is all-reduced, and the cast parameter takes the place of the gathered one.
 */
#include "plan/flavours/fsdp1.h"
#include "plan/autograd/offload.h"
#include "plan/autograd/unit.h"
#include "plan/flavours/whole.h"
#include "plan/optimizer/clip.h"
#include "plan/optimizer/norms.h"
#include "plan/optimizer/on-host.h"

/* An evaluation is part of the step behind it; its frees are numbered behind that step's own, so
 * that those have the same numbers in every step. */
static void begin_limiter(PlanRun *run) {
    PlanFsdp1 *f = run->state;
    if (run->evaluation.precedes) {
        plan_limiter_count_from(&f->limiter, 0);
        return;
    }
    if (run->builder.section == PLAN_SECTION_STEADY) {
        plan_limiter_settle(&f->limiter);
    }
    plan_limiter_begin_step(&f->limiter);
    if (run->graph->evaluates) {
        plan_limiter_count_from(&f->limiter, f->frees_of_step);
    }
}

static void begin_pass(PlanRun *run) {
    PlanFsdp1 *f = run->state;
    bool begins_step = run->pass.number == 0;
    if (begins_step) {
        begin_limiter(run);
    }
    if (begins_step && run->builder.section == PLAN_SECTION_FIRST) {
        plan_fsdp1_initialize(run);
    }
    plan_run_at_unit(run, 0);
    plan_builder_wait_lane(&run->builder, PLAN_FSDP1_UNSHARD, PLAN_FSDP1_COMPUTE);
    plan_builder_wait_lane(&run->builder, PLAN_FSDP1_PRE_UNSHARD, PLAN_FSDP1_COMPUTE);
    if (begins_step && run->strategy->zero_grad == PLAN_ZERO_DROP) {
        plan_fsdp1_drop_gradients(run);
    } else {
        plan_fsdp1_drop_unseen_gradients(run);
    }
    g_array_set_size(f->post_forward_order, 0);
    for (uint32_t u = 0; u < run->n_units; u++) {
        f->units[u].awaits_forward = true;
    }
}

/* With use_orig_params, zero_grad drops views; the flat gradients go when the root runs again. */
static void drop_gradients(PlanRun *run) {
    for (uint32_t p = 0; p < run->graph->parameters.len; p++) {
        if (plan_run_is_ignored(run, p)) {
            plan_whole_drop_gradient(run, p);
        }
    }
    if (!((PlanFsdp1 *)run->state)->keeps_views) {
        plan_fsdp1_drop_gradients(run);
    }
}

/* ---- forward -------------------------------------------------------------------------------- */

static uint32_t next_in(const GArray *order, uint32_t u) {
    for (uint32_t i = 0; i + 1 < order->len; i++) {
        if (g_array_index(order, uint32_t, i) == u) {
            return g_array_index(order, uint32_t, i + 1);
        }
    }
    return PLAN_NONE;
}

static uint32_t before_in(const GArray *order, uint32_t u) {
    for (uint32_t i = 1; i < order->len; i++) {
        if (g_array_index(order, uint32_t, i) == u) {
            return g_array_index(order, uint32_t, i - 1);
        }
    }
    return PLAN_NONE;
}

/* A second forward passes by a unit whose backward has begun (HandleTrainingState.BACKWARD_PRE):
 * the last one inside of a block that is computed again, whose gradient asked for it. */
static bool is_passed_by(const PlanRun *run, uint32_t u) {
    const PlanFsdp1 *f = run->state;
    return run->builder.phase == PLAN_PHASE_RECOMPUTE && f->units[u].is_in_backward &&
           !f->is_of_2_0;
}

static void prefetch_after(PlanRun *run, uint32_t u) {
    const PlanFsdp1 *f = run->state;
    uint32_t next = next_in(f->pre_forward_order, u);
    if (next != PLAN_NONE && f->units[next].awaits_forward) {
        plan_fsdp1_prefetch(run, next);
    }
}

static void pre_forward(PlanRun *run, uint32_t u) {
    PlanFsdp1 *f = run->state;
    if (!plan_unit_has_parameters(run, u) || is_passed_by(run, u)) {
        return;
    }
    if (f->is_of_2_0 || !f->units[u].prefetched) {
        plan_fsdp1_unshard(run, u);
    }
    plan_builder_wait_lane(&run->builder, PLAN_FSDP1_COMPUTE, PLAN_FSDP1_UNSHARD);
    f->units[u].awaits_forward = false;
    if (!f->order_known && run->builder.phase != PLAN_PHASE_RECOMPUTE) {
        g_array_append_val(f->pre_forward_order, u);
    } else if (run->strategy->forward_prefetch.choice == PLAN_FORWARD_PREFETCH_YES &&
               (u == 0 || !f->is_of_2_0)) {
        prefetch_after(run, u);
    }
}

/* Within a reentrant checkpoint the first forward's results want no gradient. */
static bool waits_for_second_forward(const PlanRun *run, uint32_t u) {
    bool is_first = run->modules.checkpoints_reenter && run->builder.phase != PLAN_PHASE_RECOMPUTE;
    return is_first &&
           plan_checkpoint_is_around(run, plan_checkpointed_around(run, run->units[u].module), u);
}

static void post_forward(PlanRun *run, uint32_t u) {
    PlanFsdp1 *f = run->state;
    if (!plan_unit_has_parameters(run, u) || is_passed_by(run, u)) {
        return;
    }
    plan_fsdp1_reshard(run, u, u != 0 && plan_fsdp1_reshards(run->strategy));
    f->units[u].awaits_backward = run->units[u].is_returned_to && !waits_for_second_forward(run, u);
    if (!f->is_of_2_0 || run->builder.phase != PLAN_PHASE_RECOMPUTE) {
        g_array_append_val(f->post_forward_order, u);
    }
}

/* ---- backward ------------------------------------------------------------------------------- */

static void prefetch_before(PlanRun *run, uint32_t u) {
    PlanFsdp1 *f = run->state;
    uint32_t before = before_in(f->post_forward_order, u);
    if (before != PLAN_NONE && f->units[before].awaits_backward) {
        plan_fsdp1_prefetch(run, before);
    }
}

static void pre_backward(PlanRun *run, uint32_t u) {
    PlanFsdp1 *f = run->state;
    PlanFsdp1Unit *unit = &f->units[u];
    if (!plan_unit_has_parameters(run, u) || !unit->awaits_backward) {
        return;
    }
    if (f->is_of_2_0 || !unit->prefetched) {
        plan_fsdp1_unshard(run, u);
    }
    plan_builder_wait_lane(&run->builder, PLAN_FSDP1_COMPUTE, PLAN_FSDP1_UNSHARD);
    unit->awaits_backward = false;
    unit->is_in_backward = true;
    if (run->strategy->backward_prefetch == PLAN_PREFETCH_PRE) {
        prefetch_before(run, u);
    }
    plan_fsdp1_raise(run, u);
}

static void post_backward(PlanRun *run, uint32_t u) {
    ((PlanFsdp1 *)run->state)->units[u].is_in_backward = false;
    plan_fsdp1_reshard(run, u, run->pass.reduces || plan_fsdp1_reshards(run->strategy));
    if (run->strategy->backward_prefetch == PLAN_PREFETCH_POST) {
        prefetch_before(run, u);
    }
    if (run->pass.reduces) {
        plan_fsdp1_reduce(run, u);
    } else {
        plan_fsdp1_show_unreduced(run, u);
    }
    plan_fsdp1_let_go_of_new(run, u);
}

static void arguments_ready(PlanRun *run, uint32_t u) {
    uint32_t context = run->builder.unit;
    plan_run_at_unit(run, u);
    ((PlanFsdp1 *)run->state)->units[u].is_in_backward = false;
    plan_fsdp1_reshard(run, u, run->pass.reduces || plan_fsdp1_reshards(run->strategy));
    if (run->strategy->backward_prefetch == PLAN_PREFETCH_POST) {
        prefetch_before(run, u);
    }
    plan_run_at_unit(run, context);
}

/* Drops a frozen unit that is still whole at the end of backward: the root, whose arguments want no
 * gradient, or a unit that forward left whole and backward did not come to. */
static void reshard_the_rest(PlanRun *run, uint32_t u) {
    if (((PlanFsdp1 *)run->state)->units[u].gathered && plan_unit_is_frozen(run, u)) {
        plan_run_at_unit(run, u);
        plan_fsdp1_reshard(run, u, run->pass.reduces || plan_fsdp1_reshards(run->strategy));
    }
}

/* The host has its gradient: what was sent goes. */
static void hand_over(PlanRun *run, uint32_t u) {
    const PlanFsdp1 *f = run->state;
    plan_fsdp1_drop_gradient(run, u);
    if (f->keeps_low && f->shards && plan_unit_has_parameters(run, u) &&
        !plan_unit_is_frozen(run, u)) {
        plan_run_at_unit(run, u);
        plan_offload_round_gradient(run, plan_run_parameter_of(run, u, 0), f->flat.units[u].shard,
                                    f->param);
    }
}

/* Units are made ready for the optimizer one by one. */
static void end_backward(PlanRun *run) {
    PlanFsdp1 *f = run->state;
    bool offloads = plan_offload_has_params(run);
    plan_run_at_unit(run, 0);
    if (run->pass.reduces) {
        plan_builder_wait_lane(&run->builder, PLAN_FSDP1_COMPUTE, PLAN_FSDP1_REDUCE);
    }
    if (run->pass.reduces && f->shards && plan_fsdp1_lane_of_replicas(f) == PLAN_FSDP1_ALL_REDUCE) {
        plan_builder_wait_lane(&run->builder, PLAN_FSDP1_COMPUTE, PLAN_FSDP1_ALL_REDUCE);
    }
    if (run->pass.reduces && offloads) { /* the host, until all gradients are its own */
        plan_builder_host_wait_lane(&run->builder, PLAN_FSDP1_COMPUTE);
    }
    for (uint32_t u = 0; u < run->n_units; u++) {
        reshard_the_rest(run, u);
        if (run->pass.reduces && offloads) {
            hand_over(run, u);
        } else if (run->pass.reduces) {
            plan_fsdp1_lower(run, u);
        }
        f->units[u].prefetched = f->units[u].is_in_backward = false;
    }
    f->order_known = true;
}

/* ---- what compute and optimizer see --------------------------------------------------------- */

static PlanOperand parameter(PlanRun *run, uint32_t p) {
    PlanFsdp1 *f = run->state;
    if (plan_run_is_ignored(run, p)) {
        return plan_ignored_operand(run, p);
    }
    uint32_t full = f->units[run->unit_of_parameter[p]].b.full;
    PlanDtype dtype = (PlanDtype)plan_builder_at(&run->builder, full)->dtype;
    return (PlanOperand){.buffer = full,
                         .offset_bytes = f->flat.start[p] * plan_dtype_bytes(dtype),
                         .elements = plan_run_parameter(run, p)->elements};
}

/* The optimizer sees views of the shard, or the shard itself in one parameter's place. */
static PlanOperand part_of(PlanRun *run, uint32_t p, uint32_t buffer) {
    const PlanFsdp1 *f = run->state;
    if (f->keeps_views) {
        PlanFlatPart part = plan_flat_part(&f->flat, run, p, run->owner.rank % f->flat.ranks);
        PlanDtype dtype = (PlanDtype)plan_builder_at(&run->builder, buffer)->dtype;
        return (PlanOperand){.buffer = buffer,
                             .offset_bytes = part.offset * plan_dtype_bytes(dtype),
                             .elements = part.elements};
    }
    uint32_t u = f->shown[p];
    return (PlanOperand){.buffer = buffer, .elements = u == PLAN_NONE ? 0 : f->flat.units[u].shard};
}

static const PlanFsdp1Unit *seen_at(const PlanRun *run, uint32_t p) {
    const PlanFsdp1 *f = run->state;
    uint32_t u = f->keeps_views ? PLAN_NONE : f->shown[p];
    return &f->units[u == PLAN_NONE ? run->unit_of_parameter[p] : u];
}

static PlanOperand owned(PlanRun *run, uint32_t p) {
    return plan_run_is_ignored(run, p) ? plan_ignored_operand(run, p)
                                       : part_of(run, p, seen_at(run, p)->b.local);
}

static PlanOperand gradient(PlanRun *run, uint32_t p) {
    return plan_run_is_ignored(run, p) ? plan_whole_gradient(run, p)
                                       : part_of(run, p, seen_at(run, p)->grad);
}

static void clip(PlanRun *run) {
    PlanFsdp1 *f = run->state;
    if (f->zero.storage == PLAN_NONE && plan_strategy_is_after(run->strategy, PLAN_PYTORCH_2_4)) {
        f->zero = plan_clip_new_zero(run);
    }
    bool is_summed = f->shards || f->is_of_1_13; /* which adds whole gradients up, too */
    PlanAxis axis = f->shards ? PLAN_AXIS_SHARD : PLAN_AXIS_REPLICATE;
    uint64_t ranks = f->shards ? f->flat.ranks : f->replicas;
    if (plan_offload_has_params(run) && is_summed) {
        plan_offload_clip_flat(run, axis, ranks, f->zero);
    } else if (plan_offload_has_params(run)) {
        plan_offload_clip_norm(run, 1);
    } else if (is_summed) {
        plan_clip_flat(run, axis, ranks, f->zero);
    } else {
        plan_clip_whole(run);
    }
}

/* Whether memory is where it was only after two steps. Without sharding it moves to another buffer
 * with each reduction of a kept gradient that is of another dtype, and with each forward that has
 * its parameters from the host. */
static bool memory_moves(const PlanRun *run) {
    const PlanFsdp1 *f = run->state;
    const PlanStrategy *s = run->strategy;
    uint64_t reductions = s->accumulate_sync == PLAN_SYNC_EVERY ? s->accumulate : 1;
    bool offloads = plan_offload_has_params(run);
    bool by_reductions = s->zero_grad == PLAN_ZERO_KEEP && f->reduce != f->master &&
                         !f->keeps_low && !offloads && reductions % 2;
    return !f->shards && (by_reductions || (offloads && !f->casts && s->accumulate % 2));
}

static bool is_steady(const PlanRun *run) {
    const PlanFsdp1 *f = run->state;
    return !memory_moves(run) && plan_limiter_is_steady(&f->limiter);
}

static const char *const lanes[] = {"compute", "pre_unshard", "unshard",
                                    "reduce",  "all_reduce",  NULL};
static const char *const lanes_2_0[] = {"compute",    "pre_unshard", "unshard", "reduce",
                                        "all_reduce", "c10d",        NULL};

const PlanFlavour plan_flavour_fsdp1 = {
    .name = "fsdp1",
    .lanes = lanes,
    .lanes_2_0 = lanes_2_0,
    .growth = {.instrs = {9, 9},
               .buffers = {6, 6},
               .ops = {6, 6},
               .operands = {17, 17},
               .parts = {3, 3},
               .attrs = {2, 2},
               .dims = {7, 0}},
    .shapes_of_ranks = plan_fsdp1_shapes_of_ranks,
    .shards_of_units = plan_fsdp1_shards_of_units,
    .construct = plan_fsdp1_construct,
    .begin_pass = begin_pass,
    .begin_evaluation = begin_pass,
    .pre_forward = pre_forward,
    .post_forward = post_forward,
    .pre_backward = pre_backward,
    .post_backward = post_backward,
    .flatten = plan_fsdp1_flatten,
    .arguments_ready = arguments_ready,
    .end_backward = end_backward,
    .parameter = parameter,
    .owned = owned,
    .gradient = gradient,
    .clip = clip,
    .drop_gradients = drop_gradients,
    .is_steady = is_steady,
    .clear = plan_fsdp1_clear,
};
