#include "exec/inputs.h"

#include <string.h>

#include "exec/convert.h"
#include "exec/error.h"
#include "plan/mesh.h"

/* BATCH begins with the dims that TRACED_INPUT does, so that one function reads either. */
G_STATIC_ASSERT((int)BATCH_SAMPLES == (int)TRACED_INPUT_SAMPLES &&
                (int)BATCH_SAMPLE_ELEMENTS == (int)TRACED_INPUT_SAMPLE_ELEMENTS &&
                (int)BATCH_BOUND == (int)TRACED_INPUT_BOUND);

static unsigned number_of(const ExecContext *context, const PlanOp *op) {
    bool is_first = op->kind == PLAN_OP_BATCH;
    return is_first ? 0 : (unsigned)plan_op_dims(context->role, op)[TRACED_INPUT_INPUT];
}

static PlanDtype dtype_of(const ExecContext *context, const PlanOp *op) {
    return (PlanDtype)context->role->buffers[plan_op_buffer(context->role, op, BATCH_X)].dtype;
}

static const char *name_in_file(PlanDtype dtype) {
    static const char *const names[PLAN_N_DTYPES] = {
        [PLAN_FP32] = "F32",  [PLAN_BF16] = "BF16", [PLAN_FP16] = "F16", [PLAN_FP64] = "F64",
        [PLAN_INT64] = "I64", [PLAN_INT32] = "I32", [PLAN_UINT8] = "U8"};
    return names[dtype];
}

static bool is_right_dtype(const char *name, PlanDtype dtype) {
    bool is_truth = dtype == PLAN_UINT8 && g_str_equal(name, "BOOL");
    return is_truth || g_strcmp0(name, name_in_file(dtype)) == 0;
}

static bool find(const ExecContext *context, const PlanOp *op, ExecTensor *ret_tensor,
                 GError **error) {
    g_autofree char *name = g_strdup_printf("%u", number_of(context, op));
    const ExecTensorsFile *file = exec_data_tensors(context->data);
    PlanDtype dtype = dtype_of(context, op);
    if (!exec_tensors_find(file, name, ret_tensor, error)) {
        return false;
    }
    if (!is_right_dtype(ret_tensor->dtype, dtype)) {
        return exec_tensors_refuse(file, error, "tensor %s is %s, and the network takes %s", name,
                                   ret_tensor->dtype, plan_dtype_name(dtype));
    }
    uint64_t elements = (uint64_t)plan_op_dims(context->role, op)[BATCH_SAMPLE_ELEMENTS];
    bool is_list = ret_tensor->n_dims > 0 && ret_tensor->n_dims <= EXEC_TENSOR_SIDES;
    uint64_t samples = is_list ? ret_tensor->shape[0] : 0;
    if (!samples || ret_tensor->bytes / plan_dtype_bytes(dtype) / samples != elements ||
        ret_tensor->bytes % (plan_dtype_bytes(dtype) * samples)) {
        return exec_tensors_refuse(file, error,
                                   "tensor %s has not %" G_GUINT64_FORMAT
                                   " numbers a sample, in rows of its first side",
                                   name, elements);
    }
    return true;
}

bool exec_inputs_fit(const ExecContext *context, const PlanOp *op, GError **error) {
    ExecTensor tensor;
    return !context->data || find(context, op, &tensor, error);
}

/* Numbers of one sample, as they are stored. */
static void make_up(const ExecTask *t, PlanDtype dtype, uint64_t sample, uint64_t n, gpointer to) {
    uint64_t input = number_of(t->context, t->op), seed = t->context->seed + (input << 32);
    int64_t bound = dims(t)[BATCH_BOUND];
    bool is_whole = bound || dtype == PLAN_INT64 || dtype == PLAN_INT32 || dtype == PLAN_UINT8;
    if (!is_whole) {
        g_autofree float *vector = g_new(float, n);
        exec_data_vector(vector, n, seed, sample);
        exec_convert(to, dtype, vector, PLAN_FP32, n);
        return;
    }
    g_autofree int64_t *numbers = g_new(int64_t, n);
    exec_data_numbers(numbers, n, bound ? bound : 2, seed, sample);
    for (uint64_t i = 0; i < n; i++) {
        if (dtype == PLAN_INT64) {
            ((int64_t *)to)[i] = numbers[i];
        } else if (dtype == PLAN_INT32) {
            ((int32_t *)to)[i] = (int32_t)numbers[i];
        } else {
            ((uint8_t *)to)[i] = (uint8_t)numbers[i];
        }
    }
}

bool exec_inputs_fill(const ExecTask *t, GError **error) {
    const ExecContext *c = t->context;
    PlanDtype dtype = operand_dtype(t, BATCH_X);
    uint64_t samples = dim(t, BATCH_SAMPLES), n = dim(t, BATCH_SAMPLE_ELEMENTS),
             bytes = n * plan_dtype_bytes(dtype);
    uint64_t first = batch_of(t) * samples;
    ExecTensor tensor;
    if (c->data && !find(c, t->op, &tensor, error)) {
        return false;
    }
    for (uint64_t i = 0; i < samples; i++) {
        char *to = (char *)t->pointers[BATCH_X] + i * bytes;
        if (c->data) {
            memcpy(to, tensor.data + (first + i) % tensor.shape[0] * bytes, bytes);
        } else {
            make_up(t, dtype, first + i, n, to);
        }
    }
    return true;
}
