/* Tables as strangers write them: a row is predicted, or skipped for a reason that says what is
 * missing; what is malformed is an error with its line. */
#include <glib/gstdio.h>
#include <math.h>
#include <string.h>

#include "cli/validate/train-link.h"
#include "cli/validate/train-row.h"
#include "cli/validate/validate.h"
#include "plan/files/leftovers.h"

static char *tables_folder; /* of the tables that are written */

static char *written(const char *text) {
    char *path = g_build_filename(tables_folder, "t.csv", NULL);
    g_assert_true(g_file_set_contents(path, text, -1, NULL));
    return path;
}

/* What rules make of each row, a line each. */
static char *settings_of(const char *table) {
    g_autoptr(GError) error = NULL;
    g_autofree char *path = written(table), *listed = g_strconcat(path, ".settings", NULL);
    FILE *to = g_fopen(listed, "w");
    cli_validation_list((const char *const[]){path, NULL}, 1, to, &error);
    g_assert_no_error(error);
    fclose(to);
    char *said = NULL;
    g_assert_true(g_file_get_contents(listed, &said, NULL, NULL));
    char *rows = g_strdup(strchr(said, '\n') + 1);
    g_free(said);
    return rows;
}

/* One table; row i is to be skipped with expected[i] in its reason, or predicted (NULL). */
static void expect(const char *table, const char *const *expected, unsigned n) {
    g_autoptr(GError) error = NULL;
    g_autoptr(CliValidation) validation = cli_validation_new(NULL);
    g_autofree char *path = written(table);
    cli_validation_add(validation, path, &error);
    g_assert_no_error(error);
    const GArray *rows = ((CliValidatedTable *)validation->tables->pdata[0])->rows;
    g_assert_cmpuint(rows->len, ==, n);
    for (unsigned i = 0; i < n; i++) {
        const CliValidatedRow *row = &g_array_index(rows, CliValidatedRow, i);
        const char *why = row->skipped ? row->skipped : "predicted";
        if (!strstr(why, expected[i] ? expected[i] : "predicted")) {
            g_test_message("line %u: '%s' instead of '%s'", row->line, why, expected[i]);
            g_test_fail();
        }
        g_assert_true(row->skipped || row->predicted > 0);
    }
}

static void refuse(const char *table, const char *message) {
    g_autoptr(GError) error = NULL;
    g_autoptr(CliValidation) validation = cli_validation_new(NULL);
    g_autofree char *path = written(table);
    g_assert_false(cli_validation_add(validation, path, &error));
    g_assert_nonnull(error);
    g_assert_nonnull(strstr(error->message, message));
}

#define EXPECT(table, ...)                                                                         \
    do {                                                                                           \
        static const char *const expected[] = {__VA_ARGS__};                                       \
        expect(table, expected, G_N_ELEMENTS(expected));                                           \
    } while (0)

/* ---- training runs -------------------------------------------------------------------------- */

#define RUNS                                                                                       \
    "hardware,gpus,interconnect,framework,sharding_strategy,model,params,layers,d_model,seq_len,"  \
    "micro_batch,global_batch_seqs,precision,activation_checkpointing,tokens_per_s_per_gpu,"       \
    "tokens_per_s,samples_per_s,step_ms,tflops_per_gpu,mfu_pct,hfu_pct,mlp_type,heads,kv_heads,"   \
    "d_ff,vocab,grad_accum,dp_replicate\n"

static void columns_of_time(void) {
#define RUN "A100,8,,PyTorch FSDP,,x,,2,256,512,2,,bf16,,"
#define END ",,,,,,,\n"
    EXPECT(RUNS RUN "9e4,,,,,," END RUN ",7e5,,,,," END RUN ",,1400,,,," END RUN ",,,11,,," END RUN
                    ",,,,20,," END RUN ",,,,,7," END RUN ",,,,,,9" END RUN ",,,,,," END,
           NULL, NULL, NULL, NULL, NULL, NULL, NULL, "neither a time nor a peak");
}

static void words(void) {
#define SHAPE ",x,,2,256,512,2,,"
#define TIME  ",9e4,,,,,,,,,,,,,\n"
    EXPECT(RUNS "nvidia a100-sxm4-80gb,8,,Pytorch fsdp,Full_Shard" SHAPE "BF16,None" TIME
                "H100,16,8x400Gb/s IB,HF Trainer,hybrid_shard" SHAPE "bf16,True" TIME
                "H100,16,,DeepSpeed,ZeRO-3" SHAPE "bf16," TIME "MI300X,8,,PyTorch FSDP2," SHAPE
                "bf16," TIME "GB200,4,,PyTorch FSDP2," SHAPE "bf16," TIME
                "V100-SXM2-16GB,8,,PyTorch FSDP1," SHAPE "fp16," TIME
                "V100-SXM2-16GB,8,,PyTorch FSDP1," SHAPE "bf16," TIME
                "V100-SXM2-16GB,32,,PyTorch FSDP1," SHAPE "fp16," TIME
                "V100-SXM2-16GB,32,100 Gb/s per node,PyTorch FSDP1," SHAPE "fp16," TIME
                "H100,8,,PyTorch DDP,DDP" SHAPE "bf16," TIME "H100,8,,PyTorch DDP,DDP" SHAPE
                "fp32," TIME "H100,8,,pytorch ddp,ddp" SHAPE "bf16-true," TIME
                "H100,8,,PyTorch FSDP2,FSDP2" SHAPE "FP8," TIME "H100,8,,torchtitan,FSDP2" SHAPE
                "bf16,Selective" TIME "H100,8,,PyTorch FSDP2,FSDP2" SHAPE "bf16,selective" TIME
                "H100,8,,PyTorch FSDP,FSDP" SHAPE "bf16,full on 1 of 2 layers" TIME
                "H100,5000,,PyTorch FSDP,FSDP" SHAPE "bf16," TIME
                "H100,8,,PyTorch FSDP,FSDP,Mixtral-8x7B,,2,256,512,2,,bf16," TIME
                "H100,8,,HF PEFT QLoRA,FSDP" SHAPE "nf4," TIME
                "H100,8.0,,PyTorch FSDP,FSDP,x,,2.0,256.0,512.0,2.0,,bf16," TIME
                "H100,8,,PyTorch FSDP,FSDP" SHAPE "posit," TIME,
           NULL, NULL, "no rule knows this framework", "no cluster file has this GPU", NULL, NULL,
           "cannot compute in this dtype", "names a network", NULL, NULL, NULL, NULL,
           "float8 is planned as torchao", NULL, "other operations", NULL, NULL,
           "how this program runs its experts", "weights of 4 bits", NULL,
           "no rule knows this precision");
}

/* Two rows that are left out for one reason have the same text for it, without the rows' places. */
static void one_reason(void) {
    g_autoptr(GError) error = NULL;
    g_autoptr(CliValidation) validation = cli_validation_new(NULL);
    g_autofree char *path =
        written("hardware,gpus,framework,model,layers,d_model,heads,mlp_type,vocab,seq_len,"
                "micro_batch,compile,tokens_per_s_per_gpu\n"
                "A100,8,PyTorch FSDP2,pythia of two layers,2,256,8,gelu,512,128,1,yes,9e4\n"
                "A100,8,PyTorch FSDP2,pythia of four layers,4,256,8,gelu,512,128,1,yes,9e4\n");
    cli_validation_add(validation, path, &error);
    g_assert_no_error(error);
    const GArray *rows = ((CliValidatedTable *)validation->tables->pdata[0])->rows;
    g_assert_cmpuint(rows->len, ==, 2);
    const char *why = g_array_index(rows, CliValidatedRow, 0).skipped;
    g_assert_nonnull(strstr(why, "kernels = compiled is not planned for families"));
    g_assert_null(strstr(why, "t.csv"));
    g_assert_cmpstr(why, ==, g_array_index(rows, CliValidatedRow, 1).skipped);
}

/* Adapters: their rank from words or a column, beside which layers, and what is not planned. */
static void adapters(void) {
#define LORA ",2,256,8,8,688,swiglu,512,2,bf16,9e4,"
    EXPECT("hardware,gpus,framework,sharding_strategy,model,layers,d_model,heads,kv_heads,d_ff,"
           "mlp_type,seq_len,micro_batch,precision,tokens_per_s_per_gpu,lora_rank,lora_on\n"
           "A100,1,HF Trainer,,x LoRA r=16" LORA ",\n"
           "A100,8,HF Trainer FSDP1,FULL_SHARD,x LoRA (rank 8)" LORA ",\n"
           "A100,8,torchtune,FSDP2,x LoRA" LORA "64,all linear\n"
           "A100,8,HF Trainer,DDP,x" LORA "8,\"q_proj,v_proj\"\n"
           "A100,8,HF Trainer FSDP1,FULL_SHARD,x LoRA" LORA ",\n"
           "A100,8,HF Trainer FSDP1,FULL_SHARD,x LoRA" LORA "8,router\n"
           "A100,8,HF Trainer FSDP1,FULL_SHARD,x QLoRA r=8" LORA ",\n",
           NULL, NULL, NULL, NULL, "rank is not said", "beside which layers", "weights of 4 bits");
}

/* A rule that comes late says an older PyTorch, whose default another rule's word still replaces:
 * the second run's optimizer is fused, the first's is not, and takes longer. */
static void version_comes_first(void) {
    g_autoptr(GError) error = NULL;
    g_autoptr(CliValidation) validation = cli_validation_new(NULL);
    g_autofree char *path = written(
        "measured_date,notes," RUNS "2024-06,,A100,8,,torchtitan,FSDP2" SHAPE "bf16,None" TIME
        "2024-06,fused=True,A100,8,,torchtitan,FSDP2" SHAPE "bf16,None" TIME);
    cli_validation_add(validation, path, &error);
    g_assert_no_error(error);
    const GArray *rows = ((CliValidatedTable *)validation->tables->pdata[0])->rows;
    g_assert_cmpuint(rows->len, ==, 2);
    g_assert_cmpfloat(g_array_index(rows, CliValidatedRow, 0).predicted, >,
                      g_array_index(rows, CliValidatedRow, 1).predicted);
}

static void what_is_missing(void) {
#define FSDP "A100,8,,PyTorch FSDP,,"
#define REST ",,bf16,,9e4,,,,,,,,,,,,,\n"
    EXPECT(RUNS FSDP "gpt2,,,,256,1" REST FSDP "mystery,1e9,,,256,1" REST FSDP "x,,2,256,,1" REST
                     "A100,,,PyTorch FSDP,,x,,2,256,512,1" REST FSDP "x,,2.5,256,512,1" REST
                     "A100,8,,PyTorch FSDP,,x,,2,256,512,,32,bf16,,9e4,,,,,,,,,,,,,\n",
           NULL, "layers and d_model are not said", "does not say seq_len", "does not say gpus",
           "layers must be a whole number", NULL);
    EXPECT("offload," RUNS "none," FSDP "x,,2,256,512,1" REST "CPU (params)," FSDP
           "x,,2,256,512,1" REST "optimizer states," FSDP "x,,2,256,512,1" REST,
           NULL, NULL, "this offload is not in our plans");
    EXPECT("gpus_per_node," RUNS "0," FSDP "x,,2,256,512,1" REST "1.5," FSDP "x,,2,256,512,1" REST
           "1e19," FSDP "x,,2,256,512,1" REST "4," FSDP "x,,2,256,512,1" REST,
           "gpus_per_node must be", "gpus_per_node must be", "gpus_per_node must be", NULL);
    refuse(RUNS "A100,eight,,PyTorch FSDP,,x,,2,256,512,1" REST, "t.csv:2: gpus is 'eight'");
    refuse(RUNS "A100,-8,,PyTorch FSDP,,x,,2,256,512,1" REST,
           "t.csv:2: gpus is '-8', which is less");
    refuse("hardware,nodes,gpus,op,bytes,time_us,busbw_GBps\nA100,1,8,all_reduce,1e8,800,\n"
           "A100,1,8,all_reduce,1e8,-800,\n",
           "t.csv:3: time_us is '-800', which is less");
    refuse(RUNS FSDP "x,,2\n", "t.csv:2: 8 fields");
}

/* Of a program that no rule knows: what most known ones do, if its blocks are Llama's. */
static void unknown_programs(void) {
    static const struct {
        const char *mlp, *settings[4]; /* in this order */
    } cases[] = {{"SwiGLU", {"rms_norm=ops", "network.loss=fp32", "network.family=llama"}},
                 {"gelu", {"network.family=gpt"}}};
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *row =
            g_strdup_printf("%sH100,8,,Some lab's trainer,FSDP2,x,,2,256,512,2,,bf16,,9e4,,,,,,,%s"
                            ",4,4,688,1000,1,\n",
                            RUNS, cases[i].mlp);
        g_autofree char *text = settings_of(row);
        const char *rest = strstr(text, ",in,");
        g_assert_nonnull(rest);
        for (const char *const *s = cases[i].settings; *s; s++) {
            const char *found = strstr(rest, *s);
            g_test_message("%s: %s in %s", cases[i].mlp, *s, text);
            g_assert_nonnull(found);
            rest = found;
        }
        g_assert_true(g_str_equal(cases[i].mlp, "SwiGLU") || !strstr(text, "rms_norm"));
    }
}

/* A row's settings have these words, or the row is left out for a reason with the word. */
static void others_words(void) {
    static const struct {
        const char *row, *word;
    } cases[] = {
        /* hardware, gpus a node, framework, sharding, model, layers, precision, compile, tp, seq */
        {"A100 (80GB),8,HF Accelerate,FSDP2,x,2,bf16,,,512", "flavour=fsdp2"},
        {"H100 SXM5 80GB,8,axolotl,fully_shard,x,2,bf16,,None,512", "flavour=fsdp2"},
        {"8xH100,N/A,Hugging Face Trainer,FSDP,x,2,bf16,n/a,1,512", "host_reads=loss"},
        {"H100,8,PyTorch,Full Shard,x,2,bf16,,,512", "flavour=fsdp1"},
        {"H100,8,PyTorch,ZeRO-2,x,2,bf16,,,512", "sharding=grad-op"},
        {"H100,8,PyTorch FSDP2,FSDP2,x,2,\"fp32 master, bf16 compute\",,,512", "param_dtype=bf16"},
        {"H100,8,torchtitan,FSDP2,x,2,FP8 (rowwise),,,512", "float8=rowwise"},
        {"H100,8,torchtitan,FSDP2 + async TP,x,2,bf16,yes,2,512", "async_tensor=yes"},
        {"H100,8,PyTorch FSDP2,FSDP2,x,2,bf16,regional,,512", "kernels=compiled"},
        {"H100,8,PyTorch FSDP2,FSDP2,Qwen/Qwen3-32B,2,bf16,,,512", "network.qk_norm=head"},
        {"H100,8,PyTorch FSDP2,FSDP2,meta-llama/Llama-2-7b-hf,,bf16,,,8192", "network.seq=8192"},
        {"AWS p5.48xlarge,8,PyTorch FSDP2,FSDP2,x,2,bf16,,,512", "h100-p5"},
        {"GH200,8,PyTorch FSDP2,FSDP2,x,2,bf16,,,512", "known of nodes that have fewer"},
        {"H100,8,PyTorch FSDP2,FSDP2,falcon-7b,2,bf16,,,512,gelu", "none of our families'"},
        {"H100,8,SimpleFSDP,FSDP2,x,2,bf16,,,512", "fused kernels"},
    };
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        bool says_mlp = g_str_has_suffix(cases[i].row, "gelu");
        g_autofree char *table = g_strdup_printf(
            "hardware,gpus_per_node,framework,sharding_strategy,model,layers,precision,compile,tp,"
            "seq_len,mlp_type,gpus,d_model,heads,kv_heads,d_ff,vocab,micro_batch,"
            "tokens_per_s_per_gpu\n%s%s,8,1024,8,8,2816,1000,1,1000\n",
            cases[i].row, says_mlp ? "" : ",swiglu");
        g_autofree char *text = settings_of(table);
        if (!strstr(text, cases[i].word)) {
            g_test_message("'%s' is not in: %s", cases[i].word, text);
            g_test_fail();
        }
    }
}

/* ---- what follows from other fields --------------------------------------------------------- */

static void filled(void) {
    g_autoptr(GError) error = NULL;
    g_autofree char *path =
        written("model,gpus,gpus_per_node,sharding_strategy,shard_degree,dp_replicate,seq_len,"
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
        g_autofree char *path = written(table);
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
    refuse("hardware,gpus,framework,model,experts,seq_len,micro_batch,step_ms\n"
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
    refuse("framework,model,gpus,seq_len,micro_batch,step_ms\n", "column 'hardware' is missing");
    refuse("hardware,framework,model,gpus,seq_len,micro_batch,step_time_ms\n",
           "t.csv:1: column 'step_time_ms' is unknown; take it away, or put it into notes; did you "
           "mean step_ms?");
}

/* The setting that rules give the first row of a table, of those listed; NULL: none. */
static void expect_setting(const char *table, const char *setting) {
    g_autofree char *said = settings_of(table);
    g_strdelimit(said, ",", ' ');
    g_autofree char *wanted = g_strconcat(" ", setting, " ", NULL);
    if (!strstr(said, wanted)) {
        g_test_message("'%s' is not in: %s", setting, said);
        g_test_fail();
    }
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
        expect_setting(table, runs[i][1]);
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
    g_autofree char *said = settings_of(table->str);
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
    };
    g_autoptr(GString) table = g_string_new("hardware,gpus,framework,model,seq_len,micro_batch,"
                                            "step_ms\n");
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_string_append_printf(table, "H200,8,PyTorch FSDP,%s,512,1,900\n", cases[i].model);
    }
    g_autofree char *said = settings_of(table->str);
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
    g_autoptr(GError) error = NULL;
    g_autoptr(CliValidation) validation = cli_validation_new(NULL);
    g_autofree char *path =
        written("hardware,gpus,framework,sharding_strategy,model,layers,d_model,heads,kv_heads,"
                "d_ff,mlp_type,vocab,seq_len,micro_batch,precision,step_ms\n"
                "H100,8,torchtitan,FSDP2,llama3-8b,32,4096,32,8,14336,swiglu,128256,8192,1,bf16,9\n"
                "H100,8,torchtitan,FSDP2,llama3-8b,,,,,,,,8192,1,bf16,9\n");
    cli_validation_add(validation, path, &error);
    g_assert_no_error(error);
    const GArray *rows = ((CliValidatedTable *)validation->tables->pdata[0])->rows;
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
        expect_setting(table, cases[i].setting);
    }
    expect_setting("hardware,gpus,framework,model,seq_len,micro_batch,step_ms\n"
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

/* ---- products and collectives --------------------------------------------------------------- */

static void products(void) {
    EXPECT("hardware,kind,dtype,m,n,k,extra_shape,time_us,tflops\n"
           "NVIDIA A100-SXM4-80GB,gemm,BF16,4096,4096,4096,,600,\n"
           "a100 sxm,matmul,torch.float16,4096,4096,4096,,,230\n"
           "H100,gemm,fp8_e4m3,8192,8192,8192,,,1200\n"
           "A100,gemm,fp8,8192,8192,8192,,,500\n"
           "V100,gemm,bf16,8192,8192,8192,,,90\n"
           "V100,gemm,fp16,8192,8192,8192,,,90\n"
           "H100,gemm,int8,8192,8192,8192,,,1200\n"
           "H100,gemm,bf16,,8192,8192,,,600\n"
           "H100,gemm,bf16,8192,8192,8192,,,\n"
           "H100,attention fwd,bf16,,,,,,400\n"
           "RTX 4090,gemm,bf16,8192,8192,8192,,,160\n"
           "H100,conv,bf16,8192,8192,8192,,,160\n",
           NULL, NULL, NULL, "cannot compute in this dtype", "cannot compute in this dtype", NULL,
           "no cluster file says how fast", "does not say m, n and k", "neither a time nor a rate",
           "does not say batch", NULL, "neither a matrix product");
    refuse("hardware,kind,dtype,m,n,k,extra_shape,time_us,tflops\n"
           "H100,gemm,bf16,x,8192,8192,,600,\n",
           "t.csv:2: m is 'x'");
}

static void collectives(void) {
    EXPECT("hardware,nodes,gpus,gpus_per_node,interconnect,op,bytes,time_us,algbw_GBps,busbw_GBps\n"
           "NVIDIA A100-SXM4-80GB,1,8,,,allreduce,1e8,800,,\n"
           "h100,1,8,,,AllGather,1e8,,,350\n"
           "H100,1,8,,,reduce_scatter_tensor,1e8,,400,\n"
           "A100,4,32,,200 Gb/s per GPU,all_reduce,1e8,3000,,\n"
           "H100,,16,8,,all-reduce,1e8,1000,,\n"
           "H100,,16,,,all_reduce,1e8,1000,,\n"
           "H100,1,1,,,all_reduce,1e8,1000,,\n"
           "H100,1,8,,,all_reduce,,1000,,\n"
           "H100,1,8,,,all_reduce,1e8,,,\n"
           "H100,1,8,,,gather,1e8,1000,,\n"
           "MI300X,1,8,,,all_reduce,1e8,1000,,\n"
           "H100,1,8,,,AllToAll,1e8,,,300\n"
           "H100,1,8,,,sendrecv,1e8,,,300\n",
           NULL, NULL, NULL, NULL, NULL, "how many nodes", "at least two GPUs",
           "does not say bytes", "neither a time nor a bandwidth", "not a collective",
           "no cluster file has this machine", NULL, NULL);
}

/* On a switch each GPU has its own link. */
static void groups_at_once(void) {
    EXPECT("hardware,nodes,gpus,gpus_per_node,concurrent_groups,op,bytes,time_us\n"
           "B200,1,4,,2,all_gather,1e8,200\n"
           "GB200,,8,,9,all_to_all,1e8,200\n"
           "H100,2,8,4,2,all_gather,1e8,900\n"
           "V100,1,4,,2,all_gather,1e8,900\n"
           "RTX 4090,1,4,,2,all_gather,1e8,9000\n"
           "RTX 4090,1,4,,1,all_gather,1e8,9000\n",
           NULL, NULL, "several groups at once", "several groups at once", "several groups at once",
           NULL);
}

/* NCCL's tests (doc/PERFORMANCE.md): busbw = algbw 2 (n - 1) / n for an all-reduce. */
static void bandwidths(void) {
    g_autoptr(GError) error = NULL;
    g_autofree char *path = written("hardware,nodes,gpus,op,bytes,time_us,algbw_GBps,busbw_GBps\n"
                                    "H100,1,8,all_reduce,1e8,500,,\nH100,1,8,all_reduce,1e8,,200,\n"
                                    "H100,1,8,all_reduce,1e8,,,350\nH100,1,8,all_gather,1e8,,,175\n"
                                    "H100,1,8,all_to_all,1e8,,,175\nH100,1,8,sendrecv,1e8,,,200\n");
    g_autoptr(CliValidation) validation = cli_validation_new(NULL);
    g_assert_true(cli_validation_add(validation, path, &error));
    const GArray *rows = ((CliValidatedTable *)validation->tables->pdata[0])->rows;
    for (unsigned i = 0; i < rows->len; i++) {
        g_assert_cmpfloat_with_epsilon(g_array_index(rows, CliValidatedRow, i).measured, 500, 1e-6);
    }
}

/* ---- rules of one's own --------------------------------------------------------------------- */

/* A table under the rules in a file of the user's own folder. */
static void judge_rules(const char *file, const char *text, const char *rules,
                        const char *message) {
    g_autoptr(GError) error = NULL;
    g_autofree char *home = g_dir_make_tmp("foreshard-rules-XXXXXX", &error);
    g_assert_no_error(error);
    g_autofree char *folder = g_build_filename(home, "published", NULL);
    g_autofree char *path = g_build_filename(folder, file, NULL);
    g_assert_cmpint(g_mkdir(folder, 0700), ==, 0);
    g_assert_true(g_file_set_contents(path, rules, -1, NULL));
    g_setenv("FORESHARD_DATA", home, TRUE);
    g_autoptr(CliValidation) validation = cli_validation_new(NULL);
    g_autofree char *table = written(text);
    bool accepted = cli_validation_add(validation, table, &error);
    g_unsetenv("FORESHARD_DATA");
    g_unlink(path);
    g_rmdir(folder);
    g_rmdir(home);
    if (accepted != !message || !strstr(message ? error->message : "", message ? message : "")) {
        g_test_message("'%s' instead of '%s'", accepted ? "accepted" : error->message, message);
        g_test_fail();
    }
}

static void refuse_rules(const char *rules, const char *message) {
    judge_rules("train.ini", RUNS FSDP "gpt2,,,,256,1" REST, rules, message);
}

static void refuse_collectives(const char *rules, const char *message) {
    judge_rules("collectives.ini",
                "hardware,nodes,gpus,op,bytes,time_us,busbw_GBps\nA100,1,8,all_reduce,1e8,800,\n",
                rules, message);
}

#define ALL                                                                                        \
    "[all]\nframework = x\ncluster = a100-node\nnetwork = gpt2\nstrategy.ranks = 8\n"              \
    "strategy.micro_batch = 1\n"

/* What a cluster file would be refused for is refused of the rule that says it. */
static void rules_for_clusters(void) {
    refuse_rules(ALL, NULL);
    refuse_rules(ALL "cluster.device.memory_bytes = 2000000000\n", NULL);
    refuse_rules(ALL "[small]\nif.gpus = 8\ncluster.device.memory_bytes = 1000000000\n"
                     "cluster.host.launch_us = 7\n",
                 "train.ini:9: outside_allocator_bytes = 1342177280 leaves nothing");
    refuse_rules(ALL "cluster.intra_node.nccl_channels = 0\ncluster.device.sms = 80\n",
                 "train.ini:7: with compute_capability, nccl_channels");
    refuse_rules(ALL "cluster.device.compute_capability = 0\n"
                     "cluster.intra_node.nccl_channels = 0\n",
                 NULL); /* plain rings */
    refuse_rules(ALL "cluster.device.memory_bytes = 0\n",
                 "train.ini:7: cluster.device.memory_bytes = 0 is out");
}

/* A slip of the pen is not a rule that does nothing. */
static void rules_misspelt(void) {
    refuse_rules(ALL "strtegy.wrap = block\n", "train.ini:7: there is no setting 'strtegy.wrap'");
    refuse_rules(ALL "memory = allocatd\n", "train.ini:7: memory = allocatd is unknown; give one");
    refuse_rules(ALL "flops = 5\n",
                 "train.ini:7: flops = 5 is unknown; give one of palm, model, all");
    refuse_rules(ALL "flops = all\nmemory = device\n", NULL);
    refuse_rules(ALL "if.colour = red\n", "train.ini:7: the tables have no column 'colour'");
    refuse_rules(ALL "[x]\nif.model = @y\n[y]\nif.model = z\n",
                 "train.ini:8: no rule [y] above has if.model");
#define COLLECTIVES "[all]\ncluster = a100-node\n"
    refuse_collectives(COLLECTIVES "algo = tree\n", NULL);
    refuse_collectives(COLLECTIVES "algo = rnig\n", "collectives.ini:3: algo = rnig is none of");
    refuse_collectives(COLLECTIVES "cluster.device.sms = 8\n",
                       "collectives.ini:3: there is no setting 'cluster.device.sms'");
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    tables_folder = plan_leftover_folder("foreshard-strangers-XXXXXX", NULL);
    g_assert_nonnull(tables_folder);
    g_test_add_func("/strangers/runs: columns of time", columns_of_time);
    g_test_add_func("/strangers/runs: words", words);
    g_test_add_func("/strangers/runs: one reason of several rows", one_reason);
    g_test_add_func("/strangers/runs: adapters", adapters);
    g_test_add_func("/strangers/runs: programs and blocks", programs_and_blocks);
    g_test_add_func("/strangers/runs: a version comes first", version_comes_first);
    g_test_add_func("/strangers/runs: what is missing", what_is_missing);
    g_test_add_func("/strangers/runs: unknown programs", unknown_programs);
    g_test_add_func("/strangers/others' words", others_words);
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
    g_test_add_func("/strangers/products", products);
    g_test_add_func("/strangers/collectives", collectives);
    g_test_add_func("/strangers/groups of collectives at once", groups_at_once);
    g_test_add_func("/strangers/collectives: bandwidths", bandwidths);
    g_test_add_func("/strangers/rules for clusters", rules_for_clusters);
    g_test_add_func("/strangers/rules misspelt", rules_misspelt);
    int status = g_test_run();
    plan_leftover_remove_folder(tables_folder);
    g_free(tables_folder);
    return status;
}
