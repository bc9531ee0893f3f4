/* plan/optimizer/scaler.c - torch.amp.GradScaler, and FSDP1's ShardedGradScaler (torch/amp/
 * grad_scaler.py, torch/distributed/fsdp/sharded_grad_scaler.py, PyTorch 2.13), op by op.
 *
 * A product of the loss and the scale comes in fp32; ShardedGradScaler's in the loss's own dtype.
 * Gradients are unscaled and looked through in one launch over all of them, before they are clipped
 * or else when the optimizer is asked to step. Of sharded gradients each rank sees its part:
 * ShardedGradScaler adds up what ranks found, and FSDP2's DTensors take its maximum, which is 0
 * where the sum is; the plan adds up for both. Then the host reads it. Fused Adam is asked always,
 * told on the device what was found, and divides gradients itself unless they were unscaled for
 * clipping; FSDP1's ranks then do not agree, as in PyTorch, whose scaler adds up in unscale_ alone.
 * A step that is skipped makes its temporaries in a plan, which knows no numbers, but not in
 * PyTorch.
 *
 * PyTorch takes the scale's inverse in double precision: 8 bytes, of which the plan uses the first
 * 4, in fp32. Powers of two are exact in either.
 */
#include "plan/optimizer/scaler.h"

#include "plan/autograd/launch.h"
#include "plan/autograd/read.h"
#include "plan/optimizer/norms.h"

/* torch/amp/grad_scaler.py, PyTorch 2.13: the scale times growth after so many steps in a row whose
 * gradients were finite, else times backoff. */
static const double GROWTH = 2, BACKOFF = 0.5, INTERVAL = 2000;

enum {
    WORDS_OF_A_DOUBLE = 2
};

static bool scales(const PlanRun *run) {
    return plan_strategy_first_scale(run->strategy) > 0;
}

static bool is_sharded_scaler(const PlanRun *run) {
    return run->strategy->flavour == PLAN_FLAVOUR_FSDP1;
}

/* ---- numbers -------------------------------------------------------------------------------- */

static void fill(PlanRun *run, PlanTensor number, double value) {
    LAUNCH(run, PLAN_OP_FILL, DIMS(1), &value, number);
}

static PlanTensor new_number(PlanRun *run, double value, const char *name) {
    PlanTensor number = plan_run_new_tensor(run, 1, PLAN_FP32, name);
    fill(run, number, value);
    return number;
}

static void launch(PlanRun *run, PlanOpKind kind, double attr, PlanTensor x, PlanTensor y) {
    LAUNCH(run, kind, DIMS(1), &attr, x, y);
}

static PlanTensor copy_of(PlanRun *run, PlanTensor x, const char *name) {
    PlanTensor y = plan_run_new_tensor(run, 1, PLAN_FP32, name);
    launch(run, PLAN_OP_COPY, 0, x, y);
    return y;
}

static PlanTensor cast_of(PlanRun *run, PlanTensor x, PlanDtype dtype) {
    PlanTensor y = plan_run_new_tensor(run, 1, dtype, "cast");
    launch(run, PLAN_OP_CAST, 0, x, y);
    return y;
}

static PlanTensor times_scale(PlanRun *run, PlanTensor x, const char *name) {
    PlanTensor y = plan_run_new_tensor(run, 1, PLAN_FP32, name);
    LAUNCH(run, PLAN_OP_MUL, DIMS(1), NULL, x, run->scaler.loss_scale, y);
    return y;
}

/* ---- the loss ------------------------------------------------------------------------------- */

static PlanTensor new_state(PlanRun *run, double value, const char *name) {
    PlanTensor state = new_number(run, value, name);
    plan_builder_at(&run->builder, plan_run_buffer_of(run, state))->sub = PLAN_OPTIMIZER_STATE;
    return state;
}

PlanDtype plan_scaler_result_dtype(const PlanRun *run, PlanDtype loss_dtype) {
    return scales(run) && !is_sharded_scaler(run) ? PLAN_FP32 : loss_dtype;
}

PlanTensor plan_scaler_scale(PlanRun *run, PlanTensor loss, PlanDtype loss_dtype) {
    if (!scales(run)) {
        return PLAN_NO_TENSOR;
    }
    if (run->scaler.loss_scale.storage == PLAN_NONE) {
        run->scaler.loss_scale =
            new_state(run, plan_strategy_first_scale(run->strategy), "loss_scale");
        run->scaler.growth = new_state(run, 0, "growth");
    }
    PlanTensor scaled = times_scale(run, loss, "scaled_loss");
    PlanDtype dtype = plan_scaler_result_dtype(run, loss_dtype);
    if (dtype == PLAN_FP32) {
        return scaled;
    }
    PlanTensor cast = cast_of(run, scaled, dtype);
    plan_run_unref(run, scaled);
    return cast;
}

PlanTensor plan_scaler_differentiate(PlanRun *run, PlanTensor gradient, PlanDtype loss_dtype) {
    if (!scales(run)) {
        return plan_run_ref(run, gradient);
    }
    bool widens = plan_scaler_result_dtype(run, loss_dtype) != PLAN_FP32;
    PlanTensor wide = widens ? cast_of(run, gradient, PLAN_FP32) : plan_run_ref(run, gradient);
    PlanTensor product = times_scale(run, wide, "loss_gradient");
    if (loss_dtype != PLAN_FP32) {
        PlanTensor cast = cast_of(run, product, loss_dtype);
        plan_run_unref(run, product);
        product = cast;
    }
    plan_run_unref(run, wide);
    return product;
}

/* ---- the gradients -------------------------------------------------------------------------- */

/* DTensors bring their empty parts along. */
static bool is_listed(PlanRun *run, uint32_t parameter) {
    return !plan_run_is_frozen(run, parameter) &&
           (run->strategy->flavour == PLAN_FLAVOUR_FSDP2 ||
            run->flavour->gradient(run, parameter).elements > 0);
}

static bool has_gradients(PlanRun *run) {
    for (uint32_t p = 0; p < run->graph->parameters.len; p++) {
        if (is_listed(run, p)) {
            return true;
        }
    }
    return false;
}

static void all_reduce(PlanRun *run, PlanTensor number) {
    bool shards = plan_strategy_shard_ranks(run->strategy) > 1;
    PlanAxis axis = shards ? PLAN_AXIS_SHARD : PLAN_AXIS_REPLICATE;
    plan_clip_all_reduce(run, number, axis,
                         shards ? plan_strategy_shard_ranks(run->strategy) : run->strategy->ranks);
}

/* What a functional all-reduce makes is copied back. */
static void agree_by_copy(PlanRun *run) {
    PlanTensor sum = copy_of(run, run->scaler.found_inf, "found_inf");
    all_reduce(run, sum);
    launch(run, PLAN_OP_COPY, 0, sum, run->scaler.found_inf);
    plan_run_unref(run, sum);
}

static void look_through(PlanRun *run, PlanTensor inverse) {
    PlanTensor mine = copy_of(run, inverse, "inverse");
    plan_builder_begin_op(&run->builder, PLAN_OP_UNSCALE_ALL, PLAN_AXIS_NONE, NULL, NULL);
    plan_run_operand(run, mine);
    plan_run_operand(run, run->scaler.found_inf);
    for (uint32_t p = 0; p < run->graph->parameters.len; p++) {
        if (is_listed(run, p)) {
            PlanOperand g = run->flavour->gradient(run, p);
            plan_builder_operand(&run->builder, g);
        }
    }
    plan_run_launch(run);
    if (run->strategy->flavour == PLAN_FLAVOUR_FSDP2 &&
        plan_strategy_shard_ranks(run->strategy) > 1) {
        agree_by_copy(run);
    }
    plan_run_unref(run, mine);
}

/* Takes the reference of inverse. agrees: FSDP1's ranks are asked, too. */
static void find(PlanRun *run, PlanTensor inverse, bool agrees) {
    PlanTensor found = new_number(run, 0, "found_inf");
    run->scaler.found_inf = copy_of(run, found, "found_inf");
    if (has_gradients(run)) {
        look_through(run, inverse);
    }
    if (agrees) {
        plan_run_unref(run, found);
        plan_builder_at(&run->builder, plan_run_buffer_of(run, run->scaler.found_inf))->sub =
            PLAN_COMMUNICATION_REPLICATE;
        all_reduce(run, run->scaler.found_inf);
        plan_run_unref(run, inverse);
    } else {
        plan_run_unref(run, inverse);
        plan_run_unref(run, found);
    }
}

static PlanTensor new_double(PlanRun *run, const char *name) {
    return plan_run_new_tensor(run, WORDS_OF_A_DOUBLE, PLAN_FP32, name);
}

static PlanTensor inverse_of_scale(PlanRun *run) {
    PlanTensor wide = new_double(run, "scale");
    launch(run, PLAN_OP_CAST, 0, run->scaler.loss_scale, wide);
    PlanTensor inverse = new_double(run, "inverse");
    launch(run, PLAN_OP_POWER, -1, wide, inverse);
    plan_run_unref(run, wide);
    PlanTensor narrow = plan_run_new_tensor(run, 1, PLAN_FP32, "inverse");
    launch(run, PLAN_OP_CAST, 0, inverse, narrow);
    plan_run_unref(run, inverse);
    return narrow;
}

void plan_scaler_unscale(PlanRun *run) {
    if (scales(run)) {
        find(run, inverse_of_scale(run), is_sharded_scaler(run));
    }
}

/* ---- the step ------------------------------------------------------------------------------- */

static PlanTensor apply(PlanRun *run, PlanOpKind kind, PlanTensor x, double attr,
                        const char *name) {
    PlanTensor y = plan_run_new_tensor(run, 1, PLAN_FP32, name);
    launch(run, kind, attr, x, y);
    return y;
}

static void begin_fused_step(PlanOver *all) {
    PlanRun *run = all->run;
    bool is_unscaled = run->scaler.found_inf.storage != PLAN_NONE;
    if (!is_unscaled) {
        find(run, new_number(run, 1, "inverse"), false);
    }
    all->found = apply(run, PLAN_OP_ADD_NUMBER, run->scaler.found_inf, 0, "found_inf");
    if (!is_unscaled) {
        all->scale = apply(run, PLAN_OP_TIMES_NUMBER, run->scaler.loss_scale, 1, "scale");
    }
}

void plan_scaler_begin_step(PlanOver *all) {
    PlanRun *run = all->run;
    if (!scales(run)) {
        return;
    }
    if (run->strategy->optimizer_kernel == PLAN_KERNEL_FUSED) {
        begin_fused_step(all);
        return;
    }
    if (run->scaler.found_inf.storage == PLAN_NONE) {
        plan_scaler_unscale(run);
    }
    plan_run_ask_to_step(run, run->scaler.found_inf);
}

void plan_scaler_end_step(PlanOver *all) {
    PlanRun *run = all->run;
    if (!scales(run)) {
        return;
    }
    plan_run_unref(run, all->scale);
    plan_run_unref(run, all->found);
    LAUNCH(run, PLAN_OP_UPDATE_SCALE, NULL, ((double[]){GROWTH, BACKOFF, INTERVAL}),
           run->scaler.found_inf, run->scaler.loss_scale, run->scaler.growth);
    plan_run_drop(run, &run->scaler.found_inf);
}
