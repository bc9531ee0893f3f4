/* models/gpt.c - decoder-only transformer of the GPT-2 shape: learned positions, LayerNorm before
 * each half of a block, biases, GELU, attention without an s x s tensor; the head tied or not.
 */
#include <math.h>

#include "models/network.h"

typedef struct {
    PlanGraph *graph;
    uint64_t batch, seq, rows, width, heads, ffn, vocab;
    bool gelu_tanh;
} Gpt;

/* A module with a weight and a bias. */
typedef struct {
    uint32_t module, weight, bias;
} Layer;

typedef struct {
    uint32_t module, attn, mlp, act;
    Layer ln_1, qkv, proj, ln_2, up, down;
} Block;

static Layer linear(const Gpt *gpt, uint32_t parent, const char *name, uint64_t out, uint64_t in,
                    bool has_bias) {
    int64_t dims[] = {(int64_t)out, (int64_t)in};
    Layer layer = {.module = plan_graph_module(gpt->graph, parent, name, "Linear", false),
                   .bias = PLAN_NONE};
    layer.weight =
        plan_graph_parameter(gpt->graph, layer.module, "weight", 2, dims, PLAN_INIT_NORMAL, 0.02);
    if (has_bias) {
        layer.bias =
            plan_graph_parameter(gpt->graph, layer.module, "bias", 1, dims, PLAN_INIT_FILL, 0);
    }
    return layer;
}

static Layer norm(const Gpt *gpt, uint32_t parent, const char *name) {
    int64_t dims[] = {(int64_t)gpt->width};
    Layer layer = {.module = plan_graph_module(gpt->graph, parent, name, "LayerNorm", false)};
    layer.weight =
        plan_graph_parameter(gpt->graph, layer.module, "weight", 1, dims, PLAN_INIT_FILL, 1);
    layer.bias = plan_graph_parameter(gpt->graph, layer.module, "bias", 1, dims, PLAN_INIT_FILL, 0);
    return layer;
}

static Layer embedding(const Gpt *gpt, uint32_t parent, const char *name, uint64_t rows) {
    int64_t dims[] = {(int64_t)rows, (int64_t)gpt->width};
    Layer layer = {.module = plan_graph_module(gpt->graph, parent, name, "Embedding", false),
                   .bias = PLAN_NONE};
    layer.weight =
        plan_graph_parameter(gpt->graph, layer.module, "weight", 2, dims, PLAN_INIT_NORMAL, 0.02);
    return layer;
}

static Block declare_block(const Gpt *gpt, uint32_t root, uint64_t index) {
    g_autofree char *name = g_strdup_printf("layers.%" G_GUINT64_FORMAT, index);
    Block block;
    block.module = plan_graph_module(gpt->graph, root, name, "GptBlock", true);
    block.ln_1 = norm(gpt, block.module, "ln_1");
    block.attn = plan_graph_module(gpt->graph, block.module, "attn", "GptAttention", false);
    block.qkv = linear(gpt, block.attn, "qkv", 3 * gpt->width, gpt->width, true);
    block.proj = linear(gpt, block.attn, "proj", gpt->width, gpt->width, true);
    block.ln_2 = norm(gpt, block.module, "ln_2");
    block.mlp = plan_graph_module(gpt->graph, block.module, "mlp", "GptMlp", false);
    block.up = linear(gpt, block.mlp, "up", gpt->ffn, gpt->width, true);
    block.act = plan_graph_module(gpt->graph, block.mlp, "act", "GELU", false);
    block.down = linear(gpt, block.mlp, "down", gpt->width, gpt->ffn, true);
    return block;
}

static uint32_t run_linear(const Gpt *gpt, const Layer *layer, uint32_t x, uint64_t out,
                           uint64_t in) {
    uint64_t elements = gpt->rows * out;
    plan_graph_enter(gpt->graph, layer->module, &x, 1);
    uint32_t y =
        plan_graph_op(gpt->graph, PLAN_OP_LINEAR, (uint32_t[]){x, layer->weight, layer->bias}, 3,
                      &gpt->graph->dtype, &elements, 1,
                      (int64_t[]){(int64_t)gpt->rows, (int64_t)out, (int64_t)in}, NULL);
    plan_graph_leave(gpt->graph, &y, 1);
    return y;
}

static uint32_t run_norm(const Gpt *gpt, const Layer *layer, uint32_t x) {
    PlanDtype dtypes[] = {gpt->graph->dtype, PLAN_FP32, PLAN_FP32};
    uint64_t elements[] = {gpt->rows * gpt->width, gpt->rows, gpt->rows};
    double eps = 1e-5; /* nn.LayerNorm's default */
    plan_graph_enter(gpt->graph, layer->module, &x, 1);
    uint32_t y = plan_graph_op(gpt->graph, PLAN_OP_LAYERNORM,
                               (uint32_t[]){x, layer->weight, layer->bias}, 3, dtypes, elements, 3,
                               (int64_t[]){(int64_t)gpt->rows, (int64_t)gpt->width}, &eps);
    plan_graph_leave(gpt->graph, &y, 1);
    return y;
}

static uint32_t run_add(const Gpt *gpt, uint32_t a, uint32_t b, uint64_t elements_b) {
    uint64_t elements = gpt->rows * gpt->width;
    return plan_graph_op(gpt->graph, PLAN_OP_ADD, (uint32_t[]){a, b}, 2, &gpt->graph->dtype,
                         &elements, 1, (int64_t[]){(int64_t)elements, (int64_t)elements_b}, NULL);
}

static uint32_t run_attention(const Gpt *gpt, const Block *block, uint32_t x) {
    uint64_t head_dim = gpt->width / gpt->heads;
    /* 16-bit goes to the flash kernel, fp32 to the memory-efficient one, which pads its row
     * statistics to 32 rows; both keep the state of dropout's random numbers on the device, in two
     * tensors. */
    bool flash = gpt->graph->dtype != PLAN_FP32;
    uint64_t lse_stride = flash ? gpt->seq : (gpt->seq + 31) / 32 * 32;
    PlanDtype dtypes[] = {gpt->graph->dtype, PLAN_FP32, PLAN_INT64, PLAN_INT64};
    uint64_t elements[] = {gpt->rows * gpt->width, gpt->batch * gpt->heads * lse_stride,
                           flash ? 2 : 1, 1};
    double scale = 1 / sqrt((double)head_dim);
    uint32_t views[3];
    plan_graph_enter(gpt->graph, block->attn, &x, 1);
    uint32_t qkv = run_linear(gpt, &block->qkv, x, 3 * gpt->width, gpt->width);
    plan_graph_split(gpt->graph, qkv, gpt->rows, gpt->width, 3, views);
    for (unsigned i = 0; i < 3; i++) {
        plan_graph_hold(gpt->graph, views[i]);
    }
    uint32_t o =
        plan_graph_op(gpt->graph, PLAN_OP_ATTENTION, views, 3, dtypes, elements, 4,
                      (int64_t[]){(int64_t)gpt->batch, (int64_t)gpt->heads, (int64_t)gpt->heads,
                                  (int64_t)gpt->seq, (int64_t)head_dim, (int64_t)(3 * gpt->width),
                                  (int64_t)(3 * gpt->width), (int64_t)lse_stride, 1},
                      &scale);
    uint32_t y = run_linear(gpt, &block->proj, o, gpt->width, gpt->width);
    plan_graph_leave(gpt->graph, &y, 1);
    return y;
}

static uint32_t run_mlp(const Gpt *gpt, const Block *block, uint32_t x) {
    uint64_t elements = gpt->rows * gpt->ffn;
    plan_graph_enter(gpt->graph, block->mlp, &x, 1);
    uint32_t h = run_linear(gpt, &block->up, x, gpt->ffn, gpt->width);
    plan_graph_enter(gpt->graph, block->act, &h, 1);
    uint32_t a =
        plan_graph_op(gpt->graph, gpt->gelu_tanh ? PLAN_OP_GELU_TANH : PLAN_OP_GELU_ERF, &h, 1,
                      &gpt->graph->dtype, &elements, 1, (int64_t[]){(int64_t)elements}, NULL);
    plan_graph_leave(gpt->graph, &a, 1);
    uint32_t y = run_linear(gpt, &block->down, a, gpt->width, gpt->ffn);
    plan_graph_leave(gpt->graph, &y, 1);
    return y;
}

static uint32_t run_block(const Gpt *gpt, const Block *block, uint32_t x) {
    uint64_t elements = gpt->rows * gpt->width;
    plan_graph_enter(gpt->graph, block->module, &x, 1);
    uint32_t a = run_attention(gpt, block, run_norm(gpt, &block->ln_1, x));
    x = run_add(gpt, x, a, elements);
    uint32_t m = run_mlp(gpt, block, run_norm(gpt, &block->ln_2, x));
    uint32_t y = run_add(gpt, x, m, elements);
    plan_graph_leave(gpt->graph, &y, 1);
    return y;
}

static uint32_t run_embedding(const Gpt *gpt, const Layer *layer, uint32_t index, uint64_t n,
                              uint64_t vocab) {
    uint64_t elements = n * gpt->width;
    plan_graph_enter(gpt->graph, layer->module, &index, 1);
    uint32_t y = plan_graph_op(gpt->graph, PLAN_OP_EMBEDDING, (uint32_t[]){layer->weight, index}, 2,
                               &gpt->graph->dtype, &elements, 1,
                               (int64_t[]){(int64_t)n, (int64_t)gpt->width, (int64_t)vocab}, NULL);
    plan_graph_leave(gpt->graph, &y, 1);
    return y;
}

static uint32_t run_cross_entropy(const Gpt *gpt, uint32_t logits, uint32_t targets) {
    PlanDtype dtypes[] = {gpt->graph->dtype, gpt->graph->dtype};
    uint64_t elements = gpt->rows * gpt->vocab, scalars[] = {1, 1};
    int64_t dims[] = {(int64_t)gpt->rows, (int64_t)gpt->vocab};
    plan_graph_hold(gpt->graph, logits);
    uint32_t logp = plan_graph_op(gpt->graph, PLAN_OP_LOG_SOFTMAX, &logits, 1, dtypes, &elements, 1,
                                  dims, NULL);
    return plan_graph_op(gpt->graph, PLAN_OP_NLL_LOSS, (uint32_t[]){logp, targets}, 2, dtypes,
                         scalars, 2, dims, NULL);
}

static void emit(const ModelNetwork *network, uint64_t batch, uint64_t seq, PlanGraph *graph) {
    Gpt shape = {.graph = graph,
                 .batch = batch,
                 .seq = seq,
                 .rows = batch * seq,
                 .width = network->width,
                 .heads = network->heads,
                 .ffn = network->ffn ? network->ffn : 4 * network->width,
                 .vocab = network->vocab,
                 .gelu_tanh = network->gelu_tanh};
    const Gpt *gpt = &shape;
    uint32_t root = plan_graph_module(graph, PLAN_NONE, "", "Gpt", false);
    Layer wte = embedding(gpt, root, "wte", gpt->vocab);
    Layer wpe = embedding(gpt, root, "wpe", network->seq);
    g_autofree Block *blocks = g_new(Block, network->layers);
    for (uint64_t i = 0; i < network->layers; i++) {
        blocks[i] = declare_block(gpt, root, i);
    }
    Layer ln_f = norm(gpt, root, "ln_f");
    Layer head = {.bias = PLAN_NONE, .weight = wte.weight};
    if (network->tied) {
        head.module = plan_graph_module(graph, root, "head", "Linear", false);
    } else {
        head = linear(gpt, root, "head", gpt->vocab, gpt->width, false);
    }
    uint32_t tokens = plan_graph_input(graph, PLAN_INT64, gpt->rows, gpt->vocab);
    uint32_t targets = plan_graph_input(graph, PLAN_INT64, gpt->rows, gpt->vocab);

    plan_graph_enter(graph, root, (uint32_t[]){tokens, targets}, 2);
    PlanDtype int64 = PLAN_INT64;
    uint32_t positions = plan_graph_op(graph, PLAN_OP_ARANGE, NULL, 0, &int64, &seq, 1,
                                       (int64_t[]){(int64_t)seq}, NULL);
    plan_graph_hold(graph, positions);
    uint32_t token_part = run_embedding(gpt, &wte, tokens, gpt->rows, gpt->vocab);
    uint32_t position_part = run_embedding(gpt, &wpe, positions, seq, network->seq);
    uint32_t x = run_add(gpt, token_part, position_part, seq * gpt->width);
    for (uint64_t i = 0; i < network->layers; i++) {
        x = run_block(gpt, &blocks[i], x);
    }
    plan_graph_hold(graph, x);
    uint32_t logits = run_linear(gpt, &head, run_norm(gpt, &ln_f, x), gpt->vocab, gpt->width);
    uint32_t loss = run_cross_entropy(gpt, logits, targets);
    plan_graph_leave(graph, &loss, 1);
    plan_graph_finish(graph, loss);
}

const ModelFamily model_gpt = {"gpt", "layers width heads vocab seq|ffn tied gelu", emit};
