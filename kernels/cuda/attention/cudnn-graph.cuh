/* kernels/cuda/attention/cudnn-graph.cuh - cuDNN's graph interface: tensors and small operations
 * are put together, cuDNN makes a plan of them, and the plan is run; for .cu files of this folder
 * only.
 *
 * The first fault of a graph is kept, and everything after it does nothing, so that a graph can be
 * written down as a sequence of calls. Tensors that are more than virtual have a number (uid) that
 * whoever builds the graph gives them.
 */
#pragma once
#include <string.h>

#include <initializer_list>
#include <memory>
#include <vector>

#include "kernels/cuda/attention/attention-private.h"
#include "kernels/cuda/attention/cudnn-library.h"

namespace cu {

/* Its functions, for code that is reached only where it is here (kernel_cudnn()). */
static inline const KernelCudnn &dnn() {
    const char *why;
    return *kernel_cudnn(&why);
}

struct Dims {
    int64_t n[4];
};

/* Whatever cuDNN's graph interface makes; destroyed with its owner. */
typedef std::unique_ptr<void, void (*)(cudnnBackendDescriptor_t)> Handle;

static inline void destroy(cudnnBackendDescriptor_t descriptor) {
    dnn().BackendDestroyDescriptor(descriptor);
}

/* The graph under construction. */
struct Graph {
    std::vector<Handle> all;
    std::vector<cudnnBackendDescriptor_t> operations;
    KernelCudaFault fault = NULL;
    int64_t next_uid = 100;
    cudnnDataType_t type; /* of q, k, v and their like */

    void check(const char *call, cudnnStatus_t status) {
        if (status != CUDNN_STATUS_SUCCESS && !fault) {
            char why[160] = "";
            dnn().GetLastErrorString(why, sizeof why);
            fault = kernel_cuda_fault("%s: %s %s", call, dnn().GetErrorString(status), why);
        }
    }

    cudnnBackendDescriptor_t create(cudnnBackendDescriptorType_t kind) {
        cudnnBackendDescriptor_t made = NULL;
        check("cudnnBackendCreateDescriptor", dnn().BackendCreateDescriptor(kind, &made));
        all.emplace_back(made, destroy);
        return made;
    }

    template <typename T>
    void set(cudnnBackendDescriptor_t of, cudnnBackendAttributeName_t name,
             cudnnBackendAttributeType_t type_of_it, const T *values, int64_t n = 1) {
        if (!fault) {
            check("cudnnBackendSetAttribute",
                  dnn().BackendSetAttribute(of, name, type_of_it, n, values));
        }
    }

    void set(cudnnBackendDescriptor_t of, cudnnBackendAttributeName_t name,
             cudnnBackendDescriptor_t value) {
        set(of, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, &value);
    }

    void finalize(cudnnBackendDescriptor_t what, const char *call) {
        if (!fault) {
            check(call, dnn().BackendFinalize(what));
        }
    }

    void add(cudnnBackendDescriptor_t operation) {
        finalize(operation, "cudnnBackendFinalize (operation)");
        operations.push_back(operation);
    }
};

/* ---- tensors -------------------------------------------------------------------------------- */

static inline cudnnBackendDescriptor_t tensor(Graph *g, int64_t uid, Dims dims, Dims strides,
                                              cudnnDataType_t type, bool is_virtual,
                                              bool by_value) {
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

static inline cudnnBackendDescriptor_t in_memory(Graph *g, int64_t uid, Dims dims, Dims strides,
                                                 cudnnDataType_t type) {
    return tensor(g, uid, dims, strides, type, false, false);
}

/* A float in host memory. */
static inline cudnnBackendDescriptor_t number(Graph *g, int64_t uid) {
    return tensor(g, uid, {{1, 1, 1, 1}}, {{1, 1, 1, 1}}, CUDNN_DATA_FLOAT, false, true);
}

/* A dense one that is nowhere. */
static inline cudnnBackendDescriptor_t between(Graph *g, Dims d,
                                               cudnnDataType_t type = CUDNN_DATA_FLOAT) {
    Dims strides = {{d.n[1] * d.n[2] * d.n[3], d.n[2] * d.n[3], d.n[3], 1}};
    return tensor(g, g->next_uid++, d, strides, type, true, false);
}

/* ---- operations; each returns its output ---------------------------------------------------- */

/* What is computed, in fp32; it still has to be finalized. */
static inline cudnnBackendDescriptor_t in_fp32(Graph *g, cudnnBackendDescriptorType_t kind,
                                               cudnnBackendAttributeName_t precision_name) {
    cudnnBackendDescriptor_t computed = g->create(kind);
    cudnnDataType_t precision = CUDNN_DATA_FLOAT;
    g->set(computed, precision_name, CUDNN_TYPE_DATA_TYPE, &precision);
    return computed;
}

/* What it is computed from and into; a part that is NULL is left out. */
struct Part {
    cudnnBackendAttributeName_t name;
    cudnnBackendDescriptor_t value;
};

static inline void add_operation(Graph *g, cudnnBackendDescriptorType_t kind,
                                 std::initializer_list<Part> parts) {
    cudnnBackendDescriptor_t operation = g->create(kind);
    for (const Part &part : parts) {
        if (part.value) {
            g->set(operation, part.name, part.value);
        }
    }
    g->add(operation);
}

static inline cudnnBackendDescriptor_t
pointwise_into(Graph *g, cudnnPointwiseMode_t mode, cudnnBackendDescriptor_t y,
               cudnnBackendDescriptor_t x, cudnnBackendDescriptor_t b = NULL,
               cudnnBackendDescriptor_t t = NULL, int64_t axis = -1) {
    cudnnBackendDescriptor_t kind =
        in_fp32(g, CUDNN_BACKEND_POINTWISE_DESCRIPTOR, CUDNN_ATTR_POINTWISE_MATH_PREC);
    g->set(kind, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, &mode);
    if (axis >= 0) {
        g->set(kind, CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, &axis);
    }
    g->finalize(kind, "cudnnBackendFinalize (pointwise)");
    add_operation(g, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR,
                  {{CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, kind},
                   {CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x},
                   {CUDNN_ATTR_OPERATION_POINTWISE_BDESC, b},
                   {CUDNN_ATTR_OPERATION_POINTWISE_TDESC, t},
                   {CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y}});
    return y;
}

static inline cudnnBackendDescriptor_t pointwise(Graph *g, cudnnPointwiseMode_t mode, Dims dims,
                                                 cudnnBackendDescriptor_t x,
                                                 cudnnBackendDescriptor_t b = NULL,
                                                 cudnnBackendDescriptor_t t = NULL) {
    return pointwise_into(g, mode, between(g, dims), x, b, t);
}

static inline cudnnBackendDescriptor_t product(Graph *g, cudnnBackendDescriptor_t a,
                                               cudnnBackendDescriptor_t b,
                                               cudnnBackendDescriptor_t y) {
    cudnnBackendDescriptor_t kind =
        in_fp32(g, CUDNN_BACKEND_MATMUL_DESCRIPTOR, CUDNN_ATTR_MATMUL_COMP_TYPE);
    g->finalize(kind, "cudnnBackendFinalize (matmul)");
    add_operation(g, CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR,
                  {{CUDNN_ATTR_OPERATION_MATMUL_ADESC, a},
                   {CUDNN_ATTR_OPERATION_MATMUL_BDESC, b},
                   {CUDNN_ATTR_OPERATION_MATMUL_CDESC, y},
                   {CUDNN_ATTR_OPERATION_MATMUL_DESC, kind}});
    return y;
}

static inline cudnnBackendDescriptor_t
reduce(Graph *g, cudnnReduceTensorOp_t op, cudnnBackendDescriptor_t x, cudnnBackendDescriptor_t y) {
    cudnnBackendDescriptor_t kind =
        in_fp32(g, CUDNN_BACKEND_REDUCTION_DESCRIPTOR, CUDNN_ATTR_REDUCTION_COMP_TYPE);
    g->set(kind, CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, &op);
    g->finalize(kind, "cudnnBackendFinalize (reduction)");
    add_operation(g, CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR,
                  {{CUDNN_ATTR_OPERATION_REDUCTION_XDESC, x},
                   {CUDNN_ATTR_OPERATION_REDUCTION_YDESC, y},
                   {CUDNN_ATTR_OPERATION_REDUCTION_DESC, kind}});
    return y;
}

static inline cudnnBackendDescriptor_t reshape(Graph *g, cudnnBackendDescriptor_t x,
                                               cudnnBackendDescriptor_t y) {
    add_operation(
        g, CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR,
        {{CUDNN_ATTR_OPERATION_RESHAPE_XDESC, x}, {CUDNN_ATTR_OPERATION_RESHAPE_YDESC, y}});
    return y;
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

static inline cudnnBackendDescriptor_t heuristics_of(Plan *p, const Target &target) {
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
static inline KernelCudaFault try_configuration(Plan *p, const Target &target,
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
                   dnn().BackendGetAttribute(plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                                             CUDNN_TYPE_INT64, 1, &found, &p->workspace_bytes));
    return NULL;
}

static inline void plan_graph(Plan *p, const Target &target) {
    Graph *g = &p->graph;
    cudnnBackendDescriptor_t heuristics = heuristics_of(p, target);
    constexpr int64_t MOST = 8;
    std::vector<cudnnBackendDescriptor_t> configurations;
    int64_t found = 0; /* how many there are: of more than were asked for, the first are here */
    for (int64_t i = 0; i < MOST; i++) {
        configurations.push_back(g->create(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR));
    }
    if (g->fault) {
        return;
    }
    g->check("cudnnBackendGetAttribute (configurations)",
             dnn().BackendGetAttribute(heuristics, CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                       CUDNN_TYPE_BACKEND_DESCRIPTOR, MOST, &found,
                                       configurations.data()));
    KernelCudaFault last = found ? NULL : kernel_cuda_fault("cuDNN has nothing for this attention");
    for (int64_t i = 0; i < found && i < MOST && !p->plan; i++) {
        last = try_configuration(p, target, configurations[(size_t)i]);
    }
    if (!g->fault) {
        g->fault = last;
    }
}

/* ---- running -------------------------------------------------------------------------------- */

/* What tensors are, in a call; uids and pointers side by side. */
struct Bindings {
    std::vector<int64_t> uids;
    std::vector<void *> pointers;

    void bind(int64_t uid, const void *pointer) {
        uids.push_back(uid);
        pointers.push_back((void *)pointer);
    }
};

static inline KernelCudaFault execute(KernelCuda *lane, cudnnHandle_t handle, const Plan &plan,
                                      Bindings *b, void *workspace) {
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
                   dnn().BackendExecute(handle, plan.plan, variant));
    }
    return pack.fault;
}

} // namespace cu
