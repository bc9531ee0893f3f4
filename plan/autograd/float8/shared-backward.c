/* plan/autograd/float8/shared-backward.c - backward of linear layers in float8 that ranks share
 * (shared.c): of the gradient what is gathered or cast, then dx, then dw.
 */
#include "plan/autograd/float8/float8.h"
#include "plan/autograd/float8/shared-private.h"

typedef struct {
    PlanFloat8SharedCast as_is, turned;
} Gradient;

static PlanFloat8Source of_gradient(const PlanBackward *b) {
    const PlanGraphFloat8Linear *d = shape_of(b->run, b->op);
    return plan_float8_of_tensor(b->run, b->dy[0], d->m, d->n);
}

static Gradient gathered_gradient(const PlanBackward *b) {
    PlanRun *run = b->run;
    Gradient g = {.as_is = {plan_run_ref(run, b->dy[0]), run->float8.gradient_scale}};
    PlanFloat8Source dy = of_gradient(b);
    g.turned.numbers = plan_float8_turn(run, &dy, PLAN_E5M2);
    g.turned.scale = plan_run_ref(run, g.as_is.scale);
    run->float8.gradient_scale = PLAN_NO_TENSOR;
    return g;
}

static Gradient tensorwise_gradient(const PlanBackward *b) {
    PlanRun *run = b->run;
    if (!plan_float8_takes_gathered(run->graph, b->op)) {
        return gathered_gradient(b);
    }
    PlanFloat8Along whole = PLAN_FLOAT8_WHOLE;
    PlanFloat8Source dy = of_gradient(b);
    bool found = plan_float8_gradient_is_searched(run->graph, b->op);
    dy.to = PLAN_E5M2;
    PlanTensor of_all = plan_float8_scale_of_all(run, &dy, whole, found);
    PlanFloat8Casts casts = plan_float8_cast(run, &dy, of_all, whole, true, true);
    PlanTensor scale = plan_float8_inverse_of(run, of_all, dy.to);
    plan_run_unref(run, of_all);
    return (Gradient){{casts.as_is, scale}, {casts.turned, plan_run_ref(run, scale)}};
}

static Gradient gradient_by_rows(const PlanBackward *b) {
    PlanRun *run = b->run;
    Gradient g;
    PlanFloat8Along columns = PLAN_FLOAT8_EACH_COLUMN;
    PlanFloat8Source dy = of_gradient(b);
    if (plan_float8_takes_gathered(run->graph, b->op)) {
        bool found = plan_float8_gradient_is_searched(run->graph, b->op);
        g.as_is = plan_float8_cast_of_all(run, &dy, PLAN_FLOAT8_EACH_ROW, found, NULL);
    } else {
        g.as_is.numbers = plan_float8_cast_rows(run, &dy, &g.as_is.scale);
    }
    g.turned.scale = plan_float8_scale(run, &dy, columns, false);
    g.turned.numbers = plan_float8_cast(run, &dy, g.turned.scale, columns, false, true).turned;
    return g;
}

static PlanTensor saved(const PlanBackward *b, unsigned which) {
    bool has_saved = b->run->tape.nodes.items[b->node].n_saved;
    return has_saved ? plan_run_value(b->run, value_at(b, which)) : PLAN_NO_TENSOR;
}

static bool is_there(PlanTensor x) {
    return x.storage != PLAN_NONE;
}

/* Where forward left no scale, one is found: of all ranks' numbers, or of a weight's columns that
 * this rank has whole. */
static PlanTensor scale_for_dx(const PlanBackward *b, const PlanFloat8Source *weight,
                               PlanFloat8Along along) {
    PlanRun *run = b->run;
    if (plan_float8_by_rows(run) && !plan_float8_takes_gathered(run->graph, b->op)) {
        return plan_float8_scale(run, weight, along, false);
    }
    PlanTensor of_all = plan_float8_scale_of_known(run, weight, along, false);
    PlanTensor scale = plan_float8_inverse_of(run, of_all, weight->to);
    plan_run_unref(run, of_all);
    return scale;
}

/* Turned. */
static PlanFloat8SharedCast weight_for_dx(const PlanBackward *b) {
    PlanRun *run = b->run;
    PlanFloat8Along along = plan_float8_by_rows(run) ? PLAN_FLOAT8_EACH_COLUMN : PLAN_FLOAT8_WHOLE;
    PlanTensor scale = saved(b, LAYER_WEIGHT_SCALE), numbers = saved(b, LAYER_WEIGHT_CAST);
    PlanFloat8Source weight = plan_float8_of_weight(run, b->op);
    bool is_joined_again = plan_float8_by_rows(run) && !is_there(numbers);
    PlanFloat8SharedCast w = {plan_run_ref(run, numbers), is_there(scale) && !is_joined_again
                                                              ? plan_run_ref(run, scale)
                                                              : scale_for_dx(b, &weight, along)};
    if (!is_there(numbers)) {
        w.numbers = plan_float8_cast(run, &weight, w.scale, along, false, true).turned;
    }
    return w;
}

/* Of the gather before it. */
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

static void make_dx(const PlanBackward *b, const PlanGraphFloat8Linear *d,
                    const PlanFloat8SharedCast *dy) {
    PlanFloat8SharedCast w = weight_for_dx(b);
    b->dx[0] =
        plan_run_new_tensor(b->run, input(b, LAYER_INPUT)->elements, b->run->graph->dtype, "dx");
    PlanFloat8Product product = {.a = dy->numbers,
                                 .a_scale = dy->scale,
                                 .b = plan_run_operand_of(b->run, w.numbers),
                                 .b_scale = w.scale,
                                 .made = b->dx[0],
                                 .scaled = times_scaled(b),
                                 .turned = true};
    plan_float8_multiply(b->run, PLAN_OP_FLOAT8_LINEAR_DX, d, &product);
    drop(b->run, &w);
}

static void leave(const PlanBackward *b, PlanTensor numbers, PlanTensor scale) {
    plan_float8_leave_cast(b->run, value_at(b, LAYER_INPUT), true, numbers, scale);
}

/* What was cast, or was not before a block was computed again. */
static void cast_kept_input(const PlanBackward *b, const PlanGraphFloat8Linear *d) {
    PlanRun *run = b->run;
    PlanTensor x = saved(b, LAYER_INPUT_CAST), scale = saved(b, LAYER_INPUT_SCALE);
    PlanFloat8Along along = plan_float8_by_rows(run) ? PLAN_FLOAT8_EACH_COLUMN : PLAN_FLOAT8_WHOLE;
    PlanFloat8Source source = plan_float8_of_tensor(run, x, d->m, d->k);
    PlanDtype dtype = plan_run_dtype_of(run, x);
    bool again = run->tape.nodes.items[b->node].checkpoint != PLAN_NONE;
    if (!again) {
        leave(b, plan_run_ref(run, x), plan_run_ref(run, scale));
    } else if (plan_dtype_is_float8(dtype)) {
        leave(b, plan_float8_turn(run, &source, dtype), plan_run_ref(run, scale));
    } else {
        PlanTensor found = plan_float8_by_rows(run) ? plan_float8_scale(run, &source, along, false)
                                                    : plan_run_ref(run, scale);
        leave(b, plan_float8_cast(run, &source, found, along, false, true).turned, found);
    }
}

static void cast_input_for_dw(const PlanBackward *b, const PlanGraphFloat8Linear *d) {
    if (is_there(saved(b, LAYER_INPUT_CAST))) {
        if (!plan_float8_has_cast(b->run, b->op, true)) {
            cast_kept_input(b, d);
        }
    } else if (!plan_float8_go_through_swiglu(b)) {
        plan_float8_cast_input_turned(b, false);
    }
}

static void make_dx_as_gathered(const PlanBackward *b, const PlanGraphFloat8Linear *d) {
    PlanRun *run = b->run;
    PlanFloat8SharedCast w = weight_for_dx(b);
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
    Gradient g = plan_float8_by_rows(b->run) ? gradient_by_rows(b) : tensorwise_gradient(b);
    if (!is_made) {
        make_dx(b, d, &g.as_is);
    }
    drop(b->run, &g.as_is);
    cast_input_for_dw(b, d);
    plan_float8_make_dw(b, g.turned.numbers, g.turned.scale);
    drop(b->run, &g.turned);
    if (plan_float8_is_first_of_input(b->run, b->op)) {
        plan_float8_forget(b->run);
    }
}
