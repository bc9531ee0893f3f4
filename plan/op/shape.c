#include "plan/op/shape.h"

#include <string.h>

/* Sizes that overflow become larger than any buffer. */
static uint64_t times(uint64_t a, uint64_t b) {
    uint64_t product;
    return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

static uint64_t plus(uint64_t a, uint64_t b) {
    uint64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

/* What an attention reads through a stride: rows of `row` elements, `stride` apart. */
static uint64_t span(uint64_t rows, uint64_t stride, uint64_t row) {
    return row > stride ? UINT64_MAX : plus(times(rows - 1, stride), row);
}

/* A matrix r x c of each head in one of the layouts of ops.def. */
static uint64_t heads_elements(const uint64_t *d, uint64_t r, uint64_t c, uint64_t layout,
                               uint64_t stride) {
    switch (layout) {
    case 0:
    case 1:
        return times(times(d[0], d[1]), times(r, c));
    case 2:
        return span(times(d[0], r), stride, times(d[1], c));
    case 3:
        return span(times(d[0], c), stride, times(d[1], r));
    default:
        return UINT64_MAX;
    }
}

static uint64_t matmul_elements(const uint64_t *d, unsigned slot) {
    uint64_t inner = d[7] == 2 ? times(d[1], d[3]) : times(d[1], d[2]);
    return slot == 0   ? heads_elements(d, d[2], d[4], d[5], d[8])
           : slot == 1 ? heads_elements(d, d[4], d[3], d[6], d[9])
                       : heads_elements(d, d[2], d[3], d[7], inner);
}

static uint64_t attention_elements(const uint64_t *d, const char *slot) {
    uint64_t rows = times(d[0], d[3]);
    if (g_str_equal(slot, "q")) {
        return span(rows, d[5], times(d[1], d[4]));
    }
    if (g_str_equal(slot, "k") || g_str_equal(slot, "v")) {
        return span(rows, slot[0] == 'k' ? d[6] : d[10], times(d[2], d[4]));
    }
    if (g_str_equal(slot, "dk") || g_str_equal(slot, "dv")) {
        return times(rows, times(d[2], d[4]));
    }
    if (g_str_equal(slot, "lse")) {
        return d[7] < d[3] ? UINT64_MAX : times(times(d[0], d[1]), d[7]);
    }
    if (d[8] > 1 && g_str_equal(slot, "bias")) { /* the mask of a window */
        return times(d[0], times(d[3], d[3]));
    }
    if (g_str_equal(slot, "bias") || g_str_equal(slot, "dbias")) {
        return times(times(slot[0] == 'b' ? 1 : d[0], d[1]), times(d[3], d[3]));
    }
    if (g_str_equal(slot, "seed") || g_str_equal(slot, "offset")) {
        return 1;
    }
    if (g_str_equal(slot, "dqkv")) {
        return times(rows, times(plus(d[1], times(2, d[2])), d[4]));
    }
    return times(rows, times(d[1], d[4])); /* o, dy, dq */
}

static uint64_t latent_elements(const uint64_t *d, const char *slot) {
    uint64_t rows = times(d[0], times(d[1], d[3]));
    if (g_str_equal(slot, "v")) {
        return plus(d[9], span(rows, d[6], d[5]));
    }
    if (g_str_equal(slot, "lse")) {
        return d[7] < d[3] ? UINT64_MAX : times(times(d[0], d[1]), d[7]);
    }
    if (g_str_equal(slot, "seed") || g_str_equal(slot, "offset")) {
        return 1;
    }
    return times(rows, strpbrk(slot, "qk") ? d[4] : d[5]);
}

/* Of q, o and dy all rows are there, backward; forward o has those that are worked out. */
static uint64_t attention_part_elements(PlanOpKind kind, const uint64_t *d, const char *slot) {
    bool is_key = slot[0] == 'k' || slot[0] == 'v', is_gradient = slot[0] == 'd';
    uint64_t a_row = times(d[0], d[4]), of_queries = times(a_row, times(d[1], d[5]));
    if (g_str_equal(slot, "seed") || g_str_equal(slot, "offset")) {
        return 1;
    }
    if (g_str_equal(slot, "lse")) {
        return times(times(d[0], d[1]), d[5]);
    }
    if (is_key) {
        return times(a_row, times(d[2], d[3]));
    }
    if (is_gradient && (slot[1] == 'k' || slot[1] == 'v')) {
        return times(a_row, times(d[2], d[6]));
    }
    bool is_part =
        g_str_equal(slot, "dq") || (g_str_equal(slot, "o") && kind == PLAN_OP_ATTENTION_PART);
    return is_part ? of_queries : times(a_row, times(d[1], d[3]));
}

/* How many elements the kernel touches from the operand's start. d: the op's dims. */
static uint64_t elements_wanted(PlanOpKind kind, unsigned slot, const char *name,
                                const uint64_t *d) {
    bool is = slot == 0; /* the first operand */
    switch (kind) {
    case PLAN_OP_BATCH:
    case PLAN_OP_LOG_SOFTMAX:
    case PLAN_OP_LOG_SOFTMAX_BACKWARD:
        return times(d[0], d[1]);
    case PLAN_OP_EMBEDDING:
    case PLAN_OP_EMBEDDING_BACKWARD:
        return name[0] == 'i'                             ? d[0]
               : g_str_equal(name, "w") || name[1] == 'w' ? times(d[1], d[2])
                                                          : times(d[0], d[1]);
    case PLAN_OP_ADD:
        return name[0] == 'b' ? (d[1] > d[0] || d[0] % d[1] ? UINT64_MAX : d[1]) : d[0];
    case PLAN_OP_LAYERNORM:
    case PLAN_OP_LAYERNORM_BACKWARD:
        if (g_str_equal(name, "mean") || g_str_equal(name, "rstd")) {
            return d[0];
        }
        return strpbrk(name, "wb") ? d[1] : times(d[0], d[1]);
    case PLAN_OP_ROPE:
        return slot == 1 || slot == 2 ? times(d[3], d[2])
               : is                   ? span(d[0], d[5], times(d[1], d[2]))
                                      : times(d[0], times(d[1], d[2]));
    case PLAN_OP_TURN:
        return slot == 1 ? times(d[3], d[2])
               : is      ? span(d[0], d[4], times(d[1], d[2]))
                         : times(d[0], times(d[1], d[2]));
    case PLAN_OP_ADD_RMSNORM:
    case PLAN_OP_ADD_LAYERNORM:
    case PLAN_OP_ADD_RMSNORM_BACKWARD:
    case PLAN_OP_ADD_LAYERNORM_BACKWARD:
        if (g_str_equal(name, "mean") || g_str_equal(name, "rstd")) {
            return d[0];
        }
        return strpbrk(name, "wc") ? d[1] : times(d[0], d[1]);
    case PLAN_OP_CROSS_ENTROPY:
    case PLAN_OP_CROSS_ENTROPY_BACKWARD:
        return g_str_has_suffix(name, "logits")                          ? times(d[0], d[1])
               : g_str_equal(name, "target") || g_str_equal(name, "lse") ? d[0]
                                                                         : 1;
    case PLAN_OP_COMPILED_LOSS:
    case PLAN_OP_COMPILED_LOSS_BACKWARD:
        return g_str_has_suffix(name, "logits")                      ? times(d[0], d[1])
               : strchr("yd", name[0]) || g_str_equal(name, "total") ? 1
                                                                     : d[0];
    case PLAN_OP_CHUNKED_LOSS:
        return g_str_equal(name, "room")                           ? times(d[3], plus(d[1], 1))
               : g_str_equal(name, "target")                       ? d[0]
               : g_str_equal(name, "w") || g_str_equal(name, "dw") ? times(d[1], d[2])
               : strchr(name, 'x')                                 ? times(d[0], d[2])
                                                                   : 1;
    case PLAN_OP_LINEAR_GELU:
        return is                       ? times(d[0], d[2])
               : slot == 1              ? times(d[1], d[2])
               : g_str_equal(name, "b") ? d[1]
                                        : times(d[0], d[1]);
    case PLAN_OP_LINEAR_DX_GELU:
        return is                        ? times(d[0], d[1])
               : slot == 1               ? times(d[1], d[2])
               : g_str_equal(name, "db") ? d[2]
                                         : times(d[0], d[2]);
    case PLAN_OP_LINEAR_DW_DB:
        return is                        ? times(d[0], d[1])
               : slot == 1               ? times(d[0], d[2])
               : g_str_equal(name, "db") ? d[1]
                                         : times(d[1], d[2]);
    case PLAN_OP_LINEAR:
    case PLAN_OP_LINEAR_PARTS:
    case PLAN_OP_LINEAR_DX:
    case PLAN_OP_LINEAR_DW:
        if (strchr(name, 'w')) {
            return times(d[1], d[2]);
        }
        return strchr(name, 'x') ? times(d[0], d[2]) : name[0] == 'b' ? d[1] : times(d[0], d[1]);
    case PLAN_OP_FLOAT8_SCALE:
    case PLAN_OP_FLOAT8_CAST:
    case PLAN_OP_FLOAT8_CAST_ROWS:
        return g_str_equal(name, "scale") ? d[1] : d[0];
    case PLAN_OP_FLOAT8_TURN:
    case PLAN_OP_FLOAT8_PASS:
        return g_str_equal(name, "scale") ? 1 : d[0];
    case PLAN_OP_FLOAT8_UNSCALE:
        return is ? d[0] : slot == 1 ? d[1] : times(d[0], d[1]);
    case PLAN_OP_FLOAT8_LINEAR:
    case PLAN_OP_FLOAT8_LINEAR_DX:
    case PLAN_OP_FLOAT8_LINEAR_DW:
        return g_str_has_suffix(name, "scale") ? 1
               : strchr(name, 'w')             ? times(d[1], d[2])
                                               : times(d[0], strchr(name, 'x') ? d[2] : d[1]);
    case PLAN_OP_ATTENTION:
    case PLAN_OP_ATTENTION_BACKWARD:
    case PLAN_OP_ATTENTION_BACKWARD_QKV:
    case PLAN_OP_ATTENTION_BACKWARD_ORDERED:
        return attention_elements(d, name);
    case PLAN_OP_LATENT_ATTENTION:
    case PLAN_OP_LATENT_ATTENTION_BACKWARD:
        return latent_elements(d, name);
    case PLAN_OP_NORM_COLUMNS:
    case PLAN_OP_NORM_COLUMNS_BACKWARD:
        return g_str_equal(name, "rstd") ? d[0]
               : strchr(name, 'w')       ? d[1]
               : g_str_equal(name, "x")  ? span(d[0], d[2], d[1])
                                         : times(d[0], d[1]);
    case PLAN_OP_TURN_COLUMNS:
        return slot == 1 ? times(d[3], d[2]) : times(times(d[0], d[1]), d[is ? 4 : 2]);
    case PLAN_OP_JOIN_HEADS:
        return is          ? span(d[0], d[3], d[1])
               : slot == 1 ? times(d[0] / d[4], d[2])
                           : times(d[0], plus(d[1], d[2]));
    case PLAN_OP_SUM_HEAD_COLUMNS:
        return is ? times(times(d[0], d[1]), d[3]) : times(d[0], d[2]);
    case PLAN_OP_UNSET_COLUMNS:
        return times(d[0], d[is ? 2 : 1]);
    case PLAN_OP_ATTENTION_PART:
    case PLAN_OP_ATTENTION_PART_BACKWARD:
        return attention_part_elements(kind, d, name);
    case PLAN_OP_SUB_ROWS:
        return times(times(d[0], d[1]), d[is ? 2 : slot == 1 ? 3 : 4]);
    case PLAN_OP_PUT_ROWS:
        return times(times(d[0], d[1]), d[slot == 1 ? 3 : 2]);
    case PLAN_OP_ADD_ROWS:
    case PLAN_OP_LAST_ROWS:
        return times(times(d[0], d[1]), d[is ? 2 : 3]);
    case PLAN_OP_CAST_HEADS:
        return times(times(d[0], d[1]), times(d[2], d[3]));
    case PLAN_OP_MUL_HEADS:
        return times(times(d[0], d[1]), times(d[2], slot == 1 ? 1 : d[3]));
    case PLAN_OP_MERGE_TURN: {
        uint64_t rows = times(d[0], times(d[2], d[slot == 2 || slot == 3 ? 4 : 1]));
        return g_str_has_suffix(name, "lse") ? rows : times(rows, d[3]);
    }
    case PLAN_OP_ADD_KEYS:
        return name[0] == 'd' ? times(d[0], times(d[3], d[2]))
                              : times(times(2, d[0]), times(d[1], d[2]));
    case PLAN_OP_ADD_QUERIES:
        return times(times(d[0], d[2]), d[slot == 1 ? 3 : slot == 2 ? 4 : 1]);
    case PLAN_OP_JOIN:
        return slot == 2 ? times(2, d[0]) : d[0];
    case PLAN_OP_MEAN:
        return is ? d[0] : 1;
    case PLAN_OP_MEAN_BACKWARD:
        return is ? 1 : d[0];
    case PLAN_OP_NLL_LOSS:
    case PLAN_OP_NLL_LOSS_BACKWARD:
        return g_str_equal(name, "target")                            ? d[0]
               : g_str_equal(name, "logp") || g_str_equal(name, "dx") ? times(d[0], d[1])
               : is && kind == PLAN_OP_NLL_LOSS                       ? times(d[0], d[1])
                                                                      : 1;
    case PLAN_OP_SUM_ROWS:
        return is ? times(d[0], d[1]) : d[1];
    case PLAN_OP_SUM_COLUMNS:
        return is ? times(d[0], d[1]) : d[0];
    case PLAN_OP_SPREAD:
        return is ? d[0] : times(d[0], d[1]);
    case PLAN_OP_MUL_ROW:
        return slot == 1 ? d[1] : times(d[0], d[1]);
    case PLAN_OP_MUL_COLUMN:
    case PLAN_OP_ADD_COLUMN:
    case PLAN_OP_DIVIDE_COLUMN:
        return slot == 1 ? d[0] : times(d[0], d[1]);
    case PLAN_OP_TOTAL_COLUMNS:
        return is ? times(d[0], d[1]) : d[0];
    case PLAN_OP_TOP_K:
    case PLAN_OP_PICK_COLUMNS:
        return times(d[0], is ? d[1] : d[2]);
    case PLAN_OP_PICK_COLUMNS_BACKWARD:
        return times(d[0], slot == 2 ? d[1] : d[2]);
    case PLAN_OP_COUNT:
    case PLAN_OP_TALLY:
        return is ? d[0] : d[1];
    case PLAN_OP_SUM_EACH:
        return times(d[0], times(is ? d[1] : 1, d[2]));
    case PLAN_OP_REPEAT_EACH:
        return times(d[0], times(is ? 1 : d[1], d[2]));
    case PLAN_OP_GROUPED_LINEAR:
    case PLAN_OP_GROUPED_PARTS:
    case PLAN_OP_GROUPED_LINEAR_DX:
    case PLAN_OP_GROUPED_LINEAR_DW:
        return g_str_equal(name, "ends") ? d[3]
               : strchr(name, 'w')       ? times(d[3], times(d[1], d[2]))
                                         : times(d[0], strchr(name, 'x') ? d[2] : d[1]);
    case PLAN_OP_SPLITS:
        return is ? times(d[0], d[1]) : d[0];
    case PLAN_OP_OWN_COUNTS:
        return is ? times(d[0], d[1]) : d[1];
    case PLAN_OP_BY_EXPERT:
        return times(d[0], d[1]);
    case PLAN_OP_SEGMENT:
    case PLAN_OP_OF_SEGMENT:
        return is ? d[1] : d[0];
    case PLAN_OP_PLACE_ROWS:
        return slot == 1 ? d[0] : times(d[0], d[1]);
    case PLAN_OP_ROWS_OF:
        return slot == 1 ? d[0] : times(d[is ? 2 : 0], d[1]);
    case PLAN_OP_ADD_TO_ROWS:
        return slot == 2 ? d[0] : times(slot == 1 ? d[0] : d[2], d[1]);
    case PLAN_OP_CONCAT_COLUMNS:
        return times(d[0], d[1]);
    case PLAN_OP_INIT_NORMAL:
    case PLAN_OP_INIT_FILL:
        return d[1];
    case PLAN_OP_GATHER_COPY_IN:
    case PLAN_OP_GATHER_COPY_OUT:
    case PLAN_OP_REDUCE_COPY_IN:
    case PLAN_OP_FLOAT8_COPY_IN:
    case PLAN_OP_FLOAT8_COPY_OUT:
        return times(d[0], d[1]);
    case PLAN_OP_RMSNORM:
    case PLAN_OP_RMSNORM_BACKWARD:
        return g_str_equal(name, "rstd") ? d[0] : strchr(name, 'w') ? d[1] : times(d[0], d[1]);
    case PLAN_OP_OUTER:
        return is ? d[0] : slot == 1 ? d[1] : times(d[0], d[1]);
    case PLAN_OP_ROPE_FREQUENCIES:
        return d[0] / 2;
    case PLAN_OP_PAD_TARGETS:
    case PLAN_OP_DROP_FIRST:
        return times(d[0], is == (kind == PLAN_OP_PAD_TARGETS) ? d[1] : plus(d[1], 1));
    case PLAN_OP_TURN_TABLE:
    case PLAN_OP_ROPE_TABLES:
    case PLAN_OP_SOFTMAX:
    case PLAN_OP_SOFTMAX_BACKWARD:
    case PLAN_OP_UPPER_MASK:
        return times(d[0], d[1]);
    case PLAN_OP_LATER_MASK:
    case PLAN_OP_UPTO_MASK:
        return slot == 2 ? times(d[0], d[1]) : slot == 1 ? d[0] : d[1];
    case PLAN_OP_BOTH_MASK:
        return g_str_equal(name, "one_mask") ? d[1] : d[0];
    case PLAN_OP_MASK_TO_BIAS:
        return slot == 0 ? d[0] : slot == 3 ? times(d[0], d[1]) : 1;
    case PLAN_OP_NEGATE_HALF:
        return is ? span(d[0] / d[3], d[4], times(d[3], times(2, d[1]))) : times(d[0], d[1]);
    case PLAN_OP_JOIN_HALVES:
        return is          ? times(d[0], d[1])
               : slot == 1 ? span(d[0] / d[2], d[3], times(d[2], times(2, d[1])))
                           : times(d[0], times(2, d[1]));
    case PLAN_OP_NEGATE_COLUMNS:
    case PLAN_OP_COPY_COLUMNS:
        return times(d[0], is ? d[2] : d[1]);
    case PLAN_OP_JOIN_COLUMNS:
        return times(d[0], is ? d[1] : slot == 1 ? d[3] : plus(d[1], d[2]));
    case PLAN_OP_TABLE_MUL_COLUMNS:
        return slot == 1 ? times(d[3], d[2]) : times(times(d[0], d[1]), is ? d[4] : d[2]);
    case PLAN_OP_PUT_COLUMNS:
        return times(d[0], is ? d[2] : d[5]);
    case PLAN_OP_TABLE_MUL:
        return slot == 1                         ? times(d[3], d[2])
               : is && kind == PLAN_OP_TABLE_MUL ? span(d[0], d[5], times(d[1], d[2]))
                                                 : times(d[0], times(d[1], d[2]));
    case PLAN_OP_TABLE_MUL_BACKWARD:
        return slot == 1 ? times(d[3], d[2]) : times(d[0], times(d[1], d[2]));
    case PLAN_OP_REPEAT_HEADS:
        return is ? span(times(d[0], d[1]), d[6], times(d[2], d[4]))
                  : times(times(times(d[0], d[1]), d[2]), times(d[3], d[4]));
    case PLAN_OP_SUM_HEADS:
        return times(times(times(d[0], d[1]), d[2]), times(is ? d[3] : 1, d[4]));
    case PLAN_OP_HEADS_COPY:
        return is && !d[5] ? span(times(d[0], d[1]), d[4], times(d[2], d[3]))
                           : times(times(d[0], d[1]), times(d[2], d[3]));
    case PLAN_OP_HEADS_MATMUL:
        return matmul_elements(d, slot);
    case PLAN_OP_MASKED_FILL:
        return slot == 1 ? d[1] : times(d[0], times(d[1], d[2]));
    case PLAN_OP_DISTANCES:
        return is ? d[0] : times(d[0], d[0]);
    case PLAN_OP_BIAS_ADD:
        return times(times(slot == 1 ? 1 : d[0], d[1]), times(d[2], d[3]));
    case PLAN_OP_BIAS:
        return is ? times(d[2], d[1]) : slot == 1 ? d[0] : times(d[0], d[1]);
    case PLAN_OP_BIAS_BACKWARD:
        return is ? times(d[0], d[1]) : slot == 1 ? d[0] : times(d[2], d[1]);
    case PLAN_OP_PART:
        return is ? times(d[0], d[1]) : d[0];
    case PLAN_OP_ZERO_MASKED:
        return is ? d[0] : times(d[0], d[1]);
    case PLAN_OP_OWN_PARTS:
        return times(times(d[0], d[1]), is ? d[2] : 1);
    case PLAN_OP_PARTS_COPY:
        return times(times(d[0], d[1]), times(d[2], d[3]));
    case PLAN_OP_MAX_COLUMNS:
        return is ? times(d[0], d[1]) : d[0];
    case PLAN_OP_SUB_COLUMN:
        return slot == 1 ? d[0] : times(d[0], d[1]);
    case PLAN_OP_PICK_COLUMN:
        return is ? times(d[0], d[1]) : d[0];
    case PLAN_OP_PUT_COLUMN:
        return slot == 3 ? times(d[0], d[1]) : d[0];
    case PLAN_OP_LARGEST:
    case PLAN_OP_SUM_OF_EXPS:
        return is ? times(d[0], d[1]) : d[0];
    case PLAN_OP_PICK_TARGETS:
        return slot == 1 || slot == 4 ? times(d[0], d[1]) : d[0];
    case PLAN_OP_MEAN_PICKED:
        return slot < 2 ? d[0] : 1;
    case PLAN_OP_ADD_SOFTMAX:
        return slot == 2 || slot == 3 ? d[0] : times(d[0], d[1]);
    case PLAN_OP_SCALE_COUNTED:
        return slot == 1 ? d[0] : slot == 2 || slot == 3 ? 1 : times(d[0], d[1]);
    case PLAN_OP_COUNT_TARGETS:
        return slot < 2 ? d[0] : 1;
    case PLAN_OP_SPREAD_COUNTED:
        return is ? 1 : d[0];
    case PLAN_OP_ALL_GATHER:
        return is ? d[0] / d[1] : d[0];
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
        return d[0];
    case PLAN_OP_REDUCE_SCATTER:
        return is ? d[0] : d[0] / d[1];
    case PLAN_OP_ARANGE:
    case PLAN_OP_SORT:
    case PLAN_OP_DIVIDE_DOWN:
    case PLAN_OP_REMAINDER:
    case PLAN_OP_ENDS:
    case PLAN_OP_NARROW:
    case PLAN_OP_TALLY_ENDS:
    case PLAN_OP_INVERT:
#define HOST_OP(id, ...) case PLAN_OP_##id:
#include "plan/op/ops.def"
    case PLAN_OP_TO_HOST:
    case PLAN_OP_FROM_HOST:
    case PLAN_OP_DROPOUT:
    case PLAN_OP_DROPOUT_BACKWARD:
    case PLAN_OP_SWIGLU:
    case PLAN_OP_SWIGLU_BACKWARD:
    case PLAN_OP_SILU:
    case PLAN_OP_SILU_BACKWARD:
    case PLAN_OP_MUL:
    case PLAN_OP_ONES_MASK:
    case PLAN_OP_SHIFT:
    case PLAN_OP_BACK:
    case PLAN_OP_CONJUGATE:
    case PLAN_OP_COS:
    case PLAN_OP_SIN:
    case PLAN_OP_ABSOLUTE:
    case PLAN_OP_CLAMP:
    case PLAN_OP_POSITIVE_MASK:
    case PLAN_OP_GELU_TANH:
    case PLAN_OP_GELU_ERF:
    case PLAN_OP_TANH:
    case PLAN_OP_RELU:
    case PLAN_OP_GELU_TANH_BACKWARD:
    case PLAN_OP_GELU_ERF_BACKWARD:
    case PLAN_OP_TANH_BACKWARD:
    case PLAN_OP_RELU_BACKWARD:
    case PLAN_OP_FILL:
    case PLAN_OP_FILL_EMPTY:
    case PLAN_OP_FLOAT8_LARGEST:
    case PLAN_OP_CAST:
    case PLAN_OP_FLATTEN:
    case PLAN_OP_COPY:
    case PLAN_OP_JOIN_REST:
    case PLAN_OP_SCALE:
    case PLAN_OP_BUCKET_COPY_IN:
    case PLAN_OP_BUCKET_COPY_OUT:
    case PLAN_OP_POWER:
    case PLAN_OP_ADD_NUMBER:
    case PLAN_OP_TIMES_NUMBER:
    case PLAN_OP_AT_MOST:
    case PLAN_OP_ACCUMULATE:
    case PLAN_OP_OUTSIDE_MASK:
    case PLAN_OP_LOCAL_INDEX:
    case PLAN_OP_EXP:
    case PLAN_OP_LOG:
    case PLAN_OP_SAFE_TARGET:
    case PLAN_OP_AS_NUMBER:
    case PLAN_OP_KEEP_COUNTED:
    case PLAN_OP_DIVIDE:
    case PLAN_OP_PICKED_GRADIENT:
    case PLAN_OP_SIGMOID:
    case PLAN_OP_SIGMOID_BACKWARD:
    case PLAN_OP_LOG_SIGMOID:
    case PLAN_OP_SPLITS_TO_HOST:
    case PLAN_OP_RUNNING_SUM:
    case PLAN_OP_WHOLE_LESS:
    case PLAN_OP_WHOLE_PLUS:
        return d[0];
#define LIST_OP(id, ...) case PLAN_OP_##id:
#define TRACED_OP        LIST_OP
#include "plan/op/ops.def"
        return 1;
    case PLAN_OP_UPDATE_SCALE:
        return 1;
    case PLAN_OP_NORM:
        return is ? d[0] : 1;
    case PLAN_N_OP_KINDS:
        break;
    }
    g_assert_not_reached();
}

static bool wants_integers(PlanOpKind kind, const PlanSlot *slot, const uint64_t *d) {
    return slot->flags & PLAN_SLOT_INTEGER || kind == PLAN_OP_ARANGE ||
           (kind == PLAN_OP_BATCH && d[2] > 0);
}

static bool counts_bytes(PlanOpKind kind) {
    return kind == PLAN_OP_FLOAT8_COPY_IN || kind == PLAN_OP_FLOAT8_COPY_OUT;
}

static PlanDtype dtype_of(const PlanRole *role, const PlanOperand *o) {
    return (PlanDtype)role->buffers[o->buffer].dtype;
}

/* What a list's tensor i takes of what its op counts; UINT64_MAX with a fault. */
static uint64_t taken_by(const PlanRole *role, const PlanOp *op, const PlanOperand *o,
                         const uint64_t *d, const char **ret_fault) {
    uint64_t count = counts_bytes((PlanOpKind)op->kind)
                         ? times(o->elements, plan_dtype_bytes(dtype_of(role, o)))
                         : o->elements;
    if (op->kind == PLAN_OP_GATHER_COPY_OUT || op->kind == PLAN_OP_FLOAT8_COPY_OUT) {
        if (o->elements % d[1]) {
            *ret_fault = "a gathered parameter does not divide by the ranks";
            return UINT64_MAX;
        }
        return count / d[1];
    }
    if (op->kind == PLAN_OP_REDUCE_COPY_IN) {
        if (!o->rows || o->elements % o->rows) {
            *ret_fault = "a gradient needs /ROWS that divide its elements";
            return UINT64_MAX;
        }
        return times((o->rows + d[1] - 1) / d[1], o->elements / o->rows);
    }
    if (op->kind == PLAN_OP_CONCAT_COLUMNS && o->elements % d[0]) {
        *ret_fault = "a part does not divide by the rows";
        return UINT64_MAX;
    }
    return count;
}

/* One number a tensor, whatever the other lists' sizes. */
static bool counts_tensors(const PlanOp *op, unsigned list) {
    return ((op->kind == PLAN_OP_ADAM_FUSED || op->kind == PLAN_OP_ADAM_FUSED_SCALED) &&
            list == 4) ||
           ((op->kind == PLAN_OP_NORMS || op->kind == PLAN_OP_FLOAT8_LARGEST) && list == 1);
}

static uint64_t size_in(const PlanRole *role, const PlanOp *op, unsigned list, PlanRef first) {
    return counts_tensors(op, list) ? 1 : plan_operand(role, first).elements;
}

/* Lists are dealt out one after the other: what their elements take together. */
static char *list_fault(const PlanRole *role, const PlanOp *op, const uint64_t *d) {
    const PlanOpInfo *info = plan_op_info((PlanOpKind)op->kind);
    const PlanRef *operands = plan_op_operands(role, op);
    unsigned length = plan_op_list_length(info, op->n_operands), list = 0, of_first = 0;
    uint64_t total = 0;
    const char *fault = NULL;
    for (unsigned slot = 0, first = 0; slot < info->n_slots && !fault; slot++) {
        bool is_list = info->slots[slot].flags & PLAN_SLOT_LIST;
        of_first = is_list && list == 0 ? first : of_first;
        for (unsigned i = 0; is_list && i < length && !fault; i++) {
            PlanOperand o = plan_operand(role, operands[first + i]);
            total = plus(total, taken_by(role, op, &o, d, &fault));
            if (!fault && list > 0 &&
                o.elements != size_in(role, op, list, operands[of_first + i])) {
                fault = "the lists' tensors are not of the same sizes";
            }
        }
        list += is_list;
        first += is_list ? length : 1;
    }
    bool bounded = info->n_dims > 0, joins = op->kind == PLAN_OP_CONCAT_COLUMNS;
    if (!fault && joins && total != times(d[0], d[1])) {
        fault = "its parts do not make its rows";
    }
    if (!fault && bounded && !joins && total > d[0]) {
        return g_strdup_printf("its list has %" G_GUINT64_FORMAT " elements for %" G_GUINT64_FORMAT,
                               total, d[0]);
    }
    return g_strdup(fault);
}

/* Elements that the kernel touches of a slot's operand, from its start; 0 for a list's, of which
 * every element is. */
static uint64_t wanted_of(const PlanOp *op, unsigned slot, const uint64_t *d) {
    PlanOpKind kind = (PlanOpKind)op->kind;
    const PlanOpInfo *info = plan_op_info(kind);
    bool is_list = info->slots[slot].flags & PLAN_SLOT_LIST;
    return is_list ? 0 : elements_wanted(kind, slot, info->slots[slot].name, d);
}

static bool reaches_beyond(const PlanOperand *o, const PlanBuffer *b) {
    PlanDtype dtype = (PlanDtype)b->dtype;
    return o->offset_bytes > b->bytes || o->offset_bytes & (plan_dtype_bytes(dtype) - 1) ||
           o->elements > plan_dtype_count(dtype, b->bytes - o->offset_bytes);
}

static char *slot_fault(const PlanRole *role, const PlanOp *op, unsigned slot,
                        const PlanRef *operands, unsigned n, const uint64_t *d) {
    PlanOpKind kind = (PlanOpKind)op->kind;
    const PlanSlot *info = &plan_op_info(kind)->slots[slot];
    bool wants_int = wants_integers(kind, info, d), wants_mask = info->flags & PLAN_SLOT_MASK;
    bool wants_int32 = info->flags & PLAN_SLOT_INT32;
    bool wants_float8 = info->flags & PLAN_SLOT_FLOAT8;
    uint64_t wanted = wanted_of(op, slot, d);
    for (unsigned i = 0; i < n; i++) {
        PlanOperand o = plan_operand(role, operands[i]);
        if (o.buffer == PLAN_NONE) {
            continue;
        }
        const PlanBuffer *b = &role->buffers[o.buffer];
        if (reaches_beyond(&o, b)) {
            return g_strdup_printf("operand %s reaches beyond b%u", info->name, o.buffer);
        }
        bool only_moves =
            kind == PLAN_OP_FLATTEN || kind == PLAN_OP_COPY || kind == PLAN_OP_BROADCAST;
        bool takes_any =
            kind == PLAN_OP_FILL_EMPTY || (kind == PLAN_OP_ALL_TO_ALL && b->dtype == PLAN_INT64) ||
            counts_bytes(kind) || plan_op_is_traced(kind) || only_moves ||
            ((kind == PLAN_OP_ALL_GATHER || kind == PLAN_OP_COPY || plan_op_is_of_peers(kind)) &&
             (b->dtype == PLAN_UINT8 || plan_dtype_is_float8((PlanDtype)b->dtype)));
        if (!takes_any &&
            ((b->dtype == PLAN_INT64) != wants_int || (b->dtype == PLAN_UINT8) != wants_mask ||
             (b->dtype == PLAN_INT32) != wants_int32 ||
             plan_dtype_is_float8((PlanDtype)b->dtype) != wants_float8)) {
            return g_strdup_printf("operand %s cannot be %s", info->name,
                                   plan_dtype_name((PlanDtype)b->dtype));
        }
        uint64_t room = plan_dtype_count((PlanDtype)b->dtype, b->bytes - o.offset_bytes);
        if (wanted > room) {
            return g_strdup_printf("operand %s needs %" G_GUINT64_FORMAT
                                   " elements of b%u, where %" G_GUINT64_FORMAT " are left",
                                   info->name, wanted, o.buffer, room);
        }
    }
    return NULL;
}

static char *operands_fault(const PlanRole *role, const PlanOp *op, const uint64_t *d) {
    const PlanOpInfo *info = plan_op_info((PlanOpKind)op->kind);
    const PlanRef *operands = plan_op_operands(role, op);
    unsigned length = plan_op_list_length(info, op->n_operands);
    for (unsigned slot = 0; slot < info->n_slots; slot++) {
        unsigned n = info->slots[slot].flags & PLAN_SLOT_LIST ? length : 1;
        char *fault = slot_fault(role, op, slot, operands, n, d);
        if (fault) {
            return fault;
        }
        operands += n;
    }
    return NULL;
}

uint64_t plan_op_elements_touched(const PlanRole *role, const PlanOp *op, uint32_t i) {
    unsigned slot = plan_op_slot_of(plan_op_info((PlanOpKind)op->kind), op->n_operands, i);
    uint64_t wanted = wanted_of(op, slot, (const uint64_t *)plan_op_dims(role, op));
    return wanted ? wanted : plan_op_operand(role, op, i).elements;
}

/* So many columns from one on are not all in rows of so many. */
static bool leaves_rows(uint64_t from, uint64_t cols, uint64_t width) {
    return from > width || cols > width - from;
}

/* What ranks give each other goes as it is stored. */
static bool mixes_dtypes(const PlanRole *role, const PlanOp *op) {
    for (uint32_t i = 0; i < op->n_operands; i++) {
        uint32_t buffer = plan_op_buffer(role, op, i);
        if (buffer != PLAN_NONE && role->buffers[buffer].dtype != op->dtype) {
            return true;
        }
    }
    return false;
}

/* A kernel would leave its rows, or deal out what does not divide. */
static bool dims_contradict(PlanOpKind kind, const uint64_t *d) {
    return (kind == PLAN_OP_NEGATE_HALF && (d[2] > d[1] || d[0] % d[3])) ||
           (kind == PLAN_OP_JOIN_HALVES && d[0] % d[2]) ||
           (kind == PLAN_OP_LINEAR_PARTS && d[1] % d[3]) ||
           (kind == PLAN_OP_GROUPED_PARTS && d[1] % d[4]) ||
           (kind == PLAN_OP_CHUNKED_LOSS && d[3] > d[0]) ||
           ((kind == PLAN_OP_NEGATE_COLUMNS || kind == PLAN_OP_COPY_COLUMNS) &&
            leaves_rows(d[3], d[1], d[2])) ||
           (kind == PLAN_OP_JOIN_COLUMNS && leaves_rows(d[4], d[2], d[3])) ||
           (kind == PLAN_OP_TABLE_MUL_COLUMNS && (d[0] % d[3] || d[4] < d[2])) ||
           (kind == PLAN_OP_PUT_COLUMNS &&
            (leaves_rows(d[3], d[1], d[2]) || leaves_rows(d[4], d[1], d[5]))) ||
           ((kind == PLAN_OP_TABLE_MUL || kind == PLAN_OP_TABLE_MUL_BACKWARD) && d[0] % d[3]) ||
           ((kind == PLAN_OP_TOP_K || kind == PLAN_OP_PICK_COLUMNS ||
             kind == PLAN_OP_PICK_COLUMNS_BACKWARD) &&
            d[2] > d[1]) ||
           (kind == PLAN_OP_TURN_COLUMNS &&
            (d[0] % d[3] || d[2] % 2 || leaves_rows(d[5], d[2], d[4]))) ||
           (kind == PLAN_OP_JOIN_HEADS && (d[0] % d[4] || d[1] > d[3])) ||
           (kind == PLAN_OP_SUM_HEAD_COLUMNS && leaves_rows(d[4], d[2], d[3])) ||
           (kind == PLAN_OP_UNSET_COLUMNS && d[2] > d[1]) ||
           (kind == PLAN_OP_SUB_ROWS && (d[4] > d[2] || d[4] > d[3])) ||
           (kind == PLAN_OP_PUT_ROWS && d[3] > d[2]) ||
           (kind == PLAN_OP_LAST_ROWS && d[3] > d[2]) ||
           (kind == PLAN_OP_MERGE_TURN && d[4] > d[1]) ||
           (kind == PLAN_OP_ADD_KEYS && d[3] > d[1]) ||
           (kind == PLAN_OP_ADD_QUERIES && (d[3] > d[1] || d[4] > d[1])) ||
           (kind == PLAN_OP_ADD_ROWS && leaves_rows(d[4], d[2], d[3])) ||
           ((kind == PLAN_OP_ATTENTION_PART || kind == PLAN_OP_ATTENTION_PART_BACKWARD) &&
            (d[5] > d[3] || d[6] > d[3] || (d[7] && (d[5] < d[3] || d[6] < d[3])))) ||
           (kind == PLAN_OP_TURN && (d[0] % d[3] || d[2] % 2)) ||
           ((kind == PLAN_OP_REPEAT_HEADS || kind == PLAN_OP_SUM_HEADS) &&
            d[5] >= PLAN_N_REPEATED) ||
           (kind == PLAN_OP_HEADS_MATMUL && (d[5] > 3 || d[6] > 3 || d[7] > 3));
}

/* What an op says of ranks is what the mesh says. */
static char *ranks_fault(const Plan *plan, const PlanRole *role, const PlanOp *op,
                         const uint64_t *d) {
    PlanOpKind kind = (PlanOpKind)op->kind;
    const PlanOpInfo *info = plan_op_info(kind);
    bool in_parts = kind == PLAN_OP_ALL_GATHER || kind == PLAN_OP_REDUCE_SCATTER;
    if (info->op_class == PLAN_CLASS_COLLECTIVE &&
        (d[1] != plan->axes[op->axis] || (in_parts && d[0] % d[1]))) {
        return g_strdup_printf("its ranks are not the %u of axis %s, or do not divide its elements",
                               plan->axes[op->axis], plan_axis_name((PlanAxis)op->axis));
    }
    if (info->op_class == PLAN_CLASS_COLLECTIVE && mixes_dtypes(role, op)) {
        return g_strdup("its tensors are of two dtypes");
    }
    if (plan_op_is_of_stages(kind)) {
        uint64_t place = plan_rank_on_axis(plan, role->ranks[0], PLAN_AXIS_PIPELINE);
        bool is_next = (d[2] + 1) % d[1] == place || d[2] == (place + 1) % d[1];
        if (op->axis != PLAN_AXIS_PIPELINE || d[2] >= d[1] || d[2] == place || !is_next) {
            return g_strdup("its peer is no neighbour on axis pipeline");
        }
    }
    if (kind == PLAN_OP_HOST_ALL_REDUCE &&
        (op->axis == PLAN_AXIS_NONE || d[2] != plan->axes[op->axis])) {
        return g_strdup("its ranks are not those of an axis");
    }
    if (kind == PLAN_OP_HOST_ROUND && d[2] != 7 && d[2] != 10) {
        return g_strdup("mantissa_bits are 7 (bf16) or 10 (fp16)");
    }
    bool asks_rank =
        kind == PLAN_OP_GATHER_COPY_IN || kind == PLAN_OP_FLOAT8_COPY_IN || kind == PLAN_OP_PART;
    if ((asks_rank && d[1] != plan->axes[op->axis]) ||
        (kind == PLAN_OP_OWN_PARTS && d[2] != plan->axes[op->axis])) {
        return g_strdup_printf("its ranks are not the %u of axis %s", plan->axes[op->axis],
                               plan_axis_name((PlanAxis)op->axis));
    }
    return NULL;
}

char *plan_op_shape_fault(const Plan *plan, const PlanRole *role, const PlanOp *op) {
    PlanOpKind kind = (PlanOpKind)op->kind;
    const PlanOpInfo *info = plan_op_info(kind);
    uint64_t d[PLAN_MAX_DIMS] = {0};
    for (unsigned i = 0; i < info->n_dims; i++) {
        d[i] = (uint64_t)plan_op_dims(role, op)[i];
        if (!d[i] && !(info->dims_may_be_zero >> i & 1)) {
            return g_strdup_printf("%s is 0", info->dims[i]);
        }
    }
    if (plan_op_has_call(kind) && d[info->n_dims - 1] > plan->n_calls) {
        return g_strdup_printf("there is no call %" G_GUINT64_FORMAT, d[info->n_dims - 1]);
    }
    if (plan_op_is_init(kind) && d[0] >= plan->n_parameters) {
        return g_strdup_printf("there is no parameter %" G_GUINT64_FORMAT, d[0]);
    }
    if (info->op_class == PLAN_CLASS_ATTENTION && d[1] % d[2]) {
        return g_strdup("heads do not divide by kv_heads");
    }
    if (dims_contradict(kind, d)) {
        return g_strdup("its dims contradict each other");
    }
    if (kind == PLAN_OP_BATCH && d[2] && plan_op_operands(role, op)[1] == PLAN_NONE) {
        return g_strdup("tokens need targets");
    }
    char *fault = ranks_fault(plan, role, op, d);
    fault = fault ? fault : operands_fault(role, op, d);
    return fault || !info->n_lists || plan_op_is_traced(kind) ? fault : list_fault(role, op, d);
}
