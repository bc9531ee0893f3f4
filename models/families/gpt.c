/* models/families/gpt.c - decoder-only transformer of the GPT-2 shape: learned positions, LayerNorm
 * before each half of a block, biases, GELU; the head tied or not.
 *
 * Where ranks share the layers (plan->tensor; layers/shared.h) a rank has its part of heads, hidden
 * layer, vocabulary and positions, and between the layers its part of each sequence. The rows of
 * its layer for q, k and v are those of its heads' q, then of their k, then of their v.
 */
#include <math.h>

#include "models/layers/attention.h"
#include "models/layers/shared.h"

/* What the parts are called; and what else the two families do each in their way. */
typedef struct {
    const char *root, *blocks, *block, *ln_1, *attn, *attention, *qkv, *proj, *ln_2, *mlp, *Mlp,
        *up, *act /* NULL: a function, no module */, *down, *ln_f;
    bool tokens_first;     /* looked up before the positions are made */
    bool head_is_function; /* of the tied weight; no module */
} Names;

typedef struct {
    ModelWalk walk;    /* inside of layers */
    ModelWalk between; /* the layers: this rank's part of the tokens */
    const Names *names;
    uint64_t head_dim;
    uint64_t heads, ffn, vocab; /* this rank's */
    uint64_t inner;             /* of its heads together */
    ModelGelu gelu;
    bool in_memory, alibi;
} Gpt;

/* llm-foundry's alibi_bias_max. */
static const double ALIBI_MOST = 8;

typedef struct {
    uint32_t module, attn, mlp, act, attn_drop, mlp_drop;
    ModelLayer ln_1, qkv, proj, ln_2, up, down;
} Block;

static Block declare_block(const Gpt *gpt, uint32_t root, uint64_t index) {
    const ModelWalk *w = &gpt->walk;
    const Names *n = gpt->names;
    g_autofree char *name = g_strdup_printf("%s.%" G_GUINT64_FORMAT, n->blocks, index);
    Block block;
    block.module = plan_graph_module(w->graph, root, name, n->block, true);
    block.ln_1 = model_layernorm(w, block.module, n->ln_1);
    block.attn = plan_graph_module(w->graph, block.module, n->attn, n->attention, false);
    block.qkv = model_linear(w, block.attn, n->qkv, 3 * gpt->inner, w->width, true);
    block.proj = model_linear(w, block.attn, n->proj, w->width, gpt->inner, true);
    block.attn_drop = model_dropout(w, block.attn, "drop");
    block.ln_2 = model_layernorm(w, block.module, n->ln_2);
    block.mlp = plan_graph_module(w->graph, block.module, n->mlp, n->Mlp, false);
    block.up = model_linear(w, block.mlp, n->up, gpt->ffn, w->width, true);
    block.act = n->act ? plan_graph_module(w->graph, block.mlp, n->act, "GELU", false) : PLAN_NONE;
    block.down = model_linear(w, block.mlp, n->down, w->width, gpt->ffn, true);
    block.mlp_drop = model_dropout(w, block.mlp, "drop");
    model_split(w, &block.qkv, PLAN_SPLIT_THIRDS);
    model_split(w, &block.proj, PLAN_SPLIT_COLUMNS);
    model_split(w, &block.up, PLAN_SPLIT_ROWS);
    model_split(w, &block.down, PLAN_SPLIT_COLUMNS);
    return block;
}

static uint32_t run_attention(const Gpt *gpt, const Block *block, uint32_t x) {
    const ModelWalk *w = &gpt->walk;
    uint64_t inner = gpt->inner;
    ModelAttention attention = {.heads = gpt->heads,
                                .kv_heads = gpt->heads,
                                .head_dim = gpt->head_dim,
                                .q_stride = 3 * inner,
                                .k_stride = 3 * inner,
                                .v_stride = 3 * inner,
                                .scale = 1 / sqrt((double)gpt->head_dim),
                                .alibi = gpt->alibi ? ALIBI_MOST : 0,
                                .causal = true,
                                .in_memory = gpt->in_memory,
                                .k_inside = true,
                                .bias = PLAN_NONE,
                                .mask = PLAN_NONE};
    uint32_t views[3];
    plan_graph_enter(w->graph, block->attn, &x, 1);
    uint32_t read = model_read_by_columns(w, model_gather_tokens(w, x));
    uint32_t qkv = model_run_linear(w, &block->qkv, read, 3 * inner, w->width);
    plan_graph_split(w->graph, qkv, w->rows, (uint64_t[]){inner, inner, inner}, 3, views);
    for (unsigned i = 0; i < 3; i++) {
        plan_graph_hold(w->graph, views[i]);
    }
    for (unsigned i = 0; i < 3; i++) {
        views[i] = model_run_heads(w, &attention, views[i], "qkv"[i]);
        plan_graph_hold(w->graph, views[i]);
    }
    uint32_t o = model_run_attention(w, &attention, views[0], views[1], views[2]);
    uint32_t y = model_run_by_rows(w, &block->proj, o, inner);
    y = model_run_dropout(w, block->attn_drop, y, gpt->between.rows * w->width);
    plan_graph_leave(w->graph, &y, 1);
    return y;
}

static uint32_t run_gelu(const Gpt *gpt, const Block *block, uint32_t h) {
    const ModelWalk *w = &gpt->walk;
    uint64_t n = w->rows * gpt->ffn;
    if (block->act == PLAN_NONE) {
        return model_run_gelu(w, gpt->gelu, h, n);
    }
    plan_graph_enter(w->graph, block->act, &h, 1);
    uint32_t a = model_run_gelu(w, gpt->gelu, h, n);
    plan_graph_leave(w->graph, &a, 1);
    return a;
}

static uint32_t run_mlp(const Gpt *gpt, const Block *block, uint32_t x) {
    const ModelWalk *w = &gpt->walk;
    plan_graph_enter(w->graph, block->mlp, &x, 1);
    x = model_read_by_columns(w, model_gather_tokens(w, x));
    bool is_erf = gpt->gelu == MODEL_GELU_ERF;
    /* A compiler leaves products alone. */
    bool at_its_end = w->graph->now.fused && !plan_graph_is_compiled(w->graph);
    uint32_t a = at_its_end
                     ? model_run_linear_gelu(w, &block->up, x, gpt->ffn, w->width, is_erf)
                     : run_gelu(gpt, block, model_run_linear(w, &block->up, x, gpt->ffn, w->width));
    uint32_t y = model_run_by_rows(w, &block->down, a, gpt->ffn);
    y = model_run_dropout(w, block->mlp_drop, y, gpt->between.rows * w->width);
    plan_graph_leave(w->graph, &y, 1);
    return y;
}

static ModelStream run_block(const Gpt *gpt, const Block *block, ModelStream stream) {
    const ModelWalk *w = &gpt->between;
    uint32_t x;
    model_begin_block(w);
    model_enter_block(w, block->module, stream, NULL, 0);
    uint32_t normed = model_run_stream_norm(w, &block->ln_1, stream, 0, &x);
    uint32_t a = run_attention(gpt, block, normed);
    normed = model_run_add_norm(w, &block->ln_2, x, a, 0, &x);
    uint32_t m = run_mlp(gpt, block, normed);
    stream = model_leave_block(w, x, m);
    model_end_block(w);
    return stream;
}

static void emit(const ModelNetwork *network, const Names *names, bool tied, uint64_t batch,
                 uint64_t seq, PlanGraph *graph) {
    uint64_t parts = graph->shared.tensor, parts_of_ends = graph->shared.whole_ends ? 1 : parts;
    Gpt shape = {.names = names,
                 .walk = model_walk(network, batch, seq, graph),
                 .head_dim = network->width / network->heads,
                 .heads = network->heads / parts,
                 .inner = network->width / parts,
                 .ffn = (network->ffn ? network->ffn : 4 * network->width) / parts,
                 .vocab = graph->shared.whole_head ? network->vocab : network->vocab / parts,
                 .gelu = network->gelu,
                 .in_memory = network->scores_in_memory && !graph->now.fused,
                 .alibi = network->alibi};
    shape.between = model_walk_between(&shape.walk);
    const Gpt *gpt = &shape;
    const ModelWalk *w = &shape.walk;
    uint32_t root = plan_graph_module(graph, PLAN_NONE, "", names->root, false);
    uint64_t rows = network->vocab / parts_of_ends,
             positions_of_rank = network->seq / parts_of_ends;
    ModelLayer wte = model_embedding(w, root, "wte", rows, w->width);
    ModelLayer wpe = {0};
    if (!network->alibi) {
        wpe = model_embedding(w, root, "wpe", positions_of_rank, w->width);
        model_split_table(w, &wpe);
    }
    model_split_table(w, &wte);
    uint32_t drop = model_dropout(w, root, "drop");
    g_autofree Block *blocks = g_new(Block, network->layers);
    for (uint64_t i = 0; i < network->layers; i++) {
        blocks[i] = declare_block(gpt, root, i);
    }
    for (uint64_t i = 0; i < network->layers && network->mask_buffers; i++) {
        plan_graph_buffer(graph, PLAN_FP32, network->seq * network->seq);
    }
    ModelLayer ln_f = model_layernorm(w, root, names->ln_f);
    ModelLayer head = {.module = PLAN_NONE, .weight = wte.weight, .bias = PLAN_NONE};
    if (!names->head_is_function) {
        head = model_head(w, root, "head", gpt->vocab, false, tied ? &wte : NULL);
    }
    if (!tied && !graph->shared.whole_head) {
        model_split(w, &head, PLAN_SPLIT_ROWS);
    }
    uint32_t tokens = plan_graph_input(graph, PLAN_INT64, w->rows, network->vocab);
    uint32_t targets = plan_graph_input(graph, PLAN_INT64, w->rows, network->vocab);

    plan_graph_enter(graph, root, (uint32_t[]){tokens, targets}, 2);
    uint32_t positions = PLAN_NONE;
    const ModelEmbeddings tables = {&wte, &wpe, rows, positions_of_rank, names->tokens_first};
    uint32_t x = network->alibi ? model_run_table(w, &wte, tokens, batch, rows)
                                : model_run_embeddings(w, &tables, tokens, &positions);
    x = model_run_dropout(w, drop, x, gpt->between.rows * w->width);
    ModelStream stream = {x, PLAN_NONE};
    for (uint64_t i = 0; i < network->layers; i++) {
        stream = run_block(gpt, &blocks[i], stream);
    }
    uint32_t logits =
        model_run_shared_head(w, &(ModelHead){&ln_f, &head, 0, gpt->vocab}, stream, targets);
    logits = model_run_logits_behind(w, logits, stream);
    if (positions != PLAN_NONE) { /* a variable, which goes after those of what was called */
        plan_graph_let_go_after(graph, positions, names->tokens_first ? stream.a : logits);
    }
    model_end(w, root, logits, targets, graph->shared.whole_ends ? network->vocab : gpt->vocab);
}

static void emit_gpt(const ModelNetwork *network, uint64_t batch, uint64_t seq, PlanGraph *graph) {
    static const Names names = {.root = "Gpt",
                                .blocks = "layers",
                                .block = "GptBlock",
                                .ln_1 = "ln_1",
                                .attn = "attn",
                                .attention = "GptAttention",
                                .qkv = "qkv",
                                .proj = "proj",
                                .ln_2 = "ln_2",
                                .mlp = "mlp",
                                .Mlp = "GptMlp",
                                .up = "up",
                                .act = "act",
                                .down = "down",
                                .ln_f = "ln_f"};
    emit(network, &names, network->tied, batch, seq, graph);
}

/* MosaicML's MPT, as llm-foundry trains it: the same program under other names, the head tied, GELU
 * by erf. */
static void emit_mpt(const ModelNetwork *network, uint64_t batch, uint64_t seq, PlanGraph *graph) {
    static const Names names = {.root = "MPT",
                                .blocks = "blocks",
                                .block = "MPTBlock",
                                .ln_1 = "norm_1",
                                .attn = "attn",
                                .attention = "MultiheadAttention",
                                .qkv = "Wqkv",
                                .proj = "out_proj",
                                .ln_2 = "norm_2",
                                .mlp = "ffn",
                                .Mlp = "MPTMLP",
                                .up = "up_proj",
                                .down = "down_proj",
                                .ln_f = "norm_f",
                                .tokens_first = true,
                                .head_is_function = true};
    emit(network, &names, true, batch, seq, graph);
}

const ModelFamily model_gpt = {
    "gpt",
    "layers width heads vocab seq|ffn tied gelu attention dropout mask_buffers bias positions "
    "loss loss_at loss_in_place logits_shifted logits_held",
    emit_gpt};
const ModelFamily model_mpt = {"mpt",
                               "layers width heads vocab seq|ffn attention bias positions loss "
                               "loss_at loss_in_place logits_shifted logits_held",
                               emit_mpt};
