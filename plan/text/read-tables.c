/* plan/text/read-tables.c - what all roles of a plan share, from its text: modules, units,
 * parameters, and the calls of a traced network. */
#include "plan/files/ini.h"
#include "plan/mesh.h"
#include "plan/text/reader-private.h"

static bool read_modules(PlanReader *r) {
    uint64_t n;
    if (!plan_reader_table(r, "modules", PLAN_READER_MAX_IDS, &n)) {
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
    if (!plan_reader_table(r, "units", PLAN_READER_MAX_IDS, &n)) {
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

/* Which part of it a rank has; the sizes are of the whole. */
static bool read_split(PlanReader *r, PlanParameter *p) {
    for (PlanSplit split = PLAN_SPLIT_NONE + 1; split < PLAN_N_SPLITS; split++) {
        if (p->split == PLAN_SPLIT_NONE && plan_reader_skip(r, plan_split_name(split))) {
            p->split = (uint8_t)split;
        }
    }
    const uint32_t *axes = r->plan->axes;
    bool is_of_columns = p->split == PLAN_SPLIT_COLUMNS;
    PlanAxis axis = plan_axis_of_split((PlanSplit)p->split);
    if (p->split == PLAN_SPLIT_CUT_EXPERTS &&
        (p->n_dims != 3 || p->dims[1] % axes[PLAN_AXIS_ALIKE])) {
        return plan_reader_fail(r, "the alike axis does not divide the rows of these experts");
    }
    if (p->split == PLAN_SPLIT_THIRDS && p->dims[0] % (3 * axes[axis])) {
        return plan_reader_fail(r, "the tensor axis does not divide the thirds of this parameter");
    }
    return p->dims[is_of_columns ? p->n_dims - 1 : 0] % axes[axis] == 0 ||
           plan_reader_fail(r, "the %s axis does not divide %s of this parameter",
                            plan_axis_name(axis), is_of_columns ? "the columns" : "the rows");
}

static bool read_parameters(PlanReader *r) {
    uint64_t n;
    if (!plan_reader_table(r, "parameters", PLAN_READER_MAX_IDS, &n)) {
        return false;
    }
    g_autoptr(GArray) parameters = g_array_new(FALSE, TRUE, sizeof(PlanParameter));
    for (uint32_t i = 0; i < n; i++) {
        PlanParameter p = {0};
        if (!plan_reader_row_id(r, 'p', i) ||
            !plan_reader_id(r, plan_reader_word(r), 'u', r->plan->n_units, false, &p.unit) ||
            !plan_reader_dtype(r, &p.dtype) || !read_shape(r, &p) ||
            !plan_reader_name(r, &p.name)) {
            return false;
        }
        p.frozen = plan_reader_skip(r, "frozen");
        p.four_bits = plan_reader_skip(r, "four_bits");
        if (!read_split(r, &p) || !plan_reader_end_of_line(r)) {
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
    if (!plan_reader_rows(r, PLAN_READER_MAX_IDS, &n)) {
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

bool plan_reader_tables(PlanReader *r) {
    return read_modules(r) && read_units(r) && read_parameters(r) && read_calls(r);
}
