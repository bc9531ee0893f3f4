#include "exec/first-values.h"

#include <string.h>

#include "exec/convert.h"
#include "exec/places.h"
#include "kernels/host/elementwise.h"
#include "kernels/host/four-bit.h"
#include "kernels/host/random.h"
#include "plan/op/four-bit.h"

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
        kernel_fill_f32(to, (float)attr(t, 0), n);
    } else {
        kernel_philox_normal_f32(to, n, c->seed, parameter, from, 0, (float)attr(t, 0));
    }
}

void exec_first_values(const ExecTask *t, float *ret_values) {
    const ExecContext *c = t->context;
    ExecPlace place = exec_place_of(c->plan, c->role, t->op, c->comm->rank);
    for (uint64_t at = 0, from, n; at < place.count; at += n) {
        n = exec_place_run(c->plan, place.parameter, c->comm->rank, place.from + at,
                           place.count - at, &from);
        first_values(t, place.parameter, from, n, ret_values + place.first + at);
    }
}

/* ---- in 4 bits ------------------------------------------------------------------------------ */

enum {
    NUMBERS_A_BYTE = 2,
    NUMBERS_AT_ONCE = 1 << 20 /* whole blocks */
};

typedef struct {
    float numbers[NUMBERS_AT_ONCE], absmax[NUMBERS_AT_ONCE / KERNEL_FOUR_BIT_BLOCK];
    uint16_t narrow[NUMBERS_AT_ONCE];
    uint8_t packed[NUMBERS_AT_ONCE / NUMBERS_A_BYTE];
} Quantized;

/* Numbers of a parameter from the first of a block on, in the dtype in which they were loaded. */
static void quantize(const ExecTask *t, uint64_t from, uint64_t n, Quantized *at_once) {
    uint32_t parameter = (uint32_t)dim(t, 0);
    PlanDtype made_in = (PlanDtype)dim(t, 5);
    first_values(t, parameter, from, n, at_once->numbers);
    if (made_in != PLAN_FP32) {
        exec_convert(at_once->narrow, made_in, at_once->numbers, PLAN_FP32, n);
        exec_convert(at_once->numbers, PLAN_FP32, at_once->narrow, made_in, n);
    }
    kernel_quantize_4bit(at_once->packed, at_once->absmax, at_once->numbers, n,
                         dim(t, 4) == PLAN_FOUR_BIT_NF4 ? KERNEL_FOUR_BIT_NF4
                                                        : KERNEL_FOUR_BIT_FP4);
}

void exec_first_nibbles(const ExecTask *t, gpointer ret_elements) {
    const ExecContext *c = t->context;
    ExecPlace place = exec_place_of(c->plan, c->role, t->op, c->comm->rank);
    uint64_t size = plan_dtype_bytes(operand_dtype(t, 0));
    uint64_t n_numbers = plan_parameter_share(c->plan, &c->plan->parameters[place.parameter]);
    uint8_t *to = (uint8_t *)ret_elements + place.first * size;
    g_autofree Quantized *at_once = g_new(Quantized, 1);
    uint64_t end = (place.from + place.count) * size; /* in bytes of the parameter */
    for (uint64_t at = place.from * size, n; at < end; at += n) {
        uint64_t number = at * NUMBERS_A_BYTE / KERNEL_FOUR_BIT_BLOCK * KERNEL_FOUR_BIT_BLOCK;
        uint64_t first = number / NUMBERS_A_BYTE; /* byte of the block's */
        quantize(t, number, MIN(n_numbers - number, NUMBERS_AT_ONCE), at_once);
        n = MIN(end, first + sizeof at_once->packed) - at;
        memcpy(to, at_once->packed + (at - first), n);
        to += n;
    }
}

/* ---- on the host ---------------------------------------------------------------------------- */

bool exec_first_values_on_host(const ExecTask *t, GError **error) {
    ExecSlots *slots = t->context->slots;
    uint32_t slot = (uint32_t)dim(t, 4);
    PlanDtype dtype = exec_slots_dtype(slots, slot);
    size_t n = dim(t, 1);
    gpointer at = exec_slots_at(slots, slot, n, error);
    if (at && dtype == PLAN_FP32) {
        exec_first_values(t, at);
    } else if (at) {
        g_autofree float *wide = g_new(float, n);
        exec_convert(wide, PLAN_FP32, at, dtype, n); /* what is not this op's stays */
        exec_first_values(t, wide);
        exec_convert(at, dtype, wide, PLAN_FP32, n);
    }
    return at != NULL;
}
