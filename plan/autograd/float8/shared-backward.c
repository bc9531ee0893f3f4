/* plan/autograd/float8/shared-backward.c - backward of linear layers in float8 that ranks share
 * (shared.c): of the gradient what is gathered or cast, then dx, then dw.
 */
#include "plan/autograd/float8/float8.h"
#include "plan/autograd/float8/words.h"

static PlanFloat8Source of_gradient(const PlanBackward *b) {
    const PlanGraphFloat8Linear *d = shape_of(b->run, b->op);
    return plan_float8_of_tensor(b->run, b->dy[0], d->m, d->n);
}

static PlanFloat8Gradient gathered_gradient(const PlanBackward *b) {
    PlanRun *run = b->run;
    PlanFloat8Gradient g = {.as_is = {plan_run_ref(run, b->dy[0]), run->float8.gradient_scale}};
    PlanFloat8Source dy = of_gradient(b);
    g.turned.numbers = plan_float8_turn(run, &dy, PLAN_E5M2);
    g.turned.scale = plan_run_ref(run, g.as_is.scale);
    run->float8.gradient_scale = PLAN_NO_TENSOR;
    return g;
}

static PlanFloat8Gradient tensorwise_gradient(const PlanBackward *b) {
    PlanRun *run = b->run;
    if (!plan_float8_takes_gathered(run->graph, b->op)) {
        return gathered_gradient(b);
    }
    PlanFloat8Gradient g;
    PlanFloat8Source dy = of_gradient(b);
    bool found = plan_float8_gradient_is_searched(run->graph, b->op);
    dy.to = PLAN_E5M2;
    g.as_is = plan_float8_cast_joined(run, &dy, PLAN_FLOAT8_WHOLE, found, &g.turned.numbers);
    g.turned.scale = plan_run_ref(run, g.as_is.scale);
    return g;
}

static PlanFloat8Gradient gradient_by_rows(const PlanBackward *b) {
    PlanRun *run = b->run;
    PlanFloat8Source dy = of_gradient(b);
    bool found = plan_float8_gradient_is_searched(run->graph, b->op);
    PlanFloat8Gradient g;
    g.as_is = plan_float8_takes_gathered(run->graph, b->op)
                  ? plan_float8_cast_joined(run, &dy, PLAN_FLOAT8_EACH_ROW, found, NULL)
                  : plan_float8_cast_rows(run, &dy);
    g.turned = plan_float8_found_turned(run, &dy);
    return g;
}

/* Where forward left no scale, one is found: of all ranks' numbers, or of a weight's columns that
 * this rank has whole. */
static PlanTensor scale_for_dx(const PlanBackward *b, const PlanFloat8Source *weight,
                               PlanFloat8Along along) {
    bool has_columns =
        plan_float8_by_rows(b->run) && !plan_float8_takes_gathered(b->run->graph, b->op);
    return has_columns ? plan_float8_scale(b->run, weight, along, false)
                       : plan_float8_joined_scale(b->run, weight, along, false);
}

/* Turned. */
static PlanScaled weight_for_dx(const PlanBackward *b) {
    PlanRun *run = b->run;
    PlanFloat8Along along = plan_float8_along_columns(run);
    PlanScaled left = {saved(b, LAYER_WEIGHT_CAST), saved(b, LAYER_WEIGHT_SCALE)}, w;
    PlanFloat8Source weight = plan_float8_of_weight(run, b->op);
    bool is_joined_again = plan_float8_by_rows(run) && !is_there(left.numbers);
    w.scale = is_there(left.scale) && !is_joined_again ? plan_run_ref(run, left.scale)
                                                       : scale_for_dx(b, &weight, along);
    w.numbers = is_there(left.numbers) ? plan_run_ref(run, left.numbers)
                                       : plan_float8_cast_turned(run, &weight, w.scale, along);
    return w;
}

/* How many sequences the last gather before the op has. */
static int64_t sequences_of(const PlanGraph *graph, const PlanGraphOp *op) {
    while (op-- > plan_graph_op_at(graph, 0)) {
        if ((PlanGraphKind)op->kind == PLAN_GRAPH_SHARED_GATHER) {
            return plan_graph_dims_of(graph, op)[PLAN_GRAPH_TOKENS_BATCH];
        }
    }
    return 1;
}

/* How many layers take the input that this one takes first. */
static unsigned n_of_input(const PlanGraph *graph, const PlanGraphOp *op) {
    unsigned n = 1;
    for (; plan_graph_float8_linear_of(graph, op)->again; n++) {
        do {
            op++;
        } while ((PlanGraphKind)op->kind != PLAN_GRAPH_FLOAT8_LINEAR);
    }
    return n;
}

/* A compiler makes a sum of dx in the kernel that reads it unless it would load more than four
 * numbers for each (realize_reads_threshold; a product and its two scales are three, two such
 * products six). So of an odd number of layers the last is multiplied by its scales in the kernel
 * that puts the tokens in the order of ranks, where there are several sequences; and that one works
 * out what it gives to each of the ranks, up to eight (max_pointwise_cat_inputs), and takes one. */
static int64_t times_scaled(const PlanBackward *b) {
    const PlanGraph *graph = b->run->graph;
    if (!plan_float8_by_rows(b->run)) {
        return 0;
    }
    bool is_last =
        plan_float8_takes_gathered(graph, b->op) && plan_float8_is_first_of_input(b->run, b->op);
    bool is_joined = is_last && n_of_input(graph, b->op) % 2 == 1 && graph->shared.tensor <= 8;
    return is_joined && sequences_of(graph, b->op) > 1 ? (int64_t)graph->shared.tensor : 1;
}

static void make_dx(const PlanBackward *b, const PlanGraphFloat8Linear *d, const PlanScaled *dy) {
    PlanScaled w = weight_for_dx(b);
    b->dx[0] =
        plan_run_new_tensor(b->run, input(b, LAYER_INPUT)->elements, b->run->graph->dtype, "dx");
    PlanFloat8Product product = {.a = *dy,
                                 .b = plan_run_operand_of(b->run, w.numbers),
                                 .b_scale = w.scale,
                                 .made = b->dx[0],
                                 .scaled = times_scaled(b),
                                 .turned = true};
    plan_float8_multiply(b->run, PLAN_OP_FLOAT8_LINEAR_DX, d, &product);
    drop(b->run, &w);
}

/* What was cast, or was not before a block was computed again. */
static PlanScaled kept_input(const PlanBackward *b, const PlanGraphFloat8Linear *d) {
    PlanRun *run = b->run;
    PlanScaled x = {saved(b, LAYER_INPUT_CAST), saved(b, LAYER_INPUT_SCALE)};
    PlanFloat8Source source = plan_float8_of_tensor(run, x.numbers, d->m, d->k);
    PlanDtype dtype = plan_run_dtype_of(run, x.numbers);
    bool again = run->tape.nodes.items[b->node].checkpoint != PLAN_NONE;
    if (again && !plan_dtype_is_float8(dtype) && plan_float8_by_rows(run)) {
        return plan_float8_found_turned(run, &source);
    }
    PlanTensor numbers = !again ? plan_run_ref(run, x.numbers)
                         : plan_dtype_is_float8(dtype)
                             ? plan_float8_turn(run, &source, dtype)
                             : plan_float8_cast_turned(run, &source, x.scale, PLAN_FLOAT8_WHOLE);
    return (PlanScaled){numbers, plan_run_ref(run, x.scale)};
}

static void cast_input_for_dw(const PlanBackward *b, const PlanGraphFloat8Linear *d) {
    if (is_there(saved(b, LAYER_INPUT_CAST))) {
        if (!plan_float8_has_cast(b->run, b->op, true)) {
            plan_float8_leave_cast(b->run, value_at(b, LAYER_INPUT), true, kept_input(b, d));
        }
    } else if (!plan_float8_go_through_swiglu(b)) {
        plan_float8_cast_input_turned(b, false);
    }
}

static void make_dx_as_gathered(const PlanBackward *b, const PlanGraphFloat8Linear *d) {
    PlanRun *run = b->run;
    PlanScaled w = weight_for_dx(b);
    b->dx[0] = plan_run_new_tensor(run, input(b, LAYER_INPUT)->elements, run->graph->dtype, "dx");
    PlanAsyncProduct product = plan_float8_async_product(run, PLAN_OP_FLOAT8_LINEAR_DX, d,
                                                         run->float8.gradient_scale, &w, b->dx[0]);
    plan_async_make_dx(run, &product);
    drop(run, &w);
}

void plan_float8_shared_backward(const PlanBackward *b) {
    const PlanGraphFloat8Linear *d = shape_of(b->run, b->op);
    bool is_made = plan_async_awaits_dx(b->run);
    if (is_made) {
        make_dx_as_gathered(b, d);
    }
    PlanFloat8Gradient g =
        plan_float8_by_rows(b->run) ? gradient_by_rows(b) : tensorwise_gradient(b);
    if (!is_made) {
        make_dx(b, d, &g.as_is);
    }
    drop(b->run, &g.as_is);
    cast_input_for_dw(b, d);
    plan_float8_make_dw(b, &g.turned);
    drop(b->run, &g.turned);
    if (plan_float8_is_first_of_input(b->run, b->op)) {
        plan_float8_forget(b->run);
    }
}
