/* Cells as strangers write them, one at a time in a row of ours: each comes to a setting, or leaves
 * the row out for a reason. What is misread in silence is worse than either. */
#include <glib/gstdio.h>
#include <string.h>

#include "cli/published/train/words.h"
#include "cli/validate/validate.h"

/* The row that a case changes; a column that no case names stays as it is. */
static const char *const ours[][2] = {
    {"measured_date", "2025-01"},
    {"hardware", "H100"},
    {"gpu_mem_gb", ""},
    {"gpus", "16"},
    {"gpus_per_node", "8"},
    {"interconnect", ""},
    {"framework", "PyTorch"},
    {"model", "x"},
    {"params", ""},
    {"layers", "2"},
    {"d_model", "256"},
    {"heads", "4"},
    {"kv_heads", "4"},
    {"d_ff", "688"},
    {"mlp_type", "swiglu"},
    {"vocab", "1000"},
    {"tied_embeddings", ""},
    {"seq_len", "4096"},
    {"micro_batch", "2"},
    {"grad_accum", ""},
    {"sharding_strategy", "FSDP2"},
    {"shard_degree", ""},
    {"dp_replicate", ""},
    {"tp", ""},
    {"pp", ""},
    {"cp", ""},
    {"ep", ""},
    {"activation_checkpointing", ""},
    {"offload", ""},
    {"precision", "bf16"},
    {"reduce_dtype", ""},
    {"compile", ""},
    {"attention_impl", ""},
    {"optimizer", ""},
    {"lora_rank", ""},
    {"lora_on", ""},
    {"step_ms", "1000"},
    {"tflops_per_gpu", ""},
    {"mfu_pct", ""},
    {"notes", ""},
};

static void add(GString *line, const char *field) {
    g_string_append_printf(line, "%s\"%s\"", line->len ? "," : "", field);
}

typedef struct {
    const char *column, *cell, *says; /* after "!": not */
    const char *besides[3][2];        /* columns and their cells */
} Cell;

static const char *cell_of(const Cell *c, const char *const column[2]) {
    if (g_str_equal(c->column, column[0])) {
        return c->cell;
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(c->besides) && c->besides[i][0]; i++) {
        if (g_str_equal(c->besides[i][0], column[0])) {
            return c->besides[i][1];
        }
    }
    return column[1];
}

/* Of a table with the one row: what `validate --settings` says of it, or why it refuses it. */
static char *read_as(const Cell *c) {
    g_autoptr(GString) header = g_string_new(NULL), fields = g_string_new(NULL);
    for (unsigned i = 0; i < G_N_ELEMENTS(ours); i++) {
        add(header, ours[i][0]);
        add(fields, cell_of(c, ours[i]));
    }
    g_autoptr(GError) error = NULL;
    g_autofree char *folder = g_dir_make_tmp("foreshard-cells-XXXXXX", &error);
    g_assert_no_error(error);
    g_autofree char *path = g_build_filename(folder, "t.csv", NULL);
    g_autofree char *listed = g_build_filename(folder, "settings", NULL);
    g_autofree char *table = g_strconcat(header->str, "\n", fields->str, "\n", NULL);
    g_assert_true(g_file_set_contents(path, table, -1, NULL));
    FILE *to = g_fopen(listed, "w");
    bool read = cli_validation_list((const char *const[]){path, NULL}, 1, to, &error);
    fclose(to);
    char *said = NULL;
    g_assert_true(g_file_get_contents(listed, &said, NULL, NULL));
    g_unlink(path);
    g_unlink(listed);
    g_rmdir(folder);
    if (!read) {
        g_free(said);
        return g_strdup(error->message);
    }
    char *row = g_strdup(strchr(said, '\n') + 1);
    g_free(said);
    return row;
}

static void check(const Cell *cells, unsigned n) {
    for (unsigned i = 0; i < n; i++) {
        const Cell *c = &cells[i];
        g_autofree char *said = read_as(c);
        bool turned = *c->says == '!';
        if ((strstr(said, c->says + turned) != NULL) == turned) {
            g_test_message("%s = '%s': '%s' in: %s", c->column, c->cell, c->says, said);
            g_test_fail();
        }
    }
}
#define CHECK(...)                                                                                 \
    do {                                                                                           \
        static const Cell cells[] = {__VA_ARGS__};                                                 \
        check(cells, G_N_ELEMENTS(cells));                                                         \
    } while (0)

static void gpus(void) {
    CHECK({"hardware", "A100", "a100-p4d", {{"gpu_mem_gb", "40"}}},
          {"hardware", "A100", "a100-roce", {{"gpu_mem_gb", "80 GB"}}},
          {"hardware", "V100", "memory_bytes=16943000000", {{"gpu_mem_gb", "16"}}},
          {"hardware", "NVIDIA L40", "matmul_bf16_tflops=181.05"},
          {"hardware", "L40-48GB", "matmul_bf16_tflops=181.05"},
          {"hardware", "NVIDIA L40S", "!matmul_bf16_tflops"},
          {"hardware", "H100 NVL", "memory_bytes=99965000000"},
          {"hardware", "H200 NVL", "bridges of NVLink"}, {"hardware", "RTX 6000 Ada", "l40s-node"},
          {"hardware", "A6000 Ada", "l40s-node"}, {"hardware", "RTX A6000", "a6000-node"},
          {"hardware", "RTX 4090 D", "device.sms=114"}, {"hardware", "RTX 4090", "!device.sms"},
          {"hardware", "RTX 3090 Ti", "device.sms=84"},
          {"hardware", "NVIDIA RTX PRO 6000 Blackwell Server Edition", "device.sms=188"},
          {"hardware", "V100-PCIE-32GB", "nccl_channels=1"},
          {"hardware", "NVIDIA A100-PCIE-40GB", "device.memory_gb_per_s=1555"},
          {"hardware", "A100 PCIe 80GB", "!device.memory_gb_per_s"},
          {"interconnect", "PCIe", "device.memory_gb_per_s=1555", {{"hardware", "A100 40GB"}}},
          {"hardware", "NVIDIA GH200 144G HBM3e", "device.memory_gb_per_s=4900"},
          {"hardware", "NVIDIA GH200 480GB", "!device.memory_gb_per_s"},
          {"hardware", "Quadro RTX 6000", "no rule names a cluster"},
          {"hardware", "DGX Spark", "no rule names a cluster"},
          {"interconnect", "PCIe only", "h100-pcie"}, {"interconnect", "no NVLink", "h100-pcie"},
          {"interconnect", "NVLink intra; 400 Gb/s per GPU", "dgx-h100"},
          {"interconnect", "EFA", "h100-p5"}, {"interconnect", "RoCE 4x200G", "nic_gb_per_s=12.5"},
          {"interconnect", "25GbE", "nic_gb_per_s=0.390625"},
          {"interconnect", "1x HDR", "nic_gb_per_s=3.125"},
          {"interconnect", "IB NDR", "IB NDR,dgx-h100"});
}

static void shardings(void) {
    CHECK(
        {"sharding_strategy", "FSDP v2", "flavour=fsdp2"},
        {"sharding_strategy", "FSDP-2", "flavour=fsdp2"},
        {"sharding_strategy", "fsdp (v2)", "flavour=fsdp2"},
        {"sharding_strategy", "fully_shard", "flavour=fsdp2"},
        {"sharding_strategy", "FSDP v1", "flavour=fsdp1"},
        {"sharding_strategy", "FullyShardedDataParallel", "flavour=fsdp1"},
        {"sharding_strategy", "ZeRO-3 (FSDP)", "flavour=fsdp1"},
        {"sharding_strategy", "torch.nn.parallel.DistributedDataParallel", "flavour=ddp"},
        {"sharding_strategy", "SHARD_GRAD_OP", "sharding=grad-op"},
        {"sharding_strategy", "FSDP2 ZeRO-2", "sharding=grad-op"},
        {"sharding_strategy", "HSDP", "sharding=hybrid"},
        {"sharding_strategy", "_HYBRID_SHARD_ZERO2", "sharding=hybrid-grad-op"},
        {"sharding_strategy", "FSDP=8, DP=2", "sharding=hybrid replicate=2"},
        {"sharding_strategy", "FSDP2, dp_shard: 4", "replicate=4"},
        {"sharding_strategy", "FSDP2", "replicate=4", {{"shard_degree", "4"}}},
        {"sharding_strategy", "FSDP=16", "!replicate="},
        {"sharding_strategy", "FSDP=8, TP=2", "!replicate="},
        {"sharding_strategy", "FSDP2, no reshard", "reshard_after_forward=no"},
        {"sharding_strategy", "FSDP2 + AC", "checkpointing=full"},
        {"sharding_strategy", "FSDP2 without AC", "!checkpointing=full"},
        {"sharding_strategy", "FSDP2 + TP2", "tensor=2"},
        {"sharding_strategy", "FSDP2 + TP", "tp does not say how many"},
        {"sharding_strategy", "FSDP2 + PP", "pp does not say how many"},
        {"sharding_strategy", "full_shard offload", "offload=params"},
        {"sharding_strategy", "FSDP2 ZeRO-1", "the optimizer's state alone"},
        {"sharding_strategy", "DDP + ZeRO-1", "flavour=zero1", {{"framework", ""}}},
        {"sharding_strategy",
         "ZeroRedundancyOptimizer",
         "flavour=zero1",
         {{"framework", "a loop"}}},
        {"sharding_strategy", "DDP, ZeRO-1", "the optimizer's state", {{"framework", "DeepSpeed"}}},
        {"sharding_strategy", "DeepSpeed ZeRO-3", "no rule knows"},
        {"sharding_strategy", "Megatron", "no rule knows"}, {"tp", "N/A", "!tensor"},
        {"tp", "-", "!tensor"}, {"tp", "0", "!tensor"}, {"pp", "-", "!pipeline"},
        {"cp", "-", "!context"}, {"ep", "-", "!expert"}, {"dp_replicate", "-", "flavour=fsdp2"});
}

static void frameworks(void) {
    CHECK({"framework", "FSDP2", "flavour=fsdp2", {{"sharding_strategy", "full_shard"}}},
          {"framework", "PyTorch FSDP v2", "flavour=fsdp2", {{"sharding_strategy", ""}}},
          {"framework", "PyTorch FSDP (v1)", "flavour=fsdp1", {{"sharding_strategy", ""}}},
          {"framework", "NeMo AutoModel (FSDP2)", "flavour=fsdp2"},
          {"framework", "LlamaFactory", "host_reads=loss"},
          {"framework", "fms-hf-tuning", "host_reads=loss"}, {"framework", "open_lm", "clip=1"},
          {"framework", "nanotron", "no rule knows"}, {"framework", "GPT-NeoX", "no rule knows"},
          {"framework", "fairseq", "no rule knows"}, {"framework", "unsloth", "no rule knows"});
}

/* What trains on one GPU and shards nothing needs no schedule of its own. */
static void one_gpu(void) {
    static const char *const of[][3] = {
        {"PyTorch", "bf16", "autocast=bf16"},         {"a script", "", "autocast=bf16"},
        {"PyTorch Lightning", "fp32", "!autocast"},   {"PyTorch", "fp16", "autocast=fp16"},
        {"PyTorch", "bf16-true", "model_dtype=bf16"}, {"torchtune", "bf16", "model_dtype=bf16"},
        {"torchtune", "bf16", "!autocast"},           {"JAX", "bf16", "no rule knows"},
        {"llm.c", "bf16", "no rule knows"},           {"DeepSpeed", "bf16", "no rule knows"}};
    static const char *const words[] = {"", "none", "single GPU", "n/a"};
    for (unsigned i = 0; i < G_N_ELEMENTS(of); i++) {
        for (unsigned k = 0; k < G_N_ELEMENTS(words); k++) {
            check(
                &(Cell){"framework",
                        of[i][0],
                        of[i][2],
                        {{"precision", of[i][1]}, {"gpus", "1"}, {"sharding_strategy", words[k]}}},
                1);
        }
    }
}

/* DDP by any name, in any dtype; what it was taken for without its rules is FSDP1. */
static void ddp(void) {
    static const char *const some[][2] = {{"fp16", "autocast=fp16"},
                                          {"float16 mixed precision", "autocast=fp16"},
                                          {"mixed (fp16)", "loss_scale=dynamic"},
                                          {"AMP fp16", "autocast=fp16"},
                                          {"half", "autocast=fp16"},
                                          {"fp16 (autocast, GradScaler)", "autocast=fp16"},
                                          {"pure fp16", "model_dtype=fp16"},
                                          {"bf16-true", "model_dtype=bf16"},
                                          {"fp32", "param_dtype=fp32"}};
    static const char *const names[] = {"DDP", "DDP (8 GPUs)", "data parallel", "replicate"};
    for (unsigned i = 0; i < G_N_ELEMENTS(some); i++) {
        for (unsigned k = 0; k < G_N_ELEMENTS(names); k++) {
            Cell by_sharding[] = {{"precision",
                                   some[i][0],
                                   some[i][1],
                                   {{"framework", "PyTorch"}, {"sharding_strategy", names[k]}}},
                                  {"precision",
                                   some[i][0],
                                   "flavour=ddp",
                                   {{"framework", "PyTorch"}, {"sharding_strategy", names[k]}}}};
            check(by_sharding, G_N_ELEMENTS(by_sharding));
        }
        check(&(Cell){"precision",
                      some[i][0],
                      "flavour=ddp",
                      {{"framework", "PyTorch DDP"}, {"sharding_strategy", ""}}},
              1);
    }
    CHECK({"framework",
           "PyTorch Lightning DDP",
           "flavour=ddp",
           {{"sharding_strategy", "DDP"}, {"precision", "bf16-mixed"}}});
}

static void checkpointings(void) {
    static const char *const all[] = {"GC",
                                      "grad ckpt",
                                      "act ckpt",
                                      "AC: full",
                                      "every layer",
                                      "activation-checkpointing",
                                      "per-layer",
                                      "use_reentrant=False",
                                      "TransformerBlock",
                                      "full (non-reentrant)"};
    for (unsigned i = 0; i < G_N_ELEMENTS(all); i++) {
        check(&(Cell){"activation_checkpointing", all[i], " checkpointing=full"}, 1);
    }
    static const char *const some[][2] = {{"every 3rd block", "every=3"},
                                          {"every other layer", "every=2"},
                                          {"every fourth layer", "every=4"},
                                          {"selective 2", "every=2"},
                                          {"selective (2)", "every=2"},
                                          {"selective layer 2", "every=2"},
                                          {"ac_freq=4", "every=4"},
                                          {"1 of 2", "ratio=0.5"},
                                          {"8 out of 32 layers", "ratio=0.25"}};
    for (unsigned i = 0; i < G_N_ELEMENTS(some); i++) {
        g_autofree char *setting = g_strconcat(" checkpointing=", some[i][1], NULL);
        check(&(Cell){"activation_checkpointing", some[i][0], setting}, 1);
    }
    CHECK({"activation_checkpointing", "activation checkpointing: none", "checkpointing=none"},
          {"activation_checkpointing", "gradient_checkpointing=False", "checkpointing=none"},
          {"activation_checkpointing", "-", "!checkpointing"},
          {"activation_checkpointing", "full + offload", "this offload"},
          {"activation_checkpointing", "attention only", "what this recomputes"},
          {"activation_checkpointing", "50%", "what this recomputes"},
          {"offload", "-", "!offload=params"}, {"offload", "disabled", "!offload=params"},
          {"offload", "CPU offload", "offload=params"}, {"offload", "yes", "this offload"});
}

static void dtypes_and_kernels(void) {
    CHECK({"precision", "32", "param_dtype=fp32"}, {"precision", "32-true", "param_dtype=fp32"},
          {"precision", "torch.float32", "param_dtype=fp32"},
          {"precision", "full precision", "param_dtype=fp32"},
          {"precision", "torch.bfloat16", "param_dtype=bf16"},
          {"precision", "tf32", "matmul_fp32_tflops=494.7"},
          {"precision", "tf32", "matmul_fp32_tflops=77.4", {{"hardware", "A6000"}}},
          {"precision", "O2", "no rule knows this precision"},
          {"precision", "pure fp16", "model_dtype=fp16"},
          {"precision", "fp16-true", "model_dtype=fp16", {{"framework", "PyTorch DDP"}}},
          {"precision",
           "fp16 (pure)",
           "loss_scale=none",
           {{"framework", "PyTorch"}, {"gpus", "1"}, {"sharding_strategy", "none"}}},
          {"precision", "bf16, LoRA r=16", "lora_rank=16"},
          {"precision", "bf16 + LoRA", "rank is not said"},
          {"reduce_dtype", "same", "reduce_dtype=param"},
          {"reduce_dtype", "param dtype", "reduce_dtype=param"},
          {"reduce_dtype", "fp16", "reduce_dtype=fp16"},
          {"reduce_dtype", "torch.bfloat16", "reduce_dtype=bf16"},
          {"compile", "compiled", "kernels=compiled"},
          {"compile", "yes (per block)", "kernels=compiled"},
          {"compile", "per TransformerBlock", "kernels=compiled"},
          {"compile", "loss only", "as a whole graph"},
          {"attention_impl", "FlashAttention v3", "attention_kernel=cudnn"},
          {"attention_impl", "FA-3", "attention_kernel=cudnn"},
          {"attention_impl", "FA2", "attention_kernel=flash"},
          {"attention_impl", "flex", "FlexAttention is not"},
          {"optimizer", "SOAP", "this optimizer"}, {"optimizer", "int8 Adam", "this optimizer"},
          {"optimizer", "DeepSpeedCPUAdam", "this optimizer"},
          {"optimizer", "adamw_torch_fused", "optimizer_kernel=fused"},
          {"notes", "LoRA rank 8, alpha 16", "lora_rank=8"},
          {"notes", "the LoRA run took 3 h", "!lora_rank"}, {"lora_rank", "r=16", "lora_rank=16"},
          {"lora_rank", "N/A", "!lora_rank"},
          {"lora_on", "qkv", "lora_on=module=.*\\.(q|k|v)", {{"lora_rank", "8"}}},
          {"lora_on", "mlp", "lora_on=module=.*\\.(gate|up|down)", {{"lora_rank", "8"}}},
          {"lora_on", "q_proj, v_proj", "!module=", {{"lora_rank", "8"}}},
          {"lora_on", "q_proj, v_proj", "lora_rank=8", {{"lora_rank", "8"}}},
          {"lora_on",
           "['k_proj', 'q_proj', 'v_proj', 'up_proj', 'down_proj', 'gate_proj']",
           "lora_on=module=.*\\.(q|k|v|gate|up|down)",
           {{"lora_rank", "8"}}},
          {"lora_on", "attention and MLP", "lora_on=all-linear", {{"lora_rank", "8"}}},
          {"lora_on", "Wq+Wk+Wv+Wo", "lora_on=module=.*\\.(q|k|v|o)", {{"lora_rank", "8"}}},
          {"lora_on", "c_attn", "beside which layers", {{"lora_rank", "8"}}},
          {"lora_on",
           "q_proj, v_proj, fc1, fc2",
           "lora_on=module=.*\\.(q_proj|v_proj|fc1|fc2)",
           {{"lora_rank", "8"}}},
          {"lora_on", "q k v o fc1 fc2", "lora_on=all-linear", {{"lora_rank", "8"}}},
          {"lora_on", "q_proj and the embedding", "beside which layers", {{"lora_rank", "8"}}});
}

/* What FLOP/s count, of a row that has no other time. */
static void flops(void) {
    static const char all[] = "FLOP/s with recomputation";
    CHECK({"tflops_per_gpu",
           "150",
           all,
           {{"step_ms", ""}, {"measured_date", "2022-11"}, {"activation_checkpointing", "full"}}},
          {"tflops_per_gpu",
           "150",
           "FLOP/s of the model",
           {{"step_ms", ""}, {"measured_date", "2024-11"}, {"activation_checkpointing", "full"}}},
          {"tflops_per_gpu",
           "150",
           "FLOP/s of the model",
           {{"step_ms", ""}, {"measured_date", "2022-11"}, {"activation_checkpointing", "none"}}});
}

static void numbers(void) {
    static const struct {
        const char *column, *cell, *plain;
    } cases[] = {{"seq_len", "4k", "4096"},
                 {"seq_len", "32K", "32768"},
                 {"seq_len", "4,096", "4096"},
                 {"seq_len", "4096", "4096"},
                 {"params", "7B", "7000000000"},
                 {"params", "124M", "124000000"},
                 {"params", "6,738,415,616", "6738415616"},
                 {"gpu_mem_gb", "80 GB", "80"},
                 {"mfu_pct", "45.2 %", "45.2"},
                 {"step_ms", "~950 ms", "950"},
                 {"step_ms", "\xe2\x89\x88 950", "\xe2\x89\x88 950"},
                 {"step_ms",
                  "\xe2\x89\x88"
                  "950",
                  "950"},
                 {"tp", "N/A", ""},
                 {"tp", "none", ""},
                 {"tp", "-", ""},
                 {"vocab", "1e5", "1e5"},
                 /* as many as there are readings */
                 {"vocab", "32k", "32k"},
                 {"global_batch_tokens", "4M", "4M"},
                 {"peak_mem_gib", "73 GB", "73 GB"},
                 {"step_ms", "1.5 s", "1.5 s"},
                 {"gpus", "1,23", "1,23"}};
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *plain = cli_train_words_number(cases[i].column, cases[i].cell);
        g_assert_cmpstr(plain, ==, cases[i].plain);
    }
    CHECK({"seq_len", "4k", "seq=4096"}, {"seq_len", "4096 words", "seq_len is '4096 words'"},
          {"mfu_pct", "0.45", "mfu_pct=45 (assumed", {{"step_ms", ""}}},
          {"mfu_pct", "45%", "mfu_pct=45 (our", {{"step_ms", ""}}},
          {"tied_embeddings", "True", "network.tied=yes"},
          {"tied_embeddings", "False", "!network.tied"},
          {"measured_date", "June 2025", "measured_date=2025-06"},
          {"measured_date", "3 June 2025", "measured_date=2025-06"},
          {"measured_date", "2025/06/03", "measured_date=2025-06"},
          {"measured_date", "06/2025", "measured_date=2025-06"});
}

static void models(void) {
    CHECK({"model", "mistralai/Mistral-7B-v0.1", "model=Mistral-7B-v0.1"},
          {"model", "Qwen/Qwen3-8B", "qk_norm=head"}, {"model", "facebook/opt-1.3b", "model=opt"},
          {"model", "moe-8x (4B total/1.8B active)", "total/1.8B active"},
          {"notes", "the decoder gets 114 tokens", "target_seq=114"},
          {"notes", "targets of 64 tokens", "target_seq=64"},
          {"notes", "max_target_length=128", "target_seq=128"},
          {"notes", "a target of 2.9 in the loss", "!target_seq"});
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/strangers/cells: GPUs and links", gpus);
    g_test_add_func("/strangers/cells: shardings", shardings);
    g_test_add_func("/strangers/cells: frameworks", frameworks);
    g_test_add_func("/strangers/cells: one GPU", one_gpu);
    g_test_add_func("/strangers/cells: DDP", ddp);
    g_test_add_func("/strangers/cells: checkpointing and offload", checkpointings);
    g_test_add_func("/strangers/cells: dtypes, kernels, adapters", dtypes_and_kernels);
    g_test_add_func("/strangers/cells: FLOP/s", flops);
    g_test_add_func("/strangers/cells: numbers and dates", numbers);
    g_test_add_func("/strangers/cells: models", models);
    return g_test_run();
}
