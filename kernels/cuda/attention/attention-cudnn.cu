/* kernels/cuda/attention/attention-cudnn.cu - attention by cuDNN's fused kernels. Bound:
 * arithmetic, on tensor cores.
 *
 * cuDNN takes a graph of small operations and recognizes attention in it: products, a scale, a mask
 * made from row and column numbers, softmax taken apart, for both directions. (Its single operation
 * for attention knows no causal mask before 9.21, so this is the form that all of 9.6 and later
 * take.) Only q, k, v, o, their gradients, the logsumexp and two scratch arrays exist in memory;
 * all between is virtual, and no seq x seq array is held. A plan is made once a shape and kept.
 *
 * Matrices are [batch, heads, rows, columns] with strides, so k stands as its transpose in q k^T,
 * and grouped heads are fewer heads of k and v. Numbers passed by value (scale, 1, the least) lie
 * in host memory. dq is added up in fp32 by many blocks (DQ_SUM, zeros at first), then rounded.
 *
 * These are the graphs of NVIDIA's cudnn-frontend: for a described H200, cuDNN 9.19 makes of either
 * the same kernels, byte by byte (kernels/README.md).
 */
#include <stdio.h>

#include <algorithm>
#include <utility>

#include "kernels/cuda/attention/attention-cudnn.h"
#include "kernels/cuda/attention/cudnn-graph.cuh"

using namespace cu;

namespace {

/* Tensors that are more than virtual, by the number cuDNN knows them by. */
enum Uid : int64_t {
    Q = 1,
    K,
    V,
    O,
    LSE,
    D_O,
    DQ,
    DK,
    DV,
    SCALE,
    ONE,
    LEAST,
    DQ_SUM,
    ROW_DOTS
};

/* ---- attention ------------------------------------------------------------------------------ */

struct Shape {
    int64_t b, h, hk, s, t, d, rows_apart, keys_apart; /* s queries, t keys */
    int64_t q_stride, k_stride, v_stride, lse_stride, dq_stride, dkv_stride;
    bool causal, by_head;

    explicit Shape(const KernelCudaAttention *a)
        : b((int64_t)a->batch), h((int64_t)a->heads), hk((int64_t)a->kv_heads), s((int64_t)a->seq),
          t((int64_t)kernel_cuda_keys(a)), d((int64_t)a->head_dim),
          rows_apart((int64_t)kernel_cuda_query_rows(a)),
          keys_apart((int64_t)kernel_cuda_key_rows(a)), q_stride((int64_t)a->q_stride),
          k_stride((int64_t)a->k_stride), v_stride((int64_t)a->v_stride),
          lse_stride((int64_t)a->lse_stride),
          dq_stride((int64_t)kernel_cuda_gradient_stride(a, a->heads)),
          dkv_stride(a->by_head ? d : (int64_t)kernel_cuda_gradient_stride(a, a->kv_heads)),
          causal(a->causal), by_head(a->by_head) {
    }
    Dims scores() const {
        return {{b, h, s, t}};
    }
    Dims rows() const {
        return {{b, h, s, 1}};
    }
    Dims queries() const {
        return {{b, h, s, d}};
    }
    Dims keys() const {
        return {{b, hk, t, d}};
    }
    /* Of k, v and their gradients, whose sequences are so many rows apart. */
    Dims key_strides(int64_t apart, int64_t row) const {
        return by_head ? Dims{{hk * apart * row, apart * row, row, 1}}
                       : Dims{{apart * row, d, row, 1}};
    }
};

/* [batch, heads, seq, head_dim] inside rows of tokens, of which a sequence has so many. */
cudnnBackendDescriptor_t heads(Graph *g, Uid uid, const Shape &z, int64_t rows, int64_t row) {
    return in_memory(g, uid, z.queries(), {{rows * row, z.d, row, 1}}, g->type);
}

cudnnBackendDescriptor_t keys(Graph *g, Uid uid, const Shape &z, int64_t rows, int64_t row) {
    return in_memory(g, uid, z.keys(), z.key_strides(rows, row), g->type);
}

cudnnBackendDescriptor_t keys_transposed(Graph *g, Uid uid, const Shape &z, int64_t row) {
    Dims strides = z.key_strides(z.keys_apart, row);
    std::swap(strides.n[2], strides.n[3]);
    return in_memory(g, uid, {{z.b, z.hk, z.d, z.t}}, strides, g->type);
}

cudnnBackendDescriptor_t logsumexp(Graph *g, const Shape &z) {
    return in_memory(g, LSE, z.rows(), {{z.h * z.lse_stride, z.lse_stride, 1, 1}},
                     CUDNN_DATA_FLOAT);
}

/* Scores of keys after the query become the least number. */
cudnnBackendDescriptor_t mask(Graph *g, const Shape &z, cudnnBackendDescriptor_t scores) {
    if (!z.causal) {
        return scores;
    }
    cudnnBackendDescriptor_t row = between(g, z.scores(), CUDNN_DATA_INT32);
    cudnnBackendDescriptor_t column = between(g, z.scores(), CUDNN_DATA_INT32);
    cudnnBackendDescriptor_t seen = between(g, z.scores(), CUDNN_DATA_BOOLEAN);
    pointwise_into(g, CUDNN_POINTWISE_GEN_INDEX, row, scores, NULL, NULL, 2);
    pointwise_into(g, CUDNN_POINTWISE_GEN_INDEX, column, scores, NULL, NULL, 3);
    pointwise_into(g, CUDNN_POINTWISE_CMP_GE, seen, row, column);
    return pointwise(g, CUDNN_POINTWISE_BINARY_SELECT, z.scores(), scores, number(g, LEAST), seen);
}

void forward_graph(Graph *g, const Shape &z) {
    cudnnBackendDescriptor_t q = heads(g, Q, z, z.rows_apart, z.q_stride), scale = number(g, SCALE);
    cudnnBackendDescriptor_t kt = keys_transposed(g, K, z, z.k_stride);
    cudnnBackendDescriptor_t s = product(g, q, kt, between(g, z.scores()));
    s = mask(g, z, pointwise(g, CUDNN_POINTWISE_MUL, z.scores(), s, scale));
    cudnnBackendDescriptor_t most = reduce(g, CUDNN_REDUCE_TENSOR_MAX, s, between(g, z.rows()));
    s = pointwise(g, CUDNN_POINTWISE_SUB, z.scores(), s, most);
    s = pointwise(g, CUDNN_POINTWISE_EXP, z.scores(), s);
    cudnnBackendDescriptor_t sum = reduce(g, CUDNN_REDUCE_TENSOR_ADD, s, between(g, z.rows()));
    cudnnBackendDescriptor_t log = pointwise(g, CUDNN_POINTWISE_LOG, z.rows(), sum);
    pointwise_into(g, CUDNN_POINTWISE_ADD, logsumexp(g, z), most, log);
    s = pointwise_into(g, CUDNN_POINTWISE_DIV, between(g, z.scores(), g->type), s, sum);
    product(g, s, keys(g, V, z, z.keys_apart, z.v_stride), heads(g, O, z, z.s, z.h * z.d));
}

/* d_k or d_v: the product for all query heads, and their sum where a group shares one. */
void kv_gradient(Graph *g, const Shape &z, cudnnBackendDescriptor_t p, cudnnBackendDescriptor_t by,
                 Uid uid) {
    cudnnBackendDescriptor_t out = keys(g, uid, z, z.t, z.dkv_stride);
    cudnnBackendDescriptor_t turned =
        tensor(g, g->next_uid++, {{z.b, z.h, z.t, z.s}}, {{z.h * z.s * z.t, z.s * z.t, 1, z.t}},
               g->type, true, false);
    reshape(g, p, turned);
    if (z.h == z.hk) {
        product(g, turned, by, out);
        return;
    }
    cudnnBackendDescriptor_t each = between(g, {{z.b, z.h, z.t, z.d}}, g->type);
    reduce(g, CUDNN_REDUCE_TENSOR_ADD, product(g, turned, by, each), out);
}

void backward_graph(Graph *g, const Shape &z) {
    cudnnBackendDescriptor_t q = heads(g, Q, z, z.rows_apart, z.q_stride), scale = number(g, SCALE);
    cudnnBackendDescriptor_t o = heads(g, O, z, z.rows_apart, z.h * z.d);
    cudnnBackendDescriptor_t d_o = heads(g, D_O, z, z.rows_apart, z.h * z.d);
    cudnnBackendDescriptor_t kt = keys_transposed(g, K, z, z.k_stride);
    cudnnBackendDescriptor_t vt = keys_transposed(g, V, z, z.v_stride);

    cudnnBackendDescriptor_t dots = pointwise(g, CUDNN_POINTWISE_MUL, z.queries(), d_o, o);
    dots = reduce(g, CUDNN_REDUCE_TENSOR_ADD, dots, between(g, z.rows()));
    dots =
        pointwise_into(g, CUDNN_POINTWISE_MUL,
                       in_memory(g, ROW_DOTS, z.rows(), {{z.h * z.s, z.s, 1, 1}}, CUDNN_DATA_FLOAT),
                       dots, number(g, ONE));

    cudnnBackendDescriptor_t p = product(g, q, kt, between(g, z.scores()));
    p = pointwise(g, CUDNN_POINTWISE_MUL, z.scores(), p, scale);
    p = mask(g, z, pointwise(g, CUDNN_POINTWISE_SUB, z.scores(), p, logsumexp(g, z)));
    p = pointwise(g, CUDNN_POINTWISE_EXP, z.scores(), p);
    kv_gradient(g, z, p, d_o, DV);

    cudnnBackendDescriptor_t ds = product(g, d_o, vt, between(g, z.scores()));
    ds = pointwise(g, CUDNN_POINTWISE_SUB, z.scores(), ds, dots);
    ds = pointwise(g, CUDNN_POINTWISE_MUL, z.scores(), ds, p);
    ds = pointwise(g, CUDNN_POINTWISE_MUL, z.scores(), ds, scale);
    kv_gradient(g, z, ds, q, DK);

    cudnnBackendDescriptor_t k = tensor(
        g, g->next_uid++, z.keys(), z.key_strides(z.keys_apart, z.k_stride), g->type, true, false);
    /* In plain order, as cudnn-frontend has it since 1.8, which is the first to know cuDNN 9.6;
     * before, it asked for 16 x 16 elements together. Of 9.19 both make the same kernels. */
    cudnnBackendDescriptor_t sum =
        in_memory(g, DQ_SUM, z.queries(), {{z.h * z.s * z.d, z.s * z.d, z.d, 1}}, CUDNN_DATA_FLOAT);
    product(g, ds, reshape(g, kt, k), sum);
    pointwise_into(g, CUDNN_POINTWISE_IDENTITY, heads(g, DQ, z, z.s, z.dq_stride), sum);
}

void make_plan(Plan *p, const Target &target, const KernelCudaAttention *a, bool backward) {
    p->graph.type = a->type == KERNEL_CUDA_BF16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_HALF;
    (backward ? backward_graph : forward_graph)(&p->graph, Shape(a));
    plan_graph(p, target);
}

} // namespace

/* A shape one way round, and its plan; without one cuDNN does not take it. Each is made when it is
 * first asked for: that takes a second or so, and training asks for either of shapes of its own,
 * where gradients lie in one array's rows. */
struct KernelCudaCudnnShape {
    KernelCudaAttention shape;
    bool backward;
    Plan plan;
};

struct KernelCudaCudnn {
    cudnnHandle_t handle;
    std::vector<std::unique_ptr<KernelCudaCudnnShape>> shapes;
};

/* Attention goes by this room's own kernels then; only who reads the report is told why. */
static void refuse(KernelCuda *lane, const char *why) {
    if (!lane->refusal[0]) {
        snprintf(lane->refusal, sizeof lane->refusal, "%s", why);
        std::replace(lane->refusal, lane->refusal + strlen(lane->refusal), '\n', ' ');
    }
}

static KernelCudaCudnn *cudnn_of(KernelCuda *lane) {
    if (!lane->cudnn) {
        cudnnHandle_t handle = NULL;
        cudnnStatus_t created = dnn().Create(&handle);
        cudnnStatus_t status =
            created == CUDNN_STATUS_SUCCESS ? dnn().SetStream(handle, lane->stream) : created;
        if (status != CUDNN_STATUS_SUCCESS) {
            refuse(lane, kernel_cuda_fault("cudnnCreate: %s", dnn().GetErrorString(status)));
            if (created == CUDNN_STATUS_SUCCESS) {
                dnn().Destroy(handle);
            }
            handle = NULL;
        }
        lane->cudnn = new KernelCudaCudnn{handle, {}};
    }
    return lane->cudnn;
}

static bool same(const KernelCudaAttention *a, const KernelCudaAttention *b) {
    return a->batch == b->batch && a->heads == b->heads && a->kv_heads == b->kv_heads &&
           a->seq == b->seq && a->head_dim == b->head_dim && a->q_stride == b->q_stride &&
           a->k_stride == b->k_stride && a->v_stride == b->v_stride &&
           a->lse_stride == b->lse_stride && a->gradient_stride == b->gradient_stride &&
           a->causal == b->causal && a->type == b->type && a->keys == b->keys &&
           a->rows == b->rows && a->by_head == b->by_head;
}

static KernelCudaCudnnShape *shape_of(KernelCuda *lane, const KernelCudaAttention *asked,
                                      bool backward) {
    KernelCudaCudnn *cudnn = cudnn_of(lane);
    KernelCudaAttention a = *asked;
    a.gradient_stride = backward ? a.gradient_stride : 0; /* which forward never meets */
    for (const auto &known : cudnn->shapes) {
        if (known->backward == backward && same(&known->shape, &a)) {
            return known.get();
        }
    }
    std::unique_ptr<KernelCudaCudnnShape> made(new KernelCudaCudnnShape());
    made->shape = a;
    made->backward = backward;
    make_plan(&made->plan, {cudnn->handle, NULL}, &a, backward);
    if (!made->plan.plan) {
        refuse(lane, made->plan.graph.fault);
    }
    cudnn->shapes.push_back(std::move(made));
    return cudnn->shapes.back().get();
}

bool kernel_cuda_cudnn_takes(KernelCuda *lane, const KernelCudaAttention *a, bool backward) {
    const char *why;
    const KernelCudnn *found = kernel_cudnn(&why);
    if (!found && a->type != KERNEL_CUDA_F32) {
        refuse(lane, why);
    }
    return found && kernel_cuda_cudnn_fits(a, found->GetVersion(), lane->major) &&
           cudnn_of(lane)->handle && shape_of(lane, a, backward)->plan.plan;
}

/* A shape that was planned and cannot be run is not taken any more. */
static KernelCudaFault taken_or_not(KernelCuda *lane, KernelCudaCudnnShape *known,
                                    KernelCudaFault fault) {
    if (fault) {
        refuse(lane, fault);
        known->plan.plan = NULL;
    }
    return fault;
}

KernelCudaFault kernel_cuda_cudnn_forward(KernelCuda *lane, void *o, float *lse, const void *q,
                                          const void *k, const void *v,
                                          const KernelCudaAttention *a) {
    KernelCudaCudnnShape *known = shape_of(lane, a, false);
    const float least = kernel_cuda_cudnn_least(dnn().GetVersion());
    void *workspace;
    Bindings b;
    KERNEL_CUDA_TRY(kernel_cuda_scratch(lane, (size_t)known->plan.workspace_bytes + 1, &workspace));
    b.bind(Q, q), b.bind(K, k), b.bind(V, v), b.bind(O, o), b.bind(LSE, lse);
    b.bind(SCALE, &a->scale);
    if (a->causal) {
        b.bind(LEAST, &least);
    }
    return taken_or_not(lane, known,
                        execute(lane, lane->cudnn->handle, known->plan, &b, workspace));
}

KernelCudaFault kernel_cuda_cudnn_backward(KernelCuda *lane, void *dq, void *dk, void *dv,
                                           const void *d_o, const void *q, const void *k,
                                           const void *v, const void *o, const float *lse,
                                           const KernelCudaAttention *a) {
    KernelCudaCudnnShape *known = shape_of(lane, a, true);
    const float least = kernel_cuda_cudnn_least(dnn().GetVersion()), one = 1;
    size_t rows = a->batch * a->heads * a->seq, border = 256; /* bytes; where arrays begin */
    size_t dots_bytes = (rows * sizeof(float) + border - 1) / border * border;
    size_t sum_bytes = (rows * a->head_dim * sizeof(float) + border - 1) / border * border;
    void *scratch;
    Bindings b;
    KERNEL_CUDA_TRY(kernel_cuda_scratch(
        lane, dots_bytes + sum_bytes + (size_t)known->plan.workspace_bytes + 1, &scratch));
    char *at = (char *)scratch;
    /* Blocks add to it. NVIDIA's cudnn-frontend zeroes it before each run for versions before 9.6
     * alone (the dots never): later ones do so themselves, it says. Nothing shows it without a GPU,
     * and once more costs some 0.3 % of a step. */
    KERNEL_CUDA_TRY(
        kernel_cuda_check("cudaMemsetAsync (sums of dq)",
                          cudaMemsetAsync(at + dots_bytes, 0, sum_bytes, lane->stream)));
    b.bind(Q, q), b.bind(K, k), b.bind(V, v), b.bind(O, o), b.bind(LSE, lse), b.bind(D_O, d_o);
    b.bind(DQ, dq), b.bind(DK, dk), b.bind(DV, dv);
    b.bind(SCALE, &a->scale), b.bind(ONE, &one);
    b.bind(ROW_DOTS, at), b.bind(DQ_SUM, at + dots_bytes);
    if (a->causal) {
        b.bind(LEAST, &least);
    }
    return taken_or_not(
        lane, known,
        execute(lane, lane->cudnn->handle, known->plan, &b, at + dots_bytes + sum_bytes));
}

void kernel_cuda_cudnn_free(KernelCuda *lane) {
    if (lane->cudnn) {
        lane->cudnn->shapes.clear();
        if (lane->cudnn->handle) {
            dnn().Destroy(lane->cudnn->handle);
        }
        delete lane->cudnn;
        lane->cudnn = NULL;
    }
}

const char *kernel_cuda_cudnn_version(void) {
    static thread_local char text[48];
    const char *why;
    const KernelCudnn *found = kernel_cudnn(&why);
    if (!found) {
        return "no cuDNN";
    }
    size_t version = found->GetVersion();
    snprintf(text, sizeof text, "cuDNN %zu.%zu.%zu", version / 10000, version / 100 % 100,
             version % 100);
    return text;
}

KernelCudaFault kernel_cuda_cudnn_plan_for(const char *device, const KernelCudaAttention *shape,
                                           bool backward, size_t *ret_workspace_bytes) {
    const char *why;
    if (!kernel_cudnn(&why)) {
        return kernel_cuda_fault("%s", why);
    }
    Plan plan;
    cudnnBackendDescriptor_t described = plan.graph.create(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
    plan.graph.set(described, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, device,
                   (int64_t)strlen(device) + 1);
    plan.graph.finalize(described, "cudnnBackendFinalize (description of a device)");
    make_plan(&plan, {NULL, described}, shape, backward);
    *ret_workspace_bytes = (size_t)plan.workspace_bytes;
    return plan.graph.fault;
}
