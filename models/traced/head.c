/* models/traced/head.c - the lines before any trace: modules, parameters and buffers. */
#include <string.h>

#include "models/traced/read.h"
#include "plan/files/ini.h"

bool traced_read_pytorch(TracedReader *r) {
    g_free(r->traced->pytorch);
    r->traced->pytorch = g_strdup(r->words[1]);
    return true;
}

bool traced_read_own_dtype(TracedReader *r) {
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

bool traced_read_tokens(TracedReader *r) {
    return (plan_parse_u64(r->words[1], &r->traced->tokens) && r->traced->tokens >= 1 &&
            r->traced->tokens <= 1 << 30) ||
           traced_refuse(r, "tokens of a sample are a number from 1 on, not '%s'", r->words[1]);
}

bool traced_read_module(TracedReader *r) {
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

bool traced_read_parameter(TracedReader *r) {
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

bool traced_read_buffer(TracedReader *r) {
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

uint32_t traced_n_parameters(const TracedReader *r) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < r->traced->tensors->len; i++) {
        n += plan_graph_at(r->traced->tensors, ModelTracedTensor, i)->is_parameter;
    }
    return n;
}

/* Once each, by their number among parameters. */
bool traced_read_made(TracedReader *r) {
    GArray *made = r->traced->made;
    uint32_t n = traced_n_parameters(r);
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
