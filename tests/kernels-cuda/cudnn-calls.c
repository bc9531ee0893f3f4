/* tests/kernels-cuda/cudnn-calls.c - what kernels/cuda hands cuDNN when attention is run, shown
 * without a GPU and without cuDNN: a stand-in keeps what it was told and looks at each run.
 *
 * Every tensor of the graph that is in memory must be bound once, on the border that the graph
 * promises; the sums of dq, to which blocks only add, must have been zeroed on the same stream
 * since the run before; the workspace must lie in what the lane holds, apart from them.
 */
#include <cuda_runtime_api.h>
#include <glib.h>
#include <stdbool.h>
#include <string.h>

#include "kernels/cuda/attention/attention.h"
#include "kernels/cuda/attention/cudnn-library.h"

/* Its header declares a function with (), which means something else in C than in C++. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wstrict-prototypes"
#include <cublasLt.h>
#pragma GCC diagnostic pop

enum {
    WORKSPACE = 1000, /* bytes that a plan is said to want */
    MANY = 1024,
    FIRST = 1 << 20,
};

typedef struct {
    int64_t uid, dims[4], alignment;
    cudnnDataType_t type;
    cudnnBackendTensorReordering_t order;
    bool is_virtual, by_value;
} Tensor;

typedef struct {
    cudnnBackendDescriptorType_t kind;
    Tensor tensor;
    int64_t uids[32], n_uids;
    char *pointers[32], *workspace;
} Descriptor;

static const cudaStream_t STREAM = (cudaStream_t)(uintptr_t)0x5000;

static Tensor tensors[MANY]; /* of the graph that was planned last */
static unsigned n_tensors, n_runs, n_plans;
static bool is_missing, has_no_handle, has_no_plan, has_no_kernel;
static int64_t n_configurations = 1; /* that the heuristics say they have */
static struct {
    char *at;
    size_t bytes;
} zeroed, held;

/* ---- cuDNN ---------------------------------------------------------------------------------- */

size_t cudnnGetVersion(void) {
    return 91900;
}

cudnnStatus_t cudnnCreate(cudnnHandle_t *handle) {
    *handle = (cudnnHandle_t)&n_runs;
    return has_no_handle ? CUDNN_STATUS_NOT_INITIALIZED : CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
    g_assert_true(stream == STREAM);
    return CUDNN_STATUS_SUCCESS;
}

const char *cudnnGetErrorString(cudnnStatus_t status) {
    return "an error";
}

void cudnnGetLastErrorString(char *message, size_t bytes) {
    g_strlcpy(message, "no compiler\nwas found", bytes);
}

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t kind,
                                           cudnnBackendDescriptor_t *made) {
    Descriptor *descriptor = g_new0(Descriptor, 1);
    descriptor->kind = kind;
    *made = descriptor;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor) {
    g_free(descriptor);
    return CUDNN_STATUS_SUCCESS;
}

#define TAKE(name, place)                                                                          \
    case name:                                                                                     \
        memcpy(&(place), values, sizeof(place));                                                   \
        break

cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t of,
                                       cudnnBackendAttributeName_t attribute,
                                       cudnnBackendAttributeType_t type, int64_t n,
                                       const void *values) {
    Descriptor *to = of;
    switch ((int)attribute) {
        TAKE(CUDNN_ATTR_TENSOR_UNIQUE_ID, to->tensor.uid);
        TAKE(CUDNN_ATTR_TENSOR_DATA_TYPE, to->tensor.type);
        TAKE(CUDNN_ATTR_TENSOR_DIMENSIONS, to->tensor.dims);
        TAKE(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, to->tensor.alignment);
        TAKE(CUDNN_ATTR_TENSOR_IS_VIRTUAL, to->tensor.is_virtual);
        TAKE(CUDNN_ATTR_TENSOR_IS_BY_VALUE, to->tensor.by_value);
        TAKE(CUDNN_ATTR_TENSOR_REORDERING_MODE, to->tensor.order);
        TAKE(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, to->workspace);
    case CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG:
        g_assert_cmpint((*(Descriptor *const *)values)->kind, ==,
                        CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
        break;
    case CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS:
        to->n_uids = n;
        memcpy(to->uids, values, (size_t)n * sizeof to->uids[0]);
        break;
    case CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS:
        g_assert_cmpint(n, ==, to->n_uids);
        memcpy(to->pointers, values, (size_t)n * sizeof to->pointers[0]);
        break;
    }
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t of) {
    Descriptor *descriptor = of;
    if (descriptor->kind == CUDNN_BACKEND_TENSOR_DESCRIPTOR) {
        g_assert_cmpuint(n_tensors, <, MANY);
        tensors[n_tensors++] = descriptor->tensor;
    }
    bool is_plan = descriptor->kind == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR;
    n_plans += is_plan;
    return has_no_plan && is_plan ? CUDNN_STATUS_NOT_SUPPORTED : CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t const of,
                                       cudnnBackendAttributeName_t attribute,
                                       cudnnBackendAttributeType_t type, int64_t wanted,
                                       int64_t *found, void *values) {
    /* As the API reference has it: how many there are, also where fewer were asked for. */
    *found = attribute == CUDNN_ATTR_ENGINEHEUR_RESULTS ? n_configurations : 1;
    if (attribute == CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE) {
        *(int64_t *)values = WORKSPACE;
    }
    return CUDNN_STATUS_SUCCESS;
}

static char *bound(const Descriptor *pack, int64_t uid) {
    char *at = NULL;
    for (int64_t i = 0; i < pack->n_uids; i++) {
        if (pack->uids[i] == uid) {
            g_assert_null(at);
            at = pack->pointers[i];
        }
    }
    return at;
}

static bool is_held(const char *at, size_t bytes) {
    return at >= held.at && at + bytes <= held.at + held.bytes;
}

static void check_sums(const Tensor *t, char *at, const char *workspace) {
    size_t bytes = sizeof(float) * (size_t)(t->dims[0] * t->dims[1] * t->dims[2] * t->dims[3]);
    g_assert_true(is_held(at, bytes));
    g_assert_true(workspace >= at + bytes || workspace + WORKSPACE <= at);
    g_assert_true(at >= zeroed.at && at + bytes <= zeroed.at + zeroed.bytes);
    g_assert_cmpint(t->order, ==, CUDNN_TENSOR_REORDERING_NONE); /* cudnn-frontend's since 1.8 */
    memset(&zeroed, 0, sizeof zeroed);                           /* it is added to now */
}

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan,
                                  cudnnBackendDescriptor_t variant) {
    const Descriptor *pack = variant;
    unsigned n_known = 0, n_sums = 0;
    g_assert_true(is_held(pack->workspace, WORKSPACE));
    for (unsigned i = 0; i < n_tensors; i++) {
        const Tensor *t = &tensors[i];
        char *at = bound(pack, t->uid);
        if (!at || t->is_virtual) {
            continue;
        }
        n_known++;
        g_assert_true(t->by_value || (uintptr_t)at % (size_t)t->alignment == 0);
        if (!t->by_value && t->type == CUDNN_DATA_FLOAT && t->dims[3] > 1) {
            check_sums(t, at, pack->workspace);
            n_sums++;
        }
    }
    g_assert_cmpuint(n_known, >=, pack->n_uids);
    g_assert_cmpuint(n_sums, ==, n_runs % 2); /* backward, which comes second, has them */
    n_runs++;
    return has_no_kernel ? CUDNN_STATUS_EXECUTION_FAILED : CUDNN_STATUS_SUCCESS;
}

const KernelCudnn *kernel_cudnn(const char **ret_why) {
#define STAND_IN(name) .name = cudnn##name,
    static const KernelCudnn stand_ins = {KERNEL_CUDNN_CALLS(STAND_IN)};
    *ret_why = is_missing ? "cuDNN cannot be loaded: not here" : NULL;
    return is_missing ? NULL : &stand_ins;
}

/* ---- CUDA, as far as a lane needs it -------------------------------------------------------- */

cudaError_t cudaGetDevice(int *device) {
    *device = 0;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device) {
    *value = attribute == cudaDevAttrComputeCapabilityMajor ? 9 : 0;
    return cudaSuccess;
}

cudaError_t cudaMalloc(void **pointer, size_t bytes) {
    held.at = (char *)((uintptr_t)FIRST << 20) + g_random_int_range(0, FIRST) * (gsize)256;
    held.bytes = bytes;
    *pointer = held.at;
    return cudaSuccess;
}

cudaError_t cudaFree(void *pointer) {
    return cudaSuccess;
}

cudaError_t cudaHostAlloc(void **pointer, size_t bytes, unsigned flags) {
    *pointer = g_malloc0(bytes);
    return cudaSuccess;
}

cudaError_t cudaFreeHost(void *pointer) {
    g_free(pointer);
    return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t stream) {
    g_assert_true(value == 0 && stream == STREAM);
    zeroed.at = to;
    zeroed.bytes = bytes;
    return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
    return cudaSuccess;
}

cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle) {
    *handle = (cublasLtHandle_t)&n_runs;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
    return CUBLAS_STATUS_SUCCESS;
}

/* ---- tests ---------------------------------------------------------------------------------- */

static char *array(unsigned i) {
    return (char *)(((uintptr_t)i + 1) << 36);
}

/* Twice each way: what one run leaves behind, the next must not find. */
static void test_runs(void) {
    static const KernelCudaAttention shapes[] = {
        {4, 25, 25, 1024, 64, 4800, 4800, 4800, 1024, 0.125f, true, KERNEL_CUDA_BF16},
        {1, 32, 8, 512, 128, 4096, 1024, 1024, 512, 0.088f, false, KERNEL_CUDA_F16},
    };
    for (unsigned i = 0; i < G_N_ELEMENTS(shapes); i++) {
        KernelCuda *lane;
        const KernelCudaAttention *a = &shapes[i];
        n_tensors = n_runs = 0;
        memset(&zeroed, 0, sizeof zeroed);
        g_assert_null(kernel_cuda_new(&lane, STREAM, KERNEL_CUDA_EXACT));
        g_assert_cmpint(kernel_cuda_attention_way(lane, a), ==, KERNEL_CUDA_ATTENTION_CUDNN);
        for (unsigned times = 0; times < 2; times++) {
            g_assert_null(kernel_cuda_attention_forward(lane, array(3), (float *)array(4), array(0),
                                                        array(1), array(2), NULL, a));
            g_assert_null(kernel_cuda_attention_backward(lane, array(5), array(6), array(7), NULL,
                                                         array(8), array(0), array(1), array(2),
                                                         NULL, array(3), (float *)array(4), a));
        }
        g_assert_cmpuint(n_runs, ==, 4);
        g_assert_null(kernel_cuda_attention_refusal(lane));
        kernel_cuda_free(lane);
    }
}

/* A plan takes about a second: none is made that is not run, nor twice. */
static void test_planned_once(void) {
    KernelCudaAttention shape = {4,    25,   25,   1024,   64,   4800,
                                 4800, 4800, 1024, 0.125f, true, KERNEL_CUDA_BF16};
    KernelCuda *lane;
    n_tensors = n_runs = n_plans = 0;
    g_assert_null(kernel_cuda_new(&lane, STREAM, KERNEL_CUDA_EXACT));
    for (unsigned times = 0; times < 2; times++) {
        shape.gradient_stride = 0;
        g_assert_null(kernel_cuda_attention_forward(lane, array(3), (float *)array(4), array(0),
                                                    array(1), array(2), NULL, &shape));
        g_assert_cmpuint(n_plans, ==, times ? 2 : 1);
        shape.gradient_stride = 4800; /* all gradients in one array's rows */
        g_assert_null(kernel_cuda_attention_backward(lane, array(5), array(6), array(7), NULL,
                                                     array(8), array(0), array(1), array(2), NULL,
                                                     array(3), (float *)array(4), &shape));
        g_assert_cmpuint(n_plans, ==, 2);
    }
    kernel_cuda_free(lane);
}

/* A shape goes to this room's own kernels, and a report can say why, in one line. */
static void test_refused(void) {
    static const KernelCudaAttention shape = {1,   8,   8,   256,    64,   512,
                                              512, 512, 256, 0.125f, true, KERNEL_CUDA_BF16};
    static const char *const whys[] = {"cudnnCreate: an error",
                                       "plan of attention): an error no compiler was found",
                                       "cuDNN cannot be loaded: not here"};
    for (unsigned i = 0; i < G_N_ELEMENTS(whys); i++) {
        KernelCuda *lane;
        KernelCudaAttention odd = shape;
        odd.type = KERNEL_CUDA_F32; /* which it is not asked for */
        has_no_handle = i == 0;
        has_no_plan = i == 1;
        is_missing = i == 2;
        n_tensors = 0;
        g_assert_null(kernel_cuda_new(&lane, STREAM, KERNEL_CUDA_EXACT));
        g_assert_cmpint(kernel_cuda_attention_way(lane, &odd), ==, KERNEL_CUDA_ATTENTION_OWN);
        g_assert_null(kernel_cuda_attention_refusal(lane));
        g_assert_cmpint(kernel_cuda_attention_way(lane, &shape), ==, KERNEL_CUDA_ATTENTION_OWN);
        const char *said = kernel_cuda_attention_refusal(lane);
        g_assert_nonnull(said);
        g_assert_nonnull(strstr(said, whys[i]));
        g_assert_null(strchr(said, '\n'));
        kernel_cuda_free(lane);
    }
    has_no_handle = has_no_plan = is_missing = false;
}

/* More are to be had than were asked for, and none of those becomes a plan. */
static void test_many_configurations(void) {
    static const KernelCudaAttention shape = {1,   8,   8,   256,    64,   512,
                                              512, 512, 256, 0.125f, true, KERNEL_CUDA_BF16};
    KernelCuda *lane;
    n_configurations = 1000;
    has_no_plan = true;
    n_tensors = 0;
    g_assert_null(kernel_cuda_new(&lane, STREAM, KERNEL_CUDA_EXACT));
    g_assert_cmpint(kernel_cuda_attention_way(lane, &shape), ==, KERNEL_CUDA_ATTENTION_OWN);
    kernel_cuda_free(lane);
    n_configurations = 1;
    has_no_plan = false;
}

/* What was planned and cannot be run is done by this room's own kernels at once, whose launch fails
 * here; cuDNN is not asked again. */
static void test_not_run(void) {
    static const KernelCudaAttention shape = {1,   8,   8,   256,    64,   512,
                                              512, 512, 256, 0.125f, true, KERNEL_CUDA_BF16};
    KernelCuda *lane;
    n_tensors = n_runs = 0;
    has_no_kernel = true;
    g_assert_null(kernel_cuda_new(&lane, STREAM, KERNEL_CUDA_EXACT));
    for (unsigned times = 0; times < 2; times++) {
        KernelCudaFault fault = kernel_cuda_attention_forward(
            lane, array(3), (float *)array(4), array(0), array(1), array(2), NULL, &shape);
        g_assert_true(fault && g_str_has_prefix(fault, "attention: "));
        g_assert_cmpuint(n_runs, ==, 1);
    }
    g_assert_cmpint(kernel_cuda_attention_way(lane, &shape), ==, KERNEL_CUDA_ATTENTION_OWN);
    g_assert_nonnull(strstr(kernel_cuda_attention_refusal(lane), "cudnnBackendExecute"));
    g_assert_cmpuint(kernel_cuda_attention_calls(lane, KERNEL_CUDA_ATTENTION_CUDNN), ==, 0);
    has_no_kernel = false;
    kernel_cuda_free(lane);
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/kernels-cuda/cudnn-calls/runs", test_runs);
    g_test_add_func("/kernels-cuda/cudnn-calls/planned once", test_planned_once);
    g_test_add_func("/kernels-cuda/cudnn-calls/refused", test_refused);
    g_test_add_func("/kernels-cuda/cudnn-calls/many configurations", test_many_configurations);
    g_test_add_func("/kernels-cuda/cudnn-calls/not run", test_not_run);
    return g_test_run();
}
