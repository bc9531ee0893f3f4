#include "plan/op/work.h"

#include "plan/op/names.h"

/* Pairs of a query and a key that it sees; with a window w the first w queries see all before them,
 * and each other one w keys: w (w + 1) / 2 + (seq - w) w. */
static double pairs_seen(int64_t rows, int64_t causal) {
    double seq = (double)rows, window = (double)causal;
    return causal == 0                   ? seq * seq
           : causal == 1 || window > seq ? seq * (seq + 1) / 2
                                         : window * (window + 1) / 2 + (seq - window) * window;
}

/* Multiply-adds of both attention products over what is seen, twice for the two operations each. */
static double attention_flops(const int64_t *dims) {
    double batch = (double)dims[ATTENTION_BATCH], heads = (double)dims[ATTENTION_HEADS];
    double pairs = pairs_seen(dims[ATTENTION_SEQ], dims[ATTENTION_CAUSAL]);
    return 4 * batch * heads * pairs * (double)dims[ATTENTION_HEAD_DIM];
}

/* The same of the rows that a part has of both. */
static double attention_part_flops(const int64_t *dims) {
    double batch = (double)dims[ATTENTION_PART_BATCH], heads = (double)dims[ATTENTION_PART_HEADS];
    double q_rows = (double)dims[ATTENTION_PART_Q_ROWS];
    double pairs = dims[ATTENTION_PART_CAUSAL] ? q_rows * (q_rows + 1) / 2
                                               : q_rows * (double)dims[ATTENTION_PART_KV_ROWS];
    return 4 * batch * heads * pairs * (double)dims[ATTENTION_PART_HEAD_DIM];
}

/* Heads of q and k are of one length, those of v of another: scores, and what they make of v;
 * backward scores again, dv and the scores' gradient of v's length, dq and dk of the other. */
static double latent_flops(PlanOpKind kind, const int64_t *dims) {
    double batch = (double)dims[LATENT_ATTENTION_BATCH];
    double heads = (double)dims[LATENT_ATTENTION_HEADS];
    double pairs =
        2 * batch * heads * pairs_seen(dims[LATENT_ATTENTION_SEQ], dims[LATENT_ATTENTION_CAUSAL]);
    double of_q = (double)dims[LATENT_ATTENTION_HEAD_DIM];
    double of_v = (double)dims[LATENT_ATTENTION_V_DIM];
    return pairs * (kind == PLAN_OP_LATENT_ATTENTION ? of_q + of_v : 3 * of_q + 2 * of_v);
}

/* Two products over the pairs of a query and a key, half of them where a token sees none behind
 * it; backward five, as below. */
static double traced_attention_flops(const int64_t *dims) {
    double batch = (double)dims[TRACED_ATTENTION_BATCH];
    double heads = (double)dims[TRACED_ATTENTION_HEADS];
    double pairs = (double)dims[TRACED_ATTENTION_SEQ] * (double)dims[TRACED_ATTENTION_KV_SEQ] /
                   (dims[TRACED_ATTENTION_CAUSAL] ? 2 : 1);
    return 4 * batch * heads * pairs * (double)dims[TRACED_ATTENTION_HEAD_DIM] *
           (dims[TRACED_ATTENTION_BACKWARD] ? 2.5 : 1);
}

/* Products of one matrix have dims that begin alike. */
static double product_flops(PlanOpKind kind, const int64_t *dims) {
    if (kind == PLAN_OP_HEADS_MATMUL) {
        return 2 * (double)dims[HEADS_MATMUL_BATCH] * (double)dims[HEADS_MATMUL_HEADS] *
               (double)dims[HEADS_MATMUL_M] * (double)dims[HEADS_MATMUL_N] *
               (double)dims[HEADS_MATMUL_K];
    }
    return 2 * (double)dims[LINEAR_M] * (double)dims[LINEAR_N] * (double)dims[LINEAR_K] *
           (kind == PLAN_OP_TRACED_MATMUL ? (double)dims[TRACED_MATMUL_BATCH] : 1);
}

static double flops_of(PlanOpKind kind, const int64_t *dims) {
    switch (plan_op_info(kind)->op_class) {
    case PLAN_CLASS_MATMUL:
        return product_flops(kind, dims);
    case PLAN_CLASS_ATTENTION:
        if (kind == PLAN_OP_TRACED_ATTENTION) {
            return traced_attention_flops(dims);
        }
        if (plan_op_is_latent(kind)) {
            return latent_flops(kind, dims);
        }
        if (kind == PLAN_OP_ATTENTION_PART || kind == PLAN_OP_ATTENTION_PART_BACKWARD) {
            return attention_part_flops(dims) * (kind == PLAN_OP_ATTENTION_PART ? 1 : 2.5);
        }
        /* Backward makes the scores again and has four more products: five for two. */
        return attention_flops(dims) * (kind == PLAN_OP_ATTENTION ? 1 : 2.5);
    case PLAN_CLASS_MEMORY:
    case PLAN_CLASS_INPUT:
    case PLAN_CLASS_HOST_LINK:
    case PLAN_CLASS_COLLECTIVE:
        return 0;
    }
    g_assert_not_reached();
}

static double operand_bytes(const PlanRole *role, PlanRef ref) {
    PlanOperand operand = plan_operand(role, ref);
    if (operand.buffer == PLAN_NONE) {
        return 0;
    }
    PlanDtype dtype = (PlanDtype)role->buffers[operand.buffer].dtype;
    return (double)operand.elements * (double)plan_dtype_bytes(dtype);
}

/* What a kernel of float8 is given and does not read, or a number for each row and column. */
static bool is_free(const PlanOp *op, const int64_t *dims, unsigned slot) {
    bool finds = op->kind == PLAN_OP_FLOAT8_SCALE, has_found = finds && dims[FLOAT8_SCALE_FOUND];
    return (finds || op->kind == PLAN_OP_FLOAT8_CAST) &&
           (slot == FLOAT8_SCALE_WEIGHT || slot == FLOAT8_SCALE_RSTD ||
            (has_found && (slot == FLOAT8_SCALE_X || slot == FLOAT8_SCALE_MORE)));
}

bool plan_op_is_within(const PlanRole *role, const PlanOp *op) {
    return (op->kind == PLAN_OP_ADD_SCALED && plan_op_dims(role, op)[ADD_SCALED_WITHIN]) ||
           (op->kind == PLAN_OP_ADD_SCALED_BACKWARD &&
            plan_op_dims(role, op)[ADD_SCALED_BACKWARD_WITHIN] == 1);
}

/* What an op within another's kernel adds to that one's operands. */
static bool is_own(const PlanOp *op, unsigned slot) {
    return slot == (op->kind == PLAN_OP_ADD_SCALED ? (unsigned)ADD_SCALED_X
                                                   : (unsigned)ADD_SCALED_BACKWARD_DX);
}

/* Sums of whole numbers, so in whatever order. */
static double traffic_of(const PlanRole *role, const PlanOp *op) {
    const PlanOpInfo *info = plan_op_info((PlanOpKind)op->kind);
    const PlanRef *refs = plan_op_operands(role, op);
    unsigned length = plan_op_list_length(info, op->n_operands);
    bool is_within = plan_op_is_within(role, op);
    double bytes = 0;
    for (unsigned s = 0; s < info->n_slots; s++) {
        PlanSlotFlags flags = info->slots[s].flags;
        double times = (flags & PLAN_SLOT_READ ? 1 : 0) + (flags & PLAN_SLOT_WRITE ? 1 : 0);
        times = is_free(op, plan_op_dims(role, op), s) || (is_within && !is_own(op, s)) ? 0 : times;
        const PlanRef *end = refs + (flags & PLAN_SLOT_LIST ? length : 1);
        for (; refs < end; refs++) {
            bytes += operand_bytes(role, *refs) * times;
        }
    }
    return bytes;
}

/* Numbers that the host moves for one of a tensor, in fp32. */
static int64_t moved_on_host(PlanOpKind kind, const int64_t *dims) {
    switch (kind) {
    case PLAN_OP_HOST_ADAM:
    case PLAN_OP_HOST_SGD: /* of the same dims */
        return dims[HOST_ADAM_MOVED];
    case PLAN_OP_HOST_ADD:
        return 3;
    case PLAN_OP_HOST_ROUND:
    case PLAN_OP_HOST_POWER:
    case PLAN_OP_HOST_CLIP:
    case PLAN_OP_HOST_ALL_REDUCE:
        return 2;
    case PLAN_OP_HOST_ZERO:
    case PLAN_OP_HOST_NORM:
        return 1;
    default:
        return 0; /* not an op of the host's */
    }
}

/* What attention adds to its scores: elements; 0 without. */
static uint64_t bias_elements(const PlanRole *role, const PlanOp *op) {
    if (op->kind == PLAN_OP_ATTENTION) {
        return plan_op_operand(role, op, ATTENTION_BIAS).elements;
    }
    return plan_op_is_attention_backward((PlanOpKind)op->kind)
               ? plan_op_operand(role, op, ATTENTION_BACKWARD_BIAS).elements
               : 0;
}

bool plan_op_has_bias(const PlanRole *role, const PlanOp *op) {
    return bias_elements(role, op) > 0;
}

bool plan_op_has_mask(const PlanRole *role, const PlanOp *op) {
    return plan_op_has_bias(role, op) && plan_op_dims(role, op)[ATTENTION_CAUSAL] > 1;
}

/* A kernel that has its window as a mask works out all pairs, for each that is seen so many. */
static double pairs_for_one_seen(const PlanRole *role, const PlanOp *op) {
    const int64_t *dims = plan_op_dims(role, op);
    double seq = (double)dims[ATTENTION_SEQ];
    return seq * seq / pairs_seen(dims[ATTENTION_SEQ], dims[ATTENTION_CAUSAL]);
}

static bool multiplies(PlanOpKind kind) {
    PlanOpClass op_class = plan_op_info(kind)->op_class;
    return op_class == PLAN_CLASS_MATMUL || op_class == PLAN_CLASS_ATTENTION;
}

double plan_op_flops(const PlanRole *role, const PlanOp *op) {
    if (!multiplies((PlanOpKind)op->kind)) {
        return 0;
    }
    double flops = flops_of((PlanOpKind)op->kind, plan_op_dims(role, op));
    if (op->kind == PLAN_OP_CHUNKED_LOSS) { /* forward, dx, and where it is wanted dw */
        flops *= plan_op_buffer(role, op, CHUNKED_LOSS_DW) == PLAN_NONE ? 2 : 3;
    }
    return plan_op_has_mask(role, op) ? flops * pairs_for_one_seen(role, op) : flops;
}

double plan_op_model_flops(const PlanRole *role, const PlanOp *op) {
    if (!multiplies((PlanOpKind)op->kind) || op->kind == PLAN_OP_PRODUCT) {
        return 0;
    }
    bool is_latent = op->kind == PLAN_OP_LATENT_ATTENTION;
    if (is_latent || op->kind == PLAN_OP_LATENT_ATTENTION_BACKWARD) { /* which makes scores again */
        double passes = is_latent ? 1 : 2;
        return passes * latent_flops(PLAN_OP_LATENT_ATTENTION, plan_op_dims(role, op));
    }
    bool attends = plan_op_info((PlanOpKind)op->kind)->op_class == PLAN_CLASS_ATTENTION;
    bool is_traced = op->kind == PLAN_OP_TRACED_ATTENTION;
    bool again =
        is_traced ? plan_op_dims(role, op)[TRACED_ATTENTION_BACKWARD] != 0
                  : attends && op->kind != PLAN_OP_ATTENTION && op->kind != PLAN_OP_ATTENTION_PART;
    double hidden = plan_op_has_mask(role, op) ? pairs_for_one_seen(role, op) : 1;
    return plan_op_flops(role, op) / hidden * (again ? 4.0 / 5.0 : 1.0);
}

static double pairs_for_one_counted(const PlanRole *role, const PlanOp *op) {
    switch (op->kind) {
    case PLAN_OP_TRACED_ATTENTION:
        return plan_op_dims(role, op)[TRACED_ATTENTION_CAUSAL] ? 2 : 1;
    case PLAN_OP_ATTENTION_PART:
    case PLAN_OP_ATTENTION_PART_BACKWARD: /* the hops of a ring together have half of them */
        return 2;
    default:
        return pairs_for_one_seen(role, op);
    }
}

double plan_op_model_flops_of_all_pairs(const PlanRole *role, const PlanOp *op) {
    bool attends = plan_op_info((PlanOpKind)op->kind)->op_class == PLAN_CLASS_ATTENTION;
    return plan_op_model_flops(role, op) * (attends ? pairs_for_one_counted(role, op) : 1);
}

/* What most ops move, and those that are many of a kind. */
static double bytes_of_others(const PlanRole *role, const PlanOp *op, const int64_t *dims,
                              double size) {
    PlanOpKind kind = (PlanOpKind)op->kind;
    if (plan_op_is_collective(kind)) { /* all have the same first dims */
        return (double)dims[ALL_GATHER_ELEMENTS] * size;
    }
    if (plan_op_is_host_init(kind)) {
        return (plan_op_inits_nibbles(kind) ? 1 : 4) * (double)dims[HOST_INIT_NORMAL_N];
    }
    if (moved_on_host(kind, dims)) {
        return 4 * (double)moved_on_host(kind, dims) * (double)dims[HOST_ADAM_N];
    }
    double bytes = traffic_of(role, op);
    if (plan_op_has_bias(role, op) && !plan_op_has_mask(role, op)) { /* every sequence reads it */
        bytes += (double)(dims[ATTENTION_BATCH] - 1) * (double)bias_elements(role, op) * size;
    }
    return bytes;
}

static double bytes_of(const PlanRole *role, const PlanOp *op, const int64_t *dims, double size) {
    switch (op->kind) {
    case PLAN_OP_EMBEDDING: /* only the rows looked up are read, not the table */
        return (double)dims[EMBEDDING_N] * (2 * (double)dims[EMBEDDING_WIDTH] * size + 8);
    case PLAN_OP_ROWS_OF:
        return (double)dims[ROWS_OF_N] * (2 * (double)dims[ROWS_OF_WIDTH] * size + 8);
    case PLAN_OP_ADD_TO_ROWS: {
        /* All rows are copied; those that are named are read and written again for each addend. */
        double width = (double)dims[ADD_TO_ROWS_WIDTH];
        return 2 * (double)dims[ADD_TO_ROWS_ROWS] * width * size +
               (double)dims[ADD_TO_ROWS_N] * (3 * width * size + 8);
    }
    case PLAN_OP_NLL_LOSS: /* one number of a row is read */
        return (double)dims[NLL_LOSS_ROWS] * (size + 8);
    case PLAN_OP_PICK_COLUMN: /* one number of a row is read, and written elsewhere */
        return (double)dims[PICK_COLUMN_ROWS] * (2 * size + 8);
    case PLAN_OP_PUT_COLUMN: /* and which row is read */
        return (double)dims[PUT_COLUMN_ROWS] * (2 * size + 16);
    case PLAN_OP_PICK_TARGETS:
        /* A target, three numbers of a row and a mask, and one number written in each of two. */
        return (double)dims[PICK_TARGETS_ROWS] * (8 + 3 * size + 1 + 2 * size);
    case PLAN_OP_GATHER_COPY_IN: /* only this rank's slice is written */
        return 2 * (double)dims[GATHER_COPY_IN_SLICE] * size;
    case PLAN_OP_MXFP8_CAST: /* x is written for it, by whatever made it */
        return traffic_of(role, op) +
               (double)dims[MXFP8_CAST_COPIED] * (double)dims[MXFP8_CAST_ROWS] *
                   (double)dims[MXFP8_CAST_COLS] * (double)plan_dtype_bytes(PLAN_BF16);
    case PLAN_OP_MXFP8_ORDER: /* a fill, and a copy */
        return traffic_of(role, op) * (dims[MXFP8_ORDER_FROM_COLUMNS] ? 2.5 : 1);
    case PLAN_OP_FLOAT8_COPY_IN:
        return 2 * (double)dims[FLOAT8_COPY_IN_SLICE] * size;
    case PLAN_OP_TRACED_MEMORY:
        return (double)dims[TRACED_MEMORY_BYTES];
    case PLAN_OP_TRACED_MATMUL:
        return (double)dims[TRACED_MATMUL_BYTES];
    case PLAN_OP_TRACED_ATTENTION:
        return (double)dims[TRACED_ATTENTION_BYTES];
    case PLAN_OP_PART: /* read and written */
        return 2 * (double)dims[PART_N] * size;
    case PLAN_OP_OWN_PARTS:
        return 2 * (double)dims[OWN_PARTS_BATCH] * (double)dims[OWN_PARTS_N] * size;
    default:
        return bytes_of_others(role, op, dims, size);
    }
}

PlanOpWork plan_op_work(const PlanRole *role, const PlanOp *op) {
    double size = (double)plan_dtype_bytes((PlanDtype)op->dtype);
    return (PlanOpWork){.flops = plan_op_flops(role, op),
                        .bytes = bytes_of(role, op, plan_op_dims(role, op), size)};
}

/* What is offered lies there once; what is swapped is made in one half while the other goes. */
uint64_t plan_workspace_bytes(const PlanRole *role) {
    uint64_t most = 0;
    for (uint32_t i = 0; i < role->n_ops; i++) {
        const PlanOp *op = &role->ops[i];
        uint64_t halves = op->kind == PLAN_OP_OFFER ? 1 : op->kind == PLAN_OP_SWAP ? 2 : 0;
        uint64_t bytes = halves ? (uint64_t)plan_op_work(role, op).bytes : 0;
        most = MAX(most, halves * bytes);
    }
    return most;
}
