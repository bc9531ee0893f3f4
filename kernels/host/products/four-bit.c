/* kernels/host/products/four-bit.c - see four-bit.h. */
#include "kernels/host/products/four-bit.h"

#include <math.h>

#include "kernels/host/products/float8.h"

static size_t smaller(size_t a, size_t b) {
    return a < b ? a : b;
}

/* How many bounds between neighbours a number is above. */
static unsigned above(const float *bounds, unsigned n, float x) {
    unsigned low = 0, high = n;
    while (low < high) {
        unsigned middle = (low + high) / 2;
        if (x > bounds[middle]) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* What a block is multiplied by. */
static float inverse(float absmax) {
    return absmax > 0 ? 1 / absmax : 0;
}

static void bounds_of(const KernelFourBitValues *code, float *ret_bounds) {
    for (unsigned i = 0; i + 1 < code->n_places; i++) {
        ret_bounds[i] = (code->values[code->places[i]] + code->values[code->places[i + 1]]) / 2;
    }
}

static unsigned place_of(const KernelFourBitValues *code, const float *bounds, float x) {
    unsigned sign = x < 0 ? code->sign : 0;
    return sign | code->places[above(bounds, code->n_places - 1, code->sign ? fabsf(x) : x)];
}

void kernel_quantize_4bit(uint8_t *packed, float *absmax, const float *w, size_t n,
                          KernelFourBitCode which) {
    const KernelFourBitValues *code = &kernel_four_bit_values[which];
    float bounds[15];
    bounds_of(code, bounds);
    for (size_t from = 0; from < n; from += KERNEL_FOUR_BIT_BLOCK) {
        size_t end = smaller(from + KERNEL_FOUR_BIT_BLOCK, n);
        float largest = kernel_magnitude_f32(w + from, end - from), factor = inverse(largest);
        absmax[from / KERNEL_FOUR_BIT_BLOCK] = largest;
        for (size_t i = from; i < end; i += 2) {
            unsigned first = place_of(code, bounds, w[i] * factor);
            unsigned second =
                i + 1 < end ? place_of(code, bounds, w[i + 1] * factor) : code->of_zero;
            packed[i / 2] = (uint8_t)(first << 4 | second);
        }
    }
}

void kernel_dequantize_4bit(float *w, const uint8_t *packed, const float *absmax, size_t n,
                            KernelFourBitCode which) {
    const float *values = kernel_four_bit_values[which].values;
    for (size_t i = 0; i < n; i++) {
        unsigned place = i % 2 ? packed[i / 2] & 15 : packed[i / 2] >> 4;
        w[i] = values[place] * absmax[i / KERNEL_FOUR_BIT_BLOCK];
    }
}

/* ---- bytes ---------------------------------------------------------------------------------- */

/* Of so many even parts of 0.1 to 1, where one begins: counted from the nearer end, so that neither
 * is missed, and rounded once. */
static float begin_of(unsigned part, unsigned parts) {
    float step = 0.9f / (float)parts;
    return part < (parts + 1) / 2 ? fmaf(step, (float)part, 0.1f)
                                  : fmaf(-step, (float)(parts - part), 1);
}

/* Of decade 10^(d - 6), the first of which has so many parts, and each a twice as many. Of numbers
 * with signs 0 is in the middle. */
static void put_decade(float *map, unsigned d, unsigned first) {
    unsigned parts = first << d, zero = first == 1 ? 127 : 0;
    float power = (float)pow(10, (double)d - 6);
    for (unsigned i = 0; i < parts; i++) {
        float value = power * ((begin_of(i, parts) + begin_of(i + 1, parts)) / 2);
        unsigned place = 1 + parts - first + i;
        map[zero + place] = value;
        if (zero) {
            map[zero - place] = -value;
        }
    }
}

void kernel_state_map(float *map, unsigned first) {
    for (unsigned d = 0; d < 7; d++) {
        put_decade(map, d, first);
    }
    map[first == 1 ? 127 : 0] = 0;
    map[255] = 1;
}

void kernel_byte_map(float *map) {
    kernel_state_map(map, 1);
}

void kernel_quantize_bytes(uint8_t *bytes, float *absmax, const float *x, const float *map,
                           size_t n) {
    float bounds[KERNEL_BYTE_MAP - 1];
    for (unsigned i = 0; i + 1 < KERNEL_BYTE_MAP; i++) {
        bounds[i] = (map[i] + map[i + 1]) / 2;
    }
    for (size_t from = 0; from < n; from += KERNEL_BYTE_BLOCK) {
        size_t end = smaller(from + KERNEL_BYTE_BLOCK, n);
        float largest = kernel_magnitude_f32(x + from, end - from), factor = inverse(largest);
        absmax[from / KERNEL_BYTE_BLOCK] = largest;
        for (size_t i = from; i < end; i++) {
            bytes[i] = (uint8_t)above(bounds, KERNEL_BYTE_MAP - 1, x[i] * factor);
        }
    }
}

void kernel_dequantize_bytes(float *x, const uint8_t *bytes, const float *absmax, const float *map,
                             size_t n) {
    for (size_t i = 0; i < n; i++) {
        x[i] = map[bytes[i]] * absmax[i / KERNEL_BYTE_BLOCK];
    }
}
