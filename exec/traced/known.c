#include "exec/traced/known.h"

#include <string.h>

#include "exec/error.h"
#include "exec/files/weights.h"

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

static bool takes(const TracedRule *rule, const TracedCall *call) {
    bool all = call->n_made > 0;
    for (unsigned i = 0; rule->takes && all && rule->takes[i]; i++) {
        all = i < call->n_args && is_taken(rule->takes[i], &call->args[i]);
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

char *traced_buffer_of(const char *text) {
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
    g_autofree char *name = traced_buffer_of(text);
    if (!context->weights) {
        return refuse(error,
                      "the numbers of buffer %s stand in no trace; give them with the weights: "
                      "--load FILE, which models/pytorch/trace.py --weights FILE writes",
                      name);
    }
    return exec_weights_has_buffer(context->weights, name, bytes_of(context, op, 1), error);
}

bool traced_is_known(const ExecContext *context, const PlanOp *op, TracedFind find, const char *who,
                     const char *otherwise, GError **error) {
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
    TracedRule rule;
    if (!find(call.name, &rule)) {
        return refuse(error,
                      "a traced network calls %s, for which %s have no kernel, so it can be "
                      "predicted, and %s",
                      call.name, who, otherwise);
    }
    if (!takes(&rule, &call)) {
        return refuse(error, "call '%s' has not the arguments of %s", text, call.name);
    }
    const char *why = rule.why_not ? rule.why_not(&call) : NULL;
    if (why) {
        return refuse(error, "a traced network calls %s %s, so it can be predicted, and %s",
                      call.name, why, otherwise);
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
