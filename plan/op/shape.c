#include "plan/op/shape.h"

#include <string.h>

#include "plan/op/float8.h"
#include "plan/op/four-bit.h"

/* A matrix r x c of each head in one of the layouts of ops.def. */
static uint64_t heads_elements(const uint64_t *d, uint64_t r, uint64_t c, uint64_t layout,
                               uint64_t stride) {
    switch (layout) {
    case 0:
    case 1:
        return plan_size_times(plan_size_times(d[0], d[1]), plan_size_times(r, c));
    case 2:
        return plan_size_span(plan_size_times(d[0], r), stride, plan_size_times(d[1], c));
    case 3:
        return plan_size_span(plan_size_times(d[0], c), stride, plan_size_times(d[1], r));
    default:
        return UINT64_MAX;
    }
}

static uint64_t matmul_elements(const uint64_t *d, unsigned slot) {
    uint64_t inner = plan_size_times(d[1], d[d[7] == 2 ? 3 : 2]);
    return slot == 0   ? heads_elements(d, d[2], d[4], d[5], d[8])
           : slot == 1 ? heads_elements(d, d[4], d[3], d[6], d[9])
                       : heads_elements(d, d[2], d[3], d[7], inner);
}

/* Head by head, or rows that lie apart. */
static uint64_t heads_copy_elements(const uint64_t *d) {
    uint64_t rows = plan_size_times(d[0], d[1]), row = plan_size_times(d[2], d[3]);
    bool is_back = d[5];
    return is_back ? plan_size_times(rows, row) : plan_size_span(rows, d[4], row);
}

/* Of attention, whose dims are alike: what a row of scores was divided by. */
static uint64_t lse_elements(const uint64_t *d) {
    return d[7] < d[3] ? UINT64_MAX : plan_size_times(plan_size_times(d[0], d[1]), d[7]);
}

/* One for all sequences; a window's is a mask that all heads share. */
static uint64_t bias_elements(const uint64_t *d) {
    return plan_size_times(d[d[8] > 1 ? 0 : 1], plan_size_times(d[3], d[3]));
}

static uint64_t latent_v_elements(const uint64_t *d) {
    uint64_t rows = plan_size_times(d[0], plan_size_times(d[1], d[3]));
    return plan_size_plus(d[9], plan_size_span(rows, d[6], d[5]));
}

/* What a row of ops.def marks with "*". */
static uint64_t special_elements(PlanOpKind kind, unsigned slot, const char *name,
                                 const uint64_t *d) {
    if (kind == PLAN_OP_HEADS_MATMUL) {
        return matmul_elements(d, slot);
    }
    if (kind == PLAN_OP_HEADS_COPY) {
        return heads_copy_elements(d);
    }
    if (g_str_equal(name, "lse")) {
        return lse_elements(d);
    }
    return g_str_equal(name, "bias") ? bias_elements(d) : latent_v_elements(d);
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
                         ? plan_size_times(o->elements, plan_dtype_bytes(dtype_of(role, o)))
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
        return plan_size_times((o->rows + d[1] - 1) / d[1], o->elements / o->rows);
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
            total = plan_size_plus(total, taken_by(role, op, &o, d, &fault));
            if (!fault && list > 0 &&
                o.elements != size_in(role, op, list, operands[of_first + i])) {
                fault = "the lists' tensors are not of the same sizes";
            }
        }
        list += is_list;
        first += is_list ? length : 1;
    }
    bool bounded = info->n_dims > 0, joins = op->kind == PLAN_OP_CONCAT_COLUMNS;
    if (!fault && joins && total != plan_size_times(d[0], d[1])) {
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
    const PlanSlot *s = &info->slots[slot];
    if (s->flags & PLAN_SLOT_LIST) {
        return 0;
    }
    return s->extent.is_special ? special_elements(kind, slot, s->name, d)
                                : plan_extent_elements(&s->extent, d);
}

static bool reaches_beyond(const PlanOperand *o, const PlanBuffer *b) {
    PlanDtype dtype = (PlanDtype)b->dtype;
    return o->offset_bytes > b->bytes || o->offset_bytes & (plan_dtype_bytes(dtype) - 1) ||
           o->elements > plan_dtype_count(dtype, b->bytes - o->offset_bytes);
}

/* Parts of its axis's ranks are as many as fill a tensor, and each has so many equal rows. */
static bool is_no_part(const Plan *plan, const PlanRole *role, const PlanOperand *o,
                       const PlanOp *op) {
    const PlanBuffer *b = &role->buffers[o->buffer];
    uint64_t bytes = o->elements * plan_dtype_bytes((PlanDtype)b->dtype);
    uint64_t ranks = plan->axes[op->axis];
    return !bytes || o->elements % o->rows || o->offset_bytes % bytes ||
           o->offset_bytes / bytes >= ranks || bytes > b->bytes / ranks;
}

static char *parts_fault(const Plan *plan, const PlanRole *role, const PlanOp *op) {
    bool takes = plan_op_takes_parts((PlanOpKind)op->kind) && op->axis != PLAN_AXIS_NONE;
    for (uint32_t i = 0; takes && i < op->n_operands; i++) {
        PlanOperand o = plan_op_operand(role, op, i);
        if (o.buffer != PLAN_NONE && o.rows && is_no_part(plan, role, &o, op)) {
            return g_strdup_printf("its operand %u is no part of one of the %u ranks of axis %s", i,
                                   plan->axes[op->axis], plan_axis_name((PlanAxis)op->axis));
        }
    }
    return NULL;
}

static char *slot_fault(const PlanRole *role, const PlanOp *op, unsigned slot,
                        const PlanRef *operands, unsigned n, const uint64_t *d) {
    PlanOpKind kind = (PlanOpKind)op->kind;
    const PlanSlot *info = &plan_op_info(kind)->slots[slot];
    bool wants_int = wants_integers(kind, info, d), wants_mask = info->flags & PLAN_SLOT_MASK;
    bool wants_int32 = info->flags & PLAN_SLOT_INT32;
    bool wants_float8 = info->flags & PLAN_SLOT_FLOAT8, is_packed = info->flags & PLAN_SLOT_PACKED;
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
            counts_bytes(kind) || plan_op_is_traced(kind) || only_moves || is_packed ||
            ((kind == PLAN_OP_ALL_GATHER || kind == PLAN_OP_COPY || plan_op_is_of_peers(kind)) &&
             (b->dtype == PLAN_UINT8 || plan_dtype_is_float8((PlanDtype)b->dtype)));
        if (!takes_any &&
            ((b->dtype == PLAN_INT64) != wants_int || (b->dtype == PLAN_UINT8) != wants_mask ||
             (b->dtype == PLAN_INT32) != wants_int32 ||
             plan_dtype_is_float8((PlanDtype)b->dtype) != wants_float8)) {
            return g_strdup_printf("operand %s cannot be %s", info->name,
                                   plan_dtype_name((PlanDtype)b->dtype));
        }
        PlanDtype counted = is_packed ? PLAN_UINT8 : (PlanDtype)b->dtype;
        uint64_t room = plan_dtype_count(counted, b->bytes - o.offset_bytes);
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
    bool is_packed = plan_op_info((PlanOpKind)op->kind)->slots[slot].flags & PLAN_SLOT_PACKED;
    return wanted && !is_packed ? wanted : plan_op_operand(role, op, i).elements;
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

/* Products have a scale for all of a factor, or for each row of what they make, or column. */
static bool scales_contradict(PlanOpKind kind, const uint64_t *d) {
    switch (kind) {
    case PLAN_OP_FLOAT8_SCALE:
        return d[3] >= PLAN_FLOAT8_SCALED_ALREADY || d[4] >= PLAN_N_FLOAT8_MADE ||
               d[2] != plan_float8_n_scales((PlanFloat8Along)d[3], d[0], d[1]);
    case PLAN_OP_FLOAT8_CAST:
        return d[3] >= PLAN_N_FLOAT8_ALONG || d[4] >= PLAN_N_FLOAT8_MADE ||
               d[2] != plan_float8_n_scales((PlanFloat8Along)d[3], d[0], d[1]);
    case PLAN_OP_FLOAT8_PASS:
        return d[1] >= PLAN_N_FLOAT8_STEPS;
    case PLAN_OP_FLOAT8_LINEAR:
        return (d[3] != 1 && d[3] != d[0]) || (d[4] != 1 && d[4] != d[1]);
    case PLAN_OP_FLOAT8_LINEAR_DX:
        return (d[4] != 1 && d[4] != d[0]) || (d[5] != 1 && d[5] != d[2]);
    case PLAN_OP_FLOAT8_LINEAR_DW:
        return (d[3] != 1 && d[3] != d[1]) || (d[4] != 1 && d[4] != d[2]);
    default:
        return false;
    }
}

/* What is made as it is read is made of what the kernel is given. */
static bool lacks_what_it_reads(const PlanRole *role, const PlanOp *op, const uint64_t *d) {
    bool makes = op->kind == PLAN_OP_FLOAT8_SCALE || op->kind == PLAN_OP_FLOAT8_CAST;
    const PlanRef *operands = plan_op_operands(role, op);
    bool has_more = makes && operands[1] != PLAN_NONE;
    bool has_norm = makes && operands[2] != PLAN_NONE && operands[3] != PLAN_NONE;
    bool scales = op->kind == PLAN_OP_FLOAT8_PASS && d[1] == PLAN_FLOAT8_TIMES_SCALE;
    return (makes && d[4] == PLAN_FLOAT8_BY_SWIGLU && !has_more) ||
           (makes && d[4] == PLAN_FLOAT8_BY_NORM && !has_norm) ||
           (scales && operands[1] == PLAN_NONE);
}

/* Of numbers in fp32 or 16 bits. */
static bool is_no_code(uint64_t code, uint64_t made) {
    return code >= PLAN_N_FOUR_BIT_CODES || made > PLAN_FP16;
}

/* A kernel would leave its rows, or deal out what does not divide. */
static bool dims_contradict(PlanOpKind kind, const uint64_t *d) {
    return (kind == PLAN_OP_BYTE_MAP && d[0] != PLAN_FOUR_BIT_MAP) ||
           ((kind == PLAN_OP_QUANTIZE_4BIT || kind == PLAN_OP_DEQUANTIZE_4BIT) &&
            d[1] >= PLAN_N_FOUR_BIT_CODES) ||
           (kind == PLAN_OP_INIT_NIBBLES && is_no_code(d[4], d[5])) ||
           (kind == PLAN_OP_HOST_INIT_NIBBLES && is_no_code(d[5], d[6])) ||
           (kind == PLAN_OP_ADD && (d[1] > d[0] || d[0] % d[1])) ||
           (kind == PLAN_OP_NEGATE_HALF && (d[2] > d[1] || d[0] % d[3])) ||
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
    if (kind == PLAN_OP_HOST_ALL_REDUCE && d[3] != 7 && d[3] != 10 && d[3] != 23) {
        return g_strdup("mantissa_bits are 7 (bf16), 10 (fp16) or 23 (fp32)");
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
    if (dims_contradict(kind, d) || scales_contradict(kind, d)) {
        return g_strdup("its dims contradict each other");
    }
    if (lacks_what_it_reads(role, op, d)) {
        return g_strdup("it is not given what it reads");
    }
    if (kind == PLAN_OP_BATCH && d[2] && plan_op_operands(role, op)[1] == PLAN_NONE) {
        return g_strdup("tokens need targets");
    }
    char *fault = ranks_fault(plan, role, op, d);
    fault = fault ? fault : operands_fault(role, op, d);
    fault = fault ? fault : parts_fault(plan, role, op);
    return fault || !info->n_lists || plan_op_is_traced(kind) ? fault : list_fault(role, op, d);
}
