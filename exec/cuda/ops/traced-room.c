/* exec/cuda/ops/traced-room.c - memory of a call: where its tensors lie as kernels want them. */
#include "exec/cuda/ops/traced-private.h"

enum {
    BORDER = 256 /* bytes; where arrays begin in room */
};

KernelDtype gpu_dtype_of(const KernelTensor *t) {
    return t->dtype == KERNEL_BF16 || t->dtype == KERNEL_FP16 ? t->dtype : KERNEL_FP32;
}

/* In the widest dtype that a kernel wants of it. */
static size_t room_for(const KernelTensor *t) {
    size_t each = t->dtype < KERNEL_INT64 ? sizeof(float) : sizeof(int64_t);
    return (kernel_tensor_count(t) * each + 2 * BORDER - 1) / BORDER * BORDER;
}

static size_t room_for_all(const TracedArg *args, unsigned n) {
    size_t bytes = 0;
    for (unsigned i = 0; i < n; i++) {
        bytes += args[i].of == TRACED_TENSOR ? room_for(&args[i].tensor) : 0;
    }
    return bytes;
}

/* For each of the call's tensors twice: no kernel wants more. */
static char *take_room(TracedGpu *r, size_t bytes) {
    if (!r->room) {
        const TracedCall *call = r->call;
        r->room_bytes =
            2 * (room_for_all(call->args, call->n_args) + room_for_all(call->made, call->n_made) +
                 room_for_all((const TracedArg *)(gpointer)call->items->data, call->items->len));
        gpointer room = NULL;
        TRACED_LAUNCH(r, kernel_cuda_callers_scratch(r->kernels, r->room_bytes, &room));
        r->room = room;
    }
    size_t at = r->used;
    r->used += (bytes + BORDER - 1) / BORDER * BORDER;
    g_assert(r->used <= r->room_bytes);
    return r->room ? r->room + at : NULL;
}

KernelTensor gpu_dense_like(const KernelTensor *t, const void *data, KernelDtype dtype) {
    KernelTensor dense = *t;
    size_t step = 1;
    dense.data = (void *)data;
    dense.dtype = dtype;
    for (unsigned i = dense.n_dims; i-- > 0; step *= dense.sizes[i]) {
        dense.strides[i] = step;
    }
    return dense;
}

static bool is_as_wanted(const KernelTensor *t, KernelDtype dtype) {
    return t->dtype == dtype && kernel_tensor_is_dense(t);
}

void gpu_copy(TracedGpu *r, const KernelTensor *to, const KernelTensor *from) {
    TRACED_LAUNCH(r,
                  kernel_cuda_tensor_each(r->kernels, KERNEL_EACH_COPY, to, from, NULL, 1, 0, 0));
}

void gpu_fill(TracedGpu *r, const KernelTensor *to, double number) {
    TRACED_LAUNCH(
        r, kernel_cuda_tensor_each(r->kernels, KERNEL_EACH_FILL, to, NULL, NULL, 0, number, 0));
}

void *gpu_room(TracedGpu *r, const KernelTensor *like, KernelDtype dtype) {
    return take_room(r, kernel_tensor_count(like) * kernel_dtype_bytes(dtype));
}

const void *gpu_dense(TracedGpu *r, const KernelTensor *t, KernelDtype dtype) {
    if (is_as_wanted(t, dtype)) {
        return t->data;
    }
    KernelTensor copy = gpu_dense_like(t, gpu_room(r, t, dtype), dtype);
    gpu_copy(r, &copy, t);
    return copy.data;
}

const void *gpu_dense_of(TracedGpu *r, unsigned i, KernelDtype dtype) {
    return traced_is(r->call, i) ? gpu_dense(r, traced_tensor(r->call, i), dtype) : NULL;
}

void *gpu_result(TracedGpu *r, const KernelTensor *t, KernelDtype dtype) {
    if (is_as_wanted(t, dtype)) {
        return t->data;
    }
    KernelTensor made = gpu_dense_like(t, gpu_room(r, t, dtype), dtype);
    r->to[r->n_results] = *t;
    r->from[r->n_results++] = made;
    return made.data;
}

void *gpu_result_of(TracedGpu *r, unsigned i, KernelDtype dtype) {
    return traced_makes(r->call, i) ? gpu_result(r, traced_made(r->call, i), dtype) : NULL;
}
