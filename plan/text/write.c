/* plan/text/write.c - a plan as text, of which its digest is taken. */
#include <string.h>

#include "plan/files/file.h"
#include "plan/files/ini.h"
#include "plan/text/format.h"
#include "plan/text/text.h"

#define U64 "%" G_GUINT64_FORMAT
#define I64 "%" G_GINT64_FORMAT

static void append_quoted_block(GString *text, const char *title, const char *content) {
    g_string_append_printf(text, "%s\n", title);
    g_auto(GStrv) lines = g_strsplit(content, "\n", -1);
    for (char **line = lines; *line; line++) {
        if (line[1] || **line) { /* a final newline makes no line of its own */
            g_string_append_printf(text, "|%s%s\n", **line ? " " : "", *line);
        }
    }
}

static void append_double(GString *text, double value) {
    char buffer[G_ASCII_DTOSTR_BUF_SIZE];
    g_string_append(text, plan_double_text(buffer, value));
}

/* A digest is taken of all that is written here, so instructions are put together without printf,
 * which would take ten times as long. */
static void append_number(GString *text, uint64_t number) {
    char digits[20]; /* as many as 2^64 has */
    unsigned first = sizeof digits;
    do {
        digits[--first] = (char)('0' + number % 10);
        number /= 10;
    } while (number);
    g_string_append_len(text, digits + first, (gssize)(sizeof digits - first));
}

static void append_signed(GString *text, int64_t number) {
    if (number < 0) {
        g_string_append_c(text, '-');
    }
    append_number(text, number < 0 ? -(uint64_t)number : (uint64_t)number);
}

static void append_word(GString *text, const char *word) {
    g_string_append_c(text, ' ');
    g_string_append(text, word);
}

static void append_key(GString *text, const char *key) {
    append_word(text, key);
    g_string_append_c(text, '=');
}

static void append_numbered(GString *text, char letter, uint32_t id) {
    g_string_append_c(text, letter);
    append_number(text, id);
}

static void append_id(GString *text, char letter, uint32_t id) {
    g_string_append_c(text, ' ');
    if (id == PLAN_NONE) {
        g_string_append_c(text, '-');
    } else {
        append_numbered(text, letter, id);
    }
}

static void append_tables(const Plan *plan, GString *text) {
    g_string_append_printf(text, "modules %u\n", plan->n_modules);
    for (uint32_t i = 0; i < plan->n_modules; i++) {
        const PlanModule *m = &plan->modules[i];
        g_string_append_printf(text, "m%u", i);
        append_id(text, 'm', m->parent);
        g_string_append_printf(text, " %s %s\n", m->class_name, *m->name ? m->name : "-");
    }
    g_string_append_printf(text, "units %u\n", plan->n_units);
    for (uint32_t i = 0; i < plan->n_units; i++) {
        g_string_append_printf(text, "u%u " U64 " " U64 " %s\n", i, plan->units[i].elements,
                               plan->units[i].shard_elements, plan->units[i].name);
    }
    g_string_append_printf(text, "parameters %u\n", plan->n_parameters);
    for (uint32_t i = 0; i < plan->n_parameters; i++) {
        const PlanParameter *p = &plan->parameters[i];
        g_string_append_printf(text, "p%u u%u %s ", i, p->unit,
                               plan_dtype_name((PlanDtype)p->dtype));
        for (unsigned d = 0; d < p->n_dims; d++) {
            g_string_append_printf(text, "%s" I64, d ? "x" : "", p->dims[d]);
        }
        append_word(text, p->name);
        g_string_append(text, p->frozen ? " frozen" : "");
        g_string_append(text, p->four_bits ? " four_bits" : "");
        if (p->split != PLAN_SPLIT_NONE) {
            append_word(text, plan_split_name((PlanSplit)p->split));
        }
        g_string_append_c(text, '\n');
    }
}

static void append_calls(const Plan *plan, GString *text) {
    if (plan->n_calls) {
        g_string_append_printf(text, "calls %u\n", plan->n_calls);
    }
    for (uint32_t i = 0; i < plan->n_calls; i++) {
        g_string_append_printf(text, "c%u %s\n", i + 1, plan->calls[i]);
    }
}

static void append_ranks(const PlanRole *role, GString *text) {
    for (uint32_t i = 0; i < role->n_ranks;) {
        uint32_t first = role->ranks[i], last = first;
        while (++i < role->n_ranks && role->ranks[i] == last + 1) {
            last++;
        }
        g_string_append_printf(text, "%s%u", text->str[text->len - 1] == ' ' ? "" : ",", first);
        if (last > first) {
            g_string_append_printf(text, "-%u", last);
        }
    }
}

static void append_buffers(const Plan *plan, const PlanRole *role, GString *text) {
    g_string_append_printf(text, "buffers %u\n", role->n_buffers);
    for (uint32_t i = 0; i < role->n_buffers; i++) {
        const PlanBuffer *b = &role->buffers[i];
        append_numbered(text, 'b', i);
        g_string_append_c(text, ' ');
        append_number(text, b->bytes);
        append_word(text, plan_dtype_name((PlanDtype)b->dtype));
        append_word(text, plan_subcategory_name((PlanSubcategory)b->sub));
        append_word(text, plan->lanes[b->lane]);
        append_id(text, 'u', b->unit);
        g_string_append_c(text, ' ');
        for (unsigned s = 0; s < PLAN_N_SECTIONS; s++) {
            if (b->carried >> s & 1) {
                g_string_append_c(text, PLAN_TEXT_CARRIED[s]);
            }
        }
        g_string_append(text, b->carried ? "" : "-");
        append_word(text, b->name);
        g_string_append_c(text, '\n');
    }
}

static void append_operand(const PlanRole *role, PlanOperand operand, GString *text) {
    if (operand.buffer == PLAN_NONE) {
        g_string_append_c(text, '-');
        return;
    }
    const PlanBuffer *b = &role->buffers[operand.buffer];
    append_numbered(text, 'b', operand.buffer);
    if (operand.offset_bytes) {
        g_string_append_c(text, '+');
        append_number(text, operand.offset_bytes);
    }
    if (operand.offset_bytes + operand.elements * plan_dtype_bytes((PlanDtype)b->dtype) !=
        b->bytes) {
        g_string_append_c(text, '[');
        append_number(text, operand.elements);
        g_string_append_c(text, ']');
    }
    if (operand.rows) {
        append_numbered(text, '/', operand.rows);
    }
}

static void append_op(const PlanRole *role, const PlanOp *op, GString *text) {
    const PlanOpInfo *info = plan_op_info((PlanOpKind)op->kind);
    append_word(text, info->name);
    if (op->axis != PLAN_AXIS_NONE) {
        append_key(text, "axis");
        g_string_append(text, plan_axis_name((PlanAxis)op->axis));
    }
    for (unsigned i = 0; i < info->n_dims; i++) {
        append_key(text, info->dims[i]);
        append_signed(text, plan_op_dims(role, op)[i]);
    }
    for (unsigned i = 0; i < info->n_attrs; i++) {
        append_key(text, info->attrs[i]);
        append_double(text, plan_op_attrs(role, op)[i]);
    }
    unsigned length = plan_op_list_length(info, op->n_operands), at = 0;
    for (unsigned slot = 0; slot < info->n_slots; slot++) {
        unsigned n = info->slots[slot].flags & PLAN_SLOT_LIST ? length : 1;
        append_key(text, info->slots[slot].name);
        for (unsigned i = 0; i < n; i++) {
            if (i) {
                g_string_append_c(text, ',');
            }
            append_operand(role, plan_op_operand(role, op, at++), text);
        }
    }
}

static void append_event(const PlanInstr *instr, GString *text) {
    append_id(text, 'e', instr->arg);
    if (instr->before) {
        g_string_append_c(text, '@');
        append_numbered(text, '-', instr->before);
    }
}

void plan_text_append_instr(const Plan *plan, const PlanRole *role, const PlanInstr *instr,
                            GString *text) {
    const char *lane = plan->lanes[instr->lane];
    g_string_append(text, plan_instr_name((PlanInstrKind)instr->kind));
    switch ((PlanInstrKind)instr->kind) {
    case PLAN_ALLOC:
    case PLAN_FREE:
        append_id(text, 'b', instr->arg);
        return;
    case PLAN_MARK:
        append_id(text, 'b', instr->arg);
        append_word(text, lane);
        return;
    case PLAN_LAUNCH:
        append_word(text, lane);
        append_op(role, &role->ops[instr->arg], text);
        return;
    case PLAN_HOST_OP:
        append_op(role, &role->ops[instr->arg], text);
        return;
    case PLAN_RECORD:
    case PLAN_WAIT:
        append_word(text, lane);
        append_event(instr, text);
        return;
    case PLAN_HOST_WAIT:
        append_event(instr, text);
        return;
    case PLAN_N_INSTRS:
        break;
    }
    g_assert_not_reached();
}

static void append_section(const Plan *plan, const PlanRole *role, PlanSection section,
                           GString *text) {
    const PlanInstr *context = NULL;
    if (plan_section_repeats(role, section)) {
        g_string_append_printf(text, "section %s = %s\n", plan_section_name(section),
                               plan_section_name(section - 1));
        return;
    }
    g_string_append_printf(text, "section %s %u\n", plan_section_name(section),
                           role->n_instrs[section]);
    for (uint32_t i = 0; i < role->n_instrs[section]; i++) {
        const PlanInstr *instr = &role->sections[section][i];
        if (!context || context->phase != instr->phase || context->unit != instr->unit ||
            context->module != instr->module) {
            g_string_append_c(text, '@');
            g_string_append(text, plan_phase_name((PlanPhase)instr->phase));
            append_id(text, 'u', instr->unit);
            append_id(text, 'm', instr->module);
            g_string_append_c(text, '\n');
        }
        context = instr;
        plan_text_append_instr(plan, role, instr, text);
        g_string_append_c(text, '\n');
    }
}

static void append_mesh(const Plan *plan, GString *text) {
    g_string_append(text, "mesh");
    for (PlanAxis axis = PLAN_TEXT_FIRST_AXIS; axis <= PLAN_TEXT_LAST_AXIS; axis++) {
        if (plan_text_always_has(axis) || plan->axes[axis] > 1) {
            append_key(text, plan_axis_name(axis));
            append_number(text, plan->axes[axis]);
        }
    }
    g_string_append_c(text, '\n');
}

void plan_text_append_program(const Plan *plan, GString *text) {
    g_assert(!plan->for_one);
    append_mesh(plan, text);
    g_string_append(text, "lanes");
    for (uint32_t i = 0; i < plan->n_lanes; i++) {
        g_string_append_printf(text, " %s", plan->lanes[i]);
    }
    g_string_append_c(text, '\n');
    append_tables(plan, text);
    append_calls(plan, text);
    g_string_append_printf(text, "roles %u\n", plan->n_roles);
    for (uint32_t i = 0; i < plan->n_roles; i++) {
        const PlanRole *role = &plan->roles[i];
        g_string_append_printf(text, "role %u ranks ", i);
        append_ranks(role, text);
        g_string_append_printf(text, "\nowns " U64 "\nloss", role->n_parameter_elements);
        for (uint32_t l = 0; l < role->n_loss_ops; l++) {
            append_id(text, 'o', role->loss_ops[l]);
        }
        g_string_append_c(text, '\n');
        append_buffers(plan, role, text);
        for (PlanSection s = 0; s < PLAN_N_SECTIONS; s++) {
            append_section(plan, role, s, text);
        }
    }
    g_string_append(text, "end\n");
}

GString *plan_text(const Plan *plan) {
    GString *text = g_string_sized_new(1 << 20);
    g_string_append_printf(text, PLAN_TEXT_MAGIC " %d\ntitle %s\ntokens_per_rank " U64 "\n",
                           PLAN_TEXT_VERSION, plan->title, plan->tokens_per_rank);
    append_quoted_block(text, "network", plan->network);
    append_quoted_block(text, "strategy", plan->strategy);
    plan_text_append_program(plan, text);
    return text;
}

bool plan_write_file(const Plan *plan, const char *path, GError **error) {
    g_autoptr(GString) text = plan_text(plan);
    int failed = plan_file_write(path, text->str, text->len);
    if (failed) {
        g_set_error(error, PLAN_ERROR, PLAN_ERROR_FILE, "%s: cannot be written: %s", path,
                    g_strerror(failed));
    }
    return !failed;
}
