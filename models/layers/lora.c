#include "models/layers/lora.h"

#include <math.h>

bool model_lora_adapts(const PlanGraph *graph, uint32_t parent, const char *name) {
    const PlanGraphTrained *t = &graph->trained;
    if (!t->lora_rank || !plan_graph_is_in_block(graph, parent)) {
        return false;
    }
    const char *inside = plan_graph_module_at(graph, parent)->name;
    g_autofree char *whole = g_strconcat(inside, ".", name, NULL);
    return g_regex_match(t->lora_on, whole, 0, NULL);
}

/* deviation 0: it begins with zeros. */
static ModelProduct declare_product(const ModelWalk *w, uint32_t module, const char *name,
                                    uint64_t out, uint64_t in, double deviation) {
    PlanInit init = deviation > 0 ? PLAN_INIT_NORMAL : PLAN_INIT_FILL;
    int64_t dims[] = {(int64_t)out, (int64_t)in};
    ModelProduct product = {.module = plan_graph_module(w->graph, module, name, "Linear", false)};
    product.weight =
        plan_graph_parameter(w->graph, product.module, "weight", 2, dims, init, deviation);
    return product;
}

/* A begins at random, B with zeros. PEFT and torchtune draw A evenly from +-1 / sqrt(in), whose
 * standard deviation this has. */
ModelAdapter model_lora_declare(const ModelWalk *w, uint32_t module, uint64_t out, uint64_t in) {
    uint64_t rank = w->graph->trained.lora_rank;
    ModelAdapter adapter = {
        .rank = rank, .out = out, .in = in, .module = module, .dropout = PLAN_NONE};
    if (w->graph->trained.lora_dropout > 0) {
        adapter.dropout = plan_graph_module(w->graph, module, "lora_dropout", "Dropout", false);
    }
    w->graph->now.in_adapter = true;
    adapter.a = declare_product(w, module, "lora_A", rank, in, 1 / sqrt(3 * (double)in));
    adapter.b = declare_product(w, module, "lora_B", out, rank, 0);
    w->graph->now.in_adapter = false;
    return adapter;
}

static PlanDtype dtype_of(const ModelWalk *w, uint32_t value) {
    return (PlanDtype)plan_graph_value_at(w->graph, value)->dtype;
}

/* of_k: what comes is seen as k's heads, within the module, whose unit is gathered before the layer
 * copies their gradient. */
static uint32_t run_product(const ModelWalk *w, const ModelProduct *product, uint32_t x,
                            uint64_t out, uint64_t in, uint64_t parts, const ModelAttention *of_k) {
    PlanDtype dtype = dtype_of(w, product->weight);
    plan_graph_enter(w->graph, product->module, &x, 1);
    uint32_t y = model_linear_op(w, product->weight, PLAN_NONE, dtype, x, out, in, parts);
    y = of_k ? model_run_heads(w, of_k, y, 'k') : y;
    plan_graph_leave(w->graph, &y, 1);
    return y;
}

/* What A is given, which backward wants for A's gradient. */
static uint32_t dropped(const ModelWalk *w, const ModelAdapter *adapter, uint32_t x) {
    return adapter->dropout == PLAN_NONE
               ? x
               : model_run_dropout_of(w, w->graph->trained.lora_dropout, adapter->dropout, x,
                                      w->rows * adapter->in);
}

/* B(A(x)), which may be seen as k's heads. */
static uint32_t run_products(const ModelWalk *w, const ModelAdapter *adapter, uint32_t x,
                             const ModelAttention *of_k) {
    uint32_t given = dropped(w, adapter, x);
    uint32_t low = run_product(w, &adapter->a, given, adapter->rank, adapter->in, 0, NULL);
    return run_product(w, &adapter->b, low, adapter->out, adapter->rank, adapter->parts, of_k);
}

/* Of a layer in 4 bits PEFT copies what it gives, and casts what the adapter makes, not the sum;
 * under autocast neither that nor what A is given (src/peft/tuners/lora/bnb.py, Linear4bit). */
static uint32_t run_beside_four_bits(const ModelWalk *w, const ModelAdapter *adapter, uint32_t x,
                                     uint32_t y, const ModelAttention *of_k) {
    PlanGraph *graph = w->graph;
    uint64_t n = w->rows * adapter->out;
    int64_t dims[] = {[ADD_N] = (int64_t)n, [ADD_NB] = (int64_t)n}; /* others take the first */
    PlanDtype own = dtype_of(w, y), dtype = dtype_of(w, adapter->a.weight);
    uint32_t result = plan_graph_op(graph, PLAN_OP_COPY, &y, own, n, dims, NULL);
    plan_graph_hold(graph, result);
    uint32_t given = graph->now.autocasts ? x : plan_graph_cast(graph, x, dtype);
    if (given != x) {
        plan_graph_hold(graph, given);
    }
    uint32_t product = run_products(w, adapter, given, of_k);
    uint32_t output = plan_graph_op(graph, PLAN_OP_TIMES_NUMBER, &product, dtype, n, dims,
                                    &graph->trained.lora_scale);
    output = graph->now.autocasts ? output : plan_graph_cast(graph, output, own);
    plan_graph_hold(graph, output);
    return plan_graph_op(graph, PLAN_OP_ADD, (uint32_t[]){result, output}, own, n, dims, NULL);
}

/* The adapter's dtype is the sum's, for it is the network's or a wider one. */
uint32_t model_lora_run(const ModelWalk *w, const ModelAdapter *adapter, uint32_t x, uint32_t y,
                        const ModelAttention *of_k) {
    PlanGraph *graph = w->graph;
    if (graph->trained.four_bits) {
        return run_beside_four_bits(w, adapter, x, y, of_k);
    }
    if (graph->now.fused) {
        return plan_graph_add_scaled(graph, y, run_products(w, adapter, x, of_k),
                                     graph->trained.lora_scale);
    }
    uint64_t n = w->rows * adapter->out;
    int64_t dims[] = {[ADD_N] = (int64_t)n, [ADD_NB] = (int64_t)n}; /* others take the first */
    PlanDtype own = dtype_of(w, y), dtype = dtype_of(w, adapter->a.weight);
    uint32_t given = plan_graph_cast(graph, x, dtype);
    if (given != x) {
        plan_graph_hold(graph, given);           /* the function's variable now ... */
        plan_graph_goes_behind(graph, y, given); /* ... as y is, its second one */
    }
    uint32_t product = run_products(w, adapter, given, of_k);
    uint32_t scaled = plan_graph_op(graph, PLAN_OP_TIMES_NUMBER, &product, dtype, n, dims,
                                    &graph->trained.lora_scale);
    uint32_t sum = plan_graph_op(graph, PLAN_OP_ADD, (uint32_t[]){y, scaled}, dtype, n, dims, NULL);
    plan_graph_let_go_after(graph, y, scaled); /* a variable, which is set anew */
    return plan_graph_cast(graph, sum, own);
}
