/* plan/flavours/fsdp2.c - fully_shard of PyTorch 2.13, step by step.
 *
 * Order (torch/distributed/fsdp/_fully_shard/, and recordings of it):
 *   unshard(u)     copy-in lane: gather buffer, copy-in; gather lane: waits copy-in, all-gather
 *   forward        unshard, then copy-out on compute. The unit before still holds its gather
 *                  buffer, so that the next copy-in can overlap this copy-out; it is freed at the
 *                  end of this copy-out. There is no forward prefetch unless it is asked for by
 *                  lists: overlap comes from the host's lead.
 *   post-forward   a block frees its parameters, the root keeps them (reshard_after_forward says
 *                  otherwise).
 *   backward       copy-out of u, its gather buffer freed at once, then unshard of the unit before
 *                  u in post-forward order (prefetch), then u's gradient kernels.
 *   post-backward  parameters freed; compute waits for the reduce-scatter of the unit before and
 *                  lets go of its input; new input allocated and filled on compute; gradients
 *                  freed, the last parameter's only when the function returns; output allocated and
 *                  reduced on the reduce lane. Reduction averages.
 * A unit whose inputs want no gradient gets its post-backward at the end of backward.
 * Offloaded, each shard comes from the host's memory on the copy-in lane before it is cast, by
 * itself, and is held until the gather has been issued; each reduced gradient leaves on the lane
 * that reduced it, and at the end of backward the host waits for every one.
 * On one rank nothing is communicated: shards are copied straight to the parameters, and what would
 * be reduced is copied too.
 *
 * PyTorch 2.4 (torch/distributed/_composable/fsdp/, and recordings of 2.4.1):
 *   unshard        casts each shard by itself; the casts die when the gather has been issued
 *   forward        does not pad shards anew; the root is kept, whatever reshard_after_forward says
 *   post-backward  packs and reduces on the reduce lane, in memory of that lane that goes at once
 *   one rank       gathers and reduces by itself
 * It has no lists of units to prefetch.
 *
 * PyTorch 2.15 (recordings of 2.15.0):
 *   forward        the gather buffer of the unit before is freed before the copy-out
 *   backward       autograd casts gradients to the dtype of the reduction as they come, but for
 *                  wider ones that are reduced in this pass, or added to those of earlier passes
 *                  (and whose parameter is not one that ranks of the tensor axis add up first)
 *   post-backward  a pass that does not reduce leaves what it has in the parameters' gradients;
 *                  one that does frees all gradients as soon as they are packed
 */
#include "plan/flavours/fsdp2.h"
#include "plan/autograd/offload-slots.h"
#include "plan/autograd/unit.h"
#include "plan/flavours/whole.h"
#include "plan/optimizer/clip.h"
#include "plan/optimizer/groups.h"
#include "plan/optimizer/on-host.h"

/* The list of units is cleared where backward ends. */
static bool goes_on_from_evaluation(const PlanRun *run) {
    bool begins = run->pass.number == 0;
    return begins ? run->evaluation.precedes : run->graph->evaluates;
}

static void begin_pass(PlanRun *run) {
    PlanFsdp2 *f = run->state;
    if (run->builder.section == PLAN_SECTION_FIRST && run->pass.number == 0 && !f->is_of_2_4 &&
        !plan_offload_has_params(run) && !run->owner.stages) {
        plan_fsdp2_pad_again(run);
    }
    plan_run_at_unit(run, 0);
    uint32_t event = plan_builder_record(&run->builder, PLAN_FSDP2_COMPUTE);
    plan_fsdp2_gather_lanes_wait(run, event);
    if (!goes_on_from_evaluation(run)) {
        g_array_set_size(f->post_forward_order, 0);
    }
    for (uint32_t u = 0; u < run->n_units; u++) {
        f->units[u].reduced = false;
    }
}

/* ---- forward -------------------------------------------------------------------------------- */

/* Where experts are units of their own, they follow their block's unit: the next block after a
 * block's unit, and the experts of a block; 0: there is none. */
static bool is_block(const PlanRun *run, uint32_t u) {
    return u != 0 && u < run->n_units && !run->units[u].of_experts;
}

static uint32_t block_after(const PlanRun *run, uint32_t u) {
    uint32_t next = u + 1;
    while (is_block(run, u) && next < run->n_units && !is_block(run, next)) {
        next++;
    }
    return is_block(run, u) && next < run->n_units ? next : 0;
}

static uint32_t block_before(const PlanRun *run, uint32_t u) {
    uint32_t before = u;
    while (is_block(run, u) && --before > 0 && !is_block(run, before)) {
    }
    return is_block(run, u) ? before : 0;
}

/* torchtitan lists a block's neighbours and their experts, for both ways. */
static void prefetch_block(PlanRun *run, uint32_t u) {
    for (uint32_t i = u; i > 0 && i < run->n_units && (i == u || !is_block(run, i)); i++) {
        plan_fsdp2_unshard(run, i);
    }
}

/* Lists given to set_modules_to_forward_prefetch(): each block's are those after it; the root has
 * none. */
static void prefetch_forward(PlanRun *run, uint32_t u) {
    if (run->graph->shared.expert > 1) {
        prefetch_block(run, block_after(run, u));
        return;
    }
    uint64_t ahead = u == 0 ? 0 : plan_strategy_forward_prefetch(run->strategy);
    for (uint32_t next = u + 1; next < run->n_units && next <= u + ahead; next++) {
        plan_fsdp2_unshard(run, next);
    }
}

/* In backward what was gathered goes at once. */
static void make_whole_now(PlanRun *run, uint32_t u) {
    PlanFsdp2 *f = run->state;
    if (!plan_unit_has_parameters(run, u)) {
        return;
    }
    plan_fsdp2_unshard(run, u);
    if (!f->units[u].unsharded) {
        plan_fsdp2_copy_out(run, u);
        if (f->units[u].communicates) {
            plan_fsdp2_gather_lanes_wait(run, f->units[u].copied_event);
            plan_fsdp2_free_gathered(run, u);
        }
    }
}

/* In forward the gather lanes wait until the last unit was copied out. Before 2.15 a variable holds
 * that unit's gathered buffer while this unit is copied out, too. */
static void take_turns(PlanRun *run, uint32_t u) {
    PlanFsdp2 *f = run->state;
    if (f->held != PLAN_NONE) {
        plan_fsdp2_gather_lanes_wait(run, f->units[f->held].copied_event);
    }
    if (f->is_of_2_15) {
        plan_fsdp2_free_held(run);
    }
    plan_fsdp2_copy_out(run, u);
    plan_fsdp2_free_held(run);
    f->held = f->units[u].communicates ? u : PLAN_NONE;
}

/* While a block is recomputed no forward is active: the first unit entered acts as root until it is
 * left, and what is whole by then stays whole for its backward. */
static void pre_forward_again(PlanRun *run, uint32_t u) {
    PlanFsdp2 *f = run->state;
    if (f->again == PLAN_NONE) {
        uint32_t event = plan_builder_record(&run->builder, PLAN_FSDP2_COMPUTE);
        plan_fsdp2_gather_lanes_wait(run, event);
        f->again = u;
    }
    if (plan_unit_has_parameters(run, u)) {
        plan_fsdp2_unshard(run, u);
        if (!f->units[u].unsharded) {
            take_turns(run, u);
        }
    }
    prefetch_forward(run, u);
}

static void pre_forward(PlanRun *run, uint32_t u) {
    PlanFsdp2 *f = run->state;
    if (run->builder.phase == PLAN_PHASE_RECOMPUTE) {
        f->units[u].in_backward ? make_whole_now(run, u) : pre_forward_again(run, u);
        return;
    }
    if (!plan_unit_has_parameters(run, u) || f->units[u].unsharded) { /* since another microbatch */
        prefetch_forward(run, u);
        return;
    }
    plan_fsdp2_unshard(run, u);
    take_turns(run, u);
    prefetch_forward(run, u);
}

/* The last block, and its experts. */
static bool is_last(const PlanRun *run, uint32_t u) {
    uint32_t end = run->n_units - 1;
    return u > 0 && (u == end || (u == end - 1 && run->units[end].of_experts));
}

/* The root is left whole unless the strategy says what to do with each unit; before 2.8, always. */
static void after_forward(PlanRun *run, uint32_t u) {
    const PlanStrategy *strategy = run->strategy;
    if (u == 0 && strategy->reshard_root == PLAN_NO) {
        return;
    }
    if (strategy->sharding == PLAN_SHARDING_GRAD_OP ||
        strategy->sharding == PLAN_SHARDING_HYBRID_GRAD_OP) {
        return;
    }
    if (run->units[u].stays_whole || (strategy->reshard_last == PLAN_NO && is_last(run, u))) {
        return;
    }
    switch ((PlanReshard)strategy->reshard_after_forward.choice) {
    case PLAN_RESHARD_DEFAULT:
        if (u != 0) {
            plan_fsdp2_reshard(run, u);
        }
        return;
    case PLAN_RESHARD_YES:
        plan_fsdp2_reshard(run, u);
        return;
    case PLAN_RESHARD_NO:
        return;
    case PLAN_RESHARD_RANKS:
        plan_fsdp2_reshard_to_parts(run, u);
        return;
    }
}

static void post_forward(PlanRun *run, uint32_t u) {
    PlanFsdp2 *f = run->state;
    bool again = run->builder.phase == PLAN_PHASE_RECOMPUTE;
    if (plan_unit_has_parameters(run, u) && !again) {
        g_array_append_val(f->post_forward_order, u);
        after_forward(run, u);
    }
    bool ends = again ? u == f->again : u == 0;
    if (ends && f->held != PLAN_NONE) {
        plan_fsdp2_gather_lanes_wait(run, f->units[f->held].copied_event);
        if (again || run->graph->root_cast == PLAN_NONE) {
            plan_fsdp2_free_held(run);
        }
    }
    f->again = ends ? PLAN_NONE : f->again;
}

/* ---- backward ------------------------------------------------------------------------------- */

/* Lists given to set_modules_to_backward_prefetch(); false: the unit has none. */
static bool prefetch_backward(PlanRun *run, uint32_t u) {
    /* PyTorch has no switch: one gives each block itself as its only target. The root stays as it
     * is.
     */
    if (run->strategy->backward_prefetch == PLAN_PREFETCH_NONE && u != 0) {
        return true;
    }
    uint32_t before = run->graph->shared.expert > 1 ? block_before(run, u) : 0;
    prefetch_block(run, before);
    return before != 0;
}

static void prefetch_in_order(PlanRun *run, uint32_t u) {
    PlanFsdp2 *f = run->state;
    for (uint32_t i = f->post_forward_order->len; i-- > 1;) {
        if (g_array_index(f->post_forward_order, uint32_t, i) == u) {
            plan_fsdp2_unshard(run, g_array_index(f->post_forward_order, uint32_t, i - 1));
            return;
        }
    }
}

/* For each of a unit's outputs that a gradient comes to. The first takes the unit's place from the
 * post-forward order, so that those after it find no unit to prefetch there.
 */
static void pre_backward(PlanRun *run, uint32_t u) {
    PlanFsdp2 *f = run->state;
    bool again = f->units[u].in_backward;
    f->units[u].in_backward = true;
    make_whole_now(run, u);
    if (plan_unit_has_parameters(run, u) && !prefetch_backward(run, u) && !again) {
        prefetch_in_order(run, u);
    }
}

/* ---- what compute and optimizer see --------------------------------------------------------- */

static PlanOperand parameter(PlanRun *run, uint32_t p) {
    PlanFsdp2 *f = run->state;
    if (plan_run_is_ignored(run, p)) {
        return plan_ignored_operand(run, p);
    }
    g_assert(f->parameters[p].whole != PLAN_NONE);
    return (PlanOperand){.buffer = f->parameters[p].whole,
                         .elements = plan_run_parameter(run, p)->elements};
}

static PlanOperand owned(PlanRun *run, uint32_t p) {
    PlanFsdp2 *f = run->state;
    if (plan_run_is_ignored(run, p)) {
        return plan_ignored_operand(run, p);
    }
    return (PlanOperand){.buffer = f->parameters[p].shard, .elements = f->parameters[p].local};
}

static PlanOperand gradient(PlanRun *run, uint32_t p) {
    PlanFsdp2 *f = run->state;
    if (plan_run_is_ignored(run, p)) {
        return plan_whole_gradient(run, p);
    }
    return plan_fsdp2_gradient_in(f, p, f->units[run->unit_of_parameter[p]].gradients);
}

static void clip(PlanRun *run) {
    uint64_t ranks = ((PlanFsdp2 *)run->state)->ranks;
    if (plan_offload_has_params(run)) {
        plan_offload_clip_norm(run, ranks);
        return;
    }
    if (run->graph->shared.expert > 1 || run->graph->shared.whole_tokens) {
        plan_clip_norms_of_two(run, ranks);
        return;
    }
    if (((PlanFsdp2 *)run->state)->is_of_2_4) {
        plan_clip_norm_of_2_4(run, ranks);
        return;
    }
    if (ranks > 1) {
        plan_clip_norm(run, PLAN_AXIS_SHARD, ranks);
    } else {
        plan_clip_whole(run);
    }
}

/* Whether the parameter is the last trained one of its unit, in the order of the optimizer: group
 * by group, and in each in the order of the network. Most learn from the unit's last parameter that
 * they are not. */
static bool is_last_trained(const PlanRun *run, uint32_t u, uint32_t p) {
    bool is_last = !plan_run_is_frozen(run, p);
    unsigned group = plan_group_of(run, p);
    for (uint32_t i = run->units[u].parameters->len; i-- > 0 && is_last;) {
        uint32_t other = plan_run_parameter_of(run, u, i);
        unsigned others = plan_group_of(run, other);
        is_last =
            others < group || (others == group && other <= p) || plan_run_is_frozen(run, other);
    }
    return is_last;
}

static void drop_group(PlanRun *run, unsigned group) {
    PlanFsdp2 *f = run->state;
    for (uint32_t p = 0; p < run->graph->parameters.len; p++) {
        uint32_t u = run->unit_of_parameter[p];
        if (plan_group_of(run, p) != group) {
            continue;
        }
        if (plan_run_is_ignored(run, p)) {
            plan_whole_drop_gradient(run, p);
        } else if (is_last_trained(run, u, p)) {
            plan_run_at_unit(run, u);
            plan_builder_drop(&run->builder, &f->units[u].gradients);
        }
    }
}

/* All gradients of a unit lie in one buffer, which dies with the last of them. */
static void drop_gradients(PlanRun *run) {
    PlanFsdp2 *f = run->state;
    for (uint32_t u = 0; u < run->n_units; u++) {
        f->units[u].on_host = false;
    }
    if (plan_offload_has_params(run)) {
        return;
    }
    for (unsigned group = 0; group < plan_n_groups(run); group++) {
        drop_group(run, group);
    }
}

static bool leaves_parts(const PlanRun *run) {
    const PlanFsdp2 *f = run->state;
    uint32_t u = 0;
    while (u < run->n_units && !f->units[u].leaves_parts) {
        u++;
    }
    return u < run->n_units;
}

/* In the second step float8's scales take the place of those that the first one found; and of
 * weights that are gathered once a step two steps take turns. So do parts that backward leaves. */
static bool is_steady(const PlanRun *run) {
    return run->strategy->float8_gather == PLAN_FLOAT8_GATHER_NO && !leaves_parts(run);
}

/* ---- the passes of another role -------------------------------------------------------------- */

/* Whether a backward may leave a unit in parts, because it does not come to it: then passes after
 * the first have parts to free that the first one has not. */
static bool may_leave_parts(const PlanRun *run) {
    const PlanFsdp2 *f = run->state;
    uint32_t u = 0;
    while (u < run->n_units && !plan_unit_is_frozen(run, u)) {
        u++;
    }
    return f->part_ranks > 0 && u < run->n_units;
}

/* Where a pass touches what the rank owns, it does so rows by rows; and the first pass may fill
 * what later ones do not. */
static bool replays(const PlanRun *run) {
    const PlanStrategy *s = run->strategy;
    bool adds_shards = s->zero_grad == PLAN_ZERO_KEEP ||
                       (s->accumulate > 1 && s->accumulate_sync == PLAN_SYNC_EVERY);
    bool scales = plan_strategy_first_scale(s) > 0;         /* the first pass makes the scale */
    bool casts = s->float8_gather != PLAN_FLOAT8_GATHER_NO; /* the first pass makes scales, too */
    return !adds_shards && !scales && !casts && !plan_offload_has_params(run) &&
           !may_leave_parts(run) && !run->builder.fills && !run->ignored;
}

static void renumber(PlanRun *run, uint32_t *buffers) {
    const PlanFsdp2 *f = run->state;
    for (uint32_t p = 0; p < run->graph->parameters.len; p++) {
        buffers[f->parameters[p].first_shard] = f->parameters[p].shard;
    }
}

static void adopt(PlanRun *run, uint32_t buffer) {
    PlanFsdp2 *f = run->state;
    const PlanBuffer *b = plan_builder_at(&run->builder, buffer);
    g_assert(b->sub == PLAN_GRADIENTS_SHARDED && f->units[b->unit].gradients == PLAN_NONE);
    f->units[b->unit].gradients = buffer;
}

static const char *const lanes[] = {"compute", "copy_in", "gather", "reduce", "replicate", NULL};

const PlanFlavour plan_flavour_fsdp2 = {
    .name = "fsdp2",
    .lanes = lanes,
    .growth = {.instrs = {12, 12},
               .buffers = {9, 9},
               .ops = {6, 4},
               .operands = {31, 31},
               .parts = {0, 8},
               .attrs = {0, 5},
               .dims = {3, 5}},
    .shapes_of_ranks = plan_fsdp2_shapes_of_ranks,
    .shards_of_units = plan_fsdp2_shards_of_units,
    .construct = plan_fsdp2_construct,
    .begin_pass = begin_pass,
    .begin_evaluation = begin_pass,
    .pre_forward = pre_forward,
    .post_forward = post_forward,
    /* A variable of the hook that casts holds what was gathered last. */
    .root_cast = plan_fsdp2_free_held,
    .pre_backward = pre_backward,
    .gradient_dtype = plan_fsdp2_gradient_dtype,
    .post_backward = plan_fsdp2_post_backward,
    .end_backward = plan_fsdp2_end_backward,
    .parameter = parameter,
    .float8_scale = plan_fsdp2_float8_scale,
    .owned = owned,
    .has_empty_shards = true,
    .gradient = gradient,
    .clip = clip,
    .drop_gradients = drop_gradients,
    .stepped = plan_fsdp2_precompute_scales,
    .is_steady = is_steady,
    .replays = replays,
    .renumber = renumber,
    .adopt = adopt,
    .clear = plan_fsdp2_clear,
};
