/* cli/calibrate/write.c - a cluster file of what was measured: each number below its source. */
#include <string.h>

#include "cli/calibrate/calibrate.h"
#include "cli/machine.h"
#include "exec/host/lanes.h"

/* What is free now, shared out; half a gigabyte where the system does not say. */
static uint64_t memory_of_rank(unsigned n) {
    uint64_t bytes = cli_machine_free_bytes();
    return bytes ? bytes / n : 500000000;
}

static void number(GString *text, const char *key, double value) {
    char digits[G_ASCII_DTOSTR_BUF_SIZE];
    g_string_append_printf(text, "%s = %s\n", key,
                           g_ascii_formatd(digits, sizeof digits, "%.4g", value));
}

static void whole(GString *text, const char *key, uint64_t value) {
    g_string_append_printf(text, "%s = %" G_GUINT64_FORMAT "\n", key, value);
}

static void write_device(GString *text, const ModelCluster *c, unsigned n) {
    g_autofree char *model = cli_machine_processor();
    g_string_append_printf(text, "[device]\nkind = cpu\nmodel = one thread of %s\n", model);
    g_string_append(text, "# memory that was free, shared out to the ranks\n");
    whole(text, "memory_bytes", memory_of_rank(n));
    g_string_append(text, "# resident beside what the allocator had mapped\n");
    whole(text, "outside_allocator_bytes", c->device_outside_allocator_bytes);
    g_string_append(text, "# the fastest product; the other dtypes from products between casts\n");
    number(text, "matmul_fp32_tflops", c->device_matmul_fp32_tflops);
    number(text, "matmul_bf16_tflops", c->device_matmul_bf16_tflops);
    number(text, "matmul_fp16_tflops", c->device_matmul_fp16_tflops);
    g_string_append(text, "# time = start + flops / (peak * efficiency), fitted to all products\n");
    number(text, "matmul_efficiency", c->device_matmul_efficiency);
    number(text, "attention_efficiency", c->device_attention_efficiency);
    number(text, "attention_backward_efficiency", c->device_attention_backward_efficiency);
    g_string_append(text, "# adding two arrays; and all ops of [kernels] together beside it\n");
    number(text, "memory_gb_per_s", c->device_memory_gb_per_s);
    number(text, "memory_efficiency", c->device_memory_efficiency);
    number(text, "launch_overhead_ns", c->device_launch_overhead_ns);
    g_string_append(text, "# this machine's, shared out to the ranks\n");
    number(text, "cores", c->device_cores);
    g_string_append(text, "# of lanes that rested 2 ms, on all ranks at the same time\n");
    number(text, "lane_wake_us", c->device_lane_wake_us);
    g_string_append(text, "\n[matmul]\n");
    number(text, "start_us", c->matmul_start_us);
    g_string_append(
        text, "\n[attention]\n# time = rows * these + flops / (peak * efficiency), likewise\n");
    number(text, "row_us", c->attention_row_us);
    number(text, "row_backward_us", c->attention_row_backward_us);
}

/* The numbers stand below what they were fitted to. */
static void write_gpu(GString *text, const ModelCluster *c, const char *name) {
    g_string_append_printf(text, "[device]\nkind = gpu\nmodel = %s\n", name);
    whole(text, "memory_bytes", c->device_memory_bytes);
    g_string_append(text, "# in use with a context and one lane's library handles, before any "
                          "segment\n");
    whole(text, "outside_allocator_bytes", c->device_outside_allocator_bytes);
    g_string_append(
        text, "# the fastest product of each dtype, raised to what its tiles reach; no tf32\n");
    number(text, "matmul_fp32_tflops", c->device_matmul_fp32_tflops);
    number(text, "matmul_bf16_tflops", c->device_matmul_bf16_tflops);
    number(text, "matmul_fp16_tflops", c->device_matmul_fp16_tflops);
    g_string_append(text, "# [matmul], [attention] and these: fitted to bf16 products and "
                          "attention\n");
    number(text, "matmul_efficiency", c->device_matmul_efficiency);
    number(text, "attention_efficiency", c->device_attention_efficiency);
    number(text, "attention_backward_efficiency", c->device_attention_backward_efficiency);
    whole(text, "sms", c->device_sms);
    g_string_append(text, "# a copy within the GPU, read and written; all ops of [kernels] beside "
                          "it\n");
    number(text, "memory_gb_per_s", c->device_memory_gb_per_s);
    number(text, "memory_efficiency", c->device_memory_efficiency);
    g_string_append(text, "# copies of pinned memory, the slower way\n");
    number(text, "host_link_gb_per_s", c->device_host_link_gb_per_s);
    g_string_append(text,
                    "# from one kernel's start to the next, of kernels that do nothing, the host "
                    "far ahead\n");
    number(text, "launch_overhead_ns", c->device_launch_overhead_ns);
    g_string_append(text, "\n[matmul]\n");
    number(text, "start_us", c->matmul_start_us);
    number(text, "tile_us", c->matmul_tile_us);
    number(text, "split_us", c->matmul_split_us);
    number(text, "feed_gb_per_s", c->matmul_feed_gb_per_s);
    g_string_append(text, "\n[attention]\n");
    number(text, "start_us", c->attention_start_us);
    number(text, "tail_share", c->attention_tail_share);
}

static void write_kernels(GString *text, const ModelCluster *c) {
    g_string_append(text, "\n# GB/s of an op's bytes\n[kernels]\n");
    for (unsigned kind = 0; kind < PLAN_N_OP_KINDS; kind++) {
        if (c->kernel_gb_per_s[kind] > 0) {
            number(text, plan_op_info((PlanOpKind)kind)->name, c->kernel_gb_per_s[kind]);
        }
    }
}

/* What differs between CPU ranks and a GPU is said by who asks. */
typedef struct {
    const char *segment, *depth;
    unsigned queue_depth;
    double record_us; /* 0: assumed as a wait */
} HostWords;

static void write_host(GString *text, const ModelCluster *c, const HostWords *words) {
    g_string_append_printf(text, "\n[allocator]\n# %s\n", words->segment);
    number(text, "segment_new_us", c->allocator_segment_new_us);
    number(text, "segment_free_us", c->allocator_segment_free_us);
    g_string_append_printf(text, "\n[host]\n# %s\n", words->depth);
    whole(text, "queue_depth", words->queue_depth);
    number(text, "alloc_us", c->host_alloc_us);
    number(text, "free_us", c->host_free_us);
    g_string_append(text, "# assumed: as a free\n");
    number(text, "mark_us", c->host_free_us);
    number(text, "launch_us", c->host_launch_us);
    g_string_append(text, "# the same call\n");
    number(text, "collective_us", c->host_launch_us);
    number(text, "wait_us", c->host_wait_us);
    g_string_append(text, words->record_us > 0 ? "" : "# assumed: as a wait\n");
    number(text, "record_us", words->record_us > 0 ? words->record_us : c->host_wait_us);
    number(text, "host_wait_us", c->host_host_wait_us);
    g_string_append(text, "# assumed: a call of the player\n");
    number(text, "host_op_us", c->host_launch_us);
}

static void write_links(GString *text, const ModelCluster *c, unsigned n) {
    g_string_append(text, "\n[topology]\nnodes = 1\n# ranks that were measured at once\n");
    whole(text, "gpus_per_node", n);
    g_string_append(text, n > 1 ? "\n# collectives of 4 MiB and more; latencies at 8 KiB\n"
                                : "\n# one rank was measured, which has no collectives\n");
    g_string_append(text, "[intra_node]\n");
    number(text, "bus_gb_per_s", c->intra_node_bus_gb_per_s);
    number(text, "reduce_bus_gb_per_s", c->intra_node_reduce_bus_gb_per_s);
    number(text, "step_latency_us", c->intra_node_step_latency_us);
    g_string_append(text, "\n[collectives]\n");
    number(text, "base_latency_us", c->collectives_base_latency_us);
    g_string_append(text,
                    "# as bus_gb_per_s: between ranks of one machine, cores do the copying\n");
    number(text, "core_gb_per_s", c->collectives_core_gb_per_s);
    number(text, "reduce_core_gb_per_s", c->collectives_reduce_core_gb_per_s);
}

GString *cli_calibrate_text(const ModelCluster *cluster, unsigned n, const char *date) {
    GString *text = g_string_new(NULL);
    g_autofree char *model = cli_machine_processor();
    g_string_append_printf(text,
                           "# Measured by `foreshard calibrate --device host -n %u` on %s: every "
                           "number but\n# those marked assumed, with %u rank%s at work at once.\n\n"
                           "[cluster]\ntitle = %u CPU rank%s on %s\n\n",
                           n, date, n, n == 1 ? "" : "s", n, n == 1 ? "" : "s", model);
    write_device(text, cluster, n);
    write_kernels(text, cluster);
    write_host(text, cluster,
               &(HostWords){.segment = "a mapping of 20 MiB, touched",
                            .depth = "EXEC_LANE_DEPTH of exec/host/lanes.h",
                            .queue_depth = EXEC_LANE_DEPTH});
    write_links(text, cluster, n);
    return text;
}

GString *cli_calibrate_text_gpu(const ModelCluster *cluster, const char *name, unsigned n,
                                const char *date) {
    GString *text = g_string_new(NULL);
    g_string_append_printf(text,
                           "# Measured by `foreshard calibrate --device cuda -n %u` on %s: every "
                           "number but\n# those marked assumed. Times of foreshard's own executor, "
                           "not of PyTorch.\n\n"
                           "[cluster]\ntitle = %u x %s\n\n",
                           n, date, n, name);
    write_gpu(text, cluster, name);
    write_kernels(text, cluster);
    write_host(text, cluster,
               &(HostWords){.segment = "cudaMalloc and cudaFree of 20 MiB, the GPU at rest",
                            .depth = "assumed: CUDA takes about a thousand launches",
                            .queue_depth = 1024,
                            .record_us = cluster->host_record_us});
    write_links(text, cluster, n);
    return text;
}
