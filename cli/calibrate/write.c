/* cli/calibrate/write.c - a cluster file of what was measured: each number below its source. */
#include <math.h>
#include <string.h>

#include "cli/calibrate/calibrate.h"
#include "cli/host/machine.h"
#include "exec/host/lanes.h"

#define TAKEN_OVER "# taken over: what measures it failed\n"

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

/* Of both clusters the same number. */
static void number_of(GString *text, const char *key, double measured, double other) {
    if (isnan(measured)) {
        g_string_append(text, TAKEN_OVER);
    }
    number(text, key, isnan(measured) ? other : measured);
}

static void whole(GString *text, const char *key, uint64_t value) {
    g_string_append_printf(text, "%s = %" G_GUINT64_FORMAT "\n", key, value);
}

/* A number by its key, as it was measured or as it is taken over. */
#define BOTH(key, field) number_of(text, key, c->field, o ? o->field : 0)

static void write_device(GString *text, const CliMeasured *all) {
    const ModelCluster *c = all->measured, *o = all->other;
    g_autofree char *model = cli_machine_processor();
    g_string_append_printf(text, "[device]\nkind = cpu\nmodel = one thread of %s\n", model);
    g_string_append(text, "# memory that was free, shared out to the ranks\n");
    whole(text, "memory_bytes", memory_of_rank(all->n));
    g_string_append(text, "# resident beside what the allocator had mapped\n");
    bool known = c->device_outside_allocator_bytes;
    g_string_append(text, known ? "" : TAKEN_OVER);
    whole(text, "outside_allocator_bytes", (known ? c : o)->device_outside_allocator_bytes);
    g_string_append(text, "# the fastest product; the other dtypes from products between casts\n");
    BOTH("matmul_fp32_tflops", device_matmul_fp32_tflops);
    BOTH("matmul_bf16_tflops", device_matmul_bf16_tflops);
    BOTH("matmul_fp16_tflops", device_matmul_fp16_tflops);
    g_string_append(text, "# time = start + flops / (peak * efficiency), fitted to all products\n");
    BOTH("matmul_efficiency", device_matmul_efficiency);
    BOTH("attention_efficiency", device_attention_efficiency);
    BOTH("attention_backward_efficiency", device_attention_backward_efficiency);
    g_string_append(text, "# adding two arrays; and all ops of [kernels] together beside it\n");
    BOTH("memory_gb_per_s", device_memory_gb_per_s);
    BOTH("memory_efficiency", device_memory_efficiency);
    BOTH("launch_overhead_ns", device_launch_overhead_ns);
    g_string_append(text, "# this machine's, shared out to the ranks\n");
    BOTH("cores", device_cores);
    g_string_append(text, "# of lanes that rested 2 ms, on all ranks at the same time\n");
    BOTH("lane_wake_us", device_lane_wake_us);
    g_string_append(text, "\n[matmul]\n");
    BOTH("start_us", matmul_start_us);
    g_string_append(
        text, "\n[attention]\n# time = rows * these + flops / (peak * efficiency), likewise\n");
    BOTH("row_us", attention_row_us);
    BOTH("row_backward_us", attention_row_backward_us);
}

/* Of a GPU whose calibration did not come so far. */
static void number_or(GString *text, const char *key, double measured, double assumed) {
    g_string_append(text, isnan(measured) ? "# assumed: it was not measured\n" : "");
    number(text, key, isnan(measured) ? assumed : measured);
}

/* As models/clusters/a100-node.ini has it. */
#define ASSUMED_OUTSIDE_BYTES 1342177280

static void write_outside(GString *text, uint64_t bytes) {
    g_string_append(text, bytes ? "# in use with a context and one lane's library handles, before "
                                  "any segment\n"
                                : "# assumed: it was not measured\n");
    whole(text, "outside_allocator_bytes", bytes ? bytes : ASSUMED_OUTSIDE_BYTES);
}

/* The numbers stand below what they were fitted to. */
static void write_gpu(GString *text, const ModelCluster *c, const char *name) {
    g_string_append_printf(text, "[device]\nkind = gpu\nmodel = %s\n", name);
    whole(text, "memory_bytes", c->device_memory_bytes);
    write_outside(text, c->device_outside_allocator_bytes);
    g_string_append(
        text, "# the fastest product of each dtype, raised to what its tiles reach; no tf32\n");
    number(text, "matmul_fp32_tflops", c->device_matmul_fp32_tflops);
    number(text, "matmul_bf16_tflops", c->device_matmul_bf16_tflops);
    number(text, "matmul_fp16_tflops", c->device_matmul_fp16_tflops);
    g_string_append(text, "# [matmul], [attention] and these: fitted to bf16 products and "
                          "attention\n");
    number(text, "matmul_efficiency", c->device_matmul_efficiency);
    number_or(text, "attention_efficiency", c->device_attention_efficiency, 0.5);
    number_or(text, "attention_backward_efficiency", c->device_attention_backward_efficiency, 0.5);
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
    number_or(text, "start_us", c->attention_start_us, 10);
    number_or(text, "tail_share", c->attention_tail_share, 0.4);
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

static void write_host(GString *text, const CliMeasured *all, const HostWords *words) {
    const ModelCluster *c = all->measured, *o = all->other;
    g_string_append_printf(text, "\n[allocator]\n# %s\n", words->segment);
    BOTH("segment_new_us", allocator_segment_new_us);
    BOTH("segment_free_us", allocator_segment_free_us);
    g_string_append_printf(text, "\n[host]\n# %s\n", words->depth);
    whole(text, "queue_depth", words->queue_depth);
    BOTH("alloc_us", host_alloc_us);
    BOTH("free_us", host_free_us);
    g_string_append(text, "# assumed: as a free\n");
    BOTH("mark_us", host_free_us);
    BOTH("launch_us", host_launch_us);
    g_string_append(text, "# the same call\n");
    BOTH("collective_us", host_launch_us);
    BOTH("wait_us", host_wait_us);
    g_string_append(text, words->record_us > 0 ? "" : "# assumed: as a wait\n");
    if (words->record_us > 0) {
        number(text, "record_us", words->record_us);
    } else {
        BOTH("record_us", host_wait_us);
    }
    BOTH("host_wait_us", host_host_wait_us);
    g_string_append(text, "# assumed: a call of the player\n");
    BOTH("host_op_us", host_launch_us);
}

static void write_links(GString *text, const CliMeasured *all) {
    const ModelCluster *c = all->measured, *o = all->other;
    unsigned n = all->n;
    g_string_append(text, "\n[topology]\nnodes = 1\n# ranks that were measured at once\n");
    whole(text, "gpus_per_node", n);
    g_string_append(text, n > 1 ? "\n# collectives of 4 MiB and more; latencies at 8 KiB\n"
                                : "\n# one rank was measured, which has no collectives\n");
    g_string_append(text, "[intra_node]\n");
    BOTH("bus_gb_per_s", intra_node_bus_gb_per_s);
    BOTH("reduce_bus_gb_per_s", intra_node_reduce_bus_gb_per_s);
    BOTH("step_latency_us", intra_node_step_latency_us);
    g_string_append(text, "\n[collectives]\n");
    BOTH("base_latency_us", collectives_base_latency_us);
    g_string_append(text,
                    "# as bus_gb_per_s: between ranks of one machine, cores do the copying\n");
    BOTH("core_gb_per_s", collectives_core_gb_per_s);
    BOTH("reduce_core_gb_per_s", collectives_reduce_core_gb_per_s);
}

static void write_failures(GString *text, const CliMeasured *all) {
    for (guint i = 0; i < all->failures->len; i++) {
        const CliFailure *failure = &g_array_index(all->failures, CliFailure, i);
        g_string_append_printf(text, "# Failed: %s: %s\n", failure->what, failure->why);
    }
    if (all->failures->len && all->other) {
        g_string_append_printf(text, "# Numbers that are marked so were taken over from %s.\n",
                               all->other->name);
    }
    g_string_append_c(text, '\n');
}

GString *cli_calibrate_text(const CliMeasured *all) {
    GString *text = g_string_new(NULL);
    g_autofree char *model = cli_machine_processor();
    unsigned n = all->n;
    g_string_append_printf(text,
                           "# Measured by `foreshard calibrate --device host -n %u` on %s: every "
                           "number but\n# those marked assumed, with %u rank%s at work at once.\n",
                           n, all->date, n, n == 1 ? "" : "s");
    write_failures(text, all);
    g_string_append_printf(text, "[cluster]\ntitle = %u CPU rank%s on %s\n\n", n, n == 1 ? "" : "s",
                           model);
    write_device(text, all);
    write_kernels(text, all->measured);
    write_host(text, all,
               &(HostWords){.segment = "a mapping of 20 MiB, touched",
                            .depth = "EXEC_LANE_DEPTH of exec/host/lanes.h",
                            .queue_depth = EXEC_LANE_DEPTH});
    write_links(text, all);
    return text;
}

GString *cli_calibrate_text_gpu(const CliMeasured *all, const char *name) {
    GString *text = g_string_new(NULL);
    g_string_append_printf(text,
                           "# Measured by `foreshard calibrate --device cuda -n %u` on %s: every "
                           "number but\n# those marked assumed. Times of foreshard's own executor, "
                           "not of PyTorch.\n",
                           all->n, all->date);
    if (all->unfinished) {
        g_string_append_printf(text, "# Unfinished: %s.\n", all->unfinished);
    }
    write_failures(text, all);
    g_string_append_printf(text, "[cluster]\ntitle = %u x %s\n\n", all->n, name);
    write_gpu(text, all->measured, name);
    write_kernels(text, all->measured);
    write_host(text, all,
               &(HostWords){.segment = "cudaMalloc and cudaFree of 20 MiB, the GPU at rest",
                            .depth = "assumed: CUDA takes about a thousand launches",
                            .queue_depth = 1024,
                            .record_us = all->measured->host_record_us});
    write_links(text, all);
    return text;
}
