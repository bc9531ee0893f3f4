/* models/families/gpt.c - decoder-only transformer of the GPT-2 shape: learned positions, LayerNorm
 * before each half of a block, biases, GELU; the head tied or not.
 *
 * Where ranks share the layers (plan->tensor; layers/shared.h) a rank has its part of heads, hidden
 * layer, vocabulary and positions, and between the layers its part of each sequence. The rows of
 * its layer for q, k and v are those of its heads' q, then of their k, then of their v.
 *
 * A stage of a pipeline has a run of the blocks; the first one the tables, the last one what is
 * behind the blocks.
 */
#include <math.h>

#include "models/layers/attention.h"
#include "models/layers/shared.h"
#include "models/stages.h"

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

/* A stage's blocks, and what is beside them; the first stage has what comes before, the last one
 * what comes behind. One stage is all of it. */
typedef struct {
    uint32_t root, drop;
    ModelLayer wte, wpe, ln_f, head;
    uint64_t rows, positions; /* of a rank's tables */
    ModelBlocks has;
    Block *blocks;
} Stage;

static void declare_tables(const Gpt *gpt, const ModelNetwork *network, Stage *stage) {
    const ModelWalk *w = &gpt->walk;
    uint64_t parts = w->graph->shared.whole_ends ? 1 : w->graph->shared.tensor;
    stage->rows = network->vocab / parts;
    stage->positions = network->seq / parts;
    stage->wte = model_embedding(w, stage->root, "wte", stage->rows, w->width);
    if (!gpt->alibi) {
        stage->wpe = model_embedding(w, stage->root, "wpe", stage->positions, w->width);
        model_split_table(w, &stage->wpe);
    }
    model_split_table(w, &stage->wte);
    stage->drop = model_dropout(w, stage->root, "drop");
}

static void declare_head(const Gpt *gpt, bool tied, Stage *stage) {
    const ModelWalk *w = &gpt->walk;
    stage->ln_f = model_layernorm(w, stage->root, gpt->names->ln_f);
    stage->head = (ModelLayer){.module = PLAN_NONE, .weight = stage->wte.weight, .bias = PLAN_NONE};
    if (!gpt->names->head_is_function) {
        stage->head =
            model_head(w, stage->root, "head", gpt->vocab, false, tied ? &stage->wte : NULL);
    }
    if (!tied && !w->graph->shared.whole_head) {
        model_split(w, &stage->head, PLAN_SPLIT_ROWS);
    }
}

static void declare(const Gpt *gpt, const ModelNetwork *network, bool tied, Stage *stage) {
    PlanGraph *graph = gpt->walk.graph;
    stage->root = plan_graph_module(graph, PLAN_NONE, "", gpt->names->root, false);
    if (plan_graph_is_first_stage(graph)) {
        declare_tables(gpt, network, stage);
    }
    for (uint64_t i = 0; i < stage->has.n; i++) {
        stage->blocks[i] = declare_block(gpt, stage->root, stage->has.first + i);
    }
    for (uint64_t i = 0; i < stage->has.n && network->mask_buffers; i++) {
        plan_graph_buffer(graph, PLAN_FP32, network->seq * network->seq);
    }
    if (plan_graph_is_last_stage(graph)) {
        declare_head(gpt, tied, stage);
    }
}

/* *ret_positions: their indices, a variable of the root's; PLAN_NONE: there are none. */
static uint32_t run_tables(const Gpt *gpt, const Stage *stage, uint32_t tokens,
                           uint32_t *ret_positions) {
    const ModelWalk *w = &gpt->walk;
    const ModelEmbeddings tables = {&stage->wte, &stage->wpe, stage->rows, stage->positions,
                                    gpt->names->tokens_first};
    uint32_t x = gpt->alibi ? model_run_table(w, &stage->wte, tokens, w->batch, stage->rows)
                            : model_run_embeddings(w, &tables, tokens, ret_positions);
    return model_run_dropout(w, stage->drop, x, gpt->between.rows * w->width);
}

static void walk(const Gpt *gpt, const ModelNetwork *network, const Stage *stage) {
    const ModelWalk *w = &gpt->walk;
    PlanGraph *graph = w->graph;
    ModelBatch batch;
    uint32_t x = model_enter_root(w, stage->root, network->vocab, &batch);
    uint32_t positions = PLAN_NONE;
    if (plan_graph_is_first_stage(graph)) {
        x = run_tables(gpt, stage, x, &positions);
    }
    ModelStream stream = {x, PLAN_NONE};
    for (uint64_t i = 0; i < stage->has.n; i++) {
        stream = run_block(gpt, &stage->blocks[i], stream);
    }
    if (!plan_graph_is_last_stage(graph)) {
        model_leave_stage(w, stream);
        return;
    }
    uint32_t logits = model_run_shared_head(
        w, &(ModelHead){&stage->ln_f, &stage->head, 0, gpt->vocab}, stream, batch.targets);
    logits = model_run_logits_behind(w, logits, stream);
    if (positions != PLAN_NONE) { /* a variable, which goes after those of what was called */
        plan_graph_let_go_after(graph, positions, gpt->names->tokens_first ? stream.a : logits);
    }
    model_end(w, stage->root, logits, batch.targets,
              graph->shared.whole_ends ? network->vocab : gpt->vocab);
}

static void emit(const ModelNetwork *network, const Names *names, bool tied, uint64_t batch,
                 uint64_t seq, PlanGraph *graph) {
    uint64_t parts = graph->shared.tensor;
    Gpt gpt = {.names = names,
               .walk = model_walk(network, batch, seq, graph),
               .head_dim = network->width / network->heads,
               .heads = network->heads / parts,
               .inner = network->width / parts,
               .ffn = (network->ffn ? network->ffn : 4 * network->width) / parts,
               .vocab = graph->shared.whole_head ? network->vocab : network->vocab / parts,
               .gelu = network->gelu,
               .in_memory = network->scores_in_memory && !graph->now.fused,
               .alibi = network->alibi};
    gpt.between = model_walk_between(&gpt.walk);
    Stage stage = {.has = model_stage_blocks(network->layers, graph)};
    g_autofree Block *blocks = stage.blocks = g_new(Block, stage.has.n);
    declare(&gpt, network, tied, &stage);
    walk(&gpt, network, &stage);
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
