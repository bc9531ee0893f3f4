/* Tables of products and of collectives as strangers write them, and rules of a user's own. */
#include <glib/gstdio.h>
#include <string.h>

#include "tests/validation/strangers.h"

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
    strangers_refuse("hardware,kind,dtype,m,n,k,extra_shape,time_us,tflops\n"
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

/* It would be predicted in silence, and look as if all were well. */
static void no_rows(void) {
    static const char *const headers[] = {
        "hardware,kind,dtype,m,n,k,extra_shape,time_us\n",
        "hardware,nodes,gpus,op,bytes,time_us,algbw_GBps\n\n",
        "hardware,framework,model,gpus,seq_len,micro_batch,tokens_per_s_per_gpu"};
    for (unsigned i = 0; i < G_N_ELEMENTS(headers); i++) {
        strangers_refuse(headers[i], "t.csv:1: below this line, the header, stands no row");
    }
}

/* Capitals, blanks and dashes in a header, blanks about fields, commas before three digits. */
static void odd_spelling(void) {
    EXPECT("Hardware, Kind ,DType,M,N,K,Time us\r\n"
           "A100, gemm ,bf16,\"4,096\",4096,4096,600\r\n",
           NULL);
    EXPECT("Hardware,Nodes,GPUs,Op,Bytes,time-us\n"
           "A100,1,8,all_gather,\"1,073,741,824\", 4600 \n",
           NULL);
    EXPECT(" hardware ,Framework,MODEL,gpus,Seq Len,micro-batch,Tokens per s per GPU\n"
           "A100-80GB, PyTorch FSDP2 ,gpt2,8, 1024 ,4,20000\n",
           NULL);
    strangers_refuse("hardware;kind;dtype;m;n;k;time_us\nA100;gemm;bf16;1;1;1;1\n",
                     "t.csv:1: this header has no comma");
    strangers_refuse("hardware,nodes,gpus,op,bytes,time_us,GPUS\nA100,1,8,all_gather,1,1,8\n",
                     "t.csv:1: column 'gpus' stands twice");
    strangers_refuse("hardware,nodes,gpus,op,bytes,time_us\nA100,1,8,all_gather,\"1,07\",1\n",
                     "t.csv:2: bytes is '1,07', which is no number");
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
    g_autoptr(CliValidation) validation = cli_validation_new(NULL);
    const GArray *rows =
        strangers_rows(validation, "hardware,nodes,gpus,op,bytes,time_us,algbw_GBps,busbw_GBps\n"
                                   "H100,1,8,all_reduce,1e8,500,,\nH100,1,8,all_reduce,1e8,,200,\n"
                                   "H100,1,8,all_reduce,1e8,,,350\nH100,1,8,all_gather,1e8,,,175\n"
                                   "H100,1,8,all_to_all,1e8,,,175\nH100,1,8,sendrecv,1e8,,,200\n");
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
    g_autofree char *table = strangers_written(text);
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
    g_test_add_func("/strangers/products", products);
    g_test_add_func("/strangers/collectives", collectives);
    g_test_add_func("/strangers/a table without rows", no_rows);
    g_test_add_func("/strangers/odd spelling", odd_spelling);
    g_test_add_func("/strangers/groups of collectives at once", groups_at_once);
    g_test_add_func("/strangers/collectives: bandwidths", bandwidths);
    g_test_add_func("/strangers/rules for clusters", rules_for_clusters);
    g_test_add_func("/strangers/rules misspelt", rules_misspelt);
    return strangers_run();
}
