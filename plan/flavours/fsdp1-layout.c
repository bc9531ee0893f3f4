/* plan/flavours/fsdp1-layout.c - the buffers of each unit of FSDP1, and which part of them is a
 * rank's. */
#include "plan/autograd/init.h"
#include "plan/autograd/unit.h"
#include "plan/flavours/fsdp1.h"

#include "plan/autograd/offload.h"
#include "plan/flavours/construct.h"

#include <string.h>

uint64_t plan_fsdp1_elements(PlanRun *run, uint32_t buffer) {
    const PlanBuffer *b = plan_builder_at(&run->builder, buffer);
    return b->bytes / plan_dtype_bytes((PlanDtype)b->dtype);
}

bool plan_fsdp1_lives(const PlanRun *run, uint32_t buffer) {
    return run->builder.live.items[buffer];
}

void plan_fsdp1_fill(PlanRun *run, uint8_t lane, uint32_t buffer) {
    launch_in_place(run, lane, PLAN_OP_FILL, 0, all_of(run, buffer));
}

bool plan_fsdp1_has_views(const PlanRun *run, uint32_t u, bool frozen_too) {
    const PlanFsdp1 *f = run->state;
    for (uint32_t i = 0; i < run->units[u].parameters->len && f->keeps_views; i++) {
        uint32_t p = plan_run_parameter_of(run, u, i);
        if ((frozen_too || !plan_run_is_frozen(run, p)) &&
            plan_flat_part(&f->flat, run, p, run->owner.rank % f->flat.ranks).elements) {
            return true;
        }
    }
    return false;
}

/* ---- ranks --------------------------------------------------------------------------------- */

static bool same_layout(const PlanFlat *flat, const PlanRun *run, uint32_t u, uint32_t v) {
    const GArray *a = run->units[u].parameters, *b = run->units[v].parameters;
    bool same = a->len == b->len && flat->units[u].shard == flat->units[v].shard;
    for (uint32_t i = 0; same && i < a->len; i++) {
        same = flat->start[plan_run_parameter_of(run, u, i)] ==
               flat->start[plan_run_parameter_of(run, v, i)];
    }
    return same;
}

static void append_shape(const PlanFlat *flat, const PlanRun *run, uint32_t u, uint64_t rank,
                         GString *shape) {
    for (uint32_t i = 0; i < run->units[u].parameters->len; i++) {
        PlanFlatPart part = plan_flat_part(flat, run, plan_run_parameter_of(run, u, i), rank);
        if (part.elements) {
            g_string_append_printf(shape, "%u:%" G_GUINT64_FORMAT "+%" G_GUINT64_FORMAT " ", i,
                                   part.offset, part.elements);
        }
    }
    g_string_append_c(shape, '|');
}

/* Flat shards are all alike; views of them are not. */
void plan_fsdp1_shapes_of_ranks(const PlanRun *run, char **ret_shapes) {
    uint64_t ranks = plan_strategy_shard_ranks(run->strategy);
    if (ranks == 1 || run->strategy->use_orig_params == PLAN_NO) {
        return;
    }
    PlanFlat flat;
    plan_flat_init(&flat, run, ranks, true);
    for (uint64_t rank = 0; rank < run->strategy->ranks; rank++) {
        GString *shape = g_string_new(NULL);
        for (uint32_t u = 0; u < run->n_units; u++) {
            if (u == 0 || !same_layout(&flat, run, u, u - 1)) {
                append_shape(&flat, run, u, rank % ranks, shape);
            }
        }
        ret_shapes[rank] = g_string_free(shape, FALSE);
    }
    plan_flat_clear(&flat);
}

void plan_fsdp1_shards_of_units(const PlanRun *run, uint64_t *ret_elements) {
    PlanFlat flat;
    plan_flat_init(&flat, run, plan_strategy_shard_ranks(run->strategy),
                   run->strategy->use_orig_params == PLAN_YES);
    for (uint32_t u = 0; u < run->n_units; u++) {
        ret_elements[u] = flat.units[u].shard;
    }
    plan_flat_clear(&flat);
}

/* ---- buffers -------------------------------------------------------------------------------- */

static uint32_t buffer_for(PlanRun *run, uint64_t elements, PlanDtype dtype, PlanSubcategory sub,
                           uint8_t lane, const char *name) {
    return plan_builder_buffer(&run->builder, elements, dtype, sub, lane, name);
}

static void name_sharded(PlanRun *run, PlanFsdp1 *f, const PlanFlatUnit *flat,
                         PlanFsdp1Buffers *b) {
    uint64_t whole = flat->shard * f->flat.ranks;
    b->local = buffer_for(run, flat->shard, f->master, PLAN_PARAMETERS_SHARDED, PLAN_FSDP1_COMPUTE,
                          "flat_shard");
    b->full = buffer_for(run, whole, f->param, PLAN_PARAMETERS_UNSHARDED, PLAN_FSDP1_UNSHARD,
                         "flat_parameter");
    if (f->casts) {
        b->cast = buffer_for(run, flat->shard, f->param, PLAN_COMMUNICATION_GATHER,
                             PLAN_FSDP1_PRE_UNSHARD, "cast_shard");
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(b->fetched) && plan_offload_has_params(run); i++) {
        b->fetched[i] = buffer_for(run, flat->shard, f->master, PLAN_COMMUNICATION_GATHER,
                                   PLAN_FSDP1_PRE_UNSHARD, "fetched_shard");
    }
    bool pads = f->pads_always || flat->elements < whole;
    if (f->reduce != f->param && pads) {
        b->cast_grad = buffer_for(run, flat->elements, f->reduce, PLAN_TEMPORARY_OP,
                                  PLAN_FSDP1_REDUCE, "cast_gradient");
    }
    if (f->reduce != f->param || pads) {
        b->ready = buffer_for(run, whole, f->reduce, PLAN_COMMUNICATION_REDUCE, PLAN_FSDP1_REDUCE,
                              "packed");
    }
    uint8_t lane = PLAN_FSDP1_REDUCE;
    if (f->reduce != f->master) {
        b->reduced =
            buffer_for(run, flat->shard, f->reduce, PLAN_GRADIENTS_SHARDED, lane, "gradients");
        lane = plan_fsdp1_lane_of_replicas(f);
    }
    b->grad = buffer_for(run, flat->shard, f->master, PLAN_GRADIENTS_SHARDED, lane, "gradients");
    if (f->keeps_low) {
        b->raised = buffer_for(run, flat->shard, f->master, PLAN_GRADIENTS_SHARDED,
                               PLAN_FSDP1_COMPUTE, "gradients");
        b->low_grad = buffer_for(run, flat->shard, f->param, PLAN_TEMPORARY_OP, PLAN_FSDP1_COMPUTE,
                                 "low_gradients");
    }
    /* Added to the first and dropped: the reduction's output, or no more than its cast. */
    PlanSubcategory next = f->reduce == f->master ? PLAN_GRADIENTS_SHARDED : PLAN_TEMPORARY_OP;
    b->next_grad = buffer_for(run, flat->shard, f->master, next, lane, "gradients");
}

/* The parameter is whole on every rank; its cast takes the place of what is gathered. */
static void name_whole(PlanRun *run, PlanFsdp1 *f, const PlanFlatUnit *flat, PlanFsdp1Buffers *b) {
    PlanSubcategory sub = plan_offload_has_params(run) ? PLAN_TEMPORARY_OP
                          : run->strategy->sharding == PLAN_SHARDING_NONE
                              ? PLAN_PARAMETERS_UNSHARDED
                              : PLAN_PARAMETERS_SHARDED; /* one rank's shard is all */
    b->local = b->full =
        buffer_for(run, flat->elements, f->master, sub, PLAN_FSDP1_COMPUTE, "flat_parameter");
    if (f->casts) {
        b->full = b->cast = buffer_for(run, flat->elements, f->param, PLAN_PARAMETERS_UNSHARDED,
                                       PLAN_FSDP1_PRE_UNSHARD, "cast_parameter");
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(b->fetched) && plan_offload_has_params(run); i++) {
        b->fetched[i] = buffer_for(run, flat->elements, f->master, PLAN_COMMUNICATION_GATHER,
                                   PLAN_FSDP1_PRE_UNSHARD, "fetched_parameter");
    }
    if (plan_offload_has_params(run)) {
        b->fetched_again = buffer_for(run, flat->elements, f->master, PLAN_COMMUNICATION_GATHER,
                                      PLAN_FSDP1_PRE_UNSHARD, "fetched_parameter");
    }
    const PlanStrategy *s = run->strategy;
    bool adds_up = s->accumulate > 1 || s->zero_grad == PLAN_ZERO_KEEP;
    bool again = adds_up && f->reduce != f->master;                /* of what is reduced */
    bool is_the_gradient = f->reduce == f->master || f->keeps_low; /* or cast to it */
    if (f->reduce != f->param || again) {
        b->ready =
            buffer_for(run, flat->elements, f->reduce,
                       is_the_gradient ? PLAN_GRADIENTS_UNSHARDED : PLAN_COMMUNICATION_REPLICATE,
                       PLAN_FSDP1_REDUCE, "gradients");
    }
    if (!is_the_gradient) {
        b->grad = buffer_for(run, flat->elements, f->master, PLAN_GRADIENTS_UNSHARDED,
                             PLAN_FSDP1_REDUCE, "gradients");
        b->next_grad = buffer_for(run, flat->elements, f->master, PLAN_GRADIENTS_UNSHARDED,
                                  PLAN_FSDP1_REDUCE, "gradients");
    }
}

static void name_buffers(PlanRun *run, PlanFsdp1 *f, uint32_t u) {
    const PlanFlatUnit *flat = &f->flat.units[u];
    PlanFsdp1Unit *unit = &f->units[u];
    PlanFsdp1Buffers *b = &unit->b;
    plan_run_at(run, PLAN_PHASE_SETUP, run->units[u].module);
    b->cast = b->cast_grad = b->ready = b->reduced = b->grad = b->next_grad = PLAN_NONE;
    b->low_grad = b->raised = PLAN_NONE;
    b->flat_grad = buffer_for(run, flat->elements, f->param, PLAN_GRADIENTS_UNSHARDED,
                              PLAN_FSDP1_COMPUTE, "flat_gradient");
    b->next_flat_grad = buffer_for(run, flat->elements, f->param, PLAN_GRADIENTS_UNSHARDED,
                                   PLAN_FSDP1_COMPUTE, "flat_gradient");
    if (f->shards) {
        name_sharded(run, f, flat, b);
    } else {
        name_whole(run, f, flat, b);
    }
    unit->flat_grad = unit->new_flat_grad = PLAN_NO_TENSOR;
    unit->grad = unit->fetched = PLAN_NONE;
}

/* ---- construction --------------------------------------------------------------------------- */

/* Ones, and a multiple of them. */
static uint32_t make_padding(PlanRun *run, const PlanFsdp1 *f, uint64_t elements) {
    uint32_t made[2];
    for (unsigned i = 0; i < 2; i++) {
        made[i] =
            buffer_for(run, elements, f->master, PLAN_TEMPORARY_OP, PLAN_FSDP1_COMPUTE, "padding");
        plan_builder_alloc(&run->builder, made[i]);
    }
    plan_builder_free(&run->builder, made[0]);
    return made[1];
}

/* What is whole first is copied into one flat parameter, with what pads original ones. */
static void join(PlanRun *run, const PlanFsdp1 *f, uint32_t u, uint32_t flat) {
    uint32_t n = run->units[u].parameters->len, n_paddings = 0;
    g_autofree uint32_t *paddings = g_new(uint32_t, n + 1);
    for (uint32_t i = 0; i <= n && f->keeps_views; i++) {
        uint64_t elements = plan_flat_padding(&f->flat, run, u, i);
        if (elements) {
            paddings[n_paddings++] = make_padding(run, f, elements);
        }
    }
    plan_builder_alloc(&run->builder, flat);
    for (uint32_t i = 0; i < n_paddings; i++) {
        plan_builder_free(&run->builder, paddings[i]);
    }
}

/* This rank's part of the flat parameter is cloned; where nothing is sharded, that is all of it. */
static void cut(PlanRun *run, const PlanFsdp1 *f, uint32_t u) {
    uint32_t local = f->units[u].b.local;
    if (run->strategy->init == PLAN_CONSTRUCTION_SHARD) {
        plan_builder_alloc(&run->builder, local);
    } else if (!f->shards) {
        join(run, f, u, local);
    } else {
        uint32_t flat = buffer_for(run, f->flat.units[u].elements, f->master,
                                   PLAN_PARAMETERS_UNSHARDED, PLAN_FSDP1_COMPUTE, "flat_parameter");
        join(run, f, u, flat);
        plan_builder_alloc(&run->builder, local);
        plan_builder_free(&run->builder, flat);
    }
}

/* Offloaded, neither sharded nor original: the parameters stay views of what the device had. */
static bool keeps_on_device(const PlanFsdp1 *f) {
    return !f->shards && !f->keeps_views;
}

static void make_shard_on_host(PlanRun *run, const PlanFsdp1 *f, uint32_t u) {
    uint64_t elements = plan_fsdp1_elements(run, f->units[u].b.local);
    for (uint32_t i = 0; i < run->units[u].parameters->len; i++) {
        uint32_t p = plan_run_parameter_of(run, u, i);
        plan_offload_init_parameter(run, p, f->shards ? PLAN_AXIS_SHARD : PLAN_AXIS_NONE,
                                    f->shards ? elements : 0, f->flat.start[p], elements);
    }
    plan_offload_end_init(run, plan_run_parameter_of(run, u, 0), elements);
}

static void make_shard(PlanRun *run, PlanFsdp1 *f, PlanConstruct *construct, uint32_t u) {
    if (!plan_unit_has_parameters(run, u)) {
        return;
    }
    name_buffers(run, f, u);
    if (plan_offload_constructs(run) && !keeps_on_device(f)) {
        make_shard_on_host(run, f, u);
        return;
    }
    uint32_t local = f->units[u].b.local;
    uint64_t stride = f->shards ? f->flat.units[u].shard : 0;
    plan_construct_begin_unit(construct, run, u);
    cut(run, f, u);
    plan_construct_end_unit(construct, run, u);
    plan_fsdp1_fill(run, PLAN_FSDP1_COMPUTE, local);
    for (uint32_t i = 0; i < run->units[u].parameters->len; i++) {
        uint32_t p = plan_run_parameter_of(run, u, i);
        plan_init_parameter(run, p, local, f->shards ? PLAN_AXIS_SHARD : PLAN_AXIS_NONE, stride,
                            f->flat.start[p]);
    }
    if (plan_offload_has_params(run)) {
        plan_offload_put_shard(run, plan_run_parameter_of(run, u, 0), local, PLAN_FSDP1_COMPUTE);
    }
    if (plan_offload_has_params(run) && !keeps_on_device(f)) {
        plan_builder_free(&run->builder, local);
    }
}

static bool is_trained(const PlanRun *run, uint32_t u) {
    return plan_unit_has_parameters(run, u) && !plan_unit_is_frozen(run, u);
}

/* FSDP1 lists a module's flat parameter before its submodules', so the optimizer sees them in the
 * order in which units begin. With shards on the host each stays listed at its unit's first
 * parameter. */
static uint32_t *show_flat(const PlanRun *run) {
    uint32_t n = run->graph->parameters.len, next = 0;
    uint32_t *shown = g_new(uint32_t, n);
    memset(shown, 0xff, n * sizeof *shown);
    for (uint32_t u = 0; u < run->n_units; u++) {
        if (plan_unit_has_parameters(run, u)) {
            shown[plan_run_parameter_of(run, u, 0)] = u;
        }
    }
    for (uint32_t p = 0; p < n && !plan_offload_has_params(run); p++) {
        if (shown[p] != PLAN_NONE && is_trained(run, shown[p])) {
            while (!is_trained(run, next)) {
                next++;
            }
            shown[p] = next++;
        }
    }
    return shown;
}

/* Blocks are wrapped in order, the root last. Forward and backward each free a unit once. */
void plan_fsdp1_construct(PlanRun *run) {
    const PlanStrategy *s = run->strategy;
    PlanFsdp1 *f = run->state = g_new0(PlanFsdp1, 1);
    uint64_t ranks = plan_strategy_shard_ranks(s);
    f->master = plan_strategy_model_dtype(s);
    f->param = plan_strategy_param_dtype(s);
    f->reduce = plan_strategy_reduce_dtype(s);
    f->casts = f->param != f->master;
    f->shards = ranks > 1;
    f->is_of_2_0 = !plan_strategy_is_after(s, PLAN_PYTORCH_2_0);
    f->is_of_1_13 = s->pytorch == PLAN_PYTORCH_1_13;
    f->pads_always = f->shards && f->is_of_1_13;
    f->replicas = s->ranks / ranks;
    f->reduces_replicas = f->replicas > 1 || plan_strategy_is_hybrid(s);
    f->keeps_views = s->use_orig_params == PLAN_YES;
    f->keeps_low =
        s->keep_low_precision_grads == PLAN_YES && (f->shards ? f->casts : f->reduce != f->master);
    f->shows_low = s->keep_low_precision_grads == PLAN_YES && f->keeps_views;
    f->units = g_new0(PlanFsdp1Unit, run->n_units);
    f->shown = f->keeps_views ? NULL : show_flat(run);
    f->zero = PLAN_NO_TENSOR;
    f->pre_forward_order = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    f->post_forward_order = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    f->divisor = plan_divisor_of(f->is_of_2_0 && f->shards ? ranks : s->ranks);
    f->replicas_divisor = plan_divisor_of(f->replicas);
    plan_flat_init(&f->flat, run, ranks, f->keeps_views);
    plan_limiter_init(&f->limiter, (uint32_t)s->limit_all_gathers);
    uint32_t frees = plan_units_split_blocks(run) ? 3 : 2; /* of each unit in a pass */
    f->frees_of_step = frees * run->n_units * (uint32_t)s->accumulate;
    plan_builder_reserve_events(&run->builder,
                                f->frees_of_step + run->n_units * (uint32_t)s->eval_batches);
    PlanConstruct construct;
    plan_construct_init(&construct, run);
    g_autofree uint32_t *order = plan_units_inner_first(run);
    for (uint32_t i = 0; i < run->n_units; i++) {
        make_shard(run, f, &construct, order[i]);
    }
    plan_construct_clear(&construct);
}

/* The first time, every unit's storages are made and dropped once (lazy initialization). */
static void try_storage(PlanRun *run, uint64_t elements, PlanDtype dtype) {
    uint32_t buffer =
        buffer_for(run, elements, dtype, PLAN_TEMPORARY_OP, PLAN_FSDP1_COMPUTE, "storage");
    plan_builder_alloc_empty(&run->builder, buffer);
    plan_builder_free(&run->builder, buffer);
}

static void initialize(PlanRun *run, const PlanFsdp1 *f, uint32_t u) {
    const PlanFlatUnit *flat = &f->flat.units[u];
    uint64_t whole = flat->shard * f->flat.ranks;
    plan_run_at_unit(run, u);
    if (f->casts) {
        try_storage(run, f->shards ? flat->shard : flat->elements, f->param);
    }
    if (f->shards) {
        try_storage(run, whole, f->param);
        if (f->casts) {
            try_storage(run, whole, f->master);
        }
    }
}

void plan_fsdp1_initialize(PlanRun *run) {
    for (uint32_t u = 0; u < run->n_units; u++) {
        if (plan_unit_has_parameters(run, u)) {
            initialize(run, run->state, u);
        }
    }
}

void plan_fsdp1_clear(PlanRun *run) {
    PlanFsdp1 *f = run->state;
    if (f) {
        plan_flat_clear(&f->flat);
        plan_limiter_clear(&f->limiter);
        g_free(f->units);
        g_free(f->shown);
        g_array_unref(f->pre_forward_order);
        g_array_unref(f->post_forward_order);
        g_free(f);
    }
}
