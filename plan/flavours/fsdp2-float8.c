/* plan/flavours/fsdp2-float8.c - weights that FSDP2 gathers in float8, as torchao.float8's tensors
 * ask it to (0.18, fsdp_utils.py, and recordings of it: *-float8-gather-*).
 *
 * Before a unit is gathered each rank casts what it has of each such weight, by PyTorch's own
 * kernels, on the copy-in lane:
 *   scale   one for the whole weight, from the largest number that any rank has: found for this
 *           weight, with an all-reduce of one number; or, precomputed, for all weights at once
 *           behind the optimizer's step, and before the first such step one by one
 *   cast    scaled and bounded in fp32, each in a tensor of its own, then in e4m3
 * Casts and what is not in float8 are gathered as bytes; compute then has the weight in e4m3, and
 * reads the scale beside it. A whole weight names its scale until it is gathered anew, in the same
 * step or the next: so long that one lives, precomputed ones all together.
 */
#include "plan/flavours/fsdp2.h"
#include "plan/op/float8.h"

void plan_fsdp2_find_float8(PlanRun *run) {
    PlanFsdp2 *f = run->state;
    f->all_scales = PLAN_NONE;
    if (run->strategy->float8_gather == PLAN_FLOAT8_GATHER_NO) {
        return;
    }
    for (uint32_t i = 0; i < run->graph->ops.len; i++) {
        const PlanGraphOp *op = plan_graph_op_at(run->graph, i);
        if ((PlanGraphKind)op->kind == PLAN_GRAPH_FLOAT8_LINEAR) {
            uint32_t weight = plan_graph_ref(run->graph, op->values + 1);
            uint32_t p = plan_graph_value_at(run->graph, weight)->parameter;
            f->parameters[p].in_float8 = true;
        }
    }
}

/* ---- kernels -------------------------------------------------------------------------------- */

/* Where kernels run, and what their results are. */
typedef struct {
    PlanRun *run;
    uint8_t lane;
    PlanSubcategory sub;
} Place;

static Place place_of_gather(PlanRun *run) {
    return (Place){run, ((const PlanFsdp2 *)run->state)->copies_in, PLAN_COMMUNICATION_GATHER};
}

static uint32_t buffer_for(const Place *at, uint64_t elements, PlanDtype dtype, const char *name) {
    return plan_builder_new(&at->run->builder, elements, dtype, at->sub, at->lane, name);
}

static void free_buffer(const Place *at, uint32_t buffer) {
    plan_builder_free(&at->run->builder, buffer);
}

static void launch_pass(const Place *at, PlanFloat8Step step, uint64_t n, PlanOperand x,
                        PlanOperand scale, uint32_t made) {
    PlanRun *run = at->run;
    double largest = plan_float8_largest(PLAN_E4M3);
    LAUNCH_ON(run, at->lane, PLAN_OP_FLOAT8_PASS, PLAN_AXIS_NONE,
              DIMS([FLOAT8_PASS_N] = (int64_t)n, [FLOAT8_PASS_STEP] = step), &largest, x, scale,
              all_of(run, made));
}

static uint32_t passed(const Place *at, PlanFloat8Step step, uint64_t n, PlanOperand x,
                       PlanDtype dtype, const char *name) {
    uint32_t made = buffer_for(at, n, dtype, name);
    launch_pass(at, step, n, x, NOTHING, made);
    return made;
}

/* What a functional all-reduce makes: the largest numbers that any rank has. */
static uint32_t largest_of_ranks(const Place *at, uint64_t n, uint32_t own) {
    PlanRun *run = at->run;
    const PlanFsdp2 *f = run->state;
    uint32_t reduced = buffer_for(at, n, PLAN_FP32, "reduced");
    plan_run_into(run, PLAN_OP_COPY, at->lane, own, reduced, n);
    plan_builder_collective(&run->builder, PLAN_OP_ALL_REDUCE, PLAN_AXIS_SHARD, f->ranks,
                            PLAN_REDUCTION_MAX, NOTHING, all_of(run, reduced));
    plan_builder_launch(&run->builder, at->lane);
    return reduced;
}

/* Largest numbers, of which made gets scales, are divided by in fp64. */
typedef struct {
    uint32_t wide, quotients;
} Divided;

static Divided divide(const Place *at, uint64_t n, PlanOperand largest, bool bounds) {
    Divided d;
    PlanOperand x;
    uint32_t bounded = PLAN_NONE;
    d.wide = passed(at, PLAN_FLOAT8_CONVERT, n, largest, PLAN_FP64, "wide");
    x = all_of(at->run, d.wide);
    if (bounds) {
        bounded = passed(at, PLAN_FLOAT8_AT_LEAST, n, x, PLAN_FP64, "bounded");
        x = all_of(at->run, bounded);
    }
    uint32_t inverse = passed(at, PLAN_FLOAT8_INVERT, n, x, PLAN_FP64, "inverse");
    d.quotients =
        passed(at, PLAN_FLOAT8_TIMES_LARGEST, n, all_of(at->run, inverse), PLAN_FP64, "quotients");
    free_buffer(at, inverse);
    if (bounds) {
        free_buffer(at, bounded);
    }
    return d;
}

/* ---- a weight's shard ----------------------------------------------------------------------- */

static PlanOperand shard_of(const PlanFsdp2 *f, uint32_t p) {
    return (PlanOperand){.buffer = f->parameters[p].shard, .elements = plan_fsdp2_chunk(f, p)};
}

static uint32_t next_scale(const Place *at, uint32_t p) {
    PlanFsdp2 *f = at->run->state;
    f->parameters[p].found ^= 1;
    uint32_t *scale = &f->parameters[p].scales[f->parameters[p].found];
    if (*scale == PLAN_NONE) {
        *scale = plan_builder_buffer(&at->run->builder, 1, PLAN_FP32, at->sub, at->lane, "scale");
    }
    plan_builder_alloc(&at->run->builder, *scale);
    return *scale;
}

static void find_scale(PlanRun *run, uint32_t p) {
    PlanFsdp2 *f = run->state;
    Place at = place_of_gather(run);
    uint64_t n = plan_fsdp2_chunk(f, p);
    uint32_t magnitudes =
        passed(&at, PLAN_FLOAT8_MAGNITUDE, n, shard_of(f, p), PLAN_FP32, "magnitudes");
    uint32_t own = buffer_for(&at, 1, PLAN_FP32, "largest");
    LAUNCH_ON(run, at.lane, PLAN_OP_FLOAT8_LARGEST, PLAN_AXIS_NONE, NULL, NULL,
              all_of(run, magnitudes), all_of(run, own));
    free_buffer(&at, magnitudes);
    uint32_t largest = largest_of_ranks(&at, 1, own);
    free_buffer(&at, own);
    Divided d = divide(&at, 1, all_of(run, largest), true);
    launch_pass(&at, PLAN_FLOAT8_CONVERT, 1, all_of(run, d.quotients), NOTHING, next_scale(&at, p));
    free_buffer(&at, d.quotients);
    free_buffer(&at, d.wide);
    free_buffer(&at, largest);
}

static uint32_t cast_shard(PlanRun *run, uint32_t p, PlanOperand scale) {
    PlanFsdp2 *f = run->state;
    Place at = place_of_gather(run);
    uint64_t n = plan_fsdp2_chunk(f, p);
    uint32_t scaled = buffer_for(&at, n, PLAN_FP32, "scaled");
    launch_pass(&at, PLAN_FLOAT8_TIMES_SCALE, n, shard_of(f, p), scale, scaled);
    uint32_t bounded = passed(&at, PLAN_FLOAT8_BOUND, n, all_of(run, scaled), PLAN_FP32, "bounded");
    uint32_t made = buffer_for(&at, n, PLAN_E4M3, "float8");
    plan_builder_begin_op(&run->builder, PLAN_OP_FLOAT8_CAST, PLAN_AXIS_NONE,
                          (int64_t[]){[FLOAT8_CAST_ROWS] = (int64_t)n,
                                      [FLOAT8_CAST_COLS] = 1,
                                      [FLOAT8_CAST_SCALES] = 1,
                                      [FLOAT8_CAST_ALONG] = PLAN_FLOAT8_SCALED_ALREADY,
                                      [FLOAT8_CAST_MADE] = 0},
                          NULL);
    plan_builder_whole(&run->builder, bounded);
    for (unsigned of_what_makes_them = 3; of_what_makes_them-- > 0;) {
        plan_builder_whole(&run->builder, PLAN_NONE);
    }
    plan_builder_operand(&run->builder, scale);
    plan_builder_whole(&run->builder, made);
    plan_builder_whole(&run->builder, PLAN_NONE);
    plan_builder_launch(&run->builder, at.lane);
    free_buffer(&at, bounded);
    free_buffer(&at, scaled);
    return made;
}

/* ---- what gathering asks for ---------------------------------------------------------------- */

static bool is_precomputed(const PlanRun *run) {
    return run->strategy->float8_gather == PLAN_FLOAT8_GATHER_PRECOMPUTED &&
           run->builder.section != PLAN_SECTION_FIRST;
}

static PlanOperand precomputed_scale(const PlanFsdp2 *f, uint32_t p) {
    uint64_t before = 0;
    for (uint32_t i = 0; i < p; i++) {
        before += f->parameters[i].in_float8;
    }
    return plan_operand_part(f->all_scales, before * sizeof(float), 1);
}

PlanOperand plan_fsdp2_float8_scale(PlanRun *run, uint32_t p) {
    const PlanFsdp2 *f = run->state;
    if (!f->parameters[p].in_float8) {
        return NOTHING;
    }
    return is_precomputed(run)
               ? precomputed_scale(f, p)
               : (PlanOperand){.buffer = f->parameters[p].scales[f->parameters[p].named],
                               .elements = 1};
}

static PlanOperand scale_to_cast_by(PlanRun *run, uint32_t p) {
    const PlanFsdp2 *f = run->state;
    if (is_precomputed(run)) {
        return precomputed_scale(f, p);
    }
    find_scale(run, p);
    return (PlanOperand){.buffer = f->parameters[p].scales[f->parameters[p].found], .elements = 1};
}

void plan_fsdp2_stage_float8(PlanRun *run, uint32_t u) {
    PlanFsdp2 *f = run->state;
    for (uint32_t i = 0; i < run->units[u].parameters->len; i++) {
        uint32_t p = plan_run_parameter_of(run, u, i);
        if (f->parameters[p].in_float8) {
            f->parameters[p].staged = cast_shard(run, p, scale_to_cast_by(run, p));
        }
    }
}

static bool is_last_in_float8(const PlanRun *run, uint32_t u) {
    const PlanFsdp2 *f = run->state;
    bool is_last = f->units[u].gathers == PLAN_UINT8;
    for (uint32_t later = u + 1; later < run->n_units; later++) {
        is_last &= f->units[later].gathers != PLAN_UINT8;
    }
    return is_last;
}

void plan_fsdp2_name_scales(PlanRun *run, uint32_t u) {
    PlanFsdp2 *f = run->state;
    for (uint32_t i = 0; i < run->units[u].parameters->len; i++) {
        uint32_t p = plan_run_parameter_of(run, u, i);
        PlanFsdp2Parameter *mine = &f->parameters[p];
        if (!mine->in_float8) {
            continue;
        }
        if (mine->named != PLAN_FSDP2_NOT_NAMED) {
            plan_builder_free(&run->builder, mine->scales[mine->named]);
        }
        mine->named = is_precomputed(run) ? PLAN_FSDP2_NOT_NAMED : mine->found;
    }
    if (f->names_old_scales && is_last_in_float8(run, u)) {
        plan_builder_free(&run->builder, f->old_scales);
        f->names_old_scales = false;
    }
}

void plan_fsdp2_forget_scales(PlanRun *run, uint32_t u) {
    PlanFsdp2 *f = run->state;
    for (uint32_t i = 0; !is_precomputed(run) && i < run->units[u].parameters->len; i++) {
        uint32_t p = plan_run_parameter_of(run, u, i);
        PlanFsdp2Parameter *mine = &f->parameters[p];
        if (mine->in_float8) {
            plan_builder_free(&run->builder, mine->scales[mine->found]);
            mine->found ^= 1;
        }
    }
}

/* ---- scales of all weights, behind the optimizer's step -------------------------------------- */

static uint32_t largest_of_shards(const Place *at, const uint32_t *weights, uint32_t n,
                                  uint32_t *ret_each) {
    PlanRun *run = at->run;
    const PlanFsdp2 *f = run->state;
    for (uint32_t i = 0; i < n; i++) {
        ret_each[i] = buffer_for(at, 1, PLAN_FP32, "largest");
    }
    plan_builder_begin_op(&run->builder, PLAN_OP_FLOAT8_LARGEST, PLAN_AXIS_NONE, NULL, NULL);
    for (uint32_t i = 0; i < n; i++) {
        plan_builder_operand(&run->builder, plan_operand_part(f->parameters[weights[i]].shard, 0,
                                                              f->parameters[weights[i]].local));
    }
    for (uint32_t i = 0; i < n; i++) {
        plan_builder_whole(&run->builder, ret_each[i]);
    }
    plan_builder_launch(&run->builder, at->lane);
    uint32_t together = buffer_for(at, n, PLAN_FP32, "largest");
    plan_builder_begin_op(&run->builder, PLAN_OP_FLATTEN, PLAN_AXIS_NONE, (int64_t[]){n}, NULL);
    for (uint32_t i = 0; i < n; i++) {
        plan_builder_whole(&run->builder, ret_each[i]);
    }
    plan_builder_whole(&run->builder, together);
    plan_builder_launch(&run->builder, at->lane);
    return together;
}

/* In each later step a tensor more: the scales of the step before, which whole weights name. */
static void keep_scales(const Place *at, uint32_t n) {
    PlanFsdp2 *f = at->run->state;
    if (f->all_scales == PLAN_NONE) {
        f->all_scales = buffer_for(at, n, PLAN_FP32, "scales");
        f->old_scales =
            plan_builder_buffer(&at->run->builder, n, PLAN_FP32, at->sub, at->lane, "old_scales");
        return;
    }
    plan_builder_alloc(&at->run->builder, f->old_scales);
    f->names_old_scales = true;
}

void plan_fsdp2_precompute_scales(PlanRun *run) {
    PlanFsdp2 *f = run->state;
    if (run->strategy->float8_gather != PLAN_FLOAT8_GATHER_PRECOMPUTED) {
        return;
    }
    uint32_t n = 0, n_parameters = run->graph->parameters.len;
    g_autofree uint32_t *weights = g_new(uint32_t, n_parameters);
    for (uint32_t p = 0; p < n_parameters; p++) {
        if (f->parameters[p].in_float8) {
            weights[n++] = p;
        }
    }
    if (!n) {
        return; /* no layer is in float8 */
    }
    g_autofree uint32_t *each = g_new(uint32_t, n);
    Place at = {run, PLAN_FSDP2_COMPUTE, PLAN_TEMPORARY_OP};
    uint32_t own = largest_of_shards(&at, weights, n, each);
    uint32_t reduced = largest_of_ranks(&at, n, own);
    uint32_t bounded =
        passed(&at, PLAN_FLOAT8_AT_LEAST, n, all_of(run, reduced), PLAN_FP32, "bounded");
    free_buffer(&at, reduced);
    free_buffer(&at, own);
    Divided d = divide(&at, n, all_of(run, bounded), false);
    free_buffer(&at, bounded);
    keep_scales(&at, n);
    launch_pass(&at, PLAN_FLOAT8_CONVERT, n, all_of(run, d.quotients), NOTHING, f->all_scales);
    for (uint32_t i = n; i-- > 0;) {
        free_buffer(&at, each[i]);
    }
    free_buffer(&at, d.wide);
    free_buffer(&at, d.quotients);
}
