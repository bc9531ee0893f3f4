#include "models/layers.h"

/* ---- declaring ------------------------------------------------------------------------------ */

static const double INIT_STD = 0.02; /* GPT-2's; Radford et al. 2019 */

ModelLayer model_linear(const ModelWalk *w, uint32_t parent, const char *name, uint64_t out,
                        uint64_t in, bool has_bias) {
    int64_t dims[] = {(int64_t)out, (int64_t)in};
    ModelLayer layer = {.module = plan_graph_module(w->graph, parent, name, "Linear", false),
                        .bias = PLAN_NONE};
    layer.weight =
        plan_graph_parameter(w->graph, layer.module, "weight", 2, dims, PLAN_INIT_NORMAL, INIT_STD);
    if (has_bias) {
        layer.bias =
            plan_graph_parameter(w->graph, layer.module, "bias", 1, dims, PLAN_INIT_FILL, 0);
    }
    return layer;
}

static ModelLayer norm(const ModelWalk *w, uint32_t parent, const char *name,
                       const char *class_name) {
    int64_t dims[] = {(int64_t)w->width};
    ModelLayer layer = {.module = plan_graph_module(w->graph, parent, name, class_name, false),
                        .bias = PLAN_NONE};
    layer.weight =
        plan_graph_parameter(w->graph, layer.module, "weight", 1, dims, PLAN_INIT_FILL, 1);
    return layer;
}

ModelLayer model_layernorm(const ModelWalk *w, uint32_t parent, const char *name) {
    int64_t dims[] = {(int64_t)w->width};
    ModelLayer layer = norm(w, parent, name, "LayerNorm");
    layer.bias = plan_graph_parameter(w->graph, layer.module, "bias", 1, dims, PLAN_INIT_FILL, 0);
    return layer;
}

ModelLayer model_rmsnorm(const ModelWalk *w, uint32_t parent, const char *name) {
    return norm(w, parent, name, "RMSNorm");
}

uint32_t model_dropout(const ModelWalk *w, uint32_t parent, const char *name) {
    return w->dropout > 0 ? plan_graph_module(w->graph, parent, name, "Dropout", false) : PLAN_NONE;
}

ModelLayer model_embedding(const ModelWalk *w, uint32_t parent, const char *name, uint64_t rows,
                           uint64_t width) {
    int64_t dims[] = {(int64_t)rows, (int64_t)width};
    ModelLayer layer = {.module = plan_graph_module(w->graph, parent, name, "Embedding", false),
                        .bias = PLAN_NONE};
    layer.weight =
        plan_graph_parameter(w->graph, layer.module, "weight", 2, dims, PLAN_INIT_NORMAL, INIT_STD);
    return layer;
}

/* ---- walking -------------------------------------------------------------------------------- */

uint32_t model_run_linear(const ModelWalk *w, const ModelLayer *layer, uint32_t x, uint64_t out,
                          uint64_t in) {
    uint64_t elements = w->rows * out;
    plan_graph_enter(w->graph, layer->module, &x, 1);
    uint32_t y = plan_graph_op(
        w->graph, PLAN_OP_LINEAR, (uint32_t[]){x, layer->weight, layer->bias}, 3, &w->graph->dtype,
        &elements, 1, (int64_t[]){(int64_t)w->rows, (int64_t)out, (int64_t)in}, NULL);
    plan_graph_leave(w->graph, &y, 1);
    return y;
}

uint32_t model_run_layernorm(const ModelWalk *w, const ModelLayer *layer, uint32_t x) {
    PlanDtype dtypes[] = {w->graph->dtype, PLAN_FP32, PLAN_FP32};
    uint64_t elements[] = {w->rows * w->width, w->rows, w->rows};
    double eps = 1e-5; /* nn.LayerNorm's default */
    plan_graph_enter(w->graph, layer->module, &x, 1);
    uint32_t y =
        plan_graph_op(w->graph, PLAN_OP_LAYERNORM, (uint32_t[]){x, layer->weight, layer->bias}, 3,
                      dtypes, elements, 3, (int64_t[]){(int64_t)w->rows, (int64_t)w->width}, &eps);
    plan_graph_leave(w->graph, &y, 1);
    return y;
}

uint32_t model_run_rmsnorm(const ModelWalk *w, const ModelLayer *layer, uint32_t x, double eps) {
    PlanDtype dtypes[] = {w->graph->dtype, PLAN_FP32};
    uint64_t elements[] = {w->rows * w->width, w->rows};
    plan_graph_enter(w->graph, layer->module, &x, 1);
    uint32_t y = plan_graph_op(w->graph, PLAN_OP_RMSNORM, (uint32_t[]){x, layer->weight}, 2, dtypes,
                               elements, 2, (int64_t[]){(int64_t)w->rows, (int64_t)w->width}, &eps);
    plan_graph_leave(w->graph, &y, 1);
    return y;
}

uint32_t model_run_embedding(const ModelWalk *w, const ModelLayer *layer, uint32_t index,
                             uint64_t n, uint64_t vocab) {
    uint64_t elements = n * w->width;
    plan_graph_enter(w->graph, layer->module, &index, 1);
    uint32_t y = plan_graph_op(w->graph, PLAN_OP_EMBEDDING, (uint32_t[]){layer->weight, index}, 2,
                               &w->graph->dtype, &elements, 1,
                               (int64_t[]){(int64_t)n, (int64_t)w->width, (int64_t)vocab}, NULL);
    plan_graph_leave(w->graph, &y, 1);
    return y;
}

uint32_t model_run_add(const ModelWalk *w, uint32_t a, uint32_t b, uint64_t elements_b) {
    uint64_t elements = w->rows * w->width;
    return plan_graph_op(w->graph, PLAN_OP_ADD, (uint32_t[]){a, b}, 2, &w->graph->dtype, &elements,
                         1, (int64_t[]){(int64_t)elements, (int64_t)elements_b}, NULL);
}

uint32_t model_run_elementwise(const ModelWalk *w, PlanOpKind kind, uint32_t a, uint32_t b,
                               uint64_t n) {
    return plan_graph_op(w->graph, kind, (uint32_t[]){a, b}, b == PLAN_NONE ? 1 : 2,
                         &w->graph->dtype, &n, 1, (int64_t[]){(int64_t)n, (int64_t)n}, NULL);
}

/* Each place draws from a stream of its own: the op's number. */
uint32_t model_run_dropout(const ModelWalk *w, uint32_t module, uint32_t x, uint64_t n) {
    if (w->dropout == 0) {
        return x;
    }
    PlanDtype dtypes[] = {w->graph->dtype, PLAN_UINT8};
    if (module != PLAN_NONE) {
        plan_graph_enter(w->graph, module, &x, 1);
    }
    uint32_t y = plan_graph_op(w->graph, PLAN_OP_DROPOUT, &x, 1, dtypes, (uint64_t[]){n, n}, 2,
                               (int64_t[]){(int64_t)n, (int64_t)w->graph->ops->len}, &w->dropout);
    if (module != PLAN_NONE) {
        plan_graph_leave(w->graph, &y, 1);
    }
    return y;
}

uint32_t model_run_cast(const ModelWalk *w, uint32_t x, uint64_t n) {
    return model_run_elementwise(w, PLAN_OP_CAST, x, PLAN_NONE, n);
}

uint32_t model_run_cross_entropy(const ModelWalk *w, uint32_t logits, uint32_t targets,
                                 uint64_t vocab) {
    PlanDtype dtypes[] = {w->graph->dtype, w->graph->dtype};
    uint64_t elements = w->rows * vocab, scalars[] = {1, 1};
    int64_t dims[] = {(int64_t)w->rows, (int64_t)vocab};
    plan_graph_hold(w->graph, logits);
    uint32_t logp =
        plan_graph_op(w->graph, PLAN_OP_LOG_SOFTMAX, &logits, 1, dtypes, &elements, 1, dims, NULL);
    return plan_graph_op(w->graph, PLAN_OP_NLL_LOSS, (uint32_t[]){logp, targets}, 2, dtypes,
                         scalars, 2, dims, NULL);
}
