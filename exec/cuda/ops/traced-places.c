/* exec/cuda/ops/traced-places.c - calls of traced networks that move elements, or number them. */
#include "exec/cuda/ops/traced-private.h"
#include "exec/traced/moves.h"
#include "kernels/cuda/traced/tensor-places.h"

static void copy(gpointer r, const KernelTensor *to, const KernelTensor *from) {
    gpu_copy(r, to, from);
}

static void fill(gpointer r, const KernelTensor *to, double number) {
    gpu_fill(r, to, number);
}

void gpu_run_move(TracedGpu *r, const TracedRule *rule) {
    const TracedMover mover = {copy, fill, r};
    traced_move((TracedMove)rule->which, r->call, &mover);
}

/* ---- numbered ------------------------------------------------------------------------------- */

/* (end), (start, end) or (start, end, step), by which */
void gpu_run_arange(TracedGpu *r, const TracedRule *rule) {
    double start = rule->which > 0 ? traced_arg(r->call, 0)->number : 0;
    double step = rule->which > 1 ? traced_arg(r->call, 2)->number : 1;
    TRACED_LAUNCH(r, kernel_cuda_tensor_count_up(r->kernels, traced_made(r->call, 0), start, step));
}

/* (self, diagonal) of each matrix: what lies below it, or above, is kept. */
void gpu_run_triangle(TracedGpu *r, const TracedRule *rule) {
    TRACED_LAUNCH(r, kernel_cuda_tensor_triangle(r->kernels, traced_made(r->call, 0),
                                                 traced_tensor(r->call, 0),
                                                 traced_integer(r->call, 1), !rule->which));
}

/* (self, dim) */
void gpu_run_running_sum(TracedGpu *r, const TracedRule *rule) {
    unsigned side = traced_side(traced_integer(r->call, 1), traced_tensor(r->call, 0)->n_dims);
    TRACED_LAUNCH(r, kernel_cuda_tensor_running_sum(r->kernels, traced_made(r->call, 0),
                                                    traced_tensor(r->call, 0), side));
}

/* (self, repeats) */
void gpu_run_repeat(TracedGpu *r, const TracedRule *rule) {
    TRACED_LAUNCH(r, kernel_cuda_tensor_repeat(r->kernels, traced_made(r->call, 0),
                                               traced_tensor(r->call, 0)));
}

/* ---- looked up ------------------------------------------------------------------------------ */

/* (self, dim, index) */
void gpu_run_gather(TracedGpu *r, const TracedRule *rule) {
    const KernelTensor *given = traced_tensor(r->call, 0);
    unsigned side = traced_side(traced_integer(r->call, 1), MAX(1, given->n_dims));
    TRACED_LAUNCH(r, kernel_cuda_tensor_gather(r->kernels, traced_made(r->call, 0), given,
                                               traced_tensor(r->call, 2), side));
}

/* (self, dim, index, src or a number): which 1 adds. What is made holds self at first. */
void gpu_run_scatter(TracedGpu *r, const TracedRule *rule) {
    const KernelTensor *made = traced_made(r->call, 0);
    const TracedArg *source = traced_arg(r->call, 3);
    unsigned side = traced_side(traced_integer(r->call, 1), MAX(1, made->n_dims));
    if (made->data != traced_tensor(r->call, 0)->data) {
        gpu_copy(r, made, traced_tensor(r->call, 0));
    }
    TRACED_LAUNCH(r,
                  kernel_cuda_tensor_scatter(r->kernels, made, traced_tensor(r->call, 2),
                                             source->of == TRACED_TENSOR ? &source->tensor : NULL,
                                             source->number, side, rule->which));
}

/* (self, dim, index): rows, columns or whatever the side has, one after the other. */
void gpu_run_index_select(TracedGpu *r, const TracedRule *rule) {
    const KernelTensor *given = traced_tensor(r->call, 0);
    unsigned side = traced_side(traced_integer(r->call, 1), given->n_dims);
    TRACED_LAUNCH(r, kernel_cuda_tensor_index_select(r->kernels, traced_made(r->call, 0), given,
                                                     traced_tensor(r->call, 2), side));
}
