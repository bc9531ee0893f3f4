/* exec/cuda/ops/loss.c - softmax, and losses. */
#include "kernels/cuda/loss.h"
#include "exec/cuda/ops/operands.h"
#include "kernels/cuda/matmul.h"

/* In room lie a part's logits, a number a row, and, where the loss is stored in fewer bits, the
 * mean so far: logits are then stored so too, and leave half of their place. */
static KernelCudaFault chunked_loss(const ExecTask *t, KernelCuda *k) {
    size_t rows = dim(t, 0), cols = dim(t, 1), width = dim(t, 2), chunk = dim(t, 3);
    KernelCudaType type = type_at(t, 0);
    size_t bytes = kernel_cuda_type_bytes(type);
    const char *x = t->pointers[0], *w = t->pointers[1];
    char *logits = t->pointers[6], *dx = t->pointers[4];
    float *row_loss = (float *)(logits + (chunk * cols * bytes + 3) / 4 * 4);
    float *sum = type == KERNEL_CUDA_F32 ? t->pointers[3] : row_loss + chunk;
    KernelCudaFault fault = NULL;
    for (size_t row = 0; row < rows && !fault; row += chunk) {
        size_t m = MIN(chunk, rows - row);
        const char *x_rows = x + row * width * bytes;
        fault = kernel_cuda_linear_forward(k, logits, x_rows, w, NULL, m, cols, width, type);
        fault = fault ? fault
                      : kernel_cuda_cross_entropy_part(k, t->pointers[3], sum, row_loss, logits,
                                                       (const int64_t *)t->pointers[2] + row, m,
                                                       cols, rows, row == 0, type);
        fault = fault ? fault
                      : kernel_cuda_linear_backward_input(k, dx + row * width * bytes, logits, w, m,
                                                          cols, width, type);
        if (t->pointers[5] && !fault) {
            fault =
                (row ? kernel_cuda_linear_backward_weight_add : kernel_cuda_linear_backward_weight)(
                    k, t->pointers[5], logits, x_rows, m, cols, width, type);
        }
    }
    return fault;
}

KernelCudaFault exec_cuda_loss(const ExecTask *t, KernelCuda *k) {
    gpointer *p = t->pointers;
    KernelCudaType type = type_at(t, 0);
    switch ((ExecLossOp)t->op->kind) {
    case PLAN_OP_SOFTMAX:
        return kernel_cuda_softmax_forward(k, p[1], p[0], dim(t, 0), dim(t, 1), type);
    case PLAN_OP_SOFTMAX_BACKWARD:
        return kernel_cuda_softmax_backward(k, p[2], p[0], p[1], dim(t, 0), dim(t, 1), type);
    case PLAN_OP_LOG_SOFTMAX:
        return kernel_cuda_log_softmax_forward(k, p[1], p[0], dim(t, 0), dim(t, 1), type);
    case PLAN_OP_LOG_SOFTMAX_BACKWARD:
        return kernel_cuda_log_softmax_backward(k, p[2], p[0], p[1], dim(t, 0), dim(t, 1), type);
    case PLAN_OP_NLL_LOSS:
        return kernel_cuda_nll_loss_forward(k, p[2], p[3], p[0], p[1], dim(t, 0), dim(t, 1), type);
    case PLAN_OP_NLL_LOSS_BACKWARD:
        return kernel_cuda_nll_loss_backward(k, p[3], p[0], p[1], p[2], dim(t, 0), dim(t, 1), type);
    case PLAN_OP_CROSS_ENTROPY: /* logits target > y total lse */
        return kernel_cuda_cross_entropy_forward(k, p[2], p[3], p[4], p[0], p[1], dim(t, 0),
                                                 dim(t, 1), type);
    case PLAN_OP_CROSS_ENTROPY_BACKWARD: /* dy target total lse logits > dlogits */
        return kernel_cuda_cross_entropy_backward(k, p[5], p[4], p[0], p[1], p[2], p[3], dim(t, 0),
                                                  dim(t, 1), type);
    case PLAN_OP_COMPILED_LOSS: /* logits target > most log_sum y total */
        return kernel_cuda_compiled_loss_forward(k, p[4], p[5], type_at(t, 4), p[2], p[3], p[0],
                                                 p[1], dim(t, 0), dim(t, 1), type);
    case PLAN_OP_COMPILED_LOSS_BACKWARD: /* dy target logits most log_sum total more > dlogits */
        return kernel_cuda_compiled_loss_backward(k, p[7], p[2], p[6], p[1], p[3], p[4], p[0], p[5],
                                                  type_at(t, 0), dim(t, 0), dim(t, 1),
                                                  type_at(t, 2));
    case PLAN_OP_CHUNKED_LOSS:
        return chunked_loss(t, k);
    }
    g_assert_not_reached();
}
