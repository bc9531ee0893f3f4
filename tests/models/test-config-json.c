/* config.json files as they are published: parameters, the longest sequence, what is left out, and
 * messages that name the field.
 *
 * The fields were written by hand from the models' own files, with those that mean nothing here
 * among them. Counts are those of the published weights, but where "by hand" stands.
 */
#include <glib/gstdio.h>
#include <string.h>

#include "tests/models/parameters.h"

static ModelNetwork *read_config(const char *text, GError **error) {
    g_autofree char *folder = g_dir_make_tmp("foreshard-test-XXXXXX", NULL);
    g_autofree char *path = g_build_filename(folder, "config.json", NULL);
    g_assert_true(g_file_set_contents(path, text, -1, NULL));
    ModelNetwork *network = model_network_read_file(path, error);
    g_unlink(path);
    g_rmdir(folder);
    return network;
}

/* ---- published files ------------------------------------------------------------------------ */

#define GPT2(layers, width, heads)                                                                 \
    "{\"activation_function\": \"gelu_new\", \"architectures\": [\"GPT2LMHeadModel\"],"            \
    "\"attn_pdrop\": 0.1, \"bos_token_id\": 50256, \"embd_pdrop\": 0.1,"                           \
    "\"initializer_range\": 0.02, \"layer_norm_epsilon\": 1e-05, \"model_type\": \"gpt2\","        \
    "\"n_ctx\": 1024, \"n_embd\": " #width ", \"n_head\": " #heads ", \"n_inner\": null,"          \
    "\"n_layer\": " #layers ", \"n_positions\": 1024, \"resid_pdrop\": 0.1,"                       \
    "\"task_specific_params\": {\"text-generation\": {\"do_sample\": true}},"                      \
    "\"vocab_size\": 50257}"

#define LLAMA(layers, width, heads, ffn, rest)                                                     \
    "{\"architectures\": [\"LlamaForCausalLM\"], \"attention_bias\": false,"                       \
    "\"attention_dropout\": 0.0, \"bos_token_id\": 128000, \"eos_token_id\": [128001, 128008],"    \
    "\"hidden_act\": \"silu\", \"hidden_size\": " #width ", \"initializer_range\": 0.02,"          \
    "\"intermediate_size\": " #ffn ", \"mlp_bias\": false, \"model_type\": \"llama\","             \
    "\"num_attention_heads\": " #heads ", \"num_hidden_layers\": " #layers ","                     \
    "\"pretraining_tp\": 1, \"rms_norm_eps\": 1e-05, \"torch_dtype\": \"bfloat16\","               \
    "\"use_cache\": true, " rest "}"

#define LLAMA_2                                                                                    \
    "\"max_position_embeddings\": 4096, \"rope_scaling\": null, \"tie_word_embeddings\": false,"   \
    "\"vocab_size\": 32000"

#define LLAMA_3(factor, tied)                                                                      \
    "\"max_position_embeddings\": 131072, \"num_key_value_heads\": 8, \"rope_scaling\":"           \
    "{\"factor\": " #factor ", \"high_freq_factor\": 4.0, \"low_freq_factor\": 1.0,"               \
    "\"original_max_position_embeddings\": 8192, \"rope_type\": \"llama3\"},"                      \
    "\"rope_theta\": 500000.0, \"tie_word_embeddings\": " #tied ", \"vocab_size\": 128256"

#define MISTRAL(layers, width, ffn, vocab, rest)                                                   \
    "{\"architectures\": [\"MistralForCausalLM\"], \"attention_dropout\": 0.0,"                    \
    "\"bos_token_id\": 1, \"eos_token_id\": 2, \"hidden_act\": \"silu\", \"hidden_size\": " #width \
    ", \"intermediate_size\": " #ffn ", \"model_type\": \"mistral\", \"num_attention_heads\": 32," \
    "\"num_hidden_layers\": " #layers ", \"num_key_value_heads\": 8, \"rms_norm_eps\": 1e-05,"     \
    "\"tie_word_embeddings\": false, \"torch_dtype\": \"bfloat16\", \"vocab_size\": " #vocab       \
    "," rest "}"

#define QWEN2(layers, width, heads, kv_heads, ffn, vocab, tied, rest)                              \
    "{\"architectures\": [\"Qwen2ForCausalLM\"], \"attention_dropout\": 0.0,"                      \
    "\"bos_token_id\": 151643, \"hidden_act\": \"silu\", \"hidden_size\": " #width ","             \
    "\"intermediate_size\": " #ffn ", \"max_window_layers\": 28, \"model_type\": \"qwen2\","       \
    "\"num_attention_heads\": " #heads ", \"num_hidden_layers\": " #layers ","                     \
    "\"num_key_value_heads\": " #kv_heads ", \"rms_norm_eps\": 1e-06, \"rope_theta\": 1000000.0,"  \
    "\"tie_word_embeddings\": " #tied ", \"torch_dtype\": \"bfloat16\","                           \
    "\"use_sliding_window\": false, \"vocab_size\": " #vocab ", " rest "}"

#define QWEN3(layers, width, heads, ffn, tied, rest)                                               \
    "{\"architectures\": [\"Qwen3ForCausalLM\"], \"attention_bias\": false,"                       \
    "\"attention_dropout\": 0.0, \"bos_token_id\": 151643, \"eos_token_id\": 151645,"              \
    "\"hidden_act\": \"silu\", \"hidden_size\": " #width ", \"initializer_range\": 0.02,"          \
    "\"intermediate_size\": " #ffn ", \"max_position_embeddings\": 40960,"                         \
    "\"max_window_layers\": " #layers ", \"model_type\": \"qwen3\","                               \
    "\"num_attention_heads\": " #heads ", \"num_hidden_layers\": " #layers ","                     \
    "\"num_key_value_heads\": 8, \"rms_norm_eps\": 1e-06, \"rope_scaling\": null,"                 \
    "\"rope_theta\": 1000000, \"sliding_window\": null, \"tie_word_embeddings\": " #tied ","       \
    "\"torch_dtype\": \"bfloat16\", \"use_cache\": true, \"use_sliding_window\": false,"           \
    "\"vocab_size\": 151936" rest "}"

#define MIXTRAL(rest)                                                                              \
    "{\"architectures\": [\"MixtralForCausalLM\"], \"attention_dropout\": 0.0,"                    \
    "\"bos_token_id\": 1, \"eos_token_id\": 2, \"hidden_act\": \"silu\", \"hidden_size\": 4096,"   \
    "\"initializer_range\": 0.02, \"intermediate_size\": 14336,"                                   \
    "\"max_position_embeddings\": 32768, \"model_type\": \"mixtral\","                             \
    "\"num_attention_heads\": 32, \"num_experts_per_tok\": 2, \"num_hidden_layers\": 32,"          \
    "\"num_key_value_heads\": 8, \"num_local_experts\": 8, \"rms_norm_eps\": 1e-05,"               \
    "\"router_aux_loss_coef\": 0.02, \"sliding_window\": null,"                                    \
    "\"tie_word_embeddings\": false, \"torch_dtype\": \"bfloat16\", \"use_cache\": true,"          \
    "\"vocab_size\": 32000" rest "}"

#define QWEN3_MOE(rest)                                                                            \
    "{\"architectures\": [\"Qwen3MoeForCausalLM\"], \"attention_bias\": false,"                    \
    "\"attention_dropout\": 0.0, \"head_dim\": 128, \"hidden_act\": \"silu\","                     \
    "\"hidden_size\": 2048, \"initializer_range\": 0.02, \"intermediate_size\": 6144,"             \
    "\"max_position_embeddings\": 40960, \"max_window_layers\": 48,"                               \
    "\"model_type\": \"qwen3_moe\", \"moe_intermediate_size\": 768, \"norm_topk_prob\": true,"     \
    "\"num_attention_heads\": 32, \"num_experts_per_tok\": 8, \"num_hidden_layers\": 48,"          \
    "\"num_key_value_heads\": 4, \"rms_norm_eps\": 1e-06, \"rope_scaling\": null,"                 \
    "\"rope_theta\": 1000000.0, \"router_aux_loss_coef\": 0.001, \"sliding_window\": null,"        \
    "\"tie_word_embeddings\": false, \"torch_dtype\": \"bfloat16\","                               \
    "\"use_sliding_window\": false, \"vocab_size\": 151936" rest "}"

#define OLMO2(layers, width, heads, kv_heads, ffn)                                                 \
    "{\"architectures\": [\"Olmo2ForCausalLM\"], \"attention_bias\": false,"                       \
    "\"attention_dropout\": 0.0, \"eos_token_id\": 100257, \"hidden_act\": \"silu\","              \
    "\"hidden_size\": " #width ", \"initializer_range\": 0.02,"                                    \
    "\"intermediate_size\": " #ffn ", \"max_position_embeddings\": 4096,"                          \
    "\"model_type\": \"olmo2\", \"num_attention_heads\": " #heads ","                              \
    "\"num_hidden_layers\": " #layers ", \"num_key_value_heads\": " #kv_heads ","                  \
    "\"pad_token_id\": 100277, \"rms_norm_eps\": 1e-06, \"rope_scaling\": null,"                   \
    "\"rope_theta\": 500000, \"tie_word_embeddings\": false, \"torch_dtype\": \"float32\","        \
    "\"use_cache\": false, \"vocab_size\": 100352}"

#define SMALL(model_type, rest)                                                                    \
    "{\"model_type\": \"" model_type "\", \"num_hidden_layers\": 4, \"hidden_size\": 64,"          \
    "\"num_attention_heads\": 4, \"intermediate_size\": 160, \"vocab_size\": 96,"                  \
    "\"max_position_embeddings\": 32, " rest "}"

#define T5(layers, width, heads, kv, ffn, rest)                                                    \
    "{\"architectures\": [\"T5ForConditionalGeneration\"], \"d_ff\": " #ffn ", \"d_kv\": " #kv "," \
    "\"d_model\": " #width ", \"decoder_start_token_id\": 0, \"dropout_rate\": 0.1,"               \
    "\"initializer_factor\": 1.0, \"is_encoder_decoder\": true, \"layer_norm_epsilon\": 1e-06,"    \
    "\"model_type\": \"t5\", \"num_heads\": " #heads ", \"num_layers\": " #layers ","              \
    "\"relative_attention_num_buckets\": 32, \"vocab_size\": 32128, " rest "}"

#define T5_1_0 "\"n_positions\": 512, \"output_past\": true"
/* FLAN-T5 and T5 v1.1: a gate, a head of its own, no n_positions in some. */
#define T5_1_1(layers)                                                                             \
    "\"dense_act_fn\": \"gelu_new\", \"feed_forward_proj\": \"gated-gelu\","                       \
    "\"is_gated_act\": true, \"num_decoder_layers\": " #layers                                     \
    ", \"relative_attention_max_distance\": 128, \"tie_word_embeddings\": false"

#define MT5(layers, width, heads, ffn)                                                             \
    "{\"architectures\": [\"MT5ForConditionalGeneration\"], \"d_ff\": " #ffn ", \"d_kv\": 64,"     \
    "\"d_model\": " #width ", \"model_type\": \"mt5\", \"num_heads\": " #heads                     \
    ", \"num_layers\": " #layers ", \"vocab_size\": 250112, " T5_1_1(layers) "}"

#define MPT(layers, width, heads, seq)                                                             \
    "{\"architectures\": [\"MPTForCausalLM\"], \"attn_config\": {\"alibi\": true,"                 \
    "\"alibi_bias_max\": 8, \"attn_impl\": \"torch\", \"attn_pdrop\": 0,"                          \
    "\"attn_type\": \"multihead_attention\", \"attn_uses_sequence_id\": false,"                    \
    "\"clip_qkv\": null, \"prefix_lm\": false, \"qk_ln\": false, \"softmax_scale\": null},"        \
    "\"d_model\": " #width ", \"emb_pdrop\": 0, \"expansion_ratio\": 4,"                           \
    "\"init_device\": \"cpu\", \"learned_pos_emb\": true, \"logit_scale\": null,"                  \
    "\"max_seq_len\": " #seq ", \"model_type\": \"mpt\", \"n_heads\": " #heads                     \
    ", \"n_layers\": " #layers ", \"no_bias\": true, \"norm_type\": \"low_precision_layernorm\","  \
    "\"resid_pdrop\": 0, \"torch_dtype\": \"bfloat16\", \"vocab_size\": 50432}"

#define NEOX(layers, width, heads, ffn, vocab)                                                     \
    "{\"architectures\": [\"GPTNeoXForCausalLM\"], \"bos_token_id\": 0, \"hidden_act\": \"gelu\"," \
    "\"hidden_size\": " #width ", \"initializer_range\": 0.02, \"intermediate_size\": " #ffn ","   \
    "\"layer_norm_eps\": 1e-05, \"max_position_embeddings\": 2048, \"model_type\": \"gpt_neox\","  \
    "\"num_attention_heads\": " #heads ", \"num_hidden_layers\": " #layers                         \
    ", \"rotary_emb_base\": 10000, \"rotary_pct\": 0.25, \"tie_word_embeddings\": false,"          \
    "\"torch_dtype\": \"float16\", \"use_cache\": true, \"use_parallel_residual\": true,"          \
    "\"vocab_size\": " #vocab "}"

#define OPT(layers, width, heads, ffn, rest)                                                       \
    "{\"_remove_final_layer_norm\": false, \"activation_function\": \"relu\","                     \
    "\"architectures\": [\"OPTForCausalLM\"], \"attention_dropout\": 0.0, \"dropout\": 0.1,"       \
    "\"ffn_dim\": " #ffn ", \"hidden_size\": " #width ", \"init_std\": 0.02, \"layerdrop\": 0.0,"  \
    "\"max_position_embeddings\": 2048, \"model_type\": \"opt\", \"num_attention_heads\": " #heads \
    ", \"num_hidden_layers\": " #layers ", \"prefix\": \"</s>\", \"torch_dtype\": \"float16\","    \
    "\"vocab_size\": 50272" rest "}"

#define STARCODER2(layers, width, heads, kv_heads, ffn, base)                                      \
    "{\"architectures\": [\"Starcoder2ForCausalLM\"], \"attention_dropout\": 0.1,"                 \
    "\"embedding_dropout\": 0.1, \"hidden_act\": \"gelu_pytorch_tanh\", \"hidden_size\": " #width  \
    ", \"intermediate_size\": " #ffn ", \"max_position_embeddings\": 16384,"                       \
    "\"mlp_type\": \"default\", \"model_type\": \"starcoder2\", \"norm_epsilon\": 1e-05,"          \
    "\"num_attention_heads\": " #heads ", \"num_hidden_layers\": " #layers                         \
    ", \"num_key_value_heads\": " #kv_heads ", \"residual_dropout\": 0.1, \"rope_theta\": " #base  \
    ", \"sliding_window\": 4096, \"torch_dtype\": \"bfloat16\", \"use_bias\": true,"               \
    "\"vocab_size\": 49152}"

#define PHI(layers, width, ffn, share)                                                             \
    "{\"architectures\": [\"PhiForCausalLM\"], \"attention_dropout\": 0.0, \"embd_pdrop\": 0.0,"   \
    "\"hidden_act\": \"gelu_new\", \"hidden_size\": " #width ", \"intermediate_size\": " #ffn      \
    ", \"layer_norm_eps\": 1e-05, \"max_position_embeddings\": 2048, \"model_type\": \"phi\","     \
    "\"num_attention_heads\": 32, \"num_hidden_layers\": " #layers                                 \
    ", \"num_key_value_heads\": null, \"partial_rotary_factor\": " #share                          \
    ", \"qk_layernorm\": false, \"resid_pdrop\": 0.1, \"rope_scaling\": null,"                     \
    "\"rope_theta\": 10000.0, \"tie_word_embeddings\": false, \"vocab_size\": 51200}"

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
        {OLMO2(2, 64, 4, 4, 160), MODEL_CODE_OWN, MODEL_LOSS_FP32},
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

/* ---- bad ones ------------------------------------------------------------------------------- */

static void bad_configs(void) {
    static const struct {
        const char *text, *expected;
    } cases[] = {
        {"{\"model_type\": \"bloom\"}",
         "model_type 'bloom' is not known; any other network can be traced in PyTorch "
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
    for (unsigned i = 0; i < G_N_ELEMENTS(published); i++) {
        g_autofree char *path =
            g_strdup_printf("/models/config.json/%02u %s", i, published[i].name);
        g_test_add_data_func(path, GUINT_TO_POINTER(i), becomes_a_network);
    }
    g_test_add_func("/models/config.json/deep ones are refused", deep_ones_are_refused);
    g_test_add_func("/models/config.json/says scaling in its text", says_scaling_in_its_text);
    g_test_add_func("/models/config.json/says what is normalized", says_what_is_normalized);
    g_test_add_func("/models/config.json/says what is quantized", says_what_is_quantized);
    g_test_add_func("/models/config.json/says where sequences end", says_where_sequences_end);
    g_test_add_func("/models/config.json/says whose code it is", says_whose_code_it_is);
    g_test_add_func("/models/config.json/says both bases of Gemma 3", says_both_bases);
    g_test_add_func("/models/config.json/says which blocks slide", says_which_blocks_slide);
    g_test_add_func("/models/config.json/bad ones name the field", bad_configs);
    g_test_add_func("/models/config.json/keys changed as it is read", changed_keys);
    return g_test_run();
}
