/* plan/text/read-role.c - the roles of a plan from its text: their ranks, buffers and sections. */
#include <string.h>

#include "plan/files/ini.h"
#include "plan/text/format.h"
#include "plan/text/reader-private.h"

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
    static const char letters[] = PLAN_TEXT_CARRIED;
    char *w = plan_reader_word(r);
    for (const char *c = w; w && !g_str_equal(w, "-") && *c; c++) {
        const char *letter = strchr(letters, *c);
        if (!letter) {
            return plan_reader_fail(r, "carried is '-' or some of the letters c f s t, not '%s'",
                                    w);
        }
        buffer->carried |= (uint8_t)(1u << (letter - letters));
    }
    return w || plan_reader_fail(r, "carried ('-' or some of c f s t) is missing");
}

static bool read_buffers(PlanReader *r) {
    uint64_t n;
    if (!plan_reader_table(r, "buffers", PLAN_READER_MAX_IDS, &n)) {
        return false;
    }
    for (uint32_t i = 0; i < n; i++) {
        PlanBuffer b = {0};
        PlanSubcategory sub;
        if (!plan_reader_row_id(r, 'b', i) ||
            !plan_reader_number(r, "bytes", UINT64_MAX / 64, &b.bytes) ||
            !plan_reader_dtype(r, &b.dtype)) {
            return false;
        }
        if (!b.bytes || b.bytes % plan_dtype_bytes((PlanDtype)b.dtype)) {
            return plan_reader_fail(r, "bytes must be a positive multiple of the dtype's size");
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

bool plan_reader_roles(PlanReader *r) {
    uint64_t n;
    if (!plan_reader_table(r, "roles", r->plan->world, &n)) {
        return false;
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
    return true;
}
