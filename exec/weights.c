#include "exec/weights.h"

#include <json-glib/json-glib.h>
#include <string.h>

#include "exec/convert.h"
#include "exec/error.h"
#include "exec/map-file.h"

enum {
    MAX_HEADER = 100000000 /* bytes; the limit that the form itself sets */
};

typedef struct {
    const char *data; /* in the mapped file */
    PlanDtype dtype;
} Tensor;

struct _ExecWeights {
    const char *path;
    GMappedFile *file;
    JsonParser *parser;
    const char *start; /* of the tensors */
    uint64_t bytes;    /* of them */
    Tensor *tensors;   /* of each parameter */
};

const char *exec_weights_dtype_name(PlanDtype dtype) {
    static const char *const names[PLAN_N_DTYPES] = {
        [PLAN_FP32] = "F32", [PLAN_BF16] = "BF16", [PLAN_FP16] = "F16"};
    return names[dtype];
}

static bool refuse(const ExecWeights *weights, GError **error, const char *format, ...)
    G_GNUC_PRINTF(3, 4);
static bool refuse(const ExecWeights *weights, GError **error, const char *format, ...) {
    va_list args;
    va_start(args, format);
    g_autofree char *text = g_strdup_vprintf(format, args);
    va_end(args);
    g_set_error(error, EXEC_ERROR, EXEC_ERROR_INPUT, "%s: %s", weights->path, text);
    return false;
}

/* ---- the header of a file that is read ------------------------------------------------------ */

static JsonObject *read_header(ExecWeights *weights, GError **error) {
    const char *content = g_mapped_file_get_contents(weights->file);
    uint64_t size = g_mapped_file_get_length(weights->file), length;
    if (size < sizeof length) {
        refuse(weights, error, "shorter than a safetensors file can be");
        return NULL;
    }
    memcpy(&length, content, sizeof length);
    length = GUINT64_FROM_LE(length);
    if (length > MAX_HEADER || length > size - sizeof length) {
        refuse(weights, error, "is not a safetensors file, or is cut short");
        return NULL;
    }
    weights->start = content + sizeof length + length;
    weights->bytes = size - sizeof length - length;
    g_autoptr(GError) cause = NULL;
    if (!json_parser_load_from_data(weights->parser, content + sizeof length, (gssize)length,
                                    &cause)) {
        refuse(weights, error, "its header is not JSON: %s", cause->message);
        return NULL;
    }
    JsonNode *root = json_parser_get_root(weights->parser);
    if (!root || !JSON_NODE_HOLDS_OBJECT(root)) {
        refuse(weights, error, "its header is not a JSON object");
        return NULL;
    }
    return json_node_get_object(root);
}

/* False unless the member is an array of n numbers that are not negative. */
static bool get_numbers(JsonObject *entry, const char *member, unsigned n, uint64_t *ret_numbers) {
    JsonNode *node = json_object_get_member(entry, member);
    if (!node || !JSON_NODE_HOLDS_ARRAY(node) ||
        json_array_get_length(json_node_get_array(node)) != n) {
        return false;
    }
    for (unsigned i = 0; i < n; i++) {
        JsonNode *number = json_array_get_element(json_node_get_array(node), i);
        if (!JSON_NODE_HOLDS_VALUE(number) || json_node_get_value_type(number) != G_TYPE_INT64 ||
            json_node_get_int(number) < 0) {
            return false;
        }
        ret_numbers[i] = (uint64_t)json_node_get_int(number);
    }
    return true;
}

static bool get_dtype(JsonObject *entry, PlanDtype *ret_dtype) {
    JsonNode *node = json_object_get_member(entry, "dtype");
    const char *name = node && JSON_NODE_HOLDS_VALUE(node) ? json_node_get_string(node) : NULL;
    for (unsigned i = 0; i < PLAN_N_DTYPES; i++) {
        if (name && g_strcmp0(name, exec_weights_dtype_name((PlanDtype)i)) == 0) {
            *ret_dtype = (PlanDtype)i;
            return true;
        }
    }
    return false;
}

static bool find_tensor(ExecWeights *weights, JsonObject *header, const PlanParameter *parameter,
                        Tensor *ret_tensor, GError **error) {
    JsonNode *node = json_object_get_member(header, parameter->name);
    uint64_t shape[G_N_ELEMENTS(parameter->dims)], place[2];
    if (!node || !JSON_NODE_HOLDS_OBJECT(node)) {
        return refuse(weights, error, "has no tensor %s, which the network needs", parameter->name);
    }
    JsonObject *entry = json_node_get_object(node);
    PlanDtype dtype;
    if (!get_dtype(entry, &dtype)) {
        return refuse(weights, error, "tensor %s is not F32, BF16 or F16", parameter->name);
    }
    bool fits = get_numbers(entry, "shape", parameter->n_dims, shape);
    for (unsigned i = 0; fits && i < parameter->n_dims; i++) {
        fits = shape[i] == (uint64_t)parameter->dims[i];
    }
    if (!fits) {
        return refuse(weights, error,
                      "tensor %s has another shape than the network's; are they of one size?",
                      parameter->name);
    }
    if (!get_numbers(entry, "data_offsets", 2, place) || place[1] < place[0] ||
        place[1] > weights->bytes ||
        place[1] - place[0] != parameter->elements * plan_dtype_bytes(dtype)) {
        return refuse(weights, error, "tensor %s lies outside the file, or is cut short",
                      parameter->name);
    }
    *ret_tensor = (Tensor){weights->start + place[0], dtype};
    return true;
}

/* Weights that nothing would use are a mistake somewhere. */
static bool has_no_others(const ExecWeights *weights, JsonObject *header, const Plan *plan,
                          GError **error) {
    g_autoptr(GHashTable) known = g_hash_table_new(g_str_hash, g_str_equal);
    for (uint32_t p = 0; p < plan->n_parameters; p++) {
        g_hash_table_add(known, (gpointer)plan->parameters[p].name);
    }
    g_autoptr(GList) names = json_object_get_members(header); /* in the file's order */
    for (GList *at = names; at; at = at->next) {
        if (!g_str_equal(at->data, "__metadata__") && !g_hash_table_contains(known, at->data)) {
            return refuse(weights, error, "tensor %s is none of the network's",
                          (const char *)at->data);
        }
    }
    return true;
}

ExecWeights *exec_weights_open(const char *path, const Plan *plan, GError **error) {
    g_autoptr(ExecWeights) weights = g_new0(ExecWeights, 1);
    weights->path = g_intern_string(path);
    weights->parser = json_parser_new();
    weights->tensors = g_new0(Tensor, plan->n_parameters);
    weights->file = exec_map_file(path, error);
    if (!weights->file) {
        return NULL;
    }
    JsonObject *header = read_header(weights, error);
    if (!header || !has_no_others(weights, header, plan, error)) {
        return NULL;
    }
    for (uint32_t p = 0; p < plan->n_parameters; p++) {
        if (!find_tensor(weights, header, &plan->parameters[p], &weights->tensors[p], error)) {
            return NULL;
        }
    }
    return g_steal_pointer(&weights);
}

void exec_weights_free(ExecWeights *weights) {
    if (!weights) {
        return;
    }
    g_clear_pointer(&weights->file, g_mapped_file_unref);
    g_clear_object(&weights->parser);
    g_free(weights->tensors);
    g_free(weights);
}

void exec_weights_get(const ExecWeights *weights, uint32_t parameter, uint64_t first, uint64_t n,
                      float *to) {
    const Tensor *tensor = &weights->tensors[parameter];
    exec_convert(to, PLAN_FP32, tensor->data + first * plan_dtype_bytes(tensor->dtype),
                 tensor->dtype, n);
}
