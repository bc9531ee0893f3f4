/* exec/host/compute.c - ops that are kernels: operands and dims in the order that each one takes.
 *
 * One function for each op that needs more than a call.
 */
#include <math.h>
#include <string.h>

#include "exec/error.h"
#include "exec/host/exchange.h"
#include "exec/host/experts.h"
#include "exec/host/float8.h"
#include "exec/host/fused.h"
#include "exec/host/heads.h"
#include "exec/host/latent.h"
#include "exec/host/launch.h"
#include "exec/host/muon.h"
#include "exec/host/optimizer.h"
#include "exec/host/positions.h"
#include "exec/host/ring.h"
#include "exec/host/shard.h"
#include "exec/host/shared.h"
#include "exec/host/window.h"
#include "exec/task.h"
#include "kernels/host/activation.h"
#include "kernels/host/attention.h"
#include "kernels/host/copy.h"
#include "kernels/host/dropout.h"
#include "kernels/host/elementwise.h"
#include "kernels/host/embedding.h"
#include "kernels/host/loss.h"
#include "kernels/host/matmul.h"
#include "kernels/host/norm.h"
#include "kernels/host/random.h"
#include "kernels/host/reduce.h"
#include "kernels/host/rope.h"
#include "plan/op/work.h"

static bool bad_index(GError **error, const char *what) {
    g_set_error(error, EXEC_ERROR, EXEC_ERROR_FAILED, "%s holds a number outside its table", what);
    return false;
}

/* ---- attention ------------------------------------------------------------------------------ */

typedef struct {
    KernelAttentionShape shape;
    size_t q_stride, k_stride, v_stride, lse_stride;
} Attention;

static Attention attention_of(const ExecTask *t) {
    bool masked = plan_op_has_mask(t->context->role, t->op); /* which hides what comes later, too */
    int64_t causal = masked ? 0 : dims(t)[8];
    return (Attention){.shape = {.batch = dim(t, 0),
                                 .heads = dim(t, 1),
                                 .kv_heads = dim(t, 2),
                                 .seq_q = dim(t, 3),
                                 .seq_kv = dim(t, 3),
                                 .head_dim = dim(t, 4),
                                 .scale = (float)attr(t, 0),
                                 .causal = causal != 0,
                                 .window = causal > 1 ? (size_t)causal : 0,
                                 .masked = masked,
                                 .alibi = (float)attr(t, 2)},
                       .q_stride = dim(t, 5),
                       .k_stride = dim(t, 6),
                       .v_stride = dim(t, 10),
                       .lse_stride = dim(t, 7)};
}

static KernelConstView rows_view(const Attention *a, const float *data, size_t stride) {
    return (KernelConstView){data, a->shape.seq_q * stride, stride, a->shape.head_dim};
}

static void attention(const ExecTask *t) {
    Attention a = attention_of(t);
    kernel_attention_forward_f32(f32(t, 4), f32(t, 5), a.lse_stride,
                                 rows_view(&a, f32(t, 0), a.q_stride),
                                 rows_view(&a, f32(t, 1), a.k_stride),
                                 rows_view(&a, f32(t, 2), a.v_stride), f32(t, 3), &a.shape);
    /* Without dropout the state of its random numbers is never read; it is zero, not rubbish. */
    memset(t->pointers[6], 0, operand(t, 6).elements * sizeof(int64_t));
    memset(t->pointers[7], 0, operand(t, 7).elements * sizeof(int64_t));
}

static void attention_backward(const ExecTask *t) {
    Attention a = attention_of(t);
    const KernelAttentionShape *s = &a.shape;
    kernel_attention_backward_f32(
        kernel_view_bshd(f32(t, 7), s->seq_q, s->heads, s->head_dim),
        kernel_view_bshd(f32(t, 8), s->seq_kv, s->kv_heads, s->head_dim),
        kernel_view_bshd(f32(t, 9), s->seq_kv, s->kv_heads, s->head_dim), f32(t, 10), f32(t, 0),
        rows_view(&a, f32(t, 1), a.q_stride), rows_view(&a, f32(t, 2), a.k_stride),
        rows_view(&a, f32(t, 3), a.v_stride), f32(t, 4), f32(t, 5), f32(t, 6), a.lse_stride, s);
}

/* All three gradients in one array's rows. */
static void attention_backward_qkv(const ExecTask *t) {
    Attention a = attention_of(t);
    const KernelAttentionShape *s = &a.shape;
    size_t kv_row = s->kv_heads * s->head_dim, row = s->heads * s->head_dim + 2 * kv_row;
    float *dq = f32(t, 6), *dk = dq + row - 2 * kv_row, *dv = dk + kv_row;
    kernel_attention_backward_f32(
        (KernelView){dq, s->seq_q * row, row, s->head_dim},
        (KernelView){dk, s->seq_kv * row, row, s->head_dim},
        (KernelView){dv, s->seq_kv * row, row, s->head_dim}, NULL, f32(t, 0),
        rows_view(&a, f32(t, 1), a.q_stride), rows_view(&a, f32(t, 2), a.k_stride),
        rows_view(&a, f32(t, 3), a.v_stride), NULL, f32(t, 4), f32(t, 5), a.lse_stride, s);
}

static void linear_parts(const ExecTask *t) {
    size_t m = dim(t, 0), k = dim(t, 2), parts = dim(t, 3), n = dim(t, 1) / parts;
    const float *bias = f32(t, 2);
    for (size_t i = 0; i < parts; i++) {
        kernel_linear_forward_f32(f32(t, 3) + i * m * n, f32(t, 0), f32(t, 1) + i * n * k,
                                  bias ? bias + i * n : NULL, m, n, k);
    }
}

/* ---- element by element --------------------------------------------------------------------- */

/* What is dropped depends on the global batch, not on how it is dealt out to ranks. */
static void dropout(const ExecTask *t) {
    const ExecComm *comm = t->context->comm;
    uint64_t n = dim(t, 0), place = dim(t, 1);
    kernel_dropout_forward_f32(f32(t, 1), bytes(t, 2), f32(t, 0), n, (float)attr(t, 0),
                               t->context->seed, UINT64_C(1) << 32 | place,
                               (t->turn * comm->world + comm->rank) * n);
}

/* Ops on the few numbers of a norm: one by one, in double. NaN stays NaN, as in torch.clamp(), so
 * that a norm that is none does not pass for one below the limit. */
static void numbers(const ExecTask *t) {
    for (size_t i = 0; i < dim(t, 0); i++) {
        double x = (double)f32(t, 0)[i], by = attr(t, 0), least = x > by ? by : x;
        f32(t, 1)[i] = (float)(t->op->kind == PLAN_OP_ADD_NUMBER ? x + by : least);
    }
}

static void concat_columns(const ExecTask *t) {
    size_t rows = dim(t, 0), row = dim(t, 1) * sizeof(float);
    unsigned n = list_length(t);
    char *to = t->pointers[n];
    for (unsigned i = 0; i < n; i++) {
        size_t part = operand(t, i).elements / rows * sizeof(float);
        kernel_copy_2d_bytes(to, row, t->pointers[i], part, rows, part);
        to += part;
    }
}

/* ---- the switch ----------------------------------------------------------------------------- */

/* As PyTorch's _amp_update_scale_, which keeps a scale that would grow beyond what is finite. */
static void update_scale(const ExecTask *t) {
    float *scale = f32(t, 1), *tracker = f32(t, 2);
    bool grows = *tracker + 1 == (float)attr(t, 2);
    if (*f32(t, 0) != 0) {
        *scale *= (float)attr(t, 1);
        *tracker = 0;
    } else if (grows) {
        float grown = *scale * (float)attr(t, 0);
        *scale = isfinite(grown) ? grown : *scale;
        *tracker = 0;
    } else {
        *tracker += 1;
    }
}

bool exec_host_compute(const ExecTask *t, GError **error) {
    switch ((PlanOpKind)t->op->kind) {
    case PLAN_OP_ARANGE:
        kernel_arange_i64(t->pointers[0], 0, 1, dim(t, 0));
        return true;
    case PLAN_OP_EMBEDDING:
        return kernel_embedding_forward_f32(f32(t, 2), f32(t, 0), i64(t, 1), dim(t, 0), dim(t, 2),
                                            dim(t, 1)) ||
               bad_index(error, "an embedding's index");
    case PLAN_OP_ADD:
        kernel_add_rows_f32(f32(t, 2), f32(t, 0), f32(t, 1), dim(t, 0) / dim(t, 1), dim(t, 1));
        return true;
    case PLAN_OP_TOP_K:
    case PLAN_OP_PICK_COLUMNS:
    case PLAN_OP_PICK_COLUMNS_BACKWARD:
    case PLAN_OP_ADD_COLUMN:
    case PLAN_OP_DIVIDE_COLUMN:
    case PLAN_OP_COUNT:
    case PLAN_OP_SORT:
    case PLAN_OP_DIVIDE_DOWN:
    case PLAN_OP_REMAINDER:
    case PLAN_OP_ENDS:
    case PLAN_OP_GROUPED_LINEAR:
    case PLAN_OP_GROUPED_LINEAR_DX:
    case PLAN_OP_GROUPED_LINEAR_DW:
    case PLAN_OP_ROWS_OF:
    case PLAN_OP_ADD_TO_ROWS:
    case PLAN_OP_NARROW:
    case PLAN_OP_TALLY:
    case PLAN_OP_TALLY_ENDS:
    case PLAN_OP_INVERT:
    case PLAN_OP_SUM_EACH:
    case PLAN_OP_REPEAT_EACH:
    case PLAN_OP_GROUPED_PARTS:
        return exec_experts_run(t, error);
    case PLAN_OP_ROPE:
        exec_fused_rope(t);
        return true;
    case PLAN_OP_SWIGLU:
        exec_fused_swiglu(t);
        return true;
    case PLAN_OP_SWIGLU_BACKWARD:
        exec_fused_swiglu_backward(t);
        return true;
    case PLAN_OP_ADD_RMSNORM:
    case PLAN_OP_ADD_LAYERNORM:
        exec_fused_add_norm(t);
        return true;
    case PLAN_OP_ADD_RMSNORM_BACKWARD:
    case PLAN_OP_ADD_LAYERNORM_BACKWARD:
        exec_fused_add_norm_backward(t);
        return true;
    case PLAN_OP_LINEAR_GELU:
        exec_fused_linear_gelu(t);
        return true;
    case PLAN_OP_LINEAR_DX_GELU:
        exec_fused_linear_dx_gelu(t);
        return true;
    case PLAN_OP_LINEAR_DW_DB:
        exec_fused_linear_dw_db(t);
        return true;
    case PLAN_OP_CROSS_ENTROPY:
        return exec_fused_cross_entropy(t) || bad_index(error, "a target");
    case PLAN_OP_CROSS_ENTROPY_BACKWARD:
        return exec_fused_cross_entropy_backward(t) || bad_index(error, "a target");
    case PLAN_OP_COMPILED_LOSS:
        return exec_fused_compiled_loss(t) || bad_index(error, "a target");
    case PLAN_OP_COMPILED_LOSS_BACKWARD:
        return exec_fused_compiled_loss_backward(t) || bad_index(error, "a target");
    case PLAN_OP_CHUNKED_LOSS:
        return exec_fused_chunked_loss(t) || bad_index(error, "a target");
    case PLAN_OP_DROPOUT:
        dropout(t);
        return true;
    case PLAN_OP_DROPOUT_BACKWARD:
        kernel_dropout_backward_f32(f32(t, 2), f32(t, 0), bytes(t, 1), dim(t, 0),
                                    (float)attr(t, 0));
        return true;
    case PLAN_OP_RMSNORM:
        kernel_rmsnorm_forward_f32(f32(t, 2), f32(t, 3), f32(t, 0), f32(t, 1), dim(t, 0), dim(t, 1),
                                   (float)attr(t, 0));
        return true;
    case PLAN_OP_RMSNORM_BACKWARD:
        kernel_rmsnorm_backward_f32(f32(t, 4), f32(t, 5), f32(t, 0), f32(t, 1), f32(t, 2),
                                    f32(t, 3), dim(t, 0), dim(t, 1));
        return true;
    case PLAN_OP_SILU:
        kernel_silu_forward_f32(f32(t, 1), f32(t, 0), dim(t, 0));
        return true;
    case PLAN_OP_SILU_BACKWARD:
        kernel_silu_backward_f32(f32(t, 2), f32(t, 0), f32(t, 1), dim(t, 0));
        return true;
    case PLAN_OP_MUL:
        kernel_mul_f32(f32(t, 2), f32(t, 0), f32(t, 1), dim(t, 0));
        return true;
    case PLAN_OP_ROPE_TABLES:
        if (t->context->plan->axes[PLAN_AXIS_CONTEXT] > 1) {
            exec_ring_tables(t);
        } else {
            kernel_rope_tables_f32(f32(t, 0), f32(t, 1), dim(t, 0), dim(t, 1), attr(t, 0), 0);
        }
        return true;
    case PLAN_OP_TURN_TABLE:
        kernel_turn_table_f32(f32(t, 0), dim(t, 0), dim(t, 1), attr(t, 0));
        return true;
    case PLAN_OP_TURN:
        exec_heads_turn(t);
        return true;
    case PLAN_OP_CONJUGATE:
        kernel_conjugate_f32(f32(t, 1), f32(t, 0), dim(t, 0));
        return true;
    case PLAN_OP_ROPE_FREQUENCIES:
    case PLAN_OP_SHIFT:
    case PLAN_OP_AS_NUMBER:
    case PLAN_OP_OUTER:
    case PLAN_OP_COS:
    case PLAN_OP_SIN:
    case PLAN_OP_PAD_TARGETS:
    case PLAN_OP_DROP_FIRST:
    case PLAN_OP_DROP_LAST:
        exec_positions_compute(t);
        return true;
    case PLAN_OP_NEGATE_HALF:
        exec_heads_negate_half(t);
        return true;
    case PLAN_OP_JOIN_HALVES:
        exec_heads_join_halves(t);
        return true;
    case PLAN_OP_NEGATE_COLUMNS:
        exec_heads_negate_columns(t);
        return true;
    case PLAN_OP_COPY_COLUMNS:
        kernel_copy_2d_bytes(f32(t, 1), dim(t, 1) * sizeof(float), f32(t, 0) + dim(t, 3),
                             dim(t, 2) * sizeof(float), dim(t, 0), dim(t, 1) * sizeof(float));
        return true;
    case PLAN_OP_JOIN_COLUMNS:
        exec_heads_join_columns(t);
        return true;
    case PLAN_OP_PUT_COLUMNS:
        exec_heads_put_columns(t);
        return true;
    case PLAN_OP_TABLE_MUL_COLUMNS:
        exec_heads_table_mul_columns(t);
        return true;
    case PLAN_OP_TABLE_MUL:
        exec_heads_table_mul(t);
        return true;
    case PLAN_OP_TABLE_MUL_BACKWARD:
        exec_heads_table_mul_backward(t);
        return true;
    case PLAN_OP_REPEAT_HEADS:
        exec_heads_repeat_heads(t);
        return true;
    case PLAN_OP_SUM_HEADS:
        exec_heads_sum_heads(t);
        return true;
    case PLAN_OP_HEADS_COPY:
        exec_heads_copy(t);
        return true;
    case PLAN_OP_HEADS_MATMUL:
        exec_heads_matmul(t);
        return true;
    case PLAN_OP_SOFTMAX:
        kernel_softmax_forward_f32(f32(t, 1), f32(t, 0), dim(t, 0), dim(t, 1));
        return true;
    case PLAN_OP_SOFTMAX_BACKWARD:
        kernel_softmax_backward_f32(f32(t, 2), f32(t, 0), f32(t, 1), dim(t, 0), dim(t, 1));
        return true;
    case PLAN_OP_ONES_MASK:
        memset(t->pointers[0], 1, dim(t, 0));
        return true;
    case PLAN_OP_UPPER_MASK:
        exec_heads_upper_mask(t);
        return true;
    case PLAN_OP_BACK:
    case PLAN_OP_LATER_MASK:
    case PLAN_OP_UPTO_MASK:
    case PLAN_OP_BOTH_MASK:
    case PLAN_OP_MASK_TO_BIAS:
        exec_window_compute(t);
        return true;
    case PLAN_OP_MASKED_FILL:
        exec_heads_masked_fill(t);
        return true;
    case PLAN_OP_DISTANCES:
        exec_heads_distances(t);
        return true;
    case PLAN_OP_ABSOLUTE:
    case PLAN_OP_CLAMP:
        exec_heads_int64_numbers(t);
        return true;
    case PLAN_OP_POSITIVE_MASK:
        exec_heads_positive_mask(t);
        return true;
    case PLAN_OP_BIAS:
        return kernel_embedding_forward_f32(f32(t, 2), f32(t, 0), i64(t, 1), dim(t, 0), dim(t, 2),
                                            dim(t, 1)) ||
               bad_index(error, "a bias's index");
    case PLAN_OP_BIAS_ADD:
        exec_heads_bias_add(t);
        return true;
    case PLAN_OP_BIAS_BACKWARD:
        return exec_heads_bias_backward(t) || bad_index(error, "a bias's index");
    case PLAN_OP_LAYERNORM:
        kernel_layernorm_forward_f32(f32(t, 3), f32(t, 4), f32(t, 5), f32(t, 0), f32(t, 1),
                                     f32(t, 2), dim(t, 0), dim(t, 1), (float)attr(t, 0));
        return true;
    case PLAN_OP_LINEAR:
        kernel_linear_forward_f32(f32(t, 3), f32(t, 0), f32(t, 1), f32(t, 2), dim(t, 0), dim(t, 1),
                                  dim(t, 2));
        return true;
    case PLAN_OP_LINEAR_PARTS:
        linear_parts(t);
        return true;
    case PLAN_OP_ATTENTION:
        attention(t);
        return true;
    case PLAN_OP_GELU_TANH:
        kernel_gelu_tanh_forward_f32(f32(t, 1), f32(t, 0), dim(t, 0));
        return true;
    case PLAN_OP_GELU_ERF:
        kernel_gelu_erf_forward_f32(f32(t, 1), f32(t, 0), dim(t, 0));
        return true;
    case PLAN_OP_TANH:
        kernel_tanh_forward_f32(f32(t, 1), f32(t, 0), dim(t, 0));
        return true;
    case PLAN_OP_RELU:
        kernel_relu_forward_f32(f32(t, 1), f32(t, 0), dim(t, 0));
        return true;
    case PLAN_OP_MEAN:
        kernel_mean_forward_f32(f32(t, 1), f32(t, 0), dim(t, 0));
        return true;
    case PLAN_OP_LOG_SOFTMAX:
        kernel_log_softmax_forward_f32(f32(t, 1), f32(t, 0), dim(t, 0), dim(t, 1));
        return true;
    case PLAN_OP_NLL_LOSS:
        return kernel_nll_loss_forward_f32(f32(t, 2), f32(t, 3), f32(t, 0), i64(t, 1), dim(t, 0),
                                           dim(t, 1), -100) ||
               bad_index(error, "the targets");
    case PLAN_OP_EMBEDDING_BACKWARD:
        return kernel_embedding_backward_f32(f32(t, 2), f32(t, 0), i64(t, 1), dim(t, 0), dim(t, 2),
                                             dim(t, 1)) ||
               bad_index(error, "an embedding's index");
    case PLAN_OP_MUL_ROW:
        kernel_mul_rows_f32(f32(t, 2), f32(t, 0), f32(t, 1), dim(t, 0), dim(t, 1));
        return true;
    case PLAN_OP_MUL_COLUMN:
        kernel_mul_columns_f32(f32(t, 2), f32(t, 0), f32(t, 1), dim(t, 0), dim(t, 1));
        return true;
    case PLAN_OP_TOTAL_COLUMNS:
        kernel_row_sum_f32(f32(t, 1), f32(t, 0), 1, dim(t, 0), dim(t, 1));
        return true;
    case PLAN_OP_SUM_COLUMNS:
        kernel_row_sum_f32(f32(t, 1), f32(t, 0), (float)attr(t, 0), dim(t, 0), dim(t, 1));
        return true;
    case PLAN_OP_SPREAD:
        kernel_spread_f32(f32(t, 1), f32(t, 0), (float)attr(t, 0), dim(t, 0), dim(t, 1));
        return true;
    case PLAN_OP_SUM_ROWS:
        kernel_column_sum_f32(f32(t, 1), f32(t, 0), dim(t, 0), dim(t, 1));
        return true;
    case PLAN_OP_LAYERNORM_BACKWARD:
        kernel_layernorm_backward_f32(f32(t, 5), f32(t, 6), f32(t, 7), f32(t, 0), f32(t, 1),
                                      f32(t, 2), f32(t, 3), f32(t, 4), dim(t, 0), dim(t, 1));
        return true;
    case PLAN_OP_LINEAR_DX:
        kernel_linear_backward_input_f32(f32(t, 2), f32(t, 0), f32(t, 1), dim(t, 0), dim(t, 1),
                                         dim(t, 2));
        return true;
    case PLAN_OP_LINEAR_DW:
        kernel_linear_backward_weight_f32(f32(t, 2), f32(t, 0), f32(t, 1), dim(t, 0), dim(t, 1),
                                          dim(t, 2));
        return true;
    case PLAN_OP_ATTENTION_BACKWARD:
    case PLAN_OP_ATTENTION_BACKWARD_ORDERED: /* as it always is */
        attention_backward(t);
        return true;
    case PLAN_OP_ATTENTION_BACKWARD_QKV:
        attention_backward_qkv(t);
        return true;
    case PLAN_OP_CONCAT_COLUMNS:
        concat_columns(t);
        return true;
    case PLAN_OP_GELU_TANH_BACKWARD:
        kernel_gelu_tanh_backward_f32(f32(t, 2), f32(t, 0), f32(t, 1), dim(t, 0));
        return true;
    case PLAN_OP_GELU_ERF_BACKWARD:
        kernel_gelu_erf_backward_f32(f32(t, 2), f32(t, 0), f32(t, 1), dim(t, 0));
        return true;
    case PLAN_OP_TANH_BACKWARD:
        kernel_tanh_backward_f32(f32(t, 2), f32(t, 0), f32(t, 1), dim(t, 0));
        return true;
    case PLAN_OP_RELU_BACKWARD:
        kernel_threshold_backward_f32(f32(t, 2), f32(t, 0), f32(t, 1), 0, dim(t, 0));
        return true;
    case PLAN_OP_MEAN_BACKWARD:
        kernel_mean_backward_f32(f32(t, 1), f32(t, 0), dim(t, 0));
        return true;
    case PLAN_OP_LOG_SOFTMAX_BACKWARD:
        kernel_log_softmax_backward_f32(f32(t, 2), f32(t, 0), f32(t, 1), dim(t, 0), dim(t, 1));
        return true;
    case PLAN_OP_NLL_LOSS_BACKWARD:
        return kernel_nll_loss_backward_f32(f32(t, 3), f32(t, 0), i64(t, 1), f32(t, 2), dim(t, 0),
                                            dim(t, 1), -100) ||
               bad_index(error, "the targets");
    case PLAN_OP_FILL_EMPTY:
        memset(t->pointers[0], 0xff, dim(t, 0) * plan_dtype_bytes(operand_dtype(t, 0)));
        return true;
    case PLAN_OP_FILL:
        kernel_fill_f32(f32(t, 0), (float)attr(t, 0), dim(t, 0));
        return true;
    case PLAN_OP_CAST:
    case PLAN_OP_COPY:
        exec_shard_copy(t);
        return true;
    case PLAN_OP_JOIN_REST:
        kernel_copy_f32(f32(t, 2), f32(t, 0), dim(t, 0));
        return true;
    case PLAN_OP_SCALE:
        kernel_scale_f32(f32(t, 0), f32(t, 0), (float)attr(t, 0), dim(t, 0));
        return true;
    case PLAN_OP_FLATTEN:
        exec_shard_flatten(t);
        return true;
    case PLAN_OP_GATHER_COPY_IN:
        exec_shard_gather_copy_in(t);
        return true;
    case PLAN_OP_GATHER_COPY_OUT:
        exec_shard_gather_copy_out(t);
        return true;
    case PLAN_OP_PART:
        exec_shard_part(t);
        return true;
    case PLAN_OP_REDUCE_COPY_IN:
        exec_shard_reduce_copy_in(t);
        return true;
    case PLAN_OP_BUCKET_COPY_IN:
        kernel_scale_f32(f32(t, 1), f32(t, 0), (float)attr(t, 0), dim(t, 0));
        return true;
    case PLAN_OP_BUCKET_COPY_OUT:
        exec_shard_bucket_copy_out(t);
        return true;
#define LIST_OP(id, ...) case PLAN_OP_##id:
#include "plan/op/ops.def"
        exec_host_optimize(t);
        return true;
#define FLOAT8_OP(id, ...) case PLAN_OP_##id:
#include "plan/op/ops.def"
        exec_float8_compute(t);
        return true;
#define TRACED_OP(id, ...) case PLAN_OP_##id:
#include "plan/op/ops.def"
        break; /* launch.c's */
#define RING_OP(id, ...) case PLAN_OP_##id:
#include "plan/op/ops.def"
        exec_ring_compute(t);
        return true;
#define LATENT_OP(id, ...) case PLAN_OP_##id:
#include "plan/op/ops.def"
        return exec_latent_compute(t, error);
    case PLAN_OP_PLACE_ROWS:
#define EXCHANGE_OP(id, ...) case PLAN_OP_##id:
#include "plan/op/ops.def"
        return exec_exchange_compute(t, error);
#define SHARE_OP(id, ...) case PLAN_OP_##id:
#include "plan/op/ops.def"
        return exec_shared_compute(t) || bad_index(error, "a shared table's index");
    case PLAN_OP_NORM:
        kernel_norm_f32(f32(t, 1), f32(t, 0), dim(t, 0));
        return true;
    case PLAN_OP_POWER:
        kernel_power_f32(f32(t, 1), f32(t, 0), attr(t, 0), dim(t, 0));
        return true;
    case PLAN_OP_UPDATE_SCALE:
        update_scale(t);
        return true;
    case PLAN_OP_TIMES_NUMBER:
        kernel_scale_f32(f32(t, 1), f32(t, 0), (float)attr(t, 0), dim(t, 0));
        return true;
    case PLAN_OP_ADD_NUMBER:
    case PLAN_OP_AT_MOST:
        numbers(t);
        return true;
#define MUON_OP(id, ...) case PLAN_OP_##id:
#include "plan/op/ops.def"
        exec_muon_compute(t);
        return true;
    case PLAN_OP_ACCUMULATE:
        kernel_add_inplace_f32(f32(t, 1), f32(t, 0), dim(t, 0));
        return true;
    case PLAN_OP_BATCH:
#define HOST_OP(id, ...) case PLAN_OP_##id:
#include "plan/op/ops.def"
    case PLAN_OP_TO_HOST:
    case PLAN_OP_FROM_HOST:
    case PLAN_OP_INIT_NORMAL:
    case PLAN_OP_INIT_FILL:
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
    case PLAN_N_OP_KINDS: /* launch.c's */
        break;
    }
    g_assert_not_reached();
}
