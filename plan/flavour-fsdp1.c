/* plan/flavour-fsdp1.c - FullyShardedDataParallel of PyTorch 2.13, step by step.
 *
 * Order (torch/distributed/fsdp/_runtime_utils.py and _flat_param.py, and recordings of it):
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
 * Without sharding (NO_SHARD, also for one rank) the flat parameter is whole everywhere, its
 * gradient is all-reduced, and the cast parameter takes the place of the gathered one.
 */
#include "plan/flat.h"
#include "plan/limiter.h"
#include "plan/whole.h"

enum {
    LANE_COMPUTE,
    LANE_PRE_UNSHARD,
    LANE_UNSHARD,
    LANE_REDUCE
};

/* Buffers of a unit; each is the same in every section. PLAN_NONE: there is none. */
typedef struct {
    uint32_t local;     /* the shard that the optimizer owns */
    uint32_t cast;      /* of it, in the dtype of compute */
    uint32_t full;      /* what compute uses */
    uint32_t flat_grad; /* the gradient of full */
    uint32_t cast_grad; /* flat_grad cast, where it is padded too */
    uint32_t ready;     /* flat_grad cast and padded, to be reduced */
    uint32_t reduced;   /* what the reduction makes */
    uint32_t grad;      /* what the optimizer reads: one of the three above, or a cast */
} Buffers;

typedef struct {
    Buffers b;
    PlanTensor flat_grad;
    bool gathered, prefetched, awaits_backward, has_grad;
} Unit;

typedef struct {
    PlanFlat flat;
    PlanLimiter limiter;
    bool shards, casts, keeps_views; /* views: use_orig_params */
    PlanDtype param, reduce;
    double before, after; /* what gradients are divided by, before and after the reduction */
    Unit *units;
    GArray *pre_forward_order, *post_forward_order; /* uint32_t */
    bool order_known;
} Fsdp1;

static uint32_t parameter_of(const PlanRun *run, uint32_t unit, uint32_t i) {
    return g_array_index(run->units[unit].parameters, uint32_t, i);
}

static bool has_parameters(const PlanRun *run, uint32_t unit) {
    return run->units[unit].parameters->len > 0;
}

static uint64_t elements_in(PlanRun *run, uint32_t buffer) {
    const PlanBuffer *b = plan_builder_at(&run->builder, buffer);
    return b->bytes / plan_dtype_bytes((PlanDtype)b->dtype);
}

/* ---- ranks --------------------------------------------------------------------------------- */

static bool shards(const PlanStrategy *strategy) {
    return strategy->ranks > 1 && strategy->sharding != PLAN_SHARDING_NONE;
}

static bool same_layout(const PlanFlat *flat, const PlanRun *run, uint32_t u, uint32_t v) {
    const GArray *a = run->units[u].parameters, *b = run->units[v].parameters;
    bool same = a->len == b->len && flat->units[u].shard == flat->units[v].shard;
    for (uint32_t i = 0; same && i < a->len; i++) {
        same = flat->start[g_array_index(a, uint32_t, i)] ==
               flat->start[g_array_index(b, uint32_t, i)];
    }
    return same;
}

static void append_shape(const PlanFlat *flat, const PlanRun *run, uint32_t u, uint32_t rank,
                         GString *shape) {
    for (uint32_t i = 0; i < run->units[u].parameters->len; i++) {
        PlanFlatPart part = plan_flat_part(flat, run, parameter_of(run, u, i), rank);
        if (part.elements) {
            g_string_append_printf(shape, "%u:%" G_GUINT64_FORMAT "+%" G_GUINT64_FORMAT " ", i,
                                   part.offset, part.elements);
        }
    }
    g_string_append_c(shape, '|');
}

/* Flat shards are all alike; views of them are not. */
static void shapes_of_ranks(const PlanRun *run, char **ret_shapes) {
    if (!shards(run->strategy) || run->strategy->use_orig_params == PLAN_NO) {
        return;
    }
    PlanFlat flat;
    plan_flat_init(&flat, run, run->strategy->ranks, true);
    for (uint32_t rank = 0; rank < run->strategy->ranks; rank++) {
        GString *shape = g_string_new(NULL);
        for (uint32_t u = 0; u < run->n_units; u++) {
            if (u == 0 || !same_layout(&flat, run, u, u - 1)) {
                append_shape(&flat, run, u, rank, shape);
            }
        }
        ret_shapes[rank] = g_string_free(shape, FALSE);
    }
    plan_flat_clear(&flat);
}

/* ---- construction --------------------------------------------------------------------------- */

/* Half of the ranks before the reduction and half after, so that neither over- nor underflows. */
static void split_divisor(Fsdp1 *f, uint64_t ranks) {
    uint64_t before = 1;
    while (ranks % before == 0 && ranks / before > before) {
        before *= 2;
    }
    f->before = (double)before;
    f->after = (double)ranks / (double)before;
}

static uint32_t buffer_for(PlanRun *run, uint64_t elements, PlanDtype dtype, PlanSubcategory sub,
                           uint8_t lane, const char *name) {
    return plan_builder_buffer(&run->builder, elements, dtype, sub, lane, name);
}

static void name_sharded(PlanRun *run, Fsdp1 *f, const PlanFlatUnit *flat, Buffers *b) {
    uint64_t whole = flat->shard * f->flat.ranks;
    b->local = buffer_for(run, flat->shard, PLAN_FP32, PLAN_PARAMETERS_SHARDED, LANE_COMPUTE,
                          "flat_shard");
    b->full =
        buffer_for(run, whole, f->param, PLAN_PARAMETERS_UNSHARDED, LANE_UNSHARD, "flat_parameter");
    if (f->casts) {
        b->cast = buffer_for(run, flat->shard, f->param, PLAN_COMMUNICATION_GATHER,
                             LANE_PRE_UNSHARD, "cast_shard");
    }
    bool pads = flat->elements < whole;
    if (f->reduce != f->param && pads) {
        b->cast_grad = buffer_for(run, flat->elements, f->reduce, PLAN_TEMPORARY_OP, LANE_REDUCE,
                                  "cast_gradient");
    }
    if (f->reduce != f->param || pads) {
        b->ready =
            buffer_for(run, whole, f->reduce, PLAN_COMMUNICATION_REDUCE, LANE_REDUCE, "packed");
    }
    b->reduced = b->grad =
        buffer_for(run, flat->shard, f->reduce, PLAN_GRADIENTS_SHARDED, LANE_REDUCE, "gradients");
    if (f->reduce != PLAN_FP32) {
        b->grad = buffer_for(run, flat->shard, PLAN_FP32, PLAN_GRADIENTS_SHARDED, LANE_REDUCE,
                             "gradients");
    }
}

static void name_whole(PlanRun *run, Fsdp1 *f, const PlanFlatUnit *flat, Buffers *b) {
    b->local = b->full = buffer_for(run, flat->elements, PLAN_FP32,
                                    run->strategy->sharding == PLAN_SHARDING_NONE
                                        ? PLAN_PARAMETERS_UNSHARDED
                                        : PLAN_PARAMETERS_SHARDED, /* one rank's shard is all */
                                    LANE_COMPUTE, "flat_parameter");
    b->grad = b->reduced = b->flat_grad;
    if (f->casts) {
        b->full = b->cast = buffer_for(run, flat->elements, f->param, PLAN_PARAMETERS_UNSHARDED,
                                       LANE_PRE_UNSHARD, "cast_parameter");
    }
    if (f->reduce != f->param) {
        b->grad = b->reduced = b->ready = buffer_for(
            run, flat->elements, f->reduce, PLAN_GRADIENTS_UNSHARDED, LANE_REDUCE, "gradients");
    }
    if (f->reduce != PLAN_FP32) {
        b->grad = buffer_for(run, flat->elements, PLAN_FP32, PLAN_GRADIENTS_UNSHARDED, LANE_REDUCE,
                             "gradients");
    }
}

static void name_buffers(PlanRun *run, Fsdp1 *f, uint32_t u) {
    const PlanFlatUnit *flat = &f->flat.units[u];
    Buffers *b = &f->units[u].b;
    plan_run_at(run, PLAN_PHASE_SETUP, run->units[u].module);
    b->cast = b->cast_grad = b->ready = PLAN_NONE;
    b->flat_grad = buffer_for(run, flat->elements, f->param, PLAN_GRADIENTS_UNSHARDED, LANE_COMPUTE,
                              "flat_gradient");
    if (f->shards) {
        name_sharded(run, f, flat, b);
    } else {
        name_whole(run, f, flat, b);
    }
    f->units[u].flat_grad = PLAN_NO_TENSOR;
}

static void fill(PlanRun *run, uint8_t lane, uint32_t buffer) {
    plan_builder_begin_op(&run->builder, PLAN_OP_FILL, PLAN_AXIS_NONE,
                          (int64_t[]){(int64_t)elements_in(run, buffer)}, (double[]){0});
    plan_builder_whole(&run->builder, buffer);
    plan_builder_launch(&run->builder, lane);
}

static void make_shard(PlanRun *run, Fsdp1 *f, uint32_t u) {
    if (!has_parameters(run, u)) {
        return;
    }
    name_buffers(run, f, u);
    uint32_t local = f->units[u].b.local;
    uint64_t stride = f->shards ? f->flat.units[u].shard : 0;
    plan_builder_alloc(&run->builder, local);
    fill(run, LANE_COMPUTE, local);
    for (uint32_t i = 0; i < run->units[u].parameters->len; i++) {
        uint32_t p = parameter_of(run, u, i);
        plan_init_parameter(run, p, local, f->shards ? PLAN_AXIS_SHARD : PLAN_AXIS_NONE, stride,
                            f->flat.start[p]);
    }
}

/* Blocks are wrapped in order, the root last. Forward and backward each free a unit once. */
static void construct(PlanRun *run) {
    const PlanStrategy *s = run->strategy;
    Fsdp1 *f = run->state = g_new0(Fsdp1, 1);
    f->param = plan_strategy_param_dtype(s);
    f->reduce = plan_strategy_reduce_dtype(s);
    f->casts = f->param != PLAN_FP32;
    f->shards = shards(s);
    f->keeps_views = s->use_orig_params == PLAN_YES;
    f->units = g_new0(Unit, run->n_units);
    f->pre_forward_order = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    f->post_forward_order = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    split_divisor(f, s->ranks);
    plan_flat_init(&f->flat, run, f->shards ? s->ranks : 1, f->keeps_views);
    plan_limiter_init(&f->limiter, (uint32_t)s->limit_all_gathers);
    plan_builder_reserve_events(&run->builder, 2 * run->n_units);
    for (uint32_t u = 1; u < run->n_units; u++) {
        make_shard(run, f, u);
    }
    make_shard(run, f, 0);
}

/* ---- gathering ------------------------------------------------------------------------------ */

static void free_marked(PlanRun *run, uint32_t buffer, uint8_t lane) {
    plan_builder_mark(&run->builder, buffer, lane);
    plan_builder_free(&run->builder, buffer);
}

static void cast(PlanRun *run, uint8_t lane, uint32_t from, uint32_t to, uint64_t elements) {
    plan_builder_begin_op(&run->builder, PLAN_OP_CAST, PLAN_AXIS_NONE,
                          (int64_t[]){(int64_t)elements}, NULL);
    plan_builder_operand(&run->builder, from, 0, elements);
    plan_builder_operand(&run->builder, to, 0, elements);
    plan_builder_launch(&run->builder, lane);
}

static bool lives(PlanRun *run, uint32_t buffer) {
    return g_array_index(run->builder.live, uint8_t, buffer);
}

static void make_cast(PlanRun *run, Fsdp1 *f, uint32_t u) {
    const Buffers *b = &f->units[u].b;
    if (!f->casts || f->units[u].gathered || lives(run, b->cast)) {
        return;
    }
    plan_builder_alloc(&run->builder, b->cast);
    cast(run, LANE_PRE_UNSHARD, b->local, b->cast, elements_in(run, b->cast));
    plan_builder_wait_lane(&run->builder, LANE_UNSHARD, LANE_PRE_UNSHARD);
}

static void gather(PlanRun *run, Fsdp1 *f, uint32_t u) {
    const Buffers *b = &f->units[u].b;
    uint64_t ranks = f->flat.ranks;
    plan_builder_alloc(&run->builder, b->full);
    plan_builder_begin_op(&run->builder, PLAN_OP_ALL_GATHER, PLAN_AXIS_SHARD,
                          (int64_t[]){(int64_t)elements_in(run, b->full), (int64_t)ranks},
                          (double[]){0});
    plan_builder_whole(&run->builder, f->casts ? b->cast : b->local);
    plan_builder_whole(&run->builder, b->full);
    plan_builder_launch(&run->builder, LANE_UNSHARD);
    if (f->casts) {
        free_marked(run, b->cast, LANE_UNSHARD);
    }
}

static void unshard(PlanRun *run, uint32_t u) {
    Fsdp1 *f = run->state;
    uint32_t context = run->builder.unit, number;
    uint8_t before;
    plan_run_at_unit(run, u);
    make_cast(run, f, u);
    if (plan_limiter_gather(&f->limiter, &number, &before)) {
        plan_builder_host_wait(&run->builder, number, before);
    }
    if (f->shards && !f->units[u].gathered) {
        gather(run, f, u);
    }
    f->units[u].gathered = true;
    if (run->builder.phase == PLAN_PHASE_FORWARD) {
        plan_run_split_flat(run, u);
    }
    plan_run_at_unit(run, context);
}

/* is_free: the strategy drops the flat parameter here. Without sharding there is only the cast one
 * to drop, and it always goes. */
static void reshard(PlanRun *run, uint32_t u, bool is_free) {
    Fsdp1 *f = run->state;
    Unit *unit = &f->units[u];
    unit->prefetched = false;
    if (!f->shards) {
        unit->gathered = false;
        if (f->casts) {
            free_marked(run, unit->b.cast, LANE_COMPUTE);
        }
        return;
    }
    if (!is_free || !unit->gathered) {
        return;
    }
    free_marked(run, unit->b.full, LANE_COMPUTE);
    unit->gathered = false;
    if (f->limiter.limit) {
        plan_builder_record_reserved(&run->builder, LANE_COMPUTE, plan_limiter_free(&f->limiter));
    }
}

static void prefetch(PlanRun *run, uint32_t u) {
    Fsdp1 *f = run->state;
    if (!f->units[u].prefetched) {
        unshard(run, u);
        f->units[u].prefetched = true;
    }
}

/* ---- forward -------------------------------------------------------------------------------- */

/* The first time, every unit's storages are made and dropped once (lazy initialization). */
static void try_storage(PlanRun *run, uint64_t elements, PlanDtype dtype) {
    uint32_t buffer = buffer_for(run, elements, dtype, PLAN_TEMPORARY_OP, LANE_COMPUTE, "storage");
    plan_builder_alloc(&run->builder, buffer);
    plan_builder_free(&run->builder, buffer);
}

static void initialize(PlanRun *run, Fsdp1 *f, uint32_t u) {
    const PlanFlatUnit *flat = &f->flat.units[u];
    uint64_t whole = flat->shard * f->flat.ranks;
    plan_run_at_unit(run, u);
    if (f->casts) {
        try_storage(run, f->shards ? flat->shard : flat->elements, f->param);
    }
    if (f->shards) {
        try_storage(run, whole, f->param);
        if (f->casts) {
            try_storage(run, whole, PLAN_FP32);
        }
    }
}

static void drop_gradient(PlanRun *run, Fsdp1 *f, uint32_t u) {
    Unit *unit = &f->units[u];
    if (!unit->has_grad) {
        return;
    }
    plan_run_at_unit(run, u);
    if (unit->b.grad == unit->b.flat_grad) {
        plan_run_unref(run, unit->flat_grad);
        unit->flat_grad = PLAN_NO_TENSOR;
    } else {
        plan_builder_free(&run->builder, unit->b.grad);
    }
    unit->has_grad = false;
}

/* With use_orig_params, zero_grad drops views; the flat gradients go when the root runs again. */
static void drop_gradients(PlanRun *run, Fsdp1 *f) {
    for (uint32_t u = 0; u < run->n_units; u++) {
        drop_gradient(run, f, u);
    }
}

static void begin_pass(PlanRun *run) {
    Fsdp1 *f = run->state;
    if (run->builder.section == PLAN_SECTION_STEADY) {
        plan_limiter_settle(&f->limiter);
    }
    plan_limiter_begin_step(&f->limiter);
    for (uint32_t u = 0; u < run->n_units && run->builder.section == PLAN_SECTION_FIRST; u++) {
        if (has_parameters(run, u)) {
            initialize(run, f, u);
        }
    }
    plan_run_at_unit(run, 0);
    plan_builder_wait_lane(&run->builder, LANE_UNSHARD, LANE_COMPUTE);
    plan_builder_wait_lane(&run->builder, LANE_PRE_UNSHARD, LANE_COMPUTE);
    drop_gradients(run, f);
    g_array_set_size(f->post_forward_order, 0);
}

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

static void pre_forward(PlanRun *run, uint32_t u) {
    Fsdp1 *f = run->state;
    if (!has_parameters(run, u)) {
        return;
    }
    if (!f->units[u].prefetched) {
        unshard(run, u);
    }
    plan_builder_wait_lane(&run->builder, LANE_COMPUTE, LANE_UNSHARD);
    if (!f->order_known) {
        g_array_append_val(f->pre_forward_order, u);
    } else if (run->strategy->forward_prefetch == PLAN_YES) {
        uint32_t next = next_in(f->pre_forward_order, u);
        if (next != PLAN_NONE) {
            prefetch(run, next);
        }
    }
}

static void post_forward(PlanRun *run, uint32_t u) {
    Fsdp1 *f = run->state;
    if (!has_parameters(run, u)) {
        return;
    }
    reshard(run, u, u != 0);
    f->units[u].awaits_backward = true;
    g_array_append_val(f->post_forward_order, u);
}

/* ---- backward ------------------------------------------------------------------------------- */

static void prefetch_before(PlanRun *run, uint32_t u) {
    Fsdp1 *f = run->state;
    uint32_t before = before_in(f->post_forward_order, u);
    if (before != PLAN_NONE && f->units[before].awaits_backward) {
        prefetch(run, before);
    }
}

static void pre_backward(PlanRun *run, uint32_t u) {
    Fsdp1 *f = run->state;
    Unit *unit = &f->units[u];
    if (!has_parameters(run, u) || !unit->awaits_backward) {
        return;
    }
    if (!unit->prefetched) {
        unshard(run, u);
    }
    plan_builder_wait_lane(&run->builder, LANE_COMPUTE, LANE_UNSHARD);
    unit->awaits_backward = false;
    if (run->strategy->backward_prefetch == PLAN_PREFETCH_PRE) {
        prefetch_before(run, u);
    }
}

static PlanTensor zeros(PlanRun *run, uint64_t elements, PlanDtype dtype) {
    PlanTensor tensor = plan_run_new_tensor(run, elements, dtype, "padding");
    uint32_t buffer = plan_run_buffer_of(run, tensor);
    plan_builder_at(&run->builder, buffer)->sub = PLAN_GRADIENTS_UNSHARDED;
    fill(run, LANE_COMPUTE, buffer);
    return tensor;
}

static void flatten(PlanRun *run, uint32_t u, const PlanTensor *gradients) {
    Fsdp1 *f = run->state;
    Unit *unit = &f->units[u];
    uint32_t n = run->units[u].parameters->len;
    g_autofree PlanTensor *padding = g_new(PlanTensor, n + 1);
    for (uint32_t i = 0; i <= n; i++) {
        uint64_t elements = plan_flat_padding(&f->flat, run, u, i);
        padding[i] = elements ? zeros(run, elements, f->param) : PLAN_NO_TENSOR;
    }
    unit->flat_grad = plan_run_new_in(run, unit->b.flat_grad);
    plan_builder_begin_op(&run->builder, PLAN_OP_FLATTEN, PLAN_AXIS_NONE,
                          (int64_t[]){(int64_t)f->flat.units[u].elements}, NULL);
    for (uint32_t i = 0; i <= n; i++) {
        if (padding[i].storage != PLAN_NONE) {
            plan_run_operand(run, padding[i]);
        }
        if (i < n) {
            uint32_t buffer = plan_run_buffer_of(run, gradients[i]);
            plan_builder_at(&run->builder, buffer)->sub = PLAN_GRADIENTS_UNSHARDED;
            plan_run_operand(run, gradients[i]);
        }
    }
    plan_run_operand(run, unit->flat_grad);
    plan_builder_launch(&run->builder, LANE_COMPUTE);
    for (uint32_t i = 0; i <= n; i++) {
        plan_run_unref(run, padding[i]);
    }
}

static void divide(PlanRun *run, uint32_t buffer, double by) {
    if (by > 1) {
        plan_builder_begin_op(&run->builder, PLAN_OP_SCALE, PLAN_AXIS_NONE,
                              (int64_t[]){(int64_t)elements_in(run, buffer)}, (double[]){1 / by});
        plan_builder_whole(&run->builder, buffer);
        plan_builder_launch(&run->builder, LANE_REDUCE);
    }
}

/* The flat gradient as it can be reduced: in the right dtype, and padded to what divides. */
static uint32_t make_ready(PlanRun *run, Fsdp1 *f, uint32_t u) {
    const Buffers *b = &f->units[u].b;
    uint64_t elements = f->flat.units[u].elements;
    if (b->ready == PLAN_NONE) {
        return b->flat_grad;
    }
    if (b->cast_grad != PLAN_NONE) {
        plan_builder_alloc(&run->builder, b->cast_grad);
        cast(run, LANE_REDUCE, b->flat_grad, b->cast_grad, elements);
    }
    plan_builder_alloc(&run->builder, b->ready);
    if (elements < elements_in(run, b->ready)) {
        fill(run, LANE_REDUCE, b->ready);
    }
    cast(run, LANE_REDUCE, b->cast_grad != PLAN_NONE ? b->cast_grad : b->flat_grad, b->ready,
         elements);
    return b->ready;
}

static void reduce_scatter(PlanRun *run, Fsdp1 *f, uint32_t u) {
    const Buffers *b = &f->units[u].b;
    uint32_t ready = make_ready(run, f, u);
    plan_builder_alloc(&run->builder, b->reduced);
    divide(run, ready, f->before);
    plan_builder_begin_op(&run->builder, PLAN_OP_REDUCE_SCATTER, PLAN_AXIS_SHARD,
                          (int64_t[]){(int64_t)elements_in(run, ready), (int64_t)f->flat.ranks},
                          (double[]){0});
    plan_builder_whole(&run->builder, ready);
    plan_builder_whole(&run->builder, b->reduced);
    plan_builder_launch(&run->builder, LANE_REDUCE);
    divide(run, b->reduced, f->after);
}

static void all_reduce(PlanRun *run, Fsdp1 *f, uint32_t u) {
    uint32_t ready = make_ready(run, f, u);
    uint64_t ranks = run->strategy->ranks;
    divide(run, ready, f->before);
    plan_builder_begin_op(&run->builder, PLAN_OP_ALL_REDUCE, PLAN_AXIS_REPLICATE,
                          (int64_t[]){(int64_t)elements_in(run, ready), (int64_t)ranks},
                          (double[]){0});
    plan_builder_whole(&run->builder, ready);
    plan_builder_launch(&run->builder, LANE_REDUCE);
    divide(run, ready, f->after);
}

static void reduce(PlanRun *run, uint32_t u) {
    Fsdp1 *f = run->state;
    Unit *unit = &f->units[u];
    const Buffers *b = &unit->b;
    plan_builder_wait_lane(&run->builder, LANE_REDUCE, LANE_COMPUTE);
    if (f->shards) {
        reduce_scatter(run, f, u);
    } else {
        all_reduce(run, f, u);
    }
    if (b->grad != b->reduced) {
        plan_builder_alloc(&run->builder, b->grad);
        cast(run, LANE_REDUCE, b->reduced, b->grad, elements_in(run, b->grad));
        if (b->reduced == b->flat_grad) {
            plan_builder_mark(&run->builder, b->flat_grad, LANE_REDUCE);
        } else {
            plan_builder_free(&run->builder, b->reduced);
        }
    }
    if (b->cast_grad != PLAN_NONE) {
        plan_builder_free(&run->builder, b->cast_grad);
    }
    if (b->ready != PLAN_NONE && b->ready != b->reduced) {
        plan_builder_free(&run->builder, b->ready);
    }
    unit->has_grad = true;
    plan_builder_mark(&run->builder, b->flat_grad, LANE_REDUCE);
    if (b->grad != b->flat_grad) {
        plan_run_unref(run, unit->flat_grad);
        unit->flat_grad = PLAN_NO_TENSOR;
    }
}

static void post_backward(PlanRun *run, uint32_t u) {
    reshard(run, u, true);
    if (run->strategy->backward_prefetch == PLAN_PREFETCH_POST) {
        prefetch_before(run, u);
    }
    reduce(run, u);
}

static void end_backward(PlanRun *run) {
    Fsdp1 *f = run->state;
    plan_run_at_unit(run, 0);
    plan_builder_wait_lane(&run->builder, LANE_COMPUTE, LANE_REDUCE);
    f->order_known = true;
}

static void gradient_ready(PlanRun *run, uint32_t p) {
}

/* ---- what compute and optimizer see --------------------------------------------------------- */

static PlanOperand parameter(PlanRun *run, uint32_t p) {
    Fsdp1 *f = run->state;
    uint32_t full = f->units[run->unit_of_parameter[p]].b.full;
    PlanDtype dtype = (PlanDtype)plan_builder_at(&run->builder, full)->dtype;
    return (PlanOperand){
        .buffer = full,
        .offset_bytes = f->flat.start[p] * plan_dtype_bytes(dtype),
        .elements = plan_graph_at(run->graph->parameters, PlanGraphParameter, p)->elements};
}

/* The optimizer sees views of the shard, or the shard itself in the place of its unit's first
 * parameter. */
static PlanOperand part_of(PlanRun *run, uint32_t p, uint32_t buffer) {
    Fsdp1 *f = run->state;
    uint32_t u = run->unit_of_parameter[p];
    if (f->keeps_views) {
        PlanFlatPart part = plan_flat_part(&f->flat, run, p, f->shards ? run->rank : 0);
        return (PlanOperand){.buffer = buffer,
                             .offset_bytes = part.offset * plan_dtype_bytes(PLAN_FP32),
                             .elements = part.elements};
    }
    bool is_first = p == parameter_of(run, u, 0);
    return (PlanOperand){.buffer = buffer, .elements = is_first ? elements_in(run, buffer) : 0};
}

static PlanOperand owned(PlanRun *run, uint32_t p) {
    Fsdp1 *f = run->state;
    return part_of(run, p, f->units[run->unit_of_parameter[p]].b.local);
}

static PlanOperand gradient(PlanRun *run, uint32_t p) {
    Fsdp1 *f = run->state;
    return part_of(run, p, f->units[run->unit_of_parameter[p]].b.grad);
}

static void let_gradients_go(PlanRun *run) {
    Fsdp1 *f = run->state;
    if (!f->keeps_views) {
        drop_gradients(run, f);
    }
}

static bool is_steady(const PlanRun *run) {
    return plan_limiter_is_steady(&((const Fsdp1 *)run->state)->limiter);
}

static void clear(PlanRun *run) {
    Fsdp1 *f = run->state;
    if (f) {
        plan_flat_clear(&f->flat);
        plan_limiter_clear(&f->limiter);
        g_free(f->units);
        g_array_unref(f->pre_forward_order);
        g_array_unref(f->post_forward_order);
        g_free(f);
    }
}

static const char *const lanes[] = {"compute", "pre_unshard", "unshard", "reduce", NULL};

const PlanFlavour plan_flavour_fsdp1 = {
    .name = "fsdp1",
    .lanes = lanes,
    .shapes_of_ranks = shapes_of_ranks,
    .construct = construct,
    .begin_pass = begin_pass,
    .pre_forward = pre_forward,
    .post_forward = post_forward,
    .pre_backward = pre_backward,
    .post_backward = post_backward,
    .gradient_ready = gradient_ready,
    .flatten = flatten,
    .end_backward = end_backward,
    .parameter = parameter,
    .owned = owned,
    .gradient = gradient,
    .drop_gradients = let_gradients_go,
    .is_steady = is_steady,
    .clear = clear,
};
