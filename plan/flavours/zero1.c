/* plan/flavours/zero1.c - only the optimizer is sharded (ZeRO stage 1).
 *
 * This schedule is this project's own: torch.distributed.optim.ZeroRedundancyOptimizer deals out
 * whole parameters and broadcasts them; here every rank has an equal part of every unit, as in
 * DeepSpeed's stage 1 and Megatron's distributed optimizer.
 *
 *   construct   every rank holds every parameter whole, and its part of each unit (parameters one
 *               after the other, padded to the ranks) in the optimizer's dtype.
 *   backward    as DDP, a unit being a bucket: a ready gradient is copied into its bucket, scaled
 *               by 1/ranks, and dropped. A full bucket is reduce-scattered on the reduce lane. The
 *               buckets, which together are the whole gradients, live to the end of backward.
 *   optimizer   steps on this rank's parts.
 *   after it    unit by unit, parts are gathered and copied into the parameters; the gather of a
 *               unit overlaps the copies of the one before.
 *
 * A GPU sends what DDP sends, 2 M (W-1)/W, and keeps 1/W of the optimizer's state. A pass that does
 * not reduce leaves gradients alone.
 */
#include "plan/autograd/init.h"
#include "plan/autograd/launch.h"
#include "plan/flavours/whole.h"
#include "plan/optimizer/clip.h"

enum {
    LANE_COMPUTE,
    LANE_REDUCE,
    LANE_GATHER
};

typedef struct {
    uint64_t elements, slice; /* of all ranks, unpadded; of one, padded */
    uint32_t shard;           /* buffer: this rank's part */
    uint32_t bucket;          /* buffer; PLAN_NONE: there is none */
    uint32_t n_ready;
    uint32_t gradients; /* buffer of the part's gradient; PLAN_NONE */
    uint32_t reduced;   /* event of the reduce-scatter */
    uint32_t gathered;  /* buffer; PLAN_NONE */
    uint32_t gather_event;
} Unit;

typedef struct {
    PlanWhole whole;
    uint64_t ranks;
    PlanDtype master, param, reduce;
    Unit *units;
    uint64_t *offset_of; /* of each parameter, elements into its unit */
} Zero1;

static void fill_zero(PlanRun *run, uint32_t buffer, uint64_t from, uint64_t to, PlanDtype dtype) {
    if (from == to) {
        return;
    }
    launch_in_place(run, LANE_COMPUTE, PLAN_OP_FILL, 0,
                    plan_operand_part(buffer, from * plan_dtype_bytes(dtype), to - from));
}

/* ---- layout --------------------------------------------------------------------------------- */

static uint64_t padded_share(uint64_t elements, uint64_t ranks) {
    return (elements + ranks - 1) / ranks;
}

static void shards_of_units(const PlanRun *run, uint64_t *ret_elements) {
    for (uint32_t u = 0; u < run->n_units; u++) {
        ret_elements[u] = padded_share(run->units[u].elements, run->strategy->ranks);
    }
}

static void make_shard(PlanRun *run, Zero1 *z, uint32_t u) {
    Unit *unit = &z->units[u];
    plan_run_at_unit(run, u);
    unit->shard = plan_builder_new(&run->builder, unit->slice, z->master, PLAN_PARAMETERS_SHARDED,
                                   LANE_COMPUTE, "shard");
    fill_zero(run, unit->shard, 0, unit->slice, z->master); /* what is padding stays zero */
    for (uint32_t i = 0; i < run->units[u].parameters->len; i++) {
        uint32_t p = plan_run_parameter_of(run, u, i);
        plan_init_parameter(run, p, unit->shard, PLAN_AXIS_SHARD, unit->slice, z->offset_of[p]);
    }
}

static void construct(PlanRun *run) {
    Zero1 *z = run->state = g_new0(Zero1, 1);
    z->ranks = run->strategy->ranks;
    z->master = plan_strategy_model_dtype(run->strategy);
    z->param = plan_strategy_param_dtype(run->strategy);
    z->reduce = plan_strategy_reduce_dtype(run->strategy);
    z->units = g_new0(Unit, run->n_units);
    z->offset_of = g_new0(uint64_t, run->graph->parameters.len);
    plan_whole_construct(run, &z->whole);
    for (uint32_t u = 0; u < run->n_units; u++) {
        Unit *unit = &z->units[u];
        *unit = (Unit){.bucket = PLAN_NONE, .gradients = PLAN_NONE, .gathered = PLAN_NONE};
        for (uint32_t i = 0; i < run->units[u].parameters->len; i++) {
            uint32_t p = plan_run_parameter_of(run, u, i);
            z->offset_of[p] = unit->elements;
            unit->elements += plan_run_parameter(run, p)->elements;
        }
        unit->slice = padded_share(unit->elements, z->ranks);
        if (unit->slice) {
            make_shard(run, z, u);
        }
    }
}

static void clear(PlanRun *run) {
    Zero1 *z = run->state;
    if (z) {
        g_free(z->whole.buffers);
        g_free(z->units);
        g_free(z->offset_of);
        g_free(z);
    }
}

/* ---- gradients ------------------------------------------------------------------------------ */

static void begin_pass(PlanRun *run) {
    Zero1 *z = run->state;
    for (uint32_t u = 0; u < run->n_units; u++) {
        z->units[u].n_ready = 0;
    }
}

static void make_bucket(PlanRun *run, Zero1 *z, Unit *unit) {
    uint64_t padded = unit->slice * z->ranks;
    unit->bucket = plan_builder_new(&run->builder, padded, z->reduce, PLAN_GRADIENTS_UNSHARDED,
                                    LANE_COMPUTE, "bucket");
    fill_zero(run, unit->bucket, unit->elements, padded, z->reduce);
}

static void copy_in(PlanRun *run, const Zero1 *z, const Unit *unit, uint32_t p) {
    uint64_t elements = plan_run_parameter(run, p)->elements;
    LAUNCH_ON(
        run, LANE_COMPUTE, PLAN_OP_BUCKET_COPY_IN, PLAN_AXIS_NONE, DIMS((int64_t)elements),
        &(double){1.0 / (double)z->ranks}, plan_run_operand_of(run, run->gradients[p]),
        plan_operand_part(unit->bucket, z->offset_of[p] * plan_dtype_bytes(z->reduce), elements));
}

static void reduce(PlanRun *run, const Zero1 *z, Unit *unit) {
    unit->gradients = plan_builder_new(&run->builder, unit->slice, z->reduce,
                                       PLAN_GRADIENTS_SHARDED, LANE_COMPUTE, "gradient_shard");
    plan_builder_wait_lane(&run->builder, LANE_REDUCE, LANE_COMPUTE);
    plan_builder_collective(&run->builder, PLAN_OP_REDUCE_SCATTER, PLAN_AXIS_SHARD, z->ranks,
                            PLAN_REDUCTION_SUM, all_of(run, unit->bucket),
                            all_of(run, unit->gradients));
    plan_builder_launch(&run->builder, LANE_REDUCE);
    unit->reduced = plan_builder_record(&run->builder, LANE_REDUCE);
}

static void gradient_ready(PlanRun *run, uint32_t p) {
    Zero1 *z = run->state;
    uint32_t u = run->unit_of_parameter[p];
    Unit *unit = &z->units[u];
    if (!run->pass.reduces) {
        return;
    }
    uint32_t context = run->builder.unit;
    plan_run_at_unit(run, u);
    if (unit->bucket == PLAN_NONE) {
        make_bucket(run, z, unit);
    }
    copy_in(run, z, unit, p);
    plan_run_drop(run, &run->gradients[p]);
    if (++unit->n_ready == run->units[u].parameters->len) {
        reduce(run, z, unit);
    }
    plan_run_at_unit(run, context);
}

/* Gradients in the dtype of what they are added to. */
static void cast_gradients(PlanRun *run, const Zero1 *z, Unit *unit) {
    uint32_t reduced = unit->gradients;
    unit->gradients = plan_builder_new(&run->builder, unit->slice, z->master,
                                       PLAN_GRADIENTS_SHARDED, LANE_COMPUTE, "gradient_shard");
    plan_run_into(run, PLAN_OP_CAST, LANE_COMPUTE, reduced, unit->gradients, unit->slice);
    plan_builder_free(&run->builder, reduced);
}

static void end_backward(PlanRun *run) {
    Zero1 *z = run->state;
    for (uint32_t u = run->n_units; u-- > 0 && run->pass.reduces;) {
        Unit *unit = &z->units[u];
        if (!unit->slice) {
            continue;
        }
        plan_run_at_unit(run, u);
        plan_builder_wait(&run->builder, LANE_COMPUTE, unit->reduced);
        plan_builder_drop(&run->builder, &unit->bucket);
        if (z->reduce != z->master) {
            cast_gradients(run, z, unit);
        }
    }
}

static void drop_gradients(PlanRun *run) {
    Zero1 *z = run->state;
    for (uint32_t u = 0; u < run->n_units; u++) {
        if (z->units[u].slice) {
            plan_run_at_unit(run, u);
            plan_builder_drop(&run->builder, &z->units[u].gradients);
        }
    }
}

/* ---- parts become parameters again ---------------------------------------------------------- */

static void gather(PlanRun *run, const Zero1 *z, Unit *unit) {
    int64_t padded = (int64_t)(unit->slice * z->ranks), ranks = (int64_t)z->ranks;
    uint32_t part = unit->shard;
    if (z->param != z->master) {
        part = plan_builder_new(&run->builder, unit->slice, z->param, PLAN_COMMUNICATION_GATHER,
                                LANE_COMPUTE, "cast_shard");
        plan_run_into(run, PLAN_OP_CAST, LANE_COMPUTE, unit->shard, part, unit->slice);
    }
    unit->gathered = plan_builder_new(&run->builder, (uint64_t)padded, z->param,
                                      PLAN_COMMUNICATION_GATHER, LANE_COMPUTE, "gathered");
    LAUNCH_ON(run, LANE_COMPUTE, PLAN_OP_GATHER_COPY_IN, PLAN_AXIS_SHARD,
              DIMS([GATHER_COPY_IN_SLICE] = (int64_t)unit->slice, [GATHER_COPY_IN_RANKS] = ranks),
              NULL, all_of(run, part), all_of(run, unit->gathered));
    if (part != unit->shard) {
        plan_builder_free(&run->builder, part);
    }
    plan_builder_wait_lane(&run->builder, LANE_GATHER, LANE_COMPUTE);
    plan_builder_collective(&run->builder, PLAN_OP_ALL_GATHER, PLAN_AXIS_SHARD, z->ranks, 0,
                            NOTHING, all_of(run, unit->gathered));
    plan_builder_launch(&run->builder, LANE_GATHER);
    unit->gather_event = plan_builder_record(&run->builder, LANE_GATHER);
}

static void copy_out(PlanRun *run, const Zero1 *z, uint32_t u) {
    Unit *unit = &z->units[u];
    plan_builder_wait(&run->builder, LANE_COMPUTE, unit->gather_event);
    plan_builder_begin_op(&run->builder, PLAN_OP_BUCKET_COPY_OUT, PLAN_AXIS_NONE,
                          (int64_t[]){(int64_t)unit->elements}, NULL);
    plan_builder_operand(&run->builder, plan_operand_part(unit->gathered, 0, unit->elements));
    for (uint32_t i = 0; i < run->units[u].parameters->len; i++) {
        plan_builder_whole(&run->builder, z->whole.buffers[plan_run_parameter_of(run, u, i)]);
    }
    plan_builder_launch(&run->builder, LANE_COMPUTE);
    plan_builder_drop(&run->builder, &unit->gathered);
}

static void end_step(PlanRun *run) {
    Zero1 *z = run->state;
    uint32_t last = PLAN_NONE;
    for (uint32_t u = 0; u < run->n_units; u++) {
        if (!z->units[u].slice) {
            continue;
        }
        plan_run_at_unit(run, u);
        gather(run, z, &z->units[u]);
        if (last != PLAN_NONE) {
            plan_run_at_unit(run, last);
            copy_out(run, z, last);
        }
        last = u;
    }
    plan_run_at_unit(run, last);
    copy_out(run, z, last);
}

/* ---- what compute and optimizer see --------------------------------------------------------- */

static PlanOperand parameter(PlanRun *run, uint32_t p) {
    return plan_whole_operand(run, &((Zero1 *)run->state)->whole, p);
}

/* The first parameter of a unit stands for all of them. */
static Unit *owner(PlanRun *run, uint32_t p) {
    uint32_t u = run->unit_of_parameter[p];
    return plan_run_parameter_of(run, u, 0) == p ? &((Zero1 *)run->state)->units[u] : NULL;
}

static PlanOperand owned(PlanRun *run, uint32_t p) {
    const Unit *unit = owner(run, p);
    return unit ? (PlanOperand){.buffer = unit->shard, .elements = unit->slice}
                : (PlanOperand){.buffer = PLAN_NONE};
}

static PlanOperand gradient(PlanRun *run, uint32_t p) {
    const Unit *unit = owner(run, p);
    uint32_t u = run->unit_of_parameter[p];
    return (PlanOperand){.buffer = ((Zero1 *)run->state)->units[u].gradients,
                         .elements = unit ? unit->slice : 0};
}

static void clip(PlanRun *run) {
    plan_clip_norm(run, PLAN_AXIS_SHARD, run->strategy->ranks);
}

static const char *const lanes[] = {"compute", "reduce", "gather", NULL};

const PlanFlavour plan_flavour_zero1 = {
    .name = "zero1",
    .lanes = lanes,
    .growth = PLAN_GROWTH_OF_WHOLE,
    .shards_of_units = shards_of_units,
    .construct = construct,
    .begin_pass = begin_pass,
    .gradient_ready = gradient_ready,
    .end_backward = end_backward,
    .parameter = parameter,
    .owned = owned,
    .gradient = gradient,
    .clip = clip,
    .drop_gradients = drop_gradients,
    .end_step = end_step,
    .clear = clear,
};
