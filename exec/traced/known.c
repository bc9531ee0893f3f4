#include "exec/traced/known.h"

#include <string.h>

#include "exec/error.h"
#include "exec/files/weights.h"
#include "exec/traced/moves.h"
#include "kernels/host/traced/tensor-rows.h"
#include "plan/refuse.h"

#define MOST_ELEMENTS 0x1p40 /* of a tensor; more than any machine's memory holds */

#define refuse(error, ...) plan_refuse(error, EXEC_ERROR, EXEC_ERROR_INPUT, __VA_ARGS__)

const TracedRule traced_rules[] = {
#define CALL(name, run, which, takes, why, fits)                                                   \
    {name, takes, which, traced_why_##why, traced_fits_##fits},
#include "exec/traced/calls.def"
    {0},
};

const TracedRule *traced_rule_of(const char *name) {
    const TracedRule *rule = traced_rules;
    while (rule->name && !g_str_equal(rule->name, name)) {
        rule++;
    }
    return rule->name ? rule : NULL;
}

/* ---- arguments ------------------------------------------------------------------------------ */

static bool is_taken(char letter, const TracedArg *arg) {
    bool is_tensor = arg->of == TRACED_TENSOR, is_missing = arg->of == TRACED_NOTHING;
    switch (letter) {
    case 't':
        return is_tensor;
    case '?':
        return is_tensor || is_missing;
    case 'n':
        return arg->of == TRACED_NUMBER;
    case 'x':
        return is_tensor || arg->of == TRACED_NUMBER;
    case '<':
    case '>':
        return is_tensor || is_missing || arg->of == TRACED_NUMBER;
    case 's':
        return arg->of == TRACED_TEXT || is_missing;
    case 'l':
        return arg->of == TRACED_LIST;
    case '.':
        return true;
    default:
        return is_tensor && arg->tensor.n_dims == (unsigned)(letter - '0');
    }
}

static bool takes(const TracedRule *rule, const TracedCall *call) {
    static const TracedArg nothing;
    bool all = call->n_made > 0;
    unsigned at = 0;
    for (const char *letter = rule->takes; all && *letter; letter++) {
        bool is_there = at < call->n_args;
        if (*letter != '1') {
            all = is_taken(*letter, is_there ? &call->args[at] : &nothing) &&
                  (is_there || *letter != '.');
            at++;
        }
    }
    return all;
}

/* Of what the kernel reads, a tensor; what it leaves alone stands where a '.' does. */
static bool has_foreign(const TracedRule *rule, const TracedCall *call) {
    bool has = call->made[0].is_foreign;
    for (unsigned i = 0; rule->takes[i] && i < call->n_args && !has; i++) {
        has = call->args[i].is_foreign && rule->takes[i] != '.';
    }
    for (unsigned i = 0; i < call->items->len && !has; i++) {
        has = g_array_index(call->items, TracedArg, i).is_foreign;
    }
    return has;
}

/* Its last element lies inside of the operand. Of an endless one, whose elements are the same in
 * memory, nothing can be counted. */
static bool is_inside(const ExecContext *context, const PlanOp *op, const TracedArg *arg) {
    const KernelTensor *t = &arg->tensor;
    double end = 1, elements = 1;
    if (arg->operand != PLAN_NONE && arg->operand >= op->n_operands) {
        return false;
    }
    for (unsigned i = 0; i < t->n_dims; i++) {
        if (t->sizes[i] == 0) {
            return true;
        }
        elements *= (double)t->sizes[i];
        end += (double)(t->sizes[i] - 1) * (double)t->strides[i];
    }
    if (arg->operand == PLAN_NONE || elements > MOST_ELEMENTS) {
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

static bool refuse_call(const TracedRule *rule, const char *why, const char *otherwise,
                        GError **error) {
    return refuse(error, "a traced network calls %s %s, so it can be predicted, and %s", rule->name,
                  why, otherwise);
}

/* ---- known ---------------------------------------------------------------------------------- */

static bool is_call_known(const ExecContext *context, const PlanOp *op, const char *text,
                          const TracedCall *call,
                          const char *(*why_of)(const TracedRule *rule, const TracedCall *call),
                          GError **error) {
    const TracedRule *rule = traced_rule_of(call->name);
    if (!rule) {
        return refuse(error,
                      "a traced network calls %s, for which there is no kernel, so it can be "
                      "predicted, and not run",
                      call->name);
    }
    if (!takes(rule, call)) {
        return refuse(error, "call '%s' has not the arguments of %s", text, call->name);
    }
    if (has_foreign(rule, call)) {
        return refuse_call(rule, "with a dtype that no kernel knows", "not run", error);
    }
    const char *why = rule->why(call);
    if (why) {
        return refuse_call(rule, why, "not run", error);
    }
    bool inside = args_are_inside(context, op, call->args, call->n_args) &&
                  args_are_inside(context, op, call->made, call->n_made) &&
                  args_are_inside(context, op, (const TracedArg *)(gpointer)call->items->data,
                                  call->items->len);
    if (!inside) {
        return refuse(error, "call '%s' reaches beyond its operands", text);
    }
    if (!rule->fits(call)) {
        return refuse(error, "call '%s' has shapes that do not go together", text);
    }
    why = why_of ? why_of(rule, call) : NULL;
    return !why || refuse_call(rule, why, "run on CPU ranks at most (--device host)", error);
}

bool traced_is_known(const ExecContext *context, const PlanOp *op,
                     const char *(*why_of)(const TracedRule *rule, const TracedCall *call),
                     GError **error) {
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
    return g_str_equal(call.name, "-") || is_call_known(context, op, text, &call, why_of, error);
}
