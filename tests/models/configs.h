/* tests/models/configs.h - texts of config.json, as transformers writes them for each family.
 *
 * A macro makes the text for a size of its family; `rest` are fields that some files add.
 */
#pragma once

#include <glib/gstdio.h>

#include "models/network.h"

static inline ModelNetwork *read_config(const char *text, GError **error) {
    g_autofree char *folder = g_dir_make_tmp("foreshard-test-XXXXXX", NULL);
    g_autofree char *path = g_build_filename(folder, "config.json", NULL);
    g_assert_true(g_file_set_contents(path, text, -1, NULL));
    ModelNetwork *network = model_network_read_file(path, error);
    g_unlink(path);
    g_rmdir(folder);
    return network;
}

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
