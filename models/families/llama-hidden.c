/* models/families/llama-hidden.c - the hidden layer of a Llama's block, or its experts. */
#include "models/families/llama.h"

void model_llama_declare_hidden_layer(const ModelLlama *llama, ModelLlamaBlock *block) {
    const ModelWalk *w = &llama->walk;
    const ModelLlamaNames *names = llama->names;
    if (block->has_experts) {
        block->experts = model_experts_declare(w, &llama->experts, block->module, names->mlp);
        return;
    }
    const char *class_name = llama->gate != MODEL_GATE_SILU ? "GeGlu"
                             : llama->gate_up_joined        ? "JoinedSwiGlu"
                                                            : "SwiGlu";
    block->mlp = model_llama_declare_module(llama, block->module, names->mlp, "MLP", class_name);
    if (llama->gate_up_joined) {
        block->gate_up =
            model_linear(w, block->mlp, names->gate_up, 2 * llama->ffn, w->width, false);
    } else {
        if (llama->gate != MODEL_GATE_NONE) {
            block->gate = model_linear(w, block->mlp, names->gate, llama->ffn, w->width, false);
        }
        block->up = model_linear(w, block->mlp, names->up, llama->ffn, w->width, false);
    }
    block->down = model_linear(w, block->mlp, names->down, w->width, llama->ffn, false);
    static const char *const classes[] = {[MODEL_GATE_SILU] = "SiLUActivation",
                                          [MODEL_GATE_GELU_TANH] = "GELUTanh",
                                          [MODEL_GATE_GELU_ERF] = "GELUActivation",
                                          [MODEL_GATE_NONE] = "ReLUSquaredActivation"};
    const char *act = llama->gate_up_joined ? "activation_fn" : "act_fn"; /* Phi-3's; others' */
    block->act = llama->transformers
                     ? plan_graph_module(w->graph, block->mlp, act, classes[llama->gate], false)
                     : PLAN_NONE;
}

/* What opens the hidden layer; SiLU of transformers is a module. */
static uint32_t run_gate(const ModelLlama *llama, const ModelLlamaBlock *block, uint32_t x) {
    static const PlanOpKind kinds[] = {[MODEL_GATE_SILU] = PLAN_OP_SILU,
                                       [MODEL_GATE_GELU_TANH] = PLAN_OP_GELU_TANH,
                                       [MODEL_GATE_GELU_ERF] = PLAN_OP_GELU_ERF};
    const ModelWalk *w = &llama->walk;
    uint64_t n = w->rows * llama->ffn;
    if (block->act == PLAN_NONE) {
        return model_run_elementwise(w, kinds[llama->gate], x, PLAN_NONE, n);
    }
    plan_graph_enter(w->graph, block->act, &x, 1);
    uint32_t y = model_run_elementwise(w, kinds[llama->gate], x, PLAN_NONE, n);
    plan_graph_leave(w->graph, &y, 1);
    return y;
}

/* One layer gives both. Its rows are Python's, its result two matrices one behind the other, each
 * as if a layer of its own had made it: the same bytes, and no kernel has to know of wider rows. */
static uint32_t run_joined_hidden(const ModelLlama *llama, const ModelLlamaBlock *block,
                                  uint32_t x) {
    const ModelWalk *w = &llama->walk;
    uint64_t ffn = llama->ffn, n = w->rows * ffn;
    uint32_t parts[2];
    uint32_t both = model_run_linear_parts(w, &block->gate_up, x, 2 * ffn, w->width, 2);
    plan_graph_parts(w->graph, both, w->rows, (uint64_t[]){ffn, ffn}, 2, parts);
    uint32_t open = run_gate(llama, block, parts[0]);
    uint32_t hidden = model_run_elementwise(w, PLAN_OP_MUL, parts[1], open, n);
    plan_graph_hold(w->graph, hidden);
    plan_graph_hold(w->graph, parts[0]);
    plan_graph_let_go_after(w->graph, parts[0], hidden);
    return hidden;
}

/* By one layer, whose result goes through a module of its own. */
static uint32_t run_squared(const ModelLlama *llama, const ModelLlamaBlock *block, uint32_t x) {
    const ModelWalk *w = &llama->walk;
    uint64_t n = w->rows * llama->ffn;
    uint32_t up = model_run_linear(w, &block->up, x, llama->ffn, w->width);
    plan_graph_enter(w->graph, block->act, &up, 1);
    uint32_t above = model_run_elementwise(w, PLAN_OP_RELU, up, PLAN_NONE, n);
    uint32_t y = model_run_number(w, PLAN_OP_POWER, above, n, 2);
    plan_graph_hold(w->graph, above);
    plan_graph_leave(w->graph, &y, 1);
    return y;
}

/* By two layers; own: what x was gathered of. */
static uint32_t run_hidden(const ModelLlama *llama, const ModelLlamaBlock *block, uint32_t own,
                           uint32_t x) {
    const ModelWalk *w = &llama->walk;
    bool fused = w->graph->now.fused;
    uint64_t n = w->rows * llama->ffn;
    uint32_t gate = model_run_linear(w, &block->gate, model_read_by_columns(&llama->walk, x),
                                     llama->ffn, w->width);
    uint32_t open = fused ? gate : run_gate(llama, block, gate);
    uint32_t up = model_run_linear(w, &block->up, model_gather_again(&llama->walk, own, x),
                                   llama->ffn, w->width);
    return model_run_elementwise(w, fused ? PLAN_OP_SWIGLU : PLAN_OP_MUL, open, up, n);
}

/* The block's name for what it does not use holds attention's weights until the experts have
 * returned their scores, and these then. */
static uint32_t run_experts_for_weights(const ModelLlama *llama, const ModelLlamaBlock *block,
                                        uint32_t x) {
    PlanGraph *graph = llama->walk.graph;
    uint32_t scores = PLAN_NONE;
    ModelExperts experts = llama->experts;
    experts.scores = &scores;
    uint32_t y = model_experts_run(&llama->walk, &experts, &block->experts, x);
    plan_graph_keep(graph, *llama->weights);
    plan_graph_let_go_after(graph, *llama->weights, x);
    plan_graph_hold(graph, scores);
    *llama->weights = scores;
    return y;
}

uint32_t model_llama_run_hidden_layer(const ModelLlama *llama, const ModelLlamaBlock *block,
                                      uint32_t x) {
    const ModelWalk *w = &llama->walk;
    if (block->has_experts) {
        return llama->has_sinks ? run_experts_for_weights(llama, block, x)
                                : model_experts_run(w, &llama->experts, &block->experts, x);
    }
    uint32_t own = x;
    plan_graph_enter(w->graph, block->mlp, &x, 1);
    x = model_gather_tokens(&llama->walk, x);
    uint32_t hidden = llama->gate == MODEL_GATE_NONE ? run_squared(llama, block, x)
                      : llama->gate_up_joined        ? run_joined_hidden(llama, block, x)
                                                     : run_hidden(llama, block, own, x);
    uint32_t y = model_run_by_rows(&llama->walk, &block->down, hidden, llama->ffn);
    plan_graph_leave(w->graph, &y, 1);
    return y;
}
