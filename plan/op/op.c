#include "plan/op/op.h"

#include <pthread.h>
#include <string.h>

static const struct {
    const char *name;
    PlanOpClass op_class;
    const char *operands, *dims, *attrs;
    unsigned ring_steps;
    bool adds;
} rows[PLAN_N_OP_KINDS] = {
#define OP(id, name, cls, operands, dims, attrs)                                                   \
    [PLAN_OP_##id] = {name, PLAN_CLASS_##cls, operands, dims, attrs, 0, false},
#include "plan/op/ops.def"
#define OF_RANKS(id, name, operands, dims, attrs, steps, adds)                                     \
    [PLAN_OP_##id] = {name, PLAN_CLASS_COLLECTIVE, operands, dims, attrs, steps, adds},
#define COLLECTIVE(id, name, operands, steps, adds)                                                \
    OF_RANKS(id, name, operands, COLLECTIVE_DIMS, "average", steps, adds)
#define STAGE_COLLECTIVE(id, name, operands, steps, adds)                                          \
    OF_RANKS(id, name, operands, STAGE_COLLECTIVE_DIMS, "", steps, adds)
#define UNEVEN_COLLECTIVE(id, name, operands, steps, adds)                                         \
    OF_RANKS(id, name, operands, UNEVEN_COLLECTIVE_DIMS, "", steps, adds)
#define PEER_COLLECTIVE(id, name, operands, steps, adds)                                           \
    OF_RANKS(id, name, operands, PEER_COLLECTIVE_DIMS, "", steps, adds)
#include "plan/op/collectives.def"
#undef COLLECTIVE
};

PlanOpInfo plan_op_infos[PLAN_N_OP_KINDS];

/* The next word of what is left of a text, which is cut there; NULL: there is none. */
static char *next_word(char **rest) {
    char *word = strsep(rest, " ");
    while (word && !*word) {
        word = strsep(rest, " ");
    }
    return word;
}

/* Names lie in the copy of their text, which stays. */
static unsigned split_names(const char *text, const char **names, unsigned max) {
    char *rest = *text ? g_strdup(text) : NULL, *word;
    unsigned n = 0;
    while ((word = next_word(&rest))) {
        g_assert(n < max);
        names[n++] = word;
    }
    return n;
}

static bool is_among(const char *name, const char *const *names) {
    while (*names && !(**names == *name && g_str_equal(*names, name))) {
        names++;
    }
    return *names != NULL;
}

/* "rows*cols" of "x[rows*cols]?", which becomes "x?"; NULL: there is none. */
static char *cut_extent(char *word) {
    char *begin = strchr(word, '['), *end = strchr(word, ']');
    if (!begin) {
        return NULL;
    }
    char *extent = g_strndup(begin + 1, (gsize)(end - begin - 1));
    memmove(begin, end + 1, strlen(end));
    return extent;
}

/* What an operand holds goes by its name. */
static PlanSlotFlags contents_of(const char *name) {
    static const char *const integers[] = {"index",    "target",      "seed",   "offset",
                                           "position", "distance",    "counts", "sorted",
                                           "order",    "local_index", NULL};
    static const char *const narrow[] = {"ends", "narrow", "tally", NULL};
    static const char *const bytes[] = {"bytes", "codes", "codes_sq", "ordered", NULL};
    return (is_among(name, integers) ? PLAN_SLOT_INTEGER : 0) |
           (is_among(name, narrow) ? PLAN_SLOT_INT32 : 0) |
           (g_str_has_suffix(name, "mask") || g_str_has_suffix(name, "exponents") ||
                    is_among(name, bytes)
                ? PLAN_SLOT_MASK
                : 0) |
           (g_str_equal(name, "nibbles") ? PLAN_SLOT_PACKED : 0) |
           (g_str_has_suffix(name, "8") ? PLAN_SLOT_FLOAT8 : 0);
}

static PlanSlot parse_operand(const PlanOpInfo *info, char *word, PlanSlotFlags access) {
    g_autofree char *extent = cut_extent(word);
    char *end = word + strlen(word) - 1;
    PlanSlotFlags mark = *end == '?' ? PLAN_SLOT_OPTIONAL : *end == '*' ? PLAN_SLOT_LIST : 0;
    if (mark) {
        *end = 0;
    }
    bool adds_part = access == (PLAN_SLOT_READ | PLAN_SLOT_WRITE) && g_str_equal(word, "gathered");
    return (PlanSlot){.name = word,
                      .flags =
                          access | mark | contents_of(word) | (adds_part ? PLAN_SLOT_PARTS : 0),
                      .extent = plan_extent_parse(extent, info->dims, info->n_dims)};
}

static void parse_operands(PlanOpInfo *info, const char *text) {
    char *rest = *text ? g_strdup(text) : NULL, *word;
    PlanSlotFlags access = PLAN_SLOT_READ;
    while ((word = next_word(&rest))) {
        if (g_str_equal(word, ">")) {
            access = PLAN_SLOT_WRITE;
        } else if (g_str_equal(word, "&")) {
            access = PLAN_SLOT_READ | PLAN_SLOT_WRITE;
        } else {
            g_assert(info->n_slots < PLAN_MAX_SLOTS);
            PlanSlot *slot = &info->slots[info->n_slots++];
            *slot = parse_operand(info, word, access);
            info->n_lists += slot->flags & PLAN_SLOT_LIST ? 1 : 0;
        }
    }
}

static bool is_of_host(PlanOpKind kind) {
    switch (kind) {
#define HOST_OP(id, ...) case PLAN_OP_##id:
#include "plan/op/ops.def"
        return true;
    default:
        return false;
    }
}

/* Every other dim counts something. */
static bool may_be_zero(const char *dim) {
    static const char *const names[] = {
        "causal",       "parameter",  "bound",  "rank_stride", "offset", "pass",     "back",
        "apart",        "from",       "stream", "scaled",      "slot",   "to",       "place",
        "back_from",    "within",     "norm",   "peer",        "ahead",  "backward", "call",
        "along",        "made",       "found",  "turned",      "behind", "step",     "copied",
        "from_columns", "microbatch", NULL};
    return is_among(dim, names) || g_str_has_suffix(dim, "_layout") ||
           g_str_has_suffix(dim, "_turned");
}

/* The parameter that is given its first values; the stream of random numbers of a dropout. */
static bool numbers(const char *dim) {
    return g_str_equal(dim, "parameter") || g_str_equal(dim, "stream");
}

void plan_op_parse_row(PlanOpKind kind) {
    static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&one_at_a_time);
    PlanOpInfo *info = &plan_op_infos[kind];
    if (!info->is_ready) {
        info->name = rows[kind].name;
        info->op_class = rows[kind].op_class;
        info->ring_steps = rows[kind].ring_steps;
        info->adds = rows[kind].adds;
        info->is_of_host = is_of_host(kind);
        info->n_dims = split_names(rows[kind].dims, info->dims, PLAN_MAX_DIMS);
        parse_operands(info, rows[kind].operands);
        for (unsigned i = 0; i < info->n_dims; i++) {
            info->dims_may_be_zero |= (uint16_t)(may_be_zero(info->dims[i]) << i);
            info->dims_that_number |= (uint16_t)(numbers(info->dims[i]) << i);
        }
        info->n_attrs = split_names(rows[kind].attrs, info->attrs, PLAN_MAX_ATTRS);
        g_atomic_int_set(&info->is_ready, 1);
    }
    pthread_mutex_unlock(&one_at_a_time);
}

static gpointer number_names(gpointer unused) {
    GHashTable *kinds_by_name = g_hash_table_new(g_str_hash, g_str_equal);
    for (unsigned kind = 0; kind < PLAN_N_OP_KINDS; kind++) {
        g_hash_table_insert(kinds_by_name, (gpointer)rows[kind].name, GUINT_TO_POINTER(kind));
    }
    return kinds_by_name;
}

bool plan_op_kind_parse(const char *name, PlanOpKind *ret_kind) {
    static GOnce once = G_ONCE_INIT;
    GHashTable *kinds_by_name = g_once(&once, number_names, NULL);
    gpointer kind;
    if (!g_hash_table_lookup_extended(kinds_by_name, name, NULL, &kind)) {
        return false;
    }
    *ret_kind = (PlanOpKind)GPOINTER_TO_UINT(kind);
    return true;
}

unsigned plan_op_slot_of(const PlanOpInfo *info, unsigned n_operands, unsigned i) {
    if (!info->n_lists) {
        return i;
    }
    unsigned length = plan_op_list_length(info, n_operands);
    for (unsigned slot = 0; slot < info->n_slots; slot++) {
        unsigned n = info->slots[slot].flags & PLAN_SLOT_LIST ? length : 1;
        if (i < n) {
            return slot;
        }
        i -= n;
    }
    g_assert_not_reached();
}
