#include "exec/host/fused.h"

#include "exec/task.h"
#include "kernels/host/activation.h"
#include "kernels/host/attention/rope.h"
#include "kernels/host/elementwise.h"
#include "kernels/host/products/matmul.h"
#include "kernels/host/reduce.h"
#include "kernels/host/rows/loss.h"
#include "kernels/host/rows/norm.h"

enum {
    CHUNK = 2048,    /* elements of a scratch array on the stack */
    NO_TARGET = -100 /* PyTorch's ignore_index */
};

/* ---- rotary embedding, SwiGLU --------------------------------------------------------------- */

void exec_fused_rope(const ExecTask *t) {
    size_t heads = dim(t, ROPE_HEADS), head_dim = dim(t, ROPE_DIM), seq = dim(t, ROPE_SEQ),
           batch = dim(t, ROPE_TOKENS) / seq;
    size_t row = heads * head_dim;
    KernelView y = {f32(t, ROPE_Y), seq * row, row, head_dim};
    KernelConstView x = {f32(t, ROPE_X), seq * dim(t, ROPE_STRIDE), dim(t, ROPE_STRIDE), head_dim};
    (dim(t, ROPE_BACK) ? kernel_rope_backward_f32 : kernel_rope_forward_f32)(
        y, x, f32(t, ROPE_COS), f32(t, ROPE_SIN), batch, heads, seq, head_dim);
}

void exec_fused_swiglu(const ExecTask *t) {
    size_t n = dim(t, SWIGLU_N);
    kernel_silu_forward_f32(f32(t, SWIGLU_Y), f32(t, SWIGLU_GATE), n);
    kernel_mul_f32(f32(t, SWIGLU_Y), f32(t, SWIGLU_Y), f32(t, SWIGLU_UP), n);
}

void exec_fused_swiglu_backward(const ExecTask *t) {
    const float *dy = f32(t, SWIGLU_BACKWARD_DY), *gate = f32(t, SWIGLU_BACKWARD_GATE),
                *up = f32(t, SWIGLU_BACKWARD_UP);
    float *dgate = f32(t, SWIGLU_BACKWARD_DGATE), *dup = f32(t, SWIGLU_BACKWARD_DUP), open[CHUNK],
          through[CHUNK];
    for (size_t at = 0, n; at < dim(t, SWIGLU_BACKWARD_N); at += n) {
        n = MIN(CHUNK, dim(t, SWIGLU_BACKWARD_N) - at);
        kernel_silu_forward_f32(open, gate + at, n);
        kernel_mul_f32(through, dy + at, up + at, n); /* dgate may be written over up */
        kernel_mul_f32(dup + at, dy + at, open, n);
        kernel_silu_backward_f32(dgate + at, through, gate + at, n);
    }
}

/* ---- norms of sums -------------------------------------------------------------------------- */

void exec_fused_add_norm(const ExecTask *t) {
    size_t rows = dim(t, ADD_RMSNORM_ROWS), width = dim(t, ADD_RMSNORM_WIDTH);
    float eps = (float)attr(t, ADD_RMSNORM_EPS);
    bool layer = t->op->kind == PLAN_OP_ADD_LAYERNORM;
    float *sum = f32(t, layer ? ADD_LAYERNORM_SUM : ADD_RMSNORM_SUM);
    kernel_add_f32(sum, f32(t, ADD_RMSNORM_A), f32(t, ADD_RMSNORM_R), rows * width);
    if (layer) {
        kernel_layernorm_forward_f32(f32(t, ADD_LAYERNORM_Y), f32(t, ADD_LAYERNORM_MEAN),
                                     f32(t, ADD_LAYERNORM_RSTD), sum, f32(t, ADD_RMSNORM_W),
                                     f32(t, ADD_LAYERNORM_C), rows, width, eps);
    } else {
        kernel_rmsnorm_forward_f32(f32(t, ADD_RMSNORM_Y), f32(t, ADD_RMSNORM_RSTD), sum,
                                   f32(t, ADD_RMSNORM_W), rows, width, eps);
    }
}

void exec_fused_add_norm_backward(const ExecTask *t) {
    size_t rows = dim(t, ADD_RMSNORM_BACKWARD_ROWS), width = dim(t, ADD_RMSNORM_BACKWARD_WIDTH);
    bool layer = t->op->kind == PLAN_OP_ADD_LAYERNORM_BACKWARD;
    float *dx = f32(t, layer ? ADD_LAYERNORM_BACKWARD_DX : ADD_RMSNORM_BACKWARD_DX);
    if (layer) {
        kernel_layernorm_backward_f32(
            dx, f32(t, ADD_LAYERNORM_BACKWARD_DW), f32(t, ADD_LAYERNORM_BACKWARD_DC),
            f32(t, ADD_RMSNORM_BACKWARD_DY), f32(t, ADD_RMSNORM_BACKWARD_SUM),
            f32(t, ADD_LAYERNORM_BACKWARD_MEAN), f32(t, ADD_LAYERNORM_BACKWARD_RSTD),
            f32(t, ADD_LAYERNORM_BACKWARD_W), rows, width);
    } else {
        kernel_rmsnorm_backward_f32(
            dx, f32(t, ADD_RMSNORM_BACKWARD_DW), f32(t, ADD_RMSNORM_BACKWARD_DY),
            f32(t, ADD_RMSNORM_BACKWARD_SUM), f32(t, ADD_RMSNORM_BACKWARD_RSTD),
            f32(t, ADD_RMSNORM_BACKWARD_W), rows, width);
    }
    if (t->pointers[ADD_RMSNORM_BACKWARD_DSUM]) {
        kernel_add_inplace_f32(dx, f32(t, ADD_RMSNORM_BACKWARD_DSUM), rows * width);
    }
}

/* ---- a product with GELU at its end --------------------------------------------------------- */

void exec_fused_linear_gelu(const ExecTask *t) {
    size_t m = dim(t, LINEAR_GELU_M), n = dim(t, LINEAR_GELU_N), k = dim(t, LINEAR_GELU_K);
    float *y = f32(t, LINEAR_GELU_Y), *before = f32(t, LINEAR_GELU_BEFORE);
    kernel_linear_forward_f32(before, f32(t, LINEAR_GELU_X), f32(t, LINEAR_GELU_W),
                              f32(t, LINEAR_GELU_B), m, n, k);
    (attr(t, LINEAR_GELU_ERF) > 0 ? kernel_gelu_erf_forward_f32
                                  : kernel_gelu_tanh_forward_f32)(y, before, m * n);
}

void exec_fused_linear_dx_gelu(const ExecTask *t) {
    size_t m = dim(t, LINEAR_DX_GELU_M), n = dim(t, LINEAR_DX_GELU_N), k = dim(t, LINEAR_DX_GELU_K);
    float *dx = f32(t, LINEAR_DX_GELU_DX);
    kernel_linear_backward_input_f32(dx, f32(t, LINEAR_DX_GELU_DY), f32(t, LINEAR_DX_GELU_W), m, n,
                                     k);
    kernel_gelu_tanh_backward_f32(dx, dx, f32(t, LINEAR_DX_GELU_BEFORE), m * k);
    if (t->pointers[LINEAR_DX_GELU_DB]) {
        kernel_column_sum_f32(f32(t, LINEAR_DX_GELU_DB), dx, m, k);
    }
}

void exec_fused_linear_dw_db(const ExecTask *t) {
    size_t m = dim(t, LINEAR_DW_DB_M), n = dim(t, LINEAR_DW_DB_N), k = dim(t, LINEAR_DW_DB_K);
    kernel_linear_backward_weight_f32(f32(t, LINEAR_DW_DB_DW), f32(t, LINEAR_DW_DB_DY),
                                      f32(t, LINEAR_DW_DB_X), m, n, k);
    kernel_column_sum_f32(f32(t, LINEAR_DW_DB_DB), f32(t, LINEAR_DW_DB_DY), m, n);
}

/* ---- cross entropy -------------------------------------------------------------------------- */

bool exec_fused_cross_entropy(const ExecTask *t) {
    size_t rows = dim(t, CROSS_ENTROPY_ROWS), cols = dim(t, CROSS_ENTROPY_COLS);
    return kernel_cross_entropy_forward_f32(f32(t, CROSS_ENTROPY_Y), f32(t, CROSS_ENTROPY_TOTAL),
                                            f32(t, CROSS_ENTROPY_LSE), f32(t, CROSS_ENTROPY_LOGITS),
                                            i64(t, CROSS_ENTROPY_TARGET), rows, cols);
}

bool exec_fused_cross_entropy_backward(const ExecTask *t) {
    size_t rows = dim(t, CROSS_ENTROPY_BACKWARD_ROWS), cols = dim(t, CROSS_ENTROPY_BACKWARD_COLS);
    if (f32(t, CROSS_ENTROPY_BACKWARD_DLOGITS) != f32(t, CROSS_ENTROPY_BACKWARD_LOGITS)) {
        kernel_copy_f32(f32(t, CROSS_ENTROPY_BACKWARD_DLOGITS),
                        f32(t, CROSS_ENTROPY_BACKWARD_LOGITS), rows * cols);
    }
    return kernel_cross_entropy_backward_f32(
        f32(t, CROSS_ENTROPY_BACKWARD_DLOGITS), f32(t, CROSS_ENTROPY_BACKWARD_DY),
        i64(t, CROSS_ENTROPY_BACKWARD_TARGET), f32(t, CROSS_ENTROPY_BACKWARD_TOTAL),
        f32(t, CROSS_ENTROPY_BACKWARD_LSE), rows, cols);
}

bool exec_fused_compiled_loss(const ExecTask *t) {
    return kernel_compiled_loss_forward_f32(
        f32(t, COMPILED_LOSS_Y), f32(t, COMPILED_LOSS_TOTAL), f32(t, COMPILED_LOSS_MOST),
        f32(t, COMPILED_LOSS_LOG_SUM), f32(t, COMPILED_LOSS_LOGITS), i64(t, COMPILED_LOSS_TARGET),
        dim(t, COMPILED_LOSS_ROWS), dim(t, COMPILED_LOSS_COLS), NO_TARGET);
}

bool exec_fused_compiled_loss_backward(const ExecTask *t) {
    size_t rows = dim(t, COMPILED_LOSS_BACKWARD_ROWS), cols = dim(t, COMPILED_LOSS_BACKWARD_COLS);
    float *dlogits = f32(t, COMPILED_LOSS_BACKWARD_DLOGITS);
    bool good = kernel_compiled_loss_backward_f32(
        dlogits, f32(t, COMPILED_LOSS_BACKWARD_LOGITS), f32(t, COMPILED_LOSS_BACKWARD_DY),
        i64(t, COMPILED_LOSS_BACKWARD_TARGET), f32(t, COMPILED_LOSS_BACKWARD_TOTAL),
        f32(t, COMPILED_LOSS_BACKWARD_MOST), f32(t, COMPILED_LOSS_BACKWARD_LOG_SUM), rows, cols,
        NO_TARGET);
    if (good && f32(t, COMPILED_LOSS_BACKWARD_MORE)) {
        kernel_add_inplace_f32(dlogits, f32(t, COMPILED_LOSS_BACKWARD_MORE), rows * cols);
    }
    return good;
}

/* Logits and a number a row lie in room. The mean is of all rows, so each chunk's is weighed. */
bool exec_fused_chunked_loss(const ExecTask *t) {
    size_t rows = dim(t, CHUNKED_LOSS_ROWS), cols = dim(t, CHUNKED_LOSS_COLS),
           width = dim(t, CHUNKED_LOSS_WIDTH), chunk = dim(t, CHUNKED_LOSS_CHUNK);
    const float *x = f32(t, CHUNKED_LOSS_X), *w = f32(t, CHUNKED_LOSS_W);
    float *dx = f32(t, CHUNKED_LOSS_DX), *dw = f32(t, CHUNKED_LOSS_DW),
          *logits = f32(t, CHUNKED_LOSS_ROOM), *lse = logits + chunk * cols;
    float one = 1, all_rows = (float)rows, of_chunk, n;
    double loss = 0;
    for (size_t row = 0; row < rows; row += chunk) {
        size_t m = MIN(chunk, rows - row);
        const int64_t *target = i64(t, CHUNKED_LOSS_TARGET) + row;
        kernel_linear_forward_f32(logits, x + row * width, w, NULL, m, cols, width);
        if (!kernel_cross_entropy_forward_f32(&of_chunk, &n, lse, logits, target, m, cols) ||
            !kernel_cross_entropy_backward_f32(logits, &one, target, &all_rows, lse, m, cols)) {
            return false;
        }
        loss += (double)of_chunk * (double)m / (double)rows;
        kernel_linear_backward_input_f32(dx + row * width, logits, w, m, cols, width);
        if (dw) {
            kernel_gemm_f32(KERNEL_TRANSPOSE, KERNEL_NO_TRANSPOSE, cols, width, m, 1, logits, cols,
                            x + row * width, width, row ? 1 : 0, dw, width);
        }
    }
    *f32(t, CHUNKED_LOSS_Y) = (float)loss;
    return true;
}
