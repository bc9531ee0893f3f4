#include "plan/op/work.h"

/* Pairs of a query and a key that it sees; with a window w the first w queries see all before them,
 * and each other one w keys: w (w + 1) / 2 + (seq - w) w. */
static double pairs_seen(const int64_t *dims) {
    double seq = (double)dims[3], window = (double)dims[8];
    return dims[8] == 0                   ? seq * seq
           : dims[8] == 1 || window > seq ? seq * (seq + 1) / 2
                                          : window * (window + 1) / 2 + (seq - window) * window;
}

/* Multiply-adds of both attention products over what is seen, twice for the two operations each. */
static double attention_flops(const int64_t *dims) {
    double batch = (double)dims[0], heads = (double)dims[1], head_dim = (double)dims[4];
    return 4 * batch * heads * pairs_seen(dims) * head_dim;
}

/* The same of the rows that a part has of both. */
static double attention_part_flops(const int64_t *dims) {
    double q_rows = (double)dims[5], pairs = q_rows * (double)dims[6];
    pairs = dims[7] ? q_rows * (q_rows + 1) / 2 : pairs;
    return 4 * (double)dims[0] * (double)dims[1] * pairs * (double)dims[4];
}

/* Heads of q and k are of one length, those of v of another: scores, and what they make of v;
 * backward scores again, dv and the scores' gradient of v's length, dq and dk of the other. */
static double latent_flops(PlanOpKind kind, const int64_t *dims) {
    double pairs = 2 * (double)dims[0] * (double)dims[1] * pairs_seen(dims);
    double of_q = (double)dims[4], of_v = (double)dims[5];
    return pairs * (kind == PLAN_OP_LATENT_ATTENTION ? of_q + of_v : 3 * of_q + 2 * of_v);
}

/* Two products over the pairs of a query and a key, half of them where a token sees none behind
 * it; backward five, as below. */
static double traced_attention_flops(const int64_t *dims) {
    double pairs = (double)dims[3] * (double)dims[5] / (dims[6] ? 2 : 1);
    return 4 * (double)dims[0] * (double)dims[1] * pairs * (double)dims[4] * (dims[7] ? 2.5 : 1);
}

static double flops_of(PlanOpKind kind, const int64_t *dims) {
    switch (plan_op_info(kind)->op_class) {
    case PLAN_CLASS_MATMUL:
        if (kind == PLAN_OP_HEADS_MATMUL) {
            return 2 * (double)dims[0] * (double)dims[1] * (double)dims[2] * (double)dims[3] *
                   (double)dims[4];
        }
        return 2 * (double)dims[0] * (double)dims[1] * (double)dims[2] *
               (kind == PLAN_OP_TRACED_MATMUL ? (double)dims[3] : 1);
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
    bool finds = op->kind == PLAN_OP_FLOAT8_SCALE, has_found = finds && dims[5];
    return (finds || op->kind == PLAN_OP_FLOAT8_CAST) &&
           (slot == 2 || slot == 3 || (has_found && slot < 2));
}

/* Sums of whole numbers, so in whatever order. */
static double traffic_of(const PlanRole *role, const PlanOp *op) {
    const PlanOpInfo *info = plan_op_info((PlanOpKind)op->kind);
    const PlanRef *refs = plan_op_operands(role, op);
    unsigned length = plan_op_list_length(info, op->n_operands);
    double bytes = 0;
    for (unsigned s = 0; s < info->n_slots; s++) {
        PlanSlotFlags flags = info->slots[s].flags;
        double times = (flags & PLAN_SLOT_READ ? 1 : 0) + (flags & PLAN_SLOT_WRITE ? 1 : 0);
        times = is_free(op, plan_op_dims(role, op), s) ? 0 : times;
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
    case PLAN_OP_HOST_SGD:
        return dims[3];
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
    unsigned slot = op->kind == PLAN_OP_ATTENTION                         ? 3
                    : plan_op_is_attention_backward((PlanOpKind)op->kind) ? 4
                                                                          : 0;
    return slot ? plan_op_operand(role, op, slot).elements : 0;
}

bool plan_op_has_bias(const PlanRole *role, const PlanOp *op) {
    return bias_elements(role, op) > 0;
}

bool plan_op_has_mask(const PlanRole *role, const PlanOp *op) {
    return plan_op_has_bias(role, op) && plan_op_dims(role, op)[8] > 1;
}

/* A kernel that has its window as a mask works out all pairs, for each that is seen so many. */
static double pairs_for_one_seen(const PlanRole *role, const PlanOp *op) {
    const int64_t *dims = plan_op_dims(role, op);
    double seq = (double)dims[3];
    return seq * seq / pairs_seen(dims);
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
        flops *= plan_op_buffer(role, op, 5) == PLAN_NONE ? 2 : 3;
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
        is_traced ? plan_op_dims(role, op)[7] != 0
                  : attends && op->kind != PLAN_OP_ATTENTION && op->kind != PLAN_OP_ATTENTION_PART;
    double hidden = plan_op_has_mask(role, op) ? pairs_for_one_seen(role, op) : 1;
    return plan_op_flops(role, op) / hidden * (again ? 4.0 / 5.0 : 1.0);
}

static double pairs_for_one_counted(const PlanRole *role, const PlanOp *op) {
    switch (op->kind) {
    case PLAN_OP_TRACED_ATTENTION:
        return plan_op_dims(role, op)[6] ? 2 : 1;
    case PLAN_OP_ATTENTION_PART:
    case PLAN_OP_ATTENTION_PART_BACKWARD: /* the turns of a ring together have half of them */
        return 2;
    default:
        return pairs_for_one_seen(role, op);
    }
}

double plan_op_model_flops_of_all_pairs(const PlanRole *role, const PlanOp *op) {
    bool attends = plan_op_info((PlanOpKind)op->kind)->op_class == PLAN_CLASS_ATTENTION;
    return plan_op_model_flops(role, op) * (attends ? pairs_for_one_counted(role, op) : 1);
}

PlanOpWork plan_op_work(const PlanRole *role, const PlanOp *op) {
    PlanOpKind kind = (PlanOpKind)op->kind;
    const int64_t *dims = plan_op_dims(role, op);
    PlanOpWork work = {.flops = plan_op_flops(role, op)};
    double size = (double)plan_dtype_bytes((PlanDtype)op->dtype);
    if (plan_op_is_collective(kind)) {
        work.bytes = (double)dims[0] * size;
    } else if (kind == PLAN_OP_EMBEDDING || kind == PLAN_OP_ROWS_OF) {
        /* Only the rows looked up are read, not the table. */
        work.bytes = (double)dims[0] * (2 * (double)dims[1] * size + 8);
    } else if (kind == PLAN_OP_ADD_TO_ROWS) {
        /* All rows are copied; those that are named are read and written again for each addend. */
        work.bytes = 2 * (double)dims[2] * (double)dims[1] * size +
                     (double)dims[0] * (3 * (double)dims[1] * size + 8);
    } else if (kind == PLAN_OP_NLL_LOSS) {
        work.bytes = (double)dims[0] * (size + 8); /* one number of a row is read */
    } else if (kind == PLAN_OP_PICK_COLUMN || kind == PLAN_OP_PUT_COLUMN) {
        /* One number of a row is read, and written elsewhere; putting also reads which row. */
        work.bytes = (double)dims[0] * (2 * size + (kind == PLAN_OP_PUT_COLUMN ? 16 : 8));
    } else if (kind == PLAN_OP_PICK_TARGETS) {
        /* A target, three numbers of a row and a mask, and one number written in each of two. */
        work.bytes = (double)dims[0] * (8 + 3 * size + 1 + 2 * size);
    } else if (kind == PLAN_OP_GATHER_COPY_IN || kind == PLAN_OP_FLOAT8_COPY_IN) {
        /* Only this rank's slice is written. */
        work.bytes = 2 * (double)dims[0] * size;
    } else if (kind == PLAN_OP_TRACED_MEMORY) {
        work.bytes = (double)dims[0];
    } else if (kind == PLAN_OP_TRACED_MATMUL) {
        work.bytes = (double)dims[4];
    } else if (kind == PLAN_OP_TRACED_ATTENTION) {
        work.bytes = (double)dims[8];
    } else if (plan_op_is_host_init(kind)) {
        work.bytes = (plan_op_inits_nibbles(kind) ? 1 : 4) * (double)dims[1];
    } else if (moved_on_host(kind, dims)) {
        work.bytes = 4 * (double)moved_on_host(kind, dims) * (double)dims[0];
    } else if (kind == PLAN_OP_PART) {
        work.bytes = 2 * (double)dims[0] * size; /* and read */
    } else if (kind == PLAN_OP_OWN_PARTS) {
        work.bytes = 2 * (double)dims[0] * (double)dims[1] * size;
    } else {
        work.bytes = traffic_of(role, op);
        if (plan_op_has_bias(role, op) &&
            !plan_op_has_mask(role, op)) { /* every sequence reads it */
            work.bytes += (double)(dims[0] - 1) * (double)bias_elements(role, op) * size;
        }
    }
    return work;
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
