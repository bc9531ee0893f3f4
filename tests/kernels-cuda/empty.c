/* tests/kernels-cuda/empty.c - sizes of zero: nothing is launched that a GPU would refuse, nothing
 * is written, and a sum of nothing is 0. */
#include <math.h>

#include "kernels/cuda/activation.h"
#include "kernels/cuda/attention/attention.h"
#include "kernels/cuda/attention/columns.h"
#include "kernels/cuda/attention/heads.h"
#include "kernels/cuda/attention/rope.h"
#include "kernels/cuda/copy.h"
#include "kernels/cuda/elementwise.h"
#include "kernels/cuda/experts/experts.h"
#include "kernels/cuda/lists/optimizer.h"
#include "kernels/cuda/products/grouped.h"
#include "kernels/cuda/products/matmul.h"
#include "kernels/cuda/products/mxfp8.h"
#include "kernels/cuda/random.h"
#include "kernels/cuda/ranks/shared.h"
#include "kernels/cuda/reduce.h"
#include "kernels/cuda/rows/embedding.h"
#include "kernels/cuda/rows/loss.h"
#include "kernels/cuda/rows/norm.h"
#include "tests/kernels-cuda/device.h"

enum {
    SOME = 24 /* elements of each array */
};

typedef struct {
    void *out[3];
    const void *in;
    float *floats;
    gint64 *index;
    guint8 *bytes;
} Arrays;

static Arrays new_arrays(const DeviceCase *c) {
    g_autofree float *x = device_random(c, SOME, -1, 1, 1);
    gint64 index[SOME] = {0};
    return (Arrays){.out = {device_new(c, SOME), device_new(c, SOME), device_new(c, SOME)},
                    .in = device_put(c, x, SOME),
                    .floats = device_new_floats(SOME),
                    .index = device_put_i64(index, SOME),
                    .bytes = device_new_bytes(SOME)};
}

static void check_untouched(const DeviceCase *c, const Arrays *a) {
    float nothing[SOME];
    for (unsigned i = 0; i < SOME; i++) {
        nothing[i] = NAN;
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(a->out); i++) {
        device_close("an output", c, a->out[i], nothing, SOME, 0, 0);
    }
    device_close_floats("statistics", a->floats, nothing, SOME, 0, 0);
}

static void test_elements(const DeviceCase *c) {
    Arrays a = new_arrays(c);
    KernelCudaType t = c->type;
    KernelCuda *l = device_lane;
    KernelCudaRandom random = {1, 2, 3};
    KernelCudaPiece piece = {a.out[0], a.in, 0, SOME, SOME, SOME, t, t}, narrow = piece;
    void *const *lists = a.out;
    size_t none = 0;
    KernelCudaTensors tensors = {1, {lists, lists}, {&t, &t}, &none};
    narrow.rows = SOME, narrow.width = 0;
    DEVICE_OK(kernel_cuda_fill(l, a.out[0], 0, 1, t));
    DEVICE_OK(kernel_cuda_add(l, a.out[0], a.in, a.in, 0, 0, t));
    DEVICE_OK(kernel_cuda_add(l, a.out[0], a.in, a.in, 0, SOME, t));
    DEVICE_OK(kernel_cuda_mul(l, a.out[0], a.in, a.in, 0, t));
    DEVICE_OK(kernel_cuda_add_scaled(l, a.out[0], a.in, a.in, 0, 2, t));
    DEVICE_OK(kernel_cuda_add_row(l, a.out[0], a.in, a.in, 0, SOME, t, t));
    DEVICE_OK(kernel_cuda_mul_row(l, a.out[0], a.in, a.in, 0, SOME, t, t));
    DEVICE_OK(kernel_cuda_mul_row(l, a.out[0], a.in, a.in, SOME, 0, t, t));
    DEVICE_OK(kernel_cuda_mul_column(l, a.out[0], a.in, a.in, SOME, 0, t));
    for (unsigned turned = 0; turned < 2; turned++) {
        DEVICE_OK(kernel_cuda_mxfp8_cast(l, a.out[0], a.out[1], a.in, 0, 32, turned, t));
        DEVICE_OK(kernel_cuda_mxfp8_cast(l, a.out[0], a.out[1], a.in, 32, 0, turned, t));
    }
    DEVICE_OK(kernel_cuda_mxfp8_order(l, a.out[0], a.in, 0, 4));
    DEVICE_OK(kernel_cuda_spread(l, a.out[0], a.in, 0, SOME, 1, t));
    DEVICE_OK(kernel_cuda_divide_column(l, a.out[0], a.in, a.in, 0, SOME, t));
    DEVICE_OK(kernel_cuda_divide(l, a.out[0], a.in, a.in, 0, t));
    DEVICE_OK(kernel_cuda_exp(l, a.out[0], a.in, 0, t));
    DEVICE_OK(kernel_cuda_keep_counted(l, a.bytes, a.out[0], a.in, a.index, 0, true, t));
    DEVICE_OK(kernel_cuda_picked_gradient(l, a.out[0], a.out[1], a.bytes, 0, t));
    DEVICE_OK(kernel_cuda_scale(l, a.out[0], t, a.in, t, 0, 2));
    DEVICE_OK(kernel_cuda_cast(l, a.out[0], t, a.in, t, 0));
    DEVICE_OK(kernel_cuda_accumulate(l, a.out[0], t, a.in, t, 0));
    DEVICE_OK(kernel_cuda_number(l, a.out[0], a.in, 0, KERNEL_CUDA_POWER, 2.5, t));
    DEVICE_OK(kernel_cuda_activation_forward(l, a.out[0], a.in, 0, KERNEL_CUDA_SILU, t));
    DEVICE_OK(kernel_cuda_activation_backward(l, a.out[0], a.in, a.in, 0, KERNEL_CUDA_SILU, t));
    DEVICE_OK(kernel_cuda_swiglu_backward(l, a.out[0], a.out[1], a.in, a.in, a.in, 0, t));
    DEVICE_OK(kernel_cuda_philox_normal(l, a.out[0], 0, random, 0, 1, t));
    DEVICE_OK(kernel_cuda_dropout_forward(l, a.out[0], a.bytes, a.in, 0, 0.5f, random, t));
    DEVICE_OK(kernel_cuda_dropout_backward(l, a.out[0], a.in, a.bytes, 0, 0.5f, t));
    DEVICE_OK(kernel_cuda_copy_pieces(l, &piece, 1));
    DEVICE_OK(kernel_cuda_copy_pieces(l, &narrow, 1));
    DEVICE_OK(kernel_cuda_copy_pieces(l, NULL, 0));
    DEVICE_OK(kernel_cuda_foreach(l, &tensors, KERNEL_CUDA_EACH_COPY, 1));
    tensors.n = 0;
    DEVICE_OK(kernel_cuda_norms(l, &tensors));
    check_untouched(c, &a);
}

/* Rows that go to no expert, and a gradient of none, which is 0. */
static void test_experts(const DeviceCase *c) {
    Arrays a = new_arrays(c);
    KernelCudaType t = c->type;
    KernelCuda *l = device_lane;
    gint32 ends[2] = {0, 0}, *at = device_put_bytes(ends, sizeof ends);
    gint64 none[2] = {0, 0}, *counts = device_new_bytes(sizeof none);
    float zeros[SOME] = {0};
    void *dw = device_new(c, SOME);
    DEVICE_OK(kernel_cuda_top_k(l, a.out[0], a.index, a.in, 0, SOME, 2, t));
    DEVICE_OK(kernel_cuda_pick_columns(l, a.out[0], a.in, a.index, 0, SOME, 2, t));
    DEVICE_OK(kernel_cuda_pick_columns_backward(l, a.out[0], a.in, a.index, 0, SOME, 2, t));
    DEVICE_OK(kernel_cuda_sort(l, a.index, a.index, a.index, 0, 2));
    DEVICE_OK(kernel_cuda_ends(l, at, a.index, 0));
    DEVICE_OK(kernel_cuda_divide_down_i64(l, a.index, a.index, 0, 3));
    DEVICE_OK(kernel_cuda_add_to_rows(l, a.out[0], a.in, a.in, a.index, SOME, 0, 3, t));
    DEVICE_OK(kernel_cuda_grouped_linear_forward(l, a.out[0], a.in, a.in, at, 0, 3, 4, 2, t));
    DEVICE_OK(kernel_cuda_grouped_linear_forward(l, a.out[0], a.in, a.in, at, 3, 0, 4, 2, t));
    DEVICE_OK(
        kernel_cuda_grouped_linear_backward_input(l, a.out[0], a.in, a.in, at, 0, 3, 4, 2, t));
    DEVICE_OK(
        kernel_cuda_grouped_linear_backward_weight(l, a.out[0], a.in, a.in, at, 3, 0, 4, 2, t));
    check_untouched(c, &a);
    DEVICE_OK(kernel_cuda_grouped_linear_backward_weight(l, dw, a.in, a.in, at, 0, 3, 4, 2, t));
    device_equal("dw of no rows", c, dw, zeros, SOME);
    DEVICE_OK(kernel_cuda_count(l, counts, a.index, 0, 2));
    device_equal_bytes("counts of none", counts, none, sizeof none);
    g_autofree float *first = device_get(c, a.in, SOME);
    DEVICE_OK(kernel_cuda_add_to_rows(l, a.out[0], a.in, a.in, a.index, 0, 8, 3, t));
    device_equal("nothing added", c, a.out[0], first, SOME);
}

static void test_rows(const DeviceCase *c) {
    static const size_t sizes[][2] = {{0, SOME}, {SOME, 0}, {0, 0}};
    for (size_t s = 0; s < G_N_ELEMENTS(sizes); s++) {
        size_t rows = sizes[s][0], cols = sizes[s][1];
        Arrays a = new_arrays(c);
        KernelCudaType t = c->type;
        KernelCuda *l = device_lane;
        KernelCudaNorm norm = {rows, cols, 1e-5f, t};
        float *f = a.floats;
        DEVICE_OK(kernel_cuda_layernorm_forward(l, a.out[0], a.out[1], f, f + 1, a.in, a.in, a.in,
                                                a.in, &norm));
        DEVICE_OK(kernel_cuda_rmsnorm_forward(l, a.out[0], a.out[1], f, a.in, a.in, a.in, &norm));
        DEVICE_OK(kernel_cuda_layernorm_backward(l, a.out[0], a.out[1], a.out[2], a.in, a.in, a.in,
                                                 f, f, a.in, &norm));
        DEVICE_OK(
            kernel_cuda_rmsnorm_backward(l, a.out[0], a.out[1], a.in, a.in, a.in, f, a.in, &norm));
        DEVICE_OK(kernel_cuda_softmax_forward(l, a.out[0], a.in, rows, cols, t));
        DEVICE_OK(kernel_cuda_log_softmax_backward(l, a.out[0], a.in, a.in, rows, cols, t));
        DEVICE_OK(kernel_cuda_nll_loss_backward(l, a.out[0], a.in, a.index, a.in, rows, cols, t));
        DEVICE_OK(kernel_cuda_cross_entropy_backward(l, a.out[0], a.in, a.in, a.index, a.in, f,
                                                     rows, cols, t));
        DEVICE_OK(kernel_cuda_compiled_loss_backward(l, a.out[0], a.in, a.in, a.index, f, f, a.in,
                                                     a.in, t, rows, cols, t));
        DEVICE_OK(kernel_cuda_embedding_forward(l, a.out[0], a.in, a.index, rows, 1, cols, t));
        DEVICE_OK(kernel_cuda_embedding_backward(l, a.out[0], a.in, a.index, rows, 0, cols, t));
        DEVICE_OK(kernel_cuda_bias_backward(l, a.out[0], a.in, a.index, 1, rows, cols, t));
        check_untouched(c, &a);
    }
}

/* The mean of no rows is no number, as PyTorch has it; how many they are is 0. */
static void test_losses(const DeviceCase *c) {
    float nothing = NAN, zero = 0;
    Arrays a = new_arrays(c);
    DEVICE_OK(kernel_cuda_nll_loss_forward(device_lane, a.out[0], a.out[1], a.in, a.index, 0, SOME,
                                           c->type));
    device_close("loss", c, a.out[0], &nothing, 1, 0, 0);
    device_equal("total", c, a.out[1], &zero, 1);
    DEVICE_OK(kernel_cuda_cross_entropy_forward(device_lane, a.out[2], a.out[1], a.floats, a.in,
                                                a.index, 0, SOME, c->type));
    device_close("loss", c, a.out[2], &nothing, 1, 0, 0);
    device_equal("total", c, a.out[1], &zero, 1);
    DEVICE_OK(kernel_cuda_compiled_loss_forward(device_lane, a.out[0], a.out[1], c->type, a.floats,
                                                a.floats, a.in, a.index, 0, SOME, c->type));
    device_close("loss", c, a.out[0], &nothing, 1, 0, 0);
    device_equal("total", c, a.out[1], &zero, 1);
}

static void test_heads(const DeviceCase *c) {
    static const size_t sizes[][4] = {{0, 2, 2, 8}, {2, 0, 2, 8}, {2, 2, 0, 8}, {2, 2, 2, 0}};
    for (size_t s = 0; s < G_N_ELEMENTS(sizes); s++) {
        size_t batch = sizes[s][0], seq = sizes[s][1], heads = sizes[s][2], dim = sizes[s][3];
        Arrays a = new_arrays(c);
        KernelCudaType t = c->type;
        KernelCuda *l = device_lane;
        KernelCudaHeads shape = {batch, seq, heads, dim, t};
        KernelCudaRope rope = {batch * seq, heads, dim, seq, heads * dim, t, t};
        KernelCudaAttention attention = {batch, heads, 2, seq,  dim, SOME, SOME,
                                         SOME,  seq,   1, true, t,   0};
        DEVICE_OK(
            kernel_cuda_repeat_heads(l, a.out[0], a.in, &shape, shape.heads * shape.dim, 2, false));
        DEVICE_OK(kernel_cuda_sum_heads(l, a.out[0], a.in, &shape, 2, true, true));
        DEVICE_OK(kernel_cuda_heads_copy(l, a.out[0], a.in, &shape, SOME, false));
        DEVICE_OK(kernel_cuda_rope(l, a.out[0], a.in, a.in, a.in, &rope, false));
        DEVICE_OK(kernel_cuda_attention_forward(l, a.out[0], a.floats, a.in, a.in, a.in, NULL,
                                                &attention));
        DEVICE_OK(kernel_cuda_attention_backward(l, a.out[0], a.out[1], a.out[2], NULL, a.in, a.in,
                                                 a.in, a.in, NULL, a.in, a.floats, &attention));
        check_untouched(c, &a);
    }
}

static void test_products(const DeviceCase *c) {
    static const size_t sizes[][3] = {{0, 3, 4}, {3, 0, 4}, {0, 0, 0}};
    KernelCudaType t = c->type;
    KernelCuda *l = device_lane;
    for (size_t s = 0; s < G_N_ELEMENTS(sizes); s++) {
        size_t m = sizes[s][0], n = sizes[s][1], k = sizes[s][2];
        Arrays a = new_arrays(c);
        DEVICE_OK(kernel_cuda_linear_forward(l, a.out[0], a.in, a.in, a.in, m, n, k, t));
        DEVICE_OK(kernel_cuda_linear_gelu_forward(l, a.out[0], a.out[1], a.in, a.in, a.in, m, n, k,
                                                  KERNEL_CUDA_GELU_TANH, t));
        DEVICE_OK(kernel_cuda_linear_gelu_backward_input(l, a.out[0], NULL, a.in, a.in, a.in, m, k,
                                                         n, t));
        if (!n) {
            DEVICE_OK(kernel_cuda_linear_backward_weight_bias(l, a.out[0], a.out[1], a.in, a.in, m,
                                                              n, k, t));
        }
        check_untouched(c, &a);
    }
}

/* Products of nothing that is summed: 0, or what the output holds times beta. */
static void test_products_of_nothing(const DeviceCase *c) {
    enum {
        M = 3,
        N = 4
    };
    KernelCudaFloat8Factor none = {NULL, NULL, KERNEL_CUDA_E4M3};
    KernelCuda *l = device_lane;
    g_autofree float *x = device_random(c, M * N, -1, 1, 8);
    float zeros[M * N] = {0}, doubled[M * N];
    void *y = device_new(c, M * N), *sum = device_put(c, x, M * N), *cast = device_new(c, M * N);
    for (unsigned i = 0; i < M * N; i++) {
        doubled[i] = 2 * x[i];
    }
    DEVICE_OK(kernel_cuda_product(l, y, NULL, false, NULL, true, M, N, 0, 1, 0, c->type));
    device_equal("no sums", c, y, zeros, M * N);
    DEVICE_OK(kernel_cuda_product(l, sum, NULL, true, NULL, false, M, N, 0, 1, 2, c->type));
    device_equal("what was there, twice", c, sum, doubled, M * N);
    DEVICE_OK(kernel_cuda_float8_product(l, cast, none, none, M, N, 0, false, c->type));
    device_equal("no sums of float8", c, cast, zeros, M * N);
    KernelCudaMxfp8Factor no_blocks = {NULL, NULL};
    void *of_blocks = device_new(c, M * N);
    DEVICE_OK(kernel_cuda_mxfp8_product(l, of_blocks, no_blocks, no_blocks, M, N, 0, c->type));
    device_equal("no sums of blocks", c, of_blocks, zeros, M * N);
}

/* Over nothing: 0, or what the bias makes of it. */
static void test_sums(const DeviceCase *c) {
    enum {
        M = 2,
        N = 8
    };
    KernelCudaType t = c->type;
    KernelCuda *l = device_lane;
    Arrays a = new_arrays(c);
    g_autofree float *bias = device_random(c, N, -1, 1, 7);
    float zeros[M * N] = {0}, rows[M * N], gelu[M * N];
    const void *in_bias = device_put(c, bias, N);
    for (unsigned i = 0; i < M * N; i++) {
        float x = rows[i] = bias[i % N];
        gelu[i] = 0.5f * x * (1 + tanhf(0.797884561f * (x + 0.044715f * x * x * x)));
    }
    DEVICE_OK(kernel_cuda_linear_forward(l, a.out[0], a.in, a.in, NULL, M, N, 0, t));
    device_equal("no products", c, a.out[0], zeros, M * N);
    DEVICE_OK(kernel_cuda_linear_forward(l, a.out[0], a.in, a.in, in_bias, M, N, 0, t));
    device_equal("a bias alone", c, a.out[0], rows, M * N);
    DEVICE_OK(kernel_cuda_linear_gelu_forward(l, a.out[1], a.out[0], a.in, a.in, in_bias, M, N, 0,
                                              KERNEL_CUDA_GELU_TANH, t));
    device_equal("before", c, a.out[0], rows, M * N);
    device_close("gelu", c, a.out[1], gelu, M * N, 1e-6, 1e-6);
    DEVICE_OK(kernel_cuda_linear_backward_weight(l, a.out[2], a.in, a.in, 0, M, N, t));
    device_equal("dw of no rows", c, a.out[2], zeros, M * N);
    DEVICE_OK(
        kernel_cuda_linear_backward_weight_bias(l, a.out[2], a.out[1], a.in, a.in, 0, M, N, t));
    device_equal("dw of no rows, beside db", c, a.out[2], zeros, M * N);
    device_equal("db of no rows", c, a.out[1], zeros, M);
    DEVICE_OK(kernel_cuda_linear_gelu_backward_input(l, a.out[2], a.out[1], a.in, a.in, a.in, M, 0,
                                                     N, t));
    device_equal("dx of no columns", c, a.out[2], zeros, M * N);
    device_equal("its sums", c, a.out[1], zeros, N);
    DEVICE_OK(kernel_cuda_column_sum(l, a.out[1], a.in, 0, N, t));
    device_equal("columns of no rows", c, a.out[1], zeros, N);
    DEVICE_OK(kernel_cuda_row_sum(l, a.out[1], a.in, M, 0, 1, t));
    device_equal("rows of no columns", c, a.out[1], zeros, M);
    DEVICE_OK(kernel_cuda_norm(l, a.out[1], t, a.in, 0, t));
    device_equal("norm of nothing", c, a.out[1], zeros, 1);
    DEVICE_OK(kernel_cuda_embedding_backward(l, a.out[2], a.in, a.index, 0, M, N, t));
    device_equal("a table that nobody read", c, a.out[2], zeros, M * N);
}

static void add_tests(void) {
    DEVICE_TEST("/kernels-cuda/empty/elements", test_elements);
    DEVICE_TEST("/kernels-cuda/empty/rows", test_rows);
    DEVICE_TEST("/kernels-cuda/empty/experts", test_experts);
    DEVICE_TEST("/kernels-cuda/empty/losses", test_losses);
    DEVICE_TEST("/kernels-cuda/empty/heads", test_heads);
    DEVICE_TEST("/kernels-cuda/empty/products", test_products);
    DEVICE_TEST("/kernels-cuda/empty/products-of-nothing", test_products_of_nothing);
    DEVICE_TEST("/kernels-cuda/empty/sums", test_sums);
}

int main(int argc, char **argv) {
    return device_main(argc, argv, add_tests);
}
