#include "exec/host/traced.h"

#include <string.h>

#include "exec/error.h"
#include "exec/host/traced-private.h"

/* ---- which kernel --------------------------------------------------------------------------- */

static const TracedKernel *kernel_of(const char *name) {
    static const TracedKernel *const tables[] = {traced_each_kernels, traced_rows_kernels,
                                                 traced_products_kernels, traced_places_kernels,
                                                 traced_windows_kernels};
    for (unsigned i = 0; i < G_N_ELEMENTS(tables); i++) {
        for (const TracedKernel *k = tables[i]; k->name; k++) {
            if (g_str_equal(k->name, name)) {
                return k;
            }
        }
    }
    return NULL;
}

/* ---- what is refused ------------------------------------------------------------------------ */

static bool refuse(GError **error, const char *format, ...) G_GNUC_PRINTF(2, 3);
static bool refuse(GError **error, const char *format, ...) {
    va_list args;
    va_start(args, format);
    g_autofree char *text = g_strdup_vprintf(format, args);
    va_end(args);
    g_set_error_literal(error, EXEC_ERROR, EXEC_ERROR_INPUT, text);
    return false;
}

static bool is_taken(char letter, const TracedArg *arg) {
    bool is_tensor = arg->of == TRACED_TENSOR;
    switch (letter) {
    case 't':
        return is_tensor;
    case '?':
        return is_tensor || arg->of == TRACED_NOTHING;
    case 'n':
        return arg->of == TRACED_NUMBER;
    case 'l':
        return arg->of == TRACED_LIST;
    case '.':
        return true;
    default:
        return is_tensor && arg->tensor.n_dims == (unsigned)(letter - '0');
    }
}

/* Elementwise ones look after themselves. */
static bool takes(const TracedKernel *kernel, const TracedCall *call) {
    bool is_each = kernel >= traced_each_kernels && kernel < traced_each_end;
    bool all = call->n_made > 0;
    for (unsigned i = 0; !is_each && all && kernel->takes[i]; i++) {
        all = i < call->n_args && is_taken(kernel->takes[i], &call->args[i]);
    }
    return all;
}

/* Its last element lies inside of the operand. */
static bool is_inside(const ExecContext *context, const PlanOp *op, const TracedArg *arg) {
    const KernelTensor *t = &arg->tensor;
    double end = 1;
    for (unsigned i = 0; i < t->n_dims; i++) {
        if (t->sizes[i] == 0) {
            return true;
        }
        end += (double)(t->sizes[i] - 1) * (double)t->strides[i];
    }
    if (arg->operand >= op->n_operands) {
        return false;
    }
    PlanOperand operand = plan_op_operand(context->role, op, arg->operand);
    if (operand.buffer == PLAN_NONE) {
        return false;
    }
    double size = (double)plan_dtype_bytes((PlanDtype)context->role->buffers[operand.buffer].dtype);
    double bytes = (double)arg->offset + end * (double)kernel_dtype_bytes(t->dtype);
    return bytes <= (double)operand.elements * size;
}

static bool args_are_inside(const ExecContext *context, const PlanOp *op, const TracedArg *args,
                            unsigned n) {
    for (unsigned i = 0; i < n; i++) {
        if (args[i].of == TRACED_TENSOR && !is_inside(context, op, &args[i])) {
            return false;
        }
    }
    return true;
}

/* "buffer NAME > OPERAND"; transfer full. */
static char *buffer_of(const char *text) {
    const char *name = text + strlen("buffer ");
    return g_strndup(name, strcspn(name, " "));
}

static uint64_t bytes_of(const ExecContext *context, const PlanOp *op, unsigned i) {
    PlanOperand operand = plan_op_operand(context->role, op, i);
    return operand.elements *
           plan_dtype_bytes((PlanDtype)context->role->buffers[operand.buffer].dtype);
}

static bool knows_buffer(const ExecContext *context, const PlanOp *op, const char *text,
                         GError **error) {
    g_autofree char *name = buffer_of(text);
    if (!context->weights) {
        return refuse(error,
                      "the numbers of buffer %s stand in no trace; give them with the weights: "
                      "--load FILE, which models/pytorch/trace.py --weights FILE writes",
                      name);
    }
    return exec_weights_has_buffer(context->weights, name, bytes_of(context, op, 1), error);
}

bool exec_traced_knows(const ExecContext *context, const PlanOp *op, GError **error) {
    const char *text = plan_op_call(context->plan, context->role, op);
    if (!text) {
        return refuse(error, "a traced network is run by what its trace says that it computes, and "
                             "this trace says less; trace it again with models/pytorch/trace.py");
    }
    if (*text == '?') {
        return refuse(error,
                      "a traced network calls %s in a way that its file cannot say, so it can be "
                      "predicted, and not run",
                      text + 1);
    }
    if (g_str_has_prefix(text, "buffer ")) {
        return knows_buffer(context, op, text, error);
    }
    g_auto(TracedCall) call;
    g_autofree char *fault = NULL;
    if (!traced_call_read(&call, text, &fault)) {
        return refuse(error, "call '%s': %s", text, fault);
    }
    if (g_str_equal(call.name, "-")) {
        return true;
    }
    const TracedKernel *kernel = kernel_of(call.name);
    if (!kernel) {
        return refuse(error,
                      "a traced network calls %s, for which CPU ranks have no kernel, so it can be "
                      "predicted, and not run",
                      call.name);
    }
    if (!takes(kernel, &call)) {
        return refuse(error, "call '%s' has not the arguments of %s", text, call.name);
    }
    const char *why = kernel->why_not ? kernel->why_not(&call) : NULL;
    if (why) {
        return refuse(error, "a traced network calls %s %s, so it can be predicted, and not run",
                      call.name, why);
    }
    bool inside = args_are_inside(context, op, call.args, call.n_args) &&
                  args_are_inside(context, op, call.made, call.n_made) &&
                  args_are_inside(context, op, (const TracedArg *)(gpointer)call.items->data,
                                  call.items->len);
    if (!inside) {
        return refuse(error, "call '%s' reaches beyond its operands", text);
    }
    return traced_shapes_fit(&call) ||
           refuse(error, "call '%s' has shapes that do not go together", text);
}

/* ---- memory of a call ----------------------------------------------------------------------- */

typedef struct {
    KernelTensor to;
    float *from;
} Waiting;

gpointer traced_scratch(TracedRun *r, size_t bytes) {
    gpointer made = g_malloc(MAX(bytes, 1));
    g_ptr_array_add(r->scratch, made);
    return made;
}

static bool is_floats(const KernelTensor *t) {
    return t->dtype == KERNEL_FP32 && kernel_tensor_is_dense(t);
}

const float *traced_floats(TracedRun *r, const KernelTensor *t) {
    if (is_floats(t)) {
        return t->data;
    }
    float *copy = traced_scratch(r, kernel_tensor_count(t) * sizeof *copy);
    kernel_tensor_read_f32(copy, t);
    return copy;
}

const float *traced_floats_of(TracedRun *r, unsigned i) {
    return traced_is(r, i) ? traced_floats(r, traced_tensor(r, i)) : NULL;
}

const int64_t *traced_integers(TracedRun *r, const KernelTensor *t) {
    if (t->dtype == KERNEL_INT64 && kernel_tensor_is_dense(t)) {
        return t->data;
    }
    int64_t *copy = traced_scratch(r, kernel_tensor_count(t) * sizeof *copy);
    kernel_tensor_read_i64(copy, t);
    return copy;
}

float *traced_result(TracedRun *r, const KernelTensor *t) {
    if (is_floats(t)) {
        return t->data;
    }
    Waiting waiting = {*t, traced_scratch(r, kernel_tensor_count(t) * sizeof(float))};
    g_array_append_val(r->waiting, waiting);
    return waiting.from;
}

float *traced_result_of(TracedRun *r, unsigned i) {
    return traced_makes(r, i) ? traced_result(r, traced_made(r, i)) : NULL;
}

bool traced_bad_index(GError **error, const char *what) {
    g_set_error(error, EXEC_ERROR, EXEC_ERROR_FAILED, "%s holds a number outside its table", what);
    return false;
}

/* ---- a call that runs ----------------------------------------------------------------------- */

static void point(const ExecTask *t, TracedArg *args, unsigned n) {
    for (unsigned i = 0; i < n; i++) {
        if (args[i].of == TRACED_TENSOR && args[i].operand != PLAN_NONE) {
            args[i].tensor.data = (char *)t->pointers[args[i].operand] + args[i].offset;
        }
    }
}

static bool run_kernel(const ExecTask *t, TracedCall *call, GError **error) {
    TracedRun run = {.call = call,
                     .task = t,
                     .scratch = g_ptr_array_new_with_free_func(g_free),
                     .waiting = g_array_new(FALSE, FALSE, sizeof(Waiting))};
    point(t, call->args, call->n_args);
    point(t, call->made, call->n_made);
    point(t, (TracedArg *)(gpointer)call->items->data, call->items->len);
    const TracedKernel *kernel = kernel_of(call->name);
    bool ok = kernel->run(&run, kernel, error);
    for (guint i = 0; i < run.waiting->len && ok; i++) {
        const Waiting *waiting = &g_array_index(run.waiting, Waiting, i);
        kernel_tensor_write_f32(&waiting->to, waiting->from);
    }
    g_ptr_array_unref(run.scratch);
    g_array_unref(run.waiting);
    return ok;
}

bool exec_traced_run(const ExecTask *t, GError **error) {
    const char *text = plan_op_call(t->context->plan, t->context->role, t->op);
    if (g_str_has_prefix(text, "buffer ")) {
        g_autofree char *name = buffer_of(text);
        exec_weights_get_buffer(t->context->weights, name, t->pointers[1]);
        return true;
    }
    g_auto(TracedCall) call;
    g_autofree char *fault = NULL;
    traced_call_read(&call, text, &fault);
    g_assert(!fault);
    if (g_str_equal(call.name, "-")) {
        return true;
    }
    return run_kernel(t, &call, error);
}
