/* plan/text-read.c - a plan from its text, whoever wrote it.
 *
 * Every number is bounded before it is used as an index or a size, nothing is allocated by a count
 * that the text merely claims, and the checker has the last word, so a mutated file ends in a
 * message with its line, not in a crash.
 */
#include <string.h>

#include "plan/check.h"
#include "plan/ini.h"
#include "plan/text.h"

enum {
    MAX_LANES = 16,
    MAX_IDS = 1 << 26,
    MAX_WORLD = 1 << 24
};

typedef struct {
    const char *file_name;
    char *rest;   /* what is left of the text */
    char *line;   /* the current line, NUL-terminated in place; NULL at the end */
    char *cursor; /* next word of the line */
    unsigned number;
    Plan *plan;
    PlanRole *role;
    GHashTable *lanes; /* name -> index + 1 */
    GArray *instrs, *buffers, *ops, *operands, *dims, *attrs;
    GError **error;
} Reader;

static bool G_GNUC_PRINTF(2, 3) fail(Reader *r, const char *format, ...) {
    va_list args;
    va_start(args, format);
    g_autofree char *message = g_strdup_vprintf(format, args);
    va_end(args);
    g_set_error(r->error, PLAN_ERROR, PLAN_ERROR_SYNTAX, "%s:%u: %s", r->file_name, r->number,
                message);
    return false;
}

/* ---- lines and words
 * -------------------------------------------------------------------------- */

static void next_line(Reader *r) {
    r->number++;
    if (!*r->rest) {
        r->line = NULL;
        return;
    }
    r->line = r->cursor = r->rest;
    char *end = strchr(r->rest, '\n');
    if (end) {
        *end = 0;
        r->rest = end + 1;
    } else {
        r->rest += strlen(r->rest);
    }
}

/* The next word of the line, or NULL. */
static char *word(Reader *r) {
    while (*r->cursor == ' ') {
        r->cursor++;
    }
    if (!*r->cursor) {
        return NULL;
    }
    char *start = r->cursor;
    while (*r->cursor && *r->cursor != ' ') {
        r->cursor++;
    }
    if (*r->cursor) {
        *r->cursor++ = 0;
    }
    return start;
}

static bool need_line(Reader *r, const char *what) {
    if (!r->line) {
        return fail(r, "the file ends where %s should stand; it is cut short", what);
    }
    return true;
}

static bool end_of_line(Reader *r) {
    char *extra = word(r);
    if (extra) {
        return fail(r, "'%s' is too much on this line", extra);
    }
    next_line(r);
    return true;
}

static bool expect(Reader *r, const char *keyword) {
    if (!need_line(r, keyword)) {
        return false;
    }
    char *w = word(r);
    if (!w || !g_str_equal(w, keyword)) {
        return fail(r, "expected '%s', not '%s'", keyword, w ? w : "");
    }
    return true;
}

static bool number(Reader *r, const char *what, uint64_t max, uint64_t *ret) {
    char *w = word(r);
    if (!w || !plan_parse_u64(w, ret) || *ret > max) {
        return fail(r, "%s must be a whole number up to %" G_GUINT64_FORMAT ", not '%s'", what, max,
                    w ? w : "");
    }
    return true;
}

/* "x12" with x the letter, below limit; "-" is PLAN_NONE where that may be. */
static bool parse_id(Reader *r, const char *w, char letter, uint32_t limit, bool may_be_none,
                     uint32_t *ret) {
    uint64_t id;
    if (w && may_be_none && g_str_equal(w, "-")) {
        *ret = PLAN_NONE;
        return true;
    }
    if (!w || *w != letter || !plan_parse_u64(w + 1, &id) || id >= limit) {
        return fail(r, "expected %c0 to %c%u%s, not '%s'", letter, letter, limit ? limit - 1 : 0,
                    may_be_none ? " or -" : "", w ? w : "");
    }
    *ret = (uint32_t)id;
    return true;
}

/* The number a table row begins with must be its own. */
static bool row_id(Reader *r, char letter, uint32_t id) {
    uint32_t found;
    if (!need_line(r, "a row of a table")) {
        return false;
    }
    if (!parse_id(r, word(r), letter, MAX_IDS, false, &found)) {
        return false;
    }
    return found == id || fail(r, "row %c%u stands where %c%u should", letter, found, letter, id);
}

static const char *keep(Reader *r, const char *text) {
    return g_string_chunk_insert_const(r->plan->strings, text);
}

static bool name(Reader *r, const char **ret) {
    char *w = word(r);
    if (!w) {
        return fail(r, "a name is missing");
    }
    *ret = keep(r, w);
    return true;
}

/* ---- tables
 * ----------------------------------------------------------------------------------- */

static bool read_block(Reader *r, const char *title, const char **ret) {
    if (!expect(r, title) || !end_of_line(r)) {
        return false;
    }
    g_autoptr(GString) content = g_string_new(NULL);
    while (r->line && *r->line == '|') {
        const char *text = r->line + 1;
        g_string_append_printf(content, "%s\n", *text == ' ' ? text + 1 : text);
        next_line(r);
    }
    *ret = keep(r, content->str);
    return true;
}

static bool read_head(Reader *r) {
    uint64_t version;
    Plan *plan = r->plan;
    if (!expect(r, "foreshard-plan") || !number(r, "the version", UINT32_MAX, &version)) {
        return false;
    }
    if (version != 1) {
        return fail(r,
                    "version %" G_GUINT64_FORMAT " is not known here; this program reads "
                    "version 1",
                    version);
    }
    if (!end_of_line(r) || !expect(r, "title")) {
        return false;
    }
    plan->title = keep(r, r->cursor);
    next_line(r);
    return expect(r, "tokens_per_rank") &&
           number(r, "tokens_per_rank", UINT64_MAX, &plan->tokens_per_rank) && end_of_line(r) &&
           read_block(r, "network", &plan->network) && read_block(r, "strategy", &plan->strategy);
}

static bool axis_size(Reader *r, const char *axis, uint32_t *ret) {
    char *w = word(r);
    uint64_t size;
    gsize n = strlen(axis);
    if (!w || strncmp(w, axis, n) != 0 || w[n] != '=' || !plan_parse_u64(w + n + 1, &size) ||
        size < 1 || size > MAX_WORLD) {
        return fail(r, "expected %s=RANKS (1 to %d), not '%s'", axis, MAX_WORLD, w ? w : "");
    }
    *ret = (uint32_t)size;
    return true;
}

static bool read_mesh(Reader *r) {
    Plan *plan = r->plan;
    plan->axes[PLAN_AXIS_NONE] = 1;
    if (!expect(r, "mesh") || !axis_size(r, "replicate", &plan->axes[PLAN_AXIS_REPLICATE]) ||
        !axis_size(r, "shard", &plan->axes[PLAN_AXIS_SHARD])) {
        return false;
    }
    uint64_t world =
        (uint64_t)plan->axes[PLAN_AXIS_REPLICATE] * (uint64_t)plan->axes[PLAN_AXIS_SHARD];
    if (world > MAX_WORLD) {
        return fail(r, "a mesh of %" G_GUINT64_FORMAT " ranks is beyond %d", world, MAX_WORLD);
    }
    plan->world = (uint32_t)world;
    return end_of_line(r);
}

static bool read_lanes(Reader *r) {
    if (!expect(r, "lanes")) {
        return false;
    }
    r->plan->lanes = g_new0(const char *, MAX_LANES);
    for (char *w = word(r); w; w = word(r)) {
        if (r->plan->n_lanes == MAX_LANES || g_hash_table_contains(r->lanes, w)) {
            return fail(r, "at most %d lanes, each with a name of its own", MAX_LANES);
        }
        const char *lane = keep(r, w);
        r->plan->lanes[r->plan->n_lanes++] = lane;
        g_hash_table_insert(r->lanes, (gpointer)lane, GUINT_TO_POINTER(r->plan->n_lanes));
    }
    if (!r->plan->n_lanes) {
        return fail(r, "a plan needs at least one lane");
    }
    next_line(r);
    return true;
}

static bool read_modules(Reader *r) {
    uint64_t n;
    if (!expect(r, "modules") || !number(r, "their number", MAX_IDS, &n) || !end_of_line(r)) {
        return false;
    }
    g_autoptr(GArray) modules = g_array_new(FALSE, TRUE, sizeof(PlanModule));
    for (uint32_t i = 0; i < n; i++) {
        PlanModule module = {0};
        if (!row_id(r, 'm', i) || !parse_id(r, word(r), 'm', i, i == 0, &module.parent) ||
            !name(r, &module.class_name) || !name(r, &module.name) || !end_of_line(r)) {
            return false;
        }
        if (g_str_equal(module.name, "-")) {
            module.name = "";
        }
        g_array_append_val(modules, module);
    }
    r->plan->n_modules = modules->len;
    r->plan->modules = (PlanModule *)(gpointer)g_array_free(g_steal_pointer(&modules), FALSE);
    return true;
}

static bool read_units(Reader *r) {
    uint64_t n;
    if (!expect(r, "units") || !number(r, "their number", MAX_IDS, &n) || !end_of_line(r)) {
        return false;
    }
    g_autoptr(GArray) units = g_array_new(FALSE, TRUE, sizeof(PlanUnit));
    for (uint32_t i = 0; i < n; i++) {
        PlanUnit unit = {0};
        if (!row_id(r, 'u', i) || !number(r, "elements", UINT64_MAX / 64, &unit.elements) ||
            !number(r, "shard elements", UINT64_MAX / 64, &unit.shard_elements) ||
            !name(r, &unit.name) || !end_of_line(r)) {
            return false;
        }
        g_array_append_val(units, unit);
    }
    r->plan->n_units = units->len;
    r->plan->units = (PlanUnit *)(gpointer)g_array_free(g_steal_pointer(&units), FALSE);
    return true;
}

static bool read_shape(Reader *r, PlanParameter *parameter) {
    char *w = word(r);
    g_auto(GStrv) dims = g_strsplit(w ? w : "", "x", -1);
    parameter->elements = 1;
    for (char **dim = dims; *dim; dim++) {
        uint64_t size;
        if (parameter->n_dims == 4 || !plan_parse_u64(*dim, &size) || size < 1 ||
            size > (UINT64_MAX / 64) / parameter->elements) {
            return fail(r, "a shape is one to four sizes joined by x, not '%s'", w ? w : "");
        }
        parameter->dims[parameter->n_dims++] = (int64_t)size;
        parameter->elements *= size;
    }
    return parameter->n_dims > 0 || fail(r, "a shape is missing");
}

static bool read_dtype(Reader *r, uint8_t *ret) {
    char *w = word(r);
    PlanDtype dtype;
    if (!w || !plan_dtype_parse(w, &dtype)) {
        return fail(r, "'%s' is no dtype; they are fp32, bf16, fp16, int64, uint8", w ? w : "");
    }
    *ret = (uint8_t)dtype;
    return true;
}

static bool read_parameters(Reader *r) {
    uint64_t n;
    if (!expect(r, "parameters") || !number(r, "their number", MAX_IDS, &n) || !end_of_line(r)) {
        return false;
    }
    g_autoptr(GArray) parameters = g_array_new(FALSE, TRUE, sizeof(PlanParameter));
    for (uint32_t i = 0; i < n; i++) {
        PlanParameter p = {0};
        if (!row_id(r, 'p', i) || !parse_id(r, word(r), 'u', r->plan->n_units, false, &p.unit) ||
            !read_dtype(r, &p.dtype) || !read_shape(r, &p) || !name(r, &p.name) ||
            !end_of_line(r)) {
            return false;
        }
        g_array_append_val(parameters, p);
    }
    r->plan->n_parameters = parameters->len;
    r->plan->parameters =
        (PlanParameter *)(gpointer)g_array_free(g_steal_pointer(&parameters), FALSE);
    return true;
}

/* ---- a role's head
 * ---------------------------------------------------------------------------- */

static bool parse_lane(Reader *r, const char *w, uint8_t *ret) {
    guint known = w ? GPOINTER_TO_UINT(g_hash_table_lookup(r->lanes, w)) : 0;
    if (!known) {
        return fail(r, "'%s' is no lane of this plan", w ? w : "");
    }
    *ret = (uint8_t)(known - 1);
    return true;
}

static bool read_ranks(Reader *r, bool *seen) {
    char *w = word(r);
    g_auto(GStrv) parts = g_strsplit(w ? w : "", ",", -1);
    g_autoptr(GArray) ranks = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    for (char **part = parts; *part; part++) {
        g_auto(GStrv) ends = g_strsplit(*part, "-", 2);
        uint64_t first, last;
        if (!ends[0] || !plan_parse_u64(ends[0], &first) ||
            !plan_parse_u64(ends[1] ? ends[1] : ends[0], &last) || first > last ||
            last >= r->plan->world) {
            return fail(r, "ranks are written 0-3,7 and lie below %u, not '%s'", r->plan->world,
                        *part);
        }
        for (uint32_t rank = (uint32_t)first; rank <= last; rank++) {
            if (seen[rank]) {
                return fail(r, "rank %u plays two roles; give it one", rank);
            }
            seen[rank] = true;
            g_array_append_val(ranks, rank);
        }
    }
    if (!ranks->len) {
        return fail(r, "a role needs ranks");
    }
    r->role->n_ranks = ranks->len;
    r->role->ranks = (uint32_t *)(gpointer)g_array_free(g_steal_pointer(&ranks), FALSE);
    return true;
}

static bool read_carried(Reader *r, PlanBuffer *buffer) {
    char *w = word(r);
    for (const char *c = w; w && !g_str_equal(w, "-") && *c; c++) {
        const char *letter = strchr("cfst", *c);
        if (!letter) {
            return fail(r, "carried is '-' or some of the letters c f s t, not '%s'", w);
        }
        buffer->carried |= (uint8_t)(1u << (letter - "cfst"));
    }
    return w || fail(r, "carried ('-' or some of c f s t) is missing");
}

static bool read_buffers(Reader *r) {
    uint64_t n;
    if (!expect(r, "buffers") || !number(r, "their number", MAX_IDS, &n) || !end_of_line(r)) {
        return false;
    }
    for (uint32_t i = 0; i < n; i++) {
        PlanBuffer b = {0};
        PlanSubcategory sub;
        if (!row_id(r, 'b', i) || !number(r, "bytes", UINT64_MAX / 64, &b.bytes) ||
            !read_dtype(r, &b.dtype)) {
            return false;
        }
        char *w = word(r);
        if (!w || !plan_subcategory_parse(w, &sub)) {
            return fail(r, "'%s' is no category such as parameters/sharded", w ? w : "");
        }
        b.sub = (uint8_t)sub;
        if (!parse_lane(r, word(r), &b.lane) ||
            !parse_id(r, word(r), 'u', r->plan->n_units, true, &b.unit) || !read_carried(r, &b) ||
            !name(r, &b.name) || !end_of_line(r)) {
            return false;
        }
        if (!b.bytes || b.bytes % plan_dtype_bytes((PlanDtype)b.dtype)) {
            r->number--;
            return fail(r, "bytes must be a positive multiple of the dtype's size");
        }
        g_array_append_val(r->buffers, b);
    }
    return true;
}

/* ---- instructions
 * ----------------------------------------------------------------------------- */

static bool parse_operand(Reader *r, char *text, PlanOperand *ret) {
    *ret = (PlanOperand){.buffer = PLAN_NONE};
    if (g_str_equal(text, "-")) {
        return true;
    }
    char *rows = strchr(text, '/'), *elements = strchr(text, '['), *offset = strchr(text, '+');
    uint64_t value;
    if (rows) {
        *rows++ = 0;
        if (!plan_parse_u64(rows, &value) || value < 1 || value >= UINT32_MAX) {
            return fail(r, "'/%s': rows are a positive number", rows);
        }
        ret->rows = (uint32_t)value;
    }
    uint64_t given = UINT64_MAX;
    if (elements) {
        gsize n = strlen(elements);
        if (elements[n - 1] != ']') {
            return fail(r, "elements are written [NUMBER]");
        }
        elements[n - 1] = 0;
        *elements++ = 0;
        if (!plan_parse_u64(elements, &given) || given >= UINT64_MAX / 64) {
            return fail(r, "elements are written [NUMBER]");
        }
    }
    if (offset) {
        *offset++ = 0;
        if (!plan_parse_u64(offset, &ret->offset_bytes)) {
            return fail(r, "an offset is written +BYTES");
        }
    }
    if (!parse_id(r, text, 'b', r->buffers->len, false, &ret->buffer)) {
        return false;
    }
    const PlanBuffer *b = &g_array_index(r->buffers, PlanBuffer, ret->buffer);
    uint64_t size = plan_dtype_bytes((PlanDtype)b->dtype);
    if (ret->offset_bytes > b->bytes || ret->offset_bytes % size) {
        return fail(r, "the offset lies beyond or within an element of b%u", ret->buffer);
    }
    uint64_t room = (b->bytes - ret->offset_bytes) / size;
    ret->elements = given == UINT64_MAX ? room : given;
    return ret->elements <= room || fail(r, "the operand reaches beyond b%u", ret->buffer);
}

/* The value of the next word, which must be "name=value". */
static char *value_of(Reader *r, const char *name_wanted) {
    char *w = word(r);
    gsize n = strlen(name_wanted);
    if (!w || strncmp(w, name_wanted, n) != 0 || w[n] != '=') {
        fail(r, "expected %s=..., not '%s'", name_wanted, w ? w : "");
        return NULL;
    }
    return w + n + 1;
}

static bool read_axis(Reader *r, PlanOp *op) {
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
    return fail(r, "'%s' is no axis; they are replicate and shard", value);
}

static bool read_shape_of_op(Reader *r, const PlanOpInfo *info) {
    for (unsigned i = 0; i < info->n_dims; i++) {
        char *value = value_of(r, info->dims[i]);
        uint64_t dim;
        if (!value) {
            return false;
        }
        if (!plan_parse_u64(value, &dim) || dim > INT64_MAX / 64) {
            return fail(r, "%s must be a whole number, not '%s'", info->dims[i], value);
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
        if (!plan_parse_double(value, &attr)) {
            return fail(r, "%s must be a number, not '%s'", info->attrs[i], value);
        }
        g_array_append_val(r->attrs, attr);
    }
    return true;
}

static bool read_slot(Reader *r, const PlanSlot *slot, PlanOp *op, unsigned *list_length) {
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
            return fail(r, "%s must be given", slot->name);
        }
        if ((slot->flags & PLAN_SLOT_WRITE) && operand.buffer != PLAN_NONE && !op->dtype) {
            op->dtype = (uint8_t)(g_array_index(r->buffers, PlanBuffer, operand.buffer).dtype + 1);
        }
        g_array_append_val(r->operands, operand);
    }
    if (!(slot->flags & PLAN_SLOT_LIST)) {
        return n == 1 || fail(r, "%s is one operand, not %u", slot->name, n);
    }
    if (*list_length && *list_length != n) {
        return fail(r, "lists must be equally long: %s has %u, not %u", slot->name, n,
                    *list_length);
    }
    *list_length = n;
    return true;
}

static bool read_op(Reader *r, uint32_t *ret_id) {
    char *w = word(r);
    PlanOpKind kind;
    if (!w || !plan_op_kind_parse(w, &kind)) {
        return fail(r, "'%s' is no op kind of plan/ops.def or plan/collectives.def", w ? w : "");
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
        return fail(r, "a collective names its axis: axis=shard or axis=replicate");
    }
    *ret_id = r->ops->len;
    g_array_append_val(r->ops, op);
    return true;
}

static bool parse_event(Reader *r, char *w, PlanInstr *instr) {
    char *at = w ? strchr(w, '@') : NULL;
    if (at) {
        if (!g_str_equal(at, "@-1") || instr->kind == PLAN_RECORD) {
            return fail(r, "an earlier step's event is waited for as eN@-1");
        }
        instr->before = 1;
        *at = 0;
    }
    if (!parse_id(r, w, 'e', MAX_IDS, false, &instr->arg)) {
        return false;
    }
    r->role->n_events = MAX(r->role->n_events, instr->arg + 1);
    /* Events are numbered densely: an absurd number must not make an absurd table. */
    return r->role->n_events <= 65536 + 2 * r->number ||
           fail(r, "e%u: events are numbered from e0 without gaps", instr->arg);
}

static bool read_instr_of(Reader *r, PlanInstr *instr) {
    switch ((PlanInstrKind)instr->kind) {
    case PLAN_ALLOC:
    case PLAN_FREE:
    case PLAN_MARK:
        if (!parse_id(r, word(r), 'b', r->buffers->len, false, &instr->arg)) {
            return false;
        }
        instr->lane = g_array_index(r->buffers, PlanBuffer, instr->arg).lane;
        return instr->kind != PLAN_MARK || parse_lane(r, word(r), &instr->lane);
    case PLAN_LAUNCH:
        return parse_lane(r, word(r), &instr->lane) && read_op(r, &instr->arg);
    case PLAN_RECORD:
    case PLAN_WAIT:
        return parse_lane(r, word(r), &instr->lane) && parse_event(r, word(r), instr);
    case PLAN_HOST_WAIT:
        return parse_event(r, word(r), instr);
    case PLAN_HOST_OP:
        return read_op(r, &instr->arg);
    case PLAN_N_INSTRS:
        break;
    }
    g_assert_not_reached();
}

static bool read_context(Reader *r, const char *phase, PlanInstr *context) {
    for (unsigned i = 0; i < PLAN_N_PHASES; i++) {
        if (g_str_equal(phase, plan_phase_name((PlanPhase)i))) {
            context->phase = (uint8_t)i;
            return parse_id(r, word(r), 'u', r->plan->n_units, true, &context->unit) &&
                   parse_id(r, word(r), 'm', r->plan->n_modules, true, &context->module) &&
                   end_of_line(r);
        }
    }
    return fail(r, "'%s' is no phase", phase);
}

static bool read_instr(Reader *r, const char *verb, PlanInstr *instr) {
    for (unsigned kind = 0; kind < PLAN_N_INSTRS; kind++) {
        if (g_str_equal(verb, plan_instr_name((PlanInstrKind)kind))) {
            instr->kind = (uint8_t)kind;
            return read_instr_of(r, instr) && end_of_line(r);
        }
    }
    return fail(r, "'%s' is no instruction", verb);
}

static bool read_section(Reader *r, PlanSection section) {
    uint64_t n;
    if (!expect(r, "section") || !expect(r, plan_section_name(section)) ||
        !number(r, "the number of instructions", MAX_IDS, &n) || !end_of_line(r)) {
        return false;
    }
    g_autoptr(GArray) instrs = g_array_new(FALSE, FALSE, sizeof(PlanInstr));
    PlanInstr context = {.unit = PLAN_NONE, .module = PLAN_NONE};
    while (instrs->len < n) {
        if (!need_line(r, "an instruction")) {
            return false;
        }
        char *verb = word(r);
        if (!verb) {
            return fail(r, "an empty line where an instruction should stand");
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
    r->role->n_instrs[section] = instrs->len;
    r->role->sections[section] =
        (PlanInstr *)(gpointer)g_array_free(g_steal_pointer(&instrs), FALSE);
    return true;
}

static gpointer take(GArray *array, uint32_t *ret_n) {
    *ret_n = array->len;
    gpointer data = g_memdup2(array->data, (gsize)array->len * g_array_get_element_size(array));
    g_array_set_size(array, 0);
    return data;
}

static bool read_loss_ops(Reader *r) {
    for (PlanSection s = 0; s < PLAN_N_SECTIONS; s++) {
        if (!parse_id(r, word(r), 'o', MAX_IDS, true, &r->role->loss_ops[s])) {
            return false;
        }
    }
    return true;
}

static bool read_role(Reader *r, uint32_t id, bool *seen) {
    uint64_t found;
    PlanRole *role = r->role = &r->plan->roles[id];
    if (!expect(r, "role") || !number(r, "its number", UINT32_MAX, &found)) {
        return false;
    }
    if (found != id) {
        return fail(r, "role %" G_GUINT64_FORMAT " stands where role %u should", found, id);
    }
    if (!expect(r, "ranks") || !read_ranks(r, seen) || !end_of_line(r) || !expect(r, "owns") ||
        !number(r, "elements", UINT64_MAX, &role->n_parameter_elements) || !end_of_line(r) ||
        !expect(r, "loss") || !read_loss_ops(r) || !end_of_line(r) || !read_buffers(r)) {
        return false;
    }
    for (PlanSection s = 0; s < PLAN_N_SECTIONS; s++) {
        if (!read_section(r, s)) {
            return false;
        }
    }
    for (PlanSection s = 0; s < PLAN_N_SECTIONS; s++) {
        if (role->loss_ops[s] != PLAN_NONE && role->loss_ops[s] >= r->ops->len) {
            return fail(r, "loss o%u is beyond the %u ops of the role", role->loss_ops[s],
                        r->ops->len);
        }
    }
    role->buffers = take(r->buffers, &role->n_buffers);
    role->ops = take(r->ops, &role->n_ops);
    role->operands = take(r->operands, &role->n_operands);
    role->dims = take(r->dims, &role->n_dims);
    role->attrs = take(r->attrs, &role->n_attrs);
    return true;
}

static bool read_roles(Reader *r) {
    uint64_t n;
    if (!expect(r, "roles") || !number(r, "their number", r->plan->world, &n) || !end_of_line(r)) {
        return false;
    }
    if (n < 1) {
        r->number--;
        return fail(r, "a plan has at least one role");
    }
    g_autofree bool *seen = g_new0(bool, r->plan->world);
    for (uint32_t i = 0; i < n; i++) {
        r->plan->roles = g_renew(PlanRole, r->plan->roles, i + 1);
        r->plan->roles[i] = (PlanRole){0};
        r->plan->n_roles = i + 1;
        if (!read_role(r, i, seen)) {
            return false;
        }
    }
    for (uint32_t rank = 0; rank < r->plan->world; rank++) {
        if (!seen[rank]) {
            return fail(r, "rank %u plays no role; give it one", rank);
        }
    }
    if (!expect(r, "end") || !end_of_line(r)) {
        return false;
    }
    return !r->line || fail(r, "text after 'end'");
}

static bool read_plan(Reader *r) {
    next_line(r);
    return read_head(r) && read_mesh(r) && read_lanes(r) && read_modules(r) && read_units(r) &&
           read_parameters(r) && read_roles(r);
}

Plan *plan_read(const char *text, gsize length, const char *file_name, GError **error) {
    g_autofree char *copy = g_strndup(text, length);
    g_autoptr(Plan) plan = g_new0(Plan, 1);
    plan->strings = g_string_chunk_new(1 << 16);
    Reader r = {.file_name = file_name, .rest = copy, .plan = plan, .error = error};
    if (strlen(copy) != length || !g_utf8_validate_len(text, length, NULL)) {
        r.number = 1;
        fail(&r, "not a text file (a NUL or a byte that is not UTF-8)");
        return NULL;
    }
    r.lanes = g_hash_table_new(g_str_hash, g_str_equal);
    r.buffers = g_array_new(FALSE, FALSE, sizeof(PlanBuffer));
    r.ops = g_array_new(FALSE, FALSE, sizeof(PlanOp));
    r.operands = g_array_new(FALSE, FALSE, sizeof(PlanOperand));
    r.dims = g_array_new(FALSE, FALSE, sizeof(int64_t));
    r.attrs = g_array_new(FALSE, FALSE, sizeof(double));
    bool ok = read_plan(&r);
    g_hash_table_unref(r.lanes);
    GArray *arrays[] = {r.buffers, r.ops, r.operands, r.dims, r.attrs};
    for (unsigned i = 0; i < G_N_ELEMENTS(arrays); i++) {
        g_array_unref(arrays[i]);
    }
    g_autoptr(GError) unsound = NULL;
    if (ok && !plan_check(plan, &unsound)) {
        g_set_error(error, PLAN_ERROR, PLAN_ERROR_CHECK, "%s: %s", file_name, unsound->message);
        ok = false;
    }
    return ok ? g_steal_pointer(&plan) : NULL;
}

Plan *plan_read_file(const char *path, GError **error) {
    gsize length;
    g_autofree char *text = plan_file_text(path, &length, error);
    return text ? plan_read(text, length, path, error) : NULL;
}
