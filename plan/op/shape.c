#include "plan/op/shape.h"

#include <string.h>

#include "plan/mesh.h"
#include "plan/op/dims.h"
#include "plan/op/float8.h"
#include "plan/op/names.h"

/* A matrix r x c of each head of HEADS_MATMUL in one of the layouts of ops.def. */
static uint64_t heads_elements(const uint64_t *d, uint64_t r, uint64_t c, uint64_t layout,
                               uint64_t stride) {
    uint64_t batch = d[HEADS_MATMUL_BATCH], heads = d[HEADS_MATMUL_HEADS];
    switch (layout) {
    case 0:
    case 1:
        return plan_size_times(plan_size_times(batch, heads), plan_size_times(r, c));
    case 2:
        return plan_size_span(plan_size_times(batch, r), stride, plan_size_times(heads, c));
    case 3:
        return plan_size_span(plan_size_times(batch, c), stride, plan_size_times(heads, r));
    case 4:
        return plan_size_span(plan_size_times(plan_size_times(batch, heads), r), stride, c);
    case 5:
        return plan_size_span(plan_size_times(plan_size_times(batch, heads), c), stride, r);
    default:
        return UINT64_MAX;
    }
}

static uint64_t matmul_elements(const uint64_t *d, unsigned slot) {
    uint64_t m = d[HEADS_MATMUL_M], n = d[HEADS_MATMUL_N], k = d[HEADS_MATMUL_K];
    uint64_t y_layout = d[HEADS_MATMUL_Y_LAYOUT];
    switch (slot) {
    case HEADS_MATMUL_A:
        return heads_elements(d, m, k, d[HEADS_MATMUL_A_LAYOUT], d[HEADS_MATMUL_A_STRIDE]);
    case HEADS_MATMUL_B:
        return heads_elements(d, k, n, d[HEADS_MATMUL_B_LAYOUT], d[HEADS_MATMUL_B_STRIDE]);
    default: /* y, whose rows lie side by side */
        return heads_elements(d, m, n, y_layout,
                              plan_size_times(d[HEADS_MATMUL_HEADS], y_layout == 2 ? n : m));
    }
}

/* Head by head, or rows that lie apart. */
static uint64_t heads_copy_elements(const uint64_t *d) {
    uint64_t rows = plan_size_times(d[HEADS_COPY_BATCH], d[HEADS_COPY_SEQ]);
    uint64_t row = plan_size_times(d[HEADS_COPY_HEADS], d[HEADS_COPY_DIM]);
    bool is_back = d[HEADS_COPY_BACK];
    return is_back ? plan_size_times(rows, row) : plan_size_span(rows, d[HEADS_COPY_STRIDE], row);
}

/* Elements of lse, one for each row of scores. Attention's forward and backward have the same
 * dims. */
static uint64_t lse_elements(const uint64_t *d) {
    return d[ATTENTION_LSE_STRIDE] < d[ATTENTION_SEQ]
               ? UINT64_MAX
               : plan_size_times(plan_size_times(d[ATTENTION_BATCH], d[ATTENTION_HEADS]),
                                 d[ATTENTION_LSE_STRIDE]);
}

/* One for all sequences; a window's is a mask that all heads share. */
static uint64_t bias_elements(const uint64_t *d) {
    return plan_size_times(d[ATTENTION_CAUSAL] > 1 ? d[ATTENTION_BATCH] : d[ATTENTION_HEADS],
                           plan_size_times(d[ATTENTION_SEQ], d[ATTENTION_SEQ]));
}

static uint64_t latent_v_elements(const uint64_t *d) {
    uint64_t rows =
        plan_size_times(d[LATENT_ATTENTION_BATCH],
                        plan_size_times(d[LATENT_ATTENTION_HEADS], d[LATENT_ATTENTION_SEQ]));
    return plan_size_plus(d[LATENT_ATTENTION_FROM], plan_size_span(rows, d[LATENT_ATTENTION_V_ROW],
                                                                   d[LATENT_ATTENTION_V_DIM]));
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
           (kind == PLAN_OP_BATCH && d[BATCH_BOUND] > 0);
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
        if (o->elements % d[GATHER_COPY_OUT_RANKS]) {
            *ret_fault = "a gathered parameter does not divide by the ranks";
            return UINT64_MAX;
        }
        return count / d[GATHER_COPY_OUT_RANKS];
    }
    if (op->kind == PLAN_OP_REDUCE_COPY_IN) {
        if (!o->rows || o->elements % o->rows) {
            *ret_fault = "a gradient needs /ROWS that divide its elements";
            return UINT64_MAX;
        }
        return plan_size_times((o->rows + d[REDUCE_COPY_IN_RANKS] - 1) / d[REDUCE_COPY_IN_RANKS],
                               o->elements / o->rows);
    }
    if (op->kind == PLAN_OP_CONCAT_COLUMNS && o->elements % d[CONCAT_COLUMNS_ROWS]) {
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
    if (!fault && joins &&
        total != plan_size_times(d[CONCAT_COLUMNS_ROWS], d[CONCAT_COLUMNS_COLS])) {
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

/* What is made as it is read is made of what the kernel is given. */
static bool lacks_what_it_reads(const PlanRole *role, const PlanOp *op, const uint64_t *d) {
    bool makes = op->kind == PLAN_OP_FLOAT8_SCALE || op->kind == PLAN_OP_FLOAT8_CAST;
    const PlanRef *operands = plan_op_operands(role, op);
    bool has_more = makes && operands[FLOAT8_CAST_MORE] != PLAN_NONE;
    bool has_norm = makes && operands[FLOAT8_CAST_WEIGHT] != PLAN_NONE &&
                    operands[FLOAT8_CAST_RSTD] != PLAN_NONE;
    bool scales = op->kind == PLAN_OP_FLOAT8_PASS && d[FLOAT8_PASS_STEP] == PLAN_FLOAT8_TIMES_SCALE;
    return (makes && d[FLOAT8_CAST_MADE] == PLAN_FLOAT8_BY_SWIGLU && !has_more) ||
           (makes && d[FLOAT8_CAST_MADE] == PLAN_FLOAT8_BY_NORM && !has_norm) ||
           (scales && operands[FLOAT8_PASS_SCALE] == PLAN_NONE);
}

/* What an op says of ranks is what the mesh says. */
static char *ranks_fault(const Plan *plan, const PlanRole *role, const PlanOp *op,
                         const uint64_t *d) {
    PlanOpKind kind = (PlanOpKind)op->kind;
    const PlanOpInfo *info = plan_op_info(kind);
    bool in_parts = kind == PLAN_OP_ALL_GATHER || kind == PLAN_OP_REDUCE_SCATTER;
    if (info->op_class == PLAN_CLASS_COLLECTIVE &&
        (d[ALL_GATHER_RANKS] != plan->axes[op->axis] ||
         (in_parts && d[ALL_GATHER_ELEMENTS] % d[ALL_GATHER_RANKS]))) {
        return g_strdup_printf("its ranks are not the %u of axis %s, or do not divide its elements",
                               plan->axes[op->axis], plan_axis_name((PlanAxis)op->axis));
    }
    if (info->op_class == PLAN_CLASS_COLLECTIVE && mixes_dtypes(role, op)) {
        return g_strdup("its tensors are of two dtypes");
    }
    if (plan_op_is_of_stages(kind)) {
        uint64_t place = plan_rank_on_axis(plan, role->ranks[0], PLAN_AXIS_PIPELINE);
        bool is_next = (d[SEND_PEER] + 1) % d[SEND_RANKS] == place ||
                       d[SEND_PEER] == (place + 1) % d[SEND_RANKS];
        if (op->axis != PLAN_AXIS_PIPELINE || d[SEND_PEER] >= d[SEND_RANKS] ||
            d[SEND_PEER] == place || !is_next) {
            return g_strdup("its peer is no neighbour on axis pipeline");
        }
    }
    if (kind == PLAN_OP_HOST_ALL_REDUCE &&
        (op->axis == PLAN_AXIS_NONE || d[HOST_ALL_REDUCE_RANKS] != plan->axes[op->axis])) {
        return g_strdup("its ranks are not those of an axis");
    }
    if (kind == PLAN_OP_HOST_ROUND && d[HOST_ROUND_MANTISSA_BITS] != 7 &&
        d[HOST_ROUND_MANTISSA_BITS] != 10) {
        return g_strdup("mantissa_bits are 7 (bf16) or 10 (fp16)");
    }
    if (kind == PLAN_OP_HOST_ALL_REDUCE && d[HOST_ALL_REDUCE_MANTISSA_BITS] != 7 &&
        d[HOST_ALL_REDUCE_MANTISSA_BITS] != 10 && d[HOST_ALL_REDUCE_MANTISSA_BITS] != 23) {
        return g_strdup("mantissa_bits are 7 (bf16), 10 (fp16) or 23 (fp32)");
    }
    bool asks_rank =
        kind == PLAN_OP_GATHER_COPY_IN || kind == PLAN_OP_FLOAT8_COPY_IN || kind == PLAN_OP_PART;
    if ((asks_rank && d[PART_RANKS] != plan->axes[op->axis]) ||
        (kind == PLAN_OP_OWN_PARTS && d[OWN_PARTS_RANKS] != plan->axes[op->axis])) {
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
    if (plan_op_is_init(kind) && d[INIT_NORMAL_PARAMETER] >= plan->n_parameters) {
        return g_strdup_printf("there is no parameter %" G_GUINT64_FORMAT,
                               d[INIT_NORMAL_PARAMETER]);
    }
    if (info->op_class == PLAN_CLASS_ATTENTION && d[ATTENTION_HEADS] % d[ATTENTION_KV_HEADS]) {
        return g_strdup("heads do not divide by kv_heads");
    }
    if (plan_dims_contradict(kind, d)) {
        return g_strdup("its dims contradict each other");
    }
    if (lacks_what_it_reads(role, op, d)) {
        return g_strdup("it is not given what it reads");
    }
    if (kind == PLAN_OP_BATCH && d[BATCH_BOUND] &&
        plan_op_operands(role, op)[BATCH_Y] == PLAN_NONE) {
        return g_strdup("tokens need targets");
    }
    if (kind == PLAN_OP_BATCH && plan->axes[PLAN_AXIS_CONTEXT] > 1 &&
        d[BATCH_TARGET_ELEMENTS] != d[BATCH_SAMPLE_ELEMENTS]) {
        return g_strdup("ranks share its tokens, and its targets are not as many");
    }
    char *fault = ranks_fault(plan, role, op, d);
    fault = fault ? fault : operands_fault(role, op, d);
    fault = fault ? fault : parts_fault(plan, role, op);
    return fault || !info->n_lists || plan_op_is_traced(kind) ? fault : list_fault(role, op, d);
}
