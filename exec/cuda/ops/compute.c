/* exec/cuda/ops/compute.c - ops that are kernels: operands and dims in the order each one takes.
 *
 * One function for each op that needs more than a call.
 */
#include "exec/cuda/ops/operands.h"
#include "kernels/cuda/activation.h"
#include "kernels/cuda/attention.h"
#include "kernels/cuda/columns.h"
#include "kernels/cuda/elementwise.h"
#include "kernels/cuda/embedding.h"
#include "kernels/cuda/heads.h"
#include "kernels/cuda/loss.h"
#include "kernels/cuda/matmul.h"
#include "kernels/cuda/norm.h"
#include "kernels/cuda/optimizer.h"
#include "kernels/cuda/positions.h"
#include "kernels/cuda/random.h"
#include "kernels/cuda/reduce.h"
#include "kernels/cuda/ring.h"
#include "kernels/cuda/rope.h"
#include "plan/op/work.h"

/* ---- attention ------------------------------------------------------------------------------ */

static KernelCudaAttention attention_of(const ExecTask *t, unsigned q) {
    bool masked = plan_op_has_mask(t->context->role, t->op); /* which hides what comes later, too */
    int64_t causal = masked ? 0 : dims(t)[8];
    return (KernelCudaAttention){.batch = dim(t, 0),
                                 .heads = dim(t, 1),
                                 .kv_heads = dim(t, 2),
                                 .seq = dim(t, 3),
                                 .head_dim = dim(t, 4),
                                 .q_stride = dim(t, 5),
                                 .k_stride = dim(t, 6),
                                 .v_stride = dim(t, 10),
                                 .lse_stride = dim(t, 7),
                                 .scale = (float)attr(t, 0),
                                 .causal = causal != 0,
                                 .window = causal > 1 ? (size_t)causal : 0,
                                 .masked = masked,
                                 .alibi = (float)attr(t, 2),
                                 .ordered = t->op->kind == PLAN_OP_ATTENTION_BACKWARD_ORDERED,
                                 .type = type_at(t, q)};
}

static KernelCudaFault attention(const ExecTask *t, KernelCuda *k) {
    KernelCudaAttention shape = attention_of(t, 0);
    gpointer *p = t->pointers;
    return kernel_cuda_attention_forward(k, p[4], f32(t, 5), p[0], p[1], p[2], p[3], &shape);
}

static KernelCudaFault attention_backward(const ExecTask *t, KernelCuda *k) {
    KernelCudaAttention shape = attention_of(t, 1);
    gpointer *p = t->pointers;
    return kernel_cuda_attention_backward(k, p[7], p[8], p[9], p[10], p[0], p[1], p[2], p[3], p[4],
                                          p[5], f32(t, 6), &shape);
}

/* All three gradients in one array's rows. */
static KernelCudaFault attention_backward_qkv(const ExecTask *t, KernelCuda *k) {
    KernelCudaAttention shape = attention_of(t, 1);
    gpointer *p = t->pointers;
    size_t q_bytes = shape.heads * shape.head_dim * kernel_cuda_type_bytes(shape.type);
    size_t kv_bytes = shape.kv_heads * shape.head_dim * kernel_cuda_type_bytes(shape.type);
    char *dq = p[6], *dk = dq + q_bytes, *dv = dk + kv_bytes;
    shape.gradient_stride = (shape.heads + 2 * shape.kv_heads) * shape.head_dim;
    return kernel_cuda_attention_backward(k, dq, dk, dv, NULL, p[0], p[1], p[2], p[3], NULL, p[4],
                                          f32(t, 5), &shape);
}

/* ---- attention with its scores in memory ---------------------------------------------------- */

/* Where the matrix of one head begins, and how its rows follow each other (plan/op/ops.def). */
static KernelCudaMatrices matrices(const ExecTask *t, unsigned i, size_t r, size_t c,
                                   unsigned layout, size_t stride) {
    size_t heads = dim(t, 1), rows = layout & 1 ? c : r, cols = layout & 1 ? r : c;
    bool inside = layout & 2;
    return (KernelCudaMatrices){.data = t->pointers[i],
                                .batch_stride = inside ? rows * stride : heads * rows * cols,
                                .head_stride = inside ? cols : rows * cols,
                                .row_stride = inside ? stride : cols,
                                .transposed = layout & 1};
}

static KernelCudaFault heads_matmul(const ExecTask *t, KernelCuda *k) {
    size_t heads = dim(t, 1), m = dim(t, 2), n = dim(t, 3), inner = dim(t, 4);
    return kernel_cuda_heads_matmul(k, matrices(t, 2, m, n, (unsigned)dim(t, 7), heads * n),
                                    matrices(t, 0, m, inner, (unsigned)dim(t, 5), dim(t, 8)),
                                    matrices(t, 1, inner, n, (unsigned)dim(t, 6), dim(t, 9)),
                                    dim(t, 0), heads, m, n, inner, type_at(t, 2));
}

static KernelCudaHeads heads_of(const ExecTask *t) {
    return (KernelCudaHeads){dim(t, 0), dim(t, 1), dim(t, 2), dim(t, 3), type_at(t, 0)};
}

/* dims: batch seq heads repeats dim apart ... */
static KernelCudaFault repeats(const ExecTask *t, KernelCuda *k) {
    KernelCudaHeads heads = {dim(t, 0), dim(t, 1), dim(t, 2), dim(t, 4), type_at(t, 0)};
    bool apart = dims(t)[5] == PLAN_REPEATED_APART;
    gpointer *p = t->pointers;
    return t->op->kind == PLAN_OP_REPEAT_HEADS
               ? kernel_cuda_repeat_heads(k, p[1], p[0], &heads, dim(t, 6), dim(t, 3), apart)
               : kernel_cuda_sum_heads(k, p[1], p[0], &heads, dim(t, 3),
                                       dims(t)[5] != PLAN_REPEATED_INSIDE, apart);
}

/* Gradients that came head by head in fp32 go on in tokens' rows in the dtype of the layers. */
static KernelCudaFault heads_copy(const ExecTask *t, KernelCuda *k) {
    KernelCudaHeads heads = heads_of(t);
    if (type_at(t, 0) != type_at(t, 1)) { /* such alone (knows.c) */
        return kernel_cuda_cast_heads(k, t->pointers[1], type_at(t, 1), t->pointers[0],
                                      type_at(t, 0), heads.batch, heads.heads, heads.seq,
                                      heads.dim);
    }
    return kernel_cuda_heads_copy(k, t->pointers[1], t->pointers[0], &heads, dim(t, 4),
                                  dims(t)[5] != 0);
}

/* dims: tokens heads dim seq ... */
static KernelCudaRope rope_of(const ExecTask *t, size_t stride) {
    return (KernelCudaRope){.tokens = dim(t, 0),
                            .heads = dim(t, 1),
                            .dim = dim(t, 2),
                            .seq = dim(t, 3),
                            .stride = stride,
                            .type = type_at(t, 0),
                            .table_type = type_at(t, 1)};
}

static KernelCudaFault rope(const ExecTask *t, KernelCuda *k) {
    KernelCudaRope shape = rope_of(t, dim(t, 5));
    return kernel_cuda_rope(k, t->pointers[3], t->pointers[0], t->pointers[1], t->pointers[2],
                            &shape, dims(t)[4] != 0);
}

static KernelCudaFault turn(const ExecTask *t, KernelCuda *k) {
    KernelCudaRope shape = rope_of(t, dim(t, 4));
    return kernel_cuda_turn(k, t->pointers[2], t->pointers[0], t->pointers[1], &shape);
}

static KernelCudaFault table_mul(const ExecTask *t, KernelCuda *k, size_t stride, bool apart) {
    KernelCudaRope shape = rope_of(t, stride);
    return kernel_cuda_table_mul(k, t->pointers[2], t->pointers[0], t->pointers[1], &shape, apart);
}

/* Of heads that are longer than what is multiplied. */
static KernelCudaFault table_mul_columns(const ExecTask *t, KernelCuda *k) {
    KernelCudaRope shape = rope_of(t, dim(t, 1) * dim(t, 4));
    shape.head = dim(t, 4);
    return kernel_cuda_table_mul(k, t->pointers[2], t->pointers[0], t->pointers[1], &shape, false);
}

/* dims: rows a_cols b_cols width from */
static KernelCudaFault join_columns(const ExecTask *t, KernelCuda *k) {
    KernelCudaType type = type_at(t, 0);
    const char *b = t->pointers[1];
    KernelCudaPart one = {t->pointers[0], dim(t, 1), dim(t, 1), 1};
    KernelCudaPart other = {b + dim(t, 4) * kernel_cuda_type_bytes(type), dim(t, 2), dim(t, 3), 1};
    return kernel_cuda_join_columns(k, t->pointers[2], &one, &other, dim(t, 0), type);
}

/* A product for each matrix of the result. */
static KernelCudaFault linear_parts(const ExecTask *t, KernelCuda *k) {
    size_t m = dim(t, 0), inside = dim(t, 2), parts = dim(t, 3), n = dim(t, 1) / parts;
    KernelCudaType type = type_at(t, 0);
    size_t bytes = kernel_cuda_type_bytes(type);
    const char *weight = t->pointers[1], *bias = t->pointers[2];
    char *y = t->pointers[3];
    KernelCudaFault fault = NULL;
    for (size_t i = 0; i < parts && !fault; i++) {
        fault = kernel_cuda_linear_forward(k, y + i * m * n * bytes, t->pointers[0],
                                           weight + i * n * inside * bytes,
                                           bias ? bias + i * n * bytes : NULL, m, n, inside, type);
    }
    return fault;
}

/* ---- the loss, a part of the rows at a time -------------------------------------------------- */

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

/* ---- norms ---------------------------------------------------------------------------------- */

static KernelCudaNorm norm_of(const ExecTask *t, unsigned stored) {
    bool forward = plan_op_info((PlanOpKind)t->op->kind)->n_attrs == 1;
    return (KernelCudaNorm){dim(t, 0), dim(t, 1), forward ? (float)attr(t, 0) : 0,
                            type_at(t, stored)};
}

static KernelCudaFault norm(const ExecTask *t, KernelCuda *k) {
    gpointer *p = t->pointers;
    KernelCudaNorm shape = norm_of(t, 1);
    switch (t->op->kind) {
    case PLAN_OP_LAYERNORM: /* x w b > y mean rstd */
        return kernel_cuda_layernorm_forward(k, NULL, p[3], p[4], p[5], p[0], NULL, p[1], p[2],
                                             &shape);
    case PLAN_OP_ADD_LAYERNORM: /* a r w c > sum y mean rstd */
        return kernel_cuda_layernorm_forward(k, p[4], p[5], p[6], p[7], p[0], p[1], p[2], p[3],
                                             &shape);
    case PLAN_OP_RMSNORM: /* x w > y rstd */
        return kernel_cuda_rmsnorm_forward(k, NULL, p[2], p[3], p[0], NULL, p[1], &shape);
    case PLAN_OP_ADD_RMSNORM: /* a r w > sum y rstd */
        return kernel_cuda_rmsnorm_forward(k, p[3], p[4], p[5], p[0], p[1], p[2], &shape);
    case PLAN_OP_LAYERNORM_BACKWARD: /* dy x mean rstd w > dx dw db */
        return kernel_cuda_layernorm_backward(k, p[5], p[6], p[7], NULL, p[0], p[1], p[2], p[3],
                                              p[4], &shape);
    case PLAN_OP_ADD_LAYERNORM_BACKWARD: /* dsum? dy sum mean rstd w > dx dw dc */
        return kernel_cuda_layernorm_backward(k, p[6], p[7], p[8], p[0], p[1], p[2], p[3], p[4],
                                              p[5], &shape);
    case PLAN_OP_RMSNORM_BACKWARD: /* dy x rstd w > dx dw */
        return kernel_cuda_rmsnorm_backward(k, p[4], p[5], NULL, p[0], p[1], p[2], p[3], &shape);
    default: /* dsum? dy sum rstd w > dx dw */
        return kernel_cuda_rmsnorm_backward(k, p[5], p[6], p[0], p[1], p[2], p[3], p[4], &shape);
    }
}

/* ---- element by element --------------------------------------------------------------------- */

/* What is dropped depends on the global batch, not on how it is dealt out to ranks. */
static KernelCudaFault dropout(const ExecTask *t, KernelCuda *k) {
    const ExecComm *comm = t->context->comm;
    uint64_t n = dim(t, 0), place = dim(t, 1);
    KernelCudaRandom random = {t->context->seed, UINT64_C(1) << 32 | place,
                               (t->turn * comm->world + comm->rank) * n};
    return kernel_cuda_dropout_forward(k, t->pointers[1], t->pointers[2], t->pointers[0], n,
                                       (float)attr(t, 0), random, type_at(t, 0));
}

static KernelCudaFault activate(const ExecTask *t, KernelCuda *k, KernelCudaActivation kind) {
    return kernel_cuda_activation_forward(k, t->pointers[1], t->pointers[0], dim(t, 0), kind,
                                          type_at(t, 0));
}

static KernelCudaFault activate_back(const ExecTask *t, KernelCuda *k, KernelCudaActivation kind) {
    return kernel_cuda_activation_backward(k, t->pointers[2], t->pointers[0], t->pointers[1],
                                           dim(t, 0), kind, type_at(t, 0));
}

static KernelCudaFault number(const ExecTask *t, KernelCuda *k, KernelCudaNumber op) {
    return kernel_cuda_number(k, t->pointers[1], t->pointers[0], dim(t, 0), op, attr(t, 0),
                              type_at(t, 0));
}

/* Of two operands in two types the result is in the wider: the other is copied into it first. */
static bool widens(const ExecTask *t, unsigned *ret_narrow) {
    *ret_narrow = type_at(t, 0) == type_at(t, 2) ? 1 : 0;
    return type_at(t, 0) != type_at(t, 1);
}

static KernelCudaFault copy_wide(const ExecTask *t, KernelCuda *k, unsigned narrow) {
    return kernel_cuda_cast(k, t->pointers[2], type_at(t, 2), t->pointers[narrow],
                            type_at(t, narrow), dim(t, 0));
}

static KernelCudaFault add(const ExecTask *t, KernelCuda *k) {
    gpointer *p = t->pointers;
    unsigned narrow;
    if (!widens(t, &narrow)) {
        return kernel_cuda_add(k, p[2], p[0], p[1], dim(t, 0), dim(t, 1), type_at(t, 0));
    }
    KernelCudaFault fault = copy_wide(t, k, narrow);
    return fault ? fault
                 : kernel_cuda_accumulate(k, p[2], type_at(t, 2), p[1 - narrow],
                                          type_at(t, 1 - narrow), dim(t, 0));
}

static KernelCudaFault mul(const ExecTask *t, KernelCuda *k) {
    gpointer *p = t->pointers;
    unsigned narrow;
    if (!widens(t, &narrow)) {
        return kernel_cuda_mul(k, p[2], p[0], p[1], dim(t, 0), type_at(t, 0));
    }
    KernelCudaFault fault = copy_wide(t, k, narrow);
    return fault ? fault : kernel_cuda_mul(k, p[2], p[2], p[1 - narrow], dim(t, 0), type_at(t, 2));
}

/* Of the two only the matrix may be in the narrower type (knows.c). */
static KernelCudaFault mul_column(const ExecTask *t, KernelCuda *k) {
    gpointer *p = t->pointers;
    size_t rows = dim(t, 0), cols = dim(t, 1);
    if (type_at(t, 0) == type_at(t, 1)) {
        return kernel_cuda_mul_column(k, p[2], p[0], p[1], rows, cols, type_at(t, 0));
    }
    KernelCudaFault fault =
        kernel_cuda_cast(k, p[2], type_at(t, 2), p[0], type_at(t, 0), rows * cols);
    return fault ? fault : kernel_cuda_mul_column(k, p[2], p[2], p[1], rows, cols, type_at(t, 2));
}

/* ---- the switch ----------------------------------------------------------------------------- */

KernelCudaFault exec_cuda_compute(const ExecTask *t, KernelCuda *k) {
    gpointer *p = t->pointers;
    KernelCudaType type = t->op->n_operands && p[0] ? type_at(t, 0) : KERNEL_CUDA_F32;
    switch ((PlanOpKind)t->op->kind) {
    case PLAN_OP_ARANGE:
        return kernel_cuda_arange_i64(k, p[0], dim(t, 0), 0, 1);
    case PLAN_OP_EMBEDDING:
    case PLAN_OP_BIAS:
        return kernel_cuda_embedding_forward(k, p[2], p[0], p[1], dim(t, 0), dim(t, 2), dim(t, 1),
                                             type);
    case PLAN_OP_EMBEDDING_BACKWARD:
        return kernel_cuda_embedding_backward(k, p[2], p[0], p[1], dim(t, 0), dim(t, 2), dim(t, 1),
                                              type);
    case PLAN_OP_BIAS_BACKWARD:
        return kernel_cuda_bias_backward(k, p[2], p[0], p[1], dim(t, 0), dim(t, 2), dim(t, 1),
                                         type);
    case PLAN_OP_ADD:
        return add(t, k);
    case PLAN_OP_MUL:
        return mul(t, k);
    case PLAN_OP_LAYERNORM:
    case PLAN_OP_ADD_LAYERNORM:
    case PLAN_OP_RMSNORM:
    case PLAN_OP_ADD_RMSNORM:
    case PLAN_OP_LAYERNORM_BACKWARD:
    case PLAN_OP_ADD_LAYERNORM_BACKWARD:
    case PLAN_OP_RMSNORM_BACKWARD:
    case PLAN_OP_ADD_RMSNORM_BACKWARD:
        return norm(t, k);
    case PLAN_OP_LINEAR:
        return kernel_cuda_linear_forward(k, p[3], p[0], p[1], p[2], dim(t, 0), dim(t, 1),
                                          dim(t, 2), type);
    case PLAN_OP_LINEAR_PARTS:
        return linear_parts(t, k);
    case PLAN_OP_LINEAR_GELU:
        return kernel_cuda_linear_gelu_forward(
            k, p[3], p[4], p[0], p[1], p[2], dim(t, 0), dim(t, 1), dim(t, 2),
            attr(t, 0) > 0 ? KERNEL_CUDA_GELU_ERF : KERNEL_CUDA_GELU_TANH, type);
    case PLAN_OP_LINEAR_DX:
        return kernel_cuda_linear_backward_input(k, p[2], p[0], p[1], dim(t, 0), dim(t, 1),
                                                 dim(t, 2), type);
    case PLAN_OP_LINEAR_DW:
        return kernel_cuda_linear_backward_weight(k, p[2], p[0], p[1], dim(t, 0), dim(t, 1),
                                                  dim(t, 2), type);
    case PLAN_OP_LINEAR_DX_GELU:
        return kernel_cuda_linear_gelu_backward_input(k, p[3], p[4], p[0], p[1], p[2], dim(t, 0),
                                                      dim(t, 1), dim(t, 2), type);
    case PLAN_OP_LINEAR_DW_DB:
        return kernel_cuda_linear_backward_weight_bias(k, p[2], p[3], p[0], p[1], dim(t, 0),
                                                       dim(t, 1), dim(t, 2), type);
    case PLAN_OP_ATTENTION:
        return attention(t, k);
    case PLAN_OP_ATTENTION_BACKWARD:
    case PLAN_OP_ATTENTION_BACKWARD_ORDERED:
        return attention_backward(t, k);
    case PLAN_OP_ATTENTION_BACKWARD_QKV:
        return attention_backward_qkv(t, k);
    case PLAN_OP_GELU_TANH:
        return activate(t, k, KERNEL_CUDA_GELU_TANH);
    case PLAN_OP_GELU_ERF:
        return activate(t, k, KERNEL_CUDA_GELU_ERF);
    case PLAN_OP_TANH:
        return activate(t, k, KERNEL_CUDA_TANH);
    case PLAN_OP_RELU:
        return activate(t, k, KERNEL_CUDA_RELU);
    case PLAN_OP_SILU:
        return activate(t, k, KERNEL_CUDA_SILU);
    case PLAN_OP_GELU_TANH_BACKWARD:
        return activate_back(t, k, KERNEL_CUDA_GELU_TANH);
    case PLAN_OP_GELU_ERF_BACKWARD:
        return activate_back(t, k, KERNEL_CUDA_GELU_ERF);
    case PLAN_OP_TANH_BACKWARD:
        return activate_back(t, k, KERNEL_CUDA_TANH);
    case PLAN_OP_RELU_BACKWARD:
        return activate_back(t, k, KERNEL_CUDA_RELU);
    case PLAN_OP_SILU_BACKWARD:
        return activate_back(t, k, KERNEL_CUDA_SILU);
    case PLAN_OP_SWIGLU:
        return kernel_cuda_swiglu_forward(k, p[2], p[0], p[1], dim(t, 0), type);
    case PLAN_OP_SWIGLU_BACKWARD:
        return kernel_cuda_swiglu_backward(k, p[3], p[4], p[0], p[1], p[2], dim(t, 0), type);
    case PLAN_OP_DROPOUT:
        return dropout(t, k);
    case PLAN_OP_DROPOUT_BACKWARD:
        return kernel_cuda_dropout_backward(k, p[2], p[0], p[1], dim(t, 0), (float)attr(t, 0),
                                            type);
    case PLAN_OP_MEAN:
        return kernel_cuda_mean_forward(k, p[1], p[0], dim(t, 0), type);
    case PLAN_OP_MEAN_BACKWARD:
        return kernel_cuda_mean_backward(k, p[1], p[0], dim(t, 0), type);
    case PLAN_OP_MUL_ROW:
        return kernel_cuda_mul_row(k, p[2], p[0], p[1], dim(t, 0), dim(t, 1), type);
    case PLAN_OP_MUL_COLUMN:
        return mul_column(t, k);
    case PLAN_OP_SUM_COLUMNS:
        return kernel_cuda_row_sum(k, p[1], p[0], dim(t, 0), dim(t, 1), attr(t, 0), type);
    case PLAN_OP_SPREAD:
        return kernel_cuda_spread(k, p[1], p[0], dim(t, 0), dim(t, 1), attr(t, 0), type);
    case PLAN_OP_SUM_ROWS:
        return kernel_cuda_column_sum(k, p[1], p[0], dim(t, 0), dim(t, 1), type);
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
    case PLAN_OP_ROPE_TABLES:
        return exec_cuda_tables(t, k);
    case PLAN_OP_TURN_TABLE:
        return kernel_cuda_turn_table(k, p[0], dim(t, 0), dim(t, 1), attr(t, 0));
    case PLAN_OP_TURN:
        return turn(t, k);
    case PLAN_OP_CONJUGATE:
        return kernel_cuda_conjugate(k, p[1], p[0], dim(t, 0));
    case PLAN_OP_ROPE_FREQUENCIES:
        return kernel_cuda_rope_frequencies(k, p[0], dim(t, 0), attr(t, 0));
    case PLAN_OP_SHIFT:
        return kernel_cuda_shift_i64(k, p[1], p[0], dim(t, 0), dims(t)[1]);
    case PLAN_OP_AS_NUMBER:
        return kernel_cuda_as_number(k, p[1], p[0], dim(t, 0), type_at(t, 1));
    case PLAN_OP_OUTER:
        return kernel_cuda_outer(k, p[2], p[0], p[1], dim(t, 0), dim(t, 1));
    case PLAN_OP_COS:
        return kernel_cuda_cos(k, p[1], p[0], dim(t, 0));
    case PLAN_OP_SIN:
        return kernel_cuda_sin(k, p[1], p[0], dim(t, 0));
    case PLAN_OP_PAD_TARGETS:
        return kernel_cuda_pad_targets(k, p[1], p[0], dim(t, 0), dim(t, 1));
    case PLAN_OP_DROP_FIRST:
    case PLAN_OP_DROP_LAST:
        return kernel_cuda_drop_one(k, p[1], p[0], dim(t, 0), dim(t, 1),
                                    t->op->kind == PLAN_OP_DROP_FIRST);
    case PLAN_OP_ROPE:
        return rope(t, k);
    case PLAN_OP_NEGATE_HALF:
        return kernel_cuda_negate_half(k, p[1], p[0], dim(t, 0), dim(t, 1), dim(t, 2), dim(t, 3),
                                       dim(t, 4), type);
    case PLAN_OP_JOIN_HALVES:
        return kernel_cuda_join_halves(k, p[2], p[0], p[1], dim(t, 0), dim(t, 1), dim(t, 2),
                                       dim(t, 3), type);
    case PLAN_OP_NEGATE_COLUMNS:
        return kernel_cuda_negate_columns(k, p[1], p[0], dim(t, 0), dim(t, 1), dim(t, 2), dim(t, 3),
                                          type);
    case PLAN_OP_COPY_COLUMNS:
        return kernel_cuda_copy_columns(k, p[1], type_at(t, 1), p[0], type, dim(t, 0), dim(t, 1),
                                        dim(t, 2), dim(t, 3));
    case PLAN_OP_JOIN_COLUMNS:
        return join_columns(t, k);
    case PLAN_OP_PUT_COLUMNS:
        return kernel_cuda_put_columns(k, p[1], p[0], dim(t, 0), dim(t, 1), dim(t, 2), dim(t, 3),
                                       dim(t, 4), dim(t, 5), type);
    case PLAN_OP_TABLE_MUL_COLUMNS:
        return table_mul_columns(t, k);
    case PLAN_OP_TABLE_MUL:
        return table_mul(t, k, dim(t, 5), false);
    case PLAN_OP_TABLE_MUL_BACKWARD:
        return table_mul(t, k, dim(t, 1) * dim(t, 2), dims(t)[4] != 0);
    case PLAN_OP_REPEAT_HEADS:
    case PLAN_OP_SUM_HEADS:
        return repeats(t, k);
    case PLAN_OP_HEADS_COPY:
        return heads_copy(t, k);
    case PLAN_OP_HEADS_MATMUL:
        return heads_matmul(t, k);
    case PLAN_OP_ONES_MASK:
        return kernel_cuda_ones_mask(k, p[0], dim(t, 0));
    case PLAN_OP_UPPER_MASK:
        return kernel_cuda_upper_mask(k, p[1], p[0], dim(t, 0), dim(t, 1));
    case PLAN_OP_MASKED_FILL:
        return kernel_cuda_masked_fill(k, p[2], p[0], p[1], dim(t, 0), dim(t, 1), dim(t, 2),
                                       attr(t, 0), type);
    case PLAN_OP_BACK:
        return kernel_cuda_shift_i64(k, p[1], p[0], dim(t, 0), -dims(t)[1]);
    case PLAN_OP_LATER_MASK:
    case PLAN_OP_UPTO_MASK:
        return kernel_cuda_compare_mask(k, p[2], p[0], p[1], dim(t, 0), dim(t, 1),
                                        t->op->kind == PLAN_OP_LATER_MASK);
    case PLAN_OP_BOTH_MASK:
        return kernel_cuda_both_mask(k, p[2], p[0], p[1], dim(t, 0), dim(t, 1));
    case PLAN_OP_MASK_TO_BIAS: /* mask shown hidden > y */
        return kernel_cuda_mask_to_bias(k, p[3], p[0], p[1], p[2], dim(t, 0), dim(t, 1),
                                        type_at(t, 3));
    case PLAN_OP_DISTANCES:
        return kernel_cuda_distances(k, p[1], p[0], dim(t, 0));
    case PLAN_OP_ABSOLUTE:
        return kernel_cuda_absolute_i64(k, p[1], p[0], dim(t, 0));
    case PLAN_OP_CLAMP:
        return kernel_cuda_at_most_i64(k, p[1], p[0], dim(t, 0), dims(t)[1]);
    case PLAN_OP_POSITIVE_MASK:
        return kernel_cuda_positive_mask(k, p[1], p[0], dim(t, 0));
    case PLAN_OP_BIAS_ADD:
        return kernel_cuda_bias_add(k, p[2], p[0], p[1], dim(t, 0), dim(t, 1),
                                    dim(t, 2) * dim(t, 3), type);
    case PLAN_OP_FILL:
        return kernel_cuda_fill(k, p[0], dim(t, 0), attr(t, 0), type);
    case PLAN_OP_SCALE:
        return kernel_cuda_scale(k, p[0], type, p[0], type, dim(t, 0), attr(t, 0));
    case PLAN_OP_BUCKET_COPY_IN:
        return kernel_cuda_scale(k, p[1], type_at(t, 1), p[0], type, dim(t, 0), attr(t, 0));
    case PLAN_OP_ACCUMULATE:
        return kernel_cuda_accumulate(k, p[1], type_at(t, 1), p[0], type, dim(t, 0));
    case PLAN_OP_CAST:
        return kernel_cuda_cast(k, p[1], type_at(t, 1), p[0], type, dim(t, 0));
    case PLAN_OP_COPY:
    case PLAN_OP_JOIN_REST:
    case PLAN_OP_FLATTEN:
    case PLAN_OP_GATHER_COPY_IN:
    case PLAN_OP_GATHER_COPY_OUT:
    case PLAN_OP_PART:
    case PLAN_OP_REDUCE_COPY_IN:
    case PLAN_OP_BUCKET_COPY_OUT:
    case PLAN_OP_CONCAT_COLUMNS:
        return exec_cuda_move(t, k);
#define LIST_OP(id, ...) case PLAN_OP_##id:
#include "plan/op/ops.def"
        return exec_cuda_optimize(t, k);
    case PLAN_OP_NORM:
        return kernel_cuda_norm(k, p[1], type_at(t, 1), p[0], dim(t, 0), type);
    case PLAN_OP_POWER:
        return number(t, k, KERNEL_CUDA_POWER);
    case PLAN_OP_ADD_NUMBER:
        return number(t, k, KERNEL_CUDA_ADD_NUMBER);
    case PLAN_OP_TIMES_NUMBER:
        return number(t, k, KERNEL_CUDA_TIMES_NUMBER);
    case PLAN_OP_AT_MOST:
        return number(t, k, KERNEL_CUDA_AT_MOST);
#define SHARE_OP(id, ...) case PLAN_OP_##id:
#include "plan/op/ops.def"
        return exec_cuda_share(t, k);
    case PLAN_OP_TOP_K:
    case PLAN_OP_PICK_COLUMNS:
    case PLAN_OP_PICK_COLUMNS_BACKWARD:
    case PLAN_OP_ADD_COLUMN:
    case PLAN_OP_DIVIDE_COLUMN:
    case PLAN_OP_COUNT:
    case PLAN_OP_SORT:
    case PLAN_OP_DIVIDE_DOWN:
    case PLAN_OP_ENDS:
    case PLAN_OP_GROUPED_LINEAR:
    case PLAN_OP_GROUPED_LINEAR_DX:
    case PLAN_OP_GROUPED_LINEAR_DW:
    case PLAN_OP_ROWS_OF:
    case PLAN_OP_ADD_TO_ROWS:
    case PLAN_OP_TOTAL_COLUMNS:
    case PLAN_OP_REMAINDER:
    case PLAN_OP_NARROW:
    case PLAN_OP_TALLY:
    case PLAN_OP_TALLY_ENDS:
    case PLAN_OP_INVERT:
    case PLAN_OP_SUM_EACH:
    case PLAN_OP_REPEAT_EACH:
    case PLAN_OP_GROUPED_PARTS:
        return exec_cuda_experts(t, k);
#define LATENT_OP(id, ...) case PLAN_OP_##id:
#include "plan/op/ops.def"
        return exec_cuda_latent(t, k);
#define RING_OP(id, ...) case PLAN_OP_##id:
#include "plan/op/ops.def"
        return exec_cuda_ring(t, k);
    case PLAN_OP_UPDATE_SCALE:
        return kernel_cuda_update_scale(k, p[0], p[1], p[2], attr(t, 0), attr(t, 1), attr(t, 2));
    case PLAN_OP_PLACE_ROWS:
#define EXCHANGE_OP(id, ...) case PLAN_OP_##id:
#include "plan/op/ops.def"
        return exec_cuda_exchange(t, k);
#define FLOAT8_OP(id, ...) case PLAN_OP_##id:
#include "plan/op/ops.def"
        return exec_cuda_float8(t, k);
#define MUON_OP(id, ...) case PLAN_OP_##id:
#include "plan/op/ops.def"
        return exec_cuda_muon(t, k);
#define TRACED_OP(id, ...) case PLAN_OP_##id: /* launch.c's */
#include "plan/op/ops.def"
    case PLAN_OP_BATCH:
    case PLAN_OP_INIT_NORMAL:
    case PLAN_OP_INIT_FILL:
    case PLAN_OP_TO_HOST:
    case PLAN_OP_FROM_HOST:
    case PLAN_OP_FILL_EMPTY:
#define HOST_OP(id, ...) case PLAN_OP_##id:
#include "plan/op/ops.def"
    case PLAN_OP_ALL_GATHER:
    case PLAN_OP_REDUCE_SCATTER:
    case PLAN_OP_ALL_REDUCE:
    case PLAN_OP_BROADCAST:
    case PLAN_OP_PASS_ON:
    case PLAN_OP_ALL_TO_ALL:
    case PLAN_OP_SEND:
    case PLAN_OP_RECEIVE:
    case PLAN_OP_EXCHANGE:
    case PLAN_OP_BARRIER:
    case PLAN_OP_OFFER:
    case PLAN_OP_PULL:
    case PLAN_OP_SWAP:
    case PLAN_N_OP_KINDS:
        break;
    }
    g_assert_not_reached();
}
