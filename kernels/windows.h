/* kernels/windows.h - windows that move along one to three sides of channels, for the host and for
 * CUDA: convolutions' and pools'.
 *
 * A tensor is [samples, channels, side, ..]; of fewer than three sides the first are 1. Number i of
 * a window at place p lies at p * stride - padding + i * apart, in the padding if that is no place.
 */
#pragma once
#include <stddef.h>
#include <stdint.h>

enum {
    KERNEL_WINDOW_SIDES = 3
};

typedef struct {
    size_t samples, in, out, groups; /* channels of all groups */
    size_t size[KERNEL_WINDOW_SIDES], made[KERNEL_WINDOW_SIDES], window[KERNEL_WINDOW_SIDES];
    int64_t stride[KERNEL_WINDOW_SIDES], padding[KERNEL_WINDOW_SIDES], apart[KERNEL_WINDOW_SIDES];
} KernelWindows;

static inline size_t kernel_windows_area(const size_t *sizes) {
    return sizes[0] * sizes[1] * sizes[2];
}
