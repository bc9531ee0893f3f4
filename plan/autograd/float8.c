#include "plan/autograd/float8.h"

static const PlanGraphFloat8Linear *shape_of(const PlanRun *run, const PlanGraphOp *op) {
    return plan_graph_float8_linear_of(run->graph, op);
}

static bool by_rows(const PlanRun *run) {
    return run->graph->float8 == PLAN_FLOAT8_ROWWISE;
}

bool plan_float8_follows_swiglu(const PlanGraph *graph, const PlanGraphOp *op) {
    if ((PlanGraphView)op->kind != PLAN_GRAPH_FLOAT8_LINEAR) {
        return false;
    }
    int64_t maker = plan_graph_float8_linear_of(graph, op)->maker;
    return maker >= 0 && plan_graph_at(graph->ops, PlanGraphOp, maker)->kind == PLAN_OP_SWIGLU;
}

/* ---- the words ------------------------------------------------------------------------------ */

/* Numbers in 16 bits to be cast: x, or what is made of x and more as they are read. */
typedef struct {
    PlanOperand x, more;
    uint64_t elements;
} Source;

static const PlanOperand nothing = {.buffer = PLAN_NONE};

static void operand_at(PlanRun *run, PlanOperand at) {
    plan_builder_operand(&run->builder, at.buffer, at.offset_bytes, at.elements);
}

static void begin_op(PlanRun *run, PlanOpKind kind, const int64_t *dims) {
    plan_builder_begin_op(&run->builder, kind, PLAN_AXIS_NONE, dims, NULL);
}

static Source of_tensor(PlanRun *run, PlanTensor x) {
    return (Source){plan_run_operand_of(run, x), nothing, x.elements};
}

static Source of_weight(PlanRun *run, const PlanGraphOp *op) {
    uint32_t value = plan_graph_ref(run->graph, op->values + 1);
    const PlanGraphValue *v = plan_graph_at(run->graph->values, PlanGraphValue, value);
    return (Source){run->flavour->parameter(run, v->parameter), nothing, v->elements};
}

/* found: whoever makes the numbers looks for the largest as it goes. */
static PlanTensor scale_of(PlanRun *run, const Source *source, uint64_t scales, bool found) {
    PlanTensor scale = plan_run_new_tensor(run, scales, PLAN_FP32, "scale");
    begin_op(run, PLAN_OP_FLOAT8_SCALE, (int64_t[]){(int64_t)source->elements, (int64_t)scales});
    operand_at(run, found ? nothing : source->x);
    operand_at(run, found ? nothing : source->more);
    plan_run_operand(run, scale);
    plan_run_launch(run);
    return scale;
}

typedef struct {
    PlanTensor as_is, turned;
} Casts;

static Casts cast(PlanRun *run, const Source *source, PlanTensor scale, PlanDtype dtype,
                  bool wants_as_is, bool wants_turned) {
    Casts casts = {PLAN_NO_TENSOR, PLAN_NO_TENSOR};
    if (wants_as_is) {
        casts.as_is = plan_run_new_tensor(run, source->elements, dtype, "float8");
    }
    if (wants_turned) {
        casts.turned = plan_run_new_tensor(run, source->elements, dtype, "float8_turned");
    }
    begin_op(run, PLAN_OP_FLOAT8_CAST,
             (int64_t[]){(int64_t)source->elements, (int64_t)scale.elements});
    operand_at(run, source->x);
    operand_at(run, source->more);
    plan_run_operand(run, scale);
    plan_run_operand(run, casts.as_is);
    plan_run_operand(run, casts.turned);
    plan_run_launch(run);
    return casts;
}

static PlanTensor cast_rows(PlanRun *run, const Source *source, uint64_t rows,
                            PlanTensor *ret_scale) {
    PlanTensor made = plan_run_new_tensor(run, source->elements, PLAN_E4M3, "float8");
    *ret_scale = plan_run_new_tensor(run, rows, PLAN_FP32, "scale");
    begin_op(run, PLAN_OP_FLOAT8_CAST_ROWS, (int64_t[]){(int64_t)source->elements, (int64_t)rows});
    operand_at(run, source->x);
    plan_run_operand(run, made);
    plan_run_operand(run, *ret_scale);
    plan_run_launch(run);
    return made;
}

static void multiply(PlanRun *run, PlanOpKind kind, const PlanGraphFloat8Linear *d, PlanTensor a,
                     PlanTensor a_scale, PlanTensor b, PlanTensor b_scale, PlanTensor made) {
    begin_op(run, kind, (int64_t[]){d->m, d->n, d->k});
    plan_run_operand(run, a);
    plan_run_operand(run, a_scale);
    plan_run_operand(run, b);
    plan_run_operand(run, b_scale);
    plan_run_operand(run, made);
    plan_run_launch(run);
}

/* ---- what layers share ---------------------------------------------------------------------- */

void plan_float8_forget(PlanRun *run) {
    plan_run_unref(run, run->float8.cast);
    plan_run_unref(run, run->float8.scale);
    run->float8 = PLAN_NO_FLOAT8_INPUT;
}

static uint32_t x_of(const PlanRun *run, const PlanGraphOp *op) {
    return plan_graph_ref(run->graph, op->values);
}

static bool has_cast(const PlanRun *run, const PlanGraphOp *op, bool turned) {
    return run->float8.value == x_of(run, op) && run->float8.turned == turned;
}

static void leave_cast(PlanRun *run, const PlanGraphOp *op, bool turned, PlanTensor made,
                       PlanTensor scale) {
    plan_float8_forget(run);
    run->float8 = (PlanFloat8Input){x_of(run, op), turned, made, scale};
}

/* ---- forward -------------------------------------------------------------------------------- */

static void cast_input(PlanRun *run, const PlanGraphOp *op) {
    const PlanGraphFloat8Linear *d = shape_of(run, op);
    Source x = of_tensor(run, plan_run_value(run, x_of(run, op)));
    PlanTensor scale, made;
    if (by_rows(run)) {
        made = cast_rows(run, &x, (uint64_t)d->m, &scale);
    } else {
        scale = scale_of(run, &x, 1, d->maker >= 0);
        made = cast(run, &x, scale, PLAN_E4M3, true, false).as_is;
    }
    leave_cast(run, op, false, made, scale);
}

static void give(PlanRun *run, const PlanGraphOp *op, unsigned i, PlanTensor made) {
    run->storage_of_value[plan_graph_ref(run->graph, op->values + op->n_inputs + i)] = made.storage;
    uint32_t buffer = plan_run_buffer_of(run, made);
    plan_vector_push(&run->frame_buffers, buffer);
}

/* What is cast of a weight is what backward casts, unless it is by rows, and is left for it by a
 * block that is computed again; and by each under FSDP1, whose parameters are views, so that the
 * compiler keeps the half of one rather than the whole. */
static void give_weight(PlanRun *run, const PlanGraphOp *op, PlanTensor w8) {
    bool is_left = run->builder.phase == PLAN_PHASE_RECOMPUTE || run->flavour->flatten;
    if (is_left && !by_rows(run)) {
        give(run, op, 2, w8);
        return;
    }
    run->storage_of_value[plan_graph_ref(run->graph, op->values + op->n_inputs + 2)] = PLAN_NONE;
    plan_run_unref(run, w8);
}

void plan_float8_forward(PlanRun *run, const PlanGraphOp *op) {
    const PlanGraphFloat8Linear *d = shape_of(run, op);
    Source w = of_weight(run, op);
    PlanTensor w_scale, w8;
    if (!has_cast(run, op, false)) {
        cast_input(run, op);
    }
    if (by_rows(run)) {
        w8 = cast_rows(run, &w, (uint64_t)d->n, &w_scale);
    } else {
        w_scale = scale_of(run, &w, 1, false);
        w8 = cast(run, &w, w_scale, PLAN_E4M3, true, false).as_is;
    }
    const PlanGraphValue *y = plan_graph_at(run->graph->values, PlanGraphValue,
                                            plan_graph_ref(run->graph, op->values + op->n_inputs));
    PlanTensor made = plan_run_new_tensor(run, y->elements, (PlanDtype)y->dtype, "y");
    multiply(run, PLAN_OP_FLOAT8_LINEAR, d, run->float8.cast, run->float8.scale, w8, w_scale, made);
    give(run, op, 0, made);
    give(run, op, 1, w_scale);
    give_weight(run, op, w8);
    if (!d->again) {
        plan_float8_forget(run);
    }
}

/* ---- backward ------------------------------------------------------------------------------- */

/* What reads the layer's result, through views of it. */
static const PlanGraphOp *reader_of(const PlanGraph *graph, const PlanGraphOp *op) {
    uint32_t value = plan_graph_ref(graph, op->values + op->n_inputs);
    const PlanGraphOp *end = plan_graph_at(graph->ops, PlanGraphOp, graph->ops->len - 1) + 1;
    for (const PlanGraphOp *next = op + 1; next < end; next++) {
        for (unsigned i = 0; i < next->n_inputs; i++) {
            if (plan_graph_ref(graph, next->values + i) != value) {
                continue;
            }
            if ((PlanGraphView)next->kind != PLAN_GRAPH_HEADS) {
                return next;
            }
            value = plan_graph_ref(graph, next->values + next->n_inputs);
        }
    }
    return NULL;
}

/* A kernel of the compiler's makes the gradient, and looks for the largest number. A block is given
 * its own result's, and attention's are another's. */
static bool gradient_is_searched(const PlanGraph *graph, const PlanGraphOp *op) {
    const PlanGraphOp *reader = reader_of(graph, op);
    return reader && reader->kind < PLAN_N_OP_KINDS && reader->kind != PLAN_OP_ADD &&
           plan_op_info((PlanOpKind)reader->kind)->op_class == PLAN_CLASS_MEMORY;
}

typedef struct {
    PlanTensor as_is, as_is_scale, turned, turned_scale;
} Gradient;

static Gradient cast_gradient(const PlanBackward *b, const PlanGraphFloat8Linear *d) {
    Source dy = of_tensor(b->run, b->dy[0]);
    Gradient g;
    if (by_rows(b->run)) {
        g.as_is = cast_rows(b->run, &dy, (uint64_t)d->m, &g.as_is_scale);
        g.turned_scale = scale_of(b->run, &dy, (uint64_t)d->n, false);
        g.turned = cast(b->run, &dy, g.turned_scale, PLAN_E4M3, false, true).turned;
        return g;
    }
    bool found = gradient_is_searched(b->run->graph, b->op);
    g.as_is_scale = g.turned_scale = scale_of(b->run, &dy, 1, found);
    plan_run_ref(b->run, g.turned_scale);
    Casts casts = cast(b->run, &dy, g.as_is_scale, PLAN_E5M2, true, true);
    g.as_is = casts.as_is;
    g.turned = casts.turned;
    return g;
}

static void make_dx(const PlanBackward *b, const PlanGraphFloat8Linear *d, const Gradient *g) {
    Source w = of_weight(b->run, b->op);
    bool has_kept = b->run->nodes.items[b->node].n_saved && !by_rows(b->run);
    PlanTensor scale = has_kept ? plan_run_ref(b->run, plan_run_value(b->run, value_at(b, 3)))
                                : scale_of(b->run, &w, by_rows(b->run) ? (uint64_t)d->k : 1, false);
    PlanTensor left = has_kept ? plan_run_value(b->run, value_at(b, 4)) : PLAN_NO_TENSOR;
    PlanTensor w8 = left.storage != PLAN_NONE
                        ? plan_run_ref(b->run, left)
                        : cast(b->run, &w, scale, PLAN_E4M3, true, false).as_is;
    b->dx[0] = like_input(b, 0, "dx");
    multiply(b->run, PLAN_OP_FLOAT8_LINEAR_DX, d, g->as_is, g->as_is_scale, w8, scale, b->dx[0]);
    plan_run_unref(b->run, w8);
    plan_run_unref(b->run, scale);
}

/* What x is made of: itself, where it is kept. */
static Source made_of(const PlanBackward *b, const PlanGraphFloat8Linear *d) {
    const PlanGraph *graph = b->run->graph;
    Source x = {.more = nothing, .elements = input(b, 0)->elements};
    if (d->maker < 0) {
        return of_tensor(b->run, plan_run_value(b->run, value_at(b, 0)));
    }
    const PlanGraphOp *maker = plan_graph_at(graph->ops, PlanGraphOp, d->maker);
    unsigned at = maker->kind == PLAN_OP_ADD_RMSNORM ? maker->n_inputs : 0;
    x.x = plan_run_operand_of(b->run,
                              plan_run_value(b->run, plan_graph_ref(graph, maker->values + at)));
    if (maker->kind == PLAN_OP_SWIGLU) {
        x.more = plan_run_operand_of(
            b->run, plan_run_value(b->run, plan_graph_ref(graph, maker->values + 1)));
    }
    return x;
}

static void cast_input_turned(const PlanBackward *b, const PlanGraphFloat8Linear *d, bool found) {
    Source x = made_of(b, d);
    PlanTensor scale = scale_of(b->run, &x, by_rows(b->run) ? (uint64_t)d->k : 1, found);
    PlanTensor made = cast(b->run, &x, scale, PLAN_E4M3, false, true).turned;
    leave_cast(b->run, b->op, true, made, scale);
}

static PlanNode *node_of_swiglu(const PlanBackward *b, const PlanGraphFloat8Linear *d,
                                PlanEdge **ret_edge) {
    PlanRun *run = b->run;
    *ret_edge = &run->edges.items[run->nodes.items[b->node].edges];
    if (d->maker < 0 || (*ret_edge)->node == PLAN_NONE) {
        return NULL;
    }
    PlanNode *node = &run->nodes.items[(*ret_edge)->node];
    bool is_maker = node->op == (uint32_t)d->maker && node->n_dependencies == 1;
    return is_maker && plan_float8_follows_swiglu(run->graph, b->op) ? node : NULL;
}

/* The hidden layer and both gradients are there at once, for one kernel makes all three. */
static bool go_through_swiglu(const PlanBackward *b, const PlanGraphFloat8Linear *d) {
    PlanRun *run = b->run;
    PlanEdge *edge;
    PlanNode *node = node_of_swiglu(b, d, &edge);
    if (!node) {
        return false;
    }
    PlanTensor made[2], hidden = b->dx[0];
    PlanBackward swiglu = {.run = run,
                           .node = edge->node,
                           .op = plan_graph_at(run->graph->ops, PlanGraphOp, node->op),
                           .dy = (PlanTensor[]){hidden, PLAN_NO_TENSOR, PLAN_NO_TENSOR},
                           .dx = made};
    cast_input_turned(b, d, true);
    plan_swiglu_backward(&swiglu);
    plan_run_unref(run, hidden);
    b->dx[0] = made[0];
    edge->slot = PLAN_SWIGLU_GIVEN_GATE;
    run->slots.items[node->slots + PLAN_SWIGLU_GIVEN_UP] = made[1];
    return true;
}

/* By rows, torchao has gradients made by the library's product and scaled behind it
 * (float8_ops.py, addmm_float8_unwrapped): of dx by whatever reads it, of dw by a kernel. */
static void make_dw(const PlanBackward *b, const PlanGraphFloat8Linear *d, const Gradient *g) {
    PlanTensor x8 = b->run->float8.cast, x_scale = b->run->float8.scale;
    b->dx[1] = like_input(b, 1, "dw");
    multiply(b->run, PLAN_OP_FLOAT8_LINEAR_DW, d, g->turned, g->turned_scale, x8, x_scale,
             b->dx[1]);
    if (by_rows(b->run)) {
        begin_op(b->run, PLAN_OP_FLOAT8_UNSCALE, (int64_t[]){d->n, d->k});
        plan_run_operand(b->run, g->turned_scale);
        plan_run_operand(b->run, x_scale);
        plan_run_operand(b->run, b->dx[1]);
        plan_run_launch(b->run);
    }
}

/* Layers that share an input run backward from the last to the first. */
static bool is_first_of_input(const PlanBackward *b) {
    const PlanGraph *graph = b->run->graph;
    for (const PlanGraphOp *op = b->op; op-- > plan_graph_at(graph->ops, PlanGraphOp, 0);) {
        if ((PlanGraphView)op->kind == PLAN_GRAPH_FLOAT8_LINEAR) {
            return !plan_graph_float8_linear_of(graph, op)->again;
        }
    }
    return true;
}

void plan_float8_backward(const PlanBackward *b) {
    const PlanGraphFloat8Linear *d = shape_of(b->run, b->op);
    Gradient g = cast_gradient(b, d);
    make_dx(b, d, &g);
    plan_run_unref(b->run, g.as_is);
    plan_run_unref(b->run, g.as_is_scale);
    if (!go_through_swiglu(b, d) && !has_cast(b->run, b->op, true)) {
        cast_input_turned(b, d, false);
    }
    make_dw(b, d, &g);
    plan_run_unref(b->run, g.turned);
    plan_run_unref(b->run, g.turned_scale);
    if (is_first_of_input(b)) {
        plan_float8_forget(b->run);
    }
}
