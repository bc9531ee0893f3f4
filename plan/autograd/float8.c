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

static const PlanGraphValue *weight_of(const PlanRun *run, const PlanGraphOp *op) {
    return plan_graph_at(run->graph->values, PlanGraphValue,
                         plan_graph_ref(run->graph, op->values + 1));
}

static Source of_weight(PlanRun *run, const PlanGraphOp *op) {
    const PlanGraphValue *v = weight_of(run, op);
    return (Source){run->flavour->parameter(run, v->parameter), nothing, v->elements};
}

/* Where the weight is gathered in float8; buffer PLAN_NONE: it is not. */
static PlanOperand gathered_scale(PlanRun *run, const PlanGraphOp *op) {
    return run->flavour->float8_scale
               ? run->flavour->float8_scale(run, weight_of(run, op)->parameter)
               : nothing;
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

/* A weight that is in float8 already, as the product of dx wants it. */
static PlanTensor turn(PlanRun *run, const Source *weight) {
    PlanTensor made = plan_run_new_tensor(run, weight->elements, PLAN_E4M3, "float8_turned");
    begin_op(run, PLAN_OP_FLOAT8_TURN, (int64_t[]){(int64_t)weight->elements});
    operand_at(run, weight->x);
    plan_run_operand(run, made);
    plan_run_launch(run);
    return made;
}

/* What a product divides by is found of the scale. */
static PlanTensor inverse_of(PlanRun *run, PlanOperand scale) {
    PlanTensor made = plan_run_new_tensor(run, 1, PLAN_FP32, "scale");
    begin_op(run, PLAN_OP_FLOAT8_PASS, (int64_t[]){1});
    operand_at(run, scale);
    operand_at(run, nothing);
    plan_run_operand(run, made);
    plan_run_launch(run);
    return made;
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
                     PlanTensor a_scale, PlanOperand b, PlanTensor b_scale, PlanTensor made) {
    begin_op(run, kind, (int64_t[]){d->m, d->n, d->k});
    plan_run_operand(run, a);
    plan_run_operand(run, a_scale);
    operand_at(run, b);
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

static void give_none(PlanRun *run, const PlanGraphOp *op, unsigned i) {
    run->storage_of_value[plan_graph_ref(run->graph, op->values + op->n_inputs + i)] = PLAN_NONE;
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
    give_none(run, op, 2);
    plan_run_unref(run, w8);
}

/* ---- what a compiler keeps of weights that are gathered in float8 --------------------------- */

static uint32_t block_of(const PlanGraph *graph, uint32_t module) {
    const PlanGraphModule *m = plan_graph_at(graph->modules, PlanGraphModule, module);
    while (!m->is_block && m->parent != PLAN_NONE) {
        module = m->parent;
        m = plan_graph_at(graph->modules, PlanGraphModule, module);
    }
    return module;
}

static bool is_weight_in_float8(PlanRun *run, uint32_t value) {
    uint32_t p = plan_graph_at(run->graph->values, PlanGraphValue, value)->parameter;
    return p != PLAN_NONE && run->flavour->float8_scale(run, p).buffer != PLAN_NONE;
}

/* What the block's program is given, in the order of first use: of each whether it is a parameter,
 * and that of the weight, counted with scales as inputs of their own. */
typedef struct {
    GArray *is_parameter; /* bool */
    unsigned n_with_scales, of_weight;
} Given;

static void count_inputs(PlanRun *run, const PlanGraphOp *op, uint32_t weight, bool *is_known,
                         Given *given) {
    for (unsigned i = 0; i < op->n_inputs; i++) {
        uint32_t value = plan_graph_ref(run->graph, op->values + i);
        const PlanGraphValue *v =
            value == PLAN_NONE ? NULL : plan_graph_at(run->graph->values, PlanGraphValue, value);
        if (!v || is_known[v->base]) {
            continue;
        }
        is_known[v->base] = true;
        bool is_parameter = v->parameter != PLAN_NONE;
        given->of_weight = value == weight ? given->n_with_scales : given->of_weight;
        given->n_with_scales += is_weight_in_float8(run, value) ? 2 : 1;
        g_array_append_val(given->is_parameter, is_parameter);
    }
    for (unsigned i = 0; i < op->n_outputs; i++) {
        is_known[plan_graph_ref(run->graph, op->values + op->n_inputs + i)] = true;
    }
}

/* PyTorch 2.13 keeps parameters for backward rather than what is made of them, for they are free to
 * keep (torch._functorch.config.treat_parameters_as_free_to_save). It knows them by their numbers
 * among a program's inputs before weights are taken apart in numbers and scale, and looks for them
 * by these numbers afterwards: of a weight that is another's number then, a copy as backward
 * wants it is kept instead, all of backward long. What is computed again is not. */
static bool keeps_turned(PlanRun *run, const PlanGraphOp *op) {
    const PlanGraph *graph = run->graph;
    if (run->checkpoint != PLAN_NONE || run->builder.phase != PLAN_PHASE_FORWARD) {
        return false;
    }
    g_autofree bool *is_known = g_new0(bool, graph->values->len);
    g_autoptr(GArray) is_parameter = g_array_new(FALSE, FALSE, sizeof(bool));
    Given given = {.is_parameter = is_parameter};
    uint32_t block = block_of(graph, op->module), weight = plan_graph_ref(graph, op->values + 1);
    const PlanGraphOp *first = plan_graph_at(graph->ops, PlanGraphOp, 0), *o = op;
    while (o > first && block_of(graph, o[-1].module) == block) {
        o--;
    }
    const PlanGraphOp *end = first + graph->ops->len;
    for (; o < end && block_of(graph, o->module) == block; o++) {
        count_inputs(run, o, weight, is_known, &given);
    }
    return given.of_weight >= is_parameter->len ||
           !g_array_index(is_parameter, bool, given.of_weight);
}

static PlanTensor multiplied(PlanRun *run, const PlanGraphOp *op, PlanOperand w8,
                             PlanTensor w_scale) {
    const PlanGraphValue *y = plan_graph_at(run->graph->values, PlanGraphValue,
                                            plan_graph_ref(run->graph, op->values + op->n_inputs));
    PlanTensor made = plan_run_new_tensor(run, y->elements, (PlanDtype)y->dtype, "y");
    multiply(run, PLAN_OP_FLOAT8_LINEAR, shape_of(run, op), run->float8.cast, run->float8.scale, w8,
             w_scale, made);
    return made;
}

static void forward_of_gathered(PlanRun *run, const PlanGraphOp *op, PlanOperand scale) {
    Source w = of_weight(run, op);
    PlanTensor w_scale = inverse_of(run, scale);
    give(run, op, 0, multiplied(run, op, w.x, w_scale));
    give(run, op, 1, w_scale);
    if (keeps_turned(run, op)) {
        give(run, op, 2, turn(run, &w));
    } else {
        give_none(run, op, 2);
    }
}

static void forward_of_cast(PlanRun *run, const PlanGraphOp *op) {
    Source w = of_weight(run, op);
    PlanTensor w_scale, w8;
    if (by_rows(run)) {
        w8 = cast_rows(run, &w, (uint64_t)shape_of(run, op)->n, &w_scale);
    } else {
        w_scale = scale_of(run, &w, 1, false);
        w8 = cast(run, &w, w_scale, PLAN_E4M3, true, false).as_is;
    }
    give(run, op, 0, multiplied(run, op, plan_run_operand_of(run, w8), w_scale));
    give(run, op, 1, w_scale);
    give_weight(run, op, w8);
}

void plan_float8_forward(PlanRun *run, const PlanGraphOp *op) {
    PlanOperand scale = gathered_scale(run, op);
    if (!has_cast(run, op, false)) {
        cast_input(run, op);
    }
    if (scale.buffer != PLAN_NONE) {
        forward_of_gathered(run, op, scale);
    } else {
        forward_of_cast(run, op);
    }
    if (!shape_of(run, op)->again) {
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

/* The weight as the product of dx takes it, and its scale. */
typedef struct {
    PlanTensor numbers, scale;
} Weight;

static Weight weight_for_dx(const PlanBackward *b, const PlanGraphFloat8Linear *d) {
    PlanRun *run = b->run;
    Weight weight;
    Source w = of_weight(run, b->op);
    PlanOperand gathered = gathered_scale(run, b->op);
    bool is_gathered = gathered.buffer != PLAN_NONE;
    bool has_kept = run->nodes.items[b->node].n_saved && !by_rows(run);
    weight.scale = has_kept      ? plan_run_ref(run, plan_run_value(run, value_at(b, 3)))
                   : is_gathered ? inverse_of(run, gathered)
                                 : scale_of(run, &w, by_rows(run) ? (uint64_t)d->k : 1, false);
    PlanTensor left = has_kept ? plan_run_value(run, value_at(b, 4)) : PLAN_NO_TENSOR;
    weight.numbers = left.storage != PLAN_NONE ? plan_run_ref(run, left)
                     : is_gathered             ? turn(run, &w)
                                   : cast(run, &w, weight.scale, PLAN_E4M3, true, false).as_is;
    return weight;
}

static void make_dx(const PlanBackward *b, const PlanGraphFloat8Linear *d, const Gradient *g) {
    Weight w = weight_for_dx(b, d);
    b->dx[0] = like_input(b, 0, "dx");
    multiply(b->run, PLAN_OP_FLOAT8_LINEAR_DX, d, g->as_is, g->as_is_scale,
             plan_run_operand_of(b->run, w.numbers), w.scale, b->dx[0]);
    plan_run_unref(b->run, w.numbers);
    plan_run_unref(b->run, w.scale);
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
    multiply(b->run, PLAN_OP_FLOAT8_LINEAR_DW, d, g->turned, g->turned_scale,
             plan_run_operand_of(b->run, x8), x_scale, b->dx[1]);
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
