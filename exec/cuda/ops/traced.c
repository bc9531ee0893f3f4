/* exec/cuda/ops/traced.c - calls of traced networks on a GPU, as exec/host/traced.h has them on CPU
 * ranks; and those that work element by element.
 */
#include "exec/cuda/ops/traced.h"

#include <string.h>

#include "exec/cuda/calls.h"
#include "exec/cuda/ops/traced-private.h"
#include "exec/inputs.h"
#include "exec/traced/each.h"

enum {
    BORDER = 256 /* bytes; where arrays begin in room */
};

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

/* ---- memory of a call ----------------------------------------------------------------------- */

KernelDtype gpu_dtype_of(const KernelTensor *t) {
    return t->dtype == KERNEL_BF16 || t->dtype == KERNEL_FP16 ? t->dtype : KERNEL_FP32;
}

/* In the widest dtype that a kernel wants of it. */
static size_t room_for(const KernelTensor *t) {
    size_t each = t->dtype < KERNEL_INT64 ? sizeof(float) : sizeof(int64_t);
    return (kernel_tensor_count(t) * each + 2 * BORDER - 1) / BORDER * BORDER;
}

static size_t room_for_all(const TracedArg *args, unsigned n) {
    size_t bytes = 0;
    for (unsigned i = 0; i < n; i++) {
        bytes += args[i].of == TRACED_TENSOR ? room_for(&args[i].tensor) : 0;
    }
    return bytes;
}

/* For each of the call's tensors twice: no kernel wants more. */
static char *take_room(TracedGpu *r, size_t bytes) {
    if (!r->room) {
        const TracedCall *call = r->call;
        r->room_bytes =
            2 * (room_for_all(call->args, call->n_args) + room_for_all(call->made, call->n_made) +
                 room_for_all((const TracedArg *)(gpointer)call->items->data, call->items->len));
        gpointer room = NULL;
        TRACED_LAUNCH(r, kernel_cuda_callers_scratch(r->kernels, r->room_bytes, &room));
        r->room = room;
    }
    size_t at = r->used;
    r->used += (bytes + BORDER - 1) / BORDER * BORDER;
    g_assert(r->used <= r->room_bytes);
    return r->room ? r->room + at : NULL;
}

KernelTensor gpu_dense_like(const KernelTensor *t, const void *data, KernelDtype dtype) {
    KernelTensor dense = *t;
    size_t step = 1;
    dense.data = (void *)data;
    dense.dtype = dtype;
    for (unsigned i = dense.n_dims; i-- > 0; step *= dense.sizes[i]) {
        dense.strides[i] = step;
    }
    return dense;
}

static bool is_as_wanted(const KernelTensor *t, KernelDtype dtype) {
    return t->dtype == dtype && kernel_tensor_is_dense(t);
}

void gpu_copy(TracedGpu *r, const KernelTensor *to, const KernelTensor *from) {
    TRACED_LAUNCH(r,
                  kernel_cuda_tensor_each(r->kernels, KERNEL_EACH_COPY, to, from, NULL, 1, 0, 0));
}

void gpu_fill(TracedGpu *r, const KernelTensor *to, double number) {
    TRACED_LAUNCH(
        r, kernel_cuda_tensor_each(r->kernels, KERNEL_EACH_FILL, to, NULL, NULL, 0, number, 0));
}

void *gpu_room(TracedGpu *r, const KernelTensor *like, KernelDtype dtype) {
    return take_room(r, kernel_tensor_count(like) * kernel_dtype_bytes(dtype));
}

const void *gpu_dense(TracedGpu *r, const KernelTensor *t, KernelDtype dtype) {
    if (is_as_wanted(t, dtype)) {
        return t->data;
    }
    KernelTensor copy = gpu_dense_like(t, gpu_room(r, t, dtype), dtype);
    gpu_copy(r, &copy, t);
    return copy.data;
}

const void *gpu_dense_of(TracedGpu *r, unsigned i, KernelDtype dtype) {
    return traced_is(r->call, i) ? gpu_dense(r, traced_tensor(r->call, i), dtype) : NULL;
}

void *gpu_result(TracedGpu *r, const KernelTensor *t, KernelDtype dtype) {
    if (is_as_wanted(t, dtype)) {
        return t->data;
    }
    KernelTensor made = gpu_dense_like(t, gpu_room(r, t, dtype), dtype);
    r->to[r->n_results] = *t;
    r->from[r->n_results++] = made;
    return made.data;
}

void *gpu_result_of(TracedGpu *r, unsigned i, KernelDtype dtype) {
    return traced_makes(r->call, i) ? gpu_result(r, traced_made(r->call, i), dtype) : NULL;
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
