/* Training runs as strangers write them: columns, words, programs, and what is missing. */
#include <string.h>

#include "tests/validation/strangers.h"

/* ---- training runs -------------------------------------------------------------------------- */

static void columns_of_time(void) {
#define RUN "A100,8,,PyTorch FSDP,,x,,2,256,512,2,,bf16,,"
#define END ",,,,,,,\n"
    EXPECT(RUNS RUN "9e4,,,,,," END RUN ",7e5,,,,," END RUN ",,1400,,,," END RUN ",,,11,,," END RUN
                    ",,,,20,," END RUN ",,,,,7," END RUN ",,,,,,9" END RUN ",,,,,," END,
           NULL, NULL, NULL, NULL, NULL, NULL, NULL, "neither a time nor a peak");
}

static void words(void) {
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
    g_autoptr(CliValidation) validation = cli_validation_new(NULL);
    const GArray *rows = strangers_rows(
        validation, "hardware,gpus,framework,model,layers,d_model,heads,mlp_type,vocab,seq_len,"
                    "micro_batch,compile,tokens_per_s_per_gpu\n"
                    "A100,8,PyTorch FSDP2,pythia of two layers,2,256,8,gelu,512,128,1,yes,9e4\n"
                    "A100,8,PyTorch FSDP2,pythia of four layers,4,256,8,gelu,512,128,1,yes,9e4\n");
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
    g_autoptr(CliValidation) validation = cli_validation_new(NULL);
    const GArray *rows = strangers_rows(
        validation,
        "measured_date,notes," RUNS "2024-06,,A100,8,,torchtitan,FSDP2" SHAPE "bf16,None" TIME
        "2024-06,fused=True,A100,8,,torchtitan,FSDP2" SHAPE "bf16,None" TIME);
    g_assert_cmpuint(rows->len, ==, 2);
    g_assert_cmpfloat(g_array_index(rows, CliValidatedRow, 0).predicted, >,
                      g_array_index(rows, CliValidatedRow, 1).predicted);
}

static void what_is_missing(void) {
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
    strangers_refuse(RUNS "A100,eight,,PyTorch FSDP,,x,,2,256,512,1" REST,
                     "t.csv:2: gpus is 'eight'");
    strangers_refuse(RUNS "A100,-8,,PyTorch FSDP,,x,,2,256,512,1" REST,
                     "t.csv:2: gpus is '-8', which is less");
    strangers_refuse(
        "hardware,nodes,gpus,op,bytes,time_us,busbw_GBps\nA100,1,8,all_reduce,1e8,800,\n"
        "A100,1,8,all_reduce,1e8,-800,\n",
        "t.csv:3: time_us is '-800', which is less");
    strangers_refuse(RUNS FSDP "x,,2\n", "t.csv:2: 8 fields");
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
        g_autofree char *text = strangers_settings_of(row);
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

/* Logits of 40 GB in fp32, of which an eager loss holds three, fit on no A100: the loss is then one
 * by chunks. Whole gradients of 13B in fp32, 52 GB, do not either: each pass reduces its own. */
static void what_ran_has_fit(void) {
    g_autoptr(CliValidation) validation = cli_validation_new(NULL);
    const GArray *rows = strangers_rows(
        validation, "hardware,gpus,framework,sharding_strategy,model,layers,d_model,heads,kv_heads,"
                    "d_ff,mlp_type,vocab,seq_len,micro_batch,grad_accum,precision,"
                    "activation_checkpointing,tokens_per_s_per_gpu,peak_mem_gib\n"
                    "A100-SXM4-80GB,1,PyTorch,none,x,2,1024,8,8,3072,swiglu,151936,65536,1,1,"
                    "bf16-true,full,9e4,20\n"
                    "A100-SXM4-40GB,64,PyTorch FSDP2,FSDP2,x,32,5120,40,40,13824,swiglu,32000,2048,"
                    "1,2,bf16,full,9e3,20\n");
    for (guint i = 0; i < rows->len; i++) {
        const CliValidatedRow *row = &g_array_index(rows, CliValidatedRow, i);
        g_assert_null(row->skipped);
        g_assert_cmpfloat(row->predicted_gib, <, i == 0 ? 78 : 38);
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
        {"H100,8,PyTorch FSDP1,FSDP,x,2,fp8 (Transformer Engine),,,512", "float8=delayed"},
        {"H100,8,PyTorch FSDP1,FSDP,x,2,fp8 delayed scaling,no,,512", "float8=delayed"},
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
        g_autofree char *text = strangers_settings_of(table);
        if (!strstr(text, cases[i].word)) {
            g_test_message("'%s' is not in: %s", cases[i].word, text);
            g_test_fail();
        }
    }
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/strangers/runs: columns of time", columns_of_time);
    g_test_add_func("/strangers/runs: words", words);
    g_test_add_func("/strangers/runs: one reason of several rows", one_reason);
    g_test_add_func("/strangers/runs: adapters", adapters);
    g_test_add_func("/strangers/runs: a version comes first", version_comes_first);
    g_test_add_func("/strangers/runs: what is missing", what_is_missing);
    g_test_add_func("/strangers/runs: unknown programs", unknown_programs);
    g_test_add_func("/strangers/runs: what ran has fit", what_ran_has_fit);
    g_test_add_func("/strangers/others' words", others_words);
    return strangers_run();
}
