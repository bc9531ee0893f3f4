/* kernels/host/experts.h - choosing experts for rows, sorting by expert, and products by expert.
 *
 * Functions that return false met a number outside its table, or ends that are none; outputs are
 * then undefined, but nothing outside them was touched. Sums go in the order of the rows, so a
 * result is repeatable. Products are bound by arithmetic, all else by memory.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Of each row's scores x[r, cols] the k largest in falling order, of equals the first first:
 * y[r, k], and where they stand, index[r, k]. Not a number counts as more than any. */
void kernel_top_k_f32(float *y, int64_t *index, const float *x, size_t rows, size_t cols, size_t k);

/* y[r, j] = x[r, index[r, j]]; and dx[r, .] = 0, then dx[r, index[r, j]] += dy[r, j]. */
bool kernel_pick_columns_f32(float *y, const float *x, const int64_t *index, size_t rows,
                             size_t cols, size_t k);
bool kernel_pick_columns_backward_f32(float *dx, const float *dy, const int64_t *index, size_t rows,
                                      size_t cols, size_t k);

/* y[r, c] = x[r, c] + column[r], and x[r, c] / column[r]. */
void kernel_add_column_f32(float *y, const float *x, const float *column, size_t rows, size_t cols);
void kernel_divide_column_f32(float *y, const float *x, const float *column, size_t rows,
                              size_t cols);

/* counts[g]: how many of index[n] are g. */
bool kernel_count_i64(int64_t *counts, const int64_t *index, size_t n, size_t groups);

/* sorted[i] = index[order[i]] rises; among equals order does. */
bool kernel_sort_i64(int64_t *sorted, int64_t *order, const int64_t *index, size_t n,
                     size_t groups);

void kernel_divide_down_i64(int64_t *y, const int64_t *x, int64_t by, size_t n);

/* ends[g] = counts[0] + ... + counts[g]. False: it is more than 31 bits hold. */
bool kernel_ends_i32(int32_t *ends, const int64_t *counts, size_t groups);

/* The same numbers in 32 bits, how many are each, and ends of those. False: what does not fit. */
bool kernel_narrow_i64(int32_t *y, const int64_t *x, size_t n);
bool kernel_tally_i32(int32_t *tally, const int32_t *index, size_t n, size_t groups);
bool kernel_tally_ends_i32(int32_t *ends, const int32_t *tally, size_t groups);

/* position[i] = i, and index[order[i]] too, of an order that names each of n places once. */
bool kernel_invert_i64(int64_t *index, int64_t *position, const int64_t *order, size_t n);

/* y[rows, width] = the sum of `each` rows of x, one behind the other, which begin `row` elements
 * apart. */
void kernel_sum_each_f32(float *y, const float *x, size_t rows, size_t each, size_t width,
                         size_t row);
/* y[r, e, .] = x[r, .]. */
void kernel_repeat_each_f32(float *y, const float *x, size_t rows, size_t each, size_t width);

/* Rows ends[g - 1] to ends[g] of x[m, k] (the last end is m) times w[g, n, k], transposed; its
 * gradients. */
bool kernel_grouped_linear_f32(float *y, const float *x, const float *w, const int32_t *ends,
                               size_t m, size_t n, size_t k, size_t groups);
/* The first alone, as so many matrices one behind the other, each of as many columns of y. */
bool kernel_grouped_parts_f32(float *y, const float *x, const float *w, const int32_t *ends,
                              size_t m, size_t n, size_t k, size_t groups, size_t parts);
bool kernel_grouped_linear_dx_f32(float *dx, const float *dy, const float *w, const int32_t *ends,
                                  size_t m, size_t n, size_t k, size_t groups);
bool kernel_grouped_linear_dw_f32(float *dw, const float *dy, const float *x, const int32_t *ends,
                                  size_t m, size_t n, size_t k, size_t groups);

/* y[rows, width] = a, then y[index[i]] += x[i] in the order of i. */
bool kernel_add_to_rows_f32(float *y, const float *a, const float *x, const int64_t *index,
                            size_t n, size_t width, size_t rows);
