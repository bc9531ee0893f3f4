/* plan/flavours/fsdp2-gather.c - from shards to whole parameters and back.
 *
 * A unit's gather is laid out [ranks][slice], a slice being what one rank has of the unit's
 * parameters, one after the other. Two ops know this layout:
 *   gather_copy_in   shard* -> slice number rank of gathered
 *   gather_copy_out  gathered -> parameter*, each [ranks * chunk rows] with the padding at its end
 * (float8_copy_in and float8_copy_out of bytes, where some are gathered in float8: fsdp2-float8.c).
 * When parameters are resharded to parts after forward, the ranks that share them are fewer, and a
 * slice is made of parts: the n-th of part_ranks equal ranges of a padded parameter.
 */
#include "plan/autograd/offload.h"
#include "plan/flavours/fsdp2.h"

void plan_fsdp2_gather_lanes_wait(PlanRun *run, uint32_t event) {
    plan_builder_wait(&run->builder, PLAN_FSDP2_COPY_IN, event);
    plan_builder_wait(&run->builder, PLAN_FSDP2_GATHER, event);
}

/* ---- from shards or parts to the gather buffer ---------------------------------------------- */

/* The buffer of what is gathered of a parameter. */
typedef uint32_t PieceOf(const PlanFsdp2Parameter *parameter);

static uint32_t its_shard(const PlanFsdp2Parameter *parameter) {
    return parameter->shard;
}

static uint32_t its_part(const PlanFsdp2Parameter *parameter) {
    return parameter->part;
}

static uint32_t its_staged(const PlanFsdp2Parameter *parameter) {
    return parameter->staged;
}

typedef struct {
    PlanAxis axis;
    uint64_t ranks, slice; /* elements of one rank */
    PieceOf *piece;
} Pieces;

static Pieces pieces_of(const PlanFsdp2 *f, uint32_t u) {
    const PlanFsdp2Unit *unit = &f->units[u];
    return unit->in_parts ? (Pieces){PLAN_AXIS_PART, f->part_ranks,
                                     unit->slice * unit->ranks / f->part_ranks, its_part}
                          : (Pieces){unit->axis, unit->ranks, unit->slice, its_shard};
}

/* Shards that come from the host, or that 2.4 casts, take their places one by one. */
static bool stages(const PlanRun *run, const PlanFsdp2 *f, uint32_t u) {
    return !f->units[u].in_parts &&
           (plan_offload_has_params(run) || (f->is_of_2_4 && f->param != f->master));
}

static void append_pieces(PlanRun *run, uint32_t u, const Pieces *pieces) {
    const PlanFsdp2 *f = run->state;
    for (uint32_t i = 0; i < run->units[u].parameters->len; i++) {
        uint32_t p = plan_run_parameter_of(run, u, i);
        if (!f->parameters[p].in_float8) {
            plan_builder_whole(&run->builder, pieces->piece(&f->parameters[p]));
        }
    }
}

/* Mixed precision: what the rank has in one flat buffer of what is gathered. */
static uint32_t cast_pieces(PlanRun *run, uint32_t u, const Pieces *pieces) {
    const PlanFsdp2 *f = run->state;
    const PlanFsdp2Unit *unit = &f->units[u];
    uint64_t elements = unit->gathers == PLAN_UINT8 ? unit->plain : pieces->slice;
    if (!elements) {
        return PLAN_NONE;
    }
    uint32_t flat = plan_builder_new_empty(&run->builder, elements, f->param,
                                           PLAN_COMMUNICATION_GATHER, f->copies_in, "cast_shards");
    plan_builder_begin_op(&run->builder, PLAN_OP_FLATTEN, PLAN_AXIS_NONE,
                          (int64_t[]){(int64_t)elements}, NULL);
    append_pieces(run, u, pieces);
    plan_builder_whole(&run->builder, flat);
    plan_builder_launch(&run->builder, f->copies_in);
    return flat;
}

static uint32_t cast_shard(PlanRun *run, uint32_t p, uint32_t shard, uint8_t lane,
                           PlanSubcategory sub) {
    const PlanFsdp2 *f = run->state;
    uint64_t elements = plan_fsdp2_chunk(f, p);
    uint32_t cast =
        plan_builder_new_empty(&run->builder, elements, f->param, sub, lane, "cast_shard");
    plan_run_into(run, PLAN_OP_CAST, lane, shard, cast, elements);
    return cast;
}

/* A shard from the host, and its cast, which then takes its place. */
static uint32_t fetch_shard(PlanRun *run, uint32_t p, uint8_t lane, PlanSubcategory sub) {
    const PlanFsdp2 *f = run->state;
    uint64_t elements = plan_fsdp2_chunk(f, p);
    uint32_t shard = plan_builder_new_empty(&run->builder, elements, f->master, sub, lane, "shard");
    plan_offload_get_shard(run, p, shard, lane);
    if (f->param == f->master) {
        return shard;
    }
    uint32_t cast = cast_shard(run, p, shard, lane, sub);
    plan_builder_free(&run->builder, shard);
    return cast;
}

/* What is copied in the place of a shard; PLAN_NONE when that is the shard itself. */
static uint32_t stage_shard(PlanRun *run, uint32_t p, uint8_t lane, PlanSubcategory sub) {
    const PlanFsdp2 *f = run->state;
    return plan_offload_has_params(run) ? fetch_shard(run, p, lane, sub)
           : f->param == f->master      ? PLAN_NONE
                                        : cast_shard(run, p, f->parameters[p].shard, lane, sub);
}

static void stage_shards(PlanRun *run, uint32_t u) {
    PlanFsdp2 *f = run->state;
    for (uint32_t i = 0; i < run->units[u].parameters->len; i++) {
        uint32_t p = plan_run_parameter_of(run, u, i);
        f->parameters[p].staged = stage_shard(run, p, f->copies_in, PLAN_COMMUNICATION_GATHER);
    }
}

static void drop_staged(PlanRun *run, uint32_t u) {
    PlanFsdp2 *f = run->state;
    for (uint32_t i = run->units[u].parameters->len; i-- > 0;) {
        uint32_t *staged = &f->parameters[plan_run_parameter_of(run, u, i)].staged;
        plan_builder_drop(&run->builder, staged);
    }
}

static void copy_in(PlanRun *run, uint32_t u, const Pieces *pieces, uint32_t flat) {
    const PlanFsdp2 *f = run->state;
    int64_t dims[] = {[GATHER_COPY_IN_SLICE] = (int64_t)pieces->slice,
                      [GATHER_COPY_IN_RANKS] = (int64_t)pieces->ranks};
    plan_builder_begin_op(&run->builder, PLAN_OP_GATHER_COPY_IN, pieces->axis, dims, NULL);
    if (flat == PLAN_NONE) {
        append_pieces(run, u, pieces);
    } else {
        plan_builder_whole(&run->builder, flat);
    }
    plan_builder_whole(&run->builder, f->units[u].gathered);
    plan_builder_launch(&run->builder, f->copies_in);
}

/* Casts, and what is not in float8 as it lies in flat. */
static void copy_in_bytes(PlanRun *run, uint32_t u, uint32_t flat) {
    const PlanFsdp2 *f = run->state;
    int64_t dims[] = {[FLOAT8_COPY_IN_SLICE] = (int64_t)f->units[u].slice,
                      [FLOAT8_COPY_IN_RANKS] = (int64_t)f->ranks};
    uint64_t at = 0;
    plan_builder_begin_op(&run->builder, PLAN_OP_FLOAT8_COPY_IN, PLAN_AXIS_SHARD, dims, NULL);
    for (uint32_t i = 0; i < run->units[u].parameters->len; i++) {
        uint32_t p = plan_run_parameter_of(run, u, i);
        uint64_t elements = plan_fsdp2_chunk(f, p);
        if (f->parameters[p].in_float8) {
            plan_builder_whole(&run->builder, f->parameters[p].staged);
        } else {
            plan_builder_operand(&run->builder, plan_operand_part(flat, at, elements));
            at += elements * plan_dtype_bytes(f->param);
        }
    }
    plan_builder_whole(&run->builder, f->units[u].gathered);
    plan_builder_launch(&run->builder, f->copies_in);
}

static void all_gather(PlanRun *run, PlanFsdp2Unit *unit, const Pieces *pieces) {
    const PlanFsdp2 *f = run->state;
    plan_builder_wait_lane(&run->builder, PLAN_FSDP2_GATHER, f->copies_in);
    plan_builder_collective(&run->builder, PLAN_OP_ALL_GATHER, pieces->axis, pieces->ranks, 0,
                            NOTHING, all_of(run, unit->gathered));
    plan_builder_launch(&run->builder, PLAN_FSDP2_GATHER);
    unit->gather_event = plan_builder_record(&run->builder, PLAN_FSDP2_GATHER);
}

/* One rank: nothing is gathered, but what compute does next comes after it. */
static void unshard_alone(PlanRun *run, PlanFsdp2Unit *unit) {
    if (!unit->pending) {
        unit->gather_event = plan_builder_record(&run->builder, PLAN_FSDP2_COMPUTE);
        unit->pending = true;
    }
}

static void gather(PlanRun *run, uint32_t u) {
    PlanFsdp2 *f = run->state;
    PlanFsdp2Unit *unit = &f->units[u];
    Pieces pieces = pieces_of(f, u);
    bool is_staged = stages(run, f, u), is_in_bytes = unit->gathers == PLAN_UINT8;
    bool casts = !plan_offload_has_params(run) && !f->is_of_2_4 && f->param != f->master;
    if (is_staged) {
        stage_shards(run, u);
        pieces.piece = its_staged;
    }
    if (is_in_bytes) {
        plan_fsdp2_stage_float8(run, u);
    }
    uint32_t flat = casts ? cast_pieces(run, u, &pieces) : PLAN_NONE;
    unit->gathered = plan_builder_new_empty(&run->builder, unit->slice * unit->ranks, unit->gathers,
                                            PLAN_COMMUNICATION_GATHER, f->copies_in, "gathered");
    if (is_in_bytes) {
        copy_in_bytes(run, u, flat);
    } else {
        copy_in(run, u, &pieces, flat);
    }
    all_gather(run, unit, &pieces);
    if (is_in_bytes) {
        drop_staged(run, u);
    }
    plan_builder_free(&run->builder, flat);
    if (is_staged) {
        drop_staged(run, u);
    }
}

void plan_fsdp2_unshard(PlanRun *run, uint32_t u) {
    PlanFsdp2Unit *unit = &((PlanFsdp2 *)run->state)->units[u];
    if (unit->unsharded || unit->gathered != PLAN_NONE || !plan_unit_has_parameters(run, u)) {
        return;
    }
    if (!unit->communicates) {
        unshard_alone(run, unit);
        return;
    }
    uint32_t context = run->builder.unit;
    plan_run_at_unit(run, u);
    if (unit->in_parts) {
        plan_fsdp2_gather_lanes_wait(run, unit->parted_event);
    }
    gather(run, u);
    plan_run_at_unit(run, context);
}

void plan_fsdp2_free_gathered(PlanRun *run, uint32_t u) {
    PlanFsdp2 *f = run->state;
    plan_builder_drop(&run->builder, &f->units[u].gathered);
}

void plan_fsdp2_free_held(PlanRun *run) {
    PlanFsdp2 *f = run->state;
    if (f->held != PLAN_NONE) {
        plan_fsdp2_free_gathered(run, f->held);
        f->held = PLAN_NONE;
    }
}

/* ---- from the gather buffer to parameters --------------------------------------------------- */

/* A parameter whose rows are dealt out, between the order of ranks and its own (back). */
void plan_fsdp2_turn_rows(PlanRun *run, uint32_t p, PlanOperand from, PlanOperand to, bool back) {
    const PlanGraphParameter *parameter = plan_run_parameter(run, p);
    int64_t ranks = (int64_t)plan_fsdp2_unit_of(run, p)->ranks;
    int64_t dims[] = {[PARTS_COPY_BATCH] = parameter->dims[0],
                      [PARTS_COPY_PARTS] = ranks,
                      [PARTS_COPY_ROWS] = parameter->dims[1] / ranks,
                      [PARTS_COPY_WIDTH] = parameter->dims[2],
                      [PARTS_COPY_BACK] = back};
    LAUNCH_ON(run, PLAN_FSDP2_COMPUTE, PLAN_OP_PARTS_COPY, PLAN_AXIS_NONE, dims, NULL, from, to);
}

/* to: buffers of its parameters. */
static void unpack(PlanRun *run, uint32_t u, const uint32_t *to) {
    const PlanFsdp2 *f = run->state;
    Pieces pieces = pieces_of(f, u);
    int64_t dims[] = {[GATHER_COPY_OUT_SLICE] = (int64_t)pieces.slice,
                      [GATHER_COPY_OUT_RANKS] = (int64_t)pieces.ranks};
    bool is_in_bytes = f->units[u].gathers == PLAN_UINT8;
    plan_builder_begin_op(&run->builder,
                          is_in_bytes ? PLAN_OP_FLOAT8_COPY_OUT : PLAN_OP_GATHER_COPY_OUT,
                          PLAN_AXIS_NONE, dims, NULL);
    plan_builder_whole(&run->builder, f->units[u].gathered);
    for (uint32_t i = 0; i < run->units[u].parameters->len; i++) {
        plan_builder_whole(&run->builder, to[i]);
    }
    plan_builder_launch(&run->builder, PLAN_FSDP2_COMPUTE);
}

static void drop_parts(PlanRun *run, uint32_t u) {
    PlanFsdp2 *f = run->state;
    for (uint32_t i = 0; i < run->units[u].parameters->len && f->units[u].in_parts; i++) {
        uint32_t p = plan_run_parameter_of(run, u, i);
        plan_builder_drop(&run->builder, &f->parameters[p].part);
    }
    f->units[u].in_parts = false;
}

/* The first gather makes a tensor, later ones give its storage its size back. */
static void make_whole(PlanRun *run, uint32_t p) {
    PlanFsdp2 *f = run->state;
    PlanFsdp2Parameter *mine = &f->parameters[p];
    mine->whole = plan_builder_buffer(
        &run->builder, plan_fsdp2_chunk(f, p) * plan_fsdp2_unit_of(run, p)->ranks,
        mine->in_float8 ? PLAN_E4M3 : f->param, PLAN_PARAMETERS_UNSHARDED, PLAN_FSDP2_COMPUTE,
        run->owner.parameters[p].name);
    if (mine->has_storage) {
        plan_builder_alloc(&run->builder, mine->whole);
    } else {
        plan_builder_alloc_empty(&run->builder, mine->whole);
    }
    mine->has_storage = true;
}

/* By way of tensors in the order of ranks, of which the last is let go of last. */
static void unpack_rows(PlanRun *run, uint32_t u) {
    const PlanFsdp2 *f = run->state;
    uint32_t n = run->units[u].parameters->len;
    g_autofree uint32_t *by_rank = g_new(uint32_t, n);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t p = plan_run_parameter_of(run, u, i);
        make_whole(run, p);
        by_rank[i] =
            plan_builder_new_empty(&run->builder, plan_run_parameter(run, p)->elements, f->param,
                                   PLAN_TEMPORARY_OP, PLAN_FSDP2_COMPUTE, "by_rank");
    }
    unpack(run, u, by_rank);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t p = plan_run_parameter_of(run, u, i);
        plan_fsdp2_turn_rows(run, p, all_of(run, by_rank[i]), all_of(run, f->parameters[p].whole),
                             true);
    }
    for (uint32_t i = n - 1; i-- > 0;) {
        plan_builder_free(&run->builder, by_rank[i]);
    }
    plan_builder_free(&run->builder, by_rank[n - 1]);
}

static void unpack_whole(PlanRun *run, uint32_t u) {
    const PlanFsdp2 *f = run->state;
    uint32_t n = run->units[u].parameters->len;
    g_autofree uint32_t *whole = g_new(uint32_t, n);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t p = plan_run_parameter_of(run, u, i);
        make_whole(run, p);
        whole[i] = f->parameters[p].whole;
    }
    unpack(run, u, whole);
}

/* What a shard is copied from lives until the next shard's is there. */
static uint32_t stage_next(PlanRun *run, uint32_t p, uint32_t last) {
    uint32_t staged = stage_shard(run, p, PLAN_FSDP2_COMPUTE, PLAN_TEMPORARY_OP);
    plan_builder_free(&run->builder, last);
    return staged;
}

static void copy_out_alone(PlanRun *run, uint32_t u) {
    PlanFsdp2 *f = run->state;
    PlanFsdp2Unit *unit = &f->units[u];
    uint32_t staged = PLAN_NONE;
    for (uint32_t i = 0; i < run->units[u].parameters->len; i++) {
        uint32_t p = plan_run_parameter_of(run, u, i);
        staged = stage_next(run, p, staged);
        make_whole(run, p);
        plan_run_into(run, PLAN_OP_COPY, PLAN_FSDP2_COMPUTE,
                      staged == PLAN_NONE ? f->parameters[p].shard : staged, f->parameters[p].whole,
                      plan_fsdp2_chunk(f, p));
    }
    unit->copied_event = plan_builder_record(&run->builder, PLAN_FSDP2_COMPUTE);
    plan_fsdp2_gather_lanes_wait(run, unit->copied_event);
    plan_fsdp2_free_held(run);
    plan_builder_free(&run->builder, staged);
}

static void copy_out(PlanRun *run, uint32_t u) {
    PlanFsdp2 *f = run->state;
    PlanFsdp2Unit *unit = &f->units[u];
    plan_builder_wait(&run->builder, PLAN_FSDP2_COMPUTE, unit->gather_event);
    if (unit->cuts_rows) {
        unpack_rows(run, u);
    } else {
        unpack_whole(run, u);
    }
    plan_fsdp2_name_scales(run, u);
    drop_parts(run, u);
    unit->copied_event = plan_builder_record(&run->builder, PLAN_FSDP2_COMPUTE);
}

void plan_fsdp2_await(PlanRun *run, uint32_t u) {
    PlanFsdp2 *f = run->state;
    if (f->units[u].gathered == PLAN_NONE && !f->units[u].pending) {
        return;
    }
    plan_run_at_unit(run, u);
    plan_fsdp2_copy_out(run, u);
    if (f->units[u].communicates) {
        plan_fsdp2_free_gathered(run, u);
    }
}

void plan_fsdp2_copy_out(PlanRun *run, uint32_t u) {
    PlanFsdp2 *f = run->state;
    if (f->units[u].communicates) {
        copy_out(run, u);
    } else {
        copy_out_alone(run, u);
    }
    f->units[u].unsharded = true;
    f->units[u].pending = false;
}

/* ---- and back ------------------------------------------------------------------------------- */

static void drop_whole(PlanRun *run, uint32_t p) {
    PlanFsdp2 *f = run->state;
    plan_builder_drop(&run->builder, &f->parameters[p].whole);
}

void plan_fsdp2_reshard(PlanRun *run, uint32_t u) {
    PlanFsdp2 *f = run->state;
    if (!f->units[u].unsharded) {
        return;
    }
    for (uint32_t i = 0; i < run->units[u].parameters->len; i++) {
        drop_whole(run, plan_run_parameter_of(run, u, i));
    }
    f->units[u].unsharded = false;
}

void plan_fsdp2_reshard_to_parts(PlanRun *run, uint32_t u) {
    PlanFsdp2 *f = run->state;
    PlanFsdp2Unit *unit = &f->units[u];
    for (uint32_t i = 0; i < run->units[u].parameters->len; i++) {
        uint32_t p = plan_run_parameter_of(run, u, i);
        PlanFsdp2Parameter *mine = &f->parameters[p];
        uint64_t elements = plan_fsdp2_chunk(f, p) * unit->ranks / f->part_ranks;
        if (mine->part == PLAN_NONE) {
            mine->part = plan_builder_buffer(&run->builder, elements, f->param, PLAN_TEMPORARY_OP,
                                             PLAN_FSDP2_COMPUTE, run->owner.parameters[p].name);
        }
        plan_builder_alloc_empty(&run->builder, mine->part);
        LAUNCH_ON(run, PLAN_FSDP2_COMPUTE, PLAN_OP_PART, PLAN_AXIS_PART,
                  DIMS([PART_N] = (int64_t)elements, [PART_RANKS] = (int64_t)f->part_ranks), NULL,
                  all_of(run, mine->whole), all_of(run, mine->part));
        if (unit->leaves_parts) {
            plan_builder_free(&run->builder, mine->left_part);
        }
        drop_whole(run, p);
    }
    unit->unsharded = unit->leaves_parts = false;
    unit->in_parts = true;
    unit->parted_event = plan_builder_record(&run->builder, PLAN_FSDP2_COMPUTE);
}

/* to_sharded() does not let go of them (_fsdp_param.py); the two buffers take turns. */
void plan_fsdp2_leave_parts(PlanRun *run, uint32_t u) {
    PlanFsdp2 *f = run->state;
    PlanFsdp2Unit *unit = &f->units[u];
    for (uint32_t i = 0; i < run->units[u].parameters->len && unit->in_parts; i++) {
        PlanFsdp2Parameter *mine = &f->parameters[plan_run_parameter_of(run, u, i)];
        uint32_t living = mine->part;
        mine->part = mine->left_part;
        mine->left_part = living;
        unit->leaves_parts = true;
    }
    unit->in_parts = false;
}
