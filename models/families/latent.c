/* models/families/latent.c - latent attention, op by op as torchtitan's DeepSeek-V3 calls PyTorch.
 *
 * torchtitan/models/deepseek_v3/model.py (0014ac2c) and models/common/rope.py, 2026: q straight, or
 * through a short row that is normed; of each of its heads the last numbers turned. One row a token
 * for k and v: the first numbers are normed and make each head's key and value, those behind them
 * are turned, and end every head's key. Heads of q and k are as long as each other, those of v
 * otherwise, for which PyTorch has no flash kernel: the memory-efficient one takes them (as on the
 * A100 of the recordings). With cuDNN 9.15.1 and later cuDNN's comes first on GPUs of compute
 * capability 9.0 and, of DeepSeek's own 192 and 128, of 10 (ATen/native/transformers/cuda/
 * sdp_utils.cpp, 2026: check_head_dim_size_flash, check_prefer_cudnn_attention,
 * check_cudnn_tensor_shapes): read, not recorded; its tensors are as large, but that rows of
 * statistics are not padded.
 *
 * The norm of the short row reads it where it lies, in longer rows; PyTorch's kernel makes a copy
 * of it inside, for as long as it runs, which is left out.
 */
#include "models/families/latent.h"

static uint64_t q_dim(const ModelLatent *latent) {
    return latent->nope + latent->rope;
}

/* What of a head lies in the rows that keys and values come of. */
static uint64_t kv_dim(const ModelLatent *latent) {
    return latent->nope + latent->v;
}

void model_latent_declare(const ModelLlama *llama, ModelLlamaBlock *block) {
    const ModelWalk *w = &llama->walk;
    const ModelLatent *l = &llama->latent;
    uint64_t heads = llama->heads, of_q = heads * q_dim(l), rank = l->q_rank;
    block->attn = plan_graph_module(w->graph, block->module, "attn", "LatentAttention", false);
    if (rank) {
        block->q_a = model_linear(w, block->attn, "q_a", rank, w->width, false);
        block->q_norm = model_rmsnorm_of(w, block->attn, "q_norm", rank);
        block->q = model_linear(w, block->attn, "q_b", of_q, rank, false);
    } else {
        block->q = model_linear(w, block->attn, "q", of_q, w->width, false);
    }
    block->kv_a = model_linear(w, block->attn, "kv_a", l->kv_rank + l->rope, w->width, false);
    block->kv_norm = model_rmsnorm_of(w, block->attn, "kv_norm", l->kv_rank);
    block->kv_b = model_linear(w, block->attn, "kv_b", heads * kv_dim(l), l->kv_rank, false);
    block->o = model_linear(w, block->attn, "o", w->width, heads * l->v, false);
}

/* A variable that has held x takes what the last module made of `given`, which goes first. */
static void take_name(PlanGraph *graph, uint32_t x, uint32_t given) {
    plan_graph_keep(graph, x);
    plan_graph_let_go_after(graph, x, given);
}

static uint32_t run_q(const ModelLlama *llama, const ModelLlamaBlock *block, uint32_t x) {
    const ModelWalk *w = &llama->walk;
    const ModelLatent *l = &llama->latent;
    uint64_t out = llama->heads * q_dim(l), rank = l->q_rank;
    if (!rank) {
        return model_run_linear(w, &block->q, x, out, w->width);
    }
    uint32_t row = model_run_linear(w, &block->q_a, x, rank, w->width);
    uint32_t normed = model_run_rmsnorm_of(w, &block->q_norm, row, w->rows, rank, llama->norm_eps);
    uint32_t q = model_run_linear(w, &block->q, normed, out, rank);
    take_name(w->graph, row, normed);
    return q;
}

/* In a row of so many numbers those from there on. */
typedef struct {
    uint64_t row, from;
} Place;

/* Of so many heads a token; where each lies, and where its gradient does. */
static uint32_t run_turn(const ModelLlama *llama, uint32_t x, uint64_t heads, Place at, Place dy) {
    const ModelWalk *w = &llama->walk;
    PlanGraphLatentRotation turn = {.tokens = (int64_t)w->rows,
                                    .heads = (int64_t)heads,
                                    .dim = (int64_t)llama->latent.rope,
                                    .seq = (int64_t)w->seq,
                                    .row = (int64_t)at.row,
                                    .from = (int64_t)at.from,
                                    .dy_row = (int64_t)dy.row,
                                    .dy_from = (int64_t)dy.from};
    return plan_graph_latent_rotate(w->graph, x, llama->rotary.cosines, &turn);
}

/* Joins each head's unrotated numbers (in rows `row` wide) with its rotated ones, of which `each`
 * heads share one row. */
static uint32_t run_join(const ModelLlama *llama, uint32_t first, uint64_t row, uint32_t turned,
                         uint64_t each) {
    const ModelWalk *w = &llama->walk;
    const ModelLatent *l = &llama->latent;
    uint64_t rows = w->rows * llama->heads, n = rows * q_dim(l);
    int64_t dims[] = {[JOIN_HEADS_ROWS] = (int64_t)rows,
                      [JOIN_HEADS_A_COLS] = (int64_t)l->nope,
                      [JOIN_HEADS_B_COLS] = (int64_t)l->rope,
                      [JOIN_HEADS_ROW] = (int64_t)row,
                      [JOIN_HEADS_EACH] = (int64_t)each};
    return plan_graph_op(w->graph, PLAN_OP_JOIN_HEADS, (uint32_t[]){first, turned}, w->graph->dtype,
                         n, dims, NULL);
}

static uint32_t run_norm(const ModelLlama *llama, const ModelLayer *layer, uint32_t x) {
    const ModelWalk *w = &llama->walk;
    const ModelLatent *l = &llama->latent;
    PlanGraphResult results[] = {{w->graph->dtype, w->rows * l->kv_rank}, {PLAN_FP32, w->rows}};
    int64_t dims[] = {[NORM_COLUMNS_ROWS] = (int64_t)w->rows,
                      [NORM_COLUMNS_WIDTH] = (int64_t)l->kv_rank,
                      [NORM_COLUMNS_ROW] = (int64_t)(l->kv_rank + l->rope)};
    plan_graph_enter(w->graph, layer->module, &x, 1);
    uint32_t y =
        plan_graph_op_making(w->graph, PLAN_OP_NORM_COLUMNS, (uint32_t[]){x, layer->weight},
                             results, dims, &llama->norm_eps);
    plan_graph_leave(w->graph, &y, 1);
    return y;
}

/* Row statistics are padded to 32 rows; what nobody keeps goes from the last to the first, as of
 * attention elsewhere (layers/attention.c). */
static uint32_t run_kernel(const ModelLlama *llama, uint32_t q, uint32_t k, uint32_t v) {
    const ModelWalk *w = &llama->walk;
    const ModelLatent *l = &llama->latent;
    uint64_t heads = llama->heads, lse_row = (w->seq + 31) / 32 * 32;
    bool trains = plan_graph_wants_gradient(w->graph, q) || plan_graph_wants_gradient(w->graph, k);
    PlanGraphResult results[] = {{w->graph->dtype, w->rows * heads * l->v},
                                 {PLAN_FP32, trains ? w->batch * heads * lse_row : 0},
                                 {PLAN_INT64, 1},
                                 {PLAN_INT64, 1}};
    int64_t dims[] = {[LATENT_ATTENTION_BATCH] = (int64_t)w->batch,
                      [LATENT_ATTENTION_HEADS] = (int64_t)heads,
                      [LATENT_ATTENTION_KV_HEADS] = (int64_t)heads,
                      [LATENT_ATTENTION_SEQ] = (int64_t)w->seq,
                      [LATENT_ATTENTION_HEAD_DIM] = (int64_t)q_dim(l),
                      [LATENT_ATTENTION_V_DIM] = (int64_t)l->v,
                      [LATENT_ATTENTION_V_ROW] = (int64_t)kv_dim(l),
                      [LATENT_ATTENTION_LSE_STRIDE] = (int64_t)lse_row,
                      [LATENT_ATTENTION_CAUSAL] = 1,
                      [LATENT_ATTENTION_FROM] = (int64_t)l->nope};
    uint32_t o = plan_graph_op_making(w->graph, PLAN_OP_LATENT_ATTENTION, (uint32_t[]){q, k, v},
                                      results, dims, &llama->attention_scale);
    uint32_t lse = o + 1, seed = o + 2, offset = o + 3;
    plan_graph_let_go_after(w->graph, seed, offset);
    plan_graph_let_go_after(w->graph, lse, seed);
    return o;
}

/* As Python's variables are named, from the first to the last. */
static void hold_in_order(PlanGraph *graph, const uint32_t *values, unsigned n) {
    for (unsigned i = 0; i < n; i++) {
        plan_graph_hold(graph, values[i]);
        if (i > 0) {
            plan_graph_let_go_after(graph, values[i], values[i - 1]);
        }
    }
}

uint32_t model_latent_run(const ModelLlama *llama, const ModelLlamaBlock *block, uint32_t x) {
    const ModelWalk *w = &llama->walk;
    const ModelLatent *l = &llama->latent;
    PlanGraph *graph = w->graph;
    uint64_t heads = llama->heads, rows = w->rows * heads, kv_row = l->kv_rank + l->rope;
    PlanGraphLatentSplit of_q = {(int64_t)rows, (int64_t)l->nope, (int64_t)l->rope,
                                 (int64_t)q_dim(l)};
    PlanGraphLatentSplit of_row = {(int64_t)w->rows, (int64_t)l->kv_rank, (int64_t)l->rope,
                                   (int64_t)l->kv_rank};
    PlanGraphLatentSplit of_kv = {(int64_t)rows, (int64_t)l->nope, (int64_t)l->v,
                                  (int64_t)q_dim(l)};
    uint32_t plain[2], row[2], parts[2];
    plan_graph_enter(graph, block->attn,
                     (uint32_t[]){x, llama->rotary.cosines, llama->rotary.sines}, 3);
    plan_graph_latent_split(graph, run_q(llama, block, x), &of_q, plain);
    const Place in_q = {q_dim(l), l->nope};
    uint32_t placed = run_turn(llama, plain[1], heads, in_q, in_q);
    uint32_t q = run_join(llama, plain[0], q_dim(l), placed, 1);
    plan_graph_latent_split(graph, model_run_linear(w, &block->kv_a, x, kv_row, w->width), &of_row,
                            row);
    bool summed = heads > 1; /* the heads' gradients; a single one's lies in its row */
    uint32_t key = run_turn(llama, row[1], 1, (Place){kv_row, l->kv_rank},
                            summed ? (Place){l->rope, 0} : in_q);
    uint32_t normed = run_norm(llama, &block->kv_norm, row[0]);
    uint32_t kv = model_run_linear(w, &block->kv_b, normed, heads * kv_dim(l), l->kv_rank);
    take_name(graph, row[0], normed);
    plan_graph_latent_split(graph, kv, &of_kv, parts);
    uint32_t k = run_join(llama, parts[0], kv_dim(l), key, heads);
    uint32_t o = run_kernel(llama, q, k, parts[1]);
    uint32_t held[] = {q, plain[0], placed, key, parts[1], k, o};
    hold_in_order(graph, held, G_N_ELEMENTS(held));
    uint32_t y = model_run_linear(w, &block->o, o, w->width, heads * l->v);
    plan_graph_leave(graph, &y, 1);
    return y;
}
