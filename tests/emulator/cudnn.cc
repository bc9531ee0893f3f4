/* tests/emulator/cudnn.cc - where cuDNN would be asked, so that what goes to it is seen without a GPU.
 *
 * It takes each shape that kernels/cuda would ask cuDNN for, refuses arrays that do not begin on 16
 * bytes, which a GPU would fault on, and rounds where tensor cores make cuDNN round: the
 * probabilities before they meet v and d_o, the gradients of the scores before they meet k and q,
 * and each head's part of dk and dv where a group of heads shares them. Bounds that this keeps are
 * ones that a GPU can keep. Like cuDNN's own on Hopper, backward takes rows that are not there for
 * zeros (kernel_cuda_cudnn_sees_beyond()). A thread a row; written down from the formulas, so it is
 * a second opinion on kernels/cuda/attention/attention-own.cu too.
 */
#include <vector>

#include "kernels/cuda/attention/attention-private.h"
#include "kernels/cuda/device.cuh"

namespace {

using namespace cu;

struct Shape {
    KernelCudaAttention a;

    size_t kv_head(size_t head) const {
        return head / (a.heads / a.kv_heads);
    }
    /* Where a row of q begins, of k, of v, of o and its gradient, which are dense, of dq, of dk or dv. */
    size_t q(size_t batch, size_t head, size_t row) const {
        return (batch * kernel_cuda_query_rows(&a) + row) * a.q_stride + head * a.head_dim;
    }
    size_t of_keys(size_t batch, size_t kv_head, size_t row, size_t rows, size_t stride) const {
        return a.by_head ? ((batch * a.kv_heads + kv_head) * rows + row) * stride
                         : (batch * rows + row) * stride + kv_head * a.head_dim;
    }
    size_t k(size_t batch, size_t head, size_t row) const {
        return of_keys(batch, kv_head(head), row, kernel_cuda_key_rows(&a), a.k_stride);
    }
    size_t v(size_t batch, size_t head, size_t row) const {
        return of_keys(batch, kv_head(head), row, kernel_cuda_key_rows(&a), a.v_stride);
    }
    size_t out(size_t batch, size_t head, size_t row) const {
        return ((batch * a.seq + row) * a.heads + head) * a.head_dim;
    }
    /* o and its gradient as backward is given them. */
    size_t saved(size_t batch, size_t head, size_t row) const {
        return ((batch * kernel_cuda_query_rows(&a) + row) * a.heads + head) * a.head_dim;
    }
    size_t dq(size_t batch, size_t head, size_t row) const {
        return (batch * a.seq + row) * kernel_cuda_gradient_stride(&a, a.heads) + head * a.head_dim;
    }
    size_t dkv(size_t batch, size_t kv_head, size_t row) const {
        size_t row_apart = a.by_head ? a.head_dim : kernel_cuda_gradient_stride(&a, a.kv_heads);
        return of_keys(batch, kv_head, row, keys(), row_apart);
    }
    size_t keys() const {
        return kernel_cuda_keys(&a);
    }
    size_t lse(size_t batch, size_t head, size_t row) const {
        return (batch * a.heads + head) * a.lse_stride + row;
    }
    bool sees(size_t query, size_t key) const {
        return !a.causal || key <= query;
    }
};

template <typename T> float dot(const T *x, const T *y, size_t n) {
    float sum = 0;
    for (size_t i = 0; i < n; i++) {
        sum += widen(x[i]) * widen(y[i]);
    }
    return sum;
}

template <typename T> void add_scaled(std::vector<float> *sum, float factor, const T *x) {
    for (size_t i = 0; i < sum->size(); i++) {
        (*sum)[i] += factor * widen(x[i]);
    }
}

template <typename T> void put(T *to, const std::vector<float> &x, float factor) {
    for (size_t i = 0; i < x.size(); i++) {
        narrow(&to[i], factor * x[i]);
    }
}

template <typename T>
void forward_kernel(T *o, float *lse, const T *q, const T *k, const T *v, Shape s) {
    size_t query = blockIdx.x, head = blockIdx.y, batch = blockIdx.z, dim = s.a.head_dim;
    std::vector<float> score(s.keys(), -INFINITY), out(dim);
    float most = -INFINITY, sum = 0;
    for (size_t key = 0; key < s.keys(); key++) {
        if (s.sees(query, key)) {
            score[key] =
                s.a.scale * dot(q + s.q(batch, head, query), k + s.k(batch, head, key), dim);
            most = fmaxf(most, score[key]);
        }
    }
    for (size_t key = 0; key < s.keys(); key++) {
        float p = expf(score[key] - most);
        sum += p;
        add_scaled(&out, rounded<T>(p), v + s.v(batch, head, key));
    }
    put(o + s.out(batch, head, query), out, 1 / sum);
    lse[s.lse(batch, head, query)] = most + logf(sum);
}

/* What backward reads. */
template <typename T> struct Saved {
    const T *d_o, *q, *k, *v, *o;
    const float *lse;
};

/* Of a query and a key: p, and the gradient of the score. */
template <typename T> struct Pair {
    float p, ds;
    Pair(const Saved<T> &x, const Shape &s, size_t batch, size_t head, size_t query, size_t key) {
        size_t dim = s.a.head_dim, at = s.saved(batch, head, query);
        float score =
            s.a.scale * dot(x.q + s.q(batch, head, query), x.k + s.k(batch, head, key), dim);
        float row_dot = dot(x.d_o + at, x.o + at, dim);
        float exact = expf(score - x.lse[s.lse(batch, head, query)]);
        p = rounded<T>(exact);
        ds = rounded<T>(exact * (dot(x.d_o + at, x.v + s.v(batch, head, key), dim) - row_dot));
    }
};

/* What a row of zeros adds that is not there: nothing, or NaN where its p is beyond range. */
float of_zeros(float lse) {
    return expf(0 - lse) * 0;
}

template <typename T> void dq_kernel(T *dq, Saved<T> x, Shape s) {
    size_t query = blockIdx.x, head = blockIdx.y, batch = blockIdx.z;
    std::vector<float> sum(s.a.head_dim);
    for (size_t key = 0; key < s.keys() && s.sees(query, key); key++) {
        add_scaled(&sum, Pair<T>(x, s, batch, head, query, key).ds, x.k + s.k(batch, head, key));
    }
    if (s.keys() % 128 == 64 && s.sees(query, s.keys())) {
        sum[0] += of_zeros(x.lse[s.lse(batch, head, query)]);
    }
    put(dq + s.dq(batch, head, query), sum, s.a.scale);
}

template <typename T> void dkv_kernel(T *dk, T *dv, Saved<T> x, Shape s) {
    size_t key = blockIdx.x, kv_head = blockIdx.y, batch = blockIdx.z;
    size_t dim = s.a.head_dim, group = s.a.heads / s.a.kv_heads;
    std::vector<float> sum_k(dim), sum_v(dim);
    for (size_t head = kv_head * group; head < (kv_head + 1) * group; head++) {
        std::vector<float> one_k(dim), one_v(dim);
        for (size_t query = s.a.causal ? key : 0; query < s.a.seq; query++) {
            Pair<T> pair(x, s, batch, head, query, key);
            add_scaled(&one_k, pair.ds, x.q + s.q(batch, head, query));
            add_scaled(&one_v, pair.p, x.d_o + s.saved(batch, head, query));
        }
        if (s.keys() % 128 == 0 && s.a.seq % 64) {
            one_k[0] += of_zeros(x.lse[s.lse(batch, head, s.a.seq - 1)]);
            one_v[0] += of_zeros(x.lse[s.lse(batch, head, s.a.seq - 1)]);
        }
        for (size_t d = 0; d < dim; d++) {
            sum_k[d] += group > 1 ? rounded<T>(s.a.scale * one_k[d]) : s.a.scale * one_k[d];
            sum_v[d] += group > 1 ? rounded<T>(one_v[d]) : one_v[d];
        }
    }
    put(dk + s.dkv(batch, kv_head, key), sum_k, 1);
    put(dv + s.dkv(batch, kv_head, key), sum_v, 1);
}

KernelCudaFault check_alignment(std::initializer_list<const void *> arrays) {
    for (const void *array : arrays) {
        if ((uintptr_t)array % KERNEL_CUDA_CUDNN_ALIGNMENT) {
            return kernel_cuda_fault("emulated cuDNN: %p does not begin on 16 bytes", array);
        }
    }
    return NULL;
}

dim3 grid_of(const KernelCudaAttention *a, size_t rows, size_t heads) {
    return dim3((unsigned)rows, (unsigned)heads, (unsigned)a->batch);
}

} // namespace

const char *kernel_cuda_cudnn_version(void) {
    return "emulated cuDNN";
}

void kernel_cuda_cudnn_free(KernelCuda *) {
}

bool kernel_cuda_cudnn_takes(KernelCuda *lane, const KernelCudaAttention *shape, bool) {
    const size_t version = 91900; /* as is installed where this was written */
    return kernel_cuda_cudnn_fits(shape, version, lane->major);
}

KernelCudaFault kernel_cuda_cudnn_forward(KernelCuda *lane, void *o, float *lse, const void *q,
                                          const void *k, const void *v,
                                          const KernelCudaAttention *shape) {
    KERNEL_CUDA_TRY(check_alignment({o, lse, q, k, v}));
    return with_type(shape->type, [&](auto t) {
        using T = decltype(t);
        return launch(lane, "emulated cuDNN", forward_kernel<T>,
                      grid_of(shape, shape->seq, shape->heads), dim3(1), 0, (T *)o, lse,
                      (const T *)q, (const T *)k, (const T *)v, Shape{*shape});
    });
}

KernelCudaFault kernel_cuda_cudnn_backward(KernelCuda *lane, void *dq, void *dk, void *dv,
                                           const void *d_o, const void *q, const void *k,
                                           const void *v, const void *o, const float *lse,
                                           const KernelCudaAttention *shape) {
    KERNEL_CUDA_TRY(check_alignment({dq, dk, dv, d_o, q, k, v, o, lse}));
    return with_type(shape->type, [&](auto t) -> KernelCudaFault {
        using T = decltype(t);
        Saved<T> saved = {(const T *)d_o, (const T *)q, (const T *)k,
                          (const T *)v,   (const T *)o, lse};
        KERNEL_CUDA_TRY(launch(lane, "emulated cuDNN (dq)", dq_kernel<T>,
                               grid_of(shape, shape->seq, shape->heads), dim3(1), 0, (T *)dq, saved,
                               Shape{*shape}));
        return launch(lane, "emulated cuDNN (dk, dv)", dkv_kernel<T>,
                      grid_of(shape, kernel_cuda_keys(shape), shape->kv_heads), dim3(1), 0, (T *)dk,
                      (T *)dv, saved, Shape{*shape});
    });
}
