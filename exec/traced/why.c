#include "exec/traced/known.h"

const char *traced_why_known(const TracedCall *call) {
    return NULL;
}

const char *traced_why_truths(const TracedCall *call) {
    return call->made[0].tensor.dtype == KERNEL_BOOL ? NULL : "of whole numbers";
}

static const char *drops(const TracedCall *call, unsigned i) {
    return call->args[i].number > 0
               ? "with dropout, whose random numbers are a GPU's own; make the network without"
               : NULL;
}

const char *traced_why_efficient(const TracedCall *call) {
    return drops(call, 5);
}

const char *traced_why_flash(const TracedCall *call) {
    return drops(call, 3);
}

const char *traced_why_efficient_backward(const TracedCall *call) {
    return drops(call, 9);
}

const char *traced_why_flash_backward(const TracedCall *call) {
    return drops(call, 10);
}

static const char *nll_unless(const TracedCall *call, unsigned weight) {
    return call->args[weight].of != TRACED_NOTHING ? "with weights of classes"
           : call->args[weight + 1].integer != 1   ? "with another reduction than the mean"
                                                   : NULL;
}

const char *traced_why_nll(const TracedCall *call) {
    return nll_unless(call, 2);
}

const char *traced_why_nll_backward(const TracedCall *call) {
    return nll_unless(call, 3);
}

const char *traced_why_mse(const TracedCall *call) {
    return call->args[2].integer == 0 ? "without a reduction" : NULL;
}

const char *traced_why_embedding_backward(const TracedCall *call) {
    return call->args[4].integer ? "with gradients scaled by frequency" : NULL;
}

static const char *convolution_unless(const TracedCall *call, unsigned x) {
    unsigned n = call->args[x].tensor.n_dims;
    return n < 3 || n > 5 ? "of other than one to three sides" : NULL;
}

const char *traced_why_convolution(const TracedCall *call) {
    return convolution_unless(call, 0);
}

const char *traced_why_convolution_backward(const TracedCall *call) {
    return convolution_unless(call, 1);
}

const char *traced_why_pool(const TracedCall *call) {
    return call->args[0].tensor.n_dims == 4 ? NULL : "of other than four sides";
}

static bool is_fp32(const TracedArg *arg) {
    return arg->of != TRACED_TENSOR || arg->tensor.dtype == KERNEL_FP32;
}

/* running: where a mean stands, and behind it a variance. */
static const char *batch_norm_unless(const TracedCall *call, unsigned training, unsigned running) {
    const TracedArg *kept = &call->args[running];
    return !call->args[training].integer              ? "of numbers that are not the batch's"
           : !is_fp32(&kept[0]) || !is_fp32(&kept[1]) ? "with running numbers of other than fp32"
                                                      : NULL;
}

const char *traced_why_batch_norm(const TracedCall *call) {
    return batch_norm_unless(call, 5, 3);
}

const char *traced_why_batch_norm_backward(const TracedCall *call) {
    return batch_norm_unless(call, 7, 3);
}
