/* plan/text/read.c - a plan from its text, whoever wrote it.
 *
 * Every number is bounded before it is used as an index or a size, nothing is allocated by a count
 * that the text merely claims, and the checker has the last word, so a mutated file ends in a
 * message with its line, not in a crash.
 */
#include <string.h>

#include "plan/check/check.h"
#include "plan/files/file.h"
#include "plan/files/ini.h"
#include "plan/files/stream.h"
#include "plan/text/reader-private.h"
#include "plan/text/text.h"

enum {
    MAX_WORLD = 1 << 24
};

/* ---- tables --------------------------------------------------------------------------------- */

static bool read_block(PlanReader *r, const char *title, const char **ret) {
    if (!plan_reader_expect(r, title) || !plan_reader_end_of_line(r)) {
        return false;
    }
    g_autoptr(GString) content = g_string_new(NULL);
    while (r->line && *r->line == '|') {
        const char *text = r->line + 1;
        g_string_append_printf(content, "%s\n", *text == ' ' ? text + 1 : text);
        plan_reader_next_line(r);
    }
    *ret = plan_reader_keep(r, content->str);
    return true;
}

static bool read_head(PlanReader *r) {
    uint64_t version;
    Plan *plan = r->plan;
    if (r->line && g_str_has_suffix(r->line, "\r")) {
        return plan_reader_fail(r, "lines end in CR and LF, which some program made of LF; undo "
                                   "that (dos2unix), or copy the plan as binary");
    }
    if (!plan_reader_expect(r, PLAN_TEXT_MAGIC) ||
        !plan_reader_number(r, "the version", UINT32_MAX, &version)) {
        return false;
    }
    if (version != 1) {
        return plan_reader_fail(r,
                                "version %" G_GUINT64_FORMAT
                                " is not known here; this program reads "
                                "version 1",
                                version);
    }
    if (!plan_reader_end_of_line(r) || !plan_reader_expect(r, "title")) {
        return false;
    }
    plan->title = plan_reader_keep(r, r->cursor);
    plan_reader_next_line(r);
    return plan_reader_expect(r, "tokens_per_rank") &&
           plan_reader_number(r, "tokens_per_rank", UINT64_MAX, &plan->tokens_per_rank) &&
           plan_reader_end_of_line(r) && read_block(r, "network", &plan->network) &&
           read_block(r, "strategy", &plan->strategy);
}

static bool axis_size_of(PlanReader *r, const char *axis, const char *w, uint32_t *ret) {
    uint64_t size;
    gsize n = strlen(axis);
    if (!w || strncmp(w, axis, n) != 0 || w[n] != '=' || !plan_parse_u64(w + n + 1, &size) ||
        size < 1 || size > MAX_WORLD) {
        return plan_reader_fail(r, "expected %s=RANKS (1 to %d), not '%s'", axis, MAX_WORLD,
                                w ? w : "");
    }
    *ret = (uint32_t)size;
    return true;
}

static bool axis_size(PlanReader *r, const char *axis, uint32_t *ret) {
    return axis_size_of(r, axis, plan_reader_word(r), ret);
}

/* These are written where they have several ranks, in this order. */
static bool read_axes_of_several(PlanReader *r) {
    static const PlanAxis several[] = {PLAN_AXIS_TENSOR, PLAN_AXIS_CONTEXT, PLAN_AXIS_PIPELINE,
                                       PLAN_AXIS_EXPERT};
    uint32_t *axes = r->plan->axes;
    const char *w = plan_reader_word(r);
    for (unsigned i = 0; i < G_N_ELEMENTS(several); i++) {
        const char *name = plan_axis_name(several[i]);
        bool is_last = i + 1 == G_N_ELEMENTS(several);
        axes[several[i]] = 1;
        if (w && (is_last || g_str_has_prefix(w, name))) {
            if (!axis_size_of(r, name, w, &axes[several[i]])) {
                return false;
            }
            w = plan_reader_word(r);
        }
    }
    return true;
}

static bool read_mesh(PlanReader *r) {
    Plan *plan = r->plan;
    plan->axes[PLAN_AXIS_NONE] = 1;
    if (!plan_reader_expect(r, "mesh") ||
        !axis_size(r, "replicate", &plan->axes[PLAN_AXIS_REPLICATE]) ||
        !axis_size(r, "shard", &plan->axes[PLAN_AXIS_SHARD]) ||
        !axis_size(r, "part", &plan->axes[PLAN_AXIS_PART]) || !read_axes_of_several(r)) {
        return false;
    }
    static const PlanAxis cut[] = {PLAN_AXIS_PART, PLAN_AXIS_CONTEXT, PLAN_AXIS_EXPERT};
    for (unsigned i = 0; i < G_N_ELEMENTS(cut); i++) {
        if (plan->axes[PLAN_AXIS_SHARD] % plan->axes[cut[i]]) {
            return plan_reader_fail(r, "%s=%u does not divide shard=%u", plan_axis_name(cut[i]),
                                    plan->axes[cut[i]], plan->axes[PLAN_AXIS_SHARD]);
        }
    }
    uint32_t expert = plan->axes[PLAN_AXIS_EXPERT];
    plan->axes[PLAN_AXIS_ALIKE] = expert > 1 ? plan->axes[PLAN_AXIS_SHARD] / expert : 1;
    uint64_t world =
        (uint64_t)plan->axes[PLAN_AXIS_REPLICATE] * (uint64_t)plan->axes[PLAN_AXIS_SHARD];
    world = world > MAX_WORLD ? world : world * plan->axes[PLAN_AXIS_TENSOR];
    world = world > MAX_WORLD ? world : world * plan->axes[PLAN_AXIS_PIPELINE];
    if (world > MAX_WORLD) {
        return plan_reader_fail(r, "a mesh of %" G_GUINT64_FORMAT " ranks is beyond %d", world,
                                MAX_WORLD);
    }
    plan->world = (uint32_t)world;
    return plan_reader_end_of_line(r);
}

static bool read_lanes(PlanReader *r) {
    if (!plan_reader_expect(r, "lanes")) {
        return false;
    }
    r->plan->lanes = plan_arena_array(r->plan->arena, const char *, PLAN_MAX_LANES);
    for (char *w = plan_reader_word(r); w; w = plan_reader_word(r)) {
        if (r->plan->n_lanes == PLAN_MAX_LANES || g_hash_table_contains(r->lanes, w)) {
            return plan_reader_fail(r, "at most %d lanes, each with a name of its own",
                                    PLAN_MAX_LANES);
        }
        const char *lane = plan_reader_keep(r, w);
        r->plan->lanes[r->plan->n_lanes++] = lane;
        g_hash_table_insert(r->lanes, (gpointer)lane, GUINT_TO_POINTER(r->plan->n_lanes));
    }
    if (!r->plan->n_lanes) {
        return plan_reader_fail(r, "a plan needs at least one lane");
    }
    plan_reader_next_line(r);
    return true;
}

static bool read_modules(PlanReader *r) {
    uint64_t n;
    if (!plan_reader_expect(r, "modules") ||
        !plan_reader_number(r, "their number", PLAN_READER_MAX_IDS, &n) ||
        !plan_reader_end_of_line(r)) {
        return false;
    }
    g_autoptr(GArray) modules = g_array_new(FALSE, TRUE, sizeof(PlanModule));
    bool has_roots = r->plan->axes[PLAN_AXIS_PIPELINE] > 1; /* each stage has one */
    for (uint32_t i = 0; i < n; i++) {
        PlanModule module = {0};
        if (!plan_reader_row_id(r, 'm', i) ||
            !plan_reader_id(r, plan_reader_word(r), 'm', i, i == 0 || has_roots, &module.parent) ||
            !plan_reader_name(r, &module.class_name) || !plan_reader_name(r, &module.name) ||
            !plan_reader_end_of_line(r)) {
            return false;
        }
        if (g_str_equal(module.name, "-")) {
            module.name = "";
        }
        g_array_append_val(modules, module);
    }
    r->plan->modules = plan_reader_take(r, modules, &r->plan->n_modules);
    return true;
}

static bool read_units(PlanReader *r) {
    uint64_t n;
    if (!plan_reader_expect(r, "units") ||
        !plan_reader_number(r, "their number", PLAN_READER_MAX_IDS, &n) ||
        !plan_reader_end_of_line(r)) {
        return false;
    }
    g_autoptr(GArray) units = g_array_new(FALSE, TRUE, sizeof(PlanUnit));
    for (uint32_t i = 0; i < n; i++) {
        PlanUnit unit = {0};
        if (!plan_reader_row_id(r, 'u', i) ||
            !plan_reader_number(r, "elements", UINT64_MAX / 64, &unit.elements) ||
            !plan_reader_number(r, "shard elements", UINT64_MAX / 64, &unit.shard_elements) ||
            !plan_reader_name(r, &unit.name) || !plan_reader_end_of_line(r)) {
            return false;
        }
        g_array_append_val(units, unit);
    }
    r->plan->units = plan_reader_take(r, units, &r->plan->n_units);
    return true;
}

static bool read_shape(PlanReader *r, PlanParameter *parameter) {
    char *w = plan_reader_word(r);
    g_auto(GStrv) dims = g_strsplit(w ? w : "", "x", -1);
    parameter->elements = 1;
    for (char **dim = dims; *dim; dim++) {
        uint64_t size;
        if (parameter->n_dims == 4 || !plan_parse_u64(*dim, &size) || size < 1 ||
            size > (UINT64_MAX / 64) / parameter->elements) {
            return plan_reader_fail(r, "a shape is one to four sizes joined by x, not '%s'",
                                    w ? w : "");
        }
        parameter->dims[parameter->n_dims++] = (int64_t)size;
        parameter->elements *= size;
    }
    return parameter->n_dims > 0 || plan_reader_fail(r, "a shape is missing");
}

static bool read_dtype(PlanReader *r, uint8_t *ret) {
    char *w = plan_reader_word(r);
    PlanDtype dtype;
    if (!w || !plan_dtype_parse(w, &dtype)) {
        g_autoptr(GString) names = g_string_new(NULL);
        for (unsigned i = 0; i < PLAN_N_DTYPES; i++) {
            g_string_append_printf(names, "%s%s", i ? ", " : "", plan_dtype_name((PlanDtype)i));
        }
        return plan_reader_fail(r, "'%s' is no dtype; they are %s", w ? w : "", names->str);
    }
    *ret = (uint8_t)dtype;
    return true;
}

static bool read_parameters(PlanReader *r) {
    uint64_t n;
    if (!plan_reader_expect(r, "parameters") ||
        !plan_reader_number(r, "their number", PLAN_READER_MAX_IDS, &n) ||
        !plan_reader_end_of_line(r)) {
        return false;
    }
    g_autoptr(GArray) parameters = g_array_new(FALSE, TRUE, sizeof(PlanParameter));
    for (uint32_t i = 0; i < n; i++) {
        PlanParameter p = {0};
        if (!plan_reader_row_id(r, 'p', i) ||
            !plan_reader_id(r, plan_reader_word(r), 'u', r->plan->n_units, false, &p.unit) ||
            !read_dtype(r, &p.dtype) || !read_shape(r, &p) || !plan_reader_name(r, &p.name)) {
            return false;
        }
        p.frozen = plan_reader_skip(r, "frozen");
        p.four_bits = plan_reader_skip(r, "four_bits");
        p.share = plan_reader_skip(r, "rows")          ? PLAN_SHARE_ROWS
                  : plan_reader_skip(r, "columns")     ? PLAN_SHARE_COLUMNS
                  : plan_reader_skip(r, "experts")     ? PLAN_SHARE_EXPERTS
                  : plan_reader_skip(r, "cut_experts") ? PLAN_SHARE_CUT_EXPERTS
                                                       : PLAN_SHARE_ALL;
        int64_t shared = p.dims[p.share == PLAN_SHARE_COLUMNS ? p.n_dims - 1 : 0];
        PlanAxis axis = plan_axis_of_share((PlanShare)p.share);
        bool cuts = p.share == PLAN_SHARE_CUT_EXPERTS;
        if (cuts && (p.n_dims != 3 || p.dims[1] % r->plan->axes[PLAN_AXIS_ALIKE])) {
            return plan_reader_fail(r, "the alike axis does not divide the rows of these experts");
        }
        if (shared % r->plan->axes[axis]) {
            return plan_reader_fail(r, "the %s axis does not divide %s of this parameter",
                                    plan_axis_name(axis),
                                    p.share == PLAN_SHARE_COLUMNS ? "the columns" : "the rows");
        }
        if (!plan_reader_end_of_line(r)) {
            return false;
        }
        g_array_append_val(parameters, p);
    }
    r->plan->parameters = plan_reader_take(r, parameters, &r->plan->n_parameters);
    return true;
}

/* Of a traced network; what they say is read where they are played. */
static bool read_calls(PlanReader *r) {
    uint64_t n;
    if (!plan_reader_skip(r, "calls")) {
        return true;
    }
    if (!plan_reader_number(r, "their number", PLAN_READER_MAX_IDS, &n) ||
        !plan_reader_end_of_line(r)) {
        return false;
    }
    g_autoptr(GArray) calls = g_array_new(FALSE, TRUE, sizeof(const char *));
    for (uint32_t i = 0; i < n; i++) {
        if (!plan_reader_row_id(r, 'c', i + 1)) {
            return false;
        }
        const char *text = plan_reader_keep(r, r->cursor);
        g_array_append_val(calls, text);
        plan_reader_next_line(r);
    }
    r->plan->calls = plan_reader_take(r, calls, &r->plan->n_calls);
    return true;
}

/* ---- a role's head -------------------------------------------------------------------------- */

static bool read_ranks(PlanReader *r, bool *seen) {
    char *w = plan_reader_word(r);
    g_auto(GStrv) parts = g_strsplit(w ? w : "", ",", -1);
    g_autoptr(GArray) ranks = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    for (char **part = parts; *part; part++) {
        g_auto(GStrv) ends = g_strsplit(*part, "-", 2);
        uint64_t first, last;
        if (!ends[0] || !plan_parse_u64(ends[0], &first) ||
            !plan_parse_u64(ends[1] ? ends[1] : ends[0], &last) || first > last ||
            last >= r->plan->world) {
            return plan_reader_fail(r, "ranks are written 0-3,7 and lie below %u, not '%s'",
                                    r->plan->world, *part);
        }
        for (uint32_t rank = (uint32_t)first; rank <= last; rank++) {
            if (seen[rank]) {
                return plan_reader_fail(r, "rank %u plays two roles; give it one", rank);
            }
            seen[rank] = true;
            g_array_append_val(ranks, rank);
        }
    }
    if (!ranks->len) {
        return plan_reader_fail(r, "a role needs ranks");
    }
    r->role->ranks = plan_reader_take(r, ranks, &r->role->n_ranks);
    return true;
}

static bool read_carried(PlanReader *r, PlanBuffer *buffer) {
    char *w = plan_reader_word(r);
    for (const char *c = w; w && !g_str_equal(w, "-") && *c; c++) {
        const char *letter = strchr("cfst", *c);
        if (!letter) {
            return plan_reader_fail(r, "carried is '-' or some of the letters c f s t, not '%s'",
                                    w);
        }
        buffer->carried |= (uint8_t)(1u << (letter - "cfst"));
    }
    return w || plan_reader_fail(r, "carried ('-' or some of c f s t) is missing");
}

static bool read_buffers(PlanReader *r) {
    uint64_t n;
    if (!plan_reader_expect(r, "buffers") ||
        !plan_reader_number(r, "their number", PLAN_READER_MAX_IDS, &n) ||
        !plan_reader_end_of_line(r)) {
        return false;
    }
    for (uint32_t i = 0; i < n; i++) {
        PlanBuffer b = {0};
        PlanSubcategory sub;
        if (!plan_reader_row_id(r, 'b', i) ||
            !plan_reader_number(r, "bytes", UINT64_MAX / 64, &b.bytes) ||
            !read_dtype(r, &b.dtype)) {
            return false;
        }
        char *w = plan_reader_word(r);
        if (!w || !plan_subcategory_parse(w, &sub)) {
            return plan_reader_fail(r, "'%s' is no category such as parameters/sharded",
                                    w ? w : "");
        }
        b.sub = (uint8_t)sub;
        if (!plan_reader_lane(r, plan_reader_word(r), &b.lane) ||
            !plan_reader_id(r, plan_reader_word(r), 'u', r->plan->n_units, true, &b.unit) ||
            !read_carried(r, &b) || !plan_reader_name(r, &b.name) || !plan_reader_end_of_line(r)) {
            return false;
        }
        if (!b.bytes || b.bytes % plan_dtype_bytes((PlanDtype)b.dtype)) {
            r->number--;
            return plan_reader_fail(r, "bytes must be a positive multiple of the dtype's size");
        }
        g_array_append_val(r->buffers, b);
    }
    return true;
}

static bool read_loss_ops(PlanReader *r) {
    for (char *w; (w = plan_reader_word(r));) {
        uint32_t op;
        if (!plan_reader_id(r, w, 'o', PLAN_READER_MAX_IDS, false, &op)) {
            return false;
        }
        g_array_append_val(r->loss_ops, op);
    }
    plan_reader_next_line(r);
    return true;
}

static bool read_role(PlanReader *r, uint32_t id, PlanRole *role, bool *seen) {
    uint64_t found;
    r->role = role;
    if (!plan_reader_expect(r, "role") ||
        !plan_reader_number(r, "its number", UINT32_MAX, &found)) {
        return false;
    }
    if (found != id) {
        return plan_reader_fail(r, "role %" G_GUINT64_FORMAT " stands where role %u should", found,
                                id);
    }
    if (!plan_reader_expect(r, "ranks") || !read_ranks(r, seen) || !plan_reader_end_of_line(r) ||
        !plan_reader_expect(r, "owns") ||
        !plan_reader_number(r, "elements", UINT64_MAX, &role->n_parameter_elements) ||
        !plan_reader_end_of_line(r) || !plan_reader_expect(r, "loss") || !read_loss_ops(r) ||
        !read_buffers(r)) {
        return false;
    }
    for (PlanSection s = 0; s < PLAN_N_SECTIONS; s++) {
        if (!plan_reader_section(r, s)) {
            return false;
        }
    }
    for (guint l = 0; l < r->loss_ops->len; l++) {
        uint32_t op = g_array_index(r->loss_ops, uint32_t, l);
        if (op >= r->ops->len) {
            return plan_reader_fail(r, "loss o%u is beyond the %u ops of the role", op,
                                    r->ops->len);
        }
    }
    role->buffers = plan_reader_take(r, r->buffers, &role->n_buffers);
    role->ops = plan_reader_take(r, r->ops, &role->n_ops);
    role->operands = plan_reader_take(r, r->operands, &role->n_operands);
    role->parts = plan_reader_take(r, r->parts, &role->n_parts);
    role->dims = plan_reader_take(r, r->dims, &role->n_dims);
    role->attrs = plan_reader_take(r, r->attrs, &role->n_attrs);
    role->loss_ops = plan_reader_take(r, r->loss_ops, &role->n_loss_ops);
    return true;
}

static bool read_roles(PlanReader *r) {
    uint64_t n;
    if (!plan_reader_expect(r, "roles") ||
        !plan_reader_number(r, "their number", r->plan->world, &n) || !plan_reader_end_of_line(r)) {
        return false;
    }
    if (n < 1) {
        r->number--;
        return plan_reader_fail(r, "a plan has at least one role");
    }
    g_autofree bool *seen = g_new0(bool, r->plan->world);
    g_autoptr(GArray) roles = g_array_new(FALSE, FALSE, sizeof(PlanRole));
    for (uint32_t i = 0; i < n; i++) {
        PlanRole role = {0};
        if (!read_role(r, i, &role, seen)) {
            return false;
        }
        g_array_append_val(roles, role);
    }
    r->plan->roles = plan_reader_take(r, roles, &r->plan->n_roles);
    for (uint32_t rank = 0; rank < r->plan->world; rank++) {
        if (!seen[rank]) {
            return plan_reader_fail(r, "rank %u plays no role; give it one", rank);
        }
    }
    if (!plan_reader_expect(r, "end") || !plan_reader_end_of_line(r)) {
        return false;
    }
    return !r->line || plan_reader_fail(r, "text after 'end'");
}

static bool read_plan(PlanReader *r) {
    plan_reader_next_line(r);
    return read_head(r) && read_mesh(r) && read_lanes(r) && read_modules(r) && read_units(r) &&
           read_parameters(r) && read_calls(r) && read_roles(r);
}

Plan *plan_read(const char *text, gsize length, const char *file_name, GError **error) {
    g_autofree char *copy = g_strndup(text, length);
    g_autoptr(Plan) plan = plan_new();
    plan->is_read = true;
    PlanReader r = {.file_name = file_name, .rest = copy, .plan = plan, .error = error};
    if (strlen(copy) != length || !g_utf8_validate_len(text, length, NULL)) {
        r.number = 1;
        plan_reader_fail(&r, "not a text file (a NUL or a byte that is not UTF-8)");
        return NULL;
    }
    r.texts = g_hash_table_new(g_str_hash, g_str_equal);
    r.lanes = g_hash_table_new(g_str_hash, g_str_equal);
    r.buffers = g_array_new(FALSE, FALSE, sizeof(PlanBuffer));
    r.ops = g_array_new(FALSE, FALSE, sizeof(PlanOp));
    r.operands = g_array_new(FALSE, FALSE, sizeof(PlanRef));
    r.parts = g_array_new(FALSE, FALSE, sizeof(PlanOperand));
    r.dims = g_array_new(FALSE, FALSE, sizeof(int64_t));
    r.attrs = g_array_new(FALSE, FALSE, sizeof(double));
    r.loss_ops = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    bool ok = read_plan(&r);
    g_hash_table_unref(r.texts);
    g_hash_table_unref(r.lanes);
    GArray *arrays[] = {r.buffers, r.ops, r.operands, r.parts, r.dims, r.attrs, r.loss_ops};
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
    return text ? plan_read(text, length, plan_stream_name(path), error) : NULL;
}

bool plan_is_file(const char *path) {
    return plan_file_begins(path, PLAN_TEXT_MAGIC);
}
