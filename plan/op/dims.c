#include "plan/op/dims.h"

#include "plan/op/float8.h"
#include "plan/op/four-bit.h"
#include "plan/op/names.h"

/* So many columns from one on are not all in rows of so many. */
static bool leaves_rows(uint64_t from, uint64_t cols, uint64_t width) {
    return from > width || cols > width - from;
}

static bool is_neither(uint64_t scales, uint64_t rows) {
    return scales != 1 && scales != rows;
}

/* Products have a scale for all of a factor, or for each row of what they make, or column. */
static bool scales_contradict(PlanOpKind kind, const uint64_t *d) {
    switch (kind) {
    case PLAN_OP_FLOAT8_SCALE:
        return d[FLOAT8_SCALE_ALONG] >= PLAN_FLOAT8_SCALED_ALREADY ||
               d[FLOAT8_SCALE_MADE] >= PLAN_N_FLOAT8_MADE ||
               d[FLOAT8_SCALE_SCALES] !=
                   plan_float8_n_scales((PlanFloat8Along)d[FLOAT8_SCALE_ALONG],
                                        d[FLOAT8_SCALE_ROWS], d[FLOAT8_SCALE_COLS]);
    case PLAN_OP_FLOAT8_CAST:
        return d[FLOAT8_CAST_ALONG] >= PLAN_N_FLOAT8_ALONG ||
               d[FLOAT8_CAST_MADE] >= PLAN_N_FLOAT8_MADE ||
               d[FLOAT8_CAST_SCALES] != plan_float8_n_scales((PlanFloat8Along)d[FLOAT8_CAST_ALONG],
                                                             d[FLOAT8_CAST_ROWS],
                                                             d[FLOAT8_CAST_COLS]);
    case PLAN_OP_MXFP8_CAST:
        return (d[MXFP8_CAST_ALONG] != PLAN_FLOAT8_EACH_ROW &&
                d[MXFP8_CAST_ALONG] != PLAN_FLOAT8_EACH_COLUMN) ||
               d[MXFP8_CAST_BLOCKS] * PLAN_MXFP8_BLOCK != d[MXFP8_CAST_ROWS] * d[MXFP8_CAST_COLS] ||
               d[d[MXFP8_CAST_ALONG] == PLAN_FLOAT8_EACH_ROW ? MXFP8_CAST_COLS : MXFP8_CAST_ROWS] %
                   PLAN_MXFP8_BLOCK;
    case PLAN_OP_MXFP8_ORDER:
        return d[MXFP8_ORDER_ROWS] % PLAN_MXFP8_TILE_ROWS ||
               d[MXFP8_ORDER_COLS] % PLAN_MXFP8_TILE_COLS;
    case PLAN_OP_MXFP8_PRODUCT:
        return d[MXFP8_PRODUCT_M] % PLAN_MXFP8_TILE_ROWS ||
               d[MXFP8_PRODUCT_N] % PLAN_MXFP8_TILE_ROWS ||
               d[MXFP8_PRODUCT_K] % (PLAN_MXFP8_TILE_COLS * PLAN_MXFP8_BLOCK) ||
               d[MXFP8_PRODUCT_X_BLOCKS] * PLAN_MXFP8_BLOCK !=
                   d[MXFP8_PRODUCT_M] * d[MXFP8_PRODUCT_K] ||
               d[MXFP8_PRODUCT_W_BLOCKS] * PLAN_MXFP8_BLOCK !=
                   d[MXFP8_PRODUCT_N] * d[MXFP8_PRODUCT_K];
    case PLAN_OP_FLOAT8_PASS:
        return d[FLOAT8_PASS_STEP] >= PLAN_N_FLOAT8_STEPS;
    case PLAN_OP_FLOAT8_LINEAR:
        return is_neither(d[FLOAT8_LINEAR_X_SCALES], d[FLOAT8_LINEAR_M]) ||
               is_neither(d[FLOAT8_LINEAR_W_SCALES], d[FLOAT8_LINEAR_N]);
    case PLAN_OP_FLOAT8_LINEAR_DX:
        return is_neither(d[FLOAT8_LINEAR_DX_DY_SCALES], d[FLOAT8_LINEAR_DX_M]) ||
               is_neither(d[FLOAT8_LINEAR_DX_W_SCALES], d[FLOAT8_LINEAR_DX_K]);
    case PLAN_OP_FLOAT8_LINEAR_DW:
        return is_neither(d[FLOAT8_LINEAR_DW_DY_SCALES], d[FLOAT8_LINEAR_DW_N]) ||
               is_neither(d[FLOAT8_LINEAR_DW_X_SCALES], d[FLOAT8_LINEAR_DW_K]);
    default:
        return false;
    }
}

/* Whether the code is none, or what is made of it is neither fp32 nor 16 bits. */
static bool is_no_code(uint64_t code, uint64_t made) {
    return code >= PLAN_N_FOUR_BIT_CODES || made > PLAN_FP16;
}

static bool codes_contradict(PlanOpKind kind, const uint64_t *d) {
    switch (kind) {
    case PLAN_OP_BYTE_MAP:
        return d[BYTE_MAP_N] != PLAN_FOUR_BIT_MAP;
    case PLAN_OP_STATE_MAP:
        return d[STATE_MAP_N] != PLAN_FOUR_BIT_MAP || d[STATE_MAP_PARTS] > 2;
    case PLAN_OP_QUANTIZE_4BIT:
        return d[QUANTIZE_4BIT_CODE] >= PLAN_N_FOUR_BIT_CODES;
    case PLAN_OP_DEQUANTIZE_4BIT:
        return d[DEQUANTIZE_4BIT_CODE] >= PLAN_N_FOUR_BIT_CODES;
    case PLAN_OP_INIT_NIBBLES:
        return is_no_code(d[INIT_NIBBLES_CODE], d[INIT_NIBBLES_MADE]);
    case PLAN_OP_HOST_INIT_NIBBLES:
        return is_no_code(d[HOST_INIT_NIBBLES_CODE], d[HOST_INIT_NIBBLES_MADE]);
    default:
        return false;
    }
}

/* Columns that a kernel takes of rows, or writes to them, are not all there. */
static bool columns_contradict(PlanOpKind kind, const uint64_t *d) {
    switch (kind) {
    case PLAN_OP_NEGATE_HALF:
        return d[NEGATE_HALF_FROM] > d[NEGATE_HALF_HALF];
    case PLAN_OP_NEGATE_COLUMNS:
    case PLAN_OP_COPY_COLUMNS:
    case PLAN_OP_CLAMP_COLUMNS:
    case PLAN_OP_TIMES_COLUMNS:
    case PLAN_OP_LIMIT_MASK: /* all five of the same dims */
        return leaves_rows(d[COPY_COLUMNS_FROM], d[COPY_COLUMNS_COLS], d[COPY_COLUMNS_WIDTH]);
    case PLAN_OP_JOIN_COLUMNS:
        return leaves_rows(d[JOIN_COLUMNS_FROM], d[JOIN_COLUMNS_B_COLS], d[JOIN_COLUMNS_WIDTH]);
    case PLAN_OP_TABLE_MUL_COLUMNS:
        return d[TABLE_MUL_COLUMNS_WIDTH] < d[TABLE_MUL_COLUMNS_DIM];
    case PLAN_OP_PUT_COLUMNS:
        return leaves_rows(d[PUT_COLUMNS_FROM], d[PUT_COLUMNS_COLS], d[PUT_COLUMNS_WIDTH]) ||
               leaves_rows(d[PUT_COLUMNS_TO], d[PUT_COLUMNS_COLS], d[PUT_COLUMNS_TOTAL]);
    case PLAN_OP_TOP_K:
    case PLAN_OP_PICK_COLUMNS:
    case PLAN_OP_PICK_COLUMNS_BACKWARD:
    case PLAN_OP_UNSET_COLUMNS: /* all four of the same dims */
        return d[TOP_K_K] > d[TOP_K_COLS];
    case PLAN_OP_TURN_COLUMNS:
        return leaves_rows(d[TURN_COLUMNS_FROM], d[TURN_COLUMNS_DIM], d[TURN_COLUMNS_ROW]);
    case PLAN_OP_JOIN_HEADS:
        return d[JOIN_HEADS_A_COLS] > d[JOIN_HEADS_ROW];
    case PLAN_OP_SUM_HEAD_COLUMNS:
        return leaves_rows(d[SUM_HEAD_COLUMNS_FROM], d[SUM_HEAD_COLUMNS_COLS],
                           d[SUM_HEAD_COLUMNS_ROW]);
    default:
        return false;
    }
}

/* Rows likewise. */
static bool rows_contradict(PlanOpKind kind, const uint64_t *d) {
    switch (kind) {
    case PLAN_OP_CHUNKED_LOSS:
        return d[CHUNKED_LOSS_CHUNK] > d[CHUNKED_LOSS_ROWS];
    case PLAN_OP_SUB_ROWS:
        return d[SUB_ROWS_ROWS] > d[SUB_ROWS_A_ROWS] || d[SUB_ROWS_ROWS] > d[SUB_ROWS_B_ROWS];
    case PLAN_OP_PUT_ROWS:
        return d[PUT_ROWS_B_ROWS] > d[PUT_ROWS_A_ROWS];
    case PLAN_OP_LAST_ROWS:
        return d[LAST_ROWS_ROWS] > d[LAST_ROWS_X_ROWS];
    case PLAN_OP_MERGE_TURN:
        return d[MERGE_TURN_BLOCK_ROWS] > d[MERGE_TURN_ROWS];
    case PLAN_OP_ADD_KEYS:
        return d[ADD_KEYS_ROWS] > d[ADD_KEYS_SEQ];
    case PLAN_OP_ADD_QUERIES:
        return d[ADD_QUERIES_A_ROWS] > d[ADD_QUERIES_SEQ] ||
               d[ADD_QUERIES_B_ROWS] > d[ADD_QUERIES_SEQ];
    case PLAN_OP_ADD_ROWS:
        return leaves_rows(d[ADD_ROWS_FROM], d[ADD_ROWS_X_ROWS], d[ADD_ROWS_Y_ROWS]);
    case PLAN_OP_ATTENTION_PART:
    case PLAN_OP_ATTENTION_PART_BACKWARD: { /* of the same dims */
        uint64_t seq = d[ATTENTION_PART_SEQ], q_rows = d[ATTENTION_PART_Q_ROWS];
        uint64_t kv_rows = d[ATTENTION_PART_KV_ROWS];
        bool needs_all = d[ATTENTION_PART_CAUSAL];
        return q_rows > seq || kv_rows > seq || (needs_all && (q_rows < seq || kv_rows < seq));
    }
    default:
        return false;
    }
}

/* A kernel would deal out what does not divide. */
static bool leaves_a_rest(PlanOpKind kind, const uint64_t *d) {
    switch (kind) {
    case PLAN_OP_ZERO_CODES:
    case PLAN_OP_ADAM_8BIT:
    case PLAN_OP_ADAM_8BIT_SCALED:
    case PLAN_OP_ADAM_8BIT_UPDATE: /* of the same dim */
        return d[ADAM_8BIT_N] % PLAN_FOUR_BIT_MAP_BLOCK;
    case PLAN_OP_ADD:
        return d[ADD_NB] > d[ADD_N] || d[ADD_N] % d[ADD_NB];
    case PLAN_OP_NEGATE_HALF:
        return d[NEGATE_HALF_ROWS] % d[NEGATE_HALF_HEADS];
    case PLAN_OP_JOIN_HALVES:
        return d[JOIN_HALVES_ROWS] % d[JOIN_HALVES_HEADS];
    case PLAN_OP_LINEAR_PARTS:
        return d[LINEAR_PARTS_N] % d[LINEAR_PARTS_PARTS];
    case PLAN_OP_GROUPED_PARTS:
        return d[GROUPED_PARTS_N] % d[GROUPED_PARTS_PARTS];
    case PLAN_OP_TABLE_MUL:
    case PLAN_OP_TABLE_MUL_BACKWARD: /* of dims that begin alike */
        return d[TABLE_MUL_TOKENS] % d[TABLE_MUL_SEQ];
    case PLAN_OP_TABLE_MUL_COLUMNS:
        return d[TABLE_MUL_COLUMNS_TOKENS] % d[TABLE_MUL_COLUMNS_SEQ];
    case PLAN_OP_TABLE_MUL_PART:
        return d[TABLE_MUL_PART_TOKENS] % d[TABLE_MUL_PART_SEQ];
    case PLAN_OP_TURN:
        return d[TURN_TOKENS] % d[TURN_SEQ] || d[TURN_DIM] % 2;
    case PLAN_OP_TURN_COLUMNS:
        return d[TURN_COLUMNS_TOKENS] % d[TURN_COLUMNS_SEQ] || d[TURN_COLUMNS_DIM] % 2;
    case PLAN_OP_JOIN_HEADS:
        return d[JOIN_HEADS_ROWS] % d[JOIN_HEADS_EACH];
    default:
        return false;
    }
}

/* A number that stands for one of several things stands for none. */
static bool names_nothing(PlanOpKind kind, const uint64_t *d) {
    switch (kind) {
    case PLAN_OP_REPEAT_HEADS:
        return d[REPEAT_HEADS_APART] >= PLAN_N_REPEATED;
    case PLAN_OP_SUM_HEADS:
        return d[SUM_HEADS_APART] >= PLAN_N_REPEATED;
    case PLAN_OP_HEADS_MATMUL:
        return d[HEADS_MATMUL_A_LAYOUT] > 5 || d[HEADS_MATMUL_B_LAYOUT] > 3 ||
               d[HEADS_MATMUL_Y_LAYOUT] > 3;
    case PLAN_OP_ADD_SCALED:
    case PLAN_OP_ADD_SCALED_BACKWARD: /* of the same dims */
        return d[ADD_SCALED_WITHIN] > 2;
    case PLAN_OP_DROPOUT:
        return d[DROPOUT_MICROBATCH] >= d[DROPOUT_MICROBATCHES];
    default:
        return false;
    }
}

/* The larger of what a rank sends and what comes to it is what its link carries. */
static bool is_another_load(PlanOpKind kind, const uint64_t *d) {
    return kind == PLAN_OP_UNEVEN_ALL_TO_ALL &&
           d[UNEVEN_COLLECTIVE_ELEMENTS] !=
               MAX(d[UNEVEN_COLLECTIVE_SENT], d[UNEVEN_COLLECTIVE_RECEIVED]);
}

bool plan_dims_contradict(PlanOpKind kind, const uint64_t *d) {
    return codes_contradict(kind, d) || columns_contradict(kind, d) || rows_contradict(kind, d) ||
           leaves_a_rest(kind, d) || names_nothing(kind, d) || scales_contradict(kind, d) ||
           is_another_load(kind, d);
}
