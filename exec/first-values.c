#include "exec/first-values.h"

#include "exec/convert.h"
#include "exec/places.h"
#include "kernels/host/elementwise.h"
#include "kernels/host/random.h"

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
