/* config.json files as they are published: parameters, the longest sequence, what is left out, and
 * messages that name the field.
 *
 * The fields were written by hand from the models' own files, with those that mean nothing here
 * among them. Counts are those of the published weights, but where "by hand" stands.
 */
#include <glib/gstdio.h>
#include <string.h>

#include "tests/models/configs.h"
#include "tests/models/parameters.h"

/* ---- published files ------------------------------------------------------------------------ */

static const struct {
    const char *name, *text;
    uint64_t parameters, seq;
    double rope_base;
    const char *rope_scaling, *dropouts;
    uint64_t window;
} published[] = {
#define GPT2_DROPS "resid_pdrop 0.1, embd_pdrop 0.1, attn_pdrop 0.1"
    {"gpt2", GPT2(12, 768, 12), 124439808, 1024, 10000, NULL, GPT2_DROPS},
    {"gpt2-medium", GPT2(24, 1024, 16), 354823168, 1024, 10000, NULL, GPT2_DROPS},
    {"gpt2-large", GPT2(36, 1280, 20), 774030080, 1024, 10000, NULL, GPT2_DROPS},
    {"gpt2-xl", GPT2(48, 1600, 25), 1557611200, 1024, 10000, NULL, GPT2_DROPS},
    {"distilgpt2", GPT2(6, 768, 12), 81912576, 1024, 10000, NULL, GPT2_DROPS},

    /* Llama 2 7B and 13B name no num_key_value_heads in some copies: as many as heads. */
    {"Llama-2-7b", LLAMA(32, 4096, 32, 11008, LLAMA_2), 6738415616, 4096, 10000},
    {"Llama-2-13b", LLAMA(40, 5120, 40, 13824, LLAMA_2), 13015864320, 4096, 10000},
    {"Llama-2-70b", LLAMA(80, 8192, 64, 28672, LLAMA_2 ", \"num_key_value_heads\": 8"), 68976648192,
     4096, 10000},
    {"Meta-Llama-3-8B",
     LLAMA(32, 4096, 32, 14336,
           "\"max_position_embeddings\": 8192, \"num_key_value_heads\": 8, \"rope_scaling\": null,"
           "\"rope_theta\": 500000.0, \"tie_word_embeddings\": false, \"vocab_size\": 128256"),
     8030261248, 8192, 500000},
    {"Llama-3.1-8B", LLAMA(32, 4096, 32, 14336, LLAMA_3(8.0, false)), 8030261248, 131072, 500000,
     "llama3"},
    {"Llama-3.1-70B", LLAMA(80, 8192, 64, 28672, LLAMA_3(8.0, false)), 70553706496, 131072, 500000,
     "llama3"},
    {"Llama-3.1-405B", LLAMA(126, 16384, 128, 53248, LLAMA_3(8.0, false)), 405853388800, 131072,
     500000, "llama3"},
    {"Llama-3.2-1B", LLAMA(16, 2048, 32, 8192, LLAMA_3(32.0, true) ", \"head_dim\": 64"),
     1235814400, 131072, 500000, "llama3"},
    {"Llama-3.2-3B", LLAMA(28, 3072, 24, 8192, LLAMA_3(32.0, true) ", \"head_dim\": 128"),
     3212749824, 131072, 500000, "llama3"},
    /* As transformers 5 writes it: base and scaling in one object. */
    {"Llama-3.2-3B",
     LLAMA(28, 3072, 24, 8192,
           "\"dtype\": \"bfloat16\", \"head_dim\": 128, \"max_position_embeddings\": 131072,"
           "\"num_key_value_heads\": 8, \"rope_parameters\": {\"factor\": 32.0,"
           "\"rope_theta\": 500000.0, \"rope_type\": \"llama3\"}, \"tie_word_embeddings\": true,"
           "\"vocab_size\": 128256"),
     3212749824, 131072, 500000, "llama3"},
    /* As long-context copies of Llama 2 wrote it: "type". */
    {"Llama-2-7b, 32K",
     LLAMA(32, 4096, 32, 11008,
           "\"max_position_embeddings\": 32768, \"num_key_value_heads\": 32, \"rope_scaling\":"
           "{\"factor\": 8.0, \"type\": \"linear\"}, \"tie_word_embeddings\": false,"
           "\"vocab_size\": 32000"),
     6738415616, 32768, 10000, "linear"},

    {"Mistral-7B-v0.1",
     MISTRAL(32, 4096, 14336, 32000,
             "\"max_position_embeddings\": 32768, \"rope_theta\": 10000.0,"
             "\"sliding_window\": 4096"),
     7241732096, 32768, 10000, NULL, NULL, 4096},
    {"Mistral-7B-v0.3",
     MISTRAL(32, 4096, 14336, 32768,
             "\"max_position_embeddings\": 32768, \"rope_theta\": 1000000.0,"
             "\"sliding_window\": null"),
     7248023552, 32768, 1000000},
    {"Mistral-Nemo-Base-2407",
     MISTRAL(40, 5120, 14336, 131072,
             "\"head_dim\": 128, \"max_position_embeddings\": 128000, \"rope_theta\": 1000000.0,"
             "\"sliding_window\": null"),
     12247782400, 128000, 1000000},
    {"Mistral-Small-24B-Base-2501",
     MISTRAL(40, 5120, 32768, 131072,
             "\"head_dim\": 128, \"max_position_embeddings\": 32768, \"rope_theta\": 100000000.0,"
             "\"sliding_window\": null"),
     23572403200, 32768, 100000000},
    /* transformers' Mistral slides unless the file says null. */
    {"a Mistral without sliding_window",
     MISTRAL(32, 4096, 14336, 32000, "\"max_position_embeddings\": 32768"), 7241732096, 32768,
     10000, NULL, NULL, 4096},

    {"Qwen2-0.5B",
     QWEN2(24, 896, 14, 2, 4864, 151936, true,
           "\"max_position_embeddings\": 131072, \"sliding_window\": 131072"),
     494032768, 131072, 1000000},
    {"Qwen2-1.5B",
     QWEN2(28, 1536, 12, 2, 8960, 151936, true,
           "\"max_position_embeddings\": 131072, \"sliding_window\": 131072"),
     1543714304, 131072, 1000000},
    {"Qwen2-7B",
     QWEN2(28, 3584, 28, 4, 18944, 152064, false,
           "\"max_position_embeddings\": 131072, \"sliding_window\": 131072"),
     7615616512, 131072, 1000000},
    {"Qwen2-72B",
     QWEN2(80, 8192, 64, 8, 29568, 152064, false,
           "\"max_position_embeddings\": 131072, \"sliding_window\": null"),
     72706203648, 131072, 1000000},
    {"Qwen2.5-3B",
     QWEN2(36, 2048, 16, 2, 11008, 151936, true,
           "\"max_position_embeddings\": 32768, \"sliding_window\": 32768"),
     3085938688, 32768, 1000000},
    {"Qwen2.5-32B",
     QWEN2(64, 5120, 40, 8, 27648, 152064, false,
           "\"max_position_embeddings\": 131072, \"sliding_window\": 131072"),
     32763876352, 131072, 1000000},

    {"Qwen3-4B", QWEN3(36, 2560, 32, 9728, true, ", \"head_dim\": 128"), 4022468096, 40960,
     1000000},
    {"Qwen3-8B", QWEN3(36, 4096, 32, 12288, false, ", \"head_dim\": 128"), 8190735360, 40960,
     1000000},
    {"Qwen3-32B", QWEN3(64, 5120, 64, 25600, false, ", \"head_dim\": 128"), 32762123264, 40960,
     1000000},
    /* transformers' Qwen 3 has heads of 128 unless the file says otherwise. */
    {"a Qwen3-32B without head_dim", QWEN3(64, 5120, 64, 25600, false, ""), 32762123264, 40960,
     1000000},

    {"Mixtral-8x7B-v0.1", MIXTRAL(", \"output_router_logits\": false, \"rope_theta\": 1000000.0"),
     46702792704, 32768, 1000000},
    {"a Mixtral without rope_theta", MIXTRAL(""), 46702792704, 32768, 1000000},
    {"Qwen3-30B-A3B",
     QWEN3_MOE(", \"decoder_sparse_step\": 1, \"mlp_only_layers\": [], \"num_experts\": 128"),
     30532122624, 40960, 1000000},
    {"a Qwen3-30B-A3B as transformers 5 may write it", QWEN3_MOE(", \"num_local_experts\": 128"),
     30532122624, 40960, 1000000},

    {"OLMo-2-1124-7B", OLMO2(32, 4096, 32, 32, 11008), 7298617344, 4096, 500000},
    {"OLMo-2-1124-13B", OLMO2(40, 5120, 40, 40, 13824), 13716198400, 4096, 500000},

#define T5_DROPS "dropout_rate 0.1"
    {"t5-small", T5(6, 512, 8, 64, 2048, T5_1_0), 60506624, 512, 10000, NULL, T5_DROPS},
    {"t5-base", T5(12, 768, 12, 64, 3072, T5_1_0), 222903552, 512, 10000, NULL, T5_DROPS},
    {"t5-large", T5(24, 1024, 16, 64, 4096, T5_1_0), 737668096, 512, 10000, NULL, T5_DROPS},
    {"t5-3b", T5(24, 1024, 32, 128, 16384, T5_1_0), 2851598336, 512, 10000, NULL, T5_DROPS},
    {"t5-11b", T5(24, 1024, 128, 128, 65536, T5_1_0), 11307321344, 512, 10000, NULL, T5_DROPS},
    {"flan-t5-small", T5(8, 512, 6, 64, 1024, T5_1_1(8)), 76961152, 512, 10000, NULL, T5_DROPS},
    {"flan-t5-base", T5(12, 768, 12, 64, 2048, T5_1_1(12)), 247577856, 512, 10000, NULL, T5_DROPS},
    {"flan-t5-large", T5(24, 1024, 16, 64, 2816, T5_1_1(24)), 783150080, 512, 10000, NULL,
     T5_DROPS},
    {"flan-t5-xl", T5(24, 2048, 32, 64, 5120, T5_1_1(24)), 2849757184, 512, 10000, NULL, T5_DROPS},
    {"t5-v1_1-xxl", T5(24, 4096, 64, 64, 10240, T5_1_1(24)), 11135332352, 512, 10000, NULL,
     T5_DROPS},

    {"mt5-small", MT5(8, 512, 6, 1024), 300176768, 512, 10000, NULL, T5_DROPS},
    {"mt5-base", MT5(12, 768, 12, 2048), 582401280, 512, 10000, NULL, T5_DROPS},
    {"mt5-xxl", MT5(24, 4096, 64, 10240), 12921057280, 512, 10000, NULL, T5_DROPS},

    {"mpt-7b", MPT(32, 4096, 32, 2048), 6649286656, 2048, 10000},
    /* By hand: 48 blocks of 12 * 7168^2 and two norms, a table of 50432 rows, the last norm. */
    {"mpt-30b", MPT(48, 7168, 64, 8192),
     48 * (12ULL * 7168 * 7168 + 2 * 7168) + 50432ULL * 7168 + 7168, 8192, 10000},

    {"pythia-70m", NEOX(6, 512, 8, 2048, 50304), 70426624, 2048, 10000},
    {"pythia-1b", NEOX(16, 2048, 8, 8192, 50304), 1011781632, 2048, 10000},
    {"pythia-6.9b", NEOX(32, 4096, 32, 16384, 50432), 6857302016, 2048, 10000},
    {"pythia-12b", NEOX(36, 5120, 40, 20480, 50688), 11846072320, 2048, 10000},
    {"opt-125m", OPT(12, 768, 12, 3072, ", \"do_layer_norm_before\": true"), 125239296, 2048, 10000,
     NULL, "dropout 0.1"},
    {"opt-1.3b", OPT(24, 2048, 32, 8192, ", \"word_embed_proj_dim\": 2048"), 1315758080, 2048,
     10000, NULL, "dropout 0.1"},
    {"opt-6.7b", OPT(32, 4096, 32, 16384, ", \"enable_bias\": true"), 6658473984, 2048, 10000, NULL,
     "dropout 0.1"},
#define STARCODER2_DROPS "residual_dropout 0.1, embedding_dropout 0.1, attention_dropout 0.1"
    {"starcoder2-3b", STARCODER2(30, 3072, 24, 2, 12288, 999999.4420358813), 3030371328, 4096,
     999999.4420358813, NULL, STARCODER2_DROPS},
    {"starcoder2-7b", STARCODER2(32, 4608, 36, 4, 18432, 1000000), 7173923840, 4096, 1000000, NULL,
     STARCODER2_DROPS},
    {"phi-1_5", PHI(24, 2048, 8192, 0.5), 1418270720, 2048, 10000, NULL, "resid_pdrop 0.1"},
    {"phi-2", PHI(32, 2560, 10240, 0.4), 2779683840, 2048, 10000, NULL, "resid_pdrop 0.1"},

    /* By hand: a hidden layer of 1000 where 4 times the width would be 2048. */
    {"a GPT-2 with n_inner",
     "{\"model_type\": \"gpt2\", \"n_layer\": 2, \"n_embd\": 512, \"n_head\": 8, \"n_inner\": 1000,"
     "\"vocab_size\": 100, \"n_positions\": 64, \"resid_pdrop\": 0, \"embd_pdrop\": 0.0,"
     "\"attn_pdrop\": 0.25}",
     164 * 512 + 2 * 512 + 2 * (4 * 512 * 512 + 4 * 512 + 2 * 512 * 1000 + 1000 + 512 + 4 * 512),
     64, 10000, NULL, "attn_pdrop 0.25"},
    /* Of llm-foundry's trainer: learned positions and biases; by default it drops nothing. */
    {"an MPT without ALiBi",
     "{\"model_type\": \"mpt\", \"d_model\": 768, \"n_heads\": 12, \"n_layers\": 12,"
     "\"vocab_size\": 50368, \"max_seq_len\": 2048, \"attn_config\": {\"alibi\": false}}",
     125311488, 2048, 10000},
};

static void becomes_a_network(gconstpointer data) {
    unsigned i = GPOINTER_TO_UINT(data);
    g_autoptr(GError) error = NULL;
    g_autoptr(ModelNetwork) network = read_config(published[i].text, &error);
    g_assert_no_error(error);
    g_assert_cmpuint(parameters_of(network), ==, published[i].parameters);
    g_assert_cmpuint(network->seq, ==, published[i].seq);
    g_assert_cmpfloat(network->rope_base, ==, published[i].rope_base);
    const char *eps = strstr(published[i].text, "rms_norm_eps\":");
    if (eps) {
        g_assert_cmpfloat(network->norm_eps, ==,
                          g_ascii_strtod(eps + strlen("rms_norm_eps\":"), NULL));
    }
    g_assert_cmpstr(network->rope_scaling, ==, published[i].rope_scaling);
    g_assert_cmpstr(network->dropouts, ==, published[i].dropouts);
    g_assert_cmpuint(network->window, ==, published[i].window);
}

/* Weights in fewer bits are told of, and planned as any. */
static void says_what_is_quantized(void) {
    static const struct {
        const char *text, *quantized;
    } cases[] = {
        {"{\"quant_method\": \"bitsandbytes\", \"load_in_4bit\": true}", "bitsandbytes"},
        {"{\"bits\": 4}", "of an unnamed kind"},
        {"null", NULL},
    };
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;
        g_autofree char *text = g_strdup_printf(
            LLAMA(2, 64, 4, 128, LLAMA_2 ", \"quantization_config\": %s"), cases[i].text);
        g_autoptr(ModelNetwork) network = read_config(text, &error);
        g_assert_no_error(error);
        g_assert_cmpstr(network->quantized, ==, cases[i].quantized);
    }
}

/* Which of q and k is normalized, and where a block's norms stand. */
static void says_what_is_normalized(void) {
    static const struct {
        const char *text;
        ModelQkNorm qk_norm;
        ModelNormAt norm_at;
    } cases[] = {
        {LLAMA(2, 64, 4, 160, LLAMA_2), MODEL_QK_NORM_NONE, MODEL_NORM_BEFORE},
        {QWEN3(2, 64, 8, 160, false, ""), MODEL_QK_NORM_HEAD, MODEL_NORM_BEFORE},
        {OLMO2(2, 64, 4, 4, 160), MODEL_QK_NORM_WIDTH, MODEL_NORM_AFTER},
    };
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(ModelNetwork) network = read_config(cases[i].text, &error);
        g_assert_no_error(error);
        g_assert_cmpint(network->qk_norm, ==, cases[i].qk_norm);
        g_assert_cmpint(network->norm_at, ==, cases[i].norm_at);
    }
}

/* Wrappers go by the classes that transformers has, an activation's among them. */
static void activations_have_their_classes(void) {
    static const struct {
        const char *json, *class_name;
    } kinds[] = {
        {SMALL("exaone4", "\"num_key_value_heads\": 2, \"sliding_window\": null"),
         "SiLUActivation"},
        {SMALL("gemma", "\"num_key_value_heads\": 2, \"hidden_act\": \"gelu\""), "GELUActivation"},
        {SMALL("gemma3_text", "\"rope_theta\": 500000.0"), "GELUTanh"},
        {SMALL("arcee", "\"num_key_value_heads\": 2"), "ReLUSquaredActivation"},
    };
    for (unsigned i = 0; i < G_N_ELEMENTS(kinds); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(ModelNetwork) network = read_config(kinds[i].json, &error);
        g_assert_no_error(error);
        ModelPass pass = {.batch = 1, .seq = 4};
        g_autoptr(PlanGraph) graph = model_network_emit(network, &pass, &error);
        g_assert_no_error(error);
        bool found = false;
        for (guint m = 0; m < graph->modules.len; m++) {
            const PlanGraphModule *module = plan_graph_module_at(graph, m);
            found |= g_str_equal(module->name, "model.layers.0.mlp.act_fn") &&
                     g_str_equal(module->class_name, kinds[i].class_name);
        }
        g_assert_true(found);
    }
}

/* Gemma 3's angles stand in other fields where transformers 5 has written the file. */
static void says_both_bases(void) {
    static const char *const texts[] = {
        SMALL("gemma3_text", "\"rope_theta\": 500000.0, \"rope_local_base_freq\": 1000.0"),
        SMALL("gemma3_text", "\"rope_parameters\": {\"full_attention\": {\"rope_type\": \"linear\","
                             "\"factor\": 8.0, \"rope_theta\": 500000.0}, \"sliding_attention\":"
                             "{\"rope_type\": \"default\", \"rope_theta\": 1000.0}}")};
    for (unsigned i = 0; i < G_N_ELEMENTS(texts); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(ModelNetwork) network = read_config(texts[i], &error);
        g_assert_no_error(error);
        g_assert_cmpfloat(network->rope_base, ==, 500000);
        g_assert_cmpfloat(network->local_rope_base, ==, 1000);
        g_assert_cmpfloat(network->norm_eps, ==, 1e-6); /* Gemma 3's, where its file is silent */
        g_assert_cmpuint(network->global_every, ==, 6);
        g_assert_cmpstr(network->rope_scaling, ==, i ? "linear" : NULL);
    }
}

/* A sequence longer than its own is refused; where a window does not end it, it may have more. */
static void says_where_sequences_end(void) {
    static const struct {
        const char *text, *said;
    } cases[] = {
        {MISTRAL(2, 64, 160, 100, "\"max_position_embeddings\": 64"),
         "; lower seq, or let it have more: --network-key seq=5000"},
        {STARCODER2(2, 64, 4, 2, 256, 1000), "; lower seq: its sliding_window ends there"},
    };
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(ModelNetwork) network = read_config(cases[i].text, &error);
        g_assert_no_error(error);
        g_assert_null(model_network_emit(network, &(ModelPass){.batch = 1, .seq = 5000}, &error));
        g_assert_error(error, PLAN_ERROR, PLAN_ERROR_VALUE);
        g_assert_nonnull(strstr(error->message, cases[i].said));
    }
}

/* OLMo 3's files have a base for all blocks, as published and as transformers 5 writes it. */
static void says_which_blocks_slide(void) {
    static const char *const texts[] = {
        SMALL("olmo3", "\"rope_theta\": 1000.0, \"sliding_window\": 16, \"rope_scaling\":"
                       "{\"rope_type\": \"yarn\", \"factor\": 8.0}"),
        SMALL("olmo3", "\"sliding_window\": 16, \"rope_parameters\": {\"full_attention\": "
                       "{\"rope_type\": \"yarn\", \"factor\": 8.0, \"rope_theta\": 1000.0},"
                       "\"sliding_attention\": {\"rope_type\": \"default\","
                       "\"rope_theta\": 1000.0}}")};
    for (unsigned i = 0; i < G_N_ELEMENTS(texts); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(ModelNetwork) network = read_config(texts[i], &error);
        g_assert_no_error(error);
        g_assert_cmpfloat(network->rope_base, ==, 1000);
        g_assert_cmpfloat(network->local_rope_base, ==, 1000);
        g_assert_cmpstr(network->rope_scaling, ==, "yarn");
        g_assert_cmpuint(network->global_every, ==, 4);
        g_assert_cmpuint(network->window, ==, 16);
        g_assert_cmpint(network->qk_norm, ==, MODEL_QK_NORM_WIDTH);
        g_assert_cmpint(network->norm_at, ==, MODEL_NORM_AFTER);
    }
}

/* Whose modules a run has: transformers' where these were recorded. */
static void says_whose_code_it_is(void) {
    static const struct {
        const char *text;
        ModelCode code;
        ModelLoss loss;
    } cases[] = {
        {LLAMA(2, 64, 4, 160, LLAMA_2), MODEL_CODE_TRANSFORMERS, MODEL_LOSS_MODEL},
        {MISTRAL(2, 64, 160, 100, "\"max_position_embeddings\": 64"), MODEL_CODE_TRANSFORMERS,
         MODEL_LOSS_MODEL},
        {QWEN2(2, 64, 4, 2, 160, 100, true,
               "\"max_position_embeddings\": 64, \"sliding_window\": 64"),
         MODEL_CODE_TRANSFORMERS, MODEL_LOSS_MODEL},
        {QWEN3(2, 64, 8, 160, false, ""), MODEL_CODE_TRANSFORMERS, MODEL_LOSS_MODEL},
        {SMALL("olmo", "\"clip_qkv\": null"), MODEL_CODE_TRANSFORMERS, MODEL_LOSS_MODEL},
        {SMALL("glm4", "\"head_dim\": 16"), MODEL_CODE_TRANSFORMERS, MODEL_LOSS_MODEL},
        {SMALL("cohere", "\"logit_scale\": 0.5"), MODEL_CODE_TRANSFORMERS, MODEL_LOSS_MODEL},
        {SMALL("cohere2", "\"sliding_window\": 8"), MODEL_CODE_TRANSFORMERS, MODEL_LOSS_MODEL},
        {SMALL("ernie4_5", "\"head_dim\": 16"), MODEL_CODE_TRANSFORMERS, MODEL_LOSS_MODEL},
        {SMALL("helium", "\"head_dim\": 16, \"num_key_value_heads\": 2"), MODEL_CODE_TRANSFORMERS,
         MODEL_LOSS_MODEL},
        {OLMO2(2, 64, 4, 4, 160), MODEL_CODE_TRANSFORMERS, MODEL_LOSS_MODEL},
        {SMALL("olmoe", "\"num_experts\": 8, \"num_experts_per_tok\": 2"), MODEL_CODE_TRANSFORMERS,
         MODEL_LOSS_MODEL},
        {SMALL("gpt_oss", "\"num_key_value_heads\": 2, \"sliding_window\": 8"),
         MODEL_CODE_TRANSFORMERS, MODEL_LOSS_MODEL},
        {SMALL("granitemoe", "\"num_local_experts\": 8, \"num_experts_per_tok\": 2"),
         MODEL_CODE_OWN, MODEL_LOSS_FP32},
        {MIXTRAL(""), MODEL_CODE_TRANSFORMERS, MODEL_LOSS_MODEL},
        {QWEN3_MOE(", \"num_experts\": 128"), MODEL_CODE_TRANSFORMERS, MODEL_LOSS_MODEL},
        {GPT2(2, 64, 4), MODEL_CODE_OWN, MODEL_LOSS_FP32},
        {T5(2, 64, 4, 16, 128, T5_1_0), MODEL_CODE_OWN, MODEL_LOSS_MODEL},
        {MPT(2, 64, 4, 64), MODEL_CODE_OWN, MODEL_LOSS_MODEL},
    };
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(ModelNetwork) network = read_config(cases[i].text, &error);
        g_assert_no_error(error);
        g_assert_cmpint(network->code, ==, cases[i].code);
        g_assert_cmpint(network->loss, ==, cases[i].loss);
    }
}

/* What is read back from a plan or a trace is the network's text alone. */
static void says_scaling_in_its_text(void) {
    const char *text = LLAMA(2, 64, 8, 160, LLAMA_3(8.0, false));
    g_autoptr(ModelNetwork) network = read_config(text, NULL);
    g_autoptr(ModelNetwork) again =
        model_network_read(network->text, strlen(network->text), "again.ini", NULL);
    g_assert_cmpstr(again->rope_scaling, ==, "llama3");
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    for (unsigned i = 0; i < G_N_ELEMENTS(published); i++) {
        g_autofree char *path =
            g_strdup_printf("/models/config.json/%02u %s", i, published[i].name);
        g_test_add_data_func(path, GUINT_TO_POINTER(i), becomes_a_network);
    }
    g_test_add_func("/models/config.json/says scaling in its text", says_scaling_in_its_text);
    g_test_add_func("/models/config.json/says what is normalized", says_what_is_normalized);
    g_test_add_func("/models/config.json/says what is quantized", says_what_is_quantized);
    g_test_add_func("/models/config.json/says where sequences end", says_where_sequences_end);
    g_test_add_func("/models/config.json/says whose code it is", says_whose_code_it_is);
    g_test_add_func("/models/config.json/says both bases of Gemma 3", says_both_bases);
    g_test_add_func("/models/config.json/activations have their classes",
                    activations_have_their_classes);
    g_test_add_func("/models/config.json/says which blocks slide", says_which_blocks_slide);
    return g_test_run();
}
