/* cli/explain/tensors.c - which tensors buffers are, and of which modules. Modules that differ by a
 * number alone, as blocks do, are taken together: a user changes all of them or none.
 */
#include <string.h>

#include "cli/explain/private.h"
#include "trace/scale.h"

enum {
    MOST_TENSORS = 10
};

typedef struct {
    char *label;
    uint32_t category;
    guint n;
    uint64_t bytes;
} Tensors;

static void clear_tensors(gpointer data) {
    g_free(((Tensors *)data)->label);
}

/* "layers.3.norm" is "layers.*.norm". */
static char *without_numbers(const char *name) {
    g_auto(GStrv) words = g_strsplit(name, ".", -1);
    for (char **word = words; *word != NULL; word++) {
        if (**word != '\0' && strspn(*word, "0123456789") == strlen(*word)) {
            (*word)[0] = '*';
            (*word)[1] = '\0';
        }
    }
    return g_strjoinv(".", words);
}

static bool uses(const PlanRole *role, const PlanOp *op, uint32_t buffer) {
    for (uint32_t i = 0; i < op->n_operands; i++) {
        if (plan_op_buffer(role, op, i) == buffer) {
            return true;
        }
    }
    return false;
}

/* The first op to use what an instruction allocated: it writes it. NULL: none does. */
static const PlanInstr *writer_of(const PlanRole *role, const TraceInstruction *alloc) {
    const PlanInstr *section = role->sections[alloc->section];
    for (uint32_t i = alloc->index + 1; i < role->n_instrs[alloc->section]; i++) {
        bool is_op = section[i].kind == PLAN_LAUNCH || section[i].kind == PLAN_HOST_OP;
        if (is_op && uses(role, &role->ops[section[i].arg], alloc->buffer)) {
            return &section[i];
        }
    }
    return NULL;
}

/* "layers.*.mlp.up: y of linear". A traced network's buffer has the name of its op. */
static char *made_by(const Plan *plan, const PlanRole *role, const PlanInstr *writer,
                     const char *name) {
    const char *kind = plan_op_info((PlanOpKind)role->ops[writer->arg].kind)->name;
    const char *module = writer->module != PLAN_NONE ? plan->modules[writer->module].name : "";
    g_autofree char *modules = without_numbers(module);
    return g_strconcat(modules, *module != '\0' ? ": " : "", name,
                       g_str_has_prefix(kind, "traced_") ? "" : " of ",
                       g_str_has_prefix(kind, "traced_") ? "" : kind, NULL);
}

/* A parameter's name says its module. */
static char *label_of(const CliSubject *subject, uint32_t instruction) {
    const TraceInstruction *alloc =
        trace_instruction(subject->trace, subject->summary->role, instruction);
    const PlanRole *role = &subject->plan->roles[subject->summary->role];
    const char *name = role->buffers[alloc->buffer].name;
    const PlanInstr *writer = strchr(name, '.') == NULL ? writer_of(role, alloc) : NULL;
    return writer != NULL ? made_by(subject->plan, role, writer, name) : without_numbers(name);
}

static Tensors *find(GArray *all, GHashTable *places, uint32_t category, char *label) {
    g_autofree char *key = g_strdup_printf("%u %s", category, label);
    guint place = GPOINTER_TO_UINT(g_hash_table_lookup(places, key));
    if (place == 0) {
        Tensors fresh = {.label = g_strdup(label), .category = category};
        g_array_append_val(all, fresh);
        place = all->len;
        g_hash_table_insert(places, g_steal_pointer(&key), GUINT_TO_POINTER(place));
    }
    return &g_array_index(all, Tensors, place - 1);
}

static int compare(gconstpointer a, gconstpointer b) {
    const Tensors *x = a, *y = b;
    return x->bytes != y->bytes ? (x->bytes < y->bytes) - (x->bytes > y->bytes)
                                : strcmp(x->label, y->label);
}

static GArray *gather(const CliSubject *subject, const GArray *alive, const char *wanted) {
    g_autoptr(GHashTable) places = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    GArray *all = g_array_new(FALSE, FALSE, sizeof(Tensors));
    g_array_set_clear_func(all, clear_tensors);
    for (guint i = 0; i < alive->len; i++) {
        const ExplainAlive *entry = &g_array_index(alive, ExplainAlive, i);
        if (explain_belongs(subject->trace, entry->category, wanted)) {
            g_autofree char *label = label_of(subject, entry->instruction);
            Tensors *tensors = find(all, places, entry->category, label);
            tensors->n++;
            tensors->bytes += entry->bytes;
        }
    }
    g_array_sort(all, compare);
    return all;
}

void explain_append_tensors(GString *text, const CliSubject *subject, const GArray *alive,
                            const char *wanted) {
    if (subject->plan == NULL) {
        return;
    }
    g_autoptr(GArray) all = gather(subject, alive, wanted);
    g_string_append(text, "by tensor, with the module that makes it (* is any number)\n");
    uint64_t rest = 0;
    for (guint i = 0; i < all->len; i++) {
        const Tensors *tensors = &g_array_index(all, Tensors, i);
        g_autofree char *size = trace_bytes_text((double)tensors->bytes);
        if (i < MOST_TENSORS) {
            g_string_append_printf(text, "  %11s in %4u  %-22s %s\n", size, tensors->n,
                                   (char *)subject->trace->categories->pdata[tensors->category],
                                   tensors->label);
        } else {
            rest += tensors->bytes;
        }
    }
    if (all->len > MOST_TENSORS) {
        g_autofree char *size = trace_bytes_text((double)rest);
        g_string_append_printf(text, "  %11s in %u kind%s more\n", size, all->len - MOST_TENSORS,
                               all->len - MOST_TENSORS == 1 ? "" : "s");
    }
}
