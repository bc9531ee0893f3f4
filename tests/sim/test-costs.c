/* What kernels cost a GPU where reading their operands once is not all: rows read again, second
 * kernels, float8, ops within others. */
#include <glib.h>
#include <math.h>

#include "plan/op/work.h"
#include "sim/costs/issue.h"
#include "sim/costs/ops.h"
#include "sim/costs/traffic.h"
#include "tests/sim/toy.h"

static SimTime time_of(const char *op, const char *buffers, const ModelCluster *cluster) {
    g_autoptr(Plan) plan = toy_plan(op, buffers);
    const SimNetworkPath paths[SIM_N_PATHS] = {0};
    const char *unsupported = NULL;
    g_autoptr(SimOpCosts) costs = sim_op_costs_new(plan, 0, cluster, paths, &unsupported);
    g_assert_nonnull(costs);
    uint32_t of_first = plan->roles[0].sections[PLAN_SECTION_FIRST][0].arg;
    return sim_op_cost(costs, of_first)->duration_ns;
}

/* Two rows of 80,000 bytes, which no block keeps. */
static void test_softmax_reads_rows_again(void) {
    static const char buffers[] = "b4 160000 fp32 temporary/op compute - cfst x\n"
                                  "b5 160000 fp32 temporary/op compute - cfst y\n"
                                  "b6 160000 fp32 temporary/op compute - cfst dx\n";
    static const char forward[] = "launch compute log_softmax rows=2 cols=20000 x=b4 y=b5\n";
    static const char backward[] =
        "launch compute log_softmax_backward rows=2 cols=20000 dy=b4 y=b5 dx=b6\n";
    ModelCluster cluster = toy_cluster; /* a byte a nanosecond */
    cluster.device_sms = 1;
    cluster.device_l2_bytes = 160000;
    g_assert_cmpint(time_of(forward, buffers, &cluster), ==, 2 * 160000);
    g_assert_cmpint(time_of(backward, buffers, &cluster), ==, 3 * 160000);
    cluster.device_l2_bytes--;
    g_assert_cmpint(time_of(forward, buffers, &cluster), ==, 4 * 160000);
    g_assert_cmpint(time_of(backward, buffers, &cluster), ==, 4 * 160000);
    cluster.device_l2_gb_per_s = 4; /* whose half holds neither op's bytes, but more than all do */
    g_assert_cmpint(time_of(forward, buffers, &cluster), ==, 4 * 160000);
    cluster.device_l2_bytes = 4 * 160000;
    g_assert_cmpint(time_of(forward, buffers, &cluster), ==, 2 * 160000 / 4);
    g_assert_cmpint(time_of(backward, buffers, &cluster), ==, 3 * 160000);
    cluster.device_l2_gb_per_s = 0;
    cluster.device_l2_bytes = 160000 - 1;
    static const char narrow[] = "launch compute log_softmax rows=4 cols=10000 x=b4 y=b5\n";
    g_assert_cmpint(time_of(narrow, buffers, &cluster), ==, 2 * 160000);
}

/* PyTorch's pull request 87445: forward and backward on A100, of which 0.1 ms or more; the memory
 * that A100 has is not said. */
static const struct {
    unsigned rows, width;
    const char *dtype;
    double us;
} published_norms[] = {
    {8192, 1024, "fp16", 144.8}, {8192, 1536, "fp16", 186.1}, {6144, 1536, "fp16", 145.7},
    {8192, 1024, "fp32", 211.9}, {8192, 1536, "fp32", 307.8}, {6144, 1536, "fp32", 236.6},
};

static double norm_us(unsigned i, const ModelCluster *cluster) {
    unsigned rows = published_norms[i].rows, width = published_norms[i].width;
    unsigned size = g_str_equal(published_norms[i].dtype, "fp16") ? 2 : 4;
    g_autoptr(GString) buffers = g_string_new(NULL);
    for (unsigned b = 4; b < 11; b++) {
        bool is_matrix = b < 7, is_statistic = b >= 9;
        g_string_append_printf(buffers, "b%u %u %s temporary/op compute - cfst b\n", b,
                               is_matrix      ? rows * width * size
                               : is_statistic ? rows * 4
                                              : width * size,
                               is_statistic ? "fp32" : published_norms[i].dtype);
    }
    g_autofree char *forward = g_strdup_printf("launch compute layernorm rows=%u width=%u "
                                               "eps=1e-05 x=b4 w=b7 b=b8 y=b5 mean=b9 rstd=b10\n",
                                               rows, width);
    g_autofree char *backward = g_strdup_printf(
        "launch compute layernorm_backward rows=%u width=%u dy=b4 x=b5 mean=b9 rstd=b10 w=b7 "
        "dx=b6 dw=b8 db=-\n",
        rows, width);
    return (double)(time_of(forward, buffers->str, cluster) +
                    time_of(backward, buffers->str, cluster)) /
           1e3;
}

static void test_norms_as_published(void) {
    g_autoptr(GError) error = NULL;
    g_autofree char *path =
        g_build_filename(g_getenv("FORESHARD_TEST_CLUSTERS"), "a100-node.ini", NULL);
    g_autoptr(ModelCluster) cluster = model_cluster_read_file(path, &error);
    g_assert_no_error(error);
    double by_memory = norm_us(0, cluster);
    cluster->device_column_gelements_per_s = 6; /* as models/published/train.ini */
    g_assert_cmpfloat(norm_us(0, cluster), >, by_memory);
    for (unsigned i = 0; i < G_N_ELEMENTS(published_norms); i++) {
        double us = norm_us(i, cluster);
        double miss = us / published_norms[i].us - 1;
        g_test_message("%u x %u, %s: %.1f us, published %.1f (%+.1f %%)", published_norms[i].rows,
                       published_norms[i].width, published_norms[i].dtype, us,
                       published_norms[i].us, 100 * miss);
        g_assert_cmpfloat(fabs(miss), <, 0.3);
    }
}

/* 100 ranks' slices of 400 elements, read in bf16 and written in fp32, six bytes an element at a
 * byte a nanosecond; or at the pace of the kernels that packed before. */
static void test_packing_before_its_kernel(void) {
    static const char buffers[] = "b4 80000 bf16 gradients/unsharded compute - cfst gradient\n"
                                  "b5 160000 fp32 communication/reduce compute - cfst packed\n";
    static const char pack[] =
        "launch compute reduce_copy_in slice=400 ranks=100 gradient=b4/100 packed=b5\n";
    ModelCluster cluster = toy_cluster;
    SimTime by_memory = time_of(pack, buffers, &cluster);
    cluster.device_pack_gelements_per_s = 0.01;
    g_assert_cmpint(time_of(pack, buffers, &cluster) - by_memory, ==, 4000000 - 240000);
    cluster.device_pack_gelements_per_s = 1e3; /* quicker than memory: it decides nothing */
    g_assert_cmpint(time_of(pack, buffers, &cluster), ==, by_memory);
}

/* The second kernel reads both matrices again, 80000 bytes at a byte a nanosecond: charged where
 * PyTorch's kernels are predicted, not on CPU ranks, nor where the op was measured as a whole. */
static void test_norms_second_kernel(void) {
    static const char buffers[] = "b4 40000 fp32 temporary/op compute - cfst dy\n"
                                  "b5 40000 fp32 temporary/op compute - cfst x\n"
                                  "b6 40000 fp32 temporary/op compute - cfst dx\n"
                                  "b7 4000 fp32 temporary/op compute - cfst w\n"
                                  "b8 4000 fp32 temporary/op compute - cfst dw\n"
                                  "b9 40 fp32 temporary/op compute - cfst rstd\n";
    static const char backward[] =
        "launch compute rmsnorm_backward rows=10 width=1000 dy=b4 x=b5 rstd=b9 w=b7 dx=b6 dw=b8\n";
    const SimTime first = 3 * 40000 + 2 * 4000 + 40;
    ModelCluster cluster = toy_cluster;
    cluster.device_kind = MODEL_DEVICE_GPU;
    g_assert_cmpint(time_of(backward, buffers, &cluster), ==, first + 80000);
    cluster.device_kind = MODEL_DEVICE_CPU;
    g_assert_cmpint(time_of(backward, buffers, &cluster), ==, first);
    cluster.device_kind = MODEL_DEVICE_GPU;
    cluster.kernel_gb_per_s[PLAN_OP_RMSNORM_BACKWARD] = 0.5;
    g_assert_cmpint(time_of(backward, buffers, &cluster), ==, 2 * first);
}

/* A product of as many operations, of factors half as large, at twice the peak. */
static void test_products_in_float8(void) {
    static const char buffers[] = "b4 2097152 e4m3 temporary/op compute - cfst x\n"
                                  "b5 2097152 e4m3 temporary/op compute - cfst w\n"
                                  "b6 4 fp32 temporary/op compute - cfst scale\n"
                                  "b7 8388608 bf16 temporary/op compute - cfst y\n"
                                  "b8 4194304 bf16 temporary/op compute - cfst x16\n"
                                  "b9 4194304 bf16 temporary/op compute - cfst w16\n";
    static const char low[] = "launch compute float8_linear m=2048 n=2048 k=1024 x_scales=1 "
                              "w_scales=1 x8=b4 x_scale=b6 w8=b5 w_scale=b6 y=b7\n";
    static const char high[] = "launch compute linear m=2048 n=2048 k=1024 x=b8 w=b9 b=- y=b7\n";
    ModelCluster cluster = toy_cluster;
    cluster.device_memory_gb_per_s = 1e6;
    cluster.device_matmul_efficiency = 1;
    cluster.device_matmul_bf16_tflops = 1;
    cluster.device_matmul_fp8_tflops = 2;
    const SimTime flops = 2LL * 2048 * 2048 * 1024;
    g_assert_cmpint(time_of(high, buffers, &cluster), ==, (flops + 500) / 1000);
    g_assert_cmpint(time_of(low, buffers, &cluster), ==, (flops + 1000) / 2000);
    /* Bytes: factors of one each, a result of two, and two scales of four. */
    cluster.device_memory_gb_per_s = 1;
    cluster.device_matmul_bf16_tflops = cluster.device_matmul_fp8_tflops = 1e6;
    g_assert_cmpint(time_of(high, buffers, &cluster), ==, 2 * 4194304 + 8388608);
    g_assert_cmpint(time_of(low, buffers, &cluster), ==, 2 * 2097152 + 8388608 + 2 * 4);
}

/* Behind a gradient's product by rows a kernel works out scales, 76 instructions a number at half a
 * TFLOP/s' worth of cores, or 95 for each of two ranks, as far as that outlasts what it moves. */
static void test_scales_behind_products(void) {
    static const char buffers[] = "b4 2097152 e4m3 temporary/op compute - cfst dy\n"
                                  "b5 2097152 e4m3 temporary/op compute - cfst w\n"
                                  "b6 4 fp32 temporary/op compute - cfst scale\n"
                                  "b7 4194304 bf16 temporary/op compute - cfst dx\n";
#define SCALED(times)                                                                              \
    "launch compute float8_linear_dx m=2048 n=1024 k=1024 scaled=" #times                          \
    " dy_scales=1 w_scales=1 turned=1 dy8=b4 dy_scale=b6 w8=b5 w_scale=b6 dx=b7\n"
    const double numbers = 2048 * 1024;
    ModelCluster cluster = toy_cluster;
    cluster.device_memory_gb_per_s = 1e9;
    cluster.device_matmul_fp8_tflops = 1e9;
    cluster.device_matmul_fp32_tflops = 1;
    g_assert_cmpint(time_of(SCALED(0), buffers, &cluster), <=, 1);
    SimTime once = time_of(SCALED(1), buffers, &cluster);
    g_assert_cmpfloat_with_epsilon((double)once, numbers * 76 / 500, 2);
    SimTime twice = time_of(SCALED(2), buffers, &cluster);
    g_assert_cmpfloat_with_epsilon((double)twice, numbers * 2 * 95 / 500, 2);
    cluster.matmul_fp32_efficiency = 0.5;
    g_assert_cmpfloat_with_epsilon((double)time_of(SCALED(1), buffers, &cluster), 2 * (double)once,
                                   4);
    cluster.matmul_fp32_efficiency = 0;
    cluster.device_memory_gb_per_s = 1; /* bytes decide, and hide what is worked out */
    g_assert_cmpint(time_of(SCALED(1), buffers, &cluster), ==,
                    time_of(SCALED(0), buffers, &cluster));
}

/* Where whoever made the numbers has found the largest one, finding its scale reads nothing; what a
 * norm is made of besides them is not counted. */
static void test_numbers_looked_through(void) {
    static const char buffers[] = "b4 2097152 bf16 temporary/op compute - cfst x\n"
                                  "b5 2048 bf16 temporary/op compute - cfst weight\n"
                                  "b6 4096 fp32 temporary/op compute - cfst rstd\n"
                                  "b7 4 fp32 temporary/op compute - cfst scale\n";
#define LOOKED(made, found, norm)                                                                  \
    "launch compute float8_scale rows=1024 cols=1024 scales=1 along=0 made=" #made                 \
    " found=" #found " largest=448 x=b4 more=- " norm " scale=b7\n"
    ModelCluster cluster = toy_cluster;
    cluster.device_memory_gb_per_s = 1;
    SimTime all = time_of(LOOKED(0, 0, "weight=- rstd=-"), buffers, &cluster);
    g_assert_cmpint(all, ==, 2097152 + 4);
    g_assert_cmpint(time_of(LOOKED(1, 0, "weight=b5 rstd=b6"), buffers, &cluster), ==, all);
    g_assert_cmpint(time_of(LOOKED(0, 1, "weight=- rstd=-"), buffers, &cluster), ==, 4);
}

/* DeepSeek's heads, 128 of them, 2 sequences of 4096 tokens, causal: what the numbers of
 * dgx-h100.ini were taken from, in milliseconds; half of flash's rate where cuDNN has no kernel. */
static void test_latent_attention_as_published(void) {
    static const char buffers[] = "b4 402653184 bf16 temporary/op compute - cfst q\n"
                                  "b5 402653184 bf16 temporary/op compute - cfst k\n"
                                  "b6 268435456 bf16 temporary/op compute - cfst v\n"
                                  "b7 268435456 bf16 temporary/op compute - cfst o\n"
                                  "b8 4194304 fp32 temporary/op compute - cfst lse\n"
                                  "b9 402653184 bf16 temporary/op compute - cfst dq\n"
                                  "b10 402653184 bf16 temporary/op compute - cfst dk\n"
                                  "b11 268435456 bf16 temporary/op compute - cfst dv\n"
                                  "b12 268435456 bf16 temporary/op compute - cfst dy\n"
                                  "b13 8 int64 temporary/op compute - cfst seed\n"
                                  "b14 8 int64 temporary/op compute - cfst offset\n";
#define DIMS                                                                                       \
    "batch=2 heads=128 kv_heads=128 seq=4096 head_dim=192 v_dim=128 v_row=128 lse_stride=4096 "    \
    "causal=1 from=0 scale=0.1 "
    static const char forward[] =
        "launch compute latent_attention " DIMS "q=b4 k=b5 v=b6 o=b7 lse=b8 seed=b13 offset=b14\n";
    static const char backward[] = "launch compute latent_attention_backward " DIMS
                                   "dy=b12 q=b4 k=b5 v=b6 o=b7 lse=b8 dq=b9 dk=b10 dv=b11\n";
#undef DIMS
    g_autoptr(GError) error = NULL;
    g_autofree char *path =
        g_build_filename(g_getenv("FORESHARD_TEST_CLUSTERS"), "dgx-h100.ini", NULL);
    g_autoptr(ModelCluster) cluster = model_cluster_read_file(path, &error);
    g_assert_no_error(error);
    double ms = (double)time_of(forward, buffers, cluster) / 1e6;
    double back = (double)time_of(backward, buffers, cluster) / 1e6;
    g_test_message("forward %.3f ms of 2.248, backward %.3f ms of 7.293", ms, back);
    g_assert_cmpfloat(fabs(ms / 2.248 - 1), <, 0.03);
    g_assert_cmpfloat(fabs(back / 7.293 - 1), <, 0.03);
    cluster->device_compute_capability = 80;
    double slow = (double)time_of(forward, buffers, cluster) / 1e6;
    g_assert_cmpfloat(slow, >, 3 * ms); /* 0.62 and half of 0.4 */
}

static SimOpCosts *costs_of(const Plan *plan, const ModelCluster *cluster) {
    SimNetworkPath paths[SIM_N_PATHS] = {0};
    for (unsigned axis = 0; axis < PLAN_N_AXES; axis++) {
        paths[axis] = sim_network_path(cluster, plan, (PlanAxis)axis);
    }
    const char *unsupported = NULL;
    SimOpCosts *costs = sim_op_costs_new(plan, 0, cluster, paths, &unsupported);
    g_assert_nonnull(costs);
    return costs;
}

/* What was written as a copy costs what it would if nobody knew that. */
static void test_copies_cost_the_same(void) {
    static const char *const settings[][2] = {
        {"gpt-toy", "ranks=3 flavour=fsdp2 clip=1"},
        {"gpt-toy", "ranks=4 flavour=fsdp2 accumulate=3 checkpointing=full param_dtype=bf16"},
        {"llama-toy", "ranks=4 tensor=2 kernels=compiled param_dtype=bf16"},
        {"gpt2", "ranks=6 checkpointing=selective-op param_dtype=bf16"},
        {"t5-toy", "ranks=2 kernels=fused"},
    };
    g_autofree char *path =
        g_build_filename(g_getenv("FORESHARD_TEST_CLUSTERS"), "a100-node.ini", NULL);
    g_autoptr(ModelCluster) cluster = model_cluster_read_file(path, NULL);
    for (unsigned i = 0; i < G_N_ELEMENTS(settings); i++) {
        g_autoptr(Plan) plan = toy_network_plan(settings[i][0], settings[i][1]);
        PlanRole role = plan->roles[0];
        g_assert_cmpuint(role.n_copied, >, 0);
        g_autoptr(SimOpCosts) known = costs_of(plan, cluster);
        Plan unknowing = *plan;
        unknowing.roles = &role;
        role.n_copied = 0;
        g_autoptr(SimOpCosts) anew = costs_of(&unknowing, cluster);
        for (uint32_t op = 0; op < role.n_ops; op++) {
            g_assert_cmpmem(sim_op_cost(known, op), sizeof(SimOpCost), sim_op_cost(anew, op),
                            sizeof(SimOpCost));
        }
    }
}

/* Attention of each block has a stream of random numbers of its own; none is costed anew. */
static void test_blocks_share_costs(void) {
    g_autoptr(Plan) plan = toy_network_plan("gpt2", "ranks=2 param_dtype=bf16");
    g_autofree char *path =
        g_build_filename(g_getenv("FORESHARD_TEST_CLUSTERS"), "a100-node.ini", NULL);
    g_autoptr(ModelCluster) cluster = model_cluster_read_file(path, NULL);
    g_autoptr(SimOpCosts) costs = costs_of(plan, cluster);
    const PlanRole *role = &plan->roles[0];
    const SimOpCost *of_kind[PLAN_N_OP_KINDS] = {NULL};
    unsigned n = 0;
    for (uint32_t i = 0; i < role->n_ops; i++) {
        unsigned kind = role->ops[i].kind;
        if (plan_op_info(kind)->op_class == PLAN_CLASS_ATTENTION) {
            const SimOpCost *cost = sim_op_cost(costs, i);
            g_assert_true(of_kind[kind] == NULL || of_kind[kind] == cost);
            of_kind[kind] = cost;
            n++;
        }
    }
    g_assert_cmpuint(n, >=, 2 * 12);
}

/* A compiler has the sums beside adapters in other kernels, which read the product and nothing else
 * for it, and takes no launch for them; but those of v, and the gradient that a block is given. CPU
 * ranks have a kernel for each. */
static void test_sums_within_other_kernels(void) {
    static const char *const files[] = {"dgx-h100.ini", "this-machine.ini"};
    g_autoptr(Plan) plan =
        toy_network_plan("llama-toy", "ranks=2 lora_rank=2 lora_on=all-linear kernels=compiled");
    const PlanRole *role = &plan->roles[0];
    for (unsigned f = 0; f < G_N_ELEMENTS(files); f++) {
        g_autofree char *path =
            g_build_filename(g_getenv("FORESHARD_TEST_CLUSTERS"), files[f], NULL);
        g_autoptr(ModelCluster) cluster = model_cluster_read_file(path, NULL);
        g_autoptr(SimIssueCosts) issue =
            sim_issue_costs_new(&(SimStrategy){.plan = plan}, role, cluster);
        bool is_gpu = cluster->device_kind == MODEL_DEVICE_GPU;
        unsigned n[2] = {0}; /* of their own; within others */
        for (uint32_t i = 0; i < role->n_instrs[PLAN_SECTION_SECOND]; i++) {
            const PlanInstr *instr = &role->sections[PLAN_SECTION_SECOND][i];
            const PlanOp *op = instr->kind == PLAN_LAUNCH ? &role->ops[instr->arg] : NULL;
            bool adds = op && op->kind == PLAN_OP_ADD_SCALED;
            if (!adds && (!op || op->kind != PLAN_OP_ADD_SCALED_BACKWARD)) {
                continue;
            }
            bool within = is_gpu && plan_op_is_within(role, op);
            double of_x = 4 * (double)plan_op_operand(role, op, 0).elements, all = adds ? 3 : 2;
            SimComputeCost cost;
            g_assert_true(sim_compute_cost(cluster, role, op, (SimKernels){0}, &cost));
            double start = within ? 0 : cluster->device_start_us * 1e3;
            g_assert_cmpfloat_with_epsilon(
                cost.bytes_ns, start + sim_traffic_ns(cluster, within ? of_x : all * of_x), 1e-6);
            g_assert_true(!is_gpu || (cost.overhead_ns > 0) == !within);
            g_assert_true(!is_gpu || (sim_issue_cost(issue, instr) > 0) == !within);
            n[within]++;
        }
        g_assert_cmpuint(n[0], >, 0);
        g_assert_cmpint(n[1] > n[0], ==, is_gpu);
    }
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/sim/costs/softmax", test_softmax_reads_rows_again);
    g_test_add_func("/sim/costs/norms", test_norms_as_published);
    g_test_add_func("/sim/costs/second-kernel", test_norms_second_kernel);
    g_test_add_func("/sim/costs/float8", test_products_in_float8);
    g_test_add_func("/sim/costs/scales behind float8", test_scales_behind_products);
    g_test_add_func("/sim/costs/scales of float8", test_numbers_looked_through);
    g_test_add_func("/sim/costs/latent attention", test_latent_attention_as_published);
    g_test_add_func("/sim/costs/packing", test_packing_before_its_kernel);
    g_test_add_func("/sim/costs/copies", test_copies_cost_the_same);
    g_test_add_func("/sim/costs/blocks", test_blocks_share_costs);
    g_test_add_func("/sim/costs/within", test_sums_within_other_kernels);
    return g_test_run();
}
