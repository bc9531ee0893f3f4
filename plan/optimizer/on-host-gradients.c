/* plan/optimizer/on-host-gradients.c - gradients on the host, zeroed and clipped. Where PyTorch
 * copies without "non_blocking" the host waits for the copy at once.
 */
#include "plan/autograd/offload-slots.h"
#include "plan/optimizer/norms.h"
#include "plan/optimizer/on-host.h"

static uint32_t slot_of(const PlanRun *run, unsigned which) {
    return plan_offload_slots_end(run) + which;
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

void plan_offload_zero_gradients(const PlanOver *all) {
    PlanRun *run = all->run;
    for (uint32_t p = all->from; p < all->to; p++) {
        Part part = part_of(run, p);
        if (part.elements) {
            plan_offload_do(
                run, PLAN_OP_HOST_ZERO, PLAN_AXIS_NONE,
                (int64_t[]){[HOST_ZERO_N] = (int64_t)part.elements,
                            [HOST_ZERO_SLOT] = plan_offload_slot(run, p, PLAN_ON_HOST_GRADIENT),
                            [HOST_ZERO_OFFSET] = (int64_t)part.offset},
                NULL);
        }
    }
}

/* ---- clipping ------------------------------------------------------------------------------- */

static void norm_of(PlanRun *run, uint32_t slot, Part part, unsigned to, uint32_t place) {
    plan_offload_do(run, PLAN_OP_HOST_NORM, PLAN_AXIS_NONE,
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
    plan_offload_do(run, PLAN_OP_HOST_POWER, PLAN_AXIS_NONE,
                    (int64_t[]){[HOST_POWER_N] = n, [HOST_POWER_SLOT] = slot_of(run, which)},
                    (double[]){plus, exponent});
    round_numbers(run, which, n);
}

/* The root of the ranks' sum of squares, of each of n numbers. */
static void add_up(PlanRun *run, unsigned which, uint32_t n, uint64_t ranks, double plus) {
    power(run, which, n, plus, 2);
    plan_offload_do(run, PLAN_OP_HOST_ALL_REDUCE, PLAN_AXIS_SHARD,
                    (int64_t[]){[HOST_ALL_REDUCE_N] = n,
                                [HOST_ALL_REDUCE_SLOT] = slot_of(run, which),
                                [HOST_ALL_REDUCE_RANKS] = (int64_t)ranks,
                                [HOST_ALL_REDUCE_MANTISSA_BITS] = plan_dtype_mantissa_bits(
                                    plan_strategy_model_dtype(run->strategy))},
                    NULL);
    power(run, which, n, 0, 0.5);
}

static void scale(PlanRun *run, double plus) {
    for (uint32_t p = 0; p < run->graph->parameters.len; p++) {
        Part part = part_of(run, p);
        if (part.elements) {
            plan_offload_do(
                run, PLAN_OP_HOST_CLIP, PLAN_AXIS_NONE,
                (int64_t[]){[HOST_CLIP_N] = (int64_t)part.elements,
                            [HOST_CLIP_SLOT] = plan_offload_slot(run, p, PLAN_ON_HOST_GRADIENT),
                            [HOST_CLIP_OFFSET] = (int64_t)part.offset,
                            [HOST_CLIP_NORM] = slot_of(run, PLAN_OFFLOAD_NORM)},
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
            norm_of(run, plan_offload_slot(run, p, PLAN_ON_HOST_GRADIENT), part, PLAN_OFFLOAD_NORMS,
                    n);
        } else if (also_empty) {
            plan_offload_do(run, PLAN_OP_HOST_ZERO, PLAN_AXIS_NONE,
                            (int64_t[]){[HOST_ZERO_N] = 1,
                                        [HOST_ZERO_SLOT] = slot_of(run, PLAN_OFFLOAD_NORMS),
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
    round_numbers(run, PLAN_OFFLOAD_NORMS, n);
    if (ranks > 1 && !is_of_2_4) {
        add_up(run, PLAN_OFFLOAD_NORMS, n, ranks, 0);
    }
    norm_of(run, slot_of(run, PLAN_OFFLOAD_NORMS), (Part){0, n}, PLAN_OFFLOAD_NORM, 0);
    round_numbers(run, PLAN_OFFLOAD_NORM, 1);
    if (is_of_2_4) {
        add_up(run, PLAN_OFFLOAD_NORM, 1, ranks, 1e-6);
    }
    scale(run, is_of_2_4 ? 0 : 1e-6);
}

/* The norm of what is this rank's, brought to the device. */
static PlanTensor local_norm(PlanRun *run, uint32_t n) {
    norm_of(run, slot_of(run, PLAN_OFFLOAD_NORMS), (Part){0, n}, PLAN_OFFLOAD_NORM, 0);
    PlanTensor local = plan_run_new_tensor(run, 1, PLAN_FP32, "norm");
    plan_offload_move(run, PLAN_OP_FROM_HOST, slot_of(run, PLAN_OFFLOAD_NORM),
                      plan_run_operand_of(run, local), 0);
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
