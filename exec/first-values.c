#include "exec/first-values.h"

#include <string.h>

#include "exec/convert.h"
#include "exec/slices.h"
#include "kernels/host/elementwise.h"
#include "kernels/host/products/four-bit.h"
#include "kernels/host/random.h"
#include "plan/mesh.h"
#include "plan/op/four-bit.h"

enum {
    NUMBERS_AT_ONCE = 1 << 18 /* whole blocks of 4 bits */
};

static bool is_fill(const PlanOp *op) {
    return op->kind == PLAN_OP_INIT_FILL || op->kind == PLAN_OP_HOST_INIT_FILL;
}

/* n elements of a parameter from one on. */
static void first_values(const ExecTask *t, uint32_t parameter, uint64_t from, uint64_t n,
                         float *to) {
    const ExecContext *c = t->context;
    if (c->weights) {
        exec_weights_get(c->weights, parameter, from, n, to);
    } else if (is_fill(t->op)) {
        kernel_fill_f32(to, (float)attr(t, INIT_FILL_VALUE), n);
    } else {
        kernel_philox_normal_f32(to, n, c->seed, parameter, from, 0,
                                 (float)attr(t, INIT_NORMAL_STD));
    }
}

void exec_first_values(const ExecTask *t, gpointer to, PlanDtype dtype) {
    const ExecContext *c = t->context;
    ExecSlice slice = exec_slice_of(c->plan, c->role, t->op, c->comm->rank);
    g_autofree float *wide = g_new(float, MIN(slice.count, NUMBERS_AT_ONCE));
    for (uint64_t at = 0, from, n; at < slice.count; at += n) {
        n = exec_slice_run(c->plan, slice.parameter, c->comm->rank, slice.from + at,
                           MIN(slice.count - at, NUMBERS_AT_ONCE), &from);
        first_values(t, slice.parameter, from, n, wide);
        exec_convert((char *)to + (slice.first + at) * plan_dtype_bytes(dtype), dtype, wide,
                     PLAN_FP32, n);
    }
}

/* ---- in 4 bits ------------------------------------------------------------------------------ */

enum {
    NUMBERS_A_BYTE = 2
};

typedef struct {
    float numbers[NUMBERS_AT_ONCE], absmax[NUMBERS_AT_ONCE / KERNEL_FOUR_BIT_BLOCK];
    uint16_t narrow[NUMBERS_AT_ONCE];
    uint8_t packed[NUMBERS_AT_ONCE / NUMBERS_A_BYTE];
} Quantized;

/* Numbers of a parameter from the first of a block on, in the dtype in which they were loaded. */
static void quantize(const ExecTask *t, uint64_t from, uint64_t n, Quantized *at_once) {
    bool on_host = plan_op_is_host_init((PlanOpKind)t->op->kind);
    size_t code = dim(t, on_host ? HOST_INIT_NIBBLES_CODE : INIT_NIBBLES_CODE);
    PlanDtype made = (PlanDtype)dim(t, on_host ? HOST_INIT_NIBBLES_MADE : INIT_NIBBLES_MADE);
    first_values(t, (uint32_t)dim(t, INIT_NIBBLES_PARAMETER), from, n, at_once->numbers);
    if (made != PLAN_FP32) {
        exec_convert(at_once->narrow, made, at_once->numbers, PLAN_FP32, n);
        exec_convert(at_once->numbers, PLAN_FP32, at_once->narrow, made, n);
    }
    kernel_quantize_4bit(at_once->packed, at_once->absmax, at_once->numbers, n,
                         code == PLAN_FOUR_BIT_NF4 ? KERNEL_FOUR_BIT_NF4 : KERNEL_FOUR_BIT_FP4);
}

void exec_first_nibbles(const ExecTask *t, uint64_t from, uint64_t n_bytes, gpointer to) {
    const ExecContext *c = t->context;
    uint64_t n_numbers = plan_parameter_elements_of_rank(
        c->plan, &c->plan->parameters[dim(t, INIT_NIBBLES_PARAMETER)]);
    uint8_t *next = to;
    g_autofree Quantized *at_once = g_new(Quantized, 1);
    for (uint64_t at = from, end = from + n_bytes, n; at < end; at += n, next += n) {
        uint64_t number = at * NUMBERS_A_BYTE / KERNEL_FOUR_BIT_BLOCK * KERNEL_FOUR_BIT_BLOCK;
        uint64_t first = number / NUMBERS_A_BYTE;
        quantize(t, number, MIN(n_numbers - number, NUMBERS_AT_ONCE), at_once);
        n = MIN(end, first + sizeof at_once->packed) - at;
        memcpy(next, at_once->packed + (at - first), n);
    }
}

/* ---- on the host ---------------------------------------------------------------------------- */

bool exec_first_values_on_host(const ExecTask *t, GError **error) {
    ExecSlots *slots = t->context->slots;
    uint32_t slot = (uint32_t)dim(t, HOST_INIT_NORMAL_SLOT);
    PlanDtype dtype = exec_slots_dtype(slots, slot);
    bool is_of_nibbles = plan_op_inits_nibbles((PlanOpKind)t->op->kind);
    uint64_t elements = is_of_nibbles ? plan_dtype_count(dtype, dim(t, HOST_INIT_NORMAL_N))
                                      : dim(t, HOST_INIT_NORMAL_N);
    gpointer at = exec_slots_at(slots, slot, elements, error);
    if (at && is_of_nibbles) {
        ExecSlice slice =
            exec_slice_of(t->context->plan, t->context->role, t->op, t->context->comm->rank);
        exec_first_nibbles(t, slice.from, slice.count, (char *)at + slice.first);
    } else if (at) {
        exec_first_values(t, at, dtype);
    }
    return at != NULL;
}
