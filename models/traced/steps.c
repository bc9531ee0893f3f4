/* models/traced/steps.c - the lines of a trace but for its kinds': inputs, then step by step what
 * forward does, and how gradients are added up. */
#include "models/traced/read.h"
#include "plan/files/ini.h"

enum {
    MOST_VALUES = 1 << 22 /* of a pass: a file of a few lines cannot ask for more */
};

/* ---- a trace -------------------------------------------------------------------------------- */

static void add_value(TracedReader *r, uint32_t base, bool wants_gradient, bool is_made) {
    TracedValue value = {base == PLAN_NONE ? r->values->len : base, wants_gradient, is_made, false};
    g_array_append_val(r->values, value);
}

bool traced_read_trace(TracedReader *r) {
    if (r->traced->made->len && r->traced->made->len != traced_n_parameters(r)) {
        return traced_refuse(r, "parameters stand behind the order in which they are made");
    }
    if (!r->traced->modules->len) {
        return traced_refuse(r, "a network has modules, which stand before its traces");
    }
    ModelTracedBody body = {.program = plan_traced_new()};
    body.inputs = g_array_new(FALSE, FALSE, sizeof(ModelTracedTensor));
    g_array_append_val(r->traced->bodies, body);
    r->program = body.program;
    r->program->loss = PLAN_NONE;
    r->program->last_samples = UINT64_MAX;
    bool is_open = g_str_equal(r->words[2], "-");
    if (!plan_parse_u64(r->words[1], &r->program->first_samples) || !r->program->first_samples ||
        r->program->first_samples > 1000 ||
        (!is_open && (!plan_parse_u64(r->words[2], &r->program->last_samples) ||
                      r->program->last_samples < r->program->first_samples))) {
        return traced_refuse(r,
                             "a trace is of samples from so many (1 to 1000) to so many, or '-'");
    }
    g_array_set_size(r->values, 0);
    for (uint32_t i = 0; i < r->traced->tensors->len; i++) {
        const ModelTracedTensor *t = plan_graph_at(r->traced->tensors, ModelTracedTensor, i);
        add_value(r, PLAN_NONE, t->is_parameter && !t->frozen, false);
    }
    r->section = IN_TRACE;
    return true;
}

bool traced_read_copied(TracedReader *r) {
    PlanTracedSum copied = {0};
    if (!traced_index(r, r->words[1], r->traced->tensors->len, "parameter", &copied.value)) {
        return false;
    }
    if (!plan_graph_at(r->traced->tensors, ModelTracedTensor, copied.value)->is_parameter) {
        return traced_refuse(r, "%s is a buffer's number, and no parameter's", r->words[1]);
    }
    if (r->n > 2 && !traced_call_from(r, 2, true, &copied.call)) {
        return false;
    }
    g_array_append_val(r->program->copied, copied);
    return true;
}

bool traced_read_input(TracedReader *r) {
    ModelTracedTensor tensor = {0};
    GArray *bodies = r->traced->bodies;
    if (!traced_count(r, r->words[1], &tensor.elements) ||
        !traced_dtype(r, r->words[2], &tensor.dtype)) {
        return false;
    }
    if (r->n > 3 && (!plan_parse_u64(r->words[3], &tensor.bound) || !tensor.bound ||
                     tensor.bound > (uint64_t)PLAN_TRACED_MOST)) {
        return traced_refuse(r, "'%s' is no number that whole numbers are below", r->words[3]);
    }
    g_array_append_val(plan_graph_at(bodies, ModelTracedBody, bodies->len - 1)->inputs, tensor);
    add_value(r, PLAN_NONE, false, false);
    return true;
}

/* ---- steps ---------------------------------------------------------------------------------- */

bool traced_read_forward(TracedReader *r) {
    g_array_set_size(r->inside, 0);
    r->returns = false;
    r->section = IN_FORWARD;
    return traced_kind_is_whole(r);
}

static bool read_value(const TracedReader *r, const char *word, uint32_t *ret_value) {
    if (!traced_index(r, word, r->values->len, "value", ret_value)) {
        return false;
    }
    uint32_t base = g_array_index(r->values, TracedValue, *ret_value).base;
    return !g_array_index(r->values, TracedValue, base).is_gone ||
           traced_refuse(r, "value %s lies in a storage that was let go of", word);
}

static bool add_step(TracedReader *r, PlanTracedStepKind kind, uint32_t index,
                     unsigned first_word) {
    PlanTracedStep step = {.kind = kind, .index = index, .values = r->program->values->len};
    for (unsigned i = first_word; i < r->n; i++) {
        uint32_t value = PLAN_NONE;
        bool is_edge =
            kind == PLAN_TRACED_OP &&
            i - first_word < plan_graph_at(r->program->kinds, PlanTracedKind, index)->n_edges;
        bool is_none = is_edge && g_str_equal(r->words[i], "-");
        if (!is_none && !read_value(r, r->words[i], &value)) {
            return false;
        }
        if (kind != PLAN_TRACED_OP && value < r->traced->tensors->len &&
            g_array_index(r->values, TracedValue, value).wants_gradient) {
            return traced_refuse(r, "a module is given, or gives back, parameter %u as it is",
                                 value);
        }
        g_array_append_val(r->program->values, value);
        step.n_values++;
    }
    g_array_append_val(r->program->steps, step);
    return true;
}

/* An input that has no value stands for nothing that a kernel touches or a node keeps. */
static bool makes_values(TracedReader *r, const PlanTracedKind *kind, const uint32_t *inputs) {
    uint32_t first = r->values->len;
    bool has_edge = false;
    for (uint32_t i = 0; i < kind->n_edges; i++) {
        has_edge |= inputs[i] != PLAN_NONE &&
                    g_array_index(r->values, TracedValue, inputs[i]).wants_gradient;
    }
    if (r->values->len + kind->n_outs > MOST_VALUES) {
        return traced_refuse(r, "a pass of more than %u tensors is more than a plan can hold",
                             MOST_VALUES);
    }
    for (uint32_t i = 0; i < kind->n_outs; i++) {
        const PlanTracedOut *out = plan_graph_at(r->program->outs, PlanTracedOut, kind->outs + i);
        uint32_t base = PLAN_NONE;
        if (out->storage.of == PLAN_TRACED_INPUT) {
            base = inputs[out->storage.index];
            if (base == PLAN_NONE) {
                return traced_refuse(r, "its output %u is a part of an input that it has not", i);
            }
        } else if (out->storage.of == PLAN_TRACED_OUTPUT) {
            base = first + out->storage.index;
        }
        base = base == PLAN_NONE ? base : g_array_index(r->values, TracedValue, base).base;
        if (out->wants_gradient && !(has_edge && kind->has_backward)) {
            return traced_refuse(r, "its output %u wants a gradient, which nothing takes on", i);
        }
        add_value(r, base, out->wants_gradient, base == PLAN_NONE);
    }
    return true;
}

static bool keeps_what_it_has(TracedReader *r, const PlanTracedKind *kind, const uint32_t *inputs) {
    for (uint32_t i = 0; i < kind->n_saves; i++) {
        PlanTracedRef ref = g_array_index(r->program->refs, PlanTracedRef, kind->saves + i);
        if (ref.of == PLAN_TRACED_INPUT && inputs[ref.index] == PLAN_NONE) {
            return traced_refuse(r, "it keeps an input that it has not");
        }
    }
    return true;
}

bool traced_read_op(TracedReader *r) {
    uint32_t index;
    if (!traced_index(r, r->words[1], r->program->kinds->len, "kind", &index)) {
        return false;
    }
    const PlanTracedKind *kind = plan_graph_at(r->program->kinds, PlanTracedKind, index);
    if (r->n - 2 != kind->n_inputs) {
        return traced_refuse(r, "a %s takes %u values, not %u", kind->name, kind->n_inputs,
                             r->n - 2);
    }
    if (!add_step(r, PLAN_TRACED_OP, index, 2)) {
        return false;
    }
    const PlanTracedStep *step =
        plan_graph_at(r->program->steps, PlanTracedStep, r->program->steps->len - 1);
    const uint32_t *inputs = &g_array_index(r->program->values, uint32_t, step->values);
    return makes_values(r, kind, inputs) && keeps_what_it_has(r, kind, inputs);
}

bool traced_read_enter(TracedReader *r) {
    uint32_t module;
    if (r->returns || !traced_index(r, r->words[1], r->traced->modules->len, "module", &module)) {
        return r->returns ? traced_refuse(r, "a module that returned is left next") : false;
    }
    g_array_append_val(r->inside, module);
    return add_step(r, PLAN_TRACED_ENTER, module, 2);
}

bool traced_read_return(TracedReader *r) {
    uint32_t module;
    if (r->section == IN_BACKWARD) {
        return r->n == 1 || traced_refuse(r, "a node's function returns without a word");
    }
    if (r->n != 2 || !traced_index(r, r->words[1], r->traced->modules->len, "module", &module)) {
        return r->n == 2 ? false : traced_refuse(r, "which module returns?");
    }
    bool is_inside =
        r->inside->len && g_array_index(r->inside, uint32_t, r->inside->len - 1) == module;
    if (!is_inside || r->returns) {
        return traced_refuse(r, "module %u returns, but was not entered last", module);
    }
    r->returns = true;
    return add_step(r, PLAN_TRACED_RETURN, module, 2);
}

bool traced_read_leave(TracedReader *r) {
    uint32_t module;
    if (!traced_index(r, r->words[1], r->traced->modules->len, "module", &module)) {
        return false;
    }
    if (!r->returns || g_array_index(r->inside, uint32_t, r->inside->len - 1) != module) {
        return traced_refuse(r, "module %u is left, but did not return just now", module);
    }
    g_array_set_size(r->inside, r->inside->len - 1);
    r->returns = false;
    return add_step(r, PLAN_TRACED_LEAVE, module, 2);
}

bool traced_read_casts(TracedReader *r) {
    if (r->inside->len) {
        return traced_refuse(r, "inputs are cast before the root is entered");
    }
    return add_step(r, PLAN_TRACED_CASTS, 0, 1);
}

bool traced_read_let(TracedReader *r) {
    uint32_t value;
    if (!read_value(r, r->words[1], &value)) {
        return false;
    }
    TracedValue *v = plan_graph_at(r->values, TracedValue, value);
    if (!v->is_made) {
        return traced_refuse(r, "value %u was not made by an op with a storage of its own", value);
    }
    v->is_gone = true;
    return add_step(r, PLAN_TRACED_LET, value, 2);
}

bool traced_read_end(TracedReader *r) {
    if (r->inside->len) {
        return traced_refuse(r, "a module is entered and not left");
    }
    r->section = IN_END;
    return add_step(r, PLAN_TRACED_END, 0, 1);
}

/* How the gradients of a value are added up; those of one value in the order in which they come. */
bool traced_read_sum(TracedReader *r) {
    PlanTracedSum sum = {0};
    if (!traced_index(r, r->words[1], r->values->len, "value", &sum.value) ||
        !traced_call_from(r, 2, true, &sum.call)) {
        return false;
    }
    g_array_append_val(r->program->sums, sum);
    return true;
}

bool traced_read_loss(TracedReader *r) {
    uint32_t loss;
    if (!read_value(r, r->words[1], &loss)) {
        return false;
    }
    const TracedValue *v = plan_graph_at(r->values, TracedValue, loss);
    if (!v->wants_gradient || !g_array_index(r->values, TracedValue, v->base).is_made) {
        return traced_refuse(r, "value %u is no loss, which hangs on parameters", loss);
    }
    r->program->loss = loss;
    r->section = IN_DONE;
    GArray *bodies = r->traced->bodies;
    g_autofree char *fault =
        model_traced_fault(r->traced, plan_graph_at(bodies, ModelTracedBody, bodies->len - 1));
    return !fault || traced_refuse(r, "of the trace that ends here: %s", fault);
}
