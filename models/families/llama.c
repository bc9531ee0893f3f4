/* models/families/llama.c - decoder-only transformer of the Llama shape: RMSNorm, rotary embedding,
 * SwiGLU, grouped heads of k and v, no biases (but Qwen 2's of q, k and v); the head tied or not.
 * Also Qwen 3, which normalizes q and k, and OLMo 2, which does too and has its norms behind
 * attention and its hidden layer instead of before; and those whose hidden layers are experts
 * (experts.h).
 *
 * Where ranks share the layers (plan->tensor; plan/autograd/shared/shared.h) a rank has its part of
 * heads, hidden layer and vocabulary, and between the layers its part of each sequence.
 */
#include <math.h>

#include "models/families/llama.h"
#include "models/stages.h"

static const ModelLlamaNames own_names = {.embed = "embed",
                                          .attn = "attn",
                                          .q = "q",
                                          .k = "k",
                                          .v = "v",
                                          .o = "o",
                                          .qkv = "qkv",
                                          .mlp = "mlp",
                                          .gate = "gate",
                                          .up = "up",
                                          .gate_up = "gate_up",
                                          .down = "down",
                                          .head = "head"};

static const ModelLlamaNames transformers_names = {.embed = "embed_tokens",
                                                   .attn = "self_attn",
                                                   .q = "q_proj",
                                                   .k = "k_proj",
                                                   .v = "v_proj",
                                                   .o = "o_proj",
                                                   .qkv = "qkv_proj",
                                                   .mlp = "mlp",
                                                   .gate = "gate_proj",
                                                   .up = "up_proj",
                                                   .gate_up = "gate_up_proj",
                                                   .down = "down_proj",
                                                   .head = "lm_head"};

static void declare_table(const ModelLlama *llama, const ModelNetwork *network,
                          uint64_t positions) {
    (llama->rotary.is_complex ? plan_graph_turns : plan_graph_rope)(
        llama->walk.graph, positions, llama->latent.kv_rank ? llama->latent.rope : llama->head_dim,
        network->rope_base);
}

/* Where ranks share sequences a table has the positions of the rank's tokens. */
static uint64_t positions_of(const ModelLlama *llama, const ModelNetwork *network) {
    return llama->walk.graph->shared.context > 1 ? llama->walk.seq : network->seq;
}

/* The blocks of a stage that is not the whole network, and what of the rest it has. */
static void walk_stage(ModelLlama *llama, const ModelNetwork *network) {
    const ModelWalk *w = &llama->walk;
    PlanGraph *graph = w->graph;
    bool is_first = plan_graph_is_first_stage(graph), is_last = plan_graph_is_last_stage(graph);
    ModelBlocks has = model_stage_blocks(network->layers, graph);
    uint32_t root = plan_graph_module(graph, PLAN_NONE, "", "Llama", false);
    ModelLayer embed = {0}, norm = {0}, head = {0};
    if (is_first) {
        embed = model_embedding(w, root, "embed", llama->vocab_of_table, w->width);
    }
    g_autofree ModelLlamaBlock *blocks =
        model_llama_declare_blocks(llama, network, root, has.first, has.n);
    if (is_last) {
        norm = model_rmsnorm(w, root, "norm");
        head = model_llama_declare_head(llama, network, root, &embed);
    }
    if (is_first) {
        model_split_table(&llama->walk, &embed);
    }
    declare_table(llama, network, positions_of(llama, network));
    ModelBatch batch;
    uint32_t x = model_enter_root(w, root, network->vocab, &batch);
    if (is_first) {
        x = model_run_table(w, &embed, x, w->batch, llama->vocab_of_table);
    }
    model_cast_tables(w, &llama->rotary, 0, x);
    ModelStream stream = {x, PLAN_NONE};
    for (uint64_t i = 0; i < has.n; i++) {
        stream = model_llama_run_block(llama, &blocks[i], false, stream);
    }
    if (!is_last) {
        model_leave_stage(w, stream);
        return;
    }
    uint32_t logits = model_run_shared_head(
        w, &(ModelHead){&norm, &head, llama->norm_eps, llama->vocab}, stream, batch.targets);
    model_end(w, root, logits, batch.targets,
              graph->shared.whole_ends ? network->vocab : llama->vocab);
}

static void let_go_of_tables_after(const ModelLlama *llama, uint32_t value) {
    plan_graph_let_go_after(llama->walk.graph, llama->rotary.sines, value);
    plan_graph_let_go_after(llama->walk.graph, llama->rotary.cosines, llama->rotary.sines);
}

/* Copies of the tables are held by a tuple, whose last goes first, until the loss is made, and the
 * last block's sum goes behind them: where autograd keeps none of them, for no head that they turn
 * has a gradient, or each block is given casts of them. */
static void let_go_of_tables(const ModelLlama *llama, uint32_t logits, uint32_t last) {
    PlanGraph *graph = llama->walk.graph;
    if (llama->rotary.cosines != graph->ropes[0].cosines) {
        let_go_of_tables_after(llama, logits);
        plan_graph_let_go_after(graph, last, llama->rotary.cosines);
    }
}

static void walk_own(ModelLlama *llama, const ModelNetwork *network) {
    const ModelWalk *w = &llama->walk;
    PlanGraph *graph = w->graph;
    uint32_t root = plan_graph_module(graph, PLAN_NONE, "", "Llama", false);
    ModelLayer embed = model_embedding(w, root, "embed", llama->vocab_of_table, w->width);
    g_autofree ModelLlamaBlock *blocks =
        model_llama_declare_blocks(llama, network, root, 0, network->layers);
    ModelLayer norm = model_rmsnorm(w, root, "norm");
    ModelLayer head = model_llama_declare_head(llama, network, root, &embed);
    model_split_table(&llama->walk, &embed);
    declare_table(llama, network, positions_of(llama, network));
    if (llama->has_local_rotary) {
        plan_graph_rope(graph, network->seq, llama->head_dim, network->local_rope_base);
    }
    ModelBatch batch;
    uint32_t tokens = model_enter_root(w, root, network->vocab, &batch);
    uint32_t x = model_llama_scale_embeddings(
        llama,
        model_run_table(&llama->walk, &embed, tokens, llama->walk.batch, llama->vocab_of_table));
    model_llama_make_mask(llama);
    model_cast_tables(w, &llama->rotary, 0, x);
    if (llama->has_local_rotary) {
        model_cast_tables(w, &llama->local_rotary, 1, x);
    }
    ModelStream stream = {x, PLAN_NONE};
    for (uint64_t i = 0; i < network->layers; i++) {
        stream = model_llama_run_block(llama, &blocks[i], i == 0, stream);
    }
    uint32_t logits = model_llama_scale_logits(
        llama, model_run_shared_head(&llama->walk,
                                     &(ModelHead){&norm, &head, llama->norm_eps, llama->vocab},
                                     stream, batch.targets));
    logits = model_run_logits_behind(w, logits, stream);
    if (llama->is_masked) {
        plan_graph_let_go_after(graph, llama->mask, logits);
    }
    if (!llama->has_local_rotary) {
        let_go_of_tables(llama, logits, stream.a);
    } else if (llama->local_rotary.cosines != graph->ropes[1].cosines) {
        /* a list, which goes from its end */
        plan_graph_let_go_after(graph, llama->local_rotary.cosines, llama->local_rotary.sines);
    }
    model_end(w, root, logits, batch.targets,
              graph->shared.whole_ends ? network->vocab : llama->vocab);
}

/* As transformers has it, a sequence as long as the window has a mask already. */
static uint64_t window_of(const ModelNetwork *network, uint64_t seq, bool is_masked) {
    return seq > network->window || (is_masked && seq == network->window) ? network->window : 0;
}

static void emit(const ModelNetwork *network, uint64_t batch, uint64_t seq, PlanGraph *graph) {
    uint64_t parts = graph->shared.tensor;
    uint32_t weights = PLAN_NONE;
    bool is_masked = network->window_by == MODEL_WINDOW_BY_MASK && !graph->now.fused;
    bool in_pieces =
        graph->kernels.style != PLAN_KERNELS_FUSED; /* a tuned rotation is one kernel */
    ModelLlama shape = {
        .walk = model_walk(network, batch, seq, graph),
        .heads = network->heads / parts,
        .kv_heads = model_network_kv_heads(network) / parts,
        .head_dim = network->head_dim ? network->head_dim : network->width / network->heads,
        .ffn = network->ffn / parts,
        .latent = {network->q_lora_rank, network->kv_lora_rank, network->qk_nope_head_dim,
                   network->qk_rope_head_dim, network->v_head_dim},
        .experts = model_experts_of(network),
        .dense_layers = network->dense_layers,
        .vocab = graph->shared.whole_head ? network->vocab : network->vocab / parts,
        .vocab_of_table = graph->shared.whole_ends ? network->vocab : network->vocab / parts,
        .in_memory = network->scores_in_memory && !graph->now.fused,
        .wide_softmax = network->wide_softmax,
        .qkv_bias = network->qkv_bias,
        .qk_norm = network->qk_norm,
        .cache = network->cache,
        .kv_repeated = network->kv_repeated && network->kv_heads &&
                       network->kv_heads < network->heads &&
                       (!graph->now.fused || graph->shared.context > 1),
        .norm_at = network->norm_at,
        .norm_eps = network->norm_eps,
        .gate = network->gate,
        .gate_up_joined = network->gate_up_joined,
        .embed_scale = network->embed_scale,
        .attention_scale = network->attention_scale,
        .residual_scale = network->residual_scale,
        .logits_scale = network->logits_scale,
        .attention_cap = network->attention_cap,
        .logits_cap = network->logits_cap,
        .has_sinks = network->sinks && !graph->now.fused, /* which are scores; fused is refused */
        .weights = &weights,
        .positions = PLAN_NONE,
        .positions_first = model_llama_names_positions_first(network),
        .has_local_rotary = network->local_rope_base > 0,
        .window = window_of(network, seq, is_masked),
        .mask = PLAN_NONE,
        .causal = PLAN_NONE,
        .qkv = network->qkv,
        .rotary.is_complex = network->rope == MODEL_ROPE_COMPLEX && in_pieces,
        .rotary.is_paired = network->rope == MODEL_ROPE_PAIRS,
        .rotary.ends_joined = network->rope == MODEL_ROPE_PARTIAL && in_pieces};
    shape.transformers = parts == 1 ? model_llama_prefix(network) : NULL;
    shape.experts.transformers = shape.transformers;
    /* Gemma 3's and EXAONE 4's; Qwen 3 norms q before it has k. */
    shape.qk_norms_last = shape.transformers && network->qk_norm == MODEL_QK_NORM_HEAD &&
                          network->norm_at != MODEL_NORM_BEFORE;
    bool in_ops = graph->kernels.style == PLAN_KERNELS_EAGER && graph->pipeline.n_stages == 1;
    shape.rotary.is_halved = network->sinks;
    uint64_t turned = model_rotary_part(network, shape.head_dim);
    shape.rotary.part = turned < shape.head_dim ? turned : 0;
    shape.rotary.tables_paired = shape.rotary.is_widened = network->norm_at == MODEL_NORM_ONCE;
    shape.rotary.factors_widened = model_llama_is_ernie(network);
    shape.walk.norms_wide = shape.rotary.is_wide = shape.local_rotary.is_wide =
        shape.transformers && (model_llama_is_olmo(network) || network->norms_bare) && in_ops;
    shape.rotary.is_wide |= shape.rotary.factors_widened;
    graph->has_wide_inputs = shape.rotary.is_wide;
    shape.walk.norms_wide |= (network->sinks || network->norms_widened) && in_ops;
    shape.names = shape.transformers ? &transformers_names : &own_names;
    ModelLlama *llama = &shape;
    shape.is_masked = shape.window && is_masked;
    if (!shape.attention_scale) {
        uint64_t of_latent = shape.latent.nope + shape.latent.rope;
        shape.attention_scale = 1 / sqrt((double)(of_latent ? of_latent : shape.head_dim));
    }
    shape.between = model_walk_between(&shape.walk);
    llama->rotary.row = llama->qkv == MODEL_QKV_APART ? 0 : model_llama_joined_width(llama);
    graph->kernels.blocks_apart |= network->norm_at != MODEL_NORM_BEFORE;
    if (graph->pipeline.n_stages > 1) {
        walk_stage(llama, network);
    } else if (shape.transformers) {
        model_llama_walk_transformers(llama, network);
    } else {
        walk_own(llama, network);
    }
}

const ModelFamily model_llama = {
    "llama",
    "layers width heads vocab seq|ffn experts experts_per_token expert_ffn "
    "shared_ffn dense_layers score expert_groups groups_per_token route_scale route_bias "
    "route_norm routing kv_heads head_dim q_lora_rank kv_lora_rank qk_nope_head_dim "
    "qk_rope_head_dim v_head_dim tied "
    "code norm_eps rope_base rope_scaling rotary_share attention qkv qkv_bias kv qk_norm norm_at "
    "norm_weight "
    "gate_up gate embed_scale attention_scale residual_scale logits_scale attention_cap "
    "logits_cap sinks no_rope_every "
    "global_every global_at local_rope_base window window_by loss loss_at loss_in_place "
    "logits_shifted "
    "logits_held use_cache rope",
    emit};
