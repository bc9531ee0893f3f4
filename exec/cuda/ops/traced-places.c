/* exec/cuda/ops/traced-places.c - calls of traced networks that move elements, or number them: each
 * by copies of parts. */
#include "exec/cuda/ops/traced-private.h"

/* Without a side, at one place of it. */
static KernelTensor at_place(const KernelTensor *t, unsigned side, size_t place) {
    KernelTensor part = kernel_tensor_part(t, side, place, 1);
    for (unsigned i = side; i + 1 < t->n_dims; i++) {
        part.sizes[i] = t->sizes[i + 1];
        part.strides[i] = t->strides[i + 1];
    }
    part.n_dims--;
    return part;
}

/* ---- joined --------------------------------------------------------------------------------- */

static void run_cat(TracedGpu *r, const TracedGpuKernel *kernel) {
    const TracedArg *list = gpu_arg(r, 0);
    const KernelTensor *made = gpu_made(r, 0);
    unsigned side = traced_side(gpu_integer(r, 1), made->n_dims);
    for (size_t i = 0, from = 0; i < list->n; i++) {
        const KernelTensor *t = &traced_item(r->call, list, (unsigned)i)->tensor;
        if (kernel_tensor_count(t) > 0) {
            KernelTensor part = kernel_tensor_part(made, side, from, t->sizes[side]);
            gpu_copy(r, &part, t);
            from += t->sizes[side];
        }
    }
}

static void run_stack(TracedGpu *r, const TracedGpuKernel *kernel) {
    const TracedArg *list = gpu_arg(r, 0);
    const KernelTensor *made = gpu_made(r, 0);
    unsigned side = traced_side(gpu_integer(r, 1), made->n_dims);
    for (unsigned i = 0; i < list->n; i++) {
        KernelTensor part = at_place(made, side, i);
        gpu_copy(r, &part, &traced_item(r->call, list, i)->tensor);
    }
}

/* ---- a gradient into zeros ------------------------------------------------------------------ */

/* (grad, sizes, dim, index) */
static void run_select_backward(TracedGpu *r, const TracedGpuKernel *kernel) {
    const KernelTensor *made = gpu_made(r, 0);
    unsigned side = traced_side(gpu_integer(r, 2), made->n_dims);
    size_t place = traced_side(gpu_integer(r, 3), (unsigned)made->sizes[side]);
    KernelTensor part = at_place(made, side, place);
    gpu_fill(r, made, 0);
    gpu_copy(r, &part, gpu_tensor(r, 0));
}

/* (grad, sizes, dim, start, end, step); a place may be counted from the end, and beyond it. */
static void run_slice_backward(TracedGpu *r, const TracedGpuKernel *kernel) {
    const KernelTensor *given = gpu_tensor(r, 0), *made = gpu_made(r, 0);
    unsigned side = traced_side(gpu_integer(r, 2), made->n_dims);
    int64_t n = (int64_t)made->sizes[side], from = gpu_integer(r, 3);
    from = CLAMP(from < 0 ? from + n : from, 0, n);
    KernelTensor part = kernel_tensor_part(made, side, (size_t)from, given->sizes[side]);
    part.strides[side] *= (size_t)gpu_integer(r, 5);
    gpu_fill(r, made, 0);
    gpu_copy(r, &part, given);
}

/* (self, pad, value): two numbers for each side, from the last on. */
static void run_pad(TracedGpu *r, const TracedGpuKernel *kernel) {
    const TracedArg *pad = gpu_arg(r, 1);
    KernelTensor part = *gpu_made(r, 0), given = *gpu_tensor(r, 0);
    gpu_fill(r, &part, gpu_arg(r, 2)->number);
    for (unsigned i = 0; i < pad->n / 2; i++) {
        unsigned side = part.n_dims - 1 - i;
        int64_t before = traced_item(r->call, pad, 2 * i)->integer;
        int64_t behind = traced_item(r->call, pad, 2 * i + 1)->integer;
        size_t cut_before = before < 0 ? (size_t)-before : 0;
        size_t cut_behind = behind < 0 ? (size_t)-behind : 0;
        size_t n = given.sizes[side] - cut_before - cut_behind;
        part = kernel_tensor_part(&part, side, before > 0 ? (size_t)before : 0, n);
        given = kernel_tensor_part(&given, side, cut_before, n);
    }
    gpu_copy(r, &part, &given);
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

static const char *triangle_why_not(const TracedCall *call) {
    const KernelTensor *x = &call->args[0].tensor, *y = &call->made[0].tensor;
    bool alike = x->n_dims == y->n_dims && x->n_dims >= 2;
    for (unsigned i = 0; i < x->n_dims && alike; i++) {
        alike = x->sizes[i] == y->sizes[i];
    }
    return alike ? NULL : "with shapes that do not go together";
}

const TracedGpuKernel traced_gpu_places[] = {
    {"cat", run_cat, NULL, 0, "ln"},
    {"stack", run_stack, NULL, 0, "ln"},
    {"select_backward", run_select_backward, NULL, 0, "tlnn"},
    {"slice_backward", run_slice_backward, NULL, 0, "tlnnnn"},
    {"constant_pad_nd", run_pad, NULL, 0, "tln"},
    {"arange", run_arange, NULL, 0, "n"},
    {"arange.start", run_arange, NULL, 1, "nn"},
    {"arange.start_step", run_arange, NULL, 2, "nnn"},
    {"tril", run_triangle, triangle_why_not, 0, "tn"},
    {"triu", run_triangle, triangle_why_not, 1, "tn"},
    {0},
};
