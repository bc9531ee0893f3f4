#include "plan/graph/private.h"

#include "plan/graph/autocast.h"

/* A local variable of the module that was entered at a step. */
typedef struct {
    uint32_t enter_step, value;
    bool is_argument;
} Local;

PlanGraph *plan_graph_new(PlanDtype dtype) {
    PlanGraph *graph = g_new0(PlanGraph, 1);
    graph->dtype = dtype;
    graph->tensor = graph->expert = 1;
    /* Room for a large network at once: memory that nobody touches costs less than copying. */
    graph->modules = g_array_sized_new(FALSE, FALSE, sizeof(PlanGraphModule), 1024);
    graph->parameters = g_array_sized_new(FALSE, FALSE, sizeof(PlanGraphParameter), 2048);
    graph->values = g_array_sized_new(FALSE, FALSE, sizeof(PlanGraphValue), 4096);
    graph->ops = g_array_sized_new(FALSE, FALSE, sizeof(PlanGraphOp), 2048);
    graph->steps = g_array_sized_new(FALSE, FALSE, sizeof(PlanGraphStep), 8192);
    graph->value_refs = g_array_sized_new(FALSE, FALSE, sizeof(uint32_t), 16384);
    graph->dims = g_array_sized_new(FALSE, FALSE, sizeof(int64_t), 8192);
    graph->attrs = g_array_sized_new(FALSE, FALSE, sizeof(double), 2048);
    graph->inputs = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    graph->buffers = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    graph->releases = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    graph->holds = g_array_sized_new(FALSE, FALSE, sizeof(uint32_t), 4096);
    graph->frames = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    graph->locals = g_array_new(FALSE, FALSE, sizeof(Local));
    graph->ranks = g_array_sized_new(FALSE, FALSE, sizeof(uint64_t), 4096);
    graph->copies = g_array_sized_new(FALSE, FALSE, sizeof(uint32_t), 2048);
    graph->made = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    graph->loss = graph->rope_frequencies = graph->last_float8 = PLAN_NONE;
    graph->arrives = graph->leaves = PLAN_NONE;
    graph->n_stages = 1;
    graph->strings = g_string_chunk_new(4096);
    return graph;
}

void plan_graph_free(PlanGraph *graph) {
    if (!graph) {
        return;
    }
    GArray *arrays[] = {graph->modules, graph->parameters, graph->values,  graph->ops,
                        graph->steps,   graph->value_refs, graph->dims,    graph->attrs,
                        graph->inputs,  graph->releases,   graph->holds,   graph->frames,
                        graph->locals,  graph->ranks,      graph->buffers, graph->copies,
                        graph->made};
    for (unsigned i = 0; i < G_N_ELEMENTS(arrays); i++) {
        g_array_unref(arrays[i]);
    }
    g_string_chunk_free(graph->strings);
    plan_graph_free(graph->behind);
    g_free(graph);
}

static const char *qualified(PlanGraph *graph, uint32_t parent, const char *local) {
    const char *prefix =
        parent == PLAN_NONE ? "" : plan_graph_at(graph->modules, PlanGraphModule, parent)->name;
    g_autofree char *name = *prefix ? g_strconcat(prefix, ".", local, NULL) : g_strdup(local);
    return g_string_chunk_insert(graph->strings, name);
}

uint32_t plan_graph_module(PlanGraph *graph, uint32_t parent, const char *local_name,
                           const char *class_name, bool is_block) {
    PlanGraphModule module = {
        .name = qualified(graph, parent, local_name),
        .class_name = g_string_chunk_insert_const(graph->strings, class_name),
        .parent = parent,
        .is_block = is_block,
    };
    g_array_append_val(graph->modules, module);
    return graph->modules->len - 1;
}

uint32_t plan_graph_add_value(PlanGraph *graph, PlanGraphValue value) {
    uint32_t id = graph->values->len;
    if (value.base == PLAN_NONE) {
        value.base = id;
    }
    g_array_append_val(graph->values, value);
    uint32_t never = PLAN_NONE;
    g_array_append_val(graph->holds, never);
    uint64_t rank = (uint64_t)id << 8;
    g_array_append_val(graph->ranks, rank);
    return id;
}

bool plan_graph_wants_gradient(const PlanGraph *graph, uint32_t value) {
    return value != PLAN_NONE && plan_graph_at(graph->values, PlanGraphValue, value)->requires_grad;
}

bool plan_graph_is_named(const PlanGraph *graph, uint32_t module, const GRegex *whole) {
    const PlanGraphModule *m = plan_graph_at(graph->modules, PlanGraphModule, module);
    return g_regex_match(whole, m->name, 0, NULL) || g_regex_match(whole, m->class_name, 0, NULL);
}

bool plan_graph_is_in(const PlanGraph *graph, uint32_t module, const GRegex *whole) {
    uint32_t m = module;
    while (m != PLAN_NONE && !plan_graph_is_named(graph, m, whole)) {
        m = plan_graph_at(graph->modules, PlanGraphModule, m)->parent;
    }
    return m != PLAN_NONE;
}

bool plan_graph_is_in_block(const PlanGraph *graph, uint32_t module) {
    uint32_t m = module;
    while (m != PLAN_NONE && !plan_graph_at(graph->modules, PlanGraphModule, m)->is_block) {
        m = plan_graph_at(graph->modules, PlanGraphModule, m)->parent;
    }
    return m != PLAN_NONE;
}

bool plan_graph_is_in_program(const PlanGraph *graph, uint32_t module) {
    uint32_t block = plan_graph_block_of(graph, module);
    return graph->compiled && (!graph->compiled_parts ||
                               plan_graph_at(graph->modules, PlanGraphModule, block)->is_program);
}

uint32_t plan_graph_block_of(const PlanGraph *graph, uint32_t module) {
    const PlanGraphModule *m = plan_graph_at(graph->modules, PlanGraphModule, module);
    while (!m->is_block && m->parent != PLAN_NONE) {
        module = m->parent;
        m = plan_graph_at(graph->modules, PlanGraphModule, module);
    }
    return module;
}

static bool is_frozen(const PlanGraph *graph, uint32_t module) {
    const PlanGraphTrained *t = &graph->trained;
    return (t->lora_rank && !graph->declares_adapter) ||
           (t->frozen && plan_graph_is_in(graph, module, t->frozen));
}

static bool has_gradient(const PlanGraph *graph, uint32_t parameter, bool frozen) {
    return !frozen || (graph->trained.joined && graph->trained.joined[parameter]);
}

uint32_t plan_graph_parameter(PlanGraph *graph, uint32_t module, const char *local_name,
                              unsigned n_dims, const int64_t *dims, PlanInit init,
                              double init_value) {
    PlanGraphParameter parameter = {
        .name = qualified(graph, module, local_name),
        .module = module,
        .n_dims = (uint8_t)n_dims,
        .elements = 1,
        .init = init,
        .init_value = init_value,
        .frozen = is_frozen(graph, module),
        .of_adapter = graph->declares_adapter,
        .wide = graph->declares_adapter && graph->trained.lora_wide,
    };
    for (unsigned i = 0; i < n_dims; i++) {
        parameter.dims[i] = dims[i];
        parameter.elements *= (uint64_t)dims[i];
    }
    uint32_t no_copy = PLAN_NONE;
    g_array_append_val(graph->copies, no_copy);
    g_array_append_val(graph->parameters, parameter);
    return plan_graph_add_value(
        graph, (PlanGraphValue){.parameter = graph->parameters->len - 1,
                                .base = PLAN_NONE,
                                .elements = parameter.elements,
                                .dtype = parameter.wide ? PLAN_FP32 : (uint8_t)graph->dtype,
                                .requires_grad = has_gradient(graph, graph->parameters->len - 1,
                                                              parameter.frozen)});
}

void plan_graph_share_out(PlanGraph *graph, uint32_t value, PlanShare share) {
    const PlanGraphValue *v = plan_graph_at(graph->values, PlanGraphValue, value);
    plan_graph_at(graph->parameters, PlanGraphParameter, v->parameter)->share = share;
}

void plan_graph_sees_all(PlanGraph *graph, uint32_t value) {
    uint32_t parameter = plan_graph_at(graph->values, PlanGraphValue, value)->parameter;
    plan_graph_at(graph->parameters, PlanGraphParameter, parameter)->sees_all = true;
}

void plan_graph_freeze(PlanGraph *graph, uint32_t value) {
    PlanGraphValue *v = plan_graph_at(graph->values, PlanGraphValue, value);
    plan_graph_at(graph->parameters, PlanGraphParameter, v->parameter)->frozen = true;
    v->requires_grad = false;
}

void plan_graph_share(PlanGraph *graph, uint32_t module, uint32_t value) {
    PlanGraphValue *v = plan_graph_at(graph->values, PlanGraphValue, value);
    PlanGraphParameter *p = plan_graph_at(graph->parameters, PlanGraphParameter, v->parameter);
    p->frozen |= is_frozen(graph, module);
    v->requires_grad = has_gradient(graph, v->parameter, p->frozen);
}

uint32_t plan_graph_input(PlanGraph *graph, PlanDtype dtype, uint64_t elements, uint64_t bound) {
    uint32_t value = plan_graph_add_value(graph, (PlanGraphValue){.parameter = PLAN_NONE,
                                                                  .base = PLAN_NONE,
                                                                  .elements = elements,
                                                                  .dtype = (uint8_t)dtype,
                                                                  .is_input = true,
                                                                  .bound = bound});
    g_array_append_val(graph->inputs, value);
    return value;
}

uint32_t plan_graph_arriving(PlanGraph *graph, uint64_t elements) {
    graph->arrives = plan_graph_add_value(graph, (PlanGraphValue){.parameter = PLAN_NONE,
                                                                  .base = PLAN_NONE,
                                                                  .elements = elements,
                                                                  .dtype = (uint8_t)graph->dtype,
                                                                  .requires_grad = true,
                                                                  .is_input = true});
    return graph->arrives;
}

static uint32_t add_buffer(PlanGraph *graph, PlanDtype dtype, uint64_t elements, uint32_t behind) {
    uint32_t value = plan_graph_add_value(graph, (PlanGraphValue){.parameter = PLAN_NONE,
                                                                  .base = PLAN_NONE,
                                                                  .elements = elements,
                                                                  .dtype = (uint8_t)dtype,
                                                                  .is_input = true,
                                                                  .behind = behind});
    g_array_append_val(graph->buffers, value);
    return value;
}

void plan_graph_buffer(PlanGraph *graph, PlanDtype dtype, uint64_t elements) {
    add_buffer(graph, dtype, elements, PLAN_NONE);
}

uint32_t plan_graph_buffer_between(PlanGraph *graph, PlanDtype dtype, uint64_t elements) {
    return add_buffer(graph, dtype, elements, graph->parameters->len);
}

uint32_t plan_graph_add_refs(PlanGraph *graph, const uint32_t *values, unsigned n) {
    uint32_t first = graph->value_refs->len;
    g_array_append_vals(graph->value_refs, values, n);
    return first;
}

void plan_graph_add_step(PlanGraph *graph, PlanGraphStepKind kind, uint32_t index,
                         const uint32_t *values, unsigned n) {
    PlanGraphStep step = {.kind = kind,
                          .index = index,
                          .values = plan_graph_add_refs(graph, values, n),
                          .n_values = n};
    g_array_append_val(graph->steps, step);
}

/* The value is held at least until that step. */
static void hold_until(PlanGraph *graph, uint32_t value, uint32_t step) {
    uint32_t *hold = plan_graph_at(graph->holds, uint32_t, value);
    if (*hold == PLAN_NONE || *hold < step) {
        *hold = step;
    }
}

/* What is entered with the next step. */
static void push_frame(PlanGraph *graph, uint32_t module) {
    uint32_t frame[2] = {module, graph->steps->len};
    g_array_append_vals(graph->frames, frame, 2);
}

void plan_graph_enter(PlanGraph *graph, uint32_t module, const uint32_t *arguments, unsigned n) {
    push_frame(graph, module);
    plan_graph_add_step(graph, PLAN_STEP_ENTER, module, arguments, n);
}

void plan_graph_enter_with(PlanGraph *graph, uint32_t module, const uint32_t *arguments,
                           unsigned n) {
    plan_graph_enter(graph, module, arguments, n);
    plan_graph_at(graph->steps, PlanGraphStep, graph->steps->len - 1)->takes_over = true;
}

uint32_t plan_graph_module_now(const PlanGraph *graph) {
    uint32_t n = graph->frames->len;
    return n ? g_array_index(graph->frames, uint32_t, n - 2) : 0;
}

void plan_graph_call(PlanGraph *graph, uint32_t module) {
    push_frame(graph, module);
}

/* Returns the first step of what returns. */
static uint32_t pop_frame(PlanGraph *graph) {
    g_assert(graph->frames->len >= 2);
    uint32_t enter = g_array_index(graph->frames, uint32_t, graph->frames->len - 1);
    uint32_t module = g_array_index(graph->frames, uint32_t, graph->frames->len - 2);
    g_array_set_size(graph->frames, graph->frames->len - 2);
    plan_graph_add_step(graph, PLAN_STEP_RETURN, module, NULL, 0);
    return enter;
}

static void let_go_of_locals(PlanGraph *graph, uint32_t enter, uint32_t return_step) {
    while (graph->locals->len) {
        Local local = g_array_index(graph->locals, Local, graph->locals->len - 1);
        if (local.enter_step != enter) {
            break;
        }
        g_array_set_size(graph->locals, graph->locals->len - 1);
        hold_until(graph, local.value, return_step + local.is_argument);
    }
}

void plan_graph_return(PlanGraph *graph) {
    uint32_t enter = pop_frame(graph);
    let_go_of_locals(graph, enter, graph->steps->len - 1);
}

void plan_graph_leave(PlanGraph *graph, const uint32_t *results, unsigned n) {
    uint32_t module = plan_graph_module_now(graph), enter = pop_frame(graph);
    uint32_t return_step = graph->steps->len - 1;
    plan_graph_add_step(graph, PLAN_STEP_LEAVE, module, results, n);
    PlanGraphStep entered = *plan_graph_at(graph->steps, PlanGraphStep, enter);
    for (unsigned i = 0; i < entered.n_values && !entered.takes_over; i++) {
        hold_until(graph, plan_graph_ref(graph, entered.values + i), return_step + 1);
    }
    let_go_of_locals(graph, enter, return_step);
    for (unsigned i = 0; i < n; i++) {
        hold_until(graph, results[i], return_step + 1);
    }
}

static uint32_t add_table(PlanGraph *graph, uint64_t seq, uint64_t dim) {
    PlanGraphValue table = {.parameter = PLAN_NONE,
                            .base = PLAN_NONE,
                            .elements = seq * dim,
                            .dtype = PLAN_FP32,
                            .is_input = true};
    return plan_graph_add_value(graph, table);
}

static void add_rope(PlanGraph *graph, PlanGraphRope rope) {
    g_assert(graph->n_ropes < G_N_ELEMENTS(graph->ropes));
    graph->ropes[graph->n_ropes++] = rope;
}

void plan_graph_rope(PlanGraph *graph, uint64_t seq, uint64_t dim, double base) {
    uint32_t cosines = add_table(graph, seq, dim), sines = add_table(graph, seq, dim);
    add_rope(graph, (PlanGraphRope){cosines, sines, seq, dim, base});
}

void plan_graph_turns(PlanGraph *graph, uint64_t seq, uint64_t dim, double base) {
    uint32_t turns = add_table(graph, seq, dim);
    add_rope(graph, (PlanGraphRope){turns, turns, seq, dim, base});
}

void plan_graph_rope_frequencies(PlanGraph *graph, uint64_t dim, double base) {
    graph->rope_frequencies = add_buffer(graph, PLAN_FP32, dim / 2, graph->parameters->len);
    graph->rope_dim = dim;
    graph->rope_base = base;
}

void plan_graph_keep(PlanGraph *graph, uint32_t value) {
    hold_until(graph, value, graph->steps->len - 1);
}

void plan_graph_give_name(PlanGraph *graph, uint32_t value, uint32_t next) {
    plan_graph_keep(graph, value);
    plan_graph_at(graph->values, PlanGraphValue, value)->next = next;
}

void plan_graph_goes_behind(PlanGraph *graph, uint32_t value, uint32_t other) {
    plan_graph_at(graph->values, PlanGraphValue, value)->behind_variable = other;
}

void plan_graph_let_go_after(PlanGraph *graph, uint32_t value, uint32_t other) {
    *plan_graph_at(graph->ranks, uint64_t, value) =
        *plan_graph_at(graph->ranks, uint64_t, other) + 1;
}

static void hold(PlanGraph *graph, uint32_t value, bool is_argument) {
    g_assert(graph->frames->len >= 2);
    uint32_t enter = g_array_index(graph->frames, uint32_t, graph->frames->len - 1);
    Local local = {enter, value, is_argument};
    g_array_append_val(graph->locals, local);
}

void plan_graph_hold(PlanGraph *graph, uint32_t value) {
    hold(graph, value, false);
}

void plan_graph_hold_argument(PlanGraph *graph, uint32_t value) {
    hold(graph, value, true);
}

uint32_t plan_graph_add_view(PlanGraph *graph, uint32_t base, uint64_t offset, uint64_t elements) {
    PlanGraphValue of = *plan_graph_at(graph->values, PlanGraphValue, base);
    return plan_graph_add_value(graph, (PlanGraphValue){.parameter = PLAN_NONE,
                                                        .base = of.base,
                                                        .offset = of.offset + offset,
                                                        .elements = elements,
                                                        .dtype = of.dtype,
                                                        .requires_grad = of.requires_grad});
}

uint32_t plan_graph_add_op(PlanGraph *graph, PlanGraphOp op, const uint32_t *values) {
    op.module = plan_graph_module_now(graph);
    op.values = plan_graph_add_refs(graph, values, op.n_inputs + op.n_outputs);
    g_array_append_val(graph->ops, op);
    uint32_t step = graph->steps->len;
    plan_graph_add_step(graph, PLAN_STEP_OP, graph->ops->len - 1, NULL, 0);
    for (unsigned i = 0; i < op.n_inputs + op.n_outputs; i++) {
        if (values[i] != PLAN_NONE) {
            hold_until(graph, values[i], step);
        }
    }
    return graph->ops->len - 1;
}

void plan_graph_add_written(PlanGraph *graph, PlanGraphView kind, const uint32_t *values,
                            unsigned n_inputs, unsigned n_outputs, const int64_t *dims,
                            unsigned n_dims) {
    PlanGraphOp op = {.kind = kind,
                      .n_inputs = n_inputs,
                      .n_outputs = n_outputs,
                      .dims = graph->dims->len,
                      .attrs = graph->attrs->len};
    g_array_append_vals(graph->dims, dims, n_dims);
    plan_graph_add_op(graph, op, values);
}

/* Other outputs are for backward alone. */
static bool is_result(PlanOpKind kind, unsigned output) {
    switch (kind) {
    case PLAN_OP_ADD_RMSNORM:
    case PLAN_OP_ADD_LAYERNORM:
        return output < 2;
    case PLAN_OP_COMPILED_LOSS:
        return output == 2; /* behind what its first kernel leaves of each row */
    default:
        return output == 0;
    }
}

bool plan_graph_is_kept_copy(const PlanGraph *graph, uint32_t x, uint32_t copy) {
    uint32_t p = plan_graph_at(graph->values, PlanGraphValue, x)->parameter;
    return p != PLAN_NONE && g_array_index(graph->copies, uint32_t, p) == copy;
}

void plan_graph_let_go_of_casts(PlanGraph *graph, const uint32_t *given, const uint32_t *used,
                                unsigned n, uint32_t last_made) {
    uint32_t before = last_made;
    for (unsigned i = 0; i < n; i++) {
        if (used[i] != given[i] && !plan_graph_is_kept_copy(graph, given[i], used[i])) {
            plan_graph_let_go_after(graph, used[i], before);
            before = used[i];
        }
    }
}

/* Whoever calls holds what it gave, though the op was given a cast of it. */
static void hold_what_was_cast(PlanGraph *graph, const uint32_t *given, const uint32_t *used,
                               unsigned n) {
    for (unsigned i = 0; i < n; i++) {
        if (used[i] != given[i]) {
            hold_until(graph, given[i], graph->steps->len - 1);
        }
    }
}

static bool any_wants_gradient(const PlanGraph *graph, const uint32_t *values, unsigned n) {
    bool wants = false;
    for (unsigned i = 0; i < n; i++) {
        wants |= plan_graph_wants_gradient(graph, values[i]);
    }
    return wants;
}

/* What an op only writes is behind what it reads. */
static unsigned n_read(const PlanOpInfo *info) {
    unsigned n = info->n_slots;
    while (n > 0 && !(info->slots[n - 1].flags & PLAN_SLOT_READ)) {
        n--;
    }
    return n;
}

uint32_t plan_graph_op_making(PlanGraph *graph, PlanOpKind kind, const uint32_t *inputs,
                              const PlanGraphResult *results, const int64_t *dims,
                              const double *attrs) {
    const PlanOpInfo *info = plan_op_info(kind);
    unsigned n_inputs = n_read(info), n_outputs = info->n_slots - n_inputs;
    uint32_t values[PLAN_MAX_SLOTS];
    g_assert(!info->n_lists);
    for (unsigned i = 0; i < n_inputs; i++) {
        values[i] = inputs[i];
    }
    if (graph->autocasts) {
        plan_autocast_inputs(graph, kind, values, n_inputs);
    }
    bool differentiable = any_wants_gradient(graph, values, n_inputs);
    for (unsigned i = 0; i < n_outputs; i++) {
        bool casts = graph->autocasts && i < plan_autocast_n_results(kind);
        PlanDtype dtype = results[i].dtype;
        if (casts) {
            dtype = plan_autocast_result(graph, kind, i, values, n_inputs, dtype);
        }
        values[n_inputs + i] = plan_graph_add_value(
            graph, (PlanGraphValue){.parameter = PLAN_NONE,
                                    .base = PLAN_NONE,
                                    .elements = results[i].elements,
                                    .dtype = (uint8_t)dtype,
                                    .requires_grad = differentiable && is_result(kind, i)});
    }
    PlanGraphOp op = {.kind = kind,
                      .n_inputs = n_inputs,
                      .n_outputs = n_outputs,
                      .dims = graph->dims->len,
                      .attrs = graph->attrs->len};
    g_array_append_vals(graph->dims, dims, info->n_dims);
    g_array_append_vals(graph->attrs, attrs, info->n_attrs);
    plan_graph_add_op(graph, op, values);
    if (graph->autocasts) {
        hold_what_was_cast(graph, inputs, values, n_inputs);
        plan_graph_let_go_of_casts(graph, inputs, values, n_inputs,
                                   values[n_inputs + n_outputs - 1]);
    }
    return n_outputs ? values[n_inputs] : PLAN_NONE;
}

uint32_t plan_graph_op(PlanGraph *graph, PlanOpKind kind, const uint32_t *inputs, PlanDtype dtype,
                       uint64_t elements, const int64_t *dims, const double *attrs) {
    PlanGraphResult result = {dtype, elements};
    g_assert(n_read(plan_op_info(kind)) + 1 == plan_op_info(kind)->n_slots);
    return plan_graph_op_making(graph, kind, inputs, &result, dims, attrs);
}

uint32_t plan_graph_op_into(PlanGraph *graph, uint32_t into, PlanOpKind kind,
                            const uint32_t *inputs, const int64_t *dims) {
    PlanGraphValue of = *plan_graph_at(graph->values, PlanGraphValue, into);
    uint32_t y = plan_graph_op(graph, kind, inputs, (PlanDtype)of.dtype, of.elements, dims, NULL);
    PlanGraphValue *made = plan_graph_at(graph->values, PlanGraphValue, y);
    made->base = of.base;
    made->offset = of.offset;
    hold_until(graph, into, graph->steps->len - 1);
    return y;
}

uint32_t plan_graph_cast(PlanGraph *graph, uint32_t x, PlanDtype dtype) {
    PlanGraphValue v = *plan_graph_at(graph->values, PlanGraphValue, x);
    if (v.dtype == dtype) {
        return x;
    }
    bool is_compiled = graph->compiled && graph->fused;
    bool kept = v.parameter != PLAN_NONE && v.requires_grad && graph->keeps_copies &&
                !is_compiled && graph->autocasts && dtype == graph->lower && v.dtype == PLAN_FP32;
    uint32_t *copy = kept ? plan_graph_at(graph->copies, uint32_t, v.parameter) : NULL;
    if (kept && *copy != PLAN_NONE) {
        return *copy;
    }
    int64_t n = (int64_t)v.elements;
    uint32_t made = plan_graph_op(graph, PLAN_OP_CAST, &x, dtype, v.elements, &n, NULL);
    if (kept) {
        *copy = made;
    }
    return made;
}

PlanDtype plan_graph_product_dtype(const PlanGraph *graph) {
    return graph->autocasts ? graph->lower : graph->dtype;
}

void plan_graph_leave_autocast(PlanGraph *graph, uint32_t module) {
    if (!graph->autocasts) {
        return;
    }
    graph->autocasts = false;
    plan_graph_add_step(graph, PLAN_STEP_RETURN, module, NULL, 0);
    for (uint32_t p = 0; p < graph->copies->len; p++) {
        uint32_t copy = g_array_index(graph->copies, uint32_t, p);
        if (copy != PLAN_NONE) {
            hold_until(graph, copy, graph->steps->len - 1);
        }
    }
}

/* Views of columns that stand side by side in x's rows, or of matrices one behind the other. */
static void split(PlanGraph *graph, uint32_t x, uint64_t rows, const uint64_t *cols, unsigned n,
                  bool in_rows, uint32_t *ret_views) {
    uint32_t values[PLAN_MAX_SLOTS] = {x};
    uint64_t width = 0;
    g_assert(n < PLAN_MAX_SLOTS);
    for (unsigned i = 0; i < n; i++) {
        values[1 + i] = ret_views[i] =
            plan_graph_add_view(graph, x, in_rows ? width : rows * width, rows * cols[i]);
        width += cols[i];
    }
    int64_t dims[] = {(int64_t)rows, (int64_t)width};
    PlanGraphOp op = {.kind = PLAN_GRAPH_SPLIT,
                      .n_inputs = 1,
                      .n_outputs = n,
                      .dims = graph->dims->len,
                      .attrs = graph->attrs->len};
    g_array_append_vals(graph->dims, dims, G_N_ELEMENTS(dims));
    plan_graph_add_op(graph, op, values);
}

void plan_graph_split(PlanGraph *graph, uint32_t x, uint64_t rows, const uint64_t *cols, unsigned n,
                      uint32_t *ret_views) {
    split(graph, x, rows, cols, n, true, ret_views);
}

void plan_graph_parts(PlanGraph *graph, uint32_t x, uint64_t rows, const uint64_t *cols, unsigned n,
                      uint32_t *ret_views) {
    split(graph, x, rows, cols, n, false, ret_views);
}

static uint32_t add_view_op(PlanGraph *graph, PlanGraphView kind, uint32_t x, uint64_t offset,
                            uint64_t elements, const int64_t *dims, unsigned n_dims) {
    uint32_t values[] = {x, plan_graph_add_view(graph, x, offset, elements)};
    PlanGraphOp op = {.kind = kind,
                      .n_inputs = 1,
                      .n_outputs = 1,
                      .dims = graph->dims->len,
                      .attrs = graph->attrs->len};
    g_array_append_vals(graph->dims, dims, n_dims);
    plan_graph_add_op(graph, op, values);
    return values[1];
}

uint32_t plan_graph_half(PlanGraph *graph, uint32_t x, uint64_t rows, uint64_t half, bool upper) {
    int64_t dims[] = {(int64_t)rows, (int64_t)half, upper ? (int64_t)half : 0};
    return add_view_op(graph, PLAN_GRAPH_HALF, x, 0, 2 * rows * half, dims, G_N_ELEMENTS(dims));
}

uint32_t plan_graph_columns(PlanGraph *graph, uint32_t x, const PlanGraphColumns *columns) {
    int64_t dims[] = {(int64_t)columns->rows,     (int64_t)columns->cols,
                      (int64_t)columns->from,     (int64_t)columns->total,
                      (int64_t)columns->dy_width, (int64_t)columns->dy_from};
    uint64_t elements = plan_graph_at(graph->values, PlanGraphValue, x)->elements;
    return add_view_op(graph, PLAN_GRAPH_COLUMNS, x, 0, elements, dims, G_N_ELEMENTS(dims));
}

uint32_t plan_graph_slice(PlanGraph *graph, uint32_t x, uint64_t rows, uint64_t width,
                          uint64_t from, uint64_t cols) {
    int64_t dims[] = {(int64_t)rows, (int64_t)width, (int64_t)from};
    return add_view_op(graph, PLAN_GRAPH_SLICE, x, from, rows * cols, dims, G_N_ELEMENTS(dims));
}

uint32_t plan_graph_rest(PlanGraph *graph, uint32_t x) {
    return add_view_op(graph, PLAN_GRAPH_REST, x, 0, 0, NULL, 0);
}

uint32_t plan_graph_heads(PlanGraph *graph, uint32_t x, uint64_t batch, uint64_t seq,
                          uint64_t heads, uint64_t head_dim, PlanGraphHeads mode) {
    int64_t dims[] = {(int64_t)batch, (int64_t)seq, (int64_t)heads, (int64_t)head_dim, mode};
    return add_view_op(graph, PLAN_GRAPH_HEADS, x, 0, batch * seq * heads * head_dim, dims,
                       G_N_ELEMENTS(dims));
}

uint32_t plan_graph_repeated(PlanGraph *graph, uint32_t x, uint64_t times) {
    uint64_t elements = plan_graph_at(graph->values, PlanGraphValue, x)->elements;
    int64_t dims[] = {(int64_t)times, (int64_t)elements};
    return add_view_op(graph, PLAN_GRAPH_REPEATED, x, 0, elements, dims, G_N_ELEMENTS(dims));
}

uint32_t plan_graph_shown(PlanGraph *graph, uint32_t x, uint64_t batch, uint64_t seq,
                          uint64_t times, uint64_t head_dim) {
    int64_t dims[] = {(int64_t)batch, (int64_t)seq, 1, 1, (int64_t)head_dim, PLAN_REPEATED_INSIDE};
    uint32_t view = add_view_op(graph, PLAN_GRAPH_SHOWN, x, 0, batch * seq * head_dim, dims,
                                G_N_ELEMENTS(dims));
    plan_graph_at(graph->values, PlanGraphValue, view)->shown = (uint32_t)times;
    return view;
}

uint32_t plan_graph_detached(PlanGraph *graph, uint32_t x) {
    uint64_t elements = plan_graph_at(graph->values, PlanGraphValue, x)->elements;
    uint32_t view = add_view_op(graph, PLAN_GRAPH_DETACHED, x, 0, elements, NULL, 0);
    plan_graph_at(graph->values, PlanGraphValue, view)->requires_grad = false;
    return view;
}

static gint by_rank(gconstpointer a, gconstpointer b, gpointer data) {
    const PlanGraph *graph = data;
    uint64_t p = g_array_index(graph->ranks, uint64_t, *(const uint32_t *)a);
    uint64_t q = g_array_index(graph->ranks, uint64_t, *(const uint32_t *)b);
    return p < q ? -1 : p > q;
}

void plan_graph_after_backward(PlanGraph *graph, uint32_t module) {
    g_assert(graph->frames->len == 0);
    graph->n_train_steps = graph->steps->len;
    push_frame(graph, module);
}

void plan_graph_hold_past_backward(PlanGraph *graph, uint32_t module, uint32_t value) {
    plan_graph_after_backward(graph, module);
    plan_graph_add_step(graph, PLAN_STEP_RETURN, module, NULL, 0);
    hold_until(graph, value, graph->steps->len - 1);
}

/* The step that lets go of a value; PLAN_NONE: what is no tensor of the walk's own, or is kept. */
static uint32_t released_by(const PlanGraph *graph, uint32_t value) {
    const PlanGraphValue *v = plan_graph_at(graph->values, PlanGraphValue, value);
    return v->parameter == PLAN_NONE && !v->is_input ? g_array_index(graph->holds, uint32_t, value)
                                                     : PLAN_NONE;
}

/* Counting sort of the values by the step that lets go of them; within a step in order of
 * rank, which is that of making unless someone said otherwise. */
static void sort_releases(PlanGraph *graph) {
    for (uint32_t value = 0; value < graph->values->len; value++) {
        uint32_t by = released_by(graph, value);
        if (by != PLAN_NONE) {
            plan_graph_at(graph->steps, PlanGraphStep, by)->n_releases++;
        }
    }
    uint32_t total = 0;
    for (uint32_t i = 0; i < graph->steps->len; i++) {
        PlanGraphStep *step = plan_graph_at(graph->steps, PlanGraphStep, i);
        step->releases = total;
        total += step->n_releases;
        step->n_releases = 0;
    }
    g_array_set_size(graph->releases, total);
    for (uint32_t value = 0; value < graph->values->len; value++) {
        uint32_t by = released_by(graph, value);
        if (by != PLAN_NONE) {
            PlanGraphStep *step = plan_graph_at(graph->steps, PlanGraphStep, by);
            g_array_index(graph->releases, uint32_t, step->releases + step->n_releases++) = value;
        }
    }
    for (uint32_t i = 0; i < graph->steps->len; i++) {
        const PlanGraphStep *step = plan_graph_at(graph->steps, PlanGraphStep, i);
        if (step->n_releases > 1) {
            g_qsort_with_data(&g_array_index(graph->releases, uint32_t, step->releases),
                              (gint)step->n_releases, sizeof(uint32_t), by_rank, graph);
        }
    }
}

void plan_graph_finish(PlanGraph *graph, uint32_t loss) {
    if (graph->n_train_steps) {
        g_array_set_size(graph->frames, 0);
    } else {
        graph->n_train_steps = graph->steps->len;
    }
    g_assert(graph->frames->len == 0);
    graph->loss = loss;
    *plan_graph_at(graph->holds, uint32_t, loss) = PLAN_NONE; /* the training loop holds it */
    sort_releases(graph);
}
