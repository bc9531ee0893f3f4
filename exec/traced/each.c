#include "exec/traced/each.h"

#include <math.h>

static void take_number(TracedEach *e, double number) {
    e->numbers[e->n_inputs] = number;
    e->inputs[e->n_inputs] = (KernelTensor){.data = &e->numbers[e->n_inputs], .dtype = KERNEL_FP64};
    e->n_inputs++;
}

static double number_of_text(const TracedArg *arg) {
    static const char *const texts[] = {
        [TEXT_TANH] = "tanh", [TEXT_FLOOR] = "floor", [TEXT_TRUNC] = "trunc"};
    for (unsigned i = TEXT_TANH; arg->of == TRACED_TEXT && i < G_N_ELEMENTS(texts); i++) {
        if (g_str_equal(texts[i], arg->text)) {
            return i;
        }
    }
    return TEXT_NONE;
}

void traced_each_take(TracedEach *e, const TracedCall *call, const char *takes) {
    for (unsigned i = 0; *takes; takes++) {
        static const TracedArg none;
        bool is_there = *takes != '1' && i < call->n_args;
        const TracedArg *arg = is_there ? &call->args[i] : &none;
        i += *takes != '1';
        if (*takes == '1') {
            e->shared[e->n_shared++] = 1;
        } else if (*takes == 'n') {
            e->shared[e->n_shared++] = arg->number;
        } else if (*takes == 's') {
            e->shared[e->n_shared++] = number_of_text(arg);
        } else if (*takes != '.' && arg->of == TRACED_TENSOR) {
            e->inputs[e->n_inputs++] = arg->tensor;
        } else if (*takes != '.') {
            bool is_open = arg->of == TRACED_NOTHING;
            take_number(e, *takes == '<' && is_open   ? -INFINITY
                           : *takes == '>' && is_open ? INFINITY
                                                      : arg->number);
        }
    }
}

bool traced_widens_to(const KernelTensor *x, const KernelTensor *y) {
    bool all = x->n_dims <= y->n_dims;
    for (unsigned i = 1; all && i <= x->n_dims; i++) {
        size_t side = x->sizes[x->n_dims - i];
        all = side == 1 || side == y->sizes[y->n_dims - i];
    }
    return all;
}
