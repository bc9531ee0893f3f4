/* tests/kernels-cuda/cudnn-plans.c - cuDNN knows the graphs of attention that kernels/cuda hands
 * it, shown without a GPU.
 *
 * cuDNN plans for a device that is described to it: it recognizes the graph, chooses an engine and
 * makes its kernel. Only loading the kernel takes a driver. Where there is none, NVIDIA's stub
 * stands in, whose every call fails as a stub; so that failure, and no other, is a pass.
 */
#include <dlfcn.h>
#include <glib.h>
#include <string.h>

#include "kernels/cuda/attention/attention-cudnn.h"

/* An H200 as cuDNN 9.19 describes one (NVIDIA's data sheet, and the CUDA C++ Programming Guide's
 * table of compute capability 9.0). The names are cuDNN's own. */
static const char h200[] =
    "{\"deviceName\": \"NVIDIA H200\", \"deviceVer\": 900, \"driverVer\": 13000,"
    " \"cudaDeviceId\": 0, \"pciDeviceId\": 0, \"isTccDriver\": 0, \"supportCoopLaunch\": 1,"
    " \"maxGridSize\": [2147483647, 65535, 65535], \"maxBlockSize\": [1024, 1024, 64],"
    " \"multiProcessorCount\": 132, \"warpSize\": 32, \"maxThreadsPerBlock\": 1024,"
    " \"maxThreadsPerSM\": 2048, \"maxCtasPerSM\": 32, \"regsPerBlock\": 65536,"
    " \"maxRegistersPerSM\": 65536, \"maxSharedMemoryPerBlock\": 49152,"
    " \"maxSharedMemoryPerBlockOptin\": 232448, \"reservedSharedMemoryPerBlock\": 1024,"
    " \"l2CacheSize\": 62914560, \"totalGlobalMem\": 150000000000,"
    " \"smClockRateKHz\": 1980000, \"memClockRateKHz\": 3201000}";

static const char loading[] = "CUDNN_STATUS_EXECUTION_FAILED_CUDA_DRIVER"; /* of a stub */

static bool is_planned(const KernelCudaAttention *shape, bool backward) {
    size_t workspace_bytes;
    const char *fault = kernel_cuda_cudnn_plan_for(h200, shape, backward, &workspace_bytes);
    if (fault && !strstr(fault, loading)) {
        g_test_message("%s", fault);
        return false;
    }
    return true;
}

/* q, k and v as parts of one row. */
static KernelCudaAttention shape_of(size_t head_dim, size_t group, bool causal,
                                    KernelCudaType type) {
    size_t heads = 8, kv_heads = heads / group, row = (heads + 2 * kv_heads) * head_dim;
    return (KernelCudaAttention){2,   heads, kv_heads, 512,  head_dim, row,
                                 row, row,   512,      0.1f, causal,   type};
}

/* Each head_dim, mask and direction; heads alone or in groups and the two types take turns, for
 * cuDNN makes a kernel each time, which takes seconds. */
static void test_known(void) {
    for (unsigned i = 0; i < 8; i++) {
        bool backward = i & 4;
        KernelCudaAttention shape = shape_of(i & 1 ? 128 : 64, (i ^ i >> 1) & 1 ? 4 : 1, i & 2,
                                             (i ^ i >> 2) & 1 ? KERNEL_CUDA_BF16 : KERNEL_CUDA_F16);
        g_test_message("head_dim %zu, %zu of %zu heads, %s, %s", shape.head_dim, shape.kv_heads,
                       shape.heads, shape.causal ? "causal" : "not causal",
                       backward ? "backward" : "forward");
        g_assert_true(is_planned(&shape, backward));
    }
}

/* The backward of what is trained: GPT-2 1.5B, whose q, k, v are parts of one row (and so are their
 * gradients, where kernels are fused), and Llama 3 8B, whose are not, or whose v alone is; and of a
 * length that is no multiple of anything; and heads of 256, as Gemma's. */
static void test_trained(void) {
    static const KernelCudaAttention shapes[] = {
        {4, 25, 25, 1024, 64, 4800, 4800, 4800, 1024, 0.125f, true, KERNEL_CUDA_BF16},
        {4, 25, 25, 1024, 64, 4800, 4800, 4800, 1024, 0.125f, true, KERNEL_CUDA_BF16, 0, 4800},
        {1, 32, 8, 4096, 128, 4096, 1024, 1024, 4096, 0.088f, true, KERNEL_CUDA_BF16},
        {1, 32, 8, 4096, 128, 4096, 1024, 6144, 4096, 0.088f, true, KERNEL_CUDA_BF16},
        {2, 4, 2, 70, 32, 256, 256, 256, 70, 0.177f, true, KERNEL_CUDA_BF16},
        {1, 8, 4, 1024, 256, 4096, 4096, 4096, 1024, 0.0625f, true, KERNEL_CUDA_BF16},
    };
    for (unsigned i = 0; i < G_N_ELEMENTS(shapes); i++) {
        g_test_message("sequences of %zu", shapes[i].seq);
        g_assert_true(is_planned(&shapes[i], true));
    }
}

/* A ring's turns, with keys head by head: of two ranks that share sequences of 8192 of Llama 3 8B,
 * all queries to half of the keys, and half of the queries, of each of two sequences, to all. */
static void test_turns(void) {
    KernelCudaAttention turn = {1,   32,  8,    4096,   128,   4096,
                                128, 128, 4096, 0.088f, false, KERNEL_CUDA_BF16};
    turn.rows = 4096;
    turn.by_head = true;
    for (unsigned i = 0; i < 3; i++) {
        turn.batch = i ? 2 : 1;
        turn.causal = i == 0;
        turn.keys = i == 1 ? 2048 : 4096;
        turn.seq = turn.lse_stride = i == 2 ? 2048 : 4096;
        g_test_message("%zu rows of queries, %zu of keys", turn.seq, turn.keys);
        g_assert_true(is_planned(&turn, false));
        g_assert_true(is_planned(&turn, true));
    }
}

static void test_unknown(void) {
    KernelCudaAttention shape = shape_of(65, 1, true, KERNEL_CUDA_BF16);
    size_t workspace_bytes;
    g_assert_false(is_planned(&shape, false));
    g_assert_false(is_planned(&shape, true));
    shape = shape_of(64, 1, true, KERNEL_CUDA_BF16);
    g_assert_nonnull(strstr(kernel_cuda_cudnn_plan_for("{}", &shape, false, &workspace_bytes),
                            "description of a device"));
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    if (!dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL) &&
        (argc < 2 || !dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL))) {
        g_print("1..0 # SKIP neither a driver nor its stub\n");
        return 0;
    }
    g_test_add_func("/kernels-cuda/cudnn-plans/known", test_known);
    g_test_add_func("/kernels-cuda/cudnn-plans/trained", test_trained);
    g_test_add_func("/kernels-cuda/cudnn-plans/turns", test_turns);
    g_test_add_func("/kernels-cuda/cudnn-plans/unknown", test_unknown);
    return g_test_run();
}
