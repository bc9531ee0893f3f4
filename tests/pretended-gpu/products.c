/* tests/pretended-gpu/products.c - the real cuBLASLt takes every product that matmul.cu and
 * product.cu of kernels/cuda ask of it, on GPUs that are only described.
 *
 * These, cuBLASLt's heuristics and its checks of what it is called with are the very ones that
 * a GPU would see; what is missing is the arithmetic. Each product must end in launched kernels of
 * the GPU's own kind, take no memory that the lane does not report, and report no fault.
 */
#include <glib.h>
#include <string.h>

#include "kernels/cuda/products/matmul.h"
#include "tests/pretended-gpu/gpu.h"

enum {
    TYPES = 3,
    OPS = 9,
    ODD_SHAPES = 150, /* drawn anew in each run */
    ODD_SIZE = 300,
};

typedef struct {
    size_t m, n, k;
} Shape;

/* Operands apart from each other, so that none runs into the next: bytes. */
static const uintptr_t FIRST = 0x200000000000, APART = (uintptr_t)1 << 38;

static KernelCuda *lane;
static unsigned n_calls;

static const char *const op_names[OPS] = {
    "forward", "forward + bias", "gelu",         "gelu + bias", "dx",
    "dw",      "dx, gelu",       "dx, gelu, db", "dw, db"};

/* ---- one product ----------------------------------------------------------------------------- */

/* How far behind a round address each operand lies, in elements. */
typedef struct {
    size_t y, x, w, bias, before;
} Places;

static void *at(unsigned operand, size_t elements, KernelCudaType type) {
    return (void *)(FIRST + operand * APART + elements * kernel_cuda_type_bytes(type));
}

static KernelCudaFault play(unsigned op, const Shape *s, const Places *p, KernelCudaType type) {
    void *y = at(0, p->y, type), *x = at(1, p->x, type), *w = at(2, p->w, type);
    void *bias = at(3, p->bias, type), *before = at(4, p->before, type);
    size_t m = s->m, n = s->n, k = s->k;
    switch (op) {
    case 0:
    case 1:
        return kernel_cuda_linear_forward(lane, y, x, w, op ? bias : NULL, m, n, k, type);
    case 2:
    case 3:
        return kernel_cuda_linear_gelu_forward(lane, y, before, x, w, op == 3 ? bias : NULL, m, n,
                                               k, KERNEL_CUDA_GELU_TANH, type);
    case 4:
        return kernel_cuda_linear_backward_input(lane, y, x, w, m, n, k, type);
    case 5:
        return kernel_cuda_linear_backward_weight(lane, y, x, w, m, n, k, type);
    case 6:
    case 7:
        return kernel_cuda_linear_gelu_backward_input(lane, y, op == 7 ? bias : NULL, x, w, before,
                                                      m, n, k, type);
    default:
        return kernel_cuda_linear_backward_weight_bias(lane, y, bias, x, w, m, n, k, type);
    }
}

/* Kernels made for one kind of GPU have its number in their name. */
static bool is_of_another_gpu(const char *kernel, unsigned capability) {
    return strstr(kernel, "sm90_") && capability != 90;
}

static void check_launches(unsigned gpu, const char *what) {
    g_assert_cmpuint(pretended_n_launches(), >, 0);
    for (unsigned i = 0; i < pretended_n_launches(); i++) {
        if (is_of_another_gpu(pretended_launch(i), pretended_gpu_capability(gpu))) {
            g_error("%s: %s on %s", what, pretended_launch(i), pretended_gpu_name(gpu));
        }
    }
}

static void check_product(unsigned gpu, unsigned op, const Shape *s, const Places *p,
                          KernelCudaType type) {
    static const char *const types[] = {"fp32", "bf16", "fp16"};
    g_autofree char *what = g_strdup_printf(
        "%s, %s of %zu x %zu x %zu in %s, elements off: y %zu, x %zu, w %zu, bias %zu, before %zu",
        pretended_gpu_name(gpu), op_names[op], s->m, s->n, s->k, types[type], p->y, p->x, p->w,
        p->bias, p->before);
    pretended_forget();
    KernelCudaFault fault = play(op, s, p, type);
    if (fault) {
        g_error("%s: %s", what, fault);
    }
    check_launches(gpu, what);
    n_calls++;
}

/* ---- the tests ------------------------------------------------------------------------------- */

static void begin(unsigned gpu, KernelCudaMath math) {
    g_assert_cmpint(cudaSetDevice((int)gpu), ==, 0);
    KernelCudaFault fault = kernel_cuda_new(&lane, NULL, math);
    if (fault) {
        g_error("%s: %s", pretended_gpu_name(gpu), fault);
    }
    n_calls = 0;
}

static void end(unsigned gpu) {
    g_assert_cmpuint(pretended_allocated_bytes(), ==, kernel_cuda_scratch_bytes(lane));
    kernel_cuda_free(lane);
    g_assert_cmpuint(pretended_allocated_bytes(), ==, 0);
    g_test_message("%s: %u products", pretended_gpu_name(gpu), n_calls);
}

/* What is trained, 4096 or so tokens at a time: the linear layers of GPT-2 1.5B, GPT-175B (one of
 * eight to a layer too), Llama 3 8B and T5-11B (65536 wide), a toy's, and the least. */
static const Shape trained[] = {
    {4096, 4800, 1600},   {4096, 1600, 1600},  {4096, 6400, 1600},
    {4096, 1600, 6400},   {4096, 50257, 1600}, {2048, 36864, 12288},
    {2048, 4608, 12288},  {2048, 12288, 1536}, {2048, 49152, 12288},
    {2048, 12288, 49152}, {2048, 6144, 12288}, {8192, 4096, 4096},
    {8192, 1024, 4096},   {8192, 14336, 4096}, {8192, 4096, 14336},
    {8192, 128256, 4096}, {8192, 6144, 4096},  {512, 16384, 1024},
    {512, 1024, 16384},   {512, 65536, 1024},  {512, 1024, 65536},
    {512, 32128, 1024},   {32, 64, 16},        {32, 16, 64},
    {24, 33, 17},         {8, 8, 8},           {7, 5, 3},
    {1, 1600, 1600},      {1, 50257, 1600},    {64, 1, 64},
    {64, 64, 1},          {1, 1, 1},
};

/* Aligned, and each operand off by one element, by 8 bytes, or a little on its own. */
static void test_trained(void) {
    static const Places places[] = {
        {0}, {1, 1, 1, 1, 1}, {4, 4, 4, 4, 4}, {0, 0, 0, 1, 0}, {8, 8, 8, 8, 1}};
    for (unsigned gpu = 0; gpu < PRETENDED_GPUS; gpu++) {
        for (unsigned math = KERNEL_CUDA_EXACT; math <= KERNEL_CUDA_TF32; math++) {
            begin(gpu, (KernelCudaMath)math);
            for (unsigned i = 0; i < G_N_ELEMENTS(trained) * TYPES * OPS; i++) {
                for (unsigned p = 0; p < G_N_ELEMENTS(places); p++) {
                    check_product(gpu, i % OPS, &trained[i / OPS / TYPES], &places[p],
                                  (KernelCudaType)(i / OPS % TYPES));
                }
            }
            end(gpu);
        }
    }
}

static size_t size_drawn(void) {
    return (size_t)g_test_rand_int_range(1, g_test_rand_int_range(0, 4) ? ODD_SIZE : 12);
}

static size_t place_drawn(void) {
    return (size_t)g_test_rand_int_range(0, 9);
}

static void test_odd(void) {
    for (unsigned gpu = 0; gpu < PRETENDED_GPUS; gpu++) {
        begin(gpu, g_test_rand_bit() ? KERNEL_CUDA_EXACT : KERNEL_CUDA_TF32);
        for (unsigned i = 0; i < ODD_SHAPES; i++) {
            Shape shape = {size_drawn(), size_drawn(), size_drawn()};
            Places places = {place_drawn(), place_drawn(), place_drawn(), place_drawn(),
                             place_drawn()};
            for (unsigned op = 0; op < OPS; op++) {
                check_product(gpu, op, &shape, &places, (KernelCudaType)(i % TYPES));
            }
        }
        end(gpu);
    }
}

/* More than 2^31 and 2^32 elements. */
static void test_large(void) {
    static const Shape shapes[] = {
        {65536, 50257, 1600}, {32768, 131072, 4096}, {2097152, 1600, 1600}, {2097152, 6400, 1600}};
    for (unsigned gpu = 0; gpu < PRETENDED_GPUS; gpu++) {
        begin(gpu, KERNEL_CUDA_EXACT);
        for (unsigned i = 0; i < G_N_ELEMENTS(shapes) * TYPES * OPS; i++) {
            check_product(gpu, i % OPS, &shapes[i / OPS / TYPES], &(Places){0},
                          (KernelCudaType)(i / OPS % TYPES));
        }
        end(gpu);
    }
}

/* Matrices of all heads behind one another, or side by side in rows of `width` elements. */
static KernelCudaMatrices heads_at(unsigned operand, size_t heads, size_t rows, size_t cols,
                                   bool transposed, size_t width, KernelCudaType type) {
    return (KernelCudaMatrices){.data = at(operand, 0, type),
                                .batch_stride = width ? rows * width : heads * rows * cols,
                                .head_stride = width ? cols : rows * cols,
                                .row_stride = width ? width : cols,
                                .transposed = transposed};
}

/* Scores, and what is made of them, forward and backward; q, k, v in rows of their own or of three,
 * as plan/op/ops.def's heads_matmul has them. */
static void check_heads(unsigned gpu, size_t heads, size_t seq, size_t dim, KernelCudaType type) {
    size_t batch = 2, width = g_test_rand_bit() ? 3 * heads * dim : heads * dim;
    const struct {
        KernelCudaMatrices y, a, b;
        size_t m, n, k;
    } products[] = {
        {heads_at(0, heads, seq, seq, false, 0, type),
         heads_at(1, heads, seq, dim, false, width, type),
         heads_at(2, heads, seq, dim, true, width, type), seq, seq, dim},
        {heads_at(0, heads, seq, dim, false, heads * dim, type),
         heads_at(1, heads, seq, seq, false, 0, type),
         heads_at(2, heads, seq, dim, false, width, type), seq, dim, seq},
        {heads_at(0, heads, seq, dim, false, width, type),
         heads_at(1, heads, seq, seq, true, 0, type),
         heads_at(2, heads, seq, dim, false, heads * dim, type), seq, dim, seq},
        {heads_at(0, heads, seq, dim, false, 0, type), heads_at(1, heads, seq, seq, false, 0, type),
         heads_at(2, heads, seq, dim, false, 0, type), seq, dim, seq},
    };
    for (unsigned i = 0; i < G_N_ELEMENTS(products); i++) {
        pretended_forget();
        KernelCudaFault fault =
            kernel_cuda_heads_matmul(lane, products[i].y, products[i].a, products[i].b, batch,
                                     heads, products[i].m, products[i].n, products[i].k, type);
        if (fault) {
            g_error("%s, product %u of %zu heads of %zu, sequences of %zu: %s",
                    pretended_gpu_name(gpu), i, heads, dim, seq, fault);
        }
        check_launches(gpu, "heads");
        n_calls++;
    }
}

static void test_heads(void) {
    static const size_t sizes[][3] = {{25, 1024, 64}, {96, 2048, 128}, {128, 512, 128},
                                      {4, 33, 16},    {3, 7, 5},       {1, 1, 1}};
    for (unsigned gpu = 0; gpu < PRETENDED_GPUS; gpu++) {
        for (unsigned math = KERNEL_CUDA_EXACT; math <= KERNEL_CUDA_TF32; math++) {
            begin(gpu, (KernelCudaMath)math);
            for (unsigned i = 0; i < G_N_ELEMENTS(sizes) * TYPES; i++) {
                const size_t *s = sizes[i / TYPES];
                check_heads(gpu, s[0], s[1], s[2], (KernelCudaType)(i % TYPES));
            }
            end(gpu);
        }
    }
}

/* How a product of GPT-2 1.5B ends: in cuBLASLt's own kernels on chips of data centres, by this
 * repository's on others and in fp32; on Hopper this repository's add up the rows of GELU's
 * gradient. Nowhere is GELU left to cuBLASLt's kernel for any end, which stands behind a product.
 * What is launched is told. */
static void test_endings(void) {
    static const Shape shape = {4096, 6400, 1600};
    for (unsigned gpu = 0; gpu < PRETENDED_GPUS; gpu++) {
        unsigned capability = pretended_gpu_capability(gpu);
        begin(gpu, KERNEL_CUDA_EXACT);
        for (unsigned op = 2; op < OPS; op++) {
            bool is_gelu = op == 2 || op == 3 || op == 6 || op == 7;
            bool is_ours = false, is_any = false;
            check_product(gpu, op, &shape, &(Places){0}, KERNEL_CUDA_BF16);
            for (unsigned i = 0; i < pretended_n_launches(); i++) {
                g_test_message("%s, %s: %s", pretended_gpu_name(gpu), op_names[op],
                               pretended_launch(i));
                is_ours = is_ours || strstr(pretended_launch(i), "_ZN2cu") ||
                          strstr(pretended_launch(i), "column_parts");
                is_any = is_any || strstr(pretended_launch(i), "epilogue4impl12globalKernel");
            }
            g_assert_false(is_any);
            if (is_gelu) {
                g_assert_cmpint(is_ours, ==, capability == 89 || (op == 7 && capability == 90));
            }
        }
        check_product(gpu, 3, &shape, &(Places){0}, KERNEL_CUDA_F32);
        g_assert_nonnull(strstr(pretended_launch(pretended_n_launches() - 1), "_ZN2cu"));
        end(gpu);
    }
}

/* GPT-2's logits, whose rows are no whole 16 bytes: all but the last columns, which are made last,
 * by kernels of the GPU's own, and none of them made for one of ten years ago. */
static void test_odd_rows(void) {
    static const Shape shape = {16384, 50257, 1600};
    static const unsigned plain[] = {0, 4, 5};
    for (unsigned gpu = 0; gpu < PRETENDED_GPUS; gpu++) {
        bool is_hopper = pretended_gpu_capability(gpu) == 90;
        begin(gpu, KERNEL_CUDA_EXACT);
        for (unsigned i = 0; i < G_N_ELEMENTS(plain); i++) {
            unsigned of_hopper = 0, old = 0;
            check_product(gpu, plain[i], &shape, &(Places){0}, KERNEL_CUDA_BF16);
            for (unsigned l = 0; l + 1 < pretended_n_launches(); l++) {
                g_test_message("%s, %s: %s", pretended_gpu_name(gpu), op_names[plain[i]],
                               pretended_launch(l));
                of_hopper += strstr(pretended_launch(l), "sm90_") != NULL;
                old += strstr(pretended_launch(l), "cutlass_75") != NULL;
            }
            g_assert_cmpuint(old, ==, 0);
            g_assert_true(of_hopper > 0 || !is_hopper);
        }
        end(gpu);
    }
}

/* That it says no to what is wrong: rows that begin before the last one ends. */
static void test_refused(void) {
    for (unsigned gpu = 0; gpu < PRETENDED_GPUS; gpu++) {
        begin(gpu, KERNEL_CUDA_EXACT);
        KernelCudaMatrices matrices = heads_at(0, 1, 64, 64, false, 0, KERNEL_CUDA_BF16);
        KernelCudaMatrices narrow = matrices;
        narrow.row_stride = 32;
        g_assert_null(kernel_cuda_heads_matmul(lane, matrices, matrices, matrices, 1, 1, 64, 64, 64,
                                               KERNEL_CUDA_BF16));
        g_assert_nonnull(kernel_cuda_heads_matmul(lane, narrow, matrices, matrices, 1, 1, 64, 64,
                                                  64, KERNEL_CUDA_BF16));
        end(gpu);
    }
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_message("%s", kernel_cuda_libraries());
    g_test_add_func("/pretended-gpu/products/trained", test_trained);
    g_test_add_func("/pretended-gpu/products/odd", test_odd);
    g_test_add_func("/pretended-gpu/products/large", test_large);
    g_test_add_func("/pretended-gpu/products/heads", test_heads);
    g_test_add_func("/pretended-gpu/products/endings", test_endings);
    g_test_add_func("/pretended-gpu/products/odd rows", test_odd_rows);
    g_test_add_func("/pretended-gpu/products/refused", test_refused);
    return g_test_run();
}
