/* models/layers/linear.c - a linear layer: declared, and run in whatever precision it has, with its
 * adapter. */
#include "models/layers/lora.h"

/* The layer gives its bias the dtype that it computes in, once and for all. */
static void pack(PlanGraph *graph, const ModelLayer *layer) {
    plan_graph_pack(graph, layer->weight);
    if (layer->bias != PLAN_NONE && graph->now.autocasts) {
        plan_graph_give_dtype(graph, layer->bias, graph->autocast.lower);
    }
}

static ModelLayer linear(const ModelWalk *w, uint32_t parent, const char *name, uint64_t out,
                         uint64_t in, bool has_bias) {
    int64_t dims[] = {(int64_t)out, (int64_t)in};
    ModelLayer layer = {.module = plan_graph_module(w->graph, parent, name, "Linear", false),
                        .bias = PLAN_NONE};
    layer.weight = plan_graph_parameter(w->graph, layer.module, "weight", 2, dims, PLAN_INIT_NORMAL,
                                        MODEL_INIT_STD);
    if (has_bias && !w->no_bias) {
        layer.bias =
            plan_graph_parameter(w->graph, layer.module, "bias", 1, dims, PLAN_INIT_FILL, 0);
    }
    if (w->graph->trained.four_bits && plan_graph_is_in_block(w->graph, layer.module)) {
        pack(w->graph, &layer);
    }
    return layer;
}

ModelLayer model_linear(const ModelWalk *w, uint32_t parent, const char *name, uint64_t out,
                        uint64_t in, bool has_bias) {
    if (!model_lora_adapts(w->graph, parent, name)) {
        return linear(w, parent, name, out, in, has_bias);
    }
    uint32_t holder = plan_graph_module(w->graph, parent, name, "LoraLinear", false);
    ModelLayer layer = linear(w, holder, "base_layer", out, in, has_bias);
    layer.adapter = model_lora_declare(w, holder, out, in);
    return layer;
}

ModelLayer model_head(const ModelWalk *w, uint32_t parent, const char *name, uint64_t vocab,
                      bool has_bias, const ModelLayer *tied) {
    if (!tied) {
        return model_linear(w, parent, name, vocab, w->width, has_bias);
    }
    ModelLayer head = {.bias = PLAN_NONE, .weight = tied->weight};
    head.module = plan_graph_module(w->graph, parent, name, "Linear", false);
    plan_graph_tie(w->graph, head.module, head.weight);
    return head;
}

static bool is_in_block(const ModelWalk *w, const ModelLayer *layer) {
    return layer->module != PLAN_NONE && plan_graph_is_in_block(w->graph, layer->module);
}

/* With dynamic scales, as torchtitan chooses: of blocks, and only where 16 divides both sides. */
static bool is_in_float8(const ModelWalk *w, const ModelLayer *layer, uint64_t out, uint64_t in) {
    return w->graph->float8 && w->graph->float8 != PLAN_FLOAT8_DELAYED && out % 16 == 0 &&
           in % 16 == 0 && is_in_block(w, layer);
}

static bool has_delayed_scales(const ModelWalk *w, const ModelLayer *layer) {
    return w->graph->float8 == PLAN_FLOAT8_DELAYED && is_in_block(w, layer);
}

/* x is cast to what products compute in, and what they make back, by the layer itself. */
static uint32_t run_four_bits(const ModelWalk *w, const ModelLayer *layer, uint32_t x, uint64_t out,
                              uint64_t in) {
    PlanDtype own = (PlanDtype)plan_graph_value_at(w->graph, x)->dtype;
    uint32_t given = plan_graph_cast(w->graph, x, plan_graph_product_dtype(w->graph));
    if (given != x) {
        plan_graph_hold(w->graph, given);
    }
    uint32_t y = plan_graph_four_bit_linear(
        w->graph, (uint32_t[]){given, layer->weight, layer->bias}, w->rows, out, in);
    return plan_graph_cast(w->graph, y, own);
}

static bool is_in_four_bits(const ModelWalk *w, const ModelLayer *layer) {
    uint32_t parameter = plan_graph_value_at(w->graph, layer->weight)->parameter;
    return plan_graph_parameter_at(w->graph, parameter)->numbers > 0;
}

static uint32_t run_product(const ModelWalk *w, const ModelLayer *layer, uint32_t x, uint64_t out,
                            uint64_t in, uint64_t parts) {
    if (!parts && is_in_four_bits(w, layer)) {
        return run_four_bits(w, layer, x, out, in);
    }
    if (!parts && has_delayed_scales(w, layer)) {
        return plan_graph_delayed_linear(w->graph, (uint32_t[]){x, layer->weight, layer->bias},
                                         w->rows, out, in);
    }
    return !parts && is_in_float8(w, layer, out, in)
               ? plan_graph_float8_linear(w->graph, x, layer->weight, w->rows, out, in)
               : model_linear_op(w, layer->weight, layer->bias, w->graph->dtype, x, out, in, parts);
}

static uint32_t run_linear(const ModelWalk *w, const ModelLayer *layer, uint32_t x, uint64_t out,
                           uint64_t in, uint64_t parts) {
    if (layer->module == PLAN_NONE) { /* a function */
        return run_product(w, layer, x, out, in, parts);
    }
    plan_graph_enter(w->graph, layer->module, &x, 1);
    uint32_t y = run_product(w, layer, x, out, in, parts);
    plan_graph_leave(w->graph, &y, 1);
    return y;
}

/* A unit of its own is gathered before the layer copies the gradient. */
static uint32_t run_copying_linear(const ModelWalk *w, const ModelAttention *a,
                                   const ModelLayer *layer, uint32_t x, uint64_t out, char which) {
    plan_graph_enter(w->graph, layer->module, &x, 1);
    uint32_t y = model_run_heads(w, a, run_product(w, layer, x, out, w->width, 0), which);
    plan_graph_leave(w->graph, &y, 1);
    return y;
}

uint32_t model_run_linear_parts(const ModelWalk *w, const ModelLayer *layer, uint32_t x,
                                uint64_t out, uint64_t in, uint64_t parts) {
    ModelAdapter adapter = layer->adapter;
    if (!adapter.rank) {
        return run_linear(w, layer, x, out, in, parts);
    }
    adapter.parts = parts;
    plan_graph_enter(w->graph, adapter.module, &x, 1);
    uint32_t y = run_linear(w, layer, x, out, in, parts);
    y = model_lora_run(w, &adapter, x, y, NULL);
    plan_graph_leave(w->graph, &y, 1);
    return y;
}

uint32_t model_run_linear(const ModelWalk *w, const ModelLayer *layer, uint32_t x, uint64_t out,
                          uint64_t in) {
    return model_run_linear_parts(w, layer, x, out, in, 0);
}

uint32_t model_run_heads_of(const ModelWalk *w, const ModelAttention *a, const ModelLayer *layer,
                            uint32_t x, uint64_t out, char which) {
    const ModelAdapter *adapter = &layer->adapter;
    if (layer->module == PLAN_NONE || !model_each_layer_copies(w, a, which)) {
        return model_run_heads(w, a, model_run_linear(w, layer, x, out, w->width), which);
    }
    if (!adapter->rank) {
        return run_copying_linear(w, a, layer, x, out, which);
    }
    plan_graph_enter(w->graph, adapter->module, &x, 1);
    uint32_t y = run_copying_linear(w, a, layer, x, out, which);
    y = model_lora_run(w, adapter, x, y, a);
    plan_graph_leave(w->graph, &y, 1);
    return y;
}

uint32_t model_run_linear_gelu(const ModelWalk *w, const ModelLayer *layer, uint32_t x,
                               uint64_t out, uint64_t in, bool erf) {
    PlanGraphResult results[] = {{w->graph->dtype, w->rows * out},
                                 {w->graph->dtype, w->rows * out}};
    double is_erf = erf;
    plan_graph_enter(w->graph, layer->module, &x, 1);
    uint32_t y = plan_graph_op_making(w->graph, PLAN_OP_LINEAR_GELU,
                                      (uint32_t[]){x, layer->weight, layer->bias}, results,
                                      (int64_t[]){[LINEAR_GELU_M] = (int64_t)w->rows,
                                                  [LINEAR_GELU_N] = (int64_t)out,
                                                  [LINEAR_GELU_K] = (int64_t)in},
                                      &is_erf);
    plan_graph_leave(w->graph, &y, 1);
    return y;
}
