#include "models/layers/layers.h"

#include "models/layers/chunked-loss.h"
#include "models/layers/lora.h"

ModelWalk model_walk(const ModelNetwork *network, uint64_t batch, uint64_t seq, PlanGraph *graph) {
    if (graph->results_held == PLAN_RESULTS_DROPPED) {
        graph->results_held = network->logits_held;
    }
    return (ModelWalk){.graph = graph,
                       .batch = batch,
                       .seq = seq,
                       .rows = batch * seq,
                       .width = network->width,
                       .dropout = network->dropout,
                       .loss = network->loss,
                       .loss_at = network->loss_at,
                       .logits_held = graph->results_held,
                       .logits_shifted = network->logits_shifted,
                       .loss_in_place = network->loss_in_place,
                       .no_bias = network->no_bias,
                       .norms_from_one = network->norms_from_one,
                       .norms_bare = network->norms_bare};
}

ModelWalk model_walk_along(const ModelWalk *w, uint64_t seq) {
    ModelWalk along = *w;
    along.seq = seq;
    along.rows = w->batch * seq;
    return along;
}

/* ---- declaring ------------------------------------------------------------------------------ */

static const double INIT_STD = 0.02; /* GPT-2's; Radford et al. 2019 */

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
    layer.weight =
        plan_graph_parameter(w->graph, layer.module, "weight", 2, dims, PLAN_INIT_NORMAL, INIT_STD);
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

void model_begin_block(const ModelWalk *w) {
    w->graph->now.fused |= plan_graph_is_compiled(w->graph) && !w->graph->now.in_parts;
}

void model_end_block(const ModelWalk *w) {
    w->graph->now.fused &= !plan_graph_is_compiled(w->graph);
}

void model_begin_part(const ModelWalk *w) {
    w->graph->now.fused |= w->graph->now.in_parts;
}

void model_end_part(const ModelWalk *w) {
    w->graph->now.fused &= !w->graph->now.in_parts;
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

uint32_t model_linear_op(const ModelWalk *w, uint32_t weight, uint32_t bias, PlanDtype dtype,
                         uint32_t x, uint64_t out, uint64_t in, uint64_t parts) {
    return plan_graph_op(w->graph, parts ? PLAN_OP_LINEAR_PARTS : PLAN_OP_LINEAR,
                         (uint32_t[]){x, weight, bias}, dtype, w->rows * out,
                         (int64_t[]){[LINEAR_PARTS_M] = (int64_t)w->rows,
                                     [LINEAR_PARTS_N] = (int64_t)out,
                                     [LINEAR_PARTS_K] = (int64_t)in,
                                     [LINEAR_PARTS_PARTS] = (int64_t)parts},
                         NULL);
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

uint32_t model_run_widen(const ModelWalk *w, uint32_t x) {
    return plan_graph_cast(w->graph, x, PLAN_FP32);
}

uint32_t model_run_like(const ModelWalk *w, uint32_t x, uint32_t other) {
    other = plan_graph_stand_in(w->graph, other);
    PlanDtype dtype = (PlanDtype)plan_graph_value_at(w->graph, other)->dtype;
    return plan_graph_cast(w->graph, x, dtype);
}

uint32_t model_embedding_op(const ModelWalk *w, const ModelLayer *layer, uint32_t index, uint64_t n,
                            uint64_t vocab) {
    return plan_graph_op(w->graph, PLAN_OP_EMBEDDING, (uint32_t[]){layer->weight, index},
                         w->graph->dtype, n * w->width,
                         (int64_t[]){[EMBEDDING_N] = (int64_t)n,
                                     [EMBEDDING_WIDTH] = (int64_t)w->width,
                                     [EMBEDDING_VOCAB] = (int64_t)vocab},
                         NULL);
}

uint32_t model_run_embedding(const ModelWalk *w, const ModelLayer *layer, uint32_t index,
                             uint64_t n, uint64_t vocab) {
    plan_graph_enter(w->graph, layer->module, &index, 1);
    uint32_t y = model_embedding_op(w, layer, index, n, vocab);
    plan_graph_leave(w->graph, &y, 1);
    return y;
}

static uint32_t make_positions(const ModelWalk *w) {
    uint32_t positions = plan_graph_op(w->graph, PLAN_OP_ARANGE, NULL, PLAN_INT64, w->seq,
                                       (int64_t[]){(int64_t)w->seq}, NULL);
    plan_graph_hold(w->graph, positions);
    return positions;
}

uint32_t model_run_embeddings(const ModelWalk *w, const ModelEmbeddings *tables, uint32_t tokens,
                              uint32_t *ret_positions) {
    uint32_t positions = tables->tokens_first ? PLAN_NONE : make_positions(w);
    uint32_t token_part = model_run_embedding(w, tables->tokens, tokens, w->rows, tables->vocab);
    if (positions == PLAN_NONE) {
        positions = make_positions(w);
    }
    uint32_t position_part =
        model_run_embedding(w, tables->positions, positions, w->seq, tables->most);
    if (tables->tokens_first) {
        plan_graph_let_go_after(w->graph, token_part, position_part); /* it has a name */
    }
    *ret_positions = positions;
    return model_run_add(w, token_part, position_part, w->seq * w->width);
}

uint32_t model_run_add(const ModelWalk *w, uint32_t a, uint32_t b, uint64_t elements_b) {
    uint64_t elements = w->rows * w->width;
    return plan_graph_op(w->graph, PLAN_OP_ADD, (uint32_t[]){a, b}, w->graph->dtype, elements,
                         (int64_t[]){[ADD_N] = (int64_t)elements, [ADD_NB] = (int64_t)elements_b},
                         NULL);
}

uint32_t model_run_elementwise(const ModelWalk *w, PlanOpKind kind, uint32_t a, uint32_t b,
                               uint64_t n) {
    return plan_graph_op(w->graph, kind, (uint32_t[]){a, b}, w->graph->dtype, n,
                         (int64_t[]){[ADD_N] = (int64_t)n, [ADD_NB] = (int64_t)n}, NULL);
}

uint32_t model_run_residual(const ModelWalk *w, uint32_t x, uint32_t term) {
    uint32_t y = model_run_add(w, x, term, w->rows * w->width);
    plan_graph_let_go_after(w->graph, x, term);
    return y;
}

void model_enter_block(const ModelWalk *w, uint32_t module, ModelStream stream,
                       const uint32_t *others, unsigned n_others) {
    uint32_t arguments[2 + MODEL_MOST_OTHERS] = {stream.a, stream.r};
    bool is_joined = stream.r != PLAN_NONE;
    unsigned n = is_joined ? 2 : 1;
    g_assert(n_others <= MODEL_MOST_OTHERS);
    for (unsigned i = 0; i < n_others; i++) {
        arguments[n + i] = others[i];
    }
    (is_joined ? plan_graph_enter_with : plan_graph_enter)(w->graph, module, arguments,
                                                           n + n_others);
}

ModelStream model_leave_block(const ModelWalk *w, uint32_t x, uint32_t term) {
    ModelStream stream = {x, term};
    if (w->graph->kernels.style != PLAN_KERNELS_FUSED || w->graph->kernels.blocks_apart) {
        stream = (ModelStream){model_run_residual(w, x, term), PLAN_NONE};
    }
    uint32_t results[] = {stream.a, stream.r};
    plan_graph_leave(w->graph, results, stream.r == PLAN_NONE ? 1 : 2);
    return stream;
}

/* What a function was given by an expression goes after autocast's copy of it. */
static void let_go_after_its_copy(PlanGraph *graph, uint32_t x) {
    const PlanGraphOp *product = plan_graph_op_at(graph, graph->ops.len - 1);
    uint32_t used = plan_graph_ref(graph, product->values);
    if (used != x) {
        plan_graph_let_go_after(graph, x, used);
    }
}

uint32_t model_run_head(const ModelWalk *w, const ModelHead *head, ModelStream stream,
                        uint32_t targets) {
    const ModelLayer *product = head->product;
    bool is_sum = stream.r == PLAN_NONE;
    uint32_t x;
    if (is_sum) {
        plan_graph_hold(w->graph, stream.a);
    }
    uint32_t normed = model_run_last_norm(w, head->norm, stream, head->eps, &x);
    uint32_t result = model_loss_is_chunked(w->loss)
                          ? model_run_chunked_loss(w, product, normed, targets, head->vocab)
                          : model_run_linear(w, product, normed, head->vocab, w->width);
    if (product->module == PLAN_NONE && !model_loss_is_chunked(w->loss)) {
        let_go_after_its_copy(w->graph, normed);
    }
    if (is_sum) {
        plan_graph_let_go_after(w->graph, stream.a, result);
    }
    return result;
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

/* Each place draws from a stream of its own: its number among the dropouts of the network and its
 * adapters, which nothing else in a strategy changes. */
static int64_t dropouts_so_far(const PlanGraph *graph) {
    int64_t n = 0;
    for (guint i = 0; i < graph->ops.len; i++) {
        n += plan_graph_op_at(graph, i)->kind == PLAN_OP_DROPOUT;
    }
    return n;
}

uint32_t model_run_dropout(const ModelWalk *w, uint32_t module, uint32_t x, uint64_t n) {
    return w->dropout == 0 ? x : model_run_dropout_of(w, w->dropout, module, x, n);
}

/* A module that hands on what it is given. */
static uint32_t pass_by(const ModelWalk *w, uint32_t module, uint32_t x) {
    if (module != PLAN_NONE) {
        plan_graph_enter(w->graph, module, &x, 1);
        plan_graph_leave(w->graph, &x, 1);
    }
    return x;
}

uint32_t model_run_dropout_of(const ModelWalk *w, double share, uint32_t module, uint32_t x,
                              uint64_t n) {
    if (w->graph->evaluates) {
        return pass_by(w, module, x);
    }
    uint8_t dtype = plan_graph_value_at(w->graph, x)->dtype;
    PlanGraphResult results[] = {{(PlanDtype)dtype, n}, {PLAN_UINT8, n}};
    if (module != PLAN_NONE) {
        plan_graph_enter(w->graph, module, &x, 1);
    }
    uint32_t y = plan_graph_op_making(
        w->graph, PLAN_OP_DROPOUT, &x, results,
        (int64_t[]){[DROPOUT_N] = (int64_t)n, [DROPOUT_STREAM] = dropouts_so_far(w->graph)},
        &share);
    uint32_t mask = y + 1;
    plan_graph_let_go_after(w->graph, x, mask); /* the mask goes when the function returns */
    if (module != PLAN_NONE) {
        plan_graph_leave(w->graph, &y, 1);
    }
    return y;
}
