/* cli/calibrate/gpu.c - a GPU's numbers from times of single products, attentions and copies.
 *
 * Products and attention are what sim/costs/product.h and attention.h compute, with the few numbers
 * of the cluster moved until the times come out best (least mean |log(predicted / measured)|): hill
 * climbing from a fixed seed, as bench/fit-gemm does over published times. Peaks are the fastest
 * products that were measured, so what is fitted is a share of what this GPU reaches, whatever its
 * data sheet says. Collectives are written as plain rings, as they were measured.
 */
#include <gio/gio.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/calibrate/calibrate.h"
#include "cli/calibrate/climb.h"
#include "sim/costs/attention.h"
#include "sim/costs/product.h"

enum {
    CLIMBS = 16,           /* from other starts: hills are many */
    CLIMBS_ON_THE_WAY = 4, /* for what is soon fitted anew, while a GPU that is lent waits */
    TRIES = 4000,
    MOST_KNOBS = 8
};

/* Below this an op's time on a GPU is mostly its launch. */
#define LEAST_BYTES 16e6

typedef struct {
    SimProduct product;
    PlanDtype dtype;
    double us;
} Product;

typedef struct {
    SimAttention attention;
    double us;
} Attention;

typedef struct {
    GArray *products, *attentions; /* Product, Attention */
    char *name;
    double copy_gb_per_s, in_gb_per_s, out_gb_per_s;
    double sms, memory_bytes, outside_bytes, record_us, lane_us, timed_us;
    unsigned climbs;
    ModelCluster *cluster; /* that is being fitted */
} Gpu;

/* ---- lines of exec/cuda/measure/costs.h --------------------------------------------------- */

static bool take_product(Gpu *gpu, const char *line) {
    char dtype[8];
    Product p = {0};
    if (sscanf(line, "product %7s %lf %lf %lf %lf", dtype, &p.product.m, &p.product.n, &p.product.k,
               &p.us) != 5) {
        return false;
    }
    p.dtype = g_str_equal(dtype, "fp32")   ? PLAN_FP32
              : g_str_equal(dtype, "bf16") ? PLAN_BF16
                                           : PLAN_FP16;
    p.product.batch = 1;
    p.product.element_bytes = p.product.output_bytes = plan_dtype_bytes(p.dtype);
    g_array_append_val(gpu->products, p);
    return true;
}

static bool take_attention(Gpu *gpu, const char *line) {
    SimAttentionShape shape;
    double us;
    int causal, backward;
    if (sscanf(line, "attention bf16 %lf %lf %lf %lf %lf %d %d %lf", &shape.batch, &shape.heads,
               &shape.kv_heads, &shape.seq, &shape.head_dim, &causal, &backward, &us) != 8) {
        return false;
    }
    shape.causal = causal;
    shape.backward = backward;
    Attention a = {.attention = sim_attention_of(&shape), .us = us};
    g_array_append_val(gpu->attentions, a);
    return true;
}

/* "name number"; others are for cli_calibrate_take_costs(). */
static void take_fact(Gpu *gpu, const char *line) {
    const struct {
        const char *name;
        double *to;
    } facts[] = {{"sms", &gpu->sms},
                 {"memory_bytes", &gpu->memory_bytes},
                 {"outside_bytes", &gpu->outside_bytes},
                 {"copy_gb_per_s", &gpu->copy_gb_per_s},
                 {"to_gpu_gb_per_s", &gpu->in_gb_per_s},
                 {"to_host_gb_per_s", &gpu->out_gb_per_s},
                 {"record_us", &gpu->record_us},
                 {"lane_us", &gpu->lane_us},
                 {"timed_us", &gpu->timed_us}};
    const char *value = strrchr(line, ' ');
    for (unsigned i = 0; i < G_N_ELEMENTS(facts); i++) {
        if (value && (gsize)(value - line) == strlen(facts[i].name) &&
            g_str_has_prefix(line, facts[i].name)) {
            *facts[i].to = g_ascii_strtod(value, NULL);
        }
    }
}

static bool take_lines(Gpu *gpu, const char *costs, GError **error) {
    g_auto(GStrv) lines = g_strsplit(costs, "\n", -1);
    for (char **line = lines; *line; line++) {
        bool ok = true;
        if (g_str_has_prefix(*line, "gpu ")) {
            gpu->name = g_strdup(*line + strlen("gpu "));
        } else if (g_str_has_prefix(*line, "fact ")) {
            take_fact(gpu, *line + strlen("fact "));
        } else if (g_str_has_prefix(*line, "product ")) {
            ok = take_product(gpu, *line);
        } else if (g_str_has_prefix(*line, "attention ")) {
            ok = take_attention(gpu, *line);
        } else {
            take_fact(gpu, *line);
        }
        if (!ok) {
            g_set_error(error, G_IO_ERROR, G_IO_ERROR_INVALID_DATA,
                        "foreshard-exec --costs said '%s', which is no line of its; is it of this "
                        "build?",
                        *line);
            return false;
        }
    }
    return true;
}

/* ---- fitting -------------------------------------------------------------------------------- */

/* Operations a ns (Gflop/s) of the fastest product. */
static double peak_in(const Gpu *gpu, PlanDtype dtype) {
    double best = 0;
    for (guint i = 0; i < gpu->products->len; i++) {
        const Product *p = &g_array_index(gpu->products, Product, i);
        if (p->dtype == dtype) {
            best = fmax(best, 2 * p->product.m * p->product.n * p->product.k / (p->us * 1e3));
        }
    }
    return best;
}

/* Products come after all that a file cannot do without, those of fp32 last. */
static bool has_enough(const Gpu *gpu, GError **error) {
    if (!gpu->name || !gpu->copy_gb_per_s || !gpu->timed_us || !(peak_in(gpu, PLAN_BF16) > 0) ||
        !(peak_in(gpu, PLAN_FP32) > 0)) {
        g_set_error_literal(error, G_IO_ERROR, G_IO_ERROR_INVALID_DATA,
                            "foreshard-exec --costs did not say everything of a GPU; is it of this "
                            "build?");
        return false;
    }
    return true;
}

static double misfit_of_products(gpointer data) {
    const Gpu *gpu = data;
    double sum = 0;
    unsigned n = 0;
    for (guint i = 0; i < gpu->products->len; i++) {
        const Product *p = &g_array_index(gpu->products, Product, i);
        if (p->dtype == PLAN_BF16) {
            double ns = sim_product_ns(gpu->cluster, &p->product);
            sum += climb_miss(ns, p->us * 1e3);
            n++;
        }
    }
    return sum / n;
}

static double misfit_of_attention(gpointer data) {
    const Gpu *gpu = data;
    double sum = 0;
    for (guint i = 0; i < gpu->attentions->len; i++) {
        const Attention *a = &g_array_index(gpu->attentions, Attention, i);
        sum += climb_miss(sim_attention_ns(gpu->cluster, &a->attention), a->us * 1e3);
    }
    return sum / gpu->attentions->len;
}

/* The best of several climbs, whose starts lie up to three times higher or lower. */
static void climb_often(ClimbKnob *knobs, unsigned n, double (*misfit)(gpointer data), Gpu *gpu) {
    g_autoptr(GRand) rand = g_rand_new_with_seed(2);
    double first[MOST_KNOBS], best[MOST_KNOBS], least = INFINITY;
    g_assert(n <= MOST_KNOBS);
    for (unsigned k = 0; k < n; k++) {
        best[k] = first[k] = knobs[k].start;
    }
    for (unsigned i = 0; i < gpu->climbs; i++) {
        double reached = climb(knobs, n, TRIES, misfit, gpu);
        for (unsigned k = 0; k < n; k++) {
            best[k] = reached < least ? *knobs[k].value : best[k];
            double start = first[k] * pow(3, g_rand_double_range(rand, -1, 1));
            knobs[k].start = CLAMP(start, knobs[k].least, knobs[k].most);
        }
        least = fmin(least, reached);
    }
    for (unsigned k = 0; k < n; k++) {
        *knobs[k].value = best[k];
    }
}

/* Within a large product the multiprocessors are faster than the whole of it is: the share of the
 * fastest product may then come out above 1, and all peaks rise to it. */
static void fit_products(Gpu *gpu) {
    ModelCluster *c = gpu->cluster;
    ClimbKnob knobs[] = {
        {"matmul_efficiency", &c->device_matmul_efficiency, 1, 0.05, 0.1, 2},
        {"start_us", &c->matmul_start_us, 4, 1, 0, 10},
        {"tile_us", &c->matmul_tile_us, 1, 0.3, 0, INFINITY},
        {"split_us", &c->matmul_split_us, 2, 0.5, 0, INFINITY},
        {"feed_gb_per_s", &c->matmul_feed_gb_per_s, 300, 50, 60, INFINITY},
    };
    double peak = peak_in(gpu, PLAN_BF16);
    for (guint i = 0; i < gpu->products->len; i++) {
        g_array_index(gpu->products, Product, i).product.peak_flops = peak * 1e9;
    }
    climb_often(knobs, G_N_ELEMENTS(knobs), misfit_of_products, gpu);
    double raise = fmax(1, c->device_matmul_efficiency);
    c->device_matmul_efficiency /= raise;
    c->device_matmul_bf16_tflops = peak * raise / 1e3;
    c->device_matmul_fp16_tflops = peak_in(gpu, PLAN_FP16) * raise / 1e3;
    c->device_matmul_fp32_tflops = peak_in(gpu, PLAN_FP32) * raise / 1e3;
}

static void fit_attention(Gpu *gpu) {
    ModelCluster *c = gpu->cluster;
    if (!gpu->attentions->len) {
        c->device_attention_efficiency = c->device_attention_backward_efficiency = NAN;
        c->attention_start_us = c->attention_tail_share = NAN;
        return;
    }
    ClimbKnob knobs[] = {
        {"attention_efficiency", &c->device_attention_efficiency, 0.5, 0.05, 0.01, 1},
        {"attention_backward_efficiency", &c->device_attention_backward_efficiency, 0.5, 0.05, 0.01,
         1},
        {"start_us", &c->attention_start_us, 10, 5, 0, INFINITY},
        {"tail_share", &c->attention_tail_share, 0.4, 0.2, 0, 1},
    };
    for (guint i = 0; i < gpu->attentions->len; i++) {
        g_array_index(gpu->attentions, Attention, i).attention.peak_flops =
            c->device_matmul_bf16_tflops * 1e12;
    }
    climb_often(knobs, G_N_ELEMENTS(knobs), misfit_of_attention, gpu);
}

/* Together, the kernels' share of what a copy reaches. */
static double share_of_copy(const CliSamples *samples, double copy_gb_per_s) {
    double bytes = 0, ns = 0;
    for (guint i = 0; i < samples->ops->len; i++) {
        const CliSample *s = &g_array_index(samples->ops, CliSample, i);
        if (plan_op_info(s->kind)->op_class == PLAN_CLASS_MEMORY && s->bytes >= LEAST_BYTES) {
            bytes += s->bytes;
            ns += s->ns;
        }
    }
    return ns > 0 ? fmin(1, bytes / ns / copy_gb_per_s) : 1;
}

static double less(double time, double part) {
    return fmax(time - part, time / 2);
}

/* What the simulator adds to every op, what lies between two kernels, is taken off here: products
 * and attention were timed one behind the other, with it, and ops between two events, with that and
 * the events' own. */
static void take_off_launches(Gpu *gpu, const CliSamples *samples) {
    for (guint i = 0; i < gpu->products->len; i++) {
        Product *p = &g_array_index(gpu->products, Product, i);
        p->us = less(p->us, gpu->lane_us);
    }
    for (guint i = 0; i < gpu->attentions->len; i++) {
        Attention *a = &g_array_index(gpu->attentions, Attention, i);
        a->us = less(a->us, gpu->lane_us);
    }
    for (guint i = 0; i < samples->ops->len; i++) {
        CliSample *s = &g_array_index(samples->ops, CliSample, i);
        s->ns = less(s->ns, gpu->timed_us * 1e3);
    }
}

static void fit(Gpu *gpu, const CliSamples *samples) {
    ModelCluster *c = gpu->cluster;
    c->device_sms = (uint64_t)gpu->sms;
    c->device_memory_bytes = (uint64_t)gpu->memory_bytes;
    c->device_outside_allocator_bytes = (uint64_t)gpu->outside_bytes; /* 0: not measured */
    c->device_memory_gb_per_s = gpu->copy_gb_per_s;
    c->device_memory_efficiency = share_of_copy(samples, gpu->copy_gb_per_s);
    c->device_host_link_gb_per_s = fmin(gpu->in_gb_per_s, gpu->out_gb_per_s);
    c->device_launch_overhead_ns = gpu->lane_us * 1e3;
    c->host_record_us = gpu->record_us;
    cli_calibrate_fit_kernels(samples, LEAST_BYTES, c);
    fit_products(gpu);
    fit_attention(gpu);
}

ModelCluster *cli_calibrate_fit_gpu(const CliSamples *samples, const char *costs, unsigned n,
                                    bool on_the_way, char **ret_name, GError **error) {
    g_autoptr(ModelCluster) cluster = g_new0(ModelCluster, 1);
    Gpu gpu = {.products = g_array_new(FALSE, FALSE, sizeof(Product)),
               .attentions = g_array_new(FALSE, FALSE, sizeof(Attention)),
               .climbs = on_the_way ? CLIMBS_ON_THE_WAY : CLIMBS,
               .cluster = cluster};
    bool ok = take_lines(&gpu, costs, error) && has_enough(&gpu, error) &&
              cli_calibrate_take_costs(costs, n, cluster, error);
    if (ok) {
        cluster->device_kind = MODEL_DEVICE_GPU;
        cluster->matmul_sustained = 1;
        CliSamples own = *samples;
        own.ops = g_array_copy(samples->ops);
        take_off_launches(&gpu, &own);
        fit(&gpu, &own);
        g_array_unref(own.ops);
        *ret_name = g_steal_pointer(&gpu.name);
    }
    g_array_unref(gpu.products);
    g_array_unref(gpu.attentions);
    g_free(gpu.name);
    return ok ? g_steal_pointer(&cluster) : NULL;
}
