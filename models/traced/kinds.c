#include <string.h>

#include "models/traced/read.h"
#include "plan/files/ini.h"

enum {
    MOST_OUTS = 1 << 12 /* of an op */
};

static PlanTracedKind *last_kind(const TracedReader *r) {
    GArray *kinds = r->program->kinds;
    return plan_graph_at(kinds, PlanTracedKind, kinds->len - 1);
}

bool traced_ref(const TracedReader *r, const char *word, PlanTracedRef *ret_ref) {
    const PlanTracedKind *kind = last_kind(r);
    const struct {
        char letter;
        PlanTracedOf of;
        uint32_t n;
        int sections;
    } known[] = {
        {'i', PLAN_TRACED_INPUT, kind->n_inputs, IN_KIND},
        {'o', PLAN_TRACED_OUTPUT, kind->n_outs, IN_KIND},
        {'g', PLAN_TRACED_GIVEN, kind->n_outs, IN_BACKWARD},
        {'s', PLAN_TRACED_SAVED, kind->n_saves, IN_BACKWARD},
        {'t', PLAN_TRACED_MADE, kind->n_made, IN_BACKWARD},
    };
    for (unsigned i = 0; i < G_N_ELEMENTS(known); i++) {
        uint64_t index;
        if (word[0] == known[i].letter && known[i].sections & (int)r->section &&
            plan_parse_u64(word + 1, &index) && index < known[i].n) {
            *ret_ref = (PlanTracedRef){known[i].of, (uint32_t)index};
            return true;
        }
    }
    return traced_refuse(r, "'%s' is nothing that stands before it", word);
}

/* Whether backward has let go of it; NULL: it does not let go of such. */
static bool *gone_of(const TracedReader *r, PlanTracedRef ref) {
    GArray *gone = ref.of == PLAN_TRACED_MADE    ? r->freed
                   : ref.of == PLAN_TRACED_SAVED ? r->dropped
                                                 : NULL;
    return gone ? plan_graph_at(gone, bool, ref.index) : NULL;
}

/* What a node keeps, or a kernel reads or writes. */
static bool add_ref(const TracedReader *r, const char *word) {
    PlanTracedRef ref;
    if (!traced_ref(r, word, &ref)) {
        return false;
    }
    const bool *gone = gone_of(r, ref);
    if (gone && *gone) {
        return traced_refuse(r, "'%s' was let go of before it", word);
    }
    g_array_append_val(r->program->refs, ref);
    return true;
}

static PlanTracedChoice choice_of(const char *name) {
    return g_str_equal(name, "mm")                         ? PLAN_TRACED_PRODUCT
           : g_str_has_prefix(name, "_scaled_dot_product") ? PLAN_TRACED_ATTENTION
                                                           : PLAN_TRACED_OTHER;
}

bool traced_kind_is_whole(const TracedReader *r) {
    const PlanTracedKind *kind = r->program->kinds->len ? last_kind(r) : NULL;
    if (kind && r->program->outs->len != kind->outs + kind->n_outs) {
        return traced_refuse(r, "the kind before it has not as many outputs as it says");
    }
    return !kind || kind->has_backward || !kind->n_edges ||
           traced_refuse(r, "the kind before it has edges, and no backward");
}

static bool read_number(const TracedReader *r, const char *word, uint32_t most, const char *what,
                        uint32_t *ret_number) {
    uint64_t number;
    *ret_number = 0;
    if (!plan_parse_u64(word, &number) || number > most) {
        return traced_refuse(r, "'%s' is no number of %s, of which there are %u at most", word,
                             what, most);
    }
    *ret_number = (uint32_t)number;
    return true;
}

bool traced_read_kind(TracedReader *r) {
    if (!traced_kind_is_whole(r)) {
        return false;
    }
    PlanTracedKind kind = {.name = g_intern_string(r->words[1]),
                           .choice = choice_of(r->words[1]),
                           .outs = r->program->outs->len,
                           .saves = r->program->refs->len,
                           .kernels = r->program->kernels->len,
                           .events = r->program->events->len};
    if (!read_number(r, r->words[2], MOST_OUTS, "edges", &kind.n_edges) ||
        !read_number(r, r->words[3], 2 * MOST_OUTS, "inputs", &kind.n_inputs) ||
        !read_number(r, r->words[4], MOST_OUTS, "outputs", &kind.n_outs)) {
        return false;
    }
    g_array_append_val(r->program->kinds, kind);
    g_array_set_size(r->freed, 0);
    g_array_set_size(r->dropped, 0);
    r->section = IN_KIND;
    return kind.n_edges <= kind.n_inputs || traced_refuse(r, "it has more edges than inputs");
}

bool traced_read_out(TracedReader *r) {
    PlanTracedKind *kind = last_kind(r);
    PlanTracedOut out = {0};
    bool is_new = g_str_equal(r->words[1], "new");
    uint32_t number = r->program->outs->len - kind->outs;
    if (number >= kind->n_outs) {
        return traced_refuse(r, "the kind says that it has %u outputs, and this is one more",
                             kind->n_outs);
    }
    if ((!is_new && !traced_ref(r, r->words[1], &out.storage)) ||
        !traced_count(r, r->words[2], &out.stored) || !traced_dtype(r, r->words[3], &out.dtype)) {
        return false;
    }
    if (out.storage.of == PLAN_TRACED_OUTPUT && out.storage.index >= number) {
        return traced_refuse(r, "'%s' is made behind it", r->words[1]);
    }
    out.wants_gradient = g_str_equal(r->words[4], "grad");
    if (!out.wants_gradient && !g_str_equal(r->words[4], "plain")) {
        return traced_refuse(r, "'%s' is not 'grad' or 'plain'", r->words[4]);
    }
    out.elements = out.stored;
    if (r->n > 5 && !traced_count(r, r->words[5], &out.elements)) {
        return false;
    }
    g_array_append_val(r->program->outs, out);
    return true;
}

bool traced_read_save(TracedReader *r) {
    PlanTracedKind *kind = last_kind(r);
    if (kind->n_saves || kind->n_kernels) {
        return traced_refuse(r, "what a node keeps stands in one line, before what it runs");
    }
    kind->saves = r->program->refs->len;
    for (unsigned i = 1; i < r->n; i++) {
        if (!add_ref(r, r->words[i])) {
            return false;
        }
        kind->n_saves++;
    }
    return true;
}

static bool read_sizes(const TracedReader *r, PlanTracedKernel *kernel) {
    const PlanOpInfo *info = plan_op_info(kernel->op);
    unsigned n_sizes = plan_traced_n_sizes(kernel->op);
    if (r->n < 2 + n_sizes + 2) {
        return traced_refuse(r, "%s has %u sizes, then '<', what it reads, '>' and what it writes",
                             r->words[1], n_sizes);
    }
    for (unsigned i = 0; i < n_sizes; i++) {
        PlanTracedCount *count = &kernel->dims[i];
        if (!traced_count(r, r->words[2 + i], count)) {
            return false;
        }
        bool is_zero = plan_traced_count(*count, r->program->first_samples) == 0;
        if (is_zero && !(info->dims_may_be_zero >> i & 1)) {
            return traced_refuse(r, "%s is 0", info->dims[i]);
        }
    }
    bool attends = kernel->op == PLAN_OP_TRACED_ATTENTION;
    if (attends && (kernel->dims[1].each || kernel->dims[2].each ||
                    kernel->dims[1].fixed % kernel->dims[2].fixed)) {
        return traced_refuse(r, "heads do not divide by kv_heads");
    }
    return true;
}

static void add_event(TracedReader *r, PlanTracedEvent event) {
    g_array_append_val(r->program->events, event);
    last_kind(r)->n_events++;
}

bool traced_read_run(TracedReader *r) {
    static const struct {
        const char *name;
        PlanOpKind op;
    } known[] = {{"memory", PLAN_OP_TRACED_MEMORY},
                 {"matmul", PLAN_OP_TRACED_MATMUL},
                 {"attention", PLAN_OP_TRACED_ATTENTION}};
    PlanTracedKernel kernel = {.op = PLAN_N_OP_KINDS};
    for (unsigned i = 0; i < G_N_ELEMENTS(known); i++) {
        kernel.op = g_str_equal(r->words[1], known[i].name) ? known[i].op : kernel.op;
    }
    if (kernel.op == PLAN_N_OP_KINDS) {
        return traced_refuse(r, "'%s' is not memory, matmul or attention", r->words[1]);
    }
    if (!read_sizes(r, &kernel)) {
        return false;
    }
    unsigned at = 2 + plan_traced_n_sizes(kernel.op);
    bool reads = false, writes = false;
    kernel.refs = r->program->refs->len;
    for (; at < r->n; at++) {
        if (g_str_equal(r->words[at], "<") && !reads) {
            reads = true;
        } else if (g_str_equal(r->words[at], ">") && reads && !writes) {
            writes = true;
        } else if (!reads || !add_ref(r, r->words[at])) {
            return reads ? false : traced_refuse(r, "'%s' stands before '<'", r->words[at]);
        } else {
            *(writes ? &kernel.n_writes : &kernel.n_reads) += 1;
        }
    }
    if (!writes) {
        return traced_refuse(r, "what it writes stands behind '>'");
    }
    PlanTracedEvent event = {.kind = PLAN_TRACED_RUN, .index = r->program->kernels->len};
    g_array_append_val(r->program->kernels, kernel);
    if (r->section == IN_BACKWARD) {
        add_event(r, event);
    } else {
        last_kind(r)->n_kernels++;
    }
    return true;
}

/* What the kernel before it computes. */
bool traced_read_call(TracedReader *r) {
    const PlanTracedKind *kind = last_kind(r);
    bool is_backward = r->section == IN_BACKWARD;
    bool is_behind_run =
        is_backward ? kind->n_events > 0 && plan_graph_at(r->program->events, PlanTracedEvent,
                                                          r->program->events->len - 1)
                                                    ->kind == PLAN_TRACED_RUN
                    : kind->n_kernels > 0;
    PlanTracedKernel *kernel = is_behind_run ? plan_graph_at(r->program->kernels, PlanTracedKernel,
                                                             r->program->kernels->len - 1)
                                             : NULL;
    if (!kernel || kernel->call.n) {
        return traced_refuse(r, "a call stands behind the kernel that it is of, once");
    }
    return traced_call_from(r, 1, false, &kernel->call);
}

/* ---- what a node does ----------------------------------------------------------------------- */

bool traced_read_backward(TracedReader *r) {
    PlanTracedKind *kind = last_kind(r);
    kind->has_backward = true;
    r->section = IN_BACKWARD;
    g_array_set_size(r->dropped, kind->n_saves);
    return traced_kind_is_whole(r);
}

bool traced_read_alloc(TracedReader *r) {
    PlanTracedKind *kind = last_kind(r);
    PlanTracedEvent event = {.kind = PLAN_TRACED_ALLOC, .index = kind->n_made};
    if (!traced_count(r, r->words[1], &event.count) ||
        !traced_dtype(r, r->words[2], &event.dtype)) {
        return false;
    }
    add_event(r, event);
    kind->n_made++;
    g_array_set_size(r->freed, kind->n_made);
    return true;
}

bool traced_read_free(TracedReader *r) {
    PlanTracedRef ref;
    bool drops = g_str_equal(r->words[0], "drop");
    if (!traced_ref(r, r->words[1], &ref)) {
        return false;
    }
    if (ref.of != (drops ? PLAN_TRACED_SAVED : PLAN_TRACED_MADE)) {
        return traced_refuse(r, "'%s' is not what is %s", r->words[1],
                             drops ? "dropped, such as s0" : "freed, such as t0");
    }
    bool *gone = gone_of(r, ref);
    if (*gone) {
        return traced_refuse(r, "'%s' is %s twice", r->words[1], drops ? "dropped" : "freed");
    }
    *gone = true;
    add_event(r, (PlanTracedEvent){.kind = drops ? PLAN_TRACED_DROP : PLAN_TRACED_FREE,
                                   .index = ref.index});
    return true;
}

bool traced_read_give(TracedReader *r) {
    PlanTracedKind *kind = last_kind(r);
    if (r->n - 1 != kind->n_edges) {
        return traced_refuse(r, "it has %u gradients for %u edges", r->n - 1, kind->n_edges);
    }
    kind->gives = r->program->refs->len;
    for (unsigned i = 1; i < r->n; i++) {
        PlanTracedRef ref = {0};
        if (!g_str_equal(r->words[i], "-") && !traced_ref(r, r->words[i], &ref)) {
            return false;
        }
        const bool *gone = gone_of(r, ref);
        if (ref.of == PLAN_TRACED_SAVED || (gone && *gone)) {
            return traced_refuse(r, "'%s' does not flow on", r->words[i]);
        }
        g_array_append_val(r->program->refs, ref);
    }
    r->section = IN_GIVEN;
    return true;
}
