/* plan/autograd/offload-gradients.c - gradients on the host: added up, zeroed, clipped.
 *
 * Behind the slots of all parameters lie three more: a gradient that has arrived to be added, the
 * norms of all gradients, and the norm of these. Where PyTorch copies without "non_blocking" the
 * host waits for the copy at once.
 */
#include "plan/autograd/offload.h"

enum {
    ARRIVED,
    NORMS,
    NORM
};
_Static_assert(NORM + 1 == PLAN_N_OFFLOAD_SLOTS, "other slots lie behind these");

static uint32_t slot_of(const PlanRun *run, unsigned which) {
    return plan_offload_slots_end(run) + which;
}

static void on_host(PlanRun *run, PlanOpKind kind, PlanAxis axis, const int64_t *dims,
                    const double *attrs) {
    plan_builder_begin_op(&run->builder, kind, axis, dims, attrs);
    plan_builder_host_op(&run->builder);
}

/* This rank's part of the parameter, in its owner's slots. */
typedef struct {
    uint64_t offset, elements;
} Part;

static Part part_of(PlanRun *run, uint32_t p) {
    if (plan_run_is_frozen(run, p)) {
        return (Part){0, 0};
    }
    PlanOperand owned = run->flavour->owned(run, p);
    uint64_t size = plan_dtype_bytes(plan_strategy_model_dtype(run->strategy));
    return (Part){owned.offset_bytes / size, owned.elements};
}

void plan_offload_put_gradient_and_wait(PlanRun *run, uint32_t p, PlanOperand gradient,
                                        uint8_t lane) {
    plan_offload_fetch(run, plan_offload_slot(run, p, PLAN_ON_HOST_GRADIENT), gradient, lane);
}

void plan_offload_add_gradient(PlanRun *run, uint32_t p, PlanOperand gradient, uint8_t lane) {
    plan_offload_fetch(run, slot_of(run, ARRIVED), gradient, lane);
    on_host(run, PLAN_OP_HOST_ADD, PLAN_AXIS_NONE,
            (int64_t[]){[HOST_ADD_N] = (int64_t)gradient.elements,
                        [HOST_ADD_SLOT] = plan_offload_slot(run, p, PLAN_ON_HOST_GRADIENT),
                        [HOST_ADD_FROM] = slot_of(run, ARRIVED)},
            NULL);
}

void plan_offload_round(PlanRun *run, uint32_t slot, uint64_t elements, PlanDtype dtype) {
    on_host(run, PLAN_OP_HOST_ROUND, PLAN_AXIS_NONE,
            (int64_t[]){[HOST_ROUND_N] = (int64_t)elements,
                        [HOST_ROUND_SLOT] = slot,
                        [HOST_ROUND_MANTISSA_BITS] = plan_dtype_mantissa_bits(dtype)},
            NULL);
}

void plan_offload_round_gradient(PlanRun *run, uint32_t p, uint64_t elements, PlanDtype dtype) {
    plan_offload_round(run, plan_offload_slot(run, p, PLAN_ON_HOST_GRADIENT), elements, dtype);
}

void plan_offload_zero_gradients(const PlanOver *all) {
    PlanRun *run = all->run;
    for (uint32_t p = all->from; p < all->to; p++) {
        Part part = part_of(run, p);
        if (part.elements) {
            on_host(run, PLAN_OP_HOST_ZERO, PLAN_AXIS_NONE,
                    (int64_t[]){[HOST_ZERO_N] = (int64_t)part.elements,
                                [HOST_ZERO_SLOT] = plan_offload_slot(run, p, PLAN_ON_HOST_GRADIENT),
                                [HOST_ZERO_OFFSET] = (int64_t)part.offset},
                    NULL);
        }
    }
}

void plan_offload_ask(PlanRun *run, PlanTensor number) {
    plan_offload_fetch(run, slot_of(run, NORM), plan_run_operand_of(run, number), 0);
}

/* ---- clipping ------------------------------------------------------------------------------- */

static void norm_of(PlanRun *run, uint32_t slot, Part part, unsigned to, uint32_t place) {
    on_host(run, PLAN_OP_HOST_NORM, PLAN_AXIS_NONE,
            (int64_t[]){[HOST_NORM_N] = (int64_t)part.elements,
                        [HOST_NORM_SLOT] = slot,
                        [HOST_NORM_OFFSET] = (int64_t)part.offset,
                        [HOST_NORM_TO] = slot_of(run, to),
                        [HOST_NORM_PLACE] = place},
            NULL);
}

/* FSDP2's norms are of their gradients' dtype, and so is all that is made of them. */
static void round_numbers(PlanRun *run, unsigned which, uint32_t n) {
    PlanDtype dtype = plan_strategy_model_dtype(run->strategy);
    if (dtype != PLAN_FP32) {
        plan_offload_round(run, slot_of(run, which), n, dtype);
    }
}

static void power(PlanRun *run, unsigned which, uint32_t n, double plus, double exponent) {
    on_host(run, PLAN_OP_HOST_POWER, PLAN_AXIS_NONE,
            (int64_t[]){[HOST_POWER_N] = n, [HOST_POWER_SLOT] = slot_of(run, which)},
            (double[]){plus, exponent});
    round_numbers(run, which, n);
}

/* The root of the ranks' sum of squares, of each of n numbers. */
static void add_up(PlanRun *run, unsigned which, uint32_t n, uint64_t ranks, double plus) {
    power(run, which, n, plus, 2);
    on_host(run, PLAN_OP_HOST_ALL_REDUCE, PLAN_AXIS_SHARD,
            (int64_t[]){[HOST_ALL_REDUCE_N] = n,
                        [HOST_ALL_REDUCE_SLOT] = slot_of(run, which),
                        [HOST_ALL_REDUCE_RANKS] = (int64_t)ranks,
                        [HOST_ALL_REDUCE_MANTISSA_BITS] =
                            plan_dtype_mantissa_bits(plan_strategy_model_dtype(run->strategy))},
            NULL);
    power(run, which, n, 0, 0.5);
}

static void scale(PlanRun *run, double plus) {
    for (uint32_t p = 0; p < run->graph->parameters.len; p++) {
        Part part = part_of(run, p);
        if (part.elements) {
            on_host(run, PLAN_OP_HOST_CLIP, PLAN_AXIS_NONE,
                    (int64_t[]){[HOST_CLIP_N] = (int64_t)part.elements,
                                [HOST_CLIP_SLOT] = plan_offload_slot(run, p, PLAN_ON_HOST_GRADIENT),
                                [HOST_CLIP_OFFSET] = (int64_t)part.offset,
                                [HOST_CLIP_NORM] = slot_of(run, NORM)},
                    (double[]){run->strategy->clip, plus});
        }
    }
}

/* Returns how many norms there are. Where a place is kept for those of nothing, they are zero. */
static uint32_t norms_of_parts(PlanRun *run, bool also_empty) {
    uint32_t n = 0;
    for (uint32_t p = 0; p < run->graph->parameters.len; p++) {
        if (plan_run_is_frozen(run, p)) {
            continue;
        }
        Part part = part_of(run, p);
        if (part.elements) {
            norm_of(run, plan_offload_slot(run, p, PLAN_ON_HOST_GRADIENT), part, NORMS, n);
        } else if (also_empty) {
            on_host(run, PLAN_OP_HOST_ZERO, PLAN_AXIS_NONE,
                    (int64_t[]){[HOST_ZERO_N] = 1,
                                [HOST_ZERO_SLOT] = slot_of(run, NORMS),
                                [HOST_ZERO_OFFSET] = n},
                    NULL);
        }
        n += also_empty || part.elements;
    }
    return n;
}

/* The sums are those of plan_clip_norm() and, in 2.4, of plan_clip_norm_of_2_4(). The factor that
 * they give is not rounded (PyTorch's is), the gradients that it scales are. */
void plan_offload_clip_norm(PlanRun *run, uint64_t ranks) {
    bool is_of_2_4 =
        run->strategy->pytorch == PLAN_PYTORCH_2_4 && run->strategy->flavour == PLAN_FLAVOUR_FSDP2;
    uint32_t n = norms_of_parts(run, true);
    round_numbers(run, NORMS, n);
    if (ranks > 1 && !is_of_2_4) {
        add_up(run, NORMS, n, ranks, 0);
    }
    norm_of(run, slot_of(run, NORMS), (Part){0, n}, NORM, 0);
    round_numbers(run, NORM, 1);
    if (is_of_2_4) {
        add_up(run, NORM, 1, ranks, 1e-6);
    }
    scale(run, is_of_2_4 ? 0 : 1e-6);
}

/* The norm of what is this rank's, brought to the device. */
static PlanTensor local_norm(PlanRun *run, uint32_t n) {
    norm_of(run, slot_of(run, NORMS), (Part){0, n}, NORM, 0);
    PlanTensor local = plan_run_new_tensor(run, 1, PLAN_FP32, "norm");
    plan_offload_move(run, PLAN_OP_FROM_HOST, slot_of(run, NORM), plan_run_operand_of(run, local),
                      0);
    return local;
}

void plan_offload_clip_flat(PlanRun *run, PlanAxis axis, uint64_t ranks, PlanTensor zero) {
    uint32_t n = norms_of_parts(run, false);
    PlanTensor local = n                           ? local_norm(run, n)
                       : zero.storage != PLAN_NONE ? plan_run_ref(run, zero)
                                                   : plan_clip_new_zero(run);
    PlanTensor norm = plan_clip_over_ranks(run, local, axis, ranks);
    plan_offload_ask(run, norm);
    plan_run_unref(run, norm);
    scale(run, 1e-6);
    plan_run_unref(run, local);
}
