/* models/families/decoder.c - decoder-only transformers with LayerNorm and a hidden layer without a
 * gate, as transformers has them. A family is a row of names and of what it does in its own way:
 * what follows what, where positions come from, which layer has a bias.
 *
 * Members of a block, in `order`: 1 and 2 its norms, a attention, m the hidden layer; or u and d,
 * the hidden layer's two layers in the block itself.
 */
#include <math.h>
#include <string.h>

#include "models/layers/rotary.h"

typedef struct {
    const char *root, *embed, *positions /* NULL: rotary embedding */, *block, *order;
    const char *norm_1, *norm_2 /* NULL: attention's is the hidden layer's too */;
    const char *attn, *attention, *qkv /* one layer for three */, *q, *k, *v, *o;
    const char *mlp /* NULL: the block itself */, *Mlp, *up, *down, *norm, *head;
    bool relu;
    bool parallel;            /* the hidden layer stands beside attention, not behind it */
    bool kvq;                 /* q's layer is registered behind k's and v's */
    bool norm_first;          /* the last norm is registered before the blocks */
    bool scales_q;            /* before attention, which does not */
    bool head_bias;           /* whatever the others have */
    uint64_t spare_positions; /* rows of their table that no token looks up */
} Names;

typedef struct {
    ModelWalk walk;
    const Names *names;
    uint64_t heads, kv_heads, head_dim, ffn, vocab;
    ModelGelu gelu;
    bool in_memory, parallel;
    ModelRotary rotary;
} Decoder;

typedef struct {
    uint32_t module, attn, mlp, act;
    ModelLayer norm_1, norm_2, qkv, q, k, v, o, up, down;
} Block;

/* ---- declaring ------------------------------------------------------------------------------ */

static void declare_attention(const Decoder *d, Block *block) {
    const ModelWalk *w = &d->walk;
    const Names *n = d->names;
    uint64_t inner = d->heads * d->head_dim, kv = d->kv_heads * d->head_dim;
    block->attn = plan_graph_module(w->graph, block->module, n->attn, n->attention, false);
    if (n->qkv) {
        block->qkv = model_linear(w, block->attn, n->qkv, inner + 2 * kv, w->width, true);
    }
    for (unsigned i = 0; i < 3 && !n->qkv; i++) {
        char which = (n->kvq ? "kvq" : "qkv")[i];
        ModelLayer *layer = which == 'q' ? &block->q : which == 'k' ? &block->k : &block->v;
        const char *name = which == 'q' ? n->q : which == 'k' ? n->k : n->v;
        *layer = model_linear(w, block->attn, name, which == 'q' ? inner : kv, w->width, true);
    }
    block->o = model_linear(w, block->attn, n->o, w->width, inner, true);
}

static void declare_mlp(const Decoder *d, Block *block, bool is_module) {
    const ModelWalk *w = &d->walk;
    const Names *n = d->names;
    block->mlp = is_module ? plan_graph_module(w->graph, block->module, n->mlp, n->Mlp, false)
                           : block->module;
    block->up = model_linear(w, block->mlp, n->up, d->ffn, w->width, true);
    block->down = model_linear(w, block->mlp, n->down, w->width, d->ffn, true);
}

static Block declare_block(const Decoder *d, uint32_t root, uint64_t index) {
    const ModelWalk *w = &d->walk;
    const Names *n = d->names;
    g_autofree char *name = g_strdup_printf("layers.%" G_GUINT64_FORMAT, index);
    Block block = {.module = plan_graph_module(w->graph, root, name, n->block, true)};
    for (const char *member = n->order; *member; member++) {
        switch (*member) {
        case '1':
            block.norm_1 = model_layernorm(w, block.module, n->norm_1);
            break;
        case '2':
            block.norm_2 = model_layernorm(w, block.module, n->norm_2);
            break;
        case 'a':
            declare_attention(d, &block);
            break;
        default:
            declare_mlp(d, &block, *member == 'm');
        }
    }
    return block;
}

/* ---- walking -------------------------------------------------------------------------------- */

/* The layer's rows, seen head by head. */
static uint32_t run_heads_of(const Decoder *d, const ModelAttention *attention,
                             const ModelLayer *layer, uint32_t x, char which) {
    const ModelWalk *w = &d->walk;
    uint64_t out = (which == 'q' ? d->heads : d->kv_heads) * d->head_dim;
    if (which != 'q' || !d->names->scales_q) {
        return model_run_heads_of(w, attention, layer, x, out, which);
    }
    double scale = 1 / sqrt((double)d->head_dim);
    uint32_t y = model_run_linear(w, layer, x, out, w->width);
    y = model_run_number(w, PLAN_OP_TIMES_NUMBER, y, w->rows * out, scale);
    return model_run_heads(w, attention, y, which);
}

/* One layer for all three. transformers has each head's q, k and v side by side in its rows; here q
 * of all heads comes first, then k, then v, each as if a layer of its own had made it: other rows
 * of the same weight, and the same bytes. */
static void run_qkv(const Decoder *d, const Block *block, uint32_t x, uint32_t *ret_views) {
    const ModelWalk *w = &d->walk;
    uint64_t inner = d->heads * d->head_dim;
    uint32_t qkv = model_run_linear_parts(w, &block->qkv, x, 3 * inner, w->width, 3);
    bool apart = d->heads > 1 && w->seq > 1; /* the gradient of its chunks */
    qkv = plan_graph_heads(w->graph, qkv, w->batch, w->seq, d->heads, 3 * d->head_dim,
                           apart ? PLAN_HEADS_COPIED : PLAN_HEADS_AS_THEY_ARE);
    plan_graph_hold(w->graph, qkv);
    plan_graph_parts(w->graph, qkv, w->rows, (uint64_t[]){inner, inner, inner}, 3, ret_views);
}

static void run_q_k_v(const Decoder *d, const Block *block, const ModelAttention *attention,
                      uint32_t x, uint32_t *ret_views) {
    const ModelLayer *layers[] = {&block->q, &block->k, &block->v};
    for (unsigned i = 0; i < 3; i++) {
        ret_views[i] = run_heads_of(d, attention, layers[i], x, "qkv"[i]);
    }
}

static uint32_t run_attention(const Decoder *d, const Block *block, uint32_t x) {
    const ModelWalk *w = &d->walk;
    bool turns = !d->names->positions;
    uint64_t inner = d->heads * d->head_dim;
    ModelAttention attention = {.heads = d->heads,
                                .kv_heads = d->kv_heads,
                                .head_dim = d->head_dim,
                                .q_stride = inner,
                                .k_stride = d->kv_heads * d->head_dim,
                                .v_stride = d->kv_heads * d->head_dim,
                                .scale = d->names->scales_q ? 1 : 1 / sqrt((double)d->head_dim),
                                .causal = true,
                                .in_memory = d->in_memory,
                                .joined_apart = d->rotary.part > 0,
                                .turned_together = turns && !w->graph->now.fused,
                                .bias = PLAN_NONE,
                                .mask = PLAN_NONE};
    plan_graph_enter(w->graph, block->attn, (uint32_t[]){x, d->rotary.cosines, d->rotary.sines},
                     turns ? 3 : 1);
    uint32_t qkv[3];
    if (d->names->qkv) {
        run_qkv(d, block, x, qkv);
    } else {
        run_q_k_v(d, block, &attention, x, qkv);
    }
    if (turns) {
        model_rotate(w, &d->rotary, &attention, &qkv[0], &qkv[1], qkv[2]);
    }
    for (unsigned i = 0; i < 3 && !w->graph->now.fused; i++) {
        plan_graph_hold(w->graph, qkv[i]);
    }
    uint32_t o = model_run_attention(w, &attention, qkv[0], qkv[1], qkv[2]);
    uint32_t y = model_run_linear(w, &block->o, o, w->width, inner);
    plan_graph_leave(w->graph, &y, 1);
    return y;
}

static uint32_t run_hidden(const Decoder *d, const Block *block, uint32_t x) {
    const ModelWalk *w = &d->walk;
    bool at_its_end = w->graph->now.fused && !plan_graph_is_compiled(w->graph) && !d->names->relu;
    if (at_its_end) {
        return model_run_linear_gelu(w, &block->up, x, d->ffn, w->width, d->gelu == MODEL_GELU_ERF);
    }
    uint64_t n = w->rows * d->ffn;
    uint32_t h = model_run_linear(w, &block->up, x, d->ffn, w->width);
    return d->names->relu ? model_run_elementwise(w, PLAN_OP_RELU, h, PLAN_NONE, n)
                          : model_run_gelu(w, d->gelu, h, n);
}

static uint32_t run_mlp(const Decoder *d, const Block *block, uint32_t x) {
    const ModelWalk *w = &d->walk;
    bool is_module = block->mlp != block->module;
    if (is_module) {
        plan_graph_enter(w->graph, block->mlp, &x, 1);
    }
    uint32_t h = run_hidden(d, block, x);
    uint32_t y = model_run_linear(w, &block->down, h, w->width, d->ffn);
    if (is_module) {
        plan_graph_leave(w->graph, &y, 1);
    }
    return y;
}

static uint32_t add_all(const ModelWalk *w, uint32_t a, uint32_t b) {
    return model_run_add(w, a, b, w->rows * w->width);
}

/* Attention and the hidden layer both read what the block was given; their sum is added to it. */
static ModelStream run_side_by_side(const Decoder *d, const Block *block, ModelStream stream) {
    const ModelWalk *w = &d->walk;
    uint32_t x, normed = model_run_stream_norm(w, &block->norm_1, stream, 0, &x);
    uint32_t a = run_attention(d, block, normed);
    plan_graph_hold(w->graph, a);
    bool has_own_norm = d->names->norm_2;
    if (has_own_norm) {
        normed = model_run_layernorm(w, &block->norm_2, x);
    } else {
        plan_graph_hold(w->graph, normed);
    }
    uint32_t m = run_mlp(d, block, normed);
    plan_graph_hold(w->graph, m);
    return model_leave_block(w, x, has_own_norm ? add_all(w, m, a) : add_all(w, a, m));
}

static ModelStream run_one_behind_the_other(const Decoder *d, const Block *block,
                                            ModelStream stream) {
    const ModelWalk *w = &d->walk;
    uint32_t x, normed = model_run_stream_norm(w, &block->norm_1, stream, 0, &x);
    uint32_t a = run_attention(d, block, normed);
    normed = model_run_add_norm(w, &block->norm_2, x, a, 0, &x);
    uint32_t m = run_mlp(d, block, normed);
    return model_leave_block(w, x, m);
}

static ModelStream run_block(const Decoder *d, const Block *block, ModelStream stream) {
    const ModelWalk *w = &d->walk;
    model_begin_block(w);
    model_enter_block(w, block->module, stream, (uint32_t[]){d->rotary.cosines, d->rotary.sines},
                      d->names->positions ? 0 : 2);
    stream = (d->parallel ? run_side_by_side : run_one_behind_the_other)(d, block, stream);
    model_end_block(w);
    return stream;
}

/* ---- the network ---------------------------------------------------------------------------- */

/* What is declared beside the blocks. */
typedef struct {
    uint32_t root;
    ModelLayer embed, positions, norm, head;
    Block *blocks;
} Network;

static uint64_t rows_of_positions(const ModelNetwork *network, const Names *names) {
    return network->seq + names->spare_positions;
}

static void declare(const Decoder *d, const ModelNetwork *network, Network *n) {
    const ModelWalk *w = &d->walk;
    const Names *names = d->names;
    n->root = plan_graph_module(w->graph, PLAN_NONE, "", names->root, false);
    n->embed = model_embedding(w, n->root, names->embed, d->vocab, w->width);
    if (names->positions) {
        n->positions = model_embedding(w, n->root, names->positions,
                                       rows_of_positions(network, names), w->width);
    }
    if (names->norm_first) {
        n->norm = model_layernorm(w, n->root, names->norm);
    }
    for (uint64_t i = 0; i < network->layers; i++) {
        n->blocks[i] = declare_block(d, n->root, i);
    }
    if (!names->norm_first) {
        n->norm = model_layernorm(w, n->root, names->norm);
    }
    n->head = model_head(w, n->root, names->head, d->vocab, names->head_bias,
                         network->tied ? &n->embed : NULL);
}

static void walk(Decoder *d, const ModelNetwork *network, const Network *n) {
    const ModelWalk *w = &d->walk;
    ModelBatch batch;
    uint32_t tokens = model_enter_root(w, n->root, d->vocab, &batch);
    uint32_t x, looked_up = PLAN_NONE;
    if (d->names->positions) {
        const ModelEmbeddings tables = {&n->embed, &n->positions, d->vocab,
                                        rows_of_positions(network, d->names), true};
        x = model_run_embeddings(w, &tables, tokens, &looked_up);
    } else {
        x = model_run_embedding(w, &n->embed, tokens, w->rows, d->vocab);
        model_cast_tables(w, &d->rotary, 0, x);
    }
    ModelStream stream = {x, PLAN_NONE};
    for (uint64_t i = 0; i < network->layers; i++) {
        stream = run_block(d, &n->blocks[i], stream);
    }
    uint32_t logits =
        model_run_head(w, &(ModelHead){&n->norm, &n->head, 0, d->vocab}, stream, batch.targets);
    logits = model_run_logits_behind(w, logits, stream);
    /* Variables, which go after those of what was called. */
    if (looked_up != PLAN_NONE) {
        plan_graph_let_go_after(w->graph, looked_up, stream.a);
    } else {
        plan_graph_let_go_after(w->graph, d->rotary.cosines, stream.a);
        plan_graph_let_go_after(w->graph, d->rotary.sines, d->rotary.cosines);
    }
    model_end(w, n->root, logits, batch.targets, d->vocab);
}

static void emit(const ModelNetwork *network, const Names *names, uint64_t batch, uint64_t seq,
                 PlanGraph *graph) {
    Decoder d = {.walk = model_walk(network, batch, seq, graph),
                 .names = names,
                 .heads = network->heads,
                 .kv_heads = model_network_kv_heads(network),
                 .head_dim =
                     network->head_dim ? network->head_dim : network->width / network->heads,
                 .ffn = network->ffn ? network->ffn : 4 * network->width,
                 .vocab = network->vocab,
                 .gelu = network->gelu,
                 .in_memory = network->scores_in_memory && !graph->now.fused,
                 .parallel = names->parallel && !network->sequential,
                 .rotary.is_together = true};
    uint64_t turned = model_rotary_part(network, d.head_dim);
    g_autofree Block *blocks = g_new(Block, network->layers);
    Network n = {.blocks = blocks};
    d.rotary.part = turned < d.head_dim ? turned : 0;
    declare(&d, network, &n);
    if (!names->positions) {
        plan_graph_rope(graph, network->seq, turned, network->rope_base);
    }
    walk(&d, network, &n);
}

/* ---- families ------------------------------------------------------------------------------- */

static void emit_starcoder2(const ModelNetwork *network, uint64_t batch, uint64_t seq,
                            PlanGraph *graph) {
    static const Names names = {.root = "Starcoder2",
                                .embed = "embed_tokens",
                                .block = "Starcoder2DecoderLayer",
                                .order = "am12",
                                .norm_1 = "input_layernorm",
                                .norm_2 = "post_attention_layernorm",
                                .attn = "self_attn",
                                .attention = "Starcoder2Attention",
                                .q = "q_proj",
                                .k = "k_proj",
                                .v = "v_proj",
                                .o = "o_proj",
                                .mlp = "mlp",
                                .Mlp = "Starcoder2MLP",
                                .up = "c_fc",
                                .down = "c_proj",
                                .norm = "norm",
                                .head = "lm_head"};
    emit(network, &names, batch, seq, graph);
}

/* transformers makes a row of positions for each sequence; here one is shared, as in GPT. */
static void emit_opt(const ModelNetwork *network, uint64_t batch, uint64_t seq, PlanGraph *graph) {
    static const Names names = {.root = "OPT",
                                .embed = "embed_tokens",
                                .positions = "embed_positions",
                                .block = "OPTDecoderLayer",
                                .order = "a1u2",
                                .norm_1 = "self_attn_layer_norm",
                                .norm_2 = "final_layer_norm",
                                .attn = "self_attn",
                                .attention = "OPTAttention",
                                .q = "q_proj",
                                .k = "k_proj",
                                .v = "v_proj",
                                .o = "out_proj",
                                .up = "fc1",
                                .down = "fc2",
                                .norm = "final_layer_norm",
                                .head = "lm_head",
                                .relu = true,
                                .kvq = true,
                                .norm_first = true,
                                .scales_q = true,
                                .spare_positions = 2};
    emit(network, &names, batch, seq, graph);
}

static void emit_neox(const ModelNetwork *network, uint64_t batch, uint64_t seq, PlanGraph *graph) {
    static const Names names = {.root = "GPTNeoX",
                                .embed = "embed_in",
                                .block = "GPTNeoXLayer",
                                .order = "12am",
                                .norm_1 = "input_layernorm",
                                .norm_2 = "post_attention_layernorm",
                                .attn = "attention",
                                .attention = "GPTNeoXAttention",
                                .qkv = "query_key_value",
                                .o = "dense",
                                .mlp = "mlp",
                                .Mlp = "GPTNeoXMLP",
                                .up = "dense_h_to_4h",
                                .down = "dense_4h_to_h",
                                .norm = "final_layer_norm",
                                .head = "embed_out",
                                .parallel = true};
    emit(network, &names, batch, seq, graph);
}

static void emit_phi(const ModelNetwork *network, uint64_t batch, uint64_t seq, PlanGraph *graph) {
    static const Names names = {.root = "Phi",
                                .embed = "embed_tokens",
                                .block = "PhiDecoderLayer",
                                .order = "am1",
                                .norm_1 = "input_layernorm",
                                .attn = "self_attn",
                                .attention = "PhiAttention",
                                .q = "q_proj",
                                .k = "k_proj",
                                .v = "v_proj",
                                .o = "dense",
                                .mlp = "mlp",
                                .Mlp = "PhiMLP",
                                .up = "fc1",
                                .down = "fc2",
                                .norm = "final_layernorm",
                                .head = "lm_head",
                                .parallel = true,
                                .head_bias = true};
    emit(network, &names, batch, seq, graph);
}

const ModelFamily model_starcoder2 = {"starcoder2",
                                      "layers width heads vocab seq ffn|kv_heads head_dim tied "
                                      "gelu bias rope_base rope_scaling attention loss loss_at "
                                      "loss_in_place logits_shifted logits_held",
                                      emit_starcoder2};
const ModelFamily model_opt = {"opt",
                               "layers width heads vocab seq|ffn tied bias attention loss loss_at "
                               "loss_in_place logits_shifted logits_held",
                               emit_opt};
const ModelFamily model_phi = {
    "phi",
    "layers width heads vocab seq rotary_share|kv_heads ffn gelu "
    "rope_base rope_scaling attention loss loss_at loss_in_place logits_shifted logits_held",
    emit_phi};
const ModelFamily model_neox = {
    "neox",
    "layers width heads vocab seq rotary_share|ffn tied gelu bias block "
    "rope_base rope_scaling attention loss loss_at loss_in_place logits_shifted logits_held",
    emit_neox};
