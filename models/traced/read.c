#include <string.h>

#include "models/traced/read.h"
#include "plan/files/file.h"
#include "plan/files/ini.h"

#define MAGIC "traced-network 1"

enum {
    MOST_VALUES = 1 << 22 /* of a pass: a file of a few lines cannot ask for more */
};

typedef struct {
    uint32_t base;
    bool wants_gradient, is_made, is_gone;
} Value;

/* ---- the head ------------------------------------------------------------------------------- */

static bool read_pytorch(TracedReader *r) {
    g_free(r->traced->pytorch);
    r->traced->pytorch = g_strdup(r->words[1]);
    return true;
}

static bool read_own_dtype(TracedReader *r) {
    uint8_t dtype;
    if (!traced_dtype(r, r->words[1], &dtype)) {
        return false;
    }
    r->traced->dtype = (PlanDtype)dtype;
    r->traced->casts_blocks = r->words[2] != NULL;
    if (r->words[2] && !g_str_equal(r->words[2], "blocks")) {
        return traced_refuse(r, "behind a dtype stands 'blocks' or nothing, not '%s'", r->words[2]);
    }
    return dtype == PLAN_FP32 || dtype == PLAN_BF16 || dtype == PLAN_FP16 ||
           traced_refuse(r, "no network is trained in %s", r->words[1]);
}

static bool read_tokens(TracedReader *r) {
    return (plan_parse_u64(r->words[1], &r->traced->tokens) && r->traced->tokens >= 1 &&
            r->traced->tokens <= 1 << 30) ||
           traced_refuse(r, "tokens of a sample are a number from 1 on, not '%s'", r->words[1]);
}

static bool read_module(TracedReader *r) {
    GArray *modules = r->traced->modules;
    ModelTracedModule module = {.parent = PLAN_NONE, .is_block = r->n > 4};
    bool is_root = g_str_equal(r->words[1], "-");
    if (is_root != (modules->len == 0)) {
        return traced_refuse(r,
                             "the first module has no parent, written -, and every other has one");
    }
    if (!is_root && !traced_index(r, r->words[1], modules->len, "module", &module.parent)) {
        return false;
    }
    if (r->n > 4 && !g_str_equal(r->words[4], "block")) {
        return traced_refuse(r, "'%s' is not 'block'", r->words[4]);
    }
    module.name = g_string_chunk_insert(r->traced->strings, is_root ? "" : r->words[2]);
    module.class_name = g_string_chunk_insert(r->traced->strings, r->words[3]);
    g_array_append_val(modules, module);
    return true;
}

/* What has more than four sides has as many numbers in four. */
static bool read_dims(TracedReader *r, ModelTracedTensor *tensor) {
    g_auto(GStrv) sides = g_strsplit(r->words[3], "x", -1);
    int64_t elements = 1;
    for (unsigned i = 0; sides[i]; i++) {
        int64_t side;
        if (!traced_part(sides[i], strlen(sides[i]), &side) || side < 1 ||
            side > PLAN_TRACED_MOST / elements) {
            return traced_refuse(r, "'%s' is no shape, such as 96x64", r->words[3]);
        }
        elements *= side;
        if (tensor->n_dims < 4) {
            tensor->dims[tensor->n_dims++] = side;
        } else {
            tensor->dims[3] *= side;
        }
    }
    return tensor->n_dims > 0 || traced_refuse(r, "a parameter has a shape, such as 96x64");
}

static bool read_parameter(TracedReader *r) {
    ModelTracedTensor tensor = {.is_parameter = true, .frozen = r->n > 4};
    if (r->n > 4 && !g_str_equal(r->words[4], "frozen")) {
        return traced_refuse(r, "'%s' is not 'frozen'", r->words[4]);
    }
    if (!traced_index(r, r->words[1], r->traced->modules->len, "module", &tensor.module) ||
        !read_dims(r, &tensor)) {
        return false;
    }
    tensor.name = g_string_chunk_insert(r->traced->strings, r->words[2]);
    g_array_append_val(r->traced->tensors, tensor);
    return true;
}

static bool read_buffer(TracedReader *r) {
    ModelTracedTensor tensor = {.is_kept = g_str_equal(r->words[0], "kept")};
    int64_t elements;
    if (!traced_part(r->words[1], strlen(r->words[1]), &elements) || elements < 1) {
        return traced_refuse(r, "'%s' is no number of elements", r->words[1]);
    }
    if (!traced_dtype(r, r->words[2], &tensor.dtype)) {
        return false;
    }
    tensor.elements.fixed = elements;
    if (r->n > 3) {
        if (r->n < 5 ||
            !traced_index(r, r->words[3], r->traced->modules->len, "module", &tensor.module)) {
            return r->n < 5 ? traced_refuse(r, "a buffer of a module has a name") : false;
        }
        tensor.name = g_string_chunk_insert(r->traced->strings, r->words[4]);
    }
    g_array_append_val(r->traced->tensors, tensor);
    return true;
}

static uint32_t n_parameters(const TracedReader *r) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < r->traced->tensors->len; i++) {
        n += plan_graph_at(r->traced->tensors, ModelTracedTensor, i)->is_parameter;
    }
    return n;
}

/* Once each, by their number among parameters. */
static bool read_made(TracedReader *r) {
    GArray *made = r->traced->made;
    uint32_t n = n_parameters(r);
    if (made->len || r->n - 1 != n) {
        return traced_refuse(r, "it orders %u of %u parameters, or they are ordered already",
                             r->n - 1, n);
    }
    g_autofree bool *found = g_new0(bool, n + 1);
    for (unsigned i = 1; i < r->n; i++) {
        uint32_t p;
        if (!traced_index(r, r->words[i], n, "parameter", &p)) {
            return false;
        }
        if (found[p]) {
            return traced_refuse(r, "parameter %u is made twice", p);
        }
        found[p] = true;
        g_array_append_val(made, p);
    }
    return true;
}

/* ---- a trace -------------------------------------------------------------------------------- */

static void add_value(TracedReader *r, uint32_t base, bool wants_gradient, bool is_made) {
    Value value = {base == PLAN_NONE ? r->values->len : base, wants_gradient, is_made, false};
    g_array_append_val(r->values, value);
}

static bool read_trace(TracedReader *r) {
    if (r->traced->made->len && r->traced->made->len != n_parameters(r)) {
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
    r->place = IN_TRACE;
    return true;
}

static bool read_copied(TracedReader *r) {
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

static bool read_input(TracedReader *r) {
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

static bool read_forward(TracedReader *r) {
    g_array_set_size(r->inside, 0);
    r->returns = false;
    r->place = IN_FORWARD;
    return traced_kind_is_whole(r);
}

static bool read_value(const TracedReader *r, const char *word, uint32_t *ret_value) {
    if (!traced_index(r, word, r->values->len, "value", ret_value)) {
        return false;
    }
    uint32_t base = g_array_index(r->values, Value, *ret_value).base;
    return !g_array_index(r->values, Value, base).is_gone ||
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
            g_array_index(r->values, Value, value).wants_gradient) {
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
        has_edge |=
            inputs[i] != PLAN_NONE && g_array_index(r->values, Value, inputs[i]).wants_gradient;
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
        base = base == PLAN_NONE ? base : g_array_index(r->values, Value, base).base;
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

static bool read_op(TracedReader *r) {
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

static bool read_enter(TracedReader *r) {
    uint32_t module;
    if (r->returns || !traced_index(r, r->words[1], r->traced->modules->len, "module", &module)) {
        return r->returns ? traced_refuse(r, "a module that returned is left next") : false;
    }
    g_array_append_val(r->inside, module);
    return add_step(r, PLAN_TRACED_ENTER, module, 2);
}

static bool read_return(TracedReader *r) {
    uint32_t module;
    if (r->place == IN_BACKWARD) {
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

static bool read_leave(TracedReader *r) {
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

static bool read_casts(TracedReader *r) {
    if (r->inside->len) {
        return traced_refuse(r, "inputs are cast before the root is entered");
    }
    return add_step(r, PLAN_TRACED_CASTS, 0, 1);
}

static bool read_let(TracedReader *r) {
    uint32_t value;
    if (!read_value(r, r->words[1], &value)) {
        return false;
    }
    Value *v = plan_graph_at(r->values, Value, value);
    if (!v->is_made) {
        return traced_refuse(r, "value %u was not made by an op with a storage of its own", value);
    }
    v->is_gone = true;
    return add_step(r, PLAN_TRACED_LET, value, 2);
}

static bool read_end(TracedReader *r) {
    if (r->inside->len) {
        return traced_refuse(r, "a module is entered and not left");
    }
    r->place = IN_END;
    return add_step(r, PLAN_TRACED_END, 0, 1);
}

/* How the gradients of a value are added up; those of one value in the order in which they come. */
static bool read_sum(TracedReader *r) {
    PlanTracedSum sum = {0};
    if (!traced_index(r, r->words[1], r->values->len, "value", &sum.value) ||
        !traced_call_from(r, 2, true, &sum.call)) {
        return false;
    }
    g_array_append_val(r->program->sums, sum);
    return true;
}

static bool read_loss(TracedReader *r) {
    uint32_t loss;
    if (!read_value(r, r->words[1], &loss)) {
        return false;
    }
    const Value *v = plan_graph_at(r->values, Value, loss);
    if (!v->wants_gradient || !g_array_index(r->values, Value, v->base).is_made) {
        return traced_refuse(r, "value %u is no loss, which hangs on parameters", loss);
    }
    r->program->loss = loss;
    r->place = IN_DONE;
    GArray *bodies = r->traced->bodies;
    g_autofree char *fault =
        model_traced_fault(r->traced, plan_graph_at(bodies, ModelTracedBody, bodies->len - 1));
    return !fault || traced_refuse(r, "of the trace that ends here: %s", fault);
}

/* ---- lines ---------------------------------------------------------------------------------- */

static const struct {
    const char *word;
    unsigned least, most; /* words; most 0: any */
    int places;           /* bits of Place */
    bool (*read)(TracedReader *r);
} lines[] = {
    {"pytorch", 2, 2, IN_HEAD, read_pytorch},
    {"dtype", 2, 3, IN_HEAD, read_own_dtype},
    {"tokens", 2, 2, IN_HEAD, read_tokens},
    {"module", 4, 5, IN_HEAD, read_module},
    {"parameter", 4, 5, IN_HEAD, read_parameter},
    {"buffer", 3, 5, IN_HEAD, read_buffer},
    {"kept", 3, 3, IN_HEAD, read_buffer},
    {"made", 2, 0, IN_HEAD, read_made},
    {"trace", 3, 3, IN_HEAD | IN_DONE, read_trace},
    {"copied", 2, 0, IN_TRACE, read_copied},
    {"input", 3, 4, IN_TRACE, read_input},
    {"kind", 5, 5, IN_TRACE | IN_KIND | IN_GIVEN, traced_read_kind},
    {"out", 5, 6, IN_KIND, traced_read_out},
    {"save", 2, 0, IN_KIND, traced_read_save},
    {"run", 4, 0, IN_KIND | IN_BACKWARD, traced_read_run},
    {"call", 2, 0, IN_KIND | IN_BACKWARD, traced_read_call},
    {"backward", 1, 1, IN_KIND, traced_read_backward},
    {"alloc", 3, 3, IN_BACKWARD, traced_read_alloc},
    {"free", 2, 2, IN_BACKWARD, traced_read_free},
    {"drop", 2, 2, IN_BACKWARD, traced_read_free},
    {"give", 1, 0, IN_BACKWARD, traced_read_give},
    {"forward", 1, 1, IN_KIND | IN_GIVEN, read_forward},
    {"op", 2, 0, IN_FORWARD, read_op},
    {"enter", 2, 0, IN_FORWARD, read_enter},
    {"return", 1, 2, IN_FORWARD | IN_BACKWARD, read_return},
    {"leave", 2, 0, IN_FORWARD, read_leave},
    {"casts", 1, 1, IN_FORWARD, read_casts},
    {"let", 2, 2, IN_FORWARD | IN_END, read_let},
    {"end", 1, 1, IN_FORWARD, read_end},
    {"sum", 3, 0, IN_END, read_sum},
    {"loss", 2, 2, IN_END, read_loss},
};

static bool read_line(TracedReader *r) {
    for (unsigned i = 0; i < G_N_ELEMENTS(lines); i++) {
        if (!g_str_equal(r->words[0], lines[i].word)) {
            continue;
        }
        if (!(lines[i].places & (int)r->place)) {
            return traced_refuse(r, "'%s' does not stand here", r->words[0]);
        }
        if (r->n < lines[i].least || (lines[i].most && r->n > lines[i].most)) {
            return traced_refuse(r, "'%s' has too %s words", r->words[0],
                                 r->n < lines[i].least ? "few" : "many");
        }
        return lines[i].read(r);
    }
    return traced_refuse(r, "'%s' begins no line", r->words[0]);
}

/* Blanks between words are single, as they are written. */
static bool read_lines(TracedReader *r, const char *text) {
    g_auto(GStrv) all = g_strsplit(text, "\n", -1);
    for (char **line = all + 1; *line; line++) {
        r->line = (unsigned)(line - all) + 1;
        g_strchomp(*line);
        if (!**line || **line == '#') {
            continue;
        }
        g_auto(GStrv) words = g_strsplit(*line, " ", -1);
        r->words = words;
        r->n = g_strv_length(words);
        if (!read_line(r)) {
            return false;
        }
    }
    return r->place == IN_DONE || traced_refuse(r, "it ends before its last trace does");
}

bool model_traced_is(const char *text, gsize length) {
    return length > strlen(MAGIC) && memcmp(text, MAGIC, strlen(MAGIC)) == 0 &&
           strchr("\r\n", text[strlen(MAGIC)]);
}

/* What a plan of it says of its modules is read again as text. */
static bool is_text(TracedReader *r, const char *text, gsize length) {
    const char *bad;
    if (g_utf8_validate_len(text, length, &bad)) {
        return true;
    }
    for (const char *c = text; c < bad; c++) {
        r->line += *c == '\n';
    }
    return traced_refuse(r, "this is not text (a byte that is not UTF-8, or a NUL)");
}

ModelTraced *model_traced_read(const char *text, gsize length, const char *file_name,
                               GError **error) {
    g_autoptr(ModelTraced) traced = g_new0(ModelTraced, 1);
    traced->modules = g_array_new(FALSE, FALSE, sizeof(ModelTracedModule));
    traced->tensors = g_array_new(FALSE, FALSE, sizeof(ModelTracedTensor));
    traced->bodies = g_array_new(FALSE, FALSE, sizeof(ModelTracedBody));
    traced->made = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    traced->strings = g_string_chunk_new(4096);
    traced->tokens = 1;
    g_autofree char *own = g_strndup(text, length);
    TracedReader r = {.traced = traced,
                      .place = IN_HEAD,
                      .file_name = file_name,
                      .line = 1,
                      .values = g_array_new(FALSE, FALSE, sizeof(Value)),
                      .inside = g_array_new(FALSE, FALSE, sizeof(uint32_t)),
                      .freed = g_array_new(FALSE, TRUE, sizeof(bool)),
                      .dropped = g_array_new(FALSE, TRUE, sizeof(bool)),
                      .error = error};
    bool is_sound = is_text(&r, text, length) && read_lines(&r, own);
    g_array_unref(r.values);
    g_array_unref(r.inside);
    g_array_unref(r.freed);
    g_array_unref(r.dropped);
    return is_sound ? g_steal_pointer(&traced) : NULL;
}

void model_traced_free(ModelTraced *traced) {
    if (!traced) {
        return;
    }
    for (uint32_t i = 0; i < traced->bodies->len; i++) {
        const ModelTracedBody *body = plan_graph_at(traced->bodies, ModelTracedBody, i);
        plan_traced_free(body->program);
        g_array_unref(body->inputs);
    }
    g_array_unref(traced->modules);
    g_array_unref(traced->tensors);
    g_array_unref(traced->bodies);
    g_array_unref(traced->made);
    g_string_chunk_free(traced->strings);
    g_free(traced->pytorch);
    g_free(traced);
}
