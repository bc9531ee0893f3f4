#include "exec/traced/moves.h"

KernelTensor traced_at_place(const KernelTensor *t, unsigned side, size_t place) {
    KernelTensor part = kernel_tensor_part(t, side, place, 1);
    for (unsigned i = side; i + 1 < t->n_dims; i++) {
        part.sizes[i] = t->sizes[i + 1];
        part.strides[i] = t->strides[i + 1];
    }
    part.n_dims--;
    return part;
}

static void copy(const TracedMover *mover, const KernelTensor *to, const KernelTensor *from) {
    if (kernel_tensor_count(from) > 0) {
        mover->copy(mover->self, to, from);
    }
}

/* ---- joined --------------------------------------------------------------------------------- */

static void cat(const TracedCall *call, const TracedMover *mover) {
    const TracedArg *list = &call->args[0];
    const KernelTensor *made = &call->made[0].tensor;
    unsigned side = traced_side(call->args[1].integer, made->n_dims);
    for (size_t i = 0, from = 0; i < list->n; i++) {
        const KernelTensor *t = &traced_item(call, list, (unsigned)i)->tensor;
        if (kernel_tensor_count(t) > 0) { /* one without elements may have other sides */
            KernelTensor part = kernel_tensor_part(made, side, from, t->sizes[side]);
            copy(mover, &part, t);
            from += t->sizes[side];
        }
    }
}

static void stack(const TracedCall *call, const TracedMover *mover) {
    const TracedArg *list = &call->args[0];
    const KernelTensor *made = &call->made[0].tensor;
    unsigned side = traced_side(call->args[1].integer, made->n_dims);
    for (unsigned i = 0; i < list->n; i++) {
        KernelTensor part = traced_at_place(made, side, i);
        copy(mover, &part, &traced_item(call, list, i)->tensor);
    }
}

/* ---- a gradient into zeros ------------------------------------------------------------------ */

/* (grad, sizes, dim, index) */
static void select_backward(const TracedCall *call, const TracedMover *mover) {
    const KernelTensor *made = &call->made[0].tensor;
    unsigned side = traced_side(call->args[2].integer, made->n_dims);
    size_t place = traced_side(call->args[3].integer, (unsigned)made->sizes[side]);
    KernelTensor part = traced_at_place(made, side, place);
    mover->fill(mover->self, made, 0);
    copy(mover, &part, &call->args[0].tensor);
}

/* (grad, sizes, dim, start, end, step); a place may be counted from the end, and beyond it. */
static void slice_backward(const TracedCall *call, const TracedMover *mover) {
    const KernelTensor *given = &call->args[0].tensor, *made = &call->made[0].tensor;
    unsigned side = traced_side(call->args[2].integer, made->n_dims);
    int64_t n = (int64_t)made->sizes[side], from = call->args[3].integer;
    from = CLAMP(from < 0 ? from + n : from, 0, n);
    KernelTensor part = kernel_tensor_part(made, side, (size_t)from, given->sizes[side]);
    part.strides[side] *= (size_t)call->args[5].integer;
    mover->fill(mover->self, made, 0);
    copy(mover, &part, given);
}

/* (self, pad, value): two numbers for each side, from the last on. */
static void pad(const TracedCall *call, const TracedMover *mover) {
    const TracedArg *sides = &call->args[1];
    KernelTensor part = call->made[0].tensor, given = call->args[0].tensor;
    mover->fill(mover->self, &part, call->args[2].number);
    for (unsigned i = 0; i < sides->n / 2; i++) {
        unsigned side = part.n_dims - 1 - i;
        int64_t before = traced_item(call, sides, 2 * i)->integer;
        int64_t behind = traced_item(call, sides, 2 * i + 1)->integer;
        size_t cut_before = before < 0 ? (size_t)-before : 0;
        size_t cut_behind = behind < 0 ? (size_t)-behind : 0;
        size_t n = given.sizes[side] - cut_before - cut_behind;
        part = kernel_tensor_part(&part, side, before > 0 ? (size_t)before : 0, n);
        given = kernel_tensor_part(&given, side, cut_before, n);
    }
    copy(mover, &part, &given);
}

void traced_move(TracedMove move, const TracedCall *call, const TracedMover *mover) {
    switch (move) {
    case TRACED_CAT:
        cat(call, mover);
        return;
    case TRACED_STACK:
        stack(call, mover);
        return;
    case TRACED_SELECT_BACKWARD:
        select_backward(call, mover);
        return;
    case TRACED_SLICE_BACKWARD:
        slice_backward(call, mover);
        return;
    case TRACED_PAD:
        pad(call, mover);
        return;
    }
}
