/* plan/autograd/passes/selective.c - what checkpointing=selective-op keeps of a block.
 *
 * The outputs of attention kernels and of every other matrix product without a bias, the first one
 * first (what torchtitan's policy chooses), which a recomputation then takes instead of computing
 * them. That policy also names what reduce-scatters give, and the largest number of a tensor, which
 * layers in float8 ask for: of compiled blocks whose layers ranks share that is planned, too. And
 * what all-to-alls give, unless checkpoint_sent=no, and what was copied to the host: of experts
 * that ranks share.
 *
 * A block with experts is compiled in parts, beneath the policy, which sees of such a program what
 * is no kernel of its own: attention, but no product, for that writes into a tensor that is there.
 */
#include "plan/autograd/chosen.h"
#include "plan/autograd/float8/layer.h"
#include "plan/autograd/passes/checkpoint.h"
#include "plan/autograd/shared/exchange.h"
#include "plan/autograd/shared/shared.h"
#include "plan/autograd/traced.h"

/* A product whose result is scattered next: compiled code saves nothing of it, because backward
 * does not read it. */
static bool is_before_scatter(const PlanRun *run, const PlanGraphOp *op, bool is_product) {
    return is_product && plan_graph_is_compiled(run->graph) && plan_keeps_scattered(run) &&
           plan_shared_is_scatter(op + 1);
}

/* By a compiler not the block's last, which goes into its result alone. */
static bool is_kept_scatter(const PlanRun *run, const PlanGraphOp *op) {
    bool is_scattered = plan_keeps_scattered(run) && plan_shared_is_scatter(op);
    if (!is_scattered || !plan_graph_is_compiled(run->graph)) {
        return is_scattered;
    }
    const PlanGraphOp *end = plan_graph_op_at(run->graph, run->graph->ops.len - 1) + 1;
    uint32_t block = plan_graph_block_of(run->graph, op->module);
    for (op++; op < end && plan_graph_block_of(run->graph, op->module) == block; op++) {
        if (plan_shared_is_scatter(op)) {
            return true;
        }
    }
    return false;
}

static bool is_product(const PlanRun *run, const PlanGraphOp *op) {
    return (PlanGraphKind)op->kind == PLAN_GRAPH_FLOAT8_LINEAR ||
           (plan_op_is_linear((PlanOpKind)op->kind) &&
            plan_graph_ref(run->graph, op->values + 2) == PLAN_NONE);
}

/* Where ranks share experts torchtitan's policy neither keeps nor counts a router's product. */
static bool is_of_router(const PlanRun *run, const PlanGraphOp *op) {
    const PlanGraphModule *layer = plan_graph_module_at(run->graph, op->module);
    return run->graph->shared.expert > 1 &&
           g_str_equal(plan_graph_module_at(run->graph, layer->parent)->class_name, "Router");
}

/* A product in a program that is a part of a block. */
static bool is_hidden(const PlanRun *run, const PlanGraphOp *op) {
    return plan_graph_is_compiled(run->graph) && !plan_graph_is_in_program(run->graph, op->module);
}

static bool is_counted(const PlanRun *run, const PlanGraphOp *op) {
    return plan_traced_is(op)
               ? plan_traced_kind(run->graph, op)->choice == PLAN_TRACED_PRODUCT
               : is_product(run, op) && !is_of_router(run, op) && !is_hidden(run, op);
}

/* What others have sent. */
static bool is_kept_sent(const PlanRun *run, const PlanGraphOp *op) {
    bool is_sent = op->kind == (uint32_t)PLAN_GRAPH_EXCHANGE_SPLITS ||
                   op->kind == (uint32_t)PLAN_GRAPH_EXCHANGE_SEND;
    return is_sent && run->strategy->checkpoint_sent == PLAN_YES;
}

static bool is_kept_anyhow(const PlanRun *run, const PlanGraphOp *op) {
    if (plan_traced_is(op)) {
        return plan_traced_kind(run->graph, op)->choice == PLAN_TRACED_ATTENTION;
    }
    return is_kept_sent(run, op) || is_kept_scatter(run, op) || op->kind == PLAN_OP_ATTENTION ||
           op->kind == PLAN_OP_LATENT_ATTENTION ||
           (PlanGraphKind)op->kind == PLAN_GRAPH_RING_ATTENTION;
}

bool plan_selects_next(PlanRun *run, const PlanGraphOp *op) {
    if (!plan_run_selects(run)) {
        return false;
    }
    bool counts = is_counted(run, op);
    run->n_products += counts;
    return is_kept_anyhow(run, op) ||
           (counts && run->n_products % 2 == 1 && !is_before_scatter(run, op, counts));
}

/* A float8 layer that ranks share keeps its weight's scale, whatever else is computed again. */
static void keep_scale(PlanRun *run, PlanCheckpoint *c, const PlanGraphOp *op) {
    if (plan_float8_keeps_scale(run, op)) {
        uint32_t scale = plan_graph_ref(run->graph, op->values + op->n_inputs + 1);
        PlanTensor tensor = plan_run_ref(run, plan_run_value(run, scale));
        plan_vector_push(&run->tape.kept, tensor);
        c->n_kept++;
    }
}

void plan_take_scale(PlanRun *run, PlanCheckpoint *c, const PlanGraphOp *op) {
    if (plan_float8_keeps_scale(run, op)) {
        uint32_t scale = plan_graph_ref(run->graph, op->values + op->n_inputs + 1);
        run->tape.storage_of_value[scale] = run->tape.kept.items[c->next_kept++].storage;
    }
}

/* Where a chosen layer's result is scattered, and so not kept itself, its scales are kept, although
 * nobody reads them. */
static void keep_scales(PlanRun *run, const PlanGraphOp *op) {
    bool is_layer = (PlanGraphKind)op->kind == PLAN_GRAPH_FLOAT8_LINEAR;
    if (is_layer && plan_run_keeps_largest(run) && run->n_products % 2 == 1 &&
        is_before_scatter(run, op, true)) {
        plan_keep_number(run, plan_run_ref(run, plan_float8_weight_scale(run, op)));
        plan_keep_number(run, plan_run_ref(run, plan_float8_input_scale(run, op)));
    }
}

void plan_run_keep_selected(PlanRun *run, uint32_t op_id) {
    const PlanGraphOp *op = plan_graph_op_at(run->graph, op_id);
    PlanCheckpoint *c = &run->tape.checkpoints.items[run->checkpoint];
    if (!plan_selects_next(run, op)) {
        keep_scale(run, c, op);
        keep_scales(run, op);
        return;
    }
    c->last_selected = op_id;
    for (unsigned i = 0; i < op->n_outputs; i++) {
        uint32_t value = plan_graph_ref(run->graph, op->values + op->n_inputs + i);
        PlanTensor tensor = plan_run_ref(run, plan_run_value(run, value));
        plan_vector_push(&run->tape.kept, tensor);
        c->n_kept++;
    }
}

void plan_take_kept(PlanRun *run, PlanCheckpoint *c, const PlanGraphOp *op) {
    for (unsigned i = 0; i < op->n_outputs; i++) {
        uint32_t value = plan_graph_ref(run->graph, op->values + op->n_inputs + i);
        run->tape.storage_of_value[value] = run->tape.kept.items[c->next_kept++].storage;
    }
}

bool plan_is_left_out(const PlanRun *run, const PlanGraphOp *op) {
    return plan_run_selects(run) && is_before_scatter(run, op, is_product(run, op)) &&
           is_kept_scatter(run, op + 1);
}
