/* The cluster files of GPUs: each says of its GPU what its data sheet does, and plays a plan. */
#include <glib.h>

#include "models/cluster.h"
#include "sim/predict.h"
#include "tests/sim/toy.h"

/* Data sheets: TFLOP/s of products in fp16 (dense) and fp32, GB/s and GB of memory. What PyTorch
 * gets of that memory is less, by ECC or firmware. */
typedef struct {
    const char *name;
    double fp16, fp32, gb_per_s, gb;
} Sheet; /* bf16 is as fast as fp16, or, before Ampere, not there */

static const Sheet sheets[] = {
    {"a100-node", 312, 19.5, 2039, 80},   {"dgx-h100", 989.4, 67, 3350, 80},
    {"h200-node", 989.4, 67, 4800, 141},  {"h200-p5e", 989.4, 67, 4800, 141},
    {"gh200-alps", 989.4, 67, 4000, 96},  {"h20-node", 148, 44, 4000, 96},
    {"b200-node", 2250, 75, 8000, 192},   {"b300-p6", 2250, 75, 8000, 288},
    {"gb200-nvl72", 2500, 80, 8000, 192}, {"gb300-nvl72", 2500, 80, 8000, 288},
    {"l40s-node", 362.05, 91.6, 864, 48}, {"l4-node", 121, 30.3, 300, 24},
    {"a10g-g5", 70, 35, 600, 24},         {"rtx4090", 165.2, 82.6, 1008, 24},
    {"rtx3090", 71, 35.6, 936, 24},       {"a6000-node", 154.8, 38.7, 768, 48},
    {"a40-node", 149.7, 37.4, 696, 48},   {"a30-node", 165, 10.3, 933, 24},
    {"a5000-node", 111.1, 27.8, 768, 24}, {"rtx5090", 209.5, 104.8, 1792, 32},
    {"t4-node", 65, 8.1, 320, 16},        {"titan-rtx", 130.5, 16.3, 672, 24},
    {"v100-dgx", 125, 15.7, 900, 32},
};

static ModelCluster *cluster_of(const char *name) {
    g_autoptr(GError) error = NULL;
    g_autofree char *file = g_strconcat(name, ".ini", NULL);
    g_autofree char *path = g_build_filename(g_getenv("FORESHARD_TEST_CLUSTERS"), file, NULL);
    ModelCluster *cluster = model_cluster_read_file(path, &error);
    g_assert_no_error(error);
    return cluster;
}

static void test_data_sheets(void) {
    for (unsigned i = 0; i < G_N_ELEMENTS(sheets); i++) {
        const Sheet *sheet = &sheets[i];
        g_autoptr(ModelCluster) c = cluster_of(sheet->name);
        g_test_message("%s", sheet->name);
        bool has_bf16 = c->device_compute_capability >= 80;
        g_assert_cmpfloat(c->device_matmul_bf16_tflops, ==, has_bf16 ? sheet->fp16 : 0);
        g_assert_cmpfloat(c->device_matmul_fp16_tflops, ==, sheet->fp16);
        g_assert_cmpfloat_with_epsilon(c->device_matmul_fp32_tflops, sheet->fp32,
                                       0.002 * sheet->fp32);
        g_assert_cmpfloat_with_epsilon(c->device_memory_gb_per_s, sheet->gb_per_s,
                                       0.001 * sheet->gb_per_s);
        double shown = (double)c->device_memory_bytes / (1 << 30);
        g_assert_cmpfloat(shown, <=, sheet->gb);
        g_assert_cmpfloat(shown, >=, 0.91 * sheet->gb);
        g_assert_cmpuint(c->device_compute_capability, >=, 70);
        g_assert_cmpuint(c->device_sms, >=, 40);
    }
}

static SimTime step_of(const Plan *plan, const ModelCluster *cluster) {
    g_autoptr(GError) error = NULL;
    const SimOptions options = {.steps = 3};
    g_autoptr(SimPrediction) played = sim_predict(plan, cluster, &options, NULL, &error);
    g_assert_no_error(error);
    g_assert_true(played->fits);
    g_assert_false(played->unsupported_dtype);
    return played->median_step_ns;
}

/* GPT-2 of 124M parameters, a sequence of 1024 and eight of them, on one GPU and on four: no GPU
 * is faster than its peak, nor ten times slower, nor forty where it waits for others over PCIe. */
static void test_each_plays(void) {
    static const double tokens = 8 * 1024, parameters = 124e6;
    g_autoptr(Plan) alone =
        toy_network_plan("gpt2", "ranks=1 micro_batch=8 seq=1024 param_dtype=fp16");
    g_autoptr(Plan) four =
        toy_network_plan("gpt2", "ranks=4 micro_batch=8 seq=1024 sharding=full param_dtype=fp16");
    for (unsigned i = 0; i < G_N_ELEMENTS(sheets); i++) {
        g_autoptr(ModelCluster) cluster = cluster_of(sheets[i].name);
        double least = 6 * parameters * tokens / (sheets[i].fp16 * 1e12) * 1e9;
        SimTime one = step_of(alone, cluster), shared = step_of(four, cluster);
        g_test_message("%s: %.1f ms alone, %.1f ms of four, at peak %.1f", sheets[i].name,
                       (double)one / 1e6, (double)shared / 1e6, least / 1e6);
        g_assert_cmpfloat((double)one, >, least);
        g_assert_cmpfloat((double)one, <, 10 * least + 1e8);
        g_assert_cmpfloat((double)shared, >, least);
        g_assert_cmpfloat((double)shared, <, 40 * least + 1e8);
    }
}

/* Of two GPUs, the one whose peak and memory are both faster trains faster. */
static void test_faster_sheets_are_faster(void) {
    static const char *const pairs[][2] = {
        {"a10g-g5", "a6000-node"},   {"l4-node", "rtx4090"},        {"a40-node", "l40s-node"},
        {"rtx4090", "a100-node"},    {"t4-node", "titan-rtx"},      {"a5000-node", "rtx5090"},
        {"a100-node", "gh200-alps"}, {"gh200-alps", "gb200-nvl72"},
    };
    g_autoptr(Plan) plan = toy_network_plan(
        "gpt2-medium", "ranks=1 micro_batch=4 seq=1024 param_dtype=fp16 checkpointing=full");
    for (unsigned i = 0; i < G_N_ELEMENTS(pairs); i++) {
        g_autoptr(ModelCluster) slow = cluster_of(pairs[i][0]), fast = cluster_of(pairs[i][1]);
        g_test_message("%s and %s", pairs[i][0], pairs[i][1]);
        g_assert_cmpint(step_of(plan, slow), >, step_of(plan, fast));
    }
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/sim/machines/data sheets", test_data_sheets);
    g_test_add_func("/sim/machines/each plays", test_each_plays);
    g_test_add_func("/sim/machines/faster sheets are faster", test_faster_sheets_are_faster);
    return g_test_run();
}
