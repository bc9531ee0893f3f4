/* bench/kernels-cuda.c - how fast each CUDA kernel is on the GPU at hand.
 *
 * Prints one line a kernel, as it comes: the median time of several runs between two CUDA events,
 * and either GB/s (1e9 bytes; what the kernel must read and write at least once) beside the share
 * of a measured copy, or TFLOP/s (1e12 operations; a multiply-add is two) beside the share of a
 * measured product of 8192 cubed. Arrays are 256 MiB of bf16 (optimizer: fp32), past every cache.
 * With arguments, only kernels whose name contains one of them. On the emulated GPU all is smaller,
 * and its times mean nothing: there it is gone through.
 */
#include <glib.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kernels/cuda/activation.h"
#include "kernels/cuda/attention/attention.h"
#include "kernels/cuda/attention/heads.h"
#include "kernels/cuda/attention/rope.h"
#include "kernels/cuda/copy.h"
#include "kernels/cuda/elementwise.h"
#include "kernels/cuda/experts/experts.h"
#include "kernels/cuda/lists/optimizer.h"
#include "kernels/cuda/products/four-bit.h"
#include "kernels/cuda/products/grouped.h"
#include "kernels/cuda/products/matmul.h"
#include "kernels/cuda/products/mxfp8.h"
#include "kernels/cuda/products/turned.h"
#include "kernels/cuda/random.h"
#include "kernels/cuda/ranks/ring.h"
#include "kernels/cuda/reduce.h"
#include "kernels/cuda/rows/embedding.h"
#include "kernels/cuda/rows/loss.h"
#include "kernels/cuda/rows/norm.h"
#include "kernels/cuda/traced/tensor.h"

#ifdef KERNEL_EMULATED
#include "tests/emulator/emulator.h"
#define SIZE(real, small) (small)
#else
#define SIZE(real, small) (real)
#endif

enum {
    WIDTH = SIZE(4096, 256),
    ROWS = SIZE(32768, 512),
    HEAD_DIM = 128,
    VOCAB = SIZE(50257, 501),
    TOKENS = SIZE(2048, 128), /* rows of logits */
    RUNS = SIZE(11, 2),
    CALLS = 4, /* between two events, of kernels that memory bounds: they take as long as events */
    CUBE = SIZE(8192, 64),
    WARM_UP_US = SIZE(500000, 1000),
    MASKED = SIZE(1 << 20, 1 << 10), /* numbers of a mask */
    NO_DEVICE = 77,
};
#define N    ((size_t)ROWS * WIDTH)
#define TYPE KERNEL_CUDA_BF16
#define HALF 2.0 /* bytes of an element */

typedef struct {
    char **wanted; /* borrowed; NULL-terminated; empty for all */
    KernelCuda *lane;
    cudaStream_t stream;
    cudaEvent_t start, end;
    double copy_bytes_per_s, product_flops;
    void *a, *b, *c, *d;                        /* N bf16 each */
    float *param, *grad, *exp_avg, *exp_avg_sq; /* N / 4 floats each */
    float *mean, *rstd;                         /* N / 64; N / HEAD_DIM */
    gint64 *index;                              /* ROWS below VOCAB */
    guint8 *mask;                               /* N */
} Bench;

static void cuda_ok(const char *call, cudaError_t error) {
    if (error != cudaSuccess) {
        g_error("%s: %s", call, cudaGetErrorString(error));
    }
}
#define CUDA_OK(call) cuda_ok(#call, call)

static void ok(KernelCudaFault fault) {
    if (fault) {
        g_error("%s", fault);
    }
}

static gboolean is_wanted(const Bench *bench, const char *name) {
    for (char **word = bench->wanted; *word; word++) {
        if (strstr(name, *word)) {
            return TRUE;
        }
    }
    return !bench->wanted[0];
}

static int compare(const void *a, const void *b) {
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* Seconds; `times` holds RUNS of them in ms. */
static double median(float *times) {
    qsort(times, RUNS, sizeof *times, compare);
    return (double)times[RUNS / 2] * 1e-3;
}

/* Seconds of the call, the median of RUNS times `calls` of them, after one that is not counted. */
#define TIME(ret_seconds, calls, call)                                                             \
    do {                                                                                           \
        float times[RUNS];                                                                         \
        ok(call);                                                                                  \
        for (int run = 0; run < RUNS; run++) {                                                     \
            CUDA_OK(cudaEventRecord(bench->start, bench->stream));                                 \
            for (int again = 0; again < (calls); again++) {                                        \
                ok(call);                                                                          \
            }                                                                                      \
            CUDA_OK(cudaEventRecord(bench->end, bench->stream));                                   \
            CUDA_OK(cudaEventSynchronize(bench->end));                                             \
            CUDA_OK(cudaEventElapsedTime(&times[run], bench->start, bench->end));                  \
        }                                                                                          \
        ret_seconds = median(times) / (calls);                                                     \
    } while (0)

static void report_bytes(const Bench *bench, const char *name, double bytes, double seconds) {
    printf("%-26s %10.3f ms %9.1f GB/s %6.1f %% of the copy\n", name, seconds * 1e3,
           bytes / seconds / 1e9, 100 * bytes / seconds / bench->copy_bytes_per_s);
}

static void report_flops(const Bench *bench, const char *name, double flops, double seconds) {
    printf("%-26s %10.3f ms %9.1f TFLOP/s %6.1f %% of the product of 8192 cubed\n", name,
           seconds * 1e3, flops / seconds / 1e12, 100 * flops / seconds / bench->product_flops);
}

#define MEASURE(name, report, calls, amount, call)                                                 \
    do {                                                                                           \
        if (is_wanted(bench, name)) {                                                              \
            double seconds;                                                                        \
            TIME(seconds, calls, call);                                                            \
            report(bench, name, amount, seconds);                                                  \
        }                                                                                          \
    } while (0)
#define BYTES(name, bytes, call) MEASURE(name, report_bytes, CALLS, bytes, call)
#define FLOPS(name, flops, call) MEASURE(name, report_flops, 1, flops, call)

/* ---- roofs ---------------------------------------------------------------------------------- */

static KernelCudaFault copy(Bench *bench) {
    CUDA_OK(cudaMemcpyAsync(bench->b, bench->a, N * 2, cudaMemcpyDeviceToDevice, bench->stream));
    return NULL;
}

/* A GPU at rest has a low clock (an H200 345 of 1980 MHz), and takes some time to leave it; roofs
 * that are measured on the way would be low, and shares of them high. */
static void warm_up(Bench *bench) {
    size_t k = CUBE;
    for (gint64 until = g_get_monotonic_time() + WARM_UP_US; g_get_monotonic_time() < until;) {
        ok(kernel_cuda_linear_forward(bench->lane, bench->c, bench->a, bench->b, NULL, k, k, k,
                                      TYPE));
        CUDA_OK(cudaStreamSynchronize(bench->stream));
    }
}

static void measure_roofs(Bench *bench) {
    double seconds;
    size_t k = CUBE;
    TIME(seconds, CALLS, copy(bench));
    bench->copy_bytes_per_s = 2 * HALF * (double)N / seconds;
    TIME(
        seconds, 1,
        kernel_cuda_linear_forward(bench->lane, bench->c, bench->a, bench->b, NULL, k, k, k, TYPE));
    bench->product_flops = 2.0 * (double)k * (double)k * (double)k / seconds;
    printf("copy of 256 MiB: %.1f GB/s; product of 8192 cubed, bf16: %.1f TFLOP/s\n",
           bench->copy_bytes_per_s / 1e9, bench->product_flops / 1e12);
}

/* ---- memory --------------------------------------------------------------------------------- */

static void measure_elements(Bench *bench) {
    KernelCuda *lane = bench->lane;
    double n = (double)N;
    KernelCudaRandom random = {1, 2, 0};
    BYTES("add", 3 * HALF * n, kernel_cuda_add(lane, bench->c, bench->a, bench->b, N, N, TYPE));
    BYTES("scale", 2 * HALF * n, kernel_cuda_scale(lane, bench->c, TYPE, bench->a, TYPE, N, 0.5));
    /* Two bf16 side by side are some float. */
    BYTES("cast fp32 to bf16", 6 * n / 2,
          kernel_cuda_cast(lane, bench->c, TYPE, bench->a, KERNEL_CUDA_F32, N / 2));
    BYTES("cast bf16 to fp32", 6 * n / 2,
          kernel_cuda_cast(lane, bench->c, KERNEL_CUDA_F32, bench->a, TYPE, N / 2));
    BYTES("gelu_tanh", 2 * HALF * n,
          kernel_cuda_activation_forward(lane, bench->c, bench->a, N, KERNEL_CUDA_GELU_TANH, TYPE));
    BYTES("gelu_tanh_backward", 3 * HALF * n,
          kernel_cuda_activation_backward(lane, bench->c, bench->b, bench->a, N,
                                          KERNEL_CUDA_GELU_TANH, TYPE));
    BYTES("swiglu", 3 * HALF * n,
          kernel_cuda_swiglu_forward(lane, bench->c, bench->a, bench->b, N, TYPE));
    BYTES(
        "dropout", 2 * HALF * n + n,
        kernel_cuda_dropout_forward(lane, bench->c, bench->mask, bench->a, N, 0.1f, random, TYPE));
    BYTES("dropout_backward", 2 * HALF * n + n,
          kernel_cuda_dropout_backward(lane, bench->c, bench->a, bench->mask, N, 0.1f, TYPE));
}

static void measure_rows(Bench *bench) {
    KernelCuda *lane = bench->lane;
    KernelCudaNorm norm = {ROWS, WIDTH, 1e-5f, TYPE};
    KernelCudaNorm heads = {N / HEAD_DIM, HEAD_DIM, 1e-5f, TYPE};
    double n = (double)N, logits = (double)TOKENS * VOCAB;
    void *a = bench->a, *b = bench->b, *c = bench->c, *d = bench->d;
    BYTES("layernorm", 2 * HALF * n,
          kernel_cuda_layernorm_forward(lane, NULL, c, bench->mean, bench->rstd, a, NULL, b, b,
                                        &norm));
    BYTES("add_layernorm", 4 * HALF * n,
          kernel_cuda_layernorm_forward(lane, d, c, bench->mean, bench->rstd, a, b, b, b, &norm));
    BYTES("layernorm_backward", 3 * HALF * n,
          kernel_cuda_layernorm_backward(lane, c, d, d, NULL, a, b, bench->mean, bench->rstd, b,
                                         &norm));
    BYTES("row_sum", HALF * n, kernel_cuda_row_sum(lane, c, a, ROWS, WIDTH, 0.5, TYPE));
    BYTES("mul_row", 2 * HALF * n, kernel_cuda_mul_row(lane, c, a, b, ROWS, WIDTH, TYPE, TYPE));
    BYTES("mul_column", 2 * HALF * n, kernel_cuda_mul_column(lane, c, a, b, ROWS, WIDTH, TYPE));
    BYTES("spread", HALF * n, kernel_cuda_spread(lane, c, b, ROWS, WIDTH, 0.5, TYPE));
    BYTES("power 2", 2 * HALF * n, kernel_cuda_number(lane, c, a, N, KERNEL_CUDA_POWER, 2, TYPE));
    BYTES("rmsnorm", 2 * HALF * n,
          kernel_cuda_rmsnorm_forward(lane, NULL, c, bench->rstd, a, NULL, b, &norm));
    BYTES("rmsnorm_backward", 3 * HALF * n,
          kernel_cuda_rmsnorm_backward(lane, c, d, NULL, a, b, bench->rstd, b, &norm));
    BYTES("rmsnorm of heads", 2 * HALF * n,
          kernel_cuda_rmsnorm_forward(lane, NULL, c, bench->rstd, a, NULL, b, &heads));
    BYTES("rmsnorm_backward of heads", 3 * HALF * n,
          kernel_cuda_rmsnorm_backward(lane, c, d, NULL, a, b, bench->rstd, b, &heads));
    BYTES("softmax", 2 * HALF * n, kernel_cuda_softmax_forward(lane, c, a, ROWS, WIDTH, TYPE));
    BYTES("softmax_backward", 3 * HALF * n,
          kernel_cuda_softmax_backward(lane, c, a, b, ROWS, WIDTH, TYPE));
    BYTES("cross_entropy", HALF * logits,
          kernel_cuda_cross_entropy_forward(lane, c, d, bench->mean, a, bench->index, TOKENS, VOCAB,
                                            TYPE));
    BYTES("cross_entropy_backward", 2 * HALF * logits,
          kernel_cuda_cross_entropy_backward(lane, c, c, a, bench->index, a, bench->mean, TOKENS,
                                             VOCAB, TYPE));
    BYTES("column_sum", HALF * n, kernel_cuda_column_sum(lane, c, a, ROWS, WIDTH, TYPE));
    BYTES("norm", HALF * n, kernel_cuda_norm(lane, c, TYPE, a, N, TYPE));
}

static void measure_places(Bench *bench) {
    KernelCuda *lane = bench->lane;
    double n = (double)N, table = (double)VOCAB * WIDTH / 2;
    KernelCudaRope rope = {ROWS, WIDTH / 128, 128, 4096, WIDTH, TYPE, TYPE};
    KernelCudaHeads heads = {8, ROWS / 8, WIDTH / 128, 128, TYPE};
    KernelCudaPiece piece = {bench->c, bench->a, 8, N / 16, N / 16, N / 8, TYPE, TYPE};
    BYTES("embedding", 2 * HALF * n / 2,
          kernel_cuda_embedding_forward(lane, bench->c, bench->a, bench->index, ROWS / 2 * 2, VOCAB,
                                        WIDTH / 2, TYPE));
    BYTES("embedding_backward", HALF * (n / 2 + table),
          kernel_cuda_embedding_backward(lane, bench->c, bench->a, bench->index, ROWS, VOCAB,
                                         WIDTH / 2, TYPE));
    BYTES("rope", 2 * HALF * n,
          kernel_cuda_rope(lane, bench->c, bench->a, bench->b, bench->d, &rope, false));
    BYTES("negate_half", HALF * n,
          kernel_cuda_negate_half(lane, bench->c, bench->a, N / HEAD_DIM, HEAD_DIM / 2,
                                  HEAD_DIM / 2, WIDTH / HEAD_DIM, WIDTH, TYPE));
    BYTES("join_halves", 2 * HALF * n,
          kernel_cuda_join_halves(lane, bench->c, bench->b, bench->a, N / HEAD_DIM, HEAD_DIM / 2,
                                  WIDTH / HEAD_DIM, WIDTH, TYPE));
    BYTES("table_mul", 2 * HALF * n,
          kernel_cuda_table_mul(lane, bench->c, bench->a, bench->b, &rope, false));
    BYTES("heads_copy", 2 * HALF * n,
          kernel_cuda_heads_copy(lane, bench->c, bench->a, &heads, WIDTH, false));
    BYTES("masked_fill", 2 * HALF * n,
          kernel_cuda_masked_fill(lane, bench->c, bench->a, bench->mask, N / MASKED, MASKED, 1,
                                  -INFINITY, TYPE));
    BYTES("bias_add", 2.25 * HALF * n,
          kernel_cuda_bias_add(lane, bench->c, bench->a, TYPE, bench->b, 4, 32, N / 128, TYPE));
    BYTES("copy_pieces", HALF * n, kernel_cuda_copy_pieces(lane, &piece, 1));
    KernelCudaPiece odd = {bench->c, bench->a, ROWS, WIDTH - 1, WIDTH, WIDTH - 1, TYPE, TYPE};
    BYTES("copy_pieces, odd rows", 2 * HALF * n, kernel_cuda_copy_pieces(lane, &odd, 1));
}

/* A turn of a ring: half of the rows of heads merged, and gradients added up in fp32. */
static void measure_ring(Bench *bench) {
    KernelCuda *lane = bench->lane;
    size_t heads = WIDTH / HEAD_DIM, part = N / 4, numbers = N / HEAD_DIM;
    KernelCudaMerge merge = {1, ROWS, heads, HEAD_DIM, ROWS / 2, TYPE, TYPE, TYPE};
    KernelCudaRows sum = {bench->param, KERNEL_CUDA_F32, 1, 0, 1};
    KernelCudaRows terms[] = {sum, {bench->a, TYPE, 1, 0, 1}};
    BYTES("merge_turn", (2.5 * N) * HALF + 2.5 * numbers * sizeof(float),
          kernel_cuda_merge_turn(lane, bench->c, bench->mean + numbers, bench->a, bench->rstd,
                                 bench->b, bench->mean, &merge));
    BYTES("sum_of_rows", (double)part * (2 * sizeof(float) + HALF),
          kernel_cuda_sum_of_rows(lane, &sum, terms, 2, false, false, 1, part));
}

/* As a traced network has them: dense, with heads exchanged, summed over tokens. */
static void measure_tensors(Bench *bench) {
    KernelCuda *lane = bench->lane;
    size_t heads = WIDTH / HEAD_DIM;
    KernelTensor y = {.data = bench->c,
                      .dtype = KERNEL_BF16,
                      .n_dims = 3,
                      .sizes = {heads, ROWS, HEAD_DIM},
                      .strides = {(size_t)ROWS * HEAD_DIM, HEAD_DIM, 1}};
    KernelTensor both[] = {y, y}, turned = y, sums = {bench->mean, KERNEL_FP32, 1, {WIDTH}, {1}};
    both[0].data = bench->a, both[1].data = bench->b;
    turned.data = bench->a;
    turned.strides[0] = HEAD_DIM, turned.strides[1] = WIDTH;
    KernelTensor rows = {bench->a, KERNEL_BF16, 2, {ROWS, WIDTH}, {WIDTH, 1}};
    BYTES("tensor_each, add", 3 * HALF * N,
          kernel_cuda_tensor_each(lane, KERNEL_EACH_ADD, &y, both, NULL, 2, 1, 0));
    BYTES("tensor_each, heads turned", 2 * HALF * N,
          kernel_cuda_tensor_each(lane, KERNEL_EACH_COPY, &y, &turned, NULL, 1, 0, 0));
    BYTES("tensor_sum, rows", HALF * N, kernel_cuda_tensor_sum(lane, &sums, &rows, 1, 1));
    BYTES("tensor_sum, all", HALF * N,
          kernel_cuda_tensor_sum(lane, &(KernelTensor){bench->mean, KERNEL_FP32, 0, {0}, {0}},
                                 &rows, 3, 1));
}

static void measure_optimizer(Bench *bench) {
    size_t elements = N / 4;
    double n = (double)elements;
    void *lists[4] = {bench->grad, bench->param, bench->exp_avg, bench->exp_avg_sq};
    KernelCudaType type = KERNEL_CUDA_F32;
    KernelCudaTensors tensors = {.n = 1,
                                 .data = {&lists[0], &lists[1], &lists[2], &lists[3]},
                                 .types = {&type, &type, &type, &type},
                                 .elements = &elements};
    KernelCudaAdam adam = {1e-3, 0.9, 0.999, 1e-8, 0.1, true, 10};
    BYTES("adam (fused, fp32)", 28 * n, kernel_cuda_adam(bench->lane, &tensors, NULL, &adam));
    BYTES("foreach lerp (fp32)", 12 * n,
          kernel_cuda_foreach(bench->lane, &tensors, KERNEL_CUDA_EACH_LERP, 0.1f));
    BYTES("norms (fp32)", 4 * n, kernel_cuda_norms(bench->lane, &tensors));
    BYTES("largest of each (fp32)", 4 * n, kernel_cuda_largest_of_each(bench->lane, &tensors));
}

/* ---- arithmetic ----------------------------------------------------------------------------- */

/* By a kernel each, as epilogues do them in one: what an epilogue costs is the difference. */
static KernelCudaFault dx_gelu_apart(Bench *bench, size_t m, size_t n, size_t k) {
    KernelCudaFault fault =
        kernel_cuda_linear_backward_input(bench->lane, bench->c, bench->a, bench->b, m, n, k, TYPE);
    if (!fault) {
        fault = kernel_cuda_activation_backward(bench->lane, bench->c, bench->c, bench->d, m * k,
                                                KERNEL_CUDA_GELU_TANH, TYPE);
    }
    return fault ? fault : kernel_cuda_column_sum(bench->lane, bench->mean, bench->c, m, k, TYPE);
}

static KernelCudaFault dw_db_apart(Bench *bench, size_t m, size_t n, size_t k) {
    KernelCudaFault fault = kernel_cuda_linear_backward_weight(bench->lane, bench->c, bench->a,
                                                               bench->b, m, n, k, TYPE);
    return fault ? fault : kernel_cuda_column_sum(bench->lane, bench->mean, bench->a, m, n, TYPE);
}

/* The three products of a linear layer whose rows are odd, as they lie: what the way round them
 * (matmul.cu) saves is the difference. */
static void measure_odd_products(Bench *bench, size_t m, size_t n, size_t k) {
    KernelCuda *lane = bench->lane;
    double work = 2.0 * (double)m * (double)n * (double)k;
    KernelCudaMatrices x = {bench->a, 0, 0, k, false}, w = {bench->b, 0, 0, k, true};
    KernelCudaMatrices y = {bench->c, 0, 0, n, false}, dx = {bench->d, 0, 0, k, false};
    FLOPS("linear, as it lies", work, kernel_cuda_heads_matmul(lane, y, x, w, 1, 1, m, n, k, TYPE));
    w.transposed = false;
    FLOPS("linear_dx, as it lies", work,
          kernel_cuda_heads_matmul(lane, dx, y, w, 1, 1, m, k, n, TYPE));
    y.transposed = true;
    FLOPS("linear_dw, as it lies", work,
          kernel_cuda_heads_matmul(lane, dx, y, x, 1, 1, n, k, m, TYPE));
}

static void measure_products(Bench *bench) {
    static const size_t shapes[][3] = {{SIZE(8192, 64), SIZE(12288, 96), SIZE(4096, 32)},
                                       {SIZE(8192, 64), SIZE(4096, 32), SIZE(14336, 112)},
                                       {SIZE(4096, 32), SIZE(6400, 56), SIZE(1600, 16)},
                                       {SIZE(2048, 16), SIZE(50257, 397), SIZE(1600, 16)},
                                       {SIZE(512, 4), SIZE(4096, 32), SIZE(4096, 32)}};
    KernelCuda *lane = bench->lane;
    for (size_t s = 0; s < G_N_ELEMENTS(shapes); s++) {
        size_t m = shapes[s][0], n = shapes[s][1], k = shapes[s][2];
        double work = 2.0 * (double)m * (double)n * (double)k;
        printf("%zu x %zu x %zu\n", m, n, k);
        FLOPS("linear", work,
              kernel_cuda_linear_forward(lane, bench->c, bench->a, bench->b, bench->d, m, n, k,
                                         TYPE));
        FLOPS("linear_gelu", work,
              kernel_cuda_linear_gelu_forward(lane, bench->c, bench->mask, bench->a, bench->b,
                                              bench->d, m, n, k, KERNEL_CUDA_GELU_TANH, TYPE));
        FLOPS("linear_dx", work,
              kernel_cuda_linear_backward_input(lane, bench->c, bench->a, bench->b, m, n, k, TYPE));
        FLOPS(
            "linear_dw", work,
            kernel_cuda_linear_backward_weight(lane, bench->c, bench->a, bench->b, m, n, k, TYPE));
        FLOPS("linear_dx, gelu, db apart", work, dx_gelu_apart(bench, m, n, k));
        FLOPS("linear_dx_gelu", work,
              kernel_cuda_linear_gelu_backward_input(lane, bench->c, bench->mean, bench->a,
                                                     bench->b, bench->d, m, n, k, TYPE));
        FLOPS("linear_dw, db apart", work, dw_db_apart(bench, m, n, k));
        FLOPS("linear_dw_db", work,
              kernel_cuda_linear_backward_weight_bias(lane, bench->c, bench->mean, bench->a,
                                                      bench->b, m, n, k, TYPE));
        if (n % 8) {
            measure_odd_products(bench, m, n, k);
        }
    }
}

static void measure_four_bits(Bench *bench) {
    KernelCuda *lane = bench->lane;
    BYTES("weights in 4 bits made", (HALF + 0.5 + 4.0 / KERNEL_FOUR_BIT_BLOCK) * N,
          kernel_cuda_quantize_4bit(lane, (guint8 *)bench->c, bench->mean, bench->a, N,
                                    KERNEL_FOUR_BIT_NF4, TYPE));
    BYTES("weights in 4 bits, as bf16", (HALF + 0.5 + 4.0 / KERNEL_FOUR_BIT_BLOCK) * N,
          kernel_cuda_dequantize_4bit(lane, bench->b, (guint8 *)bench->c, bench->mean, N,
                                      KERNEL_FOUR_BIT_NF4, TYPE));
}

/* Where the GPU multiplies them; against the same product in bf16 above. */
static void measure_float8(Bench *bench) {
    enum {
        M = SIZE(8192, 64),
        OUT = SIZE(14336, 112),
        IN = SIZE(4096, 32)
    };
    KernelCuda *lane = bench->lane;
    KernelCudaFloat8Source x = {.x = bench->a, .rows = M, .cols = IN, .type = TYPE};
    KernelCudaFloat8Factor a = {(guint8 *)bench->c, bench->mean, KERNEL_CUDA_E4M3};
    KernelCudaFloat8Factor b = {(guint8 *)bench->d, bench->mean, KERNEL_CUDA_E4M3};
    guint8 *turned = (guint8 *)bench->d;
    KernelCudaFloat8Scale scale = {bench->mean, KERNEL_CUDA_SCALE_F32};
    KernelCudaFloat8Scale largest = {bench->mean, KERNEL_CUDA_SCALE_BF16};
    double n = (double)M * IN, work = 2 * n * OUT;
    printf("float8, %d x %d\n", M, IN);
    BYTES("float8 scale", HALF * n,
          kernel_cuda_float8_scale(lane, scale, &x, KERNEL_CUDA_WHOLE, 448));
    BYTES("float8 scales of rows", HALF * n,
          kernel_cuda_float8_scale(lane, scale, &x, KERNEL_CUDA_EACH_ROW, 448));
    BYTES("float8 scales of columns", HALF * n,
          kernel_cuda_float8_scale(lane, scale, &x, KERNEL_CUDA_EACH_COLUMN, 448));
    BYTES("float8 cast", (HALF + 1) * n,
          kernel_cuda_float8_cast(lane, (guint8 *)bench->c, NULL, &x, scale, KERNEL_CUDA_WHOLE,
                                  KERNEL_CUDA_E4M3));
    BYTES("float8 cast, by largest of rows", (HALF + 1) * n,
          kernel_cuda_float8_cast(lane, (guint8 *)bench->c, NULL, &x, largest, KERNEL_CUDA_EACH_ROW,
                                  KERNEL_CUDA_E4M3));
    BYTES("float8 cast, turned too", (HALF + 2) * n,
          kernel_cuda_float8_cast(lane, (guint8 *)bench->c, turned, &x, scale, KERNEL_CUDA_WHOLE,
                                  KERNEL_CUDA_E4M3));
    BYTES("mxfp8 cast", (HALF + 1) * n,
          kernel_cuda_mxfp8_cast(lane, (guint8 *)bench->c, turned, bench->a, M, IN, false, TYPE));
    BYTES("mxfp8 cast, columns", (HALF + 1) * n,
          kernel_cuda_mxfp8_cast(lane, (guint8 *)bench->c, turned, bench->a, M, IN, true, TYPE));
    BYTES("float8 step, bounded", 8 * n / 2,
          kernel_cuda_float8_step(lane, bench->c, KERNEL_CUDA_SCALE_F32, bench->a,
                                  KERNEL_CUDA_SCALE_F32, (size_t)M * IN / 2,
                                  KERNEL_CUDA_FLOAT8_BOUND, 448, NULL));
    BYTES("sides exchanged, bytes", 2 * n,
          kernel_cuda_exchange_sides(lane, bench->c, bench->a, M, IN, 1));
    BYTES("sides exchanged, bf16", 2 * HALF * n,
          kernel_cuda_exchange_sides(lane, bench->c, bench->a, M, IN, 2));
    FLOPS("float8 linear", work,
          kernel_cuda_float8_product(lane, bench->b, a, b, M, OUT, IN, true, TYPE));
    BYTES("float8 unscale", 2 * HALF * n,
          kernel_cuda_float8_unscale(lane, bench->a, scale, scale, M, IN, TYPE));
}

/* Eight of 64 experts for each of 8192 tokens, chosen by numbers that are all alike. */
enum {
    EXPERTS = SIZE(64, 8),
    CHOSEN = SIZE(8, 2),
    ROUTED = SIZE(8192, 256),
    PAIRS = ROUTED * CHOSEN,
    EXPERT_WIDTH = SIZE(2048, 256), /* PAIRS rows of it are N */
    EXPERT_FFN = SIZE(768, 48),
    FEW = SIZE(8, 2), /* experts whose matrices, of WIDTH squared, are N together */
};

typedef struct {
    gint64 *chosen, *counts, *sorted, *order, *tokens;
    gint32 *ends;
} Routing;

static Routing route(Bench *bench) {
    Routing r;
    KernelCuda *lane = bench->lane;
    gint64 **arrays[] = {&r.chosen, &r.counts, &r.sorted, &r.order, &r.tokens};
    for (size_t i = 0; i < G_N_ELEMENTS(arrays); i++) {
        CUDA_OK(cudaMalloc((void **)arrays[i], PAIRS * sizeof(gint64)));
    }
    CUDA_OK(cudaMalloc((void **)&r.ends, EXPERTS * sizeof(gint32)));
    ok(kernel_cuda_top_k(lane, bench->c, r.chosen, bench->a, ROUTED, EXPERTS, CHOSEN, TYPE));
    ok(kernel_cuda_count(lane, r.counts, r.chosen, PAIRS, EXPERTS));
    ok(kernel_cuda_sort(lane, r.sorted, r.order, r.chosen, PAIRS, EXPERTS));
    ok(kernel_cuda_ends(lane, r.ends, r.counts, EXPERTS));
    ok(kernel_cuda_divide_down_i64(lane, r.tokens, r.order, PAIRS, CHOSEN));
    return r;
}

static void measure_grouped(Bench *bench, const gint32 *ends, size_t m, size_t n, size_t k,
                            size_t groups) {
    KernelCuda *lane = bench->lane;
    double work = 2.0 * (double)m * (double)n * (double)k;
    printf("%zu x %zu x %zu by %zu experts\n", m, n, k, groups);
    FLOPS("linear, of one expert", work,
          kernel_cuda_linear_forward(lane, bench->c, bench->a, bench->b, NULL, m, n, k, TYPE));
    FLOPS("grouped_linear", work,
          kernel_cuda_grouped_linear_forward(lane, bench->c, bench->a, bench->b, ends, m, n, k,
                                             groups, TYPE));
    FLOPS("grouped_linear_dx", work,
          kernel_cuda_grouped_linear_backward_input(lane, bench->c, bench->a, bench->b, ends, m, n,
                                                    k, groups, TYPE));
    FLOPS("grouped_linear_dw", work,
          kernel_cuda_grouped_linear_backward_weight(lane, bench->c, bench->a, bench->b, ends, m, n,
                                                     k, groups, TYPE));
}

static void measure_experts(Bench *bench) {
    KernelCuda *lane = bench->lane;
    Routing r = route(bench);
    double pair = HALF * EXPERT_WIDTH;
    BYTES("top_k", ROUTED * (EXPERTS * HALF + CHOSEN * (HALF + 8.0)),
          kernel_cuda_top_k(lane, bench->c, r.chosen, bench->a, ROUTED, EXPERTS, CHOSEN, TYPE));
    BYTES("count", PAIRS * 8.0, kernel_cuda_count(lane, r.counts, r.chosen, PAIRS, EXPERTS));
    BYTES("sort", PAIRS * 24.0,
          kernel_cuda_sort(lane, r.sorted, r.order, r.chosen, PAIRS, EXPERTS));
    BYTES("rows_of", (PAIRS + ROUTED) * pair,
          kernel_cuda_embedding_forward(lane, bench->c, bench->a, r.tokens, PAIRS, ROUTED,
                                        EXPERT_WIDTH, TYPE));
    BYTES("add_to_rows", (PAIRS + 2 * ROUTED) * pair,
          kernel_cuda_add_to_rows(lane, bench->c, bench->b, bench->a, r.tokens, PAIRS, ROUTED,
                                  EXPERT_WIDTH, TYPE));
    measure_grouped(bench, r.ends, PAIRS, EXPERT_FFN, EXPERT_WIDTH, EXPERTS);
    gint32 few[FEW];
    for (gint32 g = 0; g < FEW; g++) {
        few[g] = (g + 1) * (ROWS / FEW);
    }
    CUDA_OK(cudaMemcpy(r.ends, few, sizeof few, cudaMemcpyHostToDevice));
    CUDA_OK(cudaDeviceSynchronize()); /* the copy alone does not promise that the stream finds it */
    measure_grouped(bench, r.ends, ROWS, WIDTH, WIDTH, FEW); /* all of a, b and c */
}

static void measure_attention(Bench *bench) {
    KernelCuda *lane = bench->lane;
    for (int own = 0; own < 2; own++) {
        for (int causal = 0; causal < 2; causal++) {
            size_t seq = SIZE(2048, 16), heads = SIZE(32, 4), dim = SIZE(128, 32);
            size_t row = heads * dim, part = 4 * seq * row;
            KernelCudaAttention shape = {4,   heads, heads, seq,   dim,    row,
                                         row, row,   seq,   0.09f, causal, TYPE};
            char *q = bench->a, *k = q + 2 * part, *v = bench->b, *o = v + 2 * part;
            char *dq = bench->c, *dk = dq + 2 * part, *dv = bench->d, *d_o = dv + 2 * part;
            double work = 4.0 * 4 * (double)(heads * dim) * (double)seq * (double)seq;
            work *= causal ? 0.5 : 1;
            kernel_cuda_attention_own_only(lane, own);
            bool cudnn = kernel_cuda_attention_way(lane, &shape) == KERNEL_CUDA_ATTENTION_CUDNN;
            printf("attention, 4 x 2048 x 32 x 128%s, %s\n", causal ? ", causal" : "",
                   cudnn ? "cuDNN" : "own kernels");
            FLOPS("attention", work,
                  kernel_cuda_attention_forward(lane, o, bench->mean, q, k, v, NULL, &shape));
            FLOPS("attention_backward", 2.5 * work,
                  kernel_cuda_attention_backward(lane, dq, dk, dv, NULL, d_o, q, k, v, NULL, o,
                                                 bench->mean, &shape));
        }
    }
}

/* ---- setting up ----------------------------------------------------------------------------- */

static void *new_array(const Bench *bench, size_t n, KernelCudaType type, uint64_t stream_id) {
    void *array;
    CUDA_OK(cudaMalloc(&array, n * kernel_cuda_type_bytes(type)));
    ok(kernel_cuda_philox_uniform(bench->lane, array, n, (KernelCudaRandom){1, stream_id, 0}, 0.1f,
                                  1, type));
    return array;
}

static void new_tokens(Bench *bench) {
    g_autoptr(GRand) rand = g_rand_new_with_seed(11);
    gint64 tokens[ROWS];
    for (size_t i = 0; i < ROWS; i++) {
        tokens[i] = g_rand_int_range(rand, 0, VOCAB);
    }
    CUDA_OK(cudaMalloc((void **)&bench->index, sizeof tokens));
    CUDA_OK(cudaMemcpy(bench->index, tokens, sizeof tokens, cudaMemcpyHostToDevice));
}

static void set_up(Bench *bench) {
    CUDA_OK(cudaStreamCreateWithFlags(&bench->stream, cudaStreamNonBlocking));
    CUDA_OK(cudaEventCreate(&bench->start));
    CUDA_OK(cudaEventCreate(&bench->end));
    ok(kernel_cuda_new(&bench->lane, bench->stream, KERNEL_CUDA_TF32));
    void **halves[] = {&bench->a, &bench->b, &bench->c, &bench->d};
    float **floats[] = {&bench->param, &bench->grad, &bench->exp_avg, &bench->exp_avg_sq};
    for (size_t i = 0; i < 4; i++) {
        *halves[i] = new_array(bench, N, TYPE, i);
        *floats[i] = new_array(bench, N / 4, KERNEL_CUDA_F32, 4 + i);
    }
    bench->mean = new_array(bench, N / 64, KERNEL_CUDA_F32, 8); /* logsumexps too */
    bench->rstd = new_array(bench, N / HEAD_DIM, KERNEL_CUDA_F32, 9);
    bench->mask = new_array(bench, N, KERNEL_CUDA_BF16, 10); /* also what went into GELU */
    new_tokens(bench);
}

int main(int argc, char **argv) {
    struct cudaDeviceProp device;
    Bench bench = {.wanted = argv + MIN(argc, 1)};
    int count = 0;
    cudaError_t status = cudaGetDeviceCount(&count);
    setvbuf(stdout, NULL, _IOLBF, 0); /* what was measured is kept if the time ends */
    if (status != cudaSuccess || !count) {
        printf("no GPU: nothing measured (%s)\n", cudaGetErrorString(status));
        return NO_DEVICE;
    }
    CUDA_OK(cudaGetDeviceProperties(&device, 0));
    set_up(&bench);
    printf("%s, %d multiprocessors; %s\n", device.name, device.multiProcessorCount,
           kernel_cuda_libraries());
    warm_up(&bench);
    measure_roofs(&bench);
    measure_elements(&bench); /* first what is to reach a copy's speed */
    measure_rows(&bench);
    measure_optimizer(&bench);
    measure_places(&bench);
    measure_ring(&bench);
    measure_tensors(&bench);
    measure_four_bits(&bench);
    measure_products(&bench);
    measure_experts(&bench);
    measure_attention(&bench);
    if (10 * device.major + device.minor >= 89) {
        measure_float8(&bench);
    }
#ifdef KERNEL_EMULATED
    emulator_check();
#endif
    return 0; /* the process's end frees the rest */
}
