/* cli/calibrate/fit.c - from samples and costs to the numbers of a cluster of CPU ranks; and what
 * of that a GPU's (gpu.c) shares.
 */
#include <gio/gio.h>
#include <math.h>
#include <string.h>

#include "cli/calibrate/calibrate.h"
#include "trace/quantile.h"

/* Below this, the time of an op is mostly its call's. */
#define LEAST_BYTES 65536
#define LEAST_FLOPS 1e6

void cli_samples_init(CliSamples *samples) {
    *samples = (CliSamples){.ops = g_array_new(FALSE, FALSE, sizeof(CliSample)),
                            .gaps_ns = g_array_new(FALSE, FALSE, sizeof(double)),
                            .dtype = PLAN_FP32};
}

void cli_samples_clear(CliSamples *samples) {
    g_clear_pointer(&samples->ops, g_array_unref);
    g_clear_pointer(&samples->gaps_ns, g_array_unref);
}

static bool is_product(PlanOpKind kind) {
    return kind == PLAN_OP_LINEAR || kind == PLAN_OP_LINEAR_DX || kind == PLAN_OP_LINEAR_DW;
}

static const CliSample *sample_at(const CliSamples *samples, guint i) {
    return &g_array_index(samples->ops, CliSample, i);
}

/* ---- products ------------------------------------------------------------------------------- */

/* ns = start + flops * slope, by least squares of relative errors. */
static void fit_line(const CliSamples *samples, double *ret_start, double *ret_slope) {
    double s1 = 0, sx = 0, sy = 0, sxx = 0, sxy = 0;
    for (guint i = 0; i < samples->ops->len; i++) {
        const CliSample *s = sample_at(samples, i);
        if (is_product(s->kind) && s->dtype == PLAN_FP32 && s->flops >= LEAST_FLOPS) {
            double w = 1 / (s->ns * s->ns);
            s1 += w;
            sx += w * s->flops;
            sy += w * s->ns;
            sxx += w * s->flops * s->flops;
            sxy += w * s->flops * s->ns;
        }
    }
    double start = (sxx * sy - sx * sxy) / (s1 * sxx - sx * sx);
    *ret_start = fmax(0, start);
    *ret_slope = start > 0 ? (s1 * sxy - sx * sy) / (s1 * sxx - sx * sx) : sxy / sxx;
}

static double best_rate(const CliSamples *samples) {
    double best = 0;
    for (guint i = 0; i < samples->ops->len; i++) {
        const CliSample *s = sample_at(samples, i);
        if (is_product(s->kind) && s->dtype == PLAN_FP32) {
            best = fmax(best, s->flops / s->ns);
        }
    }
    return best;
}

/* Flops a ns of all products in a dtype, after their start. */
static double rate_in(const CliSamples *samples, PlanDtype dtype, double start_ns) {
    double flops = 0, ns = 0;
    for (guint i = 0; i < samples->ops->len; i++) {
        const CliSample *s = sample_at(samples, i);
        if (is_product(s->kind) && s->dtype == dtype && s->flops >= LEAST_FLOPS) {
            flops += s->flops;
            ns += fmax(s->ns - start_ns, s->ns / 2);
        }
    }
    return ns > 0 ? flops / ns : NAN;
}

static bool counts(const CliSamples *samples, const CliSample *s) {
    return samples->dtype == PLAN_N_DTYPES || s->dtype == samples->dtype;
}

static double rate_of_kind(const CliSamples *samples, PlanOpKind kind, double least_bytes) {
    double bytes = 0, ns = 0;
    for (guint i = 0; i < samples->ops->len; i++) {
        const CliSample *s = sample_at(samples, i);
        if (s->kind == kind && counts(samples, s) && s->bytes >= least_bytes) {
            bytes += s->bytes;
            ns += s->ns;
        }
    }
    return ns > 0 ? bytes / ns : 0;
}

/* ns = rows * a_row + flops * a_flop, likewise, of all attention of a kind. What sets the two apart
 * is how long sequences are, and the size of heads. */
static void fit_attention(const CliSamples *samples, PlanOpKind kind, double *ret_a_row_us,
                          double *ret_a_flop) {
    double srr = 0, srf = 0, sff = 0, sr = 0, sf = 0;
    for (guint i = 0; i < samples->ops->len; i++) {
        const CliSample *s = sample_at(samples, i);
        if (s->kind == kind && s->dtype == PLAN_FP32) {
            double r = s->rows / s->ns, f = s->flops / s->ns;
            srr += r * r;
            srf += r * f;
            sff += f * f;
            sr += r;
            sf += f;
        }
    }
    if (sff == 0) {
        *ret_a_row_us = *ret_a_flop = NAN;
        return;
    }
    bool apart = srr * sff > 1.01 * srf * srf;
    double a_row = apart ? (sff * sr - srf * sf) / (srr * sff - srf * srf) : 0;
    a_row = CLAMP(a_row, 0, sf / srf); /* neither takes less than no time */
    *ret_a_row_us = a_row / 1e3;
    *ret_a_flop = (sf - a_row * srf) / sff;
}

/* Of the peak; fmin() would take 1 for what is not a number. */
static double share(double a_flop, double peak) {
    double share = 1 / a_flop / peak;
    return share > 1 ? 1 : share;
}

/* A flop a ns is a Gflop/s; files speak of Tflop/s. */
static void fit_products(const CliSamples *samples, ModelCluster *cluster) {
    double start = NAN, slope = NAN, peak = best_rate(samples);
    if (peak > 0) {
        fit_line(samples, &start, &slope);
    }
    peak = peak > 0 ? fmax(peak, 1 / slope) : NAN;
    cluster->matmul_start_us = start / 1e3;
    cluster->device_matmul_efficiency = 1 / slope / peak;
    cluster->device_matmul_fp32_tflops = peak / 1e3;
    cluster->device_matmul_bf16_tflops = rate_in(samples, PLAN_BF16, start) * slope * peak / 1e3;
    cluster->device_matmul_fp16_tflops = rate_in(samples, PLAN_FP16, start) * slope * peak / 1e3;
    double a_flop;
    fit_attention(samples, PLAN_OP_ATTENTION, &cluster->attention_row_us, &a_flop);
    cluster->device_attention_efficiency = share(a_flop, peak);
    fit_attention(samples, PLAN_OP_ATTENTION_BACKWARD, &cluster->attention_row_backward_us,
                  &a_flop);
    cluster->device_attention_backward_efficiency = share(a_flop, peak);
}

/* ---- memory --------------------------------------------------------------------------------- */

/* Products of heads are small, and go at a rate of their own too. */
static bool has_own_rate(PlanOpKind kind) {
    return plan_op_info(kind)->op_class == PLAN_CLASS_MEMORY || kind == PLAN_OP_HEADS_MATMUL;
}

void cli_calibrate_fit_kernels(const CliSamples *samples, double least_bytes,
                               ModelCluster *cluster) {
    for (unsigned kind = 0; kind < PLAN_N_OP_KINDS; kind++) {
        if (has_own_rate((PlanOpKind)kind)) {
            cluster->kernel_gb_per_s[kind] = rate_of_kind(samples, (PlanOpKind)kind, least_bytes);
        }
    }
}

static void fit_memory(const CliSamples *samples, ModelCluster *cluster) {
    double bytes = 0, ns = 0;
    cli_calibrate_fit_kernels(samples, LEAST_BYTES, cluster);
    for (guint i = 0; i < samples->ops->len; i++) {
        const CliSample *s = sample_at(samples, i);
        if (plan_op_info(s->kind)->op_class == PLAN_CLASS_MEMORY && s->dtype == PLAN_FP32) {
            bytes += s->bytes;
            ns += s->ns;
        }
    }
    double best = cluster->kernel_gb_per_s[PLAN_OP_ADD]; /* nothing but traffic */
    cluster->device_memory_gb_per_s = best > 0 ? best : NAN;
    cluster->device_memory_efficiency = best > 0 ? fmin(1, bytes / ns / best) : NAN;
}

/* ---- the executor's own costs --------------------------------------------------------------- */

typedef struct {
    const char *kind;
    unsigned steps;  /* of a ring, a rank more or less: collectives.def */
    double least_us; /* at the smallest size */
    double log_sum;  /* of rates, large sizes */
    unsigned n_large;
} Collective;

static void take_collective(Collective *c, double bytes, double us, unsigned n) {
    if (c->least_us == 0) {
        c->least_us = us;
    }
    if (bytes >= 4e6) {
        c->log_sum += log(bytes * c->steps * (n - 1) / n / (us * 1e3));
        c->n_large++;
    }
}

static double mean_rate(const Collective *a, const Collective *b) {
    return exp((a->log_sum + b->log_sum) / (a->n_large + b->n_large));
}

/* One rank has no collectives: what is then written serves plans of one rank. */
static void fit_collectives(const Collective *c, unsigned n, ModelCluster *cluster) {
    cluster->intra_node_bus_gb_per_s = n > 1 ? mean_rate(&c[0], &c[0]) : 1;
    cluster->intra_node_reduce_bus_gb_per_s = n > 1 ? mean_rate(&c[1], &c[2]) : 1;
    /* Measured where nothing else ran: copying kept a core of each rank busy. */
    cluster->collectives_core_gb_per_s = cluster->intra_node_bus_gb_per_s;
    cluster->collectives_reduce_core_gb_per_s = cluster->intra_node_reduce_bus_gb_per_s;
    double step = n > 1 ? (c[2].least_us - c[0].least_us) / (n - 1) : 0;
    cluster->intra_node_step_latency_us = fmax(0.1, step);
    cluster->collectives_base_latency_us =
        fmax(0, c[0].least_us - cluster->intra_node_step_latency_us * (n - 1));
}

static bool says_too_little(GError **error) {
    g_set_error(error, G_IO_ERROR, G_IO_ERROR_INVALID_DATA,
                "foreshard-exec --costs did not say everything; is it of this build?");
    return false;
}

/* The line's numbers, behind its name; how many there are, 0 where one is none. */
static unsigned read_numbers(char **words, double *ret_numbers, unsigned most) {
    unsigned n = 0;
    for (char **word = words + 1; *word; word++, n++) {
        char *end;
        double number = g_ascii_strtod(*word, &end);
        if (n == most || end == *word || *end || !isfinite(number) || number < 0) {
            return 0;
        }
        ret_numbers[n] = number;
    }
    return n;
}

typedef struct {
    const char *name;
    double *to;
} Number;

/* The lines "name number", each of which has to be there; others are for whoever asks for them. */
static bool take_numbers(char *const *lines, const Number *numbers, unsigned n_numbers) {
    unsigned found = 0; /* a bit each */
    for (; *lines; lines++) {
        g_auto(GStrv) words = g_strsplit(*lines, " ", -1);
        double said;
        bool is_one = words[0] && read_numbers(words, &said, 1) == 1;
        for (unsigned i = 0; i < n_numbers && is_one; i++) {
            if (g_str_equal(words[0], numbers[i].name)) {
                *numbers[i].to = said;
                found |= 1u << i;
            }
        }
    }
    return found == (1u << n_numbers) - 1;
}

/* The lines "collective bytes microseconds" of n ranks. */
static void take_collectives(char *const *lines, Collective *collectives, unsigned n_collectives,
                             unsigned n) {
    for (; *lines; lines++) {
        g_auto(GStrv) words = g_strsplit(*lines, " ", -1);
        double said[2];
        bool is_one = words[0] && read_numbers(words, said, 2) == 2 && said[1] > 0;
        for (unsigned i = 0; i < n_collectives && is_one; i++) {
            if (g_str_equal(words[0], collectives[i].kind)) {
                take_collective(&collectives[i], said[0], said[1], n);
            }
        }
    }
}

bool cli_calibrate_take_costs(const char *costs, unsigned n, ModelCluster *cluster,
                              GError **error) {
    Collective collectives[] = {{"all_gather", 1}, {"reduce_scatter", 1}, {"all_reduce", 2}};
    const Number numbers[] = {{"launch_us", &cluster->host_launch_us},
                              {"wait_us", &cluster->host_wait_us},
                              {"host_wait_us", &cluster->host_host_wait_us},
                              {"alloc_us", &cluster->host_alloc_us},
                              {"free_us", &cluster->host_free_us},
                              {"segment_new_us", &cluster->allocator_segment_new_us},
                              {"segment_free_us", &cluster->allocator_segment_free_us}};
    g_auto(GStrv) lines = g_strsplit(costs, "\n", -1);
    take_collectives(lines, collectives, G_N_ELEMENTS(collectives), n);
    if (!take_numbers(lines, numbers, G_N_ELEMENTS(numbers)) ||
        (n > 1 && !collectives[2].n_large)) {
        return says_too_little(error);
    }
    fit_collectives(collectives, n, cluster);
    return true;
}

/* Of n ranks that did not say what they cost. One has no collectives that could be measured. */
static void have_no_costs(ModelCluster *cluster, unsigned n) {
    const Collective none[3] = {0};
    cluster->host_launch_us = cluster->host_wait_us = cluster->host_host_wait_us = NAN;
    cluster->host_alloc_us = cluster->host_free_us = NAN;
    cluster->allocator_segment_new_us = cluster->allocator_segment_free_us = NAN;
    cluster->device_lane_wake_us = NAN;
    fit_collectives(none, n, cluster);
    if (n > 1) {
        cluster->intra_node_step_latency_us = cluster->collectives_base_latency_us = NAN;
    }
}

/* What CPU ranks alone say. */
static bool take_wake(const char *costs, ModelCluster *cluster, GError **error) {
    const Number wake = {"lane_wake_us", &cluster->device_lane_wake_us};
    g_auto(GStrv) lines = g_strsplit(costs, "\n", -1);
    return take_numbers(lines, &wake, 1) || says_too_little(error);
}

/* ---- all of it ------------------------------------------------------------------------------ */

ModelCluster *cli_calibrate_fit(const CliSamples *samples, const char *costs, unsigned n,
                                GError **error) {
    g_autoptr(ModelCluster) cluster = g_new0(ModelCluster, 1);
    if (!costs) {
        have_no_costs(cluster, n);
    } else if (!cli_calibrate_take_costs(costs, n, cluster, error) ||
               !take_wake(costs, cluster, error)) {
        return NULL;
    }
    fit_products(samples, cluster);
    fit_memory(samples, cluster);
    cluster->device_launch_overhead_ns =
        samples->gaps_ns->len ? trace_median_of(samples->gaps_ns) : NAN;
    cluster->device_cores = (double)g_get_num_processors() / n;
    cluster->device_outside_allocator_bytes = (uint64_t)samples->outside_bytes;
    return g_steal_pointer(&cluster);
}
