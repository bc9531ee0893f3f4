/* kernels/cuda/attention/attention-own.cu - this room's own attention in blocks. Bound: arithmetic
 * in fp32, without tensor cores: it serves where cuDNN is missing, for all types, and as its
 * comparison.
 *
 * A block works on ROWS rows (queries; for dk and dv keys), each held by PARTS neighbouring
 * threads that share out its elements, four and four in turn. What the rows meet passes by in
 * tiles in shared memory, as floats. Forward folds keys into a running maximum, sum and output.
 * Backward remakes p = exp(s - lse) and uses ds = p (dp - D), D the row sums of d_o o: one kernel
 * for dq (and a bias's gradient, which ds is), one for dk and dv, each adding in order into
 * registers, so that nothing is added by two blocks and results repeat. That costs 7 products of s
 * x s x head_dim where 5 would do.
 */
#include <float.h>

#include "kernels/alibi.h"
#include "kernels/cuda/attention/attention-private.h"
#include "kernels/cuda/each.cuh"

using namespace cu;

namespace {

constexpr unsigned BLOCK = 128; /* threads */

template <int DIM> struct Layout {
    static constexpr int PARTS = DIM > 128 ? DIM / 32 : 4;
    static constexpr int ROWS = (int)BLOCK / PARTS;
    static constexpr int TILE = DIM > 128 ? 4096 / DIM : 32; /* rows of a tile */
    static constexpr int AT_ONCE = TILE < 8 ? TILE : 8;      /* keys folded in together */
    static constexpr int MINE = DIM / PARTS; /* elements of a row that a thread holds */
    static constexpr size_t SHARED = (2 * TILE * DIM + 2 * TILE) * sizeof(float);
};

/* One head of q, k, v, o, d_o, dq, dk or dv: rows of `dim` elements, `stride` apart. */
struct Rows {
    const void *data;
    size_t first, stride, dim; /* elements */
};

/* How an array of them lies: elements from a sequence, a head and a row to the next. */
struct Lay {
    size_t batch, head, row;

    __device__ size_t first(size_t b, size_t h) const {
        return b * batch + h * head;
    }
};

struct Shape {
    KernelCudaAttention a;  /* its v_dim, v_head and keys are set */
    const void *bias;       /* nullptr: none */
    size_t bias_strides[4]; /* elements from a sequence, head, query and key to the next */
    Lay q, k, v, o, saved;  /* o as forward writes it; o and d_o as backward reads them */
    Lay dq, dk, dv;
    bool by_four; /* all rows begin where four elements may be loaded at once */
};

__device__ Rows rows_of(const void *data, const Lay &lay, size_t batch, size_t head, size_t dim) {
    return Rows{data, lay.first(batch, head), lay.row, dim};
}

/* Elements d .. d + 3 of a row; 0 beyond the head, or if the row is not there. */
__device__ void get_four(float (&x)[4], const Rows &r, size_t row, int d, bool is_there,
                         const Shape &s) {
    size_t at = r.first + row * r.stride + (size_t)d;
#pragma unroll
    for (int v = 0; v < 4; v++) {
        x[v] = 0;
    }
    if (!is_there || (size_t)d >= r.dim) {
        return;
    }
    if (s.by_four) {
        widen4(x, load_raw(r.data, s.a.type, at), s.a.type);
        return;
    }
    for (int v = 0; v < 4 && (size_t)(d + v) < r.dim; v++) {
        x[v] = load1(r.data, s.a.type, at + v);
    }
}

template <int DIM> __device__ int element_of(int c) {
    constexpr int PARTS = Layout<DIM>::PARTS;
    return (c * PARTS + (int)threadIdx.x % PARTS) * 4;
}

/* This thread's elements of a row. */
template <int DIM>
__device__ void get_mine(float (&x)[Layout<DIM>::MINE], const Rows &r, size_t row, bool is_there,
                         const Shape &s) {
#pragma unroll
    for (int c = 0; c < Layout<DIM>::MINE / 4; c++) {
        float four[4];
        get_four(four, r, row, element_of<DIM>(c), is_there, s);
#pragma unroll
        for (int v = 0; v < 4; v++) {
            x[4 * c + v] = four[v];
        }
    }
}

template <int DIM>
__device__ void put_mine(void *out, size_t first, size_t dim, const float (&x)[Layout<DIM>::MINE],
                         float factor, const Shape &s) {
#pragma unroll
    for (int c = 0; c < Layout<DIM>::MINE / 4; c++) {
#pragma unroll
        for (int v = 0; v < 4; v++) {
            size_t d = (size_t)element_of<DIM>(c) + v;
            if (d < dim) {
                store1(out, s.a.type, first + d, x[4 * c + v] * factor);
            }
        }
    }
}

/* A tile of rows first .. first + TILE - 1 of n, all threads together. */
template <int DIM>
__device__ void get_tile(float *tile, const Rows &r, size_t first, size_t n, const Shape &s) {
    for (int i = (int)threadIdx.x * 4; i < Layout<DIM>::TILE * DIM; i += (int)BLOCK * 4) {
        size_t row = first + (size_t)(i / DIM);
        float four[4];
        get_four(four, r, row, i % DIM, row < n, s);
#pragma unroll
        for (int v = 0; v < 4; v++) {
            tile[i + v] = four[v];
        }
    }
}

/* Over the threads of a row; the same for all of them. */
template <int DIM> __device__ float add_parts(float x) {
#pragma unroll
    for (int bits = Layout<DIM>::PARTS / 2; bits > 0; bits /= 2) {
        x += __shfl_xor_sync(0xffffffffu, x, bits);
    }
    return x;
}

/* What is added to a score: slope times the way from query to key, and the bias. */
__device__ float added(float slope, size_t batch, size_t head, size_t query, size_t key,
                       const Shape &s) {
    float lean = slope * ((float)key - (float)query);
    if (!s.bias || query >= s.a.seq || key >= s.a.keys) {
        return lean;
    }
    const size_t *steps = s.bias_strides;
    size_t at = batch * steps[0] + head * steps[1] + query * steps[2] + key * steps[3];
    return lean + load1(s.bias, s.a.type, at);
}

__device__ bool sees(size_t query, size_t key, const Shape &s) {
    return key < s.a.keys && (!s.a.causal || key <= query) &&
           (!s.a.window || key + s.a.window > query);
}

/* The tile in which the first key lies that a query sees, or any of those behind it. */
__device__ size_t first_seen(size_t query, int tile, const Shape &s) {
    size_t first = s.a.window && query >= s.a.window ? query + 1 - s.a.window : 0;
    return first / (size_t)tile * (size_t)tile;
}

template <int DIM>
__device__ float dot(const float (&x)[Layout<DIM>::MINE], const float *tile_row) {
    float sum = 0;
#pragma unroll
    for (int c = 0; c < Layout<DIM>::MINE / 4; c++) {
        float4 y = *(const float4 *)(tile_row + element_of<DIM>(c));
        sum += x[4 * c] * y.x + x[4 * c + 1] * y.y + x[4 * c + 2] * y.z + x[4 * c + 3] * y.w;
    }
    return add_parts<DIM>(sum);
}

template <int DIM>
__device__ void add_scaled(float (&x)[Layout<DIM>::MINE], float factor, const float *tile_row) {
#pragma unroll
    for (int c = 0; c < Layout<DIM>::MINE / 4; c++) {
        float4 y = *(const float4 *)(tile_row + element_of<DIM>(c));
        x[4 * c] += factor * y.x;
        x[4 * c + 1] += factor * y.y;
        x[4 * c + 2] += factor * y.z;
        x[4 * c + 3] += factor * y.w;
    }
}

/* ---- forward -------------------------------------------------------------------------------- */

template <int DIM>
__global__ void __launch_bounds__(BLOCK)
    forward_kernel(void *o, float *lse, const void *q, const void *k, const void *v, Shape s) {
    using L = Layout<DIM>;
    float *keys = shared_memory<float>(), *values = keys + L::TILE * DIM;
    size_t head = blockIdx.y, batch = blockIdx.z, kv_head = head / (s.a.heads / s.a.kv_heads);
    size_t query = (size_t)blockIdx.x * L::ROWS + threadIdx.x / L::PARTS;
    size_t block_end = min(s.a.seq, ((size_t)blockIdx.x + 1) * L::ROWS);
    size_t end = s.a.causal ? block_end : s.a.keys;
    Rows k_rows = rows_of(k, s.k, batch, kv_head, s.a.head_dim);
    Rows v_rows = rows_of(v, s.v, batch, kv_head, s.a.v_dim);
    float slope = kernel_alibi_slope(head, s.a.heads, s.a.alibi);
    float mine[L::MINE], out[L::MINE] = {}, most = -FLT_MAX, sum = 0;
    get_mine<DIM>(mine, rows_of(q, s.q, batch, head, s.a.head_dim), query, query < s.a.seq, s);
    size_t begin = first_seen((size_t)blockIdx.x * L::ROWS, L::TILE, s);
    for (size_t first = begin; first < end; first += L::TILE) {
        __syncthreads();
        get_tile<DIM>(keys, k_rows, first, s.a.keys, s);
        get_tile<DIM>(values, v_rows, first, s.a.keys, s);
        __syncthreads();
        for (int j = 0; j < L::TILE; j += L::AT_ONCE) {
            float p[L::AT_ONCE], high = most;
#pragma unroll
            for (int u = 0; u < L::AT_ONCE; u++) {
                size_t key = first + (size_t)(j + u);
                float score = dot<DIM>(mine, keys + (j + u) * DIM) * s.a.scale +
                              added(slope, batch, head, query, key, s);
                p[u] = sees(query, key, s) ? score : -INFINITY;
                high = fmaxf(high, p[u]);
            }
            float shrink = expf(most - high);
            most = high;
            sum *= shrink;
#pragma unroll
            for (int c = 0; c < L::MINE; c++) {
                out[c] *= shrink;
            }
#pragma unroll
            for (int u = 0; u < L::AT_ONCE; u++) {
                p[u] = expf(p[u] - most);
                sum += p[u];
                add_scaled<DIM>(out, p[u], values + (j + u) * DIM);
            }
        }
    }
    if (query < s.a.seq) {
        size_t at = s.o.first(batch, head) + query * s.o.row;
        put_mine<DIM>(o, at, s.a.v_dim, out, sum > 0 ? 1.0f / sum : 0.0f, s);
        if (lse && threadIdx.x % L::PARTS == 0) {
            lse[(batch * s.a.heads + head) * s.a.lse_stride + query] = most + logf(sum);
        }
    }
}

/* ---- backward ------------------------------------------------------------------------------- */

/* D[batch, head, query] = sum of d_o o; a warp a row. */
__global__ void __launch_bounds__(THREADS)
    row_dots_kernel(float *dots, const void *d_o, const void *o, Shape s) {
    size_t row = (size_t)blockIdx.x * (THREADS / LANES) + threadIdx.y;
    size_t rows = s.a.batch * s.a.seq * s.a.heads;
    size_t head = row % s.a.heads, token = row / s.a.heads;
    size_t batch = token / s.a.seq, query = token % s.a.seq;
    float sum = 0;
    if (row < rows) {
        size_t first = s.saved.first(batch, head) + query * s.saved.row;
        for (size_t d = threadIdx.x; d < s.a.v_dim; d += LANES) {
            sum += load1(d_o, s.a.type, first + d) * load1(o, s.a.type, first + d);
        }
    }
    sum = warp_sum(sum);
    if (row < rows && threadIdx.x == 0) {
        dots[(batch * s.a.heads + head) * s.a.seq + query] = sum;
    }
}

/* So that exp(score - it) is 0 of a query that is not there, or sees no key. */
__device__ float lse_of(const float *lse, size_t number, size_t query, const Shape &s) {
    float sum = query < s.a.seq ? lse[number * s.a.lse_stride + query] : -INFINITY;
    return sum == -INFINITY ? INFINITY : sum;
}

template <int DIM>
__global__ void __launch_bounds__(BLOCK)
    dq_kernel(void *dq, void *d_bias, const void *d_o, const void *q, const void *k, const void *v,
              const float *lse, const float *dots, Shape s) {
    using L = Layout<DIM>;
    float *keys = shared_memory<float>(), *values = keys + L::TILE * DIM;
    size_t head = blockIdx.y, batch = blockIdx.z, kv_head = head / (s.a.heads / s.a.kv_heads);
    size_t query = (size_t)blockIdx.x * L::ROWS + threadIdx.x / L::PARTS;
    size_t block_end = min(s.a.seq, ((size_t)blockIdx.x + 1) * L::ROWS);
    size_t end = s.a.causal ? block_end : s.a.keys, number = batch * s.a.heads + head;
    bool is_there = query < s.a.seq, writes = is_there && threadIdx.x % L::PARTS == 0;
    float slope = kernel_alibi_slope(head, s.a.heads, s.a.alibi);
    Rows k_rows = rows_of(k, s.k, batch, kv_head, s.a.head_dim);
    Rows v_rows = rows_of(v, s.v, batch, kv_head, s.a.v_dim);
    float mine[L::MINE], d_mine[L::MINE], sum[L::MINE] = {};
    get_mine<DIM>(mine, rows_of(q, s.q, batch, head, s.a.head_dim), query, is_there, s);
    get_mine<DIM>(d_mine, rows_of(d_o, s.saved, batch, head, s.a.v_dim), query, is_there, s);
    float my_lse = lse_of(lse, number, query, s);
    float my_dot = is_there ? dots[number * s.a.seq + query] : 0.0f;
    size_t begin = d_bias ? 0 : first_seen((size_t)blockIdx.x * L::ROWS, L::TILE, s);
    for (size_t first = begin; first < end; first += L::TILE) {
        __syncthreads();
        get_tile<DIM>(keys, k_rows, first, s.a.keys, s);
        get_tile<DIM>(values, v_rows, first, s.a.keys, s);
        __syncthreads();
        for (int j = 0; j < L::TILE; j++) {
            size_t key = first + (size_t)j;
            float score = dot<DIM>(mine, keys + j * DIM) * s.a.scale +
                          added(slope, batch, head, query, key, s);
            float dp = dot<DIM>(d_mine, values + j * DIM);
            float ds = sees(query, key, s) ? expf(score - my_lse) * (dp - my_dot) : 0.0f;
            if (d_bias && writes && key < s.a.keys) {
                store1(d_bias, s.a.type, (number * s.a.seq + query) * s.a.keys + key, ds);
            }
            add_scaled<DIM>(sum, ds, keys + j * DIM);
        }
    }
    for (size_t key = end; d_bias && writes && key < s.a.keys; key++) { /* behind the last tile */
        store1(d_bias, s.a.type, (number * s.a.seq + query) * s.a.keys + key, 0.0f);
    }
    if (is_there) {
        size_t at = s.dq.first(batch, head) + query * s.dq.row;
        put_mine<DIM>(dq, at, s.a.head_dim, sum, s.a.scale, s);
    }
}

template <int DIM>
__global__ void __launch_bounds__(BLOCK)
    dkv_kernel(void *dk, void *dv, const void *d_o, const void *q, const void *k, const void *v,
               const float *lse, const float *dots, Shape s) {
    using L = Layout<DIM>;
    float *queries = shared_memory<float>(), *d_outs = queries + L::TILE * DIM;
    float *tile_lse = d_outs + L::TILE * DIM, *tile_dots = tile_lse + L::TILE;
    size_t kv_head = blockIdx.y, batch = blockIdx.z, group = s.a.heads / s.a.kv_heads;
    size_t first_key = (size_t)blockIdx.x * L::ROWS, key = first_key + threadIdx.x / L::PARTS;
    size_t begin = s.a.causal ? first_key / L::TILE * L::TILE : 0;
    size_t last_seen_by =
        first_key + L::ROWS - 1 + s.a.window; /* a window's, from the last key on */
    size_t end = s.a.window ? min(s.a.seq, last_seen_by) : s.a.seq;
    bool is_there = key < s.a.keys;
    float my_k[L::MINE], my_v[L::MINE], sum_k[L::MINE] = {}, sum_v[L::MINE] = {};
    get_mine<DIM>(my_k, rows_of(k, s.k, batch, kv_head, s.a.head_dim), key, is_there, s);
    get_mine<DIM>(my_v, rows_of(v, s.v, batch, kv_head, s.a.v_dim), key, is_there, s);
    for (size_t head = kv_head * group; head < (kv_head + 1) * group; head++) {
        Rows q_rows = rows_of(q, s.q, batch, head, s.a.head_dim);
        Rows d_rows = rows_of(d_o, s.saved, batch, head, s.a.v_dim);
        size_t number = batch * s.a.heads + head;
        float slope = kernel_alibi_slope(head, s.a.heads, s.a.alibi);
        for (size_t first = begin; first < end; first += L::TILE) {
            __syncthreads();
            get_tile<DIM>(queries, q_rows, first, s.a.seq, s);
            get_tile<DIM>(d_outs, d_rows, first, s.a.seq, s);
            if (threadIdx.x < L::TILE) {
                size_t query = first + threadIdx.x;
                tile_lse[threadIdx.x] = lse_of(lse, number, query, s);
                tile_dots[threadIdx.x] = query < s.a.seq ? dots[number * s.a.seq + query] : 0.0f;
            }
            __syncthreads();
            for (int j = 0; j < L::TILE; j++) {
                size_t query = first + (size_t)j;
                float score = dot<DIM>(my_k, queries + j * DIM) * s.a.scale +
                              added(slope, batch, head, query, key, s);
                float dp = dot<DIM>(my_v, d_outs + j * DIM);
                float p = query < s.a.seq && sees(query, key, s) ? expf(score - tile_lse[j]) : 0.0f;
                add_scaled<DIM>(sum_v, p, d_outs + j * DIM);
                add_scaled<DIM>(sum_k, p * (dp - tile_dots[j]), queries + j * DIM);
            }
        }
    }
    if (is_there) {
        size_t of_k = s.dk.first(batch, kv_head) + key * s.dk.row;
        size_t of_v = s.dv.first(batch, kv_head) + key * s.dv.row;
        put_mine<DIM>(dk, of_k, s.a.head_dim, sum_k, s.a.scale, s);
        put_mine<DIM>(dv, of_v, s.a.v_dim, sum_v, 1.0f, s);
    }
}

/* ---- choosing ------------------------------------------------------------------------------- */

template <int N> struct Dim { static constexpr int value = N; };

template <typename F> KernelCudaFault with_dim(size_t head_dim, F f) {
    return head_dim <= 32    ? f(Dim<32>())
           : head_dim <= 64  ? f(Dim<64>())
           : head_dim <= 128 ? f(Dim<128>())
           : head_dim <= 256 ? f(Dim<256>())
           : head_dim <= 512 ? f(Dim<512>())
           : head_dim <= KERNEL_CUDA_WIDEST_HEAD
               ? f(Dim<KERNEL_CUDA_WIDEST_HEAD>())
               : kernel_cuda_fault("attention: a head_dim of %zu is more than %d", head_dim,
                                   (int)KERNEL_CUDA_WIDEST_HEAD);
}

bool by_four(const void *data, size_t stride, const KernelCudaAttention *a) {
    return (uintptr_t)data % (4 * kernel_cuda_type_bytes(a->type)) == 0 && stride % 4 == 0 &&
           a->head_dim % 4 == 0 && a->v_dim % 4 == 0 && a->v_head % 4 == 0;
}

/* Sequences of so many rows, of heads beside each other, `row` elements apart. */
Lay in_rows(size_t rows, size_t row, size_t head) {
    return Lay{rows * row, head, row};
}

/* Heads one behind the other, where the shape has them so. */
Lay of_keys(const KernelCudaAttention *a, size_t rows, size_t row, size_t head) {
    return a->by_head ? Lay{a->kv_heads * rows * row, rows * row, row} : in_rows(rows, row, head);
}

void lay_out(Shape *s) {
    const KernelCudaAttention *a = &s->a;
    size_t rows = kernel_cuda_query_rows(a), kv_rows = kernel_cuda_key_rows(a);
    size_t o_row = a->heads * a->v_dim;
    s->q = in_rows(rows, a->q_stride, a->head_dim);
    s->k = of_keys(a, kv_rows, a->k_stride, a->head_dim);
    s->v = of_keys(a, kv_rows, a->v_stride, a->v_head);
    s->o = in_rows(a->seq, o_row, a->v_dim);
    s->saved = in_rows(rows, o_row, a->v_dim);
    s->dq = in_rows(a->seq, kernel_cuda_gradient_stride(a, a->heads), a->head_dim);
    size_t dk_row = a->by_head ? a->head_dim : kernel_cuda_gradient_stride(a, a->kv_heads);
    size_t dv_row = a->by_head           ? a->v_dim
                    : a->gradient_stride ? a->gradient_stride
                                         : a->kv_heads * a->v_dim;
    s->dk = of_keys(a, a->keys, dk_row, a->head_dim);
    s->dv = of_keys(a, a->keys, dv_row, a->v_dim);
}

void lay_bias(Shape *s) {
    const KernelCudaAttention *a = &s->a;
    const size_t of_heads[] = {0, 1, a->seq * a->heads, a->heads};
    const size_t of_mask[] = {a->seq * a->seq, 0, a->seq, 1};
    const size_t *lies = a->scored ? a->bias_strides : a->masked ? of_mask : of_heads;
    memcpy(s->bias_strides, lies, sizeof s->bias_strides);
}

Shape shape_of(const KernelCudaAttention *asked, const void *q, const void *k, const void *v,
               const void *bias) {
    Shape s = {};
    KernelCudaAttention *a = &s.a;
    *a = *asked;
    a->v_dim = a->v_dim ? a->v_dim : a->head_dim;
    a->v_head = a->v_head ? a->v_head : a->v_dim;
    a->keys = kernel_cuda_keys(a);
    s.bias = bias;
    lay_bias(&s);
    lay_out(&s);
    s.by_four =
        by_four(q, a->q_stride, a) && by_four(k, a->k_stride, a) && by_four(v, a->v_stride, a);
    return s;
}

size_t widest(const KernelCudaAttention *a) {
    return a->v_dim > a->head_dim ? a->v_dim : a->head_dim;
}

template <typename L> dim3 grid_of(const Shape &s, size_t rows, size_t heads) {
    return dim3(block_each(divide_up(rows, L::ROWS)), (unsigned)heads, (unsigned)s.a.batch);
}

} // namespace

KernelCudaFault kernel_cuda_attention_own_forward(KernelCuda *lane, void *o, float *lse,
                                                  const void *q, const void *k, const void *v,
                                                  const void *bias,
                                                  const KernelCudaAttention *shape) {
    return with_dim(widest(shape), [&](auto dim) {
        constexpr int DIM = decltype(dim)::value;
        using L = Layout<DIM>;
        Shape s = shape_of(shape, q, k, v, bias);
        return launch(lane, "attention", forward_kernel<DIM>, grid_of<L>(s, s.a.seq, s.a.heads),
                      dim3(BLOCK), L::SHARED, o, lse, q, k, v, s);
    });
}

KernelCudaFault kernel_cuda_attention_own_backward(KernelCuda *lane, void *dq, void *dk, void *dv,
                                                   void *d_bias, const void *d_o, const void *q,
                                                   const void *k, const void *v, const void *bias,
                                                   const void *o, const float *lse,
                                                   const KernelCudaAttention *shape) {
    size_t rows = shape->batch * shape->heads * shape->seq, rows_a_block = THREADS / LANES;
    Shape s = shape_of(shape, q, k, v, bias);
    void *scratch;
    s.by_four = s.by_four && by_four(d_o, s.a.heads * s.a.v_dim, &s.a);
    KERNEL_CUDA_TRY(kernel_cuda_scratch(lane, rows * sizeof(float), &scratch));
    const float *dots = (const float *)scratch;
    KERNEL_CUDA_TRY(launch(lane, "attention_backward (dots)", row_dots_kernel,
                           dim3(block_each(divide_up(rows, rows_a_block))),
                           dim3(LANES, (unsigned)rows_a_block), 0, (float *)scratch, d_o, o, s));
    return with_dim(widest(shape), [&](auto dim) -> KernelCudaFault {
        constexpr int DIM = decltype(dim)::value;
        using L = Layout<DIM>;
        KERNEL_CUDA_TRY(launch(lane, "attention_backward (dq)", dq_kernel<DIM>,
                               grid_of<L>(s, s.a.seq, s.a.heads), dim3(BLOCK), L::SHARED, dq,
                               d_bias, d_o, q, k, v, lse, dots, s));
        return launch(lane, "attention_backward (dk, dv)", dkv_kernel<DIM>,
                      grid_of<L>(s, s.a.keys, s.a.kv_heads), dim3(BLOCK), L::SHARED, dk, dv, d_o, q,
                      k, v, lse, dots, s);
    });
}
