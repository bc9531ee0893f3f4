#include "plan/op/extent.h"

#include <string.h>

/* What is left of a row's text, and the names that it may have. */
typedef struct {
    const char *rest;
    const char *const *dims;
    unsigned n_dims;
} Reader;

static bool take(Reader *r, char c) {
    bool is_next = *r->rest == c;
    r->rest += is_next;
    return is_next;
}

static uint16_t take_number(Reader *r) {
    unsigned number = 0;
    while (g_ascii_isdigit(*r->rest)) {
        number = 10 * number + (unsigned)(*r->rest++ - '0');
        g_assert(number <= UINT16_MAX);
    }
    return (uint16_t)number;
}

static uint8_t take_dim(Reader *r) {
    gsize length = strcspn(r->rest, "*+/@:()");
    for (unsigned i = 0; i < r->n_dims; i++) {
        if (strlen(r->dims[i]) == length && strncmp(r->dims[i], r->rest, length) == 0) {
            r->rest += length;
            return (uint8_t)i;
        }
    }
    g_error("ops.def: there is no dim '%s'", r->rest);
}

static void take_term(Reader *r, PlanFactor *factor) {
    if (g_ascii_isdigit(*r->rest)) {
        factor->number = take_number(r);
        return;
    }
    g_assert(factor->n_terms < PLAN_MAX_TERMS);
    factor->terms[factor->n_terms++] = take_dim(r);
}

static PlanFactor take_factor(Reader *r) {
    PlanFactor factor = {0};
    bool is_sum = take(r, '(');
    do {
        take_term(r, &factor);
    } while (is_sum && take(r, '+'));
    g_assert(!is_sum || *r->rest == ')');
    r->rest += is_sum;
    if (take(r, '/')) {
        factor.is_divided = true;
        factor.by_dim = !g_ascii_isdigit(*r->rest);
        factor.by = factor.by_dim ? take_dim(r) : take_number(r);
    }
    return factor;
}

static void take_product(Reader *r, PlanExtent *extent) {
    do {
        g_assert(extent->n_factors < PLAN_MAX_FACTORS);
        extent->factors[extent->n_factors++] = take_factor(r);
    } while (take(r, '*'));
}

PlanExtent plan_extent_parse(const char *text, const char *const *dims, unsigned n_dims) {
    Reader r = {text ? text : n_dims ? dims[0] : "1", dims, n_dims};
    PlanExtent extent = {.is_special = g_str_equal(r.rest, "*")};
    if (extent.is_special) {
        return extent;
    }
    take_product(&r, &extent);
    extent.n_rows = extent.n_factors;
    extent.is_strided = take(&r, '@');
    if (extent.is_strided) {
        extent.stride = take_dim(&r);
        bool has_row = take(&r, ':');
        g_assert(has_row);
        take_product(&r, &extent);
    }
    g_assert(*r.rest == 0);
    return extent;
}

static uint64_t value_of(const PlanFactor *factor, const uint64_t *dims) {
    uint64_t sum = factor->number;
    for (unsigned i = 0; i < factor->n_terms; i++) {
        sum = plan_size_plus(sum, dims[factor->terms[i]]);
    }
    if (!factor->is_divided) {
        return sum;
    }
    uint64_t by = factor->by_dim ? dims[factor->by] : factor->by;
    return by ? sum / by : UINT64_MAX;
}

static uint64_t product_of(const PlanFactor *factors, unsigned n, const uint64_t *dims) {
    uint64_t product = 1;
    for (unsigned i = 0; i < n; i++) {
        product = plan_size_times(product, value_of(&factors[i], dims));
    }
    return product;
}

uint64_t plan_extent_elements(const PlanExtent *extent, const uint64_t *dims) {
    uint64_t rows = product_of(extent->factors, extent->n_rows, dims);
    if (!extent->is_strided) {
        return rows;
    }
    const PlanFactor *of_row = extent->factors + extent->n_rows;
    uint64_t row = product_of(of_row, extent->n_factors - extent->n_rows, dims);
    return plan_size_span(rows, dims[extent->stride], row);
}
