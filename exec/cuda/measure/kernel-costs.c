/* exec/cuda/measure/kernel-costs.c - what products and attention take, by shape. */
#include "exec/cuda/calls.h"
#include "exec/cuda/measure/bench.h"
#include "kernels/cuda/attention/attention.h"
#include "kernels/cuda/products/matmul.h"
#include "kernels/cuda/random.h"

/* ---- products ------------------------------------------------------------------------------- */

typedef struct {
    size_t m, n, k;
    KernelCudaType type;
} Product;

/* Squares, and the shapes of transformers: tokens by what a layer is wide. */
static const Product products[] = {
    {256, 256, 256, KERNEL_CUDA_BF16},      {512, 512, 512, KERNEL_CUDA_BF16},
    {1024, 1024, 1024, KERNEL_CUDA_BF16},   {2048, 2048, 2048, KERNEL_CUDA_BF16},
    {4096, 4096, 4096, KERNEL_CUDA_BF16},   {8192, 8192, 8192, KERNEL_CUDA_BF16},
    {1024, 2304, 768, KERNEL_CUDA_BF16},    {4096, 3072, 768, KERNEL_CUDA_BF16},
    {4096, 768, 3072, KERNEL_CUDA_BF16},    {8192, 4800, 1600, KERNEL_CUDA_BF16},
    {8192, 1600, 6400, KERNEL_CUDA_BF16},   {8192, 6400, 1600, KERNEL_CUDA_BF16},
    {2048, 6144, 4096, KERNEL_CUDA_BF16},   {8192, 4096, 4096, KERNEL_CUDA_BF16},
    {8192, 14336, 4096, KERNEL_CUDA_BF16},  {8192, 4096, 14336, KERNEL_CUDA_BF16},
    {16384, 1024, 4096, KERNEL_CUDA_BF16},  {4096, 12288, 12288, KERNEL_CUDA_BF16},
    {2048, 49152, 12288, KERNEL_CUDA_BF16}, {2048, 12288, 49152, KERNEL_CUDA_BF16},
    {8192, 50304, 1600, KERNEL_CUDA_BF16},  {128, 4096, 4096, KERNEL_CUDA_BF16},
    {256, 256, 256, KERNEL_CUDA_F16},       {2048, 2048, 2048, KERNEL_CUDA_F16},
    {4096, 4096, 4096, KERNEL_CUDA_F16},    {8192, 8192, 8192, KERNEL_CUDA_F16},
    {256, 256, 256, KERNEL_CUDA_F32},       {2048, 2048, 2048, KERNEL_CUDA_F32},
    {4096, 4096, 4096, KERNEL_CUDA_F32},    {8192, 4096, 1024, KERNEL_CUDA_F32},
};

static const char *const type_names[] = {"fp32", "bf16", "fp16"};

static size_t product_bytes(const Product *p) {
    return (p->m * p->k + p->n * p->k + p->m * p->n) * kernel_cuda_type_bytes(p->type);
}

static KernelCudaFault multiply(const ExecCudaBench *bench, gconstpointer what) {
    const Product *p = what;
    size_t size = kernel_cuda_type_bytes(p->type);
    const char *x = bench->memory, *w = x + p->m * p->k * size;
    return kernel_cuda_linear_forward(bench->kernels, (gpointer)(w + p->n * p->k * size), x, w,
                                      NULL, p->m, p->n, p->k, p->type);
}

bool exec_cuda_product_costs(const ExecCudaBench *bench, GError **error) {
    for (unsigned i = 0; i < G_N_ELEMENTS(products); i++) {
        const Product *p = &products[i];
        double us;
        if (product_bytes(p) > bench->room_bytes) {
            continue;
        }
        if (!exec_cuda_kernel_ok(
                kernel_cuda_philox_normal(bench->kernels, bench->memory, p->m * p->k + p->n * p->k,
                                          (KernelCudaRandom){1, 0, 0}, 0, 0.02f, p->type),
                error) ||
            !exec_cuda_bench_us(bench, multiply, p, &us, error)) {
            return false;
        }
        g_autofree char *name =
            g_strdup_printf("product %s %zu %zu %zu", type_names[p->type], p->m, p->n, p->k);
        if (!exec_costs_report(bench->costs, name, us, error)) {
            return false;
        }
    }
    return true;
}

/* ---- attention ------------------------------------------------------------------------------ */

typedef struct {
    KernelCudaAttention shape;
    bool backward;
} Attention;

/* batch, heads, kv_heads, seq, head_dim, causal. cuDNN plans each for a second or two, and the time
 * may end before the list does: those that differ most come first. */
static const size_t attentions[][6] = {
    {8, 25, 25, 1024, 64, 1},  {2, 32, 8, 4096, 128, 1},  {1, 32, 8, 8192, 128, 1},
    {4, 16, 16, 2048, 64, 1},  {1, 96, 96, 2048, 128, 1}, {4, 32, 32, 2048, 128, 0},
    {16, 12, 12, 1024, 64, 1}, {4, 32, 8, 2048, 128, 1},  {1, 2, 2, 64, 32, 1},
};

static KernelCudaAttention shape_of(const size_t *a) {
    return (KernelCudaAttention){.batch = a[0],
                                 .heads = a[1],
                                 .kv_heads = a[2],
                                 .seq = a[3],
                                 .head_dim = a[4],
                                 .q_stride = a[1] * a[4],
                                 .k_stride = a[2] * a[4],
                                 .v_stride = a[2] * a[4],
                                 .lse_stride = a[3],
                                 .scale = 0.1f,
                                 .causal = a[5] != 0,
                                 .type = KERNEL_CUDA_BF16};
}

/* q, o, d_o, dq are of the one size; k, v, dk, dv of the other; then the logsumexp. */
static size_t q_bytes(const KernelCudaAttention *s) {
    return s->batch * s->seq * s->heads * s->head_dim * 2;
}

static size_t kv_bytes(const KernelCudaAttention *s) {
    return s->batch * s->seq * s->kv_heads * s->head_dim * 2;
}

static KernelCudaFault attend(const ExecCudaBench *bench, gconstpointer what) {
    const Attention *a = what;
    const KernelCudaAttention *s = &a->shape;
    size_t q = q_bytes(s), kv = kv_bytes(s);
    char *at = bench->memory, *k = at + 4 * q;
    float *lse = (float *)(gpointer)(k + 4 * kv);
    return a->backward
               ? kernel_cuda_attention_backward(bench->kernels, at + 3 * q, k + 2 * kv, k + 3 * kv,
                                                NULL, at + 2 * q, at, k, k + kv, NULL, at + q, lse,
                                                s)
               : kernel_cuda_attention_forward(bench->kernels, at + q, lse, at, k, k + kv, NULL, s);
}

static bool attention_cost(const ExecCudaBench *bench, const KernelCudaAttention *s, bool backward,
                           GError **error) {
    Attention attention = {*s, backward};
    double us;
    g_autofree char *name =
        g_strdup_printf("attention bf16 %zu %zu %zu %zu %zu %d %d", s->batch, s->heads, s->kv_heads,
                        s->seq, s->head_dim, s->causal, backward);
    return exec_cuda_bench_us(bench, attend, &attention, &us, error) &&
           exec_costs_report(bench->costs, name, us, error);
}

bool exec_cuda_attention_costs(const ExecCudaBench *bench, GError **error) {
    for (unsigned i = 0; i < G_N_ELEMENTS(attentions); i++) {
        KernelCudaAttention s = shape_of(attentions[i]);
        size_t bytes = 4 * (q_bytes(&s) + kv_bytes(&s));
        KernelCudaRandom random = {1, 0, 0};
        if (bytes + s.batch * s.heads * s.seq * sizeof(float) > bench->room_bytes) {
            continue;
        }
        if (!exec_cuda_kernel_ok(kernel_cuda_philox_normal(bench->kernels, bench->memory, bytes / 2,
                                                           random, 0, 1, KERNEL_CUDA_BF16),
                                 error) ||
            !attention_cost(bench, &s, false, error) || !attention_cost(bench, &s, true, error)) {
            return false;
        }
    }
    return true;
}
