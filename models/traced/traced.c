#include "models/traced/traced.h"

#include "plan/build/build.h"
#include "plan/graph/emit.h"

/* ---- its graph ------------------------------------------------------------------------------ */

static bool is_countable(PlanTracedCount count, uint64_t samples) {
    int64_t product, sum;
    return !__builtin_mul_overflow(count.each, (int64_t)samples, &product) &&
           !__builtin_add_overflow(product, count.fixed, &sum) && sum <= PLAN_TRACED_MOST;
}

static bool body_is_countable(const ModelTracedBody *body, uint64_t samples) {
    const PlanTraced *p = body->program;
    bool all = true;
    for (uint32_t i = 0; i < body->inputs->len; i++) {
        all &= is_countable(plan_graph_at(body->inputs, ModelTracedTensor, i)->elements, samples);
    }
    for (uint32_t i = 0; i < p->outs->len; i++) {
        const PlanTracedOut *out = plan_graph_at(p->outs, PlanTracedOut, i);
        all &= is_countable(out->stored, samples) && is_countable(out->elements, samples);
    }
    for (uint32_t i = 0; i < p->events->len; i++) {
        all &= is_countable(plan_graph_at(p->events, PlanTracedEvent, i)->count, samples);
    }
    for (uint32_t i = 0; i < p->kernels->len; i++) {
        const PlanTracedKernel *kernel = plan_graph_at(p->kernels, PlanTracedKernel, i);
        for (unsigned d = 0; d < plan_traced_n_sizes(kernel->op); d++) {
            all &= is_countable(kernel->dims[d], samples);
        }
    }
    for (uint32_t i = 0; i < p->pieces->len; i++) {
        all &= is_countable(plan_graph_at(p->pieces, PlanTracedPiece, i)->count, samples);
    }
    return all;
}

const ModelTracedBody *model_traced_body(const ModelTraced *traced, const char *name,
                                         uint64_t samples, GError **error) {
    for (uint32_t i = 0; i < traced->bodies->len; i++) {
        const ModelTracedBody *body = plan_graph_at(traced->bodies, ModelTracedBody, i);
        if (samples < body->program->first_samples || samples > body->program->last_samples) {
            continue;
        }
        if (samples <= (uint64_t)PLAN_TRACED_MOST && body_is_countable(body, samples)) {
            return body;
        }
        g_set_error(error, PLAN_ERROR, PLAN_ERROR_VALUE,
                    "micro_batch %" G_GUINT64_FORMAT " makes tensors of network %s that no memory "
                    "holds; lower it",
                    samples, name);
        return NULL;
    }
    g_set_error(error, PLAN_ERROR, PLAN_ERROR_VALUE,
                "network %s was not traced with %" G_GUINT64_FORMAT
                " samples a pass; set another micro_batch",
                name, samples);
    return NULL;
}

static const char *name_of_buffer(PlanGraph *graph, const ModelTracedTensor *t) {
    const char *module = plan_graph_module_at(graph, t->module)->name;
    g_autofree char *whole = *module ? g_strconcat(module, ".", t->name, NULL) : g_strdup(t->name);
    return g_string_chunk_insert(graph->strings, whole);
}

static void declare_tensor(PlanGraph *graph, const ModelTracedTensor *t) {
    if (t->is_parameter) {
        uint32_t value = plan_graph_parameter(graph, t->module, t->name, t->n_dims, t->dims,
                                              PLAN_INIT_NORMAL, 0.02);
        if (t->frozen) {
            plan_graph_freeze(graph, value);
        }
    } else {
        uint32_t value =
            plan_graph_buffer_between(graph, (PlanDtype)t->dtype, (uint64_t)t->elements.fixed);
        PlanGraphValue *v = plan_graph_value_at(graph, value);
        v->is_kept = t->is_kept;
        v->name = t->name ? name_of_buffer(graph, t) : NULL;
    }
}

static void emit(const ModelNetwork *network, uint64_t batch, uint64_t seq, PlanGraph *graph) {
    const ModelTraced *traced = network->traced;
    const ModelTracedBody *body = model_traced_body(traced, network->name, batch, NULL);
    graph->dtype = traced->dtype;
    for (uint32_t i = 0; i < traced->modules->len; i++) {
        const ModelTracedModule *m = plan_graph_at(traced->modules, ModelTracedModule, i);
        plan_graph_module(graph, m->parent, m->name, m->class_name, m->is_block);
    }
    for (uint32_t i = 0; i < traced->tensors->len; i++) {
        declare_tensor(graph, plan_graph_at(traced->tensors, ModelTracedTensor, i));
    }
    g_array_append_vals(graph->made, traced->made->data, traced->made->len);
    for (uint32_t i = 0; i < body->inputs->len; i++) {
        const ModelTracedTensor *t = plan_graph_at(body->inputs, ModelTracedTensor, i);
        uint64_t bound = t->bound ? t->bound : t->dtype == PLAN_INT64 ? 2 : 0;
        plan_graph_input(graph, (PlanDtype)t->dtype, plan_traced_count(t->elements, batch), bound);
    }
    plan_graph_traced(graph, body->program);
}

const ModelFamily model_traced = {"traced", "|", emit};

/* ---- what it is known with ------------------------------------------------------------------ */

/* A trace is of one program on one rank, as PyTorch ran it op by op. */
static const char *unknown_of(const PlanStrategy *s) {
    return s->kernels != PLAN_KERNELS_EAGER ? "other kernels than PyTorch's; set kernels = eager"
           : s->float8                      ? "float8; set float8 = none"
           : s->lora_rank                   ? "adapters; put them into the network that is traced"
           : s->freeze.choice == PLAN_FREEZE_MODULE
               ? "freeze; freeze in the network that is traced, by requires_grad_(False)"
           : s->ignored.choice == PLAN_IGNORED_MODULE
               ? "parameters that the wrapper leaves alone; set ignored = none"
           : s->tensor > 1 || s->context > 1 || s->pipeline > 1
               ? "ranks that share layers or sequences; leave tensor, context and pipeline at 1"
           : s->autocast != PLAN_AUTOCAST_NONE
               ? "autocast; set autocast = none, and trace it with --dtype bf16 for param_dtype"
           : s->document ? "documents; trace a network that keeps attention within them"
           : s->seq      ? "another seq than it was traced with; trace it with that"
           : !plan_strategy_is_after(s, PLAN_PYTORCH_2_4)
               ? "an older PyTorch; set pytorch = current"
           : s->deterministic != PLAN_DETERMINISTIC_NO
               ? "deterministic algorithms, because it was traced without; set deterministic = no"
           : plan_strategy_copies_results(s)
               ? "what its root returns, which DDP then copies; set find_unused = no and "
                 "static_graph = no"
           : s->eval_batches ? "an evaluation, because it was traced as it trains; set "
                               "eval_batches = 0"
           : s->offload == PLAN_OFFLOAD_ACTIVATIONS ? "offload = activations; set another"
                                                    : NULL;
}

static bool keeps_norms_apart(const PlanStrategy *s) {
    return s->flavour == PLAN_FLAVOUR_FSDP1 && plan_strategy_param_dtype(s) != PLAN_FP32;
}

static bool has_batch_norm(const ModelTraced *traced) {
    for (uint32_t i = 0; i < traced->modules->len; i++) {
        const char *name = plan_graph_at(traced->modules, ModelTracedModule, i)->class_name;
        if (g_str_has_prefix(name, "BatchNorm") || g_str_equal(name, "SyncBatchNorm")) {
            return true;
        }
    }
    return false;
}

/* FSDP2 casts what each unit's module is called with, FSDP1 what the root is. */
static bool casts_blocks(const PlanStrategy *s) {
    return s->flavour == PLAN_FLAVOUR_FSDP2 && s->wrap.choice == PLAN_WRAP_BLOCK &&
           s->param_dtype != PLAN_PARAM_MODEL;
}

bool model_traced_is_known_with(const ModelNetwork *network, const PlanStrategy *strategy,
                                GError **error) {
    const ModelTraced *traced = network->traced;
    const char *why = unknown_of(strategy);
    if (why) {
        g_set_error(error, PLAN_ERROR, PLAN_ERROR_VALUE,
                    "%s: a traced network is not planned with %s", network->name, why);
        return false;
    }
    if (keeps_norms_apart(strategy) && has_batch_norm(traced)) {
        g_set_error(error, PLAN_ERROR, PLAN_ERROR_VALUE,
                    "%s: FSDP1's mixed precision makes each batch norm an fp32 unit of its own, "
                    "which is not known; set flavour = fsdp2, or leave param_dtype out",
                    network->name);
        return false;
    }
    PlanDtype asked = plan_strategy_param_dtype(strategy);
    if (asked != traced->dtype) {
        const char *is = plan_dtype_name(traced->dtype), *name = plan_dtype_name(asked);
        g_set_error(error, PLAN_ERROR, PLAN_ERROR_VALUE,
                    "%s: it was traced in %s, and this computes in %s; set param_dtype = %s, or "
                    "trace it with --dtype %s",
                    network->name, is, name, is, name);
        return false;
    }
    if (traced->casts_blocks && !casts_blocks(strategy)) {
        g_set_error(error, PLAN_ERROR, PLAN_ERROR_VALUE,
                    "%s: it was traced with blocks whose inputs FSDP2 casts to param_dtype; set "
                    "flavour = fsdp2, wrap = block and param_dtype = %s, or trace it with --cast "
                    "root",
                    network->name, plan_dtype_name(traced->dtype));
        return false;
    }
    return true;
}
