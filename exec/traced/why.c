#include "exec/traced/known.h"

static const char *product_of(const TracedArg *a, const TracedArg *b) {
    unsigned n = a->tensor.n_dims;
    bool fits = a->tensor.sizes[n - 1] == b->tensor.sizes[n - 2] &&
                (n == 2 || a->tensor.sizes[0] == b->tensor.sizes[0]);
    return fits ? NULL : "with matrices that do not go together";
}

const char *traced_mm_why_not(const TracedCall *call) {
    return product_of(&call->args[0], &call->args[1]);
}

const char *traced_addmm_why_not(const TracedCall *call) {
    return product_of(&call->args[1], &call->args[2]);
}

static const char *drops(const TracedCall *call, unsigned i) {
    return call->args[i].number > 0
               ? "with dropout, whose random numbers are a GPU's own; make the network without"
               : NULL;
}

const char *traced_efficient_why_not(const TracedCall *call) {
    return drops(call, 5);
}

const char *traced_flash_why_not(const TracedCall *call) {
    return drops(call, 3);
}

const char *traced_efficient_backward_why_not(const TracedCall *call) {
    return drops(call, 9);
}

const char *traced_flash_backward_why_not(const TracedCall *call) {
    return drops(call, 10);
}

static const char *nll_unless(const TracedCall *call, unsigned weight) {
    return call->args[weight].of != TRACED_NOTHING ? "with weights of classes"
           : call->args[weight + 1].integer != 1   ? "with another reduction than the mean"
                                                   : NULL;
}

const char *traced_nll_why_not(const TracedCall *call) {
    return nll_unless(call, 2);
}

const char *traced_nll_backward_why_not(const TracedCall *call) {
    return nll_unless(call, 3);
}

const char *traced_mse_why_not(const TracedCall *call) {
    return call->args[2].integer == 0 ? "without a reduction" : NULL;
}

const char *traced_embedding_backward_why_not(const TracedCall *call) {
    return call->args[4].integer ? "with gradients scaled by frequency" : NULL;
}

static const char *convolution_unless(const TracedCall *call, unsigned x, unsigned transposed) {
    unsigned n = call->args[x].tensor.n_dims;
    return call->args[transposed].integer ? "transposed"
           : n < 3 || n > 5               ? "of other than one to three sides"
                                          : NULL;
}

const char *traced_convolution_why_not(const TracedCall *call) {
    return convolution_unless(call, 0, 6);
}

const char *traced_convolution_backward_why_not(const TracedCall *call) {
    return convolution_unless(call, 1, 7);
}

const char *traced_pool_why_not(const TracedCall *call) {
    return call->args[0].tensor.n_dims == 4 ? NULL : "of other than four sides";
}

static const char *batch_norm_unless(const TracedCall *call, unsigned training, unsigned running) {
    const TracedArg *kept = &call->args[running];
    return !call->args[training].integer ? "of numbers that are not the batch's"
           : kept->of == TRACED_TENSOR && kept->tensor.dtype != KERNEL_FP32
               ? "with running numbers of other than fp32"
               : NULL;
}

const char *traced_batch_norm_why_not(const TracedCall *call) {
    return batch_norm_unless(call, 5, 3);
}

const char *traced_batch_norm_backward_why_not(const TracedCall *call) {
    return batch_norm_unless(call, 7, 3);
}
