/* exec/cuda/ops/traced.c - calls of traced networks on a GPU, as exec/host/traced.h has them on CPU
 * ranks; and those that work element by element.
 */
#include "exec/cuda/ops/traced.h"

#include <string.h>

#include "exec/cuda/calls.h"
#include "exec/cuda/ops/traced-private.h"
#include "exec/inputs.h"
#include "exec/traced/each.h"

/* ---- element by element --------------------------------------------------------------------- */

static void launch_each(TracedGpu *r, KernelEach which, TracedEach *e, double p, double q) {
    for (unsigned i = 0; i < e->n_inputs; i++) {
        if (e->inputs[i].data == &e->numbers[i]) { /* which is the host's memory */
            e->inputs[i].data = NULL;
        }
    }
    if (kernel_tensor_count(traced_made(r->call, 0)) > 0) {
        TRACED_LAUNCH(r, kernel_cuda_tensor_each(r->kernels, which, traced_made(r->call, 0),
                                                 e->inputs, e->numbers, e->n_inputs, p, q));
    }
}

void gpu_run_each(TracedGpu *r, const TracedRule *rule) {
    TracedEach e = {0};
    traced_each_take(&e, r->call, rule->takes);
    launch_each(r, (KernelEach)rule->which, &e, e.shared[0], e.shared[1]);
}

/* 2 (x - target), and by their number where the loss is the mean. */
void gpu_run_mse_backward(TracedGpu *r, const TracedRule *rule) {
    TracedEach e = {0};
    traced_each_take(&e, r->call, rule->takes);
    bool is_mean = traced_integer(r->call, 3) == 1;
    double factor = 2 / (is_mean ? (double)kernel_tensor_count(&e.inputs[1]) : 1);
    launch_each(r, KERNEL_EACH_DIFFERENCE_TIMES, &e, factor, 0);
}

/* ---- which kernel --------------------------------------------------------------------------- */

static TracedGpuRunner *const runners[] = {
#define CALL(name, run, ...) gpu_run_##run,
#include "exec/traced/calls.def"
};

static TracedGpuRunner *runner_of(const TracedRule *rule) {
    return runners[rule - traced_rules];
}

static const char *why_of(const TracedRule *rule, const TracedCall *call) {
    static const struct {
        TracedGpuRunner *run;
        TracedWhy *why;
    } limits[] = {{gpu_run_nll, gpu_nll_why_not},
                  {gpu_run_nll_backward, gpu_nll_backward_why_not},
                  {gpu_run_efficient, gpu_attention_why_not},
                  {gpu_run_flash, gpu_attention_why_not},
                  {gpu_run_efficient_backward, gpu_efficient_backward_why_not},
                  {gpu_run_flash_backward, gpu_flash_backward_why_not}};
    for (unsigned i = 0; i < G_N_ELEMENTS(limits); i++) {
        if (limits[i].run == runner_of(rule)) {
            return limits[i].why(call);
        }
    }
    return NULL;
}

bool exec_cuda_traced_knows(const ExecContext *context, const PlanOp *op, GError **error) {
    return traced_is_known(context, op, why_of, error);
}

/* ---- calls that were read ------------------------------------------------------------------- */

typedef struct {
    TracedCall call;
    const TracedRule *rule; /* NULL: nothing is computed, "-" */
} ReadCall;

struct _ExecCudaTraced {
    GHashTable *calls; /* ReadCall, by the plan's text */
};

static void read_call_free(gpointer data) {
    ReadCall *read = data;
    traced_call_clear(&read->call);
    g_free(read);
}

ExecCudaTraced *exec_cuda_traced_new(void) {
    ExecCudaTraced *traced = g_new(ExecCudaTraced, 1);
    traced->calls = g_hash_table_new_full(NULL, NULL, NULL, read_call_free);
    return traced;
}

void exec_cuda_traced_free(ExecCudaTraced *traced) {
    if (traced) {
        g_hash_table_unref(traced->calls);
        g_free(traced);
    }
}

/* A fault was found before, when it was asked whether the call is known. */
static ReadCall *read_once(ExecCudaTraced *traced, const char *text) {
    ReadCall *read = g_hash_table_lookup(traced->calls, text);
    if (!read) {
        char *fault = NULL;
        read = g_new0(ReadCall, 1);
        traced_call_read(&read->call, text, &fault);
        g_assert(!fault);
        read->rule = g_str_equal(read->call.name, "-") ? NULL : traced_rule_of(read->call.name);
        g_hash_table_insert(traced->calls, (gpointer)text, read);
    }
    return read;
}

/* ---- a call that runs ----------------------------------------------------------------------- */

static void point(const ExecTask *t, TracedArg *args, unsigned n) {
    for (unsigned i = 0; i < n; i++) {
        if (args[i].of == TRACED_TENSOR && args[i].operand != PLAN_NONE) {
            args[i].tensor.data = (char *)t->pointers[args[i].operand] + args[i].offset;
        }
    }
}

static KernelCudaFault run_call(const ExecTask *t, KernelCuda *kernels, ReadCall *read) {
    TracedCall *call = &read->call;
    TracedGpu run = {.call = call, .kernels = kernels};
    point(t, call->args, call->n_args);
    point(t, call->made, call->n_made);
    point(t, (TracedArg *)(gpointer)call->items->data, call->items->len);
    runner_of(read->rule)(&run, read->rule);
    for (unsigned i = 0; i < run.n_results; i++) {
        gpu_copy(&run, &run.to[i], &run.from[i]);
    }
    return run.fault;
}

static KernelCudaFault run(const ExecTask *t, const ExecCudaLane *lane, const char *text) {
    ReadCall *read = read_once(lane->traced, text);
    return read->rule ? run_call(t, lane->kernels, read) : NULL;
}

/* ---- what the host has ---------------------------------------------------------------------- */

static bool put(const ExecCudaLane *lane, gpointer to, gsize bytes, GError **error) {
    return exec_cuda_stage_put(lane->stage, to, 0, bytes, lane->stream, error);
}

bool exec_cuda_fill_input(const ExecTask *t, const ExecCudaLane *lane, GError **error) {
    gsize bytes = dim(t, TRACED_INPUT_SAMPLES) * dim(t, TRACED_INPUT_SAMPLE_ELEMENTS) *
                  plan_dtype_bytes(operand_dtype(t, TRACED_INPUT_X));
    gpointer staged = exec_cuda_stage_get(lane->stage, bytes, error);
    ExecTask on_host = *t;
    on_host.pointers = &staged;
    return staged && exec_inputs_fill(&on_host, error) &&
           put(lane, t->pointers[TRACED_INPUT_X], bytes, error);
}

bool exec_cuda_traced_launch(const ExecTask *t, const ExecCudaLane *lane, GError **error) {
    const char *text = plan_op_call(t->context->plan, t->context->role, t->op);
    if (!g_str_has_prefix(text, "buffer ")) {
        return exec_cuda_kernel_ok(run(t, lane, text), error);
    }
    g_autofree char *name = traced_buffer_of(text);
    gsize bytes =
        operand(t, TRACED_MEMORY_Y).elements * plan_dtype_bytes(operand_dtype(t, TRACED_MEMORY_Y));
    gpointer staged = exec_cuda_stage_get(lane->stage, bytes, error);
    if (!staged) {
        return false;
    }
    exec_weights_get_buffer(t->context->weights, name, staged);
    return put(lane, t->pointers[TRACED_MEMORY_Y], bytes, error);
}
