/* kernels/cuda/attention-cudnn.cu - attention by cuDNN's fused kernels. Bound: arithmetic, on
 * tensor cores.
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
#include <cudnn.h>
#include <math.h>
#include <string.h>

#include <algorithm>
#include <memory>

#include "kernels/cuda/attention-cudnn.h"
#include "kernels/cuda/attention-private.h"

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

struct Dims {
    int64_t n[4];
};

/* Whatever cuDNN's graph interface makes; destroyed with its owner. */
typedef std::unique_ptr<void, void (*)(cudnnBackendDescriptor_t)> Handle;

void destroy(cudnnBackendDescriptor_t descriptor) {
    cudnnBackendDestroyDescriptor(descriptor);
}

/* The graph under construction. The first fault is kept, and everything after it does nothing, so
 * that a graph can be written down as a sequence of calls. */
struct Graph {
    std::vector<Handle> all;
    std::vector<cudnnBackendDescriptor_t> operations;
    KernelCudaFault fault = NULL;
    int64_t next_uid = 100;
    cudnnDataType_t type; /* of q, k, v and their like */

    void check(const char *call, cudnnStatus_t status) {
        if (status != CUDNN_STATUS_SUCCESS && !fault) {
            char why[160] = "";
            cudnnGetLastErrorString(why, sizeof why);
            fault = kernel_cuda_fault("%s: %s %s", call, cudnnGetErrorString(status), why);
        }
    }

    cudnnBackendDescriptor_t create(cudnnBackendDescriptorType_t kind) {
        cudnnBackendDescriptor_t made = NULL;
        check("cudnnBackendCreateDescriptor", cudnnBackendCreateDescriptor(kind, &made));
        all.emplace_back(made, destroy);
        return made;
    }

    template <typename T>
    void set(cudnnBackendDescriptor_t of, cudnnBackendAttributeName_t name,
             cudnnBackendAttributeType_t type_of_it, const T *values, int64_t n = 1) {
        if (!fault) {
            check("cudnnBackendSetAttribute",
                  cudnnBackendSetAttribute(of, name, type_of_it, n, values));
        }
    }

    void set(cudnnBackendDescriptor_t of, cudnnBackendAttributeName_t name,
             cudnnBackendDescriptor_t value) {
        set(of, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, &value);
    }

    void finalize(cudnnBackendDescriptor_t what, const char *call) {
        if (!fault) {
            check(call, cudnnBackendFinalize(what));
        }
    }

    void add(cudnnBackendDescriptor_t operation) {
        finalize(operation, "cudnnBackendFinalize (operation)");
        operations.push_back(operation);
    }
};

/* ---- tensors -------------------------------------------------------------------------------- */

cudnnBackendDescriptor_t tensor(Graph *g, int64_t uid, Dims dims, Dims strides,
                                cudnnDataType_t type, bool is_virtual, bool by_value) {
    cudnnBackendDescriptor_t t = g->create(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    int64_t alignment = KERNEL_CUDA_CUDNN_ALIGNMENT; /* bytes; of a number by value, its own size */
    if (by_value) {
        alignment = 4;
    }
    g->set(t, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, &uid);
    g->set(t, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, &type);
    g->set(t, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, dims.n, 4);
    g->set(t, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, strides.n, 4);
    g->set(t, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, &alignment);
    g->set(t, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, &is_virtual);
    g->set(t, CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, &by_value);
    g->finalize(t, "cudnnBackendFinalize (tensor)");
    return t;
}

cudnnBackendDescriptor_t in_memory(Graph *g, Uid uid, Dims dims, Dims strides,
                                   cudnnDataType_t type) {
    return tensor(g, uid, dims, strides, type, false, false);
}

/* A float in host memory. */
cudnnBackendDescriptor_t number(Graph *g, Uid uid) {
    return tensor(g, uid, {{1, 1, 1, 1}}, {{1, 1, 1, 1}}, CUDNN_DATA_FLOAT, false, true);
}

/* A dense one that is nowhere. */
cudnnBackendDescriptor_t between(Graph *g, Dims d, cudnnDataType_t type = CUDNN_DATA_FLOAT) {
    Dims strides = {{d.n[1] * d.n[2] * d.n[3], d.n[2] * d.n[3], d.n[3], 1}};
    return tensor(g, g->next_uid++, d, strides, type, true, false);
}

/* ---- operations; each returns its output ---------------------------------------------------- */

cudnnBackendDescriptor_t pointwise_into(Graph *g, cudnnPointwiseMode_t mode,
                                        cudnnBackendDescriptor_t y, cudnnBackendDescriptor_t x,
                                        cudnnBackendDescriptor_t b = NULL,
                                        cudnnBackendDescriptor_t t = NULL, int64_t axis = -1) {
    cudnnBackendDescriptor_t kind = g->create(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    cudnnDataType_t precision = CUDNN_DATA_FLOAT;
    g->set(kind, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, &mode);
    g->set(kind, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, &precision);
    if (axis >= 0) {
        g->set(kind, CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, &axis);
    }
    g->finalize(kind, "cudnnBackendFinalize (pointwise)");
    cudnnBackendDescriptor_t operation = g->create(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    g->set(operation, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, kind);
    g->set(operation, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x);
    if (b) {
        g->set(operation, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, b);
    }
    if (t) {
        g->set(operation, CUDNN_ATTR_OPERATION_POINTWISE_TDESC, t);
    }
    g->set(operation, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
    g->add(operation);
    return y;
}

cudnnBackendDescriptor_t pointwise(Graph *g, cudnnPointwiseMode_t mode, Dims dims,
                                   cudnnBackendDescriptor_t x, cudnnBackendDescriptor_t b = NULL,
                                   cudnnBackendDescriptor_t t = NULL) {
    return pointwise_into(g, mode, between(g, dims), x, b, t);
}

cudnnBackendDescriptor_t product(Graph *g, cudnnBackendDescriptor_t a, cudnnBackendDescriptor_t b,
                                 cudnnBackendDescriptor_t y) {
    cudnnBackendDescriptor_t kind = g->create(CUDNN_BACKEND_MATMUL_DESCRIPTOR);
    cudnnDataType_t precision = CUDNN_DATA_FLOAT;
    g->set(kind, CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, &precision);
    g->finalize(kind, "cudnnBackendFinalize (matmul)");
    cudnnBackendDescriptor_t operation = g->create(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
    g->set(operation, CUDNN_ATTR_OPERATION_MATMUL_ADESC, a);
    g->set(operation, CUDNN_ATTR_OPERATION_MATMUL_BDESC, b);
    g->set(operation, CUDNN_ATTR_OPERATION_MATMUL_CDESC, y);
    g->set(operation, CUDNN_ATTR_OPERATION_MATMUL_DESC, kind);
    g->add(operation);
    return y;
}

cudnnBackendDescriptor_t reduce(Graph *g, cudnnReduceTensorOp_t op, cudnnBackendDescriptor_t x,
                                cudnnBackendDescriptor_t y) {
    cudnnBackendDescriptor_t kind = g->create(CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
    cudnnDataType_t precision = CUDNN_DATA_FLOAT;
    g->set(kind, CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, &op);
    g->set(kind, CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, &precision);
    g->finalize(kind, "cudnnBackendFinalize (reduction)");
    cudnnBackendDescriptor_t operation = g->create(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
    g->set(operation, CUDNN_ATTR_OPERATION_REDUCTION_XDESC, x);
    g->set(operation, CUDNN_ATTR_OPERATION_REDUCTION_YDESC, y);
    g->set(operation, CUDNN_ATTR_OPERATION_REDUCTION_DESC, kind);
    g->add(operation);
    return y;
}

cudnnBackendDescriptor_t reshape(Graph *g, cudnnBackendDescriptor_t x, cudnnBackendDescriptor_t y) {
    cudnnBackendDescriptor_t operation = g->create(CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);
    g->set(operation, CUDNN_ATTR_OPERATION_RESHAPE_XDESC, x);
    g->set(operation, CUDNN_ATTR_OPERATION_RESHAPE_YDESC, y);
    g->add(operation);
    return y;
}

/* ---- attention ------------------------------------------------------------------------------ */

struct Shape {
    int64_t b, h, hk, s, d, q_stride, k_stride, v_stride, lse_stride, dq_stride, dkv_stride;
    bool causal;

    explicit Shape(const KernelCudaAttention *a)
        : b((int64_t)a->batch), h((int64_t)a->heads), hk((int64_t)a->kv_heads), s((int64_t)a->seq),
          d((int64_t)a->head_dim), q_stride((int64_t)a->q_stride), k_stride((int64_t)a->k_stride),
          v_stride((int64_t)a->v_stride), lse_stride((int64_t)a->lse_stride),
          dq_stride((int64_t)kernel_cuda_gradient_stride(a, a->heads)),
          dkv_stride((int64_t)kernel_cuda_gradient_stride(a, a->kv_heads)), causal(a->causal) {
    }
    Dims scores() const {
        return {{b, h, s, s}};
    }
    Dims rows() const {
        return {{b, h, s, 1}};
    }
};

/* [batch, heads, seq, head_dim] inside rows of tokens. */
cudnnBackendDescriptor_t heads(Graph *g, Uid uid, const Shape &z, int64_t n, int64_t row) {
    return in_memory(g, uid, {{z.b, n, z.s, z.d}}, {{z.s * row, z.d, row, 1}}, g->type);
}

cudnnBackendDescriptor_t heads_transposed(Graph *g, Uid uid, const Shape &z, int64_t row) {
    return in_memory(g, uid, {{z.b, z.hk, z.d, z.s}}, {{z.s * row, z.d, 1, row}}, g->type);
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
    cudnnBackendDescriptor_t q = heads(g, Q, z, z.h, z.q_stride), scale = number(g, SCALE);
    cudnnBackendDescriptor_t kt = heads_transposed(g, K, z, z.k_stride);
    cudnnBackendDescriptor_t s = product(g, q, kt, between(g, z.scores()));
    s = mask(g, z, pointwise(g, CUDNN_POINTWISE_MUL, z.scores(), s, scale));
    cudnnBackendDescriptor_t most = reduce(g, CUDNN_REDUCE_TENSOR_MAX, s, between(g, z.rows()));
    s = pointwise(g, CUDNN_POINTWISE_SUB, z.scores(), s, most);
    s = pointwise(g, CUDNN_POINTWISE_EXP, z.scores(), s);
    cudnnBackendDescriptor_t sum = reduce(g, CUDNN_REDUCE_TENSOR_ADD, s, between(g, z.rows()));
    cudnnBackendDescriptor_t log = pointwise(g, CUDNN_POINTWISE_LOG, z.rows(), sum);
    pointwise_into(g, CUDNN_POINTWISE_ADD, logsumexp(g, z), most, log);
    s = pointwise_into(g, CUDNN_POINTWISE_DIV, between(g, z.scores(), g->type), s, sum);
    product(g, s, heads(g, V, z, z.hk, z.v_stride), heads(g, O, z, z.h, z.h * z.d));
}

/* d_k or d_v: the product for all query heads, and their sum where a group shares one. */
void kv_gradient(Graph *g, const Shape &z, cudnnBackendDescriptor_t p, cudnnBackendDescriptor_t by,
                 Uid uid) {
    cudnnBackendDescriptor_t out = heads(g, uid, z, z.hk, z.dkv_stride);
    cudnnBackendDescriptor_t turned = tensor(
        g, g->next_uid++, z.scores(), {{z.h * z.s * z.s, z.s * z.s, 1, z.s}}, g->type, true, false);
    reshape(g, p, turned);
    if (z.h == z.hk) {
        product(g, turned, by, out);
        return;
    }
    cudnnBackendDescriptor_t each = between(g, {{z.b, z.h, z.s, z.d}}, g->type);
    reduce(g, CUDNN_REDUCE_TENSOR_ADD, product(g, turned, by, each), out);
}

void backward_graph(Graph *g, const Shape &z) {
    cudnnBackendDescriptor_t q = heads(g, Q, z, z.h, z.q_stride), scale = number(g, SCALE);
    cudnnBackendDescriptor_t o = heads(g, O, z, z.h, z.h * z.d);
    cudnnBackendDescriptor_t d_o = heads(g, D_O, z, z.h, z.h * z.d);
    cudnnBackendDescriptor_t kt = heads_transposed(g, K, z, z.k_stride);
    cudnnBackendDescriptor_t vt = heads_transposed(g, V, z, z.v_stride);

    cudnnBackendDescriptor_t dots =
        pointwise(g, CUDNN_POINTWISE_MUL, {{z.b, z.h, z.s, z.d}}, d_o, o);
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

    cudnnBackendDescriptor_t k =
        tensor(g, g->next_uid++, {{z.b, z.hk, z.s, z.d}}, {{z.s * z.k_stride, z.d, z.k_stride, 1}},
               g->type, true, false);
    /* In plain order, as cudnn-frontend has it since 1.8, which is the first to know cuDNN 9.6;
     * before, it asked for 16 x 16 elements together. Of 9.19 both make the same kernels. */
    cudnnBackendDescriptor_t sum =
        in_memory(g, DQ_SUM, {{z.b, z.h, z.s, z.d}}, {{z.h * z.s * z.d, z.s * z.d, z.d, 1}},
                  CUDNN_DATA_FLOAT);
    product(g, ds, reshape(g, kt, k), sum);
    pointwise_into(g, CUDNN_POINTWISE_IDENTITY, heads(g, DQ, z, z.h, z.dq_stride), sum);
}

/* ---- plans ---------------------------------------------------------------------------------- */

/* What a plan is made for: a handle's device, or one that is only described. */
struct Target {
    cudnnHandle_t handle;
    cudnnBackendDescriptor_t device;
};

struct Plan {
    Graph graph;
    cudnnBackendDescriptor_t plan = NULL;
    int64_t workspace_bytes = 0;
};

cudnnBackendDescriptor_t heuristics_of(Plan *p, const Target &target) {
    Graph *g = &p->graph;
    cudnnBackendDescriptor_t graph = g->create(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    cudnnBackendHeurMode_t mode = CUDNN_HEUR_MODE_A;
    if (target.handle) {
        g->set(graph, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, &target.handle);
    }
    g->set(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
           g->operations.data(), (int64_t)g->operations.size());
    g->finalize(graph, "cudnnBackendFinalize (graph of attention)");
    cudnnBackendDescriptor_t heuristics = g->create(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    g->set(heuristics, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
    g->set(heuristics, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, &mode);
    if (target.device) {
        g->set(heuristics, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, target.device);
    }
    g->finalize(heuristics, "cudnnBackendFinalize (heuristics of attention)");
    return heuristics;
}

/* NULL: the configuration became the plan. That one does not is no fault of ours, others follow. */
KernelCudaFault try_configuration(Plan *p, const Target &target,
                                  cudnnBackendDescriptor_t configuration) {
    Graph trial;
    cudnnBackendDescriptor_t plan = trial.create(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    int64_t found = 0;
    if (target.handle) {
        trial.set(plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, &target.handle);
    }
    if (target.device) {
        trial.set(plan, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, target.device);
    }
    trial.set(plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configuration);
    trial.finalize(plan, "cudnnBackendFinalize (plan of attention)");
    if (trial.fault) {
        return trial.fault;
    }
    p->plan = plan;
    p->graph.all.push_back(std::move(trial.all[0]));
    p->graph.check("cudnnBackendGetAttribute (workspace)",
                   cudnnBackendGetAttribute(plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                                            CUDNN_TYPE_INT64, 1, &found, &p->workspace_bytes));
    return NULL;
}

void plan_graph(Plan *p, const Target &target) {
    Graph *g = &p->graph;
    cudnnBackendDescriptor_t heuristics = heuristics_of(p, target);
    constexpr int64_t MOST = 8;
    std::vector<cudnnBackendDescriptor_t> configurations;
    int64_t found = 0;
    for (int64_t i = 0; i < MOST; i++) {
        configurations.push_back(g->create(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR));
    }
    if (g->fault) {
        return;
    }
    g->check("cudnnBackendGetAttribute (configurations)",
             cudnnBackendGetAttribute(heuristics, CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                      CUDNN_TYPE_BACKEND_DESCRIPTOR, MOST, &found,
                                      configurations.data()));
    KernelCudaFault last = found ? NULL : kernel_cuda_fault("cuDNN has nothing for this attention");
    for (int64_t i = 0; i < found && !p->plan; i++) {
        last = try_configuration(p, target, configurations[(size_t)i]);
    }
    if (!g->fault) {
        g->fault = last;
    }
}

void make_plan(Plan *p, const Target &target, const KernelCudaAttention *a, bool backward) {
    p->graph.type = a->type == KERNEL_CUDA_BF16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_HALF;
    (backward ? backward_graph : forward_graph)(&p->graph, Shape(a));
    plan_graph(p, target);
}

/* ---- running -------------------------------------------------------------------------------- */

/* What tensors are, in a call; uids and pointers side by side. */
struct Bindings {
    std::vector<int64_t> uids;
    std::vector<void *> pointers;

    void bind(Uid uid, const void *pointer) {
        uids.push_back(uid);
        pointers.push_back((void *)pointer);
    }
};

KernelCudaFault execute(KernelCuda *lane, cudnnHandle_t handle, const Plan &plan, Bindings *b,
                        void *workspace) {
    Graph pack;
    cudnnBackendDescriptor_t variant = pack.create(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    int64_t n = (int64_t)b->uids.size();
    pack.set(variant, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, b->uids.data(), n);
    pack.set(variant, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR,
             b->pointers.data(), n);
    pack.set(variant, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, &workspace);
    pack.finalize(variant, "cudnnBackendFinalize (arguments of attention)");
    if (!pack.fault) {
        pack.check("cudnnBackendExecute (attention)",
                   cudnnBackendExecute(handle, plan.plan, variant));
    }
    return pack.fault;
}

} // namespace

/* A shape and its two plans; without them cuDNN does not take it. */
struct KernelCudaCudnnShape {
    KernelCudaAttention shape;
    Plan forward, backward;
};

struct KernelCudaCudnn {
    cudnnHandle_t handle;
    std::vector<std::unique_ptr<KernelCudaCudnnShape>> shapes;
};

/* Attention goes by this room's own kernels then; only who reads the report is told why. */
static void refuse(KernelCuda *lane, const char *why) {
    if (lane->refusal.empty()) {
        lane->refusal = why;
        std::replace(lane->refusal.begin(), lane->refusal.end(), '\n', ' ');
    }
}

static KernelCudaCudnn *cudnn_of(KernelCuda *lane) {
    if (!lane->cudnn) {
        cudnnHandle_t handle = NULL;
        cudnnStatus_t created = cudnnCreate(&handle);
        cudnnStatus_t status =
            created == CUDNN_STATUS_SUCCESS ? cudnnSetStream(handle, lane->stream) : created;
        if (status != CUDNN_STATUS_SUCCESS) {
            refuse(lane, kernel_cuda_fault("cudnnCreate: %s", cudnnGetErrorString(status)));
            if (created == CUDNN_STATUS_SUCCESS) {
                cudnnDestroy(handle);
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
           a->causal == b->causal && a->type == b->type;
}

static KernelCudaCudnnShape *shape_of(KernelCuda *lane, const KernelCudaAttention *a) {
    KernelCudaCudnn *cudnn = cudnn_of(lane);
    for (const auto &known : cudnn->shapes) {
        if (same(&known->shape, a)) {
            return known.get();
        }
    }
    std::unique_ptr<KernelCudaCudnnShape> made(new KernelCudaCudnnShape());
    made->shape = *a;
    for (bool backward : {false, true}) {
        Plan *plan = backward ? &made->backward : &made->forward;
        make_plan(plan, {cudnn->handle, NULL}, a, backward);
        if (!plan->plan) {
            refuse(lane, plan->graph.fault);
        }
    }
    cudnn->shapes.push_back(std::move(made));
    return cudnn->shapes.back().get();
}

bool kernel_cuda_cudnn_takes(KernelCuda *lane, const KernelCudaAttention *a) {
    if (!kernel_cuda_cudnn_fits(a, cudnnGetVersion(), lane->major) || !cudnn_of(lane)->handle) {
        return false;
    }
    const KernelCudaCudnnShape *known = shape_of(lane, a);
    return known->forward.plan && known->backward.plan;
}

KernelCudaFault kernel_cuda_cudnn_forward(KernelCuda *lane, void *o, float *lse, const void *q,
                                          const void *k, const void *v,
                                          const KernelCudaAttention *a) {
    const KernelCudaCudnnShape *known = shape_of(lane, a);
    const float least = kernel_cuda_cudnn_least(cudnnGetVersion());
    void *workspace;
    Bindings b;
    KERNEL_CUDA_TRY(
        kernel_cuda_scratch(lane, (size_t)known->forward.workspace_bytes + 1, &workspace));
    b.bind(Q, q), b.bind(K, k), b.bind(V, v), b.bind(O, o), b.bind(LSE, lse);
    b.bind(SCALE, &a->scale);
    if (a->causal) {
        b.bind(LEAST, &least);
    }
    return execute(lane, lane->cudnn->handle, known->forward, &b, workspace);
}

KernelCudaFault kernel_cuda_cudnn_backward(KernelCuda *lane, void *dq, void *dk, void *dv,
                                           const void *d_o, const void *q, const void *k,
                                           const void *v, const void *o, const float *lse,
                                           const KernelCudaAttention *a) {
    const KernelCudaCudnnShape *known = shape_of(lane, a);
    const float least = kernel_cuda_cudnn_least(cudnnGetVersion()), one = 1;
    size_t rows = a->batch * a->heads * a->seq, border = 256; /* bytes; where arrays begin */
    size_t dots_bytes = (rows * sizeof(float) + border - 1) / border * border;
    size_t sum_bytes = (rows * a->head_dim * sizeof(float) + border - 1) / border * border;
    void *scratch;
    Bindings b;
    KERNEL_CUDA_TRY(kernel_cuda_scratch(
        lane, dots_bytes + sum_bytes + (size_t)known->backward.workspace_bytes + 1, &scratch));
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
    return execute(lane, lane->cudnn->handle, known->backward, &b, at + dots_bytes + sum_bytes);
}

void kernel_cuda_cudnn_free(KernelCuda *lane) {
    if (lane->cudnn) {
        lane->cudnn->shapes.clear();
        if (lane->cudnn->handle) {
            cudnnDestroy(lane->cudnn->handle);
        }
        delete lane->cudnn;
        lane->cudnn = NULL;
    }
}

const char *kernel_cuda_cudnn_version(void) {
    static thread_local char text[48];
    size_t version = cudnnGetVersion();
    snprintf(text, sizeof text, "cuDNN %zu.%zu.%zu", version / 10000, version / 100 % 100,
             version % 100);
    return text;
}

KernelCudaFault kernel_cuda_cudnn_plan_for(const char *device, const KernelCudaAttention *shape,
                                           bool backward, size_t *ret_workspace_bytes) {
    Plan plan;
    cudnnBackendDescriptor_t described = plan.graph.create(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
    plan.graph.set(described, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, device,
                   (int64_t)strlen(device) + 1);
    plan.graph.finalize(described, "cudnnBackendFinalize (description of a device)");
    make_plan(&plan, {NULL, described}, shape, backward);
    *ret_workspace_bytes = (size_t)plan.workspace_bytes;
    return plan.graph.fault;
}
