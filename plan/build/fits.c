/* plan/build/fits.c - what a strategy asks that this network has not, that FSDP could not run, or
 * that nothing was recorded of. What keys alone tell, strategy/settle.c has refused before. */
#include "plan/build/fits.h"

#include "plan/autograd/unit.h"
#include "plan/build/units-private.h"
#include "plan/op/float8.h"
#include "plan/optimizer/groups.h"
#include "plan/refuse.h"

#define refuse(error, ...) plan_refuse(error, PLAN_ERROR, PLAN_ERROR_VALUE, __VA_ARGS__)

static const char *name_of_unit(const PlanRun *run, uint32_t unit) {
    return unit ? plan_graph_module_at(run->graph, run->units[unit].module)->name : "root";
}

static bool is_inside(const PlanRun *run, uint32_t module, uint32_t unit) {
    while (module != PLAN_NONE && run->modules.unit_of[module] != unit) {
        uint32_t owner = run->units[run->modules.unit_of[module]].module;
        module = plan_graph_module_at(run->graph, owner)->parent;
    }
    return module != PLAN_NONE;
}

static bool parameters_are_used_inside(const PlanRun *run, GError **error) {
    const PlanGraph *graph = run->graph;
    for (uint32_t i = 0; i < graph->ops.len; i++) {
        const PlanGraphOp *op = plan_graph_op_at(graph, i);
        for (uint32_t j = 0; j < op->n_inputs; j++) {
            uint32_t value = plan_graph_ref(graph, op->values + j);
            uint32_t p =
                value == PLAN_NONE ? PLAN_NONE : plan_graph_value_at(graph, value)->parameter;
            if (p != PLAN_NONE && !plan_graph_parameter_at(graph, p)->ignored &&
                !is_inside(run, op->module, run->unit_of_parameter[p])) {
                return refuse(error,
                              "module %s uses %s, which belongs to unit %s and is sharded there; "
                              "set %s, or untie them (tied = no in the network)",
                              plan_graph_module_at(graph, op->module)->name,
                              plan_graph_parameter_at(graph, p)->name,
                              name_of_unit(run, run->unit_of_parameter[p]),
                              run->strategy->wrap_ends != PLAN_ENDS_ROOT ? "wrap_ends=root"
                                                                         : "wrap=whole");
            }
        }
    }
    return true;
}

/* The first parameter that an op reads, itself or by a view, whose unit is not open. */
static uint32_t closed_parameter(const PlanRun *run, const PlanGraphOp *op, const bool *open) {
    const PlanGraph *graph = run->graph;
    for (uint32_t i = 0; i < op->n_inputs; i++) {
        uint32_t value = plan_graph_ref(graph, op->values + i);
        if (value == PLAN_NONE) {
            continue;
        }
        uint32_t base = plan_graph_value_at(graph, value)->base;
        uint32_t p = plan_graph_value_at(graph, base)->parameter;
        if (p != PLAN_NONE && !plan_graph_parameter_at(graph, p)->ignored &&
            !open[run->unit_of_parameter[p]]) {
            return p;
        }
    }
    return PLAN_NONE;
}

/* What FSDP finds of a module's results; those within an object of its own it does not see. */
static bool is_returned_to(const PlanRun *run, const PlanGraphStep *leave, uint32_t unit) {
    bool wants = plan_unit_n_trained(run, unit) == 0;
    for (uint32_t i = 0; i < leave->n_values; i++) {
        wants |=
            plan_graph_wants_gradient(run->graph, plan_graph_ref(run->graph, leave->values + i));
    }
    return wants;
}

static bool leaves_by_results(const PlanRun *run, const PlanGraphStep *leave, uint32_t unit,
                              GError **error) {
    return is_returned_to(run, leave, unit) ||
           refuse(error,
                  "module '%s' returns no tensor through which backward comes back to it, so that "
                  "FSDP would not gather it again; have it return tensors, or lists or "
                  "dictionaries of them, or wrap others",
                  plan_graph_module_at(run->graph, leave->index)->name);
}

static bool reads_open_units(const PlanRun *run, uint32_t op, const bool *open, GError **error) {
    uint32_t p = closed_parameter(run, plan_graph_op_at(run->graph, op), open);
    return p == PLAN_NONE ||
           refuse(error,
                  "%s is used while its unit %s is not called, where it is sharded; use it within "
                  "that module's forward, or wrap others",
                  plan_run_parameter(run, p)->name, name_of_unit(run, run->unit_of_parameter[p]));
}

/* A traced program may use a parameter anywhere, such as in its loss. */
static bool parameters_are_there(const PlanRun *run, GError **error) {
    const PlanGraph *graph = run->graph;
    g_autofree bool *open = g_new0(bool, run->n_units);
    bool is_asked = graph->traced && plan_strategy_wraps(run->strategy), are_there = true;
    for (uint32_t i = 0; i < graph->steps.len && is_asked && are_there; i++) {
        const PlanGraphStep *step = plan_graph_step_at(graph, i);
        if (step->kind == PLAN_STEP_ENTER &&
            run->modules.unit_opened_by[step->index] != PLAN_NONE) {
            open[run->modules.unit_opened_by[step->index]] = true;
        } else if (step->kind == PLAN_STEP_LEAVE &&
                   run->modules.unit_closed_by[step->index] != PLAN_NONE) {
            uint32_t unit = run->modules.unit_closed_by[step->index];
            open[unit] = false;
            are_there = leaves_by_results(run, step, unit, error);
        } else if (step->kind == PLAN_STEP_OP) {
            are_there = reads_open_units(run, step->index, open, error);
        }
    }
    return are_there;
}

static bool units_run(const PlanRun *run, GError **error) {
    g_autofree bool *is_called = plan_called_modules(run->graph);
    for (uint32_t u = 1; u < run->n_units; u++) {
        uint32_t m = run->units[u].module;
        if (!is_called[m]) {
            return refuse(
                error, "module %s is never called, so that nothing gathers it; wrap what it holds",
                plan_graph_module_at(run->graph, m)->name);
        }
    }
    return true;
}

static bool units_run_once(const PlanRun *run, GError **error) {
    g_autofree uint8_t *entered = g_new0(uint8_t, run->graph->modules.len);
    for (uint32_t i = 0; i < run->graph->steps.len; i++) {
        const PlanGraphStep *step = plan_graph_step_at(run->graph, i);
        bool opens =
            step->kind == PLAN_STEP_ENTER && run->modules.unit_opened_by[step->index] != PLAN_NONE;
        if (opens && entered[step->index]++) {
            return refuse(error,
                          "module %s runs twice a pass and cannot be a unit of its own here; leave "
                          "it in the root",
                          plan_graph_module_at(run->graph, step->index)->name);
        }
    }
    return true;
}

/* Parameters on the host are fetched anew where something is sharded. */
static bool offloads_as_known(const PlanStrategy *s) {
    bool is_flat_and_whole = s->flavour == PLAN_FLAVOUR_FSDP1 && plan_strategy_shard_ranks(s) == 1;
    return s->offload == PLAN_OFFLOAD_NONE ||
           (s->offload == PLAN_OFFLOAD_PARAMS && !is_flat_and_whole);
}

/* Whether each checkpointed block has one argument that wants a gradient. With several a reentrant
 * checkpoint adds up their gradients before it hands them back, which is not planned. */
static bool blocks_have_one_argument(const PlanRun *run) {
    for (uint32_t i = 0; i < run->graph->steps.len; i++) {
        const PlanGraphStep *step = plan_graph_step_at(run->graph, i);
        if (step->kind != PLAN_STEP_ENTER || !run->modules.is_checkpointed[step->index]) {
            continue;
        }
        uint32_t n = 0;
        for (uint32_t j = 0; j < step->n_values; j++) {
            uint32_t value = plan_graph_ref(run->graph, step->values + j);
            n += plan_graph_wants_gradient(run->graph, value);
        }
        if (n > 1) {
            return false;
        }
    }
    return true;
}

/* Until 2.0 PyTorch itself fails but where the checkpoint is reentrant, and parameters are flat. */
static bool splits_of_2_0_are_known(const PlanRun *run) {
    const PlanStrategy *s = run->strategy;
    for (uint32_t m = 0; m < run->graph->modules.len; m++) {
        if (run->modules.is_checkpointed[m] && run->modules.unit_opened_by[m] == PLAN_NONE) {
            return false; /* it shares another unit's parameters with other blocks */
        }
    }
    return run->modules.checkpoints_reenter && s->use_orig_params == PLAN_NO &&
           s->checkpoint_place == PLAN_CHECKPOINT_INSIDE &&
           s->checkpointing.choice != PLAN_CHECKPOINTING_SELECTIVE_OP &&
           !plan_strategy_checkpoints_parts(s) && s->offload == PLAN_OFFLOAD_NONE &&
           blocks_have_one_argument(run);
}

/* What a unit inside of a checkpointed block does in that block's second forward is recorded of
 * these alone, and of experts that ranks share. */
static bool splits_are_known(const PlanRun *run) {
    const PlanStrategy *s = run->strategy;
    return s->kernels == PLAN_KERNELS_EAGER && offloads_as_known(s) &&
           (plan_strategy_is_after(s, PLAN_PYTORCH_2_4) || splits_of_2_0_are_known(run));
}

static bool blocks_are_not_split(const PlanRun *run, GError **error) {
    for (uint32_t u = 1; u < run->n_units && !splits_are_known(run); u++) {
        uint32_t up = plan_unit_checkpointed_around(run, u);
        if (up != PLAN_NONE) {
            return refuse(error,
                          "unit %s lies inside %s, which is checkpointed; that needs eager "
                          "kernels, PyTorch 2.5 or later (until 2.0 also FSDP1 with "
                          "use_orig_params=no, blocks that are units, checkpointed inside, of one "
                          "argument), and offload=none (with shards also params): set those, "
                          "wrap=block, or checkpointing=none",
                          plan_graph_module_at(run->graph, run->units[u].module)->name,
                          plan_graph_module_at(run->graph, up)->name);
        }
    }
    return true;
}

/* A linear layer that ranks share is gathered before its input is, in PyTorch. */
static bool shared_layers_are_no_units(const PlanRun *run, GError **error) {
    for (uint32_t u = 1; u < run->n_units && run->graph->shared.tensor > 1; u++) {
        uint32_t m = run->units[u].module;
        const PlanGraphModule *module = plan_graph_module_at(run->graph, m);
        if (plan_graph_is_in_block(run->graph, m) && g_str_equal(module->class_name, "Linear")) {
            return refuse(error,
                          "unit %s is a linear layer that ranks share (tensor), which is not "
                          "planned; wrap what holds it, or set wrap=block",
                          module->name);
        }
    }
    return true;
}

/* Else a slip of the pen would be planned as one unit. */
static bool wrap_names_some(const PlanRun *run, GError **error) {
    const PlanVariant *by = &run->strategy->wrap;
    if (by->choice != PLAN_WRAP_MODULE || !plan_strategy_wraps(run->strategy)) {
        return true;
    }
    g_autoptr(GRegex) regex = plan_strategy_whole_regex(by->text, NULL);
    return plan_next_named(run->graph, regex, 1) < run->graph->modules.len ||
           refuse(error,
                  "wrap=module=%s is the whole name or class of no module; `foreshard units "
                  "NETWORK --tree` lists them (.*attn is for those that end so)",
                  by->text);
}

/* Else one would be planned as nothing that is checkpointed. */
static bool checkpointing_names_some(const PlanRun *run, GError **error) {
    const PlanVariant *by = &run->strategy->checkpointing;
    return by->choice != PLAN_CHECKPOINTING_MODULE || run->modules.n_checkpointed ||
           refuse(error,
                  "checkpointing=module=%s is the whole name or class of nothing that lies in a "
                  "block and has parameters; `foreshard units NETWORK --tree` lists what does "
                  "(.*mlp is for those that end so)",
                  by->text);
}

/* PEFT casts x to the dtype of lora_A's weight before calling lora_A. If lora_A is a unit of its
 * own, its weight is not gathered by then; that cast is not planned. */
static bool adapters_are_gathered_in_time(const PlanRun *run, GError **error) {
    const PlanStrategy *s = run->strategy;
    bool casts = plan_strategy_param_dtype(s) != plan_strategy_model_dtype(s);
    for (uint32_t u = 1; u < run->n_units && s->lora_rank && casts; u++) {
        const char *name = plan_graph_module_at(run->graph, run->units[u].module)->name;
        if (g_str_has_suffix(name, ".lora_A")) {
            return refuse(
                error,
                "unit %s is gathered in another dtype than its adapter is made in, and x is "
                "cast for it before it is gathered; set a wrap that leaves adapters in "
                "larger units (wrap=block), or no param_dtype",
                name);
        }
    }
    return true;
}

static bool flat_units_are_uniform(const PlanRun *run, GError **error) {
    const PlanStrategy *s = run->strategy;
    bool is_flat = s->flavour == PLAN_FLAVOUR_FSDP1 && s->use_orig_params == PLAN_NO;
    for (uint32_t u = 0; u < run->n_units && is_flat; u++) {
        if (plan_unit_is_mixed(run, u)) {
            return refuse(error,
                          "unit %s is trained in part, which a flat parameter of FSDP1 cannot be; "
                          "set use_orig_params=yes, or flavour=fsdp2",
                          name_of_unit(run, u));
        }
    }
    return true;
}

/* torchao casts what a rank has of a weight without its padding, so that ranks would not gather
 * alike; PyTorch does not look (_fsdp_param.py, all_gather_inputs). */
static bool float8_shards_are_even(const PlanRun *run, GError **error) {
    bool in_float8 = run->strategy->float8_gather != PLAN_FLOAT8_GATHER_NO;
    uint64_t ranks = plan_strategy_shard_ranks(run->strategy);
    for (uint32_t i = 0; in_float8 && i < run->graph->ops.len; i++) {
        const PlanGraphOp *op = plan_graph_op_at(run->graph, i);
        if ((PlanGraphKind)op->kind != PLAN_GRAPH_FLOAT8_LINEAR) {
            continue;
        }
        int64_t rows = plan_graph_float8_linear_of(run->graph, op)->n;
        if ((uint64_t)rows % ranks) {
            return refuse(error,
                          "float8_gather wants shards of one size, and a weight's %" G_GINT64_FORMAT
                          " rows do not divide by %" G_GUINT64_FORMAT
                          " ranks; set other ranks, sharding=hybrid, or float8_gather=no",
                          rows, ranks);
        }
    }
    return true;
}

/* Of a layer's tokens and the sides of its weight. asks: of the setting, up to the number. */
static bool sides_divide(const int64_t m_n_k[3], int64_t by, const char *asks, const char *instead,
                         GError **error) {
    const int64_t *d = m_n_k;
    return (d[0] % by == 0 && d[1] % by == 0 && d[2] % by == 0) ||
           refuse(error,
                  "%s as many tokens, and sides, as %" G_GINT64_FORMAT
                  " divides, and a layer has %" G_GINT64_FORMAT
                  " tokens and a weight of %" G_GINT64_FORMAT " x %" G_GINT64_FORMAT
                  "; set another micro_batch or seq, or float8=%s",
                  asks, by, d[0], d[1], d[2], instead);
}

/* What Transformer Engine asks of a product (pytorch/utils.py, assert_dim_for_fp8_exec). */
static bool delayed_sides_divide(const PlanRun *run, GError **error) {
    bool is_delayed = run->strategy->float8 == PLAN_FLOAT8_DELAYED;
    for (uint32_t i = 0; is_delayed && i < run->graph->ops.len; i++) {
        const PlanGraphOp *op = plan_graph_op_at(run->graph, i);
        if ((PlanGraphKind)op->kind != PLAN_GRAPH_DELAYED_LINEAR) {
            continue;
        }
        const PlanGraphDelayedLinear *d = plan_graph_delayed_linear_of(run->graph, op);
        if (!sides_divide((int64_t[]){d->m, d->n, d->k}, 16, "float8=delayed multiplies", "none",
                          error)) {
            return false;
        }
    }
    return true;
}

/* What was recorded of exponents in the order of products: whole tiles of them. */
static bool mxfp8_sides_divide(const PlanRun *run, GError **error) {
    bool is_mxfp8 = run->strategy->float8 == PLAN_FLOAT8_MXFP8;
    for (uint32_t i = 0; is_mxfp8 && i < run->graph->ops.len; i++) {
        const PlanGraphOp *op = plan_graph_op_at(run->graph, i);
        if ((PlanGraphKind)op->kind != PLAN_GRAPH_FLOAT8_LINEAR) {
            continue;
        }
        const PlanGraphFloat8Linear *d = plan_graph_float8_linear_of(run->graph, op);
        if (!sides_divide((int64_t[]){d->m, d->n, d->k}, PLAN_MXFP8_TILE_ROWS,
                          "float8=mxfp8 is planned for", "rowwise", error)) {
            return false;
        }
    }
    return true;
}

/* What is recomputed is one block at a time. */
static bool checkpoints_do_not_nest(const PlanRun *run, GError **error) {
    for (uint32_t m = 0; m < run->graph->modules.len; m++) {
        uint32_t up = run->modules.is_checkpointed[m] ? plan_graph_module_at(run->graph, m)->parent
                                                      : PLAN_NONE;
        while (up != PLAN_NONE && !run->modules.is_checkpointed[up]) {
            up = plan_graph_module_at(run->graph, up)->parent;
        }
        if (up != PLAN_NONE) {
            return refuse(
                error,
                "block %s lies inside block %s, and checkpoints inside of checkpoints are "
                "not planned; name the class of the outer blocks alone when the network is "
                "traced (--blocks), or set checkpointing=none",
                plan_graph_module_at(run->graph, m)->name,
                plan_graph_module_at(run->graph, up)->name);
        }
    }
    return true;
}

static bool refuse_matrix(const PlanRun *run, uint32_t p, GError **error) {
    const PlanGraphParameter *matrix = plan_run_parameter(run, p);
    return refuse(error,
                  "optimizer=muon is planned with FSDP2 only where rows and columns divide by the "
                  "ranks, and %s has %" G_GINT64_FORMAT " x %" G_GINT64_FORMAT
                  " over %" G_GUINT64_FORMAT "; set other ranks, sharding=none, or optimizer=adamw",
                  matrix->name, matrix->dims[0], matrix->dims[1],
                  plan_strategy_shard_ranks(run->strategy));
}

/* PyTorch's Muon wants something to step; uneven shards are padded on their way. */
static bool muon_has_matrices(const PlanRun *run, GError **error) {
    uint64_t ranks =
        run->strategy->flavour == PLAN_FLAVOUR_FSDP2 ? plan_strategy_shard_ranks(run->strategy) : 1;
    uint32_t n = 0;
    if (run->strategy->optimizer != PLAN_OPTIMIZER_MUON) {
        return true;
    }
    for (uint32_t p = 0; p < run->graph->parameters.len; p++) {
        const int64_t *dims = plan_run_parameter(run, p)->dims;
        if (plan_run_is_frozen(run, p) || !plan_muon_takes(run, p)) {
            continue;
        }
        if ((uint64_t)dims[0] % ranks || (uint64_t)dims[1] % ranks) {
            return refuse_matrix(run, p, error);
        }
        n++;
    }
    return n > 0 || refuse(error, "optimizer=muon finds no weight of two dimensions in a block "
                                  "that is trained; set optimizer=adamw");
}

bool plan_strategy_fits(const PlanRun *run, GError **error) {
    if (!wrap_names_some(run, error) || !checkpointing_names_some(run, error) ||
        !flat_units_are_uniform(run, error) || !adapters_are_gathered_in_time(run, error) ||
        !float8_shards_are_even(run, error) || !delayed_sides_divide(run, error) ||
        !mxfp8_sides_divide(run, error) || !parameters_are_there(run, error) ||
        !muon_has_matrices(run, error) || !checkpoints_do_not_nest(run, error)) {
        return false;
    }
    return run->n_units == 1 || (units_run(run, error) && parameters_are_used_inside(run, error) &&
                                 units_run_once(run, error) && blocks_are_not_split(run, error) &&
                                 shared_layers_are_no_units(run, error));
}
