#include "trace/from-plan.h"

#include <string.h>

#include "plan/files/ini.h"
#include "plan/mesh.h"
#include "plan/op/names.h"

/* A trace's header holds lines, a plan holds whole files: "key=value" of each entry, in their
 * order, with the spaces inside values gone. A text that is no ini file (a plan made by hand) is
 * left out. */
static void set_folded(Trace *trace, const char *key, const char *text) {
    g_autoptr(PlanIni) ini = text ? plan_ini_read(text, strlen(text), key, NULL) : NULL;
    if (!ini || !ini->n_entries) {
        return;
    }
    g_autoptr(GString) line = g_string_new(NULL);
    for (unsigned i = 0; i < ini->n_entries; i++) {
        g_auto(GStrv) words = g_strsplit_set(ini->entries[i].value, " \t", -1);
        g_autofree char *value = g_strjoinv("", words);
        g_string_append_printf(line, "%s%s=%s", i ? " " : "", ini->entries[i].key, value);
    }
    trace_set(trace, key, line->str);
}

/* Of a traced network, whose text is no ini file, where it lies: the second line of its text. */
static void set_network(Trace *trace, const char *text) {
    static const char magic[] = "traced-network ", second[] = "\n# file ";
    const char *line = text && g_str_has_prefix(text, magic) ? strchr(text, '\n') : NULL;
    if (!line || !g_str_has_prefix(line, second)) {
        set_folded(trace, "network", text);
        return;
    }
    const char *path = line + strlen(second);
    g_autofree char *own = g_strndup(path, strcspn(path, "\n"));
    g_autofree char *escaped = g_uri_escape_string(own, "/", TRUE);
    g_autofree char *named = g_strconcat("traced=", escaped, NULL);
    trace_set(trace, "network", named);
}

static TraceWhat what_of(PlanInstrKind kind) {
    switch (kind) {
    case PLAN_ALLOC:
        return TRACE_ALLOC;
    case PLAN_FREE:
        return TRACE_FREE;
    case PLAN_MARK:
        return TRACE_MARK;
    case PLAN_LAUNCH:
        return TRACE_OP;
    case PLAN_RECORD:
        return TRACE_RECORD;
    case PLAN_WAIT:
        return TRACE_WAIT;
    case PLAN_HOST_WAIT:
        return TRACE_HOST_WAIT;
    case PLAN_HOST_OP:
        return TRACE_HOST_OP;
    case PLAN_N_INSTRS:
        break;
    }
    g_assert_not_reached();
}

static TraceSection section_of(PlanSection section) {
    switch (section) {
    case PLAN_SECTION_CONSTRUCT:
        return TRACE_SECTION_CONSTRUCT;
    case PLAN_SECTION_FIRST:
        return TRACE_SECTION_FIRST;
    case PLAN_SECTION_SECOND:
        return TRACE_SECTION_SECOND;
    case PLAN_SECTION_STEADY:
        return TRACE_SECTION_STEADY;
    case PLAN_N_SECTIONS:
        break;
    }
    g_assert_not_reached();
}

/* Ops that only move bytes: to and from the host, or from one layout to another, which are named so
 * (gather_copy_in and the like). */
static TraceKindClass kind_class_of(PlanOpKind kind) {
    if (plan_op_is_collective(kind)) {
        return TRACE_KIND_COLLECTIVE;
    }
    const PlanOpInfo *info = plan_op_info(kind);
    bool copies = info->op_class == PLAN_CLASS_HOST_LINK || strstr(info->name, "_copy_") != NULL;
    return copies ? TRACE_KIND_COPY : TRACE_KIND_COMPUTE;
}

static void describe_instruction(Trace *trace, uint32_t role_number, const PlanRole *role,
                                 PlanSection section, uint32_t index) {
    const PlanInstr *instr = &role->sections[section][index];
    TraceInstruction row = {
        .what = what_of(instr->kind),
        .section = section_of(section),
        .lane = instr->lane,
        .phase = instr->phase,
        .index = index,
        .kind = TRACE_NONE,
        .unit = instr->unit == PLAN_NONE ? TRACE_NONE : instr->unit,
        .module = instr->module == PLAN_NONE ? TRACE_NONE : instr->module,
        .category = TRACE_NONE,
        .buffer = TRACE_NONE,
    };
    if (row.what == TRACE_OP || row.what == TRACE_HOST_OP) {
        const PlanOp *op = &role->ops[instr->arg];
        row.kind = op->kind;
        if (plan_op_is_collective(op->kind)) {
            row.bytes =
                (uint64_t)plan_op_dims(role, op)[COLLECTIVE_ELEMENTS] * plan_dtype_bytes(op->dtype);
        }
    } else if (row.what == TRACE_ALLOC || row.what == TRACE_FREE) {
        row.category = role->buffers[instr->arg].sub;
        row.buffer = instr->arg;
        row.bytes = role->buffers[instr->arg].bytes;
    }
    trace_add_instruction(trace, role_number, &row);
}

void trace_name_plan(Trace *trace, const Plan *plan) {
    if (plan->is_read) {
        trace_set(trace, "digest", plan_digest(plan));
    }
    if (plan->title) {
        trace_set(trace, "title", plan->title);
    }
    set_network(trace, plan->network);
    set_folded(trace, "strategy", plan->strategy);
    trace_set_uint(trace, "world", plan->world);
    if (plan->axes[PLAN_AXIS_PIPELINE] > 1) {
        trace_set_uint(trace, "stages", plan->axes[PLAN_AXIS_PIPELINE]);
    }
    if (plan_stages_of_rank(plan) > 1) {
        trace_set_uint(trace, "stages_each", plan_stages_of_rank(plan));
    }
}

void trace_describe_plan(Trace *trace, const Plan *plan) {
    g_assert(!plan->for_one);
    trace_set(trace, "digest", plan_digest(plan));
    trace_name_plan(trace, plan);
    for (uint32_t i = 0; i < plan->n_lanes; i++) {
        trace_add_lane(trace, plan->lanes[i]);
    }
    for (uint32_t i = 0; i < plan->n_units; i++) {
        trace_add_unit(trace, plan->units[i].name);
    }
    for (uint32_t i = 0; i < plan->n_modules; i++) {
        trace_add_module(trace, plan->modules[i].name);
    }
    for (unsigned i = 0; i < PLAN_N_PHASES; i++) {
        trace_add_phase(trace, plan_phase_name(i));
    }
    for (unsigned i = 0; i < PLAN_N_SUBCATEGORIES; i++) {
        trace_add_category(trace, plan_subcategory_name(i));
    }
    for (unsigned i = 0; i < PLAN_N_OP_KINDS; i++) {
        trace_add_kind(trace, plan_op_info(i)->name, kind_class_of(i));
    }
    for (uint32_t number = 0; number < plan->n_roles; number++) {
        const PlanRole *role = &plan->roles[number];
        trace_add_role(trace);
        for (unsigned section = 0; section < PLAN_N_SECTIONS; section++) {
            for (uint32_t i = 0; i < role->n_instrs[section]; i++) {
                describe_instruction(trace, number, role, section, i);
            }
        }
    }
}
