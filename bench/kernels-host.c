/* bench/kernels-host.c - how fast each host kernel is on this machine, on one thread.
 *
 * Prints one line a kernel: its size, the time of the fastest of several calls, and either GB/s
 * (1e9 bytes; what the kernel must read and write at least once) or GFLOP/s (1e9 operations; a
 * multiply-add is two). Arrays are 16 MiB, past most caches, so that the first lines, plain copies,
 * are the roof for all memory-bound ones. With arguments, only kernels whose name contains one of
 * them.
 */
#include "kernels/host/activation.h"
#include "kernels/host/attention/attention.h"
#include "kernels/host/attention/rope.h"
#include "kernels/host/copy.h"
#include "kernels/host/elementwise.h"
#include "kernels/host/half.h"
#include "kernels/host/lists/optimizer.h"
#include "kernels/host/products/matmul.h"
#include "kernels/host/random.h"
#include "kernels/host/reduce.h"
#include "kernels/host/rows/embedding.h"
#include "kernels/host/rows/loss.h"
#include "kernels/host/rows/norm.h"
#include "kernels/host/runtime.h"
#include <glib.h>
#include <stdio.h>
#include <string.h>

#define N           ((size_t)4 << 20) /* elements of each large array */
#define WIDTH       ((size_t)1024)
#define ROWS        (N / WIDTH)
#define VOCAB       ((size_t)32768)
#define LEAST_US    50000 /* a kernel is called for at least so long */
#define LEAST_CALLS 3

typedef struct {
    char **wanted;            /* borrowed; NULL-terminated; empty for all */
    float *a, *b, *c, *d, *e; /* N elements each */
    float *mean, *rstd;       /* ROWS each */
    gint64 *index;            /* ROWS, below VOCAB */
} Bench;

static gboolean is_wanted(const Bench *bench, const char *name) {
    for (char **word = bench->wanted; *word != NULL; word++) {
        if (strstr(name, *word) != NULL) {
            return TRUE;
        }
    }
    return bench->wanted[0] == NULL;
}

static void report(const char *name, const char *size, double seconds, double amount,
                   const char *unit) {
    printf("%-26s %-22s %10.3f ms %9.2f %s\n", name, size, seconds * 1e3, amount / seconds / 1e9,
           unit);
}

/* Times the call and prints its line, to a microsecond: the shortest call takes hundreds. */
#define MEASURE(name, size, amount, unit, call)                                                    \
    do {                                                                                           \
        if (is_wanted(bench, name)) {                                                              \
            gint64 start = g_get_monotonic_time(), best = G_MAXINT64, now = start;                 \
            for (int calls = 0; calls < LEAST_CALLS || now - start < LEAST_US; calls++) {          \
                gint64 before = g_get_monotonic_time();                                            \
                call;                                                                              \
                now = g_get_monotonic_time();                                                      \
                best = MIN(best, MAX(now - before, 1));                                            \
            }                                                                                      \
            report(name, size, (double)best * 1e-6, amount, unit);                                 \
        }                                                                                          \
    } while (0)

#define BYTES(arrays) (4.0 * (arrays) * (double)N)

static void measure_copies(const Bench *bench) {
    const size_t row = WIDTH * 4;
    const size_t dense[4] = {N / 8, N / 64, 64, 1};
    const size_t swapped[4] = {N / 8, 64, 64 * 8, 1};
    const size_t size[4] = {8, 8, N / 64 / 64, 64};

    MEASURE("copy_bytes", "16 MiB", BYTES(2), "GB/s", kernel_copy_bytes(bench->c, bench->a, N * 4));
    MEASURE("zero", "16 MiB", BYTES(1), "GB/s", kernel_zero_f32(bench->c, N));
    MEASURE("copy_2d_bytes", "rows of 4 KiB, spread", BYTES(1), "GB/s",
            kernel_copy_2d_bytes(bench->c, 2 * row, bench->a, row, ROWS / 2, row));
    MEASURE("copy_4d", "heads of 64, swapped", BYTES(2), "GB/s",
            kernel_copy_4d_f32(bench->c, swapped, bench->a, dense, size));
}

static void measure_elementwise(const Bench *bench) {
    MEASURE("narrow to bf16", "4 Mi", BYTES(1.5), "GB/s",
            kernel_narrow_bf16((uint16_t *)bench->c, bench->a, N));
    MEASURE("widen from bf16", "4 Mi", BYTES(1.5), "GB/s",
            kernel_widen_bf16(bench->b, (uint16_t *)bench->c, N));
    MEASURE("narrow to fp16", "4 Mi", BYTES(1.5), "GB/s",
            kernel_narrow_f16((uint16_t *)bench->c, bench->a, N));
    MEASURE("widen from fp16", "4 Mi", BYTES(1.5), "GB/s",
            kernel_widen_f16(bench->d, (uint16_t *)bench->c, N));
    MEASURE("add", "4 Mi", BYTES(3), "GB/s", kernel_add_f32(bench->c, bench->a, bench->b, N));
    MEASURE("add_inplace", "4 Mi", BYTES(3), "GB/s", kernel_add_inplace_f32(bench->c, bench->a, N));
    MEASURE("mul", "4 Mi", BYTES(3), "GB/s", kernel_mul_f32(bench->c, bench->a, bench->b, N));
    MEASURE("scale", "4 Mi", BYTES(2), "GB/s", kernel_scale_f32(bench->c, bench->a, 0.5f, N));
    MEASURE("power 3", "4 Mi", BYTES(2), "GB/s", kernel_power_f32(bench->c, bench->a, 3, N));
    MEASURE("mul_rows", "4096 x 1024", BYTES(2), "GB/s",
            kernel_mul_rows_f32(bench->c, bench->a, bench->b, ROWS, WIDTH));
    MEASURE("mul_columns", "4096 x 1024", BYTES(2), "GB/s",
            kernel_mul_columns_f32(bench->c, bench->a, bench->b, ROWS, WIDTH));
    MEASURE("spread", "4096 x 1024", BYTES(1), "GB/s",
            kernel_spread_f32(bench->c, bench->b, 0.5f, ROWS, WIDTH));
    MEASURE("row_sum", "4096 x 1024", BYTES(1), "GB/s",
            kernel_row_sum_f32(bench->c, bench->a, 0.5f, ROWS, WIDTH));
    MEASURE("add_rows", "4096 x 1024", BYTES(2), "GB/s",
            kernel_add_rows_f32(bench->c, bench->a, bench->b, ROWS, WIDTH));
    MEASURE("gelu_tanh_forward", "4 Mi", BYTES(2), "GB/s",
            kernel_gelu_tanh_forward_f32(bench->c, bench->a, N));
    MEASURE("gelu_tanh_backward", "4 Mi", BYTES(3), "GB/s",
            kernel_gelu_tanh_backward_f32(bench->c, bench->b, bench->a, N));
    MEASURE("gelu_erf_forward", "4 Mi", BYTES(2), "GB/s",
            kernel_gelu_erf_forward_f32(bench->c, bench->a, N));
    MEASURE("gelu_erf_backward", "4 Mi", BYTES(3), "GB/s",
            kernel_gelu_erf_backward_f32(bench->c, bench->b, bench->a, N));
    MEASURE("silu_forward", "4 Mi", BYTES(2), "GB/s",
            kernel_silu_forward_f32(bench->c, bench->a, N));
    MEASURE("silu_backward", "4 Mi", BYTES(3), "GB/s",
            kernel_silu_backward_f32(bench->c, bench->b, bench->a, N));
    MEASURE("relu_forward", "4 Mi", BYTES(2), "GB/s",
            kernel_relu_forward_f32(bench->c, bench->a, N));
    MEASURE("threshold_backward", "4 Mi", BYTES(3), "GB/s",
            kernel_threshold_backward_f32(bench->c, bench->b, bench->a, 0.0f, N));
}

static void measure_rows(const Bench *bench) {
    float *dweight = bench->d, *dbias = bench->d + WIDTH, scalar[2];

    MEASURE("norm", "4 Mi", BYTES(1), "GB/s", kernel_norm_f32(scalar, bench->a, N));
    MEASURE("column_sum", "4096 x 1024", BYTES(1), "GB/s",
            kernel_column_sum_f32(bench->c, bench->a, ROWS, WIDTH));
    kernel_layernorm_forward_f32(bench->c, bench->mean, bench->rstd, bench->a, bench->b, bench->b,
                                 ROWS, WIDTH, 1e-5f);
    MEASURE("layernorm_forward", "4096 x 1024", BYTES(2), "GB/s",
            kernel_layernorm_forward_f32(bench->c, bench->mean, bench->rstd, bench->a, bench->b,
                                         bench->b, ROWS, WIDTH, 1e-5f));
    MEASURE("layernorm_backward", "4096 x 1024", BYTES(3), "GB/s",
            kernel_layernorm_backward_f32(bench->c, dweight, dbias, bench->b, bench->a, bench->mean,
                                          bench->rstd, bench->b, ROWS, WIDTH));
    MEASURE(
        "rmsnorm_forward", "4096 x 1024", BYTES(2), "GB/s",
        kernel_rmsnorm_forward_f32(bench->c, bench->rstd, bench->a, bench->b, ROWS, WIDTH, 1e-5f));
    MEASURE("rmsnorm_backward", "4096 x 1024", BYTES(3), "GB/s",
            kernel_rmsnorm_backward_f32(bench->c, dweight, bench->b, bench->a, bench->rstd,
                                        bench->b, ROWS, WIDTH));
    MEASURE("softmax_forward", "4096 x 1024", BYTES(2), "GB/s",
            kernel_softmax_forward_f32(bench->c, bench->a, ROWS, WIDTH));
    MEASURE("softmax_backward", "4096 x 1024", BYTES(3), "GB/s",
            kernel_softmax_backward_f32(bench->c, bench->b, bench->a, ROWS, WIDTH));
    MEASURE("log_softmax_forward", "128 x 32768", BYTES(2), "GB/s",
            kernel_log_softmax_forward_f32(bench->c, bench->a, N / VOCAB, VOCAB));
    MEASURE("log_softmax_backward", "128 x 32768", BYTES(3), "GB/s",
            kernel_log_softmax_backward_f32(bench->c, bench->b, bench->a, N / VOCAB, VOCAB));
    scalar[0] = 1.0f;
    scalar[1] = (float)(N / VOCAB);
    MEASURE("nll_loss_backward", "128 x 32768", BYTES(1), "GB/s",
            kernel_nll_loss_backward_f32(bench->c, scalar, bench->index, scalar + 1, N / VOCAB,
                                         VOCAB, -100));
    MEASURE(
        "embedding_forward", "2048 of 4096 x 1024", BYTES(1), "GB/s",
        kernel_embedding_forward_f32(bench->c, bench->a, bench->index, ROWS / 2, VOCAB / 8, WIDTH));
    MEASURE("embedding_backward", "2048 of 4096 x 1024", BYTES(2.5), "GB/s",
            kernel_embedding_backward_f32(bench->c, bench->a, bench->index, ROWS / 2, VOCAB / 8,
                                          WIDTH));
}

static void measure_optimizer(const Bench *bench) {
    const KernelAdam adam = {1e-3, 0.9, 0.999, 1e-8, 0.1, KERNEL_ADAM_DECOUPLED, 10};
    const KernelSgd sgd = {1e-3, 0.9, 0.1, 10};

    kernel_zero_f32(bench->c, N);
    kernel_zero_f32(bench->d, N);
    kernel_fill_f32(bench->e, 1.0f, N);
    MEASURE("adam", "4 Mi", BYTES(7), "GB/s",
            kernel_adam_f32(bench->c, bench->d, bench->e, bench->a, N, &adam));
    MEASURE("sgd momentum", "4 Mi", BYTES(5), "GB/s",
            kernel_sgd_f32(bench->c, bench->d, bench->a, N, &sgd));
    MEASURE("mul_scalar_inplace", "4 Mi", BYTES(2), "GB/s",
            kernel_mul_scalar_inplace_f32(bench->c, 0.999f, N));
    MEASURE("lerp_inplace", "4 Mi", BYTES(3), "GB/s",
            kernel_lerp_inplace_f32(bench->c, bench->a, 0.1f, N));
    MEASURE("addcmul_inplace", "4 Mi", BYTES(3), "GB/s",
            kernel_addcmul_inplace_f32(bench->c, bench->a, bench->a, 0.001f, N));
    MEASURE("sqrt", "4 Mi", BYTES(2), "GB/s", kernel_sqrt_f32(bench->c, bench->e, N));
    MEASURE("addcdiv_inplace", "4 Mi", BYTES(4), "GB/s",
            kernel_addcdiv_inplace_f32(bench->c, bench->a, bench->e, -0.001f, N));
    MEASURE("philox_normal", "4 Mi", BYTES(1), "GB/s",
            kernel_philox_normal_f32(bench->c, N, 1, 2, 0, 0.0f, 1.0f));
    MEASURE("philox_uniform", "4 Mi", BYTES(1), "GB/s",
            kernel_philox_uniform_f32(bench->c, N, 1, 2, 0, 0.0f, 1.0f));
    MEASURE("philox_uniform_i64", "2 Mi", BYTES(1), "GB/s",
            kernel_philox_uniform_i64((gint64 *)bench->c, N / 2, 50257, 1, 2, 0));
}

static void measure_products(const Bench *bench) {
    static const size_t sizes[][3] = {
        /* m, n, k of y[m, n] = x[m, k] w[n, k]^T */
        {1024, 1024, 1024},
        {512, 3072, 768},
        {512, 768, 3072},
    };

    for (size_t s = 0; s < G_N_ELEMENTS(sizes); s++) {
        size_t m = sizes[s][0], n = sizes[s][1], k = sizes[s][2];
        double work = 2.0 * (double)m * (double)n * (double)k;
        g_autofree char *size = g_strdup_printf("%zu x %zu x %zu", m, n, k);

        MEASURE("linear_forward", size, work, "GFLOP/s",
                kernel_linear_forward_f32(bench->c, bench->a, bench->b, bench->d, m, n, k));
        MEASURE("linear_backward_input", size, work, "GFLOP/s",
                kernel_linear_backward_input_f32(bench->c, bench->a, bench->b, m, n, k));
        MEASURE("linear_backward_weight", size, work, "GFLOP/s",
                kernel_linear_backward_weight_f32(bench->c, bench->a, bench->b, m, n, k));
    }
}

static void measure_attention(const Bench *bench) {
    for (int causal = 0; causal < 2; causal++) {
        const KernelAttentionShape shape = {1, 16, 16, 1024, 1024, 64, 0.125f, causal != 0};
        const size_t size = 1024 * 16 * 64;
        const double work = 4.0 * 16.0 * 1024.0 * 1024.0 * 64.0 * (causal != 0 ? 0.5 : 1.0);
        const char *what = causal != 0 ? "16 x 1024 x 64, causal" : "16 x 1024 x 64";
        KernelConstView q = kernel_const_view_bshd(bench->a, 1024, 16, 64);
        KernelConstView k = kernel_const_view_bshd(bench->a + size, 1024, 16, 64);
        KernelConstView v = kernel_const_view_bshd(bench->a + 2 * size, 1024, 16, 64);
        float *o = bench->c, *lse = bench->d;

        kernel_attention_forward_f32(o, lse, 1024, q, k, v, NULL, &shape);
        MEASURE("attention_forward", what, work, "GFLOP/s",
                kernel_attention_forward_f32(o, lse, 1024, q, k, v, NULL, &shape));
        MEASURE("attention_backward", what, 2.5 * work, "GFLOP/s",
                kernel_attention_backward_f32(kernel_view_bshd(bench->e, 1024, 16, 64),
                                              kernel_view_bshd(bench->e + size, 1024, 16, 64),
                                              kernel_view_bshd(bench->e + 2 * size, 1024, 16, 64),
                                              NULL, bench->b, q, k, v, NULL, o, lse, 1024, &shape));
    }
    kernel_rope_tables_f32(bench->d, bench->d + 65536, 1024, 64, 10000.0, 0);
    MEASURE("rope_forward", "4 x 1024 x 16 x 64", BYTES(2), "GB/s",
            kernel_rope_forward_f32(kernel_view_bshd(bench->c, 1024, 16, 64),
                                    kernel_const_view_bshd(bench->a, 1024, 16, 64), bench->d,
                                    bench->d + 65536, 4, 16, 1024, 64));
}

/* transfer full: g_free(). Written once, so that no page is touched for the first time later. */
static float *new_array(guint64 stream) {
    float *array = g_new(float, N);

    kernel_philox_normal_f32(array, N, 1, stream, 0, 0.0f, 1.0f);
    return array;
}

int main(int argc, char **argv) {
    g_autofree float *a = new_array(1), *b = new_array(2), *c = new_array(3);
    g_autofree float *d = new_array(4), *e = new_array(5);
    g_autofree float *mean = g_new0(float, ROWS), *rstd = g_new0(float, ROWS);
    g_autofree gint64 *index = g_new(gint64, ROWS);
    Bench bench = {argv + MIN(argc, 1), a, b, c, d, e, mean, rstd, index};

    kernel_philox_uniform_i64(index, ROWS, (gint64)VOCAB / 8, 1, 6, 0);
    kernel_set_threads(1);
    printf("vector loops: %s; BLAS: %s; one thread\n", kernel_isa_name(), kernel_blas_name());
    measure_copies(&bench);
    measure_elementwise(&bench);
    measure_rows(&bench);
    measure_optimizer(&bench);
    measure_products(&bench);
    measure_attention(&bench);
    return 0;
}
