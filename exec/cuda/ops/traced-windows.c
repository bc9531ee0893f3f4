/* exec/cuda/ops/traced-windows.c - calls of traced networks that look through windows: convolutions
 * and pooling; and norms by channels. */
#include "exec/cuda/ops/traced-private.h"
#include "exec/traced/windows.h"
#include "kernels/cuda/traced/channels.h"
#include "kernels/cuda/traced/windows.h"

/* NULL: not asked for. */
static const KernelTensor *asked(const TracedGpu *r, unsigned i) {
    return traced_makes(r->call, i) ? traced_made(r->call, i) : NULL;
}

static const KernelTensor *given(const TracedGpu *r, unsigned i) {
    return traced_is(r->call, i) ? traced_tensor(r->call, i) : NULL;
}

/* ---- convolutions --------------------------------------------------------------------------- */

/* (input, weight, bias, stride, padding, dilation, transposed, output_padding, groups) */
void gpu_run_convolution(TracedGpu *r, const TracedRule *rule) {
    const KernelTensor *x = traced_tensor(r->call, 0), *weight = traced_tensor(r->call, 1),
                       *y = traced_made(r->call, 0);
    KernelWindows w = traced_convolution_windows(r->call, x, weight, y, 3);
    TRACED_LAUNCH(r, (traced_is_transposed(r->call, 3)
                          ? kernel_cuda_convolution_dx
                          : kernel_cuda_convolution)(r->kernels, y, x, weight, given(r, 2), &w));
}

/* (grad, input, weight, bias_sizes, stride, padding, dilation, transposed, output_padding, groups,
 * output_mask) */
void gpu_run_convolution_backward(TracedGpu *r, const TracedRule *rule) {
    const KernelTensor *dy = traced_tensor(r->call, 0), *x = traced_tensor(r->call, 1),
                       *weight = traced_tensor(r->call, 2);
    const KernelTensor *dx = asked(r, 0), *dw = asked(r, 1), *db = asked(r, 2);
    KernelWindows w = traced_convolution_windows(r->call, x, weight, dy, 4);
    bool is_transposed = traced_is_transposed(r->call, 4);
    unsigned but_channels = ((1u << dy->n_dims) - 1) & ~2u;
    if (dx) {
        TRACED_LAUNCH(r, (is_transposed ? kernel_cuda_convolution : kernel_cuda_convolution_dx)(
                             r->kernels, dx, dy, weight, NULL, &w));
    }
    if (dw) {
        TRACED_LAUNCH(r, kernel_cuda_convolution_dw(r->kernels, dw, is_transposed ? x : dy,
                                                    is_transposed ? dy : x, &w));
    }
    if (db) {
        TRACED_LAUNCH(r, kernel_cuda_tensor_sum(r->kernels, db, dy, but_channels, 1));
    }
}

/* ---- the largest of a window ---------------------------------------------------------------- */

/* (self, kernel_size, stride, padding, dilation, ceil_mode): where it lies in its channel, too. */
void gpu_run_max_pool(TracedGpu *r, const TracedRule *rule) {
    const KernelTensor *x = traced_tensor(r->call, 0), *y = traced_made(r->call, 0);
    KernelWindows w = traced_pool_windows(r->call, x, y, 1);
    TRACED_LAUNCH(r, kernel_cuda_max_pool(r->kernels, y, traced_made(r->call, 1), x, &w));
}

/* (grad, self, kernel_size, stride, padding, dilation, ceil_mode, indices) */
void gpu_run_max_pool_backward(TracedGpu *r, const TracedRule *rule) {
    const KernelTensor *dy = traced_tensor(r->call, 0), *x = traced_tensor(r->call, 1);
    KernelWindows w = traced_pool_windows(r->call, x, dy, 2);
    TRACED_LAUNCH(r, kernel_cuda_max_pool_backward(r->kernels, traced_made(r->call, 0), dy,
                                                   traced_tensor(r->call, 7), &w));
}

/* ---- norms by channels ---------------------------------------------------------------------- */

/* (input, weight, bias, running_mean, running_var, training, momentum, eps) */
void gpu_run_batch_norm(TracedGpu *r, const TracedRule *rule) {
    const KernelCudaChannels channels = {.weight = given(r, 1),
                                         .bias = given(r, 2),
                                         .mean = asked(r, 1),
                                         .rstd = asked(r, 2),
                                         .running_mean = given(r, 3),
                                         .running_var = given(r, 4),
                                         .momentum = traced_arg(r->call, 6)->number,
                                         .eps = traced_arg(r->call, 7)->number};
    TRACED_LAUNCH(r, kernel_cuda_channel_norm(r->kernels, traced_made(r->call, 0),
                                              traced_tensor(r->call, 0), &channels));
}

/* (grad, input, weight, running_mean, running_var, save_mean, save_invstd, train, eps, mask) */
void gpu_run_batch_norm_backward(TracedGpu *r, const TracedRule *rule) {
    const KernelCudaChannels channels = {
        .weight = given(r, 2), .mean = given(r, 5), .rstd = given(r, 6)};
    TRACED_LAUNCH(r, kernel_cuda_channel_norm_backward(r->kernels, asked(r, 0), asked(r, 1),
                                                       asked(r, 2), traced_tensor(r->call, 0),
                                                       traced_tensor(r->call, 1), &channels));
}
