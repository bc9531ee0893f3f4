#include "exec/files/tensors-file.h"

#include <json-glib/json-glib.h>
#include <string.h>

#include "exec/error.h"
#include "exec/files/map-file.h"
#include "plan/files/json-depth.h"

enum {
    MAX_HEADER = 100000000 /* bytes; the limit that the form itself sets */
};

struct _ExecTensorsFile {
    const char *path;
    GMappedFile *file;
    JsonParser *parser;
    JsonObject *header; /* the parser's */
    const char *start;  /* of the tensors */
    uint64_t bytes;     /* of them */
};

bool exec_tensors_refuse(const ExecTensorsFile *file, GError **error, const char *format, ...) {
    va_list args;
    va_start(args, format);
    g_autofree char *text = g_strdup_vprintf(format, args);
    va_end(args);
    g_set_error(error, EXEC_ERROR, EXEC_ERROR_INPUT, "%s: %s", file->path, text);
    return false;
}

static bool read_header(ExecTensorsFile *file, GError **error) {
    const char *content = g_mapped_file_get_contents(file->file);
    uint64_t size = g_mapped_file_get_length(file->file), length;
    if (size < sizeof length) {
        return exec_tensors_refuse(file, error, "shorter than a safetensors file can be");
    }
    memcpy(&length, content, sizeof length);
    length = GUINT64_FROM_LE(length);
    if (length > MAX_HEADER || length > size - sizeof length) {
        return exec_tensors_refuse(file, error, "is not a safetensors file, or is cut short");
    }
    file->start = content + sizeof length + length;
    file->bytes = size - sizeof length - length;
    if (plan_json_is_too_deep(content + sizeof length, length)) {
        return exec_tensors_refuse(
            file, error, "its header is damaged: more than %d brackets stand in one another",
            PLAN_JSON_DEEPEST);
    }
    g_autoptr(GError) cause = NULL;
    if (!json_parser_load_from_data(file->parser, content + sizeof length, (gssize)length,
                                    &cause)) {
        return exec_tensors_refuse(file, error, "its header is not JSON: %s", cause->message);
    }
    JsonNode *root = json_parser_get_root(file->parser);
    if (!root || !JSON_NODE_HOLDS_OBJECT(root)) {
        return exec_tensors_refuse(file, error, "its header is not a JSON object");
    }
    file->header = json_node_get_object(root);
    return true;
}

ExecTensorsFile *exec_tensors_open(const char *path, GError **error) {
    g_autoptr(ExecTensorsFile) file = g_new0(ExecTensorsFile, 1);
    file->path = g_intern_string(path);
    file->parser = json_parser_new();
    file->file = exec_map_file(path, error);
    return file->file && read_header(file, error) ? g_steal_pointer(&file) : NULL;
}

void exec_tensors_free(ExecTensorsFile *file) {
    if (!file) {
        return;
    }
    g_clear_pointer(&file->file, g_mapped_file_unref);
    g_clear_object(&file->parser);
    g_free(file);
}

GList *exec_tensors_names(const ExecTensorsFile *file) {
    return json_object_get_members(file->header);
}

/* False unless the member is an array of at most so many numbers that are not negative. */
static bool get_numbers(JsonObject *entry, const char *member, unsigned most, uint64_t *ret_numbers,
                        unsigned *ret_n) {
    JsonNode *node = json_object_get_member(entry, member);
    if (!node || !JSON_NODE_HOLDS_ARRAY(node) ||
        json_array_get_length(json_node_get_array(node)) > most) {
        return false;
    }
    *ret_n = json_array_get_length(json_node_get_array(node));
    for (unsigned i = 0; i < *ret_n; i++) {
        JsonNode *number = json_array_get_element(json_node_get_array(node), i);
        if (!JSON_NODE_HOLDS_VALUE(number) || json_node_get_value_type(number) != G_TYPE_INT64 ||
            json_node_get_int(number) < 0) {
            return false;
        }
        ret_numbers[i] = (uint64_t)json_node_get_int(number);
    }
    return true;
}

bool exec_tensors_find(const ExecTensorsFile *file, const char *name, ExecTensor *ret_tensor,
                       GError **error) {
    JsonNode *node = json_object_get_member(file->header, name);
    if (!node || !JSON_NODE_HOLDS_OBJECT(node)) {
        return exec_tensors_refuse(file, error, "has no tensor %s, which the network needs", name);
    }
    JsonObject *entry = json_node_get_object(node);
    JsonNode *dtype = json_object_get_member(entry, "dtype");
    uint64_t place[2] = {0};
    unsigned n = 0;
    ret_tensor->dtype = dtype && JSON_NODE_HOLDS_VALUE(dtype) ? json_node_get_string(dtype) : NULL;
    ret_tensor->dtype = ret_tensor->dtype ? ret_tensor->dtype : "?";
    if (!get_numbers(entry, "shape", EXEC_TENSOR_SIDES, ret_tensor->shape, &ret_tensor->n_dims)) {
        ret_tensor->n_dims = EXEC_TENSOR_SIDES + 1; /* no shape at all */
    }
    if (!get_numbers(entry, "data_offsets", 2, place, &n) || n != 2 || place[1] < place[0] ||
        place[1] > file->bytes) {
        return exec_tensors_refuse(file, error, "tensor %s lies outside the file, or is cut short",
                                   name);
    }
    ret_tensor->data = file->start + place[0];
    ret_tensor->bytes = place[1] - place[0];
    return true;
}
