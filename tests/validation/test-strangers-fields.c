/* Training runs as strangers write them: what a cell says follows from others, or from the words in
 * it. */
#include <string.h>

#include "cli/published/train/link.h"
#include "cli/published/train/row.h"
#include "tests/validation/strangers.h"

/* ---- what follows from other fields --------------------------------------------------------- */

static void filled(void) {
    g_autoptr(GError) error = NULL;
    g_autofree char *path = strangers_written(
        "model,gpus,gpus_per_node,sharding_strategy,shard_degree,dp_replicate,seq_len,"
        "micro_batch,grad_accum,global_batch_seqs,global_batch_tokens,params,layers,"
        "d_model,heads,kv_heads,d_ff,mlp_type,vocab,experts,experts_per_token\n"
        "llama-7b,16,8,HSDP,,,,2,,64,262144,6738415616,32,4096,,,,,32000,,\n"
        "gpt,8,,,,,,,2,32,,,12,768,,,,,,,\n"
        "x,8,8,FSDP,,,2048,1,,,,,32,4096,,,,SwiGLU,,,\n"
        "x,8,8,FSDP,,,2048,1,,,,,32,4096,,,,Gated SiLU (fused),,,\n"
        "x,8,8,FSDP,,,2048,1,,,,,32,4096,,,,GeLU_new,,,\n"
        "x,8,8,FSDP,,,2048,1,,,,,32,4096,,,,SwiGLU MoE 8 experts,,,\n"
        "x,8,8,FSDP,,,2048,1,,,,,32,4096,,,768,\"SwiGLU, 128 experts, 8 active\",,,\n"
        "Qwen3-30B-A3B,8,8,FSDP,,,2048,1,,,,,48,2048,,,768,,,,\n");
    g_autoptr(CliCsv) csv = cli_csv_read(path, &error);
    g_assert_no_error(error);
    static const struct {
        unsigned row;
        const char *column, *value;
    } expected[] = {{0, "dp_replicate", "2"},
                    {0, "seq_len", "4096"},
                    {0, "grad_accum", "2"},
                    {0, "heads", "32"},
                    {0, "kv_heads", "32"},
                    {0, "d_ff", "11008"},
                    {0, "mlp_type", "swiglu"},
                    {1, "micro_batch", "2"},
                    {1, "heads", "12"},
                    {1, "d_ff", "3072"},
                    {1, "mlp_type", "gelu"},
                    {1, "vocab", "50304"},
                    {1, "seq_len", ""},
                    {2, "mlp_type", "swiglu"},
                    {2, "d_ff", "11008"},
                    {2, "vocab", "32000"},
                    {3, "mlp_type", "swiglu"},
                    {3, "d_ff", "11008"},
                    {4, "mlp_type", "gelu"},
                    {4, "d_ff", "16384"},
                    {5, "mlp_type", "swiglu moe"},
                    {5, "experts", "8"},
                    {5, "experts_per_token", ""},
                    {5, "d_ff", ""},
                    {6, "mlp_type", "swiglu moe"},
                    {6, "experts", "128"},
                    {6, "experts_per_token", "8"},
                    {6, "d_ff", "768"},
                    {7, "mlp_type", "swiglu moe"},
                    {7, "experts", ""}};
    for (unsigned i = 0; i < G_N_ELEMENTS(expected); i++) {
        g_autoptr(GString) said = g_string_new(NULL);
        CliCsvRow row = cli_train_row_complete(csv, &csv->rows[expected[i].row], said);
        g_assert_cmpstr(cli_csv_text(csv, &row, expected[i].column), ==, expected[i].value);
        const char *given = cli_csv_text(csv, &csv->rows[expected[i].row], expected[i].column);
        g_assert_true(g_str_equal(given, expected[i].value) ||
                      strstr(said->str, expected[i].column));
        cli_train_row_fields_clear(&row);
    }
}

/* A share of the blocks is recomputed that only HFU over MFU tells: a second forward of it. */
static void recomputed(void) {
    static const struct {
        const char *given, *becomes;
    } cases[] = {
        {"selective (fraction of blocks),51,59", "ratio=0.48"},
        {"selective (fraction of blocks),0.51,0.59", "ratio=0.48"},
        {"selective (fraction of blocks),50,67", "ratio=1.00"},
        {"selective (fraction of blocks),51,51", "selective (fraction of blocks)"},
        {"selective (fraction of blocks),59,51", "selective (fraction of blocks)"},
        {"selective (fraction of blocks),,59", "selective (fraction of blocks)"},
        {"selective op,51,59", "selective op"},
    };
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;
        g_autofree char *table =
            g_strdup_printf("model,layers,d_model,heads,kv_heads,d_ff,mlp_type,vocab,seq_len,"
                            "activation_checkpointing,mfu_pct,hfu_pct\n"
                            "x,40,5120,40,40,13824,swiglu,32000,4096,%s\n",
                            cases[i].given);
        g_autofree char *path = strangers_written(table);
        g_autoptr(CliCsv) csv = cli_csv_read(path, &error);
        g_assert_no_error(error);
        g_autoptr(GString) said = g_string_new(NULL);
        CliCsvRow row = cli_train_row_complete(csv, &csv->rows[0], said);
        g_assert_cmpstr(cli_csv_text(csv, &row, "activation_checkpointing"), ==, cases[i].becomes);
        cli_train_row_fields_clear(&row);
    }
}

/* Experts: whose way of running them is known, and what has to be said of them. */
static void experts(void) {
#define EXPERTS(framework, date, said, ep)                                                         \
    "H100," date ",8," framework ",x,2,256,4,2,768," said ",1000,512,2," ep ",11\n"
    EXPECT("hardware,measured_date,gpus,framework,model,layers,d_model,heads,kv_heads,d_ff,"
           "mlp_type,vocab,seq_len,micro_batch,ep,step_ms\n" EXPERTS(
               "torchtitan", "", "SwiGLU MoE 8 experts top-2",
               "1") EXPERTS("torchtitan", "", "SwiGLU MoE 8 experts top-2",
                            "4") EXPERTS("torchtitan", "", "SwiGLU MoE 8 experts", "")
               EXPERTS("torchtitan", "", "gelu moe 8 experts top-2", "")
                   EXPERTS("HF Trainer FSDP2", "2025-06", "SwiGLU MoE 8 experts top-2", "")
                       EXPERTS("HF Trainer FSDP2", "2026-06", "SwiGLU MoE 8 experts top-2", "")
                           EXPERTS("PyTorch FSDP2", "", "SwiGLU MoE 8 experts top-2", "")
                               EXPERTS("PyTorch FSDP2", "", "SwiGLU MoE 8 experts top-2", "4")
                                   EXPERTS("KempnerForge", "", "SwiGLU MoE 8 experts top-2", "4"),
           NULL, NULL, "does not say experts_per_token", "experts without a gate",
           "one after the other", NULL, "how this program runs", "expert parallel but torchtitan's",
           "own way of sharing experts");
    EXPECT("hardware,gpus,framework,model,precision,experts,experts_per_token,layers,d_model,"
           "seq_len,micro_batch,step_ms\n"
           "H200,8,torchtitan,Qwen3-30B-A3B,bf16,,,,,512,1,11\n"
           "H200,8,torchtitan,Mixtral-8x7B,bf16,,,,,512,1,11\n"
           "H200,8,torchtitan,DBRX,bf16,,,,,512,1,11\n",
           NULL, NULL, "does not say layers");
    strangers_refuse("hardware,gpus,framework,model,experts,seq_len,micro_batch,step_ms\n"
                     "H200,8,torchtitan,x,many,512,1,11\n",
                     "t.csv:2: experts is 'many'");
}

/* A table with few columns: what they leave open is filled as empty fields are. */
static void few_columns(void) {
    EXPECT("hardware,gpus,framework,model,layers,d_model,seq_len,micro_batch,step_ms\n"
           "A100,8,PyTorch FSDP,x,2,256,512,2,11\n"
           "A100,8,HF Trainer DDP,x,2,256,512,2,11\n"
           "A100,8,TRL SFTTrainer FSDP2,x,2,256,512,2,11\n"
           "A100,8,HF Trainer + DeepSpeed ZeRO-3,x,2,256,512,2,11\n"
           "A100,8,PyTorch FSDP,llama2-7b,,,512,2,\n",
           NULL, NULL, NULL, "no rule knows this framework", "neither a time nor a peak");
    EXPECT("hardware,gpus,framework,sharding_strategy,model,layers,d_model,seq_len,micro_batch,"
           "step_ms\n"
           "A100,8,LLaMA-Factory,ZeRO-2,x,2,256,512,2,11\n"
           "A100,8,LLaMA-Factory,FSDP,x,2,256,512,2,11\n"
           "A100,8,NeMo,FSDP,x,2,256,512,2,11\n"
           "A100,8,NVIDIA NeMo AutoModel,FSDP2,x,2,256,512,2,11\n",
           "no rule knows this framework", NULL, "no rule knows this framework", NULL);
    strangers_refuse("framework,model,gpus,seq_len,micro_batch,step_ms\n",
                     "column 'hardware' is missing");
    strangers_refuse(
        "hardware,framework,model,gpus,seq_len,micro_batch,step_time_ms\n",
        "t.csv:1: column 'step_time_ms' is unknown; take it away, or put it into notes; did you "
        "mean step_ms?");
}

/* A Trainer over DDP is DDP, names whose blocks are not GPT-2's keep their own where the row has a
 * shape, too, and TF32's products are on tensor cores. */
static void programs_and_blocks(void) {
    static const char *const runs[][2] = {
        {"HF Trainer DDP,DDP,gpt2,fp32", "flavour=ddp"},
        {"HF Trainer,DDP,gpt2,bf16", "flavour=ddp"},
        {"HF Trainer DDP,DDP,gpt2,bf16", "network.dropout=0.1"},
        {"PyTorch FSDP1,,pythia-70m,bf16", "network.family=neox"},
        {"PyTorch FSDP1,,facebook/opt-1.3b,bf16", "network.family=opt"},
        {"PyTorch FSDP1,,phi-2,bf16", "network.family=phi"},
        {"PyTorch FSDP1,,starcoder2-3b,bf16", "network.family=starcoder2"},
        {"PyTorch FSDP1,,gpt,tf32", "device.matmul_fp32_tflops=156 matmul.fp32_efficiency=0"},
    };
    for (unsigned i = 0; i < G_N_ELEMENTS(runs); i++) {
        g_autofree char *table =
            g_strdup_printf("framework,sharding_strategy,model,precision,hardware,gpus,layers,"
                            "d_model,heads,d_ff,mlp_type,seq_len,micro_batch,step_ms\n"
                            "%s,A100,2,2,256,4,1024,gelu,512,2,20\n",
                            runs[i][0]);
        strangers_expect_setting(table, runs[i][1]);
    }
}

/* What sources call a GPU, nvidia-smi and PyTorch among them. */
static void words_for_gpus(void) {
    static const char *const names[][2] = {
        {"A100-SXM4-80GB", "a100-roce"},
        {"NVIDIA A100-SXM4-40GB", "a100-p4d"},
        {"NVIDIA H100 80GB HBM3", "dgx-h100"},
        {"8xH100", "dgx-h100"},
        {"H200", "h200-node"},
        {"NVIDIA H200 SXM5 141GB", "h200-node"},
        {"gh200", "gh200-alps"},
        {"NVIDIA GH200 480GB", "gh200-alps"},
        {"NVIDIA GH200 120GB", "gh200-alps"},
        {"B200", "b200-node"},
        {"NVIDIA GB200", "gb200-nvl72"},
        {"GB300 NVL72", "gb300-nvl72"},
        {"NVIDIA B300 SXM6 AC", "b300-p6"},
        {"NVIDIA H20", "h20-node"},
        {"l40s", "l40s-node"},
        {"NVIDIA L40S-48GB", "l40s-node"},
        {"NVIDIA RTX 6000 Ada Generation", "l40s-node"},
        {"NVIDIA L4", "l4-node"},
        {"A10G", "a10g-g5"},
        {"NVIDIA A10G (g5.48xlarge)", "a10g-g5"},
        {"NVIDIA A10", "a10g-g5"},
        {"4090", "rtx4090"},
        {"NVIDIA GeForce RTX 4090", "rtx4090"},
        {"RTX3090-24GB", "rtx3090"},
        {"NVIDIA RTX A6000", "a6000-node"},
        {"A40", "a40-node"},
        {"NVIDIA A40-48GB", "a40-node"},
        {"Tesla V100-SXM2-32GB", "v100-dgx"},
        {"Tesla T4", "t4-node"},
        {"A30", "a30-node"},
        {"NVIDIA RTX A5000", "a5000-node"},
        {"NVIDIA GeForce RTX 5090", "rtx5090"},
        {"TITAN RTX", "titan-rtx"},
    };
    g_autoptr(GString) table =
        g_string_new("hardware,gpus,framework,sharding_strategy,model,layers,"
                     "d_model,seq_len,micro_batch,precision,step_ms\n");
    for (unsigned i = 0; i < G_N_ELEMENTS(names); i++) {
        g_string_append_printf(table, "%s,4,PyTorch FSDP,FSDP,x,2,256,512,2,fp16,11\n",
                               names[i][0]);
    }
    g_autofree char *said = strangers_settings_of(table->str);
    g_auto(GStrv) lines = g_strsplit(said, "\n", -1);
    for (unsigned i = 0; i < G_N_ELEMENTS(names); i++) {
        g_autofree char *cluster = g_strdup_printf(",in,,step time,assumed,%s,", names[i][1]);
        if (!strstr(lines[i], cluster)) {
            g_test_message("'%s' is no '%s': %s", names[i][0], names[i][1], lines[i]);
            g_test_fail();
        }
    }
}

/* In a rack whose trays NVLink joins, four GPUs a tray are no node. */
static void racks(void) {
    EXPECT("hardware,gpus,gpus_per_node,framework,sharding_strategy,model,layers,d_model,seq_len,"
           "micro_batch,step_ms\n"
           "GB200,64,4,PyTorch FSDP,FSDP,x,2,256,512,2,11\n"
           "GH200,64,4,PyTorch FSDP,FSDP,x,2,256,512,2,11\n",
           NULL, NULL);
    EXPECT("hardware,nodes,gpus,gpus_per_node,op,bytes,time_us,busbw_GBps\n"
           "GB200,16,64,4,all_reduce,1e8,800,\n"
           "GB300,,72,,all_gather,1e8,800,\n"
           "GB200,,144,,all_gather,1e8,800,\n"
           "GH200,,16,,all_gather,1e8,800,\n",
           NULL, NULL, NULL, "how many nodes");
}

/* Shapes by name where the columns leave them open: as many parameters as the name has. */
static void named_networks(void) {
    static const struct {
        const char *model, *says;
    } cases[] = {
        {"mistralai/Mistral-7B-v0.1", "named mistral-7b"},
        {"Llama-3.2-1B", "named llama3.2-1b"},
        {"meta-llama/Llama-3.1-8B", "named llama3-8b"},
        {"llama-13b", "named llama-13b"},
        {"Qwen/Qwen2.5-7B-Instruct", "named qwen2.5-7b"},
        {"Qwen3-0.6B", "named qwen3-0.6b"},
        {"TinyLlama-1.1B", "named tinyllama-1.1b"},
        {"Phi-3-mini-4k", "named phi-3-mini"},
        {"opt-13b", "named opt-13b"},
        {"EleutherAI/pythia-6.9b", "named pythia-6.9b"},
        {"google/flan-t5-xl", "named flan-t5-xl"},
    };
    g_autoptr(GString) table = g_string_new("hardware,gpus,framework,model,seq_len,micro_batch,"
                                            "step_ms\n");
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_string_append_printf(table, "H200,8,PyTorch FSDP,%s,512,1,900\n", cases[i].model);
    }
    g_autofree char *said = strangers_settings_of(table->str);
    g_auto(GStrv) lines = g_strsplit(said, "\n", -1);
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        if (!strstr(lines[i], ",in,") || !strstr(lines[i], cases[i].says)) {
            g_test_message("'%s' is not in: %s", cases[i].says, lines[i]);
            g_test_fail();
        }
    }
}

/* What a program does of itself, it does of a network's name as of its columns. */
static void name_or_shape(void) {
    g_autoptr(CliValidation) validation = cli_validation_new(NULL);
    const GArray *rows = strangers_rows(
        validation,
        "hardware,gpus,framework,sharding_strategy,model,layers,d_model,heads,kv_heads,"
        "d_ff,mlp_type,vocab,seq_len,micro_batch,precision,step_ms\n"
        "H100,8,torchtitan,FSDP2,llama3-8b,32,4096,32,8,14336,swiglu,128256,8192,1,bf16,9\n"
        "H100,8,torchtitan,FSDP2,llama3-8b,,,,,,,,8192,1,bf16,9\n");
    g_assert_cmpuint(rows->len, ==, 2);
    g_assert_cmpfloat(g_array_index(rows, CliValidatedRow, 0).predicted, >, 0);
    g_assert_cmpfloat(g_array_index(rows, CliValidatedRow, 0).predicted, ==,
                      g_array_index(rows, CliValidatedRow, 1).predicted);
}

/* What sources call the same thing. */
static void words_of_settings(void) {
    static const struct {
        const char *framework, *sharding, *precision, *checkpointing, *setting;
    } cases[] = {
        {"PyTorch FSDP", "FSDP", "bfloat16 mixed precision", "None", "param_dtype=bf16"},
        {"PyTorch FSDP", "FSDP", "torch.bfloat16", "no (default)", "param_dtype=bf16"},
        {"PyTorch FSDP", "FSDP", "Float16", "None", "param_dtype=fp16"},
        {"PyTorch FSDP", "FSDP", "float32", "None", "param_dtype=fp32"},
        {"PyTorch FSDP", "FSDP", "bf16", "yes (all layers)", "checkpointing=full"},
        {"PyTorch FSDP", "FSDP", "bf16", "Gradient checkpointing", "checkpointing=full"},
        {"PyTorch FSDP", "FSDP", "bf16", "recompute", "checkpointing=full"},
        {"PyTorch FSDP", "FSDP", "bf16", "full AC", "checkpointing=full"},
        {"PyTorch FSDP", "FSDP", "bf16", "gradient_checkpointing: true", "checkpointing=full"},
        {"PyTorch FSDP", "FSDP", "bf16", "gradient_checkpointing: false", "checkpointing=none"},
        {"PyTorch FSDP", "FSDP", "bf16", "per-layer", "checkpointing=full"},
        {"Colossal-AI TorchFSDPPlugin", "FSDP", "bf16", "None", "flavour=fsdp1"},
        {"torchtitan", "FSDP2", "bf16", "per op SAC", "checkpointing=selective-op"},
        {"torchtitan", "FSDP2", "bf16", "selective (op)", "checkpointing=selective-op"},
        {"PyTorch FSDP", "FSDP2", "bf16", "None", "flavour=fsdp2"},
        {"PyTorch FSDP", "fully_shard", "bf16", "None", "flavour=fsdp2"},
        {"PyTorch", "FSDP2 (reshard_after_forward=False)", "bf16", "None",
         "reshard_after_forward=no"},
        {"MosaicML Composer FSDP", "FULL_SHARD", "bf16", "None", "backward_prefetch=post"},
        {"HF Trainer + FSDP", "FULL_SHARD", "bf16", "None", "autocast=bf16"},
    };
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *table = g_strdup_printf(
            "%sA100,8,,%s,%s,x,,2,256,512,2,,%s,%s,9e4,,,,,,,,,,,,,\n", RUNS, cases[i].framework,
            cases[i].sharding, cases[i].precision, cases[i].checkpointing);
        strangers_expect_setting(table, cases[i].setting);
    }
    strangers_expect_setting("hardware,gpus,framework,model,seq_len,micro_batch,step_ms\n"
                             "A100,8,PyTorch FSDP,Llama-2-7b,512,2,900\n",
                             "rms_norm=ops");
    EXPECT(RUNS "A100,8,,PyTorch FSDP,FSDP" SHAPE "bf16,sometimes" TIME
                "A100,8,,PyTorch FSDP,FSDP" SHAPE "bf16,selective activation checkpointing" TIME
                "A100,8,,PyTorch FSDP,FSDP" SHAPE "bf16,activation checkpointing: off" TIME,
           "no rule knows what this recomputes", "other operations", NULL);
}

static void networks(void) {
    static const struct {
        const char *words;
        double gpus_per_node, expected;
    } cases[] = {{"400 Gb/s per GPU", 8, 50},
                 {"NVLink intra; 400 Gb/s RDMA per GPU inter", 8, 50},
                 {"4 x 100 Gb/s HDR InfiniBand per node", 4, 12.5},
                 {"800 Gbps inter-node", 8, 12.5},
                 {"NVLink4 + 8x200Gb GPUDirect-TCPXO per node", 8, 25},
                 {"3200 Gb/s EFA", 8, 50},
                 {"50 GB/s a GPU", 8, 50},
                 {"3.2 Tbps EFA", 8, 50},
                 {"RoCE 400G per GPU", 8, 50},
                 {"100Gb InfiniBand x4", 8, 6.25},
                 {"HDR 200Gb/s x 8", 8, 25},
                 {"400 Gbps per node (4 x 100)", 8, 6.25},
                 {"4x HDR200 IB per node", 4, 25},
                 {"8x NDR", 8, 50},
                 {"InfiniBand HDR-100", 8, 12.5},
                 {"NVSwitch; XDR InfiniBand", 8, 100},
                 {"NVLink + 4xHDR", 4, 25},
                 {"Slingshot 11", 4, 25},
                 {"4x Slingshot-11", 4, 25},
                 {"Slingshot 10", 4, 12.5},
                 {"200 Gb/s Slingshot per GPU", 4, 25},
                 {"Omni-Path", 4, 12.5},
                 {"10GbE", 8, 10.0 / 64},
                 {"100 Gbps Ethernet", 8, 100.0 / 64},
                 {"100 GbE RoCE", 8, 12.5},
                 {"NVLink 900 GB/s", 8, 0},
                 {"InfiniBand", 8, 0},
                 {"", 8, 0}};
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_assert_cmpfloat_with_epsilon(
            cli_train_link_gb_per_s(cases[i].words, cases[i].gpus_per_node), cases[i].expected,
            1e-9);
    }
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/strangers/runs: programs and blocks", programs_and_blocks);
    g_test_add_func("/strangers/runs: what follows from other fields", filled);
    g_test_add_func("/strangers/runs: a share that is recomputed", recomputed);
    g_test_add_func("/strangers/runs: few columns", few_columns);
    g_test_add_func("/strangers/runs: experts", experts);
    g_test_add_func("/strangers/runs: words for GPUs", words_for_gpus);
    g_test_add_func("/strangers/runs: racks", racks);
    g_test_add_func("/strangers/runs: named networks", named_networks);
    g_test_add_func("/strangers/runs: a name or a shape", name_or_shape);
    g_test_add_func("/strangers/runs: words of settings", words_of_settings);
    g_test_add_func("/strangers/runs: networks", networks);
    return strangers_run();
}
