/* plan/text/read-instr.c - the instructions of a plan's text: see read.c. */
#include <math.h>
#include <string.h>

#include "plan/files/ini.h"
#include "plan/text/reader-private.h"

static bool parse_operand(PlanReader *r, char *text, PlanOperand *ret) {
    *ret = (PlanOperand){.buffer = PLAN_NONE};
    if (g_str_equal(text, "-")) {
        return true;
    }
    char *rows = strchr(text, '/'), *elements = strchr(text, '['), *offset = strchr(text, '+');
    uint64_t value;
    if (rows) {
        *rows++ = 0;
        if (!plan_parse_u64(rows, &value) || value < 1 || value >= UINT32_MAX) {
            return plan_reader_fail(r, "'/%s': rows are a positive number", rows);
        }
        ret->rows = (uint32_t)value;
    }
    uint64_t given = UINT64_MAX;
    if (elements) {
        gsize n = strlen(elements);
        if (elements[n - 1] != ']') {
            return plan_reader_fail(r, "elements are written [NUMBER]");
        }
        elements[n - 1] = 0;
        *elements++ = 0;
        if (!plan_parse_u64(elements, &given) || given >= UINT64_MAX / 64) {
            return plan_reader_fail(r, "elements are written [NUMBER]");
        }
    }
    if (offset) {
        *offset++ = 0;
        if (!plan_parse_u64(offset, &ret->offset_bytes)) {
            return plan_reader_fail(r, "an offset is written +BYTES");
        }
    }
    if (!plan_reader_id(r, text, 'b', r->buffers->len, false, &ret->buffer)) {
        return false;
    }
    const PlanBuffer *b = &g_array_index(r->buffers, PlanBuffer, ret->buffer);
    uint64_t size = plan_dtype_bytes((PlanDtype)b->dtype);
    if (ret->offset_bytes > b->bytes || ret->offset_bytes % size) {
        return plan_reader_fail(r, "the offset lies beyond or within an element of b%u",
                                ret->buffer);
    }
    uint64_t room = (b->bytes - ret->offset_bytes) / size;
    ret->elements = given == UINT64_MAX ? room : given;
    return ret->elements <= room ||
           plan_reader_fail(r, "the operand reaches beyond b%u", ret->buffer);
}

/* As a role holds it. */
static PlanRef ref_of(PlanReader *r, PlanOperand operand) {
    const PlanBuffer *buffers = (const PlanBuffer *)(gpointer)r->buffers->data;
    if (plan_operand_is_whole(buffers, &operand)) {
        return operand.buffer;
    }
    g_array_append_val(r->parts, operand);
    return PLAN_PART + r->parts->len - 1;
}

/* The value of the next word, which must be "name=value". */
static char *value_of(PlanReader *r, const char *name_wanted) {
    char *w = plan_reader_word(r);
    gsize n = strlen(name_wanted);
    if (!w || strncmp(w, name_wanted, n) != 0 || w[n] != '=') {
        plan_reader_fail(r, "expected %s=..., not '%s'", name_wanted, w ? w : "");
        return NULL;
    }
    return w + n + 1;
}

static bool read_axis(PlanReader *r, PlanOp *op) {
    if (strncmp(r->cursor, "axis=", 5) != 0) {
        return true;
    }
    char *value = value_of(r, "axis");
    for (unsigned axis = PLAN_AXIS_NONE + 1; axis < PLAN_N_AXES; axis++) {
        if (g_str_equal(value, plan_axis_name((PlanAxis)axis))) {
            op->axis = (uint8_t)axis;
            return true;
        }
    }
    g_autoptr(GString) names = g_string_new(NULL);
    for (unsigned axis = PLAN_AXIS_NONE + 1; axis < PLAN_N_AXES; axis++) {
        g_string_append_printf(names, "%s%s", names->len ? ", " : "",
                               plan_axis_name((PlanAxis)axis));
    }
    return plan_reader_fail(r, "'%s' is no axis; they are %s", value, names->str);
}

/* What hides a score from softmax is written -inf. */
static bool parse_attr(const char *value, double *ret) {
    if (g_str_equal(value, "-inf")) {
        *ret = -INFINITY;
        return true;
    }
    return plan_parse_double(value, ret);
}

static bool read_shape_of_op(PlanReader *r, const PlanOpInfo *info) {
    for (unsigned i = 0; i < info->n_dims; i++) {
        char *value = value_of(r, info->dims[i]);
        uint64_t dim;
        if (!value) {
            return false;
        }
        if (!plan_parse_u64(value, &dim) || dim > INT64_MAX / 64) {
            return plan_reader_fail(r, "%s must be a whole number, not '%s'", info->dims[i], value);
        }
        int64_t signed_dim = (int64_t)dim;
        g_array_append_val(r->dims, signed_dim);
    }
    for (unsigned i = 0; i < info->n_attrs; i++) {
        char *value = value_of(r, info->attrs[i]);
        double attr;
        if (!value) {
            return false;
        }
        if (!parse_attr(value, &attr)) {
            return plan_reader_fail(r, "%s must be a number, not '%s'", info->attrs[i], value);
        }
        g_array_append_val(r->attrs, attr);
    }
    return true;
}

static bool read_slot(PlanReader *r, const PlanSlot *slot, PlanOp *op, unsigned *list_length) {
    char *value = value_of(r, slot->name);
    if (!value) {
        return false;
    }
    unsigned n = 0;
    for (char *next = value; next; n++) {
        char *text = next;
        next = strchr(text, ',');
        if (next) {
            *next++ = 0;
        }
        PlanOperand operand;
        if (!parse_operand(r, text, &operand)) {
            return false;
        }
        if (operand.buffer == PLAN_NONE && !(slot->flags & PLAN_SLOT_OPTIONAL)) {
            return plan_reader_fail(r, "%s must be given", slot->name);
        }
        if ((slot->flags & PLAN_SLOT_WRITE) && operand.buffer != PLAN_NONE && !op->dtype) {
            op->dtype = (uint8_t)(g_array_index(r->buffers, PlanBuffer, operand.buffer).dtype + 1);
        }
        if (r->parts->len == PLAN_READER_MAX_IDS) {
            return plan_reader_fail(r, "a role names at most %d parts of buffers",
                                    PLAN_READER_MAX_IDS);
        }
        PlanRef ref = ref_of(r, operand);
        g_array_append_val(r->operands, ref);
    }
    if (!(slot->flags & PLAN_SLOT_LIST)) {
        return n == 1 || plan_reader_fail(r, "%s is one operand, not %u", slot->name, n);
    }
    if (*list_length && *list_length != n) {
        return plan_reader_fail(r, "lists must be equally long: %s has %u, not %u", slot->name, n,
                                *list_length);
    }
    *list_length = n;
    return true;
}

static bool read_op(PlanReader *r, uint32_t *ret_id) {
    char *w = plan_reader_word(r);
    PlanOpKind kind;
    if (!w || !plan_op_kind_parse(w, &kind)) {
        return plan_reader_fail(
            r, "'%s' is no op kind of plan/op/ops.def or plan/op/collectives.def", w ? w : "");
    }
    const PlanOpInfo *info = plan_op_info(kind);
    PlanOp op = {.kind = (uint16_t)kind,
                 .operands = r->operands->len,
                 .dims = r->dims->len,
                 .attrs = r->attrs->len};
    unsigned list_length = 0;
    if (!read_axis(r, &op) || !read_shape_of_op(r, info)) {
        return false;
    }
    for (unsigned i = 0; i < info->n_slots; i++) {
        if (!read_slot(r, &info->slots[i], &op, &list_length)) {
            return false;
        }
    }
    op.n_operands = r->operands->len - op.operands;
    op.dtype = op.dtype ? (uint8_t)(op.dtype - 1) : (uint8_t)PLAN_FP32;
    if (plan_op_is_collective(kind) && op.axis == PLAN_AXIS_NONE) {
        return plan_reader_fail(r, "a collective names its axis, as axis=shard");
    }
    *ret_id = r->ops->len;
    g_array_append_val(r->ops, op);
    return true;
}

static bool parse_event(PlanReader *r, char *w, PlanInstr *instr) {
    char *at = w ? strchr(w, '@') : NULL;
    if (at) {
        uint64_t before;
        if (at[1] != '-' || !plan_parse_u64(at + 2, &before) || before < 1 ||
            before > PLAN_MAX_BEFORE || instr->kind == PLAN_RECORD) {
            return plan_reader_fail(r, "an earlier step's event is waited for as eN@-1 or eN@-2");
        }
        instr->before = (uint8_t)before;
        *at = 0;
    }
    if (!plan_reader_id(r, w, 'e', PLAN_READER_MAX_IDS, false, &instr->arg)) {
        return false;
    }
    r->role->n_events = MAX(r->role->n_events, instr->arg + 1);
    /* Events are numbered densely: an absurd number must not make an absurd table. */
    return r->role->n_events <= 65536 + 2 * r->number ||
           plan_reader_fail(r, "e%u: events are numbered from e0 without gaps", instr->arg);
}

static bool read_instr_of(PlanReader *r, PlanInstr *instr) {
    switch ((PlanInstrKind)instr->kind) {
    case PLAN_ALLOC:
    case PLAN_FREE:
    case PLAN_MARK:
        if (!plan_reader_id(r, plan_reader_word(r), 'b', r->buffers->len, false, &instr->arg)) {
            return false;
        }
        instr->lane = g_array_index(r->buffers, PlanBuffer, instr->arg).lane;
        return instr->kind != PLAN_MARK || plan_reader_lane(r, plan_reader_word(r), &instr->lane);
    case PLAN_LAUNCH:
        return plan_reader_lane(r, plan_reader_word(r), &instr->lane) && read_op(r, &instr->arg);
    case PLAN_RECORD:
    case PLAN_WAIT:
        return plan_reader_lane(r, plan_reader_word(r), &instr->lane) &&
               parse_event(r, plan_reader_word(r), instr);
    case PLAN_HOST_WAIT:
        return parse_event(r, plan_reader_word(r), instr);
    case PLAN_HOST_OP:
        return read_op(r, &instr->arg);
    case PLAN_N_INSTRS:
        break;
    }
    g_assert_not_reached();
}

static bool read_context(PlanReader *r, const char *phase, PlanInstr *context) {
    for (unsigned i = 0; i < PLAN_N_PHASES; i++) {
        if (g_str_equal(phase, plan_phase_name((PlanPhase)i))) {
            context->phase = (uint8_t)i;
            return plan_reader_id(r, plan_reader_word(r), 'u', r->plan->n_units, true,
                                  &context->unit) &&
                   plan_reader_id(r, plan_reader_word(r), 'm', r->plan->n_modules, true,
                                  &context->module) &&
                   plan_reader_end_of_line(r);
        }
    }
    return plan_reader_fail(r, "'%s' is no phase", phase);
}

static bool read_instr(PlanReader *r, const char *verb, PlanInstr *instr) {
    for (unsigned kind = 0; kind < PLAN_N_INSTRS; kind++) {
        if (g_str_equal(verb, plan_instr_name((PlanInstrKind)kind))) {
            instr->kind = (uint8_t)kind;
            return read_instr_of(r, instr) && plan_reader_end_of_line(r);
        }
    }
    return plan_reader_fail(r, "'%s' is no instruction", verb);
}

/* "section steady = second": the same program, which is held once. */
static bool read_repeat(PlanReader *r, PlanSection section) {
    PlanSection before = section - 1;
    if (section <= PLAN_SECTION_FIRST || !r->role->n_instrs[before]) {
        return plan_reader_fail(r, "section %s has no program before it to repeat",
                                plan_section_name(section));
    }
    char *w = plan_reader_word(r);
    if (!w || !g_str_equal(w, plan_section_name(before))) {
        return plan_reader_fail(r, "section %s can repeat %s only, not '%s'",
                                plan_section_name(section), plan_section_name(before), w ? w : "");
    }
    r->role->sections[section] = r->role->sections[before];
    r->role->n_instrs[section] = r->role->n_instrs[before];
    return plan_reader_end_of_line(r);
}

bool plan_reader_section(PlanReader *r, PlanSection section) {
    uint64_t n;
    if (!plan_reader_expect(r, "section") || !plan_reader_expect(r, plan_section_name(section))) {
        return false;
    }
    if (plan_reader_skip(r, "=")) {
        return read_repeat(r, section);
    }
    if (!plan_reader_number(r, "the number of instructions", PLAN_READER_MAX_IDS, &n) ||
        !plan_reader_end_of_line(r)) {
        return false;
    }
    g_autoptr(GArray) instrs = g_array_new(FALSE, FALSE, sizeof(PlanInstr));
    PlanInstr context = {.unit = PLAN_NONE, .module = PLAN_NONE};
    while (instrs->len < n) {
        if (!plan_reader_need_line(r, "an instruction")) {
            return false;
        }
        char *verb = plan_reader_word(r);
        if (!verb) {
            return plan_reader_fail(r, "an empty line where an instruction should stand");
        }
        if (*verb == '@') {
            if (!read_context(r, verb + 1, &context)) {
                return false;
            }
            continue;
        }
        PlanInstr instr = context;
        if (!read_instr(r, verb, &instr)) {
            return false;
        }
        g_array_append_val(instrs, instr);
    }
    r->role->sections[section] = plan_reader_take(r, instrs, &r->role->n_instrs[section]);
    return true;
}
