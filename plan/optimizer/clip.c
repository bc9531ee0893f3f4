/* plan/optimizer/clip.c - torch.nn.utils.clip_grad_norm_, op by op (torch/nn/utils/clip_grad.py).
 *
 * The norms of all gradients are stacked and their norm is taken; gradients are multiplied by
 * min(1, clip / (norm + 1e-6)), without asking the host. Of sharded gradients each rank knows the
 * norms of its parts: their squares are added over the ranks of the shard axis, one number a
 * parameter, before the norm of the norms is taken. So they are over the ranks that share layers.
 * Over stages that share the layers torchtitan adds them up behind it (torchtitan/distributed/
 * utils.py, clip_grad_norm_): the square of each stage's norm, one number, in place. Of experts
 * that ranks share it takes a norm by themselves (_clip_grad_norm_with_ep there). So must whoever
 * shares layers and leaves sequences whole: norms of DTensors of two meshes are not stacked.
 */
#include <math.h>

#include "plan/autograd/launch.h"
#include "plan/autograd/read.h"
#include "plan/mesh.h"
#include "plan/optimizer/clip-private.h"
#include "plan/optimizer/clip.h"
#include "plan/optimizer/norms.h"
#include "plan/optimizer/shared.h"

static void add_clipped(PlanClip *c, PlanRun *of, bool also_empty) {
    plan_run_hand_on(c->run, of);
    for (uint32_t p = 0; p < of->graph->parameters.len; p++) {
        if (plan_run_is_frozen(of, p)) {
            continue;
        }
        PlanOperand gradient = of->flavour->gradient(of, p);
        if (also_empty || gradient.elements) {
            c->clipped[c->n++] = (PlanClipped){of, p, gradient};
        }
    }
    plan_run_hand_on(of, c->run);
}

void plan_clip_begin(PlanClip *c, PlanRun *run, bool also_empty) {
    uint32_t n = 0, first = 0;
    while (plan_run_is_frozen(run, first)) {
        first++; /* something is trained */
    }
    for (uint32_t i = 0; i < run->owner.n_of_rank; i++) {
        n += run[i].graph->parameters.len;
    }
    uint32_t buffer = run->flavour->gradient(run, first).buffer;
    *c = (PlanClip){.run = run,
                    .dtype = (PlanDtype)plan_builder_at(&run->builder, buffer)->dtype,
                    .clipped = g_new(PlanClipped, n)};
    for (uint32_t i = 0; i < run->owner.n_of_rank; i++) {
        add_clipped(c, &run[i], also_empty);
    }
}

static PlanTensor new_numbers(const PlanClip *c, uint64_t n, const char *name) {
    return plan_run_new_tensor(c->run, n, c->dtype, name);
}

static PlanOperand gradient_of(const PlanClip *c, uint32_t i) {
    return c->clipped[i].gradient;
}

static void append_gradient(const PlanClip *c, uint32_t i) {
    plan_builder_operand(&c->run->builder, gradient_of(c, i));
}

/* The gradients as their norms are taken, where ranks share layers: summed over these ranks, but
 * for a table's, which is taken as it is. */
static PlanTensor *sums_of_gradients(const PlanClip *c) {
    PlanTensor *sums = g_new(PlanTensor, c->n);
    for (uint32_t i = 0; i < c->n; i++) {
        PlanRun *of = c->clipped[i].of;
        plan_run_hand_on(c->run, of);
        sums[i] = plan_settled_sum(of, c->clipped[i].parameter);
        plan_run_hand_on(of, c->run);
    }
    return sums;
}

static void append_summed(const PlanClip *c, const PlanTensor *sums) {
    for (uint32_t i = 0; i < c->n; i++) {
        PlanRun *of = c->clipped[i].of;
        if (sums[i].storage != PLAN_NONE) {
            plan_run_hand_on(c->run, of);
            plan_run_operand(of, sums[i]);
            plan_run_hand_on(of, c->run);
        } else {
            append_gradient(c, i);
        }
    }
}

static void let_go_of_sums(const PlanClip *c, const PlanTensor *sums) {
    for (uint32_t i = c->n; i-- > 0;) {
        PlanRun *of = c->clipped[i].of;
        plan_run_hand_on(c->run, of);
        plan_run_unref(of, sums[i]);
        plan_run_hand_on(of, c->run);
    }
}

static PlanTensor stack_numbers(const PlanClip *c, const PlanTensor *numbers) {
    PlanBuilder *builder = &c->run->builder;
    PlanTensor stack = new_numbers(c, c->n, "norms");
    plan_builder_begin_op(builder, PLAN_OP_FLATTEN, PLAN_AXIS_NONE, (int64_t[]){c->n}, NULL);
    for (uint32_t i = 0; i < c->n; i++) {
        plan_run_operand(c->run, numbers[i]);
    }
    plan_run_operand(c->run, stack);
    plan_builder_launch(builder, PLAN_LANE_COMPUTE);
    return stack;
}

static void let_go_of_all(const PlanClip *c, const PlanTensor *numbers) {
    for (uint32_t i = c->n; i-- > 0;) {
        plan_run_unref(c->run, numbers[i]);
    }
}

/* Tensor-parallel ranks hold equal copies of unshared parameters, so each counts 1/N of their
 * squared norm. */
static PlanTensor part_of_norm(const PlanClip *c, uint32_t i, PlanTensor norm) {
    const PlanGraph *graph = c->clipped[i].of->graph;
    const PlanGraphParameter *p = plan_graph_parameter_at(graph, c->clipped[i].parameter);
    bool is_whole = p->split == PLAN_SPLIT_NONE || gradient_of(c, i).elements > p->elements;
    return graph->shared.tensor == 1 || c->knows_no_tensor || !is_whole
               ? plan_run_ref(c->run, norm)
               : launch_new(c->run, PLAN_OP_TIMES_NUMBER, norm,
                            1 / sqrt((double)graph->shared.tensor), "part");
}

/* The norm of each gradient, in one tensor; the norms themselves are still held. */
static PlanTensor stack_norms(const PlanClip *c, PlanTensor *norms) {
    PlanBuilder *builder = &c->run->builder;
    g_autofree PlanTensor *sums = sums_of_gradients(c);
    for (uint32_t p = 0; p < c->n; p++) {
        norms[p] = new_numbers(c, 1, "norm");
    }
    plan_builder_begin_op(builder, PLAN_OP_NORMS, PLAN_AXIS_NONE, NULL, NULL);
    append_summed(c, sums);
    for (uint32_t p = 0; p < c->n; p++) {
        plan_run_operand(c->run, norms[p]);
    }
    plan_run_launch(c->run);
    let_go_of_sums(c, sums);
    g_autofree PlanTensor *parts = g_new(PlanTensor, c->n);
    for (uint32_t p = 0; p < c->n; p++) {
        parts[p] = part_of_norm(c, p, norms[p]);
    }
    PlanTensor stack = stack_numbers(c, parts);
    let_go_of_all(c, parts);
    return stack;
}

PlanTensor plan_clip_stack_one_by_one(const PlanClip *c) {
    PlanRun *run = c->run;
    g_autofree PlanTensor *norms = g_new(PlanTensor, c->n);
    for (uint32_t i = 0; i < c->n; i++) {
        int64_t n = (int64_t)gradient_of(c, i).elements;
        norms[i] = new_numbers(c, 1, "norm");
        plan_builder_begin_op(&run->builder, PLAN_OP_NORM, PLAN_AXIS_NONE, &n, NULL);
        append_gradient(c, i);
        plan_run_operand(run, norms[i]);
        plan_builder_launch(&run->builder, PLAN_LANE_COMPUTE);
    }
    PlanTensor stack = stack_numbers(c, norms);
    let_go_of_all(c, norms);
    return stack;
}

static PlanTensor whole_norms(const PlanClip *c, PlanTensor norms, PlanAxis axis, uint64_t ranks) {
    return plan_norms_over_ranks(c->run, norms, axis, ranks, "norms");
}

/* Over the mesh's other axis after the first. */
static PlanTensor over_tensor_axis(const PlanClip *c, PlanTensor norms, PlanAxis first) {
    if (c->run->graph->shared.tensor == 1 || first == PLAN_AXIS_TENSOR || c->knows_no_tensor) {
        return norms;
    }
    PlanTensor roots = whole_norms(c, norms, PLAN_AXIS_TENSOR, c->run->graph->shared.tensor);
    plan_run_unref(c->run, norms);
    return roots;
}

/* The norm of the stacked norms, which are let go of. */
static PlanTensor total_norm(const PlanClip *c, PlanTensor stack, PlanAxis axis, uint64_t ranks) {
    PlanTensor total;
    if (axis == PLAN_AXIS_NONE) {
        total = launch_new(c->run, PLAN_OP_NORM, stack, 0, "norm");
    } else {
        PlanTensor roots = whole_norms(c, stack, axis, ranks);
        roots = over_tensor_axis(c, roots, axis);
        total = launch_new(c->run, PLAN_OP_NORM, roots, 0, "norm");
        plan_run_unref(c->run, roots);
    }
    plan_run_unref(c->run, stack);
    return total;
}

static void over_stages(const PlanClip *c, PlanTensor norm) {
    uint64_t ranks = c->run->strategy->pipeline;
    if (ranks > 1) {
        launch_each(c->run, PLAN_OP_POWER, norm, 2, norm);
        plan_clip_all_reduce(c->run, norm, PLAN_AXIS_PIPELINE, ranks);
        launch_each(c->run, PLAN_OP_POWER, norm, 0.5, norm);
    }
}

PlanTensor plan_clip_ratio(const PlanClip *c, PlanTensor norm) {
    PlanTensor sum = launch_new(c->run, PLAN_OP_ADD_NUMBER, norm, 1e-6, "norm");
    PlanTensor inverse = launch_new(c->run, PLAN_OP_POWER, sum, -1, "inverse");
    PlanTensor ratio =
        launch_new(c->run, PLAN_OP_TIMES_NUMBER, inverse, c->run->strategy->clip, "ratio");
    plan_run_unref(c->run, inverse);
    plan_run_unref(c->run, sum);
    return ratio;
}

static PlanTensor coefficient_of(const PlanClip *c, PlanTensor norm) {
    PlanTensor ratio = plan_clip_ratio(c, norm);
    PlanTensor coefficient = launch_new(c->run, PLAN_OP_AT_MOST, ratio, 1, "coefficient");
    plan_run_unref(c->run, ratio);
    return coefficient;
}

void plan_clip_scale(const PlanClip *c, PlanTensor factor, uint32_t i, uint32_t n) {
    plan_builder_begin_op(&c->run->builder, PLAN_OP_SCALE_ALL, PLAN_AXIS_NONE, NULL, NULL);
    plan_run_operand(c->run, factor);
    for (; i < n; i++) {
        append_gradient(c, i);
    }
    plan_builder_launch(&c->run->builder, PLAN_LANE_COMPUTE);
}

/* 2.0 holds the norms until the end. 1.13 knows no lists, and nothing sharded that is clipped so:
 * that is this project's own, where a rank may own nothing of a parameter, which only lists take.
 */
void plan_clip_norm(PlanRun *run, PlanAxis axis, uint64_t ranks) {
    PlanPytorch pytorch = (PlanPytorch)run->strategy->pytorch;
    bool by_lists = pytorch != PLAN_PYTORCH_1_13 || axis != PLAN_AXIS_NONE;
    bool holds = pytorch == PLAN_PYTORCH_2_0;
    PlanClip c;
    plan_clip_begin(&c, run, axis != PLAN_AXIS_NONE);
    g_autofree PlanTensor *norms = g_new(PlanTensor, c.n);
    PlanTensor stack = by_lists ? stack_norms(&c, norms) : plan_clip_stack_one_by_one(&c);
    PlanTensor norm = total_norm(&c, stack, axis, ranks);
    if (by_lists && !holds) {
        let_go_of_all(&c, norms);
    }
    over_stages(&c, norm);
    PlanTensor factor = coefficient_of(&c, norm);
    for (uint32_t i = 0, n = by_lists ? c.n : 1; i < c.n; i += n) {
        plan_clip_scale(&c, factor, i, i + n);
    }
    if (holds) {
        let_go_of_all(&c, norms);
    }
    plan_run_unref(run, factor);
    plan_run_read_norm(run, norm);
    plan_run_unref(run, norm);
    g_free(c.clipped);
}

/* What clipping hands back is each rank's own part: full_tensor() adds them up. */
static void read_norm_of_2_4(const PlanClip *c, PlanTensor local, uint64_t ranks) {
    PlanTensor norm = whole_norms(c, local, PLAN_AXIS_SHARD, ranks);
    plan_run_read_norm(c->run, norm);
    plan_run_unref(c->run, norm);
}

/* FSDP2 of PyTorch 2.4 adds up the ranks' squares only where the norm is inverted. What it clips by
 * is a little off: each rank has added the 1e-6 to its own part. */
void plan_clip_norm_of_2_4(PlanRun *run, uint64_t ranks) {
    PlanClip c;
    plan_clip_begin(&c, run, true);
    g_autofree PlanTensor *norms = g_new(PlanTensor, c.n);
    PlanTensor stack = stack_norms(&c, norms);
    PlanTensor local = launch_new(run, PLAN_OP_NORM, stack, 0, "norm");
    plan_run_unref(run, stack);
    PlanTensor sum = launch_new(run, PLAN_OP_ADD_NUMBER, local, 1e-6, "norm");
    PlanTensor norm = whole_norms(&c, sum, PLAN_AXIS_SHARD, ranks);
    PlanTensor inverse = launch_new(run, PLAN_OP_POWER, norm, -1, "inverse");
    plan_run_unref(run, norm);
    PlanTensor ratio = launch_new(run, PLAN_OP_TIMES_NUMBER, inverse, run->strategy->clip, "ratio");
    plan_run_unref(run, inverse);
    plan_run_unref(run, sum);
    PlanTensor factor = launch_new(run, PLAN_OP_AT_MOST, ratio, 1, "coefficient");
    let_go_of_all(&c, norms);
    plan_run_unref(run, ratio);
    plan_clip_scale(&c, factor, 0, c.n);
    plan_run_unref(run, factor);
    if (plan_strategy_reads_norm(run->strategy)) {
        read_norm_of_2_4(&c, local, ranks);
    }
    plan_run_unref(run, local);
    g_free(c.clipped);
}

/* ---- parameters of two meshes --------------------------------------------------------------- */

/* Experts that ranks share, or layers between which they leave sequences whole. */
static bool has_axis_more(const PlanClipped *clipped) {
    const PlanRun *of = clipped->of;
    const PlanGraphParameter *p = plan_graph_parameter_at(of->graph, clipped->parameter);
    return of->units[of->unit_of_parameter[clipped->parameter]].of_experts ||
           plan_axis_of_split(p->split) == PLAN_AXIS_TENSOR || p->is_added_in_parts;
}

static PlanClip part_of_clip(const PlanClip *all, bool has_more) {
    PlanClip part = *all;
    part.clipped = g_new(PlanClipped, all->n);
    part.n = 0;
    part.knows_no_tensor = !has_more;
    for (uint32_t i = 0; i < all->n; i++) {
        if (has_axis_more(&all->clipped[i]) == has_more) {
            part.clipped[part.n++] = all->clipped[i];
        }
    }
    return part;
}

/* PLAN_NO_TENSOR of nothing, as of a stage without experts: PyTorch's is a zero of the host's. */
static PlanTensor norm_over_ranks(const PlanClip *c, uint64_t ranks) {
    if (c->n == 0) {
        return PLAN_NO_TENSOR;
    }
    g_autofree PlanTensor *norms = g_new(PlanTensor, c->n);
    uint64_t tensor = c->knows_no_tensor ? 1 : c->run->graph->shared.tensor;
    PlanAxis axis = ranks > 1 ? PLAN_AXIS_SHARD : tensor > 1 ? PLAN_AXIS_TENSOR : PLAN_AXIS_NONE;
    PlanTensor norm = total_norm(c, stack_norms(c, norms), axis, ranks > 1 ? ranks : tensor);
    let_go_of_all(c, norms);
    return norm;
}

static PlanTensor joined_norm(const PlanClip *c, const PlanTensor *norms) {
    PlanTensor squares[2], norm;
    for (unsigned i = 0; i < 2; i++) {
        squares[i] = norms[i].storage == PLAN_NONE
                         ? PLAN_NO_TENSOR
                         : launch_new(c->run, PLAN_OP_POWER, norms[i], 2, "square");
    }
    if (squares[0].storage == PLAN_NONE || squares[1].storage == PLAN_NONE) {
        norm = launch_new(c->run, PLAN_OP_ADD_NUMBER, squares[squares[0].storage == PLAN_NONE], 0,
                          "norm");
    } else {
        norm = new_numbers(c, 1, "norm");
        LAUNCH(c->run, PLAN_OP_ADD, DIMS([ADD_N] = 1, [ADD_NB] = 1), NULL, squares[0], squares[1],
               norm);
    }
    plan_run_unref(c->run, squares[0]);
    plan_run_unref(c->run, squares[1]);
    launch_each(c->run, PLAN_OP_POWER, norm, 0.5, norm);
    return norm;
}

void plan_clip_norms_of_two(PlanRun *run, uint64_t ranks) {
    PlanClip all;
    plan_clip_begin(&all, run, ranks > 1);
    PlanClip parts[] = {part_of_clip(&all, true), part_of_clip(&all, false)};
    PlanTensor norms[2];
    for (unsigned i = 0; i < 2; i++) {
        norms[i] = norm_over_ranks(&parts[i], ranks);
    }
    PlanTensor norm = joined_norm(&all, norms);
    over_stages(&all, norm);
    for (unsigned i = 0; i < 2; i++) {
        if (parts[i].n == 0) {
            continue;
        }
        PlanTensor factor = coefficient_of(&parts[i], norm);
        plan_clip_scale(&parts[i], factor, 0, parts[i].n);
        plan_run_unref(run, factor);
    }
    for (unsigned i = 0; i < 2; i++) {
        plan_run_unref(run, norms[i]);
        g_free(parts[i].clipped);
    }
    plan_run_read_norm(run, norm);
    plan_run_unref(run, norm);
    g_free(all.clipped);
}

void plan_clip_whole(PlanRun *run) {
    uint64_t tensor = run->graph->shared.tensor;
    if (run->graph->shared.whole_tokens) {
        plan_clip_norms_of_two(run, 1);
        return;
    }
    plan_clip_norm(run, tensor > 1 ? PLAN_AXIS_TENSOR : PLAN_AXIS_NONE, tensor);
}
