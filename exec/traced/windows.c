#include "exec/traced/windows.h"

enum {
    SIDES = KERNEL_WINDOW_SIDES
};

/* Of the last sides, of which there are n; one number may stand for all. */
static void take_list(const TracedCall *call, unsigned i, int64_t missing, unsigned n,
                      int64_t *ret_numbers) {
    const TracedArg *list = &call->args[i];
    for (unsigned s = 0; s < SIDES; s++) {
        bool is_there = s >= SIDES - n && list->of == TRACED_LIST && list->n > 0;
        unsigned at = is_there ? MIN(s - (SIDES - n), list->n - 1) : 0;
        ret_numbers[s] = is_there ? traced_item(call, list, at)->integer : missing;
    }
}

static void take_sizes(const KernelTensor *t, size_t *ret_sizes) {
    unsigned n = t->n_dims - 2;
    for (unsigned s = 0; s < SIDES; s++) {
        ret_sizes[s] = s >= SIDES - n ? t->sizes[2 + s - (SIDES - n)] : 1;
    }
}

static KernelWindows windows_of(const TracedCall *call, const KernelTensor *x,
                                const KernelTensor *y, unsigned first) {
    unsigned n = x->n_dims - 2;
    KernelWindows windows = {
        .samples = x->sizes[0], .in = x->sizes[1], .out = y->sizes[1], .groups = 1};
    take_sizes(x, windows.size);
    take_sizes(y, windows.made);
    take_list(call, first, 1, n, windows.stride);
    take_list(call, first + 1, 0, n, windows.padding);
    take_list(call, first + 2, 1, n, windows.apart);
    return windows;
}

bool traced_is_transposed(const TracedCall *call, unsigned first) {
    return call->args[first + 3].integer != 0;
}

KernelWindows traced_convolution_windows(const TracedCall *call, const KernelTensor *x,
                                         const KernelTensor *weight, const KernelTensor *y,
                                         unsigned first) {
    bool is_transposed = traced_is_transposed(call, first);
    KernelWindows windows = windows_of(call, is_transposed ? y : x, is_transposed ? x : y, first);
    windows.groups = (size_t)call->args[first + 5].integer;
    take_sizes(weight, windows.window);
    return windows;
}

KernelWindows traced_pool_windows(const TracedCall *call, const KernelTensor *x,
                                  const KernelTensor *y, unsigned first) {
    KernelWindows windows = windows_of(call, x, y, first + 1);
    int64_t window[SIDES];
    take_list(call, first, 1, x->n_dims - 2, window);
    for (unsigned s = 0; s < SIDES; s++) {
        windows.window[s] = (size_t)window[s];
    }
    if (call->args[first + 1].n == 0) { /* windows lie side by side */
        take_list(call, first, 1, x->n_dims - 2, windows.stride);
    }
    return windows;
}
