/* exec/cuda/ops/traced-windows.c - calls of traced networks that look through windows: convolutions
 * and pooling; and norms by channels. */
#include "exec/cuda/ops/traced-private.h"
#include "exec/traced/windows.h"
#include "kernels/cuda/channels.h"
#include "kernels/cuda/windows.h"

/* NULL: not asked for. */
static const KernelTensor *asked(const TracedGpu *r, unsigned i) {
    return gpu_makes(r, i) ? gpu_made(r, i) : NULL;
}

static const KernelTensor *given(const TracedGpu *r, unsigned i) {
    return gpu_is(r, i) ? gpu_tensor(r, i) : NULL;
}

/* ---- convolutions --------------------------------------------------------------------------- */

/* (input, weight, bias, stride, padding, dilation, transposed, output_padding, groups) */
static void run_convolution(TracedGpu *r, const TracedGpuKernel *kernel) {
    const KernelTensor *x = gpu_tensor(r, 0), *weight = gpu_tensor(r, 1), *y = gpu_made(r, 0);
    KernelWindows w = traced_convolution_windows(r->call, x, weight, y, 3, 8);
    TRACED_LAUNCH(r, kernel_cuda_convolution(r->kernels, y, x, weight, given(r, 2), &w));
}

/* (grad, input, weight, bias_sizes, stride, padding, dilation, transposed, output_padding, groups,
 * output_mask) */
static void run_convolution_backward(TracedGpu *r, const TracedGpuKernel *kernel) {
    const KernelTensor *dy = gpu_tensor(r, 0), *x = gpu_tensor(r, 1), *weight = gpu_tensor(r, 2);
    const KernelTensor *dx = asked(r, 0), *dw = asked(r, 1), *db = asked(r, 2);
    KernelWindows w = traced_convolution_windows(r->call, x, weight, dy, 4, 9);
    unsigned but_channels = ((1u << dy->n_dims) - 1) & ~2u;
    if (dx) {
        TRACED_LAUNCH(r, kernel_cuda_convolution_dx(r->kernels, dx, dy, weight, &w));
    }
    if (dw) {
        TRACED_LAUNCH(r, kernel_cuda_convolution_dw(r->kernels, dw, dy, x, &w));
    }
    if (db) {
        TRACED_LAUNCH(r, kernel_cuda_tensor_sum(r->kernels, db, dy, but_channels, 1));
    }
}

/* ---- the largest of a window ---------------------------------------------------------------- */

/* (self, kernel_size, stride, padding, dilation, ceil_mode): where it lies in its channel, too. */
static void run_max_pool(TracedGpu *r, const TracedGpuKernel *kernel) {
    const KernelTensor *x = gpu_tensor(r, 0), *y = gpu_made(r, 0);
    KernelWindows w = traced_pool_windows(r->call, x, y, 1);
    TRACED_LAUNCH(r, kernel_cuda_max_pool(r->kernels, y, gpu_made(r, 1), x, &w));
}

/* (grad, self, kernel_size, stride, padding, dilation, ceil_mode, indices) */
static void run_max_pool_backward(TracedGpu *r, const TracedGpuKernel *kernel) {
    const KernelTensor *dy = gpu_tensor(r, 0), *x = gpu_tensor(r, 1);
    KernelWindows w = traced_pool_windows(r->call, x, dy, 2);
    TRACED_LAUNCH(
        r, kernel_cuda_max_pool_backward(r->kernels, gpu_made(r, 0), dy, gpu_tensor(r, 7), &w));
}

/* ---- norms by channels ---------------------------------------------------------------------- */

/* (input, weight, bias, running_mean, running_var, training, momentum, eps) */
static void run_batch_norm(TracedGpu *r, const TracedGpuKernel *kernel) {
    const KernelCudaChannels channels = {.weight = given(r, 1),
                                         .bias = given(r, 2),
                                         .mean = asked(r, 1),
                                         .rstd = asked(r, 2),
                                         .running_mean = given(r, 3),
                                         .running_var = given(r, 4),
                                         .momentum = gpu_arg(r, 6)->number,
                                         .eps = gpu_arg(r, 7)->number};
    TRACED_LAUNCH(
        r, kernel_cuda_channel_norm(r->kernels, gpu_made(r, 0), gpu_tensor(r, 0), &channels));
}

/* (grad, input, weight, running_mean, running_var, save_mean, save_invstd, train, eps, mask) */
static void run_batch_norm_backward(TracedGpu *r, const TracedGpuKernel *kernel) {
    const KernelCudaChannels channels = {
        .weight = given(r, 2), .mean = given(r, 5), .rstd = given(r, 6)};
    TRACED_LAUNCH(r, kernel_cuda_channel_norm_backward(r->kernels, asked(r, 0), asked(r, 1),
                                                       asked(r, 2), gpu_tensor(r, 0),
                                                       gpu_tensor(r, 1), &channels));
}

const TracedGpuKernel traced_gpu_windows[] = {
    {"convolution", run_convolution, traced_convolution_why_not, 0, "tt?lllnln"},
    {"convolution_backward", run_convolution_backward, traced_convolution_backward_why_not, 0,
     "ttt.lllnlnl"},
    {"max_pool2d_with_indices", run_max_pool, traced_pool_why_not, 0, "4lllln"},
    {"max_pool2d_with_indices_backward", run_max_pool_backward, traced_pool_why_not, 0, "44llllnt"},
    {"native_batch_norm", run_batch_norm, traced_batch_norm_why_not, 0, "t????nnn"},
    {"native_batch_norm_backward", run_batch_norm_backward, traced_batch_norm_backward_why_not, 0,
     "tt???ttnn"},
    {0},
};
