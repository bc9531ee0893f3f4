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
#include "plan/text/format.h"
#include "plan/text/reader-private.h"
#include "plan/text/text.h"

enum {
    MAX_WORLD = 1 << 24
};

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
    if (version != PLAN_TEXT_VERSION) {
        return plan_reader_fail(r,
                                "version %" G_GUINT64_FORMAT
                                " is not known here; this program reads version %d: build "
                                "the plan again (foreshard plan)",
                                version, PLAN_TEXT_VERSION);
    }
    if (!plan_reader_end_of_line(r) || !plan_reader_expect(r, "title")) {
        return false;
    }
    if (plan_has_control(r->cursor)) {
        return plan_reader_fail(r, "the title has a control character, which a terminal would "
                                   "obey; take it away");
    }
    plan->title = plan_reader_keep(r, r->cursor);
    plan_reader_next_line(r);
    return plan_reader_expect(r, "tokens_per_rank") &&
           plan_reader_number(r, "tokens_per_rank", UINT64_MAX, &plan->tokens_per_rank) &&
           plan_reader_end_of_line(r) && read_block(r, "network", &plan->network) &&
           read_block(r, "strategy", &plan->strategy);
}

static bool parse_axis_size(PlanReader *r, const char *axis, const char *w, uint32_t *ret) {
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

static bool read_axes(PlanReader *r) {
    const char *w = plan_reader_word(r);
    for (PlanAxis axis = PLAN_TEXT_FIRST_AXIS; axis <= PLAN_TEXT_LAST_AXIS; axis++) {
        const char *name = plan_axis_name(axis);
        uint32_t *size = &r->plan->axes[axis];
        *size = 1;
        if (plan_text_always_has(axis) || (w && g_str_has_prefix(w, name))) {
            if (!parse_axis_size(r, name, w, size)) {
                return false;
            }
            w = plan_reader_word(r);
        }
    }
    return !w || plan_reader_fail(r, "'%s' is no axis of a mesh, or is out of order", w);
}

static bool read_mesh(PlanReader *r) {
    Plan *plan = r->plan;
    plan->axes[PLAN_AXIS_NONE] = 1;
    if (!plan_reader_expect(r, "mesh") || !read_axes(r)) {
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

static bool read_end(PlanReader *r) {
    return plan_reader_expect(r, "end") && plan_reader_end_of_line(r) &&
           (!r->line || plan_reader_fail(r, "text after 'end'"));
}

static bool read_plan(PlanReader *r) {
    plan_reader_next_line(r);
    return read_head(r) && read_mesh(r) && read_lanes(r) && plan_reader_tables(r) &&
           plan_reader_roles(r) && read_end(r);
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
    plan_reader_init(&r);
    bool ok = read_plan(&r);
    plan_reader_clear(&r);
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
