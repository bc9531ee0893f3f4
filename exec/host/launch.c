/* exec/host/launch.c - see launch.h. One function per op that needs more than a call.
 *
 * What differs between the ranks of a role is settled here: which rows of a parameter are this
 * rank's, which slice of a gather, which samples of the batch.
 */
#include "exec/host/launch.h"

#include <math.h>
#include <string.h>

#include "exec/error.h"
#include "exec/host/data.h"
#include "exec/host/optimizer.h"
#include "exec/host/task.h"
#include "kernels/host/activation.h"
#include "kernels/host/attention.h"
#include "kernels/host/copy.h"
#include "kernels/host/elementwise.h"
#include "kernels/host/embedding.h"
#include "kernels/host/loss.h"
#include "kernels/host/matmul.h"
#include "kernels/host/norm.h"
#include "kernels/host/random.h"
#include "kernels/host/reduce.h"

static bool bad_index(GError **error, const char *what) {
    g_set_error(error, EXEC_ERROR, EXEC_ERROR_FAILED, "%s holds a number outside its table", what);
    return false;
}

/* ---- data and construction ------------------------------------------------------------------ */

static void batch(const ExecTask *t) {
    uint64_t samples = dim(t, 0), n = dim(t, 1);
    int64_t bound = dims(t)[2];
    const ExecComm *comm = t->context->comm;
    uint64_t turn = (uint64_t)MAX(t->step, 0) * dim(t, 4) + dim(t, 3); /* of all passes so far */
    uint64_t first = (turn * comm->world + comm->rank) * samples;
    for (uint64_t i = 0; i < samples; i++) {
        if (bound) {
            exec_data_tokens((int64_t *)t->pointers[0] + i * n, (int64_t *)t->pointers[1] + i * n,
                             n, bound, t->context->seed, first + i);
        } else {
            exec_data_vector(f32(t, 0) + i * n, n, t->context->seed, first + i);
        }
    }
}

/* Element i of a parameter is the same on whichever rank it lies. What of the parameter lies in
 * this buffer: elements [first, last) of the buffer, which start at `from` of the parameter. */
static void init(const ExecTask *t) {
    uint32_t parameter = (uint32_t)dims(t)[0];
    uint64_t n = dim(t, 1), total = t->context->plan->parameters[parameter].elements;
    uint64_t start = axis_rank(t) * (uint64_t)dims(t)[2], offset = dim(t, 3);
    uint64_t first = offset > start ? MIN(n, offset - start) : 0;
    uint64_t from = start > offset ? start - offset : 0;
    uint64_t count = from < total ? MIN(n - first, total - from) : 0;
    if (t->op->kind == PLAN_OP_INIT_FILL) {
        kernel_fill_f32(f32(t, 0) + first, (float)attr(t, 0), count);
    } else {
        kernel_philox_normal_f32(f32(t, 0) + first, count, t->context->seed, parameter, from, 0,
                                 (float)attr(t, 0));
    }
}

/* ---- attention ------------------------------------------------------------------------------ */

typedef struct {
    KernelAttentionShape shape;
    size_t q_stride, kv_stride, lse_stride;
} Attention;

static Attention attention_of(const ExecTask *t) {
    return (Attention){.shape = {.batch = dim(t, 0),
                                 .heads = dim(t, 1),
                                 .kv_heads = dim(t, 2),
                                 .seq_q = dim(t, 3),
                                 .seq_kv = dim(t, 3),
                                 .head_dim = dim(t, 4),
                                 .scale = (float)attr(t, 0),
                                 .causal = dims(t)[8] != 0},
                       .q_stride = dim(t, 5),
                       .kv_stride = dim(t, 6),
                       .lse_stride = dim(t, 7)};
}

static KernelConstView rows_view(const Attention *a, const float *data, size_t stride) {
    return (KernelConstView){data, a->shape.seq_q * stride, stride, a->shape.head_dim};
}

static void attention(const ExecTask *t) {
    Attention a = attention_of(t);
    kernel_attention_forward_f32(
        f32(t, 3), f32(t, 4), a.lse_stride, rows_view(&a, f32(t, 0), a.q_stride),
        rows_view(&a, f32(t, 1), a.kv_stride), rows_view(&a, f32(t, 2), a.kv_stride), &a.shape);
    /* Without dropout the state of its random numbers is never read; it is zero, not rubbish. */
    memset(t->pointers[5], 0, operand(t, 5)->elements * sizeof(int64_t));
    memset(t->pointers[6], 0, operand(t, 6)->elements * sizeof(int64_t));
}

static void attention_backward(const ExecTask *t) {
    Attention a = attention_of(t);
    const KernelAttentionShape *s = &a.shape;
    kernel_attention_backward_f32(
        kernel_view_bshd(f32(t, 6), s->seq_q, s->heads, s->head_dim),
        kernel_view_bshd(f32(t, 7), s->seq_kv, s->kv_heads, s->head_dim),
        kernel_view_bshd(f32(t, 8), s->seq_kv, s->kv_heads, s->head_dim), f32(t, 0),
        rows_view(&a, f32(t, 1), a.q_stride), rows_view(&a, f32(t, 2), a.kv_stride),
        rows_view(&a, f32(t, 3), a.kv_stride), f32(t, 4), f32(t, 5), a.lse_stride, s);
}

/* ---- element by element --------------------------------------------------------------------- */

/* b repeats when it is shorter: broadcasting over leading dimensions. */
static void add(const ExecTask *t) {
    size_t n = dim(t, 0), nb = dim(t, 1);
    for (size_t at = 0; at < n; at += nb) {
        kernel_add_f32(f32(t, 2) + at, f32(t, 0) + at, f32(t, 1), nb);
    }
}

/* Ops on the few numbers of a norm: one by one, in double. */
static void numbers(const ExecTask *t) {
    for (size_t i = 0; i < dim(t, 0); i++) {
        double x = (double)f32(t, 0)[i], by = attr(t, 0);
        f32(t, 1)[i] = (float)(t->op->kind == PLAN_OP_POWER          ? pow(x, by)
                               : t->op->kind == PLAN_OP_ADD_NUMBER   ? x + by
                               : t->op->kind == PLAN_OP_TIMES_NUMBER ? x * by
                                                                     : fmin(x, by));
    }
}

static void concat_columns(const ExecTask *t) {
    size_t rows = dim(t, 0), bytes = dim(t, 1) * sizeof(float);
    unsigned n = list_length(t);
    for (unsigned i = 0; i < n; i++) {
        kernel_copy_2d_bytes((char *)t->pointers[n] + i * bytes, n * bytes, t->pointers[i], bytes,
                             rows, bytes);
    }
}

/* ---- sharding: layouts as in plan/flavour-fsdp2.c ------------------------------------------- */

static void flatten(const ExecTask *t, float *to) {
    for (unsigned i = 0; i < list_length(t); i++) {
        size_t n = operand(t, i)->elements;
        kernel_copy_f32(to, f32(t, i), n);
        to += n;
    }
}

static void gather_copy_in(const ExecTask *t) {
    flatten(t, f32(t, list_length(t)) + axis_rank(t) * dim(t, 0));
}

static void gather_copy_out(const ExecTask *t) {
    size_t slice = dim(t, 0), ranks = dim(t, 1), start = 0;
    for (unsigned i = 1; i <= list_length(t); i++) {
        size_t chunk = operand(t, i)->elements / ranks;
        kernel_copy_2d_bytes(t->pointers[i], chunk * sizeof(float), f32(t, 0) + start,
                             slice * sizeof(float), ranks, chunk * sizeof(float));
        start += chunk;
    }
}

static void reduce_copy_in(const ExecTask *t) {
    size_t slice = dim(t, 0), ranks = dim(t, 1), start = 0;
    float *packed = f32(t, list_length(t));
    for (unsigned i = 0; i < list_length(t); i++) {
        size_t rows = operand(t, i)->rows, elements = operand(t, i)->elements;
        size_t chunk = (rows + ranks - 1) / ranks * (elements / rows);
        for (size_t rank = 0; rank < ranks; rank++) {
            size_t before = MIN(elements, rank * chunk), real = MIN(chunk, elements - before);
            float *to = packed + rank * slice + start;
            kernel_copy_f32(to, f32(t, i) + before, real);
            kernel_zero_f32(to + real, chunk - real);
        }
        start += chunk;
    }
}

static void bucket_copy_out(const ExecTask *t) {
    const float *bucket = f32(t, 0);
    for (unsigned i = 1; i <= list_length(t); i++) {
        kernel_copy_f32(f32(t, i), bucket, operand(t, i)->elements);
        bucket += operand(t, i)->elements;
    }
}

/* ---- the switch ----------------------------------------------------------------------------- */

static bool collective(const ExecTask *t, GError **error) {
    const ExecComm *comm = t->context->comm;
    PlanAxis axis = (PlanAxis)t->op->axis;
    PlanDtype dtype = (PlanDtype)t->op->dtype;
    bool average = attr(t, 0) != 0;
    switch ((PlanOpKind)t->op->kind) {
    case PLAN_OP_ALL_GATHER:
        return comm->all_gather(comm->self, axis, t->pointers[0], t->pointers[1], dim(t, 0), dtype,
                                error);
    case PLAN_OP_REDUCE_SCATTER:
        return comm->reduce_scatter(comm->self, axis, t->pointers[0], t->pointers[1], dim(t, 0),
                                    dtype, average, error);
    default: /* an all-reduce */
        return comm->all_reduce(comm->self, axis, t->pointers[0], dim(t, 0), dtype, average, error);
    }
}

bool exec_host_run(const ExecTask *t, GError **error) {
    switch ((PlanOpKind)t->op->kind) {
    case PLAN_OP_BATCH:
        batch(t);
        return true;
    case PLAN_OP_ARANGE:
        kernel_arange_i64(t->pointers[0], 0, 1, dim(t, 0));
        return true;
    case PLAN_OP_EMBEDDING:
        return kernel_embedding_forward_f32(f32(t, 2), f32(t, 0), i64(t, 1), dim(t, 0), dim(t, 2),
                                            dim(t, 1)) ||
               bad_index(error, "an embedding's index");
    case PLAN_OP_ADD:
        add(t);
        return true;
    case PLAN_OP_LAYERNORM:
        kernel_layernorm_forward_f32(f32(t, 3), f32(t, 4), f32(t, 5), f32(t, 0), f32(t, 1),
                                     f32(t, 2), dim(t, 0), dim(t, 1), (float)attr(t, 0));
        return true;
    case PLAN_OP_LINEAR:
        kernel_linear_forward_f32(f32(t, 3), f32(t, 0), f32(t, 1), f32(t, 2), dim(t, 0), dim(t, 1),
                                  dim(t, 2));
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
        attention_backward(t);
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
    case PLAN_OP_INIT_NORMAL:
    case PLAN_OP_INIT_FILL:
        init(t);
        return true;
    case PLAN_OP_FILL:
        kernel_fill_f32(f32(t, 0), (float)attr(t, 0), dim(t, 0));
        return true;
    case PLAN_OP_CAST:
    case PLAN_OP_COPY:
        kernel_copy_f32(f32(t, 1), f32(t, 0), dim(t, 0));
        return true;
    case PLAN_OP_SCALE:
        kernel_scale_f32(f32(t, 0), f32(t, 0), (float)attr(t, 0), dim(t, 0));
        return true;
    case PLAN_OP_FLATTEN:
        flatten(t, f32(t, list_length(t)));
        return true;
    case PLAN_OP_GATHER_COPY_IN:
        gather_copy_in(t);
        return true;
    case PLAN_OP_GATHER_COPY_OUT:
        gather_copy_out(t);
        return true;
    case PLAN_OP_PART:
        kernel_copy_f32(f32(t, 1), f32(t, 0) + axis_rank(t) * dim(t, 0), dim(t, 0));
        return true;
    case PLAN_OP_REDUCE_COPY_IN:
        reduce_copy_in(t);
        return true;
    case PLAN_OP_BUCKET_COPY_IN:
        kernel_scale_f32(f32(t, 1), f32(t, 0), (float)attr(t, 0), dim(t, 0));
        return true;
    case PLAN_OP_BUCKET_COPY_OUT:
        bucket_copy_out(t);
        return true;
    case PLAN_OP_ADAM_DECAY:
    case PLAN_OP_ADAM_MOMENT:
    case PLAN_OP_ADAM_SQUARE_DECAY:
    case PLAN_OP_ADAM_SQUARE:
    case PLAN_OP_ADAM_SQRT:
    case PLAN_OP_ADAM_DIVIDE:
    case PLAN_OP_ADAM_CORRECT:
    case PLAN_OP_ADAM_EPS:
    case PLAN_OP_ADAM_UPDATE:
    case PLAN_OP_ADAM_FUSED:
    case PLAN_OP_GRADIENT_DECAY:
    case PLAN_OP_SGD_UPDATE:
    case PLAN_OP_SGD_FUSED:
    case PLAN_OP_MOMENTUM_START:
    case PLAN_OP_MOMENTUM_DECAY:
    case PLAN_OP_MOMENTUM_ADD:
    case PLAN_OP_MOMENTUM_FUSED:
    case PLAN_OP_NORMS:
    case PLAN_OP_SCALE_ALL:
    case PLAN_OP_ZERO_ALL:
        exec_host_optimize(t);
        return true;
    case PLAN_OP_NORM:
        kernel_norm_f32(f32(t, 1), f32(t, 0), dim(t, 0));
        return true;
    case PLAN_OP_POWER:
    case PLAN_OP_ADD_NUMBER:
    case PLAN_OP_TIMES_NUMBER:
    case PLAN_OP_AT_MOST:
        numbers(t);
        return true;
    case PLAN_OP_ACCUMULATE:
        kernel_add_inplace_f32(f32(t, 1), f32(t, 0), dim(t, 0));
        return true;
    case PLAN_OP_ALL_GATHER:
    case PLAN_OP_REDUCE_SCATTER:
    case PLAN_OP_ALL_REDUCE:
        return collective(t, error);
    case PLAN_N_OP_KINDS:
        break;
    }
    g_assert_not_reached();
}

/* Kernels are fp32 today; whatever a plan has in another floating dtype is refused before it
 * starts. */
bool exec_host_knows(const PlanRole *role, const PlanOp *op, GError **error) {
    const PlanOperand *operands = plan_op_operands(role, op);
    for (uint32_t i = 0; i < op->n_operands; i++) {
        if (operands[i].buffer == PLAN_NONE) {
            continue;
        }
        PlanDtype dtype = (PlanDtype)role->buffers[operands[i].buffer].dtype;
        if (dtype == PLAN_BF16 || dtype == PLAN_FP16) {
            g_set_error(error, EXEC_ERROR, EXEC_ERROR_INPUT,
                        "the host device computes in fp32, and this plan has %s in %s; build it "
                        "with --param-dtype fp32 --reduce-dtype fp32",
                        plan_op_info((PlanOpKind)op->kind)->name, plan_dtype_name(dtype));
            return false;
        }
    }
    return true;
}

double exec_host_first_output(const ExecTask *t) {
    const PlanOpInfo *info = plan_op_info((PlanOpKind)t->op->kind);
    for (uint32_t i = 0; i < t->op->n_operands; i++) {
        unsigned slot = plan_op_slot_of(info, t->op->n_operands, i);
        if ((info->slots[slot].flags & PLAN_SLOT_WRITE) && t->pointers[i]) {
            return *f32(t, i);
        }
    }
    return NAN;
}
