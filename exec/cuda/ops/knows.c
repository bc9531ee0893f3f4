/* exec/cuda/ops/knows.c - which ops the device can do, and why not the others.
 *
 * A kernel takes its numbers in one type, statistics and angles in fp32; copies, casts, norms and
 * the sum of two tensors of one size take two. Where a plan mixes them elsewhere, it is refused
 * before it begins.
 */
#include "exec/cuda/ops/launch.h"
#include "exec/cuda/ops/traced.h"

#include <cuda_runtime_api.h>

#include "exec/batch.h"
#include "exec/error.h"
#include "exec/inputs.h"
#include "exec/offload/slot-plan.h"
#include "exec/op-groups.h"
#include "exec/part-runs.h"
#include "kernels/cuda/attention/attention.h"

static bool refuse(const PlanOp *op, const char *why, GError **error) {
    g_set_error(error, EXEC_ERROR, EXEC_ERROR_INPUT, "the cuda device cannot do %s: %s",
                plan_op_info((PlanOpKind)op->kind)->name, why);
    return false;
}

/* ---- types ---------------------------------------------------------------------------------- */

/* Ops whose kernels convert between their operands, or never look at what they move. */
static bool mixes_types(PlanOpKind kind) {
    PlanOpClass op_class = plan_op_info(kind)->op_class;
    switch (kind) {
    case PLAN_OP_CAST:
    case PLAN_OP_COPY:
    case PLAN_OP_PART:
    case PLAN_OP_FLATTEN:
    case PLAN_OP_GATHER_COPY_IN:
    case PLAN_OP_GATHER_COPY_OUT:
    case PLAN_OP_REDUCE_COPY_IN:
    case PLAN_OP_BUCKET_COPY_IN:
    case PLAN_OP_BUCKET_COPY_OUT:
    case PLAN_OP_CONCAT_COLUMNS:
    case PLAN_OP_COPY_COLUMNS:
    case PLAN_OP_ACCUMULATE:
    case PLAN_OP_SUB_ROWS:
    case PLAN_OP_ADD_ROWS:
    case PLAN_OP_ADD_KEYS:
    case PLAN_OP_ADD_QUERIES:
    case PLAN_OP_MERGE_TURN:
    case PLAN_OP_CAST_HEADS:
    case PLAN_OP_PUT_ROWS:
    case PLAN_OP_LAST_ROWS:
    case PLAN_OP_JOIN:
    case PLAN_OP_MUON_UPDATE:
    case PLAN_OP_FLOAT8_PASS:
        EXEC_SHARED_COMPILED_LOSS_OPS(EXEC_CASE) /* logits in any type, all else in fp32 */
        return true;
    default: /* over lists, each tensor has its own */
        return op_class == PLAN_CLASS_INPUT || op_class == PLAN_CLASS_COLLECTIVE ||
               plan_op_info(kind)->n_lists > 0;
    }
}

/* Always fp32, whatever the others are. */
static bool is_statistic(const char *slot) {
    return g_str_equal(slot, "mean") || g_str_equal(slot, "rstd") ||
           g_str_has_suffix(slot, "lse") || g_str_equal(slot, "most") ||
           g_str_equal(slot, "log_sum") || g_str_equal(slot, "room") ||
           g_str_equal(slot, "absmax") || g_str_equal(slot, "map");
}

/* A compiled loss and its gradient may be stored otherwise than the logits. */
static bool is_of_loss(PlanOpKind kind, const char *slot) {
    bool has_loss = kind == PLAN_OP_COMPILED_LOSS || kind == PLAN_OP_COMPILED_LOSS_BACKWARD;
    return has_loss &&
           (g_str_equal(slot, "y") || g_str_equal(slot, "dy") || g_str_equal(slot, "total"));
}

/* The angles of a rotation may be stored otherwise than what they turn. */
static bool is_table(PlanOpKind kind, const char *slot) {
    return kind != PLAN_OP_ROPE_TABLES &&
           (g_str_equal(slot, "cos") || g_str_equal(slot, "sin") || g_str_equal(slot, "table"));
}

/* And what a table in fp32 makes of 16 bits is fp32, unless a plan has it rounded at once. */
static bool is_made_wide(const PlanRole *role, const PlanOp *op, const char *slot) {
    bool by_table = op->kind == PLAN_OP_TABLE_MUL || op->kind == PLAN_OP_TABLE_MUL_BACKWARD ||
                    op->kind == PLAN_OP_TABLE_MUL_COLUMNS || op->kind == PLAN_OP_TABLE_MUL_PART;
    uint32_t table = by_table ? plan_op_buffer(role, op, TABLE_MUL_TABLE) : PLAN_NONE;
    uint32_t made = by_table ? plan_op_buffer(role, op, TABLE_MUL_Y) : PLAN_NONE;
    bool is_product = g_str_equal(slot, "y") || g_str_equal(slot, "dx");
    return by_table && is_product && role->buffers[table].dtype == PLAN_FP32 &&
           role->buffers[made].dtype == PLAN_FP32;
}

static bool is_norm(PlanOpKind kind) {
    switch (kind) {
        EXEC_NORM_OPS(EXEC_CASE)
        return true;
    default:
        return false;
    }
}

/* Angles are worked out in fp32 alone, and so are complex numbers. */
static bool makes_angles(PlanOpKind kind) {
    return kind == PLAN_OP_ROPE_FREQUENCIES || kind == PLAN_OP_OUTER || kind == PLAN_OP_COS ||
           kind == PLAN_OP_SIN || kind == PLAN_OP_TURN_TABLE || kind == PLAN_OP_TURN ||
           kind == PLAN_OP_TURN_COLUMNS || kind == PLAN_OP_CONJUGATE;
}

/* What products of float8 multiply by, or the largest number of which that is found. */
static bool is_scale(PlanOpKind kind, const char *slot) {
    return plan_op_is_of_float8(kind) &&
           (g_str_has_suffix(slot, "scale") || g_str_equal(slot, "largest") ||
            g_str_equal(slot, "row") || g_str_equal(slot, "column"));
}

/* What was made in 16 bits meets fp32: a product under autocast hidden states, a norm's weight, or
 * what attention's scores get; rows of experts their weights; what is not turned of a head the
 * rest. With a column or a bias only the matrix may be the narrower one, with columns only those
 * behind. */
static bool widens(const PlanRole *role, const PlanOp *op) {
    PlanOpKind kind = (PlanOpKind)op->kind;
    bool first_may_be = kind != PLAN_OP_JOIN_COLUMNS;
    bool second_may_be = kind != PLAN_OP_MUL_COLUMN && kind != PLAN_OP_BIAS_ADD;
    bool is_mixed = kind == PLAN_OP_ADD || kind == PLAN_OP_MUL || kind == PLAN_OP_MUL_ROW ||
                    !first_may_be || !second_may_be;
    bool is_wide[3];
    for (unsigned i = 0; is_mixed && i < G_N_ELEMENTS(is_wide); i++) {
        is_wide[i] = role->buffers[plan_op_buffer(role, op, i)].dtype == PLAN_FP32;
    }
    return is_mixed && is_wide[2] &&
           ((second_may_be && is_wide[0]) || (first_may_be && is_wide[1]));
}

/* Whether a norm's operands are in fp32, but those of these names, which are all of one type. */
static bool are_fp32_but(const char *const *names, const PlanRole *role, const PlanOp *op) {
    const PlanOpInfo *info = plan_op_info((PlanOpKind)op->kind);
    int theirs = -1;
    for (uint32_t i = 0; i < op->n_operands; i++) {
        uint32_t buffer = plan_op_buffer(role, op, i);
        if (buffer == PLAN_NONE) {
            continue;
        }
        int mine = role->buffers[buffer].dtype;
        bool is_free = g_strv_contains(names, info->slots[i].name);
        if (is_free ? theirs >= 0 && mine != theirs : mine != PLAN_FP32) {
            return false;
        }
        theirs = is_free ? mine : theirs;
    }
    return true;
}

/* A norm under autocast. Of fp32: a product's share of the sum that is normed, and what is made of
 * it, may be of 16 bits. Of a product's 16 bits: all rows are, beside weights in fp32. */
static bool norms_wide(const PlanRole *role, const PlanOp *op) {
    static const char *const made[] = {"r", "y", "dy", NULL};
    static const char *const rows[] = {"x", "a", "r", "sum", "y", "dy", "dx", "dsum", NULL};
    return is_norm((PlanOpKind)op->kind) &&
           (are_fp32_but(made, role, op) || are_fp32_but(rows, role, op));
}

/* Heads that lie one behind the other, cast on the way into rows of tokens. */
static bool casts_heads(const PlanRole *role, const PlanOp *op) {
    return op->kind == PLAN_OP_HEADS_COPY && plan_op_dims(role, op)[HEADS_COPY_BACK];
}

static bool types_fit(const PlanRole *role, const PlanOp *op, GError **error) {
    const PlanOpInfo *info = plan_op_info((PlanOpKind)op->kind);
    bool any = mixes_types((PlanOpKind)op->kind) || widens(role, op) || norms_wide(role, op) ||
               casts_heads(role, op);
    int type = -1;
    for (uint32_t i = 0; i < op->n_operands; i++) {
        const PlanSlot *slot = &info->slots[plan_op_slot_of(info, op->n_operands, i)];
        uint32_t buffer = plan_op_buffer(role, op, i);
        if (buffer == PLAN_NONE ||
            slot->flags & (PLAN_SLOT_INTEGER | PLAN_SLOT_INT32 | PLAN_SLOT_MASK | PLAN_SLOT_FLOAT8 |
                           PLAN_SLOT_PACKED)) {
            continue;
        }
        int mine = role->buffers[buffer].dtype;
        if (is_scale((PlanOpKind)op->kind, slot->name)) {
            continue;
        }
        if (makes_angles((PlanOpKind)op->kind) && mine != PLAN_FP32) {
            return refuse(op, "its angles are not stored in fp32; use a plan of this version",
                          error);
        }
        if (is_statistic(slot->name) && mine != PLAN_FP32) {
            return refuse(op, "its statistics are not stored in fp32; use a plan of this version",
                          error);
        }
        if (any || is_statistic(slot->name) || is_table((PlanOpKind)op->kind, slot->name) ||
            is_of_loss((PlanOpKind)op->kind, slot->name) || is_made_wide(role, op, slot->name) ||
            mine == PLAN_INT64) {
            continue;
        }
        if (type >= 0 && mine != type) {
            return refuse(op,
                          "its operands are stored in different types, which no kernel here "
                          "takes; set autocast=none, and param_dtype and model_dtype alike",
                          error);
        }
        type = mine;
    }
    return true;
}

/* A parameter and what is of its dtype; all else that is no byte is in fp32. */
static bool eight_bit_fits(const PlanRole *role, const PlanOp *op, GError **error) {
    static const char *const of_parameter[] = {"gradient", "parameter", "exp_avg", "exp_avg_sq",
                                               NULL};
    const PlanOpInfo *info = plan_op_info((PlanOpKind)op->kind);
    int type = -1;
    for (uint32_t i = 0; i < op->n_operands; i++) {
        uint32_t buffer = plan_op_buffer(role, op, i);
        bool is_free = g_strv_contains(of_parameter, info->slots[i].name);
        if (buffer == PLAN_NONE || info->slots[i].flags & PLAN_SLOT_MASK) {
            continue;
        }
        int mine = role->buffers[buffer].dtype;
        if (is_free ? type >= 0 && mine != type : mine != PLAN_FP32) {
            return refuse(op,
                          "its operands are stored in different types; use a plan of this "
                          "version",
                          error);
        }
        type = is_free ? mine : type;
    }
    return true;
}

/* Copies between GPU and host leave numbers as they are, so what moves has to be of its slot's
 * dtype, which is the parameter's (exec/offload/slots.h). */
static bool host_step_fits(const PlanRole *role, const PlanOp *step, GError **error) {
    int64_t first = plan_op_dims(role, step)[HOST_ADAM_SLOT],
            n = exec_slots_of_optimizer(role, step);
    int type = -1;
    for (uint32_t i = 0; i < role->n_ops && n; i++) {
        const PlanOp *op = &role->ops[i];
        if (op->kind != PLAN_OP_TO_HOST && op->kind != PLAN_OP_FROM_HOST) {
            continue;
        }
        int64_t slot = plan_op_dims(role, op)[TO_HOST_SLOT]; /* FROM_HOST is alike */
        int moved = role->buffers[plan_op_buffer(role, op, TO_HOST_X)].dtype;
        if (slot >= first && slot < first + n && type >= 0 && moved != type) {
            return refuse(step,
                          "gradients come to the host in another type than its parameters have; "
                          "set keep_low_precision_grads = no, or param_dtype and model_dtype alike",
                          error);
        }
        type = slot >= first && slot < first + n ? moved : type;
    }
    return true;
}

/* ---- what it cannot do ---------------------------------------------------------------------- */

static bool drops(const PlanRole *role, const PlanOp *op) {
    return plan_op_info((PlanOpKind)op->kind)->n_attrs > 1 &&
           plan_op_attrs(role, op)[ATTENTION_DROPOUT] > 0;
}

static bool is_wide(const PlanRole *role, const PlanOp *op) {
    const int64_t *d = plan_op_dims(role, op);
    return d[ATTENTION_HEAD_DIM] > KERNEL_CUDA_WIDEST_HEAD ||
           (plan_op_is_latent((PlanOpKind)op->kind) &&
            d[LATENT_ATTENTION_V_DIM] > KERNEL_CUDA_WIDEST_HEAD);
}

/* What is said of an op is the first that it is of. */
static const struct {
    bool (*is)(const PlanRole *role, const PlanOp *op);
    const char *why;
} attention_refused[] = {
    {drops, "its kernel drops nothing; set attention = math (or dropout = 0) in the network"},
    {is_wide, "heads are at most 1024 wide; set attention = math in the network"},
};

static bool attention_is_known(const PlanRole *role, const PlanOp *op, GError **error) {
    bool is_attention = plan_op_info((PlanOpKind)op->kind)->op_class == PLAN_CLASS_ATTENTION;
    for (unsigned i = 0; is_attention && i < G_N_ELEMENTS(attention_refused); i++) {
        if (attention_refused[i].is(role, op)) {
            return refuse(op, attention_refused[i].why, error);
        }
    }
    return true;
}

/* In tens and ones, as 89; 0: it does not say. */
static int compute_capability(void) {
    int device, major, minor;
    bool is_told =
        cudaGetDevice(&device) == cudaSuccess &&
        cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) == cudaSuccess &&
        cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device) == cudaSuccess;
    return is_told ? 10 * major + minor : 0;
}

/* Bytes are copied two at a time: sides of weights in float8 are multiples of 16. */
static bool has_odd_bytes(const PlanRole *role, const PlanOp *op) {
    const int64_t *d = plan_op_dims(role, op);
    bool turns = op->kind == PLAN_OP_FLOAT8_TURN && d[FLOAT8_TURN_INNER] > 1;
    bool is_copy = op->kind == PLAN_OP_FLOAT8_COPY_IN || op->kind == PLAN_OP_FLOAT8_COPY_OUT;
    bool is_odd = (turns && d[FLOAT8_TURN_INNER] % 2) || (is_copy && d[FLOAT8_COPY_IN_SLICE] % 2);
    for (uint32_t i = 0; is_copy && i < op->n_operands; i++) {
        PlanOperand operand = plan_op_operand(role, op, i);
        PlanDtype dtype = (PlanDtype)role->buffers[operand.buffer].dtype;
        uint64_t ranks =
            op->kind == PLAN_OP_FLOAT8_COPY_OUT ? (uint64_t)d[FLOAT8_COPY_OUT_RANKS] : 1;
        is_odd = is_odd || operand.elements * plan_dtype_bytes(dtype) / ranks % 2;
    }
    return is_odd;
}

/* And what cuBLASLt asks of a product in float8 (cublasLt.h; PyTorch asks it of the same sides). */
static bool float8_fits(const PlanRole *role, const PlanOp *op, GError **error) {
    const int64_t *d = plan_op_dims(role, op);
    if (plan_op_is_of_float8((PlanOpKind)op->kind) && has_odd_bytes(role, op)) {
        return refuse(op, "parts of float8 are an even number of bytes; use a plan of this version",
                      error);
    }
    if (!plan_op_is_float8_product((PlanOpKind)op->kind)) {
        return true;
    }
    if (compute_capability() < 89) {
        return refuse(op,
                      "this GPU does not multiply in float8, which takes compute capability 8.9 or "
                      "more; set float8=none",
                      error);
    }
    if (op->kind == PLAN_OP_MXFP8_PRODUCT && compute_capability() < 100) {
        return refuse(op,
                      "this GPU does not multiply in MXFP8, which takes compute capability 10.0 or "
                      "more; set float8=rowwise, or run on CPU ranks",
                      error);
    }
    int64_t m = d[FLOAT8_LINEAR_M] / (int64_t)exec_part_runs(role, op);
    return (m % 16 == 0 && d[FLOAT8_LINEAR_N] % 16 == 0 && d[FLOAT8_LINEAR_K] % 16 == 0) ||
           refuse(op,
                  "a product in float8 takes as many tokens, and sides, as 16 divides; set another "
                  "micro_batch, or another seq where ranks share sequences, or float8=none",
                  error);
}

bool exec_cuda_knows(const ExecContext *context, const PlanOp *op, GError **error) {
    const PlanRole *role = context->role;
    if (exec_inputs_filled_by(context, op)) {
        return exec_inputs_fit(context, op, error);
    }
    if (plan_op_is_traced((PlanOpKind)op->kind)) {
        return exec_cuda_traced_knows(context, op, error);
    }
    return attention_is_known(role, op, error) && exec_slots_are_bounded(role, op, error) &&
           host_step_fits(role, op, error) && exec_batch_fits(context, op, error) &&
           float8_fits(role, op, error) &&
           (exec_op_group((PlanOpKind)op->kind) == EXEC_GROUP_EIGHT_BIT
                ? eight_bit_fits(role, op, error)
                : types_fit(role, op, error));
}
