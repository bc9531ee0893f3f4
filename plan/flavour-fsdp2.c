/* plan/flavour-fsdp2.c - fully_shard of PyTorch 2.13, step by step.
 *
 * Sharding: each parameter is dealt out by its first dimension in chunks of ceil(rows / ranks)
 * rows; every rank's shard has the size of the first chunk (trailing ranks hold padding). A unit's
 * gather is laid out [ranks][slice], a slice being the unit's padded shards one after the other; so
 * is what it reduces. Three ops know this layout:
 *   gather_copy_in   shard* -> slice number rank of gathered
 *   gather_copy_out  gathered -> parameter*, each [ranks * chunk rows] with the padding at its end
 *   reduce_copy_in   gradient* -> packed; operand.rows is the parameter's first dimension, so a
 *                    chunk has ceil(rows / ranks) * (elements / rows) elements; padding is zero
 *
 * Order (torch/distributed/fsdp/_fully_shard/, and recordings of it):
 *   unshard(u)     copy-in lane: gather buffer, copy-in; gather lane: waits copy-in, all-gather
 *   forward        unshard, then copy-out on compute. The unit before still holds its gather
 *                  buffer, so that the next copy-in can overlap this copy-out; it is freed at the
 *                  end of this copy-out. There is no forward prefetch: overlap comes from the
 *                  host's lead.
 *   post-forward   a block frees its parameters, the root keeps them (reshard_after_forward says
 *                  otherwise).
 *   backward       copy-out of u, its gather buffer freed at once, then unshard of the unit before
 *                  u in post-forward order (prefetch), then u's gradient kernels.
 *   post-backward  parameters freed; compute waits for the reduce-scatter of the unit before and
 *                  lets go of its input; new input allocated and filled on compute; gradients
 *                  freed, the last parameter's only when the function returns; output allocated and
 *                  reduced on the reduce lane. Reduction averages.
 * A unit whose inputs want no gradient gets its post-backward at the end of backward.
 * On one rank nothing is communicated: shards are copied straight to the parameters, and what would
 * be reduced is copied too.
 */
#include "plan/optimizer.h"
#include "plan/whole.h"

enum {
    LANE_COMPUTE,
    LANE_COPY_IN,
    LANE_GATHER,
    LANE_REDUCE
};

typedef struct {
    uint64_t slice;        /* elements of one rank, padded */
    uint32_t gathered;     /* buffer; PLAN_NONE when there is none */
    uint32_t gather_event; /* the all-gather has run */
    uint32_t copied_event; /* the copy-out has run */
    bool unsharded;
    bool pending;       /* one rank: unshard has been called, copy-out has not */
    bool reduced;       /* post-backward has run in this step */
    uint32_t gradients; /* buffer of its sharded gradients; PLAN_NONE */
} Unit;

typedef struct {
    uint64_t ranks;
    PlanDtype param, reduce; /* what is gathered and computed in, what is reduced in */
    Unit *units;
    uint64_t *chunk_rows;       /* of each parameter */
    uint64_t *row;              /* elements of one row */
    uint64_t *local;            /* elements that are this rank's */
    uint64_t *slice_start;      /* elements before it in its unit's slice */
    uint32_t *shards;           /* buffers */
    uint32_t *whole;            /* buffers of the gathered parameters, PLAN_NONE while sharded */
    uint32_t held;              /* unit whose gather buffer forward keeps; PLAN_NONE */
    GArray *post_forward_order; /* uint32_t */
    uint32_t reducing;          /* buffer of the input of the last reduce-scatter; PLAN_NONE */
    uint32_t reduce_event;      /* that reduce-scatter has run */
    uint32_t post_reduce_event;
} Fsdp2;

static const PlanGraphParameter *parameter_at(const PlanRun *run, uint32_t i) {
    return plan_graph_at(run->graph->parameters, PlanGraphParameter, i);
}

static uint32_t parameter_of(const PlanRun *run, uint32_t unit, uint32_t i) {
    return g_array_index(run->units[unit].parameters, uint32_t, i);
}

static bool has_parameters(const PlanRun *run, uint32_t unit) {
    return run->units[unit].parameters->len > 0;
}

static uint64_t chunk(const Fsdp2 *f, uint32_t p) {
    return f->chunk_rows[p] * f->row[p];
}

/* ---- construction --------------------------------------------------------------------------- */

static void lay_out(PlanRun *run, Fsdp2 *f) {
    for (uint32_t u = 0; u < run->n_units; u++) {
        Unit *unit = &f->units[u];
        *unit = (Unit){.gathered = PLAN_NONE, .gradients = PLAN_NONE};
        for (uint32_t i = 0; i < run->units[u].parameters->len; i++) {
            uint32_t p = parameter_of(run, u, i);
            const PlanGraphParameter *parameter = parameter_at(run, p);
            uint64_t rows = (uint64_t)parameter->dims[0];
            f->row[p] = parameter->elements / rows;
            f->chunk_rows[p] = (rows + f->ranks - 1) / f->ranks;
            uint64_t before = MIN(rows, f->chunk_rows[p] * run->rank);
            f->local[p] = MIN(f->chunk_rows[p], rows - before) * f->row[p];
            f->slice_start[p] = unit->slice;
            unit->slice += chunk(f, p);
            f->whole[p] = PLAN_NONE;
        }
    }
}

static void zero(PlanRun *run, uint32_t buffer, uint64_t elements) {
    plan_builder_begin_op(&run->builder, PLAN_OP_FILL, PLAN_AXIS_NONE,
                          (int64_t[]){(int64_t)elements}, (double[]){0});
    plan_builder_whole(&run->builder, buffer);
    plan_builder_launch(&run->builder, LANE_COMPUTE);
}

/* How many rows of each size of first dimension a rank has. */
static void shapes_of_ranks(const PlanRun *run, char **ret_shapes) {
    g_autoptr(GHashTable) seen = g_hash_table_new(g_int64_hash, g_int64_equal);
    g_autoptr(GArray) different = g_array_new(FALSE, FALSE, sizeof(int64_t));
    for (uint32_t p = 0; p < run->graph->parameters->len; p++) {
        if (g_hash_table_add(seen, (gpointer)parameter_at(run, p)->dims)) {
            g_array_append_val(different, parameter_at(run, p)->dims[0]);
        }
    }
    int64_t ranks = (int64_t)run->strategy->ranks;
    for (int64_t rank = 0; rank < ranks; rank++) {
        GString *shape = g_string_new(NULL);
        for (guint i = 0; i < different->len; i++) {
            int64_t rows = g_array_index(different, int64_t, i), each = (rows + ranks - 1) / ranks;
            int64_t before = MIN(rows, each * rank);
            g_string_append_printf(shape, "%" G_GINT64_FORMAT " ", MIN(each, rows - before));
        }
        ret_shapes[rank] = g_string_free(shape, FALSE);
    }
}

static void make_shards(PlanRun *run, Fsdp2 *f, uint32_t u) {
    for (uint32_t i = 0; i < run->units[u].parameters->len; i++) {
        uint32_t p = parameter_of(run, u, i);
        plan_run_at(run, PLAN_PHASE_SETUP, parameter_at(run, p)->module);
        f->shards[p] =
            plan_builder_buffer(&run->builder, chunk(f, p), PLAN_FP32, PLAN_PARAMETERS_SHARDED,
                                LANE_COMPUTE, parameter_at(run, p)->name);
        plan_builder_alloc(&run->builder, f->shards[p]);
        if (f->local[p] < chunk(f, p)) {
            zero(run, f->shards[p], chunk(f, p));
        }
        plan_init_parameter(run, p, f->shards[p], PLAN_AXIS_SHARD, chunk(f, p), 0);
    }
}

/* Blocks are sharded in order, the root last: as fully_shard is called. */
static void construct(PlanRun *run) {
    Fsdp2 *f = run->state = g_new0(Fsdp2, 1);
    uint32_t n = run->graph->parameters->len;
    f->ranks = run->strategy->ranks;
    f->param = plan_strategy_param_dtype(run->strategy);
    f->reduce = plan_strategy_reduce_dtype(run->strategy);
    f->units = g_new0(Unit, run->n_units);
    f->chunk_rows = g_new0(uint64_t, n);
    f->row = g_new0(uint64_t, n);
    f->local = g_new0(uint64_t, n);
    f->slice_start = g_new0(uint64_t, n);
    f->shards = g_new0(uint32_t, n);
    f->whole = g_new0(uint32_t, n);
    f->post_forward_order = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    f->held = f->reducing = PLAN_NONE;
    lay_out(run, f);
    for (uint32_t u = 1; u < run->n_units; u++) {
        make_shards(run, f, u);
    }
    make_shards(run, f, 0);
}

/* ---- gathering ------------------------------------------------------------------------------ */

static void gather_lanes_wait(PlanRun *run, uint32_t event) {
    plan_builder_wait(&run->builder, LANE_COPY_IN, event);
    plan_builder_wait(&run->builder, LANE_GATHER, event);
}

/* The first forward pads the shards anew where this rank has fewer rows than the first
 * (reset_sharded_param, called by lazy initialization). */
static void pad_again(PlanRun *run, Fsdp2 *f, uint32_t p) {
    uint32_t old = f->shards[p];
    plan_run_at_unit(run, run->unit_of_parameter[p]);
    f->shards[p] =
        plan_builder_buffer(&run->builder, chunk(f, p), PLAN_FP32, PLAN_PARAMETERS_SHARDED,
                            LANE_COMPUTE, parameter_at(run, p)->name);
    plan_builder_alloc(&run->builder, f->shards[p]);
    zero(run, f->shards[p], chunk(f, p));
    if (f->local[p]) {
        plan_builder_begin_op(&run->builder, PLAN_OP_COPY, PLAN_AXIS_NONE,
                              (int64_t[]){(int64_t)f->local[p]}, NULL);
        plan_builder_operand(&run->builder, old, 0, f->local[p]);
        plan_builder_operand(&run->builder, f->shards[p], 0, f->local[p]);
        plan_builder_launch(&run->builder, LANE_COMPUTE);
    }
    plan_builder_free(&run->builder, old);
}

static void begin_step(PlanRun *run) {
    Fsdp2 *f = run->state;
    for (uint32_t u = 0; u < run->n_units && run->builder.section == PLAN_SECTION_FIRST; u++) {
        for (uint32_t i = 0; i < run->units[u].parameters->len; i++) {
            uint32_t p = parameter_of(run, u, i);
            if (f->local[p] < chunk(f, p)) {
                pad_again(run, f, p);
            }
        }
    }
    plan_run_at_unit(run, 0);
    uint32_t event = plan_builder_record(&run->builder, LANE_COMPUTE);
    gather_lanes_wait(run, event);
    g_array_set_size(f->post_forward_order, 0);
    for (uint32_t u = 0; u < run->n_units; u++) {
        f->units[u].reduced = false;
    }
}

static void append_shards(PlanRun *run, uint32_t u) {
    Fsdp2 *f = run->state;
    for (uint32_t i = 0; i < run->units[u].parameters->len; i++) {
        plan_builder_whole(&run->builder, f->shards[parameter_of(run, u, i)]);
    }
}

/* Mixed precision: the unit's shards in one flat buffer of what is gathered. */
static uint32_t cast_shards(PlanRun *run, uint32_t u) {
    Fsdp2 *f = run->state;
    uint32_t flat = plan_builder_buffer(&run->builder, f->units[u].slice, f->param,
                                        PLAN_COMMUNICATION_GATHER, LANE_COPY_IN, "cast_shards");
    plan_builder_alloc(&run->builder, flat);
    plan_builder_begin_op(&run->builder, PLAN_OP_FLATTEN, PLAN_AXIS_NONE,
                          (int64_t[]){(int64_t)f->units[u].slice}, NULL);
    append_shards(run, u);
    plan_builder_whole(&run->builder, flat);
    plan_builder_launch(&run->builder, LANE_COPY_IN);
    return flat;
}

static void unshard(PlanRun *run, uint32_t u) {
    Fsdp2 *f = run->state;
    Unit *unit = &f->units[u];
    if (unit->unsharded || unit->gathered != PLAN_NONE || !has_parameters(run, u)) {
        return;
    }
    if (f->ranks == 1) {
        if (!unit->pending) {
            unit->gather_event = plan_builder_record(&run->builder, LANE_COMPUTE);
            unit->pending = true;
        }
        return;
    }
    uint32_t context = run->builder.unit;
    plan_run_at_unit(run, u);
    uint32_t flat = f->param == PLAN_FP32 ? PLAN_NONE : cast_shards(run, u);
    unit->gathered = plan_builder_buffer(&run->builder, unit->slice * f->ranks, f->param,
                                         PLAN_COMMUNICATION_GATHER, LANE_COPY_IN, "gathered");
    plan_builder_alloc(&run->builder, unit->gathered);
    int64_t slices[] = {(int64_t)unit->slice, (int64_t)f->ranks};
    plan_builder_begin_op(&run->builder, PLAN_OP_GATHER_COPY_IN, PLAN_AXIS_SHARD, slices, NULL);
    if (flat == PLAN_NONE) {
        append_shards(run, u);
    } else {
        plan_builder_whole(&run->builder, flat);
    }
    plan_builder_whole(&run->builder, unit->gathered);
    plan_builder_launch(&run->builder, LANE_COPY_IN);
    plan_builder_wait_lane(&run->builder, LANE_GATHER, LANE_COPY_IN);
    plan_builder_begin_op(&run->builder, PLAN_OP_ALL_GATHER, PLAN_AXIS_SHARD,
                          (int64_t[]){(int64_t)(unit->slice * f->ranks), (int64_t)f->ranks},
                          (double[]){0});
    plan_builder_whole(&run->builder, PLAN_NONE);
    plan_builder_whole(&run->builder, unit->gathered);
    plan_builder_launch(&run->builder, LANE_GATHER);
    unit->gather_event = plan_builder_record(&run->builder, LANE_GATHER);
    if (flat != PLAN_NONE) {
        plan_builder_free(&run->builder, flat);
    }
    plan_run_at_unit(run, context);
}

static void free_gathered(PlanRun *run, uint32_t u) {
    Fsdp2 *f = run->state;
    plan_builder_free(&run->builder, f->units[u].gathered);
    f->units[u].gathered = PLAN_NONE;
}

static void copy(PlanRun *run, PlanOpKind kind, uint8_t lane, uint32_t from, uint32_t to,
                 uint64_t elements) {
    plan_builder_begin_op(&run->builder, kind, PLAN_AXIS_NONE, (int64_t[]){(int64_t)elements},
                          NULL);
    plan_builder_operand(&run->builder, from, 0, elements);
    plan_builder_operand(&run->builder, to, 0, elements);
    plan_builder_launch(&run->builder, lane);
}

static void unpack(PlanRun *run, uint32_t u) {
    Fsdp2 *f = run->state;
    Unit *unit = &f->units[u];
    int64_t slices[] = {(int64_t)unit->slice, (int64_t)f->ranks};
    plan_builder_begin_op(&run->builder, PLAN_OP_GATHER_COPY_OUT, PLAN_AXIS_NONE, slices, NULL);
    plan_builder_whole(&run->builder, unit->gathered);
    for (uint32_t i = 0; i < run->units[u].parameters->len; i++) {
        plan_builder_whole(&run->builder, f->whole[parameter_of(run, u, i)]);
    }
    plan_builder_launch(&run->builder, LANE_COMPUTE);
}

static void copy_out(PlanRun *run, uint32_t u) {
    Fsdp2 *f = run->state;
    Unit *unit = &f->units[u];
    bool alone = f->ranks == 1;
    if (!alone) {
        plan_builder_wait(&run->builder, LANE_COMPUTE, unit->gather_event);
    }
    for (uint32_t i = 0; i < run->units[u].parameters->len; i++) {
        uint32_t p = parameter_of(run, u, i);
        f->whole[p] = plan_builder_buffer(&run->builder, chunk(f, p) * f->ranks, f->param,
                                          PLAN_PARAMETERS_UNSHARDED, LANE_COMPUTE,
                                          parameter_at(run, p)->name);
        plan_builder_alloc(&run->builder, f->whole[p]);
        if (alone) {
            copy(run, f->param == PLAN_FP32 ? PLAN_OP_COPY : PLAN_OP_CAST, LANE_COMPUTE,
                 f->shards[p], f->whole[p], chunk(f, p));
        }
    }
    if (!alone) {
        unpack(run, u);
    }
    unit->copied_event = plan_builder_record(&run->builder, LANE_COMPUTE);
    if (alone) {
        gather_lanes_wait(run, unit->copied_event);
    }
    unit->unsharded = true;
    unit->pending = false;
}

static void reshard(PlanRun *run, uint32_t u) {
    Fsdp2 *f = run->state;
    if (!f->units[u].unsharded) {
        return;
    }
    for (uint32_t i = 0; i < run->units[u].parameters->len; i++) {
        uint32_t p = parameter_of(run, u, i);
        plan_builder_free(&run->builder, f->whole[p]);
        f->whole[p] = PLAN_NONE;
    }
    f->units[u].unsharded = false;
}

/* ---- forward -------------------------------------------------------------------------------- */

static void pre_forward(PlanRun *run, uint32_t u) {
    Fsdp2 *f = run->state;
    if (!has_parameters(run, u)) {
        return;
    }
    unshard(run, u);
    if (f->held != PLAN_NONE) {
        gather_lanes_wait(run, f->units[f->held].copied_event);
    }
    copy_out(run, u);
    if (f->held != PLAN_NONE) {
        free_gathered(run, f->held);
    }
    f->held = f->ranks > 1 ? u : PLAN_NONE;
}

static bool reshards_after_forward(const PlanStrategy *strategy, uint32_t u) {
    switch ((PlanReshard)strategy->reshard_after_forward) {
    case PLAN_RESHARD_DEFAULT:
        return u != 0;
    case PLAN_RESHARD_YES:
        return true;
    case PLAN_RESHARD_NO:
        return false;
    }
    g_assert_not_reached();
}

static void post_forward(PlanRun *run, uint32_t u) {
    Fsdp2 *f = run->state;
    if (has_parameters(run, u)) {
        g_array_append_val(f->post_forward_order, u);
        if (reshards_after_forward(run->strategy, u)) {
            reshard(run, u);
        }
    }
    if (u == 0 && f->held != PLAN_NONE) {
        gather_lanes_wait(run, f->units[f->held].copied_event);
        free_gathered(run, f->held);
        f->held = PLAN_NONE;
    }
}

/* ---- backward ------------------------------------------------------------------------------- */

static void prefetch(PlanRun *run, uint32_t u) {
    Fsdp2 *f = run->state;
    /* PyTorch has no switch: one gives each block itself as its only target. The root stays as it
     * is.
     */
    if (run->strategy->backward_prefetch == PLAN_PREFETCH_NONE && u != 0) {
        return;
    }
    for (uint32_t i = f->post_forward_order->len; i-- > 1;) {
        if (g_array_index(f->post_forward_order, uint32_t, i) == u) {
            unshard(run, g_array_index(f->post_forward_order, uint32_t, i - 1));
            return;
        }
    }
}

static void pre_backward(PlanRun *run, uint32_t u) {
    Fsdp2 *f = run->state;
    if (!has_parameters(run, u)) {
        return;
    }
    unshard(run, u);
    if (!f->units[u].unsharded) {
        copy_out(run, u);
        if (f->ranks > 1) {
            gather_lanes_wait(run, f->units[u].copied_event);
            free_gathered(run, u);
        }
    }
    prefetch(run, u);
}

static void pack_gradients(PlanRun *run, uint32_t u) {
    Fsdp2 *f = run->state;
    int64_t slices[] = {(int64_t)f->units[u].slice, (int64_t)f->ranks};
    f->reducing = plan_builder_buffer(&run->builder, f->units[u].slice * f->ranks, f->reduce,
                                      f->ranks > 1 ? PLAN_COMMUNICATION_REDUCE : PLAN_TEMPORARY_OP,
                                      LANE_COMPUTE, "packed");
    plan_builder_alloc(&run->builder, f->reducing);
    plan_builder_begin_op(&run->builder, PLAN_OP_REDUCE_COPY_IN, PLAN_AXIS_NONE, slices, NULL);
    for (uint32_t i = 0; i < run->units[u].parameters->len; i++) {
        uint32_t p = parameter_of(run, u, i);
        plan_run_operand(run, run->gradients[p]);
        plan_builder_rows(&run->builder, (uint64_t)parameter_at(run, p)->dims[0]);
    }
    plan_builder_whole(&run->builder, f->reducing);
    plan_builder_launch(&run->builder, LANE_COMPUTE);
}

static void drop_gradient(PlanRun *run, uint32_t p) {
    plan_run_unref(run, run->gradients[p]);
    run->gradients[p] = PLAN_NO_TENSOR;
}

/* Sharded gradients are fp32, as the optimizer wants them. */
static void cast_gradients(PlanRun *run, Unit *unit) {
    uint32_t reduced = unit->gradients;
    unit->gradients = plan_builder_buffer(&run->builder, unit->slice, PLAN_FP32,
                                          PLAN_GRADIENTS_SHARDED, LANE_REDUCE, "gradients");
    plan_builder_alloc(&run->builder, unit->gradients);
    copy(run, PLAN_OP_CAST, LANE_REDUCE, reduced, unit->gradients, unit->slice);
    plan_builder_free(&run->builder, reduced);
}

static void reduce(PlanRun *run, uint32_t u) {
    Fsdp2 *f = run->state;
    Unit *unit = &f->units[u];
    plan_builder_wait_lane(&run->builder, LANE_REDUCE, LANE_COMPUTE);
    unit->gradients = plan_builder_buffer(&run->builder, unit->slice, f->reduce,
                                          PLAN_GRADIENTS_SHARDED, LANE_REDUCE, "gradients");
    plan_builder_alloc(&run->builder, unit->gradients);
    if (f->ranks == 1) {
        copy(run, PLAN_OP_COPY, LANE_REDUCE, f->reducing, unit->gradients, unit->slice);
    } else {
        plan_builder_begin_op(&run->builder, PLAN_OP_REDUCE_SCATTER, PLAN_AXIS_SHARD,
                              (int64_t[]){(int64_t)(unit->slice * f->ranks), (int64_t)f->ranks},
                              (double[]){1});
        plan_builder_whole(&run->builder, f->reducing);
        plan_builder_whole(&run->builder, unit->gradients);
        plan_builder_launch(&run->builder, LANE_REDUCE);
    }
    f->reduce_event = plan_builder_record(&run->builder, LANE_REDUCE);
    if (f->reduce != PLAN_FP32) {
        cast_gradients(run, unit);
    }
    f->post_reduce_event = plan_builder_record(&run->builder, LANE_REDUCE);
}

static void let_go_of_reduced(PlanRun *run) {
    Fsdp2 *f = run->state;
    if (f->reducing != PLAN_NONE) {
        plan_builder_wait(&run->builder, LANE_COMPUTE, f->reduce_event);
        plan_builder_free(&run->builder, f->reducing);
        f->reducing = PLAN_NONE;
    }
}

static void post_backward(PlanRun *run, uint32_t u) {
    Fsdp2 *f = run->state;
    uint32_t n = run->units[u].parameters->len;
    if (!n || f->units[u].reduced) {
        return;
    }
    f->units[u].reduced = true;
    reshard(run, u);
    let_go_of_reduced(run);
    pack_gradients(run, u);
    /* A loop variable holds the last one until the function returns; on one rank the loop is not
     * run.
     */
    uint32_t held = f->ranks > 1;
    for (uint32_t i = n - held; i-- > 0;) {
        drop_gradient(run, parameter_of(run, u, i));
    }
    reduce(run, u);
    if (held) {
        drop_gradient(run, parameter_of(run, u, n - 1));
    }
}

static void end_backward(PlanRun *run) {
    Fsdp2 *f = run->state;
    for (uint32_t u = 0; u < run->n_units; u++) {
        plan_run_at_unit(run, u);
        post_backward(run, u);
    }
    plan_run_at_unit(run, 0);
    plan_builder_wait(&run->builder, LANE_COMPUTE, f->post_reduce_event);
    let_go_of_reduced(run);
}

static void gradient_ready(PlanRun *run, uint32_t p) {
}

/* ---- what compute and optimizer see --------------------------------------------------------- */

static PlanOperand parameter(PlanRun *run, uint32_t p) {
    Fsdp2 *f = run->state;
    g_assert(f->whole[p] != PLAN_NONE);
    return (PlanOperand){.buffer = f->whole[p], .elements = parameter_at(run, p)->elements};
}

static PlanOperand owned(PlanRun *run, uint32_t p) {
    Fsdp2 *f = run->state;
    return (PlanOperand){.buffer = f->shards[p], .elements = f->local[p]};
}

static PlanOperand gradient(PlanRun *run, uint32_t p) {
    Fsdp2 *f = run->state;
    return (PlanOperand){.buffer = f->units[run->unit_of_parameter[p]].gradients,
                         .offset_bytes = f->slice_start[p] * plan_dtype_bytes(PLAN_FP32),
                         .elements = f->local[p]};
}

static void clip(PlanRun *run) {
    plan_clip_norm(run, PLAN_AXIS_SHARD, ((Fsdp2 *)run->state)->ranks);
}

/* All gradients of a unit lie in one buffer, which dies with the last of them. */
static void zero_grad(PlanRun *run) {
    Fsdp2 *f = run->state;
    for (uint32_t p = 0; p < run->graph->parameters->len; p++) {
        uint32_t u = run->unit_of_parameter[p];
        if (p == parameter_of(run, u, run->units[u].parameters->len - 1)) {
            plan_run_at_unit(run, u);
            plan_builder_free(&run->builder, f->units[u].gradients);
            f->units[u].gradients = PLAN_NONE;
        }
    }
}

static bool is_steady(const PlanRun *run) {
    return true;
}

static void clear(PlanRun *run) {
    Fsdp2 *f = run->state;
    if (f) {
        g_free(f->units);
        g_free(f->chunk_rows);
        g_free(f->row);
        g_free(f->local);
        g_free(f->slice_start);
        g_free(f->shards);
        g_free(f->whole);
        g_array_unref(f->post_forward_order);
        g_free(f);
    }
}

static const char *const lanes[] = {"compute", "copy_in", "gather", "reduce", NULL};

const PlanFlavour plan_flavour_fsdp2 = {
    .name = "fsdp2",
    .lanes = lanes,
    .shapes_of_ranks = shapes_of_ranks,
    .construct = construct,
    .begin_step = begin_step,
    .pre_forward = pre_forward,
    .post_forward = post_forward,
    .pre_backward = pre_backward,
    .post_backward = post_backward,
    .gradient_ready = gradient_ready,
    .end_backward = end_backward,
    .parameter = parameter,
    .owned = owned,
    .gradient = gradient,
    .clip = clip,
    .zero_grad = zero_grad,
    .is_steady = is_steady,
    .clear = clear,
};
