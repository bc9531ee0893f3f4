/* Files config.json that are refused: the message names the field. */
#include <string.h>

#include "tests/models/configs.h"

static void bad_configs(void) {
    static const struct {
        const char *text, *expected;
    } cases[] = {
        {"{\"model_type\": \"xglm\"}",
         "model_type 'xglm' is not known; any other network can be traced in PyTorch "
         "(docs/own-network.md); known are gpt2, llama, mistral"},
        {"{\"model_type\": \"gpt_neox\", \"num_hidden_layers\": 2, \"hidden_size\": 64,"
         "\"num_attention_heads\": 4, \"vocab_size\": 100, \"intermediate_size\": 256,"
         "\"max_position_embeddings\": 2048, \"hidden_act\": \"gelu_fast\"}",
         "set that to plan nearly the same); a network that has it can be traced in PyTorch"},
        {SMALL("seed_oss", "\"attention_out_bias\": true"),
         "attention_out_bias and mlp_bias are not known; biases of q, k and v alone are"},
        {"{\"model_type\": \"opt\", \"num_hidden_layers\": 24, \"hidden_size\": 1024,"
         "\"num_attention_heads\": 16, \"vocab_size\": 50272, \"ffn_dim\": 4096,"
         "\"max_position_embeddings\": 2048, \"word_embed_proj_dim\": 512}",
         "word_embed_proj_dim differs from hidden_size"},
        {"{\"model_type\": \"gpt_neox\", \"num_hidden_layers\": 2, \"hidden_size\": 64,"
         "\"num_attention_heads\": 4, \"vocab_size\": 100, \"intermediate_size\": 256,"
         "\"max_position_embeddings\": 2048, \"rotary_pct\": 1.0}",
         "field 'rotary_pct': rotary_share must be a number above 0 and below 1"},
        {"{\"model_type\": \"deepseek_v2\", \"n_shared_experts\": 4611686018427387904,"
         "\"moe_intermediate_size\": 64, \"num_hidden_layers\": 2, \"hidden_size\": 64,"
         "\"num_attention_heads\": 4, \"vocab_size\": 96, \"intermediate_size\": 64,"
         "\"max_position_embeddings\": 32, \"n_routed_experts\": 4, \"num_experts_per_tok\": 2,"
         "\"kv_lora_rank\": 16, \"qk_nope_head_dim\": 16, \"qk_rope_head_dim\": 8,"
         "\"v_head_dim\": 16, \"topk_method\": \"greedy\"}",
         "n_shared_experts times moe_intermediate_size is too large"},
        {SMALL("olmoe", "\"num_experts\": 4, \"num_experts_per_tok\": 2, \"head_dim\": 8"),
         "head_dim is not hidden_size / num_attention_heads, which transformers' own OLMoE"},
        {SMALL("llama", "\"num_key_value_heads\": 1000000000000000019884624838656"),
         "kv_heads must be a whole number from 1 to 16384, not '1e+30'"},
        {SMALL("llama", "\"num_key_value_heads\": 18446744073709551615"),
         "not '1.8446744073709552e+19'"},
        {SMALL("llama", "\"num_key_value_heads\": Infinity"), "not '1e+308'"},
        {"{\"model_type\": \"mamba2\", \"time_step_limit\": [0.0, Infinity], \"scale\": -Infinity,"
         " \"of\": NaN, \"use_bias\": \"Infinity\"}",
         "model_type 'mamba2' is not known; any other network can be traced"},
        {"{\"model_type\": 7, \"use_bias\": true}", "the field 'model_type' must be a text"},
        {"{\"n_layer\": 1}", "the field 'model_type' is missing"},
        {"{\"model_type\": \"gpt2\", \"n_layer\": 12}", "the field 'n_embd' is missing"},
        {"{\"model_type\": \"gpt2\", \"n_layer\": \"12\"}", "the field 'n_layer' must be a number"},
        {"{\"model_type\": \"mpt\", \"n_layers\"", "not JSON"},
        {"{\"model_type\": \"mpt\", \"d_model\": 768, \"n_heads\": 12, \"n_layers\": 12,"
         "\"vocab_size\": 50368, \"max_seq_len\": 2048, \"learned_pos_emb\": false,"
         "\"attn_config\": {\"alibi\": false}}",
         "an MPT without positions is not known"},
        {"{\"model_type\": \"mpt\", \"d_model\": 768, \"n_heads\": 12, \"n_layers\": 12,"
         "\"vocab_size\": 50368, \"max_seq_len\": 2048, \"tie_word_embeddings\": false}",
         "an MPT without tie_word_embeddings is not known"},
        {OPT(2, 64, 4, 160, ", \"enable_bias\": false"), "enable_bias = false is not known"},
        {SMALL("starcoder2", "\"use_bias\": false"), "use_bias = false is not known"},
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
        {LLAMA(2, 64, 4, 160, LLAMA_2 ", \"rope_scaling\": \"llama3\""),
         "the field 'rope_scaling' must be an object or null"},
        {LLAMA(2, 64, 4, 160,
               "\"max_position_embeddings\": 32, \"vocab_size\": 96,"
               "\"rope_scaling\": {\"rope_type\": \"spiral\"}"),
         "rope_scaling must be linear, dynamic, yarn, longrope or llama3, not 'spiral'"},
        {"{\"model_type\": \"gpt2\", \"n_layer\": 12, \"n_embd\": 768, \"n_head\": 12,"
         "\"vocab_size\": 50257, \"n_positions\": 1024, \"reorder_and_upcast_attn\": true}",
         "a GPT-2 with reorder_and_upcast_attn is not known"},
        {"{\"model_type\": \"gpt2\", \"n_layer\": 12, \"n_embd\": -768, \"n_head\": 12,"
         "\"vocab_size\": 50257, \"n_positions\": 1024}",
         "field 'n_embd': width must be a whole number from 1"},
        {LLAMA(2, 64, 4, 160, "\"max_position_embeddings\": 0, \"vocab_size\": 96"),
         "field 'max_position_embeddings': seq must be"},
        {LLAMA(2, 64, 4, 160, LLAMA_2 ", \"attention_bias\": \"false\""),
         "the field 'attention_bias' must be true or false"},
        {QWEN3(2, 64, 8, 160, false, ", \"head_dim\": 7"),
         "field 'head_dim': a head of family llama has 7 numbers"},
        {MIXTRAL(", \"output_router_logits\": true"), "output_router_logits adds a loss"},
        {MIXTRAL(", \"router_jitter_noise\": 0.1"), "router_jitter_noise above 0 is not known"},
        {MIXTRAL(", \"router_jitter_noise\": \"a\""),
         "the field 'router_jitter_noise' must be a number"},
        {MIXTRAL(", \"attention_dropout\": \"a\""),
         "the field 'attention_dropout' must be a number"},
        {SMALL("gemma3_text", "\"query_pre_attn_scalar\": \"a\""),
         "the field 'query_pre_attn_scalar' must be a number"},
        {QWEN3_MOE(", \"num_experts\": 128, \"mlp_only_layers\": [0]"),
         "decoder_sparse_step must be 1 and mlp_only_layers empty"},
        {QWEN3_MOE(", \"num_experts\": 128, \"decoder_sparse_step\": 2"),
         "decoder_sparse_step must be 1 and mlp_only_layers empty"},
        {QWEN3_MOE(", \"num_experts\": 4"),
         "field 'num_experts_per_tok': a token goes to 8 experts, and there are 4"},
        {SMALL("granite", "\"logits_scaling\": 0"), "field 'logits_scaling': logits_scale must be"},
        {SMALL("granite", "\"residual_multiplier\": \"a\""),
         "the field 'residual_multiplier' must be a number"},
        {SMALL("smollm3", "\"no_rope_layers\": [1, 1, 0, 1]"), "1 elsewhere; block 3 differs"},
        {SMALL("smollm3", "\"no_rope_layer_interval\": 0"),
         "'no_rope_layer_interval' must be a whole number from 1"},
        {SMALL("gemma", "\"hidden_act\": \"silu\""), "hidden_act 'silu' is not known"},
        {SMALL("gemma3_text", "\"final_logit_softcapping\": 30.0"),
         "final_logit_softcapping is not known; set it to null"},
        {SMALL("gemma3_text", "\"use_bidirectional_attention\": true"),
         "use_bidirectional_attention is not known"},
        {SMALL("gemma3_text", "\"layer_types\": [\"sliding_attention\", \"full_attention\"]"),
         "and sliding_attention elsewhere; block 2 differs"},
        {SMALL("gemma3_text", "\"sliding_window_pattern\": 0"),
         "'sliding_window_pattern' must be a whole number from 1"},
        {SMALL("gpt_oss", "\"sliding_window\": null"), "a gpt-oss without sliding_window"},
        {SMALL("gpt_oss", "\"attention_bias\": false, \"sliding_window\": 8"),
         "or with attention_bias = false is not known"},
        {SMALL("gpt_oss", "\"swiglu_limit\": 6, \"sliding_window\": 8"),
         "swiglu_limit other than 7 is not known"},
        {SMALL("gpt_oss", "\"layer_types\": [\"full_attention\"], \"sliding_window\": 8"),
         "full_attention at each 2-th block and sliding_attention elsewhere; block 1 differs"},
        {SMALL("olmo", "\"clip_qkv\": 8.0"), "clip_qkv is not known"},
        {SMALL("glm4", "\"hidden_act\": \"gelu\""), "hidden_act 'gelu' is not known; silu is"},
        {SMALL("cohere", "\"use_qk_norm\": true"),
         "a Cohere with use_qk_norm or attention_bias is not known"},
        {SMALL("cohere2", "\"sliding_window\": null"),
         "a Cohere 2 whose sliding_window is null is not known"},
        {SMALL("cohere2", "\"layer_types\": [\"full_attention\"]"),
         "full_attention at each 4-th block and sliding_attention elsewhere; block 1 differs"},
        {SMALL("ernie4_5", "\"use_bias\": true"), "an ERNIE 4.5 with use_bias is not known"},
        {SMALL("helium", "\"mlp_bias\": true"),
         "a Helium with attention_bias or mlp_bias is not known"},
        {SMALL("helium", "\"mlp_bias\": false"),
         "head_dim is not hidden_size / num_attention_heads, which transformers' own Helium"},
        {SMALL("glm", "\"head_dim\": 16, \"partial_rotary_factor\": 0.2"),
         "of a head's 16 numbers 3 would be turned"},
        {SMALL("apertus", "\"clip_qkv\": null"), "model_type 'apertus' is not known: it has the "
                                                 "activation xIELU, which is not planned; any "
                                                 "other network can be traced"},
        {SMALL("gemma2", "\"attn_logit_softcapping\": null"),
         "a Gemma 2 whose attn_logit_softcapping is null is not known"},
        {SMALL("gemma2", "\"final_logit_softcapping\": null"),
         "a Gemma 2 whose final_logit_softcapping is null is not known"},
        {SMALL("gemma2", "\"final_logit_softcapping\": \"a\""),
         "the field 'final_logit_softcapping' must be a number"},
        {SMALL("gemma2", "\"sliding_window\": null"),
         "a Gemma 2 whose sliding_window is null is not known"},
        {SMALL("gemma2", "\"layer_types\": [\"full_attention\"]"),
         "full_attention at each 2-th block and sliding_attention elsewhere; block 1 differs"},
        {SMALL("exaone4", "\"sliding_window\": 4096, \"sliding_window_pattern\": \"LGLG\""),
         "sliding_window_pattern 'LGLG' is not known; several L and a G, or a number, are"},
        {SMALL("exaone4", "\"layer_types\": [\"full_attention\"]"),
         "full_attention at each 4-th block and sliding_attention elsewhere; block 1 differs"},
        {SMALL("arcee", "\"hidden_act\": \"silu\""), "hidden_act 'silu' of an Arcee is not known"},
        {SMALL("ministral", "\"sliding_window\": 4096"),
         "a Ministral whose blocks are all alike, without layer_types or sliding_window"},
        {SMALL("ministral", "\"sliding_window\": 4, \"layer_types\": [\"sliding_attention\"]"),
         "full_attention at the first of each 4 blocks and sliding_attention elsewhere; block 1"},
        {SMALL("falcon", "\"alibi\": false"),
         "model_type 'falcon' is not known: it has one layer for q, k and v, whose rows hold them "
         "by groups of heads, which is not planned"},
        {SMALL("gemma3", "\"text_config\": {}"),
         "model_type 'gemma3' is not known; any other network can be traced"},
        {SMALL("gemma3", "\"text_config\": {\"model_type\": \"gemma3_text\"}"),
         "model_type 'gemma3' is not known; the gemma3_text of its text_config is, as a file of "
         "its "
         "own: jq .text_config "},
        {SMALL("qwen2_5_vl", "\"text_config\": {\"model_type\": \"qwen2_5_vl_text\"}"),
         "model_type 'qwen2_5_vl' is not known; any other network can be traced"},
        {SMALL("phi3", "\"partial_rotary_factor\": 0.75"),
         "a Phi-3 with a partial_rotary_factor other than 1 is not known"},
        {SMALL("phi3", "\"rope_parameters\": {\"partial_rotary_factor\": 0.75}"),
         "a Phi-3 with a partial_rotary_factor other than 1 is not known"},
        {LLAMA(2, 64, 4, 160, LLAMA_2 ", \"hidden_act\": 1"),
         "the field 'hidden_act' must be a text"},
        {"\xff\xfe{", "not text in UTF-8; save it as such"}, /* UTF-16 */
    };
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(ModelNetwork) network = read_config(cases[i].text, &error);
        g_assert_null(network);
        g_test_message("%s", error->message);
        g_assert_nonnull(strstr(error->message, cases[i].expected));
    }
}

#define MARK "\xEF\xBB\xBF" /* that editors on Windows put before UTF-8 */

/* A file's keys may be changed as it is read: in their lines, or behind the last. */
static void changed_keys(void) {
    static const struct {
        const char *file, *text, *wanted;
    } cases[] = {
        {"n.ini", "# one\n[network]\nfamily = mlp\n  seq=4\nlayers = 2\nwidth = 8",
         "# one\n[network]\nfamily = mlp\nseq = 8\nlayers = 2\nwidth = 8"},
        {"n.ini", "[network]\nfamily = mlp\nlayers = 2\nwidth = 8",
         "[network]\nfamily = mlp\nlayers = 2\nwidth = 8\nseq = 8\n"},
        {"n.ini", MARK "[network]\nfamily = mlp\nseq = 4\nlayers = 2\nwidth = 8",
         MARK "[network]\nfamily = mlp\nseq = 8\nlayers = 2\nwidth = 8"},
        {"config.json", GPT2(2, 8, 2), NULL},
    };
    const char *const changes[] = {"seq=8", NULL}, *const wrong[] = {"seq=x", NULL};
    g_autofree char *folder = g_dir_make_tmp("foreshard-test-XXXXXX", NULL);
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL, refusal = NULL;
        g_autofree char *path = g_build_filename(folder, cases[i].file, NULL);
        g_assert_true(g_file_set_contents(path, cases[i].text, -1, NULL));
        g_autoptr(ModelNetwork) network = model_network_read_file_with(path, changes, &error);
        g_assert_no_error(error);
        if (cases[i].wanted) {
            g_assert_cmpstr(cases[i].wanted, ==, network->text);
        }
        g_assert_cmpuint(network->seq, ==, 8);
        g_assert_true(g_str_has_suffix(network->name, " (seq=8)"));
        g_assert_null(model_network_read_file_with(path, wrong, &refusal));
        g_assert_true(g_str_has_prefix(refusal->message, "with seq=x: "));
        g_unlink(path);
    }
    g_rmdir(folder);
}

/* So many brackets within one another that reading them would exhaust the stack. */
static void deep_ones_are_refused(void) {
    g_autofree char *brackets = g_strnfill(1000000, '[');
    g_autofree char *text = g_strdup_printf("{\"model_type\": %s", brackets);
    g_autoptr(GError) error = NULL;
    g_autoptr(ModelNetwork) network = read_config(text, &error);
    g_assert_null(network);
    g_assert_nonnull(strstr(error->message, "more than 500 brackets stand in one another"));
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/models/config-json-refused/deep ones are refused", deep_ones_are_refused);
    g_test_add_func("/models/config-json-refused/bad ones name the field", bad_configs);
    g_test_add_func("/models/config-json-refused/keys changed as it is read", changed_keys);
    return g_test_run();
}
