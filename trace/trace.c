#include "trace/trace.h"

#include <string.h>

#include "plan/mesh.h"
#include "plan/plan.h"
#include "trace/check-private.h"

G_DEFINE_QUARK(foreshard_trace_error, trace_error)

static const char *const what_names[TRACE_N_WHATS] = {
    [TRACE_OP] = "op",     [TRACE_HOST_OP] = "host_op",     [TRACE_ALLOC] = "alloc",
    [TRACE_FREE] = "free", [TRACE_MARK] = "mark",           [TRACE_RECORD] = "record",
    [TRACE_WAIT] = "wait", [TRACE_HOST_WAIT] = "host_wait",
};

static const char *const section_names[TRACE_N_SECTIONS] = {
    [TRACE_SECTION_CONSTRUCT] = "construct",
    [TRACE_SECTION_FIRST] = "first",
    [TRACE_SECTION_SECOND] = "second",
    [TRACE_SECTION_STEADY] = "steady",
};

static const char *const kind_class_names[TRACE_N_KIND_CLASSES] = {
    [TRACE_KIND_COMPUTE] = "compute",
    [TRACE_KIND_COLLECTIVE] = "collective",
    [TRACE_KIND_COPY] = "copy",
};

const char *trace_what_name(TraceWhat what) {
    g_assert(what < TRACE_N_WHATS);
    return what_names[what];
}

bool trace_category_is(const Trace *trace, uint32_t category, const char *name) {
    const char *full = trace->categories->pdata[category];
    gsize length = strlen(name);
    return strncmp(full, name, length) == 0 && (full[length] == '/' || full[length] == '\0');
}

char *trace_place_name(const Trace *trace, uint32_t phase, uint32_t unit) {
    const char *name = trace_name(trace->units, unit, NULL);
    return g_strconcat(trace->phases->pdata[phase], name != NULL ? " of unit " : "", name, NULL);
}

char *trace_step_name(int32_t step) {
    return step < 0 ? g_strdup("construction") : g_strdup_printf("step %d", step);
}

const char *trace_section_name(TraceSection section) {
    g_assert(section < TRACE_N_SECTIONS);
    return section_names[section];
}

const char *trace_kind_class_name(TraceKindClass kind_class) {
    g_assert(kind_class < TRACE_N_KIND_CLASSES);
    return kind_class_names[kind_class];
}

static void free_array(gpointer array) {
    g_array_unref((GArray *)array);
}

Trace *trace_new(void) {
    Trace *trace = g_new0(Trace, 1);
    trace->lanes = g_ptr_array_new();
    trace->units = g_ptr_array_new();
    trace->phases = g_ptr_array_new();
    trace->categories = g_ptr_array_new();
    trace->modules = g_ptr_array_new();
    trace->kinds = g_array_new(FALSE, FALSE, sizeof(TraceKind));
    trace->roles = g_ptr_array_new_with_free_func(free_array);
    trace->ranks = g_array_new(FALSE, FALSE, sizeof(TraceRank));
    trace->ops = g_array_new(FALSE, FALSE, sizeof(TraceOpRow));
    trace->memory = g_array_new(FALSE, FALSE, sizeof(TraceMemoryRow));
    trace->keys = g_ptr_array_new();
    trace->values = g_ptr_array_new();
    trace->strings = g_string_chunk_new(4096);
    return trace;
}

void trace_free(Trace *trace) {
    if (trace == NULL) {
        return;
    }
    g_ptr_array_unref(trace->lanes);
    g_ptr_array_unref(trace->units);
    g_ptr_array_unref(trace->phases);
    g_ptr_array_unref(trace->categories);
    g_ptr_array_unref(trace->modules);
    g_array_unref(trace->kinds);
    g_ptr_array_unref(trace->roles);
    g_array_unref(trace->ranks);
    g_array_unref(trace->ops);
    g_array_unref(trace->memory);
    g_ptr_array_unref(trace->keys);
    g_ptr_array_unref(trace->values);
    g_string_chunk_free(trace->strings);
    g_free(trace);
}

bool trace_is_key(const char *key) {
    if (!g_ascii_islower(key[0]) || g_str_equal(key, "tables")) {
        return false;
    }
    for (const char *c = key; *c != '\0'; c++) {
        if (!g_ascii_islower(*c) && !g_ascii_isdigit(*c) && strchr("_.-", *c) == NULL) {
            return false;
        }
    }
    return true;
}

void trace_set(Trace *trace, const char *key, const char *value) {
    g_assert(trace_is_key(key));
    char *copy = g_string_chunk_insert(trace->strings, value);
    for (guint i = 0; i < trace->keys->len; i++) {
        if (g_str_equal(trace->keys->pdata[i], key)) {
            trace->values->pdata[i] = copy;
            return;
        }
    }
    g_ptr_array_add(trace->keys, g_string_chunk_insert(trace->strings, key));
    g_ptr_array_add(trace->values, copy);
}

void trace_set_uint(Trace *trace, const char *key, uint64_t value) {
    char text[32];
    g_snprintf(text, sizeof text, "%" G_GUINT64_FORMAT, (guint64)value);
    trace_set(trace, key, text);
}

const char *trace_get(const Trace *trace, const char *key) {
    for (guint i = 0; i < trace->keys->len; i++) {
        if (g_str_equal(trace->keys->pdata[i], key)) {
            return trace->values->pdata[i];
        }
    }
    return NULL;
}

const char *trace_manner(const Trace *trace) {
    static const char *const manners[] = {"rehearsed", "paced"};
    for (unsigned i = 0; i < G_N_ELEMENTS(manners); i++) {
        if (g_strcmp0(trace_get(trace, manners[i]), "yes") == 0) {
            return manners[i];
        }
    }
    return NULL;
}

static uint64_t whole_number(const Trace *trace, const char *key) {
    const char *value = trace_get(trace, key);
    return value ? g_ascii_strtoull(value, NULL, 10) : 0;
}

char *trace_rank_text(const Trace *trace, uint32_t rank) {
    uint64_t places = whole_number(trace, "stages"), world = whole_number(trace, "world");
    uint64_t each = MAX(1, whole_number(trace, "stages_each"));
    return places && rank < world && world % places == 0
               ? plan_rank_in_stages(rank, rank / (world / places), places, each)
               : g_strdup_printf("rank %u", rank);
}

static uint32_t add_name(Trace *trace, GPtrArray *table, const char *name) {
    g_ptr_array_add(table, g_string_chunk_insert_const(trace->strings, name));
    return table->len - 1;
}

uint32_t trace_add_lane(Trace *trace, const char *name) {
    return add_name(trace, trace->lanes, name);
}

uint32_t trace_add_unit(Trace *trace, const char *name) {
    return add_name(trace, trace->units, name);
}

uint32_t trace_add_phase(Trace *trace, const char *name) {
    return add_name(trace, trace->phases, name);
}

uint32_t trace_add_category(Trace *trace, const char *name) {
    return add_name(trace, trace->categories, name);
}

uint32_t trace_add_module(Trace *trace, const char *name) {
    return add_name(trace, trace->modules, name);
}

uint32_t trace_add_kind(Trace *trace, const char *name, TraceKindClass kind_class) {
    g_assert(kind_class < TRACE_N_KIND_CLASSES);
    TraceKind kind = {g_string_chunk_insert_const(trace->strings, name), kind_class};
    g_array_append_val(trace->kinds, kind);
    return trace->kinds->len - 1;
}

uint32_t trace_add_role(Trace *trace) {
    g_ptr_array_add(trace->roles, g_array_new(FALSE, FALSE, sizeof(TraceInstruction)));
    return trace->roles->len - 1;
}

uint32_t trace_add_instruction(Trace *trace, uint32_t role, const TraceInstruction *instruction) {
    g_assert(role < trace->roles->len);
    g_assert(instruction->what < TRACE_N_WHATS && instruction->section < TRACE_N_SECTIONS);
    GArray *table = trace_instructions(trace, role);
    TraceInstruction copy = *instruction;
    copy.index = 0;
    if (table->len > 0) {
        const TraceInstruction *last = trace_instruction(trace, role, table->len - 1);
        g_assert(last->section <= copy.section);
        copy.index = last->section == copy.section ? last->index + 1 : 0;
    }
    g_array_append_val(table, copy);
    return table->len - 1;
}

void trace_add_rank(Trace *trace, uint32_t rank, uint32_t role) {
    g_assert(role < trace->roles->len);
    TraceRank entry = {rank, role};
    g_array_append_val(trace->ranks, entry);
}

uint32_t trace_compute_lane(const Trace *trace) {
    for (guint i = 0; i < trace->lanes->len; i++) {
        if (g_str_equal(trace->lanes->pdata[i], "compute")) {
            return i;
        }
    }
    return 0;
}

uint32_t trace_lowest_rank(const Trace *trace) {
    uint32_t lowest = TRACE_NONE;
    for (guint i = 0; i < trace->ranks->len; i++) {
        lowest = MIN(lowest, g_array_index(trace->ranks, TraceRank, i).rank);
    }
    return lowest;
}

uint32_t trace_role_of_rank(const Trace *trace, uint32_t rank) {
    for (guint i = 0; i < trace->ranks->len; i++) {
        const TraceRank *entry = &g_array_index(trace->ranks, TraceRank, i);
        if (entry->rank == rank) {
            return entry->role;
        }
    }
    return TRACE_NONE;
}
