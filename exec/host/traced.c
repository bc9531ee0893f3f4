#include "exec/host/traced.h"

#include <string.h>

#include "exec/error.h"
#include "exec/host/traced-private.h"
#include "exec/traced/known.h"

/* ---- which kernel --------------------------------------------------------------------------- */

static TracedRunner *const runners[] = {
#define CALL(name, run, ...) host_run_##run,
#include "exec/traced/calls.def"
};

bool exec_traced_knows(const ExecContext *context, const PlanOp *op, GError **error) {
    return traced_is_known(context, op, NULL, error);
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
    return traced_is(r->call, i) ? traced_floats(r, traced_tensor(r->call, i)) : NULL;
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
    return traced_makes(r->call, i) ? traced_result(r, traced_made(r->call, i)) : NULL;
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
    const TracedRule *rule = traced_rule_of(call->name);
    bool ok = runners[rule - traced_rules](&run, rule, error);
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
        g_autofree char *name = traced_buffer_of(text);
        exec_weights_get_buffer(t->context->weights, name, t->pointers[TRACED_MEMORY_Y]);
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
