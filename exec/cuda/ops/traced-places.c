/* exec/cuda/ops/traced-places.c - calls of traced networks that move elements, or number them. */
#include "exec/cuda/ops/traced-private.h"
#include "exec/traced/moves.h"
#include "kernels/cuda/tensor-places.h"

static void copy(gpointer r, const KernelTensor *to, const KernelTensor *from) {
    gpu_copy(r, to, from);
}

static void fill(gpointer r, const KernelTensor *to, double number) {
    gpu_fill(r, to, number);
}

static void run_move(TracedGpu *r, const TracedGpuKernel *kernel) {
    const TracedMover mover = {copy, fill, r};
    traced_move((TracedMove)kernel->which, r->call, &mover);
}

/* ---- numbered ------------------------------------------------------------------------------- */

/* (end), (start, end) or (start, end, step), by which */
static void run_arange(TracedGpu *r, const TracedGpuKernel *kernel) {
    double start = kernel->which > 0 ? gpu_arg(r, 0)->number : 0;
    double step = kernel->which > 1 ? gpu_arg(r, 2)->number : 1;
    TRACED_LAUNCH(r, kernel_cuda_tensor_count_up(r->kernels, gpu_made(r, 0), start, step));
}

/* (self, diagonal) of each matrix: what lies below it, or above, is kept. */
static void run_triangle(TracedGpu *r, const TracedGpuKernel *kernel) {
    TRACED_LAUNCH(r, kernel_cuda_tensor_triangle(r->kernels, gpu_made(r, 0), gpu_tensor(r, 0),
                                                 gpu_integer(r, 1), !kernel->which));
}

/* (self, dim) */
static void run_running_sum(TracedGpu *r, const TracedGpuKernel *kernel) {
    unsigned side = traced_side(gpu_integer(r, 1), gpu_tensor(r, 0)->n_dims);
    TRACED_LAUNCH(
        r, kernel_cuda_tensor_running_sum(r->kernels, gpu_made(r, 0), gpu_tensor(r, 0), side));
}

/* (self, repeats) */
static void run_repeat(TracedGpu *r, const TracedGpuKernel *kernel) {
    TRACED_LAUNCH(r, kernel_cuda_tensor_repeat(r->kernels, gpu_made(r, 0), gpu_tensor(r, 0)));
}

/* ---- looked up ------------------------------------------------------------------------------ */

/* (self, dim, index) */
static void run_gather(TracedGpu *r, const TracedGpuKernel *kernel) {
    const KernelTensor *given = gpu_tensor(r, 0);
    unsigned side = traced_side(gpu_integer(r, 1), MAX(1, given->n_dims));
    TRACED_LAUNCH(
        r, kernel_cuda_tensor_gather(r->kernels, gpu_made(r, 0), given, gpu_tensor(r, 2), side));
}

/* (self, dim, index, src or a number): which 1 adds. What is made holds self at first. */
static void run_scatter(TracedGpu *r, const TracedGpuKernel *kernel) {
    const KernelTensor *made = gpu_made(r, 0);
    const TracedArg *source = gpu_arg(r, 3);
    unsigned side = traced_side(gpu_integer(r, 1), MAX(1, made->n_dims));
    if (made->data != gpu_tensor(r, 0)->data) {
        gpu_copy(r, made, gpu_tensor(r, 0));
    }
    TRACED_LAUNCH(r,
                  kernel_cuda_tensor_scatter(r->kernels, made, gpu_tensor(r, 2),
                                             source->of == TRACED_TENSOR ? &source->tensor : NULL,
                                             source->number, side, kernel->which));
}

/* (self, dim, index): rows, columns or whatever the side has, one after the other. */
static void run_index_select(TracedGpu *r, const TracedGpuKernel *kernel) {
    const KernelTensor *given = gpu_tensor(r, 0);
    unsigned side = traced_side(gpu_integer(r, 1), given->n_dims);
    TRACED_LAUNCH(r, kernel_cuda_tensor_index_select(r->kernels, gpu_made(r, 0), given,
                                                     gpu_tensor(r, 2), side));
}

static const char *triangle_why_not(const TracedCall *call) {
    const KernelTensor *x = &call->args[0].tensor, *y = &call->made[0].tensor;
    bool alike = x->n_dims == y->n_dims && x->n_dims >= 2;
    for (unsigned i = 0; i < x->n_dims && alike; i++) {
        alike = x->sizes[i] == y->sizes[i];
    }
    return alike ? NULL : "with shapes that do not go together";
}

const TracedGpuKernel traced_gpu_places[] = {
    {"cat", run_move, NULL, TRACED_CAT, "ln"},
    {"stack", run_move, NULL, TRACED_STACK, "ln"},
    {"select_backward", run_move, NULL, TRACED_SELECT_BACKWARD, "tlnn"},
    {"slice_backward", run_move, NULL, TRACED_SLICE_BACKWARD, "tlnnnn"},
    {"constant_pad_nd", run_move, NULL, TRACED_PAD, "tln"},
    {"arange", run_arange, NULL, 0, "n"},
    {"arange.start", run_arange, NULL, 1, "nn"},
    {"arange.start_step", run_arange, NULL, 2, "nnn"},
    {"tril", run_triangle, triangle_why_not, 0, "tn"},
    {"triu", run_triangle, triangle_why_not, 1, "tn"},
    {"cumsum", run_running_sum, NULL, 0, "tn"},
    {"repeat", run_repeat, NULL, 0, "tl"},
    {"gather", run_gather, NULL, 0, "tnt"},
    {"scatter.src", run_scatter, NULL, 0, "tntt"},
    {"scatter_.src", run_scatter, NULL, 0, "tntt"},
    {"scatter.value", run_scatter, NULL, 0, "tntn"},
    {"scatter_.value", run_scatter, NULL, 0, "tntn"},
    {"scatter_add", run_scatter, NULL, 1, "tntt"},
    {"scatter_add_", run_scatter, NULL, 1, "tntt"},
    {"index_select", run_index_select, NULL, 0, "tnt"},
    {0},
};
