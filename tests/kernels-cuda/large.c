/* tests/kernels-cuda/large.c - arrays of more than 2^32 elements: places that a number of 32 bits
 * would not count.
 *
 * What each kernel does is simple enough that any element is known by its index; looked at are the
 * first and last elements and those around 2^31 and 2^32. It takes 26 GB of a GPU; where there is
 * less, and on the emulated one, the same is done in small, which tries the test itself.
 */
#include <math.h>
#include <stdio.h>

#include "kernels/cuda/attention/columns.h"
#include "kernels/cuda/attention/heads.h"
#include "kernels/cuda/attention/rope.h"
#include "kernels/cuda/copy.h"
#include "kernels/cuda/elementwise.h"
#include "kernels/cuda/experts/experts.h"
#include "kernels/cuda/experts/latent.h"
#include "kernels/cuda/lists/optimizer.h"
#include "kernels/cuda/products/grouped.h"
#include "kernels/cuda/random.h"
#include "kernels/cuda/ranks/shared-loss.h"
#include "kernels/cuda/reduce.h"
#include "kernels/cuda/rows/embedding.h"
#include "kernels/cuda/rows/loss.h"
#include "kernels/cuda/rows/norm.h"
#include "kernels/cuda/traced/tensor.h"
#include "kernels/host/half.h"
#include "kernels/host/random.h"
#include "tests/kernels-cuda/device.h"

enum {
    LOOK = 64, /* elements at each place */
    WIDTH = 4096,
};

static size_t rows; /* of WIDTH; their product is the size of all arrays */

static size_t elements(void) {
    return rows * WIDTH;
}

/* Where LOOK elements are looked at. */
static GArray *places(void) {
    GArray *all = g_array_new(FALSE, FALSE, sizeof(size_t));
    const size_t around[] = {LOOK / 2, (size_t)1 << 31, (size_t)1 << 32, elements() - LOOK / 2};
    for (size_t i = 0; i < G_N_ELEMENTS(around); i++) {
        size_t first = around[i] - LOOK / 2;
        if (first + LOOK <= elements()) {
            g_array_append_val(all, first);
        }
    }
    return all;
}

/* Number i of an array of bf16; of all arrays here. */
typedef float (*Number)(size_t i);

static void check(const char *what, const void *array, Number number) {
    g_autoptr(GArray) all = places();
    DeviceCase c = {KERNEL_CUDA_BF16, 0, 1.0 / 256};
    for (guint p = 0; p < all->len; p++) {
        size_t first = g_array_index(all, size_t, p);
        float want[LOOK];
        for (size_t i = 0; i < LOOK; i++) {
            want[i] = number(first + i);
        }
        device_close(what, &c, (const char *)array + 2 * first, want, LOOK, 0, 1e-6);
    }
}

static const KernelCudaRandom stream = {1, 7, 0};

static float uniform(size_t i) {
    float x;
    kernel_philox_uniform_f32(&x, 1, stream.seed, stream.stream_id, i, 0.5f, 1);
    return x;
}

static float rounded(float x) {
    uint16_t stored;
    kernel_narrow_bf16(&stored, &x, 1);
    kernel_widen_bf16(&x, &stored, 1);
    return x;
}

static float doubled(size_t i) {
    return 2 * rounded(uniform(i));
}

static float thrice(size_t i) {
    return 3 * rounded(uniform(i));
}

/* Row r of the table is r mod 256 in all its columns; positions go through the table backwards. */
static float row_number(size_t i) {
    return (float)((rows - 1 - i / WIDTH) % 256);
}

static void *new_array(void) {
    return device_new_bytes(2 * elements());
}

static void test_elements(void) {
    void *x = new_array(), *y = new_array();
    KernelCudaType type = KERNEL_CUDA_BF16;
    DEVICE_OK(kernel_cuda_philox_uniform(device_lane, x, elements(), stream, 0.5f, 1, type));
    check("uniform", x, uniform);
    DEVICE_OK(kernel_cuda_scale(device_lane, y, type, x, type, elements(), 2));
    check("scale", y, doubled);
    DEVICE_OK(kernel_cuda_add(device_lane, y, x, y, elements(), elements(), type));
    check("add", y, thrice);
    KernelCudaPiece piece = {.to = y,
                             .from = x,
                             .rows = rows,
                             .width = WIDTH,
                             .to_stride = WIDTH,
                             .from_stride = WIDTH,
                             .to_type = type,
                             .from_type = type};
    DEVICE_OK(kernel_cuda_copy_pieces(device_lane, &piece, 1));
    check("copy", y, uniform);
}

static float two_and_a_half(size_t i) {
    return 2.5f;
}

/* A sum of all elements, and of the columns of a matrix of as many. */
static void test_sums(void) {
    void *x = new_array();
    float *sum = device_new_bytes(WIDTH * sizeof(float));
    float want = (float)(2.5 * sqrt((double)elements()));
    DEVICE_OK(kernel_cuda_fill(device_lane, x, elements(), 2.5, KERNEL_CUDA_BF16));
    check("fill", x, two_and_a_half);
    DEVICE_OK(kernel_cuda_norm(device_lane, sum, KERNEL_CUDA_F32, x, elements(), KERNEL_CUDA_BF16));
    device_close_floats("norm", sum, &want, 1, 1e-5, 0);
    g_autofree float *columns = g_new(float, WIDTH);
    DeviceCase c = {KERNEL_CUDA_BF16, 0, 1.0 / 256};
    for (size_t i = 0; i < WIDTH; i++) {
        columns[i] = 2.5f * (float)rows;
    }
    DEVICE_OK(kernel_cuda_column_sum(device_lane, sum, x, rows, WIDTH, KERNEL_CUDA_BF16));
    device_close("column sum", &c, sum, columns, WIDTH, 1e-5, 0);
}

static float minus_and_plus_one(size_t i) {
    return i % 2 ? 1 : -1;
}

/* Rows of norms and of logits: half of each row's numbers are 0, half 4. */
static void test_rows(void) {
    void *x = new_array(), *y = new_array();
    float *mean = device_new_bytes(rows * sizeof(float)),
          *rstd = device_new_bytes(rows * sizeof(float));
    KernelCudaNorm norm = {rows, WIDTH, 0, KERNEL_CUDA_BF16};
    KernelCudaPiece columns = {.to = x,
                               .from = NULL,
                               .rows = elements() / 2,
                               .width = 1,
                               .to_stride = 2,
                               .from_stride = 2,
                               .to_type = KERNEL_CUDA_BF16,
                               .from_type = KERNEL_CUDA_BF16};
    DEVICE_OK(kernel_cuda_fill(device_lane, x, elements(), 4, KERNEL_CUDA_BF16));
    DEVICE_OK(kernel_cuda_copy_pieces(device_lane, &columns, 1)); /* 0 4 0 4 ... */
    DEVICE_OK(kernel_cuda_layernorm_forward(device_lane, NULL, y, mean, rstd, x, NULL, NULL, NULL,
                                            &norm));
    check("layer norm", y, minus_and_plus_one);
    g_autofree gint64 *target = g_new0(gint64, rows);
    float *lse = mean, want = logf(WIDTH / 2) + log1pf(expf(-4)) + 4; /* of its target, a 0 */
    void *loss = device_new_bytes(64), *total = device_new_bytes(64);
    DEVICE_OK(kernel_cuda_cross_entropy_forward(device_lane, loss, total, lse, x,
                                                device_put_i64(target, rows), rows, WIDTH,
                                                KERNEL_CUDA_BF16));
    DeviceCase c = {KERNEL_CUDA_BF16, 0, 1.0 / 256};
    device_close("cross entropy", &c, loss, &want, 1, 1e-3, 0);
    g_autofree float *all = g_new(float, rows);
    for (size_t i = 0; i < rows; i++) {
        all[i] = want;
    }
    device_close_floats("logsumexp", lse, all, rows, 1e-5, 0);
}

/* A table of more than 2^31 numbers, whose rows are looked up from the last to the first. */
static void test_table(void) {
    void *table = new_array(), *out = new_array();
    g_autofree float *first = g_new(float, rows);
    g_autofree gint64 *index = g_new(gint64, rows);
    for (size_t i = 0; i < rows; i++) {
        first[i] = (float)(i % 256);
        index[i] = (gint64)(rows - 1 - i);
    }
    DeviceCase c = {KERNEL_CUDA_BF16, 0, 0};
    DEVICE_OK(kernel_cuda_spread(device_lane, table, device_put(&c, first, rows), rows, WIDTH, 1,
                                 KERNEL_CUDA_BF16));
    gint64 *at = device_put_i64(index, rows);
    DEVICE_OK(kernel_cuda_embedding_forward(device_lane, out, table, at, rows, rows, WIDTH,
                                            KERNEL_CUDA_BF16));
    check("embedding", out, row_number);
    /* Each row once: its gradient is the one row that was looked up there. */
    DEVICE_OK(kernel_cuda_embedding_backward(device_lane, table, out, at, rows, rows, WIDTH,
                                             KERNEL_CUDA_BF16));
    DEVICE_OK(kernel_cuda_embedding_forward(device_lane, out, table, at, rows, rows, WIDTH,
                                            KERNEL_CUDA_BF16));
    check("embedding backward", out, row_number);
}

enum {
    EXPERTS = 4,
    NARROW = 32,
};

/* As many for each, and what is left for the last. */
static size_t expert_of_row(size_t row) {
    return MIN(row / (rows / EXPERTS), EXPERTS - 1);
}

static float one_more_than_expert(size_t i) {
    return (float)(expert_of_row(i / WIDTH) + 1);
}

/* Each expert's matrix is full of its number, from 1 on, times a factor. */
static void fill_experts(char *w, double factor) {
    size_t each = (size_t)NARROW * WIDTH;
    for (size_t e = 0; e < EXPERTS; e++) {
        DEVICE_OK(kernel_cuda_fill(device_lane, w + 2 * e * each, each, factor * (double)(e + 1),
                                   KERNEL_CUDA_BF16));
    }
}

/* Rows of 32 numbers become ones of 4096 and these again ones of 32; all sums are exact. */
static void test_experts(void) {
    size_t of_w = (size_t)EXPERTS * NARROW * WIDTH;
    char *x = new_array(), *w = device_new_bytes(2 * of_w), *dw = device_new_bytes(2 * of_w);
    char *narrow = device_new_bytes(2 * rows * NARROW), *y = device_new_bytes(2 * rows * NARROW);
    gint32 ends[EXPERTS], *at;
    KernelCudaType type = KERNEL_CUDA_BF16;
    DeviceCase c = {type, 0, 1.0 / 256};
    for (size_t e = 0; e < EXPERTS; e++) {
        ends[e] = (gint32)(e + 1 < EXPERTS ? (e + 1) * (rows / EXPERTS) : rows);
    }
    at = device_put_bytes(ends, sizeof ends);
    DEVICE_OK(kernel_cuda_fill(device_lane, narrow, rows * NARROW, 1.0 / NARROW, type));
    fill_experts(w, 1);
    DEVICE_OK(kernel_cuda_grouped_linear_backward_input(device_lane, x, narrow, w, at, rows, NARROW,
                                                        WIDTH, EXPERTS, type));
    check("dx by expert", x, one_more_than_expert);
    DEVICE_OK(kernel_cuda_grouped_linear_backward_weight(device_lane, dw, narrow, x, at, rows,
                                                         NARROW, WIDTH, EXPERTS, type));
    g_autofree float *want = g_new(float, of_w);
    for (size_t i = 0; i < of_w; i++) {
        size_t e = i / (NARROW * WIDTH), n = (size_t)(ends[e] - (e ? ends[e - 1] : 0));
        want[i] = (float)(n * (e + 1)) / NARROW;
    }
    device_close("dw by expert", &c, dw, want, of_w, 1e-5, 0);
    fill_experts(w, 1.0 / WIDTH);
    DEVICE_OK(kernel_cuda_grouped_linear_forward(device_lane, y, x, w, at, rows, NARROW, WIDTH,
                                                 EXPERTS, type));
    for (size_t i = 0; i < LOOK; i++) {
        want[i] = EXPERTS * EXPERTS;
    }
    device_close("y by expert", &c, y + 2 * (rows * NARROW - LOOK), want, LOOK, 0, 1e-6);
}

static float after_sgd(size_t i) {
    return 2.5f - 0.5f * rounded(uniform(i));
}

/* One flat shard. */
static void test_shard(void) {
    void *gradient = new_array(), *parameter = new_array();
    void *lists[] = {gradient, parameter};
    size_t n = elements();
    KernelCudaType type = KERNEL_CUDA_BF16;
    KernelCudaTensors tensors = {
        .n = 1, .data = {&lists[0], &lists[1]}, .types = {&type, &type}, .elements = &n};
    KernelCudaSgd sgd = {.lr = 0.5};
    DEVICE_OK(kernel_cuda_fill(device_lane, parameter, n, 2.5, type));
    DEVICE_OK(kernel_cuda_philox_uniform(device_lane, gradient, n, stream, 0.5f, 1, type));
    DEVICE_OK(kernel_cuda_sgd(device_lane, &tensors, &sgd));
    check("sgd", parameter, after_sgd);
}

/* ---- heads of tokens ------------------------------------------------------------------------- */

enum {
    HEAD_DIM = 128,
    HEADS = WIDTH / HEAD_DIM,
};

/* What lies [rows, heads, dim], head by head. */
static float by_head(size_t i) {
    size_t head = i / HEAD_DIM / rows, row = i / HEAD_DIM % rows;
    return rounded(uniform((row * HEADS + head) * HEAD_DIM + i % HEAD_DIM));
}

/* Each of WIDTH columns added up: of numbers that are all 2.5. */
static void sum_all(void *x) {
    float *sums = device_new_bytes(WIDTH * sizeof(float));
    g_autofree float *want = g_new(float, WIDTH);
    KernelTensor all = {x, KERNEL_BF16, 2, {rows, WIDTH}, {WIDTH, 1}};
    KernelTensor columns = {sums, KERNEL_FP32, 1, {WIDTH}, {1}};
    for (size_t i = 0; i < WIDTH; i++) {
        want[i] = 2.5f * (float)rows;
    }
    DEVICE_OK(kernel_cuda_fill(device_lane, x, elements(), 2.5, KERNEL_CUDA_BF16));
    DEVICE_OK(kernel_cuda_tensor_sum(device_lane, &columns, &all, 1, 1));
    device_close_floats("sum of rows", sums, want, WIDTH, 1e-6, 0);
}

/* Where indices are counted in 32 bits as long as that suffices. */
static void test_heads(void) {
    void *x = new_array(), *y = new_array(), *tables = device_new_bytes(4 * HEAD_DIM);
    char *sines = (char *)tables + 2 * HEAD_DIM;
    KernelCudaType type = KERNEL_CUDA_BF16;
    KernelCudaHeads heads = {1, rows, HEADS, HEAD_DIM, type};
    KernelCudaRope still = {rows, HEADS, HEAD_DIM, 1, WIDTH, type, type};
    KernelTensor by_rows = {x, KERNEL_BF16, 3, {HEADS, rows, HEAD_DIM}, {HEAD_DIM, WIDTH, 1}};
    KernelTensor by_heads = {
        y, KERNEL_BF16, 3, {HEADS, rows, HEAD_DIM}, {rows * HEAD_DIM, HEAD_DIM, 1}};
    DEVICE_OK(kernel_cuda_philox_uniform(device_lane, x, elements(), stream, 0.5f, 1, type));
    DEVICE_OK(kernel_cuda_heads_copy(device_lane, y, x, &heads, WIDTH, false));
    check("heads apart", y, by_head);
    DEVICE_OK(kernel_cuda_fill(device_lane, y, elements(), 0, type));
    DEVICE_OK(
        kernel_cuda_tensor_each(device_lane, KERNEL_EACH_COPY, &by_heads, &by_rows, NULL, 1, 0, 0));
    check("a tensor turned", y, by_head);
    DEVICE_OK(kernel_cuda_fill(device_lane, tables, HEAD_DIM, 1, type));
    DEVICE_OK(kernel_cuda_fill(device_lane, sines, HEAD_DIM, 0, type));
    DEVICE_OK(kernel_cuda_rope(device_lane, y, x, tables, sines, &still, false));
    check("heads turned by nothing", y, uniform);
    DEVICE_OK(kernel_cuda_copy_columns(device_lane, y, type, x, type, rows, WIDTH, WIDTH, 0));
    check("columns", y, uniform);
    sum_all(y);
}

/* ---- more blocks than a launch has ----------------------------------------------------------- */

/* More than 2^32 blocks are refused: what 32 bits leave of their number is one, and would be done.
 * There is room for its rows alone. */
static void test_too_many_rows(void) {
    enum {
        BLOCK_ROWS = 256, /* at most */
        ROOM = 4096,
    };
    size_t n = ((size_t)1 << 32) * BLOCK_ROWS + 1;
    KernelCuda *k = device_lane;
    float *x = device_new_floats(ROOM);
    int64_t *index = device_new_bytes(ROOM * sizeof *index);
    KernelCudaType type = KERNEL_CUDA_F32;
    KernelCudaNorm norm = {n, 1, 1e-5f, type}, whole = {n, 4, 1e-5f, type};
    KernelCudaNorm columns = {n, 2, 1e-5f, type, 4};
    KernelTensor kept = {x, KERNEL_FP32, 2, {n, 1}, {1, 1}}, sums = {x, KERNEL_FP32, 1, {n}, {1}};
    const KernelCudaFault faults[] = {
        kernel_cuda_softmax_forward(k, x, x, n, 1, type),
        kernel_cuda_softmax_backward(k, x, x, x, n, 1, type),
        kernel_cuda_nll_loss_backward(k, x, x, index, x, n, 1, type),
        kernel_cuda_cross_entropy_backward(k, x, x, x, index, x, x, n, 1, type),
        kernel_cuda_layernorm_forward(k, NULL, x, x, x, x, NULL, x, x, &norm),
        kernel_cuda_rmsnorm_forward(k, NULL, x, x, x, NULL, x, &whole),
        kernel_cuda_rmsnorm_backward(k, x, NULL, NULL, x, x, x, x, &norm),
        kernel_cuda_rmsnorm_forward(k, NULL, x, x, x, NULL, x, &columns),
        kernel_cuda_row_sum(k, x, x, n, 1, 1, type),
        kernel_cuda_row_max(k, x, x, n, 1, type),
        kernel_cuda_embedding_forward(k, x, x, index, n, 1, 64, type),
        kernel_cuda_top_k(k, x, index, x, n, 1, 1, type),
        kernel_cuda_largest(k, x, x, n, 1, type),
        kernel_cuda_sum_of_exps(k, x, x, x, n, 1, type),
        kernel_cuda_add_softmax(k, x, x, x, x, x, n, 1, type),
        kernel_cuda_scale_counted(k, x, x, (const uint8_t *)x, x, x, n, 1, type),
        kernel_cuda_tensor_sum(k, &sums, &kept, 2, 1),
    };
    for (size_t i = 0; i < G_N_ELEMENTS(faults); i++) {
        if (!faults[i]) {
            g_test_message("call %zu of more rows than a launch has blocks is not refused", i);
            g_test_fail();
        }
    }
}

/* More than 2^32 elements, where two arrays of them fit and leave half as much again. */
static size_t rows_that_fit(void) {
    size_t free_bytes = 0, total_bytes = 0, wanted = ((size_t)1 << 32) / WIDTH + 3;
#ifdef KERNEL_EMULATED
    return 5;
#endif
    return cudaMemGetInfo(&free_bytes, &total_bytes) == cudaSuccess &&
                   free_bytes >= 6 * wanted * WIDTH
               ? wanted
               : 5;
}

static void add_tests(void) {
    rows = rows_that_fit();
    printf("# arrays of %zu bf16\n", elements());
    DEVICE_TEST_ONCE("/kernels-cuda/large/elements", test_elements);
    DEVICE_TEST_ONCE("/kernels-cuda/large/sums", test_sums);
    DEVICE_TEST_ONCE("/kernels-cuda/large/rows", test_rows);
    DEVICE_TEST_ONCE("/kernels-cuda/large/table", test_table);
    DEVICE_TEST_ONCE("/kernels-cuda/large/experts", test_experts);
    DEVICE_TEST_ONCE("/kernels-cuda/large/shard", test_shard);
    DEVICE_TEST_ONCE("/kernels-cuda/large/heads", test_heads);
    DEVICE_TEST_ONCE("/kernels-cuda/large/too-many-rows", test_too_many_rows);
}

int main(int argc, char **argv) {
    return device_main(argc, argv, add_tests);
}
