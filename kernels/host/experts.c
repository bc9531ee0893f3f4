/* kernels/host/experts.c - see experts.h. */
#include "kernels/host/experts.h"

#include <math.h>
#include <string.h>

#include "kernels/host/elementwise.h"
#include "kernels/host/products/matmul.h"

static bool is_below(int64_t index, size_t n) {
    return index >= 0 && (uint64_t)index < n;
}

/* ---- choosing ------------------------------------------------------------------------------- */

/* As torch.topk chooses: what is no number first. */
static bool is_above(float a, float b) {
    return a > b || (isnan(a) && !isnan(b));
}

static bool is_chosen(const int64_t *chosen, size_t n, size_t column) {
    for (size_t i = 0; i < n; i++) {
        if (chosen[i] == (int64_t)column) {
            return true;
        }
    }
    return false;
}

void kernel_top_k_f32(float *y, int64_t *index, const float *x, size_t rows, size_t cols,
                      size_t k) {
    for (size_t r = 0; r < rows; r++) {
        const float *row = x + r * cols;
        int64_t *chosen = index + r * k;
        for (size_t j = 0; j < k; j++) {
            size_t best = cols;
            for (size_t c = 0; c < cols; c++) {
                bool is_better = best == cols || is_above(row[c], row[best]);
                if (is_better && !is_chosen(chosen, j, c)) {
                    best = c;
                }
            }
            chosen[j] = (int64_t)best;
            y[r * k + j] = row[best];
        }
    }
}

bool kernel_pick_columns_f32(float *y, const float *x, const int64_t *index, size_t rows,
                             size_t cols, size_t k) {
    for (size_t i = 0; i < rows * k; i++) {
        if (!is_below(index[i], cols)) {
            return false;
        }
        y[i] = x[i / k * cols + (size_t)index[i]];
    }
    return true;
}

bool kernel_pick_columns_backward_f32(float *dx, const float *dy, const int64_t *index, size_t rows,
                                      size_t cols, size_t k) {
    kernel_zero_f32(dx, rows * cols);
    for (size_t i = 0; i < rows * k; i++) {
        if (!is_below(index[i], cols)) {
            return false;
        }
        dx[i / k * cols + (size_t)index[i]] += dy[i];
    }
    return true;
}

void kernel_add_column_f32(float *y, const float *x, const float *column, size_t rows,
                           size_t cols) {
    for (size_t i = 0; i < rows * cols; i++) {
        y[i] = x[i] + column[i / cols];
    }
}

void kernel_divide_column_f32(float *y, const float *x, const float *column, size_t rows,
                              size_t cols) {
    for (size_t i = 0; i < rows * cols; i++) {
        y[i] = x[i] / column[i / cols];
    }
}

/* ---- sorting -------------------------------------------------------------------------------- */

bool kernel_count_i64(int64_t *counts, const int64_t *index, size_t n, size_t groups) {
    memset(counts, 0, groups * sizeof *counts);
    for (size_t i = 0; i < n; i++) {
        if (!is_below(index[i], groups)) {
            return false;
        }
        counts[index[i]]++;
    }
    return true;
}

/* By counting, with no memory but the results': a pass over all numbers for each group. */
bool kernel_sort_i64(int64_t *sorted, int64_t *order, const int64_t *index, size_t n,
                     size_t groups) {
    size_t at = 0;
    for (size_t g = 0; g < groups; g++) {
        for (size_t i = 0; i < n; i++) {
            if (index[i] == (int64_t)g) {
                sorted[at] = (int64_t)g;
                order[at++] = (int64_t)i;
            }
        }
    }
    return at == n;
}

void kernel_divide_down_i64(int64_t *y, const int64_t *x, int64_t by, size_t n) {
    for (size_t i = 0; i < n; i++) {
        y[i] = x[i] / by;
    }
}

bool kernel_ends_i32(int32_t *ends, const int64_t *counts, size_t groups) {
    int64_t sum = 0;
    for (size_t g = 0; g < groups; g++) {
        if (counts[g] < 0 || counts[g] > INT32_MAX - sum) {
            return false;
        }
        sum += counts[g];
        ends[g] = (int32_t)sum;
    }
    return true;
}

bool kernel_narrow_i64(int32_t *y, const int64_t *x, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (x[i] < INT32_MIN || x[i] > INT32_MAX) {
            return false;
        }
        y[i] = (int32_t)x[i];
    }
    return true;
}

bool kernel_tally_i32(int32_t *tally, const int32_t *index, size_t n, size_t groups) {
    memset(tally, 0, groups * sizeof *tally);
    for (size_t i = 0; i < n; i++) {
        if (!is_below(index[i], groups)) {
            return false;
        }
        tally[index[i]]++;
    }
    return true;
}

bool kernel_tally_ends_i32(int32_t *ends, const int32_t *tally, size_t groups) {
    int32_t sum = 0;
    for (size_t g = 0; g < groups; g++) {
        if (tally[g] < 0 || tally[g] > INT32_MAX - sum) {
            return false;
        }
        sum += tally[g];
        ends[g] = sum;
    }
    return true;
}

bool kernel_invert_i64(int64_t *index, int64_t *position, const int64_t *order, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (!is_below(order[i], n)) {
            return false;
        }
        position[i] = (int64_t)i;
        index[order[i]] = position[i];
    }
    return true;
}

void kernel_sum_each_f32(float *y, const float *x, size_t rows, size_t each, size_t width,
                         size_t row) {
    for (size_t r = 0; r < rows; r++) {
        const float *terms = x + r * each * row;
        kernel_copy_f32(y + r * width, terms, width);
        for (size_t e = 1; e < each; e++) {
            kernel_add_inplace_f32(y + r * width, terms + e * row, width);
        }
    }
}

void kernel_repeat_each_f32(float *y, const float *x, size_t rows, size_t each, size_t width) {
    for (size_t i = 0; i < rows * each; i++) {
        kernel_copy_f32(y + i * width, x + i / each * width, width);
    }
}

/* ---- products ------------------------------------------------------------------------------- */

static bool are_ends(const int32_t *ends, size_t m, size_t groups) {
    int32_t before = 0;
    for (size_t g = 0; g < groups; g++) {
        if (ends[g] < before) {
            return false;
        }
        before = ends[g];
    }
    return (size_t)before == m;
}

static size_t begin_of(const int32_t *ends, size_t group) {
    return group ? (size_t)ends[group - 1] : 0;
}

static size_t rows_of(const int32_t *ends, size_t group) {
    return (size_t)ends[group] - begin_of(ends, group);
}

bool kernel_grouped_linear_f32(float *y, const float *x, const float *w, const int32_t *ends,
                               size_t m, size_t n, size_t k, size_t groups) {
    if (!are_ends(ends, m, groups)) {
        return false;
    }
    for (size_t g = 0; g < groups; g++) {
        size_t from = begin_of(ends, g), rows = rows_of(ends, g);
        if (rows) {
            kernel_linear_forward_f32(y + from * n, x + from * k, w + g * n * k, NULL, rows, n, k);
        }
    }
    return true;
}

bool kernel_grouped_parts_f32(float *y, const float *x, const float *w, const int32_t *ends,
                              size_t m, size_t n, size_t k, size_t groups, size_t parts) {
    size_t cols = n / parts;
    if (!are_ends(ends, m, groups)) {
        return false;
    }
    for (size_t i = 0; i < groups * parts; i++) {
        size_t g = i / parts, part = i % parts, from = begin_of(ends, g), rows = rows_of(ends, g);
        if (rows) {
            kernel_linear_forward_f32(y + (part * m + from) * cols, x + from * k,
                                      w + (g * n + part * cols) * k, NULL, rows, cols, k);
        }
    }
    return true;
}

bool kernel_grouped_linear_dx_f32(float *dx, const float *dy, const float *w, const int32_t *ends,
                                  size_t m, size_t n, size_t k, size_t groups) {
    if (!are_ends(ends, m, groups)) {
        return false;
    }
    for (size_t g = 0; g < groups; g++) {
        size_t from = begin_of(ends, g), rows = rows_of(ends, g);
        if (rows) {
            kernel_linear_backward_input_f32(dx + from * k, dy + from * n, w + g * n * k, rows, n,
                                             k);
        }
    }
    return true;
}

/* An expert that no row went to has a gradient of zeros. */
bool kernel_grouped_linear_dw_f32(float *dw, const float *dy, const float *x, const int32_t *ends,
                                  size_t m, size_t n, size_t k, size_t groups) {
    if (!are_ends(ends, m, groups)) {
        return false;
    }
    for (size_t g = 0; g < groups; g++) {
        size_t from = begin_of(ends, g), rows = rows_of(ends, g);
        if (rows) {
            kernel_linear_backward_weight_f32(dw + g * n * k, dy + from * n, x + from * k, rows, n,
                                              k);
        } else {
            kernel_zero_f32(dw + g * n * k, n * k);
        }
    }
    return true;
}

bool kernel_add_to_rows_f32(float *y, const float *a, const float *x, const int64_t *index,
                            size_t n, size_t width, size_t rows) {
    kernel_copy_f32(y, a, rows * width);
    for (size_t i = 0; i < n; i++) {
        if (!is_below(index[i], rows)) {
            return false;
        }
        kernel_add_inplace_f32(y + (size_t)index[i] * width, x + i * width, width);
    }
    return true;
}
