/* cli/plan/memory.c - the bytes at a plan's peak, added up group by group.
 *
 * Buffers of one subcategory, name (or op that makes them), size and dtype are a group: count x
 * elements x bytes of an element. The sums are taken from the instructions, so they are what a
 * device allocates.
 */
#include "cli/plan/memory.h"

#include <string.h>

#include "cli/say/prose.h"
#include "trace/scale.h"

#define U64 G_GUINT64_FORMAT

typedef struct {
    const PlanBuffer *like;
    char *name;
    uint64_t count;
} Group;

/* ---- names ---------------------------------------------------------------------------------- */

/* "layers.7.ln_1.weight" is one of "layers.*.ln_1.weight". */
static char *without_numbers(const char *name) {
    GString *text = g_string_new(NULL);
    g_auto(GStrv) words = g_strsplit(name, ".", -1);
    for (char **word = words; *word; word++) {
        bool is_number = **word && strspn(*word, "0123456789") == strlen(*word);
        g_string_append_printf(text, "%s%s", word == words ? "" : ".", is_number ? "*" : *word);
    }
    return g_string_free(text, FALSE);
}

/* The op that writes each buffer first; PLAN_N_OP_KINDS: none. */
static uint16_t *find_makers(const PlanRole *role) {
    uint16_t *makers = g_new(uint16_t, role->n_buffers);
    for (uint32_t b = 0; b < role->n_buffers; b++) {
        makers[b] = PLAN_N_OP_KINDS;
    }
    for (uint32_t i = 0; i < role->n_ops; i++) {
        const PlanOp *op = &role->ops[i];
        const PlanOpInfo *info = plan_op_info((PlanOpKind)op->kind);
        for (uint32_t o = 0; o < op->n_operands; o++) {
            unsigned slot = plan_op_slot_of(info, op->n_operands, o);
            uint32_t buffer = plan_op_buffer(role, op, o);
            if (buffer != PLAN_NONE && info->slots[slot].flags & PLAN_SLOT_WRITE &&
                makers[buffer] == PLAN_N_OP_KINDS) {
                makers[buffer] = op->kind;
            }
        }
    }
    return makers;
}

/* What ops make is named after them, the rest by itself. */
static char *group_name(const PlanBuffer *buffer, uint16_t maker) {
    bool is_made = buffer->sub == PLAN_ACTIVATIONS_SAVED || buffer->sub == PLAN_TEMPORARY_OP;
    return is_made && maker != PLAN_N_OP_KINDS
               ? g_strdup_printf("%s of %s", buffer->name, plan_op_info((PlanOpKind)maker)->name)
               : without_numbers(buffer->name);
}

/* ---- groups --------------------------------------------------------------------------------- */

static bool is_like(const Group *group, const PlanBuffer *b, const char *name) {
    const PlanBuffer *a = group->like;
    return a->sub == b->sub && a->bytes == b->bytes && a->dtype == b->dtype &&
           g_str_equal(group->name, name);
}

static void clear_group(gpointer data) {
    g_free(((Group *)data)->name);
}

static gint by_category(gconstpointer a, gconstpointer b) {
    const PlanBuffer *p = ((const Group *)a)->like, *q = ((const Group *)b)->like;
    uint64_t m = p->bytes * ((const Group *)a)->count, n = q->bytes * ((const Group *)b)->count;
    return p->sub != q->sub ? (p->sub < q->sub ? -1 : 1) : m > n ? -1 : m < n;
}

/* Plays allocations from the start of a section on; stops at instruction `until`. Returns the most
 * bytes that lived at once and when. */
static uint64_t play(const PlanRole *role, PlanSection section, uint32_t until, bool *live,
                     uint64_t *bytes, uint32_t *ret_peak) {
    uint64_t most = 0;
    for (uint32_t i = 0; i < role->n_instrs[section] && i <= until; i++) {
        const PlanInstr *instr = &role->sections[section][i];
        if (instr->kind != PLAN_ALLOC && instr->kind != PLAN_FREE) {
            continue;
        }
        live[instr->arg] = instr->kind == PLAN_ALLOC;
        *bytes += instr->kind == PLAN_ALLOC ? role->buffers[instr->arg].bytes
                                            : -role->buffers[instr->arg].bytes;
        if (*bytes > most) {
            most = *bytes;
            *ret_peak = i;
        }
    }
    return most;
}

static GArray *group(const PlanRole *role, const bool *live) {
    GArray *groups = g_array_new(FALSE, FALSE, sizeof(Group));
    g_autofree uint16_t *makers = find_makers(role);
    g_array_set_clear_func(groups, clear_group);
    for (uint32_t b = 0; b < role->n_buffers; b++) {
        guint i = 0;
        if (!live[b]) {
            continue;
        }
        g_autofree char *name = group_name(&role->buffers[b], makers[b]);
        while (i < groups->len &&
               !is_like(&g_array_index(groups, Group, i), &role->buffers[b], name)) {
            i++;
        }
        if (i == groups->len) {
            Group new_group = {&role->buffers[b], g_steal_pointer(&name), 0};
            g_array_append_val(groups, new_group);
        }
        g_array_index(groups, Group, i).count++;
    }
    g_array_sort(groups, by_category);
    return groups;
}

static void print_groups(const GArray *groups, uint64_t total) {
    uint64_t sums[PLAN_N_SUBCATEGORIES] = {0};
    for (guint i = 0; i < groups->len; i++) {
        const Group *g = &g_array_index(groups, Group, i);
        sums[g->like->sub] += g->count * g->like->bytes;
    }
    for (guint i = 0; i < groups->len; i++) {
        const Group *g = &g_array_index(groups, Group, i);
        const PlanBuffer *b = g->like;
        uint64_t size = plan_dtype_bytes((PlanDtype)b->dtype);
        if (i == 0 || g_array_index(groups, Group, i - 1).like->sub != b->sub) {
            cli_say("%-46s %20" U64 " bytes\n", plan_subcategory_name((PlanSubcategory)b->sub),
                    sums[b->sub]);
        }
        cli_say("  %-30s %6" U64 " x %12" U64 " %-5s x %" U64 " B = %14" U64 "\n", g->name,
                g->count, b->bytes / size, plan_dtype_name((PlanDtype)b->dtype), size,
                g->count * b->bytes);
    }
    g_autofree char *in_all = trace_bytes_text((double)total);
    cli_say("%-46s %20" U64 " bytes (%s)\n", "in all", total, in_all);
}

void cli_print_memory(const Plan *plan) {
    const PlanRole *role = &plan->roles[0];
    g_autofree bool *live = g_new0(bool, role->n_buffers);
    g_autofree bool *at_start = g_new0(bool, role->n_buffers);
    uint64_t bytes = 0, most, start;
    uint32_t peak = 0, ignored = 0;
    for (PlanSection s = 0; s < PLAN_SECTION_STEADY; s++) {
        play(role, s, UINT32_MAX, live, &bytes, &ignored);
    }
    memcpy(at_start, live, role->n_buffers * sizeof *live);
    start = bytes;
    most = play(role, PLAN_SECTION_STEADY, UINT32_MAX, live, &bytes, &peak);
    memcpy(live, at_start, role->n_buffers * sizeof *live);
    bytes = start;
    play(role, PLAN_SECTION_STEADY, peak, live, &bytes, &ignored);
    const PlanInstr *instr = &role->sections[PLAN_SECTION_STEADY][peak];
    cli_say("%s\nrank 0 at the peak of a steady step: instruction %u of %u, %s%s%s\n", plan->title,
            peak, role->n_instrs[PLAN_SECTION_STEADY], plan_phase_name((PlanPhase)instr->phase),
            instr->unit == PLAN_NONE ? "" : " of unit ",
            instr->unit == PLAN_NONE ? "" : plan->units[instr->unit].name);
    g_autoptr(GArray) groups = group(role, live);
    print_groups(groups, most);
    cli_say("%-46s %20" U64 " bytes\n", "between steps", start);
}
