#include "plan/graph/emit.h"
#include "models/known.h"
#include "models/layers/chunked-loss.h"
#include "models/network.h"
#include "models/traced/traced.h"
#include "plan/build/build.h"

/* The most elements that a tensor may have: a plan's file can say its bytes, and sums of many stay
 * inside 64 bits. */
#define MOST_ELEMENTS   (UINT64_C(1) << 54)
#define MOST_PARAMETERS (UINT64_C(1) << 58) /* all of a network's together: 2^60 bytes in fp32 */

static bool is_beyond(uint64_t a, uint64_t b, uint64_t c, uint64_t d) {
    uint64_t product;
    return !(g_uint64_checked_mul(&product, a, b) && g_uint64_checked_mul(&product, product, c) &&
             g_uint64_checked_mul(&product, product, d)) ||
           product > MOST_ELEMENTS;
}

/* Numbers that a head has of a token: of latent attention q's, or k's and v's from one layer. */
static uint64_t widest_head(const ModelNetwork *n) {
    uint64_t latent = n->qk_nope_head_dim + MAX(n->qk_rope_head_dim, n->v_head_dim);
    return MAX(MAX(n->head_dim, latent), 1);
}

/* The most numbers that a layer makes of a token. */
static uint64_t widest_row(const ModelNetwork *n) {
    const uint64_t rows[] = {n->vocab,
                             n->ffn,
                             n->shared_ffn,
                             4 * n->width,
                             MAX(n->heads, 1) * widest_head(n),
                             n->q_lora_rank,
                             n->kv_lora_rank + n->qk_rope_head_dim,
                             n->experts_per_token * MAX(n->width, n->expert_ffn)};
    uint64_t widest = 0;
    for (unsigned i = 0; i < G_N_ELEMENTS(rows); i++) {
        widest = MAX(widest, rows[i]);
    }
    return widest;
}

static bool tensors_are_countable(const ModelNetwork *network, uint64_t batch, uint64_t seq,
                                  GError **error) {
    uint64_t heads = MAX(network->heads, 1), longest = MAX(seq, network->target_seq);
    if (is_beyond(batch, longest, widest_row(network), 1) ||
        is_beyond(batch, heads, longest, longest)) {
        g_set_error(error, PLAN_ERROR, PLAN_ERROR_VALUE,
                    "micro_batch %" G_GUINT64_FORMAT " and seq %" G_GUINT64_FORMAT
                    " make tensors of network %s that no memory holds; lower one of them",
                    batch, seq, network->name);
        return false;
    }
    return true;
}

static bool parameters_are_countable(const PlanGraph *graph, const char *name, GError **error) {
    uint64_t left = MOST_PARAMETERS / graph->pipeline.n_stages; /* each stage's */
    for (guint i = 0; i < graph->parameters.len; i++) {
        uint64_t elements = plan_graph_parameter_at(graph, i)->elements;
        if (elements > left) {
            g_set_error(error, PLAN_ERROR, PLAN_ERROR_VALUE,
                        "network %s has more than 2^58 parameters, which no machine holds; lower "
                        "layers, experts, or what its matrices are as wide as",
                        name);
            return false;
        }
        left -= elements;
    }
    return true;
}

static void take_settings(PlanGraph *graph, const ModelNetwork *network, const ModelPass *pass) {
    graph->kernels = pass->kernels;
    graph->kernels.in_parts = plan_graph_is_compiled(graph) && network->experts;
    graph->now.fused = pass->kernels.style == PLAN_KERNELS_FUSED;
    graph->now.in_parts = graph->kernels.in_parts;
    graph->autocast = pass->autocast;
    graph->now.autocasts = pass->autocast.is_on;
    graph->units = pass->units;
    graph->copies_results = pass->copies_results;
    graph->float8 = pass->float8;
    graph->shared = pass->shared;
    graph->shared.tensor = MAX(pass->shared.tensor, 1);
    graph->shared.context = MAX(pass->shared.context, 1);
    graph->shared.expert = MAX(pass->shared.expert, 1);
    graph->shared.overload = graph->shared.expert > 1 ? MAX(pass->shared.overload, 1) : 1;
    graph->pipeline = pass->pipeline;
    graph->pipeline.n_stages = MAX(pass->pipeline.n_stages, 1);
    graph->made_in = pass->made_in;
    graph->trained = pass->trained;
    graph->pytorch = pass->pytorch;
    graph->document = pass->document;
    graph->evaluates = pass->evaluates;
    graph->results_held = pass->holds_logits ? PLAN_RESULTS_NEXT_FORWARD : PLAN_RESULTS_DROPPED;
}

PlanGraph *model_network_emit(const ModelNetwork *network, const ModelPass *pass, GError **error) {
    uint64_t tokens_per_sequence = pass->seq ? pass->seq : network->seq;
    if (network->vocab && tokens_per_sequence > network->seq) {
        g_autofree char *more = g_strdup_printf(
            ", or let it have more: --network-key seq=%" G_GUINT64_FORMAT, tokens_per_sequence);
        g_set_error(error, PLAN_ERROR, PLAN_ERROR_VALUE,
                    "seq %" G_GUINT64_FORMAT " is longer than the %" G_GUINT64_FORMAT
                    " positions of network %s; lower seq%s",
                    tokens_per_sequence, network->seq, network->name,
                    network->ends_at_window ? ": its sliding_window ends there, and the mask of "
                                              "longer ones is not planned"
                                            : more);
        return NULL;
    }
    if (network->traced && !model_traced_body(network->traced, network->name, pass->batch, error)) {
        return NULL;
    }
    if (!tensors_are_countable(network, pass->batch, tokens_per_sequence, error)) {
        return NULL;
    }
    PlanGraph *graph = plan_graph_new(pass->dtype);
    take_settings(graph, network, pass);
    tokens_per_sequence /= graph->shared.context; /* this rank's */
    graph->samples = pass->batch;
    graph->tokens = pass->batch * tokens_per_sequence;
    network->family->emit(network, pass->batch, tokens_per_sequence, graph);
    if (!parameters_are_countable(graph, network->name, error)) {
        plan_graph_free(graph);
        return NULL;
    }
    return graph;
}

/* ---- what is trained ------------------------------------------------------------------------ */

static const char *lora_pattern(const PlanVariant *on) {
    switch ((PlanLoraOn)on->choice) {
    case PLAN_LORA_ON_QV:
        return ".*\\.(q|v|qkv|Wqkv|q_proj|v_proj|query_key_value)";
    case PLAN_LORA_ON_ALL_LINEAR:
        return ".*";
    case PLAN_LORA_ON_MODULE:
        return on->text;
    }
    g_assert_not_reached();
}

static PlanGraphTrained trained_of(const PlanStrategy *s, GRegex *frozen, GRegex *ignored,
                                   GRegex *lora_on) {
    return (PlanGraphTrained){.frozen = frozen,
                              .ignored = ignored,
                              .lora_rank = s->lora_rank,
                              .lora_scale = s->lora_alpha / (double)MAX(s->lora_rank, 1),
                              .lora_dropout = s->lora_rank ? s->lora_dropout : 0,
                              .lora_on = lora_on,
                              .four_bits = s->lora_rank && s->lora_base != PLAN_LORA_BASE_MODEL,
                              .stored = s->lora_base_storage == PLAN_LORA_STORAGE_UINT8
                                            ? PLAN_UINT8
                                            : plan_strategy_model_dtype(s),
                              .lora_wide = s->lora_rank && s->lora_dtype == PLAN_LORA_FP32 &&
                                           s->model_dtype != PLAN_FP32};
}

/* bitsandbytes cuts off what does not fill the last element. */
static bool fills_storage(const PlanGraph *graph, GError **error) {
    uint64_t each = 2 * plan_dtype_bytes(graph->trained.stored);
    for (guint i = 0; i < graph->parameters.len; i++) {
        const PlanGraphParameter *p = plan_graph_parameter_at(graph, i);
        if (p->numbers % each) {
            g_set_error(error, PLAN_ERROR, PLAN_ERROR_VALUE,
                        "%s has %" G_GUINT64_FORMAT
                        " numbers, which do not fill elements of %" G_GUINT64_FORMAT
                        " in 4 bits; set lora_base=model, or %s",
                        p->name, p->numbers, each,
                        each > 2 ? "lora_base_storage=uint8" : "other sides");
            return false;
        }
    }
    return true;
}

/* Else a slip of the pen would be planned as a run that trains everything, or nothing. */
static bool trains_as_asked(const PlanGraph *graph, const PlanStrategy *s, GError **error) {
    unsigned n_trained = 0, n_adapters = 0, n_named = 0;
    for (guint i = 0; i < graph->parameters.len; i++) {
        const PlanGraphParameter *p = plan_graph_parameter_at(graph, i);
        n_trained += !p->frozen;
        n_named += p->named_frozen;
        n_adapters += g_str_has_suffix(p->name, ".lora_A.weight");
    }
    const char *hint = "`foreshard units NETWORK --tree` lists the modules";
    if (s->lora_rank && !n_adapters) {
        g_set_error(error, PLAN_ERROR, PLAN_ERROR_VALUE,
                    "lora_on=%s names no linear layer of a block that takes an adapter (of family "
                    "mlp none does); %s",
                    lora_pattern(&s->lora_on), hint);
        return false;
    }
    if (graph->trained.frozen && !n_named) {
        g_set_error(error, PLAN_ERROR, PLAN_ERROR_VALUE,
                    "freeze=module=%s is the whole name or class of no module that has "
                    "parameters; %s",
                    s->freeze.text, hint);
        return false;
    }
    if (!n_trained) {
        g_set_error(error, PLAN_ERROR, PLAN_ERROR_VALUE,
                    "freeze=module=%s leaves nothing to train; %s", s->freeze.text, hint);
    }
    return n_trained > 0;
}

static bool ignores_as_asked(const PlanGraph *graph, const PlanStrategy *s, GError **error) {
    guint n = graph->parameters.len, n_ignored = 0;
    for (guint i = 0; i < n; i++) {
        n_ignored += plan_graph_parameter_at(graph, i)->ignored;
    }
    if (s->ignored.choice == PLAN_IGNORED_MODULE && (n_ignored == 0 || n_ignored == n)) {
        g_set_error(error, PLAN_ERROR, PLAN_ERROR_VALUE,
                    "ignored=module=%s %s; `foreshard units NETWORK --tree` lists the modules",
                    s->ignored.text,
                    n_ignored ? "leaves nothing to shard or reduce"
                              : "is the whole name or class of no module that has parameters");
        return false;
    }
    return true;
}

/* A weight in 4 bits has no gradient to give. */
static bool joins_four_bits(const PlanGraph *graph, const bool *joined, GError **error) {
    for (guint i = 0; i < graph->parameters.len; i++) {
        const PlanGraphParameter *p = plan_graph_parameter_at(graph, i);
        if (joined[i] && p->numbers) {
            g_set_error(error, PLAN_ERROR, PLAN_ERROR_VALUE,
                        "FSDP1 joins %s, which is in 4 bits, with adapters in a flat tensor, whose "
                        "gradient it has not; set flavour=fsdp2, or wrap adapters by themselves, "
                        "as PEFT does: wrap=module=.*\\.\\d+|.*lora_[AB]",
                        p->name);
            return true;
        }
    }
    return false;
}

static bool wants_gradients(const PlanGraph *graph, uint32_t block) {
    bool wants = false, has_ops = false;
    for (guint i = 0; i < graph->ops.len && !wants; i++) {
        const PlanGraphOp *op = plan_graph_op_at(graph, i);
        if (plan_graph_block_of(graph, op->module) == block) {
            has_ops = true;
            for (unsigned j = 0; j < op->n_outputs; j++) {
                uint32_t value = plan_graph_ref(graph, op->values + op->n_inputs + j);
                wants |= plan_graph_wants_gradient(graph, value);
            }
        }
    }
    return wants || !has_ops;
}

/* Of such a block PyTorch's compiler makes a graph without backward, in which it takes no
 * checkpoint around kernels that draw numbers, as attention's may (2.13: torch/_functorch/
 * _activation_checkpointing/remat_using_tags_for_fwd_loss_bwd_graph_pass.py). */
static bool compiles_idle_checkpoint(const PlanGraph *graph, const PlanStrategy *s,
                                     GError **error) {
    bool may_be = s->kernels == PLAN_KERNELS_COMPILED &&
                  s->checkpointing.choice != PLAN_CHECKPOINTING_NONE &&
                  (s->lora_rank || s->freeze.choice == PLAN_FREEZE_MODULE);
    for (guint i = 0; i < graph->modules.len && may_be; i++) {
        const PlanGraphModule *module = plan_graph_module_at(graph, i);
        if (module->is_block && !wants_gradients(graph, i)) {
            g_set_error(error, PLAN_ERROR, PLAN_ERROR_VALUE,
                        "PyTorch compiles no checkpointed block before all that is trained, as %s "
                        "is; set kernels=eager or checkpointing=none, or train something in it",
                        module->name);
            return true;
        }
    }
    return false;
}

/* Nothing more is declared. */
static void forget_trained(PlanGraph *graph) {
    graph->trained.joined = NULL;
    graph->trained.frozen = graph->trained.ignored = graph->trained.lora_on = NULL;
}

/* ---- what a strategy asks for --------------------------------------------------------------- */

/* As torchtitan does where there are more ranks than experts. */
static bool cuts_experts(const ModelNetwork *network, const PlanStrategy *strategy) {
    return strategy->expert > 1 && plan_strategy_alike_ranks(strategy) > 1 &&
           plan_strategy_shard_ranks(strategy) > network->experts;
}

/* Blocks that are checkpointed keep their arguments, so those had better be few. */
static PlanGraphKernels kernels_of(const PlanStrategy *s) {
    return (PlanGraphKernels){.style = (PlanKernels)s->kernels,
                              .blocks_apart = s->checkpointing.choice != PLAN_CHECKPOINTING_NONE,
                              .compiled_norm = s->compile != PLAN_COMPILE_BLOCK,
                              .compiled_loss = plan_strategy_is_one_program(s),
                              .rms_norm_of_ops = s->rms_norm == PLAN_RMS_NORM_OPS};
}

static PlanGraphAutocast autocast_of(const PlanStrategy *s) {
    return (PlanGraphAutocast){.is_on = s->autocast != PLAN_AUTOCAST_NONE,
                               .lower = s->autocast == PLAN_AUTOCAST_FP16 ? PLAN_FP16 : PLAN_BF16,
                               .keeps_copies = s->flavour != PLAN_FLAVOUR_FSDP1};
}

static PlanGraphShared shared_of(const ModelNetwork *network, const PlanStrategy *s) {
    bool whole_tokens = s->sequence_parallel == PLAN_NO;
    return (PlanGraphShared){.tensor = s->tensor,
                             .async_tensor = s->async_tensor == PLAN_YES,
                             .whole_ends = s->tensor_plan != PLAN_TENSOR_TORCHTITAN,
                             .whole_head =
                                 s->tensor_plan == PLAN_TENSOR_KEMPNERFORGE && whole_tokens,
                             .whole_tokens = whole_tokens,
                             .context = s->context,
                             .expert = s->expert,
                             .overload = s->expert_overload,
                             .cuts_experts = cuts_experts(network, s)};
}

static PlanGraphPipeline pipeline_of(const PlanStrategy *s) {
    return (PlanGraphPipeline){.n_stages = (uint32_t)(s->pipeline * s->pipeline_stages),
                               .split = (PlanPipelineSplit)s->pipeline_split};
}

/* Walked again, now that units are known; outputs: what they give is cast, too. */
static bool cast_between_units(const ModelNetwork *network, const PlanStrategy *s, ModelPass *pass,
                               PlanGraph **graph, GError **error) {
    bool outputs_stay = s->output_dtype == PLAN_OUTPUT_NONE;
    if (network->traced) {
        g_set_error(error, PLAN_ERROR, PLAN_ERROR_VALUE,
                    "%s: output_dtype casts between units, which a trace has not; set "
                    "output_dtype = none",
                    network->name);
        return false;
    }
    g_autofree bool *modules = plan_units_modules(*graph, s);
    pass->units = (PlanGraphUnits){
        .modules = modules, .outputs = plan_strategy_output_dtype(s), .outputs_stay = outputs_stay};
    plan_graph_free(*graph);
    *graph = model_network_emit(network, pass, error);
    g_assert(*graph);
    (*graph)->units = (PlanGraphUnits){0}; /* not owned */
    if ((*graph)->meets_weight == PLAN_NONE) {
        return true;
    }
    const PlanGraphParameter *p = plan_graph_parameter_at(*graph, (*graph)->meets_weight);
    g_set_error(
        error, PLAN_ERROR, PLAN_ERROR_VALUE,
        "output_dtype=%s meets %s, which is in param_dtype and of no unit that casts what it "
        "is given: PyTorch refuses that, or takes another way; set output_dtype=none, or "
        "wrap=module=REGEX with a REGEX that names its layer too",
        plan_dtype_name(pass->units.outputs), p->name);
    return false;
}

static PlanGraph *emit_walk(const ModelNetwork *network, const PlanStrategy *strategy,
                            bool evaluates, GError **error) {
    g_autoptr(GRegex) frozen = NULL, ignored = NULL, lora_on = NULL;
    if (strategy->freeze.choice == PLAN_FREEZE_MODULE) {
        frozen = plan_strategy_whole_regex(strategy->freeze.text, NULL);
    }
    if (strategy->ignored.choice == PLAN_IGNORED_MODULE) {
        ignored = plan_strategy_whole_regex(strategy->ignored.text, NULL);
    }
    if (strategy->lora_rank) {
        lora_on = plan_strategy_whole_regex(lora_pattern(&strategy->lora_on), NULL);
    }
    ModelPass pass = {.batch = strategy->micro_batch,
                      .made_in = plan_strategy_model_dtype(strategy),
                      .seq = strategy->seq,
                      .document = strategy->document,
                      .dtype = plan_strategy_param_dtype(strategy),
                      .kernels = kernels_of(strategy),
                      .autocast = autocast_of(strategy),
                      .copies_results = plan_strategy_copies_results(strategy),
                      .float8 = (PlanFloat8)strategy->float8,
                      .shared = shared_of(network, strategy),
                      .pipeline = pipeline_of(strategy),
                      .trained = trained_of(strategy, frozen, ignored, lora_on),
                      .pytorch = (PlanPytorch)strategy->pytorch,
                      .evaluates = evaluates,
                      .holds_logits = evaluates && strategy->eval_holds_logits == PLAN_YES};
    g_autoptr(PlanGraph) graph = model_network_emit(network, &pass, error);
    if (!graph || !trains_as_asked(graph, strategy, error) ||
        !ignores_as_asked(graph, strategy, error) || !fills_storage(graph, error) ||
        !model_loss_is_chunked_as_known(graph, network->name, error)) {
        return NULL;
    }
    for (PlanGraph *last = graph; pass.pipeline.stage + 1 < pass.pipeline.n_stages;
         last = last->behind) {
        pass.pipeline.stage++;
        pass.pipeline.dropouts_before = model_dropouts_so_far(last);
        last->behind = model_network_emit(network, &pass, error);
        if (!last->behind) {
            return NULL;
        }
        forget_trained(last->behind);
    }
    g_autofree bool *joined =
        strategy->flavour == PLAN_FLAVOUR_FSDP1 ? plan_units_joined(graph, strategy) : NULL;
    if (joined && network->traced) {
        g_set_error(error, PLAN_ERROR, PLAN_ERROR_VALUE,
                    "%s: FSDP1 makes gradients of what is frozen beside what is trained, which a "
                    "trace has not; set flavour = fsdp2, or wrap them apart",
                    network->name);
        return NULL;
    }
    if (joined && joins_four_bits(graph, joined, error)) {
        return NULL;
    }
    if (joined) { /* walked again: what autograd keeps hangs on which units are trained */
        pass.trained.joined = joined;
        plan_graph_free(graph);
        graph = model_network_emit(network, &pass, error);
        g_assert(graph);
    }
    bool casts_inputs = graph->has_wide_inputs && graph->dtype != PLAN_FP32 &&
                        strategy->flavour == PLAN_FLAVOUR_FSDP2 &&
                        strategy->param_dtype != PLAN_PARAM_MODEL;
    if ((strategy->output_dtype != PLAN_OUTPUT_NONE || casts_inputs) &&
        !cast_between_units(network, strategy, &pass, &graph, error)) {
        return NULL;
    }
    if (compiles_idle_checkpoint(graph, strategy, error)) {
        return NULL;
    }
    forget_trained(graph);
    return g_steal_pointer(&graph);
}

/* A static graph's first pass, in which DDP copies results, is over by then. */
static PlanGraph *emit_evaluation(const ModelNetwork *network, const PlanStrategy *strategy,
                                  GError **error) {
    PlanStrategy own = *strategy;
    own.micro_batch = plan_strategy_evaluated_at_once(strategy);
    own.static_graph = PLAN_NO;
    return emit_walk(network, &own, true, error);
}

PlanGraph *model_network_emit_for(const ModelNetwork *network, const PlanStrategy *strategy,
                                  GError **error) {
    if (!model_is_known_with(network, strategy, error)) {
        return NULL;
    }
    g_autoptr(PlanGraph) graph = emit_walk(network, strategy, false, error);
    if (!graph || !strategy->eval_batches) {
        return g_steal_pointer(&graph);
    }
    graph->evaluation = emit_evaluation(network, strategy, error);
    return graph->evaluation ? g_steal_pointer(&graph) : NULL;
}

Plan *model_network_plan(const ModelNetwork *network, const PlanStrategy *strategy, PlanForm form,
                         GError **error) {
    g_autoptr(PlanGraph) graph = model_network_emit_for(network, strategy, error);
    return graph ? plan_build(graph, strategy, network->name, network->text, form, error) : NULL;
}
