/* What calibrate makes of times: the numbers that made the times come back, in the file too. */
#include <gio/gio.h>
#include <math.h>
#include <string.h>

#include "cli/calibrate.h"

static const char costs[] = "launch_us 0.5\nwait_us 0.05\nhost_wait_us 20\nlane_us 3\n"
                            "segment_new_us 3000\nsegment_free_us 500\nalloc_us 0.03\n"
                            "free_us 0.04\n"
                            /* of 4 ranks: 10 us, 2 us a step; 8 GB/s, 2 GB/s where it adds */
                            "all_gather 8192 16.77\nall_gather 33554432 3151.7\n"
                            "reduce_scatter 8192 19.07\nreduce_scatter 33554432 12589\n"
                            "all_reduce 8192 22.77\nall_reduce 33554432 25165.8\n";

static void add(CliSamples *samples, PlanOpKind kind, PlanDtype dtype, double flops, double bytes,
                double ns) {
    CliSample sample = {kind, dtype, flops, bytes, ns};
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
    add(&samples, PLAN_OP_ATTENTION, PLAN_FP32, 1e9, 1e6, 4e7);
    add(&samples, PLAN_OP_ATTENTION_BACKWARD, PLAN_FP32, 1e9, 1e6, 5e7);
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

static void known_numbers_come_back(void) {
    CliSamples samples = known();
    g_autoptr(GError) error = NULL;
    g_autoptr(ModelCluster) fitted = cli_calibrate_fit(&samples, costs, 4, &error);
    g_assert_no_error(error);
    g_autoptr(GString) text = cli_calibrate_text(fitted, 4, "2026-11-21");
    g_assert_nonnull(strstr(text->str, "2026-11-21"));
    g_autoptr(ModelCluster) c = model_cluster_read(text->str, text->len, "x.ini", &error);
    g_assert_no_error(error);
    near(c->device_matmul_fp32_tflops * c->device_matmul_efficiency, 0.1, 1e-3);
    near(c->device_matmul_bf16_tflops * c->device_matmul_efficiency, 0.05, 1e-2);
    near(c->matmul_start_us, 2, 1e-3);
    near(c->device_attention_efficiency * c->device_matmul_fp32_tflops, 0.025, 1e-3);
    near(c->device_attention_backward_efficiency * c->device_matmul_fp32_tflops, 0.02, 1e-3);
    near(c->kernel_gb_per_s[PLAN_OP_ADD], 10, 1e-3);
    near(c->kernel_gb_per_s[PLAN_OP_GELU_TANH], 4, 1e-3);
    g_assert_cmpfloat(c->kernel_gb_per_s[PLAN_OP_SILU], ==, 0);
    near(c->device_launch_overhead_ns, 300, 1e-3);
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
    g_autoptr(GString) text = cli_calibrate_text(fitted, 1, "2026-11-21");
    g_autoptr(ModelCluster) c = model_cluster_read(text->str, text->len, "x.ini", &error);
    g_assert_no_error(error);
    g_assert_nonnull(c);
    g_assert_null(cli_calibrate_fit(&samples, alone, 2, &error));
    g_assert_nonnull(strstr(error->message, "did not say everything"));
    g_clear_error(&error);
    g_assert_null(cli_calibrate_fit(&samples, "launch_us 1\n", 1, &error));
    cli_samples_clear(&samples);
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/cli/calibrate/known numbers come back", known_numbers_come_back);
    g_test_add_func("/cli/calibrate/one rank", one_rank);
    return g_test_run();
}
