/* What calibrate makes of times: the numbers that made the times come back, in the file too. */
#include <gio/gio.h>
#include <glib/gstdio.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/calibrate/calibrate.h"
#include "sim/costs/attention.h"
#include "sim/costs/product.h"

static const char costs[] = "launch_us 0.5\nwait_us 0.05\nhost_wait_us 20\nlane_us 3\n"
                            "segment_new_us 3000\nsegment_free_us 500\nalloc_us 0.03\n"
                            "free_us 0.04\nlane_wake_us 60\n"
                            /* of 4 ranks: 10 us, 2 us a step; 8 GB/s, 2 GB/s where it adds */
                            "all_gather 8192 16.77\nall_gather 33554432 3151.7\n"
                            "reduce_scatter 8192 19.07\nreduce_scatter 33554432 12589\n"
                            "all_reduce 8192 22.77\nall_reduce 33554432 25165.8\n";

static void add(CliSamples *samples, PlanOpKind kind, PlanDtype dtype, double flops, double bytes,
                double ns) {
    CliSample sample = {kind, dtype, flops, bytes, ns, 0};
    g_array_append_val(samples->ops, sample);
}

static void add_attention(CliSamples *samples, PlanOpKind kind, double flops, double rows,
                          double ns) {
    CliSample sample = {kind, PLAN_FP32, flops, 1e6, ns, rows};
    g_array_append_val(samples->ops, sample);
}

/* A machine of 100 Gflop/s (50 in bf16) with 2 us a product, 10 GB/s for adding, 4 for gelu. */
static CliSamples known(void) {
    CliSamples samples;
    cli_samples_init(&samples);
    for (double flops = 2e6; flops < 1e11; flops *= 7) {
        add(&samples, PLAN_OP_LINEAR, PLAN_FP32, flops, 1e6, 2000 + flops / 100);
        add(&samples, PLAN_OP_LINEAR_DW, PLAN_FP32, flops, 1e6, 2000 + flops / 100);
        add(&samples, PLAN_OP_LINEAR, PLAN_BF16, flops, 1e6, 2000 + flops / 50);
    }
    add(&samples, PLAN_OP_ADD, PLAN_FP32, 0, 1e6, 1e5);
    add(&samples, PLAN_OP_ADD, PLAN_FP32, 0, 3e6, 3e5);
    add(&samples, PLAN_OP_GELU_TANH, PLAN_FP32, 0, 4e6, 1e6);
    add(&samples, PLAN_OP_GELU_TANH, PLAN_FP32, 0, 64, 1e6); /* so small that it says nothing */
    add_attention(&samples, PLAN_OP_ATTENTION, 1e9, 1e4, 4e7 + 1e4 * 200);
    add_attention(&samples, PLAN_OP_ATTENTION, 1e7, 2e3, 4e5 + 2e3 * 200);
    add_attention(&samples, PLAN_OP_ATTENTION_BACKWARD, 1e9, 1e4, 5e7);
    add_attention(&samples, PLAN_OP_ATTENTION_BACKWARD, 1e7, 2e3, 5e5);
    for (double gap = 100; gap <= 500; gap += 100) {
        g_array_append_val(samples.gaps_ns, gap);
    }
    samples.outside_bytes = 6e7;
    return samples;
}

static void near(double got, double want, double bound) {
    if (fabs(got / want - 1) > bound) {
        g_test_message("%g, expected %g", got, want);
        g_test_fail();
    }
}

/* Another machine, where everything is 7 or named after its place. */
static ModelCluster elsewhere(void) {
    return (ModelCluster){.name = "elsewhere",
                          .device_outside_allocator_bytes = 7,
                          .device_matmul_fp32_tflops = 7,
                          .device_matmul_bf16_tflops = 8,
                          .device_matmul_fp16_tflops = 9,
                          .device_matmul_efficiency = 0.7,
                          .device_attention_efficiency = 0.6,
                          .device_attention_backward_efficiency = 0.5,
                          .device_memory_gb_per_s = 70,
                          .device_memory_efficiency = 0.4,
                          .device_launch_overhead_ns = 71,
                          .matmul_start_us = 72,
                          .allocator_segment_new_us = 73,
                          .allocator_segment_free_us = 74,
                          .host_launch_us = 75,
                          .host_wait_us = 76,
                          .host_host_wait_us = 77,
                          .host_alloc_us = 78,
                          .host_free_us = 79,
                          .intra_node_bus_gb_per_s = 80,
                          .intra_node_reduce_bus_gb_per_s = 81,
                          .intra_node_step_latency_us = 82,
                          .collectives_base_latency_us = 83};
}

static GString *text_of(const ModelCluster *fitted, unsigned n) {
    ModelCluster other = elsewhere();
    g_autoptr(GArray) failures = cli_failures_new();
    return cli_calibrate_text(&(CliMeasured){fitted, &other, failures, n, "2026-11-21"});
}

static void known_numbers_come_back(void) {
    CliSamples samples = known();
    g_autoptr(GError) error = NULL;
    g_autoptr(ModelCluster) fitted = cli_calibrate_fit(&samples, costs, 4, &error);
    g_assert_no_error(error);
    g_autoptr(GString) text = text_of(fitted, 4);
    g_assert_nonnull(strstr(text->str, "2026-11-21"));
    g_autoptr(ModelCluster) c = model_cluster_read(text->str, text->len, "x.ini", &error);
    g_assert_no_error(error);
    near(c->device_matmul_fp32_tflops * c->device_matmul_efficiency, 0.1, 1e-3);
    near(c->device_matmul_bf16_tflops * c->device_matmul_efficiency, 0.05, 1e-2);
    near(c->matmul_start_us, 2, 1e-3);
    near(c->device_attention_efficiency * c->device_matmul_fp32_tflops, 0.025, 1e-3);
    near(c->device_attention_backward_efficiency * c->device_matmul_fp32_tflops, 0.02, 1e-3);
    near(c->attention_row_us, 0.2, 1e-3);
    g_assert_cmpfloat(c->attention_row_backward_us, <, 1e-6);
    near(c->kernel_gb_per_s[PLAN_OP_ADD], 10, 1e-3);
    near(c->kernel_gb_per_s[PLAN_OP_GELU_TANH], 4, 1e-3);
    g_assert_cmpfloat(c->kernel_gb_per_s[PLAN_OP_SILU], ==, 0);
    near(c->device_launch_overhead_ns, 300, 1e-3);
    near(c->device_lane_wake_us, 60, 1e-3);
    near(c->host_launch_us, 0.5, 1e-3);
    near(c->allocator_segment_new_us, 3000, 1e-3);
    near(c->intra_node_bus_gb_per_s, 8, 1e-2);
    near(c->collectives_core_gb_per_s, c->intra_node_bus_gb_per_s, 1e-3);
    near(c->collectives_reduce_core_gb_per_s, c->intra_node_reduce_bus_gb_per_s, 1e-3);
    near(c->device_cores, (double)g_get_num_processors() / 4, 1e-3);
    near(c->intra_node_reduce_bus_gb_per_s, 2, 1e-2);
    near(c->intra_node_step_latency_us, 2, 1e-2);
    near(c->collectives_base_latency_us, 10.77, 1e-2); /* with the smallest size's bytes */
    g_assert_cmpuint(c->topology_gpus_per_node, ==, 4);
    cli_samples_clear(&samples);
}

/* One rank has no collectives; a program that says less than it should is found out. */
static void one_rank(void) {
    CliSamples samples = known();
    g_autoptr(GError) error = NULL;
    g_autofree char *alone = g_strndup(costs, (gsize)(strstr(costs, "all_gather") - costs));
    g_autoptr(ModelCluster) fitted = cli_calibrate_fit(&samples, alone, 1, &error);
    g_assert_no_error(error);
    g_autoptr(GString) text = text_of(fitted, 1);
    g_autoptr(ModelCluster) c = model_cluster_read(text->str, text->len, "x.ini", &error);
    g_assert_no_error(error);
    g_assert_nonnull(c);
    g_assert_null(cli_calibrate_fit(&samples, alone, 2, &error));
    g_assert_nonnull(strstr(error->message, "did not say everything"));
    g_clear_error(&error);
    g_assert_null(cli_calibrate_fit(&samples, "launch_us 1\n", 1, &error));
    cli_samples_clear(&samples);
}

static unsigned count(const char *text, const char *what) {
    unsigned n = 0;
    for (const char *at = text; (at = strstr(at, what)); at++) {
        n++;
    }
    return n;
}

/* What failed is named, and what it leaves open comes from the other cluster, marked. */
static void parts_that_fail(void) {
    ModelCluster other = elsewhere();
    CliSamples none, all = known();
    cli_samples_init(&none);
    g_autoptr(GArray) failures = cli_failures_new();
    g_autofree char *path = g_build_filename(g_get_tmp_dir(), "foreshard-said-XXXXXX", NULL);
    int fd = g_mkstemp(path);
    FILE *say = fdopen(fd, "w");
    cli_failures_add(failures, "gpt-bf16", g_error_new(G_IO_ERROR, 0, "it\nfell"), say);
    fclose(say);
    g_unlink(path);
    g_autoptr(GError) error = NULL;
    for (unsigned i = 0; i < 2; i++) { /* no play; no costs */
        g_autoptr(ModelCluster) fitted =
            cli_calibrate_fit(i ? &all : &none, i ? NULL : costs, 4, &error);
        g_assert_no_error(error);
        g_autoptr(GString) text =
            cli_calibrate_text(&(CliMeasured){fitted, &other, failures, 4, "2026-11-21"});
        g_assert_nonnull(strstr(text->str, "# Failed: gpt-bf16: it fell\n"));
        g_assert_nonnull(strstr(text->str, "taken over from elsewhere"));
        g_assert_null(strstr(text->str, "nan"));
        g_autoptr(ModelCluster) c = model_cluster_read(text->str, text->len, "x.ini", &error);
        g_assert_no_error(error);
        near(c->device_matmul_fp32_tflops, i ? fitted->device_matmul_fp32_tflops : 7, 1e-3);
        near(c->device_matmul_fp16_tflops, 9, 1e-3); /* known() has none of these */
        near(c->device_attention_efficiency, i ? fitted->device_attention_efficiency : 0.6, 1e-3);
        near(c->device_memory_gb_per_s, i ? 10 : 70, 1e-3);
        near(c->device_launch_overhead_ns, i ? 300 : 71, 1e-3);
        near((double)c->device_outside_allocator_bytes, i ? 6e7 : 7, 1e-3);
        near(c->host_launch_us, i ? 75 : 0.5, 1e-3);
        near(c->allocator_segment_new_us, i ? 73 : 3000, 1e-3);
        near(c->intra_node_bus_gb_per_s, i ? 80 : 8, 1e-2);
        near(c->collectives_base_latency_us, i ? 83 : 10.77, 1e-2);
        g_assert_cmpuint(count(text->str, "# taken over:"), ==, i ? 19 : 13);
    }
    cli_samples_clear(&none);
    cli_samples_clear(&all);
}

/* Every line is read by one rule: a name of its own, and behind it a number and nothing else. */
static void broken_lines(void) {
    static const char *const names[] = {"launch_us ", "segment_free_us ", "lane_wake_us "};
    static const char *const broken[] = {"", "much ", "-1 ", "60x ", "60 7 ", "nan ", "idle_"};
    CliSamples samples = known();
    for (unsigned i = 0; i < G_N_ELEMENTS(names); i++) {
        const char *line = strstr(costs, names[i]), *number = line + strlen(names[i]);
        for (unsigned j = 0; j < G_N_ELEMENTS(broken); j++) {
            bool is_name = g_str_equal(broken[j], "idle_"); /* before the line, not in it */
            g_autoptr(GString) text = g_string_new_len(costs, (is_name ? line : number) - costs);
            g_string_append_printf(text, "%s%s", broken[j], is_name ? line : strchr(number, '\n'));
            g_autoptr(GError) error = NULL;
            g_assert_null(cli_calibrate_fit(&samples, text->str, 4, &error));
            g_assert_nonnull(strstr(error->message, "did not say everything"));
        }
    }
    cli_samples_clear(&samples);
}

/* ---- a GPU ---------------------------------------------------------------------------------- */

static const char gpu_costs[] = "gpu Known GPU\nfact sms 100\nfact compute_capability 90\n"
                                "fact memory_bytes 80000000000\nfact outside_bytes 500000000\n"
                                "launch_us 4\nrecord_us 1.5\nwait_us 0.6\nhost_wait_us 3\n"
                                "lane_us 2.2\ntimed_us 5\nsegment_new_us 150\nsegment_free_us 90\n"
                                "alloc_us 0.1\nfree_us 0.1\nfact copy_gb_per_s 2500\n"
                                "fact to_gpu_gb_per_s 52\nfact to_host_gb_per_s 48\n";

/* As above: of each kernel that follows another, and of one between two events. */
#define LANE_US  2.2
#define TIMED_US 5.0

/* Peak is the fastest product, so a share of it comes back as a share of that. */
static ModelCluster known_gpu(void) {
    return (ModelCluster){.device_sms = 100,
                          .device_memory_gb_per_s = 2500,
                          .device_memory_efficiency = 1,
                          .device_matmul_efficiency = 0.8,
                          .device_attention_efficiency = 0.45,
                          .device_attention_backward_efficiency = 0.35,
                          .matmul_start_us = 4,
                          .matmul_tile_us = 1.2,
                          .matmul_split_us = 2.5,
                          .matmul_feed_gb_per_s = 350,
                          .matmul_sustained = 1,
                          .attention_start_us = 8,
                          .attention_tail_share = 0.3};
}

static const double sizes[][3] = {{256, 256, 256},    {1024, 1024, 1024},  {2048, 2048, 2048},
                                  {4096, 4096, 4096}, {8192, 8192, 8192},  {8192, 4800, 1600},
                                  {8192, 1600, 6400}, {4096, 768, 3072},   {2048, 6144, 4096},
                                  {128, 4096, 4096},  {16384, 1024, 4096}, {1024, 2304, 768}};

static double product_us(const ModelCluster *cluster, const double *size, double peak_flops) {
    SimProduct product = {1, size[0], size[1], size[2], 2, 2, peak_flops};
    return sim_product_ns(cluster, &product) / 1e3;
}

static SimAttention attention_of(double seq, bool backward, double peak_flops) {
    double passes = backward ? 2.5 : 1;
    return (SimAttention){.batch = 4,
                          .heads = 16,
                          .seq = seq,
                          .causal = true,
                          .backward = backward,
                          .flops = passes * 2 * 4 * seq * seq * 16 * 128,
                          .bytes = 2 * (backward ? 4.0 : 2.0) * 4 * seq * 32 * 128,
                          .peak_flops = peak_flops};
}

/* What such a GPU would have said. */
static GString *costs_of(const ModelCluster *known, double peak_flops) {
    GString *text = g_string_new(gpu_costs);
    for (unsigned i = 0; i < G_N_ELEMENTS(sizes); i++) {
        double us = product_us(known, sizes[i], peak_flops);
        g_string_append_printf(text, "product bf16 %.0f %.0f %.0f %.6g\n", sizes[i][0], sizes[i][1],
                               sizes[i][2], us + LANE_US);
        g_string_append_printf(text, "product fp32 %.0f %.0f %.0f %.6g\n", sizes[i][0], sizes[i][1],
                               sizes[i][2], us * 10 + LANE_US);
    }
    for (double seq = 512; seq <= 8192; seq *= 2) {
        for (int backward = 0; backward < 2; backward++) {
            SimAttention a = attention_of(seq, backward, peak_flops);
            g_string_append_printf(text, "attention bf16 4 16 16 %.0f 128 1 %d %.6g\n", seq,
                                   backward, sim_attention_ns(known, &a) / 1e3 + LANE_US);
        }
    }
    return text;
}

/* Times of a known GPU lead to a cluster that predicts them. */
static void a_gpu_comes_back(void) {
    const double peak = 900e12;
    ModelCluster known = known_gpu();
    CliSamples samples;
    cli_samples_init(&samples);
    samples.dtype = PLAN_N_DTYPES;
    /* One large, and one that is hardly longer than what timing it adds. */
    add(&samples, PLAN_OP_ADD, PLAN_BF16, 0, 1e9, 1e9 / 2300 + TIMED_US * 1e3);
    add(&samples, PLAN_OP_ADAM_FUSED, PLAN_FP32, 0, 2e7, 2e7 / 2100 + TIMED_US * 1e3);
    add(&samples, PLAN_OP_GELU_TANH, PLAN_BF16, 0, 1e4, 3000); /* a launch, no rate */
    g_autoptr(GString) said = costs_of(&known, peak);
    g_autoptr(GError) error = NULL;
    g_autofree char *name = NULL;
    g_autoptr(ModelCluster) fitted =
        cli_calibrate_fit_gpu(&samples, said->str, 1, false, &name, &error);
    g_assert_no_error(error);
    g_assert_cmpstr(name, ==, "Known GPU");
    g_autoptr(GArray) failures = cli_failures_new();
    g_autoptr(GString) text =
        cli_calibrate_text_gpu(&(CliMeasured){fitted, NULL, failures, 1, "2026-11-21"}, name);
    g_autoptr(ModelCluster) c = model_cluster_read(text->str, text->len, "x.ini", &error);
    g_assert_no_error(error);
    g_assert_cmpint(c->device_kind, ==, MODEL_DEVICE_GPU);
    near(c->kernel_gb_per_s[PLAN_OP_ADD], 2300, 1e-3);
    near(c->kernel_gb_per_s[PLAN_OP_ADAM_FUSED], 2100, 1e-3);
    g_assert_cmpfloat(c->kernel_gb_per_s[PLAN_OP_GELU_TANH], ==, 0);
    near(c->device_host_link_gb_per_s, 48, 1e-3);
    near(c->host_record_us, 1.5, 1e-3);
    near(c->device_matmul_fp32_tflops * 10, c->device_matmul_bf16_tflops, 1e-3);
    double sum = 0, worst = 0, fitted_peak = c->device_matmul_bf16_tflops * 1e12;
    for (unsigned i = 0; i < G_N_ELEMENTS(sizes); i++) {
        double off = product_us(c, sizes[i], fitted_peak) / product_us(&known, sizes[i], peak) - 1;
        worst = fmax(worst, fabs(off));
        sum += fabs(off);
    }
    g_test_message("products: off by %.1f %% in the mean, by %.1f %% at most",
                   sum / G_N_ELEMENTS(sizes) * 100, worst * 100);
    g_assert_cmpfloat(sum / G_N_ELEMENTS(sizes), <, 0.04); /* the climb ends on one of many hills */
    g_assert_cmpfloat(worst, <, 0.15);
    worst = 0;
    for (double seq = 512; seq <= 8192; seq *= 2) {
        SimAttention a = attention_of(seq, false, peak), b = attention_of(seq, false, fitted_peak);
        worst = fmax(worst, fabs(sim_attention_ns(c, &b) / sim_attention_ns(&known, &a) - 1));
    }
    g_test_message("attention: off by at most %.1f %%", worst * 100);
    g_assert_cmpfloat(worst, <, 0.1);
    g_assert_null(cli_calibrate_fit_gpu(&samples, gpu_costs, 1, false, &name, &error));
    g_assert_nonnull(strstr(error->message, "did not say everything of a GPU"));
    cli_samples_clear(&samples);
}

/* One whose time ended before attention, and before what is outside of the allocator. */
static void a_gpu_cut_short(void) {
    ModelCluster known = known_gpu();
    CliSamples none;
    cli_samples_init(&none);
    g_autoptr(GString) said = costs_of(&known, 900e12);
    g_string_truncate(said, (gsize)(strstr(said->str, "attention ") - said->str));
    static const char outside[] = "fact outside_bytes 500000000\n";
    g_string_erase(said, strstr(said->str, outside) - said->str, sizeof outside - 1);
    g_autoptr(GError) error = NULL;
    g_autofree char *name = NULL;
    g_autoptr(ModelCluster) fitted =
        cli_calibrate_fit_gpu(&none, said->str, 1, true, &name, &error);
    g_assert_no_error(error);
    g_autoptr(GArray) failures = cli_failures_new();
    g_autoptr(GString) text = cli_calibrate_text_gpu(
        &(CliMeasured){fitted, NULL, failures, 1, "2026-11-29", "attention was to be timed"}, name);
    g_autoptr(ModelCluster) c = model_cluster_read(text->str, text->len, "x.ini", &error);
    g_assert_no_error(error);
    g_assert_nonnull(strstr(text->str, "\n# Unfinished: attention was to be timed.\n"));
    g_assert_nonnull(strstr(text->str, "\n# assumed: it was not measured\nattention_efficiency"));
    g_assert_nonnull(
        strstr(text->str, "\n# assumed: it was not measured\noutside_allocator_bytes"));
    g_assert_cmpfloat(c->device_matmul_bf16_tflops, >, 100);
    for (char *fp32; (fp32 = strstr(said->str, "product fp32")) != NULL;) { /* before those, too */
        g_string_erase(said, fp32 - said->str, strchr(fp32, '\n') + 1 - fp32);
    }
    g_assert_null(cli_calibrate_fit_gpu(&none, said->str, 1, true, &name, &error));
    g_assert_nonnull(strstr(error->message, "did not say everything of a GPU"));
    cli_samples_clear(&none);
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/cli/calibrate/known numbers come back", known_numbers_come_back);
    g_test_add_func("/cli/calibrate/one rank", one_rank);
    g_test_add_func("/cli/calibrate/parts that fail", parts_that_fail);
    g_test_add_func("/cli/calibrate/broken lines", broken_lines);
    g_test_add_func("/cli/calibrate/a GPU comes back", a_gpu_comes_back);
    g_test_add_func("/cli/calibrate/a GPU cut short", a_gpu_cut_short);
    return g_test_run();
}
