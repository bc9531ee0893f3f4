/* plan/op/extent.h - how many elements of an operand a kernel touches, as its row of ops.def says:
 * products of dims ("rows*cols", "rows*(cols+1)", "rows/each*cols", "dim/2"), or rows that lie a
 * stride apart ("rows@stride:cols").
 *
 * Sizes that overflow become larger than any buffer. Inside plan/op only.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    PLAN_MAX_FACTORS = 6,
    PLAN_MAX_TERMS = 3
};

/* (the dims + number) / (a dim or a number) */
typedef struct {
    uint8_t n_terms, terms[PLAN_MAX_TERMS]; /* dims, by their places */
    bool is_divided, by_dim;
    uint16_t number, by;
} PlanFactor;

typedef struct {
    bool is_special; /* "*": shape.c works it out */
    bool is_strided; /* the first n_rows factors are rows, the others make one */
    uint8_t stride;  /* the dim */
    uint8_t n_rows, n_factors;
    PlanFactor factors[PLAN_MAX_FACTORS];
} PlanExtent;

static inline uint64_t plan_size_times(uint64_t a, uint64_t b) {
    uint64_t product;
    return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

static inline uint64_t plan_size_plus(uint64_t a, uint64_t b) {
    uint64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

/* Rows of `row` elements, `stride` apart. */
static inline uint64_t plan_size_span(uint64_t rows, uint64_t stride, uint64_t row) {
    return row > stride ? UINT64_MAX : plan_size_plus(plan_size_times(rows - 1, stride), row);
}

/* text: NULL for the first dim, or one element where there is none. A row that is wrong is the
 * programmer's slip. */
PlanExtent plan_extent_parse(const char *text, const char *const *dims, unsigned n_dims);
uint64_t plan_extent_elements(const PlanExtent *extent, const uint64_t *dims); /* not special */
