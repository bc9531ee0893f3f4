/* Networks: exact parameter counts, and messages that name file, line and remedy. */
#include <math.h>
#include <string.h>

#include "models/network.h"
#include "plan/op/names.h"

static uint64_t parameters_of(const char *text) {
    g_autoptr(GError) error = NULL;
    g_autoptr(ModelNetwork) network = model_network_read(text, strlen(text), "n.ini", &error);
    g_assert_no_error(error);
    g_autoptr(PlanGraph) graph = model_network_emit(network, &(ModelPass){.batch = 1}, &error);
    g_assert_no_error(error);
    uint64_t total = 0;
    for (uint32_t i = 0; i < graph->parameters.len; i++) {
        total += plan_graph_parameter_at(graph, i)->elements;
    }
    return total;
}

/* GPT-2 124M as published; minGPT-175B as real PyTorch counts it (tests/oracle, 96 layers). */
static void counts(void) {
    g_assert_cmpuint(parameters_of("[network]\nfamily=gpt\nlayers=12\nwidth=768\nheads=12\n"
                                   "vocab=50257\nseq=1024\ntied=yes\n"),
                     ==, 124439808);
    g_assert_cmpuint(parameters_of("[network]\nfamily=gpt\nlayers=96\nwidth=12288\nheads=96\n"
                                   "vocab=50000\nseq=2048\n"),
                     ==, 175215501312);
    g_assert_cmpuint(parameters_of("[network]\nfamily=mlp\nlayers=3\nwidth=64\nseq=1\n"), ==,
                     3 * (64 * 64 + 64));
}

/* Published counts, and the params column of llm-foundry's tables for its 2048 positions; assumed
 * shapes within 3 % of the size they are named after. */
static const struct {
    const char *name;
    double parameters;
    bool assumed;
} files[] = {
    {"gpt2", 124439808, false},
    {"gpt2-medium", 354823168, false},
    {"gpt2-large", 774030080, false},
    {"gpt2-xl", 1557611200, false},
    {"gpt-10b", 10e9, true},
    {"gpt-100b", 100e9, true},
    {"gpt-175b", 175215501312, false},
    {"gpt-1t", 1.008e12, true},
    {"llama2-7b", 6738415616, false},
    {"llama2-13b", 13015864320, false},
    {"llama2-34b", 33.7e9, true},
    {"llama2-70b", 68976648192, false},
    {"llama3-8b", 8030261248, false},
    {"llama3-70b", 70553706496, false},
    {"llama3-405b", 405.8e9, true},
    {"t5-small", 60506624, false},
    {"t5-base", 222903552, false},
    {"t5-large", 737668096, false},
    {"flan-t5-small", 76961152, false},
    {"flan-t5-base", 247577856, false},
    {"flan-t5-large", 783150080, false},
    {"flan-t5-xl", 2849757184, false},
    {"flan-t5-xxl", 11135332352, false},
    {"qwen3-8b", 8190735360, false},
    {"qwen3-32b", 32762123264, false},
    {"mixtral-8x7b", 46702792704, false},
    {"qwen3-30b-a3b", 30532122624, false},
    {"gpt-oss-20b", 20914757184, false},
    {"gpt-oss-120b", 116829156672, false},
    {"deepseek-v2-lite", 15706484224, false},
    {"deepseek-v2", 235741434880, false},
    {"deepseek-v3", 671026404352, false},
    {"glm-4-9b", 9400279040, false},
    {"olmo-7b", 6888095744, false},
    {"olmo2-7b", 7298617344, false},
    {"llama-33b", 32528943616, false},
    {"llama-65b", 65285660672, false},
    {"llama3.2-1b", 1235814400, false},
    {"llama3.2-3b", 3212749824, false},
    {"mistral-7b", 7241732096, false},
    {"qwen2.5-0.5b", 494032768, false},
    {"qwen2.5-1.5b", 1543714304, false},
    {"qwen2.5-3b", 3085938688, false},
    {"qwen2.5-7b", 7615616512, false},
    {"qwen2.5-14b", 14770033664, false},
    {"qwen2.5-32b", 32763876352, false},
    {"qwen2.5-72b", 72706203648, false},
    {"qwen3-0.6b", 596049920, false},
    {"qwen3-1.7b", 1720574976, false},
    {"qwen3-4b", 4022468096, false},
    {"qwen3-14b", 14768307200, false},
    {"tinyllama-1.1b", 1100048384, false},
    {"smollm2-1.7b", 1711376384, false},
    {"phi-3-mini", 3821079552, false},
    {"t5-611m", 611e6, true},
    {"t5-2.28b", 2.28e9, true},
    {"t5-3b", 2851598336, false},
    {"t5-11b", 11307321344, false},
    {"mpt-125m", 125311488, false},
    {"mpt-350m", 355985408, false},
    {"mpt-760m", 760470528, false},
    {"mpt-1b", 1315950592, false},
    {"mpt-3b", 2651837440, false},
    {"mpt-7b", 6658859008, false},
    {"mpt-13b", 12853954560, false},
    {"mpt-30b", 29975214080, false},
    {"mpt-70b", 64862437376, false},
    {"pythia-70m", 70426624, false},
    {"pythia-160m", 162322944, false},
    {"pythia-410m", 405334016, false},
    {"pythia-1.4b", 1414647808, false},
    {"pythia-2.8b", 2775208960, false},
    {"pythia-6.9b", 6857302016, false},
    {"pythia-12b", 11846072320, false},
    {"opt-125m", 125239296, false},
    {"opt-1.3b", 1315758080, false},
    {"opt-6.7b", 6658473984, false},
    {"opt-13b", 12853473280, false},
    {"opt-30b", 29974540288, false},
    {"starcoder2-3b", 3030371328, false},
    {"starcoder2-7b", 7173923840, false},
    {"phi-2", 2779683840, false},
    {"phi-1.5", 1418270720, false},
    {"gemma2-2b", 2614341888, false},
    {"gemma2-9b", 9241705984, false},
    {"gemma2-27b", 27227128320, false},
    {"gemma3-1b", 999885952, false},
    {"gemma3-4b", 3880263168, false},
    {"gemma3-12b", 11766034176, false},
    {"gemma3-27b", 27009346304, false},
    {"kimi-k2", 1026408209408, false},
    {"mistral-nemo-12b", 12247782400, false},
    {"mistral-small-24b", 23572403200, false},
    {"mixtral-8x22b", 140620634112, false},
    {"olmo2-13b", 13716198400, false},
    {"olmo2-32b", 32234279936, false},
    {"phi-4", 14659507200, false},
    {"qwen3-235b-a22b", 235093634560, false},
    {"smollm3-3b", 3075098624, false},
};

static void files_count(void) {
    for (unsigned i = 0; i < G_N_ELEMENTS(files); i++) {
        g_autofree char *file = g_strconcat(files[i].name, ".ini", NULL);
        g_autofree char *path = g_build_filename(g_getenv("FORESHARD_TEST_NETWORKS"), file, NULL);
        g_autofree char *text = NULL;
        g_autoptr(GError) error = NULL;
        g_assert_true(g_file_get_contents(path, &text, NULL, &error));
        double counted = (double)parameters_of(text);
        double off = fabs(counted - files[i].parameters);
        g_test_message("%s: %.0f parameters", files[i].name, counted);
        g_assert_cmpfloat(off, <=, files[i].assumed ? 0.03 * files[i].parameters : 0);
    }
}

/* Parameters that a token meets, as their makers count them: 12.9e9, 39e9, 3.3e9, 22e9, 2.4e9
 * (without its tables, which they leave out), 21e9, 37e9, 32e9. */
static void experts_count(void) {
    static const struct {
        const char *name;
        uint64_t experts, per_token, met;
    } cases[] = {{"mixtral-8x7b", 8, 2, 12879925248},     {"mixtral-8x22b", 8, 2, 39152031744},
                 {"qwen3-30b-a3b", 128, 8, 3353032704},   {"qwen3-235b-a22b", 128, 8, 22190763520},
                 {"deepseek-v2-lite", 64, 6, 2661150208}, {"deepseek-v2", 160, 6, 21375800320},
                 {"deepseek-v3", 256, 8, 37552282624},    {"kimi-k2", 384, 8, 32861477888}};
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *file = g_strconcat(cases[i].name, ".ini", NULL);
        g_autofree char *path = g_build_filename(g_getenv("FORESHARD_TEST_NETWORKS"), file, NULL);
        g_autoptr(GError) error = NULL;
        g_autoptr(ModelNetwork) network = model_network_read_file(path, &error);
        g_assert_no_error(error);
        g_autoptr(PlanGraph) graph = model_network_emit(network, &(ModelPass){.batch = 1}, &error);
        g_assert_no_error(error);
        uint64_t met = 0;
        for (uint32_t p = 0; p < graph->parameters.len; p++) {
            const PlanGraphParameter *parameter = plan_graph_parameter_at(graph, p);
            bool is_of_experts = parameter->n_dims == 3;
            g_assert_true(!is_of_experts || parameter->dims[0] == (int64_t)cases[i].experts);
            met += is_of_experts ? parameter->elements / cases[i].experts * cases[i].per_token
                                 : parameter->elements;
        }
        g_assert_cmpuint(met, ==, cases[i].met);
    }
}

/* Transformers has experts of its own, of which two kinds are known, each in its own order. */
static void experts_of_transformers(void) {
#define THEIRS                                                                                     \
    "[network]\nfamily=llama\ncode=transformers\nlayers=1\nwidth=8\nheads=2\nvocab=4\nseq=4\n"     \
    "experts=4\nexperts_per_token=2\nexpert_ffn=8\n"
    static const struct {
        const char *text;
        const char *first, *second; /* of experts and router, by the order of their modules */
    } known[] = {
        {THEIRS, "model.layers.0.mlp.gate.weight", "model.layers.0.mlp.experts.gate_up_proj"},
        {THEIRS "qk_norm=head\nroute_norm=no\n", "model.layers.0.mlp.experts.down_proj",
         "model.layers.0.mlp.gate.weight"}};
    static const char *const refused[] = {THEIRS "shared_ffn=8\n", THEIRS "qkv_bias=yes\n",
                                          THEIRS "route_norm=no\n"};
    for (unsigned i = 0; i < G_N_ELEMENTS(known); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(ModelNetwork) network =
            model_network_read(known[i].text, strlen(known[i].text), "n.ini", &error);
        g_assert_no_error(error);
        g_autoptr(PlanGraph) graph = model_network_emit(network, &(ModelPass){.batch = 1}, &error);
        g_assert_no_error(error);
        const char *before = "";
        bool found = false;
        for (guint p = 0; p < graph->parameters.len; p++) {
            const char *name = plan_graph_parameter_at(graph, p)->name;
            found |= g_str_equal(before, known[i].first) && g_str_equal(name, known[i].second);
            before = name;
        }
        g_assert_true(found);
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(refused); i++) {
        g_autoptr(GError) error = NULL;
        g_assert_null(model_network_read(refused[i], strlen(refused[i]), "n.ini", &error));
        g_assert_nonnull(strstr(error->message, "code = transformers is known of a network"));
    }
}

static void names(void) {
    const char *text = "[network]\nfamily=gpt\nlayers=1\nwidth=8\nheads=2\nvocab=4\nseq=4\n";
    g_autoptr(ModelNetwork) network = model_network_read(text, strlen(text), "n.ini", NULL);
    g_autoptr(PlanGraph) graph = model_network_emit(network, &(ModelPass){.batch = 1}, NULL);
    static const char *const expected[] = {
        "wte.weight",
        "wpe.weight",
        "layers.0.ln_1.weight",
        "layers.0.ln_1.bias",
        "layers.0.attn.qkv.weight",
        "layers.0.attn.qkv.bias",
        "layers.0.attn.proj.weight",
        "layers.0.attn.proj.bias",
        "layers.0.ln_2.weight",
        "layers.0.ln_2.bias",
        "layers.0.mlp.up.weight",
        "layers.0.mlp.up.bias",
        "layers.0.mlp.down.weight",
        "layers.0.mlp.down.bias",
        "ln_f.weight",
        "ln_f.bias",
        "head.weight",
    };
    g_assert_cmpuint(graph->parameters.len, ==, G_N_ELEMENTS(expected));
    for (unsigned i = 0; i < G_N_ELEMENTS(expected); i++) {
        g_assert_cmpstr(plan_graph_parameter_at(graph, i)->name, ==, expected[i]);
    }
}

/* loss = fp32 casts the logits, in a 16-bit network alone, and leaves no kernel that fuses it. */
static void loss(void) {
    static const struct {
        const char *loss;
        PlanDtype dtype;
        bool fused;
        unsigned casts, fused_losses;
        PlanDtype expected;
    } cases[] = {
        {"model", PLAN_BF16, false, 0, 0, PLAN_BF16}, {"fp32", PLAN_BF16, false, 1, 0, PLAN_FP32},
        {"fp32", PLAN_FP32, false, 0, 0, PLAN_FP32},  {"model", PLAN_BF16, true, 0, 1, PLAN_BF16},
        {"ops", PLAN_BF16, true, 0, 0, PLAN_BF16},    {"fp32", PLAN_BF16, true, 1, 0, PLAN_FP32},
    };
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;
        g_autofree char *text =
            g_strdup_printf("[network]\nfamily=gpt\nlayers=2\nwidth=8\nheads=2\n"
                            "vocab=4\nseq=4\nloss=%s\n",
                            cases[i].loss);
        g_autoptr(ModelNetwork) network = model_network_read(text, strlen(text), "n.ini", &error);
        g_assert_no_error(error);
        g_autoptr(PlanGraph) graph = model_network_emit(
            network,
            &(ModelPass){.batch = 1,
                         .dtype = cases[i].dtype,
                         .kernels.style = cases[i].fused ? PLAN_KERNELS_FUSED : PLAN_KERNELS_EAGER},
            &error);
        g_assert_no_error(error);
        unsigned casts = 0, fused_losses = 0;
        for (uint32_t k = 0; k < graph->ops.len; k++) {
            uint32_t kind = plan_graph_op_at(graph, k)->kind;
            casts += kind == PLAN_OP_CAST;
            fused_losses += kind == PLAN_OP_CROSS_ENTROPY;
        }
        g_assert_cmpuint(casts, ==, cases[i].casts);
        g_assert_cmpuint(fused_losses, ==, cases[i].fused_losses);
        g_assert_cmpint(plan_graph_value_at(graph, graph->loss)->dtype, ==, cases[i].expected);
    }
}

static unsigned count_ops(const PlanGraph *graph, uint32_t first_step, uint32_t end_step,
                          PlanOpKind kind) {
    unsigned n = 0;
    for (uint32_t i = first_step; i < end_step; i++) {
        const PlanGraphStep *step = plan_graph_step_at(graph, i);
        n += step->kind == PLAN_STEP_OP && plan_graph_op_at(graph, step->index)->kind == kind;
    }
    return n;
}

/* Metrics run after backward, on log-probabilities widened to fp32. */
static void metered(void) {
    const char *text = "[network]\nfamily=mpt\nlayers=1\nwidth=8\nheads=2\nvocab=4\nseq=4\n"
                       "loss=metered\n";
    g_autoptr(ModelNetwork) network = model_network_read(text, strlen(text), "n.ini", NULL);
    g_autoptr(PlanGraph) graph =
        model_network_emit(network, &(ModelPass){.batch = 1, .dtype = PLAN_BF16}, NULL);
    uint32_t trained = graph->n_train_steps, all = graph->steps.len;
    g_assert_cmpuint(count_ops(graph, 0, trained, PLAN_OP_CROSS_ENTROPY), ==, 1);
    g_assert_cmpuint(count_ops(graph, 0, trained, PLAN_OP_LOG_SOFTMAX), ==, 0);
    g_assert_cmpuint(count_ops(graph, trained, all, PLAN_OP_LOG_SOFTMAX), ==, 2);
    g_assert_cmpuint(count_ops(graph, trained, all, PLAN_OP_CAST), ==, 2);
}

/* A loss compiled by itself: its copy of the logits in fp32 is never there, and it is in fp32. */
static void loss_in_one_kernel(void) {
    const char *text = "[network]\nfamily=llama\nlayers=1\nwidth=8\nheads=2\nffn=12\nvocab=4\n"
                       "seq=4\nloss=kernel\nloss_at=loop\n";
    g_autoptr(ModelNetwork) network = model_network_read(text, strlen(text), "n.ini", NULL);
    for (unsigned is_fused = 0; is_fused < 2; is_fused++) {
        ModelPass pass = {.batch = 1,
                          .dtype = PLAN_BF16,
                          .kernels.style = is_fused ? PLAN_KERNELS_FUSED : PLAN_KERNELS_EAGER};
        g_autoptr(PlanGraph) graph = model_network_emit(network, &pass, NULL);
        uint32_t all = graph->steps.len, tables = 2;
        g_assert_cmpuint(count_ops(graph, 0, all, PLAN_OP_COMPILED_LOSS), ==, 1);
        g_assert_cmpuint(count_ops(graph, 0, all, PLAN_OP_CROSS_ENTROPY), ==, 0);
        g_assert_cmpint(plan_graph_value_at(graph, graph->loss)->dtype, ==, PLAN_FP32);
        g_assert_cmpuint(count_ops(graph, 0, all, PLAN_OP_LOG_SOFTMAX), ==, 0);
        g_assert_cmpuint(count_ops(graph, 0, all, PLAN_OP_CAST), ==, tables);
    }
}

/* Three norms of a block's two and the last, each of the ops that PyTorch ran. */
static void rms_norm_of_ops(void) {
    const char *text = "[network]\nfamily=llama\nlayers=1\nwidth=8\nheads=2\nffn=12\nvocab=4\n"
                       "seq=4\n";
    g_autoptr(ModelNetwork) network = model_network_read(text, strlen(text), "n.ini", NULL);
    for (unsigned bits = 0; bits < 4; bits++) {
        bool is_fp32 = bits & 1, fused = bits & 2;
        ModelPass pass = {.batch = 1,
                          .dtype = is_fp32 ? PLAN_FP32 : PLAN_BF16,
                          .kernels.style = fused ? PLAN_KERNELS_FUSED : PLAN_KERNELS_EAGER,
                          .kernels.rms_norm_of_ops = true};
        g_autoptr(PlanGraph) graph = model_network_emit(network, &pass, NULL);
        uint32_t all = graph->steps.len, tables = 2 * !is_fp32;
        g_assert_cmpuint(count_ops(graph, 0, all, PLAN_OP_MUL_ROW), ==, fused ? 0 : 3);
        g_assert_cmpuint(count_ops(graph, 0, all, PLAN_OP_POWER), ==, fused ? 0 : 6);
        g_assert_cmpuint(count_ops(graph, 0, all, PLAN_OP_CAST), ==,
                         tables + (fused || is_fp32 ? 0 : 6));
        g_assert_cmpuint(count_ops(graph, 0, all, PLAN_OP_RMSNORM) +
                             count_ops(graph, 0, all, PLAN_OP_ADD_RMSNORM),
                         ==, fused ? 3 : 0);
    }
}

static const PlanGraphParameter *parameter_named(const PlanGraph *graph, const char *name) {
    for (guint i = 0; i < graph->parameters.len; i++) {
        const PlanGraphParameter *p = plan_graph_parameter_at(graph, i);
        if (g_str_equal(p->name, name)) {
            return p;
        }
    }
    return NULL;
}

/* Rows and widths of the kernels that normalize the first block's q and k: of 12 tokens, 4 heads
 * and 2 of k, 6 numbers each. */
static void q_and_k_normalized(void) {
    static const struct {
        const char *key;
        int64_t q[2], k[2];
    } cases[] = {{"qk_norm=head\n", {48, 6}, {24, 6}}, {"qk_norm=width\n", {12, 24}, {12, 12}}};
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *text =
            g_strconcat("[network]\nfamily=llama\nlayers=1\nwidth=8\nheads=4\nkv_heads=2\n"
                        "head_dim=6\nffn=12\nvocab=4\nseq=4\nnorm_eps=2e-6\n",
                        cases[i].key, NULL);
        g_autoptr(ModelNetwork) network = model_network_read(text, strlen(text), "n.ini", NULL);
        g_autoptr(PlanGraph) graph = model_network_emit(network, &(ModelPass){.batch = 3}, NULL);
        const PlanGraphParameter *q = parameter_named(graph, "layers.0.attn.q_norm.weight");
        const PlanGraphParameter *k = parameter_named(graph, "layers.0.attn.k_norm.weight");
        g_assert_cmpint(q->dims[0], ==, cases[i].q[1]);
        g_assert_cmpint(k->dims[0], ==, cases[i].k[1]);
        unsigned n = 0;
        for (guint o = 0; o < graph->ops.len; o++) {
            const PlanGraphOp *op = plan_graph_op_at(graph, o);
            const int64_t *dims = &graph->dims.items[op->dims];
            bool is_norm = op->kind == PLAN_OP_RMSNORM;
            if (is_norm) {
                g_assert_cmpfloat(graph->attrs.items[op->attrs], ==, 2e-6);
            }
            n += is_norm && dims[RMSNORM_ROWS] == cases[i].q[0] &&
                 dims[RMSNORM_WIDTH] == cases[i].q[1];
            n += is_norm && dims[RMSNORM_ROWS] == cases[i].k[0] &&
                 dims[RMSNORM_WIDTH] == cases[i].k[1];
        }
        g_assert_cmpuint(n, ==, 2);
    }
}

/* One layer's rows are all heads of q, then those of k and of v, and attention reads v where it
 * lies: of 12 tokens, 4 heads and 2 of k and v, 6 numbers each. */
static void q_k_and_v_joined(void) {
    static const char *const keys[] = {"qkv=joined\n", "qkv=sliced\nrope=partial\n"};
    for (unsigned i = 0; i < G_N_ELEMENTS(keys); i++) {
        g_autofree char *text =
            g_strconcat("[network]\nfamily=llama\nlayers=1\nwidth=8\nheads=4\nkv_heads=2\n"
                        "head_dim=6\nffn=12\nvocab=4\nseq=4\n",
                        keys[i], NULL);
        g_autoptr(ModelNetwork) network = model_network_read(text, strlen(text), "n.ini", NULL);
        g_autoptr(PlanGraph) graph =
            model_network_emit(network, &(ModelPass){.batch = 3, .dtype = PLAN_BF16}, NULL);
        const PlanGraphParameter *qkv = parameter_named(graph, "layers.0.attn.qkv.weight");
        g_assert_cmpint(qkv->dims[0], ==, 48);
        g_assert_cmpint(qkv->dims[1], ==, 8);
        unsigned n = 0;
        for (guint o = 0; o < graph->ops.len; o++) {
            const PlanGraphOp *op = plan_graph_op_at(graph, o);
            const int64_t *dims = &graph->dims.items[op->dims];
            if (op->kind == PLAN_OP_ATTENTION) {
                const PlanGraphValue *v =
                    plan_graph_value_at(graph, plan_graph_ref(graph, op->values + ATTENTION_V));
                g_assert_cmpuint(v->offset, ==, 36);
                g_assert_cmpint(dims[ATTENTION_Q_STRIDE], ==, 24);
                g_assert_cmpint(dims[ATTENTION_K_STRIDE], ==, 12);
                g_assert_cmpint(dims[ATTENTION_V_STRIDE], ==, 48);
                n++;
            }
        }
        g_assert_cmpuint(n, ==, 1);
    }
}

/* A block's norms read what attention and the hidden layer made, and what they make is added. */
static void norms_behind(void) {
    static const char *const keys[] = {"norm_at=before\n", "norm_at=after\n"};
    for (unsigned after = 0; after < 2; after++) {
        for (unsigned fused = 0; fused < 2; fused++) {
            g_autofree char *text = g_strconcat(
                "[network]\nfamily=llama\nlayers=1\nwidth=8\nheads=2\nffn=12\nvocab=4\nseq=4\n",
                keys[after], NULL);
            g_autoptr(ModelNetwork) network = model_network_read(text, strlen(text), "n.ini", NULL);
            ModelPass pass = {.batch = 1,
                              .kernels.style = fused ? PLAN_KERNELS_FUSED : PLAN_KERNELS_EAGER};
            g_autoptr(PlanGraph) graph = model_network_emit(network, &pass, NULL);
            unsigned n_behind = 0;
            for (guint o = 1; o < graph->ops.len; o++) {
                const PlanGraphOp *op = plan_graph_op_at(graph, o);
                const PlanGraphOp *before = op - 1;
                n_behind += op->kind == PLAN_OP_RMSNORM && before->kind == PLAN_OP_LINEAR;
            }
            g_assert_cmpuint(n_behind, ==, after ? 2 : 0);
            uint32_t all = graph->steps.len;
            g_assert_cmpuint(count_ops(graph, 0, all, PLAN_OP_ADD_RMSNORM), ==,
                             fused && !after ? 2 : 0);
        }
    }
}

/* transformers' Llama: softmax(scores, dtype=float32).to(dtype), two copies of the scores more. */
static void softmax_in_fp32(void) {
    static const char *const attention[] = {"math", "math-fp32"};
    for (unsigned i = 0; i < 2; i++) {
        g_autofree char *text = g_strdup_printf("[network]\nfamily=llama\nlayers=3\nwidth=8\n"
                                                "heads=2\nffn=12\nvocab=4\nseq=4\nattention=%s\n",
                                                attention[i]);
        g_autoptr(ModelNetwork) network = model_network_read(text, strlen(text), "n.ini", NULL);
        for (unsigned is_fp32 = 0; is_fp32 < 2; is_fp32++) {
            ModelPass pass = {.batch = 2, .dtype = is_fp32 ? PLAN_FP32 : PLAN_BF16};
            g_autoptr(PlanGraph) graph = model_network_emit(network, &pass, NULL);
            uint32_t all = graph->steps.len, tables = 2 * !is_fp32;
            g_assert_cmpuint(count_ops(graph, 0, all, PLAN_OP_SOFTMAX), ==, 3);
            g_assert_cmpuint(count_ops(graph, 0, all, PLAN_OP_CAST), ==,
                             tables + (i && !is_fp32 ? 6 : 0));
        }
    }
}

/* transformers' T5: a softmax in fp32 in each attention, and gelu_new in Python in each gate. */
static void t5_of_transformers(void) {
    static const char *const keys[] = {"", "gelu=ops\nattention=math-fp32\n"};
    for (unsigned i = 0; i < G_N_ELEMENTS(keys); i++) {
        g_autofree char *text = g_strconcat("[network]\nfamily=t5\nlayers=3\nwidth=8\nheads=2\n"
                                            "ffn=12\nvocab=4\nseq=4\ngated=yes\n",
                                            keys[i], NULL);
        g_autoptr(ModelNetwork) network = model_network_read(text, strlen(text), "n.ini", NULL);
        ModelPass pass = {.batch = 2, .dtype = PLAN_BF16};
        g_autoptr(PlanGraph) graph = model_network_emit(network, &pass, NULL);
        uint32_t all = graph->steps.len;
        g_assert_cmpuint(count_ops(graph, 0, all, PLAN_OP_SOFTMAX), ==, 9);
        g_assert_cmpuint(count_ops(graph, 0, all, PLAN_OP_CAST), ==, i ? 18 : 0);
        g_assert_cmpuint(count_ops(graph, 0, all, PLAN_OP_GELU_TANH), ==, i ? 0 : 6);
        g_assert_cmpuint(count_ops(graph, 0, all, PLAN_OP_TANH), ==, i ? 6 : 0);
    }
}

/* T5's attention is written out unless a kernel is asked for, which takes the bias; attention to
 * the encoder's output has none. */
static void attention_of_t5(void) {
    static const char *const keys[] = {"", "attention=math\n", "attention=kernel\n"};
    for (unsigned i = 0; i < G_N_ELEMENTS(keys); i++) {
        g_autofree char *text = g_strconcat(
            "[network]\nfamily=t5\nlayers=3\nwidth=8\nheads=2\nffn=12\nvocab=4\nseq=4\n", keys[i],
            NULL);
        g_autoptr(ModelNetwork) network = model_network_read(text, strlen(text), "n.ini", NULL);
        g_autoptr(PlanGraph) graph = model_network_emit(network, &(ModelPass){.batch = 2}, NULL);
        uint32_t all = graph->steps.len, n_biased = 0;
        for (guint o = 0; o < graph->ops.len; o++) {
            const PlanGraphOp *op = plan_graph_op_at(graph, o);
            n_biased +=
                op->kind == PLAN_OP_ATTENTION && plan_graph_ref(graph, op->values + 3) != PLAN_NONE;
        }
        g_assert_cmpuint(count_ops(graph, 0, all, PLAN_OP_SOFTMAX), ==, i == 2 ? 0 : 9);
        g_assert_cmpuint(count_ops(graph, 0, all, PLAN_OP_ATTENTION), ==, i == 2 ? 9 : 0);
        g_assert_cmpuint(n_biased, ==, i == 2 ? 6 : 0);
    }
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/models/network/files have their published size", files_count);
    g_test_add_func("/models/network/parameter counts are exact", counts);
    g_test_add_func("/models/network/parameters that a token meets", experts_count);
    g_test_add_func("/models/network/experts of transformers", experts_of_transformers);
    g_test_add_func("/models/network/names are PyTorch's", names);
    g_test_add_func("/models/network/loss", loss);
    g_test_add_func("/models/network/metered", metered);
    g_test_add_func("/models/network/loss-in-one-kernel", loss_in_one_kernel);
    g_test_add_func("/models/network/rms norm of ops", rms_norm_of_ops);
    g_test_add_func("/models/network/q and k normalized", q_and_k_normalized);
    g_test_add_func("/models/network/q, k and v joined", q_k_and_v_joined);
    g_test_add_func("/models/network/norms behind", norms_behind);
    g_test_add_func("/models/network/softmax in fp32", softmax_in_fp32);
    g_test_add_func("/network/t5-of-transformers", t5_of_transformers);
    g_test_add_func("/models/network/attention of T5", attention_of_t5);
    return g_test_run();
}
