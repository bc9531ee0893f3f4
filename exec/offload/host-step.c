#include "exec/offload/host-step.h"

#include <math.h>
#include <string.h>

#include "exec/convert.h"
#include "exec/first-values.h"
#include "kernels/host/elementwise.h"
#include "kernels/host/reduce.h"

static bool is_on_gradients(const PlanOp *op) {
    return op->kind == PLAN_OP_HOST_ADD || op->kind == PLAN_OP_HOST_ZERO ||
           op->kind == PLAN_OP_HOST_ROUND || op->kind == PLAN_OP_HOST_NORM ||
           op->kind == PLAN_OP_HOST_POWER || op->kind == PLAN_OP_HOST_CLIP ||
           op->kind == PLAN_OP_HOST_ALL_REDUCE;
}

/* Where in its slot the op begins. */
static uint64_t offset_of(const PlanRole *role, const PlanOp *op) {
    bool from_start = op->kind == PLAN_OP_HOST_ADD || op->kind == PLAN_OP_HOST_ROUND ||
                      op->kind == PLAN_OP_HOST_POWER || op->kind == PLAN_OP_HOST_ALL_REDUCE;
    return from_start ? 0 : (uint64_t)plan_op_dims(role, op)[HOST_ADAM_OFFSET];
}

/* ---- numbers of a slot, as fp32 -------------------------------------------------------------- */

/* n of them from offset on. at: where they lie, or, of 16 bits, a copy, widened. */
typedef struct {
    ExecSlots *slots;
    uint32_t slot;
    size_t offset, n;
    float *at, *copy;
} View;

static char *stored(const View *view, GError **error) {
    PlanDtype dtype = exec_slots_dtype(view->slots, view->slot);
    char *start = exec_slots_at(view->slots, view->slot, view->offset + view->n, error);
    return start ? start + view->offset * plan_dtype_bytes(dtype) : NULL;
}

static bool view_open(View *view, const ExecTask *t, size_t slot, size_t offset, size_t n,
                      GError **error) {
    *view = (View){t->context->slots, (uint32_t)slot, offset, n, NULL, NULL};
    char *start = stored(view, error);
    PlanDtype dtype = exec_slots_dtype(view->slots, view->slot);
    if (start && dtype != PLAN_FP32) {
        view->copy = g_new(float, n);
        exec_convert(view->copy, PLAN_FP32, start, dtype, n);
    }
    view->at = view->copy ? view->copy : (float *)(gpointer)start;
    return start != NULL;
}

/* A slot that grows moves, and another view may have made it grow. */
static void view_find_again(View *view) {
    view->at = view->copy ? view->copy : (float *)(gpointer)stored(view, NULL);
}

static void view_store(const View *view) {
    if (view->copy) {
        exec_convert(stored(view, NULL), exec_slots_dtype(view->slots, view->slot), view->copy,
                     PLAN_FP32, view->n);
    }
}

static void view_close(View *view) {
    g_free(view->copy);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(View, view_close)

/* ---- ops ------------------------------------------------------------------------------------ */

KernelAdam exec_adam_of(const ExecTask *t, int64_t step) {
    return (KernelAdam){.lr = attr(t, HOST_ADAM_LR),
                        .beta1 = attr(t, HOST_ADAM_BETA1),
                        .beta2 = attr(t, HOST_ADAM_BETA2),
                        .eps = attr(t, HOST_ADAM_EPS),
                        .weight_decay = attr(t, HOST_ADAM_WEIGHT_DECAY),
                        .decay = attr(t, HOST_ADAM_DECOUPLED) != 0 ? KERNEL_ADAM_DECOUPLED
                                                                   : KERNEL_ADAM_COUPLED,
                        .step = step};
}

static KernelSgd sgd_of(const ExecTask *t) {
    return (KernelSgd){.lr = attr(t, HOST_SGD_LR),
                       .momentum = attr(t, HOST_SGD_MOMENTUM),
                       .weight_decay = attr(t, HOST_SGD_WEIGHT_DECAY),
                       .step = t->step + 1};
}

static void round_to(float *x, PlanDtype dtype, size_t n) {
    for (size_t i = 0; i < n; i++) {
        uint16_t rounded;
        exec_convert(&rounded, dtype, &x[i], PLAN_FP32, 1);
        exec_convert(&x[i], PLAN_FP32, &rounded, dtype, 1);
    }
}

/* What the op has in another slot: what is added, where the norm goes, or the norm. */
static bool open_other(const ExecTask *t, View *other, GError **error) {
    switch ((PlanOpKind)t->op->kind) {
    case PLAN_OP_HOST_ADD:
        return view_open(other, t, dim(t, HOST_ADD_FROM), 0, dim(t, HOST_ADD_N), error);
    case PLAN_OP_HOST_NORM:
        return view_open(other, t, dim(t, HOST_NORM_TO), dim(t, HOST_NORM_PLACE), 1, error);
    case PLAN_OP_HOST_CLIP:
        return view_open(other, t, dim(t, HOST_CLIP_NORM), 0, 1, error);
    default:
        return true;
    }
}

/* In the op's dtype, in which they travel. */
static bool add_over_ranks(const ExecTask *t, float *at, size_t n, GError **error) {
    const ExecComm *comm = t->context->comm;
    PlanDtype dtype = plan_dtype_of_mantissa(dims(t)[HOST_ALL_REDUCE_MANTISSA_BITS]);
    g_autofree char *sent = g_malloc(n * plan_dtype_bytes(dtype));
    exec_convert(sent, dtype, at, PLAN_FP32, n);
    ExecCollective call = {.axis = (PlanAxis)t->op->axis,
                           .dtype = dtype,
                           .reduction = PLAN_REDUCTION_SUM,
                           .elements = n,
                           .taken = sent};
    bool done = comm->all_reduce(comm->self, &call, error);
    exec_convert(at, PLAN_FP32, sent, dtype, n);
    return done;
}

/* All say first how many elements of which slot. */
static bool work_on_gradients(const ExecTask *t, GError **error) {
    PlanOpKind kind = (PlanOpKind)t->op->kind;
    size_t n = dim(t, HOST_ADD_N), offset = offset_of(t->context->role, t->op);
    g_auto(View) mine = {0}, other = {0};
    if (!open_other(t, &other, error) ||
        !view_open(&mine, t, dim(t, HOST_ADD_SLOT), offset, n, error)) {
        return false;
    }
    if (other.n) {
        view_find_again(&other);
    }
    float *at = mine.at;
    bool done = true;
    if (kind == PLAN_OP_HOST_ADD) {
        kernel_add_inplace_f32(at, other.at, n);
    } else if (kind == PLAN_OP_HOST_ZERO) {
        memset(at, 0, n * sizeof *at);
    } else if (kind == PLAN_OP_HOST_ROUND) {
        round_to(at, plan_dtype_of_mantissa(dims(t)[HOST_ROUND_MANTISSA_BITS]), n);
    } else if (kind == PLAN_OP_HOST_NORM) {
        kernel_norm_f32(other.at, at, n);
    } else if (kind == PLAN_OP_HOST_POWER) {
        for (size_t i = 0; i < n; i++) {
            at[i] =
                (float)pow((double)at[i] + attr(t, HOST_POWER_PLUS), attr(t, HOST_POWER_EXPONENT));
        }
    } else if (kind == PLAN_OP_HOST_CLIP) {
        double ratio = attr(t, HOST_CLIP_LIMIT) /
                       ((double)*other.at + attr(t, HOST_CLIP_PLUS)); /* NaN stays NaN */
        kernel_mul_scalar_inplace_f32(at, (float)(ratio > 1 ? 1 : ratio), n);
    } else {
        done = add_over_ranks(t, at, n, error);
    }
    view_store(kind == PLAN_OP_HOST_NORM ? &other : &mine);
    return done;
}

/* Gradient, parameter and moments are slots of their own, so that none grows under another. */
static bool step_optimizer(const ExecTask *t, View *views, GError **error) {
    size_t offset = offset_of(t->context->role, t->op), n = dim(t, HOST_ADAM_N);
    unsigned n_slots = exec_slots_of_optimizer(t->context->role, t->op);
    for (unsigned i = 0; i < n_slots; i++) {
        if (!view_open(&views[i], t, dim(t, HOST_ADAM_SLOT) + i, offset, n, error)) {
            return false;
        }
    }
    float *gradient = views[EXEC_SLOT_GRADIENT].at, *parameter = views[EXEC_SLOT_PARAMETER].at;
    float *moment = n_slots > EXEC_SLOT_MOMENTS ? views[EXEC_SLOT_MOMENTS].at : NULL;
    if (t->op->kind == PLAN_OP_HOST_ADAM) {
        KernelAdam adam = exec_adam_of(t, t->step + 1);
        kernel_adam_f32(parameter, moment, views[EXEC_SLOT_MOMENTS + 1].at, gradient, n, &adam);
    } else {
        KernelSgd sgd = sgd_of(t);
        kernel_sgd_f32(parameter, moment, gradient, n, &sgd);
    }
    for (unsigned i = EXEC_SLOT_PARAMETER; i < n_slots; i++) {
        view_store(&views[i]);
    }
    return true;
}

/* All ranks have the number, and so decide alike. */
static bool decide_to_step(const ExecTask *t, GError **error) {
    const float *found =
        exec_slots_at(t->context->slots, (uint32_t)dim(t, STEP_IF_FINITE_SLOT), 1, error);
    if (found) {
        t->context->stepping->skips = *found != 0;
        t->context->stepping->n_skipped += *found != 0;
    }
    return found != NULL;
}

bool exec_host_step(const ExecTask *t, GError **error) {
    if (t->op->kind == PLAN_OP_STEP_IF_FINITE) {
        return decide_to_step(t, error);
    }
    if (plan_op_is_host_init((PlanOpKind)t->op->kind)) {
        return exec_first_values_on_host(t, error);
    }
    if (is_on_gradients(t->op)) {
        return work_on_gradients(t, error);
    }
    View views[EXEC_MOST_OPTIMIZER_SLOTS] = {0};
    bool done = step_optimizer(t, views, error);
    for (unsigned i = 0; i < EXEC_MOST_OPTIMIZER_SLOTS; i++) {
        view_close(&views[i]);
    }
    return done;
}
