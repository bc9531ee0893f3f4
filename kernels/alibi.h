/* kernels/alibi.h - the slopes of ALiBi (Press et al., "Train Short, Test Long", 2022), alike on
 * the host and on a GPU.
 *
 * Attention adds slope * (key - query) to a scaled score: what is further back counts less. With n
 * heads, a power of two, head h (from 1) has the slope 2^(-most h / n), most being 8 usually;
 * other numbers of heads take every other slope of the next power of two, the even ones first, as
 * MPT does.
 */
#pragma once
#include <math.h>
#include <stddef.h>

#include "kernels/everywhere.h"

/* head counts from 0; most 0: no slope. */
KERNEL_EVERYWHERE static inline float kernel_alibi_slope(size_t head, size_t heads, float most) {
    size_t n = 1, h = head + 1;
    while (n < heads) {
        n *= 2;
    }
    if (n != heads) {
        h = head < n / 2 ? 2 * head + 2 : 2 * (head - n / 2) + 1;
    }
    return most > 0 ? exp2f(-most * (float)h / (float)n) : 0.0f;
}
