/* kernels/host/products/float8.h - numbers stored in 8 bits, and what goes with them: e4m3 (bias 7,
 * no infinity, PyTorch's float8_e4m3fn) and e5m2 (bias 15).
 *
 * Widening is exact. Narrowing rounds to nearest, ties to even, and gives the largest number for
 * what is larger (448, 57344), infinity included; NaN stays NaN. That is PyTorch's cast of what was
 * clamped to those bounds, as torchao.float8 does (0.18, to_fp8_saturated). Largest magnitudes are
 * NaN where a number is.
 * Bound: memory.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

void kernel_widen_e4m3(float *out, const uint8_t *x, size_t n);
void kernel_widen_e5m2(float *out, const uint8_t *x, size_t n);
void kernel_narrow_e4m3(uint8_t *out, const float *x, size_t n);
void kernel_narrow_e5m2(uint8_t *out, const float *x, size_t n);

/* The largest: of all of x, of each row, of each column; 0 of none. */
float kernel_magnitude_f32(const float *x, size_t n);
void kernel_magnitude_rows_f32(float *out, const float *x, size_t rows, size_t cols);
void kernel_magnitude_columns_f32(float *out, const float *x, size_t rows, size_t cols);

/* What numbers of which `magnitude` is the largest are multiplied by, so that it becomes `largest`:
 * their quotient in double, rounded to float, and that down to a power of two where asked. A
 * magnitude below 1e-12 counts as that; one that is NaN gives no number (NaN, or infinity). */
float kernel_float8_scale(double magnitude, double largest, bool to_power);

/* Of each of several tensors, in place: history[passes, tensors] holds its largest magnitudes in so
 * many passes, the newest first; scale, which products multiply by, becomes that of the largest
 * among them, down to a power of two's inverse, if it is above 0 and finite. Then the newest goes
 * last, and 0 stands in its place: whatever is put there next, the oldest is first to go. */
void kernel_float8_delay(float *history, float *scale, size_t passes, size_t tensors,
                         double largest);

/* x [rows, cols] times a number of each row and of each column, or (n 1) one for all, in place. */
void kernel_scale_rows_columns_f32(float *x, const float *row, size_t n_row, const float *column,
                                   size_t n_column, size_t rows, size_t cols);

/* [rows, cols, inner] becomes [cols, rows, inner]. */
void kernel_exchange_bytes(uint8_t *out, const uint8_t *x, size_t rows, size_t cols, size_t inner);
