#include "exec/files/weights.h"

#include <string.h>

#include "exec/convert.h"
#include "exec/files/tensors-file.h"

typedef struct {
    const char *data; /* in the mapped file */
    PlanDtype dtype;
} Tensor;

struct _ExecWeights {
    ExecTensorsFile *file;
    Tensor *tensors; /* of each parameter */
};

const char *exec_weights_dtype_name(PlanDtype dtype) {
    static const char *const names[PLAN_N_DTYPES] = {
        [PLAN_FP32] = "F32", [PLAN_BF16] = "BF16", [PLAN_FP16] = "F16"};
    return names[dtype];
}

static bool get_dtype(const ExecTensor *entry, PlanDtype *ret_dtype) {
    for (unsigned i = 0; i < PLAN_N_DTYPES; i++) {
        if (g_strcmp0(entry->dtype, exec_weights_dtype_name((PlanDtype)i)) == 0) {
            *ret_dtype = (PlanDtype)i;
            return true;
        }
    }
    return false;
}

/* A plan has four sides at most: a traced network's others are in the last one. */
static bool is_folded(const ExecTensor *entry, const PlanParameter *parameter) {
    const unsigned most = G_N_ELEMENTS(parameter->dims);
    if (entry->n_dims <= most || entry->n_dims > EXEC_TENSOR_SIDES || parameter->n_dims != most) {
        return false;
    }
    uint64_t last = 1;
    for (unsigned i = 0; i < entry->n_dims; i++) {
        if (i + 1 < most && entry->shape[i] != (uint64_t)parameter->dims[i]) {
            return false;
        }
        last *= i + 1 < most ? 1 : entry->shape[i];
    }
    return last == (uint64_t)parameter->dims[most - 1];
}

static bool find_tensor(const ExecWeights *weights, const PlanParameter *parameter,
                        Tensor *ret_tensor, GError **error) {
    ExecTensor entry;
    PlanDtype dtype;
    const ExecTensorsFile *file = weights->file;
    if (!exec_tensors_find(file, parameter->name, &entry, error)) {
        return false;
    }
    if (!get_dtype(&entry, &dtype)) {
        return exec_tensors_refuse(file, error, "tensor %s is not F32, BF16 or F16",
                                   parameter->name);
    }
    bool fits = entry.n_dims == parameter->n_dims;
    for (unsigned i = 0; fits && i < parameter->n_dims; i++) {
        fits = entry.shape[i] == (uint64_t)parameter->dims[i];
    }
    if (!fits && !is_folded(&entry, parameter)) {
        return exec_tensors_refuse(
            file, error, "tensor %s has another shape than the network's; are they of one size?",
            parameter->name);
    }
    if (entry.bytes != parameter->elements * plan_dtype_bytes(dtype)) {
        return exec_tensors_refuse(file, error, "tensor %s lies outside the file, or is cut short",
                                   parameter->name);
    }
    *ret_tensor = (Tensor){entry.data, dtype};
    return true;
}

/* Whether it is a buffer of a traced network: the plan then has a call with its name. */
static bool is_buffer(const Plan *plan, const char *name) {
    g_autofree char *call = g_strconcat("buffer ", name, " > 1", NULL);
    for (uint32_t i = 0; i < plan->n_calls; i++) {
        if (g_str_equal(plan->calls[i], call)) {
            return true;
        }
    }
    return false;
}

/* Weights that nothing would use are a mistake somewhere. */
static bool has_no_others(const ExecWeights *weights, const Plan *plan, GError **error) {
    g_autoptr(GHashTable) known = g_hash_table_new(g_str_hash, g_str_equal);
    for (uint32_t p = 0; p < plan->n_parameters; p++) {
        g_hash_table_add(known, (gpointer)plan->parameters[p].name);
    }
    g_autoptr(GList) names = exec_tensors_names(weights->file);
    for (GList *at = names; at; at = at->next) {
        if (!g_str_equal(at->data, "__metadata__") && !g_hash_table_contains(known, at->data) &&
            !is_buffer(plan, at->data)) {
            return exec_tensors_refuse(weights->file, error, "tensor %s is none of the network's",
                                       (const char *)at->data);
        }
    }
    return true;
}

ExecWeights *exec_weights_open(const char *path, const Plan *plan, GError **error) {
    g_autoptr(ExecWeights) weights = g_new0(ExecWeights, 1);
    weights->tensors = g_new0(Tensor, plan->n_parameters);
    weights->file = exec_tensors_open(path, error);
    if (!weights->file || !has_no_others(weights, plan, error)) {
        return NULL;
    }
    for (uint32_t p = 0; p < plan->n_parameters; p++) {
        if (!find_tensor(weights, &plan->parameters[p], &weights->tensors[p], error)) {
            return NULL;
        }
    }
    return g_steal_pointer(&weights);
}

void exec_weights_free(ExecWeights *weights) {
    if (!weights) {
        return;
    }
    g_clear_pointer(&weights->file, exec_tensors_free);
    g_free(weights->tensors);
    g_free(weights);
}

/* A file's numbers may begin at any byte: its header is as long as it is. */
void exec_weights_get(const ExecWeights *weights, uint32_t parameter, uint64_t first, uint64_t n,
                      float *to) {
    const Tensor *tensor = &weights->tensors[parameter];
    uint64_t size = plan_dtype_bytes(tensor->dtype);
    uint32_t block[4096];
    for (uint64_t done = 0, part; done < n; done += part) {
        part = MIN(n - done, G_N_ELEMENTS(block));
        memcpy(block, tensor->data + (first + done) * size, part * size);
        exec_convert(to + done, PLAN_FP32, block, tensor->dtype, part);
    }
}

bool exec_weights_has_buffer(const ExecWeights *weights, const char *name, uint64_t bytes,
                             GError **error) {
    ExecTensor entry;
    return exec_tensors_find(weights->file, name, &entry, error) &&
           (entry.bytes == bytes ||
            exec_tensors_refuse(weights->file, error,
                                "buffer %s has %" G_GUINT64_FORMAT
                                " bytes there, and %" G_GUINT64_FORMAT " in the network",
                                name, entry.bytes, bytes));
}

void exec_weights_get_buffer(const ExecWeights *weights, const char *name, gpointer to) {
    ExecTensor entry;
    if (exec_tensors_find(weights->file, name, &entry, NULL)) {
        memcpy(to, entry.data, entry.bytes);
    }
}
