#include <string.h>

#include "plan/graph/private.h"

PlanGraph *plan_graph_new(PlanDtype dtype) {
    PlanGraph *graph = g_new0(PlanGraph, 1);
    graph->dtype = dtype;
    graph->shared.tensor = graph->shared.context = graph->shared.expert = 1;
    /* Room for a large network at once: memory that nobody touches costs less than copying.
     * plan_graph_finish() gives back what is left. */
    plan_vector_reserve(&graph->modules, 1024);
    plan_vector_reserve(&graph->parameters, 2048);
    plan_vector_reserve(&graph->values, 4096);
    plan_vector_reserve(&graph->ops, 2048);
    plan_vector_reserve(&graph->steps, 8192);
    plan_vector_reserve(&graph->value_refs, 16384);
    plan_vector_reserve(&graph->dims, 8192);
    plan_vector_reserve(&graph->attrs, 2048);
    graph->inputs = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    graph->buffers = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    graph->releases = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    graph->now.frames = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    graph->now.locals = g_array_new(FALSE, FALSE, sizeof(PlanGraphLocal));
    graph->now.copies = g_array_sized_new(FALSE, FALSE, sizeof(uint32_t), 2048);
    graph->now.stand_ins = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    graph->now.given = g_array_new(FALSE, FALSE, 3 * sizeof(uint32_t));
    graph->now.name = g_string_new(NULL);
    graph->made = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    graph->returned = g_array_new(FALSE, FALSE, sizeof(PlanGraphReturned));
    graph->addends = g_array_new(FALSE, FALSE, sizeof(PlanGraphAddend));
    graph->meets_weight = graph->root_cast = PLAN_NONE;
    graph->loss = graph->loss_made = graph->now.last_float8 = PLAN_NONE;
    graph->arrives = graph->leaves = PLAN_NONE;
    graph->pipeline.n_stages = 1;
    graph->strings = g_string_chunk_new(4096);
    return graph;
}

void plan_graph_free(PlanGraph *graph) {
    if (!graph) {
        return;
    }
    GArray *arrays[] = {graph->inputs,        graph->buffers,    graph->releases,
                        graph->made,          graph->returned,   graph->addends,
                        graph->now.frames,    graph->now.locals, graph->now.copies,
                        graph->now.stand_ins, graph->now.given};
    for (unsigned i = 0; i < G_N_ELEMENTS(arrays); i++) {
        g_array_unref(arrays[i]);
    }
    plan_vector_clear(&graph->modules);
    plan_vector_clear(&graph->parameters);
    plan_vector_clear(&graph->values);
    plan_vector_clear(&graph->ops);
    plan_vector_clear(&graph->steps);
    plan_vector_clear(&graph->value_refs);
    plan_vector_clear(&graph->dims);
    plan_vector_clear(&graph->attrs);
    g_string_free(graph->now.name, TRUE);
    g_string_chunk_free(graph->strings);
    plan_graph_free(graph->behind);
    plan_graph_free(graph->evaluation);
    g_free(graph);
}

/* "parent.local"; without a parent, or below the root, the local name alone. */
static const char *qualified(PlanGraph *graph, uint32_t parent, const char *local) {
    const char *prefix = parent == PLAN_NONE ? "" : plan_graph_module_at(graph, parent)->name;
    size_t n_prefix = strlen(prefix), n_local = strlen(local), begins = n_prefix + (n_prefix > 0);
    GString *name = graph->now.name;
    g_string_set_size(name, begins + n_local);
    memcpy(name->str, prefix, n_prefix);
    if (begins > 0) {
        name->str[n_prefix] = '.';
    }
    memcpy(name->str + begins, local, n_local);
    return g_string_chunk_insert_len(graph->strings, name->str, (gssize)name->len);
}

uint32_t plan_graph_module(PlanGraph *graph, uint32_t parent, const char *local_name,
                           const char *class_name, bool is_block) {
    PlanGraphModule module = {
        .name = qualified(graph, parent, local_name),
        .class_name = g_string_chunk_insert_const(graph->strings, class_name),
        .parent = parent,
        .is_block = is_block,
    };
    plan_vector_push(&graph->modules, module);
    return graph->modules.len - 1;
}

uint32_t plan_graph_add_value(PlanGraph *graph, PlanGraphValue value) {
    uint32_t id = graph->values.len;
    if (value.base == PLAN_NONE) {
        value.base = id;
    }
    value.held_until = PLAN_NONE;
    value.rank = (uint64_t)id << 8;
    plan_vector_push(&graph->values, value);
    return id;
}

bool plan_graph_wants_gradient(const PlanGraph *graph, uint32_t value) {
    return value != PLAN_NONE && !graph->evaluates &&
           plan_graph_value_at(graph, value)->requires_grad;
}

bool plan_graph_is_complex(const PlanGraph *graph, uint32_t value) {
    uint32_t base = plan_graph_value_at(graph, value)->base;
    bool is_complex = false;
    for (unsigned i = 0; i < graph->n_ropes; i++) {
        const PlanGraphRope *rope = &graph->ropes[i];
        is_complex |= plan_graph_rope_is_complex(rope) && rope->cosines == base;
    }
    return is_complex;
}

bool plan_graph_is_named(const PlanGraph *graph, uint32_t module, const GRegex *whole) {
    const PlanGraphModule *m = plan_graph_module_at(graph, module);
    return g_regex_match(whole, m->name, 0, NULL) || g_regex_match(whole, m->class_name, 0, NULL);
}

bool plan_graph_is_in_block(const PlanGraph *graph, uint32_t module) {
    uint32_t m = module;
    while (m != PLAN_NONE && !plan_graph_module_at(graph, m)->is_block) {
        m = plan_graph_module_at(graph, m)->parent;
    }
    return m != PLAN_NONE;
}

bool plan_graph_is_in_program(const PlanGraph *graph, uint32_t module) {
    uint32_t block = plan_graph_block_of(graph, module);
    return plan_graph_is_compiled(graph) &&
           (!graph->kernels.in_parts || plan_graph_module_at(graph, block)->is_program);
}

uint32_t plan_graph_block_of(const PlanGraph *graph, uint32_t module) {
    const PlanGraphModule *m = plan_graph_module_at(graph, module);
    while (!m->is_block && m->parent != PLAN_NONE) {
        module = m->parent;
        m = plan_graph_module_at(graph, module);
    }
    return module;
}

PlanDtype plan_graph_product_dtype(const PlanGraph *graph) {
    return graph->now.autocasts ? graph->autocast.lower : graph->dtype;
}

/* Whether the strategy names the module, or one that it is in; whole NULL: it names none. */
static bool names(const PlanGraph *graph, uint32_t module, const GRegex *whole) {
    uint32_t m = module;
    while (whole && m != PLAN_NONE && !plan_graph_is_named(graph, m, whole)) {
        m = plan_graph_module_at(graph, m)->parent;
    }
    return whole && m != PLAN_NONE;
}

static bool has_gradient(const PlanGraph *graph, uint32_t parameter, bool frozen) {
    return !frozen || (graph->trained.joined && graph->trained.joined[parameter]);
}

uint32_t plan_graph_parameter(PlanGraph *graph, uint32_t module, const char *local_name,
                              unsigned n_dims, const int64_t *dims, PlanInit init,
                              double init_value) {
    bool named_frozen = names(graph, module, graph->trained.frozen);
    PlanGraphParameter parameter = {
        .name = qualified(graph, module, local_name),
        .module = module,
        .n_dims = (uint8_t)n_dims,
        .elements = 1,
        .init = init,
        .init_value = init_value,
        .frozen = named_frozen || (graph->trained.lora_rank && !graph->now.in_adapter),
        .named_frozen = named_frozen,
        .ignored = names(graph, module, graph->trained.ignored),
        .of_adapter = graph->now.in_adapter,
        .has_own_dtype = graph->now.in_adapter && graph->trained.lora_wide,
        .own_dtype = PLAN_FP32,
    };
    for (unsigned i = 0; i < n_dims; i++) {
        parameter.dims[i] = dims[i];
        parameter.elements *= (uint64_t)dims[i];
    }
    uint32_t no_copy = PLAN_NONE;
    g_array_append_val(graph->now.copies, no_copy);
    plan_vector_push(&graph->parameters, parameter);
    return plan_graph_add_value(
        graph, (PlanGraphValue){.parameter = graph->parameters.len - 1,
                                .base = PLAN_NONE,
                                .elements = parameter.elements,
                                .dtype = (uint8_t)plan_graph_dtype_of(&parameter, graph->dtype),
                                .requires_grad = has_gradient(graph, graph->parameters.len - 1,
                                                              parameter.frozen)});
}

void plan_graph_split_parameter(PlanGraph *graph, uint32_t value, PlanSplit split) {
    const PlanGraphValue *v = plan_graph_value_at(graph, value);
    plan_graph_parameter_at(graph, v->parameter)->split = split;
}

void plan_graph_sees_all(PlanGraph *graph, uint32_t value) {
    uint32_t parameter = plan_graph_value_at(graph, value)->parameter;
    plan_graph_parameter_at(graph, parameter)->sees_all = true;
}

void plan_graph_add_in_parts(PlanGraph *graph, uint32_t value) {
    uint32_t parameter = plan_graph_value_at(graph, value)->parameter;
    plan_graph_sees_all(graph, value);
    plan_graph_parameter_at(graph, parameter)->is_added_in_parts = true;
}

void plan_graph_give_dtype(PlanGraph *graph, uint32_t value, PlanDtype dtype) {
    PlanGraphValue *v = plan_graph_value_at(graph, value);
    PlanGraphParameter *p = plan_graph_parameter_at(graph, v->parameter);
    p->has_own_dtype = true;
    p->own_dtype = v->dtype = (uint8_t)dtype;
}

/* A column, as bitsandbytes has it. */
void plan_graph_pack(PlanGraph *graph, uint32_t value) {
    PlanDtype stored = graph->trained.stored;
    PlanGraphValue *v = plan_graph_value_at(graph, value);
    PlanGraphParameter *p = plan_graph_parameter_at(graph, v->parameter);
    p->numbers = p->elements;
    p->matrix[0] = p->dims[0];
    p->matrix[1] = p->dims[1];
    p->elements = v->elements = (p->numbers + 1) / (2 * plan_dtype_bytes(stored));
    p->dims[0] = (int64_t)p->elements;
    p->dims[1] = 1;
    p->copied_in = (uint8_t)plan_graph_product_dtype(graph);
    plan_graph_give_dtype(graph, value, stored);
}

void plan_graph_freeze(PlanGraph *graph, uint32_t value) {
    PlanGraphValue *v = plan_graph_value_at(graph, value);
    plan_graph_parameter_at(graph, v->parameter)->frozen = true;
    v->requires_grad = false;
}

void plan_graph_tie(PlanGraph *graph, uint32_t module, uint32_t value) {
    PlanGraphValue *v = plan_graph_value_at(graph, value);
    PlanGraphParameter *p = plan_graph_parameter_at(graph, v->parameter);
    p->named_frozen |= names(graph, module, graph->trained.frozen);
    p->ignored |= names(graph, module, graph->trained.ignored);
    p->frozen |= p->named_frozen;
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
    return add_buffer(graph, dtype, elements, graph->parameters.len);
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

static uint32_t add_numbers(PlanGraph *graph, uint32_t buffer, uint64_t dim, double number) {
    g_assert(graph->n_numbers < G_N_ELEMENTS(graph->numbers));
    graph->numbers[graph->n_numbers++] = (PlanGraphNumbers){buffer, dim, number};
    return buffer;
}

uint32_t plan_graph_rope_frequencies(PlanGraph *graph, uint64_t dim, double base) {
    return add_numbers(graph, plan_graph_buffer_between(graph, PLAN_FP32, dim / 2), dim, base);
}

uint32_t plan_graph_number(PlanGraph *graph, double number) {
    return add_numbers(graph, plan_graph_buffer_between(graph, graph->made_in, 1), 0, number);
}
