/* exec/cuda/ops/loss.c - softmax, and losses. */
#include "kernels/cuda/rows/loss.h"
#include "exec/cuda/ops/operands.h"
#include "kernels/cuda/products/matmul.h"

/* In room lie a part's logits, a number a row, and, where the loss is stored in fewer bits, the
 * mean so far: logits are then stored so too, and leave half of their place. */
static KernelCudaFault chunked_loss(const ExecTask *t, KernelCuda *k) {
    size_t rows = dim(t, CHUNKED_LOSS_ROWS), cols = dim(t, CHUNKED_LOSS_COLS),
           width = dim(t, CHUNKED_LOSS_WIDTH), chunk = dim(t, CHUNKED_LOSS_CHUNK);
    KernelCudaType type = type_at(t, CHUNKED_LOSS_X);
    size_t bytes = kernel_cuda_type_bytes(type);
    const char *x = t->pointers[CHUNKED_LOSS_X], *w = t->pointers[CHUNKED_LOSS_W];
    char *logits = t->pointers[CHUNKED_LOSS_ROOM], *dx = t->pointers[CHUNKED_LOSS_DX];
    float *row_loss = (float *)(logits + (chunk * cols * bytes + 3) / 4 * 4);
    float *sum = type == KERNEL_CUDA_F32 ? t->pointers[CHUNKED_LOSS_Y] : row_loss + chunk;
    KernelCudaFault fault = NULL;
    for (size_t row = 0; row < rows && !fault; row += chunk) {
        size_t m = MIN(chunk, rows - row);
        const char *x_rows = x + row * width * bytes;
        fault = kernel_cuda_linear_forward(k, logits, x_rows, w, NULL, m, cols, width, type);
        fault = fault ? fault
                      : kernel_cuda_cross_entropy_part(
                            k, t->pointers[CHUNKED_LOSS_Y], sum, row_loss, logits,
                            (const int64_t *)t->pointers[CHUNKED_LOSS_TARGET] + row, m, cols, rows,
                            row == 0, type);
        fault = fault ? fault
                      : kernel_cuda_linear_backward_input(k, dx + row * width * bytes, logits, w, m,
                                                          cols, width, type);
        if (t->pointers[CHUNKED_LOSS_DW] && !fault) {
            fault =
                (row ? kernel_cuda_linear_backward_weight_add : kernel_cuda_linear_backward_weight)(
                    k, t->pointers[CHUNKED_LOSS_DW], logits, x_rows, m, cols, width, type);
        }
    }
    return fault;
}

KernelCudaFault exec_cuda_loss(const ExecTask *t, KernelCuda *k) {
    gpointer *p = t->pointers;
    KernelCudaType type = type_of_first(t);
    switch ((ExecLossOp)t->op->kind) {
    case PLAN_OP_SOFTMAX:
        return kernel_cuda_softmax_forward(k, p[SOFTMAX_Y], p[SOFTMAX_X], dim(t, SOFTMAX_ROWS),
                                           dim(t, SOFTMAX_COLS), type);
    case PLAN_OP_SOFTMAX_BACKWARD:
        return kernel_cuda_softmax_backward(k, p[SOFTMAX_BACKWARD_DX], p[SOFTMAX_BACKWARD_DY],
                                            p[SOFTMAX_BACKWARD_Y], dim(t, SOFTMAX_BACKWARD_ROWS),
                                            dim(t, SOFTMAX_BACKWARD_COLS), type);
    case PLAN_OP_LOG_SOFTMAX:
        return kernel_cuda_log_softmax_forward(k, p[LOG_SOFTMAX_Y], p[LOG_SOFTMAX_X],
                                               dim(t, LOG_SOFTMAX_ROWS), dim(t, LOG_SOFTMAX_COLS),
                                               type);
    case PLAN_OP_LOG_SOFTMAX_BACKWARD:
        return kernel_cuda_log_softmax_backward(
            k, p[LOG_SOFTMAX_BACKWARD_DX], p[LOG_SOFTMAX_BACKWARD_DY], p[LOG_SOFTMAX_BACKWARD_Y],
            dim(t, LOG_SOFTMAX_BACKWARD_ROWS), dim(t, LOG_SOFTMAX_BACKWARD_COLS), type);
    case PLAN_OP_NLL_LOSS:
        return kernel_cuda_nll_loss_forward(k, p[NLL_LOSS_Y], p[NLL_LOSS_TOTAL], p[NLL_LOSS_X],
                                            p[NLL_LOSS_TARGET], dim(t, NLL_LOSS_ROWS),
                                            dim(t, NLL_LOSS_COLS), type);
    case PLAN_OP_NLL_LOSS_BACKWARD:
        return kernel_cuda_nll_loss_backward(
            k, p[NLL_LOSS_BACKWARD_DX], p[NLL_LOSS_BACKWARD_DY], p[NLL_LOSS_BACKWARD_TARGET],
            p[NLL_LOSS_BACKWARD_TOTAL], dim(t, NLL_LOSS_BACKWARD_ROWS),
            dim(t, NLL_LOSS_BACKWARD_COLS), type);
    case PLAN_OP_CROSS_ENTROPY:
        return kernel_cuda_cross_entropy_forward(
            k, p[CROSS_ENTROPY_Y], p[CROSS_ENTROPY_TOTAL], p[CROSS_ENTROPY_LSE],
            p[CROSS_ENTROPY_LOGITS], p[CROSS_ENTROPY_TARGET], dim(t, CROSS_ENTROPY_ROWS),
            dim(t, CROSS_ENTROPY_COLS), type);
    case PLAN_OP_CROSS_ENTROPY_BACKWARD:
        return kernel_cuda_cross_entropy_backward(
            k, p[CROSS_ENTROPY_BACKWARD_DLOGITS], p[CROSS_ENTROPY_BACKWARD_LOGITS],
            p[CROSS_ENTROPY_BACKWARD_DY], p[CROSS_ENTROPY_BACKWARD_TARGET],
            p[CROSS_ENTROPY_BACKWARD_TOTAL], p[CROSS_ENTROPY_BACKWARD_LSE],
            dim(t, CROSS_ENTROPY_BACKWARD_ROWS), dim(t, CROSS_ENTROPY_BACKWARD_COLS), type);
    case PLAN_OP_COMPILED_LOSS:
        return kernel_cuda_compiled_loss_forward(
            k, p[COMPILED_LOSS_Y], p[COMPILED_LOSS_TOTAL], type_at(t, COMPILED_LOSS_Y),
            p[COMPILED_LOSS_MOST], p[COMPILED_LOSS_LOG_SUM], p[COMPILED_LOSS_LOGITS],
            p[COMPILED_LOSS_TARGET], dim(t, COMPILED_LOSS_ROWS), dim(t, COMPILED_LOSS_COLS), type);
    case PLAN_OP_COMPILED_LOSS_BACKWARD:
        return kernel_cuda_compiled_loss_backward(
            k, p[COMPILED_LOSS_BACKWARD_DLOGITS], p[COMPILED_LOSS_BACKWARD_LOGITS],
            p[COMPILED_LOSS_BACKWARD_MORE], p[COMPILED_LOSS_BACKWARD_TARGET],
            p[COMPILED_LOSS_BACKWARD_MOST], p[COMPILED_LOSS_BACKWARD_LOG_SUM],
            p[COMPILED_LOSS_BACKWARD_DY], p[COMPILED_LOSS_BACKWARD_TOTAL],
            type_at(t, COMPILED_LOSS_BACKWARD_DY), dim(t, COMPILED_LOSS_BACKWARD_ROWS),
            dim(t, COMPILED_LOSS_BACKWARD_COLS), type_at(t, COMPILED_LOSS_BACKWARD_LOGITS));
    case PLAN_OP_CHUNKED_LOSS:
        return chunked_loss(t, k);
    }
    g_assert_not_reached();
}
