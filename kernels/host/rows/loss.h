/* kernels/host/rows/loss.h - softmax, and cross entropy as PyTorch's eager ops take it apart.
 *
 * cross_entropy is log_softmax, then nll_loss; backward is nll_loss's, then log_softmax's. Rows are
 * the last dimension; maxima in float, sums in double. y and dx may alias their first input.
 * Bound: one exponential an element where one is taken, else memory.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* y = exp(x - max) / sum for each row of x[rows, width]. A row that is all -inf gives NaN. */
void kernel_softmax_forward_f32(float *y, const float *x, size_t rows, size_t width);

/* dx = y (dy - sum over the row of dy y), from the output y. */
void kernel_softmax_backward_f32(float *dx, const float *dy, const float *y, size_t rows,
                                 size_t width);

/* y = x - max - log(sum of exp(x - max)) for each row. */
void kernel_log_softmax_forward_f32(float *y, const float *x, size_t rows, size_t width);

/* dx = dy - exp(y) (sum over the row of dy), from the output y. */
void kernel_log_softmax_backward_f32(float *dx, const float *dy, const float *y, size_t rows,
                                     size_t width);

/* loss[0] = -(mean of logp[r, target[r]] over the rows whose target is not ignore_index), and
 * total_weight[0] = how many those are; logp is [rows, classes]. No such row gives NaN, as PyTorch.
 * Returns false, with outputs undefined, if a target is neither ignore_index nor a class. */
bool kernel_nll_loss_forward_f32(float *loss, float *total_weight, const float *logp,
                                 const int64_t *target, size_t rows, size_t classes,
                                 int64_t ignore_index);

/* dlogp[r, c] = -dloss[0] / total_weight[0] at c = target[r], and 0 elsewhere. */
bool kernel_nll_loss_backward_f32(float *dlogp, const float *dloss, const int64_t *target,
                                  const float *total_weight, size_t rows, size_t classes,
                                  int64_t ignore_index);

/* Softmax and loss at once, one number kept a row: lse[r] = log(sum of exp(logits[r, c])),
 * loss[0] = mean of lse[r] - logits[r, target[r]], total_weight[0] = rows. Reads the logits once
 * from memory. False, with outputs undefined, if a target is no class. */
bool kernel_cross_entropy_forward_f32(float *loss, float *total_weight, float *lse,
                                      const float *logits, const int64_t *target, size_t rows,
                                      size_t classes);

/* The logits become their gradient: (exp(logits - lse) - [c = target]) dloss / total_weight. */
bool kernel_cross_entropy_backward_f32(float *logits, const float *dloss, const int64_t *target,
                                       const float *total_weight, const float *lse, size_t rows,
                                       size_t classes);

/* The same with two numbers kept a row, as a compiler has it: most[r] = the largest of the row,
 * log_sum[r] = log(sum of exp(logits[r, c] - most[r])); rows whose target is ignore_index do not
 * count. False, with outputs undefined, if another target is no class. */
bool kernel_compiled_loss_forward_f32(float *loss, float *total_weight, float *most, float *log_sum,
                                      const float *logits, const int64_t *target, size_t rows,
                                      size_t classes, int64_t ignore_index);

/* dlogits = (exp(logits - most - log_sum) - [c = target]) dloss / total_weight, 0 in rows that do
 * not count; may be the logits themselves. */
bool kernel_compiled_loss_backward_f32(float *dlogits, const float *logits, const float *dloss,
                                       const int64_t *target, const float *total_weight,
                                       const float *most, const float *log_sum, size_t rows,
                                       size_t classes, int64_t ignore_index);

/* The same of logits of which each of several callers has some columns, [rows, width] from column
 * `first` on of `all`; a target below 0 does not count. Between the steps they settle on the
 * largest number and the sum of each row (maximum, sum) and on what is picked (sum).
 *
 * most[r] = the largest of the row. */
void kernel_largest_f32(float *most, const float *x, size_t rows, size_t width);
/* sum[r] = sum of exp(x[r, i] - most[r]). */
void kernel_sum_of_exps_f32(float *sum, const float *x, const float *most, size_t rows,
                            size_t width);
/* counted[r]: whether the target counts. Where its column is the caller's, picked[r] is the
 * logarithm of the softmax there and less[r, column] becomes -1; else picked[r] is 0. False, with
 * outputs undefined, if a target is no column of all. */
bool kernel_pick_targets_f32(float *picked, uint8_t *counted, float *less, const int64_t *target,
                             const float *logits, const float *most, const float *sum, size_t rows,
                             size_t width, int64_t first, int64_t all);
/* loss[0] = -(mean of picked over the rows that count); total[0] = how many those are. */
void kernel_mean_picked_f32(float *loss, float *total, const int64_t *target, const float *picked,
                            size_t rows);
/* y = less + exp(x - most[r]) / sum[r]; y may alias less. */
void kernel_add_softmax_f32(float *y, const float *less, const float *x, const float *most,
                            const float *sum, size_t rows, size_t width);
/* dx = y dloss / total where the row counts, else 0; dx may alias y. */
void kernel_scale_counted_f32(float *dx, const float *y, const uint8_t *counted, const float *dloss,
                              const float *total, size_t rows, size_t width);
