#include "exec/host/fused.h"

#include "exec/task.h"
#include "kernels/host/activation.h"
#include "kernels/host/elementwise.h"
#include "kernels/host/loss.h"
#include "kernels/host/matmul.h"
#include "kernels/host/norm.h"
#include "kernels/host/reduce.h"
#include "kernels/host/rope.h"

enum {
    CHUNK = 2048,    /* elements of a scratch array on the stack */
    NO_TARGET = -100 /* PyTorch's ignore_index */
};

/* ---- rotary embedding, SwiGLU --------------------------------------------------------------- */

void exec_fused_rope(const ExecTask *t) {
    size_t heads = dim(t, 1), head_dim = dim(t, 2), seq = dim(t, 3), batch = dim(t, 0) / seq;
    size_t row = heads * head_dim;
    KernelView y = {f32(t, 3), seq * row, row, head_dim};
    KernelConstView x = {f32(t, 0), seq * dim(t, 5), dim(t, 5), head_dim};
    (dim(t, 4) ? kernel_rope_backward_f32 : kernel_rope_forward_f32)(y, x, f32(t, 1), f32(t, 2),
                                                                     batch, heads, seq, head_dim);
}

void exec_fused_swiglu(const ExecTask *t) {
    size_t n = dim(t, 0);
    kernel_silu_forward_f32(f32(t, 2), f32(t, 0), n);
    kernel_mul_f32(f32(t, 2), f32(t, 2), f32(t, 1), n);
}

void exec_fused_swiglu_backward(const ExecTask *t) {
    const float *dy = f32(t, 0), *gate = f32(t, 1), *up = f32(t, 2);
    float *dgate = f32(t, 3), *dup = f32(t, 4), open[CHUNK], through[CHUNK];
    for (size_t at = 0, n; at < dim(t, 0); at += n) {
        n = MIN(CHUNK, dim(t, 0) - at);
        kernel_silu_forward_f32(open, gate + at, n);
        kernel_mul_f32(through, dy + at, up + at, n); /* dgate may be written over up */
        kernel_mul_f32(dup + at, dy + at, open, n);
        kernel_silu_backward_f32(dgate + at, through, gate + at, n);
    }
}

/* ---- norms of sums -------------------------------------------------------------------------- */

void exec_fused_add_norm(const ExecTask *t) {
    size_t rows = dim(t, 0), width = dim(t, 1);
    float eps = (float)attr(t, 0);
    bool layer = t->op->kind == PLAN_OP_ADD_LAYERNORM;
    float *sum = f32(t, layer ? 4 : 3);
    kernel_add_f32(sum, f32(t, 0), f32(t, 1), rows * width);
    if (layer) {
        kernel_layernorm_forward_f32(f32(t, 5), f32(t, 6), f32(t, 7), sum, f32(t, 2), f32(t, 3),
                                     rows, width, eps);
    } else {
        kernel_rmsnorm_forward_f32(f32(t, 4), f32(t, 5), sum, f32(t, 2), rows, width, eps);
    }
}

void exec_fused_add_norm_backward(const ExecTask *t) {
    size_t rows = dim(t, 0), width = dim(t, 1);
    bool layer = t->op->kind == PLAN_OP_ADD_LAYERNORM_BACKWARD;
    float *dx = f32(t, layer ? 6 : 5);
    if (layer) {
        kernel_layernorm_backward_f32(dx, f32(t, 7), f32(t, 8), f32(t, 1), f32(t, 2), f32(t, 3),
                                      f32(t, 4), f32(t, 5), rows, width);
    } else {
        kernel_rmsnorm_backward_f32(dx, f32(t, 6), f32(t, 1), f32(t, 2), f32(t, 3), f32(t, 4), rows,
                                    width);
    }
    if (t->pointers[0]) {
        kernel_add_inplace_f32(dx, f32(t, 0), rows * width);
    }
}

/* ---- a product with GELU at its end --------------------------------------------------------- */

void exec_fused_linear_gelu(const ExecTask *t) {
    size_t m = dim(t, 0), n = dim(t, 1), k = dim(t, 2);
    float *y = f32(t, 3), *before = f32(t, 4);
    kernel_linear_forward_f32(before, f32(t, 0), f32(t, 1), f32(t, 2), m, n, k);
    (attr(t, 0) > 0 ? kernel_gelu_erf_forward_f32 : kernel_gelu_tanh_forward_f32)(y, before, m * n);
}

void exec_fused_linear_dx_gelu(const ExecTask *t) {
    size_t m = dim(t, 0), n = dim(t, 1), k = dim(t, 2);
    float *dx = f32(t, 3);
    kernel_linear_backward_input_f32(dx, f32(t, 0), f32(t, 1), m, n, k);
    kernel_gelu_tanh_backward_f32(dx, dx, f32(t, 2), m * k);
    if (t->pointers[4]) {
        kernel_column_sum_f32(f32(t, 4), dx, m, k);
    }
}

void exec_fused_linear_dw_db(const ExecTask *t) {
    size_t m = dim(t, 0), n = dim(t, 1), k = dim(t, 2);
    kernel_linear_backward_weight_f32(f32(t, 2), f32(t, 0), f32(t, 1), m, n, k);
    kernel_column_sum_f32(f32(t, 3), f32(t, 0), m, n);
}

/* ---- cross entropy -------------------------------------------------------------------------- */

bool exec_fused_cross_entropy(const ExecTask *t) {
    size_t rows = dim(t, 0), cols = dim(t, 1);
    return kernel_cross_entropy_forward_f32(f32(t, 2), f32(t, 3), f32(t, 4), f32(t, 0), i64(t, 1),
                                            rows, cols);
}

bool exec_fused_cross_entropy_backward(const ExecTask *t) {
    size_t rows = dim(t, 0), cols = dim(t, 1);
    if (f32(t, 5) != f32(t, 4)) {
        kernel_copy_f32(f32(t, 5), f32(t, 4), rows * cols);
    }
    return kernel_cross_entropy_backward_f32(f32(t, 5), f32(t, 0), i64(t, 1), f32(t, 2), f32(t, 3),
                                             rows, cols);
}

bool exec_fused_compiled_loss(const ExecTask *t) {
    return kernel_compiled_loss_forward_f32(f32(t, 4), f32(t, 5), f32(t, 2), f32(t, 3), f32(t, 0),
                                            i64(t, 1), dim(t, 0), dim(t, 1), NO_TARGET);
}

bool exec_fused_compiled_loss_backward(const ExecTask *t) {
    size_t rows = dim(t, 0), cols = dim(t, 1);
    float *dlogits = f32(t, 7);
    bool good =
        kernel_compiled_loss_backward_f32(dlogits, f32(t, 2), f32(t, 0), i64(t, 1), f32(t, 5),
                                          f32(t, 3), f32(t, 4), rows, cols, NO_TARGET);
    if (good && f32(t, 6)) {
        kernel_add_inplace_f32(dlogits, f32(t, 6), rows * cols);
    }
    return good;
}

/* Logits and a number a row lie in room. The mean is of all rows, so each chunk's is weighed. */
bool exec_fused_chunked_loss(const ExecTask *t) {
    size_t rows = dim(t, 0), cols = dim(t, 1), width = dim(t, 2), chunk = dim(t, 3);
    const float *x = f32(t, 0), *w = f32(t, 1);
    float *dx = f32(t, 4), *dw = f32(t, 5), *logits = f32(t, 6), *lse = logits + chunk * cols;
    float one = 1, all_rows = (float)rows, of_chunk, n;
    double loss = 0;
    for (size_t row = 0; row < rows; row += chunk) {
        size_t m = MIN(chunk, rows - row);
        const int64_t *target = i64(t, 2) + row;
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
    *f32(t, 3) = (float)loss;
    return true;
}
