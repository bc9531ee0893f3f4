#include "exec/host/half.h"

#include <string.h>

#include "exec/convert.h"
#include "exec/task.h"
#include "plan/op/shape.h"

static bool is_half(PlanDtype dtype) {
    return dtype == PLAN_BF16 || dtype == PLAN_FP16;
}

/* ---- scratch -------------------------------------------------------------------------------- */

typedef struct {
    size_t bytes;
    max_align_t data[];
} Scratch;

static GPrivate scratch_of_thread = G_PRIVATE_INIT(g_free);

/* This thread's scratch memory, until it asks again. */
static gpointer scratch(size_t bytes) {
    Scratch *mine = g_private_get(&scratch_of_thread);
    if (!mine || mine->bytes < bytes) {
        g_private_replace(&scratch_of_thread, NULL); /* before the new one: not both at once */
        mine = g_malloc(sizeof *mine + bytes);
        mine->bytes = bytes;
        g_private_set(&scratch_of_thread, mine);
    }
    return mine->data;
}

/* ---- operands ------------------------------------------------------------------------------- */

/* Elements [start, end) of a buffer, which operands [first, last) of an op touch. */
typedef struct {
    unsigned first, last;
    PlanDtype dtype;
    uint64_t start, end;
    bool read, written;
} Span;

static uint64_t start_of(const ExecTask *t, unsigned i) {
    return plan_dtype_count(operand_dtype(t, i), operand(t, i).offset_bytes);
}

static Span span_of(const ExecTask *t, unsigned i) {
    const PlanOpInfo *info = plan_op_info((PlanOpKind)t->op->kind);
    PlanSlotFlags flags = info->slots[plan_op_slot_of(info, t->op->n_operands, i)].flags;
    Span span = {.first = i,
                 .last = i + 1,
                 .dtype = operand_dtype(t, i),
                 .start = start_of(t, i),
                 .read = flags & PLAN_SLOT_READ,
                 .written = flags & PLAN_SLOT_WRITE};
    span.end = span.start + plan_op_elements_touched(t->context->role, t->op, i);
    return span;
}

/* Neighbours that read overlapping parts of one buffer (the heads of q, k and v in one row) are
 * widened together. */
static bool joins(const ExecTask *t, const Span *span, const Span *next) {
    return operand(t, span->first).buffer == operand(t, next->first).buffer && !span->written &&
           !next->written && next->start >= span->start && next->start < span->end;
}

/* Bytes that lie in a tensor of 16 bits are no numbers. */
static bool is_widened(const ExecTask *t, unsigned i) {
    const PlanOpInfo *info = plan_op_info((PlanOpKind)t->op->kind);
    PlanSlotFlags flags = info->slots[plan_op_slot_of(info, t->op->n_operands, i)].flags;
    return t->pointers[i] && is_half(operand_dtype(t, i)) && !(flags & PLAN_SLOT_PACKED);
}

/* From operand i on; false when there is none stored in 16 bits. */
static bool next_span(const ExecTask *t, unsigned i, Span *ret_span) {
    while (i < t->op->n_operands && !is_widened(t, i)) {
        i++;
    }
    if (i == t->op->n_operands) {
        return false;
    }
    *ret_span = span_of(t, i);
    for (i++; i < t->op->n_operands && is_widened(t, i); i++) {
        Span next = span_of(t, i);
        if (!joins(t, ret_span, &next)) {
            break;
        }
        ret_span->end = MAX(ret_span->end, next.end);
        ret_span->last = i + 1;
    }
    return true;
}

static size_t floats_of(const ExecTask *t) {
    size_t floats = 0;
    Span span = {0};
    while (next_span(t, span.last, &span)) {
        floats += span.end - span.start;
    }
    return floats;
}

/* Points the wide task's operands into the scratch, with what is read. */
static void widen_operands(const ExecTask *t, gpointer *pointers, float *to) {
    Span span = {0};
    memcpy(pointers, t->pointers, t->op->n_operands * sizeof *pointers);
    for (; next_span(t, span.last, &span); to += span.end - span.start) {
        for (unsigned i = span.first; i < span.last; i++) {
            pointers[i] = to + (start_of(t, i) - span.start);
        }
        if (span.read) {
            exec_convert(to, PLAN_FP32, t->pointers[span.first], span.dtype, span.end - span.start);
        }
    }
}

static void narrow_results(const ExecTask *t, gpointer *pointers) {
    Span span = {0};
    while (next_span(t, span.last, &span)) {
        if (span.written) {
            exec_convert(t->pointers[span.first], span.dtype, pointers[span.first], PLAN_FP32,
                         span.end - span.start);
        }
    }
}

bool exec_host_run_widened(const ExecTask *t, ExecRun run, GError **error) {
    size_t floats = floats_of(t);
    if (!floats) {
        return run(t, error);
    }
    gpointer *pointers = scratch(t->op->n_operands * sizeof(gpointer) + floats * sizeof(float));
    widen_operands(t, pointers, (float *)(pointers + t->op->n_operands));
    ExecTask wide = *t;
    wide.pointers = pointers;
    if (!run(&wide, error)) {
        return false;
    }
    narrow_results(t, pointers);
    return true;
}
