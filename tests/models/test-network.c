/* Networks: exact parameter counts, and messages that name file, line and remedy. */
#include "models/network.h"

#include <glib/gstdio.h>
#include <math.h>
#include <string.h>

static uint64_t parameters_of(const char *text) {
    g_autoptr(GError) error = NULL;
    g_autoptr(ModelNetwork) network = model_network_read(text, strlen(text), "n.ini", &error);
    g_assert_no_error(error);
    g_autoptr(PlanGraph) graph = model_network_emit(network, &(ModelPass){.batch = 1}, &error);
    g_assert_no_error(error);
    uint64_t total = 0;
    for (uint32_t i = 0; i < graph->parameters->len; i++) {
        total += plan_graph_at(graph->parameters, PlanGraphParameter, i)->elements;
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
    {"gpt2", 124439808, false},        {"gpt2-medium", 354823168, false},
    {"gpt2-large", 774030080, false},  {"gpt2-xl", 1557611200, false},
    {"gpt-10b", 10e9, true},           {"gpt-100b", 100e9, true},
    {"gpt-175b", 175215501312, false}, {"gpt-1t", 1.008e12, true},
    {"llama2-7b", 6738415616, false},  {"llama2-13b", 13015864320, false},
    {"llama2-34b", 33.7e9, true},      {"llama2-70b", 68976648192, false},
    {"llama3-8b", 8030261248, false},  {"llama3-70b", 70553706496, false},
    {"llama3-405b", 405.8e9, true},    {"t5-small", 60506624, false},
    {"t5-611m", 611e6, true},          {"t5-2.28b", 2.28e9, true},
    {"t5-3b", 2851598336, false},      {"t5-11b", 11307321344, false},
    {"mpt-125m", 125311488, false},    {"mpt-350m", 355985408, false},
    {"mpt-760m", 760470528, false},    {"mpt-1b", 1315950592, false},
    {"mpt-3b", 2651837440, false},     {"mpt-7b", 6658859008, false},
    {"mpt-13b", 12853954560, false},   {"mpt-30b", 29975214080, false},
    {"mpt-70b", 64862437376, false},
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

/* ---- config.json ---------------------------------------------------------------------------- */

static ModelNetwork *read_config(const char *text, GError **error) {
    g_autofree char *folder = g_dir_make_tmp("foreshard-test-XXXXXX", NULL);
    g_autofree char *path = g_build_filename(folder, "config.json", NULL);
    g_assert_true(g_file_set_contents(path, text, -1, NULL));
    ModelNetwork *network = model_network_read_file(path, error);
    g_unlink(path);
    g_rmdir(folder);
    return network;
}

/* The fields as published with each model; counts from the same places as above, Qwen2-7B's and
 * Mistral-7B's from their model cards. */
static void configs(void) {
    static const struct {
        const char *text;
        uint64_t parameters;
    } cases[] = {
        {"{\"model_type\": \"gpt2\", \"n_layer\": 12, \"n_embd\": 768, \"n_head\": 12,"
         "\"n_inner\": null, \"vocab_size\": 50257, \"n_positions\": 1024}",
         124439808},
        {"{\"model_type\": \"llama\", \"hidden_size\": 4096, \"intermediate_size\": 14336,"
         "\"num_hidden_layers\": 32, \"num_attention_heads\": 32, \"num_key_value_heads\": 8,"
         "\"max_position_embeddings\": 8192, \"rope_theta\": 500000.0, \"vocab_size\": 128256,"
         "\"hidden_act\": \"silu\", \"tie_word_embeddings\": false}",
         8030261248},
        {"{\"model_type\": \"mistral\", \"hidden_size\": 4096, \"intermediate_size\": 14336,"
         "\"num_hidden_layers\": 32, \"num_attention_heads\": 32, \"num_key_value_heads\": 8,"
         "\"max_position_embeddings\": 32768, \"vocab_size\": 32000}",
         7241732096},
        {"{\"model_type\": \"mistral\", \"hidden_size\": 4096, \"intermediate_size\": 14336,"
         "\"num_hidden_layers\": 32, \"num_attention_heads\": 32, \"num_key_value_heads\": 8,"
         "\"max_position_embeddings\": 32768, \"sliding_window\": 4096, \"vocab_size\": 32000}",
         7241732096},
        {"{\"model_type\": \"llama\", \"hidden_size\": 2048, \"intermediate_size\": 8192,"
         "\"num_hidden_layers\": 16, \"num_attention_heads\": 32, \"num_key_value_heads\": 8,"
         "\"head_dim\": 64, \"max_position_embeddings\": 131072, \"rope_theta\": 500000.0,"
         "\"vocab_size\": 128256, \"tie_word_embeddings\": true}",
         1235814400},
        {"{\"model_type\": \"llama\", \"hidden_size\": 3072, \"intermediate_size\": 8192,"
         "\"num_hidden_layers\": 28, \"num_attention_heads\": 24, \"num_key_value_heads\": 8,"
         "\"head_dim\": 128, \"max_position_embeddings\": 131072, \"rope_parameters\":"
         "{\"rope_theta\": 500000.0, \"rope_type\": \"llama3\", \"factor\": 32.0},"
         "\"vocab_size\": 128256, \"tie_word_embeddings\": true}",
         3212749824},
        {"{\"model_type\": \"qwen2\", \"hidden_size\": 896, \"intermediate_size\": 4864,"
         "\"num_hidden_layers\": 24, \"num_attention_heads\": 14, \"num_key_value_heads\": 2,"
         "\"max_position_embeddings\": 131072, \"sliding_window\": 131072,"
         "\"use_sliding_window\": false, \"vocab_size\": 151936, \"tie_word_embeddings\": true}",
         494032768},
        {"{\"model_type\": \"qwen2\", \"hidden_size\": 3584, \"intermediate_size\": 18944,"
         "\"num_hidden_layers\": 28, \"num_attention_heads\": 28, \"num_key_value_heads\": 4,"
         "\"max_position_embeddings\": 32768, \"vocab_size\": 152064}",
         7615616512},
        {"{\"model_type\": \"t5\", \"d_model\": 1024, \"d_kv\": 128, \"d_ff\": 65536,"
         "\"num_layers\": 24, \"num_heads\": 128, \"vocab_size\": 32128}",
         11307321344},
        {"{\"model_type\": \"t5\", \"d_model\": 512, \"d_kv\": 64, \"d_ff\": 1024,"
         "\"num_layers\": 8, \"num_decoder_layers\": 8, \"num_heads\": 6, \"vocab_size\": 32128,"
         "\"feed_forward_proj\": \"gated-gelu\", \"tie_word_embeddings\": false}",
         76961152},
        /* By hand: each block 12 * 512^2 without the MLP's 8, and 2 * 512 * 1000 in their place. */
        {"{\"model_type\": \"gpt2\", \"n_layer\": 2, \"n_embd\": 512, \"n_head\": 8,"
         "\"n_inner\": 1000, \"vocab_size\": 100, \"n_positions\": 64}",
         164 * 512 + 2 * 512 +
             2 * (4 * 512 * 512 + 4 * 512 + 2 * 512 * 1000 + 1000 + 512 + 4 * 512)},
        {"{\"model_type\": \"mpt\", \"d_model\": 768, \"n_heads\": 12, \"n_layers\": 12,"
         "\"vocab_size\": 50368, \"max_seq_len\": 2048, \"attn_config\": {\"alibi\": false}}",
         125311488},
        /* mosaicml/mpt-7b, whose card gives the number. */
        {"{\"model_type\": \"mpt\", \"d_model\": 4096, \"n_heads\": 32, \"n_layers\": 32,"
         "\"vocab_size\": 50432, \"max_seq_len\": 2048, \"no_bias\": true, \"expansion_ratio\": 4,"
         "\"learned_pos_emb\": true, \"norm_type\": \"low_precision_layernorm\","
         "\"attn_config\": {\"alibi\": true, \"alibi_bias_max\": 8, \"clip_qkv\": null,"
         "\"attn_type\": \"multihead_attention\", \"qk_ln\": false, \"prefix_lm\": false}}",
         6649286656},
    };
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(ModelNetwork) network = read_config(cases[i].text, &error);
        g_assert_no_error(error);
        g_assert_cmpuint(parameters_of(network->text), ==, cases[i].parameters);
        bool slides = strstr(cases[i].text, "\"sliding_window\": 4096") != NULL;
        g_assert_true(!slides || network->seq == 4096);
        g_assert_true(!strstr(cases[i].text, "131072") || network->seq == 131072);
        double base = strstr(cases[i].text, "500000.0") ? 500000 : 10000;
        g_assert_cmpfloat(network->rope_base, ==, base);
    }
}

static void bad_configs(void) {
    static const struct {
        const char *text, *expected;
    } cases[] = {
        {"{\"model_type\": \"bloom\"}",
         "model_type 'bloom' is not known; it is one of gpt2, llama"},
        {"{\"n_layer\": 1}", "the field 'model_type' is missing"},
        {"{\"model_type\": \"gpt2\", \"n_layer\": 12}", "the field 'n_embd' is missing"},
        {"{\"model_type\": \"gpt2\", \"n_layer\": \"12\"}", "the field 'n_layer' must be a number"},
        {"{\"model_type\": \"mpt\", \"n_layers\"", "not JSON"},
        {"{\"model_type\": \"mpt\", \"d_model\": 768, \"n_heads\": 12, \"n_layers\": 12,"
         "\"vocab_size\": 50368, \"max_seq_len\": 2048, \"learned_pos_emb\": false,"
         "\"attn_config\": {\"alibi\": false}}",
         "an MPT without positions is not known"},
        {"{\"model_type\": \"mpt\", \"d_model\": 768, \"n_heads\": 12, \"n_layers\": 12,"
         "\"vocab_size\": 50368, \"max_seq_len\": 2048,"
         "\"attn_config\": {\"clip_qkv\": 6}}",
         "attn_config.clip_qkv of an MPT is not known"},
        {"{\"model_type\": \"mpt\", \"d_model\": 768, \"n_heads\": 12, \"n_layers\": 12,"
         "\"vocab_size\": 50368, \"max_seq_len\": 2048, \"expansion_ratio\": \"4\"}",
         "expansion_ratio must be a whole number from 1 to 64"},
        {"{\"model_type\": \"mpt\", \"d_model\": 768, \"n_heads\": 12, \"n_layers\": 12,"
         "\"vocab_size\": 50368, \"max_seq_len\": 2048, \"expansion_ratio\": 4611686018427387904}",
         "expansion_ratio must be a whole number from 1 to 64"},
        {"{\"model_type\": \"t5\", \"d_model\": 512, \"d_kv\": 64, \"d_ff\": 1024, \"num_layers\": "
         "8,"
         "\"num_decoder_layers\": \"8\", \"num_heads\": 6, \"vocab_size\": 32128}",
         "num_decoder_layers differs from num_layers"},
        {"{\"model_type\": \"t5\", \"d_model\": 512, \"d_kv\": 64, \"d_ff\": 1024, \"num_layers\": "
         "8,"
         "\"relative_attention_num_buckets\": 64, \"num_heads\": 6, \"vocab_size\": 32128}",
         "relative_attention_num_buckets is not 32"},
        {"{\"model_type\": \"mistral\", \"hidden_size\": 4096, \"intermediate_size\": 14336,"
         "\"num_hidden_layers\": 32, \"num_attention_heads\": 32, \"vocab_size\": 32000}",
         "the field 'max_position_embeddings' is missing"},
        {"{\"model_type\": \"llama\", \"hidden_size\": 64, \"intermediate_size\": 256,"
         "\"num_hidden_layers\": 2, \"num_attention_heads\": 4, \"vocab_size\": 96,"
         "\"max_position_embeddings\": 32, \"rope_parameters\": {\"rope_theta\": \"10000\"}}",
         "the field 'rope_theta' must be a number"},
        {"{\"model_type\": \"gpt2\", \"n_layer\": 12, \"n_embd\": -768, \"n_head\": 12,"
         "\"vocab_size\": 50257, \"n_positions\": 1024}",
         "width must be a whole number from 1"},
    };
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(ModelNetwork) network = read_config(cases[i].text, &error);
        g_assert_null(network);
        g_test_message("%s", error->message);
        g_assert_nonnull(strstr(error->message, cases[i].expected));
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
    g_assert_cmpuint(graph->parameters->len, ==, G_N_ELEMENTS(expected));
    for (unsigned i = 0; i < G_N_ELEMENTS(expected); i++) {
        g_assert_cmpstr(plan_graph_at(graph->parameters, PlanGraphParameter, i)->name, ==,
                        expected[i]);
    }
}

static void bad_files(void) {
    static const struct {
        const char *text, *expected;
    } cases[] = {
        {"[network]\nlayers=2\n", "n.ini: [network] has no 'family'"},
        {"[network]\nfamily=gtp\n",
         "n.ini:2: unknown family 'gtp'; it is one of gpt, mpt, llama, t5, mlp"},
        {"[network]\nfamily=mlp\nlayers=2\nwidth=8\n", "n.ini: [network] lacks 'seq'"},
        {"[network]\nfamily=mlp\nlayers=0\nwidth=8\nseq=1\n", "n.ini:3: layers must be"},
        {"[network]\nfamily=mlp\nlayers=2\nwidth=8\nseq=1\nheads=2\n",
         "n.ini:6: family mlp has no key 'heads'"},
        {"[network]\nfamily=gpt\nlayers=2\nwidth=8\nheads=2\nvocab=4\nseq=4\nattention=math-fp32\n",
         "n.ini:8: attention = math-fp32 is of family llama"},
        {"[network]\nfamily=gpt\nlayers=2\nwidth=8\nheads=2\nvocab=4\nseq=4\nattention=flash\n",
         "n.ini:8: attention must be kernel, math or math-fp32"},
        {"[network]\nfamily=gpt\nlayers=2\nwidth=8\nheads=3\nvocab=4\nseq=4\n",
         "n.ini:5: width 8 does not divide by 3 heads"},
        {"[network]\nfamily=llama\nlayers=2\nwidth=6\nheads=2\nvocab=4\nseq=4\nffn=8\n",
         "n.ini:5: a head of family llama has 3 numbers"},
        {"[network]\nfamily=llama\nlayers=2\nwidth=6\nheads=2\nhead_dim=1\nvocab=4\nseq=4\nffn=8\n",
         "n.ini:6: a head of family llama has 1 numbers"},
        {"[network]\nfamily=gpt\nlayers=2\nwidth=8\nheads=2\nvocab=4\nseq=4\ntied=maybe\n",
         "n.ini:8: tied must be yes or no"},
        {"[network]\nfamily=gpt\nlayers=2\nwidth=8\nheads=2\nvocab=4\nseq=4\nloss=bf16\n",
         "n.ini:8: loss must be model, ops, fp32 or metered"},
        {"[strategy]\nranks=2\n", "n.ini: [network] has no 'family'"},
        {"family=gpt\n", "n.ini: [network] has no 'family'"},
    };
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(ModelNetwork) network =
            model_network_read(cases[i].text, strlen(cases[i].text), "n.ini", &error);
        g_assert_null(network);
        g_assert_nonnull(error);
        if (!g_str_has_prefix(error->message, cases[i].expected)) {
            g_test_message("expected '%s', got '%s'", cases[i].expected, error->message);
            g_test_fail();
        }
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
            network, &(ModelPass){.batch = 1, .dtype = cases[i].dtype, .fused = cases[i].fused},
            &error);
        g_assert_no_error(error);
        unsigned casts = 0, fused_losses = 0;
        for (uint32_t k = 0; k < graph->ops->len; k++) {
            uint32_t kind = plan_graph_at(graph->ops, PlanGraphOp, k)->kind;
            casts += kind == PLAN_OP_CAST;
            fused_losses += kind == PLAN_OP_CROSS_ENTROPY;
        }
        g_assert_cmpuint(casts, ==, cases[i].casts);
        g_assert_cmpuint(fused_losses, ==, cases[i].fused_losses);
        g_assert_cmpint(plan_graph_at(graph->values, PlanGraphValue, graph->loss)->dtype, ==,
                        cases[i].expected);
    }
}

static unsigned count_ops(const PlanGraph *graph, uint32_t first_step, uint32_t end_step,
                          PlanOpKind kind) {
    unsigned n = 0;
    for (uint32_t i = first_step; i < end_step; i++) {
        const PlanGraphStep *step = plan_graph_at(graph->steps, PlanGraphStep, i);
        n += step->kind == PLAN_STEP_OP &&
             plan_graph_at(graph->ops, PlanGraphOp, step->index)->kind == kind;
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
    uint32_t trained = graph->n_train_steps, all = graph->steps->len;
    g_assert_cmpuint(count_ops(graph, 0, trained, PLAN_OP_CROSS_ENTROPY), ==, 1);
    g_assert_cmpuint(count_ops(graph, 0, trained, PLAN_OP_LOG_SOFTMAX), ==, 0);
    g_assert_cmpuint(count_ops(graph, trained, all, PLAN_OP_LOG_SOFTMAX), ==, 2);
    g_assert_cmpuint(count_ops(graph, trained, all, PLAN_OP_CAST), ==, 2);
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
                          .fused = fused,
                          .rms_norm_of_ops = true};
        g_autoptr(PlanGraph) graph = model_network_emit(network, &pass, NULL);
        uint32_t all = graph->steps->len, tables = 2 * !is_fp32;
        g_assert_cmpuint(count_ops(graph, 0, all, PLAN_OP_MUL_ROW), ==, fused ? 0 : 3);
        g_assert_cmpuint(count_ops(graph, 0, all, PLAN_OP_POWER), ==, fused ? 0 : 6);
        g_assert_cmpuint(count_ops(graph, 0, all, PLAN_OP_CAST), ==,
                         tables + (fused || is_fp32 ? 0 : 6));
        g_assert_cmpuint(count_ops(graph, 0, all, PLAN_OP_RMSNORM) +
                             count_ops(graph, 0, all, PLAN_OP_ADD_RMSNORM),
                         ==, fused ? 3 : 0);
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
            uint32_t all = graph->steps->len, tables = 2 * !is_fp32;
            g_assert_cmpuint(count_ops(graph, 0, all, PLAN_OP_SOFTMAX), ==, 3);
            g_assert_cmpuint(count_ops(graph, 0, all, PLAN_OP_CAST), ==,
                             tables + (i && !is_fp32 ? 6 : 0));
        }
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
        uint32_t all = graph->steps->len, n_biased = 0;
        for (guint o = 0; o < graph->ops->len; o++) {
            const PlanGraphOp *op = plan_graph_at(graph->ops, PlanGraphOp, o);
            n_biased +=
                op->kind == PLAN_OP_ATTENTION && plan_graph_ref(graph, op->values + 3) != PLAN_NONE;
        }
        g_assert_cmpuint(count_ops(graph, 0, all, PLAN_OP_SOFTMAX), ==, i == 2 ? 0 : 9);
        g_assert_cmpuint(count_ops(graph, 0, all, PLAN_OP_ATTENTION), ==, i == 2 ? 9 : 0);
        g_assert_cmpuint(n_biased, ==, i == 2 ? 6 : 0);
    }
}

static void too_long(void) {
    const char *text = "[network]\nfamily=gpt\nlayers=1\nwidth=8\nheads=2\nvocab=4\nseq=4\n";
    g_autoptr(ModelNetwork) network = model_network_read(text, strlen(text), "n.ini", NULL);
    g_autoptr(GError) error = NULL;
    g_autoptr(PlanGraph) graph =
        model_network_emit(network, &(ModelPass){.batch = 1, .seq = 5}, &error);
    g_assert_null(graph);
    g_assert_true(g_str_has_prefix(error->message, "seq 5 is longer than the 4 positions"));
}

static void mutated(void) {
    static const char text[] =
        "[network]\nfamily = gpt\nlayers = 1\nwidth = 8\nheads = 2\nvocab = 4\nseq = 4\n";
    g_autoptr(GRand) rand = g_rand_new_with_seed(2);
    unsigned n_refused = 0;
    for (unsigned i = 0; i < 2000; i++) {
        char copy[sizeof text];
        memcpy(copy, text, sizeof text);
        gsize length = (gsize)g_rand_int_range(rand, 1, sizeof text);
        copy[g_rand_int_range(rand, 0, (gint32)length)] = (char)g_rand_int_range(rand, 0, 256);
        g_autoptr(GError) error = NULL;
        g_autoptr(ModelNetwork) network = model_network_read(copy, length, "n.ini", &error);
        g_assert_true((network == NULL) == (error != NULL));
        n_refused += network == NULL;
    }
    g_assert_cmpuint(n_refused, >, 1000);
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/models/config.json/becomes a network", configs);
    g_test_add_func("/models/config.json/bad ones name the field", bad_configs);
    g_test_add_func("/models/network/files have their published size", files_count);
    g_test_add_func("/models/network/parameter counts are exact", counts);
    g_test_add_func("/models/network/names are PyTorch's", names);
    g_test_add_func("/models/network/bad files name line and remedy", bad_files);
    g_test_add_func("/models/network/loss", loss);
    g_test_add_func("/models/network/too long a sequence", too_long);
    g_test_add_func("/models/network/mutations end in a message", mutated);
    g_test_add_func("/models/network/metered", metered);
    g_test_add_func("/models/network/rms norm of ops", rms_norm_of_ops);
    g_test_add_func("/models/network/softmax in fp32", softmax_in_fp32);
    g_test_add_func("/models/network/attention of T5", attention_of_t5);
    return g_test_run();
}
